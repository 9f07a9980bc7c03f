"""Conversations, the recipe: turns → redact → shorten → embed → topics → ideas → relations → Batch.

A page of turns, all that was derived from it and the position in the transcript are written together: an interruption repeats the
page, and a message has an identity, so nothing doubles. Turns are kept word for word as evidence; ideas cite the line of their turn.
Nothing here writes: the caller writes the batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from bethink.agents.base import SUMMARY, Fact, Turn, hash_words
from bethink.agents.speech import shorten
from bethink.embed.base import Embedder
from bethink.ingest.compare import MOST_WAITING, WriteOptions, compare, leave_label_out, nearest
from bethink.ingest.digest import OPEN_TASK, RECAP_CHARACTERS, compose_digest, follow
from bethink.ingest.extract import SUMMARY_LINE_CHARACTERS, SUMMARY_LINE_WORDS, entities, extract
from bethink.ingest.ideas import (
    TODOS_PER_TURN,
    Asked,
    Idea,
    content_words,
    holds_anywhere,
    is_users_own,
    puts_off,
    read_ideas,
)
from bethink.ingest.pipeline import (
    Recent,
    Vectors,
    clean_passage,
    embed,
    embed_reworded,
    fold_changes,
    make_entries,
    make_memory,
)
from bethink.ingest.provenance import find_own
from bethink.ingest.reconcile import ORDERS, may_settle, needed_to_complete
from bethink.ingest.redact import redact, redact_value
from bethink.ingest.remedies import remember_failures
from bethink.ingest.reports import Summary, read_report, read_summary
from bethink.ingest.sentences import cut_text
from bethink.ingest.titles import (
    Outcome,
    is_informative,
    is_uninformative,
    make_session_title,
    make_title,
    name_picks,
    only_asks,
    summarise,
)
from bethink.ingest.topics import Topic, TopicTurn, arrange, resume_state, segment
from bethink.language.change import TURNS_ROUND
from bethink.language.detect import is_english
from bethink.language.intents import CLAIMS_PASSING
from bethink.language.reports import BEGINS_WORK
from bethink.llm import Model, tasks
from bethink.llm.base import ModelError
from bethink.model import (
    ASKED_IMPORTANCE,
    CONVERSATION_SCOPE,
    NOTED,
    NOTHING,
    PERSONAL,
    PUT_OFF,
    STATEMENTS,
    TRUST,
    Batch,
    Change,
    Entity,
    Entry,
    Filter,
    Memory,
    Passage,
    Relation,
    Session,
    Source,
    Span,
    idea_position,
    turn_of,
)
from bethink.store.base import Store
from bethink.store.places import content_hash, embedded_text, topic_text, turn_identity
from bethink.text import new_id

ECHO_SHARE = (
    0.85  # share of an idea's words from which it echoes a memory: of six words all, by hand
)
EARLIER_TURNS = 6  # earlier turns that are context for ideas and topics; by hand
CHECKED = ("passed", "failed")  # outcomes of tests and checks
CITE = "cite"  # action in history: a note got the turn in which it was stored
MENDED_KINDS = ("todo", "problem")  # kinds that work settles
MOST_TASKS = 100  # open to-dos of a session that its task list may close; a bound on time
MOST_IDEAS = 200  # ideas of earlier pages with which those of a page are compared; a bound on time
MOST_COMPLETING = 12  # commits and reports of a page that may complete a to-do
FILES_PER_TURN = 8  # files of a turn that it is filed under; by hand
# Confidence of an idea that the model calls firm, or not. By hand.
FIRM_CONFIDENCE, TENTATIVE_CONFIDENCE = 0.9, 0.6
# Least confidence of what an agent says where it stored notes itself. In nine sessions of nine repositories: right .590 → .608, nothing
# found is lost; .6 loses .013 of what is found (bench/LOG.md, 2026-11-19).
BESIDE_NOTES = 0.5
BOUNDARY_CHARACTERS = 600  # characters before and after a boundary that the model sees
MOST_BOUNDARIES = 12  # places asked about at once


class Prepared(NamedTuple):
    batch: Batch
    state: dict[str, Any]
    turns: int = 0
    repeated: int = 0
    ideas: int = 0
    known: int = 0  # ideas that were known already
    topics: int = 0


class NewTurn(NamedTuple):
    """A new turn, redacted, with the memory that keeps it."""

    turn: Turn
    memory: Memory
    identity: bytes
    text: str  # with the words of what it picks from an earlier list

    @property
    def role_and_text(self) -> tuple[str, str]:
        return self.turn.role, self.text

    @property
    def speaker(self) -> str:
        """Author of the words: a plan that a user hands back to the agent is the agent's."""
        return "assistant" if self.turn.plan else self.turn.role


