"""Questions: how they begin, what they ask for, and which ones only check, doubt or offer."""

from typing import NamedTuple

from bethink.language.openers import LEAD
from bethink.language.pattern import Pattern

_WH_WORDS = r"how|what|why|where|when|which|who|whom|whose"

# Questions to memory

QUESTION_START = Pattern(
    "the beginning of a question",
    rf"{LEAD}(?:{_WH_WORDS}|did|do(?! not)|does|is|are|was|were|can|could|may|should|would|will|has|have|had)(?:'s|'re)? ",
    start=True,
    matches=("what did we decide", "And how's the cache keyed", "is there a linter"),
    rejects=("do not use mocks", "The cache is keyed by user", "whatever works"),
)
ASKS_MEMORY = Pattern(
    "asks for an answer, not for work",
    rf"{LEAD}(?:{_WH_WORDS}|did|does|do we|is there|are we|should we|have we|remind me|recall|remember)\b",
    start=True,
    matches=("ok, how do we deploy?", "Remind me which port it is", "hmm, did we fix that"),
    rejects=("can you run the tests?", "do it again", "add a test"),
)
GENERAL_QUESTION = Pattern(
    "could be asked in any project",
    rf"{LEAD}(?:how (?:to|(?:do|can|could|would|should) (?:i|you|one))|what(?:'?s| is| are) (?:an?|the (?:best|difference))|explain)\b",
    start=True,
    matches=("how do I center a div?", "What’s the difference between a list and a tuple?"),
    rejects=("how do we center the logo?", "what is our retry limit?"),
)
ABOUT_CODE = Pattern(
    "a question about code",
    r"\bwhere (?:is|are|do|does|did|can|in)\b|\bhow (?:is|are|does|do) .{1,80}(?:work|implemented|computed|called|parsed)\b"
    r"|\b(?:code|source|functions?|methods?|class(?:es)?|files?|modules?|symbols?|variables?|constants?|signature|implement\w*"
    r"|defin(?:e[ds]?|ition)|callers?|call(?:s|ed)|imports?|endpoints?|routes?|decorators?|parameters?|arguments?|returns?)\b",
    matches=("where is the token parsed", "how does the retry loop work", "callers of parse"),
    rejects=("why did we choose Postgres", "what is open"),
)
PAST_STATE = Pattern(
    "asks how things were",
    r"\b(?:did|were|had|was)\s+(?:we|our|the (?:team|project|app|service|system))\b|\bwe (?:used to|were using|had)\b",
    matches=("what did we use before the move", "which host we were using"),
    rejects=("what do we use", "did Anna call"),
)
DATING_EVENT = Pattern(
    "an event that dates a question",
    r"\b(?P<side>before|after|since|until|prior to)\s+(?:that\s+)?(?P<event>(?:we|the|our)\s[^?.!,;]{3,120})",
    matches=("what did we use before we moved to Kafka?", "since the migration"),
    rejects=("before Monday", "after lunch"),
)
ABOUT_LATEST = Pattern(
    "asks for the latest work",
    r"\b(?:did|have|had|were|was|are) (?:we|i|you) just\b|\bwe (?:were|are|'re) (?:just )?(?:doing|at|working on|in the middle of)\b"
    r"|\b(?:were|are) (?:we|you|i) (?:currently |just )?(?:doing|at|working on|in the middle of)\b"
    r"|\b(?:leave|left) off\b|\blast (?:session|conversation|time)\b|\bpick(?:ing)? up where\b|\b(?:carry|keep) on from\b"
    r"|\bmost recent(?:ly)?\b|\bso far today\b",
    matches=(
        "what did we just do?",
        "where did we leave off",
        "what were we working on",
        "what happened in the last session",
    ),
    rejects=("what did we decide", "what is the last step", "just use Redis"),
)
ASKS_SET = Pattern(
    "asks for all of a kind, for a count, an order, a summary or a change",
    r"\bhow many\b(?! (?:\w+ ){0,3}ago\b)|\bhow (?:much|often)\b.{0,60}\b(?:total|altogether|overall|all)\b|\b(?:in total|altogether)\b"
    r"|\btotal (?:number|amount|cost|time|count|price|distance)\b|\bnumber of\b"
    r"|\b(?:list|name|show(?: me)?|give me) (?:me )?(?:all|every|each|the different)\b|\bwhich of (?:all|the|my|our|these|those)\b"
    r"|\bin (?:what|which) order\b|\b(?:the )?order (?:of|in which)\b|\bfrom (?:first|earliest|oldest) to (?:last|latest|newest)\b"
    r"|\b(?:chronological|timeline)\b|\bsummar(?:y|i[sz]e)\b|\b(?:history|evolution) of\b"
    r"|\bwhat (?:has |have )?changed\b.{0,80}\b(?:between|since|from)\b|\bhow (?:did|has|have) .{1,80}\b(?:change|changed|evolve|evolved|develop|developed)\b"
    r"|\b(?:what|which) (?:\w+ ){0,3}(?:are|were|have|has|did|does|do) .{0,60}\b(?:all|so far|each)\b|\ball (?:the |of the |my |our )?(?:times|places|things|events|decisions)\b",
    matches=(
        "How many weddings did I attend?",
        "which of all databases is fastest",
        "list every decision about caching",
        "In what order did we migrate the services?",
        "summarise the work on billing",
        "what changed between March and May?",
    ),
    rejects=("what is the timeout", "which database do we use", "how many days ago did we deploy"),
)
REFERS = Pattern(
    "refers to something that was said or decided elsewhere",
    r"\b(?:the|that|those|your|our|my) (?P<thing>(?:[\w'-]+ ){1,4}?(?:that )?(?:you|we|i|he|she|they|[a-z]+) (?:\w+ )?"
    r"(?:recommended|suggested|mentioned|proposed|described|agreed on|decided on|settled on|chose|picked|talked about|discussed|told \w+ about)\b)"
    r"|\bas (?:\w+ )?(?P<outcome>(?:decided|agreed|discussed|settled|described|proposed|planned|recommended|suggested) (?:in|at|on|during|with|by) [^.;,\n]{3,80})"
    r"|\b(?:see|per|according to|following) the (?P<place>(?:[\w'-]+ ){0,3}(?:decision|review|note|discussion|plan|handoff|ticket|agreement)\b(?: (?:about|on|from|of) [^.;,\n]{3,60})?)",
    matches=(
        "I finished the book you recommended",
        "We do it as decided in the review of the parser",
        "See the decision about retries",
    ),
    rejects=("I finished the book", "we decided on Redis", "the review is open"),
)
_ASKING = r"(?:ask|talk|mention|bring up|speak|discuss|request|want|inquire|say|write)(?:s|ed|ing)?"
ASKS_REPLY = Pattern(
    "asks what the assistant said before",
    r"\b(?:our|the|that|your) (?:previous|earlier|last|prior|past) (?:chat|conversation|discussion|session|message|answer|reply|response)s?\b"
    r"|\byou (?:\w+ )?(?:told|suggested|mentioned|recommended|provided|listed|gave|said|wrote|created|explained|proposed|described|showed|came up with)\b"
    r"|\bremind me\b|\b(?:we|you and i) (?:discussed|talked about)\b",
    matches=(
        "Which video did you recommend in our previous chat?",
        "Can you remind me what the 7th job in the list was?",
        "what were the steps you gave me",
    ),
    rejects=("what did we decide about Redis", "which book did Anna recommend"),
)
TRIGGER = Pattern(
    "the condition of a standing rule",
    rf"\b(?:when(?:ever)?|if|every time|each time|any ?time) (?:i|we|you|the user|someone|anyone|users?) {_ASKING}\b"
    r"(?: (?:you|me|us))?(?: (?:for|about|of|on|to))? (?P<clause>[^.;,\n]{3,120})"
    r"|\b(?:whenever|every time|each time|any ?time|always when) (?:(?:i|we|you|the user) )?(?P<event>[^.;,\n]{3,120})",
    matches=(
        "always confirm allergies when I ask about snacks",
        "Whenever we deploy, run the smoke tests",
        "If I ask you for a summary, keep it to three lines",
    ),
    rejects=("we deploy from main", "tag a release before we deploy it", "when it rains it pours"),
)

