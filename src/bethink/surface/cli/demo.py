"""`demo`: the product in under a minute, on a database that is thrown away. Each step is a command as a user would type it."""

from __future__ import annotations

import io
import re
import tempfile
from argparse import Namespace
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.surface.cli import output
from bethink.surface.cli.main import run
from bethink.surface.cli.parsing import Command
from bethink.surface.cli.session import opened

if TYPE_CHECKING:
    from argparse import ArgumentParser

PARAPHRASE = "how do people log in?"
QUESTION = "how do users sign in?"
FACTS = (
    (
        "add",
        "Users sign in with a magic link that is valid for 15 minutes",
        "--kind",
        "decision",
        "--tag",
        "auth",
    ),
    (
        "add",
        "The orders service stores its data in MySQL",
        "--kind",
        "architecture",
        "--importance",
        "7",
    ),
    (
        "add",
        "Never run migrations during the nightly export: the tables are locked",
        "--kind",
        "gotcha",
    ),
    (
        "add",
        "I prefer small pull requests with one commit each",
        "--kind",
        "preference",
        "--personal",
    ),
    ("add", "Should the invoice PDF be made on the server?", "--kind", "question"),
)


def demo_options(parser: ArgumentParser) -> None:
    """Takes nothing of its own."""


def demo(args: Namespace) -> None:
    """Show the product on a throw-away database: add, duplicates, search three ways, an intent, a replaced decision,
    redaction, explain. Nothing of yours is touched.

    Examples:
      bethink demo
      BETHINK_EMBEDDING=none bethink demo
      bethink demo --json
    """
    with tempfile.TemporaryDirectory(prefix="bethink-demo-") as folder:
        stage = Stage(args, Path(folder))
        meaning = stage.begin()
        stage.play(meaning)
    output.show(
        args,
        stage.steps,
        lambda: output.out(
            "\nThat was all on a throw-away database, which is gone. Next: bethink add"
        ),
    )


class Stage:
    """The throw-away database, and what was done on it."""

    def __init__(self, args: Namespace, folder: Path) -> None:
        self.args = args
        self.folder = folder
        project = folder / "shop"
        (project / ".bethink").mkdir(parents=True)  # what marks it as a project
        self.place = ["--database", str(folder / "memory.db"), "--project", str(project)]
        self.inside = Namespace(
            **{**vars(args), "database": self.place[1], "project": self.place[3], "container": None}
        )
        self.steps: list[dict[str, Any]] = []

    def begin(self) -> bool:
        """Opens the embedding model, fetching it if need be. False if there is none, and then says why."""
        with opened(self.inside, make=True) as memory:
            hints = memory.search("anything", mode="hybrid").hints
            found = memory.embedder
        if found is None:
            self.say(
                "There is no embedding model, so this demo finds memories by their words only.",
                *hints,
            )
        else:
            self.say(f"Meaning comes from {found.model}, on this machine.")
        return found is not None

    def play(self, meaning: bool) -> None:
        question = PARAPHRASE if meaning else QUESTION
        self.say(
            "Remember a few things. Kind, summary and entities are found by rules if they are not given."
        )
        ids = [self.type(*words) for words in FACTS]
        self.say("The same again is noticed" + (", and so is nearly the same." if meaning else "."))
        self.type(*FACTS[0][:2])
        if meaning:
            self.type("add", "Our users sign in by a magic link, which stays valid for 15 minutes")
        self.say("Ask in other words: by meaning and words together, by meaning, by words.")
        for mode in ("hybrid", "vector", "keyword") if meaning else ("keyword",):
            self.type("search", question, "--mode", mode, "--limit", "2")
        self.say("An intent weighs recency and use as well: what proved useful comes first.")
        self.type("vote", ids[2], "5")
        self.type(
            "search",
            "what should I know before I touch the tables?",
            "--intent",
            "frequent",
            "--limit",
            "2",
            "--seed",
            "1",
        )
        self.say("A decision that changes replaces the old one, and the chain stays visible.")
        new = self.type(
            "add",
            "Orders moved from MySQL to PostgreSQL, because MySQL locked whole tables",
            "--kind",
            "decision",
        )
        if "supersedes" not in self.steps[-1]["output"]:
            self.type("link", new, "supersedes", ids[1])
        self.type("recall", "which database does the orders service use?", "--max-tokens", "200")
        self.say(
            "What is private never reaches the disk, and neither does what looks like a secret."
        )
        self.type(
            "add",
            "The staging login is <private>ops / hunter2</private> and the token is ghp_"
            + "a1B2" * 9,
        )
        self.type("search", "staging login", "--mode", "keyword", "--limit", "1")
        self.say("Every score can be taken apart.")
        self.type("search", question, "--limit", "1", "--explain")
        self.type("stats")

    def say(self, *lines: str) -> None:
        if self.args.format == "text":
            output.out("\n" + "\n".join(f"# {line}" for line in lines))

    def type(self, *words: str) -> str:
        """Runs one command and shows it. Returns enough of the id of the memory it speaks of to name it later too."""
        typed = " ".join(["bethink", *(f'"{word}"' if " " in word else word for word in words)])
        if self.args.format == "text":
            output.out("\n" + output.style(f"$ {typed}", "bold"))
        shown = io.StringIO()
        with redirect_stdout(shown), redirect_stderr(shown):
            code = run([*words, *self.place])
        text = shown.getvalue().replace(str(self.folder), "…").rstrip()
        self.steps.append({"command": typed, "output": text, "exit": code})
        if self.args.format == "text":
            output.out(text)
        found = re.search(r"\b[0-9a-f]{8}(?:-[0-9a-f-]+)?\b", text)
        if words[0] != "add" or found is None:
            return ""
        with opened(self.inside) as memory:
            return memory.resolve(found[0].rstrip("-"))[:13]


COMMANDS = {"demo": Command(demo, demo_options)}
