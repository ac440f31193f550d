"""A scripted MCP server on stdio for the tests of `limpet wrap`. Standard library only; run it as a program.

`upstream.py replay FILE` plays a recorded stream: lines that begin with ">" must come in exactly so, lines that begin
with "<" go out. `upstream.py serve [--clash] [--pages] [--loose] [CHANGES.json]` has tools that do what their arguments
say; what stands in the file is put over their definitions at every listing. `--as NAME` gives it more than tools.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

Json = dict[str, Any]
WRITING = threading.Lock()
CANCELLED: list[Any] = []
REPLIES: dict[Any, SimpleQueue[Json]] = {}
NOTICES: list[Json] = []
NAME = sys.argv[sys.argv.index("--as") + 1] if "--as" in sys.argv else ""
LOOSE = "--loose" in sys.argv


def send(message: object) -> None:
    # Loose: as no library writes it, though it is JSON. The other way is that of the official TypeScript SDK.
    line = json.dumps(message, indent=None, separators=(" , ", " : ")) if LOOSE else json.dumps(message)
    with WRITING:
        sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.buffer.flush()


def replay(path: str) -> int:
    with open(path, "rb") as file:
        script = file.read().splitlines(keepends=True)
    for number, line in enumerate(script, 1):
        if line.startswith(b"<"):
            sys.stdout.buffer.write(line[1:])
            sys.stdout.buffer.flush()
        elif (got := sys.stdin.buffer.readline()) != line[1:]:
            sys.stderr.write(f"line {number}: expected {line[1:]!r}, got {got!r}\n")
            return 3
    return 0 if not sys.stdin.buffer.read() else 4


def words(size: int, seed: str = "") -> str:
    """A text of exactly so many characters, another one for each seed."""
    line = f'line of {seed or "text"} with "quotes", a \\ and é\n'
    return (line * (size // len(line) + 1))[:size]


def text(content: str, **more: Any) -> Json:
    return {"content": [{"type": "text", "text": content}], **more}


def tool_text(a: Json, _id: object) -> Json:
    return text(words(a["size"], a.get("seed", "")))


def tool_fail(a: Json, _id: object) -> Json:
    return text("FAILED test_x\n" + words(a["size"]), isError=True)


def tool_rows(a: Json, _id: object) -> Json:
    rows = [{"row": number, "name": "n" * 20} for number in range(a["rows"])]
    return text(json.dumps({"rows": rows}), structuredContent={"rows": rows})


def tool_wrapped(a: Json, _id: object) -> Json:
    """As FastMCP does with a tool that returns a string."""
    return text(words(a["size"]), structuredContent={"result": words(a["size"])})


def tool_media(a: Json, _id: object) -> Json:
    big = "A" * a["size"]
    resource = {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": big}}
    return {
        "content": [
            {"type": "image", "data": big, "mimeType": "image/png"},
            {"type": "text", "text": "small"},
            {"type": "text", "text": words(a["size"]), "annotations": {"audience": ["user"], "priority": 1.0}},
            resource,
        ],
        "_meta": {"big": 12345678901234567890, "exact": 0.1},
    }


def tool_two(a: Json, _id: object) -> Json:
    """Two texts in one result, much alike."""
    return {"content": [{"type": "text", "text": words(a["size"]) + f"\npart {number}\n"} for number in (1, 2)]}


def tool_echo(a: Json, _id: object) -> Json:
    return text(json.dumps(a))


def tool_environment(_a: Json, _id: object) -> Json:
    return text(json.dumps(dict(os.environ)))


def tool_pid(_a: Json, _id: object) -> Json:
    return text(str(os.getpid()))


def tool_slow(a: Json, id: object) -> Json | None:
    for step in range(a["steps"]):
        if id in CANCELLED:
            return None
        send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": id, "progress": step}})
        time.sleep(a["pause"])
    return text(words(a.get("size", 10)))


def tool_cancelled(_a: Json, _id: object) -> Json:
    return text(json.dumps(CANCELLED))


def tool_die(a: Json, _id: object) -> Json:
    sys.stdout.buffer.write(a.get("half", "").encode())
    sys.stdout.buffer.flush()
    if "code" in a:
        os._exit(a["code"])
    os.kill(os.getpid(), 9)
    return {}


def tool_ask(_a: Json, _id: object) -> Json:
    """Ask the client something, with the same id whichever server this is; tell its answer."""
    REPLIES[1] = SimpleQueue()
    params = {"message": f"{NAME}?", "_meta": {"progressToken": 5}}
    send({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params})
    return text(json.dumps([REPLIES[1].get(), NOTICES]))


def tool_need(_a: Json, _id: object) -> Json:
    """As a server of 2026-07-28 asks the client something: the client calls again with the answer."""
    wanted = {"method": "elicitation/create", "params": {"message": f"{NAME}?", "requestedSchema": {"type": "object"}}}
    return {"resultType": "input_required", "inputRequests": {"who": wanted}, "requestState": "kept"}


def tool_take_back(_a: Json, _id: object) -> Json:
    send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    return text("taken back")


def tool_notify(a: Json, _id: object) -> Json:
    send({"jsonrpc": "2.0", "method": a["method"], "params": a.get("params", {})})
    return text("notified")


def tool_raw(a: Json, _id: object) -> Json:
    with WRITING:
        sys.stdout.buffer.write(a["line"].encode() + b"\n")
        sys.stdout.buffer.flush()
    return text("written")


def tool_flood(a: Json, id: object) -> None:
    """Answer with a line of any size: a beginning, something many times over, and an end."""
    block = a["unit"].encode() * 65_536
    size = len(a["unit"])
    with WRITING:
        sys.stdout.buffer.write(a["before"].replace("ID", json.dumps(id)).encode())
        for _ in range(a["count"] // 65_536):
            sys.stdout.buffer.write(block)
        sys.stdout.buffer.write(block[: a["count"] % 65_536 * size])
        sys.stdout.buffer.write(a["after"].replace("ID", json.dumps(id)).encode() + b"\n")
        sys.stdout.buffer.flush()


def tool_read_output(_a: Json, _id: object) -> Json:
    return text("the upstream's own")


Tool = Callable[[Json, object], Json | None]
TOOLS: dict[str, Tool] = {name[5:]: tool for name, tool in list(globals().items()) if name.startswith("tool_")}
STRING: Json = {
    "type": "object",
    "properties": {"result": {"type": "string", "title": "Result"}},
    "required": ["result"],
}
ROWS: Json = {"type": "object", "properties": {"rows": {"type": "array"}}, "required": ["rows"]}


def listed(cursor: object) -> Json:
    names = [name for name in TOOLS if name != "read_output" or "--clash" in sys.argv]
    tools: list[Json] = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    for tool in tools:
        if tool["name"] in ("rows", "wrapped"):
            tool["outputSchema"] = ROWS if tool["name"] == "rows" else STRING
    changes = next((word for word in sys.argv if word.endswith(".json")), None)
    if changes and os.path.exists(changes):
        with open(changes, encoding="utf-8") as file:
            wanted: dict[str, Json] = json.load(file)
        known = {tool["name"]: tool for tool in tools}
        tools = [*({**tool, **wanted.get(name, {})} for name, tool in known.items())]
        tools += [{"name": name, **tool} for name, tool in wanted.items() if name not in known]
    if "--pages" not in sys.argv:
        return {"tools": tools}
    return {"tools": tools[3:]} if cursor == "more" else {"tools": tools[:3], "nextCursor": "more"}


def refusal(message: Json) -> Json | None:
    """Why a server of one era alone does not take a request; None if it does."""
    meta = (message.get("params") or {}).get("_meta", {})
    own = [key for key in meta if key.startswith("io.modelcontextprotocol/")]
    if "--modern" in sys.argv and len(own) < 3:
        return {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2026-07-28"]}}
    if "--old" in sys.argv and (own or message["method"] == "server/discover"):
        return {"code": -32601, "message": f"Method not found: {message['method']}, with {own}"}
    return None


def welcome(method: str, params: Json) -> Json | None:
    named: Json = {"prompts": {}, "resources": {}, "completions": {}, "logging": {}} if NAME else {}
    can: Json = {"tools": {}, **named}
    told = {"instructions": f"Instructions of {NAME}."} if NAME else {}
    if method == "initialize":
        info = {"name": "upstream", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": can, "serverInfo": info, **told}
    if "--modern" not in sys.argv:
        return None  # as a server that leaves what it does not know unanswered
    return {"supportedVersions": ["2026-07-28"], "capabilities": can, **told}


def answer(message: Json) -> Json | None:
    params = message.get("params") or {}
    if message["method"] in ("initialize", "server/discover"):
        return welcome(message["method"], params)
    if NAME and message["method"] in NAMED:
        return NAMED[message["method"]](params)
    if message["method"] == "tools/list":
        return listed(params.get("cursor"))
    if message["method"] == "resources/read":
        return {"contents": [{"uri": "a:b", "text": words(20_000)}]}
    if "inputResponses" in params:
        return text(json.dumps([params["inputResponses"], params["requestState"]]))
    return TOOLS[params["name"]](params.get("arguments") or {}, message["id"])


NAMED: dict[str, Callable[[Json], Json]] = {
    "prompts/list": lambda _: {"prompts": [{"name": "p", "description": NAME}, {"name": "no good"}]},
    "prompts/get": lambda a: {
        "messages": [{"role": "user", "content": {"type": "text", "text": f"{NAME} {a['name']}"}}]
    },
    "resources/list": lambda _: {
        "resources": [{"uri": f"data://{NAME}", "name": "n"}, {"uri": "data://both", "name": "b"}]
    },
    "resources/templates/list": lambda _: {"resourceTemplates": [{"uriTemplate": f"x://{NAME}/{{id}}", "name": "t"}]},
    "resources/read": lambda a: {"contents": [{"uri": a["uri"], "text": f"{NAME} {a['uri']}"}]},
    "resources/subscribe": lambda _: {"by": NAME},
    "completion/complete": lambda a: {"completion": {"values": [NAME, json.dumps(a["ref"])]}},
    "logging/setLevel": lambda _: {},
}


def respond(message: Json) -> None:
    if (problem := refusal(message)) is not None:
        send({"error": problem, "jsonrpc": "2.0", "id": message["id"]})
        return
    result = answer(message)
    if result is not None and "--modern" in sys.argv:
        result = {"resultType": "complete", "ttlMs": 5_000, "cacheScope": "public"} | result
    if result is not None:
        send({"result": result, "jsonrpc": "2.0", "id": message["id"]})


def serve() -> int:
    for line in sys.stdin.buffer:
        value = json.loads(line)
        if isinstance(value, list):
            send([{"jsonrpc": "2.0", "id": one["id"], "result": answer(one)} for one in value if "id" in one])
        elif value.get("method") == "notifications/cancelled":
            CANCELLED.append(value["params"]["requestId"])
        elif "method" not in value and value.get("id") in REPLIES:
            REPLIES[value["id"]].put(value)
        elif "id" not in value:
            NOTICES.append(value)
        elif "id" in value and "method" in value:
            threading.Thread(target=respond, args=(value,), daemon=True).start()
    return 7 if "--seven" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(replay(sys.argv[2]) if sys.argv[1] == "replay" else serve())
