"""Pins: texts that every window of a session holds word for word, whatever is compacted.

People and programs pin, agents have no tool for it: a text that comes from a tool's output must not be able to make
itself a rule. Memory that is pinned counts too, in every session of the project.
"""

from __future__ import annotations

from typing import NamedTuple

from limpet import errors, limits
from limpet.catalogue.check import bounded
from limpet.catalogue.operation import Context, Json
from limpet.model import MEMORY, PIN, Draft, Entry, iso, trusted
from limpet.store import Listing

HEADING = "## Pinned"


class Pins(NamedTuple):
    pins: tuple[Entry, ...]


def pin_text(ctx: Context, content: str) -> Entry:
    bounded(
        "pinned text", content, limits.PIN_MAX_CHARS, "Pin what must hold; keep the rest in memory.", blank="Say it."
    )
    known = pins(ctx)
    for entry in known:
        if entry.content == content:
            return entry
    if len(known) >= limits.PINS_MAX:
        raise errors.too_many_pins(limits.PINS_MAX)
    draft = Draft(content, ctx.session, pinned=True)
    return ctx.store.edit(ctx.scope, PIN, None, lambda before: draft, ctx.stamp("pin_text")).entry


def unpin_text(ctx: Context, id: str) -> Entry:
    def decide(before: Entry | None) -> Draft | None:
        if before is None or before.session != ctx.session:
            raise errors.no_entry("pin", id, "`limpet window pins` lists those of the session.")
        return None if before.done else Draft(before.content, before.session, before.tags, True, False, before.extra)

    return ctx.store.edit(ctx.scope, PIN, id, decide, ctx.stamp("unpin_text")).entry


def list_pins(ctx: Context) -> Pins:
    return Pins(tuple(pins(ctx)))


def pins(ctx: Context) -> list[Entry]:
    """The session's pins, oldest first. One that an import brought holds nowhere until somebody here pins it."""
    page = ctx.store.list(ctx.scope, Listing((PIN,), ctx.session, limit=limits.LIST_MAX))
    held = [entry for entry in page.entries if entry.pinned and trusted(entry.origin)]
    return sorted(held, key=lambda entry: (entry.created_at, entry.key))


def pinned_memory(ctx: Context) -> list[str]:
    """Memory that is pinned, by key."""
    page = ctx.store.list(ctx.scope, Listing((MEMORY,), limit=limits.LIST_MAX))
    held = (entry for entry in page.entries if entry.pinned and trusted(entry.origin))
    known = sorted(held, key=lambda entry: entry.key)
    return [entry.content for entry in known]


def section(texts: list[str]) -> str:
    """The prompt section; empty when nothing is pinned."""
    return "\n\n".join([HEADING, *texts]) if texts else ""


# --- answers ----------------------------------------------------------------------------------------------------------


def pin_json(entry: Entry) -> Json:
    return {"id": entry.key, "content": entry.content, "created_at": iso(entry.created_at)}


def pins_json(value: Pins) -> Json:
    return {"pins": [pin_json(entry) for entry in value.pins]}
