"""`limpet gateway` between clients and servers of both eras: with a handshake, and without one (2026-07-28)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from doors.mcp_client import HANDSHAKE, MODERN, TOKEN, Lines, Reply, http_server, meta, sdk_session
from doors.test_gateway import Place, pid, scripted, until
from doors.wrap_kit import BIG, ask, id_in, read_back, shown
from limpet.doors.proxy import gateway_rules, gateway_servers

ERAS = {"old": "--old", "new": "--modern"}  # servers that take requests of one era alone
EXPIRED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def both() -> dict[str, Any]:
    return {name: scripted("--as", name, option) for name, option in ERAS.items()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def call(client: Lines, tool: str, **more: object) -> Reply:
    return client.ask("tools/call", {"name": tool, "arguments": more})


@pytest.mark.parametrize("revision", [*HANDSHAKE, MODERN])
def test_a_client_of_any_revision_has_servers_of_both_eras(place: Place, revision: str) -> None:
    with Lines(place.command(both())) as client:
        welcomed = client.open(revision)
        assert all(f"Instructions of {name}." in welcomed["instructions"] for name in ERAS)
        listed = client.ask("tools/list")
        assert {"old__text", "new__text", "read_output"} <= {tool["name"] for tool in listed["tools"]}
        assert [prompt["name"] for prompt in client.ask("prompts/list")["prompts"]] == ["old__p", "new__p"]
        for name in ERAS:
            answer = call(client, f"{name}__echo", é="x")
            assert json.loads(shown(answer)) == {"é": "x"}
            resource = client.ask("resources/read", {"uri": f"data://{name}"})
            assert resource["contents"][0]["text"] == f"{name} data://{name}"
            prompt = client.ask("prompts/get", {"name": f"{name}__p"})
            assert prompt["messages"][0]["content"]["text"] == f"{name} p"
            ref = {"type": "ref/prompt", "name": f"{name}__p"}
            found = client.ask("completion/complete", {"ref": ref, "argument": {"name": "a", "value": ""}})
            assert found["completion"]["values"][0] == name
            if revision == MODERN:
                assert answer["resultType"] == prompt["resultType"] == found["resultType"] == "complete"
                assert {"resultType", "ttlMs", "cacheScope"} <= resource.keys()
        kept = shown(call(client, "old__text", size=BIG))
        assert len(read_back(client, id_in(kept))) == BIG
        if revision == MODERN:
            assert welcomed["supportedVersions"] == [MODERN]
            assert welcomed.items() >= EXPIRED.items()
            assert listed.items() >= EXPIRED.items(), "who comes late is in the next list"
        assert client.leave()[0] == 0


def test_a_server_that_leaves_an_unknown_question_unanswered_is_begun_with_the_handshake(place: Place) -> None:
    with Lines(place.command({"silent": scripted("--as", "silent"), **both()})) as client:
        assert "Instructions of silent." in client.open(MODERN)["instructions"]
        before = pid(client, "silent")
        os.kill(before, signal.SIGKILL)
        while (answer := call(client, "silent__pid")).get("isError"):
            assert answer["resultType"] == "complete"
            assert "ended by signal 9" in shown(answer)
        assert int(shown(answer)) != before


def test_a_server_that_answers_late_is_begun_in_the_way_that_it_knows(place: Place) -> None:
    late = {name: slow(scripted("--as", name, option)) for name, option in ERAS.items()}
    with Lines(place.command(late)) as client:
        welcomed = client.open(MODERN)
        assert all(f"Instructions of {name}." in welcomed["instructions"] for name in ERAS)
        for name in ERAS:
            assert json.loads(shown(call(client, f"{name}__echo", a="x"))) == {"a": "x"}


def slow(server: dict[str, Any]) -> dict[str, Any]:
    """A server that reads nothing until it has been asked in both ways, as one that npx fetches first."""
    start = f'sleep {gateway_servers.PROBE_SECONDS + 1}; exec "$0" "$@"'
    return {**server, "command": "sh", "args": ["-c", start, server["command"], *server["args"]]}


def test_a_server_asks_a_client_of_its_own_era_and_no_other(place: Place) -> None:
    with Lines(place.command(both())) as client:
        client.open(MODERN)
        asked = call(client, "new__need")
        assert asked["resultType"] == "input_required"
        answers = {"who": {"action": "accept", "content": {}}}
        again = {"name": "new__need", "inputResponses": answers, "requestState": asked["requestState"]}
        assert json.loads(shown(client.ask("tools/call", again))) == [answers, "kept"]
        refused = json.loads(shown(call(client, "old__ask")))[0]
        assert refused["error"]["code"] == -32601
        # The client could have nothing in between: what it reads next is the reply.
        call(client, "old__notify", method="notifications/tools/list_changed")
        client.send(
            {
                "jsonrpc": "2.0",
                "id": "p",
                "method": "tools/call",
                "params": {
                    "name": "old__notify",
                    "_meta": meta(),
                    "arguments": {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
                },
            }
        )
        assert client.read()["method"] == "notifications/progress"
        assert shown(until(client, "p")["result"]) == "notified"


def test_what_a_request_says_of_its_revision_is_checked(place: Place) -> None:
    with Lines(place.command(both())) as client:
        client.open(MODERN)
        told = client.refused("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}})
        assert (told["code"], told["data"]) == (-32022, {"supported": [MODERN], "requested": "2030-01-01"})
        bare = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}
        client.send({**bare, "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}})
        assert client.read()["error"]["code"] == -32602
        for method in ("ping", "logging/setLevel", "resources/subscribe", "no/such"):
            assert client.refused(method, {"uri": "data://old"})["code"] == -32601


def test_a_client_that_falls_back_to_the_handshake_has_both(place: Place) -> None:
    with Lines(place.command(both())) as client:
        client.open(MODERN)
        client.open("2025-11-25")
        for name in ERAS:
            assert json.loads(shown(ask(client, f"{name}__echo", a=1))) == {"a": 1}


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_a_server_at_an_address_has_its_era_too(place: Place, tmp_path: Path, revision: str) -> None:
    with http_server(tmp_path / "theirs.db") as url:
        servers = {"far": {"url": url, "headers": {"Authorization": f"Bearer {TOKEN}"}}, **both()}
        with Lines(place.command(servers)) as client:
            client.open(revision)
            written = call(client, "far__add_note", content="Casts break the parser")
            assert "resultType" in written or revision != MODERN
            assert "Casts break" in shown(call(client, "far__search_notes", query="casts"))


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_the_official_client_and_server_meet_through_the_gateway(place: Place, revision: str) -> None:
    upstream = str(Path(__file__).with_name("sdk_upstream.py"))
    servers = {"sdk": {"command": sys.executable, "args": [upstream, "stdio"]}, **both()}

    async def story() -> None:
        async with sdk_session(command=place.command(servers), revision=revision) as session:
            names = {tool.name for tool in (await session.list_tools()).tools}
            assert {"old__echo", "new__echo"} <= names
            assert any(name.startswith("sdk__") for name in names)
            for name in ERAS:
                answer = await session.call_tool(f"{name}__echo", {"a": 1})
                assert json.loads(answer.content[0].text) == {"a": 1}  # type: ignore[union-attr]

    asyncio.run(story())


# --- messages, as pure functions --------------------------------------------------------------------------------------


def test_a_message_for_the_other_era_is_changed_in_meta_alone() -> None:
    own = '"io.modelcontextprotocol/protocolVersion":"2026-07-28"'
    for before, after in (
        ('{"id":1.50,"params":{"_meta":{' + own + ',"a":1.50}}}', '{"id":1.50,"params":{"_meta":{"a":1.50}}}'),
        ('{"params":{"_meta":{' + own + "}}}", '{"params":{"_meta":{}}}'),
        ('{"params":{"name":"x"}}', '{"params":{"name":"x"}}'),
        ("{}", "{}"),
    ):
        assert gateway_rules.to_older_server(before) == after
    for before, after in (
        ('{"params":{"_meta":{"a":1.50}}}', '{"params":{"_meta":{"a":1.50,"v":1}}}'),
        ('{"params":{"_meta":{}}}', '{"params":{"_meta":{"v":1}}}'),
        ('{"params":{"n":1.50}}', '{"params":{"n":1.50,"_meta":{"v":1}}}'),
        ('{"id":1}', '{"id":1,"params":{"_meta":{"v":1}}}'),
    ):
        assert gateway_rules.to_modern_server(before, {"v": 1}) == after
    for before, after in (
        ('{"result":{}}', '{"result":{"resultType":"complete"}}'),
        ('{"result":{"a":1.50}}', '{"result":{"a":1.50,"resultType":"complete"}}'),
        ('{"error":{}}', '{"error":{}}'),
    ):
        assert gateway_rules.to_modern_client(before, "tools/call") == after
