"""A store that is distributed over a Citus cluster: what only a cluster can show.

`make test-citus` runs the whole contract on one; without one, the tests that need it are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import limpet
import other_database
from contract.kit import NOTES, everything, put, raw
from golden import make as golden
from limpet import errors
from limpet.model import Scope
from limpet.store import Store
from limpet.stores.postgres import distribute, replica
from limpet.stores.postgres.distribute import EXTENSION
from limpet.stores.postgres.schema import SCHEMA, TABLES, migration, statements
from limpet.stores.postgres.store import PostgresStore
from limpet.wiring import choose_store
from postgres import as_admin

TENANTS = [f"tenant {number}" for number in range(24)]
THERE = "SELECT name FROM unnest(?::text[]) name WHERE to_regclass(name) IS NOT NULL"
WHERE = (
    "SELECT nodeport FROM citus_shards s WHERE s.table_name = ?::regclass "
    "AND s.shardid = get_shard_id_for_distribution_column(?::regclass, ?::text)"
)


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> str:
    if not request.config.getoption("--database"):
        pytest.skip("needs a Citus cluster: make test-citus")
    url: str = request.getfixturevalue("postgres_url")
    if not raw(url, EXTENSION):
        pytest.skip("the database has no Citus")
    return url


@pytest.fixture
def spread(cluster: str) -> Iterator[Store]:
    store = choose_store(cluster)
    yield store
    store.close()


def test_tenants_live_on_all_servers_each_on_one(spread: Store, cluster: str) -> None:
    homes: dict[str, set[int]] = {}
    for tenant in TENANTS:
        put(spread, Scope(tenant, "p"), "k", f"of {tenant}", tags=("t",))
        homes[tenant] = {raw(cluster, WHERE, (table, table, tenant))[0][0] for table in TABLES[1:]}
    assert {len(ports) for ports in homes.values()} == {1}
    assert len(set.union(*homes.values())) == 2
    for tenant in TENANTS:
        assert [entry.content for entry in spread.entries.list(Scope(tenant, "p"), NOTES).entries] == [f"of {tenant}"]
    assert all(finding.ok for finding in spread.check())


def test_the_health_check_says_where_the_parts_are(spread: Store) -> None:
    (found,) = [finding for finding in spread.check() if finding.name == "distributed"]
    assert found.ok
    assert "every table is distributed by tenant" in found.detail


def test_what_is_distributed_already_stays_as_it_is(spread: Store) -> None:
    put(spread, Scope("one", "p"), "k", "text")
    before = everything(spread, Scope("one", "p"))
    made = spread.distribute()
    assert (made.tables, made.done) == ((), len(TABLES) - 1)
    assert everything(spread, Scope("one", "p")) == before


def test_a_replica_is_not_asked_where_rows_are_on_other_servers(cluster: str) -> None:
    store = PostgresStore(cluster, cluster)
    put(store, Scope("one", "p"), "k", "an osprey")
    assert [entry.key for entry in store.entries.containing(Scope("one", "p"), NOTES, "osprey").entries] == ["k"]
    assert set(store.searches()) == {"unmarked"}
    store.close()


def test_a_row_of_another_tenant_is_refused_by_the_servers(spread: Store, cluster: str) -> None:
    for tenant in ("mine", "theirs"):
        put(spread, Scope(tenant, "p"), "k", f"of {tenant}")
    with psycopg.connect(
        f"{cluster}{'&' if '?' in cluster else '?'}options=-ccitus.propagate_set_commands%3Dlocal"
    ) as con:
        con.execute("SET LOCAL limpet.tenant = '=mine'")
        assert con.execute("SELECT DISTINCT tenant FROM entries").fetchall() == [("mine",)]
        assert con.execute("DELETE FROM entries WHERE tenant = 'theirs'").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            con.execute("INSERT INTO projects VALUES ('theirs', 'q', 0, 0)")


def test_rows_of_the_schema_before_are_brought_along(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        for drop in other_database.DROP:
            raw(cluster, drop)
        golden.lay(cluster, SCHEMA - 1)
        with psycopg.connect(cluster) as con, monkeypatch.context() as patch:
            con.execute(f"SET citus.shard_count = {other_database.PARTS}")
            there = raw(cluster, THERE, ([*TABLES[1:]],))
            patch.setattr(distribute, "TENANT_TABLES", tuple(name for (name,) in there))
            made = distribute.distribute(con, cluster)
        assert dict(made.tables)["entries"] > 0
        with limpet.open(cluster, project=golden.PROJECT, session="alpha") as hold:
            assert len(hold.call("list_notes", {})["notes"]) > 0
            assert [finding for finding in hold.check() if not finding.ok] == []
            assert raw(cluster, "SELECT version FROM limpet_schema") == [(SCHEMA,)]
    finally:
        other_database.make(as_admin(cluster))


# --- without a cluster ------------------------------------------------------------------------------------------------


@pytest.mark.one_server
def test_a_server_without_the_extension_is_told_so(postgres_url: str) -> None:
    store = choose_store(postgres_url)
    with pytest.raises(errors.BadInput, match="no extension citus"):
        store.distribute(dry_run=True)
    assert not [finding for finding in store.check() if finding.name == "distributed"]
    store.close()


@pytest.mark.one_server
def test_a_replica_is_left_alone_once_the_rows_went_elsewhere(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process distributed the store since this one looked."""
    store = PostgresStore(postgres_url, postgres_url)
    put(store, Scope("one", "p"), "k", "an osprey")
    found = iter((False, True))
    monkeypatch.setattr(distribute, "is_distributed", lambda _: next(found))
    monkeypatch.setattr(replica, "MARK", "SELECT no_such_column FROM projects WHERE tenant = %s AND project = %s")
    for _ in range(2):
        assert store.entries.containing(Scope("one", "p"), NOTES, "osprey").total == 1
    assert set(store.searches()) == {replica.UNMARKED}
    store.close()


def test_a_file_is_not_distributed() -> None:
    with pytest.raises(errors.BadInput, match="it is one file"):
        choose_store("limpet.db").distribute()


def test_migrations_are_sent_statement_by_statement() -> None:
    for number in range(1, SCHEMA + 1):
        sent = statements(migration(number))
        assert all(text.endswith(";") or text.count("$$") == 2 for text in sent)
        assert sum(text.count(";\n\n") for text in sent) == 0 or "$$" in "".join(sent)
    assert statements("-- of it; all\nSELECT 1;\n\nDO $$ BEGIN\n NULL;\nEND $$;\nSELECT\n 2;") == [
        "SELECT 1;",
        "DO $$ BEGIN\n NULL;\nEND $$;",
        "SELECT\n 2;",
    ]
