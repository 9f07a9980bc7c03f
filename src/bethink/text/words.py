"""Words that carry no topic. The index and the questions must agree on them, so they stand here once. And which words betray that a text
is not English, which the default model knows alone."""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are aren't as at be because been before being between both but by can can't cannot
    could couldn't did didn't do does doesn't doing don't done during each e.g few for from further had hadn't has hasn't have
    haven't having he her here hers herself him himself his how i i'd i'll i'm i've i.e if in into is isn't it it's its itself
    just let let's may me might more most must my myself no nor not of off on once only or other our ours ourselves out over own
    please same shall she should shouldn't since so some such than that that's the their theirs them themselves then there there's
    these they they're this those through to too under until up us very was wasn't we we'd we'll we're we've were weren't
    what what's when where which while who who's whom whose why will with won't would wouldn't you you'd you'll you're
    you've your yours yourself
    """.split()
)

# Small words of German, French and Spanish.
_FOREIGN = frozenset(
    """
    aber auf aus bei das dem den der die ein eine einen er gibt haben ist für ich im kein macht mit nicht nie noch oder sie sind und uns
    unser unsere von wann warum was welche welchen welcher welches wer wie wir wird wo wurde zu zum zur avec avons ce cette comment dans de des du elle est et il je la le les mais ne nous ont où
    par pas pour pourquoi quand que quel quelle qui sont sur une cómo con cuál cuándo del donde dónde el ella en es esta este lo los las
    nosotros para pero por porque qué quién se su un una usamos y
    """.split()
)
UNLIKE = 0.3  # share of letters beyond Latin from which on a text is not English


def is_english(text: str) -> bool:
    """Whether nothing speaks against English: neither letters of another script nor more small words of other languages."""
    letters = [letter for letter in text[:2000] if letter.isalpha()]
    if sum(letter > "\u024f" for letter in letters) > UNLIKE * len(letters):
        return False
    words = text[:2000].lower().replace("?", " ").replace(",", " ").split()
    foreign = sum(word in _FOREIGN for word in words)
    return foreign < 2 or foreign <= sum(word in STOP_WORDS for word in words)
