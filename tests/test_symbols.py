"""What the outline of a source file holds: one fixture per language, then what no fixture should have to hold."""

import re
import time
from pathlib import Path

import pytest
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
FILE_DOCS = {
    "Account.cs": "",
    "Cart.php": "The cart of a visitor.",
    "Order.java": "",
    "cache.go": "Package cache keeps what was fetched for a while.",
    "mailer.rb": "Sends mails, now or later.",
    "matrix.cpp": "Matrices of any size.",
    "panel.tsx": "",
    "queue.rs": "A queue with a bounded number of waiting jobs.\nJobs are run in the order of their arrival.",
    "retry.py": "Calls that may fail are tried again.\nNothing here knows about HTTP.",
    "ring.c": "The ring buffer itself.",
    "ring.h": "ring.h: a ring buffer of bytes.",
    "server.js": "Serves the shop over HTTP. Routes are registered by name.",
    "store.ts": "A store that tells its listeners about every change.",
}


PARTIAL = [
    (
        "python",
        "class A:\n    def f(self):\n        pass\n\ndef g(:\n\nclass B:\n    pass\n",
        {"B", "f", "A"},
    ),
    (
        "typescript",
        "export function one() {}\nexport function two( {\nexport class Three { four() {} }\n",
        {"one"},
    ),
    ("go", "package x\nfunc One() {}\nfunc Two( {}\nfunc Three() {}\n", {"Three", "One"}),
    ("rust", "fn one() {}\nfn two( {}\nfn three() {}\n", {"one"}),
    ("java", "class A { void f() {} void g( {} }\nclass B {}\n", {"f", "A"}),
    ("c", "int one(void) { return 1; }\nint two( { \nint three(void) { return 3; }\n", {"one"}),
    ("cpp", "class A { void f(); @@ };\nvoid g() {}\n", {"f", "g", "A"}),
    ("csharp", "class A { void F() {} void G( {} }\n", {"F", "A"}),
    ("ruby", "class A\n  def f; end\n  def g(; end\nend\ndef h; end\n", {"f", "A"}),
    ("php", "<?php\nfunction one() {}\nfunction two( {}\nfunction three() {}\n", {"one"}),
    ("javascript", "function one() {}\nclass {{{\nfunction two() {}\n", {"one"}),
    ("c", "int [3];\nint one(void) { return 1; }\n", {"one"}),
]

COUNTS = [
    ("const names = items.map((item) => item.name);", []),
    ("const timer = setTimeout(() => {}, 5);", []),
    ("const Row = memo(() => null);", ["Row"]),
    ("const save = _.debounce(function () {}, 50);", ["save"]),
    ("module.exports = class Cart { add() {} };", ["Cart", "add"]),
    ("module.exports = function make() {};", ["make"]),
    ("exports = module.exports = { run() {} };", ["run"]),
    ("export default { name: 'x', methods: { open() {} }, created() {} };", ["open", "created"]),
    ("define(['a'], function (a) { function inner() {} });", ["inner"]),
    ("function make() { return { open() {}, close: () => {} }; }", ["make"]),
    ("function outer() { function inner() {} }", ["outer"]),
    ("export const a = 1, B = 2;", ["a", "B"]),
    ("export * from './a'; export { b } from './b';", []),
    ("describe('x', () => { const LOCAL = 1; it('y', () => {}); });", []),
]

