"""What every store does alike with one output: cutting its bytes into chunks, rows to values and back, and checksums.

A body is cut every OUTPUT_CHUNK_BYTES, and each chunk is compressed by itself. Which chunks hold a range of bytes is
a division; which hold a range of lines is looked up in `line_starts`. So a slice costs the chunks it lies in.

Three checksums stand between the disk and whoever reads. That of a chunk is over its compressed bytes and whose they
are; zstd adds one over what comes out of them; and whatever is read whole is compared with its digest.
"""

from __future__ import annotations

import importlib
import json
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from limpet import errors, limits
from limpet.checksums import checksum
from limpet.model import PURGED, Output, OutputDraft, Scope, Stamp, Tombstone
from limpet.store import to_json

Row = tuple[Any, ...]
FIELDS = f"{', '.join(Output._fields)}, stored, chunk, line_starts, hash"
LEVEL = 3  # zstd's own default: as fast as the disk, and text gets about four times smaller
FEED = b"\n"
FEW = 200  # line ends that are looked for one by one


class Packed(NamedTuple):
    """A body made ready to be written, before any lock is taken."""

    digest: str
    size: int
    lines: int
    line_starts: str
    chunks: tuple[Row, ...]  # number, hash, body
    stored: int


class Held(NamedTuple):
    """An output and where its bytes are."""

    output: Output
    chunk: int
    line_starts: tuple[int, ...]

    @property
    def numbers(self) -> range:
        return range(len(self.line_starts))

    def with_bytes(self, start: int, stop: int) -> range:
        """The chunks that hold these bytes, of which there is at least one."""
        return range(start // self.chunk, (stop - 1) // self.chunk + 1)

    def with_lines(self, first: int, last: int) -> range:
        """The chunks that hold these lines: from the one with the line end before them to the one with their last."""
        return range(max(0, bisect_left(self.line_starts, first) - 1), bisect_right(self.line_starts, last))


@lru_cache
def _zstd() -> Any:
    # Loaded when the first output comes along: it takes as long as the start of a whole command, and most commands
    # have nothing to do with outputs. From Python 3.14 on it is part of Python.
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


# --- writing ----------------------------------------------------------------------------------------------------------


def digest_of(body: bytes) -> str:
    import hashlib

    return hashlib.sha256(body).hexdigest()


def pack(scope: Scope, digest: str, body: bytes) -> Packed:
    zstd, step = _zstd(), limits.OUTPUT_CHUNK_BYTES
    parameter = zstd.CompressionParameter
    compressor = zstd.ZstdCompressor(options={parameter.compression_level: LEVEL, parameter.checksum_flag: 1})
    view, chunks, starts, line = memoryview(body), [], [], 1
    for number, at in enumerate(range(0, len(body), step)):
        small = compressor.compress(view[at : at + step], compressor.FLUSH_FRAME)
        chunks.append((number, _seal(scope, digest, number, small), small))
        starts.append(line)
        line += body.count(FEED, at, at + step)
    lines = line - 1 if not body or body.endswith(FEED) else line
    return Packed(digest, len(body), lines, to_json(starts), tuple(chunks), sum(len(row[2]) for row in chunks))


def unpacked(chunks: Iterable[bytes], most: int) -> bytes | None:
    """What chunks from somewhere else hold; None when they are damaged or hold more than `most` bytes."""
    zstd, parts, left = _zstd(), [], min(most, limits.OUTPUT_MAX_BYTES)
    try:
        for small in chunks:
            opener = zstd.ZstdDecompressor()
            parts.append(opener.decompress(small, left + 1))  # a few bytes can hold gigabytes
            left -= len(parts[-1])
            if left < 0 or not opener.eof:
                return None
    except zstd.ZstdError:
        return None
    return b"".join(parts)


def new_row(scope: Scope, id: str, draft: OutputDraft, packed: Packed, stamp: Stamp) -> Row:
    """The values of a new row, in the order of tenant, project and FIELDS."""
    output = Output(
        id,
        packed.digest,
        draft.tool,
        stamp.session,
        draft.call,
        packed.size,
        packed.lines,
        draft.shape,
        draft.preview,
        draft.redacted,
        stamp.now,
        stamp.now,
        0,
    )
    return kept_row(scope, output, packed)


def kept_row(scope: Scope, output: Output, packed: Packed) -> Row:
    rest = (packed.stored, limits.OUTPUT_CHUNK_BYTES, packed.line_starts)
    return (*scope, *output, *rest, _fingerprint(scope, output, rest))


def refuse_unfit(draft: OutputDraft, stamp: Stamp, body: bytes) -> None:
    """What no store could keep is refused before anything is done."""
    if len(body) > limits.OUTPUT_MAX_BYTES:
        raise errors.output_too_big(len(body), limits.OUTPUT_MAX_BYTES)
    for name, text in (*zip(draft._fields[:4], draft[:4], strict=True), ("session", stamp.session)):
        if "\0" in text:
            raise errors.unstorable(f"the {name} of the output", "a NUL character")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise errors.unstorable(f"the {name} of the output", "half of a surrogate pair") from None


def _fingerprint(scope: Scope, output: Output, rest: Row) -> bytes:
    """SHA-256 over every field but `used_at` and `uses`."""
    return checksum(to_json([*scope, *output[:-2], *rest]).encode())


def _seal(scope: Scope, digest: str, number: int, small: bytes) -> bytes:
    import hashlib

    seal = hashlib.sha256(to_json([*scope, digest, number]).encode())
    seal.update(small)
    return seal.digest()


# --- reading ----------------------------------------------------------------------------------------------------------


def to_held(place: str, scope: Scope, row: Row) -> Held:
    """The output of a row of FIELDS, checked."""
    end = len(Output._fields)
    output, rest = Output._make(row[:end]), row[end:-1]
    if _fingerprint(scope, output, rest) != row[-1]:
        raise damaged(place, output.id)
    return Held(output, rest[1], tuple(json.loads(rest[2])))


def damaged(place: str, id: object) -> errors.StoreDamaged:
    return errors.store_damaged(place, f"the output {id!r}")


def sealed(scope: Scope, held: Held, numbers: range, chunks: Iterable[Row]) -> list[bytes] | None:
    """The compressed bytes of these chunks, or None when one is missing or not what was written."""
    found = list(chunks)
    if [row[0] for row in found] != list(numbers):
        return None
    sound = all(_seal(scope, held.output.digest, number, small) == seal for number, seal, small in found)
    return [small for _, _, small in found] if sound else None


def opened(place: str, scope: Scope, held: Held, numbers: range, chunks: Iterable[Row]) -> bytes:
    """What these chunks hold, checked."""
    packed = sealed(scope, held, numbers, chunks)
    if packed is None:
        raise damaged(place, held.output.id)
    zstd = _zstd()
    try:
        body = b"".join([zstd.decompress(small) for small in packed])
    except zstd.ZstdError:
        raise damaged(place, held.output.id) from None
    if len(body) != min(held.output.size, numbers.stop * held.chunk) - numbers.start * held.chunk:
        raise damaged(place, held.output.id)
    if numbers == held.numbers and digest_of(body) != held.output.digest:
        raise damaged(place, held.output.id)
    return body


def cut_lines(held: Held, numbers: range, body: bytes, first: int, last: int) -> bytes:
    """The lines out of the chunks that hold them."""
    start = _after(body, 0, first - held.line_starts[numbers.start])
    return body[start : _after(body, start, last - first + 1)]


def _after(body: bytes, start: int, feeds: int) -> int:
    """The place after so many line ends, or the end when there are not so many."""
    stop = len(body)
    while feeds > FEW and stop - start > 1:  # by halves: counting is many times faster than finding
        middle = (start + stop) // 2
        before = body.count(FEED, start, middle)
        if before < feeds:
            start, feeds = middle, feeds - before
        else:
            stop = middle
    for _ in range(feeds):
        found = body.find(FEED, start)
        if found < 0:
            return len(body)
        start = found + 1
    return start


# --- what is gone -----------------------------------------------------------------------------------------------------

_WHAT = tuple(name for name in Tombstone._fields if name not in ("id", "digest", "gone_at"))


def gone_row(place: str, scope: Scope, row: Row, why: str, by: str, now: int) -> Row:
    """The row of a tombstone for an output's row. Of a damaged one nothing but its name is passed on."""
    id, digest = row[0], row[1]
    try:
        output = to_held(place, scope, row).output._asdict()
    except errors.StoreDamaged:
        output = Output(id, digest, "", "", "", 0, 0, "", "", 0, 0, 0, 0)._asdict()
    fields = output | {"why": why, "by": by, "gone_at": now}
    if why == PURGED:
        fields["call"] = ""  # nobody is to be told how to get it again
    return tombstone_row(scope, Tombstone(**{name: fields[name] for name in Tombstone._fields}))


def tombstone_row(scope: Scope, stone: Tombstone) -> Row:
    """The values of its row: tenant, project, id, digest, gone_at, what and hash."""
    what = to_json([getattr(stone, name) for name in _WHAT])
    name = (stone.id, stone.digest, stone.gone_at)
    return (*scope, *name, what, _gone_hash(scope, *name, what))


def to_tombstone(place: str, scope: Scope, row: Row) -> Tombstone:
    """The tombstone of a row of id, digest, gone_at, what and hash, checked."""
    id, digest, gone_at, what, seal = row
    if _gone_hash(scope, id, digest, gone_at, what) != seal:
        raise errors.store_damaged(place, f"what is known of the output {id!r}")
    return Tombstone(id=id, digest=digest, gone_at=gone_at, **dict(zip(_WHAT, json.loads(what), strict=True)))


def _gone_hash(scope: Scope, *fields: object) -> bytes:
    return checksum(to_json([*scope, *fields]).encode())
