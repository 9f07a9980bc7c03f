"""Takes out what must not be remembered: `<private>` blocks, and secrets recognised by the shape of their value.

Precision comes first. A rule names a value that only a secret has (a vendor's prefix and length), or a place where
only a secret stands (`password = …`, `scheme://user:…@host`); how random a text looks is never a reason by itself,
because hashes, ids and images look random too. What is found becomes `[REDACTED]` or `[REDACTED:kind]`.

Every rule hangs on literal strings. A few clues that those share are looked up first, so a text without them costs next
to nothing, and no pattern can start again inside a run that it has already read: the time is linear, whatever the text.

This module knows no store, no settings and no memory. It does not know whether a secret is live, it decodes nothing
(base64, percent escapes), and it does not see a password that is told without naming it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

Check = Callable[["re.Match[str]"], bool]
Span = tuple[int, int, str]

PRIVATE = "[REDACTED]"
PASSES = (
    6  # Replacing one secret can uncover the edge of another. Two settle all that was ever tried.
)
SHORTEST = 7  # characters of a text that can hold a secret: `://:p@h`


@dataclass(frozen=True, slots=True)
class Redacted:
    """The text that may be kept, and how much was taken out of it."""

    text: str
    private: int = 0
    secrets: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing but markers, punctuation and white space is left."""
        return not any(character.isalnum() for character in _marker().sub("", self.text))


def redact(text: str) -> Redacted:
    """The text without its private blocks and secrets. Redacting twice changes nothing more."""
    private = secrets = 0
    for _ in range(PASSES if len(text) >= SHORTEST else 0):
        text, blocks = _drop_private(text)
        text, found = _drop_secrets(text)
        private, secrets = private + blocks, secrets + found
        if not blocks and not found:
            break
    return Redacted(text, private, secrets)


