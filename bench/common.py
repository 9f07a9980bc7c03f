"""What the speed benchmarks share: the machine, percentiles, tables, made-up texts and vectors, and filling a database.

The texts are seeded, so that two runs compare the same. Never imported by `src`.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

import numpy as np

from recollect.ingest.extract import extract
from recollect.ingest.pipeline import Into, remembered
from recollect.store.writer import cache_key
from recollect.types import Batch, Entry, Passage, Source

BATCH = 2000


def machine() -> dict:
    """Printed first: a measure on a busy machine is only good for ratios."""
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    found = {"cores": os.cpu_count(), "load_average": load, "python": sys.version.split()[0]}
    print(f"{found['cores']} cores, load average {load}, Python {found['python']}", file=sys.stderr)
    return found


def percentile(times: Sequence[float], share: float) -> float:
    return float(np.percentile(np.asarray(times), share * 100))


def table(rows: Sequence[Sequence[object]]) -> None:
    """Rows in columns, the first one being the heading."""
    cells = [[f"{cell:,.2f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for number, row in enumerate(cells):
        first, *rest = zip(row, widths, strict=True)
        print("  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
    print(flush=True)


def told(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def resident() -> int:
    """Bytes of this process that are in memory; 0 where there is no /proc."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


# Texts

THINGS = """service database cache queue worker server client api endpoint request response session token user account payment invoice order
report index schema migration table column query transaction lock thread process container cluster node pod deployment release pipeline build
test fixture coverage branch commit review merge config setting flag secret key certificate header cookie proxy gateway router load balancer
webhook event message topic consumer producer stream batch job schedule cron timeout retry backoff limit quota budget alert metric dashboard
log trace error exception crash leak bug regression patch version dependency library package module function class method interface type
parser compiler linter formatter editor plugin extension template component widget form button page layout style theme font icon image upload
download file folder path disk backup snapshot archive region zone latency throughput memory processor network socket protocol format encoding
timestamp timezone locale translation currency tax discount cart checkout customer tenant role permission audit policy""".split()
ACTIONS = """uses reads writes validates caches retries rejects drops batches streams encrypts signs parses renders schedules locks merges splits
copies deletes archives indexes compresses throttles logs measures replaces blocks restarts rotates refreshes migrates exports imports""".split()
KINDS_OF = """slow stale nightly shared internal external legacy experimental primary secondary local remote encrypted cached optional required
partial empty large small duplicate missing broken flaky stable temporary permanent async nested public private default custom""".split()
TECHNOLOGIES = """PostgreSQL Redis Kafka SQLite Docker Kubernetes Terraform nginx Python Rust TypeScript React Django FastAPI GraphQL gRPC
RabbitMQ Elasticsearch Prometheus Grafana Celery Stripe GitHub Jenkins Webpack Vite Node Go Java Spark""".split()
TEMPLATES = (
    "We decided that the {k} {t} {a} the {t} before every {t}, because {x} made the {k} {t} of {n} fail under load.",
    "The {t} in {p} {a} a {k} {t}; {n} saw the {t} {t} return after {d} minutes when the {x} {t} was restarted.",
    "{n} prefers {x} for the {k} {t} and wants the {t} {t} kept out of the {t} that {a} the {k} {t}.",
    "Gotcha: {i} {a} the {t} twice if the {k} {t} is {k}, so the {t} of {x} needs a {t} of {d} seconds.",
    "To ship the {n} {t} we still have to move the {k} {t} from {x} to {x} and check how {i} {a} the {t}.",
    "The {n} team found that the {t} {a} {d} percent of each {k} {t}, so {p} now {a} only the {t} it needs.",
    "Why does the {k} {t} of {n} {v} the {t}? Nobody knows whether {i} or the {x} {t} {a} the {k} {t} first.",
    "Fixed the {k} {t}: {i} in {p} left the {t} open, and the {x} {t} hit its {t} of {d} after the {t} {t}.",
)
QUESTIONS = (
    "how does the {k} {t} handle the {t} {t}?",
    "why did the {t} of {n} fail?",
    "what did we decide about the {k} {t} and {x}?",
    "which {t} {a} the {t} in {n}?",
    "{x} {t} {t} {k}",
    "where is {i} used for the {t}?",
    "what should I know before changing the {t} that {a} the {k} {t}?",
    "{n} {t}",
)  # fmt: skip
_SYLLABLES = "al an ar bel bo ca cor da del dor el en fa fen ga gil ha hol im ka kel la lor ma mer mo na nor ol or pa per qui ra ren sa sol ta tor u va vel wo xi yu zan".split()


