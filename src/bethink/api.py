"""`Bethink`, the API that the command line, MCP, hooks and HTTP translate to and from."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from bethink import config as configuration
from bethink import ingest, plugins
from bethink import project as projects
from bethink.config import Config, locate_database
from bethink.embed import LazyModel, compares_statements, open_other, without_vectors
from bethink.errors import (
    Ambiguous,
    BethinkError,
    EmbeddingError,
    InvalidInput,
    JudgeError,
    NeedsPerson,
    NotFound,
    StoreBusy,
    StoreError,
    StoreReadOnly,
)
from bethink.model import (
    AUTOMATIC,
    EVERYTHING,
    MODES,
    NOTHING,
    PERSONAL,
    RELATIONS,
    TEAM,
    TRUST,
    Answer,
    Batch,
    Change,
    Entity,
    Event,
    Filter,
    Forgotten,
    Memory,
    Outcome,
    Passage,
    Receipt,
    Relation,
    Session,
    Source,
    fields_of,
    is_agent,
    make_passage,
    supersede,
)
from bethink.recall.pipeline import Ask, recall
from bethink.recall.rank import PROFILES, Profile, find_profile
from bethink.store.base import Overview, Problem, Store
from bethink.store.places import EMBEDDING_TEXT, embedded_text
from bethink.store.rows import stamp
from bethink.text import as_entity, check_choice, check_kind, check_range

if TYPE_CHECKING:
    from random import Random

    from bethink.embed.base import Embedder
    from bethink.ingest.compare import WriteOptions
    from bethink.ingest.edit import Traces
    from bethink.ingest.pipeline import Recent
    from bethink.ingest.sync import Document, Skipped, SourceUpdate, Synced
    from bethink.ingest.undo import LastChange, Step
    from bethink.judge import Judge
    from bethink.recall.signals import Signal

Done = TypeVar("Done")
EMBEDDED_FIELDS = {"content", "metadata"}  # what vectors are made of
PERSON_HINT = "The user does it in their own terminal, or on the web page: bethink ui"
# Memories that a write gives a vector for other languages, its own first: half a second. The worker and `reindex` have no such limit.
COMPLETED_AT_ONCE = 256
CANDIDATES = 5  # sessions that are named at most where a prefix fits several


def make_rng(profile: Profile, seed: int | None) -> Random | None:
    """Return the source of chance for a profile with jitter."""
    if not profile.jitter:
        return None
    from random import Random  # half a millisecond, which few searches need

    return Random(seed)


def open_store(config: Config, project: projects.Project) -> Store:
    """Open the database that the settings name, else the project's own, else the user's."""
    target = config.database
    if config.shared:
        try:
            from bethink.store.postgres import PostgresStore
        except ImportError as error:
            raise StoreError(
                f"PostgreSQL needs a package that is not installed: {error.name}.",
                "pip install 'bethink[postgres]'",
            ) from error
        return PostgresStore(
            target, tenant=config.tenant, user=config.user, timeout=config.busy_timeout
        )
    if "://" in target:
        scheme = target.partition("://")[0]
        raise StoreError(
            f"Unsupported database URL: {scheme}://.",
            "Give a path, or postgresql://USER@HOST/NAME.",
        )
    from bethink.store.sqlite import SqliteStore

    return SqliteStore(Path(locate_database(config, project)), config.busy_timeout)


class Bethink:
    """Long-term memory of one project (and what is personal), seen from a directory.

    >>> with Bethink() as memory:
    ...     memory.add("We deploy from main, never from a branch", kind="decision")
    ...     memory.search("how do we deploy?").hits[0].memory.content
    """

    def __init__(
        self,
        database: str | Path | None = None,
        *,
        directory: str | Path | None = None,
        container: str | None = None,
        config: Config | None = None,
        store: Store | None = None,
        embedder: Embedder | None = None,
        judge: Judge | None = None,
        actor: str = "user",
        trust: int | None = None,
        everywhere: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        on_pull: Callable[[int, int | None], None] | None = None,
    ) -> None:
        self.project = projects.find(Path(directory) if directory else None)
        self.config = config or configuration.load(self.project.root)
        if database:
            self.config = self.config._replace(database=str(database))
        self.shared = self.config.shared
        if container and ingest.redact.redact(container).text != container:
            # Scopes are shown and stored.
            raise InvalidInput("The name of the container holds a secret.", "Use another name.")
        self.container, self.everywhere = container, everywhere
        most = TRUST["agent" if is_agent(actor) else "user"]
        self.actor, self.clock = actor, clock
        self.trust = most if trust is None else min(trust, most)
        self.stored_here: set[str] | None = (
            None  # ids of what an agent stored in its session, if known
        )
        self.store: Store = store or open_store(self.config, self.project)
        self.project = self.recognise(self.project)
        self._model = LazyModel(self.config, embedder, on_pull)
        self._other: Embedder | None = None
        self._judge = judge

    def recognise(self, project: projects.Project) -> projects.Project:
        """Return a project with the id that this database uses for its folder, or that of its team."""
        known = () if project.confirmed else tuple(self.store.items("scopes"))
        recognise = projects.recognise_team if self.shared else projects.recognise
        return recognise(project, known, lambda path: ingest.redact.redact_name(path))

    def rest_model(self, error: EmbeddingError) -> None:
        """Search by words alone from now on, and say why in `hints`. Copies of this object are not affected."""
        self._model = LazyModel(self.config, None)
        self._model.rest(error)

    @property
    def is_model_due(self) -> bool:
        """Return True if a model that failed would be tried again by the next call that needs it."""
        return self._model.is_due

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database. A `with` block does it by itself."""
        self.writer.close()

    @property
    def writer(self) -> Store:
        """The store with its writing methods. A caller who may only read has a `ReadStore` in `store`."""
        return self.store

    @property
    def is_person(self) -> bool:
        """Return True if a person writes here, rather than an agent."""
        return self.trust >= TRUST["user"]

    def require_person(self, what: str) -> None:
        """Refuse an agent something that only a person may do."""
        if not self.is_person:
            raise NeedsPerson(f"{what} is for the user, not for an agent.", PERSON_HINT)

    # Scopes

    @property
    def scope(self) -> str:
        """Return the scope that `add` writes to: the container if one was chosen, else the project."""
        return self.project.container(self.container) if self.container else self.project.scope

    @property
    def scopes(self) -> tuple[str, ...]:
        """Return the scopes a recall sees by default: this project or container, personal ones, the team's."""
        return (self.scope, PERSONAL, *((TEAM,) if self.shared else ()))

    def every_scope(self) -> tuple[str, ...]:
        """Return all scopes of the database, for looking across projects."""
        return tuple(self.store.scopes())

    @property
    def reads_files(self) -> bool:
        """Return True if the caller may let files of this machine be read."""
        return True

    @property
    def named_scopes(self) -> tuple[str, ...]:
        """Return the scopes in which an id is looked up: those a recall sees, or every project."""
        return self.every_scope() if self.everywhere else self.scopes

    # The embedding model

    @property
    def embedder(self) -> Embedder | None:
        """Return the configured model, opened on first use; None if it is unavailable, and `hints` says why."""
        return self._model.embedder

    @property
    def local_embedder(self) -> Embedder | None:
        """Return the model if it is installed and runs in this process: hooks send no prompt anywhere."""
        return self._model.local

    @property
    def other_embedder(self) -> Embedder | None:
        """Return the model for texts that are not in English, or None if the first one reads them."""
        if self._other is None and (main := self.embedder) is not None:
            self._other = open_other(self.config, main)
        return self._other

    def complete_languages(
        self,
        scopes: Sequence[str],
        texts: Iterable[str] = (),
        most: int | None = COMPLETED_AT_ONCE,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> int:
        """Make missing vectors for other languages in these scopes, and return their number."""
        other, always = self.other_embedder, self.config.languages == "all"
        if other is None or not scopes:
            return 0
        try:
            if not ingest.languages.is_needed(texts, scopes, other, self.store, always):
                return 0
            return ingest.languages.complete(
                scopes, other, self.writer, self.clock(), self.actor, most, goes_on
            )
        except EmbeddingError:  # `doctor` says how many are missing
            return 0

    @cached_property
    def judge(self) -> Judge | None:
        """Return the model that relates a new statement to a known one; None where there is none."""
        if self._judge or not compares_statements(self.config):
            return self._judge
        from bethink.judge import Judge

        return Judge(self.config.threads)

    @cached_property
    def reader(self) -> Judge | None:
        """Return the model that finds ideas in conversations, also without embeddings; None if it cannot open."""
        return self._judge or ingest.ideas.open_reader(self.config, self.judge)

    @cached_property
    def recent(self) -> Recent:
        """Return the vectors that this process made last."""
        return ingest.pipeline.Recent()

    @property
    def hints(self) -> tuple[str, ...]:
        """Return why meaning cannot be searched right now, if it cannot."""
        return self._model.hints

    def _ready_embedder(self, mode: str) -> tuple[Embedder | None, tuple[str, ...]]:
        """Return the embedder for a search, and hints where meaning cannot be searched."""
        if mode == "keyword":
            return None, ()
        embedder = self.embedder
        if embedder is None and mode == "vector":
            raise self._model.explain_missing()
        if embedder is None:
            return None, self.hints
        other = self.other_embedder
        used = (embedder.model, other.model if other else "")
        others = [model for model in self.store.models() if model not in used]
        if not others:
            return embedder, ()
        return embedder, (
            f"Some memories were embedded with {', '.join(others)}, not {embedder.model}, and are found by words only. Run `bethink reindex`.",
        )

    # Writing

    def add(
        self,
        content: str,
        *,
        kind: str | None = None,
        summary: str | None = None,
        importance: float | None = None,
        confidence: float | None = None,
        tags: Sequence[str] = (),
        entities: Sequence[str | Entity] = (),
        expires_at: datetime | None = None,
        valid_from: datetime | None = None,
        metadata: dict[str, Any] | None = None,
        embedding_text: str | None = None,
        personal: bool = False,
        team: bool = False,
        supersedes: Sequence[str] = (),
        source: str | None = None,
        dedup: bool | None = None,
        automatic: str | None = None,
        allow_purged: bool = False,
        **more: object,
    ) -> Outcome:
        """Store one statement; `more` are other fields that `bethink.model` declares editable.

        `duplicate` means that the same text is stored already; `near_duplicate` that a stored memory says the same, and keeps these
        words as a version. `dedup` and `automatic` override the settings of these names. `embedding_text` is embedded in place of the
        content.
        """
        known = fields_of(Memory)
        for name in more:
            if name not in known or not known[name].addable:
                raise TypeError(f"add() got an unexpected keyword argument {name!r}")
        passage = make_passage(
            content=content,
            kind=check_kind(kind),
            summary=summary,
            importance=importance,
            confidence=confidence,
            tags=tuple(tags),
            entities=tuple(map(as_entity, entities)),
            expires_at=expires_at,
            valid_from=valid_from,
            metadata=(metadata or {})
            | ({EMBEDDING_TEXT: embedding_text} if embedding_text else {}),
            supersedes=tuple(self.resolve(id) for id in supersedes),
            **more,
        )
        return self.add_many(
            [passage],
            personal=personal,
            team=team,
            source=source,
            dedup=dedup,
            automatic=automatic,
            allow_purged=allow_purged,
        ).outcomes[0]

    def add_many(
        self,
        passages: Sequence[Passage],
        *,
        personal: bool = False,
        team: bool = False,
        source: str | None = None,
        dedup: bool | None = None,
        automatic: str | None = None,
        allow_purged: bool = False,
    ) -> Receipt:
        """Store several statements in one transaction."""
        if allow_purged:
            self.require_person("Storing a text again that was purged")
        if team and not self.shared:
            raise InvalidInput(
                "This database is yours alone; there is no team in it.",
                "Set `database` to the team's postgresql:// URL.",
            )
        options = self.write_options(
            PERSONAL if personal else TEAM if team else self.scope,
            dedup=self.config.dedup if dedup is None else dedup,
            automatic=check_choice("automatic", automatic or self.config.automatic, AUTOMATIC),
            allow_purged=allow_purged,
            own=None if self.stored_here is None else frozenset(self.stored_here),
        )
        for passage in passages:
            if passage.expires_at and stamp(passage.expires_at) <= stamp(options.now):
                raise InvalidInput(
                    f"The expiry {passage.expires_at.isoformat()} is in the past.",
                    "Give a later time, such as 30d.",
                )
        receipt = self._ingest(
            [(Source(source or f"note:{self.actor}", "note"), passages)], options
        )
        if self.stored_here is not None:
            self.stored_here |= {one.id for one in receipt.outcomes}
        return receipt

    def ingest(
        self,
        groups: Sequence[tuple[Source, Sequence[Passage]]],
        *,
        scope: str | None = None,
        trust: int = TRUST["import"],
        replace_sources: bool = True,
    ) -> Receipt:
        """Store sources of many passages in one transaction, in place of what each source held before."""
        options = self.write_options(scope or self.scope, unique=False, trust=trust)
        return self._ingest(groups, options, replace_sources=replace_sources)

    def sync(
        self,
        documents: Iterable[Document | Skipped],
        *,
        collection: str,
        type: str,
        looked: Callable[[str], bool] = lambda uri: True,
        alive: Callable[[str], bool] = lambda uri: True,
        progress: Callable[[int], None] | None = None,
        dry_run: bool = False,
        trust: int = TRUST["import"],
    ) -> Synced:
        """Update the memories of a collection of sources to what its reader finds now (`ingest/sync.py`).

        A dry run only reports which sources would change."""
        options = self.write_options(self.scope, unique=False, trust=trust, lenient=True)

        def write(steps: Sequence[SourceUpdate]) -> Receipt:
            groups = [(step.source, step.passages) for step in steps]
            moved = {step.source.uri: step.moved_from for step in steps if step.moved_from}
            return self._ingest(groups, options._replace(now=self.clock()), True, moved)

        def retire(uris: Sequence[str]) -> int:
            return self.write(vanish=tuple((self.scope, uri) for uri in uris)).retired

        target = ingest.sync.Collection(
            collection,
            type,
            known={source.uri: source for source in self.store.sources(self.scope)},
            write=(lambda steps: Receipt()) if dry_run else write,
            retire=(lambda uris: 0) if dry_run else retire,
            exists=alive,
        )
        return ingest.sync.sync(documents, target, looked, progress)

    def write_options(self, scope: str, **changes: Any) -> WriteOptions:
        """Return the options for writing to a scope from here, with the caller's changes."""
        options = ingest.compare.WriteOptions(
            scope=scope,
            now=self.clock(),
            actor=self.actor,
            trust=self.trust,
            dedup=self.config.dedup,
            automatic=self.config.automatic,
            threshold=self.config.dedup_threshold,
            longest=self.config.max_characters,
            judge=lambda: self.judge,
            reader=lambda: self.reader,
        )
        if "scopes" not in changes:
            changes["scopes"] = self.names_of(scope)
        return options._replace(**changes)

    def names_of(self, scope: str) -> dict[str, tuple[str, str]]:
        """Return display name and path of a scope, stored with the first batch that uses it."""
        identity, slash, container = scope.partition(":")[2].partition("/")
        if identity == self.project.identity:
            projects.pin(self.project)
            redact = ingest.redact.redact_name
            name = f"{self.project.name}{slash}{container}"
            return {scope: (redact(name), redact(str(self.project.root)))}
        return {scope: (scope, "")} if scope in (PERSONAL, TEAM) else {}

    def _ingest(
        self,
        groups: Sequence[tuple[Source, Sequence[Passage]]],
        options: WriteOptions,
        replace_sources: bool = False,
        moved: Mapping[str, str] = NOTHING,
    ) -> Receipt:
        # Without a model the passages are stored all the same.
        receipt = self._do_with_model(
            lambda embedder: ingest.pipeline.ingest(
                groups, options, self.writer, embedder, self.recent, replace_sources, moved
            )
        )
        self.complete_languages(
            [options.scope], [one.content for _, passages in groups for one in passages]
        )
        return receipt._replace(hints=(*receipt.hints, *self.hints))

    def _do_with_model(self, work: Callable[[Embedder | None], Done]) -> Done:
        """Run work with the model, or without it where it fails."""
        try:
            return work(self.embedder)
        except EmbeddingError as error:
            self._model.rest(error)
            return work(None)

    def update(
        self, id: str, *, clear: Sequence[str] = (), was: Memory | None = None, **fields: object
    ) -> Memory:
        """Change a memory; the old version stays in its history.

        Fields: content, summary, kind, importance, confidence, tags, entities, expires_at, valid_from, valid_to, answered, metadata,
        embedding_text. `clear` names times to be emptied, such as expires_at. With `was`, the memory as it was read, it is changed only if
        nobody else changed it since.
        """
        memory = was or self.one(id)
        unchanged = ((was.id, was.updated_at),) if was else ()
        fields = ingest.edit.place_embedding_text(memory, fields)
        return self._edit(memory, fields, clear, min(memory.trust, self.trust), unchanged)

    def _edit(
        self,
        memory: Memory,
        fields: dict[str, Any],
        clear: Sequence[str],
        trust: int,
        unchanged: object = (),
        first: tuple[Change, ...] = (),
    ) -> Memory:
        values = {name: value for name, value in fields.items() if value is not None}
        changes = ingest.edit.edit_values(memory, values, clear, self.config.max_characters, trust)
        if not self.is_person and all(
            getattr(memory, name) == new for name, new in changes.items()
        ):
            return memory
        new = memory._replace(**{name: changes[name] for name in changes.keys() & EMBEDDED_FIELDS})
        vectors = self.vectors_of([new]) if embedded_text(new) != embedded_text(memory) else {}
        change = (*first, Change(memory.id, "update", changes))
        written = self._write_to(memory, change=change, unchanged=unchanged, **vectors)
        if vectors:
            self.complete_languages([written.scope], [written.content])
        return written

    def _write_to(self, memory: Memory, **parts: object) -> Memory:
        """Write the parts of a batch, and return the memory as it is then."""
        self.write(**parts)
        return self.store.get([memory.id])[0]

    def vectors_of(self, memories: Sequence[Memory]) -> dict[str, Any]:
        """Return the parts of a batch that give memories new vectors; nothing where there is no model."""
        texts = {memory.id: embedded_text(memory) for memory in memories}

        make = ingest.pipeline.make_batch_parts
        return self._do_with_model(
            lambda embedder: (
                make("vectors", texts, embedder, self.recent, self.store) if embedder else {}
            )
        )

    def find_traces(self, purged: Sequence[Memory]) -> Traces:
        """Find copies of a purged text in conversations."""
        return ingest.edit.find_traces(self.store, purged, self.every_scope())

    def forget(self, *ids: str, purge: bool = False) -> Forgotten:
        """Hide memories (`restore` brings them back), or remove every trace of them with `purge`.

        A purge includes what their conversation says in the very same words. An agent hides what is trusted no more than the agent. The
        rest, and every purge, is a request that waits in the inbox; `phrase` is the message by which the user grants it.
        """
        from bethink import consent  # and with it the transfer between stores

        found = self.store.get([self.resolve(id) for id in ids])
        allowed = [one for one in found if self._may_remove(one, purge)]
        gone = tuple(one.id for one in allowed)
        changes: tuple[Change, ...] = ()
        if purge and allowed:
            gone += tuple(one.id for one in self.find_traces(allowed).same)
        else:
            living = [one for one in allowed if one.deleted_at is None]
            hidden = {"deleted_at": self.clock()}
            changes = tuple(Change(one.id, "forget", hidden) for one in living)
        receipt = self.write(change=changes, purge=gone if purge else ())
        consent.close(self.store, gone)
        proposed = tuple(one.id for one in found if not self._may_remove(one, purge))
        phrase = ""
        if proposed:
            action = "purge" if purge else "forget"
            phrase = consent.ask(self.store, action, proposed, self.actor, self.clock())
        return Forgotten(gone, receipt.hints, proposed, phrase)

    def _may_remove(self, memory: Memory, purge: bool) -> bool:
        """Return True if a memory may be hidden or purged from here without asking a person."""
        return self.is_person or (memory.trust <= self.trust and not purge)

    def restore(self, id: str, version: int | None = None) -> Memory:
        """Restore a forgotten or replaced memory, reopen a settled one, or restore an earlier version.

        `version` is a number from `history`. A memory that is both forgotten and replaced is as replaced afterwards as it was when it was
        forgotten. What had replaced or settled it stays beside it, and is not asked about again.
        """
        memory = self.one(id)
        self._refuse_overruling(memory)
        if version is not None:
            return self._restore_version(memory, version)
        undone = ""
        if memory.deleted_at is not None:
            change = Change(memory.id, "restore", {"deleted_at": None})
        elif memory.superseded_by:
            undone, change = "supersedes", Change(memory.id, "restore", {"superseded_by": None})
        elif memory.answered:
            undone, change = "answers", Change(memory.id, "reopen", {"answered": False})
        else:
            raise InvalidInput(
                f"The memory {memory.id} is neither forgotten nor replaced nor settled.",
                f"`bethink history {memory.id}` lists versions for --to.",
            )
        gone = self._relations_to(memory.id, undone, "may_replace") if undone else []
        beside = {Relation(one.source, memory.id, "relates_to") for one in gone}
        return self._write_to(memory, change=(change,), unrelate=tuple(gone), relate=tuple(beside))

    def undo(self, change: LastChange | None = None) -> builtins.list[Step]:
        """Undo your last change. Called again, it goes one change further back.

        A change is everything that one call wrote: a note, and what it replaced or closed. `change` is what `find_last_change` returned.
        """
        plan = ingest.undo.plan(self.store, change or self.find_last_change(), self.clock())
        vectors = self.vectors_of(plan.reworded) if plan.reworded else {}
        self.write(
            change=plan.changes,
            unrelate=plan.unrelate,
            relate=plan.relate,
            unchanged=plan.unchanged,
            **vectors,
        )
        now = {one.id: one for one in self.store.get([step.memory.id for step in plan.steps])}
        return [step._replace(memory=now[step.memory.id]) for step in plan.steps]

    def find_last_change(self) -> LastChange:
        """Return the change that `undo` would take back."""
        return ingest.undo.find_last_change(self.store, self.named_scopes, self.actor)

    def _refuse_overruling(self, memory: Memory) -> None:
        """Refuse to let an agent bring back what a person hid or replaced, even if an agent had written it."""
        hidden = ("deleted_at", "superseded_by")
        if self.is_person or not any(getattr(memory, name) for name in hidden):
            return
        events = self.store.history(memory.id)
        by = [event.actor for event in events if any(event.after.get(name) for name in hidden)]
        if by and not is_agent(by[-1]):
            self.require_person("Bringing back what the user hid or replaced")

    def _restore_version(self, memory: Memory, version: int) -> Memory:
        events = self.store.history(memory.id)
        if version not in range(1, len(events) + 1):
            raise NotFound(
                f"The memory has no version {version}; it has {len(events)}.",
                f"`bethink history {memory.id}` lists them.",
            )
        back = Change(memory.id, "restore", {"deleted_at": None})
        first = (back,) if memory.deleted_at is not None else ()
        values = ingest.edit.values_of_version(events, version)
        if not values:
            return self._write_to(memory, change=first)
        cleared = [name for name, value in values.items() if value is None]
        trust = ingest.edit.trust_of_version(memory, events, version, self.trust)
        return self._edit(memory, values, cleared, trust, first=first)

    def vote(self, id: str, value: float = 1) -> Memory:
        """Vote a memory useful (or, below zero, not useful). Counts as a use of it."""
        memory = self.one(id)
        check_range("vote", value, -100, 100)
        vote = Change(memory.id, "vote", {"vote": value})
        return self._write_to(memory, change=(vote,), access=(memory.id,))

    def link(self, source: str, target: str, type: str = "relates_to") -> Relation:
        """Relate two memories. `supersedes` ends the target's validity; `answers` closes a question.

        A caller who is trusted less than the target only proposes to replace it: the returned relation is `may_replace`.
        """
        check_choice("relation", type, RELATIONS)
        new, old = self.one(source), self.one(target)
        if new.id == old.id:
            raise InvalidInput("A memory cannot be related to itself.", "Give two different ids.")
        related, changes = [type], tuple[Change, ...]()
        if type == "supersedes" and self.trust < old.trust:
            related = ["may_replace", "contradicts"]
        elif type == "supersedes":
            changes = (supersede(old.id, new),)
            inherits = new.kind == "general" and old.kind in ingest.reconcile.STATED_KINDS
            if inherits and new.trust <= self.trust:
                changes += (Change(new.id, "update", {"kind": old.kind}),)
        elif type == "answers" and not old.answered:
            changes = (Change(old.id, "answer", {"answered": True}),)
        relations = tuple(Relation(new.id, old.id, one) for one in related)
        self.write(relate=relations, change=changes)
        return relations[0]

    def unlink(self, source: str, target: str, type: str = "relates_to") -> Relation:
        """Remove a relation and undo what it changed, unless another one of its type still says so."""
        relation = Relation(self.resolve(source), self.resolve(target), type)
        known = self._relations_to(relation.target, type)
        others = [other for other in known if other.source != relation.source]
        if len(others) == len(known):
            raise NotFound(
                f"{relation.source} has no '{type}' relation to {relation.target}.",
                f"bethink get {relation.source} shows its relations.",
            )
        changes = tuple[Change, ...]()
        if type == "supersedes" and self.one(target).superseded_by == relation.source:
            self._refuse_overruling(self.one(target))
            changes = (Change(relation.target, "restore", {"superseded_by": None}),)
        elif type == "answers" and not others:
            changes = (Change(relation.target, "reopen", {"answered": False}),)
        self.write(unrelate=(relation,), change=changes)
        return relation

    def _relations_to(self, id: str, *types: str) -> builtins.list[Relation]:
        """Return the relations of these types whose target is this memory."""
        return [one for one in self.store.relations([id]) if one.target == id and one.type in types]

    def touch(self, ids: Sequence[str]) -> None:
        """Count a use of these memories."""
        self.store.touch(ids, self.clock(), self.actor)

    def write(self, **parts: Any) -> Receipt:
        """Write the parts of a `Batch`, now and as this actor. An agent changes nothing that a person wrote."""
        writer = self.writer
        batch = Batch(at=self.clock(), actor=self.actor, **parts)
        if not self.is_person and (touched := ingest.edit.touched_ids(batch)):
            known = {one.id: one for one in self.store.get(sorted(touched))}
            ingest.edit.check_authority(batch, known, self.trust)
        return writer.write(batch)

    # Reading

    def resolve(self, id: str) -> str:
        """Return the full id of a prefix, among the memories visible from here, or of every project."""
        try:
            return self.store.resolve(id, None if self.everywhere else self.scopes)
        except NotFound as error:
            own = f"container:{self.project.identity}/"
            for scope in filter(lambda one: one.startswith(own), self.every_scope()):
                with suppress(BethinkError):
                    self.store.resolve(id, (scope,))
                    name = scope.removeprefix(own)
                    error.hint = f"It is in the container {name}: add `--container {name}`."
            raise

    def find_session(self, prefix: str, scopes: Sequence[str] = ()) -> Session:
        """Return the conversation whose id starts with `prefix`, in the visible or these scopes."""
        found = self.store.sessions(scopes or self.named_scopes, CANDIDATES, 0, prefix)
        if not found:
            raise NotFound(
                f"There is no session whose id starts with '{prefix}'.",
                "`bethink sessions` lists them; `--all-projects` those of other projects.",
            )
        if len(found) > 1 and found[0].id != prefix:
            shown = ", ".join(one.id for one in found)
            raise Ambiguous(
                f"'{prefix}' fits several sessions: {shown}.",
                "Type a few more characters of the id.",
            )
        return found[0]

    def one(self, id: str) -> Memory:
        """Return a memory by id or unique prefix, without counting a use of it."""
        found = self.store.get([self.resolve(id)])
        if not found:
            raise NotFound(f"There is no memory {id}.", "`bethink list` shows what there is.")
        return found[0]

    def get(self, *ids: str, count: bool = True) -> list[Memory]:
        """Return memories by id or unique prefix.

        Counts as a use of each, unless another process holds the database or it is read-only.
        """
        full = [self.resolve(id) for id in ids]
        if count:
            with suppress(StoreBusy, StoreReadOnly):
                self.touch(full)
        return self.store.get(full)

    def filter(self, **wanted: Any) -> Filter:
        """Make a filter over the visible scopes; the names are those of `Filter`."""
        kinds = tuple(check_kind(kind) or "" for kind in wanted.pop("kinds", ()) or ())
        return Filter(
            scopes=wanted.pop("scopes", None) or self.scopes,
            kinds=kinds,
            now=self.clock(),
            **{name: value for name, value in wanted.items() if value is not None},
        )

    @property
    def signals(self) -> tuple[Signal, ...]:
        """Return the ranking signals of plugins that count in searches from here."""
        return plugins.signals(self.config.signals)

    def search(
        self,
        query: str,
        *,
        filter: Filter | None = None,
        mode: str | None = None,
        profile: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        threshold: float | None = None,
        seed: int | None = None,
        related: bool = True,
        hypothesis: str = "",
        rerank: bool = False,
        context: str = "",
    ) -> Answer:
        """Return the memories that best answer a question, best first. Never writes.

        If nothing fits, few hits come or none, and `hints` says so, unless a `threshold` is given. A `hypothesis` of the answer is
        searched for too. `rerank` lets the judge read the first hits again, where there is one and the order is by relevance. `context`
        is the conversation so far, for a question that only refers to it.
        """
        if not query.strip():
            raise InvalidInput(
                "The question is empty.",
                "Ask in words, such as: how do we deploy? A list needs no question.",
            )
        config = self.config
        mode = check_choice("mode", mode or config.mode, MODES)
        profile = profile or "relevance"
        weights = find_profile(profile, config.profiles)
        by_relevance = weights == PROFILES["relevance"]
        embedder, hints = self._ready_embedder(mode)
        ask = Ask(
            filter=filter or self.filter(),
            mode=mode if embedder else "keyword",
            fusion=config.fusion,
            profile=profile,
            weights=weights,
            signals=self.signals,
            limit=config.limit if limit is None else limit,
            offset=offset,
            gate=config.min_similarity,
            threshold=config.threshold if threshold is None else threshold,
            related=related,
            hints=hints,
            hypothesis=hypothesis,
            context=context,
            sift=threshold is None and by_relevance,
            rerank=rerank and by_relevance,
        )
        judge = self.judge if ask.mode != "keyword" else None
        other = self.other_embedder if ask.mode != "keyword" else None
        try:
            rng = make_rng(weights, seed)
            return recall(query, ask, self.store, embedder, self.clock(), rng, judge, other)
        except EmbeddingError as error:
            if mode == "vector":
                raise
            ask = ask._replace(mode="keyword", hints=(without_vectors(error),))
            embedder = None
        except JudgeError as error:
            ask = ask._replace(hints=(*hints, error.full_message))
        return recall(query, ask, self.store, embedder, self.clock(), make_rng(weights, seed))

    def list(
        self,
        *,
        filter: Filter | None = None,
        limit: int = 50,
        offset: int = 0,
        order: str = "created",
    ) -> builtins.list[Memory]:
        """List memories in order: created (newest first), oldest, importance, used, useful or updated."""
        return self.store.list(filter or self.filter(), limit, offset, order)

    def history(self, id: str) -> builtins.list[Event]:
        """Return every change of a memory, oldest first; version numbers count from 1."""
        return self.store.history(self.resolve(id))

    def relations(self, id: str) -> builtins.list[Relation]:
        """Return the relations of a memory, in both directions."""
        return self.store.relations([self.resolve(id)])

    def stats(self, scopes: Sequence[str] | None = None) -> Overview:
        """Return numbers about the database, or about some scopes of it."""
        return self.store.overview(scopes)

    def export(
        self, filter: Filter | None = None, lost: builtins.list[str] | None = None
    ) -> Iterator[Memory]:
        """Yield every memory that is visible from here, forgotten ones included, one at a time.

        With `lost`, a damaged database yields what can be read, and lists the rest there.
        """
        return self.store.scan(filter or self.filter(**EVERYTHING), lost)

    # Care

    def reindex(
        self, *, full: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Give every memory and topic a vector of the current model. Can be interrupted and resumed."""
        embedder = self.embedder
        if embedder is None:
            raise self._model.explain_missing()
        try:
            done = ingest.pipeline.reindex(
                self.writer,
                embedder,
                self.recent,
                self.write,
                full,
                progress,
                keep=self.other_embedder,
            )
            return done + self._reindex_languages()
        except EmbeddingError as error:
            self._model.rest(error)
            raise EmbeddingError(
                without_vectors(error), "`bethink reindex` goes on from here."
            ) from error

    def _reindex_languages(self) -> int:
        """Make the missing vectors for other languages in every scope that has such texts."""
        done = 0
        for scope in self.every_scope() if self.other_embedder else ():
            texts = (one.content for one in self.store.scan(self.filter(scopes=(scope,))))
            done += self.complete_languages([scope], texts, most=None)
        return done

    def check(self, deep: bool = False) -> builtins.list[Problem]:
        """Return problems of the database; `deep` reads every page and every row."""
        return self.store.check(deep)

    def backup(self, path: str | Path) -> int:
        """Copy the database to one new file, while others go on writing. Returns its size in bytes."""
        return self.writer.backup(str(Path(path).expanduser()))

    def reset(self, scopes: Sequence[str] | None = None) -> int:
        """Remove everything, or everything in some scopes, for good. Returns the number of memories removed."""
        writer = self.writer
        self.require_person("Removing all memories")
        return writer.reset(scopes)
