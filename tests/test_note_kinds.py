"""The kind of a note that nobody gave one, with the packaged models."""

import json

import note_kinds
import pytest

from bethink.api import Bethink
from bethink.config import Config
from bethink.ingest.extract import classify

MODEL = "snowflake-arctic-embed-s"


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """Every note with the kind that it got."""
    folder = tmp_path_factory.mktemp("kinds")
    found = {}
    with Bethink(folder / "memory.db", directory=folder, config=Config(embedding=MODEL)) as memory:
        for notes in (note_kinds.TUNING, note_kinds.UNSEEN):
            for text in (text for texts in notes.values() for text in texts):
                found[text] = memory.one(memory.add(text, dedup=False).id).kind
    return found


def share(notes, kinds, typed):
    """How many of the notes of some kinds got theirs."""
    texts = [(kind, text) for kind in kinds for text in notes[kind]]
    return sum(typed[text] == kind for kind, text in texts) / len(texts)


@pytest.mark.parametrize(
    ("kinds", "least"),
    [
        pytest.param(("decision",), 0.9, id="decisions"),
        pytest.param(("fact",), 0.7, id="facts"),
        pytest.param(("todo", "question"), 1.0, id="todos and questions"),
        pytest.param(
            ("problem", "solution", "preference"), 0.7, id="problems, solutions, preferences"
        ),
        pytest.param(("gotcha", "pattern"), 0.5, id="gotchas and patterns"),
        pytest.param(tuple(note_kinds.UNSEEN), 0.78, id="all"),
    ],
)
def test_notes_that_nothing_was_tuned_on_get_their_kind(typed, kinds, least):
    assert share(note_kinds.UNSEEN, kinds, typed) >= least


def test_notes_that_the_weights_were_chosen_on_get_their_kind(typed):
    assert share(note_kinds.TUNING, tuple(note_kinds.TUNING), typed) >= 0.88


@pytest.mark.parametrize("kind", ["decision", "fact", "gotcha", "problem", "solution", "pattern"])
def test_what_wants_nothing_done_is_neither_a_todo_nor_a_question(typed, kind):
    texts = [*note_kinds.TUNING[kind], *note_kinds.UNSEEN[kind]]
    assert [text for text in texts if typed[text] in ("todo", "question")] == []


@pytest.mark.parametrize(
    "text",
    [
        "We use Postgres for billing.",
        "Going with Redis over Memcached.",
        "The API stays on v1 until March.",
        "Switched CI to GitHub Actions.",
        "We won't support IE11.",
        "Dropped support for Python 3.9.",
    ],
)
def test_without_a_model_words_alone_tell_a_decision(text):
    assert classify(text)[0] == "decision"


@pytest.mark.parametrize(
    ("text", "options", "kind"),
    [
        pytest.param("We use Postgres for billing.", {"kind": "fact"}, "fact", id="given"),
        pytest.param("Gotcha: we use Postgres for billing.", {}, "gotcha", id="labelled"),
        pytest.param("Do we use Postgres for billing?", {}, "question", id="asked"),
    ],
)
def test_a_kind_that_was_said_outright_wins(open_memory, text, options, kind):
    memory = open_memory(MODEL)
    assert memory.one(memory.add(text, **options).id).kind == kind


RULES = {
    "decision": [
        "Wir benutzen nie npm, nur pnpm",
        "Wir deployen nie am Freitag, weil der Support dann fehlt",
        "On ne déploie jamais le vendredi",
        "Nunca desplegamos los viernes",
        "Nunca fazemos deploy na sexta",
        "Мы никогда не выкатываем по пятницам",
        "我们从不在周五部署",
        "우리는 항상 pnpm을 사용한다",
    ],
    "preference": [
        "Immer Zod für Validierung verwenden",
        "Ne jamais pousser directement sur main",
        "Nunca hagas push directo a main",
        "Sempre usar pnpm neste projeto",
        "Никогда не пушить напрямую в main",
        "绝不直接推送到 main",
        "決して main に直接 push しない",
        "절대 main에 직접 푸시하지 않는다",
    ],
    "todo": [
        "Aufgabe: Cache leeren vor dem Release",
        "Tarea: limpiar la caché",
        "Tâche : vider le cache",
        "任务：清理缓存",
    ],
    "problem": [
        "Der Build schlägt immer fehl",
        "El build siempre falla en Windows",
        "Сборка всегда падает на Windows",
        "构建总是失败",
        "ビルドは必ず失敗する",
    ],
    "general": [
        "Der Server war nie langsam",
        "Die Lampe leuchtet immer noch",
        "Wir hatten nie Probleme mit dem Cache",
        "빌드가 항상 실패한다",
    ],
    "fact": ["Immer is used for the state"],
}


@pytest.mark.parametrize(
    ("text", "kind"),
    [pytest.param(text, kind, id=text) for kind, texts in RULES.items() for text in texts],
)
def test_a_note_in_another_language_gets_its_kind_from_never_always_and_task(text, kind):
    assert classify(text)[0] == kind


@pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=text) for text in (*RULES["decision"][:4], *RULES["preference"][:3])],
)
def test_a_rule_in_another_language_reaches_the_briefing(cli, text):
    cli.ok("add", text)
    told = json.loads(cli.ok("hook", "session-start", stdin="{}"))
    assert text in told["hookSpecificOutput"]["additionalContext"]