COMMENT_BELONGS_TO = [
    ("python", "class A:\n    # about f\n    def f(self): pass\n", ("f", "about f")),
    ("python", "x = 1  # about x\ndef f(): pass\n", ("f", "")),
    ("python", "# not about it\n\ndef f(): pass\n", ("f", "")),
    ("javascript", "/** with a free line */\n\nfunction f() {}\n", ("f", "with a free line")),
    ("javascript", "// with a free line\n\nfunction f() {}\n", ("f", "")),
    (
        "typescript",
        "/** First. */\nfunction f(a: string): void;\nfunction f(a: unknown) {}\n",
        ("f", "First."),
    ),
    ("c", "/* Declared. */\nint f(void);\nint f(void) { return 1; }\n", ("f", "Declared.")),
    ("java", "class A { int a; // about a\n  void f() {} }", ("f", "")),
    ("rust", "/// About f.\n#[test]\nfn f() {}\n", ("f", "About f.")),
    (
        "cpp",
        "class API Widget : public QWidget {\n  Q_OBJECT\npublic:\n  /// Shows it.\n  void show();\n};\n",
        ("show", "Shows it."),
    ),
]


def outline_of(name):
    text = (CODE / name).read_text("utf-8")
    return outline(text, language_of(name, text))


@pytest.mark.parametrize("name", NAMES)
def test_definitions_are_found(name):
    """First line, kind, qualified name of what each is inside (- for nothing), name."""
    line = "{0.lines[0]} {0.kind} {1} {0.name}".format
    shown = [line(one, one.parent or "-") for one in outline_of(name).symbols]
    assert shown == (FIXTURES / "symbols" / f"{name}.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize(("name", "doc"), FILE_DOCS.items())
def test_the_licence_of_a_file_is_not_its_documentation(name, doc):
    assert outline_of(name).doc == doc


@pytest.mark.parametrize(("file", "symbol", "doc"), DOCS)
def test_a_definition_has_its_documentation(file, symbol, doc):
    named = {one.name: one for one in reversed(outline_of(file).symbols)}  # the first of a name
    assert named[symbol].doc == doc


@pytest.mark.parametrize(("file", "symbol", "signature"), SIGNATURES)
def test_a_definition_has_its_signature(file, symbol, signature):
    named = {one.name: one for one in reversed(outline_of(file).symbols)}
    assert named[symbol].signature == signature


def test_every_language_has_a_file():
    assert {language_of(name) for name in NAMES} == set(LANGUAGES)


@pytest.mark.parametrize(("language", "text", "names"), PARTIAL)
def test_a_syntax_error_costs_little(language, text, names):
    assert names <= {symbol.name for symbol in read(text, language)}


@pytest.mark.parametrize("language", ["javascript", "tsx"])
@pytest.mark.parametrize(("text", "names"), COUNTS)
def test_what_has_a_name_of_use_counts_as_a_definition(text, names, language):
    assert [symbol.name for symbol in read(text, language)] == names


@pytest.mark.parametrize(("language", "text", "expected"), COMMENT_BELONGS_TO)
def test_a_comment_belongs_to_the_definition_below(language, text, expected):
    assert expected in [(symbol.name, symbol.doc) for symbol in read(text, language)]


@pytest.mark.parametrize(
    ("path", "first_line", "expected"),
    [
        pytest.param("a/b.py", "", "python", id="a/b.py"),
        pytest.param("b.PY", "", "python", id="b.py"),
        pytest.param("b.pyi", "", "python", id="b.pyi"),
        pytest.param("b.mts", "", "typescript", id="b.mts"),
        pytest.param("b.cts", "", "typescript", id="b.cts"),
        pytest.param("b.tsx", "", "tsx", id="b.tsx"),
        pytest.param("b.jsx", "", "javascript", id="b.jsx"),
        pytest.param("b.cjs", "", "javascript", id="b.cjs"),
        pytest.param("b.hh", "", "cpp", id="b.hh"),
        pytest.param("b.cxx", "", "cpp", id="b.cxx"),
        pytest.param("b.rake", "", "ruby", id="b.rake"),
        pytest.param("b.h", "int f(void);\n", "c", id="b.h-int-f-void"),
        pytest.param("b.h", "struct a { int class; };\n", "c", id="b.h-struct-int-class"),
        pytest.param("b.h", "class A {\n};\n", "cpp", id="b.h-class"),
        pytest.param("b.h", "namespace a {\n}\n", "cpp", id="b.h-namespace"),
        pytest.param("b.h", "template <class T> T f();\n", "cpp", id="b.h-template-class-T-T-f"),
        pytest.param("b.h", "std::string f();\n", "cpp", id="b.h-std-string-f"),
        pytest.param("README.md", "#!/usr/bin/python\n", None, id="readme.md"),
        pytest.param("b.json", "", None, id="b.json"),
        pytest.param("", "", None, id="empty"),
        pytest.param(".py", "", None, id="py"),
    ],
)
def test_the_language_follows_from_the_file(path, first_line, expected):
    assert language_of(path, first_line) == expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        pytest.param("/** One.\n * Two.\n */", "One. Two.", id="one-two-one-two"),
        pytest.param("/**\n * One.\n *\n * Two.\n */", "One.", id="one-two-one"),
        pytest.param(
            "// eslint-disable-next-line no-console\n// One.",
            "One.",
            id="eslint-disable-next-line-no-console-one",
        ),
        pytest.param(
            "/* Copyright 2026 us. All rights reserved. */",
            "",
            id="copyright-2026-us-all-rights-reserved",
        ),
        pytest.param(
            "/* One thing.\n *\n * Licensed under the MIT license. */",
            "One thing.",
            id="one-thing-licensed-under-MIT-license",
        ),
        pytest.param("/**\n * @param a one\n * @returns two\n */", "", id="param-one-returns-two"),
        pytest.param(
            '/// <summary>Adds <paramref name="a"/> to <see cref="T:List"/>.</summary>\n/// <returns>x</returns>',
            "Adds a to List.",
            id="summary-adds-paramref-name-see-cref-T-list",
        ),
        pytest.param(
            "/** See {@link Foo#bar the bar} and {@code a < b} and {@code }. */",
            "See the bar and a < b and .",
            id="see-link-foo-bar-bar-code-b-code",
        ),
        pytest.param("//------- helpers -------", "helpers", id="helpers"),
        pytest.param("# -*- coding: utf-8 -*-\n# One.", "One.", id="coding-utf-8-one"),
        pytest.param("/// @brief Adds @p a.", "Adds a.", id="brief-adds-p"),
        pytest.param(
            "/*\n * The Shop\n *\n * Permission is hereby granted, free of charge, to any person\n */",
            "",
            id="shop-permission-hereby-granted-free-charge",
        ),
    ],
)
def test_a_comment_loses_its_marks(comment, expected):
    assert summarize_comment(comment) == expected


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        pytest.param('"""One.\n\n    Two."""', "One.", id="one-two"),
        pytest.param("'one'", "one", id="one"),
        pytest.param('r"""One\n    two."""', "One two.", id="r-one-two"),
        pytest.param('"""Title\n=====\n\nOne."""', "Title", id="title-one"),
    ],
)
def test_a_docstring_is_cut_to_its_first_paragraph(docstring, expected):
    assert summarize_comment(docstring) == expected


