"""Run a hook, from the agent's message to the printed answer. A hook never fails.

If anything is broken, the hook prints nothing and counts the failure for `doctor`.

`run_alone` is `bethink hook` as hosts start it: a separate process that ends with 0, in time, whatever happens. Hosts wait for it at
every prompt, so the command line comes here before it imports anything else.

Some events return context to the model; the others note the transcript and wake the worker. A hook writes only the spool, the ids that a
session has seen, the counters, and a model's optimised copy if there is none yet. A missing database is not created, a locked one is not
waited for, and models are opened only for a prompt with content, in a project with memories.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from bethink import config as configuration
from bethink import project as projects
from bethink.config import locate_database
from bethink.errors import BethinkError
from bethink.hooks import LONGEST_INPUT, client, spool, state
from bethink.hooks.client import Limit
from bethink.hooks.state import Hook
from bethink.model import TRUST
from bethink.outgoing import join

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bethink.api import Bethink
    from bethink.config import Config
    from bethink.hooks.prompt import Context
    from bethink.project import Project

_BUSY = 1.0  # seconds to wait for a lock of another process
MOST_OPENED = 4  # memories that a helper keeps open
_NOTED = ("stop", "subagent-stop", "pre-compact", "post-compact", "session-end")
SUBAGENT_TOKENS = 300  # of a sub-agent's briefing: its task says what it needs; set by hand
EMPTIED = ("compact", "clear")  # sources of a session that has lost its context
_LONGEST_PHRASE = 100  # characters of a prompt that may grant an agent's request
_LONG = 2000  # characters of a prompt that surely says something
KEEP = (
    "Keep in the summary: decisions with their reasons, open questions, problems with what solved them, what is half done, and the next"
    " steps; with the names of files, commands and identifiers as they are."
)


# A separate process


def run_alone(
    words: Sequence[str], limit: Limit | None = None, message: bytes | None = None
) -> None:
    """Run the hook as a separate process. Never returns, except for help.

    `limit` and `message` are those of a hook that no helper answered.
    """
    if not words or words[0].startswith("-") or {"--help", "-h"} & set(words):
        return
    gc.disable()  # nothing lives long enough to be worth collecting, and looking for it takes a tenth of the time
    parts = [part for word in words for part in word.split("=", 1)]
    options = dict(pairwise(parts))
    event, host = words[0], options.get("--host", "claude")
    if event == "helper":
        from bethink.hooks import helper

        gc.enable()
        helper.serve(answer_inside)
        os._exit(0)
    limit = limit or Limit(event, host)
    try:
        if "--database" in options:
            os.environ["BETHINK_DATABASE"] = options["--database"]
        answer = run(event, host, read_message() if message is None else message, limit)
        client.write_stdout(f"{answer}\n".encode("utf-8", "replace") if answer else b"")
    except BaseException as error:  # noqa: BLE001 - nothing may reach the host but an answer
        if not isinstance(error, OSError):
            count_failure(event, host, f"{type(error).__name__}: {error}")
    # Without the interpreter's own end, which takes longer than a hook that says nothing, and would flush into a closed pipe.
    os._exit(0)


def read_message() -> bytes:
    """Return the agent's message; nothing if a person typed the command."""
    try:
        if sys.stdin is None or sys.stdin.isatty():
            return b""
        return sys.stdin.buffer.read(LONGEST_INPUT + 1)
    except (OSError, ValueError):
        return b""


# The hook


def run(event: str, host: str, data: bytes, limit: Limit | None = None) -> str:
    """Return the text to print. The settings limit the seconds of a hook that is a separate process."""
    if is_switched_off():
        return ""
    try:
        if state.find_dialect(host).is_borrowed(os.environ):
            return ""
        hook = state.read(event, host, data)
        project, config = _find_settings(hook)
        if limit:
            limit.seconds = config.hook_seconds
        if hook.event == "tool-before":
            return _deny(hook, project, config, closing=limit is None)
        if hook.event in _NOTED:
            return _note(hook, project, config)
        if limit and _may_ask_helper(hook, project, config):
            from bethink.hooks import helper  # sockets are nothing that every hook needs

            reply = helper.ask(event, host, data, client.HELPER_SHARE * config.hook_seconds)
            if reply is not None:
                return reply
        return _build_reply(hook, project, config, closing=limit is None)
    except Exception as error:  # noqa: BLE001 - the outermost boundary: an agent must never notice what is wrong with its memory
        count_failure(event, host, f"{type(error).__name__}: {error}")
        return ""


