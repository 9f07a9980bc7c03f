"""The resident helper that keeps models open between prompts: started by a hook, ends by itself, never in the way."""

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mcp_client import environment

from bethink import Bethink
from bethink.embed import borrowed
from bethink.hooks import client, helper, lending, spool

PROMPT = "how do we deploy the billing service?"
HOOK = [sys.executable, "-m", "bethink", "hook", "prompt", "--host", "claude"]


class Machine:
    """A home and a project with one decision, and the prompt hook as an agent starts it."""

    def __init__(self, folder: Path, models: Path) -> None:
        self.home, self.project = folder / "data", folder / "project"
        (self.project / ".git").mkdir(parents=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self.environment = environment(
            self.home,
            HOME=str(folder),
            BETHINK_MODEL_DIR=str(models),
            BETHINK_HOOK_HELPER="true",
            BETHINK_HELPER_IDLE="60",
        )
        del self.environment["BETHINK_EMBEDDING"]
        self.add("We deploy the billing service from main")

    def add(self, text: str) -> None:
        with Bethink(self.home / "memory.db", directory=self.project) as memory:
            memory.add(text, kind="decision")

    def prompt(self, session: str = "s", **more: str) -> str:
        return self.run(session, PROMPT, **more).stdout.decode()

    def run(self, session: str, prompt: str, **more: str) -> subprocess.CompletedProcess[bytes]:
        message = {"cwd": str(self.project), "session_id": session, "prompt": prompt}
        return subprocess.run(
            HOOK,
            input=json.dumps(message).encode(),
            env=self.environment | more,
            capture_output=True,
            timeout=60,
            check=True,
        )

    def sockets(self) -> list[Path]:
        return sorted((self.home / "hooks").glob("helper-*.sock"))

    def helpers(self) -> list[int]:
        """Process ids of helpers of this home."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                own = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"helper" in words and f"BETHINK_HOME={self.home}".encode() in own:
                found.append(int(folder.name))
        return found


@pytest.fixture
def machine(
    tmp_path_factory: pytest.TempPathFactory, with_model: None, model_or_pull: Path
) -> Iterator[Machine]:
    # A short path: the system allows about 100 bytes for that of a socket.
    made = Machine(tmp_path_factory.mktemp("h"), model_or_pull.parent)
    yield made
    for pid in made.helpers():
        os.kill(pid, signal.SIGKILL)


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not condition():
        time.sleep(0.02)
    return condition()


def test_the_helper_answers_like_the_hook_itself(machine: Machine) -> None:
    alone = machine.prompt("one", BETHINK_HOOK_HELPER="false")
    assert "from main" in alone
    assert "from main" in machine.prompt("two")
    assert len(machine.helpers()) == 1


def test_only_its_owner_can_open_the_socket(machine: Machine) -> None:
    machine.prompt()
    [path] = machine.sockets()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_memory_is_shown_once_per_session_through_the_helper(machine: Machine) -> None:
    assert machine.prompt("same")
    assert machine.prompt("same") == ""


def test_a_change_is_seen_by_a_running_helper(machine: Machine) -> None:
    machine.prompt("one")
    machine.add("Only Ada may deploy the billing service")
    assert "Only Ada" in machine.prompt("two")


def test_a_hook_that_the_helper_answers_loads_next_to_nothing(machine: Machine) -> None:
    machine.prompt("one")
    done = machine.run("two", PROMPT, PYTHONPROFILEIMPORTTIME="1")
    assert b"from main" in done.stdout
    assert b"bethink.hooks.run" not in done.stderr


def test_a_running_helper_writes_the_briefing_of_a_session(machine: Machine) -> None:
    machine.prompt("one")
    message = {"cwd": str(machine.project), "session_id": "two", "source": "startup"}
    done = subprocess.run(
        [*HOOK[:4], "session-start", *HOOK[5:]],
        input=json.dumps(message).encode(),
        env=machine.environment | {"PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert b"from main" in done.stdout
    assert b"bethink.hooks.run" not in done.stderr


def test_the_helper_sees_the_environment_of_each_hook(machine: Machine) -> None:
    machine.prompt("one")
    assert machine.prompt("two", CURSOR_VERSION="1") == ""  # Cursor runs its own hook as well
    assert "from main" in machine.prompt("three")


def send(machine: Machine, event: str, **more: str) -> bytes | None:
    """Send a request to a running helper, as any program of this user can."""
    message = {"cwd": str(machine.project), "session_id": "two", "prompt": PROMPT}
    message |= {"transcript_path": str(machine.project / "talk.jsonl")}
    own = [f"{name}={text}".encode() for name, text in (machine.environment | more).items()]
    parts = [event.encode(), b"claude", b"%d" % len(own), *own, json.dumps(message).encode()]
    packed = b"\0".join(parts)
    connection = client.connect(str(machine.sockets()[0]))
    assert connection
    return client.exchange(connection, b"%d\n" % len(packed) + packed, 20)


def test_a_request_with_the_helpers_settings_is_answered(machine: Machine) -> None:
    machine.prompt("one")
    assert b"from main" in (send(machine, "prompt") or b"")


def test_a_request_with_other_settings_than_the_helpers_is_refused(machine: Machine) -> None:
    machine.prompt("one")
    assert send(machine, "prompt", BETHINK_EMBEDDING_URL="https://elsewhere.example") is None


def test_a_request_chooses_no_code_for_the_worker(machine: Machine, tmp_path: Path) -> None:
    machine.prompt("one")
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for event in ("prompt", "session-start"):
        assert send(machine, event, PYTHONPATH=str(tmp_path)) is not None
    [lock] = (machine.home / "spool").glob("*.lock")
    assert wait_until(lambda: is_free(lock))  # the worker has ended
    assert not (tmp_path / "ran").exists()


def is_free(lock: Path) -> bool:
    held = spool.acquire(lock)
    if held is None:
        return False
    os.close(held)
    return True


def test_a_phrase_that_grants_a_request_is_left_to_the_hook_itself(machine: Machine) -> None:
    machine.prompt("one")
    answer = machine.run("two", "bethink forget K7QX").stdout
    assert b"No open request has the code K7QX" in answer


def test_a_hook_ends_in_time_if_its_agent_never_closes_stdin(machine: Machine) -> None:
    machine.prompt("one")
    own = machine.environment | {"BETHINK_HOOK_SECONDS": "2"}
    assert machine.prompt("two", BETHINK_HOOK_SECONDS="2") is not None  # starts the helper
    with subprocess.Popen(HOOK, stdin=subprocess.PIPE, env=own) as hook:
        assert hook.wait(timeout=30) == 0


def test_a_database_that_was_replaced_is_seen_by_a_running_helper(machine: Machine) -> None:
    machine.prompt()
    for file in machine.home.glob("memory.db*"):
        file.unlink()
    machine.add("We deploy the billing service from tags")
    assert "from tags" in machine.prompt("other")


def test_a_helper_with_a_full_queue_is_not_waited_for_without_end(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path_factory.mktemp("h")))
    path = Path(client.find_socket())
    path.parent.mkdir(parents=True)
    with contextlib.ExitStack() as sockets:
        listener = sockets.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                connection = sockets.enter_context(socket.socket(socket.AF_UNIX))
                connection.setblocking(False)
                connection.connect(str(path))
        lock = spool.acquire(path.with_suffix(".lock"))  # held by the helper that hangs
        assert lock
        assert helper.ask("prompt", "claude", b"{}", 0.1) is None
        os.close(lock)


def test_a_killed_helper_is_replaced(machine: Machine) -> None:
    machine.prompt("one")
    [first] = machine.helpers()
    os.kill(first, signal.SIGKILL)
    assert wait_until(lambda: not machine.helpers())
    assert "from main" in machine.prompt("two")
    assert len(machine.helpers()) == 1


def test_an_idle_helper_ends(machine: Machine) -> None:
    machine.prompt(BETHINK_HELPER_IDLE="0.5")
    assert wait_until(lambda: not machine.helpers())


def test_an_idle_helper_removes_its_socket(machine: Machine) -> None:
    machine.prompt(BETHINK_HELPER_IDLE="0.5")
    assert wait_until(lambda: not machine.sockets())


def test_prompts_at_the_same_time_start_one_helper(machine: Machine) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(machine.prompt, ("a", "b", "c", "d")))
    assert all("from main" in answer for answer in answers)
    assert len(machine.helpers()) == 1


def test_a_helper_survives_a_request_that_is_no_json(machine: Machine) -> None:
    machine.prompt("one")
    [path] = machine.sockets()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(path))
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert "from main" in machine.prompt("two")


def test_the_setting_turns_the_helper_off(machine: Machine) -> None:
    assert "from main" in machine.prompt(BETHINK_HOOK_HELPER="false")
    assert machine.helpers() == []


def test_without_embeddings_no_helper_is_started(machine: Machine) -> None:
    machine.prompt(BETHINK_EMBEDDING="none")
    assert machine.helpers() == []


def test_a_socket_file_that_nobody_answers_is_no_hindrance(machine: Machine) -> None:
    machine.prompt("one")
    [pid], [path] = machine.helpers(), machine.sockets()
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not machine.helpers())
    assert path.exists()
    assert "from main" in machine.prompt("two")


def test_a_start_of_a_session_warms_the_helper_up(machine: Machine) -> None:
    message = {"cwd": str(machine.project), "session_id": "s", "source": "startup"}
    subprocess.run(
        [sys.executable, "-m", "bethink", "hook", "session-start", "--host", "claude"],
        input=json.dumps(message).encode(),
        env=machine.environment,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert wait_until(lambda: len(machine.sockets()) == 1)


def test_a_home_with_a_long_path_has_a_helper_too(
    tmp_path: Path, with_model: None, model_or_pull: Path
) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    machine = Machine(folder, model_or_pull.parent)
    try:
        answer = machine.prompt(XDG_RUNTIME_DIR=str(runtime))
        found = machine.helpers()
    finally:
        for pid in machine.helpers():
            os.kill(pid, signal.SIGKILL)
    assert "from main" in answer
    assert len(found) == 1


# Commands that borrow the models of a running helper


def command(machine: Machine, *words: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "bethink", *words, "--database", str(machine.home / "memory.db")],
        cwd=machine.project,
        env=machine.environment | more,
        capture_output=True,
        timeout=60,
        check=True,
    )


PROFILED = {"PYTHONPROFILEIMPORTTIME": "1"}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("search", PROMPT), id="search"),
        pytest.param(("recall", PROMPT), id="recall"),
        pytest.param(("add", "We deploy the billing service from tags now"), id="add"),
    ],
)
def test_a_command_loads_no_model_while_a_helper_runs(
    machine: Machine, words: tuple[str, ...]
) -> None:
    machine.prompt("one")
    assert b"onnxruntime" not in command(machine, *words, **PROFILED).stderr


def test_a_command_without_a_helper_loads_its_own_model(machine: Machine) -> None:
    assert b"onnxruntime" in command(machine, "search", PROMPT, **PROFILED).stderr


def test_a_command_starts_no_helper(machine: Machine) -> None:
    command(machine, "search", PROMPT)
    assert machine.helpers() == []


def find_cosines(machine: Machine, **more: str) -> list[tuple[str, float]]:
    found = json.loads(command(machine, "search", PROMPT, "--json", "--explain", **more).stdout)
    return [(hit["content"], hit["why"]["cosine"]) for hit in found]


def test_a_borrowed_model_gives_the_numbers_of_ones_own(machine: Machine) -> None:
    machine.prompt("one")
    command(machine, "add", "The billing service runs in Frankfurt")
    command(machine, "add", "Billing is deployed by Ada", BETHINK_HOOK_HELPER="false")
    borrowed, own = find_cosines(machine), find_cosines(machine, BETHINK_HOOK_HELPER="false")
    assert len(own) == 3
    assert borrowed == own


def test_a_change_is_judged_by_a_borrowed_model(machine: Machine) -> None:
    machine.prompt("one")
    command(machine, "add", "We deploy the billing service from tags now, no longer from main")
    assert b"from tags" in command(machine, "search", PROMPT, "--limit", "1").stdout


def test_a_command_does_without_a_helper_that_was_killed(machine: Machine) -> None:
    machine.prompt("one")
    [pid] = machine.helpers()
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not machine.helpers())
    assert b"from main" in command(machine, "search", PROMPT).stdout


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(["embedder", "snowflake-arctic-embed-s another", "query", ["a"]], id="other"),
        pytest.param(["embedder", "missing-model 1", "query", ["a"]], id="missing"),
        pytest.param(["languages", "multilingual@0", "", ["a"]], id="other version"),
        pytest.param(["anything", "", "", ["a"]], id="unknown"),
        pytest.param({}, id="another form"),
    ],
)
def test_a_helper_lends_only_the_very_model_that_is_wanted(
    request_: object, with_model: None
) -> None:
    assert lending.answer(json.dumps(request_).encode()) is None


def test_a_process_that_needs_many_runs_loads_its_own_model() -> None:
    asked: list[bytes] = []

    def lend(request: bytes) -> bytes:
        asked.append(request)
        return b"[]"

    with borrowed.borrowing(lend):
        answers = [borrowed.borrow("judge", "", "fits", [("a", "b")]) for _ in range(40)]
    assert answers[-1] is None
    assert len(asked) == borrowed.MOST_REQUESTS


def test_a_lender_that_does_not_answer_is_asked_no_more() -> None:
    with borrowed.borrowing(lambda request: None):
        borrowed.borrow("judge", "", "fits", [("a", "b")])
        assert not borrowed.is_lent()
