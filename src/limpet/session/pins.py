"""Pins: texts that every window of a session contains word for word, also after a compaction.

People and programs pin texts; agents have no tool for it, so that a text from a tool's output cannot make itself a
rule. Pinned memory is included too, in every session of the project.
"""

from __future__ import annotations

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json, bounded
from limpet.model import MEMORY, PIN, Draft, Entry, iso, trusted
from limpet.record import NamedTuple
from limpet.store import Listing

HEADING = "## Pinned"


class Pins(NamedTuple):
    pins: tuple[Entry, ...]


def pin_text(ctx: Context, content: str) -> Entry:
    bounded(
        "pinned text", content, limits.PIN_MAX_CHARS, "Pin what must hold; keep the rest in memory.", blank="Say it."
    )
    current = pins(ctx)
    for entry in current:
        if entry.content == content:
            return entry
    if len(current) >= limits.PINS_MAX:
        raise errors.too_many_pins(limits.PINS_MAX)
    draft = Draft(content, ctx.session, pinned=True)
    return ctx.store.entries.edit(ctx.scope, PIN, None, lambda before: draft, ctx.stamp("pin_text")).entry


def unpin_text(ctx: Context, id: str) -> Entry:
    def decide(before: Entry | None) -> Draft | None:
        if before is None or before.session != ctx.session:
            raise errors.no_entry("pin", id, "`limpet window pins` lists those of the session.")
        return None if before.done else before.revised(done=True, pinned=False)

    return ctx.store.entries.edit(ctx.scope, PIN, id, decide, ctx.stamp("unpin_text")).entry


def list_pins(ctx: Context) -> Pins:
    return Pins(tuple(pins(ctx)))


def pins(ctx: Context) -> list[Entry]:
    """The session's pins, oldest first. An imported one does not count until it is pinned again."""
    page = ctx.store.entries.list(ctx.scope, Listing((PIN,), ctx.session, limit=limits.LIST_MAX))
    current = [entry for entry in page.entries if entry.pinned and trusted(entry.origin)]
    return sorted(current, key=lambda entry: (entry.created_at, entry.key))


def pinned_memory(ctx: Context) -> list[str]:
    """Pinned memory, ordered by key."""
    page = ctx.store.entries.list(ctx.scope, Listing((MEMORY,), limit=limits.LIST_MAX))
    pinned = [entry for entry in page.entries if entry.pinned and trusted(entry.origin)]
    return [entry.content for entry in sorted(pinned, key=lambda entry: entry.key)]


def section(texts: list[str]) -> str:
    """The prompt section; empty when nothing is pinned."""
    return "\n\n".join([HEADING, *texts]) if texts else ""


# --- answers ----------------------------------------------------------------------------------------------------------


def pin_json(entry: Entry) -> Json:
    return {"id": entry.key, "content": entry.content, "created_at": iso(entry.created_at)}


def pins_json(value: Pins) -> Json:
    return {"pins": [pin_json(entry) for entry in value.pins]}
