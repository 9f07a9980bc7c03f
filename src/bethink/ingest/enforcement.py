"""Match tool calls against enforced rules, by words of commands and by paths that they change.

Everything here is literal: a pattern `git push --force` means the program `git`, its first argument `push`, and the flag `--force`, however
the shell line wraps them. A line that cannot be parsed matches nothing.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from bethink.agents.agent import ToolCall
from bethink.enforced import EnforcedRule
from bethink.errors import InvalidInput
from bethink.ingest.commands import PREFIXES, RUNNERS
from bethink.text.shell import drop_heredocs

_LONGEST = 20_000  # characters of a shell line
_MOST_WORDS = 12  # of a pattern
_DEEPEST = 3  # shells inside of shells
_ENDS = frozenset(";&|()\n")
_SHELLS = frozenset("sh bash zsh dash ksh fish".split())
# Words of the shell behind which a command begins.
_KEYWORDS = frozenset("if then else elif while until do ! { time coproc".split())
# Options of a program, before its first argument, that take the next word as their value.
_VALUED = {
    "git": "-C -c --git-dir --work-tree --namespace",
    "gh": "-R --repo",
    "docker": "-H --host --context -c --config -l --log-level",
    "kubectl": "-n --namespace --context --kubeconfig --cluster --user",
    "helm": "-n --namespace --kube-context --kubeconfig",
    "npm": "--prefix -w --workspace -C",
    "pnpm": "-C --dir -F --filter --prefix",
    "yarn": "--cwd",
    "make": "-C -f --directory --file -j",
    "cargo": "--manifest-path --config -C",
    "terraform": "",
}
# Programs that change the files they name; `sed` and `perl` only with -i.
_CHANGERS = frozenset("rm mv cp tee truncate touch install ln chmod chown unlink shred dd".split())
_PATCHED = re.compile(
    r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.{1,1000})$", re.MULTILINE
)
_INNER = re.compile(r"\$\(([^()]{1,2000})\)|`([^`]{1,2000})`")


class SimpleCommand(NamedTuple):
    """One command of a shell line, without its prefixes, and the files that it redirects into."""

    words: tuple[str, ...]
    writes: tuple[str, ...] = ()
    directory: str = ""  # relative to that of the line, by the `cd` before it


class Match(NamedTuple):
    """An enforced rule, and the part of a call that it forbids."""

    rule: EnforcedRule
    part: str


def find_match(rules: Sequence[EnforcedRule], call: ToolCall, root: str, cwd: str) -> Match | None:
    """Return the first rule that forbids a call."""
    commands = list(list_commands(call.command)) if call.command else []
    changed = [_locate(path, root, cwd) for path in list_changed(call, commands)]
    for rule in rules:
        for pattern in rule.commands:
            words = tuple(shlex.split(pattern))
            for one in commands:
                if matches_command(words, one.words):
                    return Match(rule, shlex.join(one.words))
        for glob in rule.paths:
            for path in changed:
                if matches_path(glob, path):
                    return Match(rule, path)
    return None


# Patterns


def check_command(pattern: str) -> str:
    """Return a pattern of commands in its usual form. Raises InvalidInput for one that is too wide."""
    try:
        words = shlex.split(pattern)
    except ValueError as error:
        raise InvalidInput(
            f"The pattern '{pattern}' cannot be read: {error}.", "Close its quotes."
        ) from None
    plain = [word for word in words if not word.startswith("-")]
    if not plain or words[0].startswith("-") or not words[0].strip("*?"):
        raise InvalidInput(
            f"The pattern '{pattern}' names no program.",
            'Start with the program: --command "git push --force".',
        )
    if len(words) > _MOST_WORDS or any(set(word) & _ENDS for word in words):
        raise InvalidInput(
            f"The pattern '{pattern}' is more than one command.",
            "Give --command once for each command.",
        )
    return shlex.join(words).replace("'*'", "*")


def check_path(glob: str) -> str:
    """Return a glob of paths in its usual form. Raises InvalidInput for one that covers everything."""
    cleaned = glob.strip().replace("\\", "/").removeprefix("./")
    if not cleaned.strip("*/.?") or cleaned.startswith("../"):
        raise InvalidInput(
            f"The path '{glob}' covers too much, or lies outside the project.",
            "Name a file or folder: --path 'deploy/*.yml'.",
        )
    return cleaned


def matches_command(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Return True if a command has the program, the first arguments and all flags of a pattern."""
    if not words or not fnmatchcase(words[0].rpartition("/")[2], pattern[0]):
        return False
    wanted = [word for word in pattern[1:] if not word.startswith("-")]
    flags = [word for word in pattern[1:] if word.startswith("-")]
    arguments = list(_list_arguments(words))
    if not all(_has_flag(flag, words[1:]) for flag in flags):
        return False
    if wanted and not (arguments and fnmatchcase(arguments[0], wanted[0])):
        return False
    rest = iter(arguments[1:])
    return all(any(fnmatchcase(word, want) for word in rest) for want in wanted[1:])