class Recipe(NamedTuple):
    """One page of one session, the state left by earlier pages, and what is needed to prepare it."""

    session: str
    host: str
    source: Source  # the transcript, as far as it is read after this page
    turns: Sequence[Turn]
    title: str
    state: Mapping[str, Any]  # `Prepared.state` of the page before
    options: WriteOptions
    store: Store
    embedder: Embedder | None
    recent: Recent
    model: Model | None = None
    trust: int = TRUST["user"]  # the most that anything in the transcript is believed

    def make_vectors(self, memories: Sequence[Memory]) -> Vectors:
        texts = [embedded_text(memory) for memory in memories]
        return embed(texts, self.embedder, self.recent, self.store)

    def embed(self, texts: Sequence[str]) -> list[Sequence[Any]]:
        """Return one vector of each text, or none without an embedder."""
        return [own[:1] for own in embed(texts, self.embedder, self.recent, self.store)[0]]


class Topics(NamedTuple):
    """The topics of a page."""

    spans: Sequence[Span] = ()
    of_turn: Mapping[str, str] = NOTHING  # turn → span


def prepare(recipe: Recipe) -> Prepared:
    """Prepare the batch of one page. A language model, if set, helps to find topics and ideas."""
    new_turns, repeated = _read_turns(recipe)
    # "Ok." takes a proposal up, but nobody will look for it.
    kept = [one for one in new_turns if not is_uninformative(one.memory.content)]
    own, fresh = recipe.make_vectors([one.memory for one in kept])
    # Turns of a sub-agent are kept as evidence, but are not part of the conversation.
    spoken = [one for one in new_turns if one.turn.agent is None]
    means = {
        one.turn.id: vectors[0] for one, vectors in zip(kept, own, strict=True) if len(vectors)
    }
    found, state = _find_topics(recipe, spoken, [means.get(one.turn.id) for one in spoken])
    session = _load_session(recipe)
    notes = _find_notes(recipe, spoken)
    ideas, digest = _find_ideas(recipe, spoken, session, _find_covered(spoken, notes))
    tasks, closed = _follow_tasks(recipe, spoken)
    summaries = _read_summaries(recipe)
    stated = _list_stated(summaries, len(spoken))
    ideas = sorted([*ideas, *tasks, *stated], key=lambda idea: idea.turn)
    evidence = [*spoken, *(one for one, _ in summaries)]
    batch, total = _remember_ideas(recipe, ideas, evidence, found, closed)
    made = [entry.memory for entry in batch.add]
    own_ways = any(one.scope == PERSONAL for one in made)
    spans = [_describe_topic(recipe, span, found, spoken, made) for span in found.spans]
    # Not cached: a purge could not find the earlier names of a topic there.
    vectors = recipe.embed([topic_text(span.name, span.summary) for span in spans])
    turns = [
        Entry(
            one.memory._replace(span=found.of_turn.get(one.turn.id, state.get("span"))),
            vectors,
            False,
            one.identity,
        )
        for one, vectors in zip(kept, own, strict=True)
    ]
    failures = remember_failures(recipe, new_turns)
    batch = batch._replace(
        scopes={**recipe.options.scopes, **({PERSONAL: (PERSONAL, "")} if own_ways else {})},
        sessions=_describe_session(
            recipe, new_turns, session, digest, _list_waiting(recipe, batch), _find_left(recipe)
        ),
        spans=tuple(zip(spans, vectors, strict=True)),
        add=(*turns, *batch.add, *failures.add),
        change=(*batch.change, *failures.change, *_cite_turns(recipe, spoken, notes)),
        model=recipe.embedder.model if recipe.embedder else None,
        vectors=failures.vectors,
        made_of=failures.made_of,
        cache={**fresh, **batch.cache, **failures.cache},
    )
    state["turns"] = int(state.get("turns", 0)) + len(new_turns)
    state |= failures.state
    known, begun = total - len(made), sum(not span.name for span in found.spans)
    return Prepared(batch, state, len(kept), repeated, len(made), known, begun)


# Turns


