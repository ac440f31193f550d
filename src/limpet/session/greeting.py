"""What the first result of a tool says besides, for clients that may show their model no instructions of a server."""

from __future__ import annotations

from limpet import limits, prompts
from limpet.catalogue.operation import Context
from limpet.memory import handoff
from limpet.model import SESSION, Handoff, moment
from limpet.record import NamedTuple
from limpet.session import hook_state, notepad
from limpet.text.safe import as_data, as_name

PARENT_HEADING = "## Notepad of the session that began you, to read; your own is empty until you write it"
PARENT_CHARS = 4_000


class Greeting(NamedTuple):
    text: str = ""
    handoffs: tuple[Handoff, ...] = ()  # that the text holds in full
    pad: int = 0  # the version of the notepad in it


def greeting(ctx: Context, operation: str, since: int | None, *, goes_on: bool = False) -> Greeting:
    """The handoffs that waited when the client connected (`since`, in milliseconds), and the notepad. Without the
    handoffs for a session that has hooks, which show them, and without what the operation itself answers. A
    conversation that `goes_on` in another process holds what it was shown in an earlier one."""
    state = hook_state.read(ctx)
    waiting = handoff.Waiting()
    if operation != "read_handoff" and not state.is_used:
        waiting = handoff.waiting(ctx, since=since)
    own = tuple(item for item in waiting.own if since is None or item.written_at <= moment(since))
    if goes_on:
        own = tuple(item for item in own if not handoff.was_seen(ctx, item))
    first = handoff.section(ctx, waiting._replace(own=own), limits.HANDOFF_SHOWN_CHARS) if own else None
    pad = notepad.read_notepad(ctx)
    last_version = max(state.pad, state.greeted if goes_on else 0)
    has_pad = pad.content.strip() and pad.version > last_version and operation != "read_notepad"
    parts = [first.text if first else "", _parents_notepad(ctx), notepad.section(pad) if has_pad else ""]
    text = "\n\n".join(part for part in parts if part)
    if not text:
        return Greeting()
    in_full = first.in_full if first else ()
    return Greeting(f"{prompts.prompt('first_result')}\n\n{text}", in_full, pad.version if has_pad else 0)


def mark_shown(ctx: Context, greeted: Greeting, *, goes_on: bool) -> None:
    """Record that this session's model has seen it. Its own handoff and its notepad are shown again to a session
    that is not known to go on with the conversation."""
    handoff.mark_shown(ctx, (item for item in greeted.handoffs if goes_on or item.written_by != ctx.session))
    if goes_on and greeted.pad:
        hook_state.mark_greeted(ctx, greeted.pad)


def _parents_notepad(ctx: Context) -> str:
    """For a sub-agent: what the session that began it has on its notepad."""
    entry = ctx.store.entries.read(ctx.scope, SESSION, ctx.session)
    if entry is None or not entry.session:
        return ""
    pad = notepad.read_notepad(ctx._replace(session=entry.session))
    text = as_data(pad.content.strip(), pad.origin)
    if len(text) > PARENT_CHARS:
        text = (
            f'{text[:PARENT_CHARS]}\n[… cut to fit; read_notepad session_id="{as_name(entry.session)}" gives all of it]'
        )
    return f"{PARENT_HEADING}\n{text}" if text else ""
