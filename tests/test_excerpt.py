"""Which words are marked, and which part of a long text is shown."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bethink.recall.query import parse
from bethink.recall.shape import choose_excerpt, find_places, find_sought

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def marked(question, text):
    return [text[start:end] for start, end in find_places(text, find_sought(parse(question, NOW)))]


@pytest.mark.parametrize(
    ("question", "text", "words"),
    [
        ("deploy", "We deployed it; deploying takes a minute", ["deployed", "deploying"]),
        ("how do we deploy?", "How we do it: we deploy", ["deploy"]),
        ("cafe", "The Café and the CAFÉ", ["Café", "CAFÉ"]),
        ('"rate limit"', "The rate limit and its rates", ["rate", "limit", "rates"]),
        ("depl*", "deployment, depletion, replay", ["deployment", "depletion"]),
        ("redis AND NOT memcached", "Redis and memcached", ["Redis"]),
        ("http url", "parseHttpUrl and HTTP", ["parseHttpUrl", "HTTP"]),
        ("snake_case", "a snake_case name", ["snake", "case"]),
        ("東京タワー", "私は東京タワーに行く", ["私は東京タワーに行く"]),
        ("the", "the fact", ["the"]),
        ("", "nothing is asked", []),
        ("<script>", "a <script> tag", ["script"]),
        ("zzz", "nothing of that", []),
    ],
)
def test_what_was_found_is_what_is_marked(question, text, words):
    assert marked(question, text) == words


def test_the_part_with_most_of_the_question_is_shown_from_the_beginning_of_a_sentence():
    text = (
        "Redis is here. "
        + "Something else entirely. " * 60
        + "The cart lives in Redis for seven days. "
        + "And more. " * 60
    )
    start, end = choose_excerpt(text, find_sought(parse("redis cart seven days", NOW)), 120)
    assert text[start:end].startswith("The cart lives in Redis")
    assert end - start <= 120


def test_a_short_text_is_shown_whole_and_a_long_word_is_cut():
    assert choose_excerpt("short", find_sought(parse("x", NOW)), 100) == (0, 5)
    start, end = choose_excerpt("x" * 5000, find_sought(parse("y", NOW)), 100)
    assert (start, end - start) == (0, 100)


def test_a_text_of_any_size_takes_little_time():
    huge = "word redis " * 500_000
    assert len(find_places(huge, find_sought(parse("redis", NOW)))) <= 2001 + 1
    assert choose_excerpt(huge, find_sought(parse("redis", NOW)), 300)[1] <= 300
