"""How far an import is believed: never shown at a prompt until the user vouches for the file, which an undo takes back."""

import json

import pytest
from hooking import shop

from bethink import Bethink
from bethink.errors import NeedsPerson
from bethink.features import exchange
from bethink.model import TRUST

__all__ = ["shop"]
STORE = "sqlite"
TEXT = "The Valkey cluster gets a third replica before the sale"
PROMPT = "how many replicas does the Valkey cluster get before the sale?"


@pytest.fixture
def export(shop, tmp_path):
    """Writes what the user exported from another machine: one decision of theirs, with these fields."""

    def write(**fields):
        with Bethink(tmp_path / "other.db", directory=shop.project) as other:
            other.add(TEXT, kind="decision")
            values = list(exchange.export_records(other, other.export()))
        file = tmp_path / "export.json"
        file.write_text(json.dumps([{**one, **fields} for one in values]))
        return file

    return write


def take(shop, file, **options):
    with shop.memory() as memory:
        return exchange.import_file(memory, file, **options)


def stored(shop):
    """The memories that say the decision, forgotten ones included."""
    with shop.memory() as memory:
        return [one for one in memory.export() if one.content == TEXT]


def actions(shop):
    (one,) = stored(shop)
    with shop.memory() as memory:
        return [event.action for event in memory.history(one.id)]


KINDS = [
    pytest.param({}, id="a note"),
    pytest.param({"source_type": "markdown", "source": "README.md", "kind": "document"}, id="page"),
    pytest.param({"source_type": "analysis", "source": "analysis:docs/a.md"}, id="an analysis"),
    pytest.param({"source_type": "git", "source": "git:1234"}, id="a commit"),
    pytest.param({"source_type": "transcript", "source": "/talks/a.jsonl"}, id="a turn"),
    pytest.param({"trust": 0}, id="what was doubted there"),
]


@pytest.mark.parametrize("fields", KINDS)
def test_an_import_is_not_shown_at_a_prompt(shop, export, fields):
    assert take(shop, export(**fields)).added == 1
    assert shop.ask(PROMPT) == ""


def test_an_import_that_names_a_file_of_the_project_is_none_of_that_file(shop, export):
    shop.hear("# Cluster\n\nThe Valkey cluster.", "README.md", "document", "import")
    take(shop, export(source_type="markdown", source="README.md", kind="document"))
    assert TEXT not in shop.ask(PROMPT)


def test_a_document_of_the_project_is_shown_at_a_prompt(shop):
    shop.hear(TEXT, "README.md", "document", "import")
    assert TEXT in shop.ask(PROMPT)


def test_an_import_is_shown_at_a_prompt_once_the_user_vouches_for_the_file(shop, export):
    file = export()
    take(shop, file)
    take(shop, file, trusted=True)
    assert TEXT in shop.ask(PROMPT)


def test_a_trusted_import_raises_the_trust_of_what_a_plain_one_brought(shop, export):
    file = export()
    take(shop, file)
    done = take(shop, file, trusted=True)
    (one,) = stored(shop)
    assert (done.added, done.believed, one.trust) == (0, 1, TRUST["user"])


def test_a_trusted_import_raises_the_trust_of_what_is_known_by_its_text(shop, export):
    shop.add(TEXT, "decision", trust=TRUST["agent"])
    take(shop, export(), trusted=True)
    (one,) = stored(shop)
    assert one.trust == TRUST["user"]


def test_a_trusted_import_of_another_programs_file_raises_the_trust_of_what_it_knows(
    shop, tmp_path
):
    file = tmp_path / "notes.json"
    file.write_text(json.dumps([{"text": TEXT}]))
    take(shop, file)
    take(shop, file, trusted=True)
    (one,) = stored(shop)
    assert one.trust == TRUST["agent"]


def test_history_says_that_an_import_is_believed(shop, export):
    file = export()
    take(shop, file)
    take(shop, file, trusted=True)
    assert actions(shop)[-1] == "believe"


def test_a_second_trusted_import_changes_nothing(shop, export):
    file = export()
    take(shop, file)
    take(shop, file, trusted=True)
    before = actions(shop)
    assert take(shop, file, trusted=True).believed == 0
    assert actions(shop) == before


def test_a_dry_run_changes_nothing(shop, export):
    file = export()
    take(shop, file)
    assert take(shop, file, trusted=True, dry_run=True).believed == 1
    (one,) = stored(shop)
    assert one.trust == TRUST["import"]


def test_a_plain_import_never_lowers_what_is_known(shop, export):
    shop.add(TEXT, "decision")
    take(shop, export())
    (one,) = stored(shop)
    assert one.trust == TRUST["user"]


def test_an_agent_cannot_vouch_for_a_file(shop, export):
    file = export()
    take(shop, file)
    with shop.memory(trust=TRUST["agent"]) as memory, pytest.raises(NeedsPerson):
        exchange.import_file(memory, file, trusted=True)
    (one,) = stored(shop)
    assert one.trust == TRUST["import"]


def test_what_was_forgotten_here_stays_as_it_is(shop, export):
    file = export()
    take(shop, file)
    with shop.memory() as memory:
        memory.forget(stored(shop)[0].id)
    assert take(shop, file, trusted=True).believed == 0


def undo(shop, file, **options):
    with shop.memory() as memory:
        return exchange.undo(memory, file, options.get("dry_run", False))


def test_an_undo_removes_what_both_imports_added(shop, export):
    file = export()
    take(shop, file)
    take(shop, file, trusted=True)
    assert undo(shop, file)["removed"] == 1
    assert stored(shop) == []


def test_an_undo_lowers_again_what_was_here_before(shop, export):
    file = export()
    shop.add(TEXT, "decision", trust=TRUST["agent"])
    take(shop, file, trusted=True)
    assert undo(shop, file)["doubted"] == 1
    (one,) = stored(shop)
    assert one.trust == TRUST["agent"]


def test_an_undo_leaves_what_was_changed_since(shop, export):
    file = export()
    take(shop, file)
    take(shop, file, trusted=True)
    with shop.memory() as memory:
        memory.update(stored(shop)[0].id, importance=9.0)
    assert undo(shop, file)["kept"] == 1
    assert [one.trust for one in stored(shop)] == [TRUST["user"]]


def test_an_import_can_be_taken_back_again_after_it_came_again(shop, export):
    def come_and_go():
        take(shop, file)
        take(shop, file, trusted=True)
        return undo(shop, file)["removed"]

    file = export()
    assert [come_and_go(), come_and_go()] == [1, 1]
    assert stored(shop) == []
