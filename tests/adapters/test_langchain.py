"""LangChain's own loop, driven by a scripted chat model, with Holdfast as its middleware."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters import stories
from bench.frameworks.langchain import LangChain, LangChainSync
from holdfast.library import Holdfast

CANCEL = stories.a_cancelled_run_leaves_no_half_pair


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_story(story: Any, hold: Holdfast) -> None:
    asyncio.run(story(LangChain, hold))


@pytest.mark.parametrize("story", [one for one in stories.STORIES if one is not CANCEL], ids=lambda one: one.__name__)
def test_story_without_async(story: Any, hold: Holdfast) -> None:
    asyncio.run(story(LangChainSync, hold))
