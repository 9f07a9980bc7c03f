"""Quality of prompt recall on evaluation sets, through the hook's own code.

    python bench/prompts.py SET … [--database FILE --scope KEY] [--unrelated FILE] [--sample 50] [--meaning] [--json]

The questions of an evaluation set are prompts that should get a memory of the right session or document; prompts from a file, one per
line, should get nothing. `--database` takes a prepared database instead of loading the set's texts; `--meaning` also weighs by meaning,
with the embedding model and the judge.
"""

import argparse
import json
import os
import random
import statistics
import tempfile
from pathlib import Path

from common import log, machine, table

from bethink.api import Bethink
from bethink.config import Config
from bethink.hooks import prompt, state
from bethink.model import Passage, Source
from bethink.recall.shape import tokens

UNRELATED = Path(__file__).parent.parent / "tests" / "fixtures" / "hooks" / "unrelated.txt"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET")
    parser.add_argument("--database", type=Path, help="a prepared database of the one set")
    parser.add_argument("--scope", help="the scope in it")
    parser.add_argument("--unrelated", type=Path, default=UNRELATED)
    parser.add_argument("--sample", type=int, default=50)
    parser.add_argument("--meaning", action="store_true", help="also use the models")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result = {"machine": machine(), **quality(args)}
    if args.json:
        print(json.dumps(result, indent=1))


class OneScope(Bethink):
    """A memory that sees one scope, whatever directory it is opened in."""

    own_scope = ""

    @property
    def scope(self) -> str:
        return self.own_scope or super().scope


def quality(args: argparse.Namespace) -> dict:
    unrelated = [text for text in args.unrelated.read_text("utf-8").splitlines() if text.strip()]
    rows = []
    config = Config(embedding=Config().embedding if args.meaning else "none")
    for folder in args.sets:
        with tempfile.TemporaryDirectory(prefix="bethink-bench-") as temporary:
            os.environ.setdefault("BETHINK_HOME", temporary)
            memory = OneScope(
                args.database or Path(temporary) / "bench.db", directory=temporary, config=config
            )
            memory.own_scope = args.scope or ""
            if not args.database:
                load(memory, folder)
            with (folder / "queries.jsonl").open(encoding="utf-8") as stream:
                queries = list(map(json.loads, stream))
            found = [score(memory, one, args.meaning) for one in queries]
            nothing = [show(memory, text, args.meaning) for text in unrelated]
            memory.close()
        sample = random.Random(7).sample(found, min(args.sample, len(found)))
        few = random.Random(7).sample(nothing, min(args.sample, len(nothing)))
        rows += [
            (
                folder.name,
                "questions: right memory shown",
                f"{sum(right for right, _ in sample)}/{len(sample)}",
                share(right for right, _ in found),
            ),
            (
                folder.name,
                "questions: anything shown",
                f"{sum(size > 0 for _, size in sample)}/{len(sample)}",
                share(size > 0 for _, size in found),
            ),
            (
                folder.name,
                "unrelated: nothing shown",
                f"{sum(not one.text for one in few)}/{len(few)}",
                share(not one.text for one in nothing),
            ),
            (folder.name, "tokens, most", "", max([size for _, size in found] + [0])),
            (
                folder.name,
                "tokens, where something is shown",
                "",
                statistics.mean([size for _, size in found if size] or [0]),
            ),
        ]
        for text, one in zip(unrelated, nothing, strict=True):
            if one.text:
                log(f"shown though unrelated: {text}")
    table([("set", "measure", f"of {args.sample}", "of all"), *rows])
    return {
        "sets": [dict(zip(("set", "measure", "sample", "all"), row, strict=True)) for row in rows]
    }


def share(values) -> float:
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def load(memory: Bethink, folder: Path) -> None:
    log(f"{folder.name}: loading")
    groups: dict[str, list[Passage]] = {}
    with (folder / "corpus.jsonl").open(encoding="utf-8") as stream:
        for at, row in enumerate(map(json.loads, stream)):
            session = str(row.get("session") or f"document-{at}")
            passages_so_far = groups.setdefault(session, [])
            passages_so_far.append(
                Passage(
                    row["text"],
                    kind="context",
                    session=session,
                    position=len(passages_so_far),
                    metadata={"document": row["id"]},
                )
            )
    for session, passages in groups.items():
        memory.ingest([(Source(session, "transcript"), passages)], replace_sources=False)


def show(memory: Bethink, text: str, meaning: bool) -> prompt.Context:
    return prompt.recall_for_prompt(state.Hook("prompt", "claude", prompt=text), memory, meaning)


def score(memory: Bethink, question: dict, meaning: bool) -> tuple[bool, int]:
    """Return whether the memories shown for a question include a relevant one, and their tokens."""
    answer = show(memory, question["query"], meaning)
    wanted = set(question.get("relevant_sessions") or question.get("relevant") or ())
    found = memory.store.get(list(answer.ids))
    right = any(one.session in wanted or one.metadata.get("document") in wanted for one in found)
    return right, tokens(answer.text) if answer.text else 0


if __name__ == "__main__":
    main()
