"""`config`, which shows each setting and where it came from and edits the settings files without touching their other lines; `pause`
and `resume`; `hook`, `completion` and `demo`."""

from __future__ import annotations

import io
import os
import re
import shlex
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import TYPE_CHECKING, Any

from bethink import config as configuration
from bethink.embed.models import find as find_model
from bethink.errors import BethinkError, ConfigError, NotFound, UsageError
from bethink.hooks.run import WORK, read_message
from bethink.hooks.run import run as run_hook
from bethink.hooks.state import EVERYWHERE, Pause, pause_memory, read_pauses, resume_memory
from bethink.surface.cli import COMMANDS, console
from bethink.surface.cli.console import (
    Listing,
    Result,
    load,
    open_memory,
    out,
    project,
    settings,
)
from bethink.surface.cli.main import find_command, run
from bethink.surface.render import cell, style
from bethink.text import textfile
from bethink.text.when import LOCAL, expiry
from bethink.types import KINDS

if TYPE_CHECKING:
    from types import SimpleNamespace as Namespace


def config(args: Namespace) -> Result:
    """Show every setting, its value and where that came from; show one; or change one in your settings file. Later layers
    win: defaults, your file, the project's file, the environment (BETHINK_LIMIT=5), the command line.

    Takes:
      [KEY]             the setting to show, or with VALUE to change
      [VALUE]
      --project-file    change the project's file instead of yours
      --unset KEY       take a setting out of the file, so that its default counts
      --path            print where the file is
      <listed>

    Examples:
      bethink config
      bethink config mode keyword
      bethink config limit 5 --project-file
      bethink config --unset mode
    """
    if args.project_file and args.key in configuration.PERSONAL and args.value is not None:
        raise UsageError(
            f"'{args.key}' may not be set by a project's file.",
            f"Set it for yourself: bethink config {args.key} {args.value}",
        )
    root = project(args).root
    path = configuration.project_file(root) if args.project_file else configuration.user_file()
    if args.path:
        return Result({"path": str(path)}, [str(path)])
    if args.unset and args.key:
        raise UsageError(
            "Give one setting to --unset and nothing else.", "bethink config --unset mode"
        )
    if args.unset:
        return unset(args, path)
    return change(args, path) if args.value is not None else show_settings(args)


SETTINGS = Listing((), "settings", "setting")


def show_settings(args: Namespace) -> Result:
    found = configuration.explain(settings(args))
    if args.key:
        check_key(args.key)
        row = next(row for row in found if row["key"] == args.key)
        return Result(row, [as_typed(row["value"])], listing=SETTINGS)
    return Result(found, listing=SETTINGS)


def check_key(key: str) -> None:
    if key not in configuration.SETTINGS:
        raise ConfigError(f"There is no setting '{key}'.", configuration.suggest_setting(key))


def change(args: Namespace, path: Path) -> Result:
    key = args.key
    check_key(key)
    if key == "embedding" and args.value not in ("http", "hashing", "none"):
        find_model(args.value)  # a slip of the pen would turn every search into one by words
    try:
        value = configuration.check(key, args.value)
    except ValueError as error:
        raise ConfigError(
            f"Bad value '{args.value}' for '{key}': {error}.",
            "`bethink config` shows what each setting is for.",
        ) from None
    edit_file(path, key, value, project(args).root if args.project_file else None)
    warnings = []
    try:
        now = settings(args)
        if now.origins.get(key) != str(path):
            warnings = [
                f"{now.origins.get(key)} sets {key} too, and wins: it is still {as_typed(getattr(now, key))}."
            ]
    except ConfigError as error:
        warnings = [error.message]
    masked = configuration.mask_password(value)
    return Result({"key": key, "value": masked, "path": str(path)}, warnings=warnings)


def unset(args: Namespace, path: Path) -> Result:
    root = project(args).root if args.project_file else None
    if not edit_file(path, args.unset, None, root):
        check_key(args.unset)
        raise NotFound(
            f"'{args.unset}' is not set in {path}.",
            "`bethink config` shows where each value comes from.",
        )
    return Result({"key": args.unset, "path": str(path)})


