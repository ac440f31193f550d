"""A streaming replica answers searches, and nobody can tell but by the counts: behind, gone, stuck or promoted, every
acknowledged write is found."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.kit import NOON, NOTES, always, delete, new_scope, note, put, stamp
from contract.outputs_kit import keep
from contract.test_recall import seek
from contract.test_tenants import MINE, THEIRS, answers, sent, story, without_filter
from contract.test_vectors import MODEL, embed
from limpet import errors
from limpet.model import MESSAGE, NOTE, Draft, Scope
from limpet.store import Finding, Store, Words
from limpet.stores.postgres import replica as postgres_replica
from limpet.stores.postgres.replica import (
    AWAY,
    BEHIND,
    BUSY,
    DAMAGED,
    PROMOTED,
    REFUSED,
    REPLICA,
    SCHEMA_DIFFERS,
    UNPROTECTED,
)
from limpet.stores.postgres.schema import SCHEMA
from limpet.stores.postgres.store import PostgresStore
from limpet.wiring import choose_store
from own_postgres import Pair, pair
from postgres import PORT
from profiles import fewer_examples

pytestmark = [pytest.mark.one_server, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    """For tests that leave both servers as they were."""
    with pair(synchronous=False) as both:
        yield both


@contextmanager
def opened(servers: Pair) -> Iterator[PostgresStore]:
    store = PostgresStore(servers.primary.url, servers.standby.url)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def store(servers: Pair) -> Iterator[PostgresStore]:
    with opened(servers) as one:
        yield one


@contextmanager
def since(store: Store) -> Iterator[dict[str, int]]:
    """How many searches were answered where within."""
    counted: dict[str, int] = {}
    before = dict(store.searches())
    yield counted
    counted |= {name: n - before.get(name, 0) for name, n in store.searches().items() if n > before.get(name, 0)}


SEARCHES: dict[str, Callable[[Store, Scope], Any]] = {
    "containing": lambda store, scope: [one.key for one in store.entries.containing(scope, NOTES, "osprey").entries],
    "short": lambda store, scope: [one.key for one in store.entries.containing(scope, NOTES, "os").entries],
    "matching": lambda store, scope: [one.key for one in store.entries.matching(scope, NOTES, Words((("osprey",),)))],
    "gather": lambda store, scope: store.entries.candidates(scope, (NOTE,), seek("osprey")).docs,
    "texts": lambda store, scope: sorted(
        one.key
        for one in store.entries.texts(scope, store.entries.candidates(scope, (NOTE,), seek("osprey")).docs).values()
    ),
    "gather_outputs": lambda store, scope: store.outputs.candidates(scope, seek("osprey")).docs,
    "contents": lambda store, scope: [
        one.content for one in store.entries.matching(scope, NOTES, Words((("osprey",),)))
    ],
    "vectors": lambda store, scope: [bytes(one.body) for one in store.vectors.after(scope, MODEL, 0)],
}


def test_every_search_is_answered_by_a_replica_that_has_everything(servers: Pair, store: Store) -> None:
    scope = new_scope()
    put(store, scope, "k", "an osprey")
    keep(store, scope, b"the osprey landed\n" * 400)
    store.outputs.index(scope, 1 << 20)
    embed(store, scope)
    alone = choose_store(servers.primary.url)
    expected = {name: search(alone, scope) for name, search in SEARCHES.items()}
    alone.close()
    assert all(expected.values())
    servers.caught_up()
    for name, search in SEARCHES.items():
        with since(store) as counted:
            assert search(store, scope) == expected[name]
        assert counted == {REPLICA: 2 if name == "texts" else 1}, name
    assert alone.searches() == {}


def test_what_other_projects_write_keeps_nobody_from_the_replica(servers: Pair, store: Store) -> None:
    quiet, busy = new_scope(), new_scope()
    put(store, quiet, "k", "an osprey")
    put(store, busy, "k", "an osprey")
    servers.caught_up()
    with servers.paused():
        put(store, busy, "l", "one osprey more")
        with since(store) as counted:
            assert SEARCHES["matching"](store, quiet) == ["k"]
            assert SEARCHES["matching"](store, busy) == ["l", "k"]
        assert counted == {REPLICA: 1, BEHIND: 1}
        with since(store) as counted:
            assert SEARCHES["matching"](store, new_scope()) == []
        assert counted == {REPLICA: 1}


def every_change(store: Store, scope: Scope) -> Iterator[tuple[str, Callable[[], object]]]:
    """All ways to change what a search can find, each of which changes something when its turn comes."""
    yield "load", lambda: store.load(scope, [note("note_1", "loaded", NOON)], [])
    yield "edit", lambda: put(store, scope, "k", "text", tags=("t",))
    yield "delete", lambda: delete(store, scope, "k")
    yield "edit_all", lambda: store.entries.edit_all(scope, [(NOTE, "l", always(Draft("edited", "s")))], stamp())
    yield "append", lambda: store.entries.append(scope, MESSAGE, [("m", Draft("said", "s"))], stamp())
    # The same again at the same moment: neither a number nor a clock of the project moves on.
    yield "append again", lambda: store.entries.append(scope, MESSAGE, [("n", Draft("said too", "s"))], stamp())
    yield "keep_output", lambda: keep(store, scope, b"one " * 900)
    yield "index_outputs", lambda: store.outputs.index(scope, 1 << 20)
    id = store.outputs.list(scope, 1).outputs[0].id
    yield "touch_output", lambda: store.outputs.touch(scope, id, NOON + 1)
    yield "delete_output", lambda: store.outputs.delete(scope, id, stamp())
    yield "keep_outputs", lambda: [keep(store, scope, b"%d " % n * 900) for n in range(4)]
    ids = [one.id for one in store.outputs.list(scope, 9).outputs]
    yield "purge_outputs", lambda: store.outputs.purge(scope, ids[:1], stamp())
    yield "prune_outputs", lambda: store.outputs.prune(scope, now=NOON + 1, max_age_ms=None, max_bytes=1, most=1)
    yield "clear_outputs", lambda: store.outputs.clear(scope, stamp())
    yield "without_vector", lambda: store.vectors.missing(scope, MODEL, 9)
    yield "keep_vectors", lambda: embed(store, scope)
    yield "erase", lambda: store.entries.erase(scope, range(9))


def test_every_change_is_waited_for(servers: Pair, store: Store) -> None:
    """The mark of a project changes with whatever a search could find, also where its numbers stay the same."""
    scope, missed = new_scope(), []
    for name, change in every_change(store, scope):
        servers.caught_up()
        with servers.paused():
            with since(store) as counted:
                SEARCHES["matching"](store, scope)
            assert counted == {REPLICA: 1}, name
            change()
            with since(store) as counted:
                SEARCHES["matching"](store, scope)
            if counted != {BEHIND: 1}:
                missed.append(name)
    assert missed == []


steps = st.lists(st.sampled_from(("note", "message", "output", "pause", "resume", "look")), min_size=4, max_size=14)


def test_no_search_misses_an_acknowledged_write(servers: Pair) -> None:
    """Two processes' stores take turns in writing and searching, while the replica stands still and goes on."""
    with opened(servers) as one, opened(servers) as two:

        @settings(max_examples=fewer_examples(3))
        @given(steps)
        def whatever_happens(taken: list[str]) -> None:
            scope, told = new_scope(), {"note": 0, "message": 0, "output": 0}
            for at, step in enumerate([*taken, "look"]):
                here, there = (one, two) if at % 2 else (two, one)
                if step == "pause":
                    servers.pause()
                elif step == "resume":
                    servers.resume()
                elif step in told:
                    told[step] += 1
                    written(here, scope, step, told[step])
                for store in (there, here):
                    assert seen(store, scope) == told

        try:
            whatever_happens()
        finally:
            servers.resume()
        counted = one.searches()
    assert counted[BEHIND] > 10
    assert counted[REPLICA] > 10


