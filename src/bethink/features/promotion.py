"""Memories that proved useful, put into a file of rules that agents read at every start; and taken out of it again.

The rules stand one a line in a block between two markers, each followed by the id of its memory. Everything outside the
block stays as it is, byte for byte, and so does every line of the block that is not being changed: other people's rules,
whose memories are not here, and rules that somebody edited by hand. A CLAUDE.md is never made, because hosts that find one
stop reading AGENTS.md. How files are written is for `textfile`; how memories are changed is for `Bethink`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from bethink.api import Bethink
from bethink.errors import BethinkError, InvalidInput, NotFound, UsageError
from bethink.text import textfile
from bethink.types import PERSONAL, TRUST, Memory

RULES = Path(".claude/rules/bethink.md")
AGENTS = Path("AGENTS.md")
TARGETS = {"claude": RULES, "agents": AGENTS}
USUAL = tuple(path.as_posix() for path in TARGETS.values())
SUFFIXES = (".md", ".markdown", ".mdc")

BEGIN = "<!-- bethink:begin -->"
END = "<!-- bethink:end -->"
HEAD = (
    "## Learned in this project",
    "",
    "Kept by `bethink promote`; `bethink demote ID` takes a line out.",
    "",
)
LONGEST = 500  # characters of one rule: it is in every context of every agent from now on
MARKS = ("promoted_at", "promoted_to", "promoted_as")

# What can be a rule, in the order in which rules stand. A question or a passage of a document is none.
KINDS = (
    "decision",
    "preference",
    "pattern",
    "gotcha",
    "architecture",
    "component",
    "domain",
    "fact",
    "conclusion",
    "solution",
    "discovery",
    "general",
)
VOTES = 2  # from which votes alone make a candidate
USES = 5  # from which uses alone do
SOME_USES = 3  # from which uses do together with any vote for it

_MARKER = re.compile(r"<!-- bethink:([0-9a-f]{8}[0-9a-f-]{0,28}) -->\s*$")
_OPENS = re.compile(r"(?:[#>=]|[-+*](?=\s|$)|```|~~~|\[[ xX]\])")  # would start a Markdown block
_NUMBER = re.compile(r"(\d{1,9})([.)])(?=\s|$)")  # would start a numbered list
_MENTION = re.compile(r"(?<![\w`@])@[\w~./\\-]++")  # would make some hosts read that file in
_SPAN = re.compile(r"((?<!`)`++[^`]*+`++)")


class Promotion(NamedTuple):
    memory: Memory
    path: str  # of the file, relative to the checkout
    status: str  # promoted, kept (it was there already), moved (from another file)
    created: bool = False  # whether the file is new
    hints: tuple[str, ...] = ()


class Demotion(NamedTuple):
    id: str
    path: str
    found: bool  # whether its rule stood in the file
    removed: bool = False  # whether the file is gone with its last rule


class Rule(NamedTuple):
    """A rule in a file and how it stands to its memory: ok, changed, forgotten, replaced, expired, edited (by hand),
    missing (taken out by hand) or unknown (its memory is not in this database)."""

    id: str
    path: str
    state: str
    text: str = ""
    memory: Memory | None = None
    done: str = ""  # by a refresh: rewritten, removed, unmarked or left


# Candidates


def candidates(memory: Bethink, limit: int = 10) -> list[tuple[Memory, str]]:
    """Memories of this project that proved useful and are no rule yet, best first, each with the reason."""
    found = {
        one.id: one for one in (*_used(memory, "useful"), *_used(memory, "used")) if _worthy(one)
    }
    best = sorted(found.values(), key=lambda one: (-2 * one.usefulness - one.access_count, one.id))
    return [(one, reason(one, memory.clock())) for one in best[:limit]]


def _used(memory: Bethink, order: str, page: int = 200) -> Iterator[Memory]:
    """The memories that might do, those with most votes or uses first, for as long as these are enough."""
    wanted = memory.filter(scopes=(memory.scope,), kinds=KINDS, used=True)
    for offset in range(0, 1_000_000, page):
        found = memory.list(filter=wanted, limit=page, offset=offset, order=order)
        enough = takewhile(
            lambda one: (
                one.usefulness >= VOTES if order == "useful" else one.access_count >= SOME_USES
            ),
            found,
        )
        few = list(enough)
        yield from few
        if len(few) < page:
            return


def _worthy(one: Memory) -> bool:
    proven = (
        one.usefulness >= VOTES
        or one.access_count >= USES
        or (one.usefulness > 0 and one.access_count >= SOME_USES)
    )
    return (
        proven
        and one.usefulness >= 0
        and one.trust >= TRUST["agent"]
        and "promoted_at" not in one.metadata
    )


def reason(one: Memory, now: datetime) -> str:
    """Why a memory is a candidate: `4 uses and 2 votes in 3 weeks`."""
    parts = [_many(one.access_count, "use")] if one.access_count else []
    if one.usefulness > 0:
        parts.append(_many(one.usefulness, "vote"))
    days = max(0, (now - one.created_at).days)
    span = _many(days // 7, "week") if days >= 14 else _many(days, "day") if days > 1 else "a day"
    return f"{' and '.join(parts)} in {span}"


def _many(count: float, word: str) -> str:
    return f"{count:g} {word}{'' if count == 1 else 's'}"


# Promoting


def promote(
    memory: Bethink, id: str, target: str | Path | None = None, *, force: bool = False
) -> Promotion:
    """Writes a memory into a file of rules and marks it. `target` is claude, agents or a path inside the checkout; `force`
    takes text that was imported."""
    one = memory.one(id)
    _promotable(memory, one, force)
    root = memory.project.worktree
    path = _target(root, target)
    new = rule(memory, one)
    with textfile.alone(root):
        before = memory.store.get([one.id])[0]  # as it is now that nobody else promotes
        old = before.metadata.get("promoted_to")
        created = textfile.read(textfile.inside(root, path)) is None
        changed = _rewrite(
            root,
            path,
            lambda text: with_rule(
                text or "", new, one.id, lambda other: _later(memory, other, one), path
            ),
        )
        elsewhere = bool(old) and old != path.as_posix()
        if changed or elsewhere or not old:
            marks = (
                memory.clock().astimezone(UTC).isoformat(timespec="seconds"),
                path.as_posix(),
                digest(new),
            )
            after = memory.update(
                one.id, metadata={**before.metadata, **dict(zip(MARKS, marks, strict=True))}
            )
        else:
            after = before
        moved = elsewhere and _without(memory, str(old), one.id)[0]
    status = "moved" if moved else "kept" if after is before else "promoted"
    return Promotion(after, path.as_posix(), status, created, _unread(root, path))


def _promotable(memory: Bethink, one: Memory, force: bool) -> None:
    if one.scope == PERSONAL:
        raise InvalidInput(
            f"The memory {one.id} is personal: it follows you into every project, and a file of rules belongs to one.",
            "Add it to this project without --personal to make it a rule here.",
        )
    if state := gone(one, memory.clock()):
        hints = {
            "replaced": f"bethink promote {one.superseded_by}",
            "expired": f"bethink update {one.id} --no-expiry",
        }
        raise InvalidInput(
            f"The memory {one.id} is {state}, so it cannot become a rule.",
            hints.get(state, f"bethink restore {one.id}"),
        )
    if one.trust == TRUST["quarantined"]:
        raise InvalidInput(
            f"The memory {one.id} is quarantined.",
            "`bethink add` it in your own words if it is true.",
        )
    if one.trust < TRUST["agent"] and not force:
        raise UsageError(
            f"The memory {one.id} comes from {one.source}: imported text is not put into rules, because agents obey them.",
            f"Read it with `bethink get {one.id}`; --force promotes it all the same.",
        )


def gone(one: Memory, now: datetime) -> str:
    """Why a memory no longer counts: forgotten, replaced or expired; nothing if it does."""
    if one.deleted_at:
        return "forgotten"
    if one.superseded_by:
        return "replaced"
    return "expired" if any(end and end <= now for end in (one.expires_at, one.valid_to)) else ""


def _target(root: Path, target: str | Path | None) -> Path:
    """The file to write to, relative to the checkout."""
    if target is None:
        return AGENTS if not (root / ".claude").is_dir() and (root / AGENTS).exists() else RULES
    if str(target) in TARGETS:
        return TARGETS[str(target)]
    real = textfile.inside(root, Path(target))
    path = real.relative_to(root.resolve())
    if path.suffix.lower() not in SUFFIXES or ".git" in path.parts:
        raise UsageError(
            f"{path} is not a file of rules.",
            f"--to claude, --to agents, or a file that ends with {', '.join(SUFFIXES)}.",
        )
    if path.name.lower() in ("claude.md", "claude.local.md") and not real.exists():
        raise UsageError(
            f"{path} does not exist, and is not made: with one here, some agents stop reading AGENTS.md.",
            "--to claude writes .claude/rules/bethink.md, which switches nothing off.",
        )
    return path


def _unread(root: Path, path: Path) -> tuple[str, ...]:
    """Says so when a CLAUDE.md keeps a host from reading what was just written."""
    if path != AGENTS:
        return ()
    for name in ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"):
        try:
            text = textfile.read(root / name)
        except BethinkError:
            continue
        if text is not None and "@AGENTS.md" not in text and not (root / name).is_symlink():
            return (
                f"Claude Code reads {name} in place of AGENTS.md; a line `@AGENTS.md` in it brings both together.",
            )
    return ()


def _later(memory: Bethink, marker: str, one: Memory) -> bool:
    """Whether a rule that stands in the file belongs behind this one: by kind, then by age."""
    found = _known(memory, marker)
    return found is not None and _place(found) > _place(one)


def _place(one: Memory) -> tuple[int, str]:
    return KINDS.index(one.kind) if one.kind in KINDS else len(KINDS), one.id


def _known(memory: Bethink, marker: str) -> Memory | None:
    try:
        return memory.one(marker)
    except UsageError:  # somebody else's, or purged
        return None


def rule(memory: Bethink, one: Memory) -> str:
    """The line of a memory in a file of rules."""
    text = safe(one.content)
    if len(text) > LONGEST:
        text = safe(one.summary)
        if not text or text.endswith("…") or len(text) > LONGEST:
            raise InvalidInput(
                f"The memory {one.id} has {len(one.content):,} characters; a rule has at most {LONGEST}.",
                f'bethink update {one.id} --summary "what the rule should say"',
            )
    if not text:
        raise InvalidInput(
            f"The memory {one.id} holds no text that can be shown.", f"bethink get {one.id}"
        )
    return f"- {text} <!-- bethink:{memory.store.abbreviate([one.id])[one.id]} -->"


def safe(text: str) -> str:
    """A text as one line of Markdown that cannot start anything else: no comment, no block, no file that is read in, nothing
    that hides or reorders its words."""
    kept = "".join(mark for mark in text.translate(_SPACES) if not _hidden(mark))
    line = " ".join(kept.split()).replace("<!--", "<! --").replace("-->", "-- >")
    parts = _SPAN.split(line)
    line = "".join(
        part if at % 2 else _MENTION.sub(lambda found: f"`{found[0]}`", part)
        for at, part in enumerate(parts)
    )
    is_rule = len(line) > 2 and not line.replace(" ", "").strip("-*_")  # a line across the page
    if is_rule or _OPENS.match(line):
        return f"\\{line}"
    return _NUMBER.sub(r"\1\\\2", line, count=1) if _NUMBER.match(line) else line


_SPACES = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029], " ")


def _hidden(mark: str) -> bool:
    """Whether a character shows nothing: marks of direction, tags, private ones. Two join or part letters in real words."""
    if mark.isascii() or mark in "\u200c\u200d":
        return False
    return (
        unicodedata.category(mark) in ("Cf", "Co", "Cs", "Cn")
        or "\U000e0100" <= mark <= "\U000e01ef"
    )


def digest(line: str) -> str:
    """What tells whether somebody edited a rule."""
    return sha256(line.strip().encode("utf-8", "surrogateescape")).hexdigest()[:12]


# The block of a file


def with_rule(text: str, line: str, id: str, later: Callable[[str], bool], path: Path) -> str:
    """The text with a rule in its place in the block: in place of its own earlier line, else before the first later one."""
    lines = text.split("\n")
    span = _span(lines, path)
    if span is None:
        end = textfile.line_end(text)
        # Exactly one line end goes before the block, whether or not the text ended with one: `without_rule` takes it back.
        return text + (end if text else "") + end.join((BEGIN, *HEAD, line, END)) + end
    begin, last = span
    line += "\r" if lines[begin].endswith("\r") else ""
    rules = [(at, marker) for at in range(begin + 1, last) if (marker := _marker(lines[at]))]
    for at, marker in rules:
        if id.startswith(marker):
            return text if lines[at] == line else "\n".join([*lines[:at], line, *lines[at + 1 :]])
    at = next((at for at, marker in rules if later(marker)), rules[-1][0] + 1 if rules else last)
    return "\n".join([*lines[:at], line, *lines[at:]])


def without_rule(text: str, id: str, path: Path) -> str:
    """The text without a rule; without the block if that was the last one and nobody wrote anything else into it."""
    lines = text.split("\n")
    span = _span(lines, path)
    if span is None:
        return text
    begin, last = span
    kept = [
        line
        for line in lines[begin + 1 : last]
        if not ((marker := _marker(line)) and id.startswith(marker))
    ]
    if len(kept) == last - begin - 1:
        return text
    if any(line.strip() not in HEAD for line in kept):
        return "\n".join([*lines[: begin + 1], *kept, *lines[last:]])
    before, after = "\n".join(lines[:begin]), "\n".join(lines[last + 1 :])
    if begin and lines[begin].endswith("\r"):
        before = before.removesuffix("\r")
    joint = textfile.line_end(text) if before and after and not before.endswith("\n") else ""
    return before + joint + after


def _span(lines: Sequence[str], path: Path) -> tuple[int, int] | None:
    """The lines of the two markers. A marker is one only on a line of its own."""
    begins = [at for at, line in enumerate(lines) if line.strip("\ufeff \t\r") == BEGIN]
    ends = [at for at, line in enumerate(lines) if line.strip("\ufeff \t\r") == END]
    if not begins and not ends:
        return None
    if len(begins) == len(ends) == 1 and begins[0] < ends[0]:
        return begins[0], ends[0]
    places = ", ".join(str(at + 1) for at in sorted((*begins, *ends))[:6])
    raise BethinkError(
        f"The markers in {path} are damaged: one `{BEGIN}` and after it one `{END}` are expected, but they stand on line {places}.",
        "Mend them by hand; nothing was changed.",
    )


def _marker(line: str) -> str | None:
    found = _MARKER.search(line) if line.lstrip().startswith(("- ", "* ")) else None
    return found[1] if found else None


def _rewrite(root: Path, path: Path, change: Callable[[str | None], str]) -> bool:
    """Changes a file, again if somebody else wrote to it meanwhile. Says whether it had to be changed."""
    real = textfile.inside(root, path)
    for _ in range(10):
        was = textfile.read(real)
        new = change(was)
        if new == (was or ""):
            return False
        if textfile.write(real, new, was):
            return True
    raise BethinkError(f"{path} is being changed by something else all the time.", "Try again.")


# Demoting


def demote(memory: Bethink, id: str) -> Demotion:
    """Takes a rule out of its file and the mark off its memory. Works for rules whose memory is not here, too."""
    root = memory.project.worktree
    with textfile.alone(root):
        try:
            one = memory.one(id)
        except NotFound:
            return _demote_unknown(memory, id)
        path = str(one.metadata.get("promoted_to") or "")
        paths = [path] if path else [path for path in USUAL if _holds(root, path, one.id)]
        if not paths:
            raise NotFound(
                f"The memory {one.id} is not promoted.", "`bethink promote --check` lists what is."
            )
        found, removed = _without(memory, paths[0], one.id)
        _unmark(memory, one)
    return Demotion(one.id, paths[0], found, removed)


def _demote_unknown(memory: Bethink, id: str) -> Demotion:
    plain = id.strip().lower()
    root = memory.project.worktree
    found = [
        (marker, path)
        for path in USUAL
        for marker, _ in _rules(root, path)
        if len(plain) >= 8 and (marker.startswith(plain) or plain.startswith(marker))
    ]
    if len(found) != 1:
        raise NotFound(
            f"There is no memory and no rule whose id starts with '{id}'.",
            "`bethink promote --check` lists the rules.",
        )
    marker, path = found[0]
    return Demotion(marker, path, *_without(memory, path, marker))


def withdraw_rules(memory: Bethink, purged: Sequence[Memory]) -> list[str]:
    """Takes the rules of memories that are purged out of their files, edited ones too. Returns a sentence for each file: what was
    taken out, or where the text still stands because this process cannot change it."""
    root = memory.project.worktree
    told: list[str] = []
    for one in purged:
        noted = str(one.metadata.get("promoted_to") or "")
        for path in dict.fromkeys((*((noted,) if noted else ()), *USUAL)):
            try:
                with textfile.alone(root):
                    found, removed = _without(memory, path, one.id)
            except BethinkError as error:
                if path == noted:
                    told.append(f"{path} may still hold its rule: {error.message}")
                continue
            if found:
                went = (
                    "the file, which held nothing else, is gone"
                    if removed
                    else "it holds it no more"
                )
                told.append(
                    f"Its rule was taken out of {path}: {went}. Commits of that file may still."
                )
            elif path == noted:
                told.append(
                    f"It was a rule in {path}, which does not hold it here; other checkouts may."
                )
    return told


def _without(memory: Bethink, path: str, id: str) -> tuple[bool, bool]:
    """Takes a rule out of a file. Says whether it stood there, and whether the file went with it."""
    root = memory.project.worktree
    if not _holds(root, path, id):
        return False, False
    _rewrite(root, Path(path), lambda text: without_rule(text or "", id, Path(path)))
    real = textfile.inside(root, Path(path))
    if textfile.read(real) != "":
        return True, False
    textfile.remove(real, folders=2 if path == RULES.as_posix() else 0)
    return True, True


def _unmark(memory: Bethink, one: Memory) -> None:
    if any(name in one.metadata for name in MARKS):
        memory.update(
            one.id,
            metadata={name: value for name, value in one.metadata.items() if name not in MARKS},
        )


def _rules(root: Path, path: str) -> list[tuple[str, str]]:
    """The rules of a file: (marker, line). A path that leads nowhere, as metadata may name one, has none."""
    try:
        text = textfile.read(textfile.inside(root, Path(path)))
    except InvalidInput:
        text = None
    lines = (text or "").split("\n")
    begin, end = _span(lines, Path(path)) or (0, 0)
    return [(marker, line) for line in lines[begin:end] if (marker := _marker(line))]


def _holds(root: Path, path: str, id: str) -> bool:
    return any(id.startswith(marker) for marker, _ in _rules(root, path))


# Looking after


def check(memory: Bethink) -> list[Rule]:
    """Every rule that is or should be in a file of this checkout, and how it stands to its memory."""
    root, now = memory.project.worktree, memory.clock()
    everything = memory.filter(
        scopes=(memory.scope,),
        include_deleted=True,
        include_expired=True,
        include_superseded=True,
        include_quarantined=True,
    )
    marked = {one.id: one for one in memory.export(everything) if "promoted_to" in one.metadata}
    paths = dict.fromkeys((*USUAL, *(str(one.metadata["promoted_to"]) for one in marked.values())))
    found: list[Rule] = []
    for path in paths:
        for marker, line in _rules(root, path):
            one = next(
                (one for id, one in marked.items() if id.startswith(marker)), None
            ) or _known(memory, marker)
            found.append(
                Rule(
                    one.id if one else marker,
                    path,
                    _state(memory, one, line, now),
                    line.strip(),
                    one,
                )
            )
    seen = {(rule.id, rule.path) for rule in found}
    return found + [
        Rule(one.id, path, "missing", "", one)
        for one in marked.values()
        if (one.id, path := str(one.metadata["promoted_to"])) not in seen
    ]


def _state(memory: Bethink, one: Memory | None, line: str, now: datetime) -> str:
    if one is None:
        return "unknown"
    try:
        wanted = rule(memory, one)
    except InvalidInput:  # it grew too long for a rule
        wanted = ""
    if line.strip() != wanted and digest(line) != one.metadata.get("promoted_as"):
        return "edited"
    return gone(one, now) or ("ok" if line.strip() == wanted else "changed")


def refresh(memory: Bethink) -> list[Rule]:
    """Brings the rules in step with their memories: changed ones are rewritten, those of forgotten, replaced and expired
    memories are taken out. A rule that somebody edited is left as it is; one that was taken out by hand stays out."""
    return [found._replace(done=_refresh(memory, found)) for found in check(memory)]


def _refresh(memory: Bethink, found: Rule) -> str:
    one = found.memory
    if found.state in ("forgotten", "replaced", "expired"):
        demote(memory, found.id)
        return "removed"
    if found.state == "missing" and one:
        _unmark(memory, one)
        return "unmarked"
    if found.state != "changed" or one is None:
        return "left" if found.state == "edited" else ""
    try:
        promote(memory, one.id, memory.project.worktree / found.path, force=True)
    except InvalidInput:  # too long by now
        return "left"
    return "rewritten"
