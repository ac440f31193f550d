"""Export and import as JSON Lines: a header, all entries, all changes, then all outputs and tombstones.

An export and an import keep all of these. The call log is not exported: savings, calls and reads. The lines of outputs
are defined in outputs/transfer.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from limpet import errors, limits
from limpet.catalogue.operation import Context
from limpet.model import KINDS, MESSAGE, NOTE, Draft, Entry
from limpet.outputs import transfer
from limpet.outputs.transfer import typed
from limpet.redaction import Masking
from limpet.redaction.entries import masked_entry
from limpet.store import Decide, entry_from, to_json
from limpet.window import transcript

FORMAT = 1
_ENTRY_TYPES = {
    "kind": str,
    "key": str,
    "session": str,
    "content": str,
    "tags": list,
    "done": bool,
    "pinned": bool,
    "origin": str,
    "extra": dict,
    "version": int,
    "created_at": int,
    "updated_at": int,
}
_EVENT_TYPES = {
    "seq": int,
    "at": int,
    "by": str,
    "operation": str,
    "session": str,
    "kind": str,
    "key": str,
    "version": int,
    "detail": dict,
}


def export_lines(ctx: Context, *, outputs: bool = True) -> Iterator[str]:
    """The project as lines, without line ends."""
    yield to_json({"limpet": FORMAT, "project": ctx.scope.project})
    for kind, record in ctx.store.entries.dump(ctx.scope):
        yield to_json({kind: record})
    # After the entries, so that each output that an entry cites is exported, or its tombstone.
    for record in transfer.leaving(ctx) if outputs else ():
        yield to_json(record)


def import_lines(ctx: Context, lines: Iterable[str], *, merge: bool = False) -> int:
    """Read an export. An empty project becomes exactly what was exported, with its history.

    With `merge`, entries are added to the project as new changes. Equal entries are skipped, and an entry that differs
    from that of the project stops the import before anything is written.
    """
    with transfer.Waiting() as waiting:
        entries, events = _parse(lines, waiting)
        if ctx.masking is None or not ctx.masking.keep:
            masking = ctx.masking or Masking()
            entries = [_masked(entry, masking) for entry in entries]
            events = [_masked_event(event, masking) for event in events]
        if merge:
            return _merge(ctx, entries, waiting)
        return ctx.store.load(ctx.scope, entries, events, waiting.arriving())


def _merge(ctx: Context, entries: list[Entry], waiting: transfer.Waiting) -> int:
    new = []
    for entry in entries:
        present = ctx.store.entries.read(ctx.scope, entry.kind, entry.key)
        if present is None:
            new.append(entry)
        elif (present.content, present.tags, present.done) != (entry.content, entry.tags, entry.done):
            raise errors.import_conflict(entry.kind, entry.key)
    if waiting.count:
        ctx.store.outputs.add(ctx.scope, waiting.arriving())  # first, so that entries do not cite missing outputs
    for entry in new:
        # The project's clock moves past an imported id, so that the store does not mint it again.
        number = entry.key.rpartition("_")[2]
        now = max(ctx.now, int(number) if entry.kind == NOTE and number.isdecimal() else 0)
        ctx.store.entries.edit(ctx.scope, entry.kind, entry.key, _adding(entry), ctx.stamp("import")._replace(now=now))
    return len(new)


def _adding(entry: Entry) -> Decide:
    draft = Draft(entry.content, entry.session, entry.tags, entry.done, False, entry.extra)

    def decide(before: Entry | None) -> Draft:
        if before is not None:
            raise errors.import_conflict(entry.kind, entry.key)
        return draft

    return decide


def _parse(lines: Iterable[str], waiting: transfer.Waiting) -> tuple[list[Entry], list[dict[str, Any]]]:
    """Entries and changes. Outputs may not fit into memory, so `waiting` spools their lines."""
    entries: list[Entry] = []
    events: list[dict[str, Any]] = []
    names: set[tuple[Any, ...]] = set()
    number = 0
    for number, line in enumerate(lines, 1):
        record = _object(number, line)
        if number == 1:
            if record.get("limpet") != FORMAT:
                raise errors.bad_import(1, f"it must be the header of an export of format {FORMAT}")
        elif record.keys() & transfer.KINDS:
            waiting.add(number, line, record)
        elif "entry" in record:
            entries.append(_entry(number, record["entry"]))
            _once(number, names, entries[-1][:2])
        elif "event" in record:
            events.append(_event(number, record["event"]))
            _once(number, names, (events[-1]["seq"],))
            _once(number, names, tuple(events[-1][name] for name in ("kind", "key", "version")))
        else:
            raise errors.bad_import(number, "it is neither an entry nor an event nor part of an output")
    if number == 0:
        raise errors.bad_import(1, "the import is empty")
    waiting.finish(number)
    return entries, events


def _masked(entry: Entry, masking: Masking) -> Entry:
    if entry.kind != MESSAGE:
        return masked_entry(entry, masking)
    try:
        return transcript.masked_entry(masking, entry)
    except (KeyError, TypeError, ValueError):
        raise errors.bad_import(0, f"the message {errors.quoted(entry.key)} is not as Limpet stores one") from None


def _masked_event(event: dict[str, Any], masking: Masking) -> dict[str, Any]:
    before = event["before"]
    return event if before is None else {**event, "before": _masked(Entry(**before), masking)._asdict()}


def _once(number: int, names: set[tuple[Any, ...]], name: tuple[Any, ...]) -> None:
    if name in names:
        raise errors.bad_import(number, "it says again what an earlier line said")
    names.add(name)


def _object(number: int, line: str) -> dict[str, Any]:
    if len(line) > limits.IMPORT_LINE_MAX_BYTES:
        raise errors.bad_import(number, f"it is longer than {limits.IMPORT_LINE_MAX_BYTES:,} characters")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise errors.bad_import(number, f"it is not JSON ({problem})") from None
    if not isinstance(record, dict):
        raise errors.bad_import(number, "it is not a JSON object")
    return record


def _entry(number: int, record: object) -> Entry:
    fields = typed(number, record, _ENTRY_TYPES)
    if fields["kind"] not in KINDS:
        raise errors.bad_import(number, f"its kind {errors.quoted(fields['kind'])} is not known")
    if not all(isinstance(tag, str) for tag in fields["tags"]):
        raise errors.bad_import(number, "its tags are not all strings")
    return entry_from(fields)


def _event(number: int, record: object) -> dict[str, Any]:
    fields = typed(number, record, _EVENT_TYPES)
    before = fields.get("before")
    return fields | {"before": None if before is None else _entry(number, before)._asdict()}
