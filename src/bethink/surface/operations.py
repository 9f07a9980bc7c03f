"""What commands and the HTTP API do alike: which memories are meant, how a question is asked, and the JSON values of answers
that both give. Nothing here prints, pages or knows a caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bethink.config import PROFILES
from bethink.recall.shape import iso, plain
from bethink.surface.layout import pick
from bethink.text.checks import as_entity
from bethink.text.when import moment
from bethink.types import MODES, PERSONAL, path_of

if TYPE_CHECKING:
    from datetime import datetime

    from bethink.api import Bethink
    from bethink.features.handoffs import Handoff, LatestHandoff, SavedHandoff
    from bethink.features.tending import Pair, Step
    from bethink.ingest.sync import Synced
    from bethink.surface.render import Arranged
    from bethink.types import Answer, Event, Filter, Session, Span

# In the index-and-details form a match costs about 20 tokens at least.
TOKENS_PER_LINE, MOST_LINES = 20, 50
STATES = ("expired", "deleted", "superseded", "quarantined")  # what a search leaves out
MOMENTS = ("valid_from", "valid_to", "last_accessed")  # times that history keeps, besides `…_at`
ORDERS = "created|oldest|importance|used|useful|updated"

FILTERS = """
which memories:
--kind KIND*          only of this kind; may be repeated or a comma list
--entity NAME*        only about one of these; may be repeated or a comma list
--tag TAG*            only with this tag; may be repeated or a comma list
--source SOURCE*      only from this source; may be repeated
--session ID          only from this conversation; the beginning of its id is enough
--host HOST*          only said in conversations with this agent: claude, codex …
--since TIME          made at or after: 7d, yesterday, 2026-03-01, 1.3.2026 (03/04/2026 is 3 April)
--until TIME          made before
--as-of TIME          what was valid at that time
--min-importance N number 0..10     of this importance (0 to 10) or more
--include-expired     expired ones too
--include-deleted     forgotten ones too
--include-superseded  replaced ones too
--include-quarantined     quarantined ones too
| --all-projects      of every project, not only this one and personal ones
| --personal          only personal ones
"""
RANKING = f"""
how to look:
--mode MODE {"|".join(MODES)}     hybrid: by meaning and words; vector: by meaning; keyword: by words
--intent, --profile NAME              weigh recency and use too: {", ".join(PROFILES)}, one of the setting `profiles`, or weights: "relevance=0.6 recency=0.4"
--threshold SCORE number 0..1         only scores (0 to 1) from here on
--seed N whole 0..4294967296          make the chance in an intent repeatable
--context TEXT                        what was said before, for a question that only points there: "and the other one?"
--hyde                                look near what the language model supposes the answer to be, too
"""


def split_lists(values: Sequence[str] | None) -> tuple[str, ...]:
    """The values of an argument that may be repeated and may hold comma lists."""
    parts = (part.strip() for value in values or () for part in value.split(","))
    return tuple(dict.fromkeys(filter(None, parts)))


def make_filter(memory: Bethink, asked: Any, **more: Any) -> Filter:
    """The filter that `FILTERS` describe. `more` overrides them."""
    now = memory.clock()
    times = {name: getattr(asked, name) for name in ("since", "until", "as_of")}
    scopes = memory.every_scope() if asked.all_projects else (PERSONAL,) if asked.personal else ()
    session = memory.find_session(asked.session, scopes) if asked.session else None
    wanted = {
        "kinds": split_lists(asked.kind),
        "entities": tuple(as_entity(name).name for name in split_lists(asked.entity)),
        "tags": split_lists(asked.tag),
        "sources": tuple(asked.source),
        "session": session.id if session else None,
        "hosts": split_lists(asked.host),
        "min_importance": asked.min_importance,
        "scopes": scopes or None,
        **{name: moment(text, now) if text else None for name, text in times.items()},
        **{f"include_{state}": getattr(asked, f"include_{state}") for state in STATES},
    }
    return memory.filter(**{**wanted, **more})


def search(memory: Bethink, question: str, asked: Any, wanted: Filter, **how: Any) -> Answer:
    """The answer to a question that is asked as `RANKING` says."""
    find: Callable[..., Answer] = memory.search
    if asked.hyde:
        from bethink.features import language

        find = partial(language.search, memory)
    return find(
        question,
        filter=wanted,
        mode=asked.mode,
        profile=asked.intent,
        threshold=asked.threshold,
        context=asked.context or "",
        **how,
    )


def count_lines(budget: int) -> int:
    """How many matches the index-and-details form looks for within a token budget."""
    return max(5, min(MOST_LINES, budget // TOKENS_PER_LINE))


def recall_record(arranged: Arranged) -> dict[str, Any]:
    """The index-and-details form."""
    topics = [
        {**pick(span, "id name summary session"), "memories": [hit.memory.id for hit in together]}
        for span, together in arranged.topics
        if span
    ]
    value = pick(arranged.both, "query index details total_count has_more tokens_used hints")
    return {**value, "topics": topics}


def version_records(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Every version of a memory, under the numbers that `restore` takes."""
    return [
        {
            "version": number,
            **pick(event, "at actor action"),
            "before": _readable_fields(event.before),
            "after": _readable_fields(event.after),
        }
        for number, event in enumerate(events, start=1)
    ]


