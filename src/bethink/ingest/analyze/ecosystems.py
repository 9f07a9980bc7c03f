"""Package manifests, one reader per format, all into the same `Manifest`. Knows the formats; what is notable about a
dependency, and how it is told, is for `manifests` to say."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from bethink.ingest.analyze.formats import (
    read_ini,
    read_json,
    read_python,
    read_toml,
    read_xml,
    read_yaml,
    string,
    strings,
    table,
)
from bethink.ingest.analyze.source import without_comments
from bethink.ingest.analyze.tree import Tree, line_of

MOST_DEPENDENCIES = 400
_NAME = re.compile(r"[A-Za-z0-9@][\w.@/+-]{0,120}")
_BEGUN = re.compile(r"(?:^\s{0,40}|[\"'>:{(])([A-Za-z0-9@][\w.@/+-]{0,120})")


class Dependency(NamedTuple):
    name: str
    constraint: str
    line: int


class Manifest(NamedTuple):
    path: str
    language: str
    name: str = ""
    description: str = ""
    requires: str = ""  # of the language itself
    runtime: tuple[Dependency, ...] = ()
    development: tuple[Dependency, ...] = ()
    members: tuple[str, ...] = ()  # folders of a workspace, as written
    commands: tuple[str, ...] = ()  # what an installation puts on the path
    builder: str = ""


def manifests(tree: Tree) -> tuple[Manifest, ...]:
    """Every manifest that could be read, shallow ones first."""
    return tree.once(_manifests)


def _manifests(tree: Tree) -> tuple[Manifest, ...]:
    return tuple(_read(tree))


def _read(tree: Tree) -> Iterator[Manifest]:
    for path in tree.own:
        name = path.rsplit("/", 1)[-1]
        reader = next((reader for pattern, reader in READERS if re.fullmatch(pattern, name)), None)
        manifest = reader(tree, path) if reader else None
        if manifest and (
            manifest.runtime or manifest.development or manifest.name or manifest.members
        ):
            yield manifest


def _dependencies(lines: list[str], pairs: Iterable[tuple[str, str]]) -> tuple[Dependency, ...]:
    """Names and constraints with the line where each name first begins a line or a string, from the first list of dependencies on."""
    found: dict[str, Dependency] = {}
    start = line_of(lines, "ependencies") - 1
    places: dict[str, int] = {}
    for number, line in enumerate(lines[start : start + 4_000], start + 1):
        for match in _BEGUN.finditer(line[:2_000]):
            places.setdefault(match[1], number)
    for name, constraint in pairs:
        if len(found) < MOST_DEPENDENCIES and _NAME.fullmatch(name) and name not in found:
            found[name] = Dependency(
                name, " ".join(constraint.split())[:40], places.get(name, start + 1)
            )
    return tuple(found.values())


def _requirement(text: str) -> tuple[str, str]:
    """`uvicorn[standard]>=0.30; python_version > "3.8"` → its name and what it asks for."""
    text = re.split(r"\s#|;", text, maxsplit=1)[0].strip()
    match = re.match(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*+\(?([^@()]*)", text)
    return (match[1], match[2].strip()) if match else ("", "")


def _version(value: Any) -> str:
    return string(value) or string(table(value).get("version")) or ""


def _pyproject(tree: Tree, path: str) -> Manifest | None:
    value = tree.parse(path, read_toml)
    if value is None:
        return None
    lines = tree.lines(path)
    project, poetry = table(value, "project"), table(value, "tool", "poetry")
    groups = [
        *table(project, "optional-dependencies").items(),
        *table(value, "dependency-groups").items(),
    ]
    runtime = [_requirement(item) for item in strings(project.get("dependencies"))]
    runtime += [
        (name, _version(item))
        for name, item in table(poetry, "dependencies").items()
        if name != "python"
    ]
    development = [_requirement(item) for _, items in groups for item in strings(items)]
    poetry_groups = [table(group, "dependencies") for group in table(poetry, "group").values()] + [
        table(poetry, "dev-dependencies")
    ]
    development += [
        (name, _version(item)) for group in poetry_groups for name, item in group.items()
    ]
    return Manifest(
        path,
        "Python",
        string(project.get("name")) or string(poetry.get("name")),
        string(project.get("description")) or string(poetry.get("description")),
        string(project.get("requires-python"))
        or _version(table(poetry, "dependencies").get("python")),
        _dependencies(lines, runtime),
        _dependencies(lines, development),
        tuple(strings(table(value, "tool", "uv", "workspace").get("members"))),
        tuple(
            f"{name} ({target})"
            for name, target in (table(project, "scripts") | table(poetry, "scripts")).items()
            if isinstance(target, str)
        ),
        string(table(value, "build-system").get("build-backend")).partition(".")[0],
    )


def _setup_cfg(tree: Tree, path: str) -> Manifest | None:
    value = tree.parse(path, read_ini)
    if value is None:
        return None
    options, metadata = value.get("options", {}), value.get("metadata", {})
    runtime = [_requirement(line) for line in options.get("install_requires", "").splitlines()]
    development = [
        _requirement(line)
        for items in value.get("options.extras_require", {}).values()
        for line in items.splitlines()
    ]
    lines = tree.lines(path)
    return Manifest(
        path,
        "Python",
        string(metadata.get("name")),
        string(metadata.get("description")),
        string(options.get("python_requires")),
        _dependencies(lines, runtime),
        _dependencies(lines, development),
    )


def _setup_py(tree: Tree, path: str) -> Manifest | None:
    module = tree.parse(path, read_python)
    for node in ast.walk(module) if module else ():
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", "")) == "setup"
        ):
            given: dict[str, Any] = {}
            for keyword in node.keywords:
                try:
                    given[keyword.arg or ""] = ast.literal_eval(keyword.value)
                except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                    continue  # computed at run time
            extras = [
                item
                for items in table(given.get("extras_require")).values()
                for item in strings(items)
            ]
            lines = tree.lines(path)
            return Manifest(
                path,
                "Python",
                string(given.get("name")),
                string(given.get("description")),
                string(given.get("python_requires")),
                _dependencies(lines, map(_requirement, strings(given.get("install_requires")))),
                _dependencies(lines, map(_requirement, extras)),
            )
    return None


def _requirements(tree: Tree, path: str) -> Manifest | None:
    lines = tree.lines(path)
    items = [
        _requirement(line)
        for line in lines
        if re.match(r"[A-Za-z0-9]", line) and "://" not in line.partition("@")[0]
    ]
    found = _dependencies(lines, items)
    side = re.search(r"dev|test|lint|doc|ci|bench", path.rsplit("/", 1)[-1])
    return (
        Manifest(path, "Python", runtime=() if side else found, development=found if side else ())
        if found
        else None
    )


def _pipfile(tree: Tree, path: str) -> Manifest | None:
    value = tree.parse(path, read_toml)
    if value is None:
        return None
    lines = tree.lines(path)
    runtime, development = (
        _dependencies(
            lines, ((name, _version(item)) for name, item in table(value, section).items())
        )
        for section in ("packages", "dev-packages")
    )
    requires = string(table(value, "requires").get("python_version"))
    return Manifest(path, "Python", requires=requires, runtime=runtime, development=development)


def _package_json(tree: Tree, path: str) -> Manifest | None:
    value = tree.parse(path, read_json)
    if not isinstance(value, dict):
        return None
    lines = tree.lines(path)

    def section(name: str) -> tuple[Dependency, ...]:
        return _dependencies(
            lines, ((key, string(item)) for key, item in table(value, name).items())
        )

    workspaces = value.get("workspaces")
    bins = value.get("bin")
    manager = string(value.get("packageManager")).partition("+")[0]
    requires = [
        f"{name} {string(item)}" for name, item in table(value, "engines").items() if string(item)
    ]
    development = section("devDependencies")
    return Manifest(
        path,
        "TypeScript" if any(item.name == "typescript" for item in development) else "JavaScript",
        string(value.get("name")),
        string(value.get("description")),
        ", ".join([*requires, *([f"package manager {manager}"] if manager else [])])[:120],
        section("dependencies") or section("peerDependencies"),
        development,
        tuple(
            strings(
                table(workspaces).get("packages") if isinstance(workspaces, dict) else workspaces
            )
        ),
        tuple(bins)
        if isinstance(bins, dict)
        else (string(value.get("name")),)
        if isinstance(bins, str)
        else (),
    )


def _go_mod(tree: Tree, path: str) -> Manifest | None:
    module = version = ""
    direct: list[Dependency] = []
    for number, line in enumerate(tree.lines(path), 1):
        words = line[:300].split()
        if len(words) == 2 and words[0] == "module":
            module = words[1]
        elif len(words) == 2 and words[0] == "go":
            version = words[1]
        elif "// indirect" not in line and (
            match := re.match(
                r"(?:require)?\s++([\w.-]{1,120}/[\w./~-]{1,160})\s++(v\d[\w.+-]{0,60})", line[:300]
            )
        ):
            direct.append(Dependency(match[1], match[2], number))
    return Manifest(path, "Go", module, requires=version, runtime=tuple(direct[:MOST_DEPENDENCIES]))


def _cargo(tree: Tree, path: str) -> Manifest | None:
    value = tree.parse(path, read_toml)
    if value is None:
        return None
    lines = tree.lines(path)
    package = table(value, "package")
    runtime = table(value, "dependencies") or table(value, "workspace", "dependencies")
    development = table(value, "dev-dependencies") | table(value, "build-dependencies")
    return Manifest(
        path,
        "Rust",
        string(package.get("name")),
        string(package.get("description")),
        string(package.get("rust-version"))
        or (f"edition {string(package.get('edition'))}" if string(package.get("edition")) else ""),
        _dependencies(lines, ((name, _version(item)) for name, item in runtime.items())),
        _dependencies(lines, ((name, _version(item)) for name, item in development.items())),
        tuple(strings(table(value, "workspace").get("members"))),
    )


def _pom(tree: Tree, path: str) -> Manifest | None:
    root = tree.parse(path, read_xml)
    if root is None or root.tag != "project":
        return None

    def under(element: Element | None, name: str) -> str:
        return string(element.findtext(name, "") if element is not None else "")

    properties = root.find("properties")
    java = next(
        (
            found
            for name in ("java.version", "maven.compiler.release", "maven.compiler.source")
            if (found := under(properties, name))
        ),
        "",
    )
    pairs: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    parent = root.find("parent")
    if under(parent, "artifactId").startswith("spring-boot"):
        pairs[False].append((under(parent, "artifactId"), under(parent, "version")))
    for item in root.findall("dependencies/dependency")[:MOST_DEPENDENCIES]:
        version = under(item, "version")
        pairs[under(item, "scope") == "test"].append(
            (under(item, "artifactId"), "" if version.startswith("$") else version)
        )
    lines = tree.lines(path)
    return Manifest(
        path,
        "Java",
        under(root, "artifactId"),
        under(root, "description"),
        java,
        _dependencies(lines, pairs[False]),
        _dependencies(lines, pairs[True]),
        tuple(string(item.text) for item in root.findall("modules/module")[:60]),
        builder="Maven",
    )


def _gradle(tree: Tree, path: str) -> Manifest | None:
    text = without_comments(tree.text(path), "java")
    lines = text.split("\n")
    pairs: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for match in re.finditer(
        r"(?m)^[ \t]{0,40}(\w{0,40}(?:[iI]mplementation|[aA]pi|[cC]ompileOnly|[rR]untimeOnly|kapt|ksp))[ (]\s*+"
        r"\(?[\"']([\w.-]{1,120}):([\w.-]{1,120})(?::([\w.-]{1,60}))?",
        text,
    ):
        pairs["test" in match[1].lower()].append((match[3], match[4] or ""))
    plugins = [
        (match[1], match[2] or "")
        for match in re.finditer(
            r"\bid[ (]\s*+\(?[\"']([\w.-]{1,120})[\"']\)?(?:\s++version\s++[\"']([\w.-]{1,60}))?",
            text,
        )
    ]
    java = re.search(
        r"(?:languageVersion\D{0,60}|(?:source|target)Compatibility\D{0,40})(\d[\d.]*)", text
    )
    members = (
        re.findall(r"[\"'](:[\w:-]+)[\"']", text)
        if path.rsplit("/", 1)[-1].startswith("settings")
        else []
    )
    name = re.search(r"rootProject\.name\s*+=\s*+[\"']([\w.-]+)", text)
    return Manifest(
        path,
        "Kotlin" if path.endswith(".kts") or "kotlin" in text else "Java",
        name[1] if name else "",
        requires=java[1] if java else "",
        runtime=_dependencies(
            lines,
            [*pairs[False], *(plugin for plugin in plugins if "springframework" in plugin[0])],
        ),
        development=_dependencies(lines, pairs[True]),
        members=tuple(member.strip(":").replace(":", "/") for member in members),
        builder="Gradle",
    )


def _gemfile(tree: Tree, path: str) -> Manifest | None:
    lines = tree.lines(path)
    pairs: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    side = False
    for line in lines:
        if re.match(r"\s*+group\b", line):
            side = bool(re.search(r":(?:development|test)", line)) and not re.search(
                r":production", line
            )
        elif re.match(r"end\b", line):
            side = False
        elif gem := re.match(
            r"\s*+gem\s++[\"']([\w.-]+)[\"'](?:\s*+,\s*+[\"']([^\"']{1,40})[\"'])?", line
        ):
            pairs[side].append((gem[1], gem[2] or ""))
    ruby = next(
        (
            match[1]
            for line in lines
            if (match := re.match(r"\s*+ruby\s++[\"']([^\"']{1,40})", line))
        ),
        "",
    )
    return Manifest(
        path,
        "Ruby",
        requires=ruby,
        runtime=_dependencies(lines, pairs[False]),
        development=_dependencies(lines, pairs[True]),
    )


def _composer(tree: Tree, path: str) -> Manifest | None:
    value = tree.parse(path, read_json)
    if not isinstance(value, dict):
        return None
    lines = tree.lines(path)

    def section(name: str) -> tuple[Dependency, ...]:
        return _dependencies(
            lines, ((key, string(item)) for key, item in table(value, name).items() if "/" in key)
        )

    php = string(table(value, "require").get("php"))
    return Manifest(
        path,
        "PHP",
        string(value.get("name")),
        string(value.get("description")),
        php,
        section("require"),
        section("require-dev"),
    )


def _csproj(tree: Tree, path: str) -> Manifest | None:
    root = tree.parse(path, read_xml)
    if root is None:
        return None
    framework = next(
        (
            string(item.text)
            for item in root.iter()
            if item.tag in ("TargetFramework", "TargetFrameworks") and item.text
        ),
        "",
    )
    packages = [
        (item.get("Include", ""), item.get("Version", "")) for item in root.iter("PackageReference")
    ]
    if root.get("Sdk", "").endswith(".Web"):
        packages.append(("Microsoft.AspNetCore", ""))
    name = path.rsplit("/", 1)[-1].rpartition(".")[0]
    return Manifest(
        path, "C#", name, requires=framework, runtime=_dependencies(tree.lines(path), packages)
    )


def _mix(tree: Tree, path: str) -> Manifest | None:
    text = without_comments(tree.text(path), "hash")
    lines = text.split("\n")
    pairs: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for match in re.finditer(r"\{:(\w+),\s*+(?:\"([^\"]{1,40})\")?([^}\n]{0,200})\}", text):
        pairs["only:" in match[3]].append((match[1], match[2] or ""))
    app, elixir = (
        re.search(r"\bapp:\s*+:(\w+)", text),
        re.search(r"\belixir:\s*+\"([^\"]{1,40})", text),
    )
    return Manifest(
        path,
        "Elixir",
        app[1] if app else "",
        requires=elixir[1] if elixir else "",
        runtime=_dependencies(lines, pairs[False]),
        development=_dependencies(lines, pairs[True]),
    )


def _pubspec(tree: Tree, path: str) -> Manifest | None:
    documents = tree.parse(path, read_yaml)
    value: Mapping[str, Any] = table(documents[0]) if documents else {}
    lines = tree.lines(path)
    runtime, development = (
        _dependencies(lines, ((name, string(item)) for name, item in table(value, section).items()))
        for section in ("dependencies", "dev_dependencies")
    )
    requires = string(table(value, "environment").get("sdk"))
    return Manifest(
        path,
        "Dart",
        string(value.get("name")),
        string(value.get("description")),
        requires,
        runtime,
        development,
    )


def _pnpm(tree: Tree, path: str) -> Manifest | None:
    documents = tree.parse(path, read_yaml)
    members = strings(table(documents[0]).get("packages")) if documents else []
    return Manifest(path, "JavaScript", members=tuple(members)) if members else None


def _go_work(tree: Tree, path: str) -> Manifest | None:
    members = re.findall(
        r"(?m)^(?:use)?[ \t]{1,20}(\.{0,2}/?[\w./-]{1,200})[ \t]{0,20}$", tree.text(path)
    )
    return Manifest(path, "Go", members=tuple(members)) if members else None


READERS: tuple[tuple[str, Callable[[Tree, str], Manifest | None]], ...] = (
    (r"pyproject\.toml", _pyproject),
    (r"setup\.cfg", _setup_cfg),
    (r"setup\.py", _setup_py),
    (r"(?:requirements|dev-requirements)[\w.-]*\.(?:txt|in)", _requirements),
    (r"Pipfile", _pipfile),
    (r"package\.json", _package_json),
    (r"pnpm-workspace\.yaml", _pnpm),
    (r"go\.mod", _go_mod),
    (r"go\.work", _go_work),
    (r"Cargo\.toml", _cargo),
    (r"pom\.xml", _pom),
    (r"(?:build|settings)\.gradle(?:\.kts)?", _gradle),
    (r"Gemfile", _gemfile),
    (r"composer\.json", _composer),
    (r"[\w.-]+\.csproj", _csproj),
    (r"mix\.exs", _mix),
    (r"pubspec\.yaml", _pubspec),
)
