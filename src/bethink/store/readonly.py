"""`ReadStore`: the reads of a store and nothing else, for a caller who may not change memories.

Access is an allow-list. A method of `Store` that is not named here does not exist on a `ReadStore`,
so a new writer, or raw SQL through `run`, is out of reach until it is added to this list. Counting
a use is part of reading.
"""

from bethink.store.base import Store


class ReadStore:
    """Reads of a store."""

    def __init__(self, store: Store) -> None:
        self.path = store.path
        # One memory at a time
        self.abbreviate = store.abbreviate
        self.around = store.around
        self.find_successors = store.find_successors
        self.get = store.get
        self.history = store.history
        self.list_events = store.list_events
        self.relations = store.relations
        self.resolve = store.resolve
        self.touch = store.touch
        self.trace_relations = store.trace_relations
        # Many memories
        self.count = store.count
        self.count_days = store.count_days
        self.duplicates = store.duplicates
        self.list = store.list
        self.scan = store.scan
        self.select = store.select
        # Sources and conversations
        self.find_known_turns = store.find_known_turns
        self.find_source = store.find_source
        self.list_passages = store.list_passages
        self.sessions = store.sessions
        self.sources = store.sources
        self.spans = store.spans
        self.spans_by_id = store.spans_by_id
        # The signals of a search
        self.answers = store.answers
        self.by_entity = store.by_entity
        self.find_failures = store.find_failures
        self.find_failures_by_cause = store.find_failures_by_cause
        self.candidates = store.candidates
        self.cosines = store.cosines
        self.embed_question = store.embed_question
        self.keys = store.keys
        self.keyword = store.keyword
        self.keyword_spans = store.keyword_spans
        self.list_in_spans = store.list_in_spans
        self.load = store.load
        self.nearest = store.nearest
        self.nearest_spans = store.nearest_spans
        self.statistics = store.statistics
        # Vectors
        self.count_unembedded = store.count_unembedded
        self.has_vectors = store.has_vectors
        self.list_unembedded = store.list_unembedded
        self.list_unembedded_spans = store.list_unembedded_spans
        self.models = store.models
        self.read_cache = store.read_cache
        # Between stores
        self.export = store.export
        self.find_purged = store.find_purged
        self.items = store.items
        self.records = store.records
        # About the database
        self.check = store.check
        self.list_note_names = store.list_note_names
        self.list_notes = store.list_notes
        self.overview = store.overview
        self.read_note = store.read_note
        self.scopes = store.scopes
        self.scope_paths = store.scope_paths
