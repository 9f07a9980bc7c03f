"""Everything that can go wrong, as one tree.

    BethinkError            something could not be done; exit code 1
    ├── UsageError            the request itself is wrong; exit code 2
    │   ├── InvalidInput      a value that cannot be stored or searched
    │   │   └── NeedsPerson   an agent asked for something that only a person may do
    │   ├── NotFound          no memory, session or file of that name; exit code 1
    │   ├── Ambiguous         an id prefix that fits several memories; exit code 1
    │   └── ConfigError       a settings file that cannot be used
    ├── StoreError            the database cannot be read or written
    │   ├── StoreBusy         another process held the lock for too long
    │   ├── StoreReadOnly     the database can be read but not written
    │   ├── StoreUnavailable  the database's server cannot be reached right now; trying again later may do
    │   ├── Overtaken         another process read the same source on meanwhile
    │   ├── OutcomeUnknown    the answer to a write was lost, and whether it went in could not be asked
    │   ├── StoreCorrupt      the file is damaged, or is no database
    │   └── StoreTooNew       written by a newer version of Bethink
    ├── EmbeddingError        no vectors can be made right now
    ├── JudgeError            the packaged judge cannot be opened or asked
    └── ModelError            the language model gave nothing usable (`llm/base.py`)

A message is a full sentence with the offending value in it. A hint names the next thing to type.
Errors of other libraries are translated where they enter: SQLite's in `store/`, HTTP's in `embed/` and `llm/`.
"""

from __future__ import annotations


class BethinkError(Exception):
    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def full_message(self) -> str:
        """Message and hint on one line."""
        return f"{self.message} {self.hint or ''}".strip()


class UsageError(BethinkError):
    exit_code = 2


class InvalidInput(UsageError):
    pass


class NeedsPerson(InvalidInput):
    pass


class NotFound(UsageError):
    exit_code = 1


class Ambiguous(UsageError):
    exit_code = 1


class ConfigError(UsageError):
    pass


class StoreError(BethinkError):
    pass


class StoreBusy(StoreError):
    pass


class StoreReadOnly(StoreError):
    pass


class StoreUnavailable(StoreError):
    pass


class Overtaken(StoreError):
    pass


class OutcomeUnknown(StoreError):
    pass


class StoreCorrupt(StoreError):
    pass


class StoreTooNew(StoreError):
    pass


class EmbeddingError(BethinkError):
    pass


class JudgeError(BethinkError):
    pass


def translate_error(
    table: str, library: object, found: Exception, **values: object
) -> BethinkError:
    """Translate an error of a database library into one of ours.

    A line of the table names their errors, ours, the message and the hint; the last line matches
    everything.
    """
    lines = ([part.strip() for part in line.split(" | ")] for line in table.strip().splitlines())
    kind, message, hint = next(
        rest
        for names, *rest in lines
        if isinstance(found, tuple(getattr(library, name) for name in names.split()))
    )
    error: BethinkError = globals()[kind](message.format(**values), hint)
    return error


def unstorable(error: UnicodeEncodeError) -> InvalidInput:
    return InvalidInput(
        f"The text holds a character that cannot be stored: {error.object[error.start]!r}.",
        "Give it as UTF-8.",
    )
