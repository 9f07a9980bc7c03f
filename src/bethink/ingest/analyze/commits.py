"""Which commits explain something, and the part of their message that does.

A message is first freed of what nobody wrote for its readers: trailers, quoted logs and code, templates, the list of
squashed subjects. What is left counts if it gives a reason, takes something back or breaks something. Precision comes
first: a history has thousands of commits, and a memory that says "fix typo because of review" is worse than none.

This module sees text and no repository. The cues are English; in other languages only reverts and breaking changes count.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from bethink.ingest.analyze import cues
from bethink.ingest.analyze.prose import clip, words

LONGEST = 1_200
READ = 20_000  # characters of a message that are looked at
ENOUGH = 0.7  # of cues, for a message with a body
PAST = 0.45  # for telling what happened
SHORTEST_BODY = 8  # words in which a reason can be given
SHORTEST_SUBJECT = 8  # words of a subject that explains itself


class Explained(NamedTuple):
    """What a commit tells: its kind, the text worth keeping, and how much it explains."""

    kind: str  # decision or gotcha
    content: str
    subject: str
    score: float
    reverts: str | None = None
    breaking: bool = False


def explained(message: str, author: str = "") -> Explained | None:
    """What a commit's message explains, or None for the many that explain nothing."""
    subject, _, body = message[:READ].strip().partition("\n")
    subject = " ".join(subject.split())
    prose, footer = _prose(body)
    reverted = _reverted(subject, message)
    if (
        not subject
        or cues.BOT.search(author)
        or cues.UNFINISHED.match(subject)
        or cues.GENERATED.search(message[:READ])
    ):
        return None
    if reverted:
        return _taken_back(subject, prose, reverted)
    breaking = bool(footer) or bool(re.match(r"\w{2,20}(?:\([^)]{0,60}\))?!:\s", subject))
    if cues.MACHINE.match(subject) and not (breaking and prose):
        return None
    score = _score(prose) if words(prose) >= SHORTEST_BODY else 0.0
    if score >= 0.3 and not cues.DESCRIBES.match(prose):
        score += 0.6 * bool(cues.ASKS.match(subject)) or 0.3 * _mended(subject, "")
        score += 0.2 * (words(prose) >= 16) + 0.1 * (words(prose) >= 50)
    alone = words(subject) >= SHORTEST_SUBJECT and re.search(rf"(?i)\b(?:{cues.STRONG})\b", subject)
    contrast = alone and re.fullmatch(r"(?i)instead of|rather than", alone[0])
    score += 1.0 if alone and (not contrast or words(subject) >= 12) else min(_score(subject), 0.4)
    needed = ENOUGH * (
        2.0 if cues.TRIVIAL.match(subject) else 1.6 if cues.FEATURE.match(subject) else 1.0
    )
    if breaking and (footer or words(prose) >= SHORTEST_BODY or words(subject) >= SHORTEST_SUBJECT):
        told = "\n".join(
            filter(
                None,
                (
                    f"{subject}.",
                    _reasoning(prose, 700),
                    f"Breaking change: {clip(footer, 500)}" if footer else "",
                ),
            )
        )
        return Explained("decision", clip(told, LONGEST), subject, score + 1.0, breaking=True)
    if score < needed:
        return None
    kind = "gotcha" if _mended(subject, prose) else "decision"
    return Explained(
        kind,
        clip(f"{subject}.\n{_reasoning(prose, LONGEST - len(subject) - 2)}", LONGEST),
        subject,
        score,
    )


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], float], ...]:
    return tuple((re.compile(rf"(?i)\b(?:{cue})"), weight) for cue, weight in cues.CUES)


def _score(text: str) -> float:
    """How much reasoning a text shows. A cue said twice counts half as much again; what only describes counts half."""
    total = 0.0
    sentences = [
        (sentence, 0.5 if cues.DESCRIBES.match(sentence) else 1.0)
        for sentence in cues.SENTENCES.split(text)
    ]
    for cue, weight in _compiled():
        found = sorted(
            (share for sentence, share in sentences if cue.search(sentence)), reverse=True
        )
        total += weight * (found[0] + 0.5 * sum(found[1:2])) if found else 0
    past = sorted((share for sentence, share in sentences if _past(sentence)), reverse=True)
    return total + (PAST * (past[0] + 0.5 * sum(past[1:2])) if past else 0)


def _past(sentence: str) -> bool:
    """Whether a sentence tells how things were or what happened."""
    tokens = re.findall(r"[a-z']+", sentence.lower())
    for before, word, after in zip(tokens, tokens[1:], [*tokens[2:], ""], strict=False):
        if word in cues.PAST and before != "it":
            return True
        if (
            word.endswith("ed")
            and len(word) > 4
            and word not in cues.NO_PAST
            and before not in cues.NO_SUBJECT
            and after in cues.OBJECT
        ):
            return True
    return False


