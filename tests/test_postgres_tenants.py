"""Tenants and people in one PostgreSQL database: nobody sees a row, a number or an error text of another."""

from concurrent.futures import ThreadPoolExecutor

import postgres
import psycopg
import pytest
import stores
from stores import HERE, MODEL, by_meaning, by_words, everything, ids, make, put, snapshot, tell

from bethink.errors import InvalidInput, NotFound, StoreError
from bethink.model import PERSONAL, Entity, Relation, Words
from bethink.store.pgserver import Who
from bethink.store.postgres import PostgresStore
from bethink.store.transfer import Bundle

TABLES = (
    "scopes meta models sources sessions spans memories words span_words lexeme_counts "
    "entities memory_entities relations vectors span_vectors vector_totals "
    "embedding_cache history tombstones turns audit"
).split()
EVERY = everything(HERE, PERSONAL)


@pytest.fixture
def two() -> tuple[PostgresStore, PostgresStore]:
    return tuple(postgres.shared().act_as(postgres.new_tenant(), "") for _ in range(2))


@pytest.fixture
def people() -> tuple[PostgresStore, PostgresStore]:
    """Anna and Ben of one tenant."""
    tenant = postgres.new_tenant()
    return tuple(postgres.shared().act_as(tenant, name) for name in ("anna", "ben"))


def ask(connection, query: str):
    """The one value that a query gives."""
    ((value,),) = connection.execute(query.encode()).fetchall()
    return value


def counts(store: PostgresStore, who: Who | None = None) -> dict[str, int]:
    with postgres.transaction(store, who) as connection:
        return {table: ask(connection, f"SELECT count(*) FROM {table}") for table in TABLES}


def fill(store: PostgresStore, word: str) -> list:
    page = {"source": f"docs/{word}.md", "source_type": "markdown", "entities": (Entity(word),)}
    memories = tell(store, *(f"{word} number {n}" for n in range(3)), **page)
    link = Relation(memories[0].id, memories[1].id, "builds_on")
    stores.write(store, relate=(link,), model=MODEL, cache={"00" * 16: [stores.vector(word)]})
    return memories


def test_a_tenant_sees_only_its_own_rows(two):
    one, other = two
    mine = fill(one, "heron")
    before = snapshot(one)
    theirs, *_ = fill(other, "owl")
    assert snapshot(one) == before
    assert one.get([theirs.id]) == one.relations([theirs.id]) == one.history(theirs.id) == []
    assert one.keys([theirs.id]) == one.load([10**6]) == {}
    assert by_words(one, "owl", everything(HERE, stores.OTHER)) == []
    assert ids(one.scan(everything(HERE, stores.OTHER, PERSONAL))) == ids(mine)
    assert stores.source_of(one, HERE, "docs/owl.md") is one.find_source("docs/owl.md") is None
    assert one.statistics(Words(("owl",)), (HERE,)).counts == (0,)
    with pytest.raises(NotFound):
        one.resolve(theirs.id)
    with pytest.raises(NotFound):
        stores.change(one, theirs.id, importance=1.0)
    assert other.get([theirs.id])[0].importance == 5.0


def test_nothing_is_visible_without_a_tenant(two):
    one, _ = two
    fill(one, "heron")
    assert set(counts(one, Who()).values()) == {0}
    with postgres.transaction(one, Who()) as connection:
        assert ask(connection, "SELECT count(*) FROM tenants") == 0
        words = "SELECT count(*) FROM find(ARRAY['heron'::tsquery], ARRAY[1.0::float8], 10)"
        assert ask(connection, words) == 0
    values = f"({one.who.tenant}, 0, 'x', 'y')"
    with pytest.raises(StoreError), postgres.transaction(one, Who()) as connection:
        connection.execute(f"INSERT INTO meta(tenant, scope, key, value) VALUES {values}")


def test_nothing_is_personal_without_a_user(two):
    with pytest.raises(InvalidInput, match="need an owner") as caught:
        put(two[0], make("I like tea", scope=PERSONAL))
    assert "`user`" in caught.value.hint
    assert two[0].count(everything(PERSONAL)) == 0


def become_app(connection, store: PostgresStore) -> None:
    """As a server's login would be: a role that may only act as bethink_app."""
    connection.execute("SET LOCAL search_path = bethink, public")
    connection.execute("SELECT set_config('bethink.tenant', %s, true)", (str(store.who.tenant),))
    connection.execute("SET LOCAL SESSION AUTHORIZATION bethink_app")


