"""A server for the wrapper to stand in front of: one tool that returns a text of the size asked for, new every time."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import big

INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "big", "version": "1"}}
SCHEMA = {"type": "object", "properties": {"size": {"type": "integer"}}}
TOOLS = {"tools": [{"name": "text", "description": "A text.", "inputSchema": SCHEMA}]}


def _turns(text: str) -> list[str]:
    """The text begun at several places: a result has little in common with the one before it, line by line."""
    places = [text.index("\n", len(text) * part // 4) + 1 for part in range(4)]
    return [text[place:] + text[:place] for place in places]


def main() -> None:
    texts = {size: _turns(big.text("log", size)) if size else ["done"] for size in (0, big.MB, 10 * big.MB)}
    number = 0
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        answer: object = INFO if asked["method"] == "initialize" else TOOLS
        if asked["method"] == "tools/call":
            number += 1
            several = texts[asked["params"]["arguments"]["size"]]
            text = f"{several[number % len(several)]}{number}"
            answer = {"content": [{"type": "text", "text": text}], "isError": False}
        reply = {"jsonrpc": "2.0", "id": asked["id"], "result": answer}
        sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
