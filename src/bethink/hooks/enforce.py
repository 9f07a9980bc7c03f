"""Enforced rules at a tool call: deny what a person forbade, with the reason and how to lift it.

The rules are one small file (`bethink.enforced`), matched without opening a database. A match counts only while its memory is valid and a
person's word. If anything fails, the call goes through.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bethink import enforced
from bethink.hooks import state
from bethink.hooks.state import Hook
from bethink.model import TRUST
from bethink.outgoing import clear_line, encode

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.ingest.enforcement import Match
    from bethink.project import Project

_STATEMENT = 300  # characters of the rule
_PART = 160  # characters of the forbidden part


def find_matches(hook: Hook, project: Project) -> list[Match]:
    """Return the rules that forbid one of the calls, at most one for each call."""
    rules = enforced.list_rules(project.scope, strict=False)
    if not rules:
        return []
    from bethink.ingest.enforcement import find_match

    root = posixpath.normpath(str(project.worktree).replace("\\", "/"))
    found = (find_match(rules, call, root, hook.directory) for call in hook.calls)
    return [one for one in found if one]


def render_denial(hook: Hook, matches: Sequence[Match], memory: Bethink) -> str:
    """Return the agent's own form of a denial; '' if no matched rule is valid any more."""
    deny = state.find_dialect(hook.host).deny
    known = memory.store.select([one.rule.id for one in matches], memory.filter())
    for match in matches:
        one = known.get(match.rule.id)
        if deny and one and one.trust >= TRUST["user"]:
            return encode(deny(describe_denial(match, one.content, one.id)))
    return ""


def describe_denial(match: Match, statement: str, id: str) -> str:
    """Return the reason for an agent: the rule, the forbidden part, what to do instead, who can lift it."""
    instead = f" Instead: {match.rule.instead}." if match.rule.instead else ""
    lift = f"Only the user can lift it, in a terminal outside the agent: bethink enforce {id} --off"
    text = f"The user forbade this call: {_cut(statement, _STATEMENT)} (matched: {_cut(match.part, _PART)}).{instead} {lift}"
    return clear_line(text)


def _cut(text: str, length: int) -> str:
    plain = " ".join(text.split()).rstrip(".")
    return plain if len(plain) <= length else f"{plain[: length - 1]}…"
