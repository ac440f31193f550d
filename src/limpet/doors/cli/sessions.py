"""`limpet session …`, `history`, `undo` and `context`: who worked on what, and what a new session begins with."""

from __future__ import annotations

from typing import Any

import click

from limpet.doors.cli.build import NUMBER, Group, command, group, pass_state
from limpet.doors.cli.context import State
from limpet.doors.cli.render import Screen

Json = dict[str, Any]


def add_to(root: Group) -> None:
    noun = group(root, "session", "Pieces of work, each with its notes and its notepad.")
    _add_reading(noun)
    _add_writing(noun)
    _add_tree(noun)
    _add_history(root)

    @command(
        root,
        "context",
        "limpet context",
        "Print what a new session would start with: handoff, notepad and memory. Nothing is used up by looking.",
        session=True,
    )
    @click.option("--line", default="main", metavar="NAME", help="The line of work whose handoff is shown.")
    @pass_state
    def context(state: State, line: str) -> None:
        import os

        from limpet.doors.cli.context import BY
        from limpet.text import tokens

        # Without --session it is a session that nobody has begun, and looking does not begin it.
        text = state.hold.session(state.session or f"new-{os.urandom(6).hex()}", by=BY).context(line)
        reply = {"context": text, "tokens": tokens.count(text), "tokenizer": tokens.NAME}
        state.answer(reply, lambda screen: screen.block(text))
        if not state.json:
            state.notice(f"about {reply['tokens']:,} tokens, by {tokens.NAME}.")


def _add_reading(noun: Group) -> None:
    @command(noun, "list", "limpet session list --all")
    @click.option("--all", "include_archived", is_flag=True, help="Archived sessions too.")
    @click.option("--limit", type=NUMBER, metavar="N", help="At most so many.")
    @pass_state
    def list_(state: State, include_archived: bool, limit: int | None) -> None:
        reply = state.call("list_sessions", {"include_archived": include_archived, "limit": limit})
        columns = ("id", "state", "created", "task")
        rows = [(one["id"], one["state"], one["created_at"], one["task"]) for one in reply["sessions"]]
        state.answer(reply, lambda screen: screen.table(columns, rows))
        if not state.json and reply.get("left_out"):
            state.notice(f"{reply['left_out']:,} more are not shown; --limit shows more.")

    @command(noun, "show", "limpet session show parser")
    @click.argument("id")
    @pass_state
    def show(state: State, id: str) -> None:
        reply = state.call("show_session", {"id": id})

        def draw(screen: Screen) -> None:
            names = ("id", "task", "state", "parent", "created_at", "archived_at", "notes")
            screen.table(("field", "value"), ((name, "" if reply[name] is None else reply[name]) for name in names))
            screen.line("")
            screen.block(reply["notepad"])

        state.answer(reply, draw)


def _add_writing(noun: Group) -> None:
    @command(noun, "begin", "limpet session begin parser --task 'Port the parser to Rust'")
    @click.argument("id")
    @click.option("--task", metavar="TEXT", help="What it works on.")
    @pass_state
    def begin(state: State, id: str, task: str | None) -> None:
        reply = state.call("begin_session", {"task": task}, id)
        state.answer(reply, lambda screen: screen.line(f"{reply['id']} is {reply['state']}"))

    @command(noun, "archive", "limpet session archive parser")
    @click.argument("id")
    @pass_state
    def archive(state: State, id: str) -> None:
        reply = state.call("archive_session", {"id": id})
        state.answer(reply, lambda screen: screen.line(f"{reply['id']} is {reply['state']}"))


