"""`add`, `update`, `edit`, `open`, `vote`, `link`, `forget`, `restore`, `handoff`, `promote` and `demote`: what people tell
their memory and take back, and the memories that proved themselves, as rules that agents always read."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace as Namespace

from bethink import consent
from bethink.api import Bethink
from bethink.app import asked as operations
from bethink.app import render
from bethink.app.arguments import read_times
from bethink.app.cli import console
from bethink.app.cli.console import (
    Result,
    confirm,
    decode_text,
    has_terminal,
    offer_languages,
    open_memory,
    read_text,
    says_yes,
)
from bethink.app.render import (
    PROPOSALS,
    describe_outcomes,
    describe_request,
    label_memory,
    many,
    one_line,
    pick,
    plain,
    short_id,
)
from bethink.errors import BethinkError, InvalidInput, NotFound, UsageError
from bethink.features import handoffs, inbox, promotion
from bethink.model import IDEAS, OPEN_KINDS, Json, Memory, Outcome
from bethink.recall.shape import plain as plain_memory
from bethink.text import refuse_constant, split_lists

# Option of `handoff` → field. Each may be repeated.
HANDOFF_LISTS = {
    "done": "completed",
    "blocked": "in_progress_blocked",
    "decision": "key_decisions",
    "next": "next_steps",
    "memory": "memory_ids",
}
# What a yes to a proposal links.
DECIDED = {"replaces": "supersedes", "answers": "answers", "completes": "answers"}
HANDOFF_EXAMPLE = 'bethink handoff save --summary "The cache is moved, the tests are not"'


def given_values(args: Namespace) -> Json:
    """The values of a statement that the options give, those that were not given left out."""
    given = pick(args, "kind importance confidence summary embedding_text expires") | {
        "tags": split_lists(args.tag),
        "entities": split_lists(args.entity),
        "metadata": parse_metadata(args.metadata),
    }
    return {name: value for name, value in given.items() if value not in (None, (), {})}


def parse_metadata(parts: Sequence[str]) -> Json:
    import json

    found: Json = {}
    for part in parts:
        key, equals, value = part.partition("=")
        try:
            if part.lstrip().startswith("{"):
                found |= json.loads(part, parse_constant=refuse_constant)
            elif equals and key.strip():
                found[key.strip()] = value
            else:
                raise ValueError("it has no key")
        except (ValueError, RecursionError) as error:
            raise InvalidInput(
                f"The metadata '{one_line(part, 60)}' cannot be read: {error}.",
                "--metadata ticket=42, or a JSON object",
            ) from None
    return found


def add(args: Namespace, memory: Bethink) -> Result:
    text = read_text(args.text, args.file, 'bethink add "We deploy on Fridays"')
    outcome = memory.add(
        text,
        **read_times(given_values(args), memory.clock()),
        **pick(args, "personal team supersedes"),
        source=args.source or args.file,
        dedup=False if args.no_dedup else None,
        automatic=args.automatic,
        allow_purged=args.force,
    )
    if outcome.status == "purged":
        raise BethinkError(
            "This text was purged, so it is not taken in again.",
            "Add --force to remember it all the same.",
        )
    if args.format == "text" and not args.run_by and has_terminal():
        outcome = decide_proposals(memory, outcome)
    known = hidden = ""
    if outcome.status == "near_duplicate":
        known = "Add --no-dedup to store it as a separate memory."
    if outcome.redactions:
        parts = many(outcome.redactions, "private or secret part")
        hidden = f"{parts} taken out before storing."
    hints = [*memory.hints, offer_languages(memory, text), known, hidden]
    told = describe_outcomes(memory, [outcome])[0]
    return Result(render.plain_outcome(outcome), told, hints=hints)


def decide_proposals(memory: Bethink, outcome: Outcome) -> Outcome:
    """Let a person say at once which known memories a new one replaces, answers or completes."""
    proposed = [(one.relation, one.id) for one in outcome.proposals]
    for relation, id in (*proposed, *(("replaces", older) for older in outcome.marks)):
        type = DECIDED.get(relation)
        known = label_memory(memory, memory.one(id))
        if type and says_yes(f"this may {PROPOSALS[relation][0]} {known}"):
            memory.link(outcome.id, id, type)
            field = "supersedes" if type == "supersedes" else "settles"
            done: Json = {
                "proposals": tuple(one for one in outcome.proposals if one.id != id),
                "marks": tuple(older for older in outcome.marks if older != id),
                field: (*getattr(outcome, field), id),
            }
            outcome = outcome._replace(**done)
    return outcome


def update(args: Namespace, memory: Bethink) -> Result:
    if args.here:
        return describe_change(memory, "bound to this project", inbox.bind(memory, args.id))
    text = [args.content] if args.content is not None else None
    given = given_values(args) | ({"expires": None} if args.no_expiry else {})
    if text or args.file:
        given["content"] = read_text(text, args.file, "bethink update ID --content TEXT")
    if args.answered or args.open:
        given["answered"] = args.answered
    return describe_change(memory, "updated", operations.update(memory, args.id, given))


def done(args: Namespace, memory: Bethink) -> Result:
    found = memory.get(*args.id, count=False)
    for one in found:
        if one.kind not in OPEN_KINDS:
            raise InvalidInput(
                f"The memory {one.id} is a {one.kind}, which cannot be open or closed.",
                "`bethink todo` lists open to-dos, questions and problems.",
            )
    changed = [memory.update(one.id, answered=not args.open) for one in found]
    word = "opened" if args.open else "closed"
    lines = [f"{word} {label_memory(memory, one)}" for one in changed]
    return Result(changed, lines)


def vote(args: Namespace, memory: Bethink) -> Result:
    changed = memory.vote(args.id, args.value)
    return describe_change(memory, f"votes {changed.usefulness:+g} for", changed)


def describe_change(memory: Bethink, what: str, changed: Memory) -> Result:
    """One memory that was changed."""
    again = ""
    if what == "updated" and (rules := promotion.find_rules(changed)):
        command = f"`bethink promote {short_id(memory, changed.id)}`"
        again = f"It is a rule in {rules}: {command} writes there what it says now."
    return Result(changed, [f"{what} {label_memory(memory, changed)}"], hints=[again])


def link(args: Namespace, memory: Bethink) -> Result:
    source, target = args.source, args.target or args.type
    type = args.type.replace("-", "_") if args.target else "relates_to"
    relation = (memory.unlink if args.remove else memory.link)(source, target, type)
    names = memory.store.abbreviate([relation.source, relation.target])
    status = "removed" if args.remove else "linked"
    line = f"{status} {names[relation.source]} {relation.type} {names[relation.target]}"
    waits = ""
    if relation.type != type:
        waits = "The user's own word is replaced when the user confirms it, in the inbox or by this command."
    return Result({**pick(relation, "source type target"), "status": status}, [line], hints=[waits])


def forget(args: Namespace, memory: Bethink) -> Result:
    found = find_requested(args, memory) or memory.get(*args.id, count=False)
    if args.purge:
        return purge(args, memory, found)
    labels = {one.id: label_memory(memory, one) for one in found}
    done = memory.forget(*labels)
    status = {id: "proposed" if id in done.proposed else "forgotten" for id in labels}
    rules = [
        f"Agents still read it in {path}: `bethink demote {short_id(memory, one.id)}` takes it out."
        for one in found
        if (path := promotion.find_rules(one))
    ]
    undo = ""
    if done.ids:
        undo = f"Undo with `bethink restore {short_id(memory, done.ids[0])}{name_reach(args)}`."
    return Result(
        [{"id": id, "status": how} for id, how in status.items()],
        [f"{how} {labels[id]}" for id, how in status.items()],
        warnings=done.hints,
        hints=[undo, *describe_request(done), *rules],
    )


def find_requested(args: Namespace, memory: Bethink) -> list[Memory]:
    """The memories that an agent asks to forget, where a person types the code of that request in place of an id."""
    if not memory.is_person or len(args.id) > 1:
        return []
    code, now = args.id[0].upper(), memory.clock()
    action, other = ("purge", "forget") if args.purge else ("forget", "purge")
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


def name_reach(args: Namespace) -> str:
    """The options with which a command about the same memory finds it."""
    container = f" --container {shlex.quote(args.container)}" if args.container else ""
    return container + (" --all-projects" if args.all_projects else "")


def purge(args: Namespace, memory: Bethink, found: Sequence[Memory]) -> Result:
    if not memory.is_person:
        return request_purge(memory, found)
    left = memory.find_traces(found)
    every = {one.id: label_memory(memory, one) for one in (*found, *left.same)}
    rest = {short_id(memory, one.id): one.position < IDEAS for one in left.rest}
    if not args.yes:
        for line in every.values():
            console.talk(line, args.for_agent)
    confirm(args, f"Purging {many(len(every), 'memory')} cannot be undone.")
    done = promotion.purge(memory, found)
    turn, idea = "The turn it was taken from still says it", "What was taken from it still says so"
    return Result(
        [{"id": id, "status": "purged"} for id in every],
        [f"purged {label}" for label in every.values()],
        warnings=done.hints,
        hints=[
            f"{turn if is_turn else idea}: `bethink forget {id} --purge{name_reach(args)}`."
            for id, is_turn in rest.items()
        ],
    )


def request_purge(memory: Bethink, found: Sequence[Memory]) -> Result:
    """An agent's request to purge, which waits for the user."""
    done = promotion.purge(memory, found)
    return Result(
        [{"id": one.id, "status": "proposed"} for one in found],
        [f"proposed {label_memory(memory, one)}" for one in found],
        hints=describe_request(done),
    )


