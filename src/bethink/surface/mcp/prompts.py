"""Prompts that a person picks in their agent: how to search memory, an answer from memory, a handoff.

`remember` and `handoff` bring what memory holds with them, between the marks of `fence`. Nothing here speaks the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bethink.types import KINDS

if TYPE_CHECKING:
    from bethink.api import Bethink

LONGEST = 2000
TOKENS = 2000


class Prompt(NamedTuple):
    about: str
    arguments: Mapping[str, str]  # name → what it is
    required: tuple[str, ...]
    text: Callable[[Bethink, Mapping[str, str]], str]


def query(memory: Bethink, given: Mapping[str, str]) -> str:
    return f"""Search the project's memory with search_memories for: {given["topic"]}

How to find it:
- Ask a whole question first. Then try the words that the memory itself would hold: names, error messages, file names.
- mode keyword for exact names and messages, mode vector for an idea in other words, otherwise leave mode out.
- "A phrase" in quotes, prefix*, AND, OR, NOT; "last week", "since March", "open questions", "decisions about" are understood.
- Narrow by kinds ({", ".join(KINDS[:18])}), entities or since. Widen by leaving them out.
- intent continuity to resume work, fact_check to verify, associative or explore for ideas.
- get_memories gives whole texts of the ids that matter; rate_memories says afterwards which ones helped.

Cite the ids you rely on. Say so if memory holds nothing about it."""


def remember(memory: Bethink, given: Mapping[str, str]) -> str:
    from bethink.surface.mcp.tools import found
    from bethink.surface.render import quote_answer

    answer = found(memory, given["question"], 15)
    return f"""Answer from memory: {given["question"]}

What memory holds about it follows. Group the answer by topic, name dates and where things come from, cite ids, and say what was
replaced by what. If it does not answer the question, search again with search_memories in other words; if that finds nothing either, say so.

{quote_answer(memory, answer, TOKENS)}"""


def handoff(memory: Bethink, given: Mapping[str, str]) -> str:
    from bethink.features import handoffs
    from bethink.surface.mcp.tools import get_handoff

    branch = given.get("branch") or handoffs.branch_of(memory.project.worktree)
    where = f"branch {branch} of {memory.project.name}" if branch else memory.project.name
    return f"""Write a handoff for {
        where
    } with store_handoff, so that somebody without this conversation can go on.

- summary: where things stand, in one or two sentences.
- completed: what is done and verified.
- in_progress_blocked: what is half done or stuck, and on what.
- key_decisions: what was decided, with the reason.
- next_steps: the very next actions, in order, each with file or command.
- memory_ids: ids of the memories that were used.{
        f'''
- branch: {branch}'''
        if given.get("branch")
        else ""
    }

Facts, not hopes. Then store lasting decisions with store_memories too, if they are not known yet.

The last handoff, for what is still open:

{get_handoff(memory, {"branch": branch} if branch else {})}"""


PROMPTS: dict[str, Prompt] = {
    "query": Prompt(
        "How to search the project's memory well",
        {"topic": "what you want to know about"},
        ("topic",),
        query,
    ),
    "remember": Prompt(
        "Answer a question from memory, with sources",
        {"question": "what you want to know"},
        ("question",),
        remember,
    ),
    "handoff": Prompt(
        "Leave word for the next session", {"branch": "default: the one checked out"}, (), handoff
    ),
}


def completed(memory: Bethink, name: str, argument: str, value: str) -> Sequence[str]:
    """What an argument of a prompt may be, given its beginning."""
    if name == "handoff" and argument == "branch":
        from bethink.features import handoffs

        known = [handoffs.branch_of(memory.project.worktree), *handoffs.branches(memory)]
        return [branch for branch in dict.fromkeys(known) if branch and branch.startswith(value)][
            :100
        ]
    if argument in ("topic", "question") and value.strip():
        # Names of things that memory knows, as far as the newest memories tell.
        names = dict.fromkeys(
            entity.name for one in memory.list(limit=200) for entity in one.entities
        )
        return [found for found in names if found.lower().startswith(value.lower())][:20]
    return ()
