"""`config`, `model`, `pause`, `resume` and `hook`: settings, models, and when agents are served."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from bethink import config as configuration
from bethink import plugins
from bethink.agents import edit
from bethink.app.cli.console import LOCAL, Bar, Console, Result
from bethink.app.operation import Arg, operation
from bethink.app.render import cell, pick, size
from bethink.embed import LOCAL_MODELS, find_destination, find_provider, models
from bethink.errors import BethinkError, ConfigError, InvalidInput, UsageError
from bethink.hooks.run import read_message
from bethink.hooks.run import run as run_hook
from bethink.hooks.state import pause_memory, resume_memory
from bethink.language.times import expiry
from bethink.model import Json
from bethink.project import EVERYWHERE, Pause, Project, locate, read_pauses
from bethink.text import suggest, textfile


@operation(
    "Maintenance",
    agents="read",
    person_with=("value", "unset"),
    lists=("settings", "setting"),
    examples=(
        "bethink config",
        "bethink config mode keyword",
        "bethink config limit 5 --project-file",
        "bethink config limit --unset",
        "bethink config reader claude",
    ),
)
def config(
    console: Console,
    key: Annotated[
        str | None, Arg("the setting to show, or with VALUE to change", positional=True)
    ] = None,
    value: Annotated[str | None, Arg("the new value", positional=True)] = None,
    url: Annotated[
        str | None, Arg("address of the endpoint, for `config reader openai`", positional=True)
    ] = None,
    project_file: Annotated[bool, Arg("change the project's file instead of yours")] = False,
    unset: Annotated[
        bool, Arg("remove the setting from the file, so that its default counts")
    ] = False,
    reader_model: Annotated[
        str | None, Arg("model of the reader, for `config reader`", metavar="NAME")
    ] = None,
) -> Result:
    """Show or change settings.

    `config reader claude`, `codex`, `gemini`, `ollama:MODEL` or `openai URL` lets that model read each session once, after its end;
    `config reader off` ends it.

    Shows every setting with its value and origin, or one of them; with a value changes it in your settings file, and with --unset
    removes it there. Later layers win: defaults, your file, the project's file, the environment (BETHINK_LIMIT=5), the command line.
    """
    if key == READER_PRESET:
        return change_reader(console, value, url, reader_model)
    if unset and (not key or value is not None):
        raise UsageError("Give --unset one setting and no value.", "bethink config limit --unset")
    if key and key not in configuration.SETTINGS:
        raise ConfigError(f"There is no setting '{key}'.", configuration.suggest_setting(key))
    if key and value is not None:
        return change_setting(console, key, value, project_file)
    if key and unset:
        return unset_setting(console, key, project_file)
    now = console.load_settings()
    found = configuration.explain(now)
    if not key:
        return Result(found, notes=describe_sending(now))
    row = next(row for row in found if row["key"] == key)
    notes = describe_sending(now) if key in SENDING_SETTINGS else []
    return Result(row, [as_typed(row["value"])], notes=notes)


SENDING_SETTINGS = ("embedding", "embedding_url", "embedding_model", "llm", "llm_url", "llm_model")


def describe_sending(now: configuration.Config) -> list[str]:
    """Say what leaves this process with these settings, and where to."""
    found = []
    if place := find_destination(now):
        found.append(
            f"The embedding model is remote. Bethink sends to {place}: everything it stores"
            " (notes, turns of conversations and their summaries, documents, code) and your searches."
            " Private parts and secrets are removed from what is stored; a search is sent as typed."
        )
    if now.llm not in ("", "none"):
        found.append(
            f"Each session is sent to the language model {now.llm} after its end,"
            " without private parts and secrets."
        )
    return found


READER_PRESET = "reader"  # several settings that belong together, and no setting itself
LOOPBACK = ("127.0.0.1", "localhost", "::1")
OLLAMA = "http://127.0.0.1:11434/v1"
HOSTED = "api.openai.com"
UNNAMED_MODEL = "default"  # accepted by servers that serve a single model


def change_reader(console: Console, name: str | None, url: str | None, model: str | None) -> Result:
    """Show or choose the language model that reads each session after its end."""
    from bethink.features import language, reading  # with it, a large part of the package

    now = console.load_settings()
    if name is None:
        return show_reader(console, now)
    if name in ("off", "none"):
        edit_file(configuration.user_file(), "llm", "none", None)
        return Result({"reader": None}, ["The offline reader alone reads conversations."])
    wanted = choose_reader(name, url, model)
    with console._replace(quiet=True).open_memory() as memory:
        tokens, sessions = reading.estimate_cost(memory)
        with name_next_step(name):
            used = language.check_model(memory, wanted)
    for key, value in wanted.items():
        edit_file(configuration.user_file(), key, value, None)
    now = console.load_settings()
    expected = (
        f"about {tokens:,} tokens a session, by your last {sessions}"
        if sessions
        else "some thousand tokens a session"
    )
    lines = [
        f"reader = {used.name}: it answered, for {used.tokens:,} tokens",
        f"It reads each session once, after its end: {expected}, at most {now.llm_daily_tokens:,} a day.",
        f"It gets what you and the agent said, without tool output, secrets and private parts: {name_receiver(name, wanted)}.",
    ]
    row = {"reader": used.name, **wanted, "tokens_per_session": tokens, "sessions": sessions}
    hints = ["`bethink stats` shows what it used; `bethink config reader off` ends it."]
    return Result(row, lines, hints=hints)


def name_receiver(name: str, wanted: Mapping[str, str]) -> str:
    """Say where the turns of a session go."""
    from urllib.parse import urlsplit

    place = urlsplit(wanted["llm_url"]).hostname or "" if wanted["llm_url"] else ""
    if place in LOOPBACK:
        return f"{place}, which is this machine"
    return f"sent to {place}" if place else f"sent to the provider of {name.partition(':')[0]}"


@contextmanager
def name_next_step(name: str) -> Iterator[None]:
    """Name Ollama's own commands where it does not answer."""
    from bethink.llm.base import ModelError

    try:
        yield
    except ModelError as error:
        provider, _, model = name.partition(":")
        steps = {"unreachable": "ollama serve", "missing": f"ollama pull {model}"}
        if provider != "ollama" or error.reason not in steps:
            raise
        raise ModelError(error.message, f"Run `{steps[error.reason]}`.", error.reason) from None


