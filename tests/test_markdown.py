"""How Markdown files become passages: how a text is cut, frontmatter, directives, sections, and what is left out. Whatever the text:
nothing of it is lost, and nothing is cut that must stay whole."""

import re
import time
from itertools import pairwise

import pytest
from case_tables import FOLDER, cases, rules
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trees import plant

from bethink.ingest import markdown
from bethink.ingest.files import walk
from bethink.ingest.markdown import TINY, WHOLE, by_headers, by_lines, documents, parse, passages

GUIDE = (FOLDER / "markdown-guide.md").read_text("utf-8")
SECTIONS = ["Guide", "Guide > Install", "Guide > Install > Linux", "Guide > Use"]
SENTENCES = " ".join(f"Sentence number {at} says something of its own." for at in range(200))
LONG = "x" * (TINY + 1)
FENCE = "```py\n" + "".join(f"line_{at} = {at}. And more.\n" for at in range(100)) + "```\n"
ROWS = "".join(f"| {at} | A sentence. Another one. |\n" for at in range(100))
TABLE = f"| a | b |\n|---|---|\n{ROWS}"
NAMES = {"LONG": LONG, "SENTENCES": SENTENCES, "FENCE": FENCE, "TABLE": TABLE}
PIECES = cases("markdown-pieces", {})
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=60).map("".join)


def joined(found):
    return "".join(chunk.text for chunk in found)


def titles(text):
    return [chunk.title for chunk in by_headers(text)]


def test_sections_begin_at_headers_and_long_ones_are_split_where_a_reader_would():
    found = by_headers(GUIDE, overlap=0)
    assert [chunk.title for chunk in found] == SECTIONS
    heads = [chunk.text.partition("\n")[0] for chunk in found]
    assert heads == ["# Guide", "## Install", "### Linux", "## Use"]
    assert [chunk.lines for chunk in found] == [(1, 4), (5, 8), (9, 12), (13, 15)]
    for text, sizes, pattern in cases("chunks-cut", NAMES):
        for size in sizes:
            found = by_headers(text, size, 0)
            assert joined(found) == text and all(len(chunk.text) <= size for chunk in found)
            assert all(re.search(pattern, chunk.text) for chunk in found)
    # Numbers of items end no sentence.
    steps = "".join(f"{number}. Step with words that go on and on\n" for number in range(1, 60))
    for percent in range(15, 51):
        found = by_headers(steps, 300, percent)
        assert all(re.match(r"\d+\. Step", chunk.text) for chunk in found)
        assert all(re.match(r"\d+\. Step", chunk.overlap) for chunk in found[1:])
    assert [len(chunk.text) for chunk in by_headers("x" * 1000, 300)] == [300, 300, 300, 100]


@rules(
    {
        "chunks-headers-are-what-commonmark-says": titles,
        "chunks-headers-with-next-to-nothing": titles,
        "markdown-titles-of-restructuredtext": lambda text: markdown.to_markdown(text, "a.rst"),
    },
    NAMES,
)
def test_headers_are_what_the_formats_say_and_empty_ones_lead_on(function, given, expected):
    assert function(*given) == expected


def test_code_and_tables_are_never_cut_in_half_and_windows_hold_whole_lines():
    for block in cases("chunks-code-and-tables-are-never", NAMES):
        for size in [100, 500, 2000]:
            text = f"# A\n\n{SENTENCES}\n\n{block}\n{SENTENCES}\n"
            found = by_headers(text, size)
            assert joined(found) == text
            whole = [chunk for chunk in found if block.strip() in chunk.text]
            assert whole and len(joined(whole)) < len(block) + size
            assert all(len(chunk.text) <= size for chunk in found if chunk not in whole)
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
    # Long lines are split between sentences or words.
    assert all(chunk.text.rstrip().endswith(".") for chunk in by_lines(SENTENCES, 100, 20))
    assert all(f" {chunk.overlap}" in SENTENCES for chunk in by_lines(SENTENCES, 100, 20)[1:])
    assert [len(chunk.text) for chunk in by_lines("x" * 1000, 100, 0)] == [400, 400, 200]
    assert all(len(chunk.text) <= 400 for chunk in by_lines("word " * 1000, 100, 99))


def test_overlap_is_the_end_of_the_chunk_before_and_never_begins_inside_code_or_a_table():
    for percent, share in ((0, 0), (15, 0.15), (50, 0.5)):
        found = by_headers(SENTENCES, 1000, percent)
        assert not found[0].overlap
        for before, chunk in pairwise(found):
            assert before.text.rstrip().endswith(chunk.overlap)
            assert not share or chunk.overlap.startswith("Sentence")
            assert share * 333 <= len(chunk.overlap) <= len(before.text) * share
    for block in (FENCE, TABLE):
        for last, carried in (("", ""), ("That was it.\n\n", "That was it.")):
            after = by_headers(f"# A\n\n{block}\n{last}## B\n\n{LONG}\n", 6000, 15)[1]
            assert after.overlap == carried
    one = "word " * 80 + "end.\n"
    assert by_headers(one * 2, 405, 15)[1].overlap == ""


SIZES, OVERLAPS = st.sampled_from([1, 3, 20, 60, 250, 2000]), st.sampled_from([0, 15, 50])


