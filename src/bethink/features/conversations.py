"""Transcripts become memories: find the files, choose the project, and resume where reading stopped.

Each transcript is a source that records how far it was read. A page of it is stored with everything
derived from it in one transaction, so stopping loses nothing and repeating changes nothing.

A transcript in its agent's own folder belongs to the project of the conversation, whichever project
the command runs in. Any other file may come from a stranger and name any folder and session. It is
trusted only if a person reads it in the project that it names. Otherwise it is an untrusted import
into the current project.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink import agents
from bethink import project as projects
from bethink.agents.base import LOSSES, NAMED, OFF, Position, make_id
from bethink.api import Bethink
from bethink.errors import BethinkError, InvalidInput, NotFound, Overtaken
from bethink.features import language
from bethink.ingest.redact import redact_name, redact_value
from bethink.llm.base import READER_REQUEST
from bethink.model import BACKGROUND, NOTHING, TRUST, Batch, Memory, Session, Source, Span
from bethink.project import Pause, is_covered, read_pauses
from bethink.store.places import turn_identity

if TYPE_CHECKING:
    from bethink.agents.base import TranscriptPage, Turn
    from bethink.agents.transcript import Transcript

COLLECTION = "transcripts"
COMPLETED_WITH_PAGE = 2_000  # memories that a page gives a vector for other languages: 4 seconds
_OPEN = 8  # sessions of one file whose open topic is kept: one database may contain thousands of sessions
SUFFIXES = ".jsonl .json .zst .md .markdown .txt .db".split()
# Turns that decide the project of a transcript; those of sub-agents do not count. By hand.
_FIRST = 20


class Indexed(NamedTuple):
    """Result of reading transcripts."""

    transcripts: int = 0  # with something new
    unchanged: int = 0
    lines: int = 0
    turns: int = 0
    repeated: int = 0  # turns known from another file
    ideas: int = 0
    known: int = 0  # ideas that were already known
    topics: int = 0
    imported: int = 0  # conversations that may come from a stranger
    sessions: tuple[str, ...] = ()
    skipped: Mapping[str, int] = NOTHING  # lines that are not turns, by reason
    failed: tuple[tuple[str, str], ...] = ()  # (file, why)

    def plus(self, other: Indexed) -> Indexed:
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTED}
        return Indexed(
            **counts,
            sessions=tuple(dict.fromkeys((*self.sessions, *other.sessions))),
            skipped=Counter(self.skipped) + Counter(other.skipped),
            failed=(*self.failed, *other.failed),
        )


COUNTED = Indexed._fields[:9]


def find(
    path: Path | None,
    host: str | None,
    since: datetime | None = None,
    project: Path | None = None,
) -> list[tuple[str, Path]]:
    """List the transcripts to read, oldest first, so that the latest decisions are read last.

    By default those in the agents' own folders, and those that agents keep in the folder of the
    project; or the named file, whatever it is; or the files of a folder that look like transcripts.
    """
    if path is None:
        names = [host] if host else agents.names()
        home = Path.home()
        found = [(name, file) for name in names for file in agents.locate(name, os.environ, home)]
        inside = agents.locate_in(project) if project else []
        found += [(name, file) for name, file in inside if name in names]
    elif path.is_file():
        found = [(host or _detect(path), path)]
    elif path.exists():
        files = (file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
        found = [(name, file) for file in files if (name := host or _detect(file))]
    else:
        raise NotFound(
            f"There is nothing at {path}.", "Give a transcript or a folder of them, or --all."
        )
    dated = []
    for name, file in found:
        with suppress(OSError):  # gone since it was listed
            dated.append((file.stat().st_mtime, file, name))
    least = since.timestamp() if since else 0.0
    return [(name, file) for changed, file, name in sorted(dated) if changed >= least]


def find_newest(memory: Bethink, host: str | None, since: datetime | None) -> tuple[str, Path]:
    """Newest transcript of this project in the agents' own folders."""
    for name, file in reversed(find(None, host, since)):
        with suppress(OSError, BethinkError):  # skip unreadable files
            transcript = agents.read(file, host=name)
            first = [turn for turn in islice(transcript.turns(), _FIRST) if turn.agent is None]
            project = _find_project(memory, transcript, first) if first else None
            if project and project.scope == memory.project.scope:
                return name, file
    raise NotFound(
        f"The agents on this machine keep no conversation of {memory.project.name}.",
        "Give a transcript or a folder of them; `bethink backfill --all` reads those of every project.",
    )


