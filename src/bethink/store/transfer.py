"""Taking what comes whole from another store: a `Bundle` is put down as it is, in one transaction.

Which of two versions is the right one is decided before, by `features/exchange.py` and `sync.py`. What the bundle
expects to find and does not, or what may not stand here, is left out and named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bethink.errors import InvalidInput, StoreError
from bethink.store import rows
from bethink.store.bundle import Bundle, Record, list_texts, version
from bethink.store.places import content_hash, embedded_text, find_living, find_purged
from bethink.store.rules import Writer

Expected = Mapping[str, bytes | None]  # id → the version that must be there; None: none may be
Known = Mapping[str, Record]  # what is there under the ids of a bundle


def take(writer: Writer, bundle: Bundle, known: Known, expect: Expected) -> tuple[str, ...]:
    """Puts a bundle down. Gives back the ids of memories that were not taken, or not removed."""
    for key, name, path in bundle.scopes:
        writer.run(
            "UPDATE scopes SET name = CASE name WHEN '' THEN ? ELSE name END,"
            " path = CASE path WHEN '' THEN ? ELSE path END WHERE id = ?",
            (name, path, writer.scope(key)),
        )
    for scope, source, read in bundle.sources:
        writer.read_source(writer.scope(scope), source, rows.stamp(read) or 0)
    for session in bundle.sessions:
        writer.run("DELETE FROM sessions WHERE id = ?", (session.id,))
        writer.put_session(session)
    writer.put_spans(bundle.spans)
    _take_salt(writer, bundle)
    left = _remove_records(writer, bundle.gone, known, expect)
    left += _take_records(writer, bundle.records, known, expect)
    _take_marks(writer, bundle)
    writer.settle()
    return left


def _take_salt(writer: Writer, bundle: Bundle) -> None:
    """Tombstones are hashes under a secret of their store, so the secret comes with them."""
    if not bundle.tombstones or bundle.salt == writer.salt():
        return
    if writer.one("SELECT 1 FROM tombstones LIMIT 1"):
        raise StoreError(
            "This database remembers purged memories of its own in another way.",
            "Migrate into an empty database.",
        )
    try:
        if not 16 <= len(bytes.fromhex(bundle.salt)) <= 64:
            raise ValueError
    except ValueError:
        raise InvalidInput(
            "The tombstones come without the secret that they were made with.", "Export them again."
        ) from None
    writer.run("UPDATE meta SET value = ? WHERE key = 'salt'", (bundle.salt,))


def _take_marks(writer: Writer, bundle: Bundle) -> None:
    """Relations, messages that were taken in, and tombstones."""
    writer.put_relations(
        [(one, rows.stamp(one.created_at) or 0, actor) for one, actor in bundle.relations]
    )
    turns = [(writer.scope(scope), identity) for scope, identity in bundle.turns]
    writer.put("turns", [{"scope": scope, "identity": identity} for scope, identity in turns])
    stones = [{"scope": 0, "hash": hash, "at": rows.stamp(at)} for hash, at in bundle.tombstones]
    writer.put("tombstones", stones)
    for part in ("relations", "turns", "tombstones"):
        if number := len(getattr(bundle, part)):
            writer.audit(f"take {part}", number)


# Memories


def _remove_records(
    writer: Writer, gone: Sequence[str], known: Known, expect: Expected
) -> tuple[str, ...]:
    """Takes memories out. Gives back those that are not what was expected."""
    if not gone:
        return ()
    left = tuple(id for id in gone if id in known and id in expect and _differs(id, known, expect))
    ids = [id for id in gone if id not in left]
    found = writer.run("SELECT key FROM memories WHERE id = ANY(?)", (ids,))
    writer.remove([key for (key,) in found])
    writer.release(ids)
    writer.audit("remove", *ids)
    return left


def _differs(id: str, known: Known, expect: Expected) -> bool:
    """Whether something else is there than what was expected, if anything was."""
    return id in expect and expect[id] != (version(known[id]) if id in known else None)


def _take_records(
    writer: Writer, records: Sequence[Record], known: Known, expect: Expected
) -> tuple[str, ...]:
    """Puts memories in, or in the place of what they were. Gives back those that are not what was expected, or may not stand."""
    if not records:
        return ()
    records = list({one.memory.id: one for one in records}.values())
    places = {one.memory.id: writer.scope(one.memory.scope) for one in records}
    chosen = _choose_records(writer, records, places, known, expect)
    ids = [one.memory.id for one in chosen]
    keys = dict(writer.run("SELECT id, key FROM memories WHERE id = ANY(?)", (ids,)))
    writer.remove(list(keys.values()))
    for id in ids:
        keys.setdefault(id, writer.number("memories"))
    writer.put_records([(keys[one.memory.id], places[one.memory.id], one) for one in chosen])
    writer.audit("take", *ids)
    return tuple(one.memory.id for one in records if one.memory.id not in keys)


def _choose_records(
    writer: Writer,
    records: Sequence[Record],
    places: Mapping[str, int],
    known: Known,
    expect: Expected,
) -> list[Record]:
    """The records that are taken, with the vectors that they bring or that are there for the same text. Not taken is what
    stands in another scope, what was overtaken, a told text that is there already, and what was purged."""
    brought = {one.memory.id: _find_new_texts(one, known.get(one.memory.id)) for one in records}
    purged = set[str]()
    if not writer.batch.allow_purged:
        purged = find_purged(writer.run, set[str]().union(*brought.values()))
    hashes = {one.memory.content_hash for one in records if one.unique}
    living = find_living(writer.run, set(places.values()), hashes)
    chosen = []
    for record in records:
        memory, current = record.memory, known.get(record.memory.id)
        scope = places[memory.id]
        once = record.unique and memory.deleted_at is None
        if (
            (current and current.memory.scope != memory.scope)
            or _differs(memory.id, known, expect)
            or (once and living.get((scope, memory.content_hash), memory.id) != memory.id)
            or brought[memory.id] & purged
        ):
            continue
        if current and living.get(was := (scope, current.memory.content_hash)) == memory.id:
            del living[was]
        if once:
            living[scope, memory.content_hash] = memory.id
        if (
            current
            and not record.vectors
            and embedded_text(current.memory) == embedded_text(memory)
        ):
            record = record._replace(vectors=current.vectors)
        chosen.append(record)
    return chosen


def _find_new_texts(record: Record, current: Record | None) -> set[str]:
    """The hashes of the list_texts that a memory would bring in, those of its history included."""
    known = set(map(content_hash, list_texts(current))) if current else set()
    return {record.memory.content_hash, *map(content_hash, list_texts(record))} - known
