"""How Markdown files become passages: how a text is cut, frontmatter, directives, sections, and what is left out. Whatever the text:
nothing of it is lost, and nothing is cut that must stay whole."""

import re
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trees import plant

from bethink.ingest import markdown
from bethink.ingest.files import walk
from bethink.ingest.markdown import TINY, WHOLE, by_headers, by_lines, documents, parse, passages

GUIDE = (Path(__file__).with_name("fixtures") / "markdown" / "guide.md").read_text("utf-8")
SECTIONS = ["Guide", "Guide > Install", "Guide > Install > Linux", "Guide > Use"]
SENTENCES = " ".join(f"Sentence number {at} says something of its own." for at in range(200))
LONG = "x" * (TINY + 1)
FENCE = "```py\n" + "".join(f"line_{at} = {at}. And more.\n" for at in range(100)) + "```\n"
ROWS = "".join(f"| {at} | A sentence. Another one. |\n" for at in range(100))
TABLE = f"| a | b |\n|---|---|\n{ROWS}"
NAMES = {"LONG": LONG, "SENTENCES": SENTENCES, "FENCE": FENCE, "TABLE": TABLE}
PIECES = [
    "    deep\n",
    "   ",
    "  - nested\n",
    "# A\n",
    "## B *b*\n",
    "### C\n",
    "#### D\n",
    "***\n",
    "- item\n",
    "---\n",
    "-->\n",
    "1. one\n",
    "<!-- bethink: kind=gotcha -->\n",
    "<!-- c -->\n",
    "<!-- index: false -->\n",
    "<!-- tags: x -->\n",
    "<!--\n",
    "<div>\n",
    "> ```\n",
    "> quote\n",
    "T\n---\n",
    "T\n===\n",
    "[a]: b\n",
    "\n",
    "\r",
    "\r\n",
    "\t",
    "\u2028",
    "\u3000",
    "\ufeff",
    "\x00",
    "\x0b",
    "\x0c",
    "\x85",
    "```\n# no\n```\n",
    "```\n",
    "a: b\n",
    "code # x\n",
    "é",
    "text. More text! Ok?\n",
    "text. More text!\n",
    "words without end ",
    "x" * 50,
    "|1|2. x|\n",
    "|a|b|\n|-|-|\n",
    "~~~py\n",
    "。日本語の文。",
    "。日本語の文。次の文！",
    "👩\u200d👧",
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=60).map("".join)


def joined(found):
    return "".join(chunk.text for chunk in found)


def titles(text):
    return [chunk.title for chunk in by_headers(text)]


def test_sections_begin_at_headers():
    found = by_headers(GUIDE, overlap=0)
    assert [chunk.title for chunk in found] == SECTIONS
    heads = [chunk.text.partition("\n")[0] for chunk in found]
    assert heads == ["# Guide", "## Install", "### Linux", "## Use"]
    assert [chunk.lines for chunk in found] == [(1, 4), (5, 8), (9, 12), (13, 15)]


