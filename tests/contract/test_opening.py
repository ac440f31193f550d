"""Opening and closing: what is not ours or too new is left untouched, and what is closed says so."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

from contract.kit import NOTES, put, raw, stamp
from limpet import errors
from limpet.model import NOTE, OutputDraft, Scope
from limpet.store import CallRecord, EventQuery, ReadRecord, Words
from limpet.stores.postgres import schema
from limpet.stores.sqlite import database
from limpet.stores.sqlite.database import SCHEMA
from limpet.wiring import choose_store

pytestmark = pytest.mark.one_server


def test_a_store_of_a_later_version_is_left_untouched(store_url: str, scope: Scope) -> None:
    store = choose_store(store_url)
    put(store, scope, "k", "text")
    store.close()
    postgres = store_url.startswith("postgresql://")
    raw(store_url, "UPDATE limpet_schema SET version = 99" if postgres else "PRAGMA user_version = 99")
    before = raw(store_url, "SELECT * FROM entries")
    with pytest.raises(errors.StoreTooNew, match=f"schema 99; this one knows up to {SCHEMA}") as caught:
        choose_store(store_url)
    assert caught.value.exit_code == 5
    assert raw(store_url, "SELECT * FROM entries") == before
    raw(store_url, f"UPDATE limpet_schema SET version = {SCHEMA}" if postgres else f"PRAGMA user_version = {SCHEMA}")
    again = choose_store(store_url)
    assert again.entries.read(scope, NOTE, "k") is not None
    again.close()


def test_a_running_process_refuses_a_store_that_became_newer(store_url: str, scope: Scope) -> None:
    store = choose_store(store_url)
    put(store, scope, "k", "text")
    store.entries.read(scope, NOTE, "k")
    postgres = store_url.startswith("postgresql://")
    raw(store_url, "UPDATE limpet_schema SET version = 99" if postgres else "PRAGMA user_version = 99")
    for _ in range(2):
        with pytest.raises(errors.StoreTooNew, match="schema 99"):
            put(store, scope, None, "of an older version")
        with pytest.raises(errors.StoreTooNew, match="schema 99"):
            store.outputs.keep(scope, OutputDraft("tool"), b"x", stamp())
        with pytest.raises(errors.StoreTooNew, match="schema 99"):
            list(store.entries.dump(scope))
        if postgres:
            time.sleep(1.1)  # reads look once a second
        for read in (lambda: store.entries.read(scope, NOTE, "k"), lambda: store.entries.list(scope, NOTES)):
            with pytest.raises(errors.StoreTooNew, match="schema 99"):
                read()
    raw(store_url, f"UPDATE limpet_schema SET version = {SCHEMA}" if postgres else f"PRAGMA user_version = {SCHEMA}")
    put(store, scope, None, "goes on")
    assert store.entries.list(scope, NOTES).total == 2
    store.close()


@pytest.mark.parametrize("table", ["entries", "projects", "events", "tallies", "limpet_schema"])
def test_a_database_of_another_program_is_left_untouched(new_store_url: str, table: str) -> None:
    raw(new_store_url, f"CREATE TABLE {table} (name text)")
    raw(new_store_url, f"INSERT INTO {table} VALUES ('theirs')")
    with pytest.raises(errors.NotAStore, match="is not a Limpet store"):
        choose_store(new_store_url)
    assert raw(new_store_url, f"SELECT * FROM {table}") == [("theirs",)]
    if new_store_url.startswith("postgresql://"):
        tables = raw(
            new_store_url, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
    else:
        tables = raw(new_store_url, "SELECT name FROM sqlite_schema")
    assert tables == [(table,)]


def test_a_postgres_database_may_be_shared_with_tables_of_other_names(new_postgres_url: str, scope: Scope) -> None:
    raw(new_postgres_url, "CREATE TABLE customers (name text)")
    store = choose_store(new_postgres_url)
    assert put(store, scope, "k", "text").seq
    store.close()
    assert raw(new_postgres_url, "SELECT count(*) FROM customers") == [(0,)]


def test_a_file_that_is_no_database_is_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 100)
    with pytest.raises(errors.NotAStore):
        choose_store(str(path))
    assert path.read_text() == "Dear reader, " * 100


def test_the_schema_numbers_are_those_of_the_migrations() -> None:
    for module in (schema, database):
        files = sorted(path.name for path in Path(module.MIGRATIONS).glob("*.sql"))
        assert len(files) == module.SCHEMA
        assert module.migration(module.SCHEMA)


def test_a_closed_store_says_so(store_url: str, scope: Scope) -> None:
    store = choose_store(store_url)
    put(store, scope, "k", "text")
    store.close()
    store.close()  # a second time is no mistake
    calls = (
        lambda: store.entries.read(scope, NOTE, "k"),
        lambda: put(store, scope, "k", "other"),
        lambda: store.entries.list(scope, NOTES),
        lambda: store.entries.containing(scope, NOTES, "text"),
        lambda: store.entries.matching(scope, NOTES, Words((("text",),))),
        lambda: store.entries.tags(scope, NOTE, ""),
        lambda: store.entries.tally(scope, NOTE, ""),
        lambda: store.entries.events(scope, EventQuery()),
        lambda: store.entries.event(scope, 1),
        lambda: list(store.entries.dump(scope)),
        lambda: store.load(scope, [], []),
        lambda: store.projects("local"),
        lambda: store.outputs.keep(scope, OutputDraft("tool"), b"x", stamp()),
        lambda: store.outputs.find(scope, "0" * 12),
        lambda: store.outputs.read_bytes(scope, "0" * 12, 0, 1),
        lambda: store.outputs.read_lines(scope, "0" * 12, 1, 1),
        lambda: store.outputs.touch(scope, "0" * 12, 1),
        lambda: store.outputs.list(scope, 1),
        lambda: store.outputs.delete(scope, "0" * 12, stamp()),
        lambda: store.outputs.clear(scope, stamp()),
        lambda: store.outputs.prune(scope, now=1, max_age_ms=0, max_bytes=0),
        lambda: store.outputs.cited(scope, ["0" * 12]),
        lambda: store.outputs.stats(scope),
        lambda: store.outputs.tombstone(scope, "0" * 12),
        lambda: store.calls.last_result(scope, "s", "c"),
        lambda: store.calls.record_call(
            scope, CallRecord("s", "t", "c", "0" * 12, "0" * 64, 1, True, False, "t", 1, 1), 0
        ),
        lambda: store.calls.record_read(scope, ReadRecord("s", "t", "0" * 12, [], 1, "t", 1)),
        lambda: store.calls.savings(scope),
        lambda: list(store.outputs.dump(scope)),
        lambda: store.outputs.add(scope, []),
        store.check,
    )
    for call in calls:
        with pytest.raises(errors.StoreGone, match="it was closed"):
            call()


def test_a_store_that_was_never_used_can_be_closed(new_store_url: str) -> None:
    choose_store(new_store_url).close()
    choose_store(new_store_url).close()


def test_reading_makes_no_store(tmp_path: Path, scope: Scope) -> None:
    path = tmp_path / "new" / "limpet.db"
    store = choose_store(str(path))
    for _ in range(2):
        assert store.entries.list(scope, NOTES).entries == ()
        assert store.projects(scope.tenant) == ()
        store.calls.record_read(scope, ReadRecord("s", "t", "0" * 12, [], 1, "t", 1))
        assert store.calls.savings(scope) == ()
    assert not path.parent.exists()
    other = choose_store(str(path))
    put(other, scope, "k", "text")
    assert store.entries.read(scope, NOTE, "k") is not None, "it was made by another process since"
    store.close()
    other.close()


def test_threads_that_read_while_the_store_is_made_see_nothing_or_all(tmp_path: Path, scope: Scope) -> None:
    def read(_: int) -> set[str]:
        begin.wait()
        return {entry.key for _ in range(20) for entry in store.entries.list(scope, NOTES).entries}

    def write(number: int) -> set[str]:
        begin.wait()
        put(store, scope, f"k{number}", "text")
        return set()

    for turn in range(10):
        store, begin = choose_store(str(tmp_path / str(turn) / "limpet.db")), Barrier(8)
        with ThreadPoolExecutor(8) as threads:
            jobs = [threads.submit(write if number < 2 else read, number) for number in range(8)]
            assert set().union(*(job.result() for job in jobs)) <= {"k0", "k1"}
        assert {entry.key for entry in store.entries.list(scope, NOTES).entries} == {"k0", "k1"}
        store.close()


def test_a_backup_is_a_store_of_its_own(store_url: str, tmp_path: Path, scope: Scope) -> None:
    store = choose_store(store_url)
    put(store, scope, "k", "text")
    store.backup(str(tmp_path / "two.db"))
    put(store, scope, "k", "later")
    with pytest.raises(errors.Conflict) as caught:
        store.backup(str(tmp_path / "two.db"))
    assert caught.value.code == "target_exists"
    store.close()
    copy = choose_store(str(tmp_path / "two.db"))
    entry = copy.entries.read(scope, NOTE, "k")
    assert entry is not None
    assert entry.content == "text"
    copy.close()


def test_the_trigram_index_is_there_when_it_can_be(new_postgres_url: str) -> None:
    choose_store(new_postgres_url).close()
    found = raw(new_postgres_url, "SELECT indexdef FROM pg_indexes WHERE indexname = 'entries_folded'")
    assert "gin_trgm_ops" in found[0][0]


def test_a_database_in_another_encoding_is_refused(new_postgres_url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(new_postgres_url)["dbname"]
    raw(
        new_postgres_url,
        f"CREATE DATABASE {name}_latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'",
    )
    try:
        with pytest.raises(errors.NotAStore, match="LATIN1"):
            choose_store(new_postgres_url.replace(str(name), f"{name}_latin"))
    finally:
        raw(new_postgres_url, f"DROP DATABASE {name}_latin WITH (FORCE)")
