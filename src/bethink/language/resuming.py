"""Resuming: questions about the last session, or about what is left, and about nothing else."""

from bethink.language.openers import OPENERS
from bethink.language.pattern import Pattern

_END = r"(?: (?:please|now|today|here|again|then|(?:in|on|for|of) (?:this|the|our) (?:project|repo(?:sitory)?|session|branch))){0,3}\W{0,9}\Z"
_BEGIN = rf"\W{{0,6}}(?:(?:{OPENERS}|good morning)[\s,.!-]{{1,4}}){{0,3}}(?:(?:can|could) you )?(?:(?:tell|remind|show) me )?"
_THEN = (
    r"(?:(?:the )?(?:last|previous|prior) (?:time|session|conversation|chat)|last|before|previously|recently|lately|earlier"
    r"|yesterday(?: (?:morning|afternoon|evening))?|today|last (?:night|week)|this (?:morning|week)|(?:the )?day before yesterday)"
)
_DOING = (
    r"(?:do(?:ing)?|work(?:ing)? on|accomplish|get done|finish|achieve|talk(?:ing)? about|discuss)"
)
ASKS_LAST_SESSION = Pattern(
    "asks what was done last",
    rf"{_BEGIN}(?:what (?:did|have|had) (?:we|i|you) (?:{_DOING}|done|worked on)(?: (?:in|on|at|during))?(?: {_THEN})?"
    rf"|what (?:were|was|have) (?:we|i|you)(?: been)? (?:just )?(?:{_DOING})(?: (?:in|on|at))?(?: {_THEN})?"
    rf"|what (?:happened|was done|got done)(?: (?:in|on|at))? (?:{_THEN})"
    r"|where (?:did|have|had) (?:we|i|you) (?:stop|stopped|leave off|left off|leave it|get to|finish)|where (?:were|are) we|where do we stand"
    r"|(?:catch me up|bring me up to speed|summar(?:y|i[sz]e) (?:of )?(?:the |our |my )?(?:last|previous) (?:session|time))"
    r"|was (?:haben|hatten) wir (?:denn )?(?:letztes mal|zuletzt|gestern|heute|beim letzten mal) (?:gemacht|getan|geschafft)"
    r"|wo (?:sind|waren) wir(?: stehen ?geblieben)?"
    r"|¿?qu[ée] (?:hicimos|hemos hecho|estábamos haciendo)(?: (?:ayer|hoy|la (?:última|ultima) vez|en la última sesión))?|¿?d[óo]nde (?:lo )?(?:nos quedamos|dejamos)"
    r"|qu'?(?:est-ce qu')?(?:on a|avons-nous|nous avons) fait (?:hier|la derni[èe]re fois|aujourd'hui)|o[ùu] en (?:[ée]tions-nous|[ée]tait-on|sommes-nous)"
    rf"){_END}"
    r"|\W{0,6}(?:前回|昨日|この前|先週)は?(?:、)?何を(?:した|しました|していた|やった|やりました)(?:か|っけ|の|でしたか){0,3}\W{0,9}\Z|\W{0,6}どこまで(?:やった|進んだ|やりました|進みました)\w{0,6}\W{0,9}\Z"
    r"|\W{0,6}(?:我们|我們|咱们)?(?:上次|昨天|上一次|刚才)(?:我们|我們|咱们)?(?:都)?(?:做|干|幹)(?:了|过)?(?:些)?什[么麼]\W{0,9}\Z|\W{0,6}(?:上次)?(?:做|进行|說|说)到哪(?:里|裡|儿)?了?\W{0,9}\Z",
    start=True,
    flags=0,
    words=tuple(
        "what,where,catch me up,bring me up,summar, wir,qué,que,dónde,donde,on a fait,avons,où,ou en,前回,昨日,この前,先週,どこまで,什么,什麼,哪".split(
            ","
        )
    ),
    matches=(
        "what did we do last time?",
        "What did we do yesterday?",
        "so, where did we leave off",
        "what were we working on?",
        "was haben wir letztes Mal gemacht?",
        "¿qué hicimos ayer?",
        "qu'est-ce qu'on a fait hier ?",
        "前回は何をしましたか",
        "我们上次做了什么?",
    ),
    rejects=(
        "what did we do about the cache?",
        "what did we decide yesterday?",
        "where did we put the deploy script?",
        "what were we working on in the parser?",
        "do it again",
    ),
)
_TODO = r"(?: (?:to (?:do|be done|finish|fix|implement)|open|outstanding|unfinished|undone))?"
ASKS_WHAT_IS_LEFT = Pattern(
    "asks what is left",
    rf"{_BEGIN}(?:what(?:'s| is|s| are)? (?:still |now )?(?:left|remaining|pending|outstanding|open|next|unfinished|missing){_TODO}"
    rf"|what (?:else )?(?:still )?(?:remains|needs to be done|has to be done|is there(?: left)? to do|do (?:we|i) (?:still )?(?:have|need) to do)(?: next)?{_TODO}"
    r"|what (?:should|do|can|must) (?:we|i|you) do next|what comes next|what(?:'s| is| are) (?:the |my |our )?(?:next steps?|open (?:items|tasks|points|work|ends)|remaining (?:work|tasks|items)|to-?dos?(?: list)?)"
    r"|(?:any|are there(?: any)?)(?: more)? (?:open|remaining|outstanding|unfinished) (?:items|tasks|points|work|to-?dos?)|next steps?|(?:any )?loose ends"
    r"|was (?:ist|bleibt|wäre|steht) (?:noch |jetzt )?(?:offen|übrig|zu tun|zu erledigen|an|liegen ?geblieben)|was (?:fehlt|bleibt)(?: noch)?(?: zu tun)?|was (?:kommt|machen wir|ist|steht) als n[äa]chstes(?: an)?|was m[üu]ssen wir noch (?:tun|machen|erledigen)"
    r"|¿?qu[ée] (?:nos )?(?:queda|falta|sigue|hay pendiente)(?: (?:por|que) hacer)?|¿?cu[áa]l es el siguiente paso"
    r"|(?:qu'est-ce qu(?:'il|i)|que) (?:nous )?reste(?:-t-il)?(?: encore)?(?: [àa] faire)?|(?:et )?(?:ensuite|quelle est la suite|quelles sont les prochaines [ée]tapes)"
    r"|o que (?:ainda |nos )?(?:falta|resta|est[áa] pendente)(?: (?:para |por )?fazer)?|quais s[ãa]o os pr[óo]ximos passos"
    r"|что (?:у нас |нам )?(?:ещё |еще )?(?:осталось|нужно|надо)(?: (?:сделать|доделать))?|что дальше"
    rf"){_END}"
    r"|\W{0,6}남은 (?:할 )?(?:일|작업)(?:은|이)? ?(?:뭐|무엇|있)?\w{0,6}\W{0,9}\Z|\W{0,6}(?:아직 )?(?:뭐가|무엇이) 남았\w{1,4}\W{0,9}\Z|\W{0,6}다음(?:은|에는|에) (?:뭐|무엇)\w{0,3}(?: \w{1,8})?\W{0,9}\Z"
    r"|\W{0,6}(?:残っている|残った|残る)(?:作業|タスク|課題|仕事)は?(?:何|なに)?(?:ですか|がありますか)?\W{0,9}\Z"
    r"|\W{0,6}(?:残り|残件|残タスク|残作業)(?:は|の?タスクは|の?作業は)?(?:何|なに)?(?:ですか|がありますか)?\W{0,9}\Z|\W{0,6}(?:あと|他に)?何が残って(?:る|いる|います)(?:か|の){0,3}\W{0,9}\Z|\W{0,6}(?:次|つぎ)は(?:何|なに)(?:を|が)?(?:する|します|やる|すべき|ですか|すれば)?\w{0,6}\W{0,9}\Z|\W{0,6}やり残し\w{0,6}\W{0,9}\Z"
    r"|\W{0,6}还(?:剩|有)(?:下|些)?什[么麼](?:(?:要|没|没有)?(?:做|完成))?\w{0,2}\W{0,9}\Z|\W{0,6}(?:接下来|下一步)(?:要|该|我们){0,3}(?:做|干|是)?(?:什[么麼])?\W{0,9}\Z",
    start=True,
    flags=0,
    words=tuple(
        "what,any ,are there,next step,loose ends,was ,qué,que,cuál,cual,quais,reste,ensuite,что,남,다음,残,何,次,つぎ,还,接下来,下一步".split(
            ","
        )
    ),
    matches=(
        "what is left?",
        "what's left to do?",
        "What's next?",
        "ok, what do we still need to do",
        "what are the next steps?",
        "was ist noch offen?",
        "¿qué queda por hacer?",
        "que reste-t-il à faire ?",
        "Qu'est-ce qui reste à faire ?",
        "o que falta fazer?",
        "Что осталось сделать?",
        "残っている作業は？",
        "남은 할 일은?",
        "次は何をしますか",
        "接下来做什么?",
    ),
    rejects=(
        "what is left of the migration to Valkey?",
        "what's next.js good for?",
        "what is open in the firewall?",
        "o que falta no cache?",
        "남은 메모리는 얼마인가?",
        "what remains of the budget after the deploy?",
        "next, rename the parser",
    ),
)
_CHECKS = r"(?:(?:the|all|our|my) )?(?:(?:unit|integration|e2e|end-to-end) )?(?:tests?(?: suite)?|test suite|checks?|build|lint(?:er|ing)?|type ?check(?:s|er)?|ci|pipeline)"
ASKS_CHECKS = Pattern(
    "asks if the checks passed",
    rf"{_BEGIN}(?:(?:did|do|does|have|has) {_CHECKS} (?:still |all |already )?(?:pass(?:ed)?|run|succeed(?:ed)?|fail(?:ed)?|go through|work)"
    rf"|(?:are|is|were|was) {_CHECKS} (?:still |all |now )?(?:green|passing|failing|red|broken|clean|successful|ok(?:ay)?)"
    rf"|(?:what(?:'s| is| was)|how (?:are|is|were|was)) (?:the )?(?:state|status|result)s? of {_CHECKS}"
    r"|(?:laufen|liefen|sind|waren|gehen|gingen) (?:die |alle )?(?:tests?|pr[üu]fungen|checks)(?: noch| alle| jetzt)?(?: (?:durch(?:gelaufen)?|gr[üu]n|fehlgeschlagen|erfolgreich))?"
    r"|¿?(?:pasaron|pasan|est[áa]n en verde) (?:las |los |todas las |todos los )?(?:pruebas|tests)|(?:est-ce que )?les tests (?:sont|[ée]taient)? ?(?:pass(?:ent|[ée]s?)|au vert)"
    rf")(?: {_THEN})?{_END}"
    r"|\W{0,6}テストは?(?:全部|すべて)?(?:通り|通っ|成功し|パスし)(?:ました|てい|た)\w{0,6}\W{0,9}\Z|\W{0,6}(?:测试|測試)(?:都|全部)?(?:通过|通過)了?(?:吗|嗎|没有)?\W{0,9}\Z",
    start=True,
    flags=0,
    words=tuple(
        "test,check,build,lint,type,ci,pipeline,prüfung,prufung,prueba,テスト,测试,測試".split(",")
    ),
    matches=(
        "did the tests pass?",
        "Are the tests green?",
        "is the build still passing",
        "did all checks pass last time?",
        "sind die Tests durchgelaufen?",
        "テストは通りましたか",
    ),
    rejects=(
        "did the tests of the parser pass the old flag?",
        "how do we run the tests?",
        "the tests pass",
    ),
)
