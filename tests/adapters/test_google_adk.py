"""ADK's own runner, driven by a scripted model, with Limpet as a plugin and as its memory service."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, ParallelAgent, SequentialAgent
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import BaseModel

from adapters import stories
from bench.frameworks.google_adk import GoogleADK, Scripted
from bench.frameworks.script import Do, Say, text
from limpet import limits
from limpet.adapters.google_adk import LimpetMemoryService, LimpetPlugin, session_of
from limpet.api import Limpet
from limpet.model import MESSAGE
from limpet.store import Listing


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_story(story: Any, hold: Limpet) -> None:
    asyncio.run(story(GoogleADK, hold))


def test_a_session_that_adk_filters_is_kept_once(hold: Limpet) -> None:
    last = ContextFilterPlugin(num_invocations_to_keep=4)
    asyncio.run(stories.a_trimmed_talk_is_kept_once(GoogleADK, hold, before=[last]))


def test_a_call_that_never_came_back_is_known(hold: Limpet) -> None:
    asyncio.run(stories.a_call_that_never_came_back_is_known(GoogleADK, hold))


class TextFirst(Scripted):
    """A model whose replies come as a stream: a text, and then the call."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        async for response in super().generate_content_async(llm_request, stream):
            parts = response.content.parts if response.content else None
            if parts and parts[0].function_call:
                said = types.Content(role="model", parts=[types.Part(text=f"I look ({len(self.windows)}).")])
                yield LlmResponse(content=said.model_copy(), partial=True)
                yield LlmResponse(content=said)
            yield response


def test_a_streamed_reply_in_two_parts_is_stored_before_its_calls_run(hold: Limpet) -> None:
    main = session_of("app", "u", "main")
    stored_in_call: list[int] = []

    def look(number: int) -> str:
        """Look."""
        stored = stories.transcript_of(hold, main)
        stored_in_call.append(sum(len(message.calls()) for message in stored))
        return f"seen {number}"

    script = stories.steps(*(Do("look", {"number": number}) for number in range(2)), Say("Done."), Say("Bye."))
    runner = runner_of(LlmAgent(name="root", model=TextFirst(script=script, windows=[]), tools=[look]), hold)
    asyncio.run(says(runner, "Go."))
    asyncio.run(says(runner, "More?"))
    assert stored_in_call == [1, 2]
    stored = stories.transcript_of(hold, main)
    said = ["Go.", "I look (1).", "I look (2).", "Done.", "More?", "Bye."]
    assert [message.text() for message in stored if message.text()] == said
    assert [len(message.results()) for message in stored if message.results()] == [1, 1]
    assert stories.folds(hold) == []
    (plugin,) = runner.plugin_manager.plugins
    assert isinstance(plugin, LimpetPlugin)
    assert not plugin._requests, "nothing stays of a run that has ended"


def results(agent: GoogleADK) -> list[str]:
    return [shown.text for shown in agent.windows[-1] if shown.role == "tool"]


def test_a_reference_is_an_argument(hold: Limpet) -> None:
    def count(words: str) -> int:
        """Count the lines of a text."""
        return len(words.splitlines())

    kept = hold.session(session_of("app", "u", "t")).outputs.keep("fetch", stories.fetch(1)).output
    assert kept is not None
    script = stories.steps(
        Do("count", {"words": f"hold://{kept.id}"}), Do("count", {"words": "hold://0123456789ab"}), Say("Counted.")
    )
    agent = GoogleADK(script, [count], hold)
    asyncio.run(agent.run("Count.", "t"))
    first, second = results(agent)
    assert first == str(stories.ROWS + 1)
    assert "0123456789ab" in second


def test_big_values_become_references(hold: Limpet) -> None:
    def rows(number: int) -> dict[str, Any]:
        """All rows."""
        return {"rows": [{"row": row, "value": row * number} for row in range(1_000)], "count": 1_000}

    agent = GoogleADK(stories.steps(Do("rows", {"number": 2}), Say("Read.")), [rows], hold)
    asyncio.run(agent.run("Read.", "t"))
    (shown,) = results(agent)
    assert shown.startswith("📁 Output cached: ")


class Table(BaseModel):
    rows: list[int]


