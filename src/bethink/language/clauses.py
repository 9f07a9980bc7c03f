"""Clauses: their ends, the words that join them, and those that begin a reason or a condition."""

import re

from bethink.language.pattern import Pattern

CLAUSE_END = Pattern(
    "the end of the clause that says what is asked",
    r"[,;:–—?!](?=\s)|\s(?=\()|\s[-–—](?=\s)|\.(?=\s)|[，；。！？]"
    r"|\s(?=(?:so that|because|since|which|while|but|and then|if (?:you|we|i|it)|as well as|in order to|so we)\s)",
    fold=False,
    matches=("Rename it, please", "Cache it because it is slow", "Add a test (soon)"),
    rejects=("Rename the parser",),
)
DANGLING_END = Pattern(
    "words that a title cannot end with",
    r"[,;:]?(?: (?:an?|the|of|to|in|on|at|for|with|and|or|but|as|by|from|into|that|this|is|are|not|no|we|i|you|it|its|my|our|your|via|per|about"
    r"|when)\b){1,6}$",
    fold=False,
    flags=re.IGNORECASE,
    matches=("Rename the parser and the", "Add a test, for"),
    rejects=("Rename the parser",),
)
QUALIFIES = Pattern(
    "a reason, an exception or a condition",
    r"\b(?:because|since|so that|due to|in order to|otherwise|unless|except|only|until|if|when|but|while|although|weil|außer|nur|parce que"
    r"|sauf|seulement|porque|salvo|excepto|solo|sólo)\b",
    matches=("Use S3 unless it is small", "nur am Freitag"),
    rejects=("Use S3",),
)
JOINS_CLAIMS = Pattern(
    "joins two claims",
    r"[,;:()（），；、]|[.!?]\s+\S|[。！？]\s*\S|\s[–—-]\s|\b(?:and|but|while|whereas|und|aber|et|mais|y|pero|e|mas)\b",
    matches=("Use S3 and Redis", "Use S3. Not GCS", "S3, not GCS"),
    rejects=("Use S3 for uploads.",),
)
REASON_CLAUSE = Pattern(
    "the reason at the end of a statement",
    r"\b(?:because|since|so that|due to|weil|parce que|porque)\b.*",
    fold=False,
    flags=re.IGNORECASE | re.DOTALL,
    matches=("Use S3 because it is cheap",),
    rejects=("Use S3",),
)
