"""Export memories to a file, and import them from one.

A file is an export as JSON or JSON lines, a vault of notes, or the database of another machine or
an older version. `readers` handles the files of other programs.

    read → check and redact → map scopes → find known ones → store page by page → add relations

A memory keeps its id if that is free. A known one, by id or by text, stays as it is, and a purged
one does not come back. So a file can be imported repeatedly, and an interrupted import resumes.

The author of a file is unknown, so its memories are trusted like other imports and change no
existing memory. `trusted` means that the file is the user's own: histories are imported and merged
with those of known memories, known memories get the trust of the file, and an edited note of a
vault becomes a new version of its memory. `sync` defines the valid values of a record.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from bethink import project as projects
from bethink import registry
from bethink.api import Bethink
from bethink.config import locate_database
from bethink.errors import BethinkError, InvalidInput, StoreCorrupt
from bethink.features import readers, sync
from bethink.features.knowledge import MARKDOWN
from bethink.features.readers import Names, Reading
from bethink.features.sync import Incoming, merge
from bethink.ingest import markdown
from bethink.ingest.edit import edit_values
from bethink.ingest.files import unify_line_ends
from bethink.ingest.reconcile import BELIEVED
from bethink.ingest.redact import redact_value
from bethink.model import (
    KINDS,
    PERSONAL,
    RELATIONS,
    TEAM,
    Change,
    Event,
    Memory,
    Relation,
    Values,
    fields_of,
)
from bethink.store.base import Store
from bethink.store.places import content_hash
from bethink.store.rows import Record, Stored, stamp
from bethink.store.sqlite import open_copy
from bethink.store.transfer import (
    ITEMS_PER_WRITE,
    Bundle,
    record_from_json,
    record_to_json,
    rename_scope,
    split_pages,
    version,
)

SQLITE = b"SQLite format 3\x00"
LARGEST_FILE = 512 << 20  # bytes of a file that is read at once. Set by hand.
EDITED = "edited, and not taken: the memory was changed here too, or --trusted is missing"

_SCOPE = re.compile(r"project:[0-9a-f]{16}|container:[0-9a-f]{16}/[^\W_]+(-[^\W_]+)*")
_NO_EXPORT = "`bethink export --output FILE` writes one, as JSON or with --jsonl."

Progress = Callable[[int, int], None] | None
JsonObject = Mapping[str, Any]  # a memory in the form of an export


class Imported(NamedTuple):
    """Counts of an import."""

    added: int
    known: int  # by id or text
    merged: int  # known ones whose histories were merged
    believed: int  # known ones whose trust was raised
    edited: int  # notes of a vault that became a new version of their memory
    purged: int  # purged here before, and not added
    left_out: int  # of other projects, or personal
    redactions: int
    relations: int
    format: str  # program or format
    kinds: Mapping[str, int]  # of the added memories
    left: Mapping[str, int]  # reason → number of skipped rows


def export_records(memory: Bethink, memories: Iterator[Memory]) -> Iterator[dict[str, Any]]:
    """Yield memories as JSON objects, with their histories and relations if those can be read."""
    while page := list(islice(memories, ITEMS_PER_WRITE)):
        ids = [one.id for one in page]
        try:
            relations = memory.store.relations(ids)
            known = {one.id: one for one in memory.store.records(ids, vectors=False)}
        except StoreCorrupt:
            relations, known = [], {}
        links: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
        for link in relations:
            links[link.source].append({"type": link.type, "target": link.target})
        for one in page:
            value = record_to_json(known.get(one.id, Record(one, _is_unique(one))))
            yield {**value, "relations": links[one.id]}


def import_file(
    memory: Bethink,
    file: Path,
    *,
    trusted: bool = False,
    all_scopes: bool = False,
    personal: bool = False,
    dry_run: bool = False,
    text_column: str = "",
    progress: Progress = None,
) -> Imported:
    """Import the memories of this project from a file, folder or database.

    With `personal` also personal ones, with `all_scopes` everything.
    """
    if trusted:
        memory.require_person("Saying that a file is the user's own")
    reading = _read_place(memory, file, text_column)
    incoming = [
        _check(one, at, file, memory, trusted) for at, one in enumerate(reading.records, start=1)
    ]
    scopes = _choose_scopes(memory, incoming, reading.names, all_scopes, personal)
    moved = [
        one._replace(record=rename_scope(one.record, scopes))
        for one in incoming
        if one.memory.scope in scopes
    ]
    chosen = list({one.id: one for one in reversed(moved)}.values())[::-1]
    edits, refused = _find_edits(memory, chosen, trusted)
    new, same, twins, purged = _find_known(memory.store, chosen)
    doubted = _find_doubted(memory.store, (*same, *twins)) if trusted else []
    done = Imported(
        added=len(new),
        known=len(moved) - len(edits) - refused - len(new) - purged,
        merged=0,
        believed=len(doubted),
        edited=len(edits),
        purged=purged,
        left_out=len(incoming) - len(moved),
        redactions=sum(one.redactions for one in new),
        relations=0,
        format=reading.format,
        kinds=dict(Counter(one.memory.kind for one in new).most_common()),
        left={**reading.left, **({EDITED: refused} if refused else {})},
    )
    if dry_run:
        return done
    names: Names = {}
    for there, scope in scopes.items():
        names |= memory.names_of(scope) or {scope: reading.names.get(there, ("", ""))}
    records = [one.record for one in ((*same, *new) if trusted else new)]
    put = _put(memory, records, names, file, progress)
    _believe(memory, doubted, file)
    for here, edit in edits:
        if edit.fields or edit.clear:
            memory.update(here.id, was=here, clear=edit.clear, **edit.fields)
    merged = len(put - {one.id for one in new})
    return done._replace(merged=merged, relations=_relate(memory, new, trusted))


class NoteView(NamedTuple):
    """Parts of a note that a person may edit: its text, and fields as they are written."""

    content: str
    head: Values


class Edit(NamedTuple):
    """Fields of a memory that were edited in its note."""

    fields: dict[str, Any]
    clear: Sequence[str]  # fields that were removed


# Reading


def _read_place(memory: Bethink, place: Path, text_column: str) -> Reading:
    """Read everything in a file, folder or database, with names and paths of scopes if known."""
    try:
        if found := readers.find_importer(place):
            return readers.read_importer(memory, *found)
        if place.is_dir() or place.suffix.lower() in MARKDOWN:
            raise InvalidInput(f"{place} is not an export.", f"bethink import --markdown {place}")
        if _is_database(place, locate_database(memory.config, memory.project)):
            return readers.read_database(memory, place) or _read_own(place)
        text = _read_whole(place).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{place} is not UTF-8: byte {error.start} cannot be read.",
            f"Unpack it if it is packed; if it is a text: iconv -f WINDOWS-1252 -t UTF-8 {place.name} > utf8{place.suffix}",
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"{place} cannot be read: {error.strerror or error}.", "Check its permissions."
        ) from error
    if place.suffix.lower() in (".csv", ".tsv"):
        return readers.read_csv(memory, place, text, text_column)
    return _read_json(memory, place, text, text_column)


def _is_database(file: Path, used: str) -> bool:
    """Return True if a file is a SQLite database, but refuse the one in use.

    Opening and closing that one here would drop SQLite's locks.
    """
    if not file.is_file():
        return False  # a pipe, which can be read once
    if "://" not in used and Path(used).exists() and file.samefile(used):
        raise InvalidInput(f"{file} is the database in use.", "Name another with --database.")
    with file.open("rb") as stream:
        return stream.read(len(SQLITE)) == SQLITE


def _read_own(file: Path) -> Reading:
    """Read a Bethink database of this or an older version."""
    links: defaultdict[str, list[Relation]] = defaultdict(list)
    with open_copy(file) as store:
        for relation, _ in store.items("relations"):
            links[relation.source].append(relation)
        records = store.items("records", vectors=False)
        incoming = [Incoming(one, tuple(links[one.id])) for one in records]
        names = {key: tuple(redact_value(called)[0]) for key, *called in store.items("scopes")}
    return Reading("database", incoming, names, {})


def _read_json(memory: Bethink, file: Path, text: str, text_column: str) -> Reading:
    """Read the objects of an export in any of its forms, or any others with a text."""
    try:
        values = _parse_json(text)
        names = set(values[0]) if values and isinstance(values[0], dict) else set()
        if {"path", "symbols"} <= names:
            raise InvalidInput("That is a repo map.", "bethink import --repo-map FILE")
        if text_column or not {"scope", "content"} <= names:
            return readers.read_rows(memory, file, "JSON", values, text_column)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{file} is not a Bethink export, a database, CSV or JSON: {error}.",
            "`bethink import --help` names what is read; documents go in with --markdown.",
        ) from None
    records = [_read_memory(value, at, file) for at, value in enumerate(values, start=1)]
    return Reading("export", records, {}, {})


def _parse_json(text: str) -> list[Any]:
    """Parse a list, one object, or an object on each line."""
    try:
        value = json.loads(text)
    except ValueError:
        lines = filter(str.strip, text.split("\n"))
        value = json.loads(f"[{','.join(lines)}]")
    return value if isinstance(value, list) else [value]


def _read_whole(file: Path) -> bytes:
    """Read a file, up to the size limit."""
    with file.open("rb") as stream:
        raw = stream.read(LARGEST_FILE + 1)
    if len(raw) > LARGEST_FILE:
        raise InvalidInput(
            f"{file} is larger than the limit of {LARGEST_FILE >> 20:,} MB.",
            "Split it: an object on each line, `split -l 100000 FILE`.",
        )
    return raw


def _read_memory(value: JsonObject, number: int, file: Path) -> Incoming:
    """Read a memory of an export. The export of a server has fewer fields."""
    try:
        read = "transcript" if value.get("session") else "markdown"
        record = record_from_json({"source_type": read if value.get("path") else "note", **value})
        memory = record.memory._replace(content_hash=content_hash(record.memory.content))
        links = tuple(
            Relation(memory.id, str(other["target"]), str(other["type"]), memory.updated_at)
            for other in value.get("relations") or ()
            if other["type"] in RELATIONS
        )
        unique = record.unique if "unique" in value else _is_unique(memory)
    except sync.WRONG as error:
        missing = isinstance(error, KeyError)
        raise _refuse(number, file, f"missing {error}" if missing else str(error)) from None
    return Incoming(record._replace(memory=memory, unique=unique, vectors=()), links)


def _refuse(number: int, file: Path, why: str) -> InvalidInput:
    return InvalidInput(
        f"Record {number} in {file} is not a valid export record: {why[:200]}.", _NO_EXPORT
    )


def _is_unique(memory: Memory) -> bool:
    """Return True if the text may occur only once in its scope: a note, or an idea of a conversation."""
    return memory.kind != "context" if memory.session else memory.source_type == "note"


def _check(one: Incoming, number: int, file: Path, memory: Bethink, trusted: bool) -> Incoming:
    """Refuse values that our own pipeline would not write, remove secrets, and limit the trust."""
    if wrong := sync.wrong_field(one.record, memory.config.max_characters):
        raise _refuse(number, file, f"invalid {wrong}")
    record, redactions = sync.redact_record(one.record)
    now = memory.clock()
    record = sync.cap_times(record, now) if trusted else sync.limit_stranger(record, now)
    return one._replace(record=record, redactions=one.redactions + redactions)


# Which scopes


def _choose_scopes(
    memory: Bethink, incoming: Sequence[Incoming], names: Names, all_scopes: bool, personal: bool
) -> dict[str, str]:
    """Map scopes in the file to scopes here, for those that are imported."""
    found = {one.memory.scope for one in incoming}
    own = _own_identity(memory, {_identity(scope) for scope in found} - {""}, names)
    wanted = {PERSONAL: personal or all_scopes, TEAM: memory.shared and all_scopes}
    chosen = {scope: scope for scope in found if wanted.get(scope)}
    for scope in found - wanted.keys():
        _, slash, container = scope.partition("/")
        if _identity(scope) == own:
            chosen[scope] = memory.project.container(container) if slash else memory.scope
        elif all_scopes and _SCOPE.fullmatch(scope):
            chosen[scope] = _find_by_path(memory, scope, names)
    return chosen


def _own_identity(memory: Bethink, identities: set[str], names: Names) -> str | None:
    """Find this project in a file: by id, by folder, as the only one, or by name."""
    project = memory.project
    if project.identity in identities:
        return project.identity
    known = {one: names.get(f"project:{one}", ("", "")) for one in identities}
    here, named = (
        [one for one in identities if label in known[one]]
        for label in (str(project.root), project.name)
    )
    candidates = (here, list(identities), named)
    return next((found[0] for found in candidates if len(found) == 1), None)


def _find_by_path(memory: Bethink, scope: str, names: Names) -> str:
    """Scope of a project by its folder on this machine, or as it is in the file."""
    path = names.get(f"project:{_identity(scope)}", ("", ""))[1]
    if not path or registry.is_gone(Path(path)):
        return scope
    found = memory.recognise(projects.find(Path(path)))
    projects.pin(found)
    return scope.replace(_identity(scope), found.identity, 1)


def _identity(scope: str) -> str:
    return scope.partition(":")[2].partition("/")[0]


# What is known


def _find_edits(
    memory: Bethink, incoming: Sequence[Incoming], trusted: bool
) -> tuple[list[tuple[Memory, Edit]], int]:
    """Pair each memory with the edits of its note, if only the note changed; count the others.

    Applies only to the user's own vault.
    """
    here = {one.id: one for one in memory.store.get([one.id for one in incoming if one.saved])}
    edits, refused = [], 0
    for one in incoming:
        known = here.get(one.id)
        if known is None or known.scope != one.memory.scope:
            continue
        before, after = _view_memory(known), _view_note(one)
        waiting = _find_waiting(one.saved, after, before)
        if not waiting:
            continue
        if trusted and _find_waiting(one.saved, before, after).isdisjoint(waiting):
            edits.append((known, _read_edit(memory, known, before, after, waiting)))
        else:
            refused += 1
    return edits, refused


def _find_waiting(saved: str, view: NoteView, other: NoteView) -> set[str]:
    """Return the parts of a note that changed since it was written, and that the other side does not have."""
    written = dict(zip(_PARTS, saved.split("."), strict=False))
    now, there = _digest_parts(view), _digest_parts(other)
    return {part for part, digest in written.items() if now[part] not in (digest, there[part])}


def _read_edit(
    memory: Bethink, known: Memory, before: NoteView, after: NoteView, parts: set[str]
) -> Edit:
    """Return what was edited in parts of a note, checked before anything is written."""
    fields: dict[str, Any] = {}
    clear = []
    if "text" in parts and after.content != before.content:
        fields["content"] = after.content
    for name in (name for part in parts for name in _PARTS[part]):
        info, value = MEMORY_FIELDS[name], after.head.get(name)
        if value == before.head.get(name):
            continue
        if value is not None:
            fields[name] = readers.read_edit(value, info)
        elif info.clearable:
            clear.append(name)
        elif info.shape in ("texts", "entities", "object"):
            fields[name] = {} if info.shape == "object" else ()
        elif name == "summary":
            fields[name] = ""  # made anew
    if (
        "metadata" in fields
    ):  # a note knows no numbers in metadata: what was not edited stays as it is
        written = before.head.get("metadata", {})
        fields["metadata"] = {
            name: known.metadata[name] if written.get(name) == value else value
            for name, value in fields["metadata"].items()
        }
    if fields or clear:
        edit_values(known, fields, clear, memory.config.max_characters, known.trust)
    return Edit(fields, clear)


def _find_known(
    store: Store, incoming: Sequence[Incoming]
) -> tuple[list[Incoming], list[Incoming], list[Incoming], int]:
    """Split memories into new ones, those known by id, and those known by text, with ids of this database.

    Also returns the number of purged ones.
    """
    # If another scope uses its id, a memory gets a derived one, the same each time, so that it is recognised when the file is imported again.
    others = {one.id: readers.make_id(one.id, one.memory.scope) for one in incoming}
    wanted = [*others, *others.values()]
    there = {one.id: one.scope for page in split_pages(wanted) for one in store.get(page)}
    twins = _find_twins(store, incoming)
    purged = store.find_purged([one.memory.content_hash for one in incoming])
    ids = dict(twins)
    new, same, twin_records = [], [], []
    for one in incoming:
        memory = one.memory
        is_free = there.get(memory.id, memory.scope) == memory.scope
        id = memory.id if is_free else others[memory.id]
        if id in there:
            same.append(one)
        elif memory.id in twins:
            twin_records.append(one)
            continue
        elif memory.content_hash in purged:
            continue
        else:
            new.append(one)
        ids[memory.id] = id
    new, same, twin_records = (
        [_rename(one, ids) for one in found] for found in (new, same, twin_records)
    )
    return new, same, twin_records, len(incoming) - len(ids)


def _find_doubted(store: Store, known: Sequence[Incoming]) -> list[tuple[Memory, int]]:
    """Memories here that the user's own file trusts more, each with that trust."""
    here = {one.id: one for page in split_pages(known) for one in store.get(_ids(page))}
    wanted: dict[str, int] = {}
    for one in known:
        wanted[one.id] = max(wanted.get(one.id, 0), one.memory.trust)
    return [
        (here[id], trust)
        for id, trust in wanted.items()
        if id in here and here[id].deleted_at is None and here[id].trust < trust
    ]


