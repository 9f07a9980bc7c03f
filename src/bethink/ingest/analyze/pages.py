"""What people wrote about the project: its purpose, how it is built, what to heed, how to work on it, and where to read on.

A heading says what its section is about (`data/analyze.toml`); sections that tell nothing lasting (licence, thanks, change logs)
are passed over. The text stays the writer's own, shortened. This module reads no code and no decision records: see `decisions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from bethink.ingest.analyze.manifests import manifests
from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    clip,
    finding,
    folder_of,
    load_table,
    most_important,
    name_of,
    plain,
    sentence,
    words,
)
from bethink.ingest.chunks import Block, BlockSection, blocks, sections_of
from bethink.ingest.markdown import parse
from bethink.types import Entity

MOST = 24  # findings of all pages together; set by hand, as all of these
MOST_PAGES = 200
MOST_PER_FILE = 6
MOST_INSTRUCTIONS = 2
MOST_WARNINGS = 4  # per file: a page that warns in every paragraph is a manual
LONGEST = 1_200  # characters of a finding
PIECES = 2  # into which a long section is cut; the rest is for who opens the file
SHORTEST = 8  # words; a shorter section is a stub or a link
MOST_CODE = 6  # lines of code that stand in a sentence as commands
_WARNS = r"(?P<{}>warning|danger|caution|important|attention|gotcha|caveat|beware|note)\b"
_ADMONITION = re.compile(
    rf"""(?xi)
    (?: \[!{_WARNS.format("alert")}\]                                       # > [!WARNING]
      | (?:!!!\+?|:{{3,}})[ \t]*+{_WARNS.format("fenced")}                  # !!! warning "Title", :::warning
      | (?:⚠️?|🚨|❗️?)?[ \t]*+(?:\*\*|__|<(?:b|strong)>)?{_WARNS.format("word")}
        (?:[ \t]*+:[ \t]*+(?:\*\*|__|</(?:b|strong)>)?|[ \t]*+(?:\*\*|__|</(?:b|strong)>)[ \t]*+:?)   # **Warning:**
    )\s*+
    """
)


class Topic(NamedTuple):
    kind: str
    tag: str
    importance: float


class Document(NamedTuple):
    """A page taken apart."""

    fields: Mapping[str, Any]  # of its frontmatter
    blocks: Sequence[Block]
    sections: Sequence[BlockSection]


def read_page(text: str) -> Document:
    page = parse(text)
    if not page.directives.get("index", True):
        return Document({}, (), sections_of(()))
    found = blocks(page.body, page.first_line)
    return Document(page.frontmatter, found, sections_of(found))


def read_restructured(text: str) -> Document:
    """reStructuredText as far as it resembles Markdown: underlined titles and warnings. Every line stays where it was."""
    text = re.sub(r"(?m)^([~^\"'`#*+.:])\1{2,}[ \t]*$", "---", text)
    text = re.sub(r"(?m)^\.\. (\w{1,20})::", r"!!! \1", text)
    return read_page(text)


def page_of(tree: Tree, path: str) -> Document:
    reader = read_restructured if path.endswith(".rst") else read_page
    return tree.parse(path, reader) or Document({}, (), sections_of(()))


def readable(found: Sequence[Block]) -> str:
    """Blocks as text for people: wrapped lines joined, items and rows one per line, short code as commands."""
    told: list[str] = []
    for block in found:
        text = plain(" ".join(block.text.split()))
        if block.kind == "heading":
            told.append(text.rstrip(":") + ":")
        elif block.kind == "code":
            lines = [line.strip() for line in block.text.split("\n") if line.strip()]
            if len(lines) <= MOST_CODE:
                told.append("; ".join(f"`{re.sub(r'^[$>] ', '', line)[:120]}`" for line in lines))
        elif block.kind == "row":
            told += [_row(block)] if block.columns else []
        elif text:
            text = re.sub(r"^\[!(\w{1,20})\]", lambda alert: f"{alert[1].capitalize()}:", text)
            told.append(f"- {text}" if block.kind == "item" else text)
    return "\n".join(line for line in told if line.strip(" -"))


def _row(block: Block) -> str:
    """A row as an item. From the third column on a value needs its column's name to be understood."""
    cells = [plain(cell) for cell in block.cells]
    columns = [plain(name) for name in block.columns] + [""] * len(cells)
    named = [
        f"{columns[at]}: {cell}" if at > 1 and columns[at] else cell
        for at, cell in enumerate(cells)
        if cell
    ]
    return f"- {': '.join(filter(None, (named[0], '; '.join(named[1:]))))}" if named else ""


