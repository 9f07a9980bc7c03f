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

Labels = tuple[tuple[str, str], ...]


class Metrics:
    def __init__(self) -> None:
        self.started = time.time()
        self.running = 0
        self._requests: Counter[Labels] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[("method", method), ("route", route), ("status", str(status))] += 1
        self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))[
            bisect_left(BUCKETS, seconds)
        ] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]

    def quantile(self, routes: Iterable[str], share: float) -> float | None:
        """The seconds within which this share of the requests of some routes was answered, as nearly as the buckets tell."""
        counts: list[int] = [
            sum(found)
            for found in zip(
                *(self._buckets[route] for route in routes if route in self._buckets), strict=True
            )
        ]
        wanted, before, lower = sum(counts) * share, 0, 0.0
        for bound, number in zip((*BUCKETS, BUCKETS[-1]), counts, strict=False):
            if number and before + number >= wanted:
                return lower + (bound - lower) * (wanted - before) / number
            before, lower = before + number, bound
        return None

    def answered(self, routes: Iterable[str]) -> int:
        """How many requests of some routes there were."""
        return sum(sum(self._buckets.get(route, ())) for route in routes)

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Everything in Prometheus' text form; `gauges` are name → what it is, value."""
        lines = _family(
            "bethink_requests_total", "counter", "Requests answered.", self._requests.items()
        )
        lines += _family(
            "bethink_requests_running", "gauge", "Requests being answered.", [((), self.running)]
        )
        lines += [
            "# HELP bethink_request_seconds How long requests took.",
            "# TYPE bethink_request_seconds histogram",
        ]
        for route, counts in sorted(self._buckets.items()):
            total = 0
            for bound, number in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                total += number
                lines.append(
                    _sample(
                        "bethink_request_seconds_bucket", (("route", route), ("le", bound)), total
                    )
                )
            lines.append(
                _sample("bethink_request_seconds_sum", (("route", route),), self._seconds[route])
            )
            lines.append(_sample("bethink_request_seconds_count", (("route", route),), total))
        lines += _family(
            "bethink_start_time_seconds", "gauge", "When the server started.", [((), self.started)]
        )
        for name, (about, value) in gauges.items():
            lines += _family(name, "gauge", about, [((), value)])
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[Labels, float]]) -> list[str]:
    return [
        f"# HELP {name} {about}",
        f"# TYPE {name} {kind}",
        *(_sample(name, labels, value) for labels, value in sorted(samples)),
    ]


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{inside}}} {value:.10g}" if inside else f"{name} {value:.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
