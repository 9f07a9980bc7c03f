"""Questions and notes in different languages, through the front door: is the right note the first hit?

    python bench/languages.py            # English notes asked in eight languages, and the other way round
    python bench/languages.py --held     # another 40 notes in nine languages, on which nothing is tuned
    python bench/languages.py --show     # also the questions that fail
    python bench/languages.py --languages none   # control: the default model alone; with `--mode keyword`, words alone

20 notes about one imaginary project, each with a question that shares few words with it, in eight languages (`data/languages.jsonl`,
written for this purpose). A control that guesses gets .05, and .025 on the second set.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from common import log, machine, table

from bethink import Bethink

DATA = Path(__file__).parent / "data"
ENGLISH = "en"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print the questions that fail")
    parser.add_argument(
        "--held", action="store_true", help="the second set, on which nothing is tuned"
    )
    parser.add_argument("--mode", default=None, help="hybrid, vector or keyword")
    parser.add_argument("--languages", default="auto", help="the setting: auto, all or none")
    args = parser.parse_args()
    machine()
    os.environ["BETHINK_LANGUAGES"] = args.languages
    file = DATA / ("languages-held.jsonl" if args.held else "languages.jsonl")
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    languages = list(rows[0]["note"])
    found = [("language", "English notes", "English questions", "both")]
    for language in languages:
        shares = [
            measure(rows, notes, asks, args.show, args.mode)
            for notes, asks in ((ENGLISH, language), (language, ENGLISH), (language, language))
        ]
        found.append((language, *shares))
    table(found)


def measure(rows: list[dict], notes: str, asks: str, show: bool, mode: str | None) -> float:
    """Return the share of questions whose own note is the first hit."""
    with tempfile.TemporaryDirectory(prefix="bethink-languages-") as folder:
        os.environ["BETHINK_HOME"] = folder
        (Path(folder) / "project" / ".git").mkdir(parents=True)
        with Bethink(directory=Path(folder) / "project") as memory:
            for row in rows:
                memory.add(row["note"][notes])
            right = 0
            for row in rows:
                hits = memory.search(row["ask"][asks], mode=mode).hits
                first = hits[0].memory.content if hits else ""
                right += first == row["note"][notes]
                if show and first != row["note"][notes]:
                    log(f"{asks} → {notes}: {row['ask'][asks]}\n    got {first}")
    return right / len(rows)


if __name__ == "__main__":
    sys.exit(main())
