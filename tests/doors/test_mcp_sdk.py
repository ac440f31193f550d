"""The official SDK's client against our server: every tool, each revision, both transports, the same answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, ClientSession, MCPError, StdioServerParameters
from mcp_types.methods import serialize_server_result

from doors.mcp_client import MODERN, REVISIONS, Lines, http_server, sdk_session, stdio_command

# One story that calls every tool, with mistakes in it. A value in braces is taken from an earlier answer.
STORY: list[tuple[str, dict[str, Any]]] = [
    ("add_note", {"content": "Casts break LL(1): é 😀", "tags": ["Grammar", "parser"]}),
    ("add_note", {"content": "The lexer is hand-written", "tags": ["grammar"]}),
    ("add_note", {"content": ""}),
    ("add_note", {"content": "x", "no_such": 1}),
    ("search_notes", {"query": "casts"}),
    ("search_notes", {"query": "", "tags": ["GRAMMAR"], "limit": 1}),
    ("list_notes", {"tag": "grammar"}),
    ("list_tags", {}),
    ("update_note", {"id": "{note_id}", "done": True}),
    ("update_note", {"id": "note_1", "done": True}),
    ("delete_note", {"id": "{note_id}"}),
    ("scratch_note", {"content": "loose thought"}),
    ("scratch_note", {"mode": "replace", "content": "working"}),
    ("scratch_note", {"mode": "read"}),
    ("read_notepad", {}),
    ("write_notepad", {"content": "# Plan\n- [ ] casts\n"}),
    ("update_notepad", {"operation": "find_replace", "find": "[ ]", "replace": "[x]"}),
    ("update_notepad", {"operation": "find_replace", "find": "nothing like it", "replace": "x"}),
    ("read_notepad", {"session_id": "another"}),
    ("write_memory", {"key": "parser", "content": "LL(1), hand-written"}),
    ("search_memory", {"query": "parser"}),
    ("search_memory", {"query": ""}),
    ("list_memory", {}),
    ("mark_useful", {"id": "parser"}),
    ("delete_memory", {"key": "parser"}),
    ("write_session_handoff", {"content": "go on with casts"}),
    ("read_handoff", {}),
    ("uncompact", {"first": 1}),
    ("recall", {"query": "which parser is hand-written?"}),
    ("list_outputs", {}),
    ("read_output", {"id": "3f9a1c2b77e0", "query": "casts"}),
    ("run_sandbox_code", {"code": "print(session.notepad.read())\nn + 1", "inputs": {"n": 1}}),
    ("run_sandbox_code", {"code": "1 / 0"}),
    ("edit_system_prompt", {"operation": "append", "content": "Answer in English.\n"}),
    ("read_system_prompt", {}),
    ("list_skills", {}),
    ("read_skill", {"name": "no-such-skill"}),
    ("promote_skill", {"name": "../up", "description": "Up.", "section": "Plan"}),
    ("agent_state", {"action": "set", "key": "build", "value": {"number": 7}}),
    ("agent_state", {"action": "get", "key": "build"}),
    ("agent_state", {"action": "keys"}),
    ("agent_state", {"action": "get", "key": "nothing"}),
    ("recover_journal", {}),
    ("update_journal", {"section": "goal", "text": "casts | nested", "note": "tests"}),
    ("log_decision", {"title": "t", "decision": "d", "rationale": "r", "evidence": ["a.py:1"], "scenarios": ["x"] * 3}),
    (
        "log_decision",
        {"title": "t", "decision": "d", "rationale": "r", "evidence": ["user: go"], "scenarios": ["x"] * 3},
    ),
    ("checkpoint_session", {"summary": "casts work", "state": "tests next"}),
    ("recover_journal", {"level": 2, "query": "casts"}),
]
NAMED = {"Limpet-Session": "story"}  # a client whose session is known gets the same tools everywhere
VARYING = re.compile(r"(?:note|task)_\d+|\d{4}-\d\d-\d\dT[\d:.]+Z|\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d")


def plain(value: Any) -> Any:
    """An answer without what differs from run to run: ids and times."""
    return json.loads(VARYING.sub("~", json.dumps(value, ensure_ascii=False)))


async def tell(session: ClientSession) -> list[Any]:
    answers: list[Any] = []
    note_id = ""
    for tool, arguments in STORY:
        filled = {name: note_id if value == "{note_id}" else value for name, value in arguments.items()}
        result = await session.call_tool(tool, filled)
        assert isinstance(result, types.CallToolResult)
        (block,) = result.content
        assert isinstance(block, types.TextContent)
        if not result.is_error:
            kept = re.match(r"(n\d+) kept", block.text)
            note_id = kept[1] if kept else note_id
        answers.append(plain(result.model_dump(mode="json", by_alias=True, exclude={"meta"})))
    return answers


async def everything(session: ClientSession, revision: str) -> list[Any]:
    """All that the server says to a client, looked at, and without what differs from run to run."""
    assert session.protocol_version == revision
    assert session.server_info is not None
    assert session.server_info.name == "limpet"
    assert session.instructions
    replies: list[Any] = [session.instructions, session.server_info, session.server_capabilities]
    replies.append(tools := await session.list_tools())
    assert {tool.name for tool in tools.tools} == {tool for tool, _ in STORY}
    replies += (answers := await tell(session))
    assert sum(answer["isError"] is True for answer in answers) == 14
    assert all(
        (answer["structuredContent"] is None) == (revision < "2025-06-18")
        for answer in answers
        if not answer["isError"]
    )
    replies += await readings(session)
    if revision != MODERN:
        await session.send_ping()
    for refused, code in (
        (session.call_tool("no_such_tool", {}), types.INVALID_PARAMS),
        (session.read_resource("limpet://nothing"), None),
        (session.get_prompt("no_such_prompt"), None),
        (session.list_tools(params=types.PaginatedRequestParams(cursor="2")), None),
    ):
        with pytest.raises(MCPError) as problem:
            await refused
        assert code in (None, problem.value.code)
        replies.append(problem.value.error)
    return [
        plain(reply.model_dump(mode="json", by_alias=True)) if hasattr(reply, "model_dump") else reply
        for reply in replies
    ]


async def readings(session: ClientSession) -> list[Any]:
    """Every resource and every prompt."""
    resources, templates = await session.list_resources(), await session.list_resource_templates()
    prompts = await session.list_prompts()
    replies: list[Any] = [resources, templates, prompts]
    assert templates.resource_templates
    for resource in resources.resources:
        replies.append(read := await session.read_resource(resource.uri))
        assert read.contents[0].mime_type == resource.mime_type
    for prompt in prompts.prompts:
        replies.append(got := await session.get_prompt(prompt.name))
        assert isinstance(got, types.GetPromptResult)
        assert got.messages
    replies.append(await session.read_resource("limpet://notepad/another"))
    replies.append(await session.get_prompt("resume", {"session_id": "another"}))
    return replies


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_official_client_gets_every_answer_and_the_same_over_both_transports(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        command = stdio_command(str(tmp_path / "a.db"), session="story")
        async with sdk_session(command=command, revision=revision) as one:
            on_stdio = await everything(one, revision)
        async with sdk_session(url=url, revision=revision, headers=NAMED) as two:
            over_http = await everything(two, revision)
        for here, there in zip(on_stdio, over_http, strict=True):
            assert here == there

    with http_server(tmp_path / "b.db", session="story") as url:
        monkeypatch.setenv("LIMPET_FOLDER", str(tmp_path))  # the other one has its journal where it was started
        anyio.run(main)


MODES = ["auto", "legacy", MODERN]


async def connects(server: StdioServerParameters | str, mode: str) -> None:
    async with Client(server, mode=mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else MODERN)
        assert (await client.call_tool("add_note", {"content": "one"})).structured_content is not None
        tools = {tool.name for tool in (await client.list_tools()).tools} - {"begin_session"}
        assert tools == {tool for tool, _ in STORY}


@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_connects_the_way_it_likes_on_stdio(mode: str, tmp_path: Path) -> None:
    command = stdio_command(str(tmp_path / "a.db"))
    anyio.run(connects, StdioServerParameters(command=command[0], args=command[1:]), mode)


def test_the_official_client_connects_the_way_it_likes_over_http(tmp_path: Path) -> None:
    with http_server(tmp_path / "b.db", token=None) as url:
        for mode in MODES:
            anyio.run(connects, url, mode)


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_official_models_find_nothing_to_drop(revision: str, tmp_path: Path) -> None:
    """Each result is exactly what the SDK's own models of the revision would write."""
    with Lines(stdio_command(str(tmp_path / "a.db"))) as server:
        opening = "server/discover" if revision == MODERN else "initialize"
        results = [(opening, server.open(revision))]
        for method, params in (
            ("tools/list", {}),
            ("tools/call", {"name": "add_note", "arguments": {"content": "one"}}),
            ("tools/call", {"name": "add_note", "arguments": {}}),
            ("tools/call", {"name": "list_notes", "arguments": {}}),
            ("resources/list", {}),
            ("resources/templates/list", {}),
            ("resources/read", {"uri": "limpet://notes"}),
            ("prompts/list", {}),
            ("prompts/get", {"name": "resume"}),
            (
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "resume"},
                    "argument": {"name": "session_id", "value": ""},
                },
            ),
        ):
            results.append((method, server.ask(method, params)))
    for method, result in results:
        assert serialize_server_result(method, revision, result) == result


@pytest.mark.parametrize("profile", ["core", "full"])
def test_structured_answers_follow_their_schemas(profile: str, tmp_path: Path) -> None:
    """The client checks each structured answer against the tool's output schema, and raises if it differs."""

    async def main() -> None:
        async with sdk_session(command=stdio_command(str(tmp_path / "a.db"), profile), revision=MODERN) as session:
            tools = (await session.list_tools()).tools
            assert all(tool.output_schema is not None for tool in tools)
            names = {tool.name for tool in tools}
            for tool, arguments in STORY:
                if tool in names and "{note_id}" not in arguments.values():
                    await session.call_tool(tool, arguments)

    anyio.run(main)
