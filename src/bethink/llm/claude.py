"""The user's own `claude` program. A provider only sends, once; `Model` redacts, counts and checks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from bethink import post
from bethink.config import Config
from bethink.llm.anthropic import INPUTS
from bethink.llm.base import (
    LanguageModelProvider,
    ModelError,
    ModelRequest,
    RawAnswer,
    end_process,
)
from bethink.llm.http import read_usage
from bethink.llm.program import is_signed_out

LARGEST_OUTPUT = 2 << 20
# Claude Code reads every file that a question names as @path, even without tools. Recorded text is full of such names.
MENTION, _HARMLESS = "@", "\uff20"
_ENVIRONMENT = dict(
    setting.split("=")
    for setting in """
BETHINK_HOOKS=off
CLAUDE_CODE_DISABLE_ATTACHMENTS=1
CLAUDE_CODE_DISABLE_AUTO_MEMORY=1
CLAUDE_CODE_DISABLE_CLAUDE_MDS=1
CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
CLAUDE_CODE_MAX_RETRIES=1
DISABLE_AUTOUPDATER=1
""".split()
)
# Marks of the session that we may have been called from.
OUTER = (
    "CLAUDECODE CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ID CLAUDE_PROJECT_DIR CLAUDE_ENV_FILE"
    " CLAUDE_PID"
).split()
_BY_HAND = "Try `claude -p hello` by hand; `claude /login` signs in."


class ClaudeCli:
    """The user's own `claude` program, headless: their subscription, no key of ours.

    It runs in an empty folder, without tools, settings, hooks, MCP servers, memory files or a transcript, and with
    BETHINK_HOOKS=off, so that no hook of ours answers it. The question goes in on standard input, where other users of the
    machine cannot see it. Its whole process group is ended with it, in time or not.
    """

    PROGRAM, MODEL = "claude", "haiku"
    remote = True

    def __init__(self, model: str, timeout: float) -> None:
        self._model = model or self.MODEL
        self.name = f"claude {self._model}"
        self._timeout = timeout

    def send(self, ask: ModelRequest) -> RawAnswer:
        program = shutil.which(self.PROGRAM)
        if program is None:
            raise ModelError(
                f"The program `{self.PROGRAM}` is not on the path.",
                "Install Claude Code, or choose another: `bethink config reader codex`.",
                "missing",
            )
        try:
            # Files and no pipes: a process that it leaves behind would hold these open.
            with TemporaryFile() as input, TemporaryFile() as output, TemporaryFile() as complaint:
                input.write(ask.text.replace(MENTION, _HARMLESS).encode("utf-8", "replace"))
                input.seek(0)
                code = self._run(program, ask, input, output, complaint)
                return self._read(code, _read_beginning(output), _read_beginning(complaint))
        except OSError as error:
            raise ModelError(
                f"The program {program} cannot be run: {error}.", _BY_HAND, "missing"
            ) from None

    def _run(
        self,
        program: str,
        ask: ModelRequest,
        input: IO[bytes],
        output: IO[bytes],
        complaint: IO[bytes],
    ) -> int:
        options = {"--output-format": "json", "--model": self._model, "--effort": "low"}
        options |= {"--tools": "", "--setting-sources": "", "--system-prompt": ask.instruction}
        options |= {"--json-schema": json.dumps(ask.schema)}
        flags = ["--strict-mcp-config", "--no-session-persistence", "--disable-slash-commands"]
        command = [program, "-p", *flags, *(word for pair in options.items() for word in pair)]
        environment = {name: value for name, value in os.environ.items() if name not in OUTER}
        limits = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(ask.tokens)}
        # What cannot be cleared away must not cost the answer.
        with (
            TemporaryDirectory(prefix="bethink-", ignore_cleanup_errors=True) as empty,
            TemporaryDirectory(prefix="bethink-", ignore_cleanup_errors=True) as scratch,
        ):
            limits |= {"CLAUDE_CODE_TMPDIR": scratch}
            process = subprocess.Popen(
                command,
                cwd=empty,
                env=environment | _ENVIRONMENT | limits,
                stdin=input,
                stdout=output,
                stderr=complaint,
                start_new_session=True,
            )
            try:
                return process.wait(self._timeout)
            except subprocess.TimeoutExpired:
                raise ModelError(
                    f"{program} did not answer within {self._timeout:g} seconds.",
                    f"Raise the setting `model_timeout`. {_BY_HAND}",
                    "unreachable",
                ) from None
            finally:
                end_process(process)

    def _read(self, code: int, output: bytes, complaint: bytes) -> RawAnswer:
        try:
            result = json.loads(output)
            if result["type"] != "result":
                raise ValueError(result["type"])
        except (ValueError, KeyError, TypeError, RecursionError):
            printed = (
                post.shorten((complaint or output).decode("utf-8", "replace")) or "it said nothing"
            )
            reason = "key" if is_signed_out(printed) else "garbage" if code == 0 else "refused"
            raise ModelError(
                f"`{self.PROGRAM}` ended with code {code} and without a result: {printed}.",
                _BY_HAND,
                reason,
            ) from None
        if result.get("is_error") or result.get("subtype") != "success":
            printed = post.shorten(str(result.get("result") or result.get("subtype")))
            status = result.get("api_error_status") or 0
            # Who is not signed in gets no status: nothing was sent.
            signed_out = not status and is_signed_out(printed)
            raise ModelError(
                f"`{self.PROGRAM}` could not answer: {printed}.",
                _BY_HAND,
                "key" if signed_out else post.name_refusal(status),
            )
        found = result.get("structured_output")
        text = str(result.get("result")) if found is None else json.dumps(found, ensure_ascii=False)
        usage = read_usage(result.get("usage"), INPUTS, "output_tokens")
        return RawAnswer(text.replace(_HARMLESS, MENTION), usage)


def _read_beginning(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(LARGEST_OUTPUT)


def open_model(config: Config) -> ClaudeCli:
    return ClaudeCli(config.llm_model, config.model_timeout)


PROVIDER = LanguageModelProvider(
    "claude",
    open_model,
    variables=(
        "CLAUDE_CONFIG_DIR",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
    ),
)
