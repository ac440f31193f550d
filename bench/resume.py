"""`python -m bench resume`: a session that twenty processes take up, and what a step costs as a conversation grows.

Each process goes on until its window was compacted, with the list that such a caller holds: what the window shows, all
that was ever said, or nothing. Times are of the processor.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import limpet
from bench.figures import alone, compare
from bench.measure import OUT, Sizes, percentile, span, table, verdict
from limpet.api import Limpet
from limpet.model import MESSAGE
from limpet.store import Listing
from limpet.window.messages import Call, Message, assistant, result, user
from limpet.window.plan.controller import Compact
from limpet.window.plan.serialise import pack

SMALL_WINDOW = 8_000  # tokens, so that twenty compactions take seconds
TARGET_PERCENT = 45  # of the window, which a compaction must get below
GROWTH_GOAL = 5.0  # percent of bytes beyond what was said
FIRST_STEP_GOAL = 0.030  # seconds at 200,000 tokens
FLAT_GOAL = 2.0  # a step late in a long conversation beside one early in it
SAMPLE = 20  # steps of which the median is taken
WORDS = [f"word{number}" for number in range(4_000)]


def run(sizes: Sizes) -> None:
    rows = [_taken_up(caller, sizes.pick(20, 4)) for caller in ("what the window shows", "all of it", "nothing")]
    table(
        "A session that several processes take up",
        ["the caller holds", "said", "stored", "bytes beyond", "largest"],
        rows,
    )
    _growing(sizes.pick(400_000, 40_000), sizes.pick(200_000, 20_000))


class Talk:
    """A conversation of requests, calls, results and answers."""

    def __init__(self) -> None:
        self.random = random.Random(1)
        self.turns = 0
        self.spoken: list[Message] = []

    def turn(self) -> list[Message]:
        self.turns += 1
        call = Call(f"c{self.turns}", "shell", '{"command": "make"}')
        messages = [
            user(f"Request {self.turns}: {self._words(60)}"),
            assistant(f"Step {self.turns}.", call),
            result(call.id, self._words(150)),
            assistant(f"Answer {self.turns}: {self._words(60)}"),
        ]
        self.spoken += messages
        return messages

    def _words(self, count: int) -> str:
        return " ".join(self.random.choices(WORDS, k=count))


def _opened(name: str) -> Limpet:
    return limpet.open(str(OUT / f"resume-{name}.db"), project="bench", session="resume")


def _taken_up(caller: str, processes: int) -> list[str]:
    talk, largest = Talk(), 0
    for _ in range(processes):
        with _opened(caller.replace(" ", "-")) as hold:
            window = hold.session().window
            messages = _list_of(hold, caller, talk.spoken)
            step = None
            while not isinstance(step, Compact):
                messages += talk.turn()
                step = window.next(messages, limit=SMALL_WINDOW)
            largest = max(largest, step.gauge.used)
    with _opened(caller.replace(" ", "-")) as hold:
        query = Listing((MESSAGE,), "resume", include_done=True, limit=1_000_000)
        entries = hold.store.entries.list(hold.scope, query).entries
    stored = sum(len(entry.content.encode()) for entry in entries)
    spoken = sum(len(pack(message).text.encode()) for message in talk.spoken)
    beyond = 100 * stored / spoken - 100
    most = SMALL_WINDOW * TARGET_PERCENT // 100
    alone(f"bytes beyond what was said, {caller}", f"{beyond:.1f} %", verdict(beyond, GROWTH_GOAL, "≤ 5 %"))
    alone(f"largest window after a compaction, {caller}", f"{largest:,}", verdict(largest, most, f"≤ {most:,}"))
    return [caller, f"{len(talk.spoken):,}", f"{len(entries):,}", f"{beyond:.1f} %", f"{largest:,} of {most:,}"]


def _list_of(hold: Limpet, caller: str, spoken: Sequence[Message]) -> list[Message]:
    window = hold.session().window
    if caller == "all of it":
        return [message._replace() for message in spoken]
    if caller == "nothing":
        return list(window.next([], limit=SMALL_WINDOW).messages)
    return window.messages()


def _growing(most: int, resumed_at: int) -> None:
    """Steps of a conversation that grows without a compaction, and the first step of a process that takes it up."""
    talk, times = Talk(), []
    early, resumed = 0.0, False
    with _opened("growing") as hold:
        window, messages = hold.session().window, list[Message]()
        used = 0
        while used < most:
            messages += talk.turn()
            started = time.process_time()
            used = window.next(messages, limit=10 * most).gauge.used
            times.append(time.process_time() - started)
            if len(times) == SAMPLE:
                early = percentile(times, 0.5)
            if used >= resumed_at and not resumed:
                resumed = True
                _first_step(messages, used, most)
    late = percentile(times[-SAMPLE:], 0.5)
    goal = verdict(late / early, FLAT_GOAL, "≤ 2x")
    compare(f"step at {used:,} tokens", late, f"step {SAMPLE // 2} of the conversation", early, goal)


def _first_step(messages: Sequence[Message], used: int, most: int) -> None:
    for caller, own in (("all of it", [message._replace() for message in messages]), ("nothing", [])):
        times = []
        for _ in range(3):
            with _opened("growing") as hold:
                window = hold.session().window
                started = time.process_time()
                window.next(own, limit=10 * most)
                times.append(time.process_time() - started)
        first = min(times)
        goal = verdict(first, FIRST_STEP_GOAL, f"≤ {span(FIRST_STEP_GOAL)}")
        alone(f"first step of a new process at {used:,} tokens, {caller}", span(first), goal)