def _ids(incoming: Sequence[Incoming]) -> list[str]:
    return [one.id for one in incoming]


def _find_twins(store: Store, incoming: Sequence[Incoming]) -> dict[str, str]:
    """Map ids to the ids of existing notes with the same text."""
    unique = [one.memory for one in incoming if one.record.unique and one.memory.deleted_at is None]
    twins: dict[str, str] = {}
    for scope in {one.scope for one in unique}:
        hashes = {one.id: one.content_hash for one in unique if one.scope == scope}
        known = store.duplicates(list(hashes.values()), scope)
        twins |= {id: known[hash] for id, hash in hashes.items() if hash in known}
    return twins


def _rename(one: Incoming, ids: Mapping[str, str]) -> Incoming:
    """Replace ids by those of this database. A memory that is not here replaces nothing."""
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


def _put(
    memory: Bethink,
    records: Sequence[Record],
    names: Names,
    place: Path,
    progress: Progress,
) -> set[str]:
    """Store memories page by page. Returns the ids of those that changed anything."""
    projects.pin(memory.project)
    put: set[str] = set()
    done = 0
    for page in split_pages(records, ITEMS_PER_WRITE):
        put |= _put_page(memory, page, names, place)
        done += len(page)
        if progress:
            progress(done, len(records))
    return put


