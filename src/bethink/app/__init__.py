"""The surfaces of Bethink: command line, MCP, HTTP and web, over one set of operations."""
