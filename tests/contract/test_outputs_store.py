"""Outputs in a store that many use at once, and in one of an older schema."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from contract.kit import NOON, new_scope, note, put, raw, stamp
from contract.outputs_kit import CHUNK, DRAFT, keep, log, whole
from contract.test_concurrency import at_once
from limpet import errors
from limpet.model import NOTE, Scope
from limpet.store import Store, StoredOutput
from limpet.stores.postgres import schema
from limpet.stores.shared import rows
from limpet.stores.sqlite import database
from limpet.wiring import choose_store

# --- many at once, and stores of old ----------------------------------------------------------------------------------


def test_many_keep_the_same_at_once(store: Store, scope: Scope) -> None:
    body = log(3 * CHUNK)
    kept = at_once(lambda number: store.outputs.keep(scope, DRAFT, body, stamp(NOON + number)))
    assert all(isinstance(one, StoredOutput) for one in kept)
    assert [one.new for one in kept if isinstance(one, StoredOutput)].count(True) == 1
    (output,) = store.outputs.list(scope, 9).outputs
    assert output.uses == 7
    assert whole(store, scope, output) == body
    assert store.check()[-1].ok


def test_keeping_reading_and_deleting_at_once(store: Store, scope: Scope) -> None:
    texts = [log(CHUNK + n, n) for n in range(4)]

    def work(number: int) -> None:
        dice = random.Random(number)
        for _ in range(12):
            body = dice.choice(texts)
            output = keep(store, scope, body, NOON + dice.randrange(99))
            try:
                assert whole(store, scope, output) == body
            except errors.NotFound:
                continue  # somebody deleted it in between
            if dice.random() < 0.3:
                store.outputs.delete(scope, output.id, stamp())
            elif dice.random() < 0.3:
                store.outputs.prune(scope, now=NOON, max_age_ms=None, max_bytes=2 * CHUNK, most=2)

    at_once(work)
    assert all(finding.ok for finding in store.check()), store.check()


def test_outputs_and_entries_share_a_project(store: Store, scope: Scope) -> None:
    keep(store, scope, b"x", NOON)
    assert put(store, scope, None, "note", now=NOON, session="").entry.key == f"note_{NOON}"
    with pytest.raises(errors.Conflict):
        store.load(scope, [], [])


def first_schema(url: str, scope: Scope) -> None:
    """A store as the first version made it, with an entry in it."""
    row = rows.to_row(scope, note("k", "written long ago", NOON))
    if url.startswith("postgresql://"):
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(schema.migration(1))
        raw(url, "INSERT INTO limpet_schema (version) VALUES (1)")
        found = "'written long ago', array_to_tsvector(ARRAY['written', 'long', 'ago'])"
        entry = f"INSERT INTO entries VALUES (?{', ?' * 14}, {found})"
        raw(url, entry, (*row[:7], bool(row[7]), bool(row[8]), *row[9:]))
    else:
        raw(url, f"{database.migration(1)}; PRAGMA user_version = 1; PRAGMA journal_mode = WAL")
        raw(url, f"PRAGMA application_id = {database.APPLICATION_ID}")
        raw(url, f"INSERT INTO entries VALUES (?{', ?' * 14})", row)
        raw(url, "INSERT INTO terms (rowid, text) VALUES (1, 'written long ago')")
    raw(url, "INSERT INTO projects VALUES (?, ?, 0, ?)", (*scope, NOON))


@pytest.mark.one_server
def test_a_store_of_the_first_schema_is_brought_up_to_date(new_store_url: str, scope: Scope) -> None:
    first_schema(new_store_url, scope)
    store = choose_store(new_store_url)
    entry = store.entries.read(scope, NOTE, "k")
    assert entry is not None
    assert entry.content == "written long ago"
    assert store.outputs.stats(scope).entries == 0
    output = keep(store, scope, b"x")
    put(store, scope, "k", f"now it cites {output.id}")
    assert store.check()[-1].ok
    store.close()
    again = choose_store(new_store_url)  # and now there is nothing left to do
    assert whole(again, scope, output) == b"x"
    assert all(finding.ok for finding in again.check()), again.check()
    again.close()


@pytest.mark.one_server
def test_many_bring_a_store_up_to_date_at_once(new_store_url: str, scope: Scope) -> None:
    first_schema(new_store_url, scope)

    def work(number: int) -> None:
        store = choose_store(new_store_url)
        assert whole(store, scope, keep(store, scope, b"%d" % number)) == b"%d" % number
        store.close()

    at_once(work)


@pytest.mark.one_server
def test_an_update_does_not_touch_tables_of_others(new_postgres_url: str) -> None:
    first_schema(new_postgres_url, new_scope())
    raw(new_postgres_url, "CREATE TABLE outputs (theirs text)")
    with pytest.raises(errors.NotAStore, match='"outputs" already exists'):
        choose_store(new_postgres_url)
    assert raw(new_postgres_url, "SELECT version FROM limpet_schema") == [(1,)]


def test_a_backup_has_the_outputs(tmp_path: Path, scope: Scope) -> None:
    store = choose_store(str(tmp_path / "one.db"))
    output = keep(store, scope, log(2 * CHUNK))
    store.backup(str(tmp_path / "two.db"))
    copy = choose_store(str(tmp_path / "two.db"))
    assert whole(copy, scope, output) == whole(store, scope, output)
    store.close()
    copy.close()


def test_who_keeps_no_output_does_not_load_the_compressor(tmp_path: Path) -> None:
    script = (
        "import sys; from limpet.stores.sqlite.store import SqliteStore; SqliteStore(sys.argv[1]).close(); "
        "sys.exit(any(name.endswith('zstd') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "x.db")], check=False).returncode == 0