def redact_value(value: Any) -> tuple[Any, int]:
    """The same for metadata and tags: every string inside dicts, lists and tuples, and how many were taken out.

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
            if (
                isinstance(key, str)
                and isinstance(item, str)
                and kept == item
                and _named_secret(key, item)
            ):
                kept, in_item = f"[REDACTED:{_key_kind(key)}]", 1
            result[name] = kept
            total += in_name + in_item
        return result, total
    if isinstance(value, list | tuple):
        pairs = [redact_value(item) for item in value]
        items = [item for item, _ in pairs]
        return (tuple(items) if isinstance(value, tuple) else items), sum(
            count for _, count in pairs
        )
    return value, 0


def redact_name(name: str) -> str:
    """A name by which something is found again (a path, the id of a session) without its secrets.

    Where one was taken out, a short digest of the whole keeps two such names apart.
    """
    redacted = redact(name).text
    if redacted == name:
        return name
    return f"{redacted}~{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def unmarked(text: str) -> str:
    """A text without the marks of what was taken out: they do not tell what stood there."""
    return _marker().sub(" ", text)


@cache
def _marker() -> re.Pattern[str]:
    return re.compile(r"\[REDACTED(?::[a-z0-9-]+)?\]")


@cache
def _tag() -> re.Pattern[str]:
    return re.compile(r"<(/?)private[ \t]{0,8}>", re.IGNORECASE)


def _drop_private(text: str) -> tuple[str, int]:
    """Blocks become a marker, stray closing tags vanish. An opening tag that is never closed hides all that follows."""
    blocks, strays = _private_spans(text) if "<" in text else ([], [])
    if not blocks and not strays:
        return text, 0
    changes = [(start, end, PRIVATE) for start, end in blocks]
    joined = _replace(text, changes + [(start, end, "") for start, end in strays])
    if strays and any(_private_spans(joined)):
        # Dropping `</private>` out of `<pri</private>vate>` makes a new tag; a marker keeps the halves apart.
        joined = _replace(text, changes + [(start, end, PRIVATE) for start, end in strays])
    return joined, len(blocks)


def _private_spans(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    open_tags: list[re.Match[str]] = []
    blocks: list[tuple[int, int]] = []
    strays: list[tuple[int, int]] = []
    for tag in _tag().finditer(text):
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
            return [*kept, (tag.start(), len(text))], [
                stray for stray in strays if stray[0] < tag.start()
            ]
    return blocks, strays


def _replace(text: str, changes: list[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, new in sorted(changes):
        pieces += (text[at:start], new)
        at = end
    return "".join([*pieces, text[at:]])


def _drop_secrets(text: str) -> tuple[str, int]:
    folded = _folded(text)
    possible = _possible(text, folded)
    if not possible:
        return text, 0
    found = sorted(
        (start, end, order, kind)
        for order in possible
        for start, end, kind in _rules()[order].spans(text, folded)
    )
    merged: list[tuple[int, int, int, str]] = []
    for start, end, order, kind in found:
        if merged and start < merged[-1][1]:
            # Overlapping finds are one secret. The rule that stands first in the table is the more precise one.
            first, last, other, name = merged.pop()
            order, kind = min((order, kind), (other, name))
            start, end = first, max(last, end)
        merged.append((start, end, order, kind))
    if not merged:
        return text, 0
    return _replace(
        text, [(start, end, f"[REDACTED:{kind}]") for start, end, _, kind in merged]
    ), len(merged)


def _possible(text: str, folded: str) -> set[int]:
    """The numbers of the rules of which a literal occurs."""
    possible: set[int] = set()
    for clue, fold, literals in _clues():
        lookup = folded if fold else text
        if clue in lookup:
            possible.update([order for literal, order in literals if literal in lookup])
    return possible


@cache
def _clues() -> tuple[tuple[str, bool, tuple[tuple[str, int], ...]], ...]:
    """Each clue, whether it is looked up in small letters, and the literals that contain it with the numbers of their rules."""
    clues: dict[tuple[str, bool], list[tuple[str, int]]] = {}
    for order, rule in enumerate(_rules()):
        for literal in rule.starts or (rule.needs,):
            clue = next((shared for shared in _SHARED if shared in literal), literal)
            clues.setdefault((clue, rule.fold), []).append((literal, order))
    return tuple((clue, fold, tuple(literals)) for (clue, fold), literals in clues.items())


@dataclass(frozen=True, slots=True)
class Rule:
    """A secret that begins with one of `starts`, found by literal search, and goes on as `pattern` says.

    A rule without `starts` is a plain search, tried only when `needs` occurs. Where the pattern has a group that
    took part, only that group is the secret and the rest stays readable. A rule without a kind takes it from the
    key that its value was given to.
    """

    kind: str
    starts: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Check
    fold: bool = False
    bound: bool = True
    needs: str = ""

    def spans(self, text: str, folded: str) -> Iterator[Span]:
        for match in self.matches(text, folded if self.fold else text):
            if self.check(match):
                start, end = match.span(match.lastgroup or 0)
                kind = self.kind or _key_kind(match[0][: start - match.start()])
                yield start, end - (0 if self.kind else _loose_end(match)), kind

    def matches(self, text: str, lookup: str) -> Iterator[re.Match[str]]:
        if not self.starts and self.needs in text:
            yield from self.pattern.finditer(text)
        for literal in self.starts:
            at = lookup.find(literal)
            while at >= 0:
                match = (
                    self.pattern.match(text, at) if not self.bound or _at_edge(text, at) else None
                )
                if match:
                    yield match
                at = lookup.find(literal, match.end() if match else at + 1)


@cache
def _ascii_lower() -> dict[int, int]:
    return {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def _folded(text: str) -> str:
    # Positions must stay the same and no other letter may become an ASCII one. Only the dotted capital I and the Kelvin
    # sign break that, so str.lower(), which is ten times faster than translate(), serves every text without them.
    return (
        text.lower()
        if text.isascii() or not ("\u0130" in text or "\u212a" in text)
        else text.translate(_ascii_lower())
    )


def _at_edge(text: str, at: int) -> bool:
    """Whether a token can begin here: not inside a word, but right after an escaped line break or a diff's minus."""
    before, earlier = text[max(at - 1, 0) : at], text[max(at - 2, 0) : max(at - 1, 0)]
    if before == "-":
        return not (earlier.isascii() and earlier.isalnum()) and earlier not in ("_", "-")
    if before == "_" or (before.isascii() and before.isalnum()):
        return earlier == "\\" and before in "nrt"
    return True


