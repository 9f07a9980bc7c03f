"""Remove what must not be remembered: `<private>` blocks, and secrets recognised by their shape.

Precision comes first. A rule names a value that only a secret has (a vendor's prefix and length), or a place that
only a secret has (`password = …`, `scheme://user:…@host`); how random a text looks is never a reason by itself,
because hashes, ids and images look random too. Findings become `[REDACTED]` or `[REDACTED:kind]`.

The rules are data (`data/secrets.tsv`). Every rule hangs on literal strings that are looked up first, so a text without
them costs next to nothing, and no pattern is compiled before its literal occurs. The time is linear, whatever the text.

This module knows no store, no settings and no memory. It does not know whether a secret is live, it decodes nothing
(base64, percent escapes), and it does not see a password that is not called one.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bethink.language.vocabulary import STATES_VALUE
from bethink.language.words import STOP_WORDS
from bethink.text import sha256

Match = re.Match[str]
Place = tuple[int, int]  # where something begins and ends
Change = tuple[int, int, str]  # and its replacement, or its kind

_RULES = Path(__file__).with_name("data") / "secrets.tsv"
PRIVATE = "[REDACTED]"
# Replacing one secret can uncover the edge of another. Two passes settle all that was ever tried. A bound.
PASSES = 6
SHORTEST = 7  # characters of a text that can hold a secret: `://:p@h`
# Inside a token they hide it from every pattern, but a copy without them still works: escape sequences of terminals,
# control characters, soft hyphens, zero-width and reordering characters, variation selectors, tags and combining marks.
UNSEEN = (
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
INVISIBLE = rf"\x1b\[[0-?]{{0,64}}[ -/]{{0,16}}[@-~]|{UNSEEN}"


class Redacted(NamedTuple):
    """The text that may be kept, and how much was taken out of it."""

    text: str
    private: int = 0
    secrets: int = 0

    @property
    def empty(self) -> bool:
        """Return True if nothing but markers, punctuation and white space is left."""
        return not any(character.isalnum() for character in _marker().sub("", self.text))


def redact(text: str) -> Redacted:
    """Return the text without its private blocks and secrets. Redacting twice changes nothing more."""
    private = secrets = 0
    for _ in range(PASSES if len(text) >= SHORTEST else 0):
        text, blocks = _drop_private(text)
        text, found = _drop_secrets(text)
        private, secrets = private + blocks, secrets + found
        if not blocks and not found:
            break
    return Redacted(text, private, secrets)


def redact_value(value: object) -> tuple[Any, int]:
    """Redact metadata and tags: every string inside dicts, lists and tuples; count the redactions.

    A key that names a secret is the context of its value, as in `{"password": "…"}`.
    """
    if isinstance(value, str):
        redacted = redact(value)
        return redacted.text, redacted.private + redacted.secrets
    if isinstance(value, Mapping):
        result: dict[Any, Any] = {}
        total = 0
        for key, item in value.items():
            name, in_name = redact_value(key)
            kept, in_item = redact_value(item)
            if kept == item and isinstance(key, str) and isinstance(item, str):
                marker = name_secret(key, item)
                kept, in_item = (marker, 1) if marker else (kept, 0)
            result[name] = kept
            total += in_name + in_item
        return result, total
    if isinstance(value, list | tuple):
        pairs = [redact_value(item) for item in value]
        items = [item for item, _ in pairs]
        count = sum(count for _, count in pairs)
        return (tuple(items) if isinstance(value, tuple) else items), count
    return value, 0


def name_secret(key: str, value: str) -> str:
    """Return the marker for a value that is a secret by the name of its field, or nothing."""
    if _fits("harmless", key) or not _is_secret(value, _key_kind(key), quoted=True):
        return ""
    return f"[REDACTED:{_key_kind(key)}]"


def redact_name(name: str) -> str:
    """A name by which something is found again (a path, the id of a session) without its secrets.

    Where one was taken out, a short digest of the whole keeps two such names apart.
    """
    redacted = redact(name).text
    if redacted == name:
        return name
    return f"{redacted}~{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def remove_marks(text: str) -> str:
    """A text without the marks of removed parts, which do not show what was there."""
    return _marker().sub(" ", text)


@cache
def _compile(source: str, flags: int = 0) -> re.Pattern[str]:
    """Compiled when it is first needed: importing this module must stay cheap."""
    return re.compile(source, flags)


def _marker() -> re.Pattern[str]:
    return _compile(r"\[REDACTED(?::[a-z0-9-]+)?\]")


def _replace(text: str, changes: list[Change]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, new in sorted(changes):
        pieces += (text[at:start], new)
        at = end
    return "".join([*pieces, text[at:]])


# Private blocks


def _drop_private(text: str) -> tuple[str, int]:
    """Replace private blocks by a marker and drop stray closing tags. An unclosed tag hides the rest."""
    blocks, strays = _private_spans(text) if "<" in text else ([], [])
    if not blocks and not strays:
        return text, 0
    changes = [(start, end, PRIVATE) for start, end in blocks]
    joined = _replace(text, changes + [(start, end, "") for start, end in strays])
    if strays and any(_private_spans(joined)):
        # Dropping `</private>` out of `<pri</private>vate>` makes a new tag; a marker keeps the halves apart.
        joined = _replace(text, changes + [(start, end, PRIVATE) for start, end in strays])
    return joined, len(blocks)


def _private_spans(text: str) -> tuple[list[Place], list[Place]]:
    """Return the positions of private blocks, and of closing tags that close nothing."""
    open_tags: list[Match] = []
    blocks: list[Place] = []
    strays: list[Place] = []
    for tag in _compile(r"<(/?)private[ \t]{0,8}>", re.IGNORECASE).finditer(text):
        if not tag[1]:
            open_tags.append(tag)
        elif not open_tags:
            strays.append(tag.span())
        else:
            start = open_tags.pop().start()
            while blocks and blocks[-1][0] > start:
                blocks.pop()
            blocks.append((start, tag.end()))
    for tag in open_tags:
        # `<private>` in backticks and never closed is talk about the tag, as in our own documentation.
        if text[tag.start() - 1 : tag.start()] != "`" or text[tag.end() : tag.end() + 1] != "`":
            kept = [block for block in blocks if block[0] < tag.start()]
            before = [stray for stray in strays if stray[0] < tag.start()]
            return [*kept, (tag.start(), len(text))], before
    return blocks, strays


# Secrets


class Suspect(NamedTuple):
    """A match of a rule from `start` on, of which `first` to `last` would be redacted."""

    text: str
    start: int
    first: int
    last: int
    group: str  # of the pattern, that holds the value: `bare` is one without quotes

    @property
    def value(self) -> str:
        return self.text[self.first : self.last]

    @property
    def key(self) -> str:
        return self.text[self.start : self.first]


# Positions where a rule may begin: not inside a word, but right after an escaped line break, or, at the beginning of a word, a diff's minus.
BEGINS = {
    "any": "",
    "token": r"(?<![A-Za-z0-9])|(?<=\\[nrt])",
    "word": r"(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=-)(?<![A-Za-z0-9_-]-)",
}


class SecretRule(NamedTuple):
    """One line of the data file."""

    kind: str
    where: str  # token, word, any or search
    fold: bool  # looked up in small letters
    checks: list[str]
    starts: tuple[str, ...]
    body: str

    def find(self, text: str, folded: str) -> Iterator[Suspect]:
        lookup = folded if self.fold else text
        pattern = _compile(self.body, re.ASCII | (re.IGNORECASE if self.fold else 0))
        if self.where == "search":
            for one in pattern.finditer(text):
                yield Suspect(text, one.start(), *one.span(one.lastgroup or 0), "")
            return
        begins = _compile(BEGINS[self.where])
        for literal in self.starts:
            at = lookup.find(literal)
            while at >= 0:
                begin = at + len(literal)
                match = pattern.match(text, begin) if begins.match(text, at) else None
                if match:
                    group = match.lastgroup
                    first, last = match.span(group) if group else (at, match.end())
                    yield Suspect(text, at, first, last, group or "")
                at = lookup.find(literal, max(match.end(), begin) if match else at + 1)


class SecretData(NamedTuple):
    """Content of the data file."""

    rules: list[SecretRule]  # precise ones first
    checks: dict[str, tuple[str, str]]  # what a value must not hold, and how it must begin
    words: dict[str, frozenset[str]]


@cache
def _load() -> SecretData:
    parts: dict[str, str] = {}
    data = SecretData([], {}, {})
    for line in _RULES.read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        for name in [name for name in parts if name in line]:
            line = line.replace(name, parts[name])
        match line.split("\t"):
            case [name, pattern]:
                parts[name] = pattern
            case [_, name, words]:
                data.words[name] = frozenset(words.split("|" if "|" in words else None))
            case [_, name, unwanted, wanted]:
                data.checks[name] = (unwanted or "(?!)", wanted)
            case [kind, where, checks, starts, body]:
                fold, where = where.startswith("~"), where.lstrip("~")
                several = tuple(starts.split("|"))
                data.rules.append(SecretRule(kind, where, fold, checks.split(), several, body))
    return data


def _fits(check: str, value: str) -> bool:
    """Return True if a value passes a check of the data file."""
    unwanted, wanted = _load().checks[check]
    return not _compile(unwanted).search(value) and bool(_compile(wanted).match(value))


def _drop_secrets(text: str) -> tuple[str, int]:
    found = _secrets(text)
    if _compile(UNSEEN).search(text):
        # The same once more as if they were not there; where the two overlap, it is one secret.
        places = _visible_places(text)
        bare = "".join(map(text.__getitem__, places))
        found += [
            (places[start], places[end - 1] + 1, order, kind)
            for start, end, order, kind in _secrets(bare)
        ]
    merged: list[tuple[int, int, int, str]] = []
    for start, end, order, kind in sorted(found):
        if merged and start < merged[-1][1]:
            # Overlapping finds are one secret. The rule that comes first in the table is the more precise one.
            first, last, other, name = merged.pop()
            order, kind = min((order, kind), (other, name))
            start, end = first, max(last, end)
        merged.append((start, end, order, kind))
    if not merged:
        return text, 0
    changes = [(start, end, f"[REDACTED:{kind}]") for start, end, _, kind in merged]
    return _replace(text, changes), len(merged)


def _visible_places(text: str) -> list[int]:
    """Return the positions of the visible characters."""
    places: list[int] = []
    at = 0
    for hidden in _compile(INVISIBLE).finditer(text):
        places += range(at, hidden.start())
        at = hidden.end()
    return [*places, *range(at, len(text))]


def _secrets(text: str) -> list[tuple[int, int, int, str]]:
    """Return first and last position, number of the rule and kind of everything that a rule matches."""
    folded = _fold(text)
    rules = _load().rules
    secrets = [(first, last, len(rules), kind) for first, last, kind in _columns(text, folded)]
    for order, rule in enumerate(rules):
        lookup = folded if rule.fold else text
        if not any(literal in lookup for literal in rule.starts):
            continue
        for found in rule.find(text, folded):
            if all(
                _CHECKS[check](found) if check in _CHECKS else _fits(check, found.value)
                for check in rule.checks
            ):
                loose = len(found.value) - len(found.value.rstrip(_LOOSE))
                last = found.last - (loose if rule.kind == "-" or found.group == "bare" else 0)
                kind = _key_kind(found.key) if rule.kind == "-" else rule.kind
                secrets.append((found.first, last, order, kind))
    return secrets


def _fold(text: str) -> str:
    # Positions must stay the same and no other letter may become an ASCII one. Only the dotted capital I and the Kelvin
    # sign break that, so str.lower(), which is ten times faster than translate(), serves every text without them.
    if text.isascii() or not ("\u0130" in text or "\u212a" in text):
        return text.lower()
    return text.translate({upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)})


# Columns of passwords and of keys

_CELLS = r"[|\t;,]"


def _columns(text: str, folded: str) -> Iterator[Change]:
    """Yield the cells below a column of passwords or keys in a Markdown table or CSV, and their kind."""
    if not any(word in folded for word in _load().words["in head"]):
        return
    lines = text.split("\n")
    at = 0
    column, mark, width, kind = -1, "", 0, ""
    for number, line in enumerate(lines):
        cells = line.split(mark) if mark else []
        if mark and len(cells) == width:
            start = at + sum(len(cell) + 1 for cell in cells[:column])
            value = cells[column].strip(" `\"'")
            first = start + cells[column].find(value)
            if _is_secret_cell(value, kind):
                yield first, first + len(value), kind
        elif _compile(_CELLS).search(line):
            before, after = lines[number - 1 : number], lines[number + 1 : number + 2]
            column, mark, width, kind = _find_column(line, "".join(before), "".join(after))
        else:
            mark = ""
        at += len(line) + 1


def _is_secret_cell(value: str, kind: str) -> bool:
    if kind == "password":
        return len(value) > 3 and not set(value) & set(" :-") and not _is_open(value)
    return (
        len(value) >= 16 and " " not in value and _fits("genuine", value) and _fits("mixed", value)
    )


def _find_column(line: str, before: str, after: str) -> tuple[int, str, int, str]:
    """Return the column of a head line that holds secrets, the separator, the number of cells, the kind."""
    words = _load().words
    passwords, keys = words["head"], words["key head"]
    for mark in ("|", "\t", ";", ","):
        cells = line.split(mark)
        names = [cell.strip(" \"'*").lower() for cell in cells]
        found = next((name for name in names if name in passwords), "")
        found = found or next((name for name in names if name in keys), "")
        if len(cells) < 2 or not found:
            continue
        if mark == "|":
            is_head = set(after.strip()) <= set("|:- ") and "-" in after
        else:
            above = before.strip()
            first_of_block = not above or above.startswith("```") or above.endswith(":")
            plain = all(_compile(r"[\w -]{1,30}").fullmatch(name) for name in names)
            is_head = first_of_block and plain and ", " not in line
        if is_head:
            kind = "password" if found in passwords else _key_kind(found)
            return names.index(found), mark, len(cells), kind
    return -1, "", 0, ""


# Secret values

_SYMBOLS = "!@#$%^&*+~?"
LONGEST_RUN = (
    2.5  # characters to a run of digits or of letters in what a machine drew, on average; by hand
)
LONG_WORD = 12  # letters from which on a plain word given to a variable is its secret rather than the name of one; set by hand
_LOOSE = "\\.,;:"
# A value with one of these and another word with digits is a secret, too: `yourMama1986`, `default-tango42`.
_HOLDING = r"(?i)example|your|default|sample"
_OWN = r"[A-Z][a-z]{1,20}\d\d|[a-z]{4,20}\d\d|\d[A-Z][a-z]{2,20}|(?:[A-Za-z]{1,9}\d{1,9}){3}"
_GENERIC = r"(?i)password|secret|token|api|key|user|admin|name|value|test|id(?![a-z])"


def _is_open(value: str) -> bool:
    """Return True if a value is a placeholder, a reference or a word about the secret."""
    if not _fits("filled", value) or value.lower() in _load().words["ordinary"]:
        return True
    if _fits("strong", value):
        return not _fits("literal", value)
    if not _fits("spelled", value):
        return True
    if _fills_a_placeholder(value):
        return False
    return not (_fits("original", value) and _fits("literal", value))


def _fills_a_placeholder(value: str) -> bool:
    """Return True if a person made a password out of a placeholder: `yourMama1986`, `example.winter88`."""
    rest = _compile(_HOLDING).sub(" ", value)
    if rest == value or not _fits("original", rest):
        return False
    return bool(_compile(_OWN).search(_compile(_GENERIC).sub(" ", rest)))


def _is_passphrase(value: str) -> bool:
    """Four or more words without any that make a sentence: `correct-horse-battery-staple`."""
    words = _compile(r"[ -]").split(value)
    return (
        len(words) > 3
        and all(len(word) > 2 and word.isalpha() and word[1:].islower() for word in words)
        and len({word.islower() for word in words}) == 1
        and not (STOP_WORDS | _load().words["name"]).intersection(words)
    )


def _is_secret(value: str, kind: str, *, quoted: bool, certain: bool = False) -> bool:
    """Return True if the value of such a key is the secret itself. A `certain` place holds nothing else."""
    value = value.rstrip(_LOOSE)
    if kind == "password" and _is_passphrase(value):
        return True
    if len(value) < 4 or any(map(str.isspace, value)) or _is_open(value):
        return False
    if kind == "password" and certain:
        return True
    named = not _fits("unlisted", value) and not _fills_a_placeholder(value)
    if kind == "secret" and certain and len(value) >= LONG_WORD and not named:
        return True  # JWT_SECRET=keyboardcatsings
    return not named and _looks_secret(value, kind, quoted)


def _looks_secret(value: str, kind: str, quoted: bool) -> bool:
    """Return True if a value that is no known exception has the mixture and the length of a secret."""
    digits, signs = sum(map(str.isdigit, value)), any(map(_SYMBOLS.__contains__, value))
    mixed = any(map(str.isalpha, value)) and (digits or signs)
    if kind == "password" and quoted and len(value) >= 6:
        return bool(mixed) or _fits("unnamed", value)
    if len(value) < (6 if kind == "password" else 8) or not mixed:
        return False
    if _compile(r"[A-Za-z]+[!?]$|\d+[a-z]+$").match(value):
        return False  # the end of a sentence, `90days`
    if quoted or not _compile(r"[A-Za-z_]\w*$").match(value):
        return True
    # A bare word in code is rather a variable: `token = response1`, `password = old_password`.
    return digits >= 2 or (kind == "password" and _fits("unnamed", value))


def _key_kind(key: str) -> str:
    words, lowered = _load().words, key.lower()
    for kind in ("password", "api-key", "token"):
        if any(word in lowered for word in words[kind]):
            return kind
    return "secret"


# Checks that no pattern can make


def _assigned(found: Suspect) -> bool:
    """Return True if the value assigned to a key, such as `password=…`, looks like a secret."""
    before = found.text[max(found.start - 40, 0) : found.start]
    if before.endswith(":") and found.key.startswith("secret:"):
        return False  # the name of a secret: arn:aws:secretsmanager:region:account:secret:name
    marks = r"(?i)(?:next|page|lock|change|publickey|idempotency|continuation|cancell?ation)[_-]?$"
    if _compile(marks).search(before):
        return False  # a token that marks a place instead of opening a door
    prefix = before[len(before.rstrip("_.-" + _ALNUM)) :]  # `DB_` of DB_PASSWORD
    kind, certain = _key_kind(found.key), _is_setting(found, prefix)
    return _is_secret(found.value, kind, quoted=found.group != "bare", certain=certain)


def _is_setting(found: Suspect, prefix: str) -> bool:
    """Return True for the form of a setting, in which even a plain word counts as a secret."""
    sign = found.key.rstrip("\"'`")
    named = (prefix + found.key).isupper()  # DB_PASSWORD of an environment
    named = named or ("." in prefix and found.group == "bare")  # spring.datasource.password
    joined = prefix[-1:] in ("_", ".")
    if joined and sign.rstrip().endswith(":") and _is_line(found, len(prefix)):
        return named  # a line of a composition or of a YAML file
    if joined and sign.rstrip().endswith(" =") and found.group != "bare":
        return _fits("unnamed", found.value)  # db_password = "mango"
    return named and sign.endswith("=") and not sign.endswith(("==", " ="))


def _is_line(found: Suspect, name: int) -> bool:
    """Return True if a name and its value make up a whole line."""
    start = found.text.rfind("\n", 0, found.start) + 1
    rest = found.text[found.last : found.last + 200].partition("\n")[0]
    return not found.text[start : found.start - name].strip(" \t\"'") and not rest.strip(
        "\"'` \t\r"
    )


def _flag(found: Suspect) -> bool:
    """`--password value`. A plain word is one only in a command, which has other flags, too."""
    line = found.text[max(found.start - 120, 0) : found.last + 120]
    return any(map(str.isdigit, found.value)) or line.count(" -") > 1


def _stated(found: Suspect) -> bool:
    """Return True if the value after "the password is" looks like one: quoted, mixed, or with digits."""
    value = found.value.rstrip(_LOOSE)
    if found.group == "quoted":
        return _is_secret(value, "password", quoted=True)
    kinds = [
        value != value.lower(),
        value != value.upper(),
        any(map(str.isdigit, value)),
        any(map(_SYMBOLS.__contains__, value[:-1])),
    ]
    named = not found.key.lower().startswith(("api key", "secret", "token"))
    states = STATES_VALUE.holds(found.key)
    shape = r"[A-Za-z]{3,}\d+[A-Za-z]*$" if states else r"[a-z]{3,}\d+[a-z]{3,}$"
    digits = named and _compile(shape).match(value)
    return (sum(kinds) >= 3 or bool(digits)) and _is_secret(value, "password", quoted=False)


def _jumbled(found: Suspect) -> bool:
    """Return True for a value that is no name: with signs, or of many short runs (`9f8Gh2kL`)."""
    value = found.value.rstrip(_LOOSE)
    runs = _compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+").findall(value)
    digits = any(map(str.isdigit, value)) and value != value.lower()
    signed = value[-1:] in _SYMBOLS or _fits("strong", value)
    return digits and (signed or len(runs) * LONGEST_RUN >= len(value))


def _worded(found: Suspect) -> bool:
    """Return True for words and a number that make no name: `correct-horse-9`."""
    words = _compile(r"[a-z]+").findall(found.value.lower())
    known = _load().words
    about = STOP_WORDS | known["name"] | known["measure"]
    return (
        about.isdisjoint(words)
        and not known["ordinary"].issuperset(words)
        and _fits("filled", found.value)
    )


def _spoken(found: Suspect) -> bool:
    """Return True for the password of a network: even plain words, where they end the sentence."""
    value = found.value.rstrip(_LOOSE + "!")
    ends = found.text[found.first + len(value) : found.last + 2].strip("\"'`.!, ")[:1] in ("", "\n")
    words = _compile(r"[ -]").split(value)
    known = _load().words
    about = STOP_WORDS | known["ordinary"] | known["measure"]
    plain = about.isdisjoint(map(str.lower, words))
    plausible = plain and not any(word.endswith(("ed", "able", "ly", "ing")) for word in words)
    return not _is_open(value) and plausible and (ends or any(map(str.isdigit, value)))


_ALNUM = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_CHECKS: dict[str, Callable[[Suspect], bool]] = {
    "given": lambda found: not _is_open(found.value.rstrip(_LOOSE)),
    "assigned": _assigned,
    "flag": _flag,
    "stated": _stated,
    "jumbled": _jumbled,
    "worded": _worded,
    "spoken": _spoken,
    "words": lambda found: _is_passphrase(found.value),
}
