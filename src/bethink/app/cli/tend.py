"""Settings, pauses and hooks; keeping memory in order and measuring it; completions for shells; and the demo."""

import io
import os
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any

from bethink import config as configuration
from bethink.agents import edit
from bethink.api import Bethink
from bethink.app import SECTIONS, read_words
from bethink.app.cli import COMMANDS, console, parser
from bethink.app.cli.console import (
    LOCAL,
    Bar,
    Result,
    confirm,
    directory,
    find_folder,
    known_project,
    open_memory,
    out,
    project,
    read_arguments,
    settings,
)
from bethink.app.cli.main import find_command, run
from bethink.app.render import (
    Items,
    cell,
    item_lines,
    many,
    pick,
    quote_lines,
    size,
    style,
    unstyle,
)
from bethink.embed import LOCAL_MODELS, find_provider, models
from bethink.errors import BethinkError, ConfigError, InvalidInput, UsageError
from bethink.features import tending
from bethink.features.tending import Pair
from bethink.hooks.run import read_message
from bethink.hooks.run import run as run_hook
from bethink.hooks.state import pause_memory, resume_memory
from bethink.language.times import expiry
from bethink.model import KINDS, MODES, PERSONAL, Json, is_remote
from bethink.project import EVERYWHERE, Pause, Project, locate, read_pauses
from bethink.text import textfile

NAMED = 20  # steps of one kind before "and more"
STEP_WORDS = read_words("steps")


# Settings


def config(args: Namespace) -> Result:
    key = args.key
    if key and key not in configuration.SETTINGS:
        raise ConfigError(f"There is no setting '{key}'.", configuration.suggest_setting(key))
    if args.value is not None:
        return change_setting(args, key)
    found = configuration.explain(settings(args))
    if not key:
        return Result(found)
    row = next(row for row in found if row["key"] == key)
    return Result(row, [as_typed(row["value"])])


def change_setting(args: Namespace, key: str) -> Result:
    root = locate(directory(args)).root if args.project_file else None
    path = configuration.project_file(root) if root else configuration.user_file()
    if root and key in configuration.PERSONAL:
        raise UsageError(
            f"'{key}' may not be set by a project's file.",
            f"Set it for yourself: bethink config {key} {args.value}",
        )
    if key == "embedding" and find_provider(args.value) is LOCAL_MODELS:
        models.find(args.value)  # a slip of the pen would turn every search into one by words
    try:
        value = configuration.check(key, args.value)
    except ValueError as error:
        raise ConfigError(
            f"Bad value '{args.value}' for '{key}': {error}.",
            "`bethink config` shows what each setting is for.",
        ) from None
    edit_file(path, key, value, root)
    now, warnings = settings(args), []
    if (origin := now.origins.get(key)) != str(path):
        still = as_typed(getattr(now, key))
        warnings = [f"{origin} sets {key} too, and wins: it is still {still}."]
    masked = configuration.mask_password(value)
    row = {"key": key, "value": masked, "path": str(path)}
    # A table leaves out what is empty, and "false" is a value.
    lines = [f"{key} = {str(value).lower()}", f"written to {path}"] if value is False else None
    return Result(row, lines, warnings=warnings) if lines else Result(row, warnings=warnings)


def edit_file(path: Path, key: str, value: Any, root: Path | None) -> None:
    """Changes one setting in a file, and leaves all other lines as they are. Behind a link it is the file that it leads to, but for
    a project's link out of its `root`. A new file is for its owner alone, as it may name keys and hosts."""
    try:
        real = textfile.inside(root, path) if root else textfile.resolve(path)
        was = textfile.read(real)
        wanted = edit.parse(was or "", toml=True)
        wanted[key] = list(value) if isinstance(value, tuple) else value
        text = edit.rewrite_toml(was or "", wanted)
    except InvalidInput as error:
        raise ConfigError(
            f"The settings file {path} cannot be read: {error.message}", error.hint
        ) from None
    if text != was and not textfile.write(real, text, was, 0o600):
        raise BethinkError(f"{path} changed meanwhile.", "Try again.")


def as_typed(value: Any) -> str:
    """A value as it is typed on the command line, but for passwords."""
    value = configuration.mask_password(value)
    return ", ".join(value) if isinstance(value, tuple) else cell(value)


# Pauses and hooks


def pause(args: Namespace) -> Result:
    span, here = getattr(args, "for"), local_project(args)
    scope, name = (EVERYWHERE, "") if args.everywhere else (here.scope, here.name)
    now = datetime.now(LOCAL)
    end = expiry(span, now) if span else None
    seconds = (end - now).total_seconds() if end else None
    until = f" until {end:%Y-%m-%d %H:%M}" if end else ""
    return Result(
        {"paused": plain_pause(pause_memory(scope, name, seconds))},
        [f"paused {name or 'everywhere'}{until}"],
        hints=[f"`bethink resume{' --everywhere' if args.everywhere else ''}` ends it."],
    )


