"""Tenants are kept apart by the server itself, also when a statement of ours forgets to ask for its own.

The statements of the store are taken as they are sent, and what they ask of the tenant is taken out of them. Then two
tenants with the same names for everything live through the same story, and neither sees or changes what is the other's.
The same with row-level security switched off shows that the test can fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from contract.kit import NOON, NOTES, delete, everything, keys, put, raw, stamp
from limpet import errors
from limpet.api import Limpet
from limpet.model import MEMORY, NOTE, OutputDraft, Scope
from limpet.store import CallRecord, EventQuery, ReadRecord, Store, Words
from limpet.stores.postgres import schema
from limpet.wiring import choose_store
from postgres import as_admin

pytestmark = pytest.mark.one_server
MINE, THEIRS = Scope("mine", "p"), Scope("theirs", "p")
TENANT = re.compile(r"\b(?:\w+\.)?tenant = (%s|%\(tenant\)s|\w+\.tenant)")
UNPREPARED = " -- never prepared"
READS_TABLE = re.compile(rf"\b(?:FROM|JOIN|UPDATE)\s+({'|'.join(schema.TABLES[1:])})\b")


@contextmanager
def sent(monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]) -> Iterator[list[str]]:
    """Every statement as it is sent to the server, after a change."""
    texts: list[str] = []

    def noting(original: Callable[..., Any]) -> Callable[..., Any]:
        def noted(cursor: Any, query: Any, *values: Any, **options: Any) -> Any:
            if isinstance(query, str):
                texts.append(query + (UNPREPARED if options.get("prepare") is False else ""))
                query = change(query)
            return original(cursor, query, *values, **options)

        return noted

    with monkeypatch.context() as patch:
        for kind in (psycopg.Cursor, psycopg.ServerCursor):
            patch.setattr(kind, "execute", noting(kind.execute))
        patch.setattr(psycopg.Cursor, "executemany", noting(psycopg.Cursor.executemany))
        yield texts


def without_filter(text: str) -> str:
    """A statement that does not ask for its tenant. A value that was to be compared is still taken."""
    return TENANT.sub(lambda found: f"{found[1]}::text IS NOT NULL" if "%" in found[1] else "true", text)


@pytest.fixture
def server(postgres_url: str) -> Iterator[Store]:
    store = choose_store(postgres_url)
    yield store
    store.close()


def story(store: Store, scope: Scope) -> None:
    """The same names in every tenant, and texts that say whose they are."""
    whose = f"secret of {scope.tenant}"
    put(store, scope, "a", f"{whose} one", tags=("Tag", scope.tenant))
    put(store, scope, "a", f"{whose} two", tags=("Tag",))
    put(store, scope, "gone", whose)
    delete(store, scope, "gone")
    put(store, scope, "key", whose, kind=MEMORY)
    kept = store.outputs.keep(scope, OutputDraft("tool"), f"{whose} ".encode() * 900, stamp()).output
    store.calls.record_call(scope, CallRecord("s", "t", "c", kept.id, kept.digest, 1, True, False, "t", 10, 1), 0)
    store.calls.record_read(scope, ReadRecord("s", "t", kept.id, [1], 1, "t", 1))
    deleted = store.outputs.keep(scope, OutputDraft("tool"), b"to be deleted", stamp()).output
    store.outputs.delete(scope, deleted.id, stamp())
    waiting = store.vectors.missing(scope, "model", 10)
    store.vectors.keep(scope, "model", [(one, scope.tenant.encode()) for one in waiting[:2]])


def answers(store: Store, scope: Scope) -> dict[str, Any]:
    """What a tenant is told. A call that fails says so."""
    hold = Limpet(store, scope)
    calls: dict[str, Callable[[], Any]] = {
        "read": lambda: store.entries.read(scope, NOTE, "a"),
        "list": lambda: store.entries.list(scope, NOTES),
        "earlier": lambda: store.entries.earlier(scope, NOTE, None),
        "containing": lambda: store.entries.containing(scope, NOTES, "secret"),
        "matching": lambda: store.entries.matching(scope, NOTES, Words((("secret",),))),
        "tags": lambda: store.entries.tags(scope, NOTE, ""),
        "tally": lambda: store.entries.tally(scope, NOTE, ""),
        "projects": lambda: store.projects(scope.tenant),
        "events": lambda: store.entries.events(scope, EventQuery()),
        "dump": lambda: everything(store, scope),
        "recall": lambda: [(hit.kind, hit.key, hit.snippet) for hit in hold.recall("secret").hits],
        "outputs": lambda: [(output.id, output.uses) for output in store.outputs.list(scope, 10).outputs],
        "bytes": lambda: [
            store.outputs.read_bytes(scope, one.id, 0, 100) for one in store.outputs.list(scope, 10).outputs
        ],
        "dump_outputs": lambda: list(store.outputs.dump(scope)),
        "savings": lambda: store.calls.savings(scope),
        "usage": lambda: store.usage(scope.tenant),
        "vectors": lambda: [vector[2] for vector in store.vectors.after(scope, "model", 0)],
    }
    told = {}
    for name, call in calls.items():
        try:
            told[name] = call()
        except errors.LimpetError as problem:
            told[name] = problem.message
    return told


def test_a_filter_that_is_missing_shows_nothing_of_others(server: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with sent(monkeypatch, without_filter) as texts:
        story(server, THEIRS)
        before = answers(server, THEIRS)
        story(server, MINE)
        mine = answers(server, MINE)
        assert answers(server, THEIRS) == before
    assert sum(TENANT.search(text) is not None for text in texts) > 100, "filters were there to be taken out"
    assert answers(server, MINE) == mine, "the filters change nothing"
    assert mine["read"].content == "secret of mine two"
    assert [hit[:2] for hit in mine["recall"]][:2] == [("memory", "key"), ("note", "a")]
    assert "theirs" not in repr(mine)


def test_with_the_rule_switched_off_the_missing_filter_is_noticed(
    server: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    story(server, THEIRS)
    story(server, MINE)
    right = answers(server, MINE)
    for table in schema.TABLES[1:]:
        raw(postgres_url, f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    assert answers(server, MINE) == right, "the store's own filters keep tenants apart too"
    with sent(monkeypatch, without_filter):
        wrong = answers(server, MINE)
    same = {name for name, answer in wrong.items() if answer == right[name]}
    # Of two rows with one key a read gets whichever the database comes to first, and that may be the right one.
    assert same <= {"read"}
    assert "theirs" in repr(wrong)


def test_what_belongs_to_others_cannot_be_written(postgres_url: str, server: Store) -> None:
    story(server, THEIRS)
    before = everything(server, THEIRS)
    with psycopg.connect(postgres_url, autocommit=True) as con:
        tables = schema.TABLES[1:]
        for tenant in (None, "", "mine", "=", "=mine"):
            con.execute("SELECT set_config('limpet.tenant', %s, false)", (tenant,))
            for table in tables:
                assert con.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]
                assert con.execute(f"DELETE FROM {table}").rowcount == 0
                assert con.execute(f"UPDATE {table} SET tenant = tenant").rowcount == 0
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                con.execute("INSERT INTO projects VALUES ('theirs', 'q', 0, 0)")
        con.execute("SELECT set_config('limpet.unfiltered', 'on', false)")  # to read everything is not to write it
        assert con.execute("SELECT count(*) > 0 FROM entries").fetchall() == [(True,)]
        for table in tables:
            assert con.execute(f"DELETE FROM {table}").rowcount == 0
        con.execute("SELECT set_config('limpet.tenant', '=theirs', false)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            con.execute("UPDATE projects SET tenant = 'mine'")
    assert everything(server, THEIRS) == before


def test_a_connection_that_served_one_tenant_serves_the_next(server: Store) -> None:
    """One after the other on the same few connections, also after a read that failed."""
    for scope in (MINE, THEIRS):
        put(server, scope, "a", f"of {scope.tenant}")
    for _ in range(8):
        for scope in (MINE, THEIRS):
            found = server.entries.read(scope, NOTE, "a")
            assert found is not None
            assert found.content == f"of {scope.tenant}"
            with pytest.raises(errors.LimpetError):
                server.entries.read(scope, NOTE, "\0")
            assert keys(server.entries.list(scope, NOTES).entries) == ["a"]
            assert keys(server.entries.containing(scope, NOTES, f"of {scope.tenant}").entries) == ["a"]


def test_no_plan_without_the_rule_is_kept(server: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements that may read past the rule are never prepared, so that they are planned each time they are run."""
    for scope in (MINE, THEIRS):
        put(server, scope, "a", "searched for again and again")
    hold = Limpet(server, MINE)
    with sent(monkeypatch, str) as texts:
        for _ in range(8):
            assert hold.recall("searched").hits
            server.entries.containing(MINE, NOTES, "again")
            server.entries.matching(MINE, NOTES, Words((("again",),)))
            assert all(finding.ok for finding in server.check())
    past = {text.removesuffix(UNPREPARED) for text in texts if text.endswith(UNPREPARED)}
    assert len(past) >= 3
    with server._db.connection() as con:  # type: ignore[attr-defined]
        prepared = {row[0] for row in con.execute("SELECT statement FROM pg_prepared_statements").fetchall()}
    assert prepared, "others are"
    assert {re.sub(r"\$\d+", "%s", text) for text in prepared} & past == set()
    checked = [text for text in texts if text.startswith("SELECT tenant, project, ") and "WHERE" not in text]
    assert checked
    assert not any(text.startswith("SELECT tenant, project, ") for text in prepared)


