"""The worker as a process: it belongs to nobody, survives its agent, holds nothing of it, and leaves nothing behind."""

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

from bethink.config import Config
from bethink.hooks import spool, state

# An agent's session whose Stop hook notes the transcript and wakes the worker; then it waits to be killed.
SESSION = """
import sys
from bethink.config import Config
from bethink.hooks import spool
from bethink.hooks.state import Hook
database, transcript, directory = sys.argv[1:]
spool.note(Hook("stop", "claude", session="s", transcript=transcript, directory=directory), database)
spool.wake(database, Config())
print("noted", flush=True)
sys.stdin.read()
"""


def session(desk: Desk, name: str, *said: tuple[str, str]) -> subprocess.Popen[str]:
    """An agent that has noted what was said, and waits to be killed."""
    file = desk.talk(name, *said)
    command = [sys.executable, "-c", SESSION, desk.database, str(file), str(desk.project)]
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": desk.project}
    known = os.environ | {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s"}
    return subprocess.Popen(command, start_new_session=True, env=known, **how)


def commands() -> dict[int, tuple[bytes, bytes]]:
    """The command lines of all workers, each with its environment."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            if b"bethink.hooks.worker" in words:
                found[int(folder.name)] = words, (folder / "environ").read_bytes()
    return found


def workers(desk: Desk) -> list[int]:
    """The processes that work for this database."""
    wanted = f"BETHINK_DATABASE={desk.database}".encode()
    return [process for process, (_, told) in commands().items() if wanted in told.split(b"\0")]


def kill_workers(desk: Desk) -> None:
    for worker in workers(desk):
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(worker, signal.SIGKILL)


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
    empty = eventually(lambda: not spool.list_entries(desk.database))
    return empty and eventually(lambda: gone(desk))


def test_a_worker_survives_its_agent_and_holds_nothing_of_it(desk):
    with desk.memory():
        pass
    writer = apsw.Connection(desk.database)
    writer.execute("BEGIN IMMEDIATE")  # so that the worker has to wait
    try:
        agent = session(desk, "a", *SAID)
        assert agent.stdout.readline() == "noted\n"
        assert eventually(lambda: workers(desk))
        (worker,) = workers(desk)
        end(agent)  # returns although the worker lives: it does not hold the agent's output
        process = Path("/proc") / str(worker)

        def status():
            numbers = (process / "stat").read_text().rpartition(")")[2].split()[1:]
            return list(map(int, numbers))

        assert eventually(lambda: status()[15] >= 10), "its priority"
        assert agent.pid not in (status()[0], status()[2]), "neither its child nor of its session"
        assert str((process / "cwd").readlink()) == "/"
        held = {}
        for entry in (process / "fd").iterdir():
            with suppress(FileNotFoundError):  # closed since it was listed
                held[entry.name] = str(entry.readlink())
        assert [held[number] for number in "012"] == [os.devnull] * 3
        assert not [name for name in held.values() if name.startswith(("pipe:", "/dev/pts"))]
        environment = (process / "environ").read_bytes().split(b"\0")
        assert b"BETHINK_HOOKS=off" in environment
        assert not [one for one in environment if one.startswith((b"CLAUDECODE", b"CLAUDE_CODE"))]
        assert workers(desk) == [worker]
    finally:
        writer.close()
    assert drained(desk)
    assert desk.turns() == [text for _, text in SAID]


@pytest.mark.parametrize("event", ["stop", "session-start"])
def test_a_hook_ends_in_memory_and_takes_up_what_a_killed_worker_left(desk, event):
    file = desk.talk("a", *SAID)
    told = {"session_id": "a", "cwd": str(desk.project), "transcript_path": str(file)}
    if event == "session-start":
        desk.note(file)
        spool.take(spool.list_entries(desk.database)[0])
        told = {"session_id": "b", "cwd": str(desk.project), "source": "startup"}
    command = [sys.executable, "-m", "bethink", "hook", event, "--host", "claude"]
    options = {"capture_output": True, "timeout": 60, "cwd": desk.project}
    done = subprocess.run(command, input=json.dumps(told).encode(), **options)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert drained(desk)
    assert desk.turns() == [text for _, text in SAID]


def test_a_teams_database_is_served_and_its_password_told_to_nobody(desk, monkeypatch):
    import postgres

    postgres.use(monkeypatch)
    desk.database = postgres.database_url()
    desk.note(desk.talk("a", *SAID))
    spool.wake(desk.database, Config())
    seen: set[bytes] = set()

    def looked() -> bool:
        seen.update(words for words, _ in commands().values())
        return not spool.list_entries(desk.database)

    assert eventually(looked)
    assert seen and not [words for words in seen if b"postgresql:" in words]
    assert desk.turns() == [text for _, text in SAID]


def test_while_one_works_no_other_is_started(desk):
    desk.note(desk.talk("a", *SAID))
    with spool.lock(desk.database):
        spool.wake(desk.database, Config())
        assert workers(desk) == []
    spool.wake(desk.database, Config())
    for _ in range(5):
        spool.wake(desk.database, Config())
        assert len(workers(desk)) <= 1
    assert drained(desk)


def test_sessions_that_end_at_once_lose_nothing_and_leave_no_process(desk):
    shelves = [("user", f"Remember shelf number {number}.") for number in range(9)]
    agents = [session(desk, shelf[1][-2:], shelf, SAID[1]) for shelf in shelves]
    for agent in agents:
        assert agent.stdout.readline() == "noted\n"
    for agent in agents:
        os.killpg(agent.pid, signal.SIGKILL)
    kill_workers(desk)
    for agent in agents:
        agent.communicate()
    assert eventually(lambda: gone(desk))
    # The next session to come along.
    following = session(desk, "next", ("user", "Remember the last shelf."), SAID[1])
    assert following.stdout.readline() == "noted\n"
    end(following)
    assert drained(desk)
    said = [text for text in desk.turns() if text.startswith("Remember")]
    assert sorted(said) == sorted([*(text for _, text in shelves), "Remember the last shelf."])
    failures = [failure.message for failure in state.read_failures()]
    assert [message for message in failures if "Another process" not in message] == []


def test_a_worker_killed_in_the_middle_of_each_page_repeats_nothing(desk):
    said = [("user", f"Look at shelf {number}") for number in range(450)]
    desk.note(desk.talk("long", *said))
    # A page is 200 turns. Whenever one went in the worker is killed, and it is never killed twice before one went in.
    for read in (200, 400):
        spool.wake(desk.database, Config())
        assert eventually(lambda read=read: len(desk.turns()) >= read)
        kill_workers(desk)
        assert eventually(lambda: gone(desk))
    spool.wake(desk.database, Config())
    assert drained(desk)
    assert sorted(desk.turns()) == sorted(text for _, text in said)
