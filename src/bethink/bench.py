"""`bethink bench`: how good and how fast recall is on labelled data, measured through the ordinary write and search paths.

A set is a folder with meta.json, corpus.jsonl and queries.jsonl (docs/reference/bench.md). Every document goes in as it
would in daily use, into a throw-away database; `scope` makes isolated haystacks; documents of one session are turns of
one source, in order, or are read as a conversation. Nothing here tunes anything.

Work is mostly asked about while it is fresh, and then the clock alone finds much. So a set can be asked again a day, a week or
30 days after its newest memory, and beside ours stand controls: the newest first, which reads no word, and the plain recipes
(BM25, convex, reciprocal ranks), which get the same addition for recency as ours.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from bethink.api import Bethink
from bethink.errors import InvalidInput, NotFound
from bethink.features.conversations import backfill
from bethink.types import MODES, Filter, Memory, Passage, Source

MEASURES = ("hit@1", "any@5", "any@10", "recall@5", "recall@10", "all@5", "MRR", "nDCG@10")
DEPTH = 10
BATCH = 256
ASKED = {"own": 0, "day": 1, "week": 7, "month": 30}  # days after the newest memory
RECIPES = ("newest", "bm25", "convex", "rrf")
RERANKED = "reranked"  # hybrid, with the first hits read again by the judge
SEARCHES = (*MODES, RERANKED)
POOL = 300  # hits that the plain recipes put into an order of their own
MEANING, RRF_K = (
    0.6,
    60,
)  # the plain recipes as they are published: convex .6, reciprocal ranks with k = 60
RESAMPLES = 1000  # of the questions, for an interval that holds 95 of 100 of their means

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Dataset:
    name: str
    documents: tuple[dict[str, Any], ...]
    queries: tuple[dict[str, Any], ...]

    @property
    def newest(self) -> datetime:
        """When the newest memory was made; the present where the set gives no times."""
        times = [_moment(row["time"]) for row in self.documents if row.get("time")]
        return max(times, default=datetime.now(UTC))


class LabelledHit(NamedTuple):
    """A memory under the names that queries know it by, and what the signals said of it."""

    document: str
    session: str
    bm25: float = 0.0
    cosine: float = 0.0
    recent: float = 0.0


Labels = Callable[[Memory], LabelledHit]


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
    asked: Sequence[str] = ("own",),
    as_conversations: bool = False,
    sample: int | None = None,
) -> list[dict[str, Any]]:
    """One object per set, time of asking and mode, keys named as the measures. Of a `sample` so many questions, spread over the set."""
    results: list[dict[str, Any]] = []
    for directory in directories:
        dataset = read(directory)
        step = max(1, len(dataset.queries) // sample) if sample else 1
        dataset = replace(dataset, queries=dataset.queries[::step][:sample])
        with (
            tempfile.TemporaryDirectory(prefix="bethink-bench-") as folder,
            Bethink(
                database or Path(folder) / "bench.db", directory=folder, actor="bench"
            ) as memory,
        ):
            if as_conversations:
                speed, labels = converse(memory, dataset, Path(folder), progress)
            else:
                speed, labels = load(memory, dataset, progress), _label
            for when in asked:
                rows = measure(memory, dataset, modes, when, labels, progress)
                results += [{"set": dataset.name, **row, **speed} for row in rows]
    return results


def load(memory: Bethink, dataset: Dataset, progress: Progress | None = None) -> dict[str, float]:
    """Everything in, as sources of one scope, some hundred passages to a transaction."""
    sources: dict[str, dict[str, list[Passage]]] = {}
    for at, document in enumerate(dataset.documents):
        group = sources.setdefault(_enter(memory, document), {}).setdefault(
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
    return _speed(dataset, started)


def converse(
    memory: Bethink, dataset: Dataset, folder: Path, progress: Progress | None = None
) -> tuple[dict[str, float], Labels]:
    """Everything in as transcripts, a file for each session, oldest first, through the recipe for conversations. A hit is
    known by its session and by the line that it cites."""
    sessions: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for document in dataset.documents:
        if not document["text"].lower().startswith(("user:", "assistant:")):
            raise InvalidInput(
                f"The document {document['id']} of {dataset.name} is no turn of a user or an assistant.",
                "Only sets whose texts begin with `user:` or `assistant:` are read as conversations.",
            )
        place = (str(document.get("scope", "")), str(document.get("session")))
        sessions.setdefault(place, []).append(document)
    ordered = sorted(sessions.values(), key=lambda turns: str(turns[0].get("time", "")))
    started = time.perf_counter()
    for number, turns in enumerate(ordered):
        file = folder / f"{number}.jsonl"
        file.write_text("".join(map(_chat_line, turns)), "utf-8")
        _enter(memory, turns[0])
        backfill(memory, [("plain", file)])
        if progress:
            progress(f"{dataset.name}: reading", number + 1, len(ordered))

    def label(found: Memory) -> LabelledHit:
        turns = ordered[int(found.session or 0)]
        line = (found.lines or (1, 1))[0]
        return LabelledHit(turns[line - 1]["id"], str(turns[0].get("session")))

    return _speed(dataset, started), label


def _chat_line(document: dict[str, Any]) -> str:
    role, _, text = document["text"].partition(":")
    turn = {
        "role": role.lower(),
        "content": text.strip(),
        "id": document["id"],
        "timestamp": document.get("time"),
    }
    return json.dumps(turn) + "\n"


def _speed(dataset: Dataset, started: float) -> dict[str, float]:
    count = len(dataset.documents)
    seconds = time.perf_counter() - started
    return {"documents": count, "documents_per_second": round(count / seconds, 1)}


def _batches(groups: dict[str, list[Passage]]) -> Iterator[list[tuple[Source, list[Passage]]]]:
    batch: list[tuple[Source, list[Passage]]] = []
    for name, passages in groups.items():
        batch.append((Source(name, "transcript"), passages))
        if sum(len(held) for _, held in batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _enter(memory: Bethink, row: Mapping[str, Any]) -> str:
    """Goes into the haystack of a document or a question, which is a container, and names its scope."""
    memory.container = str(row.get("scope", "all"))
    return memory.scope


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


def _label(memory: Memory) -> LabelledHit:
    return LabelledHit(str(memory.metadata.get("document")), str(memory.metadata.get("session")))


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        raise InvalidInput(
            f"'{text}' is not a time.", "Write it as 2026-03-01T12:00:00Z."
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


# Asking


def measure(
    memory: Bethink,
    dataset: Dataset,
    modes: Sequence[str],
    asked: str = "own",
    labels: Labels = _label,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """One object per mode. All are asked the same questions at the same times, so how far each is behind the first has an interval too."""
    later = dataset.newest + timedelta(days=ASKED[asked])
    pools: dict[str, list[LabelledHit]] = {}
    rows: list[dict[str, Any]] = []
    first: list[float] = []
    for mode in modes:
        judged: list[dict[str, float]] = []
        times: list[float] = []
        before = time.process_time()
        if mode in SEARCHES:
            _ask(memory, dataset.queries[0], mode, later, DEPTH, labels)  # so that all is loaded
            before = time.process_time()
        for number, query in enumerate(dataset.queries, start=1):
            now = _own_time(query) if asked == "own" else later
            if mode in SEARCHES:
                started = time.perf_counter()
                found = _ask(memory, query, mode, now, DEPTH * 6, labels)
                times.append(time.perf_counter() - started)
            elif mode == "newest":
                found = order_by_time(dataset, query, now)
            else:
                if query["id"] not in pools:
                    pools[query["id"]] = _ask(memory, query, "hybrid", now, POOL, labels)
                found = order_by_recipe(pools[query["id"]], mode)
            judged.append(_judge_found(found, query))
            if progress:
                progress(f"{dataset.name}: {mode}, asked {asked}", number, len(dataset.queries))
        spent = (time.process_time() - before) if times else None
        values = [one["nDCG@10"] for one in judged]
        first = first or values
        rows.append({"asked": asked, "mode": mode, **_summarise(judged, first, times, spent)})
    return rows


def _own_time(query: dict[str, Any]) -> datetime:
    """When a question was asked; without a time, the present is as good as any."""
    return _moment(query["time"]) if query.get("time") else datetime.now(UTC)


def _ask(
    memory: Bethink, query: dict[str, Any], mode: str, now: datetime, depth: int, labels: Labels
) -> list[LabelledHit]:
    memory.clock = lambda: now
    seen = Filter(scopes=(_enter(memory, query),), now=now)
    rerank, mode = mode == RERANKED, "hybrid" if mode == RERANKED else mode
    asked: dict[str, Any] = {"mode": mode, "rerank": rerank, "related": False}
    answer = memory.search(query["query"], filter=seen, limit=depth, **asked)
    return [
        labels(hit.memory)._replace(
            bm25=hit.why.get("bm25", 0.0),
            cosine=hit.why.get("cosine", 0.0),
            recent=hit.why.get("recent", 0.0),
        )
        for hit in answer.hits
    ]


def order_by_time(dataset: Dataset, query: dict[str, Any], now: datetime) -> list[LabelledHit]:
    """What was there when the question was asked, the newest first: what the clock gives to who cannot read."""
    told = [
        (_moment(row["time"]), LabelledHit(row["id"], str(row.get("session"))))
        for row in dataset.documents
        if row.get("time") and row.get("scope") == query.get("scope")
    ]
    told = [one for one in told if one[0] <= now]
    return [found for _, found in sorted(told, key=lambda one: one[0], reverse=True)]


def order_by_recipe(pool: Sequence[LabelledHit], recipe: str) -> list[LabelledHit]:
    """The pool by a plain recipe: BM25, its best as 1; with the cosine, from the worst as 0 to the best as 1; or by the ranks."""
    words = [one.bm25 / (max(one.bm25 for one in pool) or 1.0) for one in pool]
    low, high = (edge((one.cosine for one in pool), default=0.0) for edge in (min, max))
    meaning = [(one.cosine - low) / ((high - low) or 1.0) for one in pool]
    if recipe == "convex":
        words = [
            MEANING * near + (1 - MEANING) * word for near, word in zip(meaning, words, strict=True)
        ]
    elif recipe == "rrf":
        words = [
            (near + word) * (RRF_K + 1) / 2
            for near, word in zip(_reciprocal(meaning), _reciprocal(words), strict=True)
        ]
    scores = [value + one.recent for value, one in zip(words, pool, strict=True)]
    return [pool[at] for at in sorted(range(len(pool)), key=lambda at: -scores[at])]


def _reciprocal(values: Sequence[float]) -> list[float]:
    """1 / (k + rank) of each value, and nothing for what a signal did not find."""
    ranked = sorted(
        (at for at, value in enumerate(values) if value > 0), key=lambda at: -values[at]
    )
    ranks = {at: rank for rank, at in enumerate(ranked, start=1)}
    return [1 / (RRF_K + ranks[at]) if at in ranks else 0.0 for at in range(len(values))]


# Judging


def _judge_found(found: Sequence[LabelledHit], query: dict[str, Any]) -> dict[str, float]:
    """Several hits of one session, or of one document, count once."""
    if query.get("relevant_sessions"):
        ids, wanted = [one.session for one in found], query["relevant_sessions"]
    else:
        ids, wanted = [one.document for one in found], query["relevant"]
    return judge(list(dict.fromkeys(ids))[:DEPTH], set(wanted))


def _summarise(
    judged: Sequence[dict[str, float]],
    first: Sequence[float],
    times: list[float],
    spent: float | None,
) -> dict[str, Any]:
    count = len(judged)
    values = [one["nDCG@10"] for one in judged]
    behind = [best - value for best, value in zip(first, values, strict=True)]
    low, high = interval(values)
    behind_low, behind_high = interval(behind)
    return {
        **{name: round(sum(one[name] for one in judged) / count, 4) for name in MEASURES},
        "low": low,
        "high": high,
        "behind": round(sum(behind) / count, 4),
        "behind_low": behind_low,
        "behind_high": behind_high,
        "p50_ms": _percentile(times, 0.5),
        "p95_ms": _percentile(times, 0.95),
        "cpu_ms": None if spent is None else round(spent / count * 1000, 2),
        "queries": count,
    }


def _percentile(times: Sequence[float], share: float) -> float | None:
    """Milliseconds in which that share of the questions was answered. Controls have no times of their own."""
    place = min(len(times) - 1, math.ceil(len(times) * share))
    return round(sorted(times)[place] * 1000, 2) if times else None


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Between which bounds the mean lies for 95 of 100 samples of the questions, drawn with replacement."""
    draw = random.Random(0)
    count = len(values)
    means = sorted(sum(draw.choices(values, k=count)) / count for _ in range(RESAMPLES))
    return round(means[RESAMPLES // 40], 4), round(means[-RESAMPLES // 40], 4)


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
