"""A count on standard error while work takes long, when it is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

AFTER_SECONDS = 0.5  # shorter work is over before a person wonders
EVERY_SECONDS = 0.2


class Progress:
    """Shows a count now and then. `end` finishes the line if one was begun."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._began = self._shown = time.monotonic()
        self._quiet = quiet or not sys.stderr.isatty()
        self._text = ""

    def show(self, text: str) -> None:
        now = time.monotonic()
        self._text = text
        if not self._quiet and now - self._began > AFTER_SECONDS and now - self._shown > EVERY_SECONDS:
            self._shown = now
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()

    def end(self) -> None:
        if self._shown != self._began:
            sys.stderr.write(f"\r{self._text}\n")
            self._shown = self._began


@contextmanager
def counted(lines: Iterable[str], verb: str, *, quiet: bool = False) -> Iterator[Iterable[str]]:
    """The same lines, counted as they are used."""
    counting = _count(lines, verb, quiet)
    try:
        yield counting
    finally:
        counting.close()  # now, and not when it is collected: the line must end before the next message


def _count(lines: Iterable[str], verb: str, quiet: bool) -> Generator[str]:
    progress = Progress(quiet=quiet)
    try:
        for count, line in enumerate(lines, 1):
            progress.show(f"{count:,} lines {verb}")
            yield line
    finally:
        progress.end()