def _put_page(memory: Bethink, page: Sequence[Record], names: Names, place: Path) -> set[str]:
    """Store one page with its vectors and a note of new ids, in one transaction.

    Existing memories are merged as in a sync.
    """
    mine = {one.id: one for one in memory.store.records([one.id for one in page])}
    begun = (Event(memory.clock(), memory.actor, "add", {}, {}),)
    expect: dict[str, bytes | None] = {}
    records = []
    for one in page:
        here = mine.get(one.id)
        record = _merge_known(here, one) if here else one._replace(events=one.events or begun)
        was = version(here) if here else None
        if version(record) != was:
            records.append(record)
            expect[one.id] = was
    scopes = tuple((scope, *names[scope]) for scope in sorted({one.memory.scope for one in page}))
    bundle = sync.note_turns(Bundle(scopes=scopes, records=tuple(_embed(memory, records))))
    note = None
    if added := [id for id, was in expect.items() if was is None]:
        details = {"at": memory.clock().isoformat(), "ids": added}
        note = (_name_page(place, details), json.dumps(details))
    return expect.keys() - set(memory.writer.take(bundle, expect=expect, note=note))


def _merge_known(here: Record, incoming: Record) -> Record:
    """Merge a known memory with the one in the file; its trust is changed separately by `_believe`."""
    trusted_alike = incoming._replace(memory=incoming.memory._replace(trust=here.memory.trust))
    return merge(here, trusted_alike).record


