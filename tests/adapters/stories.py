"""Stories that every framework's agent goes through, told by its own loop with a scripted model.

A framework is given by its driver of bench/frameworks: a class called with a model, tools and a memory.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import limpet
from bench.frameworks.script import Do, Framework, Model, Say, Window, size, text
from limpet.adapters import bridge
from limpet.api import Limpet
from limpet.stores.sqlite.lock import WriteLock
from limpet.stores.sqlite.store import SqliteStore
from limpet.window import transcript
from limpet.window.messages import Message
from limpet.window.plan.rules import LOST, unpaired

Driver = Callable[..., Any]
LIMIT = 4_000  # tokens, so that a short story has to be compacted
ROWS = 300  # in a record, which makes it bigger than what stays in the window
MARK = "The replica listens on port 5433."
WARNING = "approaching the token limit"
REQUEST = "Compare all records, and tell me the port of the replica. Never restart the server."


def fetch(number: int) -> str:
    """Fetch one record."""
    return f"record {number}\n" + "\n".join(f"row {number}-{row} holds {row * 7919 % 997}" for row in range(ROWS))


def broken(number: int) -> str:
    """Fetch one record from the broken server."""
    raise RuntimeError(f"record {number} is unreadable")


def steps(*script: Say | Do | Callable[[Window], Say | Do]) -> Model:
    """A model that goes through a script; a step may look at the window first."""
    left = list(script)

    def model(window: Window) -> Say | Do:
        step = left.pop(0)
        return step(window) if callable(step) else step

    return model


def kept(hold: Limpet, thread: str) -> list[Message]:
    """The conversation as the store has it, read by somebody who comes later."""
    return hold.session(thread).window.messages()


def transcript_of(hold: Limpet, session: str) -> list[Message]:
    """Every message that was ever stored for a session, also those that are in no window any more."""
    return [stored.message for stored in transcript.messages(hold.context(session))]


@contextmanager
def opened_again(hold: Limpet) -> Iterator[Limpet]:
    """The same store, as another process would open it."""
    with limpet.open(hold.store.place, folder=hold.root) as own:
        yield own


def session_of(agent: Any, thread: str) -> str:
    """The session of a conversation of this framework."""
    naming = getattr(agent, "session_of", None)
    return thread if naming is None else str(naming(thread))


def folds(hold: Limpet) -> list[str]:
    return [event.operation for event in hold.history(kind="fold", limit=500)]


async def notes_survive_compaction(drive: Driver, hold: Limpet) -> None:
    """Many records: the window stays small, what was written down stays, and a record can be read again."""
    seen: dict[str, str] = {}

    def look_back(window: Window) -> Do:
        reference = re.search(r"hold://([0-9a-f]{12})|Output cached: ([0-9a-f]{12})", seen["window"])
        assert reference is not None
        return Do("read_output", {"id": reference[1] or reference[2], "match": "row 3-7 "})

    def remember(window: Window) -> Do:
        # The last result is the third record, as a reference with a preview.
        seen["window"] = window[-1].text if "Output cached" in window[-1].text else window[-2].text
        return Do("fetch", {"number": 4})

    def answer(window: Window) -> Say:
        found = re.search(r"row 3-7 holds (\d+)", text(window))
        port = re.search(r"port (\d+)", text(window))
        assert found is not None
        assert port is not None
        return Say(f"Row 3-7 is {found[1]}, the port is {port[1]}.")

    writes = [Do("update_notepad", {"operation": "append", "content": f"{MARK}\n"}), Do("add_note", {"content": MARK})]
    begins: list[Any] = [Do("fetch", {"number": 3}), remember]
    talks = [Do("fetch", {"number": number}) for number in range(5, 60)]
    agent: Framework = drive(steps(*writes, *begins, *talks, look_back, answer), [fetch], hold, limit=LIMIT)
    told = await agent.run(REQUEST, "records")
    assert told == f"Row 3-7 is {7 * 7919 % 997}, the port is 5433."
    assert "compact" in folds(hold)
    assert len(agent.windows) == len(talks) + 6
    assert max(map(size, agent.windows)) <= LIMIT
    assert all(MARK in text(window) for window in agent.windows[1:])
    assert all(REQUEST in text(window) for window in agent.windows)
    assert not any("row 3-150 " in text(window) for window in agent.windows), "no big result is ever shown whole"
    assert [note.content for note in hold.session(session_of(agent, "records")).notes.list()] == [MARK]
    assert kept(hold, session_of(agent, "records"))[-1].text() == told


async def a_handoff_arrives_once(drive: Driver, hold: Limpet) -> None:
    """What the first run leaves, the second reads before all else, and the third not any more."""
    left = Do("write_session_handoff", {"content": "Records 1 to 3 are done; go on with 4."})
    agent: Framework = drive(steps(left, Say("Stopped."), Say("Going on."), Say("New.")), [fetch], hold)
    await agent.run("Do the records.", "monday")
    assert "go on with 4" not in text(agent.windows[0])
    await agent.run("Go on.", "tuesday")
    assert "go on with 4" in agent.windows[2][0].text.split("Notes: write down")[0]
    await agent.run("What now?", "wednesday")
    assert "go on with 4" not in text(agent.windows[3])


async def a_call_that_never_came_back_is_known(drive: Driver, hold: Limpet) -> None:
    """A run is cancelled in a tool: what comes later is told of the call, and that nobody knows its outcome."""
    began = asyncio.Event()

    async def wait(number: int) -> str:
        """Wait for ever."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    first = drive(steps(Do("fetch", {"number": 1}), Do("wait", {"number": 2})), [fetch, wait], hold)
    run = asyncio.create_task(first.run("Fetch, and wait.", "t"))
    await began.wait()
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
    kept_by_framework: dict[str, Any] = getattr(first, "kept_by_framework", dict)()
    with opened_again(hold) as own:
        script = steps(Say("So be it."), Do("wait_no_more", {"number": 3}), Say("Done."))

        def wait_no_more(number: int) -> str:
            """Do not wait."""
            return "at once"

        later = drive(script, [fetch, wait, wait_no_more], own, **kept_by_framework)
        await later.run("What now?", "t")
        await later.run("And then?", "t")
        assert [text(window).count(LOST) for window in later.windows] == [1, 1, 1]
        assert all(re.search(r'assistant.*wait \{"number": 2\}', repr(window)) for window in later.windows)
    stored = transcript_of(hold, session_of(later, "t"))
    assert [call.name for message in stored for call in message.calls()] == ["fetch", "wait", "wait_no_more"]
    said = ["Fetch, and wait.", "What now?", "So be it.", "And then?", "Done."]
    assert [message.text() for message in stored if message.text()] == said
    assert folds(hold) == []


