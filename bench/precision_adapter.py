"""`python -m bench.precision_adapter PORT [--without-aliases]`: Limpet behind the harness of PrecisionMemBench.

The harness (tenurehq/precisionMemBench, to be had there with its data) talks to four routes. Every belief is a note in
the project of its user and scope, with its name and aliases for tags or, without aliases, its name alone. Every
question is a prompt there, answered with what unasked recall shows: what clearly fits, at most three. Where the answer
to a write remarks that the text tells of the past, it is marked as done, as the remark says.
"""

from __future__ import annotations

import json
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import limpet
from limpet.api import Limpet
from limpet.memory import gate
from limpet.recall import unasked

ALIASES = "--without-aliases" not in sys.argv
MOST_TAGS = 10  # of a note


class Beliefs:
    def __init__(self) -> None:
        folder = tempfile.mkdtemp()
        self.hold = limpet.open(f"{folder}/limpet.db", project="nobody", folder=folder)
        self.notes: dict[tuple[str, str], tuple[Limpet, str]] = {}  # the project and the note of each user's belief
        self.asked = 0

    def add(self, body: dict[str, Any]) -> dict[str, Any]:
        text, belief, user = body["text"], body["metadata"]["beliefId"], body["user_id"]
        aliases = body.get("aliases") or []
        for alias in aliases:
            text = text.replace(f" {alias} ", " ", 1)  # the harness puts them before the text as well
        name, _, content = text.partition(" ")
        name = name.replace("_", " ")
        tags = [name, *aliases][:MOST_TAGS] if ALIASES else []
        project, note = self.notes.get((user, belief)) or (self._project(user, body["metadata"].get("scope")), "")
        if note:
            project.call("update_note", {"id": note, "content": f"{name}: {content}"}, session=belief)
        else:
            added = project.call("add_note", {"content": f"{name}: {content}", "tags": tags}, session=belief)
            note = added["note_id"]
            if added.get("remark") == gate.PAST:  # the answer says what to do with a text about the past
                project.call("update_note", {"id": note, "done": True}, session=belief)
        self.notes[user, belief] = project, note
        return {"ok": True}

    def search(self, body: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1  # each question in a session of its own, so that nothing was shown before
        asking = self._project(body["user_id"], body.get("scope")).context(f"question {self.asked}")
        shown = unasked.unasked(asking, body["query"]).entries
        beliefs = {note: belief for (user, belief), (_, note) in self.notes.items() if user == body["user_id"]}
        return {"results": [{"id": beliefs[entry.key], "memory": entry.content} for entry in shown]}

    def _project(self, user: str, scope: str | None) -> Limpet:
        return self.hold.elsewhere(self.hold.scope._replace(project=f"{user} {scope}"))


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
