"""What commands, the HTTP API and agents' tools do alike, written once: which memories are meant, how a question is asked, what a
statement or a change holds, and the JSON values of answers. Takes checked values; nothing here prints,
pages or knows a caller."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bethink import ingest
from bethink.api import Bethink
from bethink.app.arguments import STATEMENT_TIMES, read_times
from bethink.app.records import recall_record as recall_record
from bethink.app.records import session_record as session_record
from bethink.app.records import sync_record as sync_record
from bethink.app.records import version_records as version_records
from bethink.app.render import Arranged, Form, arrange_answer, pick
from bethink.errors import BethinkError
from bethink.language.times import moment
from bethink.model import (
    EVERYTHING,
    PERSONAL,
    Answer,
    Filter,
    Memory,
    Passage,
    Values,
)
from bethink.store.places import EMBEDDING_TEXT
from bethink.text import as_entity, check_kind, split_lists

# In the index-and-details form a match costs about 20 tokens at least.
TOKENS_PER_LINE, FEWEST_LINES, MOST_LINES = 20, 5, 50
TIMES = ("since", "until", "as_of")


def make_filter(memory: Bethink, asked: Any, **more: Any) -> Filter:
    """The filter that the options of a search describe, as far as a surface has them. `more` overrides them."""
    now, given = memory.clock(), vars(asked)
    scopes: Sequence[str] = (PERSONAL,) if given.get("personal") else ()
    if given.get("all_projects"):
        scopes = memory.every_scope()
    session = given.get("session")
    wanted = {
        "kinds": split_lists(given.get("kind")),
        "entities": tuple(as_entity(name).name for name in split_lists(given.get("entity"))),
        "tags": split_lists(given.get("tag")),
        "sources": tuple(given.get("source") or ()),
        "session": memory.find_session(session, scopes).id if session else None,
        "hosts": split_lists(given.get("host")),
        "scopes": scopes,
        **{name: moment(text, now) for name in TIMES if (text := given.get(name))},
        **{name: given.get(name) for name in ("min_importance", "answered", *EVERYTHING)},
        **more,
    }
    return memory.filter(**wanted)


def search(memory: Bethink, question: str, asked: Any, **how: Any) -> Answer:
    """The answer to a question that is asked with the options of a search."""
    find: Callable[..., Answer] = memory.search
    if asked.hyde:
        from bethink.features import language

        find = partial(language.search, memory)
    return find(
        question,
        filter=make_filter(memory, asked),
        **pick(asked, "mode threshold"),
        profile=asked.intent,
        context=asked.context or "",
        **how,
    )


def recall(memory: Bethink, question: str, asked: Any, form: Form, **how: Any) -> Arranged:
    """The same in the index-and-details form, within the token budget that is asked for or set."""
    budget = asked.max_tokens or memory.config.max_tokens
    fitting = max(FEWEST_LINES, min(MOST_LINES, budget // TOKENS_PER_LINE))
    answer = search(
        memory, question, asked, limit=asked.limit or fitting, offset=asked.offset, **how
    )
    return arrange_answer(memory, answer, budget, form, asked.offset)


# What is told and changed


def make_passages(memory: Bethink, statements: Sequence[Values]) -> list[Passage]:
    """What is to be remembered, if it can be: of several with a wrong one nothing is stored, and it is named by its place."""
    passages = []
    for at, given in enumerate(statements):
        try:
            values = read_times(given, memory.clock())
            if text := values.get("embedding_text"):
                values["metadata"] = {**values["metadata"], EMBEDDING_TEXT: text}
            values |= {
                "kind": check_kind(given["kind"]),
                "tags": tuple(given["tags"]),
                "entities": tuple(as_entity(name) for name in given["entities"] if name.strip()),
                "supersedes": tuple(memory.resolve(id) for id in given["supersedes"]),
            }
            known = {name: value for name, value in values.items() if name in Passage._fields}
            passages.append(Passage(**known))
            ingest.pipeline.clean_passage(passages[-1], memory.config.max_characters)
        except BethinkError as error:
            message = f"memories[{at}]: {error.message} Nothing was stored."
            raise type(error)(message, error.hint) from error
    return passages


def update(memory: Bethink, id: str, given: Values, was: Memory | None = None) -> Memory:
    """Changes what is given; a time or `answered` that is None is emptied. Given as it `was` read, a memory is changed only if
    nobody else changed it since."""
    times = {name: field for name, (field, _) in STATEMENT_TIMES.items()}
    empty = [name for name, value in given.items() if value is None]
    clear = [times.get(name, name) for name in empty if name in times or name == "answered"]
    return memory.update(id, clear=clear, was=was, **read_times(given, memory.clock()))
