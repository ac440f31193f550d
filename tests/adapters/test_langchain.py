"""LangChain's own loop, driven by a scripted chat model, with Limpet as its middleware."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from adapters import stories
from adapters.trimming import LastMessages
from bench.frameworks.langchain import LangChain, LangChainSync, Scripted
from bench.frameworks.script import Do, Say, Window, size, text
from limpet.adapters.langchain import LimpetMiddleware
from limpet.api import Limpet
from limpet.window.plan.context import HEAD_MARK
from limpet.window.plan.rules import unpaired

CANCELLED = (
    stories.a_cancelled_run_leaves_no_half_pair,
    stories.a_cancelled_talk_goes_on,
    stories.a_run_that_died_is_known,
    stories.a_run_that_died_is_known_when_it_is_asked_for_again,
)


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_story(story: Any, hold: Limpet) -> None:
    asyncio.run(story(LangChain, hold))


@pytest.mark.parametrize(
    "story", [story for story in stories.STORIES if story not in CANCELLED], ids=lambda story: story.__name__
)
def test_story_without_async(story: Any, hold: Limpet) -> None:
    asyncio.run(story(LangChainSync, hold))


def summarising() -> Any:
    """LangChain's own compaction, with a model that writes the summaries."""
    chat = Scripted(script=lambda window: Say("They talked."), windows=[])
    return SummarizationMiddleware(model=chat, trigger=("messages", 8), keep=("messages", 4))


@pytest.mark.parametrize("before", [LastMessages, summarising], ids=["trimmed", "summarised"])
def test_a_thread_that_langchain_shortens_is_kept_once(before: Any, hold: Limpet) -> None:
    asyncio.run(stories.a_trimmed_talk_is_kept_once(LangChain, hold, before=[before()]))


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_an_approval_in_another_process_is_the_same_conversation(decision: str, hold: Limpet) -> None:
    saver, script = InMemorySaver(), stories.steps(Do("fetch", {"number": 1}), Say("Fetched."))
    inputs: list[Any] = [asked("Fetch."), Command(resume={"decisions": [{"type": decision}]})]
    for given in inputs:
        with stories.opened_again(hold) as own:
            middleware: list[Any] = [HumanInTheLoopMiddleware(interrupt_on={"fetch": True}), LimpetMiddleware(own)]
            chat = Scripted(script=script, windows=[])
            create_agent(chat, [stories.fetch], middleware=middleware, checkpointer=saver).invoke(given, THREAD)
    stored = stories.transcript_of(hold, "t")
    assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant"]
    assert not unpaired(stored)


def test_a_thread_goes_on_after_a_tool_that_raised(hold: Limpet) -> None:
    """The call stays in the thread without a result. What was said is kept once all the same, and can be compacted."""
    turns = 15
    answers = [Say(f"Answer {turn}. " + "word " * 200) for turn in range(turns)]
    script = stories.noting(stories.steps(Do("broken", {"number": 1}), *answers))
    made, chat = agent(script, [stories.broken], hold, limit=stories.LIMIT)
    with pytest.raises(RuntimeError):
        made.invoke(asked("Fetch."), THREAD)
    for turn in range(turns):
        made.invoke(asked(f"Turn {turn}."), THREAD)
    stored = [message.text() for message in stories.transcript_of(hold, "t") if message.text()]
    assert stored == ["Fetch.", *(words for turn in range(turns) for words in (f"Turn {turn}.", answers[turn].text))]
    assert max(map(size, chat.windows)) <= stories.LIMIT
    assert "rewind" not in stories.folds(hold)
    assert len(stories.kept(hold, "t")) > 3, "a process that comes later has the talk"


def agent(script: Any, tools: list[Any], hold: Limpet, **given: Any) -> Any:
    chat = Scripted(script=script, windows=[])
    middleware = [*given.pop("before", ()), LimpetMiddleware(hold, **given)]
    return create_agent(chat, tools, middleware=middleware, checkpointer=InMemorySaver()), chat


