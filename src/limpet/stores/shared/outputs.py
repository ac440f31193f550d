"""The outputs of a store: every method, written once for all of them.

SQLite and PostgreSQL agree on all the SQL that is needed here, but for the sign that stands for a value. So a store
only says how to read, how to write and how to find citations; sqlite_outputs.py and postgres_outputs.py do.

An id is given out in the transaction that writes it, and never twice: not while another content has it, and not after,
because whoever wrote it down would then be shown something else.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from limpet import errors, limits
from limpet.model import CLEARED, DELETED, KINDS, NO_ROOM, PURGED, TOO_OLD, Output, OutputDraft, Scope, Stamp, Tombstone
from limpet.store import Finding, Kept, OutputPage, OutputStats, Pruned, Usage
from limpet.stores.shared import output_rows
from limpet.stores.shared.output_pieces import Piece, pieces
from limpet.stores.shared.output_rows import FIELDS, Held, Packed, Row

T = TypeVar("T")
Proof = tuple[str, Row] | None  # a read that finds a row if the change was kept; None: nothing was changed
HEX = re.compile(f"[0-9a-f]{{{limits.OUTPUT_NAME_MIN_CHARS},64}}")
BATCH = 50  # outputs whose citations are looked up together

# The texts of this module are put together from constants of ours only; every value is a parameter.
OURS = "tenant = ? AND project = ?"
ONE = f"{OURS} AND id = ?"
SELECT = f"SELECT {FIELDS} FROM outputs WHERE {OURS}"  # noqa: S608
NEW = f"INSERT INTO outputs (tenant, project, {FIELDS}) VALUES (?, ?{', ?' * len(FIELDS.split(','))})"  # noqa: S608
NEW_CHUNK = "INSERT INTO output_chunks (tenant, project, id, number, hash, body) VALUES (?, ?, ?, ?, ?, ?)"
CHUNKS = f"SELECT number, hash, body FROM output_chunks WHERE {ONE} AND number >= ? AND number < ? ORDER BY number"  # noqa: S608
# One less than now, so that the first change of an entry is at `now` whether it needs a new time stamp or not.
NEW_PROJECT = "INSERT INTO projects (tenant, project, seq, clock) VALUES (?, ?, 0, ?) ON CONFLICT DO NOTHING"
TOUCH = (
    "UPDATE outputs SET used_at = CASE WHEN used_at < ? THEN ? ELSE used_at END, uses = uses + 1 "  # noqa: S608
    f"WHERE {ONE} RETURNING {FIELDS}"
)
TAKEN = f"SELECT digest FROM outputs WHERE {ONE} UNION ALL SELECT digest FROM output_tombstones WHERE {ONE}"  # noqa: S608
NEW_TOMBSTONE = (
    "INSERT INTO output_tombstones (tenant, project, id, digest, gone_at, what, hash) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
NO_TOMBSTONE = f"DELETE FROM output_tombstones WHERE {ONE}"  # noqa: S608
STATS = (
    "SELECT count(*), CAST(coalesce(sum(size), 0) AS bigint), CAST(coalesce(sum(stored), 0) AS bigint), "  # noqa: S608
    f"min(created_at), max(created_at), min(used_at) FROM outputs WHERE {OURS}"
)
# By way of the projects, so that only the few counts of whole projects are read and not those of every session and tag.
ENTRIES_OF = (
    "SELECT CAST(coalesce(sum(t.count), 0) AS bigint) FROM projects p JOIN tallies t ON t.tenant = p.tenant AND "  # noqa: S608
    f"t.project = p.project AND t.kind IN ({', '.join('?' * len(KINDS))}) AND t.session = '' AND t.tag = '' "
    "WHERE p.tenant = ?"
)
BYTES_OF = "SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM outputs WHERE tenant = ?"
WAITING_HEAD = (
    "SELECT o.id, o.size FROM outputs o WHERE o.tenant = ? AND o.project = ? AND NOT EXISTS (SELECT 1 FROM "
    "output_pieces p WHERE p.tenant = o.tenant AND p.project = o.project AND p.id = o.id)"
)
WAITING = f"{WAITING_HEAD} ORDER BY o.created_at DESC, o.id"
TOMBSTONES = "SELECT tenant, project, id, digest, gone_at, what, hash FROM output_tombstones"


class Sql(Protocol):
    """A transaction, or a moment that several reads see."""

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]: ...

    def many(self, sql: str, values: Iterable[Row]) -> None: ...


class Outputs(ABC):
    place: str

    @abstractmethod
    def _look(self, tenant: str, work: Callable[[Sql], T]) -> T:
        """Several reads of one moment, of what a tenant keeps."""

    @abstractmethod
    def _rows(self, tenant: str, sql: str, values: Sequence[object]) -> list[Row]:
        """The rows of one read."""

    @abstractmethod
    def _change(self, scope: Scope, work: Callable[[Sql], tuple[T, Proof]], *, repeatable: bool = True) -> T:
        """One transaction, alone in its project, that is on disk when this returns. It may run more than once, unless
        it is not `repeatable`."""

    @abstractmethod
    def _add_piece(self, sql: Sql, scope: Scope, id: str, piece: Piece) -> None: ...

    @abstractmethod
    def _forget_pieces(self, sql: Sql, scope: Scope, id: str) -> None: ...

    @abstractmethod
    def _cited(self, sql: Sql, scope: Scope, ids: list[str]) -> frozenset[str]: ...

    # --- keeping ------------------------------------------------------------------------------------------------------

    def keep_output(self, scope: Scope, draft: OutputDraft, body: bytes, stamp: Stamp) -> Kept:
        output_rows.refuse_unfit(draft, stamp, body)
        digest = output_rows.digest_of(body)
        known = self._look(scope.tenant, lambda sql: self._whole_output(sql, scope, digest))
        if known is not None:
            again = self._touch(scope, known.id, stamp.now)
            if again is not None and again.digest == digest:
                return Kept(again, False)
        packed = output_rows.pack(scope, digest, body)  # what takes long is done before anybody has to wait

        return self._change(scope, lambda sql: self._keep(sql, scope, draft, packed, stamp))

    def keep_outputs(self, scope: Scope, drafts: Sequence[tuple[OutputDraft, bytes]], stamp: Stamp) -> tuple[Kept, ...]:
        for draft, body in drafts:
            output_rows.refuse_unfit(draft, stamp, body)
        ready = [(draft, output_rows.pack(scope, output_rows.digest_of(body), body)) for draft, body in drafts]

        def work(sql: Sql) -> tuple[tuple[Kept, ...], Proof]:
            kept, proof = [], None
            for draft, packed in ready:
                one, proof = self._keep(sql, scope, draft, packed, stamp)
                kept.append(one)
            return tuple(kept), proof

        return self._change(scope, work) if ready else ()

    def _keep(
        self, sql: Sql, scope: Scope, draft: OutputDraft, packed: Packed, stamp: Stamp
    ) -> tuple[Kept, tuple[str, Row]]:
        there = self._whole_output(sql, scope, packed.digest)
        if there is not None:  # known before, or somebody was faster
            row = sql.rows(TOUCH, (stamp.now, stamp.now, *scope, there.id))[0]
            kept = Kept(output_rows.to_held(self.place, scope, row).output, False)
        else:
            kept = Kept(self._put_output(sql, scope, draft, packed, stamp), True)
        proof = f"SELECT 1 FROM outputs WHERE {ONE} AND digest = ?"  # noqa: S608
        return kept, (proof, (*scope, kept.output.id, packed.digest))

    def _whole_output(self, sql: Sql, scope: Scope, digest: str) -> Output | None:
        """The output with this content. One that is damaged does not count: the same content again mends it."""
        found = sql.rows(f"{SELECT} AND digest = ?", (*scope, digest))
        try:
            held = output_rows.to_held(self.place, scope, found[0]) if found else None
        except errors.StoreDamaged:
            return None
        if held is None:
            return None
        chunks = sql.rows(CHUNKS, (*scope, held.output.id, 0, len(held.numbers)))
        return None if output_rows.sealed(scope, held, held.numbers, chunks) is None else held.output

    def _put_output(self, sql: Sql, scope: Scope, draft: OutputDraft, packed: Packed, stamp: Stamp) -> Output:
        sql.rows(NEW_PROJECT, (*scope, stamp.now - 1))
        for (id,) in sql.rows(f"SELECT id FROM outputs WHERE {OURS} AND digest = ?", (*scope, packed.digest)):  # noqa: S608
            self._remove(sql, scope, id)
        id = self._free_id(sql, scope, packed.digest)
        sql.rows(NO_TOMBSTONE, (*scope, id))
        sql.rows(f"DELETE FROM output_chunks WHERE {ONE}", (*scope, id))  # noqa: S608 - left behind by damage
        row = output_rows.new_row(scope, id, draft, packed, stamp)
        sql.rows(NEW, row)
        sql.many(NEW_CHUNK, [(*scope, id, *chunk) for chunk in packed.chunks])
        return output_rows.to_held(self.place, scope, row[2:]).output

    def _free_id(self, sql: Sql, scope: Scope, digest: str) -> str:
        """As much of the digest as no other content has, or had, for its id."""
        for length in range(limits.OUTPUT_ID_CHARS, len(digest) + 1):
            id = digest[:length]
            if all(other == digest for (other,) in sql.rows(TAKEN, (*scope, id, *scope, id))):
                return id
        raise output_rows.damaged(self.place, digest)  # two rows with one whole digest for their id

    def touch_output(self, scope: Scope, id: str, now: int) -> bool:
        return self._touch(scope, id, now) is not None

    def _touch(self, scope: Scope, id: str, now: int) -> Output | None:
        def work(sql: Sql) -> tuple[Output | None, Proof]:
            found = sql.rows(TOUCH, (now, now, *scope, id))
            if not found:
                return None, None
            proof = (f"SELECT 1 FROM outputs WHERE {ONE} AND used_at >= ?", (*scope, id, now))  # noqa: S608
            return output_rows.to_held(self.place, scope, found[0]).output, proof

        return self._change(scope, work)

    # --- reading ------------------------------------------------------------------------------------------------------

    def output(self, scope: Scope, name: str) -> Output | None:
        name = name.lower()
        if not HEX.fullmatch(name):
            return None

        def work(sql: Sql) -> list[Row]:
            found = sql.rows(f"{SELECT} AND id = ?", (*scope, name))
            # What had this very id and is gone is not something else that begins like it.
            if found or sql.rows(f"SELECT 1 FROM output_tombstones WHERE {ONE}", (*scope, name)):  # noqa: S608
                return found
            return sql.rows(f"{SELECT} AND digest >= ? AND digest < ? LIMIT 2", (*scope, name, name + "g"))

        found = self._look(scope.tenant, work)
        if len(found) > 1:
            raise errors.ambiguous_output(name)
        return output_rows.to_held(self.place, scope, found[0]).output if found else None

    def _held_output(self, sql: Sql, scope: Scope, id: str) -> Held:
        found = sql.rows(f"{SELECT} AND id = ?", (*scope, id))
        if not found:
            raise errors.no_output(id)
        return output_rows.to_held(self.place, scope, found[0])

    def _open_output(self, sql: Sql, scope: Scope, held: Held, numbers: range) -> bytes:
        chunks = sql.rows(CHUNKS, (*scope, held.output.id, numbers.start, numbers.stop))
        return output_rows.opened(self.place, scope, held, numbers, chunks)

    def output_bytes(self, scope: Scope, id: str, start: int, stop: int) -> bytes:
        def work(sql: Sql) -> bytes:
            held = self._held_output(sql, scope, id)
            first, last = max(start, 0), min(stop, held.output.size)
            if first >= last:
                return b""
            numbers = held.with_bytes(first, last)
            body, offset = self._open_output(sql, scope, held, numbers), numbers.start * held.chunk
            return body[first - offset : last - offset]

        return self._look(scope.tenant, work)

    def output_lines(self, scope: Scope, id: str, first: int, last: int) -> bytes:
        def work(sql: Sql) -> bytes:
            held = self._held_output(sql, scope, id)
            one, other = max(first, 1), min(last, held.output.lines)
            if one > other:
                return b""
            numbers = held.with_lines(one, other)
            return output_rows.cut_lines(held, numbers, self._open_output(sql, scope, held, numbers), one, other)

        return self._look(scope.tenant, work)

    def outputs(self, scope: Scope, limit: int) -> OutputPage:
        def work(sql: Sql) -> OutputPage:
            found = sql.rows(f"{SELECT} ORDER BY used_at DESC, id DESC LIMIT ?", (*scope, limit))
            total = len(found) if len(found) < limit else sql.rows(STATS, tuple(scope))[0][0]
            return OutputPage(tuple(output_rows.to_held(self.place, scope, row).output for row in found), total)

        return self._look(scope.tenant, work)

    def output_stats(self, scope: Scope) -> OutputStats:
        return self._look(scope.tenant, lambda sql: OutputStats._make(sql.rows(STATS, tuple(scope))[0][:-1]))

    def usage(self, tenant: str) -> Usage:
        def work(sql: Sql) -> Usage:
            entries = sql.rows(ENTRIES_OF, (*KINDS, tenant))[0][0]
            return Usage(entries, sql.rows(BYTES_OF, (tenant,))[0][0])

        return self._look(tenant, work)

    def cited(self, scope: Scope, ids: Iterable[str]) -> frozenset[str]:
        sought = sorted({id for id in ids if HEX.fullmatch(id)})
        return self._look(scope.tenant, lambda sql: self._cited(sql, scope, sought)) if sought else frozenset()

    def tombstone(self, scope: Scope, id: str) -> Tombstone | None:
        found = self._look(scope.tenant, lambda sql: sql.rows(f"{TOMBSTONES} WHERE {ONE}", (*scope, id.lower())))
        return output_rows.to_tombstone(self.place, scope, found[0][2:]) if found else None

    # --- deleting -----------------------------------------------------------------------------------------------------

    def delete_output(self, scope: Scope, id: str, stamp: Stamp) -> bool:
        def work(sql: Sql) -> tuple[bool, Proof]:
            proof = self._bury(sql, scope, [(id, DELETED)], stamp.by, stamp.now)
            return proof is not None, proof

        return self._change(scope, work)

    def purge_outputs(self, scope: Scope, ids: Sequence[str], stamp: Stamp) -> int:
        def work(sql: Sql) -> tuple[int, Proof]:
            there = [id for id in ids if sql.rows(f"SELECT 1 FROM outputs WHERE {ONE}", (*scope, id))]  # noqa: S608
            for id in there:
                sql.rows(f"DELETE FROM output_calls WHERE {ONE}", (*scope, id))  # noqa: S608
                sql.rows(f"DELETE FROM output_reads WHERE {ONE}", (*scope, id))  # noqa: S608
            return len(there), self._bury(sql, scope, [(id, PURGED) for id in there], stamp.by, stamp.now)

        return self._change(scope, work)

    def clear_outputs(self, scope: Scope, stamp: Stamp) -> int:
        def work(sql: Sql) -> tuple[int, Proof]:
            doomed = [(id, CLEARED) for (id,) in sql.rows(f"SELECT id FROM outputs WHERE {OURS}", tuple(scope))]  # noqa: S608
            return len(doomed), self._bury(sql, scope, doomed, stamp.by, stamp.now)

        return self._change(scope, work)

    def prune_outputs(
        self,
        scope: Scope,
        *,
        now: int,
        max_age_ms: int | None,
        max_bytes: int | None,
        keep: frozenset[str] = frozenset(),
        most: int = 100,
    ) -> Pruned:
        oldest = None if max_age_ms is None else now - max_age_ms

        def needed(sql: Sql) -> bool:
            """Usually there is nothing to do, and seeing that keeps nobody waiting."""
            _, total, _, _, _, used = sql.rows(STATS, tuple(scope))[0]
            return used is not None and bool(_why(used, total, oldest, max_bytes))

        def work(sql: Sql) -> tuple[Pruned, Proof]:
            chosen = list(islice(self._doomed(sql, scope, oldest, max_bytes, keep), most))
            proof = self._bury(sql, scope, [(id, why) for id, why, _ in chosen], "", now)
            return Pruned(len(chosen), sum(size for _, _, size in chosen)), proof

        return self._change(scope, work) if most > 0 and self._look(scope.tenant, needed) else Pruned(0, 0)

    def _doomed(
        self, sql: Sql, scope: Scope, oldest: int | None, max_bytes: int | None, keep: frozenset[str]
    ) -> Iterator[tuple[str, str, int]]:
        """Id, reason and size of what has to go, in order. Citations are looked up as far as somebody asks."""
        total = sql.rows(STATS, tuple(scope))[0][1]
        found = sql.rows(f"SELECT id, size, used_at FROM outputs WHERE {OURS} ORDER BY used_at, id", tuple(scope))  # noqa: S608
        for at in range(0, len(found), BATCH):
            batch = found[at : at + BATCH]
            stay = keep | self._cited(sql, scope, [id for id, _, _ in batch])
            for id, size, used in batch:
                why = _why(used, total, oldest, max_bytes)
                if not why:
                    return
                if id not in stay:
                    total -= size
                    yield id, why, size

    def _bury(self, sql: Sql, scope: Scope, doomed: Iterable[tuple[str, str]], by: str, now: int) -> Proof:
        """Put tombstones in the place of outputs. Proves the last; None when none of them is there."""
        proof: Proof = None
        for id, why in doomed:
            for row in sql.rows(f"{SELECT} AND id = ?", (*scope, id)):
                stone = output_rows.gone_row(self.place, scope, row, why, by, now)
                sql.rows(NO_TOMBSTONE, (*scope, id))  # left behind by damage
                sql.rows(NEW_TOMBSTONE, stone)
                self._remove(sql, scope, id)
                proof = (f"SELECT 1 FROM output_tombstones WHERE {ONE} AND hash = ?", (*scope, id, stone[-1]))  # noqa: S608
        return proof

    def _remove(self, sql: Sql, scope: Scope, id: str) -> None:
        self._forget_pieces(sql, scope, id)
        sql.rows(f"DELETE FROM output_chunks WHERE {ONE}", (*scope, id))  # noqa: S608
        sql.rows(f"DELETE FROM outputs WHERE {ONE}", (*scope, id))  # noqa: S608

    # --- for recall ---------------------------------------------------------------------------------------------------

    def index_outputs(self, scope: Scope, most: int) -> int:
        waiting = self._rows(scope.tenant, WAITING, scope)
        done = 0
        for id, size in waiting:
            if most <= 0:
                break
            self._index_output(scope, id)
            most -= size
            done += 1
        return len(waiting) - done

    def _index_output(self, scope: Scope, id: str) -> None:
        found: list[Piece] = []
        try:
            output = self._look(scope.tenant, lambda sql: self._held_output(sql, scope, id)).output
            found = pieces(output, lambda start, stop: self.output_bytes(scope, id, start, stop))
        except errors.NotFound:
            return  # gone in the meantime
        except errors.StoreDamaged:
            found = [Piece(0, 0, 1, "", [])]  # whoever reads it is told; asking again each time would help nobody

        def work(sql: Sql) -> tuple[None, Proof]:
            if not sql.rows(f"{WAITING_HEAD} AND o.id = ?", (*scope, id)):
                return None, None  # somebody was faster, or it is gone
            for piece in found:
                self._add_piece(sql, scope, id, piece)
            return None, (f"SELECT 1 FROM output_pieces WHERE {ONE} AND start = ?", (*scope, id, found[-1].start))  # noqa: S608

        self._change(scope, work)

    # --- health -------------------------------------------------------------------------------------------------------

    def _check_outputs(self, sql: Sql) -> Finding:
        """Reads all outputs and tombstones of all projects."""
        bad: list[str] = []
        names = sql.rows("SELECT tenant, project, id FROM outputs ORDER BY tenant, project, id")
        for tenant, project, id in names:
            scope = Scope(tenant, project)
            try:
                held = self._held_output(sql, scope, id)
                self._open_output(sql, scope, held, held.numbers)
            except (errors.StoreDamaged, UnicodeDecodeError):
                bad.append(f"output {id!r} of project {project!r}")
        stones = sql.rows("SELECT tenant, project, id FROM output_tombstones ORDER BY tenant, project, id")
        for tenant, project, id in stones:
            try:
                row = sql.rows(f"{TOMBSTONES} WHERE {ONE}", (tenant, project, id))[0]
                output_rows.to_tombstone(self.place, Scope(tenant, project), row[2:])
            except (errors.StoreDamaged, UnicodeDecodeError):
                bad.append(f"the tombstone of output {id!r} of project {project!r}")
        sound = f"{len(names):,} outputs and {len(stones):,} tombstones are as they were written"
        return Finding("outputs", not bad, ", ".join(bad[:5]) or sound)


def _why(used: int, total: int, oldest: int | None, max_bytes: int | None) -> str:
    """Why an output last used then has to go, when all together are so big; empty when it may stay."""
    if oldest is not None and used < oldest:
        return TOO_OLD
    return NO_ROOM if max_bytes is not None and total > max_bytes else ""
