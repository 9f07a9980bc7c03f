"""Import from other memory stores: SQLite and LanceDB databases, JSON, CSV and folders of Markdown.

    recognise by tables, columns or files → rows with our field names → records, or why a row was skipped

A database is read by a query in `store/foreign`; a file or folder by an `Importer`, which is a
plugin. `_make_record` alone defines the meaning of a row. Readers only read and trust nothing:
`sync` checks and limits their records like everything that comes from elsewhere.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date, datetime
from functools import partial
from hashlib import blake2b
from importlib.util import find_spec
from itertools import islice
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from bethink import plugins
from bethink.agents.base import as_time
from bethink.api import Bethink
from bethink.errors import BethinkError, InvalidInput
from bethink.features.handoffs import parse_handoff
from bethink.features.knowledge import MARKDOWN, claude_slug
from bethink.features.sync import ID, Incoming
from bethink.ingest import markdown
from bethink.ingest.compare import WriteOptions
from bethink.ingest.extract import extract
from bethink.ingest.files import Found, read_text, walk
from bethink.ingest.pipeline import clean_passage, make_memory
from bethink.ingest.redact import redact_name, redact_value
from bethink.ingest.sync import Skipped
from bethink.model import (
    KIND_ALIASES,
    KINDS,
    PERSONAL,
    RELATIONS,
    TRUST,
    FieldInfo,
    Memory,
    Passage,
    Relation,
    Source,
    fields_of,
    make_passage,
)
from bethink.store.foreign import ForeignDatabase, list_programs
from bethink.store.rows import Record
from bethink.text import as_entity, replace_broken

# Reasons for skipping a row.
EMPTY, _LONG, _UNREADABLE, DELETED, RAW = "empty", "too long", "unreadable", "deleted there", "raw"
KEPT_OUT = "kept out"  # by `index: false`
# Set by hand: limits of one import, and of the fields of a row beside its text.
MOST_ROWS = 1_000_000
# Names of a file and of its lines in the metadata of other programs.
FILE_NAMES = ("file", "path", "source", "sourcePath", "filePath", "source_path")
LINE_NAMES = (("startline", "linestart", "line"), ("endline", "lineend"))
MOST_NUMBER = 1e15  # of a field without bounds
_MOST_TAGS, _LONGEST_TAG, LONGEST_EXTRA = 50, 100, 500


def _fold(name: object) -> str:
    """Name of a column without case, underscores and spaces."""
    return re.sub("[_ -]", "", str(name).lower())


# Our name of a field and its aliases, without case and underscores. The first with a value counts.
_NAMES = """
text         text content memory body note observations
id           id uuid memoryid key contenthash hash
kind         kind type category memorytype intent
created      created createdat date timestamp createdatiso createdatepoch time
updated      updated updatedat modified lastmodified updatedatepoch
tags         tags keywords labels categories
summary      summary
importance   importance
confidence   confidence
votes        votes usefulness
uses         uses accesscount referencecount
accessed     accessed lastaccessed lastaccessedat lastused
file         file filepath sourcepath sourcefile
promoted     promoted
promotedat   promotedat
expires      expires expiresat
successor    successor supersededby
deleted      deleted isdeleted deletedat
project      mergedintoproject project projectname
section      section sectiontitle title name
entities     entities
metadata     metadata
container    container
relations    relations
answered     answered
"""
_FIELDS = {line.split()[0]: line.split()[1:] for line in _NAMES.strip().splitlines()}
# Fields that only Bethink has, under their own names.
_MORE = {
    name: info
    for name, info in fields_of(Memory).items()
    if info.addable and name not in Passage._fields
}
_FIELDS |= {name: list(map(_fold, (name, *info.names))) for name, info in _MORE.items()}
TEXT_COLUMNS = _FIELDS["text"]
# Kinds of other stores. Any other becomes a tag, and the kind is derived from the text.
_KINDS = KIND_ALIASES | dict(
    pair.split("=")
    for pair in """
    bugfix=solution fix=solution learning=discovery insight=discovery error=problem issue=problem task=todo
    tech=architecture design=architecture rule=pattern doc_chunk=document
    """.split()
)
Row = dict[str, Any]
Names = dict[str, tuple[str, str]]  # scope → its name and path
Rows = Iterator[Row | str | None]  # or the reason for skipping one; None for an unreadable one


class OwnNote(NamedTuple):
    """The fields that only a note of a vault has."""

    id: str
    scope: str
    trust: int
    saved: str  # digest when it was written
    head: Row


# Most of what is in another store was written by an agent.
NO_NOTE = OwnNote("", "", TRUST["agent"], "", {})


class Reading(NamedTuple):
    """The memories in a file, folder or database."""

    format: str
    records: list[Incoming]
    names: Names
    left: Mapping[str, int]  # reason → number of skipped rows


# Databases of SQLite

OURS = {"memories", "scopes", "sources", "history"}


def read_database(memory: Bethink, file: Path) -> Reading | None:
    """Return the memories in another program's database; None for a database of Bethink."""
    with closing(ForeignDatabase(file)) as tables:
        if tables.columns.keys() >= OURS:
            return None
        if program := tables.find_program():
            rows = (row.get("why_left", row) for row in tables.read_program(program))
            return convert(memory, rows, program, file)
    found = ", ".join(sorted(tables.columns)[:10]) or "none"
    raise InvalidInput(
        f"{file} is a database of a program that is not known here; its tables are: {found}.",
        f"Known are {', '.join(list_programs())}. Write it out as JSON or CSV and import that.",
    )


