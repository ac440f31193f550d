"""Several edits at once, and forgetting for good: the same on every store."""

from __future__ import annotations

import pytest

from contract.kit import NOTES, always, delete, everything, keys, put, raw, stamp
from limpet import errors
from limpet.model import NOTE, Draft, Entry, OutputDraft, Retry, Scope
from limpet.store import DELETE, Delete, EventQuery, Store, Words


def refuse(before: Entry | None) -> Draft | Delete | None:
    raise errors.nothing_to_undo()


def test_several_edits_are_one_after_the_other_each_with_its_event(store: Store, scope: Scope) -> None:
    put(store, scope, "a", "first", tags=("x",))
    put(store, scope, "b", "second")
    edits = [
        (NOTE, "a", always(DELETE)),
        (NOTE, "b", always(Draft("changed", "s"))),
        (NOTE, "c", always(DELETE)),
        (NOTE, "d", always(Draft("new", "s", ("X",)))),
        (NOTE, "d", lambda before: Draft(f"{before.content} again" if before else "", "s")),
    ]
    changes = store.entries.edit_all(scope, edits, stamp(operation="several"))
    assert [bool(change.seq) for change in changes] == [True, True, False, True, True]
    assert [change.after and change.after.content for change in changes] == [None, "changed", None, "new", "new again"]
    events = store.entries.events(scope, EventQuery(operation="several"))
    assert [event.seq for event in events] == [change.seq for change in reversed(changes) if change.seq]
    assert store.entries.tally(scope, NOTE, "s").total == 2
    assert store.entries.edit_all(scope, [], stamp()) == ()


def test_several_edits_are_all_or_none(store: Store, scope: Scope) -> None:
    put(store, scope, "a", "first")
    before = everything(store, scope)
    with pytest.raises(errors.NotFound):
        store.entries.edit_all(
            scope, [(NOTE, "a", always(DELETE)), (NOTE, "new", always(Draft("x"))), (NOTE, "b", refuse)], stamp()
        )
    assert everything(store, scope) == before
    assert all(finding.ok for finding in store.check())


def test_what_is_erased_is_gone_and_the_change_says_so(store: Store, scope: Scope) -> None:
    first = put(store, scope, "a", "first", tags=("gone",)).seq
    second = put(store, scope, "a", "second").seq
    third = delete(store, scope, "a").seq
    other = put(store, scope, "b", "other").seq
    assert store.entries.erase(scope, [second, third, other, 999]) == 2
    assert store.entries.erase(scope, [second, third]) == 0
    assert store.entries.erase(Scope(scope.tenant, "another"), [second]) == 0
    events = {event.seq: event for event in store.entries.events(scope, EventQuery())}
    assert [events[seq].before for seq in (first, second, third)] == [None, None, None]
    assert [events[seq].after for seq in (first, second, third)] == [None, None, None]
    assert [events[seq].detail.get("erased") for seq in (first, second, third, other)] == [None, True, True, None]
    assert events[other].after is not None
    again = put(store, scope, "a", "anew", tags=("Delete",)).after
    assert again is not None
    assert (again.version, again.tags) == (4, ("Delete",)), "versions go on, and the spelling of the tag is forgotten"
    assert all(finding.ok for finding in store.check())


def test_scrubbing_changes_nothing_that_is_kept(store: Store, scope: Scope) -> None:
    for number in range(30):
        put(store, scope, f"n{number}", f"text number{number} of it")
    for number in range(0, 30, 2):
        delete(store, scope, f"n{number}")
    before = everything(store, scope)
    store.scrub()
    assert everything(store, scope) == before
    assert keys(store.entries.matching(scope, NOTES, Words((("number1",),)))) == ["n1"]
    assert store.entries.matching(scope, NOTES, Words((("number2",),))) == ()
    put(store, scope, "later", "number2 again")
    assert all(finding.ok for finding in store.check())


def test_purged_outputs_leave_a_tombstone_that_does_not_say_how_to_get_them(store: Store, scope: Scope) -> None:
    kept = [
        store.outputs.keep(scope, OutputDraft("shell", f"run {number}"), b"line %d\n" % number * 900, stamp()).output
        for number in range(3)
    ]
    assert store.outputs.purge(scope, [kept[0].id, kept[1].id, "0" * 12], stamp(by="person/cli")) == 2
    stone = store.outputs.tombstone(scope, kept[0].id)
    assert stone is not None
    assert (stone.tool, stone.call, stone.why, stone.by) == ("shell", "", "purged", "person/cli")
    assert [one.id for one in store.outputs.list(scope, 9).outputs] == [kept[2].id]
    assert store.outputs.purge(scope, [], stamp()) == 0
    assert all(finding.ok for finding in store.check())


def test_what_a_call_was_is_forgotten_with_what_it_wrote(store: Store, store_url: str, scope: Scope) -> None:
    """A digest of the call would let a reader of the store try out what a purged text said."""

    def call(key: str, digest: str = "a digest") -> int:
        retried = stamp()._replace(retry=Retry(key, digest))
        (change,) = store.entries.edit_all(scope, [(NOTE, key, always(Draft(key, "s")))], retried)
        return change.seq

    def known() -> list[tuple[str, str]]:
        return raw(store_url, "SELECT key, call FROM retries WHERE project = ? ORDER BY key", (scope.project,))

    call("gone")
    call("kept")
    assert known() == [("gone", "a digest"), ("kept", "a digest")]
    assert store.entries.erase(scope, [delete(store, scope, "gone").seq]) == 1
    assert known() == [("gone", ""), ("kept", "a digest")]
    for digest in ("a digest", "another digest"):
        with pytest.raises(errors.Conflict, match="was purged since"):
            call("gone", digest)
    assert store.entries.read(scope, NOTE, "gone") is None
    assert call("kept") > 0
