"""A server that a client started in no project works where the client says that it works, or says that it does not."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import mcp_types as types
import pytest
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from life.kit import COMMAND, Agent, Computer, Pipes

PERSONAL = "it works in the project named personal"


@asynccontextmanager
async def client(
    computer: Computer, where: Path, roots: Sequence[str] | None, delay: float = 0.0, **variables: str
) -> AsyncIterator[Agent]:
    """The official client, which offers these roots, each the address of a folder; None: it offers none."""

    async def listed(context: Any) -> types.ListRootsResult:
        await asyncio.sleep(delay)
        return types.ListRootsResult.model_validate({"roots": [{"uri": root} for root in roots or ()]})

    command, *more = (*COMMAND, "mcp")
    env = {**computer.environment, **variables}
    server = StdioServerParameters(command=command, args=more, cwd=where, env=env)
    offered = None if roots is None else listed
    async with (
        stdio_client(server) as (read, write),
        ClientSession(read, write, list_roots_callback=offered) as session,
    ):
        hello = await session.initialize()
        yield Agent(session, hello.instructions or "")


def note_in(computer: Computer, where: Path, roots: Sequence[str] | None, note: str, **more: Any) -> tuple[str, str]:
    """What the agent was told in the handshake, and with the result of adding a note."""

    async def work() -> tuple[str, str]:
        async with client(computer, where, roots, **more) as agent:
            result = await agent._session.call_tool("add_note", {"content": note})
            assert not result.is_error
            return agent.instructions, "".join(part.model_dump_json() for part in result.content)

    return asyncio.run(work())


def notes(computer: Computer, *words: str, where: Path) -> list[str]:
    shown = json.loads(computer.limpet("note", "list", *words, "--json", where=where))
    return [note["content"] for note in shown["notes"]]


@pytest.mark.parametrize("start", ["home", "/"])
def test_the_project_is_the_one_of_the_first_root_that_is_a_folder(computer: Computer, start: str) -> None:
    project = computer.repository("my parser")
    (project / "src").mkdir()
    where = computer.home if start == "home" else Path("/")
    address = (project / "src").as_uri()
    assert "%20" in address
    roots = ["file:///no/such/folder", "file:///", computer.home.as_uri(), address]
    told = note_in(computer, where, roots, "Kept in the parser")
    assert PERSONAL not in str(told)
    assert notes(computer, where=project) == ["Kept in the parser"]
    assert not (computer.home / ".local/share/limpet/projects/personal").exists()


@pytest.mark.parametrize("roots", [None, [], ["file:///"], ["home"], ["nonsense", "file://elsewhere/srv"]])
def test_without_a_usable_root_it_is_the_personal_project_and_the_agent_is_told(
    computer: Computer, roots: list[str] | None
) -> None:
    offered = None if roots is None else [computer.home.as_uri() if root == "home" else root for root in roots]
    told = note_in(computer, computer.home, offered, "Kept for the person")
    assert notes(computer, "--project", "personal", where=computer.home) == ["Kept for the person"]
    assert [PERSONAL in text for text in told] == [roots is None, roots is not None]


def test_a_folder_that_a_person_named_wins_over_roots(computer: Computer) -> None:
    named, offered = computer.repository("named"), computer.repository("offered")
    note_in(computer, computer.home, [offered.as_uri()], "Kept in the named one", LIMPET_FOLDER=str(named))
    note_in(computer, named, [offered.as_uri()], "And this")
    assert sorted(notes(computer, where=named)) == ["And this", "Kept in the named one"]


def test_the_handoff_of_the_project_comes_with_the_first_result(computer: Computer) -> None:
    project = computer.repository("parser")
    computer.limpet("handoff", "write", "Casts come next.", where=project)

    async def work() -> list[list[str]]:
        results = []
        async with client(computer, computer.home, [project.as_uri()]) as agent:
            assert "Casts come next." not in agent.instructions
            for _ in range(2):
                result = await agent._session.call_tool("search_notes", {"query": "x"})
                results.append([part.text for part in result.content if isinstance(part, types.TextContent)])
        return results

    first, second = asyncio.run(work())
    assert "Casts come next." in "".join(first)
    assert len(second) == 1
    assert json.loads(computer.limpet("handoff", "show", "--json", where=project))["used_by"]


def test_asking_delays_neither_the_handshake_nor_the_list_of_tools(computer: Computer) -> None:
    """A client may ask its person before it answers; calls wait for that, and for a bounded time."""
    project = computer.repository("parser")

    async def work() -> tuple[float, float]:
        began = time.monotonic()
        async with client(computer, computer.home, [project.as_uri()], delay=2.0) as agent:
            await agent._session.list_tools()
            listed = time.monotonic() - began
            await agent.call("add_note", content="Kept in the parser")
            return listed, time.monotonic() - began

    listed, called = asyncio.run(work())
    assert listed < 2.0 < called
    assert notes(computer, where=project) == ["Kept in the parser"]


def request(id: int, method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": {"name": "t", "version": "1"}}
ADD = {"name": "add_note", "arguments": {"content": "Kept anyway"}}


def test_a_client_that_never_answers_gets_its_calls_done_in_the_personal_project(computer: Computer) -> None:
    with computer.started("mcp", where=computer.home) as server:
        send_all(server, request(1, "initialize", HELLO), {"jsonrpc": "2.0", "method": "notifications/initialized"})
        send_all(server, request(2, "tools/call", ADD), request(3, "ping", {}))
        said = [json.loads(server.stdout.readline()) for _ in range(4)]
        assert [line.get("method") or line["id"] for line in said] == [1, "roots/list", 3, 2]
    assert notes(computer, "--project", "personal", where=computer.home) == ["Kept anyway"]


def test_a_client_that_hangs_up_while_it_is_asked_has_its_calls_done(computer: Computer) -> None:
    lines = [
        request(1, "initialize", HELLO),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request(2, "tools/call", ADD),
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    replies = computer.limpet("mcp", where=computer.home, stdin=text)
    assert [json.loads(line).get("id") for line in replies.splitlines()] == [1, "limpet-roots", 2]


def test_a_root_whose_settings_cannot_be_used_answers_calls_with_the_reason(computer: Computer) -> None:
    project = computer.repository("parser", {".limpet/config.toml": "[outputs]\nmax_age = 'x'\n"})
    computer.limpet("trust", "--yes", where=project)

    async def work() -> str:
        async with client(computer, computer.home, [project.as_uri()]) as agent:
            return await agent.refusal("add_note", content="Nowhere")

    assert "the setting outputs.max_age is 'x'" in asyncio.run(work())
    assert not (computer.home / ".local/share/limpet/projects").exists()


@pytest.mark.parametrize("offers", [True, False])
def test_a_client_of_2026_07_28_is_asked_with_its_first_call_and_repeats_it(computer: Computer, offers: bool) -> None:
    project = computer.repository("parser")
    asked = []

    async def listed(_context: Any) -> types.ListRootsResult:
        asked.append(1)
        return types.ListRootsResult.model_validate({"roots": [{"uri": project.as_uri()}]})

    async def work() -> tuple[str, str]:
        command, *more = (*COMMAND, "mcp")
        server = StdioServerParameters(command=command, args=more, cwd=computer.home, env=computer.environment)
        callback = listed if offers else None
        async with Client(stdio_client(server), mode="2026-07-28", list_roots_callback=cast(Any, callback)) as one:
            await one.list_tools()
            first = await one.call_tool("add_note", {"content": "Kept where it works"})
            await one.call_tool("add_note", {"content": "And again"})
            return one.instructions or "", "".join(part.model_dump_json() for part in first.content)

    told = asyncio.run(work())
    assert len(asked) == offers
    words = [] if offers else ["--project", "personal"]
    assert set(notes(computer, *words, where=project if offers else computer.home)) == {
        "Kept where it works",
        "And again",
    }
    assert PERSONAL not in "".join(told)  # where it is so, the answer to server/discover says it


def test_what_a_client_of_2026_07_28_answers_need_not_be_an_answer(computer: Computer) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
    }
    with computer.started("mcp", where=computer.home) as server:
        send_all(server, request(1, "tools/call", {**ADD, "_meta": meta}))
        asked = json.loads(server.stdout.readline())["result"]
        assert asked["inputRequests"] == {"limpet-roots": {"method": "roots/list"}}
        send_all(server, request(2, "tools/call", {**ADD, "_meta": meta, "inputResponses": {"limpet-roots": 5}}))
        assert json.loads(server.stdout.readline())["result"]["resultType"] == "complete"
    assert notes(computer, "--project", "personal", where=computer.home) == ["Kept anyway"]


def send_all(server: Pipes, *messages: dict[str, object]) -> None:
    for message in messages:
        server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()
