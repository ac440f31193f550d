"""Whole projects: tenants and projects apart, dump and load, health reports."""

from __future__ import annotations

import pytest

from contract.kit import NOON, NOTES, always, delete, everything, keys, new_scope, put, stamp
from limpet import errors
from limpet.model import MEMORY, NOTE, SESSION, Draft, Entry, OutputDraft, Scope
from limpet.store import EventQuery, Listing, Store, Words, entry_from
from limpet.wiring import choose_store


def fill(store: Store, scope: Scope) -> None:
    """A project with everything in it that a dump has to keep."""
    for n in range(3):
        put(store, scope, None, f"note {n} 記憶", tags=("Straße", f"t{n}"), now=NOON + n, by="human/cli")
    put(store, scope, "k", "one", kind=MEMORY, pinned=True, extra={"a": [1, {"ü": None}]})
    put(store, scope, "k", "two", kind=MEMORY, done=True)
    put(store, scope, "gone", "deleted", session="other")
    delete(store, scope, "gone")
    how = stamp(operation="undo")._replace(detail={"of": 3})
    store.entries.edit(scope, NOTE, "again", always(Draft("", "s")), how)


NEIGHBOURS = (
    *(Scope("local", "p"), Scope("local", "P"), Scope("local", "p "), Scope("other", "p"), Scope("localp", "")),
    *(Scope("", "localp"), Scope("loca", "lp"), Scope("%", "p"), Scope("local", "%"), Scope("local", "ß")),
)


def test_tenants_and_projects_do_not_see_each_other(store: Store) -> None:
    for scope in NEIGHBOURS:
        put(store, scope, "k", f"mine is {scope}", tags=(f"tag of {scope.tenant}",))
    for scope in NEIGHBOURS:
        page = store.entries.list(scope, NOTES)
        assert [entry.content for entry in page.entries] == [f"mine is {scope}"]
        assert store.entries.containing(scope, NOTES, "mine") == page
        assert store.entries.matching(scope, NOTES, Words((("mine",),))) == page.entries
        assert store.entries.alike(scope, NOTE, page.entries[0].content, NOON) == page.entries
        assert [event.seq for event in store.entries.events(scope, EventQuery())] == [2, 1]
        assert store.entries.tally(scope, NOTE, "") == (1, 1)
        assert len(everything(store, scope)) == 4
        assert scope.project in store.projects(scope.tenant)
    assert store.projects("local") == ("%", "P", "p", "p ", "ß")
    assert store.projects("nobody") == ()
    delete(store, NEIGHBOURS[0], "k")
    assert all(store.entries.read(scope, NOTE, "k") for scope in NEIGHBOURS[1:])


def test_a_dump_comes_back_exactly(store: Store, scope: Scope) -> None:
    fill(store, scope)
    dumped = everything(store, scope)
    entries = [entry_from(record) for kind, record in dumped if kind == "entry"]
    records = [record for kind, record in dumped if kind == "event"]
    copy = new_scope()
    assert store.load(copy, entries, records) == len(entries)
    assert everything(store, copy) == dumped
    for look in (scope, copy):
        assert store.entries.events(look, EventQuery()) == store.entries.events(scope, EventQuery())
        for kind in (NOTE, MEMORY, SESSION):
            listing = Listing((kind,), include_done=True)
            assert store.entries.list(look, listing) == store.entries.list(scope, listing)
            assert store.entries.tags(look, kind, "s") == store.entries.tags(scope, kind, "s")
            assert store.entries.tally(look, kind, "") == store.entries.tally(scope, kind, "")
    assert keys(store.entries.containing(copy, NOTES, "記憶").entries) == keys(
        store.entries.containing(scope, NOTES, "記憶").entries
    )
    # Both go on in the same way.
    assert put(store, copy, None, "next", tags=("STRASSE",)) == put(store, scope, None, "next", tags=("STRASSE",))
    assert everything(store, copy) == everything(store, scope)


def test_a_dump_moves_between_kinds_of_store(both: tuple[Store, Store], scope: Scope) -> None:
    one, other = both
    fill(one, scope)
    for source, target in ((one, other), (other, one)):
        dumped = everything(source, scope)
        goal = scope if target is other else new_scope()
        target.load(
            goal,
            (entry_from(record) for kind, record in dumped if kind == "entry"),
            (record for kind, record in dumped if kind == "event"),
        )
        assert everything(target, goal) == dumped


def test_a_dump_is_in_a_stable_order(store: Store, scope: Scope) -> None:
    fill(store, scope)
    records = everything(store, scope)
    names = [(record["kind"], record["key"]) for kind, record in records if kind == "entry"]
    assert names == sorted(names)
    assert [record["seq"] for kind, record in records if kind == "event"] == list(
        range(1, len(records) - len(names) + 1)
    )


