"""JSON values that several surfaces give alike."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bethink.app.render import Arranged, pick
from bethink.model import Event, Json, Session, Span, Values, path_of
from bethink.recall.shape import to_json
from bethink.store.rows import from_history

if TYPE_CHECKING:
    from bethink.ingest.sync import Synced


def recall_record(arranged: Arranged) -> Json:
    """An answer in the index-and-details form."""
    topics = [
        {**pick(span, "id name summary session"), "memories": [hit.memory.id for hit in together]}
        for span, together in arranged.topics
        if span
    ]
    value = pick(arranged.both, "query index details total_count has_more next tokens_used hints")
    return {**value, "topics": topics}


def version_records(events: Sequence[Event]) -> list[Json]:
    """Every version of a memory, numbered as `restore` takes them."""

    def read(fields: Values) -> object:
        kept = {name: from_history(name, value) for name, value in fields.items()}
        if "entities" in kept:
            kept["entities"] = fields["entities"]  # in pairs
        return to_json(kept)

    return [
        {
            "version": number,
            **pick(event, "at actor action"),
            "before": read(event.before),
            "after": read(event.after),
        }
        for number, event in enumerate(events, start=1)
    ]


def session_record(session: Session, spans: Sequence[Span] | None = None) -> Json:
    """A conversation, with its topics if there are any."""
    record = pick(session, "id scope host title source started_at ended_at digest")
    if spans is None:
        return record
    topics = [pick(span, "id parent name summary lines depth") for span in spans]
    return {**record, "topics": topics}


def sync_record(synced: "Synced") -> Json:
    """Numbers and names of the sources and memories that a sync changed."""
    return {
        "sources": synced.sources,
        "added": [path_of(uri) for uri in synced.added],
        "changed": [path_of(uri) for uri in synced.changed],
        "moved": [{"from": path_of(old), "to": path_of(new)} for old, new in synced.moved],
        "vanished": [path_of(uri) for uri in synced.vanished],
        "unchanged": synced.unchanged,
        "empty": synced.empty,
        "skipped": [{"source": path_of(uri), "reason": reason} for uri, reason in synced.skipped],
        "memories": {
            "added": synced.memories_added,
            "kept": synced.memories_kept,
            "retired": synced.memories_retired,
        },
    }