def is_switched_off() -> bool:
    """Return True if BETHINK_HOOKS=off, which Bethink sets when it asks an agent itself."""
    return os.environ.get(client.OFF) == "off"


def count_failure(event: str, host: str, message: str) -> None:
    with suppress(Exception):  # nothing is left to tell it to
        state.note_failure(host, event, message)


def find_project(hook: Hook, began: str = "") -> Project:
    """Return the project of a session.

    Outside git, a folder inside the folder where the session began belongs to the same project. The host names that folder, or `began` does.
    """
    found = projects.find(Path(hook.directory) if hook.directory else None)
    if (found.worktree / ".git").exists() or (found.root / ".bethink").is_dir():
        return found
    variables = state.find_dialect(hook.host).project_variables
    for home in filter(None, (*map(os.environ.get, variables), began)):
        project = projects.find(Path(home))
        if found.root.is_relative_to(project.root):
            return project
    return found


def _deny(hook: Hook, project: Project, config: Config, closing: bool) -> str:
    """Deny a call that an enforced rule forbids. A pause of memory does not lift a rule."""
    from bethink.hooks import enforce

    matches = enforce.find_matches(hook, project)
    if not matches or not _exists(config):
        return ""
    with _open(hook, project, config, closing) as memory:
        return enforce.render_denial(hook, matches, memory)


def _note(hook: Hook, project: Project, config: Config) -> str:
    """Note that a transcript grew, and wake the worker that reads it."""
    spool.note(hook, config.database, project)
    spool.wake(config.database, config)
    if hook.event != "pre-compact" or projects.is_paused(hook.directory, project.scope):
        return ""
    return state.render_answer(hook, KEEP)


def _exists(config: Config) -> bool:
    return "://" in config.database or Path(config.database).exists()


def _find_settings(hook: Hook) -> tuple[Project, Config]:
    project = find_project(hook)
    config = configuration.load(project.root)
    return project, config._replace(database=locate_database(config, project))


def _may_ask_helper(hook: Hook, project: Project, config: Config) -> bool:
    return (
        hook.event == "prompt"
        and _uses_helper(config)
        and not is_phrase(hook.prompt)
        and not projects.is_paused(hook.directory, project.scope)
        and _is_wanted(hook, config, project)
    )


def _uses_helper(config: Config) -> bool:
    """Return True if models may be needed and the settings allow a helper."""
    from bethink.embed import compares_statements  # not for a hook that only notes

    return _exists(config) and config.hook_helper and compares_statements(config)


def _build_reply(
    hook: Hook, project: Project, config: Config, closing: bool, inside: bool = False
) -> str:
    """Return the context for a session, even if other work fails. `inside` the helper, memories stay open."""
    exists = _exists(config)
    if hook.event == "prompt" and hook.source in state.PERSON_SOURCES:
        note_turn(hook, project, config.database)
        # A prompt from a transcript comes again at each call of the model.
        if exists and is_phrase(hook.prompt) and not state.is_ephemeral(hook):
            with _open(hook, project, config, closing) as memory:
                return grant_request(hook, memory)
    if projects.is_paused(hook.directory, project.scope):
        return ""
    text = ""
    if exists and _is_wanted(hook, config, project):
        if inside:
            text = _answer_warm(hook, project, config)
        else:
            with _open(hook, project, config, closing) as memory:
                text = answer(hook, memory)
    if hook.event == "session-start":  # what a session that was killed left behind is read
        if not closing and not inside and _uses_helper(config):
            from bethink.hooks import helper

            helper.warm_up()
        state.remove_old_deliveries()
        spool.note_shared(project, config.database)
        with _counting(hook):
            spool.wake(config.database, config)
    return text


