"""Pages about the project: purpose, structure, warnings, ways to work on it; and its decision records.

A heading says what its section is about (`data/analyze.toml`); sections without lasting content (licence, thanks, change logs)
are skipped. The text stays the writer's own, shortened. Decision records are read as the usual tools write them (Nygard's
sections, MADR, log4brains, RFC folders): one `decision` each, with its status, its date, its reasons and its successor. Only
the places for a status count: "superseded" in running text means nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from posixpath import basename, dirname
from typing import Any, NamedTuple

from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    count_words,
    flatten,
    make_finding,
)
from bethink.ingest.markdown import outline, parse, to_markdown
from bethink.ingest.symbols import TableRow, load_table, shorten
from bethink.language.vocabulary import HEADING_ABOUT
from bethink.model import Entity, Memory

# Bounds on the findings, set by hand.
_MOST = 24  # findings of all pages together
_MOST_PAGES = 200
_MOST_PER_FILE = 6
MOST_RECORDS = 80
_LONGEST = 1_500  # characters of a finding
_SHORTEST = 8  # words; a shorter section is a stub or a link
_IDLE = re.compile(r"(?i)(?:table of )?contents|english\b|[\[`#|~-]")
_LINK = re.compile(r"\[([^\]\n]{0,300})\](?:\([^)\n]{0,600}\)|\[[^\]\n]{0,100}\])")
_MARKUP = re.compile(
    r"!\[[^\]\n]{0,300}\](?:\([^)\n]{0,600}\)|\[[^\]\n]{0,100}\])|</?[a-zA-Z][^<>\n]{0,400}>|<!--(?:[^-]|-(?!->)){0,2000}+(?:-->)?"
)


class PageSection(NamedTuple):
    """A heading and the text below it, up to the next one of the first three levels."""

    names: Sequence[str]  # of the headings above it and its own; empty before the first one
    level: int
    lines: tuple[int, int]
    text: str  # without the heading


def analyze(tree: Tree) -> Iterator[Finding]:
    table = load_table("analyze")["pages"]
    found = list(_describe_project(tree))
    paths = [path for path, _ in tree.find(table["read"])]
    kept = [path for path in paths if not re.search(table["passed_over"], path.lower())]
    for path in kept[:_MOST_PAGES]:
        found += _describe_page(tree, path)
    yield from _pick_important(found, _MOST)
    yield from _describe_records(tree)


def _read_page(tree: Tree, path: str) -> tuple[Mapping[str, Any], list[PageSection]]:
    """Return the frontmatter and the sections of a page; nothing for one that asks to be left out."""
    page = parse(to_markdown(tree.text(path), path))
    if not page.directives.get("index", True):
        return {}, []
    lines, first = page.body.split("\n"), page.first_line
    sections = [
        PageSection(
            list(filter(None, one.title.split(" > "))),
            one.level,
            (one.first + first, one.last + first - 1),
            "\n".join(lines[one.below : one.last]).strip(),
        )
        for one in outline(page.body).sections
    ]
    return page.frontmatter, sections


def _strip_markup(text: str) -> str:
    """Return Markdown on one line, without images, links' addresses and tags."""
    bare = _LINK.sub(r"\1", _MARKUP.sub("", " ".join(text.split())))
    return " ".join(bare.split())


def _pick_important(found: Sequence[Finding], most: int) -> list[Finding]:
    """Return the most important findings in their order; among equals the first ones."""
    order = sorted(range(len(found)), key=lambda at: (-(found[at].passage.importance or 0), at))
    return [found[at] for at in sorted(order[:most])]


# Pages


def _describe_project(tree: Tree) -> Iterator[Finding]:
    """Return what the project is: the title and the first paragraph of its README that says anything."""
    path = next((path for path, _ in tree.find(r"(?i)readme(?:\.\w+)?")), "")
    _, sections = _read_page(tree, path) if path else ({}, [])
    name = next((one.names[-1] for one in sections if one.level == 1), tree.root.name)
    for section in sections[:4]:
        paragraph = _find_paragraph(section.text)
        if paragraph and (section.level < 2 or HEADING_ABOUT.holds(section.names[-1])):
            yield make_finding(
                path,
                section.lines,
                "domain",
                "readme",
                f"What this project is: {name}. {shorten(paragraph, 700)}",
                importance=7,
                section=f"{name} › purpose",
                entities=[Entity(name, "project")] if 1 <= count_words(name) <= 4 else (),
                confidence=1.0,
            )
            return


