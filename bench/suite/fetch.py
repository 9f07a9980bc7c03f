"""Makes evaluation sets from their public sources, where the network reaches them. Nothing of them goes into this repository."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

PREFIX = 500  # characters of user text that are kept of a LongMemEval session
ADVERSARIAL = 5  # LoCoMo's category of questions that have no answer
SOURCES = {
    "locomo-turns": "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json",
    "longmemeval-s-prefix": "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main/longmemeval_s_cleaned.json",
}

Rows = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def fetch_sets(folder: Path) -> None:
    """Downloads each source and writes its set, unless the set is there."""
    for name, address in SOURCES.items():
        if (folder / name / "corpus.jsonl").is_file():
            continue
        with urllib.request.urlopen(address, timeout=600) as stream:
            documents, queries = MAKERS[name](json.load(stream))
        write_set(folder / name, documents, queries)


def write_set(folder: Path, documents: list[dict[str, Any]], queries: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", documents), ("queries", queries)):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")


def make_locomo(conversations: list[dict[str, Any]]) -> Rows:
    """Turns of ten conversations, and the questions with the turns that hold the answer."""
    documents: list[dict[str, Any]] = []
    queries: list[dict[str, Any]] = []
    for conversation in conversations:
        scope = conversation["sample_id"]
        documents += read_locomo_turns(scope, conversation["conversation"])
        known = {row["id"] for row in documents}
        for at, question in enumerate(conversation["qa"]):
            named = re.findall(r"D\d+:\d+", " ".join(question.get("evidence", [])))
            relevant = [
                f"{scope}/{one}" for one in dict.fromkeys(named) if f"{scope}/{one}" in known
            ]
            if question["category"] != ADVERSARIAL and relevant:
                asked = {"id": f"{scope}/q{at}", "scope": scope, "query": question["question"]}
                queries.append({**asked, "relevant": relevant})
    return documents, queries


def read_locomo_turns(scope: str, sessions: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in (key for key in sessions if re.fullmatch(r"session_\d+", key)):
        held = datetime.strptime(sessions[f"{name}_date_time"], "%I:%M %p on %d %B, %Y")
        for turn in sessions[name]:
            text = f"{turn['speaker']}: {turn['text']}"
            if turn.get("blip_caption"):
                text += f" [shared a photo: {turn['blip_caption']}]"
            place = {"id": f"{scope}/{turn['dia_id']}", "scope": scope, "session": name}
            yield {**place, "time": held.isoformat(), "text": text}


def make_longmemeval(questions: list[dict[str, Any]]) -> Rows:
    """A haystack per question, of each session the beginning of what the user said."""
    documents: list[dict[str, Any]] = []
    queries: list[dict[str, Any]] = []
    for row in questions:
        scope = row["question_id"]
        sessions = zip(
            row["haystack_session_ids"],
            row["haystack_dates"],
            row["haystack_sessions"],
            strict=True,
        )
        for name, held, turns in sessions:
            said = "\n".join(turn["content"] for turn in turns if turn["role"] == "user")[:PREFIX]
            time = datetime.strptime(re.sub(r"\s*\(\w+\)\s*", " ", held), "%Y/%m/%d %H:%M")
            place = {"id": f"{scope}/{name}", "scope": scope, "session": name}
            documents.append({**place, "time": time.isoformat(), "text": said})
        relevant = [f"{scope}/{one}" for one in row["answer_session_ids"]]
        if not scope.endswith("_abs"):
            queries.append(
                {"id": scope, "scope": scope, "query": row["question"], "relevant": relevant}
            )
    return documents, queries


MAKERS: dict[str, Callable[[Any], Rows]] = {
    "locomo-turns": make_locomo,
    "longmemeval-s-prefix": make_longmemeval,
}
