"""Tenants and people in one PostgreSQL database: nobody sees a row, a number or an error text of another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import postgres
import psycopg
import pytest
from case_tables import cases
from stores import (
    HERE,
    MODEL,
    OTHER,
    by_meaning,
    by_words,
    change,
    everything,
    make,
    put,
    seen,
    snapshot,
    vector,
    write,
)

from bethink.errors import InvalidInput, NotFound, StoreError
from bethink.store.pgserver import Who
from bethink.store.postgres import PostgresStore
from bethink.store.transfer import Bundle
from bethink.types import PERSONAL, Entity, Relation, Words

TABLES = (
    "scopes meta models sources sessions spans memories words span_words lexeme_counts "
    "entities memory_entities relations vectors span_vectors vector_totals "
    "embedding_cache history tombstones turns audit"
).split()


@pytest.fixture
def two() -> tuple[PostgresStore, PostgresStore]:
    return tuple(postgres.shared().act_as(postgres.new_tenant(), "") for _ in range(2))


@pytest.fixture
def people() -> tuple[PostgresStore, PostgresStore]:
    """Anna and Ben of one tenant."""
    tenant = postgres.new_tenant()
    return tuple(postgres.shared().act_as(tenant, name) for name in ("anna", "ben"))


def counts(store: PostgresStore) -> dict[str, int]:
    with postgres.transaction(store) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in TABLES
        }


def fill(store: PostgresStore, word: str) -> list:
    memories = [
        make(
            f"{word} number {n}",
            entities=(Entity(word),),
            source=f"docs/{word}.md",
            source_type="markdown",
        )
        for n in range(3)
    ]
    put(
        store,
        *memories,
        relate=(Relation(memories[0].id, memories[1].id, "builds_on"),),
        cache={"00" * 16: [vector(word)]},
    )
    return memories


def test_a_tenant_sees_its_own_rows_and_no_others(two):
    one, other = two
    mine = fill(one, "heron")
    before = snapshot(one)
    theirs = fill(other, "owl")
    assert snapshot(one) == before
    assert (
        one.get([memory.id for memory in theirs])
        == one.relations([theirs[0].id])
        == one.history(theirs[0].id)
        == []
    )
    assert one.keys([theirs[0].id]) == one.load([10**6]) == {}
    assert by_words(one, "owl", everything(HERE, OTHER)) == []
    assert all(
        memory.id in {found.id for found in mine}
        for memory in one.scan(everything(HERE, OTHER, PERSONAL))
    )
    assert one.source(HERE, "docs/owl.md") is one.find_source("docs/owl.md") is None
    assert one.statistics(Words(("owl",)), (HERE,)).counts == (0,)
    for read in (
        lambda: one.resolve(theirs[0].id),
        lambda: change(one, theirs[0].id, importance=1.0),
    ):
        with pytest.raises(NotFound):
            read()
    assert other.get([theirs[0].id])[0].importance == 5.0


def test_without_a_tenant_nothing_is_seen_and_nothing_can_be_written(two):
    one, _ = two
    fill(one, "heron")
    with postgres.transaction(one, Who()) as connection:
        for table in (*TABLES, "tenants"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
        assert connection.execute(
            "SELECT count(*) FROM find(ARRAY['heron'::tsquery], ARRAY[1.0::float8], 10)"
        ).fetchone() == (0,)
    with pytest.raises(StoreError), postgres.transaction(one, Who()) as connection:
        connection.execute(
            "INSERT INTO meta(tenant, scope, key, value) VALUES (%s, 0, 'x', 'y')",
            (one.who.tenant,),
        )


@pytest.mark.parametrize("statement", cases("postgres-tenants-the-role-that-serves"))
def test_the_role_that_serves_cannot_step_over_the_walls(two, statement):
    one, other = two
    fill(one, "heron")
    if "UPDATE meta" in statement:
        one.take(Bundle(), note=("a", "b"))
    with (
        one.database.connect() as connection
    ):  # as a server's login would be: a role that may only act as bethink_app
        connection.execute("BEGIN")
        connection.execute("SET LOCAL search_path = bethink, public")
        connection.execute("SELECT set_config('bethink.tenant', %s, true)", (str(one.who.tenant),))
        connection.execute("SET LOCAL SESSION AUTHORIZATION bethink_app")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.format(other=other.who.tenant).encode())
        connection.execute("ROLLBACK")
    assert counts(other) == dict.fromkeys(TABLES, 0)


def test_every_table_is_closed_and_no_role_may_bypass():
    rows = postgres.run(
        postgres.shared().database.url,
        "SELECT relname FROM pg_class WHERE relnamespace = 'bethink'::regnamespace AND relkind IN ('r', 'p')"
        " AND NOT (relrowsecurity AND relforcerowsecurity)",
    )
    assert rows == [("migrations",)]
    roles = postgres.run(
        postgres.shared().database.url,
        "SELECT rolname, rolsuper, rolbypassrls, rolcanlogin, rolcreaterole FROM pg_roles WHERE rolname LIKE 'bethink%' ORDER BY 1",
    )
    assert roles == [
        ("bethink_app", False, False, False, False),
        ("bethink_keeper", False, False, False, False),
    ]


def test_every_key_of_a_tenants_table_leads_with_the_tenant():
    rows = postgres.run(
        postgres.shared().database.url,
        "SELECT i.indrelid::regclass::text, (SELECT attname FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[0]) FROM pg_index i"
        " JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 'bethink'::regnamespace AND i.indisunique AND NOT c.relispartition",
    )
    # A token is looked up before it is known whose it is.
    apart = {
        "bethink.logins": "role",
        "bethink.tenants": "id",
        "bethink.migrations": "number",
        "bethink.tokens": "hash",
    }
    assert {
        (table, column) for table, column in rows if column not in ("tenant", apart.get(table))
    } <= {("bethink.tenants", "name")}


ATTACK = (
    "CREATE DOMAIN pg_temp.{name} AS pg_catalog.{name}"
    " CHECK (pg_catalog.set_config('attack.who', current_user, true) IS NOT NULL)"
)


def attack(store: PostgresStore, name: str, call: str, careless: str = "") -> str:
    """Tries to have a domain of the caller's own evaluated by a function; as whom it was."""
    url = store.database.url
    with psycopg.connect(url) as connection:
        connection.execute(f"GRANT TEMPORARY ON DATABASE {url.rpartition('/')[2]} TO bethink_app")
        if careless:
            connection.execute(f"ALTER FUNCTION {careless} SET search_path = pg_catalog")
        connection.execute(
            "SELECT set_config('bethink.tenant', %s, true)", (str(store.who.tenant),)
        )
        connection.execute("SET LOCAL search_path = bethink, public")
        connection.execute("SET LOCAL SESSION AUTHORIZATION bethink_app")
        connection.execute(ATTACK.format(name=name))
        connection.execute("SELECT set_config('attack.who', '', true)")
        connection.execute("SAVEPOINT attempt")
        try:
            connection.execute(call)
        except psycopg.Error:
            connection.execute("ROLLBACK TO attempt")
        found = connection.execute("SELECT current_setting('attack.who', true)").fetchone()
        connection.rollback()
    return found[0] or ""


