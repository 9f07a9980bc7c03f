"""`config`: shows each setting and where it came from, and edits the settings files without touching their other lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.errors import BethinkError, ConfigError, NotFound, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import FORMATS, Command, nearest
from bethink.surface.cli.session import project, settings

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def config_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "key", nargs="?", metavar="KEY", help="the setting to show, or with VALUE to change"
    )
    parser.add_argument("value", nargs="?", metavar="VALUE")
    parser.add_argument(
        "--project-file", action="store_true", help="change the project's file instead of yours"
    )
    parser.add_argument(
        "--unset", metavar="KEY", help="take a setting out of the file, so that its default counts"
    )
    parser.add_argument("--path", action="store_true", help="print where the file is")


def config(args: Namespace) -> None:
    """Show every setting, its value and where that came from; show one; or change one in your settings file. Later layers
    win: defaults, your file, the project's file, the environment (BETHINK_LIMIT=5), the command line.

    Examples:
      bethink config
      bethink config mode keyword
      bethink config limit 5 --project-file
      bethink config --unset mode
    """
    from bethink.config import PERSONAL, project_file, user_file

    if args.project_file and args.key in PERSONAL and args.value is not None:
        raise UsageError(
            f"'{args.key}' may not be set by a project's file.",
            f"Set it for yourself: bethink config {args.key} {args.value}",
        )
    path = project_file(project(args).root) if args.project_file else user_file()
    if args.path:
        output.show(args, {"path": str(path)}, lambda: output.out(str(path)))
    elif args.unset:
        if args.key:
            raise UsageError(
                "Give one setting to --unset and nothing else.", "bethink config --unset mode"
            )
        unset(args, path)
    elif args.value is not None:
        change(args, path)
    else:
        display(args)


def display(args: Namespace) -> None:
    from bethink.config import explain

    found = explain(settings(args))
    if args.key:
        known(args.key)
        row = next(row for row in found if row["key"] == args.key)
        if args.format == "json":
            output.data([output.json_text(row) + "\n"])
        else:
            output.show_list(
                args,
                [row],
                tuple(row),
                lambda: output.out(written(row["value"])),
                "settings",
                "setting",
            )
        return

    def text() -> None:
        room = max(len(row["key"]) for row in found)
        for row in found:
            origin = "" if row["origin"] == "default" else f"  ({row['origin']})"
            output.out(
                f"{row['key']:<{room}}  {output.style(written(row['value']) or '(empty)', 'bold')}{origin}"
            )
            output.out(f"{'':<{room}}  {output.style(row['help'], 'dim')}")

    output.show_list(args, found, ("key", "value", "origin", "help"), text, "settings", "setting")


def known(key: str) -> None:
    from bethink.config import SETTINGS

    if key not in SETTINGS:
        close = nearest(key.replace("-", "_"), list(SETTINGS))
        raise ConfigError(
            f"There is no setting '{key}'.", close or "`bethink config` lists every setting."
        )


def change(args: Namespace, path: Path) -> None:
    from bethink.config import check, masked

    known(args.key)
    try:
        value = check(args.key, args.value)
    except ValueError as error:
        raise ConfigError(
            f"Bad value '{args.value}' for '{args.key}': {error}.",
            "`bethink config` shows what each setting is for.",
        ) from None
    write(args, path, replaced(read(path), args.key, f"{args.key} = {toml(value)}", path))
    told = masked(value)
    output.show(
        args,
        {"key": args.key, "value": told, "path": str(path)},
        lambda: output.out(f"{args.key} = {written(told)}  ({path})"),
    )
    try:
        now = settings(args)
    except ConfigError as error:
        output.warn(args, error.message)
        return
    if now.origins.get(args.key) != str(path):
        output.warn(
            args,
            f"{now.origins.get(args.key)} sets {args.key} too, and wins: it is still {written(masked(getattr(now, args.key)))}.",
        )


def unset(args: Namespace, path: Path) -> None:
    text = read(path)
    changed = replaced(text, args.unset, None, path)
    if changed == text:
        known(args.unset)
        raise NotFound(
            f"'{args.unset}' is not set in {path}.",
            "`bethink config` shows where each value comes from.",
        )
    write(args, path, changed)
    output.show(
        args,
        {"key": args.unset, "path": str(path)},
        lambda: output.out(f"unset {args.unset}  ({path})"),
    )


# The file as text


def read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")  # with the line ends that it has
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"The settings file {path} cannot be read: {error}.", "Mend or remove the file."
        ) from error


def replaced(text: str, key: str, line: str | None, path: Path) -> str:
    """The file with one setting changed, added or, if `line` is None, taken out. All other lines stay as they are."""
    import tomllib

    from bethink.text.textfile import line_end

    try:
        tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"The settings file {path} cannot be read: {error}.", "Mend or remove the file."
        ) from None
    lines, ending = text.splitlines(keepends=True), line_end(text)

    def first(pattern: str) -> int | None:
        """The first line that begins so, those inside a value of several lines left out."""
        return next(
            (
                at
                for at, old in enumerate(lines)
                if re.match(pattern, old) and parses("".join(lines[:at]))
            ),
            None,
        )

    start = first(rf"\s*(\"{re.escape(key)}\"|{re.escape(key)})\s*=")
    if start is None:
        if line is None:
            return text
        table = first(r"\s*\[")
        table = len(lines) if table is None else table
        if table and not lines[table - 1].endswith("\n"):
            lines[table - 1] += ending
        return "".join([*lines[:table], line + ending, *lines[table:]])
    end = next(end for end in range(start + 1, len(lines) + 1) if parses("".join(lines[start:end])))
    new = [] if line is None else [line + comment("".join(lines[start:end])) + ending]
    return "".join([*lines[:start], *new, *lines[end:]])


def parses(text: str) -> bool:
    import tomllib

    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def comment(assignment: str) -> str:
    """The comment behind a value, with the space before it."""
    last = assignment.rstrip("\r\n")
    for found in re.finditer(r"(?<!\s)\s*#", last):
        if "\n" not in last[found.start() :].strip() and parses(last[: found.start()]):
            return last[found.start() :]
    return ""


def toml(value: Any) -> str:
    import json

    if isinstance(value, tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def written(value: Any) -> str:
    """A value as it is typed on the command line."""
    return ", ".join(value) if isinstance(value, tuple) else output.cell(value)


def write(args: Namespace, path: Path, text: str) -> None:
    """Replaces the file whole, so that a stopped command leaves the old one; behind a link, the file that it leads to, but for a
    project's link out of the project. Owner-only, as it may name keys and hosts."""
    import os

    from bethink.text.textfile import inside, resolved

    try:
        path = inside(project(args).root, path) if args.project_file else resolved(path)
        partial = path.with_name(f"{path.name}.partial")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(
            os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            "w",
            encoding="utf-8",
            newline="",
        ) as stream:
            stream.write(text)
        partial.replace(path)
    except OSError as error:
        raise BethinkError(
            f"The settings file {path} cannot be written: {error.strerror}.",
            "Check the folder's permissions.",
        ) from error


COMMANDS = {"config": Command(config, config_options, FORMATS)}
