"""Memories out into a file, and in from one: an export as JSON or JSON lines, or the database of another machine or an older version.

    read → check and redact → which scopes, and what they are called here → which are known → put in, page by page → relations

A memory keeps its id where that is free. One that is known, by its id or by its text, stays as it is, and what was purged does not come
back; so the same file may be read any number of times, and an import that was stopped goes on when it is repeated. Who wrote a file is
not known, so its memories are believed no further than other imports and change nothing that was here. `trusted` says that the file is
one's own: then histories come along, and those of known memories are merged.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bethink import project as projects
from bethink.api import Bethink
from bethink.errors import BethinkError, InvalidInput, StoreCorrupt
from bethink.features import incoming
from bethink.features.memorytool import SOURCE as TOOL_FILES
from bethink.features.merging import merge
from bethink.ingest.conversation import identity as turn_identity
from bethink.ingest.redact import redact_value
from bethink.store import located, open_copy
from bethink.store.base import Store
from bethink.store.bundle import (
    Bundle,
    Record,
    Stored,
    export_pages,
    record_from_json,
    record_to_json,
    version,
)
from bethink.store.places import content_hash
from bethink.text.ids import new_id
from bethink.types import (
    PERSONAL,
    RELATIONS,
    TEAM,
    Event,
    Memory,
    Relation,
)

PAGE = 200
GZIP, SQLITE = b"\x1f\x8b", b"SQLite format 3\x00"
# JSON of memories packs 5 to 10 times smaller; what unpacks to more is no export but a trap. Set by hand.
MOST_UNPACKED, SMALL = 50, 64 << 20
ADDED, KNOWN, PURGED = "added", "known", "purged"

_SCOPE = re.compile(r"project:[0-9a-f]{16}|container:[0-9a-f]{16}/[^\W_]+(-[^\W_]+)*")
_NO_EXPORT = "`bethink export --output FILE` writes one, as JSON or with --jsonl."

Progress = Callable[[int, int], None]


class Imported(NamedTuple):
    """What became of the memories of a file."""

    added: int = 0
    known: int = 0  # by id or text
    merged: int = 0  # known ones whose histories were made one
    purged: int = 0  # that were purged here, and stay so
    left_out: int = 0  # of other projects, or personal
    redactions: int = 0
    relations: int = 0


class Given(NamedTuple):
    """A memory of a file, and what it is related to."""

    record: Record
    relations: tuple[Relation, ...] = ()
    redactions: int = 0

    @property
    def memory(self) -> Memory:
        return self.record.memory


# Out


def export_records(memory: Bethink, memories: Iterator[Memory]) -> Iterator[dict[str, Any]]:
    """Memories as the JSON objects of an export, with their histories and relations as far as those can be read."""
    while page := list(islice(memories, PAGE)):
        ids = [one.id for one in page]
        try:
            relations = memory.store.relations(ids)
            known = {one.memory.id: one for one in memory.store.records(ids, vectors=False)}
        except StoreCorrupt:
            relations, known = [], {}
        for one in page:
            links = [
                {"type": link.type, "target": link.target}
                for link in relations
                if link.source == one.id
            ]
            value = record_to_json(known.get(one.id, Record(one, _is_unique(one))))
            yield {**value, "relations": links}


# In


def import_file(
    memory: Bethink,
    file: Path,
    *,
    trusted: bool = False,
    all_scopes: bool = False,
    personal: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Takes in what a file holds of this project; with `personal` what is personal too, with `all_scopes` everything."""
    given, names = _read_file(memory, file, trusted)
    scopes = _choose_scopes(memory, file, given, names, all_scopes, personal)
    moved = [_move(one, scopes) for one in given if one.memory.scope in scopes]
    chosen = list({one.memory.id: one for one in reversed(moved)}.values())[::-1]
    fate, ids = _judge(memory, chosen)
    new = [_rename(one, ids) for one in chosen if fate[one.memory.id] == ADDED]
    counts = Counter(fate.values())
    done = Imported(
        added=counts[ADDED],
        known=counts[KNOWN] + len(moved) - len(chosen),
        purged=counts[PURGED],
        left_out=len(given) - len(moved),
        redactions=sum(one.redactions for one in new),
    )
    if dry_run:
        return done
    if trusted:
        same = [
            _rename(one, ids).record
            for one in chosen
            if fate[one.memory.id] == KNOWN and _is_same(one.memory, ids)
        ]
        done = done._replace(merged=_merge_known(memory, same))
    done = _put_new(memory, new, done, names, scopes, progress)
    return done._replace(relations=_relate(memory, new, trusted))


