"""The MCP server on stdio, as a process of its own: each revision, line by line, and what abuse does to it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from doors.mcp_client import CLIENT, HANDSHAKE, MODERN, REVISIONS, Lines, hello, meta, stdio_command

MODERN_FIELDS = {"resultType", "ttlMs", "cacheScope", "_meta"}
CORE_MAX_BYTES = 4096  # what the core profile may cost a client's window at most
CORE_MAX_TOOLS = 8


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "holdfast.db")


@pytest.fixture
def server(store: str) -> Iterator[Lines]:
    with Lines(stdio_command(store)) as lines:
        yield lines


# --- each revision ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_handshake_agrees_on_the_revision_asked_for(server: Lines, revision: str) -> None:
    answer = server.open(revision)
    assert answer["protocolVersion"] == revision
    assert answer["capabilities"] == {"tools": {}, "resources": {}, "prompts": {}}
    assert answer["serverInfo"]["name"] == "holdfast"
    assert ("title" in answer["serverInfo"]) == (revision >= "2025-06-18")
    assert "add_note" in answer["instructions"]
    assert not MODERN_FIELDS & answer.keys()


@pytest.mark.parametrize("unknown", ["2023-01-01", "2026-07-28", "9999-12-31", "", "x" * 1000])
def test_a_handshake_for_an_unknown_revision_is_offered_the_newest(server: Lines, unknown: str) -> None:
    server.revision = HANDSHAKE[0]
    assert server.ask("initialize", hello(unknown))["protocolVersion"] == HANDSHAKE[-1]


def test_discover_tells_what_the_handshake_used_to_tell(server: Lines) -> None:
    answer = server.open(MODERN)
    assert answer["supportedVersions"] == [MODERN]
    assert answer["capabilities"] == {"tools": {}, "resources": {}, "prompts": {}}
    assert "add_note" in answer["instructions"]
    assert (answer["resultType"], answer["ttlMs"], answer["cacheScope"]) == ("complete", 0, "private")
    assert answer["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "holdfast"


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_revision_gets_only_the_fields_it_knows(server: Lines, revision: str) -> None:
    server.open(revision)
    tools = {tool["name"]: tool for tool in server.ask("tools/list")["tools"]}
    assert ("annotations" in tools["add_note"]) == (revision >= "2025-03-26")
    assert ("outputSchema" in tools["add_note"]) <= (revision >= "2025-06-18")
    result = server.ask("tools/call", {"name": "add_note", "arguments": {"content": "one"}})
    assert ("structuredContent" in result) == (revision >= "2025-06-18")
    assert result["content"][0]["type"] == "text"
    if "structuredContent" in result:
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    for method, key in (
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ):
        answer = server.ask(method)
        assert all(("title" in item) == (revision >= "2025-06-18") for item in answer[key])
        assert (answer.keys() & MODERN_FIELDS == MODERN_FIELDS) == (revision == MODERN)


@pytest.mark.parametrize("revision", REVISIONS)
def test_ping_and_discover_belong_to_their_revisions(server: Lines, revision: str) -> None:
    server.open(revision)
    if revision == MODERN:
        assert server.refused("ping")["code"] == -32601
    else:
        assert server.ask("ping") == {}
        assert server.refused("server/discover")["code"] == -32601


@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
def test_the_core_profile_is_small(store: str, revision: str) -> None:
    with Lines(stdio_command(store, "core")) as server:
        server.open(revision)
        assert server.process.stdin is not None
        assert server.process.stdout is not None
        server.send({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {"_meta": meta()}})
        line = server.process.stdout.readline()
    assert len(line) <= CORE_MAX_BYTES
    assert len(json.loads(line)["result"]["tools"]) <= CORE_MAX_TOOLS


@pytest.mark.parametrize("version", ["2025-11-25", "2030-01-01"])
def test_an_unsupported_revision_in_meta_is_told_which_are_supported(server: Lines, version: str) -> None:
    error = server.refused("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": version}})
    assert error["code"] == -32022
    assert error["data"] == {"supported": [MODERN], "requested": version}


def test_a_broken_envelope_is_refused(server: Lines) -> None:
    server.revision = HANDSHAKE[0]
    for bad in (
        {"io.modelcontextprotocol/protocolVersion": MODERN},
        {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": 1},
        {"io.modelcontextprotocol/protocolVersion": 1, "io.modelcontextprotocol/clientCapabilities": {}},
    ):
        assert server.refused("tools/list", {"_meta": bad})["code"] == -32602


def test_a_client_may_fall_back_to_the_handshake_after_discover(server: Lines) -> None:
    server.open(MODERN)
    assert server.open("2025-11-25")["protocolVersion"] == "2025-11-25"
    assert server.ask("tools/list").keys() == {"tools"}


def test_requests_before_the_handshake_are_refused(server: Lines) -> None:
    server.revision = HANDSHAKE[0]
    assert server.ask("ping") == {}
    assert "initialize" in server.refused("tools/list")["message"]
    assert server.refused("nonsense")["code"] == -32601
    server.open("2025-06-18")
    assert server.ask("tools/list")["tools"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"protocolVersion": 1, "capabilities": {}, "clientInfo": CLIENT},
        {"protocolVersion": "2025-06-18", "capabilities": [], "clientInfo": CLIENT},
        {"protocolVersion": "2025-06-18", "capabilities": {}},
    ],
)
def test_a_malformed_handshake_is_refused(server: Lines, params: dict[str, object]) -> None:
    server.revision = HANDSHAKE[0]
    assert server.refused("initialize", params)["code"] == -32602
    assert "initialize" in server.refused("tools/list")["message"]


# --- calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_an_agent_can_mend_is_a_result(server: Lines, revision: str) -> None:
    server.open(revision)
    for arguments in (
        {},
        {"content": ""},
        {"content": 1},
        {"content": "x", "user_id": "victim"},
        {"content": "x" * 5000},
    ):
        result = server.ask("tools/call", {"name": "add_note", "arguments": arguments})
        assert result["isError"] is True
        assert result["content"][0]["text"].endswith(".")
        assert "structuredContent" not in result
    assert server.call("list_notes")["note_count"] == 0


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("tools/call", {"name": 1}),
        ("tools/call", {"name": "add_note", "arguments": []}),
        ("tools/call", {"name": "add_note", "arguments": "x"}),
        ("tools/call", {"name": "no_such_tool"}),
        ("tools/call", {"name": "__class__"}),
        ("tools/list", {"cursor": "2"}),
        ("tools/list", {"cursor": 1}),
        ("resources/list", {"cursor": "2"}),
        ("resources/templates/list", {"cursor": "2"}),
        ("prompts/list", {"cursor": "2"}),
        ("resources/read", {}),
        ("resources/read", {"uri": 1}),
        ("prompts/get", {}),
        ("prompts/get", {"name": "no_such_prompt"}),
        ("prompts/get", {"name": "resume", "arguments": {"session_id": 1}}),
        ("prompts/get", {"name": "resume", "arguments": {"no_such_argument": "x"}}),
        ("prompts/get", {"name": "resume", "arguments": []}),
    ],
)
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_wrong_params_are_refused(server: Lines, revision: str, method: str, params: dict[str, object]) -> None:
    server.open(revision)
    assert server.refused(method, params)["code"] == -32602


def test_meta_must_be_an_object(server: Lines) -> None:
    server.open("2025-06-18")
    assert server.refused("tools/list", {"_meta": []})["code"] == -32602


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", ["no/such", "completion/complete", "logging/setLevel", "subscriptions/listen", ""])
def test_an_unknown_method_is_refused(server: Lines, revision: str, method: str) -> None:
    server.open(revision)
    assert server.refused(method)["code"] == -32601


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_unknown_resource_is_refused_as_the_revision_wants(server: Lines, revision: str) -> None:
    server.open(revision)
    for uri in ("holdfast://nothing", "holdfast://notepad/", "file:///etc/passwd", ""):
        error = server.refused("resources/read", {"uri": uri})
        assert error["code"] == (-32602 if revision == MODERN else -32002)
        assert error["data"] == {"uri": uri}


@pytest.mark.parametrize("revision", REVISIONS)
def test_resources_hold_what_tools_wrote(server: Lines, revision: str) -> None:
    server.open(revision)
    server.call("write_notepad", content="# Plan\n- é\n")
    server.call("write_notepad", content="other", session_id="another one")
    server.call("add_note", content="a note")
    server.call("write_session_handoff", content="go on with casts")

    def read(uri: str) -> tuple[str, str]:
        (content,) = server.ask("resources/read", {"uri": uri})["contents"]
        assert content["uri"] == uri
        return content["mimeType"], content["text"]

    assert read("holdfast://notepad") == ("text/markdown", "# Plan\n- é\n")
    assert read("holdfast://notepad/another%20one") == ("text/markdown", "other")
    kind, text = read("holdfast://notes")
    assert kind == "application/json"
    assert [note["content"] for note in json.loads(text)["notes"]] == ["a note"]
    kind, text = read("holdfast://handoff")
    assert kind == "text/markdown"
    assert "go on with casts" in text


@pytest.mark.parametrize("revision", REVISIONS)
def test_prompts(server: Lines, revision: str) -> None:
    server.open(revision)
    prompts = {prompt["name"]: prompt for prompt in server.ask("prompts/list")["prompts"]}
    assert prompts.keys() == {"resume", "checkpoint"}
    server.call("write_notepad", content="the notepad's {kept} text")
    server.call("write_session_handoff", content="the handoff's text")
    server.call("write_memory", key="parser", content="the memory's text")
    resume = server.ask("prompts/get", {"name": "resume"})
    text = resume["messages"][0]["content"]["text"]
    assert "the notepad's {kept} text" in text
    assert "the handoff's text" in text
    assert "the memory's text" in text
    other = server.ask("prompts/get", {"name": "resume", "arguments": {"session_id": "another"}})
    assert "the notepad's" not in other["messages"][0]["content"]["text"]
    checkpoint = server.ask("prompts/get", {"name": "checkpoint"})
    assert "write_session_handoff" in checkpoint["messages"][0]["content"]["text"]
    assert "{" not in checkpoint["messages"][0]["content"]["text"]


# --- which session ----------------------------------------------------------------------------------------------------


def notes_in(server: Lines, session: str) -> list[str]:
    return [note["content"] for note in server.call("list_notes", session_id=session)["notes"]]


def test_the_argument_wins_over_every_other_session(store: str) -> None:
    with Lines(stdio_command(store, session="fixed"), env={"CLAUDE_CODE_SESSION_ID": "environment"}) as server:
        server.open(MODERN)
        server.call("add_note", content="in fixed")
        server.call("add_note", content="in named", session_id="named")
        server.ask(
            "tools/call",
            {"name": "add_note", "arguments": {"content": "also fixed"}, "_meta": {"agent-session-id": "goose"}},
        )
        assert notes_in(server, "fixed") == ["also fixed", "in fixed"]
        assert notes_in(server, "named") == ["in named"]
        assert notes_in(server, "goose") == []


@pytest.mark.parametrize("name", ["CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID", "AGENT_SESSION_ID"])
def test_the_clients_environment_names_the_session(store: str, name: str) -> None:
    with Lines(stdio_command(store), env={name: "from-env"}) as server:
        server.open("2025-06-18")
        server.call("add_note", content="one")
        assert notes_in(server, "from-env") == ["one"]


@pytest.mark.parametrize("named", [{"agent-session-id": "s1"}, {"x-codex-turn-metadata": {"session_id": "s1"}}])
def test_the_meta_of_a_call_names_the_session(server: Lines, named: dict[str, object]) -> None:
    server.open("2025-06-18")
    server.ask("tools/call", {"name": "add_note", "arguments": {"content": "one"}, "_meta": named})
    assert notes_in(server, "s1") == ["one"]


@pytest.mark.parametrize("odd", [{"agent-session-id": 5}, {"x-codex-turn-metadata": "s1"}, {"agent-session-id": ""}])
def test_an_odd_meta_names_no_session(server: Lines, odd: dict[str, object]) -> None:
    server.open("2025-06-18")
    server.ask("tools/call", {"name": "add_note", "arguments": {"content": "one"}, "_meta": odd})
    assert [note["content"] for note in server.call("list_notes")["notes"]] == ["one"]


def test_two_processes_are_two_sessions(store: str) -> None:
    with Lines(stdio_command(store)) as one, Lines(stdio_command(store)) as two:
        one.open(MODERN)
        two.open(MODERN)
        one.call("write_notepad", content="mine")
        assert two.call("read_notepad")["content"] == ""


# --- the handoff ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
def test_a_handoff_is_used_up_by_the_first_call_after_it_was_shown(store: str, revision: str) -> None:
    with Lines(stdio_command(store, session="one")) as server:
        server.open(revision)
        server.call("write_session_handoff", content="remember the casts")
    with Lines(stdio_command(store, session="two")) as server:
        assert "remember the casts" in server.open(revision)["instructions"]
        server.ask("tools/list")
    with Lines(stdio_command(store, session="three")) as server:  # the last one never called a tool
        assert "remember the casts" in server.open(revision)["instructions"]
        server.call("list_notes")
    with Lines(stdio_command(store, session="four")) as server:
        assert "remember the casts" not in server.open(revision)["instructions"]
        (content,) = server.ask("resources/read", {"uri": "holdfast://handoff"})["contents"]
        assert "remember the casts" in content["text"]


def test_a_handoff_written_by_the_first_call_stays_for_the_next_session(store: str) -> None:
    with Lines(stdio_command(store, session="one")) as server:
        server.open(MODERN)
        server.call("write_session_handoff", content="old")
    with Lines(stdio_command(store, session="two")) as server:
        server.open(MODERN)
        server.call("write_session_handoff", content="new")
    with Lines(stdio_command(store, session="three")) as server:
        assert "new" in server.open(MODERN)["instructions"]


# --- framing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b"{", -32700, None),
        (b"\xff", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":NaN}}', -32700, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":"\\ud800"}}', -32600, 5),
        (b"5", -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}', -32602, 5),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]', -32600, None),
        (b"x" * (16 * 1024 * 1024 + 10), -32600, None),
    ],
    ids=["cut", "utf8", "deep", "nan", "surrogate", "number", "null id", "params", "empty batch", "batch", "huge"],
)
def test_a_bad_line_is_refused_and_the_next_one_answered(server: Lines, line: bytes, code: int, id: int | None) -> None:
    server.open("2025-11-25")
    server.write(line + b"\n")
    reply = server.read()
    assert (reply["error"]["code"], reply["id"]) == (code, id)
    assert server.ask("ping") == {}


def test_a_large_line_under_the_limit_is_answered(server: Lines) -> None:
    server.open(MODERN)
    result = server.ask("tools/call", {"name": "add_note", "arguments": {"content": "x" * 15_000_000}})
    assert result["isError"] is True


def test_notifications_and_replies_are_not_answered(server: Lines) -> None:
    server.open("2025-11-25")
    for silent in (
        {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "changed my mind"}},
        {"method": "notifications/progress", "params": {}},
        {"method": "notifications/no/such"},
        {"method": "tools/list"},
        {"id": 1, "result": {}},
        {"id": 1, "error": {"code": 1, "message": "no"}},
    ):
        server.send({"jsonrpc": "2.0", **silent})
    server.write(b"\n  \n\r\n")
    assert server.ask("ping") == {}


def test_batches_in_the_one_revision_that_has_them(server: Lines) -> None:
    server.open("2025-03-26")
    server.send(
        [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
            {"jsonrpc": "2.0", "id": "two", "method": "no/such"},
            7,
        ]
    )
    first, second, third = server.read()
    assert first == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (second["id"], second["error"]["code"]) == ("two", -32601)
    assert (third["id"], third["error"]["code"]) == (None, -32600)
    server.send([{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}])
    server.send([])
    assert server.read()["error"]["code"] == -32600


def test_a_hundred_calls_in_one_write_are_all_answered_in_order(server: Lines) -> None:
    server.open("2025-06-18")
    calls = [
        {
            "jsonrpc": "2.0",
            "id": f"call {number}",
            "method": "tools/call",
            "params": {"name": "add_note", "arguments": {"content": f"note {number}"}},
        }
        for number in range(100)
    ]
    server.write(b"".join(json.dumps(call).encode() + b"\n" for call in calls))
    replies = [server.read() for _ in calls]
    assert [reply["id"] for reply in replies] == [call["id"] for call in calls]
    assert [reply["result"]["structuredContent"]["total_notes"] for reply in replies] == list(range(1, 101))
    assert server.call("list_notes", limit=200)["note_count"] == 100


# --- the process ------------------------------------------------------------------------------------------------------


def test_the_end_of_input_ends_the_server_cleanly(server: Lines) -> None:
    server.open(MODERN)
    assert server.leave() == (0, b"", b"")


def test_a_last_line_without_a_newline_is_answered(server: Lines) -> None:
    server.open("2025-11-25")
    server.write(b'{"jsonrpc":"2.0","id":5,"method":"ping"}')
    code, out, err = server.leave()
    assert (code, json.loads(out), err) == (0, {"jsonrpc": "2.0", "id": 5, "result": {}}, b"")


def test_no_input_at_all(server: Lines) -> None:
    assert server.leave() == (0, b"", b"")


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_cleanly(server: Lines, which: signal.Signals) -> None:
    server.open(MODERN)
    server.process.send_signal(which)
    assert server.process.wait(timeout=20) == 0
    assert server.leave()[1:] == (b"", b"")


def test_a_client_that_stops_reading_ends_the_server_cleanly(store: str) -> None:
    with Lines(stdio_command(store)) as server:
        server.open(MODERN)
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}})
        assert server.process.wait(timeout=20) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""


def test_a_signal_ends_a_server_whose_client_never_reads(store: str) -> None:
    with Lines(stdio_command(store)) as server:
        server.open(MODERN)
        assert server.process.stdin is not None
        os.set_blocking(server.process.stdin.fileno(), False)
        ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}}).encode()
        with suppress(BlockingIOError):  # until both pipes are full
            for _ in range(100_000):
                os.write(server.process.stdin.fileno(), ask + b"\n")
        server.process.terminate()
        assert server.process.wait(timeout=20) == 0


PRINTS = """
import subprocess, sys
from holdfast import wiring
from holdfast.doors import mcp_stdio, mcp_surface
call = mcp_surface.Surface.answer
def noisy(self, method, params, client, revision):
    print("a stray print", flush=True)
    subprocess.run([sys.executable, "-c", "import sys; print(len(sys.stdin.read()))"])
    if method == "prompts/list":
        raise ZeroDivisionError("seeded")
    return call(self, method, params, client, revision)
