"""What tests of pages look for: that nothing sticks out, that axe finds nothing serious, where the focus is."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SERIOUS = ("serious", "critical")


def axe(page: Page) -> list[str]:
    """The serious problems that axe-core finds on a page, one line each. It looks from outside the page's own policy."""
    found = find_spec("axe_playwright_python")
    assert found and found.origin, "pip install axe-playwright-python"
    script = (Path(found.origin).parent / "axe.min.js").read_text("utf-8")
    page.evaluate(f"() => {{ {script} \n }}")
    result: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for violation in result["violations"]
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
    ]


def sticks_out(page: Page) -> bool:
    """Whether the page is wider than its window."""
    return bool(
        page.evaluate(
            "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
    )


def focused(page: Page) -> str:
    """The text or name of what has the focus."""
    return str(
        page.evaluate(
            "() => document.activeElement.getAttribute('name') || document.activeElement.textContent.trim()"
        )
    )
