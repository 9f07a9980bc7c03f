"""Indexing a tree of documents against embedding the same passages alone; then a second run, and one changed file.

    python bench/indexing.py [--files 500] [--folder DIR] [--json]

Without a folder a tree of made-up Markdown is written. The embedder is given the very texts that indexing embeds, in the
same batches, in the same process, in turns with it.
"""

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

from common import machine, told
from texts import Teller

from bethink.api import Bethink
from bethink.features import knowledge
from bethink.ingest.pipeline import Recent
from bethink.store.places import embedded_text

SECTIONS, SENTENCES = 4, 9


def written(folder: Path, files: int) -> None:
    """A tree of documents: sections of a few paragraphs, some lists and fences."""
    sentences = iter(Teller(seed=3).memories(files * SECTIONS * SENTENCES))
    for number in range(files):
        lines = [f"# Page {number}", ""]
        for section in range(SECTIONS):
            part = [next(sentences) + "." for _ in range(SENTENCES)]
            lines += [
                f"## Part {section}",
                "",
                " ".join(part[:4]),
                "",
                *(f"- {text}" for text in part[4:]),
                "",
                "```sh",
                f"make part-{section}",
                "```",
                "",
            ]
        path = folder / f"area-{number % 20}" / f"page-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--folder", type=Path, help="a tree of Markdown files to copy and index")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    machine()
    with tempfile.TemporaryDirectory(prefix="bethink-bench-") as name:
        root = Path(name)
        docs = root / "docs"
        if args.folder:
            shutil.copytree(
                args.folder, docs, ignore=shutil.ignore_patterns("node_modules", ".git")
            )
        else:
            written(docs, args.files)
        with Bethink(root / "memory.db", directory=root) as memory:
            embedder = memory.embedder
            embedder.documents(["warm up"])
            told("indexing")
            started = time.perf_counter()
            first = knowledge.index(memory)
            indexing = time.perf_counter() - started
            texts = [embedded_text(one) for one in memory.export()]
            told(f"embedding {len(texts):,} passages alone")
            started = time.perf_counter()
            for at in range(0, len(texts), 256):
                embedder.documents(texts[at : at + 256])
            embedding = time.perf_counter() - started
            count = [0]
            real = embedder.documents
            embedder.documents = lambda given: (
                count.__setitem__(0, count[0] + len(given)) or real(given)
            )
            memory.__dict__["recent"] = Recent()
            started = time.perf_counter()
            second = knowledge.index(memory)
            again, embedded_again = time.perf_counter() - started, count[0]
            changed = next(docs.rglob("*.md"))
            changed.write_text(
                changed.read_text() + "\nOne more sentence at the end of the page.\n"
            )
            started = time.perf_counter()
            third = knowledge.index(memory)
            one, embedded_one = time.perf_counter() - started, count[0] - embedded_again
    result = {
        "files": len(first.added),
        "passages": first.memories_added,
        "indexing_s": round(indexing, 2),
        "embedding_s": round(embedding, 2),
        "indexing_over_embedding": round(indexing / embedding, 3),
        "again_s": round(again, 3),
        "again_unchanged": second.unchanged,
        "again_embedded": embedded_again,
        "one_changed_s": round(one, 3),
        "one_changed_files": len(third.changed),
        "one_changed_embedded": embedded_one,
    }
    print(
        json.dumps(result, indent=1)
        if args.json
        else "\n".join(f"{key.replace('_', ' '):28}{value}" for key, value in result.items())
    )


if __name__ == "__main__":
    main()
