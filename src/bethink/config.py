"""Settings: one frozen `Config`, one `load()`.

Defaults are overlaid by the user's file, the project's file, the environment and the command line, in that order.
A mistake in a file is an error that names the file and the key; a mistake in the environment is a warning and is
ignored, because an environment is often not the user's own.
"""

# No `from __future__ import annotations`: NamedTuple compiles each annotation that is a text, and every command loads this.
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink import folders, plugins
from bethink.errors import ConfigError
from bethink.model import AUTOMATIC, MODES, NOTHING, Strings, Values
from bethink.plugins import Registry
from bethink.text import suggest

if TYPE_CHECKING:
    from bethink.project import Project

LANGUAGES = ("auto", "all", "none")
FUSIONS = ("adaptive", "rrf")
WEIGHTS = ("relevance", "recency", "utility", "importance", "frequency")


def read_weights(text: str) -> dict[str, float]:
    """Parse `relevance=0.6 recency=0.4 jitter=0.05` into weights that sum to 1, and jitter."""
    found = dict.fromkeys((*WEIGHTS, "jitter"), 0.0)
    for part in text.split():
        name, _, number = part.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if name not in found or not 0 <= value <= 1:
            raise ValueError(f"'{part}' is no weight; expected {', '.join(WEIGHTS)} or jitter=0..1")
        found[name] = value
    total = sum(found[name] for name in WEIGHTS)
    if not total:
        raise ValueError("expected weights, such as relevance=0.6 recency=0.4")
    return found | {name: found[name] / total for name in WEIGHTS}


def read_profiles(values: Iterable[str]) -> dict[str, dict[str, float]]:
    """The user's own profiles by name."""
    split = [value.strip().partition(" ") for value in values if value.strip()]
    return {name.rstrip(":"): read_weights(weights) for name, _, weights in split}


class Setting(NamedTuple):
    """Help and accepted values of a setting; its type and default are those of `Config`."""

    help: str
    choices: Strings = ()
    low: float | None = None
    high: float | None = None
    plugins: Registry[Any] | None = None  # whose names are accepted, too


SETTINGS = {
    "database": Setting(
        "Path of the database, or a `postgresql://` URL for a team. Empty: one database per user."
    ),
    "tenant": Setting("Tenant in a PostgreSQL database that several teams share."),
    "user": Setting(
        "Your name in a team's database. Only you see your personal memories, and your changes carry this name."
    ),
    "embedding": Setting(
        "Embedding model: a name from `bethink model list`, a folder with model.onnx, `http`, `hashing`, `none`, or an installed plugin."
    ),
    "embedding_url": Setting(
        'Base URL of an OpenAI-compatible endpoint, for `embedding = "http"`.'
    ),
    "embedding_model": Setting("Model to request from that endpoint."),
    "model_timeout": Setting(
        "Seconds to wait for an embedding endpoint or a language model.", low=0.1, high=600
    ),
    "languages": Setting(
        "Second embedding model for other languages than English: for projects that have such texts (`auto`), for every memory (`all`), or not at all (`none`).",
        LANGUAGES,
    ),
    "mode": Setting(
        "Search by meaning and words (`hybrid`), by meaning only, or by words only.", MODES
    ),
    "fusion": Setting("How a hybrid search combines its signals.", FUSIONS),
    "signals": Setting(
        "Ranking signals of installed plugins to use in searches, by name. `bethink search --explain` shows them."
    ),
    "dedup": Setting(
        "Store a repeated statement once and keep its other wordings in its history.",
        ("true", "false"),
    ),
    "dedup_threshold": Setting(
        "Cosine from which a text in the same words counts as a repetition.", low=0, high=1
    ),
    "automatic": Setting(
        "Effect of a new statement on older ones: `full` retires, merges and closes them on certain signals; `mark` only marks them; `off` leaves them alone.",
        AUTOMATIC,
    ),
    "limit": Setting("Number of results of a search.", low=1, high=1000),
    "min_similarity": Setting(
        "Ignore vectors with a lower cosine in a search; -1 ignores none.", low=-1, high=1
    ),
    "threshold": Setting("Return no results with a lower score (0 to 1).", low=0, high=1),
    "profiles": Setting(
        'Your own profiles for `--intent`, each a name and weights: `"mine relevance=0.6 recency=0.3 importance=0.1"`. A built-in name replaces that profile.'
    ),
    "knowledge": Setting(
        "Folders with a project's knowledge, relative to its root. Until it is set, documentation folders are read, too."
    ),
    "chunk_size": Setting(
        "Longest passage of an indexed document, in characters.", low=100, high=10000
    ),
    "chunk_overlap": Setting(
        "Share of a passage that the next one repeats, in percent.", low=0, high=50
    ),
    "llm": Setting(
        "Language model for extraction, summaries and HyDE: `anthropic`, `openai` (and compatible), `claude`, or an installed plugin. Empty: none.",
        ("", "none", *plugins.LANGUAGE_MODELS.names()),
        plugins=plugins.LANGUAGE_MODELS,
    ),
    "llm_model": Setting(
        "Model to request. Empty: a small one of Anthropic's; `openai` needs a name."
    ),
    "llm_url": Setting(
        "Base URL of that model's endpoint, such as http://127.0.0.1:11434/v1. Empty: the provider's own."
    ),
    "llm_daily_tokens": Setting(
        "Tokens that the language model may use per day; 0 sends nothing.", low=0, high=100_000_000
    ),
    "briefing_tokens": Setting(
        "Longest briefing at the start of a session, in tokens; 0 for none.", low=0, high=2000
    ),
    "prompt_tokens": Setting(
        "Most that a hook adds to a prompt, in tokens; 0 adds nothing.", low=0, high=2000
    ),
    "hook_seconds": Setting("Seconds after which a hook gives up.", low=0.2, high=60),
    "hook_helper": Setting(
        "Keep the models open between prompts in a background process, which ends after 15 minutes without one. Commands borrow its models.",
        ("true", "false"),
    ),
    "team": Setting(
        "The team's server (https://…) or database, for `sync`. The token goes into BETHINK_TOKEN."
    ),
    "busy_timeout": Setting(
        "Seconds to wait for another process's write, or for a database server to come back.",
        low=0.1,
        high=600,
    ),
}

