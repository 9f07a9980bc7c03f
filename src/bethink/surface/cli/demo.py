"""`demo`: the product in under a minute, on a database that is thrown away. Each step is a command as a user would type it."""

from __future__ import annotations

import io
import re
import shlex
import tempfile
from argparse import Namespace
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from bethink.surface.cli.console import Result, open_memory, out
from bethink.surface.cli.main import run
from bethink.surface.cli.parsing import command
from bethink.surface.layout import style

# What is said (#) and typed. A line that begins with `meaning:` needs an embedding model, one with `words:` is for its absence;
# `name =` keeps the id of what was added for later lines.
SCRIPT = f"""
# Remember a few things. Kind, summary and entities are found by rules if they are not given.
add "Users sign in with a magic link that is valid for 15 minutes" --kind decision --tag auth
mysql = add "The orders service stores its data in MySQL" --kind architecture --importance 7
gotcha = add "Never run migrations during the nightly export: the tables are locked" --kind gotcha
add "I prefer small pull requests with one commit each" --kind preference --personal
add "Should the invoice PDF be made on the server?" --kind question
meaning: # The same again is noticed, and so is nearly the same.
words: # The same again is noticed.
add "Users sign in with a magic link that is valid for 15 minutes"
meaning: add "Our users sign in by a magic link, which stays valid for 15 minutes"
# Ask in other words: by meaning and words together, by meaning, by words.
meaning: search "how do people log in?" --mode hybrid --limit 2
meaning: search "how do people log in?" --mode vector --limit 2
meaning: search "how do people log in?" --mode keyword --limit 2
words: search "how do users sign in?" --mode keyword --limit 2
# An intent weighs recency and use as well: what proved useful comes first.
vote {{gotcha}} 5
search "what should I know before I touch the tables?" --intent frequent --limit 2 --seed 1
# A decision that changes replaces the old one, and the chain stays visible.
new = add "Orders moved from MySQL to PostgreSQL, because MySQL locked whole tables" --kind decision
unless replaced: link {{new}} supersedes {{mysql}}
recall "which database does the orders service use?" --max-tokens 200
# What is private never reaches the disk, and neither does what looks like a secret.
add "The staging login is <private>ops / hunter2</private> and the token is ghp_{"a1B2" * 9}"
search "staging login" --mode keyword --limit 1
# Every score can be taken apart.
meaning: search "how do people log in?" --limit 1 --explain
words: search "how do users sign in?" --limit 1 --explain
stats
"""
_LINE = re.compile(r"(?:(meaning|words|unless replaced): )?(?:(\w+) = )?(.*)")


@command("demo")
def demo(args: Namespace) -> Result:
    """Show the product on a throw-away database: add, duplicates, search three ways, an intent, a replaced decision,
    redaction, explain. Nothing of yours is touched.

    Examples:
      bethink demo
      BETHINK_EMBEDDING=none bethink demo
      bethink demo --json
    """
    with tempfile.TemporaryDirectory(prefix="bethink-demo-") as folder:
        steps = play(args, Path(folder))
    end = "\nThat was all on a throw-away database, which is gone. Next: bethink add"
    return Result(steps, [end])


def play(args: Namespace, folder: Path) -> list[dict[str, object]]:
    """Goes through the script. Says and shows each step as it comes, and gives all of them."""
    project = folder / "shop"
    (project / ".bethink").mkdir(parents=True)  # what marks it as a project
    place = {"database": str(folder / "memory.db"), "project": str(project), "container": None}
    inside = Namespace(**{**vars(args), **place})
    text = args.format == "text"
    with open_memory(inside, make=True) as memory:
        hints = memory.search("anything", mode="hybrid").hints
        model = memory.embedder
    if text and model:
        out(f"\n# Meaning comes from {model.model}, on this machine.")
    elif text:
        none = "There is no embedding model, so this demo finds memories by their words only."
        out("\n" + "\n".join(f"# {line}" for line in (none, *hints)))
    steps: list[dict[str, object]] = []
    ids: dict[str, str] = {}
    for line in SCRIPT.strip().splitlines():
        found = _LINE.fullmatch(line)
        assert found is not None
        condition, name, typed = found.groups()
        last = str(steps[-1]["output"]) if steps else ""
        if condition == ("words" if model else "meaning") or (
            condition == "unless replaced" and "replaces" in last
        ):
            continue
        if typed.startswith("# "):
            if text:
                out(f"\n{typed}")
            continue
        typed = typed.format(**ids)
        shown = io.StringIO()
        with redirect_stdout(shown), redirect_stderr(shown):
            options = ["--database", place["database"], "--project", place["project"]]
            code = run([*shlex.split(typed), *map(str, options)])
        said = shown.getvalue().replace(str(folder), "…").rstrip()
        steps.append({"command": f"bethink {typed}", "output": said, "exit": code})
        if text:
            out("\n" + style(f"$ bethink {typed}", "bold") + f"\n{said}")
        id = re.search(r"\b[0-9a-f]{8}(?:-[0-9a-f-]+)?\b", said)
        if name and id:
            with open_memory(inside) as memory:  # enough of the id to name it later too
                ids[name] = memory.resolve(id[0].rstrip("-"))[:13]
    return steps
