"""Text into vectors: cutting, hashing, and the real local model."""

import hashlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from case_tables import cases

from bethink.config import Config
from bethink.embed import HashingEmbedder, models, open_embedder
from bethink.embed.base import WINDOW, clean, pieces, sentence_ends
from bethink.embed.local import LocalEmbedder
from bethink.errors import EmbeddingError
from bethink.ingest.pipeline import Recent, embed

MODEL = models.KNOWN[models.DEFAULT]
ODD_TEXTS = {
    "empty": "",
    "blank": " \n\t ",
    "NUL": "before\x00after",
    "lone surrogate": "half \ud83d of a pair \udc00",
    "Chinese": "我们决定使用数据库。它很快！" * 20,
    "emoji": "👩‍👩‍👧 shipped 🚀",
    "special tokens": "[CLS] [SEP] [PAD] </s>",
    "one endless word": "a" * 30_000,
    "right to left": "مرحبا بالعالم",
}
UNRELATED = cases("embed-unrelated")


@pytest.fixture(scope="session")
def model_or_pull():
    """The folder of the default model: a ready one, else fetched once into a cache that later runs find."""
    if ready := os.environ.get("BETHINK_TEST_MODEL"):
        return Path(ready)
    with pytest.MonkeyPatch.context() as patch:
        if cache := os.environ.get("BETHINK_TEST_CACHE"):
            patch.setenv("BETHINK_HOME", cache)
        try:
            return models.pull(models.DEFAULT)
        except EmbeddingError as error:
            message = f"The tests need the embedding model. {error.message}"
            pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


@pytest.fixture
def with_model(model_or_pull, tmp_path, monkeypatch):
    """A home in which the packaged model is found, and the usual settings."""
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BETHINK_OFFLINE", "1")
    monkeypatch.delenv("BETHINK_EMBEDDING", raising=False)
    monkeypatch.setenv("BETHINK_MODEL_DIR", str(model_or_pull.parent))


@pytest.fixture(scope="session")
def local(model_or_pull):
    return LocalEmbedder(MODEL, model_or_pull, 2)


@pytest.fixture
def home(tmp_path, monkeypatch):
    for variable in ("BETHINK_OFFLINE", "HF_HUB_OFFLINE", "BETHINK_MODEL_DIR"):
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


@pytest.mark.parametrize("limit", [1, 7, 80, 1000, 100_000])
def test_pieces_join_up_to_the_whole_text(limit):
    for text in (long_text(5000), "x" * 5000, " " * 5000, ""):
        parts = list(pieces(text, limit))
        assert "".join(parts) == text
        assert all(len(part) <= limit for part in parts)


def test_sentences_end_at_marks_and_lines_and_cleaning_mends_what_is_no_good_text():
    text = 'It works. "Does it?" Yes!\nv1.2 stays 好。行'
    assert [text[end:][:2] for end in sentence_ends(text)] == ['"D', "Ye", "v1", "行"]
    assert clean("naïve 🚀\n") == "naïve 🚀\n"
    assert clean("a\x00b\ud83dc\ud83d\ude80") == "a b�c🚀"


def test_hashing_is_the_same_on_every_machine_and_brings_alike_sentences_together():
    query = HashingEmbedder().query
    bits = hashlib.sha256(query("Der schnelle Fuchs 42").tobytes()).hexdigest()
    assert bits[:16] == "afb1495b0698ef54"
    for one, other in cases("embed-hashing-brings-near-identical"):
        assert float(query(one) @ query(other)) > 0.9


@pytest.mark.parametrize("dimensions", [64, 256])
def test_hashing_gives_unit_vectors_for_any_text(dimensions):
    embedder = HashingEmbedder(dimensions)
    assert embedder.model == f"hashing-{dimensions}" and embedder.dimensions == dimensions
    seen = []
    for matrix in embedder.documents([*ODD_TEXTS.values(), "word " * 1000], seen.append):
        assert matrix.dtype == np.float32 and matrix.shape[1] == dimensions
        assert np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)
    assert matrix.shape[0] == 3
    assert seen == list(range(1, len(ODD_TEXTS) + 2))


def test_a_text_gives_the_same_bits_alone_and_among_others(local, model_or_pull):
    texts = ["We chose SQLite.", long_text(3000), "A short one", *UNRELATED]
    together = local.documents(texts)
    one_thread = LocalEmbedder(MODEL, model_or_pull, 1).documents(texts)
    for text, matrix, other in zip(texts, together, one_thread, strict=True):
        assert np.array_equal(local.documents([text])[0], matrix)
        assert np.array_equal(other, matrix)


def test_vectors_are_unit_float32_for_any_text_and_progress_counts_texts(local):
    seen = []
    texts = ["one", long_text(4000), *ODD_TEXTS.values()]
    matrices = local.documents(texts, seen.append)
    assert seen == list(range(1, len(texts) + 1))
    assert matrices[0].shape[0] == 1 and matrices[1].shape[0] > 1
    for matrix in [*matrices, *(local.query(text)[None] for text in texts)]:
        assert matrix.dtype == np.float32 and matrix.shape[1] == local.dimensions == 384
        assert np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)
    assert local.documents([]) == []


