"""Limpet for the Anthropic SDK: tools for its tool runner, and the window for a loop over the Messages API.

    memory = LimpetMessages(limpet.open(), "parser", tools=[search])
    reply = memory.run(client, "Port the parser.", model="…", max_tokens=4_096)

or, in a loop of your own, three calls:

    memory.say("Port the parser.")
    while not memory.done:
        memory.answer(client.messages.create(model="…", max_tokens=4_096, **memory.request()))

`stream` is `run` with the events of every reply. anthropic_memory.py has the backend of the SDK's memory tool.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from limpet import errors
from limpet.adapters.anthropic_memory import LimpetAsyncMemoryTool, LimpetMemoryTool
from limpet.adapters.bridge import AdapterOptions, Bridge
from limpet.api import Limpet, Session, Tool
from limpet.errors import LimpetError
from limpet.outputs.methods import result_text
from limpet.window.formats import anthropic as form
from limpet.window.messages import ASSISTANT, SYSTEM, TOOL, USER, Call, Message, Result, Text
from limpet.window.plan.context import is_injected
from limpet.window.step import Summarise

try:
    from anthropic import Anthropic, AsyncAnthropic
    from anthropic.lib.tools import (
        BetaAsyncBuiltinFunctionTool,
        BetaAsyncFunctionTool,
        BetaBuiltinFunctionTool,
        BetaFunctionTool,
        ToolError,
    )
    from anthropic.types import Message as Reply
    from anthropic.types.beta import BetaMessage
except ImportError as problem:
    raise errors.not_installed("the adapter for the Anthropic SDK", "anthropic") from problem

CACHE = {"type": "ephemeral"}
FIRST = {"role": "user", "content": "-"}  # a reply is converted after it, as in a conversation
SYNC = (BetaFunctionTool, BetaBuiltinFunctionTool)
ASYNC = (BetaAsyncFunctionTool, BetaAsyncBuiltinFunctionTool)
MEMORY_TOOLS = (LimpetMemoryTool, LimpetAsyncMemoryTool)
Answer = Reply | BetaMessage


class LimpetMessages:
    """Working memory for a conversation over the Messages API.

    `memory` is what `limpet.open()` returns, or one session of it. `tools` are your own, as the SDK makes them from
    functions, or objects with `to_dict` and `call`, or dicts of tools that the provider runs; `system` is your prompt.
    `profile` chooses Limpet's tools, `limit` is the model's window in tokens, and `summarise` may write the summaries
    of compactions. With `cache`, requests contain cache marks for the provider's prompt cache.
    """

    def __init__(
        self,
        memory: Limpet | Session,
        session_id: str | None = None,
        *,
        tools: Iterable[Any] = (),
        system: Any = "",
        profile: str = "core",
        limit: int | None = None,
        summarise: Summarise | None = None,
        cache: bool = True,
    ) -> None:
        options = AdapterOptions(profile, limit, summarise)
        self._bridge: Bridge[Message] = Bridge(memory, lambda message: [message], options, by="agent/anthropic")
        self._bridged = self._bridge.session(session_id)
        self.session = self._bridged.session
        self._system, self._cache = system, cache
        self._own: dict[str, Any] = {}
        self._add_tools(tools)
        self._talk: list[Message] = self.session.window.messages()
        self.done = _is_answered(self._talk)  # whether no message waits for an answer of the model

    # --- the loop -----------------------------------------------------------------------------------------------------

    def run(self, client: Anthropic, content: Any, **params: Any) -> Answer:
        """Call the model and its tools until a reply calls no tool, and return that reply.

        `params` are those of the SDK's create call; `tools` and `system` among them count from now on.
        """
        with self._run_of(content, params):
            while True:
                reply: Answer = client.messages.create(**params, **self.request())
                self.answer(reply)
                if self.done:
                    return reply

    async def arun(self, client: AsyncAnthropic, content: Any, **params: Any) -> Answer:
        with self._run_of(content, params):
            while True:
                reply: Answer = await client.messages.create(**params, **await self.arequest())
                await self.aanswer(reply)
                if self.done:
                    return reply

    def stream(self, client: Anthropic, content: Any, **params: Any) -> Iterator[Any]:
        """The same, with every event of the SDK's streams as it comes; the last one's `message` is the reply."""
        with self._run_of(content, params):
            while True:
                with client.messages.stream(**params, **self.request()) as events:
                    yield from events
                    reply = events.get_final_message()
                self.answer(reply)
                if self.done:
                    return

    async def astream(self, client: AsyncAnthropic, content: Any, **params: Any) -> AsyncIterator[Any]:
        with self._run_of(content, params):
            while True:
                async with client.messages.stream(**params, **await self.arequest()) as events:
                    async for event in events:
                        yield event
                    reply = await events.get_final_message()
                await self.aanswer(reply)
                if self.done:
                    return

    @contextmanager
    def _run_of(self, content: Any, params: dict[str, Any]) -> Iterator[None]:
        """Take from the parameters what a request has from here, and add the user's message.

        If its first request fails, the message is taken back: the caller will say it again.
        """
        self._add_tools(params.pop("tools", ()))
        self._system = params.pop("system", self._system)
        before = len(self._talk)
        self.say(content)
        after = len(self._talk)
        try:
            yield
        except Exception:
            if len(self._talk) == after:
                del self._talk[before:]
                self.done = _is_answered(self._talk)
            raise

    def _add_tools(self, tools: Iterable[Any]) -> None:
        for tool in tools:
            own = tool.in_session(self.session) if isinstance(tool, MEMORY_TOOLS) else tool
            self._own[own["name"] if isinstance(own, Mapping) else own.name] = own

    def say(self, content: Any) -> None:
        """Add a message of the user: a text, or a list of content blocks."""
        self._talk += form.read([{"role": "user", "content": content}])
        self.done = False

    def request(self) -> dict[str, Any]:
        """`system`, `messages` and `tools` for a create call of the Messages API."""
        prompt = form.read({"system": self._system, "messages": []}) if self._system else ()
        own = [tool if isinstance(tool, Mapping) else tool.to_dict() for tool in self._own.values()]
        tools = [*(tool.anthropic() for tool in self._bridge.tools), *own]
        sent = self._bridge.next(self._bridged, prompt, self._talk, continues=True, tools=tools)
        messages = [*sent.prompt, *sent.talk]
        body = form.write(_marked(messages) if self._cache else messages)
        return {**body, "tools": tools}

    async def arequest(self) -> dict[str, Any]:
        return await asyncio.to_thread(self.request)

    def answer(self, reply: Answer) -> None:
        """Add the model's reply and run the tools it calls. `done` says whether it called none."""
        messages = self._converted(reply)
        calls = _calls(reply, messages)
        if calls:
            self._keep_before_calls(messages)
        self._add(reply, messages, [self._result(call) for call in calls])
        if self.done:
            self._bridge.keep(self._bridged, self._talk)

    async def aanswer(self, reply: Answer) -> None:
        messages = await asyncio.to_thread(self._converted, reply)
        calls = _calls(reply, messages)
        if calls:
            await asyncio.to_thread(self._keep_before_calls, messages)
        self._add(reply, messages, [await self._aresult(call) for call in calls])
        if self.done:
            await asyncio.to_thread(self._bridge.keep, self._bridged, self._talk)

    def _converted(self, reply: Answer) -> list[Message]:
        usage = reply.usage
        counted = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
        self._bridge.sent(self._bridged, sum(count or 0 for count in counted))
        native = {"role": "assistant", "content": [block.to_dict() for block in reply.content]}
        return list(form.read([FIRST, native])[1:])

    def _keep_before_calls(self, messages: list[Message]) -> None:
        """Store a reply before its calls run: if the process ends in one, the next knows of the call."""
        self._bridge.keep(self._bridged, [*self._talk, *messages])

    def _add(self, reply: Answer, messages: list[Message], results: list[Any]) -> None:
        """Both at once, so that a loop that is cancelled in between leaves no call without its result."""
        self._talk += messages
        if results:
            self._talk += form.read([{"role": "user", "content": results}])
        # A turn that the provider paused continues; so does the turn for saving before a compaction.
        self.done = not results and reply.stop_reason != "pause_turn" and not self._bridged.warned

    # --- tools --------------------------------------------------------------------------------------------------------

    def tools(self) -> list[Any]:
        """Limpet's tools and yours for `client.beta.messages.tool_runner`; big results become references there too."""
        own = [_OwnTool(self, tool) if isinstance(tool, SYNC) else tool for tool in self._own.values()]
        return [*map(self._tool, self._bridge.tools), *own]

    def async_tools(self) -> list[Any]:
        """The same for the runner of the async client."""
        own = [_AsyncOwnTool(self, tool) if isinstance(tool, ASYNC) else tool for tool in self._own.values()]
        return [*map(self._async_tool, self._bridge.tools), *own]

    def _tool(self, tool: Tool) -> BetaFunctionTool[Any]:
        def run(**arguments: Any) -> str:
            with _tool_errors():
                return self._bridge.call(self.session, tool.name, arguments)

        return BetaFunctionTool(run, name=tool.name, description=tool.description, input_schema=tool.parameters)

    def _async_tool(self, tool: Tool) -> BetaAsyncFunctionTool[Any]:
        async def run(**arguments: Any) -> str:
            with _tool_errors():
                return await asyncio.to_thread(self._bridge.call, self.session, tool.name, arguments)

        return BetaAsyncFunctionTool(run, name=tool.name, description=tool.description, input_schema=tool.parameters)

    def _result(self, call: Call) -> Any:
        try:
            content = self._run_tool(call)
            if inspect.iscoroutine(content):
                content.close()
                raise TypeError(f"{call.name} is an async tool; `arun` and `aanswer` can await it")
            return _block(call, self.with_references(call.name, call.arguments, content))
        except Exception as problem:  # noqa: BLE001 - the caller's own tools: any exception becomes a result
            return _failed(call, problem)

    async def _aresult(self, call: Call) -> Any:
        try:
            content = await asyncio.to_thread(self._run_tool, call)
            if inspect.isawaitable(content):
                content = await content
            return _block(call, await asyncio.to_thread(self.with_references, call.name, call.arguments, content))
        except Exception as problem:  # noqa: BLE001 - as above
            return _failed(call, problem)

    def _run_tool(self, call: Call) -> Any:
        arguments = json.loads(call.arguments or "{}")
        if call.name in self._bridge.names:
            return self._bridge.call(self.session, call.name, arguments)
        own = {name: tool for name, tool in self._own.items() if not isinstance(tool, Mapping)}
        if call.name not in own:
            names = ", ".join((*sorted(self._bridge.names), *own))
            raise errors.unknown_operation(call.name, f"Tools that exist: {names}.")
        return own[call.name].call(self.expand(call.name, arguments))

    def expand(self, tool: str, arguments: Any) -> Any:
        return self._bridge.expand(self.session, tool, arguments)

    def with_references(self, tool: str, call: str, content: Any) -> Any:
        """A tool's result as the API takes it, with its big texts replaced by references."""
        if isinstance(content, list) and content and all(map(_is_block, content)):
            return [
                {**block, "text": self.with_references(tool, call, block["text"])} if block["type"] == "text" else block
                for block in content
            ]
        text = _as_text(content)
        return self._bridge.keep_result(self.session, tool, text, call) or text