def asked(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


THREAD: Any = {"configurable": {"thread_id": "t"}}


def test_what_a_tool_raises_is_raised_as_without_us(hold: Limpet) -> None:
    made, _ = agent(stories.steps(Do("broken", {"number": 1}), Say("Never.")), [stories.broken], hold)
    with pytest.raises(RuntimeError, match="record 1 is unreadable"):
        made.invoke(asked("Fetch."), THREAD)
    assert [call.name for message in stories.kept(hold, "t") for call in message.calls()] == ["broken"]


def test_a_reply_is_stored_before_its_calls_run(hold: Limpet) -> None:
    """Also where no checkpointer would know of the call if the process ended in it."""
    stored_in_call: list[int] = []

    @tool
    def look(number: int) -> str:
        """Look."""
        stored = stories.transcript_of(hold, "t")
        stored_in_call.append(sum(len(message.calls()) for message in stored))
        return f"seen {number}"

    made, _ = agent(stories.steps(Do("look", {"number": 1}), Do("look", {"number": 2}), Say("Done.")), [look], hold)
    made.invoke(asked("Go."), THREAD)
    assert stored_in_call == [1, 2]
    roles = [message.role for message in stories.transcript_of(hold, "t")]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert stories.folds(hold) == []


def test_a_failed_tool_is_still_one_that_failed(hold: Limpet) -> None:
    @tool
    def check(number: int) -> str:
        """Run the checks."""
        raise ToolException("FAILED disk full\n" * 1_000)

    check.handle_tool_error = True
    made, chat = agent(stories.steps(Do("check", {"number": 1}), Say("It failed.")), [check], hold)
    state = made.invoke(asked("Check."), THREAD)
    (result,) = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert result.status == "error"
    assert str(result.content).startswith("📁 Output cached: ")
    assert "FAILED disk full" in chat.windows[1][-2].text
    (kept,) = [part for message in stories.kept(hold, "t") for part in message.results()]
    assert kept.error


def test_only_texts_of_a_result_are_kept_aside(hold: Limpet) -> None:
    picture = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}

    @tool(response_format="content_and_artifact")
    def shoot(number: int) -> tuple[Any, Any]:
        """Take a picture and describe it."""
        return [{"type": "text", "text": stories.fetch(number)}, picture], {"whole": number}

    made, _ = agent(stories.steps(Do("shoot", {"number": 1}), Say("Seen.")), [shoot], hold)
    state = made.invoke(asked("Shoot."), THREAD)
    result: Any = next(message for message in state["messages"] if isinstance(message, ToolMessage))
    assert result.content[0]["text"].startswith("📁 Output cached: ")
    assert result.content[1] == picture
    assert result.artifact == {"whole": 1}


def test_results_inside_a_command_are_kept_too(hold: Limpet) -> None:
    @tool
    def move(runtime: ToolRuntime) -> Any:
        """Move on."""
        return Command(update={"messages": [ToolMessage(stories.fetch(1), tool_call_id=runtime.tool_call_id)]})

    made, chat = agent(stories.steps(Do("move", {}), Say("Moved.")), [move], hold)
    made.invoke(asked("Move."), THREAD)
    assert "Output cached" in chat.windows[1][-2].text


def test_a_reference_is_an_argument(hold: Limpet) -> None:
    counted: list[str] = []

    def count(text: str) -> str:
        """Count the lines of a text."""
        counted.append(text)
        return str(len(text.splitlines()))

    kept = hold.session("t").outputs.keep("fetch", stories.fetch(1))
    assert kept.output is not None
    script = stories.steps(
        Do("count", {"text": f"hold://{kept.output.id}"}), Do("count", {"text": "hold://0123456789ab"}), Say("Counted.")
    )
    made, _ = agent(script, [count], hold)
    state = made.invoke(asked("Count."), THREAD)
    results = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert counted == [stories.fetch(1)]
    assert [one.status for one in results] == ["success", "error"]
    assert "0123456789ab" in results[1].content


