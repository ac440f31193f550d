"""Power that goes away in the middle of a backup, and while an old store is brought to the newest schema."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw

import limpet
from golden.make import PROJECT as GOLDEN
from golden.make import zstd
from golden.test_golden import HERE, LATER, SCHEMAS, ids, lacking, said_then
from limpet import errors
from limpet.model import NOTE
from torture.child import say
from torture.disk import cut_off, synced
from torture.kit import Outcome, Tally, digest, opened, sound, verify
from torture.lanes import Forked

Lines = list[tuple[str, ...]]
CutPower = Callable[[Forked], Lines]


def backups(folder: Path, cuts: int) -> Outcome:
    """A backup that was acknowledged is there and whole; one that was not harms neither store nor reader."""
    return cut_off(folder, cuts, _back_up, look=_look_at_backups, homes=1)


def _back_up(store: Path, number: int, chance: random.Random, cut: CutPower) -> Lines:
    """Every other time right after a backup was acknowledged."""
    writer = Forked(partial(_backing, store, number))
    while (line := writer.line()) and not line.startswith(b"backup" if number % 2 == 0 else b"note"):
        pass
    if number % 2:
        time.sleep(chance.uniform(0.0, 0.060))
    return cut(writer)


def _backing(store: Path, number: int) -> None:
    with opened(store, "backing") as hold:
        for at in range(1_000):
            text = f"before backup {number} {at} " + "word " * 200
            say("note", hold.session().notes.add(text).id, digest(text))
            notes = hold.store.entries.tally(hold.scope, NOTE, "").total
            target = store.parent / f"copy{number}-{at}.db"
            hold.backup(str(target))
            say("backup", target.name, notes)


def _look_at_backups(store: Path, lines: Lines, tally: Tally, *, check: bool = True) -> None:
    verify(store, lines, tally, check=check)
    told = {line[1]: int(line[2]) for line in lines if line[0] == "backup"}
    there = {path.name for path in store.parent.glob("copy*.db")}
    for name in told.keys() - there:
        tally.miss("lost", f"the backup {name}")
    for name in there:
        try:
            with opened(store.parent / name) as copy:
                notes = copy.store.entries.tally(copy.scope, NOTE, "").total
                if name in told:
                    sound(copy, tally)
                if notes < told.get(name, 0):
                    tally.miss("lost", f"the backup {name} has {notes} notes of {told[name]}")
        except errors.LimpetError as problem:
            if name in told:
                tally.miss("corrupt", f"the backup {name}: {problem}")
        (store.parent / name).unlink()


def migrations(folder: Path, cuts: int) -> Outcome:
    """Afterwards the store has the old schema or the new one, and says what it said."""
    return cut_off(folder, cuts, _bring_up, look=_look_at_golden, homes=1)


def _old(number: int) -> int:
    """Every schema before the newest, in turn."""
    return SCHEMAS[:-1][number % (len(SCHEMAS) - 1)]


def _bring_up(store: Path, number: int, chance: random.Random, cut: CutPower) -> Lines:
    schema = _old(number)
    store.write_bytes(zstd.decompress((HERE / f"schema{schema}.db.zst").read_bytes()))
    synced(store.parent)
    writer = Forked(partial(_opening, store))
    if number % 3 == 0:
        writer.line()
    else:
        time.sleep(chance.uniform(0.0, 0.040))
    return [("schema", str(schema)), *cut(writer)]


def _opening(store: Path) -> None:
    with limpet.open(str(store), project=GOLDEN, session="alpha", clock=lambda: LATER):
        say("opened")
        time.sleep(60)


def _look_at_golden(store: Path, lines: Lines, tally: Tally, *, check: bool = True) -> None:
    schema = int(lines[0][1])
    with_log = apsw.Connection(str(store))
    version = with_log.execute("SELECT user_version FROM pragma_user_version").fetchall()[0][0]
    with_log.close()
    if version not in ({SCHEMAS[-1]} if ("opened",) in lines else {schema, SCHEMAS[-1]}):
        tally.miss("between schemas", f"from {schema}, at {version}, said {lines[1:]}")
    for words in (line[1:] for line in lines if line[0] == "crashed"):
        tally.miss("crashed", " ".join(words))
    with limpet.open(str(store), project=GOLDEN, session="alpha", clock=lambda: LATER) as hold:
        for name, arguments, then in said_then(schema)["answers"]:
            now = hold.call(name, arguments)
            less = ids(then) - ids(now) if name.startswith("search_") else lacking(then, now, name)
            if less:
                tally.miss("lost", f"schema {schema}, {name}: {less}")
        sound(hold, tally)
