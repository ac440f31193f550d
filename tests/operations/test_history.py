"""History and undo, the same for every kind of entry."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from limpet import errors
from limpet.api import Limpet, Session
from limpet.model import MEMORY, NOTE, WRITTEN_AT, written_at
from limpet.store import entry_record
from operations.conftest import Clock, Opener

# For each kind: how to make one, how to change it, and its key.
KINDS: dict[str, tuple[Callable[[Session], object], Callable[[Session], object], str]] = {
    "notepad": (lambda s: s.notepad.write("first"), lambda s: s.notepad.append(" second"), "one"),
    "scratchpad": (lambda s: s.scratch("first", "replace"), lambda s: s.scratch("second", "append"), "one"),
    "memory": (lambda s: s.memory.write("k", "first"), lambda s: s.memory.write("k", "second", "append"), "k"),
    "handoff": (lambda s: s.handoff.write("first"), lambda s: s.handoff.write("second"), "main/one"),
    "session": (lambda s: s.begin("first"), lambda s: s.hold.archive("one"), "one"),
}


def state(hold: Limpet, kind: str, key: str) -> object:
    """Everything of an entry but its version and the time of its last change, which only go forward."""
    entry = hold.store.entries.read(hold.scope, kind, key)
    if entry is None:
        return None
    record = entry_record(entry)
    extra = {name: value for name, value in entry.extra.items() if name != WRITTEN_AT}
    record |= {"extra": extra, "written": written_at(entry) if kind in (NOTE, MEMORY) else 0}
    names = ("content", "session", "tags", "done", "pinned", "extra", "created_at", "written")
    return {name: record[name] for name in names}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_has_history_and_undo(hold: Limpet, clock: Clock, kind: str) -> None:
    make, change, key = KINDS[kind]
    work = hold.session()
    make(work)
    first = state(hold, kind, key)
    clock.pass_by()
    change(work)
    second = state(hold, kind, key)
    assert first != second
    events = hold.history(kind=kind, key=key)
    assert [event.version for event in events] == [2, 1]
    assert events[1].before is None
    assert events[0].before == events[1].after
    clock.pass_by()
    undone = hold.undo()
    assert (undone.kind, undone.key, undone.version) == (kind, key, 2)
    assert state(hold, kind, key) == first
    assert hold.history(kind=kind)[0].operation == "undo"


def test_undo_of_a_note_added_changed_finished_and_deleted(hold: Limpet) -> None:
    notes = hold.session().notes
    id = notes.add("first", ["a"]).id
    changes: list[Callable[[], object]] = [
        lambda: notes.update(id, content="second"),
        lambda: notes.update(id, tags=["b", "c"]),
        lambda: notes.update(id, done=True),
        lambda: notes.delete(id),
    ]
    for change in changes:
        before = state(hold, "note", id)
        tags = notes.tags()
        change()
        assert state(hold, "note", id) != before
        hold.undo()
        assert state(hold, "note", id) == before
        assert notes.tags() == tags
    hold.undo()
    assert notes.list(include_done=True) == ()
    assert notes.tags() == ()


def test_undo_twice_takes_back_the_last_two_changes(hold: Limpet) -> None:
    notes = hold.session().notes
    kept, gone = notes.add("kept"), notes.add("gone")
    notes.update(kept.id, content="changed")
    hold.undo()
    hold.undo()
    assert [note.content for note in notes.list()] == ["kept"]
    assert gone.id not in {note.id for note in notes.list()}


def test_undo_twice_on_one_entry_takes_back_both_changes(hold: Limpet) -> None:
    pad = hold.session().notepad
    for content in ("one", "two", "three"):
        pad.write(content)
    hold.undo()
    assert pad.read() == "two"
    hold.undo()
    assert pad.read() == "one"
    hold.undo()
    assert pad.get().version == 0


def test_with_nothing_left_undo_says_so(hold: Limpet) -> None:
    for _ in range(2):
        with pytest.raises(errors.NotFound, match="no change left to undo"):
            hold.undo()
        hold.session().begin("only a session, which is not undone by chance")
    hold.session().notes.add("x")
    hold.undo()
    with pytest.raises(errors.NotFound, match="no change left to undo"):
        hold.undo()


def test_an_undo_can_be_undone(hold: Limpet) -> None:
    pad = hold.session().notepad
    pad.write("one")
    pad.write("two")
    hold.undo()
    undo = hold.history(kind="notepad")[0]
    assert undo.operation == "undo"
    hold.undo(undo.seq)
    assert pad.read() == "two"
    hold.undo()
    assert pad.read() == "one"


def test_a_change_by_its_number(hold: Limpet) -> None:
    notes = hold.session().notes
    first = notes.add("first")
    notes.add("second")
    (event,) = hold.history(kind="note", key=first.id)
    answer = hold.call("undo", {"seq": event.seq})
    assert answer["undone"]["seq"] == event.seq
    assert answer["seq"] > event.seq
    assert [note.content for note in notes.list()] == ["second"]


def test_a_change_that_was_followed_by_another_is_not_undone(hold: Limpet) -> None:
    pad = hold.session().notepad
    pad.write("one")
    pad.write("two")
    pad.write("three")
    middle = hold.history(kind="notepad")[1]
    before = list(hold.export_lines())
    with pytest.raises(errors.Conflict) as caught:
        hold.undo(middle.seq)
    assert caught.value.code == "changed_since"
    assert f"change {middle.seq} cannot be undone" in caught.value.message
    assert list(hold.export_lines()) == before


def test_a_change_undone_already_is_not_undone_again(hold: Limpet) -> None:
    notes = hold.session().notes
    id = notes.add("x").id
    seq = hold.history(kind="note")[0].seq
    hold.undo(seq)
    with pytest.raises(errors.Conflict):
        hold.undo(seq)
    assert state(hold, "note", id) is None


@pytest.mark.parametrize("seq", [0, -1, 999, 2**63, 10**30, -(10**30)])
def test_a_number_that_names_no_change(hold: Limpet, seq: int) -> None:
    hold.session().notes.add("x")
    with pytest.raises(errors.LimpetError) as caught:
        hold.undo(seq)
    assert isinstance(caught.value, errors.NotFound | errors.BadInput)
    assert len(hold.session().notes.list()) == 1


def test_another_project_cannot_undo_ours(hold: Limpet, opened: Opener) -> None:
    hold.session().notes.add("ours")
    seq = hold.history()[0].seq
    other = opened(project="other")
    with pytest.raises(errors.NotFound):
        other.undo(seq)
    with pytest.raises(errors.NotFound):
        other.undo()
    assert other.history() == ()


def test_history_says_who_when_what_and_how_it_was(hold: Limpet, clock: Clock) -> None:
    work = hold.session("review", by="person/cli")
    id = work.notes.add("before").id
    clock.pass_by(1_000)
    hold.call("update_note", {"id": id, "content": "after " * 100}, session="review", by="agent/mcp")
    answer = hold.call("history", {"kind": "note", "key": id})
    assert answer["events"][0] == {
        "seq": 3,
        "at": "2026-03-03T12:00:01.000Z",
        "by": "agent/mcp",
        "operation": "update_note",
        "session": "review",
        "kind": "note",
        "key": id,
        "version": 2,
        "before": "before",
        "after": ("after " * 100)[:120],
    }
    assert (answer["events"][1]["by"], answer["events"][1]["before"]) == ("person/cli", None)
    entry = hold.store.entries.read(hold.scope, "note", id)
    assert entry is not None
    assert entry.origin == "agent"


def test_history_is_read_page_by_page(hold: Limpet) -> None:
    for number in range(10):
        hold.session().notes.add(str(number))
    seen: list[int] = []
    before = None
    while events := hold.call("history", {"limit": 4, "before_seq": before})["events"]:
        seen += [event["seq"] for event in events]
        before = seen[-1]
    assert seen == list(range(11, 0, -1))
    with pytest.raises(errors.BadInput, match="must be one of note, notepad"):
        hold.call("history", {"kind": "diary"})


@pytest.mark.parametrize("before_seq", [2**63, 10**30, -(10**30)])
def test_a_page_beyond_all_numbers_is_no_accident(hold: Limpet, before_seq: int) -> None:
    hold.session().notes.add("x")
    try:
        events = hold.call("history", {"before_seq": before_seq})["events"]
    except errors.BadInput:
        return
    assert len(events) == (2 if before_seq > 0 else 0)


def test_undo_takes_back_the_callers_own_last_change(hold: Limpet) -> None:
    note = {"content": "Ada found the cause of the crash"}
    hold.call("add_note", note, by="person/cli")
    hold.call("write_notepad", {"content": "a plan\n"}, session="work", by="agent/mcp")
    assert hold.call("undo", {"dry_run": True}, by="person/dashboard")["undone"]["operation"] == "add_note"
    assert hold.call("undo", {}, by="person/dashboard")["undone"]["operation"] == "add_note"
    assert hold.session("work").notepad.read() == "a plan\n"
    for other in ("person/cli", "agent/mcp/bob"):
        with pytest.raises(errors.NotFound, match=r"no change of yours left .* write_notepad by agent/mcp"):
            hold.call("undo", {}, by=other)
    assert hold.undo().operation == "write_notepad"


def test_an_output_that_another_deleted_later_hides_none_that_the_caller_did(hold: Limpet, clock: Clock) -> None:
    hold.call("add_note", {"content": "an earlier note, which stays"}, by="agent/mcp/ada")
    ids = {}
    for name in ("ada", "bob"):
        kept = hold.session().outputs.keep("pytest", f"a line of {name}\n" * 2_000).output
        assert kept is not None
        clock.pass_by()
        hold.call("delete_output", {"id": kept.id}, by=f"agent/mcp/{name}")
        ids[name] = kept.id
    for name, id in ids.items():
        with pytest.raises(errors.BadInput, match=f"delete the output {id}"):
            hold.call("undo", {}, by=f"agent/mcp/{name}")
    assert len(hold.session().notes.list()) == 1


def test_what_cannot_be_undone_is_named_and_nothing_else_is_undone(hold: Limpet, clock: Clock) -> None:
    hold.session().notes.add("an earlier note, which stays")
    kept = hold.session().outputs.keep("pytest", "a line\n" * 2_000).output
    assert kept is not None
    clock.pass_by()
    hold.call("delete_output", {"id": kept.id})
    with pytest.raises(errors.BadInput, match=f"delete the output {kept.id}"):
        hold.undo()
    hold.call("add_note", {"content": "of an import"}, by="import/file")
    with pytest.raises(errors.BadInput, match="purge --origin import"):
        hold.call("undo", {}, by="person/cli")
    assert len(hold.session().notes.list()) == 2