async def a_run_that_died_is_known(drive: Driver, hold: Limpet) -> None:
    await _after_a_run_that_died(drive, hold, "Did you move it? Tell me the state.")


async def a_run_that_died_is_known_when_it_is_asked_for_again(drive: Driver, hold: Limpet) -> None:
    await _after_a_run_that_died(drive, hold, "Fetch, and move the money.")


async def _after_a_run_that_died(drive: Driver, hold: Limpet, again: str) -> None:
    """A process dies in the second call of a run. What is asked next, the same or something else, knows of both."""
    began = asyncio.Event()

    async def move(number: int) -> str:
        """Move the money."""
        if began.is_set():
            return "moved"
        began.set()
        await asyncio.Event().wait()
        return "never"

    first = drive(
        steps(Say("Good morning to you."), Do("fetch", {"number": 1}), Do("move", {"number": 2})),
        [fetch, move],
        hold,
    )
    await first.run("Good morning. Who are you?", "died")
    run = asyncio.create_task(first.run("Fetch, and move the money.", "died"))
    await began.wait()
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
    kept_by_framework: dict[str, Any] = getattr(first, "kept_by_framework", dict)()
    with opened_again(hold) as own:
        script = steps(Do("move", {"number": 3}), Say("So be it."), Say("Done."))
        later = drive(script, [fetch, move], own, **kept_by_framework)
        await later.run(again, "died")
    with opened_again(hold) as own:
        last = drive(steps(Say("Done.")), [fetch, move], own, **getattr(later, "kept_by_framework", dict)())
        await last.run("And then?", "died")
    for window in (*later.windows, *last.windows):
        assert text(window).count(LOST) == 1
        assert len(re.findall(r'fetch {"number": ?1}', repr(window))) == 1
        assert len(re.findall(r'move {"number": ?2}', repr(window))) == 1
    stored = transcript_of(hold, session_of(later, "died"))
    arguments = [json.loads(call.arguments)["number"] for message in stored for call in message.calls()]
    assert arguments == [1, 2, 3]
    assert sum(len(message.results()) for message in stored) == 2
    assert [message.text() for message in stored if message.text()][-3:] == ["So be it.", "And then?", "Done."]


