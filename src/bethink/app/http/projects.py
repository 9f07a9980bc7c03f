"""The memories that requests work on: all projects, over the server's one store and one model.

A request gets a view for its caller: the visible project and, if allowed, personal memories; with a read-only token, a store without
writers. There are few, long-lived threads, because the store has a connection for each.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from bethink import config as configuration
from bethink import project as projects
from bethink.api import Bethink
from bethink.app.http.security import SESSION_CALLER, Caller, Grant, Tokens, refuse
from bethink.app.mcp.keeper import Keeper, Opened
from bethink.app.results import Condition, Finding
from bethink.config import locate_database
from bethink.errors import Ambiguous, BethinkError, InvalidInput, NotFound
from bethink.features import browse
from bethink.ingest.redact import redact
from bethink.model import PERSONAL, TRUST, Filter, Passage, Receipt, Strings
from bethink.model import TEAM as EVERYBODY
from bethink.project import Project
from bethink.store.base import Store
from bethink.store.readonly import ReadStore
from bethink.store.transfer import team_scope

if TYPE_CHECKING:
    from bethink.store.postgres import PostgresStore

CALLERS = 1000  # people of a team whose stores are remembered
LONGEST_TEAM_NAME = 200
# Before the name of a project that several people share, however each of them keeps it.
_BY_NAME = "team:"
UNKNOWN = "agent:unknown"
NOWHERE = Path("/dev/null")  # the folder of a project whose own is not known: nothing can lie in it

Result = TypeVar("Result")
log = logging.getLogger("bethink")


# Who asks in the current request, and which project and container it names.
ACCESS: ContextVar[tuple[Caller, str | None, str | None]] = ContextVar("bethink_access")


class View(Bethink):
    """A project's memory as one caller sees it."""

    caller = SESSION_CALLER
    server: Projects

    @property
    def writer(self) -> Store:
        if not self.caller.may_write:
            raise refuse("read-only")
        return super().writer

    @property
    def reads_files(self) -> bool:
        return False

    @property
    def scopes(self) -> Strings:
        own = (self.scope, PERSONAL) if self.caller.personal else (self.scope,)
        return (*own, EVERYBODY) if self.shared else own

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
        if personal and not self.caller.personal:
            raise refuse("personal")
        return super().add_many(
            passages,
            personal=personal,
            team=team,
            source=source,
            dedup=dedup,
            automatic=automatic,
            allow_purged=allow_purged,
        )

    def filter(self, **wanted: object) -> Filter:
        if wanted.get("scopes") == (PERSONAL,) and not self.caller.personal:
            raise refuse("personal")
        return super().filter(**wanted)

    def every_scope(self) -> Strings:
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


