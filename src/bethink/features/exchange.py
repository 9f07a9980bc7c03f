"""Memories out into a file, and in from one: an export as JSON or JSON lines, or the database of another machine or an older version.

    read → check and redact → which scopes, and what they are called here → which are known → put in, page by page → relations

A memory keeps its id where that is free. One that is known, by its id or by its text, stays as it is, and what was purged does not come
back; so the same file may be read any number of times, and an import that was stopped goes on when it is repeated. Who wrote a file is
not known, so its memories are believed no further than other imports and change nothing that was here. `trusted` says that the file is
one's own: then histories come along, and those of known memories are merged. What a record may hold is for `incoming`.
"""

from __future__ import annotations

import gzip
import io
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
from bethink.config import data_directory, mask_password
from bethink.errors import BethinkError, InvalidInput, StoreCorrupt
from bethink.features import notes, readers, sync
from bethink.features.knowledge import MARKDOWN
from bethink.features.readers import Reading
from bethink.features.sync import Given, merge
from bethink.ingest.redact import redact_value
from bethink.store import locate_database, open_copy
from bethink.store.base import Store
from bethink.store.places import content_hash
from bethink.store.rows import Record, Stored
from bethink.store.transfer import (
    PAGE,
    Bundle,
    record_from_json,
    record_to_json,
    split_pages,
    version,
)
from bethink.text import new_id
from bethink.types import NOTHING, PERSONAL, RELATIONS, TEAM, TRUST, Event, Memory, Relation

