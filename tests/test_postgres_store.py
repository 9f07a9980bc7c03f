"""What only the PostgreSQL store can get wrong: servers, roles, migrations, pooled connections, lost answers, the audit trail."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import postgres
import psycopg
import pytest
from stores import HERE, NOW, by_meaning, by_words, change, make, purge, put, seen, tell, write

from bethink.errors import InvalidInput, StoreBusy, StoreError, StoreTooNew
from bethink.model import Entity, Entry, Relation
from bethink.store import pgsearch
from bethink.store import pgserver as schema
from bethink.store.postgres import PostgresStore


@pytest.fixture
def fresh() -> str:
    """The URL of an empty database."""
    return postgres.new_database()


@pytest.fixture
def tenant() -> PostgresStore:
    return postgres.shared().act_as(postgres.new_tenant(), "")


def opened(url: str, timeout: float = 3) -> PostgresStore:
    return PostgresStore(url, tenant=postgres.new_tenant(), timeout=timeout)


def has_schema(url: str) -> bool:
    return bool(postgres.run(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'bethink'"))


def told(url: str) -> str:
    """Why it cannot be opened."""
    with pytest.raises(StoreError) as caught:
        opened(url)
    message, hint = caught.value.message, caught.value.hint
    assert hint and "Traceback" not in message
    assert postgres.PASSWORD not in message + hint and "hunter2" not in message + hint
    return message


def locate_server() -> str:
    return f"127.0.0.1:{postgres.server_url().rpartition(':')[2]}"


@pytest.mark.parametrize(
    ("make_url", "said"),
    [
        pytest.param(
            lambda: f"postgresql://anna:hunter2@127.0.0.1:{postgres.free_port()}/memories",
            "cannot be reached",
            id="down",
        ),
        pytest.param(
            lambda: f"postgresql://postgres:hunter2@{locate_server()}",
            "password authentication failed",
            id="wrong-password",
        ),
        pytest.param(
            lambda: f"postgresql://nobody_here:hunter2@{locate_server()}",
            '"nobody_here"',
            id="unknown-role",
        ),
        pytest.param(
            lambda: postgres.on(postgres.server_url(), "nowhere"),
            'database "nowhere" does not exist',
            id="unknown-database",
        ),
    ],
)
def test_a_failed_connection_is_explained(make_url, said):
    assert said in told(make_url())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        pytest.param("OLDEST_SERVER", 990_000, "or later is required", id="oldest_server"),
        pytest.param("OLDEST_VECTOR", (99, 0), "pgvector", id="oldest_vector"),
    ],
)
def test_an_old_server_is_refused(fresh, monkeypatch, name, value, said):
    with monkeypatch.context() as patch:
        patch.setattr(schema, name, value)
        assert said in told(fresh)


def test_a_server_without_pgvector_is_refused(fresh):
    name = fresh.rpartition("/")[2]
    lacking = f"ALTER DATABASE {name} SET extension_control_path = '/nowhere'"
    postgres.run(postgres.server_url(), lacking)
    assert "lacks the extension pgvector" in told(fresh)
    assert not has_schema(fresh)


def test_a_database_in_another_encoding_is_refused(fresh):
    latin = fresh.rpartition("/")[2] + "_latin"
    create = f"CREATE DATABASE {latin} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    postgres.run(postgres.server_url(), create)
    assert "encoded as LATIN1" in told(postgres.on(fresh, latin))


def test_a_database_of_a_newer_version_is_refused():
    newer = postgres.migrated()
    postgres.run(newer, "INSERT INTO bethink.migrations(number) VALUES (999)")
    with pytest.raises(StoreTooNew, match="newer Bethink"):
        opened(newer)


def test_an_interrupted_migration_has_not_happened(fresh, monkeypatch):
    real = schema.migrations()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: [real[0] + "\nSELECT 1 / 0;"])
        told(fresh)
        assert not has_schema(fresh)
        half = "CREATE TABLE bethink.half (a int); SELECT 1 / 0;"
        patch.setattr(schema, "migrations", lambda: [*real[:2], half])
        told(fresh)
    query = "SELECT max(number), to_regclass('bethink.half') FROM bethink.migrations"
    assert postgres.run(fresh, query) == [(2, None)]  # as 0.10 left it
    opened(fresh).close()


def test_many_processes_may_open_a_new_database_at_once(fresh):
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: opened(fresh, timeout=30), range(4)))
    for store in stores:
        tell(store, "a text")
        store.close()
    last = len(schema.migrations())
    query = "SELECT count(*), max(number) FROM bethink.migrations"
    assert postgres.run(fresh, query) == [(last, last)]


def as_role(url: str, name: str) -> str:
    return f"postgresql://{name}:pass@{url.rpartition('@')[2]}"


def test_an_owner_without_superuser_rights_migrates(fresh):
    tag = fresh.rpartition("/")[2]
    boss, app, stranger = f"boss_{tag}", f"app_{tag}", f"stranger_{tag}"
    for role, more in ((boss, "CREATEROLE"), (app, ""), (stranger, "")):
        postgres.run(fresh, f"CREATE ROLE {role} LOGIN PASSWORD 'pass' {more}")
    postgres.run(fresh, f"ALTER DATABASE {tag} OWNER TO {boss}")
    postgres.shared()  # the roles that serve are there
    assert "may not" in told(as_role(fresh, app))
    postgres.run(fresh, f"GRANT bethink_app, bethink_keeper TO {boss} WITH INHERIT FALSE, SET TRUE")
    assert "permission denied to create extension" in told(as_role(fresh, boss))
    postgres.run(fresh, "CREATE EXTENSION vector")
    opened(as_role(fresh, boss)).close()
    assert "may not" in told(as_role(fresh, stranger))
    postgres.run(fresh, f"GRANT bethink_app TO {app}")
    store = opened(as_role(fresh, app))
    (memory,) = tell(store, "a heron")
    assert by_words(store, "heron") == by_meaning(store, "a heron") == [memory.id]
    assert store.check(deep=True) == []
    store.close()
    with psycopg.connect(as_role(fresh, boss)) as connection:  # the owner is under the same law
        assert connection.execute("SELECT count(*) FROM bethink.memories").fetchone() == (0,)
        left = connection.execute("SELECT bethink.leave(%s) IS NOT NULL", (store.name,))
        assert left.fetchone() == (True,)
    for role in (app, stranger):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            postgres.run(as_role(fresh, role), "SELECT bethink.leave('x')")
    open_to_all = "SELECT proname FROM pg_proc WHERE pronamespace = 'bethink'::regnamespace AND prosecdef AND has_function_privilege('public', oid, 'EXECUTE')"
    assert postgres.run(fresh, open_to_all) == []


def test_a_connection_keeps_no_state():
    """What PgBouncer's transaction pooling needs: each transaction says who acts, and none leaves a trace."""
    store = opened(postgres.database_url())
    tell(store, "a heron")
    by_words(store, "heron"), by_meaning(store, "heron")
    with pytest.raises(InvalidInput):
        put(store, make("x", tags=("\udcff",)))
    assert [
        connection
        for connection in filter(None, store.database._idle.queue)
        if connection.execute(
            "SELECT current_user = session_user, coalesce(current_setting('bethink.tenant', true), ''), coalesce(current_setting('bethink.person', true), ''),"
            " current_setting('search_path'), (SELECT count(*) FROM pg_prepared_statements),"
            " (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory')"
        ).fetchone()
        != (True, "", "", '"$user", public', 0, 0)
    ] == []
    store.close()


