"""The doors: command line and MCP server, and the host that binds a caller to them."""
