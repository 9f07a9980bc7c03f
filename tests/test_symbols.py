"""What the outline of a source file holds: one fixture per language, then what no fixture should have to hold."""

import re
import time
from pathlib import Path

import pytest
from case_tables import cases, rules
from growth import processor_limit
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import FIXTURES, load_rows

from bethink.ingest import symbols
from bethink.ingest.symbols import LANGUAGES, language_of, outline, summarize_comment

CODE = FIXTURES / "code"


def read(text: str, language: str) -> list[symbols.Symbol]:
    return outline(text, language).symbols


NAMES = sorted(path.name for path in CODE.iterdir())
DOCS = load_rows("symbols/docs.txt", 3)  # fixture, name, and what is said about it
SIGNATURES = load_rows("symbols/signatures.txt", 3)
FILE_DOCS = dict(cases("symbols-file_docs"))


def test_definitions_are_found_with_their_docs_and_syntax_errors_cost_little():
    for name in NAMES:
        """First line, kind, qualified name of what each stands in (- for nothing), name. The licence of a file is not its documentation."""
        text = (CODE / name).read_text("utf-8")
        found = outline(text, language_of(name, text))
        line = "{0.lines[0]} {0.kind} {1} {0.name}".format
        shown = [line(one, one.parent or "-") for one in found.symbols]
        assert shown == (FIXTURES / "symbols" / f"{name}.txt").read_text("utf-8").splitlines()
        assert found.doc == FILE_DOCS.get(name, found.doc)
        named = {one.name: one for one in reversed(found.symbols)}  # the first of a name
        for file, symbol, doc in DOCS:
            assert file != name or named[symbol].doc == doc, symbol
        for file, symbol, signature in SIGNATURES:
            assert file != name or named[symbol].signature == signature, symbol
    assert {language_of(name) for name in NAMES} == set(LANGUAGES)
    for language, text, names in cases("symbols-partial"):
        assert names <= {symbol.name for symbol in read(text, language)}
    for text, names in cases("symbols-what-counts-in-a"):
        assert [symbol.name for symbol in read(text, "javascript")] == names
        assert [symbol.name for symbol in read(text, "tsx")] == names
    for language, text, expected in cases("symbols-a-comment-belongs-to"):
        assert expected in [(symbol.name, symbol.doc) for symbol in read(text, language)]


@rules(
    {
        "symbols-the-language-of-a": language_of,
        "symbols-what-a-comment-says": summarize_comment,
        "symbols-what-a-docstring-says": summarize_comment,
    }
)
def test_the_language_of_a_file_and_what_a_comment_says(function, given, expected):
    assert function(*given) == expected


EMPTY = ["", "\n", "   \n\t\n", "\ufeff", "\0", "\ud800 half a pair", "密码 = 1\n", "\r\r\r"]
CLOSED = {"(": ")", "{": "}", "[": "]"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_without_definitions_have_none_and_any_nesting_is_survived(language):
    for text in EMPTY:
        assert [symbol for symbol in read(text, language) if symbol.name != "密码"] == []
    for begin in (*CLOSED, "if (x) {", "a.b(", "namespace a {"):
        read("x = " + begin * 3_000 + "1" + CLOSED[begin[-1]] * 3_000 + "\n", language)


def test_what_is_long_or_hostile_is_cut_off_and_no_node_is_asked_where_it_is(monkeypatch):
    for language, text, names in cases("symbols-hostile", {}):
        """What nests with the square of its depth would take hours; ten thousand open brackets of types a gigabyte."""
        monkeypatch.setattr(symbols, "PATIENCE", 0.1 if "elif" in text else symbols.PATIENCE)
        begun = time.thread_time()
        assert {symbol.name for symbol in read(text, language)} in names
        assert time.thread_time() - begun < 20
    parameters = ", ".join(f"parameter_{number}: int" for number in range(100))
    text = f'@mark({"x" * 200!r})\n@short\ndef f({parameters}):\n    """{"word " * 500}"""\n'
    (found,) = read(text, "python")
    assert found.signature.startswith("@short def f(parameter_0: int")
    assert len(found.signature) <= 300 and len(found.doc) <= 600 and found.lines == (1, 4)
    with processor_limit(5):
        for text in cases("symbols-cleaning-takes-no-longer-for", {}):
            summarize_comment(text)
    # Reading `Point.row` or `.column` frees integers that are in use in tree-sitter 0.26.0, and a crash follows much later.
    ingest = Path(symbols.__file__).parent
    asked = re.compile(r"\.(?:start_point|end_point)\b|(?<!Node)\.text\b(?!\()")
    for name in ("symbols.py", "analyze/routes.py"):
        assert asked.findall((ingest / name).read_text("utf-8")) == []


# Texts that are made of what the grammars know get further into the walk than random characters do.
WORDS = """
class def function fn func struct enum impl trait interface type const var let static public private export default module namespace
end do if else try return import package use extern typedef union template using async await get set record property event
attr_reader task private /** */ // # @a #[a] /// //! \" ' ` { } ( ) [ ] < > : ; , . = => -> :: & * | \\ \n \n\n \t <?php ?> A B c d_e F1 1 "x y z"
""".split(" ")


TEXTS = st.text(max_size=200) | st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(text=TEXTS)
def test_no_text_makes_reading_fail(language, text):
    found = outline(text, language)
    assert len(found.doc) <= 600
    for symbol in found.symbols:
        assert symbol.name and symbol.kind and "\n" not in symbol.signature
        assert len(symbol.signature) <= 320 and len(symbol.doc) <= 600
        assert 1 <= symbol.lines[0] <= symbol.lines[1]
