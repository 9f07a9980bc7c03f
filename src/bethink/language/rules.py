"""Binding statements, statements that only report, and the work that they name."""

from typing import NamedTuple

from bethink.language.lasting import (
    ASKS_UNMARKED,
    CHOOSES,
    DECIDES,
    STANDING,
    STEP_OF_TASK,
    WANTS_WORK,
)
from bethink.language.openers import YES
from bethink.language.pattern import Pattern
from bethink.language.pointing import SPEAKS_FOR_ONESELF
from bethink.language.reports import DELIVERS
from bethink.language.requests import ASKS_FOR_WORK

BINDS = Pattern(
    "asks something of anybody who touches its subject",
    r"\b(?:never|always|don'?t|do not|must(?:n't)?|should(?:n't)?|avoid|only|instead of|rather than|no longer|not allowed|forbidden|required?"
    r"|requires|needs? to|make sure|remember to|be careful|beware|unless|whenever|before|after|generated|by hand|read-only|do not edit"
    r"|source of truth)\b",
    matches=("Never edit the lock file", "The schema is generated", "Run it only after the tests"),
    rejects=("The lock file is large",),
)
DESCRIBES_ALWAYS = Pattern(
    "describes what a program does each time, and asks for nothing",
    r"\balways (?:to\b|\w+s\b|needed|been|true)",
    matches=("run() always calls showUsage", "It is always needed"),
    rejects=("Always run the tests",),
)
LASTS_ABROAD = Pattern(
    "holds every time, in languages other than English",
    r"\b(?:nie(?:mals)?|immer|jedes mal|ab (?:jetzt|sofort)|künftig|nunca|siempre|jamais|toujours|désormais|sempre|никогда|всегда)\b"
    r"|总是|永远|绝不|从不|今后|每次|必ず|決して|今後|毎回|항상|절대|앞으로",
    matches=("Ab jetzt immer pnpm", "必ずテストを実行する"),
    rejects=("Der Test lief einmal", "Commit it"),
)
COMMANDS_PLAINLY = Pattern(
    "an order or a choice between two ways, about how to do this work",
    r"(?:^|[.:;!,] +|\bplease )(?:do not|don'?t|avoid|prefer|no)\b|\b(?:must(?:n't| not)?|is not allowed|are not allowed|is forbidden|off limits)\b"
    r"|\bwhen (?:you |we )?\w+ing?\b.{0,80}\b(?:use|run|check|ask|don'?t|do not)\b|\b(?:use|prefer)s? .{1,60}(?:, not| instead of| rather than| over)\b",
    matches=(
        "Do NOT git clone.",
        "when patching live use the sandcastle user",
        "use pnpm, not npm",
        "Nothing under dist must be edited",
    ),
    rejects=("I wanted only to test one", "Yes, add a todo about the release notes"),
)
FOR_THIS_TASK = Pattern(
    "a request or a plan for the task at hand",
    rf"^(?:{YES}|no|so|and|also|well|hm+|great|good)\b|\b(?:just|yet|this time|for now|right now|we (?:need|have|forgot)|(?:can|could|would) you"
    r"|one thing|todo)\b|\?\s*$",
    matches=("just answer, don't do anything", "Yes add a gsd todo", "Don't merge it yet"),
    rejects=("Do not edit generated files",),
)
REPORTS_EVENT = Pattern(
    "tells what happened rather than what holds",
    r"\b(?:i|i'(?:ve|m|ll|d)|we'(?:ve|re|ll)|let me|let's|was|were|had|did|found|fixed|added|removed|renamed|changed|moved|deleted|replaced"
    r"|updated|created|dropped|now|earlier|my|this session|root cause|problem|bug|suggests?|seems?|looks like|probably|maybe|fixing|broke"
    r"|broken|pushed|landed|merged|what happened|currently|today)\b",
    matches=("I fixed the parser", "The root cause is a race", "It seems slow"),
    rejects=("Never edit the lock file",),
)

