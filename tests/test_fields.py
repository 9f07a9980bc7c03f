"""A field of a memory is declared once: a new one appears on every surface and in both databases without another change.

The package is copied with two more lines in `model.py` and one more migration per database, as a contributor would add them. The
tests of `field_surfaces.py` run on that copy; each of them is one test here.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import field_surfaces
import postgres
import pytest
from source_tree import SOURCE

HERE = Path(__file__).parent
LAST_FIELD = "    newer: Annotated["
CONTRIBUTING = (HERE.parent / "CONTRIBUTING.md").read_text("utf-8")


def read_block(name: str) -> str:
    """Return a code block of the walk-through "Add a field", without its indentation."""
    walk_through = CONTRIBUTING.partition("## Add a field")[2].partition("\n## ")[0]
    block = re.search(rf"^ *```{name}\n(.*?)^ *```$", walk_through, re.MULTILINE | re.DOTALL)
    assert block, f"CONTRIBUTING.md has no block {name!r}"
    return textwrap.dedent(block.group(1))


NEW_FIELDS = "\n" + textwrap.indent(read_block("python field"), "    ")
COLUMNS = {name: read_block(f"sql {name}") for name in ("sqlite", "postgres")}
SURFACES = [name for name in vars(field_surfaces) if name.startswith("test_")]


def copy_package(folder: Path) -> None:
    """A copy of the package with the new fields. Files that do not change are links."""
    for path in SOURCE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            link = folder / "bethink" / path.relative_to(SOURCE)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    model = folder / "bethink" / "model.py"
    text = model.read_text("utf-8")
    end = text.index("\n    ] = ()\n", text.index(LAST_FIELD)) + len("\n    ] = ()")
    model.unlink()
    model.write_text(text[:end] + NEW_FIELDS.rstrip() + text[end:], "utf-8")
    for database, statements in COLUMNS.items():
        migrations = folder / "bethink" / "store" / "migrations" / database
        number = len(list(migrations.iterdir())) + 1
        (migrations / f"{number:04}_stars.sql").write_text(statements, "utf-8")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def outcomes(request, tmp_path_factory) -> dict[str, str]:
    """Test of `field_surfaces` → why it failed, or ""."""
    folder = tmp_path_factory.mktemp("injected")
    copy_package(folder / "src")
    report = folder / "report.xml"
    env = {
        **os.environ,
        "PYTHONPATH": str(folder / "src"),
        "BETHINK_TEST_STORE": request.param,
        "BETHINK_TEST_PG_DSN": postgres.server_url(),
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}"]
    done = subprocess.run(
        [*command, str(HERE / "field_surfaces.py")], env=env, cwd=HERE.parent, capture_output=True
    )
    assert report.exists(), done.stdout.decode()[-3000:] + done.stderr.decode()[-3000:]
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        faults = [*case.iter("failure"), *case.iter("error"), *case.iter("skipped")]
        why = "\n".join(fault.text or str(fault.get("message")) for fault in faults)
        found[str(case.get("name"))] = why
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("surface", [pytest.param(name, id=name[5:]) for name in SURFACES])
def test_a_new_field_appears(outcomes, surface):
    assert outcomes.get(surface) == "", outcomes.get(surface, "The test did not run.")