def _read_turns(recipe: Recipe) -> tuple[list[NewTurn], int]:
    """Return the new turns, and how many were known from another file."""
    identities = [turn_identity(recipe.host, turn.id) for turn in recipe.turns]
    known = recipe.store.find_known_turns(recipe.options.scope, identities)
    new_turns: dict[bytes, NewTurn] = {}
    before = _load_earlier(recipe)
    for turn, own in zip(recipe.turns, identities, strict=True):
        if own in known or own in new_turns or turn.summary:
            continue
        redacted = redact(turn.text)
        if not redacted.empty:
            text = shorten(redacted.text.strip())
            position = int(recipe.state.get("turns", 0)) + len(new_turns)
            turn = _without_named_secrets(turn)
            picked = name_picks(turn.role, text, before)
            new_turns[own] = NewTurn(turn, _keep_turn(recipe, turn, text, position), own, picked)
            before = [*before[1 - EARLIER_TURNS :], (new_turns[own].speaker, text)]
    return list(new_turns.values()), sum(own in known for own in identities)


def _without_named_secrets(turn: Turn) -> Turn:
    """Redact names and tasks of a turn; drop files and work that are named like a secret."""
    cwd, branch, agent, tools = redact_value((turn.cwd, turn.branch, turn.agent, turn.tools))[0]
    files = tuple(filter(_is_harmless, turn.files))
    work = tuple(fact for fact in turn.work if _is_harmless(fact.name))
    tasks = tuple(one._replace(text=redact(one.text).text) for one in turn.tasks)
    noted = tuple(redact(text).text for text in turn.noted)
    turn = turn._replace(cwd=cwd, branch=branch, agent=agent, tools=tools)
    return turn._replace(files=files, work=work, tasks=tasks, noted=noted)


@lru_cache(4096)  # the same few names again and again
def _is_harmless(name: str) -> bool:
    return redact(name).text == name


def _keep_turn(recipe: Recipe, turn: Turn, text: str, position: int) -> Memory:
    """Make the memory that keeps a turn word for word, with the files it touched and the things it names."""
    options = recipe.options
    speaker = "agent" if turn.plan or turn.role != "user" else "user"
    pasted = speaker == "user" and not find_own(text, turn.asked).whole
    metadata = {
        "role": turn.role,
        "turn": turn.id,
        "host": recipe.host,
        "agent": turn.agent,
        "branch": turn.branch,
        "tools": list(turn.tools[:16]),
        "marks": list(turn.marks),
        "origin": "plan" if turn.plan else "pasted" if pasted else None,
    }
    first_line = next((line for line in text.splitlines() if any(map(str.isalnum, line))), text)
    passage = Passage(
        text,
        kind="context",
        summary=cut_text(first_line.strip(" #*->"), SUMMARY_LINE_CHARACTERS, SUMMARY_LINE_WORDS),
        importance=ASKED_IMPORTANCE if only_asks(text) else 3.0,
        entities=(*(Entity(file, "file") for file in turn.files[:FILES_PER_TURN]), *entities(text)),
        lines=(turn.line, turn.line),
        created_at=turn.at or options.now,
        metadata={key: value for key, value in metadata.items() if value},
        session=recipe.session,
        position=position,
    )
    trust = min(recipe.trust, TRUST["pasted" if pasted else speaker])
    return make_memory(passage, recipe.source, options._replace(trust=trust), position)


# Topics


def _find_topics(
    recipe: Recipe, spoken: Sequence[NewTurn], means: Sequence[Any]
) -> tuple[Topics, dict[str, Any]]:
    """Return new topics, those of the page before that go on, and the state for the next page."""
    state = dict(recipe.state)
    if not spoken:
        return Topics(), state
    turns = [
        TopicTurn(*one.role_and_text, turn.at, turn.line, turn.cwd, turn.branch, turn.files)
        for one in spoken
        for turn in (one.turn,)
    ]
    found, still_open = segment(turns, means, resume_state(state.get("open")))
    if recipe.model:
        found = _confirm_topics(recipe.model, found, [one.memory.content for one in spoken])
    scope, open_ids = recipe.options.scope, dict(state.get("spans") or {})
    known = recipe.store.spans_by_id(open_ids.values(), (scope,))
    spans: list[Span] = []
    of_turn: dict[str, str] = {}
    # Sub-topics come after their topics, and so have the last word about their turns.
    for topic in found:
        first, last = spoken[topic.first].turn, spoken[topic.last].turn
        parent = None if topic.parent is None else spans[topic.parent].id
        # Text typed while the agent spoke comes before its answer in the file.
        end, began = max(first.line, last.line), first.at or recipe.options.now
        lines = first.line, end
        span = Span(new_id(), scope, recipe.session, parent, "", "", lines, topic.depth, began)
        before = known.get(open_ids.get(str(topic.depth), "")) if topic.continues else None
        if before:
            span = before._replace(lines=(before.lines[0], max(before.lines[1], end)))
        spans.append(span)
        of_turn |= {one.turn.id: span.id for one in spoken[topic.first : topic.last + 1]}
    kept = [one.memory.id for one in spoken if not is_uninformative(one.memory.content)]
    state |= {
        "open": still_open._asdict(),
        "last": kept[-1] if kept else state.get("last"),
        "span": of_turn[spoken[-1].turn.id],
        "spans": {str(topic.depth): span.id for topic, span in zip(found, spans, strict=True)},
    }
    return Topics(spans, of_turn), state