def show_reader(console: Console, now: configuration.Config) -> Result:
    from bethink.features import language

    with console._replace(quiet=True).open_memory() as memory:
        usage = language.report_usage(memory)
    name = " ".join(filter(None, (now.llm, now.llm_model))) if now.llm not in ("", "none") else ""
    lines = [f"{name or 'none'}: {usage['today']:,} of {usage['ceiling']:,} tokens used today"]
    row = {"reader": name or None, "today": usage["today"], "ceiling": usage["ceiling"]}
    return Result(row, lines, hints=[f"Choose one: {', '.join(list_readers())}."])


def list_readers() -> list[str]:
    """Return the values of `config reader`: each provider by its name, with its argument if it needs one."""
    from bethink.features import language

    names = [name for name in language.list_providers() if name != "openai"]
    return [*names, "ollama:MODEL", "openai URL", "off"]


def choose_reader(name: str, url: str | None, model: str | None) -> dict[str, str]:
    """Return the settings of a reader."""
    from bethink.features import language

    provider, _, named = name.partition(":")
    model = model or named
    if provider == "ollama":
        if not model:
            raise UsageError("Name the model of Ollama.", "bethink config reader ollama:qwen3")
        return {"llm": "openai", "llm_model": model, "llm_url": url or OLLAMA}
    if provider == "openai":
        if not url and not model:
            raise UsageError(
                "Name the address of the endpoint, or a model of OpenAI.",
                "bethink config reader openai http://127.0.0.1:8080/v1",
            )
        if url and HOSTED in url and not model:
            raise UsageError(
                f"Name the model for {HOSTED}.",
                f"bethink config reader openai {url} --reader-model NAME",
            )
        return {"llm": "openai", "llm_model": model or UNNAMED_MODEL, "llm_url": url or ""}
    if provider not in language.list_providers():
        raise ConfigError(f"There is no reader '{name}'.", f"One of: {', '.join(list_readers())}.")
    return {"llm": provider, "llm_model": model, "llm_url": url or ""}


