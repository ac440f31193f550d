"""Room that is kept beside a store, so that things can be deleted when the disk is full.

SQLite needs space even to delete: a transaction is written to the log first. The file `.reserve` takes some space while
there is enough of it. It is removed when a transaction finds the disk full, for as long as it takes to copy the log
into the database, and used by transactions that delete something.
"""

from __future__ import annotations

import os
from contextlib import suppress

from limpet import limits, platform


class Reserve:
    def __init__(self, path: str) -> None:
        self._path = f"{path}.reserve"
        self.exists = False  # known to exist
        self.scarce = False  # whether the space was scarce when it was last looked at

    def keep(self) -> bool:
        """Take half of the space that is left, within bounds. The write lock is held. False when too little is left."""
        if not self.exists and not os.path.exists(self._path):
            free = self._free()
            size = min(limits.RESERVE_BYTES, free // 2)
            if size < limits.RESERVE_LEAST_BYTES or not self._take(size):
                return False
        self.exists = True
        return True

    def release(self) -> int:
        """Give the space back to the disk. How much it was."""
        self.exists = False
        try:
            size = os.stat(self._path).st_size
            os.unlink(self._path)
        except OSError:
            return 0
        return size

    def keep_again(self, size: int) -> bool:
        """Take back what was released, or what is left of it. Whether a write that frees nothing has room beside it."""
        free = self._free()
        if (less := min(size, free - limits.RESERVE_MARGIN_BYTES)) >= limits.RESERVE_LEAST_BYTES:
            self.exists = self._take(less)
        return self.exists and free >= size + limits.RESERVE_LEAST_BYTES

    def is_scarce(self) -> bool:
        """Whether there was little space when it was last looked at. A process looks before its first commit."""
        if not self.exists:
            self.exists = os.path.exists(self._path)
            self.scarce = self.exists and self._free() < limits.WAL_SCARCE_BYTES
        return self.scarce

    def would_shrink(self, growth: int, log: int) -> bool:
        """Whether less than the reserve is left once the database has grown by so much and the log takes no space."""
        return self.exists and self._free() + log - growth < limits.RESERVE_MARGIN_BYTES

    def log_pages(self) -> int:
        """How long the log may get. Where space is scarce, no longer than the reserve can take into the database."""
        self.scarce = self._free() < limits.WAL_SCARCE_BYTES
        return limits.WAL_SCARCE_PAGES if self.scarce else limits.WAL_CHECKPOINT_PAGES

    def _take(self, size: int) -> bool:
        try:
            file = platform.here.create_file(self._path)
            try:
                platform.here.allocate(file, size)
            finally:
                os.close(file)
        except FileExistsError:
            return True
        except OSError:
            with suppress(OSError):
                os.unlink(self._path)
            return False
        return True

    def _free(self) -> int:
        try:
            return platform.here.free_bytes(os.path.dirname(self._path))
        except OSError:
            return 0