def _describe_topic(
    recipe: Recipe,
    span: Span,
    found: Topics,
    spoken: Sequence[NewTurn],
    made: Sequence[Memory],
) -> Span:
    """Give a topic the name and the summary that its turns and ideas support now."""
    inside = {span.id, *(child.id for child in found.spans if child.parent == span.id)}
    own = [one for one in spoken if found.of_turn.get(one.turn.id) in inside]
    texts = [one.role_and_text for one in own]
    commits = [fact.name for one in own for fact in one.turn.work if fact.what == "commit"]
    ideas = _outline(memory for memory in made if memory.span in inside)
    if span.name:
        # Its subject was stated when it began; its results may have grown.
        before = dict(line.partition(": ")[::2] for line in span.summary.split("\n"))
        asked = [("user", before["Focus"])] if "Focus" in before else texts
        commits = [*before.get("Done", "").split("; "), *commits]
        filter = Filter(scopes=(recipe.options.scope,), now=recipe.options.now)
        known = recipe.store.load(recipe.store.list_in_spans([span.id], filter, 60)).values()
        return span._replace(summary=summarise(asked, _outline(known) + ideas, commits))
    advised = _name_topic(recipe.model, texts) if recipe.model and texts else None
    title, summary = advised or (make_title(texts), summarise(texts, ideas, commits))
    return span._replace(name=title, summary=summary)


def _outline(memories: Iterable[Memory]) -> list[Outcome]:
    """Return memories as a summary needs them."""
    return [
        Outcome(
            one.kind, one.content, one.kind in ("question", "todo", "problem") and not one.answered
        )
        for one in memories
    ]


def _load_session(recipe: Recipe) -> Session:
    """Return the session as it was before this page."""
    scope, id = recipe.options.scope, recipe.session
    found = recipe.store.sessions((scope,), 1, 0, id)
    return found[0] if found and found[0].id == id else Session(id, scope)


def _list_waiting(recipe: Recipe, batch: Batch) -> list[str]:
    """Return to-dos that the user put off in this session and nobody did, the newest first."""
    filter = Filter((recipe.options.scope,), ("todo",), session=recipe.session, answered=False)
    known = recipe.store.list(filter._replace(now=recipe.options.now), TODOS_PER_TURN)
    made = [entry.memory for entry in batch.add if not entry.memory.answered]
    done = {change.id for change in batch.change}
    return [
        one.content
        for one in (*made[::-1], *known)
        if PUT_OFF in one.metadata
        and one.metadata.get("role") == "user"
        and one.trust >= TRUST["agent"]
        and one.id not in done
    ]


def _describe_session(
    recipe: Recipe,
    new_turns: Sequence[NewTurn],
    known: Session,
    digest: Mapping[str, str],
    waiting: Sequence[str],
    left: Sequence[str] | None,
) -> tuple[Session, ...]:
    """Return the session with its new title and digest; nothing if the page adds nothing.

    A session of nothing but greetings is not stored.
    """
    recap = _find_recap(recipe.turns) if left is None else ""
    if not _is_new(new_turns, bool(recap) or left is not None, known):
        return ()
    own = [one for one in new_turns if one.turn.agent is None]
    spoken, texts = [one.turn for one in own], [one.role_and_text for one in own]
    work: list[list[Fact]] = [[]]  # before each turn, and behind the last
    for one in new_turns:
        work[-1] += one.turn.work
        work += [[]] if one.turn.agent is None else []
    planned = any(turn.plan for turn in spoken[-1:])
    tasks = [turn.tasks for turn in spoken]
    course = follow(known.metadata.get("course", {}), texts, work, recap, planned, left, tasks)
    composed = compose_digest(course, waiting)
    checks = {name: line for name, line in composed.items() if name == "checks"}
    whole = {**digest, **checks} if digest else composed  # a model does not see what tools did
    derived = {"digest": whole, "course": course._asdict()}
    places = [{"cwd": turn.cwd} for turn in spoken if turn.cwd][:1]
    branches = [{"branch": turn.branch} for turn in spoken if turn.branch][-1:]
    times = [turn.at for turn in spoken if turn.at]
    now = make_session_title(texts, chain.from_iterable(work))
    # One that says something stays.
    title = next(filter(is_informative, (known.title, now)), known.title or now)
    session = known._replace(
        host=recipe.host,
        title=redact(recipe.title).text or title,
        source=recipe.source.uri,
        started_at=min(times, default=None),
        ended_at=max(times, default=None),
        metadata={**dict(*places), **known.metadata, **dict(*branches), **derived},
    )
    return (session,)


