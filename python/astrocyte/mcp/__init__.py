"""MCP server: tools, resources and prompts over an `astrocyte.api.Backend`.

`tools` has the table from which listing, schemas, annotations and calls derive. `server` answers MCP requests, `http`
serves them over streamable HTTP. Needs the extra ``mcp``.
"""