async def our_errors_are_results(drive: Driver, hold: Limpet) -> None:
    """A call that Limpet refuses is told to the model, in the words of every door."""
    agent: Framework = drive(steps(Do("add_note", {"content": ""}), lambda window: Say(text(window))), [fetch], hold)
    assert "content" in await agent.run("Note nothing.", "empty")
    assert hold.session(session_of(agent, "empty")).notes.list() == ()


async def the_conversation_goes_on(drive: Driver, hold: Limpet) -> None:
    """A second request in the same conversation: nothing is kept twice, nothing is left behind."""
    agent: Framework = drive(steps(Do("fetch", {"number": 1}), Say("One."), Say("Two.")), [fetch], hold)
    await agent.run("First.", "talk")
    await agent.run("Second.", "talk")
    said = [message.text() for message in kept(hold, session_of(agent, "talk")) if message.text()]
    assert said == ["First.", "One.", "Second.", "Two."]
    assert folds(hold) == []


async def a_cancelled_run_leaves_no_half_pair(drive: Driver, hold: Limpet) -> None:
    """Cancelled inside a tool: nothing but the call that was running lacks its other half, and the model is told."""
    began, never = asyncio.Event(), asyncio.Event()

    async def wait(number: int) -> str:
        """Wait for ever."""
        began.set()
        await never.wait()
        return "never"

    agent: Framework = drive(
        steps(Do("fetch", {"number": 1}), Do("wait", {"number": 2}), Say("Here again.")), [fetch, wait], hold
    )
    run = asyncio.create_task(agent.run("Wait.", "cancelled"))
    await began.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    stored = kept(hold, session_of(agent, "cancelled"))
    assert any(message.results() for message in stored), "what was done before is kept"
    assert await agent.run("Go on.", "cancelled") == "Here again."
    said = kept(hold, session_of(agent, "cancelled"))
    running = {call.id for message in said for call in message.calls() if call.name == "wait"}
    assert unpaired(said) <= running
    assert not unpaired(said) or LOST in text(agent.windows[-1])


async def said_is_kept_once(drive: Driver, hold: Limpet) -> None:
    """Several processes in turn, a window that is too small: what the store has is what was said, once, in order."""
    said: list[str] = []
    session = ""
    options: dict[str, Any] = {}
    for process in range(3):
        words = [f"Answer {process}-{turn}. " + "word " * 150 for turn in range(8)]
        with opened_again(hold) as own:
            agent: Framework = drive(noting(steps(*script_of(words))), [fetch], own, limit=LIMIT, **options)
            for turn, answer in enumerate(words):
                request = f"Request {process}-{turn}. " + "name " * 150
                assert await agent.run(request, "long") == answer
                said += [request, answer]
        assert max(map(size, agent.windows)) <= LIMIT
        options, session = getattr(agent, "kept_by_framework", dict)(), session_of(agent, "long")
    stored = transcript_of(hold, session)
    assert [message.text().strip() for message in stored if message.text()] == [words.strip() for words in said]
    calls = [call.id for message in stored for call in message.calls()]
    assert sum(len(message.results()) for message in stored) == len(calls)
    assert "compact" in folds(hold)
    assert "rewind" not in folds(hold)


