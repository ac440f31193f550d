"""The floor for the stdio server: the least standard-library program that answers the same calls, keeping nothing."""

import json
import sys

PAD = {"content": "", "version": 0, "updated_at": None}
TOOLS = [
    {"name": name, "description": "A tool.", "inputSchema": {"type": "object", "properties": {}}}
    for name in ("add_note", "search_notes", "read_notepad", "write_notepad")
]
INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "loop", "version": "1"}}


def answer(method: str) -> object:
    if method == "initialize":
        return INFO
    if method == "tools/list":
        return {"tools": TOOLS}
    return {"content": [{"type": "text", "text": json.dumps(PAD)}], "structuredContent": PAD, "isError": False}


def main() -> None:
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if "id" in asked:
            reply = {"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked["method"])}
            sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