@pytest.mark.parametrize(
    ("text", "sizes", "pattern"),
    [
        pytest.param(SENTENCES, (300, 1000), r"[.!?。！？।؟]」?\s*$", id="sentences-300"),
        pytest.param(
            SENTENCES.replace(" Sentence", "\nSentence"),
            (300, 1000),
            r"[.!?。！？।؟]」?\s*$",
            id="sentences-replace",
        ),
        pytest.param(
            SENTENCES.replace(". ", "! "),
            (300, 1000),
            r"[.!?。！？।؟]」?\s*$",
            id="sentences-replace-full-stop",
        ),
        pytest.param(
            "これは一つの文です。次の文は違います！そうですか？" * 100,
            (300, 1000),
            r"[.!?。！？।؟]」?\s*$",
            id="hiragana-100",
        ),
        pytest.param(
            "「そうです。」と言った。" * 100,
            (300, 1000),
            r"[.!?。！？।؟]」?\s*$",
            id="left-corner-bracket",
        ),
        pytest.param("本当ですか？" * 200, (300, 1000), r"[.!?。！？।؟]」?\s*$", id="cjk"),
        pytest.param("すごい！" * 200, (300, 1000), r"[.!?。！？।؟]」?\s*$", id="hiragana-200"),
        pytest.param(
            "यह एक वाक्य है। यह दूसरा वाक्य है। " * 60,
            (300, 1000),
            r"[.!?。！？।؟]」?\s*$",
            id="devanagari",
        ),
        pytest.param(
            "هل هذا سؤال؟ نعم هذا جواب. " * 60, (300, 1000), r"[.!?。！？।؟]」?\s*$", id="arabic"
        ),
        pytest.param(
            "".join(f"Paragraph {at}. " + "Words and words. " * 20 + "\n\n" for at in range(12)),
            (1000,),
            "^Paragraph",
            id="empty-join-paragraph",
        ),
        pytest.param(
            "We keep it in the store, e.g. in a file. " * 50,
            range(300, 345),
            "^We keep",
            id="keep-store-e.g-file",
        ),
        pytest.param(
            "".join(f"key{number} value\n" for number in range(200)),
            (300,),
            "value\n$",
            id="empty-join-key-number-value",
        ),
        pytest.param("word " * 500, (300,), "word $", id="word"),
    ],
)
def test_a_long_section_is_split_between_sentences(text, sizes, pattern):
    assert [
        size
        for size in sizes
        for found in [by_headers(text, size, 0)]
        if (joined(found) != text or not all(len(chunk.text) <= size for chunk in found))
        or not all(re.search(pattern, chunk.text) for chunk in found)
    ] == []


@pytest.mark.parametrize("percent", range(15, 51))
def test_numbers_of_items_end_no_sentence(percent):
    found = by_headers(GUIDE, overlap=0)
    # Numbers of items end no sentence.
    steps = "".join(f"{number}. Step with words that go on and on\n" for number in range(1, 60))
    found = by_headers(steps, 300, percent)
    assert all(re.match(r"\d+\. Step", chunk.text) for chunk in found)
    assert all(re.match(r"\d+\. Step", chunk.overlap) for chunk in found[1:])


