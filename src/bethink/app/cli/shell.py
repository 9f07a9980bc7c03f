"""`completion`: completions for shells; and the tour of `demo`, commands on a temporary database."""

import io
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from bethink.app.cli import COMMANDS
from bethink.app.cli.console import Console, Result, load_operation
from bethink.app.cli.main import find_command, run
from bethink.app.cli.parser import complete
from bethink.app.operation import Arg, operation
from bethink.app.render import style
from bethink.embed import find_provider
from bethink.model import is_remote

# Each script asks `bethink completion words` what may follow the typed words.
_BASH = """
_bethink() {
  local IFS=$'\\n'
  COMPREPLY=($(bethink completion words "${COMP_LINE:0:COMP_POINT}" 2>/dev/null | cut -f1))
}
complete -o default -F _bethink bethink
""".strip()
SCRIPTS = {
    "bash": _BASH,
    "zsh": f"#compdef bethink\nautoload -Uz bashcompinit && bashcompinit\n{_BASH}",
    "fish": """
complete -c bethink -n __fish_use_subcommand -f
complete -c bethink -a '(bethink completion words (commandline -cp | string collect) 2>/dev/null)'
""".strip(),
    "powershell": """
Register-ArgumentCompleter -Native -CommandName bethink -ScriptBlock {
    param($word, $ast, $position)
    $line = $ast.ToString().PadRight($position).Substring(0, $position)
    bethink completion words $line 2>$null | ForEach-Object {
        $name, $about = $_ -split "`t"
        [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $about)
    }
}
""".strip(),
}


@operation(
    "Maintenance",
    agents="read",
    examples=(
        "source <(bethink completion bash)",
        "source <(bethink completion zsh)",
        "bethink completion fish > ~/.config/fish/completions/bethink.fish",
        "bethink completion powershell | Out-String | Invoke-Expression",
    ),
)
def completion(
    console: Console,
    shell: Annotated[str, Arg(choices=(*SCRIPTS, "words"), positional=True)],
    line: Annotated[
        str | None, Arg("with words: the typed line; lists what may follow", positional=True)
    ] = None,
) -> Result | int:
    """Print completions for a shell."""
    value: dict[str, str] = complete_line(line or "")
    lines = [f"{word}\t{about}" for word, about in value.items()]
    if shell != "words":
        value = {"shell": shell, "script": SCRIPTS[shell]}
        lines = SCRIPTS[shell].split("\n")
    if console.format != "text":
        return Result(value)
    for text in lines:
        console.out(text)  # for a shell, whatever the terminal's width
    return 0


def complete_line(line: str) -> dict[str, str]:
    """Return the words that may complete a typed line, each with its help."""
    typed = line.split()[1:]
    last = typed.pop() if typed and not line.endswith(" ") else ""
    name, _ = find_command(typed)
    found = {name: help for name, (_, _, help) in COMMANDS.items()}
    if name in COMMANDS:
        found = complete(load_operation(name), typed[-1])
    return {word: about or word for word, about in found.items() if word.startswith(last)}


# The demo. Each step is a command as a user would type it.


class Step(NamedTuple):
    """A sentence or a command line of the demo."""

    line: str
    needs: Literal["", "meaning", "words"] = ""  # an embedding model, or none
    name: str = ""  # under which the id of the added memory can be used later


DEMO = (
    Step(
        "# Remember a few things. A kind that is not given is detected: the last one is a question."
    ),
    Step(
        'add "Users sign in with a magic link that is valid for 15 minutes" --kind decision --tag auth'
    ),
    Step(
        'add "The orders service stores its data in MySQL" --kind architecture --importance 7',
        name="mysql",
    ),
    Step(
        'add "Never run migrations during the nightly export: the tables are locked" --kind gotcha',
        name="gotcha",
    ),
    Step('add "I prefer small pull requests with one commit each" --kind preference --personal'),
    Step('add "Should the invoice PDF be made on the server?"'),
    Step(
        "# The same statement, or nearly the same, is not added again; Bethink names the stored one.",
        "meaning",
    ),
    Step("# The same statement is not added again; Bethink names the stored one.", "words"),
    Step('add "Users sign in with a magic link that is valid for 15 minutes"'),
    Step('add "Our users sign in by a magic link, which stays valid for 15 minutes"', "meaning"),
    Step(
        "# Ask in other words: by meaning and words, or by meaning alone. No word is the same, so words alone find nothing.",
        "meaning",
    ),
    Step('search "how do people log in?" --mode hybrid --limit 2', "meaning"),
    Step('search "how do people log in?" --mode vector --limit 2', "meaning"),
    Step('search "how do people log in?" --mode keyword --limit 2', "meaning"),
    Step("# Ask by words.", "words"),
    Step('search "how do users sign in?" --mode keyword --limit 2', "words"),
    Step("# An intent also weighs recency and use: useful memories come first."),
    Step("vote {gotcha} 5"),
    Step('search "what could lock the tables?" --intent frequent --limit 2 --seed 1'),
    Step(
        "# A changed decision replaces the old one. The answer is the new one, and shows what it superseded."
    ),
    Step(
        'add "Orders moved from MySQL to PostgreSQL, because MySQL locked whole tables" --kind decision --supersedes {mysql}'
    ),
    Step('recall "which database does the orders service use?" --max-tokens 200'),
    Step(
        "# Private text, and text that looks like a secret, is removed before anything is stored."
    ),
    Step('add "The staging login is <private>ops / hunter2</private> and the token is ghp_{key}"'),
    Step('search "staging login" --mode keyword --limit 1'),
    Step("# Every score can be explained, signal by signal."),
    Step('search "how do people log in?" --limit 1 --explain', "meaning"),
    Step('search "how do users sign in?" --limit 1 --explain', "words"),
    Step("# Seven memories are stored: no duplicates, and the replaced one stays in the history."),
    Step("stats"),
)


def play(console: Console, folder: Path) -> list[dict[str, object]]:
    """Run the steps of the demo, show each as it comes, and return their commands and outputs."""

    def print_line(text: str) -> None:
        if console.format == "text":
            for line in text.split("\n"):
                console.out(line)

    database, project = str(folder / "memory.db"), folder / "shop"
    (project / ".bethink").mkdir(parents=True)  # marks it as a project
    inside = console._replace(database=database, project=str(project), container=None)
    with inside.open_memory(make=True) as memory:
        provider = find_provider(memory.config.embedding)
        model = memory.embedder if provider and provider.semantic else None
    about = "There is no embedding model, so this demo finds memories by their words only."
    if model:
        where = "at the endpoint of your settings" if is_remote(model) else "on this machine"
        about = f"Meaning comes from {model.model}, {where}."
    print_line(f"\n# {about}")
    steps: list[dict[str, object]] = []
    ids = {"key": "a1B2" * 9}  # looks like a secret
    for step in DEMO:
        if step.needs == ("words" if model else "meaning"):
            continue
        if step.line.startswith("# "):
            print_line(f"\n{step.line}")
            continue
        typed = step.line.format(**ids)
        shown = io.StringIO()
        with redirect_stdout(shown), redirect_stderr(shown):
            code = run([*shlex.split(typed), "--database", database, "--project", str(project)])
        output = shown.getvalue().replace(str(folder), "…").rstrip()
        steps.append({"command": f"bethink {typed}", "output": output, "exit": code})
        print_line("\n" + style(f"$ bethink {typed}", "bold") + f"\n{output}")
        if step.name:
            ids[step.name] = output.split()[1]  # as `add` shows it
    return steps
