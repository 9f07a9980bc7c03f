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

HINTS = {
    "missing": "Check the settings `llm_model` and `llm_url`; with Ollama, run `ollama pull` for the model.",
    "busy": "Try again later.",
    "redirect": "Set `llm_url` to its final address.",
    "refused": "Check the settings that begin with `llm`.",
    "unreachable": "Is the server running, and the network there? The setting `llm_url` holds the address.",
    "timeout": "Raise the setting `model_timeout`, or choose a faster model with `llm_model`.",
    "broken": "Try again later.",
    "large": "Is it a language model? The setting `llm_url` holds the address.",
    "garbage": "Is it a language model? The setting `llm_url` holds the address.",
}
# After these the request may have been worked on, and paid for.
PERHAPS_PAID = ("timeout", "broken", "large", "garbage")
LARGEST_COUNT = 100_000_000  # tokens; what is more is nonsense


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


class Refused(ModelError):
    """The server did not take the request. `said` is why, in its words: often a parameter that it does not know."""

    said = ""


class HttpProvider:
    """A model behind HTTP: where it is, its key, and what each failure means for the settings."""

    KIND = URL = PATH = VARIABLE = ""
    OWNER = ""  # the host that answers nobody without a key; others may want none

    def __init__(
        self,
        url: str,
        model: str,
        timeout: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = f"{self.KIND} {model}"
        self._model, self._timeout, self._sleep = model, timeout, sleep
        try:
            self._where = post.address(url or self.URL, self.PATH)
        except ValueError as error:
            raise ModelError(
                f"The setting `llm_url` cannot be used: {error}.",
                f"Use one such as https://host/v1; a key goes into {self.VARIABLE}.",
                "missing",
            ) from None
        try:
            self._key = post.key([self.VARIABLE])
        except ValueError as error:
            raise ModelError(f"{error}.", f"Set {self.VARIABLE} anew.", "key") from None
        self._host = self._where.hostname or ""

    def send(self, ask: ModelRequest) -> RawAnswer:
        deadline = post.Deadline(self._timeout)
        while True:
            try:
                return self._read(self._post(self._body(ask), deadline))
            except Refused as error:
                if not self._adapt(error.said):
                    raise

    def _headers(self) -> dict[str, str]:
        raise NotImplementedError

    def _body(self, ask: ModelRequest) -> dict[str, Any]:
        raise NotImplementedError

    def _adapt(self, said: str) -> bool:
        """Gives up what the server refused by name, once each. False where there is nothing to give up."""
        raise NotImplementedError

    def _read(self, answer: dict[str, Any]) -> RawAnswer:
        raise NotImplementedError

    def _refuse_answer(self, usage: Usage | None) -> ModelError:
        message = f"The model {self.name} declined to answer."
        return ModelError(message, "Offline rules do the work.", "declined", usage)

    def _cut_off(self, usage: Usage | None) -> ModelError:
        message = f"The answer of {self.name} was cut off."
        return ModelError(message, "Another model may be briefer.", "cut off", usage)

    def _post(self, body: Mapping[str, Any], deadline: post.Deadline) -> dict[str, Any]:
        """The answer's JSON object. The headers carry the key; the address is the only one that sees them."""
        if self._key is None and self._host == self.OWNER:
            message = f"The endpoint at {self._host} needs a key, and none is set."
            raise ModelError(message, f"Set {self.VARIABLE}.", "key")

        def attempt() -> Any:
            return post.send(self._where, body, self._headers(), self._key, deadline)

        try:
            answer = post.persist(attempt, deadline, self._sleep)
            if not isinstance(answer, dict):
                message = (
                    f"The endpoint at {self._host} answered with something that is no JSON object."
                )
                raise post.PostError("garbage", message)
        except post.PostError as error:
            key = f"{'Check' if self._key else 'Set'} the environment variable {self.VARIABLE}."
            hint = HINTS.get(error.kind, key)
            if error.kind == "refused":
                refused = Refused(error.message, hint, error.kind)
                refused.said = error.said
                raise refused from None
            usage = None if error.kind in PERHAPS_PAID else Usage()
            raise ModelError(error.message, hint, error.kind, usage) from None
        return answer


class AnthropicModel(HttpProvider):
    """The form of the answer is asked for by `output_config.format`; a model or gateway that does not know it is made to call a
    tool instead, whose input has that form."""

    KIND, URL, PATH = "anthropic", "https://api.anthropic.com", "/v1/messages"
    VARIABLE, OWNER = "ANTHROPIC_API_KEY", "api.anthropic.com"
    MODEL = "claude-haiku-5-5"
    VERSION = "2023-06-01"
    TOOL = "answer"
    NO_FORMAT = re.compile(r"output_config|output_format|structured|json_schema", re.IGNORECASE)

    def __init__(self, url: str = "", model: str = "", *how: Any, **more: Any) -> None:
        super().__init__(url, model or self.MODEL, *how, **more)
        self._by_tool = False

    def _headers(self) -> dict[str, str]:
        key = {"x-api-key": self._key.value} if self._key else {}
        return {"anthropic-version": self.VERSION, **key}

    def _body(self, ask: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": ask.tokens,
            "system": ask.instruction,
            "messages": [{"role": "user", "content": [{"type": "text", "text": ask.text}]}],
        }
        if self._by_tool:
            tool = {"name": self.TOOL, "description": "Takes the answer."}
            body["tools"] = [{**tool, "input_schema": ask.schema}]
            body["tool_choice"] = {"type": "tool", "name": self.TOOL}
        else:
            body["output_config"] = {"format": {"type": "json_schema", "schema": ask.schema}}
        return body

    def _adapt(self, said: str) -> bool:
        if self._by_tool or not self.NO_FORMAT.search(said):
            return False
        self._by_tool = True
        return True

    def _read(self, answer: dict[str, Any]) -> RawAnswer:
        usage = read_usage(answer.get("usage"), CLAUDE_INPUTS, ("output_tokens",))
        stopped = answer.get("stop_reason")
        if stopped == "refusal":
            raise self._refuse_answer(usage)
        if stopped in ("max_tokens", "model_context_window_exceeded"):
            raise self._cut_off(usage)
        return RawAnswer(self._text(answer.get("content")), usage)

    def _text(self, content: Any) -> str:
        """The words of an answer. Thinking, and calls of tools that we did not offer, are passed over."""
        blocks = content if isinstance(content, list) else []
        texts = []
        for block in (one for one in blocks if isinstance(one, dict)):
            if block.get("type") == "tool_use" and block.get("name") == self.TOOL:
                return json.dumps(block.get("input"))
            if block.get("type") == "text":
                texts.append(str(block.get("text", "")))
        return "".join(texts)


class OpenAiModel(HttpProvider):
    """OpenAI, Ollama, LM Studio, llama.cpp, vLLM: they differ in what they take. The strictest form of a request is tried first;
    what a server refuses by name is given up, and remembered: LM Studio knows no `json_object`, older servers no `json_schema`,
    OpenAI's newer models no `max_tokens` and no temperature but their own."""

    KIND, URL, PATH = "openai", "https://api.openai.com/v1", "/chat/completions"
    VARIABLE, OWNER = "OPENAI_API_KEY", "api.openai.com"
    FORMATS = ("json_schema", "json_object", "text")
    SCHEMA_SHOWN = "\n\nThe form of the answer, as a JSON Schema: {schema}"
    NO_FORMAT = re.compile(
        r"response_format|json_schema|json_object|schema|structured|grammar", re.IGNORECASE
    )

    def __init__(self, url: str, model: str, *how: Any, **more: Any) -> None:
        if not model:
            raise ConfigError(
                "The setting `llm_model` is empty.",
                "Name the model to ask: `bethink config llm_model NAME`.",
            )
        super().__init__(url, model, *how, **more)
        self._ours = self._host == self.OWNER
        self._format = 0
        self._limit = "max_completion_tokens" if self._ours else "max_tokens"
        self._temperature = not self._ours

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key.value}"} if self._key else {}

    def _body(self, ask: ModelRequest) -> dict[str, Any]:
        form = self.FORMATS[self._format]
        # Servers that constrain the words do not show the model what they are constrained to.
        hidden = form == "json_schema" and self._ours
        shown = "" if hidden else self.SCHEMA_SHOWN.format(schema=json.dumps(ask.schema))
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
        if form == "json_schema":
            schema = {"name": "answer", "strict": True, "schema": ask.schema}
            body["response_format"] = {"type": form, "json_schema": schema}
        elif form == "json_object":
            body["response_format"] = {"type": form}
        return body

    def _adapt(self, said: str) -> bool:
        if "max_completion_tokens" in said and self._limit == "max_tokens":
            self._limit = "max_completion_tokens"
        elif "temperature" in said and self._temperature:
            self._temperature = False
        elif self.NO_FORMAT.search(said) and self._format < len(self.FORMATS) - 1:
            self._format += 1
        else:
            return False
        return True

    def _read(self, answer: dict[str, Any]) -> RawAnswer:
        usage = read_usage(answer.get("usage"), ("prompt_tokens",), ("completion_tokens",))
        try:
            first = answer["choices"][0]
            message, finished = first["message"], first.get("finish_reason")
            content, refusal = message.get("content"), message.get("refusal")
        except (KeyError, IndexError, TypeError, AttributeError):
            return RawAnswer("", usage)
        if refusal or finished == "content_filter":
            raise self._refuse_answer(usage)
        if finished == "length":
            raise self._cut_off(usage)
        if isinstance(content, list):
            parts = [part for part in content if isinstance(part, dict)]
            content = "".join(str(part.get("text", "")) for part in parts)
        return RawAnswer(content if isinstance(content, str) else "", usage)


# The user's own program

CLAUDE_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
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

    def __init__(self, model: str = "", timeout: float = 60.0) -> None:
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