def _is_new(new_turns: Sequence[NewTurn], recap: bool, known: Session) -> bool:
    if known.title:
        return bool(new_turns) or recap
    return any(one.turn.work or not is_uninformative(one.memory.content) for one in new_turns)


def _find_recap(turns: Sequence[Turn]) -> str:
    """Return the host's own summary at the end of a session, or ''."""
    last = [turn for turn in turns if turn.agent is None][-1:]
    return "".join(
        redact(one.text).text for one in last if one.summary and len(one.text) <= RECAP_CHARACTERS
    )


def _find_left(recipe: Recipe) -> Sequence[str] | None:
    """Return what the host's summary lists as left if the page ends with one; None if nothing says."""
    last = [turn for turn in recipe.turns if turn.agent is None][-1:]
    found = [read_summary(redact(one.text).text) for one in last if one.role == SUMMARY]
    return found[0].left if found else None


def _read_summaries(recipe: Recipe) -> list[tuple[NewTurn, Summary]]:
    """Read the summaries that the host wrote at compactions. They are evidence for ideas, and no turns."""
    found = []
    for turn in recipe.turns:
        redacted = redact(turn.text) if turn.role == SUMMARY and turn.agent is None else None
        if redacted and not redacted.empty:
            turn = _without_named_secrets(turn)
            evidence = _keep_turn(recipe, turn, redacted.text, int(recipe.state.get("turns", 0)))
            one = NewTurn(turn, evidence, b"", redacted.text)
            found.append((one, read_summary(redacted.text)))
    return found


# Ideas


def _list_stated(summaries: Sequence[tuple[NewTurn, Summary]], first: int) -> list[Idea]:
    """Return the decisions, wishes and findings that summaries list, as an agent's ideas."""
    return [
        Idea(kind, text, at, False, TENTATIVE_CONFIDENCE, entities(text), by_agent=True)
        for at, (_, summary) in enumerate(summaries, first)
        for kind, text in summary.stated
    ]


def _find_ideas(
    recipe: Recipe, spoken: Sequence[NewTurn], session: Session, covered: Set[int]
) -> tuple[list[Idea], Mapping[str, str]]:
    """Return the ideas of this page, and the digest of the session where a language model wrote one.

    Earlier turns are read as context; their own ideas were noted before. In `covered` turns the agent stored notes itself.
    """
    before = _load_earlier(recipe)
    turns = before + [(one.speaker, one.memory.content) for one in spoken]
    first = len(before)
    asked = {at: one.turn.asked for at, one in enumerate(spoken, first)}
    advised = None
    if recipe.model and spoken:
        advised = _ask_ideas(recipe.model, turns, first, session.digest or NOTHING, asked)
    reader = recipe.options.reader() if advised is None and spoken else None
    read = read_ideas(turns, reader, first, asked, _load_ideas(recipe)) if reader else []
    read = [one for one in read if one.turn - first not in covered or _fills_gap(turns, one)]
    found, digest = advised or (read, NOTHING)
    # "Do B" says something with the words in which B was offered, and only then.
    ideas = [
        idea._replace(
            turn=idea.turn - first,
            text=idea.text
            if idea.completed
            else name_picks(turns[idea.turn][0], idea.text, turns[: idea.turn]),
        )
        for idea in found
        if not _is_echo(idea.text, spoken[idea.turn - first].turn)
    ]
    return _drop_denied(ideas, spoken), digest


def _fills_gap(turns: Sequence[tuple[str, str]], idea: Idea) -> bool:
    """Return True for an idea to keep beside an agent's notes: the user's, or a likely one."""
    return turns[idea.turn][0] == "user" or idea.confidence >= BESIDE_NOTES


def _find_notes(recipe: Recipe, spoken: Sequence[NewTurn]) -> dict[str, int]:
    """Return the agent's notes that were stored in these turns: memory → turn."""
    placed = {
        content_hash(text): at for at, one in enumerate(spoken) for text in one.turn.noted if text
    }
    if not placed or recipe.trust < TRUST["user"]:
        return {}
    scopes = (recipe.options.scope, PERSONAL)
    known = [recipe.store.duplicates(list(placed), scope) for scope in scopes]
    return {id: placed[hash] for found in known for hash, id in found.items()}


