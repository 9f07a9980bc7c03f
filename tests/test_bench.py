"""The measures of `bethink bench` against numbers worked out by hand, and a tiny set run through the front door."""

import json
import math

import pytest

from bethink import bench
from bethink.errors import InvalidInput


def write(folder, documents, queries, **meta):
    folder.mkdir(exist_ok=True)
    for name, rows in (("corpus", documents), ("queries", queries)):
        lines = "\n".join(json.dumps(row) for row in rows)
        (folder / f"{name}.jsonl").write_text(lines + "\n", "utf-8")
    if meta:
        (folder / "meta.json").write_text(json.dumps(meta))
    return folder


DAY = "2026-03-0{}T10:00:00Z"
DOCUMENTS, QUERIES = (
    [
        {
            "id": "1",
            "text": "The billing service keeps invoices in PostgreSQL",
            "scope": "a",
            "session": "s1",
            "time": "2026-03-01T10:00:00Z",
        },
        {
            "id": "2",
            "text": "Invoices are numbered per year",
            "scope": "a",
            "session": "s1",
            "time": "2026-03-01",
        },
        {
            "id": "3",
            "text": "The owl sleeps by day",
            "scope": "a",
            "session": "s2",
            "title": "Birds",
        },
        {
            "id": "4",
            "text": "The billing service keeps invoices in MySQL",
            "scope": "b",
            "session": "s3",
        },
        {"id": "5", "text": "  ", "scope": "b", "session": "s3"},
    ],
    [
        {
            "id": "q1",
            "query": "where are invoices kept by the billing service?",
            "scope": "a",
            "relevant": ["1"],
            "time": "2026-03-02",
        },
        {"id": "q2", "query": "billing service invoices", "scope": "b", "relevant": ["4"]},
        {
            "id": "q3",
            "query": "invoices billing numbered",
            "scope": "a",
            "relevant_sessions": ["s1"],
        },
        {"id": "q4", "query": "birds", "scope": "a", "relevant": ["3"]},
    ],
)