def local_project(args: Namespace) -> Project:
    """The project as hooks see it, whose database may be a team's. One that an earlier version knew is registered first."""
    known_project(args)
    return project(args)


def resume(args: Namespace) -> Result:
    ended = resume_memory(EVERYWHERE if args.everywhere else local_project(args).scope)
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


# A host's own call goes to `hooks.run.run_alone`, past the parser; this is for people and their tests.
def hook(args: Namespace) -> int:
    if args.database:
        os.environ["BETHINK_DATABASE"] = args.database
    if printed := run_hook(args.event, args.host, read_message()):
        console.out(args, printed)  # in the host's own form, whatever --format says
    return 0


# Order


def reindex(args: Namespace, memory: Bethink) -> Result:
    with Bar(args, "embedding") as bar:
        done = memory.reindex(full=args.full, progress=bar)
    model = memory.embedder.model if memory.embedder else None
    return Result({"embedded": done, "model": model})


def backup(args: Namespace, memory: Bethink) -> Result:
    written = memory.backup(args.file)
    return Result({"path": args.file, "bytes": written})


def reset(args: Namespace, memory: Bethink) -> Result:
    name = memory.project.name
    here = f"the container {args.container} of {name}" if args.container else f"the project {name}"
    scopes, where = {
        "this": ([memory.scope], here),
        "personal": ([PERSONAL], "your personal scope"),
        "all": (None, "every project"),
    }[args.scope]
    overview = memory.stats(scopes)
    number = many(overview.memories + overview.deleted, "memory")
    if not args.yes:
        console.note(args, "hint: `bethink backup FILE` keeps a copy.")
    confirm(args, f"This removes {number} of {where} for good.")
    removed = memory.reset(scopes)
    return Result({"removed": removed, "scope": args.scope})


def duplicates(args: Namespace, memory: Bethink) -> Result:
    return compare(args, memory, tending.find_duplicates, "No memories say the same.")


def contradictions(args: Namespace, memory: Bethink) -> Result:
    return compare(args, memory, tending.find_contradictions, "No memories disagree.")


def compare(
    args: Namespace, memory: Bethink, find: Callable[..., Sequence[Pair]], none: str
) -> Result:
    """The pairs that are found, the one to keep first."""
    with Bar(args, "comparing") as bar:
        found = find(memory, limit=args.limit, progress=bar)
    items: Items = []
    for keep, other, similarity, reason in found:
        items += [f"{reason} ({similarity:.2f})", *quote_lines(memory, [keep, other])]
    value = [pair._replace(similarity=round(pair.similarity, 4)) for pair in found]
    return Result(value, notes=() if found else [none], items=items)


def consolidate(args: Namespace, memory: Bethink) -> Result:
    with Bar(args, "comparing") as bar:
        steps = tending.plan_consolidation(memory, progress=bar)
    done, number = 0, many(len(steps), "step")
    items: Items = []
    for action, words in STEP_WORDS.items():
        mine = [step for step in steps if step.action == action]
        items += [f"{words} ({len(mine):,})"] if mine else []
        for step in mine[:NAMED]:
            items += quote_lines(memory, step.memories[:2])
    if steps and not args.dry_run:
        if not args.yes:
            for line in item_lines(items):
                console.talk(unstyle(line), args.for_agent)
            items = []
        confirm(args, f"{number}.")
        done = tending.apply_steps(memory, steps)
    ended = f"{number} would be done" if args.dry_run else f"{many(done, 'step')} done"
    records = [{**step._asdict(), "memories": [one.id for one in step.memories]} for step in steps]
    value = {"steps": records, "done": done, "dry_run": args.dry_run}
    return Result(value, notes=[ended if steps else "Nothing to tidy up."], items=items)


def model(args: Namespace) -> Result:
    name = str(args.name or settings(args).embedding)
    if args.action == "list":
        rows = [
            {
                "name": known.name,
                "installed": bool(folder := models.location(known.name)),
                "current": known.name.lower() == name.rpartition("/")[2].lower(),
                **pick(known, "dimensions window licence"),
                "path": str(folder) if folder else None,
            }
            for known in models.KNOWN.values()
        ]
        return Result(rows)
    with Bar(args, f"fetching {name}", count=size) as bar:
        folder = models.pull(name, bar)
    return Result({"name": models.find(name).name, "status": "installed", "path": str(folder)})