ROLE_SERVES = [
    "INSERT INTO meta(tenant, scope, key, value) VALUES ({other}, 0, 'x', 'y')",
    "UPDATE meta SET tenant = {other}",
    "UPDATE memories SET tenant = {other}",
    "INSERT INTO tombstones(tenant, scope, hash, at) VALUES ({other}, 0, 'x', 0)",
    "UPDATE tenants SET seal = ''",
    "DELETE FROM tenants",
    "UPDATE audit SET actor = 'nobody'",
    "DELETE FROM audit",
    "TRUNCATE audit",
    "ALTER TABLE memories DISABLE ROW LEVEL SECURITY",
    "DROP TABLE audit",
    "SET ROLE bethink_keeper",
    "UPDATE history SET actor = 'nobody'",
    "DELETE FROM history",
    "TRUNCATE history",
    "INSERT INTO logins(role, tenant, person) VALUES ('x', {other}, 'x')",
    "CREATE TEMPORARY TABLE mine (a int)",
    "SELECT bind('bethink_app', 'default', 'x')",
    "CREATE TABLE mine (a int)",
    "TRUNCATE memories",
    "ALTER TABLE audit DISABLE TRIGGER ALL",
    "SELECT leave('default')",
]


@pytest.mark.parametrize("statement", ROLE_SERVES)
def test_the_serving_role_cannot_leave_its_tenant(two, statement):
    one, other = two
    fill(one, "heron")
    one.take(Bundle(), note=("a", "b"))
    with psycopg.connect(one.database.url) as connection:
        become_app(connection, one)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.format(other=other.who.tenant).encode())
        connection.rollback()
    assert set(counts(other).values()) == {0}, statement


def test_every_table_has_row_level_security():
    def found(query):
        return postgres.run(postgres.shared().database.url, query)

    ours = "relnamespace = 'bethink'::regnamespace"
    walls = f"{ours} AND relkind IN ('r', 'p') AND NOT (relrowsecurity AND relforcerowsecurity)"
    assert found(f"SELECT relname FROM pg_class WHERE {walls}") == [("migrations",)]


def test_no_role_may_bypass_row_level_security():
    def found(query):
        return postgres.run(postgres.shared().database.url, query)

    rights = "rolsuper OR rolbypassrls OR rolcanlogin OR rolcreaterole"
    roles = found(f"SELECT rolname, {rights} FROM pg_roles WHERE rolname LIKE 'bethink%'")
    assert sorted(roles) == [("bethink_app", False), ("bethink_keeper", False)]


def test_every_key_begins_with_the_tenant():
    def found(query):
        return postgres.run(postgres.shared().database.url, query)

    ours = "relnamespace = 'bethink'::regnamespace"
    # Every key of a tenant's table leads with the tenant.
    first = "SELECT attname FROM pg_attribute WHERE attrelid = indrelid AND attnum = indkey[0]"
    unique = "indisunique AND NOT relispartition"
    rows = found(
        f"SELECT relname, ({first}) FROM pg_index JOIN pg_class c ON c.oid = indrelid"
        f" WHERE {ours} AND {unique}"
    )
    # A token is looked up before it is known whose it is.
    apart = {("logins", "role"), ("migrations", "number"), ("tokens", "hash")}
    apart |= {("tenants", "id"), ("tenants", "name")}
    assert {row for row in rows if row[1] != "tenant"} <= apart


def test_every_privileged_function_fixes_its_search_path():
    def found(query):
        return postgres.run(postgres.shared().database.url, query)

    # Every function with the keeper's rights looks among temporary objects last.
    keepers = "pronamespace = 'bethink'::regnamespace AND prosecdef"
    settings = found(f"SELECT proconfig FROM pg_proc WHERE {keepers}")
    assert len(settings) > 6
    assert all(config == ["search_path=pg_catalog, pg_temp"] for (config,) in settings)


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
        become_app(connection, store)
        connection.execute(ATTACK.format(name=name))
        connection.execute("SELECT set_config('attack.who', '', true)")
        connection.execute("SAVEPOINT attempt")
        try:
            connection.execute(call)
        except psycopg.Error:
            connection.execute("ROLLBACK TO attempt")
        found = ask(connection, "SELECT current_setting('attack.who', true)")
        connection.rollback()
    return found or ""


