"""The HTTP server: the web page, MCP at `/mcp`, REST under `/api/v1`, health. Always named in full, `bethink.app.http`.

`app` puts it together and runs it; `security` keeps tokens and decides who may call; `projects` owns the memories; `api` makes
routes and their description of `operations`, whose table is that of `surface`; `web` shows it to people.
"""
