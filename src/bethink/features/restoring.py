"""An export read back: the memories of a file that `bethink export` wrote, as JSON or as JSON lines, put in where they belong.

    read → check and redact → where each belongs, which are known → put in, page by page → relations

A memory keeps its id where that is free. One that is known, by its id or by its text, stays as it is, and what was purged does not come back;
so the same file may be read any number of times. An export holds neither history nor vectors nor topics: a memory's history begins
anew, and vectors are made. Who wrote the file is not known, so its memories are believed no further than other imports, unless told.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from bethink.api import Bethink
from bethink.errors import InvalidInput
from bethink.features.memorytool import SOURCE as TOOL_FILES
from bethink.ingest.conversation import identity
from bethink.ingest.redact import redact, redact_value
from bethink.store.bundle import Bundle, Record
from bethink.store.writer import content_hash
from bethink.text.checks import check_kind, check_range
from bethink.text.ids import new_id
from bethink.types import (
    PERSONAL,
    READINGS,
    RELATIONS,
    TEAM,
    TRUST,
    Batch,
    Entity,
    Event,
    Memory,
    Relation,
)

PAGE = 200
GZIP = b"\x1f\x8b"
TIMES = ("last_accessed", "valid_from", "valid_to", "expires_at", "deleted_at")
KNOWN, PURGED = "known", "purged"

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SCOPE = re.compile(r"project:[0-9a-f]{16}|container:[0-9a-f]{16}/[^\W_]+(-[^\W_]+)*")
_WRONG = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)

Progress = Callable[[int, int], None]


class Restored(NamedTuple):
    """What became of the memories of an export."""

    added: int = 0
    known: int = 0  # by id or text
    purged: int = 0  # that were purged here, and stay so
    redactions: int = 0
    relations: int = 0


class Given(NamedTuple):
    """A memory of the file, and those that it is related to."""

    memory: Memory
    relations: tuple[Relation, ...] = ()
    redactions: int = 0


def restore(
    memory: Bethink,
    file: Path,
    *,
    trusted: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Restored:
    """Takes an export in. Memories of one project go into this one, those of several each into its own; `trusted` believes each as far as
    the file says. Stopped at any moment it goes on when it is repeated."""
    given = [
        _given(value, number, file, memory, trusted)
        for number, value in enumerate(_values(file), start=1)
    ]
    given = _placed(memory, given)
    fate, names = _judged(memory, given)
    new = [_named(one, names) for one in given if fate[one.memory.id] == "added"]
    counts = Counter(fate.values())
    found = Restored(
        counts["added"], counts[KNOWN], counts[PURGED], sum(one.redactions for one in new)
    )
    if dry_run:
        return found
    for at in range(0, len(new), PAGE):
        left = _put(memory, new[at : at + PAGE])
        found = found._replace(added=found.added - left, known=found.known + left)
        if progress:
            progress(min(at + PAGE, len(new)), len(new))
    return found._replace(relations=_relate(memory, new))


# Reading


def _values(file: Path) -> Iterator[Any]:
    """The objects of an export, whichever of its forms it has."""
    wrong = f"{file} is no export of Bethink"
    try:
        raw = file.read_bytes()
        if raw.startswith(GZIP):
            import gzip

            raw = gzip.decompress(raw)
        text = raw.decode("utf-8-sig")
    except (UnicodeDecodeError, EOFError) as error:
        raise InvalidInput(
            f"{wrong}: {error}.", "`bethink export --output FILE` writes one."
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"{file} cannot be read: {error.strerror or error}.", "Check its permissions."
        ) from error
    try:
        if text.lstrip().startswith("["):
            yield from json.loads(text)
        else:
            yield from (json.loads(line) for line in text.splitlines() if line.strip())
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{wrong}: {error}.",
            "`bethink export --output FILE` writes one, as JSON or with --jsonl.",
        ) from None


def _given(value: Any, number: int, file: Path, memory: Bethink, trusted: bool) -> Given:
    try:
        return _checked(
            value, memory.config.max_characters, TRUST["user"] if trusted else TRUST["import"]
        )
    except InvalidInput as error:
        raise InvalidInput(f"Memory {number} of {file}: {error.message}", error.hint) from None
    except _WRONG as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)[:200]
        raise InvalidInput(
            f"Memory {number} of {file} is none of an export: {why}.",
            "`bethink export --output FILE` writes one.",
        ) from None


def _checked(value: Mapping[str, Any], longest: int, most: int) -> Given:
    """One object as a memory, with every value that our own pipeline would write and no secret."""
    clean, redactions = redact_value(
        {name: value.get(name) for name in ("section", "tags", "keywords", "metadata", "source")}
    )
    content, summary = redact(value["content"]), redact(value["summary"])
    if not content.text.strip() or len(content.text) > longest:
        raise ValueError(f"its text has {len(content.text):,} characters")
    times: dict[str, Any] = {
        name: datetime.fromisoformat(text) if (text := value.get(name)) else None for name in TIMES
    }
    lines = value.get("lines")
    id = value["id"] if _ID.fullmatch(value["id"]) else new_id()
    entities = tuple(
        Entity(redact(str(one["name"])).text, str(one["type"]))
        for one in value.get("entities") or ()
    )
    one = Memory(
        id=id,
        scope=str(value["scope"]),
        kind=check_kind(value["kind"]) or "general",
        content=content.text,
        summary=summary.text,
        created_at=datetime.fromisoformat(value["created_at"]),
        updated_at=datetime.fromisoformat(value["updated_at"]),
        **times,
        importance=check_range("importance", value["importance"], 0, 10) or 0.0,
        confidence=check_range("confidence", value["confidence"], 0, 1) or 0.0,
        usefulness=check_range("usefulness", value.get("usefulness", 0), -1e9, 1e9) or 0.0,
        access_count=int(check_range("access_count", value.get("access_count", 0), 0, 1e12) or 0),
        superseded_by=_text(value.get("superseded_by")),
        answered=None if value.get("answered") is None else bool(value["answered"]),
        content_hash=content_hash(content.text),
        source=str(clean["source"] or "import"),
        source_type=_type(value),
        lines=(int(lines[0]), int(lines[1])) if lines else None,
        position=int(value.get("position", 0)),
        section=_text(clean["section"]),
        session=_text(value.get("session")),
        tags=tuple(map(str, clean["tags"] or ())),
        keywords=tuple(map(str, clean["keywords"] or ())),
        entities=entities,
        metadata=dict(clean["metadata"] or {}),
        trust=min(int(check_range("trust", value.get("trust", most), 0, 3) or 0), most),
    )
    links = tuple(
        Relation(id, str(other["target"]), str(other["type"]), one.updated_at)
        for other in value.get("relations") or ()
        if other["type"] in RELATIONS
    )
    return Given(
        one,
        links,
        redactions + content.private + content.secrets + summary.private + summary.secrets,
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _type(value: Mapping[str, Any]) -> str:
    """What kind of source a memory came from; exports of older versions and of the server do not say it."""
    if value.get("source_type"):
        return str(value["source_type"])
    if value.get("path") is None:
        return "note"
    code, analysis, repo_map, _ = READINGS
    prefixes = {code: "repomap", repo_map: "repomap", analysis: "analysis"}
    guessed = next(
        (type for prefix, type in prefixes.items() if str(value.get("source")).startswith(prefix)),
        "markdown",
    )
    return "transcript" if value.get("session") else guessed


# Deciding


def _placed(memory: Bethink, given: Sequence[Given]) -> list[Given]:
    """Each with the scope that it goes to."""
    identities = {_identity(one.memory.scope) for one in given} - {""}

    def scope(old: str) -> str:
        if old in (PERSONAL, TEAM) and (old == PERSONAL or memory.shared):
            return old
        if len(identities) > 1 and _SCOPE.fullmatch(old):
            return old
        _, slash, name = old.partition("/")
        return memory.project.container(name) if slash else memory.scope

    return [
        one._replace(memory=one.memory._replace(scope=scope(one.memory.scope))) for one in given
    ]


def _identity(scope: str) -> str:
    return scope.partition(":")[2].partition("/")[0]


def _judged(memory: Bethink, given: Sequence[Given]) -> tuple[dict[str, str], dict[str, str]]:
    """What becomes of each, by its id in the file; and under which id it is known here, or will be."""
    fate: dict[str, str] = {}
    names: dict[str, str] = {}
    store = memory.store
    for at in range(0, len(given), PAGE):
        page = [one.memory for one in given[at : at + PAGE]]
        there = {
            one.id: one.scope
            for one in store.get([id for one in page for id in (one.id, _other(one))])
        }
        buried = store.tombstoned([one.content_hash for one in page])
        twins = {
            scope: store.duplicates([one.content_hash for one in page], scope)
            for scope in {one.scope for one in page}
        }
        for one in page:
            id = one.id if there.get(one.id, one.scope) == one.scope else _other(one)
            twin = (
                twins[one.scope].get(one.content_hash)
                if _alone(one) and one.deleted_at is None
                else None
            )
            if id in there or twin or one.id in fate:
                fate[one.id], names[one.id] = KNOWN, id if id in there else twin or id
            elif one.content_hash in buried:
                fate[one.id] = PURGED
            else:
                fate[one.id], names[one.id] = "added", id
    return fate, names


def _other(one: Memory) -> str:
    """The id of a memory whose own is taken by another scope: always the same, so that it is known when the file is read again."""
    tail = (
        int.from_bytes(blake2b(f"{one.id}\0{one.scope}".encode(), digest_size=8).digest())
        & 0x3FFF_FFFF_FFFF_FFFF
        | 0x8000_0000_0000_0000
    )
    digits = f"{tail:016x}"
    return f"{one.id[:19]}{digits[:4]}-{digits[4:]}"


def _alone(one: Memory) -> bool:
    """Whether its text may stand only once in its scope: what was told, and what was said in a conversation beyond the turns themselves."""
    return (
        one.kind != "context" if one.session else one.source_type == "note"
    ) and one.source != TOOL_FILES


def _named(one: Given, names: Mapping[str, str]) -> Given:
    """With the ids of this database. What is not there replaces nothing."""
    old = one.memory
    memory = old._replace(id=names[old.id], superseded_by=names.get(old.superseded_by or ""))
    links = [
        relation._replace(source=memory.id, target=names[relation.target])
        for relation in one.relations
        if relation.target in names
    ]
    if memory.superseded_by:
        links.append(Relation(memory.superseded_by, memory.id, "supersedes", old.updated_at))
    return one._replace(
        memory=memory,
        relations=tuple(dict.fromkeys(link for link in links if link.source != link.target)),
    )


# Writing


def _put(memory: Bethink, page: Sequence[Given]) -> int:
    """One page, in one transaction, and then its vectors. Returns how many somebody else put in meanwhile."""
    now = memory.clock()
    scopes = tuple(
        (scope, *_called(memory, scope)) for scope in sorted({one.memory.scope for one in page})
    )
    records = tuple(
        Record(one.memory, _alone(one.memory), (Event(now, memory.actor, "add", {}, {}),))
        for one in page
    )
    heard = [one.memory for one in page if one.memory.session and one.memory.kind == "context"]
    turns = tuple(
        (one.scope, identity(str(one.metadata["host"]), str(one.metadata["turn"])))
        for one in heard
        if {"host", "turn"} <= one.metadata.keys()
    )
    left = memory.store.take(
        Bundle(scopes=scopes, records=records, turns=turns),
        expect={one.memory.id: None for one in page},
    )
    embedded = [
        one.memory
        for one in page
        if one.memory.id not in left and one.memory.metadata.get("vector_index", True)
    ]
    if vectors := memory.vectors_of(embedded):
        memory.store.write(Batch(at=now, actor=memory.actor, **vectors))
    return len(left)


def _called(memory: Bethink, scope: str) -> tuple[str, str]:
    """The name and path of a scope, where they are known here."""
    project = memory.project
    _, slash, name = scope.partition("/")
    if _identity(scope) == project.identity:
        return f"{project.name}{slash}{name}", str(project.root)
    return (scope, "") if scope in (PERSONAL, TEAM) else ("", "")


def _relate(memory: Bethink, new: Sequence[Given]) -> int:
    """The relations last, when both ends are there."""
    links = list(dict.fromkeys(relation for one in new for relation in one.relations))
    number = 0
    for at in range(0, len(links), PAGE):
        page = links[at : at + PAGE]
        there = {
            one.id for one in memory.store.get(sorted({end for link in page for end in link[:2]}))
        }
        whole = tuple((link, memory.actor) for link in page if {link.source, link.target} <= there)
        memory.store.take(Bundle(relations=whole))
        number += len(whole)
    return number
