"""Text into vectors: cutting, hashing, the real local model, and an endpoint that is a server on this machine."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import fake_llm
import numpy as np
import pytest

from bethink import post
from bethink.api import Bethink
from bethink.config import Config
from bethink.embed import ASK_AGAIN, http, models, open_embedder
from bethink.embed.base import (
    PACKED_AFTER,
    WINDOW,
    clean,
    open_session,
    pieces,
    sentence_ends,
)
from bethink.embed.hashing import HashingEmbedder
from bethink.embed.http import HttpEmbedder
from bethink.embed.local import LocalEmbedder
from bethink.errors import EmbeddingError
from bethink.ingest.pipeline import Recent, embed

MODEL = models.KNOWN[models.DEFAULT]
ODD_TEXTS = [
    "",
    " \n\t ",
    "before\x00after",
    "half \ud83d of a pair \udc00",
    "我们决定使用数据库。它很快！" * 20,
    "👩‍👩‍👧 shipped 🚀",
    "[CLS] [SEP] [PAD] </s>",
    "a" * 30_000,
    "مرحبا بالعالم",
]
UNRELATED = [
    "The weather in Lisbon was sunny all week",
    "We decided to use PostgreSQL for the billing service",
    "Kubernetes pods restart when memory is exhausted",
    "My sister likes painting landscapes in the evening",
    "Fix the flaky test in the payment module",
    "他们在公园里散步",
]


@pytest.fixture
def home(tmp_path, monkeypatch):
    for variable in ("BETHINK_OFFLINE", "BETHINK_MODEL_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path))
    return tmp_path


def long_text(characters):
    words = "The build|a cache|our database|the parser|(the old one)|naïve café|e.g. this"
    words, text, i = words.split("|"), "", 0
    while len(text) < characters:
        text += f"{words[i % 7]} number {i} was changed because of {words[(i * 3 + 1) % 7]}."
        text += "\n\n" if i % 9 == 8 else " "
        i += 1
    return text


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param(1, id="1"),
        pytest.param(7, id="7"),
        pytest.param(80, id="80"),
        pytest.param(1000, id="1000"),
        pytest.param(100_000, id="100000"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(long_text(5000), id="long_text"),
        pytest.param("x" * 5000, id="x"),
        pytest.param(" " * 5000, id="blank"),
        pytest.param("", id="empty"),
    ],
)
def test_joined_pieces_are_the_text(limit, text):
    parts = list(pieces(text, limit))
    assert "".join(parts) == text
    assert all(len(part) <= limit for part in parts)


def test_a_sentence_ends_at_a_mark():
    text = 'It works. "Does it?" Yes!\nv1.2 stays 好。行'
    assert [text[end:][:2] for end in sentence_ends(text)] == ['"D', "Ye", "v1", "行"]


def test_text_is_cleaned_for_a_tokenizer():
    assert clean("naïve 🚀\n") == "naïve 🚀\n"
    assert clean("a\x00b\ud83dc\ud83d\ude80") == "a b�c🚀"


def test_hashed_vectors_are_the_same_everywhere():
    query = HashingEmbedder().query
    bits = hashlib.sha256(query("Der schnelle Fuchs 42").tobytes()).hexdigest()
    assert bits[:16] == "afb1495b0698ef54"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            "The cache is stored in Redis with a TTL of one hour.",
            "the cache is stored in redis, with a TTL of one hour",
            id="cache-stored-redis-TTL-one-hour",
        ),
        pytest.param(
            "We decided to use PostgreSQL for the billing service",
            "We decided to use PostgreSQL for billing services",
            id="decided-use-postgresql-billing-service",
        ),
        pytest.param(
            "User authentication uses JWT tokens that expire daily",
            "User authentication uses a JWT token that expires daily",
            id="user-authentication-uses-JWT-tokens",
        ),
        pytest.param(
            "The deployment pipeline runs on every push to main",
            "The deployment pipeline runs at every push to main.",
            id="deployment-pipeline-runs-every-push-main",
        ),
    ],
)
def test_hashing_brings_near_identical_texts_together(one, other):
    query = HashingEmbedder().query
    assert float(query(one) @ query(other)) > 0.9


@pytest.mark.parametrize(("kind", "size"), [("hashing-64", 64), ("hashing", 256), ("local", 384)])
def test_vectors_are_unit_float32_for_any_text(local, kind, size):
    embedder = {"hashing-64": HashingEmbedder(64), "hashing": HashingEmbedder()}.get(kind, local)
    texts = ["one", long_text(4000), *ODD_TEXTS]
    matrices = embedder.documents(texts)
    assert embedder.documents([]) == []
    assert matrices[0].shape[0] == 1 and matrices[1].shape[0] > 1
    vectors = np.concatenate([*matrices, *(embedder.query(text)[None] for text in texts)])
    assert (vectors.dtype, vectors.shape[1]) == (np.float32, size)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_has_the_same_vector_in_any_batch(local, model_or_pull):
    texts = ["We chose SQLite.", long_text(3000), "A short one", *UNRELATED]
    fresh = LocalEmbedder(MODEL, model_or_pull, 1)
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(lambda text: fresh.documents([text])[0], texts))
    assert [
        one
        for one, other in zip(local.documents(texts), alone, strict=True)
        if not np.array_equal(one, other)
    ] == []


def test_windows_hold_the_whole_text(local):
    text = long_text(100_000)
    encode = local.load().tokenizer.encode
    windows = list(local.windows(text))
    assert [token for window in windows for token in window] == encode(text)
    assert max(map(len, windows)) <= WINDOW
    assert all(len(window) > WINDOW // 4 for window in windows[:-1])
    # Sentences of this text fit, so every window but the last ends with one.
    assert {window[-1] for window in windows} == set(encode("."))


def test_a_paraphrase_is_nearer_than_another_text(local):
    texts = (
        "The login session expires after an hour.",
        "Users are signed out sixty minutes after they log in.",
        "The cat sleeps on the warm windowsill.",
    )
    known, same, other = (matrix[0] for matrix in local.documents(texts))
    assert float(known @ same) > float(known @ other) + 0.1
    question = local.query("How long does a user stay logged in?")
    assert min(float(question @ known), float(question @ same)) > float(question @ other) + 0.1


def test_a_query_carries_its_prefix(local):
    question = "where do we keep sessions"
    vector = local.query(question)
    assert not np.allclose(vector, local.documents([question])[0][0])
    assert np.allclose(vector, local.documents([MODEL.query_prefix + question])[0][0], atol=1e-5)


def test_a_query_is_cached(local):
    question = "where do we keep sessions"
    vector = local.query(question)
    assert local.query(question) is vector and not vector.flags.writeable


def test_stopping_leaves_no_thread_behind(local, monkeypatch):
    def interrupt(made, key):
        next(made)
        raise KeyboardInterrupt

    monkeypatch.setattr("bethink.embed.local.groupby", interrupt)
    with pytest.raises(KeyboardInterrupt):
        local.documents(["short", *[long_text(2500)] * 200])
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("bethink-embed")]


def test_only_declared_inputs_are_fed(model_or_pull):
    class Session:
        def run(self, outputs, feed):
            assert sorted(feed) == ["attention_mask", "input_ids"]
            return [np.array([[3.0, 4.0]], dtype=np.float32)]

    embedder = LocalEmbedder(MODEL._replace(dimensions=0), model_or_pull)
    inputs = frozenset({"input_ids", "attention_mask"})
    embedder._runtime = embedder.load()._replace(session=Session(), inputs=inputs)
    assert np.allclose(embedder.query("x"), [0.6, 0.8])


def test_a_folder_is_a_model(model_or_pull, tmp_path, local):
    for file in ("model.onnx", "tokenizer.json"):
        (tmp_path / file).symlink_to(model_or_pull / file)
    config = Config(embedding=str(tmp_path), threads=1)
    embedder = open_embedder(config)
    assert embedder.model.startswith(f"{tmp_path.name}@") and embedder.model.endswith("/w128")
    text = "We keep sessions in the database."
    assert not np.allclose(embedder.documents([text])[0], local.documents([text])[0], atol=1e-2)


def test_each_kind_of_embedder_is_opened_by_its_name(home):
    assert open_embedder(Config(embedding="none")) is None
    assert open_embedder(Config(embedding="hashing")).model == "hashing-256"
    url = "http://localhost:11434/v1"
    http = Config(embedding="http", embedding_url=url, embedding_model="nomic")
    assert open_embedder(http).model == "nomic@localhost:11434"


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        pytest.param("snowflake-arctic-embed-s", "", id="snowflake-arctic-embed-s"),
        pytest.param("Xenova/gte-small", " gte-small", id="xenova/gte-small"),
    ],
)
def test_a_missing_model_names_the_command_that_installs_it(home, name, argument):
    with pytest.raises(EmbeddingError, match="' is not installed") as caught:
        open_embedder(Config(embedding=name))
    assert f"`bethink model pull{argument}`" in caught.value.hint


def test_an_unknown_model_is_refused(home):
    with pytest.raises(EmbeddingError, match="no embedding model called 'gte-smal'"):
        open_embedder(Config(embedding="gte-smal"))


def test_a_model_is_identified_by_its_hash(home):
    assert models.identify(MODEL, home) == "snowflake-arctic-embed-s@f93ff225/w128"


def test_a_vector_that_left_the_cache_is_computed_again(home):
    class Fleeting(dict):
        def __contains__(self, key):
            return True

    recent = Recent()
    recent.vectors = Fleeting()
    store = SimpleNamespace(read_cache=lambda hashes, model: {})
    vectors, made = embed(["We use Redis", None], HashingEmbedder(), recent, store)
    assert len(vectors[0]) == 1 and vectors[1] == () and len(made) == 1


def test_the_runtime_of_the_model_leaves_nothing_behind(tmp_path, model_or_pull):
    code = (
        "import sys; from pathlib import Path; from bethink.embed import models; from bethink.embed.local import LocalEmbedder\n"
        "LocalEmbedder(models.KNOWN[models.DEFAULT], Path(sys.argv[1]), 1).query('hello')\n"
        "print([name for name in ('tokenizers', 'huggingface_hub') if name in sys.modules])"
    )
    environment = os.environ | {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    for name in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    command = [sys.executable, "-c", code, model_or_pull]
    assert subprocess.check_output(command, env=environment) == b"[]\n"
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.parent.parent.name for path in left} == {".optimised"}


@pytest.mark.usefixtures("models_open_anew")
@pytest.mark.parametrize("file", ["model.onnx", "weights.bin"])
def test_a_damaged_copy_of_a_model_is_made_anew(home, model_or_pull, file):
    first = LocalEmbedder(MODEL, model_or_pull, 1).query("Who deploys?")
    [copy] = (home / "models" / ".optimised").iterdir()
    good = (copy / file).read_bytes()
    (copy / file).unlink()  # the mapped file itself stays as it is
    (copy / file).write_bytes(good[:1000])
    assert np.array_equal(LocalEmbedder(MODEL, model_or_pull, 1).query("Who deploys?"), first)
    assert (copy / file).read_bytes() == good


def test_all_that_use_a_model_in_a_process_share_its_session(home, model_or_pull):
    first, second = (open_session(model_or_pull / "model.onnx", home) for _ in range(2))
    assert first is second


@pytest.mark.usefixtures("models_open_anew")
def test_a_model_works_where_no_copy_can_be_kept(home, model_or_pull):
    (home / "models").mkdir(parents=True, exist_ok=True)
    (home / "models" / ".optimised").write_text("no folder")
    assert LocalEmbedder(MODEL, model_or_pull, 1).query("Who deploys?").shape == (384,)


@pytest.mark.usefixtures("models_open_anew")
def test_packing_the_weights_of_a_busy_model_changes_no_number(home, model_or_pull):
    embedder = LocalEmbedder(MODEL, model_or_pull, 1)
    found = [embedder.documents(["Who deploys?"])[0] for _ in range(PACKED_AFTER + 2)]
    assert np.array_equal(found[0], found[-1])


@pytest.mark.usefixtures("models_open_anew")
def test_a_busy_model_goes_on_if_its_copy_is_gone(home, model_or_pull):
    embedder = LocalEmbedder(MODEL, model_or_pull, 1)
    first = embedder.documents(["Who deploys?"])[0]
    shutil.rmtree(home / "models" / ".optimised")
    found = [embedder.documents(["Who deploys?"])[0] for _ in range(PACKED_AFTER + 2)]
    assert np.array_equal(first, found[-1])


# An endpoint, played by a real server on this machine. What every endpoint has alike is tried in test_llm.py.

KEY = "sk-secret-4711"


def vector_of(text, dimensions=8):
    """Any vector that depends on the text and has not length 1."""
    values = np.frombuffer(text.encode()[:dimensions].ljust(dimensions, b"~"), dtype=np.uint8)
    return [float(value) for value in values]


def answer_vectors(exchange, step=1):
    vectors = [vector_of(text) for text in exchange.body["input"]]
    rows = [{"index": at, "embedding": one} for at, one in enumerate(vectors)]
    exchange.send(200, json.dumps({"data": rows[::step]}).encode())


@pytest.fixture
def server(monkeypatch):
    for variable in http.KEY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(post, "sleep", lambda seconds: pytest.fail("it should not wait"))
    with fake_llm.serving() as server:
        server.script[:] = [answer_vectors]
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


def test_texts_of_any_length_become_unit_vectors_in_requests_that_proxies_take(server):
    embedder = open_at(server)
    matrices = embedder.documents(["one", "two", ""])
    assert [matrix.shape for matrix in matrices] == [(1, 8)] * 3 and matrices[0].dtype == np.float32
    expected = np.array(vector_of("one")) / np.linalg.norm(vector_of("one"))
    assert np.allclose(matrices[0][0], expected, atol=1e-6)
    assert np.allclose(embedder.query("one"), expected, atol=1e-6)
    first = server.requests[0]
    assert first.path == "/v1/embeddings" and "Authorization" not in first.headers
    assert first.body == {"model": "some-model", "input": ["one", "two", "-"]}
    assert embedder.documents([]) == []
    server.script[:] = [lambda exchange: answer_vectors(exchange, -1)]  # ordered by their index
    assert np.array_equal(matrices, open_at(server).documents(["one", "two", ""]))
    text = "A sentence of some length, for the sake of it. " * 2000
    texts = [*["short"] * 25, text, "我们决定使用数据库。" * 1500]
    matrices = open_at(server).documents(texts)
    sent = [one.body["input"] for one in server.requests[-2:]]
    assert [len(windows) for windows in sent] == [32, 12]
    assert "".join(window for windows in sent for window in windows) == "".join(texts)
    assert [matrix.shape[0] for matrix in matrices] == [*[1] * 25, 16, 3]
    texts = ["🚀" * http.WINDOW_CHARACTERS] * 40
    assert len(open_at(server).documents(texts)) == 40
    assert [len(one.body["input"]) for one in server.requests[-2:]] == [32, 8]
    assert all(int(one.headers["Content-Length"]) < 1 << 20 for one in server.requests)
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


HTTP_BAD_ANSWER = [
    ((200, b"<html>hello</html>"), "cannot be read"),
    ((200, b"\xff\xfe"), "cannot be read"),
    ((200, ["no", "object"]), "did not answer with one vector"),
    ((200, {"data": "none"}), "did not answer with one vector"),
    ((200, {"data": [{"index": 0}]}), "did not answer with one vector"),
    ((200, {"data": [{"index": 0, "embedding": ["a", "b"]}]}), "did not answer with one vector"),
    ((200, {"data": []}), "did not answer with one vector"),
    (
        (200, {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}]}),
        "did not answer with one vector",
    ),
    ((200, {"data": [{"index": 3, "embedding": [1]}]}), "did not answer with one vector"),
    (
        (200, {"data": [{"index": 0, "embedding": [1e300, 1e300]}]}),
        "did not answer with one vector",
    ),
    ((200, {"data": [{"index": 0, "embedding": []}]}), "did not answer with one vector"),
    ((200, b'{"data": [{"index": 0, "embedding": [1, NaN]}]}'), "did not answer with one vector"),
    ((200, b'{"data": [{"index": 0, "embedding": [1, 1e999]}]}'), "did not answer with one vector"),
    ((200, {"data": [{"index": 0, "embedding": [0, 0]}]}), "did not answer with one vector"),
    (
        (404, {"error": {"message": "model not found"}}),
        "has not what is asked for: model not found",
    ),
    ((422, b"\xffnonsense"), "refused the request \\(422\\)"),
    ((307, {}, {"Location": "http://127.0.0.1:9/elsewhere"}), "redirects"),
    (
        (200, {"data": [{"index": 0, "embedding": [[1, 2], [3, 4]]}]}),
        "did not answer with one vector",
    ),
]


def test_a_bad_answer_of_a_server_is_reported(server):
    for reply, complaint in HTTP_BAD_ANSWER:
        status, answer, *headers = reply
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        with pytest.raises(EmbeddingError, match=complaint):
            raise failing(server, lambda exchange, of=(status, data, *headers): exchange.send(*of))


def test_a_slow_server_is_reported(server):
    told = failing(server, fake_llm.silent, timeout=0.1)
    assert "did not answer within 0.1 seconds" in told.message and "model_timeout" in told.hint


def test_a_slow_server_is_asked_once(server):
    failing(server, fake_llm.silent, timeout=0.1)
    assert len(server.requests) == 1


def test_a_missing_address_is_refused():
    with pytest.raises(EmbeddingError, match="`embedding_url`"):
        HttpEmbedder("", "m")


def test_a_vector_of_another_length_is_refused(server):
    other = json.dumps({"data": [{"index": 0, "embedding": [1, 2, 3]}]}).encode()
    server.script[:] = [answer_vectors, fake_llm.raw(other)]
    embedder = open_at(server)
    embedder.query("first")
    with pytest.raises(EmbeddingError, match="did not answer with one vector"):
        embedder.query("second")


def test_the_http_embedder_needs_its_extra(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    assert "pip install 'bethink[http]'" in failing(server, answer_vectors).message


def test_without_its_extra_the_http_embedder_sends_nothing(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    failing(server, answer_vectors)
    assert server.requests == []


def test_an_endpoint_that_was_down_is_asked_again_after_a_while(server, tmp_path):
    server.script[:] = [fake_llm.status(400, "out of order"), answer_vectors]
    config = Config(embedding="http", embedding_url=server.url, embedding_model="m")
    with Bethink(tmp_path / "m.db", directory=tmp_path, config=config) as memory:
        memory.add("Told while the endpoint was down")
        memory._model._failed_at -= ASK_AGAIN - 5
        assert memory.embedder is None and memory.hints
        memory._model._failed_at -= 5
        memory.add("Told when it was back")
        assert memory.embedder is not None and not memory.hints
        assert memory.stats().unembedded == 1
