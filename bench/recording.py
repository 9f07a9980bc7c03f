"""Record `bethink demo` for the README: `docs/images/demo.cast` for asciinema, and `docs/images/demo.svg` made from it.

    .venv/bin/python bench/recording.py

The text is what the command prints at a terminal of this width. Only the pace is ours: a reader needs longer than the program.
"""

from __future__ import annotations

import argparse
import fcntl
import html
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

IMAGES = Path(__file__).parent.parent / "docs" / "images"
COLUMNS, ROWS = 100, 34
PAUSE, LINE = 1.2, 0.22  # seconds after an empty line, and after any other
HOLD = 6.0  # seconds at the end, before the picture starts again
FONT, ROW, MARGIN = 13, 19, 16  # pixels
WIDTH_OF_LETTER = 7.82  # pixels, of the usual monospaced fonts at this size
BOLD = re.compile(r"\x1b\[1m(.*?)\x1b\[0m")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def play() -> list[str]:
    """Run the demo at a pseudo-terminal, and return its lines with their colours."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    words = [sys.executable, "-m", "bethink", "demo"]
    process = subprocess.Popen(
        words, stdin=slave, stdout=slave, stderr=subprocess.DEVNULL, env=environment
    )
    os.close(slave)
    printed = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        printed += part
    if process.wait():
        raise SystemExit("`bethink demo` failed.")
    lines = printed.decode().replace("\r\n", "\n").strip("\n").split("\n")
    return [line.rstrip() for line in lines]


def time_lines(lines: list[str]) -> list[float]:
    """Seconds at which each line appears."""
    at, times = 0.5, []
    for line in lines:
        times.append(at)
        at += LINE if line else PAUSE
    return times


def write_cast(lines: list[str], times: list[float]) -> None:
    """Write the recording in asciinema's format, version 2."""
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "bethink demo"}
    events = [[round(at, 2), "o", f"{line}\r\n"] for at, line in zip(times, lines, strict=True)]
    text = "\n".join(json.dumps(one, ensure_ascii=False) for one in [header, *events])
    (IMAGES / "demo.cast").write_text(f"{text}\n", encoding="utf-8")


def write_picture(lines: list[str], times: list[float]) -> None:
    """Write an SVG in which the lines appear one after the other and scroll, without any script."""
    total = times[-1] + HOLD
    height = ROWS * ROW + 2 * MARGIN
    width = round(COLUMNS * WIDTH_OF_LETTER) + 2 * MARGIN
    steps: list[str] = []
    shown: list[str] = []
    frames: list[str] = []
    for number, (line, at) in enumerate(zip(lines, times, strict=True)):
        top = MARGIN + (number + 1) * ROW - 5
        share = 100 * at / total
        if line:
            shown.append(_draw(line, top, number))
            frames.append(
                f"@keyframes l{number}{{0%,{share:.2f}%{{opacity:0}}{share + 0.01:.2f}%,100%{{opacity:1}}}}"
            )
        if number >= ROWS:
            steps.append(f"{share:.2f}%{{transform:translateY(-{(number - ROWS + 1) * ROW}px)}}")
    scroll = "".join(steps)
    last = (len(lines) - ROWS) * ROW
    style = (
        f"text{{font:{FONT}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        "fill:#d7dde5;white-space:pre}.b{font-weight:700;fill:#fff}.m{fill:#8fd3a8}.c{fill:#9ec5ff}"
        f"@keyframes s{{0%{{transform:translateY(0)}}{scroll}100%{{transform:translateY(-{max(0, last)}px)}}}}"
        f".s{{animation:s {total:.1f}s step-end infinite}}"
        f"text{{animation-duration:{total:.1f}s;animation-iteration-count:infinite}}{''.join(frames)}"
        "@media (prefers-reduced-motion:reduce){.s,text{animation:none!important}}"
    )
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img"'
        ' aria-label="Two agents with one memory: what bethink demo prints">'
        f'<style>{style}</style><rect width="100%" height="100%" rx="8" fill="#12161c"/>'
        f'<svg x="0" y="{MARGIN}" width="{width}" height="{height - 2 * MARGIN}"><g class="s">'
        f"{''.join(shown)}</g></svg></svg>\n"
    )
    (IMAGES / "demo.svg").write_text(text, encoding="utf-8")


def _draw(line: str, top: int, number: int) -> str:
    """Draw one line; its frames say when it appears."""
    plain = html.escape(CONTROL.sub("", line))
    kind = "c" if plain.lstrip().startswith("$ ") else ""
    if not kind and BOLD.search(line):
        kind = "b" if line.startswith("\x1b") else "m"
    name = f' class="{kind}"' if kind else ""
    return f'<text x="{MARGIN}" y="{top - MARGIN}" style="animation-name:l{number}"{name}>{plain}</text>'


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    lines = play()
    times = time_lines(lines)
    write_cast(lines, times)
    write_picture(lines, times)
    print(f"{len(lines)} lines, {times[-1]:.0f} s: {IMAGES / 'demo.cast'}, {IMAGES / 'demo.svg'}")


if __name__ == "__main__":
    main()