def _detect(file: Path) -> str:
    try:
        return agents.detect(file) or ""
    except (OSError, BethinkError):
        return ""


def backfill(
    memory: Bethink,
    transcripts: Iterable[tuple[str, Path]],
    *,
    embed: bool = True,
    strict: bool = False,
    trusted: bool = False,
    named: bool = True,
) -> Indexed:
    """Read transcripts from where each was left. Unreadable ones are skipped, unless `strict`.

    With `trusted` the user vouches that they are their own conversations, wherever the files are;
    `named` means that they named the file or its folder.
    """
    done = Indexed()
    for host, path in transcripts:
        try:
            before = done
            for part in read_on(memory, path, host, embed=embed, trusted=trusted, named=named):
                done = done.plus(part)
            if strict and (done.turns, done.repeated) == (before.turns, before.repeated):
                _check_understood(path, done)
        except Overtaken:
            continue  # another process is reading it
        except (OSError, BethinkError) as error:
            if strict:
                raise
            reason = getattr(error, "message", str(error))
            done = done.plus(Indexed(failed=((str(path), reason),)))
    return done


def _check_understood(path: Path, done: Indexed) -> None:
    """Raise an error for a file of which nothing was understood."""
    lost = count_lost(done.skipped)
    if done.lines and sum(lost.values()) >= done.lines:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in lost.items())
        raise InvalidInput(
            f"Nothing in {path} was understood: {reasons}.",
            "Leave out --host, so that the agent is recognised, or name the right one.",
        )


def count_lost(skipped: Mapping[str, int]) -> dict[str, int]:
    """Return how many entries may have said something and were not understood, by reason."""
    return {reason: count for reason, count in skipped.items() if reason.startswith(LOSSES)}


def read_on(
    memory: Bethink,
    path: Path,
    host: str | None = None,
    *,
    embed: bool = True,
    silent: bool = False,
    trusted: bool = False,
    named: bool = True,
    advised: bool = True,
    environment: Mapping[str, str] = os.environ,
) -> Iterator[Indexed]:
    """Ingest the new part of one transcript, page by page.

    With `advised` a language model helps, if one is set.

    Turns from a time when memory was paused are skipped; with `silent` also turns without a time.
    `environment` locates the agents' own folders. `named` means that a person named the file,
    `trusted` that they vouch for it.
    """
    uri = redact_name(str(path.resolve()))  # a folder or a file may be named like a secret
    home, source = memory.store.find_source(uri) or (None, Source(uri, "transcript"))
    left = source.metadata.get("position")
    states = dict(source.metadata.get("sessions") or {})
    agent = host or source.metadata.get("host") or _detect(path)
    own = trusted or agents.is_kept(agent, path, environment, Path.home())
    if own and any(state.get("import") for state in states.values()):
        left, states = None, {}  # read as a stranger's before, but no longer
    transcript = agents.read(path, Position(**left) if left else Position(), host or None)
    transcript.rename = redact_name
    named = named and memory.trust >= TRUST["user"]
    reading = OpenTranscript(
        memory, transcript, states, read_pauses(), silent, embed, own, named, advised
    )
    expected, pages = source.position, 0
    for pages, page in enumerate(transcript.pages(), 1):  # noqa: B007
        place = Source(uri, "transcript", position=page.position.offset)
        home, part = _take(reading, page, place, home, expected)
        expected = place.position
        yield part
    if not pages:
        yield Indexed(unchanged=1)


class OpenTranscript(NamedTuple):
    """Transcript being read, with the parts that memory must skip."""

    memory: Bethink
    transcript: Transcript
    states: dict[str, Any]  # session → state after the pages read so far
    pauses: Sequence[Pause]
    silent: bool  # whether turns without a time are skipped
    embed: bool
    own: bool  # whether the file is in the agent's own folder, or the user vouches for it
    named: bool  # whether a person named the file
    advised: bool  # whether a language model helps

    def is_paused(self, turn: Turn, scope: str) -> bool:
        if turn.at is None:
            return self.silent
        return is_covered(self.pauses, turn.at.timestamp(), scope, turn.cwd)