def analyze(tree: Tree) -> Iterator[Finding]:
    readme = next(tree.named("readme", "readme.*"), "")
    found: list[Finding] = [] if "/" in readme else list(_purpose(tree, readme))
    for path in list(_pages(tree))[:MOST_PAGES]:
        found += _page_findings(tree, path)
    found += _documentation_index(tree)
    # How to set up and run stands in every second page. The shallowest two tell it.
    instructions = [one for one in found if one.passage.tags[1] == "command"][MOST_INSTRUCTIONS:]
    yield from most_important([one for one in found if one not in instructions], MOST)


@cache
def _words() -> Mapping[str, Any]:
    """The patterns of headings and files, compiled."""
    rows = load_table("analyze")
    return {
        "topics": [
            (
                re.compile("|".join(row["headings"])),
                Topic(row["kind"], row["tag"], row["importance"]),
            )
            for row in rows["topic"]
        ],
        "subjects": [
            (re.compile(row["files"]), Topic(row["kind"], row["tag"], row["importance"]))
            for row in rows["subject"]
        ],
        **{name: re.compile("|".join(patterns)) for name, patterns in rows["pages"].items()},
    }


def in_record_folder(path: str) -> bool:
    """Whether a file stands where decision records do."""
    return bool(_words()["records"].search(path.lower()))


def _pages(tree: Tree) -> Iterator[str]:
    seen_readme = False
    for path in tree.suffixed(".md", ".rst", ".mdx"):
        folder, stem = folder_of(path).lower(), name_of(path).lower().partition(".")[0]
        if _words()["passed_over"].search(path.lower()) or in_record_folder(path):
            continue
        if folder in ("", ".github"):
            if stem == "readme" and seen_readme:
                continue  # README.de.md says the same again
            seen_readme = seen_readme or stem == "readme"
            if stem == "readme" or _subject(stem):
                yield path
        elif _words()["documentation"].match(f"{folder}/"):
            yield path


def _subject(stem: str) -> Topic | None:
    rows = _words()["subjects"]
    return next((topic for pattern, topic in rows if pattern.fullmatch(stem.lower())), None)


def _bare(title: str) -> str:
    return re.sub(r"^[\W\d_]++|(?<![\W_])[\W_]++$", "", title[:200])[:120].lower()


def _topic(title: str) -> Topic | None:
    rows = _words()["topics"]
    return next((topic for pattern, topic in rows if pattern.fullmatch(_bare(title))), None)


def _purpose(tree: Tree, path: str) -> Iterator[Finding]:
    """What the project is: the title and the first paragraphs of its README that say anything."""
    found = page_of(tree, path).sections
    title = next((section.title for section in found if section.level == 1), "")
    about = re.compile(r"(?i)about|what (?:is|does)|overview|introduction|description|why")
    for section in found[:4]:
        if section.level > 1 and not about.match(section.title):
            continue
        told: list[str] = []
        lines: list[int] = []
        for block in section.own:
            text = plain(" ".join(block.text.split())) if block.kind == "paragraph" else ""
            if words(text) >= 4 and not re.match(r"(?i)(?:table of )?contents|english\b|\[", text):
                told.append(text)
                lines += block.lines
            if sum(map(len, told)) > 200 or len(told) == 3:
                break
        if told:
            yield _purpose_finding(tree, path, title, told, (lines[0], lines[-1]))
            return


def _purpose_finding(
    tree: Tree, path: str, title: str, told: list[str], lines: tuple[int, int]
) -> Finding:
    manifest = next((one for one in manifests(tree) if "/" not in one.path and one.name), None)
    name = title or (manifest.name if manifest else tree.root.name)
    stated = manifest.description.rstrip(".") if manifest else ""
    text = " ".join(told)
    if words(stated) > 3 and stated.lower() not in text.lower() and len(text) < 400:
        text = f"{stated}. {text}"
    return finding(
        path,
        lines,
        "domain",
        "readme",
        f"What this project is: {name}. {clip(text, 700)}",
        importance=7,
        section=f"{name} › purpose",
        entities=[Entity(name, "project")] if 1 <= words(name) <= 4 else (),
        confidence=1.0,
    )


def _page_findings(tree: Tree, path: str) -> list[Finding]:
    page, depth = page_of(tree, path), path.count("/")
    stem = name_of(path).partition(".")[0]
    # Below docs/ a page named like a file of rules is about agents, not for them.
    for_agents = bool(_words()["agents"].fullmatch(stem.lower()))
    about_agents = for_agents and depth and not path.startswith(".github/")
    subject = _subject(stem) if depth < 2 and not about_agents else None
    told: list[tuple[Topic, list[Finding]]] = []
    until = 0  # the last line of the section that was taken
    for section in page.sections:
        topic = _topic(section.title) or (subject if section.level == 2 else None)
        if not topic or section.level not in (2, 3) or section.line <= until:
            continue
        # Pages below docs/ are for users more often than for who works on the project: only what warns and explains counts.
        for_users = depth and subject is None
        explains = ("caveat", "architecture", "domain", "deploy" if depth < 2 else "")
        if _words()["idle"].fullmatch(_bare(section.title)) or (
            for_users and topic.tag not in explains
        ):
            continue
        if made := _section_findings(path, section, topic):
            told.append((topic, made))
            until = section.last_line
    told.sort(key=lambda item: -item[0].importance)
    most = MOST_PER_FILE if not depth else MOST_PER_FILE // 2
    found = [one for _, made in told[:most] for one in made]
    return [*found, *_warnings(path, page, [one.passage.lines or (0, 0) for one in found])]


