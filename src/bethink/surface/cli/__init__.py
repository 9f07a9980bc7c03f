"""The command line: the table of its commands, and what `--help` and `--version` print.

`main.py` runs a command, `console.py` is what all stand on; each other file is one group of commands, or what the groups share.
Nothing of ours is imported here: `--help` reads this file and `main.py` alone.
"""

from __future__ import annotations

import os

# Groups of commands: the name of each, the file here that holds it, what it is for.
_TABLE = """
Use:
add             remember    remember a statement
search          find        find memories, best first
recall          find        answer a question from memory: the best in full, the rest as an index
why             find        tell why something is as it is: the decision, its reason, what it replaced
today           find        list what was said, decided and done today, or at another time
get             find        show memories by id
list            find        list memories by time, importance or use
update          remember    change a memory
edit            editing     change the text of a memory in your editor
forget          remember    hide memories, or with --purge remove every trace of them
restore         remember    bring back a forgotten or replaced memory, or an earlier version
vote            remember    say that a memory was useful, or was not
link            remember    relate two memories
open            editing     open the source of a memory at its line
history         find        show every version of a memory
handoff         remember    leave word for whoever works here next, or read it
Take in:
init            knowledge   set a project up in one step
index           knowledge   bring the knowledge folders in step, once or as they change
import          transfer    take in an export, another program's memories, JSON, CSV, Markdown, or a repo map
map             knowledge   map the source code, so that symbols and places are found
backfill        knowledge   read earlier conversations from the agents' transcripts
analyze         knowledge   find commands, routes, decisions and more in a project, or in its history
promote         care        put a proven memory into the rules that agents always read
demote          care        take a memory out of the rules
Look:
stats           find        count what is stored
sessions        find        show what conversations asked, did and left
topics          find        show what conversations were about
duplicates      care        list memories that say the same
contradictions  care        list memories that disagree
audit           care        show or verify who changed what in a team's database
export          transfer    write memories out, all or a part
ui              serve       open the web page: search, browse, tend
demo            settings    show the product on a throw-away database
Serve:
mcp             serve       speak the Model Context Protocol on stdin and stdout
serve           serve       serve the web page, MCP and a REST API over HTTP
token           serve       create, list and revoke tokens for the server
hook            settings    do what an agent's hook asks for
Connect:
install         connect     connect agents: their MCP servers, hooks and skills
uninstall       connect     disconnect agents and give their files back as they were
Tend:
pause           settings    listen and tell nothing for a while, in a project or everywhere
resume          settings    end a pause
doctor          connect     check that all is well and say how to mend what is not
config          settings    show and change settings
model           care        list, fetch and verify embedding models
consolidate     care        merge, mark and retire what has become superfluous
reindex         care        embed what has no vector of the current model
backup          care        copy the database into one file
migrate         transfer    move everything into another database, SQLite or PostgreSQL
sync            transfer    exchange memories of a project with a team's database or server
reset           care        forget everything beyond recovery
bench           care        measure quality and speed on labelled sets
completion      settings    print completions for a shell
"""


def _parse_table(table: str) -> dict[str, dict[str, tuple[str, str]]]:
    groups: dict[str, dict[str, tuple[str, str]]] = {}
    for line in table.strip().splitlines():
        if line.endswith(":"):
            group = groups.setdefault(line[:-1], {})
            continue
        name, file, about = line.split(None, 2)
        group[name] = (file, about)
    return groups


GROUPS = _parse_table(_TABLE)
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

# The global options that take a value: needed to find the command behind them.
VALUED = ("--database", "--project", "--container", "--format")

_OVERVIEW_END = """

Options before or after the command:
  --database PATH    the database to use
  --project DIR      act as if started in that directory
  --container NAME   a named container inside the project
  --format FORMAT    text, json, csv, md or xml; --json means --format json
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


def overview() -> str:
    """What `bethink --help` prints. Written from the table, so that no command's file has to be read for it."""
    try:
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (OSError, ValueError):
        columns = 100
    width = max(map(len, COMMANDS)) + 2
    lines = [
        "usage: bethink COMMAND [options]",
        "",
        "One long-term memory for coding agents and the people who work with them.",
    ]
    for title, commands in GROUPS.items():
        lines += [
            "",
            f"{title}:",
            *(f"  {name:<{width}}{about}" for name, (_, about) in commands.items()),
        ]
    text = "\n".join(lines) + _OVERVIEW_END
    return "\n".join(_fold(line, columns) for line in text.split("\n"))


def _fold(line: str, columns: int) -> str:
    """A line of the overview on as many as a narrow terminal needs, the further ones indented as far as what a command is for."""
    rows, room = [line], max(columns, 40)
    while len(rows[-1]) > room and " " in rows[-1][20:room]:
        cut = rows[-1].rfind(" ", 0, room + 1)
        rows[-1:] = [
            rows[-1][:cut],
            f"{'':<{18 if line.startswith('  ') else 0}}{rows[-1][cut + 1 :]}",
        ]
    return "\n".join(rows)
