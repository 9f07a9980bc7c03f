"""Handoffs: notes for the next session. A handoff is a memory of kind `handoff`.

The newest of a branch supersedes the one before it, which stays in the chain. `project` is a label
in the agent's own words ("Shop App" in the folder shop-app), not a path. To keep separate handoffs
for part of a large repository, use a container. This module does not depend on its caller: command
line, agent or hook.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bethink import ingest
from bethink.api import Bethink
from bethink.errors import InvalidInput
from bethink.ingest.redact import redact
from bethink.model import NOTHING, TRUST, Memory, Passage, Source
from bethink.project import read_start
from bethink.text import one_line as clean_line
from bethink.text import replace_broken

_LONGEST = 30_000  # characters of a whole handoff: a longer one delays the work
SUMMARY_WORDS = 20  # a bound
IMPORTANCE = 6.0  # by hand
_STALE = 14  # days after which work has mostly moved on; set by hand
MOST_LIVE = 500  # live handoffs of a scope that are searched: one per branch

# Field → its heading. The first words of a heading are enough when a handoff is read from Markdown.
_LISTS = {
    "completed": "Done",
    "in_progress_blocked": "In progress or blocked",
    "key_decisions": "Decisions",
    "next_steps": "Next",
    "memory_ids": "Memories",
}
_BEGINNINGS = {
    "completed": ("done", "completed"),
    "in_progress_blocked": ("in progress", "in_progress", "blocked"),
    "key_decisions": ("decision", "key"),
    "next_steps": ("next",),
    "memory_ids": ("memor",),
}
_HEADING = re.compile(r"(?m)^[ \t]{0,8}#{1,6}[ \t]{1,8}(\S.{0,200})$\n?")
_BULLET = re.compile(r"(?m)^[ \t]{0,8}(?:[-*+]|\d{1,3}[.)])[ \t]{1,8}(?:\[[ xX]\][ \t]{1,8})?")
_SHA = re.compile(r"[0-9a-f]{40,64}")


class Handoff(NamedTuple):
    summary: str
    completed: tuple[str, ...] = ()
    in_progress_blocked: tuple[str, ...] = ()
    key_decisions: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = ()
    project: str = ""
    branch: str = ""
    metadata: Mapping[str, Any] = NOTHING


class SavedHandoff(NamedTuple):
    memory: Memory
    new: bool  # whether it differs from the one before
    supersedes: tuple[str, ...] = ()


class LatestHandoff(NamedTuple):
    memory: Memory
    handoff: Handoff
    asked: str  # the requested branch; the handoff may be of another one
    days: int  # since it was saved

    @property
    def exact(self) -> bool:
        return self.handoff.branch == self.asked

    @property
    def stale(self) -> bool:
        """Return True if the handoff is old enough to be out of date."""
        return self.days > _STALE

    @property
    def age(self) -> str:
        """Age in days, empty below one day, with a warning if it may be stale."""
        stale = ", may be stale" if self.stale else ""
        return f"{self.days} day{'s' * (self.days > 1)} old{stale}" if self.days else ""

    @property
    def notes(self) -> list[str]:
        """Warnings for the reader: another branch, or old."""
        wanted = f"branch {clean_line(self.asked)}" if self.asked else "a place outside git"
        other = f"There is none for {wanted}; this is the newest of another branch."
        return [other] * (not self.exact) + [f"It is {self.age}."] * bool(self.age)


def find_branch(worktree: Path) -> str:
    """Read the checked-out branch from git's files: its name, a short hash if detached, or ''."""
    git = worktree / ".git"
    try:
        if git.is_file():
            git = worktree / read_start(git).removeprefix("gitdir:").strip()
        head = replace_broken(read_start(git / "HEAD"))
    except (OSError, ValueError):
        return ""
    if head.startswith("ref: refs/heads/"):
        # With the reftable format, HEAD contains the placeholder ".invalid".
        return head.removeprefix("ref: refs/heads/").removeprefix(".invalid")
    return head[:7] if _SHA.fullmatch(head) else ""


