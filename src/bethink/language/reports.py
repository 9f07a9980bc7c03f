"""Reports of work: done, under way, pushed and merged, and commits that are only bookkeeping."""

from bethink.language.openers import LEAD
from bethink.language.pattern import Pattern

# Work that is done

_DONE_VERB = (
    r"(?:[a-z]{3,}ed|made|built|wrote|written|rewrote|rewritten|split|sent|set|cut|put|done)\b"
)
REPORTS_WORK = Pattern(
    "reports something as done",
    rf"^(?:done\W{{1,4}})?(?:(?:all|both|also) )?{_DONE_VERB}"
    rf"|\b(?:i|we|i've|we've|have|has|been|was|were|now|all) (?:(?:also|now|then|just) )?{_DONE_VERB}"
    r"|\b(?:resolved|fixed|committed|pushed|merged|updated|inserted|opened|added|removed|renamed|migrated|implemented|shipped|passes)\b",
    matches=("Renamed the parser", "Done — all tests pass now fixed", "I've also built the image"),
    rejects=("The parser is slow", "Renaming the parser", "We need a red button"),
)
_CODE_VERB = (
    r"(?:(?:add|updat|remov|renam|chang|correct|replac|extract|mov|trimm?|reword|adjust|bump|wir|revert|creat|implement|refactor|simplif|document"
    r"|sort|link|cross-referenc|rewrit|renumber|switch|split|merg|delet|extend|convert|register|introduc|dropp?|harden|clean|patch|expos|improv|configur|enabl|disabl|us|open|fix|stopp|restart)(?:ed|ied|ten|d)|made|appl(?:y|ied)|built|wrote|re-?ran|set)\b(?!:)"
)
REPORTS_OWN_WORK = Pattern(
    "an agent reports its own work without a reason",
    rf"(?:(?:done|[^.;\n]{{2,60}}?(?::| [—–-]))\W{{1,3}})?(?:i(?:'ve| have)? )?(?:also |now |just )?{_CODE_VERB}(?!.*\b(?:because|since|so that|otherwise)\b)",
    start=True,
    matches=(
        "I've renamed the parser",
        "Done. I also removed the flag",
        "Added a guard to the keyfunc",
        "Fix: Applied `cargo fmt` to 8 files",
        "Borrow checker fixes: Used `as_ref`",
        "Animation on restore — Added a ref",
    ),
    rejects=(
        "I removed the flag because nobody uses it",
        "We renamed the parser",
        "The added rows are never sorted",
        "Decision: we switched to Redis",
        "Fixed: the runner now sets TZ",
    ),
)
DIAGNOSES = Pattern(
    "an agent explains a failure that it is working on",
    r"\b(?:root causes?|(?:the|clear|real|actual|likely) cause|caused by|the culprit|(?:the|this|that|its|another|one|only|actual|real) (?:problem|issue|bug|failure|error|symptom) (?:is|was|here|comes|lies)"
    r"|that's why|is (?:still )?(?:failing|broken|missing|stale)|was (?:missing|failing|broken|never)|fail(?:ed|s)? (?:due to|because)|(?:is|are) (?:currently )?returning|issue:|still (?:needs?|has|have) to|must (?:error|reject|return|throw)|(?:type|syntax|import) error|two problems)\b|^\W{0,4}missing\b|^the (?:defect|flaw) is\b|^\W{0,4}(?:issue|problem|bug|fix|error|key detail|got it|critical|the fix)\b\W{0,3}(?:#?\d{1,3}\W)?[:—–-]",
    matches=(
        "Root cause: the queue is not durable",
        "The problem is that rootDir is wrong",
        "Issue: the module is imported unconditionally",
        "The import was missing",
    ),
    rejects=(
        "`beforeunload` does not fire on mobile",
        "bun publish does not resolve workspace versions",
        "The error handler logs the order id",
    ),
)
CAVEAT = Pattern(
    "a report says what still fails, or what nobody tried",
    r"\b(?:pre-?existing|flaky|not (?:yet )?(?:verified|tested|tried|run)|(?:haven'?t|have not|hasn'?t|has not|wasn'?t|was not|couldn'?t|could not|unable to)"
    r" (?:yet )?(?:be |been )?(?:verif\w+|test(?:ed)?|run|push(?:ed)?|reproduc\w+|confirm\w*|commit(?:ted)?|deploy(?:ed)?|merg\w+)"
    r"|still (?:\w+ ){0,3}(?:fail(?:s|ing)?|broken|existing|open\b(?! in)|unresolved|untracked|blocked)|still ha(?:s|ve)\b.{0,60}\b(?:fail|error|issue|bug|problem)\w*|known (?:issue|limitation)|left (?:un\w+ed|as[- ]is)|uncommitted)\b",
    matches=(
        "The broader slice still fails",
        "I haven't pushed",
        "The lint warning is pre-existing",
        "Two files are still sitting there untracked",
    ),
    rejects=("All tests pass", "It still opens the panel", "Pushed to main"),
)
SAYS_ALL_PASS = Pattern(
    "says that the checks of a server pass",
    r"\b(?:ci|all (?:\w+ ){0,2}(?:checks|tests)|(?:checks|tests) all)\b.{0,60}\b(?:pass(?:es|ed|ing)?|green)\b",
    matches=("All CI checks pass across Linux and macOS", "CI is fully green"),
    rejects=("The tests of the parser pass", "All checks are slow"),
)
HANDS_COMMANDS = Pattern(
    "hands commands to the user",
    r"\b(?:run|execute|push|publish)\b.{0,60}\b(?:your(?:self| terminal| machine| shell)|locally|following|manually|to (?:push|publish|release|deploy))\b"
    r"|(?:以下|次)(?:の\w{0,8})?を(?:実行|プッシュ)|\bf[üu]hre?n? .{0,40}\baus\b",
    matches=("Run this from your terminal:", "以下を実行してください:"),
    rejects=("I ran the tests:", "The run is over:"),
)
ALL_DONE = Pattern(
    "says that nothing is left",
    r"\bnothing (?:else|more|further|is left|left|to (?:do|commit))\b|\ball (?:done|set)\b|\btree (?:is )?clean\b|\bclean to merge\b",
    matches=("All done.", "nothing left to do", "The working tree is clean"),
    rejects=("nothing works", "all tests are done quickly"),
)