def test_a_type_of_the_callers_own_is_never_evaluated_with_the_keepers_rights(two):
    """Whoever could make temporary objects would put a domain of the same name before ours, with a check that does as it likes."""
    for call in cases("postgres-tenants-a-type-of-the"):
        for name in ("timestamptz", "int4", "int8", "text", "bytea"):
            assert attack(two[0], name, call) in ("", "bethink_app"), (call, name)


def test_the_attack_above_is_a_real_one(two):
    assert (
        attack(two[0], "timestamptz", "SELECT enter('another')", "bethink.enter(text)")
        == "bethink_keeper"
    )


def test_every_function_with_the_keepers_rights_looks_among_temporary_objects_last():
    found = postgres.run(
        postgres.shared().database.url,
        "SELECT proname, proconfig FROM pg_proc WHERE pronamespace = 'bethink'::regnamespace AND prosecdef",
    )
    assert len(found) > 6
    assert {tuple(config) for _, config in found} == {("search_path=pg_catalog, pg_temp",)}


# People


def test_what_is_personal_is_seen_by_that_person_alone(people):
    anna, ben = people
    mine, shared = make("I like tea", scope=PERSONAL), make("We deploy on Fridays")
    put(anna, mine, shared)
    every = everything(HERE, PERSONAL)
    assert {memory.id for memory in anna.scan(every)} == {mine.id, shared.id}
    assert {memory.id for memory in ben.scan(every)} == {shared.id}
    assert ben.get([mine.id]) == ben.history(mine.id) == by_words(ben, "tea", every) == []
    assert mine.id not in by_meaning(ben, mine.content, every)
    assert ben.overview().memories == 1 and ben.scopes() == [HERE]
    with pytest.raises(NotFound):
        ben.resolve(mine.id)
    assert put(ben, make("I like tea", scope=PERSONAL)).outcomes[0].status == "added"
    assert anna.count(seen(PERSONAL)) == ben.count(seen(PERSONAL)) == 1
    assert put(ben, make("We deploy on Fridays")).outcomes[0].status == "duplicate"
    assert anna.reset() == 2
    assert ben.count(everything(PERSONAL)) == 1 and len(ben.history(next(ben.scan(every)).id)) == 1


