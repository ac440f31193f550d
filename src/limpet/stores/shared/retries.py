"""Writes that came with a key of the caller's: what they changed, so that a repeated call is not made again.

They are read and written in the transaction of the write itself. The latest ones are remembered, up to a number and an
age; a key that is forgotten is a new one.
"""

from __future__ import annotations

from collections.abc import Sequence

from limpet import errors, limits
from limpet.light import json
from limpet.model import Change, Scope, Stamp, Tally
from limpet.record import NamedTuple
from limpet.store import to_json
from limpet.stores.shared.sql import IN_PROJECT, Sql

# The statements of this module are built from constants; every value is a parameter.
FIRST_CALL = f"SELECT call, seqs, total, tags FROM retries WHERE {IN_PROJECT} AND key = ? AND at >= ?"  # noqa: S608
FORGET_KEY = f"DELETE FROM retries WHERE {IN_PROJECT} AND key = ?"  # noqa: S608
REMEMBER = "INSERT INTO retries (tenant, project, key, call, at, seqs, total, tags) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
FORGET_OLD = f"DELETE FROM retries WHERE {IN_PROJECT} AND at < ?"  # noqa: S608
PROJECT_TALLY = (  # the counts in an answer are those of the whole project
    "SELECT CAST(coalesce(sum(count) FILTER (WHERE tag = ''), 0) AS bigint), "  # noqa: S608
    f"count(*) FILTER (WHERE tag <> '' AND count > 0) FROM tallies WHERE {IN_PROJECT} AND kind = ? AND session = ''"
)
WRITTEN_BEFORE = (  # the changes that wrote what an erased change replaced
    "SELECT v.seq FROM events e JOIN events v ON v.tenant = e.tenant AND v.project = e.project AND v.kind = e.kind "
    "AND v.key = e.key AND v.version = e.version - 1 WHERE e.tenant = ? AND e.project = ? AND e.seq = ?"
)
WITH_DIGEST = f"SELECT key, seqs FROM retries WHERE {IN_PROJECT} AND call <> ''"  # noqa: S608
FORGET_CALL = f"UPDATE retries SET call = '' WHERE {IN_PROJECT} AND key = ?"  # noqa: S608
OLDEST_KEPT = f"SELECT at FROM retries WHERE {IN_PROJECT} ORDER BY at DESC LIMIT 1 OFFSET ?"  # noqa: S608


class FirstCall(NamedTuple):
    """What the first call with a key changed, and the counts of the project after it."""

    seqs: tuple[int, ...]
    tally: Tally


def first_call(sql: Sql, scope: Scope, stamp: Stamp) -> FirstCall | None:
    """The first call with the key of this one, if it is known. Conflict when that was another call."""
    if stamp.retry is None:
        return None
    rows = sql.rows(FIRST_CALL, (*scope, stamp.retry.key, stamp.now - limits.RETRY_MS))
    if not rows:
        return None
    call, seqs, total, tags = rows[0]
    if not call:
        raise errors.retry_erased(json.loads(seqs)[0])
    if call != stamp.retry.call:
        raise errors.key_used(stamp.retry.key)
    return FirstCall(tuple(json.loads(seqs)), Tally(total, tags))


def remember(sql: Sql, scope: Scope, stamp: Stamp, changes: tuple[Change, ...]) -> None:
    """Remember a call with its changes. One that changed nothing is not remembered: it may be made again."""
    seqs = [change.seq for change in changes]
    if stamp.retry is None or not all(seqs):
        return
    sql.rows(FORGET_KEY, (*scope, stamp.retry.key))  # one that has been forgotten by its age
    tally = sql.rows(PROJECT_TALLY, (*scope, changes[0].entry.kind))[0]
    sql.rows(REMEMBER, (*scope, *stamp.retry, stamp.now, to_json(seqs), *tally))
    beyond = sql.rows(OLDEST_KEPT, (*scope, limits.RETRIES_KEPT))
    sql.rows(FORGET_OLD, (*scope, max(stamp.now - limits.RETRY_MS, beyond[0][0] + 1 if beyond else 0)))


def forget_calls(sql: Sql, scope: Scope, erased: Sequence[int]) -> None:
    """Forget what the calls were that wrote a text which is erased: by a digest of it, the text could be guessed. Their
    keys stay, so that such a call is not made again."""
    gone = {*erased, *(row[0] for seq in erased for row in sql.rows(WRITTEN_BEFORE, (*scope, seq)))}
    for key, seqs in sql.rows(WITH_DIGEST, tuple(scope)):
        if gone.intersection(json.loads(seqs)):
            sql.rows(FORGET_CALL, (*scope, key))