# A project's file comes with a cloned repository. It must not decide where memories, questions or API keys are sent, spend
# the user's money, or choose code to run.
PERSONAL_SETTINGS = tuple(
    "database tenant user team embedding embedding_url embedding_model signals"
    " llm llm_model llm_url llm_daily_tokens".split()
)


class Config(NamedTuple):
    database: str = ""
    tenant: str = "default"
    user: str = ""
    embedding: str = "snowflake-arctic-embed-s"
    embedding_url: str = "https://api.openai.com/v1"
    embedding_model: str = "text-embedding-3-small"
    model_timeout: float = 60.0
    languages: str = "auto"
    mode: str = "hybrid"
    fusion: str = "adaptive"
    signals: Strings = ()
    dedup: bool = True
    dedup_threshold: float = 0.9
    automatic: str = "full"
    limit: int = 10
    min_similarity: float = -1.0
    threshold: float = 0.0
    profiles: Strings = ()
    knowledge: Strings = (".claude/knowledge",)
    chunk_size: int = 2000
    chunk_overlap: int = 15
    llm: str = ""
    llm_model: str = ""
    llm_url: str = ""
    llm_daily_tokens: int = 50_000
    briefing_tokens: int = 600
    prompt_tokens: int = 200
    hook_seconds: float = 5.0
    hook_helper: bool = True
    team: str = ""
    busy_timeout: float = 30.0
    # No settings, because nobody should have to choose; a caller may replace them.
    judge: bool = True  # whether the packaged model reads conversations and judges statements
    # of an answer in the index-and-details form, where a call names no number
    max_tokens: int = 1000
    # after which `consolidate` retires turns that nothing was taken from
    keep_context_days: int = 365
    threads: int = 0  # for the local models; 0 uses every core
    max_characters: int = 200_000  # of one memory
    prompt_bar: float = (
        0.5  # how sure a hook must be that a memory fits a prompt (bench/prompts.py)
    )
    origins: Mapping[str, str] = NOTHING
    warnings: Strings = ()

    @property
    def shared(self) -> bool:
        """True if a team's server keeps the memories."""
        return self.database.startswith(("postgres://", "postgresql://"))


def data_directory() -> Path:
    """Return the folder of the database and the models."""
    return Path(folders.find_data())


def user_file() -> Path:
    return Path(folders.find("XDG_CONFIG_HOME", ".config")) / "config.toml"


def project_file(root: Path) -> Path:
    return root / ".bethink" / "config.toml"


def trusts(root: Path) -> bool:
    """Return True if the user accepted this project's own database.

    One that came with a cloned repository is not read: its memories would come from a stranger.
    """
    try:
        return str(root) in (data_directory() / "local-projects").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False