def _take(
    reading: OpenTranscript, page: TranscriptPage, place: Source, home: str | None, expected: int
) -> tuple[str, Indexed]:
    """Store one page: the turns of each session, in its project, and how far the file was read."""
    memory, states = reading.memory, reading.states
    # What a transcript says was not typed into Bethink: `undo` leaves it, no matter who started the reading.
    actor = BACKGROUND if memory.is_person else memory.actor
    batch = Batch(at=memory.clock(), actor=actor)
    total = Indexed(transcripts=1, lines=page.lines, skipped=dict(page.skipped))
    by_session: dict[str, list[Turn]] = {}
    for turn in page.turns:
        by_session.setdefault(turn.session, []).append(turn)
    # What Bethink asked an agent's program as its language model is nobody's conversation.
    asked = [one for one, turns in by_session.items() if READER_REQUEST in turns[0].text]
    for session in asked:
        del by_session[session]
    for session, turns in by_session.items():
        made, part = _take_session(reading, session, turns, place)
        batch, total = _together(batch, made), total.plus(part)
    for session in list(states)[:-_OPEN]:
        states[session].pop("open", None)
        states[session].pop("waiting", None)
    home = home or next((str(state["scope"]) for state in states.values()), memory.scope)
    source = place._replace(
        metadata={
            "position": _storable(page.position),
            "host": reading.transcript.host,
            "sessions": states,
            "collection": COLLECTION,
        }
    )
    memory.writer.write(
        batch._replace(expect=((home, place.uri, expected),), sources=((home, source),))
    )
    if reading.embed:
        scopes = [str(state["scope"]) for state in states.values() if state.get("scope")]
        texts = [turn.text for turn in page.turns]
        memory.complete_languages(list(dict.fromkeys(scopes)), texts, most=COMPLETED_WITH_PAGE)
    return home, total


def _take_session(
    reading: OpenTranscript, session: str, turns: Sequence[Turn], place: Source
) -> tuple[Batch, Indexed]:
    """Prepare the turns of one session for writing.

    If any turn was skipped, now or before, the agent's title and summary of the session are skipped
    too: they may quote it.
    """
    from bethink.ingest.conversation import Recipe, prepare

    memory, transcript = reading.memory, reading.transcript
    state = dict(
        reading.states.pop(session, None) or {}
    )  # the most recently active sessions come last
    known = str(state.get("scope") or "")
    stranger = _is_strange(reading, turns, state)
    if known and bool(state.get("import")) == stranger:
        scope, names = known, {}
    elif stranger:
        scope, names = memory.scope, memory.names_of(memory.scope)
    else:
        scope, names = _scope(memory, transcript, turns)
    remembered = [turn for turn in turns if not reading.is_paused(turn, scope)]
    passed = len(turns) - len(remembered)
    done = Indexed(skipped={OFF: passed} if passed else {})
    kept = {"scope": scope, **({"import": "yes"} if stranger else {})}
    title = transcript.title_of(session) or ""
    if passed or state.get("quiet"):
        kept["quiet"], title = "yes", ""
        remembered = [turn for turn in remembered if not turn.summary]
    if not remembered:
        reading.states[session] = state | kept
        return Batch(at=memory.clock(), actor=memory.actor, scopes=names), done
    remembered = _date_turns(remembered, transcript.path, memory.clock())
    before = state if "turns" in state else {}
    personal = not stranger and (not memory.shared or bool(memory.config.user))
    options = memory.write_options(scope, scopes=names, personal=personal)
    name, trust = session, TRUST["user"]
    if stranger:
        mark = make_id(place.uri)[:8]
        name, trust = f"{session}-{mark}", TRUST["import"]
        remembered = _mark_stranger(reading, remembered, scope, mark)
    embedder = memory.embedder if reading.embed else None
    asks = memory.config.llm and reading.advised
    model = language.open_language_model(memory) if asks else None
    page = name, transcript.host, place, remembered, title, before, options
    made = prepare(Recipe(*page, memory.store, embedder, memory.recent, model, trust))
    reading.states[session] = made.state | kept
    counts = {count: getattr(made, count) for count in made._fields if count in COUNTED}
    return made.batch, done.plus(Indexed(**counts, imported=int(stranger), sessions=(name,)))


