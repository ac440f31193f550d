"""The child's side of measuring a store inside its own process: lines of JSON in, times out, until stdin ends.

Only the standard library, because every driver runs in the environment of its peer. Ours is driven the same way.
"""

from __future__ import annotations

import json
import re
import sys
import time
import zlib
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any, Protocol

WIDTH = 256  # numbers of a vector


class Keeper(Protocol):
    """A store as the runs see it. What cannot be done is answered by None and not measured."""

    def load(self, texts: list[str]) -> None: ...
    def add(self, text: str) -> object: ...
    def search(self, query: str) -> str: ...
    def keep(self, text: str) -> tuple[str, str] | None:
        """Keep a big text: its name, and what is shown in its place."""

    def part(self, name: str, line: int) -> str | None:
        """Fifty lines of a big text, from this one on."""


def vector(text: str) -> list[float]:
    """Hashed words in place of a model: what the store costs, and nothing of what a model would find."""
    made = [0.0] * WIDTH
    for word in re.findall(r"\w+", text.lower()):
        made[zlib.crc32(word.encode()) % WIDTH] += 1.0
    length = sqrt(sum(one * one for one in made)) or 1.0
    return [one / length for one in made]


def vectors(texts: list[str]) -> list[list[float]]:
    return [vector(text) for text in texts]


def serve(make: Callable[[Path], Keeper]) -> None:
    """The folder is the first argument. Whatever else a library prints goes to stderr."""
    replies, sys.stdout = sys.stdout, sys.stderr
    keeper = make(Path(sys.argv[1]))
    for line in sys.stdin:
        asked = json.loads(line)
        replies.write(json.dumps(_done(keeper, asked)) + "\n")
        replies.flush()


def _done(keeper: Keeper, asked: dict[str, Any]) -> object:
    if asked["do"] == "load":
        keeper.load(asked["texts"])
        return True
    if asked["do"] == "keep":
        seconds, kept = _timed(lambda: keeper.keep(asked["text"]))
        return None if kept is None else [seconds, *kept]
    if asked["do"] == "part":
        return _timed(lambda: keeper.part(asked["name"], asked["line"]))
    work = keeper.add if asked["do"] == "add" else keeper.search
    found = [_timed(lambda text=text: work(text)) for text in asked["texts"]]  # type: ignore[misc]
    return [[seconds, said if asked["do"] == "search" else None] for seconds, said in found]


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found
