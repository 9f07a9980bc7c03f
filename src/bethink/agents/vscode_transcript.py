"""Copilot Chat in VS Code: the events of Copilot CLI, one JSON object per line.

The name of the file is the session. The folder of the project is in `workspace.json` beside the folder of the extension.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from bethink.agents.base import read_object
from bethink.agents.copilot_transcript import CopilotTranscript
from bethink.model import Values


class VscodeTranscript(CopilotTranscript):
    host = "vscode"

    def begin(self, state: Values) -> None:
        super().begin(state)
        self.session = self.session or self.path.stem
        if not self.project:
            self.locate(self.find_project())

    def find_project(self) -> str | None:
        """Return the folder that the workspace of the transcript opened."""
        for folder in self.path.parents[:4]:
            try:
                about = read_object((folder / "workspace.json").read_bytes())
            except (OSError, ValueError):
                continue
            return unquote(urlsplit(about.text("folder")).path) or None if about else None
        return None
