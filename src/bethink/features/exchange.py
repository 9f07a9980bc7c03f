"""Memories out into a file, and in from one: an export as JSON or JSON lines, a vault of notes, or the database of another machine or an
older version; what other programs wrote is for `readers`.

    read → check and redact → which scopes, and what they are called here → which are known → put in, page by page → relations

A memory keeps its id where that is free. One that is known, by its id or by its text, stays as it is, and what was purged does not come
back; so the same file may be read any number of times, and an import that was stopped goes on when it is repeated. Who wrote a file is
not known, so its memories are believed no further than other imports and change nothing that was here. `trusted` says that the file is
one's own: then histories come along, those of known memories are merged, what is known is believed as far as the file says, and a note
of a vault that somebody edited becomes a new version of its memory. What a record may hold is for `sync`.
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
from bethink.features.sync import Given, merge
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
    fields_of,
)
from bethink.store.base import Store
from bethink.store.places import content_hash
from bethink.store.rows import Record, Stored, stamp
from bethink.store.sqlite import open_copy
from bethink.store.transfer import (
    PAGE,
    Bundle,
    record_from_json,
    record_to_json,
    rename_scope,
    split_pages,
    version,
)

SQLITE = b"SQLite format 3\x00"
LARGEST = 512 << 20  # bytes of a file that is read as a whole. Set by hand.
EDITED = "edited, and not taken: the memory was changed here too, or --trusted is missing"

_SCOPE = re.compile(r"project:[0-9a-f]{16}|container:[0-9a-f]{16}/[^\W_]+(-[^\W_]+)*")
_NO_EXPORT = "`bethink export --output FILE` writes one, as JSON or with --jsonl."

Progress = Callable[[int, int], None] | None
JsonObject = Mapping[str, Any]  # a memory as an export has it


class Imported(NamedTuple):
    """What became of the memories of a file."""

    added: int
    known: int  # by id or text
    merged: int  # known ones whose histories were made one
    believed: int  # known ones that are trusted more than before
    edited: int  # notes of a vault, each of which became a new version of its memory
    purged: int  # that were purged here, and stay so
    left_out: int  # of other projects, or personal
    redactions: int
    relations: int
    format: str  # whose it is
    kinds: Mapping[str, int]  # of those that were added
    left: Mapping[str, int]  # why → how many that another program's store has


def export_records(memory: Bethink, memories: Iterator[Memory]) -> Iterator[dict[str, Any]]:
    """Memories as the JSON objects of an export, with their histories and relations as far as those can be read."""
    while page := list(islice(memories, PAGE)):
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
    """Takes in what a file, folder or database holds of this project; with `personal` what is personal too, with `all_scopes`
    everything."""
    if trusted:
        memory.require_person("Saying that a file is the user's own")
    reading = _read_place(memory, file, text_column)
    given = [
        _check(one, at, file, memory, trusted) for at, one in enumerate(reading.given, start=1)
    ]
    scopes = _choose_scopes(memory, given, reading.names, all_scopes, personal)
    moved = [
        one._replace(record=rename_scope(one.record, scopes))
        for one in given
        if one.memory.scope in scopes
    ]
    chosen = list({one.id: one for one in reversed(moved)}.values())[::-1]
    edits, refused = _find_edits(memory.store, chosen, trusted)
    new, same, twins, purged = _find_known(memory.store, chosen)
    doubted = _find_doubted(memory.store, (*same, *twins)) if trusted else []
    done = Imported(
        added=len(new),
        known=len(moved) - len(edits) - refused - len(new) - purged,
        merged=0,
        believed=len(doubted),
        edited=len(edits),
        purged=purged,
        left_out=len(given) - len(moved),
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
    for here, note in edits:
        memory.update(here.id, was=here, content=note.content, kind=note.kind, tags=note.tags)
    merged = len(put - {one.id for one in new})
    return done._replace(merged=merged, relations=_relate(memory, new, trusted))


# Reading


def _read_place(memory: Bethink, place: Path, text_column: str) -> Reading:
    """Everything in a file, folder or database, and the names and paths of its scopes where it tells them."""
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
    """Whether a file is a SQLite database, other than the one in use: to open and close that here would drop SQLite's locks."""
    if not file.is_file():
        return False  # a pipe, which can be read once
    if "://" not in used and Path(used).exists() and file.samefile(used):
        raise InvalidInput(f"{file} is the database in use.", "Name another with --database.")
    with file.open("rb") as stream:
        return stream.read(len(SQLITE)) == SQLITE


