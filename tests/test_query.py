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


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("   ", [], id="blank"),
        pytest.param("redis", ["redis"], id="redis"),
        pytest.param("how does the cache work?", ["cache", "work"], id="how-cache-work"),
        pytest.param(
            "What did Caroline say about it?", ["Caroline", "say"], id="what-did-caroline-say-about"
        ),
        pytest.param("Redis redis REDIS cache", ["Redis", "cache"], id="redis-redis-REDIS-cache"),
        pytest.param("what is it", ["what", "is", "it"], id="what"),
        pytest.param("to be or not to be", ["to", "be", "or", "not"], id="not"),
        pytest.param(
            "don't use Caroline’s cache",
            ["use", "Caroline", "cache"],
            id="don-t-use-carolines-cache",
        ),
        pytest.param("O'Brien", ["O'Brien"], id="O-brien"),
        pytest.param("HOW DO WE DEPLOY IT", ["DEPLOY"], id="HOW-deploy"),
        pytest.param("full-text search", ["full", "text", "search"], id="full-text-search"),
        pytest.param("e-mail end-to-end", ["e-mail", "end-to-end"], id="e-mail-end-end"),
        pytest.param("and/or client/server", ["client", "server"], id="and/or-client/server"),
        pytest.param("I/O 24/7", ["I/O", "24/7"], id="I/O-24/7"),
        pytest.param("C++ and C#", ["C++", "C#"], id="C-C"),
        pytest.param("one,two;three", ["one", "two", "three"], id="one-two-three"),
        pytest.param("foo:bar", ["foo", "bar"], id="foo-bar"),
        pytest.param("e.g. pi 3.14 at 10:30", ["pi", "3.14", "10:30"], id="e.g-pi-3.14-10-30"),
        pytest.param("fix bug #123", ["fix", "bug", "123"], id="fix-bug-123"),
        pytest.param("+required word", ["required", "word"], id="required-word"),
        pytest.param("使用Redis缓存", ["使用", "Redis", "缓存"], id="redis-cjk"),
        pytest.param(
            "データベース設計。テスト",
            ["デー", "ータ", "タベ", "ベー", "ース", "ス設", "設計", "テス", "スト"],
            id="katakana",
        ),
        pytest.param("한국어 검색", ["한국", "국어", "검색"], id="hangul"),
        pytest.param("مرحبا بالعالم؟", ["مرحبا", "بالعالم"], id="arabic"),
        pytest.param("שלום עולם", ["שלום", "עולם"], id="hebrew"),
        pytest.param("हिन्दी भाषा।", ["हिन्दी", "भाषा"], id="devanagari"),
        pytest.param("fire 🔥 emoji👩\u200d💻", ["fire", "emoji"], id="fire-emoji"),
        pytest.param("naïve café", ["naïve", "café"], id="naive-cafe"),
    ],
)
def test_content_words_are_extracted(raw, words):
    query = ask(raw)
    assert (terms(raw), query.expression, query.text) == (words, None, " ".join(raw.split()))