def noting(model: Model) -> Model:
    """A model that answers the warning before a compaction with a note, as it is asked to."""
    return lambda window: Do("add_note", {"content": "Saved."}) if WARNING in text(window[-1:]) else model(window)


def script_of(words: list[str]) -> list[Say | Do | Callable[[Window], Say | Do]]:
    """Each answer, every second one after a call."""
    script: list[Say | Do | Callable[[Window], Say | Do]] = []
    for turn, answer in enumerate(words):
        script += [Do("fetch", {"number": turn})] if turn % 2 else []
        script.append(Say(answer))
    return script


async def a_warning_takes_no_answer_away(drive: Driver, hold: Limpet, turns: int = 25) -> None:
    """A model that is warned, and says so without a call. That turn was for saving; the request is still answered."""

    def model(window: Window) -> Say | Do:
        if WARNING in window[-1].text:
            return Say("I have nothing to save.")
        requests = [shown.text for shown in window if shown.text.startswith("Turn")]
        return Say(f"Answer to {requests[-1].split('.')[0]}. " + "word " * 150)

    agent: Framework = drive(model, [], hold, limit=LIMIT)
    for turn in range(turns):
        answer = await agent.run(f"Turn {turn}. " + "name " * 100, "warned")
        assert answer.split(".")[0] == f"Answer to Turn {turn}"
    warned = sum(WARNING in text(window) for window in agent.windows)
    assert warned >= 2
    stored = [message.text().split(".")[0] for message in transcript_of(hold, session_of(agent, "warned"))]
    talk = [words for turn in range(turns) for words in (f"Turn {turn}", f"Answer to Turn {turn}")]
    assert [words for words in stored if "save" not in words] == talk
    assert len(stored) <= len(talk) + warned
    assert max(map(size, agent.windows)) <= LIMIT


async def many_talk_at_once(drive: Driver, hold: Limpet) -> None:
    """More conversations at once than an adapter keeps open: each is kept once, and none gets into another."""
    turns, threads = 3, [f"thread{number}" for number in range(8)]

    def model(window: Window) -> Say | Do:
        requests = re.findall(r"thread\d+ turn \d+", text([shown for shown in window if shown.role == "user"]))
        return Say(f"Answer to {requests[-1]}.")

    agent: Framework = drive(model, [fetch], hold)

    async def talk(thread: str) -> None:
        for turn in range(turns):
            assert await agent.run(f"{thread} turn {turn}", thread) == f"Answer to {thread} turn {turn}."

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bridge, "ADAPTER_SESSIONS", 2)
        await asyncio.gather(*map(talk, threads))
    for thread in threads:
        stored = [message.text() for message in transcript_of(hold, session_of(agent, thread))]
        requests = [f"{thread} turn {turn}" for turn in range(turns)]
        assert stored == [words for request in requests for words in (request, f"Answer to {request}.")]


async def a_tool_that_raised_is_not_the_end(drive: Driver, hold: Limpet) -> None:
    """Some frameworks end the run and keep the call without a result. The talk goes on, and is kept once."""
    turns = 8

    def model(window: Window) -> Say | Do:
        requests = re.findall(r"Turn \d+", text([shown for shown in window if shown.role == "user"]))
        if requests:
            return Say(f"Answer to {requests[-1]}.")
        return Say("So be it.") if any(shown.role == "tool" for shown in window) else Do("broken", {"number": 1})

    agent: Framework = drive(model, [broken], hold)
    with suppress(RuntimeError):
        await agent.run("Fetch.", "raised")
    for turn in range(turns):
        assert await agent.run(f"Turn {turn}.", "raised") == f"Answer to Turn {turn}."
    stored = [message.text() for message in transcript_of(hold, session_of(agent, "raised")) if message.text()]
    talk = [words for turn in range(turns) for words in (f"Turn {turn}.", f"Answer to Turn {turn}.")]
    assert [words for words in stored if words not in ("Fetch.", "So be it.")] == talk
    assert len(stored) <= len(talk) + 2


