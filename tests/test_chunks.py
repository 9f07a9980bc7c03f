"""How Markdown is cut. Whatever the text: nothing of it is lost, and nothing is cut that must stay whole."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from case_tables import cases
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bethink.ingest import chunks
from bethink.ingest.chunks import TINY, WHOLE, Chunk, by_headers, by_lines, outline

GUIDE = """\
# Guide

This guide says how the thing is set up on each system, in the order in which people usually meet them.

## Install

Take the package that fits. It needs Python and about forty megabytes of disk, most of it for the model.

### Linux

Run the installer. It writes below your home and asks for no rights that it does not need to have. Then go on.

## Use

Ask it something that was decided long ago and see whether it still knows what was said about it then.
"""
SENTENCES = " ".join(
    f"Sentence number {number} says something of its own." for number in range(200)
)
LONG = "x" * (TINY + 1)


def joined(found: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in found)


def titles(text: str, size: int = 2000) -> list[str]:
    return [chunk.title for chunk in by_headers(text, size)]


def test_sections_begin_at_headers_and_are_called_by_the_headers_above() -> None:
    found = by_headers(GUIDE, overlap=0)
    titles = ["Guide", "Guide > Install", "Guide > Install > Linux", "Guide > Use"]
    assert [chunk.title for chunk in found] == titles
    heads = [chunk.text.partition("\n")[0] for chunk in found]
    assert heads == ["# Guide", "## Install", "### Linux", "## Use"]
    assert [chunk.lines for chunk in found] == [(1, 4), (5, 8), (9, 12), (13, 15)]


@pytest.mark.parametrize(
    ("text", "expected"),
    cases("chunks-headers-are-what-commonmark-says", {"LONG": LONG}),
)
def test_headers_are_what_commonmark_says(text: str, expected: list[str]) -> None:
    assert titles(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    cases("chunks-headers-with-next-to-nothing", {"LONG": LONG}),
)
def test_headers_with_next_to_nothing_below_lead_into_what_follows(
    text: str, expected: list[str]
) -> None:
    assert titles(text) == expected


def test_long_sections_are_split_between_paragraphs() -> None:
    paragraphs = [
        f"Paragraph {number}. " + "Words and words. " * 20 + "\n\n" for number in range(12)
    ]
    found = by_headers("# A\n\n" + "".join(paragraphs), 1000)
    assert all(chunk.text.startswith("Paragraph") for chunk in found[1:])
    assert {chunk.title for chunk in found} == {"A"}
    assert all(500 < len(chunk.text) <= 1000 for chunk in found)


@pytest.mark.parametrize("size", [300, 1000])
@pytest.mark.parametrize(
    "text",
    cases("chunks-long-paragraphs-are-split-between", {"SENTENCES": SENTENCES}),
)
def test_long_paragraphs_are_split_between_sentences(text: str, size: int) -> None:
    found = by_headers(text, size, 0)
    assert joined(found) == text
    assert all(re.search(r"[.!?。！？।؟]」?\s*$", chunk.text) for chunk in found)
    assert all(len(chunk.text) <= size for chunk in found)


def test_abbreviations_and_numbers_of_items_end_no_sentence() -> None:
    text = "We keep it in the store, e.g. in a file. " * 50
    steps = "".join(f"{number}. Step with words that go on and on\n" for number in range(1, 60))
    for size in range(300, 345):
        assert all(chunk.text.startswith("We keep") for chunk in by_headers(text, size))
    for percent in range(15, 51):
        found = by_headers(steps, 300, percent)
        assert all(re.match(r"\d+\. Step", chunk.text) for chunk in found)
        assert all(re.match(r"\d+\. Step", chunk.overlap) for chunk in found[1:])


def test_without_sentences_lines_are_kept_and_without_lines_words() -> None:
    lines = "".join(f"key{number} value\n" for number in range(200))
    assert all(chunk.text.endswith("value\n") for chunk in by_headers(lines, 300))
    words = "word " * 500
    assert all(chunk.text.endswith("word ") for chunk in by_headers(words, 300))
    assert [len(chunk.text) for chunk in by_headers("x" * 1000, 300)] == [300, 300, 300, 100]


def test_a_letter_is_not_parted_from_its_accent_nor_a_family() -> None:
    assert all(not chunk.text.startswith("\u0301") for chunk in by_headers("e\u0301" * 500, 101))
    assert all(chunk.text[0] == "👩" for chunk in by_headers("👩\u200d👩\u200d👧" * 100, 51))


FENCE = (
    "```py\n" + "".join(f"line_{number} = {number}. And more.\n" for number in range(100)) + "```\n"
)
TABLE = "| a | b |\n|---|---|\n" + "".join(
    f"| {number} | A sentence. Another one. |\n" for number in range(100)
)


@pytest.mark.parametrize(
    "block",
    cases("chunks-code-and-tables-are-never", {"FENCE": FENCE, "TABLE": TABLE}),
)
@pytest.mark.parametrize("size", [100, 500, 2000])
def test_code_and_tables_are_never_cut_in_half(block: str, size: int) -> None:
    text = f"# A\n\n{SENTENCES}\n\n{block}\n{SENTENCES}\n"
    found = by_headers(text, size)
    assert joined(found) == text
    assert [chunk for chunk in found if block.strip() in chunk.text]
    assert all(len(chunk.text) <= size for chunk in found if block.strip() not in chunk.text)
    assert (
        sum(len(chunk.text) for chunk in found if block.strip() in chunk.text) < len(block) + size
    )


def test_overlap_is_the_end_of_the_chunk_before_from_the_start_of_a_sentence() -> None:
    found = by_headers(SENTENCES, 1000, 15)
    assert not found[0].overlap
    for before, chunk in pairwise(found):
        assert before.text.rstrip().endswith(chunk.overlap)
        assert chunk.overlap.startswith("Sentence")
        assert 50 < len(chunk.overlap) <= 150


@pytest.mark.parametrize("percent", [-5, 0, 1, 15, 50, 99])
def test_overlap_changes_no_text_and_keeps_its_share(percent: int) -> None:
    text = GUIDE + "\n" + SENTENCES + "\n\n" + FENCE
    plain, found = by_headers(text, 800, 0), by_headers(text, 800, percent)
    assert [chunk._replace(overlap="") for chunk in found] == plain
    assert not any(chunk.overlap for chunk in plain)
    for before, chunk in pairwise(found):
        assert len(chunk.overlap) <= len(before.text) * min(max(percent, 0), 50) / 100


@pytest.mark.parametrize("block", [FENCE, TABLE])
def test_overlap_never_begins_inside_code_or_a_table(block: str) -> None:
    after = by_headers(f"# A\n\n{block}\n## B\n\n{LONG}\n", 6000, 15)[1]
    assert after.overlap == ""
    after = by_headers(f"# A\n\n{block}\nThat was it.\n\n## B\n\n{LONG}\n", 6000, 15)[1]
    assert after.overlap == "That was it."


def test_half_a_sentence_is_carried_within_a_section_only() -> None:
    one = "word " * 80 + "end.\n"
    inside = by_headers(one * 2, 405, 15)
    assert inside[1].overlap.startswith("word word")
    assert by_headers(f"# A\n\n{one}\n# B\n\n{one}", 2000, 15)[1].overlap == ""
    assert by_headers("日" * 600, 400, 15)[1].overlap == "日" * 60
    assert by_headers("x" * 600, 400, 15)[1].overlap == ""


def test_windows_hold_whole_lines_and_carry_the_last_ones() -> None:
    text = "# A\n" + "".join(f"line {number} with some words\n" for number in range(300))
    found = by_lines(text, 100, 20)
    assert joined(found) == text
    for before, chunk in pairwise(found):
        assert chunk.text.startswith("line")
        assert chunk.text.endswith("\n")
        assert before.text.rstrip().endswith(chunk.overlap)
        assert chunk.overlap.startswith("line")
        assert 40 < len(chunk.overlap) <= 80
        assert len(chunk.overlap) + 2 + len(chunk.text) <= 400
    assert by_lines(text) == by_lines(text, 400, 80)
    assert [len(chunk.overlap) for chunk in by_lines(text, 100, 0)] == [0] * len(
        by_lines(text, 100, 0)
    )


def test_windows_split_long_lines_between_sentences_or_words() -> None:
    assert all(chunk.text.rstrip().endswith(".") for chunk in by_lines(SENTENCES, 100, 20))
    assert all(f" {chunk.overlap}" in SENTENCES for chunk in by_lines(SENTENCES, 100, 20)[1:])
    assert [len(chunk.text) for chunk in by_lines("x" * 1000, 100, 0)] == [400, 400, 200]
    assert all(len(chunk.text) <= 400 for chunk in by_lines("word " * 1000, 100, 99))


PIECES = cases("chunks-pieces", {})
markdown = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=60).map("".join)


@settings(max_examples=150, deadline=None)
@given(
    body=markdown,
    size=st.sampled_from([1, 3, 20, 60, 250, 2000]),
    overlap=st.sampled_from([0, 15, 50]),
)
@example(body="a\r\nb\r\n", size=1, overlap=50)
@example(body="- ```\n  x\n  ```\n", size=3, overlap=15)
def test_chunks_joined_are_the_text_and_nothing_whole_is_cut(
    body: str, size: int, overlap: int
) -> None:
    found = by_headers(body, size, overlap)
    known = outline(body)
    lines = [body[start:end] for start, end in pairwise(known.starts)]
    assert joined(found) == body
    assert "".join(lines) == body
    assert [chunk._replace(overlap="") for chunk in found] == by_headers(body, size, 0)
    at = 0
    for number, chunk in enumerate(found):
        first, last = chunk.lines
        assert chunk.index == number
        assert chunk.text
        assert known.starts[first - 1] <= at < known.starts[first]
        assert known.starts[last - 1] < at + len(chunk.text) <= known.starts[last]
        if at in known.starts and at + len(chunk.text) in known.starts:
            assert chunk.text == "".join(lines[first - 1 : last])
        assert at == 0 or known.grades[first - 1] != WHOLE
        assert at == known.starts[first - 1] or known.grades[first] != WHOLE
        # Longer than the size is only what must not be cut, or the two characters of one line end.
        assert (
            len(chunk.text) <= size
            or WHOLE in known.grades[first - 1 : last]
            or chunk.text.endswith("\r\n")
        )
        at += len(chunk.text)
        assert not (body[at - 1] == "\r" and body[at : at + 1] == "\n")


@settings(max_examples=100, deadline=None)
@given(
    body=markdown,
    tokens=st.sampled_from([1, 5, 15, 400]),
    overlap=st.sampled_from([0, 3, 80]),
    first_line=st.integers(1, 9),
)
def test_windows_joined_are_the_text_and_keep_their_size(
    body: str, tokens: int, overlap: int, first_line: int
) -> None:
    found = by_lines(body, tokens, overlap, first_line)
    assert joined(found) == body
    assert all(len(chunk.text) + len(chunk.overlap) <= tokens * 4 for chunk in found)
    assert [chunk.lines[0] for chunk in found[:1]] == [first_line][: len(found)]
    for before, chunk in pairwise(found):
        assert before.lines[1] <= chunk.lines[0] <= before.lines[1] + 1
        assert chunk.overlap in before.text
        assert not (before.text.endswith("\r") and chunk.text.startswith("\n"))


def test_a_text_beyond_the_longest_that_is_parsed_is_cut_between_lines(monkeypatch) -> None:
    monkeypatch.setattr(chunks, "MOST_LINES", 8)
    text = f"# A\n\n{LONG}\n\n# B\n\n" + f"{LONG}\n\n# C\n\n" * 20
    outline.cache_clear()
    found = by_headers(text, 500)
    outline.cache_clear()
    assert joined(found) == text
    assert {chunk.title for chunk in found} == {"A", "B"}
