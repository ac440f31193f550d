"""The outputs of a store: every method, written once for all stores.

A store adds the statements whose SQL differs: indexing pieces, finding citations, candidates for recall.

An id is assigned in the transaction that writes it, and stays reserved for its content, also after that is deleted.
Otherwise an id in a note could come to mean other content.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from limpet import errors, limits
from limpet.light import Generic, re
from limpet.model import CLEARED, DELETED, NO_ROOM, PURGED, TOO_OLD, Output, OutputDraft, Scope, Stamp, Tombstone
from limpet.store import (
    CandidateQuery,
    Candidates,
    Finding,
    Incoming,
    IncomingOutput,
    IncomingTombstone,
    OutputPage,
    OutputStats,
    Pruned,
    StoredOutput,
)
from limpet.stores.shared import chunks
from limpet.stores.shared.chunks import FIELDS, Packed, Piece, StoredBody, pieces
from limpet.stores.shared.sql import IN_PROJECT, Proof, Row, S, Sql, Transactions

Dumped = tuple[Output, tuple[bytes, ...]]
HEX = f"[0-9a-f]{{{limits.OUTPUT_NAME_MIN_CHARS},64}}"  # compiled at first use: most starts look for no output
BATCH = 50  # outputs whose citations are looked up together
TOMBSTONE_BATCH = 200  # tombstones read at a time

INDEX_BATCH_BYTES = 256 << 10  # of outputs that are indexed in one transaction: other writers wait some 30 ms
# The statements of this module are built from constants; every value is a parameter.
ONE = f"{IN_PROJECT} AND id = ?"
SELECT = f"SELECT {FIELDS} FROM outputs WHERE {IN_PROJECT}"  # noqa: S608
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
    f"min(created_at), max(created_at), min(used_at) FROM outputs WHERE {IN_PROJECT}"
)
WAITING_HEAD = (
    "SELECT o.id, o.size FROM outputs o WHERE o.tenant = ? AND o.project = ? AND NOT EXISTS (SELECT 1 FROM "
    "output_pieces p WHERE p.tenant = o.tenant AND p.project = o.project AND p.id = o.id)"
)
WAITING = f"{WAITING_HEAD} ORDER BY o.created_at DESC, o.id"
TOMBSTONES = "SELECT tenant, project, id, digest, gone_at, what, hash FROM output_tombstones"
BY_USE = f"SELECT id, size, used_at FROM outputs WHERE {IN_PROJECT} ORDER BY used_at, id"  # noqa: S608
IDS = f"SELECT id FROM outputs WHERE {IN_PROJECT} ORDER BY id"  # noqa: S608
MORE_TOMBSTONES = f"{TOMBSTONES} WHERE {IN_PROJECT} AND id > ? ORDER BY id LIMIT {TOMBSTONE_BATCH}"


class SqlOutputs(ABC, Generic[S]):
    def __init__(self, transactions: Transactions[S]) -> None:
        self._transactions = transactions
        self.place = transactions.place

    @abstractmethod
    def candidates(self, scope: Scope, query: CandidateQuery) -> Candidates: ...

    @abstractmethod
    def _add_piece(self, sql: S, scope: Scope, id: str, piece: Piece) -> None: ...

    @abstractmethod
    def _remove_pieces(self, sql: S, scope: Scope, id: str) -> None: ...

    @abstractmethod
    def _cited(self, sql: S, scope: Scope, ids: Sequence[str]) -> frozenset[str]: ...

    # --- keeping ------------------------------------------------------------------------------------------------------

    def keep(self, scope: Scope, draft: OutputDraft, body: bytes, stamp: Stamp) -> StoredOutput:
        chunks.refuse_unfit(draft, stamp, body)
        digest = chunks.digest_of(body)
        existing = self._transactions.snapshot(scope.tenant, lambda sql: self._intact(sql, scope, digest))
        if existing is not None:
            again = self._touch(scope, existing.id, stamp.now)
            if again is not None and again.digest == digest:
                return StoredOutput(again, False)
        packed = chunks.pack(scope, digest, body)  # slow, so it is done before the lock is taken
        return self._transactions.write(scope, lambda sql: self._keep(sql, scope, draft, packed, stamp))

    def keep_all(
        self, scope: Scope, drafts: Sequence[tuple[OutputDraft, bytes]], stamp: Stamp
    ) -> tuple[StoredOutput, ...]:
        for draft, body in drafts:
            chunks.refuse_unfit(draft, stamp, body)
        ready = [(draft, chunks.pack(scope, chunks.digest_of(body), body)) for draft, body in drafts]

        def work(sql: S) -> tuple[tuple[StoredOutput, ...], Proof]:
            results, proof = [], None
            for draft, packed in ready:
                result, proof = self._keep(sql, scope, draft, packed, stamp)
                results.append(result)
            return tuple(results), proof

        return self._transactions.write(scope, work) if ready else ()

    def _keep(
        self, sql: S, scope: Scope, draft: OutputDraft, packed: Packed, stamp: Stamp
    ) -> tuple[StoredOutput, tuple[str, Row]]:
        existing = self._intact(sql, scope, packed.digest)
        if existing is not None:
            row = sql.rows(TOUCH, (stamp.now, stamp.now, *scope, existing.id))[0]
            result = StoredOutput(chunks.to_stored(self.place, scope, row).output, False)
        else:
            result = StoredOutput(self._insert(sql, scope, draft, packed, stamp), True)
        proof = f"SELECT 1 FROM outputs WHERE {ONE} AND digest = ?"  # noqa: S608
        return result, (proof, (*scope, result.output.id, packed.digest))

    def _intact(self, sql: S, scope: Scope, digest: str) -> Output | None:
        """The output with this content. A damaged one does not count: keeping the same content again repairs it."""
        matches = sql.rows(f"{SELECT} AND digest = ?", (*scope, digest))
        try:
            stored = chunks.to_stored(self.place, scope, matches[0]) if matches else None
        except errors.StoreDamaged:
            return None
        if stored is None:
            return None
        sealed = sql.rows(CHUNKS, (*scope, stored.output.id, 0, len(stored.numbers)))
        return None if chunks.sealed(scope, stored, stored.numbers, sealed) is None else stored.output

    def _insert(self, sql: S, scope: Scope, draft: OutputDraft, packed: Packed, stamp: Stamp) -> Output:
        sql.rows(NEW_PROJECT, (*scope, stamp.now - 1))
        same = f"SELECT id FROM outputs WHERE {IN_PROJECT} AND digest = ?"  # noqa: S608
        for (id,) in sql.rows(same, (*scope, packed.digest)):
            self._remove(sql, scope, id)
        id = self._free_id(sql, scope, packed.digest)
        sql.rows(NO_TOMBSTONE, (*scope, id))
        sql.rows(f"DELETE FROM output_chunks WHERE {ONE}", (*scope, id))  # noqa: S608 - left behind by damage
        row = chunks.new_row(scope, id, draft, packed, stamp)
        sql.rows(NEW, row)
        sql.many(NEW_CHUNK, [(*scope, id, *chunk) for chunk in packed.chunks])
        return chunks.to_stored(self.place, scope, row[2:]).output

    def _free_id(self, sql: S, scope: Scope, digest: str) -> str:
        """The shortest prefix of the digest that is not, and was not, the id of other content."""
        for length in range(limits.OUTPUT_ID_CHARS, len(digest) + 1):
            id = digest[:length]
            if all(owner == digest for (owner,) in sql.rows(TAKEN, (*scope, id, *scope, id))):
                return id
        raise chunks.damaged(self.place, digest)  # two rows have the full digest as their id

    def touch(self, scope: Scope, id: str, now: int) -> bool:
        return self._touch(scope, id, now) is not None

    def _touch(self, scope: Scope, id: str, now: int) -> Output | None:
        def work(sql: S) -> tuple[Output | None, Proof]:
            touched = sql.rows(TOUCH, (now, now, *scope, id))
            if not touched:
                return None, None
            proof = (f"SELECT 1 FROM outputs WHERE {ONE} AND used_at >= ?", (*scope, id, now))  # noqa: S608
            return chunks.to_stored(self.place, scope, touched[0]).output, proof

        return self._transactions.write(scope, work)

    # --- reading ------------------------------------------------------------------------------------------------------

    def find(self, scope: Scope, name: str) -> Output | None:
        name = name.lower()
        if not re.fullmatch(HEX, name):
            return None

        def work(sql: S) -> list[Row]:
            exact = sql.rows(f"{SELECT} AND id = ?", (*scope, name))
            # The id of a deleted output is not a prefix of another one.
            if exact or sql.rows(f"SELECT 1 FROM output_tombstones WHERE {ONE}", (*scope, name)):  # noqa: S608
                return exact
            return sql.rows(f"{SELECT} AND digest >= ? AND digest < ? LIMIT 2", (*scope, name, name + "g"))

        matches = self._transactions.snapshot(scope.tenant, work)
        if len(matches) > 1:
            raise errors.ambiguous_output(name)
        return chunks.to_stored(self.place, scope, matches[0]).output if matches else None

    def _stored(self, sql: S, scope: Scope, id: str) -> StoredBody:
        matches = sql.rows(f"{SELECT} AND id = ?", (*scope, id))
        if not matches:
            raise errors.no_output(id)
        return chunks.to_stored(self.place, scope, matches[0])

    def _read_chunks(self, sql: S, scope: Scope, stored: StoredBody, numbers: range) -> bytes:
        sealed = sql.rows(CHUNKS, (*scope, stored.output.id, numbers.start, numbers.stop))
        return chunks.opened(self.place, scope, stored, numbers, sealed)

    def read_bytes(self, scope: Scope, id: str, start: int, stop: int) -> bytes:
        def work(sql: S) -> bytes:
            stored = self._stored(sql, scope, id)
            first, last = max(start, 0), min(stop, stored.output.size)
            if first >= last:
                return b""
            numbers = stored.with_bytes(first, last)
            body, offset = self._read_chunks(sql, scope, stored, numbers), numbers.start * stored.chunk
            return body[first - offset : last - offset]

        return self._transactions.snapshot(scope.tenant, work)

    def read_lines(self, scope: Scope, id: str, first: int, last: int) -> bytes:
        def work(sql: S) -> bytes:
            stored = self._stored(sql, scope, id)
            start, end = max(first, 1), min(last, stored.output.lines)
            if start > end:
                return b""
            numbers = stored.with_lines(start, end)
            body = self._read_chunks(sql, scope, stored, numbers)
            return chunks.cut_lines(stored, numbers, body, start, end)

        return self._transactions.snapshot(scope.tenant, work)

    def list(self, scope: Scope, limit: int) -> OutputPage:
        def work(sql: S) -> OutputPage:
            latest = sql.rows(f"{SELECT} ORDER BY used_at DESC, id DESC LIMIT ?", (*scope, limit))
            total = len(latest) if len(latest) < limit else sql.rows(STATS, tuple(scope))[0][0]
            return OutputPage(tuple(chunks.to_stored(self.place, scope, row).output for row in latest), total)

        return self._transactions.snapshot(scope.tenant, work)

    def stats(self, scope: Scope) -> OutputStats:
        return OutputStats._make(self._transactions.rows(scope.tenant, STATS, tuple(scope))[0][:-1])

    def cited(self, scope: Scope, ids: Iterable[str]) -> frozenset[str]:
        valid = sorted({id for id in ids if re.fullmatch(HEX, id)})
        if not valid:
            return frozenset()
        return self._transactions.snapshot(scope.tenant, lambda sql: self._cited(sql, scope, valid))

    def tombstone(self, scope: Scope, id: str) -> Tombstone | None:
        matches = self._transactions.rows(scope.tenant, f"{TOMBSTONES} WHERE {ONE}", (*scope, id.lower()))
        return chunks.to_tombstone(self.place, scope, matches[0][2:]) if matches else None

    def last_deleted(self, scope: Scope, by: Callable[[str], bool]) -> Tombstone | None:
        rows = self._transactions.rows(
            scope.tenant, f"{TOMBSTONES} WHERE {IN_PROJECT} ORDER BY gone_at DESC LIMIT {TOMBSTONE_BATCH}", tuple(scope)
        )
        tombstones = (chunks.to_tombstone(self.place, scope, row[2:]) for row in rows)
        return next((gone for gone in tombstones if gone.why in (DELETED, CLEARED) and by(gone.by)), None)

    # --- deleting -----------------------------------------------------------------------------------------------------

    def delete(self, scope: Scope, id: str, stamp: Stamp) -> bool:
        def work(sql: S) -> tuple[bool, Proof]:
            proof = self._bury(sql, scope, [(id, DELETED)], stamp.by, stamp.now)
            return proof is not None, proof

        return self._transactions.write(scope, work)

    def purge(self, scope: Scope, ids: Sequence[str], stamp: Stamp) -> int:
        def work(sql: S) -> tuple[int, Proof]:
            doomed = [id for id in ids if sql.rows(f"SELECT 1 FROM outputs WHERE {ONE}", (*scope, id))]  # noqa: S608
            for id in doomed:
                sql.rows(f"DELETE FROM output_calls WHERE {ONE}", (*scope, id))  # noqa: S608
                sql.rows(f"DELETE FROM output_reads WHERE {ONE}", (*scope, id))  # noqa: S608
            return len(doomed), self._bury(sql, scope, [(id, PURGED) for id in doomed], stamp.by, stamp.now)

        return self._transactions.write(scope, work)

    def clear(self, scope: Scope, stamp: Stamp) -> int:
        def work(sql: S) -> tuple[int, Proof]:
            doomed = [(id, CLEARED) for (id,) in sql.rows(IDS, tuple(scope))]
            return len(doomed), self._bury(sql, scope, doomed, stamp.by, stamp.now)

        return self._transactions.write(scope, work)

    def prune(
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

        def needed(sql: S) -> bool:
            """Usually there is nothing to prune; this read needs no lock."""
            _, total, _, _, _, used = sql.rows(STATS, tuple(scope))[0]
            return used is not None and bool(_why(used, total, oldest, max_bytes))

        def work(sql: S) -> tuple[Pruned, Proof]:
            chosen = list(islice(self._doomed(sql, scope, oldest, max_bytes, keep), most))
            proof = self._bury(sql, scope, [(id, why) for id, why, _ in chosen], "", now)
            return Pruned(len(chosen), sum(size for _, _, size in chosen)), proof

        if most <= 0 or not self._transactions.snapshot(scope.tenant, needed):
            return Pruned(0, 0)
        return self._transactions.write(scope, work)

    def _doomed(
        self, sql: S, scope: Scope, oldest: int | None, max_bytes: int | None, keep: frozenset[str]
    ) -> Iterator[tuple[str, str, int]]:
        """Id, reason and size of outputs to prune, in order. Citations are looked up as far as the caller reads."""
        total = sql.rows(STATS, tuple(scope))[0][1]
        by_use = sql.rows(BY_USE, tuple(scope))
        for start in range(0, len(by_use), BATCH):
            batch = by_use[start : start + BATCH]
            protected = keep | self._cited(sql, scope, [id for id, _, _ in batch])
            for id, size, used in batch:
                why = _why(used, total, oldest, max_bytes)
                if not why:
                    return
                if id not in protected:
                    total -= size
                    yield id, why, size

    def _bury(self, sql: S, scope: Scope, doomed: Iterable[tuple[str, str]], by: str, now: int) -> Proof:
        """Replace outputs with tombstones. The proof is that of the last one; None when none of them exists."""
        proof: Proof = None
        for id, why in doomed:
            for row in sql.rows(f"{SELECT} AND id = ?", (*scope, id)):
                tombstone = chunks.gone_row(self.place, scope, row, why, by, now)
                sql.rows(NO_TOMBSTONE, (*scope, id))  # left behind by damage
                sql.rows(NEW_TOMBSTONE, tombstone)
                self._remove(sql, scope, id)
                proof = (f"SELECT 1 FROM output_tombstones WHERE {ONE} AND hash = ?", (*scope, id, tombstone[-1]))  # noqa: S608
        return proof

    def _remove(self, sql: S, scope: Scope, id: str) -> None:
        self._remove_pieces(sql, scope, id)
        sql.rows(f"DELETE FROM output_chunks WHERE {ONE}", (*scope, id))  # noqa: S608
        sql.rows(f"DELETE FROM outputs WHERE {ONE}", (*scope, id))  # noqa: S608

    # --- for recall ---------------------------------------------------------------------------------------------------

    def index(self, scope: Scope, most: int) -> int:
        waiting = self._transactions.rows(scope.tenant, WAITING, scope)
        done = 0
        while done < len(waiting) and most > 0:
            batch: list[str] = []
            room = min(most, INDEX_BATCH_BYTES)
            while done < len(waiting) and room > 0:
                id, size = waiting[done]
                batch.append(id)
                room, most, done = room - size, most - size, done + 1
            self._index_all(scope, batch)
        return len(waiting) - done

    def _index_all(self, scope: Scope, ids: Sequence[str]) -> None:
        """Index outputs in one transaction without a sync of its own: what a power cut takes is indexed again."""
        cut = {id: some for id in ids if (some := self._cut(scope, id))}

        def work(sql: S) -> None:
            for id, some in cut.items():
                if sql.rows(f"{WAITING_HEAD} AND o.id = ?", (*scope, id)):  # neither deleted nor indexed since
                    for piece in some:
                        self._add_piece(sql, scope, id, piece)

        if cut:
            self._transactions.write_soon(scope, work, alone=True, patient=False)

    def _cut(self, scope: Scope, id: str) -> Sequence[Piece]:
        try:
            output = self._transactions.snapshot(scope.tenant, lambda sql: self._stored(sql, scope, id)).output
            return pieces(output, lambda start, stop: self.read_bytes(scope, id, start, stop))
        except errors.NotFound:
            return []  # deleted in the meantime
        except errors.StoreDamaged:
            return [Piece(0, 0, 1, "", [])]  # a read reports the damage; an empty piece keeps this from trying again

    # --- export and import --------------------------------------------------------------------------------------------

    def dump(self, scope: Scope) -> Iterator[Dumped | Tombstone]:
        for (id,) in self._transactions.rows(scope.tenant, IDS, tuple(scope)):
            dumped = self._transactions.snapshot(scope.tenant, partial(self._dump_one, scope=scope, id=id))
            if dumped is not None:  # an output that is deleted meanwhile is among the tombstones
                yield dumped
        last = ""
        while batch := self._transactions.rows(scope.tenant, MORE_TOMBSTONES, (*scope, last)):
            yield from (chunks.to_tombstone(self.place, scope, row[2:]) for row in batch)
            last = batch[-1][2]

    def _dump_one(self, sql: S, scope: Scope, id: str) -> Dumped | None:
        matches = sql.rows(f"{SELECT} AND id = ?", (*scope, id))
        if not matches:
            return None
        stored = chunks.to_stored(self.place, scope, matches[0])
        packed = chunks.sealed(scope, stored, stored.numbers, sql.rows(CHUNKS, (*scope, id, 0, len(stored.numbers))))
        if packed is None:
            raise chunks.damaged(self.place, id)
        return stored.output, tuple(packed)

    def add(self, scope: Scope, incoming: Iterable[Incoming]) -> int:
        def work(sql: S) -> tuple[int, Proof]:
            sql.rows(NEW_PROJECT, (*scope, 0))
            return import_outputs(sql, scope, incoming), ("SELECT 1", ())

        # An import cannot be read twice.
        return self._transactions.write(scope, work, repeatable=False)

    # --- health -------------------------------------------------------------------------------------------------------

    def check(self, sql: S) -> Finding:
        """Reads all outputs and tombstones of all projects."""
        bad: list[str] = []
        names = sql.rows("SELECT tenant, project, id FROM outputs ORDER BY tenant, project, id")
        for tenant, project, id in names:
            scope = Scope(tenant, project)
            try:
                stored = self._stored(sql, scope, id)
                self._read_chunks(sql, scope, stored, stored.numbers)
            except (errors.StoreDamaged, UnicodeDecodeError):
                bad.append(f"output {id!r} of project {project!r}")
        tombstones = sql.rows("SELECT tenant, project, id FROM output_tombstones ORDER BY tenant, project, id")
        for tenant, project, id in tombstones:
            try:
                row = sql.rows(f"{TOMBSTONES} WHERE {ONE}", (tenant, project, id))[0]
                chunks.to_tombstone(self.place, Scope(tenant, project), row[2:])
            except (errors.StoreDamaged, UnicodeDecodeError):
                bad.append(f"the tombstone of output {id!r} of project {project!r}")
        sound = f"{len(names):,} outputs and {len(tombstones):,} tombstones are as they were written"
        return Finding("outputs", not bad, ", ".join(bad[:5]) or sound)


def _why(used: int, total: int, oldest: int | None, max_bytes: int | None) -> str:
    """Why an output that was last used then is pruned when all take `total` bytes; empty when it may stay."""
    if oldest is not None and used < oldest:
        return TOO_OLD
    return NO_ROOM if max_bytes is not None and total > max_bytes else ""


def import_outputs(sql: Sql, scope: Scope, incoming: Iterable[Incoming]) -> int:
    """Add what is not stored yet, inside a transaction, one output in memory at a time. Returns how many were added.

    Nothing is trusted: each output is decompressed, compared with its digest, and packed again for its new project.
    """
    count = 0
    for item in incoming:
        if isinstance(item, IncomingTombstone):
            _import_tombstone(sql, scope, item)
        else:
            count += _import_output(sql, scope, item)
    return count


def _import_output(sql: Sql, scope: Scope, item: IncomingOutput) -> bool:
    output = item.output
    _check_id(item.line, output.id, output.digest)
    body = chunks.unpack(item.chunks, output.size)
    if body is None or len(body) != output.size or chunks.digest_of(body) != output.digest:
        raise errors.bad_import(item.line, f"the output {output.id} is not what its digest says")
    if sql.rows(f"{SELECT} AND digest = ?", (*scope, output.digest)):
        return False
    if any(digest != output.digest for (digest,) in sql.rows(TAKEN, (*scope, output.id, *scope, output.id))):
        raise errors.import_conflict("output", output.id)
    sql.rows(NO_TOMBSTONE, (*scope, output.id))
    packed = chunks.pack(scope, output.digest, body)
    sql.rows(NEW, chunks.output_row(scope, output._replace(lines=packed.lines), packed))
    sql.many(NEW_CHUNK, [(*scope, output.id, *chunk) for chunk in packed.chunks])
    return True


def _import_tombstone(sql: Sql, scope: Scope, item: IncomingTombstone) -> None:
    tombstone = item.tombstone
    _check_id(item.line, tombstone.id, tombstone.digest)
    if not sql.rows(TAKEN, (*scope, tombstone.id, *scope, tombstone.id)):
        sql.rows(NEW_TOMBSTONE, chunks.tombstone_row(scope, tombstone))


def _check_id(line: int, id: str, digest: str) -> None:
    complete = len(digest) == 64 and re.fullmatch(HEX, digest)
    if not complete or not digest.startswith(id) or len(id) < limits.OUTPUT_ID_CHARS:
        raise errors.bad_import(line, f"the id {errors.quoted(id)} is not the beginning of its digest")
