"""What was put where: `install.json` in the data directory, which `uninstall` goes by.

For every file the record says what it held before (a backup), what it held right after, and which entries are ours. It is
written before the file itself, so that nothing is ever in a file that the record does not know.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bethink.config import data_directory
from bethink.errors import BethinkError
from bethink.install.entries import Key, State
from bethink.text import textfile


class Record(NamedTuple):
    """One file, and what of it is ours."""

    hosts: Mapping[str, tuple[Key, ...]]  # whose entries are in it
    root: str = ""  # the project for which it was written, '' for the user
    existed: bool = True  # whether the file was there before
    folders: tuple[str, ...] = ()  # that were made for it, outermost first
    original: str = ""  # name of the backup of what it held before, '' where there was nothing
    after: str = ""  # digest of what it held right after
    state: State = State()
    before: str = ""  # digest of what a file that is ours as a whole held before that: it still does if the writing failed

    def is_ours(self, text: str) -> bool:
        """Whether a file that is ours as a whole is as we left it."""
        return digest(text) in (self.after, self.before)

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(dict.fromkeys(key for keys in self.hosts.values() for key in keys))


def path() -> Path:
    return data_directory() / "install.json"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def load() -> dict[str, Record]:
    """By path. A record that cannot be read is an error: without it, `uninstall` would have to guess."""
    text = textfile.read(path())
    if not text:
        return {}
    try:
        files = json.loads(text)["files"]
        return {str(name): _from(fields) for name, fields in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BethinkError(
            f"The record of what was installed, {path()}, is damaged: {error}.",
            "Move it away; `bethink uninstall --force` then finds the entries by what they say.",
        ) from None


def _from(fields: Mapping[str, Any]) -> Record:
    def key(pair: Any) -> Key:
        return str(pair[0]), tuple(map(str, pair[1]))

    return Record(
        {str(host): tuple(map(key, keys)) for host, keys in fields["hosts"].items()},
        str(fields.get("root", "")),
        bool(fields.get("existed", True)),
        tuple(map(str, fields.get("folders", ()))),
        str(fields.get("original", "")),
        str(fields.get("after", "")),
        State(
            tuple(dict.fromkeys(key(pair) for keys in fields["hosts"].values() for pair in keys)),
            tuple(tuple(map(str, one)) for one in fields.get("made", ())),
            tuple((tuple(map(str, one)), str(inner)) for one, inner in fields.get("inner", ())),
            str(fields.get("lead", "")),
        ),
        str(fields.get("before", "")),
    )


def save(files: Mapping[str, Record]) -> None:
    if not files:
        textfile.remove(path())
        return
    value = {
        "version": 1,
        "files": {
            name: {
                "hosts": {
                    host: [[kind, list(where)] for kind, where in keys]
                    for host, keys in one.hosts.items()
                },
                "root": one.root,
                "existed": one.existed,
                "folders": one.folders,
                "original": one.original,
                "after": one.after,
                "before": one.before,
                "made": one.state.made,
                "inner": one.state.inner,
                "lead": one.state.lead,
            }
            for name, one in files.items()
        },
    }
    text = json.dumps(
        value, indent=1
    )  # ASCII, so that paths with bytes that are no UTF-8 can be kept
    while not textfile.write(path(), text, textfile.read(path()), 0o600):
        pass  # only another of us writes this file, and `alone` keeps it out


def folder() -> Path:
    return data_directory() / "backups" / "agents"


def back_up(file: Path, text: str) -> str:
    """Keeps what a file held, for its owner alone, and returns the name of the backup."""
    place = folder()
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    name = f"{stamp}-{hashlib.sha256(str(file).encode('utf-8', 'surrogateescape')).hexdigest()[:8]}-{file.name.lstrip('.')[:80]}"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BethinkError(
            f"{place} cannot be made: {error.strerror or error}.",
            "Set BETHINK_HOME to a folder of yours.",
        ) from error
    for number in range(1000):
        found = f"{name}.{number}" if number else name
        if textfile.read(place / found) == text or textfile.write(place / found, text, None, 0o600):
            return found
    raise BethinkError(f"{place} holds too many backups of {file}.", "Remove those that are old.")


def original(record: Record) -> str | None:
    """What a file held before, or None where the backup is gone."""
    return textfile.read(folder() / record.original) if record.original else None


def missing_folders(file: Path) -> tuple[str, ...]:
    """The folders that have to be made for a file, outermost first."""
    found = []
    for one in file.parents:
        if os.path.lexists(one):
            break
        found.append(str(one))
    return tuple(reversed(found))


def remove_folders(folders: Iterable[str]) -> None:
    """Removes those of the folders that are empty, the innermost first."""
    for one in sorted(folders, key=len, reverse=True):
        with suppress(OSError):  # somebody's file is in it
            Path(one).rmdir()
