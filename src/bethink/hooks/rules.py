"""The index of rules: the statements of a project that apply to a call, by file or command.

The judge reads each statement once, beside the calls that it is about. Those it accepts are kept in a small file in the data directory. A
hook at a tool call reads only that file: it opens no database and no model if nothing applies. The file has hashes of names and ids of
memories, no text; it may be lost or outdated at any moment, and the worker rebuilds it when the database changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.config import locate_database
from bethink.hooks import state
from bethink.ingest.rules import Subjects, describe_calls, find_subjects, list_keys
from bethink.language.rules import binds, directs, lasts, reports
from bethink.model import RULE_KINDS, STATEMENTS, TRUST, is_inferred, is_untrusted_import

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.model import Memory

BAR = 0.6  # chance of the judge from which a statement is shown (bench/LOG.md, 2026-11-18)
DIRECTED_BAR = (
    0.35  # of a user's statement that requires or forbids something (bench/LOG.md, 2026-11-18)
)
READ = 280  # characters of a statement that the judge reads, as at prompts
_MOST = 2000  # statements of a project, the newest
_CHECK_INTERVAL = 60.0  # seconds between two looks at whether the index is still right


def find_file(database: str, scope: str) -> Path:
    return state.folder() / "rules" / f"{state.digest(f'{database} {scope}')}.json"


def hash_key(key: str) -> str:
    return state.digest(key)[:12]


def read_index(database: str, scope: str) -> Mapping[str, Any]:
    found = state.read_json(find_file(database, scope))
    return found if isinstance(found, dict) else {}


def find_marked(index: Mapping[str, Any], touched: Subjects) -> list[str]:
    """Ids of the statements that may apply to a call, the surest first."""
    rows: Mapping[str, Any] = index.get("keys") or {}
    keys = [hash_key(key) for key in list_keys(touched)] if rows else []
    found = [row for key in keys for row in rows.get(key, ())]
    return list(dict.fromkeys(id for id, _ in sorted(found, key=lambda row: -row[1])))


def is_stale(database: str, index: Mapping[str, Any]) -> bool:
    """Return True if the database may have changed since; one on a server is checked every minute."""
    if time.time() - index.get("looked", 0) < _CHECK_INTERVAL:
        return False
    return "://" in database or index.get("stamp") != take_stamp(database)


def take_stamp(database: str) -> list[int]:
    """Time and size of a database's files, which change with every write."""
    stamp: list[int] = []
    for name in (database, f"{database}-wal"):
        try:
            about = Path(name).stat()
            stamp += [about.st_mtime_ns, about.st_size]
        except OSError:
            stamp += [0, 0]
    return stamp


def refresh(memory: Bethink) -> int:
    """Rebuild the index if statements changed; return the number of statements in it."""
    database = locate_database(memory.config, memory.project)
    scope = memory.project.scope
    known = read_index(database, scope)
    stamp, looked = take_stamp(database), time.time()
    statements = list_statements(memory)
    print_of = state.digest(
        " ".join(f"{one.id}{one.content_hash}{one.trust}" for one in statements)
    )
    if known.get("print") != print_of:
        known = {**known, "keys": judge_statements(memory, statements), "print": print_of}
    named = _list_naming_symbols(memory)
    code_print = state.digest(f"{_stamp_commits(memory)} {' '.join(sorted(named))}")
    if known.get("code") != code_print:
        known = {**known, "gone": _list_gone(memory, named.values()), "code": code_print}
    state.write_json(find_file(database, scope), {**known, "stamp": stamp, "looked": looked})
    return len({id for rows in known["keys"].values() for id, _ in rows})


def _list_naming_symbols(memory: Bethink) -> dict[str, Memory]:
    """Return the statements of a project that name a function or a class, by their hash."""
    from bethink.features.citations import find_symbols

    wanted = memory.filter(kinds=STATEMENTS, scopes=(memory.project.scope,))
    found = memory.list(filter=wanted, limit=_MOST)
    return {one.content_hash: one for one in found if find_symbols(one.content)}


