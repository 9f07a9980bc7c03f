"""What a language model says about a conversation, where one is set. None means: go on by the rules.

A model that fails, declines or has used up its day costs nothing but the help: every function here gives None then, and the
reason is counted where `bethink stats` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bethink.ingest.ideas import Idea, is_said
from bethink.ingest.topics import Topic
from bethink.llm import tasks
from bethink.llm.base import Model, ModelError

FIRM, TENTATIVE = 0.9, 0.6  # confidence of an idea that the model calls firm, or not
BESIDE = 600  # characters before and after a boundary that the model sees
BOUNDARIES = 12  # places asked about at once


def ask_ideas(
    model: Model, turns: Sequence[tuple[str, str]], first: int, digest: Mapping[str, str]
) -> tuple[list[Idea], Mapping[str, str]] | None:
    """The ideas of the turns from `first` on, those before being only heard; and the digest, which told of what came before, as
    it is after them."""
    numbered = [tasks.NumberedTurn(number, role, text) for number, (role, text) in enumerate(turns)]
    found: list[Idea] = []
    try:
        for number, portion in enumerate(tasks.portions(numbered)):
            if portion[-1].number < first:
                continue
            told = tasks.read_ideas(
                model.ask(tasks.extract_ideas(portion, digest)), portion, digest
            )
            digest = told.digest
            for idea in told.ideas:
                at = idea.turns[-1]
                role, text = turns[at]
                # What a user pasted is nobody's word here.
                if at >= first and (role != "user" or is_said(idea.text, text)):
                    sure = FIRM if idea.firm else TENTATIVE
                    found.append(
                        Idea(idea.kind, idea.text, at, idea.firm, sure, idea.entities, number)
                    )
    except ModelError:
        return None
    return sorted(found, key=lambda idea: idea.turn), digest


def name_topic(model: Model, turns: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """A name and a summary for the turns of one topic."""
    numbered = [tasks.NumberedTurn(number, role, text) for number, (role, text) in enumerate(turns)]
    try:
        found = tasks.read_topic(model.ask(tasks.name_topic(numbered)), numbered)
    except ModelError:
        return None
    return (found.name, found.summary) if found.name and found.summary else None


def confirm_topics(model: Model, found: Sequence[Topic], texts: Sequence[str]) -> list[Topic]:
    """The topics without those that the model takes for a follow-up of the one before."""
    doubtful = [at for at, one in enumerate(found) if at and one.depth == 0 and not one.continues][
        :BOUNDARIES
    ]
    if not doubtful:
        return list(found)
    places = [
        tasks.TopicBoundary(
            at,
            "\n".join(texts[: found[at].first])[-BESIDE:],
            "\n".join(texts[found[at].first :])[:BESIDE],
        )
        for at in doubtful
    ]
    try:
        verdicts = tasks.read_topics(model.ask(tasks.confirm_topics(places)), places)
    except ModelError:
        return list(found)
    return join_topics(found, {at for at, new in verdicts.items() if not new})


def join_topics(found: Sequence[Topic], followups: set[int]) -> list[Topic]:
    """Topics with some of them taken into the one before; their sub-topics go along."""
    kept: list[Topic] = []
    place: dict[int, int] = {}  # index before → index now, of what stands for it
    for at, one in enumerate(found):
        above = max((number for number, other in enumerate(kept) if other.depth == 0), default=None)
        if at in followups and above is not None:
            kept[above] = kept[above]._replace(last=one.last)
            place[at] = above
            continue
        place[at] = len(kept)
        kept.append(one._replace(parent=None if one.parent is None else place[one.parent]))
    return kept
