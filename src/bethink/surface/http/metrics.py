"""Numbers about the server for Prometheus: requests by route and status, how long they took, memories, bytes.

Only the event loop counts, so nothing is locked. A route is a pattern such as `/api/v1/memories/{id}`: no label ever holds what
a caller sent.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    def __init__(self) -> None:
        self.started = time.time()
        self.running = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()  # method, route, status
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        buckets = self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))
        buckets[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def quantile(self, routes: Iterable[str], share: float) -> float | None:
        """The seconds within which this share of the requests of some routes was answered, as nearly as the buckets tell."""
        known = [self._buckets[route] for route in routes if route in self._buckets]
        counts: list[int] = [sum(column) for column in zip(*known, strict=True)]
        wanted, before, lower = sum(counts) * share, 0, 0.0
        for bound, number in zip((*BUCKETS, BUCKETS[-1]), counts, strict=False):
            if number and before + number >= wanted:
                return lower + (bound - lower) * (wanted - before) / number
            before, lower = before + number, bound
        return None

    def number(self, routes: Iterable[str]) -> int:
        """How many requests of some routes there were."""
        return sum(sum(self._buckets.get(route, ())) for route in routes)

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Everything in Prometheus' text form; `gauges` are name → what it is, value."""
        name = "bethink_requests_total"
        lines = [f"# HELP {name} Requests answered.", f"# TYPE {name} counter"]
        for (method, route, status), number in sorted(self._requests.items()):
            lines.append(f'{name}{{method="{method}",route="{route}",status="{status}"}} {number}')
        name = "bethink_request_seconds"
        lines += [f"# HELP {name} How long requests took.", f"# TYPE {name} histogram"]
        for route, counts in sorted(self._buckets.items()):
            total = 0
            for bound, number in zip((*BUCKETS, "+Inf"), counts, strict=True):
                total += number
                lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'{name}_sum{{route="{route}"}} {self._seconds[route]:.10g}')
            lines.append(f'{name}_count{{route="{route}"}} {total}')
        own = {
            "bethink_requests_running": ("Requests being answered.", self.running),
            "bethink_start_time_seconds": ("When the server started.", self.started),
        }
        for name, (about, value) in {**own, **gauges}.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge", f"{name} {value:.10g}"]
        return "\n".join(lines) + "\n"
