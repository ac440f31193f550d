"""`limpet output …`: big results kept outside the window."""

from __future__ import annotations

import sys
from typing import Any

import click

from limpet.doors.cli.build import NUMBER, Group, command, group, pass_state
from limpet.doors.cli.context import BY, State

Json = dict[str, Any]
WAYS = {
    "query": "A plain question; the lines that answer it.",
    "lines": "100-150, 40- or -50 for the tail.",
    "match": "Lines with this text.",
    "path": "A JSON pointer or JSONPath.",
    "rows": "Rows of a table or list, as 1-20.",
    "chars": "A range of characters.",
    "bytes": "A range of bytes.",
    "cursor": "Where the last answer ended.",
}


def add_to(root: Group) -> None:
    noun = group(root, "output", "Big tool results kept whole outside the window.")
    _add_keeping(noun)
    _add_reading(noun)
    _add_care(noun)


def _add_keeping(noun: Group) -> None:
    @command(
        noun,
        "keep",
        "pytest | limpet output keep pytest",
        "Keep what standard input says, if it is big, and print the preview and the reference an agent would see.",
        session=True,
    )
    @click.argument("tool")
    @click.option("--call", default="", help="How it was made, for whoever needs it again.")
    @pass_state
    def keep(state: State, tool: str, call: str) -> None:
        content = sys.stdin.buffer.read().decode("utf-8", "replace")
        kept = state.hold.session(state.writing(), by=BY).outputs.keep(tool, content, call=call)
        reply: Json = {"text": kept.text, "id": kept.output.id if kept.output else None}
        state.answer(reply, lambda screen: screen.block(kept.text))


def _add_reading(noun: Group) -> None:
    @command(noun, "list", "limpet output list --limit 5")
    @click.option("--limit", type=NUMBER, metavar="N", help="At most so many.")
    @pass_state
    def list_(state: State, limit: int | None) -> None:
        reply = state.call("scratchpad_list", {"limit": limit})
        columns = ("id", "tool", "bytes", "shape", "used")
        rows = [(one["id"], one["tool"], one["size"], one["shape"], one["used_at"]) for one in reply["entries"]]
        state.answer(reply, lambda screen: screen.table(columns, rows))
        if not state.json:
            stats = reply["stats"]
            state.notice(
                f"{stats['entries']:,} outputs, {stats['total_bytes']:,} bytes, {stats['stored_bytes']:,} on disk."
            )

    def read(state: State, /, id: str, **how: Any) -> None:
        how["columns"] = list(how["columns"]) or None
        how["regex"] = how["regex"] or None
        reply = state.call("scratchpad_read", {"id": id, **how})
        state.answer(reply, lambda screen: screen.block(reply["content"]))
        if not state.json and (reply.get("note") or reply.get("cursor")):
            more = f" --cursor {reply['cursor']} reads on." if reply.get("cursor") else ""
            state.notice(f"{reply.get('note', '')}{more}".strip())

    reading = pass_state(read)
    for name, words in reversed(WAYS.items()):
        reading = click.option(f"--{name}", help=words)(reading)
    reading = click.option("--regex", is_flag=True, help="Take the text of --match for a regular expression.")(reading)
    reading = click.option("--tokens", type=NUMBER, metavar="N", help="The most to show.")(reading)
    reading = click.option("--context", type=NUMBER, metavar="N", help="Lines around a match.")(reading)
    reading = click.option("--column", "columns", multiple=True, help="Only this column; may be repeated.")(reading)
    reading = click.argument("id")(reading)
    command(noun, "read", "limpet output read 3f9a1c2b77e0 --query 'which test failed'")(reading)


def _add_care(noun: Group) -> None:
    @command(noun, "delete", "limpet output delete 3f9a1c2b77e0")
    @click.argument("id")
    @pass_state
    def delete(state: State, id: str) -> None:
        reply = state.call("delete_output", {"id": id})
        state.answer(reply, lambda screen: screen.line(f"{reply['id']} deleted ({reply['size']:,} bytes)"))

    @command(noun, "prune", "limpet output prune")
    @pass_state
    def prune(state: State) -> None:
        reply = state.call("prune_outputs", {})
        state.answer(reply, lambda screen: screen.line(f"{reply['deleted']:,} pruned, {reply['freed_bytes']:,} bytes"))

    @command(noun, "clear", "limpet output clear --yes")
    @click.confirmation_option(prompt="Delete every kept output of this project?")
    @pass_state
    def clear(state: State) -> None:
        reply = state.call("clear_outputs", {})
        state.answer(reply, lambda screen: screen.line(f"{reply['deleted']:,} deleted"))