def edit_file(path: Path, key: str, value: Any, root: Path | None) -> bool:
    """Changes one setting in a file, or takes it out. Says whether anything changed. Behind a link it is the file that it leads
    to, but for a project's link out of its `root`. A new file is for its owner alone, as it may name keys and hosts."""
    try:
        real = textfile.inside(root, path) if root else textfile.resolve(path)
    except OSError as error:
        raise BethinkError(f"{path} cannot be followed: {error.strerror}.") from error
    was = textfile.read(real)
    text = replace_setting(was or "", key, value, path)
    if text == was:
        return value is not None
    if was is None and value is None:
        return False
    if not textfile.write(real, text, was, 0o600):
        raise BethinkError(f"{path} changed meanwhile.", "Try again.")
    return True


def replace_setting(text: str, key: str, value: Any, path: Path) -> str:
    """The file with one setting changed, added or, for None, taken out. All other lines stay as they are."""
    import tomlkit

    try:
        document = tomlkit.parse(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"The settings file {path} cannot be read: {error}.", "Mend or remove the file."
        ) from None
    if value is not None:
        document[key] = list(value) if isinstance(value, tuple) else value
    elif key in document:
        del document[key]
    changed, end = tomlkit.dumps(document), textfile.line_end(text)
    last = changed.endswith("\n") and not changed.endswith(end)  # the line that was added
    return changed.removesuffix("\n") + end if last else changed


def as_typed(value: Any) -> str:
    """A value as it is typed on the command line, but for passwords."""
    value = configuration.mask_password(value)
    return ", ".join(value) if isinstance(value, tuple) else cell(value)


# Pauses


def pause(args: Namespace) -> Result:
    """Pause memory in this project, or everywhere: agents are told nothing, and what is said until it is resumed is never
    learned, neither from their hooks nor by a later `bethink backfill`. Searching and adding by hand go on working.

    Takes:
      --everywhere    in every project, not only in this one
      --for TIME      resume by itself after that: 30min, 2h, 1d

    Examples:
      bethink pause
      bethink pause --for 2h
      bethink pause --everywhere
    """
    span, here = getattr(args, "for"), project(args)
    scope, name = (EVERYWHERE, "") if args.everywhere else (here.scope, here.name)
    now = datetime.now(LOCAL)
    seconds = (expiry(span, now) - now).total_seconds() if span else None
    return Result(
        {"paused": plain_pause(pause_memory(scope, name, seconds))},
        [f"paused {name or 'everywhere'}"],
        hints=[f"`bethink resume{' --everywhere' if args.everywhere else ''}` ends it."],
    )


def resume(args: Namespace) -> Result:
    """Resume memory after `bethink pause`. What was said meanwhile stays out of memory.

    Takes:
      --everywhere    end every pause, of all projects

    Examples:
      bethink resume
      bethink resume --everywhere
    """
    ended = resume_memory(EVERYWHERE if args.everywhere else project(args).scope)
    left = [plain_pause(one) for one in read_pauses() if one.holds(time.time())]
    everywhere = any(one["scope"] == EVERYWHERE for one in left)
    still = "Memory is still paused everywhere; `bethink resume --everywhere` ends that."
    value = {"resumed": list(map(plain_pause, ended)), "still_paused": left}
    return Result(
        value,
        [f"resumed {one.name or 'everywhere'}" for one in ended] or ["Nothing was paused."],
        hints=[still] if everywhere else [],
    )


def plain_pause(one: Pause) -> dict[str, Any]:
    return {
        "scope": one.scope,
        "project": one.name or None,
        "since": datetime.fromtimestamp(one.since, UTC),
        "until": None if one.until is None else datetime.fromtimestamp(one.until, UTC),
    }


# Hooks. A host's own call goes to `hooks.run.run_alone`, past the parser; this is for people and their tests.


