"""Settings of the HTTP gateway, of MCP, and of archives."""
