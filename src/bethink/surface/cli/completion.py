"""`completion`: shell completions, made from the parsers themselves so that they cannot fall behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bethink.surface.cli import output
from bethink.surface.cli.main import COMMANDS as ABOUT
from bethink.surface.cli.parsing import Command, build

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


class Completed(NamedTuple):
    """What can be completed after one command."""

    name: str
    about: str
    options: list[tuple[tuple[str, ...], str]]  # spellings, help
    values: dict[str, list[str]]  # option → its values
    words: list[str]  # what its positional argument may be


def completion_options(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def completion(args: Namespace) -> None:
    """Print completions of commands, options and values for a shell.

    Examples:
      source <(bethink completion bash)
      bethink completion zsh > ~/.zfunc/_bethink
      bethink completion fish > ~/.config/fish/completions/bethink.fish
    """
    script = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell](
        [completed(name) for name in ABOUT]
    )
    output.show(args, {"shell": args.shell, "script": script}, lambda: output.out(script))


def completed(name: str) -> Completed:
    from bethink.types import KINDS

    _, parser = build(name)
    options: list[tuple[tuple[str, ...], str]] = []
    values: dict[str, list[str]] = {}
    words: list[str] = []
    for action in parser._actions:
        choices = [str(choice) for choice in action.choices or ()] or (
            list(KINDS) if action.metavar == "KIND" else []
        )
        if not action.option_strings:
            words += choices
            continue
        options.append((tuple(action.option_strings), action.help or ""))
        if choices:
            values |= dict.fromkeys(action.option_strings, choices)
    return Completed(name, ABOUT[name][1], options, values, words)


def bash(commands: list[Completed]) -> str:
    cases = []
    for command in commands:
        flags = " ".join(flag for spellings, _ in command.options for flag in spellings)
        inner = "".join(
            f'          {flag}) words="{" ".join(values)}" ;;\n'
            for flag, values in command.values.items()
        )
        other = " ".join([*command.words, flags])
        cases.append(
            f'      {command.name})\n        case "$before" in\n{inner}          *) words="{other}" ;;\n        esac ;;\n'
        )
    names = " ".join(command.name for command in commands)
    return f"""# bash completion for bethink
_bethink() {{
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
  case "$command" in
      "") words="{names} --help --version" ;;
{"".join(cases)}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _bethink bethink"""


def zsh(commands: list[Completed]) -> str:
    names = "\n".join(f"    {quoted(f'{command.name}:{command.about}')}" for command in commands)
    cases = []
    for command in commands:
        specs = [
            quoted(
                f"{flag}[{bracketed(help)}]"
                + (f": :({' '.join(command.values[flag])})" if flag in command.values else "")
            )
            for spellings, help in command.options
            for flag in spellings
        ]
        specs.append(
            quoted(f"*: :({' '.join(command.words)})") if command.words else "'*: :_files'"
        )
        cases.append(f"    {command.name}) _arguments " + " ".join(specs) + " ;;")
    return f"""#compdef bethink
_bethink() {{
  local -a commands
  commands=(
{names}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local name="${{words[2]}}"
  shift words
  (( CURRENT-- ))
  case "$name" in
{chr(10).join(cases)}
  esac
}}
if [ "${{funcstack[1]}}" = _bethink ]; then _bethink "$@"; else compdef _bethink bethink; fi"""


def fish(commands: list[Completed]) -> str:
    lines = ["# fish completion for bethink"]
    for command in commands:
        here = f"__fish_seen_subcommand_from {command.name}"
        lines.append(
            f"complete -c bethink -n __fish_use_subcommand -f -a {command.name} -d {quoted(command.about)}"
        )
        if command.words:
            lines.append(
                f"complete -c bethink -n {quoted(here)} -f -a {quoted(' '.join(command.words))}"
            )
        for spellings, help in command.options:
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                for flag in spellings
            )
            values = next(
                (
                    f" -x -a {quoted(' '.join(command.values[flag]))}"
                    for flag in spellings
                    if flag in command.values
                ),
                "",
            )
            lines.append(f"complete -c bethink -n {quoted(here)} {flags}{values} -d {quoted(help)}")
    return "\n".join(lines)


def quoted(text: str) -> str:
    """For a POSIX shell, zsh and fish alike: no quote inside quotes."""
    return "'" + text.replace("'", "’").replace("\\", "") + "'"


def bracketed(text: str) -> str:
    return text.replace("[", "(").replace("]", ")").replace(":", " ")


COMMANDS = {"completion": Command(completion, completion_options)}