def _read_own(file: Path) -> Reading:
    """A database of this or an older version."""
    links: defaultdict[str, list[Relation]] = defaultdict(list)
    with open_copy(file) as store:
        for relation, _ in store.items("relations"):
            links[relation.source].append(relation)
        records = store.items("records", vectors=False)
        given = [Given(one, tuple(links[one.id])) for one in records]
        names = {key: tuple(redact_value(called)[0]) for key, *called in store.items("scopes")}
    return Reading("database", given, names, {})


def _read_json(memory: Bethink, file: Path, text: str, text_column: str) -> Reading:
    """The objects of an export, whichever of its forms it has; or any others that have a text."""
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
    given = [_read_memory(value, at, file) for at, value in enumerate(values, start=1)]
    return Reading("export", given, {}, {})


def _parse_json(text: str) -> list[Any]:
    """A list, one object, or an object on each line."""
    try:
        value = json.loads(text)
    except ValueError:
        lines = filter(str.strip, text.split("\n"))
        value = json.loads(f"[{','.join(lines)}]")
    return value if isinstance(value, list) else [value]


def _read_whole(file: Path) -> bytes:
    """What a file holds, which is never more than is read at once."""
    with file.open("rb") as stream:
        raw = stream.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise InvalidInput(
            f"{file} is larger than the limit of {LARGEST >> 20:,} MB.",
            "Split it: an object on each line, `split -l 100000 FILE`.",
        )
    return raw


def _read_memory(value: Any, number: int, file: Path) -> Given:
    """A memory of an export. That of a server says less of it."""
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
    return Given(record._replace(memory=memory, unique=unique, vectors=()), links)


def _refuse(number: int, file: Path, why: str) -> InvalidInput:
    return InvalidInput(
        f"Record {number} in {file} is not a valid export record: {why[:200]}.", _NO_EXPORT
    )


def _is_unique(memory: Memory) -> bool:
    """Whether its text may stand only once in its scope: what was told, and what was said in a conversation beyond the turns."""
    return memory.kind != "context" if memory.session else memory.source_type == "note"


def _check(one: Given, number: int, file: Path, memory: Bethink, trusted: bool) -> Given:
    """A memory with nothing but values that our own pipeline would write, no secret, and no more trust than the file has."""
    if wrong := sync.wrong_field(one.record, memory.config.max_characters):
        raise _refuse(number, file, f"invalid {wrong}")
    record, redactions = sync.redact_record(one.record)
    now = memory.clock()
    record = sync.cap_times(record, now) if trusted else sync.limit_stranger(record, now)
    return one._replace(record=record, redactions=one.redactions + redactions)


# Which scopes


def _choose_scopes(
    memory: Bethink, given: Sequence[Given], names: Names, all_scopes: bool, personal: bool
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
            chosen[scope] = _find_by_path(memory, scope, names)
    return chosen


def _own_identity(memory: Bethink, identities: set[str], names: Names) -> str | None:
    """Which project of a file is this one: by its id, its folder, for being the only one, or by its name."""
    project = memory.project
    if project.identity in identities:
        return project.identity
    known = {one: names.get(f"project:{one}", ("", "")) for one in identities}
    here, named = (
        [one for one in identities if said in known[one]]
        for said in (str(project.root), project.name)
    )
    candidates = (here, list(identities), named)
    return next((found[0] for found in candidates if len(found) == 1), None)


def _find_by_path(memory: Bethink, scope: str, names: Names) -> str:
    """The scope of a project that has its folder on this machine, by the id that the folder has; else as it is called in the file."""
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
    store: Store, given: Sequence[Given], trusted: bool
) -> tuple[list[tuple[Memory, Memory]], int]:
    """The edited notes of the user's own vault whose memories are as the notes were written; and how many other notes differ from
    their memories here."""
    here = {one.id: one for one in store.get([one.id for one in given if one.saved])}
    edits, refused = [], 0
    for one in given:
        known, note = here.get(one.id), one.memory
        if known is None or known.scope != note.scope or _digest(known) == _digest(note):
            continue
        if trusted and one.saved == _digest(known):
            edits.append((known, note))
        elif one.saved != _digest(note):
            refused += 1
    return edits, refused


