"""The Anthropic SDK's client and tool runner against a scripted model, with Limpet as window, tools and memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, APIConnectionError, AsyncAnthropic, beta_async_tool, beta_tool
from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaBuiltinFunctionTool,
    ToolError,
)
from anthropic.types import Message

import limpet
from adapters import stories
from bench.frameworks.anthropic import AnthropicSDK, served, shown
from bench.frameworks.script import Do, Say, text
from limpet.adapters.anthropic import LimpetMessages
from limpet.adapters.anthropic_memory import LimpetAsyncMemoryTool, LimpetMemoryTool
from limpet.api import Limpet
from limpet.window.plan.rules import LOST


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_story(story: Any, hold: Limpet) -> None:
    asyncio.run(story(AnthropicSDK, hold))


def test_a_warning_takes_no_answer_away(hold: Limpet) -> None:
    asyncio.run(stories.a_warning_takes_no_answer_away(AnthropicSDK, hold))


def client(address: str) -> Anthropic:
    return Anthropic(api_key="none", base_url=address, max_retries=0)


def remember(command: str, **arguments: Any) -> Do:
    return Do("memory", {"command": command, **arguments})


# --- the window -------------------------------------------------------------------------------------------------------


def unmarked(block: Any) -> Any:
    return {name: value for name, value in block.items() if name != "cache_control"}


def blocks(body: Any) -> list[Any]:
    """A request as one list, in the order in which a provider caches it."""
    out = [*body["tools"], *([body["system"]] if isinstance(body["system"], str) else body["system"])]
    for message in body["messages"]:
        content = message["content"]
        given = [{"type": "text", "text": content}] if isinstance(content, str) else content
        out += [{"role": message["role"], **block} for block in given]
    return out


def test_what_is_marked_for_the_cache_is_what_the_next_request_begins_with(hold: Limpet) -> None:
    writes = (Do("update_notepad", {"operation": "append", "content": f"{number}\n"}) for number in range(4))
    fetches = (Do("fetch", {"number": number}) for number in range(4))
    agent = AnthropicSDK(stories.steps(*writes, *fetches, Say("Done.")), [stories.fetch], hold, system="Be brief.")
    asyncio.run(agent.run("Go.", "t"))
    assert len(agent.bodies) == 9
    for before, after in zip(agent.bodies, agent.bodies[1:], strict=False):
        marks = [at for at, block in enumerate(blocks(before)) if "cache_control" in block]
        assert len(marks) == 2
        kept = list(map(unmarked, blocks(before)[: marks[-1] + 1]))
        assert kept == list(map(unmarked, blocks(after)[: marks[-1] + 1]))
        assert "Session Notepad" in str(blocks(before)[-1]), "what changes stands behind the mark"
        assert "Session Notepad" not in str(kept[len(before["tools"]) :])


def test_a_conversation_is_taken_up_by_another_process(hold: Limpet) -> None:
    with served(stories.steps(Do("fetch", {"number": 1}), Say("One."), Say("Two."))) as (address, bodies):
        for request in ("First.", "Second."):
            memory = LimpetMessages(hold, "t", tools=[beta_tool(stories.fetch)], cache=False)
            reply = memory.run(client(address), request, model="scripted", max_tokens=100)
            assert memory.done
            assert reply.stop_reason == "end_turn"
    said = text(shown(bodies[-1]))
    assert said.index("First.") < said.index("Output cached") < said.index("One.") < said.index("Second.")
    assert "cache_control" not in str(bodies)


def test_a_reply_is_stored_before_its_calls_run(hold: Limpet) -> None:
    """A process that is killed in a tool leaves the call; the next one says that its result is lost."""
    stored: list[str] = []

    def deploy(number: int) -> str:
        """Deploy it."""
        with stories.opened_again(hold) as other:
            stored.extend(call.name for message in stories.transcript_of(other, "t") for call in message.calls())
            taken_up = LimpetMessages(other, "t", tools=[tool], cache=False)
            taken_up.run(client(address), "What was done?", model="scripted", max_tokens=100)
        raise KeyboardInterrupt

    tool = beta_tool(deploy)
    with served(stories.steps(Do("deploy", {"number": 1}), Say("Unknown."))) as (address, bodies):
        memory = LimpetMessages(hold, "t", tools=[tool], cache=False)
        with pytest.raises(KeyboardInterrupt):
            memory.run(client(address), "Deploy.", model="scripted", max_tokens=100)
    assert stored == ["deploy"]
    assert LOST in text(shown(bodies[-1]))


def test_a_loop_of_your_own(hold: Limpet) -> None:
    memory = LimpetMessages(hold.session("t"), tools=[LimpetMemoryTool(hold.session("t"))])
    script = stories.steps(remember("create", path="/memories/notepad.md", file_text=stories.MARK), Say("Noted."))
    with served(script) as (address, bodies):
        memory.say("Note the port.")
        while not memory.done:
            reply = client(address).messages.create(model="scripted", max_tokens=100, **memory.request())
            memory.answer(reply)
    assert hold.session("t").notepad.read() == stories.MARK
    assert stories.MARK in shown(bodies[1])[-1].text


def test_what_tools_do_wrong_is_told(hold: Limpet) -> None:
    @beta_tool
    def refuse(number: int) -> str:
        """Refuse."""
        raise ToolError("Not today.")

    @beta_async_tool
    async def later(number: int) -> str:
        """Do it later."""
        return "done"

    calls = [Do(name, {"number": 1}) for name in ("broken", "refuse", "later", "unknown")]
    calls += [Do("fetch", {"number": "hold://0123456789ab"})]
    tools = [beta_tool(stories.broken), refuse, later, beta_tool(stories.fetch)]
    with served(stories.steps(*calls, Say("So be it."))) as (address, bodies):
        LimpetMessages(hold, "t", tools=tools).run(client(address), "Go.", model="scripted", max_tokens=100)
    results = [block for block in blocks(bodies[-1]) if block.get("type") == "tool_result"]
    assert all(result["is_error"] for result in results)
    told = [result["content"] for result in results]
    assert told[0] == "RuntimeError('record 1 is unreadable')"
    assert told[1] == "Not today."
    assert "async tool" in told[2]
    assert "Tools that exist" in told[3]
    assert "0123456789ab" in told[4]


def test_a_reply_that_was_cut_short_calls_nothing(hold: Limpet) -> None:
    memory = LimpetMessages(hold, "t")
    memory.say("Note it.")
    memory.request()
    call = {"type": "tool_use", "id": "toolu_1", "name": "add_note", "input": {"content": "half"}}
    memory.answer(reply_of([call], "max_tokens"))
    assert memory.done
    assert hold.session("t").notes.list() == ()
    memory.say("Go on.")
    assert "tool_use" not in str(memory.request()["messages"]) or "tool_result" in str(memory.request()["messages"])


@pytest.mark.parametrize("streamed", [False, True])
def test_a_request_that_failed_is_not_said_twice(streamed: bool, hold: Limpet) -> None:
    """The provider is overloaded; the application tries the same again, here or in another process."""
    memory = LimpetMessages(hold, "t")

    def attempt(address: str) -> None:
        given: Any = {"model": "scripted", "max_tokens": 100}
        if streamed:
            list(memory.stream(client(address), "Go.", **given))
        else:
            memory.run(client(address), "Go.", **given)

    for _ in range(3):
        with pytest.raises(APIConnectionError):
            attempt("http://127.0.0.1:9")
    assert memory.done
    with served(stories.steps(Say("Gone."))) as (address, bodies):
        attempt(address)
    assert str(bodies[0]["messages"]).count("Go.") == 1
    assert [message.text() for message in stories.transcript_of(hold, "t")] == ["Go.", "Gone."]


def test_a_conversation_that_was_answered_is_done(hold: Limpet) -> None:
    with served(stories.steps(Say("One."))) as (address, _):
        LimpetMessages(hold, "t").run(client(address), "Go.", model="scripted", max_tokens=100)
    assert LimpetMessages(hold, "t").done
    assert LimpetMessages(hold, "new").done


WEB: Any = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}


def test_tools_of_the_provider_are_passed_on(hold: Limpet) -> None:
    """In the constructor or in `run`; a call of one that only the caller could run is answered in words."""
    bash: Any = {"type": "bash_20250124", "name": "bash"}
    memory = LimpetMessages(hold, "t", tools=[WEB])
    with served(stories.steps(Do("bash", {"command": "ls"}), Say("Done."), Say("Again."))) as (address, bodies):
        memory.run(client(address), "Go.", model="scripted", max_tokens=100, tools=[bash], system="Be brief.")
        memory.run(client(address), "And?", model="scripted", max_tokens=100)
    for body in bodies:
        assert WEB in body["tools"]
        assert bash in body["tools"]
        assert "Be brief." in str(body["system"])
    (result,) = [block for block in blocks(bodies[1]) if block.get("type") == "tool_result"]
    assert result["is_error"]
    assert "bash" in result["content"]


def test_what_the_provider_searched_comes_back_as_it_was(hold: Limpet) -> None:
    searched: list[Any] = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "port"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [
                {"type": "web_search_result", "url": "https://x.example", "title": "Port", "encrypted_content": "e"}
            ],
        },
        {"type": "text", "text": "It is 5433."},
    ]
    memory = LimpetMessages(hold, "t", tools=[WEB])
    memory.say("Which port?")
    memory.request()
    memory.answer(reply_of(searched, "end_turn"))
    assert memory.done
    again = LimpetMessages(hold, "t", tools=[WEB])
    again.say("Sure?")
    sent = again.request()["messages"][1]["content"]
    assert [block["type"] for block in sent] == [block["type"] for block in searched]
    assert sent[1]["content"][0]["encrypted_content"] == "e"


def reply_of(content: list[Any], stop_reason: str) -> Message:
    usage = {"input_tokens": 1, "output_tokens": 1}
    fields = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return Message.model_validate({**fields, "usage": usage, "content": content, "stop_reason": stop_reason})


def test_values_of_tools_are_shown_as_json(hold: Limpet) -> None:
    @dataclass
    class Row:
        number: int

    values: dict[int, Any] = {0: {"port": 5433}, 1: [{"port": 1}, {"port": 2}], 2: Row(3), 3: 7, 4: None, 5: BIG_ROWS}

    class Give(BetaBuiltinFunctionTool):
        def to_dict(self) -> Any:
            return {"name": "give", "input_schema": {"type": "object"}}

        def call(self, input: Any) -> Any:
            return values[input["number"]]

    script = stories.steps(*(Do("give", {"number": number}) for number in values), Say("Done."))
    with served(script) as (address, bodies):
        LimpetMessages(hold, "t", tools=[Give()]).run(client(address), "Go.", model="scripted", max_tokens=100)
    results = [block for block in blocks(bodies[-1]) if block.get("type") == "tool_result"]
    assert not any(result.get("is_error") for result in results)
    *small, big = [result.get("content", "") for result in results]
    assert small == ['{"port": 5433}', '[{"port": 1}, {"port": 2}]', '{"number": 3}', "7", ""]
    assert big.startswith("📁 Output cached: ")


BIG_ROWS = {"rows": [{"row": row} for row in range(2_000)]}


def test_a_run_can_be_streamed(hold: Limpet) -> None:
    """Every event of every request, and the same memory as without."""
    steps = (Do("fetch", {"number": 1}), Say("One."))
    with served(stories.steps(*steps)) as (address, bodies):
        memory = LimpetMessages(hold, "t", tools=[beta_tool(stories.fetch)])
        events = list(memory.stream(client(address), "Go.", model="scripted", max_tokens=100))
    assert memory.done
    assert [event.text for event in events if event.type == "text"] == ["One."]
    assert events[-1].type == "message_stop"
    assert events[-1].message.content[0].text == "One."
    assert "Output cached" in text(shown(bodies[1]))
    assert [message.text() for message in stories.kept(hold, "t") if message.text()] == ["Go.", "One."]


def test_an_async_run_can_be_streamed(hold: Limpet) -> None:
    async def story(address: str) -> list[str]:
        async with AsyncAnthropic(api_key="none", base_url=address, max_retries=0) as asynchronous:
            memory = LimpetMessages(hold, "t", tools=[beta_tool(stories.fetch)])
            stream = memory.astream(asynchronous, "Go.", model="scripted", max_tokens=100)
            return [event.text async for event in stream if event.type == "text"]

    with served(stories.steps(Do("fetch", {"number": 1}), Say("One."))) as (address, _):
        assert asyncio.run(story(address)) == ["One."]
    assert [message.text() for message in stories.kept(hold, "t") if message.text()] == ["Go.", "One."]


@pytest.mark.parametrize("kind", [LimpetMemoryTool, LimpetAsyncMemoryTool])
def test_the_memory_tool_writes_where_the_conversation_is(kind: Any, hold: Limpet) -> None:
    """One tool object for two conversations: each has its own notepad."""
    tool = kind(hold)

    async def story(address: str, thread: str) -> None:
        async with AsyncAnthropic(api_key="none", base_url=address, max_retries=0) as asynchronous:
            await conversations[thread].arun(asynchronous, "Note it.", model="scripted", max_tokens=100)

    conversations = {thread: LimpetMessages(hold, thread, tools=[tool]) for thread in ("a", "b")}
    for thread in ("a", "b"):
        script = stories.steps(remember("create", path="/memories/notepad.md", file_text=f"of {thread}"), Say("Noted."))
        with served(script) as (address, _):
            asyncio.run(story(address, thread))
    assert [hold.session(thread).notepad.read() for thread in ("a", "b")] == ["of a", "of b"]
    assert hold.session().notepad.read() == ""


def test_a_memory_tool_alone_finds_its_files_in_the_next_process(tmp_path: Path) -> None:
    """As the page shows it: the tool with the project's memory, and no session named."""
    for session in (None, "parser"):
        place = str(tmp_path / f"{session}.db")
        with limpet.open(place, session=session) as hold:
            LimpetMemoryTool(hold).call({"command": "create", "path": "/memories/notepad.md", "file_text": "Mine."})
            LimpetMemoryTool(hold).call({"command": "create", "path": "/memories/notes/x.md", "file_text": "A note."})
        with limpet.open(place, session=session) as hold:
            listing = LimpetMemoryTool(hold).call({"command": "view", "path": "/memories"})
            assert "/memories/notepad.md" in listing
            assert "/memories/notes/note_" in listing
            if session:
                assert hold.session(session).notepad.read() == "Mine."
            other = LimpetMemoryTool(hold, "other").call({"command": "view", "path": "/memories"})
            assert "/memories/notepad.md" not in other