DIRECTS = Pattern(
    "prefers or rejects a tool or a way of working",
    r"\b(?:prefer(?:s|red)?|use|uses|using|not|no|ask|dead|deprecated|banned|every|each|against|gone)\b",
    matches=("Use pnpm, not npm", "Poetry is dead here", "Bo prefers rebase over merge"),
    rejects=("The build takes five minutes",),
)
FORBIDDEN = Pattern(
    "the part of a statement that names what not to use",
    r"\b(?:never|not|don't|do not|no|avoid|instead of|rather than|over|stop|no longer|mustn't|isn't)\b"
    r"((?:(?!\bbut\b|\binstead\b(?! of)|\bwithout\b|\buntil\b|\bbefore\b|\bunless\b|[,;:!?(]|\. |\.$).){1,80})",
    matches=("Use pnpm, not npm", "Use rg rather than grep", "Never run terraform apply"),
    rejects=("Use uv", "Run the tests"),
)
IS_FORBIDDEN = Pattern(
    "a name, and that it is not to be used",
    r"([a-z][\w-]{1,30}(?: [a-z][\w-]{1,20})?) (?:is|are) (?:not allowed|forbidden|dead|deprecated|banned|gone|obsolete|off limits)\b",
    matches=("pip is not allowed", "kubectl apply is forbidden"),
    rejects=("pip is fine",),
)
ON_TYPE = Pattern(
    "the type of files that a command works on",
    r"\b(?:on|in|for|to (?:change|edit|read|parse|search|query)|change|edit|parse|read)\s+(?:the )?(json|yaml|toml|xml|csv|sql|markdown|html|css)\b",
    matches=("Never use grep on JSON", "use sed to change YAML"),
    rejects=("We like JSON",),
)
ON_BRANCH = Pattern(
    "the branch that a pull request or a push goes to",
    r"\b(?:against|to|into|targeting|on|onto) (?:the )?((?:main|master|release|develop|dev|staging|production|stable|next|trunk|v\d+)(?:[/-][\w.*-]{1,40})?)\b",
    matches=("Never open PRs against release", "Never force-push to main"),
    rejects=("Push it to me",),
)
SOURCE_OF = Pattern(
    "words before a name that is a source or a tool, not the subject",
    r"\b(?:from|with|by|using|use|via|through|see|run)\s+(?:the |a )?[`'\"]?$",
    matches=("generated from ", "only updated with "),
    rejects=("never edit ",),
)
BEFORE_A_TOOL = Pattern(
    "words before a name that make it a tool",
    r"(?:^|\b(?:use|using|run|running|call|with|no|not|than|of|over|old|never|avoid|the)) $",
    flags=0,
    matches=("Never use ", "rather than ", " "),
    rejects=("I ", "Use"),
)
IN_FOLDER = Pattern(
    "words before the name of a folder",
    r"\b(?:in|under|inside|below|within|of|touch|edit|modify|change|to)\s+(?:the )?[`'\"]?$",
    matches=("Migrations in ", "generated files under "),
    rejects=("and ",),
)
ON_KIND_OF_FILE = Pattern(
    "files of a kind, as what a statement is about or what it says is changed",
    r"(?:^(?:all |the |our |every |each |new |existing |merged |applied |unit |integration )*|\b(?:edit|change|modify|touch|write|rewrite|add|update)\w{0,3} (?:a |an |any |the |new |existing |old |applied |merged )*)"
    r"(tests?|migrations?|snapshots?|fixtures?|workflows?)\b(?! (?:run|suite|pass|fail))",
    matches=("Migrations that are merged must not be edited", "never edit applied migrations"),
    rejects=("Run the tests", "tests fail on Windows", "Ask before migrations"),
)


class Action(NamedTuple):
    """Work that a statement names without its command."""

    pattern: Pattern
    call: str  # the same work in the words of a prompt, for the judge
    commands: tuple[str, ...]
    needs: tuple[str, ...] = ()  # one of which the command has to hold
    whole: bool = False  # the command must not name a part to work on


