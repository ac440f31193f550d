"""`limpet memory …` and `limpet handoff …`: what a project keeps beyond its sessions."""

from __future__ import annotations

from typing import Any

import click

from limpet.doors.cli.build import NUMBER, Group, command, group, pass_state
from limpet.doors.cli.context import State, line_from, say_twin
from limpet.doors.cli.render import Screen

Json = dict[str, Any]


def add_to(root: Group) -> None:
    memory = group(root, "memory", "What a project keeps under keys.")
    _add_reading(memory)
    _add_writing(memory)
    _add_handoff(group(root, "handoff", "What one session leaves for the next."))


def _add_reading(noun: Group) -> None:
    @command(noun, "search", "limpet memory search 'release steps' --limit 3")
    @click.argument("query")
    @click.option("--limit", type=NUMBER, metavar="N", help="At most so many, from 1 to 50.")
    @pass_state
    def search(state: State, query: str, limit: int | None) -> None:
        reply = state.call("search_memory", {"query": query, "limit": limit})
        columns = ("key", "updated", "pinned", "content")
        rows = [
            (m["key"], m["updated_at"], "pinned" if m.get("pinned") else "", m["content"]) for m in reply["matches"]
        ]
        state.answer(reply, lambda screen: screen.table(columns, rows))

    @command(noun, "show", "limpet memory show release")
    @click.argument("key")
    @pass_state
    def show(state: State, key: str) -> None:
        reply = state.call("read_memory", {"key": key})
        state.answer(reply, lambda screen: screen.block(reply["content"]))


def _add_writing(noun: Group) -> None:
    @command(
        noun,
        "write",
        "limpet memory write release 'Tag, then make dist'\nlimpet memory write release - --append < steps.txt",
        "Without a text, or with -, it is read from standard input.",
        session=True,
    )
    @click.argument("key")
    @click.argument("text", required=False)
    @click.option("--append", is_flag=True, help="Add to what is there instead of replacing it.")
    @pass_state
    def write(state: State, key: str, text: str | None, append: bool) -> None:
        arguments = {"key": key, "content": line_from(text, state), "mode": "append" if append else None}
        reply = state.call("write_memory", arguments, state.writing())
        state.answer(reply, lambda screen: screen.line(f"{reply['key']} written ({reply['bytes_written']:,} bytes)"))
        say_twin(state, reply)

    for name, pinned in (("pin", True), ("unpin", False)):
        _add_pinning(noun, name, pinned)


def _add_pinning(noun: Group, name: str, pinned: bool) -> None:
    @command(noun, name, f"limpet memory {name} release")
    @click.argument("key")
    @pass_state
    def pin(state: State, key: str) -> None:
        reply = state.call("pin_memory", {"key": key, "pinned": pinned})
        state.answer(reply, lambda screen: screen.line(f"{reply['key']} {name}ned"))


def _add_handoff(noun: Group) -> None:
    line = click.option("--line", metavar="NAME", help="The line of work, if there are several.")

    @command(
        noun,
        "write",
        "limpet handoff write 'Parser done. Next: casts, see the notepad of session parser.'",
        "Without a text, or with -, it is read from standard input.",
        session=True,
    )
    @click.argument("text", required=False)
    @line
    @pass_state
    def write(state: State, text: str | None, line: str | None) -> None:
        reply = state.call("write_session_handoff", {"content": line_from(text, state), "line": line}, state.writing())
        replaced = "; it replaces an earlier one" if reply["replaced"] else ""
        state.answer(reply, lambda screen: screen.line(f"handoff left for the next session{replaced}"))

    @command(noun, "show", "limpet handoff show")
    @line
    @pass_state
    def show(state: State, line: str | None) -> None:
        reply = state.call("read_handoff", {"line": line})

        def draw(screen: Screen) -> None:
            screen.block(reply["content"])

        state.answer(reply, draw)
        if not state.json:
            used = f"used by {reply['used_by']}" if reply["used_by"] else "not used yet"
            state.notice(f"left by session {reply['written_by']} at {reply['written_at']}, {used}.")
