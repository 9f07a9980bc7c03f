"""The HTTP embedder against a real server on this machine."""

import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from case_tables import cases

from bethink import post
from bethink.embed import http
from bethink.embed.http import HttpEmbedder
from bethink.errors import EmbeddingError

KEY = "sk-secret-4711"


def vector_of(text, dimensions=8):
    """Any vector that depends on the text and has not length 1."""
    values = np.frombuffer(text.encode()[:dimensions].ljust(dimensions, b"~"), dtype=np.uint8)
    return [float(value) for value in values]


def embed(body):
    vectors = [vector_of(text) for text in body["input"]]
    return 200, {"data": [{"index": at, "embedding": one} for at, one in enumerate(vectors)]}


class Endpoint(BaseHTTPRequestHandler):
    """Answers with the scripted replies, the last one for ever: functions of the request's body, or (status, body, headers)."""

    replies: list
    requests: list

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.path, dict(self.headers), body))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        status, answer, *headers = reply(body) if callable(reply) else reply
        if status == 0:
            return  # Hang up without a word.
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        told = {"Content-Length": str(len(data)), **(headers[0] if headers else {})}
        for name, value in told.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST

    def log_message(self, *args):
        pass


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for variable in http.KEY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    # A proxy that is not there: requests to this machine must not go through it.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setattr(post, "sleep", lambda seconds: pytest.fail("it should not wait"))


