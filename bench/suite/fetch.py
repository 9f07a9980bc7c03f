"""Makes evaluation sets from their public sources, where the network reaches them. Nothing of them goes into this repository."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tasks import read_turns

LOCOMO = "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json"
LONGMEMEVAL = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main/longmemeval_s_cleaned.json"
SDE_BENCH = "https://github.com/vectorize-io/sde-bench"
CIPHER_BOX = "https://github.com/FSM1/cipher-box"
PREFIX = 500  # characters of user text that are kept of a LongMemEval session
ADVERSARIAL = 5  # LoCoMo's category of questions that have no answer
UNTIL = "2026-02-22T03:17:00Z"  # the newest commit of cipher-box that is asked for
CHECKPOINTS = "entire/checkpoints/v1"  # the branch in which its agents' sessions lie

Rows = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def fetch_sets(folder: Path) -> int:
    """Write each set that is missing from its source; return how many could not be made."""
    missing = 0
    makers: dict[str, Callable[[], None]] = {
        name: lambda name=name, make=make: write_set(folder / name, *make())
        for name, make in MAKERS.items()
        if not (folder / name / "corpus.jsonl").is_file()
    }
    if not (folder / "sde" / "tasks.jsonl").is_file():
        makers["sde"] = lambda: fetch_decisions(folder / "sde")
    for name, make in makers.items():
        try:
            make()
        except (OSError, ValueError, KeyError, subprocess.CalledProcessError) as error:
            why = "git failed" if isinstance(error, subprocess.CalledProcessError) else error
            print(
                f"{name} could not be made: {why}. Its tasks go on without it; --data names a folder that has it.",
                file=sys.stderr,
            )
            missing += 1
    return missing


def write_set(folder: Path, documents: list[dict[str, Any]], queries: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("queries", queries), ("corpus", documents)):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    print(f"{folder.name}: {len(documents)} documents, {len(queries)} questions", file=sys.stderr)


def download(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=600) as stream:
        return json.load(stream)


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
    """Return a haystack per question, with the beginning of the user's words of each session; questions whose evidence is cut off are left out."""
    documents: list[dict[str, Any]] = []
    queries: list[dict[str, Any]] = []
    for row in questions:
        scope, rows, held = row["question_id"], [], set()
        sessions = zip(
            row["haystack_session_ids"],
            row["haystack_dates"],
            row["haystack_sessions"],
            strict=True,
        )
        for name, date, turns in sessions:
            said = [turn for turn in turns if turn["role"] == "user"]
            text = "\n".join(turn["content"] for turn in said)[:PREFIX]
            if any(turn.get("has_answer") and turn["content"] in text for turn in said):
                held.add(name)
            time = datetime.strptime(re.sub(r"\s*\(\w+\)\s*", " ", date), "%Y/%m/%d %H:%M")
            place = {"id": f"{scope}/{name}", "scope": scope, "session": name}
            rows.append({**place, "time": time.isoformat(), "text": text})
        if scope.endswith("_abs") or not held.issuperset(row["answer_session_ids"]):
            continue
        documents += rows
        relevant = [f"{scope}/{one}" for one in row["answer_session_ids"]]
        queries.append(
            {"id": scope, "scope": scope, "query": row["question"], "relevant": relevant}
        )
    return documents, queries