def _loose_end(match: re.Match[str]) -> int:
    """How many characters at the end belong to the sentence or to an escaped quote rather than to the secret."""
    value = _value(match)
    return len(value) - len(value.rstrip(_LOOSE))


_SYMBOLS = "!@#$%^&*+~?"
_LOOSE = "\\.,;:"
# What a documented or unfilled value looks like. Values of vendor rules are checked against the first, shorter list.
_EXAMPLE = r"example|your|placeholder|x{4,}|\*{3,}|\.{3}|…|<[^<>]*>|redacted"
_FILLER = _EXAMPLE + (
    r"|sample|change[-_ ]?(?:me|it|this)|\bmy[-_](?:api|app|secret|token|password|key)|dummy|fake|insert|replace[-_]?(?:me|this|with)"
    r"|todo|mock|do[-_ ]not|foo[-_]?bar|[-_]here\b|not[-_]a[-_]?real|default"
)
# Words that carry digits without being secret: "token: Base64/RS256".
_JARGON = (
    r"base ?64|sha-?\d|md5|hmac|oauth|argon2|bcrypt|scrypt|pbkdf2|utf-?8|ed25519|x\.?509|aes-?\d|[rhep]s(?:256|384|512)|http/\d"
    r"|u?int\d|float\d"
)
# Values that point at a secret or describe one, instead of being one.
_REFERENCE = (
    r"\$[A-Za-z_{(]"  # $TOKEN ${TOKEN} $(cat token) $env:TOKEN
    r"|[^{]*\{[^}]*\}|.*%\([A-Za-z_]+\)s|%[A-Za-z_]+%?$"  # {token} {{ token }} %(token)s %TOKEN% %s
    r"|\.{0,2}/[\w.-]+(?:/|$)|~/|[A-Za-z]:\\|.*://|arn:"  # paths and addresses
    r"|!(?:vault|ref|sub|env|include|secret)\b"  # YAML tags
    r"|[a-z0-9_.:#-]+(?:/[a-z0-9_.:#-]+)+$"  # vault/data/production
    r"|[A-Za-z_]\w*(?:(?:[?!]?\.|->|::)[A-Za-z_]\w*)+!?$"  # settings.api_key2
    r"|\d{4}-\d\d-\d\d|\d{1,3}(?:\.\d{1,3}){3}|0x[0-9a-fA-F]{1,16}$"  # dates, addresses, numbers
    r"|(?=.*[a-z]{4})(?:[a-z]{2,}\d{0,2}|v?\d{1,4})(?:[-_.](?:[a-z]{2,}\d{0,2}|v?\d{1,4}))+$"  # db-credentials-2
)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE if source in (_EXAMPLE, _FILLER, _JARGON) else 0)


def _value(match: re.Match[str]) -> str:
    return match[match.lastgroup or 0]


def _genuine(match: re.Match[str]) -> bool:
    return not _compiled(_EXAMPLE).search(_value(match))


def _counted(match: re.Match[str]) -> bool:
    """For shapes that a dashed English phrase could take: a real one has a digit and a letter."""
    value = _value(match)
    return _genuine(match) and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _credential(match: re.Match[str]) -> bool:
    """After `Authorization: Bearer` anything is a credential, except a placeholder and the rest of a sentence."""
    value = _value(match)
    return not _compiled(_FILLER).search(value) and (
        value != value.lower() or any(map(str.isdigit, value))
    )


def _always(_: re.Match[str]) -> bool:
    return True


