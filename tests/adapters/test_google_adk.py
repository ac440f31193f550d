"""ADK's own runner, driven by a scripted model, with Limpet as a plugin and as its memory service."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from adapters import stories
from bench.frameworks.google_adk import GoogleADK
from bench.frameworks.script import Do, Say
from limpet.adapters.google_adk import LimpetMemoryService
from limpet.api import Limpet


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_story(story: Any, hold: Limpet) -> None:
    asyncio.run(story(GoogleADK, hold))


def results(agent: GoogleADK) -> list[str]:
    return [shown.text for shown in agent.windows[-1] if shown.role == "tool"]


def test_a_reference_is_an_argument(hold: Limpet) -> None:
    def count(words: str) -> int:
        """Count the lines of a text."""
        return len(words.splitlines())

    kept = hold.session("t").outputs.keep("fetch", stories.fetch(1)).output
    assert kept is not None
    script = stories.steps(
        Do("count", {"words": f"hold://{kept.id}"}), Do("count", {"words": "hold://0123456789ab"}), Say("Counted.")
    )
    agent = GoogleADK(script, [count], hold)
    asyncio.run(agent.run("Count.", "t"))
    first, second = results(agent)
    assert first == str(stories.ROWS + 1)
    assert "0123456789ab" in second


def test_big_values_become_references(hold: Limpet) -> None:
    def rows(number: int) -> dict[str, Any]:
        """All rows."""
        return {"rows": [{"row": row, "value": row * number} for row in range(1_000)], "count": 1_000}

    agent = GoogleADK(stories.steps(Do("rows", {"number": 2}), Say("Read.")), [rows], hold)
    asyncio.run(agent.run("Read.", "t"))
    (shown,) = results(agent)
    assert shown.startswith("📁 Output cached: ")


def test_what_a_tool_raises_is_raised_as_without_us(hold: Limpet) -> None:
    agent = GoogleADK(stories.steps(Do("broken", {"number": 1}), Say("So be it.")), [stories.broken], hold)
    with pytest.raises(RuntimeError, match="record 1 is unreadable"):
        asyncio.run(agent.run("Fetch.", "t"))


def content(words: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=words)])


def test_the_memory_service(hold: Limpet) -> None:
    async def found(service: BaseMemoryService, user: str, query: str) -> list[tuple[str | None, str | None]]:
        answer = await service.search_memory(app_name="app", user_id=user, query=query)
        return [(memory.author, (memory.content.parts or [])[0].text) for memory in answer.memories]

    async def story() -> None:
        service = LimpetMemoryService(hold)
        assert isinstance(service, BaseMemoryService)
        agent = GoogleADK(stories.steps(Say("The replica listens on port 5433.")), [], hold)
        await agent.run("Which port has the replica?", "t")
        session = await agent.runner.session_service.get_session(app_name="app", user_id="u", session_id="t")
        assert session is not None
        await service.add_session_to_memory(session)
        await service.add_session_to_memory(session)
        expected = ("scripted", "The replica listens on port 5433.")
        assert expected in await found(service, "u", "replica listens")
        assert len(await found(service, "u", "replica")) == 2, "adding it twice makes no second one"
        assert await found(LimpetMemoryService(hold), "other", "replica") == []
        assert await found(service, "u", " ") == []
        await service.add_memory(
            app_name="app", user_id="u", memories=[MemoryEntry(content=content("Prefers tea."), id="m1", author="user")]
        )
        assert await found(service, "u", "tea") == [("user", "Prefers tea.")]
        await service.delete_memory(app_name="app", user_id="u", memory_id="m1")
        assert await found(service, "u", "tea") == []
        event = Event(author="user", content=content("Ann leads the team."))
        await service.add_events_to_memory(app_name="app", user_id="u", events=[event, Event(author="user")])
        assert await found(service, "u", "ann leads") == [("user", "Ann leads the team.")]

    asyncio.run(story())
    assert [memory.content for memory in hold.memory.search("Ann leads")], "other agents find it too"
