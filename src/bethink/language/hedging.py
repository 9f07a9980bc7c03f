"""Hedging: wordings that only consider something and decide nothing."""

from bethink.language.pattern import Pattern

THINKS_ALOUD = Pattern(
    "only thinks of something",
    r"\b(?:maybe|perhaps|might|nothing (?:is|was|has been) decided|not (?:yet )?decided|undecided"
    r"|(?:are|am|is|'re|'m) (?:thinking|considering|wondering|tempted|leaning)|think(?:ing)? (?:of|about)|considering"
    r"|let'?s \w+ (?:(?:out|about) )?(?:where|what|how|whether|which)|not sure|wonder(?:ing)? (?:if|whether)|what if|should we"
    r"|could (?:also )?(?:use|try|switch|move|go))\b|\bi (?:think|guess|believe)[.!]?\s*$",
    matches=(
        "Maybe we move to Kafka",
        "we're thinking of Kafka",
        "let's figure out whether it scales",
        "Kafka is better, I think.",
    ),
    rejects=("We move to Kafka", "I think Kafka is better", "mighty fast"),
)


def is_tentative(text: str) -> bool:
    """Return True if a text only thinks of something: it may come to replace another, and does not yet."""
    return THINKS_ALOUD.holds(text)