def test_lost_connections_are_replaced(tenant):
    cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'bethink' AND datname = current_database()"
    tell(tenant, "a heron")
    postgres.run(tenant.database.url, cut)
    assert len(by_words(tenant, "heron")) == 1
    postgres.run(tenant.database.url, cut)
    assert put(tenant, make("another")).added == 1


def test_a_second_writer_waits_then_gives_up(tenant):
    tell(tenant, "a text")
    impatient = PostgresStore(postgres.database_url(), tenant=tenant.name, timeout=0.3)
    with psycopg.connect(tenant.database.url) as holder:
        holder.execute("SELECT 1 FROM bethink.tenants WHERE name = %s FOR UPDATE", (tenant.name,))
        assert by_words(impatient, "text")  # readers do not wait
        with pytest.raises(StoreBusy, match="Another process is writing"):
            put(impatient, make("more"))
    assert put(impatient, make("more")).added == 1
    impatient.close()


def explain(connection, sql: str) -> str:
    return "\n".join(row[0] for row in connection.execute(f"EXPLAIN {sql}".encode()))


def test_a_large_scope_is_searched_by_the_vector_index(tenant, monkeypatch):
    def scale(matrix):
        return (matrix / np.linalg.norm(matrix, axis=-1, keepdims=True)).astype(np.float32)

    rng = np.random.default_rng(7)
    matrix = scale(rng.normal(size=(600, 384)))
    memories = [make(f"text {n}", deleted_at=NOW if n % 10 == 0 else None) for n in range(600)]
    entries = [Entry(memory, [row]) for memory, row in zip(memories, matrix, strict=True)]
    write(tenant, add=tuple(entries), model="m384")
    tell(tenant.act_as(postgres.new_tenant(), ""), "another tenant")
    keys = tenant.keys([memory.id for memory in memories])
    visible = {keys[memory.id]: at for at, memory in enumerate(memories) if not memory.deleted_at}
    monkeypatch.setattr(pgsearch, "SCANNED_WHOLE", 0)
    found = 0
    for at in range(1, 16):
        question = scale(matrix[at] + rng.normal(size=384) * 0.02)
        items = tenant.nearest(question, "m384", seen(), 10)
        cosines = {key: float(matrix[row] @ question) for key, row in visible.items()}
        assert all(cosine == pytest.approx(cosines[key], abs=1e-5) for key, cosine in items)
        best = sorted(cosines, key=cosines.__getitem__, reverse=True)[:10]
        found += len(set(best) & {key for key, _ in items})
        assert len(items) == 10
    assert found >= 0.95 * 150


