"""The official client and a server made with the official SDK, with and without `limpet wrap --url` or `limpet
gateway` between them: every answer is the same, and what was kept is there byte for byte."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from doors.mcp_client import MODERN, sdk_session
from doors.sdk_story import Story, tell
from doors.wrap_kit import LIMPET, MASK
from person import trusted

SERVER = str(Path(__file__).with_name("sdk_upstream.py"))
LONG = "\n".join(f'line {number}: the quick brown fox, é and "quotes"' for number in range(200))
STORY: Story = [
    ("text", {"size": 10}),
    ("text", {"size": 30_000}),
    ("rows", {"count": 3}),
    ("rows", {"count": 100}),
    ("fail", {"size": 10}),
    ("fail", {"size": 10_000}),
    ("echo", {"message": LONG}),
    ("echo", {"message": "small"}),
    ("steps", {"count": 3}),
    ("text", {"size": "no number"}),
]


@contextmanager
def listening(*args: str) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, SERVER, "http", *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(scope="module")
def streams() -> Iterator[str]:
    with listening() as url:
        yield url


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    with listening("json") as url:
        yield url


def told(revision: str, story: Story = STORY, prefix: str = "", **where: Any) -> tuple[list[Any], int]:
    found: list[tuple[list[Any], int]] = []

    async def main() -> None:
        async with sdk_session(revision=revision, **where) as session:
            found.append(await tell(session, story, prefix))

    anyio.run(main)
    return found[0]


@pytest.mark.parametrize(
    ("kind", "revision"),
    [("streams", "2025-03-26"), ("streams", "2025-11-25"), ("streams", MODERN), ("plain", "2025-11-25")],
)
def test_every_answer_is_the_same_over_http(
    kind: str, revision: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url: str = request.getfixturevalue(kind)
    story = [*STORY, ("broken", {})] if kind == "streams" and revision != MODERN else STORY
    direct, none = told(revision, story, url=url)
    command = [*LIMPET, "wrap", *trusted(tmp_path / "a.db"), "--url", url]
    ours, kept = told(revision, story, command=command)
    assert none == 0
    assert kept >= 3
    assert ours == direct


def gateway(tmp_path: Path, servers: dict[str, Any]) -> list[str]:
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    return [*LIMPET, "gateway", "--config", str(config), *trusted(tmp_path / "a.db"), "--wait", "60"]


def test_every_answer_is_the_same_through_the_gateway(streams: str, tmp_path: Path) -> None:
    line = [sys.executable, SERVER, "stdio"]
    direct, _ = told("2025-11-25", command=line)
    command = gateway(tmp_path, {"near": {"command": line[0], "args": line[1:]}, "far": {"url": streams}})
    for prefix in ("near__", "far__"):
        ours, kept = told("2025-11-25", prefix=prefix, command=command)
        assert kept >= 3
        # Addresses are not named after their server: where two have the same one, the first is asked.
        assert ours == direct


def test_questions_of_servers_reach_the_user_and_come_back(streams: str, tmp_path: Path) -> None:
    asked: list[str] = []

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def sample(context: Any, params: Any) -> types.CreateMessageResult:
        words = types.TextContent(type="text", text="42")
        return types.CreateMessageResult(role="assistant", content=words, model="m")

    async def main() -> None:
        near = {"command": sys.executable, "args": [SERVER, "stdio"]}
        through = gateway(tmp_path, {"near": near, "far": {"url": streams}})
        straight = [*LIMPET, "wrap", *trusted(tmp_path / "b.db"), "--url", streams]
        for command, prefixes in ((through, ("near__", "far__")), (straight, ("",))):
            server = stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
            async with (
                server as (read, write),
                ClientSession(read, write, elicitation_callback=elicit, sampling_callback=sample) as session,
            ):
                await session.initialize()
                for prefix in prefixes:
                    greeting = await session.call_tool(f"{prefix}greet", {})
                    assert isinstance(greeting.content[0], types.TextContent)
                    assert greeting.content[0].text == "Hello Ada"
                    thought = await session.call_tool(f"{prefix}think", {})
                    assert isinstance(thought.content[0], types.TextContent)
                    assert thought.content[0].text == "42"

    anyio.run(main)
    assert asked == ["Your name?"] * 3


def test_a_client_that_chooses_by_itself_gets_along(streams: str, tmp_path: Path) -> None:
    """The newest client asks for the newest revision first, and both doors speak it."""

    async def main(command: list[str], tool: str, agreed: str) -> None:
        async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
            assert client.protocol_version == agreed
            result = await client.call_tool(tool, {"size": 30_000})
            assert isinstance(result.content[0], types.TextContent)
            assert result.content[0].text.startswith(MASK)

    straight = [*LIMPET, "wrap", *trusted(tmp_path / "b.db"), "--url", streams]
    anyio.run(main, straight, "text", MODERN)
    anyio.run(main, gateway(tmp_path, {"far": {"url": streams}}), "far__text", MODERN)
