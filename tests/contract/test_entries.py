"""Writing and reading entries: keys, versions, time stamps, events, tags and counts."""

from __future__ import annotations

import pytest

from contract.kit import NOON, NOTES, always, delete, everything, key_of, keys, new_scope, put, stamp
from limpet.model import HANDOFF, MEMORY, NOTE, NOTEPAD, SESSION, Draft, Entry, Scope, TagCount, Tally
from limpet.store import DELETE, EventQuery, Listing, Store


class Refused(Exception):
    """What a `decide` raises to refuse."""


# --- one entry --------------------------------------------------------------------------------------------------------


def test_an_empty_store_holds_nothing(store: Store, scope: Scope) -> None:
    assert store.entries.read(scope, NOTE, "x") is None
    assert store.entries.list(scope, NOTES)[:2] == ((), 0)
    assert store.entries.containing(scope, NOTES, "x")[:2] == ((), 0)
    assert store.entries.tags(scope, NOTE, "") == ()
    assert store.entries.tally(scope, NOTE, "") == (0, 0)
    assert store.entries.events(scope, EventQuery()) == ()
    assert store.entries.event(scope, 1) is None
    assert everything(store, scope) == []
    assert store.projects(scope.tenant) == ()


def test_an_entry_comes_back_as_it_was_written(store: Store, scope: Scope) -> None:
    extra = {"n": 1, "list": [True, None, 1.5], "text": "ü\x1f\x1b", "nested": {"a": {}}}
    draft = Draft("línea\r\n\ttab \x1b \u2028 👩\u200d💻\x7f", "s", ("Eins", "zwei"), True, True, extra)
    change = store.entries.edit(scope, MEMORY, "a key/with %_\\'\" ü", always(draft), stamp(by="agent/mcp"))
    wanted = Entry(MEMORY, "a key/with %_\\'\" ü", *_fields(draft), "agent", extra, 1, NOON, NOON)
    assert change.after == wanted
    assert store.entries.read(scope, MEMORY, wanted.key) == wanted
    assert store.entries.read(scope, MEMORY, "A KEY/with %_\\'\" ü") is None


def _fields(draft: Draft) -> tuple[str, str, tuple[str, ...], bool, bool]:
    return draft.session, draft.content, draft.tags, draft.done, draft.pinned


def test_a_long_content_is_kept_whole(store: Store, scope: Scope) -> None:
    long = "wörter und Zeichen 記憶 " * 5_000
    put(store, scope, "k", long, kind=NOTEPAD)
    found = store.entries.read(scope, NOTEPAD, "k")
    assert found is not None
    assert found.content == long


def test_keys_and_sessions_of_the_greatest_length_are_kept(store: Store, scope: Scope) -> None:
    """Long values that do not compress: an index of the server must still take them."""
    wide = "".join(chr(0x20000 + (at * 7_919) % 40_000) for at in range(200))
    put(store, scope, wide, "content", session=wide, tags=(wide[:100],))
    assert keys(store.entries.list(scope, Listing((NOTE,), wide, (wide[:100],))).entries) == [wide]


def test_the_same_key_may_exist_once_in_each_kind(store: Store, scope: Scope) -> None:
    for kind in (NOTE, MEMORY, HANDOFF):
        put(store, scope, "k", kind, kind=kind)
    assert [store.entries.read(scope, kind, "k") for kind in (NOTE, MEMORY, HANDOFF)] == [
        put(store, scope, "k", kind, kind=kind).after for kind in (NOTE, MEMORY, HANDOFF)
    ]


def test_decide_sees_what_is_there_and_deletes_with_gone(store: Store, scope: Scope) -> None:
    seen: list[Entry | None] = []
    put(store, scope, "k", "one")

    def decide(before: Entry | None) -> Draft:
        seen.append(before)
        return Draft("two")

    change = store.entries.edit(scope, NOTE, "k", decide, stamp())
    assert seen[-1] == change.before
    assert change.before is not None
    assert change.before.content == "one"
    gone = delete(store, scope, "k")
    assert (gone.before, gone.after) == (change.after, None)
    assert store.entries.read(scope, NOTE, "k") is None


def test_times_and_origin_follow_the_stamp(store: Store, scope: Scope) -> None:
    put(store, scope, "k", "one", by="person/cli", now=NOON)
    later = put(store, scope, "k", "two", by="agent/mcp", now=NOON + 60_000).after
    assert later is not None
    assert (later.created_at, later.updated_at, later.origin, later.version) == (NOON, NOON + 60_000, "agent", 2)


# --- nothing to do ----------------------------------------------------------------------------------------------------


