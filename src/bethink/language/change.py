"""Change and denial: what was replaced by what, that something holds no longer, and words that deny."""

import re

from bethink.language.detect import is_english
from bethink.language.pattern import Pattern

LONGEST_THING = 60  # characters of the old or the new thing of a change

# A part of a clause, in which "3.8" and "next.js" keep their dots. Bounded, because a text may hold a hundred thousand words
# such as "from".
_THING = rf"(?:[^,.;]|\.(?=\w)){{1,{LONGEST_THING + 1}}}"
_NAME = r"[\w.+#-]{1,40}"
_WIDE = r"[^\s，。、；,.;：:的了をはがにのへで]{1,20}"  # a name or a short phrase of Chinese or Japanese

# Each has two groups, `old` and `new`. Those with several wordings have more names for them: a name can be given once.
OLD_THINGS = ("old", "former", "past", "once")
NEW_THINGS = ("new", "latter", "present", "thereafter")
STATED_CHANGES = (
    Pattern(
        "moved from old to new",
        r"\b(?:switch(?:ed|ing)?|mov(?:ed|ing|e)|migrat(?:ed|ing|e)|chang(?:ed|ing|e)|convert(?:ed|ing)?|went)\s(?:\w+\s){0,4}?"
        rf"from\s(?P<old>{_THING}?)\s(?:over\s)?to\s(?P<new>{_THING})",
        fold=False,
        flags=re.IGNORECASE,
        matches=("We moved billing from MySQL to Postgres", "Switching from npm over to pnpm"),
        rejects=("We moved to Postgres", "from Monday to Friday"),
    ),
    Pattern(
        "replaced old with new",
        rf"\b(?:replac(?:ed|ing|e)|swap(?:ped|ping)?)\s(?P<old>{_THING}?)\s(?:with|by|for)\s(?P<new>{_THING})",
        fold=False,
        flags=re.IGNORECASE,
        matches=("Replaced moment with dayjs", "We swap Redis for Valkey"),
        rejects=("The replacement works with Redis",),
    ),
    Pattern(
        "new instead of old",
        rf"\b(?P<new>{_NAME}(?:\s{_NAME})?)\s(?:instead of|rather than|in place of)\s(?P<old>{_THING})",
        fold=False,
        flags=re.IGNORECASE,
        matches=("pnpm instead of npm", "Use Ruff rather than flake8"),
        rejects=("Use Ruff instead",),
    ),
    Pattern(
        "no longer old, but new",
        rf"\bno longer (?:use|using|need|run|on|support)\s(?P<old>{_THING}?)(?:,|;|\.(?!\w)|\bbut\b|\band\b)(?P<new>(?:{_THING}|,)*)",
        fold=False,
        flags=re.IGNORECASE,
        matches=("We no longer use Jenkins, but GitHub Actions",),
        rejects=("It no longer fails",),
    ),
    Pattern(
        "old is ruled out",
        rf"(?:\A|[,;.]\s)(?:(?:wait|actually|ok|so|and|but)[,.]?\s){{0,2}}(?:(?:the|our|old)\s){{0,2}}(?P<old>{_NAME})(?:\s\w{{1,20}})?\s(?:is|are)\s"
        r"(?:now\s)?(?P<new>)(?:out|off the table|ruled out|dropped|scrapped)(?=\s*(?:[:;,.!—–]|$|because\b|since\b))",
        fold=False,
        flags=re.IGNORECASE,
        matches=(
            "Redis is out: ops will shut it down",
            "Wait. Kafka is off the table",
            "Elasticsearch is ruled out, because of its licence",
        ),
        rejects=("Redis is out of memory", "The report is out on Friday", "Is Redis out?"),
    ),
    Pattern(
        "old is gone",
        rf"[,;.]\s(?:and\s)?(?:(?:the|our|old)\s){{0,2}}(?P<old>{_NAME})(?:\s\w{{1,20}})?\s(?:is|are|was|were)\s"
        r"(?P<new>)(?:gone|history|(?:switched|turned|powered) off|shut down|retired|decommissioned)\b",
        fold=False,
        flags=re.IGNORECASE,
        matches=("Grafana does it, the old Kibana is gone", "Use S3; Minio was shut down"),
        rejects=("Kibana is slow",),
    ),
)
# Other languages, each with its own words for the same.
CHANGES_ABROAD = (
    Pattern(
        "German: from old to new",
        rf"\b(?:von|vom) (?P<old>{_NAME}) (?:auf|zu|zum|nach) (?P<new>{_NAME}) (?:\w+ )?(?:gewechselt|umgestellt|umgestiegen|umgezogen|migriert|gewandert)\b",
        fold=False,
        flags=re.IGNORECASE,
        matches=("Wir sind von MySQL auf Postgres umgestiegen",),
        rejects=("von Montag bis Freitag", "Wir nutzen Postgres"),
    ),
    Pattern(
        "German: no longer old, but new",
        rf"(?P<old>{_NAME}) nicht mehr,? sondern (?P<new>{_THING})|\bnicht mehr (?:mit |über |auf |bei |in )?(?P<former>{_NAME}),? sondern (?P<latter>{_THING})",
        fold=False,
        flags=re.IGNORECASE,
        matches=(
            "Wir nutzen Redis nicht mehr, sondern Valkey",
            "Tests laufen nicht mehr mit Mocha, sondern mit Vitest",
        ),
        rejects=("Das geht nicht mehr",),
    ),
    Pattern(
        "German: new instead of old",
        rf"\b(?P<new>{_NAME}) (?:statt|anstatt|anstelle von) (?P<old>{_NAME})|\b(?P<former>{_NAME}) (?:wurde |wird |haben wir )?durch (?P<latter>{_NAME}) ersetzt\b",
        fold=False,
        flags=re.IGNORECASE,
        matches=("pnpm statt npm", "Jenkins wurde durch Woodpecker ersetzt"),
        rejects=("es findet statt",),
    ),
    Pattern(
        "Spanish or Portuguese: from old to new",
        rf"\b(?:cambi|migr|pas|mud)\w{{1,6}} (?:\w+ ){{0,2}}?(?:de|do|da|del) (?P<old>{_NAME}) (?:a|para|al) (?P<new>{_NAME})",
        fold=False,
        flags=re.IGNORECASE,
        matches=("Migramos de MySQL a Postgres", "Mudamos de npm para pnpm"),
        rejects=("de lunes a viernes",),
    ),
    Pattern(
        "Spanish or Portuguese: no longer old, but new",
        rf"\b(?:ya no|já não|não) (?:se )?(?:us\w+|utiliz\w+|mais usamos|usamos mais) (?P<old>{_NAME})(?: (?:para|en|em|no|na) [^,.;]{{1,40}})?,? (?:sino|mas sim|e sim|ahora|agora) (?P<new>{_THING})",
        fold=False,
        flags=re.IGNORECASE,
        matches=(
            "Ya no usamos Redis, sino Valkey",
            "Não usamos mais Redis, e sim Valkey",
            "Ya no usamos Redis para la caché, sino Valkey",
        ),
        rejects=("ya no funciona",),
    ),
    Pattern(
        "Spanish or Portuguese: new instead of old",
        rf"\b(?P<new>{_NAME}) (?:en lugar de|en vez de|em vez de|em lugar de|no lugar de) (?P<old>{_NAME})|\b(?:reemplaz|sustitu|substitu)\w{{1,6}} (?:a )?(?P<former>{_NAME}) (?:por|con|pelo|pela) (?P<latter>{_NAME})",
        fold=False,
        flags=re.IGNORECASE,
        matches=("pnpm en lugar de npm", "Substituímos Jenkins por Woodpecker"),
        rejects=("en lugar seguro",),
    ),
    Pattern(
        "French: from old to new, or no longer old",
        rf"\b(?:pass|migr|bascul|déménag)\w{{1,5}} (?:de |d['’])(?P<old>{_NAME}) (?:à|vers|sur|au) (?P<new>{_NAME})|\bn['’e] ?\w+ plus (?P<former>{_NAME})(?: (?:pour|dans|sur|en) [^,.;]{{1,40}})?,? mais (?P<latter>{_THING})",
        fold=False,
        flags=re.IGNORECASE,
        matches=(
            "Nous sommes passés de MySQL à Postgres",
            "On n'utilise plus Redis, mais Valkey",
            "On n'utilise plus Redis pour le cache, mais Valkey",
        ),
        rejects=("il ne marche plus",),
    ),
    Pattern(
        "French: new instead of old",
        rf"\b(?P<new>{_NAME}) (?:au lieu de|plutôt que|à la place de) (?P<old>{_NAME})|\bremplac\w{{1,5}} (?P<former>{_NAME}) par (?P<latter>{_NAME})",
        fold=False,
        flags=re.IGNORECASE,
        matches=("pnpm au lieu de npm", "Nous avons remplacé Jenkins par Woodpecker"),
        rejects=("au lieu-dit",),
    ),
    Pattern(
        "Russian: from old to new, or new instead of old",
        rf"\b(?:переш|переех|переключ|мигрир)\w{{1,8}} (?:\w+ )?(?:с|со|из) (?P<old>{_NAME}) (?:на|в) (?P<new>{_NAME})|\bзамен\w{{1,5}} (?P<former>{_NAME}) на (?P<latter>{_NAME})|\b(?P<present>{_NAME}) вместо (?P<past>{_NAME})|\bбольше не использу\w{{1,4}} (?P<once>{_NAME})(?: (?:для|в|на) [^,.;]{{1,40}})?, (?:а|теперь|сейчас)(?: использу\w{{1,4}})? (?P<thereafter>{_NAME})",
        fold=False,
        flags=re.IGNORECASE,
        matches=(
            "Мы перешли с MySQL на Postgres",
            "Заменили Jenkins на Woodpecker",
            "pnpm вместо npm",
            "Для кэша больше не используем Redis, теперь Valkey",
        ),
        rejects=("работаем с понедельника",),
    ),
    Pattern(
        "Chinese: from old to new, or no longer old",
        rf"从\s?(?P<old>{_WIDE})\s?(?:迁移|切换|改|换|升级)(?:到|成|为|用)\s?(?P<new>{_WIDE})|不再(?:使用|用)?\s?(?P<former>{_WIDE})\s?[，,]\s?(?:而是|改用|改为|换成)\s?(?P<latter>{_WIDE})|[把将]\s?(?P<past>{_WIDE})\s?(?:换成|替换为|替换成|改成|改为)\s?(?P<present>{_WIDE})",
        fold=False,
        matches=(
            "数据库从 MySQL 迁移到 Postgres",
            "不再使用 Redis，改用 Valkey",
            "把 Jenkins 换成 Woodpecker",
        ),
        rejects=("从不在周五部署", "我们用 MySQL"),
    ),
    Pattern(
        "Japanese: from old to new, or new instead of old",
        rf"(?P<old>{_WIDE})\s?から\s?(?P<new>{_WIDE})\s?(?:に|へ)(?:移行|変更|切り替え|乗り換え)|(?P<former>{_WIDE})\s?を\s?(?P<latter>{_WIDE})\s?(?:に|へ)(?:置き換え|差し替え|変更)|(?P<past>{_WIDE})\s?(?:ではなく|の代わりに|をやめて、?)\s?(?P<present>{_WIDE})",
        fold=False,
        matches=(
            "MySQL から Postgres に移行した",
            "Jenkins を Woodpecker に置き換えた",
            "npm ではなく pnpm を使う",
            "Redis をやめて Valkey にした",
        ),
        rejects=("MySQL を使う",),
    ),
    Pattern(
        "Korean: from old to new, or new instead of old",
        rf"(?P<old>{_NAME})에서 (?P<new>{_NAME})(?:으로|로) (?:옮|전환|변경|바꾸|바꿨|이전|마이그레이션)|(?P<former>{_NAME}) 대신 (?P<latter>{_NAME})|(?P<past>{_NAME})(?:이|가) 아니라 (?P<present>{_NAME})",
        fold=False,
        matches=(
            "MySQL에서 Postgres로 옮겼다",
            "npm 대신 pnpm을 쓴다",
            "더 이상 Redis가 아니라 Valkey를 사용한다",
        ),
        rejects=("Redis를 사용한다",),
    ),
)
SPEAKS_OF_CHANGE = Pattern(
    "speaks of a change",
    r"\b(?:no longer|instead|not .{0,20}any ?more|moved|switched|replaced|dropped|from now on|now|since|back to|became|changed|anymore"
    r"|as of|these days|gone|retired|used to)\b",
    matches=("We no longer deploy on Fridays", "It became optional", "not used any more"),
    rejects=("Deploys run on Fridays", "We know the port"),
)
# An agent that repeats a memory with one of these words does more than echo it.
TURNS_ROUND = Pattern(
    "turns what was said around",
    r"\b(?:not|no longer|never|instead|anymore|n't|switch\w*|mov\w+|chang\w+|replac\w+|wrong|outdated)\b",
    matches=("That is outdated", "We switched to pnpm", "never on Fridays"),
    rejects=("We use pnpm here",),
)
CHANGED_MIND = Pattern(
    "says that another decision follows",
    r"\b(?:changed (?:my|our) minds?|on second thoughts?|scratch that)\W{0,3}$",
    matches=("I changed my mind.", "hm, on second thought …"),
    rejects=("Nobody changed my mind about Redis",),
)

NEGATIONS = frozenset(
    "not no never none without nor neither disable disabled stop stopped avoid forbid forbidden".split()
)


def find_change(text: str) -> tuple[str, str] | None:
    """Return the old and the new thing of a stated change, or None."""
    line = " ".join(text.split())
    for pattern in STATED_CHANGES if is_english(line) else (*CHANGES_ABROAD, *STATED_CHANGES):
        found = pattern.find(line)
        if found is None:
            continue
        parts = found.groupdict()
        old, new = (
            next((parts[name] for name in names if parts.get(name) is not None), "")
            for names in (OLD_THINGS, NEW_THINGS)
        )
        if 0 < len(old.strip()) <= LONGEST_THING:
            return old.strip(), new.strip()[:LONGEST_THING]
    return None