def _read_file(
    memory: Bethink, file: Path, trusted: bool
) -> tuple[list[Given], dict[str, tuple[str, str]]]:
    """Everything in a file, checked, and the names and paths of its scopes where it tells them."""
    try:
        is_database = _is_database(file, located(memory.config, memory.project))
        values = [] if is_database else _values(file)
    except OSError as error:
        raise InvalidInput(
            f"{file} cannot be read: {error.strerror or error}.", "Check its permissions."
        ) from error
    names: dict[str, tuple[str, str]] = {}
    if is_database:
        with open_copy(file) as store:
            found = list(_of_database(store))
            for key, *called in _all(store, "scopes"):
                name, path = redact_value(called)[0]
                names[key] = name, path
    else:
        found = [_of_json(value, at, file) for at, value in enumerate(values, start=1)]
    checked = [_check(one, at, file, memory, trusted) for at, one in enumerate(found, start=1)]
    return checked, names


def _is_database(file: Path, used: str) -> bool:
    """Whether a file is a SQLite database, other than the one in use: to open and close that here would drop SQLite's locks."""
    if not file.is_file():
        return False  # a pipe, which can be read once
    if "://" not in used and Path(used).exists() and file.samefile(used):
        raise InvalidInput(
            f"{file} is the database that is used here anyway.", "Name another with --database."
        )
    with file.open("rb") as stream:
        return stream.read(len(SQLITE)) == SQLITE


def _of_database(store: Store) -> Iterator[Given]:
    relations: dict[str, list[Relation]] = {}
    for relation, _ in _all(store, "relations"):
        relations.setdefault(relation.source, []).append(relation)
    for record in _all(store, "records"):
        yield Given(record, tuple(relations.get(record.memory.id, ())))


def _all(store: Store, part: str) -> Iterator[Any]:
    return (item for page in export_pages(store, part, PAGE) for item in getattr(page, part))


def _values(file: Path) -> list[Any]:
    """The objects of an export, whichever of its forms it has."""
    try:
        text = _unpack(file).decode("utf-8-sig")
        if text.lstrip().startswith("["):
            values: list[Any] = json.loads(text)
        else:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError, zlib.error) as error:
        raise InvalidInput(f"{file} is no export of Bethink: {error}.", _NO_EXPORT) from None
    return values


def _unpack(file: Path) -> bytes:
    raw = file.read_bytes()
    if not raw.startswith(GZIP):
        return raw
    most = max(SMALL, MOST_UNPACKED * len(raw))
    unpacker = zlib.decompressobj(wbits=31)
    text = unpacker.decompress(raw, most)
    if unpacker.unconsumed_tail:
        raise InvalidInput(
            f"{file} unpacks to more than {most >> 20:,} MB from {len(raw) >> 20:,}, as no export does.",
            "If it is one, unpack it with `gunzip` first.",
        )
    if not unpacker.eof:
        raise ValueError("it ends too early")
    return text


