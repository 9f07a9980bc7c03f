"""What a server offers its clients, as tools.json says it: tools, prompts and the templates of resources. What each takes is in the
language of `surface/arguments.py`. With `meaning` the embedding model is waited for. Annotations are for hosts that ask their user
before a tool does harm; tools that only read say so, and nothing else about themselves.

Every host puts the texts of tools into every conversation, so they are short: all of them together stay under 1,500 tokens, which a
test holds. This module imports nothing heavy, because the list of tools is the first thing a host asks for; a table in TOML would
cost it 6 ms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from bethink import __version__
from bethink.surface.arguments import (
    Argument,
    check_arguments,
    make_asked,
    object_schema,
    parse_arguments,
)

SERVER: dict[str, Any] = {"name": "bethink", "title": "Bethink", "version": __version__}
# What a host calls by itself, as a hook, and no model needs to know of: not in the list of tools.
HOOK = "bethink_prompt"
FILE, MEMORY = "memory://", "bethink://memory/"  # what the names of resources begin with

_TABLE = json.loads(Path(__file__).with_name("tools.json").read_text("utf-8"))
WELCOME: dict[str, Any] = {name: _TABLE[name] for name in ("capabilities", "instructions")}
# Milliseconds that a client may keep what it was told: lists change with the version only, but that may be any moment.
KEPT: dict[str, int] = _TABLE["kept"]
TEXTS = {name: "\n".join(lines) for name, lines in _TABLE["texts"].items()}  # of prompts
_OBJECTS = {name: "\n".join(lines) for name, lines in _TABLE["objects"].items()}  # in lists


class Offer(NamedTuple):
    """A tool or a prompt."""

    told: Mapping[str, Any]  # what a client hears of it, besides what it accepts
    arguments: tuple[Argument, ...]
    meaning: bool  # whether the embedding model is waited for


def _load_offer(name: str, takes: list[str], meaning: bool = False, **told: Any) -> Offer:
    return Offer({"name": name, **told}, parse_arguments("\n".join(takes), **_OBJECTS), meaning)


TOOLS = {name: _load_offer(name, **about) for name, about in _TABLE["tools"].items()}
PROMPTS = {name: _load_offer(name, **about) for name, about in _TABLE["prompts"].items()}
OFFERS = TOOLS | PROMPTS


def read_call(name: str, given: Mapping[str, Any] | None) -> SimpleNamespace:
    """What a tool or prompt is asked, if it accepts that."""
    arguments = OFFERS[name].arguments
    return make_asked(check_arguments(given or {}, arguments), arguments)


def list_offers(method: Any) -> dict[str, Any] | None:
    """What a server answers to `tools/list`, `prompts/list` or `resources/templates/list`; None for other methods."""
    if method == "tools/list":
        tools = TOOLS.values()
        return {
            "tools": [{**one.told, "inputSchema": object_schema(one.arguments)} for one in tools]
        }
    if method == "prompts/list":
        prompts = PROMPTS.values()
        return {"prompts": [{**one.told, "arguments": _list_taken(one)} for one in prompts]}
    return (
        {"resourceTemplates": _TABLE["templates"]} if method == "resources/templates/list" else None
    )


def _list_taken(prompt: Offer) -> list[dict[str, Any]]:
    return [
        {"name": one.name, "description": one.help, "required": one.is_required}
        for one in prompt.arguments
    ]
