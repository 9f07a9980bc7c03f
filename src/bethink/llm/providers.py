"""The models that can be asked: Anthropic's Messages API, OpenAI's chat completions and whatever speaks like it, and the user's
own `claude` program. A provider only sends, once; `Model` redacts, counts and checks. Each holds the model to the form of its answer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

from bethink import post
from bethink.errors import ConfigError
from bethink.llm.base import ModelError, ModelRequest, RawAnswer, Usage, end_process
from bethink.model import Json

Request = tuple[dict[str, str], Json]  # headers and body
Reply = tuple[str, Usage | None, str]  # words, what they cost, and why there are none, if so
SCHEMA_SHOWN = "\n\nThe form of the answer, as a JSON Schema: {}"
CLAUDE_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def read_usage(usage: Any, inputs: tuple[str, ...], output: str) -> Usage | None:
    """The sum of the named counts, or None where the provider told none or told nonsense."""
    counts = usage if isinstance(usage, Mapping) else {}
    numbers = [counts.get(name) or 0 for name in (*inputs, output)]
    if output not in counts or not all(type(number) is int and number >= 0 for number in numbers):
        return None
    return Usage(sum(numbers[:-1]), numbers[-1])


class HttpProvider:
    """A model behind HTTP."""

    KIND = URL = PATH = VARIABLE = OWNER = MODEL = ""
    remote = True

    def __init__(self, url: str, model: str, timeout: float = 60.0) -> None:
        self._model = model or self.MODEL
        if not self._model:
            raise ConfigError(
                "The setting `llm_model` is empty.",
                "Name the model to ask: `bethink config llm_model NAME`.",
            )
        self.name = f"{self.KIND} {self._model}"
        self._endpoint = post.Endpoint(
            "llm", url or self.URL, self.PATH, [self.VARIABLE], self.OWNER, timeout, ModelError
        )

    def send(self, ask: ModelRequest) -> RawAnswer:
        headers, body = self._make_request(ask)
        answer = self._endpoint.ask(body, headers)
        try:
            text, usage, stopped = self._read(answer)
        except (KeyError, IndexError, TypeError, AttributeError):
            text, usage, stopped = "", None, ""
        if stopped:
            raise ModelError(
                f"The answer of {self.name} was {stopped}.", "Offline rules do the work.", stopped
            )
        return RawAnswer(text, usage)

    def _make_request(self, ask: ModelRequest) -> Request:
        raise NotImplementedError

    def _read(self, answer: Any) -> Reply:
        """What an answer says; one without words was declined or cut off."""
        raise NotImplementedError


class AnthropicModel(HttpProvider):
    KIND, URL, PATH = "anthropic", "https://api.anthropic.com", "/v1/messages"
    VARIABLE, OWNER, MODEL = "ANTHROPIC_API_KEY", "api.anthropic.com", "claude-haiku-5-5"

    def _make_request(self, ask: ModelRequest) -> Request:
        key = self._endpoint.key
        headers = {"anthropic-version": "2023-06-01"} | ({"x-api-key": key.value} if key else {})
        return headers, {
            "model": self._model,
            "max_tokens": ask.tokens,
            "system": ask.instruction,
            "messages": [{"role": "user", "content": [{"type": "text", "text": ask.text}]}],
            "output_config": {"format": {"type": "json_schema", "schema": ask.schema}},
        }

    def _read(self, answer: Any) -> Reply:
        """Thinking, and calls of tools that nobody offered, are passed over."""
        usage = read_usage(answer.get("usage"), CLAUDE_INPUTS, "output_tokens")
        stopped = {"refusal": "declined", "max_tokens": "cut off"}
        parts = [part["text"] for part in answer["content"] if part["type"] == "text"]
        return "".join(map(str, parts)), usage, stopped.get(answer.get("stop_reason"), "")


class OpenAiModel(HttpProvider):
    """OpenAI, Ollama, LM Studio, llama.cpp, vLLM. OpenAI's own models know no `max_tokens` and no temperature but their own; the
    others do not show the model the form that they hold it to."""

    KIND, URL, PATH = "openai", "https://api.openai.com/v1", "/chat/completions"
    VARIABLE, OWNER = "OPENAI_API_KEY", "api.openai.com"

    def _make_request(self, ask: ModelRequest) -> Request:
        own = self._endpoint.owned
        shown = "" if own else SCHEMA_SHOWN.format(json.dumps(ask.schema))
        limits: Json = {"max_tokens": ask.tokens, "temperature": 0}
        schema = {"name": "answer", "strict": True, "schema": ask.schema}
        return self._endpoint.bearer, {
            "model": self._model,
            "messages": [
                {"role": "system", "content": ask.instruction + shown},
                {"role": "user", "content": ask.text},
            ],
            "stream": False,
            "response_format": {"type": "json_schema", "json_schema": schema},
            **({"max_completion_tokens": ask.tokens} if own else limits),
        }

    def _read(self, answer: Any) -> Reply:
        usage = read_usage(answer.get("usage"), ("prompt_tokens",), "completion_tokens")
        choice = answer["choices"][0]
        stopped = {"length": "cut off", "content_filter": "declined"}
        reason = stopped.get(choice.get("finish_reason"), "")
        if choice["message"].get("refusal"):
            reason = "declined"
        return str(choice["message"].get("content") or ""), usage, reason


# The user's own program

LARGEST_OUTPUT = 2 << 20
# Claude Code reads every file that a question names as @path, even without tools. Recorded text is full of such names.
MENTION, HARMLESS = "@", "\uff20"
ENVIRONMENT = dict(
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
BY_HAND = "Try `claude -p hello` by hand; `claude /login` signs in."


class ClaudeCli:
    """The user's own `claude` program, headless: their subscription, no key of ours.

    It runs in an empty folder, without tools, settings, hooks, MCP servers, memory files or a transcript, and with
    BETHINK_HOOKS=off, so that no hook of ours answers it. The question goes in on standard input, where other users of the
    machine cannot see it. Its whole process group is ended with it, in time or not.
    """

    PROGRAM, MODEL = "claude", "haiku"
    remote = True

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
            # Files and no pipes: a process that it leaves behind would hold these open.
            with TemporaryFile() as told, TemporaryFile() as output, TemporaryFile() as complaint:
                told.write(ask.text.replace(MENTION, HARMLESS).encode("utf-8", "replace"))
                told.seek(0)
                code = self._run(program, ask, told, output, complaint)
                return self._read(code, _read_beginning(output), _read_beginning(complaint))
        except OSError as error:
            raise ModelError(
                f"The program {program} cannot be run: {error}.", BY_HAND, "missing"
            ) from None

    def _run(
        self,
        program: str,
        ask: ModelRequest,
        told: IO[bytes],
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
                env=environment | ENVIRONMENT | limits,
                stdin=told,
                stdout=output,
                stderr=complaint,
                start_new_session=True,
            )
            try:
                return process.wait(self._timeout)
            except subprocess.TimeoutExpired:
                raise ModelError(
                    f"{program} did not answer within {self._timeout:g} seconds.",
                    f"Raise the setting `model_timeout`. {BY_HAND}",
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
            said = (
                post.shorten((complaint or output).decode("utf-8", "replace")) or "it said nothing"
            )
            reason = "garbage" if code == 0 else "refused"
            raise ModelError(
                f"`{self.PROGRAM}` ended with code {code} and without a result: {said}.",
                BY_HAND,
                reason,
            ) from None
        if result.get("is_error") or result.get("subtype") != "success":
            said = post.shorten(str(result.get("result") or result.get("subtype")))
            raise ModelError(
                f"`{self.PROGRAM}` could not answer: {said}.",
                BY_HAND,
                post.name_refusal(result.get("api_error_status") or 0),
            )
        found = result.get("structured_output")
        text = str(result.get("result")) if found is None else json.dumps(found, ensure_ascii=False)
        usage = read_usage(result.get("usage"), CLAUDE_INPUTS, "output_tokens")
        return RawAnswer(text.replace(HARMLESS, MENTION), usage)


def _read_beginning(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(LARGEST_OUTPUT)


PROVIDERS: Mapping[str, Callable[[str, str, float], HttpProvider | ClaudeCli]] = {
    "anthropic": AnthropicModel,
    "openai": OpenAiModel,
    "claude": ClaudeCli,
}