def _prose(body: str) -> tuple[str, str]:
    """The body as paragraphs of what was written for readers, and what it says about breaking changes."""
    body = re.sub(r"<!--(?:[^-]|-(?!->)){0,4000}+(?:-->)?", "", body)
    kept: list[str] = []
    footer: list[str] = []
    fenced = in_footer = False
    for line in body.split("\n"):
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            fenced = not fenced
        elif match := re.match(r"(?i)BREAKING[ -]CHANGES?\s?[:!]\s*(.*)", bare):
            in_footer = True
            footer.append(match[1])
        elif not bare:
            kept.append("")
            in_footer = False
        elif in_footer and not cues.TRAILER.match(bare):
            footer.append(bare)
        elif not fenced and not cues.LOG.match(line) and not cues.TRAILER.match(bare):
            kept.append(bare)
    paragraphs = [
        " ".join(paragraph.split("\n")) if not re.match(r"[-*+] ", paragraph) else paragraph
        for paragraph in re.split(r"\n{2,}", "\n".join(kept).strip())
    ]
    # GitHub squashes a branch into its subjects, one starred line each: a list of steps, not a reason.
    steps = [paragraph for paragraph in paragraphs if re.match(r"\* \S.{0,80}$", paragraph)]
    if len(steps) >= 2 and all(len(step) < 100 for step in steps):
        paragraphs = [paragraph for paragraph in paragraphs if paragraph not in steps]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph), " ".join(footer).strip()


def _reverted(subject: str, message: str) -> tuple[str, str | None] | None:
    """What a commit takes back: its subject and, if told, its id."""
    quoted = re.match(
        r'(?i)(?:\w{1,20}(?:\([^)]{0,60}\))?!?:\s*)?(?:partial(?:ly)? )?reverts?:?\s+["“\'](.{3,300})["”\'](?:\s*\(#\d+\))?\s*$',
        subject,
    )
    named = re.match(
        r"(?i)revert(?:\([^)]{0,60}\))?!?:\s*(.{3,300})|(?:partial(?:ly)? )?revert(?:s|ed|ing)?\s+(?:the |commit )?(.{3,300})"
        r"|back(?:ing)? out\s+(.{3,300})|roll(?:ing)? back\s+(.{3,300})",
        subject,
    )
    commit = re.search(r"(?i)this reverts commits? ([0-9a-f]{7,64})", message)
    if not quoted and not named and not commit:
        return None
    what = (
        quoted[1]
        if quoted
        else next(group for group in named.groups() if group)
        if named
        else subject
    )
    return re.sub(r"(?<!\s)\s*\(#\d+\)$", "", what), commit[1].lower() if commit else None


def _taken_back(subject: str, prose: str, reverted: tuple[str, str | None]) -> Explained | None:
    """A revert tells that something was tried and did not hold; with its reason if it gives one."""
    what, commit = reverted
    prose = re.sub(
        r"(?i)this reverts (?:commits?|merge request|pull request)\b[^.\n]{0,200}\.?,?(?: reversing\s+changes made to [0-9a-f]{7,64}\.?)?",
        "",
        prose,
    ).strip()
    reason = _reasoning(prose, LONGEST - 400) if words(prose) >= 5 else ""
    trivial = (
        cues.MACHINE.match(what)
        or cues.UNFINISHED.match(what)
        or cues.TRIVIAL.match(what)
        or re.match(r"(?i)revert\b", what)
    )
    alone = re.search(r"(?i)\b(?:because|since|due to|as it|breaks?|broke|caus)", subject)
    if not reason and (trivial or words(what) < 3) and not alone:
        return None
    told = f"Reverted: {what.rstrip('.')}." + (
        f"\n{reason}" if reason else "" if alone else " The commit gives no reason."
    )
    return Explained(
        "gotcha",
        clip(told, LONGEST),
        subject,
        1.0 + _score(prose) if reason or alone else 0.6,
        commit,
    )


def _mended(subject: str, prose: str) -> bool:
    """Whether the commit mends something: then what it found is a trap to know, not a choice."""
    if re.match(
        r"(?i)(?:\[[^\]]{1,40}\]\s*|[\w/. -]{1,40}:\s+)?(?:fix(?:es|ed|ing)?|hot ?fix|bug ?fix|mend|repair|avoid|prevent|work ?around|handle|guard"
        r"|don'?t|do not|stop|undo|disable|turn off|correct|workaround|never|resolve)\b",
        subject,
    ):
        return True
    return bool(
        re.search(
            r"(?i)root cause|turn(?:s|ed) out|work(?:ing|ed)?[- ]?around|race condition|deadlock|segfault|memory leak|data loss|corrupt",
            prose,
        )
    )


def _reasoning(prose: str, limit: int) -> str:
    """The prose if it fits, else its first paragraph and those that explain, in their order."""
    if len(prose) <= limit:
        return prose
    paragraphs = prose.split("\n\n")
    ranked = sorted(range(len(paragraphs)), key=lambda at: (-_score(paragraphs[at]), at))
    chosen: set[int] = set()
    size = 0
    for at in ranked:
        if size + len(paragraphs[at]) <= limit:
            chosen.add(at)
            size += len(paragraphs[at]) + 2
    if not chosen:
        return clip(paragraphs[ranked[0]], limit)
    return "\n\n".join(paragraphs[at] for at in sorted(chosen))
