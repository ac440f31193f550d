"""`limpet gateway` as a process in front of several scripted servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from doors.http_upstream import Handler, Request, result, serving, text, welcome
from doors.mcp_client import Lines, Reply
from doors.upstream import words
from doors.wrap_kit import BIG, LIMPET, MASK, UPSTREAM, ask, id_in, read_back, shown
from person import configure, trusted

NAMES = ("one", "two")


def scripted(*args: str, **more: Any) -> Reply:
    return {"command": sys.executable, "args": [UPSTREAM, "serve", *args], **more}


def two() -> dict[str, Any]:
    return {name: scripted("--as", name) for name in NAMES}


class Place:
    """Where a test's gateway has its files."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "limpet.db"
        self.config = folder / "servers.json"

    def command(self, servers: dict[str, Any], *options: str) -> list[str]:
        self.config.write_text(json.dumps({"mcpServers": servers}))
        return [*LIMPET, "gateway", "--config", str(self.config), *trusted(self.store), *options]

    @contextmanager
    def open(self, servers: dict[str, Any], *options: str, env: dict[str, str] | None = None) -> Iterator[Lines]:
        with Lines(self.command(servers, *options), env) as client:
            client.open("2025-11-25")
            yield client


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def until(client: Lines, id: object) -> Reply:
    """The reply to a request; what comes before it is left out."""
    while (reply := client.read()).get("id") != id or "method" in reply:
        pass
    assert isinstance(reply, dict)
    return reply


def tools(client: Lines) -> set[str]:
    client.send({"jsonrpc": "2.0", "id": "list", "method": "tools/list"})
    return {tool["name"] for tool in until(client, "list")["result"]["tools"]}


def pid(client: Lines, server: str) -> int:
    return int(shown(ask(client, f"{server}__pid")))


# --- many look like one -----------------------------------------------------------------------------------------------


def test_tools_prompts_and_resources_of_all(place: Place) -> None:
    with Lines(place.command(two())) as client:
        welcomed = client.open("2025-06-18")
        assert welcomed["protocolVersion"] == "2025-06-18"
        assert "Instructions of one." in welcomed["instructions"]
        assert "Instructions of two." in welcomed["instructions"]
        listed = client.ask("tools/list")
        names = [tool["name"] for tool in listed["tools"]]
        assert "_meta" not in listed
        assert {"one__text", "two__text", "read_output"} <= set(names)
        assert len(names) == len(set(names))
        for name in NAMES:
            assert json.loads(shown(ask(client, f"{name}__echo", é="x"))) == {"é": "x"}
            got = client.ask("prompts/get", {"name": f"{name}__p"})
            assert got["messages"][0]["content"]["text"] == f"{name} p"
            for uri in (f"data://{name}", f"x://{name}/7"):
                assert client.ask("resources/read", {"uri": uri})["contents"][0]["text"] == f"{name} {uri}"
            assert client.ask("resources/subscribe", {"uri": f"data://{name}"}) == {"by": name}
            for ref in (
                {"type": "ref/prompt", "name": f"{name}__p"},
                {"type": "ref/resource", "uri": f"x://{name}/{{id}}"},
            ):
                found = client.ask("completion/complete", {"ref": ref, "argument": {"name": "a", "value": ""}})
                assert found["completion"]["values"][0] == name
        prompts = [prompt["name"] for prompt in client.ask("prompts/list")["prompts"]]
        assert prompts == ["one__p", "two__p"]
        resources = [one["uri"] for one in client.ask("resources/list")["resources"]]
        assert resources == ["data://one", "data://both", "data://two"]
        assert len(client.ask("resources/templates/list")["resourceTemplates"]) == 2
        assert client.ask("ping") == {}
        assert client.ask("logging/setLevel", {"level": "info"}) == {}
        code, _, said = client.leave()
    assert code == 0
    assert b"'no good' is no legal name" in said
    assert b"'data://both' is taken by one" in said


def test_big_results_are_kept_and_references_work_across_servers(place: Place) -> None:
    with place.open(two()) as client:
        kept = shown(ask(client, "one__text", size=BIG))
        assert read_back(client, id_in(kept)) == words(BIG)
        given = json.loads(shown(ask(client, "two__echo", lines=f"hold://{id_in(kept)}#lines=2-2")))
        assert given["lines"].rstrip("\n") == words(BIG).split("\n")[1]


