"""A PostgreSQL server in trouble: what can be mended is mended, the rest is named, and no change is lost or doubled."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psycopg
import pytest

from contract.kit import NOTES, delete, everything, keys, new_scope, put, raw, stamp
from contract.proxy import AFTER, BEFORE, LAST_WORDS, Proxy
from limpet import errors, limits
from limpet.api import Limpet
from limpet.model import NOTE, Draft, Entry, OutputDraft, Scope
from limpet.store import EventQuery, Store
from limpet.stores.postgres import connections, schema
from limpet.wiring import choose_store
from postgres import ORDINARY, as_admin, database_url

pytestmark = pytest.mark.one_server
LIMPET = "FROM pg_stat_activity WHERE application_name = 'limpet' AND datname = current_database()"
KILL = f"SELECT pg_terminate_backend(pid) {LIMPET}"


@pytest.fixture
def server(postgres_url: str) -> Iterator[Store]:
    store = choose_store(postgres_url)
    yield store
    store.close()


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store = choose_store(url)
    try:
        yield store
    finally:
        store.close()


def with_options(url: str, **options: object) -> str:
    text = " ".join(f"-c {name}={value}" for name, value in options.items())
    return f"{url}{'&' if '?' in url else '?'}options={quote(text)}"


def trap(url: str, body: str, *, when: str = "BEFORE INSERT ON events", deferred: bool = False) -> None:
    """Let the server do something when an event is written. Its sequence `tries` is not rolled back with the rest."""
    raw(url, "CREATE SEQUENCE tries")
    raw(url, "GRANT USAGE ON SEQUENCE tries TO PUBLIC")
    raw(url, f"CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NEW; END $$")
    if deferred:
        raw(
            url,
            "CREATE CONSTRAINT TRIGGER trap AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION trap()",
        )
    else:
        raw(url, f"CREATE TRIGGER trap {when} FOR EACH ROW EXECUTE FUNCTION trap()")


def raising(state: str, first: int = 1_000_000) -> str:
    return (
        f"IF nextval('tries') <= {first} THEN RAISE EXCEPTION 'trouble on purpose' USING ERRCODE = '{state}'; END IF;"
    )


# --- lost connections -------------------------------------------------------------------------------------------------


def test_connections_that_broke_between_calls_are_not_noticed(server: Store, postgres_url: str, scope: Scope) -> None:
    for round_ in range(3):
        lines = [server.entries.dump(scope) for _ in range(4)]  # so that several connections lie in the pool
        for line in lines:
            next(line, None)
        for line in lines:
            line.close()  # type: ignore[attr-defined]
        put(server, scope, f"k{round_}", "before")
        assert raw(postgres_url, KILL)
        assert server.entries.read(scope, NOTE, f"k{round_}") is not None
        assert raw(postgres_url, KILL)
        assert put(server, scope, f"k{round_}", "after").seq
    assert [event.seq for event in server.entries.events(scope, EventQuery())] == [7, 6, 5, 4, 3, 2, 1]


def test_a_connection_that_breaks_during_the_work_is_tried_again(
    server: Store, postgres_url: str, scope: Scope
) -> None:
    seen: list[Entry | None] = []

    def decide(before: Entry | None) -> Draft:
        seen.append(before)
        if len(seen) == 1:
            raw(postgres_url, KILL)
        return Draft("text", "s")

    assert server.entries.edit(scope, NOTE, "k", decide, stamp()).seq == 2
    assert seen == [None, None]
    assert server.entries.tally(scope, NOTE, "") == (1, 0)


def test_a_backend_that_dies_while_committing_is_tried_again(server: Store, postgres_url: str, scope: Scope) -> None:
    body = "IF nextval('tries') <= 2 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;"
    trap(postgres_url, body, deferred=True)
    change = put(server, scope, None, "once", session="")
    assert change.seq == 1
    assert [event.seq for event in server.entries.events(scope, EventQuery())] == [1]
    assert raw(postgres_url, "SELECT last_value > 2 FROM tries") == [(True,)]


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    relay = Proxy(postgres_url)
    yield relay
    relay.close()


@pytest.mark.parametrize(
    "cuts",
    [[BEFORE], [AFTER], [BEFORE, AFTER], [AFTER, AFTER], [BEFORE, BEFORE, AFTER], [LAST_WORDS, LAST_WORDS]],
    ids=str,
)
def test_a_line_cut_during_commit_neither_loses_nor_doubles_a_change(
    proxy: Proxy, postgres_url: str, scope: Scope, cuts: list[str]
) -> None:
    with opened(proxy.url) as store:
        first = put(store, scope, None, "first")
        proxy.cut = list(cuts)
        second = put(store, scope, None, "second", tags=("t",))
        third = put(store, scope, None, "third")
        gone = delete(store, scope, third.after.key if third.after else "")
        assert proxy.cut == []
    with opened(postgres_url) as store:
        assert [change.seq for change in (first, second, third, gone)] == [2, 3, 4, 5]
        assert [event.seq for event in store.entries.events(scope, EventQuery())] == [5, 4, 3, 2, 1]
        assert [entry.content for entry in store.entries.list(scope, NOTES).entries] == ["second", "first"]
        assert second.after == store.entries.list(scope, NOTES).entries[0]
        assert store.entries.tally(scope, NOTE, "") == (2, 1)


def test_last_words_after_a_read_are_not_noticed(proxy: Proxy, scope: Scope) -> None:
    """A read that is alone has its COMMIT too."""
    with opened(proxy.url) as store:
        put(store, scope, "k", "there")
        for _ in range(12):  # more often than there are connections
            proxy.cut = [LAST_WORDS]
            assert keys(store.entries.list(scope, NOTES).entries) == ["k"]
            assert proxy.cut == []


@pytest.mark.parametrize("cut", [BEFORE, AFTER])
def test_a_line_cut_while_a_load_commits_is_settled_too(proxy: Proxy, scope: Scope, cut: str) -> None:
    entry = Entry(NOTE, "k", "s", "x", (), False, False, "agent", {}, 1, 5, 5)
    with opened(proxy.url) as store:
        put(store, new_scope(), "k", "warm")
        proxy.cut = [cut]
        if cut == AFTER:
            assert store.load(scope, iter([entry]), []) == 1
        else:  # what was read can not be read again, so it is for the caller to repeat
            with pytest.raises(errors.StoreGone):
                store.load(scope, iter([entry]), [])
            assert store.load(scope, iter([entry]), []) == 1
        assert keys(store.entries.list(scope, NOTES).entries) == ["k"]


def test_a_line_cut_while_the_first_change_of_a_project_commits_is_settled_too(proxy: Proxy, scope: Scope) -> None:
    with opened(proxy.url) as store:
        put(store, new_scope(), "k", "warm")
        proxy.cut = [AFTER]
        put(store, scope, None, "first")
        assert proxy.cut == []
        assert [entry.content for entry in store.entries.list(scope, NOTES).entries] == ["first"]


def test_a_server_that_is_away_is_named_and_used_again_when_it_is_back(
    postgres_url: str, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 1)
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    admin = database_url(postgres_url, "postgres")
    with opened(postgres_url) as store:
        put(store, scope, "k", "text")
        raw(admin, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        raw(admin, KILL.replace("current_database()", f"'{name}'"))
        for _ in range(3):
            with pytest.raises(errors.StoreGone, match="not currently accepting connections"):
                store.entries.read(scope, NOTE, "k")
        with pytest.raises(errors.StoreGone, match="not currently accepting connections"):
            put(store, scope, "k", "other")
        raw(admin, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert put(store, scope, "k", "again").seq == 3


# --- conflicts, locks and limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_conflicts_are_tried_again(server: Store, postgres_url: str, scope: Scope, state: str) -> None:
    trap(postgres_url, raising(state, first=3))
    calls: list[Entry | None] = []

    def decide(before: Entry | None) -> Draft:
        calls.append(before)
        return Draft("text")

    assert server.entries.edit(scope, NOTE, "k", decide, stamp(session="")).seq == 1
    assert calls == [None] * 4
    assert [event.seq for event in server.entries.events(scope, EventQuery())] == [1]


def test_conflicts_without_end_are_named(
    server: Store, postgres_url: str, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOCK_WAIT_SECONDS", 1.0)
    trap(postgres_url, raising("40001"))
    with pytest.raises(errors.StoreBusy):
        put(server, scope, "k", "text")
    assert server.projects(scope.tenant) == ()


@pytest.mark.parametrize(
    ("state", "kind", "code"),
    [
        ("53100", errors.StoreFull, "store_full"),
        ("25006", errors.StoreReadOnly, "store_read_only"),
        ("42501", errors.StoreReadOnly, "store_read_only"),
        ("55P03", errors.StoreBusy, "store_busy"),
        ("57014", errors.StoreGone, "store_gone"),
        ("53200", errors.StoreGone, "store_gone"),
        ("XX001", errors.StoreDamaged, "store_broken"),
        ("P0001", errors.StoreDamaged, "store_broken"),
    ],
)
def test_trouble_is_named_and_changes_nothing(
    server: Store, postgres_url: str, scope: Scope, state: str, kind: type[errors.StoreProblem], code: str
) -> None:
    put(server, scope, "k", "before")
    before = everything(server, scope)
    trap(postgres_url, raising(state, first=1))
    with pytest.raises(kind) as caught:
        put(server, scope, "k", "after")
    assert caught.value.code == code
    assert everything(server, scope) == before
    assert put(server, scope, "k", "after").seq == 3


@contextmanager
def holding(url: str, sql: str, *values: str) -> Iterator[None]:
    """Keep a lock for a while, as a stopped process would."""
    with psycopg.connect(as_admin(url)) as other:
        other.execute(sql, values)
        yield
        other.rollback()


def test_a_lock_that_is_kept_too_long_is_named(postgres_url: str, scope: Scope) -> None:
    with opened(with_options(postgres_url, lock_timeout=200)) as store:
        put(store, scope, "k", "text")
        with holding(postgres_url, "SELECT 1 FROM projects WHERE project = %s FOR UPDATE", scope.project):
            with pytest.raises(errors.StoreBusy):
                put(store, scope, "k", "other")
            assert store.entries.read(scope, NOTE, "k") is not None  # readers do not wait for writers
            assert put(store, new_scope(), "k", "another project").seq
        assert put(store, scope, "k", "other").seq == 3


def test_a_migration_waits_for_who_began_with_the_older_tables(
    new_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an older Limpet writes after the migration would be missing in what the migration counted."""
    with monkeypatch.context() as patch:
        patch.setattr(schema, "SCHEMA", schema.SCHEMA - 1)
        choose_store(new_postgres_url).close()
    with psycopg.connect(new_postgres_url) as older:
        older.execute(f"SELECT {schema.NEWEST}")  # as every transaction begins
        with pytest.raises(errors.StoreBusy):
            choose_store(with_options(new_postgres_url, lock_timeout=100))
    assert raw(new_postgres_url, f"SELECT {schema.NEWEST}") == [(schema.SCHEMA - 1,)]
    choose_store(new_postgres_url).close()
    assert raw(new_postgres_url, f"SELECT {schema.NEWEST}") == [(schema.SCHEMA,)]