def test_the_answer_to_a_warning_does_not_end_the_run(hold: Limpet) -> None:
    """The model says something when it is warned, without a call: it is asked again, and then it answers."""

    def model(window: Window) -> Say | Do:
        if "approaching the token limit" in window[-1].text:
            return Say("Noted.")
        return Say("Done.") if "compact" in stories.folds(hold) else Do("speak", {"number": len(window)})

    def speak(number: int) -> str:
        """Say something that is not big enough to be kept aside."""
        return f"word{number} " * 500

    made, chat = agent(model, [speak], hold, limit=6_000)
    state = made.invoke(asked("Speak."), THREAD)
    assert state["messages"][-1].text == "Done."
    assert "Noted." not in [message.text for message in state["messages"]], "it is no answer to the user"
    assert sum("approaching the token limit" in text(window) for window in chat.windows) == 1


@pytest.mark.parametrize("drive", [LangChain, LangChainSync])
def test_a_thread_has_one_answer_for_each_request(drive: Any, hold: Limpet) -> None:
    asyncio.run(stories.a_warning_takes_no_answer_away(drive, hold))


def test_the_system_prompt_keeps_its_blocks(hold: Limpet) -> None:
    hold.session("before").handoff.write("Go on with record 4.")
    seen: list[Any] = []

    class Look(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append(request.system_message)
            return handler(request)

    own = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    chat = Scripted(script=stories.steps(Say("Hi.")), windows=[])
    made: Any = create_agent(chat, system_prompt=SystemMessage([own]), middleware=[LimpetMiddleware(hold), Look()])
    made.invoke(asked("Hello."))
    first, second, third = seen[0].content
    assert "Go on with record 4." in first["text"]
    assert second == own
    assert third["text"].startswith(f"{HEAD_MARK}\n\nNotes: write down")


def test_a_process_that_comes_later_sends_the_very_messages_of_the_thread(hold: Limpet) -> None:
    """The thread comes back from a checkpointer, the window from the store: nothing is lost in between."""
    picture = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
    sent: list[Any] = []

    class Look(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            sent.append(request.messages)
            return handler(request)

    saver = InMemorySaver()
    for said in ("One.", "Two."):
        chat = Scripted(script=stories.steps(Say(said)), windows=[])
        made: Any = create_agent(chat, middleware=[LimpetMiddleware(hold), Look()], checkpointer=saver)
        made.invoke({"messages": [HumanMessage([{"type": "text", "text": said}, picture])]}, THREAD)
    assert [message.content for message in sent[1][:3]] == [
        [{"type": "text", "text": "One."}, picture],
        "One.",
        [{"type": "text", "text": "Two."}, picture],
    ]
    assert stories.folds(hold) == []


def test_a_deep_agent_and_its_sub_agent(hold: Limpet) -> None:
    """Both have our middleware. The sub-agent's talk is a session of its own, and the main one goes on undisturbed."""
    middleware = LimpetMiddleware(hold)
    deep = stories.steps(Do("fetch", {"number": 2}), Say("The second is fetched."))
    main = stories.steps(
        Do("fetch", {"number": 1}),
        Do("task", {"description": "Fetch the second.", "subagent_type": "fetcher"}),
        Do("write_memory", {"key": "records", "content": "Two were fetched."}),
        Say("Both are fetched."),
    )
    chat = Scripted(script=main, windows=[])
    fetcher: Any = {
        "name": "fetcher",
        "description": "Fetches.",
        "system_prompt": "Fetch.",
        "model": Scripted(script=deep, windows=[]),
        "tools": [stories.fetch],
        "middleware": [middleware],
    }
    made: Any = create_deep_agent(
        chat, [stories.fetch], middleware=[middleware], subagents=[fetcher], checkpointer=InMemorySaver()
    )
    state = made.invoke(asked("Fetch both."), THREAD)
    assert state["messages"][-1].text == "Both are fetched."
    assert "Output cached" in text(chat.windows[1])
    assert "The second is fetched." in text(chat.windows[2])
    assert "rewind" not in stories.folds(hold)
    others = [session.id for session in hold.sessions() if session.id.startswith("t/tools:")]
    assert len(others) == 1
    assert stories.kept(hold, others[0])[0].text() == "Fetch the second."
    assert hold.memory.read("records").content == "Two were fetched."
