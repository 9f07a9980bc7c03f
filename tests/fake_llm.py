"""A model on this machine: Anthropic's messages and OpenAI's chat completions over real HTTP, answering by script.

It refuses what the real services refuse (a missing version, a body without its members, words of JSON Schema that their
strict modes do not know), so that a request that passes here has their shape. A script is a list of replies, the last of
them for ever; a reply is made by one of the functions below.
"""

import json
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bethink.config import Config
from bethink.llm.base import Task

FORM = {"colour": ("red", "green"), "sizes": [int], "note": "A note."}
GOOD = {"colour": "red", "sizes": [1, 2], "note": "fine"}
PARTS = (("turn 1, user", "A red thing of sizes 1 and 2."),)
TASK = Task("ideas", "Say what it is.", PARTS, FORM, 500)

KNOWN = {"type", "properties", "required", "additionalProperties", "items", "enum", "description"}
USAGE = (120, 30)
# What the services answer with, but for the text.
ANTHROPIC = """{"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "text", "text": ""}],
 "stop_reason": "end_turn", "stop_sequence": null,
 "usage": {"input_tokens": 100, "cache_creation_input_tokens": 15, "cache_read_input_tokens": 5, "output_tokens": 30}}"""
OPENAI = """{"id": "chatcmpl-1", "object": "chat.completion", "created": 0,
 "choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}],
 "usage": {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}}"""


def count(*numbers):
    """What a report says of a purpose."""
    return dict(zip(("calls", "failed", "input_tokens", "output_tokens"), numbers, strict=True))


SETTINGS = Config(llm_model="some-model", model_timeout=5.0)


def says(text, **more):
    """A good answer with this text. `more` goes into the message: a stop reason, a refusal."""
    return lambda exchange: exchange.answer(text, **more)


def answers(value):
    return says(json.dumps(value))


def status(code, message="", **headers):
    return lambda exchange: exchange.fail(code, message, headers)


def raw(data, code=200):
    return lambda exchange: exchange.send(code, data)


def hang_up(exchange):
    exchange.close_connection = True


def hang_up_in_body(exchange):
    exchange.send(200, b'{"content": [', length=1000)


def huge(exchange):
    """Goes on until the client has had enough."""
    exchange.send(200, b"", length=1 << 40)
    while not exchange.server.over.is_set():
        exchange.wfile.write(b" " * 65536)


def silent(exchange):
    """Takes the request and never answers."""
    exchange.server.over.wait(20)


def drip(exchange):
    """Sends a byte now and then, so that no single read ever waits for long."""
    exchange.send(200, b"", length=100_000)
    while not exchange.server.over.wait(0.02):
        exchange.wfile.write(b" ")
        exchange.wfile.flush()


class Exchange(BaseHTTPRequestHandler):
    def do_POST(self):
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        self.anthropic = self.path.partition("?")[0].endswith("/messages")
        self.server.requests.append(self)
        complaint = self.malformed()
        if complaint:
            return self.fail(400, complaint, {})
        script = self.server.script
        reply = script.pop(0) if len(script) > 1 else script[0]
        return reply(self)

    do_GET = do_POST

    def malformed(self):
        if self.path.endswith("/embeddings") or self.command == "GET":
            return None
        needed = {"model", "messages"}
        if self.anthropic:
            if self.headers["anthropic-version"] != "2023-06-01":
                return "anthropic-version: header is required"
            allowed = "model max_tokens system messages output_config"
            needed |= {"max_tokens"}
            form = self.body.get("output_config", {}).get("format", {})
        else:
            allowed = "model messages temperature max_tokens max_completion_tokens stream"
            allowed += " response_format"
            form = self.body.get("response_format", {}).get("json_schema", {})
        unknown, missing = set(self.body) - set(allowed.split()), needed - set(self.body)
        if unknown or missing:
            return f"Extra inputs {sorted(unknown)}, missing {sorted(missing)}"
        return not_strict(form["schema"]) if "schema" in form else None

    def answer(self, text, **more):
        if self.anthropic:
            whole = json.loads(ANTHROPIC)
            whole["content"][0]["text"] = text
        else:
            whole = json.loads(OPENAI)
            choice = whole["choices"][0]
            choice["message"] |= {"content": text, "refusal": more.pop("refusal", None)}
            choice["finish_reason"] = more.pop("finish_reason", "stop")
        self.send(200, json.dumps(whole | {"model": self.body["model"]} | more).encode())

    def fail(self, code, message, headers):
        whole = {"error": {"type": "invalid_request_error", "message": message}}
        if self.anthropic:
            whole |= {"type": "error", "request_id": "req_1"}
        self.send(code, json.dumps(whole).encode(), headers)

    def send(self, code, data, headers=None, length=None):
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def handle(self):
        with suppress(ConnectionError):  # the client had enough
            super().handle()

    def log_message(self, *args):
        pass


def not_strict(schema):
    """Why a strict mode would refuse a schema."""
    kind = schema["type"]
    if unknown := set(schema) - KNOWN:
        return f"output_config.format.schema: For '{kind}' type, properties {sorted(unknown)} are not supported"
    inner = [schema["items"]] if kind == "array" else []
    if kind == "object":
        inner = schema["properties"].values()
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema["required"]) != set(schema["properties"]):
            return "Invalid schema for response_format: 'additionalProperties' must be false and 'required' name every property"
    return next(filter(None, map(not_strict, inner)), None)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Exchange)
        self.script = [answers({})]
        self.requests = []
        self.over = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
