"""One output: its compressed chunks for reading, its pieces for search, and its rows. The same in every store.

A body is cut every OUTPUT_CHUNK_BYTES, and each chunk is compressed separately. The chunks that hold a range of bytes
follow from a division, those that hold a range of lines from `line_starts`. So a slice costs only its own chunks.

Three checksums protect a read. A chunk's own covers its compressed bytes and its owner; zstd adds one over the
decompressed bytes; and an output that is read in full is compared with its digest.

For recall an output is cut into pieces: complete lines of about four kilobytes, each with its terms.
"""

from __future__ import annotations

import importlib
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import lru_cache

from limpet import errors, limits
from limpet.light import Any, json
from limpet.model import PURGED, Output, OutputDraft, Scope, Stamp, Tombstone
from limpet.platform import openssl_sha256, sha256
from limpet.record import NamedTuple
from limpet.store import to_json
from limpet.stores.shared.checksums import checksum
from limpet.stores.shared.sql import Row
from limpet.text import words

FIELDS = f"{', '.join(Output._fields)}, stored, chunk, line_starts, hash"
LEVEL = 3  # zstd's own default: as fast as the disk, and text gets about four times smaller
FEED = b"\n"
FEW = 200  # line ends that are searched one by one
HEAD_CHARS = 48  # of a piece
CALL_CHARS = 500  # of an output's call, whose words are indexed too


class Packed(NamedTuple):
    """A body that is compressed and ready to write, before any lock is taken."""

    digest: str
    size: int
    lines: int
    line_starts: str
    chunks: tuple[Row, ...]  # number, hash, body
    stored: int


class StoredBody(NamedTuple):
    """An output and the layout of its chunks."""

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
    # Imported with the first output: it takes as long as the start of a command, and most commands have no outputs.
    # From Python 3.14 on it is part of the standard library.
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


# --- writing ----------------------------------------------------------------------------------------------------------


def digest_of(body: bytes) -> str:
    return sha256(body).hexdigest()


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


def unpack(chunks: Iterable[bytes], most: int) -> bytes | None:
    """The content of imported chunks; None when they are damaged or hold more than `most` bytes."""
    zstd, parts, left = _zstd(), [], min(most, limits.OUTPUT_MAX_BYTES)
    try:
        for small in chunks:
            decompressor = zstd.ZstdDecompressor()
            parts.append(decompressor.decompress(small, left + 1))  # a few bytes can hold gigabytes
            left -= len(parts[-1])
            if left < 0 or not decompressor.eof:
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
    return output_row(scope, output, packed)


def output_row(scope: Scope, output: Output, packed: Packed) -> Row:
    rest = (packed.stored, limits.OUTPUT_CHUNK_BYTES, packed.line_starts)
    return (*scope, *output, *rest, _fingerprint(scope, output, rest))


def refuse_unfit(draft: OutputDraft, stamp: Stamp, body: bytes) -> None:
    """Raises for a draft that no store could hold, before anything is written."""
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
    seal = openssl_sha256()(to_json([*scope, digest, number]).encode())
    seal.update(small)
    return seal.digest()


# --- reading ----------------------------------------------------------------------------------------------------------


def to_stored(place: str, scope: Scope, row: Row) -> StoredBody:
    """The output of a row of FIELDS, checked."""
    end = len(Output._fields)
    output, rest = Output._make(row[:end]), row[end:-1]
    if _fingerprint(scope, output, rest) != row[-1]:
        raise damaged(place, output.id)
    return StoredBody(output, rest[1], tuple(json.loads(rest[2])))


def damaged(place: str, id: object) -> errors.StoreDamaged:
    return errors.store_damaged(place, f"the output {id!r}")


def sealed(scope: Scope, stored: StoredBody, numbers: range, chunks: Iterable[Row]) -> list[bytes] | None:
    """The compressed bytes of these chunks, or None when one is missing or damaged."""
    rows = list(chunks)
    if [row[0] for row in rows] != list(numbers):
        return None
    sound = all(_seal(scope, stored.output.digest, number, small) == seal for number, seal, small in rows)
    return [small for _, _, small in rows] if sound else None