TYPE = [
    "SELECT enter('another')",
    "SELECT * FROM token('x')",
    "SELECT * FROM find(ARRAY['x'::tsquery], ARRAY[1.0::float8], 1)",
    "SELECT * FROM find_spans('x'::tsquery)",
    "SELECT drop_history(NULL)",
    "SELECT expunge(ARRAY['x'::bytea])",
    "INSERT INTO audit(number, at, person, actor, mark, changes, hash) VALUES (0, now(), '', 'a', 'b', '{}', '')",
]


def test_a_type_of_the_caller_never_runs_with_the_rights_of_the_keeper(two):
    """Whoever could make temporary objects would put a domain of the same name before ours, with a check that does as it likes."""
    assert [
        (call, name)
        for call in TYPE
        for name in ("timestamptz", "int4", "int8", "text", "bytea")
        if attack(two[0], name, call) not in ("", "bethink_app")
    ] == []
    # The attack is a real one: it succeeds where a function is careless.
    careless = ("timestamptz", "SELECT enter('another')", "bethink.enter(text)")
    assert attack(two[0], *careless) == "bethink_keeper"


def test_what_is_personal_is_seen_by_that_person_alone(people):
    anna, ben = people
    (mine,) = tell(anna, "I like tea", scope=PERSONAL)
    (shared,) = tell(anna, "We deploy on Fridays")
    assert ids(anna.scan(EVERY)) == {mine.id, shared.id}
    assert ids(ben.scan(EVERY)) == {shared.id}
    assert ben.get([mine.id]) == ben.history(mine.id) == by_words(ben, "tea", EVERY) == []
    assert mine.id not in by_meaning(ben, mine.content, EVERY)
    assert ben.overview().memories == 1 and [*ben.scopes()] == [HERE]
    with pytest.raises(NotFound):
        ben.resolve(mine.id)
    assert put(ben, make("I like tea", scope=PERSONAL)).outcomes[0].status == "added"
    assert anna.count(stores.seen(PERSONAL)) == ben.count(stores.seen(PERSONAL)) == 1
    assert put(ben, make("We deploy on Fridays")).outcomes[0].status == "duplicate"
    assert anna.reset() == 2
    assert ben.count(everything(PERSONAL)) == 1 and len(ben.history(next(ben.scan(EVERY)).id)) == 1


def test_nothing_derived_from_personal_memories_is_visible_to_others(people):
    """Rows of any table, asked for behind the application's back as direct access to the database allows."""
    anna, ben = people
    tell(ben, "We deploy on Fridays")
    before = counts(ben)
    (diary,) = tell(anna, "A numbat ate ants", scope=PERSONAL, entities=(Entity("Numbat"),))
    talk = {"session": "s", "source": "log", "source_type": "transcript"}
    (other,) = tell(anna, "It slept all day", scope=PERSONAL, **talk)
    link = Relation(diary.id, other.id, "builds_on")
    stores.write(anna, relate=(link,), model=MODEL, cache={"00" * 16: [stores.vector("x")]})
    stores.purge(anna, other, once="key")
    after = counts(ben)
    assert {name for name in TABLES if after[name] != before[name]} <= {"audit", "meta"}
    assert after["meta"] <= before["meta"] + 1  # the tenant's secret
    mark = f"{anna.who.tenant:x}.{anna._scopes([PERSONAL])[0]:x}:numbat"
    asked = f"SELECT count(*) FROM find(ARRAY[$q$'{mark}'$q$::tsquery], ARRAY[1.0::float8], 9)"
    for person, number in ((ben, 0), (anna, 1)):
        with postgres.transaction(person) as connection:
            assert ask(connection, asked) == number


def test_a_purge_binds_everybody_only_if_it_is_shared(people):
    anna, ben = people
    stores.purge(anna, *tell(anna, "I like tea", scope=PERSONAL), *tell(anna, "The old plan"))
    cases = [
        (ben, "I like tea", PERSONAL, "added"),
        (anna, "I like tea", PERSONAL, "purged"),
        (ben, "The old plan", HERE, "purged"),
    ]
    assert [
        put(person, make(text, scope=scope)).outcomes[0].status for person, text, scope, _ in cases
    ] == [status for _, _, _, status in cases]