class Teller:
    """Makes texts about software projects. Every list is drawn from by Zipf's law; the made-up names are the long tail."""

    def __init__(self, seed: int = 7, names: int = 5000) -> None:
        self.random = random.Random(seed)
        self.names = ["".join(self.random.choices(_SYLLABLES, k=self.random.randint(2, 4))).capitalize() for _ in range(names)]
        self._weights: dict[int, list[float]] = {}

    def pick(self, words: Sequence[str]) -> str:
        weights = self._weights.setdefault(len(words), list(accumulate(1 / (rank + 2) for rank in range(len(words)))))
        return self.random.choices(words, cum_weights=weights)[0]

    def fill(self, template: str) -> str:
        makers = {
            "k": lambda: self.pick(KINDS_OF), "t": lambda: self.pick(THINGS), "a": lambda: self.pick(ACTIONS), "x": lambda: self.pick(TECHNOLOGIES),
            "v": lambda: self.pick(ACTIONS).removesuffix("s"), "n": lambda: self.pick(self.names), "d": lambda: str(self.random.randint(2, 900)),
            "i": lambda: f"{self.pick(ACTIONS)}_{self.pick(THINGS)}_{self.pick(THINGS)}",
            "p": lambda: f"src/{self.pick(THINGS)}/{self.pick(self.names).lower()}.py",
        }  # fmt: skip
        return "".join(makers[part[0]]() + part[2:] if at else part for at, part in enumerate(template.split("{")))

    def memories(self, count: int) -> list[str]:
        found: dict[str, None] = {}
        while len(found) < count:
            found[self.fill(self.random.choice(TEMPLATES))] = None
        return list(found)

    def passages(self, count: int, low: int = 3, high: int = 12) -> list[str]:
        """Paragraphs of a document: several sentences, 60 to 250 words."""
        return [" ".join(self.memories(self.random.randint(low, high))) for _ in range(count)]

    def questions(self, count: int) -> list[str]:
        return [self.fill(QUESTIONS[at % len(QUESTIONS)]) for at in range(count)]


def set_passages(folders: Sequence[Path], count: int, words: int, seed: int = 7) -> list[str]:
    """Distinct runs of about `words` words out of the texts of evaluation sets: real vocabulary, as many as are asked for."""
    texts = [row["text"].split() for folder in folders for row in _rows(folder / "corpus.jsonl")]
    texts = [text for text in texts if len(text) >= 5]
    dice, found = random.Random(seed), dict[str, None]()
    for _ in range(count * 50):
        if len(found) >= count:
            break
        text, size = dice.choice(texts), dice.randint(words // 2, words * 3 // 2)
        start = dice.randrange(max(1, len(text) - size))
        found[" ".join(text[start : start + size])] = None
    return list(found)


def set_questions(folders: Sequence[Path], count: int, seed: int = 7) -> list[str]:
    found = [row["query"] for folder in folders for row in _rows(folder / "queries.jsonl")]
    return random.Random(seed).sample(found, min(count, len(found)))


def _rows(path: Path) -> Iterator[dict]:
    with path.open(encoding="utf-8") as stream:
        yield from map(json.loads, stream)


# Vectors and databases


def perturbed(vectors: np.ndarray, count: int, rng: np.random.Generator, far: float = 0.6) -> np.ndarray:
    """`count` unit vectors: a given one plus part of the difference of two others, which keeps the spread that the real ones have."""
    found = np.empty((count, vectors.shape[1]), np.float32)
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        base, one, other = (vectors[rng.integers(len(vectors), size=size)] for _ in range(3))
        part = base + np.float32(far) * (one - other)
        found[start : start + size] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return found


def embedded(texts: Sequence[str], embedder, rng: np.random.Generator, really: int) -> tuple[np.ndarray, float]:
    """One vector per text, the first `really` of them by the model, the rest made from those; and the seconds a text took the model."""
    started = time.perf_counter()
    real = np.stack([matrix[0] for matrix in embedder.documents(list(texts[:really]))])
    seconds = (time.perf_counter() - started) / len(real)
    if len(texts) <= len(real):
        return real, seconds
    return np.concatenate([real, perturbed(real, len(texts) - len(real), rng)]), seconds


def fill(store, scope: str, texts: Sequence[str], vectors: Sequence, model: str, seed: int = 7) -> float:
    """Writes told memories with ready vectors, as the pipeline makes them, in large transactions. Returns the seconds it took."""
    dice, now = random.Random(seed), datetime.now(UTC)
    into, source = Into(scope=scope, now=now, scopes={scope: ("bench", "")}), Source("note:bench", "note")
    started = time.perf_counter()
    for start in range(0, len(texts), BATCH):
        made = [
            remembered(extract(Passage(text, created_at=now - timedelta(minutes=dice.randrange(525_600)))), source, into, 0)
            for text in texts[start : start + BATCH]
        ]
        own = vectors[start : start + BATCH]
        store.write(
            Batch(
                at=now, actor="bench", scopes=into.scopes, model=model,
                add=tuple(Entry(memory, (vector,)) for memory, vector in zip(made, own, strict=True)),
                cache={cache_key(memory.content).hex(): (vector,) for memory, vector in zip(made, own, strict=True)},
            )
        )  # fmt: skip
        if start % 50_000 == 0 and start:
            told(f"  {start:,} memories written")
    return time.perf_counter() - started
