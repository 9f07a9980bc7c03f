"""The HTTP server: the web page, MCP at `/mcp`, REST under `/api/v1`, health and metrics. Always named in full, `bethink.surface.http`.

`app` puts it together and mounts MCP; `serving` runs it; `security` decides who may call; `tokens` keeps who they are; `projects` owns the memories; `api` turns the
operations of `memories` and `browsing` into routes and their description; `web` shows it to people.
"""
