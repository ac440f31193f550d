"""`limpet recall …`: one question to everything that is kept."""

from __future__ import annotations

from typing import Any

import click

from limpet.doors.cli.build import NUMBER, Group, command, pass_state
from limpet.doors.cli.context import State


def add_to(root: Group) -> None:
    @command(
        root, "recall", "limpet recall 'why did we drop the old lexer'\nlimpet recall lexer --kind notes --since 7d"
    )
    @click.argument("query")
    @click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind; may be repeated.")
    @click.option("--tag", "tags", multiple=True, metavar="TAG", help="With this tag; may be repeated.")
    @click.option("--of", "session", metavar="SESSION", help="Only what this session wrote.")
    @click.option("--since", metavar="WHEN", help="A day (2026-03-02), a time, or an age (12h, 7d, 2w).")
    @click.option("--until", metavar="WHEN", help="Before this moment.")
    @click.option("--key-prefix", metavar="TEXT", help="Only ids and keys that begin so.")
    @click.option("--done", "include_done", is_flag=True, help="Finished notes too.")
    @click.option("--limit", type=NUMBER, metavar="N", help="At most so many, from 1 to 50.")
    @click.option("--tokens", type=NUMBER, metavar="N", help="The most the answer may take.")
    @pass_state
    def recall(state: State, /, query: str, **options: Any) -> None:
        arguments = {name: options[name] for name in ("since", "until", "key_prefix", "limit", "tokens")}
        arguments |= {"kinds": list(options["kinds"]) or None, "tags": list(options["tags"]) or None}
        arguments |= {"session": options["session"], "include_done": options["include_done"] or None}
        reply = state.call("recall", {"query": query, **arguments})
        columns = ("kind", "id", "updated", "state", "text", "why")
        rows = [
            (hit["kind"], _named(hit), hit["updated_at"][:10], _state(hit), hit["text"], "; ".join(hit["why"]))
            for hit in reply["hits"]
        ]
        state.answer(reply, lambda screen: screen.table(columns, rows))
        if not state.json and reply.get("left_out"):
            state.notice(f"{reply['left_out']} more; --limit shows them.")
        if not state.json and (waiting := reply.get("not_searched")):
            state.notice(f"{waiting['outputs']} outputs were not searched. {waiting['why']}")
        if not state.json and reply.get("hint") and not reply["hits"]:
            state.notice(reply["hint"])


def _named(hit: dict[str, Any]) -> str:
    return f"{hit['id']}:{hit['line']}" if "line" in hit else str(hit["id"])


def _state(hit: dict[str, Any]) -> str:
    """Whose word it is, and whether it still holds."""
    return ", ".join(filter(None, (hit["trust"], hit.get("state"))))
