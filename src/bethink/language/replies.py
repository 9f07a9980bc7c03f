"""Replies: assent, picks among options, and questions that only ask to go on."""

from bethink.language.openers import LEAD, YES
from bethink.language.pattern import Pattern

ASSENTS = Pattern(
    "agrees, or takes up an offer",
    rf"\W{{0,4}}(?:y|{YES}|approved?|correct|perfect|great|good(?: idea)?|(?:looks|sounds) (?:good|right|great)"
    r"|do (?:that|it|so)|go (?:ahead|for it|with (?:that|it|your recommendation))|please do|let'?s do (?:that|it)|let do that|works for me|lgtm|makes sense"
    r"|ja|genau|oui|d'accord|sí|vale|sim|да|好的?|可以|はい|いいえ)(?!\w|\W{1,3}(?:it|that|this|they|i|there)\b)",
    start=True,
    matches=("Yes.", "yeah do that", "Looks good", "Good idea to keep both running."),
    rejects=("yesterday it failed", "Yes it does", "No", "Use Redis"),
)
PICKS_OPTION = Pattern(
    "picks an option by its number or letter",
    rf"(?:{LEAD})(?:(?:i(?:'d)? )?(?:prefer|choose|pick|take|want|like|go with|going with|do|let'?s (?:do|go with|take|try)) )?"
    r"(?:(?:the )?(?:option|number|approach|choice|answer) )?(?P<name>#?(?:\d{1,2}|[a-h]))"
    r"(?=$|\s?[.,;:!)](?!\d)|で| (?:but|seems?|is|and|please|then|first|sounds|looks|for|with|without|instead|now)\b)",
    start=True,
    matches=("B", "Option C please, but without X", "i prefer 2", "ok, 1"),
    rejects=("2 tests fail", "A test fails", "do 0.54.0", "Both"),
)
NAMES_POSITION = Pattern(
    "picks an option by its position",
    rf"(?:{LEAD})(?:(?:i(?:'d)? )?(?:prefer|choose|pick|take|want|like|go with|do|let'?s (?:do|go with|take|try)) )?"
    r"the (?:first|second|third|fourth|last)(?: one| option| approach)?\b",
    start=True,
    matches=("the second one", "let's take the first option"),
    rejects=("use the first",),
)
ASKS_NEXT_STEP = Pattern(
    "asks only whether to go on, or to hand work over",
    r"\b(?:proceed|continue|go ahead|carry on|move on|next step|start(?:ing)?|begin|kick (?:it |this )?off|resume|restart|retry|show you|walk you"
    r"|commit(?:ted|ting)?|push(?:ed|ing)?|open (?:a|the) pr|create (?:a|the) pr|pull request|merge[ds]?|rebase|publish|release|deploy|tag|run (?:it|them|the tests?)"
    r"|launch(?:ed|ing)?|implement (?:it|this|these|them|(?:this|the) fix)|what would you like to do (?:with|about|next|now)|re-?apply|debug|diff|ready|clean up|delete (?:it|them)|tell me what to change|help with|anything else"
    r"|(?:shall|should|can) i also|(?:want|like) me to also|(?:write|add) (?:an? |some |the |more )?(?:unit |regression |integration )?tests?)\b"
    r"|(?:進め|続け|始め)ても?(?:よ|い|良)|(?:コミット|マージ|プッシュ|デプロイ|リリース)(?:まで|して|します)|(?:继续|提交|合并|推送|发布)(?:吗|么|\W*$)",
    matches=(
        "Proceed?",
        "Want me to commit these changes?",
        "Ready for step 4?",
        "Shall I also write a test?",
        "What would you like to do with this todo?",
        "Would you like me to implement the fix?",
        "コミットまで進めてよいですか？",
        "要现在提交吗？",
    ),
    rejects=("Should a deleted promotion emit an event?", "Does this match what you want?"),
)
OFFERS_CHOICE = Pattern(
    "asks to choose among options",
    r"\b(?:which|prefer|choose|pick|what would you like|what do you want)\b|どちら|どの|どれ|哪个|哪种",
    matches=("Which do you want?", "What would you prefer?"),
    rejects=("Shall I push it?", "Want me to fix these?"),
)
RECOMMENDS = Pattern(
    "an agent recommends or offers something",
    r"\b(?:i(?:'d| would)? (?:recommend|suggest|propose)|(?:my )?recommend(?:ation|ed|ing)|next i can|if you want,? i can|we(?:'d| would) need to)\b",
    matches=("My recommendation: B", "If you want, I can also index them."),
    rejects=("The docs are recommended reading no more", "I can read it")[1:],
)
IS_STEP = Pattern(
    "an option that is only a step",
    r"(?:just )?(?:wait|stop|restart|commit|push|merge|proceed|continue|retry|copy|rerun|do (?:one|a) (?:final|last)|drive-by)\b",
    start=True,
    matches=("Stop and restart", "Wait for the build"),
    rejects=("Release the CLI as kit", "Continuous delivery"),
)
