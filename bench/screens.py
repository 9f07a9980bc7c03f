"""Pictures of every web page, in both colour schemes and for a narrow window: `make screenshots` puts them into docs/images.

The world they show is the one of the tests (`tests/web/story.py`), in a home that is thrown away. Needs Chromium and the extra `dev`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).parent.parent
WIDE, NARROW = {"width": 1040, "height": 680}, {"width": 380, "height": 680}
# name → (address, colour scheme, window, what to press or to click before)
PICTURES = {
    "search": ("/?q=how+do+we+deploy", "light", WIDE, "click .why summary"),
    "search-dark": ("/?q=redis+carts", "dark", WIDE, "click .why summary"),
    "search-narrow": ("/?q=outbox", "light", NARROW, ""),
    "memory": ("/memory/{redis fact}", "light", WIDE, ""),
    "memory-source": ("/?q=pg_trgm&kind=decision&host=claude", "dark", WIDE, "click .hit a.open"),
    "memory-edit": ("/memory/{redis fact}", "light", WIDE, "press e"),
    "timeline": ("/timeline", "light", WIDE, ""),
    "session": ("/session/a1000000-0000-4000-8000-000000000001", "light", WIDE, ""),
    "graph": ("/graph?focus={the architecture}", "dark", WIDE, ""),
    "inbox": ("/inbox", "light", WIDE, ""),
    "health": ("/health", "light", WIDE, ""),
    "projects": ("/projects", "light", WIDE, ""),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("names", nargs="*", help=f"only these: {', '.join(PICTURES)}")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "web")]
    options.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bethink-") as folder:
        os.environ |= {
            "BETHINK_HOME": f"{folder}/home",
            "BETHINK_EMBEDDING": "hashing",
            "BETHINK_OFFLINE": "1",
            "HOME": folder,
        }
        take(Path(folder), options.into, options.names or list(PICTURES))


def take(folder: Path, into: Path, names: list[str]) -> None:
    from http_server import running
    from playwright.sync_api import sync_playwright
    from story import tell

    from bethink.surface.web.session import Sessions, load_key

    home = folder / "home"
    home.mkdir()
    story = tell(folder)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    arguments = ["--no-sandbox", "--hide-scrollbars"] if os.getuid() == 0 else ["--hide-scrollbars"]
    with running(home, story.project) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        for name in names:
            address, scheme, window, before = PICTURES[name]
            context = browser.new_context(
                base_url=server.address, color_scheme=scheme, viewport=window
            )  # type: ignore[arg-type]
            session = Sessions(load_key(home)).begin()
            context.add_cookies(
                [
                    {
                        "name": f"bethink-{server.address.rpartition(':')[2]}",
                        "value": session.cookie,
                        "domain": "127.0.0.1",
                        "path": session.room,
                    }
                ]
            )
            page = context.new_page()
            ids = {key: quote(id) for key, id in story.ids.items()}
            page.goto(session.room + address.format_map(ids))
            verb, _, rest = before.partition(" ")
            if verb == "click":
                page.locator(rest).first.click()
            elif verb == "press":
                page.keyboard.press(rest)
            page.wait_for_load_state("networkidle")
            page.locator("header.top").wait_for()
            file = into / f"{name}.png"
            page.screenshot(path=file)
            print(f"{file}  {file.stat().st_size // 1024} kB  {page.title()}")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
