"""Whatever two sides do while they are apart, a sync hides nothing that either of them sees, and nothing that was purged comes back."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from stores import everything, make, replace, write

from bethink import Bethink
from bethink.config import Config
from bethink.errors import BethinkError
from bethink.features import tending
from bethink.features.sync import Shared, StorePeer, Sync
from bethink.store.sqlite import SqliteStore
from bethink.store.transfer import list_texts, version
from bethink.types import Entry, Filter, Source

OPERATIONS = (
    "add repeat edit edit vote supersede supersede consolidate consolidate talk forget restore unlink purge"
).split()


class Side:
    """A database with a project of its own, a clock that is not quite right, and somebody who does this and that."""

    def __init__(self, path, name, chance):
        self.store, self.name = SqliteStore(path / f"{name}.db", timeout=5), name
        self.chance, self.now = chance, datetime(2026, 4, 1, tzinfo=UTC)
        (path / name).mkdir()
        how = {"config": Config(embedding="none"), "clock": self.clock, "actor": name}
        self.memory = Bethink(store=self.store, directory=path / name, **how)
        self.scope = self.memory.scope
        self.purged: dict[str, set[str]] = {}  # id → the texts that it had
        self.said = 0

    def clock(self):
        self.now += timedelta(seconds=self.chance.randint(1, 600))
        return self.now

    def text(self) -> str:
        self.said += 1
        subject = self.chance.choice(("queues", "deploys", "caches"))
        return f"{self.name} said {self.said} of {subject}"

    def all(self) -> dict[str, object]:
        ids = [one.id for one in self.store.scan(everything(self.scope))]
        return {record.memory.id: record for record in self.store.records(ids)}

    def visible(self) -> set[str]:
        later = self.now + timedelta(days=1000)
        return {one.id for one in self.store.scan(Filter((self.scope,), now=later))}

    def stands(self, id: str, all, visible) -> bool:
        """Whether a memory, or what replaced it in the end, can be seen."""
        return any(one in visible for one in self.chain(id, all))

    def chain(self, id: str | None, all) -> list[str]:
        """A memory and what replaced it, step by step, as far as that is known here and one step further."""
        found = []
        while id and id not in found:
            found.append(id)
            id = all[id].memory.superseded_by if id in all else None
        return found

    def act(self) -> None:
        operation = self.chance.choice(OPERATIONS)
        alive = sorted(id for id in self.visible() if not self.store.get([id])[0].session)
        try:
            if operation == "add" or len(alive) < 3:
                self.memory.add(self.text(), dedup=False)
            else:
                getattr(self, operation)(*self.chance.sample(alive, 2))
        except BethinkError:
            pass  # a text that is there already, or a circle

    def repeat(self, *_):
        """What somebody else may say too, word for word."""
        self.memory.add(f"Everybody says {self.chance.randint(1, 6)}", dedup=False)

    def edit(self, id, _):
        self.memory.update(id, content=self.text())

    def vote(self, id, _):
        self.memory.vote(id)

    def supersede(self, new, old):
        self.memory.link(new, old, "supersedes")

    def consolidate(self, one, other):
        both = tuple(self.store.get([one, other]))
        tending.apply_steps(self.memory, [tending.Step("merge", both, "alike")])

    def talk(self, old, _):
        """An idea of a conversation, which is nobody else's, takes the place of what was told."""
        at, where = self.clock(), {"source": "talk.jsonl", "source_type": "transcript"}
        idea = make(self.text(), scope=self.scope, created_at=at, session="talk", **where)
        source = (self.scope, Source("talk.jsonl", "transcript"))
        batch = {"add": (Entry(idea, (), False),), "sources": (source,)}
        write(self.store, at, actor=self.name, **batch)
        replace(self.store, idea, self.store.get([old])[0], at)

    def forget(self, id, _):
        self.memory.forget(id)

    def restore(self, *_):
        hidden = sorted(self.all().keys() - self.visible())
        self.memory.restore(self.chance.choice(hidden or ["nothing"]))

    def unlink(self, *_):
        related = self.store.relations(sorted(self.all()))
        if known := [one for one in related if one.type == "supersedes"]:
            self.memory.unlink(*self.chance.choice(known)[:3])

    def purge(self, id, _):
        texts = list_texts(self.store.records([id])[0])
        self.purged[id] = {text for text in texts if not text.startswith("Everybody")}
        self.memory.forget(id, purge=True)


def synced(mine: Side, theirs: Side, shared: Shared, purged):
    """A sync of the two, after which nothing is lost that either saw, unless somebody purged it."""
    sides = (mine, theirs)
    before = {side: (side.all(), side.visible()) for side in sides}
    ends = (StorePeer(side.store, side.scope, side.name, side.clock) for side in sides)
    report, shared = Sync(*ends, allow_loss=True).run(shared)
    for side, other in (sides, sides[::-1]):
        (all, visible), (there, seen_there) = before[side], before[other]
        now, seen = side.all(), side.visible()
        for id in visible - purged.keys():
            # Somebody forgot it, or what replaced it.
            chosen = id in there and (
                there[id].memory.deleted_at or not other.stands(id, there, seen_there)
            )
            lost = f"{all[id].memory.content!r} was lost by {side.name}"
            assert side.stands(id, now, seen) or chosen, lost
    return report, shared


def gone(purged, *sides: Side) -> bool:
    """Whether nothing that was purged is left, not even in the history of something else."""
    words = set().union(*purged.values())
    records = [record for side in sides for record in side.all().values()]
    return not any(record.memory.id in purged or list_texts(record) & words for record in records)


@pytest.mark.parametrize("seed", range(2))
def test_nothing_that_either_side_sees_is_lost_and_nothing_purged_comes_back(tmp_path, seed):
    chance = random.Random(seed)
    sides = anna, team = tuple(Side(tmp_path, name, chance) for name in ("anna", "team"))
    shared, purged = Shared(), {}
    for _ in range(8):
        for side in sides:
            for _ in range(chance.randint(0, 8)):
                side.act()
            purged |= side.purged
        for _ in range(2):
            report, shared = synced(anna, team, shared, purged)
            assert gone(purged, *sides)
        ours, theirs = (
            {id: version(one) for id, one in side.all().items() if not one.memory.session}
            for side in sides
        )
        apart = {id for id in {**ours, **theirs} if ours.get(id) != theirs.get(id)}
        for id in apart - set(report.left):
            # Only what is replaced by something that the other side does not show, or told there in the same words.
            own = [side.all()[id] for side in sides if id in side.all()]
            told = [one.memory.content_hash for side in sides for one in side.all().values()]
            replaced = any(len(side.chain(id, side.all())) > 1 for side in sides)
            assert replaced or told.count(own[0].memory.content_hash) > 1
    for side in sides:
        assert side.store.check(deep=True) == []
        side.store.close()
