"""What people wrote about the project: its purpose, how it is built, what to heed, how to work on it; and its decision records.

A heading says what its section is about (`data/analyze.toml`); sections that tell nothing lasting (licence, thanks, change logs)
are passed over. The text stays the writer's own, shortened. Decision records are read as the usual tools write them (Nygard's
sections, MADR in all versions, log4brains, RFC folders): one `decision` each, with its status, its date, its reasons and what
replaced it. Only what stands in the places for a status counts: "superseded" in running text means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from posixpath import basename, dirname
from typing import Any, NamedTuple

from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    clip,
    count_words,
    flatten,
    load_table,
    make_finding,
    pick_important,
    strip_markup,
    unique,
)
from bethink.ingest.chunks import Block, BlockSection, read_blocks, read_sections
from bethink.ingest.markdown import parse, to_markdown
from bethink.types import Entity, Memory

# Bounds on how much is told, set by hand.
MOST = 24  # findings of all pages together
MOST_PAGES = 200
MOST_PER_FILE = 6
MOST_INSTRUCTIONS = 2  # how to set up and run stands in every second page
MOST_WARNINGS = 4  # per file: a page that warns in every paragraph is a manual
MOST_RECORDS = 80
LONGEST = 1_200  # characters of a finding
PIECES = 2  # into which a long section is cut; the rest is for who opens the file
SHORTEST = 8  # words; a shorter section is a stub or a link
MOST_CODE = 6  # lines of code that stand in a sentence as commands
PAGES = (".md", ".rst", ".mdx")
_WARNING = r"(warning|danger|caution|important|attention|gotcha|caveat|beware|note)\b"
_ADMONITION = re.compile(
    rf"""(?xi)
    (?: \[!{_WARNING}\]                                       # > [!WARNING]
      | (?:!!!\+?|:{{3,}})[ \t]*+{_WARNING}                   # !!! warning "Title", :::warning
      | (?:⚠️?|🚨|❗️?)?[ \t]*+(?:\*\*|__|<(?:b|strong)>)?{_WARNING}
        (?:[ \t]*+:[ \t]*+(?:\*\*|__|</(?:b|strong)>)?|[ \t]*+(?:\*\*|__|</(?:b|strong)>)[ \t]*+:?)   # **Warning:**
    )\s*+
    """
)
_LINK = re.compile(r"\]\([^)\s]{1,200}\.(?:md|rst|mdx|html)[)#]")
_ABOUT = re.compile(r"(?i)about|what (?:is|does)|overview|introduction|description|why")
_IDLE = re.compile(r"(?i)(?:table of )?contents|english\b|\[")


SectionTopic = Mapping[str, Any]  # a row of the table: kind, tag, importance


class ParsedPage(NamedTuple):
    fields: Mapping[str, Any]  # of its frontmatter
    blocks: Sequence[Block]
    sections: Sequence[BlockSection]


def analyze(tree: Tree) -> Iterator[Finding]:
    found = list(_describe_project(tree))
    for path in list(_find_pages(tree))[:MOST_PAGES]:
        found += _describe_page(tree, path)
    instructions = [one for one in found if one.passage.tags[1] == "command"]
    told = [one for one in found if one not in instructions[MOST_INSTRUCTIONS:]]
    yield from pick_important(told, MOST)
    yield from _describe_records(tree)


# Reading


def read_page(tree: Tree, path: str) -> ParsedPage:
    reader = _parse_restructured if path.endswith(".rst") else _parse_page
    return tree.parse(path, reader) or ParsedPage({}, (), read_sections(()))


def _parse_page(text: str) -> ParsedPage:
    page = parse(text)
    body = page.body if page.directives.get("index", True) else ""
    blocks = read_blocks(body, page.first_line)
    return ParsedPage(page.frontmatter if body else {}, blocks, read_sections(blocks))


def _parse_restructured(text: str) -> ParsedPage:
    return _parse_page(to_markdown(text, ".rst"))


def render_blocks(found: Sequence[Block]) -> str:
    """Blocks as text for people: wrapped lines joined, items and rows one per line, short code as commands."""
    lines: list[str] = []
    for block in found:
        text = strip_markup(block.text)
        if block.kind == "heading":
            lines.append(text.rstrip(":") + ":")
        elif block.kind == "code":
            steps = [line.strip() for line in block.text.split("\n") if line.strip()]
            if len(steps) <= MOST_CODE:
                lines.append("; ".join(f"`{re.sub(r'^[$>] ', '', step)[:120]}`" for step in steps))
        elif block.kind == "row":
            lines.append(_render_row(block) if block.columns else "")
        else:
            text = re.sub(r"^\[!(\w{1,20})\]", lambda alert: f"{alert[1].capitalize()}:", text)
            lines.append(f"- {text}" if block.kind == "item" else text)
    return "\n".join(line for line in lines if line.strip(" -"))


def _render_row(block: Block) -> str:
    """A row as an item. From the third column on a value needs its column's name to be understood."""
    columns = ["", "", *map(strip_markup, block.columns[2:]), *block.cells]
    cells = [
        f"{column}: {cell}" if column else cell
        for column, cell in zip(columns, map(strip_markup, block.cells), strict=False)
        if cell
    ]
    return f"- {': '.join(filter(None, (cells[0], '; '.join(cells[1:]))))}" if cells else ""


