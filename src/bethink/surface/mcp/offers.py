"""What a server offers besides tools: the templates of its resources, and prompts that a person picks in their agent.

The prompts `remember` and `handoff` bring what memory holds with them, between the marks of `fence`. Nothing here speaks the
protocol, and nothing heavy is imported before a prompt is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bethink.surface.arguments import Argument, parse_arguments
from bethink.surface.render import quote_answer
from bethink.types import KINDS

if TYPE_CHECKING:
    from bethink.api import Bethink

FILE, MEMORY, TOPICS = "memory://", "bethink://memory/", "bethink://topics/"
LONGEST = 2000  # characters of an argument
TOKENS = 2000  # of what `remember` quotes


class Template(NamedTuple):
    """Resources of one kind."""

    uri_template: str
    name: str
    description: str
    mime_type: str = "text/plain"


TEMPLATES = (
    Template(
        FILE + "{path}",
        "knowledge-file",
        "A Markdown file of the project's knowledge folders",
        "text/markdown",
    ),
    Template(MEMORY + "{id}", "memory", "One memory in full, by id or its beginning"),
    Template(TOPICS + "{session}", "topics", "What one conversation was about"),
)


class Prompt(NamedTuple):
    about: str
    arguments: tuple[Argument, ...]


def _prompt(about: str, arguments: str) -> Prompt:
    return Prompt(about, tuple(parse_arguments(arguments)))


# Each is written by the function `write_` and its name.
PROMPTS = {
    "query": _prompt(
        "How to search the project's memory well", "topic   what you want to know about"
    ),
    "remember": _prompt(
        "Answer a question from memory, with sources", "question   what you want to know"
    ),
    "handoff": _prompt(
        "Leave word for the next session", "--branch NAME   default: the one checked out"
    ),
}


def check_prompt(name: str, given: Mapping[str, str]) -> str:
    """What is wrong with the arguments of a prompt; nothing if nothing is."""
    known = {argument.name: argument for argument in PROMPTS[name].arguments}
    for argument, value in given.items():
        if argument not in known:
            return f"The prompt '{name}' has no argument '{argument[:100]}'."
        if len(value) > LONGEST:
            return f"'{argument}' is {len(value):,} characters long; {LONGEST:,} are the most."
    for argument, about in known.items():
        if about.is_required and not given.get(argument, "").strip():
            return f"The prompt '{name}' needs '{argument}'."
    return ""


def write_query(memory: Bethink, given: Mapping[str, str]) -> str:
    return f"""Search the project's memory with search_memories for: {given["topic"]}

How to find it:
- Ask a whole question first. Then try the words that the memory itself would hold: names, error messages, file names.
- mode keyword for exact names and messages, mode vector for an idea in other words, otherwise leave mode out.
- "A phrase" in quotes, prefix*, AND, OR, NOT; "last week", "since March", "open questions", "decisions about" are understood.
- Narrow by kinds ({", ".join(KINDS[:18])}), entities or since. Widen by leaving them out.
- intent continuity to resume work, fact_check to verify, associative or explore for ideas.
- get_memories gives whole texts of the ids that matter; rate_memories says afterwards which ones helped.

Cite the ids you rely on. Say so if memory holds nothing about it."""


def write_remember(memory: Bethink, given: Mapping[str, str]) -> str:
    from bethink.surface.mcp.tools import find_spread

    answer = find_spread(memory, given["question"], 15)
    return f"""Answer from memory: {given["question"]}

What memory holds about it follows. Group the answer by topic, name dates and where things come from, cite ids, and say what was
replaced by what. If it does not answer the question, search again with search_memories in other words; if that finds nothing either, say so.

{quote_answer(memory, answer, TOKENS)}"""


def write_handoff(memory: Bethink, given: Mapping[str, str]) -> str:
    from bethink.features import handoffs
    from bethink.surface.mcp.tools import get_handoff

    branch = given.get("branch") or handoffs.find_branch(memory.project.worktree)
    where = f"branch {branch} of {memory.project.name}" if branch else memory.project.name
    named = f"\n- branch: {branch}" if given.get("branch") else ""
    return f"""Write a handoff for {where} with store_handoff, so that somebody without this conversation can go on.

- summary: where things stand, in one or two sentences.
- completed: what is done and verified.
- in_progress_blocked: what is half done or stuck, and on what.
- key_decisions: what was decided, with the reason.
- next_steps: the very next actions, in order, each with file or command.
- memory_ids: ids of the memories that were used.{named}

Facts, not hopes. Then store lasting decisions with store_memories too, if they are not known yet.

The last handoff, for what is still open:

{get_handoff(memory, {"branch": branch} if branch else {})}"""


def complete(memory: Bethink, name: str, argument: str, value: str) -> Sequence[str]:
    """What an argument of a prompt may be, given its beginning."""
    if name == "handoff" and argument == "branch":
        from bethink.features import handoffs

        known = [handoffs.find_branch(memory.project.worktree), *handoffs.list_branches(memory)]
        found = [branch for branch in dict.fromkeys(known) if branch and branch.startswith(value)]
        return found[:100]
    if argument not in ("topic", "question") or not value.strip():
        return ()
    # Names of things that memory knows, as far as the newest memories tell.
    names = dict.fromkeys(entity.name for one in memory.list(limit=200) for entity in one.entities)
    return [name for name in names if name.lower().startswith(value.lower())][:20]