class _OwnTool(BetaBuiltinFunctionTool):
    """A tool of the caller for the runner: references in its arguments are expanded, big results become references."""

    def __init__(self, memory: LimpetMessages, own: Any) -> None:
        self._memory, self._own = memory, own

    def to_dict(self) -> Any:
        return self._own.to_dict()

    def call(self, input: object) -> Any:
        with _tool_errors():
            arguments = self._memory.expand(self.name, input)
        return self._memory.with_references(self.name, json.dumps(input), self._own.call(arguments))


class _AsyncOwnTool(BetaAsyncBuiltinFunctionTool):
    def __init__(self, memory: LimpetMessages, own: Any) -> None:
        self._memory, self._own = memory, own

    def to_dict(self) -> Any:
        return self._own.to_dict()

    async def call(self, input: object) -> Any:
        with _tool_errors():
            arguments = await asyncio.to_thread(self._memory.expand, self.name, input)
        content = await self._own.call(arguments)
        return await asyncio.to_thread(self._memory.with_references, self.name, json.dumps(input), content)


@contextmanager
def _tool_errors() -> Iterator[None]:
    """Limpet's errors as errors that the runner passes to the model."""
    try:
        yield
    except LimpetError as problem:
        raise ToolError(problem.message) from problem


def _is_answered(talk: Sequence[Message]) -> bool:
    return not talk or (talk[-1].role == ASSISTANT and not talk[-1].calls())