def test_an_endless_word_is_split_by_size():
    assert [len(chunk.text) for chunk in by_headers("x" * 1000, 300)] == [300, 300, 300, 100]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"Title\n=====\n{LONG}\n\nPart\n----\n{LONG}",
            ["Title", "Title > Part"],
            id="title-LONG-part-LONG",
        ),
        pytest.param(f"# A\n{LONG}\n#### B\n{LONG}", ["A"], id="LONG-B-LONG-A"),
        pytest.param(
            f"# A\n{LONG}\n### C\n{LONG}\n## B\n{LONG}\n# D\n{LONG}",
            ["A", "A > C", "A > B", "D"],
            id="LONG-C-LONG-B-LONG-D-LONG",
        ),
        pytest.param(f"# A\n{LONG}\n```sh\n# no header\n```\n", ["A"], id="LONG-sh-no-header"),
        pytest.param(f"# A\n{LONG}\n\n    # no header\n", ["A"], id="LONG-no-header"),
        pytest.param(f"# A\n{LONG}\n> # quoted\n\n- # item\n", ["A"], id="LONG-quoted-item"),
        pytest.param(
            f"# A\n{LONG}\n#no header\n####### nor this\n", ["A"], id="LONG-no-header-nor"
        ),
        pytest.param(f"# A\n{LONG}\n~~~\n# never closed\n", ["A"], id="LONG-never-closed"),
        pytest.param(
            f"# The `run` *command* [here](http://x.y/z) &amp; more {{#run}}\n{LONG}",
            ["The run command here & more"],
            id="run-command-here-http-x.y/z-amp-more-run",
        ),
        pytest.param(f"# <a name='x'></a>Named ##\n{LONG}", ["Named"], id="name-x-named-LONG"),
        pytest.param(f"#\n{LONG}\n## B\n{LONG}", ["", "B"], id="LONG-B-LONG-empty"),
        pytest.param(f"{LONG}\n# A\n{LONG}", ["", "A"], id="LONG-LONG"),
        pytest.param("", [], id="empty"),
        pytest.param(" \n\n", [""], id="blank"),
    ],
)
def test_headers_follow_commonmark(text, expected):
    assert titles(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"# A\n\n## B\n\n{LONG}", ["A > B"], id="B-LONG-B"),  # nothing below a header
        pytest.param(
            f"# A\n\nShort.\n\n## B\n\n{LONG}", ["A > B"], id="short-B-LONG"
        ),  # an introduction of a line
        pytest.param("# A\n\n## B\n\n### C\n\nShort.", ["A > B > C"], id="B-C-short"),
        pytest.param(f"Short.\n\n# A\n\n{LONG}", ["A"], id="short-LONG"),
        pytest.param(f"## A\n\n## B\n\n{LONG}", ["B"], id="B-LONG-B-2"),
        pytest.param(
            "## Port\n\n8080.\n\n## Host\n\nlocalhost.",
            ["Port", "Host"],
            id="port-8080-host-localhost",
        ),  # each found best by its own title
        pytest.param(f"## A\n\n{LONG}\n\n## B\n", ["A", "B"], id="LONG-B"),
    ],
)
def test_a_header_with_next_to_no_text_joins_the_next(text, expected):
    assert titles(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "A\n===\n\nB\n---\n\nC\n---\n\nD\n===\n",
            "# A\n\n\n## B\n\n\n## C\n\n\n# D\n\n",
            id="B-C-D",
        ),
        pytest.param("***\n A\n***\n\nB\n***\n", "\n# A\n\n\n## B\n\n", id="B-B"),
        pytest.param("A\n\n~~~~\n\nB\n", "A\n\n---\n\nB\n", id="B-B-2"),
        pytest.param("=== ===\nA   B\n=== ===\n", "=== ===\nA   B\n=== ===\n", id="B-B-3"),
        pytest.param("::\n\n   a\n   ---\n", "::\n\n   a\n   ---\n", id="a"),
    ],
)
def test_restructuredtext_titles_become_headers(text, expected):
    assert markdown.to_markdown(text, "a.rst") == expected


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(FENCE, id="FENCE"),
        pytest.param(TABLE, id="TABLE"),
        pytest.param(FENCE.replace("```", "~~~~"), id="FENCE-replace"),
        pytest.param("- " + FENCE.replace("\n", "\n  ").rstrip() + "\n", id="hyphen-minus"),
    ],
)
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(100, id="100"),
        pytest.param(500, id="500"),
        pytest.param(2000, id="2000"),
    ],
)
def test_code_or_a_table_is_never_cut_in_half(block, size):
    text = f"# A\n\n{SENTENCES}\n\n{block}\n{SENTENCES}\n"
    found = by_headers(text, size)
    assert joined(found) == text
    whole = [chunk for chunk in found if block.strip() in chunk.text]
    assert whole and len(joined(whole)) < len(block) + size
    assert all(len(chunk.text) <= size for chunk in found if chunk not in whole)


def test_windows_hold_whole_lines():
    text = "# A\n" + "".join(f"line {number} with some words\n" for number in range(300))
    found = by_lines(text, 100, 20)
    for before, chunk in pairwise(found):
        assert chunk.text.startswith("line") and chunk.text.endswith("\n")
        assert before.text.rstrip().endswith(chunk.overlap)
        assert chunk.overlap.startswith("line")
        assert 40 < len(chunk.overlap) <= 80
        assert len(chunk.overlap) + 2 + len(chunk.text) <= 400
    assert by_lines(text) == by_lines(text, 400, 80)
    assert not any(chunk.overlap for chunk in by_lines(text, 100, 0))