def _find_known(
    store: Store, given: Sequence[Given]
) -> tuple[list[Given], list[Given], list[Given], int]:
    """The memories that are new, those that are here under their ids, and those that were told here in the same words, each with the ids
    that it and others have here or will have; and how many were purged."""
    # Where its id is taken by another scope it gets another, always the same, so that it is known when the file is read again.
    others = {one.id: readers.make_id(one.id, one.memory.scope) for one in given}
    wanted = [*others, *others.values()]
    there = {one.id: one.scope for page in split_pages(wanted) for one in store.get(page)}
    twins = _find_twins(store, given)
    purged = store.find_purged([one.memory.content_hash for one in given])
    ids = dict(twins)
    new, same, told = [], [], []
    for one in given:
        memory = one.memory
        is_free = there.get(memory.id, memory.scope) == memory.scope
        id = memory.id if is_free else others[memory.id]
        if id in there:
            same.append(one)
        elif memory.id in twins:
            told.append(one)
            continue
        elif memory.content_hash in purged:
            continue
        else:
            new.append(one)
        ids[memory.id] = id
    new, same, told = ([_rename(one, ids) for one in found] for found in (new, same, told))
    return new, same, told, len(given) - len(ids)


def _find_doubted(store: Store, known: Sequence[Given]) -> list[tuple[Memory, int]]:
    """The memories here that the user's own file believes more, each with how far."""
    here = {one.id: one for page in split_pages(known) for one in store.get(_ids(page))}
    wanted: dict[str, int] = {}
    for one in known:
        wanted[one.id] = max(wanted.get(one.id, 0), one.memory.trust)
    return [
        (here[id], trust)
        for id, trust in wanted.items()
        if id in here and here[id].deleted_at is None and here[id].trust < trust
    ]


def _ids(given: Sequence[Given]) -> list[str]:
    return [one.id for one in given]


def _find_twins(store: Store, given: Sequence[Given]) -> dict[str, str]:
    """Which memories were told here in the same words, and under which ids."""
    told = [one.memory for one in given if one.record.unique and one.memory.deleted_at is None]
    twins: dict[str, str] = {}
    for scope in {one.scope for one in told}:
        hashes = {one.id: one.content_hash for one in told if one.scope == scope}
        known = store.duplicates(list(hashes.values()), scope)
        twins |= {id: known[hash] for id, hash in hashes.items() if hash in known}
    return twins


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


def _put(
    memory: Bethink,
    records: Sequence[Record],
    names: Names,
    place: Path,
    progress: Progress,
) -> set[str]:
    """Puts memories in, page by page. Gives back the ids of those that changed anything."""
    projects.pin(memory.project)
    put: set[str] = set()
    done = 0
    for page in split_pages(records, PAGE):
        put |= _put_page(memory, page, names, place)
        done += len(page)
        if progress:
            progress(done, len(records))
    return put


def _put_page(memory: Bethink, page: Sequence[Record], names: Names, place: Path) -> set[str]:
    """Puts in one page, with its vectors and a note of what is new, in one transaction. What is here too is merged, as a sync merges it."""
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
        told = {"at": memory.clock().isoformat(), "ids": added}
        note = (_name_page(place, told), json.dumps(told))
    return expect.keys() - set(memory.writer.take(bundle, expect=expect, note=note))


def _merge_known(here: Record, given: Record) -> Record:
    """One record from a known memory and the file's. How far it is believed changes by a word of its own in the history (`_believe`)."""
    trusted_alike = given._replace(memory=given.memory._replace(trust=here.memory.trust))
    return merge(here, trusted_alike).record


def _believe(memory: Bethink, doubted: Sequence[tuple[Memory, int]], place: Path) -> None:
    """Believe what was known as far as the user's own file does, with a note by which `undo` takes that back."""
    for page in split_pages(doubted):
        memory.write(change=tuple(Change(one.id, BELIEVED, {"trust": to}) for one, to in page))
        before = {one.id: one.trust for one, _ in page}
        told = {"at": memory.clock().isoformat(), "ids": [], "believed": before}
        memory.writer.take(Bundle(), note=(_name_page(place, told), json.dumps(told)))


def _embed(memory: Bethink, records: Sequence[Record]) -> list[Record]:
    """Records with vectors: those that are here already, else such as are made now."""
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


