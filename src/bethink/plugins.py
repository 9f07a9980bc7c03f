"""Plugins: agents, importers, embedders, language models, readers and ranking signals.

A plugin is a value with a `name`. Ours are listed here in display order and are loaded when first used. An installed package
adds more by entry points, each with the name of its plugin:

    [project.entry-points."bethink.agents"]
    toy = "bethink_toy:AGENT"

Asking Python for the entry points of all installed packages takes 28 ms (93 packages), a third of a hook. So `find`
asks only for a name that is neither ours nor registered, and `all` asks once per process. A package cannot replace
a plugin of ours. One that cannot be loaded is left out, and `problems` says why: `doctor` and a warning show it.
"""

# No `from __future__ import annotations`: NamedTuple compiles each annotation that is a string, and every hook loads this.
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from bethink.errors import InvalidInput

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from typing import Protocol

    from bethink.agents.agent import Agent
    from bethink.embed import EmbeddingProvider
    from bethink.features.readers import Importer
    from bethink.ingest.formats import Reader
    from bethink.llm.base import LanguageModelProvider
    from bethink.recall.signals import Signal

    class Named(Protocol):
        """Anything that can be registered."""

        @property
        def name(self) -> str: ...

else:
    Named = None

LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_LONGEST_NAME = 40
Plugin = TypeVar("Plugin", bound=Named)
Answer = TypeVar("Answer")


class Problem(NamedTuple):
    """A plugin that was left out."""

    group: str
    name: str
    package: str  # "" if none has it
    message: str

    def __str__(self) -> str:
        if not self.package:
            return f"{self.message}."
        return f"The plugin '{self.name}' of {self.package} was left out: {self.message}."


_problems: dict[tuple[str, str, str], Problem] = {}


class Registry(Generic[Plugin]):
    """The plugins of one kind, by name."""

    def __init__(self, group: str, type: str, ours: str = "") -> None:
        """Declare a kind: the class of its plugins, and ours as lines of `name = module:value`."""
        self.group, self._type = group, type
        lines = (line.partition(" = ") for line in ours.strip().splitlines())
        self._ours = {name.strip(): reference for name, _, reference in lines}
        self._registered: dict[str, Plugin] = {}
        self._loaded: dict[str, Plugin] = {}
        self._found: dict[str, EntryPoint] | None = None

    def register(self, plugin: Plugin) -> None:
        """Add a plugin for the rest of this process."""
        if plugin.name in self._ours or plugin.name in self._registered:
            raise InvalidInput(
                f"The name '{plugin.name}' is taken in {self.group}.", "Choose another name."
            )
        self._registered[plugin.name] = self._loaded[plugin.name] = plugin

    def find(self, name: str) -> Plugin | None:
        """Return a plugin by name, or None if there is none or it cannot be loaded."""
        if name in self._loaded:
            return self._loaded[name]
        if name in self._ours:
            self._loaded[name] = cast("Plugin", _load(self._ours[name]))
        elif is_name(name) and (entry := self._list_outside().get(name)):
            self._load_outside(entry)
        return self._loaded.get(name)

    def all(self) -> list[Plugin]:
        """Return all plugins: ours in order, those registered here, those of packages by name."""
        names = dict.fromkeys([*self._ours, *self._registered, *self._list_outside()])
        return [plugin for plugin in map(self.find, names) if plugin is not None]

    def registered(self) -> list[Plugin]:
        """Return the plugins that code of this process registered."""
        return list(self._registered.values())

    def names(self) -> list[str]:
        """Return the names of ours."""
        return list(self._ours)

    def is_ours(self, name: str) -> bool:
        return name in self._ours

    def knows(self, name: str) -> bool:
        """Return True if there is such a plugin, without loading it."""
        return name in self._ours or name in self._loaded or name in self._list_outside()

    def list_packages(self) -> dict[str, str]:
        """Return the names of plugins of installed packages, each with its package."""
        found = self._list_outside().items()
        return {name: entry.dist.name if entry.dist else entry.value for name, entry in found}

    def ask(self, plugin: Plugin, question: Callable[[Plugin], Answer], default: Answer) -> Answer:
        """Return what a plugin answers, or the default if one that is not ours raises an error."""
        if plugin.name in self._ours:
            return question(plugin)
        try:
            return question(plugin)
        except Exception as error:  # noqa: BLE001 - other people's code may raise anything
            self.report(plugin.name, f"{type(error).__name__}: {error}")
            return default

    def _list_outside(self) -> "dict[str, EntryPoint]":
        """Return the entry points of installed packages, by name."""
        if self._found is None:
            from importlib.metadata import entry_points

            self._found = {}
            for entry in sorted(entry_points(group=self.group), key=lambda one: one.name):
                if not is_name(entry.name):
                    self.report(
                        entry.name, "a name has small letters, digits and hyphens only", entry
                    )
                elif entry.name in self._ours or entry.name in self._found:
                    self.report(entry.name, "the name is taken", entry)
                else:
                    self._found[entry.name] = entry
        return self._found

    def _load_outside(self, entry: "EntryPoint") -> None:
        try:
            plugin = entry.load()
            if not isinstance(plugin, _load(self._type)):
                wanted = self._type.rpartition(":")[2]
                raise TypeError(f"{entry.value} is of type {type(plugin).__name__}, not {wanted}")
            if plugin.name != entry.name:
                raise ValueError(f"{entry.value} calls itself '{plugin.name}'")
            self._loaded[entry.name] = plugin
        except (Exception, SystemExit) as error:  # noqa: BLE001 - other people's code may raise anything
            self.report(entry.name, f"{type(error).__name__}: {error}")

    def report(self, name: str, message: str, entry: "EntryPoint | None" = None) -> None:
        """Keep a problem for `doctor` and for the warning at the end of a command."""
        entry = entry or (self._found or {}).get(name)
        package = entry.dist.name if entry and entry.dist else "this process"
        _problems[self.group, name, package] = Problem(self.group, name, package, message)


