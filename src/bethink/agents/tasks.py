"""Task lists of agents: items that a tool call states or changes, in JSON, boxes or SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from bethink.agents.base import (
    Fields,
    as_fields,
    clean,
)
from bethink.text import compile_late

_LISTS = frozenset(
    "todowrite updateplan writetodos managetodolist updatetodo updatetodolist todolist".split()
)
_LIST_FIELDS = "todos plan todoList items tasks".split()
_ITEM_FIELDS = "content step subject title description text".split()
_STATES = {
    **dict.fromkeys("in_progress in-progress inprogress active started doing".split(), "doing"),
    **dict.fromkeys("completed complete done finished".split(), "done"),
    **dict.fromkeys("cancelled canceled deleted removed dropped skipped".split(), "dropped"),
}
_BOX = compile_late(r"^\s{0,8}[-*] \[([ xX~>/-])\] (.{1,600})$", re.MULTILINE)
_BOXES = {"x": "done", "X": "done", "~": "doing", ">": "doing", "/": "doing", "-": "doing"}
_TASK_LENGTH, _TASK_QUERY = 300, 20_000
_CREATED = compile_late(r"\s{0,8}Task #(\w{1,20}) created")
# The agent's own database, where a host has the list in a table.
_INSERT = compile_late(
    r"\bINSERT\s+(?:OR\s+\w+\s+)?INTO\s+todos\s*\(([^)]{1,300})\)\s*VALUES\s*", re.IGNORECASE
)
_UPDATE = compile_late(
    r"\bUPDATE\s+todos\s+SET\s+([^;]{0,600}?)\bWHERE\s+id\s*(?:=|IN)\s*([^;]{1,2000})",
    re.IGNORECASE,
)
_DELETE = compile_late(
    r"\bDELETE\s+FROM\s+todos\s+WHERE\s+id\s*(?:=|IN)\s*([^;]{1,2000})", re.IGNORECASE
)
_SQL_ROW = compile_late(r"\s*\(((?:[^()']|'[^']*'){1,4000})\)\s*(,?)")
_SQL_PIECE = compile_late(r"'[^']*'|,|[^',]{1,400}")
_SQL_STATUS = compile_late(r"\bstatus\s*=\s*'(\w{1,40})'", re.IGNORECASE)
_SQL_TEXT = compile_late(r"(?:'[^']*')+")


class TaskChange(NamedTuple):
    """An item as a tool call states it."""

    key: str  # by which later calls name it
    text: str  # '' if the call does not repeat it
    state: str  # '' if the call does not change it


def read_task_call(
    tool: str, arguments: Fields, call: str | None
) -> tuple[list[TaskChange], bool] | None:
    """Return the items that a task tool states, and True if they are the whole list; else None."""
    name = "".join(filter(str.isalpha, tool.lower()))
    if name == "taskcreate":
        return [TaskChange(call or "", _as_task(arguments), "open")], False
    if name == "taskupdate":
        state = as_state(arguments.text("status")) if arguments.text("status") else ""
        key = str(arguments.get("taskId") or arguments.get("id") or "")
        return [TaskChange(key, _as_task(arguments, ("subject",)), state)], False
    if name == "sql":
        return _read_queries(arguments.text("query")[:_TASK_QUERY]), False
    if name not in _LISTS:
        return None
    found: object = next((arguments[one] for one in _LIST_FIELDS if arguments.get(one)), [])
    if isinstance(found, str):
        boxes = _BOX.findall(found[:_TASK_QUERY])
        return [TaskChange(text, text, _BOXES.get(box, "open")) for box, text in boxes], True
    items = [as_fields(one) for one in found] if isinstance(found, list) else []
    changes = [
        TaskChange(str(one.get("id") or text), text, as_state(one.text("status")))
        for one in items
        if (text := _as_task(one)) or one.get("id")
    ]
    return changes, arguments.get("merge") is not True


def find_created(output: str) -> str:
    """The id that a host gave to a new item, '' if its answer has none."""
    found = _CREATED.match(output)
    return found[1] if found else ""


def as_state(status: str) -> str:
    return _STATES.get(status.lower(), "open")


def _as_task(item: Fields, keys: Iterable[str] = tuple(_ITEM_FIELDS)) -> str:
    text = next((text for key in keys if (text := item.text(key).strip())), "")
    return " ".join(clean(text).split())[:_TASK_LENGTH]


def _read_queries(query: str) -> list[TaskChange]:
    """Return the changes that SQL makes to the table `todos`."""
    found: list[tuple[int, TaskChange]] = []
    for insert in _INSERT.finditer(query):
        columns = [one.strip(' "`').lower() for one in insert[1].split(",")]
        row = _SQL_ROW.match(query, insert.end())
        while row:
            item = Fields(zip(columns, _split_row(row[1]), strict=False))
            text = _as_task(item, ("title", "description"))
            state = as_state(item.text("status"))
            found.append((insert.start(), TaskChange(item.text("id") or text, text, state)))
            row = _SQL_ROW.match(query, row.end()) if row[2] else None
    for update in _UPDATE.finditer(query):
        if status := _SQL_STATUS.search(update[1]):
            state, ids = as_state(status[1]), map(_unquote, _SQL_TEXT.findall(update[2]))
            found += [(update.start(), TaskChange(id, "", state)) for id in ids]
    for delete in _DELETE.finditer(query):
        ids = map(_unquote, _SQL_TEXT.findall(delete[1]))
        found += [(delete.start(), TaskChange(id, "", "dropped")) for id in ids]
    return [change for _, change in sorted(found, key=lambda one: one[0])]


def _split_row(row: str) -> list[str]:
    """Return the values between the commas of a row of SQL."""
    values = [""]
    for piece in _SQL_PIECE.findall(row):
        values = [*values, ""] if piece == "," else [*values[:-1], values[-1] + piece]
    return [_unquote(one) for one in values]


def _unquote(value: str) -> str:
    value = value.strip()
    return value[1:-1].replace("''", "'") if value.startswith("'") else value
