"""Export and import as JSON Lines: a header, all entries, all changes, then all outputs and tombstones.

An export and an import keep all of these. The call log is not exported: savings, calls and reads.

{"output": {…}} comes before its {"chunk": {"id": …, "number": …, "zstd": base64}} lines; {"tombstone": {…}} is alone.
An import spools these lines to an unnamed file until it has read all of them. A fault is found before anything is
written, and the store is not locked while a slow pipe is read. Secrets are masked in all of it. An output that changes
by that has another id, because ids are made from the content, and what cites it in the same import cites the new one.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import Any

from limpet import errors, limits
from limpet.catalogue.operation import INTEGER_MAX, Context, Json, storable
from limpet.model import (
    IMPORT,
    KINDS,
    MESSAGE,
    PROPOSAL,
    SEALS,
    SESSION,
    TYPED,
    Draft,
    Entry,
    Output,
    Tombstone,
    lowest,
)
from limpet.outputs.prepare import prepare
from limpet.redaction import Masking, Redacted, redact
from limpet.redaction.entries import masked_entry
from limpet.store import Decide, Incoming, IncomingOutput, IncomingTombstone, entry_from, to_json
from limpet.stores.shared import chunks
from limpet.upkeep.incoming import ImportRules
from limpet.window import transcript

FORMAT = 1
NOT_IMPORTED = (SEALS, PROPOSAL)  # they speak for a person of where they were written
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


def export_lines(ctx: Context, *, outputs: bool = True) -> Generator[str]:
    """The project as lines, without line ends."""
    yield to_json({"limpet": FORMAT, "project": ctx.scope.project})
    for kind, record in ctx.store.entries.dump(ctx.scope):
        yield to_json({kind: record})
    # After the entries, so that each output that an entry cites is exported, or its tombstone.
    for record in _output_records(ctx) if outputs else ():
        yield to_json(record)


def import_lines(ctx: Context, lines: Iterable[str], *, merge: bool = False, exact: bool = True) -> int:
    """Read an export. An empty project becomes what was exported, with its history.

    With `exact` it speaks with the same voice: what people and agents wrote is theirs, pins and seals count. Without it
    everything is data that was imported, as in a merge.

    With `merge`, entries are added to the project as new changes. Equal entries are skipped, and an entry that differs
    from that of the project stops the import before anything is written.
    """
    with ImportSpool() as read, ImportSpool() as clean:
        waiting = read
        exact = exact and not merge
        entries, events = _parse(lines, waiting, ImportRules.at(ctx.now, exact=exact))
        masking = ctx.masking or Masking()
        if read.count and not (masking.keep and exact):
            waiting = clean
            renamed = _checked_outputs(ctx, read, clean, masking, exact=exact)
            entries = [_renamed(entry, renamed) for entry in entries]
            events = [_renamed_event(event, renamed) for event in events]
        if not masking.keep:
            entries = [_masked(entry, masking) for entry in entries]
            events = [_masked_event(event, masking) for event in events]
        if not exact:
            entries = [_as_data(entry) for entry in entries if entry.kind not in NOT_IMPORTED]
            events = [_event_as_data(event) for event in events if event["kind"] not in NOT_IMPORTED]
        if merge:
            return _merge(ctx, entries, waiting)
        return ctx.store.load(ctx.scope, entries, events, waiting.arriving())


def _as_data(entry: Entry) -> Entry:
    extra = {name: value for name, value in entry.extra.items() if name != TYPED}  # a file proves no person's words
    return entry._replace(origin=lowest(entry.origin, IMPORT), pinned=False, extra=extra)


def _event_as_data(event: dict[str, Any]) -> dict[str, Any]:
    before = event["before"]
    return {**event, "by": f"{IMPORT}/{event['by']}", "before": before and _as_data(Entry(**before))._asdict()}


def _merge(ctx: Context, entries: list[Entry], waiting: ImportSpool) -> int:
    """Add what is new, in one transaction. A conflict is found before the first write, and once more inside of it."""
    new = [
        entry
        for entry in entries
        if not _is_present(ctx, ctx.store.entries.read(ctx.scope, entry.kind, entry.key), entry)
    ]
    # Sessions come first: the change that adds the first entry begins the session of the import, if there is none.
    new.sort(key=lambda entry: entry.kind != SESSION)
    # The project's clock stays as it is: the store mints no id that is taken, also not one that is ahead of it.
    edits = [(entry.kind, entry.key, _adding(ctx, entry)) for entry in new]
    if not edits:
        ctx.store.outputs.add(ctx.scope, waiting.arriving())
        return 0
    incoming = waiting.arriving() if waiting.count else None
    ctx.store.entries.edit_all(ctx.scope, edits, ctx.stamp("import"), incoming)
    return len(new)


def _is_present(ctx: Context, present: Entry | None, entry: Entry) -> bool:
    """Whether the project has the entry. Another one of that name is a conflict.

    A session says who worked on what: one without a task stands for any, and so does that of the import itself.
    """
    if present is None:
        return False
    same = (present.content, present.tags, present.done) == (entry.content, entry.tags, entry.done)
    alike = entry.kind == SESSION and (entry.key == ctx.session or not (present.content and entry.content))
    if not same and not alike:
        raise errors.import_conflict(entry.kind, entry.key)
    return True


def _adding(ctx: Context, entry: Entry) -> Decide:
    draft = Draft(entry.content, entry.session, entry.tags, entry.done, False, entry.extra)
    return lambda before: None if _is_present(ctx, before, entry) else draft


def several(exports: Iterable[Generator[str]]) -> Generator[str]:
    """Exports of several projects as one, for a merge: without their changes, and with everything once."""
    names: dict[tuple[str, str], Any] = {}
    yield to_json({"limpet": FORMAT})
    for export in exports:
        is_new = True
        with closing(export):  # now, and not when it is collected: the store may be closed by then
            for line in islice(export, 1, None):
                ((what, record),) = json.loads(line).items()
                if what == "event":
                    continue
                if what == "entry":
                    is_new = _is_first(names, (record["kind"], record["key"]), record)
                elif what != "chunk":  # chunks follow their output, and go where it goes
                    is_new = names.setdefault(("output", record["id"]), record) is record
                if is_new:
                    yield line


def _is_first(names: dict[tuple[str, str], Any], name: tuple[str, str], record: Json) -> bool:
    text = record["content"], record["tags"], record["done"]
    earlier = names.setdefault(name, text)
    if earlier is text:
        return True
    if earlier != text and name[0] != SESSION:
        raise errors.import_conflict(*name)
    return False


def _parse(lines: Iterable[str], waiting: ImportSpool, rules: ImportRules) -> tuple[list[Entry], list[dict[str, Any]]]:
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
        elif record.keys() & OUTPUT_RECORDS:
            waiting.add(number, line, record, rules)
        elif "entry" in record:
            entries.append(_entry(number, record["entry"], rules))
            _once(number, names, entries[-1][:2])
        elif "event" in record:
            events.append(_event(number, record["event"], rules))
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


# --- outputs ----------------------------------------------------------------------------------------------------------

_REFERENCE = re.compile(r"(?<![0-9a-f])[0-9a-f]{12,64}(?![0-9a-f])")
Renamed = Mapping[str, tuple[str, str]]  # by the shortest id: the digest that an output had, and that it has now


def _checked_outputs(ctx: Context, read: ImportSpool, clean: ImportSpool, masking: Masking, *, exact: bool) -> Renamed:
    """Spool the outputs again as they may be stored. Those with another id now."""
    renamed: dict[str, tuple[str, str]] = {}
    for item in read.arriving():
        if isinstance(item, IncomingTombstone):
            gone = item.tombstone
            clean.put(item._replace(tombstone=gone._replace(call=masking.text(gone.call))))
            continue
        masked = _checked_output(ctx, item, masking, exact=exact)
        if masked.output.digest != item.output.digest:
            renamed[item.output.digest[: limits.OUTPUT_ID_CHARS]] = item.output.digest, masked.output.digest
        clean.put(masked)
    return renamed


def _checked_output(ctx: Context, item: IncomingOutput, masking: Masking, *, exact: bool) -> IncomingOutput:
    """An output without its secrets. Unless it is `exact`, a file does not say what a preview shows: keeping
    the same text later would answer with it."""
    output = item.output
    stored = ctx.store.outputs.find(ctx.scope, output.digest)
    if stored is not None and stored.digest == output.digest:
        return item  # a person has kept it, and the import leaves it alone
    fields = output._replace(call=masking.text(output.call), preview=masking.text(output.preview))
    body = chunks.unpack(item.chunks, output.size)
    if body is None or chunks.digest_of(body) != output.digest:
        return item  # the store refuses it, and says why
    text, encoding = _decoded_text(body)
    masked = Redacted(text, 0, ()) if masking.keep else redact(text)
    if exact and not masked.count:
        return item._replace(output=fields)
    if masked.count:
        masking.note(output.digest, masked)
    tokens = ctx.bounds.outputs.preview_length
    draft = prepare(output.tool, masked.text, fields.call, masks=False, preview_tokens=tokens).draft
    fields = fields._replace(shape=draft.shape, preview=draft.preview)
    if not masked.count:
        return item._replace(output=fields)
    body = masked.text.encode(*encoding)
    packed = chunks.pack(ctx.scope, chunks.digest_of(body), body)
    fields = fields._replace(
        id=packed.digest[: limits.OUTPUT_ID_CHARS],
        digest=packed.digest,
        size=packed.size,
        lines=packed.lines,
        redacted=output.redacted + masked.count,
    )
    return IncomingOutput(item.line, fields, tuple(row[2] for row in packed.chunks))


def _decoded_text(body: bytes) -> tuple[str, tuple[str, str]]:
    """The text of an output, and how it is encoded again. Any bytes can be in an import."""
    for encoding in (("utf-8", "surrogatepass"), ("latin-1", "strict")):
        with suppress(UnicodeDecodeError):
            return body.decode(*encoding), encoding
    raise AssertionError("latin-1 decodes everything")


def _renamed(entry: Entry, renamed: Renamed) -> Entry:
    """The entry with the new ids of outputs. They are as long as the old ones, so places in the text stay the same."""
    if not renamed:
        return entry
    extra = json.loads(_new_ids(json.dumps(entry.extra, default=dict), renamed))
    tags = tuple(_new_ids(tag, renamed) for tag in entry.tags)
    return entry._replace(content=_new_ids(entry.content, renamed), extra=extra, tags=tags)


def _renamed_event(event: dict[str, Any], renamed: Renamed) -> dict[str, Any]:
    if not renamed:
        return event
    before = event["before"]
    detail = json.loads(_new_ids(json.dumps(event["detail"]), renamed))
    return {**event, "detail": detail, "before": before and _renamed(Entry(**before), renamed)._asdict()}


def _new_ids(text: str, renamed: Renamed) -> str:
    def new_id(match: re.Match[str]) -> str:
        id = match.group()
        old, new = renamed.get(id[: limits.OUTPUT_ID_CHARS], ("", ""))
        return new[: len(id)] if old.startswith(id) else id

    return _REFERENCE.sub(new_id, text)


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


def _entry(number: int, record: object, rules: ImportRules) -> Entry:
    fields = _typed(number, record, _ENTRY_TYPES)
    if fields["kind"] not in KINDS:
        raise errors.bad_import(number, f"its kind {errors.quoted(fields['kind'])} is not known")
    if not all(isinstance(tag, str) for tag in fields["tags"]):
        raise errors.bad_import(number, "its tags are not all strings")
    entry = entry_from(fields)
    rules.entry(number, entry)
    return entry


def _event(number: int, record: object, rules: ImportRules) -> dict[str, Any]:
    fields = _typed(number, record, _EVENT_TYPES)
    rules.event(number, fields)
    before = fields.get("before")
    return fields | {"before": None if before is None else _entry(number, before, rules)._asdict()}


# --- outputs ----------------------------------------------------------------------------------------------------------

OUTPUT_RECORDS = frozenset({"output", "chunk", "tombstone"})
SPOOL_BYTES = 4 << 20  # what stays in memory before a file is used
_NUMBERS = {"size", "lines", "redacted", "created_at", "used_at", "uses", "gone_at"}
_OUTPUT_TYPES = {name: int if name in _NUMBERS else str for name in Output._fields} | {"chunks": int}
_TOMBSTONE_TYPES = {name: int if name in _NUMBERS else str for name in Tombstone._fields}
_CHUNK_TYPES = {"id": str, "number": int, "zstd": str}


def _output_records(ctx: Context) -> Iterator[Json]:
    """All outputs and tombstones of a project, as records of an export."""
    for record in ctx.store.outputs.dump(ctx.scope):
        if isinstance(record, Tombstone):
            yield {"tombstone": record._asdict()}
            continue
        yield from _records(*record)


def _records(output: Output, pieces: Sequence[bytes]) -> Iterator[Json]:
    yield {"output": output._asdict() | {"chunks": len(pieces)}}
    for number, body in enumerate(pieces):
        yield {"chunk": {"id": output.id, "number": number, "zstd": base64.b64encode(body).decode()}}


class ImportSpool:
    """Checked lines of an import, spooled until all lines are checked."""

    def __init__(self) -> None:
        import tempfile

        self._file = tempfile.SpooledTemporaryFile(SPOOL_BYTES, "w+", encoding="utf-8", newline="\n")  # noqa: SIM115
        self._ids: set[str] = set()
        self._expected: tuple[str, int, int] | None = None  # the chunk that must come next: id, number, of how many
        self.count = 0

    def __enter__(self) -> ImportSpool:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def add(self, number: int, line: str, record: Mapping[str, Any], rules: ImportRules) -> None:
        if "chunk" in record:
            self._chunk(number, _typed(number, record["chunk"], _CHUNK_TYPES))
        else:
            self.finish(number)
            kind, types = ("output", _OUTPUT_TYPES) if "output" in record else ("tombstone", _TOMBSTONE_TYPES)
            fields = _typed(number, record[kind], types)
            rules.output(number, fields)
            if fields["id"] in self._ids:
                raise errors.bad_import(number, "it says again what an earlier line said")
            self._ids.add(fields["id"])
            if kind == "output":
                if fields["size"] > limits.OUTPUT_MAX_BYTES:
                    raise errors.bad_import(number, f"its output is bigger than {limits.OUTPUT_MAX_BYTES:,} bytes")
                self._expected = (fields["id"], 0, fields["chunks"]) if fields["chunks"] else None
        self.count += 1
        self._file.write(f"{number} {line}\n")

    def put(self, item: Incoming) -> None:
        """Spool an output that was read already."""
        self.count += 1
        if isinstance(item, IncomingTombstone):
            self._file.write(f"{item.line} {to_json({'tombstone': item.tombstone._asdict()})}\n")
            return
        for record in _records(item.output, item.chunks):
            self._file.write(f"{item.line} {to_json(record)}\n")

    def _chunk(self, number: int, fields: Mapping[str, Any]) -> None:
        if self._expected is None or (fields["id"], fields["number"]) != self._expected[:2]:
            raise errors.bad_import(number, "it is not the chunk that has to come next")
        _decoded(number, fields["zstd"])
        id, at, most = self._expected
        self._expected = (id, at + 1, most) if at + 1 < most else None

    def finish(self, number: int) -> None:
        """Check that no chunk of the last output is missing."""
        if self._expected is not None:
            id, at, most = self._expected
            raise errors.bad_import(
                number, f"chunk {at + 1:,} of {most:,} of the output {errors.quoted(id)} is missing"
            )

    def arriving(self) -> Iterator[Incoming]:
        """All of them, each output with its chunks."""
        self._file.seek(0)
        output: Output | None = None
        line, missing = 0, 0
        pieces: list[bytes] = []
        for row in self._file:
            number, _, text = row.partition(" ")
            record = json.loads(text)
            if "tombstone" in record:
                fields = record["tombstone"]
                yield IncomingTombstone(int(number), Tombstone(**{name: fields[name] for name in Tombstone._fields}))
                continue
            if "output" in record:
                fields = record["output"]
                output, line, missing = (
                    Output._make(fields[name] for name in Output._fields),
                    int(number),
                    fields["chunks"],
                )
                pieces = []
            else:
                pieces.append(_decoded(int(number), record["chunk"]["zstd"]))
                missing -= 1
            if output is not None and missing == 0:
                yield IncomingOutput(line, output, tuple(pieces))
                output = None


def _decoded(number: int, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise errors.bad_import(number, "its zstd is not base64") from None


def _typed(number: int, record: object, types: Mapping[str, type]) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise errors.bad_import(number, "it is not a JSON object")
    for name, expected in types.items():
        if type(record.get(name)) is not expected:
            raise errors.bad_import(number, f"its field {name} is missing or not {expected.__name__}")
        if expected is int and not 0 <= record[name] <= INTEGER_MAX:
            raise errors.bad_import(number, f"its field {name} is out of range")
    try:
        _all_storable(record)
    except errors.BadInput as problem:
        raise errors.bad_import(number, problem.message.partition(",")[0]) from None
    return record


def _all_storable(value: object) -> None:
    """Every text in it, however deep."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, str):
            if not part.isascii() or "\x00" in part:
                storable("a text", part)
        elif isinstance(part, dict):
            left += part
            left += part.values()
        elif isinstance(part, list):
            left += part