def told(bodies: list[Any]) -> list[str]:
    """The results that the runner sent: of each request only the last, since it may leave out what was sent before."""
    return [one.text for body in bodies for one in shown(body)[-1:] if one.role == "tool"]


# --- the tool runner --------------------------------------------------------------------------------------------------


def test_the_tool_runner_with_our_tools_and_theirs(hold: Limpet) -> None:
    kept = hold.session("t").outputs.keep("fetch", stories.fetch(7))
    assert kept.output is not None

    @beta_tool
    def count(words: str) -> str:
        """Count lines."""
        return str(len(words.splitlines()))

    memory = LimpetMessages(hold, "t", tools=[beta_tool(stories.fetch), count, LimpetMemoryTool(hold.session("t"))])
    script = stories.steps(
        Do("fetch", {"number": 3}),
        Do("add_note", {"content": stories.MARK}),
        Do("add_note", {"content": ""}),
        Do("count", {"words": f"hold://{kept.output.id}"}),
        remember("view", path="/memories"),
        Say("Done."),
    )
    with served(script) as (address, bodies):
        runner = client(address).beta.messages.tool_runner(
            model="scripted", max_tokens=100, messages=[{"role": "user", "content": "Go."}], tools=memory.tools()
        )
        last = runner.until_done()
    assert last.content[0].to_dict()["text"] == "Done."
    fetched, noted, refused, counted, viewed = told(bodies)
    assert fetched.startswith("📁 Output cached: ")
    assert " kept; " in noted
    assert refused.startswith("note content is empty")
    assert counted == str(stories.ROWS + 1)
    assert "/memories/notes/note_" in viewed


