"""Take screenshots of every web page.

`make screenshots` takes one picture per page for docs/images and writes docs/guides/pages.md. `--all --into DIR` takes every width and
colour scheme, for looking at a change.

The world they show is the one of the tests (`tests/web/story.py`), in a home that is thrown away. Each picture is kept with a palette
of few colours, chosen in the browser, so that it is small. Needs Chromium and the extra `dev`.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import struct
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parent.parent
WINDOWS = {"1440": (1440, 900), "390": (390, 844)}
SCHEMES = ("light", "dark")
SOURCE = '''"""Sends what the outbox holds."""


def send_events(connection, broker):
    """Deletes a row only after the broker confirmed it."""
    for row in connection.execute("SELECT id, body FROM outbox ORDER BY id"):
        broker.publish(row.body, confirm=True)
        connection.execute("DELETE FROM outbox WHERE id = ?", (row.id,))
'''
# name → (what it shows, address, what to press or to click before)
PICTURES = {
    "home": ("Home: what is new, and open items", "/?since=30d", ""),
    "search": (
        "Search: notes before files, facets, and the parts of a score",
        "/search?q=outbox+broker+confirm",
        "click .why summary",
    ),
    "memory": ("A memory: its source, and how it changed", "/memory/{new}", ""),
    "todos": ("To-dos: open items of all sessions", "/todos", ""),
    "sessions": ("Sessions by day, with their topics", "/sessions", ""),
    "session": (
        "A conversation, with the memories from each turn",
        "/session/a1000000-0000-4000-8000-000000000001",
        "",
    ),
    "failures": ("Failed commands and what fixed them", "/failures", ""),
    "timeline": ("Timeline: how a subject changed", "/timeline?entity=Redis", ""),
    "graph": ("Graph: memories related to a subject", "/graph?query=broker+outbox+redis", ""),
    "graph-time": (
        "Graph by time",
        "/graph?query=broker+outbox+redis",
        "click [data-do=time]",
    ),
    "keys": ("Keyboard shortcuts", "/todos", "press ?"),
    "inbox": (
        "Inbox: decide about several items at once",
        "/inbox?queue=doubtful",
        "click #all",
    ),
    "duplicates": ("Duplicates, the newer one first", "/inbox?queue=duplicates", ""),
    "health": ("Capture, growth and cost", "/health", ""),
    "projects": ("Projects, containers, and who can read them", "/projects", ""),
    "add": ("A new note, from every page", "/todos", "press n"),
    "find": ("Find: pages, projects, memories, commands", "/todos", "press Control+k"),
    "signin": ("Signing in", "", ""),
}
# Counts colours, keeps those that stand for most, and gives each pixel the nearest of them.
QUANTISE = """async ([data, most]) => {
  const image = await createImageBitmap(await (await fetch(data)).blob());
  const paper = new OffscreenCanvas(image.width, image.height).getContext("2d");
  paper.drawImage(image, 0, 0);
  const pixels = new Uint32Array(paper.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const parts = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  const far = (one, other) => parts(one).reduce((sum, part, at) => sum + (part - parts(other)[at]) ** 2, 0);
  const ordered = [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one));
  const palette = [];
  for (const least of [300, 60]) for (const colour of ordered)
    if (palette.length < most && palette.every((one) => far(one, colour) >= least)) palette.push(colour);
  const nearest = new Map(ordered.map((colour) => [colour, palette.reduce((best, one, at) => far(one, colour) < far(palette[best], colour) ? at : best, 0)]));
  let text = "";
  for (const pixel of pixels) text += String.fromCharCode(nearest.get(pixel));
  return [image.width, image.height, palette.flatMap(parts), btoa(text)];
}"""
COLOURS = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--all", action="store_true", help="every width and colour scheme")
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
        take(Path(folder), options.into, options.names or list(PICTURES), options.all)
    if not options.names and not options.all:
        write_page(ROOT / "docs" / "guides" / "pages.md")


def make_world(folder: Path) -> Any:
    from story import decide_about, fail, long_talk, tell

    from bethink.api import Bethink
    from bethink.features import knowledge
    from bethink.hooks import state
    from bethink.model import Passage, Source

    story = tell(folder)
    story.ids.update(decide_about(story.project))
    fail(story.project, folder)
    (story.project / "relay").mkdir()
    (story.project / "relay" / "send.py").write_text(SOURCE)
    with Bethink(directory=story.project) as memory:
        knowledge.map_code(memory)
        long_talk(memory, "several", 1, ("Broker and outbox", "Port search", "Mails to crews"))
        for number in range(1, 6):
            text = f"Line {number} of the vendor's notes: the sandbox resets at {number} o'clock"
            source = Source(f"vendor/{number}.txt", "import")
            memory.ingest([(source, [Passage(text, kind="fact")])])
        memory.reindex()
        decided = memory.filter(kinds=("decision", "gotcha", "architecture"))
        shown = [one.id for one in memory.list(filter=decided, limit=8)]
        for session in range(3):
            given = shown[session : session + 5]
            state.note_delivery(state.Hook("prompt", "claude", session=f"{session}"), given)
        memory.get(*shown[:3])
    return story


def take(folder: Path, into: Path, names: list[str], all_forms: bool) -> None:
    from http_server import running
    from playwright.sync_api import sync_playwright

    from bethink.app.web import Sessions, load_key

    home = folder / "home"
    home.mkdir(mode=0o700)
    story = make_world(folder)
    ids = {key: quote(id) for key, id in story.ids.items()}
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    arguments = ["--hide-scrollbars", *(["--no-sandbox"] if os.getuid() == 0 else [])]
    with running(home, story.project) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        blank = browser.new_page()
        for scheme in SCHEMES if all_forms else SCHEMES[:1]:
            for width, (wide, high) in list(WINDOWS.items())[: None if all_forms else 1]:
                window: Any = {"width": wide, "height": high}
                context = browser.new_context(
                    base_url=server.address, color_scheme=scheme, viewport=window
                )
                session = Sessions(load_key(home)).begin()
                cookie: Any = {"name": session.cookie_name, "value": session.cookie}
                context.add_cookies([{**cookie, "domain": "127.0.0.1", "path": session.room}])
                page = context.new_page()
                page.goto(f"{session.room}/health")  # which counts meanwhile
                for name in names:
                    _, address, before = PICTURES[name]
                    if not address:  # nobody is signed in there
                        page.evaluate("() => localStorage.clear()")
                    page.goto(session.room + address.format_map(ids) if address else "/")
                    prepare(page, name, before)
                    form = f"-{width}-{scheme}" if all_forms else ""
                    file = into / f"{name}{form}.png"
                    file.write_bytes(shrink(blank, page.screenshot()))
                    print(f"{file}  {file.stat().st_size // 1024} kB")
                context.close()
        browser.close()


def prepare(page: Any, name: str, before: str) -> None:
    """Waits until a page is whole, and does what the picture wants to be done before."""
    page.wait_for_load_state("load" if name == "signin" else "networkidle")
    if name.startswith("graph"):
        page.wait_for_selector("#graph[data-state=still]")
    if name == "health":
        page.wait_for_selector(".findings li", timeout=120_000)
    verb, _, rest = before.partition(" ")
    if verb == "click":
        page.locator(rest).first.click()
    elif verb == "press":
        page.keyboard.press(rest)
    if name == "graph-time":
        page.wait_for_selector("#graph[data-state=still]")


def shrink(page: Any, picture: bytes) -> bytes:
    """A picture with few colours: an eighth of its size."""
    data = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    wide, high, palette, pixels = page.evaluate(QUANTISE, [data, COLOURS])
    rows = base64.b64decode(pixels)
    lines = b"".join(b"\0" + rows[at : at + wide] for at in range(0, len(rows), wide))
    header = struct.pack(">IIBBBBB", wide, high, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", bytes(palette)), (b"IDAT", zlib.compress(lines, 9)))
    chunks = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in (*parts, (b"IEND", b""))
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def write_page(file: Path) -> None:
    """Write the page of the docs that shows every picture."""
    lines = [
        "# Every page in pictures",
        "",
        "Made by `make screenshots`. [The web page](web.md) explains what the pages do.",
    ]
    for name, (about, _, _) in PICTURES.items():
        lines += ["", f"## {about}", "", f"![{name}](../images/{name}.png)"]
    file.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
