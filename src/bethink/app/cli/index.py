"""Commands by name: group, module and help. Written by docs/generate.py; run `make docs`."""

COMMANDS = {
    "add": (
        "Use",
        "operations.write",
        "Remember a statement",
    ),
    "update": (
        "Use",
        "operations.write",
        "Change a memory",
    ),
    "done": (
        "Use",
        "operations.write",
        "Close to-dos, questions and problems",
    ),
    "restore": (
        "Use",
        "operations.write",
        "Restore a forgotten or replaced memory, or an earlier version",
    ),
    "vote": (
        "Use",
        "operations.write",
        "Rate a memory as useful or misleading",
    ),
    "link": (
        "Use",
        "operations.write",
        "Relate two memories",
    ),
    "forget": (
        "Use",
        "cli.write",
        "Hide memories, or with --purge remove every trace of them",
    ),
    "search": (
        "Use",
        "operations.find",
        "Find memories, best first",
    ),
    "recall": (
        "Use",
        "operations.find",
        "Answer a question from memory: the best matches in full, the rest as an index",
    ),
    "why": (
        "Use",
        "operations.find",
        "Explain a decision: the statement, its reason, what it replaced and where it was said",
    ),
    "today": (
        "Use",
        "operations.find",
        "List what was said, decided and done today or at another time",
    ),
    "get": (
        "Use",
        "operations.find",
        "Show memories by id, in full",
    ),
    "list": (
        "Use",
        "operations.find",
        "List memories by time, importance or use",
    ),
    "todo": (
        "Use",
        "operations.find",
        "List open to-dos, questions and problems",
    ),
    "history": (
        "Use",
        "operations.find",
        "Show every version of a memory: when, by whom and what changed",
    ),
    "edit": (
        "Use",
        "cli.edit",
        "Change the text of a memory in your editor",
    ),
    "open": (
        "Use",
        "cli.edit",
        "Open the source of a memory at its line",
    ),
    "handoff": (
        "Use",
        "cli.handoff",
        "Leave a handoff for the next session, or read the last one",
    ),
    "index": (
        "Take in",
        "cli.knowledge",
        "Sync the knowledge folders and the documentation with memory",
    ),
    "map": (
        "Take in",
        "cli.knowledge",
        "Map the source code, so that a search finds symbols and places",
    ),
    "analyze": (
        "Take in",
        "cli.knowledge",
        "Find commands, routes and decisions in a project or its history",
    ),
    "backfill": (
        "Take in",
        "cli.knowledge",
        "Read earlier conversations from the agents' transcripts",
    ),
    "init": (
        "Take in",
        "cli.knowledge",
        "Set a project up in one step",
    ),
    "import": (
        "Take in",
        "cli.transfer",
        "Import an export, another program's memories, JSON, CSV, Markdown or a repo map",
    ),
    "promote": (
        "Take in",
        "cli.rules",
        "Write a proven memory into the rules that agents always read",
    ),
    "demote": (
        "Take in",
        "cli.rules",
        "Remove a memory from the rules",
    ),
    "export": (
        "Look",
        "cli.transfer",
        "Write memories to a file or to stdout, all or a part",
    ),
    "sessions": (
        "Look",
        "operations.overview",
        "Show what conversations asked, did and left open",
    ),
    "topics": (
        "Look",
        "operations.overview",
        "Show what conversations were about",
    ),
    "failures": (
        "Look",
        "operations.overview",
        "List failed commands and what fixed them",
    ),
    "stats": (
        "Look",
        "operations.overview",
        "Count what is stored: memories by kind and project, vectors, entities, bytes",
    ),
    "duplicates": (
        "Look",
        "cli.tend",
        "List memories that say the same",
    ),
    "contradictions": (
        "Look",
        "cli.tend",
        "List memories that contradict each other",
    ),
    "audit": (
        "Look",
        "cli.tend",
        "Show who changed what in a team's database",
    ),
    "demo": (
        "Look",
        "cli.shell",
        "Show the product on a temporary database",
    ),
    "ui": (
        "Look",
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
    "install": (
        "Connect",
        "cli.connect",
        "Connect agents: MCP server, hooks and skills",
    ),
    "uninstall": (
        "Connect",
        "cli.connect",
        "Disconnect agents and restore their files",
    ),
    "join": (
        "Connect",
        "cli.connect",
        "Choose the project of this folder: a team's, or one from elsewhere",
    ),
    "migrate": (
        "Tend",
        "cli.transfer",
        "Move everything into another database, SQLite or PostgreSQL",
    ),
    "sync": (
        "Tend",
        "cli.transfer",
        "Exchange a project's memories with a team's database or server",
    ),
    "reindex": (
        "Tend",
        "cli.tend",
        "Embed memories that have no vector of the current model",
    ),
    "backup": (
        "Tend",
        "cli.tend",
        "Copy the database into one file",
    ),
    "reset": (
        "Tend",
        "cli.tend",
        "Delete all memories of a scope for good",
    ),
    "consolidate": (
        "Tend",
        "cli.tend",
        "Merge, mark and retire memories that are no longer needed",
    ),
    "bench": (
        "Tend",
        "cli.tend",
        "Measure quality and speed on labelled sets",
    ),
    "completion": (
        "Tend",
        "cli.shell",
        "Print completions for a shell",
    ),
    "config": (
        "Tend",
        "cli.settings",
        "Show or change settings",
    ),
    "model": (
        "Tend",
        "cli.settings",
        "List embedding models, or download one",
    ),
    "pause": (
        "Tend",
        "cli.settings",
        "Pause memory in this project or everywhere",
    ),
    "resume": (
        "Tend",
        "cli.settings",
        "End a pause",
    ),
    "doctor": (
        "Tend",
        "cli.connect",
        "Check that everything works, and how to fix what does not",
    ),
}
