"""Requests that are sent twice and done once: the answer to an `Idempotency-Key` is kept and given again.

Kept in this process only. After a restart the store itself notices that the same text is added again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

from recollect.http.problems import Refusal

KEPT = 200
LONGEST_KEY = 200


class Kept(NamedTuple):
    asked: str  # hash of the request
    answer: Any  # None while it is being worked out


class Once:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()

    def __call__(self, who: str, key: str | None, request: bytes, work: Callable[[], Any]) -> Any:
        """The answer to a request: worked out now, or the one that its key got before."""
        if key is None:
            return work()
        if not 1 <= len(key) <= LONGEST_KEY:
            raise Refusal(400, f"An Idempotency-Key has 1 to {LONGEST_KEY} characters.", "A random UUID is a good one.")
        place, asked = (who, key), sha256(request).hexdigest()
        with self._lock:
            known = self._kept.get(place)
            if known is None:
                self._kept[place] = Kept(asked, None)
        if known is not None:
            return self._repeated(known, asked)
        try:
            answer = work()
        except BaseException:
            with self._lock:
                self._kept.pop(place, None)  # what failed may be tried again
            raise
        with self._lock:
            self._kept[place] = Kept(asked, answer)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return answer

    def _repeated(self, known: Kept, asked: str) -> Any:
        if known.asked != asked:
            raise Refusal(422, "This Idempotency-Key was sent with another request before.", "Take a new key for a new request.")
        if known.answer is None:
            raise Refusal(409, "The same request is being worked on.", "Wait for its answer, or ask again in a moment.")
        return known.answer
