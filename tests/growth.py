"""How the processor time of a call grows with the length of its text, whatever else the machine is doing."""

import ast
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import bethink
from bethink.language import pattern
from bethink.language.pattern import Pattern
from bethink.text import LatePattern

FACTOR = 30  # ten times the text may cost so many times as much: linear with a wide margin, far below quadratic
FLOOR = 0.002  # seconds below which a measurement is noise
PATIENCE = 2.0  # seconds of processor time after which a call counts as endless

METHODS = ("match", "fullmatch", "search", "findall", "finditer", "sub", "subn", "split")
BASE64 = "QmV0aGluayBrZWVwcyB3aGF0IHdhcyBkZWNpZGVk/3Jl+XNlZCBhbmQgZG9uZQ0K"
SCRIPT = "!function(e,t){for(var n=0;n<t.length;n++){var r=t[n];r.a=r.b||!1,e[r._k]=(r)}}(a.b,[]);"
KILLERS = [
    *"aA0_-./\\ \n\"'`([<=#*|,:?é漢\x00",
    *("aA", "a_", "a.", "a-", "a/", "a::", "a b ", "\n\n", " \n", "aA_", "a=b&", "a('", "]("),
    *("**a", "- a\n", "# a\n", "| a ", "<a>", "A1!", "0.", "we ", "x is ", "a'", "://a@", "--a "),
    *("${", "/*", "//", "<!--", '\\"', "A b. ", "0,0-", BASE64, SCRIPT),
]  # fmt: skip
END = "\x00!"  # what no pattern wants last, so that it has to try everything


class TooSlow(Exception):
    pass


@contextmanager
def processor_limit(seconds: float) -> Iterator[None]:
    """Raises `TooSlow` when the block has used so much processor time. Patterns let signals in while they match.

    The alarm only looks at the clock of the processor: an alarm that counted processor time itself would make that clock
    coarse on some kernels.
    """
    end = time.process_time() + seconds

    def look(*_: object) -> None:
        if time.process_time() > end:
            raise TooSlow
        signal.setitimer(signal.ITIMER_REAL, seconds / 2)

    before = signal.signal(signal.SIGALRM, look)
    pending = signal.setitimer(signal.ITIMER_REAL, seconds / 2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *pending)  # the time limit of the test


def cost(action: Callable[[str], object], text: str) -> float:
    """Seconds of processor time that a call takes, at most about `PATIENCE`."""
    begin = time.process_time()
    with suppress(TooSlow), processor_limit(PATIENCE):
        action(text)
    return time.process_time() - begin


def grows_too_fast(action: Callable[[str], object], make: Callable[[int], str]) -> str:
    """Why the call is not linear in its text, or nothing."""
    before = PATIENCE / FACTOR / 2
    for size, cheap in ((40, 0.0), (1_000, 0.0002), (10_000, 0.002), (100_000, 0.0)):
        allowed = FACTOR * max(before, FLOOR)
        spent = cost(action, make(size))
        # A longer text each time: what was read before may be remembered.
        for attempt in range(1, 4):
            if spent <= allowed or spent >= PATIENCE:
                break
            spent = min(spent, cost(action, make(size + attempt)))
        if spent > allowed:
            return f"{size} characters cost {spent:.4f} s, {allowed:.4f} s allowed"
        # Whatever reads 1,000 characters for each of 1,000 characters takes at least half a millisecond, and a hundred
        # times as much for 10,000: below these times there is no need to try a longer text.
        if spent < cheap:
            return ""
        # A part that grows with the square, and that 100,000 characters would show, makes 10,000 cost twelve times as much already.
        if size == 10_000 and spent <= 11 * before:
            return ""
        before = spent
    return ""


class Used(NamedTuple):
    where: str
    pattern: re.Pattern[str]
    method: str


def modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(bethink.__path__, "bethink."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def patterns() -> tuple[list[Used], list[str]]:
    """Every pattern of the package with the method it is used by, and the places whose pattern cannot be told."""
    found: dict[tuple[re.Pattern[str], str], Used] = {}
    unknown: list[str] = []
    kept: list[Used] = []
    for module in modules():
        if module is pattern:
            continue  # what it compiles is declared elsewhere
        for used in used_in(module):
            if isinstance(used, str):
                unknown.append(used)
            else:
                found.setdefault((used.pattern, used.method), used)
        for name, value in vars(module).items():
            kept += [Used(f"{module.__name__}.{name}", *one) for one in held(value)]
    used_somewhere = {pattern for pattern, _ in found}
    for used in kept:
        if used.pattern not in used_somewhere:
            found.setdefault((used.pattern, used.method), used)
    return [used for used in found.values() if isinstance(used.pattern.pattern, str)], unknown


def held(value: Any, depth: int = 4) -> Iterator[tuple[re.Pattern[str], str]]:
    """Every pattern in a value, with the method it is used by."""
    if isinstance(value, re.Pattern):
        yield value, "search"
    elif isinstance(value, LatePattern):
        yield value.compiled, "search"
    elif isinstance(value, Pattern):
        yield value.compiled, "match" if value.start else "search"
    elif depth and isinstance(value, dict | list | tuple | set | frozenset):
        for item in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from held(item, depth - 1)


def used_in(module: Any) -> Iterator[Used | str]:
    """Each pattern that a module uses, and each call whose pattern cannot be told."""
    tree = ast.parse(Path(str(module.__file__)).read_text())
    for node, names in calls(tree, dict(vars(module))):
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in METHODS:
            continue
        place, owner = f"{module.__name__}:{node.lineno}", function.value
        certain = isinstance(owner, ast.Call) and "compile" in ast.unparse(owner.func)
        if isinstance(owner, ast.Name) and owner.id == "re":
            certain = True
            given = [*node.args, *(word.value for word in node.keywords)]
            first, *more = (evaluated(argument, names) for argument in given)
            flags = [value for value in more if isinstance(value, re.RegexFlag)]
            found = [re.compile(first, *flags[:1]) if isinstance(first, str) else first]
        elif isinstance(owner, ast.IfExp):
            found = [evaluated(owner.body, names), evaluated(owner.orelse, names)]
        else:
            found = [evaluated(owner, names)]
        found = [one.compiled if isinstance(one, LatePattern) else one for one in found]
        told = [Used(place, one, function.attr) for one in found if isinstance(one, re.Pattern)]
        yield from told
        if certain and not told:
            yield f"{place} {ast.unparse(node)[:90]}"


def calls(node: ast.AST, names: dict[str, Any]) -> Iterator[tuple[ast.Call, dict[str, Any]]]:
    """Every call, with the names that a reader knows there: those of the module and what was assigned before."""
    for child in ast.iter_child_nodes(node):
        inner = dict(names) if isinstance(child, ast.FunctionDef) else names
        yield from calls(child, inner)
        if isinstance(child, ast.Call):
            yield child, names
        if (
            isinstance(child, ast.Assign)
            and len(child.targets) == 1
            and isinstance(child.targets[0], ast.Name)
            and not isinstance(node, ast.Module)
        ):
            value = evaluated(child.value, names)
            if isinstance(value, str | re.Pattern):
                names[child.targets[0].id] = value


def evaluated(node: ast.expr, names: dict[str, Any]) -> Any:
    """What an expression is, if that can be told without running the program: a pattern that is compiled, named or remembered."""
    if isinstance(node, ast.Call):
        function = ast.unparse(node.func)
        plain = all(isinstance(one, ast.Constant) for one in (*node.args, *node.keywords))
        remembered = plain and names.get(function)
        if not hasattr(remembered, "cache_info") and not (node.args and "compile" in function):
            return None
    elif not isinstance(
        node, ast.Constant | ast.JoinedStr | ast.Name | ast.BinOp | ast.Attribute | ast.Subscript
    ):
        return None
    try:
        return eval(compile(ast.Expression(node), "pattern", "eval"), dict(names))
    except (NameError, AttributeError, TypeError, LookupError, ValueError):
        return None  # only known while it runs


def killers_for(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """Beginnings and repeated units made from the pattern itself: each of its repeats, behind what must stand before it."""
    found: list[tuple[str, str]] = []
    walk(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG), "", found)
    return list(dict.fromkeys((head[:200], unit) for head, unit in found if unit))[:12]


def walk(parsed: Any, head: str, found: list[tuple[str, str]]) -> str:
    """A text that the parsed pattern may match, behind `head`; notes each repeat on the way."""
    text = ""
    for operation, argument in parsed:
        text += step(operation, argument, head + text, found)
    return text


def step(operation: Any, argument: Any, head: str, found: list[tuple[str, str]]) -> str:
    if operation is constants.LITERAL:
        return chr(argument)
    if operation in (constants.ANY, constants.NOT_LITERAL):
        return "a"
    if operation is constants.IN:
        return member(argument)
    if operation is constants.BRANCH:
        first, *_ = [walk(branch, head, found) for branch in argument[1]]
        return first
    if operation in (constants.SUBPATTERN, constants.ATOMIC_GROUP):
        return walk(argument[-1] if operation is constants.SUBPATTERN else argument, head, found)
    if operation in (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT):
        least, most, body = argument
        unit = walk(body, head, found)
        if most > 16:
            found += [(head, unit), ("", head[-40:] + unit)]
        return unit * min(least, 40)
    return ""


def member(items: Any) -> str:
    for operation, argument in items:
        if operation is constants.NEGATE:
            return "a"
        if operation is constants.LITERAL:
            return chr(argument)
        if operation is constants.RANGE:
            return chr(argument[0])
        if operation is constants.CATEGORY:
            name = str(argument).lower()
            return " " if "space" in name and "not" not in name else "0" if "digit" in name else "a"
    return "a"


def long_text(head: str, unit: str) -> Callable[[int], str]:
    return lambda size: head + (unit * (size // len(unit) + 1))[:size] + END