_ASKING_LATIN = (
    # German, French, Spanish, Portuguese, Russian
    r"was|wer|ist|war|habe|hatte|haben|hatten|wir|ich|man|denn|so|alles|gemacht|getan|entschieden|beschlossen|notiert|geschrieben|festgehalten"
    r"|passiert|gewesen|welche|entscheidungen|gab|es|wurde|wurden|getroffen|neues"
    r"|qu|que|quoi|est|ce|il|s|j|ai|je|on|a|nous|avons|fait|d[ée]cid[ée]|not[ée]|[ée]crit|pass[ée]|quelles|d[ée]cisions|prises?|ont|[ée]t[ée]|de|neuf"
    r"|qu[ée]|hemos|hecho|hicimos|hice|decidimos|decidido|decid[íi]|anot[ée]|anotamos|apunt[ée]|pas[óo]|nosotros|yo"
    r"|o|n[óo]s|eu|fizemos|fiz|anotei|aconteceu"
    r"|что|мы|я|решили|решил|решила|сделали|сделал|сделала|записал|записала|записали|было|произошло|случилось|делали|делал|делала"
)
_ASKING_WIDE = (
    r"我们|我們|咱们|我|都|做|干|决定|決定|记录|记|写|发生|了|过|些|什么|什麼|哪些|的|有|事"
    r"|私たち|私|何|なに|決め|決まっ|メモ|記録|やっ|起き|し|まし|た|か|の|を|は|が|に"
    r"|우리|나|내|무엇|무슨|뭐|뭘|일|결정|기록|적|했|었|있|하|을|를|은|는|가|이|나요|니|지|요|어|습니까"
)
ASKS_ALL_ABROAD = Pattern(
    "has no words but those that ask, in other languages",
    rf"[\W_]*(?:(?:\b(?:{_ASKING_LATIN})\b|{_ASKING_WIDE})[\W_]*){{1,30}}\Z",
    start=True,
    matches=(
        "Was habe ich notiert?",
        "Qu'avons-nous décidé ?",
        "¿Qué anoté ?",
        "O que decidimos ?",
        "Что мы решили ?",
        "我们决定了什么？",
        "何をメモした？",
        "무엇을 적었나?",
    ),
    rejects=(
        "Was haben wir zum Cache entschieden?",
        "我们用什么做缓存？",
        "キャッシュには何を使った？",
    ),
)


