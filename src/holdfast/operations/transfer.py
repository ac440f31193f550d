"""Export and import as JSON Lines: a header, then every entry, then every change. Both ways nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast import errors, limits
from holdfast.model import KINDS, NOTE, Draft, Entry
from holdfast.operations.registry import INTEGER_MAX, Context, storable
from holdfast.store import Decide, entry_from, to_json

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


def export_lines(ctx: Context) -> Iterator[str]:
    """The project as lines, without line ends."""
    yield to_json({"holdfast": FORMAT, "project": ctx.scope.project})
    for kind, record in ctx.store.dump(ctx.scope):
        yield to_json({kind: record})


def import_lines(ctx: Context, lines: Iterable[str], *, merge: bool = False) -> int:
    """Read an export. Into an empty project it comes back exactly, history and all.

    With `merge`, entries are added to what is there as changes of their own: equal ones are passed over, and one that
    differs from what the project has stops the import before anything is written.
    """
    entries, events = _parse(lines)
    return _merge(ctx, entries) if merge else ctx.store.load(ctx.scope, entries, events)


def _merge(ctx: Context, entries: list[Entry]) -> int:
    new = []
    for entry in entries:
        there = ctx.store.read(ctx.scope, entry.kind, entry.key)
        if there is None:
            new.append(entry)
        elif (there.content, there.tags, there.done) != (entry.content, entry.tags, entry.done):
            raise errors.import_conflict(entry.kind, entry.key)
    for entry in new:
        # The project's clock moves past an imported id, so that it is never minted again.
        number = entry.key.rpartition("_")[2]
        now = max(ctx.now, int(number) if entry.kind == NOTE and number.isdecimal() else 0)
        ctx.store.edit(ctx.scope, entry.kind, entry.key, _adding(entry), ctx.stamp("import")._replace(now=now))
    return len(new)


def _adding(entry: Entry) -> Decide:
    draft = Draft(entry.content, entry.session, entry.tags, entry.done, False, entry.extra)

    def decide(before: Entry | None) -> Draft:
        if before is not None:
            raise errors.import_conflict(entry.kind, entry.key)
        return draft

    return decide


def _parse(lines: Iterable[str]) -> tuple[list[Entry], list[dict[str, Any]]]:
    entries: list[Entry] = []
    events: list[dict[str, Any]] = []
    seen: set[tuple[Any, ...]] = set()
    number = 0
    for number, line in enumerate(lines, 1):
        record = _object(number, line)
        if number == 1:
            if record.get("holdfast") != FORMAT:
                raise errors.bad_import(1, f"it must be the header of an export of format {FORMAT}")
        elif "entry" in record:
            entries.append(_entry(number, record["entry"]))
            _once(number, seen, entries[-1][:2])
        elif "event" in record:
            events.append(_event(number, record["event"]))
            _once(number, seen, (events[-1]["seq"],))
            _once(number, seen, tuple(events[-1][name] for name in ("kind", "key", "version")))
        else:
            raise errors.bad_import(number, "it is neither an entry nor an event")
    if number == 0:
        raise errors.bad_import(1, "the import is empty")
    return entries, events


def _once(number: int, seen: set[tuple[Any, ...]], name: tuple[Any, ...]) -> None:
    if name in seen:
        raise errors.bad_import(number, "it says again what an earlier line said")
    seen.add(name)


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
    fields = _typed(number, record, _ENTRY_TYPES)
    if fields["kind"] not in KINDS:
        raise errors.bad_import(number, f"its kind {errors.shown(fields['kind'])} is not known")
    if not all(isinstance(tag, str) for tag in fields["tags"]):
        raise errors.bad_import(number, "its tags are not all strings")
    return entry_from(fields)


def _event(number: int, record: object) -> dict[str, Any]:
    fields = _typed(number, record, _EVENT_TYPES)
    before = fields.get("before")
    return fields | {"before": None if before is None else _entry(number, before)._asdict()}


def _typed(number: int, record: object, types: dict[str, type]) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise errors.bad_import(number, "it is not a JSON object")
    for name, wanted in types.items():
        if type(record.get(name)) is not wanted:
            raise errors.bad_import(number, f"its field {name} is missing or not {wanted.__name__}")
        if wanted is int and not 0 <= record[name] <= INTEGER_MAX:
            raise errors.bad_import(number, f"its field {name} is out of range")
    try:
        _storable(record)
    except errors.BadInput as problem:
        raise errors.bad_import(number, problem.message.partition(",")[0]) from None
    return record


def _storable(value: object) -> None:
    """Every text in it, however deep."""
    if isinstance(value, str):
        storable("a text", value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _storable(name)
            _storable(inner)
    elif isinstance(value, list):
        for inner in value:
            _storable(inner)
