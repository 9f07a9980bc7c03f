"""The cause that an error names, apart from its wording.

Tools word one cause differently: a refused connection, a port in use, a program, module, library or variable that is missing, an error
code. `name_causes` gives it a name, so that a fix is found again behind another command. Pure, and light: hooks need it at a failure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bethink.text import blake2b, compile_late

_LOCAL_PORT = compile_late(
    r"(?:127\.0\.0\.1|0\.0\.0\.0|::1?|\blocalhost)[\]\"')]{0,3}(?::|,? port |', )(\d{2,5})\b"
)
_ANY_PORT = compile_late(r"\bport (\d{2,5})\b|(?<=:)(\d{4,5})\b", re.IGNORECASE)
_PORT_IN_USE = compile_late(
    r"EADDRINUSE|address already in use|\bport \d{2,5} is (?:already )?(?:in use|being used|allocated|occupied)|port is already allocated|bind: .{0,40}in use",
    re.IGNORECASE,
)
_REFUSED = compile_late(
    r"ECONNREFUSED|CONNECTION_REFUSED|connection refused|was refused|actively refused|can't (?:reach|connect to)|could not connect|failed to connect|is the server running",
    re.IGNORECASE,
)
_DOCKER = compile_late(
    r"docker daemon (?:is not|at )|is the docker daemon running|error during connect: .{0,60}docker|docker desktop is not running",
    re.IGNORECASE,
)
# Something that is missing, or not understood; the group is its name.
_MISSING: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (name, compile_late(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "command",
            r"command not found: ([\w./@+-]{1,60})|command ['\"]([\w./@+-]{1,60})['\"] not found|(?:^|[\s:])([\w./@+-]{0,59}[a-z_][\w./@+-]{0,59}): (?:command not found|not found$)"
            r"|exec: \"([\w./@+-]{1,60})\": executable file not found|spawn ([\w./@+-]{1,60}) ENOENT|failed to spawn: ?[`'\"]([\w./@+-]{1,60})"
            r"|['\"]([\w./@+-]{1,60})['\"] is not recognized as|could not find [`'\"]?(protoc|cmake|pkg-config|python\d?|make|gcc|clang|ninja|java|node)\b"
            r"|the term '([\w./@+-]{1,60})' is not recognized",
        ),
        (
            "module",
            r"no module named ['\"]?([\w-]{1,80})|cannot find (?:module|package) ['\"]([^'\"./][^'\"]{0,80})['\"]|can't resolve ['\"]([^'\"./][^'\"]{0,80})['\"]"
            r"|failed to resolve import ['\"]([^'\"./][^'\"]{0,80})['\"]|could not resolve ['\"]([^'\"./][^'\"]{0,80})['\"]|cannot load such file -- ([\w/-]{1,80})"
            r"|can't find crate for [`'\"](\w{1,80})|no required module provides package ([\w./-]{1,100})|could not find gem '([\w-]{1,60})",
        ),
        (
            "library",
            r"cannot find -l([\w+.-]{1,40})|library not found for -l([\w+.-]{1,40})|error while loading shared libraries: ([\w+.-]{1,60}?)(?:\.so|:)"
            r"|[`'\"\s<]([\w/+-]{1,60}\.h)[`'\">]{0,2}(?:[: ]{1,2}(?:no such file|file not found|header)|\s*$)|\brequires (ext-\w{1,30})\b|no package '([\w+.-]{1,40})' found",
        ),
        (
            "table",
            r"no such table: ([\w.]{1,80})|relation ['\"]([\w.]{1,80})['\"] does not exist|table ['\"]([\w.]{1,80})['\"] doesn't exist",
        ),
        (
            "database",
            r"\bdatabase ['\"]([\w-]{1,80})['\"] (?:does not|doesn't) exist|unknown database '([\w-]{1,80})",
        ),
        (
            "host",
            r"could not translate host name ['\"]([\w.-]{1,80})|getaddrinfo (?:ENOTFOUND|EAI_AGAIN) ([\w.-]{1,80})|could not resolve host: ([\w.-]{1,80})",
        ),
        (
            "java",
            r"(?:release|source|target) version (\d{1,2}) not supported|invalid target release: (\d{1,2})|unsupported class file major version (\d\d)",
        ),
    )
)
_VARIABLE = compile_late(r"\b(?!ERR_)([A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9])\b")
_IS_UNSET = compile_late(
    r"(?i:not (?:set|found|defined|provided|configured)|required|missing|undefined|unset|must be set|unbound|KeyError|no value)"
)
# Codes that tools give their errors, apart from those that only say what their wording says with a name in it.
_CODE = compile_late(
    r"\b(ERR_(?!MODULE_NOT_FOUND|CONNECTION|PNPM_FETCH|PNPM_RECURSIVE|PNPM_LIFECYCLE)[A-Z_]{4,60}|GH\d{3}|P[13]\d{3}(?<!P1012)(?<!P1001)"
    r"|(?<=npm error )E(?!NOENT|CONN|ACCES|PERM|TIMEDOUT|LIFECYCLE|XIT)[A-Z]{4,30}"
    r"|Expired(?:Token|TokenException)|InvalidClientTokenId|SignatureDoesNotMatch|error:[0-9A-F]{8}|NETSDK\d{4}|SELF_SIGNED_CERT_IN_CHAIN)\b|files were (modified) by this hook|(heap out of memory|Java heap space)"
)
# Kinds of failures by the name of their cause.
CAUSE_KINDS = {
    "port": "port in use",
    "service": "service not running",
    "command": "missing dependency",
    "module": "missing dependency",
    "library": "missing dependency",
    "variable": "environment variable",
}
# Kinds whose errors are worded alike whatever is missing.
BY_NAME = ("missing dependency", "environment variable", "wrong flag")
_TELLING = (
    5  # words of an error besides names, from which its wording alone tells its cause; by hand
)
_ROOT = 4  # words of the last clause of an error that tell its cause; by hand
# Last clauses that any command may end with.
_ANYWHERE = compile_late(
    r"no such file or directory|command not found|(?:file|directory) (?:exists|not found)|is a directory|not a directory|exit (?:status|code)|see .{1,60} for|try '"
    r"|expected .{1,40} (?:but|got|to)\b|.{0,60}\b(?:assert|tests? failed)"
)
_QUOTED = compile_late(r"(?<![a-z])'[^']{1,200}'")
# Names of things: words with a sign inside, and what is alone in brackets.
_NAME = compile_late(r"[^\s'…]{0,100}\w[.@/:#=_-]\w[^\s'…]{0,100}|[(\[][^\s()\[\]]{1,80}[)\]]")
# What a test runner or a logger puts before an error.
_LABEL = compile_late(r"^(?:e\s{1,6}|#\) |\[[^\]]{1,60}\]:? )+")


def name_causes(job: str, kind: str, error: str, normal: str) -> tuple[str, ...]:
    """Return names of the cause of an error, the most exact first; none if only its wording is known."""
    named = _name_cause(job, kind, error)
    if named:
        return named
    blank = re.sub(
        r"^[\w.]{1,80}(?:error|exception): ", "", _QUOTED.sub("'…'", strip_label(normal))
    )
    unnamed = _NAME.sub("…", blank)
    names = [] if kind in BY_NAME else [_hash_wording(blank)]
    names += [_hash_wording(unnamed), _hash_root(unnamed)]
    return tuple(dict.fromkeys(one for one in names if one))


def strip_label(normal: str) -> str:
    """Drop what a test runner or a logger puts before an error."""
    return _LABEL.sub("", normal)


def name_text(job: str, normal: str) -> str:
    """Return a name of what an error says, without the label of a runner or a logger."""
    return _hash("said", f"{job.partition(' ')[0]}\0{strip_label(normal)}")


def name_tool_cause(tool: str, normal: str) -> tuple[str, ...]:
    """Return the name of an error that every tool of one server may give."""
    server = re.match(r"mcp_{1,2}[^_]\w{0,60}?_{1,2}(?=[a-z])", tool)
    return (_hash("server", f"{server[0]}\0{normal}"),) if server else ()


def _hash_wording(blank: str) -> str:
    blank = re.sub(r"\b(\w{4,60})s\b", r"\1", blank)
    words = re.findall(r"[^\W\d_]{3,}", re.sub(r"<\w+>", "", blank))
    return _hash("like", blank) if len(words) >= _TELLING else ""


def _hash_root(blank: str) -> str:
    """Return the name of the last clause of an error that says something: what lies behind `a: b: c`."""
    clauses = blank.split(": ")
    for at in range(len(clauses) - 1, 0, -1):
        text = ": ".join(clauses[at:])
        if len(re.findall(r"[^\W\d_]{2,}", text)) >= _ROOT and not _ANYWHERE.match(clauses[at]):
            return _hash("like", text)
    return ""


def _hash(kind: str, text: str) -> str:
    return f"{kind}:{blake2b(text.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def _name_cause(job: str, kind: str, error: str) -> tuple[str, ...]:
    if _PORT_IN_USE.search(error):
        found = _LOCAL_PORT.search(error) or _ANY_PORT.search(error)
        port = (f"port:{_first(found)}",) if found else ()
        return (*port, f"port of {job}")
    if _DOCKER.search(error):
        return ("service:docker",)
    if _REFUSED.search(error) and (found := _LOCAL_PORT.search(error)):
        return (f"service:{_first(found)}",)
    for name, pattern in _MISSING:
        if found := pattern.search(error):
            return (f"{name}:{_first(found)}",)
    unset = kind == "environment variable" or _IS_UNSET.search(error)
    if unset and (found := _VARIABLE.search(error)):
        return (f"variable:{found[1]}",)
    if found := _CODE.search(error):
        return (f"code:{_first(found)}",)
    return ()


def _first(found: re.Match[str]) -> str:
    return next(one for one in found.groups() if one)


def list_differences(before: str, after: str) -> list[str]:
    """Return the names in an error that another of the same wording does not have."""
    names, others = (
        set(re.findall(r"[\w./@:+-]{3,200}", one.lower().replace("'", " ")))
        for one in (before, after)
    )
    return sorted(one.strip(".:") for one in names - others if not re.fullmatch(r"[\d.:-]+", one))
