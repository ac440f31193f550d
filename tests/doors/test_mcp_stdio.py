"""The MCP server on stdio, as a process of its own: each revision, line by line, and what abuse does to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import limpet
from doors.mcp_client import CLIENT, HANDSHAKE, MODERN, REVISIONS, Lines, hello, meta, stdio_command
from limpet import limits
from limpet.text import tokens

MODERN_FIELDS = {"resultType", "ttlMs", "cacheScope", "_meta"}
CORE_MAX_TOKENS = 1_200  # what the core profile may cost a client's window at most
CORE_MAX_TOOLS = 13


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "limpet.db")


@pytest.fixture
def server(store: str) -> Iterator[Lines]:
    with Lines(stdio_command(store)) as lines:
        yield lines


# --- each revision ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_handshake_agrees_on_the_revision_asked_for(server: Lines, revision: str) -> None:
    answer = server.open(revision)
    assert answer["protocolVersion"] == revision
    completions: dict[str, object] = {"completions": {}} if revision >= "2025-03-26" else {}
    assert answer["capabilities"] == {"tools": {}, "resources": {}, "prompts": {}, **completions}
    assert answer["serverInfo"]["name"] == "limpet"
    assert ("title" in answer["serverInfo"]) == (revision >= "2025-06-18")
    assert answer["instructions"].startswith("Notes: ")
    assert not MODERN_FIELDS & answer.keys()


@pytest.mark.parametrize("unknown", ["2023-01-01", "2026-07-28", "9999-12-31", "", "x" * 1000])
def test_a_handshake_for_an_unknown_revision_is_offered_the_newest(server: Lines, unknown: str) -> None:
    server.revision = HANDSHAKE[0]
    assert server.ask("initialize", hello(unknown))["protocolVersion"] == HANDSHAKE[-1]


def test_discover_tells_what_the_handshake_used_to_tell(server: Lines) -> None:
    answer = server.open(MODERN)
    assert answer["supportedVersions"] == [MODERN]
    assert answer["capabilities"] == {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
    assert answer["instructions"].startswith("Notes: ")
    assert (answer["resultType"], answer["ttlMs"], answer["cacheScope"]) == ("complete", 0, "private")
    assert answer["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "limpet"


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_revision_gets_only_the_fields_it_knows(server: Lines, revision: str) -> None:
    server.open(revision)
    tools = {tool["name"]: tool for tool in server.ask("tools/list")["tools"]}
    assert ("annotations" in tools["add_note"]) == (revision >= "2025-03-26")
    assert ("outputSchema" in tools["add_note"]) <= (revision >= "2025-06-18")
    result = server.ask("tools/call", {"name": "add_note", "arguments": {"content": "The port is 5433"}})
    assert ("structuredContent" in result) == (revision >= "2025-06-18")
    assert result["content"][0]["type"] == "text"
    assert result["content"][0]["text"] == "n2 kept; 1 note, 0 tags."
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
    with Lines(stdio_command(store, "core", structured=False)) as server:
        server.open(revision)
        assert server.process.stdin is not None
        assert server.process.stdout is not None
        server.send({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {"_meta": meta()}})
        line = server.process.stdout.readline()
    assert tokens.count(line.decode()) <= CORE_MAX_TOKENS
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
    assert server.text("list_notes") == "No notes."


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
@pytest.mark.parametrize("method", ["no/such", "logging/setLevel", "subscriptions/listen", ""])
def test_an_unknown_method_is_refused(server: Lines, revision: str, method: str) -> None:
    server.open(revision)
    assert server.refused(method)["code"] == -32601


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_unknown_resource_is_refused_as_the_revision_wants(server: Lines, revision: str) -> None:
    server.open(revision)
    for uri in ("limpet://nothing", "limpet://notepad/", "file:///etc/passwd", ""):
        error = server.refused("resources/read", {"uri": uri})
        assert error["code"] == (-32602 if revision == MODERN else -32002)
        assert error["data"] == {"uri": uri}


@pytest.mark.parametrize("revision", REVISIONS)
def test_resources_hold_what_tools_wrote(server: Lines, revision: str) -> None:
    server.open(revision)
    server.call("write_notepad", content="# Plan\n- é\n")
    server.call("write_notepad", content="other", session_id=SUBAGENT)
    server.call("add_note", content="a note")
    server.call("write_session_handoff", content="go on with casts")

    def read(uri: str) -> tuple[str, str]:
        (content,) = server.ask("resources/read", {"uri": uri})["contents"]
        assert content["uri"] == uri
        return content["mimeType"], content["text"]

    assert read("limpet://notepad") == ("text/markdown", "# Plan\n- é\n")
    assert read(f"limpet://notepad/{SUBAGENT}") == ("text/markdown", "other")
    kind, text = read("limpet://notes")
    assert kind == "application/json"
    assert [note["content"] for note in json.loads(text)["notes"]] == ["a note"]
    kind, text = read("limpet://handoff")
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


def notes_in(store: str, session: str) -> list[str]:
    with limpet.open(store, session=session) as hold:
        return [note.content for note in hold.session().notes.list(this_session=True)]


SUBAGENT = "0199a3c1-77aa-7c52-9f0e-0c3a7f1d2b44.explore"


def test_the_argument_wins_over_every_other_session(store: str) -> None:
    with Lines(stdio_command(store, session="fixed"), env={"CLAUDE_CODE_SESSION_ID": "environment"}) as server:
        server.open(MODERN)
        server.call("add_note", content="in fixed")
        server.call("add_note", content="in named", session_id=SUBAGENT)
        server.ask(
            "tools/call",
            {"name": "add_note", "arguments": {"content": "also fixed"}, "_meta": {"agent-session-id": "goose"}},
        )
    assert notes_in(store, "fixed") == ["also fixed", "in fixed"]
    assert notes_in(store, SUBAGENT) == ["in named"]
    assert notes_in(store, "goose") == []


@pytest.mark.parametrize("name", ["CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID", "AGENT_SESSION_ID"])
def test_the_clients_environment_names_the_session(store: str, name: str) -> None:
    with Lines(stdio_command(store), env={name: "from-env"}) as server:
        server.open("2025-06-18")
        server.call("add_note", content="one")
    assert notes_in(store, "from-env") == ["one"]


@pytest.mark.parametrize("named", [{"agent-session-id": "s1"}, {"x-codex-turn-metadata": {"session_id": "s1"}}])
def test_the_meta_of_a_call_names_the_session(server: Lines, store: str, named: dict[str, object]) -> None:
    server.open("2025-06-18")
    server.ask("tools/call", {"name": "add_note", "arguments": {"content": "one"}, "_meta": named})
    assert notes_in(store, "s1") == ["one"]


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
def test_a_handoff_is_used_up_by_the_call_after_the_result_that_showed_it(store: str, revision: str) -> None:
    with Lines(stdio_command(store, session="one")) as server:
        server.open(revision)
        server.call("write_session_handoff", content="remember the casts")
        server.call("write_notepad", content="the plan of one")
    with Lines(stdio_command(store, session="two")) as server:
        assert "remember the casts" in server.open(revision)["instructions"]
        server.ask("tools/list")
    with Lines(stdio_command(store, session="three")) as server:  # the last one never called a tool
        assert "remember the casts" in server.open(revision)["instructions"]
        first = server.ask("tools/call", {"name": "list_notes", "arguments": {}})
        assert "remember the casts" in first["content"][1]["text"]
        assert "remember the casts" in first["structuredContent"]["context"]
    with Lines(stdio_command(store, session="one")) as server:  # resumed
        server.open(revision)
        first = server.ask("tools/call", {"name": "list_notes", "arguments": {}})
        assert "the plan of one" in first["structuredContent"]["context"]
        assert "remember the casts" in first["structuredContent"]["context"]  # its own, from before it was resumed
        assert "context" not in server.call("list_notes")
    with Lines(stdio_command(store, session="three")) as server:  # one result was shown, and nothing done since
        assert "remember the casts" in server.open(revision)["instructions"]
        server.call("list_notes")
        server.call("list_notes")
    with Lines(stdio_command(store, session="four")) as server:
        assert "remember the casts" not in server.open(revision)["instructions"]
        (content,) = server.ask("resources/read", {"uri": "limpet://handoff"})["contents"]
        assert "remember the casts" in content["text"]


def test_a_handoff_written_by_the_first_call_stays_for_the_next_session(store: str) -> None:
    with Lines(stdio_command(store, session="one")) as server:
        server.open(MODERN)
        server.call("write_session_handoff", content="old")
    with Lines(stdio_command(store, session="two")) as server:
        server.open(MODERN)
        server.call("write_session_handoff", content="new")
    with Lines(stdio_command(store, session="three")) as server:
        instructions = server.open(MODERN)["instructions"]
        assert "new" in instructions
        assert "old" in instructions  # nobody has worked on it


def test_a_resumed_session_gets_its_own_handoff_which_goes_on_waiting_for_others(store: str) -> None:
    def first_context(session: str) -> str:
        with Lines(stdio_command(store, session=session)) as server:
            server.open(MODERN)
            first, second = _context(server, "list_notes"), _context(server, "list_notes")
            assert second == ""
            return first

    with Lines(stdio_command(store, session="work")) as server:
        server.open(MODERN)
        server.call("write_session_handoff", content="remember the casts")
        assert _context(server, "list_notes") == ""  # written in this very process
    for _ in range(2):
        assert "remember the casts" in first_context("work")
    with Lines(stdio_command(store, session="work")) as server:
        assert "remember the casts" in server.open(MODERN)["instructions"]
    assert "remember the casts" in first_context("another")
    assert "remember the casts" not in first_context("a third")


def test_of_two_clients_at_once_the_second_learns_that_the_first_has_the_handoff_too(store: str) -> None:
    with Lines(stdio_command(store, session="one")) as server:
        server.open(MODERN)
        server.call("write_session_handoff", content="remember the casts")
    with Lines(stdio_command(store, session="two")) as two, Lines(stdio_command(store, session="three")) as three:
        two.open(MODERN)
        three.open(MODERN)
        first = _context(two, "list_notes")
        assert "remember the casts" in first
        assert "also shown" not in first
        second = _context(three, "add_note", content="a note")
        assert "remember the casts" in second
        assert "also shown to session two" in second
    assert set(_shown_to(store)) == {"two", "three"}
    with Lines(stdio_command(store, session="two")) as two:  # resumed: it has done nothing since
        two.open(MODERN)
        assert "remember the casts" in _context(two, "list_notes")


def test_instructions_hold_as_much_of_handoffs_as_a_result_does(store: str) -> None:
    for session in ("one", "two", "three"):
        with Lines(stdio_command(store, session=session)) as server:
            server.open(MODERN)
            server.call("write_session_handoff", content=f"Casts of {session}. " + "details " * 1_500)
    with Lines(stdio_command(store, session="four")) as server:
        text = server.open(MODERN)["instructions"]
    assert len(text) < limits.HOOK_CONTEXT_CHARS
    assert all(f"Casts of {session}." in text for session in ("one", "two", "three"))
    assert "read_handoff" in text


def _context(server: Lines, tool: str, **arguments: object) -> str:
    """What the result of a call says besides its answer."""
    result = server.ask("tools/call", {"name": tool, "arguments": arguments})
    return str(result["structuredContent"].get("context", ""))


def _shown_to(store: str) -> tuple[str, ...]:
    with limpet.open(store) as hold:
        return hold.session().handoff.read().shown_to


def test_a_handoff_that_was_asked_for_is_used_up_by_the_next_call(store: str) -> None:
    with Lines(stdio_command(store, session="one")) as server:
        server.open(MODERN)
        server.call("write_session_handoff", content="remember the casts")
    for session, waits in (("two", True), ("three", True), ("four", False)):
        with Lines(stdio_command(store, session=session)) as server:
            assert ("remember the casts" in server.open(MODERN)["instructions"]) == waits
            assert server.call("read_handoff")["content"] == "remember the casts"
            if session == "three":
                server.call("list_notes")


def test_what_needs_a_conversation_of_our_own_is_not_offered(store: str) -> None:
    with Lines(stdio_command(store, "full")) as server:
        instructions = server.open(MODERN)["instructions"]
        names = {tool["name"] for tool in server.ask("tools/list")["tools"]}
        assert "recall" in names
        for name in ("begin_task", "end_task", "cancel_task", "show_window"):
            assert name not in names
            assert name not in instructions


# --- what models read -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
def test_by_default_results_are_short_text_and_no_values(store: str, revision: str) -> None:
    with Lines(stdio_command(store, structured=False)) as server:
        server.open(revision)
        assert not [tool for tool in server.ask("tools/list")["tools"] if "outputSchema" in tool]
        call = {"name": "add_note", "arguments": {"content": "Casts need lookahead", "tags": ["parser"]}}
        added = server.ask("tools/call", call)
        assert added["content"] == [{"type": "text", "text": "n2 kept; 1 note, 1 tag."}]
        assert "structuredContent" not in added
        assert server.text("update_note", id="n2", done=True).startswith("n2 now done #parser Casts need lookahead")


@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
def test_a_request_can_ask_for_values(store: str, revision: str) -> None:
    asking = {"limpet/structured": True}
    with Lines(stdio_command(store, structured=False)) as server:
        server.open(revision)
        more = meta(**asking) if revision == MODERN else asking
        listed = server.ask("tools/list", {"_meta": more})["tools"]
        assert all("outputSchema" in tool for tool in listed)
        result = server.ask("tools/call", {"name": "list_notes", "arguments": {}, "_meta": more})
        assert result["structuredContent"]["note_count"] == 0
        assert result["content"][0]["text"] == "No notes."


def test_the_names_of_earlier_documents_are_answered_and_not_listed(server: Lines) -> None:
    server.open(MODERN)
    listed = {tool["name"] for tool in server.ask("tools/list")["tools"]}
    assert {"read_output", "list_outputs", "recover_journal", "update_journal"} <= listed
    assert not listed & {"scratchpad_read", "scratchpad_list", "recover_notes", "update_notes"}
    assert server.text("scratchpad_list") == server.text("list_outputs")


def test_a_version_can_be_expected_in_meta(server: Lines) -> None:
    server.open("2025-11-25")
    server.call("write_notepad", content="one")
    for expected, refused in ((1, False), (1, True)):
        result = server.ask(
            "tools/call",
            {
                "name": "write_notepad",
                "arguments": {"content": f"after {expected}"},
                "_meta": {"limpet/expectedVersion": expected},
            },
        )
        assert result.get("isError", False) is refused


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize("name", ["claude-code", "tests"])
def test_a_client_that_loads_tools_later_is_told_which_ones_it_needs_at_once(
    revision: str, name: str, tmp_path: Path
) -> None:
    info = {"name": name, "version": "1"}
    with Lines(stdio_command(str(tmp_path / "a.db"), "coding")) as server:
        server.revision = revision
        if revision == MODERN:
            listed = server.ask("tools/list", {"_meta": {"io.modelcontextprotocol/clientInfo": info}})
        else:
            server.ask("initialize", hello(revision) | {"clientInfo": info})
            listed = server.ask("tools/list")
    at_once = {tool["name"] for tool in listed["tools"] if tool.get("_meta") == {"anthropic/alwaysLoad": True}}
    assert len(listed["tools"]) == 14
    assert (len(at_once), "recall" in at_once) == ((7, True) if name == "claude-code" else (0, False))
