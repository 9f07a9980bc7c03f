"""Enforced rules: statements that a person promoted so that matching tool calls are denied.

They are kept in one small file on this machine, not in the database: nothing that is imported, synchronised, read from a conversation or
written by an agent's tool can add one. A rule only names a memory; the call is denied while that memory is valid and a person's word.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bethink import folders
from bethink.errors import BethinkError
from bethink.model import PERSONAL, Json, Strings, Values
from bethink.text import textfile

_LONGEST = 1_000_000  # bytes of the file


class EnforcedRule(NamedTuple):
    """A memory and the calls that it forbids."""

    id: str  # of the memory
    scope: str  # of the memory: a project, or `personal` for every project
    commands: Strings = ()  # patterns such as `git push --force`
    paths: Strings = ()  # globs such as `deploy/*.yml`, below the project's folder
    instead: str = ""  # what to run or do instead
    since: float = 0.0  # seconds since the epoch


def read_rules(strict: bool = True) -> list[EnforcedRule]:
    """Return all enforced rules, oldest first. A hook is not `strict`: it ignores a damaged file."""
    path = Path(folders.find_enforced())
    try:
        if path.stat().st_size > _LONGEST:
            raise ValueError("it is too large")
        return [_read_rule(row) for row in json.loads(path.read_bytes())]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        if not strict:
            return []
        raise BethinkError(
            f"The enforced rules in {path} cannot be read ({error}), so no call is denied.",
            "Repair the file, or remove it to lift all rules.",
        ) from None


def _read_rule(row: Values) -> EnforcedRule:
    commands, paths = (tuple(map(str, row[name])) for name in ("commands", "paths"))
    text = str(row.get("instead", ""))
    return EnforcedRule(str(row["id"]), str(row["scope"]), commands, paths, text, row["since"])


def list_rules(scope: str, strict: bool = True) -> list[EnforcedRule]:
    """Return the rules that hold in a project."""
    return [one for one in read_rules(strict) if one.scope in (scope, PERSONAL)]


def put_rule(rule: EnforcedRule) -> EnforcedRule:
    """Enforce a rule from now on; replaces an earlier one of the same memory."""
    fresh = rule._replace(since=time.time())
    with textfile.alone(Path(folders.find_data())):
        _write([*(one for one in read_rules() if one.id != rule.id), fresh])
    return fresh


def lift_rule(id: str) -> EnforcedRule | None:
    """Stop enforcing the rule of a memory, and return it; None if it was not enforced."""
    with textfile.alone(Path(folders.find_data())):
        known = read_rules()
        found = next((one for one in known if one.id == id), None)
        if found:
            _write([one for one in known if one is not found])
    return found


def _write(rules: Sequence[EnforcedRule]) -> None:
    path = Path(folders.find_enforced())
    if not rules:  # so that hooks before tool calls end at once
        textfile.remove(path)
        return
    rows: list[Json] = [one._asdict() for one in rules]
    textfile.write(path, json.dumps(rows, indent=1), textfile.read(path), 0o600)