def hook(args: Namespace) -> int:
    """Do what an agent's hook asks for: give a briefing when a session starts, add what fits a prompt, note a transcript that grew.
    `bethink install` puts this into the agents' settings. Reads the host's message from stdin, prints what its model is to know,
    or nothing, and ends with 0 whatever happens; `bethink doctor` shows what went wrong. BETHINK_HOOKS=off does nothing.

    Takes:
      EVENT                   session-start, prompt, stop, subagent-stop, pre-compact, post-compact, session-end; or `work`, to read what waits in the spool
      --host HOST = auto    claude, codex, copilot, gemini, cursor, opencode; by default told by what it says
      --lock LOCK             of the worker, which inherits it

    Examples:
      echo '{"cwd": "/home/me/shop", "source": "startup"}' | bethink hook session-start --host claude
      echo '{"cwd": "/home/me/shop", "prompt": "how do we deploy?"}' | bethink hook prompt --host codex
      bethink hook work --database ~/.local/share/bethink/memory.db
    """
    if args.event == WORK:
        from bethink.hooks import worker

        given = {"--database": args.database, "--lock": args.lock}
        words = [word for name, value in given.items() if value for word in (name, value)]
        return worker.main(words)
    if args.database:
        os.environ["BETHINK_DATABASE"] = args.database
    if printed := run_hook(args.event, args.host, read_message()):
        console.out(printed)  # in the host's own form, whatever --format says
    return 0


# Shell completions. Each shell's script asks `completion words` what may follow what was typed.

BASH = """_bethink() {
  local IFS=$'\\n'
  COMPREPLY=($(bethink completion words "${COMP_LINE:0:COMP_POINT}" 2>/dev/null | cut -f1))
}
complete -o default -F _bethink bethink"""
SCRIPTS = {
    "bash": BASH,
    "zsh": "#compdef bethink\nautoload -Uz bashcompinit && bashcompinit\n" + BASH,
    "fish": """complete -c bethink -n __fish_use_subcommand -f
complete -c bethink -a '(bethink completion words (commandline -cp | string collect) 2>/dev/null)'""",
    "powershell": """Register-ArgumentCompleter -Native -CommandName bethink -ScriptBlock {
    param($word, $ast, $position)
    $line = $ast.ToString().PadRight($position).Substring(0, $position)
    bethink completion words $line 2>$null | ForEach-Object {
        $name, $about = $_ -split "`t"
        [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $about)
    }
}""",
}


def completion(args: Namespace) -> Result | int:
    """Print completions of commands, options and values for a shell.

    Takes:
      shell bash|zsh|fish|powershell|words
      [LINE]            of words: what was typed; lists what may stand at its end

    Examples:
      source <(bethink completion bash)
      source <(bethink completion zsh)
      bethink completion fish > ~/.config/fish/completions/bethink.fish
      bethink completion powershell | Out-String | Invoke-Expression
    """
    if args.shell == "words":
        found = complete_line(args.line or "")
        value, lines = found, [f"{word}\t{about}" for word, about in found.items()]
    else:
        value = {"shell": args.shell, "script": SCRIPTS[args.shell]}
        lines = [value["script"]]
    if args.format == "text":
        out("\n".join(lines))  # for a shell, whatever the terminal's width
        return 0
    return Result(value)


def complete_line(line: str) -> dict[str, str]:
    """What may stand at the end of a line that is being typed, and what each is for."""
    typed = line.split()[1:]
    last = typed.pop() if typed and not line.endswith(" ") else ""
    name, _ = find_command(typed)
    found = {name: about for name, (_, about) in COMMANDS.items()}
    if name in COMMANDS:
        arguments = load(name).arguments
        valued = [one for one in arguments if typed[-1] in one.names and one.value]
        found = {}
        for one in valued or arguments:
            if one.is_option and not valued:
                found |= dict.fromkeys(one.names, one.help)
            else:
                choices = one.choices or (KINDS if one.value == "KIND" else ())
                found |= dict.fromkeys(choices, one.help)
    return {word: about or word for word, about in found.items() if word.startswith(last)}


# The product in under a minute, on a database that is thrown away. Each step is a command as a user would type it.

