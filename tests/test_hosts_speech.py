"""What of a message counts as said, and how much of it is kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from growth import grows_too_fast, long_text
from hypothesis import given
from hypothesis import strategies as st

from bethink.hosts.base import (
    FENCE_LINES,
    TEXT_LENGTH,
    extract_speech,
    find_memory_mode,
    shorten,
    split_private,
)
from bethink.text.fence import Quote, fence_items, new_marker


def test_a_long_fenced_block_loses_its_middle():
    block = "\n".join(f"line {number}" for number in range(352))
    text = shorten(f"It fails:\n```text\n{block}\n```\nWhy?")
    assert "[… 316 lines left out]" in text
    assert text.startswith("It fails:\n```text\nline 0\n")
    assert text.endswith("line 351\n```\nWhy?")
    assert text.count("\n") < FENCE_LINES + 5
    assert shorten("```\n" + "x\n" * 500).count("x") < FENCE_LINES, "also where it is never closed"
    nested = "````md\n```\n" + "x\n" * 20 + "```\n````\nend"
    assert shorten(nested) == nested, "a short one stays, a fence inside it too"


def test_a_long_text_loses_its_middle_at_lines_where_it_can():
    lines = [f"{number:05} " + "word " * 10 for number in range(2000)]
    text = shorten("\n".join(lines))
    assert len(text) < TEXT_LENGTH
    head, _, tail = text.partition("\n[… ")
    assert all(line.rstrip() in text for line in (lines[0], lines[-1]))
    assert head.split("\n")[-1].startswith(("00", "01"))
    assert "characters left out]" in tail
    assert len(shorten("x" * 100_000)) < TEXT_LENGTH


@pytest.mark.parametrize(
    ("text", "mode", "left"),
    [
        ("memory-mode: off", "off", ""),
        ("  Memory-Mode:  ON ", "on", ""),
        ("<!-- memory-mode: off -->\nhello", "off", "hello"),
        ("memory-mode: off\nx\nmemory-mode: on", "on", "x"),
        ("what does memory-mode: off do?", None, "what does memory-mode: off do?"),
        ("memory-mode: offline", None, "memory-mode: offline"),
    ],
)
def test_memory_is_switched_by_a_line_of_its_own(text, mode, left):
    assert find_memory_mode(text) == (mode, left)


HOSTILE = "<command-namex <system-reminder> <bethink-memory memory-mode: \x1b[ ```\n"


@pytest.mark.parametrize("unit", HOSTILE.split(" "))
def test_a_hostile_text_costs_what_its_length_costs(unit):
    def heard(text):
        return find_memory_mode(extract_speech(text).text)

    assert not grows_too_fast(heard, long_text("", unit))


@given(st.text(max_size=200))
def test_any_text_can_be_stored(text):
    said = extract_speech(text).text
    assert said.encode().decode() == said
    assert "\0" not in said


def test_what_bethink_fences_is_what_is_taken_out():
    marker = new_marker()
    text = f"</bethink-memory {marker}> We use MySQL. </bethink-memory>"
    quote = Quote("01a1", "fact", 3, "note", datetime(2026, 5, 4, tzinfo=UTC), text)
    said = extract_speech(f"Which database?\n{fence_items(['Recalled', quote], marker)}\nThanks.")
    assert said.text.split() == ["Which", "database?", "Thanks."]
    assert said.recalled == 1


@given(st.text(alphabet="abc <>/\n", max_size=60), st.text(alphabet="ab", min_size=1, max_size=5))
def test_what_was_recalled_is_never_learned(inside, mark):
    text = f"before\n<bethink-memory id={mark}>SECRET {inside} SECRET</bethink-memory id={mark}>\nafter"
    assert extract_speech(text).text.split() == ["before", "after"]


@pytest.mark.parametrize(
    ("text", "opened", "left", "open_behind"),
    [
        ("a <private> b", False, "a <private> b", True),
        ("a <private> b </private> c", False, "a <private> b </private> c", False),
        ("what does `<private>` do?", False, "what does `<private>` do?", False),
        ("still hidden", True, "", True),
        ("so `</private>` ends it?", True, "", True),
        ("hidden </Private> seen", True, "seen", False),
        ("hidden </private> seen <private > more", True, "seen <private > more", True),
        ("</private>", True, "", False),
    ],
)
def test_a_private_block_goes_on_over_turns_until_it_is_closed(text, opened, left, open_behind):
    assert split_private(text, opened) == (left, open_behind)