def _believe(memory: Bethink, doubted: Sequence[tuple[Memory, int]], place: Path) -> None:
    """Raise the trust of known memories to that of the user's own file, with a note for `undo`."""
    for page in split_pages(doubted):
        memory.write(change=tuple(Change(one.id, BELIEVED, {"trust": to}) for one, to in page))
        before = {one.id: one.trust for one, _ in page}
        details = {"at": memory.clock().isoformat(), "ids": [], "believed": before}
        memory.writer.take(Bundle(), note=(_name_page(place, details), json.dumps(details)))


def _embed(memory: Bethink, records: Sequence[Record]) -> list[Record]:
    """Add vectors to records: existing ones, or new ones."""
    missing = [
        one.memory
        for one in records
        if not one.vectors and one.memory.metadata.get("vector_index", True)
    ]
    made = memory.vectors_of(missing)
    if not made:
        return list(records)
    from bethink.store.vectors import encode

    fresh: dict[str, Stored] = {
        id: tuple((made["model"], len(one), encode(one)) for one in windows)
        for id, windows in made["vectors"].items()
    }
    return [one._replace(vectors=fresh.get(one.id, one.vectors)) for one in records]


def _relate(memory: Bethink, new: Sequence[Incoming], trusted: bool) -> int:
    """Store relations last, when both ends exist; a stranger's claims about known memories are proposals."""
    fresh = {one.id for one in new}
    proposed = {"supersedes": "may_replace", "contradicts": "contradicts"}
    links = dict.fromkeys(
        link
        if trusted or link.target in fresh
        else link._replace(type=proposed.get(link.type, "relates_to"))
        for one in new
        for link in one.relations
    )
    there = memory.store.keys(sorted({end for link in links for end in link[:2]}))
    whole = [
        (link, memory.actor) for link in links if link.source in there and link.target in there
    ]
    for page in split_pages(whole):
        memory.writer.take(Bundle(relations=tuple(page)))
    return len(whole)


