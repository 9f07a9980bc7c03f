"""The command line: its commands, and what `--help` and `--version` print.

`main.py` runs a command, `parser.py` reads its arguments, `console.py` is its way to the user. The other modules hold operations that only
the command line has, or show the results of the module of the same name in `operations/`.

`index.py` is written by `make docs` from the operations, so that `--help` loads none of them.
"""

from bethink.app.cli.index import COMMANDS as COMMANDS

# Common options that take a value: needed to find the command behind them.
VALUED = ("--database", "--project", "--container", "--format")

# Commands of `bethink --help`, in this order; `bethink help --all` lists all of them.
EVERYDAY = {
    "Everyday": "add search recall why today todo done edit forget undo sessions ui",
    "Set up": "init install doctor config",
}
# Names that other programs use for a command.
COMMAND_ALIASES = {
    "remember": "add",
    "delete": "forget",
    "remove": "forget",
    "rm": "forget",
    "find": "search",
    "ls": "list",
    "show": "get",
}
# Commands that list, and what adds to the list if a text follows: `bethink todo write the retry policy`.
ADDING = {"todo": ("add", "--kind", "todo")}
# Words that people try, and the command that does what they want.
POINTERS = {
    "clear": "`bethink reset` deletes all memories of a scope; it asks first.",
    "log": "`bethink today` lists what was done; `bethink history ID` lists the versions of a memory.",
    "setup": "`bethink init` sets a project up; `bethink install` connects agents.",
    "status": "`bethink doctor` checks everything; `bethink stats` counts what is stored.",
    "unset": "`bethink config --unset NAME` returns a setting to its default.",
    "upgrade": "`pip install --upgrade bethink` or `pipx upgrade bethink`, then `bethink install`.",
    "version": "`bethink --version` prints it.",
    "web": "`bethink ui` opens the web page.",
}

_MORE = """
Run `bethink help --all` for every command, and `bethink COMMAND --help` for one.
"""
_OVERVIEW = """
Options before or after the command:
  --database PATH    database to use
  --project DIR      run as if started in this directory
  --container NAME   named container inside the project
  --format FORMAT    text, json, csv, md or xml; --json is short for --format json
  --quiet            no hints, warnings or progress
  --version, -V      print the version

Examples:
  bethink add "We deploy from main, never from a branch" --kind decision
  bethink search "how do we deploy?"
  bethink recall "what did we decide about deployments?"
  bethink COMMAND --help
"""


def version() -> str:
    from bethink import __version__

    return f"bethink {__version__}\n"


def render_overview(
    everything: bool = False, commands: dict[str, tuple[str, str, str]] = COMMANDS
) -> str:
    """The text of `bethink --help`, or of `bethink help --all`."""
    groups: dict[str, list[str]] = {}
    if everything:
        for name, (group, _, _) in commands.items():
            groups.setdefault(group, []).append(name)
    else:
        groups = {title: names.split() for title, names in EVERYDAY.items()}
    width = max(len(name) for names in groups.values() for name in names) + 2
    lines = [
        "usage: bethink COMMAND [options]",
        "",
        "One long-term memory for coding agents and the people who work with them.",
    ]
    for title, names in groups.items():
        lines += ["", f"{title}:", *(f"  {name:<{width}}{commands[name][2]}" for name in names)]
    more = "" if everything else _MORE
    return "\n".join([*lines, more + _OVERVIEW])
