"""A role that is bound to one person against everybody else's rows: through the command line and by statements of its own."""

import itertools
from datetime import UTC, datetime
from types import SimpleNamespace

import postgres
import psycopg
import pytest
from stores import make, put, tell

from bethink.app.http.security import Caller, SharedTokens
from bethink.errors import InvalidInput
from bethink.model import PERSONAL
from bethink.store.postgres import PostgresStore

STORE = "sqlite"  # these tests open PostgreSQL themselves
_roles = itertools.count()
# As `bethink_app` finds them: how a person or a tenant is named in a row.
NAMING = ("tenant", "person", "owner", "role")


def new_role(url: str, person: str, admin: bool = False) -> str:
    """A login bound to a person of the tenant `team`; its URL."""
    role = f"{person}_{url.rpartition('/')[2]}_{next(_roles)}"
    bind = f"SELECT bethink.bind('{role}', 'team', '{person}', {admin})"
    create = f"CREATE ROLE {role} LOGIN PASSWORD 'pass'"
    postgres.run(url, create, f"GRANT bethink_app TO {role}", bind)
    return f"postgresql://{role}:pass@{url.rpartition('@')[2]}"


def create(store: PostgresStore, name: str, person: str) -> str:
    """A token for what is personal to somebody."""
    made = datetime(2026, 1, 1, tzinfo=UTC)
    wanted = Caller("", name, "read", personal=True, person=person, created=made)
    return SharedTokens(store).create(wanted)[1].id


@pytest.fixture(scope="module")
def team():
    """A database with a memory and a token of Ben's, and the stores of Anna's bound role and of an administrator's."""
    url = postgres.migrated()
    owner = PostgresStore(url, tenant="team", user="ben")
    tell(owner, "I dislike tea", scope=PERSONAL)
    put(owner, make("We deploy on Fridays"))
    token = create(owner, "ben", "ben")
    own, boss = new_role(url, "anna"), new_role(url, "carol", admin=True)
    anna = PostgresStore(own, tenant="team", user="anna")
    carol = PostgresStore(boss, tenant="team", user="carol")
    tell(anna, "I like tea", scope=PERSONAL)
    yield SimpleNamespace(url=url, own=own, owner=owner, anna=anna, carol=carol, bens=token)
    for store in (anna, carol, owner):
        store.close()


def test_a_bound_role_cannot_create_a_token_for_another_person(team, cli, monkeypatch):
    monkeypatch.setenv("BETHINK_DATABASE", team.own)
    monkeypatch.setenv("BETHINK_TENANT", "team")
    monkeypatch.setenv("BETHINK_USER", "anna")
    words = ("token", "create", "--name", "spy", "--all-projects", "--personal")
    said = cli.fails(*words, "--person", "ben", code=2)
    assert "Only an administrator" in said
    assert "--person anna" in said


def test_a_bound_role_manages_its_own_tokens(team, cli, monkeypatch):
    monkeypatch.setenv("BETHINK_DATABASE", team.own)
    monkeypatch.setenv("BETHINK_TENANT", "team")
    monkeypatch.setenv("BETHINK_USER", "anna")
    cli.ok("token", "create", "--name", "own", "--all-projects", "--personal", "--person", "anna")
    cli.ok("token", "revoke", "own")
    states = {one["name"]: one["state"] for one in cli.json("token", "list")}
    assert states["own"] == "revoked"


def test_a_bound_role_lists_its_own_tokens_alone(team):
    create(team.anna, "listed", "anna")
    assert {one["person"] for one in team.anna.list_tokens()} == {"anna"}


def test_a_bound_role_cannot_take_a_name_that_another_persons_token_has(team):
    with pytest.raises(InvalidInput, match="named 'ben' already"):
        create(team.anna, "ben", "anna")


def test_an_administrator_manages_tokens_of_others(team):
    id = create(team.carol, "for-dora", "dora")
    team.carol.revoke_token(id, 1)
    (row,) = (one for one in team.carol.list_tokens() if one["id"] == id)
    assert (row["person"], row["revoked"]) == ("dora", 1)


def test_a_role_that_serves_everybody_creates_tokens_for_each(team):
    create(team.owner, "for-emil", "emil")
    assert "emil" in {one["person"] for one in team.owner.list_tokens()}


