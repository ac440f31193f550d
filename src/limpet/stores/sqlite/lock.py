"""The write lock of an SQLite file: one process at a time, in roughly the order of asking, with a bounded wait.

- *Two files.* A process that has locked `.lock` writes. One that waits for it holds `.queue`, and every writer passes
  there first, so a process that has just written cannot overtake one that waits. The longer a process has waited for
  the queue, the more often it looks, so the oldest usually goes first.
- *Nothing blocks in the kernel.* Waiting is looking again, so a wait that is given up leaves neither a thread nor a
  descriptor behind.
- *A hold is waited for once, not by every process in turn.* A wait that lasts is noted in `.lock`: since when the lock
  is known to be held. The next process counts from there, and answers at once when its own limit has passed already.
  The process that gets the lock removes the note.
"""

from __future__ import annotations

import os
import time

from limpet import errors, limits, platform

NOTE_BYTES = 32
STEP_SECONDS = 0.0002  # between two looks of the process at the head of the queue
STEADY_LOOKS = 50  # so many, for as long as most writes take; after that each is later by a third
HEAD_SECONDS = 0.002  # between two looks at the head of the queue, at most
YOUNG_SECONDS, OLD_SECONDS = 0.010, 0.002  # between two looks further back, for a new and for an old wait
OLD_AFTER_SECONDS = 0.05  # a wait is neither new nor old
QUICK_LOOKS = 3  # most waits are short
PAST_SECONDS = 0.5  # after that a process passes by the queue: the one at its head may be stopped itself


class WriteLock:
    """Between processes. Threads queue before they come here."""

    def __init__(self, path: str, place: str) -> None:
        self._path = path
        self._place = place
        self._files: tuple[int, int] | None = None  # the lock and its queue

    def acquire(self, most_seconds: float) -> None:
        try:
            lock, queue = self._files or self._open()
            if platform.here.try_lock(queue):
                try:
                    if not platform.here.try_lock(lock):
                        self._wait(lock, None, most_seconds)
                finally:
                    platform.here.unlock(queue)
            else:
                self._wait(lock, queue, most_seconds)
            if os.fstat(lock).st_size:
                os.ftruncate(lock, 0)  # the note is about an earlier hold
        except OSError as problem:
            raise refusal(self._place, problem) from problem

    def _open(self) -> tuple[int, int]:
        lock = platform.here.create_file(f"{self._path}.lock", new=False)
        try:
            self._files = (lock, platform.here.create_file(f"{self._path}.queue", new=False))
        except OSError:
            os.close(lock)
            raise
        return self._files

    def _wait(self, lock: int, queue: int | None, most_seconds: float) -> None:
        """Wait for the lock. `queue` is given while another process is at its head."""
        hold, began, looks = _Hold(lock), time.monotonic(), 0
        while True:
            waited = time.monotonic() - began
            held_seconds = hold.seconds(waited)
            if waited >= most_seconds or held_seconds >= most_seconds:
                raise errors.store_busy(holder(lock), self._place, max(waited, held_seconds))
            looks += 1
            time.sleep(min(_pause(queue is None, looks, waited), most_seconds))
            if queue is None or waited > PAST_SECONDS:
                if platform.here.try_lock(lock):
                    return
            elif platform.here.try_lock(queue):
                try:
                    self._wait(lock, None, most_seconds - waited)
                finally:
                    platform.here.unlock(queue)
                return

    def release(self) -> None:
        if self._files is not None:
            platform.here.unlock(self._files[0])

    def close(self) -> None:
        """Also after a fork: the descriptors are shared with the parent, so the child opens its own."""
        if self._files is not None:
            for file in self._files:
                os.close(file)
            self._files = None


class _Hold:
    """How long the lock has been held without a break, as far as is known."""

    def __init__(self, lock: int) -> None:
        self._lock = lock
        self._since = time.time()
        self._note_exists = False
        self._next_look = 0.0

    def seconds(self, waited: float) -> float:
        if waited >= self._next_look:
            self._look(waited)
            self._next_look = waited + limits.LOCK_NOTE_SECONDS / 2
        return max(0.0, time.time() - self._since)

    def _look(self, waited: float) -> None:
        since = read_note(self._lock)
        if since is not None:
            self._since, self._note_exists = min(since, time.time()), True
        elif self._note_exists:  # another process had the lock in the meantime
            self._since, self._note_exists = time.time(), False
        elif waited >= limits.LOCK_NOTE_SECONDS:
            os.ftruncate(self._lock, 0)
            os.lseek(self._lock, 0, os.SEEK_SET)
            os.write(self._lock, f"{self._since:.3f}\n".encode())
            self._note_exists = True


def read_note(lock: int) -> float | None:
    """Since when the lock is known to be held, in seconds since 1970."""
    os.lseek(lock, 0, os.SEEK_SET)
    try:
        return float(os.read(lock, NOTE_BYTES))
    except ValueError:
        return None


def holder(lock: int) -> str:
    process = platform.here.lock_holder(lock)
    return "another process" if process is None else f"process {process}"


def refusal(place: str, problem: OSError) -> errors.StoreProblem:
    """The StoreProblem for an error of the operating system."""
    why = problem.strerror or str(problem)
    if problem.errno in platform.NO_LOCKS:
        return errors.store_without_locks(place, why)
    if problem.errno in platform.NO_SPACE:
        return errors.store_full(place)
    if problem.errno in platform.NO_DESCRIPTORS:
        return errors.no_descriptors(place)
    return errors.store_read_only(place, why)


def _pause(head: bool, looks: int, waited: float) -> float:
    if head:
        return min(STEP_SECONDS * 1.33 ** max(0, looks - STEADY_LOOKS), HEAD_SECONDS)
    if looks <= QUICK_LOOKS:
        return _jitter() * STEP_SECONDS * 2
    young = YOUNG_SECONDS / (1 + (waited / OLD_AFTER_SECONDS) ** 2)
    return _jitter() * max(OLD_SECONDS, young)


def _jitter() -> float:
    """Between 0.5 and 1.5. The module `random` takes longer to import than a lock takes to get."""
    return 0.5 + os.urandom(1)[0] / 255