def _of_json(value: Any, number: int, file: Path) -> Given:
    try:
        id = str(value.get("id"))
        whole = {"source_type": _guess_source_type(value), **value}
        whole["id"] = id if incoming.ID.fullmatch(id) else new_id()
        record = record_from_json(whole)
        memory = record.memory._replace(content_hash=content_hash(record.memory.content))
        links = tuple(
            Relation(memory.id, str(other["target"]), str(other["type"]), memory.updated_at)
            for other in value.get("relations") or ()
            if other["type"] in RELATIONS
        )
        unique = _is_unique(memory) if value.get("unique") is None else record.unique
    except incoming.WRONG as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)[:200]
        raise InvalidInput(
            f"Memory {number} of {file} is none of an export: {why}.", _NO_EXPORT
        ) from None
    return Given(record._replace(memory=memory, unique=unique), links)


def _guess_source_type(value: Mapping[str, Any]) -> str:
    """What kind of source a memory came from; the exports of a server do not say it."""
    if value.get("path") is None:
        return "note"
    return "transcript" if value.get("session") else "markdown"


def _is_unique(memory: Memory) -> bool:
    """Whether its text may stand only once in its scope: what was told, and what was said in a conversation beyond the turns."""
    told = memory.kind != "context" if memory.session else memory.source_type == "note"
    return told and memory.source != TOOL_FILES


def _check(one: Given, number: int, file: Path, memory: Bethink, trusted: bool) -> Given:
    """A memory with nothing but values that our own pipeline would write, no secret, and no more trust than the file has."""
    try:
        wrong = incoming.wrong_field(one.record, memory.config.max_characters)
    except incoming.WRONG as error:
        wrong = str(error)[:200]
    if wrong:
        raise InvalidInput(
            f"Memory {number} of {file} is none of an export: its {wrong} is not in order.",
            _NO_EXPORT,
        )
    record, redactions = incoming.redact_record(one.record)
    if not trusted:
        record = incoming.limit_stranger(record, memory.clock())
    return Given(record, one.relations, redactions)


# Which scopes


def _choose_scopes(
    memory: Bethink,
    file: Path,
    given: Sequence[Given],
    names: Mapping[str, tuple[str, str]],
    all_scopes: bool,
    personal: bool,
) -> dict[str, str]:
    """Scope in the file → scope here, for those that are taken in."""
    found = {one.memory.scope for one in given}
    own = _own_identity(memory, {_identity(scope) for scope in found} - {""}, names)
    chosen: dict[str, str] = {}
    for scope in found:
        _, slash, container = scope.partition("/")
        if scope == PERSONAL:
            chosen |= {scope: scope} if personal or all_scopes else {}
        elif scope == TEAM:
            chosen |= {scope: scope} if memory.shared and all_scopes else {}
        elif _identity(scope) == own:
            chosen[scope] = memory.project.container(container) if slash else memory.scope
        elif all_scopes and _SCOPE.fullmatch(scope):
            chosen[scope] = _by_path(scope, names)
    if found and not chosen and own is None:
        raise InvalidInput(
            f"{file} holds memories of several projects, and none of them is this one.",
            "--all-scopes takes in each under its own.",
        )
    return chosen


def _own_identity(
    memory: Bethink, identities: set[str], names: Mapping[str, tuple[str, str]]
) -> str | None:
    """Which project of a file is this one: by its id, its folder, for being the only one, or by its name."""
    project = memory.project
    if project.identity in identities:
        return project.identity
    known = {_identity(scope): names[scope] for scope in names if scope.startswith("project:")}
    here = [one for one in identities if known.get(one, ("", ""))[1] == str(project.root)]
    named = [one for one in identities if known.get(one, ("", ""))[0] == project.name]
    for candidates in (here, list(identities), named):
        if len(candidates) == 1:
            return candidates[0]
    return None


def _by_path(scope: str, names: Mapping[str, tuple[str, str]]) -> str:
    """The scope of a project that has its folder on this machine, by the id that the folder has; else as it is called in the file."""
    kind, _, rest = scope.partition(":")
    _, slash, container = rest.partition("/")
    path = names.get(f"project:{_identity(scope)}", names.get(scope, ("", "")))[1]
    if not path or projects.is_gone(Path(path)):
        return scope
    found = projects.find(Path(path))
    projects.pin(found)
    return f"{kind}:{found.identity}{slash}{container}"


