"""Which session a call works in: what each client offers, in each revision, over both transports, by the SDK's client.

Claude Code and Copilot CLI name it in the environment, Goose there and in `_meta`, Codex CLI in `_meta` of every call;
over HTTP a header can. The others name none, and their agents give `session_id`.
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
from doors.mcp_client import REVISIONS, http_server, sdk_session, stdio_command

ENVIRONMENT = {
    "Claude Code": "CLAUDE_CODE_SESSION_ID",
    "Copilot CLI": "COPILOT_AGENT_SESSION_ID",
    "Goose": "AGENT_SESSION_ID",
}
METAS: dict[str, Callable[[str], dict[str, Any]]] = {
    "Codex CLI": lambda id: {"x-codex-turn-metadata": {"session_id": id, "turn_id": "t"}, "callId": "c"},
    "Goose": lambda id: {"agent-session-id": id},
}


async def write(session: ClientSession, text: str, meta: dict[str, Any] | None = None, **more: str) -> None:
    result = await session.call_tool("write_notepad", {"content": text, **more}, meta=meta)  # type: ignore[arg-type]
    assert isinstance(result, types.CallToolResult)
    assert not result.is_error


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
            await write(session, "by argument", session_id="named")

    anyio.run(main)
    assert pads(store) == {"theirs": "by environment", "named": "by argument"}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("client", METAS)
def test_by_the_meta_of_a_call(client: str, revision: str, tmp_path: Path) -> None:
    store = tmp_path / "store.db"

    async def main() -> None:
        async with sdk_session(command=stdio_command(str(store)), revision=revision) as session:
            await write(session, "by meta", METAS[client]("theirs"))
            await write(session, "by argument", METAS[client]("theirs"), session_id="named")

    anyio.run(main)
    assert pads(store) == {"theirs": "by meta", "named": "by argument"}


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
    theirs, named = uuid.uuid4().hex, uuid.uuid4().hex
    before = pads(store, "served")

    async def main() -> None:
        async with sdk_session(url=url, revision=revision) as session:
            await write(session, "by meta", METAS[client](theirs))
            await write(session, "by argument", METAS[client](theirs), session_id=named)

    anyio.run(main)
    assert pads(store, "served") == {**before, theirs: "by meta", named: "by argument"}


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