# Tables of LanceDB


def find_lance(folder: Path) -> list[Path]:
    """List the LanceDB tables in a folder, or in its folder of vectors; or the table itself."""
    if folder.suffix == ".lance":
        return [folder]
    return sorted((*folder.glob("*.lance"), *folder.glob("vectors/*.lance")))


def read_lance(memory: Bethink, folder: Path) -> Rows:
    """Yield the rows of all LanceDB tables with a column of text. Vectors are not read."""
    if find_spec("lancedb") is None:
        raise BethinkError(
            f"{folder} holds tables of LanceDB; to read them needs lancedb, which is not installed.",
            "pip install 'bethink[lancedb]'",
        )
    try:
        yield from _read_tables(find_lance(folder))
    except (OSError, ValueError, RuntimeError) as error:
        why = str(error).partition("\n")[0][:200]
        raise InvalidInput(
            f"The tables of {folder} cannot be read: {why}. Nothing was taken in.",
            "Check that the folder is whole.",
        ) from error


def _read_tables(places: Sequence[Path]) -> Rows:
    import lancedb

    for place in places:
        table = lancedb.connect(str(place.parent)).open_table(place.stem)
        names = [one.name for one in table.schema if not hasattr(one.type, "value_type")]
        if _has_text(names, ""):
            for batch in table.search().select(names).limit(MOST_ROWS + 1).to_batches():
                yield from batch.to_pylist()


# JSON and CSV


def read_csv(memory: Bethink, file: Path, text: str, text_column: str) -> Reading:
    delimiter = max((",", ";", "\t", "|"), key=text[:10_000].partition("\n")[0].count)
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
    """Read rows with a column of text: those of a table, or JSON objects, possibly nested in another."""
    if len(rows) == 1 and isinstance(rows[0], dict) and not _has_text(rows[0], text_column):
        lists = [one for one in rows[0].values() if isinstance(one, list) and one]
        rows = lists[0] if len(lists) == 1 else rows
    each = [{"text": one} if isinstance(one, str) else one for one in rows]
    objects = [one for one in each if isinstance(one, dict)]
    if each and not any(_has_text(one, text_column) for one in objects[:1000]):
        columns = (
            ", ".join(str(name)[:40] for name in islice(objects[0], 12)) if objects else "none"
        )
        wanted = f"'{text_column}'" if text_column else f"of text ({', '.join(TEXT_COLUMNS)})"
        raise InvalidInput(
            f"{file} has no column {wanted}; its columns are: {columns}.",
            "Name the one that holds the text with --text-column.",
        )
    return convert(memory, each, format, file, text_column)