def locate_database(config: Config, project: "Project") -> str:
    """The path or URL of the database that `open_store` opens. Opens nothing."""
    target = config.database
    if target:
        return target if "://" in target else str(Path(target).expanduser().absolute())
    local = project.local_database
    return str(local if local.exists() and trusts(project.root) else data_directory() / "memory.db")


def check(key: str, value: object) -> Any:
    """Return the value in its setting's type, or raise a ValueError that names accepted values."""
    setting = SETTINGS[key]
    kind = type(Config._field_defaults[key])
    if kind is bool:
        return _check_switch(value)
    if kind in (int, float):
        return _check_number(kind, value, setting)
    if kind is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            raise ValueError("expected a list of strings")
        if key == "profiles":
            read_profiles(parts)
        return tuple(part.strip() for part in parts if part.strip())
    if not isinstance(value, str):
        raise ValueError("expected a string")
    known = not setting.choices or value in setting.choices
    if not known and not (setting.plugins and setting.plugins.knows(value)):
        raise ValueError("expected one of " + ", ".join(setting.choices))
    return value


def _check_switch(value: object) -> bool:
    words = {"true": True, "yes": True, "on": True, "1": True}
    words |= {"false": False, "no": False, "off": False, "0": False}
    found = value if isinstance(value, bool) else words.get(str(value).lower())
    if found is None:
        raise ValueError("expected true or false")
    return found


def _check_number(kind: type, value: object, setting: Setting) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if number != number or isinstance(value, bool) or (kind is int and not number.is_integer()):
        raise ValueError("expected a whole number" if kind is int else "expected a number")
    low, high = setting.low, setting.high
    if low is not None and high is not None and not low <= number <= high:
        raise ValueError(f"expected a number from {low:g} to {high:g}")
    return int(number) if kind is int else number


def check_setting(key: str, value: object, place: str = "") -> Any:
    """Check a value like `check`, but raise a ConfigError that names its place."""
    try:
        return check(key, value)
    except ValueError as error:
        raise ConfigError(
            f"Bad value {value!r} for '{key}'{place}: {error}.", "See `bethink config`."
        ) from None


def _read(path: Path, shared: bool = False) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import tomllib

    try:
        with path.open("rb") as stream:
            table = tomllib.load(stream)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"The settings file {path} cannot be read: {error}.", "Mend or remove the file."
        ) from error
    values = {}
    for key, value in table.items():
        if key not in SETTINGS:
            raise ConfigError(f"Unknown setting '{key}' in {path}.", suggest_setting(key))
        if shared and key in PERSONAL_SETTINGS:
            raise ConfigError(
                f"'{key}' may not be set by a project's file ({path}).",
                f"Set it for yourself: `bethink config {key} …`.",
            )
        values[key] = check_setting(key, value, f" in {path}")
    return values


def suggest_setting(key: str) -> str:
    return suggest(key.replace("-", "_"), SETTINGS) or "`bethink config` lists every setting."


def load(root: Path | None = None, overrides: Values | None = None) -> Config:
    """Return all layers together; `root` is the project, `overrides` come from the command line."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    warnings: list[str] = []

    def overlay(layer: Values, origin: str) -> None:
        values.update(layer)
        origins.update(dict.fromkeys(layer, origin))

    overlay(_read(user_file()), str(user_file()))
    if root is not None:
        overlay(_read(project_file(root), shared=True), str(project_file(root)))
    for key in SETTINGS:
        variable = f"BETHINK_{key.upper()}"
        if (text := os.environ.get(variable)) is None:
            continue
        try:
            overlay({key: check(key, text)}, f"${variable}")
        except ValueError as error:
            warnings.append(f"{variable}={text!r} is ignored: {error}.")
    options = {key: value for key, value in (overrides or {}).items() if value is not None}
    overlay({key: check_setting(key, value) for key, value in options.items()}, "command line")
    return Config(**values, origins=origins, warnings=tuple(warnings))


def mask_password(value: object) -> Any:
    """Hide the password of a URL in a value that is shown."""
    if not isinstance(value, str) or "://" not in value:
        return value
    import re

    plain = re.sub(r"^([^:?#]*://[^:?#]*:)[^?#]*@", r"\1…@", value)
    return re.sub(r"(?i)([?&][a-z_]*password=)[^&]*", r"\1…", plain)


def explain(config: Config) -> list[dict[str, Any]]:
    """Return every setting with its value, without passwords, and the layer it came from."""
    return [
        {
            "key": key,
            "value": mask_password(getattr(config, key)),
            "origin": config.origins.get(key, "default"),
            "help": setting.help,
        }
        for key, setting in SETTINGS.items()
    ]
