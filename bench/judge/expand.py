"""Plain pairs out of plain statements: `subjects/*.txt` → `pairs/plain.jsonl` and `plain-held.jsonl`.

    python bench/judge/expand.py

A block is one subject: s a statement, p the same in other words, r what replaces it, f what refines it, n neighbours that are
about something else, q a question that all but the neighbours answer, d a to-do, e what completes it. Every fifth
subject is only measured, never trained on.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
HELD = 5  # every fifth subject
STRANGERS = 4  # pairs with another subject's statements, for each subject


def read_subjects() -> list[dict[str, list[str]]]:
    found = []
    for path in sorted((HERE / "subjects").glob("*.txt")):
        for block in path.read_text("utf-8").strip().split("\n\n"):
            subject: dict[str, list[str]] = {}
            for line in block.splitlines():
                subject.setdefault(line[0], []).append(line[2:].strip())
            found.append(subject)
    return found


def pair_up(
    subject: dict[str, list[str]], others: list[dict[str, list[str]]]
) -> list[tuple[str, str, str]]:
    """(old, new, relation) of one subject."""
    (said,), (again,), (asked,) = subject["s"], subject["p"], subject["q"]
    (todo,), (done,), near = subject["d"], subject["e"], subject["n"]
    replaced, refined = subject.get("r", []), subject.get("f", [])
    question = said.endswith("?")
    pairs = [(said, again, "same"), (again, said, "same"), (todo, done, "completes")]
    for text in replaced:
        pairs += [(said, text, "replaces"), (again, text, "replaces"), (text, said, "replaces")]
    for text in refined:
        pairs += [(said, text, "refines"), (again, text, "refines")]
    for text in near:
        later = random.choice([said, again, *replaced, *refined])
        pairs += [(old, text, "unrelated") for old in (said, asked, todo)]
        pairs.append((text, later, "unrelated"))
    if question:
        pairs += [(said, done, "answers"), (again, done, "answers")]
    else:
        pairs += [(asked, text, "answers") for text in (said, again, *replaced, *refined)]
        pairs.append((todo, random.choice([said, again]), "unrelated"))
    for _ in range(STRANGERS):
        other = random.choice(others)
        old = random.choice([said, again, asked, todo, *near])
        new = random.choice([*other["s"], *other["p"], *other["n"], *other["e"]])
        pairs.append((old, new, "unrelated"))
    return pairs


def main() -> None:
    random.seed(11)
    subjects = read_subjects()
    files: dict[str, list[str]] = {"pairs/plain.jsonl": [], "plain-held.jsonl": []}
    count: Counter[str] = Counter()
    for number, subject in enumerate(subjects):
        others = subjects[:number] + subjects[number + 1 :]
        name = "plain-held.jsonl" if number % HELD == HELD - 1 else "pairs/plain.jsonl"
        for old, new, relation in pair_up(subject, others):
            count[relation] += 1
            row = {"old": old, "new": new, "relation": relation, "question": subject["q"][0]}
            files[name].append(json.dumps(row, ensure_ascii=False))
    for name, lines in files.items():
        (HERE / name).write_text("\n".join(lines) + "\n", "utf-8")
    print(len(subjects), "subjects", dict(count))


if __name__ == "__main__":
    main()
