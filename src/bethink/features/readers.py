"""Other memories' stores, read as they lie: databases of SQLite, tables of LanceDB, JSON and CSV. Folders of Markdown are in `notes`.

    recognise by tables and columns → rows with our names for their fields → records of ours, or why a row was left

A store is a line in `TABLES` and the function that gives its rows; what a row means is written once, in `_make_given`.
Readers only read. They believe nothing: what they give is checked and limited by `incoming`, as all that comes from elsewhere is.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date, datetime
from hashlib import blake2b
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bethink.api import Bethink
from bethink.config import check
from bethink.errors import BethinkError, InvalidInput
from bethink.features.knowledge import claude_slug
from bethink.features.sync import Given
from bethink.hosts.base import as_time
from bethink.ingest.compare import WriteOptions
from bethink.ingest.extract import extract
from bethink.ingest.pipeline import clean_passage, make_memory
from bethink.ingest.redact import redact_name, redact_value
from bethink.store.connection import ForeignDatabase
from bethink.store.rows import Record
from bethink.text import textfile
from bethink.types import (
    ENTITY_TYPES,
    KIND_ALIASES,
    KINDS,
    PERSONAL,
    RELATIONS,
    TRUST,
    Entity,
    Passage,
    Relation,
    Source,
)

# Why a row was left.
EMPTY, LONG, UNREADABLE, DELETED, RAW = "empty", "too long", "unreadable", "deleted there", "raw"
# Set by hand: what one import may hold, and what of a row is kept beside its text.
MOST_ROWS = 1_000_000
MOST_TAGS, LONGEST_TAG, LONGEST_EXTRA = 50, 100, 500

# Our name of a field, and what others call it; case and underscores do not count. The first that holds something is it.
_NAMES = """
text         text content memory body note observations
id           id uuid memoryid key contenthash hash
kind         kind type category memorytype intent
created      createdat created date timestamp createdatiso createdatepoch time
updated      updatedat updated modified lastmodified updatedatepoch
tags         tags keywords labels categories
summary      summary
importance   importance
confidence   confidence
votes        usefulness
uses         accesscount referencecount
expires      expiresat expires
successor    supersededby
deleted      isdeleted deletedat deleted
project      project projectname
section      section sectiontitle title name
entities     entities
metadata     metadata
container    container
relations    relations
answered     answered
"""
_FIELDS = {line.split()[0]: line.split()[1:] for line in _NAMES.strip().splitlines()}
TEXT_COLUMNS = _FIELDS["text"]
# What other stores call their kinds and relations. Any other kind becomes a tag, and the text says what it is.
_KINDS = KIND_ALIASES | {
    "bugfix": "solution",
    "fix": "solution",
    "learning": "discovery",
    "insight": "discovery",
    "error": "problem",
    "issue": "problem",
    "task": "todo",
    "tech": "architecture",
    "design": "architecture",
    "rule": "pattern",
    "doc_chunk": "document",
}
_RELATIONS = {
    "fixes": "answers",
    "follows": "builds_on",
    "supports": "builds_on",
    "extends": "builds_on",
    "implements": "builds_on",
    "replaces": "supersedes",
}

Row = dict[str, Any]
Rows = Iterator[Row | str | None]  # or why one is left; None for one that cannot be read


class Reading(NamedTuple):
    """What a file, folder or database holds."""

    format: str
    given: list[Given]
    names: Mapping[str, tuple[str, str]]  # scope → its name and path
    left: Mapping[str, int]  # why → how many


class Reader(NamedTuple):
    """A store that is known by its tables and some of their columns."""

    name: str
    needs: Mapping[str, str]
    rows: Callable[[ForeignDatabase], Rows]


# Databases of SQLite


def _gather(tables: ForeignDatabase, table: str, key: str) -> dict[Any, list[Row]]:
    """The rows of a table by one of its columns."""
    found: dict[Any, list[Row]] = {}
    for row in tables.rows(table):
        found.setdefault(row.get(key), []).append(row)
    return found


def _read_memo(tables: ForeignDatabase) -> Rows:
    """memo: one database for a project. Its `tags` say from which file an imported passage is."""
    for row in tables.rows("memories"):
        container = str(row["container_tag"]).partition("memo_container_")[2]
        yield row | {"container": container, "section": row.get("tags"), "tags": None}


def _read_memory_mcp(tables: ForeignDatabase) -> Rows:
    """Memory MCP: typed memories, and the names that each mentions."""
    named = _gather(tables, "entities", "memory_id")
    for row in tables.rows("memories"):
        yield row | {"entities": [one.get("entity") for one in named.get(row.get("id"), ())]}


def _read_service(tables: ForeignDatabase) -> Rows:
    """mcp-memory-service: memories are known by their hash, also in its graph."""
    links = _gather(tables, "memory_graph", "source_hash")
    for row in tables.rows("memories"):
        found = links.get(row["content_hash"], ())
        pairs = [(one.get("relationship_type"), one.get("target_hash")) for one in found]
        yield row | {"id": row["content_hash"], "relations": pairs}


def _read_memory_graph(tables: ForeignDatabase) -> Rows:
    """Memory Graph: ideas of conversations, the topics that they belong to, and what they mention."""
    names = {row["id"]: row for row in tables.rows("entities")}
    mentions = _gather(tables, "idea_entities", "idea_id")
    links = _gather(tables, "relations", "from_id")
    topics = {row["id"]: row for row in tables.rows("spans")}
    files: dict[Any, str] = {}
    for row in tables.rows("ideas"):
        topic = topics.get(row.get("span_id"), {})
        file = Path(str(row["source_file"]))
        slug = file.parent.name if file.parent.name.startswith("-") else ""
        files[topic.get("session")] = slug
        seen = [names.get(one["entity_id"], {}) for one in mentions.get(row["id"], ())]
        yield row | {
            "section": topic.get("name"),
            "project": slug,
            "entities": [(one.get("name"), one.get("type")) for one in seen],
            "relations": [(one["relation_type"], one["to_id"]) for one in links.get(row["id"], ())],
            "metadata": {"transcript": str(file), "line": row.get("source_line")},
        }
    for topic in topics.values():
        if topic.get("summary"):
            yield {
                "id": f"span {topic['id']}",
                "text": topic["summary"],
                "section": topic["name"],
                "kind": "conclusion",
                "project": files.get(topic["session"], ""),
                "created": topic.get("created_at"),
            }


# What a session's summary says, and under which word.
_SUMMED_UP = {
    "request": "Asked",
    "investigated": "Looked at",
    "learned": "Learned",
    "completed": "Done",
    "next_steps": "Next",
}


def _name_observation(row: Row) -> Row:
    said = [str(row[name]) for name in ("title", "narrative", "text") if row.get(name)]
    facts = [f"- {fact}" for fact in to_list(row.get("facts"))]
    files = [*to_list(row.get("files_modified")), *to_list(row.get("files_read"))]
    entities = [(name, "file") for name in files]
    told = {"kind": row["type"], "tags": row.get("concepts"), "entities": entities}
    return {"text": "\n".join(said + facts), **told}


def _name_summary(row: Row) -> Row:
    said = [f"{label}: {row[name]}" for name, label in _SUMMED_UP.items() if row.get(name)]
    return {"text": "\n".join(said), "kind": "conclusion"}


def _name_directive(row: Row) -> Row:
    text = row.get("content") if row.get("status") == "active" else ""
    return {"text": text, "kind": "preference", "project": row.get("project") or PERSONAL}


_CLAUDE_MEM = {
    "observations": _name_observation,
    "session_summaries": _name_summary,
    "directives": _name_directive,
}


def _read_claude_mem(tables: ForeignDatabase) -> Rows:
    """claude-mem: what its model noted of each session, of all projects; and the rules that the user gave it."""
    for table, name_row in _CLAUDE_MEM.items():
        for row in tables.rows(table):
            yield {
                "project": row.get("merged_into_project") or row.get("project"),
                "created": row.get("created_at_epoch") or row.get("created_at"),
                **name_row(row),
                "id": f"{table} {row.get('id')}",
            }
    yield from (RAW for _ in tables.rows("user_prompts"))


# Of two that fit the first is it.
TABLES = (
    Reader("memo", {"memories": "content container_tag"}, _read_memo),
    Reader("mcp-memory-service", {"memories": "content content_hash memory_type"}, _read_service),
    Reader(
        "Memory MCP",
        {"memories": "content importance", "entities": "memory_id entity"},
        _read_memory_mcp,
    ),
    Reader(
        "Memory Graph",
        {
            "ideas": "id content intent source_file",
            "spans": "id session name",
            "entities": "id name type",
            "idea_entities": "idea_id entity_id",
            "relations": "from_id to_id relation_type",
        },
        _read_memory_graph,
    ),
    Reader(
        "claude-mem",
        {"observations": "id type narrative facts", "session_summaries": "id request learned"},
        _read_claude_mem,
    ),
)
OURS = {"memories", "scopes", "sources", "history"}


def read_database(memory: Bethink, file: Path) -> Reading | None:
    """What another program's database holds; None if it is one of Bethink."""
    with closing(ForeignDatabase(file)) as tables:
        if tables.columns.keys() >= OURS:
            return None
        for reader in TABLES:
            if all(
                set(columns.split()) <= set(tables.columns.get(table, ()))
                for table, columns in reader.needs.items()
            ):
                return convert(memory, reader.rows(tables), reader.name, file)
        known = ", ".join(reader.name for reader in TABLES)
        found = ", ".join(sorted(tables.columns)[:10]) or "none"
    raise InvalidInput(
        f"{file} is a database of a program that is not known here; its tables are: {found}.",
        f"Known are {known}. Write it out as JSON or CSV and import that.",
    )


