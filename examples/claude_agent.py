"""The Claude Agent SDK with Limpet: a night's log is read, a finding is noted, and the next run gets the handoff.

A scripted transport stands in for Claude Code, so that this runs offline: it fires the hooks and calls the tools that
Claude Code would. With `ClaudeSDKClient(memory.options())` alone, Claude Code itself does.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import ClaudeSDKClient, Transport

import limpet
from limpet.adapters.claude_agent import LimpetAgent

LOG = "\n".join(f"monday {job:03d} {'FAILED: disk full' if job == 13 else 'ok'}" for job in range(300))


class Scripted(Transport):
    """Speaks the control protocol of Claude Code, as far as this story needs it."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.lines: asyncio.Queue[Any] = asyncio.Queue()
        self.answers: asyncio.Queue[Any] = asyncio.Queue()
        self.hooks: dict[str, str] = {}
        self.story: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        pass

    async def write(self, data: str) -> None:
        said = json.loads(data)
        if said["type"] == "control_request":
            if said["request"]["subtype"] == "initialize":
                given = said["request"]["hooks"]
                self.hooks = {event: matchers[0]["hookCallbackIds"][0] for event, matchers in given.items()}
            done = {"subtype": "success", "request_id": said["request_id"], "response": {}}
            await self.lines.put({"type": "control_response", "response": done})
        elif said["type"] == "control_response":
            await self.answers.put(said["response"]["response"])
        elif said["type"] == "user":
            self.story = asyncio.create_task(self.turn())

    async def ask(self, **request: Any) -> Any:
        await self.lines.put({"type": "control_request", "request_id": "r", "request": request})
        return await self.answers.get()

    async def hook(self, event: str, **given: Any) -> Any:
        base = {"session_id": "c", "transcript_path": "", "cwd": ".", "hook_event_name": event}
        said = await self.ask(
            subtype="hook_callback", callback_id=self.hooks[event], input=base | given, tool_use_id=None
        )
        return said.get("hookSpecificOutput", {})

    async def mcp(self, method: str, **more: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, **more}
        await self.ask(subtype="mcp_message", server_name="limpet", message=message)

    async def turn(self) -> None:
        who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "scripted", "version": "1"}}
        await self.mcp("initialize", id="first", params=who)
        await self.mcp("notifications/initialized")
        first = await self.hook("UserPromptSubmit", prompt="…")
        told = "read Tuesday next" in first.get("additionalContext", "")
        print("- the model is called" + (", and reads Monday's handoff in its prompt" if told else ""))
        while not isinstance(self.steps[0], str):
            name, arguments = self.steps.pop(0)
            if name == "read_log":  # a tool of somebody else's server, which Claude Code called
                shown = {"tool_name": name, "tool_input": arguments, "tool_response": LOG, "tool_use_id": "t"}
                await self.hook("PostToolUse", **shown)
            else:
                await self.mcp("tools/call", id=len(self.steps), params={"name": name, "arguments": arguments})
        await self.hook("Stop", stop_hook_active=False)
        text = [{"type": "text", "text": self.steps.pop(0)}]
        await self.lines.put({"type": "assistant", "message": {"model": "scripted", "content": text}})
        counts = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1}
        await self.lines.put({"type": "result", "subtype": "success", "is_error": False, "session_id": "c", **counts})

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (line := await self.lines.get()) is not None:
            yield line

    async def close(self) -> None:
        await self.lines.put(None)

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass


async def main(hold: limpet.Limpet) -> None:
    monday = (
        ("read_log", {"night": "monday"}),
        ("add_note", {"content": "Job 13 failed on Monday: disk full", "tags": ["ops"]}),
        ("write_session_handoff", {"content": "Monday is read; read Tuesday next."}),
        "Job 13 failed: the disk was full.",
    )
    for night, request, steps in (
        ("monday", "What failed?", monday),
        ("tuesday", "Go on.", ("I go on with Tuesday.",)),
    ):
        memory = LimpetAgent(hold, night)
        async with ClaudeSDKClient(memory.options(), transport=Scripted(*steps)) as client:
            await client.query(request)
            async for message in client.receive_response():
                for block in getattr(message, "content", ()):
                    print(f"The answer on {night}: {block.text}")
    print("Notes that every later session finds:", [note.content for note in hold.session("monday").notes.list()])
    print(
        "Results kept whole outside the window:",
        [output.tool for output in hold.session("monday").outputs.list().outputs],
    )


with limpet.open("claude_agent.db") as opened:
    asyncio.run(main(opened))
