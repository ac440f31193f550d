"""Outputs on their way out of a store and into another: every byte, what is known of them, and what is gone.

They leave as the compressed chunks they are. What arrives is taken on no word: it is opened, compared with its digest,
and packed again for the project it is now in. One output at a time is in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from limpet import errors, limits
from limpet.model import Output, Scope, Tombstone
from limpet.store import Arriving, ArrivingOutput, ArrivingTombstone
from limpet.stores.shared import output_rows
from limpet.stores.shared import outputs as kept
from limpet.stores.shared.output_rows import Row
from limpet.stores.shared.outputs import OURS, SELECT, TAKEN, TOMBSTONES, Proof, Sql

T = TypeVar("T")
BATCH = 200  # tombstones read at a time
Left = tuple[Output, tuple[bytes, ...]]
NAMES = f"SELECT id FROM outputs WHERE {OURS} ORDER BY id"  # noqa: S608 - of constants of ours only
MORE_TOMBSTONES = f"{TOMBSTONES} WHERE {OURS} AND id > ? ORDER BY id LIMIT {BATCH}"


class OutputTransfer(ABC):
    place: str

    @abstractmethod
    def _look(self, tenant: str, work: Callable[[Sql], T]) -> T:
        """Several reads of one moment, of what a tenant keeps."""

    @abstractmethod
    def _change(self, scope: Scope, work: Callable[[Sql], tuple[T, Proof]], *, repeatable: bool = True) -> T:
        """One transaction, alone in its project."""

    def dump_outputs(self, scope: Scope) -> Iterator[Left | Tombstone]:
        for (id,) in self._look(scope.tenant, lambda sql: sql.rows(NAMES, tuple(scope))):
            left = self._look(scope.tenant, partial(self._leaving, scope=scope, id=id))
            if left is not None:  # what was deleted meanwhile is among the tombstones
                yield left
        last = ""
        while found := self._look(scope.tenant, partial(_stones_after, scope=scope, last=last)):
            yield from (output_rows.to_tombstone(self.place, scope, row[2:]) for row in found)
            last = found[-1][2]

    def _leaving(self, sql: Sql, scope: Scope, id: str) -> Left | None:
        found = sql.rows(f"{SELECT} AND id = ?", (*scope, id))
        if not found:
            return None
        held = output_rows.to_held(self.place, scope, found[0])
        chunks = sql.rows(kept.CHUNKS, (*scope, id, 0, len(held.numbers)))
        packed = output_rows.sealed(scope, held, held.numbers, chunks)
        if packed is None:
            raise output_rows.damaged(self.place, id)
        return held.output, tuple(packed)

    def add_outputs(self, scope: Scope, arriving: Iterable[Arriving]) -> int:
        def work(sql: Sql) -> tuple[int, Proof]:
            sql.rows(kept.NEW_PROJECT, (*scope, 0))
            return arrive(sql, scope, arriving), ("SELECT 1", ())

        # What arrives can be read only once.
        return self._change(scope, work, repeatable=False)


def _stones_after(sql: Sql, scope: Scope, last: str) -> list[Row]:
    return sql.rows(MORE_TOMBSTONES, (*scope, last))


def arrive(sql: Sql, scope: Scope, arriving: Iterable[Arriving]) -> int:
    """Add what is not there, inside a transaction. How many outputs were added."""
    count = 0
    for one in arriving:
        if isinstance(one, ArrivingTombstone):
            _bury(sql, scope, one)
        else:
            count += _add(sql, scope, one)
    return count


def _add(sql: Sql, scope: Scope, one: ArrivingOutput) -> bool:
    output = one.output
    _check_name(one.line, output.id, output.digest)
    body = output_rows.unpacked(one.chunks, output.size)
    if body is None or len(body) != output.size or output_rows.digest_of(body) != output.digest:
        raise errors.bad_import(one.line, f"the output {output.id} is not what its digest says")
    if sql.rows(f"{SELECT} AND digest = ?", (*scope, output.digest)):
        return False
    if any(digest != output.digest for (digest,) in sql.rows(TAKEN, (*scope, output.id, *scope, output.id))):
        raise errors.import_conflict("output", output.id)
    sql.rows(kept.NO_TOMBSTONE, (*scope, output.id))
    packed = output_rows.pack(scope, output.digest, body)
    sql.rows(kept.NEW, output_rows.kept_row(scope, output._replace(lines=packed.lines), packed))
    sql.many(kept.NEW_CHUNK, [(*scope, output.id, *chunk) for chunk in packed.chunks])
    return True


def _bury(sql: Sql, scope: Scope, one: ArrivingTombstone) -> None:
    stone = one.tombstone
    _check_name(one.line, stone.id, stone.digest)
    if not sql.rows(TAKEN, (*scope, stone.id, *scope, stone.id)):
        sql.rows(kept.NEW_TOMBSTONE, output_rows.tombstone_row(scope, stone))


def _check_name(line: int, id: str, digest: str) -> None:
    whole = len(digest) == 64 and kept.HEX.fullmatch(digest)
    if not whole or not digest.startswith(id) or len(id) < limits.OUTPUT_ID_CHARS:
        raise errors.bad_import(line, f"the id {errors.quoted(id)} is not the beginning of its digest")
