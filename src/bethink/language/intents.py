"""Plain statements of conclusions, problems, fixes, work to do, and of what works or passes."""

from bethink.language.openers import LEAD
from bethink.language.pattern import Pattern

CONCLUDES = Pattern(
    "says what was concluded, or what the cause is",
    rf"{LEAD}(?:(?:the |our |my |one |a )?(?:key |main |important |core |real |root |underlying )?"
    r"(?:insights?|take-?aways?|lessons?(?: learned)?|conclusions?|findings?|upshot|bottom line|verdict|cause)(?: (?:here|so far|of \w+(?: \w+)?))?(?: (?:is|was|are)\b|:| —)"
    r"|(?:it )?turns out|in conclusion|to sum up|(?:we|i) (?:learned|concluded|found out) that)",
    start=True,
    matches=(
        "The key insight is that WiFi blocks",
        "It turns out that DNS fails",
        "Root cause: a race",
    ),
    rejects=("The insight page is slow", "Because it is fast"),
)
STATES_PROBLEM = Pattern(
    "says what the problem is",
    rf"{LEAD}the (?:real |actual |main |core |only |remaining )?(?:issue|problem|bug|catch|trouble) (?:is|was)\b",
    start=True,
    matches=("The issue is that the sensor needs 5 ms", "So the only bug was a race"),
    rejects=("The issue tracker is slow", "Is there a bug"),
)
REPORTS_FIX = Pattern(
    "says what mended something",
    rf"{LEAD}(?:(?:i|we|it's|it is|this is|this was|that was) )?(?:now )?(?:fixed|solved|resolved|worked around|mended)"
    r"(?: (?:it|this|that|both|the \w+(?: \w+)?))? (?:by|with)\b|^the (?:fix|solution|workaround) (?:is|was)\b",
    start=True,
    matches=(
        "Fixed by raising the delay",
        "I fixed it with a lock",
        "The fix was a longer timeout",
    ),
    rejects=("Fixed the test", "It was broken by the update"),
)
NAMES_FIX = Pattern(
    "names the fix beside the problem",
    r"\b(?:the (?:fix|solution|workaround) (?:is|was)|(?:is|was|are|got) (?:now )?(?:fixed|solved|resolved)|(?:fixed|solved|resolved) by)\b",
    matches=("The problem was a lock; the fix was a queue",),
    rejects=("The problem is a lock",),
)
NEEDS_DOING = Pattern(
    "says what needs doing",
    rf"{LEAD}(?:(?:we|you) )?(?:(?:still |also )?needs? to (?!see|check|look|understand|find|know|read|be\b)\w{{3,}}|still needs? (?:the|a|an|some|more) \w)",
    start=True,
    matches=(
        "Need to implement the fail-safe",
        "We still need to write the range test",
        "We still need the range test",
    ),
    rejects=("I need to look at the log", "There is no need to rush"),
)
CONFIRMS_MENDED = Pattern(
    "a user confirms that something works now",
    rf"{LEAD}(?:(?:it|that|this|everything|all)(?:'s| is)? )?(?:(?:all )?(?:works?|working|fixed|solved|resolved)(?: (?:it|now|again|fine|well|perfectly|great))?"
    r"|did the trick|did it)\b(?! (?:on|if|when|only|except|but|for)\b)",
    start=True,
    matches=("That fixed it, thanks", "It works now!", "works"),
    rejects=("It works only on Linux", "the fix does not work"),
)
ACKNOWLEDGES = Pattern(
    "a user takes an answer as one",
    r"\W{0,4}(?:(?:ah|oh|ok(?:ay)?|great|perfect)[\s,.!]{1,3}){0,2}(?:thanks?|thank you|thx|cool|nice|great|perfect|got it|i see|good to know|understood|that (?:helps|explains)"
    r"|danke|merci|gracias|obrigad[oa]|спасибо|谢谢|ありがとう)(?!\w)",
    start=True,
    matches=("cool. and how do I stop it?", "Ok, thanks", "got it", "Danke!"),
    rejects=("thankfully it failed", "No", "That is not what I asked"),
)
ASKS_AMOUNT = Pattern(
    "asks how much, how far, how long or when",
    r"\bhow (?:far|long|much|many|big|large|fast|often|high|old|deep|wide)\b|\b(?:what|which) (?:version|port|number)\b",
    matches=("How far does it reach?", "which port do we use?"),
    rejects=("How does it work?",),
)
LEAVES_OPEN = Pattern(
    "an answer that leaves its question open",
    r"\b(?:open question|still open|not (?:sure|decided|known|clear)|unclear|unknown|undecided|(?:don't|do not|can't|cannot) (?:know|say|tell|find)"
    r"|need(?:s)? to (?:check|decide|find out|look)|let me|i'll|i will|depends)\b",
    matches=("That is still an open question", "I don't know yet", "Let me check"),
    rejects=("It runs on port 80",),
)
CLAIMS_PASSING = Pattern(
    "claims that tests or checks pass",
    r"\b(?:all|every|the(?: full| whole)?|both|\d+)\b[^.;\n]{0,40}\b(?:tests?|checks?|suite|builds?|ci|lint)\b[^.;\n]{0,30}\b(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?|clean)\b"
    r"|\b(?:tests?|checks?|suite|build|ci) (?:now )?(?:pass(?:es|ed)?|(?:is|are) (?:now )?(?:passing|green))\b",
    matches=("All 41 tests pass", "The full suite passed", "CI is green"),
    rejects=("The tests fail", "Add tests"),
)