def test_long_lines_are_split_between_sentences():
    # Long lines are split between sentences or words.
    assert all(chunk.text.rstrip().endswith(".") for chunk in by_lines(SENTENCES, 100, 20))
    assert all(f" {chunk.overlap}" in SENTENCES for chunk in by_lines(SENTENCES, 100, 20)[1:])
    assert [len(chunk.text) for chunk in by_lines("x" * 1000, 100, 0)] == [400, 400, 200]
    assert all(len(chunk.text) <= 400 for chunk in by_lines("word " * 1000, 100, 99))


@pytest.mark.parametrize(
    ("percent", "share"),
    [
        pytest.param(0, 0, id="0"),
        pytest.param(15, 0.15, id="15"),
        pytest.param(50, 0.5, id="50"),
    ],
)
def test_an_overlap_is_the_end_of_the_chunk_before(percent, share):
    found = by_headers(SENTENCES, 1000, percent)
    assert not found[0].overlap
    assert [
        before
        for before, chunk in pairwise(found)
        if not before.text.rstrip().endswith(chunk.overlap)
        or (share and (not chunk.overlap.startswith("Sentence")))
        or (not share * 333 <= len(chunk.overlap) <= len(before.text) * share)
    ] == []


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(FENCE, id="FENCE"),
        pytest.param(TABLE, id="TABLE"),
    ],
)
@pytest.mark.parametrize(
    ("last", "carried"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("That was it.\n\n", "That was it.", id="that-was-it"),
    ],
)
def test_an_overlap_never_begins_inside_code_or_a_table(block, last, carried):
    after = by_headers(f"# A\n\n{block}\n{last}## B\n\n{LONG}\n", 6000, 15)[1]
    assert after.overlap == carried


def test_a_sentence_that_is_too_long_is_no_overlap():
    one = "word " * 80 + "end.\n"
    assert by_headers(one * 2, 405, 15)[1].overlap == ""


SIZES, OVERLAPS = st.sampled_from([1, 3, 20, 60, 250, 2000]), st.sampled_from([0, 15, 50])


@settings(max_examples=120, deadline=None)
@given(body=texts, size=SIZES, overlap=OVERLAPS)
@example(body="- ```\n  x\n  ```\n", size=3, overlap=15)
def test_joined_chunks_are_the_text(body, size, overlap):
    body = body.replace("\r", "\n")
    found = by_headers(body, size, overlap)
    known = markdown.outline(body)
    lines = [body[start:end] for start, end in pairwise(known.starts)]
    assert joined(found) == "".join(lines) == body
    assert [chunk._replace(overlap="") for chunk in found] == by_headers(body, size, 0)
    at = 0
    for chunk in found:
        first, last = chunk.lines
        assert chunk.text
        assert known.starts[first - 1] <= at < known.starts[first]
        assert known.starts[last - 1] < at + len(chunk.text) <= known.starts[last]
        assert at == 0 or known.grades[first - 1] != WHOLE
        assert at == known.starts[first - 1] or known.grades[first] != WHOLE
        # Longer than the size is only what must not be cut.
        assert len(chunk.text) <= size or WHOLE in known.grades[first - 1 : last]
        at += len(chunk.text)


TOKENS, CARRIED = st.sampled_from([1, 5, 15, 400]), st.sampled_from([0, 3, 80])


@settings(max_examples=80, deadline=None)
@given(body=texts, tokens=TOKENS, overlap=CARRIED, first_line=st.integers(1, 9))
def test_joined_windows_are_the_text(body, tokens, overlap, first_line):
    body = body.replace("\r", "\n")
    found = by_lines(body, tokens, overlap, first_line)
    assert joined(found) == body
    assert all(len(chunk.text) + len(chunk.overlap) <= tokens * 4 for chunk in found)
    assert [chunk.lines[0] for chunk in found[:1]] == [first_line][: len(found)]
    assert [
        before
        for before, chunk in pairwise(found)
        if not before.lines[1] <= chunk.lines[0] <= before.lines[1] + 1
        or chunk.overlap not in before.text
    ] == []


def whole(text, uri="notes/a.md"):
    page = parse(text)
    return passages(page, uri, by_headers(page.body, first_line=page.first_line))


