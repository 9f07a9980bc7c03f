"""Base of language models behind an agent's own program.

A provider sends once; `Model` redacts and checks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, NamedTuple

from bethink import post
from bethink.llm.base import ModelError, ModelRequest, RawAnswer, end_process

LARGEST_OUTPUT = 2 << 20
# Some programs read every file that a question names as @path. Recorded text is full of such names.
MENTION, HARMLESS = "@", "\uff20"
SIGNED_OUT = (
    "log in",
    "login",
    "logged in",
    "sign in",
    "authenticat",
    "auth method",
    "api key",
    "api_key",
    "unauthorized",
    "401",
)


class Printed(NamedTuple):
    """Exit code and output of a program."""

    code: int
    output: str
    complaint: str


class ProgramModel:
    """An agent's program, headless, with the user's own plan.

    It runs in an empty folder with BETHINK_HOOKS=off, so that no hook of ours answers it or has it read. The question goes in on
    standard input, where other users of the machine cannot see it. Its whole process group is ended with it, in time or not.
    """

    PROGRAM = TITLE = LOGIN = ""
    remote = True

    def __init__(self, model: str, timeout: float) -> None:
        self._model, self._timeout = model, timeout
        self.name = f"{self.PROGRAM} {model}".strip()

    @property
    def by_hand(self) -> str:
        return f"`{self.LOGIN}` signs in."

    def send(self, ask: ModelRequest) -> RawAnswer:
        program = shutil.which(self.PROGRAM)
        if program is None:
            raise ModelError(
                f"The program `{self.PROGRAM}` is not on the path.",
                f"Install {self.TITLE}, or choose another: `bethink config reader off`.",
                "missing",
            )
        try:
            with TemporaryDirectory(prefix="bethink-reader-", ignore_cleanup_errors=True) as empty:
                command = [program, *self._make_arguments(ask, Path(empty))]
                printed = self._run(command, self._write_question(ask), empty)
        except OSError as error:
            raise ModelError(
                f"The program {program} cannot be run: {error}.", self.by_hand, "missing"
            ) from None
        return self._read(printed)

    def _write_question(self, ask: ModelRequest) -> str:
        return f"{ask.instruction}\n\n{ask.text}".replace(MENTION, HARMLESS)

    def _make_arguments(self, ask: ModelRequest, folder: Path) -> Sequence[str]:
        raise NotImplementedError

    def _read(self, printed: Printed) -> RawAnswer:
        raise NotImplementedError

    def _run(self, command: Sequence[str], question: str, folder: str) -> Printed:
        # Files and no pipes: a process that it leaves behind would hold these open.
        with (
            TemporaryFile() as question_file,
            TemporaryFile() as output,
            TemporaryFile() as complaint,
        ):
            question_file.write(question.encode("utf-8", "replace"))
            question_file.seek(0)
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, "BETHINK_HOOKS": "off"},
                stdin=question_file,
                stdout=output,
                stderr=complaint,
                start_new_session=True,
            )
            try:
                code = process.wait(self._timeout)
            except subprocess.TimeoutExpired:
                raise ModelError(
                    f"`{self.PROGRAM}` did not answer within {self._timeout:g} seconds.",
                    f"Raise the setting `model_timeout`. {self.by_hand}",
                    "unreachable",
                ) from None
            finally:
                end_process(process)
            return Printed(code, read_beginning(output), read_beginning(complaint))

    def _fail(self, printed: Printed, message: str = "") -> ModelError:
        """Return the error of a program that gave no answer."""
        shown = post.shorten(message or printed.complaint or printed.output) or "it said nothing"
        signed_out = is_signed_out(shown)
        return ModelError(
            f"`{self.PROGRAM}` ended with code {printed.code} and without an answer: {shown}.",
            self.by_hand if signed_out else f"Try `{self.PROGRAM}` by hand. {self.by_hand}",
            "key" if signed_out else "refused" if printed.code else "garbage",
        )


def is_signed_out(complaint: str) -> bool:
    """Return True if a program says that nobody is signed in: it did no work, and costs no tokens."""
    return any(word in complaint.lower() for word in SIGNED_OUT)


def read_beginning(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(LARGEST_OUTPUT).decode("utf-8", "replace")