# Taking an import back


def undo(memory: Bethink, place: Path, dry_run: bool) -> dict[str, int]:
    """Remove the memories that imports of a file or folder added, so that a later import adds them again.

    Memories changed since are kept. Those shared with a team are forgotten instead, so that they do
    not come back from there. Raised trust is reset. Returns the number of each, empty if nothing
    was imported from there.
    """
    memory.require_person("Taking an import back")
    found = memory.store.list_notes(_name_import(place))
    pages = sorted((json.loads(note) for note in found if note), key=lambda page: str(page["at"]))
    if not pages:
        return {}
    added = {id for page in pages for id in page["ids"]}
    believed: dict[str, int] = {}
    last: dict[str, int] = {}  # when an import of this place last touched a memory
    for page in pages:
        at = stamp(datetime.fromisoformat(page["at"]))
        for id, trust in page.get("believed", {}).items():
            believed.setdefault(id, trust)
        last |= dict.fromkeys((*page["ids"], *page.get("believed", ())), at)
    there = memory.store.get(list(last))
    untouched = [one.id for one in there if stamp(one.updated_at) <= last[one.id]]
    unchanged = [id for id in untouched if id in added]
    doubted = [id for id in untouched if id not in added]
    shared = sync.list_exchanged(memory.store)
    gone = [id for id in unchanged if id not in shared]
    hidden = [id for id in unchanged if id in shared]
    if not dry_run:
        now = memory.clock()
        memory.write(change=tuple(Change(id, "forget", {"deleted_at": now}) for id in hidden))
        memory.write(change=tuple(Change(id, "doubt", {"trust": believed[id]}) for id in doubted))
        memory.writer.take(Bundle(gone=tuple(gone)))
        for page in pages:
            memory.writer.take(Bundle(), note=(_name_page(place, page), ""))
    kept = len(there) - len(untouched)
    counts = {"removed": len(gone), "kept": kept, "forgotten": len(hidden)}
    return {**counts, "doubted": len(doubted)}


