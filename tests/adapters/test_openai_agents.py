"""The Runner of the Agents SDK, driven by a scripted model, with Limpet as session, tools and filter."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    MaxTurnsExceeded,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    handoff,
    input_guardrail,
)
from agents.extensions.handoff_filters import remove_all_tools
from agents.memory import Session
from agents.models.fake_id import FAKE_RESPONSES_ID
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

import limpet
from adapters import stories
from adapters.trimming import Limited
from bench.frameworks.openai_agents import OpenAIAgents, Scripted
from bench.frameworks.script import Do, Say, size, text
from limpet.adapters.openai_agents import LimpetSession
from limpet.api import Limpet
from limpet.model import MESSAGE
from limpet.store import Listing
from limpet.window.plan.rules import unpaired
from profiles import fewer_examples


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_story(story: Any, hold: Limpet) -> None:
    asyncio.run(story(OpenAIAgents, hold))


def test_a_session_of_which_the_last_items_are_sent_is_kept_once(hold: Limpet) -> None:
    asyncio.run(stories.a_trimmed_talk_is_kept_once(Limited, hold))


def test_nested_handoffs_keep_what_was_said_once(hold: Limpet) -> None:
    """With `nest_handoff_history` the second agent gets a summary of the talk, another one in each turn."""
    turns = 8
    memory = LimpetSession(hold, "t")
    expert = Agent(name="Expert", model=Scripted(stories.steps(*(Say(f"Answer {turn}.") for turn in range(turns)))))
    to_expert = [Do("transfer_to_expert", {}) for _ in range(turns)]
    agent = Agent(name="Main", model=Scripted(stories.steps(*to_expert)), handoffs=[expert])
    for turn in range(turns):
        config = memory.run_config(nest_handoff_history=True)
        asyncio.run(Runner.run(agent, f"Turn {turn}.", session=memory, run_config=config, hooks=memory.hooks))
    stored = [message.text() for message in stories.transcript_of(hold, "t")]
    for turn in range(turns):
        assert stored.count(f"Turn {turn}.") == 1
        assert stored.count(f"Answer {turn}.") == 1
    assert len(stored) == 4 * turns, "a request, the handoff with its result, and an answer"
    assert len(stories.transcript_of(hold, "t/Expert")) == turns, "the summaries"


def test_what_a_handoff_filter_removes_is_not_sent(hold: Limpet) -> None:
    """The calls before a handoff are left out in the middle of the list. They are kept, once."""
    turns = 5
    memory = LimpetSession(hold, "t")
    steps = [step for turn in range(turns) for step in (Do("fetch", {"number": turn}), Say(f"Answer {turn}."))]
    model = Scripted(stories.steps(*steps))
    expert = Agent(name="Expert", model=model, tools=[function_tool(stories.fetch)])
    to_expert = [Do("transfer_to_expert", {}) for _ in range(turns)]
    over = handoff(expert, input_filter=remove_all_tools)
    agent = Agent(name="Main", model=Scripted(stories.steps(*to_expert)), handoffs=[over])
    for turn in range(turns):
        run(agent, f"Turn {turn}.", memory)
    assert sum(shown.role == "tool" for shown in model.windows[-1]) == 1, "its own"
    assert "Answer 1." in text(model.windows[-1])
    stored = stories.transcript_of(hold, "t")
    fetched = [call.arguments for message in stored for call in message.calls() if call.name == "fetch"]
    assert len(fetched) == len(set(fetched)) == turns
    assert [message.text() for message in stored if message.text()] == [
        words for turn in range(turns) for words in (f"Turn {turn}.", f"Answer {turn}.")
    ]


def said(role: str, words: str) -> Any:
    return {"role": role, "content": words}


def call(number: int) -> Any:
    return {"type": "function_call", "call_id": f"c{number}", "name": "fetch", "arguments": "{}"}


def output(number: int, words: str = "ok") -> Any:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": words}


def test_the_session_is_one_of_the_sdk(hold: Limpet) -> None:
    async def story() -> None:
        session = LimpetSession(hold, "s")
        assert isinstance(session, Session)
        assert await session.get_items() == []
        assert await session.pop_item() is None
        items = [said("user", "Hi."), said("assistant", "Hello."), call(1), output(1)]
        await session.add_items([])
        await session.add_items(items[:1])
        await session.add_items(items[1:])
        assert await session.get_items() == items
        assert await session.get_items(limit=2) == items[2:]
        assert await session.get_items(limit=0) == []
        assert await LimpetSession(hold, "s").get_items() == items, "another process sees the same"
        assert await LimpetSession(hold, "other").get_items() == []
        assert await session.pop_item() == items[3]
        assert await session.get_items() == items[:3]
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items(items[:1])
        assert await LimpetSession(hold, "s").get_items() == items[:1]

    asyncio.run(story())


STEPS = st.one_of(
    st.lists(st.integers(0, 9).map(lambda number: said("user", f"word {number}")), max_size=3),
    st.just("pop"),
    st.just("clear"),
    st.integers(1, 3).map(lambda number: [call(number), output(number)]),
)


@settings(max_examples=fewer_examples(2))
@given(steps=st.lists(STEPS, max_size=10))
def test_the_session_is_a_list_that_stays(steps: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    async def story(hold: Limpet) -> None:
        session = LimpetSession(hold, "s")
        model: list[Any] = []
        for step in steps:
            if step == "pop":
                assert await session.pop_item() == (model.pop() if model else None)
            elif step == "clear":
                model.clear()
                await session.clear_session()
            else:
                model += step
                await session.add_items(step)
            assert await session.get_items() == model

    folder = tmp_path_factory.mktemp("items")
    with limpet.open(str(folder / "x.db"), folder=str(folder)) as hold:
        asyncio.run(story(hold))


def test_a_call_that_never_came_back_is_known(hold: Limpet) -> None:
    asyncio.run(stories.a_call_that_never_came_back_is_known(OpenAIAgents, hold))


def test_a_call_that_waits_for_its_result_is_stored_at_once(hold: Limpet) -> None:
    """As in the SDK's own sessions: the process that brings the result may be another one."""

    async def story() -> None:
        thought: Any = {"type": "reasoning", "id": "rs_1", "summary": []}
        asked = [said("user", "Go."), thought, call(1), call(2)]
        await LimpetSession(hold, "s").add_items(asked)
        assert await LimpetSession(hold, "s").get_items() == asked
        await LimpetSession(hold, "s").add_items([output(1), output(2)])
        assert await LimpetSession(hold, "s").get_items() == [*asked, output(1), output(2)]

    asyncio.run(story())


