"""The memories that requests work on: one per project, all on one store and one embedding model where the settings agree.

What a request gets is a view for its caller: the project that it may see and, if allowed, what is personal; with a token for
reading, a store that refuses to write. Threads are few and lasting, because the store keeps a connection for each.
"""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from bethink import config as configuration
from bethink import project as projects
from bethink.api import Bethink
from bethink.config import Config
from bethink.errors import Ambiguous, InvalidInput, NotFound, StoreBusy
from bethink.features.sync import team_scope
from bethink.ingest.redact import redact
from bethink.project import Project
from bethink.store import locate_database
from bethink.store.base import Store
from bethink.surface.http.security import ACCESS, Access, Caller, Forbidden
from bethink.surface.mcp.keeper import Keeper, Opened
from bethink.types import PERSONAL, TRUST, Batch, Outcome, Passage, Receipt
from bethink.types import TEAM as EVERYBODY

THREADS = 8
WAITING = 256  # requests that may wait for a thread; more are told to come back
PLACES = 1000  # projects and containers whose settings are remembered
LONGEST_NAME, LONGEST_TEAM_NAME = 4096, 200
BY_NAME = (
    "team:"  # before the name of a project that several people share, however each of them keeps it
)
UNKNOWN = "agent:unknown"
NOWHERE = Path("/dev/null")  # the folder of a project whose own is not known: nothing can lie in it

Result = TypeVar("Result")
log = logging.getLogger("bethink")


class View(Bethink):
    """A project's memory as one caller sees it."""

    caller = Caller("", "")
    added_before: frozenset[str] = frozenset()  # by an earlier attempt at the same request

    @property
    def reads_files(self) -> bool:
        return False

    @property
    def scopes(self) -> tuple[str, ...]:
        own = (self.scope, PERSONAL) if self.caller.personal else (self.scope,)
        return (*own, EVERYBODY) if self.shared else own

    def add_many(
        self, passages: Sequence[Passage], *, personal: bool = False, **how: Any
    ) -> Receipt:
        if personal and not self.caller.personal:
            raise no_personal()
        receipt = super().add_many(passages, personal=personal, **how)
        return receipt._replace(outcomes=tuple(map(self._first_outcome, receipt.outcomes)))

    def _first_outcome(self, outcome: Outcome) -> Outcome:
        """What the first attempt at a request said of a memory, where this is a later one that found it stored already."""
        if outcome.status != "duplicate" or outcome.id not in self.added_before:
            return outcome
        replaced = [
            relation.target
            for relation in self.store.relations([outcome.id])
            if relation.type == "supersedes" and relation.source == outcome.id
        ]
        return Outcome(
            outcome.id, "added", supersedes=tuple(replaced), redactions=outcome.redactions
        )

    def every_scope(self) -> tuple[str, ...]:
        return tuple(scope for scope in self.store.scopes() if self.caller.sees(scope))

    def names_of(self, scope: str) -> dict[str, tuple[str, str]]:
        # The store knows the name and folder of a project already; here they may be unknown.
        if self.project.root == NOWHERE:
            return (
                {scope: (self.project.name, "")}
                if scope == self.scope == team_scope(self.project.name)
                else {}
            )
        return super().names_of(scope)


