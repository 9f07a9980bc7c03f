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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bethink import project as projects
from bethink.api import Bethink
from bethink.config import data_directory
from bethink.errors import BethinkError, InvalidInput, StoreCorrupt
from bethink.features import incoming, notes, readers
from bethink.features.incoming import Given
from bethink.features.knowledge import MARKDOWN
from bethink.features.merging import merge
from bethink.features.migration import without_password
from bethink.features.readers import Reading
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
from bethink.types import NOTHING, PERSONAL, RELATIONS, TEAM, TRUST, Event, Memory, Relation

PAGE = 200
GZIP, SQLITE = b"\x1f\x8b", b"SQLite format 3\x00"
# JSON of memories packs 5 to 10 times smaller; what unpacks to more is no export but a trap. Set by hand.
MOST_UNPACKED, SMALL = 50, 64 << 20
LARGEST = 1 << 30  # bytes of a file that is read as a whole. Set by hand.
EDITABLE = ("content", "kind", "tags")  # what an edited note changes of its memory
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
    edited: int = 0  # notes of a vault, each of which became a new version of its memory
    purged: int = 0  # that were purged here, and stay so
    left_out: int = 0  # of other projects, or personal
    redactions: int = 0
    relations: int = 0
    format: str = "export"  # whose it is
    kinds: Mapping[str, int] = NOTHING  # of those that were added
    left: Mapping[str, int] = NOTHING  # why → how many that another program's store has


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
    text_column: str = "",
    progress: Progress | None = None,
) -> Imported:
    """Takes in what a file, folder or database holds of this project; with `personal` what is personal too, with `all_scopes`
    everything."""
    reading = _read_place(memory, file, text_column)
    given = [
        _check(one, at, file, memory, trusted) for at, one in enumerate(reading.given, start=1)
    ]
    scopes = _choose_scopes(memory, file, given, reading.names, all_scopes, personal)
    moved = [_move(one, scopes) for one in given if one.memory.scope in scopes]
    chosen = list({one.memory.id: one for one in reversed(moved)}.values())[::-1]
    chosen, edits = _find_edits(memory.store, chosen, trusted)
    fate, ids = _find_known(memory.store, chosen)
    ids |= {link.target: link.target for one in chosen if one.saved for link in one.relations}
    new = [_rename(one, ids) for one in chosen if fate[one.memory.id] == ADDED]
    counts = Counter(fate.values())
    done = Imported(
        added=counts[ADDED],
        known=counts[KNOWN] + len(moved) - len(chosen) - len(edits),
        edited=len(edits),
        purged=counts[PURGED],
        left_out=len(given) - len(moved),
        redactions=sum(one.redactions for one in new),
        format=reading.format,
        kinds=dict(Counter(one.memory.kind for one in new).most_common()),
        left=dict(reading.left),
    )
    if dry_run:
        return done
    if trusted:
        # What is known under another id only says the same.
        same = [one for one in chosen if ids.get(one.memory.id) in _own_ids(one.memory)]
        known = [_rename(one, ids).record for one in same if fate[one.memory.id] == KNOWN]
        done = done._replace(merged=_merge_known(memory, known))
    _apply_edits(memory, edits)
    called = {
        scope: _name_of(memory, scope, reading.names.get(there)) for there, scope in scopes.items()
    }
    left = _put_new(memory, new, called, file, progress)
    done = done._replace(added=done.added - left, known=done.known + left)
    return done._replace(relations=_relate(memory, new, trusted))


# Reading


def _read_place(memory: Bethink, place: Path, text_column: str) -> Reading:
    """Everything in a file, folder or database, and the names and paths of its scopes where it tells them."""
    reading: Reading | None
    try:
        if notes.is_vault(place):
            reading = _read_vault(memory, place)
        elif place.is_dir() or place.suffix.lower() in MARKDOWN:
            reading = notes.read_folder(memory, place)
        elif _is_database(place, locate_database(memory.config, memory.project)):
            reading = readers.read_database(memory, place) or _read_own(place)
        elif place.suffix.lower() in (".csv", ".tsv"):
            reading = readers.read_csv(memory, place, _unpack(place), text_column)
        else:
            reading = _read_json(memory, place, text_column)
    except OSError as error:
        raise InvalidInput(
            f"{place} cannot be read: {error.strerror or error}.", "Check its permissions."
        ) from error
    if reading is None:
        raise InvalidInput(f"{place} is no export.", f"bethink import --markdown {place}")
    return reading


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


