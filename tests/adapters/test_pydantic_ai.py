"""Pydantic AI's own loop, driven by its test models, with Limpet as a capability."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, RootModel
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    Tool,
    ToolReturn,
)
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from adapters import stories
from bench.frameworks.pydantic_ai import PydanticAI
from bench.frameworks.script import Do, Say, text
from limpet.adapters.pydantic_ai import LimpetMemory
from limpet.api import Limpet
from limpet.model import MESSAGE, Entry
from limpet.store import Listing
from limpet.window.messages import Media


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_story(story: Any, hold: Limpet) -> None:
    asyncio.run(story(PydanticAI, hold))


def test_a_history_that_is_processed_is_kept_once(hold: Limpet) -> None:
    last = ProcessHistory(lambda messages: messages[-9:])
    asyncio.run(stories.a_trimmed_talk_is_kept_once(PydanticAI, hold, before=[last]))


def test_a_warning_takes_no_answer_away(hold: Limpet) -> None:
    asyncio.run(stories.a_warning_takes_no_answer_away(PydanticAI, hold))


def test_an_approval_in_another_process_is_the_same_conversation(hold: Limpet) -> None:
    def remove(number: int) -> str:
        """Remove it."""
        return f"removed {number}"

    model = PydanticAI(stories.steps(Do("remove", {"number": 1}), Say("Gone.")), [], None).agent.model
    waiting: Any = None
    for results in (None, DeferredToolResults(approvals={"call_1": True})):
        with stories.opened_again(hold) as own:
            agent: Any = Agent(
                model,
                tools=[Tool(remove, requires_approval=True)],
                output_type=[str, DeferredToolRequests],
                capabilities=[LimpetMemory(own)],
            )
            waiting = agent.run_sync(
                "Remove it." if waiting is None else None,
                message_history=None if waiting is None else waiting.all_messages(),
                deferred_tool_results=results,
                conversation_id="t",
            )
    assert waiting.output == "Gone."
    stored = stories.transcript_of(hold, "t")
    assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant"]
    assert "removed 1" in str(stored[2])


def run(agent: PydanticAI, request: Any = "Go.", **given: Any) -> Any:
    return agent.agent.run_sync(request, conversation_id="t", **given)


def returned(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def test_what_a_tool_raises_is_raised_as_without_us(hold: Limpet) -> None:
    agent = PydanticAI(stories.steps(Do("broken", {"number": 1})), [stories.broken], hold)
    with pytest.raises(RuntimeError, match="record 1 is unreadable"):
        run(agent)


@pytest.mark.parametrize(("raised", "outcome"), [(ModelRetry("Try 2."), "retried"), (ToolFailed("Gone."), "failed")])
def test_a_failed_tool_is_still_one_that_failed(raised: Exception, outcome: str, hold: Limpet) -> None:
    def check(number: int) -> str:
        """Run the checks."""
        if number == 1:
            raise raised
        return "fine"

    script = stories.steps(Do("check", {"number": 1}), Do("check", {"number": 2}), Say("Checked."))
    result = run(PydanticAI(script, [check], hold))
    assert [part.outcome for part in returned(result.all_messages())] == [outcome, "success"]
    kept = [part.error for message in stories.kept(hold, "t") for part in message.results()]
    assert kept == [True, False]


def test_big_values_become_references_and_metadata_stays(hold: Limpet) -> None:
    def rows(number: int) -> list[dict[str, int]]:
        """All rows."""
        return [{"row": row, "value": row * number} for row in range(1_000)]

    def wrapped(number: int) -> ToolReturn[Any]:
        """All rows, and something for the application."""
        return ToolReturn(rows(number), metadata={"number": number})

    script = stories.steps(Do("rows", {"number": 1}), Do("wrapped", {"number": 2}), Say("Read."))
    agent = PydanticAI(script, [rows, wrapped], hold)
    first, second = returned(run(agent).all_messages())
    assert str(first.content).startswith("📁 Output cached: ")
    assert "1,000" in str(first.content)
    assert str(second.content).startswith("📁 Output cached: ")
    assert second.metadata == {"number": 2}


class Row(BaseModel):
    row: int
    at: datetime.date = datetime.date(2026, 11, 18)


@dataclass
class Table:
    rows: list[Row]


@pytest.mark.parametrize("kind", ["model", "models", "dataclass", "inside"])
def test_typed_results_become_references_too(kind: str, hold: Limpet) -> None:
    rows = [Row(row=row) for row in range(1_000)]
    values = {"model": RootModel(rows), "models": rows, "dataclass": Table(rows), "inside": {"rows": rows}}

    def read_rows(number: int) -> Any:
        """All rows."""
        return values[kind]

    agent = PydanticAI(stories.steps(Do("read_rows", {"number": 1}), Say("Read.")), [read_rows], hold)
    (part,) = returned(run(agent).all_messages())
    assert str(part.content).startswith("📁 Output cached: ")
    (output,) = hold.session("t").outputs.list().outputs
    text = hold.session("t").outputs.read_content(output.id)
    assert '{"row":999,"at":"2026-11-18"}' in text, "as the framework would have shown it"


def test_pictures_stay_where_a_big_text_becomes_a_reference(hold: Limpet) -> None:
    picture = BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png")

    def shoot(number: int) -> list[Any]:
        """Take a picture and describe it."""
        return [stories.fetch(number), picture]

    agent = PydanticAI(stories.steps(Do("shoot", {"number": 1}), Say("Seen.")), [shoot], hold)
    (part,) = returned(run(agent).all_messages())
    content: Any = part.content
    assert content[0].startswith("📁 Output cached: ")
    assert content[1] == picture


def test_a_reference_is_an_argument(hold: Limpet) -> None:
    def count(text: str) -> int:
        """Count the lines of a text."""
        return len(text.splitlines())

    kept = hold.session("t").outputs.keep("fetch", stories.fetch(1))
    assert kept.output is not None
    script = stories.steps(
        Do("count", {"text": f"hold://{kept.output.id}"}), Do("count", {"text": "hold://0123456789ab"}), Say("Counted.")
    )
    first, second = returned(run(PydanticAI(script, [count], hold)).all_messages())
    assert first.content == stories.ROWS + 1
    assert (second.outcome, "0123456789ab" in str(second.content)) == ("failed", True)


def test_instructions_and_system_prompts_stay_where_they_are(hold: Limpet) -> None:
    hold.session("before").handoff.write("Go on with record 4.")
    agent = PydanticAI(stories.steps(Say("Hi.")), [], hold)
    model = agent.agent.model
    made = Agent(model, instructions="Be brief.", system_prompt="You fetch.", capabilities=[LimpetMemory(hold)])
    made.run_sync("Hello.")
    instructions, first, asked, state = agent.windows[0]
    parts = instructions.text.split("\n\n")
    assert "Go on with record 4." in instructions.text.split("Be brief.")[0]
    assert parts.index("Be brief.") < next(at for at, part in enumerate(parts) if part.startswith("Notes: write down"))
    assert (first.role, first.text) == ("system", "You fetch.")
    assert asked.text == "Hello."
    assert "## Session Notepad" in state.text


def test_the_history_of_a_run_keeps_everything(hold: Limpet) -> None:
    """Compaction is about what is sent; `all_messages` is what happened."""
    script = stories.steps(*(Do("fetch", {"number": number}) for number in range(45)), Say("Done."))
    agent = PydanticAI(script, [stories.fetch], hold, limit=stories.LIMIT)
    messages = run(agent).all_messages()
    assert "compact" in stories.folds(hold)
    assert len(returned(messages)) == 45
    assert "Session Notepad" not in str(messages)
    assert len(agent.windows[-1]) < 60


def test_pictures_are_counted_and_sent_as_they_are(hold: Limpet) -> None:
    picture = BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png")
    seen: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(messages)
        return ModelResponse(parts=[TextPart("Seen.")])

    agent = Agent(FunctionModel(answer), capabilities=[LimpetMemory(hold)])
    agent.run_sync(["Look:", picture], conversation_id="t")
    request = seen[0][0]
    assert isinstance(request, ModelRequest)
    assert list(request.parts[0].content)[1] is picture  # type: ignore[union-attr, arg-type]
    (kept,) = [part for part in stories.kept(hold, "t")[0].parts if isinstance(part, Media)]
    assert kept.kind == "image/png"


@pytest.mark.parametrize("shared", [True, False], ids=["one capability", "two capabilities"])
def test_a_sub_agent_in_the_conversation_has_a_transcript_of_its_own(shared: bool, hold: Limpet) -> None:
    """It is run by a tool with the parent's conversation id, so that notes are shared. The talk of each stays whole."""
    turns = 6
    note = Do("add_note", {"content": stories.MARK})
    inner = PydanticAI(stories.steps(note, *(Say(f"Answer {turn}.") for turn in range(turns))), [], hold)
    capability = LimpetMemory(hold)
    expert = Agent(inner.agent.model, capabilities=[capability if shared else LimpetMemory(hold)])

    async def ask(ctx: RunContext[Any], number: int) -> str:
        """Ask the expert."""
        answer = await expert.run(f"Question {number}.", conversation_id=ctx.conversation_id)
        return str(answer.output)

    outer = PydanticAI(stories.steps(*(Do("ask", {"number": turn}) for turn in range(turns)), Say("Done.")), [], None)
    agent: Any = Agent(outer.agent.model, tools=[ask], capabilities=[capability])
    agent.run_sync("Go.", conversation_id="t")
    kept = stories.kept(hold, "t")
    assert len(kept) == 1 + 2 * turns + 1
    assert stories.folds(hold) == []
    assert [note.content for note in hold.session("t").notes.list()] == [stories.MARK]
    lines = {f"t/ask:call_{turn + 1}" for turn in range(turns)}
    assert [message.text() for message in stories.kept(hold, "t/ask:call_2")] == ["Question 1.", "Answer 1."]
    assert {entry.session for entry in messages(hold)} == {"t", *lines}
    assert len(messages(hold)) == len(kept) + 2 * turns + 2


