"""Five hundred steps in each framework, in a small window: what the store has is what was said, and nothing grows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters import stories
from bench.frameworks.anthropic import AnthropicSDK
from bench.frameworks.google_adk import GoogleADK
from bench.frameworks.langchain import LangChain
from bench.frameworks.openai_agents import OpenAIAgents
from bench.frameworks.pydantic_ai import PydanticAI
from bench.frameworks.script import Do, Say, size
from limpet.api import Limpet

STEPS = 500
LIMIT = 16_000  # tokens


def look(number: int) -> str:
    """Look at one thing."""
    return f"thing {number}: " + "word " * 60


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("drive", [LangChain, PydanticAI, OpenAIAgents, AnthropicSDK, GoogleADK])
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
