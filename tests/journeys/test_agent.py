"""The reference loop, run end to end over a real store with a scripted model: the window, tasks and sub-sessions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet import errors
from limpet.agent import Agent, Limits, Reply
from limpet.api import Limpet, Tool
from limpet.model import MESSAGE
from limpet.store import Listing
from limpet.window import transcript
from limpet.window.messages import ASSISTANT, TOOL, Call, Message, Text, assistant
from limpet.window.plan.counts import ESTIMATE, Meter, exact
from limpet.window.plan.rules import LOST

Move = str | Message | Callable[[Sequence[Message]], "Move"]


class Script:
    """A model that says what it is told to, move by move, and keeps every request it was sent."""

    def __init__(self, *moves: Move) -> None:
        self.moves = list(moves)
        self.requests: list[Sequence[Message]] = []
        self.lock = threading.Lock()

    def __call__(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        with self.lock:
            self.requests.append(messages)
            move: Move = self.moves.pop(0) if self.moves else "nothing more to do"
        while callable(move) and not isinstance(move, Message):
            move = move(messages)
        return assistant(move) if isinstance(move, str) else move


_ids = iter(range(1_000_000))


def call(name: str, **arguments: Any) -> Message:
    return assistant("", Call(f"call_{next(_ids)}", name, json.dumps(arguments)))


def shown(messages: Sequence[Message]) -> str:
    """All words of a request, results of tools too."""
    parts = []
    for message in messages:
        parts.append(message.text())
        parts += [part.text for result in message.results() for part in result.parts if isinstance(part, Text)]
    return "\n".join(parts)


def last_result(messages: Sequence[Message]) -> Any:
    text = next(
        part.text
        for message in reversed(messages)
        for result in message.results()
        for part in result.parts
        if isinstance(part, Text)
    )
    return json.loads(text) if text.startswith(("{", "[")) else text


def echo(text: str = "", times: int = 1) -> Tool:
    def handler(arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": (text or arguments.get("text", "")) * int(arguments.get("times", times))}

    return Tool("echo", "Say it back.", {"type": "object", "properties": {"text": {"type": "string"}}}, handler)


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Limpet]:
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="one") as opened:
        yield opened


# --- a run ------------------------------------------------------------------------------------------------------------


def test_a_note_written_in_a_run_is_in_the_next_request(hold: Limpet) -> None:
    model = Script(call("write_notepad", content="the plan: casts first"), "done")
    ended = Agent(hold.session(), model).run("Port the parser.")
    assert (ended.text, ended.outcome, ended.steps) == ("done", "completed", 2)
    assert "(empty — use write_notepad" in shown(model.requests[0])
    assert "the plan: casts first" in shown(model.requests[1])
    assert "Port the parser." in shown(model.requests[1])


def test_a_session_that_was_left_goes_on_where_it_was(hold: Limpet) -> None:
    Agent(hold.session(), Script("the answer is 42")).run("What is it?")
    model = Script("as I said, 42")
    Agent(hold.session("one"), model).run("And again?")
    assert "What is it?" in shown(model.requests[0])
    assert "the answer is 42" in shown(model.requests[0])


def test_an_answer_to_the_request_with_the_warning_is_the_answer(hold: Limpet) -> None:
    warned: list[bool] = []

    def model(messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        warned.append("[System] Context is approaching" in messages[-1].text())
        return assistant(f"Answer {len(warned)}. " + "It is so. " * 60)

    agent = Agent(hold.session(), model, bounds=Limits(window=8_000))
    for number in range(1, 40):
        ended = agent.run(f"Question {number}: " + "please look closely. " * 20)
        assert (ended.text.split(".")[0], ended.steps) == (f"Answer {number}", 1)
    assert any(warned)


def test_a_request_that_is_tried_again_after_the_model_failed_is_stored_once(hold: Limpet) -> None:
    def fails(messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        raise ConnectionError("overloaded")

    for agent in (failing := Agent(hold.session(), fails), failing, Agent(hold.session(), fails)):
        with pytest.raises(ConnectionError):
            agent.run("Port the parser.")
    Agent(hold.session(), Script("done")).run("Port the parser.")
    assert [message.text() for message in hold.session().window.messages()] == ["Port the parser.", "done"]


def test_a_result_is_stored_before_the_next_call_of_the_same_reply_runs(tmp_path: Path) -> None:
    def die(arguments: Mapping[str, Any]) -> str:
        raise KeyboardInterrupt

    pay = Tool("pay", "Pay.", {"type": "object"}, lambda arguments: "paid, receipt R-77123")
    tools = [pay, Tool("die", "Stop.", {"type": "object"}, die)]
    both = assistant("", Call("p1", "pay", "{}"), Call("d1", "die", "{}"))
    store = str(tmp_path / "limpet.db")
    with limpet.open(store, project="demo", session="one") as hold, pytest.raises(KeyboardInterrupt):
        Agent(hold.session(), Script(both), tools=tools).run("Pay.")
    model = Script("I see.")
    with limpet.open(store, project="demo", session="one") as hold:
        Agent(hold.session(), model, tools=tools).run("Was it paid?")
    assert "R-77123" in shown(model.requests[0])
    assert shown(model.requests[0]).count(LOST) == 1


@pytest.mark.parametrize("limit", [-5, 0])
def test_a_window_without_room_is_refused(hold: Limpet, limit: int) -> None:
    with pytest.raises(errors.BadInput, match="number of tokens"):
        hold.session().window.next([], limit=limit)


def test_agents_in_one_process_after_the_other_store_a_session_once(tmp_path: Path) -> None:
    requests: list[str] = []

    def work(messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        """Two calls for each request, then an answer."""
        number = len(requests)
        requests.append("")
        if "[System] Context is approaching" in shown(messages[-1:]) or number % 3 == 2:
            return assistant(f"Answer {number}: " + "it is so. " * 40)
        return assistant(
            f"Call {number}.", Call(f"c{number}", "echo", json.dumps({"text": f"e{number} ", "times": 90}))
        )

    for process in range(8):
        with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="one") as hold:
            agent = Agent(hold.session(), work, tools=[echo()], bounds=Limits(window=4_000))
            for turn in range(3):
                agent.run(f"Request {process}.{turn}: " + "please go on with it. " * 30)
            transcript = hold.store.entries.list(hold.scope, Listing((MESSAGE,), "one", limit=10_000))
            texts = [entry.content for entry in transcript.entries]
            assert len(texts) == len(set(texts))
            assert sum(text.startswith("Request ") for text in texts) == 3 * (process + 1)
            assert sum(text.startswith(("Answer ", "Call ")) for text in texts) == len(requests)
    folds = hold_folds(tmp_path)
    assert folds.count("compact") >= 4


def hold_folds(folder: Path) -> list[str]:
    with limpet.open(str(folder / "limpet.db"), project="demo", session="one") as hold:
        return [fold["how"] for fold in hold.call("list_folds", {})["folds"]]


def test_a_big_result_is_a_reference_that_can_be_read(hold: Limpet) -> None:
    def read(messages: Sequence[Message]) -> Message:
        text = str(last_result(messages))
        assert text.startswith("📁 Output cached: ")
        return call("read_output", id=text.split()[3], match="needle")

    big = "\n".join(f"line {number}" for number in range(3_000)) + "\nthe needle is here\n"
    model = Script(call("fetch"), read, "found")
    fetch = Tool("fetch", "Fetch it.", {"type": "object"}, lambda arguments: big)
    Agent(hold.session(), model, tools=[fetch]).run("Find the needle.")
    assert "the needle is here" in last_result(model.requests[2])
    assert len(shown(model.requests[2])) < 6_000


def test_what_goes_wrong_in_a_tool_is_a_result_and_the_pair_stays_whole(hold: Limpet) -> None:
    def broken(arguments: Mapping[str, Any]) -> dict[str, Any]:
        raise RuntimeError("no such host")

    moves: list[Move] = [
        call("broken"),
        call("nobody"),
        call("add_note"),
        assistant("", Call("odd", "echo", "[1]")),
        assistant("", Call("worse", "echo", "{")),
        "done",
    ]
    model = Script(*moves)
    Agent(hold.session(), model, tools=[echo(), Tool("broken", "x", {}, broken)]).run("go")
    results = [result for message in model.requests[-1] for result in message.results()]
    assert [result.error for result in results] == [True] * 5
    assert "RuntimeError: no such host" in shown(model.requests[-1])
    assert "add_note needs content" in shown(model.requests[-1])
    calls = [one.id for message in model.requests[-1] for one in message.calls()]
    assert calls == [result.call_id for result in results]


def test_guidance_for_its_tools_is_in_every_request(hold: Limpet) -> None:
    model = Script(call("add_note", content="x"), "done")
    Agent(hold.session(), model, system="You port parsers.").run("go")
    assert len(model.requests) == 2
    for request in model.requests:
        text = shown(request)
        for part in ("Notes: ", "Notepad: ", "Memory: ", "Tasks: ", "Outputs: ", "Recall: "):
            assert text.count(part) == 1, part


def test_a_reference_in_the_arguments_of_an_own_tool_is_the_text_itself(hold: Limpet) -> None:
    texts: list[Any] = []

    def count(arguments: Mapping[str, Any]) -> str:
        texts.append(arguments)
        return "ok"

    tool = Tool("count", "counts", {"type": "object"}, count)
    data = json.dumps({"rows": [{"name": 'a "quoted" name', "size": n} for n in range(400)]})
    output = hold.session().outputs.keep("query", data).output
    assert output is not None
    uri = f"hold://{output.id}"
    model = Script(
        call("count", text=uri, names=[f"{uri}#/rows/3/name", "as it is"], size=f"{uri}#/rows/3/size"),
        call("read_output", id=uri, path="/rows/3/name"),
        call("read_output", id=f"{uri}#/rows/3/name"),
        call("count", text="hold://0123456789ab"),
        "done",
    )
    Agent(hold.session(), model, tools=[tool]).run("go")
    assert texts == [{"text": data, "names": ['a "quoted" name', "as it is"], "size": "3"}]
    assert "quoted" in last_result(model.requests[2])
    assert last_result(model.requests[3]) == last_result(model.requests[2])
    assert "there is no output" in shown(model.requests[4])


def test_a_tool_may_not_take_a_name_of_ours(hold: Limpet) -> None:
    with pytest.raises(errors.BadInput, match="'add_note'"):
        Agent(hold.session(), Script(), tools=[echo()._replace(name="add_note")])


@pytest.mark.parametrize(
    ("bounds", "outcome"),
    [
        (Limits(steps=3), "step_limit_reached"),
        (Limits(tokens=1_500), "token_limit_reached"),
        (Limits(seconds=0), "time_limit_reached"),
    ],
)
def test_a_run_keeps_to_its_limits(hold: Limpet, bounds: Limits, outcome: str) -> None:
    ended = Agent(hold.session(), Script(*[call("list_notes")] * 50), bounds=bounds).run("circle")
    assert ended.outcome == outcome
    assert ended.steps < 50


def test_a_run_can_be_cancelled(hold: Limpet) -> None:
    agent = Agent(hold.session(), Script(call("stop"), "never said"))

    def cancel(arguments: Mapping[str, Any]) -> dict[str, Any]:
        agent.cancel()
        return {}

    stop = Tool("stop", "x", {}, cancel)
    agent.own_tools, agent.tools = (stop,), (*agent.tools, stop)
    assert agent.run("go").outcome == "cancelled"


def test_the_system_prompt_is_in_the_very_next_request_after_an_edit(hold: Limpet) -> None:
    hold.session().prompt.write("Answer in English.")
    model = Script(call("edit_system_prompt", operation="append", content="\nNever touch main.py."), "done")
    Agent(hold.session(), model, profile="full", system="You port parsers.").run("go")
    first, second = (shown(request) for request in model.requests)
    assert "You port parsers." in first
    assert "Answer in English." in first
    assert "Never touch main.py." not in first
    assert "Never touch main.py." in second


# --- compaction -------------------------------------------------------------------------------------------------------


def test_each_compaction_is_warned_of_once_and_what_was_written_then_survives(hold: Limpet) -> None:
    """The whole of it: work fills a small window several times; before each time the agent gets one turn."""
    warned: list[int] = []
    written: list[str] = []

    def work(messages: Sequence[Message]) -> Message:
        text = shown(messages[-2:])
        if "[System] Context is approaching the token limit" in text:
            warned.append(len(model.requests))
            written.append(f"- finding {len(warned)}: 0x{len(warned):04x}\n")
            return call("update_notepad", operation="append", content=written[-1])
        return call("echo", text=f"step {len(model.requests)} ", times=400)

    model = Script(*[work] * 118, "all done")
    agent = Agent(
        hold.session(), model, tools=[echo()], system="Keep the rules.", bounds=Limits(window=9_000, steps=130)
    )
    ended = agent.run("Do the long work, and never touch main.py.")
    assert ended.outcome == "completed"
    assert len(warned) >= 3
    folds = [entry for entry in hold.call("list_folds", {})["folds"] if entry["how"] == "compact"]
    assert len(folds) == len(warned)
    pad = hold.session().notepad.read()
    assert pad == "".join(written)
    text = ""
    for number, request in enumerate(model.requests):
        text = shown(request)
        assert "Keep the rules." in text
        assert "Do the long work, and never touch main.py." in text
        for at, line in zip(warned, written, strict=True):
            assert (line in text) == (number >= at), (number, at)
    assert text.count("[System] Context is approaching") == 0


def test_the_tools_that_a_fold_names_are_offered_and_bring_its_messages_back(hold: Limpet) -> None:
    def work(messages: Sequence[Message]) -> Message | str:
        text = shown(messages)
        if "as they were:" in text:
            return "done"
        if "[Folded: messages" in text:
            return call("uncompact", first=3)
        return call("echo", text=f"step {len(model.requests)} ", times=400)

    model = Script(*[work] * 60)
    agent = Agent(hold.session(), model, tools=[echo()], bounds=Limits(window=9_000))
    assert {"recall", "uncompact"} <= {tool.name for tool in agent.tools}
    assert agent.run("Do the long work.").text == "done"
    assert "step 1 step 1" not in shown(model.requests[-2])
    assert "step 1 step 1" in shown(model.requests[-1])


def sent_tokens(messages: Sequence[Message], tools: Sequence[Tool]) -> int:
    meter = Meter(tokenizer=exact() or ESTIMATE)
    return sum(map(meter.message, messages)) + meter.definitions(tools)


@pytest.mark.parametrize(("profile", "window"), [("core", 4_500), ("core", 8_000), ("agent", 10_000)])
def test_what_is_sent_fits_the_window_with_its_tools(hold: Limpet, profile: str, window: int) -> None:
    sizes: list[tuple[int, int]] = []

    def model(messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        agent_gauge = agent.session.window.gauge()
        sizes.append((sent_tokens(messages, tools), agent_gauge.used))
        return call("echo", text=f"step {len(sizes)} ", times=60) if len(sizes) < 80 else assistant("done")

    bounds = Limits(window=window, steps=100)
    agent = Agent(hold.session(), model, tools=[echo()], profile=profile, bounds=bounds)
    assert agent.run("Do the long work.").outcome == "completed"
    assert max(real for real, _ in sizes) <= window
    for real, said in sizes:  # the gauge knows nothing of a warning that goes with one request
        assert 0 <= real - said < 120
    assert any(fold["how"] == "compact" for fold in hold.call("list_folds", {})["folds"])


def test_a_window_too_small_for_the_tools_is_said_at_once(hold: Limpet) -> None:
    model = Script()
    ended = Agent(hold.session(), model, profile="agent", bounds=Limits(window=4_000)).run("Port the parser.")
    assert (ended.outcome, ended.steps, model.requests) == ("error", 0, [])
    assert "the tools alone take 5," in ended.text
    assert "Offer fewer tools" in ended.text
    assert [message.text() for message in hold.session().window.messages()] == ["Port the parser."]


def test_an_agent_asks_for_a_compaction_and_is_told_what_was_folded(hold: Limpet) -> None:
    moves = [call("echo", text=f"step {number} ", times=30) for number in range(12)]
    model = Script(*moves, call("show_window"), call("compact_window"), "done")
    Agent(hold.session(), model, tools=[echo()], bounds=Limits(window=20_000)).run("Do it, and never touch main.py.")
    gauge, folded = (last_result(model.requests[number]) for number in (-2, -1))
    assert gauge["limit"] == 20_000
    assert gauge["sections"]["tool definitions"] > 1_000
    assert (folded["ok"], folded["first"]) == (True, 1)
    assert folded["folded"] == folded["last"] > 15
    assert folded["used"] < gauge["used"] - 500
    assert len(model.requests[-1]) < len(model.requests[-2]) - 15
    assert "never touch main.py" in shown(model.requests[-1])
    assert len(transcript_of(hold)) == 2 * 14 + 2


def test_a_compaction_of_nothing_says_so(hold: Limpet) -> None:
    model = Script(call("compact_window"), "done")
    Agent(hold.session(), model).run("Compact it.")
    answer = last_result(model.requests[-1])
    assert (answer["ok"], answer["folded"]) == (False, 0)
    assert answer["reason"]
    assert "Compact it." in shown(model.requests[-1])


def transcript_of(hold: Limpet) -> list[Message]:
    return [stored.message for stored in transcript.messages(hold.context("one"))]


def test_a_compaction_follows_so_many_ended_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_SET", "window.compact_after_tasks=3")
    moves: list[Move] = []
    for number in range(7):
        moves += [call("begin_task", description=f"part {number}"), call("echo", text="x", times=50)]
        moves += [call("end_task", summary=f"part {number} is read")]
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="one") as hold:
        model = Script(*moves, "done")
        Agent(hold.session(), model, tools=[echo()], bounds=Limits(window=50_000)).run("Read it all.")
        folds = [fold for fold in hold.call("list_folds", {})["folds"] if fold["how"] == "compact"]
        assert len(folds) == 2
        assert all("part 0 is read" in shown(request) for request in model.requests[4:])
        assert not any("[System] Context is approaching" in shown(request) for request in model.requests)


def test_what_left_the_window_is_one_question_away(hold: Limpet) -> None:
    def work(messages: Sequence[Message]) -> Message:
        number = len(model.requests)
        word = " the harbour pilot is called Ingeborg " if number == 3 else ""
        return call("echo", text=f"step {number}{word} filler ", times=150)

    model = Script(*[work] * 60, "done")
    Agent(hold.session(), model, tools=[echo()], bounds=Limits(window=6_000, steps=70)).run("go")
    assert "Ingeborg" not in shown(model.requests[-1])
    hits = hold.recall("who is the harbour pilot?").hits
    assert any("Ingeborg" in hit.snippet for hit in hits)
    assert {hit.trust for hit in hits if hit.kind == "message"} == {"data"}


def test_the_journal_is_in_the_window_and_gets_its_checkpoints(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    with limpet.open(folder=str(tmp_path), session="one") as hold:
        hold.journal.init()
        hold.journal.add("task", "port the parser")
        model = Script("casts work now")
        Agent(hold.session(), model, checkpoints=True).run("go on")
        assert "port the parser" in shown(model.requests[0])
        assert "casts work now" in (tmp_path / "NOTES.md").read_text()
    with limpet.open(folder=str(tmp_path), session="two") as hold:
        model = Script("on it")
        Agent(hold.session(), model).run("and now?")
        text = shown(model.requests[0])
        assert text.index("casts work now") < text.index("and now?")  # the handoff of the session before


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_a_task_becomes_one_line_and_its_messages_stay(hold: Limpet) -> None:
    model = Script(
        call("begin_task", description="count the casts"),
        call("echo", text="a detail nobody needs"),
        call("end_task", summary="there are 12"),
        "12",
    )
    agent = Agent(hold.session(), model, tools=[echo()])
    assert agent.run("How many casts?").text == "12"
    text = shown(model.requests[3])
    assert "How many casts?" in text
    assert "[Task: count the casts — there are 12]" in text
    assert "a detail nobody needs" in shown(model.requests[2])
    assert "a detail nobody needs" not in text
    assert any("a detail nobody needs" in line for line in hold.export_lines())


def test_tasks_nest_four_deep_and_end_in_order(hold: Limpet) -> None:
    moves = [call("begin_task", description=f"level {number}") for number in range(1, 6)]
    model = Script(*moves, call("cancel_task"), call("cancel_task", reason="wrong way"), "done")
    Agent(hold.session(), model).run("go")
    depths = [last_result(request).partition("depth ")[2] for request in model.requests[1:5]]
    assert depths == ["1.", "2.", "3.", "4."]
    assert "the limit is 4" in last_result(model.requests[5])  # the fifth is refused
    assert "cancel_task needs reason" in str(last_result(model.requests[6]))
    assert "[Cancelled: level 4 — wrong way]" in shown(model.requests[7])


# --- sub-sessions -----------------------------------------------------------------------------------------------------


def spawn_and_wait(count: int, how: str = "spawn_session", **more: Any) -> list[Move]:
    """Give out `count` tasks, then wait for all of them."""
    ids: list[str] = []

    def remember(following: Move) -> Move:
        def move(messages: Sequence[Message]) -> Move:
            ids.append(last_result(messages).split()[1])  # "Session s-… begun"
            return following if isinstance(following, Message) else call("wait_for_sessions", ids=ids)

        return move

    given = [call(how, task=f"part {number}", **more) for number in range(count)]
    return [given[0], *(remember(one) for one in given[1:]), remember(lambda messages: "x"), "all in"]


def test_children_really_run_at_once_and_report(hold: Limpet) -> None:
    together = threading.Barrier(3, timeout=30)

    def child(messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        together.wait()  # passes only when all three are at work
        part = next(line for line in shown(messages).splitlines() if line.startswith("Task: "))
        return call("report_result", result=f"done with {part}")

    parent = Script(*spawn_and_wait(3, model="worker"))
    with Agent(hold.session(), parent, profile="agent", models={"worker": child}) as agent:
        assert agent.run("Split it.").text == "all in"
    results = last_result(parent.requests[-1]).split("\n")
    assert [line.split()[1] for line in results] == ["completed:"] * 3
    assert results[1].endswith("completed: done with Task: part 1")


def test_a_fork_has_the_history_and_the_notepad_and_a_spawned_one_has_not(hold: Limpet) -> None:
    for how, there in (("fork_session", True), ("spawn_session", False)):
        seen: list[str] = []

        def child(messages: Sequence[Message], tools: Sequence[Tool], seen: list[str] = seen) -> Message:
            seen.append(shown(messages))
            return assistant("my answer")

        parent = Script(call("write_notepad", content="the plan"), *spawn_and_wait(1, how, model="worker"))
        with Agent(hold.session(how), parent, profile="agent", models={"worker": child}) as agent:
            agent.run("The whole story.")
        assert last_result(parent.requests[-1]).endswith(" completed: my answer")
        assert "part 0" in seen[0]
        assert ("The whole story." in seen[0]) is there
        assert ("the plan" in seen[0]) is there
        assert LOST not in seen[0], "the call that forked is the parent's"


def test_a_child_that_crashes_or_runs_out_touches_nobody_else(hold: Limpet) -> None:
    def crash(messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        raise ValueError("the provider is down")

    def circle(messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        return Reply(assistant("thinking", Call(f"c{next(_ids)}", "list_notes", "{}")), used=900, made=100)

    for name, model, status, words in (
        ("crash", crash, "error", "ValueError: the provider is down"),
        ("circle", circle, "token_limit_reached", "thinking"),
    ):
        parent = Script(*spawn_and_wait(1, model=name, token_limit=5_000))
        with Agent(hold.session(name), parent, profile="agent", models={name: model}) as agent:
            assert agent.run("go").outcome == "completed"
        result = last_result(parent.requests[-1])
        assert f" {status}: " in result
        assert words in result


def test_cancelling_the_parent_cancels_the_children(hold: Limpet) -> None:
    started = threading.Event()

    def endless(messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        started.set()
        return call("list_notes")

    parent = Script(*spawn_and_wait(1, model="endless"))
    with Agent(
        hold.session(), parent, profile="agent", models={"endless": endless}, bounds=Limits(steps=10_000)
    ) as agent:
        thread = threading.Thread(target=agent.run, args=("go",))
        thread.start()
        assert started.wait(30)
        agent.cancel()
        thread.join(30)
        assert not thread.is_alive()
    (child,) = [one for one in hold.sessions(include_archived=True) if one.parent == "one"]
    assert child.state == "cancelled"


def test_the_loop_sends_roles_that_any_provider_takes(hold: Limpet) -> None:
    model = Script(call("list_notes"), "done")
    Agent(hold.session(), model).run("go")
    roles = [message.role for message in model.requests[-1]]
    at = roles.index(ASSISTANT)
    assert roles[at + 1] == TOOL


# --- what tasks promise -----------------------------------------------------------------------------------------------


def test_a_task_collapses_what_was_said_in_it_and_keeps_the_words_of_the_user(hold: Limpet) -> None:
    model = Script(call("begin_task", description="casts"), "which ones?")
    agent = Agent(hold.session(), model, tools=[echo()])
    agent.run("Look into the casts.")
    inside = len(hold.session().window.messages()) - 1  # all but the first request
    model = Script(call("echo", text="a detail"), call("end_task", summary="all done"), "done")
    agent.model = model
    agent.run("The nested ones, please.")
    text = shown(model.requests[-1])
    assert "[Task: casts — all done]" in text
    assert "- the user said: The nested ones, please." in text  # inside the task, and it outlives the task
    assert "a detail" not in text
    assert "Look into the casts." in text
    (task,) = hold.call("list_tasks", {})["tasks"]
    assert task["state"] == "ended"
    told = [json.loads(line) for line in hold.export_lines()]
    kept = sum("The nested ones, please." in json.dumps(line) for line in told)
    assert kept >= 1
    assert inside == 3


def test_ending_nothing_is_refused(hold: Limpet) -> None:
    model = Script(call("end_task", summary="x"), call("cancel_task", reason="y"), "ok")
    Agent(hold.session(), model).run("go")
    results = [result for message in model.requests[-1] for result in message.results()]
    assert [result.error for result in results] == [True, True]
    assert "there is no open task to end" in shown(model.requests[-1])


def test_a_task_open_at_a_compaction_is_named_in_the_warning_and_after_it(hold: Limpet) -> None:
    warnings: list[str] = []

    def work(messages: Sequence[Message]) -> Message:
        last = shown(messages[-1:])
        if "[System] Context is approaching" in last:
            warnings.append(last)
            return assistant("My notepad is up to date.")
        return call("echo", text=f"step {len(model.requests)} ", times=200)

    model = Script(call("begin_task", description="port the casts"), *[work] * 40, "done")
    Agent(hold.session(), model, tools=[echo()], bounds=Limits(window=6_000, steps=60)).run("go")
    assert warnings
    assert all("port the casts" in warning for warning in warnings)
    assert "Open task: port the casts" in shown(model.requests[-1])


def test_a_request_longer_than_the_window_is_worked_on_all_the_same(hold: Limpet) -> None:
    model = Script("read it")
    agent = Agent(hold.session(), model, bounds=Limits(window=6_000))
    assert agent.run("Summarise this:\n" + "a line of the log\n" * 9_000).outcome == "completed"
    assert "Summarise this:" in shown(model.requests[0])
    assert len(shown(model.requests[0])) < 20_000
    hopeless = Agent(hold.session("two"), model, system="Rule. " * 9_000, bounds=Limits(window=6_000))
    ended = hopeless.run("Hello.")
    assert (ended.outcome, ended.steps) == ("error", 0)
    assert "the largest part is system prompt" in ended.text