def _name_page(place: Path, page: Mapping[str, Any]) -> str:
    """Name of the note about a page of an import: by its first new memory, or by its time."""
    return _name_import(place) + (page["ids"][0] if page["ids"] else f"{BELIEVED}:{page['at']}")


def _name_import(place: Path) -> str:
    """Prefix of the notes about an import, one for each page and without text."""
    path = str(place.resolve()).encode("utf-8", "surrogateescape")
    return f"import:{blake2b(path, digest_size=12).hexdigest()}:"


# A vault for Obsidian, which `readers` reads. It has the fields that people read and edit; an export as JSON has everything.

# Fields in the head of a note.
MEMORY_FIELDS = fields_of(Memory)
_NOTED = [name for name, info in MEMORY_FIELDS.items() if info.is_shown("note")]
_EDITED = [name for name in _NOTED if MEMORY_FIELDS[name].editable]
# A new text brings its own summary and entities, so that the parts of a note are compared one by one. Versions before 0.23 knew
# the text alone.
_TEXT_FIELDS = ("kind", "tags")
_PARTS: Mapping[str, Sequence[str]] = {
    "text": _TEXT_FIELDS,
    "properties": [name for name in _EDITED if name not in _TEXT_FIELDS],
}
_LONGEST_NAME = 60
_NO_NAME = re.compile(r"[^\w ,.()+=!-]+")
# Characters that JSON does not escape, but YAML reads differently or may take for a reference.
_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ufeff&*!]")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def _view_memory(memory: Memory) -> NoteView:
    """Return the note of a memory as an import reads it."""
    return _view_json(record_to_json(Record(memory, True)))


