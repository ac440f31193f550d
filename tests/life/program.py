"""An agent loop that uses the library, as a program: python program.py FOLDER SESSION FIRST LAST.

It resumes the session, has a conversation of the given turns in a small window, and prints what was said as JSON.
"""

from __future__ import annotations

import json
import sys

import limpet
from limpet.window.messages import assistant, user

WINDOW_TOKENS = 4_000


def main(folder: str, name: str, first: int, last: int) -> None:
    said: list[str] = []
    with limpet.open(folder=folder) as memory:
        session = memory.session(name)
        talk = session.window.messages()
        for turn in range(first, last):
            said += [f"Request {turn}: port rule {turn}. " * 40, f"Answer {turn}: rule {turn} is ported. " * 40]
            talk.append(user(said[-2]))
            session.window.next(talk, limit=WINDOW_TOKENS)
            talk.append(assistant(said[-1]))
        session.window.next(talk, limit=WINDOW_TOKENS)
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
