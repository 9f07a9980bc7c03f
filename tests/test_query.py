"""Questions as people and agents type them, and as nobody should. The clock stands at Sunday 15 November 2026, noon UTC."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from case_tables import cases
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bethink.recall.query import SYNTAX_LIMIT, TERM_LIMIT, TEXT_LIMIT, parse
from bethink.types import KINDS, Query, Term

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def ask(raw: str) -> Query:
    return parse(raw, NOW)


def show(node):
    """A term or expression in short: `content:auth*`, `"a phrase"`, `(and a (not b c))`."""
    if node is None:
        return None
    if not isinstance(node, Term):
        return f"({node[0]} {show(node[1])} {show(node[2])})"
    text = f'"{node.text}"' if node.phrase else node.text + "*" * node.prefix
    return f"{node.column}:{text}" if node.column else text


def terms(raw: str) -> list[str]:
    return [str(show(term)) for term in ask(raw).terms]


WORDS = {
    "": [],
    "   ": [],
    "redis": ["redis"],
    "how does the cache work?": ["cache", "work"],
    "What did Caroline say about it?": ["Caroline", "say"],
    "Redis redis REDIS cache": ["Redis", "cache"],
    "what is it": ["what", "is", "it"],
    "to be or not to be": ["to", "be", "or", "not"],
    "don't use Caroline’s cache": ["use", "Caroline", "cache"],
    "O'Brien": ["O'Brien"],
    "IT department in May": ["IT", "department", "May"],
    "HOW DO WE DEPLOY IT": ["DEPLOY"],
    "full-text search": ["full", "text", "search"],
    "e-mail end-to-end": ["e-mail", "end-to-end"],
    "and/or client/server": ["client", "server"],
    "I/O 24/7": ["I/O", "24/7"],
    "C++ and C#": ["C++", "C#"],
    "one,two;three": ["one", "two", "three"],
    "foo:bar": ["foo", "bar"],
    "e.g. pi 3.14 at 10:30": ["pi", "3.14", "10:30"],
    "fix bug #123": ["fix", "bug", "123"],
    "+required word": ["required", "word"],
    "使用Redis缓存": ["使用", "Redis", "缓存"],
    "データベース設計。テスト": [
        "デー",
        "ータ",
        "タベ",
        "ベー",
        "ース",
        "ス設",
        "設計",
        "テス",
        "スト",
    ],
    "한국어 검색": ["한국", "국어", "검색"],
    "مرحبا بالعالم؟": ["مرحبا", "بالعالم"],
    "שלום עולם": ["שלום", "עולם"],
    "हिन्दी भाषा।": ["हिन्दी", "भाषा"],
    "fire 🔥 emoji👩‍💻": ["fire", "emoji"],
    "naïve café": ["naïve", "café"],
}


@pytest.mark.parametrize("raw", WORDS)
def test_content_words_are_looked_up_once_each(raw):
    query = ask(raw)
    assert terms(raw) == WORDS[raw]
    assert query.expression is None
    assert query.text == " ".join(raw.split())


SYNTAX = {
    # raw: (terms, text)
    '"exact phrase"': (['"exact phrase"'], "exact phrase"),
    'find "to be" now': (["find", '"to be"', "now"], "find to be now"),
    "“curly quotes” too": (['"curly quotes"'], "curly quotes too"),
    'say ""': (["say"], "say"),
    '"foo ba"* x': (['"foo ba"', "x"], "foo ba x"),
    "program*": (["program*"], "program"),
    "auth* tokens": (["auth*", "tokens"], "auth tokens"),
    "**bold** *emphasis* f*": (["bold", "emphasis", "f"], "**bold** *emphasis* f*"),
    "content:typescript": (["content:typescript"], "typescript"),
    "{content}: typescript": (["content:typescript"], "typescript"),
    "{summary} : typescript": (["summary:typescript"], "typescript"),
    "{content summary}: word": (["content:word", "summary:word"], "word"),
    "summary:auth tags:security section:API": (
        ["summary:auth", "tags:security", "section:API"],
        "auth security API",
    ),
    'content:"two words"': (['content:"two words"'], "two words"),
    "Content:the": (["content:the"], "the"),
    "title:word": (["title", "word"], "title:word"),
    "{title}: word": (["title", "word"], "{title}: word"),
    "content: the word": (["content", "word"], "content: the word"),
    "http://x": (["http://x"], "http://x"),
    "std::vector": (["std::vector"], "std::vector"),
    "content::x": (["content::x"], "content::x"),
}


@pytest.mark.parametrize("raw", SYNTAX)
def test_phrases_prefixes_and_columns_are_terms_and_their_syntax_is_not_embedded(raw):
    assert (terms(raw), ask(raw).text) == SYNTAX[raw]
    assert ask(raw).expression is None


def test_a_prefix_within_a_column_keeps_both():
    assert ask("content:auth*").terms == (Term("auth", prefix=True, column="content"),)


def test_a_quoted_phrase_is_a_phrase_even_of_one_word():
    assert ask('"redis"').terms == (Term("redis", phrase=True),)


EXPRESSIONS = {
    # raw: (expression, terms, text)
    "python OR javascript": (
        "(or python javascript)",
        ["python", "javascript"],
        "python javascript",
    ),
    "python AND javascript": (
        "(and python javascript)",
        ["python", "javascript"],
        "python javascript",
    ),
    "python NOT snake": ("(not python snake)", ["python"], "python"),
    "python AND NOT snake": ("(not python snake)", ["python"], "python"),
    "a NOT b": ("(not a b)", ["a"], "a"),
    "a AND b OR c": ("(or (and a b) c)", ["a", "b", "c"], "a b c"),
    "a OR b AND c": ("(or a (and b c))", ["a", "b", "c"], "a b c"),
    "a b OR c": ("(or (and a b) c)", ["a", "b", "c"], "a b c"),
    "a NOT b NOT c": ("(not (not a b) c)", ["a"], "a"),
    "x NOT (y OR z)": ("(not x (or y z))", ["x"], "x"),
    "(login OR auth) AND bug": (
        "(and (or login auth) bug)",
        ["login", "auth", "bug"],
        "login auth bug",
    ),
    "(login OR auth) bug": (
        "(and (or login auth) bug)",
        ["login", "auth", "bug"],
        "login auth bug",
    ),
    "((((redis)))) OR cache": ("(or redis cache)", ["redis", "cache"], "redis cache"),
    "what is python OR javascript": (
        "(or python javascript)",
        ["python", "javascript"],
        "what is python javascript",
    ),
    '"red green" OR blue*': ('(or "red green" blue*)', ['"red green"', "blue*"], "red green blue"),
    "content:red NOT tags:blue": ("(not content:red tags:blue)", ["content:red"], "red"),
    "{content summary}: red AND green": (
        "(and (or content:red summary:red) green)",
        ["content:red", "summary:red", "green"],
        "red green",
    ),
    "useState OR src/app.py": (
        "(or useState src/app.py)",
        ["useState", "src/app.py"],
        "useState src/app.py",
    ),
    "python -snake": ("(not python snake)", ["python"], "python"),
    "-snake python code": ("(not (or python code) snake)", ["python", "code"], "python code"),
    "python -snake -zoo": ("(not (not python snake) zoo)", ["python"], "python"),
    'python -"big snake" code': (
        '(not (or python code) "big snake")',
        ["python", "code"],
        "python code",
    ),
    "python -tags:zoo": ("(not python tags:zoo)", ["python"], "python"),
    "python OR ruby -snake": ("(or python (not ruby snake))", ["python", "ruby"], "python ruby"),
    "redis OR cache AND kind:todo": ("(or redis cache)", ["redis", "cache"], "redis cache"),
}


@pytest.mark.parametrize("raw", EXPRESSIONS)
def test_a_well_formed_expression_is_understood(raw):
    query = ask(raw)
    assert (show(query.expression), terms(raw), query.text) == EXPRESSIONS[raw]


NOT_EXPRESSIONS = {
    "NOT b": ["b"],
    "AND OR NOT": ["AND", "OR", "NOT"],
    "OR": ["OR"],
    "foo AND": ["foo"],
    "OR foo": ["foo"],
    "foo AND OR bar": ["foo", "bar"],
    "foo OR NOT bar": ["foo", "bar"],
    "(foo OR bar": ["foo", "bar"],
    "foo OR bar)": ["foo", "bar"],
    "foo OR ()": ["foo"],
    "foo AND 🔥": ["foo"],
    "(foo bar) baz": ["foo", "bar", "baz"],
    "foo and bar or not baz": ["foo", "bar", "baz"],
    "the API does NOT support pages": ["API", "support", "pages"],
    "we must NOT delete users": ["delete", "users"],
    "NEAR(foo bar, 5)": ["NEAR", "foo", "bar", "5"],
    "-snake": ["snake"],
    "rm -rf build": ["rm", "rf", "build"],
    "use -v and --dry-run": ["use", "v", "dry-run"],
    "gcc -std=c99": ["gcc", "std", "c99"],
    "run `find -name foo` here": ["run", "find", "name", "foo"],
    "first - second": ["first", "second"],
    "list:\n-alpha\n-beta": ["list", "alpha", "beta"],
    "well-known thing": ["well", "known", "thing"],
    "minus -5 degrees": ["minus", "5", "degrees"],
    "cache -which is slow": ["cache", "slow"],
    '"unbalanced quote': ["unbalanced", "quote"],
    "^start col: x": ["start", "col", "x"],
    "* : ^ - ( ) { } [ ]": [],
    "?!…": [],
    "\x00": [],
    "nul\x00byte": ["nul", "byte"],
    "lone \ud800 surrogate\udfff": ["lone", "surrogate"],
    "\u202emirrored\u202c text": ["mirrored", "text"],
    "x'; DROP TABLE memories; --": ["x", "DROP", "TABLE", "memories"],
}


@pytest.mark.parametrize("raw", NOT_EXPRESSIONS)
def test_what_is_not_well_formed_is_searched_as_words(raw):
    assert terms(raw) == NOT_EXPRESSIONS[raw]
    assert ask(raw).expression is None


def test_excluded_words_are_dropped_rather_than_wanted_when_only_a_kind_stands_beside_them():
    query = ask("kind:decision -draft")
    assert (query.kinds, query.text, query.expression) == (("decision",), "decision", None)


def test_an_expression_of_too_many_terms_is_searched_as_words():
    query = ask(" OR ".join(f"word{number}" for number in range(TERM_LIMIT + 1)))
    assert query.expression is None
    assert len(query.terms) == TERM_LIMIT


IDENTIFIERS = """
useState
parseHTTPHeader
MemoryStore
HTTPServer
OpenAI
snake_case_name
__init__
_private
MAX_SIZE
ERR_FOO
E1234
TS2345
CVE-2024-1234
gpt-4
utf-8
os.path.join
config.yaml
package-lock.json
Node.js
.env
src/app/main.py
/usr/local/bin
./run.sh
../lib/x
~/notes
C:\\Users\\me
src/
docs/设计.md
@types/node
std::vector
v1.2.3
v2
1.2.3-rc1
a1b2c3d
0x80070005
a1b2c3d4-e5f6-7890-abcd-ef0123456789
bob@example.com
https://example.com/a?b=c#d
""".strip().splitlines()


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_an_identifier_is_one_term_and_is_listed(name):
    query = ask(f"why does {name}, fail")
    assert query.identifiers == (name,)
    assert query.terms == (Term(name), Term("fail"))


@pytest.mark.parametrize(
    ("raw", "identifiers"),
    cases("query-identifiers-are-found-in"),
)
def test_identifiers_are_found_in_what_surrounds_them(raw, identifiers):
    assert ask(raw).identifiers == identifiers


@pytest.mark.parametrize(
    "raw",
    cases("query-ordinary-words-are-no"),
)
def test_ordinary_words_are_no_identifiers(raw):
    assert ask(raw).identifiers == ()


ENTITIES = {
    "entity:Redis timeouts": (("Redis",), "Redis timeouts", ["Redis", "timeouts"]),
    'entity:"Control Board" noise': (
        ("Control Board",),
        "Control Board noise",
        ['"Control Board"', "noise"],
    ),
    "what did @caroline say": (("caroline",), "what did caroline say", ["caroline", "say"]),
    "@Caroline's idea, @bob?": (
        ("Caroline", "bob"),
        "Caroline's idea, bob?",
        ["Caroline", "idea", "bob"],
    ),
    "entity:redis @Redis": (("redis",), "redis Redis", ["redis"]),
    "mail bob@example.com": ((), "mail bob@example.com", ["mail", "bob@example.com"]),
    "why @dataclass(frozen)": ((), "why @dataclass(frozen)", ["dataclass", "frozen"]),
    "Redis and MemoryStore": ((), "Redis and MemoryStore", ["Redis", "MemoryStore"]),
}


@pytest.mark.parametrize("raw", ENTITIES)
def test_entities_are_those_that_were_named_as_such(raw):
    query = ask(raw)
    assert (query.entities, query.text, terms(raw)) == ENTITIES[raw]


KIND_CUES = {
    "decisions about caching": ("decision",),
    "what did we decide about caching?": ("decision",),
    "what have we finally decided": ("decision",),
    "what was decided on Monday": ("decision",),
    "what was the decision on caching": ("decision",),
    "which decision did we make yesterday": ("decision",),
    "list all decisions": ("decision",),
    "show me recent decisions on auth": ("decision",),
    "problems with docker": ("problem",),
    "known issues": ("problem",),
    "gotchas": ("gotcha",),
    "any gotchas with sqlite?": ("gotcha",),
    "todos": ("todo",),
    "open todos for the parser": ("todo",),
    "what is left to do": ("todo",),
    "my preferences": ("preference",),
    "coding preferences": ("preference",),
    "what does the user prefer": ("preference",),
    "how did we fix the login bug": ("solution",),
    "how was the PostgreSQL crash solved?": ("solution",),
    "workaround for the timeout": ("solution",),
    "the last handoff": ("handoff",),
    "problems with and solutions for docker": ("problem", "solution"),
    "kind:decision database": ("decision",),
    "kind:decisions,todo database": ("decision", "todo"),
    "kind:self": ("preference",),
    "KIND:Gotcha x": ("gotcha",),
    "kind:todo decisions about caching": ("todo",),
    "kind:decision AND redis": ("decision",),
}


@pytest.mark.parametrize("raw", KIND_CUES)
def test_a_clear_cue_names_the_kinds(raw):
    query = ask(raw)
    assert query.kinds == KIND_CUES[raw]
    assert set(query.kinds) <= set(KINDS)
    assert query.answered is None


@pytest.mark.parametrize(
    "raw",
    [
        "open questions",
        "unanswered questions about auth",
        "what is still open?",
        "what’s still unresolved",
        "what remains unanswered",
    ],
)
def test_open_questions_are_questions_without_an_answer(raw):
    assert (ask(raw).kinds, ask(raw).answered) == (("question",), False)


@pytest.mark.parametrize(
    "raw",
    cases("query-words-that-only-resemble"),
)
def test_words_that_only_resemble_a_cue_name_no_kind(raw):
    assert (ask(raw).kinds, ask(raw).answered) == ((), None)


def test_a_kind_alone_is_still_something_to_search_for():
    query = ask("kind:decision")
    assert (query.kinds, query.text, query.terms) == (
        ("decision",),
        "decision",
        (Term("decision"),),
    )


@pytest.mark.parametrize(
    ("raw", "since", "until"),
    [
        ("what did we decide last week", "2026-11-02", "2026-11-09"),
        ("decisions since March", "2026-03-01", None),
        ("notes on 2024-05-01", "2024-05-01", "2024-05-02"),
        ("When did Caroline go to the support group?", None, None),
        ("it may fail", None, None),
        ('find "last week" in the logs', None, None),
        ("content:yesterday", None, None),
        ("cache -yesterday", None, None),
        ("cache NOT yesterday", None, None),
        ("read src/last/2024-05-01.log", None, None),
    ],
)
def test_temporal_words_set_the_range_unless_they_are_quoted_or_excluded(raw, since, until):
    query = ask(raw)
    assert tuple(value and value.date().isoformat() for value in (query.since, query.until)) == (
        since,
        until,
    )


def test_temporal_and_kind_words_stay_in_the_text():
    assert (
        ask("what did we decide about caching last week?").text
        == "what did we decide about caching last week?"
    )


def test_a_long_text_is_analysed_at_its_start_and_embedded_further():
    raw = "start " + "filler " * 2_000 + "end"
    query = ask(raw)
    assert query.raw == raw
    assert SYNTAX_LIMIT < len(query.text) <= TEXT_LIMIT
    assert terms(raw) == ["start", "filler"]


def test_the_limit_cuts_no_word_in_two():
    query = ask("x" * (SYNTAX_LIMIT - 5) + " longer-word")
    assert query.terms == (Term("x" * (SYNTAX_LIMIT - 5)),)
    assert query.text.endswith(" longer-word")


@pytest.mark.parametrize("unit", ["a ", '"', "kind:", "last week ", "文"])
def test_what_is_embedded_of_a_megabyte_is_bounded(unit):
    assert len(ask(unit * (1_000_000 // len(unit))).text) <= TEXT_LIMIT


def test_the_module_imports_nothing_heavy():
    code = "import sys, re, functools, bethink.types; before = set(sys.modules); import bethink.recall.query; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {name for name in loaded if not name.startswith("bethink.")} == set()


SYNTAX_PIECES = st.sampled_from(
    [
        *(
            "AND",
            "OR",
            "NOT",
            "(",
            ")",
            '"',
            "“",
            "-",
            "*",
            ":",
            "^",
            "@",
            "NEAR(",
            "a",
            "the",
            "foo",
            "foo*",
            "-foo",
            "--x",
            "src/a.py",
        ),
        *(
            "content:",
            "{summary}:",
            "kind:",
            "entity:",
            "last week",
            "since March",
            "in 2024",
            "open questions",
        ),
        *("文字", "\x00", "\ud800", "🔥", "\n"),
    ]
)
QUESTIONS = (
    st.text(max_size=300)
    | st.lists(SYNTAX_PIECES | st.text(max_size=4), max_size=30).map(" ".join)
    | st.lists(SYNTAX_PIECES, max_size=30).map("".join)
)


@settings(max_examples=300, deadline=None)
@example("(" * 1_999 + "a")
@example("a OR " * 400 + "a")
@example("-a" * 1_000)
@given(QUESTIONS)
def test_every_string_is_a_question(raw):
    query = ask(raw)
    assert query == ask(raw)
    assert query.raw == raw
    assert len(query.terms) <= TERM_LIMIT
    assert len(
        {(term.text.casefold(), term.phrase, term.prefix, term.column) for term in query.terms}
    ) == len(query.terms)
    assert all(
        term.text and term.column in (None, "content", "summary", "section", "tags")
        for term in query.terms
    )
    assert set(query.kinds) <= set(KINDS)
    assert not (query.since and query.until) or query.since < query.until
    # What is stored and sent to a model must be encodable.
    for text in (
        query.text,
        *(term.text for term in query.terms),
        *query.entities,
        *query.identifiers,
    ):
        assert "\x00" not in text.encode().decode()
    assert (show(query.expression) is None) == (query.expression is None)
