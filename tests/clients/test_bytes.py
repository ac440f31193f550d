"""What Limpet adds to the requests of the real Claude Code, and what it saves there: a session of thirty calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.claude_code import ClaudeCode
from clients.stub import Json, Say, Use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(400)]
CALLS, BIG_EVERY = 30, 5
SMALL = 0.05  # more bytes in a session whose results are small
NUMBERS = "seq {} 4000 | head -c 14000"


def size(request: Json) -> int:
    return len(json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode())


def sent(folder: Path, *, limpet: bool, big: bool) -> int:
    """The bytes of all requests of the session."""
    agent = ClaudeCode(folder)
    agent.servers = agent.put("servers.json", {"mcpServers": {}})
    if limpet:
        agent.limpet("install", agent.name, "--user")
    calls: list[Use] = []
    for number in range(CALLS):
        is_big = big and number % BIG_EVERY == BIG_EVERY // 2
        command = NUMBERS.format(1_000 + number) if is_big else f"echo result {number}; seq 1 20"
        calls.append(agent.run_shell(command))
    stub, _ = agent.ask("do thirty things", *calls, Say("done"))
    assert len(stub.requests) == CALLS + 1
    return sum(map(size, stub.requests))


def test_thirty_small_results_cost_little_and_six_big_ones_are_saved(tmp_path: Path) -> None:
    plain, with_limpet = (sent(tmp_path / f"small {on}", limpet=on, big=False) for on in (False, True))
    print(f"small results: {plain:,} bytes, {with_limpet:,} with Limpet ({with_limpet / plain - 1:+.1%})")
    assert with_limpet <= plain * (1 + SMALL)
    big, kept = (sent(tmp_path / f"big {on}", limpet=on, big=True) for on in (False, True))
    most = plain / big - 1
    print(f"six of 14 kB: {big:,} bytes, {kept:,} with Limpet ({kept / big - 1:+.1%}; without the six {most:+.1%})")
    assert kept - with_limpet <= 0.1 * (big - plain), "of what the six cost"


def test_its_prompt_has_the_tools_that_are_used_most_and_it_finds_the_others(tmp_path: Path) -> None:
    agent = ClaudeCode(tmp_path)
    agent.limpet("install", agent.name, "--user")
    find = Use("ToolSearch", {"query": "select:mcp__limpet__write_memory"})
    write = Use("write_memory", {"key": "style", "content": "Tabs, never spaces."}, "limpet")
    stub, _ = agent.ask("remember this", find, write, Say("done"))
    named = {tool["name"] for tool in stub.requests[0]["tools"] if tool["name"].startswith("mcp__limpet__")}
    assert {"mcp__limpet__add_note", "mcp__limpet__recall", "mcp__limpet__read_output"} <= named
    assert "mcp__limpet__write_memory" not in named
    assert "mcp__limpet__write_memory" in agent.conversation(stub.requests[0])
    assert "Tabs, never spaces." in agent.limpet("memory", "show", "style")