def test_a_large_scope_is_searched_by_the_word_index(tenant):
    texts = (f"heron number {n} {'reed' if n == 77 else 'water'}" for n in range(400))
    put(tenant, *map(make, texts), embed=False)
    with tenant.database.connect() as connection:
        connection.execute("ANALYZE bethink.words")
    with postgres.transaction(tenant) as connection:
        connection.execute("SET LOCAL enable_seqscan = off")
        mark = f"{tenant.who.tenant:x}.{tenant._scopes([HERE])[0]:x}:"
        connection.execute("SELECT set_config('role', 'none', true)")
        connection.execute("SET LOCAL ROLE bethink_keeper")
        which = f"tenant = {tenant.who.tenant} AND lexed @@ $q$'{mark}reed'$q$::tsquery"
        plan = explain(connection, f"SELECT key FROM bethink.words WHERE {which}")
    assert "words_lexed" in plan and "Seq Scan" not in plan
    assert len(by_words(tenant, "reed")) == 1


ROWS_FOUND_BY = [
    ("SELECT content FROM memories m WHERE m.id = ANY(ARRAY['a', 'b'])", "id = ANY"),
    ("SELECT id FROM memories WHERE id >= '01c' AND id < '01d' AND +scope IN (1) LIMIT 5", "id >="),
    ("SELECT content FROM memories m WHERE m.key = ANY(ARRAY[1, 2])", "key = ANY"),
    (
        "SELECT id FROM memories WHERE scope = 1 AND dedup = ANY(ARRAY['a']) AND deleted_at IS NULL",
        "dedup = ANY",
    ),
    (
        "SELECT id FROM memories m WHERE m.scope IN (1) ORDER BY m.created_at DESC LIMIT 5",
        "scope = ",
    ),
    ("SELECT id FROM sources WHERE scope = 1 AND uri = 'docs/a.md'", "uri = "),
    ("SELECT id FROM entities e WHERE e.folded = ANY(ARRAY['redis'])", "folded = ANY"),
    ("SELECT source FROM relations WHERE target = ANY(ARRAY['a'])", "target = ANY"),
    ("SELECT action FROM history h WHERE h.memory = 7 ORDER BY number DESC LIMIT 1", "memory = 7"),
    ("SELECT data FROM vectors v WHERE v.memory = ANY(ARRAY[1])", "memory = ANY"),
    ("SELECT memories FROM lexeme_counts WHERE scope IN (1) AND hash IN (7, 8)", "hash = ANY"),
]


