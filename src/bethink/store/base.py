"""The `Store` class: the contract that both databases implement and one test suite checks.

All writes go through `write(Batch)`, which applies a batch completely or not at all. Complete
records from another store go in through `take(Bundle)`. Reads never change anything. Scopes are
part of every filter: a read without a scope finds nothing. This module holds the code that both
databases share, in the SQL notation that `rows` explains. A database adds `run`, `_write_in`, its
word index and its vectors.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bethink.errors import Ambiguous, NotFound, StoreCorrupt
from bethink.model import (
    NOTHING,
    Batch,
    Candidate,
    Candidates,
    Event,
    Filter,
    Memory,
    Query,
    Ranking,
    Receipt,
    Relation,
    Session,
    Source,
    Span,
    StoredPassage,
    Strings,
    Words,
    turn_of,
)
from bethink.store import rows
from bethink.store.places import MEMORIES, TOPICS, Index
from bethink.store.rows import (
    Cosines,
    Ids,
    Keys,
    Reader,
    Record,
    Rows,
    Scopes,
    Stored,
    Where,
    within,
)
from bethink.store.rules import Writer
from bethink.store.words import count_occurrences, hash_word, pair_hash

if TYPE_CHECKING:
    from bethink.embed.base import Embedder
    from bethink.store.transfer import Bundle, Expected

# The first 13 characters of an id are its millisecond: shorter ones stop being unique with the next memory.
_SHORTEST = 13
_PAGE = 500
DAY = 86_400_000  # milliseconds
_NOTE = "note:"  # before the names of notes among the other facts about the database
# Invariants of every database: part, repair, message for each row found, and the statement that finds violations.
CHECKS = """
word counts | rebuild | {} memories, but {} are counted. | SELECT a.n, b.n FROM (SELECT count(*) AS n FROM memories) a, (SELECT coalesce(sum(memories), 0) AS n FROM scopes) b WHERE a.n <> b.n
vectors | reindex | {} vectors belong to no memory. | SELECT count(*) FROM vectors v WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.key = v.memory) HAVING count(*) > 0
"""

Result = TypeVar("Result")


class Statistics(NamedTuple):
    """Numbers that word weights are computed from, counted in the searched scopes only."""

    memories: int
    average_length: float
    counts: tuple[int, ...]  # memories that hold each word of the question
    # of the question against every memory in scope, where it has a vector
    mean_cosine: float | None = None


class Problem(NamedTuple):
    """Finding of `check`. `repair` names the fix: 'reindex', 'restore', 'permissions' or ''."""

    part: str
    message: str
    repair: str = ""


Problems = list[Problem]
Scores = list[tuple[str, float]]  # ids of topics and how well each fits
# Short names: `list` is a method of a store.
Names = list[str]
Memories = list[Memory]
Sessions = list[Session]
Spans = list[Span]


class Overview(NamedTuple):
    memories: int
    deleted: int
    by_kind: Mapping[str, int]
    by_scope: Mapping[str, int]
    entities: int
    relations: int
    sources: int
    sessions: int
    spans: int
    vectors: Mapping[str, int]  # model → vectors
    unembedded: int
    database_bytes: int
    cached: int


class Store(Reader):
    """Memories in one database. Methods that raise NotImplementedError belong to the database."""

    path: Any  # location of the database, as shown to users
    columns: str  # rows.COLUMNS, with the database's own way to put rows into JSON
    signature: str  # SQL for the signature of a failure, as it is indexed
    causes: str  # SQL for the table of the causes of a failure, with the column `value`
    checks: str  # more lines of CHECKS
    deep_checks: str = ""  # those that read every row
    unreadable: tuple[type[Exception], ...] = (StoreCorrupt,)  # errors that mean damage

    def __init__(self) -> None:
        self._scope_ids: dict[str, int] = {}
        self._model_ids: dict[str, int] = {}

    def _last_key(self) -> int:
        """The highest key that a memory may have."""
        raise NotImplementedError

    def _scopes(self, keys: Scopes) -> list[int]:
        """Return the numbers of these scopes; cached, because the number of a scope never changes."""
        unknown = [key for key in dict.fromkeys(keys) if key not in self._scope_ids]
        if unknown:
            found = self.run("SELECT key, id FROM scopes WHERE key = ANY(?)", unknown)
            self._scope_ids.update(found)
        return [self._scope_ids[key] for key in dict.fromkeys(keys) if key in self._scope_ids]

    def _within(self, column: str, scopes: Scopes | None) -> str:
        return within(column, None if scopes is None else self._scopes(scopes))

    def _where(self, filter: Filter, by_key: bool = False) -> Where:
        return rows.where(filter, self._scopes(filter.scopes), by_key)

    def _memories(self, condition: str, *values: object) -> Memories:
        sql = f"SELECT {self.columns} FROM {rows.JOINS} WHERE {condition}"
        return [rows.memory(row) for row in self.run(sql, *values)]

    def _read(self, kind: object, sql: str, *values: object) -> Rows:
        """Values of a kind, built from rows that contain their fields in order."""
        return [rows.read(kind, row) for row in self.run(sql, *values)]

    # One memory at a time

    def resolve(self, prefix: str, scopes: Scopes | None = None) -> str:
        """The one id that starts with `prefix`. NotFound and Ambiguous otherwise."""
        text = spell_id(prefix)
        seen = self._within("+scope", scopes)
        sql = f"SELECT id FROM memories WHERE id >= ? AND id < ? AND {seen} ORDER BY id LIMIT 4"
        found = self.column(sql, text, text + "g")
        if not found:
            raise NotFound(
                f"There is no memory whose id starts with '{prefix}'.",
                "`bethink list` shows ids; `--include-deleted` shows forgotten ones, `--all-projects` those of other projects.",
            )
        if len(found) > 1 and found[0] != text:
            shown = ", ".join(self.abbreviate(found).values())
            raise Ambiguous(
                f"'{prefix}' fits several memories: {shown}.",
                "Type a few more characters of the id.",
            )
        return str(found[0])

    def get(self, ids: Ids) -> Memories:
        """The memories of these ids that exist, in the order asked for."""
        some = self._memories("m.id = ANY(?)", ids) if ids else []
        found = {memory.id: memory for memory in some}
        return [found[id] for id in ids if id in found]

    def select(self, ids: Ids, filter: Filter) -> dict[str, Memory]:
        """Those of these memories that pass a filter, by id."""
        if not ids:
            return {}
        shown, values = self._where(filter, by_key=True)
        found = self._memories(f"m.id = ANY(?) AND {shown}", ids, *values)
        return {memory.id: memory for memory in found}

    def history(self, id: str) -> list[Event]:
        sql = f"{rows.EVENT} JOIN memories m ON m.key = h.memory WHERE m.id = ? ORDER BY h.number"
        return self._read(Event, sql, id)

    def list_events(self, scopes: Scopes, actor: str, limit: int) -> list[tuple[str, Event]]:
        """Newest changes of memories by an actor, with their ids, without those that reading a source made."""
        seen = self._within("m.scope", scopes)
        sql = (
            f"{rows.EVENT_OF} JOIN memories m ON m.key = h.memory WHERE {seen} AND h.actor = ?"
            # By time: a sync gives the events of other machines the newest numbers.
            f" AND ({rows.IS_NOTE} OR h.action NOT IN {rows.READING}) ORDER BY h.at DESC, h.number DESC LIMIT ?"
        )
        return [(row[-1], rows.read(Event, row)) for row in self.run(sql, actor, limit)]

    def relations(self, ids: Ids) -> list[Relation]:
        ends = (f"{rows.RELATION} WHERE {end} = ANY(?)" for end in ("source", "target"))
        return self._read(
            Relation, f"{' UNION '.join(ends)} ORDER BY created_at, source, target", ids, ids
        )

    def trace_relations(self, ids: Ids, steps: int) -> list[Relation]:
        """Relations of these memories and of the memories they replaced, up to `steps` back."""
        sql = (
            "WITH RECURSIVE replaced(id, step) AS ("
            " SELECT id, 1 FROM memories WHERE id = ANY(?)"
            " UNION SELECT r.target, p.step + 1 FROM replaced p JOIN relations r ON r.source = p.id"
            " WHERE r.type = 'supersedes' AND p.step < ?)"
            f" {rows.RELATION} WHERE type = 'supersedes' AND source IN (SELECT id FROM replaced) UNION"
            f" {rows.RELATION} WHERE source = ANY(?) UNION {rows.RELATION} WHERE target = ANY(?)"
            " ORDER BY created_at, source, target"
        )
        return self._read(Relation, sql, ids, steps, ids, ids)

    def find_successors(self, ids: Ids) -> dict[str, int]:
        """Map each id to the key of the last memory in its chain of replacements.

        A memory that was never replaced maps to its own key. Memories whose chain is broken are
        omitted.
        """
        if not ids:
            return {}
        sql = (
            "WITH RECURSIVE chain(id, key, next) AS ("
            " SELECT id, key, superseded_by FROM memories WHERE id = ANY(?)"
            " UNION SELECT m.id, m.key, m.superseded_by FROM chain c JOIN memories m ON m.id = c.next)"
            " SELECT id, key, next FROM chain"
        )
        links = {id: (key, following) for id, key, following in self.run(sql, ids)}
        ends: dict[str, int] = {}
        for start in ids:
            passed: dict[
                str, None
            ] = {}  # in order, and each once: damaged data may go round in circles
            id: str | None = start
            while id and id in links and id not in ends and id not in passed:
                passed[id] = None
                id = links[id][1]
            end = ends.get(id or "", 0)
            if id is None:
                end = links[next(reversed(passed))][0]
            ends.update(dict.fromkeys(passed, end))
        return {id: ends[id] for id in ids if ends.get(id)}

    def abbreviate(self, ids: Ids) -> dict[str, str]:
        """Shorten each id to a unique prefix that stays unique when the next memory is added."""
        sql = (
            "SELECT m.id, (SELECT max(id) FROM memories WHERE id < m.id),"
            " (SELECT min(id) FROM memories WHERE id > m.id) FROM memories m WHERE m.id = ANY(?)"
        )
        near = {id: beside for id, *beside in self.run(sql, ids)}
        return {id: _shorten(id, near.get(id, ())) for id in ids}

    # Many memories

    def list(
        self, filter: Filter, limit: int = 50, offset: int = 0, order: str = "created"
    ) -> Memories:
        # By what some memories name, not through the whole scope in order.
        sql, values = self._where(filter, by_key=bool(filter.entities))
        return self._memories(
            f"{sql} ORDER BY {rows.ORDER_CLAUSES[order]} LIMIT ? OFFSET ?", *values, limit, offset
        )

    def count(self, filter: Filter) -> int:
        shown, values = self._where(filter)
        counted = "SELECT count(*) FROM memories m WHERE"
        if rows.is_narrow(filter):
            return int(self.column(f"{counted} {shown}", *values)[0])
        # Everything but the few that are hidden: both numbers are there without reading every memory.
        scopes = self._scopes(filter.scopes)
        hidden = f"{within('m.scope', scopes)} AND ({rows.HIDDEN}) AND NOT ({shown})"
        total = f"SELECT coalesce(sum(memories), 0) FROM scopes WHERE {within('id', scopes)}"
        return int(self.column(f"SELECT ({total}) - ({counted} {hidden})", *values)[0])

    def count_days(self, scopes: Scopes, since: datetime) -> dict[date, int]:
        """Count memories per day (UTC), including forgotten ones; reads only an index."""
        seen = self._within("m.scope", scopes)
        sql = f"SELECT m.created_at / {DAY}, count(*) FROM memories m WHERE {seen} AND m.created_at >= ? GROUP BY 1"
        found = self.run(sql, rows.stamp(since))
        return {rows.instant(day * DAY).date(): count for day, count in found}

    def scan(self, filter: Filter, lost: Names | None = None) -> Iterator[Memory]:
        """Yield all matching memories, oldest first, without loading them all at once.

        Damage raises an error. With `lost`, unreadable memories are recorded there and the scan
        goes on.
        """
        # The damaged part may be the index of scopes, so a tolerant scan goes by key.
        for row in self._scan_rows(*self._where(filter, by_key=lost is not None), lost):
            try:
                yield rows.memory(row)
            except StoreCorrupt:
                if lost is None:
                    raise
                lost.append(f"number {row[0]}")

    def _scan_rows(self, where: str, values: Sequence[Any], lost: Names | None) -> Iterator[Any]:
        """Yield rows of memories by page, and one by one within a page that cannot be read.

        So damage costs only the memories it hit.
        """
        sql = (
            f"SELECT {self.columns} FROM {rows.JOINS}"
            f" WHERE {where} AND m.key BETWEEN ? AND ? ORDER BY m.key LIMIT {_PAGE}"
        )
        first, last, careful = 1, self._last_key(), 0
        while first <= last:
            end = first if first < careful else last
            try:
                found = self.run(sql, *values, first, end)
            except StoreCorrupt:
                if lost is None:
                    raise
                if end == first:
                    lost.append(f"number {first}")
                    first += 1
                else:
                    careful = first + _PAGE
                continue
            yield from found
            first = found[-1][0] + 1 if len(found) == _PAGE else end + 1

    def duplicates(self, hashes: Sequence[str], scope: str) -> dict[str, str]:
        """Map content hashes to the ids of live memories in the scope with the same text."""
        found = self.find_living(self._scopes([scope]), hashes)
        return {hash: id for (_, hash), id in found.items()}

    def find_source(self, uri: str) -> tuple[str, Source] | None:
        """Find a source by URI, with the scope that tracks how far it was read.

        Conversations of several projects may share a file.
        """
        sql = f"{rows.SOURCE} WHERE o.uri = ? ORDER BY o.position DESC, o.id LIMIT 1"
        found = self.run(sql, uri)
        return (found[0][-1], rows.read(Source, found[0])) if found else None

    def sources(self, scope: str, collection: str | None = None) -> Sequence[Source]:
        """Sources of a scope in the order they were first read, optionally of one collection."""
        found = self._read(Source, f"{rows.SOURCE} WHERE s.key = ? ORDER BY o.id", scope)
        return [one for one in found if collection in (None, one.metadata.get("collection"))]

    def list_passages(self, scope: str, uri: str) -> Sequence[StoredPassage]:
        """Passages of a source in order, including forgotten and retired ones.

        Notes that name the source are left out.
        """
        last = "(SELECT action FROM history h WHERE h.memory = m.key ORDER BY number DESC LIMIT 1)"
        own = f"s.key = ? AND o.uri = ? AND NOT {rows.IS_NOTE} ORDER BY m.position, m.key"
        sql = f"SELECT {self.columns}, {last} FROM {rows.JOINS} WHERE {own}"
        return [StoredPassage(rows.memory(row), row[-1] or "") for row in self.run(sql, scope, uri)]

    def around(self, id: str, before: int, after: int) -> Memories:
        """Memories next to this one in its source, in order and including itself.

        For an idea from a conversation, these are the turns around it.
        """
        placed = f"m.id = ? AND {rows.SOURCE_TYPE} <> 'note'"
        found = self.run(f"SELECT m.source, m.position FROM {rows.JOINS} WHERE {placed}", id)
        if not found:  # a note has no position in its source: thousands may share one
            return [one for one in self.get([id]) if one.deleted_at is None]
        source, place = found[0][0], turn_of(found[0][1])
        beside = "m.source = ? AND m.position BETWEEN ? AND ? AND m.deleted_at IS NULL"
        beside += f" AND NOT {rows.IS_NOTE} ORDER BY m.position, m.key LIMIT 200"
        return self._memories(beside, source, place - before, place + after)

    # Conversations

    def sessions(
        self,
        scopes: Scopes,
        limit: int = 50,
        offset: int = 0,
        prefix: str | None = None,
        host: str | None = None,
    ) -> Sessions:
        """List sessions, newest first; with `prefix`, those whose id starts with it, exact match first."""
        chosen = self._within("n.scope", scopes)
        order, values = "n.started_at DESC NULLS LAST, n.id", list[Any]()
        if host:
            chosen, values = f"{chosen} AND n.host = ?", [host]
        if prefix is not None:
            chosen, order = f"{chosen} AND n.id >= ? AND n.id < ?", "n.id"
            values += [prefix, prefix + "\U0010ffff"]
        sql = f"{rows.SESSION} WHERE {chosen} ORDER BY {order} LIMIT ? OFFSET ?"
        return self._read(Session, sql, *values, limit, offset)

    def spans(self, session: str, scopes: Scopes) -> Spans:
        """The topics of a session in the order of the conversation, parents before their children."""
        seen = self._within("p.scope", scopes)
        sql = f"{rows.SPAN} WHERE p.session = ? AND {seen} ORDER BY p.line_start, p.depth, p.key"
        return self._read(Span, sql, session)

    def spans_by_id(self, ids: Ids, scopes: Scopes) -> dict[str, Span]:
        seen = self._within("p.scope", scopes)
        found = self._read(Span, f"{rows.SPAN} WHERE p.id = ANY(?) AND {seen}", ids)
        return {span.id: span for span in found}

    def find_known_turns(self, scope: str, identities: Sequence[bytes]) -> set[bytes]:
        """Return those of these messages that were ingested before, even if forgotten or purged."""
        return {turn for _, turn in self.find_turns(self._scopes([scope]), identities)}

    def find_failures(self, signatures: Sequence[str], filter: Filter) -> Memories:
        """Failures whose error has one of these signatures, newest first."""
        shown, values = self._where(filter, by_key=True)
        order = "ORDER BY m.updated_at DESC, m.key DESC"
        return self._memories(
            f"m.kind = 'failure' AND {self.signature} = ANY(?) AND {shown} {order}",
            list(signatures),
            *values,
        )

    def find_failures_by_cause(self, causes: Sequence[str], filter: Filter) -> Memories:
        """Failures with one of these causes, newest first."""
        shown, values = self._where(filter, by_key=True)
        same = f"EXISTS (SELECT 1 FROM {self.causes} WHERE value = ANY(?))"
        order = "ORDER BY m.updated_at DESC, m.key DESC"
        return self._memories(
            f"m.kind = 'failure' AND {same} AND {shown} {order}", list(causes), *values
        )

    def list_in_spans(self, ids: Ids, filter: Filter, limit: int) -> Keys:
        """Keys of decisions, questions and solutions in these topics, without the turns themselves."""
        shown, values = self._where(filter, by_key=True)
        selected = (
            f"m.span = ANY(?) AND m.kind <> 'context' AND {shown} ORDER BY m.importance DESC, m.key"
        )
        return self.column(
            f"SELECT m.key FROM memories m WHERE {selected} LIMIT ?", ids, *values, limit
        )

    # For the signals of a search

    def by_entity(self, names: Sequence[str], filter: Filter, limit: int) -> Ranking:
        sql, values = self._where(filter, by_key=True)
        found = self.run(
            "SELECT m.key, count(*) AS n FROM entities e JOIN memory_entities me ON me.entity = e.id"
            f" JOIN memories m ON m.key = me.memory WHERE e.folded = ANY(?) AND {sql}"
            " GROUP BY m.key, m.created_at ORDER BY n DESC, m.created_at DESC LIMIT ?",
            [name.casefold() for name in names],
            *values,
            limit,
        )
        return tuple((key, float(count)) for key, count in found)

    def statistics(self, words: Words, scopes: Scopes) -> Statistics:
        ids = self._scopes(scopes)
        memories, length = self.run(
            "SELECT CAST(coalesce(sum(memories), 0) AS bigint), CAST(coalesce(sum(words), 0) AS bigint)"
            f" FROM scopes WHERE {within('id', ids)}"
        )[0]
        counts = self._document_counts(words.lexemes, ids)
        average = length / memories if memories else 0.0
        return Statistics(memories, average, tuple(counts[word] for word in words.lexemes))

    def _document_counts(self, words: Iterable[str], scopes: Keys) -> dict[str, int]:
        """Count the memories in these scopes that contain each word."""
        hashes = {word: hash_word(word) for word in words}
        found = dict(
            self.run(
                f"SELECT hash, CAST(sum(memories) AS bigint) FROM lexeme_counts WHERE {within('scope', scopes)}"
                f" AND hash IN ({','.join(map(str, hashes.values())) or 'NULL'}) GROUP BY hash"
            )
        )
        return {word: found.get(hash, 0) for word, hash in hashes.items()}

    def candidates(
        self, keys: Keys, filter: Filter, words: Words, worded: Collection[int]
    ) -> Candidates:
        """Load the values that scoring needs; memories hidden by the filter are left out.

        Words are counted only in the memories of `worded`.
        """
        sql, values = self._where(filter, by_key=True)
        found = self.run(
            "SELECT m.key, m.kind, m.importance, m.confidence, m.usefulness, m.access_count,"
            " CAST(m.created_at AS float8) / 1000, CAST(coalesce(m.last_accessed, m.created_at) AS float8) / 1000,"
            " m.trust, m.source, m.position, m.superseded_by, m.span, m.length, m.lexemes"
            f" FROM memories m WHERE m.key = ANY(?) AND {sql}",
            keys,
            *values,
        )
        place = {key: at for at, key in enumerate(keys)}
        found.sort(key=lambda row: place[row[0]])
        single = [hash_word(word) for word in words.lexemes]
        double = [pair_hash(pair) for pair in words.pairs]
        return [
            Candidate._make(
                (*row, *count_occurrences(packed if row[0] in worded else None, single, double))
            )
            for *row, packed in found
        ]

    def answers(self, keys: Keys) -> Sequence[tuple[int, str]]:
        """Pairs of a question's or problem's key and the id of its answer."""
        return self.run(
            "SELECT m.key, r.source FROM memories m JOIN relations r ON r.target = m.id"
            " WHERE m.key = ANY(?) AND r.type = 'answers' ORDER BY m.key, r.source",
            keys,
        )

    def keys(self, ids: Ids) -> dict[str, int]:
        return dict(self.run("SELECT id, key FROM memories WHERE id = ANY(?)", ids))

    def load(self, keys: Keys) -> dict[int, Memory]:
        sql = f"SELECT {self.columns} FROM {rows.JOINS} WHERE m.key = ANY(?)"
        return {row[0]: rows.memory(row) for row in self.run(sql, keys)}

    # Vectors

    def models(self) -> Names:
        """Models that have any vectors."""
        used = "SELECT 1 FROM vectors v WHERE v.model = d.id"
        return self.column(f"SELECT d.name FROM models d WHERE EXISTS ({used}) ORDER BY d.id")

    def _model_id(self, name: str) -> int:
        """Return the number of a model, or -1 if it is unknown. Numbers never change."""
        if name not in self._model_ids:
            self._model_ids.update(self.run("SELECT name, id FROM models"))
        return self._model_ids.get(name, -1)

    def read_cache(self, hashes: Sequence[bytes], model: str) -> dict[bytes, Any]:
        """Map hashes of texts to their vectors: those of memories, and cached ones of texts that have none."""
        from bethink.store.vectors import decode, encoded_size

        found = self.run(
            "SELECT c.hash, c.data, d.dimensions FROM embedding_cache c JOIN models d ON d.id = c.model"
            " WHERE d.name = ? AND c.hash = ANY(?)",
            model,
            hashes,
        )
        found += self._find_owned(hashes, model)
        return {
            bytes(hash): [decode(data[at : at + size]) for at in range(0, len(data), size)]
            for hash, data, dimensions in found
            if len(data) % (size := encoded_size(dimensions)) == 0
        }

    def _find_owned(self, hashes: Sequence[bytes], model: str) -> Rows:
        """Find vectors of memories by the hash of their text: (hash, all vectors, dimensions)."""
        sql = (
            f"SELECT o.text, o.memory, (SELECT dimensions FROM models WHERE id = o.model), {self.stored}"
            " FROM vectors o CROSS JOIN vectors v WHERE v.memory = o.memory AND v.model = o.model"
            f" AND o.model = ? AND o.text = ANY(?) AND o.text IS NOT NULL ORDER BY o.memory, {self.order}"
        )
        found: dict[bytes, list[Any]] = {}
        for hash, memory, dimensions, *stored in self.run(sql, self._model_id(model), hashes):
            own = found.setdefault(bytes(hash), [memory, dimensions, b""])
            if own[0] == memory:  # of several with the same text, the first
                own[2] += self.encode_stored(*stored)
        return [(hash, data, dimensions) for hash, (_, dimensions, data) in found.items()]

    def has_vectors(self, model: str, scopes: Scopes) -> bool:
        """Return True if any memory of these scopes has a vector of this model."""
        known = self._within("scope", scopes)
        sql = f"SELECT 1 FROM vectors WHERE model = ? AND {known} LIMIT 1"
        return bool(self.run(sql, self._model_id(model)))

    def list_unembedded(self, model: str, limit: int, scopes: Scopes | None = None) -> Memories:
        """Memories that need a vector of this model and have none: oldest first, of some scopes newest first."""
        seen, order = self._within("m.scope", scopes), "m.key" if scopes is None else "m.key DESC"
        bare = f"{rows.BARE_OF} AND NOT ({rows.UNWANTED}) AND {seen} ORDER BY {order} LIMIT ?"
        return self._memories(bare, self._model_id(model), limit)

    def count_unembedded(self, model: str, scopes: Scopes | None = None) -> int:
        seen = self._within("m.scope", scopes)
        bare = f"SELECT count(*) FROM memories m WHERE {rows.BARE_OF} AND {seen}"
        id = self._model_id(model)
        return int(self.column(f"SELECT ({bare}) - ({bare} AND {rows.UNWANTED})", id, id)[0])

    def list_unembedded_spans(self, model: str, limit: int, scopes: Scopes | None = None) -> Spans:
        """Topics that need a vector of this model and have none; purged topics need none."""
        missing = "NOT EXISTS (SELECT 1 FROM span_vectors v WHERE v.span = p.key AND v.model = ?)"
        seen = self._within("p.scope", scopes)
        sql = f"{rows.SPAN} WHERE (p.name <> '' OR p.summary <> '') AND {missing} AND {seen} ORDER BY p.key LIMIT ?"
        return self._read(Span, sql, self._model_id(model), limit)

    # Care

    def scopes(self) -> dict[str, str]:
        """Map every scope to its display name."""
        return dict(self.run("SELECT key, name FROM scopes ORDER BY key"))

    def scope_paths(self) -> dict[str, str]:
        """Map every scope to the folder of its project, as far as it is known."""
        return dict(self.run("SELECT key, path FROM scopes WHERE path <> ''"))

    def overview(self, scopes: Scopes | None = None) -> Overview:
        """Count everything in the database, from indexes plus the few rows of hidden memories."""
        inside = self._within("m.scope", scopes)
        known = dict(self.run("SELECT id, key FROM scopes"))
        found = f"FROM memories m WHERE {inside}"
        counted = f"SELECT m.scope, m.kind, count(*) {found} GROUP BY m.scope, m.kind"
        # Not grouped in SQL: SQLite would then scan all memories in the order of their kinds.
        hidden = self.run(f"SELECT m.scope, m.kind, -1 {found} AND {rows.FORGOTTEN}")
        by_scope, by_kind = Counter[str](), Counter[str]()
        for scope, kind, number in (*self.run(counted), *hidden):
            by_scope[known[scope]] += number
            by_kind[kind] += number
        tables = ("entities", "relations", "sources", "sessions", "spans")
        numbers = {table: self.column(f"SELECT count(*) FROM {table}")[0] for table in tables}
        bare = f"(SELECT count(*) FROM memories m WHERE {rows.BARE}"
        unembedded = f"SELECT {bare}) - {bare} AND {rows.FORGOTTEN}) - {bare} AND {rows.UNWANTED} AND m.deleted_at IS NULL)"
        vectors = "SELECT d.name, count(*) FROM models d JOIN vectors v ON v.model = d.id GROUP BY d.id, d.name ORDER BY d.id"
        return Overview(
            memories=by_scope.total(),
            deleted=len(hidden),
            by_kind=_order_counts(by_kind),
            by_scope=_order_counts(by_scope),
            **numbers,
            vectors=dict(self.run(vectors)),
            unembedded=self.column(unembedded)[0],
            database_bytes=self._size(),
            cached=self.column("SELECT count(*) FROM embedding_cache")[0],
        )

    def _size(self) -> int:
        """Size of the database in bytes."""
        raise NotImplementedError

    # Writing

    def _write_in(self, batch: Batch, action: Callable[[Writer], Result]) -> Result:
        """Run an action with a writer for this batch, in one transaction."""
        raise NotImplementedError

    def write(self, batch: Batch) -> Receipt:
        return self._write_in(batch, lambda writer: writer.apply())

    def touch(self, ids: Ids, at: datetime, actor: str) -> None:
        """Count a use of these memories."""
        self.write(Batch(at=at, actor=actor, access=tuple(ids)))

    def rebuild(self) -> int:
        """Rebuild the full-text index and the word counts from the texts."""
        return self._write_in(now(), lambda writer: writer.rebuild())

    def drop_vectors(self, model: str | None = None) -> int:
        """Delete the vectors of one model, or of all models.

        The row of the model stays, because other processes cache its number.
        """

        def drop(writer: Writer) -> int:
            some = "1 = 1" if model is None else f"model = {self._model_id(model)}"
            (number,) = writer.one(f"SELECT count(*) FROM vectors WHERE {some}")
            for table in ("vectors", "span_vectors", "embedding_cache"):
                writer.run(f"DELETE FROM {table} WHERE {some}")
            if number:
                writer.audit("drop_vectors", model or "all")
            return int(number)

        return self._write_in(now(), drop)

    def reset(self, scopes: Scopes | None = None) -> int:
        """Delete everything, or everything in some scopes, beyond recovery."""
        ids = None if scopes is None else self._scopes(scopes)
        return self._write_in(now(), lambda writer: writer.reset(ids))

    # Between stores

    def export(
        self, part: str, scopes: Scopes | None = None, vectors: bool = True, size: int = _PAGE
    ) -> Iterator["Bundle"]:
        """Yield a part (`transfer.PARTS`) in bundles of at most `size` items."""
        keys, select, scope = rows.EXPORTS[part]
        where = self._within(scope, scopes) if scope else "1 = 1"
        select = select.replace("{columns}", self.columns).replace("SELECT", f"SELECT {keys},", 1)
        from bethink.store.transfer import Bundle  # no search needs it

        width = len(keys.split(", "))
        last: Sequence[Any] = ()
        while True:
            behind = f" AND ({keys}) > ({rows.marks(last)})" if last else ""
            sql = f"{select} WHERE {where}{behind} ORDER BY {keys} LIMIT {size}"
            found = self.run(sql, *last)
            if not found:
                return
            last = found[-1][:width]
            items = self._export_items(part, [(row[0], row[width:]) for row in found], vectors)
            bundle = Bundle(**{part: tuple(items)})  # type: ignore[arg-type]
            if part == "tombstones":
                secret = self.column("SELECT value FROM meta WHERE key = 'salt'")
                bundle = bundle._replace(salt=secret[0])
            yield bundle

    def items(self, part: str, scopes: Scopes | None = None, vectors: bool = True) -> Iterator[Any]:
        """Yield the items of a part, one by one."""
        for page in self.export(part, scopes, vectors):
            yield from getattr(page, part)

    def _export_items(self, part: str, found: Sequence[tuple[Any, Any]], vectors: bool) -> Rows:
        if part == "records":
            return self._build_records(found, vectors)
        if part == "spans":
            kept = self._stored_vectors(TOPICS, [key for key, _ in found]) if vectors else {}
            return [(rows.read(Span, row), kept.get(key, ())) for key, row in found]
        return [rows.ITEMS[part](row) for _, row in found]

    def records(self, ids: Ids, vectors: bool = True) -> Sequence[Record]:
        """Complete records of these memories, in no particular order; unknown ids are left out."""
        sql = f"SELECT {self.columns}, m.dedup FROM {rows.JOINS} WHERE m.id = ANY(?)"
        return self._build_records([(row[0], row) for row in self.run(sql, ids)], vectors)

    def _build_records(self, found: Sequence[tuple[int, Any]], vectors: bool) -> Rows:
        keys = [key for key, _ in found]
        kept = self._stored_vectors(MEMORIES, keys) if vectors else {}
        events = defaultdict[int, tuple[Event, ...]](tuple)
        asked = f"{rows.EVENT} WHERE h.memory = ANY(?) ORDER BY h.memory, h.number"
        for row in self.run(asked, keys):
            events[row[-1]] += (rows.read(Event, row),)
        return [
            Record(rows.memory(row), row[-1] is not None, events[key], kept.get(key, ()))
            for key, row in found
        ]

    def take(
        self,
        bundle: "Bundle",
        *,
        expect: "Expected" = NOTHING,
        allow_purged: bool = False,
        note: tuple[str, str] | None = None,
    ) -> Strings:
        """Store a bundle as it is, in one transaction with an optional note.

        Returns the ids of memories that were refused: their `version` is not the expected one
        (None: no such memory), another memory of the scope has the same text, or their text or
        history contains a purged text.
        """

        from bethink.store import transfer

        def take(writer: Writer) -> Strings:
            ids = [one.memory.id for one in bundle.records]
            known = {one.memory.id: one for one in self.records(ids)}
            left = transfer.take(writer, bundle, known, expect)
            if note is not None:
                writer.note_fact(_NOTE + note[0], note[1])
            return left

        return self._write_in(now()._replace(allow_purged=allow_purged), take)

    def read_note(self, name: str) -> str | None:
        """Return a note that was stored with a bundle."""
        found = self.column("SELECT value FROM meta WHERE key = ?", _NOTE + name)
        return next(iter(found), None)

    def list_notes(self, prefix: str) -> Names:
        """Notes whose name starts with `prefix`."""
        start = _NOTE + prefix
        return self.column("SELECT value FROM meta WHERE substr(key, 1, ?) = ?", len(start), start)

    # Care

    def check(self, deep: bool = False) -> Problems:
        """List problems of the database; `deep` reads every page and every row."""
        table = self.checks + CHECKS + (self.deep_checks if deep else "")
        looks = [partial(self._check_database, deep), partial(self._find_wrong, table)]
        looks += [partial(self._check_rows)] if deep else []
        problems: Problems = []
        for look in looks:
            try:
                problems += look()
            except self.unreadable as error:
                problems.append(Problem("database", f"A page cannot be read: {error}", "restore"))
        return problems

    def _find_wrong(self, table: str) -> Problems:
        """Run the statements of a table of checks and list the problems they find."""
        lines = (line.split(" | ") for line in table.split("\n") if line)
        return [
            Problem(part, message.format(*row), repair)
            for part, repair, message, sql in lines
            for row in self.run(sql)
        ]

    def _check_rows(self) -> Problems:
        """Read every memory and report those whose text differs from what was written."""
        bad: Names = []
        seen = 0
        for row in self._scan_rows("1 = 1", (), bad):
            seen += 1
            if not rows.is_intact(row):
                bad.append(row[1])
                seen -= 1
        torn = self.column("SELECT count(*) FROM memories")[0] - seen - len(bad)
        if torn > 0:
            bad.append(f"{torn} that lack their scope or source")
        message = "The stored row of {} is damaged."
        return [Problem("memory", message.format(id), "restore") for id in bad]

    def _stored_vectors(self, which: Index, keys: Keys) -> dict[int, Stored]:
        """Vectors of memories or topics, byte for byte."""
        found = defaultdict[int, Stored](tuple)
        sql = (
            f"SELECT v.{which.owner}, d.name, d.dimensions, {self.stored} FROM {which.table} v"
            f" JOIN models d ON d.id = v.model WHERE v.{which.owner} = ANY(?) ORDER BY 1, 2, {self.order}"
        )
        for key, model, dimensions, *stored in self.run(sql, keys):
            found[key] += ((model, dimensions, self.encode_stored(*stored)),)
        return found

    # Each database's own

    def _check_database(self, deep: bool) -> Problems:
        raise NotImplementedError

    def keyword(self, query: Query, filter: Filter, limit: int) -> Ranking:
        """Memories that contain words of a question, best first."""
        scopes = self._scopes(filter.scopes)
        if not scopes:
            return ()
        where = rows.where(filter, scopes, by_key=True)
        found: Rows = []
        if not rows.is_narrow(filter) and not query.strict and len(query.terms) > 1:
            found = self._find_by_words(query, scopes, where, limit)
        found = found or self._find_by_expression(query, scopes, where, limit)
        return tuple(found)

    def _find_by_words(self, query: Query, scopes: Keys, where: Where, limit: int) -> Rows:
        """Rank by the weights of matching words: (key, weight), each word looked up separately.

        Empty if hidden memories crowd out the others.
        """
        raise NotImplementedError

    def _find_by_expression(self, query: Query, scopes: Keys, where: Where, limit: int) -> Rows:
        """Rank by the whole question: (key, score). Slower, but not limited by hidden memories."""
        raise NotImplementedError

    def keyword_spans(self, query: Query, scopes: Scopes, limit: int) -> Scores:
        raise NotImplementedError

    def embed_question(self, text: str, embedder: "Embedder") -> Any:
        """Embed a question, or return the cached vector of the same question."""
        return embedder.query(text)

    def nearest(self, vector: Collection[float], model: str, filter: Filter, limit: int) -> Ranking:
        """Memories nearest to a vector."""
        raise NotImplementedError

    def nearest_spans(
        self, vector: Collection[float], model: str, scopes: Scopes, limit: int
    ) -> Scores:
        raise NotImplementedError

    def cosines(self, keys: Keys, vector: Collection[float], model: str, scopes: Scopes) -> Cosines:
        """Cosine of each of these memories with the vector, and the mean over all scopes."""
        raise NotImplementedError

    def backup(self, path: str) -> int:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def now() -> Batch:
    """Empty batch with the current time."""
    return Batch(at=datetime.now(UTC))


def _order_counts(counts: Counter[str]) -> dict[str, int]:
    """Sort counts by number, largest first, then by name; zeros are dropped."""
    return dict(sorted((+counts).items(), key=lambda one: (-one[1], one[0])))


def spell_id(prefix: str) -> str:
    """Normalise the prefix of an id: lower case, with dashes in place."""
    plain = prefix.strip().lower().replace("-", "")
    if not plain or plain.strip("0123456789abcdef"):
        raise NotFound(f"'{prefix[:100]}' is not the id of a memory.", "`bethink list` shows ids.")
    parts = (plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:])
    return "-".join(filter(None, parts))


def looks_like_id(text: str) -> bool:
    """Return True for text that can only be the beginning of an id, and not a word such as "add"."""
    plain = text.strip().lower().replace("-", "")
    return plain[:1].isdigit() and not plain.strip("0123456789abcdef")


def _shorten(id: str, neighbours: Sequence[str | None]) -> str:
    """Cut an id to the shortest prefix that its neighbours in sort order do not share."""
    shared = max((len(commonprefix([id, other])) for other in neighbours if other), default=0)  # noqa: RUF071
    size = max(_SHORTEST, shared + 1)
    return id[: size + 1] if size < len(id) and id[size - 1] == "-" else id[:size]
