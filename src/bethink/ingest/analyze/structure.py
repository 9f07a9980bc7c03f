"""How a project is put together and what runs where: pinned runtimes, container images, services, clusters, and what its layout
gives away.

Of infrastructure only what a file says in plain sight; values of environment variables are never read, they are where passwords
stand. Names of folders are conventions, not proof: confidence in a pattern stays between .6 and .8, and each text says what it
concludes from. A pattern that the documents state is told by `pages`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bethink.ingest.analyze.manifests import choice_of, manifests
from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    Unreadable,
    clip,
    code,
    finding,
    folder_of,
    line_of,
    listed,
    load_table,
    merged,
    name_of,
    read_one_yaml,
    read_toml,
    read_yaml,
    string,
    strings,
    table,
    unique,
)
from bethink.types import Entity

MOST_IMAGES, MOST_COMPOSED, MOST_CLUSTERS, MOST_PATTERNS = 4, 3, 3, 8  # set by hand
COMPOSE = ("docker-compose*.y*ml", "compose.y*ml", "compose.*.y*ml")


def analyze(tree: Tree) -> Iterator[Finding]:
    for finder in (_pinned_runtimes, _images, _composed_services, _charts, _clusters, _terraform):
        yield from finder(tree)
    patterns = (
        _monorepo,
        _separate_services,
        _layers,
        _features,
        _events,
        _plugins,
        _serverless,
        _migrations,
        _server_and_interface,
        _tests,
    )
    yield from [made for finder in patterns for made in finder(tree)][:MOST_PATTERNS]


# What runs where


def _pinned_runtimes(tree: Tree) -> Iterator[Finding]:
    pinned: Mapping[str, str] = load_table("structure")["pinned"]
    for path in tree.paths:
        told, last = "", 1
        version = tree.text(path).strip() if path in pinned else ""
        if re.fullmatch(r"[\w./*-]{1,30}", version):
            told = f"{pinned[path]} is pinned to version {version} in {path}."
        elif path == ".tool-versions":
            pins = re.findall(r"(?m)^([\w-]{1,40})[ \t]+([\w.:-]{1,40})", tree.text(path))
            last = max(len(pins), 1)
            shown = listed([f"{name} {version}" for name, version in pins[:20]])
            told = f"Tool versions are pinned in {path}: {shown}." if pins else ""
        if told:
            yield finding(path, (1, last), "fact", "runtime", told, importance=4.5, confidence=1.0)


def _images(tree: Tree) -> Iterator[Finding]:
    paths = tree.named("dockerfile", "dockerfile.*", "*.dockerfile", "containerfile")
    for path in [path for path in paths if not path.endswith((".md", "ignore"))][:MOST_IMAGES]:
        steps = list(_docker_steps(tree.lines(path)))
        bases = [(line, value.split()) for line, word, value in steps if word == "FROM" and value]
        stages = {parts[-1] for _, parts in bases if len(parts) > 2}
        images = unique(parts[0][:60] for _, parts in bases if parts[0] not in stages)
        start = [(line, value) for line, word, value in steps if word in ("CMD", "ENTRYPOINT")]
        ports = unique(
            port for _, word, value in steps if word == "EXPOSE" for port in value.split()
        )
        if not bases or not (start or ports):
            continue  # that there is an image is no news
        of = f" of {folder_of(path)}/" if "/" in path else ""
        in_stages = f" in {len(bases)} stages" if len(bases) > 1 else ""
        pieces = [f"The container image{of} ({path}) is based on {listed(images, 4)}{in_stages}"]
        pieces += [f"exposes port {listed(ports, 4)}"] if ports else []
        if start:
            pieces.append(f"starts {code(' '.join(_command(value) for _, value in start[-2:]))}")
        yield finding(
            path,
            (bases[0][0], max([line for line, _ in start] or [bases[-1][0]])),
            "architecture",
            "container",
            f"{listed(pieces)}.",
            importance=5,
            entities=[Entity("Docker", "technology")],
        )


def _docker_steps(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """The instructions of a Dockerfile; a line that ends with a backslash goes on."""
    held, begin = "", 0
    for number, line in enumerate(lines[:2_000], 1):
        begin = begin if held else number
        held += "" if line.lstrip().startswith("#") else line.strip()
        if held.endswith("\\"):
            held = held[:-1] + " "
            continue
        word, _, value = held.partition(" ")
        if word.isalpha():
            yield begin, word.upper(), re.sub(r"^--\w{1,40}=\S{1,200}\s{1,20}", "", value).strip()
        held = ""


def _command(value: str) -> str:
    try:
        return " ".join(strings(json.loads(value))) or value
    except (ValueError, RecursionError):
        return value


def composed_services(tree: Tree, path: str) -> dict[str, dict[str, Any]]:
    """The services of a compose file by name."""
    services = table(tree.parse(path, read_one_yaml), "services")
    return {
        name: merged(service)
        for name, service in services.items()
        if isinstance(name, str) and isinstance(service, dict)
    }


def _composed_services(tree: Tree) -> Iterator[Finding]:
    for path in list(tree.named(*COMPOSE))[:MOST_COMPOSED]:
        services = composed_services(tree, path)
        if not services:
            continue
        lines = tree.lines(path)
        first = line_of(lines, "services:")
        told = [_service(name, service) for name, service in services.items()]
        count = f"{len(services)} service{'s' if len(services) > 1 else ''}"
        yield finding(
            path,
            (first, max(line_of(lines, f"{name}:", first) for name in services)),
            "architecture",
            "services",
            f"{path} runs {count}: {'; '.join(told[:14])}.",
            importance=6.5,
            confidence=1.0,
            entities=[
                Entity("Docker Compose", "technology"),
                *(Entity(name, "concept") for name in list(services)[:8]),
            ],
        )


def _service(name: str, service: Mapping[str, Any]) -> str:
    build, needs = service.get("build"), service.get("depends_on")
    context = string(build) or string(table(build).get("context"))
    needed = strings(needs) or [str(one) for one in table(needs)]
    ports = ", ".join(port[:24] for port in strings(service.get("ports"))[:3])
    about = [
        f"built from {context}" if context else string(service.get("image"))[:60],
        f"port {ports}" if ports else "",
        f"needs {', '.join(needed[:5])}" if needed else "",
    ]
    return f"{name} ({', '.join(filter(None, about))})" if any(about) else name


def _deployed(path: str, line: int, content: str, technology: str) -> Finding:
    entities = [Entity(technology, "technology")]
    return finding(path, line, "architecture", "deploy", content, importance=5.5, entities=entities)


def _charts(tree: Tree) -> Iterator[Finding]:
    for path in list(tree.named("chart.yaml"))[:MOST_CLUSTERS]:
        chart = tree.parse(path, read_one_yaml) or {}
        name, about = string(chart.get("name")), clip(string(chart.get("description")), 200)
        items = chart.get("dependencies")
        needs = (
            unique(string(table(item).get("name")) for item in items)
            if isinstance(items, list)
            else []
        )
        if name:
            more = f" It depends on {listed(needs, 6)}." if needs else ""
            told = f"{name}{f': {about}' if about else ''}".rstrip(".")
            content = f"A Helm chart in {folder_of(path) or 'the root'} deploys {told}.{more}"
            yield _deployed(path, 1, content, "Helm")


def _clusters(tree: Tree) -> Iterator[Finding]:
    places = re.compile(load_table("structure")["clusters"])
    folders: dict[str, list[tuple[str, str]]] = {}
    for path in tree.suffixed(".yaml", ".yml"):
        text = tree.text(path) if places.search(path.lower()) and len(folders) < 20 else ""
        if "apiVersion:" not in text or "kind:" not in text or "{{" in text:
            continue
        try:
            objects = read_yaml(text)
        except Unreadable:
            continue  # a template of one of a dozen languages, more often than a mistake
        if shown := [(path, told) for item in objects[:40] if (told := _object(item))]:
            folders.setdefault(folder_of(path), []).extend(shown)
    for folder, found in list(folders.items())[:MOST_CLUSTERS]:
        path = found[0][0]
        content = (
            f"Kubernetes objects in {folder}/: {listed(unique(item for _, item in found), 14)}."
        )
        yield _deployed(path, line_of(tree.lines(path), "kind:"), content, "Kubernetes")


def _object(value: Any) -> str:
    item = table(value)
    kind, name = string(item.get("kind")), string(table(item, "metadata").get("name"))
    if not kind or not name or kind in ("Kustomization", "Namespace", "List"):
        return ""
    containers = table(item, "spec", "template", "spec").get("containers")
    images = [
        string(table(one).get("image"))[:60]
        for one in (containers if isinstance(containers, list) else [])[:2]
    ]
    replicas = string(table(item, "spec").get("replicas"))
    about = [*filter(None, images), *([f"{replicas} replicas"] if replicas else [])]
    return f"{kind} {name}" + (f" ({', '.join(about)})" if about else "")


def _terraform(tree: Tree) -> Iterator[Finding]:
    counted: dict[str, Counter[str]] = {}
    places: dict[str, tuple[str, int]] = {}
    for path in list(tree.suffixed(".tf"))[:200]:
        for number, text in enumerate(tree.lines(path), 1):
            if match := re.match(r'resource\s+"([\w-]{1,80})"', text):
                folder = path.partition("/")[0] if "/" in path else ""
                counted.setdefault(folder, Counter())[match[1]] += 1
                places.setdefault(folder, (path, number))
    for folder, counts in list(counted.items())[:2]:
        shown = [
            f"{name} × {count}" if count > 1 else name for name, count in counts.most_common(10)
        ]
        total = sum(counts.values())
        content = (
            f"Terraform in {folder or 'the root'} manages {total} resources: {listed(shown, 10)}."
        )
        yield _deployed(*places[folder], content, "Terraform")


# What the layout gives away


def _pattern(
    tree: Tree,
    content: str,
    confidence: float,
    *,
    below: str = "",
    path: str = "",
    needle: str = "",
    kind: str = "architecture",
    technologies: Sequence[str] = (),
) -> Finding:
    """A pattern, cited to a file, or to the first one below the folder that shows it."""
    inside = f"{below}/" if below else ""
    cited = path or next((own for own in tree.paths if own.startswith(inside)), tree.paths[0])
    return finding(
        cited,
        line_of(tree.lines(cited), needle) if needle else 1,
        kind,
        "pattern",
        content,
        importance=6,
        confidence=confidence,
        section="Structure",
        entities=[Entity(name, "technology") for name in technologies],
    )


def _monorepo(tree: Tree) -> Iterator[Finding]:
    for manifest in manifests(tree):
        if manifest.members and "/" not in manifest.path:
            members = listed(manifest.members, 10)
            content = f"This is a monorepo: {manifest.path} declares a workspace of {members}."
            yield _pattern(tree, content, 0.8, path=manifest.path, needle=manifest.members[0])
            return
    for parent in load_table("structure")["workspaces"].split():
        own = re.compile(rf"{parent}/([^/]+)/[^/]+")
        found = (own.fullmatch(manifest.path) for manifest in manifests(tree))
        names = unique(match[1] for match in found if match)
        if len(names) >= 3:
            why = f"{parent}/ has {len(names)} folders with a manifest of their own: {listed(names, 10)}"
            yield _pattern(tree, f"This is a monorepo, because {why}.", 0.7, below=parent)
            return


def _separate_services(tree: Tree) -> Iterator[Finding]:
    lead = "The system runs as separate services, because"
    for path in tree.named(*COMPOSE):
        services = composed_services(tree, path)
        built = [name for name, service in services.items() if service.get("build")]
        if len(built) > 2:
            why = f"{path} builds {len(built)} of its own: {listed(built, 10)}"
            yield _pattern(tree, f"{lead} {why}.", 0.7, path=path, needle=f"{built[0]}:")
            return
    images = [path for path in tree.named("dockerfile") if "/" in path]
    if len(images) > 2:
        shown = listed([folder_of(path) for path in images], 8)
        yield _pattern(tree, f"{lead} {shown} each have a Dockerfile.", 0.65, path=images[0])


def _layers(tree: Tree) -> Iterator[Finding]:
    """What the two shallowest telling folders show: the first row of the table whose groups all have a folder in it."""
    made = 0
    for folder, names in sorted(
        tree.folders.items(), key=lambda item: (item[0].count("/"), item[0])
    ):
        inside = {name.rstrip("/").lower() for name in names if name.endswith("/")}
        for row in load_table("structure")["layers"]:
            groups = [
                [name for name in group.split() if name in inside] for group in row["folders"]
            ]
            if all(groups) and made < 2:
                made += 1
                shown = [f"{group[0]}/" for group in groups]
                where = f"{folder}/" if folder else "the top folder"
                content = f"The code follows {row['pattern']}, because {where} has {listed(shown)}."
                below = f"{folder}/{shown[0]}".strip("/")
                yield _pattern(tree, content, row["confidence"], below=below)
                break


def _features(tree: Tree) -> Iterator[Finding]:
    """Folders that repeat the same roles are features; Django calls them apps."""
    if any(name_of(path) == "manage.py" for path in tree.paths):
        roles = ("apps.py", "views.py", "admin.py")
        homes = [folder_of(path) for path in tree.named("models.py")]
        apps = [home for home in homes if any(f"{home}/{role}" in tree for role in roles)]
        if len(apps) > 1:
            content = f"The Django project is divided into the apps {listed(unique(apps), 12)}."
            yield _pattern(tree, content, 0.8, below=apps[0], technologies=["Django"])
            return
    rows = load_table("structure")["features"]
    role = re.compile(rows["role"])
    for folder, names in tree.folders.items():
        parts = [name for name in names if name.endswith("/")]
        if name_of(folder).lower() not in rows["folders"].split() or len(parts) < 3:
            continue
        counts: Counter[str] = Counter()
        for part in parts:
            below = tree.folders.get(f"{folder}/{part.rstrip('/')}", ())
            counts.update({match[1] for name in below if (match := role.search(name))})
        least = max(3, len(parts) / 2)
        shared = [name for name, count in counts.most_common(4) if count >= least]
        if len(shared) >= 2:
            has = f"{folder}/ has {listed(parts, 10)}, most with their own {listed(shared)}"
            yield _pattern(tree, f"The code is organised by feature: {has}.", 0.75, below=folder)
            return


def _events(tree: Tree) -> Iterator[Finding]:
    queues = [
        (choice_of(item.name)[1], manifest.path, item.name)
        for manifest in manifests(tree)
        for item in manifest.runtime
        if choice_of(item.name)[0] == "queue"
    ]
    rows = load_table("structure")["events"]
    folders = [
        f"{folder}/"
        for folder in tree.folders
        if name_of(folder).lower() in rows["folders"].split()
    ]
    places = folders + list(tree.named(*rows["files"].split()))[:4]
    if queues and places:
        label, path, name = queues[0]
        why = f"{path} asks for {label} and the code has {listed(places, 6)}"
        content = f"Parts of the system talk through events or background jobs, because {why}."
        technology = label.partition(" (")[0]
        yield _pattern(tree, content, 0.7, path=path, needle=name, technologies=[technology])


def _plugins(tree: Tree) -> Iterator[Finding]:
    for path in tree.named("pyproject.toml"):
        points = table(tree.parse(path, read_toml), "project", "entry-points")
        groups = [name for name in points if not name.startswith(("console", "gui"))]
        if groups:
            content = f"It takes part in a plugin system: {path} declares the entry points {listed(groups, 6)}."
            yield _pattern(tree, content, 0.8, path=path, needle="entry-points")
            return
    loads = re.compile(r"\bentry_points\(\s*+(?:group\s*+=\s*+)?[\"']([\w.-]{2,80})[\"']")
    for path in tree.suffixed(".py"):
        if match := loads.search(tree.text(path)) if "entry_points(" in tree.text(path) else None:
            line = tree.text(path).count("\n", 0, match.start()) + 1
            content = f"It loads plugins from the entry point group {match[1]} ({path}:{line})."
            yield _pattern(tree, content, 0.75, path=path, needle=match[0])
            return
    for folder, names in tree.folders.items():
        if name_of(folder).lower() in ("plugins", "extensions") and len(names) >= 3:
            holds = listed([name.rstrip("/") for name in names], 10)
            content = f"It has a plugin system, because {folder}/ holds {holds}."
            yield _pattern(tree, content, 0.6, below=folder)
            return


def _serverless(tree: Tree) -> Iterator[Finding]:
    services: Mapping[str, str] = load_table("structure")["serverless"]
    for path in tree.named(*services):
        service, functions = (
            next(name for file, name in services.items() if file.partition(".")[0] in path.lower()),
            [],
        )
        if path.endswith((".yml", ".yaml")):
            value = tree.parse(path, read_one_yaml) or {}
            functions = [str(name) for name in table(value, "functions")]
            if not functions:
                continue
            service += f" on {string(table(value, 'provider').get('name')) or 'a cloud'}"
        more = f" with the functions {listed(functions, 10)}" if functions else ""
        content = f"It is deployed without servers of its own: {path} sets up {service}{more}."
        yield _pattern(tree, content, 0.75, path=path)
        return


def _migrations(tree: Tree) -> Iterator[Finding]:
    """Where changes of the database schema go, and which is the newest."""
    pattern = re.compile(load_table("structure")["migrations"])
    places: dict[str, list[str]] = {}
    for path in tree.paths:
        if (match := pattern.match(path)) and not match[2].startswith("__"):
            places.setdefault(match[1], []).append(path)
    for folder, paths in sorted(places.items(), key=lambda item: -len(item[1]))[:2]:
        newest = max(paths)
        so_far = f"{len(paths)} so far, the newest is {newest.removeprefix(folder + '/')}"
        content = f"The database schema changes by migrations in {folder}/ ({so_far})."
        yield _pattern(tree, content, 0.8, path=newest, kind="pattern")


def _server_and_interface(tree: Tree) -> Iterator[Finding]:
    owners = {folder_of(manifest.path): manifest for manifest in manifests(tree)}
    rows = load_table("structure")["sides"]
    for back in rows["server"].split():
        for front in rows["interface"].split():
            if back in owners and front in owners:
                both = " and ".join(f"{side}/ ({owners[side].language})" for side in (back, front))
                content = (
                    f"Server and user interface are apart: {both}, each with its own manifest."
                )
                yield _pattern(tree, content, 0.8, path=owners[back].path)
                return


def _tests(tree: Tree) -> Iterator[Finding]:
    rows = load_table("structure")["tests"]
    foreign = re.compile(r"(?:^|/)(?:vendor|node_modules|third_party)/")
    test = re.compile("|".join(rows["files"]))
    found = [path for path in tree.paths if test.search(path) and not foreign.search(path)]
    if len(found) < 3:
        return
    matches = (re.match(r"(?:.*?/)?(?:tests?|spec|__tests__|e2e)(?=/)", path) for path in found)
    roots = Counter(match[0] for match in matches if match)
    ending = re.compile(r"(?:\.(?:test|spec)\.\w+|_test\.\w+|_spec\.rb|Tests?\.\w+)$")
    shapes = Counter(
        f"*{match[0]}" if (match := ending.search(path)) else "test_*.py" for path in found
    )
    shape, first = shapes.most_common(1)[0][0], found[0]
    if roots and sum(roots.values()) >= len(found) * 0.6:
        places = [f"{folder}/ ({count} files)" for folder, count in roots.most_common(4)]
        content = f"Tests live in {listed(places)}; their files are named {shape}."
        first = next(path for path in found if path.startswith(roots.most_common(1)[0][0]))
    else:
        content = f"Tests live beside the code they test, in {len(found)} files named {shape}, such as {first}."
    yield _pattern(tree, content, 0.8, path=first, kind="pattern")