class KindCue(NamedTuple):
    """A wording by which a question asks for memories of some kinds."""

    kinds: tuple[str, ...]
    hints: tuple[
        str, ...
    ]  # one of them is in every text that matches: most questions compile nothing
    pattern: Pattern
    open_only: bool = False  # asks for what is still open


_WE_DID = r"\b(?:did|have|had) (?:we|i|you|they|the team) (?:\w+ )?"
_WAITING = ("todo", "question", "problem")
KIND_CUES = (
    KindCue(
        ("question",),
        ("question", "still", "remains", "un"),
        Pattern(
            "asks for open questions",
            r"\b(?:open|unanswered|unresolved|outstanding|pending) questions?\b"
            r"|\bquestions? (?:(?:is|are|do|does|that) ){0,2}(?:we (?:have )?)?(?:still |yet |left )?(?:open|unanswered|unresolved|remain(?:s|ing)?)\b"
            r"|\bwhat(?:'s| is| are)? still (?:unanswered|unresolved|unclear)\b|\bwhat (?:remains|is|are) (?:unanswered|unresolved)\b",
            matches=(
                "open questions about billing",
                "which questions are still unanswered",
                "what is still unclear",
                "what remains unresolved",
            ),
            rejects=("a question about billing", "what is still slow"),
        ),
        open_only=True,
    ),
    KindCue(
        ("decision",),
        ("deci", "agree", "settle", "cho"),
        Pattern(
            "asks for decisions",
            r"\bdecisions (?:about|on|regarding|concerning|around|for|behind|made|we (?:made|took))\b"
            r"|\b(?:our|my|final|what (?:is|was) the) decision (?:about|on|regarding|concerning|for|behind)\b"
            rf"|\b(?:which|what) (?:decision|choice)s? (?:did|have|was|were)\b|{_WE_DID}(?:decided?|agreed?|settled?|choose|chosen)\b"
            r"|\bwhat (?:we|i|you|they|the team|was|were|has been) decided\b",
            matches=(
                "decisions about caching",
                "what was the decision on retries",
                "which choices did we make",
                "what did we finally agree on",
                "what was decided",
            ),
            rejects=("a decision tree", "why is it undecided"),
        ),
    ),
    KindCue(
        ("decision",),
        ("ents", "beschl", "déci", "deci", "реш", "决定", "決", "결정"),
        Pattern(
            "asks for decisions, in other languages",
            r"\bwas (?:haben|hatten) wir\b[^?]{0,80}\b(?:entschieden|beschlossen)\b|\b(?:welche|unsere) entscheidungen?\b"
            r"|\bqu'(?:avons-nous|a-t-on) décidé\b|\bquelles? décisions?\b|\bqué (?:decidimos|hemos decidido)\b|\bqué decision(?:es)?\b"
            r"|\bo que (?:nós )?decidimos\b|\b(?:que|quais) decisões\b|\bчто мы решили\b|\bкакие решения\b"
            r"|(?:做了|有)(?:什么|哪些)决定|(?:我们|团队)[^？?]{0,20}决定了什么|何を決め|どんな決定|決定事項|(?:무엇을|뭘|뭐를) 결정했|어떤 결정",
            matches=(
                "was haben wir zum Cache entschieden?",
                "welche Entscheidungen gibt es?",
                "qu'avons-nous décidé ?",
                "¿qué decidimos sobre la caché?",
                "o que decidimos sobre o cache?",
                "что мы решили про кэш?",
                "关于缓存我们做了什么决定？",
                "キャッシュについて何を決めましたか？",
                "캐시에 대해 무엇을 결정했나요?",
            ),
            rejects=("Entscheidungsbaum", "我们用什么缓存", "la décision de cache est lente"),
        ),
    ),
    KindCue(
        _WAITING,
        (
            "offen",
            "ouvert",
            "abiert",
            "pendient",
            "abert",
            "pendent",
            "открыт",
            "остал",
            "待办",
            "未解决",
            "未対応",
            "残って",
        ),
        Pattern(
            "asks for what is open, in other languages",
            r"\bwas ist (?:noch |alles )?offen\b|\boffene (?:fragen|aufgaben|punkte)\b|\b(?:questions|points|tâches) (?:ouverte?s|en suspens)\b"
            r"|\bqué (?:queda|está) pendiente\b|\b(?:preguntas|tareas) (?:abiertas|pendientes)\b|\bo que (?:está|ficou) pendente\b"
            r"|\b(?:questões|tarefas) (?:em aberto|abertas|pendentes)\b|\bоткрыты[ех] (?:вопрос|задач)\w*|\bчто осталось сделать\b"
            r"|(?:有|还有)哪些(?:待办|未解决)|未対応の|残っている(?:課題|タスク|作業)",
            matches=(
                "was ist noch offen?",
                "questions ouvertes",
                "¿qué queda pendiente?",
                "o que está pendente?",
                "какие открытые вопросы есть",
                "还有哪些待办？",
                "残っているタスクは？",
            ),
            rejects=("offene Ports", "la porte est ouverte", "待办表的结构"),
        ),
        open_only=True,
    ),
    KindCue(
        ("solution",),
        ("how ", "solution", "workaround", "the fix"),
        Pattern(
            "asks for solutions",
            r"\bhow (?:did|have|had) (?:we|i|you|they|the team) (?:\w+ )?(?:fix|solve|resolve|work(?:ed)? around)"
            r"|\bhow (?:was|were) [^?]{1,80} (?:fixed|solved|resolved|worked around)\b"
            r"|\b(?:the|a|any|our|known|and) solutions? (?:to|for)\b|\bwhat (?:was|is|were) the (?:solution|workaround|fix)\b|\bworkarounds? (?:to|for)\b",
            matches=(
                "how did we fix the leak",
                "how was the race in the queue solved",
                "any solution for slow tests",
                "what was the fix",
                "workarounds for Safari",
            ),
            rejects=("how do we deploy", "the fixture"),
        ),
    ),
    KindCue(
        ("problem",),
        ("known ", "s with"),
        Pattern(
            "asks for problems",
            r"\bknown (?:issue|problem|bug|limitation)s?\b|(?<!have )(?<!having )(?<!had )(?<!got )\b(?:problems|issues) with\b",
            matches=("known limitations of the importer", "problems with the cache"),
            # A user who has a problem wants its remedy, not more complaints.
            rejects=("I have problems with the cache", "no problem"),
        ),
    ),
    KindCue(
        ("gotcha",),
        ("gotcha", "pitfalls"),
        Pattern(
            "asks for gotchas",
            r"\bgotchas\b|\bgotcha (?:about|with|in|for|of|when)\b|\bpitfalls (?:of|with|in|when)\b",
            matches=("gotchas of SQLite", "pitfalls with time zones"),
            rejects=("a pitfall", "gotcha!"),
        ),
    ),
    KindCue(
        ("todo",),
        ("todo", "open"),
        Pattern(
            "asks for open to-dos",
            r"\b(?:open|pending|remaining|outstanding|unfinished|my|our) (?:todos|todo items)\b|\bopen (?:to-dos?|tasks)\b",
            matches=("my todos", "open tasks of this week"),
            rejects=("todos table schema", "open the file"),
        ),
        open_only=True,
    ),
    KindCue(
        ("problem",),
        ("open",),
        Pattern(
            "asks for open problems",
            r"\bopen (?:problems?|issues?|bugs?)\b",
            matches=("open bugs in the parser",),
            rejects=("open the issue tracker",),
        ),
        open_only=True,
    ),
    KindCue(
        _WAITING,
        ("open", "left", "to do", "remains"),
        Pattern(
            "asks for everything that is open",
            r"\b(?:what(?:'s| is)|is (?:there )?any ?thing)(?: still)? open(?: now| here| yet)?\W*$|\bopen items\b|\bwhat remains open\b"
            r"|\b(?:what(?:'s| is)|is (?:there )?anything)(?: still)? left(?: (?:to do|open|undone|here|now))?\W*$"
            r"|\bwhat(?:'s| is) (?:still |there )?left to do\b|\banything (?:still )?left to do\b"
            r"|\bwhat(?:'s| is) (?:still |there )?to do\b|\bwhat (?:do|should) (?:we|i) still (?:need|have) to do\b"
            r"|\bwhat (?:still )?remains(?: (?:to do|to be done|undone))?\W*$",
            matches=(
                "what's open?",
                "is there anything left?",
                "what is there left to do in billing",
                "what do we still need to do",
                "What remains?",
            ),
            rejects=("what is open source", "left join", "what remains of the old parser"),
        ),
        open_only=True,
    ),
    KindCue(
        ("preference",),
        ("prefer",),
        Pattern(
            "asks for preferences",
            r"\b(?:my|our|coding|his|her|their) preferences\b|\bpreferences (?:for|about|regarding|when)\b"
            r"|\bwhat (?:do|does|did) (?:we|i|you|he|she|they|the user) prefer\b",
            matches=("my preferences", "what does the user prefer"),
            rejects=("the preferences dialog",),
        ),
    ),
    KindCue(
        ("handoff",),
        ("handoff",),
        Pattern(
            "asks for the last handoff",
            r"\b(?:last|latest|previous) handoff\b",
            matches=("show the last handoff",),
            rejects=("a handoff",),
        ),
    ),
)