# --- keys -------------------------------------------------------------------------------------------------------------

UNIQUE = (
    "SELECT c.relname, i.relname, coalesce(a.attname, '') FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid "
    "JOIN pg_class i ON i.oid = x.indexrelid LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.indkey[0] "
    "WHERE x.indisunique AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'limpet_schema'"
)
PROTECTED = (
    "SELECT c.relname, EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant'), "
    "c.relrowsecurity AND c.relforcerowsecurity, (SELECT array_agg(p.polname::text ORDER BY 1) FROM pg_policy p "
    "WHERE p.polrelid = c.oid) FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"
)


def test_every_unique_key_begins_with_the_tenant(server: Store, postgres_url: str) -> None:
    def others() -> list[str]:
        return [index for _, index, column in raw(postgres_url, UNIQUE) if column != "tenant"]

    assert others() == []
    assert len(raw(postgres_url, UNIQUE)) >= len(schema.TABLES)
    raw(postgres_url, "CREATE UNIQUE INDEX entries_by_number ON entries (doc)")
    assert others() == ["entries_by_number"], "one that does not would be seen"


def test_every_table_is_protected(server: Store, postgres_url: str) -> None:
    found = {table: (tenant, forced, rules) for table, tenant, forced, rules in raw(postgres_url, PROTECTED)}
    assert set(found) == set(schema.TABLES)
    assert found.pop("limpet_schema") == (False, False, None)
    assert {*map(repr, found.values())} == {repr((True, True, ["own_tenant", "unfiltered"]))}


