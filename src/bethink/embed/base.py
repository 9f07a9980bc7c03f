"""The interface of embedders, and what all local models share, the judge included.

Text is made safe and cut to size, split into tokens, and run by a model whose file is opened here.

A text longer than the model's window becomes several windows and so several vectors; nothing is cut off.
Nothing here knows one model from another, or where vectors are kept.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from _thread import allocate_lock
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from bethink.errors import EmbeddingError
from bethink.model import Values
from bethink.text import sha256

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
else:
    Matrix = Any  # NumPy arrives late

Bytes = Callable[[int, int | None], None]
"""Called with the bytes fetched so far and, where known, their total."""

COPY_DAYS = 7  # after which a copy of a model that is no longer there is removed
WINDOW = 128  # tokens of text behind one vector (bench/LOG.md, 2026-11-15)
Tokens = list[int]  # the numbers of a text's pieces


class Embedder(Protocol):
    remote: bool
    """True if it sends text to another process or machine. Without it an embedder counts as remote."""

    # Optional: `destination`, where a remote embedder sends text, such as "api.openai.com".
    # Optional: `english_only = True` if it knows English alone, so that another model reads other languages beside it.
    # Optional: `quick = True` if a vector is made faster than it is read from the cache of questions.

    model: str
    """Identity kept beside every vector: the model's name and revision. Vectors of different identities never meet."""

    baseline: float
    """The cosine this model usually gives a question and a text that have nothing to do with each other."""

    unrelated: float
    """The cosine of two statements of one project that have nothing to do with each other."""

    def documents(self, texts: Sequence[str]) -> list[Matrix]:
        """One float32 array of shape (windows, dimensions) per text, rows of length 1."""
        ...

    def query(self, text: str) -> Matrix:
        """One float32 unit vector of shape (dimensions,), made the way this model wants questions made."""
        ...


# A sentence ends after its mark and the quotes or brackets that close on it; a line ends at its break; Chinese and Japanese need no space.
_SENTENCE_END = r"(?<=[.!?…])[\"'”’)\]]*\s+|\n\s*|(?<=[。！？])"


