"""Wordings of what holds from now on, and of what is only reported or tried."""

from bethink.language.openers import LEAD
from bethink.language.pattern import Pattern

RESTRICTS = Pattern(
    "limits, forbids or takes something away",
    r"\b(?:don'?t|do not|no longer|without|not|no|avoid|stop|remove|drop|only|just)\b",
    matches=("Just a smoke test", "no anys", "Ship it without the docs"),
    rejects=("Add the docs", "note the time"),
)
REPORTS_TROUBLE = Pattern(
    "reports trouble, or what was seen or tried",
    r"\b(?:still|doesn'?t work|not working|failed|failing|errors?|broken|see|saw|tried|got|happens?|happening|issues?|wrong)\b",
    matches=("It still fails", "I tried it and got an error"),
    rejects=("The button is blue",),
)
STATES_BEING = Pattern(
    "says how something is or will be",
    r"\b(?:is|are|be|will|was|were|has|have)\b",
    matches=("The port is 80", "It will be blue"),
    rejects=("Add a button",),
)
STANDING = Pattern(
    "holds every time, not only now",
    r"\b(?:always|never|from now on|going forward|in (?:the )?future|as a rule|standing (?:item|order|rule)|whenever|(?:every|each|any) time|next time (?:you|we)|for (?:future )?reference"
    r"|(?:at|on|in|for|before|after|with) (?:the \w+ of )?(?:every|each)|keep (?:this |that |it )?in mind|(?:code|new) standard"
    r"|ab (?:jetzt|sofort)|von nun an|künftig|in zukunft|immer(?! noch)|niemals|jedes mal|désormais|dorénavant|à l'avenir|toujours|à chaque fois"
    r"|(?:de|a partir de) (?:ahora|agora)(?: en adelante| em diante)?|siempre|sempre|nunca|cada vez|впредь|всегда|никогда|каждый раз)\b"
    r"|今後|必ず|常に|毎回|(?:从|自)(?:现在|今)(?:起|开始)|以后(?:都|请)|总是|一律|每次",
    matches=(
        "Never open PRs against release",
        "At the start of every new session, ask",
        "Next time you push, wait",
        "Ab jetzt bitte alles auf Englisch",
        "今後は必ずテストを書いて",
    ),
    rejects=("Next time the tests run", "Open a PR", "Es geht immer noch nicht"),
)
OPENS_RULE = Pattern(
    "begins like a rule for every time",
    rf"{LEAD}(?:from now on|going forward|(?:never|always)(?! \w+(?:s|ing|ed)\b)|ab (?:jetzt|sofort)|nie(?:mals)?|immer(?! noch)|(?:jamais|toujours|désormais)|(?:de|a partir de) (?:ahora|agora)"
    r"|nunca|siempre|sempre|никогда|всегда)(?!\w)|\W*(?:今後|必ず|常に|(?:从|自)(?:现在|今)起|总是|永远|绝不)",
    start=True,
    matches=(
        "Never track single chapters",
        "ok, from now on ask first",
        "Niemals auf main pushen",
        "必ずテストを書いて",
    ),
    rejects=("It never loads", "Always getting a 401", "Never loads", "Immer noch kaputt"),
)
CHOOSES = Pattern(
    "chooses between things, or limits one",
    r"\b(?:instead(?: of)?|rather than|over the|prefer(?:red|ably)?|no longer|only|must(?:n't)?|should(?:n't)?|needs? to be|don'?t|do not|avoid|without|at (?:most|least))\b"
    r"|\bnot (?:a|an|the|with|by|via|in|on)\b",
    matches=("Use Valkey instead of Redis", "Only owners may delete", "It should be sorted"),
    rejects=("Update the docs", "Not yet"),
)
DECIDES = Pattern(
    "decides, picks an option, limits the scope, or corrects a choice",
    r"\b(?:we|i)(?:'ve| have)? (?:all |now |just |also |finally )?(?:decided|agreed|chose|opted|settled (?:on|for)|picked)\b(?!\W*\Z| it up| up)"
    r"|\b(?:we|i)(?:'ll| will|'re going to| are going to) (?:use|keep|stick (?:with|to)|go with|stay (?:with|on))\b|\b(?:we're|we are) (?:going|sticking|staying) with\b"
    r"|\blet'?s (?:use|keep|stick (?:with|to)|go with|stay (?:with|on))\b|\A\W*(?:decision|decided|scope|out of scope)\W{0,3}:"
    r"|\A\W*option \w{1,2}: |\buse .{1,60}(?:, not\b| instead of\b| rather than\b)|\b(?:is|are) out of scope\b"
    r"|\A\W*use [\w.@/+-]+(?: [\w.-]+)? for (?!(?:now|this|that|it|me)\b)",
    matches=(
        "We decided to cache pages",
        "We'll use Postgres for the queue",
        "Option C: one crate for each",
        "Use Valkey, not Redis",
        "Mobile is out of scope",
        "Use Redis for sessions",
        "Let's go with the second layout",
    ),
    rejects=("We use it", "We have not decided", "Use it for now", "Should we use Redis?"),
)
STEP_OF_TASK = Pattern(
    "is done with the task at hand",
    r"\A\W*(?:wait|okay,? i approve|ok,? i approve)\b|\b(?:haha|lol)\b|\bas (?:it )?is\W*$|\b(?:do it|go ahead|proceed|continue|carry on|rerun it|run it again|no (?:code )?changes|just the (?:analysis|plan)|for now"
    r"|(?:current|new|old|last|first|second|other) (?:way|ones?|draft|setup|version|approach|changes?)|the same (?:for|thing|way)|create a plan"
    r"|commit the)\b|\(asked: .{0,200}\b(?:want me to|shall i|should i|may i|ready to)\b",
    matches=("Leave the version as is.", "Do it, and commit", "The current way is OK"),
    rejects=("Sort by name", "Never commit to main"),
)
ASKS_UNMARKED = Pattern(
    "a question without its mark",
    r"\A\W*(?:(?:no|ok(?:ay)?|and|but|so|well)\W{1,3})?(?:can|could|should|shouldn'?t|shall|would|why|is there|are there|what'?s) (?:\w+ )?(?:we|you|i|not|the|it)\b"
    r"|\b(?:don'?t|isn'?t|aren'?t|doesn'?t|didn'?t) (?:we|you|it|they)\W*\Z",
    matches=("Shouldn't we update the test instead", "We have another way don't we"),
    rejects=("You should update the test", "We don't use it"),
)
CHATS = Pattern(
    "begins like an answer in a chat, or as the next step of a task",
    r"\W*(?:ok(?:ay)?|yeah|yep|nah|wait|hm+|haha|lol|oh+|ah+|woah|wow|so|and|but|now|then|again|first(?: off)?|lets?|let's|just|do|go|i|i'm|i've|i'll|we're|you|this|that|it|its|it's|fuck|god|damn)\b",
    start=True,
    matches=("ohhh i get it now", "Lets store the path", "Now the index is next"),
    rejects=("The index is sorted", "Yes, the port is 80"),
)
STARTS_STEP = Pattern(
    "begins by ordering a step: to look, to check, to go on, to hand over",
    r"\A\W*(?:(?:ok(?:ay)?|yes|yeah|hmm|well|great|now|so|and|then|please|also|first|alright|can you|could you|i want you to|let'?s|you can)\W+){0,4}"
    r"(?:go|continue|proceed|commit|push|pull|merge|review|evaluate|verify|check|investigate|look|read|study|run|rerun|explain|explore|debug|find|test|repeat|wait|research|think"
    r"|respond|plan|create a plan|start|begin|resume|do|try|show|tell|give|send|analy[sz]e|compare|describe|answer|help|(?:open|make) a pr|rebase"
    r"|update the (?:docs?|readme|adr|todo|changelog))\b",
    start=True,
    matches=("ok, please review the plan", "Go ahead and add them", "can you explain this"),
    rejects=("Use the logger", "It should go on", "Never commit to main"),
)
WANTS_WORK = Pattern(
    "wants something done, now",
    r"\b(?:i(?:'d| would)? (?:want|need|like)(?: you| us)? to|we (?:want|need) to)\b",
    matches=("I want to create a skill", "I'd like you to look"),
    rejects=("I want small commits",),
)
TRAP = Pattern(
    "says what a thing does not do, or does unasked",
    r"\b(?:(?:does|do|did|is|are|was|will|would|can|could|has|have) ?(?:not|n't)|(?:does|do|is|are|wo|would|ca|could|has|have)n'?t|cannot|never|only|must|always|requires?"
    r"|silently|by default|defaults to|unless|lacks?|no longer|without|unexpected(?:ly)?|ignores?|overrides?|rejects?|fails? (?:if|when|on|at|with|in))\b",
    matches=("`bun publish` does not resolve it", "It defaults to 0", "This machine lacks git-lfs"),
    rejects=("The page is blue", "The index is read at the start"),
)
FOUND_ON_THE_WAY = Pattern(
    "an agent remarks what it finds on the way",
    r"\W*(?:interesting|exactly|thus|this (?:fully |also )?(?:explains|confirms|means)|good|great|right|yes|i see|got it|found|confirmed|wait|hmm|ah|no \w+ (?:ones? )?exist yet"
    r"|the (?:report|build failure|failure|test failure|error)\b|now)\b",
    start=True,
    matches=(
        "Interesting — it filters nothing",
        "Thus the command fails",
        "The report's diagnosis",
    ),
    rejects=("Notes are sorted", "The index is empty"),
)
GUESSES = Pattern(
    "guesses, complains, or breaks off",
    r"\bmust (?:not )?(?:be \w+ing|have)\b|\b(?:likely|probably|seems? to)\b|\b(?:be|is|are|was|to|the|an?|of|and|or|with|for)\W*\Z|\A\W*(?:why|what|how|when|where|who)\b",
    matches=("We must not be saving it", "Why do results always show up", "Each slice must be"),
    rejects=("Results must be saved",),
)