# Tables of LanceDB


def read_lance(memory: Bethink, folder: Path) -> Rows:
    """Claude Memory's and vector-memory's tables: whichever has a column of text. Vectors are not read."""
    if find_spec("lancedb") is None:
        raise BethinkError(
            f"{folder} holds tables of LanceDB; to read them needs lancedb, which is not installed.",
            "pip install 'bethink[lancedb]'",
        )
    import lancedb

    places = _find_lance(folder)
    try:
        database = lancedb.connect(str(places[0].parent))
        for table in (database.open_table(place.stem) for place in places):
            names = [one.name for one in table.schema if not hasattr(one.type, "value_type")]
            if _has_text(dict.fromkeys(names), ""):
                found = table.search().select(names).limit(MOST_ROWS + 1)
                for batch in found.to_batches():
                    yield from batch.to_pylist()
    except (OSError, ValueError, RuntimeError) as error:
        why = str(error).partition("\n")[0][:200]
        raise InvalidInput(
            f"The tables of {folder} cannot be read: {why}. Nothing was taken in.",
            "Check that the folder is whole.",
        ) from error


def is_lance(place: Path) -> bool:
    return place.is_dir() and bool(_find_lance(place))


def _find_lance(folder: Path) -> list[Path]:
    """The tables in a folder, or in that of its vectors, as Claude Memory has them; or a table itself."""
    if folder.suffix == ".lance":
        return [folder]
    places = (sorted(place.glob("*.lance")) for place in (folder, folder / "vectors"))
    return next(filter(None, places), [])


