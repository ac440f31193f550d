"""`limpet wrap` as a process between a client and a scripted server: what passes, and what is kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import limpet
from doors.mcp_client import MODERN, REVISIONS, Lines, Reply, hello, meta
from doors.upstream import words
from doors.wrap_kit import BIG, LIMPET, MASK, UPSTREAM, ask, id_in, opened, read_back, shown, wrapped
from person import trusted


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "limpet.db"


@pytest.fixture
def client(store: Path) -> Iterator[Lines]:
    with opened(wrapped(store)) as lines:
        yield lines


# --- everything passes as it is ---------------------------------------------------------------------------------------

LARGE = "z" * 100_000
WEIRD = [
    '>{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":1.50,"b":1e400}}}',
    '<{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.10}}',
    '<{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"result":1}}',
    '>{"jsonrpc":"2.0","id":1,"result":{"role":"assistant","content":{"type":"text","text":"' + LARGE + '"}}}',
    '<{"jsonrpc" : "2.0", "id" : 1, "result" : {"content":[{"type":"text","text":"\\u00e9 \\/ 1"}],"x":1.50,"x":2}}',
    '>{"jsonrpc":"2.0","id":"1","method":"resources/read","params":{"uri":"hold://0123456789ab"}}',
    '<{"result":{"contents":[{"uri":"a:b","text":"' + LARGE + '"}]},"jsonrpc":"2.0","id":"1"}',
    '>{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p"}}',
    '<{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"' + LARGE + '","data":{"id":5}}}',
    '>{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}}',
    '<{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"' + LARGE + '"}}',
    '>{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a"}}',
    '<{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"image","data":"' + LARGE + '","mimeType":"image/png"}]}}',
    '>{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99,"reason":"no"}}',
    '<{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"' + LARGE + '"}}',
    '<{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}',
    '>{"jsonrpc":"2.0","id":"e","result":{"action":"decline"}}',
    '>{"jsonrpc":"2.0","id":null,"method":"unknown/method","params":[1,2]}',
    '<{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}',
    '>[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","method":"a/b"},5]',
    '<[{"jsonrpc":"2.0","id":7,"result":{ }}]',
    ">[]",
    "<[]",
    ">this is not JSON, though it says method",
    '>{"method": "tools/call", broken',
    ">",
    "<",
    '>  {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"a","arguments":"hold://"}}  \r',
    '<{"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"\\ud800 half"}],"deep":' + "[" * 490 + "\r",
    "<\x7f\t print from a library",
    '>{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":7,"arguments":{"n":NaN}}}',
    '<{"jsonrpc":"2.0","id":9,"result":{"content":"' + LARGE + '","n":NaN}}',
    # A long reply to a tool call is looked at by a worker, and what the upstream sends meanwhile may overtake it.
    '>{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
    '<{"jsonrpc":"2.0","id":1234,"result":{"content":[{"type":"text","text":"' + LARGE + '"}]}}',
]


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_message_passes_byte_for_byte(revision: str, tmp_path: Path, store: Path) -> None:
    if revision == MODERN:
        opening = {"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {"_meta": meta()}}
    else:
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello(revision)}
    welcome = {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": revision, "capabilities": {}}}
    script = [f">{json.dumps(opening)}", f"<{json.dumps(welcome)}", *WEIRD]
    raw = [line.encode() + b"\n" for line in script] + [b'<{"jsonrpc":"2.0","method":"bad \xff utf-8"}\n']
    (tmp_path / "script").write_bytes(b"".join(raw))
    with Lines(wrapped(store, "replay", str(tmp_path / "script"))) as client:
        assert client.process.stdout is not None
        for line in raw:
            if line.startswith(b">"):
                client.write(line[1:])
            else:
                assert client.process.stdout.readline() == line[1:]
        code, rest, said = client.leave()
    assert (code, rest) == (0, b""), said
    assert not store.exists()


def test_small_results_are_equal_to_those_of_the_upstream(client: Lines) -> None:
    with Lines([sys.executable, UPSTREAM, "serve"]) as direct:
        direct.open("2025-11-25")
        for tool, arguments in (
            ("text", {"size": 10}),
            ("text", {"size": 3_990}),
            ("fail", {"size": 10}),
            ("rows", {"rows": 3}),
            ("media", {"size": 10}),
            ("echo", {"é": [1.5, None, "hold:// not one"]}),
        ):
            assert ask(client, tool, **arguments) == ask(direct, tool, **arguments)
        theirs = direct.ask("tools/list")["tools"]
        ours = client.ask("tools/list")["tools"]
    plain = [{name: part for name, part in tool.items() if name != "outputSchema"} for tool in theirs]
    assert ours[: len(theirs)] == plain
    assert [tool["name"] for tool in ours[len(theirs) :]] == ["read_output", "list_outputs"]
    assert all(tool["inputSchema"]["type"] == "object" and tool["description"] for tool in ours[len(theirs) :])


# --- big results ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_big_result_is_kept_and_can_be_read_back_byte_for_byte(revision: str, store: Path) -> None:
    with Lines(wrapped(store)) as client:
        client.revision = revision
        if revision != MODERN:
            client.open(revision)
        result = ask(client, "text", size=BIG)
        assert len(shown(result)) < BIG / 4
        assert read_back(client, id_in(shown(result))) == words(BIG)
        listed = client.ask("tools/call", {"name": "list_outputs"})
        assert id_in(shown(result)) in shown(listed)
        assert ("resultType" in listed) == (revision == MODERN)


@pytest.mark.parametrize("loose", [False, True])
def test_the_threshold_is_the_one_asked_for_and_equal_is_kept(store: Path, loose: bool) -> None:
    upstream = ("serve", "--loose") if loose else ("serve",)
    with Lines(wrapped(store, *upstream, options=["--threshold", "1000"])) as client:
        assert len(words(1000).encode()) > 1000
        size = max(size for size in range(1000) if len(words(size).encode()) <= 1000)
        assert len(words(size).encode()) == 1000
        assert shown(ask(client, "text", size=size - 1)) == words(size - 1)
        assert shown(ask(client, "text", size=size)).startswith(MASK)


def test_a_failing_result_still_fails(client: Lines) -> None:
    result = ask(client, "fail", size=BIG)
    assert result["isError"] is True
    assert "FAILED test_x" in shown(result)
    assert read_back(client, id_in(shown(result))) == "FAILED test_x\n" + words(BIG)


def test_only_the_big_texts_of_a_result_are_replaced(client: Lines) -> None:
    with Lines([sys.executable, UPSTREAM, "serve"]) as direct:
        original = ask(direct, "media", size=BIG)
    result = ask(client, "media", size=BIG)
    assert read_back(client, id_in(shown(result, 2))) == words(BIG)
    result["content"][2]["text"] = original["content"][2]["text"]
    assert result == original


def test_text_and_structured_content_are_replaced_together(client: Lines) -> None:
    """Several clients show their model the structured content alone."""
    assert not [tool for tool in client.ask("tools/list")["tools"] if "outputSchema" in tool]
    result = ask(client, "rows", rows=1000)
    assert "structuredContent" not in result
    assert json.loads(read_back(client, id_in(shown(result))))["rows"][999]["row"] == 999
    result = ask(client, "wrapped", size=BIG)
    assert "structuredContent" not in result
    assert read_back(client, id_in(shown(result))) == words(BIG)
    small = ask(client, "wrapped", size=10)
    assert small["structuredContent"] == {"result": words(10)}


def test_schemas_can_be_kept_and_then_nothing_of_such_tools_is(store: Path) -> None:
    with opened(wrapped(store, options=["--keep-schemas"])) as client:
        tools = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}
        assert "outputSchema" in tools["wrapped"]
        result = ask(client, "wrapped", size=BIG)
        assert result["structuredContent"] == {"result": words(BIG)}
        assert shown(result) == words(BIG)
        assert shown(ask(client, "text", size=BIG)).startswith(MASK)


def test_results_of_other_methods_are_not_touched(client: Lines) -> None:
    assert client.ask("resources/read", {"uri": "a:b"})["contents"][0]["text"] == words(BIG)


def test_a_batch_is_looked_into(client: Lines) -> None:
    def call(id: int, tool: str, **arguments: object) -> Reply:
        params = {"name": tool, "arguments": arguments}
        return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}

    client.send([call(50, "text", size=BIG), call(51, "text", size=10), call(52, "list_outputs")])
    replies: dict[int, Reply] = {}
    while len(replies) < 3:
        line = client.read()
        replies |= {reply["id"]: reply["result"] for reply in (line if isinstance(line, list) else [line])}
    assert read_back(client, id_in(shown(replies[50]))) == words(BIG)
    assert shown(replies[51]) == words(10)
    assert "1 output" in shown(replies[52]) or "0 outputs" in shown(replies[52])


def test_ten_megabytes(client: Lines) -> None:
    size = 10_000_000
    result = ask(client, "text", size=size)
    assert len(shown(result)) < 10_000
    reference = f"hold://{id_in(shown(result))}"
    again = ask(client, "echo", text=reference)
    assert id_in(shown(again)) != id_in(shown(result))
    with Lines([sys.executable, UPSTREAM, "serve"]) as direct:
        assert shown(ask(direct, "text", size=size)) == words(size)


def test_twenty_calls_at_once(client: Lines) -> None:
    for number in range(20):
        arguments = {"size": BIG + number, "seed": str(number)}
        params = {"name": "text", "arguments": arguments}
        client.send({"jsonrpc": "2.0", "id": f"call-{number}", "method": "tools/call", "params": params})
    replies = {reply["id"]: reply["result"] for reply in (client.read() for _ in range(20))}
    for number in range(20):
        kept = id_in(shown(replies[f"call-{number}"]))
        assert read_back(client, kept) == words(BIG + number, str(number))


# --- our tools, their tools -------------------------------------------------------------------------------------------


def test_a_tool_of_the_upstream_keeps_its_name(store: Path) -> None:
    with Lines(wrapped(store, "serve", "--clash", "--pages")) as client:
        first = client.ask("tools/list")
        second = client.ask("tools/list", {"cursor": first["nextCursor"]})
        names = [tool["name"] for page in (first, second) for tool in page["tools"]]
        assert names[-3:] == ["read_output", "limpet_read_output", "list_outputs"]
        assert shown(ask(client, "read_output")) == "the upstream's own"
        result = ask(client, "text", size=BIG)
        assert "limpet_read_output(id=" in shown(result)
        assert read_back(client, id_in(shown(result)), "limpet_read_output") == words(BIG)


def test_a_wrapper_in_front_of_a_wrapper(store: Path, tmp_path: Path) -> None:
    inner = wrapped(tmp_path / "inner.db")
    command = [*LIMPET, "wrap", *trusted(store), "--", *inner]
    with Lines(command) as client:
        assert "limpet_read_output" in [tool["name"] for tool in client.ask("tools/list")["tools"]]
        result = ask(client, "text", size=BIG)
        assert read_back(client, id_in(shown(result))) == words(BIG)
    with limpet.open(str(store)) as hold:
        assert hold.session().outputs.list().outputs == ()


def test_mistakes_with_our_tools_are_told_to_the_agent(client: Lines) -> None:
    for arguments in ({}, {"id": "../../etc"}, {"id": "0123456789ab"}, {"id": "0123456789ab", "no_such": 1}):
        result = ask(client, "read_output", **arguments)
        assert result["isError"] is True
        assert len(shown(result)) > 20
    result = client.ask("tools/call", {"name": "read_output", "arguments": [1]})
    assert result["isError"] is True


def test_our_tools_understand_an_empty_text_for_what_was_left_out(client: Lines) -> None:
    id = id_in(shown(ask(client, "text", size=BIG)))
    result = ask(client, "read_output", id=id, lines="1-1", query="", match="", path="", cursor="")
    assert not result.get("isError"), shown(result)


# --- references as arguments ------------------------------------------------------------------------------------------


def test_references_become_the_texts_they_stand_for(client: Lines) -> None:
    kept = id_in(shown(ask(client, "text", size=BIG)))
    kept_rows = id_in(shown(ask(client, "rows", rows=500)))
    arguments = {
        "lines": f"hold://{kept}#lines=2-3",
        "deep": [{"value": f"hold://{kept_rows}#/rows/2/row"}, 1.5],
        "inside": f"see hold://{kept}",
    }
    given = json.loads(shown(ask(client, "echo", **arguments)))
    assert given["lines"].rstrip("\n").split("\n") == words(200).split("\n")[1:3]
    assert given["deep"] == [{"value": "2"}, 1.5]
    assert given["inside"] == arguments["inside"]
    whole = shown(ask(client, "echo", all=f"hold://{kept}"))
    assert json.loads(read_back(client, id_in(whole))) == {"all": words(BIG)}


def test_a_reference_to_nothing_is_answered_and_the_upstream_not_called(client: Lines) -> None:
    for reference in ("hold://0123456789ab", "hold://x", "hold://0123456789ab#lines=1-2"):
        result = ask(client, "die", code=1, half=reference)
        assert result["isError"] is True
    assert shown(ask(client, "text", size=5)) == words(5)