def _find_paragraph(text: str) -> str:
    """Return the first paragraph that is a sentence: no badges, links, code, tables or comments."""
    bare = re.sub(r"<!--(?:[^-]|-(?!->)){0,4000}+(?:-->)?", "", text)
    found = (_strip_markup(one) for one in re.split(r"\n[ \t]*+\n", bare) if not _IDLE.match(one))
    return next((one for one in found if count_words(one) > 3), "")


def _find_topic(name: str) -> TableRow | None:
    """Return the subject of a heading, or of a path without its suffix."""
    bare = re.sub(r"^[\W\d_]++|(?<![\W_])[\W_]++$", "", name[:200])[:120].lower()
    rows: list[TableRow] = load_table("analyze")["topic"]
    return next((row for row in rows if re.fullmatch("|".join(row["words"]), bare)), None)


def _describe_page(tree: Tree, path: str) -> list[Finding]:
    """Return findings for the sections whose headings, or whose page, name a topic; no stubs."""
    idle = re.compile(load_table("analyze")["pages"]["idle"])
    subject = _find_topic(path.rpartition(".")[0])
    found = []
    for section in _read_page(tree, path)[1]:
        topics = map(_find_topic, reversed(section.names))
        topic = next(filter(None, topics), subject if section.level > 1 else None)
        empty = count_words(_strip_markup(section.text)) < _SHORTEST
        if topic and not empty and not any(idle.fullmatch(name.lower()) for name in section.names):
            made = make_finding(
                path,
                section.lines,
                topic["kind"],
                topic["tag"],
                f"{section.names[-1].rstrip(':')}:\n{shorten(section.text, _LONGEST)}",
                importance=topic["importance"],
                section=" › ".join((path, *section.names)),
            )
            found.append(made)
    return _pick_important(found, _MOST_PER_FILE)


# Decision records


class DecisionRecord(NamedTuple):
    path: str
    stem: str
    number: int | None
    title: str
    status: str
    date: datetime | None
    replaced_by: Sequence[str]  # references as written: a number or a file's stem
    replaces: Sequence[str]
    parts: Mapping[str, str]
    lines: tuple[int, int]

    @property
    def name(self) -> str:
        return "ADR" if self.number is None else f"ADR {self.number}"


def _describe_records(tree: Tree) -> Iterator[Finding]:
    table = load_table("records")
    folders: dict[str, list[DecisionRecord]] = {}
    for path, _ in tree.find(table["file"], own=False):
        if record := _read_record(tree, path):
            folders.setdefault(dirname(path), []).append(record)
    findings: list[Finding] = []
    for group in folders.values():
        later = _find_successors(group)
        findings += [_describe_record(record, later.get(record.path)) for record in group]
    findings.sort(key=lambda one: -(one.passage.metadata.get("adr") or 0))
    yield from _pick_important(findings, MOST_RECORDS)


def superseded_pairs(memories: Iterable[Memory]) -> list[tuple[Memory, Memory]]:
    """Return pairs of stored findings of which the second replaces the first, always the same."""
    by_key = {str(one.metadata["adr_key"]): one for one in memories if one.metadata.get("adr_key")}
    later = {key: one.metadata.get("superseded_by") for key, one in by_key.items()}
    # Two records that each claim to be replaced by the other say nothing.
    return [
        (by_key[old], by_key[new])
        for old, new in later.items()
        if isinstance(new, str) and new in by_key and new != old and later[new] != old
    ]