# Inside the helper


def answer_inside(event: str, host: str, data: bytes) -> str | None:
    """Return the answer to an event, or None for what only the hook itself may do."""
    try:
        if state.find_dialect(host).is_borrowed(os.environ):
            return ""
        hook = state.read(event, host, data)
        if hook.event not in client.SERVED or not hook.directory or is_phrase(hook.prompt):
            return None
        project, config = _find_settings(hook)
        if not _uses_helper(config):
            return None
        return _build_reply(hook, project, config, closing=False, inside=True)
    except Exception as error:  # noqa: BLE001 - the outermost boundary of a request: the helper goes on
        count_failure(event, host, f"{type(error).__name__}: {error}")
        return ""


_opened: dict[tuple[str, str, str], Bethink] = {}  # the last few memories


def _answer_warm(hook: Hook, project: Project, config: Config) -> str:
    """Return the answer of a memory that stays open, with its models."""
    key = (str(project.worktree), repr(config), _identify_file(config.database))
    memory = _opened.pop(key, None) or _open_memory(hook, project, config)
    for other in [one for one in _opened if one[:2] == key[:2]]:  # of a file that was replaced
        _opened.pop(other).close()
    _opened[key] = memory
    while len(_opened) > MOST_OPENED:
        _opened.pop(next(iter(_opened))).close()
    try:
        return answer(hook, memory)
    except Exception:
        _opened.pop(key).close()
        raise


def _identify_file(database: str) -> str:
    """Name the file behind a database: one that was removed or replaced must not be answered from."""
    with suppress(OSError, ValueError):
        found = Path(database).stat()
        return f"{found.st_dev}:{found.st_ino}"
    return ""


def _open_memory(hook: Hook, project: Project, config: Config) -> Bethink:
    from bethink.api import Bethink

    quick = config._replace(busy_timeout=min(_BUSY, config.busy_timeout))
    return Bethink(directory=project.worktree, config=quick, actor=f"hook:{hook.host}")


@contextmanager
def _open(hook: Hook, project: Project, config: Config, closing: bool) -> Iterator[Bethink]:
    """The memory of a project, for a hook that does not wait long for a lock."""
    memory = _open_memory(hook, project, config)
    yield memory
    if closing:  # a separate process ends without: closing might first move other processes' writes into the database file
        memory.close()


def is_phrase(prompt: str) -> bool:
    """Return True for a phrase that grants an agent's request, such as `bethink forget K7QX`."""
    if len(prompt) > _LONGEST_PHRASE or "bethink" not in prompt.lower():
        return False
    from bethink.consent import read_phrase

    return read_phrase(prompt) is not None


def grant_request(hook: Hook, memory: Bethink) -> str:
    """Grant the request whose phrase the user sent, and return the outcome for the agent."""
    from bethink import caller
    from bethink.consent import read_phrase
    from bethink.features import inbox

    phrase = read_phrase(hook.prompt)
    if phrase is None:
        return ""
    if caller.is_hook_forged():
        refused = "This confirmation came from a command, not from a message of the user: nothing was changed."
        return state.render_answer(hook, refused)
    memory.actor, memory.trust, memory.everywhere = "user", TRUST["user"], True
    done = inbox.grant(memory, phrase)
    if not done.ids:
        unknown = f"No open request has the code {phrase.code}, or it has expired: nothing was changed. Ask for it again if it is still wanted."
        return state.render_answer(hook, unknown)
    word = "purged for good" if phrase.action == "purge" else "forgotten"
    text = f"The user confirmed it: {word} are {', '.join(done.ids)}."
    return state.render_answer(hook, " ".join([text, *done.hints]))


