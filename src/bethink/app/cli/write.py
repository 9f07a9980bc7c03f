"""Command-line views of the results of `operations/write.py`, and `forget`."""

import shlex
from collections.abc import Sequence
from typing import Annotated

from bethink import consent
from bethink.api import Bethink
from bethink.app import render
from bethink.app.cli.console import (
    Console,
    Result,
    ask_yes_no,
    has_terminal,
    offer_languages,
    shows,
)
from bethink.app.operation import Arg, operation
from bethink.app.operations import write
from bethink.app.operations.requests import AllProjects, Ids
from bethink.app.operations.write import Added, Changed, Closed, Linked
from bethink.app.render import (
    PROPOSALS,
    describe_outcomes,
    describe_request,
    label_memory,
    many,
    pick,
    short_id,
)
from bethink.errors import BethinkError, NotFound
from bethink.features import promotion
from bethink.model import IDEAS, Json, Memory, Outcome
from bethink.project import SHARED_FOLDER

# The relation that a yes to a proposal makes.
DECIDED = {"replaces": "supersedes", "answers": "answers", "completes": "answers"}


@shows(write.add)
def show_added(console: Console, memory: Bethink, added: Added) -> Result:
    outcome = added.outcome
    if outcome.status == "purged":
        raise BethinkError(
            "This text was purged and is not stored again.", "Add --force to store it anyway."
        )
    if console.format == "text" and not console.run_by and has_terminal():
        outcome = decide_proposals(memory, outcome)
    known = hidden = ""
    if outcome.status in ("near_duplicate", "reworded"):
        known = "Add --no-dedup to store it as a separate memory."
    if outcome.redactions:
        hidden = f"{many(outcome.redactions, 'private or secret part')} removed before storing."
    hints = [*memory.hints, offer_languages(memory, added.content), known, hidden]
    lines = describe_outcomes(memory, [outcome])[0]
    return Result(render.plain_outcome(outcome), lines, hints=hints)


def decide_proposals(memory: Bethink, outcome: Outcome) -> Outcome:
    """Let a person decide which stored memories a new one replaces, answers or completes."""
    proposed = [(one.relation, one.id) for one in outcome.proposals]
    for relation, id in (*proposed, *(("replaces", older) for older in outcome.marks)):
        type = DECIDED.get(relation)
        known = label_memory(memory, memory.one(id))
        if type and ask_yes_no(f"this may {PROPOSALS[relation][0]} {known}"):
            memory.link(outcome.id, id, type)
            field = "supersedes" if type == "supersedes" else "settles"
            done: Json = {
                "proposals": tuple(one for one in outcome.proposals if one.id != id),
                "marks": tuple(older for older in outcome.marks if older != id),
                field: (*getattr(outcome, field), id),
            }
            outcome = outcome._replace(**done)
    return outcome


@shows(write.update)
def show_change(console: Console, memory: Bethink, changed: Changed) -> Result:
    one, again = changed.memory, ""
    if changed.done == "updated" and (rules := promotion.find_rules(one)):
        command = f"`bethink promote {short_id(memory, one.id)}`"
        again = f"It is a rule in {rules}: {command} updates it there."
    return Result(one, [f"{changed.done} {label_memory(memory, one)}"], hints=[again])


shows(write.restore)(show_change)
shows(write.vote)(show_change)


@shows(write.done)
def show_closed(console: Console, memory: Bethink, closed: Closed) -> Result:
    word, before = ("opened", "open") if closed.reopened else ("closed", "closed")
    lines = [
        f"{f'{before} already,' if one.id in closed.unchanged else word} {label_memory(memory, one)}"
        for one in closed.memories
    ]
    return Result(closed.memories, lines)


@shows(write.link)
def show_link(console: Console, memory: Bethink, linked: Linked) -> Result:
    relation, status = linked.relation, "removed" if linked.removed else "linked"
    names = memory.store.abbreviate([relation.source, relation.target])
    line = f"{status} {names[relation.source]} {relation.type} {names[relation.target]}"
    waits = ""
    if relation.type != linked.asked:
        waits = "The user's own memory is replaced once the user confirms it, in the inbox or with this command."
    value = {**pick(relation, "source type target"), "status": status}
    return Result(value, [line], hints=[waits])