# Each names Ben, Ben's scope or another tenant in a row that Anna's role writes.
FORGED = [
    pytest.param(
        "INSERT INTO tokens(id, name, hash, scope, personal, person, created)"
        " VALUES ('x', 'x', 'x', 'read', true, 'ben', 0)",
        id="a token for another person",
    ),
    pytest.param(
        "INSERT INTO tokens(id, name, hash, scope, personal, person, created)"
        " VALUES ('x', 'x', 'x', 'read', true, '', 0)",
        id="a token for nobody",
    ),
    pytest.param(
        "INSERT INTO tokens(tenant, id, name, hash, scope, personal, person, created)"
        " VALUES ({other}, 'x', 'x', 'x', 'read', true, 'anna', 0)",
        id="a token of another tenant",
    ),
    pytest.param("UPDATE tokens SET person = 'ben'", id="a token given to another person"),
    pytest.param("UPDATE tokens SET tenant = {other}", id="a token moved to another tenant"),
    pytest.param("UPDATE tokens SET personal = true", id="a token widened to what is personal"),
    pytest.param("UPDATE tokens SET projects = NULL", id="a token widened to every project"),
    pytest.param("UPDATE tokens SET scope = 'write'", id="a token widened to writing"),
    pytest.param("UPDATE tokens SET expires = NULL", id="a token without its end"),
    pytest.param("UPDATE tokens SET hash = 'y'", id="a token with another secret"),
    pytest.param("DELETE FROM tokens", id="tokens removed without a trace"),
    pytest.param(
        "INSERT INTO scopes(id, key, owner) VALUES (-77, 'personal', 'ben')",
        id="a personal scope of another person",
    ),
    pytest.param(
        "UPDATE scopes SET owner = 'ben' WHERE owner <> ''", id="a scope given to another person"
    ),
    pytest.param("UPDATE scopes SET id = {bens} WHERE owner <> ''", id="another person's number"),
    pytest.param("UPDATE scopes SET key = 'project:x'", id="a scope under another key"),
    pytest.param("UPDATE scopes SET tenant = {other}", id="a scope moved to another tenant"),
    pytest.param("UPDATE memories SET scope = {bens}", id="a memory put among another person's"),
    pytest.param("UPDATE memories SET tenant = {other}", id="a memory moved to another tenant"),
    pytest.param(
        "INSERT INTO meta(scope, key, value) VALUES ({bens}, 'x', 'y')",
        id="a note among another person's",
    ),
    pytest.param(
        "INSERT INTO history(scope, number, memory, at, actor, action)"
        " VALUES ({bens}, 999999, 1, 0, 'ben', 'update')",
        id="history of what is personal to another",
    ),
    pytest.param(
        "INSERT INTO history(tenant, scope, number, memory, at, actor, action)"
        " VALUES ({other}, 0, 999999, 1, 0, 'ben', 'update')",
        id="history of another tenant",
    ),
    pytest.param("UPDATE audit SET person = 'ben'", id="a line of the audit trail changed"),
    pytest.param("UPDATE logins SET person = 'ben'", id="the role bound to another person"),
    pytest.param("UPDATE logins SET admin = true", id="the role made an administrator"),
    pytest.param("DELETE FROM logins", id="the role bound to nobody"),
    pytest.param("SELECT bind(session_user, 'team', 'ben')", id="bind called for another person"),
    pytest.param("SELECT bind(session_user, 'team', 'anna', true)", id="bind called for rights"),
    pytest.param("UPDATE tenants SET name = 'mine'", id="the tenant renamed"),
    pytest.param("SET ROLE bethink_keeper", id="the keeper's role"),
]


def act(team, connection, person: str = "anna") -> None:
    connection.execute("SET LOCAL search_path = bethink, public")
    connection.execute("SET LOCAL ROLE bethink_app")
    who = "SELECT set_config('bethink.tenant', %s, true), set_config('bethink.person', %s, true)"
    connection.execute(who, (str(team.anna.who.tenant), person))


@pytest.mark.parametrize("statement", FORGED)
def test_a_bound_role_cannot_write_a_row_of_another_person_or_tenant(team, statement):
    create(team.anna, f"target-{next(_roles)}", "anna")
    (bens,) = team.owner.column("SELECT id FROM scopes WHERE owner = 'ben'")
    other = team.owner.act_as("others", "").who.tenant
    with psycopg.connect(team.own) as connection:
        act(team, connection)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.format(bens=bens, other=other))
        connection.rollback()