def restore(args: Namespace, memory: Bethink) -> Result:
    return describe_change(memory, "restored", memory.restore(args.id, args.to))


def handoff(args: Namespace) -> Result:
    if args.action == "save":
        wanted = given_handoff(args)
        with open_memory(args, make=True) as memory:
            saved = handoffs.save_handoff(memory, wanted)
            label = label_memory(memory, saved.memory)
        status = "saved" if saved.new else "unchanged"
        record = {"id": saved.memory.id, "status": status, "supersedes": saved.supersedes}
        record |= pick(handoffs.read_handoff(saved.memory), "project branch")
        return Result(record, [f"{status} {label}"], hints=memory.hints)
    with open_memory(args) as memory:
        return show_handoff(args, memory)


def given_handoff(args: Namespace) -> handoffs.Handoff:
    told = handoffs.Handoff("")
    if args.file or not args.summary:
        told = handoffs.parse_handoff(read_text(None, args.file, HANDOFF_EXAMPLE))
    lists: Json = {
        field: (*getattr(told, field), *getattr(args, option))
        for option, field in HANDOFF_LISTS.items()
    }
    return told._replace(
        **lists,
        summary=args.summary or told.summary,
        branch=args.branch or "",
        metadata=parse_metadata(args.metadata),
    )


def show_handoff(args: Namespace, memory: Bethink) -> Result:
    found = handoffs.find_latest(memory, args.branch)
    if found is None:
        raise NotFound(f"There is no handoff for {memory.project.name} yet.", HANDOFF_EXAMPLE)
    value = {
        **pick(found.memory, "id created_at"),
        **found.handoff._asdict(),
        "exact": found.exact,
        "age_days": found.days,
        "stale": found.stale,
        "content": found.memory.content,
    }
    return Result(value, hints=found.notes, items=render.show_handoff(memory, found))