mcp_surface.Surface.answer = noisy
with wiring.open(sys.argv[1]) as hold:
    mcp_stdio.serve(hold, "core")
"""


def test_stray_prints_and_children_cannot_touch_the_protocol(store: str) -> None:
    with Lines([sys.executable, "-c", PRINTS, store]) as server:
        server.open(MODERN)
        server.ask("tools/list")
        error = server.refused("prompts/list")
        assert error["code"] == -32603
        assert "seeded" not in error["message"]
        server.ask("tools/list")
        code, out, err = server.leave()
    assert (code, out) == (0, b"")
    assert err.count(b"a stray print\n") == 4
    assert err.count(b"\n0\n") == 4  # the child found nothing to read
    assert b"ZeroDivisionError: seeded" in err


SLOW = """
import sys, time
from holdfast import wiring
from holdfast.doors import mcp_stdio, mcp_surface
call = mcp_surface.Surface.answer
def slow(self, method, params, client, revision):
    if method == "tools/list":
        print("begun", file=sys.stderr, flush=True)
        time.sleep(float(sys.argv[2]))
    return call(self, method, params, client, revision)
mcp_surface.Surface.answer = slow
with wiring.open(sys.argv[1]) as hold:
    mcp_stdio.serve(hold, "core")
"""
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}}


def test_a_request_under_way_is_answered_before_a_signal_ends_the_server(store: str) -> None:
    with Lines([sys.executable, "-c", SLOW, store, "1"]) as server:
        assert server.process.stderr is not None
        server.send(LIST)
        server.send(LIST)
        assert server.process.stderr.readline() == b"begun\n"
        server.process.terminate()
        assert server.read()["result"]["tools"]
        assert server.leave() == (0, b"", b"")


def test_a_second_signal_does_not_wait(store: str) -> None:
    with Lines([sys.executable, "-c", SLOW, store, "60"]) as server:
        assert server.process.stderr is not None
        server.send(LIST)
        assert server.process.stderr.readline() == b"begun\n"
        server.process.terminate()
        time.sleep(0.3)
        server.process.terminate()
        assert server.leave() == (0, b"", b"")


def test_the_official_sdk_is_not_imported_by_the_stdio_door(store: str) -> None:
    code = (
        "import sys, holdfast.wiring, holdfast.doors.mcp_stdio\n"
        "heavy = {'mcp', 'mcp_types', 'asyncio', 'pydantic', 'anyio', 'click', 'holdfast.doors.mcp_http'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    with Lines([sys.executable, "-c", code]) as lines:
        assert lines.leave()[1] == b"[]\n"