GZIP, SQLITE = b"\x1f\x8b", b"SQLite format 3\x00"
LARGEST = 512 << 20  # bytes of a file that is read as a whole, packed or not. Set by hand.
EDITABLE = ("content", "kind", "tags")  # what an edited note changes of its memory
ADDED, SAME, KNOWN = "added", "known by its id", "known by its text"

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
    fates = _find_known(memory.store, chosen)
    new, same = ([one for how, one in fates if how == wanted] for wanted in (ADDED, SAME))
    done = Imported(
        added=len(new),
        known=len(moved) - len(edits) - len(new) - (purged := len(chosen) - len(fates)),
        edited=len(edits),
        purged=purged,
        left_out=len(given) - len(moved),
        redactions=sum(one.redactions for one in new),
        format=reading.format,
        kinds=dict(Counter(one.memory.kind for one in new).most_common()),
        left=dict(reading.left),
    )
    if dry_run:
        return done
    called = {
        scope: _name_of(memory, scope, reading.names.get(there)) for there, scope in scopes.items()
    }
    changed = [one for one in same if trusted and one.record.events]
    added, merged = _put(memory, new, changed, called, file, progress)
    for here, edited in edits:
        memory.update(here.id, was=here, **{name: getattr(edited, name) for name in EDITABLE})
    return done._replace(
        added=added,
        known=done.known + len(new) - added,
        merged=merged,
        relations=_relate(memory, new, trusted),
    )


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
    """A database of this or an older version."""
    links: defaultdict[str, list[Relation]] = defaultdict(list)
    with open_copy(file) as store:
        for relation, _ in store.items("relations"):
            links[relation.source].append(relation)
        given = [Given(one, tuple(links[one.memory.id])) for one in store.items("records")]
        scopes = {key: redact_value(called)[0] for key, *called in store.items("scopes")}
    return Reading(
        "database", given, {key: (name, path) for key, (name, path) in scopes.items()}, {}
    )


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
    except (ValueError, RecursionError) as error:
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
        values = [_parse_line(line) for line in text.splitlines() if line.strip()]
        if text.lstrip().startswith("[") or not values or isinstance(values[0], ValueError):
            raise
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
    """What a file holds, unpacked where it is packed; never more than is read at once."""
    with file.open("rb") as stream:
        raw = stream.read(LARGEST + 1)
    if raw.startswith(GZIP):
        try:
            raw = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(LARGEST + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise InvalidInput(
                f"{file} cannot be unpacked: {error}.", "Check that it is whole: gunzip --test FILE"
            ) from error
    if len(raw) > LARGEST:
        raise InvalidInput(
            f"{file} holds more than {LARGEST >> 20:,} MB, more than is read at once.",
            "Split it: an object on each line, `split -l 100000 FILE`.",
        )
    return raw


def _read_memory(value: Any, number: int, file: Path) -> Given:
    """A memory of an export. Older ones, and those of a server, say less of it."""
    try:
        id = str(value.get("id"))
        kind = "transcript" if value.get("session") else "markdown"
        whole = {"source_type": "note" if value.get("path") is None else kind, **value}
        whole["id"] = id if sync.ID.fullmatch(id) else new_id()
        record = record_from_json(whole)
        memory = record.memory._replace(content_hash=content_hash(record.memory.content))
        links = tuple(
            Relation(memory.id, str(other["target"]), str(other["type"]), memory.updated_at)
            for other in value.get("relations") or ()
            if other["type"] in RELATIONS
        )
        unique = _is_unique(memory) if value.get("unique") is None else record.unique
    except sync.WRONG as error:
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
    if wrong := sync.wrong_field(one.record, memory.config.max_characters):
        raise _refuse(number, file, f"its {wrong} is not in order")
    record, redactions = sync.redact_record(one.record)
    if not trusted:
        record = sync.limit_stranger(record, memory.clock())
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
    here = {one.id: one for one in store.get([one.memory.id for one in given if one.saved])}
    kept, edits = [], []
    for one in given:
        known, edited = here.get(one.memory.id), one.memory
        same = known and all(getattr(known, name) == getattr(edited, name) for name in EDITABLE)
        if known is None or known.scope != edited.scope or same:
            kept.append(one._replace(saved=""))
        elif trusted and one.saved == notes.digest(known.content, known.kind, known.tags):
            edits.append((known, edited))
        else:
            id = readers.make_id(known.id, edited.content_hash)
            record = one.record._replace(memory=edited._replace(id=id, superseded_by=None))
            link = Relation(id, known.id, "may_replace", edited.updated_at)
            kept.append(one._replace(record=record, relations=(link,)))
    return kept, edits


def _find_known(store: Store, given: Sequence[Given]) -> list[tuple[str, Given]]:
    """What becomes of each memory, and the memory with the ids that it and others have here or will have; without those that
    were purged."""
    found = _match_stored(store, given)
    ids = {link.target: link.target for one in given if one.saved for link in one.relations}
    ids |= {old: id for old, (id, _) in found.items()}
    return [(found[old][1], _rename(one, ids)) for one in given if (old := one.memory.id) in found]


def _match_stored(store: Store, given: Sequence[Given]) -> dict[str, tuple[str, str]]:
    """For each memory that was not purged the id that it has here or will have, and what becomes of it."""
    # Where its id is taken by another scope it gets another, always the same, so that it is known when the file is read again.
    others = {one.memory.id: readers.make_id(one.memory.id, one.memory.scope) for one in given}
    wanted = [*others, *others.values()]
    there = {one.id: one.scope for page in split_pages(wanted) for one in store.get(page)}
    hashes = [one.memory.content_hash for one in given]
    purged = store.find_purged(hashes)
    twins = {
        scope: store.duplicates(hashes, scope) for scope in {one.memory.scope for one in given}
    }
    found: dict[str, tuple[str, str]] = {}
    for one in given:
        memory = one.memory
        is_free = there.get(memory.id, memory.scope) == memory.scope
        id = memory.id if is_free else others[memory.id]
        told = one.record.unique and memory.deleted_at is None
        twin = twins[memory.scope].get(memory.content_hash) if told else None
        if id in there:
            found[memory.id] = id, SAME
        elif twin:
            found[memory.id] = twin, KNOWN
        elif memory.content_hash not in purged:
            found[memory.id] = id, ADDED
    return found


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
    new: Sequence[Given],
    changed: Sequence[Given],
    called: Names,
    place: Path,
    progress: Progress | None,
) -> tuple[int, int]:
    """Puts memories in, page by page: new ones, of which it is noted which those were, and known ones that were changed elsewhere.
    Returns how many of each; somebody else may have put them in meanwhile."""
    projects.pin(memory.project)
    everything = [one.record for one in (*changed, *new)]
    fresh = {one.memory.id for one in new}
    added = merged = done = 0
    for page in split_pages(everything, PAGE):
        try:
            if unknown := [one.memory.id for one in page if one.memory.id in fresh]:
                _note_added(memory, place, unknown)
            put = _put_page(memory, page, called)
        except BethinkError as error:
            if done:
                why = error.message.removesuffix("; nothing was changed.").removesuffix(".")
                error.message = f"{why}. {done:,} of {len(everything):,} memories went in before."
                error.hint = f"{error.hint or ''} The same command goes on from there.".strip()
            raise
        done += len(page)
        added, merged = added + len(put & fresh), merged + len(put - fresh)
        if progress:
            progress(done, len(everything))
    return added, merged


