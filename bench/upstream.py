"""A server for the wrapper to stand in front of: one tool that returns a text of the size asked for, new every time."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import big

INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "big", "version": "1"}}
SCHEMA = {"type": "object", "properties": {"size": {"type": "integer"}}}
TOOLS = {"tools": [{"name": "text", "description": "A text.", "inputSchema": SCHEMA}]}


def main() -> None:
    texts = {size: big.text("log", size) if size else "done" for size in (0, big.MB, 10 * big.MB)}
    number = 0
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        answer: object = INFO if asked["method"] == "initialize" else TOOLS
        if asked["method"] == "tools/call":
            number += 1
            text = f"{texts[asked['params']['arguments']['size']]}{number}"
            answer = {"content": [{"type": "text", "text": text}], "isError": False}
        reply = {"jsonrpc": "2.0", "id": asked["id"], "result": answer}
        sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
