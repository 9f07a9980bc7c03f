"""Amp: a thread is one JSON object with `messages`, whose content has the blocks of Claude Code.

Identity is the thread and the number of the message. A message that is still being written is left for the next reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from bethink.agents.base import NO_SPEECH, Fields, Taken, make_id, name_unknown, texts_of
from bethink.agents.transcript import JsonTranscript


class AmpTranscript(JsonTranscript):
    host = "amp"

    def take_head(self, document: Fields) -> None:
        trees = document.object("env").object("initial").objects("trees")
        place = trees[0] if trees else Fields()
        folder = unquote(urlsplit(place.text("uri")).path)
        self.locate(folder, place.object("repository").get("ref"), document.get("id"))
        self.set_title(document.get("title"))
        self.began = document.time("created")

    def take(self, message: Fields) -> Iterable[Taken]:
        role, content = message.text("role"), message.objects("content")
        if role not in ("user", "assistant"):
            return [name_unknown(role)]
        if message.object("state").get("type") in ("running", "streaming"):
            return ["half-written last line"]
        for item in content:
            if item.get("type") == "tool_use":
                self.add_call(item.get("name"), item.get("input"), item.get("id"))
            elif item.get("type") == "tool_result":
                self.take_result(item)
        text = "\n\n".join(texts_of(message.get("content")))
        at = message.object("meta").time("sentAt") or message.time() or self.began
        id = make_id(self.session, message.get("messageId", self.number), role)
        taken = self.make_turn(id, role, text, at) if text.strip() else NO_SPEECH
        if message.object("state").get("type") == "cancelled":
            self.mark("interrupted")
        return [taken]

    def take_result(self, item: Fields) -> None:
        run = item.object("run")
        result = run.object("result")
        output = (
            result.text("output") or run.text("result") or "\n".join(texts_of(item.get("content")))
        )
        code = result.get("exitCode")
        failed = run.get("status") == "error" or code not in (0, None)
        if run.get("status") in ("rejected-by-user", "cancelled"):
            self.decline(item.get("toolUseID"))
        self.add_result(item.get("toolUseID") or item.get("tool_use_id"), output, failed)