def _read_own(file: Path) -> Reading:
    """A database of this or an older version, as an export of it would be."""
    links: defaultdict[str, list[Any]] = defaultdict(list)
    names: dict[str, tuple[str, str]] = {}
    with open_copy(file) as store:
        for key, *called in export_items(store, "scopes", PAGE):
            name, path = redact_value(called)[0]
            names[key] = name, path
        for relation, _ in export_items(store, "relations", PAGE):
            links[relation.source].append({"type": relation.type, "target": relation.target})
        values = (
            {**record_to_json(one, whole=True), "relations": links[one.memory.id]}
            for one in export_items(store, "records", PAGE)
        )
        given = [_read_memory(value, at, file) for at, value in enumerate(values, start=1)]
    return Reading("database", given, names, {})


def _read_vault(memory: Bethink, folder: Path) -> Reading:
    """The notes of a vault: those that are memories under their ids, and what somebody wrote beside them."""
    values, rows = notes.read_vault(folder)
    given = []
    for note, value in values:
        one = _read_memory(value, 1, note.path)
        given.append(one._replace(saved=str(value.get("saved"))) if notes.is_edited(note) else one)
    given.sort(key=lambda one: not one.saved)  # of two copies of a note the edited one counts
    new = readers.convert(memory, rows, "vault", folder, trust=TRUST["user"])
    return new._replace(given=[*given, *new.given])


def _read_json(memory: Bethink, file: Path, text_column: str) -> Reading:
    """The objects of an export, whichever of its forms it has; or any others that have a text."""
    try:
        values = _parse_json(_unpack(file).decode("utf-8-sig"))
        if text_column or not _is_export(values):
            return readers.read_rows(memory, file, "JSON", values, text_column)
        if broken := [one for one in values if isinstance(one, ValueError)]:
            raise broken[0]
    except (ValueError, RecursionError, zlib.error) as error:
        raise InvalidInput(
            f"{file} is no export of Bethink, no database, no CSV and no JSON: {error}.",
            "`bethink import --help` names what is read; documents go in with --markdown.",
        ) from None
    given = [_read_memory(value, at, file) for at, value in enumerate(values, start=1)]
    return Reading("export", given, {}, {})


def _parse_json(text: str) -> list[Any]:
    """A list, one object, or an object on each line. In place of a line that cannot be read stands the reason."""
    try:
        value = json.loads(text)
        return value if isinstance(value, list) else [value]
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        if text.lstrip().startswith("[") or not lines:
            raise
    values = list(map(_parse_line, lines))
    if isinstance(values[0], ValueError):
        raise values[0]
    return values