@pytest.fixture(scope="module")
def crowded():
    """A store with enough memories for the planner to care, beside another tenant."""
    store = PostgresStore(postgres.migrated(), tenant="full")
    for one in (store, store.act_as("other", "")):
        memories = [
            make(f"text {n}", source=f"docs/{n % 400}.md", entities=(Entity(f"Name{n % 300}"),))
            for n in range(1500)
        ]
        links = [Relation(a.id, b.id, "builds_on") for a, b in pairwise(memories)]
        put(one, *memories, relate=tuple(links))
    postgres.run(store.database.url, "ANALYZE")
    yield store
    store.close()


@pytest.mark.parametrize(("sql", "condition"), ROWS_FOUND_BY)
def test_row_level_policies_use_an_index(crowded, sql, condition):
    with postgres.transaction(crowded) as connection:
        plan = explain(connection, sql)
    conditions = [line for line in plan.splitlines() if "Index Cond" in line]
    assert [line for line in conditions if "tenant = " in line and condition in line], plan


@pytest.fixture
def trail():
    store = opened(postgres.migrated())
    memories = [tell(store, f"text {n}")[0] for n in range(5)]
    change(store, memories[0].id, importance=1.0)
    purge(store, memories[1])
    assert store.check(deep=True) == []
    yield store
    store.close()


def test_the_audit_trail_lists_every_change(trail):
    with postgres.transaction(trail) as connection:
        found = connection.execute("SELECT number, changes FROM audit ORDER BY number").fetchall()
    assert [number for number, _ in found] == [1, 2, 3, 4, 5, 6, 7]
    assert '"add"' in found[0][1] and '"update"' in found[5][1] and '"purge"' in found[6][1]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("UPDATE bethink.audit SET actor = 'x'", id="update-bethink.audit-SET-actor-x"),
        pytest.param("DELETE FROM bethink.audit", id="delete-bethink.audit"),
    ],
)
def test_the_audit_trail_cannot_be_changed(trail, damage):
    with pytest.raises(psycopg.errors.RaiseException, match="cannot be changed"):
        postgres.run(trail.database.url, damage)  # not even by a superuser in passing


def test_damaged_rows_are_found(trail):
    def damage(statement):
        postgres.run(trail.database.url, statement)

    damage("UPDATE bethink.memories SET content = 'forged' WHERE content = 'text 2'")
    assert trail.check() == []
    assert [problem.part for problem in trail.check(deep=True)] == ["memory"]
    damage("DELETE FROM bethink.words WHERE key = (SELECT max(key) FROM bethink.words)")
    assert {problem.repair for problem in trail.check()} >= {"rebuild"}
    trail.rebuild()
    assert trail.check() == []
    damage("ALTER TABLE bethink.memories NO FORCE ROW LEVEL SECURITY")
    assert [problem.part for problem in trail.check()] == ["tenants"]


@pytest.mark.parametrize("lines", ["number = 2", "number = 7", "true"])
def test_lines_that_were_taken_out_of_the_audit_trail_are_missed(trail, lines):
    behind = "SET session_replication_role = replica"  # so that no trigger hinders it
    postgres.run(trail.database.url, behind, f"DELETE FROM bethink.audit WHERE {lines}")
    (problem,) = trail.check(deep=True)
    assert problem.part == "audit trail" and "of 7 lines are gone" in problem.message
