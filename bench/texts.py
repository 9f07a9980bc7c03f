"""Texts to write and questions to ask: made up from a seed, so that two runs compare the same, or cut out of evaluation sets."""

import json
import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path

_THINGS = """
service database cache queue worker server client api endpoint request response session token user account payment invoice order
report index schema migration table column query transaction lock thread process container cluster node pod deployment release
pipeline build test fixture coverage branch commit review merge config setting flag secret key certificate header cookie proxy
gateway router load balancer webhook event message topic consumer producer stream batch job schedule cron timeout retry backoff
limit quota budget alert metric dashboard log trace error exception crash leak bug regression patch version dependency library
package module function class method interface type parser compiler linter formatter editor plugin extension template component
widget form button page layout style theme font icon image upload download file folder path disk backup snapshot archive region
zone latency throughput memory processor network socket protocol format encoding timestamp timezone locale translation currency
tax discount cart checkout customer tenant role permission audit policy
"""
_ACTIONS = """
uses reads writes validates caches retries rejects drops batches streams encrypts signs parses renders schedules locks merges
splits copies deletes archives indexes compresses throttles logs measures replaces blocks restarts rotates refreshes migrates
exports imports
"""
_KINDS_OF = """
slow stale nightly shared internal external legacy experimental primary secondary local remote encrypted cached optional required
partial empty large small duplicate missing broken flaky stable temporary permanent async nested public private default custom
"""
_TECHNOLOGIES = """
PostgreSQL Redis Kafka SQLite Docker Kubernetes Terraform nginx Python Rust TypeScript React Django FastAPI GraphQL gRPC RabbitMQ
Elasticsearch Prometheus Grafana Celery Stripe GitHub Jenkins Webpack Vite Node Go Java Spark
"""
_SYLLABLES = """
al an ar bel bo ca cor da del dor el en fa fen ga gil ha hol im ka kel la lor ma mer mo na nor ol or pa per qui ra ren sa sol ta
tor u va vel wo xi yu zan
"""
THINGS, ACTIONS, KINDS_OF, TECHNOLOGIES, SYLLABLES = (
    words.split() for words in (_THINGS, _ACTIONS, _KINDS_OF, _TECHNOLOGIES, _SYLLABLES)
)
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
)


@cache
def _zipf(count: int) -> list[float]:
    return list(accumulate(1 / (rank + 2) for rank in range(count)))


class Teller:
    """Makes texts about software projects. Every list is drawn from by Zipf's law; the made-up names are the long tail."""

    def __init__(self, seed: int = 7, names: int = 5000) -> None:
        self.random = random.Random(
            1
        )  # the names are the same for every seed: questions ask about what the texts tell
        self.names = [
            "".join(self.random.choices(SYLLABLES, k=self.random.randint(2, 4))).capitalize()
            for _ in range(names)
        ]
        self.random.seed(seed)

    def pick(self, words: Sequence[str]) -> str:
        return self.random.choices(words, cum_weights=_zipf(len(words)))[0]

    def fill(self, template: str) -> str:
        makers = {
            "k": lambda: self.pick(KINDS_OF),
            "t": lambda: self.pick(THINGS),
            "a": lambda: self.pick(ACTIONS),
            "v": lambda: self.pick(ACTIONS).removesuffix("s"),
            "x": lambda: self.pick(TECHNOLOGIES),
            "n": lambda: self.pick(self.names),
            "d": lambda: str(self.random.randint(2, 900)),
            "i": lambda: f"{self.pick(ACTIONS)}_{self.pick(THINGS)}_{self.pick(THINGS)}",
            "p": lambda: f"src/{self.pick(THINGS)}/{self.pick(self.names).lower()}.py",
        }
        return "".join(
            makers[part[0]]() + part[2:] if at else part
            for at, part in enumerate(template.split("{"))
        )

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
