"""Promote useful memories to a file of rules that agents read at every start, and demote them again.

Each rule is a line in a block between two markers, followed by the id of its memory. Everything
outside the block stays byte for byte, and so does every line of the block that is not being
changed: rules of other people, whose memories are not here, and rules edited by hand. A CLAUDE.md
is never created, because agents that find one stop reading AGENTS.md. `textfile` writes files;
`Bethink` changes memories.
"""

import re
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import NamedTuple

from bethink.api import Bethink
from bethink.errors import BethinkError, InvalidInput, NotFound, UsageError
from bethink.model import PERSONAL, TRUST, Forgotten, Memory
from bethink.outgoing import clear
from bethink.text import one_line, textfile

_RULES, AGENTS = ".claude/rules/bethink.md", "AGENTS.md"
TARGETS = {"claude": _RULES, "agents": AGENTS}

BEGIN = "<!-- bethink:begin -->"
END = "<!-- bethink:end -->"
_HEAD = (
    "## Learned in this project",
    "",
    "Kept by `bethink promote`; `bethink demote ID` takes a line out.",
    "",
)
_LONGEST = 500  # characters of one rule: it is in every context of every agent from now on
_MARKS = ("promoted_at", "promoted_to")

# Kinds that can become a rule; questions and passages of documents cannot.
_KINDS = tuple(
    "decision preference pattern gotcha architecture component domain fact conclusion solution discovery general".split()
)
USES = 5  # of a candidate; a vote counts as two, plus the use that comes with it; by hand
_MOST = 1000  # most used memories that are examined

_MARKER = re.compile(r"<!-- bethink:([0-9a-f]{8}[0-9a-f-]{0,28}) -->\s*$")
_OPENS = re.compile(r"(?:[#>=]|[-+*](?=\s|$)|```|~~~|\[[ xX]\])")  # would start a Markdown block
_NUMBER = re.compile(r"(\d{1,9})([.)])(?=\s|$)")  # would start a numbered list
_MENTION = re.compile(r"(?<![\w`@])@[\w~./\\-]++")  # would make some hosts read that file in
_SPAN = re.compile(r"((?<!`)`++[^`]*+`++)")


class Promotion(NamedTuple):
    memory: Memory
    path: str  # of the file, relative to the checkout
    status: str  # promoted, kept (was there already), moved (from the other file)
    created: bool = False  # whether the file is new


class Demotion(NamedTuple):
    id: str
    path: str
    found: bool  # whether its rule was in the file
    removed: bool = False  # whether the file was removed with its last rule


# Candidates


def candidates(memory: Bethink, limit: int) -> list[tuple[Memory, str]]:
    """Useful memories of this project that are not rules yet, best first, each with the reason."""
    wanted = memory.filter(
        scopes=(memory.scope,), kinds=_KINDS, used=True, min_trust=TRUST["agent"]
    )
    proven = [
        (one, explain_candidate(one))
        for one in memory.list(filter=wanted, limit=_MOST, order="proven")
        if one.usefulness >= 0 and 2 * one.usefulness + one.access_count >= USES
        if "promoted_at" not in one.metadata
    ]
    return proven[:limit]


def explain_candidate(one: Memory) -> str:
    """Reason for a candidate: `4 uses and 2 votes`."""
    counts = ((one.access_count, "use"), (one.usefulness, "vote"))
    parts = [f"{count:g} {noun}{'s' * (count != 1)}" for count, noun in counts if count > 0]
    return " and ".join(parts)


# Promoting


def find_rules(one: Memory) -> str:
    """File in which a memory is marked as a rule; '' if none, or not one of ours."""
    noted = one.metadata.get("promoted_to")
    return str(noted) if noted in TARGETS.values() else ""


