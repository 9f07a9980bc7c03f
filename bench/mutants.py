"""Break each guard on purpose and see that a test notices: `make mutants`.

A mutant is one small change of the source that opens a guard. It is applied to a copy of the tree, the named tests run there, and the
mutant is killed if one of them fails. A mutant that survives needs a test; one that no longer applies needs a new text.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
COPIED = ("src", "tests", "docs", "bench", "plugins", "pyproject.toml", "README.md", "Makefile")


class Mutant(NamedTuple):
    name: str
    file: str  # below src/bethink
    old: str  # occurs once
    new: str
    tests: str  # files, or tests in them, below tests


RECONCILE, EDIT, CALLER, CONSENT = (
    "ingest/reconcile.py",
    "ingest/edit.py",
    "caller.py",
    "consent.py",
)
PROVENANCE, PROJECT, OUTGOING = "ingest/provenance.py", "project.py", "outgoing.py"
AUTHORITY, FORMS = (
    "test_authority.py",
    "test_provenance.py::test_what_comes_in_this_form_is_not_the_users_word",
)
GATE = "test_gate.py::test_no_tool_resource_or_prompt_shows_hostile_text test_gate.py::test_no_hook_prints_hostile_text"

MUTANTS = (
    # Who may grant a request
    Mutant(
        "a phrase in a transcript grants a request",
        "hooks/run.py",
        "is_phrase(hook.prompt) and not state.is_ephemeral(hook)",
        "is_phrase(hook.prompt)",
        "test_hooks_dialects.py",
    ),
    # Who may replace whom
    Mutant(
        "a less trusted statement replaces",
        RECONCILE,
        "    if new.trust < believed:\n",
        "    if new.trust < 0:\n",
        "test_reconcile.py",
    ),
    Mutant(
        "an earlier statement replaces a later one",
        RECONCILE,
        'return OLDER if new.created_at < old.created_at and not explicit else ""',
        'return ""',
        "test_reconcile.py test_attacks.py",
    ),
    Mutant(
        "a pasted text closes an open item",
        RECONCILE,
        'return new.trust >= min(old.trust, TRUST["agent"]) and new.created_at >= old.created_at',
        "return new.created_at >= old.created_at",
        "test_reconcile.py",
    ),
    Mutant(
        "a statement from a transcript retires",
        RECONCILE,
        'explicit or (new.trust >= TRUST["agent"] and not is_inferred(new))',
        'explicit or new.trust >= TRUST["agent"]',
        "test_reconcile.py",
    ),
    Mutant(
        "statements of different trust are merged by meaning",
        RECONCILE,
        "if new.trust != old.trust or old.kind in OPEN",
        "if old.kind in OPEN",
        "test_reconcile.py",
    ),
    Mutant(
        "the same words of different trust are merged",
        RECONCILE,
        "        new.trust == old.trust\n        and neighbour.similarity",
        "        neighbour.similarity",
        "test_reconcile.py",
    ),
    Mutant(
        "a pasted text marks the user's word",
        RECONCILE,
        'if self.new.trust < TRUST["agent"]:\n            return\n        if self',
        "if self",
        "test_reconcile.py",
    ),
    Mutant(
        "an agent's turn marks the user's word",
        RECONCILE,
        "elif is_inferred(self.new) and self.new.trust < old.trust:",
        "elif False:",
        "test_reconcile.py",
    ),
    # Whose word a turn is
    Mutant(
        "a quotation is the user's word",
        PROVENANCE,
        "if any(_overlap(one, sentence) for one in quoted):",
        "if False:",
        FORMS,
    ),
    Mutant(
        "reported speech is the user's word",
        PROVENANCE,
        "if _is_foreign_speech(sentence) or _announces_text(sentence, above):",
        "if _announces_text(sentence, above):",
        FORMS,
    ),
    Mutant(
        "a line of a ticket or a chat is the user's word",
        PROVENANCE,
        "if noise or _is_reaction(text) or _is_foreign(text) or",
        "if noise or",
        FORMS,
    ),
    Mutant(
        "a claim that is asked about is the user's word",
        PROVENANCE,
        "if teaser or _is_check(sentence):",
        "if teaser:",
        FORMS,
    ),
    Mutant(
        "a name that reads as a sentence is the user's word",
        PROVENANCE,
        "found = [one[0] for one in compile_pattern(_NAMED).finditer(text)]",
        "found = []",
        "test_attack_cases.py::test_a_claim_in_a_form_that_was_new_to_the_guards_is_not_the_users_word",
    ),
    Mutant(
        "a pasted turn has the user's trust",
        "ingest/conversation.py",
        'pasted = speaker == "user" and not find_own(text, turn.asked).whole',
        "pasted = False",
        "test_provenance.py",
    ),
    Mutant(
        "a statement of a pasted part becomes an idea",
        "ingest/ideas.py",
        "found = [each for each in statements(typed) if own.hold(each.text)]",
        "found = list(statements(typed))",
        "test_provenance.py",
    ),
    Mutant(
        "a pasted turn is shown at a prompt",
        "hooks/prompt.py",
        'if pasted and one.trust <= TRUST["pasted"]:',
        "if False:",
        "test_provenance.py",
    ),
    # What an agent may change
    Mutant(
        "an agent edits a field of the user's memory",
        EDIT,
        "        else:\n            allowed = value == getattr(old, name)",
        "        else:\n            allowed = True",
        AUTHORITY,
    ),
    Mutant(
        "an agent settles a decision",
        EDIT,
        "allowed = old.kind in OPEN_KINDS or value == getattr(old, name)",
        "allowed = True",
        AUTHORITY,
    ),
    Mutant(
        "an agent votes the user's memory down",
        EDIT,
        'allowed = name == "vote" and value >= 0',
        "allowed = True",
        AUTHORITY,
    ),
    Mutant(
        "an agent purges",
        EDIT,
        "    if batch.purge:\n",
        "    if False:\n",
        AUTHORITY,
    ),
    Mutant(
        "an agent's relation retires the user's word",
        EDIT,
        'if one.type == "supersedes" and target and target.trust > trust:',
        "if False:",
        AUTHORITY,
    ),
    Mutant(
        "an agent takes back a relation of the user's word",
        EDIT,
        "if source and source.trust > trust:",
        "if False:",
        AUTHORITY,
    ),
    # Who is calling
    Mutant(
        "an agent that unsets its variables is a person",
        CALLER,
        "    if not thorough:\n",
        "    if True:\n",
        AUTHORITY,
    ),
    Mutant(
        "an agent that runs another agent is a host",
        CALLER,
        "return is_nested or not all(",
        "return not all(",
        AUTHORITY,
    ),
    Mutant(
        "a composed command is a launcher",
        CALLER,
        "return starts and not _COMPOSED.search(text)",
        "return starts",
        AUTHORITY,
    ),
    Mutant(
        "a command that nobody classified is for agents",
        "app/cli/console.py",
        'if operation.agents not in ("read", "append"):',
        "if False:",
        AUTHORITY,
    ),
    # Consent
    Mutant(
        "a message that quotes the phrase grants",
        CONSENT,
        "found = _PHRASE.fullmatch(message)",
        "found = _PHRASE.search(message)",
        AUTHORITY,
    ),
    Mutant(
        "a phrase never expires",
        CONSENT,
        "if (one.action, one.code) == phrase and one.expires > at",
        "if (one.action, one.code) == phrase",
        AUTHORITY,
    ),
    Mutant(
        "a phrase to forget purges",
        CONSENT,
        "if (one.action, one.code) == phrase and",
        "if one.code == phrase.code and",
        AUTHORITY,
    ),
    # Which project a folder is
    Mutant(
        "a copy of a repository is the repository",
        "registry.py",
        "if record.mark == mark and not record.moved and not _may_be_at(earlier, mark):",
        "if record.mark == mark and not record.moved:",
        "test_project.py",
    ),
    Mutant(
        "a folder anywhere is a worktree",
        PROJECT,
        'listed = own.parent == common / "worktrees" and is_git_directory(common)',
        "listed = is_git_directory(common)",
        "test_project.py test_attacks.py",
    ),
    Mutant(
        "a worktree belongs to any folder that names it",
        PROJECT,
        "return common if listed and back == git.resolve() else None",
        "return common if listed else None",
        "test_project.py",
    ),
    # What a token sees and does
    Mutant(
        "a token of one project sees every container",
        "app/http/security.py",
        "scope.startswith(f\"container:{grant.scope.removeprefix('project:')}/\")",
        'scope.startswith("container:")',
        "test_http_security.py",
    ),
    Mutant(
        "every token sees what is personal",
        "app/http/security.py",
        "            return self.personal\n",
        "            return True\n",
        "test_http_security.py",
    ),
    Mutant(
        "a store for reading writes",
        "store/readonly.py",
        "        self.path = store.path\n",
        "        self.path = store.path\n        self.write = store.write\n",
        "test_store_readonly.py",
    ),
    # What leaves
    Mutant(
        "a model that does not say where it runs is local",
        "model.py",
        'return getattr(model, "remote", True) is not False',
        'return getattr(model, "remote", False) is not False',
        "test_hooks_remote.py",
    ),
    Mutant(
        "a hook calls a remote embedder",
        "embed/__init__.py",
        "if found is None or is_remote(found):",
        "if found is None:",
        "test_hooks_remote.py",
    ),
    Mutant(
        "an invisible character hides a secret",
        "ingest/redact.py",
        "if _compile(UNSEEN).search(text):",
        "if False:",
        "test_redact.py",
    ),
    Mutant(
        "a private block is kept",
        "ingest/redact.py",
        'blocks, strays = _private_spans(text) if "<" in text else ([], [])',
        "blocks, strays = [], []",
        "test_redact.py",
    ),
    Mutant(
        "a secret leaves towards an agent",
        OUTGOING,
        "redacted = redact(cleaned).text",
        "redacted = cleaned",
        GATE,
    ),
    Mutant(
        "a memory passes for another one in a fence",
        OUTGOING,
        'return "\\n".join(f"> {line}".rstrip() for line',
        'return "\\n".join(line.rstrip() for line',
        "test_fence.py",
    ),
    Mutant(
        "a name starts a line",
        OUTGOING,
        'Cleared(clear(text).replace("\\n", " "))',
        "Cleared(clear(text))",
        GATE,
    ),
    # Dates and imports
    Mutant(
        "a turn is dated in the future",
        "features/conversations.py",
        "return [turn._replace(at=min(turn.at, now) if turn.at else None) for turn in turns]",
        "return turns",
        "test_provenance.py",
    ),
    Mutant(
        "an import is dated in the future",
        "features/sync.py",
        "capped = {name: min(at, now) for name in past if (at := getattr(record.memory, name))}",
        "capped = {name: at for name in past if (at := getattr(record.memory, name))}",
        "test_provenance.py",
    ),
    Mutant(
        "an import says itself how far it is believed",
        "features/sync.py",
        'trust=min(memory.trust, TRUST["import"]),',
        "trust=memory.trust,",
        "test_import_trust.py",
    ),
    Mutant(
        "an import is shown at a prompt",
        "hooks/prompt.py",
        "or one.id in shown.ids or is_untrusted_import(one)",
        "or one.id in shown.ids",
        "test_import_trust.py",
    ),
    Mutant(
        "a stranger's transcript is the user's",
        "features/conversations.py",
        '    if state.get("import") or not reading.named:\n        return True\n',
        "    return False\n",
        "test_conversations.py test_hosts_places.py",
    ),
)  # fmt: skip


def copy_tree(folder: Path) -> Path:
    """Copy what the tests need into a folder."""
    root = folder / "tree"
    root.mkdir()
    unwanted = shutil.ignore_patterns("__pycache__", ".venv*", ".git", "results")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=unwanted, symlinks=True)
        elif source.exists():
            shutil.copy2(source, root / name)
    return root


def run_tests(root: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests in a copy of the tree, on the source in that copy."""
    named = [f"tests/{one}" for one in tests.split()]
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *named],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def try_mutant(root: Path, mutant: Mutant) -> str:
    """Return "killed", "survived", or what kept the mutant from being tried."""
    file = root / "src" / "bethink" / mutant.file
    text = file.read_text("utf-8") if file.exists() else ""
    if text.count(mutant.old) != 1:
        return f"no longer applies: its text occurs {text.count(mutant.old)} times in {mutant.file}"
    file.write_text(text.replace(mutant.old, mutant.new), "utf-8")
    try:
        result = run_tests(root, mutant.tests)
    finally:
        file.write_text(text, "utf-8")
    if result.returncode == 1 and "SyntaxError" not in result.stdout:
        return "killed"
    if result.returncode == 0:
        return "survived"
    return f"not tried: pytest ended with {result.returncode}\n{result.stdout[-2000:]}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "only", nargs="*", help="parts of the names of mutants; all of them if none is given"
    )
    asked = parser.parse_args(words)
    chosen = [
        one for one in MUTANTS if not asked.only or any(part in one.name for part in asked.only)
    ]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        root = copy_tree(Path(folder))
        tests = " ".join(dict.fromkeys(" ".join(one.tests for one in chosen).split()))
        # A test that fails anyway kills nothing.
        if (result := run_tests(root, tests)).returncode:
            print(result.stdout[-3000:], "The tests fail without any mutant.", sep="\n")
            return 1
        for mutant in chosen:
            began = time.monotonic()
            outcome = try_mutant(root, mutant)
            print(f"{outcome:9} {time.monotonic() - began:5.1f} s  {mutant.name}", flush=True)
            if outcome != "killed":
                wrong.append(mutant)
    print(f"{len(chosen) - len(wrong)} of {len(chosen)} mutants killed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