def test_the_async_tool_runner(hold: Limpet) -> None:
    @beta_async_tool
    async def fetch(number: int) -> str:
        """Fetch one record."""
        return stories.fetch(number)

    async def story(address: str) -> None:
        memory = LimpetMessages(hold, "t", tools=[fetch, LimpetAsyncMemoryTool(hold.session("t"))])
        async with AsyncAnthropic(api_key="none", base_url=address, max_retries=0) as asynchronous:
            runner = asynchronous.beta.messages.tool_runner(
                model="scripted",
                max_tokens=100,
                messages=[{"role": "user", "content": "Go."}],
                tools=memory.async_tools(),
            )
            await runner.until_done()

    script = stories.steps(
        Do("fetch", {"number": 3}),
        Do("add_note", {"content": stories.MARK}),
        remember("create", path="/memories/plan.md", file_text="One thing."),
        remember("create", path="/etc/passwd", file_text="x"),
        Say("Done."),
    )
    with served(script) as (address, bodies):
        asyncio.run(story(address))
    fetched, _, made, refused = told(bodies)
    assert fetched.startswith("📁 Output cached: ")
    assert made == "File created successfully at: /memories/plan.md"
    assert refused.startswith("Path must start with /memories, got: '/etc/passwd'")
    assert hold.memory.read("plan.md").content == "One thing."


def test_both_memory_tools_are_those_of_the_sdk(hold: Limpet) -> None:
    assert isinstance(LimpetMemoryTool(hold), BetaAbstractMemoryTool)
    assert isinstance(LimpetAsyncMemoryTool(hold), BetaAsyncAbstractMemoryTool)
    cached = LimpetMemoryTool(hold, cache_control={"type": "ephemeral"})
    expected = {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}
    assert cached.to_dict() == expected