def _list_arguments(words: Sequence[str]) -> Iterator[str]:
    """The arguments of a command without options, and without the values of leading ones."""
    valued = frozenset(_VALUED.get(words[0].rpartition("/")[2], "").split())
    skip, started = False, False
    for word in words[1:]:
        if skip:
            skip = False
        elif word.startswith("-") and word != "-":
            skip = not started and word in valued
        else:
            started = True
            yield word


def _has_flag(flag: str, words: Sequence[str]) -> bool:
    """Return True if a flag is among words: `--force=x` has `--force`, and `-rfv` has `-fr`."""
    name, equals, value = flag.partition("=")
    if equals:
        pairs = zip(words, [*words[1:], ""], strict=True)
        return any(
            fnmatchcase(word, flag) or (word == name and fnmatchcase(after, value))
            for word, after in pairs
        )
    if flag.startswith("--"):
        return any(word == flag or word.startswith(f"{flag}=") for word in words)
    letters = {letter for word in words if re.fullmatch(r"-[A-Za-z]+", word) for letter in word[1:]}
    return flag in words or set(flag[1:]) <= letters


def matches_path(glob: str, path: str) -> bool:
    """Return True if a path lies under a glob; one without a slash means that name in any folder."""
    if glob.endswith("/"):
        glob += "*"
    if "/" not in glob:
        return any(fnmatchcase(part, glob) for part in path.split("/"))
    return fnmatchcase(path, glob) or fnmatchcase(path, f"{glob.rstrip('/')}/*")


# Calls


def list_changed(call: ToolCall, commands: Sequence[SimpleCommand]) -> Iterator[str]:
    """The files that a call changes: by an editing tool, by a patch, or by a shell."""
    if call.file and call.changes:
        yield call.file
    if "*** Begin Patch" in call.command:
        yield from (path.strip() for path in _PATCHED.findall(call.command))
    for one in commands:
        named = [*one.writes]
        program = one.words[0].rpartition("/")[2] if one.words else ""
        edits = program in ("sed", "perl") and any(
            word.startswith(("-i", "--in-place", "-pi")) for word in one.words
        )
        if program in _CHANGERS or edits or one.words[:2] in (("git", "rm"), ("git", "mv")):
            named += [word.removeprefix("of=") for word in one.words[1:] if word[:1] != "-"]
        if program == "cp":
            named = [*one.writes, *named[-1:]]
        yield from (posixpath.join(one.directory, name) for name in named)


def _locate(path: str, root: str, cwd: str) -> str:
    """A path relative to the project's folder, or absolute if it lies elsewhere."""
    path, root = path.replace("\\", "/"), root.replace("\\", "/").rstrip("/")
    full = posixpath.normpath(posixpath.join(cwd or root, path))
    return full[len(root) + 1 :] if full.startswith(f"{root}/") else full


