"""`config`: shows each setting and where it came from, and edits the settings files without touching their other lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink import config as configuration
from bethink.errors import BethinkError, ConfigError, NotFound, UsageError
from bethink.surface.cli.console import Listing, Result, project, settings
from bethink.surface.cli.parsing import command, nearest
from bethink.surface.layout import FORMATS, cell, style
from bethink.text import textfile

if TYPE_CHECKING:
    from argparse import Namespace


@command(
    "config",
    """
    [KEY]             the setting to show, or with VALUE to change
    [VALUE]
    --project-file    change the project's file instead of yours
    --unset KEY       take a setting out of the file, so that its default counts
    --path            print where the file is
    """,
    formats=FORMATS,
)
def config(args: Namespace) -> Result:
    """Show every setting, its value and where that came from; show one; or change one in your settings file. Later layers
    win: defaults, your file, the project's file, the environment (BETHINK_LIMIT=5), the command line.

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


def show_settings(args: Namespace) -> Result:
    found = configuration.explain(settings(args))
    if args.key:
        check_key(args.key)
        row = next(row for row in found if row["key"] == args.key)
        listing = Listing(tuple(row), "settings", "setting") if args.format != "json" else None
        return Result([row] if listing else row, [as_typed(row["value"])], listing=listing)
    room = max(len(row["key"]) for row in found)
    lines = []
    for row in found:
        origin = "" if row["origin"] == "default" else f"  ({row['origin']})"
        value = style(as_typed(row["value"]) or "(empty)", "bold")
        lines.append(f"{row['key']:<{room}}  {value}{origin}")
        lines.append(f"{'':<{room}}  {style(row['help'], 'dim')}")
    fields = ("key", "value", "origin", "help")
    return Result(found, lines, listing=Listing(fields, "settings", "setting"))


def check_key(key: str) -> None:
    if key not in configuration.SETTINGS:
        close = nearest(key.replace("-", "_"), list(configuration.SETTINGS))
        raise ConfigError(
            f"There is no setting '{key}'.", close or "`bethink config` lists every setting."
        )


def change(args: Namespace, path: Path) -> Result:
    key = args.key
    check_key(key)
    try:
        value = configuration.check(key, args.value)
    except ValueError as error:
        raise ConfigError(
            f"Bad value '{args.value}' for '{key}': {error}.",
            "`bethink config` shows what each setting is for.",
        ) from None
    edit_file(args, path, key, f"{key} = {as_toml(value)}")
    masked = configuration.masked(value)
    warnings = []
    try:
        now = settings(args)
        if now.origins.get(key) != str(path):
            still = as_typed(configuration.masked(getattr(now, key)))
            warnings = [f"{now.origins.get(key)} sets {key} too, and wins: it is still {still}."]
    except ConfigError as error:
        warnings = [error.message]
    return Result(
        {"key": key, "value": masked, "path": str(path)},
        [f"{key} = {as_typed(masked)}  ({path})"],
        warnings=warnings,
    )


def unset(args: Namespace, path: Path) -> Result:
    if not edit_file(args, path, args.unset, None):
        check_key(args.unset)
        raise NotFound(
            f"'{args.unset}' is not set in {path}.",
            "`bethink config` shows where each value comes from.",
        )
    return Result({"key": args.unset, "path": str(path)}, [f"unset {args.unset}  ({path})"])


def edit_file(args: Namespace, path: Path, key: str, line: str | None) -> bool:
    """Changes one setting in a file, or takes it out. Says whether anything changed. Behind a link it is the file that it leads
    to, but for a project's link out of the project. A new file is for its owner alone, as it may name keys and hosts."""
    try:
        real = (
            textfile.inside(project(args).root, path)
            if args.project_file
            else textfile.resolved(path)
        )
    except OSError as error:
        raise BethinkError(f"{path} cannot be followed: {error.strerror}.") from error
    was = textfile.read(real)
    text = replace_setting(was or "", key, line, path)
    if text == was:
        return line is not None
    if was is None and line is None:
        return False
    real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not textfile.write(real, text, was, 0o600):
        raise BethinkError(f"{path} changed meanwhile.", "Try again.")
    return True


def replace_setting(text: str, key: str, line: str | None, path: Path) -> str:
    """The file with one setting changed, added or, if `line` is None, taken out. All other lines stay as they are."""
    if problem := toml_problem(text):
        raise ConfigError(
            f"The settings file {path} cannot be read: {problem}.", "Mend or remove the file."
        )
    lines, ending = text.splitlines(keepends=True), textfile.line_end(text)
    pattern = re.compile(rf'\s*"?{re.escape(key)}"?\s*=')
    # A line inside a value of several lines may look the same: what stands above it is no TOML then.
    starts = [at for at, old in enumerate(lines) if pattern.match(old)]
    start = next((at for at in starts if not toml_problem("".join(lines[:at]))), None)
    if start is None:
        if line is None:
            return text
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += ending
        return "".join([*lines, line + ending])
    ends = range(start + 1, len(lines) + 1)
    end = next(end for end in ends if not toml_problem("".join(lines[start:end])))
    new = [] if line is None else [line + comment_of("".join(lines[start:end])) + ending]
    return "".join([*lines[:start], *new, *lines[end:]])


def toml_problem(text: str) -> str:
    """Why a text is no TOML; nothing if it is."""
    import tomllib

    try:
        tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def comment_of(assignment: str) -> str:
    """The comment behind a value, with the space before it."""
    last = assignment.rstrip("\r\n")
    for found in re.finditer(r"(?<!\s)\s*#", last):
        if "\n" not in last[found.start() :].strip() and not toml_problem(last[: found.start()]):
            return last[found.start() :]
    return ""


def as_toml(value: Any) -> str:
    import json

    if isinstance(value, tuple):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def as_typed(value: Any) -> str:
    """A value as it is typed on the command line."""
    return ", ".join(value) if isinstance(value, tuple) else cell(value)
