"""Folders of Markdown that are somebody's memory: what basic-memory, Claude Code and Codex write, and the vault that Bethink writes
for Obsidian.

A folder is known by its files; a new kind of folder is a line in `FOLDERS` and the function that gives its rows, as `readers` wants
them. Any other folder is just documents, which `knowledge.import_markdown` reads. A note of a vault is one memory: its fields are those
of an export, its text is the memory's, and below a mark stand its relations as links. It remembers what it said when it was written,
so that it is known whether somebody edited it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bethink.api import Bethink
from bethink.errors import BethinkError, InvalidInput
from bethink.features.knowledge import MARKDOWN
from bethink.features.readers import RAW, Reading, Row, Rows, convert, is_lance, read_lance, to_list
from bethink.ingest import markdown
from bethink.ingest.extract import keywords
from bethink.ingest.files import Found, read_text, walk
from bethink.ingest.sync import Skipped
from bethink.text import as_entity
from bethink.types import KINDS as TYPES
from bethink.types import PERSONAL, Memory

# What Claude Code calls the kinds of its own memory, and the files of rules that it and others read.
KINDS = {"user": "preference", "feedback": "preference", "project": "fact", "reference": "document"}
RULE_FILES = ("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md")
_DEFAULTS = {**Memory._field_defaults, "tags": [], "metadata": {}}

_OBSERVATION = re.compile(r"[ \t]{0,8}[-*] \[([^\W\d_][^\[\]()]{1,60})\] +(\S.*)")
_RELATION = re.compile(r"[ \t]{0,8}[-*] ([^\[\]\n]{1,60}?) *\[\[([^\[\]\n]{1,200})\]\]")
_LINK = re.compile(r"\[\[([^\[\]|#\n]{1,200})")
_HASHTAG = re.compile(r"(?:^|(?<=\s))#([\w/-]{1,100})")
_CWD = re.compile(r"\bcwd=([^;,\n]{1,500})")
_INDEX_LINE = re.compile(r"[ \t]*[-*] \[[^\]\n]{1,200}\]\([^)\n]{1,200}\)")


KEPT_OUT = "kept out"  # by `index: false`


class Note(NamedTuple):
    """A Markdown file, its place in the folder that is read, and its text taken apart."""

    path: Path
    place: str
    text: str
    page: markdown.Page


def _read_files(folder: Path) -> Iterator[tuple[Found, str] | None]:
    """The Markdown files of a folder with their texts, or a file itself; None for one that cannot be read."""
    for found in walk(folder, folder if folder.is_dir() else folder.parent, MARKDOWN):
        read = found if isinstance(found, Skipped) else read_text(found)
        yield None if isinstance(found, Skipped) or isinstance(read, Skipped) else (found, read[0])


def _read_notes(folder: Path) -> Iterator[Note | None]:
    """The files of a folder without their private parts, which are taken out before a text is cut: half of one does not look private."""
    for file in _read_files(folder):
        if file is None:
            yield None
            continue
        text = markdown.redact_in_place(file[1])[0]
        yield Note(file[0].path, file[0].uri, text, markdown.parse(text))


def _cut(memory: Bethink, text: str, path: Path) -> Iterator[Row]:
    """The sections of a text as rows. A kind is left for the text to tell, unless the file says it."""
    for one in markdown.read_passages(
        text, path.name, "headers", memory.config.chunk_size, 0, None
    ):
        yield {
            "text": one.content,
            "section": one.section,
            "kind": None if one.kind == "document" else one.kind,
            "tags": one.tags,
        }


def _read_claude(memory: Bethink, note: Note) -> Rows:
    """Claude Code's own memory: one file for each memory, and an index; or a file of rules, such as CLAUDE.md."""
    path, text, fields = note.path, note.text, note.page.frontmatter
    inner = fields.get("metadata")
    kind = KINDS.get(str((inner if isinstance(inner, dict) else fields).get("type")))
    if path.name == "MEMORY.md":
        text = "\n".join(line for line in text.splitlines() if not _INDEX_LINE.match(line))
    common = {
        "project": path.parents[1].name if path.parent.name == "memory" else "",
        "created": fields.get("modified") or path.stat().st_mtime,
        "metadata": {"file": str(path), "description": fields.get("description")},
    }
    links = [("relates_to", name) for name in _LINK.findall(note.page.body)]
    first = {"id": fields.get("name"), "relations": links}
    for row in _cut(memory, text, path):
        section = fields.get("name") or row["section"]
        yield row | common | first | {"kind": kind or row["kind"], "section": section}
        first = {}