WHERE_DIRECTIVES_STAND = [
    "---\n{0}\n---\nText.",
    "<!-- {0} -->\nText.",
    "<!--{0}-->\n\nText.",
    "Text.\n\n<!-- bethink: {1} -->\n",
    "<!--\n{2}{0}\n-->\n",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "---\ntitle: My page\ntags: [a, b]\nnumber: 1\n2: x\n---\n\n# Other\n\nText.\n",
            {
                "frontmatter": {"title": "My page", "tags": ["a", "b"], "number": "1", "2": "x"},
                "title": "My page",
                "first_line": 7,
                "warnings": (),
                "body": "\n# Other\n\nText.\n",
            },
            id="title-my-page-tags-b-number-1-2-x-other",
        ),
        pytest.param(
            "---\n\nA text between two rules: it says so.\n\n---\n",
            {
                "frontmatter": {},
                "body": "---\n\nA text between two rules: it says so.\n\n---\n",
                "first_line": 1,
            },
            id="text-between-two-rules-says-so",
        ),
        pytest.param(
            "---\njust words\n---\nmore",
            {"frontmatter": {}, "body": "---\njust words\n---\nmore", "first_line": 1},
            id="just-words-more",
        ),
        pytest.param(
            "---\n*Prose* between rules\n---\nmore",
            {"frontmatter": {}, "body": "---\n*Prose* between rules\n---\nmore", "first_line": 1},
            id="prose-between-rules-more",
        ),
        pytest.param(
            "---\n- a\n- b\n---\nmore",
            {"frontmatter": {}, "body": "---\n- a\n- b\n---\nmore", "first_line": 1},
            id="b-more",
        ),
        pytest.param(
            "---\nnever: closed\n",
            {"frontmatter": {}, "body": "---\nnever: closed\n", "first_line": 1},
            id="never-closed",
        ),
        pytest.param(
            "----\na: b\n---\n",
            {"frontmatter": {}, "body": "----\na: b\n---\n", "first_line": 1},
            id="a-b-frontmatter-body-first_line",
        ),
        pytest.param(
            " ---\na: b\n---\n",
            {"frontmatter": {}, "body": " ---\na: b\n---\n", "first_line": 1},
            id="a-b-frontmatter-body-first_line-2",
        ),
        pytest.param(
            "text\n---\na: b\n---\n",
            {"frontmatter": {}, "body": "text\n---\na: b\n---\n", "first_line": 1},
            id="text-b",
        ),
        pytest.param(
            "---\na: b\n" + "# " + "x" * 70000 + "\n---\ntext",
            {
                "frontmatter": {},
                "body": "---\na: b\n" + "# " + "x" * 70000 + "\n---\ntext",
                "first_line": 1,
            },
            id="a-b-number-sign",
        ),
        pytest.param(
            "---\nlayout: post\nweight: 3\n---\n<!-- note: this -->\n<!-- toc -->\n",
            {"warnings": ()},
            id="layout-post-weight-3-note-toc",
        ),
        pytest.param(
            '<!-- bethink: vector-index=false, kind=gotcha, tags=one, two, title="A, b" -->\n<!-- tags: three -->\n\nText.',
            {"directives": {"index": False, "kind": "gotcha", "tags": ("three",), "title": "A, b"}},
            id="bethink-vector-index-false-kind-gotcha",
        ),
        pytest.param(
            f"# A\n\n{LONG}\n\n## B\n<!-- bethink: kind=gotcha, tags=b -->\n{LONG}\n",
            {
                "directives": {},
                "warnings": (
                    "line 6: a directive applies to the whole file and belongs before its first header",
                ),
            },
            id="LONG-B-bethink-kind-gotcha-tags-b-LONG",
        ),
    ],
)
def test_frontmatter_is_parsed(text, expected):
    page = parse(text)
    assert {name: getattr(page, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("block", "line"),
    [
        pytest.param("title: a: b", " at line 2", id="title-b"),
        pytest.param("title: x\nlist: [a, b\nother: 1", " at line 4", id="title-x-list-b-other-1"),
        pytest.param("title: {{title}}", " at line 2", id="title-title"),
        pytest.param("title: x\nyear: &a 1\n", "", id="title-x-year-1"),
        pytest.param("title: x\nyear: *a\n", "", id="title-x-year"),
        pytest.param(
            "title: x\nyear: !!python/name:os.system x\n",
            "",
            id="title-x-year-python/name-os.system-x",
        ),
        pytest.param("title: 'never closed", " at line 3", id="title-never-closed"),
        pytest.param("title: \tx\n\ty: 1", " at line 2", id="title-x-y-1"),
    ],
)
def test_broken_frontmatter_is_a_warning(block, line):
    page = parse(f"---\n{block}\n---\n# A\n\nText.\n")
    assert page.body == "# A\n\nText.\n"
    assert not parse(f"---\n{block}\nindex: false\n---\n").directives["index"]
    (warning,) = page.warnings
    assert warning.startswith(f"broken frontmatter{line}: ")
    assert not warning.endswith(".")


@pytest.mark.parametrize(
    ("field", "name", "value"),
    [
        pytest.param("vector-index: false", "index", False, id="vector-index-false"),
        pytest.param("vector_index: no", "index", False, id="vector_index-no"),
        pytest.param("vector-index: true", "index", True, id="vector-index-true"),
        pytest.param("index: false", "index", False, id="index-false"),
        pytest.param("category: gotchas", "kind", "gotcha", id="category-gotchas"),
        pytest.param("kind: Decision", "kind", "decision", id="kind-decision"),
        pytest.param("tags: one, two", "tags", ("one", "two"), id="tags-one-two"),
        pytest.param("tags: '#one'", "tags", ("one",), id="tags-one"),
        pytest.param(
            "keywords: [one, two, one]", "tags", ("one", "two"), id="keywords-one-two-one"
        ),
        pytest.param("importance: 8", "importance", 8.0, id="importance-8"),
        pytest.param("importance: 2.5", "importance", 2.5, id="importance-2.5"),
        pytest.param("title: A, b", "title", "A, b", id="title-b"),
    ],
)
@pytest.mark.parametrize("form", WHERE_DIRECTIVES_STAND)
def test_a_directive_is_read_in_each_of_its_forms(field, name, value, form):
    comment = field.replace(": ", "=", 1)
    before = "" if name == "importance" else "importance: 3\n"
    text = form.format(field, comment, before)
    page = parse(text)
    assert page.directives[name] == value, text
    assert page.warnings == ()


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("---\n{}\n---\nText.", id="front matter"),
        pytest.param("<!-- {} -->\nText.", id="comment"),
        pytest.param("<!-- bethink: {} -->\n# A\nText.", id="comment of a section"),
    ],
)
@pytest.mark.parametrize(
    "field",
    [
        "vector-index: maybe",
        "index: 3",
        "index: 0",
        "kind: blog",
        "importance: high",
        "importance: 11",
        "importance: -1",
        "importance: nan",
        "importance: true",
    ],
)
def test_a_wrong_directive_is_a_warning(field, form):
    text = form.format(field.replace(": ", "=") if "bethink:" in form else field)
    page = parse(text)
    assert not set(page.directives) & {"index", "kind", "importance"}
    (warning,) = page.warnings
    assert field.split(": ")[1] in warning
    assert len(whole(text)) == 1