async def a_trimmed_talk_is_kept_once(drive: Driver, hold: Limpet, turns: int = 20, **options: Any) -> None:
    """The framework sends the last messages only: the store has all of them, once, and the model gets the trimmed."""
    script: list[Say | Do] = []
    for turn in range(turns):
        script += [Do("fetch", {"number": turn // 4})] if turn % 2 else []  # each one twice
        script.append(Say(f"Answer {turn}."))
    agent: Framework = drive(steps(*script), [fetch], hold, **options)
    for turn in range(turns):
        assert await agent.run(f"Turn {turn}.", "trimmed") == f"Answer {turn}."
    messages = transcript_of(hold, session_of(agent, "trimmed"))
    stored = [message.text() for message in messages if not (message.calls() or message.results())]
    fetched = [json.loads(call.arguments)["number"] for message in messages for call in message.calls()]
    assert fetched == [turn // 4 for turn in range(turns) if turn % 2]
    assert sum(len(message.results()) for message in messages) == len(fetched)
    talk = [words for turn in range(turns) for words in (f"Turn {turn}.", f"Answer {turn}.")]
    assert [words for words in stored if words.startswith(("Turn", "Answer"))] == talk
    assert len(stored) - len(talk) <= turns, "and what the framework made of them"
    last = text(agent.windows[-1])
    assert f"Answer {turns - 2}." in last
    assert "Answer 3." not in last


async def a_cancelled_talk_goes_on(drive: Driver, hold: Limpet) -> None:
    """Cancelled inside a tool; then many turns. The framework may keep the call without a result for ever."""
    began, never = asyncio.Event(), asyncio.Event()

    async def wait(number: int) -> str:
        """Wait for ever."""
        began.set()
        await never.wait()
        return "never"

    turns = 8
    answers = [Say(f"Answer {turn}.") for turn in range(turns)]
    agent: Framework = drive(steps(Do("wait", {"number": 2}), *answers), [wait], hold)
    run = asyncio.create_task(agent.run("Wait.", "cancelled"))
    await began.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    for turn in range(turns):
        assert await agent.run(f"Turn {turn}.", "cancelled") == f"Answer {turn}."
    stored = [message.text() for message in transcript_of(hold, session_of(agent, "cancelled")) if message.text()]
    talk = [words for turn in range(turns) for words in (f"Turn {turn}.", f"Answer {turn}.")]
    assert [words for words in stored if words != "Wait."] == talk
    assert "Turn 0." in text(agent.windows[-1])


async def a_store_in_trouble_costs_no_answer(drive: Driver, hold: Limpet) -> None:
    """Another process locks the store while the model answers: the answer is delivered, and stored with the next."""
    place = os.path.join(hold.root, "busy.db")
    lock = WriteLock(place, "the store")

    def while_locked(window: Window) -> Say:
        lock.acquire(1)
        return Say("Paid for.")

    with Limpet(SqliteStore(place, lock_wait=0.5), hold.scope) as busy:
        busy.session("before").handoff.write("Go on with record 4.")  # marking it as used is a write too
        agent: Framework = drive(steps(while_locked, Say("And again.")), [fetch], busy)
        with logged() as warnings:
            assert await agent.run("First.", "locked") == "Paid for."
        lock.release()
        lock.close()
        assert any("has held the write lock" in line for line in warnings), "the person is told"
        assert await agent.run("Second.", "locked") == "And again."
        said = [message.text() for message in kept(busy, session_of(agent, "locked"))]
        assert said == ["First.", "Paid for.", "Second.", "And again."]


@contextmanager
def logged() -> Iterator[list[str]]:
    """What Limpet logs."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("limpet")
    log.addHandler(handler)
    try:
        yield lines
    finally:
        log.removeHandler(handler)


STORIES = (
    said_is_kept_once,
    many_talk_at_once,
    a_tool_that_raised_is_not_the_end,
    a_cancelled_talk_goes_on,
    a_store_in_trouble_costs_no_answer,
    notes_survive_compaction,
    a_handoff_arrives_once,
    a_run_that_died_is_known,
    a_run_that_died_is_known_when_it_is_asked_for_again,
    our_errors_are_results,
    the_conversation_goes_on,
    a_cancelled_run_leaves_no_half_pair,
)