def test_every_statement_asks_for_its_tenant_in_every_table(server: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where tables are joined: then an engine that spreads tenants over servers need not ask all of them."""
    with sent(monkeypatch, str) as texts:
        story(server, MINE)
        answers(server, MINE)
        server.outputs.prune(MINE, now=NOON * 2, max_age_ms=1, max_bytes=1)
        server.entries.erase(MINE, [1, 2])
        server.entries.append(MINE, NOTE, [], stamp())
    seen = [text for text in dict.fromkeys(texts) if READS_TABLE.search(text)]
    assert len(seen) > 50
    assert [text for text in seen if len(TENANT.findall(text)) < len(READS_TABLE.findall(text))] == []
    assert len(TENANT.findall("SELECT 1 FROM entries e JOIN events v ON v.key = e.key WHERE e.tenant = %s")) == 1


# --- what is said of it -----------------------------------------------------------------------------------------------


def told(url: str) -> tuple[bool, str]:
    store = choose_store(url)
    try:
        (found,) = [finding for finding in store.check() if finding.name == "tenants"]
    finally:
        store.close()
    return found.ok, found.detail


def test_a_role_that_sees_everything_is_reported(server: Store, postgres_url: str) -> None:
    put(server, MINE, "a", "text")
    assert told(postgres_url) == (True, "row-level security keeps them apart")
    ok, detail = told(as_admin(postgres_url))
    assert ok, "alone, a tenant has nobody to be kept from"
    assert "is a superuser; there is but one tenant" in detail
    put(server, THEIRS, "a", "text")
    ok, detail = told(as_admin(postgres_url))
    assert not ok
    assert "is a superuser; nothing but our own statements keeps tenants apart" in detail
    raw(postgres_url, "ALTER TABLE events NO FORCE ROW LEVEL SECURITY")
    ok, detail = told(postgres_url)
    assert not ok
    assert "switched off for events" in detail