def note_turn(hook: Hook, project: Project, database: str) -> None:
    """Note the turn that a prompt begins. If the agent is killed in it, a later hook has it read."""
    if hook.transcript or not state.find_dialect(hook.host).names_transcript:
        with _counting(hook):
            spool.note(hook, database, project)


@contextmanager
def _counting(hook: Hook) -> Iterator[None]:
    """Count failures that do not concern the answer."""
    try:
        yield
    except (OSError, BethinkError) as error:
        count_failure(hook.event, hook.host, str(error))


def _is_wanted(hook: Hook, config: Config, project: Project) -> bool:
    if hook.event == "session-start":
        return config.briefing_tokens > 0
    if hook.event.startswith("tool"):
        from bethink.hooks.tool import is_wanted

        return is_wanted(hook, config, project)
    if hook.event == "subagent-start":
        return config.briefing_tokens > 0
    if state.is_ephemeral(hook) and config.briefing_tokens > 0:
        return True
    return config.prompt_tokens > 0 and config.prompt_bar < 1 and is_telling(hook.prompt)


def is_telling(prompt: str) -> bool:
    """Return True unless a prompt has only common words, such as "yes, do it again". Opens nothing.

    "What is left?" has only common words, too, but asks for the last session.
    """
    from bethink.language.words import COMMON_WORDS, STOP_WORDS

    words = re.findall(r"[^\W_]{1,60}", prompt[:_LONG].lower())
    if len(prompt) > _LONG or not (STOP_WORDS | COMMON_WORDS).issuperset(words):
        return True
    from bethink.recall.resume import asks_to_resume

    return asks_to_resume(prompt)


def answer(hook: Hook, memory: Bethink, meaning: bool = True) -> str:
    """Return the answer to a hook in the agent's dialect, and record what it shows."""
    if hook.event == "session-start":
        from bethink.hooks.briefing import render_briefing

        context = render_briefing(hook, memory)
        if hook.source in EMPTIED:
            state.forget_deliveries(hook)
        elif _has_briefing(hook, context.digest, memory.project.scope):
            return ""
    elif hook.event == "subagent-start":
        from bethink.hooks.briefing import render_briefing

        room = min(SUBAGENT_TOKENS, memory.config.briefing_tokens)
        # The sub-agent gets it, not the session, so it is not recorded as shown.
        text = render_briefing(hook, memory, room).text
        return state.render_answer(hook, text) if text and state.claim_event(hook) else ""
    elif hook.event.startswith("tool"):
        from bethink.hooks.tool import recall_for_calls

        context = recall_for_calls(hook, memory)
    elif state.is_ephemeral(hook):
        context = _render_call(hook, memory, meaning)
    else:
        from bethink.hooks.prompt import recall_for_prompt

        context = recall_for_prompt(hook, memory, meaning)
    output = state.render_answer(hook, context.text)
    if output and not state.claim_event(hook):
        return ""
    if output:
        state.note_delivery(hook, context.ids, context.digest, memory.project.scope)
    return output


def _render_call(hook: Hook, memory: Bethink, meaning: bool) -> Context:
    """Return the context of one call of the model: the briefing, and the recall for the prompt."""
    from bethink.hooks.briefing import render_briefing
    from bethink.hooks.prompt import Context, recall_for_prompt

    briefing, recalled = render_briefing(hook, memory), Context()
    if is_telling(hook.prompt):
        recalled = recall_for_prompt(hook, memory, meaning, known=briefing.ids)
    texts = [text for text in (briefing.text, recalled.text) if text]
    return Context(join(texts), briefing.ids + recalled.ids, briefing.digest)


def _has_briefing(hook: Hook, briefing: str, scope: str) -> bool:
    """Return True if a session already has its briefing: after a resume with the same one, or in a fork.

    A fork begins with a copy of a session and its briefing, unless no session of the project ever had one. The host does not name that
    session, and has not written the copy yet.
    """
    if hook.source == "fork":
        return state.is_briefed(scope)
    known = bool(briefing) and briefing == state.read_deliveries(hook).briefing
    return hook.source == "resume" and known