def test_typed_results_become_references_too(hold: Limpet) -> None:
    def read_table(number: int) -> Table:
        """The table."""
        return Table(rows=list(range(10_000)))

    agent = GoogleADK(stories.steps(Do("read_table", {"number": 2}), Say("Read.")), [read_table], hold)
    asyncio.run(agent.run("Read.", "t"))
    (shown,) = results(agent)
    assert shown.startswith("📁 Output cached: ")
    (output,) = hold.session(agent.session_of("t")).outputs.list().outputs
    assert json.loads(hold.session().outputs.read_content(output.id))["rows"][-1] == 9_999


def test_what_a_tool_raises_is_raised_as_without_us(hold: Limpet) -> None:
    agent = GoogleADK(stories.steps(Do("broken", {"number": 1}), Say("So be it.")), [stories.broken], hold)
    with pytest.raises(RuntimeError, match="record 1 is unreadable"):
        asyncio.run(agent.run("Fetch.", "t"))


# --- several users and agents -----------------------------------------------------------------------------------------


def runner_of(agent: BaseAgent, hold: Limpet, **options: Any) -> InMemoryRunner:
    return InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[LimpetPlugin(hold, **options)]))


def scripted(name: str, *script: Any, **more: Any) -> LlmAgent:
    return LlmAgent(name=name, model=Scripted(script=stories.steps(*script), windows=[]), **more)


async def says(runner: InMemoryRunner, request: str, user: str = "u", session: str = "main") -> list[Event]:
    sessions = runner.session_service
    if await sessions.get_session(app_name="app", user_id=user, session_id=session) is None:
        await sessions.create_session(app_name="app", user_id=user, session_id=session)
    return [event async for event in runner.run_async(user_id=user, session_id=session, new_message=content(request))]


def transcripts(hold: Limpet) -> dict[str, list[str]]:
    """What each session has kept, also of talk that is not in its window any more."""
    page = hold.store.entries.list(hold.scope, Listing((MESSAGE,), include_done=True, limit=10_000))
    stored: dict[str, list[str]] = {}
    for entry in page.entries:
        stored.setdefault(entry.session, []).append(entry.content)
    return stored


def test_two_users_with_one_session_id_share_nothing(hold: Limpet) -> None:
    writes = Do("update_notepad", {"operation": "append", "content": "Alice's secret."})
    agent = scripted("root", writes, Say("Noted."), Say("Hello, Bob."))
    runner = runner_of(agent, hold)
    asyncio.run(says(runner, "Note it.", "alice"))
    asyncio.run(says(runner, "Hello.", "bob"))
    model: Any = agent.model
    assert "Alice's secret." in str(model.windows[1])
    assert "Alice's secret." not in str(model.windows[2])
    assert session_of("app", "a/b", "c") != session_of("app", "a", "b/c")


def test_agents_in_a_sequence_have_a_transcript_each(hold: Limpet) -> None:
    turns = 5
    writer = scripted("writer", *(Say(f"Draft {turn}.") for turn in range(turns)))
    critic = scripted(
        "critic",
        Do("update_notepad", {"operation": "append", "content": "The critic was here."}),
        *(Say(f"Fine {turn}.") for turn in range(turns)),
    )
    runner = runner_of(SequentialAgent(name="team", sub_agents=[writer, critic]), hold)
    for turn in range(turns):
        asyncio.run(says(runner, f"Turn {turn}."))
    stored = transcripts(hold)
    main = session_of("app", "u", "main")
    assert set(stored) == {f"{main}/writer", f"{main}/critic"}
    for own, name in (("Draft", "writer"), ("Fine", "critic")):
        text = "\n".join(stored[f"{main}/{name}"])
        for turn in range(turns):
            assert text.count(f"Turn {turn}.") == 1
            assert text.count(f"{own} {turn}.") == 1
    assert stories.folds(hold) == []
    model: Any = writer.model
    assert "The critic was here." in str(model.windows[-1]), "the notepad is the conversation's"


def test_an_agent_sees_its_own_window_in_the_tools_about_it(hold: Limpet) -> None:
    writer = scripted("writer", Say("Draft."))
    critic = scripted(
        "critic", Do("uncompact", {"first": 9}), Do("begin_task", {"description": "Check it."}), Say("Fine.")
    )
    runner = runner_of(SequentialAgent(name="team", sub_agents=[writer, critic]), hold, profile="full")
    asyncio.run(says(runner, "Write."))
    model: Any = critic.model
    assert "this session has 3 messages" in text(model.windows[1]), "the request, the writer's draft, and the call"
    main = session_of("app", "u", "main")
    assert hold.call("list_tasks", {}, session=f"{main}/critic")["tasks"]
    assert not hold.call("list_tasks", {}, session=main)["tasks"]