def test_a_dump_shows_one_moment(store: Store, scope: Scope) -> None:
    for n in range(50):
        put(store, scope, f"k{n:02}", "before")
    lines = store.entries.dump(scope)
    first = next(lines)
    put(store, scope, "k49", "after")
    put(store, scope, "new", "after")
    rest = [first, *lines]
    assert all(record.get("content") != "after" for _, record in rest)
    assert len([kind for kind, _ in rest if kind == "event"]) == 51


def test_a_dump_may_be_left_early(store: Store, scope: Scope) -> None:
    fill(store, scope)
    for _ in range(12):  # more often than there are connections
        lines = store.entries.dump(scope)
        next(lines)
        lines.close()  # type: ignore[attr-defined]
    put(store, scope, "k", "works")
    unfinished = store.entries.dump(scope)
    next(unfinished)
    put(store, scope, "k", "works too")
    del unfinished
    assert put(store, scope, "k", "still").seq


def test_a_load_needs_an_empty_project(store: Store, scope: Scope) -> None:
    put(store, scope, "k", "mine")
    before = everything(store, scope)
    entry = store.entries.read(scope, NOTE, "k")
    assert entry is not None
    with pytest.raises(errors.Conflict, match="already holds something") as caught:
        store.load(scope, [entry], [])
    assert caught.value.code == "project_not_empty"
    assert everything(store, scope) == before


def test_a_load_that_breaks_off_leaves_nothing(store: Store, scope: Scope) -> None:
    class Broken(Exception):
        pass

    def entries() -> object:
        for n in range(500):
            yield Entry(NOTE, f"k{n}", "s", "x", ("t",), False, False, "agent", {}, 1, NOON, NOON)
        raise Broken

    with pytest.raises(Broken):
        store.load(scope, entries(), [])  # type: ignore[arg-type]
    assert store.projects(scope.tenant) == ()
    assert store.entries.list(scope, NOTES)[:2] == ((), 0)
    assert store.load(scope, [], []) == 0
    assert store.projects(scope.tenant) == (scope.project,)


def test_a_large_load_keeps_every_row(store: Store, scope: Scope) -> None:
    entries = [
        Entry(NOTE, f"k{n}", "s", f"x {n}", ("t",), False, False, "agent", {}, 1, NOON, NOON) for n in range(1_001)
    ]
    assert store.load(scope, entries, []) == 1_001
    assert store.entries.list(scope, NOTES._replace(limit=1)).total == 1_001
    assert store.entries.tally(scope, NOTE, "s") == (1_001, 1)
    assert put(store, scope, None, "next", now=0, session="").after is not None


def test_a_health_report_of_a_sound_store_is_all_right(store: Store, scope: Scope) -> None:
    fill(store, scope)
    fill(store, Scope("other", "p"))
    report = store.check()
    assert all(finding.ok for finding in report), report
    assert "checksums" in [finding.name for finding in report]
    assert all(finding.detail for finding in report)


def test_what_was_written_is_there_when_the_store_is_opened_again(store_url: str, scope: Scope) -> None:
    first = choose_store(store_url)
    fill(first, scope)
    kept = everything(first, scope)
    first.close()
    second = choose_store(store_url)
    assert everything(second, scope) == kept
    assert put(second, scope, None, "y", tags=("STRASSE",)).after is not None
    second.close()


def test_usage_counts_what_a_tenant_keeps_in_all_its_projects(store: Store) -> None:
    assert store.usage("t") == (0, 0)
    for number, project in enumerate(("one", "two", "two"), 1):
        put(store, Scope("t", project), None, f"note {number}")
    put(store, Scope("u", "one"), None, "theirs")
    store.outputs.keep(Scope("t", "two"), OutputDraft("shell"), b"x" * 10, stamp())
    kept = store.usage("t")
    # Three notes and the session that each project has.
    assert (kept.entries, kept.output_bytes) == (5, 10)
    assert store.usage("u").output_bytes == 0


def test_many_texts_with_many_tags_are_loaded(store: Store, scope: Scope) -> None:
    """A file may hold more tags than one statement of PostgreSQL has places for values."""
    put(store, scope, "k", "text", tags=tuple(f"t{number}" for number in range(132)))
    entry = store.entries.read(scope, NOTE, "k")
    assert entry is not None
    copy = new_scope()
    assert store.load(copy, [entry._replace(key=f"k{number}") for number in range(100)], []) == 100
    assert store.entries.list(copy, NOTES._replace(tags=("t131",), limit=1)).total == 100