@pytest.mark.parametrize(
    ("raw", "found", "text"),
    [
        pytest.param('"exact phrase"', ['"exact phrase"'], "exact phrase", id="exact-phrase"),
        pytest.param(
            'find "to be" now', ["find", '"to be"', "now"], "find to be now", id="find-now"
        ),
        pytest.param(
            "“curly quotes” too", ['"curly quotes"'], "curly quotes too", id="curly-quotes-too"
        ),
        pytest.param('say ""', ["say"], "say", id="say"),
        pytest.param('"foo ba"* x', ['"foo ba"', "x"], "foo ba x", id="foo-ba-x"),
        pytest.param("program*", ["program*"], "program", id="program"),
        pytest.param("auth* tokens", ["auth*", "tokens"], "auth tokens", id="auth-tokens"),
        pytest.param(
            "**bold** *emphasis* f*",
            ["bold", "emphasis", "f"],
            "**bold** *emphasis* f*",
            id="bold-emphasis-f",
        ),
        pytest.param(
            "content:typescript", ["content:typescript"], "typescript", id="content-typescript"
        ),
        pytest.param(
            "{content}: typescript", ["content:typescript"], "typescript", id="content-typescript-2"
        ),
        pytest.param(
            "{summary} : typescript", ["summary:typescript"], "typescript", id="summary-typescript"
        ),
        pytest.param(
            "{content summary}: word",
            ["content:word", "summary:word"],
            "word",
            id="content-summary-word",
        ),
        pytest.param(
            "summary:auth tags:security section:API",
            ["summary:auth", "tags:security", "section:API"],
            "auth security API",
            id="summary-auth-tags-security-section-API",
        ),
        pytest.param(
            'content:"two words"', ['content:"two words"'], "two words", id="content-two-words"
        ),
        pytest.param("Content:the", ["content:the"], "the", id="content"),
        pytest.param("title:word", ["title", "word"], "title:word", id="title-word"),
        pytest.param("{title}: word", ["title", "word"], "{title}: word", id="title-word-2"),
        pytest.param(
            "content: the word", ["content", "word"], "content: the word", id="content-word"
        ),
        pytest.param("http://x", ["http://x"], "http://x", id="http-x"),
        pytest.param("std::vector", ["std::vector"], "std::vector", id="std-vector"),
        pytest.param("content::x", ["content::x"], "content::x", id="content-x"),
        pytest.param("content:auth*", ["content:auth*"], "auth", id="content-auth"),
    ],
)
def test_query_syntax_is_understood(raw, found, text):
    assert (terms(raw), ask(raw).text, ask(raw).expression) == (found, text, None)


def test_a_quoted_word_is_a_phrase():
    assert ask('"redis"').terms == (Term("redis", phrase=True),)


@pytest.mark.parametrize(
    ("raw", "expression", "found", "text"),
    [
        pytest.param(
            "python OR javascript",
            "(or python javascript)",
            ["python", "javascript"],
            "python javascript",
            id="python-OR-javascript",
        ),
        pytest.param(
            "python AND javascript",
            "(and python javascript)",
            ["python", "javascript"],
            "python javascript",
            id="python-AND-javascript",
        ),
        pytest.param(
            "python NOT snake", "(not python snake)", ["python"], "python", id="python-NOT-snake"
        ),
        pytest.param(
            "python AND NOT snake",
            "(not python snake)",
            ["python"],
            "python",
            id="python-AND-NOT-snake",
        ),
        pytest.param("x NOT y", "(not x y)", ["x"], "x", id="x-NOT-y"),
        pytest.param(
            "x AND y OR z", "(or (and x y) z)", ["x", "y", "z"], "x y z", id="x-AND-y-OR-z"
        ),
        pytest.param(
            "x OR y AND z", "(or x (and y z))", ["x", "y", "z"], "x y z", id="x-OR-y-AND-z"
        ),
        pytest.param("x y OR z", "(or (and x y) z)", ["x", "y", "z"], "x y z", id="x-y-OR-z"),
        pytest.param("x NOT y NOT z", "(not (not x y) z)", ["x"], "x", id="x-NOT-y-NOT-z"),
        pytest.param("x NOT (y OR z)", "(not x (or y z))", ["x"], "x", id="x-NOT-y-z"),
        pytest.param(
            "(login OR auth) AND bug",
            "(and (or login auth) bug)",
            ["login", "auth", "bug"],
            "login auth bug",
            id="login-OR-auth-AND-bug",
        ),
        pytest.param(
            "(login OR auth) bug",
            "(and (or login auth) bug)",
            ["login", "auth", "bug"],
            "login auth bug",
            id="login-OR-auth-bug",
        ),
        pytest.param(
            "((((redis)))) OR cache",
            "(or redis cache)",
            ["redis", "cache"],
            "redis cache",
            id="redis-cache",
        ),
        pytest.param(
            "what is python OR javascript",
            "(or python javascript)",
            ["python", "javascript"],
            "what is python javascript",
            id="what-python-javascript",
        ),
        pytest.param(
            '"red green" OR blue*',
            '(or "red green" blue*)',
            ['"red green"', "blue*"],
            "red green blue",
            id="red-green-blue",
        ),
        pytest.param(
            "content:red NOT tags:blue",
            "(not content:red tags:blue)",
            ["content:red"],
            "red",
            id="content-red-NOT-tags-blue",
        ),
        pytest.param(
            "{content summary}: red AND green",
            "(and (or content:red summary:red) green)",
            ["content:red", "summary:red", "green"],
            "red green",
            id="content-summary-red-green",
        ),
        pytest.param(
            "useState OR src/app.py",
            "(or useState src/app.py)",
            ["useState", "src/app.py"],
            "useState src/app.py",
            id="usestate-src/app.py",
        ),
    ],
)
def test_a_well_formed_expression_is_understood(raw, expression, found, text):
    query = ask(raw)
    assert (show(query.expression), terms(raw), query.text) == (expression, found, text)


