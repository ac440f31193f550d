"""`python -m bench adapters`: what Limpet costs inside a framework's own loop, and what it saves there.

Every framework runs the same scripted model, with Limpet and without, in turns. A step is what happens between two
model calls. The task reads big records and is then asked for rows from the middle of three of them: without Limpet
they are all in the window, with it the model has to recall what it does not see.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import limpet
from bench.figures import MORE, compare
from bench.frameworks.langchain import LangChain
from bench.frameworks.openai_agents import OpenAIAgents
from bench.frameworks.pydantic_ai import PydanticAI
from bench.frameworks.script import Do, Framework, Model, Say, Window, size, text
from bench.measure import OUT, Sizes, percentile, span, table, verdict
from limpet.api import Limpet

FRAMEWORKS: dict[str, Callable[..., Any]] = {
    "LangChain": LangChain,
    "Pydantic AI": PydanticAI,
    "OpenAI Agents SDK": OpenAIAgents,
}
STEP_GOAL = 0.001  # seconds that a model call may take longer
SHARE_GOAL = 25  # percent of the window without us
LIMIT = 32_000  # tokens
ROWS = 300  # of a record, some 6 kB
REQUEST = "Read all {} records. Then tell me what the rows {} hold."


def run(sizes: Sizes) -> None:
    _steps(sizes.pick(100, 30), sizes.pick(5, 2))
    _task(sizes.pick(100, 40))


# --- what a step costs ------------------------------------------------------------------------------------------------


def look(number: int) -> str:
    """Look something up."""
    return f"entry {number}: nothing new"


class Timed:
    """A model that calls a small tool, and notes when it was asked and when it answered."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.asked: list[int] = []
        self.answered: list[int] = []

    def __call__(self, window: Window) -> Say | Do:
        self.asked.append(time.perf_counter_ns())
        self.left -= 1
        self.answered.append(time.perf_counter_ns())
        return Do("look", {"number": self.left}) if self.left else Say("Done.")

    def between(self) -> list[float]:
        return [(asked - answered) / 1e9 for answered, asked in zip(self.answered, self.asked[1:], strict=False)]


def _steps(steps: int, rounds: int) -> None:
    lines = []
    for name, drive in FRAMEWORKS.items():
        with _opened(f"step {name}") as hold:
            times: dict[bool, list[float]] = {True: [], False: []}
            cpu: dict[bool, list[float]] = {True: [], False: []}
            for turn in range(rounds):
                for ours in (True, False) if turn % 2 else (False, True):
                    model = Timed(steps)
                    agent: Framework = drive(model, [look], hold if ours else None)
                    began = time.process_time()
                    asyncio.run(agent.run("Look everything up.", f"turn {turn}"))
                    cpu[ours].append((time.process_time() - began) / steps)
                    times[ours].append(percentile(model.between(), 0.5))
        with_us, without = min(times[True]), min(times[False])
        added = with_us - without
        goal = verdict(added, STEP_GOAL, f"≤ {span(STEP_GOAL)} more")
        compare(f"{name}: a step with Limpet", with_us, "without", without, goal)
        more = min(cpu[True]) - min(cpu[False])
        lines.append([name, span(without), span(with_us), span(added), goal, span(more), span(_sync())])
    heads = ("framework", "a step without", "with", "added (p50)", "goal", "added CPU", "a sync of this disk")
    table(f"What a step of a framework takes longer, in a conversation of {steps} steps", heads, lines)


def _sync() -> float:
    """What the disk takes to make 4 kB durable: a step keeps what was said before it goes on."""
    import os

    with open(OUT / "sync", "wb") as file:
        marks = []
        for _ in range(30):
            file.write(b"x" * 4096)
            file.flush()
            marks.append(time.perf_counter())
            os.fdatasync(file.fileno())
            marks.append(time.perf_counter())
    return percentile([later - sooner for sooner, later in list(pairwise(marks))[::2]], 0.5)


# --- what it saves ----------------------------------------------------------------------------------------------------


def fetch(number: int) -> str:
    """Fetch one record."""
    return f"record {number}\n" + "\n".join(
        f"row {number}-{row} holds {row * number * 7919 % 9973}" for row in range(ROWS)
    )


def reader(records: int, wanted: Sequence[int]) -> Model:
    """A model that reads all records, and then looks up what it is asked for and does not see."""
    read = iter(range(records))
    lookups = dict.fromkeys(wanted, 3)  # how often it looks for each before it gives up

    def model(window: Window) -> Say | Do:
        number = next(read, None)
        if number is not None:
            return Do("fetch", {"number": number})
        said = re.sub("[«»]", "", text(window))  # recall marks the words it was asked for
        found = {one: re.search(rf"row {one}-150 holds (\d+)", said) for one in wanted}
        for one, match in found.items():
            if match is None and lookups[one]:
                lookups[one] -= 1
                return Do("recall", {"query": f'"row {one}-150 holds"', "kinds": ["outputs"]})
        return Say(", ".join(f"{one}-150: {match[1] if match else 'not found'}" for one, match in found.items()))

    return model


def _task(records: int) -> None:
    lines = []
    wanted = (7, records * 2 // 5, records - 12)
    request = REQUEST.format(records, ", ".join(f"{one}-150" for one in wanted))
    for name, drive in FRAMEWORKS.items():
        answers, peaks = [], []
        for ours in (False, True):
            with _opened(f"task {name} {ours}") as hold:
                given = (hold, {"limit": LIMIT}) if ours else (None, {})
                agent: Framework = drive(reader(records, wanted), [fetch], given[0], **given[1])
                answers.append(asyncio.run(agent.run(request, "task")))
                peaks.append(max(map(size, agent.windows)))
        share = 100 * peaks[1] / peaks[0]
        goal = verdict(share, SHARE_GOAL, f"≤ {SHARE_GOAL} %")
        compare(f"{name}: tokens of the largest request", peaks[1], "without", peaks[0], goal, show="{:,}".format)
        same = "equal" if answers[0] == answers[1] else f"DIFFERENT: {answers}"
        right = sum(one == other for one, other in zip(*(answer.split(", ") for answer in answers), strict=True))
        told = verdict(len(wanted) - right, 0, "all")
        compare(f"{name}: rows told at the end", right, "without", len(wanted), told, show="{:,}".format, better=MORE)
        lines.append([name, f"{peaks[0]:,}", f"{peaks[1]:,}", f"{share:.1f} %", goal, same])
    heads = ("framework", "peak without", "peak with", "share", "goal", "final answers")
    table(f"Tokens of the largest request in a task of {records} big results", heads, lines)


def _opened(name: str) -> Limpet:
    return limpet.open(str(OUT / f"{name.replace(' ', '-')}.db"), project="bench", session=name)
