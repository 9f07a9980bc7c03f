"""Sharing through git: memories as reviewable files, and colleagues' files as memories.

`share` writes one Markdown file per memory to `.bethink/shared`. `read_shared` synchronises memory with that folder. How far a file is trusted:

- as a document, until the user accepted the folder: a repository from a stranger could hold one, too;
- as an agent's statement, while the file differs from the default branch of the remote: an agent may have written it;
- as a person's statement, where that branch has it in these very bytes, so that colleagues could review it. The upstream of another
  branch does not count: agents push their own branches.

The user's own notes are recognised by their id. An edit that came from there becomes a version of the note.
"""

import hashlib
import os
import re
import subprocess
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bethink import config as configuration
from bethink.api import Bethink
from bethink.errors import BethinkError, InvalidInput, NeedsPerson, NotFound
from bethink.ingest import markdown
from bethink.ingest.files import Found, read_text, walk
from bethink.ingest.git import make_environment
from bethink.ingest.redact import redact
from bethink.ingest.sync import Document, Skipped, Synced
from bethink.language.lasting import ASKS_UNMARKED, DECIDES, STEP_OF_TASK
from bethink.language.rules import lasts
from bethink.model import PERSONAL, TRUST, Memory, Passage
from bethink.project import SHARED_FOLDER as FOLDER
from bethink.text import hash_text, textfile

SHARED_TYPE = "shared"
# The collections of shared files by how far they are trusted.
_COLLECTIONS = {
    TRUST["import"]: "shared:foreign",
    TRUST["agent"]: "shared:local",
    TRUST["user"]: SHARED_TYPE,
}
_DEFAULT_BRANCHES = ("HEAD", "main", "master")  # of a remote; the first that exists counts
_GIT = "git"  # the actor of an edit that a colleague made; `undo` leaves it
_SECONDS = 5  # that one git command may take
_ACCEPTED = "shared-projects"  # the list of projects whose folder the user accepted
_SEEN = "shared-seen"  # a fingerprint of each folder as it was last read
# Kinds that a colleague can use; turns, passages and digests stay where they are.
SHAREABLE = tuple(
    "decision conclusion problem solution todo question fact preference pattern gotcha architecture component domain discovery failure"
    " entity relationship general".split()
)
_RULES = ("preference", "gotcha", "pattern")
_MOST = 1000  # memories that one call shares
_NAME = 60  # characters of a file's name
_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7})(?: |$)", re.MULTILINE)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class SharedFile(NamedTuple):
    """The file of a memory, and what happened to it."""

    id: str
    path: str  # from the top of the checkout
    status: str  # written, updated, unchanged, removed


# Writing


def share(memory: Bethink, ids: Sequence[str]) -> list[SharedFile]:
    """Write memories as files into the repository, and accept the folder."""
    memory.require_person("Sharing a memory with others")
    root = _checkout(memory)
    found = memory.get(*ids, count=False)
    for one in found:
        _check_shareable(one)
    _accept(root)
    with textfile.alone(root):
        known = _list_files(root)
        done = [_write(root, one, known) for one in found]
    read_shared(memory)  # from now on, another text in the file is an edit by a colleague
    return done


def find_shareable(memory: Bethink, rules: bool, decisions: bool) -> tuple[list[str], int]:
    """Ids of this project's standing rules or decisions that the user stated, oldest first.

    Statements from conversations that may only concern the task at hand are left out; their number is returned, too.
    """
    kinds = (*(_RULES if rules else ()), *(("decision",) if decisions else ()))
    if not kinds:
        return [], 0
    wanted = memory.filter(scopes=(memory.scope,), kinds=kinds, min_trust=TRUST["user"])
    found = memory.list(filter=wanted, limit=_MOST, order="oldest")
    open_to_all = [
        one for one in found if one.source_type != SHARED_TYPE and not _is_secret(one.content)
    ]
    chosen = [one.id for one in open_to_all if not _concerns_one_task(one)]
    return chosen, len(open_to_all) - len(chosen)


def _concerns_one_task(one: Memory) -> bool:
    """Return True for a statement of a conversation that is not worded as a rule or a decision for others."""
    if one.source_type != "transcript":
        return False
    text = one.content
    if one.kind != "decision":
        return not lasts(text)
    passing = STEP_OF_TASK.holds(text) or ASKS_UNMARKED.holds(text) or text.endswith("?")
    return passing or not (DECIDES.holds(text) or lasts(text))


