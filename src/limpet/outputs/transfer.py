"""Outputs in an export: a line that says what an output is, one for each of its chunks, and one for each that is gone.

{"output": {…}} comes before its {"chunk": {"id": …, "number": …, "zstd": base64}} lines; {"tombstone": {…}} is alone.
An import spools these lines to an unnamed file until it has read all of them. A fault is found before anything is
written, and the store is not locked while a slow pipe is read.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

from limpet import errors, limits
from limpet.catalogue.check import INTEGER_MAX, storable
from limpet.catalogue.operation import Context, Json
from limpet.model import Output, Tombstone
from limpet.store import Incoming, IncomingOutput, IncomingTombstone

KINDS = frozenset({"output", "chunk", "tombstone"})
SPOOL_BYTES = 4 << 20  # what stays in memory before a file is used
_NUMBERS = {"size", "lines", "redacted", "created_at", "used_at", "uses", "gone_at"}
_OUTPUT_TYPES = {name: int if name in _NUMBERS else str for name in Output._fields} | {"chunks": int}
_TOMBSTONE_TYPES = {name: int if name in _NUMBERS else str for name in Tombstone._fields}
_CHUNK_TYPES = {"id": str, "number": int, "zstd": str}


def leaving(ctx: Context) -> Iterator[Json]:
    """All outputs and tombstones of a project, as records of an export."""
    for record in ctx.store.outputs.dump(ctx.scope):
        if isinstance(record, Tombstone):
            yield {"tombstone": record._asdict()}
            continue
        output, chunks = record
        yield {"output": output._asdict() | {"chunks": len(chunks)}}
        for number, body in enumerate(chunks):
            yield {"chunk": {"id": output.id, "number": number, "zstd": base64.b64encode(body).decode()}}


class Waiting:
    """Checked lines of an import, spooled until all lines are checked."""

    def __init__(self) -> None:
        import tempfile

        self._file = tempfile.SpooledTemporaryFile(SPOOL_BYTES, "w+", encoding="utf-8", newline="\n")  # noqa: SIM115
        self._ids: set[str] = set()
        self._expected: tuple[str, int, int] | None = None  # the chunk that must come next: id, number, of how many
        self.count = 0

    def __enter__(self) -> Waiting:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def add(self, number: int, line: str, record: Mapping[str, Any]) -> None:
        if "chunk" in record:
            self._chunk(number, typed(number, record["chunk"], _CHUNK_TYPES))
        else:
            self.finish(number)
            kind, types = ("output", _OUTPUT_TYPES) if "output" in record else ("tombstone", _TOMBSTONE_TYPES)
            fields = typed(number, record[kind], types)
            if fields["id"] in self._ids:
                raise errors.bad_import(number, "it says again what an earlier line said")
            self._ids.add(fields["id"])
            if kind == "output":
                if fields["size"] > limits.OUTPUT_MAX_BYTES:
                    raise errors.bad_import(number, f"its output is bigger than {limits.OUTPUT_MAX_BYTES:,} bytes")
                self._expected = (fields["id"], 0, fields["chunks"]) if fields["chunks"] else None
        self.count += 1
        self._file.write(f"{number} {line}\n")

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
        chunks: list[bytes] = []
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
                chunks = []
            else:
                chunks.append(_decoded(int(number), record["chunk"]["zstd"]))
                missing -= 1
            if output is not None and missing == 0:
                yield IncomingOutput(line, output, tuple(chunks))
                output = None


def _decoded(number: int, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise errors.bad_import(number, "its zstd is not base64") from None


def typed(number: int, record: object, types: Mapping[str, type]) -> dict[str, Any]:
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
    if isinstance(value, str):
        storable("a text", value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _all_storable(name)
            _all_storable(inner)
    elif isinstance(value, list):
        for inner in value:
            _all_storable(inner)