def _calls(reply: Answer, messages: Sequence[Message]) -> list[Call]:
    """The calls to run; none of a reply that was cut short or refused, like the SDK's runner."""
    return [call for message in messages for call in message.calls()] if reply.stop_reason == "tool_use" else []


def _is_block(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("type"), str)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    text = result_text(value)
    return str(value) if text is None else text


def _block(call: Call, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call.id, "content": content}


def _failed(call: Call, problem: Exception) -> dict[str, Any]:
    if isinstance(problem, LimpetError):
        content: Any = problem.message
    else:
        content = problem.content if isinstance(problem, ToolError) else repr(problem)
    return {**_block(call, content), "is_error": True}


def _marked(messages: Sequence[Message]) -> list[Message]:
    """The messages with two cache marks: at the end of the prompt, and of the history.

    What follows the history changes with every request, so a mark there would not be used.
    """
    out = list(messages)
    prompt = [at for at, message in enumerate(out) if message.role == SYSTEM]
    talk = [at for at, message in enumerate(out) if message.role in (USER, TOOL) and not is_injected(message)]
    for at in (*prompt[-1:], *talk[-1:]):
        *before, last = out[at].parts or (None,)
        if isinstance(last, Text | Result):
            bare = (
                {"type": "text", "text": ""} if isinstance(last, Text) else {"type": "tool_result", "tool_use_id": ""}
            )
            own = {**(last.raw.get(form.FORM) or bare), "cache_control": CACHE}
            out[at] = out[at]._replace(parts=(*before, last._replace(raw={**last.raw, form.FORM: own})))
    return out