# Rules


def promote(args: Namespace, memory: Bethink) -> Result:
    if args.id:
        done = promotion.promote(memory, args.id, args.to)
        return Result({"id": done.memory.id, **pick(done, "path status created")})
    found = promotion.candidates(memory, args.limit)
    names = render.short_ids(memory, [one for one, _ in found])
    hint = "No memory has proved itself yet, by votes (`bethink vote ID`) or uses."
    if found:
        hint = "`bethink promote ID` makes one a rule that agents always read."
    return Result(
        [{**plain_memory(one), "reason": reason} for one, reason in found],
        hints=[hint],
        items=[render.quote_line(one, names)._replace(note=reason) for one, reason in found],
    )


def demote(args: Namespace, memory: Bethink) -> Result:
    done = promotion.demote(memory, args.id)
    missing = "" if done.found else f"Its rule was not in {done.path} of this checkout."
    return Result(pick(done, "id path found removed"), hints=[missing])


# In the user's editor


def edit(args: Namespace, memory: Bethink) -> Result:
    was = memory.one(args.id)
    if args.run_by:
        raise UsageError(
            "`edit` opens an editor, which an agent cannot use.",
            f"bethink update {args.id} --content TEXT",
        )
    changed, draft = was, Path(tempfile.mkdtemp(prefix="bethink-edit-")) / "memory.md"
    unchanged = was.content.strip().encode()
    draft.write_bytes(unchanged + b"\n")
    try:
        run_editor(draft)
        text = decode_text(draft.read_bytes(), draft.name).replace("\r\n", "\n").rstrip()
        if text.strip() not in ("", was.content.strip()):
            changed = memory.update(was.id, was=was, content=text)
            unchanged = draft.read_bytes().strip()
    finally:
        if draft.exists() and draft.read_bytes().strip() not in (b"", unchanged):
            console.talk(f"Your text is kept in {draft}.", args.for_agent)
        else:
            shutil.rmtree(draft.parent)  # a memory leaves no copy that nobody asked for
    return describe_change(memory, "unchanged" if changed is was else "updated", changed)


