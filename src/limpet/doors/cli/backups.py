"""`limpet backup` and `restore`: a whole store as a file, whichever kind of store it is, and back."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from limpet import errors
from limpet.doors.cli.build import Group, command, pass_state
from limpet.doors.cli.context import State
from limpet.doors.cli.store_address import shown_place
from limpet.doors.cli.transfer import PROGRESS_AFTER_SECONDS, PROGRESS_EVERY_SECONDS


def add_to(root: Group) -> None:
    @command(
        root,
        "backup",
        "limpet backup /media/stick/memory.db\nlimpet backup memory.db --store postgresql://db.example.org/limpet",
        "Copy the whole store, every tenant and project of it, as it is at one moment. The copy is an embedded store, "
        "whichever kind of store it is made of, and can be put back into either kind with `limpet restore`. It is "
        "read again before it gets its name. Exits with 5 when something in the store itself is damaged.",
    )
    @click.argument("file", type=click.Path())
    @pass_state
    def backup(state: State, file: str) -> int:
        with _counting("copied") as told:
            found = state.hold.backup(file, told)
        damage = [f"{one.name}: {one.detail}" for one in found if not one.ok]
        reply = {"backup": os.path.abspath(file)}
        state.answer(
            {**reply, "damaged": damage} if damage else reply,
            lambda screen: screen.line(f"{reply['backup']} holds the whole store"),
        )
        for one in damage:
            state.notice(f"damaged in the store, and so in its copy: {one}. `limpet doctor` says more.")
        return errors.StoreProblem.exit_code if damage else 0

    @command(
        root,
        "restore",
        "limpet restore /media/stick/memory.db\nlimpet restore memory.db --store postgresql://db.example.org/limpet",
        "Put a backup into an empty store of either kind: all of it, or nothing. Every checksum is compared first.",
    )
    @click.argument("file", type=click.Path())
    @pass_state
    def restore(state: State, file: str) -> None:
        with _counting("restored") as told:
            copied = state.hold.restore(file, told)
        place = shown_place(state.settings.store)
        reply = {"restored": os.path.abspath(file), "store": place, **copied._asdict()}
        counts = ", ".join(f"{count:,} {name}" for name, count in copied._asdict().items())
        state.answer(reply, lambda screen: screen.line(f"{place} is as it was: {counts}"))


@contextmanager
def _counting(done: str) -> Iterator[Callable[[int], None]]:
    """Takes counts of rows and shows them on standard error, when it is a terminal and the work takes long."""
    began = shown = time.monotonic()
    last = 0

    def told(count: int) -> None:
        nonlocal shown, last
        now, last = time.monotonic(), count
        if sys.stderr.isatty() and now - began > PROGRESS_AFTER_SECONDS and now - shown > PROGRESS_EVERY_SECONDS:
            sys.stderr.write(f"\r{count:,} rows {done}")
            sys.stderr.flush()
            shown = now

    try:
        yield told
    finally:
        if shown != began:
            sys.stderr.write(f"\r{last:,} rows {done}\n")