_WHEN = r"\b(?:before|after|when(?:ever)?|every|each|never|don't|do not|ask(?: \w{1,12}){0,3}|must(?: not)?|until|unless|without)\s+(?:you |we |i |the agent |a |an |the |each |every |to |it )*"
_INSTALLS = ("npm install", "npm i", "npm add", "pnpm add", "pnpm install", "yarn add", "bun add")
RULED_ACTIONS = (
    Action(
        Pattern(
            "a commit",
            rf"{_WHEN}commit(?:s|ting|ted)?\b(?! hash)|\bcommit(?:s' | message| messages)|\bevery commit\b",
            matches=("Run the formatter before committing", "Commit messages are in English"),
            rejects=("Cargo.lock is committed",),
        ),
        "Commit the changes",
        ("git commit",),
    ),
    Action(
        Pattern(
            "a forced push",
            r"\bforce[- ]?push",
            matches=("Never force-push to main",),
            rejects=("Never push",),
        ),
        "Force-push the branch",
        ("git push",),
        ("-f", "--force", "--force-with-lease"),
    ),
    Action(
        Pattern(
            "a push",
            rf"{_WHEN}push(?:es|ing)?\b",
            matches=("Ask me before you push", "Don't push on Fridays"),
            rejects=("The button is pushed", "Never force-push"),
        ),
        "Push the branch",
        ("git push",),
    ),
    Action(
        Pattern(
            "a new pull request",
            r"\b(?:open|creat|mak|send|rais|fil|submit)\w{0,4}\b.{0,20}\b(?:prs?|pull requests?|merge requests?)\b"
            r"|^(?:all )?(?:prs?|pull requests?) (?:go|must|should|are|target|always|need)\b",
            matches=("Never open PRs against release", "PRs go against develop"),
            rejects=("The PR is red",),
        ),
        "Open a pull request",
        ("gh pr create", "glab mr create"),
    ),
    Action(
        Pattern(
            "a merge of a pull request",
            rf"{_WHEN}merg(?:e|es|ing)\b(?:.{{0,20}}\b(?:prs?|pull requests?)\b)?",
            matches=("Squash before merging a pull request", "Never merge a PR yourself"),
            rejects=("It was merged",),
        ),
        "Merge the pull request",
        ("gh pr merge", "git merge"),
    ),
    Action(
        Pattern(
            "a merge instead of a rebase",
            r"\brebas(?:e|es|ing)\b.{0,12}\b(?:over|not|instead of|rather than|never)\b.{0,8}\bmerg(?:e|es|ing)\b|\b(?:never|don't|do not) (?:use )?merge commits",
            matches=("Bo prefers rebase over merge",),
            rejects=("Merge, never rebase",),
        ),
        "Merge the branch with git merge",
        ("git merge", "--no-rebase"),
    ),
    Action(
        Pattern(
            "a rebase",
            r"\b(?:never|don't|do not|no|not|over|instead of|rather than) (?:a )?(?:rebas(?:e|es|ing))\b",
            matches=("Merge, never rebase shared branches",),
            rejects=("Always rebase",),
        ),
        "Rebase the branch",
        ("git rebase", "--rebase"),
    ),
    Action(
        Pattern(
            "a global installation",
            r"\binstall\w{0,6}\b.{0,24}\bglobally\b|\bglobal(?:ly)? install",
            matches=("Don't install packages globally",),
            rejects=("Install it",),
        ),
        "Install a package globally",
        (*_INSTALLS, "yarn global"),
        ("-g", "--global", "global"),
    ),
    Action(
        Pattern(
            "a new dependency",
            r"\b(?:add|install|introduc|new)\w{0,4}\b.{0,16}\b(?:dependenc(?:y|ies)|packages?|librar(?:y|ies))\b(?! globally)",
            matches=("Never add dependencies without asking",),
            rejects=("The dependency is old",),
        ),
        "Add a new dependency",
        (
            *_INSTALLS,
            *"cargo add|pip install|uv add|poetry add|go get|gem install|composer require".split(
                "|"
            ),
        ),
    ),
    Action(
        Pattern(
            "a deployment",
            rf"{_WHEN}deploy(?:s|ing|ment)?\b|\b(?:we|only|always|may|to|nobody) (?:only )?deploy(?:s|ing)?\b"
            r"|\bdeploy(?:s|ments?) (?:only|never|always|must|(?:go|run|happen|are done|are made)\b.{0,12}\b(?:via|through|by|from|on))\b",
            matches=("We deploy on Fridays only", "Deploys go only through CI"),
            rejects=("The deployment is old",),
        ),
        "Deploy it",
        ("* deploy",),
    ),
    Action(
        Pattern(
            "a new branch",
            r"\bbranches (?:\w{1,8} )?(?:start|come|are (?:cut|made|created|named|based)|off|must|should|always|never|need)\b|\bbranch off\b",
            matches=("Feature branches start from develop", "always branch off main"),
            rejects=("The branch is old", "switch to main, then to a new branch"),
        ),
        "Create a new branch",
        ("git checkout", "git switch", "git worktree"),
        ("-b", "-B", "-c", "-C", "--create"),
    ),
    Action(
        Pattern(
            "a run of all tests",
            r"\b(?:never|don't|do not|avoid|stop|without)\b.{0,30}\b(?:(?:whole|full|entire|complete) (?:test )?suite|all (?:of )?(?:the )?tests|every test)\b",
            matches=("Don't run the whole suite", "never run all the tests locally"),
            rejects=("Run the whole suite before a release",),
        ),
        "Run all tests",
        tuple(
            "pytest|tox|rspec|npm test|make test|cargo test|go test|mix test|bun test|dotnet test|gradle test|mvn test|phpunit|jest|vitest".split(
                "|"
            )
        ),
        whole=True,
    ),
    Action(
        Pattern(
            "a release",
            rf"{_WHEN}(?:publish|releas)(?:e|es|ing)?\b(?! branch)",
            matches=("Never publish without a tag", "before releasing"),
            rejects=("The release branch",),
        ),
        "Publish a release",
        ("* publish", "* release"),
    ),
)