def test_writers_and_readers_at_once_miss_nothing_either(servers: Pair) -> None:
    """Each writes and then asks the other store at once, in projects that others write to as well."""
    scopes, missed, most = [new_scope(), new_scope()], [], 40
    begun = threading.Barrier(5)

    def work(number: int, here: Store, there: Store) -> None:
        begun.wait()
        for at in range(most):
            scope, word = scopes[(number + at) % 2], f"osprey{number}x{at}"
            put(here, scope, None, word)
            if len(there.entries.matching(scope, NOTES, Words(((word,),)))) != 1:
                missed.append(word)

    with opened(servers) as one, opened(servers) as two:
        pairs = [(one, two), (two, one)] * 2
        threads = [threading.Thread(target=work, args=(at, *stores)) for at, stores in enumerate(pairs)]
        for thread in threads:
            thread.start()
        begun.wait()
        while any(thread.is_alive() for thread in threads):
            with servers.paused():
                until(lambda: one.searches().get(BEHIND, 0) or not any(thread.is_alive() for thread in threads))
            servers.caught_up()
        for thread in threads:
            thread.join()
        assert missed == []
        assert sum(one.searches().values()) == 2 * most


def until(reached: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def written(store: Store, scope: Scope, kind: str, number: int) -> None:
    if kind == "note":
        put(store, scope, None, f"osprey {number}")
    elif kind == "message":
        store.entries.append(scope, MESSAGE, [(f"m{number}", Draft(f"osprey {number}", "s"))], stamp())
    else:
        keep(store, scope, b"osprey %d " % number * 9)
        store.outputs.index(scope, 1 << 20)


def seen(store: Store, scope: Scope) -> dict[str, int]:
    outputs = store.outputs.candidates(scope, seek("osprey"))
    return {
        "note": len(store.entries.matching(scope, NOTES, Words((("osprey",),)))),
        "message": len(store.entries.texts(scope, store.entries.candidates(scope, (MESSAGE,), seek("osprey")).docs)),
        "output": len({outputs.documents[doc].key for doc in outputs.docs}),
    }


def test_tenants_are_kept_apart_there_too(servers: Pair, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    story(store, THEIRS)
    story(store, MINE)
    answers(store, MINE)  # makes what is made by the first question
    servers.caught_up()
    with sent(monkeypatch, without_filter), since(store) as counted:
        mine = answers(store, MINE)
    assert counted.keys() == {REPLICA}
    assert "secret of mine two" in repr(mine)
    assert "theirs" not in repr(mine)


@pytest.mark.parametrize("there", [str(SCHEMA - 1), "no"])
def test_a_replica_with_another_schema_is_not_asked(servers: Pair, store: Store, there: str) -> None:
    """Or with none yet: its table may be seen before what stands in it."""
    scope = new_scope()
    put(store, scope, "k", "an osprey")
    again = f"DELETE FROM limpet_schema; INSERT INTO limpet_schema (version) VALUES ({SCHEMA})"
    older = f"UPDATE limpet_schema SET version = {there}" if there != "no" else "DELETE FROM limpet_schema"
    servers.primary.ask_store(older)
    servers.caught_up()
    try:
        with servers.paused():
            servers.primary.ask_store(again)
            with since(store) as counted:
                assert SEARCHES["matching"](store, scope) == ["k"]
            assert counted == {SCHEMA_DIFFERS: 1}
            said = f"{place(servers)} has schema {there} and not {SCHEMA}; the primary answers"
            assert found(store) == Finding(REPLICA, False, said.replace("schema no and not", "no schema and not"))
    finally:
        servers.primary.ask_store(again)
    servers.caught_up()
    with since(store) as counted:
        assert SEARCHES["matching"](store, scope) == ["k"]
    assert counted == {REPLICA: 1}


def place(servers: Pair) -> str:
    return f"postgresql:///limpet?host={servers.standby.home}"


def found(store: Store) -> Finding:
    (one,) = [finding for finding in store.check() if finding.name == REPLICA]
    return one


def test_the_health_check_says_how_far_it_is_behind(servers: Pair, store: Store) -> None:
    servers.caught_up()
    put(store, new_scope(), "k", "text")
    servers.caught_up()
    with servers.paused():
        assert found(store) == Finding(REPLICA, True, f"{place(servers)} answers, and has everything")
        put(store, new_scope(), "k", "text")
        behind = found(store)
    assert behind.ok
    assert " bytes behind; the newest change it has is " in behind.detail


def test_a_role_without_rights_or_with_too_many(servers: Pair, store: Store) -> None:
    scope = new_scope()
    put(store, scope, "k", "an osprey")
    servers.primary.ask("CREATE ROLE stranger LOGIN")
    servers.caught_up()
    for role, why in (("stranger", {REFUSED: 1, AWAY: 1}), ("postgres", {UNPROTECTED: 2})):
        replica = servers.standby.url.replace("keeper@", f"{role}@")
        other = PostgresStore(servers.primary.url, replica)
        assert SEARCHES["matching"](other, scope) == ["k"]
        assert SEARCHES["matching"](other, scope) == ["k"]
        counted, health = other.searches(), found(other)
        other.close()
        assert counted == why
        assert not health.ok
    servers.primary.ask("DROP ROLE stranger")


def until_replica(store: Store, scope: Scope) -> None:
    deadline = time.monotonic() + 60
    while True:
        with since(store) as counted:
            assert SEARCHES["matching"](store, scope) == ["k"]
        if REPLICA in counted:
            return
        assert time.monotonic() < deadline, store.searches()
        time.sleep(0.05)


def test_one_that_stands_still_is_hung_up_on(
    servers: Pair, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = new_scope()
    put(store, scope, "k", "an osprey")
    until_replica(store, scope)
    with since(store) as counted:
        backend = store._reads.reads(scope, lambda con, _: con.info.backend_pid)
    assert counted == {REPLICA: 1}  # else the pid is one of the primary's
    monkeypatch.setattr(postgres_replica, "ANSWER_SECONDS", 0)
    os.kill(backend, signal.SIGSTOP)
    try:
        with since(store) as counted:
            assert SEARCHES["matching"](store, scope) == ["k"]
            assert SEARCHES["matching"](store, scope) == ["k"]
        assert counted == {AWAY: 2}
    finally:
        os.kill(backend, signal.SIGCONT)


def test_connections_that_lay_unused_are_not_trusted(
    servers: Pair, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = new_scope()
    put(store, scope, "k", "an osprey")
    servers.caught_up()

    def answering() -> int:
        return store._reads.reads(scope, lambda con, _: con.info.backend_pid)

    with since(store) as counted:
        first, second = answering(), answering()
        monkeypatch.setattr(postgres_replica, "IDLE_SECONDS", -1)
        third = answering()
    assert counted == {REPLICA: 3}
    assert first == second != third


def test_more_at_once_than_it_may_have_go_to_the_primary(
    servers: Pair, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_replica, "POOL_MAX", 1)
    scope = new_scope()
    put(store, scope, "k", "an osprey")
    servers.caught_up()
    with since(store) as counted:
        within = store._reads.reads(scope, lambda con, _: SEARCHES["matching"](store, scope))
    assert within == ["k"]
    assert counted == {REPLICA: 1, BUSY: 1}


def test_a_replica_that_is_killed_comes_back_and_is_promoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_replica, "REST_SECONDS", 0.5)
    scope = new_scope()
    with pair(synchronous=False) as servers, opened(servers) as store:
        put(store, scope, "k", "an osprey")
        until_replica(store, scope)
        servers.standby.kill()
        with since(store) as counted:
            for _ in range(3):
                assert SEARCHES["matching"](store, scope) == ["k"]
        assert counted == {AWAY: 3}
        assert not found(store).ok
        assert "does not answer" in found(store).detail
        servers.follow()
        until_replica(store, scope)
        assert found(store).ok
        servers.standby.until("SELECT pg_promote(true, 60)")
        with since(store) as counted:
            assert SEARCHES["matching"](store, scope) == ["k"]
        assert set(counted) <= {PROMOTED, AWAY}
        assert "no replica, or was promoted" in found(store).detail
        # Now two servers take writes. Ours goes on with its own.
        put(store, scope, "l", "one osprey more")
        assert SEARCHES["matching"](store, scope) == ["l", "k"]


def test_what_is_damaged_on_the_replica_alone_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the server's own checksums, and by ours where it has none."""
    monkeypatch.setattr(postgres_replica, "REST_SECONDS", 0.5)
    scope, text = new_scope(), "an osprey and a ptarmigan"
    with pair(synchronous=False) as servers, opened(servers) as store:
        put(store, scope, "k", text)
        # What a reader still has to note in a page would bring the replica that page, whole, at the next read.
        servers.primary.ask_store("VACUUM (FREEZE) entries")
        until_replica(store, scope)
        servers.primary.ask("CHECKPOINT")
        servers.caught_up()
        servers.standby.ask("CHECKPOINT")  # so that no page is written anew from the log
        (file,) = servers.standby.ask_store("SELECT pg_relation_filepath('entries')")[0]
        servers.standby.shut_down()
        page = servers.standby.data / str(file)
        page.write_bytes(page.read_bytes().replace(text.encode(), text.replace("ptar", "star").encode()))
        for why, check in ((REFUSED, "off"), (DAMAGED, "on")):
            servers.follow(ignore_checksum_failure=check)
            deadline, counted = time.monotonic() + 60, dict[str, int]()
            while why not in counted:
                with since(store) as counted:
                    assert SEARCHES["contents"](store, scope) == [text]
                assert counted.keys() <= {why, AWAY}
                assert time.monotonic() < deadline, store.searches()
            servers.standby.shut_down()


def test_of_several_replicas_one_that_is_there_answers(servers: Pair) -> None:
    hosts = f"host={servers.standby.home}/nowhere,{servers.standby.home}&port={PORT},{PORT}&load_balance_hosts=random"
    scope, store = new_scope(), PostgresStore(servers.primary.url, f"postgresql://keeper@/limpet?{hosts}")
    try:
        put(store, scope, "k", "an osprey")
        until_replica(store, scope)
        assert found(store).ok
    finally:
        store.close()


@pytest.mark.parametrize(
    ("store", "replica"),
    [
        ("limpet.db", "postgresql://one/h"),
        ("postgresql://one/h", "two.db"),
        ("postgresql://one/h", "my://me:pw@two/h"),
    ],
)
def test_a_replica_is_a_server_of_a_server(store: str, replica: str) -> None:
    with pytest.raises(errors.BadInput, match="store_replica") as refused:
        choose_store(store, replica)
    assert "pw" not in refused.value.message
