"""The Runner of the Agents SDK, driven by a scripted model, with Limpet as session, tools and filter."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, MaxTurnsExceeded, Runner, function_tool
from agents.memory import Session
from hypothesis import given, settings
from hypothesis import strategies as st

import limpet
from adapters import stories
from bench.frameworks.openai_agents import OpenAIAgents, Scripted
from bench.frameworks.script import Do, Say, text
from limpet.adapters.openai_agents import LimpetSession
from limpet.api import Limpet
from limpet.window.plan.rules import unpaired
from profiles import fewer_examples


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_story(story: Any, hold: Limpet) -> None:
    asyncio.run(story(OpenAIAgents, hold))


def said(role: str, words: str) -> Any:
    return {"role": role, "content": words}


def call(number: int) -> Any:
    return {"type": "function_call", "call_id": f"c{number}", "name": "fetch", "arguments": "{}"}


def output(number: int, words: str = "ok") -> Any:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": words}


def test_the_session_is_one_of_the_sdk(hold: Limpet) -> None:
    async def story() -> None:
        session = LimpetSession(hold, "s")
        assert isinstance(session, Session)
        assert await session.get_items() == []
        assert await session.pop_item() is None
        items = [said("user", "Hi."), said("assistant", "Hello."), call(1), output(1)]
        await session.add_items([])
        await session.add_items(items[:1])
        await session.add_items(items[1:])
        assert await session.get_items() == items
        assert await session.get_items(limit=2) == items[2:]
        assert await session.get_items(limit=0) == []
        assert await LimpetSession(hold, "s").get_items() == items, "another process sees the same"
        assert await LimpetSession(hold, "other").get_items() == []
        assert await session.pop_item() == items[3]
        assert await session.get_items() == items[:3]
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items(items[:1])
        assert await LimpetSession(hold, "s").get_items() == items[:1]

    asyncio.run(story())


STEPS = st.one_of(
    st.lists(st.integers(0, 9).map(lambda number: said("user", f"word {number}")), max_size=3),
    st.just("pop"),
    st.just("clear"),
    st.integers(1, 3).map(lambda number: [call(number), output(number)]),
)


@settings(max_examples=fewer_examples(2))
@given(steps=st.lists(STEPS, max_size=10))
def test_the_session_is_a_list_that_stays(steps: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    async def story(hold: Limpet) -> None:
        session = LimpetSession(hold, "s")
        model: list[Any] = []
        for step in steps:
            if step == "pop":
                assert await session.pop_item() == (model.pop() if model else None)
            elif step == "clear":
                model.clear()
                await session.clear_session()
            else:
                model += step
                await session.add_items(step)
            assert await session.get_items() == model

    folder = tmp_path_factory.mktemp("items")
    with limpet.open(str(folder / "x.db"), folder=str(folder)) as hold:
        asyncio.run(story(hold))


def test_half_a_pair_is_not_stored(hold: Limpet) -> None:
    async def story() -> None:
        session = LimpetSession(hold, "s")
        thought: Any = {"type": "reasoning", "id": "rs_1", "summary": []}
        await session.add_items([said("user", "Go."), thought, call(1)])
        assert await session.get_items() == [said("user", "Go."), thought, call(1)]
        assert await LimpetSession(hold, "s").get_items() == [said("user", "Go.")]
        await session.add_items([output(1)])
        assert await LimpetSession(hold, "s").get_items() == [said("user", "Go."), thought, call(1), output(1)]

    asyncio.run(story())


def test_secrets_in_what_a_tool_said_are_masked_in_the_store(hold: Limpet, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

    async def story() -> None:
        session = LimpetSession(hold, "s")
        await session.add_items([call(1), output(1, f"token {secret}")])
        assert secret not in str(await LimpetSession(hold, "s").get_items())

    asyncio.run(story())
    assert not any(secret.encode() in path.read_bytes() for path in tmp_path.glob("limpet.db*"))


def test_a_tool_that_fails_is_told_as_the_sdk_tells_it(hold: Limpet) -> None:
    async def told(memory: Limpet | None) -> str:
        agent = OpenAIAgents(stories.steps(Do("broken", {"number": 1}), Say("So be it.")), [stories.broken], memory)
        await agent.run("Fetch.", "t")
        (result,) = [shown.text for shown in agent.windows[1] if shown.role == "tool"]
        return result

    assert asyncio.run(told(hold)) == asyncio.run(told(None))


def test_a_run_that_takes_too_long_ends_as_the_sdk_ends_it(hold: Limpet) -> None:
    memory = LimpetSession(hold, "t")
    model = Scripted(stories.steps(*(Do("fetch", {"number": number}) for number in range(9))))
    agent = Agent(name="Scripted", model=model, tools=[*memory.tools, function_tool(stories.fetch)])
    with pytest.raises(MaxTurnsExceeded):
        asyncio.run(Runner.run(agent, "Go.", session=memory, run_config=memory.run_config(), max_turns=3))
    assert not unpaired(stories.kept(hold, "t"))


def test_instructions_stand_between_the_handoff_and_how_to_use_the_tools(hold: Limpet) -> None:
    hold.session("before").handoff.write("Go on with record 4.")
    memory = LimpetSession(hold.session("t"))
    model = Scripted(stories.steps(Say("Hi.")))
    agent = Agent(name="Scripted", model=model, instructions="Be brief.", tools=list(memory.tools))
    asyncio.run(Runner.run(agent, "Hello.", session=memory, run_config=memory.run_config()))
    first = model.windows[0][0].text
    assert first.index("Go on with record 4.") < first.index("Be brief.") < first.index("Notes (add_note")
    assert memory.session_id == "t"


def test_the_filter_works_without_the_session(hold: Limpet) -> None:
    """The application keeps the conversation; we make the window, and see by the answers that requests were sent."""
    hold.session("before").handoff.write("Go on with record 4.")
    memory = LimpetSession(hold, "t")
    model = Scripted(stories.steps(Do("fetch", {"number": 1}), Say("One."), Say("Two.")))
    agent = Agent(name="Scripted", model=model, tools=[*memory.tools, function_tool(stories.fetch)])
    first = asyncio.run(Runner.run(agent, "First.", run_config=memory.run_config()))
    again = [*first.to_input_list(), said("user", "Second.")]
    asyncio.run(Runner.run(agent, again, run_config=memory.run_config()))
    assert "Output cached" in text(model.windows[1])
    assert stories.folds(hold) == []
    assert [message.text() for message in stories.kept(hold, "t") if message.text()] == ["First.", "One.", "Second."]
    fresh = LimpetSession(hold, "new")
    asyncio.run(fresh.clear_session())
    assert hold.session("new").context().find("Go on with record 4.") == -1, "the handoff was used"
