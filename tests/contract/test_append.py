"""Appending: entries that are written once and by the hundred, without events; and several outputs at once."""

from __future__ import annotations

import pytest

from contract.kit import NOON, everything, new_scope
from limpet import errors
from limpet.model import MESSAGE, SESSION, Draft, OutputDraft, Scope, Stamp
from limpet.store import EventQuery, Listing, Store, Words, entry_from

STAMP = Stamp("agent/test", "append_messages", "one", NOON)


def drafts(first: int, last: int) -> list[tuple[str, Draft]]:
    return [
        (f"one#{at:08d}", Draft(f"message {at} on casts", "one", extra={"body": "{}"})) for at in range(first, last + 1)
    ]


def test_what_is_appended_is_there_in_order_counted_and_found(store: Store) -> None:
    scope = new_scope()
    added = store.entries.append(scope, MESSAGE, drafts(0, 299), STAMP)
    assert [entry.key for entry in added] == [key for key, _ in drafts(0, 299)]
    assert store.entries.read(scope, MESSAGE, "one#00000007") == added[7]
    page = store.entries.list(scope, Listing((MESSAGE,), "one", limit=1_000))
    assert page.entries == tuple(reversed(added))
    assert store.entries.list(scope, Listing((MESSAGE,), "one", limit=2)).entries == added[:-3:-1]
    assert store.entries.tally(scope, MESSAGE, "one").total == 300
    assert store.entries.containing(scope, Listing((MESSAGE,)), "MESSAGE 12 on").total == 1
    assert len(store.entries.matching(scope, Listing((MESSAGE,)), Words((("cast",), ("12",))))) == 1


def test_the_session_begins_and_history_lists_nothing_else(store: Store) -> None:
    scope = new_scope()
    store.entries.append(scope, MESSAGE, drafts(0, 1), STAMP)
    store.entries.append(scope, MESSAGE, drafts(2, 3), STAMP)
    assert [(event.kind, event.key) for event in store.entries.events(scope, EventQuery())] == [(SESSION, "one")]
    assert store.entries.append(scope, MESSAGE, [], STAMP) == ()


def test_one_key_that_is_taken_stops_them_all(store: Store) -> None:
    scope = new_scope()
    store.entries.append(scope, MESSAGE, drafts(0, 1), STAMP)
    before = everything(store, scope)
    with pytest.raises(errors.Conflict, match="there is a message 'one#00000001' already"):
        store.entries.append(scope, MESSAGE, [*drafts(2, 4), *drafts(1, 1)], STAMP)
    assert everything(store, scope) == before


def test_time_never_goes_back(store: Store) -> None:
    scope = new_scope()
    (one,) = store.entries.append(scope, MESSAGE, drafts(0, 0), STAMP)
    (two,) = store.entries.append(scope, MESSAGE, drafts(1, 1), STAMP._replace(now=NOON - 5_000))
    assert (one.created_at, two.created_at) == (NOON, NOON)
    note = store.entries.edit(scope, "note", None, lambda before: Draft("n", "one"), STAMP).entry
    assert note.key == f"note_{NOON + 1}"


def test_a_dump_brings_them_back(store: Store) -> None:
    scope, copy = new_scope(), new_scope()
    store.entries.append(scope, MESSAGE, drafts(0, 4), STAMP)
    records = list(store.entries.dump(scope))
    entries = [entry_from(record) for kind, record in records if kind == "entry"]
    store.load(Scope(scope.tenant, copy.project), entries, [record for kind, record in records if kind == "event"])
    again = list(store.entries.dump(Scope(scope.tenant, copy.project)))
    assert again == records
    assert all(finding.ok for finding in store.check())


def test_a_message_does_not_keep_an_output_from_being_pruned(store: Store) -> None:
    scope = new_scope()
    kept = store.outputs.keep(scope, OutputDraft("shell"), b"big\n", STAMP).output
    store.entries.append(scope, MESSAGE, [("one#00000000", Draft(f"see hold://{kept.id}", "one"))], STAMP)
    assert store.outputs.cited(scope, [kept.id]) == frozenset()
    store.entries.edit(scope, "note", None, lambda before: Draft(f"see hold://{kept.id}", "one"), STAMP)
    assert store.outputs.cited(scope, [kept.id]) == {kept.id}


def test_several_outputs_are_kept_at_once(store: Store) -> None:
    scope = new_scope()
    known = store.outputs.keep(scope, OutputDraft("shell"), b"known\n", STAMP).output
    bodies = [b"one\n", b"known\n", b"two\n", b"one\n"]
    kept = store.outputs.keep_all(scope, [(OutputDraft("shell"), body) for body in bodies], STAMP)
    assert [one.new for one in kept] == [True, False, True, False]
    assert kept[1].output.id == known.id
    assert kept[0].output.id == kept[3].output.id
    assert [store.outputs.read_bytes(scope, one.output.id, 0, 99) for one in kept] == bodies
    assert store.outputs.keep_all(scope, [], STAMP) == ()
    with pytest.raises(errors.BadInput):
        store.outputs.keep_all(scope, [(OutputDraft("shell"), b"three\n"), (OutputDraft("\0"), b"four\n")], STAMP)
    assert store.outputs.stats(scope).entries == 3