def is_name(name: str) -> bool:
    """Return True for a name that a plugin may have: it is part of command lines and settings."""
    return name[:1].isalpha() and LETTERS.issuperset(name) and len(name) <= _LONGEST_NAME


def _load(reference: str) -> Any:
    module, _, name = reference.partition(":")
    __import__(module)  # `importlib` takes a third of a millisecond of every command
    return getattr(sys.modules[module], name)


def problems() -> list[Problem]:
    """Return what went wrong with plugins in this process so far."""
    return list(_problems.values())


def forget_problems() -> None:
    _problems.clear()


AGENTS: "Registry[Agent]" = Registry(
    "bethink.agents",
    "bethink.agents.agent:Agent",
    """
    claude = bethink.agents.claude:AGENT
    codex = bethink.agents.codex:AGENT
    copilot = bethink.agents.copilot:AGENT
    gemini = bethink.agents.gemini:AGENT
    opencode = bethink.agents.opencode:AGENT
    cursor = bethink.agents.cursor:AGENT
    vscode = bethink.agents.vscode:AGENT
    antigravity = bethink.agents.antigravity:AGENT
    pi = bethink.agents.pi:AGENT
    kilo = bethink.agents.kilo:AGENT
    droid = bethink.agents.droid:AGENT
    amp = bethink.agents.amp:AGENT
    goose = bethink.agents.goose:AGENT
    zed = bethink.agents.zed:AGENT
    cline = bethink.agents.cline:AGENT
    aider = bethink.agents.aider:AGENT
    specstory = bethink.agents.specstory:AGENT
    plain = bethink.agents.plain:AGENT
    """,
)

EMBEDDERS: "Registry[EmbeddingProvider]" = Registry(
    "bethink.embedders",
    "bethink.embed:EmbeddingProvider",
    """
    local = bethink.embed:LOCAL_MODELS
    http = bethink.embed.http:PROVIDER
    hashing = bethink.embed.hashing:PROVIDER
    multilingual = bethink.embed.multilingual:PROVIDER
    """,
)
IMPORTERS: "Registry[Importer]" = Registry(
    "bethink.importers",
    "bethink.features.readers:Importer",
    """
    lancedb = bethink.features.readers:LANCEDB
    vault = bethink.features.readers:VAULT
    codex = bethink.features.readers:CODEX
    claude = bethink.features.readers:CLAUDE
    basic-memory = bethink.features.readers:BASIC_MEMORY
    """,
)
LANGUAGE_MODELS: "Registry[LanguageModelProvider]" = Registry(
    "bethink.language_models",
    "bethink.llm.base:LanguageModelProvider",
    """
    anthropic = bethink.llm.anthropic:PROVIDER
    openai = bethink.llm.openai:PROVIDER
    claude = bethink.llm.claude:PROVIDER
    codex = bethink.llm.codex:PROVIDER
    gemini = bethink.llm.gemini:PROVIDER
    """,
)
READERS: "Registry[Reader]" = Registry(
    "bethink.readers",
    "bethink.ingest.formats:Reader",
    """
    rst = bethink.ingest.formats:RST
    asciidoc = bethink.ingest.formats:ASCIIDOC
    notebook = bethink.ingest.formats:NOTEBOOK
    """,
)
SIGNALS: "Registry[Signal]" = Registry("bethink.signals", "bethink.recall.signals:Signal")
REGISTRIES = (AGENTS, IMPORTERS, EMBEDDERS, LANGUAGE_MODELS, READERS, SIGNALS)

register_agent = AGENTS.register
register_importer = IMPORTERS.register
register_embedder = EMBEDDERS.register
register_language_model = LANGUAGE_MODELS.register
register_reader = READERS.register
register_signal = SIGNALS.register


def signals(names: Iterable[str]) -> "tuple[Signal, ...]":
    """Return the ranking signals that the settings name, and those registered in this process."""
    named = {name: SIGNALS.find(name) for name in names}
    for name in (name for name, signal in named.items() if signal is None):
        if any(problem.name == name for problem in _problems.values()):
            continue  # its package is here, and could not be loaded
        message = f"No installed package has the ranking signal '{name}' of the setting `signals`"
        _problems[SIGNALS.group, name, ""] = Problem(SIGNALS.group, name, "", message)
    return tuple(dict.fromkeys(filter(None, (*SIGNALS.registered(), *named.values()))))