def test_what_is_the_same_spends_no_version_and_no_event(store: Store, scope: Scope) -> None:
    first = put(store, scope, "k", "text", tags=("Tag",), extra={"a": [1]})
    for wanted in (None, Draft("text", "s", ("tag",), extra={"a": [1]})):
        again = store.entries.edit(scope, NOTE, "k", always(wanted), stamp(now=NOON + 9))
        assert again == (0, first.after, first.after, first.tally, False)
    assert store.entries.events(scope, EventQuery(limit=1))[0].seq == first.seq
    assert put(store, scope, "k", "other").seq == first.seq + 1


def test_what_is_not_there_need_not_be_deleted(store: Store, scope: Scope) -> None:
    put(store, scope, "other", "text")
    before = everything(store, scope)
    assert delete(store, scope, "k") == (0, None, None, (1, 0), False)
    assert everything(store, scope) == before


def test_a_look_at_a_project_does_not_make_it(store: Store, scope: Scope) -> None:
    change = store.entries.edit(scope, NOTE, "k", always(None), stamp(session=""))
    assert change == (0, None, None, (0, 0), False)
    assert store.projects(scope.tenant) == ()


@pytest.mark.parametrize("key", [None, "k", "new"])
def test_a_refusal_changes_nothing(store: Store, scope: Scope, key: str | None) -> None:
    put(store, scope, "k", "text", tags=("a",))
    before = everything(store, scope)

    def refuse(entry: Entry | None) -> Draft:
        raise Refused

    with pytest.raises(Refused):
        store.entries.edit(scope, NOTE, key, refuse, stamp(session="never begun"))
    assert everything(store, scope) == before
    with pytest.raises(Refused):
        store.entries.edit(new := new_scope(), NOTE, key, refuse, stamp())
    assert new.project not in store.projects(scope.tenant)
    assert put(store, scope, "k", "works").seq == len([kind for kind, _ in before if kind == "event"]) + 1


# --- keys made by the store -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0, -1, -1_000, 1, 1_000], ids=lambda step: f"step{step}")
def test_keys_are_unique_and_increasing_whatever_the_clock_does(store: Store, scope: Scope, step: int) -> None:
    made = [key_of(put(store, scope, None, f"{n}", now=NOON + n * step)) for n in range(20)]
    numbers = [int(key.removeprefix("note_")) for key in made]
    assert numbers == sorted(set(numbers))
    assert numbers[0] in (NOON, NOON + 1)
    assert keys(store.entries.list(scope, NOTES).entries) == made[::-1]


def test_a_key_is_never_given_out_again(store: Store, scope: Scope) -> None:
    made: list[str] = []
    for _ in range(5):
        made.append(key_of(put(store, scope, None, "x")))
        delete(store, scope, made[-1])
    assert len(set(made)) == 5


def test_a_key_that_was_brought_along_is_not_made_again(store: Store, scope: Scope) -> None:
    """An import may bring notes from a machine whose clock is ahead."""
    put(store, scope, f"note_{NOON + 1}", "brought", now=NOON, session="")
    put(store, scope, f"note_{NOON + 2}", "brought and deleted", now=NOON, session="")
    delete(store, scope, f"note_{NOON + 2}", now=NOON, session="")
    made = [key_of(put(store, scope, None, "made", now=NOON, session="")) for _ in range(3)]
    assert made == [f"note_{NOON + n}" for n in (3, 4, 5)]
    assert store.entries.tally(scope, NOTE, "") == (4, 0)


def test_time_stamps_of_a_project_never_go_back(store: Store, scope: Scope) -> None:
    for n in range(10):
        put(store, scope, f"k{n}", "x", now=NOON - n * 1_000)
    times = [event.at for event in store.entries.events(scope, EventQuery())]
    assert times == sorted(times, reverse=True)


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_the_session_of_a_stamp_comes_to_exist_once(store: Store, scope: Scope) -> None:
    put(store, scope, None, "x", session="s1", by="human/cli")
    put(store, scope, None, "y", session="s1")
    begun = store.entries.read(scope, SESSION, "s1")
    assert begun is not None
    assert (begun.content, begun.session, begun.done, begun.origin) == ("", "", False, "human")
    events = store.entries.events(scope, EventQuery(kind=SESSION))
    assert [(event.operation, event.key, event.seq) for event in events] == [("begin_session", "s1", 1)]


def test_a_change_without_a_session_begins_none(store: Store, scope: Scope) -> None:
    put(store, scope, "k", "x", session="")
    put(store, scope, "s1", "task", kind=SESSION, session="s2")
    assert keys(store.entries.list(scope, Listing((SESSION,))).entries) == ["s1"]


def test_a_session_named_while_another_is_written_still_begins_later(store: Store, scope: Scope) -> None:
    put(store, scope, "other", "task", kind=SESSION, session="mine")
    put(store, scope, None, "x", session="mine")
    assert store.entries.read(scope, SESSION, "mine") is not None