def _has_text(names: Iterable[str], text_column: str) -> bool:
    if text_column:
        return text_column in names
    return not {*TEXT_COLUMNS}.isdisjoint(map(_fold, names))


# Folders of Markdown

# Kinds of Claude Code's memory, and the files of rules that it and others read.
_CLAUDE_KINDS = {
    "user": "preference",
    "feedback": "preference",
    "project": "fact",
    "reference": "document",
}
RULE_FILES = "AGENTS.md CLAUDE.md CLAUDE.local.md GEMINI.md".split()
_OBSERVATION = re.compile(r"(?m)^[ \t]{0,8}[-*] \[([^\W\d_][^\[\]()\n]{1,60})\] +(\S.*)$")
_RELATION = re.compile(r"(?m)^[ \t]{0,8}[-*] ([^\[\]\n]{1,60}?) *\[\[([^\[\]\n]{1,200})\]\].*$")
_HEADING = re.compile(r"(?m)^#.*$")
_LISTS = re.compile(r"(?mi)^## (?:observations|relations)[ \t]*$")
_HASHTAG = re.compile(r"(?:^|(?<=\s))#([\w/-]{1,100})")
_CWD = re.compile(r"\bcwd=([^;,\n]{1,500})")
_INDEX_LINE = re.compile(r"[ \t]*[-*] \[[^\]\n]{1,200}\]\([^)\n]{1,200}\)")


# A vault for Obsidian, as an export writes it. A note is one memory, followed by a mark and its relations as links. The index
# identifies a vault. A note contains a digest of itself, so that edits are noticed.
INDEX = "Bethink.md"
INDEX_HEAD = "---\nbethink: vault\n---\n"
MARK = "%% bethink: the lines below are its links %%"


class Note(NamedTuple):
    """Markdown file, its path in the folder that is read, and its parsed text."""

    path: Path
    place: str
    text: str
    page: markdown.Page


def _read_notes(folder: Path) -> Iterator[Note | None]:
    """Yield the Markdown files of a folder, or one file, without private parts; None for unreadable ones.

    Private parts are removed before a text is cut: half of one does not look private.
    """
    for found in walk(folder, folder if folder.is_dir() else folder.parent, MARKDOWN):
        read = found if isinstance(found, Skipped) else read_text(found)
        if isinstance(found, Skipped) or isinstance(read, Skipped):
            yield None
        else:
            text = markdown.redact_in_place(read[0])
            yield Note(found.path, found.uri, text, markdown.parse(text))


def _cut(memory: Bethink, text: str, note: Note) -> Iterator[Row]:
    """Yield the sections of a text as rows. Their kind is left open, unless the file names it."""
    size, name = memory.config.chunk_size, note.path.name
    for one in markdown.read_passages(text, name, "headers", size, 0, []):
        kind = None if one.kind == "document" else one.kind
        yield {"text": one.content, "section": one.section, "kind": kind, "tags": one.tags}


def _read_claude(memory: Bethink, note: Note) -> Rows:
    """Yield Claude Code's memory: one file for each memory and an index; or rules such as CLAUDE.md."""
    path, text, fields = note.path, note.text, note.page.frontmatter
    inner = fields.get("metadata")
    kind = _CLAUDE_KINDS.get(str((inner if isinstance(inner, dict) else fields).get("type")))
    if path.name == "MEMORY.md":
        text = "\n".join(line for line in text.splitlines() if not _INDEX_LINE.match(line))
    common = {
        "project": path.parents[1].name if path.parent.name == "memory" else "",
        "created": fields.get("modified") or path.stat().st_mtime,
        "metadata": {"file": str(path), "description": fields.get("description")},
    }
    for row in _cut(memory, text, note):
        section = fields.get("name") or row["section"]
        yield row | common | {"kind": kind or row["kind"], "section": section}