def _readable_fields(fields: Any) -> dict[str, Any]:
    return {name: _readable(name, value) for name, value in (fields or {}).items()}


def _readable(name: str, value: Any) -> Any:
    """A value as history keeps it, in the form that every other answer has."""
    if isinstance(value, int | float) and (name.endswith("_at") or name in MOMENTS):
        from datetime import UTC, datetime

        return iso(datetime.fromtimestamp(value / 1000, UTC))
    if name in ("tags", "keywords", "metadata") and isinstance(value, str):
        import json

        return json.loads(value)
    return bool(value) if name == "answered" and value is not None else value


def session_record(session: Session, spans: Sequence[Span] | None = None) -> dict[str, Any]:
    """A conversation, with its topics where they are given."""
    record = pick(session, "id scope host title source started_at ended_at digest")
    if spans is None:
        return record
    topics = [pick(span, "id parent name summary lines depth") for span in spans]
    return {**record, "topics": topics}


def pair_records(found: Sequence[Pair]) -> list[dict[str, Any]]:
    """Memories that say the same or disagree, two by two."""
    return [
        {
            "keep": plain(pair.keep),
            "other": plain(pair.other),
            "similarity": round(pair.similarity, 4),
            "reason": pair.reason,
        }
        for pair in found
    ]


def step_record(step: Step) -> dict[str, Any]:
    """One step of a consolidation."""
    ids = [one.id for one in step.memories]
    return {"action": step.action, "memories": ids, "reason": step.reason}


def handoff_record(found: LatestHandoff, now: datetime) -> dict[str, Any]:
    return {
        **pick(found.memory, "id created_at"),
        **found.handoff._asdict(),
        "metadata": dict(found.handoff.metadata),
        "exact": found.exact,
        "age_days": found.days(now),
        "stale": found.is_stale(now),
        "content": found.memory.content,
    }


def saved_handoff_record(saved: SavedHandoff, stored: Handoff) -> dict[str, Any]:
    """What became of a handoff that was to be left."""
    return {
        "id": saved.memory.id,
        "status": "saved" if saved.new else "unchanged",
        "supersedes": list(saved.supersedes),
        "project": stored.project,
        "branch": stored.branch,
    }


def sync_record(synced: Synced) -> dict[str, Any]:
    """What bringing sources in step did, in numbers and names."""
    return {
        "sources": synced.sources,
        "added": [path_of(uri) for uri in synced.added],
        "changed": [path_of(uri) for uri in synced.changed],
        "moved": [{"from": path_of(old), "to": path_of(new)} for old, new in synced.moved],
        "vanished": [path_of(uri) for uri in synced.vanished],
        "unchanged": synced.unchanged,
        "skipped": [{"source": path_of(uri), "reason": reason} for uri, reason in synced.skipped],
        "memories": {
            "added": synced.memories_added,
            "kept": synced.memories_kept,
            "retired": synced.memories_retired,
        },
    }