def list_commands(line: str, depth: int = 0) -> Iterator[SimpleCommand]:
    """The commands of a shell line, in order: behind `&&` and pipes, in loops, in `$(…)` and in `sh -c`."""
    line = drop_heredocs(line[:_LONGEST])
    try:
        tokens = _split_tokens(line)
    except ValueError:  # an open quote
        return
    directory = ""
    words: list[str] = []
    writes: list[str] = []
    redirects, comment = "", False
    for token in [*tokens, "\n"]:
        if comment:
            comment = token != "\n"
            if comment:
                continue
        if token and set(token) <= _ENDS:
            for one in _unwrap(words, depth):
                if one[:1] in (("cd",), ("pushd",)) and len(one) > 1:
                    directory = posixpath.normpath(posixpath.join(directory, one[1]))
                yield SimpleCommand(one, tuple(writes), directory)
            words, writes, redirects = [], [], ""
        elif token and set(token) <= {*"<>&|"} and set(token) & {*"<>"}:
            redirects = "file" if ">" in token and not token.endswith("&") else "other"
            words = words[:-1] if words[-1:] in (["1"], ["2"]) else words
        elif redirects:
            writes += [token] if redirects == "file" else []
            redirects = ""
        elif token.startswith("#") and not words:
            comment = True
        else:
            words.append(token)
    for inner in _INNER.finditer(_drop_literals(line)) if depth < _DEEPEST else ():
        yield from list_commands(inner[1] or inner[2], depth + 1)


def _drop_literals(line: str) -> str:
    """A shell line without text in single quotes or behind a backslash: none of it is run."""
    kept: list[str] = []
    quote, at = "", 0
    while at < len(line):
        char = line[at]
        if quote == "'":
            quote = "" if char == "'" else quote
        elif char == "\\":
            at += 1
        elif char == "'" and not quote:
            quote = char
        else:
            quote = ("" if quote else char) if char == '"' else quote
            kept.append(char)
        at += 1
    return "".join(kept)


def _split_tokens(line: str) -> list[str]:
    lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    return [part for token in lexer for part in _split_punctuation(token)]


def _split_punctuation(token: str) -> list[str]:
    """Take apart punctuation that belongs to different things, such as `;\\n` and `)|`."""
    mixed = len(token) > 1 and set(token) <= _ENDS | {*"<>"} and "\n" in token
    return re.findall(r"\n|[^\n]+", token) if mixed else [token]


def _unwrap(words: list[str], depth: int) -> Iterator[tuple[str, ...]]:
    """The command behind keywords, assignments, prefixes (sudo), runners (`uv run`) and shells."""
    while words and (words[0] in _KEYWORDS or re.match(r"\w{1,60}\+?=", words[0])):
        words = words[1:]
    if not words:
        return
    yield tuple(words)
    program, rest = words[0].rpartition("/")[2], words[1:]
    if depth >= _DEEPEST:
        return
    if program in _SHELLS or program == "eval":
        scripts = rest if program == "eval" else _find_script(rest)
        if scripts:
            inner = " ".join(scripts) if program == "eval" else scripts[0]
            yield from (one.words for one in list_commands(inner, depth + 1))
    elif program in PREFIXES or program == "xargs":
        while rest and (re.match(r"-|\d+[smhd]?$|\w{1,60}=", rest[0])):
            rest = rest[1:]
        yield from _unwrap(rest, depth + 1)
    elif program == "find" and "-exec" in rest:
        yield from _unwrap(rest[rest.index("-exec") + 1 :], depth + 1)
    else:
        for runner in RUNNERS:
            if tuple(words[: len(runner)]) == runner:
                behind = words[len(runner) :]
                while behind and behind[0].startswith("-"):
                    behind = behind[1:]
                yield from _unwrap(behind, depth + 1)
                return


def _find_script(words: Sequence[str]) -> list[str]:
    """The script behind `-c` or `-lc` of a shell."""
    for at, word in enumerate(words):
        if re.fullmatch(r"-[a-z]*c", word):
            return list(words[at + 1 : at + 2])
        if not word.startswith("-"):
            break
    return []
