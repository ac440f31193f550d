"""A server made with the official SDK, for tests of the wrapper and the gateway. Run it as a program.

`sdk_upstream.py stdio`, or `sdk_upstream.py http [json] [PORT]`, which prints its address. `json`: answers are plain
JSON instead of streams. Streams can be taken up again: their events are numbered and kept.
"""

from __future__ import annotations

import sys
from collections import OrderedDict

import mcp_types as types
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from pydantic import BaseModel

server = MCPServer("sdk", instructions="Use text for texts.", version="1", log_level="CRITICAL")


class Answer(BaseModel):
    name: str


class Row(BaseModel):
    row: int
    name: str


@server.tool()
def text(size: int, seed: str = "text") -> str:
    """A text of so many characters."""
    line = f'line of {seed} with "quotes", a \\ and é\n'
    return (line * (size // len(line) + 1))[:size]


@server.tool()
def rows(count: int) -> list[Row]:
    """So many rows."""
    return [Row(row=number, name="n" * 20) for number in range(count)]


@server.tool()
def fail(size: int) -> str:
    """Always fails."""
    raise ValueError("FAILED test_x\n" + "x" * size)


@server.tool()
def echo(message: str) -> str:
    """The same back."""
    return message


@server.tool()
async def steps(count: int, ctx: Context) -> str:
    """So many steps, each reported."""
    for number in range(count):
        await ctx.report_progress(number, count)
    return "done"


@server.tool()
async def broken(ctx: Context) -> str:
    """The stream of the answer is closed in the middle; the answer waits to be fetched."""
    await ctx.close_sse_stream()
    return "after the break"


@server.tool()
async def greet(ctx: Context) -> str:
    """Asks the user for a name."""
    found = await ctx.elicit("Your name?", schema=Answer)
    return f"Hello {found.data.name}" if found.action == "accept" else found.action


@server.tool()
async def think(ctx: Context) -> str:
    """Asks the client's model."""
    words = types.TextContent(type="text", text="?")
    message = types.SamplingMessage(role="user", content=words)
    found = await ctx.session.create_message(messages=[message], max_tokens=5)
    assert isinstance(found.content, types.TextContent)
    return found.content.text


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool."""
    server.add_tool(lambda: "new", name="later", description="Was not there before.")
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.resource("data://one")
def one() -> str:
    """One text."""
    return "the one"


@server.resource("data://of/{name}")
def of(name: str) -> str:
    """A text by name."""
    return f"data of {name}"


@server.prompt()
def ask(topic: str) -> str:
    """A question."""
    return f"What about {topic}?"


class Kept(EventStore):
    """Events in memory."""

    def __init__(self) -> None:
        self.events: OrderedDict[str, tuple[str, types.JSONRPCMessage | None]] = OrderedDict()

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        id = str(len(self.events) + 1)
        self.events[id] = (stream_id, message)
        return id

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        stream = self.events[last_event_id][0]
        for id, (of_stream, message) in list(self.events.items()):
            if int(id) > int(last_event_id) and of_stream == stream and message is not None:
                await send_callback(EventMessage(message, id))
        return stream


def main(args: list[str]) -> None:
    if args[0] == "stdio":
        server.run()
        return
    port = next((int(word) for word in args if word.isdecimal()), 0)
    app = server.streamable_http_app(json_response="json" in args, event_store=Kept(), retry_interval=50)
    config = uvicorn.Config(app, port=port, log_config=None)
    listener = config.bind_socket()
    listener.listen()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1:])