class ReadOnly:
    """A store for those who may only read. Counting a use is part of reading."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name in ("rebuild", "drop_vectors", "backup", "reset", "take", "close"):
            raise refuse_write()
        return getattr(self._store, name)

    def write(self, batch: Batch) -> Receipt:
        if not only_counts(batch):
            raise refuse_write()
        return self._store.write(batch)


def only_counts(batch: Batch) -> bool:
    """Whether a batch does nothing but count a use, which is part of reading."""
    return batch == Batch(at=batch.at, actor=batch.actor, access=batch.access)


def refuse_write() -> Forbidden:
    return Forbidden(
        "This token may only read.",
        "`bethink token create --scope write` makes one that may change memories.",
        "write",
    )


def no_personal() -> Forbidden:
    return Forbidden(
        "This token does not see personal memories.",
        "`bethink token create --personal` makes one that does.",
    )


def check_name(name: str | None) -> None:
    """A name of a project or container is kept as it is, so one that holds a secret is refused. It is not repeated."""
    if name and redact(name).text != name:
        raise InvalidInput(
            "The name of the project or container holds something private or what looks like a secret.",
            "Choose another name.",
        )


class Place(NamedTuple):
    """One project or container, with its settings."""

    project: Project
    container: str | None
    config: Config


class Projects(Keeper):
    """Owns the memories of the server. `home` is the project that it was started for."""

    def __init__(
        self,
        directory: Path | None = None,
        database: str | None = None,
        container: str | None = None,
        threads: int = THREADS,
    ) -> None:
        super().__init__(directory, database, container, threads)
        found = projects.find(directory)
        config = configuration.load(found.root, {"database": database})
        self.shared = config.shared  # then projects are known by name
        self._tenant = config.tenant if self.shared else ""
        self.home = projects.of_team(found) if self.shared else found
        self.ended = False  # whether everything was closed at the end
        self._places: dict[tuple[Project, str | None], Place] = {}
        self._names: dict[tuple[str, str], tuple[tuple[str, ...], dict[str, str]]] = {}
        self._acting: dict[tuple[str, str], Store] = {}

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Runs a function in a thread, on behalf of the caller whose request this is."""
        if len(self._running) >= WAITING:
            raise StoreBusy(
                "The server has more calls waiting than it takes.", "Try again in a moment."
            )
        return await super().run(contextvars.copy_context().run, function, *arguments)

    def memory(self, directory: Path | None, actor: str, meaning: bool = False) -> Bethink:
        """For agents: the memory that the current request is about. Where a client says it works counts for nothing here."""
        access = ACCESS.get()
        named = (
            actor if actor != UNKNOWN else f"agent:{access.caller.name}"
        )  # a client introduces itself once, and nothing is kept of it
        return self.view(access, named, TRUST["agent"], meaning)

    def view(self, access: Access, actor: str, trust: int, meaning: bool = False) -> View:
        """The memory that a request is about, as its caller sees it."""
        caller = access.caller
        place = self._place(access)
        memory = cast(View, self._lend(self._open_for(place), meaning))
        memory.project, memory.container, memory.config = place
        memory.actor, memory.trust, memory.caller = actor, trust, caller
        memory.store = self.store_of(caller, memory.store)
        if not caller.may_write:
            memory.store = cast(Store, ReadOnly(memory.store))
        return memory

    def list_visible(self, caller: Caller) -> list[tuple[str, str, str | None]]:
        """The projects and containers that a caller may name: scope, name, and the folder where that is theirs to know."""
        known = self._list_scopes(caller)
        granted = {grant.scope: grant for grant in caller.projects or ()}
        scopes = dict.fromkeys(
            [*granted, *([self.home.scope] if caller.sees(self.home.scope) else []), *known]
        )
        own = {self.home.scope: str(self.home.root)} if self._knows_folder(caller) else {}
        folders = {**own, **{scope: grant.root for scope, grant in granted.items()}}
        names = {
            **known,
            self.home.scope: self.home.name,
            **{scope: grant.name for scope, grant in granted.items()},
        }
        return [
            (scope, names.get(scope) or scope, folders.get(scope))
            for scope in scopes
            if scope != PERSONAL and caller.sees(scope)
        ]

    def _list_scopes(self, caller: Caller) -> dict[str, str]:
        """Scope → name of everything in the caller's part of the database. Numbers come with the names and take a while, so both are kept."""
        store, whose = self.store_of(caller), (caller.tenant, caller.person)
        scopes = tuple(store.scopes())
        if scopes != self._names.get(whose, ((), {}))[0]:
            found = store.overview(()).extra.get("scope_names", {})
            if len(self._names) >= PLACES:
                self._names.clear()
            self._names[whose] = scopes, {scope: found.get(scope, "") for scope in scopes}
        return self._names.get(whose, ((), {}))[1]

    def store_of(self, caller: Caller, store: Store | None = None) -> Store:
        """The store as a caller sees it: a database that several tenants share has one for each of their people."""
        store = self.base.store if store is None else store
        acting = getattr(store, "act_as", None)
        whose = (caller.tenant or getattr(store, "name", ""), caller.person)
        if acting is None or whose == (getattr(store, "name", ""), getattr(store, "person", "")):
            return store
        if store is not self.base.store:
            return cast(Store, acting(*whose))
        if whose not in self._acting:
            if len(self._acting) >= PLACES:
                self._acting.clear()
            self._acting[whose] = acting(*whose)
        return self._acting[whose]

    @property
    def database(self) -> str | None:
        """The database that the server was told to use, if it was."""
        return self._database

    @property
    def base(self) -> Bethink:
        """The memory of the server's own project, without anybody's limits."""
        return self._base().memory

    def ready(self) -> None:
        """Raises where the database cannot be read."""
        self.base.store.scopes()

    # Which project

    def _place(self, access: Access) -> Place:
        for name in (access.project, access.container):
            check_name(name)
        project, container = self._choose_project(access), access.container
        if container is None and access.project is None and project.scope == self.home.scope:
            container = self._container
        place = self._places.get((project, container))
        if place is None:
            if len(self._places) >= PLACES:  # names of containers come from outside
                self._places.clear()
            config = configuration.load(
                None if project.root == NOWHERE else project.root, {"database": self._database}
            )
            place = self._places[project, container] = Place(project, container, config)
        return place

    def _choose_project(self, access: Access) -> Project:
        """The project that a request names; by default the one that its token is for, or the server's own."""
        caller, name = access.caller, access.project
        if name is None:
            if caller.sees(self.home.scope):
                return self._find_granted(
                    caller, str(self.home.root), self.home.scope, self.home.name
                )
            grants = caller.projects or ()
            if len(grants) != 1:
                raise InvalidInput(
                    "Which project is not said, and the token is for several.",
                    "Add ?project=NAME; GET /api/v1/projects lists them.",
                )
            return self._find_granted(caller, grants[0].root, grants[0].scope, grants[0].name)
        if name.startswith(BY_NAME):
            return self._of_team(caller, name.removeprefix(BY_NAME))
        listed = [one for one in self.list_visible(caller) if one[0].startswith("project:")]
        for place in (0, 2, 1):  # by scope, by folder, by name
            matches = [one for one in listed if one[place] == name]
            if len(matches) > 1:
                raise Ambiguous(
                    f"{len(matches)} projects are called '{name}'.",
                    f"Name it by its scope, such as {matches[0][0]}.",
                )
            if matches:
                scope, known, folder = matches[0]
                return self._find_granted(caller, folder, scope, known)
        found = None if caller.tenant else self._at(name)
        if (
            found is not None
            and caller.sees(found.scope)
            and found.scope in self._list_scopes(caller)
        ):
            return found
        raise NotFound(
            f"There is no project '{name[:200]}' here.",
            "GET /api/v1/projects lists those that there are.",
        )

    def _of_team(self, caller: Caller, name: str) -> Project:
        """A project by the name that a team gave it. There need not be anything in it yet."""
        plain = name.strip()[:LONGEST_TEAM_NAME]
        scope = team_scope(plain)
        if not plain or not caller.sees(scope):
            raise NotFound(
                f"There is no project '{BY_NAME}{plain}' here.",
                "GET /api/v1/projects lists those that there are.",
            )
        return Project(NOWHERE, NOWHERE, scope.removeprefix("project:"), plain)

    def _find_granted(self, caller: Caller, folder: str | None, scope: str, name: str) -> Project:
        """A project by its folder, if that is still the same project; otherwise by its identity alone. Tokens of a team's database name
        folders of whichever machine made them: of this one's they open the server's own, and only for its own tenant."""
        if caller.tenant:
            found = self.home if self._knows_folder(caller) else None
        else:
            found = self._at(folder) if folder else None
        return (
            found
            if found and found.scope == scope
            else Project(NOWHERE, NOWHERE, scope.removeprefix("project:"), name)
        )

    def _knows_folder(self, caller: Caller) -> bool:
        """Whether the server's own folder is a caller's to know. Another tenant's project may bear the same name."""
        return caller.tenant in ("", self._tenant)

    def _at(self, path: str) -> Project | None:
        if not path.startswith(("/", "~")) or "\0" in path or len(path) > LONGEST_NAME:
            return None
        try:
            found = projects.find(Path(path).expanduser())
        except (OSError, RuntimeError, ValueError):
            return None
        return projects.of_team(found) if self.shared else found

    # Opening

    def _base(self) -> Opened:
        return self._open_own_store((), self.home, None)

    def _open(self, directory: Path | None) -> Opened:
        return self._base()

    def _open_for(self, place: Place) -> Opened:
        """What a place is read from. By what is opened and not by who asks: names of projects come from outside, and any number of
        them may share it."""
        base, config = self._base(), place.config
        own = base.memory.config
        if _same_database(place, self.home, own) and _model(config) == _model(own):
            return base
        key = (locate_database(config, place.project), *_model(config))
        return self._open_own_store(key, place.project, config)

    def _open_own_store(
        self, key: Sequence[Any], project: Project, config: Config | None
    ) -> Opened:
        """A memory with a store of its own, known by its database and model; the server's own by nothing."""

        def make(store: Store | None) -> View:
            database = self._database if config is None else None
            memory = View(database, directory=project.worktree, config=config, store=store)
            memory.project = project
            return memory

        return self._keep(tuple(key), make)


def _same_database(place: Place, home: Project, base: Config) -> bool:
    """Whether a project lives in the server's own database and not in one of its own."""
    if place.config.database or base.database:
        return place.config.database == base.database
    return place.project.scope == home.scope or not (_has_own(place.project) or _has_own(home))


def _has_own(project: Project) -> bool:
    return project.local_database.exists() and configuration.trusts(project.root)


def _model(config: Config) -> Sequence[Any]:
    return (
        config.embedding,
        config.embedding_url,
        config.embedding_model,
        config.model_timeout,
    )