def change_setting(console: Console, key: str, text: str, in_project: bool) -> Result:
    root = locate(console.directory).root if in_project else None
    path = configuration.project_file(root) if root else configuration.user_file()
    if root and key in configuration.PERSONAL_SETTINGS:
        raise UsageError(
            f"'{key}' may not be set by a project's file.",
            f"Set it for yourself: bethink config {key} {text}",
        )
    if key == "embedding" and find_provider(text) is LOCAL_MODELS:
        models.find(text)  # a typo would turn every search into one by words
    try:
        value = configuration.check(key, text)
    except ValueError as error:
        raise ConfigError(
            f"Bad value '{text}' for '{key}': {error}.",
            "`bethink config` describes each setting.",
        ) from None
    if key == "signals":
        check_signals(value)
    edit_file(path, key, value, root)
    now, warnings = console.load_settings(), []
    if (origin := now.origins.get(key)) != str(path):
        still = as_typed(getattr(now, key))
        warnings = [f"{origin} also sets {key} and wins: it is still {still}."]
    masked = configuration.mask_password(value)
    row = {"key": key, "value": masked, "path": str(path)}
    # A table leaves out what is empty, and "false" is a value.
    lines = [f"{key} = {str(value).lower()}", f"written to {path}"] if value is False else None
    notes = describe_sending(now) if key in SENDING_SETTINGS else []
    if lines:
        return Result(row, lines, notes=notes, warnings=warnings)
    return Result(row, notes=notes, warnings=warnings)


def check_signals(names: Iterable[str]) -> None:
    """Refuse a ranking signal that no installed package has."""
    for name in names:
        if plugins.SIGNALS.find(name) is None:
            known = [signal.name for signal in plugins.SIGNALS.all()]
            raise ConfigError(
                f"No installed package has the ranking signal '{name}'.",
                suggest(name, known)
                or (f"Installed: {', '.join(known)}." if known else "Install its package first."),
            )


def unset_setting(console: Console, key: str, in_project: bool) -> Result:
    """Remove a setting from a file, and show the value that counts now."""
    root = locate(console.directory).root if in_project else None
    path = configuration.project_file(root) if root else configuration.user_file()
    removed = edit_file(path, key, None, root)
    now = console.load_settings()
    value, origin = getattr(now, key), now.origins.get(key, "default")
    row = {"key": key, "value": configuration.mask_password(value), "origin": origin}
    first = f"removed from {path}" if removed else f"{path} does not set {key}"
    return Result(row, [first, f"{key} = {as_typed(value)} ({origin})"])


def edit_file(path: Path, key: str, value: object, root: Path | None) -> bool:
    """Change one setting in a file, or remove it for None, and keep all other lines.

    Returns whether the file changed. A link is followed, but a project's link may not lead out of its `root`. A new file is readable by its owner alone.
    """
    try:
        real = textfile.inside(root, path) if root else textfile.resolve(path)
        was = textfile.read(real)
        wanted = edit.parse(was or "", toml=True)
        if value is None:
            wanted.pop(key, None)
        else:
            wanted[key] = list(value) if isinstance(value, tuple) else value
        text = edit.rewrite_toml(was or "", wanted)
    except InvalidInput as error:
        raise ConfigError(
            f"The settings file {path} cannot be read: {error.message}", error.hint
        ) from None
    if text != was and not textfile.write(real, text, was, 0o600):
        raise BethinkError(f"{path} changed meanwhile.", "Try again.")
    return text != (was or "")


def as_typed(value: object) -> str:
    """A value as it is typed on the command line, with passwords masked."""
    value = configuration.mask_password(value)
    return ", ".join(value) if isinstance(value, tuple) else cell(value)


@operation(
    "Maintenance",
    agents="append",
    lists=("models", "model"),
    examples=(
        "bethink model list",
        "bethink model pull",
        "bethink model pull all-MiniLM-L6-v2",
    ),
)
def model(
    console: Console,
    action: Annotated[str, Arg(choices=("list", "pull"), positional=True)] = "list",
    name: Annotated[
        str | None, Arg("a model; default: the one in your settings", positional=True)
    ] = None,
) -> Result:
    """List embedding models, or download one.

    A model is downloaded once for all projects. `bethink doctor --deep` verifies its files.
    """
    wanted = str(name or console.load_settings().embedding)
    if action == "list":
        rows = [
            {
                "name": known.name,
                "installed": bool(folder := models.location(known.name)),
                "current": known.name.lower() == wanted.rpartition("/")[2].lower(),
                **pick(known, "dimensions window licence"),
                "path": str(folder) if folder else None,
            }
            for known in models.KNOWN.values()
        ]
        return Result(rows)
    with Bar(console, f"downloading {wanted}", count=size) as bar:
        folder = models.pull(wanted, bar)
    return Result({"name": models.find(wanted).name, "status": "installed", "path": str(folder)})


