"""How long every page of the web page takes on a large database, against a search by the same server.

    python bench/pages.py [--memories 100000] [--database FILE] [--rounds 15] [--json]

Makes a database of that size (or takes a copy of an earlier one), adds conversations, relations and votes,
and starts `bethink serve` on it in a process of its own. Each round asks for every page once and in between for search pages with
questions that were not asked before. A page is to take at most three times as long as a search.
"""

import argparse
import http.client
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote, urlencode

from common import fill_scope, log, machine, table
from texts import Teller

from bethink.api import Bethink
from bethink.app.web import Sessions, load_key
from bethink.config import data_directory
from bethink.model import Batch, Change, Entry, Filter, Memory, Relation, Session, Source, Span
from bethink.text import new_id

SCOPE = "project:bench"
MOST = 3.0  # times a search
TALKS, TURNS = 400, 24


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--database", type=Path, help="a database to copy")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = machine()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "memory.db"
        if args.database:
            shutil.copyfile(args.database, file)
            file.chmod(0o600)
        else:
            with Bethink(file, directory=file.parent) as memory:
                fill_scope(memory, args.memories, SCOPE)
        log("adding conversations, relations and votes")
        focus = enrich(file, folder)
        process, address, key = start(folder, file)
        try:
            times = measure(address, key, focus, args.rounds)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    report(found, times, args.json)


def enrich(file: Path, folder: Path) -> str:
    """What the pages show besides statements. Returns the id of a memory with neighbours."""
    with Bethink(file, directory=folder) as memory:
        store, now = memory.store, datetime.now(UTC)
        known = store.list(Filter((SCOPE,)), 400)
        relate = tuple(
            Relation(one.id, other.id, "relates_to")
            for one, other in zip(known[:200], known[200:], strict=True)
        )
        against = tuple(
            Relation(one.id, other.id, "contradicts")
            for one, other in zip(known[:50:2], known[1:50:2], strict=True)
        )
        votes = tuple(Change(one.id, "vote", {"vote": 1.0}) for one in known[:120])
        store.write(
            Batch(
                at=now,
                relate=(*relate, *against),
                change=votes,
                access=tuple(one.id for one in known[:300]),
            )
        )
        for number in range(TALKS):
            store.write(_talk(number, now - timedelta(hours=5 * number)))
        return known[0].id


