"""Purging the journal's file: the lines that an origin added are removed in one edit of the file, and restored in one.

The removed lines are stored with the deleted entry, so that `undo` restores them and `forever` erases them.
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
    missing: int  # entries that are no longer in a file as they were added


def take_out(ctx: Context, entries: Mapping[str, str]) -> TakenOut:
    """Take entries, by key and content, out of the journal and its archive. Each file is changed once."""
    keys, contents = list(entries), list(entries.values())
    removed: dict[str, list[Mapping[str, Any]]] = {}
    for name, place in _places(ctx):
        if not (files.read(place) or "").strip():
            continue  # no file, or an emptied one
        taken: list[tuple[int, RemovedPiece]] = []

        def change(text: str, taken: list[tuple[int, RemovedPiece]] = taken) -> str:
            left, taken[:] = removal.without(text, contents)
            return left

        files.update(place, change)
        for number, piece in taken:
            removed.setdefault(keys[number], []).append({"place": name, **piece._asdict()})
    return TakenOut({key: tuple(pieces) for key, pieces in removed.items()}, len(keys) - len(removed))


def put_back(ctx: Context, events: Iterable[Event]) -> None:
    """Put the lines that these deletions of a purge removed back into the files."""
    pieces = [piece for event in events if event.before for piece in event.before.extra.get(TAKEN, ())]
    for name, place in _places(ctx):
        own = [removal.from_json(piece) for piece in pieces if piece["place"] == name]
        if own and (files.read(place) or "").strip():
            files.update(place, lambda text, own=own: removal.put_back(text, own))  # type: ignore[misc]


def forget(ctx: Context, texts: Sequence[str]) -> None:
    """Remove these texts from the stored earlier versions of the files."""
    for _, place in _places(ctx):
        with suppress(FileNotFoundError):
            files.forget(place, texts)


def _places(ctx: Context) -> tuple[tuple[str, files.JournalFile], ...]:
    journal = journal_of(ctx)
    return tuple(zip(PLACES, (journal.place, journal.archive), strict=True))
