"""`holdfast wrap` as a process between a client and a scripted server: what passes, what is kept, and how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import holdfast
from doors.mcp_client import MODERN, REVISIONS, Lines, Reply, hello, meta
from doors.upstream import words

UPSTREAM = str(Path(__file__).with_name("upstream.py"))
BIG = 20_000
MASK = "📁 Output cached: "


def wrapped(store: str | Path, *upstream: str, options: Sequence[str] = ()) -> list[str]:
    ours = [sys.executable, "-m", "holdfast", "wrap", "--store", str(store), *options, "--"]
    return [*ours, sys.executable, UPSTREAM, *(upstream or ("serve",))]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


@pytest.fixture
def client(store: Path) -> Iterator[Lines]:
    with Lines(wrapped(store)) as lines:
        lines.open("2025-11-25")
        yield lines


def ask(client: Lines, tool: str, **arguments: object) -> Reply:
    return client.ask("tools/call", {"name": tool, "arguments": arguments})


def shown(result: Reply, item: int = 0) -> str:
    text: str = result["content"][item]["text"]
    return text


def id_in(text: str) -> str:
    assert text.startswith(MASK), text[:200]
    return text.removeprefix(MASK).split()[0]


def read_back(client: Lines, id: str, tool: str = "scratchpad_read") -> str:
    """All of an output, page by page."""
    pages: list[str] = []
    more: Mapping[str, object] = {}
    while True:
        page = client.call(tool, id=id, **more)
        pages.append(page["content"])
        if not page.get("cursor"):
            return "".join(pages)
        more = {"cursor": page["cursor"]}


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
    '<{"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"\\ud800 half"}],"deep":' + "[" * 3000 + "\r",
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
    assert ours[: len(theirs)] == theirs
    assert [tool["name"] for tool in ours[len(theirs) :]] == ["scratchpad_read", "scratchpad_list"]
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
        listed = client.ask("tools/call", {"name": "scratchpad_list"})
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


def test_structured_content_stays_what_the_schema_says(client: Lines) -> None:
    client.ask("tools/list")
    result = ask(client, "rows", rows=1000)
    assert result["structuredContent"]["rows"][999]["row"] == 999
    assert json.loads(read_back(client, id_in(shown(result)))) == result["structuredContent"]
    result = ask(client, "wrapped", size=BIG)
    assert result["structuredContent"] == {"result": shown(result)}
    assert read_back(client, id_in(shown(result))) == words(BIG)


def test_structured_content_of_an_unknown_tool_is_not_touched(client: Lines) -> None:
    result = ask(client, "wrapped", size=BIG)
    assert result["structuredContent"] == {"result": words(BIG)}
    assert shown(result).startswith(MASK)


def test_results_of_other_methods_are_not_touched(client: Lines) -> None:
    assert client.ask("resources/read", {"uri": "a:b"})["contents"][0]["text"] == words(BIG)


def test_a_batch_is_looked_into(client: Lines) -> None:
    def call(id: int, tool: str, **arguments: object) -> Reply:
        params = {"name": tool, "arguments": arguments}
        return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}

    client.send([call(50, "text", size=BIG), call(51, "text", size=10), call(52, "scratchpad_list")])
    replies: dict[int, Reply] = {}
    while len(replies) < 3:
        line = client.read()
        replies |= {reply["id"]: reply["result"] for reply in (line if isinstance(line, list) else [line])}
    assert read_back(client, id_in(shown(replies[50]))) == words(BIG)
    assert shown(replies[51]) == words(10)
    assert "entries" in shown(replies[52])


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
        assert names[-3:] == ["scratchpad_read", "holdfast_scratchpad_read", "scratchpad_list"]
        assert shown(ask(client, "scratchpad_read")) == "the upstream's own"
        result = ask(client, "text", size=BIG)
        assert "holdfast_scratchpad_read(id=" in shown(result)
        assert read_back(client, id_in(shown(result)), "holdfast_scratchpad_read") == words(BIG)


def test_a_wrapper_in_front_of_a_wrapper(store: Path, tmp_path: Path) -> None:
    inner = wrapped(tmp_path / "inner.db")
    command = [sys.executable, "-m", "holdfast", "wrap", "--store", str(store), "--", *inner]
    with Lines(command) as client:
        assert "holdfast_scratchpad_read" in [tool["name"] for tool in client.ask("tools/list")["tools"]]
        result = ask(client, "text", size=BIG)
        assert read_back(client, id_in(shown(result))) == words(BIG)
    assert not store.exists()


def test_mistakes_with_our_tools_are_told_to_the_agent(client: Lines) -> None:
    for arguments in ({}, {"id": "../../etc"}, {"id": "0123456789ab"}, {"id": "0123456789ab", "no_such": 1}):
        result = ask(client, "scratchpad_read", **arguments)
        assert result["isError"] is True
        assert len(shown(result)) > 20
    result = client.ask("tools/call", {"name": "scratchpad_read", "arguments": [1]})
    assert result["isError"] is True


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


# --- when something of ours fails -------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", ["not a database", "a directory", "no such directory", "no such server"])
def test_with_a_store_in_trouble_the_originals_pass(trouble: str, tmp_path: Path) -> None:
    place = str(tmp_path / "place")
    if trouble == "not a database":
        Path(place).write_bytes(b"this is not a database, it is a letter" * 100)
    elif trouble == "a directory":
        Path(place).mkdir()
    elif trouble == "no such server":
        place = "mysql://nowhere"
    else:
        Path(place).write_bytes(b"")
        place = f"{place}/below/a/file.db"
    with Lines(wrapped(place)) as client, Lines([sys.executable, UPSTREAM, "serve"]) as direct:
        for lines in (client, direct):
            lines.open("2025-11-25")
        for tool in ("text", "fail", "wrapped", "media"):
            assert client.raw("tools/call", {"name": tool, "arguments": {"size": BIG}}) == direct.raw(
                "tools/call", {"name": tool, "arguments": {"size": BIG}}
            )
        assert "scratchpad_read" in [tool["name"] for tool in client.ask("tools/list")["tools"]]
        assert ask(client, "scratchpad_list")["isError"] is True
        code, _, said = client.leave()
    assert code == 0
    assert said.count(b"holdfast wrap: ") == 4, said
    assert b"Traceback" not in said


def test_a_bad_setting_does_not_keep_the_upstream_from_working(store: Path) -> None:
    with Lines(wrapped(store), env={"HOLDFAST_OUTPUTS_THRESHOLD_BYTES": "many"}) as client:
        assert shown(ask(client, "text", size=BIG)) == words(BIG)
        assert b"threshold_bytes" in client.leave()[2]


def test_outputs_that_are_switched_off_pass(store: Path, tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    (tmp_path / ".holdfast" / "config.toml").write_text("[outputs]\nenabled = false\n")
    # The settings are those of the folder the client starts us in.
    command = ["sh", "-c", 'cd "$0" && exec "$@"', str(tmp_path), *wrapped(store)]
    with Lines(command) as client:
        assert shown(ask(client, "text", size=BIG)) == words(BIG)


@pytest.mark.slow
def test_a_store_that_hangs_delays_only_what_was_to_be_kept(store: Path) -> None:
    holdfast.open(str(store)).close()
    with open(f"{store}.lock", "rb+") as lock, Lines(wrapped(store)) as client:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begun = time.monotonic()
        params = {"name": "text", "arguments": {"size": BIG}}
        client.send({"jsonrpc": "2.0", "id": "big", "method": "tools/call", "params": params})
        assert shown(ask(client, "text", size=5)) == words(5)
        assert time.monotonic() - begun < 5
        assert shown(client.read()["result"]) == words(BIG)
        # From now on the store is known to hang, and nobody waits for it as long again.
        begun = time.monotonic()
        assert shown(ask(client, "text", size=BIG)) == words(BIG)
        assert time.monotonic() - begun < 5
        fcntl.flock(lock, fcntl.LOCK_UN)
        time.sleep(2)
        assert shown(ask(client, "text", size=BIG)).startswith(MASK)


def test_without_room_on_the_disk_the_originals_pass(store: Path) -> None:
    holdfast.open(str(store)).close()
    noise = random.Random(7).randbytes(1_000_000).hex()
    # A limit on the size of files stands in for the full disk: the write fails in the same place.
    with Lines(["sh", "-c", 'ulimit -f 700; exec "$@"', "sh", *wrapped(store)]) as client:
        assert json.loads(shown(ask(client, "echo", noise=noise))) == {"noise": noise}
        assert shown(ask(client, "text", size=5)) == words(5)
        code, _, said = client.leave()
    assert code == 0
    assert b"holdfast wrap: " in said
    assert b"Traceback" not in said
    with holdfast.open(str(store)) as hold:
        assert all(finding.ok for finding in hold.check())


@pytest.mark.slow
def test_sixty_four_megabytes_and_more(client: Lines) -> None:
    most = 64 << 20
    size = most - len(words(most).encode()) + most  # characters of two bytes make the text longer than it looks
    kept = id_in(shown(ask(client, "text", size=size - 1_000_000)))
    assert client.call("scratchpad_read", id=kept, lines="1-1")["content"].startswith("line of text")
    assert shown(ask(client, "text", size=most)) == words(most)


def test_a_wrapper_that_is_killed_takes_its_upstream_with_it(client: Lines) -> None:
    pid = json.loads(shown(ask(client, "pid")))
    params = {"name": "slow", "arguments": {"steps": 1, "pause": 60}}
    client.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
    assert client.read()["method"] == "notifications/progress"
    client.process.kill()
    begun = time.monotonic()
    while Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() - begun < 10
        time.sleep(0.05)


# --- time, ends and signals -------------------------------------------------------------------------------------------


def test_progress_and_cancellation_reach_the_other_side(client: Lines) -> None:
    params = {"name": "slow", "arguments": {"steps": 1000, "pause": 0.05}, "_meta": {"progressToken": 70}}
    client.send({"jsonrpc": "2.0", "id": 70, "method": "tools/call", "params": params})
    for step in range(3):
        assert client.read()["params"] == {"progressToken": 70, "progress": step}
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 70}})
    client.send({"jsonrpc": "2.0", "id": 71, "method": "tools/call", "params": {"name": "cancelled"}})
    while (reply := client.read()).get("id") != 71:
        assert reply["method"] == "notifications/progress"
    assert json.loads(shown(reply["result"])) == [70]


def test_progress_passes_while_a_result_is_being_kept(client: Lines) -> None:
    ask(client, "text", size=BIG)
    slow = {"name": "slow", "arguments": {"steps": 60, "pause": 0.01}}
    big = {"name": "text", "arguments": {"size": 8_000_000}}
    client.send({"jsonrpc": "2.0", "id": 80, "method": "tools/call", "params": slow})
    client.send({"jsonrpc": "2.0", "id": 81, "method": "tools/call", "params": big})
    seen: list[int | None] = []
    while seen.count(80) + seen.count(81) < 2:
        seen.append(client.read().get("id"))
    assert sorted(id for id in seen if id) == [80, 81]
    assert seen.count(None) == 60


@pytest.mark.parametrize(("how", "code", "word"), [({}, 137, "signal 9"), ({"code": 3}, 3, "exit code 3")])
def test_an_upstream_that_dies_leaves_no_call_unanswered(client: Lines, how: Reply, code: int, word: str) -> None:
    slow = {"name": "slow", "arguments": {"steps": 1, "pause": 60}}
    client.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": slow})
    assert client.read()["method"] == "notifications/progress"
    client.send({"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": {"name": "die", "arguments": how}})
    replies = [client.read(), client.read()]
    assert {reply["id"] for reply in replies} == {"slow", 90}
    assert all(word in reply["error"]["message"] for reply in replies)
    assert client.process.wait(10) == code


def test_half_a_message_of_a_dying_upstream_stays_on_its_own_line(client: Lines) -> None:
    params = {"name": "die", "arguments": {"half": '{"jsonrpc":"2.0","id":91,"resu'}}
    client.send({"jsonrpc": "2.0", "id": 91, "method": "tools/call", "params": params})
    assert client.process.stdout is not None
    assert client.process.stdout.readline() == b'{"jsonrpc":"2.0","id":91,"resu\n'
    assert client.read()["error"]["code"] == -32000
    assert client.process.wait(10) == 137


def test_the_exit_code_is_that_of_the_upstream(store: Path) -> None:
    with Lines(wrapped(store, "serve", "--seven")) as client:
        assert client.leave()[0] == 7


def test_what_was_asked_before_the_client_closed_is_answered(store: Path) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "text", "arguments": {"size": BIG}}}
        for number in range(3)
    ]
    # This server ends as soon as its input does, so it is given a second to answer first.
    script = "; ".join(f"echo '{json.dumps(call)}'" for call in calls)
    command = ["sh", "-c", f'({script}; sleep 1) | "$@"', "sh", *wrapped(store)]
    done = subprocess.run(command, capture_output=True, timeout=30, check=True)
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == [0, 1, 2]


def upstream_script(text: str) -> list[str]:
    return [sys.executable, "-c", text]


STUBBORN = "import signal, sys, time; signal.signal(15, signal.SIG_IGN); print('{}', flush=True); time.sleep(600)"
POLITE = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(5)); print('{}', flush=True); time.sleep(600)"


@pytest.mark.parametrize(("script", "code"), [(STUBBORN, 137), (POLITE, 5)])
def test_an_upstream_that_does_not_end_is_ended(script: str, code: int, store: Path) -> None:
    with Lines([*wrapped(store)[:-3], *upstream_script(script)]) as client:
        assert client.read() == {}
        begun = time.monotonic()
        assert client.leave()[0] == code
        assert time.monotonic() - begun < 12


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_handed_on(which: int, store: Path) -> None:
    script = f"import signal, sys, time; signal.signal({int(which)}, lambda *_: sys.exit(6)); print('{{}}', flush=True)"
    command = [*wrapped(store)[:-3], *upstream_script(f"{script}; time.sleep(600)")]
    with Lines(command) as client:
        assert client.read() == {}
        client.process.send_signal(which)
        assert client.process.wait(10) == 6


def test_a_launcher_that_ends_does_not_end_the_server(store: Path) -> None:
    inner = f"{sys.executable} {UPSTREAM} serve"
    command = [*wrapped(store)[:-3], "sh", "-c", f"exec 3<&0; {inner} <&3 & sleep 0.2"]
    with Lines(command) as client:
        time.sleep(1)
        assert shown(ask(client, "text", size=5)) == words(5)


def test_the_environment_is_the_clients_without_ours(store: Path) -> None:
    given = {"PATH": os.environ["PATH"], "HOLDFAST_TOKEN": "t", "HOLDFAST_STORE": str(store), "MINE": "é", "LANG": "C"}
    bare = ["env", "-i", *(f"{name}={value}" for name, value in given.items())]
    with Lines([*bare, *wrapped(store)]) as client:
        seen: dict[str, Any] = json.loads(shown(client.ask("tools/call", {"name": "environment"})))
    with Lines([*bare, sys.executable, UPSTREAM, "serve"]) as direct:
        there: dict[str, Any] = json.loads(shown(direct.ask("tools/call", {"name": "environment"})))
    assert seen == {name: value for name, value in there.items() if not name.startswith("HOLDFAST_")}
    assert seen["MINE"] == "é"


def test_secrets_are_masked_before_they_are_kept(client: Lines, store: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    result = ask(client, "echo", a=f"{words(BIG)} token {secret} end")
    assert secret not in read_back(client, id_in(shown(result)))
    assert client.leave()[0] == 0
    assert not [path for path in store.parent.iterdir() if secret.encode() in path.read_bytes()]


def test_a_command_that_cannot_be_started_is_named(store: Path) -> None:
    command = [*wrapped(store)[:-3], "no-such-command-anywhere"]
    done = subprocess.run(command, capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert b"no-such-command-anywhere" in done.stderr
    assert done.stdout == b""


@pytest.mark.parametrize("args", [["wrap"], ["wrap", "--"], ["wrap", "--threshold", "x", "--", "cat"]])
def test_a_command_line_that_is_not_complete_is_refused(args: list[str]) -> None:
    command = [sys.executable, "-m", "holdfast", *args]
    done = subprocess.run(command, capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stderr


@pytest.mark.parametrize("args", [["--json", "wrap", "--", "cat"], ["wrap", "--threshold=5000", "cat"]])
def test_click_knows_the_command_too(args: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", *args]
    done = subprocess.run(command, capture_output=True, timeout=20, check=True, input=b"hello\n", cwd=tmp_path)
    assert done.stdout == b"hello\n"