def _read_codex(memory: Bethink, note: Note) -> Rows:
    """Codex's own memory: what it knows of the tasks in each folder, and of its user. Its raw notes are left: they are in there."""
    if note.place.partition("/")[0] in ("rollout_summaries", "raw_memories.md", "skills"):
        yield RAW
        return
    for part in re.split(r"(?m)^(?=# Task Group:)", note.text):
        where = _CWD.search(part)
        project = where[1].partition(" and /")[0].strip() if where else ""
        for row in _cut(memory, part, note.path):
            about = "preference" if "preferences" in str(row["section"]).lower() else None
            yield row | {
                "kind": about or row["kind"],
                "project": PERSONAL if note.place == "memory_summary.md" else project,
                "created": note.path.stat().st_mtime,
                "metadata": {"file": str(note.path)},
            }


def _read_basic_memory(memory: Bethink, note: Note) -> Rows:
    """basic-memory: notes with observations and relations. Each observation is a memory, and what else a note says is one, too."""
    path, fields = note.path, note.page.frontmatter
    title, kind = str(fields.get("title") or path.stem), str(fields.get("type") or "note")
    common: Row = {
        "section": title,
        "created": fields.get("created") or path.stat().st_mtime,
        "updated": fields.get("modified"),
        "metadata": {"file": str(path), "permalink": fields.get("permalink")},
    }
    rows, prose, links = _take_apart(note.page.body)
    whole = [
        {"text": row["text"], "kind": "" if kind == "note" else kind, "tags": []}
        for row in _cut(memory, "\n".join(prose), path)
    ]
    first = {"id": title, "relations": links}
    for row in [*whole, *rows]:
        yield common | row | first | {"tags": [*to_list(fields.get("tags")), *row["tags"]]}
        first = {}


def _take_apart(body: str) -> tuple[list[Row], list[str], list[tuple[str, str]]]:
    """The observations of a note, its other lines, and what it is related to."""
    rows: list[Row] = []
    prose: list[str] = []
    links: list[tuple[str, str]] = []
    for line in body.splitlines():
        if found := _OBSERVATION.fullmatch(line):
            tags = _HASHTAG.findall(found[2])
            rows.append({"text": found[2].strip(), "kind": found[1].strip(), "tags": tags})
        elif found := _RELATION.match(line):
            links.append((found[1].strip().replace(" ", "_"), found[2].strip()))
        elif line.strip().lower() not in ("## observations", "## relations"):
            prose.append(line)
            links += [("relates_to", name.strip()) for name in _LINK.findall(line)]
    return rows, prose, links


def _is_codex(place: Path) -> bool:
    if (place / "memory_summary.md").is_file() or (place / "raw_memories.md").is_file():
        return True
    index = read_text(Found(place / "MEMORY.md", "MEMORY.md"))
    return not isinstance(index, Skipped) and "\n# Task Group:" in f"\n{index[0]}"


def _is_claude(place: Path) -> bool:
    if place.is_file():
        return place.name in RULE_FILES or place.parent.name == "memory"
    return (place / "MEMORY.md").is_file() or any(place.glob("*/memory/*.md"))


def _is_basic_memory(place: Path) -> bool:
    """Whether one of the first files has the front matter that basic-memory gives each."""
    first = islice(_read_notes(place), 50)
    return any("permalink" in note.page.frontmatter for note in first if note)


def _read_each(read: Callable[[Bethink, Note], Rows], memory: Bethink, place: Path) -> Rows:
    for note in _read_notes(place):
        if note is None:
            yield None
        elif not note.page.directives.get("index", True):
            yield KEPT_OUT
        elif place.name != "projects" or note.path.parent.name == "memory":  # of Claude Code
            yield from read(memory, note)


FOLDERS: tuple[tuple[str, Callable[[Path], bool], Callable[[Bethink, Path], Rows]], ...] = (
    ("LanceDB", is_lance, read_lance),
    ("Codex", _is_codex, partial(_read_each, _read_codex)),
    ("Claude Code", _is_claude, partial(_read_each, _read_claude)),
    ("basic-memory", _is_basic_memory, partial(_read_each, _read_basic_memory)),
)