def _read_codex(memory: Bethink, note: Note) -> Rows:
    """Yield Codex's memory: tasks in each folder, and its user. Raw notes are skipped as duplicates."""
    if note.place.partition("/")[0] in ("rollout_summaries", "raw_memories.md", "skills"):
        yield RAW
        return
    for part in re.split(r"(?m)^(?=# Task Group:)", note.text):
        where = _CWD.search(part)
        project = where[1].partition(" and /")[0].strip() if where else ""
        for row in _cut(memory, part, note):
            about = "preference" if "preferences" in str(row["section"]).lower() else None
            yield row | {
                "kind": about or row["kind"],
                "project": PERSONAL if note.place == "memory_summary.md" else project,
                "created": note.path.stat().st_mtime,
                "metadata": {"file": str(note.path)},
            }


def _read_basic_memory(memory: Bethink, note: Note) -> Rows:
    """Yield notes of basic-memory: each observation is a memory, and the rest of a note is one, too."""
    path, fields, body = note.path, note.page.frontmatter, note.page.body
    title, kind = str(fields.get("title") or path.stem), str(fields.get("type") or "note")
    prose = body
    for pattern in (_OBSERVATION, _RELATION, _LISTS):
        prose = pattern.sub("", prose)
    rows: list[Row] = []
    if _HEADING.sub("", prose).strip():  # headings alone say nothing
        own = {"kind": "" if kind == "note" else kind, "tags": []}
        rows = [{"text": row["text"], **own} for row in _cut(memory, prose, note)]
    rows += [
        {"text": text.strip(), "kind": word.strip(), "tags": _HASHTAG.findall(text)}
        for word, text in _OBSERVATION.findall(body)
    ]
    links = [(word.strip().replace(" ", "_"), name) for word, name in _RELATION.findall(body)]
    common = {
        "section": title,
        "created": fields.get("created") or path.stat().st_mtime,
        "updated": fields.get("modified"),
        "metadata": {"file": str(path), "permalink": fields.get("permalink")},
    }
    for number, row in enumerate(rows):
        first = {} if number else {"id": title, "relations": links}
        tags = [*to_list(fields.get("tags")), *row["tags"]]
        yield {**common, **row, **first, "tags": tags}


def _read_vault(memory: Bethink, note: Note) -> Rows:
    """Yield notes of a vault: those of an export under their ids, any other as the user's own."""
    fields = note.page.frontmatter
    if note.place == INDEX:
        return
    above, _, below = note.page.body.rpartition(MARK)
    text = (above if MARK in note.page.body else below).strip()
    own = {name: str(fields.get(name, "")) for name in ("id", "scope", "trust", "saved")}
    is_ours = ID.fullmatch(own["id"]) is not None
    trust = int(own["trust"]) if own["trust"].isdecimal() else TRUST["user"]
    scope = own["scope"] or memory.scope
    yield {
        **fields,
        "id": note.path.stem,
        "text": text,
        "section": fields.get("section") if is_ours else note.path.stem,
        "relations": [(word, name.partition("|")[0]) for word, name in _RELATION.findall(below)],
        "own": OwnNote(own["id"] if is_ours else "", scope, trust, own["saved"], dict(fields)),
    }


def is_vault(place: Path) -> bool:
    read = read_text(Found(place / INDEX, INDEX))
    return not isinstance(read, Skipped) and read[0].startswith(INDEX_HEAD)


def list_vault(memory: Bethink, folder: Path) -> list[tuple[Path, Incoming]]:
    """List the notes of a vault that an export wrote."""
    notes = [note for note in _read_notes(folder) if note]
    each = [
        (note.path, convert(memory, _read_vault(memory, note), "vault", folder)) for note in notes
    ]
    return [(path, one) for path, read in each for one in read.records if one.saved]


def _is_codex(place: Path) -> bool:
    return any((place / name).is_file() for name in ("memory_summary.md", "raw_memories.md"))


