"""What the drivers share: a model is a function from what it is shown to what it says or calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from limpet.text import tokens

Tool = Callable[..., Any]


class Shown(NamedTuple):
    """One message of a request."""

    role: str  # system, user, assistant or tool
    text: str


class Say(NamedTuple):
    text: str


class Do(NamedTuple):
    name: str
    arguments: dict[str, Any]


Window = list[Shown]
Model = Callable[[Window], Say | Do]


class Framework(Protocol):
    """An agent of some framework."""

    windows: list[Window]  # what the model was shown, one for each call

    async def run(self, request: str, thread: str) -> str:
        """Work on a request in the conversation of that name; the final answer."""


def text(window: Sequence[Shown]) -> str:
    return "\n".join(shown.text for shown in window)


def size(window: Sequence[Shown]) -> int:
    """Tokens of a request, by the same estimate for everybody."""
    return sum(4 + _count(shown.text) for shown in window)


@lru_cache(maxsize=10_000)
def _count(text: str) -> int:
    return tokens.count(text)
