"""An optional language model: opens the one that the settings ask for. Each kind is one file; `base.py` says what they share.

Nothing here is needed: without a model, or when it fails, callers go on by offline rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bethink.config import data_directory
from bethink.errors import ConfigError
from bethink.llm.base import Model, ModelError, Provider, Reply, Task
from bethink.llm.guard import Budget, Guarded

__all__ = [
    "PROVIDERS",
    "Budget",
    "Model",
    "ModelError",
    "Reply",
    "Task",
    "open_budget",
    "open_model",
]

PROVIDERS = ("anthropic", "openai", "claude")


class Settings(Protocol):
    """The settings that matter here."""

    @property
    def llm(self) -> str: ...
    @property
    def llm_model(self) -> str: ...
    @property
    def llm_url(self) -> str: ...
    @property
    def model_timeout(self) -> float: ...
    @property
    def llm_daily_tokens(self) -> int: ...


def open_model(
    config: Settings, redact: Callable[[str], str], budget: Budget | None = None
) -> Model | None:
    """The configured model, or None if there is none. Nothing is sent here.

    Everything that is ever sent goes through `redact`, which is why no model can be had without it.
    """
    kind = config.llm.strip()
    if kind in ("", "none"):
        return None
    return Guarded(_provider(kind, config), redact, budget or open_budget(config))


def open_budget(config: Settings) -> Budget:
    """What was spent, and what may be: for `stats`, with or without a model."""
    return Budget(data_directory() / "llm-usage", config.llm_daily_tokens)


def _provider(kind: str, config: Settings) -> Provider:
    from bethink.llm.providers import AnthropicModel, ClaudeCli, OpenAiModel

    if kind == "anthropic":
        return AnthropicModel(config.llm_url, config.llm_model, config.model_timeout)
    if kind == "openai":
        return OpenAiModel(config.llm_url, config.llm_model, config.model_timeout)
    if kind == "claude":
        return ClaudeCli(config.llm_model, config.model_timeout)
    raise ConfigError(
        f"Unknown language model '{kind}' in the setting `llm`.",
        f"Use one of: {', '.join(PROVIDERS)}; or none.",
    )