def test_agents_side_by_side_have_a_transcript_each(hold: Limpet) -> None:
    turns = 4
    team = [scripted(f"agent{number}", *(Say(f"{number}-{turn}.") for turn in range(turns))) for number in range(3)]
    runner = runner_of(ParallelAgent(name="team", sub_agents=list(team)), hold)
    for turn in range(turns):
        asyncio.run(says(runner, f"Turn {turn}."))
    stored = transcripts(hold)
    for number in range(3):
        text = "\n".join(stored[f"{session_of('app', 'u', 'main')}/agent{number}"])
        assert [text.count(f"{number}-{turn}.") for turn in range(turns)] == [1] * turns
    assert stories.folds(hold) == []


def test_an_agent_that_is_transferred_to_has_a_transcript_of_its_own(hold: Limpet) -> None:
    expert = scripted("expert", *(Say(f"Expert {turn}.") for turn in range(4)))
    root = scripted("root", Do("transfer_to_agent", {"agent_name": "expert"}), sub_agents=[expert])
    runner = runner_of(root, hold)
    for turn in range(4):
        asyncio.run(says(runner, f"Turn {turn}."))
    stored = transcripts(hold)
    main = session_of("app", "u", "main")
    assert set(stored) == {main, f"{main}/expert"}
    text = "\n".join(stored[f"{main}/expert"])
    assert [text.count(f"Expert {turn}.") for turn in range(4)] == [1] * 4
    assert [text.count(f"Turn {turn}.") for turn in range(4)] == [1] * 4


def test_runs_that_fail_do_not_pile_up(hold: Limpet) -> None:
    """What is known of a request is bounded, however many conversations there were."""

    def fail(window: Any) -> Say:
        raise RuntimeError("no model")

    runner = runner_of(LlmAgent(name="root", model=Scripted(script=fail, windows=[])), hold)

    async def story() -> None:
        for number in range(limits.ADAPTER_SESSIONS + 20):
            with pytest.raises(RuntimeError, match="no model"):
                await says(runner, "Go.", session=f"s{number}")

    asyncio.run(story())
    (plugin,) = runner.plugin_manager.plugins
    sizes = [len(value) for value in reachable(plugin) if isinstance(value, dict | list)]
    assert max(sizes) <= limits.ADAPTER_SESSIONS


def reachable(thing: Any) -> list[Any]:
    """The values of its attributes, and of theirs where they are ours."""
    values = list(vars(thing).values())
    ours = [value for value in values if type(value).__module__.startswith("limpet.adapters")]
    return values + [inner for value in ours for inner in vars(value).values()]


def content(words: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=words)])


def test_the_memory_service(hold: Limpet) -> None:
    async def found(service: BaseMemoryService, user: str, query: str) -> list[tuple[str | None, str | None]]:
        answer = await service.search_memory(app_name="app", user_id=user, query=query)
        return [(memory.author, (memory.content.parts or [])[0].text) for memory in answer.memories]

    async def story() -> None:
        service = LimpetMemoryService(hold)
        assert isinstance(service, BaseMemoryService)
        agent = GoogleADK(stories.steps(Say("The replica listens on port 5433.")), [], hold)
        await agent.run("Which port has the replica?", "t")
        session = await agent.runner.session_service.get_session(app_name="app", user_id="u", session_id="t")
        assert session is not None
        await service.add_session_to_memory(session)
        await service.add_session_to_memory(session)
        expected = ("scripted", "The replica listens on port 5433.")
        assert expected in await found(service, "u", "replica listens")
        assert len(await found(service, "u", "replica")) == 2, "adding it twice makes no second one"
        assert await found(LimpetMemoryService(hold), "other", "replica") == []
        assert await found(service, "u", " ") == []
        await service.add_memory(
            app_name="app", user_id="u", memories=[MemoryEntry(content=content("Prefers tea."), id="m1", author="user")]
        )
        assert await found(service, "u", "tea") == [("user", "Prefers tea.")]
        await service.delete_memory(app_name="app", user_id="u", memory_id="m1")
        assert await found(service, "u", "tea") == []
        event = Event(author="user", content=content("Ann leads the team."))
        await service.add_events_to_memory(app_name="app", user_id="u", events=[event, Event(author="user")])
        assert await found(service, "u", "ann leads") == [("user", "Ann leads the team.")]

    asyncio.run(story())
    assert [memory.content for memory in hold.memory.search("Ann leads")], "other agents find it too"