@cache
def _patterns() -> Mapping[str, Any]:
    """The patterns of headings and files, compiled."""
    rows = load_table("analyze")
    topics = {
        name: [(re.compile("|".join(row["words"])), row) for row in rows[name]]
        for name in ("topic", "subject")
    }
    return topics | {name: re.compile("|".join(each)) for name, each in rows["pages"].items()}


def _find_topic(table: str, name: str) -> SectionTopic | None:
    """What a heading or the stem of a file's name is about."""
    bare = re.sub(r"^[\W\d_]++|(?<![\W_])[\W_]++$", "", name[:200])[:120].lower()
    return next((topic for words, topic in _patterns()[table] if words.fullmatch(bare)), None)


def _stem(path: str) -> str:
    return basename(path).partition(".")[0].lower()


def _find_pages(tree: Tree) -> Iterator[str]:
    readmes = [path for path in tree.find_suffixed(*PAGES) if _stem(path) == "readme"]
    for path in tree.find_suffixed(*PAGES):
        folder = dirname(path).lower()
        if _patterns()["passed_over"].search(path.lower()) or _is_record(path):
            continue
        if folder in ("", ".github"):
            # README.de.md says the same again
            if path in readmes[:1] or _find_topic("subject", _stem(path)):
                yield path
        elif _patterns()["documentation"].match(f"{folder}/"):
            yield path


# What pages tell


def _describe_project(tree: Tree) -> Iterator[Finding]:
    """What the project is: the title and the first paragraphs of its README that say anything."""
    path = next(tree.find_named("readme", "readme.*"), "/")
    sections = read_page(tree, path).sections if "/" not in path else ()
    name = next((one.title for one in sections if one.level == 1), "") or tree.root.name
    for section in sections[:4]:
        texts = [
            (block.lines, strip_markup(block.text))
            for block in section.own
            if block.kind == "paragraph"
        ]
        told = [(at, text) for at, text in texts if count_words(text) > 3 and not _IDLE.match(text)]
        if told and (section.level < 2 or _ABOUT.match(section.title)):
            told = told[: 1 if len(told[0][1]) > 200 else 2]
            yield make_finding(
                path,
                (told[0][0][0], told[-1][0][1]),
                "domain",
                "readme",
                f"What this project is: {name}. {clip(' '.join(text for _, text in told), 700)}",
                importance=7,
                section=f"{name} › purpose",
                entities=[Entity(name, "project")] if 1 <= count_words(name) <= 4 else (),
                confidence=1.0,
            )
            return