def test_directives_at_the_top_are_not_part_of_the_text():
    text = f"<!-- tags: x -->\n<!-- importance: 7 -->\n\n# A\n\n{LONG}.\n<!-- kept -->\n"
    (passage,) = whole(text)
    assert passage.content == f"# A\n\n{LONG}.\n<!-- kept -->"
    assert (passage.lines, passage.tags, passage.importance) == ((4, 7), ("x",), 7.0)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("```\n<!-- index: false -->\n```\n", id="index-false"),
        pytest.param("    <!-- index: false -->\n", id="index-false-2"),
        pytest.param("> <!-- index: false -->\n", id="index-false-3"),
        pytest.param("Text <!-- index: false --> in a line.\n", id="text-index-false-line"),
        pytest.param("<!-- index: false --> and text\n", id="index-false-text"),
        pytest.param("<!-- index: false --> <!-- and more -->\n", id="index-false-more"),
        pytest.param("`<!-- index: false -->`\n", id="index-false-4"),
        pytest.param("<!-- The index: false or not? -->\n", id="index-false-not"),
    ],
)
def test_directives_in_code_are_part_of_the_text(text):
    assert "index: false" in whole(text)[0].content


def test_a_directive_below_a_header_only_excludes_the_file():
    # Below a header one only keeps the file out.
    text = f"# A\n\n{LONG}\n\n## B\n<!-- bethink: kind=gotcha, tags=b -->\n{LONG}\n"
    assert [passage.lines for passage in whole(text)] == [(1, 3), (5, 7)]
    assert "gotcha" not in repr(whole(text))
    assert whole(text.replace("kind=gotcha", "vector-index=false")) == []


