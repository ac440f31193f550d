"""Pydantic AI's own loop, driven by a FunctionModel, with Holdfast as a capability."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters import stories
from bench.frameworks.pydantic_ai import PydanticAI
from holdfast.library import Holdfast


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_story(story: Any, hold: Holdfast) -> None:
    asyncio.run(story(PydanticAI, hold))
