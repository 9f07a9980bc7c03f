"""Standing statements: users' statements from conversations that hold for more than the work at hand.

Most requests to an agent are done once: "yes, fix it", "remove the stale plans". In another session they would read like a permission or an
order. So briefings and prompts do not show them, however probable the reader found it that they last.
"""

from bethink.hooks.matching import find_telling_words
from bethink.language.detect import is_english
from bethink.language.hedging import is_tentative
from bethink.language.lasting import CHATS, CHOOSES, DECIDES, GUESSES, STANDING
from bethink.language.rules import asks_for_now, lasts, wishes
from bethink.model import OPEN_KINDS, Memory, is_inferred
from bethink.recall.settled import is_choice
from bethink.recall.shortlist import is_users_statement

# Probability from which a user's statement that binds is taken to last. Of the users' statements in 9 briefings 11 of 14 above it were worth a
# line, and 4 of 20 below it; of 40 above it that bind nothing, 4 (bench/LOG.md, 2026-11-19).
SURELY_LASTS = 0.35
LEAST_DESCRIBED = (
    3  # telling words of a user's remark that binds nothing: "Limits are reset."; by hand
)


def is_done_once(one: Memory) -> bool:
    """Return True for a user's statement from a conversation that concerned the work at hand only.

    That is a request, or a choice that is only talk: "i will attach the screenshot". What describes something is none.
    """
    text = one.content
    inferred = is_inferred(one) and is_users_statement(one) and one.kind not in OPEN_KINDS
    if not inferred or STANDING.holds(text):
        return False
    talk = is_choice(one) and CHATS.holds(text) and not (DECIDES.holds(text) or _binds(text))
    return talk or asks_for_now(text)


def outlasts_its_task(one: Memory, of_last: bool = True) -> bool:
    """Return True if a user's statement holds for more than the work that was asked for with it.

    Plain decisions do, however probable the reader found that they last. What only describes something holds until the next session:
    `of_last` says that this is the one.
    """
    text = one.content
    loose = is_tentative(text) or GUESSES.holds(text) or text.endswith("...")
    if loose or asks_for_now(text):
        return False
    binds = _binds(text)
    says_what = len(find_telling_words(text)) >= LEAST_DESCRIBED
    describes = of_last and says_what and not CHATS.holds(text)
    return bool(DECIDES.holds(text) or ((binds or describes) and one.confidence >= SURELY_LASTS))


def _binds(text: str) -> bool:
    return bool(CHOOSES.holds(text)) or lasts(text) or wishes(text) or not is_english(text)
