"""An optional language model: opens the one that the settings ask for. `base.py` says what the others share.

Nothing here is needed: without a model, or when it fails, callers go on by offline rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bethink.config import Config, data_directory
from bethink.errors import ConfigError
from bethink.llm.guard import Budget, Guarded

if TYPE_CHECKING:
    from bethink.llm.base import Model


def open_model(config: Config, redact: Callable[[str], str]) -> Model | None:
    """The configured model, or None if there is none. Nothing is sent here.

    Everything that is ever sent goes through `redact`, which is why no model can be had without it.
    """
    kind = config.llm.strip()
    if kind in ("", "none"):
        return None
    from bethink.llm.providers import PROVIDERS

    if kind not in PROVIDERS:
        raise ConfigError(
            f"Unknown language model '{kind}' in the setting `llm`.",
            f"Use one of: {', '.join(PROVIDERS)}; or none.",
        )
    provider = PROVIDERS[kind](config.llm_url, config.llm_model, config.model_timeout)
    return Guarded(provider, redact, open_budget(config))


def open_budget(config: Config) -> Budget:
    """What was spent, and what may be: for `stats`, with or without a model."""
    return Budget(data_directory() / "llm-usage", config.llm_daily_tokens)
