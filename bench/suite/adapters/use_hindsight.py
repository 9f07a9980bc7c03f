"""Hindsight: its engine in this process, a bank per round, with its embedded PostgreSQL and its language model set to `none`.

Without a language model it stores texts as they are, its documented chunks-only mode. It searches by meaning, words, entities and time,
and fuses them by reciprocal ranks, since its cross-encoder comes from a hub. Its embeddings come from the shared model.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import subprocess
import sysconfig
from datetime import datetime
from pathlib import Path
from typing import Any

from embedder import DIMENSIONS, Embedder
from protocol import ANSWERED, Adapter, serve

os.environ |= {
    "HINDSIGHT_API_LLM_PROVIDER": "none",
    "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
}
from hindsight_api.engine.embeddings import Embeddings
from hindsight_api.engine.memory_engine import MemoryEngine
from hindsight_api.models import RequestContext

BATCH = 100
TOKENS = 100_000  # of an answer: the number of hits is cut here


class Shared(Embeddings):
    provider_name, dimension = "suite", DIMENSIONS

    def __init__(self) -> None:
        self._embedder = Embedder()

    async def initialize(self) -> None:
        pass

    async def encode(self, texts: list[str]) -> list[list[float]]:
        return self._embedder.documents(texts)

    async def encode_query(self, texts: list[str]) -> list[list[float]]:
        return [self._embedder.query(text) for text in texts]


def start_database(folder: Path) -> str:
    """Start the embedded PostgreSQL and return its address. It refuses to run as root, so root starts it as nobody."""
    home = folder / "database"
    home.mkdir()
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        for one in (folder.parent, folder):
            one.chmod(0o755)
        home.chmod(0o777)
        user = {"user": "nobody", "group": "nogroup", "extra_groups": ()}
    program = Path(sysconfig.get_path("purelib")) / "pg0/bin/pg0"
    environment = {**os.environ, "HOME": str(home)}
    options: dict[str, Any] = {"env": environment, "cwd": home, **user}
    subprocess.run([program, "start"], check=True, stdout=subprocess.DEVNULL, **options)
    atexit.register(subprocess.run, [program, "stop"], stdout=subprocess.DEVNULL, **options)
    information = subprocess.check_output([program, "info", "--output", "json"], **options)
    return str(json.loads(information)["uri"])


class Hindsight(Adapter):
    package = "hindsight-api-slim"

    def __init__(self) -> None:
        super().__init__()
        self._loop, self._context = asyncio.Runner(), RequestContext()
        database = start_database(self.folder)
        self._engine = MemoryEngine(database, embeddings=Shared())
        self._loop.run(self._engine.initialize())

    def reset(self) -> None:
        self.round += 1
        self._bank = f"round-{self.round}"
        self._ids: dict[str, str] = {}
        profile = self._engine.ensure_bank_profile(self._bank, request_context=self._context)
        self._loop.run(profile)

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        self.load([{"text": text, "time": time, "who": who, "source": source, "id": id}])

    def load(self, items: list[dict[str, Any]]) -> None:
        items = [item for item in items if item["text"].strip()]
        for start in range(0, len(items), BATCH):
            contents = []
            for item in items[start : start + BATCH]:
                name = f"{self._bank}-{len(self._ids)}"
                self._ids[name] = item.get("id", "")
                content = {"content": item["text"], "document_id": name}
                content["context"] = f"{item['source']} by {item['who']}"
                contents.append({**content, "event_date": datetime.fromisoformat(item["time"])})
            batch = self._engine.retain_batch_async(
                bank_id=self._bank, contents=contents, request_context=self._context
            )
            self._loop.run(batch)

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        search = self._engine.recall_async(
            bank_id=self._bank,
            query=question,
            max_tokens=TOKENS if k < ANSWERED else 2 * TOKENS,
            question_date=datetime.fromisoformat(time),
            request_context=self._context,
        )
        found = self._loop.run(search).results[:k]
        return [{"text": one.text, "id": self._ids.get(one.document_id or "", "")} for one in found]


serve(Hindsight())
atexit._run_exitfuncs()
os._exit(0)  # its threads wait for more