class Projects(Keeper):
    """The memories of the server: one database, with the settings of the project it was started in."""

    threads = 8

    def __init__(self, directory: Path | None = None, *place: str | None) -> None:
        super().__init__(directory, *place)
        self.checkup = Checkup(self)
        self.tokens: Tokens  # of those who may call
        self.started_in = projects.find(directory)
        self.config = configuration.load(self.started_in.root, {"database": self.database})
        self.shared = self.config.shared
        self.ended = False  # whether everything was closed at the end
        # A database that several tenants share has a store for each of their people.
        self._store_for = lru_cache(CALLERS)(self._act_as)

    async def run(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Run a function in a thread, on behalf of the caller of this request."""
        return await super().run(copy_context().run, function, *arguments)

    def memory(self, directory: Path | None, actor: str, meaning: bool = False) -> Bethink:
        """Return the memory of the current MCP request. The directory that a client names is ignored."""
        caller, name, container = ACCESS.get()
        # A client introduces itself once, and nothing is kept of it.
        agent = actor if actor != UNKNOWN else f"agent:{caller.name}"
        return self.view(caller, name, container, agent=agent, meaning=meaning)

    def view(
        self,
        caller: Caller,
        name: str | None = None,
        container: str | None = None,
        *,
        agent: str = "",
        meaning: bool = False,
    ) -> View:
        """The memory of a project and container as a caller sees it, or an agent on its behalf."""
        # A name is kept as it is, so one that holds a secret is refused. It is not repeated.
        if any(redact(one).text != one for one in (name, container) if one):
            raise InvalidInput(
                "The name of the project or container holds something private or what looks like a secret.",
                "Choose another name.",
            )
        project = self._choose_project(caller, name)
        if container is None and name is None and project.scope == self.home.scope:
            container = self.container
        memory = cast(View, self._lend(self._open(None), meaning))
        memory.project, memory.container, memory.caller = project, container, caller
        memory.actor = agent or ("user" if caller.owner else f"token:{caller.name}")
        memory.trust = TRUST["user" if caller.owner and not agent else "agent"]
        memory.server, memory.store = self, self.store_of(caller)
        if not caller.may_write:
            memory.store = cast(Store, ReadStore(memory.store))
        return memory

    def list_visible(self, caller: Caller) -> list[Grant]:
        """The projects and containers that a caller may name; with the folder where that is theirs to know."""
        home, store = self.home, self.store_of(caller)
        folder = str(home.root) if self._knows_folder(caller) else ""
        known = {home.scope: Grant(home.scope, folder, home.name)}
        known |= {grant.scope: grant for grant in caller.projects or ()}
        for scope, name in store.scopes().items():
            known.setdefault(scope, Grant(scope, "", name or scope))
        return [one for one in known.values() if one.scope != PERSONAL and caller.sees(one.scope)]

    def list_folders(self, caller: Caller) -> dict[str, str]:
        """The folder of each project, for the owner of the machine."""
        if not caller.owner or caller.tenant:
            return {}
        return {self.home.scope: str(self.home.root), **self.store_of(caller).scope_paths()}

    def store_of(self, caller: Caller) -> Store:
        """The store as a caller sees it."""
        return self._store_for(caller.tenant, caller.person) if self.shared else self.base.store

    def _act_as(self, tenant: str, person: str) -> Store:
        store = cast("PostgresStore", self.base.store)
        whose = (tenant or store.name, person)
        return store if whose == (store.name, store.person) else store.act_as(*whose)

    @property
    def home(self) -> Project:
        """The project that the server was started for."""
        return self.base.project

    @property
    def base(self) -> Bethink:
        """The memory of the server's own project, without anybody's limits."""
        return self._open(None).memory

    def _open(self, directory: Path | None) -> Opened:
        return self._keep((), lambda: View(directory=self.started_in.worktree, config=self.config))

    def close(self, patience: float) -> bool:
        self.checkup.end()
        self.ended = super().close(patience)
        return self.ended

    # Which project

    def _choose_project(self, caller: Caller, name: str | None) -> Project:
        """Return the project that a request names; by default that of its token, or the server's own.

        It includes the folder if that is still the same project, otherwise only the identity. Tokens of a team's database name folders on
        other machines, so those are ignored.
        """
        grant = self._find_grant(caller, name)
        if grant.scope == self.home.scope and self._knows_folder(caller):
            return self.home
        folder = Path(grant.root) if grant.root and not caller.tenant else None
        found = self.base.recognise(projects.find(folder)) if folder else None
        if found is None or found.scope != grant.scope:
            return Project(NOWHERE, NOWHERE, grant.scope.removeprefix("project:"), grant.name)
        if locate_database(self.config, found) != locate_database(self.config, self.home):
            raise InvalidInput(
                f"The project {found.name} has a separate database, which is not served here.",
                "Start a server in its folder.",
            )
        return found

    def _find_grant(self, caller: Caller, name: str | None) -> Grant:
        """Find a project by scope, name or team name; by default the server's, or the token's only one.

        A project with a team name need not have any memories yet.
        """
        if name and name.startswith(_BY_NAME):
            plain = name.removeprefix(_BY_NAME).strip()[:LONGEST_TEAM_NAME]
            shared = Grant(team_scope(plain), "", plain)
            matches = [shared] if plain and caller.sees(shared.scope) else []
        else:
            listed = [one for one in self.list_visible(caller) if one.scope.startswith("project:")]
            wanted = self.home.scope if name is None else name
            matches = [one for one in listed if one.scope == wanted]
            matches = matches or [one for one in listed if name in (one.name, None)]
        if len(matches) == 1:
            return matches[0]
        if name is None:
            raise InvalidInput(
                "Missing project: the token is for several.",
                "Add ?project=NAME; GET /api/v1/projects lists them.",
            )
        if matches:
            raise Ambiguous(
                f"{len(matches)} projects are called '{name}'.",
                f"Name it by its scope, such as {matches[0].scope}.",
            )
        hint = "GET /api/v1/projects lists the projects."
        raise NotFound(f"There is no project '{name[:200]}' here.", hint)

    def _knows_folder(self, caller: Caller) -> bool:
        """Return True if the caller may know the server's own folder; another tenant's may have its name."""
        return caller.tenant in ("", self.config.tenant if self.shared else "")


# State of the projects

CHECKED_FOR = 30.0  # seconds for which a result will do; set by hand
DOCTOR_WITHIN = 120.0  # set by hand
SILENT = Finding("doctor", False, "did not answer", "bethink doctor")


class Checkup:
    """Checks that take too long for a page: counts of the whole database, and `bethink doctor`.

    Both run in the background when someone looks and the last result is old; meanwhile the last result is returned. `doctor` runs as a command
    in its own process: it starts programs and reads every page of the database, and its findings are the same as on the command line.
    """

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._job: Future[None] | None = None
        self._began = 0.0  # the last one
        self._found = Condition(None, None, running=False)
        self._doctor: subprocess.Popen[bytes] | None = None

    def look(self) -> Condition:
        """Return the last result. Start a new check if it is old and none is running."""
        now = time.monotonic()
        if self._job is None or (self._job.done() and now - self._began > CHECKED_FOR):
            self._job, self._began = self._projects.submit(self._check), now
        return self._found._replace(running=not self._job.done())

    def _check(self) -> None:
        try:
            counted = browse.examine(self._projects.base)
            self._found = self._found._replace(condition=counted)
        except BethinkError as error:
            log.warning("Could not be counted: %s", error.message)
        self._found = self._found._replace(doctor=self._ask_doctor())

    def _ask_doctor(self) -> list[Finding]:
        """Run `bethink doctor` for the server's own project."""
        home, database = self._projects.started_in, self._projects.database
        # -P: the project's own folder must not be where Python looks for us.
        command = [sys.executable, "-P", "-m", "bethink", "doctor", "--json"]
        command += ["--database", database] if database else []
        folder = home.worktree if home.worktree.is_dir() else Path.home()
        no = subprocess.DEVNULL
        try:
            with subprocess.Popen(
                command, cwd=folder, stdin=no, stdout=subprocess.PIPE, stderr=no
            ) as self._doctor:
                try:
                    output, _ = self._doctor.communicate(timeout=DOCTOR_WITHIN)
                finally:
                    self._doctor.kill()
            return [Finding(**{**one, "fix": one["fix"] or ""}) for one in json.loads(output)]
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            log.warning("doctor did not answer: %s", error)
            return [SILENT]

    def end(self) -> None:
        if self._doctor:
            self._doctor.kill()
