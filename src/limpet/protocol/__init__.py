"""What the MCP doors share: the JSON-RPC codec and the MCP server's answers."""
