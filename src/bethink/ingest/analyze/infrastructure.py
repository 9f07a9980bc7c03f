"""What runs where: pinned runtimes, container images, composed services, Kubernetes, Helm and Terraform.

Only what a file says in plain sight. Values of environment variables are never read: they are where passwords stand.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from bethink.ingest.analyze.formats import merged, read_yaml, string, strings, table
from bethink.ingest.analyze.prose import clip, code, listed, unique
from bethink.ingest.analyze.tree import Finding, Tree, Unreadable, finding, folder_of, line_of
from bethink.types import Entity

MOST_IMAGES, MOST_COMPOSED, MOST_CLUSTERS = 4, 3, 3
_PINNED = {
    ".nvmrc": "Node.js",
    ".node-version": "Node.js",
    ".python-version": "Python",
    ".ruby-version": "Ruby",
    ".java-version": "Java",
}
_CLUSTER = re.compile(
    r"(?i)(?:^|/)(?:k8s|kubernetes|kube|deploy(?:ment)?s?|manifests|overlays|base|argocd|helm|charts?|infra)/"
)


def analyze(tree: Tree) -> Iterator[Finding]:
    yield from _pinned(tree)
    yield from _images(tree)
    yield from _composed(tree)
    yield from _cluster(tree)
    yield from _terraform(tree)


def _pinned(tree: Tree) -> Iterator[Finding]:
    for path in tree.paths:
        if (
            path in _PINNED
            and (version := tree.text(path).strip())
            and re.fullmatch(r"[\w./*-]{1,30}", version)
        ):
            yield finding(
                path,
                1,
                "fact",
                "runtime",
                f"{_PINNED[path]} is pinned to version {version} in {path}.",
                importance=4.5,
                confidence=1.0,
            )
        elif path == ".tool-versions":
            pins = [
                match.groups()
                for line in tree.lines(path)
                if (match := re.match(r"([\w-]{1,40})\s+([\w.:-]{1,40})", line))
            ]
            if pins:
                told = listed([f"{name} {version}" for name, version in pins[:20]])
                yield finding(
                    path,
                    (1, len(pins)),
                    "fact",
                    "runtime",
                    f"Tool versions are pinned in {path}: {told}.",
                    importance=4.5,
                    confidence=1.0,
                )


def _images(tree: Tree) -> Iterator[Finding]:
    paths = [
        path
        for path in tree.named("dockerfile", "dockerfile.*", "*.dockerfile", "containerfile")
        if not path.endswith((".md", ".dockerignore"))
    ]
    for path in paths[:MOST_IMAGES]:
        steps = list(_steps(tree.lines(path)))
        bases = [(line, value.split()) for line, word, value in steps if word == "FROM" and value]
        if not bases:
            continue
        stages = {parts[-1] for _, parts in bases if len(parts) > 2}
        images = unique(
            parts[0]
            for _, parts in bases
            if parts[0] not in stages and not parts[0].startswith("-")
        )
        start = [(line, value) for line, word, value in steps if word in ("CMD", "ENTRYPOINT")]
        ports = unique(
            port for _, word, value in steps if word == "EXPOSE" for port in value.split()
        )
        if not start and not ports:
            continue  # that there is an image is no news
        place = (
            f"The container image of {folder_of(path)}/" if "/" in path else "The container image"
        )
        pieces = [
            f"{place} ({path}) is based on {listed([image[:60] for image in images], 4)}"
            + (f" in {len(bases)} stages" if len(bases) > 1 else "")
        ]
        pieces += [f"exposes port {listed(ports, 4)}"] if ports else []
        pieces += (
            [f"starts {code(' '.join(_command(value) for _, value in start[-2:]))}"]
            if start
            else []
        )
        lines = (bases[0][0], max([line for line, _ in start] or [bases[-1][0]]))
        yield finding(
            path,
            lines,
            "architecture",
            "container",
            listed(pieces) + ".",
            importance=5,
            entities=[Entity("Docker", "technology")],
        )


def _steps(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """The instructions of a Dockerfile; a line that ends with a backslash goes on."""
    held, begin = "", 0
    for number, line in enumerate(lines[:2_000], 1):
        if not held:
            begin = number
        if not line.lstrip().startswith("#"):
            held += line.strip()
        if held.endswith("\\"):
            held = held[:-1] + " "
            continue
        word, _, value = held.partition(" ")
        if word.isalpha():
            yield (
                begin,
                word.upper(),
                re.sub(r"--\w+=\S+\s*", "", value).strip()
                if word.upper() == "FROM"
                else value.strip(),
            )
        held = ""


def _command(value: str) -> str:
    try:
        parts = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return " ".join(strings(parts)) or value


def _composed(tree: Tree) -> Iterator[Finding]:
    for path in list(tree.named("docker-compose*.y*ml", "compose.y*ml", "compose.*.y*ml"))[
        :MOST_COMPOSED
    ]:
        services = composed(tree, path)
        if not services:
            continue
        lines = tree.lines(path)
        told = [_service(name, service) for name, service in services.items()]
        first = line_of(lines, "services:")
        yield finding(
            path,
            (first, max(line_of(lines, f"{name}:", first) for name in services)),
            "architecture",
            "services",
            f"{path} runs {len(services)} service{'s' if len(services) > 1 else ''}: {'; '.join(told[:14])}.",
            importance=6.5,
            confidence=1.0,
            entities=[
                Entity("Docker Compose", "technology"),
                *(Entity(name, "concept") for name in list(services)[:8]),
            ],
        )


def composed(tree: Tree, path: str) -> dict[str, dict[str, Any]]:
    """The services of a compose file by name."""
    documents = tree.parse(path, read_yaml)
    services = table(documents[0], "services") if documents else {}
    return {
        name: merged(service)
        for name, service in services.items()
        if isinstance(name, str) and isinstance(service, dict)
    }


def _service(name: str, service: dict[str, Any]) -> str:
    build = service.get("build")
    context = string(build) or string(table(build).get("context"))
    image = string(service.get("image"))
    about = [
        f"built from {context}" if context else "",
        image[:60] if image and not context else "",
    ]
    ports = strings(service.get("ports"))
    about += [f"port {', '.join(port[:24] for port in ports[:3])}"] if ports else []
    needs = service.get("depends_on")
    needed = strings(needs) or (list(needs) if isinstance(needs, dict) else [])
    about += [f"needs {', '.join(map(str, needed[:5]))}"] if needed else []
    return f"{name} ({', '.join(filter(None, about))})" if any(about) else name


def _cluster(tree: Tree) -> Iterator[Finding]:
    charts = list(tree.named("chart.yaml"))[:MOST_CLUSTERS]
    for path in charts:
        documents = tree.parse(path, read_yaml)
        chart = table(documents[0]) if documents else {}
        if string(chart.get("name")):
            about = (
                f": {clip(string(chart.get('description')), 200)}"
                if string(chart.get("description"))
                else ""
            )
            needs = [
                string(table(item).get("name"))
                for item in chart.get("dependencies", [])
                if isinstance(item, dict)
            ]
            more = f" It depends on {listed(needs, 6)}." if needs else ""
            content = f"A Helm chart in {folder_of(path) or 'the root'} deploys {string(chart['name'])}{about.rstrip('.')}.{more}"
            yield finding(
                path,
                1,
                "architecture",
                "deploy",
                content,
                importance=5.5,
                entities=[Entity("Helm", "technology")],
            )
    folders: dict[str, list[tuple[str, str]]] = {}
    for path in tree.suffixed(".yaml", ".yml"):
        text = tree.text(path) if _CLUSTER.search(path) and len(folders) < 20 else ""
        if "apiVersion:" not in text or "kind:" not in text or "{{" in text or path in charts:
            continue
        try:
            objects = read_yaml(text)
        except Unreadable:
            continue  # a template of one of a dozen languages, more often than a mistake
        if shown := [(path, told) for item in objects[:40] if (told := _object(item))]:
            folders.setdefault(folder_of(path), []).extend(shown)
    for folder, objects in list(folders.items())[:MOST_CLUSTERS]:
        content = (
            f"Kubernetes objects in {folder}/: {listed(unique(item for _, item in objects), 14)}."
        )
        path = objects[0][0]
        yield finding(
            path,
            line_of(tree.lines(path), "kind:"),
            "architecture",
            "deploy",
            content,
            importance=5.5,
            entities=[Entity("Kubernetes", "technology")],
        )


def _object(value: Any) -> str:
    item = table(value)
    kind, name = string(item.get("kind")), string(table(item, "metadata").get("name"))
    if not kind or not name or kind in ("Kustomization", "Namespace", "List"):
        return ""
    containers = table(item, "spec", "template", "spec").get("containers")
    images = (
        [string(table(one).get("image")) for one in containers if isinstance(one, dict)]
        if isinstance(containers, list)
        else []
    )
    replicas = string(table(item, "spec").get("replicas"))
    about = [image[:60] for image in images[:2] if image] + (
        [f"{replicas} replicas"] if replicas else []
    )
    return f"{kind} {name}" + (f" ({', '.join(about)})" if about else "")


def _terraform(tree: Tree) -> Iterator[Finding]:
    counted: dict[str, Counter[str]] = {}
    places: dict[str, tuple[str, int]] = {}
    for path in list(tree.suffixed(".tf"))[:200]:
        for number, text in enumerate(tree.lines(path), 1):
            if match := re.match(r'resource\s+"([\w-]{1,80})"', text):
                folder = folder_of(path).split("/")[0]
                counted.setdefault(folder, Counter())[match[1]] += 1
                places.setdefault(folder, (path, number))
    for folder, counts in list(counted.items())[:2]:
        told = listed(
            [f"{name} × {count}" if count > 1 else name for name, count in counts.most_common(10)],
            10,
        )
        path, line = places[folder]
        content = (
            f"Terraform in {folder or 'the root'} manages {sum(counts.values())} resources: {told}."
        )
        yield finding(
            path,
            line,
            "architecture",
            "deploy",
            content,
            importance=5.5,
            entities=[Entity("Terraform", "technology")],
        )
