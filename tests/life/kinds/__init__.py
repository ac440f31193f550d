"""The kinds of steps that stories are composed of. A new kind of story is one function with `@kind`.

A step gets the world and its own source of chance, so that a story without some of its steps makes the others as they
were. It does something through doors, writes down in `Truth` what was acknowledged, and raises `Broken` when something
that must be true is not.
"""

from __future__ import annotations

# In this order: from a story's number comes which of the kinds, in the order in which they were declared, it has.
from life.kinds import agents, interruptions, surroundings
from life.kinds.steps import KINDS, Kind

__all__ = ["KINDS", "Kind", "agents", "interruptions", "surroundings"]