def make_sessions(repository: str, until: str = UNTIL) -> Rows:
    """Return the messages of the sessions of a repository, and for each commit's subject the sessions that made it.

    A commit names its checkpoints in a trailer; a checkpoint is a folder `ab/cdef…` of the branch, with a numbered folder per session."""
    with tempfile.TemporaryDirectory() as place:

        def git(*arguments: str) -> str:
            command = ["git", "-C", place, *arguments]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout

        git("clone", "--quiet", "--bare", "--filter=blob:none", repository, ".")
        sessions: dict[str, list[str]] = {}
        for path in git("ls-tree", "-r", "--name-only", CHECKPOINTS).splitlines():
            if found := re.fullmatch(r"(..)/(\w+)/\d+/full\.jsonl", path):
                sessions.setdefault(found[1] + found[2], []).append(path.rpartition("/")[0])
        shape = "%H%x00%cI%x00%s%x00%(trailers:key=Entire-Checkpoint,valueonly,separator=%x20)"
        log = git("log", "--branches", f"--until={until}", f"--format={shape}")
        transcripts: dict[str, str] = {}
        queries = []
        for line in log.splitlines():
            commit, time, subject, checkpoints = line.split("\0")
            relevant = []
            for folder in (one for name in checkpoints.split() for one in sessions.get(name, [])):
                told = json.loads(git("show", f"{CHECKPOINTS}:{folder}/metadata.json"))
                transcript = git("show", f"{CHECKPOINTS}:{folder}/full.jsonl")
                relevant.append(told["session_id"])
                if len(transcript) > len(transcripts.get(told["session_id"], "")):
                    transcripts[told["session_id"]] = transcript
            if relevant:
                asked = {"id": commit[:12], "query": subject, "time": time}
                queries.append({**asked, "relevant_sessions": list(dict.fromkeys(relevant))})
        documents = []
        for session, transcript in sorted(transcripts.items()):
            (file := Path(place) / "session.jsonl").write_text(transcript, "utf-8")
            for at, turn in enumerate(read_turns(file)):
                said = {"time": turn["time"], "text": f"{turn['role']}: {turn['text']}"}
                documents.append({"id": f"{session}:{at}", "session": session, **said})
    return documents, queries


def make_pool(questions: list[dict[str, Any]]) -> Rows:
    """Return the whole sessions that hold evidence of a question, once each, and the questions."""
    documents: dict[str, dict[str, Any]] = {}
    queries = []
    for row in questions:
        if row["question_id"].endswith("_abs"):
            continue
        parts = (row["haystack_session_ids"], row["haystack_dates"], row["haystack_sessions"])
        for name, date, turns in zip(*parts, strict=True):
            if name in row["answer_session_ids"]:
                time = datetime.strptime(re.sub(r"\s*\(\w+\)\s*", " ", date), "%Y/%m/%d %H:%M")
                text = "\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)
                documents[name] = {"id": name, "time": time.isoformat(), "text": text}
        asked = {"id": row["question_id"], "query": row["question"], "type": row["question_type"]}
        queries.append({**asked, "relevant": row["answer_session_ids"]})
    return list(documents.values()), queries


def fetch_decisions(folder: Path, repository: str = SDE_BENCH) -> None:
    """Write the tasks of sde-bench whose rule was settled in a conversation: every second one by name, the others as decoys."""
    with tempfile.TemporaryDirectory() as place:
        command = ["git", "clone", "--quiet", "--depth=1", repository, place]
        subprocess.run(command, check=True, capture_output=True)
        found = []
        for path in sorted(Path(place).glob("*/tasks/main/task.json")):
            task = json.loads(path.read_text("utf-8"))
            if talks := task.get("conversations"):
                talks = talks if isinstance(talks[0], list) else [talks]
                row = {"id": task["codebase"], "bug_report": task["bug_report"]}
                found.append({**row, "conversations": talks, "policy": task["policy"]})
    decoys = [{"conversation": talk} for row in found[1::2] for talk in row["conversations"]]
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("decoys", decoys), ("tasks", found[::2])):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    print(f"{folder.name}: {len(found[::2])} tasks, {len(decoys)} other talks", file=sys.stderr)


MAKERS: dict[str, Callable[[], Rows]] = {
    "locomo-turns": lambda: make_locomo(download(LOCOMO)),
    "longmemeval-s-prefix": lambda: make_longmemeval(download(LONGMEMEVAL)),
    "longmemeval-pool": lambda: make_pool(download(LONGMEMEVAL)),
    "sessions-cipher-box": lambda: make_sessions(CIPHER_BOX),
}
