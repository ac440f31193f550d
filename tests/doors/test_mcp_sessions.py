"""Which session a call works in: what each client offers, in each revision, over both transports, by the SDK's client.

Claude Code and Copilot CLI name it in the environment, Goose there and in `_meta`, Codex CLI in `_meta` of every call;
over HTTP a header can. The others name none, and their hooks give `session_id`. A client that names a session which
is not its own is refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import ClientSession

import limpet
from doors.mcp_client import REVISIONS, Lines, http_server, sdk_session, stdio_command

ENVIRONMENT = {
    "Claude Code": "CLAUDE_CODE_SESSION_ID",
    "Copilot CLI": "COPILOT_AGENT_SESSION_ID",
    "Goose": "AGENT_SESSION_ID",
}
NOT_YOURS = "is no session of this client"
METAS: dict[str, Callable[[str], dict[str, Any]]] = {
    "Codex CLI": lambda id: {"x-codex-turn-metadata": {"session_id": id, "turn_id": "t"}, "callId": "c"},
    "Goose": lambda id: {"agent-session-id": id},
}


async def write(session: ClientSession, text: str, meta: dict[str, Any] | None = None, **more: str) -> None:
    assert await refusal(session, text, meta, **more) == ""


async def refusal(session: ClientSession, text: str, meta: dict[str, Any] | None = None, **more: str) -> str:
    """Why a call was refused, empty if it was not."""
    result = await session.call_tool("write_notepad", {"content": text, **more}, meta=meta)  # type: ignore[arg-type]
    assert isinstance(result, types.CallToolResult)
    (block, *_) = result.content
    assert isinstance(block, types.TextContent)
    return block.text if result.is_error else ""


def pads(store: Path, project: str | None = None) -> dict[str, str]:
    with limpet.open(str(store), project=project) as hold:
        return {one.id: hold.session(one.id).notepad.read() for one in hold.sessions()}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("client", ENVIRONMENT)
def test_by_the_environment(client: str, revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT[client], "theirs")
    store = tmp_path / "store.db"

    async def main() -> None:
        async with sdk_session(command=stdio_command(str(store)), revision=revision) as session:
            await write(session, "by environment")
            assert NOT_YOURS in await refusal(session, "by argument", session_id="named")
            await write(session, "by its own name", session_id="theirs")

    anyio.run(main)
    assert pads(store) == {"theirs": "by its own name"}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("client", METAS)
def test_by_the_meta_of_a_call(client: str, revision: str, tmp_path: Path) -> None:
    store = tmp_path / "store.db"

    async def main() -> None:
        async with sdk_session(command=stdio_command(str(store)), revision=revision) as session:
            await write(session, "by meta", METAS[client]("theirs"))
            assert NOT_YOURS in await refusal(session, "by argument", METAS[client]("theirs"), session_id="named")

    anyio.run(main)
    assert pads(store) == {"theirs": "by meta"}


@pytest.mark.parametrize("named", [None, "theirs"])
def test_a_session_without_a_name_ends_with_the_process_of_its_client(named: str | None, tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    command = [*stdio_command(store), *(["--session", named] if named else [])]
    with Lines(command) as client:
        client.open("2025-11-25")
        client.call("write_notepad", content="the plan")
        with limpet.open(store) as hold:
            assert [one.state for one in hold.sessions()] == ["active"]
        assert client.ends() == 0
    with limpet.open(store) as hold:
        (session,) = hold.sessions(include_archived=True)
        assert session.state == ("active" if named else "archived")
        assert hold.session(session.id).notepad.read() == "the plan"


def test_a_client_that_wrote_nothing_leaves_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    with Lines(stdio_command(str(store))) as client:
        client.open("2025-11-25")
        client.call("list_notes")
        assert client.ends() == 0
    assert not store.exists()


SUBAGENT = "0199a3c1-77aa-7c52-9f0e-0c3a7f1d2b44.explore"


@pytest.mark.parametrize("revision", REVISIONS[-2:])
def test_a_client_works_in_its_session_and_in_those_that_began_in_it(revision: str, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    with limpet.open(str(store), session="theirs") as hold:
        hold.session().begin()
        child = hold.session().spawn("look").id
        hold.session("others").begin()

    async def main() -> None:
        async with sdk_session(command=stdio_command(str(store), session="theirs"), revision=revision) as session:
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            assert "session_id" not in tools["write_notepad"].input_schema["properties"]
            await write(session, "the child's", session_id=child)
            await write(session, "a new sub-agent's", session_id=SUBAGENT)
            assert NOT_YOURS in await refusal(session, "x", session_id="others")
            assert NOT_YOURS in await refusal(session, "x", session_id="main")

    anyio.run(main)
    assert pads(store) == {"theirs": "", "others": "", child: "the child's", SUBAGENT: "a new sub-agent's"}


def test_hooks_name_the_session_where_a_server_is_not_told(tmp_path: Path) -> None:
    store, theirs = tmp_path / "store.db", str(uuid.uuid4())

    async def main() -> None:
        command = [*stdio_command(str(store)), "--no-handoff"]
        async with sdk_session(command=command, revision=REVISIONS[-1]) as session:
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            assert "session_id" in tools["write_notepad"].input_schema["properties"]
            await write(session, "first", session_id=theirs)
            await write(session, "second", session_id=theirs)
            assert NOT_YOURS in await refusal(session, "x", session_id="main")

    anyio.run(main)
    assert pads(store) == {theirs: "second"}


def test_without_a_session_of_its_own_a_client_begins_one(served: tuple[str, Path]) -> None:
    url, store = served

    async def main() -> None:
        async with sdk_session(url=url, revision=REVISIONS[-1]) as session:
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            assert "session_id" in tools["write_notepad"].input_schema["properties"]
            begun = await session.call_tool("begin_session", {"task": "port the parser"})
            assert isinstance(begun, types.CallToolResult)
            id = begun.structured_content["id"]
            await write(session, "mine", session_id=id)
            assert f"the nearest is {id!r}" in await refusal(session, "x", session_id=id[:-1])

    anyio.run(main)
    assert "mine" in pads(store, "served").values()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server for all tests over HTTP, and its store; a test works in sessions that no other test names."""
    store = tmp_path_factory.mktemp("served") / "store.db"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LIMPET_PROJECT", "served")
        with http_server(store) as url:
            environment.undo()
            yield url, store


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("client", METAS)
def test_by_the_meta_of_a_call_over_http(client: str, revision: str, served: tuple[str, Path]) -> None:
    url, store = served
    theirs = uuid.uuid4().hex
    before = pads(store, "served")

    async def main() -> None:
        async with sdk_session(url=url, revision=revision) as session:
            await write(session, "by meta", METAS[client](theirs))
            assert NOT_YOURS in await refusal(session, "by argument", METAS[client](theirs), session_id="named")

    anyio.run(main)
    assert pads(store, "served") == {**before, theirs: "by meta"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_by_a_header(revision: str, served: tuple[str, Path]) -> None:
    url, store = served
    theirs, nearer = uuid.uuid4().hex, uuid.uuid4().hex
    before = pads(store, "served")

    async def main() -> None:
        async with sdk_session(url=url, revision=revision, headers={"Limpet-Session": theirs}) as session:
            await write(session, "by header")
            await write(session, "by meta", {"agent-session-id": nearer})

    anyio.run(main)
    assert pads(store, "served") == {**before, theirs: "by header", nearer: "by meta"}


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_two_clients_of_one_http_server_that_name_none_have_one_each(revision: str, served: tuple[str, Path]) -> None:
    url, store = served
    before = pads(store, "served")

    async def main() -> None:
        async with sdk_session(url=url, revision=revision) as one, sdk_session(url=url, revision=revision) as two:
            await write(one, "one")
            await write(two, "two")

    anyio.run(main)
    after = pads(store, "served")
    assert sorted(text for id, text in after.items() if id not in before) == ["one", "two"]
    assert {id: after[id] for id in before} == before


@pytest.mark.parametrize("revision", REVISIONS[-2:])
def test_a_conversation_that_goes_on_in_another_process_is_shown_nothing_twice(revision: str, tmp_path: Path) -> None:
    store, theirs = tmp_path / "store.db", types.RequestParamsMeta(**METAS["Goose"]("theirs"))  # type: ignore[typeddict-item]
    with limpet.open(str(store)) as hold:
        hold.session("earlier").handoff.write("Casts come next.")

    async def first_result(content: str) -> str:
        async with sdk_session(command=stdio_command(str(store)), revision=revision) as session:
            result = await session.call_tool("add_note", {"content": content}, meta=theirs)
            assert isinstance(result, types.CallToolResult)
            await session.call_tool("list_tags", {}, meta=theirs)
            return " ".join(block.text for block in result.content if isinstance(block, types.TextContent))

    async def main() -> list[str]:
        shown = [await first_result("one")]
        with limpet.open(str(store)) as hold:
            hold.session("theirs").notepad.write("- [ ] casts")
            hold.session("theirs").handoff.write("Theirs: lambdas come next.")
        shown += [await first_result(content) for content in ("two", "three", "four")]
        with limpet.open(str(store)) as hold:
            hold.session("theirs").notepad.write("- [x] casts")
        return [*shown, await first_result("five")]

    one, two, three, four, five = anyio.run(main)
    assert "Casts come next." in one
    assert "- [ ] casts" in two
    assert "lambdas come next." in two
    assert "Casts come next." not in two
    for nothing in (three, four):
        assert "casts" not in nothing.casefold()
        assert "lambdas" not in nothing
    assert "- [x] casts" in five
    assert "lambdas" not in five
