"""install and uninstall: brings a host's files to what it needs, one file at a time, and back to what they were.

A file is read, edited in memory, proven, recorded, backed up and replaced in one step; whatever goes wrong with one leaves it as it
was and the others go on. `uninstall` gives back the very bytes where nobody changed the file since, and otherwise takes out our
entries and nothing else. Nothing is printed here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from bethink.config import data_directory
from bethink.errors import BethinkError, InvalidInput
from bethink.install import entries, record
from bethink.install.entries import Key, State
from bethink.install.host import Place, Target, ignored, module
from bethink.install.record import Record
from bethink.text import textfile

PARTS = ("mcp", "hooks", "skills")
WHOLE: Key = ("text", ())  # a file that is ours from end to end
KEPT = "(kept)"  # stands for a host of whose entries in a file only some go


class Outcome(NamedTuple):
    """What became of one file."""

    host: str
    part: str  # mcp, hooks, skills; empty for several at once
    path: Path
    status: str  # made, changed, unchanged, kept; restored, cleaned, removed; failed
    reasons: tuple[str, ...] = ()
    diff: str = ""
    backup: str = ""


class Write(NamedTuple):
    """A file to be replaced, if it still holds what it was read as."""

    path: Path
    text: str
    was: str | None


class Files:
    """The files of hosts, and the record of what is ours in them. With `dry` everything happens in memory only."""

    def __init__(self, dry: bool = False) -> None:
        self.dry = dry
        self.held: dict[Path, str | None] = {}  # what a dry run would have written
        self.stack = ExitStack()

    def __enter__(self) -> Self:
        if not self.dry:
            try:
                data_directory().mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise BethinkError(
                    f"{data_directory()} cannot be made: {error.strerror or error}.",
                    "Set BETHINK_HOME to a folder of yours.",
                ) from error
            self.stack.enter_context(textfile.alone(data_directory()))
        self.records = record.load()
        self.saved = dict(self.records)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stack.close()

    def read(self, path: Path) -> str | None:
        return self.held[path] if path in self.held else textfile.read(path)

    def write(self, path: Path, text: str, was: str | None) -> None:
        if self.dry:
            self.held[path] = text
        elif not textfile.write(path, text, was):
            raise BethinkError(
                f"{path} was changed by something else at the same moment.", "Try again."
            )

    def remove(self, path: Path) -> None:
        if self.dry:
            self.held[path] = None
        else:
            textfile.remove(path)

    def note(self, path: Path, one: Record | None) -> None:
        """Changes the record, which `save` then writes: one write for many files."""
        if one is None:
            self.records.pop(str(path), None)
        else:
            self.records[str(path)] = one

    def save(self) -> None:
        if not self.dry and self.records != self.saved:
            record.save(self.records)
            self.saved = dict(self.records)

    def back_up(self, path: Path, text: str) -> str:
        return "" if self.dry else record.back_up(path, text)


def followed(path: Path, root: Path | None = None) -> Path:
    """The file behind a link, which is what is written: the link itself stays. What is put into a project stays inside of it."""
    try:
        real = textfile.resolved(path) if root is None else textfile.inside(root, path)
        if real.is_file() and not real.stat().st_mode & 0o200:
            raise InvalidInput(
                f"{path} is read-only.",
                f"chmod u+w {path}, or let whatever made it add the entries.",
            )
    except (OSError, RuntimeError) as error:  # a circle of links, a folder that may not be entered
        raise BethinkError(
            f"{path} cannot be followed: {error}.", "Check the links and permissions on the way."
        ) from error
    return real


def difference(path: Path, before: str | None, after: str | None) -> str:
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True),
        (after or "").splitlines(keepends=True),
        str(path) if before is not None else "/dev/null",
        str(path) if after is not None else "/dev/null",
        n=2,
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


# Installing


def install(
    files: Files,
    hosts: Iterable[str],
    place: Place,
    parts: Sequence[str] = PARTS,
    force: bool = False,
) -> Iterator[Outcome]:
    """Connects hosts: each file that changes, and each that need not. What was put there of other parts is taken out."""
    for host in hosts:
        yield from _left_out(files, host, place, parts)
        planned = [
            _plan(files, host, target, place, force)
            for target in merged(_wanted(host, place, parts))
        ]
        files.save()
        for outcome, write in planned:
            try:
                if write:
                    files.write(*write)
                yield outcome
            except BethinkError as error:
                yield outcome._replace(status="failed", reasons=(_sentence(error),), diff="")


def _left_out(files: Files, host: str, place: Place, parts: Sequence[str]) -> Iterator[Outcome]:
    """Takes out what an earlier install put there, of parts that are not wanted now."""
    folders: set[str] = set()
    for name, known in list(files.records.items()):
        if host not in known.hosts or known.root != str(place.root or ""):
            continue
        going = tuple(
            key
            for key in known.hosts[host]
            if any(part not in parts for part in parts_of(Path(name), [key]))
        )
        staying = tuple(key for key in known.hosts[host] if key not in going)
        if not going:
            continue
        if all(kind == "frame" for kind, _ in staying):
            yield _uninstall(files, Path(name), known, [host])
            folders.update(known.folders if name not in files.records else ())
            continue
        split = known._replace(hosts={**known.hosts, host: going, KEPT: staying})
        yield _uninstall(files, Path(name), split, [host])
        if (rest := files.records.get(name)) and KEPT in rest.hosts:
            files.note(
                Path(name),
                rest._replace(
                    hosts={host if one == KEPT else one: keys for one, keys in rest.hosts.items()}
                ),
            )
    files.save()
    if not files.dry:
        record.remove_folders(folders)


def _wanted(host: str, place: Place, parts: Sequence[str]) -> list[Target]:
    return [target for target in module(host).targets(place) if target.part in parts]


def merged(targets: Iterable[Target]) -> list[Target]:
    """Targets of which no two are the same file."""
    found: dict[Path, Target] = {}
    for target in targets:
        one = found.get(target.path)
        found[target.path] = (
            target
            if one is None
            else one._replace(part="", entries=(*one.entries, *target.entries))
        )
    return list(found.values())


def _plan(
    files: Files, host: str, target: Target, place: Place, force: bool
) -> tuple[Outcome, Write | None]:
    """What becomes of one file: backed up and recorded, not yet written."""
    try:
        real = followed(target.path, place.root)
        if target.text is not None:
            return _put_whole(files, host, target, target.text, real, place)
        return _put_entries(files, host, target, real, place, force)
    except BethinkError as error:
        return Outcome(host, target.part, target.path, "failed", (_sentence(error),)), None


def _sentence(error: BethinkError) -> str:
    return f"{error.message} {error.hint}" if error.hint else error.message


def _put_entries(
    files: Files, host: str, target: Target, real: Path, place: Place, force: bool
) -> tuple[Outcome, Write | None]:
    was = files.read(real)
    known = files.records.get(str(target.path))
    put = entries.put(was or "", target.entries, host, known.state if known else State(), force)
    why = ignored(target, put.text, module(host).NAME)
    reasons = (*put.kept, why) if why else put.kept
    if put.text == (was or "") and was is not None:
        return Outcome(
            host, target.part, target.path, "kept" if put.kept else "unchanged", reasons
        ), None
    if not put.state.entries:
        return Outcome(host, target.part, target.path, "kept", put.kept), None
    fresh, backup = _before(files, target.path, real, was, known)
    before = known.hosts.get(host, ()) if known else ()
    keys = tuple(
        key
        for key in dict.fromkeys((*before, *((one.kind, one.path) for one in target.entries)))
        if key in put.state.entries
    )
    files.note(
        target.path,
        fresh._replace(
            hosts={**(known.hosts if known else {}), host: keys},
            root=str(place.root or ""),
            after=record.digest(put.text),
            state=put.state,
        ),
    )
    status = "made" if was is None else "changed"
    shown = difference(target.path, was, put.text)
    return Outcome(host, target.part, target.path, status, reasons, shown, backup), Write(
        real, put.text, was
    )


def _before(
    files: Files, path: Path, real: Path, was: str | None, known: Record | None
) -> tuple[Record, str]:
    """What a file is to be given back as, and the name of the backup of what it holds now."""
    if was is None:
        return Record({}, existed=False, folders=record.missing_folders(real)), ""
    backup = files.back_up(path, was)
    if known is None:
        return Record({}, original=backup), backup
    if known.after == record.digest(was):
        return known, backup
    rest = _taken(
        was, known, known.hosts
    )  # somebody edited it since: without our entries it is what it should become again
    gone = not known.existed and blank(rest)
    return known._replace(
        existed=not gone, original="" if gone else files.back_up(path, rest)
    ), backup


def _put_whole(
    files: Files, host: str, target: Target, text: str, real: Path, place: Place
) -> tuple[Outcome, Write | None]:
    was = files.read(real)
    known = files.records.get(str(target.path))
    same = Outcome(host, target.part, target.path, "unchanged")
    if was is not None and known is None:
        if was == text:
            return same, None
        return same._replace(
            status="kept",
            reasons=(f"{target.path} is there already and is not ours; it was kept.",),
        ), None
    if was is not None and known is not None and not known.is_ours(was):
        return same._replace(
            status="kept",
            reasons=(f"You changed {target.path}; it was kept. Remove it to get ours.",),
        ), None
    hosts = {**(known.hosts if known else {}), host: (WHOLE,)}
    folders = known.folders if known and was is not None else record.missing_folders(real)
    before = record.digest(was) if was is not None else ""
    files.note(
        target.path,
        Record(
            hosts, str(place.root or ""), False, folders, "", record.digest(text), before=before
        ),
    )
    if was == text:
        return same, None
    status = "made" if was is None else "changed"
    return same._replace(status=status, diff=difference(target.path, was, text)), Write(
        real, text, was
    )


# Uninstalling


def uninstall(
    files: Files, hosts: Iterable[str], roots: Sequence[str] | None = None
) -> Iterator[Outcome]:
    """Gives the files of these hosts back: of the user, of some projects, or with None of all."""
    asked = tuple(hosts)
    folders: set[str] = set()
    try:
        for name, known in list(files.records.items()):
            leaving = [host for host in asked if host in known.hosts]
            if leaving and (roots is None or known.root in roots):
                yield _uninstall(files, Path(name), known, leaving)
                if name not in files.records:
                    folders.update(known.folders)
    finally:  # what is done is done, also if it is stopped here
        files.save()
    if not files.dry:
        record.remove_folders(folders)


def _uninstall(files: Files, path: Path, known: Record, leaving: list[str]) -> Outcome:
    host = leaving[0]
    staying = {one: keys for one, keys in known.hosts.items() if one not in leaving}
    try:
        real = followed(path)
        was = files.read(real)
        if was is None:
            files.note(path, None)
            return Outcome(
                host,
                _part(path, known, leaving),
                path,
                "unchanged",
                (f"{path} is no longer there.",),
            )
        if WHOLE in known.keys:
            return _drop_whole(files, path, real, was, known, staying, leaving)
        return _give_back(files, path, real, was, known, staying, leaving)
    except BethinkError as error:
        return Outcome(host, _part(path, known, leaving), path, "failed", (_sentence(error),))


def _part(path: Path, known: Record, hosts: Iterable[str]) -> str:
    parts = {part for host in hosts for part in parts_of(path, known.hosts[host])}
    return parts.pop() if len(parts) == 1 else ""


def parts_of(path: Path, keys: Iterable[Key]) -> list[str]:
    """What the entries in a file are for."""
    whole = "skills" if path.name == "SKILL.md" else "hooks"
    names = {"hook": "hooks", "member": "mcp", "table": "mcp", "text": whole}
    return list(dict.fromkeys(names[kind] for kind, _ in keys if kind in names))


def _drop_whole(
    files: Files,
    path: Path,
    real: Path,
    was: str,
    known: Record,
    staying: dict[str, tuple[Key, ...]],
    leaving: list[str],
) -> Outcome:
    part = _part(path, known, leaving)
    if staying:
        files.note(path, known._replace(hosts=staying))
        return Outcome(
            leaving[0], part, path, "unchanged", (f"{', '.join(staying)} still needs {path}.",)
        )
    if not known.is_ours(was):
        files.note(path, None)
        return Outcome(leaving[0], part, path, "kept", (f"You changed {path}; it was kept.",))
    files.remove(real)
    files.note(path, None)
    return Outcome(leaving[0], part, path, "removed")


def _give_back(
    files: Files,
    path: Path,
    real: Path,
    was: str,
    known: Record,
    staying: dict[str, tuple[Key, ...]],
    leaving: list[str],
) -> Outcome:
    part = _part(path, known, leaving)
    untouched = record.digest(was) == known.after
    text: str | None
    if untouched and not staying and (not known.existed or record.original(known) is not None):
        text, status = (record.original(known), "restored") if known.existed else (None, "removed")
    else:
        text, status = _taken(was, known, leaving, staying), "cleaned"
        if not staying and not known.existed and blank(text):
            text, status = None, "removed"
    if text is None:
        files.remove(real)
    elif text == was:
        status = "unchanged"
    else:
        if not untouched:
            files.back_up(path, was)
        files.write(real, text, was)
    rest = {key for keys in staying.values() for key in keys}
    state = known.state._replace(entries=tuple(key for key in known.state.entries if key in rest))
    after = record.digest(text) if text is not None and untouched else known.after
    files.note(path, known._replace(hosts=staying, state=state, after=after) if staying else None)
    return Outcome(leaving[0], part, path, status, (), difference(path, was, text))


def _taken(
    was: str,
    known: Record,
    leaving: Iterable[str],
    staying: dict[str, tuple[Key, ...]] | None = None,
) -> str:
    """A text without the entries of some hosts, proven to say the same otherwise."""
    shared = {key for keys in (staying or {}).values() for key in keys if key[0] != "hook"}
    text = was
    for host in leaving:
        keys = [key for key in known.hosts[host] if key not in shared]
        shorter = entries.take(text, keys, host, known.state)
        if not entries.prove_take(text, shorter, keys, host, known.state):
            raise BethinkError(
                "Our entries cannot be taken out without changing something else.",
                "Take them out by hand.",
            )
        text = shorter
    return text


def blank(text: str) -> bool:
    """Whether a file says nothing: no text, or an object without members and comments."""
    return "".join(text.replace("\ufeff", "").split()) in ("", "{}")


def strays(files: Files, hosts: Iterable[str], place: Place, force: bool) -> list[Outcome]:
    """Entries of Bethink that the record does not know: told, and with `force` taken out."""
    targets = [(host, target) for host in hosts for target in merged(module(host).targets(place))]
    unknown = [
        (host, target)
        for host, target in targets
        if target.entries and str(target.path) not in files.records
    ]
    return [one for host, target in unknown if (one := _stray(files, host, target, place, force))]


def _stray(files: Files, host: str, target: Target, place: Place, force: bool) -> Outcome | None:
    try:
        was = files.read(target.path.resolve())
        keys = [(one.kind, one.path) for one in target.entries if one.kind != "frame"]
        text = entries.take(was, keys, host, State()) if was else was
        if was is None or text is None or text == was:
            return None
        if not force:
            reason = f"{target.path} starts Bethink by an entry that `install` did not make. `bethink uninstall --force` removes it."
            return Outcome(host, target.part, target.path, "kept", (reason,))
        if not entries.prove_take(was, text, keys, host, State()):
            raise BethinkError(
                f"The entries in {target.path} cannot be taken out without changing something else.",
                "Take them out by hand.",
            )
        backup = files.back_up(target.path, was)
        files.write(followed(target.path, place.root), text, was)
    except InvalidInput:  # a file that cannot be read holds nothing that we could know
        return None
    except (BethinkError, OSError) as error:
        return Outcome(host, target.part, target.path, "failed", (str(error),))
    return Outcome(
        host, target.part, target.path, "cleaned", (), difference(target.path, was, text), backup
    )