def open_(args: Namespace, memory: Bethink) -> Result:
    one = memory.one(args.id)
    file, url = find_source(memory, one)
    line = one.lines[0] if file and one.lines else None
    place = url or (f"{file}:{line}" if line else str(file))
    value = {"id": one.id, "path": str(file) if file else None, "line": line, "url": url}
    seen = sys.stdout.isatty() and has_terminal()
    if seen and not args.for_agent and args.format == "text":
        if file:
            run_editor(file, line)
        else:
            from webbrowser import open as browse

            browse(url or "")
    return Result(value, [plain(place)])


def find_source(memory: Bethink, one: Memory) -> tuple[Path | None, str | None]:
    """The file that a memory was taken from, or the address of the page."""
    source = one.path or one.source
    if source.startswith(("http://", "https://")):
        return None, source
    for folder in (memory.project.worktree, memory.project.root, Path.cwd()):
        if (folder / source).is_file():
            return folder / source, None
    raise NotFound(
        f"There is no file to open: it comes from {one_line(source)}.",
        f"`bethink get {short_id(memory, one.id)} --source` shows what is kept.",
    )


# Editors that are told a line as `-g FILE:LINE`; all others as `+LINE FILE`.
TAKES_PLACE = ("code", "code-insiders", "codium", "cursor", "windsurf")


def run_editor(file: Path, line: int | None = None) -> None:
    """Opens a file in the user's editor, at a line, and waits for its end."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not named:
        raise NotFound("There is no editor.", "Name yours: export EDITOR=nano")
    try:
        words = shlex.split(named)
        place = [f"+{line}", str(file)] if line else [str(file)]
        if line and Path(words[0]).stem in TAKES_PLACE:
            place = ["-g", f"{file}:{line}"]
        code = subprocess.run([*words, *place], check=False).returncode
    except (OSError, ValueError) as error:
        raise NotFound(
            f"The editor '{named}' cannot be started: {error}.", "Name yours: export EDITOR=nano"
        ) from None
    if code:
        raise BethinkError(f"The editor '{named}' ended with {code}. Nothing was changed.")
