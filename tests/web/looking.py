"""What tests of pages look for: that nothing sticks out, that axe finds nothing, that fingers can press everything, where the focus is."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

FINGER = 44  # pixels
NARROW, WIDE = {"width": 390, "height": 844}, {"width": 1440, "height": 900}


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
