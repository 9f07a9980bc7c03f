"""How fast the transcripts of agents are taken in, without embedding.

    python bench/backfill.py [DIR] [--megabytes 120] [--one-file] [--json]

DIR holds transcripts of any agents; they are copied with other message ids until there is enough to read. Without
it conversations are made up: about 45 turns of 320 characters a megabyte, the rest output of tools, as in real ones. `--one-file`
reads one long conversation, to see that the memory does not grow with it. Seconds are processor time, of one core.
"""

import argparse
import json
import random
import re
import resource
import tempfile
import time
from pathlib import Path

from common import log, machine, table
from texts import THINGS, Teller

from bethink.api import Bethink
from bethink.features import conversations

PAGE = 21_500  # bytes of a made-up transcript for each turn that says something
TURNS = 60  # of a made-up session
IDS = re.compile(rb"\b([0-9a-f]{8})(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b")
CALLS = re.compile(rb"\b(msg_|req_|toolu_|call_)[A-Za-z0-9]{4}")


TALK = (
    "I'll look at {f} next and see where the {t} comes from.",
    "Now the {t} is read in {f}, and the {t} is passed on to {f}.",
    "Let me run the tests of {f}.",
    "Reading {f} and {f}.",
    "Updated {f}; the {t} has a name of its own.",
    "Same in {f}, one line lower.",
    "Can you also show me the {t} in {f}?",
    "Here is what {f} does with the {t}, step by step:",
    "Next: the {t}, then {f}.",
    "Done with the {t}.",
)


def spoken(rng: random.Random) -> str:
    """What people and agents say while they work, most of which is not worth keeping."""
    return (
        rng.choice(TALK)
        .replace("{t}", rng.choice(THINGS))
        .replace("{f}", f"`shop/{rng.choice(THINGS)}.py`")
    )


def copied(source: Path, target: Path, size: int) -> None:
    """The transcripts of a folder, again and again, each time with other ids of messages and sessions."""
    files = [
        file
        for file in sorted(source.rglob("*"))
        if file.suffix in conversations.SUFFIXES and file.is_file()
    ]
    written = turn = 0
    while written < size and files:

        def other(match: re.Match[bytes], turn: int = turn) -> bytes:
            return b"%08x" % ((int(match[1], 16) + turn * 0x01010101) & 0xFFFFFFFF) + match[2]

        def call(match: re.Match[bytes], turn: int = turn) -> bytes:
            return match[1] + b"%04x" % turn

        for file in files:
            data, name = file.read_bytes(), str(file.relative_to(source))
            if turn:
                data, name = (
                    CALLS.sub(call, IDS.sub(other, data)),
                    IDS.sub(other, name.encode()).decode(),
                )
            path = target / str(turn) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            written += len(data)
        turn += 1


def made(target: Path, size: int, one: bool) -> None:
    """Conversations of a user with Claude Code: a request, a few words while tools run, an answer."""
    rng, telling = random.Random(5), Teller(seed=5).memories(2000)
    written = number = 0
    while written < size:
        session, previous, turn = f"{number:08x}-0000-4000-8000-000000000000", None, 0
        with (target / f"{session}.jsonl").open("w") as file:
            while written < size and (one or turn < TURNS):
                role = "user" if turn % 6 == 0 else "assistant"
                text = " ".join(
                    rng.choice(telling) if rng.random() < 0.1 else spoken(rng) for _ in range(4)
                )
                own = {
                    "uuid": f"{number:08x}-{turn & 0xFFFF:04x}-4000-8000-{turn:012x}",
                    "parentUuid": previous,
                    "sessionId": session,
                }
                own |= {
                    "timestamp": f"2026-03-{1 + turn // 600 % 28:02}T{turn // 60 % 24:02}:{turn % 60:02}:00.000Z",
                    "cwd": "/home/ada/shop",
                }
                own |= {"version": "2.1.0", "isSidechain": False, "userType": "external"}
                content = text if role == "user" else [{"type": "text", "text": text}]
                said = json.dumps(
                    {**own, "type": role, "message": {"role": role, "content": content}}
                )
                rows = (
                    f"{at:5} | {rng.getrandbits(160):040x} = shop/orders/{rng.randrange(999)}.py"
                    for at in range((PAGE - 900) // 75)
                )
                result = [
                    {
                        "type": "tool_result",
                        "tool_use_id": f"toolu_{number}_{turn}",
                        "content": "\n".join(rows),
                    }
                ]
                previous = f"{number:08x}-{turn & 0xFFFF:04x}-4000-9000-{turn:012x}"
                own |= {"uuid": previous, "parentUuid": own["uuid"]}
                used = json.dumps(
                    {**own, "type": "user", "message": {"role": "user", "content": result}}
                )
                written += file.write(f"{said}\n{used}\n")
                turn += 1
        number += 1


def measured(folder: Path, database: Path) -> dict:
    files = conversations.find(folder, None)
    size = sum(path.stat().st_size for _, path in files)
    clock, processor = time.perf_counter(), time.process_time()
    for _, path in files:
        with path.open("rb") as lines:
            for line in lines:
                try:
                    json.loads(line)
                except ValueError:
                    continue
    parsing = time.process_time() - processor
    with Bethink(database, directory=folder) as memory:
        clock, processor = time.perf_counter(), time.process_time()
        done = conversations.backfill(memory, files, embed=False)
        spent, wall = time.process_time() - processor, time.perf_counter() - clock
        again = conversations.backfill(memory, files, embed=False)
    return {
        "megabytes": size / 1e6,
        "files": len(files),
        "turns": done.turns,
        "ideas": done.ideas,
        "topics": done.topics,
        "seconds": spent,
        "wall_seconds": wall,
        "megabytes_a_second": size / 1e6 / spent,
        "json_alone": size / 1e6 / parsing,
        "new_when_read_again": again.turns,
        "memory_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("transcripts", type=Path, nargs="?")
    parser.add_argument("--megabytes", type=int, default=120)
    parser.add_argument("--one-file", action="store_true", help="one long made-up conversation")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bethink-bench-") as temporary:
        folder = Path(temporary) / "transcripts"
        folder.mkdir()
        log(f"writing {args.megabytes} MB of transcripts")
        if args.transcripts and not args.one_file:
            copied(args.transcripts, folder, args.megabytes * 1_000_000)
        else:
            made(folder, args.megabytes * 1_000_000, args.one_file)
        result = {"machine": machine(), **measured(folder, Path(temporary) / "memory.db")}
    if args.json:
        print(json.dumps(result, indent=1))
        return
    table(
        [
            ("a backfill without embedding", ""),
            *(
                (name.replace("_", " "), value)
                for name, value in result.items()
                if name != "machine"
            ),
        ]
    )


if __name__ == "__main__":
    main()
