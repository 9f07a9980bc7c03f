"""Routes of the usual frameworks, from small projects as people write them; and what looks like a route and is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_tables import cases
from trees import load_projects, plant, told

from bethink.ingest.analyze import routes
from bethink.ingest.analyze.tree import Tree
from bethink.ingest.files import walk

PROJECTS = {project.name: project for project in load_projects("routes.txt")}
FLASK = PROJECTS["Flask"].files


def found(root: Path) -> list[routes.Route]:
    return routes.find_routes(Tree(root, walk(root, root, None)))


@pytest.mark.parametrize("project", PROJECTS.values(), ids=PROJECTS)
def test_each_framework_gives_its_routes_with_method_path_handler_and_line(tmp_path, project):
    plant(tmp_path, project.files)
    routes_of = found(tmp_path)
    assert {route.framework for route in routes_of} == {project.name}
    shown = {
        f"{route.method or '-'} | {route.path} | {route.handler} | {route.file}:{route.line}"
        for route in routes_of
    }
    assert shown == set(project.expected)


@pytest.mark.parametrize(
    "files",
    cases("analyze-routes-what-only-looks-like"),
    ids=lambda files: next(iter(files)),
)
def test_what_only_looks_like_a_route_is_none(tmp_path, files):
    plant(tmp_path, files)
    assert found(tmp_path) == []


def test_a_handler_of_many_lines_still_belongs_to_its_route(tmp_path):
    body = "\n".join(f"  const x{number} = compute({number});" for number in range(400))
    plant(
        tmp_path,
        {
            "app.js": "const app = express();\napp.post('/big', async (req, res) => {\n"
            + body
            + "\n});\napp.get('/next', after);\n"
        },
    )
    assert [(route.method, route.path) for route in found(tmp_path)] == [
        ("POST", "/big"),
        ("GET", "/next"),
    ]


def test_routers_that_include_each_other_end(tmp_path):
    plant(
        tmp_path,
        {
            "a.py": """
        from fastapi import APIRouter
        a = APIRouter(prefix="/a")
        b = APIRouter(prefix="/b")
        a.include_router(b)
        b.include_router(a)

        @a.get("/x")
        def x(): ...
    """
        },
    )
    assert len(found(tmp_path)) == 1


def test_routes_are_told_in_one_sentence_with_their_places(tmp_path):
    plant(tmp_path, {"app.py": FLASK["app.py"]})
    (told_of,) = told(tmp_path, "api-route")
    assert told_of.content == (
        "The HTTP API in app.py (Flask) has GET / (home, line 7), GET, POST /login (login, line 10), "
        "GET /admin/users/<int:id> (user, line 13), GET /health (health_check, line 16) and mounts /orders (orders, line 18)."
    )
    assert (told_of.kind, told_of.lines) == ("architecture", (7, 18))


def test_a_large_interface_stays_few(tmp_path):
    handler = "\n@router.get('/thing{0}')\ndef thing{0}(): ...\n"
    head = "from fastapi import APIRouter\nrouter = APIRouter()\n"
    text = head + "".join(map(handler.format, range(40)))
    passages = told(
        plant(tmp_path, {f"api/area{area}.py": text for area in range(20)}), "api-route"
    )
    assert len(passages) == routes.MOST
    assert max(len(passage.content) for passage in passages) < 2_000
