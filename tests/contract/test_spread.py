"""Tenants on three servers: the same store, and nothing of it decides where a row lives.

`make test-spread` runs the whole contract on such servers; here is what only they can show.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from contract.kit import NOTES, everything, put, raw, stamp
from contract.test_tenants import MINE, THEIRS, answers, sent, story, without_filter
from limpet import errors
from limpet.model import NOTE, Scope
from limpet.store import EventQuery, Store
from limpet.stores.postgres import schema
from limpet.stores.postgres.entries import ONE_ENTRY
from limpet.stores.postgres.schema import TAKE_PROJECT
from limpet.stores.postgres.write import COUNT, LAST_VERSION, LOCK, STEPS
from limpet.wiring import choose_store
from spread import PARTS, SPREAD_SQL, Spread

TENANTS = [f"tenant {number}" for number in range(24)]


@pytest.fixture
def spread_url(spread_servers: Spread) -> Iterator[str]:
    with spread_servers.database() as url:
        yield url


@pytest.fixture
def spread(spread_url: str) -> Iterator[Store]:
    store = choose_store(spread_url)
    yield store
    store.close()


def on_nodes(servers: Spread, table: str) -> list[set[str]]:
    """The tenants that each node keeps rows of, asked of the nodes themselves."""
    found = []
    for node, address in enumerate(servers.nodes):
        parts = " UNION ".join(f"SELECT tenant FROM part_{part}.{table}" for part in range(node, PARTS, 3))
        with psycopg.connect(address) as con:
            found.append({row[0] for row in con.execute(parts).fetchall()})
    return found


def test_tenants_live_on_all_three_servers_each_on_one(spread: Store, spread_servers: Spread) -> None:
    for tenant in TENANTS:
        put(spread, Scope(tenant, "p"), "k", f"of {tenant}", tags=("t",))
    for table in ("projects", "entries", "entry_tags", "tallies", "events", "vectors_waiting"):
        kept = on_nodes(spread_servers, table)
        assert all(kept), f"each server keeps a part of {table}"
        assert sum(map(len, kept)) == len(TENANTS)
        assert set().union(*kept) == set(TENANTS)
    for tenant in TENANTS:
        assert [entry.content for entry in spread.entries.list(Scope(tenant, "p"), NOTES).entries] == [f"of {tenant}"]
    assert all(finding.ok for finding in spread.check())


def test_the_tables_that_are_spread_are_all_that_have_a_tenant(spread: Store, spread_url: str) -> None:
    found = raw(spread_url, "SELECT relname, relkind::text FROM pg_class WHERE relname = ANY(?)", ([*schema.TABLES],))
    assert dict(found) == {"limpet_schema": "r"} | dict.fromkeys(schema.TABLES[1:], "p")


def test_a_node_is_asked_for_one_tenant_only(spread: Store, spread_url: str) -> None:
    """What a statement asks of the tenant is sent along. Otherwise a node would look through, and lock, all of them."""
    put(spread, MINE, "k", "text")
    counting = {"steps": "[]", "kinds": [NOTE], "sessions": [""], "tags_counted": [""], **MINE._asdict()}
    asked: dict[str, Any] = {
        ONE_ENTRY: (*MINE, NOTE, "k"),
        LOCK: tuple(MINE),
        TAKE_PROJECT: tuple(MINE),
        LAST_VERSION: (*MINE, NOTE, "k"),
        f"WITH {STEPS}, {COUNT} SELECT count(*) FROM counted": counting,
    }
    with psycopg.connect(spread_url) as con:
        con.execute("SELECT set_config('limpet.tenant', '=mine', false)")
        for query, values in asked.items():
            plan = [row[0] for row in con.execute(f"EXPLAIN (VERBOSE) {query}", values).fetchall()]
            sent_there = [line for line in plan if "Remote SQL: SELECT" in line]
            assert len(sent_there) == 1, plan
            assert "(tenant = 'mine'" in sent_there[0]
            assert "(project = 'p'" in sent_there[0]


def test_a_missing_filter_shows_nothing_of_others_there_either(spread: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with sent(monkeypatch, without_filter):
        story(spread, THEIRS)
        before = answers(spread, THEIRS)
        story(spread, MINE)
        mine = answers(spread, MINE)
        assert answers(spread, THEIRS) == before
    assert answers(spread, MINE) == mine
    assert "theirs" not in repr(mine)


def test_processes_that_write_at_once_lose_and_double_nothing(spread: Store, spread_url: str) -> None:
    """On the nodes a transaction sees one moment, so that whoever waited for a lock has to begin again."""
    scope, edits = Scope("busy", "p"), 5
    put(spread, scope, "first", "text", session="")
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "contract.worker", spread_url, *scope, f"w{number}", str(edits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        for number in range(4)
    ]
    keys: list[str] = []
    for worker in workers:
        output, problems = worker.communicate("go\n", timeout=100)
        assert worker.returncode == 0, problems
        keys += output.split()[1:]
    assert len(set(keys)) == 4 * edits
    counter = spread.entries.read(scope, "memory", "counter")
    assert counter is not None
    assert counter.content == str(4 * edits)
    seqs = [event.seq for event in spread.entries.events(scope, EventQuery(limit=1_000))]
    assert seqs == list(range(len(seqs), 0, -1))


def test_a_node_that_is_away_is_named_and_the_others_go_on(
    spread: Store, spread_servers: Spread, spread_url: str
) -> None:
    for tenant in TENANTS:
        put(spread, Scope(tenant, "p"), "k", "before")
    kept = on_nodes(spread_servers, "projects")
    lost, there = sorted(kept[0])[0], sorted(kept[1])[0]
    raw(spread_url, "ALTER SERVER node0 OPTIONS (SET dbname 'nowhere')")
    with pytest.raises(errors.StoreGone):
        put(spread, Scope(lost, "p"), "k", "after")
    assert put(spread, Scope(there, "p"), "k", "after").after is not None
    raw(spread_url, f"ALTER SERVER node0 OPTIONS (SET dbname '{conninfo_to_dict(spread_url)['dbname']}')")
    entry = spread.entries.read(Scope(lost, "p"), NOTE, "k")
    assert entry is not None
    assert entry.content == "before"
    assert len(everything(spread, Scope(lost, "p"))) == 4
    assert spread.entries.edit(Scope(lost, "p"), NOTE, "k", lambda before: None, stamp()).seq == 0


@pytest.mark.one_server
def test_a_store_that_holds_something_is_not_spread(postgres_url: str) -> None:
    store = choose_store(postgres_url)
    put(store, MINE, "k", "text")
    store.close()
    with psycopg.connect(postgres_url, autocommit=True) as con:
        con.execute(SPREAD_SQL.read_text())
        with pytest.raises(psycopg.errors.RaiseException, match="is not empty"):
            con.execute("CALL limpet_spread(ARRAY['node0'], 3)")


@pytest.mark.one_server
def test_a_store_of_one_server_is_spread_by_backup_and_restore(
    spread_url: str, postgres_url: str, tmp_path: Path
) -> None:
    one, many = choose_store(postgres_url), choose_store(spread_url)
    try:
        for tenant in TENANTS:
            put(one, Scope(tenant, "p"), "k", f"of {tenant}", tags=("t",))
        one.backup(str(tmp_path / "all.db"))
        many.restore(str(tmp_path / "all.db"))
        for tenant in TENANTS:
            assert everything(many, Scope(tenant, "p")) == everything(one, Scope(tenant, "p"))
        many.backup(str(tmp_path / "again.db"))
        assert all(finding.ok for finding in many.check())
    finally:
        one.close()
        many.close()