def lasts(text: str) -> bool:
    """Return True if a statement made in a conversation is a rule, and not a request for the task at hand."""
    if LASTS_ABROAD.holds(text):
        return True
    if STANDING.holds(text) and not DESCRIBES_ALWAYS.holds(text):
        return True
    return COMMANDS_PLAINLY.holds(text) and not (
        FOR_THIS_TASK.holds(text) or REPORTS_EVENT.holds(text)
    )


def asks_for_now(text: str) -> bool:
    """Return True if what a user said is a step of the task at hand, a request for work, or a question."""
    if DELIVERS.holds(text) or STEP_OF_TASK.holds(text):
        return True
    if text.endswith("?") or ASKS_UNMARKED.holds(text):
        return True
    if (text.startswith("/") or "please" in text.lower()) and not lasts(text):
        return True
    chooses = wishes(text) or DECIDES.holds(text) or CHOOSES.holds(text)
    return bool(ASKS_FOR_WORK.holds(text)) and not chooses


def wishes(text: str) -> bool:
    """Return True if a user says how something should be, and not that it is to be done now."""
    wish = SPEAKS_FOR_ONESELF.holds(text) and not WANTS_WORK.holds(text)
    return wish and not text[:4].lower().startswith("you ")  # a rule for every time says so


def directs(text: str) -> bool:
    """Return True if a statement requires, forbids or prefers something."""
    return BINDS.holds(text) or DIRECTS.holds(text)


def binds(text: str) -> bool:
    """Return True if a statement asks something of anybody who touches its subject."""
    return BINDS.holds(text)


def reports(text: str) -> bool:
    """Return True if a statement tells what happened rather than what holds."""
    return REPORTS_EVENT.holds(text)