def test_a_sub_agent_sees_its_own_window_in_the_tools_about_it(hold: Limpet) -> None:
    inner = PydanticAI(stories.steps(Do("uncompact", {"first": 9}), Say("Known.")), [], None)
    expert = Agent(inner.agent.model, capabilities=[LimpetMemory(hold, profile="full")])

    async def ask(ctx: RunContext[Any], number: int) -> str:
        """Ask the expert."""
        return str((await expert.run("Question.", conversation_id=ctx.conversation_id)).output)

    outer = PydanticAI(stories.steps(Do("uncompact", {"first": 9}), Do("ask", {"number": 1}), Say("Done.")), [], None)
    agent: Any = Agent(outer.agent.model, tools=[ask], capabilities=[LimpetMemory(hold, profile="full")])
    agent.run_sync("Go.", conversation_id="t")
    assert "this session has 2 messages" in text(outer.windows[1])
    assert "this session has 2 messages" in text(inner.windows[1]), "and not the four of the caller"


def messages(hold: Limpet) -> tuple[Entry, ...]:
    return hold.store.entries.list(hold.scope, Listing((MESSAGE,), include_done=True, limit=10_000)).entries


def test_a_streamed_run_has_the_same_window(hold: Limpet) -> None:
    hold.session("t").notepad.write(stories.MARK)
    seen: list[list[ModelMessage]] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        seen.append(messages)
        yield "Going "
        yield "on."

    async def story() -> str:
        agent = Agent(FunctionModel(stream_function=answer), capabilities=[LimpetMemory(hold)])
        async with agent.run_stream("Go.", conversation_id="t") as result:
            return str(await result.get_output())

    assert asyncio.run(story()) == "Going on."
    assert stories.MARK in str(seen[0])


