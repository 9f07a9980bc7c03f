"""Ids: UUID version 7, so that they sort by the time they were made; and hashes without OpenSSL, whose library takes longer to load
than a search takes to run."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b, sha256
else:
    try:
        from _blake2 import blake2b

        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256  # until Python 3.12
        except ImportError:
            from hashlib import blake2b, sha256

__all__ = ["blake2b", "new_id", "sha256"]

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A new id, later in order than every earlier one of this process."""
    global _last
    with _lock:
        # 48 bits of milliseconds and 12 bits of a counter that carries over into the next millisecond when full.
        stamp = max(time.time_ns() // 1_000_000 << 12, _last + 1)
        _last = stamp
    tail = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    digits = f"{stamp >> 12:012x}7{stamp & 0xFFF:03x}{tail:016x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
