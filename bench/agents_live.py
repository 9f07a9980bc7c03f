"""Memory that works without being asked, proven in the real agents: real programs, offline, their model played by a script.

    python bench/agents_live.py HARNESS [--hosts claude,codex] [--ways install,plugin,warm] [--folder DIR] [--json]

HARNESS is a program that runs an agent headless against a fake of its model's API and keeps every request:
`HARNESS run HOST --home DIR --project DIR --out DIR --script FILE [--plugin-dir DIR] [--linger S] [--env K=V] PROMPT`.
Bethink is taken from beside this Python, so it must be installed there (`pip install -e '.[mcp]'`). Each agent gets a HOME of its own.
With BETHINK_MODEL_DIR, a folder with the embedding model, everything runs with it and the judge; without, by hashing, which knows no preferences.

In each host, set up by `bethink install`, by the plugin, and in Claude Code with prompts answered by the MCP server (`warm`):

    briefing    what was decided earlier stands in the first request of a session
    match       a prompt about something that is known brings it along; it is not in the briefing
    nothing     a greeting brings nothing beyond the briefing
    searchable  after the session its turns are found, and no process is left
    second      a second session is briefed on what the first one decided
    clean       nothing that was injected was learned again
    skill       /remember answers from `bethink recall` (Claude Code), or the skills are listed
    server      the model's call of search_memories is answered by the MCP server
    elsewhere   how the user wants to work, stated in one project, is shown in another, and what was decided in the first is not
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLUGIN = HERE.parent / "plugins" / "bethink"
BETHINK = Path(sys.executable).parent / "bethink"
PLUGINS = ("claude", "codex", "copilot")
HOSTS = (*PLUGINS, "opencode", "gemini")
PROPERTIES = (
    "briefing",
    "match",
    "nothing",
    "searchable",
    "second",
    "clean",
    "skill",
    "server",
    "elsewhere",
)
MARK = "<bethink-memory "
MODELS = os.environ.get("BETHINK_MODEL_DIR")
SETTINGS = {"BETHINK_OFFLINE": "1", **({"BETHINK_MODEL_DIR": MODELS} if MODELS else {})}

DECISION = "We keep sessions in Valkey because Redis changed its licence"
FACT = "The staging database listens on port 6543 and is rebuilt every Sunday night"
ASKED = "Which port does the staging database listen on?"
GREETING = "hello, how are you today?"
DECIDED = "We decided to rename the billing service to Ledgerline, because two teams kept confusing it with the invoice mailer."
AGAIN = "What did we decide about the name of the billing service?"
PREFERRED = "Always run the linter before you commit."
WAIT = 60.0  # seconds until the worker must be done


class Live:
    """One host, set up in one way, in a folder of its own."""

    def __init__(self, harness: str, host: str, way: str, folder: Path) -> None:
        self.harness, self.host, self.way = harness, host, way
        self.folder = folder / f"{host}-{way}"
        self.home, self.project = self.folder / "home", self.folder / "shop"
        self.other = self.folder / "warehouse"
        self.run_number = 0
        self.seconds: list[float] = []
        self.home.mkdir(parents=True)
        for made in (self.project, self.other):
            subprocess.run(["git", "init", "-q", "-b", "main", str(made)], check=True)
        if not MODELS:
            self.bethink("config", "embedding", "hashing")
        self.bethink("add", DECISION, "--kind", "decision")
        self.bethink("add", FACT, "--kind", "fact", "--importance", "3")
        if way != "plugin":
            self.bethink("install", f"--{host}", *(["--warm"] if way == "warm" else []))

    def bethink(self, *words: str) -> str:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("BETHINK_", "XDG_", "CLAUDE", "CODEX"))
        }
        environment |= {"HOME": str(self.home), **SETTINGS}
        done = subprocess.run(
            [str(BETHINK), *words],
            env=environment,
            cwd=self.project,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )
        if done.returncode:
            raise SystemExit(
                f"{self.host}, {self.way}: bethink {' '.join(words)} failed:\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def session(self, prompt: str, *rules: dict, project: Path | None = None) -> list[dict]:
        """One headless session. Returns the model requests that it made."""
        self.run_number += 1
        out, script = (
            self.folder / f"out{self.run_number}",
            self.folder / f"script{self.run_number}.json",
        )
        script.write_text(json.dumps(list(rules)))
        command = [
            self.harness,
            "run",
            self.host,
            "--home",
            self.home,
            "--project",
            project or self.project,
            "--out",
            out,
            "--script",
            script,
        ]
        command += ["--linger", "30"]
        for name, value in SETTINGS.items():
            command += ["--env", f"{name}={value}"]
        if self.way == "plugin":
            command += ["--plugin-dir", PLUGIN]
        environment = {**os.environ, "PATH": f"{BETHINK.parent}:{os.environ['PATH']}"}
        subprocess.run(
            [*map(str, command), prompt],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        result = json.loads((out / "result.json").read_text())
        self.seconds.append(result["seconds"])
        if result["exit_code"]:
            raise SystemExit(
                f"{self.host}, {self.way}: the host ended with {result['exit_code']}; see {out}"
            )
        self.left = result.get("killed") or []
        self.transcripts = result.get("transcripts") or []
        return [json.loads(file.read_text()) for file in sorted(out.glob("req-*.json"))]

    # The properties

    def all(self) -> dict[str, str]:
        found: dict[str, str] = {}
        first = self.session(
            ASKED,
            {
                "when": {"last_user_contains": "staging database", "has_tool": "*"},
                "reply": [{"text": f"It is 6543. {DECIDED}"}],
            },
        )
        context = injected(first, ASKED)
        found["briefing"] = log("Valkey" in context)
        found["match"] = log("6543" in context)
        found["searchable"] = self.searchable()
        greeted = injected(self.session(GREETING), GREETING)
        found["nothing"] = log(
            "Valkey" in greeted and "6543" not in greeted and greeted.count(MARK) == 1
        )
        found["second"] = log("Ledgerline" in injected(self.session(AGAIN), AGAIN))
        found["skill"] = self.skill()
        found["server"] = self.server()
        found["clean"] = self.clean()
        found["elsewhere"] = self.elsewhere()
        return found

    def searchable(self) -> str:
        if self.left:
            return f"NO: left running {self.left}"
        return log(self.learned("Ledgerline billing service", "Ledgerline"))

    def learned(self, words: str, part: str) -> bool:
        """Whether the worker, given its time, made this findable."""
        started, found = time.monotonic(), False
        while time.monotonic() - started < WAIT and not found:
            found = any(part in hit["content"] for hit in self.search(words))
            time.sleep(0 if found else 0.5)
        return found

    def search(self, words: str) -> list[dict]:
        return json.loads(
            self.bethink("search", words, "--mode", "keyword", "--limit", "50", "--json")
        )

    def clean(self) -> str:
        """The seeds are in memory once each; a skill's own examples, the briefing, and what was answered from memory are not."""
        wrong = [
            hit["content"][:60]
            for hit in self.search("staging database port 6543 Sunday")
            if "Sunday" in hit["content"]
        ][1:]
        wrong += [
            hit["content"][:60]
            for hit in self.search("Valkey licence Redis changed")
            if "changed its licence" in hit["content"]
        ][1:]
        wrong += [
            hit["content"][:60]
            for hit in self.search("bethink recall QUESTION MySQL")
            if "MySQL" in hit["content"]
        ]
        wrong += [
            hit["content"][:60]
            for hit in self.search("says the marmot")
            if "marmot" in hit["content"]
        ]
        return log(not wrong) + "".join(f" {text!r}" for text in wrong[:1])

    def skill(self) -> str:
        if self.host != "claude":
            return log(
                any(
                    "before an investigation that may have been made already" in body(one)
                    for one in self.session("list your skills")
                )
            )
        name = "/bethink:remember" if self.way == "plugin" else "/remember"
        command = f"bethink recall - --max-tokens 2000 <<'QUESTION'\n{ASKED}\nQUESTION"
        rules = [
            {
                "when": {"contains": "# Answer from memory", "after_tool_result": False},
                "reply": [{"tool": "Bash", "input": {"command": command}}],
            },
            {
                "when": {"after_tool_result": True},
                "reply": [
                    {"text": "From memory: the staging database is on 6543, says the marmot."}
                ],
            },
        ]
        requests = self.session(f"{name} {ASKED}", *rules)
        return log(
            any(MARK in results(one["body"]) and "6543" in results(one["body"]) for one in requests)
        )

    def server(self) -> str:
        rules = [
            {
                "when": {"last_user_contains": "search", "after_tool_result": False},
                "reply": [{"tool": "*search_memories", "input": {"query": ASKED}}],
            },
            {"when": {"after_tool_result": True}, "reply": [{"text": "Found."}]},
        ]
        if self.host == "codex":  # its first turn may begin before servers are ready
            rules.insert(
                0,
                {
                    "when": {"turn": 1},
                    "reply": [{"tool": "exec_command", "input": {"cmd": "sleep 6"}}],
                },
            )
            rules[1]["when"] = {"turn": 2}
        requests = self.session("please search", *rules)
        return log(any("6543" in results(one["body"]) for one in requests))

    def elsewhere(self) -> str:
        if not MODELS:
            return "no model"
        self.session(PREFERRED)
        if not self.learned("run the linter before commit", "linter"):
            return "NO: not learned"
        context = injected(self.session(GREETING, project=self.other), GREETING)
        return log("linter" in context and "Valkey" not in context)