def test_what_nobody_knows_is_refused(place: Place) -> None:
    with place.open(two()) as client:
        for method, params in (
            ("tools/call", {"name": "three__text"}),
            ("tools/call", {"name": "text"}),
            ("tools/call", {}),
            ("prompts/get", {"name": "p"}),
            ("resources/read", {"uri": "nobody://x"}),
            ("server/discover", {}),
            ("some/thing", {}),
        ):
            assert client.refused(method, params)["message"]
        client.write(b'this is not JSON\n\n[1, 2]\n{"jsonrpc": "2.0", "method": "\xff"}\n')
        for _ in range(2):
            assert client.read()["error"]["code"] == -32700
        client.send([{"jsonrpc": "2.0", "id": "b", "method": "ping"}])
        assert client.read() == {"jsonrpc": "2.0", "id": "b", "result": {}}


def test_requests_of_servers_with_the_same_id_find_their_way_back(place: Place) -> None:
    with place.open(two()) as client:
        questions = {}
        for name in NAMES:
            params = {"name": f"{name}__ask"}
            client.send({"jsonrpc": "2.0", "id": f"call-{name}", "method": "tools/call", "params": params})
            question = client.read()
            assert question["params"]["message"] == f"{name}?"
            questions[name] = question
        assert questions["one"]["id"] != questions["two"]["id"]
        token = questions["two"]["params"]["_meta"]["progressToken"]
        progress = {"progressToken": token, "progress": 1}
        client.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
        for name in reversed(NAMES):
            client.send({"jsonrpc": "2.0", "id": questions[name]["id"], "result": {"action": name}})
            answer, notices = json.loads(shown(until(client, f"call-{name}")["result"]))
            assert answer == {"jsonrpc": "2.0", "id": 1, "result": {"action": name}}
            methods = [(one["method"], one["params"].get("progressToken")) for one in notices if "params" in one]
            assert methods == ([("notifications/progress", 5)] if name == "two" else [])


