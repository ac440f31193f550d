"""The Anthropic SDK's client and tool runner against a scripted model, with Limpet as window, tools and memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from adapters import stories
from bench.frameworks.anthropic import AnthropicSDK, served, shown
from bench.frameworks.script import Do, Say, text
from limpet.adapters.anthropic import LimpetMessages
from limpet.adapters.anthropic_memory import LimpetAsyncMemoryTool, LimpetMemoryTool
from limpet.api import Limpet


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_story(story: Any, hold: Limpet) -> None:
    asyncio.run(story(AnthropicSDK, hold))


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
    from anthropic.types import Message

    memory = LimpetMessages(hold, "t")
    memory.say("Note it.")
    memory.request()
    call = {"type": "tool_use", "id": "toolu_1", "name": "add_note", "input": {"content": "half"}}
    usage = {"input_tokens": 1, "output_tokens": 1}
    made = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None, "usage": usage}
    memory.answer(Message.model_validate({**made, "content": [call], "stop_reason": "max_tokens"}))
    assert memory.done
    assert hold.session("t").notes.list() == ()
    memory.say("Go on.")
    assert "tool_use" not in str(memory.request()["messages"]) or "tool_result" in str(memory.request()["messages"])


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
    assert "note_" in noted
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
