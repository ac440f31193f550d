"""States of the disk and of other processes that keep a store from being written, and what to do about each.

`limpet doctor` prints them. Where nothing is in the way, there are none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from limpet import limits, platform
from limpet.store import Finding
from limpet.stores.sqlite.database import Database, why_unwritable
from limpet.stores.sqlite.lock import holder, read_note, refusal


def obstacles(db: Database) -> tuple[Finding, ...]:
    return (*_writable(db.path), *_lock(db.path), *_space(db.path))


def _writable(path: str) -> Iterator[Finding]:
    """A store that is not made yet has no obstacle: its first write says what is wrong with the folder."""
    if os.path.lexists(path) and (why := why_unwritable(path)):
        cure = "Remount it or change its rights, or copy it elsewhere with `limpet backup` and name that with --store"
        yield Finding("writing", False, f"{why}; it can be read, exported and backed up. {cure}")


def _lock(path: str) -> Iterator[Finding]:
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR)
    except OSError:
        return  # there is none yet, or the file cannot be written anyway
    try:
        if platform.here.try_lock(lock):
            platform.here.unlock(lock)
            return
        since = read_note(lock)
        if since is not None:
            seconds = max(0.0, time.time() - since)
            cure = "If it is stopped, let it go on (kill -CONT) or end it; until then nothing can be written"
            yield Finding("lock", False, f"{holder(lock)} has held the write lock for {seconds:,.0f} seconds. {cure}")
    except OSError as problem:
        yield Finding("lock", False, refusal(path, problem).message)
    finally:
        os.close(lock)


def _space(path: str) -> Iterator[Finding]:
    try:
        free = platform.here.free_bytes(os.path.dirname(path))
    except OSError:
        return
    if free < 2 * limits.RESERVE_BYTES and not why_unwritable(path):
        cure = "Free some disk space; deleting notes and `limpet output clear` work meanwhile"
        yield Finding("space", False, f"{free:,} bytes are left on the disk. {cure}")