def _key_block(match: re.Match[str]) -> bool:
    """Code and prose also name the first and last line of a key; between them a key has lines of base64."""
    body = match[0].split("-----")[2]
    lines = _compiled(
        r"(?:\n|\\n)[ \t]*(?![xX]{4})[A-Za-z0-9+/=]{4,}[ \t]*(?:\n|\\[nr]|\r|$)|(?![xX]{4})[A-Za-z0-9+/]{16}"
    )
    return bool(lines.search(body))


def _url_password(match: re.Match[str]) -> bool:
    """In this place even a plain word is a password; only what is clearly left open is not."""
    if match.string.endswith("github", 0, match.start()):
        return False  # fsspec writes github://organisation:repository@branch
    return not _compiled(
        r"\$[A-Za-z_{(]|[<{\[]|%(?:s$|\(|[A-Za-z_]+%)|\*\*|[xX]{3,}$|\.{3}|…"
    ).match(_value(match))


def _looks_secret(value: str, *, quoted: bool, password: bool) -> bool:
    value = value.rstrip(_LOOSE)
    if len(value) < 8 or any(map(str.isspace, value)):
        return False
    digits = sum(map(str.isdigit, value))
    letters = sum(map(str.isalpha, value))
    if (
        not letters
        or not (digits or any(map(_SYMBOLS.__contains__, value)))
        or _compiled(r"[A-Za-z]+[!?]$").match(value)
    ):
        return False
    if (
        _compiled(_FILLER).search(value)
        or _compiled(_JARGON).search(value)
        or _compiled(_REFERENCE).match(value)
    ):
        return False
    if quoted or not _compiled(r"[A-Za-z_]\w*$").match(value):
        return True
    # A bare word in code is rather a variable: `token = response1`, `password = old_password`.
    return digits >= 2 or (
        password and not _compiled(r"(?i).*(?:passw|secret|token|key|cred)").match(value)
    )


def _assigned(match: re.Match[str]) -> bool:
    before = match.string[max(match.start() - 14, 0) : match.start()]
    if before.endswith(":") and match[0].startswith("secret:"):
        return False  # the name of a secret: arn:aws:secretsmanager:region:account:secret:name
    if _compiled(
        r"(?i)(?:next|page|lock|change|publickey|idempotency|continuation|cancell?ation)[_-]?$"
    ).search(before):
        return False  # a token that marks a place instead of opening a door
    return _looks_secret(
        _value(match), quoted=match.lastgroup != "bare", password="pass" in match[0][:24].lower()
    )


def _stated(match: re.Match[str]) -> bool:
    """In prose almost anything can follow "the password is", so the value has to look like one: by its mixture, or digits inside a word."""
    value = _value(match).rstrip(_LOOSE)
    classes = [
        value != value.lower(),
        value != value.upper(),
        any(map(str.isdigit, value)),
        any(map(_SYMBOLS.__contains__, value[:-1])),
    ]
    inside = not match[0].lower().startswith(("api key", "secret", "token")) and _compiled(
        r"[a-z]{3,}\d+[a-z]{3,}$"
    ).match(value)
    return (sum(classes) >= 3 or bool(inside)) and _looks_secret(value, quoted=False, password=True)


def _typed(match: re.Match[str]) -> bool:
    """Behind a flag that databases take the password by, and containers a port."""
    return _url_password(match) and any(map(str.isalpha, _value(match)))


def _named_secret(key: str, value: str) -> bool:
    return bool(_compiled(_KEYS).search(key)) and _looks_secret(value, quoted=True, password=True)


def _key_kind(key: str) -> str:
    lowered = key.lower()
    kinds = (
        ("password", ("pass", "pwd", "kennwort", "contrase", "senha")),
        ("api-key", ("key",)),
        ("token", ("token",)),
    )
    return next((kind for kind, words in kinds if any(word in lowered for word in words)), "secret")


