"""Words that say nothing about a topic: any prompt in any project may hold them. English, for people who talk to an agent about code.

Answers and greetings, what is asked to be done, what things are called in general and how they are. Not the names of technologies, nor
what only some projects have: those tell prompts apart. `evidence` weighs them.
"""

from __future__ import annotations

import re

from bethink.text.words import STOP_WORDS

COMMON = """
yes yeah yep yup nope nah ok okay okey sure thanks thank thx pls hello hi hey howdy morning afternoon evening night tonight good great
nice cool perfect awesome excellent amazing fine right wrong correct sorry wait stop hmm well maybe perhaps never mind ahead continue
proceed resume still now first second third final next last former latter previous current anything everything something nothing anyone
everyone someone nobody else another whatever thing stuff way kind sort bit lot sound lgtm nevermind dear welcome bye ping yo exactly
absolutely definitely certainly probably actually really even quite rather pretty almost enough much many little least either neither
every none together apart instead otherwise anyway however though although unless whether back away around across along among against
without within toward soon later earlier early late often sometimes usually ever yet somewhere everywhere already always twice above
below down per via
write create make build add remove delete drop rename move change update modify edit set setup use run rerun execute start restart begin
open close show list print tell say speak talk explain describe summarize summarise find look search check recheck double verify confirm
review read see watch view try retry test fix debug solve help implement refactor clean cleanup improve optimize simplify rewrite rework
convert generate install uninstall configure commit push pull merge rebase revert undo redo bump ship finish complete end work go get
give take put keep need want like think know mean understand ask answer call turn bring come follow include handle support allow address
leave happen seem feel mention discuss draft translate recommend suggest compare fail break wonder love hate apply stage stash squash
amend checkout fetch clone tag format compile wrap skip ignore replace copy paste save load send receive return enter exit type choose
pick select prefer decide agree disagree guess suppose believe hope wish expect remember forget learn plan prepare organize arrange draw
stay stand carry hold catch throw cut win lose become appear touch join meet share count increase decrease reduce extend expand shorten
speed slow hurry repeat revise adjust tweak polish tidy note mark point matter belong consist contain cause lead result depend
code file folder directory function method class variable line error bug issue problem question example project repo repository branch
main master pr request diff version readme docs doc documentation comment message script command option flag step approach solution idea
todo task job part section place case time times moment minute hour day week weekend month year today tomorrow yesterday name title
number text word sentence paragraph letter page output input value data item log people person size side top bottom middle front left
piece pair group rest half reason purpose goal difference advice tip trick term dependency conflict lint linter warning verbose quiet
detail context state status info information
new old big small large smaller larger bigger tiny huge better best worse worst simple simpler short shorter long longer easy easier
hard harder difficult quick quicker fast faster slower different similar high higher highest low lower lowest full empty whole specific
general practice concise clear ready able possible impossible important interesting useful helpful free busy real true false certain
strange weird funny serious basic advanced common rare usual normal special extra less several one two three four five six seven eight
nine ten eleven twelve hundred thousand million zero single
md txt py js ts tsx jsx json yaml yml toml html css sh
"""

LONG = 2000  # characters of a prompt that surely says something


def is_telling(prompt: str) -> bool:
    """Whether a prompt may be about something: "yes, do it again" is not. Asked before anything is opened, so a guess on the safe side."""
    words = re.findall(r"[^\W_]{1,60}", prompt[:LONG].lower())
    return len(prompt) > LONG or not STOP_WORDS.union(COMMON.split()).issuperset(words)