def _find_covered(spoken: Sequence[NewTurn], notes: Mapping[str, int]) -> set[int]:
    """Return the turns of each exchange in which the agent stored notes: it said what of them lasts."""
    begins = [at for at, one in enumerate(spoken) if one.speaker == "user"]
    covered: set[int] = set()
    for at in notes.values():
        # A call between an answer and the next request belongs to the answer.
        at -= at in begins
        first = max((one for one in begins if one <= at), default=0)
        following = min((one for one in begins if one > at), default=len(spoken))
        covered |= set(range(first, following))
    return covered


def _cite_turns(
    recipe: Recipe, spoken: Sequence[NewTurn], notes: Mapping[str, int]
) -> Iterator[Change]:
    """Yield for each note that cites nothing yet the turn in which it was stored."""
    for note in recipe.store.get(notes):
        if note.source_type == "note" and not any(key in note.metadata for key in NOTED):
            turn = spoken[notes[note.id]].turn
            cited = dict(zip(NOTED, (recipe.session, turn.id, turn.line), strict=True))
            yield Change(note.id, CITE, {"metadata": {**note.metadata, **cited}})


def _load_ideas(recipe: Recipe) -> list[tuple[str, str, str]]:
    """Return kind, speaker and text of what is kept of earlier pages of the session, the newest ones."""
    if not recipe.state.get("turns"):
        return []
    filter = Filter(
        (recipe.options.scope,), STATEMENTS, session=recipe.session, now=recipe.options.now
    )
    known = recipe.store.list(filter, MOST_IDEAS)
    return [
        (one.kind, str(one.metadata.get("role", "")), one.content)
        for one in known
        if not (one.answered or one.newer)
    ]


def _drop_denied(ideas: Sequence[Idea], spoken: Sequence[NewTurn]) -> list[Idea]:
    """Drop what an agent claims to pass where the last check before it failed: the events count."""
    failed: list[bool] = []
    for one in spoken:
        checks = [fact.what == "failed" for fact in one.turn.work if fact.what in CHECKED]
        failed.append(checks[-1] if checks else bool(failed and failed[-1]))
    return [
        idea
        for idea in ideas
        if not (
            spoken[idea.turn].speaker == "assistant"
            and failed[idea.turn]
            and CLAIMS_PASSING.holds(idea.text)
        )
    ]


def _is_echo(text: str, turn: Turn) -> bool:
    """Return True if an agent repeats a memory it was shown: nearly all words of a line, none denying it."""
    words = hash_words(text) if turn.recalled and turn.role != "user" else frozenset()
    if not words or TURNS_ROUND.holds(text):
        return False
    return any(
        len(words.intersection(line.split())) >= ECHO_SHARE * len(words) for line in turn.recalled
    )


def _load_earlier(recipe: Recipe) -> list[tuple[str, str]]:
    """Return the last turns of the session before this page."""
    last = recipe.state.get("last")
    around = recipe.store.around(str(last), EARLIER_TURNS - 1, 0) if last else []
    turns = [one for one in around if one.kind == "context" and "agent" not in one.metadata]
    return [
        ("assistant" if by.get("origin") == "plan" else str(by.get("role", "user")), one.content)
        for one in turns[-EARLIER_TURNS:]
        for by in (one.metadata,)
    ]


def _follow_tasks(
    recipe: Recipe, spoken: Sequence[NewTurn]
) -> tuple[list[Idea], Mapping[str, str]]:
    """Follow the task list that the agent keeps in its host.

    Items that are open after this page are to-dos. Items that are done or dropped close the to-dos of earlier pages: to-do → turn.
    """
    states: dict[str, tuple[int, str]] = {}
    for at, one in enumerate(spoken):
        states |= {task.text: (at, task.state) for task in one.turn.tasks}
    if not states:
        return [], NOTHING
    filter = Filter((recipe.options.scope,), ("todo",), session=recipe.session, answered=False)
    listed = recipe.store.list(filter._replace(now=recipe.options.now), MOST_TASKS)
    known = {one.content: one.id for one in listed}
    waiting = [
        Idea("todo", text, at, True, FIRM_CONFIDENCE, entities(text), by_agent=True)
        for text, (at, state) in states.items()
        if state in OPEN_TASK and text not in known and len(content_words(text)) > 1
    ]
    closed = {
        known[text]: spoken[at].memory.id
        for text, (at, state) in states.items()
        if state not in OPEN_TASK and text in known
    }
    return waiting[:TODOS_PER_TURN], closed


