"""Databases that an earlier release wrote, as it left them.

Each holds what the command line of that release stored: a replaced memory and its successor, which was edited and voted for, a
question with a relation, a personal preference, a forgotten note, a passage of a document, and the tombstone of a purged text.
"""

from pathlib import Path

import apsw
import postgres

from bethink.store import pgserver
from bethink.store.postgres import PostgresStore

FIXTURES = Path(__file__).parent / "fixtures"
POSTGRES_MIGRATIONS = {"0.18": 3, "0.20": 5, "0.21": 6}  # how many the release had
MYSQL = "The orders service stores its data in MySQL"
POSTGRESQL = "The orders service stores its data in PostgreSQL"
PROXY = "Which port does the staging proxy use?"
PULLS = "I prefer small pull requests"
WIKI = "The wiki password changes on Friday"
PURGED = "A purged line that must not come back"
DOCUMENT = """# Deploys

Deploys come from main, after two reviews and never on Friday.
"""


def load_release(release: str, kind: str, folder: Path, patch) -> dict[str, str]:
    """Put the database of a release down. Returns the settings that open it."""
    rows = (FIXTURES / f"release-{release}-{kind}.sql").read_text("utf-8")
    if kind == "sqlite":
        path = folder / "release.db"
        connection = apsw.Connection(str(path))
        connection.execute(rows)
        connection.pragma("journal_mode", "WAL")
        connection.close()
        return {"BETHINK_DATABASE": str(path)}
    url = postgres.new_database()
    known = pgserver.migrations()[: POSTGRES_MIGRATIONS[release]]
    with patch.context() as patched:
        patched.setattr(pgserver, "migrations", lambda: known)
        PostgresStore(url, tenant="template").close()
    # As a superuser, and without triggers: the rows hold what they counted.
    postgres.run(
        url, f"TRUNCATE bethink.tenants CASCADE; SET session_replication_role = replica; {rows}"
    )
    return {"BETHINK_DATABASE": url, "BETHINK_TENANT": "default", "BETHINK_USER": "ada"}
