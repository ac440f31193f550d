"""In front of other MCP servers: wrap one, or many behind a gateway."""
