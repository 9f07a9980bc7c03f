"""The user's own `claude` program, headless: their subscription, no key of ours.

It runs in an empty folder, without tools, settings, hooks, MCP servers, memory files or a transcript, and with
BETHINK_HOOKS=off, so that no hook of ours answers it. The question goes in on standard input, where other users of the
machine cannot see it. Its whole process group is ended with it, in time or not.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from bethink.llm.base import Answer, Ask, ModelError, counted

PROGRAM = "claude"
MODEL = "haiku"
LARGEST_OUTPUT = 2 << 20
GRACE = 1.0  # seconds to tidy up in
# Claude Code reads every file that a question names as @path, even without tools. Recorded text is full of such names.
MENTION, HARMLESS = "@", "\uff20"
ENVIRONMENT = {
    "BETHINK_HOOKS": "off",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "DISABLE_AUTOUPDATER": "1",
}
# Marks of the session that we may have been called from.
OUTER = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
)


class ClaudeCli:
    def __init__(self, model: str = "", timeout: float = 60.0) -> None:
        self._model = model or MODEL
        self.name = f"claude {self._model}"
        self._timeout = timeout

    def send(self, ask: Ask) -> Answer:
        program = shutil.which(PROGRAM)
        if program is None:
            raise ModelError(
                f"The program `{PROGRAM}` is not on the path.",
                "Install Claude Code, or set `llm` to another provider.",
                "missing",
            )
        try:
            # What cannot be cleared away must not cost the answer.
            with (
                tempfile.TemporaryDirectory(
                    prefix="bethink-", ignore_cleanup_errors=True
                ) as folder,
                tempfile.TemporaryFile() as question,
            ):
                question.write(ask.text.replace(MENTION, HARMLESS).encode("utf-8", "replace"))
                question.seek(0)
                code, output, complaint = self._run(
                    [program, *self._arguments(ask)], Path(folder), question, ask.tokens
                )
        except OSError as error:
            raise ModelError(
                f"The program {program} cannot be run: {error}.",
                "Try `claude -p hello` by hand.",
                "missing",
            ) from None
        return self._read(code, output, complaint)

    def _arguments(self, ask: Ask) -> list[str]:
        return [
            "-p",
            "--output-format",
            "json",
            "--model",
            self._model,
            "--effort",
            "low",
            "--tools",
            "",
            "--setting-sources",
            "",
            "--strict-mcp-config",
            "--no-session-persistence",
            "--disable-slash-commands",
            "--system-prompt",
            ask.instruction,
            "--json-schema",
            json.dumps(ask.schema),
        ]

    def _run(
        self, command: list[str], folder: Path, question: IO[bytes], tokens: int
    ) -> tuple[int, bytes, bytes]:
        empty, scratch = folder / "empty", folder / "scratch"
        empty.mkdir()
        scratch.mkdir()
        environment = {name: value for name, value in os.environ.items() if name not in OUTER}
        environment |= {
            **ENVIRONMENT,
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(tokens),
            "CLAUDE_CODE_TMPDIR": str(scratch),
        }
        process = subprocess.Popen(
            command,
            cwd=empty,
            env=environment,
            stdin=question,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        output, complaint = bytearray(), bytearray()
        readers = [
            threading.Thread(target=_drain, args=(stream, kept), daemon=True)
            for stream, kept in ((process.stdout, output), (process.stderr, complaint))
        ]
        try:
            for reader in readers:
                reader.start()
            code = process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            hint = "Raise the setting `llm_timeout`, or try `claude -p hello` by hand."
            raise ModelError(
                f"{command[0]} did not answer within {self._timeout:g} seconds.",
                hint,
                "timeout",
                usage=None,
            ) from None
        finally:
            _end(process)
            for reader in readers:
                reader.join(1.0)
            for stream, reader in zip((process.stdout, process.stderr), readers, strict=True):
                if stream is not None and not reader.is_alive():
                    stream.close()
        return code, bytes(output), bytes(complaint)

    def _read(self, code: int, output: bytes, complaint: bytes) -> Answer:
        if len(output) >= LARGEST_OUTPUT:
            raise ModelError(
                f"`{PROGRAM}` printed more than {LARGEST_OUTPUT >> 20} MB.",
                "Try it by hand.",
                "large",
                usage=None,
            )
        try:
            result = json.loads(output)
        except (ValueError, RecursionError):
            result = None
        if not isinstance(result, dict) or result.get("type") != "result":
            said = _line(complaint.decode("utf-8", "replace"))
            message = f"`{PROGRAM}` ended with code {code} and without a result" + (
                f": {said}." if said else "."
            )
            raise ModelError(
                message,
                "Try `claude -p hello` by hand.",
                "garbage" if code == 0 else "refused",
                usage=None,
            )
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        usage = counted(result.get("usage"), names, ("output_tokens",))
        if result.get("is_error") or result.get("subtype") != "success":
            said = _line(str(result.get("result") or result.get("subtype")))
            hint = "Try `claude -p hello` by hand; `claude /login` signs in."
            raise ModelError(f"`{PROGRAM}` could not answer: {said}.", hint, _reason(result), usage)
        found = result.get("structured_output")
        text = (
            json.dumps(found, ensure_ascii=False)
            if found is not None
            else str(result.get("result"))
        )
        return Answer(text.replace(HARMLESS, MENTION), usage)


def _line(text: str) -> str:
    return " ".join(text.split())[:300].rstrip(".")


def _reason(result: Mapping[str, Any]) -> str:
    status = result.get("api_error_status")
    if status in (401, 403):
        return "key"
    if result.get("subtype") == "error_max_structured_output_retries":
        return "form"
    if result.get("stop_reason") == "refusal":
        return "declined"
    if status == 429 or (isinstance(status, int) and status >= 500):
        return "busy"
    return "unreachable" if result.get("api_error") == "connection_failed" else "refused"


def _drain(stream: IO[bytes], kept: bytearray) -> None:
    """Keeps the beginning and goes on reading, so that the program is never stuck on a full pipe."""
    try:
        while chunk := stream.read1(65536):  # type: ignore[attr-defined]
            kept += chunk[: LARGEST_OUTPUT - len(kept)]
    except (OSError, ValueError):
        return  # closed under us


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the program and all that it started in its group: first asked, so that it can tidy up, then made to.

    The group's number is not given out again while any of it lives, and if none does there is nothing to end.
    """
    for how in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        with contextlib.suppress(
            ProcessLookupError, PermissionError
        ):  # macOS says the latter of a group that has ended
            if hasattr(os, "killpg"):
                os.killpg(process.pid, how)
            else:
                process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    process.wait()
