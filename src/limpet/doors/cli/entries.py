"""Commands that show, list or edit single entries for people: a note, a memory, the handoffs, a conversation."""

from __future__ import annotations

from typing import Any

from limpet.doors.cli import own_logic, replies
from limpet.doors.cli.commands import Misuse
from limpet.doors.cli.render import Screen
from limpet.doors.cli.run import Invocation
from limpet.memory.handoff import ReadHandoff, handoff_json
from limpet.memory.notes import note_json
from limpet.model import as_handoff, as_note, iso
from limpet.upkeep import paging
from limpet.window.messages import Message, Text
from limpet.window.transcript import message_of

Json = dict[str, Any]
MESSAGES_SHOWN = 20
RESULT_LINES, LINE_CHARS = 5, 2_000  # of a tool's result; the rest is one line that says how much it is
ROLES = {"user": "green", "assistant": "cyan", "tool": "dim", "system": "dim"}


def show_note(cli: Invocation, id: str) -> None:
    entry = paging.note(cli.hold.context(), id)
    note = as_note(entry)
    reply: Json = {**note_json(note), "session": entry.session, "origin": entry.origin, "version": entry.version}
    reply |= {"created_at": iso(entry.created_at), "updated_at": iso(entry.updated_at)}

    def draw(screen: Screen) -> None:
        screen.block(entry.content)
        tags = f", tags: {', '.join(entry.tags)}" if entry.tags else ""
        state = ", done" if entry.done else ""
        cli.notice(f"{id}, of session {entry.session}, by {entry.origin}{tags}{state}.")

    cli.answer(reply, draw)


def edit_note(cli: Invocation, id: str, text: str | None, **changes: Any) -> int:
    if text is not None or any(changes.values()) or changes["done"] is not None:
        return own_logic.update_note(cli, id, text, **changes)
    before = paging.note(cli.hold.context(), id)
    changes["expected_version"] = before.version

    def save(content: str) -> int:
        return own_logic.update_note(cli, id, content.removesuffix("\n"), **changes)

    return own_logic.by_hand(cli, before.content, save)


def edit_memory(cli: Invocation, key: str) -> int:
    before = cli.call("read_memory", {"key": key})

    def save(content: str) -> int:
        arguments = {"key": key, "content": content.removesuffix("\n"), "expected_version": before["version"]}
        arguments |= {"layer": before["layer"]} if "layer" in before else {}
        return replies.show(cli, "write_memory", cli.call("write_memory", arguments, cli.writing()), arguments)

    return own_logic.by_hand(cli, before["content"], save)


def list_handoffs(cli: Invocation) -> None:
    handoffs = [handoff_json(ReadHandoff(as_handoff(entry), ())) for entry in paging.handoffs(cli.hold.context())]
    names = ("id", "line", "written_by", "written_at", "used_by")
    rows = [(*(left[name] or "-" for name in names), _first(left["content"])) for left in handoffs]

    def draw(screen: Screen) -> None:
        screen.table(("id", "line", "left by", "at", "used by", "begins"), rows)
        if not rows:
            cli.notice("no handoffs yet; `limpet handoff write` leaves one.")

    cli.answer({"handoffs": handoffs}, draw)


def _first(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


# --- conversations ----------------------------------------------------------------------------------------------------


def messages(cli: Invocation, first: Any, last: Any) -> None:
    for name, value in (("--first", first), ("--last", last)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise Misuse(f"{name} is a number from 1 on.")
    session = cli.active()
    ctx = cli.hold.context(session)
    count = paging.message_count(ctx)
    most = last or MESSAGES_SHOWN
    start = first or max(1, count - most + 1)
    entries = paging.messages(ctx, start, min(count, start + most - 1))
    rows = [(position, entry.created_at, message_of(entry)) for position, entry in entries]
    reply = {
        "session": session,
        "count": count,
        "messages": [{"position": n, "at": iso(at), "role": m.role, "text": _text(m)} for n, at, m in rows],
    }

    def draw(screen: Screen) -> None:
        for position, at, message in rows:
            screen.line(f"{position} · {message.role} · {iso(at)}", ROLES.get(message.role, ""))
            screen.block(_text(message, short=True))
            screen.line("")
        if rows and rows[-1][0] < count:
            cli.notice(f"messages {start:,} to {rows[-1][0]:,} of {count:,}; --first {rows[-1][0] + 1} reads on.")
        elif not rows:
            cli.notice(f"session {session} has {count:,} messages; `limpet session list` names other sessions.")

    cli.answer(reply, draw)


def _text(message: Message, *, short: bool = False) -> str:
    parts = [message.text()] if message.text() else []
    parts += [f"→ {call.name} {call.arguments}" for call in message.calls()]
    for result in message.results():
        content = "\n".join(part.text for part in result.parts if isinstance(part, Text))
        lines = content.splitlines()
        more = f"\n… {len(lines) - RESULT_LINES:,} more lines" if short and len(lines) > RESULT_LINES else ""
        first = "\n".join(_begin(line) for line in lines[:RESULT_LINES])
        parts.append(first + more if short else content)
    return "\n".join(parts)


def _begin(line: str) -> str:
    left = len(line) - LINE_CHARS
    return line if left <= 0 else f"{line[:LINE_CHARS]}… {left:,} more characters"