def _identity(scope: str) -> str:
    return scope.partition(":")[2].partition("/")[0]


def _move(one: Given, scopes: Mapping[str, str]) -> Given:
    moved = one.memory._replace(scope=scopes[one.memory.scope])
    return one._replace(record=one.record._replace(memory=moved))


# What is known


def _judge(memory: Bethink, given: Sequence[Given]) -> tuple[dict[str, str], dict[str, str]]:
    """What becomes of each, by its id in the file; and under which id it is known here, or will be."""
    fate: dict[str, str] = {}
    ids: dict[str, str] = {}
    store = memory.store
    for at in range(0, len(given), PAGE):
        page = given[at : at + PAGE]
        wanted = [id for one in page for id in (one.memory.id, _other_id(one.memory))]
        there = {one.id: one.scope for one in store.get(wanted)}
        hashes = [one.memory.content_hash for one in page]
        buried = store.tombstoned(hashes)
        scopes = {one.memory.scope for one in page}
        twins = {scope: store.duplicates(hashes, scope) for scope in scopes}
        for one in page:
            old = one.memory
            id = old.id if there.get(old.id, old.scope) == old.scope else _other_id(old)
            visible = one.record.unique and old.deleted_at is None
            twin = twins[old.scope].get(old.content_hash) if visible else None
            if id in there or twin:
                fate[old.id], ids[old.id] = KNOWN, id if id in there else twin or id
            elif old.content_hash in buried:
                fate[old.id] = PURGED
            else:
                fate[old.id], ids[old.id] = ADDED, id
    return fate, ids


def _other_id(one: Memory) -> str:
    """The id of a memory whose own is taken by another scope: always the same, so that it is known when the file is read again."""
    tail = (
        int.from_bytes(blake2b(f"{one.id}\0{one.scope}".encode(), digest_size=8).digest())
        & 0x3FFF_FFFF_FFFF_FFFF
        | 0x8000_0000_0000_0000
    )
    digits = f"{tail:016x}"
    return f"{one.id[:19]}{digits[:4]}-{digits[4:]}"


def _is_same(one: Memory, ids: Mapping[str, str]) -> bool:
    """Whether what is known here is this very memory, and not another one with its text."""
    return ids[one.id] in (one.id, _other_id(one))


def _rename(one: Given, ids: Mapping[str, str]) -> Given:
    """With the ids of this database. What is not there replaces nothing."""
    old = one.memory
    memory = old._replace(id=ids[old.id], superseded_by=ids.get(old.superseded_by or ""))
    links = [
        relation._replace(source=memory.id, target=ids[relation.target])
        for relation in one.relations
        if relation.target in ids
    ]
    if memory.superseded_by:
        links.append(Relation(memory.superseded_by, memory.id, "supersedes", old.updated_at))
    kept = tuple(dict.fromkeys(link for link in links if link.source != link.target))
    return Given(one.record._replace(memory=memory), kept, one.redactions)


# Writing


def _put_new(
    memory: Bethink,
    new: Sequence[Given],
    done: Imported,
    names: Mapping[str, tuple[str, str]],
    scopes: Mapping[str, str],
    progress: Progress | None,
) -> Imported:
    called = {here: names.get(there, ("", "")) for there, here in scopes.items()}
    for scope in called:
        called[scope] = _name_of(memory, scope) or called[scope]
    projects.pin(memory.project)
    for at in range(0, len(new), PAGE):
        page = new[at : at + PAGE]
        try:
            left = _put_page(memory, page, called)
        except BethinkError as error:
            if not at:
                raise
            why = error.message.removesuffix("; nothing was changed.").removesuffix(".")
            error.message = f"{why}. {at:,} of {len(new):,} memories went in before."
            error.hint = f"{error.hint or ''} The same command goes on from there.".strip()
            raise
        done = done._replace(added=done.added - left, known=done.known + left)
        if progress:
            progress(min(at + PAGE, len(new)), len(new))
    return done


