"""Architecture decision records: one `decision` each, with its status, its date, its reasons and what replaced it.

Reads what the usual tools write (adr-tools and Nygard's sections, MADR in all versions, log4brains) and RFC folders. A
record that another one replaces says so in its metadata; `superseded_pairs` turns that into pairs of stored memories. This
module judges only what stands in the places for a status: "superseded" in running text means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bethink.ingest.analyze.pages import Document, in_record_folder, page_of, readable
from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    clip,
    finding,
    folder_of,
    load_table,
    name_of,
    plain,
    strings,
    unique,
    words,
)
from bethink.ingest.chunks import Block
from bethink.types import Memory

MOST = 80  # records that are told; set by hand
_REPLACED = re.compile(r"(?i)(?:super[sc]eded|replaced|obsoleted)[ _-]by\b")
_REPLACES = re.compile(r"(?i)\b(?:super[sc]edes|replaces|obsoletes)\b")
_REFERENCE = re.compile(
    r"""(?xi)
    \]\( [^)\s]{0,200}? (?P<file>[\w.%-]{1,150}?) \.(?:md|markdown|mdx) (?:\#[^)\s]{0,100})? \)   # [12. Use X](0012-use-x.md)
  | \[\[ (?P<wiki>[^\]|]{1,150}) (?:\|[^\]]{0,150})? \]\]                                       # [[0012-use-x]]
  | \b(?P<stem>\d{3,8}[-_][\w.-]{2,150}?) (?:\.md)? (?=[\s,;)\]]|$)                             # 0012-use-x.md
  | \b(?:adr|rfc)[-_ #]{0,2} (?P<named>\d{1,5})\b                                               # ADR-12
  | (?:^|[\s(,\#"'])\#? (?P<bare>\d{1,5}) (?=[\s,;.)"']|$)                                      # 12
    """
)


class Record(NamedTuple):
    path: str
    number: int | None
    name: str  # "ADR 7", "RFC 7", or the series alone
    title: str
    status: str
    date: datetime | None
    replaced_by: Sequence[str]  # references as written: a number or a file's stem
    replaces: Sequence[str]
    parts: Mapping[str, str]
    lines: tuple[int, int]


def is_record(path: str) -> bool:
    """Whether a file is a record by its place and name, and not about records."""
    about = load_table("analyze")["records"]["no_records"]
    return in_record_folder(path) and not re.search(about, path.lower())


def analyze(tree: Tree) -> Iterator[Finding]:
    folders: dict[str, list[Record]] = {}
    for path in tree.paths:
        record = _read_record(tree, path) if is_record(path) else None
        if record:
            folders.setdefault(folder_of(path), []).append(record)
    told = [
        _describe(tree, record, later)
        for group in folders.values()
        for record, later in zip(group, _successors(group), strict=True)
    ]
    told.sort(
        key=lambda made: (-(made.passage.importance or 0), -(made.passage.metadata.get("adr") or 0))
    )
    yield from sorted(told[:MOST], key=lambda made: made.path)


def superseded_pairs(memories: Iterable[Memory]) -> list[tuple[Memory, Memory]]:
    """Of stored findings, which one another replaces: pairs, the old one first. The same memories give the same pairs."""
    by_key = {str(one.metadata["adr_key"]): one for one in memories if one.metadata.get("adr_key")}
    later = {key: one.metadata.get("superseded_by") for key, one in by_key.items()}
    # Two records that each claim to be replaced by the other say nothing.
    return [
        (by_key[old], by_key[new])
        for old, new in later.items()
        if isinstance(new, str) and new in by_key and new != old and later[new] != old
    ]


def _read_record(tree: Tree, path: str) -> Record | None:
    page = page_of(tree, path)
    titled = next((section for section in page.sections if section.title), None)
    if titled is None:
        return None
    fields = {str(key).lower().replace("_", "-"): value for key, value in page.fields.items()}
    title = str(fields.get("title") or "") or (titled.title if titled.level == 1 else "")
    stem = name_of(path).rpartition(".")[0]
    stated, parts = _stated(page, fields), _parts(page)
    # A file without a status, a decision or a number is something else that lies in the folder.
    numbered = re.match(r"(?i)(?:adr|rfc)?[-_ ]?(\d{1,5})(?=[-_. ]|$)", stem) or re.match(
        r"(?i)(?:(?:adr|rfc)[-_ #]{0,2})?(\d{1,5})\s?[.:–—-]", title
    )
    if not (stated or "decision" in parts) and not (numbered and parts):
        return None
    number = int(numbered[1]) if numbered else None
    series = "RFC" if re.search(r"(?i)(?:^|/)rfcs?/", path) else "ADR"
    # What a status says about other records is no status of this one.
    own = "\n".join(_REPLACES.split(line, maxsplit=1)[0] for line in stated)
    statuses = load_table("analyze")["records"]["status"].items()
    status = next(
        (name for name, pattern in statuses if re.search(rf"(?i)\b(?:{pattern})\b", own)), ""
    )
    bare = re.sub(
        r"(?i)^(?:(?:adr|rfc)[-_ #]{0,2})?\d{0,8}\s{0,3}[.:–—-]{0,5}\s{0,3}", "", plain(title)
    )
    replaced_by = [*_after(stated, _REPLACED), *_references(_flat(fields.get("superseded-by")))]
    date = _date(f"{fields.get('date', '')} {_field(page, 'date')} {stem}")
    return Record(
        path,
        number,
        f"{series} {number}" if number is not None else series,
        (bare or stem.replace("-", " ")).rstrip("."),
        "superseded" if replaced_by else status,
        date,
        replaced_by,
        [*_after(stated, _REPLACES), *_references(_flat(fields.get("supersedes")))],
        parts,
        (titled.line, max(section.last_line for section in page.sections)),
    )


def _parts(page: Document) -> dict[str, str]:
    """What the sections say that a record is made of: decision, context, reason, consequences."""
    found: dict[str, str] = {}
    for role, pattern in load_table("analyze")["records"]["part"]:
        for section in page.sections:
            title = re.sub(r"^[\d.\s]{1,20}", "", section.title).strip().lower()
            if role not in found and title and re.fullmatch(pattern, title):
                # Sub-sections of an outcome (pros, cons, confirmation) are the long version.
                body = readable(section.own) or readable(section.whole)
                if words(body) >= 3:
                    found[role] = body
    return found


def _lines(found: Sequence[Block]) -> list[str]:
    return [
        ("- " if block.kind == "item" else "") + line
        for block in found
        for line in block.text.split("\n")
    ]


def _field(page: Document, name: str) -> str:
    """`* Date: 2024-03-02`, `**Date:** …`, `Date: …`, `| Date | … |` above the second heading."""
    pattern = re.compile(rf"(?i)[\s>*|_-]{{0,6}}{name}[*_]{{0,2}}\s*[:|][*_]{{0,2}}\s*(.+)")
    lines = [line for section in page.sections[:2] for line in _lines(section.own)[:30]]
    return next((match[1].strip(" |") for line in lines if (match := pattern.match(line))), "")


def _stated(page: Document, fields: Mapping[str, Any]) -> list[str]:
    """The lines that stand in a place for the status."""
    found = [_flat(fields.get("status")), _field(page, "status")]
    for words_of, lead in (
        (r"super[sc]eded[ -]by", "superseded by"),
        (r"super[sc]edes", "supersedes"),
    ):
        if value := _field(page, words_of):
            found.append(f"{lead} {value}")
    for section in page.sections:
        if re.fullmatch(r"[\d.\s]{0,20}(?:adr )?status", section.title.lower()):
            found += _lines(section.own)[:20]
    return [line for line in found if line]


def _flat(value: Any) -> str:
    return ", ".join(strings(value)[:20]) or (str(value) if value else "")


def _after(stated: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    """What is referred to after the words, on their line or, where that ends with them, on the lines below."""
    for at, line in enumerate(stated):
        for match in pattern.finditer(line):
            other = re.compile(r"(?i)\b(?:super[sc]ede|replace|amend)")
            found = list(_references(other.split(line[match.end() :], maxsplit=1)[0]))
            for below in stated[at + 1 :]:
                if found or not re.match(r"\s*(?:[-*+]\s|\[)", below):
                    break
                found += _references(below)
            yield from found


def _references(text: str) -> Iterator[str]:
    for match in _REFERENCE.finditer(text[:2_000]):
        yield next(group for group in match.groups() if group)


def _date(text: str) -> datetime | None:
    match = re.search(r"\b((?:19|20)\d\d)[-/.]?(\d\d)[-/.]?(\d\d)(?!\d)", text)
    try:
        return datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=UTC) if match else None
    except ValueError:
        return None


def _successors(group: Sequence[Record]) -> list[Record | None]:
    """For each record of a folder the one that replaces it: as it says itself, or else as the other says."""
    known: dict[str, Record] = {}
    for record in group:
        known.setdefault(name_of(record.path).rpartition(".")[0].lower(), record)
        if record.number is not None:
            known.setdefault(str(record.number), record)

    def resolve(references: Sequence[str]) -> Iterator[Record]:
        for reference in references:
            name = name_of(reference.lower().removesuffix(".md"))
            digits = str(int(name)) if name.isdecimal() else name.split("-")[0].lstrip("0")
            if found := known.get(name) or known.get(digits):
                yield found

    later: dict[str, Record] = {}
    for record in group:
        for old in resolve(record.replaces):
            later.setdefault(old.path, record)
    for record in group:
        for new in resolve(record.replaced_by):
            later[record.path] = new
    return [_in_force(record, later.get(record.path)) for record in group]


def _in_force(record: Record, later: Record | None) -> Record | None:
    """The successor, if it is one: a proposal may want to replace a record; only what is in force does."""
    if later is None or later is record:
        return None
    wishes = later.status in ("proposed", "rejected") and record.status != "superseded"
    return None if wishes else later


def _describe(tree: Tree, record: Record, later: Record | None) -> Finding:
    status = "superseded" if later else record.status
    noted = [status or "status not given", record.date.date().isoformat() if record.date else ""]
    pieces = [f"{record.name} ({', '.join(filter(None, noted))}): {record.title}."]
    if later:
        pieces.append(f"Superseded by {later.name}: {later.title}.")
    elif record.replaced_by:
        pieces.append(f"Superseded by {', '.join(unique(record.replaced_by))}.")
    if status in ("rejected", "deprecated"):
        pieces.append(f"This decision is {status}: it does not hold.")
    for role, lead, limit in (
        ("decision", "", 500),
        ("reason", "Because: ", 300),
        ("context", "Context: ", 350),
        ("consequences", "Consequences: ", 300),
    ):
        if role in record.parts:
            pieces.append(lead + clip(record.parts[role], limit))
    weights = load_table("analyze")["records"]["weight"]
    importance, confidence = weights.get(status, weights["unknown"])
    key = tree.uri(record.path).removeprefix("analysis:")
    metadata = {"adr": record.number, "adr_key": key, "status": status or "unknown"}
    if later:
        metadata["superseded_by"] = tree.uri(later.path).removeprefix("analysis:")
        metadata["superseded_by_adr"] = later.number
    made = finding(
        record.path,
        record.lines,
        "decision",
        "adr",
        "\n".join(pieces),
        importance=importance,
        confidence=confidence,
        section=f"{record.name}: {record.title}" if record.number is not None else record.title,
        metadata={name: value for name, value in metadata.items() if value is not None},
    )
    summary = clip(f"{record.name} ({status or 'status not given'}): {record.title}", 120)
    return made._replace(passage=made.passage._replace(created_at=record.date, summary=summary))
