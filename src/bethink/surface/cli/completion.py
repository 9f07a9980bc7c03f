"""`completion`: shell completions, made from the parsers themselves so that they cannot fall behind.

Bash and zsh share one script, which zsh reads through its `bashcompinit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bethink.surface.cli import COMMANDS
from bethink.surface.cli.console import Result
from bethink.surface.cli.parsing import build, command
from bethink.types import KINDS

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

BASH = """_bethink() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="" words="" at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "${{COMP_WORDS[at]}}" in
      --database|--project|--container|--format) at=$((at + 1)) ;;
      -*) ;;
      *) command="${{COMP_WORDS[at]}}"; break ;;
    esac
  done
  case "$before" in
    --file|--output|-o|--database) COMPREPLY=($(compgen -f -- "$current")); return ;;
    --project) COMPREPLY=($(compgen -d -- "$current")); return ;;
  esac
  case "$command:$before" in
    :*) words="{names} --help --version" ;;
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _bethink bethink"""
ZSH = "#compdef bethink\nautoload -Uz bashcompinit && bashcompinit\n"


@command(
    "completion",
    """
    shell bash|zsh|fish
    """,
)
def completion(args: Namespace) -> Result:
    """Print completions of commands, options and values for a shell.

    Examples:
      source <(bethink completion bash)
      source <(bethink completion zsh)
      bethink completion fish > ~/.config/fish/completions/bethink.fish
    """
    script = "\n".join(fish_lines()) if args.shell == "fish" else bash_script()
    script = ZSH + script if args.shell == "zsh" else script
    return Result({"shell": args.shell, "script": script}, [script])


def options_of(name: str) -> tuple[list[str], dict[tuple[str, ...], tuple[str, list[str]]]]:
    """What may follow a command: the values of its positional arguments; its options, each with its help and its values."""
    words: list[str] = []
    options = {}
    for action in build(name)[1]._actions:
        values = list(map(str, action.choices or (KINDS if action.metavar == "KIND" else ())))
        if action.option_strings:
            options[tuple(action.option_strings)] = (action.help or "", values)
        else:
            words += values
    return words, options


def bash_script() -> str:
    cases = []
    for name in COMMANDS:
        words, options = options_of(name)
        for flags, (_, values) in options.items():
            if values:
                after = "|".join(f"{name}:{flag}" for flag in flags)
                cases.append(f'    {after}) words="{" ".join(values)}" ;;')
        every = [*words, *(flag for flags in options for flag in flags)]
        cases.append(f'    {name}:*) words="{" ".join(every)}" ;;')
    return BASH.format(names=" ".join(COMMANDS), cases="\n".join(cases))


def fish_lines() -> Iterator[str]:
    for name, (_, about) in COMMANDS.items():
        yield f"complete -c bethink -n __fish_use_subcommand -f -a {name} -d {quote(about)}"
        here = f"complete -c bethink -n '__fish_seen_subcommand_from {name}'"
        words, options = options_of(name)
        if words:
            yield f"{here} -f -a {quote(' '.join(words))}"
        for flags, (help, values) in options.items():
            names = (f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in flags)
            after = f" -x -a {quote(' '.join(values))}" if values else ""
            yield f"{here} {' '.join(names)}{after} -d {quote(help)}"


def quote(text: str) -> str:
    """For a shell: no quote inside quotes."""
    return "'" + text.replace("'", "’").replace("\\", "") + "'"