_PASSWORDS = (
    "password",
    "passwort",
    "kennwort",
    "passphrase",
    "passwd",
    "contraseña",
    "mot de passe",
    "senha",
)
_KEYS = (
    r"(?i)(?:password|passwd|passphrase|pwd|\bpass|_pass|secrets?|token|credentials?|api[_ -]?key"
    r"|(?:access|private|secret|auth|encryption|signing|account)[_-]?key)$"
)
_KEY_STARTS = (
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "_pass",
    "secret",
    "secrets",
    "token",
    "credential",
    "credentials",
    "apikey",
    "api_key",
    "api-key",
    "api key",
    "access_key",
    "access-key",
    "accesskey",
    "private_key",
    "privatekey",
    "auth_key",
    "encryption_key",
    "signing_key",
)
_QUOTED = r"""[bBuU]?\\{0,3}(?:"(?P<double>[^"\n]{8,})"|'(?P<single>[^'\n]{8,})'|`(?P<back>[^`\n]{8,})`)"""
# Looked at first and then taken whole: Python up to 3.11.4 mistakes groups that may not give back (`(?:…)++`).
_BARE = r"""["'`]?(?=(?P<bare>(?:[^\s"'`,;(){}\[\]<>|&\\]|&(?!\w{1,40}=)|\\(?![nrt"'\\])){8,}))(?P=bare)(?![(\[{<])"""
_VALUE = f"(?:{_QUOTED}|{_BARE})"
_ASSIGN = (
    r"""(?:[_-]?key(?:_base)?)?\d?(?:\\{0,3}["'`]\]?)?[ \t]{0,8}"""  # the end of the key: `secret_key2"]`
    r"""(?::[ \t]{0,3}[A-Za-z_][\w.]{0,30}[ \t]{0,3}=(?!=)|:=|=>|={1,3}|:|：)[ \t]{0,8}"""  # `: str =`, `=`, `:` and so on
)
_URL = r"""[^\s/?#:@"'`<>]{0,128}:(?P<secret>[^\s/?"'`<>]+)@(?!sha\d)(?=[\w\[{$%-])"""
_DASH = r"[A-Za-z0-9_-]"
_WORD = r"[A-Za-z0-9]"
_END = r"(?![A-Za-z0-9_-])"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_PEM = (
    r"(?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    # All up to the closing line, or, where the text was cut, the lines that look like a key.
    r"(?:[^-]*+(?:-(?!----)[^-]*+)*-----END [A-Z0-9 ]{0,48}KEY(?: BLOCK)?-----"
    r"|(?:(?:\\[nr]|[\s>|\"',])*[A-Za-z0-9+/=]{24,}+)+(?:(?:\\[nr]|\s)[A-Za-z0-9+/=]{1,23}+\b)?)"
)