def audit(args: Namespace, memory: Bethink) -> Result:
    store: Any = memory.store
    if not hasattr(store, "audit"):
        raise UsageError(
            "Only a PostgreSQL database keeps an audit trail.",
            "`bethink history ID` shows what became of a memory in your own database.",
        )
    return Result(store.audit(args.limit))


def bench(args: Namespace) -> Result:
    from bethink.bench import FIELDS, RECIPES, run

    folders = list(map(find_folder, args.directory))
    with Bar(args, "bench") as bar:
        results = run(
            folders,
            args.mode or [*MODES, *RECIPES],
            progress=lambda label, done, total: bar(done, total, label),
            asked=args.asked or ["own"],
            as_conversations=vars(args)["as"] == "conversations",
            sample=args.sample,
        )
    rows = [{name: row[name] for name in FIELDS} for row in results]
    return Result(rows)


# Shell completions. Each shell's script asks `completion words` what may follow what was typed.


def completion(args: Namespace) -> Result | int:
    if args.shell == "words":
        found = complete_line(args.line or "")
        value, lines = found, [f"{word}\t{about}" for word, about in found.items()]
    else:
        value = {"shell": args.shell, "script": SECTIONS[f"completion {args.shell}"].strip()}
        lines = [value["script"]]
    if args.format == "text":
        for line in "\n".join(lines).split("\n"):
            out(args, line)  # for a shell, whatever the terminal's width
        return 0
    return Result(value)


def complete_line(line: str) -> dict[str, str]:
    """What may stand at the end of a line that is being typed, and what each is for."""
    typed = line.split()[1:]
    last = typed.pop() if typed and not line.endswith(" ") else ""
    name, _ = find_command(typed)
    found = {name: about for name, (_, about) in COMMANDS.items()}
    if name in COMMANDS and COMMANDS[name][0].startswith("@"):
        found = parser.complete(console.load_operation(name), typed[-1])
    elif name in COMMANDS:
        arguments = read_arguments(name)
        valued = [one for one in arguments if typed[-1] in one.names and one.value]
        found = {}
        for one in valued or arguments:
            words = one.choices or (KINDS if one.value == "KIND" else ())
            if one.is_option and not valued:
                words = one.names
            found |= dict.fromkeys(words, one.help)
    return {word: about or word for word, about in found.items() if word.startswith(last)}


# The product in under a minute, on a database that is thrown away. Each step is a command as a user would type it.

# What is said (>) and typed. A line that begins with `meaning:` needs an embedding model, one with `words:` is for its absence;
# `name =` keeps the id of what was added for later lines.
_LINE = re.compile(r"(?:(meaning|words): )?(?:(\w+) = )?(.*)")


def demo(args: Namespace) -> Result:
    with tempfile.TemporaryDirectory(prefix="bethink-demo-") as folder:
        steps = play(args, Path(folder))
    end = "\nThat was all on a throw-away database, which is gone. Next: bethink add"
    return Result(steps, [end])


def play(args: Namespace, folder: Path) -> list[dict[str, object]]:
    """Goes through the script. Says and shows each step as it comes, and gives all of them."""

    def say(text: str) -> None:
        if args.format == "text":
            for line in text.split("\n"):
                out(args, line)

    database, project = str(folder / "memory.db"), folder / "shop"
    (project / ".bethink").mkdir(parents=True)  # what marks it as a project
    place = {"database": database, "project": str(project), "container": None}
    with open_memory(Namespace(**{**vars(args), **place}), make=True) as memory:
        provider = find_provider(memory.config.embedding)
        model = memory.embedder if provider and provider.semantic else None
    none = "There is no embedding model, so this demo finds memories by their words only."
    where = "at the endpoint of your settings" if is_remote(model) else "on this machine"
    about = f"Meaning comes from {model.model}, {where}." if model else none
    say(f"\n# {about}")
    steps: list[dict[str, object]] = []
    ids = {"key": "a1B2" * 9}  # which looks like one
    for line in SECTIONS["demo script"].strip().splitlines():
        condition, name, typed = re.fullmatch(_LINE, line).groups()  # type: ignore[union-attr]
        if condition == ("words" if model else "meaning"):
            continue
        if typed.startswith("> "):
            say(f"\n# {typed[2:]}")
            continue
        words = shlex.split(typed := typed.format(**ids))
        shown = io.StringIO()
        with redirect_stdout(shown), redirect_stderr(shown):
            code = run([*words, "--database", database, "--project", str(project)])
        said = shown.getvalue().replace(str(folder), "…").rstrip()
        steps.append({"command": f"bethink {typed}", "output": said, "exit": code})
        say("\n" + style(f"$ bethink {typed}", "bold") + f"\n{said}")
        if name:
            ids[name] = said.split()[1]  # as `add` shows it
    return steps
