"""Questions and notes in different languages, through the front door: is the right note the first hit?

    python bench/languages.py            # English notes asked in eight languages, and the other way round
    python bench/languages.py --show     # also the questions that fail

20 notes about one imaginary project, each with a question that shares few words with it, in eight languages (`data/languages.jsonl`,
written for this purpose). A control that guesses gets .05.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from common import log, machine, table

from bethink import Bethink

DATA = Path(__file__).parent / "data" / "languages.jsonl"
ENGLISH = "en"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print the questions that fail")
    args = parser.parse_args()
    machine()
    rows = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]
    languages = list(rows[0]["note"])
    found = [("language", "English notes", "English questions", "both")]
    for language in languages:
        shares = [
            measure(rows, notes, asks, args.show)
            for notes, asks in ((ENGLISH, language), (language, ENGLISH), (language, language))
        ]
        found.append((language, *shares))
    table(found)


def measure(rows: list[dict], notes: str, asks: str, show: bool) -> float:
    """Return the share of questions whose own note is the first hit."""
    with tempfile.TemporaryDirectory(prefix="bethink-languages-") as folder:
        os.environ["BETHINK_HOME"] = folder
        (Path(folder) / "project" / ".git").mkdir(parents=True)
        with Bethink(directory=Path(folder) / "project") as memory:
            for row in rows:
                memory.add(row["note"][notes])
            right = 0
            for row in rows:
                hits = memory.search(row["ask"][asks]).hits
                first = hits[0].memory.content if hits else ""
                right += first == row["note"][notes]
                if show and first != row["note"][notes]:
                    log(f"{asks} → {notes}: {row['ask'][asks]}\n    got {first}")
    return right / len(rows)


if __name__ == "__main__":
    sys.exit(main())