def read_folder(memory: Bethink, place: Path) -> Reading | None:
    """What a folder, or a file of Markdown, holds of another memory; None if it is just Markdown."""
    inner = _find_inner(place)
    for name, recognise, rows in FOLDERS:
        if recognise(inner):
            return convert(memory, rows(memory, inner), name, inner)
    return None


def is_known(place: Path) -> bool:
    """Whether a folder, or a file of Markdown, is a memory of some program's and not just Markdown."""
    inner = _find_inner(place)
    return is_vault(place) or any(recognise(inner) for _, recognise, _ in FOLDERS)


def _find_inner(place: Path) -> Path:
    """Where in the folder of an agent its memory is."""
    inner = {".claude": place / "projects", ".codex": place / "memories"}.get(place.name, place)
    return inner if inner.is_dir() else place


# A vault for Obsidian

INDEX = "Bethink.md"
MARK = "%% bethink: the lines below are its links %%"
LONGEST_NAME = 60
LONGEST_FIELDS = 200_000  # characters of the fields of one note
# What a note does not tell, because its text or its links do, or because it is made anew.
_UNTOLD = tuple(
    "content content_hash unique relations history path keywords entities summary".split()
)
_NO_NAME = re.compile(r"[^\w ,.()+=!-]+")
_ODD = re.compile(
    "[\x7f-\x9f\u2028\u2029\ufeff]"
)  # what JSON writes as it is and YAML reads otherwise
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class VaultNote(NamedTuple):
    path: Path
    fields: Mapping[str, Any]
    content: str
    links: tuple[tuple[str, str], ...]  # type, name of the other note


def digest(content: str, kind: str, tags: Iterable[str]) -> str:
    """What somebody may edit of a note, in short."""
    text = "\0".join([content.strip().replace("\r\n", "\n"), kind, *sorted(map(str, tags))])
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def write_vault(records: Iterable[Mapping[str, Any]], folder: Path, title: str) -> int:
    """Writes the objects of an export as notes, and an index of them. Notes of an earlier export go; anybody else's stay."""
    notes = {str(one["id"]): one for one in records}
    try:
        old = _check_vault(folder)
        names = _name_notes(notes)
        texts = {
            folder / one["kind"] / f"{names[id]}.md": _render_note(one, names)
            for id, one in notes.items()
        }
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, text in {**texts, folder / INDEX: _render_index(notes, names, title)}.items():
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


def _check_vault(folder: Path) -> set[Path]:
    """The notes that an earlier export wrote. Nothing is written over what somebody edited, or into anything else than a vault."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is no folder.", "Name one for the vault.")
    if not folder.exists() or not any(folder.iterdir()):
        return set()
    if not is_vault(folder):
        raise InvalidInput(
            f"{folder} holds other files and is no vault of Bethink.", "Name an empty folder."
        )
    notes = [note for note in _read_vault_notes(folder) if note and "id" in note.fields]
    if edited := [note.path.name for note in notes if is_edited(note)]:
        raise InvalidInput(
            f"{len(edited)} of its notes were edited since they were written, such as {edited[0]}.",
            f"Take them in with `bethink import {folder} --trusted`, or name another folder.",
        )
    return {note.path for note in notes}


def is_edited(note: VaultNote) -> bool:
    fields = note.fields
    tags = to_list(fields.get("tags"))
    return fields.get("saved") != digest(note.content, str(fields.get("kind")), tags)


def _name_notes(notes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The name of each note: its first words, and the end of its id, which tells it from others."""
    names = {}
    for id, one in notes.items():
        words = " ".join(_NO_NAME.sub(" ", one["summary"] or one["content"][:200]).split())
        short = words[:LONGEST_NAME].rsplit(" ", 1)[0] if len(words) > LONGEST_NAME else words
        names[id] = f"{short.strip(' .') or one['kind']} {id[-8:]}"
    return names