# JSON and CSV


def read_csv(memory: Bethink, file: Path, raw: bytes, text_column: str) -> Reading:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{file} is not UTF-8: byte {error.start} cannot be read.",
            f"iconv -f WINDOWS-1252 -t UTF-8 {file.name} > utf8.csv",
        ) from None
    head = text[:10_000].partition("\n")[0]
    delimiter = max((",", ";", "\t", "|"), key=head.count)
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise InvalidInput(
            f"{file} cannot be read as CSV: {error}.", "Its first line names the columns."
        ) from None
    return read_rows(memory, file, "CSV", rows, text_column)


def read_rows(
    memory: Bethink, file: Path, format: str, rows: Sequence[Any], text_column: str
) -> Reading:
    """Rows with a column of text: those of a table, or objects of JSON, which may lie in another object."""
    if len(rows) == 1 and isinstance(rows[0], dict) and not _has_text(rows[0], text_column):
        lists = [one for one in rows[0].values() if isinstance(one, list) and one]
        rows = lists[0] if len(lists) == 1 else rows
    found = [{"text": one} if isinstance(one, str) else one for one in rows]
    each = [one if isinstance(one, dict) else None for one in found]
    if each and not any(_has_text(one, text_column) for one in each[:1000]):
        raise _no_text(file, next(filter(None, each), {}), text_column)
    return convert(memory, each, format, file, text_column)


