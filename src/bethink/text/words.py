"""Words that carry no topic. The index and the questions must agree on them, so they stand here once."""

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