def _is_claude(place: Path) -> bool:
    if place.is_file():
        return place.name in RULE_FILES or place.parent.name == "memory"
    return (place / "MEMORY.md").is_file() or any(place.glob("*/memory/*.md"))


def _is_basic_memory(place: Path) -> bool:
    """Return True if one of the first files has the front matter of basic-memory."""
    first = islice(_read_notes(place), 50)
    return any("permalink" in note.page.frontmatter for note in first if note)


# Importers: one for each program whose memories are read from files or folders


class Importer(NamedTuple):
    """Another program's memories in files or folders: how they are recognised, and the rows in them.

    A row is a dict with our names for its fields (`text`, `kind`, `tags`, `created` …) or a usual alias of one.
    """

    name: str
    owns: Callable[[Path], bool]
    rows: Callable[[Bethink, Path], Rows]
    title: str = ""  # shown as the format, if not the name
    inner: tuple[str, str] = ("", "")  # name of the program's folder, and the folder in it to read


def _read_notes_with(read: Callable[[Bethink, Note], Rows], memory: Bethink, place: Path) -> Rows:
    of_claude = place.name == "projects"
    for note in _read_notes(place):
        if note is None:
            yield None
        elif not note.page.directives.get("index", True):
            yield KEPT_OUT
        elif not of_claude or note.path.parent.name == "memory":
            yield from read(memory, note)


LANCEDB = Importer("lancedb", lambda place: bool(find_lance(place)), read_lance, "LanceDB")
VAULT = Importer("vault", is_vault, partial(_read_notes_with, _read_vault))
CODEX = Importer(
    "codex", _is_codex, partial(_read_notes_with, _read_codex), "Codex", (".codex", "memories")
)
CLAUDE = Importer(
    "claude",
    _is_claude,
    partial(_read_notes_with, _read_claude),
    "Claude Code",
    (".claude", "projects"),
)
BASIC_MEMORY = Importer(
    "basic-memory", _is_basic_memory, partial(_read_notes_with, _read_basic_memory)
)


def find_importer(place: Path) -> tuple[Importer, Path] | None:
    """Return the importer for a file or folder and the folder in it to read, or None."""
    is_notes = place.is_dir() or place.suffix.lower() in MARKDOWN
    for importer in plugins.IMPORTERS.all():
        if not is_notes and plugins.IMPORTERS.is_ours(importer.name):
            continue
        folder, inside = importer.inner
        inner = place / inside if folder and place.name == folder else place
        inner = inner if inner.exists() else place
        if plugins.IMPORTERS.ask(importer, lambda one: one.owns(inner), default=False):  # noqa: B023
            return importer, inner
    return None


def read_importer(memory: Bethink, importer: Importer, place: Path) -> Reading:
    """Return what an importer finds in a place."""
    title = importer.title or importer.name
    if plugins.IMPORTERS.is_ours(importer.name):
        return convert(memory, importer.rows(memory, place), title, place)
    try:
        rows = list(islice(importer.rows(memory, place), MOST_ROWS + 1))
    except Exception as error:
        raise InvalidInput(
            f"The importer '{importer.name}' cannot read {place}: {type(error).__name__}: {error}.",
            "bethink doctor",
        ) from error
    return convert(memory, rows, title, place)


# What a row means


def convert(
    memory: Bethink,
    rows: Iterable[Row | str | None],
    format: str,
    place: Path,
    text_column: str = "",
) -> Reading:
    """Convert rows to records with stable ids, so that an import can be repeated."""
    source = Source(redact_name(f"import:{format}:{place.resolve().as_posix()}"))
    options = memory.write_options(memory.scope, scopes={})
    written = min(options.now, _to_time(place.stat().st_mtime) or options.now)
    left: Counter[str] = Counter()
    names: Names = {}
    made: list[tuple[Incoming, Row]] = []
    for number, row in enumerate(rows, start=1):
        if number > MOST_ROWS:
            raise InvalidInput(
                f"{place} holds more than {MOST_ROWS:,} memories.", "Import it in parts."
            )
        if not isinstance(row, dict):
            left[row if isinstance(row, str) else _UNREADABLE] += 1
            continue
        fields = _name_fields(row, text_column)
        fields["created"] = _to_time(fields.get("created")) or written
        one = _make_record(memory, fields, options, source, names)
        if isinstance(one, str):
            left[one] += 1
        else:
            made.append((one, fields))
    return Reading(format, _relate(made), names, left)