def _section_findings(path: str, section: BlockSection, topic: Topic) -> list[Finding]:
    body = readable(section.whole)
    links = re.compile(r"\]\([^)\s]{1,200}\.(?:md|rst|mdx|html)[)#]")
    lines = [line for block in section.whole for line in block.text.split("\n") if line.strip()]
    if words(body) < SHORTEST or 2 * sum(bool(links.search(line)) for line in lines) > len(lines):
        return []  # a stub, or a list of links: the index of the documentation has those
    apart = "\n" if body.startswith("- ") else " "
    title = section.title.rstrip(":.")
    return [
        finding(
            path,
            (section.line, section.last_line),
            topic.kind,
            topic.tag,
            f"{title}:{apart}{piece}",
            importance=topic.importance,
            section=_place(path, section),
        )
        for piece in _pieces(body, 1 if topic.tag == "command" else PIECES)
    ]


def _pieces(body: str, most: int) -> list[str]:
    """A long section in even pieces that end where a line does, because half a rule is worse than two memories."""
    wanted = min(-(-len(body) // LONGEST), most)
    share = min(len(body) // wanted, LONGEST)
    pieces = [""]
    for line in body.split("\n"):
        if len(pieces[-1]) + len(line) / 2 > share and pieces[-1]:
            pieces.append("")
        pieces[-1] += f"\n{line}" if pieces[-1] else line
    return [clip(piece, LONGEST + 300) for piece in pieces[:most]]


def _place(path: str, section: BlockSection) -> str:
    return " › ".join(filter(None, (path, *section.parents, section.title)))


def _warnings(path: str, page: Document, covered: Sequence[tuple[int, int]]) -> Iterator[Finding]:
    """Warnings and notes that a writer set apart, where no section that is told holds them."""
    told = 0
    for at, block in enumerate(page.blocks):
        match = _ADMONITION.match(block.text) if block.kind in ("paragraph", "item") else None
        if not match:
            continue
        word = next(name for name in match.groupdict().values() if name).lower()
        body, last = block.text[match.end() :].rstrip(":").strip('" \n'), block.lines[1]
        if not body and at + 1 < len(page.blocks):  # the text stands apart from the word
            body, last = page.blocks[at + 1].text, page.blocks[at + 1].lines[1]
        text = readable([Block("paragraph", body, block.lines)])
        line = block.lines[0]
        if words(text) < (8 if word == "note" else 5) or (word == "note" and path.count("/") > 1):
            continue
        if told == MOST_WARNINGS or any(first <= line <= end for first, end in covered):
            continue
        told += 1
        above = next(section for section in reversed(page.sections) if section.line <= line)
        where = f" ({above.title})" if above.title else ""
        yield finding(
            path,
            (line, last),
            "gotcha",
            "caveat",
            f"{word.capitalize()}{where}: {clip(text, 600)}",
            importance=4.5 if word == "note" else 6.5,
            section=_place(path, above),
        )


def _documentation_index(tree: Tree) -> Iterator[Finding]:
    """Which question is answered where: the pages of the documentation with their titles."""
    pages: list[tuple[str, str]] = []
    for path in list(tree.suffixed(".md", ".rst", ".mdx"))[: 3 * MOST_PAGES]:
        place = path.lower()
        left_out = re.search(r"/(?:i18n|locales?)/|(?:^|/)(?:index|readme)\.", place)
        if not _words()["documentation"].match(place) or left_out or in_record_folder(path):
            continue
        page = page_of(tree, path)
        titles = [str(page.fields.get("title") or ""), *(one.title for one in page.sections)]
        if title := next(filter(None, titles), ""):
            pages.append((path, plain(title)))
    if len(pages) < 3:
        return
    shown = "; ".join(f"{sentence(title, 70)} ({path})" for path, title in pages[:24])
    more = f"; and {len(pages) - 24} more" if len(pages) > 24 else ""
    main = (path for path in tree.paths if re.fullmatch(r"(?i)docs?/(?:index|readme)\.\w+", path))
    yield finding(
        next(main, pages[0][0]),
        1,
        "fact",
        "docs",
        f"Where to read about what in the documentation: {shown}{more}.",
        importance=4.5,
        section="Documentation",
    )
