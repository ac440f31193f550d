"""Judges of written conversations: each provider's rules as its documentation has them, and its SDK's own types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import TypeAdapter


def refusals(form: str, native: Any) -> list[str]:
    """What the provider's documentation says it refuses, found in the native form."""
    return list(_JUDGES[form](native))


def _judge_anthropic(native: dict[str, Any]) -> Iterator[str]:
    seen: set[str] = set()
    due: list[str] = []
    before = ""
    if native["messages"] and native["messages"][0]["role"] == "assistant":
        yield "the assistant speaks first"
    for at, message in enumerate(native["messages"]):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            yield f"{at}: no content"
        if message["role"] == before:
            yield f"{at}: two messages of {before} in a row"
        yield from (f"{at}: blank text" for one in blocks if one["type"] == "text" and not one["text"].strip())
        kinds = [one["type"] == "tool_result" for one in blocks]
        if kinds != sorted(kinds, reverse=True):
            yield f"{at}: a result after other content"
        results = [one["tool_use_id"] for one in blocks if one["type"] == "tool_result"]
        if sorted(results) != sorted(due):
            yield f"{at}: results {results} for calls {due}"
        due = [one["id"] for one in blocks if one["type"] == "tool_use"]
        if len(set(due) | seen) != len(due) + len(seen):
            yield f"{at}: an id is used twice"
        seen |= set(due)
        yield from (f"{at}: id {one!r}" for one in due if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one))
        used = [one["name"] for one in blocks if one["type"] == "tool_use"]
        yield from (f"{at}: name {one!r}" for one in used if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", one))
        if message["role"] == "user" and any(one["type"] in ("tool_use", "thinking") for one in blocks):
            yield f"{at}: the user cannot say that"
        if message["role"] == "assistant" and any(one["type"] in ("image", "document") for one in blocks):
            yield f"{at}: the assistant cannot show that"
        before = message["role"]
    if due:
        yield f"calls {due} have no results"


def _judge_chat(native: list[Any]) -> Iterator[str]:
    due: list[str] = []
    function = ""
    for at, message in enumerate(native):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in due:
                yield f"{at}: a result without its call"
            else:
                due.remove(message["tool_call_id"])
            continue
        if due:
            yield f"{at}: calls {due} have no results"
        if (role == "function") != bool(function) or (function and message["name"] != function):
            yield f"{at}: the result of a function out of place"
        function = (message.get("function_call") or {}).get("name", "")
        due = [call["id"] for call in message.get("tool_calls", ())]
        yield from (f"{at}: id {one!r}" for one in due if not re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", one))
        for call in message.get("tool_calls", ()):
            inner = call.get("function") or call["custom"]
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", inner["name"]):
                yield f"{at}: name {inner['name']!r}"
        said = [message.get(key) for key in ("content", "tool_calls", "function_call", "refusal", "audio")]
        if not any(said):
            yield f"{at}: nothing is said"
    if due or function:
        yield f"calls {due or function} have no results"


def _judge_responses(native: list[Any]) -> Iterator[str]:
    open_calls: dict[str, str] = {}
    for at, item in enumerate(native):
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call"):
            if item["call_id"] in open_calls:
                yield f"{at}: an id is open twice"
            open_calls[item["call_id"]] = kind
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["call_id"]):
                yield f"{at}: id {item['call_id']!r}"
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["name"]):
                yield f"{at}: name {item['name']!r}"
        elif kind in ("function_call_output", "custom_tool_call_output"):
            if open_calls.pop(item["call_id"], "") + "_output" != kind:
                yield f"{at}: an output without its call"
        elif kind == "message" and not item["content"]:
            yield f"{at}: nothing is said"
        elif kind == "reasoning":
            after = native[at + 1] if at + 1 < len(native) else {}
            if after.get("role", "assistant") != "assistant" or str(after.get("type", "x")).endswith("_output"):
                yield f"{at}: reasoning that nothing follows"
            if not after:
                yield f"{at}: reasoning at the end"
    if open_calls:
        yield f"calls {list(open_calls)} have no outputs"


def _judge_mcp(native: dict[str, Any]) -> Iterator[str]:
    due: list[str] = []
    for at, message in enumerate(native["messages"]):
        content = message["content"]
        blocks = content if isinstance(content, list) else [content]
        if not blocks:
            yield f"{at}: no content"
        results = [one["toolUseId"] for one in blocks if one["type"] == "tool_result"]
        if results and len(results) != len(blocks):
            yield f"{at}: results and other content in one message"
        if sorted(results) != sorted(due):
            yield f"{at}: results {results} for calls {due}"
        due = [one["id"] for one in blocks if one["type"] == "tool_use"]
        if due and message["role"] != "assistant":
            yield f"{at}: a call by the user"
    if due:
        yield f"calls {due} have no results"


_JUDGES: dict[str, Any] = {
    "anthropic": _judge_anthropic,
    "openai_chat": _judge_chat,
    "openai_responses": _judge_responses,
    "mcp": _judge_mcp,
}


@cache
def _adapter(form: str) -> TypeAdapter[Any]:
    if form == "anthropic":
        from anthropic.types import MessageParam

        return TypeAdapter(list[MessageParam])
    if form == "openai_chat":
        from openai.types.chat import ChatCompletionMessageParam

        return TypeAdapter(list[ChatCompletionMessageParam])
    if form == "openai_responses":
        from openai.types.responses import ResponseInputItemParam

        return TypeAdapter(list[ResponseInputItemParam])
    from mcp_types import SamplingMessage

    return TypeAdapter(list[SamplingMessage])


def typed(form: str, native: Any) -> None:
    """Raises what the official SDK's types have against the native form."""
    messages = native["messages"] if isinstance(native, dict) else native
    _exhaust(_adapter(form).validate_python(messages))


def _exhaust(value: Any) -> None:
    """Pydantic checks the items of an Iterable only when somebody asks for them."""
    if isinstance(value, dict):
        for item in value.values():
            _exhaust(item)
    elif hasattr(value, "__iter__") and not isinstance(value, str | bytes):
        for item in value:
            _exhaust(item)
