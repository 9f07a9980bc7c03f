"""What the outline of a source file holds: one fixture per language, then what no fixture should have to hold."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.errors import InvalidInput
from bethink.ingest import symbols
from bethink.ingest.comments import comment, docstring, summary
from bethink.ingest.symbols import LANGUAGES, Outline, language_of, outline, read

CODE = Path(__file__).parent / "fixtures" / "code"

# Per fixture: first line, kind, qualified name of what it stands in (- for nothing), name.
EXPECTED = {
    "Account.cs": """
        4 namespace - Shop.Accounts
        10 class Shop.Accounts Account
        13 constant Shop.Accounts.Account MaxUsers
        14 field Shop.Accounts.Account _name
        17 property Shop.Accounts.Account Balance
        19 property Shop.Accounts.Account IsOpen
        21 field Shop.Accounts.Account Closed
        23 method Shop.Accounts.Account Account
        27 method Shop.Accounts.Account TransferAsync
        33 method Shop.Accounts.Account Dispose
        35 enum Shop.Accounts.Account State
        35 field Shop.Accounts.Account.State Open
        35 field Shop.Accounts.Account.State Closed
        38 record Shop.Accounts Customer
        40 record Shop.Accounts Money
        42 interface Shop.Accounts IRate
        44 property Shop.Accounts.IRate Rate
        45 method Shop.Accounts.IRate Apply
        48 delegate Shop.Accounts Changed
        50 class Shop.Accounts Extensions
        52 method Shop.Accounts.Extensions Shout
    """,
    "Cart.php": r"""
        8 namespace - Shop\Cart
        12 constant Shop\Cart MAX_ITEMS
        13 constant Shop\Cart SHOP_DEBUG
        18 interface Shop\Cart Priced
        20 method Shop\Cart\Priced price
        23 trait Shop\Cart Logs
        25 method Shop\Cart\Logs log
        28 enum Shop\Cart Status
        30 field Shop\Cart\Status Open
        31 field Shop\Cart\Status Paid
        33 method Shop\Cart\Status label
        41 class Shop\Cart Cart
        46 constant Shop\Cart\Cart LIMIT
        47 field Shop\Cart\Cart items
        49 method Shop\Cart\Cart __construct
        56 method Shop\Cart\Cart add
        62 method Shop\Cart\Cart make
        66 function Shop\Cart money
    """,
    "Order.java": """
        16 class - Order
        20 constant Order MAX_LINES
        21 field Order lines
        24 method Order Order
        34 method Order total
        42 enum Order State
        43 field Order.State OPEN
        45 field Order.State PAID
        47 method Order.State isFinal
        50 record Order Line
        51 method Order.Line Line
        56 interface Order Visitor
        57 method Order.Visitor visit
        61 annotation - Audited
        62 field Audited value
    """,
    "cache.go": """
        13 variable - ErrMissing
        18 constant - MaxEntries
        20 constant - MinTTL
        26 struct - Cache
        27 field Cache entries
        28 field Cache TTL
        33 interface - Store
        35 method Store Fetch
        38 type - Key
        39 type - Loader
        43 method Cache Get
        49 method Cache size
        52 function - New
    """,
    "mailer.rb": """
        7 module - Shop
        9 constant Shop MAX_WAIT
        12 class Shop Mailer
        15 property Shop::Mailer host
        15 property Shop::Mailer port
        16 property Shop::Mailer sender
        19 method Shop::Mailer initialize
        23 method Shop::Mailer default
        28 method Shop::Mailer build
        31 method Shop::Mailer deliver!
        37 method Shop::Mailer quiet?
        40 class Shop Message
        41 method Shop::Message empty?
        47 class - Shop::Queue
        48 method Shop::Queue <=>
        51 function - top_level
        54 task - flush
    """,
    "matrix.cpp": """
        5 namespace - shop::math
        7 constant shop::math LIMIT
        10 class shop::math Matrix
        13 type shop::math::Matrix Row
        16 method shop::math::Matrix Matrix
        17 method shop::math::Matrix ~Matrix
        20 method shop::math::Matrix operator*
        21 method shop::math::Matrix identity
        23 method shop::math::Matrix as
        26 enum shop::math::Matrix Order
        26 field shop::math::Matrix::Order rows
        26 field shop::math::Matrix::Order columns
        29 field shop::math::Matrix columns_
        34 method shop::math::Matrix identity
        40 struct shop::math Point
        40 field shop::math::Point x
        40 field shop::math::Point y
        44 function shop::math reset
        47 concept shop::math Number
        52 method Solver::Inner solve
        54 macro - SHOP_CHECK
        57 function - main
    """,
    "panel.tsx": """
        3 type - Props
        6 function - Panel
        10 function Panel handleClose
        15 function Panel label
        22 function - Row
        26 class - Board
        27 field Board state
        29 method Board render
    """,
    "queue.rs": """
        9 constant - CAPACITY
        10 constant - STARTED
        12 type - Job
        15 struct - Queue
        18 field Queue items
        19 field Queue closed
        22 struct - Ticket
        25 enum - Refusal
        26 field Refusal Full
        27 field Refusal Closed
        30 trait - Runner
        31 type Runner Output
        32 constant Runner NAME
        35 method Runner run
        37 method Runner name
        44 method Queue push
        56 method Queue fmt
        62 macro - queue
        67 module - drain
        69 function drain all
        73 function - c_notify
        76 function - worker
    """,
    "retry.py": """
        18 constant - MAX_ATTEMPTS
        19 constant - _DELAYS
        23 type - Check
        27 class - RetryPolicy
        33 field RetryPolicy attempts
        34 field RetryPolicy base
        36 method RetryPolicy longest
        41 method RetryPolicy delay
        47 class RetryPolicy Error
        51 function - retry
        67 function - fallback
        74 function - slow
    """,
    "ring.c": """
        9 constant - ring_version
        10 constant - NAMES
        13 function - ring_put
        20 function - helper
        25 function - ring_factory
    """,
    "ring.h": """
        7 macro - RING_MAX
        9 macro - RING_MIN
        16 struct - ring
        17 field ring bytes
        18 field ring head
        18 field ring tail
        21 type - ring_t
        22 type - ring_visit
        23 struct - ring_error
        24 field ring_error code
        27 enum - ring_mode
        27 field ring_mode RING_BLOCKING
        27 field ring_mode RING_DROPPING
        29 union - ring_word
        29 field ring_word number
        29 field ring_word letters
        35 function - ring_put
        37 constant - ring_version
    """,
    "server.js": """
        7 constant - PORT
        15 function - createServer
        16 function createServer listen
        19 function createServer close
        23 function - add
        25 class - Router
        26 field Router defaultName
        27 field Router #routes
        28 method Router onError
        31 method Router match
        35 method Router entries
        39 function - health
        43 method Router reset
        50 function - shutdown
        53 function - restart
        57 function - hidden
        58 constant - Shop
        61 constant - api
        63 method api list
        64 method api remove
    """,
    "store.ts": """
        9 constant - MAX_HISTORY
        10 constant - defaults
        13 type - Listener
        16 interface - Options
        18 field Options depth
        19 field Options eager
        20 method Options onChange
        23 enum - Mode
        24 field Mode Fast
        25 field Mode Safe
        28 namespace - Tools
        29 function Tools clamp
        39 class - Store
        41 constant Store LIMIT
        42 field Store listeners
        43 field Store #secret
        45 method Store constructor
        50 method Store current
        55 method Store notify
        62 method Store handle
        66 method Store close
        70 function - load
        74 function - debounce
        80 function - overload
        84 namespace - express
        85 interface express Request
        86 field express.Request user
        90 function - ambient
    """,
}

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

# Fixture, name, and what is said about it.
DOCS = [
    ("Account.cs", "Account", "An account of a Customer."),
    ("Account.cs", "TransferAsync", "Moves money."),
    ("Cart.php", "Cart", "Holds items until they are paid."),
    ("Cart.php", "add", "Adds one item."),
    ("Order.java", "Order", "An order and its lines."),
    ("Order.java", "total", "Adds up all lines."),
    ("Order.java", "PAID", "Money has arrived."),
    ("cache.go", "Cache", "Cache is safe for concurrent use."),
    ("cache.go", "MinTTL", "shorter makes no sense"),
    ("cache.go", "MaxEntries", "MaxEntries is how many entries one cache holds."),
    ("mailer.rb", "MAX_WAIT", "How long a mail may wait."),
    ("mailer.rb", "initialize", "Opens the connection."),
    ("matrix.cpp", "Matrix", "A dense matrix."),
    ("matrix.cpp", "operator*", "Multiplies by a number."),
    ("matrix.cpp", "solve", ""),
    ("panel.tsx", "handleClose", "Closes only once."),
    ("queue.rs", "push", "Adds an item, or gives it back."),
    ("queue.rs", "queue", "Makes a queue of some items."),
    ("retry.py", "MAX_ATTEMPTS", "after that the caller hears of it"),
    ("retry.py", "RetryPolicy", "How often and how long to wait."),
    ("retry.py", "delay", "The wait before an attempt, in seconds."),
    ("retry.py", "fallback", ""),
    ("ring.h", "ring_put", "Puts bytes into the buffer. Returns how many fitted."),
    ("ring.h", "RING_MAX", "bytes"),
    ("server.js", "PORT", "behind the proxy"),
    ("server.js", "createServer", "Makes a server."),
    ("server.js", "shutdown", "Stops everything."),
    ("store.ts", "Store", "Holds one value and its history."),
    ("store.ts", "notify", "Tells everyone."),
    ("store.ts", "load", "Reads settings from a file."),
]

SIGNATURES = [
    ("Account.cs", "Account", "[Serializable] public sealed class Account : Entity, IDisposable"),
    (
        "Account.cs",
        "TransferAsync",
        "public async Task<bool> TransferAsync<T>(Account to, long cents) where T : IRate",
    ),
    ("Account.cs", "IsOpen", "public bool IsOpen"),
    ("Account.cs", "Customer", "public record Customer(string Name, int Age)"),
    ("Cart.php", "Cart", "#[Entity] final class Cart extends Model implements Countable, Priced"),
    ("Cart.php", "add", "public function add(Item $item, int $count = 1): static"),
    (
        "Order.java",
        "Order",
        '@Entity @Table(name = "orders") public class Order<T extends Line> extends Base implements Comparable<Order<T>>',
    ),
    ("Order.java", "total", "@Override public long total(double rate) throws OverflowException"),
    ("cache.go", "Get", "func (c *Cache[K, V]) Get(key K) (value V, err error)"),
    ("cache.go", "Cache", "type Cache[K comparable, V any] struct"),
    ("cache.go", "New", "func New[K comparable, V any](ttl time.Duration) *Cache[K, V]"),
    ("mailer.rb", "Mailer", "class Mailer < Base"),
    ("mailer.rb", "default", "def self.default"),
    ("mailer.rb", "build", "def build(**options)"),
    (
        "matrix.cpp",
        "Matrix",
        "template <typename T, int Rows = 2> class Matrix final : public Shape, private Counted<T>",
    ),
    ("matrix.cpp", "SHOP_CHECK", "#define SHOP_CHECK(condition)"),
    ("panel.tsx", "Panel", "export const Panel: React.FC<Props> = ({ title, onClose })"),
    ("queue.rs", "Queue", "#[derive(Debug, Clone)] pub struct Queue<T: Send>"),
    ("queue.rs", "Ticket", "pub struct Ticket(pub u64)"),
    (
        "queue.rs",
        "worker",
        "pub(crate) fn worker<F>(work: F) -> JoinHandle<()> where F: Fn() + Send + 'static",
    ),
    (
        "retry.py",
        "retry",
        "@decorated(with_options=True) async def retry(call: Callable[[], int], *, policy: RetryPolicy = RetryPolicy()) -> int",
    ),
    ("retry.py", "_DELAYS", '_DELAYS = { "short": 0.1, "long": 2.0, }'),
    ("retry.py", "longest", "@property def longest(self) -> float"),
    ("ring.c", "ring_put", "size_t ring_put(struct ring *ring, const void *bytes, size_t count)"),
    ("ring.h", "ring_error", "typedef struct ring_error"),
    ("ring.h", "RING_MIN", "#define RING_MIN(a, b)"),
    ("server.js", "match", "match(path)"),
    ("server.js", "reset", "Router.prototype.reset = function ()"),
    (
        "store.ts",
        "Store",
        "@sealed export abstract class Store<T> extends Base<T> implements Readable<T>, Writable<T>",
    ),
    ("store.ts", "notify", "@logged protected async notify(state: T): Promise<void>"),
    (
        "store.ts",
        "debounce",
        "export const debounce = <F extends (...args: unknown[]) => void>(callback: F, wait = 50): F",
    ),
]


def outlined(name: str) -> Outline:
    text = (CODE / name).read_text("utf-8")
    language = language_of(name, text)
    assert language is not None
    return outline(text, language)


def table(found: list[symbols.Symbol]) -> list[str]:
    return [
        f"{symbol.lines[0]} {symbol.kind} {symbol.parent or '-'} {symbol.name}" for symbol in found
    ]


def test_every_fixture_has_a_table_and_every_language_a_fixture():
    assert {path.name for path in CODE.iterdir()} == set(EXPECTED)
    assert {language_of(name) for name in EXPECTED} == set(LANGUAGES)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_definitions_of_a_file_are_found_where_they_stand(name):
    assert table(outlined(name).symbols) == [
        line.strip() for line in EXPECTED[name].strip().splitlines()
    ]


@pytest.mark.parametrize("name", FILE_DOCS)
def test_a_file_says_what_it_is_about_and_its_licence_does_not(name):
    assert outlined(name).doc == FILE_DOCS[name]


@pytest.mark.parametrize(("name", "symbol", "doc"), DOCS)
def test_documentation_is_found_and_cleaned(name, symbol, doc):
    assert next(each.doc for each in outlined(name).symbols if each.name == symbol) == doc


@pytest.mark.parametrize(("name", "symbol", "signature"), SIGNATURES)
def test_a_signature_is_one_line_without_body_and_comments(name, symbol, signature):
    assert (
        next(each.signature for each in outlined(name).symbols if each.name == symbol) == signature
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_line_ends_of_windows_change_nothing(name):
    text = (CODE / name).read_text("utf-8")
    language = language_of(name, text)
    plain, windows = outline(text, language), outline(text.replace("\n", "\r\n"), language)
    assert table(windows.symbols) == table(plain.symbols)
    assert [(each.signature, each.doc, each.lines) for each in windows.symbols] == [
        (each.signature, each.doc, each.lines) for each in plain.symbols
    ]
    assert windows.doc == plain.doc


@pytest.mark.parametrize("name", EXPECTED)
def test_ranges_nest_as_definitions_do(name):
    text = (CODE / name).read_text("utf-8")
    for symbol in outlined(name).symbols:
        first, last = symbol.lines
        assert 1 <= first <= last <= text.count("\n") + 1
        assert symbol.name.rpartition("::")[2].rpartition(".")[2].rpartition("\\")[2] in " ".join(
            text.splitlines()[first - 1 : last]
        )


PARTIAL = [
    (
        "python",
        "class A:\n    def f(self):\n        pass\n\ndef g(:\n\nclass B:\n    pass\n",
        {"A", "f", "B"},
    ),
    (
        "typescript",
        "export function one() {}\nexport function two( {\nexport class Three { four() {} }\n",
        {"one"},
    ),
    ("go", "package x\nfunc One() {}\nfunc Two( {}\nfunc Three() {}\n", {"One", "Three"}),
    ("rust", "fn one() {}\nfn two( {}\nfn three() {}\n", {"one"}),
    ("java", "class A { void f() {} void g( {} }\nclass B {}\n", {"A", "f"}),
    ("c", "int one(void) { return 1; }\nint two( { \nint three(void) { return 3; }\n", {"one"}),
    ("cpp", "class A { void f(); @@ };\nvoid g() {}\n", {"A", "f", "g"}),
    ("csharp", "class A { void F() {} void G( {} }\n", {"A", "F"}),
    ("ruby", "class A\n  def f; end\n  def g(; end\nend\ndef h; end\n", {"A", "f"}),
    ("php", "<?php\nfunction one() {}\nfunction two( {}\nfunction three() {}\n", {"one"}),
    ("javascript", "function one() {}\nclass {{{\nfunction two() {}\n", {"one"}),
]


@pytest.mark.parametrize(("language", "text", "names"), PARTIAL)
def test_a_syntax_error_costs_only_what_stands_at_it(language, text, names):
    assert names <= {symbol.name for symbol in read(text, language)}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "text", ["", "\n", "   \n\t\n", "\ufeff", "\0", "\ud800 half a pair", "密码 = 1\n", "\r\r\r"]
)
def test_texts_without_definitions_have_none(language, text):
    assert [symbol for symbol in read(text, language) if symbol.name != "密码"] == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("begin", "end"),
    [("(", ")"), ("{", "}"), ("[", "]"), ("if (x) {", "}"), ("a.b(", ")"), ("namespace a {", "}")],
)
def test_nesting_of_ten_thousand_levels_is_survived(language, begin, end):
    read("x = " + begin * 10_000 + "1" + end * 10_000 + "\n", language)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("const names = items.map((item) => item.name);", []),
        ("const timer = setTimeout(() => {}, 5);", []),
        ("const Row = memo(() => null);", ["Row"]),
        ("const save = _.debounce(function () {}, 50);", ["save"]),
        ("module.exports = class Cart { add() {} };", ["Cart", "add"]),
        ("module.exports = function make() {};", ["make"]),
        ("exports = module.exports = { run() {} };", ["run"]),
        (
            "export default { name: 'x', methods: { open() {} }, created() {} };",
            ["open", "created"],
        ),
        ("define(['a'], function (a) { function inner() {} });", ["inner"]),
        ("function make() { return { open() {}, close: () => {} }; }", ["make", "open", "close"]),
        ("function outer() { function inner() { function innermost() {} } }", ["outer", "inner"]),
        ("export const a = 1, B = 2;", ["a", "B"]),
        ("export * from './a'; export { b } from './b';", []),
        ("describe('x', () => { const LOCAL = 1; it('y', () => {}); });", []),
    ],
)
def test_what_counts_in_a_javascript_module(text, names):
    assert [symbol.name for symbol in read(text, "javascript")] == names
    assert [symbol.name for symbol in read(text, "tsx")] == names


@pytest.mark.parametrize(
    "text",
    [
        "int " + "(" * 5_000 + "f" + ")()" * 5_000 + ";",
        "int " + "*" * 5_000 + "f(void) {}",
        "a" + "::a" * 5_000 + "() {}",
    ],
)
def test_declarators_of_any_depth_are_survived(text):
    read(text, "cpp")


def test_deep_nesting_of_what_is_looked_into_is_followed():
    deep = (
        "".join(" " * level + "if x:\n" for level in range(90)) + " " * 90 + "def found(): pass\n"
    )
    assert [symbol.name for symbol in read(deep, "python")] == ["found"]
    spaces = (
        "".join(f"namespace n{level} {{ " for level in range(2_000))
        + "void found() {}"
        + "}" * 2_000
    )
    assert read(spaces, "cpp")[-1].name == "found"


def test_a_file_that_the_parser_cannot_make_sense_of_is_cut_off(monkeypatch):
    monkeypatch.setattr(symbols, "PATIENCE", 0.1)
    hostile = (
        "function early() {}\n" + "if x:\n" + "elif x:\n" * 10_000
    )  # takes a minute, twice as many take four
    started = time.thread_time()
    assert "early" in {symbol.name for symbol in read(hostile, "javascript")}
    assert time.thread_time() - started < 20


@pytest.mark.parametrize("language", ["java", "csharp"])
@pytest.mark.parametrize("piece", ["a<", "a<;", "a<\n", "a< // >\n"])
def test_what_would_eat_the_memory_is_not_parsed(language, piece):
    assert [symbol.name for symbol in read("class A {}\n" + piece * 900, language)] == ["A"]
    assert (
        read("class A {}\n" + piece * 4_000, language) == []
    )  # ten thousand take a gigabyte, a hundred thousand the machine


def test_a_file_of_many_comparisons_is_read_all_the_same():
    text = (
        "class A { boolean f(int a) { return "
        + " || ".join(["a < 1"] * 900)
        + "; } /* "
        + "< " * 3_000
        + " */ }"
    )
    assert [symbol.name for symbol in read(text, "java")] == ["A", "f"]


def test_a_file_of_endless_definitions_is_bounded(monkeypatch):
    monkeypatch.setattr(symbols, "MOST", 100)
    found = read("".join(f"def f{number}(): pass\n" for number in range(200)), "python")
    assert [symbol.name for symbol in found] == [f"f{number}" for number in range(100)]


def test_lines_beyond_the_small_integers_of_python_are_counted_right():
    found = read("\n" * 70_000 + "def late():\n    return 1\n", "python")
    assert [(symbol.name, symbol.lines) for symbol in found] == [("late", (70_001, 70_002))]


# Texts that are made of what the grammars know get further into the walk than random characters do.
WORDS = """
class def function fn func struct enum impl trait interface type const var let static public private export default module namespace
end do if else try return import package use extern typedef union template using async await get set record property event
attr_reader task private /** */ // # @a #[a] /// //! \" ' ` { } ( ) [ ] < > : ; , . = => -> :: & * | \\ \n \n\n \t <?php ?> A B c d_e F1 1 "x y z"
""".split(" ")


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    text=st.one_of(
        st.text(max_size=200), st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)
    )
)
def test_no_text_makes_reading_fail(language, text):
    found = outline(text, language)
    assert len(found.doc) <= 600
    for symbol in found.symbols:
        assert symbol.name
        assert symbol.kind
        assert len(symbol.signature) <= 320
        assert "\n" not in symbol.signature
        assert len(symbol.doc) <= 600
        assert 1 <= symbol.lines[0] <= symbol.lines[1]


def test_long_signatures_docs_and_decorators_are_cut():
    parameters = ", ".join(f"parameter_{number}: int" for number in range(100))
    text = f'@mark({"x" * 200!r})\n@short\ndef f({parameters}):\n    """{"word " * 500}"""\n'
    (found,) = read(text, "python")
    assert found.signature.startswith("@short def f(parameter_0: int")
    assert len(found.signature) <= 300
    assert len(found.doc) <= 600
    assert found.lines == (1, 4)


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
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
    ],
)
def test_a_comment_belongs_to_what_it_stands_by(language, text, expected):
    assert expected in [(symbol.name, symbol.doc) for symbol in read(text, language)]


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("a/b.py", "", "python"),
        ("b.PY", "", "python"),
        ("b.pyi", "", "python"),
        ("b.mts", "", "typescript"),
        ("b.cts", "", "typescript"),
        ("b.tsx", "", "tsx"),
        ("b.jsx", "", "javascript"),
        ("b.cjs", "", "javascript"),
        ("b.hh", "", "cpp"),
        ("b.cxx", "", "cpp"),
        ("b.rake", "", "ruby"),
        ("Rakefile", "", "ruby"),
        ("b.h", "int f(void);\n", "c"),
        ("b.h", "struct a { int class; };\n", "c"),
        ("b.h", "class A {\n};\n", "cpp"),
        ("b.h", "namespace a {\n}\n", "cpp"),
        ("b.h", "template <class T> T f();\n", "cpp"),
        ("b.h", "std::string f();\n", "cpp"),
        ("run", "#!/usr/bin/env python3\n", "python"),
        ("run", "#!/usr/bin/env -S node --test\n", "javascript"),
        ("run", "#!/usr/local/bin/ruby\n", "ruby"),
        ("run", "#!/usr/bin/php8.2 -q\n", "php"),
        ("run", "#!/bin/sh\n", None),
        ("run", "python\n", None),
        ("README.md", "#!/usr/bin/python\n", None),
        ("b.json", "", None),
        ("", "", None),
        (".py", "", None),
    ],
)
def test_the_language_of_a_file(path, text, language):
    assert language_of(path, text) == language


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("/** One.\n * Two.\n */", "One. Two."),
        ("/**\n * One.\n *\n * Two.\n */", "One."),
        ("// eslint-disable-next-line no-console\n// One.", "One."),
        ("/* Copyright 2026 us. All rights reserved. */", ""),
        ("/* One thing.\n *\n * Licensed under the MIT license. */", "One thing."),
        ("/**\n * @param a one\n * @returns two\n */", ""),
        ("/** @deprecated use other */", "Deprecated: use other"),
        (
            '/// <summary>Adds <paramref name="a"/> to <see cref="T:List"/>.</summary>\n/// <returns>x</returns>',
            "Adds a to List.",
        ),
        (
            "/** See {@link Foo#bar the bar} and {@code a < b} and {@code }. */",
            "See the bar and a < b and .",
        ),
        ("//------- helpers -------", "helpers"),
        ("# -*- coding: utf-8 -*-\n# One.", "One."),
        ("/// @brief Adds @p a.", "Adds a."),
        ("/* Module dependencies. */", ""),
        (
            "/*\n * The Shop\n *\n * Permission is hereby granted, free of charge, to any person\n */",
            "",
        ),
    ],
)
def test_what_a_comment_says(raw, said):
    assert summary(comment(raw)) == said


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('"""One.\n\n    Two."""', "One."),
        ("'one'", "one"),
        ('r"""One\n    two."""', "One two."),
        ('"""Title\n=====\n\nOne."""', "Title"),
        ("1", ""),
    ],
)
def test_what_a_docstring_says(raw, said):
    assert summary(docstring(raw)) == said


@pytest.mark.parametrize(
    "text",
    [
        "/" * 100_000,
        "* " * 50_000,
        "<summary>" * 10_000,
        "{@link " * 10_000,
        "\n \n" * 30_000,
        "@" * 100_000,
        "#" * 100_000,
    ],
)
def test_cleaning_takes_no_longer_for_hostile_comments(text):
    started = time.thread_time()
    summary(comment(text))
    assert time.thread_time() - started < 1


def test_without_tree_sitter_there_is_a_hint(monkeypatch):
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    symbols._grammar.cache_clear()
    try:
        with pytest.raises(InvalidInput, match="needs tree-sitter") as caught:
            read("def f(): pass", "python")
    finally:
        symbols._grammar.cache_clear()
    assert caught.value.hint == "pip install 'bethink[code]'"


def test_importing_the_reader_loads_no_grammar():
    code = "import bethink.ingest.repomap, sys; print([name for name in sys.modules if name.startswith(('tree_sitter', 'numpy'))])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_places_are_never_asked_of_the_nodes():
    """Reading `Point.row` or `.column` frees integers that are in use in tree-sitter 0.26.0, and a crash follows much later."""
    ingest = Path(symbols.__file__).parent
    for name in ("symbols.py", "analyze/routes.py"):
        assert (
            re.findall(
                r"\.(?:start_point|end_point)\b|(?<!Node)\.text\b(?!\()",
                (ingest / name).read_text("utf-8"),
            )
            == []
        )
