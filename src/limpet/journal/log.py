"""The log of one journal file: every text that Limpet wrote or found there, in an order that no crash can change.

Records are appended and synced; each has a checksum that covers the one before it, so a torn last record is recognised
and ignored. Texts are stored as the difference to the text before them.

    TOOK    the file has this text, and it contains everything known
    SAVE    a person or another program put this text into the file; it is to be merged
    INTENT  this text is about to be put into the file, with everything known in it
    COMMIT  the text of the last intent was put into the file
    ABORT   it was not
    KNOWN   digests of texts that were dropped from the log; none: earlier texts were not seen

The *head* is the text of the last TOOK or committed INTENT. A SAVE is pending until one of these says that it was
merged, and is not the head itself. An intent without an end was left by a process that died; `file.py` decides by what
is in the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from limpet import errors, limits
from limpet.journal.state import OpenFolder
from limpet.record import NamedTuple

NAME = "log"
TOOK, SAVE, INTENT, COMMIT, ABORT, KNOWN = b"T", b"S", b"I", b"C", b"A", b"K"
_TEXTS = (TOOK, SAVE, INTENT)
_MAGIC = b"limpet journal log 1\n"
_HEADER = struct.Struct(">cII16s")  # kind, sizes of the details and the body, checksum
_LEAST_STATES = 8


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


class Record(NamedTuple):
    kind: bytes
    details: dict[str, Any]
    body: bytes  # what differs from the text before, compressed


class JournalLog:
    """The log as it was read, and how it goes on. A process that appends holds the journal's lock."""

    def __init__(self, folder: OpenFolder) -> None:
        self._folder = folder
        self._handle = -1
        self._load()

    # --- reading ------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        self.records: list[Record] = []
        self.end = 0  # of the last whole record
        self.seal = b""  # the checksum of it
        self._last = b""  # the text of the last record that has one
        self.head: bytes | None = None
        self.git: list[str] = []  # what git had when the head was written
        self.intent: Record | None = None  # without an end
        self._intended = b""
        self.digests: set[str] = set()  # digests of every text there was
        self.pending: dict[str, bytes] = {}  # saves that are not merged, oldest first
        self.forgot = False  # whether older texts were dropped
        data = self._folder.read(NAME) or b""
        if data and not _MAGIC.startswith(data[: len(_MAGIC)]):
            raise errors.journal_log_unknown(os.path.join(self._folder.path, NAME))
        self._read(data)

    def _read(self, data: bytes) -> None:
        at = len(_MAGIC)
        while at + _HEADER.size <= len(data):
            kind, details_size, body_size, seal = _HEADER.unpack_from(data, at)
            stop = at + _HEADER.size + details_size + body_size
            details = data[at + _HEADER.size : at + _HEADER.size + details_size]
            body = data[stop - body_size : stop]
            if stop > len(data) or seal != _seal(self.seal, kind, details, body):
                break
            self._add(Record(kind, json.loads(details), body))
            at, self.seal, self.end = stop, seal, stop

    def _add(self, record: Record) -> None:
        self.records.append(record)
        kind, details = record.kind, record.details
        if kind in _TEXTS:
            self._last = _text(record, self._last)
            self.digests.add(details["text"])
        if kind == TOOK:
            self._moved(self._last, details)
        elif kind == SAVE:
            self.pending[details["text"]] = self._last
        elif kind == INTENT:
            self.intent, self._intended = record, self._last
        elif kind == COMMIT and self.intent is not None:
            self._moved(self._intended, self.intent.details)
        elif kind == KNOWN:
            self.digests.update(details["texts"])
            self.forgot = True
        if kind in (COMMIT, ABORT, TOOK):
            self.intent = None

    def _moved(self, text: bytes, details: dict[str, Any]) -> None:
        self.head, self.git = text, details["git"]
        for digest in details["merged"]:
            self.pending.pop(digest, None)

    @property
    def intended(self) -> bytes:
        """The text of the intent that has no end."""
        return self._intended

    def is_known(self, text: bytes) -> bool:
        return digest_of(text) in self.digests

    def is_beginning(self, data: bytes) -> bool:
        """Whether a known text begins with this one, or would have if a crash had not cut it off."""
        text = b""
        for record in self.records:
            if record.kind in _TEXTS:
                text = _text(record, text)
                if text.startswith(data):
                    return True
        return False

    def states(self) -> Iterator[bytes]:
        """Every text that was in the file, oldest first, without those that are pending."""
        return (text for _, text in self._states())

    def _states(self) -> Iterator[tuple[bytes, bytes]]:
        """The same with the kind of each record."""
        text = b""
        for record in self.records:
            if record.kind in _TEXTS:
                text = _text(record, text)
            is_pending = record.kind == SAVE and record.details["text"] in self.pending
            if record.kind in (TOOK, COMMIT) or (record.kind == SAVE and not is_pending):
                yield record.kind, text  # an intent is the last text before its commit

    # --- writing ------------------------------------------------------------------------------------------------------

    def took(self, text: bytes, git: Sequence[str], merged: Iterable[str] = ()) -> None:
        self.append([(TOOK, text, {"git": list(git), "merged": list(merged)})])

    def forget_earlier(self) -> None:
        """Record that the file may have had texts that are not in the log."""
        if not self.forgot:
            self.append([(KNOWN, b"", {"texts": []})])

    def append(self, parts: Sequence[tuple[bytes, bytes, dict[str, Any]]]) -> None:
        """Append records in one write, and sync. After an error the log is as it was before."""
        data, seal, last, records = b"", self.seal, self._last, []
        for kind, text, details in parts:
            record = _record(kind, text, last, details)
            last = text if kind in _TEXTS else last
            packed, seal = _packed(record, seal)
            data += packed
            records.append(record)
        if self._handle < 0:
            self._open()
        try:
            _write(self._handle, data, self.end)
            os.fdatasync(self._handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._handle, self.end)
            raise
        self.end, self.seal = self.end + len(data), seal
        for record in records:
            self._add(record)

    def _open(self) -> None:
        """Open the file for appending. What follows the last whole record was torn by a crash, and is removed."""
        self._handle = self._folder.open(NAME, os.O_RDWR | os.O_CREAT)
        if not self.end:
            os.ftruncate(self._handle, 0)
            _write(self._handle, _MAGIC, 0)
            os.fsync(self._handle)
            self._folder.sync()
            self.end = len(_MAGIC)
        elif os.fstat(self._handle).st_size != self.end:
            os.ftruncate(self._handle, self.end)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    # --- staying short ------------------------------------------------------------------------------------------------

    def is_long(self) -> bool:
        texts = sum(record.kind in _TEXTS for record in self.records)
        return self.end > limits.JOURNAL_LOG_BYTES or texts > 2 * self._most()

    def _most(self) -> int:
        """How many texts stay when others are dropped: reading the log builds each of them."""
        size = max(1, len(self.head or b""))
        return min(limits.JOURNAL_STATES, max(_LEAST_STATES, limits.JOURNAL_STATES_BYTES // size))

    def compact(self, without: Callable[[bytes], bool] | None = None) -> None:
        """Write the log again with the newest texts, and digests of the others.

        `without` names texts that must go now, for instance because what they contain was purged. The head and
        what is pending stay, less the pending ones that must go. A crash leaves the old log or the new one.
        """
        if self.intent is not None:
            return
        states = list(self._states())
        newest = states[-self._most() :]
        kept = [(kind, text) for kind, text in newest if not (without and without(text))]
        while kept and kept[0][0] == SAVE:
            # The oldest text must have all that was known then: what a save lacks would look new in the text after it.
            kept = kept[1:]
        parts: list[tuple[bytes, bytes, dict[str, Any]]] = []
        if self.forgot or len(kept) < len(states):
            order = [record.details["text"] for record in self.records if record.kind in _TEXTS]
            old = [*(digest for record in self.records if record.kind == KNOWN for digest in record.details["texts"])]
            digests = list(dict.fromkeys([*old, *order]))[-limits.JOURNAL_KNOWN :]
            parts.append((KNOWN, b"", {"texts": digests}))
        nothing: dict[str, Any] = {"git": [], "merged": []}
        parts += [(SAVE, text, {}) if kind == SAVE else (TOOK, text, nothing) for kind, text in kept]
        if self.head is not None:
            saves = [digest_of(text) for kind, text in kept if kind == SAVE]
            parts.append((TOOK, self.head, {"git": self.git, "merged": saves}))
        parts += [(SAVE, text, {}) for text in self.pending.values() if not (without and without(text))]
        self._replace(parts)

    def _replace(self, parts: Sequence[tuple[bytes, bytes, dict[str, Any]]]) -> None:
        data, seal, last = _MAGIC, b"", b""
        for kind, text, details in parts:
            record = _record(kind, text, last, details)
            last = text if kind in _TEXTS else last
            packed, seal = _packed(record, seal)
            data += packed
        self.close()
        self._folder.replace(NAME, data)
        self._load()


def _record(kind: bytes, text: bytes, last: bytes, details: dict[str, Any]) -> Record:
    if kind not in _TEXTS:
        return Record(kind, details, b"")
    head = _common(text, last)
    tail = _common(text[head:][::-1], last[head:][::-1])
    middle = text[head : len(text) - tail]
    return Record(kind, {**details, "text": digest_of(text), "head": head, "tail": tail}, zlib.compress(middle, 1))


def _common(one: bytes, other: bytes) -> int:
    """How many bytes at the beginning are the same."""
    most = min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _text(record: Record, last: bytes) -> bytes:
    head, tail = record.details["head"], record.details["tail"]
    return last[:head] + zlib.decompress(record.body) + last[len(last) - tail :]


def _packed(record: Record, seal: bytes) -> tuple[bytes, bytes]:
    details = json.dumps(record.details, separators=(",", ":")).encode()
    seal = _seal(seal, record.kind, details, record.body)
    return _HEADER.pack(record.kind, len(details), len(record.body), seal) + details + record.body, seal


def _seal(before: bytes, kind: bytes, details: bytes, body: bytes) -> bytes:
    sizes = struct.pack(">II", len(details), len(body))
    return hashlib.blake2b(before + kind + sizes + details + body, digest_size=16).digest()


def _write(handle: int, data: bytes, at: int) -> None:
    while data:
        written = os.pwrite(handle, data, at)
        data, at = data[written:], at + written
