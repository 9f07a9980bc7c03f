"""Requests: what asks for work, and what opens a new piece of it."""

import re

from bethink.language.openers import LEAD, YES
from bethink.language.pattern import Pattern

_VERBS = (
    r"add|address|analy[sz]e|build|bump|change|check|clean|compare|configure|convert|create|delete|deploy|do (?:the|a|an|it|that|this)|document|drop|explain|expose|extend|extract|find|fix|generate|handle|implement|improve|increase"
    r"|investigate|look|make|merge|migrate|move|open|optimi[sz]e|plan|publish|rebase|refactor|release|remove|rename|repeat|replace|replicate|reply|restore|retry|review"
    r"|align|compute|continue|copy|debug|diagnose|disable|draft|enable|finish|give me|help|hide|install|mention|pick up|proceed|pull|put|read|reconstruct|recheck|reduce|reorder|rerun|reset|restart"
    r"|see (?:if|whether|why)|set ?up|show me|start|summari[sz]e|tell me|walk me"
    r"|rewrite|run|set|simplify|split|study|switch|test|try|turn|undo|unpublish|update|upgrade|use|verify|wire|write"
)
ASKS_FOR_WORK = Pattern(
    "asks for work",
    rf"{LEAD}(?:(?:can|could|would|will) (?:you|we)|let'?s|please|we (?:need|should)|i(?:'d| would) (?:like|love)|i (?:want|need)|{_VERBS})\b",
    start=True,
    matches=("ok, please go on", "Rename the parser", "I'd like a test", "great, let's ship it"),
    rejects=("The parser is slow", "addresses are hashed", "We use pnpm"),
)
# Words that a request to hand over work is made of; with any other word it names something else.
_HANDS = (
    r"commit|committing|push|merge|rebase|sync|squash|publish|pull|prs?|pull requests?|mr|make|open|create|update|submit|draft|raise|check|address|fix|resolve"
    r"|look at|handle|get|reply|respond|replied|comments?|feedback|reviews?|reviewers?|checks?|ci|failing|coderabbit|copilot|create-pr"
)
_FILLS = (
    r"a|an|the|new|for|all|any|and|then|to|it|this|that|them|these|on|in|of|with|my|our|if|when|done|main|master|origin|remote|branch|changes?|code|everything|current|request"
    rf"|github|please|now|too|also|{YES}|back|him|her|me|us|files?|discussion|discussions|go|ahead|can|could|would|you|let'?s|we|so|again|there|anything|is|are|work|local|up|\d+"
)
HANDS_OVER = Pattern(
    "asks only to hand over work: to commit, push, merge, or answer a review",
    rf"(?=.*\b(?:{_HANDS})\b)\W*(?:(?:{_HANDS}|{_FILLS})\b\W*)+$",
    start=True,
    matches=(
        "commit and push",
        "address pr feedback and failing pr checks",
        "ok, please open a PR for it",
        "check for the feedback",
        "merge it",
    ),
    rejects=("commit the parser of the index as its own package", "Publish the CLI as kit"),
)
HANDED_PLAN = Pattern(
    "a plan that an agent is asked to carry out",
    r"\s*implement the following plan:?\s*#{1,3} (?:plan: ?)?(.+)",
    start=True,
    matches=("Implement the following plan:\n\n# Plan: Cache the index",),
    rejects=("Implement the plan",),
)
NEW_WORK = Pattern(
    "opens a piece of work",
    r"(?:(?:can|could|would) you (?:please )?(?:look|take a look|review|check|help|investigate|explain|add|update|change|fix|open|create"
    r"|write|make|build)\b|i(?:'d| would) like\b|i (?:want|need) to\b|we (?:need|want|have|got)\b|implement the\b|there(?:'s| is|s)\b"
    r"|let'?s (?:work|start|look|tackle|begin|build|think)\b|kannst du\b|ich (?:möchte|will|brauche)\b|wir (?:müssen|brauchen)\b"
    r"|peux-tu\b|pouvez-vous\b|je (?:veux|voudrais)\b|il faut\b|puedes\b|quiero\b|necesito\b|hay que\b)",
    start=True,
    flags=0,
    matches=("can you take a look at the queue", "there's a bug", "kannst du das prüfen"),
    rejects=("run it again", "you can do it"),
)

SMALL_EDIT = Pattern(
    "asks for a small edit that is fully described",
    r"\btypos?\b|\bmisspel\w*|\b(?:re-?word|rephrase|reformulate|umformulier\w*|reformule\w*|reformula\w*)\b|\bnothing else\b|\bsonst nichts\b|\brien d'autre\b|\bnada m[áa]s\b"
    r"|\b(?:undo|revert) (?:your|the|that|my) (?:last|previous) (?:edit|change|step|commit)\b"
    r"|\b(?:delete|remove|drop|take out)\b.{0,30}\b(?:leftover|stray|unused|dead|debug)\b|\b(?:delete|remove|drop)\b.{0,20}\b(?:console\.log|print\(|debugger|import)\b"
    r"|\brename\b.{1,40}\bto\b.{1,40}\bin (?:this|that|the) (?:function|method|file|loop|test|class)\b"
    r"|\b(?:add|fix|write|improve|shorten|translate) (?:a |the |this |that )?(?:missing )?(?:docstring|doc comment|comment(?! (?:field|box|form|column|section|system)\b)|indentation|whitespace|semicolon|blank line)s?\b",
    flags=0,
    matches=(
        "typo in the comment above the table",
        "reword the last paragraph",
        "move the constants to rates.py, nothing else",
        "undo your last edit",
        "delete the leftover console.log",
        "rename x to lineCount in this function",
    ),
    rejects=(
        "rename the column to email",
        "remove the endpoint",
        "move billing to the new queue",
        "add a comment field to the order form",
    ),
)
REQUEST_AS_QUESTION = Pattern(
    "a request put as a question, which asks about no claim",
    r"(?!.*\b(?:whether|if|true|right|correct|check|confirm|verify|ask|know|tell|said|says|explain|why|what|who|how"
    r"|(?:you|we|they|he|she|any\w+) (?:think|agree|believe|say))\b)"
    r".{0,400}?\b(?:(?:can|could|would|will|should|shall) (?:you|we|i|it)|i(?:'d)? (?:want|like|need|think|thought|would like))\b",
    start=True,
    flags=re.DOTALL,
    matches=(
        "I think that is too much, could we just run cargo package?",
        "ok, can you add the push to the script?",
    ),
    rejects=("Can you double check with Eve whether we use X?", "Should we ask Eve?", "Is X gone?"),
)
PROPOSES = Pattern(
    "proposes something, also with a question mark",
    rf"{LEAD}(?:let'?s\b|why not\b|(?:shouldn|couldn|can|wouldn)'?t (?:we|you|i|it|this|that|these|those|the)\b)",
    start=True,
    matches=(
        "okay then lets release it as kit, what is left?",
        "shouldn't this be one commit?",
        "can't the tests be tables?",
    ),
    rejects=("We use Redis now?", "should it fail?", "can this fail?"),
)