def unshare(memory: Bethink, ids: Sequence[str]) -> list[SharedFile]:
    """Remove the files of memories; the memories stay."""
    memory.require_person("Changing what is shared")
    root = _checkout(memory)
    with textfile.alone(root):
        known = _list_files(root)
        done = []
        for id in ids:
            full = [one for one in known if one.startswith(id)]
            if len(full) != 1:
                raise NotFound(
                    f"No shared file has the id {id}.",
                    "`bethink share --list` shows what is shared.",
                )
            path = known[full[0]]
            textfile.inside(root, path).unlink(missing_ok=True)
            done.append(SharedFile(full[0], path.as_posix(), "removed"))
        return done


def list_shared(memory: Bethink) -> list[SharedFile]:
    """List the files of the shared folder."""
    root = _checkout(memory)
    return [
        SharedFile(id, path.as_posix(), "shared") for id, path in sorted(_list_files(root).items())
    ]


def find_file(memory: Bethink, id: str) -> Path | None:
    """The shared file of a memory of this project, from the top of the checkout."""
    root = memory.project.worktree
    return _list_files(root).get(id) if (root / FOLDER).is_dir() else None


def _checkout(memory: Bethink) -> Path:
    root = memory.project.worktree
    if not (root / ".git").exists():
        raise InvalidInput(
            f"{root} is not a git checkout, so nobody would get what is shared.",
            "Run it in a repository, or see `bethink sync`.",
        )
    return root


def _check_shareable(one: Memory) -> None:
    """Refuse memories that are personal, secret, no statements, or not by a person or an agent."""
    if one.scope == PERSONAL:
        raise InvalidInput(
            f"The memory {one.id} is personal, so it is not written into a repository.",
            f"`bethink update {one.id} --here` makes it one of this project.",
        )
    if one.kind not in SHAREABLE or one.source_type == SHARED_TYPE:
        raise InvalidInput(
            f"The memory {one.id} is a passage of {one.source}, which others can read there.",
            "Share decisions, rules, facts and other statements.",
        )
    if one.trust < TRUST["agent"]:
        raise InvalidInput(
            f"The memory {one.id} comes from imported text, and nobody here vouches for it.",
            "Add it in your own words, and share that.",
        )
    if one.superseded_by or one.deleted_at:
        raise InvalidInput(
            f"The memory {one.id} is no longer valid.", "Share the one that replaced it."
        )
    if _is_secret(one.content):
        raise InvalidInput(
            f"The memory {one.id} holds something that looks like a secret.",
            f"`bethink edit {one.id}` changes its text.",
        )


def _is_secret(text: str) -> bool:
    """Return True if something would be taken out of a text."""
    found = redact(text)
    return bool(found.private or found.secrets)


def _write(root: Path, one: Memory, known: dict[str, Path]) -> SharedFile:
    path = known.get(one.id) or _choose_name(one, set(known.values()))
    known[one.id] = path
    real = textfile.inside(root, path)
    was, text = textfile.read(real), render(one)
    if was == text:
        return SharedFile(one.id, path.as_posix(), "unchanged")
    if not textfile.write(real, text, was, 0o644):
        raise BethinkError(f"{path} changed meanwhile.", "Try again.")
    return SharedFile(one.id, path.as_posix(), "updated" if was else "written")


def render(one: Memory) -> str:
    """The file of a memory: a few lines that a reviewer needs, and its text."""
    fields = [f"id: {one.id}", f"kind: {one.kind}", f"date: {one.created_at:%Y-%m-%d}"]
    if one.importance != Memory._field_defaults["importance"]:
        fields.append(f"importance: {one.importance:g}")
    if one.tags:
        fields.append(f"tags: [{', '.join(map(_quote, one.tags))}]")
    head = "\n".join(fields)
    return f"---\n{head}\n---\n\n{one.content.strip()}\n"


def _quote(tag: str) -> str:
    """A tag as YAML reads it back."""
    return tag if re.fullmatch(r"[\w./+-]+", tag) else "'" + tag.replace("'", "''") + "'"


def _choose_name(one: Memory, taken: set[Path]) -> Path:
    """A readable name that no other file has."""
    plain = unicodedata.normalize("NFKD", one.summary or one.content).encode("ascii", "ignore")
    words = re.findall(r"[a-z0-9]+", plain.decode().lower())
    name = ""
    for word in words:
        if len(name) + len(word) > _NAME:
            break
        name += f"-{word}"
    path = Path(FOLDER) / f"{one.kind}{name}.md"
    return path if path not in taken else path.with_name(f"{path.stem}-{one.id[-6:]}.md")