MANY = [f"word{number}" for number in range(TERM_LIMIT + 1)]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        pytest.param("NOT b", ["b"], id="NOT-b"),
        pytest.param("AND OR NOT", ["AND", "OR", "NOT"], id="NOT"),
        pytest.param("OR", ["OR"], id="OR"),
        pytest.param("foo AND", ["foo"], id="foo-AND"),
        pytest.param("OR foo", ["foo"], id="OR-foo"),
        pytest.param("foo AND OR bar", ["foo", "bar"], id="foo-AND-OR-bar"),
        pytest.param("foo OR NOT bar", ["foo", "bar"], id="foo-NOT-bar"),
        pytest.param("(foo OR bar", ["foo", "bar"], id="foo-OR-bar"),
        pytest.param("foo OR bar)", ["foo", "bar"], id="foo-OR-bar-2"),
        pytest.param("foo OR ()", ["foo"], id="foo-OR"),
        pytest.param("foo AND 🔥", ["foo"], id="foo-AND-2"),
        pytest.param("(foo bar) baz", ["foo", "bar", "baz"], id="foo-bar-baz"),
        pytest.param("foo and bar or not baz", ["foo", "bar", "baz"], id="foo-bar-not-baz"),
        pytest.param(
            "the API does NOT support pages",
            ["API", "support", "pages"],
            id="API-NOT-support-pages",
        ),
        pytest.param("we must NOT delete users", ["delete", "users"], id="must-NOT-delete-users"),
        pytest.param("NEAR(foo bar, 5)", ["NEAR", "foo", "bar", "5"], id="NEAR-foo-bar-5"),
        pytest.param("python -snake", ["python", "snake"], id="python-snake"),
        pytest.param(
            "redis OR cache AND kind:todo", ["redis", "cache"], id="redis-cache-kind-todo"
        ),
        pytest.param("use -v and --dry-run", ["use", "v", "--dry-run"], id="use-v-dry-run"),
        pytest.param("first - second", ["first", "second"], id="first-second"),
        pytest.param('"unbalanced quote', ["unbalanced", "quote"], id="unbalanced-quote"),
        pytest.param("^start col: x", ["start", "col", "x"], id="start-col-x"),
        pytest.param("* : ^ - ( ) { } [ ]", [], id="asterisk"),
        pytest.param("?!…", [], id="question-mark"),
        pytest.param("\x00", [], id="u0000"),
        pytest.param("nul\x00byte", ["nul", "byte"], id="nul-byte"),
        pytest.param("lone \ud800 surrogate\udfff", ["lone", "surrogate"], id="lone-surrogate"),
        pytest.param("\u202emirrored\u202c text", ["mirrored", "text"], id="mirrored-text"),
        pytest.param(
            "x'; DROP TABLE memories; --",
            ["x", "DROP", "TABLE", "memories"],
            id="x-DROP-TABLE-memories",
        ),
        pytest.param(" OR ".join(MANY), MANY[:TERM_LIMIT], id="OR-join"),
    ],
)
def test_an_ill_formed_expression_is_plain_words(raw, words):
    assert (terms(raw), ask(raw).expression) == (words, None)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("useState", id="usestate"),
        pytest.param("parseHTTPHeader", id="parsehttpheader"),
        pytest.param("MemoryStore", id="memorystore"),
        pytest.param("HTTPServer", id="httpserver"),
        pytest.param("OpenAI", id="openai"),
        pytest.param("snake_case_name", id="snake_case_name"),
        pytest.param("__init__", id="init"),
        pytest.param("_private", id="private"),
        pytest.param("MAX_SIZE", id="max_size"),
        pytest.param("ERR_FOO", id="err_foo"),
        pytest.param("E1234", id="E1234"),
        pytest.param("TS2345", id="ts2345"),
        pytest.param("CVE-2024-1234", id="CVE-2024-1234"),
        pytest.param("gpt-4", id="gpt-4"),
        pytest.param("utf-8", id="utf-8"),
        pytest.param("os.path.join", id="os.path.join"),
        pytest.param("config.yaml", id="config.yaml"),
        pytest.param("package-lock.json", id="package-lock.json"),
        pytest.param("Node.js", id="node.js"),
        pytest.param(".env", id="env"),
        pytest.param("src/app/main.py", id="src/app/main.py"),
        pytest.param("/usr/local/bin", id="usr/local/bin"),
        pytest.param("./run.sh", id="run.sh"),
        pytest.param("../lib/x", id="lib/x"),
        pytest.param("~/notes", id="notes"),
        pytest.param("C:\\Users\\me", id="C-users-me"),
        pytest.param("src/", id="src"),
        pytest.param("std::vector", id="std-vector"),
        pytest.param("v1.2.3", id="v1.2.3"),
        pytest.param("v2", id="v2"),
        pytest.param("1.2.3-rc1", id="1.2.3-rc1"),
        pytest.param("a1b2c3d", id="a1b2c3d"),
        pytest.param("0x80070005", id="0x80070005"),
        pytest.param(
            "a1b2c3d4-e5f6-7890-abcd-ef0123456789", id="a1b2c3d4-e5f6-7890-abcd-ef0123456789"
        ),
        pytest.param("bob@example.com", id="bob-example.com"),
        pytest.param("https://example.com/a", id="https-example.com/a"),
    ],
)
def test_an_identifier_is_recognised_in_a_sentence(name):
    query = ask(f"why does {name}, fail")
    assert query.identifiers == (name,)
    assert query.terms == (Term(name), Term("fail"))