def _render_note(one: Mapping[str, Any], names: Mapping[str, str]) -> str:
    entities = [f"{entity['type']}:{entity['name']}" for entity in one["entities"]]
    told = {name: value for name, value in one.items() if name not in _UNTOLD}
    told = {name: value for name, value in told.items() if value != _DEFAULTS.get(name)}
    fields = told | {"summary": one["summary"], "entities": entities}
    fields["saved"] = digest(one["content"], one["kind"], one["tags"])
    lines = [f"{name}: {_render_value(value)}" for name, value in fields.items()]
    links = [
        f"- {link['type']} [[{names[link['target']]}]]"
        for link in one["relations"]
        if link["target"] in names
    ]
    links += [f"- about [[{entity['name']}]]" for entity in one["entities"]]
    parts = ["---", *lines, "---", one["content"], "", MARK, *links]
    return "\n".join(parts) + "\n"


def _render_value(value: Any) -> str:
    """A value as YAML; a time without quotation marks, by which Obsidian knows it."""
    if isinstance(value, str) and _TIME.fullmatch(value):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _render_index(
    notes: Mapping[str, Mapping[str, Any]], names: Mapping[str, str], title: str
) -> str:
    lines = ["---", "bethink: vault", "---", f"# {title}"]
    for kind in TYPES:
        of_kind = [id for id, one in notes.items() if one["kind"] == kind]
        if of_kind:
            lines += ["", f"## {kind}", "", *(f"- [[{names[id]}]]" for id in of_kind)]
    return "\n".join(lines) + "\n"


def is_vault(place: Path) -> bool:
    read = read_text(Found(place / INDEX, INDEX))
    return not isinstance(read, Skipped) and read[0].replace("\r", "").startswith(
        "---\nbethink: vault\n---\n"
    )


def read_vault(folder: Path) -> tuple[list[tuple[VaultNote, dict[str, Any]]], list[Row | None]]:
    """The notes of a vault as objects of an export, with their notes; and as rows those that somebody else wrote there."""
    notes = list(_read_vault_notes(folder))
    ids = {one.path.stem: one.fields["id"] for one in notes if one and "id" in one.fields}
    values = []
    rows: list[Row | None] = []
    for note in notes:
        if note is None or "id" not in note.fields:
            rows.append(note and {**note.fields, "text": note.content, "section": note.path.stem})
            continue
        entities = [as_entity(str(name)) for name in to_list(note.fields.get("entities"))]
        links = [(type, ids[name]) for type, name in note.links if name in ids]
        value = {name: found for name, found in note.fields.items() if found is not None}
        value |= {
            "content": note.content,
            "keywords": keywords(note.content),
            "entities": [entity._asdict() for entity in entities],
            "relations": [{"type": type, "target": target} for type, target in links],
        }
        values.append((note, value))
    return values, rows


def _read_vault_notes(folder: Path) -> Iterator[VaultNote | None]:
    """The notes of a vault, but for its index; None for one that cannot be read."""
    for file in _read_files(folder):
        if file is None:
            yield None
            continue
        if file[0].uri == INDEX:
            continue
        head, body = _split_note(file[1].replace("\r\n", "\n"))
        fields = _read_yaml(head)
        text, _, below = body.rpartition(MARK) if MARK in body else (body, "", "")
        links = tuple(
            (link[1], link[2].partition("|")[0])
            for link in map(_RELATION.match, below.splitlines())
            if link
        )
        yield None if fields is None else VaultNote(file[0].path, fields, text.strip(), links)


def _split_note(text: str) -> tuple[str, str]:
    """The fields of a note and what is below them."""
    if not text.startswith("---\n"):
        return "", text
    head, end, body = text[4:].partition("\n---\n")
    return (head, body) if end and len(head) <= LONGEST_FIELDS else ("", text)


def _read_yaml(text: str) -> dict[str, Any] | None:
    """The fields of a note, as Bethink or Obsidian writes them; None where they are broken. What refers to itself is."""
    import yaml

    class Plain(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not read")
            return super().compose_node(parent, index)

    try:
        found = yaml.load(text, Plain)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return {} if found is None else None
    return {str(name): _from_yaml(value) for name, value in found.items()}


def _from_yaml(value: Any) -> Any:
    """A value with its times as text again, as JSON has them."""
    if isinstance(value, list):
        return [str(one) if isinstance(one, date) else one for one in value]
    if isinstance(value, datetime) and not value.tzinfo:
        value = value.replace(tzinfo=UTC)
    return value.isoformat() if isinstance(value, date) else value