def test_nothing_that_is_derived_from_what_is_personal_is_seen_by_others(people):
    """Rows of any table, asked for behind the application's back as direct access to the database allows."""
    anna, ben = people
    put(ben, make("We deploy on Fridays"))
    before = counts(ben)
    diary = make("A numbat ate ants", scope=PERSONAL, entities=(Entity("Numbat"),))
    other = make(
        "It slept all day", scope=PERSONAL, session="s", source="log", source_type="transcript"
    )
    put(
        anna,
        diary,
        other,
        relate=(Relation(diary.id, other.id, "builds_on"),),
        cache={"00" * 16: [vector("x")]},
    )
    write(anna, purge=(other.id,), once="key")
    seen_by_ben = counts(ben)
    assert {name for name in TABLES if seen_by_ben[name] != before[name]} <= {"audit", "meta"}
    assert seen_by_ben["meta"] <= before["meta"] + 1  # the tenant's secret
    mark = f"{anna.who.tenant:x}.{anna._scopes([PERSONAL])[0]:x}:numbat"
    with postgres.transaction(ben) as connection:
        asked = f"SELECT count(*) FROM find(ARRAY[$q$'{mark}'$q$::tsquery], ARRAY[1.0::float8], 9)"
        assert connection.execute(asked.encode()).fetchone() == (0,)
    with postgres.transaction(anna) as connection:
        assert connection.execute(asked.encode()).fetchone() == (1,)


def test_a_purge_of_what_is_personal_binds_nobody_else_and_one_of_what_is_shared_binds_all(people):
    anna, ben = people
    mine, shared = make("I like tea", scope=PERSONAL), make("The old plan")
    put(anna, mine, shared)
    put(ben, make("something else"), cache={"11" * 16: [vector("y")]})
    write(anna, purge=(mine.id, shared.id))
    assert put(ben, make("I like tea", scope=PERSONAL)).outcomes[0].status == "added"
    assert put(anna, make("I like tea", scope=PERSONAL)).outcomes[0].status == "purged"
    assert put(ben, make("The old plan")).outcomes[0].status == "purged"


def test_what_is_personal_is_refused_where_nobody_is_named(two):
    with pytest.raises(InvalidInput, match="belongs to somebody") as caught:
        put(two[0], make("I like tea", scope=PERSONAL))
    assert "`user`" in caught.value.hint
    assert two[0].count(everything(PERSONAL)) == 0


