"""Fit texts into a width: cut at a clause or a word, shorten paths, share a width among lines.

Titles, summaries and digests are made of the words of a conversation. This module only cuts; it never adds a word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from bethink.ingest.sentences import cut_text, measure_width
from bethink.language.clauses import CLAUSE_END, DANGLING_END
from bethink.language.pattern import compile_pattern, fold_case
from bethink.language.vocabulary import is_file, is_identifier, is_path, plain_words, word_set
from bethink.store.words import space_out

ITEM_WIDTH = 200  # of one thing in a summary or a digest; set by hand on the digests of 22 sessions
CLAUSE_WIDTH = (
    12  # of the shortest clause that can replace a whole request; set by hand on 22 sessions
)

# Words of a project's daily life, which would fit any request.
_EVERYDAY = frozenset(
    """pr prs description super short stuff lets main latest change changes work working thing bit couple comment comments point points valid way
    correctly somehow exactly time going doing understand quick easy theres wonder related regarding state current project branch repo
    address applicable individual meaningful option dont didnt wont thats whats look looking like little get back seems great one tackle ship
    commit commits committing retry push pushed merge rebase todo todos todays session yes exit""".split()
)
_LONG_PATH = r"(?<![^\s`])(https?://)?[\w.@~:+-]*(?:[/\\][\w.@+-]+){3,}/?"


def names_something(text: str) -> bool:
    """Return True for a text that names a file, a symbol, one distinctive word, or two less common ones."""
    generic = set()
    for token in space_out(text).split():
        word = token.strip("\"'“”‘’([{<>}])*_`.,:;!?…")
        folded = fold_case(word)
        if is_path(word) or is_file(word) or is_identifier(word):
            return True
        everyday = {folded, folded.removesuffix("s")} & _EVERYDAY or folded in plain_words()
        if not everyday and len(word) > 1 + word.isascii() and any(map(str.isalpha, word)):
            generic.add(folded)
            if folded not in word_set("generic") or len(generic) > 1:
                return True
    return False


def fit(text: str, width: int, words: int = ITEM_WIDTH) -> str:
    """Return the whole text, or its longest beginning that ends with a clause, or whole words and "…"."""

    def fits(part: str) -> bool:
        return len(part.split()) <= words and measure_width(part) <= width

    if fits(text):
        return text
    ends = CLAUSE_END.finditer(text[: 2 * ITEM_WIDTH])
    clauses = [
        part.rstrip(" ,;:")
        for end in ends
        if fits(part := text[: end.start()])
        and measure_width(part) > max(CLAUSE_WIDTH, width // 4)
        and part.count("(") == part.count(")")
        and text[len(part)] != ":"
        and names_something(part)
    ]
    if clauses:
        return clauses[-1]
    return drop_dangling(cut_text(text, width - 1, words).rstrip("…")) + "…"


def drop_dangling(text: str) -> str:
    """Drop the words that nothing can end with: "Rename the parser and the" → "Rename the parser"."""
    return DANGLING_END.sub("", text)


def shorten_paths(text: str) -> str:
    """Keep the last part of each long path, and the last three of each address: `repository/pull/53`."""

    def shorten(path: re.Match[str]) -> str:
        parts = path[0].replace("\\", "/").rstrip("/").split("/")
        return "/".join(parts[-3:] if path[1] else parts[-1:])

    return compile_pattern(_LONG_PATH).sub(shorten, text)


def list_distinct(texts: Iterable[str]) -> list[str]:
    """Return texts on one line each, every one once."""
    return list(dict.fromkeys(" ".join(text.split()) for text in texts if text.strip()))


def join(items: Iterable[str]) -> str:
    """Join items with semicolons, without the signs that they end with."""
    return "; ".join(" ".join(item.split()).rstrip(" .:;,") for item in items)


def choose(items: Sequence[str], width: int, newest: bool = False) -> str:
    """Join as many items as fit, the first or the newest, in order. Only the first may be cut in a clause."""
    order = -1 if newest else 1
    chosen: list[str] = []
    for item in items[::order]:
        whole = join([item])
        room = width - measure_width(join((*chosen, "")))
        short = fit(whole, min(ITEM_WIDTH, room)) if room > CLAUSE_WIDTH else ""
        at_clause = not newest and not short.endswith("…")
        if short and (short == whole or not chosen or at_clause):
            chosen.append(short)
    return join(chosen[::order])


def share_out(
    wanted: Mapping[str, Sequence[str]], shares: Mapping[str, int], newest: Collection[str]
) -> dict[str, str]:
    """Return a line for each label, within its share and the width that other labels leave free."""
    widths = {label: min(shares[label], measure_width(join(wanted[label]))) for label in wanted}
    free = sum(shares.values()) - sum(widths.values())
    lines = {}
    for label, items in wanted.items():
        lines[label] = choose(items, widths[label] + free, label in newest)
        free += widths[label] - measure_width(lines[label])
    return lines