def _parse_line(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        return error


def _is_export(values: Sequence[Any]) -> bool:
    first = values[0] if values else None
    if isinstance(first, dict) and {"path", "symbols"} <= first.keys():
        raise InvalidInput("That is a repo map.", "bethink import --repo-map FILE")
    return not values or (isinstance(first, dict) and {"scope", "content"} <= first.keys())


def _unpack(file: Path) -> bytes:
    with file.open("rb") as stream:
        raw = stream.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise InvalidInput(
            f"{file} is larger than {LARGEST >> 20:,} MB, more than is read at once.",
            "Split it: an object on each line, `split -l 100000 FILE`.",
        )
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
        missing = isinstance(error, KeyError)
        raise _refuse(number, file, f"it has no {error}" if missing else str(error)) from None
    return Given(record._replace(memory=memory, unique=unique), links)


def _refuse(number: int, file: Path, why: str) -> InvalidInput:
    return InvalidInput(f"Memory {number} of {file} is none of an export: {why[:200]}.", _NO_EXPORT)


def _is_unique(memory: Memory) -> bool:
    """Whether its text may stand only once in its scope: what was told, and what was said in a conversation beyond the turns."""
    return memory.kind != "context" if memory.session else memory.source_type == "note"


def _check(one: Given, number: int, file: Path, memory: Bethink, trusted: bool) -> Given:
    """A memory with nothing but values that our own pipeline would write, no secret, and no more trust than the file has."""
    if wrong := incoming.wrong_field(one.record, memory.config.max_characters):
        raise _refuse(number, file, f"its {wrong} is not in order")
    record, redactions = incoming.redact_record(one.record)
    if not trusted:
        record = incoming.limit_stranger(record, memory.clock())
    return one._replace(record=record, redactions=one.redactions + redactions)


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
    path = names.get(f"project:{_identity(scope)}", ("", ""))[1]
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


def _find_edits(
    store: Store, given: Sequence[Given], trusted: bool
) -> tuple[list[Given], list[tuple[Memory, Memory]]]:
    """Splits off the edited notes whose memory is as the note was written: each is a new version of it, if the file is the user's
    own. Of any other edit a new memory is made, which is proposed in the place of the known one."""
    edited = [one.memory.id for one in given if one.saved]
    here = {one.id: one for page in split_pages(edited, PAGE) for one in store.get(page)}
    kept, edits = [], []
    for one in given:
        known = here.get(one.memory.id)
        if known is None or known.scope != one.memory.scope or _says_the_same(known, one.memory):
            kept.append(one._replace(saved=""))
        elif trusted and one.saved == notes.digest(known.content, known.kind, known.tags):
            edits.append((known, one.memory))
        else:
            id = readers.make_id(known.id, one.memory.content_hash)
            record = one.record._replace(memory=one.memory._replace(id=id, superseded_by=None))
            link = Relation(id, known.id, "may_replace", one.memory.updated_at)
            kept.append(one._replace(record=record, relations=(link,)))
    return kept, edits


def _apply_edits(memory: Bethink, edits: Sequence[tuple[Memory, Memory]]) -> None:
    for here, edited in edits:
        memory.update(here.id, was=here, **{name: getattr(edited, name) for name in EDITABLE})


def _says_the_same(one: Memory, other: Memory) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in EDITABLE)


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
    return one._replace(record=one.record._replace(memory=memory), relations=kept)


# Writing


def _put_new(
    memory: Bethink,
    new: Sequence[Given],
    called: Names,
    place: Path,
    progress: Progress | None,
) -> int:
    """Puts memories in, page by page, and notes which those were. Returns how many somebody else put in meanwhile."""
    projects.pin(memory.project)
    left = done = 0
    for page in split_pages(new, PAGE):
        try:
            _note_added(memory, place, [one.memory.id for one in page])
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


# Taking an import back


class Undone(NamedTuple):
    """What became of the memories that an import had added."""

    removed: int = 0
    kept: int = 0  # that were changed since


def undo(memory: Bethink, place: Path, dry_run: bool = False) -> Undone | None:
    """Removes what imports of a file or folder added, as if it had never come: a later import brings it again. What was changed
    since stays. None where nothing was imported from there."""
    journal = _journal(memory, place)
    if not journal.exists():
        return None
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    added = {id: datetime.fromisoformat(line["at"]) for line in lines for id in line["ids"]}
    there = [one for page in split_pages(list(added), PAGE) for one in memory.store.get(page)]
    gone = [one.id for one in there if one.updated_at <= added[one.id]]
    if not dry_run:
        for page in split_pages(gone, PAGE):
            memory.store.take(Bundle(gone=tuple(page)))
        journal.unlink()
    return Undone(len(gone), len(there) - len(gone))


def _journal(memory: Bethink, place: Path) -> Path:
    """Where it is noted what came from a file or folder into the database that is used. It holds no text."""
    used = without_password(locate_database(memory.config, memory.project))
    name = f"{used}\n{place.resolve()}".encode("utf-8", "surrogateescape")
    return data_directory() / "imports" / f"{blake2b(name, digest_size=12).hexdigest()}.jsonl"


def _note_added(memory: Bethink, place: Path, ids: Sequence[str]) -> None:
    """Written before the memories are, so that an import that is killed can be taken back, too."""
    journal = _journal(memory, place)
    journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with journal.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"at": memory.clock().isoformat(), "ids": ids}) + "\n")