def log(good: bool) -> str:
    return "yes" if good else "NO"


def body(request: dict) -> str:
    """Return the text that the model receives; Gemini CLI writes marks of hooks as entities."""
    return json.dumps(request["body"], ensure_ascii=False).replace("&lt;", "<").replace("&gt;", ">")


def results(value: object) -> str:
    """What tools gave the model, in the form of any of the APIs."""
    if isinstance(value, list):
        return "".join(map(results, value))
    if not isinstance(value, dict):
        return ""
    if (
        value.get("type") in ("tool_result", "function_call_output")
        or value.get("role") == "tool"
        or "functionResponse" in value
    ):
        return json.dumps(value, ensure_ascii=False)
    return "".join(map(results, value.values()))


def injected(requests: list[dict], prompt: str) -> str:
    """What Bethink added to the first request that has the prompt. Requests without tools are for titles and the like."""
    text = next(
        (
            body(one)
            for one in requests
            if one["view"]["tools"] and prompt in body(one).replace('\\"', '"')
        ),
        "",
    )
    parts = []
    while (start := text.find(MARK)) >= 0:
        end = text.find("</bethink-memory", start)
        parts.append(text[start : end if end >= 0 else None])
        text = text[end:] if end >= 0 else ""
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("harness")
    parser.add_argument("--hosts", default=",".join(HOSTS))
    parser.add_argument("--ways", default="install,plugin,warm")
    parser.add_argument("--folder", type=Path, help="keep everything here")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not BETHINK.exists():
        raise SystemExit(f"There is no {BETHINK}: pip install -e '.[mcp]'")
    folder = args.folder or Path(tempfile.mkdtemp(prefix="bethink-live-"))
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for host in args.hosts.split(","):
        for way in args.ways.split(","):
            if (way == "plugin" and host not in PLUGINS) or (way == "warm" and host != "claude"):
                continue
            shutil.rmtree(folder / f"{host}-{way}", ignore_errors=True)
            live = Live(args.harness, host, way, folder)
            found = live.all()
            rows.append(
                {
                    "host": host,
                    "way": way,
                    **{name: found[name] for name in PROPERTIES},
                    "seconds": round(sum(live.seconds), 1),
                }
            )
            print(json.dumps(rows[-1]) if args.json else line(rows[-1], len(rows) == 1), flush=True)
    if not args.folder:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if any(row[name].startswith("NO") for row in rows for name in PROPERTIES) else 0


def line(row: dict, first: bool) -> str:
    names = ("host", "way", *PROPERTIES, "seconds")
    head = f"| {' | '.join(names)} |\n|{'---|' * len(names)}\n" if first else ""
    return f"{head}| {' | '.join(str(row[name]) for name in names)} |"


if __name__ == "__main__":
    sys.exit(main())