# Work that is under way

ANNOUNCES_STEP = Pattern(
    "an agent says what it does next",
    rf"{LEAD}(?:let me"
    r"|let(?:'s| us) (?:check|look|see|start|continue|try|run|verify|read|move on|go on|get back|go back)"
    r"|i(?:'ll| will) (?:now |also |just |then |next )?(?:check|look|read|run|inspect|patch|update|add|rerun"
    r"|start|commit|verify|apply|begin|create|take|go ahead|wait|see|fix|review|search|open|list|try|continue|proceed|push|trace)"
    r"|i(?:'m| am) (?:now |also |going to |just )?(?:check|read|look|patch|updat|add|review|runn|stag|committ"
    r"|inspect|trac|verify|widen|rerunn|fix|start|mov|kick|search|writ|pull|wir|incorporat)(?:ing)?"
    r"|now (?:add|update|set|create|run|fix|remove|check|look|write|the|i|for|push|commit)|here's|here is|here are|looking at"
    r"|as you can see|see below|good question)\b",
    start=True,
    matches=(
        "Good, let me check the tests",
        "Now I add the test",
        "I'm running it",
        "Here is the plan",
    ),
    rejects=("The tests run nightly", "I prefer tabs", "letters are sorted"),
)
OF_THE_MOMENT = Pattern(
    "an agent speaks of the moment only, or asks",
    r"(?:^|[,;:—–] |\b(?:so|and|then|but|now|next) )i(?:'m| am)(?: now| also| just| still| going to)? (?!not\b|afraid|inclined)\w+ing\b"
    r"|\bi(?:'ll| will)\b|\blet me\b"
    r"|^(?:now |so |but |and )?i (?:also |still |just |now )?(?:need|should|have to|want to|can|could|went|had to|have)\b"
    r"|\bif you(?:'d|'re| want(?:ed)?| like| prefer| think| agree| need| wish)\b|\byou(?:'d| would) (?:need|have|give|want|get|lose)\b",
    flags=0,
    matches=(
        "I'm checking the log",
        "now I need the file",
        "If you like, push it",
        "You'd lose the index",
    ),
    rejects=("The index is lost", "I am not checking", "We need the file"),
)
WORK_UNDER_WAY = Pattern(
    "says what is under way",
    r"^(?:goal|next)\b|\b(?:now|next|then) (?:i|let)\b|\bnow \w+ing\b|(?<!still )\bneed to \w+|^(?:i'm |i am )?\w{3,}ing\b|\blet me\b|\bi'll\b",
    matches=("Next: the header", "Running the tests", "I'll push it", "we need to rename it"),
    rejects=("You still need to push", "The header is done"),
)
STATES_NOTHING = Pattern(
    "an acknowledgement, an apology, or a label with a value",
    r"^noted\b|^\w{2,16}: |\bsorry\W*$",
    matches=("Noted.", "Branch: main", "I broke it, sorry!"),
    rejects=("It is noted in the log",),
)
SPEAKS_TO_USER = Pattern(
    "an agent offers, agrees, apologises, or tells the user what to type",
    r"\W*(?:(?:after|once|when|if) you(?:'ve)? (?:run|do|restart|install|reload|merge|type)\b|if you(?:'d)? (?:want|like|prefer|wish)|yes\b|no\b|ah\b|oh\b|(?:you'?re|you are) (?:absolutely |quite )?right|(?:i )?(?:totally |fully |completely )?agree|thank|thanks|great|good (?:catch|question|point|idea)"
    r"|i (?:sincerely )?apologi[sz]e|(?:my )?apologies|sorry|i see\b|i(?:'d| would) (?:recommend|suggest)|(?:just |simply |now )?(?:type|run|try|press|click|open|restart|reload|refresh|give it|go ahead|let me know|feel free)\b)",
    start=True,
    matches=(
        "If you want, I can commit it",
        "You're absolutely right",
        "Type `/reload` to see it",
        "Yes — the docs should change",
    ),
    rejects=("Opened the pull request", "Runs take a minute"),
)
ANNOUNCES_LATER = Pattern(
    "speaks of what comes later in the same sentence",
    r"\b(?:i'?ll|(?:i|we|it|they) will|will (?:now )?be|let's|let me|going to|should be|need(?:s)? to be)\b|\A\W*(?:both |all )?(?:estimated|expected|running|remaining|queued|started)\b",
    matches=("Now that it is fixed, let's run it", "Estimated completion: 38 minutes"),
    rejects=("I fixed the parser",),
)
BEGINS_WORK = Pattern(
    "a commit that begins work, takes it back or denies it",
    r"\b(?:start\w*|begin\w*|wip|plan\w*|to-?dos?|draft\w*|reverts?|not)\b",
    matches=("WIP: cache", "Start on the parser", "Revert the cache"),
    rejects=("Cache the index",),
)