def _relate(memory: Bethink, new: Sequence[Given], trusted: bool) -> int:
    """The relations last, when both ends are there. What a stranger says of memories that were here before is a proposal."""
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
    """Removes what imports of a file or folder added, as if it had never come: a later import brings it again. What was changed
    since stays, and what a team has got is forgotten instead, lest it come again from there. What was here before and is believed for
    the file's sake is believed as little as it was. Gives how many of each; nothing where nothing was imported from there."""
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
    """The name of the note about a page of an import: by its first new memory, or by its time."""
    return _name_import(place) + (page["ids"][0] if page["ids"] else f"{BELIEVED}:{page['at']}")


def _name_import(place: Path) -> str:
    """What the notes of an import begin with, one for each page that it added, in the same transaction. They hold no text."""
    path = str(place.resolve()).encode("utf-8", "surrogateescape")
    return f"import:{blake2b(path, digest_size=12).hexdigest()}:"


# A vault for Obsidian, which `readers` reads. It shows what people want to see and change; a copy of everything is an export as JSON.

# Fields in the head of a note.
NOTED = [name for name, info in fields_of(Memory).items() if info.is_shown("note")]
LONGEST_NAME = 60
_NO_NAME = re.compile(r"[^\w ,.()+=!-]+")
# What JSON writes as it is and YAML reads otherwise, or a reader may take for a reference.
_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ufeff&*!]")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def _digest(memory: Memory) -> str:
    """What somebody may edit of a note, in short."""
    content = unify_line_ends(memory.content).strip()  # as a file is read
    text = "\0".join([content, memory.kind, *sorted(memory.tags)])
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _digest_note(one: JsonObject) -> str:
    return _digest(record_from_json(one).memory)


def write_vault(memory: Bethink, records: Iterable[JsonObject], folder: Path, title: str) -> int:
    """Writes the objects of an export as notes, and an index of them. Notes of an earlier export go; anybody else's stay."""
    folder = folder.resolve()  # as the notes of an earlier export are named
    notes = {str(one["id"]): one for one in records}
    names = {id: _name_note(one) for id, one in notes.items()}
    try:
        old = _check_vault(memory, folder, set(map(_digest_note, notes.values())))
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


def _check_vault(memory: Bethink, folder: Path, known: set[str]) -> set[Path]:
    """The notes that an earlier export wrote. Nothing is written over what somebody edited, unless it is `known` since, or into
    anything else than a vault."""
    if not folder.exists() or not any(folder.iterdir()):
        return set()
    if not readers.is_vault(folder):
        raise InvalidInput(
            f"{folder} holds other files and is not a Bethink vault.", "Choose an empty folder."
        )
    notes = readers.list_vault(memory, folder)
    changed = [(path, one) for path, one in notes if one.saved != _digest(one.memory)]
    if edited := [path for path, one in changed if _digest(one.memory) not in known]:
        raise InvalidInput(
            f"{len(edited)} of its notes were edited since they were written, such as {edited[0].name}.",
            f"Take them in with `bethink import {quote(str(folder))} --trusted --personal`, or name another folder.",
        )
    return {path for path, _ in notes}


def _name_note(one: JsonObject) -> str:
    """The name of a note: its first words, and the end of its id, which tells it from others."""
    words = " ".join(_NO_NAME.sub(" ", one["summary"] or one["content"][:200]).split())
    short = words[:LONGEST_NAME].rsplit(" ", 1)[0] if len(words) > LONGEST_NAME else words
    return f"{short.strip(' .') or one['kind']} {one['id'][-8:]}"


def _render_note(one: JsonObject, names: Mapping[str, str]) -> str:
    fields = {name: one[name] for name in NOTED if one[name] not in (None, "", [], {})}
    fields["entities"] = [f"{entity['type']}:{entity['name']}" for entity in one["entities"]]
    fields["saved"] = _digest_note(one)
    lines = [f"{name}: {_render_value(value)}" for name, value in fields.items()]
    links = [
        f"- {link['type']} [[{names[link['target']]}]]"
        for link in one["relations"]
        if link["target"] in names
    ]
    links += [f"- about [[{entity['name']}]]" for entity in one["entities"]]
    return "\n".join(["---", *lines, "---", one["content"], "", readers.MARK, *links]) + "\n"


def _render_value(value: Any) -> str:
    """A value as YAML; a time without quotation marks, by which Obsidian knows it."""
    if isinstance(value, str) and _TIME.fullmatch(value):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