def _remember_ideas(
    recipe: Recipe,
    found: Sequence[Idea],
    spoken: Sequence[NewTurn],
    topics: Topics,
    closed: Mapping[str, str],
) -> tuple[Batch, int]:
    """Return the new ideas as memories with what they change, and how many ideas there were.

    `closed` are to-dos that the agent's task list calls done: to-do → turn.
    """
    options = recipe.options
    memories: list[Memory] = []
    numbers: Counter[int] = Counter()
    for idea in found:
        one = spoken[idea.turn]
        memories.append(_keep_idea(recipe, idea, one, topics, numbers[idea.turn]))
        numbers[idea.turn] += 1
    # The judge reads turn by turn, a language model answer by answer: each is one telling.
    tellings = {
        memory.id: -idea.turn if idea.telling is None else idea.telling + 1
        for memory, idea in zip(memories, found, strict=True)
    }
    batch = Batch(at=options.now, actor=options.actor)
    for scope in dict.fromkeys(memory.scope for memory in memories):
        own = [memory for memory in memories if memory.scope == scope]
        batch = _add_compared(recipe, scope, own, tellings, batch)
    last = max((1, *tellings.values()))
    # The last answer took all reports into account when it called something open.
    waiting = [entry.memory for entry in batch.add if tellings[entry.memory.id] != last]
    done = {**_find_done(recipe, waiting, spoken), **closed}
    kept = {one.memory.id for one in spoken if not is_uninformative(one.memory.content)}
    answers = (Relation(by, id, "answers") for id, by in done.items() if by in kept)
    batch = batch._replace(
        change=(*batch.change, *(Change(id, "answer", {"answered": True}) for id in done)),
        relate=(*batch.relate, *answers),
    )
    return fold_changes(batch), len(memories)


def _add_compared(
    recipe: Recipe, scope: str, own: Sequence[Memory], tellings: Mapping[str, int], batch: Batch
) -> Batch:
    """Add memories of a scope to a batch, compared with what is known there."""
    options = recipe.options._replace(scope=scope)
    vectors, fresh = recipe.make_vectors(own)
    together = [tellings[one.id] for one in own]
    compared = compare(own, vectors, options, recipe.store, recipe.embedder, tellings=together)
    return embed_reworded(batch, own, vectors, compared)._replace(
        add=(*batch.add, *make_entries(own, vectors, compared, options, recipe.store)),
        change=(*batch.change, *compared.change),
        relate=(*batch.relate, *compared.relate),
        cache={**batch.cache, **fresh},
    )


def _find_done(recipe: Recipe, made: Sequence[Memory], spoken: Sequence[NewTurn]) -> dict[str, str]:
    """Return to-dos that a commit or a report of this page completes: to-do → turn."""
    reports = _find_reports(spoken)
    closes = reports and recipe.embedder and recipe.options.automatic == "full"
    judge = recipe.options.judge() if closes else None
    if judge is None:
        return {}
    found = _find_waiting(recipe, made, reports)
    wanted = [one for one in found if is_english(one[0].content) and is_english(one[1])]
    judged = judge.relate([(leave_label_out(old), text) for old, text, _ in wanted])
    return {
        old.id: turn.id
        for (old, text, turn), judgement in zip(wanted, judged, strict=True)
        # The subject of a commit says the same as a to-do: what was to be done.
        if judgement.probabilities["completes"] + judgement.probabilities["same"]
        >= max(needed_to_complete(old.content, text), ORDERS)
    }


def _find_waiting(
    recipe: Recipe, made: Sequence[Memory], reports: Sequence[tuple[str, Memory]]
) -> Iterator[tuple[Memory, str, Memory]]:
    """Yield to-do, report and turn: the few to-dos that each report of the page may be about."""
    filter = Filter((recipe.options.scope,), MENDED_KINDS, now=recipe.options.now, answered=False)
    fresh = [one for one in made if one.kind in MENDED_KINDS and not one.answered]
    if recipe.embedder is None or not (fresh or recipe.store.list(filter, 1)):
        return
    vectors = recipe.embed([text for text, _ in reports])
    for (text, turn), own in zip(reports, vectors, strict=True):
        near = (
            nearest(own[0], filter, recipe.store, recipe.embedder, MOST_WAITING) if len(own) else []
        )
        words = content_words(text)
        alike = [one for one in fresh if len(words & content_words(one.content)) > 1][:MOST_WAITING]
        for old in (*(one.memory for one in near), *alike):
            later = turn.session != old.session or turn.position > turn_of(old.position)
            if later and may_settle(turn, old):
                yield old, text, turn


def _find_reports(spoken: Sequence[NewTurn]) -> list[tuple[str, Memory]]:
    """Return the subjects of commits and the reports of a page, the newest of each."""
    found = []
    for one in spoken:
        commits = [fact.name for fact in one.turn.work if fact.what == "commit"]
        reports = read_report(one.memory.content).done if one.speaker == "assistant" else ()
        found += [(text, one.memory) for text in (*commits, *reports)]
    return [(text, turn) for text, turn in found if not BEGINS_WORK.holds(text)][-MOST_COMPLETING:]


