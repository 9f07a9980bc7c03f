"""A disk that loses power, as an apsw VFS.

Every write goes to the real file and is also noted as not yet safe; a sync makes what was noted safe. When the power goes,
at the operation whose number was given, every call fails from then on. `survive` then writes what such a disk might hold:
all that was synced, and of the rest any choice of 512-byte sectors, in any order, torn anywhere between them.
"""

from __future__ import annotations

import random
from pathlib import Path

import apsw

SECTOR = 512


class PowerLoss(apsw.VFS):
    """The default VFS while it is registered. Operations that change a file are counted in `operations`."""

    def __init__(self, lost_at: int | None = None) -> None:
        self.lost_at, self.operations, self.dark = lost_at, 0, False
        self.safe: dict[str, bytearray] = {}
        self.unsafe: dict[
            str, list[tuple[int, bytes | None]]
        ] = {}  # (offset, data), or (size, None) for a truncation
        super().__init__("powerloss", "unix", makedefault=True)

    def xOpen(self, name, flags):
        return DyingFile(self, name, flags)

    def xDelete(self, name, syncdir):
        self.step()
        self.safe.pop(name, None)
        self.unsafe.pop(name, None)
        super().xDelete(name, syncdir)

    def known(self, name: str) -> None:
        if name not in self.safe:
            path = Path(name)
            self.safe[name] = bytearray(path.read_bytes() if path.exists() else b"")
            self.unsafe[name] = []

    def step(self) -> None:
        """Counts an operation that changes the disk. From the fatal one on nothing happens any more."""
        if self.dark:
            raise apsw.IOError("the power is off")
        self.operations += 1
        self.dark = self.operations == self.lost_at

    def survive(self, folder: Path, rng: random.Random) -> None:
        """Puts what the disk may hold after the loss into a folder."""
        taste = rng.choice((0.0, 0.5, 0.9, 1.0))  # nothing unsynced, some, most, all
        for name, content in self.safe.items():
            kept = bytearray(content)
            for offset, data in self.unsafe[name]:
                if data is None:
                    if rng.random() < taste:
                        del kept[offset:]
                    continue
                for at in range(0, len(data), SECTOR):
                    if rng.random() < taste:
                        piece = data[at : at + SECTOR]
                        kept.extend(bytes(max(0, offset + at - len(kept))))
                        kept[offset + at : offset + at + len(piece)] = piece
            target = folder / Path(name).name
            target.write_bytes(kept)
            target.chmod(0o600)


class DyingFile(apsw.VFSFile):
    def __init__(self, vfs: PowerLoss, name, flags) -> None:
        self.vfs = vfs
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else name
        super().__init__("unix", name, flags)
        if self.name:
            vfs.known(self.name)

    def xWrite(self, data, offset):
        if self.name:
            self.vfs.step()
            self.vfs.unsafe[self.name].append(
                (offset, bytes(data))
            )  # the fatal write may still be there in part
        super().xWrite(data, offset)

    def xTruncate(self, size):
        if self.name:
            self.vfs.step()
            self.vfs.unsafe[self.name].append((size, None))
        super().xTruncate(size)

    def xSync(self, flags):
        """Makes safe what was noted. The real file need not be: only `survive` decides what is left of it."""
        if self.name:
            self.vfs.step()
            if self.vfs.dark:
                raise apsw.IOError("the power went during a sync")  # and nothing became safe by it
            content, noted = self.vfs.safe[self.name], self.vfs.unsafe[self.name]
            for offset, data in noted:
                if data is None:
                    del content[offset:]
                else:
                    content.extend(bytes(max(0, offset - len(content))))
                    content[offset : offset + len(data)] = data
            noted.clear()