def _put_page(memory: Bethink, page: Sequence[Given], called: Mapping[str, tuple[str, str]]) -> int:
    """Puts in one page, with its vectors, in one transaction. Returns how many somebody else put in meanwhile."""
    vectors = _vectors(memory, [one.record for one in page])
    begun = (Event(memory.clock(), memory.actor, "add", {}, {}),)
    records = tuple(
        one.record._replace(
            events=one.record.events or begun, vectors=vectors.get(one.memory.id, ())
        )
        for one in page
    )
    heard = [one.memory for one in page if one.memory.session and one.memory.kind == "context"]
    turns = tuple(
        (one.scope, turn_identity(str(one.metadata["host"]), str(one.metadata["turn"])))
        for one in heard
        if {"host", "turn"} <= one.metadata.keys()
    )
    scopes = tuple((scope, *called[scope]) for scope in sorted({one.memory.scope for one in page}))
    expect = {one.memory.id: None for one in page}
    left = memory.store.take(Bundle(scopes=scopes, records=records, turns=turns), expect=expect)
    return len(left)


def _vectors(memory: Bethink, records: Sequence[Record]) -> dict[str, Stored]:
    """The vectors of records by id: those that they bring of the model that is used here, else made now."""
    model = memory.embedder.model if memory.embedder else None
    found = {
        record.memory.id: record.vectors
        for record in records
        if record.vectors and model in (None, record.vectors[0][0])
    }
    missing = [
        record.memory
        for record in records
        if record.memory.id not in found and record.memory.metadata.get("vector_index", True)
    ]
    if made := memory.vectors_of(missing):
        from bethink.store.vectors import encode

        for id, windows in made["vectors"].items():
            found[id] = tuple((made["model"], len(one), encode(one)) for one in windows)
    return found


def _name_of(memory: Bethink, scope: str) -> tuple[str, str] | None:
    """The name and path of a scope, where they are known here."""
    project = memory.project
    _, slash, name = scope.partition("/")
    if _identity(scope) == project.identity:
        return f"{project.name}{slash}{name}", str(project.root)
    return (scope, "") if scope in (PERSONAL, TEAM) else None


def _merge_known(memory: Bethink, known: Sequence[Record]) -> int:
    """Brings one's own changes elsewhere into memories that are here too: histories are merged as a sync merges them."""
    merged = 0
    for at in range(0, len(known), PAGE):
        theirs = {one.memory.id: one for one in known[at : at + PAGE] if one.events}
        expect: dict[str, bytes | None] = {}
        both: list[Record] = []
        for mine in memory.store.records(list(theirs)):
            record = merge(mine, theirs[mine.memory.id]).record
            if version(record) != version(mine):
                expect[mine.memory.id] = version(mine)
                both.append(record)
        vectors = _vectors(memory, both)
        records = tuple(one._replace(vectors=vectors.get(one.memory.id, ())) for one in both)
        merged += len(records) - len(memory.store.take(Bundle(records=records), expect=expect))
    return merged


def _relate(memory: Bethink, new: Sequence[Given], trusted: bool) -> int:
    """The relations last, when both ends are there. What a stranger says of memories that were here before is a proposal."""
    fresh = {one.memory.id for one in new}
    links = [
        link if trusted or link.target in fresh else link._replace(type=_proposal(link.type))
        for one in new
        for link in one.relations
    ]
    links = list(dict.fromkeys(links))
    number = 0
    for at in range(0, len(links), PAGE):
        page = links[at : at + PAGE]
        ends = sorted({end for link in page for end in link[:2]})
        there = {one.id for one in memory.store.get(ends)}
        whole = tuple((link, memory.actor) for link in page if {link.source, link.target} <= there)
        memory.store.take(Bundle(relations=whole))
        number += len(whole)
    return number


def _proposal(type: str) -> str:
    if type == "supersedes":
        return "may_replace"
    return type if type in ("contradicts", "may_replace") else "relates_to"
