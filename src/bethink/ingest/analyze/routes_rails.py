"""Routes of Rails: `config/routes.rb` line by line, with its blocks. Constraints, concerns and engines are not followed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from bethink.ingest.analyze.route import Route, join
from bethink.ingest.analyze.source import without_comments
from bethink.ingest.analyze.tree import Tree

_NAME = r"[:\"']([\w/:.*()#-]{1,120})[\"']?"
_ACTIONS = ("index", "create", "new", "show", "edit", "update", "destroy")
DEEPEST = 30  # blocks in blocks


class Block(NamedTuple):
    path: str
    module: str
    resource: str = ""  # the resource whose member routes may stand inside
    plural: bool = True
    hidden: str = ""  # the path of the resource around it, while this block stands in its place


def routes(tree: Tree) -> Iterator[Route]:
    for file in tree.suffixed("routes.rb"):
        yield from _file(file, without_comments(tree.text(file), "ruby").split("\n"))
    for file in tree.suffixed(".rb"):
        if "/config/routes/" in f"/{file}":
            yield from _file(file, without_comments(tree.text(file), "ruby").split("\n"))


def _file(file: str, lines: list[str]) -> Iterator[Route]:
    blocks: list[Block] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        opens = bool(re.search(r"\bdo\b(?:\s*\|[^|]{0,60}\|)?\s*$", text))
        prefix = join(*(block.path for block in blocks))
        module = "/".join(block.module for block in blocks if block.module)
        block = Block("", "")
        if match := re.match(rf"namespace\s+{_NAME}", text):
            block = Block(_option(text, "path") or match[1], match[1])
        elif re.match(r"scope\b", text):
            first = re.match(rf"scope\s*\(?{_NAME}\s*(?:,|\)|do|$)", text)
            block = Block(
                _option(text, "path") or (first[1] if first else ""), _option(text, "module") or ""
            )
        elif match := re.match(r"(resources?)\s*\(?((?:[:\"'][\w-]{1,80}[\"']?\s*,?\s*)+)", text):
            plural = match[1] == "resources"
            for name in re.findall(r"[\w-]+", match[2]):
                controller = _option(text, "controller") or (name if plural else f"{name}s")
                own = _option(text, "path") or name
                yield Route(
                    "REST",
                    join(prefix, own),
                    _actions(text, f"{module}/{controller}".strip("/"), plural),
                    file,
                    number,
                    "Rails",
                )
                singular = name.removesuffix("s") if plural else name
                block = Block(f"{own}/:{singular}_id" if plural else own, "", own, plural)
        elif match := re.match(r"(member|collection)\b", text):
            block = _inside(blocks, match[1] == "member")
        elif match := re.match(
            rf"(get|post|put|patch|delete|match|root)\b[\s(]*(?:to:\s*)?{_NAME}", text
        ):
            yield _single(match, text, _placed(blocks, text), module, file, number)
        elif match := re.match(
            r"mount\s+([\w:.]{1,80}).{0,40}?(?:=>|at:)\s*[\"']([^\"'\n]{1,120})", text
        ):
            yield Route("", join(prefix, match[2]), match[1], file, number, "Rails")
        elif match := re.match(r"devise_for\s+:(\w{1,60})", text):
            yield Route("REST", join(prefix, match[1]), "devise", file, number, "Rails")
        if opens:
            blocks.append(block)
            if len(blocks) > DEEPEST:
                return
        elif re.match(r"end\b", text) and blocks:
            left = blocks.pop()
            blocks[-1:] = [block._replace(path=left.hidden or block.path) for block in blocks[-1:]]


def _option(text: str, name: str) -> str:
    match = re.search(rf"\b{name}:\s*[:\"']([\w/-]{{0,80}})", text)
    return match[1] if match else ""


def _actions(text: str, controller: str, plural: bool) -> str:
    only = re.search(r"\bonly:\s*(\[[^\]]{0,200}\]|:\w{1,20}|%i\[[^\]]{0,200}\])", text)
    other = re.search(r"\bexcept:\s*(\[[^\]]{0,200}\]|:\w{1,20}|%i\[[^\]]{0,200}\])", text)
    actions = [action for action in _ACTIONS if plural or action != "index"]
    if only:
        actions = [action for action in actions if action in re.findall(r"\w+", only[1])]
    elif other:
        actions = [action for action in actions if action not in re.findall(r"\w+", other[1])]
    elif len(actions) >= 6:
        return f"{controller}#all actions"
    return f"{controller}#{', '.join(actions)}"


def _inside(blocks: list[Block], member: bool) -> Block:
    """`member do` keeps the id, `collection do` leaves it out: told by replacing the block of the resource."""
    if blocks and blocks[-1].resource:
        own = blocks[-1]
        blocks[-1] = own._replace(
            path=f"{own.resource}/:id" if member and own.plural else own.resource
        )
        return Block("", "", hidden=own.path)
    return Block("", "")


def _placed(blocks: list[Block], text: str) -> str:
    """Where a single route stands: directly in a resource it needs `on:` to be anything but nested."""
    on = re.search(r"\bon:\s*:(member|collection)", text)
    if on and blocks and blocks[-1].resource:
        own = blocks[-1].resource
        return join(
            *(block.path for block in blocks[:-1]), f"{own}/:id" if on[1] == "member" else own
        )
    return join(*(block.path for block in blocks))


def _single(
    match: re.Match[str], text: str, prefix: str, module: str, file: str, number: int
) -> Route:
    verb, path = match[1], match[2]
    to = re.search(r"(?:\bto:|=>)\s*[\"']([\w/#-]{1,120})", text)
    if verb == "root":
        return Route("GET", prefix, match[2], file, number, "Rails")
    via = re.search(r"\bvia:\s*(\[[^\]]{0,100}\]|:\w{1,10})", text)
    method = (
        ", ".join(re.findall(r"\w+", via[1])).upper()
        if verb == "match" and via
        else "ANY"
        if verb == "match"
        else verb.upper()
    )
    handler = to[1] if to else path.strip("/").replace("/", "#", 1)
    return Route(
        method,
        join(prefix, path),
        f"{module}/{handler}".strip("/") if module and to else handler,
        file,
        number,
        "Rails",
    )
