"""The command line: its commands, and what `--help` and `--version` print.

`main.py` runs a command, `console.py` is what all stand on; each other file is one group of commands, or what the groups share.
"""

from bethink.app import OPERATIONS, SECTIONS

# Groups of commands: the name of each, the file here that holds it and how it opens memory, what it is for.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {}
COMMANDS: dict[str, tuple[str, str]] = {}
for _name, (_group, _file, _, _, _about) in OPERATIONS.items():
    if _file != "-":
        COMMANDS[_name] = GROUPS.setdefault(_group, {})[_name] = (_file, _about)

# The global options that take a value: needed to find the command behind them.
VALUED = ("--database", "--project", "--container", "--format")


def version() -> str:
    from bethink import __version__

    return f"bethink {__version__}\n"


def render_overview() -> str:
    """What `bethink --help` prints. Written from the table, so that no command's file has to be read for it."""
    width = max(map(len, COMMANDS)) + 2
    lines = [
        "usage: bethink COMMAND [options]",
        "",
        "One long-term memory for coding agents and the people who work with them.",
    ]
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<{width}}{about}" for name, (_, about) in commands.items()]
    return "\n".join([*lines, "", SECTIONS["overview"]])
