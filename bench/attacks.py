"""Try thousands of generated attacks and print their rates: `make attacks`.

`tests/attack_cases.py` makes the cases. With --write the table goes into docs/concepts/privacy.md.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from attack_cases import Tried, choose, choose_fresh, run  # noqa: E402
from attack_world import WAYS, settle  # noqa: E402

PAGE = ROOT / "docs" / "concepts" / "privacy.md"
BEGIN, END = "<!-- generated attacks -->\n", "<!-- /generated attacks -->"
HEAD = (
    "| way in | cases | kept | stored as your word | decision changed | forgotten | in the briefing as your word"
    " | at a prompt as your word |\n|---|---|---|---|---|---|---|---|"
)


def count(name: str, tried: Sequence[Tried]) -> str:
    """Return one row of the table."""
    found = [one.outcome for one in tried]
    numbers = (
        len(found),
        sum(one.trust is not None for one in found),
        sum(one.stored for one in found),
        sum(one.changed for one in found),
        sum(one.gone for one in found),
        sum(bool(one.briefed) for one in found),
        sum(bool(one.prompted) for one in found),
    )
    return f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500, help="rounds of ten cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, help="folder of the default embedding model")
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    asked = parser.parse_args(words)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, settle(Path(folder), asked.model) as world:
        tried = list(run(world, choose(asked.rounds, asked.seed)))
        fresh = list(run(world, choose_fresh()))
    rows = [count(way, [one for one in tried if one.round.way == way]) for way in WAYS]
    rows.append(count("**all of these**", tried))
    rows.append(count("forms by an author who had not read the guards, now", fresh))
    table = "\n".join([HEAD, *rows]) + "\n"
    print(table)
    wrong = [one for one in (*tried, *fresh) if one.wrongs]
    for one in wrong:
        print(one.describe())
    seconds = time.monotonic() - began
    print(f"{len(tried) + len(fresh):,} cases, {len(wrong)} of them wrong, in {seconds:.0f} s")
    if asked.write:
        page = PAGE.read_text("utf-8")
        before, behind = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text(before + BEGIN + table + END + behind, "utf-8")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
