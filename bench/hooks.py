"""How long hooks take as cold processes, against `python3 -c "import sqlite3"`; and with `--quality` whether what they add to prompts is right.

    python bench/hooks.py [--install] [--runs 21] [--memories 10000] [--json]
    python bench/hooks.py --quality SET … [--database FILE --scope KEY] [--unrelated FILE] [--sample 50] [--meaning] [--json]

Speed: every hook is started as its host does, in turns with the bare interpreter; medians count. The limits are three times the
interpreter's and 60 ms for the start of a session and for a prompt, twice and 40 ms for the others.

Quality: the questions of an evaluation set are prompts that should get a memory of the right session or document; prompts from a file,
a line each, should get nothing. `--database` takes a prepared database instead of loading the set's texts.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import fill, machine, made, table, told
from startup import installed
from texts import Teller

from bethink.api import Bethink
from bethink.config import Config
from bethink.hooks import prompt, spool, state
from bethink.model import Passage, Source
from bethink.recall.shape import tokens

UNRELATED = Path(__file__).parent.parent / "tests" / "fixtures" / "hooks" / "unrelated.txt"
PROMPT = "why did the nightly cache of the payment service fail, and which gateway retries it?"
# Event → how many times the bare interpreter, and how many milliseconds more, it may take.
LIMITS = {
    "session-start": (3, 60),
    "prompt": (3, 60),
    "prompt, unrelated": (3, 60),
    "stop": (2, 40),
    "session-end": (2, 40),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--install",
        action="store_true",
        help="measure a real install in a temporary virtual environment",
    )
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--quality", nargs="+", type=Path, metavar="SET")
    parser.add_argument(
        "--database", type=Path, help="a prepared database of the one set that is given"
    )
    parser.add_argument("--scope", help="the scope in it")
    parser.add_argument("--unrelated", type=Path, default=UNRELATED)
    parser.add_argument("--sample", type=int, default=50)
    parser.add_argument(
        "--meaning",
        action="store_true",
        help="weigh by meaning too, with the embedding model and the judge",
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result = {"machine": machine(), **(quality(args) if args.quality else speed(args))}
    if args.json:
        print(json.dumps(result, indent=1))


# Speed


def speed(args: argparse.Namespace) -> dict:
    with tempfile.TemporaryDirectory(prefix="bethink-bench-") as temporary:
        folder = Path(temporary)
        project, home = folder / "project", folder / "home"
        (project / ".git").mkdir(parents=True)
        (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        environment = {**os.environ, "BETHINK_HOME": str(home), "BETHINK_EMBEDDING": "none"}
        os.environ.update(environment)
        python, command = sys.executable, [sys.executable, "-m", "bethink"]
        if args.install:
            found, command = installed(folder / "venv")
            python = str(found)
            environment.pop("PYTHONPATH", None)
        filled(project, args.memories)
        transcript = folder / "session.jsonl"
        transcript.write_text(
            line("user", "Why is the cache slow?")
            + line("assistant", "Because every request misses it.")
        )
        said = {"cwd": str(project), "transcript_path": str(transcript), "session_id": "bench"}
        ways = {
            "import sqlite3": ([python, "-c", "import sqlite3"], b""),
            "session-start": (
                [*command, "hook", "session-start", "--host", "claude"],
                {**said, "source": "startup"},
            ),
            "prompt": (
                [*command, "hook", "prompt", "--host", "claude"],
                {**said, "session_id": "", "transcript_path": "", "prompt": PROMPT},
            ),
            "prompt, unrelated": (
                [*command, "hook", "prompt", "--host", "claude"],
                {**said, "prompt": "write a haiku about autumn"},
            ),
            "stop": ([*command, "hook", "stop", "--host", "claude"], said),
            "session-end": (
                [*command, "hook", "session-end", "--host", "claude"],
                {**said, "reason": "other"},
            ),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(args.runs + 1):
            for name, (words, message) in ways.items():
                spent, printed = started(
                    words,
                    environment,
                    message if isinstance(message, bytes) else json.dumps(message).encode(),
                )
                if bool(printed) != (name in ("session-start", "prompt")):
                    sys.exit(f"{name} printed {printed[:200]!r}")
                if number:  # the first fills the file cache and writes bytecode
                    times[name].append(spent)
                settle()
    base = statistics.median(times["import sqlite3"])
    rows = []
    for name, each in times.items():
        limit = None if name not in LIMITS else LIMITS[name][0] * base + LIMITS[name][1]
        median = statistics.median(each)
        rows.append(
            (
                name,
                min(each),
                median,
                median / base,
                limit or "",
                "" if limit is None else "yes" if median <= limit else "NO",
            )
        )
    table(
        [
            (
                "cold process" + (", installed" if args.install else ""),
                "best ms",
                "median ms",
                "÷",
                "limit ms",
                "within",
            ),
            *rows,
        ]
    )
    return {
        "ways": {
            name: {"best_ms": best, "median_ms": median, "limit_ms": limit}
            for name, best, median, _, limit, _ in rows
        }
    }


def filled(project: Path, count: int) -> None:
    told(f"writing {count:,} memories with made-up vectors")
    texts = Teller().memories(count)
    vectors, _ = made(count, 384, 1, np.random.default_rng(7))
    with Bethink(directory=project) as memory:
        fill(memory.store, memory.scope, texts, vectors, "made-up")


def line(role: str, text: str) -> str:
    return (
        json.dumps(
            {
                "type": role,
                "uuid": f"{role}-1",
                "sessionId": "bench",
                "message": {"role": role, "content": text},
            }
        )
        + "\n"
    )


def started(command: list[str], environment: dict[str, str], message: bytes) -> tuple[float, bytes]:
    begun = time.perf_counter()
    done = subprocess.run(command, env=environment, input=message, capture_output=True)
    spent = (time.perf_counter() - begun) * 1000
    if done.returncode or done.stderr:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.decode()}")
    return spent, done.stdout


def settle() -> None:
    """Waits for the worker that a hook may have started: it would disturb the next measure."""
    until = time.monotonic() + 30
    while spool.list_waiting() and time.monotonic() < until:
        time.sleep(0.02)


# Quality


class Looked(Bethink):
    """A memory that sees one scope, whatever directory it is opened in."""

    seen = ""

    @property
    def scope(self) -> str:
        return self.seen or super().scope


def quality(args: argparse.Namespace) -> dict:
    unrelated = [text for text in args.unrelated.read_text("utf-8").splitlines() if text.strip()]
    rows = []
    config = Config(embedding=Config().embedding if args.meaning else "none")
    for folder in args.quality:
        with tempfile.TemporaryDirectory(prefix="bethink-bench-") as temporary:
            os.environ.setdefault("BETHINK_HOME", temporary)
            memory = Looked(
                args.database or Path(temporary) / "bench.db", directory=temporary, config=config
            )
            memory.seen = args.scope or ""
            if not args.database:
                load(memory, folder)
            with (folder / "queries.jsonl").open(encoding="utf-8") as stream:
                queries = list(map(json.loads, stream))
            found = [judged(memory, one, args.meaning) for one in queries]
            nothing = [given(memory, text, args.meaning) for text in unrelated]
            memory.close()
        sample = random.Random(7).sample(found, min(args.sample, len(found)))
        few = random.Random(7).sample(nothing, min(args.sample, len(nothing)))
        rows += [
            (
                folder.name,
                "questions: right memory told",
                f"{sum(right for right, _ in sample)}/{len(sample)}",
                share(right for right, _ in found),
            ),
            (
                folder.name,
                "questions: anything told",
                f"{sum(size > 0 for _, size in sample)}/{len(sample)}",
                share(size > 0 for _, size in found),
            ),
            (
                folder.name,
                "unrelated: nothing told",
                f"{sum(not one.text for one in few)}/{len(few)}",
                share(not one.text for one in nothing),
            ),
            (folder.name, "tokens, most", "", max([size for _, size in found] + [0])),
            (
                folder.name,
                "tokens, of those told",
                "",
                statistics.mean([size for _, size in found if size] or [0]),
            ),
        ]
        for text, one in zip(unrelated, nothing, strict=True):
            if one.text:
                told(f"told though unrelated: {text}")
    table([("set", "measure", f"of {args.sample}", "of all"), *rows])
    return {
        "sets": [dict(zip(("set", "measure", "sample", "all"), row, strict=True)) for row in rows]
    }


def share(values) -> float:
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def load(memory: Bethink, folder: Path) -> None:
    told(f"{folder.name}: loading")
    groups: dict[str, list[Passage]] = {}
    with (folder / "corpus.jsonl").open(encoding="utf-8") as stream:
        for at, row in enumerate(map(json.loads, stream)):
            session = str(row.get("session") or f"document-{at}")
            held = groups.setdefault(session, [])
            held.append(
                Passage(
                    row["text"],
                    kind="context",
                    session=session,
                    position=len(held),
                    metadata={"document": row["id"]},
                )
            )
    for session, passages in groups.items():
        memory.ingest([(Source(session, "transcript"), passages)], replace_sources=False)


def given(memory: Bethink, text: str, meaning: bool) -> prompt.Context:
    return prompt.recall_for_prompt(state.Hook("prompt", "claude", prompt=text), memory, meaning)


def judged(memory: Bethink, question: dict, meaning: bool) -> tuple[bool, int]:
    """Whether what is told to a question holds what is relevant, and its tokens."""
    answer = given(memory, question["query"], meaning)
    wanted = set(question.get("relevant_sessions") or question.get("relevant") or ())
    found = memory.store.get(list(answer.ids))
    right = any(one.session in wanted or one.metadata.get("document") in wanted for one in found)
    return right, tokens(answer.text) if answer.text else 0


if __name__ == "__main__":
    main()