def _name_fields(row: Row, text_column: str) -> Row:
    """Rename the fields of a row to ours; unknown ones are dropped."""
    folded = {_fold(name): name for name in reversed(row) if name is not None}
    fields: Row = {}
    for field, aliases in _FIELDS.items():
        for alias in aliases:
            if alias in folded and row[folded[alias]] not in (None, "", []):
                fields[field] = row[folded.pop(alias)]
                break
    if text_column:
        fields["text"] = row.get(text_column)
    inner = to_object(fields.get("metadata"))
    metadata = {_to_text(name): value for name, value in inner.items()}
    own = row.get("own")
    return fields | {"metadata": metadata, "own": own if isinstance(own, OwnNote) else NO_NOTE}


def _make_record(
    memory: Bethink,
    fields: Row,
    options: WriteOptions,
    source: Source,
    names: Names,
) -> Incoming | str:
    """Build the memory of a row, or return the reason for skipping it."""
    text = _to_text(fields.get("text"))
    gone = "deleted" in fields and _to_switch(fields["deleted"])
    if gone or fields.get("successor") == "DELETED":
        return DELETED
    if not text.strip() or len(text) > options.longest:
        return _LONG if text.strip() else EMPTY
    kind, tags = _find_kind(fields)
    metadata = fields["metadata"] | _list_origin(fields)
    is_handoff = kind is None and _to_text(metadata.get("type")).lower() == "handoff"
    if kind == "handoff" or is_handoff:
        kind, metadata = "handoff", _read_handoff(text) | metadata
    passage = make_passage(
        content=text,
        kind=kind,
        summary=_to_text(fields.get("summary"))[: 2 * LONGEST_EXTRA] or None,
        importance=_to_importance(fields.get("importance")),
        confidence=_to_number(fields.get("confidence"), 1),
        tags=tags,
        entities=tuple(
            map(as_entity, [*_list_names(fields.get("entities")), *_list_files(metadata)])
        ),
        section=_to_text(fields.get("section"))[:LONGEST_EXTRA] or None,
        created_at=fields["created"],
        expires_at=_to_time(fields.get("expires")),
        metadata=metadata,
        **{name: _to_value(fields.get(name), info) for name, info in _MORE.items()},
    )
    try:
        clean, redactions = clean_passage(passage, options.longest)
    except InvalidInput:
        return EMPTY  # once the private parts are taken out
    own: OwnNote = fields["own"]
    scope = own.scope or _find_scope(memory, fields, names)
    made = make_memory(extract(clean), source, options._replace(scope=scope), 0)
    made = made._replace(
        id=own.id or make_id(fields.get("id"), made.content_hash, made.section or ""),
        trust=own.trust,
        updated_at=_to_time(fields.get("updated")) or made.created_at,
        usefulness=_to_number(fields.get("votes"), 1e6, -1e6) or 0.0,
        access_count=int(_to_number(fields.get("uses"), 1e6) or 0),
        last_accessed=_to_time(fields.get("accessed")) or made.last_accessed,
        lines=_find_lines(metadata) or made.lines,
        answered=_to_switch(fields["answered"]) if "answered" in fields else made.answered,
    )
    return Incoming(Record(made, True), (), redactions, own.saved, own.head)


def _list_origin(fields: Row) -> Row:
    """Return what other programs keep in columns and Bethink in the metadata: the file, and a promotion."""
    origin = {"file": _to_text(fields.get("file"))[:LONGEST_EXTRA]}
    if "promoted" in fields and _to_switch(fields["promoted"]):
        origin["promoted_at"] = _to_text(fields.get("promotedat"))[:LONGEST_EXTRA] or "unknown"
    return {name: value for name, value in origin.items() if value}