# What is said (#) and typed. A line that begins with `meaning:` needs an embedding model, one with `words:` is for its absence;
# `name =` keeps the id of what was added for later lines.
SCRIPT = f"""
# Remember a few things. A kind that is not given is found by rules: the last one is a question.
add "Users sign in with a magic link that is valid for 15 minutes" --kind decision --tag auth
mysql = add "The orders service stores its data in MySQL" --kind architecture --importance 7
gotcha = add "Never run migrations during the nightly export: the tables are locked" --kind gotcha
add "I prefer small pull requests with one commit each" --kind preference --personal
add "Should the invoice PDF be made on the server?"
meaning: # The same again is noticed, and so is nearly the same: neither is added, and it says which one is known.
words: # The same again is noticed: it is not added, and it says which one is known.
add "Users sign in with a magic link that is valid for 15 minutes"
meaning: add "Our users sign in by a magic link, which stays valid for 15 minutes"
meaning: # Ask in other words: by meaning and words together, or by meaning alone. No word is the same, so words alone find nothing.
meaning: search "how do people log in?" --mode hybrid --limit 2
meaning: search "how do people log in?" --mode vector --limit 2
meaning: search "how do people log in?" --mode keyword --limit 2
words: # Ask by words.
words: search "how do users sign in?" --mode keyword --limit 2
# An intent weighs recency and use as well: what proved useful comes first.
vote {{gotcha}} 5
search "what could lock the tables?" --intent frequent --limit 2 --seed 1
# A decision that changes replaces the old one. The answer is the new one, and shows what it superseded.
add "Orders moved from MySQL to PostgreSQL, because MySQL locked whole tables" --kind decision --supersedes {{mysql}}
recall "which database does the orders service use?" --max-tokens 200
# What is private, and what looks like a secret, is taken out before anything is stored.
add "The staging login is <private>ops / hunter2</private> and the token is ghp_{"a1B2" * 9}"
search "staging login" --mode keyword --limit 1
# Every score can be taken apart, signal by signal.
meaning: search "how do people log in?" --limit 1 --explain
words: search "how do users sign in?" --limit 1 --explain
# Seven memories are kept: what was known is not there twice, and what was replaced stays in the history.
stats
"""
_LINE = re.compile(r"(?:(meaning|words): )?(?:(\w+) = )?(.*)")


def demo(args: Namespace) -> Result:
    """Show the product on a throw-away database: add, duplicates, search three ways, an intent, a replaced decision,
    redaction, explain. Nothing of yours is touched.

    Examples:
      bethink demo
      BETHINK_EMBEDDING=none bethink demo
      bethink demo --json
    """
    with tempfile.TemporaryDirectory(prefix="bethink-demo-") as folder:
        steps = play(args, Path(folder))
    end = "\nThat was all on a throw-away database, which is gone. Next: bethink add"
    return Result(steps, [end])


def play(args: Namespace, folder: Path) -> list[dict[str, object]]:
    """Goes through the script. Says and shows each step as it comes, and gives all of them."""
    project = folder / "shop"
    (project / ".bethink").mkdir(parents=True)  # what marks it as a project
    database = str(folder / "memory.db")
    place = {"database": database, "project": str(project), "container": None}
    say = out if args.format == "text" else lambda text: None
    with open_memory(Namespace(**{**vars(args), **place}), make=True) as memory:
        hints = memory.search("anything", mode="hybrid").hints
        model = memory.embedder if memory.config.embedding != "hashing" else None
    none = ("There is no embedding model, so this demo finds memories by their words only.", *hints)
    about = [f"Meaning comes from {model.model}, on this machine."] if model else none
    say("\n" + "\n".join(f"# {line}" for line in about))
    steps: list[dict[str, object]] = []
    ids: dict[str, str] = {}
    for line in SCRIPT.strip().splitlines():
        condition, name, typed = re.fullmatch(_LINE, line).groups()  # type: ignore[union-attr]
        if condition == ("words" if model else "meaning"):
            continue
        if typed.startswith("# "):
            say(f"\n{typed}")
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