@operation(
    "Everyday",
    tool="forget_memories",
    agents="append",
    opens="read",
    examples=(
        "bethink forget 01a1dd89",
        "bethink forget 01a1dd89 01a1de02 --json",
        "bethink forget 01a1dd89 --purge --yes",
    ),
)
def forget(
    console: Console,
    memory: Bethink,
    ids: Ids,
    all_projects: AllProjects = False,
    purge: Annotated[
        bool, Arg("remove every trace for good, and refuse the text from now on")
    ] = False,
    yes: Annotated[bool, Arg("do not ask before purging", short="-y")] = False,
) -> Result:
    """Hide memories, or with --purge remove every trace of them.

    Hidden memories appear in no search; `bethink restore` brings them back. --purge removes them from every table, cache and free
    page, together with the same words in their conversation. An agent hides what agents stored; for a person's memories, and to
    purge, it sends a request, which a person confirms by giving its code in place of the ids.
    """
    found = find_requested(memory, ids, purge) or memory.get(*ids, count=False)
    if purge:
        return purge_memories(console, memory, found, yes)
    labels = {one.id: label_memory(memory, one) for one in found}
    done = memory.forget(*labels)
    status = {id: "proposed" if id in done.proposed else "forgotten" for id in labels}
    rules = [
        f"Agents still read it in {path}: `bethink demote {short_id(memory, one.id)}` removes it there."
        for one in found
        if (path := promotion.find_rules(one))
    ]
    rules += list_shared_files(memory, done.ids)
    undo = ""
    if done.ids:
        undo = f"Undo with `bethink restore {short_id(memory, done.ids[0])}{name_reach(console)}`."
    return Result(
        [{"id": id, "status": how} for id, how in status.items()],
        [f"{how} {labels[id]}" for id, how in status.items()],
        warnings=done.hints,
        hints=[undo, *describe_request(done), *rules],
    )


def list_shared_files(memory: Bethink, ids: Sequence[str]) -> list[str]:
    """Say which of these memories are still shared through git."""
    if not (memory.project.worktree / SHARED_FOLDER).is_dir():
        return []
    from bethink.features import share

    return [
        f"Colleagues still read it in {path}: `bethink share {short_id(memory, id)} --remove` removes the file."
        for id in ids
        if (path := share.find_file(memory, id))
    ]


_MANY = 20  # changes that are undone without asking


@operation(
    "Everyday",
    agents="person",
    opens="read",
    examples=("bethink undo", "bethink undo --yes", "bethink undo --json"),
)
def undo(
    console: Console,
    memory: Bethink,
    yes: Annotated[bool, Arg("do not ask before undoing many changes", short="-y")] = False,
) -> Result:
    """Undo your last change.

    Takes back what the last command changed: a note with what it replaced or closed, an edit, a vote, a forgotten or closed memory.
    Run it again to go further back. What agents stored, an index and a purge are not undone.
    """
    change = memory.find_last_change()
    if (number := len(change.ids)) > _MANY:
        console.confirm(f"This undoes changes of {many(number, 'memory')}.", yes)
    steps = memory.undo(change)
    lines = [f"{step.effect} {label_memory(memory, step.memory)}" for step in steps]
    rows = [{"id": step.memory.id, "undone": step.action} for step in steps]
    gone = [step.memory.id for step in steps if step.action == "add"]
    back = f"; `bethink restore {short_id(memory, gone[0])}` brings it back" if gone else ""
    return Result(rows, lines, hints=[f"`bethink undo` goes further back{back}."])


def find_requested(memory: Bethink, ids: Sequence[str], purge: bool) -> list[Memory]:
    """The memories of an agent's request, if a person gave its code in place of an id."""
    if not memory.is_person or len(ids) > 1:
        return []
    code, now = ids[0].upper(), memory.clock()
    action, other = ("purge", "forget") if purge else ("forget", "purge")
    granted = consent.find_granted(memory.store, consent.Phrase(action, code), now)
    if not granted and consent.is_code(code):
        if consent.find_granted(memory.store, consent.Phrase(other, code), now):
            step = f"bethink forget {code}{' --purge' if other == 'purge' else ''}"
            raise NotFound(f"The code {code} is a request to {other}.", step)
        raise NotFound(
            f"No open request has the code {code}.",
            "A code works once and for 15 minutes, and a later request about the same memory replaces it.",
        )
    return memory.store.get(granted)


def name_reach(console: Console) -> str:
    """The options with which a later command finds the same memory."""
    container = f" --container {shlex.quote(console.container)}" if console.container else ""
    return container + (" --all-projects" if console.all_projects else "")


def purge_memories(
    console: Console, memory: Bethink, found: Sequence[Memory], agreed: bool
) -> Result:
    if not memory.is_person:
        return request_purge(memory, found)
    left = memory.find_traces(found)
    every = {one.id: label_memory(memory, one) for one in (*found, *left.same)}
    rest = {short_id(memory, one.id): one.position < IDEAS for one in left.rest}
    if not agreed:
        for line in every.values():
            console.talk(line)
    console.confirm(f"Purging {many(len(every), 'memory')} cannot be undone.", agreed)
    done = promotion.purge(memory, found)
    turn, idea = "The turn it came from still says it", "A memory taken from it still says it"
    return Result(
        [{"id": id, "status": "purged"} for id in every],
        [f"purged {label}" for label in every.values()],
        warnings=done.hints,
        hints=[
            f"{turn if is_turn else idea}: `bethink forget {id} --purge{name_reach(console)}`."
            for id, is_turn in rest.items()
        ],
    )


def request_purge(memory: Bethink, found: Sequence[Memory]) -> Result:
    """Request a purge as an agent; the user confirms it."""
    done = promotion.purge(memory, found)
    return Result(
        [{"id": one.id, "status": "proposed"} for one in found],
        [f"proposed {label_memory(memory, one)}" for one in found],
        hints=describe_request(done),
    )
