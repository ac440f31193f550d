"""A store that is spread over servers comes to a new schema, and no row is moved. docs/spread.sql tells how.

No older schema could be spread, so the next one is made up here: a migration that adds a column, an index that no table
on several servers can have, and a table into which it moves rows.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from contract.kit import everything, put, raw
from contract.outputs_kit import keep
from contract.test_recall import seek
from contract.test_spread import TENANTS, on_nodes
from contract.test_vectors import MODEL, embed
from limpet import errors
from limpet.model import NOTE, Scope
from limpet.store import Store
from limpet.stores.postgres import schema
from limpet.stores.postgres.schema import MIGRATIONS, SCHEMA
from limpet.wiring import choose_store
from postgres import RUN_VARIABLE, as_ordinary
from spread import PARTS, Spread, make_coordinator, make_parts, spread_over, started

pytestmark = [pytest.mark.one_server, pytest.mark.timeout(300)]
NEXT = """
ALTER TABLE entries ADD COLUMN mood text NOT NULL DEFAULT 'calm';
CREATE UNIQUE INDEX entries_mood ON entries (tenant, project, kind, key, mood);
CREATE TABLE moods (tenant text COLLATE "C" NOT NULL, project text COLLATE "C" NOT NULL, PRIMARY KEY (tenant, project));
INSERT INTO moods SELECT tenant, project FROM projects;
SELECT limpet_protect('moods');
"""
WORDS = seek("osprey")


@pytest.fixture
def upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, this is the next version."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder)
    (folder / f"{SCHEMA + 1:04d}_next.sql").write_text(NEXT, encoding="utf-8")

    def now() -> None:
        monkeypatch.setattr(schema, "MIGRATIONS", str(folder))
        monkeypatch.setattr(schema, "SCHEMA", SCHEMA + 1)

    return now


def told(store: Store, tenant: str) -> list[object]:
    """What a tenant has, in every way that matters here."""
    scope = Scope(tenant, "p")
    texts = store.entries.texts(scope, store.entries.candidates(scope, (NOTE,), WORDS).docs)
    outputs = store.outputs.candidates(scope, WORDS).docs
    return [
        everything(store, scope),
        texts,
        outputs,
        list(store.vectors.after(scope, MODEL, 0)),
        list(store.outputs.dump(scope)),
    ]


def filled(url: str) -> dict[str, list[object]]:
    store = choose_store(url)
    try:
        for tenant in TENANTS:
            scope = Scope(tenant, "p")
            put(store, scope, "k", f"the osprey of {tenant}", tags=("t",))
            keep(store, scope, f"the osprey of {tenant} landed\n".encode() * 300)
            store.outputs.index(scope, 1 << 20)
            embed(store, scope)
        return {tenant: told(store, tenant) for tenant in TENANTS}
    finally:
        store.close()


def refused(url: str) -> None:
    with pytest.raises(errors.StoreProblem, match=f"schema {SCHEMA}; this Limpet needs {SCHEMA + 1}"):
        choose_store(url)
    assert raw(url, "SELECT version FROM limpet_schema") == [(SCHEMA,)]


def test_a_store_that_is_spread_comes_to_a_new_schema(upgrade: Callable[[], None]) -> None:
    with started(Path(os.environ[RUN_VARIABLE])) as servers:
        before = filled(as_ordinary(servers.coordinator))
        upgrade()
        refused(as_ordinary(servers.coordinator))
        name = f"limpet_newer_{uuid.uuid4().hex}"
        newer = servers._replace(coordinator=make_coordinator(name, servers.nodes))
        with pytest.raises(psycopg.errors.RaiseException, match=f"part_0 has schema {SCHEMA}, and this database"):
            spread_over(newer)
        for node, url in enumerate(servers.nodes):
            make_parts(url, node)
        with pytest.raises(psycopg.errors.RaiseException, match="take as many parts as there were before"):
            spread_over(newer, PARTS - 1)
        spread_over(newer)
        same_and_on(newer, before)
        with psycopg.connect(servers.coordinator, autocommit=True) as con:
            con.execute(f"DROP DATABASE {name} WITH (FORCE)")


def same_and_on(servers: Spread, before: dict[str, list[object]]) -> None:
    """Everything is as it was, also what the migration made of it, and new texts are counted on."""
    store = choose_store(as_ordinary(servers.coordinator))
    try:
        assert {tenant: told(store, tenant) for tenant in TENANTS} == before
        kept = on_nodes(servers, "moods")
        assert all(kept)
        assert set().union(*kept) == set(TENANTS)
        for tenant in TENANTS:
            scope = Scope(tenant, "p")
            (old,) = store.entries.candidates(scope, (NOTE,), WORDS).docs
            put(store, scope, "l", "one osprey more")
            assert sorted(store.entries.candidates(scope, (NOTE,), WORDS).docs)[0] == old
            assert len(store.entries.candidates(scope, (NOTE,), WORDS).docs) == 2
            keep(store, scope, b"another osprey landed\n" * 300)
            store.outputs.index(scope, 1 << 20)
            assert len(store.outputs.candidates(scope, WORDS).docs) > 1
            assert embed(store, scope) == 1
        assert all(finding.ok for finding in store.check())
    finally:
        store.close()
