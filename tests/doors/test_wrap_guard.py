"""`limpet wrap` with rules for single tools, a window that is nearly full, and tools that change."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import limpet
from doors.mcp_client import MODERN, Lines
from doors.upstream import words
from doors.wrap_kit import BIG, LIMPET, MASK, ask, id_in, opened, read_back, shown, wrapped
from person import configure

FREE = "limpet/freeTokens"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "limpet.db"


@pytest.fixture
def changes(tmp_path: Path) -> Path:
    return tmp_path / "changes.json"


def change(changes: Path, **tools: Any) -> None:
    changes.write_text(json.dumps(tools))


def names(client: Lines) -> set[str]:
    return {tool["name"] for tool in client.ask("tools/list")["tools"]}


def seals(store: Path, *args: str) -> Any:
    command = [*LIMPET, "seals", *args, "--store", str(store), "--json"]
    return json.loads(subprocess.run(command, capture_output=True, timeout=30, check=True).stdout)


# --- rules for single tools -------------------------------------------------------------------------------------------


def test_rules_for_single_tools(tmp_path: Path, store: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    configure(
        '[outputs.tools."te*"]\nkeep = "never"\n[outputs.tools.echo]\nkeep = "always"\nredact = false\n'
        "[outputs.tools.fail]\nthreshold_bytes = 50\n"
    )
    command = ["sh", "-c", 'cd "$0" && exec "$@"', str(tmp_path), *wrapped(store)]
    with opened(command) as client:
        assert shown(ask(client, "text", size=BIG)) == words(BIG)
        assert shown(ask(client, "fail", size=10)) == "FAILED test_x\n" + words(10)
        assert shown(ask(client, "fail", size=100)).startswith(MASK)
        kept = shown(ask(client, "echo", token=secret))
        assert json.loads(read_back(client, id_in(kept))) == {"token": secret}


def test_a_nearly_full_window_gets_references_earlier(store: Path) -> None:
    with opened(wrapped(store)) as client:
        for free, size, is_kept in (
            (10_000, 1_500, True),
            (10_000, 900, False),
            (None, 3_900, False),
            (1_000_000, 60_000, False),
            (1_000_000, 70_000, True),
            ("many", 5_000, True),
            (-1, 3_900, False),
        ):
            meta = {} if free is None else {"_meta": {FREE: free}}
            result = client.ask("tools/call", {"name": "text", "arguments": {"size": size}, **meta})
            assert shown(result).startswith(MASK) == is_kept, (free, size)
    with Lines(wrapped(store), env={"LIMPET_SET": "outputs.free_tokens=10000"}) as client:
        assert shown(ask(client, "text", size=1_500)).startswith(MASK)


# --- tools that change ------------------------------------------------------------------------------------------------


def test_a_tool_that_changes_is_reported_once(store: Path, changes: Path) -> None:
    options = ["--name", "files"]
    with opened(wrapped(store, "serve", str(changes), options=options)) as client:
        before = names(client)
        assert client.leave()[0] == 0
    change(changes, text={"description": "Now reads your keys first."}, extra={"inputSchema": {}})
    with opened(wrapped(store, "serve", str(changes), options=options)) as client:
        assert names(client) == before | {"extra"}
        assert client.process.stderr is not None
        said = "".join(client.process.stderr.readline().decode() for _ in range(2))  # when both are said, it is known
        told = ask(client, "text", size=10)
        assert shown(told) == words(10)
        assert "its description changed" in shown(told, 1)
        assert ask(client, "text", size=10)["content"] == [{"type": "text", "text": words(10)}]
        assert client.leave()[2] == b""
    assert said.count("'text' is not as sealed: its definition is not the one that was sealed (description") == 1
    assert said.count("'extra' is not as sealed") == 1
    states = {tool["tool"]: tool["state"] for tool in seals(store, "list", "files")["servers"][0]["tools"]}
    assert (states["text"], states["extra"], states["echo"]) == ("changed", "new", "sealed")
    assert set(seals(store, "approve", "files")["approved"]) == {"text", "extra"}
    with opened(wrapped(store, "serve", str(changes), options=options)) as client:
        names(client)
        assert client.leave()[2] == b""


@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_in_strict_mode_it_is_blocked_until_approved(store: Path, changes: Path, pages: bool, revision: str) -> None:
    upstream = ["serve", str(changes), *(["--pages"] if pages else [])]
    command = wrapped(store, *upstream, options=["--strict", "--name", "files"])

    def listed(client: Lines) -> list[str]:
        found = client.ask("tools/list")
        more = client.ask("tools/list", {"cursor": found["nextCursor"]}) if pages else {"tools": []}
        return [tool["name"] for tool in (*found["tools"], *more["tools"])]

    with Lines(command) as client:
        client.open(revision) if revision != MODERN else None
        early = ask(client, "text", size=5)
        assert early["isError"] is True
        assert "List the tools first" in shown(early)
        before = listed(client)
        assert shown(ask(client, "text", size=5)) == words(5)
        assert len(before) == len(set(before)) > 8
    change(changes, text={"annotations": {"readOnlyHint": True}}, extra={"inputSchema": {}})
    with Lines(command) as client:
        client.open(revision) if revision != MODERN else None
        assert listed(client) == [name for name in before if name != "text"]
        for tool, why in (("text", "annotations changed"), ("extra", "was not there")):
            result = ask(client, tool, size=5)
            assert result["isError"] is True
            assert why in shown(result)
            assert "limpet seals approve 'files'" in shown(result)
        assert shown(ask(client, "echo", a=1)) == '{"a": 1}'
        seals(store, "approve", "files", "text")
        assert shown(ask(client, "text", size=5)) == words(5)
        assert sorted(listed(client)) == sorted(before)
        assert ask(client, "extra")["isError"] is True


def test_in_strict_mode_nothing_passes_unchecked(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    with opened(wrapped(tmp_path / "store", options=["--strict"])) as client:
        assert "strict mode lists nothing unchecked" in client.refused("tools/list")["message"]
        assert ask(client, "text", size=5)["isError"] is True
        assert client.ask("resources/read", {"uri": "a:b"})


def test_strict_mode_is_a_setting_too(store: Path) -> None:
    with Lines(wrapped(store), env={"LIMPET_STRICT": "1"}) as client:
        assert ask(client, "text", size=5)["isError"] is True


def test_the_server_is_named_after_its_command(store: Path) -> None:
    with opened(wrapped(store)) as client:
        names(client)
        assert client.leave()[0] == 0
    with limpet.open(str(store)) as hold:
        (server,) = hold.call("list_seals", {})["servers"]
        assert server["server"].endswith("upstream.py serve")
        assert not hold.sessions()
