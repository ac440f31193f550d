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


def greeting(ctx: Context, operation: str, since: int | None) -> Greeting:
    """The handoffs that waited when the client connected (`since`, in milliseconds), and the notepad. Without the
    handoffs for a session that has hooks, which show them, and without what the operation itself answers."""
    state = hook_state.read(ctx)
    waiting = handoff.Waiting()
    if operation != "read_handoff" and not state.is_used:
        waiting = handoff.waiting(ctx, since=since)
    own = tuple(item for item in waiting.own if since is None or item.written_at <= moment(since))
    first = handoff.section(ctx, waiting._replace(own=own), limits.HANDOFF_SHOWN_CHARS) if own else None
    pad = notepad.read_notepad(ctx)
    has_pad = pad.content.strip() and pad.version > state.pad and operation != "read_notepad"
    parts = [first.text if first else "", _parents_notepad(ctx), notepad.section(pad) if has_pad else ""]
    text = "\n\n".join(part for part in parts if part)
    return Greeting(f"{prompts.prompt('first_result')}\n\n{text}" if text else "", first.in_full if first else ())


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