def test_a_login_bound_to_a_person_acts_only_for_that_person():
    url = postgres.migrated()
    role = f"anna_{url.rpartition('/')[2]}"
    owner = PostgresStore(url, tenant="team", user="anna")
    put(owner, make("I like tea", scope=PERSONAL), make("We deploy on Fridays"))
    ben = owner.act_as("team", "ben")
    tell(ben, "I like coffee", scope=PERSONAL)
    owner.act_as("others", "anna")
    create = (f"CREATE ROLE {role} LOGIN PASSWORD 'pass'", f"GRANT bethink_app TO {role}")
    postgres.run(url, *create, f"SELECT bethink.bind('{role}', 'team', 'anna')")
    own = f"postgresql://{role}:pass@{url.rpartition('@')[2]}"
    anna = PostgresStore(own, tenant="team", user="anna")
    assert anna.count(EVERY) == 2
    tell(anna, "and cake", scope=PERSONAL)
    for tenant, user in (("team", "ben"), ("others", "anna"), ("new", "anna"), ("team", "")):
        with pytest.raises(StoreError, match=r"bound to one person|not open to this role"):
            PostgresStore(own, tenant=tenant, user=user)
    with psycopg.connect(own) as connection:  # whatever it tells the database
        connection.execute("SET LOCAL search_path = bethink, public")
        connection.execute("SELECT set_config('bethink.tenant', %s, true)", (str(ben.who.tenant),))
        connection.execute("SELECT set_config('bethink.person', 'ben', true)")
        assert [
            table
            for table in ("memories", "words", "scopes", "tenants")
            if ask(connection, f"SELECT count(*) FROM {table}") != 0
        ] == []
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT bind(session_user, 'team', 'ben')")
    for store in (anna, owner):
        store.close()


def test_rebuilding_indexes_leaves_personal_memories_of_others_alone(people):
    anna, ben = people
    put(anna, make("I like tea", scope=PERSONAL), make("We deploy on Fridays"))
    diary, _ = tell(ben, "A numbat ate ants in the garden", "It slept all day", scope=PERSONAL)
    before = snapshot(ben)
    assert anna.overview().vectors == {MODEL: 2} and ben.overview().vectors == {MODEL: 3}
    assert anna.rebuild() == 2 and snapshot(ben) == before
    assert anna.drop_vectors() == 2 and anna.models() == [] and anna.overview().vectors == {}
    assert by_words(ben, "numbat garden", EVERY) == [diary.id]
    assert by_meaning(ben, diary.content, EVERY)[0] == diary.id
    assert ben.statistics(Words(("numbat",)), (PERSONAL,)).counts == (1,)
    assert ben.models() == [MODEL] and ben.count_unembedded(MODEL) == 1
    assert anna.check(deep=True) == ben.check(deep=True) == []


def test_a_deleted_tenant_cannot_be_used():
    tenant = postgres.new_tenant()
    store = postgres.shared().act_as(tenant, "")
    (memory,) = tell(store, "a text")
    leave = f"SELECT bethink.leave('{tenant}')"
    assert postgres.run(store.database.url, leave, leave) == [(None,)]
    for use in (
        lambda: put(store, make("more")),
        lambda: store.resolve("0190"),
        lambda: stores.write(store, access=(memory.id,)),
    ):
        with pytest.raises(StoreError, match="does not exist any more"):
            use()
    with pytest.raises(StoreError, match="was deleted"):
        postgres.shared().act_as(tenant, "")


def test_tenants_on_shared_connections_do_not_mix():
    players = [postgres.shared().act_as(postgres.new_tenant(), f"person {n}") for n in range(6)]

    def play(number: int, step: int) -> None:
        store, scope = players[number], PERSONAL if step % 2 else HERE
        tell(store, f"secret{number} owl {step}", scope=scope, entities=(Entity("owl"),))
        found = [*store.scan(EVERY), *store.get(by_words(store, "owl", EVERY))]
        found += store.get(by_meaning(store, "owl", EVERY))
        assert {memory.content.split()[0] for memory in found} == {f"secret{number}"}
        assert store.count(EVERY) == store.overview().memories == step + 1
        assert store.statistics(Words(("owl",)), (HERE, PERSONAL)).counts == (step + 1,)

    with ThreadPoolExecutor(len(players)) as pool:
        for step in range(4):
            list(pool.map(play, range(len(players)), [step] * len(players)))
    assert [store for store in players if store.check(deep=True) != []] == []