@settings(max_examples=120, deadline=None)
@given(body=texts, size=SIZES, overlap=OVERLAPS)
@example(body="- ```\n  x\n  ```\n", size=3, overlap=15)
def test_chunks_joined_are_the_text_and_nothing_whole_is_cut(body, size, overlap):
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
def test_windows_joined_are_the_text_and_keep_their_size(body, tokens, overlap, first_line):
    body = body.replace("\r", "\n")
    found = by_lines(body, tokens, overlap, first_line)
    assert joined(found) == body
    assert all(len(chunk.text) + len(chunk.overlap) <= tokens * 4 for chunk in found)
    assert [chunk.lines[0] for chunk in found[:1]] == [first_line][: len(found)]
    for before, chunk in pairwise(found):
        assert before.lines[1] <= chunk.lines[0] <= before.lines[1] + 1
        assert chunk.overlap in before.text


def whole(text, uri="notes/a.md"):
    page = parse(text)
    return passages(page, uri, by_headers(page.body, first_line=page.first_line))


def test_frontmatter_and_directives_are_taken_apart_and_broken_ones_are_warnings():
    for text, expected in cases("markdown-parsed", NAMES):
        page = parse(text)
        assert {name: getattr(page, name) for name in expected} == expected
    for block, line in cases("markdown-broken-frontmatter-is-a"):
        page = parse(f"---\n{block}\n---\n# A\n\nText.\n")
        assert page.body == "# A\n\nText.\n"
        assert not parse(f"---\n{block}\nindex: false\n---\n").directives["index"]
        (warning,) = page.warnings
        assert warning.startswith(f"broken frontmatter{line}: ")
        assert not warning.endswith(".")
    for field, name, value in cases("markdown-directives-are-read-from-frontmatter"):
        comment = field.replace(": ", "=", 1)
        before = "" if name == "importance" else "importance: 3\n"
        for form in cases("markdown-where-directives-stand"):
            text = form.format(field, comment, before)
            page = parse(text)
            assert page.directives[name] == value, text
            assert page.warnings == ()
    for field in cases("markdown-a-wrong-value-is"):
        for text in (
            f"---\n{field}\n---\nText.",
            f"<!-- {field} -->\nText.",
            f"<!-- bethink: {field.replace(': ', '=')} -->\n# A\nText.",
        ):
            page = parse(text)
            assert not set(page.directives) & {"index", "kind", "importance"}
            (warning,) = page.warnings
            assert field.split(": ")[1] in warning
            assert len(whole(text)) == 1


def test_directives_are_not_part_of_the_text_but_where_they_stand_in_it_or_in_code():
    text = f"<!-- tags: x -->\n<!-- importance: 7 -->\n\n# A\n\n{LONG}.\n<!-- kept -->\n"
    (passage,) = whole(text)
    assert passage.content == f"# A\n\n{LONG}.\n<!-- kept -->"
    assert (passage.lines, passage.tags, passage.importance) == ((4, 7), ("x",), 7.0)
    for text in cases("markdown-a-directive-stands-on"):
        assert "index: false" in whole(text)[0].content
    # Below a header one only keeps the file out.
    text = f"# A\n\n{LONG}\n\n## B\n<!-- bethink: kind=gotcha, tags=b -->\n{LONG}\n"
    assert [passage.lines for passage in whole(text)] == [(1, 3), (5, 7)]
    assert "gotcha" not in repr(whole(text))
    assert whole(text.replace("kind=gotcha", "vector-index=false")) == []


def test_passages_carry_section_lines_and_kind_and_what_the_file_says_of_itself():
    front = "---\ntitle: Handbook\ndescription: How we\n  work\ndate: 2024-05-06\ntags: [x]\nimportance: 6\n---\n"
    first, *_, last = whole(front + GUIDE)
    assert (first.section, first.lines) == ("Handbook > Guide", (9, 11))
    assert last.section == "Handbook > Guide > Use"
    assert (last.tags, last.importance, last.kind) == (("x",), 6.0, "document")
    assert last.content.startswith("Then go on.\n\n## Use")
    assert whole("Only text.")[0].section == "a"
    assert whole("---\ntitle: Mine\n---\nOnly text.")[0].section == "Mine"
    assert [passage.section for passage in whole(f"{LONG}\n# A\n{LONG}")] == ["A", "A"]
    for text in cases("markdown-nothing-worth-remembering-makes"):
        assert whole(text) == []
    for uri, kind in cases("markdown-the-kind-follows-from"):
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
def test_a_private_block_across_many_chunks_is_taken_out_whole_and_lines_stay_true(tmp_path, style):
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
def test_every_text_is_parsed_and_its_passages_cite_lines_that_hold_them(text, front):
    page = parse(front + text)
    lines = re.split(r"\r\n?|\n", front + text)
    for style in (by_headers, by_lines):
        for passage in passages(page, "a.md", style(page.body, 100, 15, page.first_line)):
            first, last = passage.lines or (0, 0)
            assert 1 <= first <= last <= len(lines)
            assert passage.content.strip() == passage.content != ""
            assert passage.content[-1] in "".join(lines[first - 1 : last])


HOSTILE = dict(cases("markdown-hostile", {}))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(20)
def test_hostile_text_is_read_in_seconds(name):
    start = time.process_time()
    page = parse(HOSTILE[name])
    found = by_headers(page.body)
    assert joined(found) == joined(by_lines(page.body)) == page.body
    passages(page, "a.md", found)
    assert time.process_time() - start < 8
