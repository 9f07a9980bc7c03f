"""How a project is put together, as far as its layout gives it away: every pattern with its evidence, none with certainty.

Names of folders are conventions, not proof, so confidence stays between .6 and .8 and each text says what it concludes
from. A pattern that the documents state is told by `pages`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from bethink.ingest.analyze.ecosystems import manifests
from bethink.ingest.analyze.formats import read_toml, read_yaml, string, table
from bethink.ingest.analyze.infrastructure import composed
from bethink.ingest.analyze.manifests import NOTABLE
from bethink.ingest.analyze.prose import listed, unique
from bethink.ingest.analyze.tree import Finding, Tree, finding, folder_of, line_of
from bethink.types import Entity

MOST = 8
_DOORS = (
    "controllers",
    "controller",
    "handlers",
    "handler",
    "routes",
    "routers",
    "endpoints",
    "api",
    "views",
    "resolvers",
    "web",
)
_SERVICES = ("services", "service", "usecases", "use_cases", "use-cases", "application")
_STORES = (
    "repositories",
    "repository",
    "repos",
    "dao",
    "daos",
    "persistence",
    "stores",
    "models",
    "entities",
    "gateways",
)
_TESTS = re.compile(
    r"(?:^|/)test_[^/]+\.py$|_test\.(?:py|go|rb|exs|dart)$|_spec\.rb$|\.(?:test|spec)\.[cm]?[jt]sx?$"
    r"|(?:Test|Tests|IT|Spec)\.(?:java|kt|cs|scala|swift)$|(?:^|/)tests/[^/]+\.rs$"
)


def analyze(tree: Tree) -> Iterator[Finding]:
    finders = (
        _monorepo,
        _services,
        _layers,
        _features,
        _events,
        _plugins,
        _serverless,
        _schema,
        _sides,
        _tests,
    )
    found = [made for finder in finders for made in finder(tree)]
    yield from found[:MOST]


def _made(
    tree: Tree,
    folder: str,
    content: str,
    confidence: float,
    *,
    line: int = 1,
    path: str = "",
    kind: str = "architecture",
    technologies: Sequence[str] = (),
) -> Finding:
    """A pattern, cited to the first file below the folder that shows it."""
    inside = f"{folder}/" if folder else ""
    cited = path or next((own for own in tree.paths if own.startswith(inside)), tree.paths[0])
    entities = [Entity(name, "technology") for name in technologies]
    return finding(
        cited,
        line,
        kind,
        "pattern",
        content,
        importance=6,
        confidence=confidence,
        section="Structure",
        entities=entities,
    )


def _monorepo(tree: Tree) -> Iterator[Finding]:
    for manifest in manifests(tree):
        if manifest.members and "/" not in manifest.path:
            line = line_of(tree.lines(manifest.path), manifest.members[0])
            content = f"This is a monorepo: {manifest.path} declares a workspace of {listed(manifest.members, 10)}."
            yield _made(tree, "", content, 0.8, path=manifest.path, line=line)
            return
    for parent in ("packages", "apps", "services", "libs", "modules", "crates"):
        members = unique(
            folder_of(manifest.path).split("/")[1]
            for manifest in manifests(tree)
            if re.match(rf"{parent}/[^/]+/[^/]+$", manifest.path)
        )
        if len(members) >= 3:
            content = f"This is a monorepo, because {parent}/ has {len(members)} folders with a manifest of their own: {listed(members, 10)}."
            yield _made(tree, parent, content, 0.7)
            return


def _services(tree: Tree) -> Iterator[Finding]:
    for path in tree.named("docker-compose*.y*ml", "compose.y*ml"):
        built = [name for name, service in composed(tree, path).items() if service.get("build")]
        if len(built) > 2:
            content = f"The system runs as separate services, because {path} builds {len(built)} of its own: {listed(built, 10)}."
            yield _made(
                tree, "", content, 0.7, path=path, line=line_of(tree.lines(path), f"{built[0]}:")
            )
            return
    images = [path for path in tree.named("dockerfile") if "/" in path]
    if len(images) > 2:
        folders = [folder_of(path) for path in images]
        yield _made(
            tree,
            "",
            f"The system runs as separate services, because {listed(folders, 8)} each have a Dockerfile.",
            0.65,
            path=images[0],
        )


def _layers(tree: Tree) -> Iterator[Finding]:
    """The most telling of hexagonal, layered and MVC, for the two shallowest folders that show one."""
    made = 0
    for folder, names in sorted(
        tree.folders.items(), key=lambda item: (item[0].count("/"), item[0])
    ):
        inside = {name.rstrip("/").lower() for name in names if name.endswith("/")}
        where = f"{folder}/" if folder else "the top folder"
        door, service, store = (
            [name for name in group if name in inside] for group in (_DOORS, _SERVICES, _STORES)
        )
        told: tuple[str, list[str], float] | None = None
        if {"ports", "adapters"} <= inside:
            told = "a hexagonal architecture (ports and adapters)", ["ports", "adapters"], 0.8
        elif (
            "domain" in inside
            and inside & {"infrastructure", "adapters"}
            and inside & {"application", "usecases", "use_cases"}
        ):
            shown = [
                "domain",
                *sorted(
                    inside
                    & {
                        "infrastructure",
                        "adapters",
                        "application",
                        "usecases",
                        "use_cases",
                        "interfaces",
                        "presentation",
                    }
                ),
            ]
            told = "a hexagonal or clean architecture around a domain", shown, 0.75
        elif {"models", "views", "controllers"} <= inside:
            told = "model, view and controller (MVC)", ["models", "views", "controllers"], 0.75
        elif door and service and store:
            told = (
                "layers: requests, business logic and data access are apart",
                [door[0], service[0], store[0]],
                0.75,
            )
        elif {"commands", "queries"} <= inside and inside & {"handlers", "events", "domain"}:
            told = (
                "commands and queries that are handled apart (CQRS)",
                ["commands", "queries"],
                0.6,
            )
        if told and made < 2:
            made += 1
            content = f"The code follows {told[0]}, because {where} has {listed([f'{name}/' for name in told[1]])}."
            yield _made(tree, f"{folder}/{told[1][0]}".lstrip("/"), content, told[2])


def _features(tree: Tree) -> Iterator[Finding]:
    """Folders that repeat the same roles are features; Django calls them apps."""
    if "manage.py" in tree or any(path.endswith("/manage.py") for path in tree.paths):
        apps = [
            folder_of(path)
            for path in tree.named("models.py")
            if any(
                f"{folder_of(path)}/{name}" in tree for name in ("apps.py", "views.py", "admin.py")
            )
        ]
        if len(apps) > 1:
            yield _made(
                tree,
                apps[0],
                f"The Django project is divided into the apps {listed(unique(apps), 12)}.",
                0.8,
                technologies=["Django"],
            )
            return
    for folder, names in tree.folders.items():
        parts = [name for name in names if name.endswith("/")]
        if (
            folder.rsplit("/", 1)[-1].lower()
            not in ("features", "modules", "domains", "apps", "app", "src", "internal", "contexts")
            or len(parts) < 3
        ):
            continue
        roles: Counter[str] = Counter()
        for part in parts:
            below = tree.folders.get(f"{folder}/{part.rstrip('/')}", ())
            roles.update(
                {
                    match[1]
                    for name in below
                    if (
                        match := re.search(
                            r"(?:^|[._-])(controller|service|router|repository|model|view|schema|module|handler|api|slice|store|route)s?\.\w+$",
                            name,
                        )
                    )
                }
            )
        shared = [
            role for role, count in roles.most_common(4) if count >= 3 and count >= len(parts) * 0.5
        ]
        if len(shared) >= 2:
            content = f"The code is organised by feature: {folder}/ has {listed(parts, 10)}, most with their own {listed(shared)}."
            yield _made(tree, folder, content, 0.75)
            return


def _events(tree: Tree) -> Iterator[Finding]:
    queues = [
        (NOTABLE[item.name.lower()][1], manifest.path, item.line)
        for manifest in manifests(tree)
        for item in manifest.runtime
        if NOTABLE.get(item.name.lower(), ("", ""))[0] == "queue"
    ]
    places = [
        f"{folder}/"
        for folder in tree.folders
        if folder.rsplit("/", 1)[-1].lower()
        in ("consumers", "subscribers", "listeners", "workers", "tasks", "jobs", "events", "sagas")
    ]
    places += list(
        tree.named("tasks.py", "celery.py", "worker.py", "consumer.py", "worker.ts", "consumer.ts")
    )[:4]
    if queues and places:
        label, path, line = queues[0]
        content = f"Parts of the system talk through events or background jobs, because {path} asks for {label} and the code has {listed(places, 6)}."
        yield _made(
            tree, "", content, 0.7, path=path, line=line, technologies=[label.partition(" (")[0]]
        )


def _plugins(tree: Tree) -> Iterator[Finding]:
    for path in tree.named("pyproject.toml"):
        groups = [
            name
            for name in table(tree.parse(path, read_toml), "project", "entry-points")
            if not name.startswith(("console", "gui"))
        ]
        if groups:
            line = line_of(tree.lines(path), "entry-points")
            yield _made(
                tree,
                "",
                f"It takes part in a plugin system: {path} declares the entry points {listed(groups, 6)}.",
                0.8,
                path=path,
                line=line,
            )
            return
    for path in tree.suffixed(".py"):
        text = tree.text(path)
        if "entry_points(" in text and (
            match := re.search(
                r"\bentry_points\(\s*+(?:group\s*+=\s*+)?[\"']([\w.-]{2,80})[\"']", text
            )
        ):
            line = text.count("\n", 0, match.start()) + 1
            yield _made(
                tree,
                "",
                f"It loads plugins from the entry point group {match[1]} ({path}:{line}).",
                0.75,
                path=path,
                line=line,
            )
            return
    for folder, names in tree.folders.items():
        if folder.rsplit("/", 1)[-1].lower() in ("plugins", "extensions") and len(names) >= 3:
            yield _made(
                tree,
                folder,
                f"It has a plugin system, because {folder}/ holds {listed([name.rstrip('/') for name in names], 10)}.",
                0.6,
            )
            return


def _serverless(tree: Tree) -> Iterator[Finding]:
    for path in tree.named(
        "serverless.y*ml",
        "template.y*ml",
        "wrangler.toml",
        "netlify.toml",
        "samconfig.toml",
        "host.json",
        "vercel.json",
    ):
        name = path.rsplit("/", 1)[-1]
        if name.startswith("template"):
            if "AWS::Serverless" not in tree.text(path):
                continue
            told, functions = (
                "AWS SAM",
                re.findall(
                    r"(?m)^ {2}(\w{1,60}):[ \t]*+\n {4}Type: AWS::Serverless::Function",
                    tree.text(path),
                ),
            )
        elif name.startswith("serverless"):
            documents = tree.parse(path, read_yaml)
            value = table(documents[0]) if documents else {}
            told = f"the Serverless Framework on {string(table(value, 'provider').get('name')) or 'a cloud'}"
            functions = list(map(str, table(value, "functions")))
        else:
            services = {
                "wrangler.toml": "Cloudflare Workers",
                "netlify.toml": "Netlify",
                "samconfig.toml": "AWS SAM",
                "host.json": "Azure Functions",
                "vercel.json": "Vercel",
            }
            told, functions = services[name], []
        more = f" with the functions {listed(functions, 10)}" if functions else ""
        yield _made(
            tree,
            "",
            f"It is deployed without servers of its own: {path} sets up {told}{more}.",
            0.75,
            path=path,
        )
        return


def _schema(tree: Tree) -> Iterator[Finding]:
    """Where changes of the database schema go, and which is the newest."""
    places: dict[str, list[str]] = {}
    for path in tree.paths:
        match = re.match(
            r"(.*(?:^|/)(?:migrations|alembic/versions|db/migrate|prisma/migrations|flyway|db/migration))/([^/]*\d[^/]*?)"
            r"(?:/migration\.sql|\.(?:py|sql|rb|js|ts|go|php|exs|xml|ya?ml))$",
            path,
        )
        if match and not match[2].startswith("__"):
            places.setdefault(match[1], []).append(path)
    for folder, paths in sorted(places.items(), key=lambda item: -len(item[1]))[:2]:
        newest = max(paths)
        content = f"The database schema changes by migrations in {folder}/ ({len(paths)} so far, the newest is {newest.removeprefix(folder + '/')})."
        yield _made(tree, folder, content, 0.8, path=newest, kind="pattern")


def _sides(tree: Tree) -> Iterator[Finding]:
    owners = {folder_of(manifest.path): manifest for manifest in manifests(tree)}
    pairs = (
        ("backend", "frontend"),
        ("server", "client"),
        ("api", "web"),
        ("server", "web"),
        ("api", "frontend"),
        ("backend", "web"),
        ("api", "ui"),
        ("server", "ui"),
    )
    for back, front in pairs:
        if back in owners and front in owners:
            content = f"Server and user interface are apart: {back}/ ({owners[back].language}) and {front}/ ({owners[front].language}), each with its own manifest."
            yield _made(tree, back, content, 0.8, path=owners[back].path)
            return


def _tests(tree: Tree) -> Iterator[Finding]:
    found = [
        path
        for path in tree.paths
        if _TESTS.search(path)
        and not re.search(r"(?:^|/)(?:vendor|node_modules|third_party)/", path)
    ]
    if len(found) < 3:
        return
    roots = Counter(
        match[0].rstrip("/")
        for path in found
        if (match := re.match(r"(?:.*?/)?(?:tests?|spec|__tests__|e2e)(?=/)", path))
    )
    shapes = Counter(
        "*" + match[0]
        if (match := re.search(r"(?:\.(?:test|spec)\.\w+|_test\.\w+|_spec\.rb|Tests?\.\w+)$", path))
        else "test_*.py"
        for path in found
    )
    shape = shapes.most_common(1)[0][0]
    if roots and sum(roots.values()) >= len(found) * 0.6:
        places = [f"{folder}/ ({count} files)" for folder, count in roots.most_common(4)]
        content = f"Tests live in {listed(places)}; their files are named {shape}."
        first = next(path for path in found if path.startswith(roots.most_common(1)[0][0]))
    else:
        content = f"Tests live beside the code they test, in {len(found)} files named {shape}, such as {found[0]}."
        first = found[0]
    yield _made(tree, "", content, 0.8, path=first, kind="pattern")