def test_a_passage_carries_its_section():
    front = "---\ntitle: Handbook\ndescription: How we\n  work\ndate: 2024-05-06\ntags: [x]\nimportance: 6\n---\n"
    first, *_, last = whole(front + GUIDE)
    assert (first.section, first.lines) == ("Handbook > Guide", (9, 11))
    assert last.section == "Handbook > Guide > Use"
    assert (last.tags, last.importance, last.kind) == (("x",), 6.0, "document")
    assert last.content.startswith("Then go on.\n\n## Use")


def test_a_page_without_headers_has_its_title_as_section():
    assert whole("Only text.")[0].section == "a"
    assert whole("---\ntitle: Mine\n---\nOnly text.")[0].section == "Mine"
    assert [passage.section for passage in whole(f"{LONG}\n# A\n{LONG}")] == ["A", "A"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("   \n\n", id="blank"),
        pytest.param("---\na: b\n---\n", id="b"),
        pytest.param("---\n***\n", id="hyphen-minus"),
        pytest.param("<!-- tags: a -->", id="tags"),
        pytest.param("* * *\n\n---\n", id="asterisk"),
        pytest.param("<!-- index: false -->\nText.", id="index-false-text"),
    ],
)
def test_a_page_without_content_makes_no_passage(text):
    assert whole(text) == []


@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        pytest.param(
            ".claude/knowledge/architecture/storage.md",
            "architecture",
            id="claude/knowledge/architecture/storage.md",
        ),
        pytest.param(
            ".claude/knowledge/components/api/auth.md",
            "component",
            id="claude/knowledge/components/api/auth.md",
        ),
        pytest.param("knowledge/domain/orders.md", "domain", id="knowledge/domain/orders.md"),
        pytest.param("knowledge/patterns/retry.md", "pattern", id="knowledge/patterns/retry.md"),
        pytest.param("knowledge/gotchas.md", "gotcha", id="knowledge/gotchas.md"),
        pytest.param("ARCHITECTURE.md", "architecture", id="architecture.md"),
        pytest.param(
            "docs/decisions/0001-use-sqlite.md", "decision", id="docs/decisions/0001-use-sqlite.md"
        ),
        pytest.param("docs/adr/0001.md", "decision", id="docs/adr/0001.md"),
        pytest.param("architecture/decisions/1.md", "decision", id="architecture/decisions/1.md"),
        pytest.param("decisions/architecture.md", "architecture", id="decisions/architecture.md"),
        pytest.param("notes/discoveries/x.md", "discovery", id="notes/discoveries/x.md"),
        pytest.param("docs/patterns/x.rst", "document", id="docs/patterns/x.rst"),
        pytest.param("docs/guide.md", "document", id="docs/guide.md"),
        pytest.param("docs/pattern-matching.md", "document", id="docs/pattern-matching.md"),
    ],
)
def test_the_kind_follows_from_the_path(uri, kind):
    assert whole("Some text.", uri)[0].kind == kind
    assert whole("<!-- kind: fact -->\nSome text.", uri)[0].kind == "fact"