def _put_page(memory: Bethink, page: Sequence[Record], called: Names) -> set[str]:
    """Puts in one page, with its vectors, in one transaction. The histories of what is here too are merged, as a sync merges them.
    Gives back the ids of what was put in."""
    mine = {one.memory.id: one for one in memory.store.records([one.memory.id for one in page])}
    begun = (Event(memory.clock(), memory.actor, "add", {}, {}),)
    expect: dict[str, bytes | None] = {}
    records = []
    for one in page:
        here = mine.get(one.memory.id)
        if here and not one.events:
            continue  # somebody else put it in meanwhile
        one = merge(here, one).record if here else one._replace(events=one.events or begun)
        expect[one.memory.id] = version(here) if here else None
        if expect[one.memory.id] != version(one):
            records.append(one)
    scopes = tuple((scope, *called[scope]) for scope in sorted({one.memory.scope for one in page}))
    bundle = Bundle(scopes=scopes, records=tuple(_embed(memory, records)))
    left = memory.store.take(sync.note_turns(bundle), expect=expect)
    return {one.memory.id for one in records} - set(left)


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


def _relate(memory: Bethink, new: Sequence[Given], trusted: bool) -> int:
    """The relations last, when both ends are there. What a stranger says of memories that were here before is a proposal."""
    fresh = {one.memory.id for one in new}
    links = dict.fromkeys(
        link if trusted or link.target in fresh else link._replace(type=_propose(link.type))
        for one in new
        for link in one.relations
    )
    there = memory.store.keys(sorted({end for link in links for end in link[:2]}))
    whole = [
        (link, memory.actor) for link in links if link.source in there and link.target in there
    ]
    for page in split_pages(whole):
        memory.store.take(Bundle(relations=tuple(page)))
    return len(whole)


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
    there = memory.store.get(list(added))
    gone = [one.id for one in there if one.updated_at <= added[one.id]]
    if not dry_run:
        memory.store.take(Bundle(gone=tuple(gone)))
        journal.unlink()
    return Undone(len(gone), len(there) - len(gone))


def _journal(memory: Bethink, place: Path) -> Path:
    """Where it is noted what came from a file or folder into the database that is used. It holds no text."""
    used = mask_password(locate_database(memory.config, memory.project))
    name = f"{used}\n{place.resolve()}".encode("utf-8", "surrogateescape")
    return data_directory() / "imports" / f"{blake2b(name, digest_size=12).hexdigest()}.jsonl"


def _note_added(memory: Bethink, place: Path, ids: Sequence[str]) -> None:
    """Written before the memories are, so that an import that is killed can be taken back, too."""
    journal = _journal(memory, place)
    journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with journal.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"at": memory.clock().isoformat(), "ids": ids}) + "\n")