def _is_strange(reading: OpenTranscript, turns: Sequence[Turn], state: Mapping[str, Any]) -> bool:
    """Return True if a conversation may come from a stranger.

    Its file is then not the agent's own, and no person read it in the project that it names.
    """
    if reading.own:
        return False
    if state.get("import") or not reading.named:
        return True
    here = reading.memory.project.scope
    if known := state.get("scope"):
        return known not in (here, reading.memory.scope)
    project = _find_project(reading.memory, reading.transcript, turns)
    return project is not None and project.scope != here


def _mark_stranger(
    reading: OpenTranscript, turns: Sequence[Turn], scope: str, mark: str
) -> list[Turn]:
    """Give turns of a stranger's file ids that cannot collide with those of the agent's own files.

    So they can neither replace nor suppress real turns. Turns known from the agent's own files, and
    purged ones, are left out.
    """
    host, store = reading.transcript.host, reading.memory.store
    known = store.find_known_turns(scope, [turn_identity(host, turn.id) for turn in turns])
    fresh = (turn for turn in turns if turn_identity(host, turn.id) not in known)
    return [turn._replace(id=f"{mark}:{turn.id}") for turn in fresh]


def _date_turns(turns: list[Turn], file: Path, now: datetime) -> list[Turn]:
    """Limit the times of turns to now. If the agent records no times, use that of the file."""
    if any(turn.at for turn in turns):
        return [turn._replace(at=min(turn.at, now) if turn.at else None) for turn in turns]
    written = min(datetime.fromtimestamp(file.stat().st_mtime, UTC), now)
    return [turn._replace(at=written) for turn in turns]


def _storable(position: Position) -> dict[str, Any]:
    """Position without secrets in the names of folders, branches and files."""
    named, _ = redact_value(
        {name: position.state[name] for name in NAMED if name in position.state}
    )
    return position._replace(state={**position.state, **named})._asdict()


def _together(one: Batch, other: Batch) -> Batch:
    names = ("sessions", "spans", "add", "change", "relate")
    joined: dict[str, Any] = {name: getattr(one, name) + getattr(other, name) for name in names}
    return one._replace(
        **joined,
        scopes={**one.scopes, **other.scopes},
        model=other.model or one.model,
        vectors={**one.vectors, **other.vectors},
        made_of={**one.made_of, **other.made_of},
        cache={**one.cache, **other.cache},
    )


def _scope(
    memory: Bethink, transcript: Transcript, turns: Sequence[Turn]
) -> tuple[str, dict[str, tuple[str, str]]]:
    """Scope and names of the project that a conversation is about; one file may contain several."""
    project = _find_project(memory, transcript, turns)
    if project is None:
        return memory.scope, memory.names_of(memory.scope)
    projects.pin(project)
    return project.scope, {
        project.scope: (redact_name(project.name), redact_name(str(project.root)))
    }


def _find_project(
    memory: Bethink, transcript: Transcript, turns: Sequence[Turn]
) -> projects.Project | None:
    """Project of the directory that a conversation started in, even if it is gone; None if unknown."""
    began = next((turn.cwd for turn in turns if turn.cwd), None) or transcript.project
    return memory.recognise(projects.find(Path(began))) if began else None


# Looking


def sessions(memory: Bethink, limit: int = 20) -> list[Session]:
    """Conversations of this project, newest first."""
    return memory.store.sessions(memory.named_scopes, limit)


def topics(memory: Bethink, of: Session) -> list[Span]:
    """Topics of a session in order, sub-topics after their topics."""
    return memory.store.spans(of.id, (of.scope,))


def surroundings(memory: Bethink, id: str, turns: int) -> list[Memory]:
    """Context of a memory in its source: turns of a conversation, or passages of a document."""
    return [
        found
        for found in memory.store.around(memory.resolve(id), turns, turns)
        if found.scope in memory.scopes
    ]
