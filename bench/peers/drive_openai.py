"""The sessions of OpenAI's Agents SDK over the scripted conversation; runs in the SDK's own environment.

Compaction happens in OpenAI's service, which no benchmark can script. The client here answers as the service is
documented to: every message of the user as it was, and one item for all others, which is the scripted summary. Trimming
needs no service: the newest items of a session, with old results cut by the SDK's filter.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from agents import SQLiteSession
from agents.extensions import ToolOutputTrimmer
from agents.memory import OpenAIResponsesCompactionSession
from agents.run import CallModelData, ModelInputData

from bench.peers.script import CHARS_PER_TOKEN, Job, Said, answer, job, summarise


def said(item: Any) -> Said:
    kind = item.get("type", "message")
    if kind == "function_call_output":
        return Said("tool", str(item["output"]))
    if kind == "message":
        content = item["content"]
        text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
        return Said(item["role"], text)
    return Said("assistant", item.get("encrypted_content", ""))


class Service:
    """Stands for the part of the client that the session calls."""

    def __init__(self, given: Job) -> None:
        self.given = given
        self.responses = self

    async def compact(self, *, model: str, input: list[Any]) -> SimpleNamespace:
        asked = [item for item in input if item.get("role") == "user"]
        previous = "\n".join(said(item).text for item in input if item.get("type") == "compaction")
        kinds = ("message", "function_call_output")
        others = [item for item in input if item not in asked and item.get("type", "message") in kinds]
        summary = summarise(previous, [said(item) for item in others], self.given)
        return SimpleNamespace(output=[*asked, {"type": "compaction", "encrypted_content": summary}], usage=None)


async def compacted(given: Job) -> list[list[Said]]:
    client: Any = Service(given)
    session = OpenAIResponsesCompactionSession("bench", SQLiteSession("bench"), client=client, compaction_mode="input")
    windows = []
    parts: Any = given.parts
    for part in parts:
        await session.add_items(part)
        await session.run_compaction({"force": True})
        windows.append([said(item) for item in await session.get_items()])
    return windows


async def trimmed(given: Job) -> list[list[Said]]:
    """As many of the newest items as have room; how many is what an application would have to guess."""
    session = SQLiteSession("bench")
    filtered = ToolOutputTrimmer()
    nobody: Any = None  # the agent, which it has no use for
    room = (given.tail + given.summary) * CHARS_PER_TOKEN
    windows = []
    parts: Any = given.parts
    for part in parts:
        await session.add_items(part)
        window: list[Said] = []
        for limit in range(2, len(await session.get_items()) + 1, 2):
            items = await session.get_items(limit=limit)
            shown = filtered(CallModelData(ModelInputData(items, None), nobody, None))
            tried = [said(item) for item in shown.input]
            if sum(len(one.text) for one in tried) > room:
                break
            window = tried
        windows.append(window)
    return windows


async def run(given: Job) -> None:
    answer({"compaction session": await compacted(given), "trimming": await trimmed(given)})


if __name__ == "__main__":
    asyncio.run(run(job()))
