"""Texts into values, for texts that nobody vouches for: each parser returns plain data or raises `Unreadable` with a reason.

Nothing is executed, no entity is expanded, no tag makes an object. What nests too deeply is refused where Python's own
limit says so. This module knows the formats and not what a manifest or a workflow holds.
"""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
import warnings
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from bethink.ingest.analyze.tree import Unreadable

LONGEST_YAML = 120_000  # the parser in Python takes up to 3 s for it
DEEPEST = (
    100  # brackets inside brackets; beyond that the parser takes seconds to find its own limit
)
_SHORT = 120


def read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise Unreadable("JSON that nests too deeply") from None
    except ValueError as error:
        raise Unreadable(f"no valid JSON: {_first(error)}") from None


def read_json_with_comments(text: str) -> Any:
    """JSON as editors and compilers allow it: `//` comments and a comma before a closing bracket."""
    from bethink.ingest.analyze.source import without_comments

    return read_json(re.sub(r",(\s{0,200}[}\]])", r"\1", without_comments(text, "javascript")))


def read_toml(text: str) -> dict[str, Any]:
    if re.search(r"(?:[\w-]{1,60}\.){60}", text):
        raise Unreadable(
            "TOML with a key of more than 60 parts"
        )  # each part makes the parser begin again
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise Unreadable("TOML that nests too deeply") from None
    except ValueError as error:
        raise Unreadable(f"no valid TOML: {_first(error)}") from None


def read_ini(text: str) -> Mapping[str, Mapping[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise Unreadable(f"no valid INI file: {_first(error)}") from None
    return {
        name: {key: value or "" for key, value in parser.items(name)} for name in parser.sections()
    }


def read_yaml(text: str) -> list[Any]:
    """All documents of a YAML text, every scalar as a string. Aliases share what they name, so nothing grows by them."""
    if len(text) > LONGEST_YAML:
        raise Unreadable(f"too long for YAML ({len(text):,} characters, at most {LONGEST_YAML:,})")
    if _nesting(text) > DEEPEST:
        raise Unreadable("YAML that nests too deeply")
    try:
        import yaml
    except ImportError:
        raise Unreadable("PyYAML is not installed") from None
    try:
        # BaseLoader makes strings, lists and dicts and nothing else: no dates that do not exist, no merge keys that multiply.
        return list(yaml.load_all(text, Loader=yaml.BaseLoader))
    except RecursionError:
        raise Unreadable("YAML that nests too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        raise Unreadable(f"no valid YAML: {_first(error)}") from None


def _nesting(text: str) -> int:
    """How deep brackets nest, those in strings and comments included: an upper bound is all that is needed."""
    depth = deepest = 0
    for bracket in re.finditer(r"[\[\]{}]", text):
        depth = depth + 1 if bracket[0] in "[{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def merged(value: Any) -> dict[str, Any]:
    """A YAML mapping with what its merge key `<<` names, one level deep; an empty one for anything else."""
    if not isinstance(value, dict):
        return {}
    bases = value.get("<<")
    result: dict[str, Any] = {}
    for base in reversed(bases[:20] if isinstance(bases, list) else [bases]):
        result |= base if isinstance(base, dict) else {}
    return {
        key: item for key, item in (result | value).items() if isinstance(key, str) and key != "<<"
    }


def read_xml(text: str) -> ElementTree.Element:
    """An element tree whose tags have lost their namespaces. A document type is refused: it is where entities are declared."""
    if re.search(r"<!\s*+(?:DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise Unreadable("XML with a document type, which could declare entities")
    try:
        root = ElementTree.fromstring(text)
    except (
        ElementTree.ParseError,
        ValueError,
    ) as error:  # ValueError: an encoding declaration in a decoded text
        raise Unreadable(f"no valid XML: {_first(error)}") from None
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
    return root


def read_python(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # invalid escapes of other people's code are not our concern
            return ast.parse(text)
    except SyntaxError as error:
        raise Unreadable(f"no valid Python: {_first(error)}") from None
    except (RecursionError, MemoryError):
        raise Unreadable("Python that nests too deeply") from None
    except ValueError as error:
        raise Unreadable(f"no valid Python: {_first(error)}") from None


def table(value: Any, *keys: str) -> dict[str, Any]:
    """The mapping at that path, empty where there is something else."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def strings(value: Any) -> list[str]:
    """The strings of a list; a single string is a list of one."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def string(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _first(error: Exception) -> str:
    told = " ".join(str(error).split())
    return told[:_SHORT].rstrip(".") or type(error).__name__
