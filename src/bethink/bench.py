"""`bethink bench`: measure quality and speed of recall on labelled data.

It uses the ordinary write and search paths. A set is a folder with meta.json, corpus.jsonl and
queries.jsonl (docs/reference/bench.md). Every document is stored as in daily use, in a temporary
database. `scope` separates haystacks. Documents of one session are turns of one source, in order,
or are read as a conversation. Nothing here tunes anything.

People mostly ask about recent work, where the clock alone finds much. So a set can be asked again a
day, a week or 30 days after its newest memory, next to controls: newest first, which reads no word,
and the plain recipes (BM25, convex, reciprocal ranks), with the same bonus for recency as ours.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bethink.agents.base import as_time
from bethink.api import Bethink
from bethink.errors import InvalidInput, NotFound
from bethink.features.conversations import backfill
from bethink.model import MODES, NOTHING, Filter, Memory, Passage, Source, Values
from bethink.store.transfer import split_pages

MEASURES = ("hit@1", "any@5", "any@10", "recall@5", "recall@10", "all@5", "MRR", "nDCG@10")
INTERVALS = ("low", "high", "behind", "behind_low", "behind_high")
SPEEDS = ("p50_ms", "p95_ms", "cpu_ms", "documents_per_second", "documents", "queries")
FIELDS = ("set", "asked", "mode", *MEASURES, *INTERVALS, *SPEEDS)
DEPTH = 10
_BATCH = 64  # sources to a transaction
_ASKED = {"own": 0, "day": 1, "week": 7, "month": 30}  # days after the newest memory
RECIPES = ("newest", "bm25", "convex", "rrf")
RERANKED = "reranked"  # hybrid, with the first hits reranked by the judge
SEARCHES = (*MODES, RERANKED)
POOL = 300  # hits that the plain recipes reorder
MEANING, _RRF_K = 0.6, 60  # of the plain recipes as published
RESAMPLES = 1000  # of the questions, for a 95 % interval of the mean

Row = dict[str, Any]
Progress = Callable[[str, int, int], None]


class Dataset(NamedTuple):
    name: str
    documents: Sequence[Row]
    queries: Sequence[Row]


class LabelledHit(NamedTuple):
    """Memory under its labels in the queries, with the values of the signals."""

    document: str
    session: str
    why: Values = NOTHING


Labels = Callable[[Memory], tuple[str, str]]


def read(folder: Path) -> Dataset:
    meta = folder / "meta.json"
    try:
        name = json.loads(meta.read_text("utf-8")).get("name") if meta.is_file() else None
        documents = _read_lines(folder / "corpus.jsonl", "id", "text")
        queries = _read_lines(folder / "queries.jsonl", "id", "query")
    except FileNotFoundError:
        raise NotFound(
            f"{folder} is not an evaluation set: corpus.jsonl and queries.jsonl are needed.",
            "bethink bench ../shared/bench/scifact",
        ) from None
    for query in queries:
        if not (query.get("relevant") or query.get("relevant_sessions")):
            raise InvalidInput(
                f"The query {query['id']} in {folder} says of nothing that it is relevant.",
                "Give `relevant` or `relevant_sessions`.",
            )
    return Dataset(name or folder.name, documents, queries)


def _read_lines(path: Path, *needed: str) -> list[Row]:
    rows = []
    for number, line in enumerate(path.read_text("utf-8").rstrip().split("\n"), start=1):
        try:
            row = json.loads(line)
            if not all(isinstance(row[name], str) for name in needed):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise InvalidInput(
                f"{path}:{number} is no JSON object with {' and '.join(needed)}.",
                "See docs/reference/bench.md.",
            ) from None
        rows.append(row)
    return rows


def run(
    directories: Sequence[Path],
    modes: Sequence[str],
    progress: Progress = lambda label, done, total: None,
    asked: Sequence[str] = ("own",),
    as_conversations: bool = False,
    sample: int | None = None,
) -> list[Row]:
    """Return one object per set, time of asking and mode, with the measures as keys.

    `sample` limits the number of questions, spread over the set.
    """
    results: list[Row] = []
    for directory in directories:
        dataset = read(directory)
        step = max(1, len(dataset.queries) // sample) if sample else 1
        dataset = dataset._replace(queries=dataset.queries[::step][:sample])
        with (
            tempfile.TemporaryDirectory(prefix="bethink-bench-") as folder,
            Bethink(Path(folder) / "bench.db", directory=folder, actor="bench") as memory,
        ):
            started, count = time.perf_counter(), len(dataset.documents)
            take_in = converse if as_conversations else load
            labels = take_in(memory, dataset, Path(folder), progress)
            speed = round(count / (time.perf_counter() - started), 1)
            same = {"set": dataset.name, "documents": count, "documents_per_second": speed}
            for when in asked:
                found = measure(memory, dataset, modes, when, labels, progress)
                results += [{**same, **row} for row in found]
    return results


def load(memory: Bethink, dataset: Dataset, folder: Path, progress: Progress) -> Labels:
    """Everything in, as sources of the scope of their haystack, some dozens to a transaction."""
    scopes: dict[str, dict[str, list[Passage]]] = {}
    for at, document in enumerate(dataset.documents):
        name = str(document.get("session") or f"document-{at}")
        group = scopes.setdefault(_enter(memory, document), {}).setdefault(name, [])
        group.append(_make_passage(document, len(group)))
    done = 0
    for scope, sources in scopes.items():
        for page in split_pages(list(sources.items()), _BATCH):
            batch = [(Source(name, "transcript"), passages) for name, passages in page]
            memory.ingest(batch, scope=scope, replace_sources=False)
            done += sum(len(passages) for _, passages in page)
            progress(f"{dataset.name}: reading", done, len(dataset.documents))
    return lambda found: (
        str(found.metadata.get("document")),
        str(found.metadata.get("session")),
    )


def converse(memory: Bethink, dataset: Dataset, folder: Path, progress: Progress) -> Labels:
    """Store everything as transcripts, one file per session and oldest first.

    They go through the recipe for conversations. A hit is identified by its session and cited line.
    """
    sessions: dict[tuple[str, str], list[Row]] = {}
    for document in dataset.documents:
        if not document["text"].lower().startswith(("user:", "assistant:")):
            raise InvalidInput(
                f"The document {document['id']} of {dataset.name} is no turn of a user or an assistant.",
                "Only sets whose texts begin with `user:` or `assistant:` are read as conversations.",
            )
        place = (str(document.get("scope", "")), str(document.get("session")))
        sessions.setdefault(place, []).append(document)
    ordered = sorted(sessions.values(), key=lambda turns: str(turns[0].get("time", "")))
    for number, turns in enumerate(ordered):
        lines = []
        for turn in turns:
            role, _, text = turn["text"].partition(":")
            message = {"role": role.lower(), "content": text.strip(), "id": turn["id"]}
            lines.append(json.dumps({**message, "timestamp": turn.get("time")}) + "\n")
        file = folder / f"{number}.jsonl"
        file.write_text("".join(lines), "utf-8")
        _enter(memory, turns[0])
        backfill(memory, [("plain", file)])
        progress(f"{dataset.name}: reading", number + 1, len(ordered))

    def label(found: Memory) -> tuple[str, str]:
        turns = ordered[int((found.session or "0").partition("-")[0])]
        line = (found.lines or (1, 1))[0]
        return turns[line - 1]["id"], str(turns[0].get("session"))

    return label


def _enter(memory: Bethink, row: Row) -> str:
    """Goes into the haystack of a document or a question, which is a container, and names its scope."""
    memory.container = str(row.get("scope", "all"))
    return memory.scope


def _make_passage(document: Row, position: int) -> Passage:
    return Passage(
        content=document["text"] if document["text"].strip() else "(empty)",
        kind="context" if document.get("session") else "document",
        section=document.get("title") or None,
        created_at=as_time(document.get("time")),
        position=position,
        metadata={"document": document["id"], "session": document.get("session")},
    )


# Asking


def measure(
    memory: Bethink,
    dataset: Dataset,
    modes: Sequence[str],
    asked: str,
    labels: Labels,
    progress: Progress,
) -> list[Row]:
    """Return one object per mode, with the interval of its distance to the first mode.

    All modes are asked the same questions at the same times.
    """
    made = [at for row in dataset.documents if (at := as_time(row.get("time")))]
    later = max(made, default=datetime.now(UTC)) + timedelta(days=_ASKED[asked])
    pools: dict[str, list[LabelledHit]] = {}

    def find(query: Row, mode: str) -> list[LabelledHit]:
        now = later if asked != "own" else as_time(query.get("time")) or datetime.now(UTC)
        if mode in SEARCHES:
            return _ask(memory, query, mode, now, DEPTH * 6, labels)
        if mode == "newest":
            return order_by_time(dataset, query, now)
        if query["id"] not in pools:
            pools[query["id"]] = _ask(memory, query, "hybrid", now, POOL, labels)
        return order_by_recipe(pools[query["id"]], mode)

    rows: list[Row] = []
    first: list[float] = []
    for mode in modes:
        judged: list[dict[str, float]] = []
        times: list[float] = []
        find(dataset.queries[0], mode)  # load everything first
        before = time.process_time()
        for number, query in enumerate(dataset.queries, start=1):
            started = time.perf_counter()
            found = find(query, mode)
            times.append(time.perf_counter() - started)
            judged.append(_judge_found(found, query))
            progress(f"{dataset.name}: {mode}, asked {asked}", number, len(dataset.queries))
        first = first or [one["nDCG@10"] for one in judged]
        spent = (*np.percentile(times, (50, 95)), (time.process_time() - before) / len(times))
        # Controls are not timed.
        speeds = {
            name: round(float(seconds) * 1000, 2) if mode in SEARCHES else None
            for name, seconds in zip(SPEEDS, spent, strict=False)
        }
        rows.append({"asked": asked, "mode": mode, **_summarise(judged, first), **speeds})
    return rows


def _ask(
    memory: Bethink, query: Row, mode: str, now: datetime, depth: int, labels: Labels
) -> list[LabelledHit]:
    memory.clock = lambda: now
    seen = Filter(scopes=(_enter(memory, query),), now=now)
    how = {"mode": "hybrid", "rerank": True} if mode == RERANKED else {"mode": mode}
    answer = memory.search(query["query"], filter=seen, limit=depth, related=False, **how)
    return [LabelledHit(*labels(hit.memory), hit.why) for hit in answer.hits]


def order_by_time(dataset: Dataset, query: Row, now: datetime) -> list[LabelledHit]:
    """Return the documents from before the question, newest first: a baseline that reads no word."""
    known = [
        (at, row)
        for row in dataset.documents
        if (at := as_time(row.get("time"))) and at <= now and row.get("scope") == query.get("scope")
    ]
    known.sort(key=lambda one: one[0], reverse=True)
    return [LabelledHit(row["id"], str(row.get("session"))) for _, row in known]


def order_by_recipe(pool: Sequence[LabelledHit], recipe: str) -> list[LabelledHit]:
    """Order the pool by a plain recipe: BM25, BM25 with cosine, or reciprocal ranks.

    BM25 is scaled to 1 for the best; the cosine from 0 for the worst to 1 for the best.
    """
    words, meaning, recent = (
        np.array([one.why.get(signal, 0.0) for one in pool])
        for signal in ("bm25", "cosine", "recent")
    )
    if not pool:
        return []
    words /= words.max() or 1.0
    meaning = (meaning - meaning.min()) / (np.ptp(meaning) or 1.0)
    if recipe == "rrf":
        words, meaning = _weigh_ranks(words), _weigh_ranks(meaning)
    share = {"bm25": 0.0, "convex": MEANING, "rrf": 0.5}[recipe]
    weights = share * meaning + (1 - share) * words + recent
    return [pool[at] for at in np.argsort(-weights, kind="stable")]


def _weigh_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (k + rank) of each value, the first as 1; nothing for what a signal did not find."""
    ranks = np.argsort(-values, kind="stable").argsort()
    return np.where(values > 0, (_RRF_K + 1) / (_RRF_K + 1 + ranks), 0.0)