def _no_text(file: Path, row: Row, text_column: str) -> InvalidInput:
    columns = ", ".join(str(name)[:40] for name in islice(row, 12)) or "none"
    wanted = f"'{text_column}'" if text_column else ", ".join(TEXT_COLUMNS)
    return InvalidInput(
        f"{file} has no column of text, such as {wanted}; its columns are: {columns}.",
        "Name the one that holds the text with --text-column.",
    )


def _has_text(row: Row | None, text_column: str) -> bool:
    names = {text_column} if text_column else {*TEXT_COLUMNS}
    return any((name if text_column else _fold(name)) in names for name in row or ())


# Claude Memory's settings

SETTINGS_FILE = "memory.config.json"
# Its name of a setting, its variable of the environment, and ours.
_SETTINGS = (
    ("minScore", "CLAUDE_MEMORY_MIN_SCORE", "min_similarity"),
    ("chunkOverlapPercent", "CLAUDE_MEMORY_CHUNK_OVERLAP", "chunk_overlap"),
    ("chunkSize", "CLAUDE_MEMORY_CHUNK_SIZE", "chunk_size"),
    ("defaultSearchMode", "CLAUDE_MEMORY_SEARCH_MODE", "mode"),
)


def read_settings(file: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """What Claude Memory's file and its variables of the environment set, by our names; and why something of them was left. The
    environment counts more, as it did there."""
    text = textfile.read(file)
    told = _to_object(text or "")
    if text and not told:
        raise InvalidInput(f"{file} holds no settings.", "It should hold a JSON object.")
    found: dict[str, Any] = {}
    known = [name for name, _, _ in _SETTINGS]
    left = dict.fromkeys((name for name in told if name not in known), "has no counterpart")
    for name, variable, key in _SETTINGS:
        for label, value in ((name, told.get(name)), (variable, os.environ.get(variable))):
            try:
                if value is not None:
                    found[key] = check(key, value)
            except ValueError as error:
                left[label] = str(error)
    return found, left


# What a row means


def convert(
    memory: Bethink,
    rows: Iterable[Row | str | None],
    format: str,
    place: Path,
    text_column: str = "",
    trust: int = TRUST["agent"],
) -> Reading:
    """Rows as records of ours, with ids that are always the same, so that an import may be repeated. `trust` is for whoever says that
    the store is their own: most of what is in one was written by an agent."""
    source = Source(redact_name(f"import:{format}:{place.resolve().as_posix()}"))
    options = memory.write_options(memory.scope, trust=trust, scopes={})
    options = options._replace(now=min(options.now, _to_time(place.stat().st_mtime) or options.now))
    left: Counter[str] = Counter()
    names: dict[str, tuple[str, str]] = {}
    made: list[tuple[Given, Row]] = []
    ids: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        if number > MOST_ROWS:
            raise InvalidInput(
                f"{place} holds more than {MOST_ROWS:,} memories.", "Import it in parts."
            )
        if not isinstance(row, dict):
            left[row or UNREADABLE] += 1
            continue
        fields = _name_fields(row, text_column)
        one = _make_given(memory, fields, options, source, names)
        if isinstance(one, str):
            left[one] += 1
            continue
        made.append((one, fields))
        if fields.get("id") is not None:
            ids.setdefault(_key(fields["id"]), one.memory.id)
    given = [_link(one, fields, ids) for one, fields in made]
    return Reading(format, given, names, left)


def _name_fields(row: Row, text_column: str) -> Row:
    """A row by our names; what has none of them is left."""
    folded = {_fold(name): name for name in reversed(row) if name is not None}
    fields: Row = {}
    used = set()
    for field, aliases in _FIELDS.items():
        for alias in (field, *aliases):
            name = folded.get(alias)
            if name is not None and name not in used and row[name] not in (None, "", []):
                fields[field] = row[name]
                used.add(name)
                break
    if text_column:
        fields["text"] = row.get(text_column)
    inner = _to_object(fields.get("metadata"))
    return fields | {"metadata": {_to_text(name): value for name, value in inner.items()}}


def _make_given(
    memory: Bethink,
    fields: Row,
    options: WriteOptions,
    source: Source,
    names: dict[str, tuple[str, str]],
) -> Given | str:
    """The memory that a row is, or why it is left."""
    why = _find_obstacle(fields, options.longest)
    if why:
        return why
    scope = _find_scope(memory, fields, names)
    kind, tags = _find_kind(fields)
    created = _to_time(fields.get("created"))
    passage = Passage(
        content=_to_text(fields["text"]),
        kind=kind,
        summary=_to_text(fields.get("summary"))[: 2 * LONGEST_EXTRA] or None,
        importance=_to_number(fields.get("importance"), 10),
        confidence=_to_number(fields.get("confidence"), 1),
        tags=tags,
        entities=_find_entities(fields),
        section=_to_text(fields.get("section"))[:LONGEST_EXTRA] or None,
        created_at=created,
        expires_at=_to_time(fields.get("expires")),
        metadata=fields["metadata"],
    )
    try:
        clean, redactions = clean_passage(passage, options.longest)
    except InvalidInput:
        return EMPTY  # once the private parts are taken out
    made = make_memory(extract(clean), source, options._replace(scope=scope), 0)
    votes, uses = _to_number(fields.get("votes"), 1e6), _to_number(fields.get("uses"), 1e6)
    made = made._replace(
        id=make_id(fields.get("id"), made.content_hash, made.section or ""),
        updated_at=_to_time(fields.get("updated")) or made.created_at,
        usefulness=votes or 0.0,
        access_count=max(0, int(uses or 0)),
        answered=bool(fields["answered"]) if "answered" in fields else made.answered,
    )
    return Given(Record(made, True), (), redactions)


def _find_obstacle(fields: Row, longest: int) -> str | None:
    text = _to_text(fields.get("text"))
    if fields.get("deleted") not in (None, 0, False, "0", "false") or (
        fields.get("successor") == "DELETED"
    ):
        return DELETED
    if not text.strip():
        return EMPTY
    return LONG if len(text) > longest else None


def _find_scope(memory: Bethink, fields: Row, names: dict[str, tuple[str, str]]) -> str:
    """Where a row belongs: here, to the user, or to another project, which has only a name or a folder there."""
    project, place = _to_text(fields.get("project")), memory.project
    if project == PERSONAL:
        return PERSONAL
    root = str(place.root)
    here = ("", place.name, root, claude_slug(place.root))
    if project in here or project.startswith(f"{root}/"):
        name = str(fields.get("container") or "")
        named = any(character.isalnum() for character in name)
        return place.container(name) if named else memory.scope
    scope = f"project:{blake2b(project.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
    path = project if project.startswith("/") else ""
    name, path = redact_value([Path(project).name[:LONGEST_TAG], path])[0]
    names[scope] = name, path
    return scope


def _find_kind(fields: Row) -> tuple[str | None, tuple[str, ...]]:
    """The kind that a row says, and its tags. A kind that is none here becomes a tag."""
    word = _to_text(fields.get("kind")).strip().lower()
    kind = _KINDS.get(word, word)
    tags = [_to_text(tag).strip().lstrip("#") for tag in to_list(fields.get("tags"))]
    if kind not in KINDS and kind:
        tags.append(word)
    short = dict.fromkeys(tag[:LONGEST_TAG] for tag in tags if tag)
    return kind if kind in KINDS else None, tuple(islice(short, MOST_TAGS))


def _find_entities(fields: Row) -> tuple[Entity, ...]:
    found = []
    for one in to_list(fields.get("entities")):
        name, type = one if isinstance(one, tuple) else (one, "concept")
        if name := _to_text(name).strip()[:LONGEST_TAG]:
            found.append(Entity(name, type if type in ENTITY_TYPES else "concept"))
    return tuple(dict.fromkeys(found[:MOST_TAGS]))


def _link(one: Given, fields: Row, ids: Mapping[str, str]) -> Given:
    """A memory with its relations, now that all of the store have their ids."""
    memory = one.memory
    links = []
    for pair in to_list(fields.get("relations")):
        type, target = pair if isinstance(pair, tuple) else ("", None)
        word = _to_text(type).lower()
        word = _RELATIONS.get(word, word)
        if (other := ids.get(_key(target))) and other != memory.id:
            kind = word if word in RELATIONS else "relates_to"
            links.append(Relation(memory.id, other, kind, memory.updated_at))
    by = ids.get(_key(fields.get("successor")))
    replaced = memory._replace(superseded_by=by if by != memory.id else None)
    return one._replace(
        record=one.record._replace(memory=replaced), relations=tuple(dict.fromkeys(links))
    )


def make_id(*parts: Any) -> str:
    """An id that depends on nothing but what a memory is called there and what it says."""
    told = "\0".join(map(str, parts)).encode("utf-8", "replace")
    digits = blake2b(told, digest_size=16).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def _fold(name: Any) -> str:
    return str(name).lower().replace("_", "").replace("-", "").replace(" ", "")


def _key(value: Any) -> str:
    return str(value).strip().casefold()


def _to_text(value: Any) -> str:
    """A text that can be stored; of a list each item on a line."""
    if isinstance(value, list):
        value = "\n".join(one for one in value if isinstance(one, str))
    text = value if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def to_list(value: Any) -> list[Any]:
    """A list that may be written as JSON, or as words between commas."""
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(",") if part.strip()]
    found = _parse(value)
    if isinstance(found, list | tuple):
        return list(found)
    return [] if found is None else [found]


def _to_object(value: Any) -> Mapping[str, Any]:
    found = _parse(value)
    return found if isinstance(found, Mapping) else {}


def _parse(value: Any) -> Any:
    """What a text of JSON says, and nothing if it is none; any other value as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _to_number(value: Any, most: float) -> float | None:
    """A number up to `most`; a part of one where more is usual is meant as a part of it."""
    try:
        number = float("" if value is None or isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        return None
    if number != number:
        return None
    if most == 10 and 0 < number < 1:
        number *= most
    return max(-most if most > 10 else 0.0, min(number, most))


def _to_time(value: Any) -> datetime | None:
    """A time as stores write it: also a number or a date as text."""
    text = str(value).strip() if isinstance(value, str | date) else ""
    is_number = text.replace(".", "", 1).isdigit()
    return as_time(float(text) if is_number else text or value)
