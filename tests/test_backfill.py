"""What `bethink backfill` finds, what it says about what it cannot read, and whose words it takes for the user's."""

from pathlib import Path

import pytest
from agent_formats import FORMATS
from transcripts import claude_line, written

from bethink.model import TRUST

DECIDED = "We decided to keep the sessions of the shop in Redis."


def lay_history(folder, text=DECIDED):
    """Write a history of aider into a project."""
    path = folder / ".aider.chat.history.md"
    path.write_text(
        f"# aider chat started at 2026-05-04 09:00:00\n\n#### {text}  \n\nIt is done.\n"
    )
    return path


def trust_of(cli, text=DECIDED):
    return {one["trust"] for one in cli.json("export") if one["content"] == text}


def test_a_folder_without_transcripts_is_said_to_have_none(cli, tmp_path):
    (tmp_path / "empty").mkdir()
    told = cli("backfill", tmp_path / "empty").err
    assert f"There are no transcripts in {tmp_path / 'empty'}." in told
    assert "`bethink backfill --all`" in told


def test_a_machine_without_transcripts_is_said_to_have_none(cli):
    told = cli("backfill", "--all").err
    assert "The agents on this machine keep no transcripts." in told
    assert "`bethink backfill PATH`" in told


@pytest.mark.parametrize("host", FORMATS)
def test_every_format_is_stored(host, cli, tmp_path):
    done = cli.json("backfill", FORMATS[host](tmp_path), "--no-embed", "--trusted")
    assert done["turns"] >= 2


def test_json_files_of_a_folder_are_read(cli, tmp_path):
    FORMATS["opencode"](tmp_path)
    FORMATS["gemini"](tmp_path)
    assert cli.json("backfill", tmp_path, "--no-embed")["transcripts"] == 2


def test_a_file_of_another_agent_is_refused(cli, tmp_path):
    told = cli.fails("backfill", FORMATS["opencode"](tmp_path), "--host", "codex", code=2)
    assert "was understood" in told and "Leave out --host" in told


def test_entries_that_are_not_understood_are_reported(cli, tmp_path):
    unknown = {"type": "hologram", "uuid": "u9", "message": {"content": "Use Redis."}}
    path = written(tmp_path / "s1.jsonl", claude_line(1, "Which queue?"), unknown)
    done = cli("backfill", path)
    assert "1 not understood: hologram" in done.err
    assert "not understood: hologram" in done.out


def test_a_history_in_the_project_is_found(cli):
    lay_history(cli.project)
    assert cli.json("backfill", "--all", "--no-embed")["turns"] == 2


def test_a_history_that_lies_in_the_project_is_not_the_users_word(cli):
    lay_history(cli.project)
    cli.ok("backfill", "--all", "--no-embed")
    assert trust_of(cli) == {TRUST["import"]}


def test_a_history_that_the_user_names_is_the_users_word(cli):
    cli.ok("backfill", lay_history(cli.project), "--no-embed")
    assert trust_of(cli) == {TRUST["user"]}


def test_transcripts_of_an_editor_are_found_in_its_storage(cli):
    user = Path.home() / ".config" / "Code" / "User"
    user.mkdir(parents=True)
    FORMATS["vscode"](user)
    assert cli.json("backfill", "--all", "--no-embed")["turns"] == 2