# Questions in a conversation

ASKS_LEAVE = Pattern(
    "asks leave",
    r"(?:can|may) i\b|(?:could|should|shall) (?:i|we)\b",
    start=True,
    matches=("Shall we drop the flag?", "may I push?"),
    rejects=("can you push?",),
)
AGENT_ASKS_CHOICE = Pattern(
    "an agent's question, above the user's choice",
    r"^[^\n]{0,400}\b(?:would you (?:like|prefer)|do you (?:want|prefer))\b.{0,100}\?\n",
    matches=("Which database would you prefer for this?\nPostgres",),
    rejects=("Would you like tea?", "Do you want me to go on? Yes"),
)
ASKS_WITHIN = Pattern(
    "a thought or a wish put as a question",
    r"\bi (?:wonder|want|think|thought|would like)\b|, (?:but |and |so )?(?:could|can|should|would|shall) (?:we|you|i|it)\b"
    r"|\b(?:can|could|would) you\b",
    matches=("I wonder whether that holds?", "It is slow, could we cache it?"),
    rejects=("We use Redis now?",),
)
DOUBTS = Pattern(
    "doubts what somebody claims",
    r"\b(?:whether|claims?|believes?|(?<!make )sure|certain|true)\b",
    matches=("are you sure?", "is it true?", "do you know whether we use X?"),
    rejects=("can you make sure it runs?", "what is the port?"),
)
IS_SOMEBODY_RIGHT = Pattern(
    "asks if somebody is right",
    r"\bis \w+ right\?",
    matches=("Is Eve right?",),
    rejects=("Is the right margin wide?",),
)
NEGATED_WHY = Pattern(
    "the words before the subject of a why question",
    r"(?i)^(?:(?:why|not|no)\b\s*)+",
    fold=False,
    matches=("why not Redis", "Why no ORM"),
    rejects=("the reason why",),
)
