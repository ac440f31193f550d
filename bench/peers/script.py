"""What the drivers of peers share: the conversation on stdin, the windows on stdout, and the scripted summariser.

Only the standard library, because every driver runs in the environment of its peer. The summariser stands for a model
and is the same function for everyone. How good a model is decides what survives, so it comes in three styles, from one
that skims to one that no model reaches.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

CHARS_PER_TOKEN = 4  # the estimate that the peers use too
FIRST = "first sentences"  # of each message, whoever said it: it skims
SAMPLE = "a sample of lines"  # of those that somebody said, no output of tools: it forgets evenly
EVERY = "every line once"  # that somebody said: it forgets nothing and repeats nothing, until there is no room
STYLES = (FIRST, SAMPLE, EVERY)


class Job(NamedTuple):
    """A conversation in parts; after each part the peer compacts."""

    parts: list[list[dict[str, Any]]]  # messages in the form that the peer reads
    pin: str  # for a peer that has pins
    style: str
    tail: int  # tokens of recent messages that stay
    summary: int  # tokens of what stands for the others


class Said(NamedTuple):
    role: str
    text: str


def job() -> Job:
    return Job(**json.load(sys.stdin))


def answer(windows: dict[str, list[list[Said]]]) -> None:
    """For each way the peer has, by its name: the window after each compaction."""
    json.dump(windows, sys.stdout)


def summarise(previous: str, talk: Iterable[Said], job: Job) -> str:
    """The lines of the summary before and of what is new, thinned out evenly where they are too many."""
    lines = previous.splitlines()
    for role, text in talk:
        if job.style == FIRST:
            lines.append(text.split("\n")[0].split(". ")[0])
        elif role != "tool":
            lines += text.split("\n")
    if job.style == EVERY:
        lines = list(dict.fromkeys(lines))
    return "\n".join(_thinned([line for line in lines if line.strip()], job.summary * CHARS_PER_TOKEN))


def _thinned(lines: list[str], room: int) -> list[str]:
    """As many lines as fit, evenly from the whole."""
    count = len(lines)
    while count and sum(len(line) + 1 for line in _even(lines, count)) > room:
        count = min(count - 1, int(count * 0.98))
    return _even(lines, count)


def _even(lines: list[str], count: int) -> list[str]:
    return [lines[at * len(lines) // count] for at in range(count)]
