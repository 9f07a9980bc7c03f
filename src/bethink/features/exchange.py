"""Memories out into a file, and in from one: an export as JSON or JSON lines, or the database of another machine or an older version.

    read → check and redact → which scopes, and what they are called here → which are known → put in, page by page → relations

A memory keeps its id where that is free. One that is known, by its id or by its text, stays as it is, and what was purged does not come
back; so the same file may be read any number of times, and an import that was stopped goes on when it is repeated. Who wrote a file is
not known, so its memories are believed no further than other imports and change nothing that was here. `trusted` says that the file is
one's own: then histories come along, and those of known memories are merged. What a record may hold is for `incoming`.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from bethink.store import locate_database, open_copy
from bethink.store.base import Store
from bethink.store.bundle import (
    Bundle,
    Record,
    Stored,
    export_items,
    record_from_json,
    record_to_json,
    split_pages,
    version,
)
from bethink.store.places import content_hash
from bethink.text.ids import new_id
from bethink.types import PERSONAL, RELATIONS, TEAM, Event, Memory, Relation

PAGE = 200
GZIP, SQLITE = b"\x1f\x8b", b"SQLite format 3\x00"
# JSON of memories packs 5 to 10 times smaller; what unpacks to more is no export but a trap. Set by hand.
MOST_UNPACKED, SMALL = 50, 64 << 20
ADDED, KNOWN, PURGED = "added", "known", "purged"

_SCOPE = re.compile(r"project:[0-9a-f]{16}|container:[0-9a-f]{16}/[^\W_]+(-[^\W_]+)*")
_NO_EXPORT = "`bethink export --output FILE` writes one, as JSON or with --jsonl."

Progress = Callable[[int, int], None]
Names = Mapping[str, tuple[str, str]]  # scope → its name and path


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
        links: dict[str, list[dict[str, str]]] = {}
        for link in relations:
            links.setdefault(link.source, []).append({"type": link.type, "target": link.target})
        for one in page:
            value = record_to_json(known.get(one.id, Record(one, _is_unique(one))))
            yield {**value, "relations": links.get(one.id, [])}


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
    fate, ids = _find_known(memory.store, chosen)
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
        # What is known under another id only says the same.
        same = [one for one in chosen if ids.get(one.memory.id) in _own_ids(one.memory)]
        known = [_rename(one, ids).record for one in same if fate[one.memory.id] == KNOWN]
        done = done._replace(merged=_merge_known(memory, known))
    called = {here: _name_of(memory, here, names.get(there)) for there, here in scopes.items()}
    left = _put_new(memory, new, called, progress)
    done = done._replace(added=done.added - left, known=done.known + left)
    return done._replace(relations=_relate(memory, new, trusted))


# Reading


def _read_file(memory: Bethink, file: Path, trusted: bool) -> tuple[list[Given], Names]:
    """Everything in a file, checked, and the names and paths of its scopes where it tells them."""
    names: dict[str, tuple[str, str]] = {}
    try:
        if _is_database(file, locate_database(memory.config, memory.project)):
            with open_copy(file) as store:
                found = list(_read_database(store))
                for key, *called in export_items(store, "scopes", PAGE):
                    name, path = redact_value(called)[0]
                    names[key] = name, path
        else:
            values = _read_export(file)
            found = [_read_memory(value, at, file) for at, value in enumerate(values, start=1)]
    except OSError as error:
        raise InvalidInput(
            f"{file} cannot be read: {error.strerror or error}.", "Check its permissions."
        ) from error
    return [_check(one, at, file, memory, trusted) for at, one in enumerate(found, start=1)], names


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


def _read_database(store: Store) -> Iterator[Given]:
    relations: dict[str, list[Relation]] = {}
    for relation, _ in export_items(store, "relations", PAGE):
        relations.setdefault(relation.source, []).append(relation)
    for record in export_items(store, "records", PAGE):
        yield Given(record, tuple(relations.get(record.memory.id, ())))


def _read_export(file: Path) -> list[Any]:
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


def _read_memory(value: Any, number: int, file: Path) -> Given:
    """A memory of an export. Older ones, and those of a server, say less of it."""
    try:
        id = str(value.get("id"))
        kind = "transcript" if value.get("session") else "markdown"
        whole = {"source_type": "note" if value.get("path") is None else kind, **value}
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
    names: Names,
    all_scopes: bool,
    personal: bool,
) -> dict[str, str]:
    """Scope in the file → scope here, for those that are taken in."""
    found = {one.memory.scope for one in given}
    own = _own_identity(memory, {_identity(scope) for scope in found} - {""}, names)
    wanted = {PERSONAL: personal or all_scopes, TEAM: memory.shared and all_scopes}
    chosen = {scope: scope for scope in found if wanted.get(scope)}
    for scope in found - wanted.keys():
        _, slash, container = scope.partition("/")
        if _identity(scope) == own:
            chosen[scope] = memory.project.container(container) if slash else memory.scope
        elif all_scopes and _SCOPE.fullmatch(scope):
            chosen[scope] = _find_by_path(scope, names)
    if found and not chosen and own is None:
        raise InvalidInput(
            f"{file} holds memories of several projects, and none of them is this one.",
            "--all-scopes takes in each under its own.",
        )
    return chosen


def _own_identity(memory: Bethink, identities: set[str], names: Names) -> str | None:
    """Which project of a file is this one: by its id, its folder, for being the only one, or by its name."""
    project = memory.project
    if project.identity in identities:
        return project.identity
    known = {_identity(scope): names[scope] for scope in names if scope.startswith("project:")}
    here = [one for one in identities if known.get(one, ("", ""))[1] == str(project.root)]
    named = [one for one in identities if known.get(one, ("", ""))[0] == project.name]
    candidates = (here, list(identities), named)
    return next((found[0] for found in candidates if len(found) == 1), None)


def _find_by_path(scope: str, names: Names) -> str:
    """The scope of a project that has its folder on this machine, by the id that the folder has; else as it is called in the file."""
    path = names.get(f"project:{_identity(scope)}", names.get(scope, ("", "")))[1]
    if not path or projects.is_gone(Path(path)):
        return scope
    found = projects.find(Path(path))
    projects.pin(found)
    return scope.replace(_identity(scope), found.identity, 1)


def _identity(scope: str) -> str:
    return scope.partition(":")[2].partition("/")[0]


def _name_of(memory: Bethink, scope: str, given: tuple[str, str] | None) -> tuple[str, str]:
    """The name and path of a scope: as they are known here, else as the file has them."""
    project = memory.project
    _, slash, name = scope.partition("/")
    if _identity(scope) == project.identity:
        return f"{project.name}{slash}{name}", str(project.root)
    return (scope, "") if scope in (PERSONAL, TEAM) else given or ("", "")


def _move(one: Given, scopes: Mapping[str, str]) -> Given:
    moved = one.memory._replace(scope=scopes[one.memory.scope])
    return one._replace(record=one.record._replace(memory=moved))


# What is known


def _find_known(store: Store, given: Sequence[Given]) -> tuple[dict[str, str], dict[str, str]]:
    """What becomes of each, by its id in the file; and under which id it is known here, or will be."""
    fate: dict[str, str] = {}
    ids: dict[str, str] = {}
    for page in split_pages(given, PAGE):
        wanted = [id for one in page for id in _own_ids(one.memory)]
        there = {one.id: one.scope for one in store.get(wanted)}
        hashes = [one.memory.content_hash for one in page]
        purged = store.find_purged(hashes)
        twins = {
            scope: store.duplicates(hashes, scope) for scope in {one.memory.scope for one in page}
        }
        for one in page:
            old = one.memory
            id, known = _match(one, there, twins[old.scope])
            if not known and old.content_hash in purged:
                fate[old.id] = PURGED
                continue
            fate[old.id], ids[old.id] = KNOWN if known else ADDED, id
    return fate, ids


def _match(one: Given, there: Mapping[str, str], twins: Mapping[str, str]) -> tuple[str, bool]:
    """The id of a memory here, and whether it is known: by its id, or as one that says the same."""
    own, other = _own_ids(one.memory)
    id = own if there.get(own, one.memory.scope) == one.memory.scope else other
    if id in there:
        return id, True
    told = one.record.unique and one.memory.deleted_at is None
    twin = twins.get(one.memory.content_hash) if told else None
    return twin or id, bool(twin)


def _own_ids(one: Memory) -> tuple[str, str]:
    """The id of a memory, and the one that it gets where that is taken by another scope: always the same, so that it is known
    when the file is read again."""
    tail = int.from_bytes(blake2b(f"{one.id}\0{one.scope}".encode(), digest_size=8).digest())
    digits = f"{tail & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000:016x}"
    return one.id, f"{one.id[:19]}{digits[:4]}-{digits[4:]}"


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
    memory: Bethink, new: Sequence[Given], called: Names, progress: Progress | None
) -> int:
    """Puts memories in, page by page. Returns how many somebody else put in meanwhile."""
    projects.pin(memory.project)
    left = done = 0
    for page in split_pages(new, PAGE):
        try:
            left += _put_page(memory, [one.record for one in page], called)
        except BethinkError as error:
            if done:
                why = error.message.removesuffix("; nothing was changed.").removesuffix(".")
                error.message = f"{why}. {done:,} of {len(new):,} memories went in before."
                error.hint = f"{error.hint or ''} The same command goes on from there.".strip()
            raise
        done += len(page)
        if progress:
            progress(done, len(new))
    return left


def _put_page(memory: Bethink, page: Sequence[Record], called: Names) -> int:
    """Puts in one page, with its vectors, in one transaction."""
    begun = (Event(memory.clock(), memory.actor, "add", {}, {}),)
    records = [one._replace(events=one.events or begun) for one in _embed(memory, page)]
    turns = tuple(
        (one.scope, turn_identity(str(one.metadata["host"]), str(one.metadata["turn"])))
        for one in (record.memory for record in page)
        if one.session and one.kind == "context" and {"host", "turn"} <= one.metadata.keys()
    )
    scopes = tuple((scope, *called[scope]) for scope in sorted({one.memory.scope for one in page}))
    expect = {one.memory.id: None for one in page}
    bundle = Bundle(scopes=scopes, records=tuple(records), turns=turns)
    return len(memory.store.take(bundle, expect=expect))


def _embed(memory: Bethink, records: Iterable[Record]) -> list[Record]:
    """Records with the vectors that they bring of the model that is used here, else with such as are made now."""
    model = memory.embedder.model if memory.embedder else None
    kept = [
        one if not one.vectors or model in (None, one.vectors[0][0]) else one._replace(vectors=())
        for one in records
    ]
    missing = [
        one.memory
        for one in kept
        if not one.vectors and one.memory.metadata.get("vector_index", True)
    ]
    made = memory.vectors_of(missing)
    if not made:
        return kept
    from bethink.store.vectors import encode

    fresh: dict[str, Stored] = {
        id: tuple((made["model"], len(one), encode(one)) for one in windows)
        for id, windows in made["vectors"].items()
    }
    return [one._replace(vectors=fresh.get(one.memory.id, one.vectors)) for one in kept]


def _merge_known(memory: Bethink, known: Sequence[Record]) -> int:
    """Brings one's own changes elsewhere into memories that are here too: histories are merged as a sync merges them."""
    merged = 0
    for page in split_pages([one for one in known if one.events], PAGE):
        theirs = {one.memory.id: one for one in page}
        mine = {one.memory.id: one for one in memory.store.records(list(theirs))}
        both = [merge(one, theirs[id]).record for id, one in mine.items()]
        changed = [one for one in both if version(one) != version(mine[one.memory.id])]
        expect = {one.memory.id: version(mine[one.memory.id]) for one in changed}
        bundle = Bundle(records=tuple(_embed(memory, changed)))
        merged += len(changed) - len(memory.store.take(bundle, expect=expect))
    return merged


def _relate(memory: Bethink, new: Sequence[Given], trusted: bool) -> int:
    """The relations last, when both ends are there. What a stranger says of memories that were here before is a proposal."""
    fresh = {one.memory.id for one in new}
    links = dict.fromkeys(
        link if trusted or link.target in fresh else link._replace(type=_propose(link.type))
        for one in new
        for link in one.relations
    )
    number = 0
    for page in split_pages(list(links), PAGE):
        there = {
            one.id for one in memory.store.get(sorted({end for link in page for end in link[:2]}))
        }
        whole = tuple((link, memory.actor) for link in page if {link.source, link.target} <= there)
        memory.store.take(Bundle(relations=whole))
        number += len(whole)
    return number


def _propose(type: str) -> str:
    if type == "supersedes":
        return "may_replace"
    return type if type in ("contradicts", "may_replace") else "relates_to"
