"""`python -m bench survival`: what survives ten compactions, what a compaction costs, and what the prompt cache keeps.

The script of tests/journeys/survival.py plants 200 items, half of them never written to the notepad. Beside ours, two
floors get the same conversation and the same size of window: one that keeps the newest messages, and one that folds the
rest into a summary of the newest sentences, as a summariser that forgets evenly would. With `--peers`, other tools'
compaction gets the same conversation too. Then come stories in eight languages (bench/stories.py); with `--story FILE`
only that story.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import limpet
from bench import stories
from bench.figures import MORE, alone, compare
from bench.measure import OUT, Sizes, percentile, ratio, span, table, verdict
from limpet.api import Limpet
from limpet.text import tokens
from limpet.window.messages import Call, Message, assistant, result, user
from limpet.window.plan.context import MARK
from limpet.window.plan.controller import Compact, Warn
from limpet.window.plan.counts import Meter
from limpet.window.plan.facts import words
from limpet.window.plan.serialise import pack

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from journeys.survival import Planted, Run, found, script

LIMIT = 12_000  # small, so that ten compactions take seconds
REBUILD_TOKENS = 200_000
REBUILD_GOAL = 0.150  # seconds


def run(sizes: Sizes) -> None:
    if sizes.story:
        stories.run(sizes)
        return
    with _opened("survival") as hold:
        story = _survival(hold)
        if sizes.peers:
            from bench.peers import compaction

            compaction.run(story)
    with _opened("rebuild") as hold:
        _rebuild(hold, sizes.pick(REBUILD_TOKENS, 40_000))
    with _opened("cache") as hold:
        _cache(hold, sizes.pick(200, 40))
    stories.run(sizes)


def _opened(name: str) -> Limpet:
    return limpet.open(str(OUT / f"{name}.db"), project="bench", session=name)


# --- survival ---------------------------------------------------------------------------------------------------------


def _survival(hold: Limpet) -> Run:
    story = Run(hold.session(), limit=LIMIT, items=200)
    rows: list[list[str]] = []

    def seen(step: Compact) -> None:
        count = story.count()
        rows.append(
            [
                str(len(rows) + 1),
                str(len(story.talk)),
                f"{step.gauge.used:,}",
                "-" if step.score is None else f"{step.score:.0%}",
                str(count.planted),
                f"{count.in_window / count.planted:.0%}",
                f"{count.kept:.0%}",
            ]
        )

    story.compactions(10, seen)
    heads = ("compaction", "messages", "tokens after", "probes", "planted", "in the window", "in it or one recall away")
    table(f"Ten compactions of a window of {LIMIT:,} tokens", heads, rows)
    lost = len(story.problems)
    print(f"\npin, notepad, last request and pairs: {len(story.steps):,} requests checked, {lost} without (goal: 0)")
    print(f"warnings: {story.warnings} for 10 compactions (goal: 10)")
    final = story.count()
    print(f"kept after the tenth: {verdict(1 - final.kept, 0.05, f'{final.kept:.1%}, goal 95 %')}")
    _goals(story)
    lines = [
        ["Limpet", f"{final.in_window / final.planted:.0%}", f"{final.kept:.0%}"],
        *([name, *_floor(story.talk, story.planted, keep)] for name, keep in FLOORS.items()),
    ]
    table("The same conversation, the same window", ("keeper", "in the window", "in it or one recall away"), lines)
    return story


def _floor(talk: list[Message], planted: list[Planted], keep: Callable[[list[Message]], str]) -> list[str]:
    """What a keeper without a store has left: whatever is not in its window is gone."""
    window = keep(talk)
    share = f"{len(found(planted, window)) / len(planted):.0%}"
    return [share, share]


def _goals(story: Run) -> None:
    final = story.count()
    requests = f"{len(story.steps):,} requests"
    lost = len(story.problems)
    alone(f"without pin, notepad, last request or pairs, of {requests}", str(lost), verdict(lost, 0, "0"))
    alone("warnings for ten compactions", str(story.warnings), verdict(abs(story.warnings - 10), 0, "10"))
    goal = verdict(1 - final.kept, 0.05, "≥ 95 %")
    for name, keep in FLOORS.items():
        theirs = len(found(story.planted, keep(story.talk))) / len(story.planted)
        what = "items in the window or one recall away after ten"
        compare(what, final.kept, name, theirs, goal, show="{:.0%}".format, better=MORE)
        goal = ""  # said once
        here = final.in_window / final.planted
        compare("items in the window after ten", here, name, theirs, show="{:.0%}".format, better=MORE)


def _newest(talk: list[Message]) -> str:
    kept: list[Message] = []
    meter, room = Meter(), LIMIT * 45 // 100
    for message in reversed(talk):
        room -= meter.message(message)
        if room < 0:
            break
        kept.append(message)
    return words(message for message in reversed(kept) if message.role != "tool")


def _forgetful(talk: list[Message]) -> str:
    """Ten rounds, each of which folds all but the newest messages into the last sentences that fit the summary."""
    budget, summary, recent = LIMIT // 10, "", ""
    size = max(1, len(talk) // 10)
    for at in range(0, len(talk), size):
        said = words(message for message in talk[at : at + size] if message.role != "tool")
        sentences = f"{summary}\n{said}".split("\n")
        kept: list[str] = []
        for sentence in reversed(sentences):
            if tokens.count("\n".join([*kept, sentence])) > budget:
                break
            kept.append(sentence)
        summary, recent = "\n".join(reversed(kept)), said
    return f"{summary}\n{recent}"


FLOORS = {"newest messages only": _newest, "newest messages and a summary that forgets": _forgetful}


# --- what it costs ----------------------------------------------------------------------------------------------------


def _rebuild(hold: Limpet, size: int) -> None:
    """A history of so many tokens, step by step as a loop brings it, and then its compaction."""
    limit = size * 100 // 81  # the warning comes when the history is there
    window = hold.session().window
    talk: list[Message] = [user("Read all parts.")]
    turns = script(400, lines=60)
    times: list[float] = []
    by_part: dict[int, list[float]] = {}
    while True:
        began = time.perf_counter()
        step = window.next(talk, limit=limit)
        took = time.perf_counter() - began
        if isinstance(step, Warn):
            break
        times.append(took)
        by_part.setdefault(len(talk) // 100, []).append(took)
        talk = [*talk, *_unclearable(next(turns).talk)]
    talk = [*talk, assistant("My notepad is up to date.")]
    before = step.gauge.used
    began, cpu = time.perf_counter(), time.process_time()
    step = window.next(talk, limit=limit)
    took, spent = time.perf_counter() - began, time.process_time() - cpu
    if not isinstance(step, Compact):
        print(f"no compaction happened but {type(step).__name__}")
        return
    parts = [percentile(values, 0.5) for values in by_part.values()]
    table(
        f"A history of {before:,} tokens in {len(talk):,} messages",
        ("what", "time"),
        [
            ["deciding, folding, verifying and keeping the fold", span(took)],
            ["the same, CPU only", span(spent)],
            ["a step without it, median", span(percentile(times, 0.5))],
            ["a step at the beginning of the history, median", span(parts[0])],
            ["a step at its end, median", span(parts[-1])],
            ["end to beginning", ratio(parts[-1], parts[0])],
        ],
    )
    goal = verdict(took, REBUILD_GOAL, f"≤ {span(REBUILD_GOAL)}")
    compare(f"a compaction of {before:,} tokens", took, "a step without one", percentile(times, 0.5), goal)
    compare("a step at the end of that history", parts[-1], "one at its beginning", parts[0])
    print(f"\ncompaction: {goal}; score {step.score or 0:.0%}")


def _unclearable(talk: list[Message]) -> list[Message]:
    """The same with results as many short ones, which are not worth clearing: so the history really gets that long."""
    short: list[Message] = []
    for message in talk:
        if not message.results():
            short.append(message if not message.calls() else assistant(message.text()))
            continue
        (one,) = message.results()
        lines = words([message]).split("\n")
        for at in range(0, len(lines), 5):
            call = Call(f"{one.call_id}-{at}", "shell", json.dumps({"command": f"sed -n {at},{at + 4}p part.txt"}))
            short += [assistant("", call), result(call.id, "\n".join(lines[at : at + 5]))]
    return short


# --- the prompt cache -------------------------------------------------------------------------------------------------


def _cache(hold: Limpet, turns: int) -> None:
    """Requests with an edit of the notepad before each: how much of one is the beginning of the next, in bytes."""
    session = hold.session()
    talk: list[Message] = [user("Read all parts.")]
    story = script(50)
    same = 0
    shares: list[float] = []
    before = b""
    for number in range(turns):
        session.notepad.append(f"- [x] part {number}\n")
        step = session.window.next(talk, limit=10_000_000)
        sent = _bytes(step.messages)
        stable = before[: before.rfind(MARK.encode())]
        if before:
            same += sent.startswith(stable)
            shares.append(len(stable) / len(sent))
        before = sent
        talk = [*talk, *next(story).talk]
    broken = turns - 1 - same
    alone(f"prompt caches lost by editing the notepad, of {turns - 1}", str(broken), verdict(broken, 0, "0"))
    print(f"\n{turns} requests, the notepad edited before each: what stood before the notepad was the beginning of the")
    print(f"next request in {same} of {turns - 1} cases (goal: all); median {percentile(shares, 0.5):.1%} of its bytes")


def _bytes(messages: tuple[Message, ...]) -> bytes:
    return b"".join((kept := pack(message)).text.encode() + kept.body.encode() for message in messages)
