"""Plugins of packages from outside, installed as pip would, and used by the real command line."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from source_tree import ROOT

BLOCKS = re.findall(
    r"^```python\n# (bethink_\w+)\.py\n(.*?)^```$",
    (ROOT / "CONTRIBUTING.md").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)
WALK_THROUGHS = dict(BLOCKS)
IMPORTER = """
from bethink.features.readers import Importer

def rows(memory, place):
    for line in place.read_text("utf-8").splitlines():
        yield {"text": line, "kind": "fact"}

IMPORTER = Importer("toy", lambda place: place.suffix == ".toy", rows)
"""
LANGUAGE_MODEL = """
from bethink.llm.base import LanguageModelProvider, RawAnswer

class Parrot:
    name, remote = "toy parrot", False

    def send(self, ask):
        return RawAnswer('{"word": "ready"}', None)

PROVIDER = LanguageModelProvider("toy", lambda config: Parrot())
"""
SILENT = WALK_THROUGHS["bethink_toy_vectors"].replace("    remote = False\n", "")
RAISING = WALK_THROUGHS["bethink_toy_vectors"].replace("return [1.0,", "raise KeyError(text) #")


class Machine:
    """A home without anything, and a folder of installed packages."""

    def __init__(self, folder: Path) -> None:
        self.home, self.packages = folder / "home", folder / "packages"
        self.project = folder / "project"
        for one in (self.home, self.packages, self.project):
            one.mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environment = kept | {
            "HOME": str(self.home),
            "BETHINK_HOME": str(self.home / "bethink"),
            "BETHINK_EMBEDDING": "hashing",
            "PYTHONPATH": str(self.packages),
        }

    def install(self, group: str, name: str, value: str, code: str) -> None:
        """Put a package with one entry point where Python finds it."""
        module = value.partition(":")[0]
        (self.packages / f"{module}.py").write_text(code, "utf-8")
        about = self.packages / f"{module}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "bethink", *words]
        where = {"cwd": self.project, "env": self.environment}
        return subprocess.run(
            program, input=given, capture_output=True, text=True, timeout=60, check=False, **where
        )

    def ok(self, *words: str, given: str = "") -> str:
        done = self.run(*words, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def toy(machine):
    """A machine with the agent of CONTRIBUTING.md, and its folder."""
    code = WALK_THROUGHS["bethink_toy"]
    machine.install("bethink.agents", "toy", "bethink_toy:AGENT", code)
    (machine.home / ".toy" / "talks").mkdir(parents=True)
    return machine


def say(machine, words, speaker="me"):
    when = "2026-11-01T10:00:00Z"
    line = {"talk": "t1", "from": speaker, "words": words, "key": words[:8], "when": when}
    return json.dumps(line | {"folder": str(machine.project)}) + "\n"


def test_an_agent_from_outside_is_offered_by_install(toy):
    planned = json.loads(toy.ok("install", "--dry-run", "--no-mcp", "--json"))
    paths = [one["path"] for one in planned["files"] if one["host"] == "toy"]
    assert str(toy.home / ".toy" / "hooks.json") in paths


def test_an_agent_from_outside_has_a_flag_of_its_own(toy):
    (toy.home / ".claude").mkdir()
    planned = json.loads(toy.ok("install", "--toy", "--dry-run", "--no-mcp", "--json"))
    assert {one["host"] for one in planned["files"]} == {"toy"}


def test_hooks_of_an_agent_from_outside_are_installed_under_its_event_names(toy):
    toy.ok("install", "--no-mcp", "--no-skills")
    hooks = json.loads((toy.home / ".toy" / "hooks.json").read_text())["hooks"]
    assert set(hooks) == {"begin", "ask", "ran", "end"}


def test_transcripts_of_an_agent_from_outside_are_read_by_backfill(toy):
    talk = say(toy, "We decided to use Valkey for the carts.") + say(toy, "Agreed.", "toy")
    (toy.home / ".toy" / "talks" / "t1.jsonl").write_text(talk)
    toy.ok("backfill", "--all")
    assert "Valkey for the carts" in toy.ok("search", "Valkey carts", "--kind", "context")


def test_what_only_people_may_run_is_refused_to_an_agent_from_outside(toy):
    toy.ok("add", "The shop sells a toy owl.")
    toy.environment["TOY_AGENT"] = "1"
    assert "an agent runs it (TOY_AGENT)" in toy.run("reset", "--yes").stderr


def call(machine, command, output="", exit=0):
    return {"from": "shell", "words": command, "key": command, "output": output, "exit": exit} | {
        "talk": "t1",
        "when": "2026-11-01T10:00:00Z",
        "folder": str(machine.project),
    }


@pytest.fixture
def fixed(toy):
    """The toy agent after a session in which a failed command was fixed."""
    calls = [
        call(toy, "npm test", "Error: Cannot find module 'left-pad'", 1),
        call(toy, "npm install left-pad"),
        call(toy, "npm test", "1 passed"),
    ]
    talk = say(toy, "Run the tests.") + "".join(json.dumps(one) + "\n" for one in calls)
    (toy.home / ".toy" / "talks" / "t1.jsonl").write_text(talk + say(toy, "Done.", "toy"))
    toy.ok("backfill", "--all")
    return toy


def test_fixes_are_learned_from_transcripts_of_an_agent_from_outside(fixed):
    assert "npm install left-pad" in fixed.ok("failures")


def test_a_tool_hook_of_an_agent_from_outside_gets_the_known_fix(fixed):
    run = {"line": "npm test", "output": "Error: Cannot find module 'left-pad'", "exit": 1}
    given = json.dumps({"talk": {"id": "t2"}, "folder": str(fixed.project), "run": run})
    answer = json.loads(fixed.ok("hook", "tool", "--host", "toy", given=given))
    assert "npm install left-pad" in answer["toy"]["say"]


def test_a_session_of_an_agent_from_outside_may_be_named_inside_an_object(fixed):
    run = {"line": "npm test", "output": "Error: Cannot find module 'left-pad'", "exit": 1}
    given = json.dumps({"talk": {"id": "t2"}, "folder": str(fixed.project), "run": run})
    fixed.ok("hook", "tool", "--host", "toy", given=given)
    assert fixed.ok("hook", "tool", "--host", "toy", given=given) == ""  # once per session


def test_a_hook_of_an_agent_from_outside_is_answered_in_its_dialect(toy):
    toy.ok("add", "Carts are kept in the Valkey cluster of the shop.", "--kind", "decision")
    begun = json.dumps({"talk": "t1", "folder": str(toy.project)})
    answer = json.loads(toy.ok("hook", "session-start", "--host", "toy", given=begun))
    assert "Valkey cluster" in answer["toy"]["say"]


@pytest.fixture
def vectors(machine):
    """Install an embedder and select it."""

    def install(code):
        value = "bethink_toy_vectors:PROVIDER"
        machine.install("bethink.embedders", "toy", value, code)
        machine.environment["BETHINK_EMBEDDING"] = "toy"
        return machine

    return install


def find_model(machine):
    found = json.loads(machine.run("doctor", "--json").stdout)
    return next(one["message"] for one in found if one["check"] == "model")


def test_an_embedder_from_outside_embeds(vectors):
    machine = vectors(WALK_THROUGHS["bethink_toy_vectors"])
    machine.ok("add", "Tea is sold in tins.")
    found = json.loads(machine.ok("search", "tea tins", "--mode", "vector", "--json"))
    assert "Tea is sold in tins." in json.dumps(found)


def test_an_embedder_that_says_it_is_local_is_local(vectors):
    assert "remote" not in find_model(vectors(WALK_THROUGHS["bethink_toy_vectors"]))


def test_an_embedder_that_does_not_say_counts_as_remote(vectors):
    assert "(remote" in find_model(vectors(SILENT))


def test_choosing_an_embedder_of_this_process_says_nothing_of_sending(vectors):
    machine = vectors(WALK_THROUGHS["bethink_toy_vectors"])
    assert "sends" not in machine.run("config", "embedding", "toy").stderr


def test_an_embedder_that_raises_leaves_search_by_words(vectors):
    machine = vectors(RAISING)
    machine.ok("add", "Tea is sold in tins.")
    assert "Tea is sold in tins." in machine.ok("search", "tea tins")


def test_an_importer_from_outside_imports(machine):
    machine.install("bethink.importers", "toy", "bethink_toy_notes:IMPORTER", IMPORTER)
    (machine.project / "notes.toy").write_text("The printer is called Gutenberg.\n")
    machine.ok("import", "notes.toy")
    assert "Gutenberg" in machine.ok("search", "printer")


def test_a_broken_plugin_breaks_no_command(machine):
    machine.install("bethink.agents", "broken", "bethink_broken:AGENT", "import nothing_at_all")
    (machine.home / ".claude").mkdir()
    machine.ok("install", "--dry-run", "--no-mcp")


def test_a_command_warns_of_a_broken_plugin_by_its_name(machine):
    machine.install("bethink.agents", "broken", "bethink_broken:AGENT", "import nothing_at_all")
    (machine.home / ".claude").mkdir()
    done = machine.run("install", "--dry-run", "--no-mcp")
    assert re.search(r"warning: .*'broken' of bethink_broken.*nothing_at_all", done.stderr)


def test_doctor_reports_a_broken_plugin(machine):
    machine.install("bethink.agents", "broken", "bethink_broken:AGENT", "import nothing_at_all")
    found = json.loads(machine.run("doctor", "--json").stdout)
    (finding,) = [one for one in found if one["check"] == "plugin broken"]
    assert not finding["ok"]


def test_a_package_cannot_replace_an_agent_of_ours(machine):
    code = WALK_THROUGHS["bethink_toy"].replace('name="toy"', 'name="claude"')
    machine.install("bethink.agents", "claude", "bethink_toy:AGENT", code)
    (machine.home / ".claude").mkdir()
    assert "Claude Code" in machine.ok("install", "--dry-run", "--no-mcp")


def test_a_hook_of_our_agents_looks_at_no_installed_package():
    code = (
        "import sys; from bethink import plugins; plugins.AGENTS.find('claude');"
        "print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_language_model_from_outside_reads_sessions(machine):
    machine.install("bethink.language_models", "toy", "bethink_toy_parrot:PROVIDER", LANGUAGE_MODEL)
    assert "toy parrot: it answered" in machine.ok("config", "reader", "toy")


def test_a_language_model_from_outside_is_offered(machine):
    machine.install("bethink.language_models", "toy", "bethink_toy_parrot:PROVIDER", LANGUAGE_MODEL)
    assert "toy, ollama:MODEL" in machine.run("config", "reader", "unknown").stderr


REMOTE = """
from bethink.embed import EmbeddingProvider
from bethink.errors import EmbeddingError
from bethink.post import Endpoint


