"""Readers of document formats, which are plugins: each turns a text into Markdown."""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bethink.ingest.files import unify_line_ends
from bethink.model import Strings

# A line of text with a line of one sign below it, and perhaps above it, where the text may be indented.
RST_TITLE = re.compile(
    r"(?m)^(?:([=~^\"'`#*+.:_-])\1{2,}[ \t]*\n[ \t]*)?(\S[^\n]{0,200})\n([=~^\"'`#*+.:_-])\3{2,}[ \t]*$"
)


class Reader(NamedTuple):
    """A document format, recognised by the suffix of a file."""

    name: str
    suffixes: Strings
    to_markdown: Callable[[str], str]  # as far as the format resembles it: titles, warnings, code
    keeps_lines: bool = (
        True  # every line stays where it was, so that passages can be cited by lines
    )


def read_rst(text: str) -> str:
    """Return reStructuredText as Markdown."""
    text = RST_TITLE.sub(partial(_rst_title, []), text)
    text = re.sub(r"(?m)^(?:~{3,}|`{3,})[ \t]*$", "---", text)  # would begin code
    return re.sub(r"(?m)^\.\. (\w{1,20})::", r"!!! \1", text)


def _rst_title(styles: list[tuple[bool, str]], found: re.Match[str]) -> str:
    """Return a title of reStructuredText as one of Markdown.

    Its level is the place of its style (the sign below it, and a line above it or none) in the order of first use.
    """
    style = (bool(found[1]), found[3])
    if style not in styles:
        styles.append(style)
    above = "\n" if found[1] else ""
    return f"{above}{'#' * min(styles.index(style) + 1, 6)} {found[2]}\n"


def read_asciidoc(text: str) -> str:
    """Return AsciiDoc as Markdown."""
    text = re.sub(r"(?m)^={1,6}(?= \S)", lambda mark: "#" * len(mark[0]), text)
    return re.sub(r"(?m)^(?:-{4,80}|\.{4,80})[ \t]*$", "```", text)


def read_notebook(text: str) -> str:
    """Return the text and the code of a notebook, without the output of the code."""
    try:
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    parts = (cell if kind == "markdown" else f"```\n{cell}\n```" for kind, cell in cells)
    return unify_line_ends("\n\n".join(parts))


RST = Reader("rst", (".rst",), read_rst)
ASCIIDOC = Reader("asciidoc", (".adoc",), read_asciidoc)
NOTEBOOK = Reader("notebook", (".ipynb",), read_notebook, keeps_lines=False)