def _stamp_commits(memory: Bethink) -> int:
    """Time of the last commit or checkout; 0 where that cannot be said."""
    project = memory.project
    try:
        return ((project.common or project.root / ".git") / "logs" / "HEAD").stat().st_mtime_ns
    except OSError:
        return 0


def _list_gone(memory: Bethink, statements: Iterable[Memory]) -> list[str]:
    """Hashes of the symbols that statements name and that the code has no more."""
    from bethink.features.citations import find_gone_symbols

    gone = find_gone_symbols(memory, statements)
    return sorted({hash_key(f"symbol {name}") for names in gone.values() for name in names})


def find_gone(index: Mapping[str, Any], one: Memory, root: Path) -> str:
    """The first file, command or symbol of a statement that no longer exists; '' if all do."""
    from bethink.features.citations import find_missing, find_symbols

    hashes = set(index.get("gone") or ())
    symbols = (name for name in find_symbols(one.content) if hash_key(f"symbol {name}") in hashes)
    return next(iter(find_missing(one.content, root)), "") or next(symbols, "")


def note_gone(memory: Bethink, found: Sequence[Memory]) -> dict[str, str]:
    """Remarks for statements that name a file, a command or a symbol which is gone, by `gone ID`."""
    from bethink.features import citations

    notes = citations.note_gone(memory, found)
    database = locate_database(memory.config, memory.project)
    hashes = set(read_index(database, memory.project.scope).get("gone") or ())
    own = (one for one in found if one.kind in STATEMENTS and one.scope == memory.project.scope)
    for one in own if hashes else ():
        names = citations.find_symbols(one.content)
        gone = next((name for name in names if hash_key(f"symbol {name}") in hashes), "")
        if gone:
            notes.setdefault(f"gone {one.id}", f"{gone} no longer exists")
    return notes


def list_statements(memory: Bethink) -> list[Memory]:
    """List the statements of a project that name a file or a command and are trusted enough."""
    wanted = memory.filter(kinds=RULE_KINDS, min_trust=TRUST["agent"])
    found = memory.list(filter=wanted, limit=_MOST)
    return [one for one in found if find_subjects(one.content[:READ]).named and _is_rule(one)]


def _is_rule(one: Memory) -> bool:
    """Return True if a statement may bind a call.

    A note made on purpose only has to say more than what happened. A statement inferred from a conversation has to be worded as a rule:
    most of what a user asks for is done once (bench/LOG.md, 2026-11-19).
    """
    text = one.content[:READ]
    if one.newer or is_untrusted_import(one):
        return False
    if not is_inferred(one):
        return binds(text) or not reports(text)
    if one.trust >= TRUST["user"]:
        return lasts(text)
    return binds(text) and not reports(text)


def judge_statements(memory: Bethink, statements: Sequence[Memory]) -> dict[str, list[Any]]:
    """Hashed key → ids of the statements that the judge finds fit for such a call, with its chance."""
    from bethink.judge import Judge

    judge = memory.judge or (Judge(memory.config.threads) if memory.config.judge else None)
    asked = [
        (one.id, key, (call, one.content[:READ]), _find_bar(one))
        for one in statements
        for key, call in describe_calls(find_subjects(one.content[:READ]))
    ]
    keys: dict[str, list[Any]] = {}
    if judge is None or not asked:
        return keys
    pairs = list(dict.fromkeys(pair for _, _, pair, _ in asked))  # several keys ask the same
    chances = dict(zip(pairs, judge.apply(pairs), strict=True))
    for id, key, pair, bar in asked:
        if (chance := chances[pair]) >= bar:
            keys.setdefault(hash_key(key), []).append([id, round(chance, 3)])
    return keys


def _find_bar(one: Memory) -> float:
    """Return the chance from which a statement is shown: lower where a user requires or forbids something."""
    directed = one.trust >= TRUST["user"] and directs(one.content[:READ])
    return DIRECTED_BAR if directed else BAR