def read_file(tmp_path, text, style="headers"):
    """The passages of a file, and what is said about it."""
    said = []
    found = walk(plant(tmp_path, {"a.md": text}), tmp_path)
    (document,) = documents(found, style, 300, 20, said)
    assert said == []  # it is taken apart only when it is asked
    return list(document.passages()), said


@pytest.mark.parametrize("style", ["headers", "lines"])
def test_a_private_block_across_chunks_is_removed(tmp_path, style):
    secret = "".join(f"Hidden sentence {number}.\n" for number in range(200))
    text = f"# A\n\n{LONG}\n\n<private>\n{secret}</private>\n\nAfter it.\n\n## B\n\n{LONG}\n"
    found, said = read_file(tmp_path, text, style)
    assert not any("Hidden" in passage.content for passage in found)
    assert [one.lines[1] for one in found if one.lines and "## B" in one.content] == [212]
    assert said == ["a.md: secrets or private parts were taken out"]
    found, _ = read_file(tmp_path, f"# A\n\n{LONG}\n\n<private>\n\nRest.\n", style)
    assert not any("Rest" in passage.content for passage in found)


FRONTS = ["", "---\n", "---\ntitle: x\n---\n", "---\r\na: [\r\n---\r\n", "---\ntags: [a]\n"]


@settings(max_examples=80, deadline=None)
@given(text=texts, front=st.sampled_from(FRONTS))
@pytest.mark.parametrize(
    "style",
    [
        pytest.param(by_headers, id="by-headers"),
        pytest.param(by_lines, id="by-lines"),
    ],
)
def test_passages_cite_the_lines_that_hold_them(text, front, style):
    page = parse(front + text)
    lines = re.split(r"\r\n?|\n", front + text)
    for passage in passages(page, "a.md", style(page.body, 100, 15, page.first_line)):
        first, last = passage.lines or (0, 0)
        assert 1 <= first <= last <= len(lines)
        assert passage.content.strip() == passage.content != ""
        assert passage.content[-1] in "".join(lines[first - 1 : last])


HOSTILE = {
    "quotes": ">" * 100000,
    "nested quotes": (">" * 60 + " a\n") * 1500,
    "lists": "- " * 50000,
    "deep lists": "".join("  " * depth + "- a\n" for depth in range(300)),
    "brackets": "[" * 100000,
    "open brackets": "[a\n" * 8000,
    "references": "[a]: b '\n" * 8000,
    "wide table": "|a" * 50000 + "\n" + "|-" * 50000 + "\n" + "|b" * 50000,
    "ticks": "`" * 100000,
    "stars": "*" * 100000,
    "comments": "<!-- a\n" * 10000,
    "closed comments": "<!-- tags: a -->\n" * 3000,
    "white space": " " * 100000 + "\n" * 20000,
    "no space": "x" * 200000,
    "dots": "." * 100000,
    "dots and spaces": ". " * 50000,
    "headers": "# a\n" * 4000,
    "header markup": "# " + "*a_[`<" * 20000,
    "carriage returns": "\r" * 20000,
    "frontmatter": "---\na: " + "[" * 60000 + "\n---\n",
    "aliases": "---\na: &a [x, x]\nb: &b [*a, *a]\n" + "c: [*b, *b]\n" * 500 + "---\ntext",
    "number": "---\na: " + "9" * 50000 + "\n---\ntext",
    "marks": "e" + "́" * 100000,
    "dashes": "---\n" * 10000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(20)
def test_hostile_text_is_read_in_seconds(name):
    start = time.process_time()
    page = parse(HOSTILE[name])
    found = by_headers(page.body)
    assert joined(found) == joined(by_lines(page.body)) == page.body
    passages(page, "a.md", found)
    assert time.process_time() - start < 8
