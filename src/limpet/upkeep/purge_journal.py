"""Purging the journal's file: the lines that an origin added go, as one edit of the file, and come back as one.

What was taken out is kept with the entry that is deleted, so that `undo` knows it and `forever` forgets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from limpet.catalogue.operation import Context
from limpet.journal import file as files
from limpet.journal.document import removal
from limpet.journal.document.removal import RemovedPiece
from limpet.journal.recover import journal_of
from limpet.model import Event

TAKEN = "taken"  # the member of an entry's extra that holds its pieces
PLACES = ("journal", "archive")


class TakenOut(NamedTuple):
    pieces: Mapping[str, tuple[Mapping[str, Any], ...]]  # by the key of the entry, as JSON
    missing: int  # entries that no longer stand in a file as they were added


def take_out(ctx: Context, kept: Mapping[str, str]) -> TakenOut:
    """Take entries, by key and content, out of the journal and its archive. Each file is changed once."""
    keys, contents = list(kept), list(kept.values())
    found: dict[str, list[Mapping[str, Any]]] = {}
    for name, place in _places(ctx):
        if not (files.read(place) or "").strip():
            continue  # there is none, or it was emptied: nothing stands in it
        taken: list[tuple[int, RemovedPiece]] = []

        def change(text: str, taken: list[tuple[int, RemovedPiece]] = taken) -> str:
            left, taken[:] = removal.without(text, contents)
            return left

        files.update(place, change)
        for number, piece in taken:
            found.setdefault(keys[number], []).append({"place": name, **piece._asdict()})
    return TakenOut({key: tuple(pieces) for key, pieces in found.items()}, len(keys) - len(found))


def put_back(ctx: Context, events: Iterable[Event]) -> None:
    """Put back into the files what these deletions of a purge took out of them."""
    pieces = [one for event in events if event.before for one in event.before.extra.get(TAKEN, ())]
    for name, place in _places(ctx):
        here = [removal.from_json(one) for one in pieces if one["place"] == name]
        if here and (files.read(place) or "").strip():
            files.update(place, lambda text, here=here: removal.put_back(text, here))  # type: ignore[misc]


def forget(ctx: Context, texts: Sequence[str]) -> None:
    """Remove these texts from what is kept of the files besides themselves."""
    for _, place in _places(ctx):
        with suppress(FileNotFoundError):
            files.forget(place, texts)


def _places(ctx: Context) -> tuple[tuple[str, files.JournalFile], ...]:
    journal = journal_of(ctx)
    return tuple(zip(PLACES, (journal.place, journal.archive), strict=True))
