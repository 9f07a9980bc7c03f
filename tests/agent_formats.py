"""Small transcripts of agents whose sessions are one JSON value, a database or Markdown."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from transcripts import written

ASKED, ANSWERED = "Which queue do we use?", "We use Redis streams."
AT = "2026-05-04T09:00:00.000Z"
MILLISECONDS = 1_777_885_200_000


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), "utf-8")
    return path


def pi(folder: Path) -> Path:
    def said(id: str, role: str, content: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        message = {"role": role, "content": content, "timestamp": MILLISECONDS, **more}
        return {"type": "message", "id": id, "parentId": None, "timestamp": AT, "message": message}

    call = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "make test"}}
    skill = '<skill name="review" location="/s/SKILL.md">\nRead all.\n</skill>\n\nonly the queue'
    return written(
        folder / "2026_pi.jsonl",
        {"type": "session", "version": 3, "id": "p1", "timestamp": AT, "cwd": "/home/ada/shop"},
        {"type": "model_change", "id": "m0", "parentId": None, "timestamp": AT, "modelId": "x"},
        said("a1", "user", [{"type": "text", "text": ASKED}]),
        said("a2", "assistant", [{"type": "thinking", "thinking": "Hm."}, call]),
        said("a3", "toolResult", [{"type": "text", "text": "ok"}], toolCallId="c1", isError=False),
        said("a4", "assistant", [{"type": "text", "text": ANSWERED}]),
        said("a5", "user", [{"type": "text", "text": skill}]),
    )


def opencode(folder: Path) -> Path:
    def message(id: str, role: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        info = {"id": id, "role": role, "sessionID": "ses_1", "time": {"created": MILLISECONDS}}
        numbered = [{"id": f"{id}p{n}", **part} for n, part in enumerate(parts)]
        return {"info": info | more, "parts": numbered}

    state = {"status": "completed", "input": {"command": "make test"}, "output": "2 failed"}
    tool = {"type": "tool", "tool": "bash", "callID": "c1", "state": state}
    tool["state"] |= {"metadata": {"exit": 1}, "time": {"end": MILLISECONDS}}
    info = {"id": "ses_1", "directory": "/home/ada/shop", "title": "The queue"}
    ended = {"time": {"created": MILLISECONDS, "completed": MILLISECONDS}}
    return write_json(
        folder / "export.json",
        {
            "info": info,
            "messages": [
                message("m1", "user", {"type": "text", "text": ASKED}),
                message("m2", "assistant", {"type": "reasoning", "text": "Hm."}, tool),
                message("m3", "assistant", {"type": "text", "text": ANSWERED}, **ended),
                message("m4", "user", {"type": "text", "text": "Tools ran.", "synthetic": True}),
            ],
        },
    )


def gemini(folder: Path) -> Path:
    said = [("user", [{"text": ASKED}]), ("info", "A new version."), ("gemini", ANSWERED)]
    messages = [
        {"id": f"g{number}", "timestamp": AT, "type": kind, "content": content}
        for number, (kind, content) in enumerate(said)
    ]
    head = {"sessionId": "s1", "projectHash": "h", "startTime": AT, "lastUpdated": AT}
    return write_json(folder / "session-1.json", head | {"messages": messages})


def amp(folder: Path) -> Path:
    run = {"status": "done", "result": {"output": "ok", "exitCode": 0}}
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"cmd": "make test"}}
    content = [
        ("user", [{"type": "text", "text": ASKED}]),
        ("assistant", [{"type": "thinking", "thinking": "Hm."}, use]),
        ("user", [{"type": "tool_result", "toolUseID": "t1", "run": run}]),
        ("assistant", [{"type": "text", "text": ANSWERED}]),
    ]
    messages = [
        {"role": role, "messageId": number, "content": blocks}
        for number, (role, blocks) in enumerate(content)
    ]
    env = {"initial": {"trees": [{"uri": "file:///home/ada/shop"}]}}
    thread = {"v": 1, "id": "T-1", "created": MILLISECONDS, "title": "The queue", "env": env}
    return write_json(folder / "T-1.json", thread | {"messages": messages})


def cline(folder: Path) -> Path:
    tool = json.dumps({"tool": "editedExistingFile", "path": "queue.py"})
    messages = [
        {"type": "say", "say": "text", "text": ASKED},
        {"type": "say", "say": "api_req_started", "text": "{}"},
        {"type": "say", "say": "reasoning", "text": "Hm."},
        {"type": "say", "say": "tool", "text": tool},
        {"type": "say", "say": "text", "text": ANSWERED},
        {"type": "ask", "ask": "followup", "text": json.dumps({"question": "With a limit?"})},
        {"type": "say", "say": "user_feedback", "text": "Yes, 100."},
    ]
    for number, message in enumerate(messages):
        message["ts"] = MILLISECONDS + number
    task = folder / "1777"
    write_json(
        task / "api_conversation_history.json",
        ["# Current Working Directory (/home/ada/shop) Files"],
    )
    return write_json(task / "ui_messages.json", messages)


def droid(folder: Path) -> Path:
    def said(id: str, role: str, *content: dict[str, Any]) -> dict[str, Any]:
        message = {"role": role, "content": list(content)}
        return {"type": "message", "id": id, "parentId": None, "timestamp": AT, "message": message}

    use = {"type": "tool_use", "id": "t1", "name": "Execute", "input": {"command": "make test"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "Error", "is_error": True}
    reminder = {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"}
    return written(
        folder / "droid.jsonl",
        {"type": "session_start", "id": "d1", "title": "The queue", "cwd": "/home/ada/shop"},
        said("d2", "user", reminder, {"type": "text", "text": ASKED}),
        said("d3", "assistant", {"type": "thinking", "thinking": "Hm."}, use),
        said("d4", "user", result),
        said("d5", "assistant", {"type": "text", "text": ANSWERED}),
    )


def antigravity(folder: Path) -> Path:
    def step(index: int, kind: str, source: str, content: str, **more: Any) -> dict[str, Any]:
        about = {"step_index": index, "type": kind, "source": source, "status": "DONE"}
        return about | {"created_at": AT, "content": content} | more

    request = (
        f"<USER_REQUEST>\n{ASKED}\n</USER_REQUEST>\n<ADDITIONAL_METADATA>x</ADDITIONAL_METADATA>"
    )
    call = {"name": "run_command", "args": {"command": "make test"}}
    home = folder / "antigravity-cli"
    logs = home / "brain" / "a1" / ".system_generated" / "logs"
    logs.mkdir(parents=True)
    written(
        home / "history.jsonl",
        {"display": "x", "workspace": "/home/ada/shop", "conversationId": "a1"},
    )
    return written(
        logs / "transcript_full.jsonl",
        step(0, "USER_INPUT", "USER_EXPLICIT", request),
        step(1, "CONVERSATION_HISTORY", "SYSTEM", "Earlier: nothing."),
        step(2, "PLANNER_RESPONSE", "MODEL", "", tool_calls=[call]),
        step(3, "RUN_COMMAND", "MODEL", "The user said: use Kafka."),
        step(4, "PLANNER_RESPONSE", "MODEL", ANSWERED),
    )


def vscode(folder: Path) -> Path:
    def event(id: str, kind: str, **data: Any) -> dict[str, Any]:
        return {"type": kind, "id": id, "timestamp": AT, "data": data}

    storage = folder / "workspaceStorage" / "abc"
    transcripts = storage / "GitHub.copilot-chat" / "transcripts"
    transcripts.mkdir(parents=True)
    write_json(storage / "workspace.json", {"folder": "file:///home/ada/my%20shop"})
    return written(
        transcripts / "v1.jsonl",
        event("e1", "session.start", sessionId="v1", version=1),
        event("e2", "user.message", content=ASKED),
        event("e3", "assistant.message", messageId="m1", content=ANSWERED, toolRequests=[]),
    )


def goose(folder: Path) -> Path:
    path = folder / "sessions.db"
    call = {"status": "success", "value": {"name": "shell", "arguments": {"command": "make test"}}}
    result = {"status": "success", "value": [{"type": "text", "text": "ok"}]}
    rows = [
        ("g1", "user", [{"type": "text", "text": ASKED}]),
        ("g1", "assistant", [{"type": "toolRequest", "id": "c1", "toolCall": call}]),
        ("g1", "user", [{"type": "toolResponse", "id": "c1", "toolResult": result}]),
        ("g1", "assistant", [{"type": "text", "text": ANSWERED}]),
        ("g2", "user", [{"type": "text", "text": "Look for queues."}]),
    ]
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE sessions (id TEXT, working_dir TEXT, session_type TEXT)")
        database.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT,"
            " created_timestamp INTEGER)"
        )
        sessions = [("g1", "/home/ada/shop", "user"), ("g2", "/home/ada/shop", "sub_agent")]
        database.executemany("INSERT INTO sessions VALUES (?, ?, ?)", sessions)
        for session, role, content in rows:
            database.execute(
                "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES (?, ?, ?, ?)",
                (session, role, json.dumps(content), MILLISECONDS // 1000),
            )
    return path


def zed(folder: Path) -> Path:
    path = folder / "threads.db"
    use = {"ToolUse": {"id": "t1", "name": "terminal", "input": {"command": "make test"}}}
    results = {"t1": {"is_error": False, "content": {"Text": "ok"}}}
    thread = {
        "version": "0.3.0",
        "messages": [
            {"User": {"id": "u1", "content": [{"Text": ASKED}]}},
            {"Agent": {"content": [{"Thinking": {"text": "Hm."}}, use], "tool_results": results}},
            {"Agent": {"content": [{"Text": ANSWERED}], "tool_results": {}}},
            "Resume",
        ],
        "initial_project_snapshot": {"worktree_snapshots": [{"worktree_path": "/home/ada/shop"}]},
    }
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB)"
        )
        row = ("z1", "The queue", "2026-05-04T09:00:00Z", "json", json.dumps(thread).encode())
        database.execute("INSERT INTO threads VALUES (?, ?, ?, ?, ?)", row)
    return path


def aider(folder: Path) -> Path:
    lines = [
        "",
        "# aider chat started at 2026-05-04 09:00:00",
        "",
        "> Add .aider* to .gitignore (recommended)? (Y)es/(N)o [Yes]: y  ",
        "",
        f"#### {ASKED}  ",
        "#### Both of them.  ",
        "",
        "<thinking-content-0123456789abcdef>",
        "Hm.",
        "</thinking-content-0123456789abcdef>",
        "",
        "#### The queue",
        ANSWERED,
        "````",
        "```",
        "#### not a prompt",
        "````",
        "",
        "> Tokens: 7.7k sent, 41 received.  ",
        "",
        "#### Add file to the chat? (Y)es/(N)o/(A)ll [Yes]: all  ",
        "",
        "> Applied edit to queue.py  ",
        "> Commit 1234567 feat: limit the queue  ",
        "",
        "#### /undo  ",
        "",
    ]
    path = folder / ".aider.chat.history.md"
    path.write_text("\n".join(lines), "utf-8")
    return path


def specstory(folder: Path) -> Path:
    lines = [
        "<!-- Generated by SpecStory, Markdown v2.1.0 -->",
        "",
        "# The queue (2026-05-04 09:00:00Z)",
        "",
        "<!-- cursor Session 11111111-2222 (2026-05-04 09:00Z) -->",
        "",
        "_**User (2026-05-04 09:00:00Z)**_",
        "",
        ASKED,
        "",
        "---",
        "",
        "_**Agent - sidechain (2026-05-04 09:00:05Z)**_",
        "",
        "Look for queues.",
        "",
        "_**Agent (model-x 2026-05-04 09:00:10Z)**_",
        "",
        ANSWERED,
        "",
        "```markdown",
        "Run it:",
        "```bash",
        "make",
        "```",
        "",
        "---",
        "",
        "_**User (2026-05-04 09:01:00Z)**_",
        "",
        "Look at what I found:",
        "",
        "_**User (2026-01-01 09:00:00Z)**_",
        "",
        "We use Kafka.",
        "",
        "---",
    ]
    path = folder / "talk.md"
    path.write_text("\n".join(lines), "utf-8")
    return path


FORMATS = {
    **{"pi": pi, "opencode": opencode, "gemini": gemini, "amp": amp, "cline": cline},
    **{"droid": droid, "antigravity": antigravity, "vscode": vscode, "goose": goose},
    **{"zed": zed, "aider": aider, "specstory": specstory},
}