EMPTY = ["", "\n", "   \n\t\n", "\ufeff", "\0", "\ud800 half a pair", "密码 = 1\n", "\r\r\r"]
CLOSED = {"(": ")", "{": "}", "[": "]"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_without_definitions_have_none(language):
    found = [symbol.name for text in EMPTY for symbol in read(text, language)]
    assert set(found) <= {"密码"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_any_nesting_is_survived(language):
    for begin in (*CLOSED, "if (x) {", "a.b(", "namespace a {"):
        read("x = " + begin * 3_000 + "1" + CLOSED[begin[-1]] * 3_000 + "\n", language)


HOSTILE = [
    ("javascript", "function f() {}\nx = " + "{" * 200_000 + "\n", [set(), {"f"}]),
    ("javascript", "function f() {}\nx = " + "1+" * 200_000 + "1" + "\n", [set(), {"f"}]),
    ("javascript", "function f() {}\nx = " + "a.b(" * 100_000 + "\n", [set(), {"f"}]),
    (
        "javascript",
        "function early() {}\nif x:\n" + "elif x:\n" * 10_000,
        [{"early"}, {"early", "x"}],
    ),
    ("java", "class A {}\n" + "a<" * 900, [{"A"}]),
    ("java", "class A {}\n" + "a<" * 4_000, [set()]),
    ("java", "class A {}\n" + "a<;" * 900, [{"A"}]),
    ("java", "class A {}\n" + "a<;" * 4_000, [set()]),
    ("java", "class A {}\n" + "a<\n" * 900, [{"A"}]),
    ("java", "class A {}\n" + "a<\n" * 4_000, [set()]),
    ("java", "class A {}\n" + "a< // >\n" * 900, [{"A"}]),
    ("java", "class A {}\n" + "a< // >\n" * 4_000, [set()]),
    ("csharp", "class A {}\n" + "a<" * 900, [{"A"}]),
    ("csharp", "class A {}\n" + "a<" * 4_000, [set()]),
    ("csharp", "class A {}\n" + "a<;" * 900, [{"A"}]),
    ("csharp", "class A {}\n" + "a<;" * 4_000, [set()]),
    ("csharp", "class A {}\n" + "a<\n" * 900, [{"A"}]),
    ("csharp", "class A {}\n" + "a<\n" * 4_000, [set()]),
    ("csharp", "class A {}\n" + "a< // >\n" * 900, [{"A"}]),
    ("csharp", "class A {}\n" + "a< // >\n" * 4_000, [set()]),
]

CLEANING_TAKES_NO_LONGER_FOR = [
    "/" * 100000,
    "* " * 50000,
    "<summary>" * 10000,
    "{@link " * 10000,
    "\n \n" * 30000,
    "@" * 100000,
    "#" * 100000,
]


@pytest.mark.parametrize(
    ("language", "text", "names"),
    [pytest.param(*row, id=f"{row[0]}: {len(row[1])} {row[1][-8:]}") for row in HOSTILE],
)
def test_hostile_code_is_given_up_in_time(monkeypatch, language, text, names):
    """What nests with the square of its depth would take hours; ten thousand open brackets of types a gigabyte."""
    if "elif" in text:
        monkeypatch.setattr(symbols, "LONGEST_PARSE", 0.1)
    begun = time.thread_time()
    assert {symbol.name for symbol in read(text, language)} in names
    assert time.thread_time() - begun < 20


def test_a_long_definition_is_cut():
    parameters = ", ".join(f"parameter_{number}: int" for number in range(100))
    text = f'@mark({"x" * 200!r})\n@short\ndef f({parameters}):\n    """{"word " * 500}"""\n'
    (found,) = read(text, "python")
    assert found.signature.startswith("@short def f(parameter_0: int")
    assert len(found.signature) <= 300 and len(found.doc) <= 600 and found.lines == (1, 4)


def test_a_hostile_comment_is_summarised_in_time():
    with processor_limit(5):
        for text in CLEANING_TAKES_NO_LONGER_FOR:
            summarize_comment(text)


@pytest.mark.parametrize("name", ["symbols.py", "analyze/routes.py"])
def test_no_node_is_asked_where_it_is(name):
    """Reading `Point.row` or `.column` frees integers that are in use in tree-sitter 0.26.0, and a crash follows much later."""
    text = (Path(symbols.__file__).parent / name).read_text("utf-8")
    assert re.findall(r"\.(?:start_point|end_point)\b|(?<!Node)\.text\b(?!\()", text) == []


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
    assert [
        symbol
        for symbol in found.symbols
        if (not symbol.name or not symbol.kind or "\n" in symbol.signature)
        or (len(symbol.signature) > 320 or len(symbol.doc) > 600)
        or (not 1 <= symbol.lines[0] <= symbol.lines[1])
    ] == []
