"""From the text of one turn to statements that can be read on their own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest import sentences
from bethink.ingest.sentences import LONGEST_STATEMENT, MOST_STATEMENTS, statements


def texts(turn):
    return [statement.text for statement in statements(turn)]


def labels(turn):
    return [(statement.label, statement.text) for statement in statements(turn)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "We chose Redis. It expires keys.",
            ["We chose Redis.", "It expires keys."],
            id="chose-redis-expires-keys",
        ),
        pytest.param(
            "Runs on Python 3.11 and 3.12. Not on 3.10.",
            ["Runs on Python 3.11 and 3.12.", "Not on 3.10."],
            id="runs-python-3.11-3.12-not-3.10",
        ),
        pytest.param(
            "See src/main.py and e.g. the docs. Then go on.",
            ["See src/main.py and e.g. the docs.", "Then go on."],
            id="see-src/main.py-e.g-docs-then-go",
        ),
        pytest.param(
            "Mr. Smith uses v2. of it, etc. and so on.",
            ["Mr. Smith uses v2. of it, etc. and so on."],
            id="mr-smith-uses-v2-etc-so",
        ),
        pytest.param(
            "no, keep the monorepo. splitting it costs too much",
            ["no, keep the monorepo.", "splitting it costs too much"],
            id="no-keep-monorepo-splitting-costs-too-much",
        ),
        pytest.param(
            "Call `a.b(). C` first. Then stop!",
            ["Call `a.b(). C` first.", "Then stop!"],
            id="call-a.b-C-first-then-stop",
        ),
        pytest.param(
            "Really?! Yes... maybe", ["Really?!", "Yes...", "maybe"], id="really-yes-maybe"
        ),
        pytest.param(
            'He said "stop." Then left.',
            ['He said "stop."', "Then left."],
            id="he-said-stop-then-left",
        ),
        pytest.param(
            "see https://a.example/x.html?y=1. It is down.",
            ["see https://a.example/x.html?y=1.", "It is down."],
            id="see-https-a.example/x.html-y-1-down",
        ),
        pytest.param(
            "我们用PostgreSQL。为什么？因为快！",
            ["我们用PostgreSQL。", "为什么？", "因为快！"],
            id="postgresql",
        ),
        pytest.param("", [], id="empty"),
        pytest.param("...", ["..."], id="full-stop"),
    ],
)
def test_a_text_is_split_into_sentences(text, expected):
    assert sentences.split_sentences(text) == expected


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        pytest.param("Next steps", "todo", id="next-steps"),
        pytest.param("TODO:", "todo", id="TODO"),
        pytest.param("3. Follow-ups", "todo", id="3-follow-ups"),
        pytest.param("What's left", "todo", id="what-s-left"),
        pytest.param("🔜 Action items", "todo", id="action-items"),
        pytest.param("Decisions", "decision", id="decisions"),
        pytest.param("Root cause", "conclusion", id="root-cause"),
        pytest.param("Why", "conclusion", id="why"),
        pytest.param("Lessons learned", "conclusion", id="lessons-learned"),
        pytest.param("Fix", "solution", id="fix"),
        pytest.param("Workaround:", "solution", id="workaround"),
        pytest.param("Known issues", "problem", id="known-issues"),
        pytest.param("Open questions", "question", id="open-questions"),
        pytest.param("Background", "context", id="background"),
        pytest.param("Summary", None, id="summary"),
        pytest.param("", None, id="empty"),
        pytest.param("Decision tree pruning", None, id="decision-tree-pruning"),
    ],
)
def test_a_heading_announces_a_kind(heading, expected):
    assert sentences.kind_of(heading) == expected


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        pytest.param(
            "Root cause: the lock is per connection and not per process.",
            "conclusion",
            id="root-cause-lock-per-connection-not-per",
        ),
        pytest.param(
            "**Fix:** pass a context of its own to the cleanup.",
            "solution",
            id="fix-pass-context-own-cleanup",
        ),
        pytest.param(
            "**Decision** — the ledger stays append-only.",
            "decision",
            id="decision-ledger-stays-append-only-decision",
        ),
        pytest.param(
            "- [ ] document the environment variables", "todo", id="document-environment-variables"
        ),
        pytest.param(
            "TODO: measure the boot time with the new linker script",
            "todo",
            id="TODO-measure-boot-time-new-linker-script",
        ),
        pytest.param(
            "Problem: the upload buffers whole files in memory.",
            "problem",
            id="problem-upload-buffers-whole-files-memory",
        ),
        pytest.param(
            "Medium: the mapping is validated after the first request.",
            "problem",
            id="medium-mapping-validated-after-first-request",
        ),
        pytest.param(
            "[decision] the ledger stays append-only",
            "decision",
            id="decision-ledger-stays-append-only-decision-2",
        ),
        pytest.param("Note: the file has 320 lines of code.", None, id="note-file-320-lines-code"),
        pytest.param(
            "The fix: everything that we tried before failed.",
            "solution",
            id="fix-everything-tried-before-failed",
        ),
    ],
)
def test_a_label_gives_its_sentence_a_kind(turn, expected):
    assert labels(turn)[0][0] == expected


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        pytest.param(
            "We raised the pool to 20. That fixed it.",
            ["We raised the pool to 20.", "We raised the pool to 20. That fixed it."],
            id="raised-pool-20-fixed",
        ),
        pytest.param(
            "The lock is held during the call. This means that every other worker waits.",
            [
                "The lock is held during the call.",
                "The lock is held during the call. This means that every other worker waits.",
            ],
            id="lock-held-during-call-means-every-other-lock-held-during-call",
        ),
        pytest.param(
            "Folders are missing in the docs. why?",
            ["Folders are missing in the docs.", "Folders are missing in the docs. why?"],
            id="folders-missing-docs-why",
        ),
        pytest.param(
            "The lock is held during the call.\n\nThis means that every other worker waits.",
            [
                "The lock is held during the call.",
                "The lock is held during the call. This means that every other worker waits.",
            ],
            id="lock-held-during-call-means-every-other-lock-held-during-call-2",
        ),
    ],
)
def test_a_sentence_with_a_pronoun_keeps_its_antecedent(turn, expected):
    assert texts(turn) == expected


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        pytest.param(
            "Done with the importer.\n\n## Next steps\n1. Add rate limiting to the API\n   before the launch.\n2. Rotate the signing keys\n\nDecisions:\n- keep SQLite for the cache\n- drop the old queue\n\nEverything else stays as it was before.\n\n**Open questions**\n* who owns the bucket\n",
            [
                (None, "Done with the importer."),
                ("todo", "Add rate limiting to the API before the launch."),
                ("todo", "Rotate the signing keys"),
                ("decision", "keep SQLite for the cache"),
                ("decision", "drop the old queue"),
                (None, "Everything else stays as it was before."),
                ("question", "who owns the bucket"),
            ],
            id="done-importer-next-steps-1-add-rate-limiting",
        ),
        pytest.param(
            "## Next steps\n- [x] write the changelog\n- [ ] rotate the keys\n",
            [("none", "write the changelog"), ("todo", "rotate the keys")],
            id="next-steps-x-write-changelog-rotate-keys",
        ),
    ],
)
def test_items_below_a_heading_get_its_kind(turn, expected):
    assert labels(turn) == expected


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        pytest.param(
            "**Files changed:**\n- the parser of the planner\n- the exporter\n\n## Verification\n- all suites were run twice\n",
            [],
            id="files-changed-parser-planner-exporter",
        ),
        pytest.param(
            "The importer reads the whole file into memory before it looks at\nthe first row, and that is what makes the small machine\nfall over.",
            [
                "The importer reads the whole file into memory before it looks at the first row, and that is what makes the small machine fall over."
            ],
            id="importer-reads-whole-file-into-memory-before",
        ),
        pytest.param(
            "✅ **We keep** *SQLite*, see [the docs](docs/x.md) and `a_b.c`: ![pic](x.png) __done__ with 2*3*4 and snake_case_name.",
            ["We keep SQLite, see the docs and `a_b.c`: done with 2*3*4 and snake_case_name."],
            id="keep-sqlite-see-docs-docs/x.md-a_b.c-pic",
        ),
    ],
)
def test_a_turn_is_cut_into_statements(turn, expected):
    assert texts(turn) == expected


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        pytest.param(
            "ok, let's move on to the header of the page", False, id="ok-let-s-move-header-page"
        ),
        pytest.param("Let me look at the importer first.", False, id="let-me-look-importer-first"),
        pytest.param("Great, moving on to the invoices.", False, id="great-moving-invoices"),
        pytest.param("Let's use Redis for the carts.", True, id="let-s-use-redis-carts"),
        pytest.param(
            "Let's move on, but before that: we decided to keep the carts in Redis for a whole day",
            True,
            id="let-s-move-but-before-decided-keep-carts",
        ),
    ],
)
def test_an_announcement_of_the_next_step_is_no_statement(turn, expected):
    assert bool(statements(turn)) == expected


NOISE = [
    ("a fence", "```py\nx = 1\nprint(x)\n```"),
    ("a fence that is never closed", "~~~\nx = 1\n\ny = 2"),
    ("a table", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ("a quotation", "> We decided to use Kafka\n> for everything"),
    (
        "a diff",
        "diff --git a/x b/x\nindex 3f1d2aa..9c0be11 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old line here\n+new line here",
    ),
    (
        "a log",
        "2025-03-01 12:00:01 ERROR could not connect\n[INFO] retrying\n12:00:02 gave up\n[lint:go] one issue was found",
    ),
    (
        "a trace",
        'Traceback (most recent call last):\n  File "x.py", line 3, in <module>\n    main()',
    ),
    (
        "a JavaScript trace",
        "    at Object.run (/app/index.js:10:5)\n    at main (/app/index.js:2:1)",
    ),
    ("a listing", "-rw-r--r-- 1 root root 120 Nov 15 07:18 a.txt\n├── src\n└── tests"),
    ("a shell", "$ make test\n❯ git push"),
    ("a path and an address", "src/bethink/model.py\nhttps://example.org/pull/12"),
    ("markup", "<system-reminder>\n<command-name>/clear</command-name>"),
    (
        "code without a fence",
        "    const total = items.reduce((a, b) => a + b, 0);\nfor (let i = 0; i < 10; i++) {",
    ),
    ("a line nobody wrote", "x " * 3000),
]


@pytest.mark.parametrize("noise", [noise for _, noise in NOISE])
def test_what_is_no_prose_is_left_out(noise):
    said = "We keep SQLite for the cache."
    assert texts(f"{said}\n\n{noise}\n") == [said]


def test_the_core_is_what_says_something_new():
    new = "This means that every other worker waits."
    assert statements(f"The lock is held during the call. {new}")[-1].core == new


def test_a_long_statement_is_cut_at_a_word():
    (short,) = texts("word " * 60 + "end; " + "more " * 60)
    assert len(short) <= LONGEST_STATEMENT and short.endswith("more…")


def test_a_long_word_is_cut():
    assert len(texts("x" * 1000)[0]) <= LONGEST_STATEMENT


def test_words_that_are_not_set_apart_are_cut_anywhere():
    (long,) = texts("Postgres " + "数据库存储数据" * 100)
    assert LONGEST_STATEMENT - 20 < len(long) <= LONGEST_STATEMENT


def test_a_turn_has_a_bounded_number_of_statements():
    assert len(statements("We keep this one.\n\n" * 2000)) == MOST_STATEMENTS


FRAGMENTS = st.sampled_from(
    [
        "We keep SQLite. ",
        "That fixed it. ",
        "- [ ] do it\n",
        "## Next steps\n",
        "Root cause: it ",
        "```\n",
        "> q\n",
        "| a |\n",
        "\n\n",
        "**",
        "`x`",
        ". ",
        "? ",
        "1. one\n",
        "Decisions:\n",
        "    code;\n",
        "我们决定。",
        "é",
        "\x00",
        "e.g. ",
        "v3.11 ",
        "*",
        "_",
        "[l](u) ",
        "✅ ",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(FRAGMENTS | st.text(max_size=8), max_size=25).map("".join))
def test_any_text_gives_statements_of_its_own_words(turn):
    found = statements(turn)
    for at, statement in enumerate(found):
        assert statement.position == at and 0 < len(statement.text) <= LONGEST_STATEMENT
        assert 0 <= statement.line <= turn.count("\n")
        letters = iter(turn)  # each letter of the statement stands in the turn, in the same order
        assert all(letter in letters for letter in statement.text if letter.isalnum())
        assert statement.core in statement.text
    assert statements(turn) == found


def test_the_frame_of_an_insight_is_no_statement():
    box = "`★ Insight ───────────`\nThe gateway drops idle sockets after 60 s.\n`───────────`"
    assert texts(box) == ["The gateway drops idle sockets after 60 s."]
