"""Questions as people and agents type them, and as nobody should. The clock stands at Sunday 15 November 2026, noon UTC."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bethink.model import KINDS, Query, Term
from bethink.recall.query import SYNTAX_LIMIT, TERM_LIMIT, TEXT_LIMIT, parse

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


CONTENT_WORDS = [
    ("", []),
    ("   ", []),
    ("redis", ["redis"]),
    ("how does the cache work?", ["cache", "work"]),
    ("What did Caroline say about it?", ["Caroline", "say"]),
    ("Redis redis REDIS cache", ["Redis", "cache"]),
    ("what is it", ["what", "is", "it"]),
    ("to be or not to be", ["to", "be", "or", "not"]),
    ("don't use Caroline’s cache", ["use", "Caroline", "cache"]),
    ("O'Brien", ["O'Brien"]),
    ("HOW DO WE DEPLOY IT", ["DEPLOY"]),
    ("full-text search", ["full", "text", "search"]),
    ("e-mail end-to-end", ["e-mail", "end-to-end"]),
    ("and/or client/server", ["client", "server"]),
    ("I/O 24/7", ["I/O", "24/7"]),
    ("C++ and C#", ["C++", "C#"]),
    ("one,two;three", ["one", "two", "three"]),
    ("foo:bar", ["foo", "bar"]),
    ("e.g. pi 3.14 at 10:30", ["pi", "3.14", "10:30"]),
    ("fix bug #123", ["fix", "bug", "123"]),
    ("+required word", ["required", "word"]),
    ("使用Redis缓存", ["使用", "Redis", "缓存"]),
    (
        "データベース設計。テスト",
        ["デー", "ータ", "タベ", "ベー", "ース", "ス設", "設計", "テス", "スト"],
    ),
    ("한국어 검색", ["한국", "국어", "검색"]),
    ("مرحبا بالعالم؟", ["مرحبا", "بالعالم"]),
    ("שלום עולם", ["שלום", "עולם"]),
    ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
    ("fire 🔥 emoji👩\u200d💻", ["fire", "emoji"]),
    ("naïve café", ["naïve", "café"]),
]

SYNTAX = [
    ('"exact phrase"', ['"exact phrase"'], "exact phrase"),
    ('find "to be" now', ["find", '"to be"', "now"], "find to be now"),
    ("“curly quotes” too", ['"curly quotes"'], "curly quotes too"),
    ('say ""', ["say"], "say"),
    ('"foo ba"* x', ['"foo ba"', "x"], "foo ba x"),
    ("program*", ["program*"], "program"),
    ("auth* tokens", ["auth*", "tokens"], "auth tokens"),
    ("**bold** *emphasis* f*", ["bold", "emphasis", "f"], "**bold** *emphasis* f*"),
    ("content:typescript", ["content:typescript"], "typescript"),
    ("{content}: typescript", ["content:typescript"], "typescript"),
    ("{summary} : typescript", ["summary:typescript"], "typescript"),
    ("{content summary}: word", ["content:word", "summary:word"], "word"),
    (
        "summary:auth tags:security section:API",
        ["summary:auth", "tags:security", "section:API"],
        "auth security API",
    ),
    ('content:"two words"', ['content:"two words"'], "two words"),
    ("Content:the", ["content:the"], "the"),
    ("title:word", ["title", "word"], "title:word"),
    ("{title}: word", ["title", "word"], "{title}: word"),
    ("content: the word", ["content", "word"], "content: the word"),
    ("http://x", ["http://x"], "http://x"),
    ("std::vector", ["std::vector"], "std::vector"),
    ("content::x", ["content::x"], "content::x"),
    ("content:auth*", ["content:auth*"], "auth"),
]

EXPRESSIONS = [
    (
        "python OR javascript",
        "(or python javascript)",
        ["python", "javascript"],
        "python javascript",
    ),
    (
        "python AND javascript",
        "(and python javascript)",
        ["python", "javascript"],
        "python javascript",
    ),
    ("python NOT snake", "(not python snake)", ["python"], "python"),
    ("python AND NOT snake", "(not python snake)", ["python"], "python"),
    ("x NOT y", "(not x y)", ["x"], "x"),
    ("x AND y OR z", "(or (and x y) z)", ["x", "y", "z"], "x y z"),
    ("x OR y AND z", "(or x (and y z))", ["x", "y", "z"], "x y z"),
    ("x y OR z", "(or (and x y) z)", ["x", "y", "z"], "x y z"),
    ("x NOT y NOT z", "(not (not x y) z)", ["x"], "x"),
    ("x NOT (y OR z)", "(not x (or y z))", ["x"], "x"),
    (
        "(login OR auth) AND bug",
        "(and (or login auth) bug)",
        ["login", "auth", "bug"],
        "login auth bug",
    ),
    (
        "(login OR auth) bug",
        "(and (or login auth) bug)",
        ["login", "auth", "bug"],
        "login auth bug",
    ),
    ("((((redis)))) OR cache", "(or redis cache)", ["redis", "cache"], "redis cache"),
    (
        "what is python OR javascript",
        "(or python javascript)",
        ["python", "javascript"],
        "what is python javascript",
    ),
    ('"red green" OR blue*', '(or "red green" blue*)', ['"red green"', "blue*"], "red green blue"),
    ("content:red NOT tags:blue", "(not content:red tags:blue)", ["content:red"], "red"),
    (
        "{content summary}: red AND green",
        "(and (or content:red summary:red) green)",
        ["content:red", "summary:red", "green"],
        "red green",
    ),
    (
        "useState OR src/app.py",
        "(or useState src/app.py)",
        ["useState", "src/app.py"],
        "useState src/app.py",
    ),
]

NO_EXPRESSIONS = [
    ("NOT b", ["b"]),
    ("AND OR NOT", ["AND", "OR", "NOT"]),
    ("OR", ["OR"]),
    ("foo AND", ["foo"]),
    ("OR foo", ["foo"]),
    ("foo AND OR bar", ["foo", "bar"]),
    ("foo OR NOT bar", ["foo", "bar"]),
    ("(foo OR bar", ["foo", "bar"]),
    ("foo OR bar)", ["foo", "bar"]),
    ("foo OR ()", ["foo"]),
    ("foo AND 🔥", ["foo"]),
    ("(foo bar) baz", ["foo", "bar", "baz"]),
    ("foo and bar or not baz", ["foo", "bar", "baz"]),
    ("the API does NOT support pages", ["API", "support", "pages"]),
    ("we must NOT delete users", ["delete", "users"]),
    ("NEAR(foo bar, 5)", ["NEAR", "foo", "bar", "5"]),
    ("python -snake", ["python", "snake"]),
    ("redis OR cache AND kind:todo", ["redis", "cache"]),
    ("use -v and --dry-run", ["use", "v", "--dry-run"]),
    ("first - second", ["first", "second"]),
    ('"unbalanced quote', ["unbalanced", "quote"]),
    ("^start col: x", ["start", "col", "x"]),
    ("* : ^ - ( ) { } [ ]", []),
    ("?!…", []),
    ("\x00", []),
    ("nul\x00byte", ["nul", "byte"]),
    ("lone \ud800 surrogate\udfff", ["lone", "surrogate"]),
    ("\u202emirrored\u202c text", ["mirrored", "text"]),
    ("x'; DROP TABLE memories; --", ["x", "DROP", "TABLE", "memories"]),
]


def test_words_phrases_and_well_formed_expressions_are_understood_and_all_else_is_words():
    for raw, words in CONTENT_WORDS:
        query = ask(raw)
        assert (terms(raw), query.expression, query.text) == (words, None, " ".join(raw.split()))
    for raw, found, text in SYNTAX:
        assert (terms(raw), ask(raw).text, ask(raw).expression) == (found, text, None)
    assert ask('"redis"').terms == (Term("redis", phrase=True),)
    many = [f"word{number}" for number in range(TERM_LIMIT + 1)]
    for raw, expression, found, text in EXPRESSIONS:
        query = ask(raw)
        assert (show(query.expression), terms(raw), query.text) == (expression, found, text)
    for raw, words in [*NO_EXPRESSIONS, (" OR ".join(many), many[:TERM_LIMIT])]:
        assert (terms(raw), ask(raw).expression) == (words, None)


IDENTIFIERS = [
    "useState",
    "parseHTTPHeader",
    "MemoryStore",
    "HTTPServer",
    "OpenAI",
    "snake_case_name",
    "__init__",
    "_private",
    "MAX_SIZE",
    "ERR_FOO",
    "E1234",
    "TS2345",
    "CVE-2024-1234",
    "gpt-4",
    "utf-8",
    "os.path.join",
    "config.yaml",
    "package-lock.json",
    "Node.js",
    ".env",
    "src/app/main.py",
    "/usr/local/bin",
    "./run.sh",
    "../lib/x",
    "~/notes",
    "C:\\Users\\me",
    "src/",
    "std::vector",
    "v1.2.3",
    "v2",
    "1.2.3-rc1",
    "a1b2c3d",
    "0x80070005",
    "a1b2c3d4-e5f6-7890-abcd-ef0123456789",
    "bob@example.com",
    "https://example.com/a",
]

IDENTIFIERS_FOUND = [
    ("foo() fails", ("foo()",)),
    ("obj.method() and std::sort()", ("obj.method()", "std::sort()")),
    ("see src/app/main.py:42:7.", ("src/app/main.py",)),
    ("`useState` and useState's bug", ("useState",)),
    ("std::vector<int>", ("std::vector",)),
    ("@pytest.fixture", ("pytest.fixture",)),
    ('"main.py"', ("main.py",)),
    ("[docs](https://a.b/c)", ("https://a.b/c",)),
    ("用useState函数", ("useState",)),
    ("main.py NOT test.py", ("main.py",)),
    ("pass `--dry-run`", ("--dry-run",)),
    ("Redis", ()),
    ("API", ()),
    ("URLs", ()),
    ("PhD", ()),
    ("i.e.", ()),
    ("U.S.", ()),
    ("3.14", ()),
    ("2024-05-01", ()),
    ("defaced", ()),
    ("1234567", ()),
    ("well-known", ()),
    ("and/or", ()),
    ("…", ()),
    ("p.m.", ()),
]

ENTITIES = [
    ("entity:Redis timeouts", ("Redis",), "Redis timeouts", ["Redis", "timeouts"]),
    (
        'entity:"Control Board" noise',
        ("Control Board",),
        "Control Board noise",
        ['"Control Board"', "noise"],
    ),
    ("why @dataclass(frozen)", (), "why @dataclass(frozen)", ["dataclass", "frozen"]),
    ("mail bob@example.com", (), "mail bob@example.com", ["mail", "bob@example.com"]),
    ("Redis and MemoryStore", (), "Redis and MemoryStore", ["Redis", "MemoryStore"]),
]


def test_identifiers_and_entities_are_found_in_what_surrounds_them():
    for name in IDENTIFIERS:
        query = ask(f"why does {name}, fail")
        assert query.identifiers == (name,)
        assert query.terms == (Term(name), Term("fail"))
    for raw, identifiers in IDENTIFIERS_FOUND:
        assert ask(raw).identifiers == identifiers
    for raw, entities, text, words in ENTITIES:
        query = ask(raw)
        assert (query.entities, query.text, terms(raw)) == (entities, text, words)


OPEN = (
    "open questions|unanswered questions about auth|what’s still unresolved|what remains unanswered"
)


KIND_CUES = [
    ("decisions about caching", ("decision",)),
    ("what did we decide about caching?", ("decision",)),
    ("what have we finally decided", ("decision",)),
    ("what was decided on Monday", ("decision",)),
    ("what was the decision on caching", ("decision",)),
    ("which decision did we make yesterday", ("decision",)),
    ("list all decisions", ("decision",)),
    ("show me recent decisions on auth", ("decision",)),
    ("problems with docker", ("problem",)),
    ("known issues", ("problem",)),
    ("gotchas", ("gotcha",)),
    ("any gotchas with sqlite?", ("gotcha",)),
    ("todos", ("todo",)),
    ("what to do about the carts", ()),
    ("my preferences", ("preference",)),
    ("coding preferences", ("preference",)),
    ("what does the user prefer", ("preference",)),
    ("how did we fix the login bug", ("solution",)),
    ("how was the PostgreSQL crash solved?", ("solution",)),
    ("workaround for the timeout", ("solution",)),
    ("the last handoff", ("handoff",)),
    ("problems with and solutions for docker", ("problem", "solution")),
    ("kind:decision database", ("decision",)),
    ("kind:decisions,todo database", ("decision", "todo")),
    ("kind:self", ("preference",)),
    ("KIND:Gotcha x", ("gotcha",)),
    ("kind:todo decisions about caching", ("todo",)),
    ("kind:decision AND redis", ("decision",)),
    ("todos table schema", ()),
    ("user preferences page", ()),
    ("I have problems with docker", ()),
    ("I have a question about auth", ()),
    ("decision tree classifier", ()),
    ("How long did I wait for the decision on my application?", ()),
    ("what made them discuss potential solutions for their town", ()),
    ("implement the todo list component", ()),
    ("is the port open", ()),
    ("what is open source", ()),
    ("how does the fix work", ()),
    ('"decisions about caching"', ()),
    ("kind:nonsense x", ()),
    ("python NOT gotchas", ()),
]


def test_a_clear_cue_names_the_kinds_and_open_questions_have_no_answer():
    for raw, kinds in KIND_CUES:
        query = ask(raw)
        assert query.kinds == kinds and set(kinds) <= set(KINDS)
        assert query.answered is None
    for raw in OPEN.split("|"):
        assert (ask(raw).kinds, ask(raw).answered) == (("question",), False)
    # A kind alone is still something to search for.
    query = ask("kind:decision")
    assert (query.kinds, query.text, query.expression) == (("decision",), "decision", None)
    assert query.terms == (Term("decision"),)


OPEN_ITEMS = ("todo", "question", "problem")


@pytest.mark.parametrize(
    ("raw", "kinds"),
    [
        pytest.param("open todos for the parser", ("todo",), id="to-dos about something"),
        pytest.param("open tasks?", ("todo",), id="tasks"),
        pytest.param("any open problems?", ("problem",), id="problems"),
        pytest.param("what is left to do", OPEN_ITEMS, id="left to do"),
        pytest.param("What's left?", OPEN_ITEMS, id="left"),
        pytest.param("is anything left to do?", OPEN_ITEMS, id="anything left"),
        pytest.param("what is still to do?", OPEN_ITEMS, id="still to do"),
        pytest.param("what is still open?", OPEN_ITEMS, id="still open"),
        pytest.param("what remains open?", OPEN_ITEMS, id="remains open"),
        pytest.param("list all open items", OPEN_ITEMS, id="open items"),
    ],
)
def test_a_question_for_what_is_open_means_items_that_nothing_closed(raw, kinds):
    assert (ask(raw).kinds, ask(raw).answered) == (kinds, False)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("what is left of the old API", id="left of something"),
        pytest.param("what is open source", id="open source"),
        pytest.param("is the port open", id="an open port"),
    ],
)
def test_a_question_with_the_word_left_or_open_may_be_about_anything(raw):
    assert ask(raw).answered is None


@pytest.mark.parametrize(
    ("raw", "since", "until"),
    [
        pytest.param(
            "what did we decide last week",
            "2026-11-02",
            "2026-11-09",
            id="what-did-decide-last-week",
        ),
        pytest.param("decisions since March", "2026-03-01", None, id="decisions-since-march"),
        pytest.param("notes on 2024-05-01", "2024-05-01", "2024-05-02", id="notes-2024-05-01"),
        pytest.param(
            "When did Caroline go to the support group?",
            None,
            None,
            id="when-did-caroline-go-support-group",
        ),
        pytest.param("it may fail", None, None, id="may-fail"),
        pytest.param('find "last week" in the logs', None, None, id="find-last-week-logs"),
        pytest.param("content:yesterday", None, None, id="content-yesterday"),
        pytest.param("cache NOT yesterday", None, None, id="cache-NOT-yesterday"),
        pytest.param("read src/last/2024-05-01.log", None, None, id="read-src/last/2024-05-01.log"),
    ],
)
def test_temporal_words_set_the_range_unless_they_are_quoted_or_excluded(raw, since, until):
    found = ask(raw).since, ask(raw).until
    assert [value and value.date().isoformat() for value in found] == [since, until]


def test_a_long_text_is_analysed_at_its_start_and_embedded_further_within_bounds():
    raw = "start " + "filler " * 2_000 + "end"
    query = ask(raw)
    assert query.raw == raw
    assert SYNTAX_LIMIT < len(query.text) <= TEXT_LIMIT
    assert terms(raw) == ["start", "filler"]
    query = ask("x" * (SYNTAX_LIMIT - 5) + " longer-word")
    assert query.terms == (Term("x" * (SYNTAX_LIMIT - 5)),)
    assert query.text.endswith(" longer-word")
    for unit in ("a ", '"', "kind:", "last week ", "文"):
        assert len(ask(unit * (1_000_000 // len(unit))).text) <= TEXT_LIMIT


SYNTAX_PIECES = st.sampled_from(
    [
        *'AND OR NOT ( ) " “ - * : ^ @ NEAR( a the foo foo* -foo src/a.py'.split(),
        *"content: {summary}: kind: entity: 文字 \x00 \ud800 🔥 \n".split(" "),
        *("last week", "since March", "in 2024", "open questions"),
    ]
)
QUESTIONS = (
    st.text(max_size=300)
    | st.lists(SYNTAX_PIECES | st.text(max_size=4), max_size=30).map(" ".join)
    | st.lists(SYNTAX_PIECES, max_size=30).map("".join)
)


@settings(max_examples=120, deadline=None)
@example("(" * 1_999 + "a")
@example("a OR " * 400 + "a")
@example("-a" * 1_000)
@given(QUESTIONS)
def test_every_string_is_a_question(raw):
    query = ask(raw)
    assert query == ask(raw)
    assert query.raw == raw
    folded = {term._replace(text=term.text.casefold()) for term in query.terms}
    assert len(folded) == len(query.terms) <= TERM_LIMIT
    columns = (None, "content", "summary", "section", "tags")
    assert all(term.text and term.column in columns for term in query.terms)
    assert set(query.kinds) <= set(KINDS)
    assert not (query.since and query.until) or query.since < query.until
    # What is stored and sent to a model must be encodable.
    texts = [query.text, *(term.text for term in query.terms), *query.entities]
    for text in (*texts, *query.identifiers):
        assert "\x00" not in text.encode().decode()
    assert (show(query.expression) is None) == (query.expression is None)
