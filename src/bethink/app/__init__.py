"""What Bethink does, in `commands.txt`, which every surface reads.

First a line for each operation: the file of its command in `cli/`, and whether that reads a memory that is there or may make one; its
address in the HTTP API; its tool for agents; what it is for. A dash says that a surface has it not. Then a section for each command: what it
does, what it takes in the language of `arguments.py`, examples; and where it gives a list, what that, its items and their fields are
called. A section `<name>` is what several take. A section `agents` says which commands agents may run: those that
read and those that append; with some arguments only people may, and some arguments make a command harmless.

Nothing is imported here: `--help` reads this and the files that start the command line alone.
"""


def _read_commands() -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Name → its group, the file of its command, its address, its tool, what it is for; and the sections."""
    with open(f"{__path__[0]}/commands.txt", encoding="utf-8") as file:  # noqa: PTH123 - needs no import
        table, *sections = file.read().split("\n# ")
    rows: dict[str, tuple[str, ...]] = {}
    group = ""
    for line in table.strip().split("\n"):
        name, *cells = (cell.strip() for cell in line.split("  ") if cell)
        if cells:
            rows[name] = (group, *cells)
        else:
            group = name.rstrip(":")
    return rows, dict(section.split("\n", 1) for section in sections)


def read_words(section: str) -> dict[str, str]:
    """A section that says something about each of its names."""
    return dict(line.split(": ", 1) for line in SECTIONS[section].strip().splitlines())


OPERATIONS, SECTIONS = _read_commands()
