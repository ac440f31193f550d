"""The official client telling a story to a server, with or without Limpet in front of it, for comparisons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from mcp import ClientSession

from doors.wrap_kit import MASK, page_of

OURS = ["read_output", "list_outputs"]
Story = list[tuple[str, dict[str, Any]]]

KEPT_FROM = 4_096  # bytes of a result


def dumped(result: Any) -> Any:
    return result.model_dump(mode="json", by_alias=True)


async def read_back(session: ClientSession, shown: str) -> str:
    id = shown.removeprefix(MASK).split()[0]
    pages: list[str] = []
    more: dict[str, str] = {}
    while True:
        result = await session.call_tool("read_output", {"id": id, **more})
        page, cursor = page_of(dumped(result)["content"][0]["text"])
        pages.append(page)
        if not cursor:
            return "".join(pages)
        more = {"cursor": cursor}


async def restored(session: ClientSession, result: Any) -> tuple[Any, int]:
    """A result with every reference replaced by what it stands for, and how many there were."""
    count = 0
    for part in [*result["content"], result.get("structuredContent") or {}]:
        for name, value in part.items():
            if isinstance(value, str) and value.startswith(MASK):
                part[name] = await read_back(session, value)
                count += 1
    return result, count


def without(prefix: str, items: Sequence[Any]) -> list[Any]:
    """Named items of a list, those of one server, as it names them itself."""
    return [{**one, "name": one["name"].removeprefix(prefix)} for one in items if one["name"].startswith(prefix)]


def said_once(answer: Any, *, replaced: bool) -> Any:
    """A big answer as the value that it says: behind us, text and structured content that say the same are one text."""
    structured = answer.get("structuredContent")
    if structured is not None and len(json.dumps(structured)) > KEPT_FROM:
        return {**answer, "content": value_of(structured), "structuredContent": None}
    (first, *more) = answer["content"]
    if not more and first["type"] == "text" and (replaced or len(first["text"]) > KEPT_FROM):
        return {**answer, "content": value_of(first["text"])}
    return answer


def value_of(said: Any) -> Any:
    """A text that is JSON as its value, and an object with a single member as that."""
    if isinstance(said, str) and said[:1] in ("{", "["):
        with suppress(ValueError):
            return value_of(json.loads(said))
    if isinstance(said, dict) and len(said) == 1:
        return value_of(*said.values())
    return said


async def tell(session: ClientSession, story: Story, prefix: str = "") -> tuple[list[Any], int]:
    """Everything a server answers, with what was kept put back, and how much that was."""
    answers: list[Any] = []
    kept = 0
    tools = [{**tool, "outputSchema": None} for tool in dumped(await session.list_tools())["tools"]]
    answers.append(without(prefix, [tool for tool in tools if tool["name"] not in OURS]))
    for tool, arguments in story:
        answer, count = await restored(session, dumped(await session.call_tool(prefix + tool, arguments)))
        answers.append(said_once(answer, replaced=count > 0))
        kept += count
    if session.server_capabilities and session.server_capabilities.resources:
        answers.append(dumped(await session.list_resources()))
        answers.append(dumped(await session.list_resource_templates()))
        answers += [
            dumped(await session.read_resource(found.uri)) for found in (await session.list_resources()).resources
        ]
    if session.server_capabilities and session.server_capabilities.prompts:
        answers.append(without(prefix, dumped(await session.list_prompts())["prompts"]))
    return answers, kept