# What many literals have in common and most texts lack, so that one look rules all of them out. A literal with none of
# these is its own clue.
_SHARED = ("_", "-", ".", "//", "=", "IA", "pass", "secret", "token", "key")
# kind, how it starts, how it goes on. Shapes are those that the vendors publish or issue, as of 2025.
_TOKENS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("aws-access-key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("aws-bedrock-key", ("ABSK",), r"[A-Za-z0-9+/]{90,}={0,2}"),
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _WORD + "{30,}"),
    ("github-token", ("github_pat_",), r"\w{22,}"),
    (
        "gitlab-token",
        (
            "glpat-",
            "gldt-",
            "glrt-",
            "glcbt-",
            "glptt-",
            "glft-",
            "glsoat-",
            "glimt-",
            "glagent-",
            "gloas-",
            "GR1348941",
        ),
        _DASH + r"{20,}(?:\.[0-9a-z]{2}\.[0-9a-z]{7,})?",
    ),
    ("stripe-key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), _WORD + "{16,}"),
    ("stripe-webhook-secret", ("whsec_",), r"[A-Za-z0-9+/]{24,}={0,2}"),
    ("google-api-key", ("AIza",), _DASH + "{35}" + _END),
    ("google-oauth", ("GOCSPX-",), _DASH + "{20,}"),
    ("google-oauth", ("ya29.",), _DASH + "{20,}"),
    ("google-oauth", ("1//0",), _DASH + "{30,}"),
    ("npm-token", ("npm_",), _WORD + "{36,}"),
    ("pypi-token", ("pypi-AgE",), _DASH + "{40,}"),
    ("huggingface-token", ("hf_", "api_org_"), _WORD + "{30,}"),
    ("twilio-key", ("SK",), "[0-9a-f]{32}" + _END),
    ("sendgrid-key", ("SG.",), _DASH + r"{16,32}\." + _DASH + "{16,64}"),
    ("mailgun-key", ("key-",), "[0-9a-z]{32}" + _END),
    ("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), "[0-9a-f]{64}"),
    ("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), "[0-9a-fA-F]{32}"),
    ("square-token", ("sq0atp-", "sq0csp-"), _DASH + "{22,}"),
    ("databricks-token", ("dapi",), r"[0-9a-f]{32}(?:-\d)?" + _END),
    ("linear-key", ("lin_api_",), _WORD + "{32,}"),
    ("notion-token", ("secret_", "ntn_"), _WORD + "{40,}"),
    ("figma-token", ("figd_",), _DASH + "{32,}"),
    ("postman-key", ("PMAK-",), "[0-9a-f]{24}-[0-9a-f]{34}"),
    ("newrelic-key", ("NRAK-",), "[A-Z0-9]{27}"),
    ("grafana-token", ("glsa_",), _WORD + "{32}_[0-9a-fA-F]{8}"),
    ("grafana-token", ("glc_",), "[A-Za-z0-9+/]{32,}={0,2}"),
    ("vault-token", ("hvs.", "hvb.", "hvr."), _DASH + "{24,}"),
    ("docker-token", ("dckr_pat_", "dckr_oat_"), _DASH + "{24,}"),
    ("doppler-token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa."), r"[A-Za-z0-9._-]{40,}"),
    ("pulumi-token", ("pul-",), "[0-9a-f]{40}" + _END),
    ("rubygems-key", ("rubygems_",), "[0-9a-f]{48}"),
    ("supabase-key", ("sbp_",), "[0-9a-f]{40}"),
    ("supabase-key", ("sb_secret_",), _DASH + "{20,}"),
    ("planetscale-token", ("pscale_tkn_", "pscale_pw_", "pscale_oauth_"), r"[A-Za-z0-9_.=-]{32,}"),
    ("groq-key", ("gsk_",), _WORD + "{40,}"),
    ("replicate-token", ("r8_",), _WORD + "{30,}"),
    ("perplexity-key", ("pplx-",), _WORD + "{40,}"),
    ("xai-key", ("xai-",), _WORD + "{60,}"),
    ("atlassian-token", ("ATATT3",), r"[A-Za-z0-9_=-]{60,}"),
    ("sentry-token", ("sntrys_", "sntryu_"), r"[A-Za-z0-9+/=_-]{40,}"),
    ("tailscale-key", ("tskey-auth-", "tskey-api-", "tskey-client-"), _DASH + "{20,}"),
    ("age-key", ("AGE-SECRET-KEY-1",), "[A-Z0-9]{58}"),
    ("heroku-key", ("HRKU-",), _DASH + "{36,}"),
)
_DASHED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("anthropic-key", ("sk-ant-",), _DASH + "{16,}"),
    ("bethink-token", ("rcl_",), _DASH + "{40,}"),
    ("openai-key", ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-"), _DASH + "{20,}"),
    ("openai-key", ("sk-",), _WORD + "{32,}"),
    (
        "slack-token",
        (
            "xoxa-",
            "xoxb-",
            "xoxc-",
            "xoxd-",
            "xoxe-",
            "xoxe.xoxp-",
            "xoxe.xoxb-",
            "xoxo-",
            "xoxp-",
            "xoxr-",
            "xoxs-",
        ),
        "[A-Za-z0-9%-]{10,}",
    ),
    ("slack-token", ("xapp-",), r"\d-[A-Za-z0-9-]{16,}"),
    ("airtable-token", ("pat",), _WORD + r"{14}\.[0-9a-f]{64}"),
    (
        "slack-webhook",
        ("hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"),
        "(?P<secret>[A-Za-z0-9/_-]{20,})",
    ),
    (
        "discord-webhook",
        ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        rf"\d{{15,22}}/(?P<secret>{_DASH}{{40,}})",
    ),
    ("teams-webhook", ("webhook.office.com/webhookb2/",), "(?P<secret>[A-Za-z0-9@/-]{60,})"),
    (
        "azure-storage-key",
        ("AccountKey=", "SharedAccessKey="),
        "(?P<secret>[A-Za-z0-9+/]{40,}={0,2})",
    ),
    ("azure-signature", ("sig=",), "(?P<secret>[A-Za-z0-9%+/_-]{40,}={0,2})"),
)
_SEARCHES: tuple[tuple[str, str, str], ...] = (
    ("telegram-token", ":AA", rf"(?<!\d)\d{{8,10}}:AA{_DASH}{{33}}{_END}"),
    # The look-ahead asks the last part for a digit and a capital: three dotted names of these lengths do occur in code.
    # The look-behind comes second because a pattern that begins with a set of characters is found many times faster.
    (
        "discord-token",
        ".",
        rf"[MNO](?<![\w-].){_DASH}{{23,27}}\.{_DASH}{{6}}\.(?={_DASH}*?\d)(?={_DASH}*?[A-Z]){_DASH}{{27,}}",
    ),
    ("mailchimp-key", "-us", r"(?<![\w-])[0-9a-f]{32}-us\d{1,2}\b"),
    ("azure-client-secret", "Q~", r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
    ("terraform-token", ".atlasv1.", rf"(?<!\w){_WORD}{{14}}\.atlasv1\.{_DASH}{{60,}}"),
)


@cache
def _rules() -> tuple[Rule, ...]:
    """All rules, precise ones first. Compiled on first use: importing this module must stay cheap."""

    def rule(
        kind: str,
        starts: tuple[str, ...],
        body: str,
        check: Check = _genuine,
        *,
        fold: bool = False,
        bound: bool = True,
    ) -> Rule:
        opening = "|".join(map(re.escape, starts))
        return Rule(
            kind,
            starts,
            re.compile(f"(?:{opening}){body}", re.IGNORECASE if fold else 0),
            check,
            fold,
            bound,
        )

    jwt = (
        _DASH
        + r"{5,}\.(?:eyJ"
        + _DASH
        + r"{5,}\."
        + _DASH
        + r"{8,}|"
        + _DASH
        + r"*(?:\."
        + _DASH
        + "{2,}){3})"
    )
    equals = r"""\\{0,3}["']?[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}\\{0,3}["']?"""
    scheme = r"(?:bearer|basic|token|apikey|bot)[ \t]{1,4}"
    curl = r"""(?:(?!curl)[^\n]){0,200}?[ \t](?:-u|--user)[ =]?["']?[^\s:"'=]{1,64}:(?P<secret>[^\s"']{4,})"""
    # What the password is for may stand between: "the password for the admin account is …".
    prose = r"""(?:[ \t]+(?!(?:is|was|ist)\b)[^\s.,;:!?]{1,30}){0,6}[ \t]+(?:is|was|ist|war|lautet|est|es|era|è|é)[ \t]{0,2}:?[ \t]+["'`]?"""
    typed = r"""(?:'(?P<single>[^'\n]{4,})'|"(?P<double>[^"\n]{4,})"|(?P<secret>[^\s"'$-][^\s"']{3,}))"""
    told = r"""(?P<bare>[^\s"'`<>()]{7,}[^\s"'`<>().,;:?])"""
    netrc = r"\s{1,8}\S{1,128}\s{1,8}login\s{1,8}\S{1,128}\s{1,8}password\s{1,8}(?P<secret>\S{4,})"
    return (
        rule("private-key", ("-----BEGIN ",), _PEM, _key_block, bound=False),
        rule(
            "private-key",
            ("Private-Lines: ",),
            r"\d{1,3}\s{1,2}(?P<secret>(?:[A-Za-z0-9+/=]{16,}\s?)+)",
            _always,
        ),
        *(rule(kind, starts, body) for kind, starts, body in _TOKENS),
        *(rule(kind, starts, body, _counted) for kind, starts, body in _DASHED),
        *(
            Rule(kind, (), re.compile(body), _counted, needs=needs)
            for kind, needs, body in _SEARCHES
        ),
        rule("jwt", ("eyJ",), jwt, _always),
        rule(
            "aws-secret-key",
            (
                "secret_access_key",
                "secretaccesskey",
                "secret-access-key",
                "aws_secret",
                "aws_secret_key",
            ),
            rf"{equals}(?P<secret>[A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+=])",
            _counted,
            fold=True,
            bound=False,
        ),
        rule(
            "aws-session-token",
            ("session_token", "sessiontoken"),
            rf"{equals}(?P<secret>[A-Za-z0-9/+]{{80,}}={{0,2}})",
            fold=True,
            bound=False,
        ),
        rule(
            "heroku-key",
            ("heroku",),
            rf"""[\w "'.-]{{0,30}}[:=][ \t]{{0,4}}["']?(?P<secret>{_UUID})\b""",
            fold=True,
            bound=False,
        ),
        rule("url-password", ("://",), _URL, _url_password, bound=False),
        rule(
            "authorization",
            ("authorization",),
            rf"""{equals}{scheme}(?P<secret>[^\s"'`,;<>\[\]{{}}$]{{8,}})""",
            _credential,
            fold=True,
            bound=False,
        ),
        rule(
            "bearer-token",
            ("bearer",),
            r"[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/-]{16,}={0,2})",
            _counted,
            fold=True,
        ),
        rule("password", ("curl",), curl, _url_password, fold=True),
        rule("password", ("machine",), netrc, _url_password),
        rule("", _KEY_STARTS, _ASSIGN + _VALUE, _assigned, fold=True, bound=False),
        rule(
            "",
            ("--password", "--passwd", "--passphrase", "--token", "--api-key", "--secret"),
            rf"[ \t]{{1,2}}{_VALUE}",
            _assigned,
            fold=True,
        ),
        rule("password", ("sshpass",), rf"[ \t]{{1,4}}-p[ \t]{{0,4}}{typed}", _url_password),
        rule(
            "password",
            ("redis-cli",),
            rf"(?:(?!redis-cli)[^\n]){{0,120}}?[ \t]-a[ \t]{{1,4}}{typed}",
            _url_password,
        ),
        rule(
            "password",
            ("mysql", "mysqldump", "mysqladmin", "mariadb"),
            rf"(?:(?!mysql|maria)[^\n]){{0,120}}?[ \t]-p{typed}",
            _typed,
        ),
        rule(
            "",
            (*_PASSWORDS, "api key", "secret", "token"),
            rf"""{prose}(?P<bare>[^\s"'`<>()]{{8,}})""",
            _stated,
            fold=True,
            bound=False,
        ),
        rule(
            "password",
            tuple(
                f"{word} {name}"
                for word in ("use", "using", "with", "the", "mit", "avec", "con")
                for name in _PASSWORDS
            ),
            rf"""[ \t]{{1,2}}["'`]?{told}""",
            _stated,
            fold=True,
        ),
        rule(
            "password",
            ("login", "credentials", "creds", "username", "user"),
            rf"[ \t]{{0,2}}:[ \t]{{0,4}}[\w.@+-]{{1,64}}[ \t]{{1,2}}/[ \t]{{1,2}}{told}",
            _stated,
            fold=True,
        ),
        rule(
            "password",
            ("パスワード", "密码", "密碼", "비밀번호", "пароль"),
            rf"[^\w\n]{{0,3}}(?:は|を|是|为|為|는|은|это)?[^\w\n]{{0,3}}(?=[!-~]){told}",
            _stated,
            fold=True,
            bound=False,
        ),
    )
