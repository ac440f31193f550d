"""Use is counted: how often an entry was opened or called useful. It is shown to people and does not rank anything.

A count is written without waiting for the disk, and a store that cannot be written can still be read.
"""

from __future__ import annotations

from contextlib import suppress

from limpet import errors
from limpet.catalogue.ids import short_id
from limpet.catalogue.operation import Context, Json
from limpet.memory import validity
from limpet.model import NOTE, Entry, EntryName
from limpet.record import NamedTuple
from limpet.store import OPENED, USEFUL
from limpet.text import brief
from limpet.text.safe import as_name


class MarkedUseful(NamedTuple):
    name: EntryName
    times: int


def opened(ctx: Context, entry: Entry) -> None:
    with suppress(*errors.UNWRITABLE):
        ctx.store.calls.record_use(ctx.scope, entry.kind, entry.key, OPENED, ctx.now)


def mark_useful(ctx: Context, id: str) -> MarkedUseful:
    """Count that a note or memory helped."""
    name = validity.named(ctx, NOTE, id)
    ctx.store.calls.record_use(ctx.scope, *name, USEFUL, ctx.now)
    counts = ctx.store.calls.uses(ctx.scope, *name)
    return MarkedUseful(name, sum(row.times for row in counts if row.what == USEFUL))


def useful_json(value: MarkedUseful) -> Json:
    return {"kind": value.name.kind, "id": value.name.key, "useful": value.times}


def useful_text(ctx: Context, value: MarkedUseful) -> str:
    return f"{as_name(short_id(ctx, *value.name))} marked useful; {brief.counted(value.times, 'time')}."