@pytest.fixture
def endpoint():
    handler = type("ThisEndpoint", (Endpoint,), {"replies": [embed], "requests": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    handler.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


def open_at(endpoint, **options):
    return HttpEmbedder(endpoint.url, "some-model", **options)


def failing(endpoint, *replies, **options):
    endpoint.replies[:] = replies
    with pytest.raises(EmbeddingError) as caught:
        open_at(endpoint, **options).query("text")
    assert KEY not in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.message.endswith(".")
    return caught.value


def test_documents_and_queries_become_unit_vectors(endpoint):
    embedder = open_at(endpoint)
    seen = []
    matrices = embedder.documents(["one", "two", ""], seen.append)
    assert [matrix.shape for matrix in matrices] == [(1, 8)] * 3 and matrices[0].dtype == np.float32
    expected = np.array(vector_of("one")) / np.linalg.norm(vector_of("one"))
    assert np.allclose(matrices[0][0], expected, atol=1e-6)
    assert np.allclose(embedder.query("one"), expected, atol=1e-6)
    assert seen[-1] == 3 and embedder.dimensions == 8
    path, headers, body = endpoint.requests[0]
    assert path == "/v1/embeddings" and "Authorization" not in headers
    assert body == {"model": "some-model", "input": ["one", "two", "-"]}
    assert embedder.documents([]) == []


def test_answers_are_put_in_order_by_their_index(endpoint):
    def shuffled(body):
        status, answer = embed(body)
        return status, {"data": answer["data"][::-1]}

    texts = [f"text {i}" for i in range(10)]
    straight = open_at(endpoint).documents(texts)
    endpoint.replies[:] = [shuffled]
    assert np.array_equal(straight, open_at(endpoint).documents(texts))


def test_batches_hold_32_texts_or_100000_characters(endpoint):
    seen = []
    matrices = open_at(endpoint).documents(["short"] * 150 + ["x" * 24_000] * 7, seen.append)
    assert len(matrices) == 157
    sizes = [len(body["input"]) for _, _, body in endpoint.requests]
    assert sizes == [32] * 5 + [16, 2]
    assert seen == sorted(seen) and seen[-1] == 157


def test_long_texts_become_several_vectors_and_nothing_is_lost(endpoint):
    text = "A sentence of some length, for the sake of it. " * 2000
    chinese = "我们决定使用数据库。" * 1500
    matrices = open_at(endpoint).documents([text, "short", chinese])
    sent = [window for _, _, body in endpoint.requests for window in body["input"]]
    assert "".join(sent) == text + "short" + chinese
    assert [matrix.shape[0] for matrix in matrices] == [16, 1, 3]


@pytest.mark.parametrize("text", ["a\x00b", "half \ud800 pair", " \n ", "🚀"])
def test_odd_text_is_sent_as_good_json(endpoint, text):
    assert open_at(endpoint).documents([text])[0].shape == (1, 8)
    endpoint.requests[0][2]["input"][0].encode()


@pytest.mark.parametrize("variable", http.KEY_VARIABLES)
def test_the_key_comes_from_the_environment(endpoint, monkeypatch, variable):
    monkeypatch.setenv(variable, f" {KEY}\n")
    open_at(endpoint).query("x")
    assert endpoint.requests[0][1]["Authorization"] == f"Bearer {KEY}"


def test_a_refused_key_names_its_variable_and_never_shows_it(endpoint, monkeypatch):
    wrong = {"error": {"message": f"Incorrect key {KEY}"}}
    error = failing(endpoint, (401, wrong))
    assert "none is set" in error.message and "OPENAI_API_KEY" in error.hint
    monkeypatch.setenv("OPENAI_TOKEN_MEMORY_EMBEDDINGS", KEY)
    error = failing(endpoint, (401, wrong))
    assert "refused the key" in error.message and "OPENAI_TOKEN_MEMORY_EMBEDDINGS" in error.hint
    assert "Incorrect key …" in failing(endpoint, (400, wrong)).message
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\nX-Other: header")
    assert "OPENAI_API_KEY" in failing(endpoint, embed).message


def test_a_busy_endpoint_is_asked_again_when_it_says(endpoint, monkeypatch):
    waited, busy = [], (429, {"error": "overloaded"}, {"Retry-After": "7"})
    monkeypatch.setattr(post, "sleep", waited.append)
    endpoint.replies[:] = [busy, busy, embed]
    assert open_at(endpoint).query("x").shape == (8,)
    assert waited == [7, 7]
    error = failing(endpoint, busy)
    assert "overloaded" in error.message and error.hint == "Try again later."
    for header in ({}, {"Retry-After": "7200"}, {"Retry-After": "nonsense"}):
        assert "busy or failed (503)" in failing(endpoint, (503, {}, header)).message


@pytest.mark.parametrize(("reply", "complaint"), cases("embed-http-a-bad-answer-is"))
def test_a_bad_answer_is_named(endpoint, reply, complaint):
    with pytest.raises(EmbeddingError, match=complaint):
        raise failing(endpoint, reply)


def test_answers_of_another_width_are_refused(endpoint):
    endpoint.replies[:] = [embed, (200, {"data": [{"index": 0, "embedding": [1, 2, 3]}]})]
    embedder = open_at(endpoint)
    embedder.query("first")
    with pytest.raises(EmbeddingError, match="3 dimensions instead of 8"):
        embedder.query("second")


def test_a_server_that_is_not_running_is_told_from_one_that_is_slow(endpoint):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(EmbeddingError, match="cannot be reached") as caught:
        HttpEmbedder(url, "m").query("x")
    assert "Is the server running?" in caught.value.hint and url in caught.value.message

    def slow(body):
        time.sleep(0.5)
        return embed(body)

    assert "did not answer within 0.1 seconds" in failing(endpoint, slow, timeout=0.1).message


@pytest.mark.parametrize("url", cases("embed-http-a-bad-address-is"))
def test_a_bad_address_is_refused_before_anything_is_sent(url):
    with pytest.raises(EmbeddingError, match="embedding_url") as caught:
        HttpEmbedder(url, "m")
    assert "secret" not in caught.value.message


def test_an_endpoint_that_was_down_is_asked_again_after_a_while(endpoint, tmp_path, monkeypatch):
    from bethink import embed as embedding
    from bethink.api import Bethink
    from bethink.config import Config

    now = [0.0]
    endpoint.replies[:] = [(400, {"error": "out of order"}), embed]
    config = Config(embedding="http", embedding_url=endpoint.url, embedding_model="m")
    with Bethink(tmp_path / "m.db", directory=tmp_path, config=config) as memory:
        memory._model._clock = lambda: now[0]
        memory.add("Told while the endpoint was down")
        now[0] = embedding.ASK_AGAIN - 1
        assert memory.embedder is None and memory.hints
        now[0] = embedding.ASK_AGAIN
        memory.add("Told when it was back")
        assert memory.embedder is not None and not memory.hints
        assert memory.stats().unembedded == 1


def test_without_the_extra_an_endpoint_says_what_to_install(endpoint, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    assert "pip install 'bethink[http]'" in failing(endpoint, embed).message
    assert endpoint.requests == []
