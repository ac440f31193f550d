"""Five hundred steps in each framework, in a small window: what the store has is what was said, and nothing grows."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from adapters import stories
from adapters.trimming import TRIMMED
from bench.frameworks.anthropic import AnthropicSDK
from bench.frameworks.google_adk import GoogleADK
from bench.frameworks.langchain import LangChain
from bench.frameworks.openai_agents import OpenAIAgents
from bench.frameworks.pydantic_ai import PydanticAI
from bench.frameworks.script import Do, Say, size
from limpet.api import Limpet
from limpet.window.messages import Call, Message

STEPS = 500
LIMIT = 16_000  # tokens
SMALL = 8_000
DRIVERS = [LangChain, PydanticAI, OpenAIAgents, AnthropicSDK, GoogleADK]
# What happens after some steps.
HARD = ("big", "raises", "cancelled", "resumed", "trimmed", "raises", "big", "cancelled", "resumed", "big")


def look(number: int) -> str:
    """Look at one thing."""
    return f"thing {number}: " + "word " * 60


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("drive", DRIVERS)
def test_five_hundred_steps(drive: Any, hold: Limpet) -> None:
    calls = [Do("look", {"number": number}) for number in range(STEPS)]
    agent = drive(stories.noting(stories.steps(*calls, Say("Done."))), [look], hold, limit=LIMIT)
    assert asyncio.run(agent.run("Look at all of it.", "long")) == "Done."
    stored = stories.transcript_of(hold, stories.session_of(agent, "long"))
    called = [call.arguments for message in stored for call in message.calls() if call.name == "look"]
    assert len(called) == STEPS
    assert len(set(called)) == STEPS
    assert sum(len(message.results()) for message in stored) == sum(len(message.calls()) for message in stored)
    assert [message.text() for message in stored if message.text()] == ["Look at all of it.", "Done."]
    assert max(map(size, agent.windows)) <= LIMIT
    assert "compact" in stories.folds(hold)
    assert "rewind" not in stories.folds(hold)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("drive", DRIVERS)
def test_five_hundred_hard_steps(drive: Any, hold: Limpet) -> None:
    """After every fifty something goes wrong, or on elsewhere. The transcript is what happened, once and in order."""
    with ExitStack() as opened:
        asyncio.run(HardRun(drive, hold, opened).story(STEPS // len(HARD)))
    assert "compact" in stories.folds(hold)


@pytest.mark.parametrize("drive", DRIVERS)
def test_some_hard_steps(drive: Any, hold: Limpet) -> None:
    """The same, with a few steps before each."""
    with ExitStack() as opened:
        asyncio.run(HardRun(drive, hold, opened).story(5))


class HardRun:
    def __init__(self, drive: Any, hold: Limpet, opened: ExitStack) -> None:
        self.drive, self.hold, self.opened = drive, hold, opened
        self.script: list[Say | Do] = []
        self.happened: list[tuple[object, ...]] = []  # what the transcript has to be
        self.began = asyncio.Event()
        self.agents: list[Any] = []
        self.begin(drive, hold)

    def begin(self, drive: Any, hold: Limpet) -> None:
        """A process that takes the conversation up: another handle, and what the framework itself keeps."""
        kept: dict[str, Any] = getattr(self.agents[-1], "kept_by_framework", dict)() if self.agents else {}
        model = stories.noting(lambda window: self.script.pop(0))
        self.agents.append(drive(model, [look, stories.fetch, stories.broken, self.wait], hold, limit=SMALL, **kept))

    async def wait(self, number: int) -> str:
        """Wait for ever."""
        self.began.set()
        await asyncio.Event().wait()
        return "never"

    async def story(self, size_of_part: int) -> None:
        for part, kind in enumerate(HARD):
            if kind in ("resumed", "trimmed"):
                hold = self.opened.enter_context(stories.opened_again(self.hold))
                self.begin(TRIMMED[self.drive] if kind == "trimmed" else self.drive, hold)
            steps = [Do("look", {"number": part * size_of_part + number}) for number in range(size_of_part)]
            await self.part(part, kind, steps)
        session = stories.session_of(self.agents[-1], "hard")
        found = told(stories.transcript_of(self.hold, session))
        assert found == self.happened
        for agent in self.agents:
            assert max(map(size, agent.windows)) <= SMALL
        assert "rewind" not in stories.folds(self.hold)

    async def part(self, part: int, kind: str, steps: list[Do]) -> None:
        request, answer = f"Part {part}. Look at all of it.", f"Part {part} is done."
        last = {"big": "fetch", "raises": "broken", "cancelled": "wait"}.get(kind)
        calls = [*steps, *([Do(last, {"number": part})] if last else [])]
        self.script[:] = [*calls, Say(answer)]
        self.happened.append(("user", request))
        for call in calls:
            self.happened.append((call.name, call.arguments["number"]))
            if call.name in ("look", "fetch"):
                self.happened.append(("result", call.name, call.arguments["number"]))
        self.began.clear()
        run = asyncio.create_task(self.agents[-1].run(request, "hard"))
        if kind == "cancelled":
            await self.began.wait()
            run.cancel()
        with suppress(RuntimeError, asyncio.CancelledError):  # some frameworks raise what a tool raised
            assert await run == answer
            self.happened.append(("assistant", answer))


def told(messages: list[Message]) -> list[tuple[object, ...]]:
    """A transcript in a few words. Whether a call that failed has a result, and which, is the framework's to say."""
    calls: dict[str, Call] = {}
    story: list[tuple[object, ...]] = []
    for message in messages:
        for answered in message.results():
            call = calls[answered.call_id]
            if call.name in ("look", "fetch"):
                story.append(("result", call.name, number_of(call.arguments)))
        if message.text():
            story.append((message.role, message.text()))
        calls |= {call.id: call for call in message.calls()}  # two processes may give one id
        story += [(call.name, number_of(call.arguments)) for call in message.calls() if call.name != "add_note"]
    return story


def number_of(arguments: str) -> int:
    number: int = json.loads(arguments)["number"]
    return number
