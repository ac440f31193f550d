"""`python -m bench.precision_adapter PORT [--without-aliases]`: Limpet behind the harness of PrecisionMemBench.

The harness (tenurehq/precisionMemBench, to be had there with its data) talks to four routes. Every belief is a note
with its scope, name and aliases for tags; every question is one call: the notes of the scope with a tag that it names.
Without aliases every question is a call of `recall` in the scope.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import limpet

ALIASES = "--without-aliases" not in sys.argv
MOST_TAGS, MOST_WORDS = 10, 4  # of a note, of a tag


def _names(text: str) -> list[str]:
    """What a text may name: up to so many neighbouring words."""
    words = re.findall(r"[\w+#]+(?:\.\w+)*", text.lower().replace("-", " ").replace("_", " "))
    return [" ".join(words[at : at + n]) for n in range(1, MOST_WORDS + 1) for at in range(len(words) - n + 1)]


class Beliefs:
    def __init__(self) -> None:
        folder = tempfile.mkdtemp()
        self.hold = limpet.open(f"{folder}/limpet.db", project="nobody", folder=folder)
        self.ids: dict[tuple[str, str], str] = {}  # the note of each user's belief

    def add(self, body: dict[str, Any]) -> dict[str, Any]:
        text, belief, user = body["text"], body["metadata"]["beliefId"], body["user_id"]
        for alias in () if ALIASES else body.get("aliases") or ():
            text = text.replace(f" {alias} ", " ", 1)
        aliases = [text.partition(" ")[0].replace("_", " "), *(body.get("aliases") or ())] if ALIASES else []
        tags = [body["metadata"]["scope"], *(alias.lower().replace("-", " ") for alias in aliases)][:MOST_TAGS]
        again = {"id": self.ids[user, belief]} if (user, belief) in self.ids else {}
        note = {"content": text, "tags": tags, **again}
        hold = self.hold.elsewhere(self.hold.scope._replace(project=user))
        self.ids[user, belief] = hold.call("update_note" if again else "add_note", note, session=belief)["note_id"]
        return {"ok": True}

    def search(self, body: dict[str, Any]) -> dict[str, Any]:
        user, scope = body["user_id"], body.get("scope")
        hold, which = self.hold.elsewhere(self.hold.scope._replace(project=user)), {"tags": [scope]} if scope else {}
        if ALIASES:
            arguments = {**which, "tags_any": _names(body["query"])[:900], "limit": body["limit"]}
            keys = [(note["id"], note["content"]) for note in hold.call("search_notes", arguments)["notes"]]
        else:
            arguments = {**which, "query": body["query"], "kinds": ["notes"], "limit": min(50, body["limit"])}
            keys = [(hit["id"], hit["text"]) for hit in hold.call("recall", arguments)["hits"]]
        beliefs = {note: belief for (owner, belief), note in self.ids.items() if owner == user}
        return {"results": [{"id": beliefs[key], "memory": text} for key, text in keys]}


BELIEFS = [Beliefs()]


class Handler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if self.path == "/reset":
            BELIEFS[0] = Beliefs()
        answer = {"/add": BELIEFS[0].add, "/update": BELIEFS[0].add, "/search": BELIEFS[0].search}.get(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer(body) if answer else {"ok": True}).encode())

    do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the names of http.server


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