def _describe_page(tree: Tree, path: str) -> list[Finding]:
    page = read_page(tree, path)
    told: list[list[Finding]] = []
    until = 0  # the last line of the section that was taken
    for section, topic in _find_sections(page, path):
        made = _describe_section(path, section, topic) if section.line > until else []
        if made:
            told.append(made)
            until = section.last_line
    told.sort(key=lambda made: -(made[0].passage.importance or 0))
    most = MOST_PER_FILE // 2 if "/" in path else MOST_PER_FILE
    found = [one for made in told[:most] for one in made]
    covered = [one.passage.lines or (0, 0) for one in found]
    return [*found, *list(_describe_warnings(path, page, covered))[:MOST_WARNINGS]]


def _find_sections(page: ParsedPage, path: str) -> Iterator[tuple[BlockSection, SectionTopic]]:
    """The sections whose heading, or whose page, says what they are about. Pages below docs/ are for users more often than for who
    works on the project: of them only what warns and explains counts."""
    depth = path.count("/")
    # Below docs/ a page named like a file of rules is about agents, not for them.
    elsewhere = depth and not path.startswith(".github/")
    about_agents = elsewhere and _patterns()["agents"].fullmatch(_stem(path))
    subject = _find_topic("subject", _stem(path)) if depth < 2 and not about_agents else None
    explaining = ("caveat", "architecture", "domain", "deploy" if depth < 2 else "")
    for section in page.sections:
        topic = _find_topic("topic", section.title) or (subject if section.level == 2 else None)
        wanted = topic and (not depth or subject or topic["tag"] in explaining)
        if topic and wanted and section.level in (2, 3):
            yield section, topic


def _describe_section(path: str, section: BlockSection, topic: SectionTopic) -> list[Finding]:
    """The findings of a section; none of a stub, of a list of links, of what is idle."""
    body = render_blocks(section.whole)
    lines = [line for block in section.whole for line in block.text.split("\n") if line.strip()]
    idle = _patterns()["idle"].fullmatch(re.sub(r"[\W_]+$", "", section.title.lower()))
    linked = sum(bool(_LINK.search(line)) for line in lines)
    if count_words(body) < SHORTEST or 2 * linked > len(lines) or idle:
        return []
    title = section.title.rstrip(":.") + (":\n" if body.startswith("- ") else ": ")
    # Cut where a line ends, because half a rule is worse than two memories.
    pieces = [""]
    for line in body.split("\n"):
        if pieces[-1] and len(pieces[-1]) + len(line) > LONGEST:
            pieces.append("")
        pieces[-1] += f"\n{line}" if pieces[-1] else line
    return [
        make_finding(
            path,
            (section.line, section.last_line),
            topic["kind"],
            topic["tag"],
            title + clip(piece, LONGEST + 300),
            importance=topic["importance"],
            section=_place(path, section),
        )
        for piece in pieces[: 1 if topic["tag"] == "command" else PIECES]
    ]


def _place(path: str, section: BlockSection) -> str:
    return " › ".join(filter(None, (path, *section.parents, section.title)))


def _describe_warnings(
    path: str, page: ParsedPage, covered: Sequence[tuple[int, int]]
) -> Iterator[Finding]:
    """Warnings and notes that a writer set apart, where no section that is told holds them."""
    for block, after in zip(page.blocks, (*page.blocks[1:], None), strict=False):
        match = _ADMONITION.match(block.text) if block.kind in ("paragraph", "item") else None
        line, last = block.lines
        if not match or any(first <= line <= end for first, end in covered):
            continue
        word = next(filter(None, match.groups())).lower()
        body = block.text[match.end() :].rstrip(":").strip('" \n')
        if not body and after:  # the text stands apart from the word
            body, last = after.text, after.lines[1]
        text = strip_markup(body)
        note = word == "note"
        if count_words(text) < (8 if note else 5) or (note and path.count("/") > 1):
            continue
        above = next(section for section in reversed(page.sections) if section.line <= line)
        where = f" ({above.title})" if above.title else ""
        yield make_finding(
            path,
            (line, last),
            "gotcha",
            "caveat",
            f"{word.capitalize()}{where}: {clip(text, 600)}",
            importance=4.5 if note else 6.5,
            section=_place(path, above),
        )


# Decision records