def promote(memory: Bethink, id: str, target: str | None = None) -> Promotion:
    """Write a memory to a file of rules and mark it. `target` is claude or agents.

    Agents obey rules, so only a person may do this.
    """
    memory.require_person("Making a memory a rule")
    _check_promotable(memory.one(id))
    root = memory.project.worktree
    has_agents = (root / AGENTS).exists() and not (root / ".claude").is_dir()
    path = TARGETS[target] if target else AGENTS if has_agents else _RULES
    with textfile.alone(root):
        one = memory.one(id)  # read again under the lock
        line = render_rule(memory, one)
        changed, created = _rewrite(root, path, one.id, line)
        noted = find_rules(one)
        moved = noted not in ("", path) and _rewrite(root, noted, one.id)[0]
        if changed or noted != path:
            at = memory.clock().astimezone(UTC).isoformat(timespec="seconds")
            marks = dict(zip(_MARKS, (at, path), strict=True))
            one = memory.update(one.id, metadata={**one.metadata, **marks})
    status = "moved" if moved else "promoted" if changed else "kept"
    return Promotion(one, path, status, created)


def _check_promotable(one: Memory) -> None:
    if one.scope == PERSONAL:
        raise InvalidInput(
            f"The memory {one.id} is personal: it follows you into every project, and a file of rules belongs to one.",
            "Add it to this project without --personal to make it a rule here.",
        )
    if one.deleted_at or one.superseded_by:
        state = "forgotten" if one.deleted_at else "replaced"
        hint = f"bethink {f'promote {one.superseded_by}' if one.superseded_by else f'restore {one.id}'}"
        raise InvalidInput(f"The memory {one.id} is {state}, so it cannot become a rule.", hint)
    if one.trust < TRUST["agent"]:
        raise UsageError(
            f"The memory {one.id} comes from {one.source}: imported text is not put into rules, because agents obey them.",
            "`bethink add` it in your own words if it is true.",
        )


def render_rule(memory: Bethink, one: Memory) -> str:
    """Render the line of a memory in a file of rules."""
    text = make_harmless(one.content)
    if len(text) > _LONGEST:
        text = make_harmless(one.summary)
    if not text or text.endswith("…") or len(text) > _LONGEST:
        raise InvalidInput(
            f"The memory {one.id} has {len(one.content):,} characters; a rule has at most {_LONGEST}.",
            f'bethink update {one.id} --summary "what the rule should say"',
        )
    return f"- {text} <!-- bethink:{memory.store.abbreviate([one.id])[one.id]} -->"


def make_harmless(text: str) -> str:
    """Render a text as one line of Markdown without any other effect.

    It contains no comment, block or file to include, and nothing that hides or reorders its words.
    """
    line = one_line(clear(text)).replace("<!--", "<! --").replace("-->", "-- >")
    parts = _SPAN.split(line)
    parts[::2] = [_MENTION.sub(r"`\g<0>`", part) for part in parts[::2]]
    line = "".join(parts)
    is_rule = len(line) > 2 and not line.replace(" ", "").strip("-*_")  # a line across the page
    if is_rule or _OPENS.match(line):
        return f"\\{line}"
    return _NUMBER.sub(r"\1\\\2", line)


# The block of a file


def put_rule(text: str, id: str, line: str | None, path: str) -> str:
    """Put the rule of a memory into the block of a text, or remove it if `line` is None.

    It replaces its own earlier line or follows the last rule. The block goes with the last rule,
    unless it contains anything else.
    """
    lines = text.split("\n")
    span = _find_block(lines, path)
    if span is None:
        return _append_block(text, line) if line else text
    begin, last = span
    markers = {at: _find_marker(lines[at]) for at in range(begin + 1, last)}
    own = [at for at, marker in markers.items() if marker and id.startswith(marker)]
    if line:
        behind = max((at + 1 for at, marker in markers.items() if marker), default=last)
        line += "\r" if lines[begin].endswith("\r") else ""
        lines[slice(own[0], own[0] + 1) if own else slice(behind, behind)] = [line]
        return "\n".join(lines)
    others = [lines[at] for at in markers if at not in own]
    if own and all(kept.strip() in _HEAD for kept in others):
        return _remove_block(text, lines, begin, last)
    return "\n".join([*lines[: begin + 1], *others, *lines[last:]])


def _append_block(text: str, line: str) -> str:
    end = textfile.line_end(text)
    # Exactly one line end is added before the block, even if the text ended with one: `_remove_block` removes it.
    return text + (end if text else "") + end.join((BEGIN, *_HEAD, line, END)) + end


