"""Reads that belong together: what they see of what is written meanwhile, and what they leave behind."""

from __future__ import annotations

import pytest

from contract.kit import NOTES, keys, new_scope, put, raw
from limpet import errors
from limpet.model import NOTE, Scope
from limpet.store import Store
from limpet.wiring import choose_store

KILL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = 'limpet' AND datname = current_database()"
)


def seen(store: Store, scope: Scope) -> list[str]:
    return sorted(keys(store.entries.list(scope, NOTES).entries))


def test_what_a_thread_writes_among_its_reads_is_seen(store: Store, scope: Scope) -> None:
    put(store, scope, "a", "before")
    with store.moment(scope.tenant):
        assert seen(store, scope) == ["a"]
        put(store, scope, "b", "meanwhile")
        assert seen(store, scope) == ["a", "b"]
        assert keys(store.entries.containing(scope, NOTES, "meanwhile").entries) == ["b"]
        with store.moment(scope.tenant):
            assert store.entries.read(scope, NOTE, "b") is not None
        assert seen(store, scope) == ["a", "b"]
    assert seen(store, scope) == ["a", "b"]


def test_other_tenants_are_read_among_them(store: Store, scope: Scope) -> None:
    other = new_scope("somebody else")
    put(store, scope, "a", "mine")
    put(store, other, "b", "theirs")
    with store.moment(scope.tenant):
        for _ in range(3):
            assert seen(store, scope) == ["a"]
            assert seen(store, other) == ["b"]
            assert scope.project in store.projects(scope.tenant)


def test_a_read_that_fails_among_them_is_the_only_one(postgres_url: str) -> None:
    store, scope = choose_store(postgres_url), new_scope()
    try:
        put(store, scope, "a", "kept")
        for _ in range(12):  # more often than there are connections
            with store.moment(scope.tenant):
                assert seen(store, scope) == ["a"]
                with pytest.raises(errors.LimpetError):
                    store.entries.read(scope, NOTE, "\0")
                assert seen(store, scope) == ["a"]
    finally:
        store.close()


@pytest.mark.one_server
def test_on_a_server_they_see_one_moment(postgres_url: str) -> None:
    store, other, scope = choose_store(postgres_url), choose_store(postgres_url), new_scope()
    try:
        put(store, scope, "a", "before")
        with store.moment(scope.tenant):
            assert seen(store, scope) == ["a"]
            put(other, scope, "b", "meanwhile")
            assert seen(store, scope) == ["a"]
            assert store.entries.containing(scope, NOTES, "meanwhile").total == 0
            assert store.entries.read(scope, NOTE, "b") is None
            assert store.entries.tally(scope, NOTE, "").total == 1
        assert seen(store, scope) == ["a", "b"]
    finally:
        store.close()
        other.close()


@pytest.mark.one_server
def test_a_connection_that_is_lost_among_them_is_replaced(postgres_url: str) -> None:
    store, scope = choose_store(postgres_url), new_scope()
    try:
        put(store, scope, "a", "kept")
        with store.moment(scope.tenant):
            assert seen(store, scope) == ["a"]
            raw(postgres_url, KILL)
            assert seen(store, scope) == ["a"]
            assert store.entries.read(scope, NOTE, "a") is not None
    finally:
        store.close()
