"""The Model Context Protocol server: the same memory for agents. `server` speaks the protocol through the official SDK, which is
the package `mcp`; this one is always named in full, `bethink.surface.mcp`.

`schemas` says what the tools and prompts accept, `tools` does what they say, `resources` is what its name tells, `keeper` owns the
memories that calls work on.
"""
