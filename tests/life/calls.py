"""A program that uses the library, for composed stories: one line of JSON for each call that it was asked for.

It reads {"folder", "clock", "calls": [[operation, arguments, session], …]} and prints each answer as soon as it has it,
so that whoever kills it knows what was acknowledged. `clock` is in seconds, added to that of the machine. The call
"say" is a turn of a conversation: [request, answer]. "read_all" reads an output page by page, to its end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import limpet
from limpet.window.messages import assistant, user

WINDOW_TOKENS = 6_000
PAGES = 10_000


def say(session: limpet.Session, request: str, answer: str) -> dict[str, Any]:
    """One turn of a loop that keeps its messages in the session's window; it resumes what is there."""
    talk = session.window.messages()
    talk.append(user(request))
    session.window.next(talk, limit=WINDOW_TOKENS)
    talk.append(assistant(answer))
    session.window.next(talk, limit=WINDOW_TOKENS)
    return {"messages": len(talk)}


def read_all(memory: limpet.Limpet, id: str) -> dict[str, Any]:
    pages, given = [], {"id": id, "chars": "0-"}
    for _ in range(PAGES):
        answer = memory.call("read_output", given)
        pages.append(answer["content"])
        if not answer.get("cursor"):
            break
        given = {"id": id, "cursor": answer["cursor"]}
    return {"content": "".join(pages), "pages": len(pages)}


def main() -> None:
    asked = json.load(sys.stdin)
    ahead = int(asked["clock"] * 1_000)
    with limpet.open(folder=asked["folder"], clock=lambda: time.time_ns() // 1_000_000 + ahead) as memory:
        for name, arguments, session in asked["calls"]:
            try:
                if name == "say":
                    answer: dict[str, Any] = {"values": say(memory.session(session), *arguments)}
                elif name == "read_all":
                    answer = {"values": read_all(memory, **arguments)}
                else:
                    answer = {"values": memory.call(name, arguments, session=session or None)}
            except limpet.LimpetError as problem:
                answer = {"refused": problem.message}
            os.write(1, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