@pytest.mark.parametrize("way", ["run", "stream", "events"])
def test_two_runs_at_once_in_one_conversation_store_each_reply_where_it_belongs(way: str, hold: Limpet) -> None:
    """Each reply is stored before its calls run, behind the request that it answers."""
    both = asyncio.Barrier(2)
    stored_in_call: list[list[str]] = []

    def reply_to(messages: list[ModelMessage]) -> ToolCallPart | str:
        parts = [part for message in messages for part in message.parts]
        said = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
        (request,) = [words for words in said if words.startswith("Request")]
        if any(isinstance(part, ToolReturnPart) for part in parts):
            return f"Answer to {request}"
        return ToolCallPart("look", {"number": int(request.split()[1])}, f"call_{request.split()[1]}")

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        reply = reply_to(messages)
        await both.wait()
        return ModelResponse(parts=[TextPart(reply) if isinstance(reply, str) else reply])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        reply = reply_to(messages)
        await both.wait()
        if isinstance(reply, str):
            yield reply
        else:
            yield {0: DeltaToolCall(reply.tool_name, reply.args_as_json_str(), tool_call_id=reply.tool_call_id)}

    def look(number: int) -> str:
        """Look."""
        calls = [call.id for message in stories.transcript_of(hold, "t") for call in message.calls()]
        stored_in_call.append([id for id in calls if id == f"call_{number}"])
        return f"seen {number}"

    agent = Agent(FunctionModel(answer, stream_function=stream), tools=[look], capabilities=[LimpetMemory(hold)])

    async def ask(number: int) -> None:
        request = f"Request {number} of two, about the junctions of the station."
        if way == "run":
            await agent.run(request, conversation_id="t")
        elif way == "stream":
            async with agent.run_stream(request, conversation_id="t") as result:
                await result.get_output()
        else:
            async with agent.run_stream_events(request, conversation_id="t") as events:
                async for _ in events:
                    pass

    async def story() -> None:
        await asyncio.gather(ask(1), ask(2))

    asyncio.run(story())
    assert sorted(stored_in_call) == [["call_1"], ["call_2"]]
    stored = stories.transcript_of(hold, "t")
    assert sorted(message.text() for message in stored if message.text()) == [
        f"{begins}Request {number} of two, about the junctions of the station."
        for begins in ("Answer to ", "")
        for number in (1, 2)
    ]
    assert sum(len(message.calls()) for message in stored) == sum(len(message.results()) for message in stored) == 2
    assert stories.folds(hold) == []


def test_every_tool_answers_the_test_model(hold: Limpet) -> None:
    """Its arguments are nonsense, so some calls are refused; none of them ends the run."""
    result = Agent(TestModel(), capabilities=[LimpetMemory(hold, profile="full")]).run_sync("Try all.")
    outcomes = {part.tool_name: part.outcome for part in returned(result.all_messages())}
    assert {"add_note", "recall", "read_output"} <= set(outcomes)
    assert outcomes["add_note"] == "success"
    assert outcomes["read_output"] == "failed"