def _view_json(one: JsonObject) -> NoteView:
    content = unify_line_ends(one["content"]).strip()  # as when reading a file
    head = markdown.parse("\n".join(_render_head(one))).frontmatter
    return NoteView(content, _choose_edited(head))


def _view_note(one: Incoming) -> NoteView:
    return NoteView(unify_line_ends(one.memory.content).strip(), _choose_edited(one.head))


def _choose_edited(head: Values) -> Values:
    found = {name: head[name] for name in _EDITED if head.get(name) not in (None, "", [], {})}
    lists = {name for name in found if MEMORY_FIELDS[name].shape in ("texts", "entities")}
    return found | {name: sorted(map(str, readers.to_list(found[name]))) for name in lists}


def _digest_parts(view: NoteView) -> dict[str, str]:
    """Digests of the parts of a note, each of which is edited by itself."""
    tags = view.head.get("tags", ())
    text = "\0".join([view.content, str(view.head.get("kind")), *tags])
    properties = {name: view.head.get(name) for name in _PARTS["properties"]}
    return {
        "text": _digest(text),
        "properties": _digest(json.dumps(properties, sort_keys=True)),
    }


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def write_vault(memory: Bethink, records: Iterable[JsonObject], folder: Path, title: str) -> int:
    """Write the objects of an export as notes with an index; remove only notes of an earlier export."""
    folder = folder.resolve()  # as in the paths of an earlier export
    notes = {str(one["id"]): one for one in records}
    names = {id: _name_note(one) for id, one in notes.items()}
    try:
        old = _check_vault(memory, folder, notes)
        texts = {
            folder / one["kind"] / f"{names[id]}.md": _render_note(one, names)
            for id, one in notes.items()
        }
        index = [f"{readers.INDEX_HEAD}# {title}"]
        for kind in sorted({one["kind"] for one in notes.values()}, key=KINDS.index):
            of_kind = [f"- [[{names[id]}]]" for id, one in notes.items() if one["kind"] == kind]
            index += ["", f"## {kind}", "", *of_kind]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, text in {**texts, folder / readers.INDEX: "\n".join(index) + "\n"}.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        for path in old - texts.keys():
            path.unlink()
    except OSError as error:
        raise BethinkError(
            f"The vault {folder} cannot be written: {error.strerror}.",
            "Check the folder and its free space.",
        ) from error
    return len(notes)