# Pauses and hooks


@operation(
    "Maintenance",
    agents="person",
    examples=("bethink pause", "bethink pause --for 2h", "bethink pause --everywhere"),
)
def pause(
    console: Console,
    everywhere: Annotated[bool, Arg("in every project, not only in this one")] = False,
    duration: Annotated[
        str | None,
        Arg("resume automatically after 30min, 2h, 1d …", metavar="TIME", aliases=("for",)),
    ] = None,
) -> Result:
    """Pause memory in this project or everywhere.

    Agents get nothing from memory, and nothing of their conversations is stored, neither by hooks nor by a later `bethink
    backfill`. Searching and adding by hand still work.
    """
    here = find_local_project(console)
    scope, name = (EVERYWHERE, "") if everywhere else (here.scope, here.name)
    now = datetime.now(LOCAL)
    end = expiry(duration, now) if duration else None
    seconds = (end - now).total_seconds() if end else None
    until = f" until {end:%Y-%m-%d %H:%M}" if end else ""
    return Result(
        {"paused": plain_pause(pause_memory(scope, name, seconds))},
        [f"paused {name or 'everywhere'}{until}"],
        hints=[f"`bethink resume{' --everywhere' if everywhere else ''}` ends it."],
    )


def find_local_project(console: Console) -> Project:
    """The project as hooks see it. A project that an earlier version knew is registered first."""
    console.find_known_project()
    return console.find_project()


@operation(
    "Maintenance", agents="person", examples=("bethink resume", "bethink resume --everywhere")
)
def resume(
    console: Console,
    everywhere: Annotated[bool, Arg("end every pause, of all projects")] = False,
) -> Result:
    """End a pause.

    What was said during the pause stays out of memory.
    """
    ended = resume_memory(EVERYWHERE if everywhere else find_local_project(console).scope)
    left = [one for one in read_pauses() if one.holds(time.time())]
    still = "Memory is still paused everywhere; `bethink resume --everywhere` ends that."
    return Result(
        {"resumed": list(map(plain_pause, ended)), "still_paused": list(map(plain_pause, left))},
        [f"resumed {one.name or 'everywhere'}" for one in ended] or ["Nothing was paused."],
        hints=[still for one in left if one.scope == EVERYWHERE],
    )


def plain_pause(one: Pause) -> Json:
    return {
        "scope": one.scope,
        "project": one.name or None,
        "since": datetime.fromtimestamp(one.since, UTC),
        "until": one.until and datetime.fromtimestamp(one.until, UTC),
    }


# An agent's own call goes to `hooks.run.run_alone`, past the parser; this is for people and their tests.
@operation(
    "Serve",
    agents="read",
    examples=(
        """echo '{"cwd": "/home/me/shop", "source": "startup"}' | bethink hook session-start --host claude""",
        """echo '{"cwd": "/home/me/shop", "prompt": "how do we deploy?"}' | bethink hook prompt --host codex""",
    ),
)
def hook(
    console: Console,
    event: Annotated[
        str,
        Arg(
            "session-start, subagent-start, prompt, tool, tool-failure, stop, subagent-stop, pre-compact, post-compact,"
            " session-end",
            positional=True,
        ),
    ],
    host: Annotated[str, Arg("the agent that calls")] = "claude",
) -> int:
    """Answer an agent's hook.

    Briefs a new session, adds memories that match a prompt, shows what fixed a failed command before, and notes a transcript that
    grew. `bethink install` adds it to the agents' settings. Reads the agent's message from stdin, prints text for its model or
    nothing, and always exits with 0; `bethink doctor` shows what went wrong. BETHINK_HOOKS=off disables it.
    """
    if console.database:
        os.environ["BETHINK_DATABASE"] = console.database
    if printed := run_hook(event, host, read_message()):
        console.out(printed)  # in the agent's own form, whatever --format says
    return 0