def _list_files(metadata: Mapping[str, Any]) -> list[str]:
    """Return the entity of the file that a passage is from, if its metadata names one."""
    named = (_to_text(metadata.get(name)) for name in FILE_NAMES)
    file = next((one for one in named if "/" in one or "." in one), "")
    return [f"file:{file}"] if 0 < len(file) <= _LONGEST_TAG else []


def _find_lines(metadata: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the lines that the metadata names, as two numbers, a list or a text such as `3-9`."""
    known = {_fold(name): value for name, value in metadata.items()}
    first, last = (
        next((known[name] for name in names if name in known), None) for names in LINE_NAMES
    )
    both = known.get("lines", known.get("linerange"))
    if isinstance(both, str):
        both = both.replace(":", "-").split("-")
    if isinstance(both, Mapping):
        first, last = both.get("start"), both.get("end")
    elif isinstance(both, list) and both:
        first, last = both[0], both[-1]
    numbers = [_to_number(one, MOST_NUMBER, -1) for one in (first, first if last is None else last)]
    if numbers[0] is None or numbers[1] is None or not 0 < numbers[0] <= numbers[1]:
        return None
    return int(numbers[0]), int(numbers[1])


def _read_handoff(text: str) -> Row:
    """Return the fields of a handoff that another program stored as Markdown."""
    fields = parse_handoff(text)._asdict().items()
    return {name: list(one) if isinstance(one, tuple) else one for name, one in fields if one}


def _find_scope(memory: Bethink, fields: Row, names: Names) -> str:
    """Return the scope of a row: here, the user, or another project known by name or folder."""
    project, place = _to_text(fields.get("project")), memory.project
    if project.endswith(
        ".jsonl"
    ):  # a transcript, whose folder is called as Claude Code calls the project
        folder = Path(project).parent.name
        project = folder if folder.startswith("-") else ""
    if project == PERSONAL:
        return PERSONAL
    root = str(place.root)
    if project in ("", place.name, root, claude_slug(place.root)) or project.startswith(f"{root}/"):
        name = str(fields.get("container") or "")
        return place.container(name) if any(map(str.isalnum, name)) else memory.scope
    scope = f"project:{blake2b(project.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
    path = project if project.startswith("/") else ""
    name, path = redact_value([Path(project).name[:_LONGEST_TAG], path])[0]
    names[scope] = name, path
    return scope


def _find_kind(fields: Row) -> tuple[str | None, tuple[str, ...]]:
    """Kind and tags of a row. An unknown kind becomes a tag."""
    word = _to_text(fields.get("kind")).strip().lower()
    kind = _KINDS.get(word, word)
    tags = [tag.lstrip("#") for tag in _list_names(fields.get("tags"))]
    if kind in KINDS:
        return kind, tuple(tags)
    return None, tuple(filter(None, (*tags, word[:_LONGEST_TAG])))


def _to_name(value: object) -> str:
    """Read a name that may be an object with a type, as exports write entities."""
    if isinstance(value, Mapping) and value.get("name"):
        return f"{value.get('type', 'concept')}:{value['name']}"
    return _to_text(value)


def _list_names(value: object) -> list[str]:
    """Read the first names of a list, each cut to a maximum length."""
    names = (_to_name(one).strip()[:_LONGEST_TAG] for one in to_list(value))
    return list(dict.fromkeys(filter(None, names)))[:_MOST_TAGS]


def _relate(made: Sequence[tuple[Incoming, Row]]) -> list[Incoming]:
    """Add relations to memories once all ids are known.

    A memory that a later one supersedes is marked as replaced, without that relation.
    """
    named = ((fields["id"], one.id) for one, fields in reversed(made) if "id" in fields)
    ids = {_key(name): id for name, id in named}
    order = {one.id: (one.memory.created_at, at) for at, (one, _) in enumerate(made)}
    later: dict[str, str] = {}
    links: dict[str, list[Relation]] = {id: [] for id in order}
    for one, fields in made:
        id = one.id
        for word, target in _read_pairs(fields.get("relations")):
            other = ids.get(_key(target), id)
            if word == "supersedes" and order[other] < order[id]:
                later.setdefault(other, id)
            elif other != id:
                kind = word if word in RELATIONS else "relates_to"
                links[id].append(Relation(id, other, kind, one.memory.updated_at))
        by = ids.get(_key(fields.get("successor")), id)
        if order[id] < order[by]:
            later[id] = by
    related = []
    for one, _ in made:
        memory = one.memory._replace(superseded_by=later.get(one.id))
        links_of = tuple(links[memory.id])
        related.append(one._replace(record=Record(memory, True), relations=links_of))
    return related


def _read_pairs(value: object) -> Iterator[tuple[str, Any]]:
    """Yield type and target of each relation of a row."""
    for pair in to_list(value):
        if isinstance(pair, list | tuple) and len(pair) == 2:
            yield _to_text(pair[0]).lower(), pair[1]


def make_id(*parts: object) -> str:
    """Derive an id from the name and text of a memory alone."""
    joined = "\0".join(map(str, parts)).encode("utf-8", "replace")
    digits = blake2b(joined, digest_size=16).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def _key(value: object) -> str:
    return str(value).strip().casefold()


def _to_text(value: object) -> str:
    """Convert a value to a text that can be stored; list items become lines."""
    if isinstance(value, list):
        value = "\n".join(one for one in value if isinstance(one, str))
    text = str(value) if isinstance(value, str | int | float) else ""
    return replace_broken(text.replace("\x00", ""))


def to_list(value: object) -> list[Any]:
    """Read a list that may be JSON, or words separated by commas."""
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(",") if part.strip()]
    found = _parse(value)
    if isinstance(found, list | tuple):
        return list(found)
    return [] if found is None else [found]


def to_object(value: object) -> Mapping[str, Any]:
    found = _parse(value)
    return found if isinstance(found, Mapping) else {}


def _parse(value: object) -> Any:
    """Return the value of a JSON text, None if it is not JSON; any other value unchanged."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _to_value(value: object, info: FieldInfo) -> Any:
    """Convert a value to the type of a field; None if it cannot be read."""
    if value is None:
        return None
    field = info.field
    match info.shape:
        case "number" | "whole":
            low = -MOST_NUMBER if field.low is None else field.low
            high = MOST_NUMBER if field.high is None else field.high
            number = _to_number(value, high, low)
            return number if info.shape == "number" or number is None else int(number)
        case "time":
            return _to_time(value)
        case "switch":
            return _to_switch(value)
        case "texts":
            return tuple(_list_names(value))
        case "object":
            return to_object(value)
        case _:
            return _to_text(value)[:LONGEST_EXTRA] or None


def read_edit(value: object, info: FieldInfo) -> Any:
    """Convert a value that a person wrote into the field of a note, which must be valid."""
    if info.shape == "entities":
        return tuple(map(as_entity, _list_names(value)))
    read = _to_value(value, info)
    is_number = info.shape in ("number", "whole")
    if read is None or (is_number and float(str(value)) != read):
        raise InvalidInput(f"{value!r} is not a valid {info.label}.", f"It takes {info.takes}.")
    return read


def _to_switch(value: object) -> bool:
    return value not in (0, False, "0", "false", "")


def _to_number(value: object, most: float, least: float = 0.0) -> float | None:
    """Convert a value to a number within bounds."""
    if not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if isnan(number) else max(least, min(number, most))


def _to_importance(value: object) -> float | None:
    """Convert an importance to the range 0 to 10; other programs use 0 to 1."""
    number = _to_number(value, 10)
    return number * 10 if number and number < 1 else number


def _to_time(value: object) -> datetime | None:
    """Read a time in any form that stores use, including numbers and dates as text."""
    text = str(value).strip() if isinstance(value, str | date) else ""
    is_number = text.replace(".", "", 1).isdigit()
    return as_time(float(text) if is_number else text or value)