def test_an_answer_that_takes_too_long_is_named(postgres_url: str, scope: Scope) -> None:
    with opened(with_options(postgres_url, statement_timeout=300)) as store:
        put(store, scope, "k", "text")
        with holding(postgres_url, "LOCK TABLE entries"), pytest.raises(errors.StoreGone, match="did not answer"):
            store.entries.read(scope, NOTE, "k")
        assert store.entries.read(scope, NOTE, "k") is not None


IN_TRANSACTION = f"SELECT count(*) {LIMPET} AND state = 'idle in transaction'"


def test_a_stopped_transaction_gives_its_lock_back(postgres_url: str, scope: Scope) -> None:
    """A writer that stops in the middle is cut off by the server, and others go on. It decides right after the
    statements that take the lock, which travelled together."""
    with opened(with_options(postgres_url, idle_in_transaction_session_timeout=300)) as store:
        calls: list[Entry | None] = []

        def slow(before: Entry | None) -> Draft:
            calls.append(before)
            if len(calls) == 1:
                while raw(postgres_url, IN_TRANSACTION) != [(0,)]:
                    time.sleep(0.02)
            return Draft("slow")

        assert store.entries.edit(scope, NOTE, "k", slow, stamp(session="")).seq == 1
        assert len(calls) == 2