def _list_files(root: Path) -> dict[str, Path]:
    """The shared files by the id of their memory."""
    found: dict[str, Path] = {}
    for path in sorted((root / FOLDER).glob("*.md")):
        try:
            text = textfile.read(textfile.inside(root, path)) or ""
        except BethinkError:
            continue
        id = str(markdown.parse(text).frontmatter.get("id", ""))
        if _ID.fullmatch(id):
            found.setdefault(id, path.relative_to(root))
    return found


def is_ignored(memory: Bethink) -> bool:
    """Return True if git ignores the shared folder, so that nobody would get it."""
    return _run_git(memory.project.worktree, "check-ignore", "-q", f"{FOLDER}/x.md") is not None


# Accepting


def is_accepted(root: Path) -> bool:
    """Return True if the user vouches for the shared memories of this project."""
    return str(root.resolve()) in _read_accepted()


def accept(memory: Bethink) -> None:
    """Trust the shared memories of this project like statements of people."""
    memory.require_person("Accepting what others share")
    _accept(_checkout(memory))


def _accept(root: Path) -> None:
    if is_accepted(root):
        return
    path = configuration.data_directory() / _ACCEPTED
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with textfile.alone(path.parent):
        was = textfile.read(path)
        lines = [*(was or "").splitlines(), str(root.resolve())]
        if not textfile.write(path, "\n".join(dict.fromkeys(lines)) + "\n", was, 0o600):
            raise BethinkError(f"{path} changed meanwhile.", "Try again.")


def _read_accepted() -> list[str]:
    text = textfile.read(configuration.data_directory() / _ACCEPTED)
    return (text or "").splitlines()


# Reading


def is_used(memory: Bethink) -> bool:
    """Return True if there are shared files, or memories of files that were there."""
    if (memory.project.worktree / FOLDER).is_dir():
        return True
    return any(memory.store.sources(memory.scope, name) for name in _COLLECTIONS.values())


def read_shared(memory: Bethink) -> Synced:
    """Synchronise memory with the shared folder: new, changed and deleted files."""
    root = memory.project.worktree
    found = list(walk(root / FOLDER, root, (".md",))) if _has_folder(root) else []
    uris = {one.uri for one in found}
    accepted, reviewed = is_accepted(root), _list_reviewed(root)
    files: dict[int, list[Document | Skipped]] = {level: [] for level in _COLLECTIONS}
    known = {one.uri: one.hash for one in memory.store.sources(memory.scope)}
    edited: list[tuple[Memory, str]] = []
    for one in found:
        document, edit = _read(memory, one, known.get(one.uri) or "")
        is_reviewed = (
            isinstance(one, Found)
            and isinstance(document, Document)
            and reviewed.get(one.uri) == _name_blob(one.path)
        )
        trust = TRUST["import"] if not accepted else TRUST["user" if is_reviewed else "agent"]
        files[trust].append(document)
        if edit and trust == TRUST["user"]:
            edited.append(edit)
    parts = [
        memory.sync(
            documents,
            collection=_COLLECTIONS[trust],
            type=SHARED_TYPE,
            alive=lambda uri: (root / uri).exists(),
            looked=lambda uri: uri not in uris,  # it may be in another of the collections now
            trust=trust,
        )
        for trust, documents in files.items()
    ]
    updated = sum(_take_edit(memory, one, text) for one, text in edited)
    _note_seen(root, fingerprint(root))
    hints = (f"{updated} of your notes changed in git.",) if updated else ()
    return _join(parts, hints)


def _has_folder(root: Path) -> bool:
    """Return True if there is a shared folder, and not a link that leads out of the project."""
    folder = (root / FOLDER).resolve()
    return folder.is_dir() and folder.is_relative_to(root.resolve())


def _join(parts: Sequence[Synced], hints: tuple[str, ...]) -> Synced:
    """Add the outcomes of several collections."""

    def add(field: str) -> Any:
        return sum((getattr(one, field) for one in parts), Synced._field_defaults[field])

    return Synced(
        **{field: add(field) for field in Synced._fields if field != "hints"}, hints=hints
    )


def _take_edit(memory: Bethink, one: Memory, text: str) -> bool:
    """Make a reviewed edit a version of the user's note, by git.

    An agent that runs this leaves it to a person.
    """
    actor = memory.actor
    memory.actor = _GIT if memory.is_person else actor
    try:
        memory.update(one.id, content=text)
    except NeedsPerson:
        return False
    finally:
        memory.actor = actor
    return True


