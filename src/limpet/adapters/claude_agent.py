"""Limpet for the Claude Agent SDK: an MCP server in your process, and hooks.

    memory = LimpetAgent(limpet.open(), "parser")
    async with ClaudeSDKClient(memory.options(cwd="…")) as client: …

The server has Limpet's tools. The hooks add handoff, notepad and memory to the first prompt and again after a
compaction, which Claude Code does itself, and replace big results of other tools by references.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

from limpet import errors, prompts
from limpet.adapters.bridge import AdapterOptions, Bridge, log
from limpet.api import Limpet, Session, Tool
from limpet.errors import LimpetError
from limpet.limits import HANDOFF_SHOWN_CHARS, HOOK_CONTEXT_CHARS

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

    `memory` is what `limpet.open()` returns, or one session of it. `profile` chooses the tools.
    """

    def __init__(self, memory: Limpet | Session, session_id: str | None = None, *, profile: str = "core") -> None:
        self._bridge: Bridge[Any] = Bridge(memory, lambda message: [], AdapterOptions(profile), by="agent/claude-agent")
        self.session = self._bridge.session(session_id).session
        self._context_due = True  # whether the model still needs the context
        self._context_sent = False  # whether it was sent since the model last answered

    def options(self, **more: Any) -> ClaudeAgentOptions:
        """Options with Limpet's server and hooks, merged with your own."""
        servers = {**(more.pop("mcp_servers", None) or {}), SERVER: self.server()}
        allowed = [*(more.pop("allowed_tools", None) or ()), *self.allowed_tools]
        hooks: Hooks = {name: list(matchers) for name, matchers in (more.pop("hooks", None) or {}).items()}
        for name, matchers in self.hooks().items():
            hooks[name] = [*hooks.get(name, []), *matchers]
        return ClaudeAgentOptions(mcp_servers=servers, allowed_tools=allowed, hooks=hooks, **more)

    @property
    def allowed_tools(self) -> list[str]:
        return [f"mcp__{SERVER}__{tool.name}" for tool in self._bridge.tools]

    def server(self) -> McpSdkServerConfig:
        """Limpet's tools, for `ClaudeAgentOptions.mcp_servers`."""
        return create_sdk_mcp_server(SERVER, tools=[self._tool(tool) for tool in self._bridge.tools])

    def hooks(self) -> Hooks:
        """For `ClaudeAgentOptions.hooks`."""
        return {
            "SessionStart": [HookMatcher(hooks=[self.on_start])],
            "UserPromptSubmit": [HookMatcher(hooks=[self.on_prompt])],
            "PreToolUse": [HookMatcher(hooks=[self.on_call])],
            "PostToolUse": [HookMatcher(hooks=[self.on_result])],
            "PreCompact": [HookMatcher(hooks=[self.on_compaction])],
            "Stop": [HookMatcher(hooks=[self.on_stop])],
        }

    # --- hooks --------------------------------------------------------------------------------------------------------

    async def on_start(self, input: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        """A session begins, or continues after a compaction. Without this event, the next prompt does it."""
        return _specific("SessionStart", await asyncio.to_thread(self._context))

    async def on_prompt(self, input: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        return _specific("UserPromptSubmit", await asyncio.to_thread(self._context))

    async def on_call(self, input: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        """References among the arguments are replaced. Whether the call is allowed is decided after that, as ever."""
        event = cast(Mapping[str, Any], input)
        tool, before = str(event["tool_name"]), event.get("tool_input")
        if tool.startswith(f"mcp__{SERVER}__"):
            return {}
        try:
            after = await self._bridge.aexpand(self.session, tool, before)
        except LimpetError as problem:
            reason = {"permissionDecision": "deny", "permissionDecisionReason": problem.message}
            return _specific("PreToolUse", "", **reason)
        return {} if after == before else _specific("PreToolUse", "", updatedInput=after)

    async def on_result(self, input: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        """Big results become references. After a compaction in mid-work, this is the first chance to add context."""
        event = cast(Mapping[str, Any], input)
        more = await asyncio.to_thread(self._updated, str(event["tool_name"]), event.get("tool_input"), event)
        return _specific("PostToolUse", await asyncio.to_thread(self._context), **more)

    async def on_compaction(self, input: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        self._context_due = True
        return {}

    async def on_stop(self, input: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        await asyncio.to_thread(self._used)
        return {}

    def _context(self) -> str:
        """Handoff, notepad, scratchpad and memory, if the model still needs them."""
        if not self._context_due:
            return ""
        try:
            stored = self.session.context(room=HANDOFF_SHOWN_CHARS)
        except LimpetError as problem:
            log.warning("The context of %s could not be read: %s", self.session.id, problem)
            return ""
        text = "\n\n".join((stored, self._bridge.guidance)).replace(CLOSE, "</ limpet>").strip()
        frame = f"{OPEN}\n{prompts.prompt('agent_context')}\n\n", f"\n{CLOSE}"
        room = HOOK_CONTEXT_CHARS - sum(map(len, frame))
        self._context_due, self._context_sent = False, True
        return (text if len(text) <= room else text[: room - len(CUT)] + CUT).join(frame)

    def _updated(self, tool: str, arguments: Any, event: Mapping[str, Any]) -> dict[str, Any]:
        self._used()
        if tool.startswith(f"mcp__{SERVER}__"):
            return {}
        before = event.get("tool_response")
        after = self._with_references(tool, json.dumps(arguments, default=str), before)
        return {} if after == before else {"updatedToolOutput": after}

    def _used(self) -> None:
        """The model has continued, so the handoff in its context is used."""
        if not self._context_sent:
            return
        try:
            self.session.used()
            self._context_sent = False
        except LimpetError as problem:  # a hook that fails would cost an answer that was paid for
            log.warning("The handoff of %s was not marked as used: %s", self.session.id, problem)

    def _with_references(self, tool: str, call: str, value: Any) -> Any:
        """A result of the same shape, as the SDK requires, with each big text replaced by a reference."""
        if isinstance(value, str):
            return self._bridge.keep_result(self.session, tool, value, call) or value
        if isinstance(value, Mapping):
            return {name: self._with_references(tool, call, inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._with_references(tool, call, inner) for inner in value]
        return value

    # --- tools --------------------------------------------------------------------------------------------------------

    def _tool(self, tool: Tool) -> SdkMcpTool[Any]:
        async def run(arguments: Any) -> dict[str, Any]:
            try:
                text = await asyncio.to_thread(self._bridge.call, self.session, tool.name, arguments)
            except LimpetError as problem:
                return {"content": [{"type": "text", "text": problem.message}], "is_error": True}
            return {"content": [{"type": "text", "text": text}]}

        return SdkMcpTool(tool.name, tool.description, tool.parameters, run)


def _specific(event: str, context: str, **more: Any) -> HookJSONOutput:
    fields = {**({"additionalContext": context} if context else {}), **more}
    return cast(HookJSONOutput, {"hookSpecificOutput": {"hookEventName": event, **fields}} if fields else {})
