"""The Runner of the Agents SDK, driven by a scripted model, with Holdfast as session, tools and filter."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters import stories
from bench.frameworks.openai_agents import OpenAIAgents
from holdfast.library import Holdfast


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_story(story: Any, hold: Holdfast) -> None:
    asyncio.run(story(OpenAIAgents, hold))
