"""Work that a prompt asks for without naming it, in the words in which rules speak of it.

The judge compares texts. It does not know that lodash comes by a package manager, or that an event at midnight is about time zones. A pattern
matches only where the prompt asks for that work or reports that trouble, never on a mere mention: "center the login button" is no work on
authentication (bench/LOG.md, 2026-11-16).
"""

import re
from typing import NamedTuple

from bethink.language.openers import CONNECTIVES, FILLERS, PRAISE, YES
from bethink.language.pattern import Pattern

_FLAGS = re.IGNORECASE | re.MULTILINE


# Politeness and connectives before a request.
_ASKING = (
    rf"\W{{0,8}}(?:(?:{YES}|{PRAISE}|{FILLERS}|{CONNECTIVES}|can you|could you|would you|will you|let's|lets|go ahead and|you can|i want you to|just)"
    r"[ ,.!:;-]{1,3}){0,5}"
)


class ImpliedWork(NamedTuple):
    """A wording of prompts, and the work that it asks for."""

    work: str
    pattern: Pattern


IMPLIED_WORK = (
    ImpliedWork(
        "add a dependency with a package manager: npm, pnpm, yarn",
        Pattern(
            "adds a package with npm",
            r"\b(?:npm|yarn|pnpm|bun) (?:i|install|add)\b",
            fold=False,
            flags=_FLAGS,
            matches=("npm i lodash",),
            rejects=("npm run build",),
        ),
    ),
    ImpliedWork(
        "add a dependency with a package manager: pip, uv, poetry",
        Pattern(
            "adds a package with pip",
            r"\b(?:pip|uv|poetry) (?:install|add)\b",
            fold=False,
            flags=_FLAGS,
            matches=("uv add httpx",),
            rejects=("uv run pytest",),
        ),
    ),
    ImpliedWork(
        "add a dependency with a package manager: npm, pnpm, pip, uv",
        Pattern(
            "adds a package",
            r"\b(?:install|add|pull in|bring in|use|need)\b.{0,30}\b(?:packages?|librar(?:y|ies)|libs?|dependenc(?:y|ies))\b",
            fold=False,
            flags=_FLAGS,
            matches=("pull in a charting library",),
            rejects=("the library is open",),
        ),
    ),
    ImpliedWork(
        "add a dependency with a package manager: npm, pnpm, pip, uv",
        Pattern(
            "installs something",
            r"^\W{0,8}(?:please |can you |could you )?install (?:the )?[\w@/.-]{1,100}\W{0,8}(?:please)?\W{0,8}$",
            fold=False,
            flags=_FLAGS,
            matches=("please install ripgrep",),
            rejects=("install ripgrep and run it on src",),
        ),
    ),
    ImpliedWork(
        "choose and add a dependency",
        Pattern(
            "asks which library to use",
            r"\b(?:which|what|any|some)(?:ever)? lib(?:rary)?\b",
            fold=False,
            flags=_FLAGS,
            matches=("which lib parses dates?",),
            rejects=("the lib folder",),
        ),
    ),
    ImpliedWork(
        "deploy a release to production",
        Pattern(
            "ships a release",
            r"\b(?:deploy|release|ship|roll ?out|hotfix|(?:go|goes|going|push|get|put)\b.{0,12}\blive)\b(?! (?:logs?|notes?|scripts?|page|job|docs|branch)\b)",
            fold=False,
            flags=_FLAGS,
            matches=(
                "Deploy it",
                "let's go live",
            ),
            rejects=("read the deploy logs",),
        ),
    ),
    ImpliedWork(
        "git commit message",
        Pattern(
            "commits",
            rf"^{_ASKING}(?:git )?commit\b(?! (?:message|id|hash|history|log)\b)|\band (?:then )?(?:git )?commit\b",
            fold=False,
            flags=_FLAGS,
            matches=(
                "ok commit",
                "git commit",
                "can you commit",
                "please commit this",
                "run the tests and commit",
            ),
            rejects=("the commit message is long", "which commit broke it?"),
        ),
    ),
    ImpliedWork(
        "git branch, pull request",
        Pattern(
            "opens a pull request",
            rf"^{_ASKING}(?:(?:open|create|make|raise|file|send|submit|prepare|draft|put up|write) (?:me |us )?(?:an? |the |another |one )?(?:new |draft )?(?:prs?|pull ?requests?|merge ?requests?|mrs?)\b|push\b(?! (?:notification|.{0, 12}\blive\b)))"
            r"|\band (?:then )?(?:open|create|make|raise) (?:an? |the )?(?:pr|pull ?request|merge ?request)\b",
            fold=False,
            flags=_FLAGS,
            matches=(
                "open a PR",
                "can you create a pull request for this",
                "fix it and open a PR",
                "ok push",
            ),
            rejects=("review this PR", "push notifications are late", "the PR is open"),
        ),
    ),
    ImpliedWork(
        "lint and type errors, code style",
        Pattern(
            "fixes a lint error",
            rf"^{_ASKING}(?:fix|resolve|silence|suppress|ignore|clean up|get rid of) (?:all |the |this |these |those |that |every |remaining ){{0,2}}(?:\w+ )?(?:lint(?:er|ing)?|eslint|ruff|clippy|type(?:script)?|mypy|tsc|style) (?:errors?|warnings?|issues?|problems?|complaints?|failures?)\b",
            fold=False,
            flags=_FLAGS,
            matches=(
                "fix the lint error",
                "can you fix all eslint warnings",
                "silence this mypy error",
            ),
            rejects=("fix the login error", "the linter is slow"),
        ),
    ),
    ImpliedWork(
        "database schema change, migration",
        Pattern(
            "changes the schema of a database",
            r"\b(?:rename|drop|add|remove|alter)\b.{0,30}\b(?:columns?|index on|foreign key)\b|\b(?:new|create)\b.{0,6}\btable\b|\bmakemigrations\b|\bmigrate\b",
            fold=False,
            flags=_FLAGS,
            matches=(
                "rename the column to email",
                "create a table",
            ),
            rejects=("rename the parser",),
        ),
    ),
    ImpliedWork(
        "personal data in logs",
        Pattern(
            "logs personal data",
            r"\b(?:log|print|dump)\b.{0,40}\b(?:request|body|payload|users?|customers?|e-?mails?|names?)\b",
            fold=False,
            flags=_FLAGS,
            matches=("log the request body",),
            rejects=("log in",),
        ),
    ),
    ImpliedWork(
        "secrets, credentials",
        Pattern(
            "keeps secrets",
            r"\b(?:put|store|save|set|add|keep|where)\b.{0,30}\b(?:api[ _-]?keys?|secrets?|tokens?|passwords?)\b",
            fold=False,
            flags=_FLAGS,
            matches=("where do I put the API key?",),
            rejects=("the token is parsed",),
        ),
    ),
    ImpliedWork(
        "authentication, accounts, passwords",
        Pattern(
            "builds a sign-in",
            r"\b(?:build|make|write|add|create|implement)\b.{0,25}\b(?:log[ -]?in|sign[ -]?in|sign[ -]?up|register|registration)\b(?! (?:button|icon|link|image))",
            fold=False,
            flags=_FLAGS,
            matches=("build a login",),
            rejects=(
                "add a login button",
                "center the login button",
            ),
        ),
    ),
    ImpliedWork(
        "money amounts: integer cents or floats, rounding",
        Pattern(
            "rounds money",
            r"\bround(?:ing|ed|s)?\b(?! (?:corners?|button))|\b\d+[.,]\d\d (?:and|but|instead|says|vs|not|too)\b|\bprice\b.{0,12}[*+]",
            fold=False,
            flags=_FLAGS,
            matches=(
                "round it to cents",
                "it says 10.50 but should not",
            ),
            rejects=("round corners",),
        ),
    ),
    ImpliedWork(
        "timestamps, time zone",
        Pattern(
            "reports a wrong time",
            r"\b(?:off by (?:one|an) hour|hours? (?:off|early|late|ahead|behind)|midnight|time ?zone|wrong day)\b",
            fold=False,
            flags=_FLAGS,
            matches=(
                "the job runs an hour early",
                "all times are off by one hour",
            ),
            rejects=("it takes hours",),
        ),
    ),
    ImpliedWork(
        "new API endpoint",
        Pattern(
            "adds an endpoint",
            r"\b(?-i:POST|PUT|PATCH) /\w|\b(?:add|new|create|write)\b.{0,15}\b(?:endpoint|route)\b",
            fold=False,
            flags=_FLAGS,
            matches=(
                "POST /orders returns 500",
                "add an endpoint for refunds",
            ),
            rejects=("post the orders",),
        ),
    ),
    ImpliedWork(
        "text of the user interface, translations",
        Pattern(
            "writes text of the interface",
            r"""\b(?:put|write|show|say|label|caption|button|headline)\b[^\n"]{0,25}["“]\w""",
            fold=False,
            flags=_FLAGS,
            matches=('put "Welcome back" in the header',),
            rejects=("write a test",),
        ),
    ),
    ImpliedWork(
        "stale cache, delay",
        Pattern(
            "reports a stale view",
            r"\bstill (?:shows?|has|have|says?|see|the)\b|\bno effect\b|\b(?:doesn't|does not|don't) (?:show|appear|come)",
            fold=False,
            flags=_FLAGS,
            matches=(
                "it still shows the old price",
                "saving has no effect",
            ),
            rejects=("still, the price is old",),
        ),
    ),
    ImpliedWork(
        "executed twice, retries, idempotent",
        Pattern(
            "reports that something ran twice",
            r"\b(?:twice|two times|the same .{0,20} again)\b",
            fold=False,
            flags=_FLAGS,
            matches=("the mail is sent twice",),
            rejects=("the mail is sent",),
        ),
    ),
)


def find_implied_work(prompt: str) -> list[str]:
    """Return the works that a prompt asks for without naming them, each once."""
    return list(dict.fromkeys(one.work for one in IMPLIED_WORK if one.pattern.holds(prompt)))
