"""Commands by name: group, module and help. Written by docs/generate.py; run `make docs`."""

COMMANDS = {
    "add": (
        "Everyday",
        "operations.write",
        "Remember a statement",
    ),
    "update": (
        "Everyday",
        "operations.write",
        "Change a memory",
    ),
    "done": (
        "Everyday",
        "operations.write",
        "Close to-dos, questions and problems",
    ),
    "restore": (
        "Everyday",
        "operations.write",
        "Restore a forgotten or replaced memory, or an earlier version",
    ),
    "vote": (
        "Everyday",
        "operations.write",
        "Rate a memory as useful or misleading",
    ),
    "link": (
        "Everyday",
        "operations.write",
        "Relate two memories",
    ),
    "forget": (
        "Everyday",
        "cli.write",
        "Hide memories, or with --purge remove every trace of them",
    ),
    "undo": (
        "Everyday",
        "cli.write",
        "Undo your last change",
    ),
    "search": (
        "Everyday",
        "operations.find",
        "Find memories, best first",
    ),
    "recall": (
        "Everyday",
        "operations.find",
        "Answer a question from memory: the best matches in full, the rest as an index",
    ),
    "why": (
        "Everyday",
        "operations.find",
        "Explain a decision: the statement, its reason, what it replaced and where it was said",
    ),
    "today": (
        "Everyday",
        "operations.find",
        "List what was said, decided and done today or at another time",
    ),
    "get": (
        "Everyday",
        "operations.find",
        "Show memories by id, in full",
    ),
    "list": (
        "Everyday",
        "operations.find",
        "List memories by time, importance or use",
    ),
    "todo": (
        "Everyday",
        "operations.find",
        "List open to-dos, questions and problems",
    ),
    "history": (
        "Everyday",
        "operations.find",
        "Show every version of a memory: when, by whom and what changed",
    ),
    "edit": (
        "Everyday",
        "cli.edit",
        "Change the text of a memory, in your editor or as given",
    ),
    "open": (
        "Everyday",
        "cli.edit",
        "Open the source of a memory at its line",
    ),
    "handoff": (
        "Everyday",
        "cli.handoff",
        "Leave a handoff for the next session, or read the last one",
    ),
    "index": (
        "Import and index",
        "cli.knowledge",
        "Sync the knowledge folders and the documentation with memory",
    ),
    "map": (
        "Import and index",
        "cli.knowledge",
        "Map the source code, so that a search finds symbols and places",
    ),
    "analyze": (
        "Import and index",
        "cli.knowledge",
        "Find commands, routes and decisions in a project or its history",
    ),
    "backfill": (
        "Import and index",
        "cli.knowledge",
        "Read earlier conversations from the agents' transcripts",
    ),
    "init": (
        "Import and index",
        "cli.knowledge",
        "Set a project up in one step",
    ),
    "import": (
        "Import and index",
        "cli.transfer",
        "Import an export, another program's memories, JSON, CSV, Markdown or a repo map",
    ),
    "promote": (
        "Import and index",
        "cli.rules",
        "Write a proven memory into the rules that agents always read",
    ),
    "demote": (
        "Import and index",
        "cli.rules",
        "Remove a memory from the rules",
    ),
    "share": (
        "Import and index",
        "cli.share",
        "Share memories with colleagues through git",
    ),
    "export": (
        "Browse",
        "cli.transfer",
        "Write memories to a file or to stdout, all or a part",
    ),
    "sessions": (
        "Browse",
        "operations.overview",
        "Show what conversations asked, did and left open",
    ),
    "topics": (
        "Browse",
        "operations.overview",
        "Show what conversations were about",
    ),
    "failures": (
        "Browse",
        "operations.overview",
        "List failed commands and what fixed them",
    ),
    "stats": (
        "Browse",
        "operations.overview",
        "Count what is stored: memories by kind and project, vectors, entities, bytes",
    ),
    "duplicates": (
        "Browse",
        "cli.tend",
        "List memories that say the same",
    ),
    "contradictions": (
        "Browse",
        "cli.tend",
        "List memories that contradict each other",
    ),
    "audit": (
        "Browse",
        "cli.tend",
        "Show who changed what in a team's database",
    ),
    "demo": (
        "Browse",
        "cli.story",
        "Show the product on a temporary database",
    ),
    "ui": (
        "Browse",
        "cli.serve",
        "Open the web page: search, browse, decide",
    ),
    "mcp": (
        "Serve",
        "cli.agents",
        "Run the MCP server on stdin and stdout",
    ),
    "serve": (
        "Serve",
        "cli.serve",
        "Serve the web page, MCP and a REST API over HTTP",
    ),
    "token": (
        "Serve",
        "cli.serve",
        "Create, list and revoke tokens for the server",
    ),
    "hook": (
        "Serve",
        "cli.settings",
        "Answer an agent's hook",
    ),
    "enforce": (
        "Agents",
        "cli.rules",
        "Deny tool calls that break a rule of yours",
    ),
    "install": (
        "Agents",
        "cli.connect",
        "Connect agents: MCP server, hooks and skills",
    ),
    "uninstall": (
        "Agents",
        "cli.connect",
        "Disconnect agents and restore their files",
    ),
    "join": (
        "Agents",
        "cli.connect",
        "Choose the project of this folder: a team's, or one from elsewhere",
    ),
    "migrate": (
        "Maintenance",
        "cli.transfer",
        "Move everything into another database, SQLite or PostgreSQL",
    ),
    "sync": (
        "Maintenance",
        "cli.transfer",
        "Exchange a project's memories with a team's database or server",
    ),
    "reindex": (
        "Maintenance",
        "cli.tend",
        "Embed memories that have no vector of the current model",
    ),
    "backup": (
        "Maintenance",
        "cli.tend",
        "Copy the database into one file",
    ),
    "reset": (
        "Maintenance",
        "cli.tend",
        "Delete all memories of a scope for good",
    ),
    "consolidate": (
        "Maintenance",
        "cli.tend",
        "Merge, mark and retire memories that are no longer needed",
    ),
    "bench": (
        "Maintenance",
        "cli.tend",
        "Measure quality and speed on labelled sets",
    ),
    "completion": (
        "Maintenance",
        "cli.shell",
        "Print completions for a shell",
    ),
    "config": (
        "Maintenance",
        "cli.settings",
        "Show or change settings",
    ),
    "model": (
        "Maintenance",
        "cli.settings",
        "List embedding models, or download one",
    ),
    "pause": (
        "Maintenance",
        "cli.settings",
        "Pause memory in this project or everywhere",
    ),
    "resume": (
        "Maintenance",
        "cli.settings",
        "End a pause",
    ),
    "doctor": (
        "Maintenance",
        "cli.connect",
        "Check that everything works, and how to fix what does not",
    ),
}
