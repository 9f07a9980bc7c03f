"""The models that can be asked: Anthropic's Messages API, OpenAI's chat completions and whatever speaks like it, and the user's
own `claude` program. A provider only sends, once; `guard` redacts, counts and checks.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bethink import post
from bethink.errors import ConfigError
from bethink.llm.base import ModelError, ModelRequest, RawAnswer, Usage

# After these the request may have been worked on, and paid for.
PERHAPS_PAID = ("timeout", "broken", "large", "garbage")
LARGEST_COUNT = 100_000_000  # tokens; what is more is nonsense
SCHEMA_SHOWN = "\n\nThe form of the answer, as a JSON Schema: {}"
# How servers name the part of a request by which they hold an answer to its form, when they do not know it.
NO_FORMAT = re.compile(
    r"output_config|output_format|response_format|schema|structured|grammar", re.IGNORECASE
)
CLAUDE_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def read_usage(usage: Any, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Usage | None:
    """The sum of the named counts, or None where the provider told none or told nonsense."""
    if not isinstance(usage, Mapping):
        return None
    sums = []
    for names in (inputs, outputs):
        numbers = [usage[name] for name in names if usage.get(name) is not None]
        sound = all(type(number) is int and 0 <= number <= LARGEST_COUNT for number in numbers)
        if not numbers or not sound:
            return None
        sums.append(sum(numbers))
    return Usage(*sums)


class HttpProvider:
    """A model behind HTTP. The strictest form of a request is tried first; what a server refuses by name is given up, once each, and
    that is remembered. Where the server does not hold the answer to its form, the words of the question tell the form."""

    KIND = URL = PATH = VARIABLE = OWNER = MODEL = ""

    def __init__(
        self,
        url: str,
        model: str,
        timeout: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model or self.MODEL
        if not self._model:
            raise ConfigError(
                "The setting `llm_model` is empty.",
                "Name the model to ask: `bethink config llm_model NAME`.",
            )
        self.name = f"{self.KIND} {self._model}"
        self._strict = True
        try:
            self._endpoint = post.Endpoint(
                "llm", url or self.URL, self.PATH, [self.VARIABLE], self.OWNER, timeout, sleep
            )
        except post.PostError as error:
            raise ModelError(error.message, error.hint, error.kind) from None

    def send(self, ask: ModelRequest) -> RawAnswer:
        deadline = post.Deadline(self._endpoint.timeout)
        while True:
            try:
                answer = self._endpoint.ask(self._make_body(ask), self._make_headers(), deadline)
                break
            except post.PostError as error:
                if error.kind != "refused" or not self._adapt(error.said):
                    usage = None if error.kind in PERHAPS_PAID else Usage()
                    raise ModelError(error.message, error.hint, error.kind, usage) from None
        text, usage, stopped = self._read(answer if isinstance(answer, dict) else {})
        if stopped == "declined":
            message = f"The model {self.name} declined to answer."
            raise ModelError(message, "Offline rules do the work.", stopped, usage)
        if stopped == "cut off":
            message = f"The answer of {self.name} was cut off."
            raise ModelError(message, "Another model may be briefer.", stopped, usage)
        return RawAnswer(text, usage)

    def _make_headers(self) -> dict[str, str]:
        raise NotImplementedError

    def _make_body(self, ask: ModelRequest) -> dict[str, Any]:
        raise NotImplementedError

    def _adapt(self, said: str) -> bool:
        """Gives up what the server refused by name. False where there is nothing to give up."""
        if not self._strict or not NO_FORMAT.search(said):
            return False
        self._strict = False
        return True

    def _read(self, answer: dict[str, Any]) -> tuple[str, Usage | None, str]:
        """The words of an answer, what it cost, and why it has none, if so."""
        raise NotImplementedError


class AnthropicModel(HttpProvider):
    KIND, URL, PATH = "anthropic", "https://api.anthropic.com", "/v1/messages"
    VARIABLE, OWNER, MODEL = "ANTHROPIC_API_KEY", "api.anthropic.com", "claude-haiku-5-5"

    def _make_headers(self) -> dict[str, str]:
        key = self._endpoint.key
        return {"anthropic-version": "2023-06-01"} | ({"x-api-key": key.value} if key else {})

    def _make_body(self, ask: ModelRequest) -> dict[str, Any]:
        shown = "" if self._strict else SCHEMA_SHOWN.format(json.dumps(ask.schema))
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": ask.tokens,
            "system": ask.instruction + shown,
            "messages": [{"role": "user", "content": [{"type": "text", "text": ask.text}]}],
        }
        if self._strict:
            body["output_config"] = {"format": {"type": "json_schema", "schema": ask.schema}}
        return body

    def _read(self, answer: dict[str, Any]) -> tuple[str, Usage | None, str]:
        """Thinking, and calls of tools that nobody offered, are passed over."""
        usage = read_usage(answer.get("usage"), CLAUDE_INPUTS, ("output_tokens",))
        reason = answer.get("stop_reason")
        stopped = "declined" if reason == "refusal" else ""
        if reason in ("max_tokens", "model_context_window_exceeded"):
            stopped = "cut off"
        return _join_texts(answer.get("content")), usage, stopped


class OpenAiModel(HttpProvider):
    """OpenAI, Ollama, LM Studio, llama.cpp, vLLM: they differ in what they take. OpenAI's newer models know no `max_tokens` and no
    temperature but their own."""

    KIND, URL, PATH = "openai", "https://api.openai.com/v1", "/chat/completions"
    VARIABLE, OWNER = "OPENAI_API_KEY", "api.openai.com"

    def __init__(self, *how: Any, **more: Any) -> None:
        super().__init__(*how, **more)
        owned = self._endpoint.owned
        self._limit = "max_completion_tokens" if owned else "max_tokens"
        self._temperature = not owned

    def _make_headers(self) -> dict[str, str]:
        key = self._endpoint.key
        return {"Authorization": f"Bearer {key.value}"} if key else {}

    def _make_body(self, ask: ModelRequest) -> dict[str, Any]:
        # Servers that constrain the words do not show the model what they are constrained to.
        hidden = self._strict and self._endpoint.owned
        shown = "" if hidden else SCHEMA_SHOWN.format(json.dumps(ask.schema))
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": ask.instruction + shown},
                {"role": "user", "content": ask.text},
            ],
            self._limit: ask.tokens,
            "stream": False,
        }
        if self._temperature:
            body["temperature"] = 0
        if self._strict:
            schema = {"name": "answer", "strict": True, "schema": ask.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def _adapt(self, said: str) -> bool:
        if "max_completion_tokens" in said and self._limit == "max_tokens":
            self._limit = "max_completion_tokens"
        elif "temperature" in said and self._temperature:
            self._temperature = False
        else:
            return super()._adapt(said)
        return True

    def _read(self, answer: dict[str, Any]) -> tuple[str, Usage | None, str]:
        usage = read_usage(answer.get("usage"), ("prompt_tokens",), ("completion_tokens",))
        try:
            first = answer["choices"][0]
            message, finished = first["message"], first.get("finish_reason")
            content, refusal = message.get("content"), message.get("refusal")
        except (KeyError, IndexError, TypeError, AttributeError):
            return "", usage, ""
        stopped = "cut off" if finished == "length" else ""
        stopped = "declined" if refusal or finished == "content_filter" else stopped
        return content if isinstance(content, str) else _join_texts(content), usage, stopped


def _join_texts(content: Any) -> str:
    """The words of an answer that comes in parts."""
    parts = (
        [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    )
    return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


# The user's own program

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
    "CLAUDECODE CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ID CLAUDE_PROJECT_DIR CLAUDE_ENV_FILE"
    " CLAUDE_PID"
).split()
BY_HAND = "Try `claude -p hello` by hand."


class ClaudeCli:
    """The user's own `claude` program, headless: their subscription, no key of ours.

    It runs in an empty folder, without tools, settings, hooks, MCP servers, memory files or a transcript, and with
    BETHINK_HOOKS=off, so that no hook of ours answers it. The question goes in on standard input, where other users of the
    machine cannot see it. Its whole process group is ended with it, in time or not.
    """

    PROGRAM, MODEL = "claude", "haiku"

    def __init__(self, url: str, model: str, timeout: float) -> None:
        self._model = model or self.MODEL
        self.name = f"claude {self._model}"
        self._timeout = timeout

    def send(self, ask: ModelRequest) -> RawAnswer:
        program = shutil.which(self.PROGRAM)
        if program is None:
            raise ModelError(
                f"The program `{self.PROGRAM}` is not on the path.",
                "Install Claude Code, or set `llm` to another provider.",
                "missing",
            )
        try:
            # What cannot be cleared away must not cost the answer.
            with tempfile.TemporaryDirectory(
                prefix="bethink-", ignore_cleanup_errors=True
            ) as folder:
                code, output, complaint = self._run(program, ask, Path(folder))
        except OSError as error:
            message = f"The program {program} cannot be run: {error}."
            raise ModelError(message, BY_HAND, "missing") from None
        return self._read(code, output, complaint)

    def _run(self, program: str, ask: ModelRequest, folder: Path) -> tuple[int, bytes, bytes]:
        """The program's exit code, what it printed and what it complained about."""
        empty, scratch = folder / "empty", folder / "scratch"
        question, output, complaint = folder / "question", folder / "output", folder / "complaint"
        empty.mkdir()
        scratch.mkdir()
        question.write_bytes(ask.text.replace(MENTION, HARMLESS).encode("utf-8", "replace"))
        options = {"--output-format": "json", "--model": self._model, "--effort": "low"}
        options |= {"--tools": "", "--setting-sources": "", "--system-prompt": ask.instruction}
        options |= {"--json-schema": json.dumps(ask.schema)}
        flags = ["--strict-mcp-config", "--no-session-persistence", "--disable-slash-commands"]
        command = [program, "-p", *flags, *(word for pair in options.items() for word in pair)]
        environment = {name: value for name, value in os.environ.items() if name not in OUTER}
        limits = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(ask.tokens)}
        limits |= {"CLAUDE_CODE_TMPDIR": str(scratch)}
        with question.open("rb") as asked, output.open("wb") as out, complaint.open("wb") as err:
            process = subprocess.Popen(
                command,
                cwd=empty,
                env=environment | ENVIRONMENT | limits,
                stdin=asked,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                code = process.wait(self._timeout)
            except subprocess.TimeoutExpired:
                message = f"{program} did not answer within {self._timeout:g} seconds."
                hint = "Raise the setting `model_timeout`, or try `claude -p hello` by hand."
                raise ModelError(message, hint, "timeout", usage=None) from None
            finally:
                _end(process)
        return code, _read_beginning(output), _read_beginning(complaint)

    def _read(self, code: int, output: bytes, complaint: bytes) -> RawAnswer:
        if len(output) > LARGEST_OUTPUT:
            message = f"`{self.PROGRAM}` printed more than {LARGEST_OUTPUT >> 20} MB."
            raise ModelError(message, "Try it by hand.", "large", usage=None)
        try:
            result = json.loads(output)
        except (ValueError, RecursionError):
            result = None
        if not isinstance(result, dict) or result.get("type") != "result":
            said = _one_line(complaint.decode("utf-8", "replace"))
            message = f"`{self.PROGRAM}` ended with code {code} and without a result"
            message += f": {said}." if said else "."
            reason = "garbage" if code == 0 else "refused"
            raise ModelError(message, BY_HAND, reason, usage=None)
        usage = read_usage(result.get("usage"), CLAUDE_INPUTS, ("output_tokens",))
        if result.get("is_error") or result.get("subtype") != "success":
            said = _one_line(str(result.get("result") or result.get("subtype")))
            hint = "Try `claude -p hello` by hand; `claude /login` signs in."
            message = f"`{self.PROGRAM}` could not answer: {said}."
            raise ModelError(message, hint, _reason(result), usage)
        found = result.get("structured_output")
        text = str(result.get("result")) if found is None else json.dumps(found, ensure_ascii=False)
        return RawAnswer(text.replace(HARMLESS, MENTION), usage)


def _read_beginning(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(LARGEST_OUTPUT + 1)


def _one_line(text: str) -> str:
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


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the program and all that it started in its group: first asked, so that it can tidy up, then made to.

    The group's number is not given out again while any of it lives, and if none does there is nothing to end.
    """
    for how in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        # macOS says PermissionError of a group that has ended.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, how)
            else:
                process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    process.wait()


PROVIDERS: Mapping[str, Callable[[str, str, float], HttpProvider | ClaudeCli]] = {
    "anthropic": AnthropicModel,
    "openai": OpenAiModel,
    "claude": ClaudeCli,
}