def _remove_block(text: str, lines: Sequence[str], begin: int, last: int) -> str:
    before, after = "\n".join(lines[:begin]), "\n".join(lines[last + 1 :])
    if lines[begin].endswith("\r"):
        before = before.removesuffix("\r")
    joint = textfile.line_end(text) if before and after and not before.endswith("\n") else ""
    return before + joint + after


def _find_block(lines: Sequence[str], path: str) -> tuple[int, int] | None:
    """Find the lines of the two markers. A marker must be alone on its line."""
    plain = [line.strip("\ufeff \t\r") for line in lines]
    places = [at for at, line in enumerate(plain) if line in (BEGIN, END)]
    if not places:
        return None
    if [plain[at] for at in places] == [BEGIN, END]:
        return places[0], places[1]
    raise BethinkError(
        f"The markers in {path} are damaged: one `{BEGIN}` and after it one `{END}` are expected, but they are on line "
        f"{', '.join(str(at + 1) for at in places[:6])}.",
        "Mend them by hand; nothing was changed.",
    )


def _find_marker(line: str) -> str | None:
    found = _MARKER.search(line) if line.lstrip().startswith(("- ", "* ")) else None
    return found[1] if found else None


def _rewrite(root: Path, path: str, id: str, line: str | None = None) -> tuple[bool, bool]:
    """Put the rule of a memory into a file, or remove it; refuse if the file changes meanwhile.

    Returns whether the file was changed, and whether it was created or removed.
    """
    real = textfile.inside(root, Path(path))
    was = textfile.read(real)
    new = put_rule(was or "", id, line, path)
    if new == (was or ""):
        return False, False
    if not textfile.write(real, new, was):
        raise BethinkError(f"Something else changed {path} at the same moment.", "Try again.")
    if not new:
        textfile.remove(real, folders=2 if path == _RULES else 0)
    return True, was is None or not new


# Demoting


def demote(memory: Bethink, id: str) -> Demotion:
    """Remove a rule from its file and the mark from its memory, even if the memory is not here."""
    memory.require_person("Taking a rule out")
    root = memory.project.worktree
    with textfile.alone(root):
        try:
            one = memory.one(id)
        except NotFound:
            one = None
        wanted = one.id if one else id.strip().lower()
        noted = str(one.metadata.get("promoted_to") or "") if one else ""
        for path in TARGETS.values():
            found, removed = _rewrite(root, path, wanted)
            if found:
                break
        else:
            if not noted:
                raise NotFound(
                    f"There is no rule with the id '{id}'.", "Each line of a rule ends with its id."
                )
            path = noted
        if one and noted:
            kept = {name: value for name, value in one.metadata.items() if name not in _MARKS}
            memory.update(one.id, metadata=kept)
    return Demotion(wanted, path, found, removed)


def purge(memory: Bethink, found: Sequence[Memory]) -> Forgotten:
    """Remove every trace of memories, including rules and identical texts in their conversations.

    For an agent this is only a request, and the rules stay.
    """
    going = (*found, *memory.find_traces(found).same) if memory.is_person else ()
    rules = withdraw_rules(memory, going)
    done = memory.forget(*(one.id for one in found), purge=True)
    return done._replace(hints=(*rules, *done.hints))


def withdraw_rules(memory: Bethink, purged: Sequence[Memory]) -> list[str]:
    """Remove the rules of purged memories from their files, even edited ones.

    Returns a sentence for each file: what was removed, or where the text remains because this
    process cannot change it.
    """
    root = memory.project.worktree
    sentences: list[str] = []
    for one in purged:
        noted = str(one.metadata.get("promoted_to") or "")
        for path in TARGETS.values():
            try:
                with textfile.alone(root):
                    found, _ = _rewrite(root, path, one.id)
            except BethinkError as error:
                if path == noted:
                    sentences.append(f"{path} may still hold its rule: {error.message}")
                continue
            if found:
                sentences.append(
                    f"Its rule was taken out of {path}. Commits of that file may still hold it."
                )
            elif path == noted:
                sentences.append(
                    f"It was a rule in {path}, which does not hold it here; other checkouts may."
                )
    return sentences
