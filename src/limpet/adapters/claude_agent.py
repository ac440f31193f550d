"""Limpet for the Claude Agent SDK: an MCP server in your process, and hooks.

    memory = LimpetAgent(limpet.open(), "parser")
    async with ClaudeSDKClient(memory.options(cwd="…")) as client: …

The server has our tools. The hooks give a session its handoff, notepad and memory with the first prompt and again after
a compaction, which Claude Code does itself, and keep big results of other tools aside.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

from limpet import errors, prompts
from limpet.adapters.bridge import Bridge, Options
from limpet.api import Limpet, Session, Tool
from limpet.errors import LimpetError
from limpet.limits import HOOK_CONTEXT_CHARS

try:
    from claude_agent_sdk import (
        ClaudeAgentOptions,
        HookContext,
        HookInput,
        HookJSONOutput,
        HookMatcher,
        McpSdkServerConfig,
        SdkMcpTool,
        create_sdk_mcp_server,
    )
except ImportError as problem:
    raise errors.not_installed("the adapter for the Claude Agent SDK", "claude-agent") from problem

SERVER = "limpet"
OPEN, CLOSE = "<limpet>", "</limpet>"
CUT = "\n[… cut to fit; read_notepad, search_memory and recall read the rest]"
Hooks = dict[Any, list[HookMatcher]]


class LimpetAgent:
    """Working memory for one conversation with Claude Code.

    `memory` is what `limpet.open()` gives, or one session of it. `profile` chooses the tools.
    """

    def __init__(self, memory: Limpet | Session, session_id: str | None = None, *, profile: str = "core") -> None:
        self._bridge: Bridge[Any] = Bridge(memory, lambda message: [], Options(profile), by="agent/claude-agent")
        self.session = self._bridge.conversation(session_id).session
        self._due = True  # whether the model has yet to be given what was written down
        self._given = False  # whether it was given since the last sign that the model went on

    def options(self, **given: Any) -> ClaudeAgentOptions:
        """Options with our server and hooks beside what you give."""
        servers = {**(given.pop("mcp_servers", None) or {}), SERVER: self.server()}
        allowed = [*(given.pop("allowed_tools", None) or ()), *self.allowed_tools]
        hooks: Hooks = {name: list(matchers) for name, matchers in (given.pop("hooks", None) or {}).items()}
        for name, matchers in self.hooks().items():
            hooks[name] = [*hooks.get(name, []), *matchers]
        return ClaudeAgentOptions(mcp_servers=servers, allowed_tools=allowed, hooks=hooks, **given)

    @property
    def allowed_tools(self) -> list[str]:
        return [f"mcp__{SERVER}__{tool.name}" for tool in self._bridge.tools]

    def server(self) -> McpSdkServerConfig:
        """Our tools, for `ClaudeAgentOptions.mcp_servers`."""
        return create_sdk_mcp_server(SERVER, tools=[self._tool(tool) for tool in self._bridge.tools])

    def hooks(self) -> Hooks:
        """For `ClaudeAgentOptions.hooks`."""
        return {
            "SessionStart": [HookMatcher(hooks=[self.on_start])],
            "UserPromptSubmit": [HookMatcher(hooks=[self.on_prompt])],
            "PostToolUse": [HookMatcher(hooks=[self.on_result])],
            "PreCompact": [HookMatcher(hooks=[self.on_compaction])],
            "Stop": [HookMatcher(hooks=[self.on_stop])],
        }

    # --- hooks --------------------------------------------------------------------------------------------------------

    async def on_start(self, given: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        """A session begins, or goes on after a compaction. Where the client does not say so, the next prompt does."""
        return _specific("SessionStart", await asyncio.to_thread(self._context))

    async def on_prompt(self, given: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        return _specific("UserPromptSubmit", await asyncio.to_thread(self._context))

    async def on_result(self, given: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        """Big results become references; and after a compaction in mid-work this is the first chance to speak."""
        said = cast(Mapping[str, Any], given)
        more = await asyncio.to_thread(self._answered, str(said["tool_name"]), said.get("tool_input"), said)
        return _specific("PostToolUse", await asyncio.to_thread(self._context), **more)

    async def on_compaction(self, given: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        self._due = True
        return {}

    async def on_stop(self, given: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        await asyncio.to_thread(self._used)
        return {}

    def _context(self) -> str:
        """Handoff, notepad, scratchpad and memory, where the model has not got them yet."""
        if not self._due:
            return ""
        text = "\n\n".join((self.session.context(), self._bridge.guidance)).replace(CLOSE, "</ limpet>").strip()
        frame = f"{OPEN}\n{prompts.prompt('agent_context')}\n\n", f"\n{CLOSE}"
        room = HOOK_CONTEXT_CHARS - sum(map(len, frame))
        self._due, self._given = False, True
        return (text if len(text) <= room else text[: room - len(CUT)] + CUT).join(frame)

    def _answered(self, tool: str, arguments: Any, said: Mapping[str, Any]) -> dict[str, Any]:
        self._used()
        if tool.startswith(f"mcp__{SERVER}__"):
            return {}
        before = said.get("tool_response")
        after = self._kept(tool, json.dumps(arguments, default=str), before)
        return {} if after == before else {"updatedToolOutput": after}

    def _used(self) -> None:
        """The model went on, so what it was given has served."""
        if self._given:
            self._given = False
            self.session.used()

    def _kept(self, tool: str, call: str, value: Any) -> Any:
        """A result in the shape it came in, as the SDK wants it, with each big text in it a reference."""
        if isinstance(value, str):
            return self._bridge.kept(self.session, tool, value, call) or value
        if isinstance(value, Mapping):
            return {name: self._kept(tool, call, inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._kept(tool, call, inner) for inner in value]
        return value

    # --- tools --------------------------------------------------------------------------------------------------------

    def _tool(self, tool: Tool) -> SdkMcpTool[Any]:
        async def run(given: Any) -> dict[str, Any]:
            try:
                text = await asyncio.to_thread(self._bridge.call, self.session, tool.name, given)
            except LimpetError as problem:
                return {"content": [{"type": "text", "text": problem.message}], "is_error": True}
            return {"content": [{"type": "text", "text": text}]}

        return SdkMcpTool(tool.name, tool.description, tool.parameters, run)


def _specific(event: str, context: str, **more: Any) -> HookJSONOutput:
    said = {**({"additionalContext": context} if context else {}), **more}
    return cast(HookJSONOutput, {"hookSpecificOutput": {"hookEventName": event, **said}} if said else {})
