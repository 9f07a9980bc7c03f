"""Architecture decision records: one `decision` each, with its status, its date, its reasons and what replaced it.

Reads what the usual tools write (adr-tools and Nygard's sections, MADR in all versions, log4brains) and RFC folders. A
record that another one replaces says so in its metadata; `superseded` turns that into pairs of stored memories. This
module judges only what stands in the places for a status: "superseded" in running text means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bethink.ingest.analyze.formats import read_yaml
from bethink.ingest.analyze.markdown import Section, readable, sections
from bethink.ingest.analyze.prose import clip, plain, unique, words
from bethink.ingest.analyze.tree import Finding, Tree, Unreadable, finding, folder_of
from bethink.types import Memory

MOST = 80
_FOLDER = re.compile(
    r"(?i)(?:^|/)(?:adrs?|decisions|(?:architecture[-_ ]?)?decision[-_ ]?(?:records?|log)|architecture[-_]decisions|rfcs?)"
    r"(?:/[^/]+){1,3}\.(?:md|markdown|mdx)$"
)
_NOT_RECORDS = re.compile(
    r"(?i)(?:^|[-_/])(?:readme|index|template|toc|changelog|contributing|about|guide|how[-_]to|overview)[^/]*$"
)
_STATUSES = (
    ("superseded", r"super[sc]eded|replaced by"),
    ("deprecated", r"deprecated|obsolete|withdrawn|retired"),
    ("rejected", r"rejected|declined|not accepted|abandoned"),
    (
        "accepted",
        r"accepted|approved|adopted|implemented|active|final|done|decided|merged|in effect",
    ),
    (
        "proposed",
        r"proposed|draft|pending|wip|in (?:review|discussion|progress)|rfc|open|under (?:review|discussion)|unresolved|todo",
    ),
)
_WEIGHT = {
    "accepted": (8.0, 1.0),
    "proposed": (6.0, 0.6),
    "superseded": (4.0, 0.9),
    "deprecated": (4.0, 0.9),
    "rejected": (4.0, 0.9),
}
_REPLACED = re.compile(r"(?i)(?:super[sc]eded|replaced|obsoleted)[ _-]by\b|superseded[-_]by")
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
    name: str  # "ADR 7", "RFC 7", or the title alone
    title: str
    status: str
    date: datetime | None
    replaced_by: tuple[str, ...]  # references as written: a number or a file's stem
    replaces: tuple[str, ...]
    parts: Mapping[str, str]
    lines: tuple[int, int]


def in_folder(path: str) -> bool:
    """Whether a file stands where decision records do."""
    return bool(_FOLDER.search(path))


def is_record(path: str) -> bool:
    """Whether a file is a record by its place and name, and not about records."""
    return in_folder(path) and not _NOT_RECORDS.search(path)


def analyze(tree: Tree) -> Iterator[Finding]:
    records = [record for path in tree.paths if is_record(path) and (record := _record(tree, path))]
    by_folder: dict[str, list[Record]] = {}
    for record in records:
        by_folder.setdefault(folder_of(record.path), []).append(record)
    told: list[Finding] = []
    for group in by_folder.values():
        links = _links(group)
        told += (
            _told(tree, record, links, {other.path: other for other in group}) for record in group
        )
    told.sort(
        key=lambda made: (-(made.passage.importance or 0), -(made.passage.metadata.get("adr") or 0))
    )
    yield from sorted(told[:MOST], key=lambda made: made.path)


def superseded(memories: Iterable[Memory]) -> list[tuple[Memory, Memory]]:
    """Of stored findings, which one another replaces: pairs, the old one first. The same memories give the same pairs."""
    by_key = {
        str(memory.metadata["adr_key"]): memory
        for memory in memories
        if memory.metadata.get("adr_key")
    }
    pairs: dict[str, tuple[Memory, Memory]] = {}
    for key, memory in by_key.items():
        later = memory.metadata.get("superseded_by")
        if isinstance(later, str) and later in by_key and later != key:
            pairs[key] = (memory, by_key[later])
    # Two records that each claim to be replaced by the other say nothing.
    return [
        (old, new)
        for key, (old, new) in pairs.items()
        if pairs.get(str(new.metadata["adr_key"]), (old, new))[1] is not old
    ]


def _record(tree: Tree, path: str) -> Record | None:
    text = tree.text(path)
    if not text.strip():
        return None
    parts = sections(text)
    front = _front_matter(text)
    titled = next((section for section in parts if section.title), None)
    title = str(front.get("title") or "") or (titled.title if titled and titled.level == 1 else "")
    stem = path.rsplit("/", 1)[-1].rpartition(".")[0]
    stated = _stated(parts, front)
    by_role: dict[str, str] = {}
    for role, pattern in _ROLES:
        if role not in by_role and (body := _body(parts, pattern)):
            by_role[role] = body
    # A file without a status, a decision or a number is something else that lies in the folder.
    numbered = re.match(r"(?i)(?:adr|rfc)?[-_ ]?(\d{1,5})(?=[-_. ]|$)", stem) or re.match(
        r"(?i)(?:(?:adr|rfc)[-_ #]{0,2})?(\d{1,5})\s?[.:–—-]", title
    )
    if not (stated or "decision" in by_role) and not (numbered and by_role):
        return None
    number = int(numbered[1]) if numbered else None
    series = "RFC" if re.search(r"(?i)(?:^|/)rfcs?/", path) else "ADR"
    status = next(
        (
            name
            for name, pattern in _STATUSES
            if re.search(rf"(?i)\b(?:{pattern})\b", _without_replaces(stated))
        ),
        "",
    )
    title = re.sub(
        r"(?i)^(?:(?:adr|rfc)[-_ #]{0,2})?\d{0,8}\s{0,3}[.:–—-]*\s{0,3}", "", plain(title)
    ) or stem.replace("-", " ")
    own = [section.last for section in parts if section.level]
    dated = f"{front.get('date', '')} {_field(parts, 'date')} {stem}"
    replaced_by = (
        *_after(stated, _REPLACED),
        *_references(_flat(front.get("superseded-by") or front.get("superseded_by"))),
    )
    return Record(
        path,
        number,
        f"{series} {number}" if number is not None else series,
        title.rstrip("."),
        "superseded" if replaced_by else status,
        _date(dated),
        replaced_by,
        (*_after(stated, _REPLACES), *_references(_flat(front.get("supersedes")))),
        by_role,
        (titled.line if titled else 1, max(own, default=1)),
    )


_ROLES = (
    ("decision", r"(?:the )?decision(?: outcome| made)?|outcome|resolution"),
    ("decision", r"summary|proposal|detailed design"),  # of RFCs
    (
        "context",
        r"context(?: and problem statement)?|problem(?: statement)?|motivation|background|issue|why",
    ),
    ("reason", r"rationale|justification|argument|decision drivers|reasons?(?:ing)?"),
    (
        "consequences",
        r"(?:positive |negative )?consequences|implications|trade-?offs?|drawbacks|impact",
    ),
)


def _body(parts: Sequence[Section], pattern: str) -> str:
    for section in parts:
        if section.title and re.fullmatch(
            pattern, re.sub(r"^[\d.\s]+", "", section.title).strip().lower()
        ):
            # The lines under the heading itself; sub-sections of an outcome (pros, cons, confirmation) are the long version.
            body = readable(section.own) or readable(section.whole)
            if words(body) >= 3:
                return body
    return ""


def _front_matter(text: str) -> Mapping[str, Any]:
    match = re.match(r"---\n(.{0,4000}?)\n(?:---|\.\.\.)\s*\n", text, re.DOTALL)
    if not match:
        return {}
    try:
        values = read_yaml(match[1])
    except Unreadable:
        return {}
    first = values[0] if values else None
    return (
        {str(key).lower(): value for key, value in first.items()} if isinstance(first, dict) else {}
    )


def _flat(value: Any) -> str:
    return (
        ", ".join(map(str, value[:20])) if isinstance(value, list) else str(value) if value else ""
    )


def _field(parts: Sequence[Section], name: str) -> str:
    """`* Date: 2024-03-02`, `**Date:** …`, `Date: …`, `| Date | … |` above the second heading."""
    pattern = re.compile(rf"(?i)[\s>*|_-]{{0,6}}{name}[*_]{{0,2}}\s*[:|][*_]{{0,2}}\s*(.+)")
    lines = [line for section in parts[:2] for line in section.own[:30]]
    return next((match[1].strip(" |") for line in lines if (match := pattern.match(line))), "")


def _stated(parts: Sequence[Section], front: Mapping[str, Any]) -> str:
    """Everything that stands in a place for the status."""
    found = [
        _flat(front.get("status")),
        _field(parts, "status"),
        _field(parts, r"super[sc]eded[ -]by"),
        _field(parts, r"super[sc]edes"),
    ]
    found[2] = f"superseded by {found[2]}" if found[2] else ""
    found[3] = f"supersedes {found[3]}" if found[3] else ""
    found += (
        "\n".join(section.own[:20])
        for section in parts
        if re.fullmatch(r"[\d.\s]*(?:adr )?status", section.title.lower())
    )
    return "\n".join(filter(None, found))


def _without_replaces(stated: str) -> str:
    """The status without what it says about other records."""
    return "\n".join(_REPLACES.split(line, maxsplit=1)[0] for line in stated.split("\n"))


def _after(stated: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """What is referred to after the words, on their line or, where that ends with them, on the lines below."""
    lines = stated.split("\n")
    for at, line in enumerate(lines):
        for match in pattern.finditer(line):
            rest = re.split(
                r"(?i)\b(?:super[sc]ede|replace|amend)", line[match.end() :], maxsplit=1
            )[0]
            references = list(_references(rest))
            below = at + 1
            while (
                not references
                and below < len(lines)
                and re.match(r"\s*(?:[-*+]\s|\[)", lines[below])
            ):
                references += _references(lines[below])
                below += 1
            yield from references


def _references(text: str) -> Iterator[str]:
    for match in _REFERENCE.finditer(text[:2_000]):
        yield next(group for group in match.groups() if group)


def _date(text: str) -> datetime | None:
    match = re.search(r"\b((?:19|20)\d\d)[-/.]?(\d\d)[-/.]?(\d\d)(?!\d)", text)
    try:
        return datetime(*map(int, match.groups()), tzinfo=UTC) if match else None  # type: ignore[misc, arg-type]
    except ValueError:
        return None


def _links(group: Sequence[Record]) -> dict[str, str]:
    """Which record replaces which, by path: told by the old one, by the new one, or by both."""
    known: dict[str, str] = {}
    for record in group:
        stem = record.path.rsplit("/", 1)[-1].rpartition(".")[0].lower()
        known.setdefault(stem, record.path)
        if record.number is not None:
            known.setdefault(str(record.number), record.path)

    def resolved(references: Iterable[str]) -> Iterator[str]:
        for reference in references:
            name = reference.lower().removesuffix(".md").rpartition("/")[2]
            path = known.get(name) or known.get(
                str(int(name)) if name.isdecimal() else name.split("-")[0].lstrip("0")
            )
            if path:
                yield path

    links: dict[str, str] = {}
    for record in group:
        for path in resolved(record.replaces):
            links.setdefault(path, record.path)
    for record in group:
        for path in resolved(record.replaced_by):
            links[record.path] = path
    return {old: new for old, new in links.items() if old != new}


def _told(
    tree: Tree, record: Record, links: Mapping[str, str], group: Mapping[str, Record]
) -> Finding:
    later = group.get(links.get(record.path, ""))
    # A proposal may want to replace a record; only what is in force does.
    if later and later.status in ("proposed", "rejected") and record.status != "superseded":
        later = None
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
    importance, confidence = _WEIGHT.get(status, (7.0, 0.8))
    metadata: dict[str, Any] = {
        "adr": record.number,
        "adr_key": _key(tree, record.path),
        "status": status or "unknown",
    }
    if later:
        metadata |= {"superseded_by": _key(tree, later.path), "superseded_by_adr": later.number}
    made = finding(
        record.path,
        record.lines,
        "decision",
        "adr",
        "\n".join(pieces),
        importance=importance,
        confidence=confidence,
        section=f"{record.name}: {record.title}" if record.number is not None else record.title,
        metadata={key: value for key, value in metadata.items() if value is not None},
    )
    summary = clip(f"{record.name} ({status or 'status not given'}): {record.title}", 120)
    return made._replace(passage=made.passage._replace(created_at=record.date, summary=summary))


def _key(tree: Tree, path: str) -> str:
    return tree.uri(path).removeprefix("analysis:")
