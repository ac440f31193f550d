"""Export and import: a project goes out and comes back exactly, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from limpet import errors
from limpet.api import Limpet
from operations.conftest import Clock, Opener


def busy(hold: Limpet, clock: Clock) -> None:
    """A project with something of every kind, and with history."""
    work = hold.session("one")
    work.begin("port the parser")
    note = work.notes.add('quotes " \\ and \u2028 and \U0001f680 and\ttab\r\n', ["Tag", "Ünï"])
    clock.pass_by(7)
    work.notes.update(note.id, content="changed", tags=["tag"])
    done = work.notes.add("finished")
    work.notes.update(done.id, done=True)
    gone = work.notes.add("gone")
    work.notes.delete(gone.id)
    work.notepad.write("pad\n")
    work.notepad.append("more\n")
    work.scratch("scratch", "replace")
    work.memory.write("goal", "parse")
    work.memory.write("goal", "all of it", "append")
    work.memory.pin("goal")
    work.handoff.write("next: casts")
    clock.pass_by(7)
    later = hold.session("two")
    later.context()
    later.used()
    later.notes.add("elsewhere")
    hold.undo()
    hold.archive("one")


def parsed(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def test_a_round_trip_is_exact(hold: Limpet, clock: Clock, opened: Opener) -> None:
    busy(hold, clock)
    lines = list(hold.export_lines())
    assert json.loads(lines[0]) == {"limpet": 1, "project": "demo"}
    assert all("\n" not in line for line in lines)
    copy = opened(project="copy")
    entries = sum("entry" in record for record in parsed(lines))
    assert copy.import_lines(lines) == entries
    assert list(copy.export_lines())[1:] == lines[1:]


def test_after_the_round_trip_everything_works_as_before(hold: Limpet, clock: Clock, opened: Opener) -> None:
    busy(hold, clock)
    copy = opened(project="copy")
    copy.import_lines(list(hold.export_lines()))
    for name, arguments in (
        ("list_notes", {"session_id": "*", "include_done": True}),
        ("search_notes", {"query": "hange", "session_id": "*"}),
        ("list_tags", {"session_id": "*"}),
        ("list_sessions", {"include_archived": True}),
        ("notepad_history", {"session_id": "one"}),
        ("search_memory", {"query": "activity-log-2026-03-03"}),
        ("read_handoff", {}),
        ("history", {}),
    ):
        assert copy.call(name, arguments) == hold.call(name, arguments), name
    assert copy.session("three").context() == hold.session("three").context()
    assert copy.undo().seq == hold.undo().seq
    assert all(finding.ok for finding in copy.check())


def test_new_ids_come_after_imported_ones(hold: Limpet, clock: Clock, opened: Opener) -> None:
    clock.pass_by(86_400_000)
    ids = {hold.session().notes.add(str(number)).id for number in range(3)}
    lines = list(hold.export_lines())
    clock.pass_by(-86_400_000)
    copy = opened(project="copy")
    copy.import_lines(lines)
    assert copy.session().notes.add("new").id > max(ids)


def test_merged_ids_are_never_minted_again(hold: Limpet, clock: Clock, opened: Opener) -> None:
    clock.pass_by(1_000)  # the other machine's clock is a second ahead
    ids = [hold.session().notes.add(str(number)).id for number in range(3)]
    lines = list(hold.export_lines())
    clock.pass_by(-1_000)
    copy = opened(project="copy")
    copy.session().notes.add("here before")
    copy.import_lines(lines, merge=True)
    clock.pass_by(999)
    made = [copy.session().notes.add(f"new {number}").id for number in range(3)]
    assert not set(made) & set(ids)
    assert len(copy.session().notes.list()) == 7


def test_an_import_wants_an_empty_project(hold: Limpet, clock: Clock) -> None:
    busy(hold, clock)
    lines = list(hold.export_lines())
    with pytest.raises(errors.Conflict) as caught:
        hold.import_lines(lines)
    assert caught.value.code == "project_not_empty"
    assert list(hold.export_lines()) == lines


def test_a_merge_adds_what_is_missing_and_passes_over_what_is_equal(hold: Limpet, clock: Clock, opened: Opener) -> None:
    work = hold.session()
    work.notes.add("a", ["x"])
    work.memory.write("goal", "parse")
    lines = list(hold.export_lines())
    copy = opened(project="copy")
    copy.session().notepad.write("was here")
    clock.pass_by()
    assert copy.import_lines(lines, merge=True) == 2  # the session of the same name is there already
    assert [note.content for note in copy.session().notes.list()] == ["a"]
    assert copy.session().notes.list()[0].id == work.notes.list()[0].id
    assert copy.memory.read("goal").content == "parse"
    assert copy.session().notepad.read() == "was here"
    before = list(copy.export_lines())
    assert copy.import_lines(lines, merge=True) == 0
    assert list(copy.export_lines()) == before
    assert copy.history()[0].operation == "import"
    assert hold.import_lines(lines, merge=True) == 0


def test_a_merge_with_a_difference_stops_before_anything_is_written(hold: Limpet, opened: Opener) -> None:
    work = hold.session()
    work.notes.add("new to the other")
    work.memory.write("goal", "parse")
    copy = opened(project="copy")
    copy.memory.write("goal", "something else")
    before = list(copy.export_lines())
    with pytest.raises(errors.Conflict) as caught:
        copy.import_lines(list(hold.export_lines()), merge=True)
    assert caught.value.code == "import_conflict"
    assert "another memory 'goal'" in caught.value.message
    assert list(copy.export_lines()) == before


def _without(name: str) -> Callable[[list[str]], list[str]]:
    def damage(lines: list[str]) -> list[str]:
        record = json.loads(lines[1])
        del record["entry"][name]
        return [lines[0], json.dumps(record), *lines[2:]]

    return damage


def _with(name: str, value: object) -> Callable[[list[str]], list[str]]:
    def damage(lines: list[str]) -> list[str]:
        record = json.loads(lines[1])
        record["entry"][name] = value
        return [lines[0], json.dumps(record), *lines[2:]]

    return damage


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        pytest.param(lambda lines: [], 1, id="nothing"),
        pytest.param(lambda lines: lines[1:], 1, id="no header"),
        pytest.param(lambda lines: ['{"limpet": 2}', *lines[1:]], 1, id="another format"),
        pytest.param(lambda lines: [*lines[:2], "{", *lines[2:]], 3, id="not JSON"),
        pytest.param(lambda lines: [*lines[:2], "[" * 100_000], 3, id="nested too deeply"),
        pytest.param(lambda lines: [*lines[:2], "[1]"], 3, id="not an object"),
        pytest.param(lambda lines: [*lines[:2], '{"other": 1}'], 3, id="of no kind"),
        pytest.param(_without("content"), 2, id="without content"),
        pytest.param(_with("version", "1"), 2, id="a version that is text"),
        pytest.param(_with("version", True), 2, id="a version that is true"),
        pytest.param(_with("version", 10**30), 2, id="a version without end"),
        pytest.param(_with("kind", "diary"), 2, id="an unknown kind"),
        pytest.param(_with("tags", [1]), 2, id="tags that are numbers"),
        pytest.param(_with("content", "\x00"), 2, id="a NUL"),
        pytest.param(_with("content", "\ud800"), 2, id="half a character"),
        pytest.param(_with("origin", "\ud800"), 2, id="half a character elsewhere"),
        pytest.param(lambda lines: [*lines[:2], lines[1], *lines[2:]], 3, id="an entry twice"),
        pytest.param(lambda lines: [*lines, lines[-1]], None, id="a change twice"),
    ],
)
def test_an_import_that_cannot_be_read_names_the_line_and_changes_nothing(
    hold: Limpet, opened: Opener, damage: Callable[[list[str]], list[str]], line: int | None
) -> None:
    hold.session().notes.add("x")
    lines = list(hold.export_lines())
    copy = opened(project="copy")
    with pytest.raises(errors.BadInput) as caught:
        copy.import_lines(damage(lines))
    assert caught.value.code == "bad_import"
    assert f"line {line or len(lines) + 1} of the import cannot be read" in caught.value.message
    assert list(copy.export_lines()) == ['{"limpet":1,"project":"copy"}']
