"""What stores know of validity: edits that follow each other, calls that are repeated, expiry in lists and counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from contract.kit import always
from limpet import errors, limits
from limpet.model import MEMORY, NOTE, Draft, Entry, Retry, Scope, Stamp
from limpet.store import Edit, Follow, Listing, Store

NOON = 1_772_539_200_000


def stamp(now: int = NOON, retry: Retry | None = None) -> Stamp:
    return Stamp("agent/test", "add_note", "s1", now, retry=retry)


def draft(text: str, **extra: object) -> Draft:
    return Draft(text, "s1", ("tag",), extra=extra)


def test_an_edit_sees_what_the_one_before_it_wrote(store: Store, scope: Scope) -> None:
    def naming(before: Entry | None, previous: Entry) -> Draft:
        return Draft(f"after {previous.key}", "s1")

    edits: list[Edit] = [(NOTE, None, lambda before: draft("first")), (MEMORY, "k", Follow(naming))]
    first, second = store.entries.edit_all(scope, edits, stamp())
    assert first.entry.key.startswith("note_")
    assert second.entry.content == f"after {first.entry.key}"
    assert second.seq == first.seq + 1


def test_a_refusal_of_the_second_takes_the_first_back(store: Store, scope: Scope) -> None:
    def refusing(before: Entry | None, previous: Entry) -> Draft:
        raise errors.no_note(previous.key)

    with pytest.raises(errors.NotFound):
        store.entries.edit_all(scope, [(NOTE, None, lambda before: draft("x")), (NOTE, "n", Follow(refusing))], stamp())
    assert store.entries.list(scope, Listing((NOTE,))).total == 0


def test_a_repeated_call_gives_the_first_changes_and_decides_nothing(store: Store, scope: Scope) -> None:
    retry = Retry("key", "a digest")
    first = store.entries.edit(scope, NOTE, None, lambda before: draft("once"), stamp(retry=retry))
    store.entries.edit(scope, NOTE, first.entry.key, lambda before: draft("changed since"), stamp())

    def never(before: Entry | None) -> Draft:
        raise AssertionError("a repeated call is not decided again")

    again = store.entries.edit(scope, NOTE, None, never, stamp(NOON + 5, retry))
    assert (again.seq, again.entry.content, again.replayed) == (first.seq, "once", True)
    with pytest.raises(errors.Conflict, match="came with another call"):
        store.entries.edit(scope, NOTE, None, never, stamp(retry=Retry("key", "another digest")))


def test_the_same_call_made_by_many_at_once_writes_once(store: Store, scope: Scope) -> None:
    retry = Retry("key", "a digest")

    def call(_: int) -> str:
        return store.entries.edit(scope, NOTE, None, lambda before: draft("once"), stamp(retry=retry)).entry.key

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(call, range(24)))) == 1
    assert store.entries.list(scope, Listing((NOTE,))).total == 1


def test_keys_are_remembered_up_to_a_number(store: Store, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRIES_KEPT", 3)
    for number in range(6):
        retry = Retry(f"key {number}", "digest")
        store.entries.edit(scope, NOTE, None, lambda before: draft("x"), stamp(NOON + number, retry))
    replayed = [
        store.entries.edit(
            scope, NOTE, None, lambda before: draft("x"), stamp(NOON + 9, Retry(f"key {number}", "digest"))
        )
        for number in (5, 4)
    ]
    assert all(change.replayed for change in replayed)
    forgotten = store.entries.edit(
        scope, NOTE, None, lambda before: draft("x"), stamp(NOON + 9, Retry("key 0", "digest"))
    )
    assert not forgotten.replayed


def test_what_has_expired_or_was_replaced_is_listed_when_asked_for(store: Store, scope: Scope) -> None:
    def put(key: str, *, done: bool = False, **extra: object) -> None:
        store.entries.edit(scope, NOTE, key, lambda before: draft(f"text {key}", **extra)._replace(done=done), stamp())

    put("open")
    put("expiring", expires_at=NOON + 10)
    put("done", done=True)
    put("replaced", done=True, replaced_by=[NOTE, "open"])
    put("odd", expires_at="soon")  # of a damaged import

    def keys(**more: object) -> set[str]:
        query = Listing((NOTE,), **more)  # type: ignore[arg-type]
        listed = {entry.key for entry in store.entries.list(scope, query).entries}
        assert listed == {entry.key for entry in store.entries.containing(scope, query, "text").entries}
        assert store.entries.list(scope, query).total == len(listed)
        return listed

    assert keys() == {"open", "expiring", "odd"}
    assert keys(now=NOON + 9) == {"open", "expiring", "odd"}
    assert keys(now=NOON + 10) == {"open", "odd"}
    assert keys(now=NOON + 10, include_done=True) == {"open", "odd", "done"}
    assert keys(now=NOON + 10, include_replaced=True) == {"open", "odd", "expiring", "replaced"}
    assert keys(now=NOON + 10, include_done=True, include_replaced=True) == {
        *("open", "odd", "expiring", "replaced", "done")
    }
    assert [count.notes for count in store.entries.tags(scope, NOTE, "", NOON + 10)] == [2]
    assert store.entries.tally(scope, NOTE, "", NOON + 10).total == 5
    assert {entry.key for entry in store.entries.earlier(scope, NOTE, None, now=NOON + 10)} == {"open", "odd"}
    assert all(finding.ok for finding in store.check())


def test_uses_are_counted(store: Store, scope: Scope) -> None:
    for at in (NOON, NOON + 1):
        store.calls.record_use(scope, NOTE, "k", "opened", at)
    store.calls.record_use(scope, MEMORY, "k", "useful", NOON)
    assert [tuple(use) for use in store.calls.uses(scope)] == [
        (MEMORY, "k", "useful", 1, NOON),
        (NOTE, "k", "opened", 2, NOON + 1),
    ]
    assert [use.times for use in store.calls.uses(scope, NOTE, "k")] == [2]


def test_a_page_counts_all_that_it_lists(store: Store, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        expires = {"expires_at": NOON + 1 if number % 4 == 0 else NOON + 9_000_000}
        tags = ("even",) if number % 2 == 0 else ("Odd",)
        session = "one" if number < 8 else "two"
        draft_ = Draft("text", session, tags, done=number in (1, 2, 9), extra=expires)
        store.entries.edit(scope, NOTE, f"n{number:02}", always(draft_), stamp(NOON + number))
    now = NOON + 60_000
    for query in (
        Listing((NOTE,)),
        Listing((NOTE,), now=now),
        Listing((NOTE,), "one", now=now),
        Listing((NOTE, MEMORY), "two", now=now),
        Listing((NOTE,), tags=("even",), now=now),
        Listing((NOTE,), "one", tags=("odd",), now=now),
        Listing((NOTE,), "none", now=now),
        Listing((NOTE,), include_done=True),
        Listing((NOTE,), include_done=True, now=now),
        Listing((NOTE,), include_done=True, include_replaced=True, now=now),
        Listing((NOTE,), include_replaced=True, now=now),
    ):
        whole = store.entries.list(scope, query).entries
        for walked in (1_000, 3):  # of SQLite: where the page of a tag is among the newest entries, and where it is not
            monkeypatch.setattr("limpet.stores.sqlite.entries.TAGS_WALKED", walked)
            page = store.entries.list(scope, query._replace(limit=2))
            assert (page.entries, page.total) == (whole[:2], len(whole)), query
