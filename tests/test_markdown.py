"""How Markdown files become passages: frontmatter, directives, sections, and what is left out."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from case_tables import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest.chunks import TINY
from bethink.ingest.files import walk
from bethink.ingest.markdown import (
    by_headers,
    by_lines,
    documents,
    parse,
    passages,
    to_markdown,
)
from bethink.ingest.sync import Skipped
from bethink.types import Passage

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
LONG = "x" * (TINY + 1)
PIECES = cases("markdown-pieces")


def whole(text: str) -> list[Passage]:
    page = parse(text)
    return passages(page, "notes/a.md", by_headers(page.body, first_line=page.first_line))


def test_frontmatter_is_taken_apart() -> None:
    page = parse("---\ntitle: My page\ntags: [a, b]\nnumber: 1\n2: x\n---\n\n# Other\n\nText.\n")
    assert page.frontmatter == {"title": "My page", "tags": ["a", "b"], "number": "1", "2": "x"}
    assert (page.title, page.first_line, page.warnings) == ("My page", 7, ())
    assert page.body == "\n# Other\n\nText.\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_below_frontmatter_whatever_ends_them(end: str) -> None:
    text = end.join(["---", "title: x", "...", "", "# A", "", "Text here.", ""])
    (passage,) = whole(text)
    assert passage.lines == (5, 7)
    assert parse(text).title == "x"


@pytest.mark.parametrize("text", cases("markdown-rules-are-not-frontmatter", {}))
def test_rules_are_not_frontmatter(text: str) -> None:
    page = parse(text)
    assert (page.frontmatter, page.body, page.first_line) == ({}, text, 1)


@pytest.mark.parametrize(("block", "line"), cases("markdown-broken-frontmatter-is-a"))
def test_broken_frontmatter_is_a_warning_and_the_text_is_read(block: str, line: str) -> None:
    page = parse(f"---\n{block}\n---\n# A\n\nText.\n")
    assert page.body == "# A\n\nText.\n"
    assert not parse(f"---\n{block}\nindex: false\n---\n").directives["index"]
    (warning,) = page.warnings
    assert warning.startswith(f"broken frontmatter{line}: ")
    assert not warning.endswith(".")


@pytest.mark.parametrize(
    ("field", "name", "value"),
    cases("markdown-directives-are-read-from-frontmatter"),
)
def test_directives_are_read_from_frontmatter_and_comments_alike(
    field: str, name: str, value: object
) -> None:
    quoted = field if name != "title" else "title: 'A, b: c'"
    comment = field.replace(": ", "=", 1)
    for text in (
        f"---\n{quoted}\n---\nText.",
        f"<!-- {field} -->\nText.",
        f"<!--{field}-->\n\nText.",
        f"Text.\n\n<!-- bethink: {comment} -->\n",
        f"---\nbethink:\n  {quoted}\n---\nText.",
        f"<!--\nimportance: 3\n{field}\n-->\n" if name != "importance" else f"<!--\n{field}\n-->\n",
    ):
        page = parse(text)
        assert page.directives[name] == value, text
        assert page.warnings == ()


@pytest.mark.parametrize("field", cases("markdown-a-wrong-value-is"))
def test_a_wrong_value_is_a_warning_and_holds_for_nothing(field: str) -> None:
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


def test_only_directives_meant_for_us_can_be_unknown() -> None:
    assert (
        parse("---\nlayout: post\nweight: 3\n---\n<!-- note: this -->\n<!-- toc -->\n").warnings
        == ()
    )
    assert parse("<!-- bethink: colour=red -->").warnings == (
        "line 1: there is no directive 'colour'",
    )
    assert parse("---\nbethink: {colour: red, kind: gotcha}\n---\n").warnings == (
        "frontmatter: there is no directive 'colour'",
    )
    assert parse("<!-- bethink: off -->\nText").directives == {"index": False}


def test_several_directives_stand_in_one_comment() -> None:
    comment = '<!-- bethink: vector-index=false, kind=gotcha, tags=one, two, title="A, b" -->'
    expected = {"index": False, "kind": "gotcha", "tags": ("one", "two", "three"), "title": "A, b"}
    assert parse(f"{comment}\n<!-- tags: three -->\n\nText.").directives == expected


@pytest.mark.parametrize("text", cases("markdown-a-directive-stands-on"))
def test_a_directive_stands_on_a_line_of_its_own_and_not_in_code(text: str) -> None:
    page = parse(text)
    assert page.directives == {}
    assert text.strip() in whole(text)[0].content or "index: false" in whole(text)[0].content


def test_directives_are_not_part_of_the_text() -> None:
    text = f"<!-- tags: x -->\n<!-- importance: 7 -->\n\n# A\n\n{LONG}.\n<!-- kept -->\n"
    (passage,) = whole(text)
    assert passage.content == f"# A\n\n{LONG}.\n<!-- kept -->"
    assert passage.lines == (4, 7)
    assert (passage.tags, passage.importance) == (("x",), 7.0)


def test_below_a_header_a_directive_is_a_warning_unless_it_keeps_the_file_out() -> None:
    text = f"# A\n\n{LONG}\n\n## B\n<!-- bethink: kind=gotcha, tags=b -->\n{LONG}\n"
    page = parse(text)
    told = "line 6: a directive holds for the whole file and stands before its first header"
    assert (page.directives, page.warnings) == ({}, (told,))
    assert [passage.lines for passage in whole(text)] == [(1, 3), (5, 7)]
    assert "gotcha" not in repr(whole(text))
    assert whole(text.replace("kind=gotcha", "vector-index=false")) == []


def test_passages_carry_section_lines_and_what_the_file_says_of_itself() -> None:
    front = "---\ntitle: Handbook\ndescription: How we\n  work\ndate: 2024-05-06\ntags: [x]\nimportance: 6\n---\n"
    first, *_, last = whole(front + GUIDE)
    assert first.section == "Handbook > Guide"
    assert first.lines == (9, 11)
    assert last.section == "Handbook > Guide > Use"
    assert last.metadata == {"chunk": 3, "overlap": len("Then go on.")}
    assert (last.tags, last.importance, last.kind) == (("x",), 6.0, "document")
    assert last.content.startswith("Then go on.\n\n## Use")


def test_without_headers_a_passage_is_called_by_the_file() -> None:
    assert whole("Only text.")[0].section == "a"
    assert whole("---\ntitle: Mine\n---\nOnly text.")[0].section == "Mine"
    assert [passage.section for passage in whole(f"{LONG}\n# A\n{LONG}")] == ["A", "A"]


@pytest.mark.parametrize("text", cases("markdown-nothing-worth-remembering-makes"))
def test_nothing_worth_remembering_makes_no_passage(text: str) -> None:
    assert whole(text) == []


@pytest.mark.parametrize(("uri", "kind"), cases("markdown-the-kind-follows-from"))
def test_the_kind_follows_from_the_nearest_name_that_tells(uri: str, kind: str) -> None:
    page = parse("Some text.")
    assert passages(page, uri, by_headers(page.body))[0].kind == kind
    page = parse("<!-- kind: fact -->\nSome text.")
    assert passages(page, uri, by_headers(page.body))[0].kind == "fact"


def test_documents_are_made_of_files_and_trouble_passes_through(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(GUIDE)
    (tmp_path / "b.md").write_bytes(b"\0\0")
    (tmp_path / "c.md").write_text("")
    (tmp_path / "e.md").write_text("---\nmemory: off\n---\nText.")
    given = [*walk(tmp_path, tmp_path), Skipped("d.md", "because")]
    first, binary, empty, left_out, skipped = documents(given, "headers", 2000, 15)
    assert isinstance(binary, Skipped) and skipped == Skipped("d.md", "because")
    sections = [passage.section for passage in first.passages()]
    assert sections == ["Guide", "Guide > Install", "Guide > Install > Linux", "Guide > Use"]
    assert empty.passages() == left_out.passages() == []


def read_file(tmp_path: Path, text: str, style: str = "headers") -> tuple[list[Passage], list[str]]:
    """The passages of a file, and what is said about it."""
    (tmp_path / "a.md").write_text(text)
    said: list[str] = []
    (document,) = documents(
        walk(tmp_path, tmp_path), style, 300, 20, lambda uri, sentence: said.append(sentence)
    )
    assert said == []  # it is taken apart only when it is asked
    return list(document.passages()), said


@pytest.mark.parametrize("style", ["headers", "lines"])
def test_a_private_block_across_many_chunks_is_taken_out_whole_and_lines_stay_true(
    tmp_path: Path, style: str
) -> None:
    secret = "".join(f"Hidden sentence {number}.\n" for number in range(200))
    text = f"# A\n\n{LONG}\n\n<private>\n{secret}</private>\n\nAfter it.\n\n## B\n\n{LONG}\n"
    found, said = read_file(tmp_path, text, style)
    assert not any("Hidden" in passage.content for passage in found)
    assert [one.lines[1] for one in found if one.lines and "## B" in one.content] == [212]
    assert said == ["secrets or private parts were taken out: 1"]


def test_a_private_block_that_is_never_closed_is_told(tmp_path: Path) -> None:
    found, said = read_file(tmp_path, f"# A\n\n{LONG}\n\n<private>\n\nRest.\n")
    assert not any("Rest" in passage.content for passage in found)
    assert "<private> is opened and not closed, so what follows it was left out" in said


@settings(max_examples=100, deadline=None)
@given(
    text=st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=40).map("".join),
    front=st.sampled_from(
        ["", "---\n", "---\ntitle: x\n---\n", "---\r\na: [\r\n---\r\n", "---\ntags: [a]\n"]
    ),
)
def test_every_text_is_parsed_and_its_passages_cite_lines_that_hold_them(
    text: str, front: str
) -> None:
    text = front + text
    page = parse(text)
    assert text.endswith(page.body) or "<!--" in text
    lines = re.split(r"\r\n?|\n", text)
    for style in (by_headers, by_lines):
        for passage in passages(page, "a.md", style(page.body, 100, 15, page.first_line)):
            first, last = passage.lines or (0, 0)
            assert 1 <= first <= last <= len(lines)
            assert passage.content.strip() == passage.content != ""
            assert passage.content[-1] in "".join(lines[first - 1 : last])


HOSTILE = dict(cases("markdown-hostile", {}))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(20)
def test_hostile_text_is_read_in_seconds(name: str) -> None:
    text = HOSTILE[name]
    start = time.process_time()
    page = parse(text)
    assert (
        "".join(chunk.text for chunk in by_headers(page.body))
        == "".join(chunk.text for chunk in by_lines(page.body))
        == page.body
    )
    passages(page, "a.md", by_headers(page.body))
    assert time.process_time() - start < 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A\n===\n\nB\n---\n\nC\n---\n\nD\n===\n", "# A\n\n\n## B\n\n\n## C\n\n\n# D\n\n"),
        ("***\n A\n***\n\nB\n***\n", "\n# A\n\n\n## B\n\n"),
        ("A\n\n~~~~\n\nB\n", "A\n\n---\n\nB\n"),
        ("=== ===\nA   B\n=== ===\n", "=== ===\nA   B\n=== ===\n"),
        ("::\n\n   a\n   ---\n", "::\n\n   a\n   ---\n"),
    ],
    ids=["order-of-styles", "line-above", "no-code", "table", "indented"],
)
def test_titles_of_restructuredtext_keep_their_lines(text: str, expected: str) -> None:
    assert to_markdown(text, "a.rst") == expected
