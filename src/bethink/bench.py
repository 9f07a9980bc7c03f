"""`bethink bench`: how good and how fast recall is on labelled data, measured through the ordinary write and search paths.

A set is a folder with meta.json, corpus.jsonl and queries.jsonl (docs/reference/bench.md). Every document goes in as it
would in daily use, into a throw-away database; `scope` makes isolated haystacks; documents of one session are turns of
one source, in order. Nothing here tunes anything.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bethink.api import Bethink
from bethink.errors import InvalidInput, NotFound
from bethink.types import Filter, Hit, Passage, Source

MEASURES = ("hit@1", "any@5", "any@10", "recall@5", "recall@10", "all@5", "MRR", "nDCG@10")
DEPTH = 10
BATCH = 256

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Dataset:
    name: str
    documents: tuple[dict[str, Any], ...]
    queries: tuple[dict[str, Any], ...]


def read(folder: Path) -> Dataset:
    if not (folder / "corpus.jsonl").is_file() or not (folder / "queries.jsonl").is_file():
        raise NotFound(
            f"{folder} is not an evaluation set: corpus.jsonl and queries.jsonl are needed.",
            "bethink bench ../shared/bench/scifact",
        )
    try:
        meta = (
            json.loads((folder / "meta.json").read_text("utf-8"))
            if (folder / "meta.json").is_file()
            else {}
        )
    except ValueError as error:
        raise InvalidInput(
            f"{folder / 'meta.json'} is not JSON: {error}.",
            "It holds one object, with at least a name.",
        ) from None
    documents = tuple(_lines(folder / "corpus.jsonl", ("id", "text")))
    queries = tuple(_lines(folder / "queries.jsonl", ("id", "query")))
    if not documents or not queries:
        raise InvalidInput(
            f"{folder} holds no {'queries' if documents else 'documents'}.",
            "A set needs at least one of each.",
        )
    for query in queries:
        relevant = query.get("relevant") or query.get("relevant_sessions")
        if not isinstance(relevant, list) or not all(isinstance(name, str) for name in relevant):
            raise InvalidInput(
                f"The query {query['id']} in {folder} says of nothing that it is relevant.",
                "Give `relevant` or `relevant_sessions`.",
            )
    return Dataset(
        meta.get("name", folder.name) if isinstance(meta, dict) else folder.name, documents, queries
    )


def _lines(path: Path, needed: Sequence[str]) -> Iterable[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                try:
                    row = json.loads(line)
                except json.JSONDecodeError as error:
                    raise InvalidInput(
                        f"{path}:{number} is not JSON: {error}.", "Each line holds one object."
                    ) from None
                if not isinstance(row, dict) or any(
                    not isinstance(row.get(name), str) for name in needed
                ):
                    raise InvalidInput(
                        f"{path}:{number} is no object with {' and '.join(needed)}.",
                        "See docs/reference/bench.md.",
                    )
                yield row


def run(
    directories: Sequence[Path],
    modes: Sequence[str],
    progress: Progress | None = None,
    database: Path | None = None,
) -> list[dict[str, Any]]:
    """One object per set and mode, keys named as the measures."""
    results: list[dict[str, Any]] = []
    for directory in directories:
        dataset = read(directory)
        with (
            tempfile.TemporaryDirectory(prefix="bethink-bench-") as folder,
            Bethink(
                database or Path(folder) / "bench.db", directory=folder, actor="bench"
            ) as memory,
        ):
            speed = load(memory, dataset, progress)
            results += [
                {
                    "set": dataset.name,
                    "mode": mode,
                    **measure(memory, dataset, mode, progress),
                    **speed,
                }
                for mode in modes
            ]
    return results


def load(memory: Bethink, dataset: Dataset, progress: Progress | None = None) -> dict[str, float]:
    """Everything in, as sources of one scope, some hundred passages to a transaction."""
    sources: dict[str, dict[str, list[Passage]]] = {}
    for at, document in enumerate(dataset.documents):
        group = sources.setdefault(_scope(document), {}).setdefault(
            str(document.get("session") or f"document-{at}"), []
        )
        group.append(_passage(document, len(group)))
    started, done = time.perf_counter(), 0
    for scope, groups in sources.items():
        for batch in _batches(groups):
            memory.ingest(batch, scope=scope, replace_sources=False)
            done += sum(len(passages) for _, passages in batch)
            if progress:
                progress(f"{dataset.name}: reading", done, len(dataset.documents))
    seconds = time.perf_counter() - started
    return {
        "documents": len(dataset.documents),
        "documents_per_second": round(len(dataset.documents) / seconds, 1),
    }


def _batches(groups: dict[str, list[Passage]]) -> Iterator[list[tuple[Source, list[Passage]]]]:
    batch: list[tuple[Source, list[Passage]]] = []
    for name, passages in groups.items():
        batch.append((Source(name, "transcript"), passages))
        if sum(len(held) for _, held in batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _scope(row: dict[str, Any]) -> str:
    return f"project:bench-{row.get('scope', 'all')}"


def _passage(document: dict[str, Any], position: int) -> Passage:
    made = document.get("time")
    return Passage(
        content=document["text"] if document["text"].strip() else "(empty)",
        kind="context" if document.get("session") else "document",
        section=document.get("title") or None,
        created_at=_moment(made) if made else None,
        position=position,
        metadata={"document": document["id"], "session": document.get("session")},
    )


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        raise InvalidInput(
            f"'{text}' is not a time.", "Write it as 2026-03-01T12:00:00Z."
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def measure(
    memory: Bethink, dataset: Dataset, mode: str, progress: Progress | None = None
) -> dict[str, Any]:
    totals = dict.fromkeys(MEASURES, 0.0)
    times = []
    memory.search("warm up", mode=mode, filter=Filter(scopes=(_scope(dataset.queries[0]),)))
    for number, query in enumerate(dataset.queries, start=1):
        by_session = bool(query.get("relevant_sessions"))
        wanted = set(query["relevant_sessions"] if by_session else query["relevant"])
        # A question is asked at a time; without one, the present is as good as any.
        asked = _moment(query["time"]) if query.get("time") else datetime.now(UTC)
        memory.clock = lambda asked=asked: asked  # type: ignore[misc]
        started = time.perf_counter()
        answer = memory.search(
            query["query"],
            mode=mode,
            filter=Filter(scopes=(_scope(query),), now=asked),
            limit=DEPTH * 6 if by_session else DEPTH,
            related=False,
        )
        times.append(time.perf_counter() - started)
        found = _ranked(answer.hits, "session" if by_session else "document")
        for name, value in judge(found, wanted).items():
            totals[name] += value
        if progress:
            progress(f"{dataset.name}: {mode}", number, len(dataset.queries))
    count = len(dataset.queries)
    times.sort()
    return {
        **{name: round(value / count, 4) for name, value in totals.items()},
        "p50_ms": round(times[count // 2] * 1000, 2),
        "p95_ms": round(times[min(count - 1, math.ceil(count * 0.95) - 1)] * 1000, 2),
        "queries": count,
    }


def _ranked(hits: Sequence[Hit], key: str) -> list[str]:
    """Ids in order, several hits of one session counted once."""
    return list(dict.fromkeys(str(hit.memory.metadata.get(key)) for hit in hits))[:DEPTH]


def judge(found: Sequence[str], wanted: set[str]) -> dict[str, float]:
    good = [id in wanted for id in found]
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(DEPTH, len(wanted))))
    return {
        "hit@1": float(any(good[:1])),
        "any@5": float(any(good[:5])),
        "any@10": float(any(good[:10])),
        "recall@5": sum(good[:5]) / len(wanted),
        "recall@10": sum(good[:10]) / len(wanted),
        "all@5": float(sum(good[:5]) == len(wanted)),
        "MRR": next((1 / (rank + 1) for rank, hit in enumerate(good) if hit), 0.0),
        "nDCG@10": sum(1 / math.log2(rank + 2) for rank, hit in enumerate(good[:10]) if hit)
        / ideal,
    }