_REPLACED = re.compile(r"(?i)(?:super[sc]eded|replaced|obsoleted)[ _-]by\b")
_REPLACES = re.compile(r"(?i)\b(?:super[sc]edes|replaces|obsoletes)\b")
_REFERENCE = re.compile(
    r"\b\d{1,8}(?:[-_]\w[\w-]{1,150})?"
)  # ADR-12, #12, [[0012-use-x]], 0012-use-x.md
_NUMBER = re.compile(
    r"(?i)(?:(?:adr|rfc)[-_ #]{0,2})?(\d{1,5})(?=[-_.: –—]|$)\s{0,3}[.:–—-]{0,5}\s{0,3}"
)


class DecisionRecord(NamedTuple):
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


def _is_record(path: str) -> bool:
    """Whether a file stands where decision records do."""
    return bool(_patterns()["records"].search(path.lower()))


def _describe_records(tree: Tree) -> Iterator[Finding]:
    about = re.compile(load_table("analyze")["records"]["no_records"])
    folders: dict[str, list[DecisionRecord]] = {}
    for path in tree.paths:
        wanted = _is_record(path) and not about.search(path.lower())
        if wanted and (record := _read_record(tree, path)):
            folders.setdefault(dirname(path), []).append(record)
    told: list[Finding] = []
    for group in folders.values():
        later = _find_successors(group)
        told += [_describe_record(tree, record, later.get(record.path)) for record in group]
    told.sort(key=lambda one: -(one.passage.metadata.get("adr") or 0))
    yield from pick_important(told, MOST_RECORDS)


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


def _read_record(tree: Tree, path: str) -> DecisionRecord | None:
    """The record in a file. One without a status, a decision or a number is something else that lies in the folder."""
    page = read_page(tree, path)
    titled = next((section for section in page.sections if section.title), None)
    if titled is None:
        return None
    fields = {str(key).lower().replace("_", "-"): value for key, value in page.fields.items()}
    title = str(fields.get("title") or (titled.title if titled.level == 1 else ""))
    stem = basename(path).rpartition(".")[0]
    stated, parts = _find_status_lines(page, fields), _find_parts(page)
    numbered = _NUMBER.match(stem) or _NUMBER.match(title)
    if not stated and "decision" not in parts and not (numbered and parts):
        return None
    number = int(numbered[1]) if numbered else None
    series = "RFC" if re.search(r"(?i)(?:^|/)rfcs?/", path) else "ADR"
    replaced_by = list(_find_after(stated, _REPLACED))
    return DecisionRecord(
        path,
        number,
        f"{series} {number}" if number is not None else series,
        (_NUMBER.sub("", strip_markup(title), count=1) or stem.replace("-", " ")).rstrip("."),
        "superseded" if replaced_by else _find_status(stated),
        _find_date(f"{fields.get('date', '')} {_find_field(page, 'date')} {stem}"),
        replaced_by,
        list(_find_after(stated, _REPLACES)),
        parts,
        (titled.line, max(section.last_line for section in page.sections)),
    )


def _find_parts(page: ParsedPage) -> dict[str, str]:
    """What the sections say that a record is made of: decision, context, reason, consequences."""
    found: dict[str, str] = {}
    for role, pattern in load_table("analyze")["records"]["part"]:
        for section in page.sections:
            title = re.sub(r"^[\d.\s]{1,20}", "", section.title).strip().lower()
            if role not in found and title and re.fullmatch(pattern, title):
                # Sub-sections of an outcome (pros, cons, confirmation) are the long version.
                body = render_blocks(section.own) or render_blocks(section.whole)
                if count_words(body) >= 3:
                    found[role] = body
    return found


def _split_lines(found: Sequence[Block]) -> list[str]:
    marked = [("- " if block.kind == "item" else "", block.text) for block in found]
    return [mark + line for mark, text in marked for line in text.split("\n")][:30]


def _find_field(page: ParsedPage, name: str) -> str:
    """`* Date: 2024-03-02`, `**Date:** …`, `Date: …`, `| Date | … |` above the second heading."""
    pattern = re.compile(rf"(?i)[\s>*|_-]{{0,6}}{name}[*_]{{0,2}}\s*[:|][*_]{{0,2}}\s*(.+)")
    lines = (line for section in page.sections[:2] for line in _split_lines(section.own))
    return next((match[1].strip(" |") for line in lines if (match := pattern.match(line))), "")