@pytest.mark.parametrize(
    ("raw", "identifiers"),
    [
        pytest.param("foo() fails", ("foo()",), id="foo-fails"),
        pytest.param(
            "obj.method() and std::sort()",
            ("obj.method()", "std::sort()"),
            id="obj.method-std-sort",
        ),
        pytest.param(
            "see src/app/main.py:42:7.", ("src/app/main.py",), id="see-src/app/main.py-42-7"
        ),
        pytest.param("`useState` and useState's bug", ("useState",), id="usestate-usestate-s-bug"),
        pytest.param("std::vector<int>", ("std::vector",), id="std-vector-int"),
        pytest.param("@pytest.fixture", ("pytest.fixture",), id="pytest.fixture"),
        pytest.param('"main.py"', ("main.py",), id="main.py"),
        pytest.param("[docs](https://a.b/c)", ("https://a.b/c",), id="docs-https-a.b/c"),
        pytest.param("用useState函数", ("useState",), id="usestate"),
        pytest.param("main.py NOT test.py", ("main.py",), id="main.py-NOT-test.py"),
        pytest.param("pass `--dry-run`", ("--dry-run",), id="pass-dry-run"),
        pytest.param("Redis", (), id="redis"),
        pytest.param("API", (), id="API"),
        pytest.param("URLs", (), id="urls"),
        pytest.param("PhD", (), id="phd"),
        pytest.param("i.e.", (), id="i.e"),
        pytest.param("U.S.", (), id="U.S"),
        pytest.param("3.14", (), id="3.14"),
        pytest.param("2024-05-01", (), id="2024-05-01"),
        pytest.param("defaced", (), id="defaced"),
        pytest.param("1234567", (), id="1234567"),
        pytest.param("well-known", (), id="well-known"),
        pytest.param("and/or", (), id="and/or"),
        pytest.param("…", (), id="horizontal-ellipsis"),
        pytest.param("p.m.", (), id="p.m"),
    ],
)
def test_identifiers_are_found_in_a_question(raw, identifiers):
    assert ask(raw).identifiers == identifiers