def test_a_session_that_was_deleted_begins_anew(store: Store, scope: Scope) -> None:
    put(store, scope, None, "x", session="mine")
    delete(store, scope, "mine", kind=SESSION, session="mine")
    assert store.entries.read(scope, SESSION, "mine") is None
    put(store, scope, None, "y", session="mine")
    again = store.entries.read(scope, SESSION, "mine")
    assert again is not None
    assert again.version == 3


# --- events -----------------------------------------------------------------------------------------------------------


def test_events_tell_what_was_before_and_after(store: Store, scope: Scope) -> None:
    one = put(store, scope, "k", "one", session="").after
    two = put(store, scope, "k", "two", session="").after
    delete(store, scope, "k", session="")
    three = put(store, scope, "k", "three", session="").after
    delete(store, scope, "k", session="")
    delete(store, scope, "k", session="")
    four = put(store, scope, "k", "four", session="").after
    events = store.entries.events(scope, EventQuery(kind=NOTE, key="k"))
    chain = [(None, one), (one, two), (two, None), (None, three), (three, None), (None, four)]
    assert [(event.before, event.after) for event in events[::-1]] == chain
    assert [event.version for event in events] == [6, 5, 4, 3, 2, 1]
    assert [store.entries.event(scope, event.seq) for event in events] == list(events)
    assert [entry.version for entry in (one, two, three, four) if entry] == [1, 2, 4, 6]


def test_an_event_tells_who_when_and_how(store: Store, scope: Scope) -> None:
    how = stamp(NOON, "s", "add_note", "agent/mcp")._replace(detail={"of": [1, "ü"]})
    change = store.entries.edit(scope, NOTE, None, always(Draft("x", "s")), how)
    event = store.entries.event(scope, change.seq)
    assert event is not None
    assert change.after is not None
    assert event[1:9] == (NOON + 1, "agent/mcp", "add_note", "s", NOTE, change.after.key, 1, {"of": [1, "ü"]})


def test_events_are_chosen_by_each_field(store: Store, scope: Scope) -> None:
    put(store, scope, "a", "1", now=NOON, session="s1", operation="write")
    put(store, scope, "b", "2", now=NOON + 10, session="s2", operation="write")
    put(store, scope, "a", "3", kind=MEMORY, now=NOON + 20, session="s1", operation="pin")
    put(store, scope, "a", "4", now=NOON + 30, session="s1", operation="write")

    def seqs(**query: object) -> list[int]:
        return [event.seq for event in store.entries.events(scope, EventQuery(**query))]  # type: ignore[arg-type]

    assert seqs() == [6, 5, 4, 3, 2, 1]
    assert seqs(kind=NOTE) == [6, 4, 2]
    assert seqs(kind=NOTE, key="a") == [6, 2]
    assert seqs(session="s2") == [4, 3]
    assert seqs(operation="pin") == [5]
    assert seqs(since=NOON + 10, until=NOON + 30) == [5, 4, 3]
    assert seqs(before_seq=3) == [2, 1]
    assert seqs(before_seq=3, limit=1) == [2]
    assert seqs(kind=NOTE, key="a", session="s1", operation="write", since=NOON + 1) == [6]
    assert store.entries.event(scope, 7) is None
    assert store.entries.event(scope, 0) is None
    assert store.entries.event(scope, -1) is None


# --- lists ------------------------------------------------------------------------------------------------------------


