"""A bare MCP server on the official SDK: one tool that does nothing. What starting such a server costs at least."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("bare", log_level="CRITICAL")


@server.tool()
def read_notepad() -> str:
    """Read the notepad."""
    return ""


if __name__ == "__main__":
    server.run("stdio")