def _read(
    memory: Bethink, one: Found | Skipped, before: str
) -> tuple[Document | Skipped, tuple[Memory, str] | None]:
    """Return the document of a file, and an edit of the user's own note that came since `before`."""
    read = one if isinstance(one, Skipped) else read_text(one)
    if isinstance(read, Skipped):
        return read, None
    text, hash = read
    if _CONFLICT.search(text):
        return Skipped(one.uri, "it has merge conflict markers"), None
    passage, id = read_file(text)
    own = _find_own(memory, id)
    passages = () if own or not passage.content else (passage,)
    mark = f"{hash}:{'own' if own else 'other'}"
    edit = None
    if own and not own.deleted_at and passage.content and before and before != mark:
        edit = (own, passage.content) if own.content.strip() != passage.content else None
        if edit and _is_behind(memory, own, passage.content, before):
            edit = None
    return Document(one.uri, mark, lambda: passages), edit


def _is_behind(memory: Bethink, own: Memory, text: str, before: str) -> bool:
    """Return True if a file holds an earlier text of a note, as after a visit to an old branch."""
    was_shared = before.startswith(hashlib.sha256(render(own).encode()).hexdigest())
    texts = (event.before.get("content") for event in memory.store.history(own.id))
    return not was_shared and text in {str(one).strip() for one in texts}


def _list_reviewed(root: Path) -> dict[str, str]:
    """Return the shared files of the remote's default branch, each with the name of its blob."""
    upstream = _run_git(root, "rev-parse", "--abbrev-ref", "@{upstream}") or ""
    remotes = dict.fromkeys(("origin", upstream.strip().partition("/")[0] or "origin"))
    for branch in (f"refs/remotes/{one}/{name}" for one in remotes for name in _DEFAULT_BRANCHES):
        listed = _run_git(root, "ls-tree", "-r", branch, "--", FOLDER)
        if listed is not None:
            rows = (line.partition("\t") for line in listed.splitlines())
            return {path: about.split()[2] for about, _, path in rows if len(about.split()) == 3}
    return {}


def _name_blob(path: Path) -> str:
    """Return the name that git gives to the bytes of a file."""
    try:
        data = path.read_bytes()
    except OSError:
        return ""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def _run_git(root: Path, *words: str) -> str | None:
    """Run a git command that only reads. None if it fails."""
    try:
        done = subprocess.run(
            ["git", "-c", "core.quotepath=off", "-c", "core.fsmonitor=false", *words],
            cwd=root,
            env=make_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def read_file(text: str) -> tuple[Passage, str]:
    """Return the statement in a shared file, and the id of its memory where it was written."""
    page = markdown.parse(text)
    known = page.directives
    kind = known.get("kind")
    passage = Passage(
        page.body.strip(),
        kind=kind if kind in SHAREABLE else None,
        tags=tuple(known.get("tags", ())),
        importance=known.get("importance"),
        section=None,
    )
    return passage, str(page.frontmatter.get("id", ""))


def _find_own(memory: Bethink, id: str) -> Memory | None:
    """The note of this database that a file was written from."""
    if not _ID.fullmatch(id):
        return None
    found = memory.store.get([id])
    return next(
        (one for one in found if one.source_type != SHARED_TYPE and one.scope == memory.scope), None
    )


# Noticing changes


def fingerprint(root: Path) -> str:
    """Names, sizes and times of the shared files: it changes when one of them does."""
    try:
        entries = sorted(os.scandir(root / FOLDER), key=lambda entry: entry.name)
        stats = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    except OSError:
        return ""
    lines = [f"{name} {one.st_size} {one.st_mtime_ns}" for name, one in stats]
    return hash_text("\n".join(lines)).hex()


def has_changed(root: Path) -> bool:
    """Return True if an accepted folder changed since it was last read."""
    now = fingerprint(root)
    return now != _read_seen(root) and is_accepted(root)


def _seen_file(root: Path) -> Path:
    return configuration.data_directory() / _SEEN / hash_text(str(root.resolve())).hex()


def _read_seen(root: Path) -> str:
    return (textfile.read(_seen_file(root)) or "").strip()


def _note_seen(root: Path, mark: str) -> None:
    path = _seen_file(root)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    textfile.write(path, f"{mark}\n", textfile.read(path), 0o600)