# Judging


def _judge_found(found: Sequence[LabelledHit], query: Row) -> dict[str, float]:
    """Several hits of one session, or of one document, count once."""
    sessions = query.get("relevant_sessions")
    ids = [one.session if sessions else one.document for one in found]
    return judge(list(dict.fromkeys(ids))[:DEPTH], set(sessions or query["relevant"]))


def _summarise(judged: Sequence[dict[str, float]], first: Sequence[float]) -> Row:
    """The means, and their intervals beside the first mode's."""
    count = len(judged)
    values = [one["nDCG@10"] for one in judged]
    behind = [best - value for best, value in zip(first, values, strict=True)]
    bounds = (*interval(values), round(sum(behind) / count, 4), *interval(behind))
    means = {name: round(sum(one[name] for one in judged) / count, 4) for name in MEASURES}
    return {**means, **dict(zip(INTERVALS, bounds, strict=True)), "queries": count}


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Between which bounds the mean lies for 95 of 100 samples of the questions, drawn with replacement."""
    drawn = np.random.default_rng(0).choice(values, (RESAMPLES, len(values)))
    low, high = np.percentile(drawn.mean(axis=1), (2.5, 97.5))
    return round(float(low), 4), round(float(high), 4)


def judge(found: Sequence[str], wanted: set[str]) -> dict[str, float]:
    good = [id in wanted for id in found]
    gains = [1 / math.log2(rank + 2) for rank in range(DEPTH)]
    first, ten = sum(good[:5]), sum(good[:10])
    return {
        "hit@1": float(any(good[:1])),
        "any@5": float(first > 0),
        "any@10": float(ten > 0),
        "recall@5": first / len(wanted),
        "recall@10": ten / len(wanted),
        "all@5": float(first == len(wanted)),
        "MRR": 1 / (good.index(True) + 1) if any(good) else 0.0,
        "nDCG@10": sum(gain for gain, hit in zip(gains, good, strict=False) if hit)
        / sum(gains[: len(wanted)]),
    }
