"""Settings: every layer, where each value came from, and what is refused."""

import pytest

from bethink import config
from bethink.config import SETTINGS, Config, check, explain, load
from bethink.errors import ConfigError


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A home and a project without any setting. Returns the project's root."""
    for key in SETTINGS:
        monkeypatch.delenv(f"BETHINK_{key.upper()}", raising=False)
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    (root / ".bethink").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return root


def write(path, text):
    path.write_text(text, "utf-8")
    return path


VALUE_BROUGHT = [
    ("limit", "7", 7),
    ("limit", 7.0, 7),
    ("threshold", "0.25", 0.25),
    ("threshold", 1, 1.0),
    ("min_similarity", -1, -1.0),
    ("knowledge", "docs, notes ,", ("docs", "notes")),
    ("knowledge", ["docs"], ("docs",)),
    ("fusion", "rrf", "rrf"),
    ("database", "~/x.db", "~/x.db"),
    ("llm_daily_tokens", 1000000, 1000000),
]


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_has_a_default_of_its_type(key):
    default = Config._field_defaults[key]
    assert check(key, default) == default
    assert type(check(key, default)) is type(default)
    assert SETTINGS[key].help.endswith(".")


def test_a_default_counts_where_no_layer_says_otherwise(project):
    assert load(project) == Config(origins={}, warnings=())
    assert {line["origin"] for line in explain(load(project))} == {"default"}
    assert [line["key"] for line in explain(load())] == list(SETTINGS)


@pytest.mark.parametrize(("key", "given", "value"), VALUE_BROUGHT)
def test_a_value_is_brought_to_the_type_of_its_setting(key, given, value):
    checked = check(key, given)
    assert (checked, type(checked)) == (value, type(value))


def test_each_layer_overrides_the_one_before(project, monkeypatch):
    text = "limit = 1\nmode = 'vector'\nchunk_size = 200\nthreshold = 0.1\n"
    user = write(config.user_file(), text)
    shared = write(config.project_file(project), "limit = 2\nmode = 'keyword'\nchunk_size = 300\n")
    monkeypatch.setenv("BETHINK_LIMIT", "3")
    monkeypatch.setenv("BETHINK_MODE", "hybrid")
    found = load(project, {"limit": 4, "fusion": None})
    values = (found.limit, found.mode, found.chunk_size, found.threshold, found.fusion)
    assert values == (4, "hybrid", 300, 0.1, "adaptive")
    named = {"limit": "command line", "mode": "$BETHINK_MODE"}
    named |= {"chunk_size": str(shared), "threshold": str(user)}
    assert [
        line for line in explain(found) if line["origin"] != named.get(line["key"], "default")
    ] == []


BAD_VALUES = [
    ("limit", "0", "from 1 to 1000"),
    ("limit", "2.5", "whole number"),
    ("limit", '"many"', "expected a whole number"),
    ("limit", "true", "expected a whole number"),
    ("limit", "nan", "whole number"),
    ("threshold", "1.5", "from 0 to 1"),
    ("threshold", "nan", "expected a number"),
    ("limit", "inf", "whole number"),
    (
        "limit",
        "9999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999",
        "expected a whole number",
    ),
    ("mode", '"fuzzy"', "hybrid, vector, keyword"),
    ("fusion", '"sum"', "adaptive, rrf"),
    ("fusion", '"odd"', "adaptive"),
    ("knowledge", "5", "list of strings"),
    ("knowledge", "[1]", "list of strings"),
    ("mode", "5", "expected a string"),
]

NO_SETTINGS = [
    b"limit = ",
    b"[[[",
    b"\xff\xfe",
    b"limit = 1\nlimit = 2\n",
    b"[table]\nlimit = 1\n",
    b"limit = " + b"[" * 100_000,
    b"limit = " + b"9" * 5000,
]


@pytest.mark.parametrize("place", ["the project's file", "the user's file"])
@pytest.mark.parametrize(("key", "text", "expected"), BAD_VALUES)
def test_a_bad_value_in_a_file_is_an_error_that_names_it(project, place, key, text, expected):
    path = config.user_file() if place == "the user's file" else config.project_file(project)
    write(path, f"{key} = {text}")
    with pytest.raises(ConfigError) as caught:
        load(project)
    assert all(part in caught.value.message for part in (f"'{key}'", str(path), expected))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("limits", "Did you mean 'limit'?"),
        ("min-similarity", "Did you mean 'min_similarity'?"),
        ("zzz", "lists every setting"),
    ],
)
def test_an_unknown_key_in_a_file_is_an_error_with_a_hint(project, key, hint):
    write(config.user_file(), f"{key} = 1")
    with pytest.raises(ConfigError, match=f"Unknown setting '{key}' in .*toml") as caught:
        load(project)
    assert hint in caught.value.hint


@pytest.mark.parametrize("content", NO_SETTINGS, ids=lambda content: ascii(content[:20]))
def test_a_file_that_is_no_toml_is_an_error_that_names_it(project, content):
    write(config.user_file(), "")
    config.user_file().write_bytes(content)
    with pytest.raises(ConfigError, match=r"config\.toml"):
        load(project)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        pytest.param("limit", "0", id="limit-0"),
        pytest.param("limit", "x", id="limit-x"),
        pytest.param("limit", "inf", id="limit-inf"),
        pytest.param("mode", "fuzzy", id="mode"),
        pytest.param("threshold", "", id="threshold"),
        pytest.param("chunk_size", "1e9", id="chunk_size"),
    ],
)
def test_a_bad_value_in_the_environment_is_ignored_with_a_warning(project, monkeypatch, key, text):
    monkeypatch.setenv(f"BETHINK_{key.upper()}", text)
    found = load(project)
    assert getattr(found, key) == Config._field_defaults[key] and key not in found.origins
    (warning,) = found.warnings
    assert warning.startswith(f"BETHINK_{key.upper()}={text!r} is ignored: expected")


@pytest.mark.parametrize(
    "key", "database embedding embedding_url embedding_model llm_model".split()
)
def test_a_projects_file_may_not_say_where_memories_go(project, key):
    write(config.project_file(project), f'{key} = "http://evil.example"')
    with pytest.raises(ConfigError, match=f"'{key}' may not be set by a project's file") as caught:
        load(project)
    assert f"bethink config {key}" in caught.value.hint
    config.project_file(project).unlink()
    write(config.user_file(), f'{key} = "mine"')
    assert getattr(load(project), key) == "mine"


def test_the_default_home_follows_the_desktop_rules(tmp_path, monkeypatch):
    def places():
        return config.data_directory(), config.user_file()

    monkeypatch.setenv("BETHINK_HOME", str(tmp_path))
    assert places() == (tmp_path, tmp_path / "config.toml")
    monkeypatch.delenv("BETHINK_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "etc"))
    etc = tmp_path / "etc" / "bethink" / "config.toml"
    assert places() == (tmp_path / "data" / "bethink", etc)
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    share, etc = tmp_path / ".local" / "share", tmp_path / ".config"
    assert places() == (share / "bethink", etc / "bethink" / "config.toml")


def test_a_switch_that_is_turned_off_is_shown(cli):
    assert "dedup = false" in cli.ok("config", "dedup", "false")