def test_windows_cover_every_token_of_a_long_text(local):
    text = long_text(100_000)
    encode = local._load().tokenizer.encode
    windows = list(local.windows(text))
    assert [token for window in windows for token in window] == encode(text)
    assert max(map(len, windows)) <= WINDOW
    assert all(len(window) > WINDOW // 4 for window in windows[:-1])
    # Sentences of this text fit, so every window but the last ends with one.
    assert {window[-1] for window in windows} == set(encode("."))


def test_a_paraphrase_is_nearer_than_another_topic(local):
    texts = (
        "The login session expires after an hour.",
        "Users are signed out sixty minutes after they log in.",
        "The cat sleeps on the warm windowsill.",
    )
    known, same, other = (matrix[0] for matrix in local.documents(texts))
    assert float(known @ same) > float(known @ other) + 0.1
    question = local.query("How long does a user stay logged in?")
    assert min(float(question @ known), float(question @ same)) > float(question @ other) + 0.1


def test_a_query_carries_its_prefix_and_is_remembered(local):
    question = "where do we keep sessions"
    vector = local.query(question)
    assert not np.allclose(vector, local.documents([question])[0][0])
    assert np.allclose(vector, local.documents([MODEL.query_prefix + question])[0][0], atol=1e-5)
    assert local.query(question) is vector and not vector.flags.writeable
    assert local.query(long_text(30_000)).shape == (384,)


def test_stopping_leaves_no_thread_behind(local):
    def interrupt(finished):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        local.documents(["short", *[long_text(2500)] * 200], interrupt)
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("bethink-embed")]


def test_many_threads_may_load_and_ask_at_once(model_or_pull):
    embedder = LocalEmbedder(MODEL, model_or_pull, 2)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: embedder.documents([text])[0], ["the same text"] * 4))
    assert all(np.array_equal(found[0], matrix) for matrix in found)


def test_only_declared_inputs_are_fed_and_pooled_output_is_taken_as_it_is(model_or_pull):
    class Session:
        def run(self, outputs, feed):
            assert sorted(feed) == ["attention_mask", "input_ids"]
            return [np.array([[3.0, 4.0]], dtype=np.float32)]

    embedder = LocalEmbedder(MODEL._replace(dimensions=0), model_or_pull)
    inputs = frozenset({"input_ids", "attention_mask"})
    embedder._runtime = embedder._load()._replace(session=Session(), inputs=inputs)
    assert embedder.dimensions == 2
    assert np.allclose(embedder.query("x"), [0.6, 0.8])


def test_a_folder_is_a_model_with_mean_pooling(model_or_pull, tmp_path, local):
    for file in ("model.onnx", "tokenizer.json"):
        (tmp_path / file).symlink_to(model_or_pull / file)
    config = Config(embedding=str(tmp_path), threads=1)
    embedder = open_embedder(config)
    assert embedder.model.startswith(f"{tmp_path.name}@") and embedder.model.endswith("/w128")
    assert embedder.dimensions == 384
    text = "We keep sessions in the database."
    assert not np.allclose(embedder.documents([text])[0], local.documents([text])[0], atol=1e-2)


def test_each_kind_is_opened_by_its_name_and_one_not_installed_names_the_command_to_type(home):
    assert open_embedder(Config(embedding="none")) is None
    assert open_embedder(Config(embedding="hashing")).model == "hashing-256"
    url = "http://localhost:11434/v1"
    http = Config(embedding="http", embedding_url=url, embedding_model="nomic")
    assert open_embedder(http).model == "nomic@localhost:11434"
    commands = {"snowflake-arctic-embed-s": "", "Xenova/gte-small": " gte-small"}
    for name, argument in commands.items():
        with pytest.raises(EmbeddingError, match="' is not installed") as caught:
            open_embedder(Config(embedding=name))
        assert f"`bethink model pull{argument}`" in caught.value.hint
    with pytest.raises(EmbeddingError, match="no embedding model called 'gte-smal'"):
        open_embedder(Config(embedding="gte-smal"))
    assert models.identity("snowflake-arctic-embed-s") == "snowflake-arctic-embed-s@f93ff225/w128"
    assert models.identity("gte-small") is None


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
    assert [path.parent.name for path in left] == [".optimised"]


def test_a_copy_that_opens_faster_gives_the_same_bits_and_may_be_lost_or_damaged(
    home, model_or_pull
):
    def embed():
        return LocalEmbedder(MODEL, model_or_pull, 1).query("Who deploys?")

    first, copies = embed(), home / "models" / ".optimised"
    [copy] = copies.iterdir()
    good = copy.read_bytes()
    assert np.array_equal(embed(), first)
    copy.write_bytes(good[:1000])
    assert np.array_equal(embed(), first)
    assert copy.read_bytes() == good, "it was made anew"
    copy.unlink()
    copies.rmdir()
    copies.write_text("no folder")  # nothing can be kept
    assert np.array_equal(embed(), first)


def test_a_vector_that_another_thread_lets_go_of_is_made_anew():
    class Fleeting(dict):
        def __contains__(self, key):
            return True

    recent = Recent()
    recent.held = Fleeting()
    store = SimpleNamespace(read_cache=lambda hashes, model: {})
    vectors, made = embed(["We use Redis", None], HashingEmbedder(), recent, store)
    assert len(vectors[0]) == 1 and vectors[1] == () and len(made) == 1