def test_a_list_is_newest_first_and_says_how_many_there_are(store: Store, scope: Scope) -> None:
    for n, key in enumerate(("a", "ä", "B", "Z", "z", "記", "𠮷", "~")):
        put(store, scope, key, "x", now=NOON + n // 4, session="")
    order = ["𠮷", "記", "~", "z", "ä", "a", "Z", "B"]  # time first, then keys by their code points, downwards
    assert store.entries.list(scope, NOTES)[:2] == (tuple(store.entries.read(scope, NOTE, key) for key in order), 8)
    for limit in (0, 1, 7, 8, 9):
        page = store.entries.list(scope, NOTES._replace(limit=limit))
        assert (keys(page.entries), page.total) == (order[:limit], 8)


def test_a_list_is_restricted_by_kind_session_tags_and_done(store: Store, scope: Scope) -> None:
    put(store, scope, "a", "x", session="s1", tags=("Red", "blue"))
    put(store, scope, "b", "x", session="s1", tags=("red",), done=True)
    put(store, scope, "c", "x", session="s2", tags=("Blue",))
    put(store, scope, "d", "x", session="s1", tags=("blue",), kind=MEMORY)

    def listed(*kinds: str, **query: object) -> list[str]:
        page = store.entries.list(scope, Listing(kinds, **query))  # type: ignore[arg-type]
        assert page.total == len(page.entries)
        return keys(page.entries)

    assert listed(NOTE) == ["c", "a"]
    assert listed(NOTE, MEMORY) == ["d", "c", "a"]
    assert listed(NOTE, include_done=True) == ["c", "b", "a"]
    assert listed(NOTE, session="s1") == ["a"]
    assert listed(NOTE, session="") == []
    assert listed(NOTE, tags=("blue",)) == ["c", "a"]
    assert listed(NOTE, tags=("blue", "red")) == ["a"]
    assert listed(NOTE, tags=("red",), include_done=True) == ["b", "a"]
    assert listed(NOTE, tags=("Red",)) == []  # the query is already folded
    assert listed(HANDOFF) == []


# --- tags and counts --------------------------------------------------------------------------------------------------


def test_a_tag_keeps_the_spelling_it_was_first_given(store: Store, scope: Scope) -> None:
    put(store, scope, "a", "x", tags=("Straße", "BUG"), session="s1")
    second = put(store, scope, "b", "x", tags=("STRASSE", "bug", "new"), session="s2").after
    assert second is not None
    assert second.tags == ("Straße", "BUG", "new")
    assert store.entries.tags(scope, NOTE, "s2") == (TagCount("BUG", 1), TagCount("new", 1), TagCount("Straße", 1))
    for key in ("a", "b"):
        delete(store, scope, key)
    later = put(store, scope, "c", "x", tags=("strasse",)).after
    assert later is not None
    assert later.tags == ("Straße",)
    other = put(store, scope, "c", "x", tags=("strasse",), kind=MEMORY).after
    assert other is not None
    assert other.tags == ("strasse",)  # another kind has tags of its own


def test_tags_count_open_entries_and_totals_count_all(store: Store, scope: Scope) -> None:
    first = put(store, scope, "a", "x", tags=("t", "u"), session="s1")
    assert first.tally == Tally(1, 2)
    assert put(store, scope, "b", "x", tags=("t",), session="s1").tally == Tally(2, 2)
    assert put(store, scope, "c", "x", tags=("v",), session="s2").tally == Tally(1, 1)
    assert store.entries.tally(scope, NOTE, "") == Tally(3, 3)
    done = put(store, scope, "a", "x", tags=("t", "u"), session="s1", done=True)
    assert done.tally == Tally(2, 1)
    assert store.entries.tags(scope, NOTE, "s1") == (TagCount("t", 1),)
    assert store.entries.tags(scope, NOTE, "") == (TagCount("t", 1), TagCount("v", 1))
    open_again = put(store, scope, "a", "x", tags=("u",), session="s1")
    assert open_again.tally == Tally(2, 2)
    assert store.entries.tags(scope, NOTE, "") == (TagCount("t", 1), TagCount("u", 1), TagCount("v", 1))
    assert delete(store, scope, "a", session="s1").tally == Tally(1, 1)
    moved = put(store, scope, "b", "x", tags=("t",), session="s2")
    assert moved.tally == Tally(2, 2)
    assert store.entries.tally(scope, NOTE, "s1") == Tally(0, 0)
    assert store.entries.tags(scope, NOTE, "s1") == ()


def test_tags_are_in_alphabetical_order(store: Store, scope: Scope) -> None:
    put(store, scope, "a", "x", tags=("b", "A", "ä", "C", "記"))
    assert [tag.tag for tag in store.entries.tags(scope, NOTE, "s")] == ["A", "b", "C", "ä", "記"]


def test_an_entry_deleted_while_done_leaves_the_counts_right(store: Store, scope: Scope) -> None:
    put(store, scope, "a", "x", tags=("t",), done=True)
    put(store, scope, "b", "x", tags=("t",))
    store.entries.edit(scope, NOTE, "a", always(DELETE), stamp())
    assert store.entries.tags(scope, NOTE, "s") == (TagCount("t", 1),)
    assert store.entries.tally(scope, NOTE, "s") == Tally(1, 1)


# --- leafing through --------------------------------------------------------------------------------------------------


def test_pages_of_a_kind_follow_each_other_without_gaps(store: Store, scope: Scope) -> None:
    made = [key_of(put(store, scope, None, f"note {n}", now=NOON + n, session=f"s{n % 2}")) for n in range(25)]
    put(store, scope, "elsewhere", "x", kind=MEMORY)
    store.entries.edit(scope, NOTE, made[7], always(Draft("note 7", "s1", done=True)), stamp(NOON + 99))
    delete(store, scope, made[9])
    there = [key for key in made if key != made[9]]
    found: list[str] = []
    while page := store.entries.earlier(scope, NOTE, found[-1] if found else None, include_done=True, limit=4):
        found += keys(page)
    assert found == there[::-1]
    open_ones = keys(store.entries.earlier(scope, NOTE, None, limit=100))
    assert open_ones == [key for key in there[::-1] if key != made[7]]
    assert store.entries.earlier(new_scope(scope.tenant), NOTE, None) == ()
