"""A real Chromium on a real server over the small world of `story`. Nothing is downloaded: the browser is the system's own.

Every page that a test opens is watched: a script error, a refused resource or a request to another host fails the test.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from http_server import Running, home_at, running
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from story import Story, tell

from bethink.surface.web import Sessions, load_key

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE = 60_000  # milliseconds; on a machine with eight times the work it can do, a page took fifteen seconds
expect.set_options(timeout=PATIENCE)


class World(NamedTuple):
    """A server, what it serves, and how to get in."""

    server: Running
    story: Story
    home: Path

    @property
    def address(self) -> str:
        return self.server.address

    @property
    def sessions(self) -> Sessions:
        return Sessions(load_key(self.home))

    def id(self, name: str) -> str:
        return self.story.ids[name]


class Window(NamedTuple):
    """A browser of its own, signed in, and what went wrong in it."""

    page: Page
    context: BrowserContext
    wrong: list[str]


@pytest.fixture(scope="session")
def browser():
    assert CHROMIUM, "There is no Chromium: `apt-get install chromium`, or name one in CHROMIUM."
    with sync_playwright() as playwright:
        # Root, as in a container, has no sandbox to start in.
        arguments = ["--no-sandbox"] if os.name == "posix" and os.getuid() == 0 else []
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory):
    """One server for the tests of a file."""
    folder = tmp_path_factory.mktemp("world")
    with home_at(folder) as home:
        story = tell(folder)
        with running(home, story.project) as server:
            yield World(server, story, home)


@contextmanager
def window(browser: Browser, world: World | str, **options: Any):
    """A window with cookies of its own: signed in to a world, or not at an address."""
    address = world if isinstance(world, str) else world.address
    context = browser.new_context(base_url=address, **options)
    context.on("page", _press_once_loaded)
    if isinstance(world, World):
        session = world.sessions.begin()
        where = {"domain": "127.0.0.1", "path": session.room}
        context.add_cookies([{"name": session.cookie_name, "value": session.cookie, **where}])
        context.on("page", lambda page: _stay_in(page, session.room))
    context.set_default_timeout(PATIENCE)
    wrong: list[str] = []

    def see_message(message: Any) -> None:
        # Chromium reports every answer of 400 and above; tests that want one look at the page.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            wrong.append(f"console: {message.text}")

    def see_request(request: Any) -> None:
        if not request.url.startswith((address, "data:", "blob:", "about:")):
            wrong.append(f"elsewhere: {request.url}")

    context.on("weberror", lambda error: wrong.append(f"script: {error.error}"))
    context.on("console", see_message)
    context.on("request", see_request)
    try:
        yield Window(context.new_page(), context, wrong)
        assert wrong == []
    finally:
        context.close()


def _stay_in(page: Page, room: str) -> None:
    """Addresses that a test opens are meant for the pages of its session."""
    goto = page.goto
    page.goto = lambda url, **how: goto(room + url if url.startswith("/") else url, **how)


def _press_once_loaded(page: Page) -> None:
    """A key that follows another page is pressed when that page's script hears it, not when its text is there."""
    press = page.keyboard.press

    def wait_and_press(key: str, **options: Any) -> None:
        page.wait_for_load_state()
        press(key, **options)

    page.keyboard.press = wait_and_press


@pytest.fixture
def signed_in(browser: Browser, world: World):
    with window(browser, world) as opened:
        yield opened


@pytest.fixture
def page(signed_in: Window) -> Page:
    return signed_in.page