def clean(text: str) -> str:
    """Replace characters that break tokenizers and JSON: NUL by a space, half a surrogate pair by U+FFFD."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\x00", " ")


def sentence_ends(text: str) -> list[int]:
    """The places where a new sentence or line begins, ascending; possibly the end of the text among them."""
    return [match.end() for match in re.finditer(_SENTENCE_END, text)]


def pieces(text: str, limit: int) -> Iterator[str]:
    """Cut a text into pieces of at most `limit` characters, between sentences or lines if possible."""
    start = 0
    while len(text) - start > limit:
        low, high = start + limit // 2, start + limit
        ends = sentence_ends(text[low:high])
        end = low + ends[-1] if ends else high
        yield text[start:end]
        start = end
    yield text[start:]


# Tokens, as a model was trained on them. BERT's uncased WordPiece, which the default model, the judge and most small models use, is done
# here. It gives the very ids of the package `tokenizers` on any text, and takes a fifth of its time, because a word that was cut once is
# remembered. Every other kind of tokenizer.json is read by that package, which the extra `models` brings.

WORDS_REMEMBERED = 20_000
SPECIAL_PURPOSE = 0x30000  # characters from here on are not worth remembering
# How a tokenizer.json says that it is of the kind that is done here. Accents go where letters are made small.
UNCASED = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}
BY_SPACES_AND_MARKS = {"type": "BertPreTokenizer"}


class Tokenizer(Protocol):
    opening: tuple[int, ...]
    """Special tokens before every text; `closing` has those after it."""
    closing: tuple[int, ...]

    def encode(self, text: str) -> Tokens:
        """Return the tokens of a text, without special ones. "[SEP]" in the text is plain text."""
        ...


_opening = allocate_lock()


def open_tokenizer(file: Path) -> Tokenizer:
    """Open the tokenizer of a file, without limits. Models with the same tokenizer share one."""
    text = file.read_text("utf-8")
    with _opening:
        return _read_tokenizer(text)


@lru_cache(maxsize=4)
def _read_tokenizer(text: str) -> Tokenizer:
    settings = json.loads(text)
    return WordPiece(settings) if _is_uncased(settings) else LibraryTokenizer(text)


def _is_uncased(settings: Values) -> bool:
    return (
        settings.get("normalizer") == UNCASED
        and settings.get("pre_tokenizer") == BY_SPACES_AND_MARKS
        and settings["model"].get("type") == "WordPiece"
        and settings["post_processor"]["type"] == "TemplateProcessing"
        and all(token["special"] for token in settings["added_tokens"])
    )


class WordPiece:
    """BERT's uncased WordPiece tokenizer, without the package `tokenizers`.

    Words of letters, single marks and single Chinese characters are each cut into the longest pieces of the vocabulary from the left. A word
    that cannot be cut so, or that is too long, is one unknown token.
    """

    def __init__(self, settings: Values) -> None:
        model = settings["model"]
        self._pieces: dict[str, int] = model["vocab"]
        self._inner: str = model["continuing_subword_prefix"]
        self._unknown = (self._pieces[model["unk_token"]],)
        self._longest_word: int = model["max_input_chars_per_word"]
        self._longest_piece = max(map(len, self._pieces))
        self._characters = Characters()
        self._cut = lru_cache(WORDS_REMEMBERED)(self._cut_word)
        self.opening: tuple[int, ...] = (self._pieces["[CLS]"],)
        self.closing: tuple[int, ...] = (self._pieces["[SEP]"],)

    def encode(self, text: str) -> Tokens:
        ids: Tokens = []
        for word in text.translate(self._characters).split():
            ids += self._cut(word)
        return ids

    def _cut_word(self, word: str) -> tuple[int, ...]:
        if len(word) > self._longest_word:
            return self._unknown
        found: Tokens = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self._longest_piece), start, -1):
                piece = self._pieces.get(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return self._unknown
            found.append(piece)
            start, prefix = end, self._inner
        return tuple(found)


class Characters(dict[int, str]):
    """Replacements of characters, computed on first use: lower case, no accents, marks between spaces."""

    def __missing__(self, code: int) -> str:
        import unicodedata
        from bisect import bisect_right

        starts, classes = _read_classes()
        made = ""
        for part in unicodedata.normalize("NFD", chr(code)):
            found = classes[bisect_right(starts, ord(part)) - 1]
            if found != "removed":
                made += {"space": " ", "alone": f" {part} "}.get(found, part.lower())
        if code < SPECIAL_PURPOSE:
            self[code] = made
        return made


@cache
def _read_classes() -> tuple[list[int], list[str]]:
    """First character of each run of one class, and the class: "" for letters, which are most."""
    begins = {0: ""}
    for line in (Path(__file__).parent / "characters.txt").read_text("ascii").splitlines():
        name, _, runs = line.partition(": ")
        for run in runs.split() if not name.startswith("#") else ():
            first, _, last = run.partition("-")
            begins[int(first, 16)] = name
            begins.setdefault(int(last or first, 16) + 1, "")
    starts = sorted(begins)
    return starts, [begins[start] for start in starts]


class LibraryTokenizer:
    """Any other kind, read by the package `tokenizers`."""

    def __init__(self, text: str) -> None:
        try:
            import tokenizers
        except ImportError:
            raise EmbeddingError(
                "This model splits texts in a way that needs the package tokenizers, which is not installed.",
                "Run `pip install 'bethink[models]'`.",
            ) from None
        self._tokenizer = tokenizers.Tokenizer.from_str(text)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True
        sample = self._tokenizer.encode("a")
        special = sample.special_tokens_mask
        first, behind = special.index(0), special[::-1].index(0)
        self.opening = tuple(sample.ids[:first])
        self.closing = tuple(sample.ids[len(special) - behind :])

    def encode(self, text: str) -> Tokens:
        # A space at the end would be a separate token where a token begins with the space before it.
        found: Tokens = self._tokenizer.encode(text.strip(), add_special_tokens=False).ids
        return found


# Models of onnxruntime

# Runs of a model after which its weights are packed, which makes a run 2 to 4 ms faster and costs 20 to 80 ms once
# (bench/LOG.md, 2026-11-19).
PACKED_AFTER = 16
_COPY, _WEIGHTS = "model.onnx", "weights.bin"  # names in the folder of a copy
# Bytes of a part of a model from which it is in the file of weights. Each is mapped on its own, which takes longer than to read a small one:
# opening the judge 29 → 24 ms (bench/LOG.md, 2026-11-19).
_MAPPED = 16_384


class Session:
    """An onnxruntime session that opens fast, and packs its weights once it turns out to be used a lot."""

    def __init__(self, start: Callable[[bool], Any]) -> None:
        self._start = start
        self._session = start(False)
        self._runs: int | None = 0  # None once the weights are packed, or cannot be
        self._lock = allocate_lock()

    def run(self, outputs: list[str], inputs: Values) -> Any:
        if self._runs is not None and self._is_busy():
            with suppress(
                Exception
            ):  # its errors have no common base class, and this session works
                self._session = self._start(True)
                _return_memory()
        return self._session.run(outputs, inputs)

    def _is_busy(self) -> bool:
        """Count a run. Returns True for the run that has to pack the weights."""
        with self._lock:
            if self._runs is None or self._runs < PACKED_AFTER:
                self._runs = None if self._runs is None else self._runs + 1
                return False
            self._runs = None
            return True

    def get_inputs(self) -> Any:
        return self._session.get_inputs()

    def get_outputs(self) -> Any:
        return self._session.get_outputs()


_sessions: WeakValueDictionary[Path, Session] = WeakValueDictionary()  # that this process has open


def open_session(model: Path, home: Path) -> Session:
    """Open a session over a model, on one core. All that use a model in a process share one session."""
    # It looks only while it is imported. Without this it writes an id of the machine into the user's cache and calls home.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    copies = home / "models" / ".optimised"
    status = model.stat()
    parts = (model.resolve(), status.st_size, status.st_mtime_ns, onnxruntime.__version__, _MAPPED)
    identity = " ".join(map(str, parts))
    copy = copies / sha256(identity.encode()).hexdigest()[:20]
    session = _sessions.get(copy)
    return session or _sessions.setdefault(copy, _open_session(model, copies, copy))


def _open_session(model: Path, copies: Path, copy: Path) -> Session:
    """Open the copy of a model, and make it if there is none.

    onnxruntime first rewrites the graph into faster operations, which is two thirds of the opening (bench/LOG.md, 2026-11-16). So the
    rewritten model is stored under `home` for the next process, with its weights in a file that is mapped into memory instead of read. The
    numbers are the same. Such a copy can be deleted at any time, and is replaced if it cannot be read.
    """
    import onnxruntime

    levels = onnxruntime.GraphOptimizationLevel

    def start(file: Path, level: object, pack: bool = True, written: Path | None = None) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # texts run side by side instead
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what is wrong is raised; stderr belongs to the program
        options.graph_optimization_level = level
        options.enable_cpu_mem_arena = False  # it grows to the longest text and never shrinks
        if not pack:
            options.add_session_config_entry("session.disable_prepacking", "1")
        if written:
            options.optimized_model_filepath = str(written / _COPY)
            entry = "session.optimized_model_external_initializers_"
            options.add_session_config_entry(f"{entry}file_name", _WEIGHTS)
            options.add_session_config_entry(f"{entry}min_size_in_bytes", str(_MAPPED))
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    def start_copy(pack: bool) -> Any:
        return start(copy / _COPY, levels.ORT_DISABLE_ALL, pack)

    # Its errors have no common base class.
    with suppress(Exception):
        if copy.exists():
            return Session(start_copy)
    part = copy.with_suffix(f".{os.getpid()}.part")
    try:
        _prepare_copies(copies)
        part.mkdir(mode=0o700)
        session = start(model, levels.ORT_ENABLE_EXTENDED, written=part)
        _replace_copy(part, copy)
        del session
        _return_memory()
        return Session(start_copy)
    except Exception:  # noqa: BLE001 - a folder that is only read, a full disk: opening goes on as slowly as before
        _remove_copy(part)
    whole = start(model, levels.ORT_ENABLE_EXTENDED)
    return Session(lambda pack: whole)


def _return_memory() -> None:
    """Return freed memory to the system: a model that was opened to be rewritten leaves up to 100 MB."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with suppress(OSError, AttributeError):  # not every C library has it
        ctypes.CDLL(None).malloc_trim(0)


def _replace_copy(part: Path, copy: Path) -> None:
    """Rename a new copy to its place, in which there may be a damaged one, or that of another process."""
    try:
        part.replace(copy)
    except OSError:
        _remove_copy(copy)
        part.replace(copy)


def _remove_copy(copy: Path) -> None:
    with suppress(OSError):
        if copy.is_dir():
            for file in copy.iterdir():
                file.unlink()
            copy.rmdir()
        else:
            copy.unlink()


def _prepare_copies(copies: Path) -> None:
    copies.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in copies.iterdir():
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > COPY_DAYS * 86_400:
                _remove_copy(old)
