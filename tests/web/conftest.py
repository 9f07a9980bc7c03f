"""A real Chromium on a real server over the small world of `story`. Nothing is downloaded: the browser is the system's own.

Every page that a test opens is watched: a script error, a refused resource or a request to another host fails the test.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from http_server import Running, running
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from story import Story, tell

from bethink.surface.web import Sessions, WebSession, load_key

CHROMIUM = (
    os.environ.get("CHROMIUM")
    or shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
)
PATIENCE = 60_000  # milliseconds; on a machine with eight times the work it can do, a page took fifteen seconds
expect.set_options(timeout=PATIENCE)
VARIABLES = ("BETHINK_DATABASE", "BETHINK_MODEL_DIR", "BETHINK_DEBUG")


class World(NamedTuple):
    """A server, what it serves, and how to get in."""

    server: Running
    story: Story
    home: Path

    @property
    def address(self) -> str:
        return self.server.address

    def ticket(self) -> str:
        """An address that signs a browser in, as `bethink ui` makes it."""
        return f"{self.address}/enter?ticket={Sessions(load_key(self.home)).new_ticket()}"

    def session(self) -> WebSession:
        """What a browser has after it came in with a ticket."""
        return Sessions(load_key(self.home)).begin()

    def id(self, name: str) -> str:
        return self.story.ids[name]


class Window(NamedTuple):
    """A browser of its own, signed in, and what went wrong in it."""

    page: Page
    context: BrowserContext
    wrong: list[str]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, (
        "There is no Chromium here: `apt-get install chromium`, or name one in the variable CHROMIUM."
    )
    with sync_playwright() as playwright:
        # Root, as in a container, has no sandbox to start in.
        arguments = ["--no-sandbox"] if os.name == "posix" and os.getuid() == 0 else []
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@contextmanager
def home_at(folder: Path) -> Iterator[Path]:
    """A home of these tests' own, with the embedder that needs no model."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        for variable in VARIABLES:
            patch.delenv(variable, raising=False)
        for variable, value in {
            "BETHINK_HOME": str(home),
            "BETHINK_EMBEDDING": "hashing",
            "BETHINK_OFFLINE": "1",
        }.items():
            patch.setenv(variable, value)
        patch.setenv("HOME", str(folder))
        yield home


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server for the tests of a file."""
    folder = tmp_path_factory.mktemp("world")
    with home_at(folder) as home:
        story = tell(folder)
        with running(home, story.project) as server:
            yield World(server, story, home)


@contextmanager
def window(browser: Browser, world: World | str, **options: Any) -> Iterator[Window]:
    """A window with cookies of its own: signed in to a world, or not at an address."""
    address = world if isinstance(world, str) else world.address
    context = browser.new_context(base_url=address, **options)
    context.on("page", _press_once_loaded)
    if isinstance(world, World):
        session = world.session()
        cookie = {"name": session.cookie_name, "value": session.cookie}
        where = {"domain": "127.0.0.1", "path": session.room}
        context.add_cookies([{**cookie, **where}])  # type: ignore[list-item]
        context.on("page", lambda page: _stay_in(page, session.room))
    context.set_default_timeout(PATIENCE)
    wrong: list[str] = []
    context.on("weberror", lambda error: wrong.append(f"script: {error.error}"))
    context.on(
        "console",
        lambda message: wrong.append(f"console: {message.text}") if _matters(message) else None,
    )
    context.on(
        "request",
        lambda request: (
            wrong.append(f"elsewhere: {request.url}") if _elsewhere(request.url, address) else None
        ),
    )
    try:
        yield Window(context.new_page(), context, wrong)
    finally:
        context.close()


def _stay_in(page: Page, room: str) -> None:
    """Addresses that a test opens are meant for the pages of its session."""
    goto = page.goto
    page.goto = lambda url, **options: goto(  # type: ignore[method-assign]
        room + url if url.startswith("/") else url, **options
    )


def _press_once_loaded(page: Page) -> None:
    """A key that follows another page is pressed when that page's script hears it, not when its text is there."""
    press = page.keyboard.press

    def wait_and_press(key: str, **options: Any) -> None:
        page.wait_for_load_state()
        press(key, **options)

    page.keyboard.press = wait_and_press  # type: ignore[method-assign]


def _matters(message: Any) -> bool:
    # Chromium reports every answer of 400 and above; tests that want one look at the page.
    return message.type == "error" and not message.text.startswith("Failed to load resource")


def _elsewhere(url: str, address: str) -> bool:
    return not url.startswith((address, "data:", "blob:", "about:"))


@pytest.fixture
def signed_in(browser: Browser, world: World) -> Iterator[Window]:
    with window(browser, world) as opened:
        yield opened
        assert opened.wrong == []


@pytest.fixture
def page(signed_in: Window) -> Page:
    return signed_in.page