def _add_tree(noun: Group) -> None:
    def child(reply: Json, state: State) -> None:
        state.answer(reply, lambda screen: screen.line(f"{reply['id']} at depth {reply['depth']}"))

    @command(noun, "spawn", "limpet session spawn 'Read the old grammar' --session parser --note note_1", session=True)
    @click.argument("task")
    @click.option("--copy-notepad", is_flag=True, help="Start it with a copy of the notepad.")
    @click.option("--note", "notes", multiple=True, metavar="ID", help="A note it gets; may be repeated.")
    @click.option("--reference", "references", multiple=True, metavar="ID", help="An output it gets; may be repeated.")
    @click.option("--token-limit", type=NUMBER, metavar="N", help="Tokens it may use.")
    @click.option("--model", metavar="NAME", help="The model it is for.")
    @pass_state
    def spawn(state: State, /, **arguments: Any) -> None:
        child(state.call("spawn_session", {**arguments, **_lists(arguments)}), state)

    @command(noun, "fork", "limpet session fork 'Try it with a table' --session parser", session=True)
    @click.argument("task")
    @click.option("--token-limit", type=NUMBER, metavar="N", help="Tokens it may use.")
    @click.option("--model", metavar="NAME", help="The model it is for.")
    @pass_state
    def fork(state: State, /, **arguments: Any) -> None:
        child(state.call("fork_session", arguments), state)

    @command(noun, "wait", "limpet session wait sub_0a1b2c --seconds 30")
    @click.argument("ids", nargs=-1, required=True)
    @click.option("--seconds", type=NUMBER, metavar="N", help="How long to wait at most.")
    @pass_state
    def wait(state: State, ids: tuple[str, ...], seconds: int | None) -> None:
        reply = state.call("wait_for_sessions", {"ids": list(ids), "seconds": seconds})
        rows = [(one["id"], one["status"], one.get("result", one.get("error"))) for one in reply["results"]]
        rows += [(id, "active", "") for id in reply.get("waiting", ())]
        state.answer(reply, lambda screen: screen.table(("id", "status", "result"), rows))

    def ended(reply: Json, state: State) -> None:
        state.answer(reply, lambda screen: screen.line(f"{reply['id']} is {reply['status']}"))

    @command(noun, "report", "limpet session report 'Nothing depends on it' --session sub_0a1b2c", session=True)
    @click.argument("result")
    @pass_state
    def report(state: State, result: str) -> None:
        ended(state.call("report_result", {"result": result}), state)

    @command(noun, "end", "limpet session end sub_0a1b2c cancelled --result 'No longer needed'")
    @click.argument("id")
    @click.argument("outcome")
    @click.option("--result", metavar="TEXT", help="The last it said, or what went wrong.")
    @pass_state
    def end(state: State, id: str, outcome: str, result: str | None) -> None:
        ended(state.call("end_session", {"id": id, "outcome": outcome, "result": result}), state)


def _lists(arguments: Json) -> Json:
    return {name: list(value) for name, value in arguments.items() if isinstance(value, tuple)}


def _add_history(root: Group) -> None:
    @command(root, "history", "limpet history --kind note --limit 10")
    @click.option("--kind", metavar="KIND", help="note, notepad, memory, handoff, session, fold, task, pin, journal …")
    @click.option("--key", metavar="KEY", help="Only this note, memory key or session.")
    @click.option("--before", "before_seq", type=NUMBER, metavar="SEQ", help="Only changes before this one.")
    @click.option("--limit", type=NUMBER, metavar="N", help="At most so many.")
    @pass_state
    def history(state: State, kind: str | None, key: str | None, before_seq: int | None, limit: int | None) -> None:
        arguments = {"kind": kind, "key": key, "before_seq": before_seq, "limit": limit}
        reply = state.call("history", arguments)
        columns = ("seq", "at", "by", "operation", "session", "kind", "key", "after")
        state.answer(reply, lambda screen: screen.table(columns, (_row(one, columns) for one in reply["events"])))

    @command(root, "undo", "limpet undo\nlimpet undo 42")
    @click.argument("seq", type=NUMBER, required=False)
    @pass_state
    def undo(state: State, seq: int | None) -> None:
        reply = state.call("undo", {"seq": seq})
        done = reply["undone"]
        words = f"change {done['seq']} undone ({done['operation']}: {done['kind']} {done['key']})"
        words += f"; {reply['restored']:,} entries are back" if "restored" in reply else ""
        state.answer(reply, lambda screen: screen.line(words))


def _row(event: Json, columns: tuple[str, ...]) -> list[str]:
    return ["(deleted)" if event[name] is None else str(event[name]) for name in columns]