def test_more_readers_than_connections_wait_and_then_say_so(
    postgres_url: str, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 1)
    with opened(postgres_url) as store:
        put(store, scope, "k", "text")
        lines = [store.entries.dump(scope) for _ in range(connections.POOL_MAX)]
        for line in lines:
            next(line)
        with pytest.raises(errors.StoreBusy):
            store.entries.read(scope, NOTE, "k")
        for line in lines:
            assert len(list(line)) == 3
        assert store.entries.read(scope, NOTE, "k") is not None


# --- rights -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def guest(new_postgres_url: str) -> Iterator[str]:
    """The name of a user without any rights."""
    name = f"guest_of_{psycopg.conninfo.conninfo_to_dict(new_postgres_url)['dbname']}"
    raw(new_postgres_url, f"CREATE ROLE {name} ROLE {ORDINARY}")
    yield name
    raw(new_postgres_url, f"DROP OWNED BY {name}")
    raw(new_postgres_url, f"DROP ROLE {name}")


def test_a_store_that_may_only_be_read_can_be_read(new_postgres_url: str, guest: str, scope: Scope) -> None:
    with opened(new_postgres_url) as store:
        put(store, scope, "k", "text")
        store.outputs.keep(scope, OutputDraft("tool"), b"a text that waits for the index", stamp())
    raw(new_postgres_url, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {guest}")
    for url in (
        with_options(new_postgres_url, role=guest),
        with_options(new_postgres_url, default_transaction_read_only="on"),
    ):
        with opened(url) as store:
            assert store.entries.read(scope, NOTE, "k") is not None
            assert store.entries.containing(scope, NOTES, "ex").total == 1
            assert len(everything(store, scope)) == 4
            with pytest.raises(errors.StoreReadOnly):
                put(store, scope, "k", "other")
            with pytest.raises(errors.StoreReadOnly):
                store.load(new_scope(), [], [])
            assert Limpet(store, scope).recall("text").waiting == 1, "what cannot be indexed is counted"


def test_a_database_where_no_tables_may_be_made_is_named(new_postgres_url: str, guest: str) -> None:
    for url in (
        with_options(new_postgres_url, role=guest),
        with_options(new_postgres_url, default_transaction_read_only="on"),
    ):
        with pytest.raises(errors.StoreReadOnly):
            choose_store(url)
    assert raw(new_postgres_url, "SELECT count(*) FROM pg_class WHERE relname = 'entries'") == [(0,)]


def test_without_the_right_to_the_trigram_index_search_finds_the_same(
    new_postgres_url: str, guest: str, scope: Scope
) -> None:
    raw(new_postgres_url, f"GRANT CREATE ON SCHEMA public TO {guest}")
    with opened(with_options(new_postgres_url, role=guest)) as store:
        put(store, scope, "k", "Straße %_\\")
        assert keys(store.entries.containing(scope, NOTES, "ASSE %_\\").entries) == ["k"]
        assert store.entries.containing(scope, NOTES, "x").total == 0
    assert raw(new_postgres_url, "SELECT count(*) FROM pg_class WHERE relname = 'entries_folded'") == [(0,)]


def test_a_schema_of_its_own_may_be_chosen_by_the_address(new_postgres_url: str, scope: Scope) -> None:
    raw(new_postgres_url, "CREATE TABLE entries (theirs text)")
    raw(new_postgres_url, f"CREATE SCHEMA notes AUTHORIZATION {ORDINARY}")
    with opened(with_options(new_postgres_url, search_path="notes")) as store:
        put(store, scope, "k", "text")
    assert raw(new_postgres_url, "SELECT count(*) FROM notes.entries") == [(2,)]
    assert raw(new_postgres_url, "SELECT count(*) FROM public.entries") == [(0,)]


# --- what is said -----------------------------------------------------------------------------------------------------


def test_a_server_that_waits_for_no_disk_is_reported(postgres_url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    raw(postgres_url, f"ALTER DATABASE {name} SET synchronous_commit = off")
    with opened(postgres_url) as store:  # our own setting wins
        assert all(finding.ok for finding in store.check())
    with opened(with_options(postgres_url, synchronous_commit="off")) as store:
        findings = {finding.name: finding for finding in store.check()}
        assert not findings["engine"].ok
        assert "synchronous_commit" in findings["engine"].detail


def test_an_index_that_does_not_fit_the_texts_is_reported(server: Store, postgres_url: str, scope: Scope) -> None:
    put(server, scope, "a", "text")
    put(server, scope, "b", "text")
    raw(postgres_url, "UPDATE entries SET folded = 'other' WHERE key = 'a'")
    raw(postgres_url, "UPDATE entries SET terms = array_to_tsvector('{other}') WHERE key = 'b'")
    findings = {finding.name: finding for finding in server.check()}
    assert findings["checksums"].ok
    assert findings["index"] == ("index", False, "1 of 3 texts are indexed")


SECRET = "s3cr/et'@:pw"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (f"postgresql://me:{quote(SECRET, safe='')}@127.0.0.1:1/db", "postgresql://127.0.0.1:1/db"),
        (f"postgres://127.0.0.1:1/db?user=me&password={quote(SECRET, safe='')}", "postgresql://127.0.0.1:1/db"),
        (f"postgresql://me:{quote(SECRET, safe='')}@[::1]:1/a%20b", "postgresql://[::1]:1/a%20b"),
        (
            f"postgresql://me:{quote(SECRET, safe='')}@/db?host=/nowhere&port=1",
            "postgresql:///db?host=/nowhere",
        ),
        (
            f"postgresql://me:{quote(SECRET, safe='')}@127.0.0.1:1,127.0.0.2:2/db",
            "postgresql:///db?host=127.0.0.1,127.0.0.2",
        ),
    ],
)
def test_an_address_nobody_answers_at_is_named_without_its_password(url: str, place: str) -> None:
    with pytest.raises(errors.StoreGone) as caught:
        choose_store(url)
    assert caught.value.message.startswith(f"{place} cannot be reached: ")
    assert_no_secret(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}%zz@host/db",
        f"postgresql://me:x@host/db?passwort={SECRET}",
        f"postgresql://me:{SECRET}@host:port/db",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(errors.LimpetError) as caught:
        choose_store(url)
    assert_no_secret(caught.value)


def assert_no_secret(problem: BaseException) -> None:
    shown = "".join(traceback.format_exception(problem)) + repr(problem)
    for piece in (SECRET, "s3cr", quote(SECRET, safe="")):
        assert piece not in shown.replace(f"SECRET = {SECRET!r}", "")


def test_a_wrong_password_is_not_repeated(server: Store) -> None:
    """Should a server's answer repeat it, it is taken out."""
    said = psycopg.OperationalError(f"no such password {SECRET}\n on line 1.")
    assert connections.Address("", "place", SECRET).why(said) == "no such password … on line 1"


def test_the_server_can_see_who_is_connected(server: Store, postgres_url: str, scope: Scope) -> None:
    put(server, scope, "k", "text")
    assert raw(postgres_url, f"SELECT count(*) {LIMPET}") == [(1,)]
    server.close()
    deadline = time.monotonic() + 5
    while raw(postgres_url, f"SELECT count(*) {LIMPET}") != [(0,)]:
        assert time.monotonic() < deadline