def opened(place: str, scope: Scope, stored: StoredBody, numbers: range, chunks: Iterable[Row]) -> bytes:
    """The content of these chunks, checked."""
    packed = sealed(scope, stored, numbers, chunks)
    if packed is None:
        raise damaged(place, stored.output.id)
    zstd = _zstd()
    try:
        body = b"".join([zstd.decompress(small) for small in packed])
    except zstd.ZstdError:
        raise damaged(place, stored.output.id) from None
    if len(body) != min(stored.output.size, numbers.stop * stored.chunk) - numbers.start * stored.chunk:
        raise damaged(place, stored.output.id)
    if numbers == stored.numbers and digest_of(body) != stored.output.digest:
        raise damaged(place, stored.output.id)
    return body


def cut_lines(stored: StoredBody, numbers: range, body: bytes, first: int, last: int) -> bytes:
    """The lines out of the chunks that hold them."""
    start = _after(body, 0, first - stored.line_starts[numbers.start])
    return body[start : _after(body, start, last - first + 1)]


def _after(body: bytes, start: int, feeds: int) -> int:
    """The offset after so many line ends, or the end when there are fewer."""
    stop = len(body)
    while feeds > FEW and stop - start > 1:  # bisect: counting is many times faster than finding
        middle = (start + stop) // 2
        before = body.count(FEED, start, middle)
        if before < feeds:
            start, feeds = middle, feeds - before
        else:
            stop = middle
    for _ in range(feeds):
        line_end = body.find(FEED, start)
        if line_end < 0:
            return len(body)
        start = line_end + 1
    return start


# --- tombstones -------------------------------------------------------------------------------------------------------

_WHAT = tuple(name for name in Tombstone._fields if name not in ("id", "digest", "gone_at"))


def gone_row(place: str, scope: Scope, row: Row, why: str, by: str, now: int) -> Row:
    """The row of a tombstone for an output's row. A damaged row passes on nothing but its id and digest."""
    id, digest = row[0], row[1]
    try:
        output = to_stored(place, scope, row).output._asdict()
    except errors.StoreDamaged:
        output = Output(id, digest, "", "", "", 0, 0, "", "", 0, 0, 0, 0)._asdict()
    fields = output | {"why": why, "by": by, "gone_at": now}
    if why == PURGED:
        fields["call"] = ""  # a purge also removes how to produce the output again
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


# --- pieces for search ------------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    start: int  # in the output, in bytes
    size: int
    line: int  # of the output that it begins in
    head: str
    terms: list[str]


def pieces(output: Output, read: Callable[[int, int], bytes]) -> list[Piece]:
    """The pieces of an output. Of a very large one only the beginning and the end, where most information is."""
    half = limits.OUTPUT_INDEX_BYTES // 2
    if output.size <= limits.OUTPUT_INDEX_BYTES:
        parts = _cut(read(0, output.size), 0, 1)
    else:
        tail = output.size - half
        line = output.lines - read(tail, output.size).count(b"\n")
        parts = [*_cut(read(0, half), 0, 1), *_cut(read(tail, output.size), tail, max(1, line))]
    # The words of the call and of the preview find the first piece.
    about = words.terms(words.index_words(f"{output.tool} {output.call[:CALL_CHARS]} {output.preview}"))
    first = parts[0] if parts else Piece(0, 0, 1, "", [])
    return [first._replace(terms=first.terms + about), *parts[1:]]


def _cut(body: bytes, offset: int, line: int) -> list[Piece]:
    parts = []
    at = 0
    while at < len(body):
        stop = min(at + limits.OUTPUT_PIECE_BYTES, len(body))
        if stop < len(body):
            stop = (body.rfind(b"\n", at, stop) + 1) or _character_start(body, stop)
        text = body[at:stop].decode("utf-8", "replace")
        terms = [term for term in words.terms(words.index_words(text)) if term]
        parts.append(Piece(offset + at, stop - at, line, _storable(text[:HEAD_CHARS]), terms))
        line += body.count(b"\n", at, stop)
        at = stop
    return parts


def _character_start(body: bytes, stop: int) -> int:
    """The start of the character at `stop`: UTF-8 continuation bytes begin with the bits 10."""
    while body[stop] & 0xC0 == 0x80:
        stop -= 1
    return stop


def _storable(text: str) -> str:
    return text.replace("\x00", " ")