def save_handoff(memory: Bethink, handoff: Handoff) -> SavedHandoff:
    """Store a handoff in place of the last one of its branch, and count a use of its memories."""
    if not handoff.summary.strip():
        raise InvalidInput(
            "The handoff has no summary.", "Say in a sentence or two where things stand."
        )
    project = redact(clean_line(handoff.project) or memory.project.name).text
    branch = clean_line(handoff.branch) or find_branch(memory.project.worktree)
    branch = redact(branch).text
    handoff = handoff._replace(project=project, branch=branch)
    if (size := len(json.dumps(handoff, default=str, ensure_ascii=False))) > _LONGEST:
        raise InvalidInput(
            f"The handoff has {size:,} characters; {_LONGEST:,} are the most.",
            "Keep what matters next.",
        )
    ids = tuple(dict.fromkeys(map(memory.resolve, handoff.memory_ids)))
    handoff = handoff._replace(memory_ids=ids)
    before = [found for found in _list_live(memory) if read_handoff(found).branch == branch]
    passage = Passage(
        render_handoff(handoff),
        kind="handoff",
        summary=" ".join(handoff.summary.split()[:SUMMARY_WORDS]),
        importance=IMPORTANCE,
        metadata={
            name: list(value) if isinstance(value, tuple) else value
            for name, value in handoff._asdict().items()
            if name != "metadata" or value
        },
        supersedes=tuple(found.id for found in before),
        relates_to=handoff.memory_ids,
    )
    cleaned = ingest.pipeline.clean_passage(passage, memory.config.max_characters)[0]
    if len(before) == 1 and (before[0].content, dict(before[0].metadata)) == (
        cleaned.content,
        cleaned.metadata,
    ):
        memory.touch(handoff.memory_ids)
        return SavedHandoff(before[0], new=False)
    # Ingested, not added as a note: a handoff is never a duplicate, and "switched from A to B" in it replaces no memory of A.
    groups = [(Source(f"note:{memory.actor}", "note"), [passage])]
    outcome = memory.ingest(groups, trust=memory.trust, replace_sources=False).outcomes[0]
    if outcome.status != "added":
        raise InvalidInput(
            "This very handoff was purged, so it is not taken in again.", "Say it in other words."
        )
    return SavedHandoff(memory.one(outcome.id), new=True, supersedes=passage.supersedes)


def find_latest(memory: Bethink, branch: str | None = None) -> LatestHandoff | None:
    """Newest handoff of this branch, or of any branch if it has none.

    Handoffs of the user and their agents come before imported ones, whatever their age and branch.
    """
    known = [(found, read_handoff(found)) for found in _list_live(memory)]
    asked = branch or find_branch(memory.project.worktree)
    here = [(found, handoff) for found, handoff in known if handoff.branch == asked]
    for found, handoff in here or known:
        age = memory.clock() - found.created_at
        return LatestHandoff(found, handoff, asked, max(0, age.days))
    return None


def read_handoff(memory: Memory) -> Handoff:
    """Read the handoff stored in a memory."""
    return handoff_from_fields({"summary": memory.summary, **memory.metadata})


def render_handoff(handoff: Handoff) -> str:
    """Render a handoff as Markdown, the text of its memory."""
    branch = f", branch {handoff.branch}" if handoff.branch else ""
    parts = [f"# Handoff: {handoff.project}{branch}", handoff.summary.strip()]
    for name, heading in _LISTS.items():
        if name != "memory_ids" and (items := getattr(handoff, name)):
            lines = (f"- {' '.join(item.split())}" for item in items)
            parts.append("\n".join([f"## {heading}", "", *lines]))
    return "\n\n".join(parts)


def parse_handoff(text: str) -> Handoff:
    """Parse a handoff written by people or agents: Markdown with a heading for each list."""
    prose, *rest = _HEADING.split("\n".join(text.splitlines()))
    lists: dict[str, Any] = {}
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        plain = heading.lower()
        fitting = (name for name, words in _BEGINNINGS.items() if plain.startswith(words))
        field = next(fitting, None)
        if field:
            # A line without a bullet continues the item before it, or is an item.
            items = (" ".join(part.split()) for part in _BULLET.split(body))
            lists[field] = (*lists.get(field, ()), *filter(None, items))
        else:
            prose += body
    return Handoff(prose.strip(), **lists)


def handoff_from_fields(value: Mapping[str, Any]) -> Handoff:
    """Build a handoff from loose values: an import may contain anything."""
    fields: dict[str, Any] = {
        name: str(value.get(name) or "") for name in ("summary", "project", "branch")
    }
    fields |= {
        name: tuple(map(str, found))
        for name in _LISTS
        if isinstance(found := value.get(name), list | tuple)
    }
    if isinstance(metadata := value.get("metadata"), Mapping):
        fields["metadata"] = metadata
    return Handoff(**fields)


def _list_live(memory: Bethink) -> list[Memory]:
    """Valid handoffs, newest first; imported ones only if the user and their agents have none."""
    wanted = memory.filter(kinds=("handoff",), scopes=(memory.scope,))
    own = memory.list(filter=wanted._replace(min_trust=TRUST["agent"]), limit=MOST_LIVE)
    return own or memory.list(filter=wanted, limit=MOST_LIVE)
