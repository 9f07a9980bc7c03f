"""A real Chromium on a real server over the small world of `story`; and what tests look for on a page. Nothing is downloaded: the
browser is the system's own.

Every page that a test opens is watched: a script error, a refused resource or a request to another host fails the test.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from http_server import Running, home_at, running
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright
from story import Story, tell

from bethink.app.web import Sessions, load_key

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE = 60_000  # milliseconds; on a machine with eight times the work it can do, a page took fifteen seconds
expect.set_options(timeout=PATIENCE)
FINGER = 44  # pixels
NARROW, WIDE = {"width": 390, "height": 844}, {"width": 1440, "height": 900}


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


@pytest.fixture(scope="module")
def browser():
    """A browser for the tests of a file. Until it is closed, no other test of this process can call `asyncio.run`."""
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


# What tests look for


@cache
def read_axe() -> str:
    found = find_spec("axe_playwright_python")
    assert found and found.origin, "pip install axe-playwright-python"
    return (Path(found.origin).parent / "axe.min.js").read_text("utf-8")


def axe(page: Page, *rules: str) -> list[str]:
    """The problems of any level that axe-core finds on a page, one line each, by all its rules or by some. It looks from
    outside the page's own policy."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(f"() => {{ {read_axe()} \n }}")
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    result = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for violation in result["violations"]
        for node in violation["nodes"]
    ]


def sticks_out(page: Page) -> bool:
    """Whether the page is wider than its window."""
    root = "document.documentElement"
    return page.evaluate(f"() => {root}.scrollWidth > {root}.clientWidth")


def find_small(page: Page) -> list[str]:
    """What can be pressed and is smaller than a finger, but for links inside a sentence; and a button too narrow for its text."""
    return page.evaluate(
        """least => [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
            .filter(one => one.checkVisibility() && !one.closest('.skip') && !(one.matches('a') && one.closest('p, dd, li.note')
                && getComputedStyle(one).display === 'inline'))
            .map(one => one.matches('[type=checkbox]') ? one.closest('label') : one)
            .map(one => [one, one.getBoundingClientRect()])
            .filter(([one, box]) => { const text = document.createRange(); text.selectNodeContents(one);
                return box.width < least || box.height < least || one.matches('button:not(:has(*))')
                    && text.getBoundingClientRect().right > box.right - parseFloat(getComputedStyle(one).paddingRight) })
            .map(([one, box]) => `${one.outerHTML.slice(0, 120)} ${box.width} x ${box.height}`)""",
        FINGER - 0.5,
    )


def focused(page: Page) -> str:
    """The text or name of what has the focus."""
    active = "document.activeElement"
    return page.evaluate(f"() => {active}.getAttribute('name') || {active}.textContent.trim()")


def text_box(page: Page) -> Locator:
    """The text of a memory that is edited."""
    return page.get_by_role("textbox", name="Text", exact=True)


def press(page: Page, button: str, done: str = "") -> None:
    """Presses a button; what is done then is told."""
    page.get_by_role("button", name=button, exact=True).click()
    if done:
        expect(page.get_by_role("status")).to_contain_text(done)


def expect_title(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text(text)


def expect_alert(page: Page, text: str) -> None:
    expect(page.get_by_role("alert").filter(has_text=text)).to_be_visible()