@pytest.mark.parametrize("hooked", [False, True])
def test_a_run_without_the_hooks_is_told_of_them_once(hooked: bool, hold: Limpet) -> None:
    memory = LimpetSession(hold, "t")
    model = Scripted(stories.steps(*(Do("fetch", {"number": number}) for number in range(3)), Say("Done.")))
    agent = Agent(name="Scripted", model=model, tools=[function_tool(stories.fetch)])
    with stories.logged() as lines:
        hooks = memory.hooks if hooked else None
        asyncio.run(Runner.run(agent, "Go.", session=memory, run_config=memory.run_config(), hooks=hooks))
    assert [line for line in lines if "hooks=memory.hooks" in line] == lines
    assert len(lines) == (not hooked)


def test_secrets_in_what_a_tool_said_are_masked_in_the_store(hold: Limpet, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

    async def story() -> None:
        session = LimpetSession(hold, "s")
        await session.add_items([call(1), output(1, f"token {secret}")])
        assert secret not in str(await LimpetSession(hold, "s").get_items())

    asyncio.run(story())
    assert not any(secret.encode() in path.read_bytes() for path in tmp_path.glob("limpet.db*"))


def test_a_tool_that_fails_is_told_as_the_sdk_tells_it(hold: Limpet) -> None:
    async def told(memory: Limpet | None) -> str:
        agent = OpenAIAgents(stories.steps(Do("broken", {"number": 1}), Say("So be it.")), [stories.broken], memory)
        await agent.run("Fetch.", "t")
        (result,) = [shown.text for shown in agent.windows[1] if shown.role == "tool"]
        return result

    assert asyncio.run(told(hold)) == asyncio.run(told(None))


def test_a_run_that_takes_too_long_ends_as_the_sdk_ends_it(hold: Limpet) -> None:
    memory = LimpetSession(hold, "t")
    model = Scripted(stories.steps(*(Do("fetch", {"number": number}) for number in range(9))))
    agent = Agent(name="Scripted", model=model, tools=[*memory.tools, function_tool(stories.fetch)])
    with pytest.raises(MaxTurnsExceeded):
        asyncio.run(
            Runner.run(agent, "Go.", session=memory, run_config=memory.run_config(), hooks=memory.hooks, max_turns=3)
        )
    assert not unpaired(stories.kept(hold, "t"))


def test_instructions_stand_between_the_handoff_and_how_to_use_the_tools(hold: Limpet) -> None:
    hold.session("before").handoff.write("Go on with record 4.")
    memory = LimpetSession(hold.session("t"))
    model = Scripted(stories.steps(Say("Hi.")))
    agent = Agent(name="Scripted", model=model, instructions="Be brief.", tools=list(memory.tools))
    asyncio.run(Runner.run(agent, "Hello.", session=memory, run_config=memory.run_config(), hooks=memory.hooks))
    first = model.windows[0][0].text
    assert first.index("Go on with record 4.") < first.index("Be brief.") < first.index("Notes: write down")
    assert memory.session_id == "t"


def test_the_filter_works_without_the_session(hold: Limpet) -> None:
    """The application keeps the conversation; we make the window, and see by the answers that requests were sent."""
    hold.session("before").handoff.write("Go on with record 4.")
    memory = LimpetSession(hold, "t")
    model = Scripted(stories.steps(Do("fetch", {"number": 1}), Say("One."), Say("Two.")))
    agent = Agent(name="Scripted", model=model, tools=[*memory.tools, function_tool(stories.fetch)])
    first = asyncio.run(Runner.run(agent, "First.", run_config=memory.run_config(), hooks=memory.hooks))
    again = [*first.to_input_list(), said("user", "Second.")]
    asyncio.run(Runner.run(agent, again, run_config=memory.run_config(), hooks=memory.hooks))
    assert "Output cached" in text(model.windows[1])
    assert stories.folds(hold) == []
    assert [message.text() for message in stories.kept(hold, "t") if message.text()] == ["First.", "One.", "Second."]
    fresh = LimpetSession(hold, "new")
    asyncio.run(fresh.clear_session())
    assert hold.session("new").context().find("Go on with record 4.") == -1, "the handoff was used"


# --- approvals --------------------------------------------------------------------------------------------------------


class Both(Scripted):
    """A model that calls `remove` and `look` at once, and then answers."""

    async def get_response(self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any) -> Any:
        response = await super().get_response(system_instructions, input, *args, **kwargs)
        if len(self.windows) == 1:
            names = {"remove": "c1", "look": "c2"}
            response.output = [
                ResponseFunctionToolCall(arguments="{}", call_id=id, name=name, type="function_call")
                for name, id in names.items()
            ]
        return response


@function_tool(needs_approval=True)
def remove() -> str:
    """Remove it."""
    return "removed"


@function_tool
def look() -> str:
    """Look."""
    return "seen"


def hooks_of(session: Any) -> Any:
    return session.hooks if isinstance(session, LimpetSession) else None


async def approved_elsewhere(session: Callable[[], Any], config: Callable[[Any], Any]) -> tuple[list[str], Any]:
    """A run that stops for an approval, and goes on with objects that know nothing of the first ones."""
    model = Both(stories.steps(Say("-"), Say("Done."), Say("Later.")))
    agent = Agent(name="Scripted", model=model, tools=[remove, look])
    first = session()
    stopped = await Runner.run(agent, "Go.", session=first, run_config=config(first), hooks=hooks_of(first))
    waiting = stopped.to_state().to_json()
    state = await RunState.from_json(agent, waiting)
    state.approve(state.get_interruptions()[0])
    second = session()
    await Runner.run(agent, state, session=second, run_config=config(second), hooks=hooks_of(second))
    third = session()
    await Runner.run(agent, "And?", session=third, run_config=config(third), hooks=hooks_of(third))
    items: Any = await session().get_items()
    return [item.get("type", item.get("role")) for item in items], model.windows[-1]


def test_an_approval_in_another_process_loses_no_call_and_no_result(hold: Limpet, tmp_path: Path) -> None:
    def theirs() -> Any:
        return SQLiteSession("s", tmp_path / "sdk.db")

    expected, _ = asyncio.run(approved_elsewhere(theirs, lambda session: None))
    kinds, window = asyncio.run(
        approved_elsewhere(lambda: LimpetSession(hold, "s"), lambda session: session.run_config())
    )
    assert kinds == expected
    assert [shown.text for shown in window if shown.role == "tool"] == ["seen", "removed"]
    kept = stories.kept(hold, "s")
    assert not unpaired(kept)
    assert [message.text() for message in kept if message.text()] == ["Go.", "Done.", "And?", "Later."]
    assert sum(len(message.results()) for message in kept) == 2
    assert [message.results() for message in stories.transcript_of(hold, "s")] == [
        message.results() for message in kept
    ]


# --- several sessions and agents --------------------------------------------------------------------------------------


def run(agent: Agent[Any], request: str, session: LimpetSession) -> None:
    asyncio.run(Runner.run(agent, request, session=session, run_config=session.run_config(), hooks=session.hooks))


def test_an_agent_that_is_made_once_writes_where_each_run_is(hold: Limpet) -> None:
    alice, bob = LimpetSession(hold, "alice"), LimpetSession(hold, "bob")
    writes = Do("update_notepad", {"operation": "append", "content": "Bob's."})
    agent = Agent(name="Scripted", model=Scripted(stories.steps(writes, Say("Noted."))), tools=[*alice.tools])
    run(agent, "Note it.", bob)
    assert (hold.session("alice").notepad.read(), hold.session("bob").notepad.read()) == ("", "Bob's.")


def test_a_reference_is_an_argument(hold: Limpet) -> None:
    """Of tools that were given to the session; it is the run's session that knows the reference."""

    @function_tool
    def count(words: str, unit: str = "lines") -> str:
        """Count the lines of a text."""
        return f"{len(words.splitlines())} {unit}"

    alice, bob = LimpetSession(hold, "alice"), LimpetSession(hold, "bob")
    output = hold.session("bob").outputs.keep("fetch", stories.fetch(1)).output
    assert output is not None
    calls = [Do("count", {"words": f"hold://{output.id}"}), Do("count", {"words": "hold://0123456789ab"})]
    model = Scripted(stories.steps(*calls, Do("count", {"words": "a\nb"}), Say("Counted.")))
    run(Agent(name="Scripted", model=model, tools=[*alice.tools, *alice.with_references(count)]), "Count.", bob)
    first, second, third = [shown.text for shown in model.windows[-1] if shown.role == "tool"]
    assert first == f"{stories.ROWS + 1} lines"
    assert "0123456789ab" in second
    assert third == "2 lines"
    assert "Count the lines" in count.description


class WithoutIds(Scripted):
    """A model whose provider gives no ids, as those that the SDK reaches by chat completions: all get the same one."""

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        response = await super().get_response(*args, **kwargs)
        (item,) = response.output
        if isinstance(item, ResponseFunctionToolCall):
            text = ResponseOutputText(annotations=[], text="I look.", type="output_text")
            note = ResponseOutputMessage(
                id=FAKE_RESPONSES_ID, content=[text], role="assistant", status="completed", type="message"
            )
            response.output = [note, item]
        response.output = [item.model_copy(update={"id": FAKE_RESPONSES_ID}) for item in response.output]
        return response


def test_the_same_words_without_an_id_are_stored_each_time(hold: Limpet) -> None:
    memory = LimpetSession(hold, "t")
    twice: list[Say | Do] = [Do("fetch", {"number": 1}), Do("fetch", {"number": 2}), Say("Done.")]
    model = WithoutIds(stories.steps(*twice, *twice))
    agent = Agent(name="Scripted", model=model, tools=[*memory.tools, function_tool(stories.fetch)])
    for _ in range(2):
        run(agent, "Fetch both.", memory)
    said = [message.text() for message in stories.transcript_of(hold, "t") if not message.results()]
    assert said == 2 * ["Fetch both.", "I look.", "I look.", "Done."]


def test_two_runs_at_once_in_one_session_store_each_message_once(hold: Limpet) -> None:
    """Someone presses the button twice. Each run is sent its own list, and what they said is there for the next one."""
    memory = LimpetSession(hold, "t")
    both = asyncio.Barrier(2)

    async def look(number: int) -> str:
        """Look, when the other run does."""
        await both.wait()
        return f"seen {number}"

    def model_of(number: int) -> Scripted:
        looks = [Do("look", {"number": 10 * number + step}) for step in range(2)]
        return Scripted(stories.steps(*looks, Say(f"Answer {number}.")))

    async def story() -> None:
        agents = [Agent(name="A", model=model_of(number), tools=[function_tool(look)]) for number in range(2)]
        runs = [
            Runner.run(agent, f"Request {number}.", session=memory, run_config=memory.run_config(), hooks=memory.hooks)
            for number, agent in enumerate(agents)
        ]
        results = await asyncio.gather(*runs)
        assert [result.final_output for result in results] == ["Answer 0.", "Answer 1."]

    asyncio.run(story())
    stored = stories.transcript_of(hold, "t")
    assert sorted(message.text() for message in stored if message.text()) == [
        *(f"Answer {number}." for number in range(2)),
        *(f"Request {number}." for number in range(2)),
    ]
    looked = [json.loads(call.arguments)["number"] for message in stored for call in message.calls()]
    assert sorted(looked) == [0, 1, 10, 11]
    assert sum(len(message.results()) for message in stored) == 4
    last = Scripted(stories.steps(Say("Both.")))
    run(Agent(name="A", model=last), "Which answers?", memory)
    assert all(f"Answer {number}." in text(last.windows[0]) for number in range(2))


class Streamed(Scripted):
    async def stream_response(self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any) -> Any:
        done = await self.get_response(system_instructions, input)
        response = Response(
            id="r",
            created_at=0,
            model="m",
            object="response",
            output=done.output,
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=False,
        )
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=0)