# Delivery

TO_PUSH = Pattern(
    "says that a push is missing",
    r"\b(?:needs?|ready to|not)\b[^.]{0,30}\b(?:force-)?push|\bpush\b[^.]{0,60}\bready\b|\bunpushed\b|\bahead of\b",
    matches=("The branch is not yet pushed", "Push when you are ready", "2 commits ahead of main"),
    rejects=("Pushed to main",),
)
PUSHED = Pattern(
    "says that it was pushed",
    r"(?<!not )(?<!n't )(?<!be )\bpushed\b",
    matches=("Pushed to main",),
    rejects=("not pushed", "It can be pushed"),
)
OPENED_PR = Pattern(
    "says that a pull request was opened",
    r"\b(?:pr|pull request) (?:\[?#\d+\]?(?:\([^)\s]{1,200}\))? )?(?:is |was )?(?:now )?(?:opened|created|open (?:at|against|on|here)|live)\b|\b(?:opened|created) (?:(?:the|a|draft|replacement) ){0,2}(?:pr|pull request)\b",
    matches=("PR #12 was created", "I opened a PR", "The PR is open against main", "Opened PR #12"),
    rejects=("open a PR", "The PR is open for discussion"),
)
MERGED = Pattern(
    "says that it was merged",
    r"(?<!not )(?<!n't )(?<!be )(?<![\w-])merged\b|\bback to (?:main|master)\b",
    matches=("Merged and deleted the branch", "back to main"),
    rejects=("not merged", "un-merged", "can be merged"),
)
DELIVERS = Pattern(
    "a step of handing over work",
    r"\bpush(?:ed|es)? (?:it|them|this|with|when|the (?:branch|commits?|tag)|to (?:origin|main))|\bgit push\b|\bforce-?push"
    r"|\bahead of origin\b|\b(?:open|create|merge|amend|update)\w* (?:a |the )?(?:prs?|pull requests?|mr)\b|\bgh pr\b"
    r"|\bcommit (?:it|this|these|them|the changes)\b|\b(?:watch|wait for) (?:the |for )?(?:ci|\w+ (?:job|run|build|pipeline))\b",
    matches=("Push the branch", "open a PR", "commit these", "wait for the CI"),
    rejects=("Push notifications go by FCM", "commit messages are short"),
)
SIDE_COMMIT = Pattern(
    "the subject of a commit beside the work",
    r"(?:docs|chore|style|test|ci|build)\b[^:]{0,40}:|.{0,60}\b(?:lint|typos?|coderabbit|copilot)\b",
    start=True,
    matches=("chore(deps): bump ruff", "Fix typos"),
    rejects=("feat: cache the index",),
)
BOOKKEEPING_COMMIT = Pattern(
    "the subject of a commit that only keeps books",
    r"(?:docs|chore)\b.{0,60}\b(?:to-?dos?|state\.md|roadmap|last activity|progress)\b|wip\b|merge (?:branch|pull)\b",
    start=True,
    matches=("docs: update the roadmap", "WIP", "Merge branch 'main'"),
    rejects=("docs: explain the cache", "Merge the two caches"),
)