def _find_status_lines(page: ParsedPage, fields: Mapping[str, Any]) -> list[str]:
    """The lines that stand in a place for the status."""
    found = [flatten(fields.get("status")), _find_field(page, "status")]
    for name, spelling in (
        ("superseded by", "super[sc]eded[ -]by"),
        ("supersedes", "super[sc]edes"),
    ):
        value = flatten(fields.get(name.replace(" ", "-"))) or _find_field(page, spelling)
        found.append(f"{name} {value}" if value else "")
    for section in page.sections:
        if re.fullmatch(r"[\d.\s]{0,20}(?:adr )?status", section.title.lower()):
            found += _split_lines(section.own)
    return [line for line in found if line]


def _find_status(stated: Sequence[str]) -> str:
    """The status that the lines name. What one says about other records is no status of this one."""
    own = "\n".join(_REPLACES.split(line, maxsplit=1)[0] for line in stated)
    statuses = load_table("analyze")["records"]["status"].items()
    fitting = (name for name, words in statuses if re.search(rf"(?i)\b(?:{words})\b", own))
    return next(fitting, "")


def _find_after(stated: Sequence[str], words: re.Pattern[str]) -> Iterator[str]:
    """What is referred to after the words, on their line or, where that ends with them, in the list below."""
    for at, line in enumerate(stated):
        for match in words.finditer(line):
            rest = re.split(r"(?i)\b(?:super[sc]ede|replace|amend)", line[match.end() :])[0]
            below = "" if rest.strip(" :") else "\n".join(stated[at + 1 :])
            listed = re.match(r"(?:\s*(?:[-*+]\s|\[)[^\n]*(?:\n|$))*", below)
            yield from _REFERENCE.findall(f"{rest}\n{listed[0] if listed else ''}"[:2_000])


def _find_date(text: str) -> datetime | None:
    match = re.search(r"\b((?:19|20)\d\d)[-/.]?(\d\d)[-/.]?(\d\d)(?!\d)", text)
    try:
        return datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=UTC) if match else None
    except ValueError:
        return None


def _find_successors(group: Sequence[DecisionRecord]) -> dict[str, DecisionRecord]:
    """For the records of a folder by path the one that replaces each: as it says itself, or else as the other says. A proposal
    may want to replace a record; only what is in force does."""
    known: dict[str, DecisionRecord] = {}
    for record in group:
        known.setdefault(basename(record.path).rpartition(".")[0].lower(), record)
        known.setdefault(str(record.number), record)

    def resolve(references: Sequence[str]) -> Iterator[DecisionRecord]:
        for reference in references:
            number = re.split("[-_]", reference)[0].lstrip("0")
            if found := known.get(reference.lower()) or known.get(number):
                yield found

    claims = [(old, record) for record in group for old in resolve(record.replaces)][::-1]
    claims += [(record, new) for record in group for new in resolve(record.replaced_by)]
    return {
        old.path: new
        for old, new in claims
        if new is not old
        and (new.status not in ("proposed", "rejected") or old.status == "superseded")
    }


def _describe_record(tree: Tree, record: DecisionRecord, later: DecisionRecord | None) -> Finding:
    status = "superseded" if later else record.status
    shown = status or "status not given"
    day = f", {record.date.date().isoformat()}" if record.date else ""
    pieces = [f"{record.name} ({shown}{day}): {record.title}."]
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
    metadata = {
        "adr": record.number,
        "adr_key": tree.uri(record.path).removeprefix("analysis:"),
        "status": status or "unknown",
        "superseded_by": tree.uri(later.path).removeprefix("analysis:") if later else None,
        "superseded_by_adr": later.number if later else None,
    }
    made = make_finding(
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
    summary = clip(f"{record.name} ({shown}): {record.title}", 120)
    return made._replace(passage=made.passage._replace(created_at=record.date, summary=summary))
