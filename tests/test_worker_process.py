"""The worker as a process: it belongs to nobody, survives its agent, holds nothing of it, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
from capturing import SAID, Desk, eventually

from bethink.hooks import spool, state

# An agent's session whose Stop hook notes the transcript and wakes the worker; then it waits to be killed.
SESSION = """
import sys
from bethink.hooks import spool
from bethink.hooks.state import Hook
database, transcript, directory = sys.argv[1:]
spool.note(Hook("stop", "claude", session="s", transcript=transcript, directory=directory), database)
spool.wake(database)
print("noted", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def desk(offline: Path, tmp_path: Path) -> Desk:
    return Desk(tmp_path, offline)


def session(desk: Desk, transcript: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SESSION, desk.database, str(transcript), str(desk.project)]
    environment = os.environ | {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s"}
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment,
        cwd=desk.project,
    )


def commands() -> dict[int, bytes]:
    """The command lines of all processes."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = (folder / "cmdline").read_bytes()
        except OSError:
            continue
    return found


def workers(desk: Desk) -> list[int]:
    """The processes that work for this database."""
    wanted = {b"bethink.hooks.worker", desk.database.encode()}
    return [process for process, line in commands().items() if wanted <= set(line.split(b"\0"))]


def end(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def gone(desk: Desk) -> bool:
    """Whether no worker is left. One that is being killed loses its name a moment before its lock."""
    if workers(desk):
        return False
    with spool.lock(desk.database) as free:
        return free


def drained(desk: Desk) -> bool:
    return eventually(lambda: not spool.list_entries(desk.database)) and eventually(
        lambda: gone(desk)
    )


def test_a_worker_survives_its_agent_and_holds_nothing_of_it(desk: Desk) -> None:
    with desk.memory():
        pass
    writer = apsw.Connection(desk.database)
    writer.execute("BEGIN IMMEDIATE")  # so that the worker has to wait
    try:
        agent = session(desk, desk.talk("a", *SAID))
        assert agent.stdout.readline() == "noted\n"
        assert eventually(lambda: workers(desk))
        (worker,) = workers(desk)
        end(agent)  # returns although the worker lives: it does not hold the agent's output
        process = Path("/proc") / str(worker)
        assert eventually(
            lambda: int((process / "stat").read_text().rpartition(")")[2].split()[16]) >= 10
        )  # its priority
        status = (process / "stat").read_text().rpartition(")")[2].split()
        assert (
            int(status[1]) != agent.pid and int(status[3]) != agent.pid
        )  # neither its child nor of its session
        assert str((process / "cwd").readlink()) == "/"
        assert [str((process / "fd" / str(number)).readlink()) for number in range(3)] == [
            os.devnull
        ] * 3
        held = set()
        for entry in (process / "fd").iterdir():
            with suppress(FileNotFoundError):  # closed since it was listed
                held.add(str(entry.readlink()))
        assert not {name for name in held if name.startswith(("pipe:", "/dev/pts"))}
        environment = (process / "environ").read_bytes().split(b"\0")
        assert b"BETHINK_HOOKS=off" in environment and not [
            one for one in environment if one.startswith(b"CLAUDE")
        ]
        assert workers(desk) == [worker]
    finally:
        writer.close()
    assert drained(desk)
    assert desk.turns() == [text for _, text in SAID]


@pytest.mark.parametrize("event", ["stop", "session-start"])
def test_a_hook_ends_in_memory_and_takes_up_what_a_killed_worker_left(
    desk: Desk, event: str
) -> None:
    file = desk.talk("a", *SAID)
    told = {"session_id": "a", "cwd": str(desk.project), "transcript_path": str(file)}
    if event == "session-start":
        desk.note(file)
        spool.take(spool.list_entries(desk.database)[0])
        told = {"session_id": "b", "cwd": str(desk.project), "source": "startup"}
    command = [sys.executable, "-m", "bethink", "hook", event, "--host", "claude"]
    done = subprocess.run(
        command, input=json.dumps(told).encode(), capture_output=True, timeout=60, cwd=desk.project
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert drained(desk)
    assert desk.turns() == [text for _, text in SAID]


def test_a_teams_database_is_served_too_and_its_password_stands_in_no_command_line(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    import postgres

    postgres.use(monkeypatch)
    desk.database = postgres.database_url()
    desk.note(desk.talk("a", *SAID))
    spool.wake(desk.database)
    seen: set[bytes] = set()

    def looked() -> bool:
        seen.update(words for words in commands().values() if b"bethink.hooks.worker" in words)
        return not spool.list_entries(desk.database)

    assert eventually(looked)
    assert seen and not [words for words in seen if b"postgresql:" in words]
    assert desk.turns() == [text for _, text in SAID]


def test_while_one_works_no_other_is_started(desk: Desk) -> None:
    desk.note(desk.talk("a", *SAID))
    with spool.lock(desk.database):
        spool.wake(desk.database)
        assert workers(desk) == []
    spool.wake(desk.database)
    for _ in range(5):
        spool.wake(desk.database)
        assert len(workers(desk)) <= 1
    assert drained(desk)


def test_twenty_sessions_ended_at_once_lose_nothing_and_leave_no_process(desk: Desk) -> None:
    files = [
        desk.talk(f"s{number:02d}", ("user", f"Remember shelf number {number:02d}."), SAID[1])
        for number in range(20)
    ]
    agents = [session(desk, file) for file in files]
    for agent in agents:
        assert agent.stdout.readline() == "noted\n"
    for agent in agents:
        os.killpg(agent.pid, signal.SIGKILL)
    for worker in workers(desk):
        os.kill(worker, signal.SIGKILL)
    for agent in agents:
        agent.communicate()
    assert eventually(lambda: gone(desk))
    # The next session to come along.
    following = session(desk, desk.talk("next", ("user", "Remember the last shelf."), SAID[1]))
    assert following.stdout.readline() == "noted\n"
    end(following)
    assert drained(desk)
    said = [text for text in desk.turns() if text.startswith("Remember")]
    assert sorted(said) == sorted(
        [
            *(f"Remember shelf number {number:02d}." for number in range(20)),
            "Remember the last shelf.",
        ]
    )
    assert spool.list_aside() == []
    assert [
        failure for failure in state.read_failures() if "Another process" not in failure.message
    ] == []


def test_a_worker_killed_again_and_again_repeats_nothing(desk: Desk) -> None:
    said = [
        (role, f"{text} ({number})") for number in range(150) for role, text in SAID
    ]  # three pages
    desk.note(desk.talk("long", *said))
    for _ in range(4):
        spool.wake(desk.database)
        eventually(lambda: workers(desk), 5)
        for worker in workers(desk):
            os.kill(worker, signal.SIGKILL)
        assert eventually(lambda: gone(desk))
    spool.wake(desk.database)
    assert drained(desk)
    turns = desk.turns()
    assert len(turns) == len(set(turns)) == len(said)