@pytest.mark.parametrize(
    ("raw", "entities", "text", "words"),
    [
        pytest.param(
            "entity:Redis timeouts",
            ("Redis",),
            "Redis timeouts",
            ["Redis", "timeouts"],
            id="entity-redis-timeouts",
        ),
        pytest.param(
            'entity:"Control Board" noise',
            ("Control Board",),
            "Control Board noise",
            ['"Control Board"', "noise"],
            id="entity-control-board-noise",
        ),
        pytest.param(
            "why @dataclass(frozen)",
            (),
            "why @dataclass(frozen)",
            ["dataclass", "frozen"],
            id="why-dataclass-frozen",
        ),
        pytest.param(
            "mail bob@example.com",
            (),
            "mail bob@example.com",
            ["mail", "bob@example.com"],
            id="mail-bob-example.com",
        ),
        pytest.param(
            "Redis and MemoryStore",
            (),
            "Redis and MemoryStore",
            ["Redis", "MemoryStore"],
            id="redis-memorystore",
        ),
    ],
)
def test_entities_are_found_in_a_question(raw, entities, text, words):
    query = ask(raw)
    assert (query.entities, query.text, terms(raw)) == (entities, text, words)


@pytest.mark.parametrize(
    ("raw", "kinds"),
    [
        pytest.param("decisions about caching", ("decision",), id="decisions-about-caching"),
        pytest.param(
            "what did we decide about caching?", ("decision",), id="what-did-decide-about-caching"
        ),
        pytest.param("what have we finally decided", ("decision",), id="what-finally-decided"),
        pytest.param("what was decided on Monday", ("decision",), id="what-decided-monday"),
        pytest.param("what was the decision on caching", ("decision",), id="what-decision-caching"),
        pytest.param(
            "which decision did we make yesterday",
            ("decision",),
            id="which-decision-did-make-yesterday",
        ),
        pytest.param("list all decisions", ("decision",), id="list-all-decisions"),
        pytest.param(
            "show me recent decisions on auth", ("decision",), id="show-me-recent-decisions-auth"
        ),
        pytest.param("problems with docker", ("problem",), id="problems-with-docker"),
        pytest.param("known issues", ("problem",), id="known-issues"),
        pytest.param("gotchas", ("gotcha",), id="gotchas"),
        pytest.param("any gotchas with sqlite?", ("gotcha",), id="any-gotchas-sqlite"),
        pytest.param("todos", ("todo",), id="todos"),
        pytest.param("what to do about the carts", (), id="what-about-carts"),
        pytest.param("my preferences", ("preference",), id="my-preferences"),
        pytest.param("coding preferences", ("preference",), id="coding-preferences"),
        pytest.param("what does the user prefer", ("preference",), id="what-user-prefer"),
        pytest.param("how did we fix the login bug", ("solution",), id="how-did-fix-login-bug"),
        pytest.param(
            "how was the PostgreSQL crash solved?", ("solution",), id="how-postgresql-crash-solved"
        ),
        pytest.param("workaround for the timeout", ("solution",), id="workaround-timeout"),
        pytest.param("the last handoff", ("handoff",), id="last-handoff"),
        pytest.param(
            "problems with and solutions for docker",
            ("problem", "solution"),
            id="problems-solutions-docker",
        ),
        pytest.param("kind:decision database", ("decision",), id="kind-decision-database"),
        pytest.param(
            "kind:decisions,todo database", ("decision", "todo"), id="kind-decisions-todo-database"
        ),
        pytest.param("kind:self", ("preference",), id="kind-self"),
        pytest.param("KIND:Gotcha x", ("gotcha",), id="KIND-gotcha-x"),
        pytest.param(
            "kind:todo decisions about caching", ("todo",), id="kind-todo-decisions-about-caching"
        ),
        pytest.param("kind:decision AND redis", ("decision",), id="kind-decision-redis"),
        pytest.param("todos table schema", (), id="todos-table-schema"),
        pytest.param("user preferences page", (), id="user-preferences-page"),
        pytest.param("I have problems with docker", (), id="I-have-problems-with-docker"),
        pytest.param("I have a question about auth", (), id="question-about-auth"),
        pytest.param("decision tree classifier", (), id="decision-tree-classifier"),
        pytest.param(
            "How long did I wait for the decision on my application?",
            (),
            id="how-long-did-wait-decision-my",
        ),
        pytest.param(
            "what made them discuss potential solutions for their town",
            (),
            id="what-made-them-discuss-potential",
        ),
        pytest.param("implement the todo list component", (), id="implement-todo-list-component"),
        pytest.param("is the port open", (), id="port-open"),
        pytest.param("what is open source", (), id="what-open-source"),
        pytest.param("how does the fix work", (), id="how-fix-work"),
        pytest.param('"decisions about caching"', (), id="decisions-about-caching-2"),
        pytest.param("kind:nonsense x", (), id="kind-nonsense-x"),
        pytest.param("python NOT gotchas", (), id="python-NOT-gotchas"),
    ],
)
def test_a_clear_cue_names_the_kinds(raw, kinds):
    query = ask(raw)
    assert query.kinds == kinds and set(kinds) <= set(KINDS)
    assert query.answered is None


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("open questions", id="open-questions"),
        pytest.param("unanswered questions about auth", id="unanswered-questions-about-auth"),
        pytest.param("what’s still unresolved", id="whats-still-unresolved"),
        pytest.param("what remains unanswered", id="what-remains-unanswered"),
    ],
)
def test_open_questions_are_unanswered_ones(raw):
    assert (ask(raw).kinds, ask(raw).answered) == (("question",), False)


def test_a_kind_alone_is_searched_for_as_a_word():
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


def test_a_long_text_is_analysed_at_its_start():
    raw = "start " + "filler " * 2_000 + "end"
    query = ask(raw)
    assert query.raw == raw
    assert SYNTAX_LIMIT < len(query.text) <= TEXT_LIMIT
    assert terms(raw) == ["start", "filler"]


def test_a_word_across_the_syntax_limit_is_only_embedded():
    query = ask("x" * (SYNTAX_LIMIT - 5) + " longer-word")
    assert query.terms == (Term("x" * (SYNTAX_LIMIT - 5)),)
    assert query.text.endswith(" longer-word")


@pytest.mark.parametrize(
    "unit",
    [
        pytest.param("a ", id="a"),
        pytest.param('"', id="quotation-mark"),
        pytest.param("kind:", id="kind"),
        pytest.param("last week ", id="last-week"),
        pytest.param("文", id="cjk"),
    ],
)
def test_an_endless_text_is_cut(unit):
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
    assert [text for text in (*texts, *query.identifiers) if "\x00" in text.encode().decode()] == []
    assert (show(query.expression) is None) == (query.expression is None)
