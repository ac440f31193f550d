"""Which session a call works in: what each client offers, in each revision, over both transports, by the SDK's client.

Claude Code and Copilot CLI name it in the environment, Goose there and in `_meta`, Codex CLI in `_meta` of every call;
over HTTP a header can. The others name none, and their agents give `session_id`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
METAS: dict[str, dict[str, Any]] = {
    "Codex CLI": {"x-codex-turn-metadata": {"session_id": "theirs", "turn_id": "t"}, "callId": "c"},
    "Goose": {"agent-session-id": "theirs"},
}


async def write(session: ClientSession, text: str, meta: dict[str, Any] | None = None, **more: str) -> None:
    result = await session.call_tool("write_notepad", {"content": text, **more}, meta=meta)  # type: ignore[arg-type]
    assert isinstance(result, types.CallToolResult)
    assert not result.is_error


def pads(store: Path) -> dict[str, str]:
    with limpet.open(str(store)) as hold:
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


@asynccontextmanager
async def connected(transport: str, store: Path, revision: str) -> AsyncIterator[ClientSession]:
    if transport == "stdio":
        async with sdk_session(command=stdio_command(str(store)), revision=revision) as session:
            yield session
    else:
        with http_server(store) as url:
            async with sdk_session(url=url, revision=revision) as session:
                yield session


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("client", METAS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_by_the_meta_of_a_call(transport: str, client: str, revision: str, tmp_path: Path) -> None:
    store = tmp_path / "store.db"

    async def main() -> None:
        async with connected(transport, store, revision) as session:
            await write(session, "by meta", METAS[client])
            await write(session, "by argument", METAS[client], session_id="named")

    anyio.run(main)
    assert pads(store) == {"theirs": "by meta", "named": "by argument"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_by_a_header(revision: str, tmp_path: Path) -> None:
    store = tmp_path / "store.db"

    async def main() -> None:
        with http_server(store) as url:
            async with sdk_session(url=url, revision=revision, headers={"Limpet-Session": "theirs"}) as session:
                await write(session, "by header")
                await write(session, "by meta", {"agent-session-id": "nearer"})

    anyio.run(main)
    assert pads(store) == {"theirs": "by header", "nearer": "by meta"}


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_two_clients_of_one_http_server_that_name_none_have_one_each(revision: str, tmp_path: Path) -> None:
    store = tmp_path / "store.db"

    async def main() -> None:
        with http_server(store) as url:
            async with sdk_session(url=url, revision=revision) as one, sdk_session(url=url, revision=revision) as two:
                await write(one, "one")
                await write(two, "two")

    anyio.run(main)
    assert sorted(pads(store).values()) == ["one", "two"]
