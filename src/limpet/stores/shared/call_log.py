"""The call log: the last result of each call, the latest reads, and the tokens saved. For every store.

All of it is committed without fsync. Old records are removed a few at a time, with the next call.
"""

from __future__ import annotations

from limpet import limits
from limpet.light import Any, json
from limpet.model import Scope
from limpet.store import CallRecord, LastResult, ReadRecord, Savings, Uses, to_json
from limpet.stores.shared.outputs import TOUCH
from limpet.stores.shared.sql import IN_PROJECT, Row, S, Sql, Transactions

FORGET_MOST = 20  # old records of each kind that one call removes
COUNTS = ("calls", "kept", "repeats", "reads", "observed", "returned", "read_back")

# The statements of this module are built from constants; every value is a parameter.
LAST_RESULT = f"SELECT id, digest, at FROM output_calls WHERE {IN_PROJECT} AND session = ? AND call = ?"  # noqa: S608
# A missing row is inserted first, then updated. One statement for both (ON CONFLICT DO UPDATE) does not work where a
# table is spread over several servers.
NEW_CALL = (
    "INSERT INTO output_calls (tenant, project, session, call, id, digest, at) VALUES (?, ?, ?, ?, '', '', 0) "
    "ON CONFLICT DO NOTHING"
)
LAST_CALL = f"UPDATE output_calls SET id = ?, digest = ?, at = ? WHERE {IN_PROJECT} AND session = ? AND call = ?"  # noqa: S608
READS = f"SELECT reads FROM output_reads WHERE {IN_PROJECT} AND session = ? AND id = ?"  # noqa: S608
NEW_READS = (
    "INSERT INTO output_reads (tenant, project, session, id, reads, at) VALUES (?, ?, ?, ?, '[]', 0) "
    "ON CONFLICT DO NOTHING"
)
LAST_READS = f"UPDATE output_reads SET reads = ?, at = ? WHERE {IN_PROJECT} AND session = ? AND id = ?"  # noqa: S608
NEW_SAVINGS = (
    f"INSERT INTO output_savings (tenant, project, session, tool, tokenizer, {', '.join(COUNTS)}) "  # noqa: S608
    f"VALUES (?, ?, ?, ?, ?{', 0' * len(COUNTS)}) ON CONFLICT DO NOTHING"
)
ADD = (
    f"UPDATE output_savings SET {', '.join(f'{name} = {name} + ?' for name in COUNTS)} "  # noqa: S608
    f"WHERE {IN_PROJECT} AND session = ? AND tool = ? AND tokenizer = ?"
)
SAVINGS = f"SELECT session, tool, tokenizer, {', '.join(COUNTS)} FROM output_savings WHERE {IN_PROJECT}"  # noqa: S608
NEW_USE = (
    "INSERT INTO uses (tenant, project, kind, key, what, count, at) VALUES (?, ?, ?, ?, ?, 0, 0) ON CONFLICT DO NOTHING"
)
USE = f"UPDATE uses SET count = count + 1, at = ? WHERE {IN_PROJECT} AND kind = ? AND key = ? AND what = ?"  # noqa: S608
USES = f"SELECT kind, key, what, count, at FROM uses WHERE {IN_PROJECT}"  # noqa: S608
FORGET = [
    f"DELETE FROM {table} WHERE {IN_PROJECT} AND (session, {name}) IN "  # noqa: S608
    f"(SELECT session, {name} FROM {table} WHERE {IN_PROJECT} AND at < ? ORDER BY at LIMIT {FORGET_MOST})"
    for table, name in (("output_calls", "call"), ("output_reads", "id"))
]


class SqlCallLog:
    def __init__(self, transactions: Transactions[S]) -> None:
        self._transactions: Transactions[Any] = transactions

    def last_result(self, scope: Scope, session: str, call: str) -> LastResult | None:
        matches = self._transactions.rows(scope.tenant, LAST_RESULT, (*scope, session, call))
        return LastResult._make(matches[0]) if matches else None

    def record_call(self, scope: Scope, record: CallRecord, forget_before: int) -> None:
        def work(sql: Sql) -> None:
            if record.call:
                call = (*scope, record.session, record.call)
                sql.rows(NEW_CALL, call)
                sql.rows(LAST_CALL, (record.id, record.digest, record.at, *call))
            counts = (1, int(record.new), int(record.repeated), 0, record.observed, record.returned, 0)
            _add(sql, (*scope, record.session, record.tool, record.tokenizer), counts)
            for forget in FORGET:
                sql.rows(forget, (*scope, *scope, forget_before))

        self._transactions.write_soon(scope, work)

    def record_read(self, scope: Scope, record: ReadRecord) -> tuple[Any, ...]:
        def work(sql: Sql) -> tuple[Any, ...]:
            sql.rows(TOUCH, (record.at, record.at, *scope, record.id))
            read = (*scope, record.session, record.id)
            sql.rows(NEW_READS, read)
            earlier = json.loads(sql.rows(READS, read)[0][0])
            latest = to_json([*earlier, record.what][-limits.OUTPUT_READS_NOTED :])
            sql.rows(LAST_READS, (latest, record.at, *read))
            counts = (0, 0, 0, 1, 0, 0, record.tokens)
            _add(sql, (*scope, record.session, record.tool, record.tokenizer), counts)
            return tuple(earlier)

        return self._transactions.write_soon(scope, work, patient=False)

    def savings(self, scope: Scope, session: str | None = None) -> tuple[Savings, ...]:
        condition, values = ("", ()) if session is None else (" AND session = ?", (session,))
        sql = f"{SAVINGS}{condition} ORDER BY session, tool, tokenizer"
        return tuple(Savings._make(row) for row in self._transactions.rows(scope.tenant, sql, (*scope, *values)))

    def record_use(self, scope: Scope, kind: str, key: str, what: str, at: int) -> None:
        def work(sql: Sql) -> None:
            use = (*scope, kind, key, what)
            sql.rows(NEW_USE, use)
            sql.rows(USE, (at, *use))

        self._transactions.write_soon(scope, work, patient=False)

    def uses(self, scope: Scope, kind: str | None = None, key: str | None = None) -> tuple[Uses, ...]:
        named = {" AND kind = ?": kind, " AND key = ?": key}
        conditions = {condition: value for condition, value in named.items() if value is not None}
        sql = f"{USES}{''.join(conditions)} ORDER BY kind, key, what"
        counted = self._transactions.rows(scope.tenant, sql, (*scope, *conditions.values()))
        return tuple(Uses._make(row) for row in counted)


def _add(sql: Sql, name: Row, counts: Row) -> None:
    sql.rows(NEW_SAVINGS, name)
    sql.rows(ADD, (*counts, *name))