class Thinking(Streamed):
    """A model whose calls come two at once, after thoughts and a text, as reasoning models give them."""

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        response = await super().get_response(*args, **kwargs)
        calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        if calls:
            number = len(self.windows)
            calls[0] = calls[0].model_copy(update={"id": f"fc_{number}", "status": "completed"})
            thought = ResponseReasoningItem(id=f"rs_{number}", summary=[], type="reasoning", encrypted_content="x")
            text = ResponseOutputText(annotations=[], text=f"I fetch for the {number}th time.", type="output_text")
            note = ResponseOutputMessage(
                id=f"msg_t{number}", content=[text], role="assistant", status="completed", type="message"
            )
            again = calls[0].model_copy(update={"id": f"fc_{number}b", "call_id": f"again_{number}"})
            response.output = [thought, note, calls[0], again]
        return response


@pytest.mark.parametrize("policy", [None, "omit"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_reply_that_is_stored_before_its_calls_is_the_one_that_the_sdk_sends(
    policy: Any, streamed: bool, hold: Limpet
) -> None:
    stored_in_call: list[int] = []

    def look(number: int) -> str:
        """Look."""
        calls = [call for message in stories.transcript_of(hold, "t") for call in message.calls()]
        stored_in_call.append(len(calls))
        return f"seen {number}"

    async def story() -> None:
        model = Thinking(stories.steps(*(Do("look", {"number": number}) for number in range(3)), Say("Done.")))
        for memory in (LimpetSession(hold, "t"), LimpetSession(hold, "t")):
            agent = Agent(name="Scripted", model=model, tools=[*memory.tools, function_tool(look)])
            with_all: dict[str, Any] = {
                "session": memory,
                "run_config": memory.run_config(reasoning_item_id_policy=policy),
                "hooks": memory.hooks,
            }
            if streamed:
                result = Runner.run_streamed(agent, "Go.", **with_all)
                async for _ in result.stream_events():
                    pass
            else:
                await Runner.run(agent, "Go.", **with_all)
            model.script = stories.steps(Do("look", {"number": 4}), Say("Done again."))

    asyncio.run(story())
    stored = stories.transcript_of(hold, "t")
    assert stored_in_call == [2, 2, 4, 4, 6, 6, 8, 8]
    assert sum(len(message.calls()) for message in stored) == 8
    assert sum(len(message.results()) for message in stored) == 8
    assert [message.text() for message in stored if message.role == "assistant"] == [
        *(f"I fetch for the {number}th time." for number in (1, 2, 3)),
        "Done.",
        "I fetch for the 5th time.",
        "Done again.",
    ]
    assert stories.folds(hold) == []


@input_guardrail(run_in_parallel=False)
async def harmless(context: Any, agent: Any, input: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(None, tripwire_triggered=False)


@pytest.mark.parametrize("guards", [[], [harmless]], ids=["plain", "guarded"])
def test_a_streamed_run_is_the_same_conversation(guards: list[Any], hold: Limpet) -> None:
    async def story() -> None:
        steps = [step for turn in range(3) for step in (Do("fetch", {"number": turn}), Say(f"Answer {turn}."))]
        model = Streamed(stories.steps(*steps))
        for turn in range(3):
            memory = LimpetSession(hold, "t")
            tools = [*memory.tools, function_tool(stories.fetch)]
            agent = Agent(name="Scripted", model=model, tools=list(tools), input_guardrails=guards)
            result = Runner.run_streamed(
                agent, f"Turn {turn}.", session=memory, run_config=memory.run_config(), hooks=memory.hooks
            )
            async for _ in result.stream_events():
                pass

    asyncio.run(story())
    stored = stories.transcript_of(hold, "t")
    assert len(stored) == 3 * 4
    expected = [words for turn in range(3) for words in (f"Turn {turn}.", f"Answer {turn}.")]
    assert [message.text() for message in stored if message.text()] == expected
    assert sessions_of(hold) == {"t"}


def test_arguments_that_are_no_json_are_a_result(hold: Limpet) -> None:
    class Broken(Scripted):
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            response = await super().get_response(*args, **kwargs)
            for item in response.output:
                if item.type == "function_call":
                    item.arguments = '{"content": "x'
            return response

    memory = LimpetSession(hold, "t")
    model = Broken(stories.steps(Do("add_note", {}), Say("So be it.")))
    run(Agent(name="Scripted", model=model, tools=[*memory.tools]), "Note.", memory)
    (told,) = [shown.text for shown in model.windows[1] if shown.role == "tool"]
    assert "JSON" in told
    assert hold.session("t").notes.list() == ()


def test_an_agent_that_is_a_tool_has_a_transcript_of_its_own(hold: Limpet) -> None:
    """It inherits the run's filter. Its talk is neither mixed with the caller's nor stored twice."""
    memory = LimpetSession(hold, "t")
    asks = [Do("expert", {"input": f"Question {number}."}) for number in range(4)]
    own = [Do("fetch", {"number": number}) for number in range(4)]
    both = [step for pair in zip(asks, own, strict=True) for step in pair]
    note = Do("add_note", {"content": stories.MARK})
    expert = Agent(
        name="Expert",
        model=Scripted(stories.steps(note, *(Say(f"Answer {number}.") for number in range(4)))),
        tools=[*memory.tools],
    )
    tools: list[Any] = [*memory.tools, expert.as_tool("expert", "Ask the expert."), function_tool(stories.fetch)]
    agent = Agent(name="Main", model=Scripted(stories.steps(*both, Say("Done."))), tools=tools)
    run(agent, "Go.", memory)
    kept = stories.kept(hold, "t")
    assert len(kept) == 1 + 2 * 8 + 1
    assert "Question 1." not in "".join(message.text() for message in kept)
    assert stories.folds(hold) == []
    assert [note.content for note in hold.session("t").notes.list()] == [stories.MARK], "notes are shared"
    assert transcript_total(hold) == 18 + 3 + 3, "the expert's answers are the results of its calls"


def transcript_total(hold: Limpet) -> int:
    """The messages of all sessions."""
    return sum(hold.store.entries.tally(hold.scope, MESSAGE, id).total for id in sessions_of(hold))


def sessions_of(hold: Limpet) -> set[str]:
    page = hold.store.entries.list(hold.scope, Listing((MESSAGE,), include_done=True, limit=10_000))
    return {entry.session for entry in page.entries if not entry.session.endswith(".items")}


def test_what_the_provider_counted_is_known(hold: Limpet) -> None:
    """The model counts three times as much as is estimated: the window is compacted that much earlier."""

    class Dear(Scripted):
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            response = await super().get_response(*args, **kwargs)
            response.usage.input_tokens = size(self.windows[-1]) * 2
            return response

    memory = LimpetSession(hold, "t", limit=stories.LIMIT * 2)
    model = Dear(stories.steps(*(Do("fetch", {"number": number}) for number in range(30)), Say("Done.")))
    run_long = Agent(name="Scripted", model=model, tools=[*memory.tools, function_tool(stories.fetch)])
    asyncio.run(
        Runner.run(run_long, "Go.", session=memory, run_config=memory.run_config(), hooks=memory.hooks, max_turns=50)
    )
    assert max(map(size, model.windows)) <= stories.LIMIT
