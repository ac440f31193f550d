"""`limpet note …` and `limpet tags`."""

from __future__ import annotations

from typing import Any

import click

from limpet.doors.cli.build import NUMBER, Group, command, group, pass_state
from limpet.doors.cli.context import State, line_from, say_twin
from limpet.doors.cli.render import Screen

Json = dict[str, Any]


def add_to(root: Group) -> None:
    noun = group(root, "note", "Short tagged texts that agents write down and find again.")
    _add_writing(noun)
    _add_reading(noun)

    @command(root, "tags", "limpet tags", session=True)
    @pass_state
    def tags(state: State) -> None:
        reply = state.call("list_tags", {}, state.reading())
        state.answer(
            reply, lambda screen: screen.table(("tag", "notes"), ((tag["tag"], tag["count"]) for tag in reply["tags"]))
        )


def _add_writing(noun: Group) -> None:
    @command(
        noun,
        "add",
        "limpet note add 'Casts break LL(1)' --tag grammar --tag parser\ngit log -3 | limpet note add -",
        "Without a text, or with -, it is read from standard input.",
        session=True,
    )
    @click.argument("text", required=False)
    @click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word to find it by; may be repeated.")
    @pass_state
    def add(state: State, text: str | None, tags: tuple[str, ...]) -> None:
        reply = state.call("add_note", {"content": line_from(text, state), "tags": list(tags)}, state.writing())
        state.answer(reply, lambda screen: _written(screen, reply, f"added to session {state.writing()}"))
        say_twin(state, reply)

    @command(noun, "update", "limpet note update note_1772445300000 --done", "Give - as the text to read it.")
    @click.argument("id")
    @click.argument("text", required=False)
    @click.option("--tag", "tags", multiple=True, metavar="TAG", help="Replaces all its tags; may be repeated.")
    @click.option("--no-tags", is_flag=True, help="Take all its tags away.")
    @click.option("--done/--open", default=None, help="Mark it done (hidden, not lost), or open again.")
    @pass_state
    def update(
        state: State, id: str, text: str | None, tags: tuple[str, ...], no_tags: bool, done: bool | None
    ) -> None:
        if tags and no_tags:
            raise click.UsageError("--tag and --no-tags cannot both be given.")
        arguments = {
            "id": id,
            "content": None if text is None else line_from(text, state),
            "tags": list(tags) if tags or no_tags else None,
            "done": done,
        }
        reply = state.call("update_note", arguments)
        state.answer(reply, lambda screen: _written(screen, reply, "updated"))

    @command(noun, "delete", "limpet note delete note_1772445300000", "`limpet undo` brings it back.")
    @click.argument("id")
    @pass_state
    def delete(state: State, id: str) -> None:
        reply = state.call("delete_note", {"id": id})
        state.answer(reply, lambda screen: _written(screen, reply, "deleted; `limpet undo` brings it back"))


def _add_reading(noun: Group) -> None:
    @command(noun, "list", "limpet note list --tag grammar --limit 50", session=True)
    @click.option("--tag", metavar="TAG", help="Only notes with this tag.")
    @click.option("--all", "include_done", is_flag=True, help="Finished notes too.")
    @click.option("--limit", type=NUMBER, metavar="N", help="At most so many.")
    @pass_state
    def list_(state: State, tag: str | None, include_done: bool, limit: int | None) -> None:
        arguments = {"tag": tag, "include_done": include_done, "limit": limit}
        reply = state.call("list_notes", arguments, state.reading())
        columns = _columns(include_done)
        state.answer(reply, lambda screen: screen.table(columns, (_row(n, columns) for n in reply["notes"])))
        _say_left_out(state, reply)

    @command(noun, "search", "limpet note search 'LL(1)' --tag grammar", session=True)
    @click.argument("query", default="")
    @click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only notes with all of these; may be repeated.")
    @click.option("--all", "include_done", is_flag=True, help="Finished notes too.")
    @click.option("--limit", type=NUMBER, metavar="N", help="At most so many.")
    @pass_state
    def search(state: State, query: str, tags: tuple[str, ...], include_done: bool, limit: int | None) -> None:
        arguments = {"query": query, "tags": list(tags), "include_done": include_done, "limit": limit}
        reply = state.call("search_notes", arguments, state.reading())
        columns = ("id", "match", *_columns(include_done)[1:])
        found = [{**note, "match": "exact"} for note in reply["notes"]]
        found += [{**note, "match": "related"} for note in reply.get("related", ())]
        state.answer(reply, lambda screen: screen.table(columns, (_row(note, columns) for note in found)))
        _say_left_out(state, reply)


def _columns(include_done: bool) -> tuple[str, ...]:
    return ("id", "updated", *(("state",) if include_done else ()), "tags", "content")


def _row(note: Json, columns: tuple[str, ...]) -> tuple[str, ...]:
    cells = {
        "id": note["id"],
        "match": note.get("match", ""),
        "updated": note["updated_at"],
        "state": "done" if note.get("done") else "open",
        "tags": ", ".join(note["tags"]),
        "content": note["content"],
    }
    return tuple(cells[name] for name in columns)


def _written(screen: Screen, reply: Json, what: str) -> None:
    screen.line(f"{reply['note_id']} {what} (notes: {reply['total_notes']}, tags: {reply['total_tags']})")


def _say_left_out(state: State, reply: Json) -> None:
    if not state.json and reply.get("left_out"):
        state.notice(f"{reply['left_out']:,} more are not shown; --limit shows more, a tag or a search fewer.")