# Sections of the summary that a host writes at a compaction

LISTS_LEFT = Pattern(
    "a heading of a summary above what is left",
    r"(?:pending|remaining|unfinished|outstanding|next[ _]steps\b|in progress|still to\b|to-?dos?\b|open (?:items|tasks|work))",
    start=True,
    matches=("Pending Tasks", "next_steps", "Next Steps", "Still to verify", "In Progress"),
    rejects=("Optional Next Step", "Current Work", "Completed", "Progress"),
)
LISTS_DECISIONS = Pattern(
    "a heading of a summary above decisions",
    r"(?:(?:key|main|important|design|technical|architectural) )?decisions?\b",
    start=True,
    matches=("Key Decisions", "Decisions made"),
    rejects=("Key Technical Concepts",),
)
LISTS_WISHES = Pattern(
    "a heading of a summary above what the user wants in general",
    r"(?:(?:user|standing|important) )*(?:constraints|preferences)\b",
    start=True,
    matches=("Constraints & Preferences", "User preferences"),
    rejects=("All user messages", "Instructions"),
)
LISTS_FINDINGS = Pattern(
    "a heading of a summary above what was found out",
    r"(?:key |important )?(?:discover(?:y|ies)|learnings?|findings|gotchas|insights)\b",
    start=True,
    matches=("Discoveries", "Key findings"),
    rejects=("Files and Code Sections",),
)
SAYS_NONE = Pattern(
    "says that a list is empty",
    r"\W*(?:none|nothing|n/a|no (?:\w+ ){0,3}(?:pending|remaining|open|outstanding|tasks?|steps?))\b",
    start=True,
    matches=("None. All tasks completed", "No pending tasks", "(none)"),
    rejects=("Non-blocking reads", "Note the limit"),
)
