"""What people wrote about the project: its purpose, how it is built, what to heed, how to work on it, and where to read on.

A heading says what its section is about; sections that tell nothing lasting (licence, thanks, change logs) are passed
over. The text stays the writer's own, shortened. This module does not read code, and does not know ADRs: see `adr`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bethink.ingest.analyze import adr
from bethink.ingest.analyze.ecosystems import manifests
from bethink.ingest.analyze.markdown import Section, paragraphs, readable, sections, warned
from bethink.ingest.analyze.prose import clip, plain, sentence, words
from bethink.ingest.analyze.tree import Finding, Tree, finding, folder_of
from bethink.types import Entity

MOST = 24
MOST_PER_FILE = 6
MOST_INSTRUCTIONS = 2
MOST_WARNINGS = 4  # per file: a page that warns in every paragraph is a manual
LONGEST = 1_200
PIECES = 2  # into which a long section is cut; the rest is for who opens the file
SHORTEST = 8  # words; a shorter section is a stub or a link

# What a heading says about its section: kind, tag, importance. The first that fits.
TOPICS: tuple[tuple[str, str, str, float], ...] = (
    (
        r"known (?:issues?|problems?|bugs?|limitations?)|limitations?|caveats?|gotchas?|pitfalls?|troubleshooting|breaking changes|footguns?"
        r"|common (?:problems|errors|mistakes|pitfalls)|(?:important )?warnings?|watch out.*|.*\beasy to (?:break|miss|get wrong)"
        r"|things to (?:know|watch).*|security (?:notes|considerations)",
        "gotcha",
        "caveat",
        6.5,
    ),
    (
        r"(?:project|repo(?:sitory)?|directory|folder|code|source|package)s? (?:structure|layout|organi[sz]ation|overview|map)|code ?map|map"
        r"|layout|structure|components|modules|packages|services|repository|what'?s (?:inside|in the box)|to change .*",
        "component",
        "components",
        6,
    ),
    (
        r"glossary|terminology|terms|vocabulary|words|(?:key |core |main |basic )?concepts|domain(?: model)?|data model|definitions",
        "domain",
        "domain",
        6,
    ),
    (
        r"(?:.*\b)?architecture(?:\b.*)?|(?:system |technical |high[- ]level )?design(?: (?:decisions|overview|goals|principles|notes))?"
        r"|how (?:it|.{1,40}) works?|how .{1,40} (?:is|are) .{1,30}|internals|data ?flow|under the hood|technical overview"
        r"|tech(?:nology)? stack|stack|principles|goals|non-?goals|invariants",
        "architecture",
        "architecture",
        6,
    ),
    (
        r"(?:.*\b)?conventions?|(?:code |coding )?style(?: ?guide)?|(?:coding |contribution |development )?guidelines|coding standards?"
        r"|(?:critical |hard |golden )?rules|naming.*|commits?(?: messages?)?|branch(?:es|ing).*|(?:development |git |release )?workflow"
        r"|pull requests?|code review.*|best practices|layers|do(?:'?s)? and don'?t'?s?",
        "pattern",
        "convention",
        6,
    ),
    (
        r"deploy(?:ment|ing|s)?.*|releas(?:e|es|ing)(?: process)?|how to (?:release|deploy).*|publishing|rollback.*|operations|runbook",
        "pattern",
        "deploy",
        6,
    ),
    (
        r"(?:environment|env)(?: variables?| vars?)|configuration|settings",
        "fact",
        "configuration",
        5,
    ),
    (
        r"install(?:ation|ing)?(?: .*)?|set ?up|getting started|quick ?start|usage|development(?: setup)?|local development|prerequisites"
        r"|requirements|building(?: .*)?|(?:running )?(?:the )?tests?|testing|commands",
        "pattern",
        "command",
        5.5,
    ),
)
IDLE = (
    r"licen[sc]e.*|contributors?|acknowledge?ments?|credits|thanks|(?:table of )?contents|toc|change ?log|release notes|sponsors?.*|backers"
    r"|support|links|see also|further reading|references?|code of conduct|contact|authors?|citation|badges|screenshots?|star history"
    r"|community|faq|documentation|docs"
    r"|related.*|roadmap|to-?do|news|history|versions?|status|examples?"
)
# Files that agents read at every start. Below docs/ a page of that name is about agents, not for them.
RULES = r"agents|claude|gemini|copilot-instructions"
# Files that are about one thing, and what a section of theirs is about where its heading does not say.
SUBJECTS: tuple[tuple[str, tuple[str, str, float] | None], ...] = (
    (r"architecture|design|internals|overview", ("architecture", "architecture", 5.5)),
    (
        r"contributing|develop(?:ment|ing)|hacking|conventions?|style(?:[-_]?guide)?|guidelines",
        ("pattern", "convention", 5.5),
    ),
    (RULES, ("pattern", "convention", 5.5)),
    (
        r"troubleshooting|known[-_]issues|gotchas|pitfalls|caveats|limitations",
        ("gotcha", "caveat", 6),
    ),
    (r"glossary|terminology|domain|concepts", ("domain", "domain", 5.5)),
    (r"deploy(?:ment|ing)?|releas(?:e|ing)|operations|runbook", ("pattern", "deploy", 5.5)),
    (r"readme|index", None),
)
_PASSED_OVER = re.compile(
    r"(?i)(?:^|/)(?:change(?:log|s)|history|news|licen[sc]e|code[-_]of[-_]conduct|security|authors|upgrading|migrat\w*)[^/]*$"
    r"|(?:^|/)(?:reference|api|changelog|releases|release-notes|i18n|translations|locales?|archive|blog)/"
    r"|(?:^|/)(?:zh(?:-\w+)?|ja|ko|de|fr|es|ru|pt(?:-\w+)?|it|tr|pl|uk|vi)/"
)


def analyze(tree: Tree) -> Iterator[Finding]:
    found: list[Finding] = []
    readme = next(tree.named("readme.md", "readme.rst", "readme.txt", "readme", "readme.*"), None)
    if readme and "/" not in readme:
        found += _purpose(tree, readme)
    pages = [path for path in _pages(tree) if "/" not in path or path != readme]
    for path in pages:
        found += _page(tree, path)
    found += _index(tree)
    # How to set up and run stands in every second page. The shallowest two tell it.
    instructions = [one for one in found if one.passage.tags[1] == "command"][MOST_INSTRUCTIONS:]
    found = [one for one in found if one not in instructions]
    # The most telling first; of equals those of the shallower file.
    order = sorted(range(len(found)), key=lambda at: (-(found[at].passage.importance or 0), at))[
        :MOST
    ]
    yield from (found[at] for at in sorted(order))


def _pages(tree: Tree) -> Iterator[str]:
    seen_readme = False
    for path in tree.suffixed(".md", ".rst", ".mdx", ".txt", ".adoc", "README"):
        folder, name = folder_of(path).lower(), path.rsplit("/", 1)[-1].lower()
        stem = name.partition(".")[0]
        if _PASSED_OVER.search(path) or adr.in_folder(path) or path.endswith((".txt", ".adoc")):
            continue
        if not folder or folder == ".github":
            if stem == "readme":
                if seen_readme:
                    continue  # README.de.md says the same again
                seen_readme = True
            if _subject(stem) is not None or stem == "readme":
                yield path
        elif re.match(r"(?:docs?|documentation|wiki|handbook)(?:/|$)", folder):
            yield path


def _subject(stem: str) -> tuple[str, str, float] | None:
    return next(
        (subject for pattern, subject in SUBJECTS if re.fullmatch(pattern, stem.lower())), None
    )


def _topic(title: str) -> tuple[str, str, float] | None:
    plain_title = re.sub(r"^[\W\d_]+|[\W_]+$", "", title)[:120].lower()
    return next((topic[1:] for topic in TOPICS if re.fullmatch(topic[0], plain_title)), None)


def _idle(title: str) -> bool:
    return bool(re.fullmatch(IDLE, re.sub(r"^[\W\d_]+|[\W_]+$", "", title)[:120].lower()))


def _purpose(tree: Tree, path: str) -> Iterator[Finding]:
    """What the project is: the title and the first paragraphs of its README that say anything."""
    found = sections(tree.text(path), path.endswith(".rst"))
    title = next((section.title for section in found if section.level == 1 and section.title), "")
    opening = [
        section
        for section in found[:4]
        if section.level < 2
        or re.match(
            r"(?i)about|what (?:is|does)|overview|introduction|description|why", section.title
        )
    ]
    for section in opening:
        told: list[str] = []
        place: tuple[int, int] | None = None
        for text, first, last in paragraphs(section.own, section.line + 1):
            listing = re.match(r"(?:[-*+•]|\d{1,2}[.)])\s", text)
            if (
                words(text) < 4
                or (listing and told)
                or re.match(
                    r"(?i)(?:table of contents|contents:|english\b|documentation:?$|\[)", text
                )
            ):
                continue
            told.append(text)
            place = (place[0] if place else first, last)
            if sum(map(len, told)) > 200 or len(told) == 3:
                break
        if place:
            manifest = next(
                (
                    manifest
                    for manifest in manifests(tree)
                    if "/" not in manifest.path and manifest.name
                ),
                None,
            )
            name = re.sub(r"\s+", " ", title) or (manifest.name if manifest else tree.root.name)
            stated = manifest.description.rstrip(".") if manifest else ""
            if (
                stated
                and words(stated) > 3
                and stated.lower() not in " ".join(told).lower()
                and len(" ".join(told)) < 400
            ):
                told.insert(0, f"{stated}.")
            yield finding(
                path,
                place,
                "domain",
                "readme",
                f"What this project is: {name}. {clip(' '.join(told), 700)}",
                importance=7,
                section=f"{name} › purpose",
                entities=[Entity(name, "project")] if 1 <= words(name) <= 4 else (),
                confidence=1.0,
            )
            return


def _page(tree: Tree, path: str) -> list[Finding]:
    rst = path.endswith(".rst")
    text = tree.text(path)
    if not text.strip():
        return []
    # Pages below docs/ are for users more often than for who works on the project: only what warns and explains counts.
    depth = path.count("/")
    stem = path.rsplit("/", 1)[-1].partition(".")[0]
    about_agents = depth and not path.startswith(".github/") and re.fullmatch(RULES, stem.lower())
    subject = _subject(stem) if depth < 2 and not about_agents else None
    told: list[tuple[float, list[Finding]]] = []
    taken: list[tuple[int, int]] = []
    heads = sections(text, rst)
    for section in heads:
        covered = any(first <= section.line <= last for first, last in taken)
        topic = _topic(section.title) or (subject if section.level == 2 else None)
        if (
            topic
            and depth
            and topic[1] not in ("caveat", "architecture", "domain", "deploy" if depth < 2 else "")
            and subject is None
        ):
            continue
        if (
            not topic
            or covered
            or not section.title
            or _idle(section.title)
            or section.level > 3
            or section.level == 1
        ):
            continue
        made = _told(path, section, topic)
        if made:
            told.append((topic[2], made))
            taken.append((section.line, section.last))
    told.sort(key=lambda item: -item[0])
    found = [
        one
        for _, made in told[: MOST_PER_FILE if not depth else MOST_PER_FILE // 2]
        for one in made
    ]
    alerts = [
        alert
        for alert in warned(text, rst)
        if alert.word != "note" or (depth < 2 and words(alert.text) >= 8)
    ]
    for alert in alerts[:MOST_WARNINGS]:
        if not any(
            (one.passage.lines or (0, 0))[0] <= alert.lines[0] <= (one.passage.lines or (0, 0))[1]
            for one in found
        ):
            above = next(
                (section for section in reversed(heads) if section.line <= alert.lines[0]), heads[0]
            )
            where = f" ({above.title})" if above.title else ""
            found.append(
                finding(
                    path,
                    alert.lines,
                    "gotcha",
                    "caveat",
                    f"{alert.word.capitalize()}{where}: {clip(alert.text, 600)}",
                    importance=4.5 if alert.word == "note" else 6.5,
                    section=_section(path, above),
                )
            )
    return found


def _told(path: str, section: Section, topic: tuple[str, str, float]) -> list[Finding]:
    kind, tag, importance = topic
    body = readable(section.whole)
    linked = sum(
        bool(re.search(r"\]\([^)\s]{1,200}\.(?:md|rst|mdx|html)[)#]", line))
        for line in section.whole
    )
    if words(body) < SHORTEST or linked * 2 > sum(bool(line.strip()) for line in section.whole):
        return []  # a stub, or a list of links: `_index` has those
    apart = "\n" if body.startswith("- ") else " "
    title = section.title.rstrip(":.")
    place, where = (section.line, section.last), _section(path, section)
    return [
        finding(
            path, place, kind, tag, f"{title}:{apart}{piece}", importance=importance, section=where
        )
        for piece in _pieces(body, 1 if tag == "command" else PIECES)
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


def _section(path: str, section: Section) -> str:
    return " › ".join(filter(None, (path, *section.parents, section.title)))


def _index(tree: Tree) -> Iterator[Finding]:
    """Which question is answered where: the pages of the documentation with their titles."""
    pages: list[tuple[str, str]] = []
    for path in tree.suffixed(".md", ".rst", ".mdx"):
        if (
            not re.match(r"(?:docs?|documentation|wiki|handbook)/", path.lower())
            or adr.in_folder(path)
            or re.search(r"(?i)/(?:i18n|locales?)/", path)
        ):
            continue
        head = tree.text(path)[:4_000]
        named = re.match(r"---\n(?:[^\n]{0,200}\n){0,12}?title:[ \t]*[\"']?([^\n\"']{2,100})", head)
        title = (
            named[1]
            if named
            else next(
                (
                    section.title
                    for section in sections(head, path.endswith(".rst"))
                    if section.title
                ),
                "",
            )
        )
        if title and not re.search(r"(?:^|/)(?:index|readme)\.", path.lower()):
            pages.append((path, plain(title)))
    if len(pages) < 3:
        return
    shown = "; ".join(f"{sentence(title, 70)} ({path})" for path, title in pages[:24])
    more = f"; and {len(pages) - 24} more" if len(pages) > 24 else ""
    first = next(
        (
            path
            for path in tree.paths
            if re.fullmatch(
                r"(?i)(?:docs?|documentation|wiki|handbook)/(?:index|readme)\.\w+", path
            )
        ),
        pages[0][0],
    )
    yield finding(
        first,
        1,
        "fact",
        "docs",
        f"Where to read about what in the documentation: {shown}{more}.",
        importance=4.5,
        section="Documentation",
    )
