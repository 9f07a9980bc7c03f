"""Summaries that a host's model writes at a compaction: facts about what is left, decisions, wishes and findings."""

import pytest
from field_surfaces import SECRET
from transcripts import claude_line, written

from bethink.features import conversations
from bethink.model import TRUST

NUMBERED = """\
1. Primary Request and Intent:
   Move the carts to Redis.
7. Pending Tasks:
   - Drop the old table for the carts
   - Measure the latency of checkout
8. Current Work:
   The carts are in Redis.
9. Optional Next Step:
   Ask whether to drop the table.
"""
NOTHING_LEFT = NUMBERED.replace(
    "- Drop the old table for the carts\n   - Measure the latency of checkout",
    "- None. All tasks are completed.",
)
MARKDOWN = """\
## Goal
Move the carts to Redis.

## Constraints & Preferences
- The user wants no table for carts in PostgreSQL.

## Progress
### Done
- [x] Created the connection
### In Progress
- [ ] Move the carts of guests

## Key Decisions
- **Redis instead of Memcached**: carts must survive a restart.
  - one host is enough

## Discoveries
- The proxy closes idle connections after 60 seconds.
"""
TAGGED = "<work_done>\n- Moved the carts\n</work_done>\n\n<next_steps>\n- Drop the old table for the carts\n</next_steps>"


@pytest.fixture
def read(shop):
    """Read a conversation that ends with a compaction's summary and these lines; give the memory to a function."""

    def begin(summary, *after):
        lines = [
            claude_line(1, "Please move the carts to Redis."),
            claude_line(2, [{"type": "text", "text": "I moved the carts."}], "assistant"),
            claude_line(3, summary, isCompactSummary=True),
            *after,
        ]
        placed = [{**line, "cwd": str(shop.project)} for line in lines]
        file = written(shop.project / "s1.jsonl", *placed)
        with shop.memory() as memory:
            conversations.backfill(memory, [("claude", file)], trusted=True)
            (session,) = conversations.sessions(memory)
            return memory.list(), session.digest

    return begin


def find(memories, text):
    return next((one for one in memories if one.content == text), None)


@pytest.mark.parametrize(
    ("summary", "left"),
    [
        pytest.param(
            NUMBERED,
            "Drop the old table for the carts; Measure the latency of checkout",
            id="numbered headings",
        ),
        pytest.param(MARKDOWN, "Move the carts of guests", id="Markdown"),
        pytest.param(TAGGED, "Drop the old table for the carts", id="tags"),
        pytest.param(NOTHING_LEFT, "nothing", id="nothing"),
    ],
)
def test_a_session_that_ends_with_a_compaction_has_left_what_its_summary_lists(read, summary, left):
    assert read(summary)[1]["left"] == left


def test_a_later_report_says_what_is_left(read):
    asked = claude_line(4, "Please drop the table, too.")
    text = "I dropped the table. Next: measure the latency of checkout on staging."
    said = claude_line(5, [{"type": "text", "text": text}], "assistant")
    assert "old table" not in read(NUMBERED, asked, said)[1]["left"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param(
            "decision",
            "Redis instead of Memcached: carts must survive a restart.",
            id="decision",
        ),
        pytest.param("preference", "The user wants no table for carts in PostgreSQL.", id="wish"),
        pytest.param("fact", "The proxy closes idle connections after 60 seconds.", id="finding"),
    ],
)
def test_what_a_summary_states_is_kept_as_the_agents_word(read, kind, text):
    found = find(read(MARKDOWN)[0], text)
    assert (found.kind, found.trust, found.lines) == (kind, TRUST["agent"], (3, 3))


def test_what_a_summary_calls_done_is_not_kept(read):
    assert not find(read(MARKDOWN)[0], "Created the connection")


def test_a_summary_is_no_turn(read):
    assert not [one for one in read(MARKDOWN)[0] if one.kind == "context" and "Goal" in one.content]


def test_a_secret_in_a_summary_is_removed(read):
    found = read(MARKDOWN.replace("after 60 seconds", f"without the key {SECRET}"))[0]
    assert "without the key [REDACTED" in "".join(one.content for one in found)