def test_a_server_takes_its_question_back(place: Place) -> None:
    with place.open(two()) as client:
        client.send({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "one__ask"}})
        question = client.read()
        client.send({"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "one__take_back"}})
        cancelled = client.read()
        assert cancelled["params"]["requestId"] == question["id"]
        ask(client, "one__text", size=1) if client.read()["id"] == "b" else None


def test_progress_and_cancellation(place: Place) -> None:
    with place.open(two()) as client:
        params = {"name": "two__slow", "arguments": {"steps": 1000, "pause": 0.05}}
        client.send({"jsonrpc": "2.0", "id": 70, "method": "tools/call", "params": params})
        for step in range(3):
            assert client.read()["params"] == {"progressToken": 70, "progress": step}
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 70}})
        for name, expected in (("two", [70]), ("one", [])):
            client.send(
                {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": f"{name}__cancelled"}}
            )
            assert json.loads(shown(until(client, name)["result"])) == expected


def test_notifications_reach_the_client_and_all_servers(place: Place) -> None:
    with place.open(two()) as client:
        client.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        changed = {"method": "notifications/tools/list_changed", "params": {"a": 1}}
        client.send(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__notify", "arguments": changed}}
        )
        assert client.read() == {"jsonrpc": "2.0", **changed}
        client.read()
        for name in NAMES:
            client.send({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": f"{name}__ask"}})
            client.send({"jsonrpc": "2.0", "id": client.read()["id"], "result": {}})
            _, notices = json.loads(shown(until(client, name)["result"]))
            assert [one["method"] for one in notices].count("notifications/roots/list_changed") == 1
            assert [one["method"] for one in notices].count("notifications/initialized") == 1


def test_one_server_cannot_answer_for_another(place: Place) -> None:
    forged = json.dumps({"jsonrpc": "2.0", "id": "mine", "result": {"content": [{"type": "text", "text": "forged"}]}})
    with place.open(two()) as client:
        slow = {"name": "two__slow", "arguments": {"steps": 1, "pause": 1}}
        client.send({"jsonrpc": "2.0", "id": "mine", "method": "tools/call", "params": slow})
        assert client.read()["method"] == "notifications/progress"
        for line in (
            forged,
            forged.replace('"id"', '"i\\u0064"'),
            "noise",
            "[5]",
            '{"id": "limpet-1", "result": {}}',
        ):
            assert shown(ask(client, "one__raw", line=line)) == "written"
        assert shown(until(client, "mine")["result"]) == words(10)
        assert b"answered something that nobody asked it" in client.leave()[2]


# --- servers in trouble -----------------------------------------------------------------------------------------------

SILENT: Reply = {"command": "sh", "args": ["-c", "cat > /dev/null"]}
STUBBORN: Reply = {"command": "sleep", "args": ["600"]}


def test_dead_and_hanging_servers_touch_only_their_own_tools(place: Place) -> None:
    servers = {
        "dead": {"command": "no-such-command-anywhere"},
        "ends": {"command": "false"},
        "hangs": SILENT,
        "gone": {"url": "http://127.0.0.1:9/mcp"},
        "good": scripted(),
    }
    with place.open(servers, "--wait", "1") as client:
        listed = client.ask("tools/list")
        assert "good__text" in {tool["name"] for tool in listed["tools"]}
        missing = listed["_meta"]["limpet/missing"]
        assert missing.keys() == {"dead", "ends", "hangs", "gone"}
        assert "No such file" in missing["dead"]
        assert "exit code 1" in missing["ends"]
        assert "still starting" in missing["hangs"]
        assert "cannot be reached" in missing["gone"]
        assert shown(ask(client, "good__text", size=5)) == words(5)
        for name in ("dead", "ends", "gone"):
            answer = ask(client, f"{name}__anything")
            assert answer["isError"] is True
            assert f"The server {name} is not there" in shown(answer)
        client.send({"jsonrpc": "2.0", "id": "h", "method": "tools/call", "params": {"name": "hangs__x"}})
        assert shown(ask(client, "good__text", size=5)) == words(5)
        assert "has not started within" in shown(until(client, "h")["result"])


def test_a_server_that_is_killed_comes_back(place: Place) -> None:
    with place.open(two()) as client:
        before = tools(client)
        first = pid(client, "one")
        slow = {"name": "one__slow", "arguments": {"steps": 1, "pause": 60}}
        client.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": slow})
        assert client.read()["method"] == "notifications/progress"
        os.kill(first, signal.SIGKILL)
        answer = client.read()
        assert answer["id"] == "slow"
        assert "ended by signal 9" in shown(answer["result"])
        assert shown(ask(client, "two__text", size=5)) == words(5)
        assert pid(client, "one") != first
        assert tools(client) == before


def test_a_server_that_starts_late_is_announced(place: Place, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    late: Reply = {"command": "sh", "args": ["-c", 'while [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"', str(gate)]}
    late["args"] += [sys.executable, UPSTREAM, "serve"]
    with place.open({"good": scripted(), "late": late}, "--wait", "1") as client:
        assert not any(name.startswith("late__") for name in tools(client))
        gate.touch()
        assert client.read() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        assert "late__text" in tools(client)


def test_a_server_at_an_address_that_is_started_again(place: Place) -> None:
    def script(handler: Handler, request: Request) -> None:
        if welcome(handler, request):
            return
        if request.headers.get("mcp-session-id") != "s-1":
            handler.plain(404)
        elif request.body["method"] == "tools/list":
            handler.plain(200, result(request, {"tools": [{"name": "t", "inputSchema": {}}]}))
        else:
            handler.plain(200, text(request, "there"))

    with serving(script) as server:
        port = server.server_port
        servers = {"web": {"url": server.url, "headers": {"X-Key": "${THE_KEY}"}}, "good": scripted()}
        with Lines(place.command(servers, "--wait", "2"), env={"THE_KEY": "k", "LIMPET_TOKEN": "ours"}) as client:
            client.open("2025-11-25")
            assert "web__t" in tools(client)
            assert shown(ask(client, "web__t")) == "there"
            assert server.requests[0].headers["x-key"] == "k"
            assert "ours" not in repr(server.requests)
            server.end()
            refusal = client.refused("tools/call", {"name": "web__t"})
            assert "did not answer" in refusal["message"]
            assert shown(ask(client, "good__text", size=5)) == words(5)
            with serving(script, port):
                assert shown(ask(client, "web__t")) == "there"


def test_a_gateway_that_is_killed_takes_its_servers_with_it(place: Place) -> None:
    with place.open(two()) as client:
        started = [pid(client, name) for name in NAMES]
        client.process.kill()
        begun = time.monotonic()
        while any(alive(one) for one in started):
            assert time.monotonic() - begun < 10
            time.sleep(0.05)


def alive(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().split()[2] != "Z"


def test_ends_and_signals(place: Place) -> None:
    with place.open({**two(), "hangs": STUBBORN}, "--wait", "1") as client:
        started = [pid(client, name) for name in NAMES]
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(15) == 143
        assert not any(alive(one) for one in started)


def test_a_gateway_whose_client_has_left_does_not_wait_for_a_call_that_hangs(place: Place) -> None:
    with place.open(two()) as client:
        started = [pid(client, name) for name in NAMES]
        client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__ask"}})
        assert client.read()["method"], "the server works on it, and will get no answer"
        assert client.process.stdin is not None
        client.process.stdin.close()
        client.process.stdin = None
        assert client.process.wait(60) == 0
        assert not any(alive(process) for process in started)


# --- the store, the environment, the seals ----------------------------------------------------------------------------


def test_with_a_store_in_trouble_the_originals_pass(place: Place) -> None:
    place.store.mkdir()
    with place.open(two()) as client:
        assert shown(ask(client, "one__text", size=BIG)) == words(BIG)


def test_a_server_gets_only_what_is_meant_for_it(place: Place) -> None:
    given = {"SECRET_A": "a", "SECRET_B": "b", "LIMPET_TOKEN": "t", "LIMPET_STRICT": "0"}
    servers = {
        "one": scripted(env={"MINE": "x ${SECRET_A}", "OTHER": "${NOT_SET:-usual}"}),
        "two": scripted(pass_env=["SECRET_B", "LIMPET_TOKEN"]),
    }
    with place.open(servers, env=given) as client:
        seen = {name: json.loads(shown(ask(client, f"{name}__environment"))) for name in NAMES}
    assert seen["one"]["PATH"] == os.environ["PATH"]
    assert (seen["one"]["MINE"], seen["one"]["OTHER"]) == ("x a", "usual")
    assert seen["two"]["SECRET_B"] == "b"
    usual = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LANGUAGE"}
    for name, own in (("one", {"MINE", "OTHER"}), ("two", {"SECRET_B"})):
        found = {word for word in seen[name] if not word.startswith(("LC_", "SSL_", "NODE_"))}
        assert found <= usual | own


def test_strict_mode_knows_each_server(place: Place, tmp_path: Path) -> None:
    changes = tmp_path / "changes.json"
    servers = {"one": scripted(str(changes)), "two": scripted()}
    with place.open(servers, "--strict") as client:
        before = tools(client)
        assert client.leave()[0] == 0
    changes.write_text(json.dumps({"text": {"description": "other"}}))
    with place.open(servers, "--strict") as client:
        assert tools(client) == before - {"one__text"}
        assert ask(client, "one__text", size=5)["isError"] is True
        assert shown(ask(client, "two__text", size=5)) == words(5)
        command = [*LIMPET, "seals", "approve", "one", "--store", str(place.store)]
        subprocess.run(command, check=True, capture_output=True, timeout=30)
        assert shown(ask(client, "one__text", size=5)) == words(5)


def test_a_change_of_each_server_is_told_though_they_change_alike(place: Place, tmp_path: Path) -> None:
    changes = tmp_path / "changes.json"
    servers = {name: scripted(str(changes)) for name in NAMES}
    with place.open(servers) as client:
        tools(client)
        assert client.leave()[0] == 0
    changes.write_text(json.dumps({"text": {"description": "other"}}))
    with place.open(servers) as client:
        tools(client)
        _, _, said = client.leave()
    for name in NAMES:
        assert f"{name}: the tool 'text' is not as sealed".encode() in said


def test_rules_for_tools_of_one_server(place: Place, tmp_path: Path) -> None:
    configure(f'[projects."{tmp_path}".outputs.tools."one__*"]\nkeep = "never"\n')
    command = ["sh", "-c", 'cd "$0" && exec "$@"', str(tmp_path), *place.command(two())]
    with Lines(command) as client:
        client.open("2025-11-25")
        assert shown(ask(client, "one__text", size=BIG)) == words(BIG)
        assert shown(ask(client, "two__text", size=BIG)).startswith(MASK)


def test_click_knows_the_command_too(place: Place) -> None:
    command = place.command(two())
    done = subprocess.run(
        [command[0], "-m", "limpet", "--json", *command[3:], "--wait=2"],
        capture_output=True,
        timeout=30,
        input=b"",
        check=False,
    )
    assert done.returncode == 0, done.stderr
