"""The HTTP embedder against a real server on this machine. What every endpoint has alike is tried in test_llm.py."""

import json
import sys

import fake_llm
import numpy as np
import pytest
from case_tables import cases

from bethink import embed as embedding
from bethink import post
from bethink.api import Bethink
from bethink.config import Config
from bethink.embed import http
from bethink.embed.http import HttpEmbedder
from bethink.errors import EmbeddingError

KEY = "sk-secret-4711"


def vector_of(text, dimensions=8):
    """Any vector that depends on the text and has not length 1."""
    values = np.frombuffer(text.encode()[:dimensions].ljust(dimensions, b"~"), dtype=np.uint8)
    return [float(value) for value in values]


def embed(exchange, step=1):
    vectors = [vector_of(text) for text in exchange.body["input"]]
    rows = [{"index": at, "embedding": one} for at, one in enumerate(vectors)]
    exchange.send(200, json.dumps({"data": rows[::step]}).encode())


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for variable in http.KEY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(post, "sleep", lambda seconds: pytest.fail("it should not wait"))


@pytest.fixture
def server():
    with fake_llm.serving() as server:
        server.script[:] = [embed]
        yield server


def open_at(server, **options):
    return HttpEmbedder(f"{server.url}/v1", "some-model", **options)


def failing(server, reply, **options):
    server.script[:] = [reply]
    with pytest.raises(EmbeddingError) as caught:
        open_at(server, **options).query("text")
    assert KEY not in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.message.endswith(".")
    return caught.value


def test_documents_and_queries_become_unit_vectors(server):
    embedder, seen = open_at(server), []
    matrices = embedder.documents(["one", "two", ""], seen.append)
    assert [matrix.shape for matrix in matrices] == [(1, 8)] * 3 and matrices[0].dtype == np.float32
    expected = np.array(vector_of("one")) / np.linalg.norm(vector_of("one"))
    assert np.allclose(matrices[0][0], expected, atol=1e-6)
    assert np.allclose(embedder.query("one"), expected, atol=1e-6)
    assert seen[-1] == 3 and embedder.dimensions == 8
    first = server.requests[0]
    assert first.path == "/v1/embeddings" and "Authorization" not in first.headers
    assert first.body == {"model": "some-model", "input": ["one", "two", "-"]}
    assert embedder.documents([]) == []
    server.script[:] = [lambda exchange: embed(exchange, -1)]  # ordered by their index
    assert np.array_equal(matrices, open_at(server).documents(["one", "two", ""]))


def test_long_texts_become_several_vectors_and_nothing_is_lost(server):
    text = "A sentence of some length, for the sake of it. " * 2000
    chinese, seen = "我们决定使用数据库。" * 1500, []
    texts = [*["short"] * 25, text, chinese]
    matrices = open_at(server).documents(texts, seen.append)
    sent = [one.body["input"] for one in server.requests]
    assert [len(windows) for windows in sent] == [32, 12]
    assert "".join(window for windows in sent for window in windows) == "".join(texts)
    assert [matrix.shape[0] for matrix in matrices] == [*[1] * 25, 16, 3]
    assert seen == [25, 27]


def test_a_request_stays_below_the_megabyte_that_proxies_take_and_is_good_json(server):
    texts = ["🚀" * http.WINDOW_CHARACTERS] * 20
    assert len(open_at(server).documents(texts)) == 20
    assert [len(one.body["input"]) for one in server.requests] == [13, 7]
    assert all(len(json.dumps(one.body)) < 1 << 20 for one in server.requests)
    odd = ["a\x00b", "half \ud800 pair", " \n ", "🚀"]
    assert [one.shape for one in open_at(server).documents(odd)] == [(1, 8)] * 4
    assert all(text.encode() for text in server.requests[-1].body["input"])


@pytest.mark.parametrize("variable", http.KEY_VARIABLES)
def test_the_key_comes_from_the_environment(server, monkeypatch, variable):
    monkeypatch.setenv(variable, f" {KEY}\n")
    open_at(server).query("x")
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    refused = failing(server, fake_llm.status(401, f"Incorrect key {KEY}"))
    assert "refused the key" in refused.message and variable in refused.hint


@pytest.mark.parametrize(("reply", "complaint"), cases("embed-http-a-bad-answer-is"))
def test_a_bad_answer_is_named(server, reply, complaint):
    status, answer, *headers = reply
    data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    with pytest.raises(EmbeddingError, match=complaint):
        raise failing(server, lambda exchange: exchange.send(status, data, *headers))


def test_a_slow_server_no_address_another_width_and_a_missing_extra_are_told(server, monkeypatch):
    told = failing(server, fake_llm.silent, timeout=0.1)
    assert "did not answer within 0.1 seconds" in told.message and "model_timeout" in told.hint
    with pytest.raises(EmbeddingError, match="`embedding_url`"):
        HttpEmbedder("", "m")
    other = json.dumps({"data": [{"index": 0, "embedding": [1, 2, 3]}]}).encode()
    server.script[:] = [embed, fake_llm.raw(other)]
    embedder = open_at(server)
    embedder.query("first")
    with pytest.raises(EmbeddingError, match="3 dimensions instead of 8"):
        embedder.query("second")
    monkeypatch.setitem(sys.modules, "httpx2", None)
    assert "pip install 'bethink[http]'" in failing(server, embed).message
    assert len(server.requests) == 3


def test_an_endpoint_that_was_down_is_asked_again_after_a_while(server, tmp_path):
    now = [0.0]
    server.script[:] = [fake_llm.status(400, "out of order"), embed]
    config = Config(embedding="http", embedding_url=server.url, embedding_model="m")
    with Bethink(tmp_path / "m.db", directory=tmp_path, config=config) as memory:
        memory._model._clock = lambda: now[0]
        memory.add("Told while the endpoint was down")
        now[0] = embedding.ASK_AGAIN - 1
        assert memory.embedder is None and memory.hints
        now[0] = embedding.ASK_AGAIN
        memory.add("Told when it was back")
        assert memory.embedder is not None and not memory.hints
        assert memory.stats().unembedded == 1
