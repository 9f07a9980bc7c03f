"""The HTTP server: web pages, MCP at `/mcp`, REST under `/api/v1`, health.

Always imported by its full name, `bethink.app.http`. `app` assembles and runs it; `security` stores tokens and decides who may call;
`projects` owns the memories; `api` builds routes and their description from `operations`; `web` has the pages.
"""