MODES = [*bench.SEARCHES, *bench.RECIPES]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The result of each mode on a small set, and the progress that was reported."""
    folder = tmp_path_factory.mktemp("sets")
    reported = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("BETHINK_HOME", str(folder / "home"))
        patched.setenv("BETHINK_OFFLINE", "1")
        patched.setenv("BETHINK_EMBEDDING", "hashing")
        written = write(folder / "tiny", DOCUMENTS, QUERIES, name="tiny set")
        rows = bench.run([written], MODES, lambda *words: reported.append(words))
    return {row["mode"]: row for row in rows}, reported, folder / "home"


@pytest.mark.parametrize("mode", MODES)
class TestMode:
    def test_it_answers_every_question_of_a_set(self, tiny, mode):
        row = tiny[0][mode]
        assert (row["set"], row["queries"], row["documents"]) == ("tiny set", 4, 5)

    def test_its_quality_is_within_its_interval(self, tiny, mode):
        row = tiny[0][mode]
        assert 0 <= row["low"] <= row["nDCG@10"] <= row["high"] <= 1

    def test_its_distance_to_the_best_is_within_its_interval(self, tiny, mode):
        row = tiny[0][mode]
        assert row["behind_low"] <= row["behind"] <= row["behind_high"]

    def test_its_speed_of_reading_is_measured(self, tiny, mode):
        assert tiny[0][mode]["documents_per_second"] > 0


@pytest.mark.parametrize("mode", bench.SEARCHES)
class TestSearch:
    def test_it_finds_what_is_relevant_in_its_scope(self, tiny, mode):
        assert [tiny[0][mode][name] for name in bench.MEASURES] == [1.0] * len(bench.MEASURES)

    def test_its_time_is_measured(self, tiny, mode):
        row = tiny[0][mode]
        assert 0 < row["p50_ms"] <= row["p95_ms"] and row["cpu_ms"] > 0


def test_progress_is_reported_from_reading_to_the_last_question(tiny):
    _, reported, _ = tiny
    assert (reported[0], reported[-1]) == (
        ("tiny set: reading", 3, 5),
        ("tiny set: rrf, asked own", 4, 4),
    )


def test_a_measurement_leaves_the_users_database_alone(tiny):
    assert not (tiny[2] / "memory.db").exists()


BAD_SETS = [
    ([], QUERIES, "corpus.jsonl:1 is no JSON object with id and text"),
    (["text"], QUERIES, "corpus.jsonl:1 is no JSON object with id and text"),
    ([{"id": "1"}], QUERIES, "corpus.jsonl:1 is no JSON object with id and text"),
    ([{"id": 1, "text": "x"}], QUERIES, "corpus.jsonl:1 is no JSON object with id and text"),
    (DOCUMENTS, [{"id": "q", "query": "x"}], "says of nothing that it is relevant"),
    (DOCUMENTS, [{"id": "q", "query": "x", "relevant": []}], "says of nothing that it is relevant"),
    (DOCUMENTS, [*QUERIES, {"id": "q"}], "queries.jsonl:5 is no JSON object with id and query"),
]


def test_a_session_counts_once(offline, tmp_path):
    owl = "owl number {} sleeps".format
    talk = [{"id": f"a{at}", "text": owl(at), "session": "many"} for at in range(20)]
    last = {"id": "b", "text": "one owl among mice in a barn, far from any other", "session": "few"}
    question = {"id": "q", "query": "owl", "relevant_sessions": ["few"]}
    folder = write(tmp_path / "talk", [*talk, last], [question])
    (row,) = bench.run([folder], ["keyword"])
    assert (row["set"], row["hit@1"], row["MRR"]) == ("talk", 0.0, 0.5)


def test_a_hit_of_a_conversation_is_known_by_its_line(offline, tmp_path):
    query = {"id": "q", "query": "done", "relevant": ["11"]}
    folder = write(tmp_path / "talk", TALK[:2], [query])
    (row,) = bench.run([folder], ["hybrid"], as_conversations=True)
    assert row["hit@1"] == 1.0


def test_documents_are_no_conversation(offline, tmp_path):
    folder = write(tmp_path / "talk", DOCUMENTS, QUERIES)
    with pytest.raises(InvalidInput, match="The document 1 of talk is no turn"):
        bench.run([folder], ["hybrid"], as_conversations=True)


@pytest.mark.parametrize(("documents", "queries", "message"), BAD_SETS)
def test_a_bad_set_is_refused_with_its_line(offline, tmp_path, documents, queries, message):
    with pytest.raises(InvalidInput, match=message):
        bench.run([write(tmp_path / "bad", documents, queries)], ["keyword"])


TALK = [  # three sessions of much the same words, a day apart
    {"id": f"{day}{at}", "text": text, "session": f"s{day}", "time": DAY.format(day)}
    for day, host in ((1, "alpha"), (2, "bravo"), (3, "delta"))
    for at, text in enumerate((f"user: rotate the logs of {host}", f"assistant: Done on {host}."))
]
LATER = {"id": "q", "query": "rotate logs", "relevant_sessions": ["s2"], "time": DAY.format(2)}


@pytest.mark.parametrize("as_conversations", [False, True])
def test_recency_helps_only_on_the_day(offline, tmp_path, as_conversations):
    folder = write(tmp_path / "talk", TALK, [LATER])
    how = {"asked": ["own", "month"], "as_conversations": as_conversations}
    rows = bench.run([folder], ["keyword", "newest"], **how)
    found = {(row["asked"], row["mode"]): row["hit@1"] for row in rows}
    on_the_day = {("own", mode): 1.0 for mode in ("keyword", "newest")}
    assert found == on_the_day | {("month", mode): 0.0 for mode in ("keyword", "newest")}


IDEAL_2 = 1 + 1 / math.log2(3)
MEASURES = [
    ("a", "a", 1, 1, 1, 1, 1, 1, 1, 1),
    ("xa", "a", 0, 1, 1, 1, 1, 1, 1 / 2, 1 / math.log2(3)),
    ("ab", "ab", 1, 1, 1, 1, 1, 1, 1, 1),
    ("axb", "ab", 1, 1, 1, 1, 1, 1, 1, 1.5 / IDEAL_2),
    ("xxxxaxb", "ab", 0, 1, 1, 1 / 2, 1, 0, 1 / 5, (1 / math.log2(6) + 1 / math.log2(8)) / IDEAL_2),
    ("xxxxxa", "ab", 0, 0, 1, 0, 1 / 2, 0, 1 / 6, 1 / math.log2(7) / IDEAL_2),
    ("xyz", "a", 0, 0, 0, 0, 0, 0, 0, 0),
    ("", "a", 0, 0, 0, 0, 0, 0, 0, 0),
    ("abcdef", "abcdef", 1, 1, 1, 5 / 6, 1, 0, 1, 1),
    ("abcdefghij", "abcdefghijkl", 1, 1, 1, 5 / 12, 10 / 12, 0, 1, 1),
]


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        pytest.param(found, wanted, row, id=f"{found} for {wanted}")
        for found, wanted, *row in MEASURES
    ],
)
def test_every_measure_is_what_it_says(found, wanted, expected):
    """In this order: hit@1, any@5, any@10, recall@5, recall@10, all@5, MRR, nDCG@10."""
    judged = bench.judge(list(found), set(wanted))
    assert list(judged) == list(bench.MEASURES)
    assert list(judged.values()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("recipe", "order"), [("bm25", "new a b c"), ("convex", "b new c a"), ("rrf", "a b new c")]
)
def test_every_recipe_adds_the_same_for_what_is_recent(recipe, order):
    pool = [  # by words a, by meaning c; together b
        bench.LabelledHit("a", "", {"bm25": 10.0, "cosine": 0.1}),
        bench.LabelledHit("b", "", {"bm25": 9.0, "cosine": 0.8}),
        bench.LabelledHit("c", "", {"cosine": 0.9}),
        bench.LabelledHit("new", "", {"bm25": 9.5, "recent": 0.35}),
    ]
    assert [one.document for one in bench.order_by_recipe(pool, recipe)] == order.split()