def _read_record(tree: Tree, path: str) -> DecisionRecord | None:
    """Return the record in a file; None for another page, without a status, a decision or a number."""
    frontmatter, sections = _read_page(tree, path)
    titled = next((section for section in sections if section.names), None)
    if titled is None:
        return None
    table, parts = load_table("records"), _find_parts(sections)
    # Fields with a date or a status above the second heading: `* Date: 2024-03-02`, `**Status:** …`, `| Status | … |`, or frontmatter.
    above = [f"{key}: {flatten(value)}" for key, value in frontmatter.items()]
    fields = {"date": "", "status": ""}
    head = "\n".join((*above, *(one.text for one in sections[:2])))
    for field in re.finditer(table["field"], head):
        fields["date" if field[1].lower() == "date" else "status"] += f"{field[0]}\n"
    stated = f"{fields['status']}\n{parts.pop('status', '')}".strip()
    title = flatten(frontmatter.get("title")) or titled.names[-1]
    stem = basename(path).rpartition(".")[0]
    numbered = re.match(table["number"], stem) or re.match(table["number"], title)
    if not stated and "decision" not in parts and not (numbered and parts):
        return None
    replaced_by = _find_references(stated, "replaced")
    statuses = table["status"].items()
    fitting = (name for name, words in statuses if re.search(rf"(?i)\b(?:{words})\b", stated))
    plain = re.sub(table["number"], "", _strip_markup(title), count=1) or stem.replace("-", " ")
    return DecisionRecord(
        path,
        stem,
        int(numbered[1]) if numbered else None,
        plain.rstrip("."),
        "superseded" if replaced_by else next(fitting, ""),
        _find_date(f"{fields['date']} {stem}"),
        replaced_by,
        _find_references(stated, "replaces"),
        parts,
        (titled.lines[0], sections[-1].lines[1]),
    )


def _find_parts(sections: Sequence[PageSection]) -> dict[str, str]:
    """Return the sections of a record: status, decision, context, reason, consequences."""
    named = [
        (one.names[-1].lower().lstrip("0123456789. "), one.text) for one in sections if one.names
    ]
    found: dict[str, str] = {}
    for role, pattern in load_table("records")["part"]:
        for title, text in named:
            if text and re.fullmatch(pattern, title):
                found.setdefault(role, text)
    return found


def _find_date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(
            re.findall(r"\b(?:19|20)\d\d-\d\d-\d\d(?!\d)", text)[0]
        ).replace(tzinfo=UTC)
    except (IndexError, ValueError):  # none, or one that no calendar has
        return None


def _find_references(stated: str, relation: str) -> list[str]:
    """Return the records that a status names in a relation."""
    table = load_table("records")
    return re.findall(table["reference"], "\n".join(re.findall(table[relation], stated)))


def _find_successors(group: Sequence[DecisionRecord]) -> dict[str, DecisionRecord]:
    """Map the records of a folder, by path, to their successors.

    A record's own claim to be replaced wins over the other's claim to replace it. A proposal may want to replace a record; only a
    record in force does.
    """
    known = {str(record.number): record for record in reversed(group)}
    known |= {record.stem.lower(): record for record in group}

    def resolve(references: Sequence[str]) -> Iterator[DecisionRecord]:
        for reference in references:
            number = re.split("[-_]", reference)[0].lstrip("0")
            if found := known.get(reference.lower()) or known.get(number):
                yield found

    claims = [(old, new) for new in group for old in resolve(new.replaces)]
    claims = [(old, new) for old, new in claims if new.status not in ("proposed", "rejected")]
    claims += [(old, new) for old in group for new in resolve(old.replaced_by)]
    return {old.path: new for old, new in claims if new is not old}


def _describe_record(record: DecisionRecord, later: DecisionRecord | None) -> Finding:
    status = "superseded" if later else record.status
    shown = status or "status not given"
    day = f", {record.date.date().isoformat()}" if record.date else ""
    pieces = [f"{record.name} ({shown}{day}): {record.title}."]
    if later:
        pieces.append(f"Superseded by {later.name}: {later.title}.")
    if status in ("rejected", "deprecated"):
        pieces.append(f"This decision is {status}: it does not hold.")
    table = load_table("records")
    pieces += [
        lead + shorten(record.parts[role], limit)
        for role, lead, limit in table["told"]
        if role in record.parts
    ]
    importance, confidence = table["weight"][status or "unknown"]
    metadata = {
        "adr": record.number,
        "adr_key": record.path,
        "status": status or "unknown",
        "superseded_by": later.path if later else None,
    }
    return make_finding(
        record.path,
        record.lines,
        "decision",
        "adr",
        "\n".join(pieces),
        summary=shorten(f"{record.name} ({shown}): {record.title}", 120),
        importance=importance,
        confidence=confidence,
        section=f"{record.name}: {record.title}",
        created_at=record.date,
        metadata={name: value for name, value in metadata.items() if value is not None},
    )