def _keep_idea(recipe: Recipe, idea: Idea, one: NewTurn, topics: Topics, number: int) -> Memory:
    turn, evidence = one.turn, one.memory
    metadata: dict[str, Any] = {
        "turn": turn.id,
        "role": "assistant" if idea.by_agent else turn.role,
        "firm": idea.firm,
        "host": recipe.host,
    }
    by_agent = idea.by_agent or one.speaker != "user"
    speaker = "agent" if by_agent else "pasted" if idea.doubtful else "user"
    preferred = speaker == "user" and idea.kind == "preference"
    own = recipe.options.personal and preferred and holds_anywhere(idea.text)
    if own:
        metadata[CONVERSATION_SCOPE] = recipe.options.scope
    if idea.put_off:
        metadata[PUT_OFF] = True
    if idea.doubtful:
        metadata["origin"] = "pasted"
    passage = Passage(
        idea.text,
        kind=idea.kind,
        confidence=idea.confidence,
        entities=idea.entities,
        lines=evidence.lines,
        created_at=evidence.created_at,
        session=evidence.session,
        span=None if own else topics.of_turn.get(turn.id),
        position=idea_position(evidence.position, number),
        metadata=metadata,
    )
    cleaned, _ = clean_passage(passage, recipe.options.longest)
    options = recipe.options._replace(trust=min(recipe.trust, TRUST[speaker]))
    if own:
        options = options._replace(scope=PERSONAL)
    source = Source(evidence.source, evidence.source_type)
    made = make_memory(extract(cleaned), source, options, 0)
    return made._replace(answered=True) if idea.closed else made


# Answers of a language model, if one is set. If it fails, declines or has used up its day, only its help is missing: the rules go on,
# and the reason is counted where `bethink stats` shows it.


def _ask_ideas(
    model: Model,
    turns: Sequence[tuple[str, str]],
    first: int,
    digest: Mapping[str, str],
    asked: Asked,
) -> tuple[list[Idea], Mapping[str, str]] | None:
    """Ask a language model for the ideas of the turns from `first` on, and for the digest after them."""
    numbered = [tasks.NumberedTurn(number, role, text) for number, (role, text) in enumerate(turns)]
    found: list[Idea] = []
    try:
        for number, portion in enumerate(tasks.portions(numbered)):
            if portion[-1].number < first:
                continue
            answer = tasks.find_ideas(model.ask, portion, digest)
            digest = answer.digest
            for idea in answer.ideas:
                at = idea.turns[-1]
                role, text = turns[at]
                # Text that a user pasted does not count as the user's.
                if at >= first and (role != "user" or is_users_own(idea.text, text, asked[at])):
                    sure = FIRM_CONFIDENCE if idea.firm else TENTATIVE_CONFIDENCE
                    later = (idea.kind, role) == ("todo", "user") and puts_off(idea.text)
                    own = idea.kind, idea.text, at, idea.firm, sure, idea.entities, number, later
                    found.append(Idea(*own))
    except ModelError:
        return None
    return sorted(found, key=lambda idea: idea.turn), digest


def _name_topic(model: Model, turns: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Ask a language model for the name and the summary of a topic."""
    numbered = [tasks.NumberedTurn(number, role, text) for number, (role, text) in enumerate(turns)]
    try:
        found = tasks.name_topic(model.ask, numbered)
    except ModelError:
        return None
    return found if all(found) else None


def _confirm_topics(model: Model, found: Sequence[Topic], texts: Sequence[str]) -> list[Topic]:
    """Drop the topics that a language model takes for a follow-up of the one before."""
    doubtful = [at for at, one in enumerate(found) if at and one.depth == 0 and not one.continues][
        :MOST_BOUNDARIES
    ]
    if not doubtful:
        return list(found)
    places = [
        (
            at,
            "\n".join(texts[: found[at].first])[-BOUNDARY_CHARACTERS:],
            "\n".join(texts[found[at].first :])[:BOUNDARY_CHARACTERS],
        )
        for at in doubtful
    ]
    try:
        verdicts = tasks.confirm_topics(model.ask, places)
    except ModelError:
        return list(found)
    # A topic that joins the one before takes its sub-topics along.
    kept = [one for at, one in enumerate(found) if verdicts.get(at, True)]
    starts = [(one.first, one.depth, one.continues) for one in kept]
    return arrange(starts, len(texts))