def test_a_login_that_is_bound_to_a_person_acts_for_that_person_alone():
    url = postgres.migrated()
    role = f"anna_{url.rpartition('/')[2]}"
    owner = PostgresStore(url, tenant="team", user="anna")
    put(owner, make("I like tea", scope=PERSONAL), make("We deploy on Fridays"))
    ben = owner.act_as("team", "ben")
    put(ben, make("I like coffee", scope=PERSONAL))
    owner.act_as("others", "anna")
    postgres.run(
        url,
        f"CREATE ROLE {role} LOGIN PASSWORD 'pass'",
        f"GRANT bethink_app TO {role}",
        f"SELECT bethink.bind('{role}', 'team', 'anna')",
    )
    own = f"postgresql://{role}:pass@{url.rpartition('@')[2]}"
    anna = PostgresStore(own, tenant="team", user="anna")
    assert anna.count(everything(HERE, PERSONAL)) == 2
    put(anna, make("and cake", scope=PERSONAL))
    for tenant, user in (("team", "ben"), ("others", "anna"), ("new", "anna"), ("team", "")):
        with pytest.raises(StoreError, match=r"bound to one person|not open to this role"):
            PostgresStore(own, tenant=tenant, user=user)
    with psycopg.connect(own) as connection:  # whatever it tells the database
        connection.execute("SET LOCAL search_path = bethink, public")
        connection.execute("SELECT set_config('bethink.tenant', %s, true)", (str(ben.who.tenant),))
        connection.execute("SELECT set_config('bethink.person', 'ben', true)")
        for table in ("memories", "words", "scopes", "tenants"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT bind(session_user, 'team', 'ben')")
    for store in (anna, owner):
        store.close()


def test_whoever_makes_the_indexes_anew_leaves_those_of_what_is_personal_to_others(people):
    anna, ben = people
    put(anna, make("I like tea", scope=PERSONAL), make("We deploy on Fridays"))
    diary = make("A numbat ate ants in the garden", scope=PERSONAL)
    put(ben, diary, make("It slept all day", scope=PERSONAL))
    every, before = everything(HERE, PERSONAL), snapshot(ben)
    assert anna.overview().vectors == {MODEL: 2} and ben.overview().vectors == {MODEL: 3}
    assert anna.rebuild() == 2 and snapshot(ben) == before
    assert anna.drop_vectors() == 2 and anna.models() == [] and anna.overview().vectors == {}
    assert (
        by_words(ben, "numbat garden", every) == [diary.id]
        and by_meaning(ben, diary.content, every)[0] == diary.id
    )
    assert ben.statistics(Words(("numbat",)), (PERSONAL,)).counts == (1,)
    assert ben.models() == [MODEL] and ben.count_unembedded(MODEL) == 1
    for person in (anna, ben):
        assert person.check(deep=True) == []


# Entering and leaving


def test_a_tenant_that_was_deleted_is_told_to_who_still_uses_it_and_cannot_be_entered():
    tenant = postgres.new_tenant()
    store = postgres.shared().act_as(tenant, "")
    memory = make("a text")
    put(store, memory)
    assert postgres.run(
        store.database.url, f"SELECT bethink.leave('{tenant}')", f"SELECT bethink.leave('{tenant}')"
    ) == [(None,)]
    for use in (
        lambda: put(store, make("more")),
        lambda: store.resolve("0190"),
        lambda: write(store, access=(memory.id,)),
    ):
        with pytest.raises(StoreError, match="does not exist any more"):
            use()
    with pytest.raises(StoreError, match="was deleted"):
        postgres.shared().act_as(tenant, "")


def test_tenants_that_work_at_once_over_shared_connections_see_nothing_of_one_another():
    players = [postgres.shared().act_as(postgres.new_tenant(), f"person {n}") for n in range(6)]

    def play(at: int) -> None:
        number, step = at % len(players), at // len(players)
        store, filter = players[number], everything(HERE, PERSONAL)
        scope = PERSONAL if step % 2 else HERE
        put(store, make(f"secret{number} owl {step}", scope=scope, entities=(Entity("owl"),)))
        found = [*store.scan(filter), *store.get(by_words(store, "owl", filter))]
        found += store.get(by_meaning(store, "owl", filter))
        assert {memory.content.split()[0] for memory in found} == {f"secret{number}"}
        assert store.count(filter) == store.overview().memories == step + 1
        assert store.statistics(Words(("owl",)), (HERE, PERSONAL)).counts == (step + 1,)

    with ThreadPoolExecutor(len(players)) as pool:
        for step in range(6):
            list(pool.map(play, range(step * len(players), (step + 1) * len(players))))
    for store in players:
        assert store.check(deep=True) == []
