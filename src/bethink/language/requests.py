"""Requests: what asks for work, and what opens a new piece of it."""

from bethink.language.openers import LEAD
from bethink.language.pattern import Pattern

_VERBS = (
    r"add|address|build|bump|change|check|clean|convert|create|delete|deploy|document|drop|extend|extract|find|fix|handle|implement|improve"
    r"|investigate|look|make|merge|migrate|move|open|optimi[sz]e|rebase|refactor|release|remove|rename|replace|restore|review|rewrite|run|set"
    r"|simplify|split|switch|test|try|turn|undo|update|upgrade|use|wire|write"
)
ASKS_FOR_WORK = Pattern(
    "asks for work",
    rf"{LEAD}(?:(?:can|could|would|will) (?:you|we)|let'?s|please|we (?:need|should)|i(?:'d| would) (?:like|love)|i (?:want|need)|{_VERBS})\b",
    start=True,
    matches=("ok, please go on", "Rename the parser", "I'd like a test", "great, let's ship it"),
    rejects=("The parser is slow", "addresses are hashed", "We use pnpm"),
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