def _check_vault(memory: Bethink, folder: Path, known: Mapping[str, JsonObject]) -> set[Path]:
    """List the notes of an earlier export, and refuse a folder that is not a vault or has edited notes.

    Edits that are `known`, because they were imported since, do not count.
    """
    if not folder.exists() or not any(folder.iterdir()):
        return set()
    if not readers.is_vault(folder):
        raise InvalidInput(
            f"{folder} holds other files and is not a Bethink vault.", "Choose an empty folder."
        )
    notes = readers.list_vault(memory, folder)
    nothing = NoteView("", {})
    each = ((path, one, known.get(one.id)) for path, one in notes)
    views = [
        (path, one.saved, _view_note(one), _view_json(here) if here else nothing)
        for path, one, here in each
    ]
    if edited := [path for path, saved, note, here in views if _find_waiting(saved, note, here)]:
        raise InvalidInput(
            f"{len(edited)} of its notes were edited since they were written, such as {edited[0].name}.",
            f"Take them in with `bethink import {quote(str(folder))} --trusted --personal`, or name another folder.",
        )
    return {path for path, _ in notes}


def _name_note(one: JsonObject) -> str:
    """File name of a note: its first words, and the end of its id to make it unique."""
    words = " ".join(_NO_NAME.sub(" ", one["summary"] or one["content"][:200]).split())
    short = words[:_LONGEST_NAME].rsplit(" ", 1)[0] if len(words) > _LONGEST_NAME else words
    return f"{short.strip(' .') or one['kind']} {one['id'][-8:]}"


def _render_note(one: JsonObject, names: Mapping[str, str]) -> str:
    links = [
        f"- {link['type']} [[{names[link['target']]}]]"
        for link in one["relations"]
        if link["target"] in names
    ]
    links += [f"- about [[{entity['name']}]]" for entity in one["entities"]]
    saved = f'saved: "{".".join(_digest_parts(_view_json(one)).values())}"'
    *head, end = _render_head(one)
    return "\n".join([*head, saved, end, one["content"], "", readers.MARK, *links]) + "\n"


def _render_head(one: JsonObject) -> list[str]:
    fields = {name: one[name] for name in _NOTED if one[name] not in (None, "", [], {})}
    fields["entities"] = [f"{entity['type']}:{entity['name']}" for entity in one["entities"]]
    return ["---", *(f"{name}: {_render_value(value)}" for name, value in fields.items()), "---"]


def _render_value(value: object) -> str:
    """Render a value as YAML; times without quotes, so that Obsidian recognises them."""
    if isinstance(value, str) and _TIME.fullmatch(value):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