class Feather:
    model, destination = "feather-1", "feather.example"

    def __init__(self):
        self.endpoint = Endpoint(
            "", "http://127.0.0.1:9/v1", "/vectors", ("FEATHER_KEY",), "", 5, self.fail
        )

    def fail(self, message, hint, kind):
        return EmbeddingError(message, hint)

    def documents(self, texts):
        return [self.endpoint.ask(texts, {})]

    def query(self, text):
        return self.endpoint.ask([text], {})


PROVIDER = EmbeddingProvider("feather", lambda config: Feather())
"""


@pytest.fixture
def feather(machine):
    """A machine with a remote embedding provider from outside, which is not chosen yet."""
    machine.install("bethink.embedders", "feather", "bethink_feather:PROVIDER", REMOTE)
    del machine.environment["BETHINK_EMBEDDING"]
    return machine


def test_choosing_a_remote_model_says_what_is_sent_and_where(feather):
    said = feather.run("config", "embedding", "feather").stderr
    assert "remote" in said and "to feather.example" in said and "turns of conversations" in said


@pytest.mark.parametrize("command", [["config"], ["config", "embedding"]], ids=" ".join)
def test_config_says_that_text_is_sent_away(feather, command):
    feather.ok("config", "embedding", "feather")
    assert "to feather.example" in feather.run(*command).stderr


def test_choosing_a_language_model_says_that_sessions_are_sent(machine):
    said = machine.run("config", "llm", "anthropic").stderr
    assert "Each session is sent to the language model anthropic" in said


def test_doctor_says_where_text_is_sent(feather):
    feather.ok("config", "embedding", "feather")
    assert "are sent to feather.example" in feather.run("doctor").stdout


def test_the_endpoint_of_a_plugin_names_no_setting_of_ours(feather):
    feather.ok("config", "embedding", "feather")
    told = feather.run("search", "owls", "--mode", "vector").stderr
    assert "Is the server running?" in told and "embedding_url" not in told


@pytest.mark.parametrize("name", ["none", "hashing"])
def test_a_model_of_this_process_is_not_announced_as_remote(machine, name):
    del machine.environment["BETHINK_EMBEDDING"]
    assert "remote" not in machine.run("config", "embedding", name).stderr


@pytest.fixture
def with_signal(machine):
    machine.install(
        "bethink.signals", "pinned", "bethink_pinned:SIGNAL", WALK_THROUGHS["bethink_pinned"]
    )
    machine.ok("add", "The shop sells an owl.", "--tags", "pinned")
    return machine


def test_a_ranking_signal_that_the_settings_name_is_explained(with_signal):
    with_signal.ok("config", "signals", "pinned")
    assert "tagged as pinned" in with_signal.ok("search", "shop owl", "--explain")


def test_a_ranking_signal_that_the_settings_do_not_name_is_not_used(with_signal):
    assert "tagged as pinned" not in with_signal.ok("search", "shop owl", "--explain")


def test_a_search_says_that_a_ranking_signal_is_not_installed(machine):
    machine.ok("add", "The shop sells a toy owl.")
    machine.environment["BETHINK_SIGNALS"] = "gone"
    told = machine.run("search", "shop owl").stderr
    assert "No installed package has the ranking signal 'gone'" in told


def test_a_ranking_signal_that_is_not_installed_is_refused(with_signal):
    done = with_signal.run("config", "signals", "pined")
    assert done.returncode != 0 and "ranking signal 'pined'" in done.stderr
    assert "pinned" in done.stderr.partition("hint:")[2]


def test_doctor_reports_a_ranking_signal_that_is_not_installed(machine):
    machine.environment["BETHINK_SIGNALS"] = "gone"
    done = machine.run("doctor")
    assert "No installed package has the ranking signal 'gone'" in done.stdout
    assert "bethink config signals" in done.stdout and done.returncode == 1


READER = """
from bethink.ingest.formats import Reader

READER = Reader("toy", (".toy",), lambda text: text.replace("%%", "#"))
"""


def test_a_reader_from_outside_reads_documents(machine):
    machine.install("bethink.readers", "toy", "bethink_toy_format:READER", READER)
    (machine.project / "docs").mkdir()
    (machine.project / "docs" / "guide.toy").write_text(
        "%% Printers\n\nOurs is called Gutenberg.\n"
    )
    machine.ok("index")
    assert "Gutenberg" in machine.ok("search", "printers")