def _talk(number: int, at: datetime) -> Batch:
    id, uri = f"talk-{number:04}", f"/transcripts/talk-{number:04}.jsonl"
    spans = [
        Span(f"{id}-{n}", SCOPE, id, None, f"Topic {n} of {id}", "", (n * 6 + 1, n * 6 + 6), 0, at)
        for n in range(TURNS // 6)
    ]
    said = []
    for line in range(TURNS):
        text = f"Turn {line} of {id} speaks of the cache, the queue and the release of week {number % 52}"
        told_by = {
            "role": ("user", "assistant")[line % 2],
            "turn": f"{id}-{line}",
            "host": ("claude", "codex")[number % 2],
        }
        said.append(
            Memory(
                new_id(),
                SCOPE,
                "context",
                text,
                text,
                at,
                at,
                session=id,
                span=spans[line // 6].id,
                source=uri,
                source_type="transcript",
                lines=(line + 1, line + 1),
                position=line,
                metadata=told_by,
            )
        )
    session = Session(
        id,
        SCOPE,
        ("claude", "codex")[number % 2],
        f"Talk number {number}",
        uri,
        at,
        at + timedelta(hours=1),
    )
    sources = ((SCOPE, Source(uri, "transcript")),)
    entries = tuple(Entry(one, (), False) for one in said)
    return Batch(
        at=at,
        sources=sources,
        sessions=(session,),
        spans=tuple((span, ()) for span in spans),
        add=entries,
    )


def start(folder: Path, file: Path) -> tuple[subprocess.Popen, str, Path]:
    """The server with a home of its own; the model stays where the settings have it."""
    home = folder / "home"
    home.mkdir()
    models = data_directory() / "models"
    if models.exists():
        (home / "models").symlink_to(models.resolve())
    environment = {**os.environ, "BETHINK_HOME": str(home)}
    command = [
        sys.executable,
        "-m",
        "bethink",
        "serve",
        "--port",
        "0",
        "--json",
        "--quiet",
        "--project",
        str(folder),
        "--database",
        str(file),
    ]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    if not line:
        raise SystemExit("The server did not start.")
    return process, json.loads(line)["url"], home


def pages(focus: str) -> dict[str, str]:
    where = urlencode({"project": SCOPE})
    found = {
        "newest": "/?",
        "memory": f"/memory/{focus}?",
        "to-dos": "/todos?",
        "sessions": "/sessions?",
        "sessions, one agent": "/sessions?host=codex&",
        "timeline": "/timeline?",
        "timeline of a subject": "/timeline?entity=PostgreSQL&",
        "conversation": "/session/talk-0007?",
        "graph, newest": "/graph?",
        "graph around a memory": f"/graph?focus={focus}&",
        "graph around PostgreSQL": "/graph?focus=about:PostgreSQL&",
        "graph data": f"/graph/data?focus={focus}&",
        "inbox, contradictions": "/inbox?queue=contradictions&",
        "inbox, duplicates": "/inbox?queue=duplicates&",
        "inbox, doubtful": "/inbox?queue=doubtful&",
        "inbox, questions": "/inbox?queue=questions&",
        "inbox, promotions": "/inbox?queue=promotions&",
        "health": "/health?",
        "projects": "/projects?",
    }
    return {name: path + where for name, path in found.items()}


def measure(address: str, home: Path, focus: str, rounds: int) -> dict[str, list[float]]:
    host = address.removeprefix("http://")
    session = Sessions(load_key(home)).begin()
    cookie = f"{session.cookie_name}={session.cookie}"
    connection = http.client.HTTPConnection(host, timeout=60)

    def ask(path: str) -> tuple[float, int]:
        begun = time.perf_counter()
        connection.request("GET", session.room + path, headers={"Cookie": cookie})
        answer = connection.getresponse()
        size = len(answer.read())
        if answer.status != 200:
            raise SystemExit(f"{path} answered {answer.status}.")
        return time.perf_counter() - begun, size

    questions = iter(Teller(3).memories(rounds * 4 + 8))
    asked = {
        "search": lambda: (
            f"/?q={quote(' '.join(next(questions).split()[:9]))}&{urlencode({'project': SCOPE})}"
        )
    }
    asked |= {name: (lambda path=path: path) for name, path in pages(focus).items()}
    for path in asked.values():  # whatever is opened late is open by now
        ask(path())
    while (
        b"running" in (page := _page(connection, session.room, cookie))
        and b"being counted" in page.lower()
    ):
        time.sleep(0.5)
    times: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(rounds):
        for name, path in asked.items():
            times[name].append(ask(path())[0])
            if name in ("memory", "graph data", "health"):
                times["search"].append(ask(asked["search"]())[0])
    return times


def _page(connection: http.client.HTTPConnection, room: str, cookie: str) -> bytes:
    connection.request("GET", f"{room}/health", headers={"Cookie": cookie})
    return connection.getresponse().read()


def report(found: dict, times: dict[str, list[float]], as_json: bool) -> None:
    base = statistics.median(times["search"])
    rows = {
        name: {
            "ms": 1000 * statistics.median(own),
            "worst_ms": 1000 * max(own),
            "times_a_search": statistics.median(own) / base,
        }
        for name, own in times.items()
    }
    if as_json:
        print(json.dumps({**found, "pages": rows}, indent=2))
    else:
        table(
            [
                ("page", "median ms", "slowest ms", "× a search"),
                *((name, *row.values()) for name, row in rows.items()),
            ]
        )
    slow = [name for name, row in rows.items() if row["times_a_search"] > MOST]
    if slow:
        raise SystemExit(f"More than {MOST:g} times a search: {', '.join(slow)}.")


if __name__ == "__main__":
    main()