READ = [
    pytest.param("SELECT count(*) FROM tokens WHERE person <> 'anna'", id="tokens"),
    pytest.param("SELECT count(*) FROM scopes WHERE owner NOT IN ('', 'anna')", id="scopes"),
    pytest.param("SELECT count(*) FROM logins WHERE person <> 'anna'", id="logins"),
    pytest.param("SELECT count(*) FROM tenants WHERE name <> 'team'", id="tenants"),
    pytest.param("SELECT count(*) FROM memories WHERE content LIKE '%dislike%'", id="memories"),
    pytest.param("SELECT count(*) FROM history WHERE after LIKE '%dislike%'", id="history"),
]


@pytest.mark.parametrize("query", READ)
def test_a_bound_role_reads_no_row_of_another_person_or_tenant(team, query):
    team.owner.act_as("others", "")
    with psycopg.connect(team.own) as connection:
        act(team, connection)
        assert connection.execute(query).fetchone() == (0,)


@pytest.mark.parametrize("table", ["tokens", "memories", "scopes", "audit", "tenants"])
def test_a_bound_role_that_says_it_is_another_person_sees_nothing(team, table):
    with psycopg.connect(team.own) as connection:
        act(team, connection, "ben")
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_a_bound_role_cannot_revoke_another_persons_token(team):
    with psycopg.connect(team.own) as connection:
        act(team, connection)
        done = connection.execute("UPDATE tokens SET revoked = 1 WHERE id = %s", (team.bens,))
        assert done.rowcount == 0


def test_a_revoked_token_stays_revoked(team):
    id = create(team.anna, "ended", "anna")
    team.carol.revoke_token(id, 1)
    with psycopg.connect(team.own) as connection:
        act(team, connection)
        done = connection.execute("UPDATE tokens SET revoked = NULL WHERE id = %s", (id,))
        assert done.rowcount == 0


@pytest.mark.parametrize(
    ("actor", "kept"),
    [
        pytest.param("ben", "ben for anna", id="another person"),
        pytest.param("claude for ben", "claude for anna", id="an agent of another person"),
        pytest.param("anna", "anna", id="the person"),
        pytest.param("claude for anna", "claude for anna", id="an agent of the person"),
    ],
)
def test_the_audit_trail_names_the_person_whatever_the_writer_says(team, actor, kept):
    line = (
        "INSERT INTO audit(number, at, person, actor, mark, changes, hash)"
        " VALUES (0, now(), 'ben', %s, 'x', '{}', '') RETURNING person, actor"
    )
    with psycopg.connect(team.own) as connection:
        act(team, connection)
        assert connection.execute(line, (actor,)).fetchone() == ("anna", kept)
        connection.rollback()


def test_history_names_the_person_whatever_the_client_calls_itself(team):
    memory = make("We test on Mondays")
    put(team.anna, memory, actor="agent:claude for ben")
    (event, *_) = team.anna.history(memory.id)
    assert event.actor == "agent:claude for anna"


def test_no_role_that_serves_may_change_whose_a_row_is(team):
    """Holds for every table that is there, also for one that a later migration adds."""
    columns = (
        "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE c.relnamespace = 'bethink'::regnamespace AND c.relkind IN ('r', 'p')"
        f" AND a.attname IN {NAMING}"
    )
    changed = f"{columns} AND has_column_privilege('bethink_app', c.oid, a.attnum, 'UPDATE')"
    assert {name for _, name in postgres.run(team.url, columns)} == set(NAMING)
    assert postgres.run(team.url, changed) == []


def test_every_policy_checks_what_is_written_as_strictly_as_what_is_read(team):
    policies = (
        "SELECT tablename, policyname FROM pg_policies WHERE schemaname = 'bethink'"
        " AND 'bethink_app' = ANY (roles) AND CASE cmd WHEN 'SELECT' THEN qual IS NULL"
        " WHEN 'INSERT' THEN with_check IS NULL ELSE qual IS NULL OR with_check IS NULL END"
    )
    assert postgres.run(team.url, policies) == []
