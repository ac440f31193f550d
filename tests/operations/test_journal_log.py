"""What is known of a journal's file is one log: a kill, a torn record or a refusal leaves nothing that comes later."""

from __future__ import annotations

import errno
import os
from itertools import count
from pathlib import Path

import pytest

from limpet import errors, limits
from limpet.journal import file as journal_file
from limpet.journal import log as journal_log
from limpet.journal.document import edit, entries
from limpet.journal.document.entries import Item
from limpet.journal.document.markup import scan
from limpet.journal.document.sections import template
from limpet.journal.file import JournalFile, find, last_seen, read, update
from limpet.journal.state import key_of, of_project


class Killed(BaseException):
    """Ends a change where a signal would: nothing of ours catches it."""


def made(folder: Path) -> JournalFile:
    folder.mkdir(exist_ok=True)
    place = find(str(folder), "NOTES.md", of_project(str(folder)))
    update(place, lambda text: text, template)
    return place


@pytest.fixture
def place(tmp_path: Path) -> JournalFile:
    return made(tmp_path)


def add(place: JournalFile, *words: object) -> None:
    for word in words:
        update(place, lambda text, word=word: edit.add_question(text, Item(f"{word}?")))  # type: ignore[misc]


def asked(place: JournalFile) -> list[str]:
    return [one.entry.text.rstrip("?") for one in entries.questions(scan(read(place) or ""))]


def log_of(place: JournalFile) -> Path:
    return Path(place.state.path(key_of(place.path), "log"))


def is_killed(place: JournalFile, monkeypatch: pytest.MonkeyPatch, step: str, number: int) -> bool:
    """Add "killed" in a process that dies in the n-th call of a function, before that does anything."""
    owner, name = (os, step.removeprefix("os.")) if step.startswith("os.") else (journal_file, step)
    done, calls = getattr(owner, name), []

    def dies(*args: object, **more: object) -> object:
        calls.append(1)
        if len(calls) == number:
            raise Killed
        return done(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dies)
        try:
            add(place, "killed")
        except Killed:
            return True
    return False


STEPS = ("os.fdatasync", "os.fsync", "os.rename", "os.pwrite", "_write", "_swap", "_sync", "_exchange_names")


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_loses_no_entry_even_many_changes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A text that a killed change left beside the file was once merged as if a person had saved it, when it was old."""
    monkeypatch.setattr(limits, "JOURNAL_STATES", 4)
    for number in count(1):
        place = made(tmp_path / str(number))
        add(place, *range(3))
        if not is_killed(place, monkeypatch, step, number):
            break
        kept = asked(place).count("killed")  # what is in the file then stays in it
        add(place, *range(3, 15))
        assert [word for word in asked(place) if word != "killed"] == [str(number) for number in range(15)]
        assert asked(place).count("killed") == kept
        assert not list(Path(place.path).parent.glob(".NOTES*"))
    assert number > 1


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_while_an_old_buffer_is_merged_loses_no_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    for number in count(1):
        place = made(tmp_path / str(number))
        add(place, 0, 1, 2)
        buffer = Path(place.path).read_text()
        add(place, 3, 4, 5)
        Path(place.path).write_text(buffer + "by hand\n")
        if not is_killed(place, monkeypatch, step, number):
            break
        add(place, 7)
        assert [word for word in asked(place) if word != "killed"] == ["0", "1", "2", "3", "4", "5", "7"]
        assert (read(place) or "").count("by hand\n") == 1
    assert number > 1


def test_a_buffer_older_than_every_text_of_the_log_deletes_nothing(
    place: JournalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOURNAL_STATES", 8)
    add(place, 0, 1)
    buffer = Path(place.path).read_text()
    add(place, *range(2, 60))
    Path(place.path).write_text(buffer + "by hand\n")
    add(place, 60)
    assert sorted(asked(place), key=int) == [str(number) for number in range(61)]
    assert "by hand\n" in (read(place) or "")


@pytest.mark.parametrize("before", range(10))
def test_an_old_save_as_the_oldest_text_of_the_log_deletes_nothing(
    place: JournalFile, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """What an old save lacks looks new in the text after it, as if a newer buffer must have shown all of that."""
    monkeypatch.setattr(limits, "JOURNAL_STATES", 8)
    oldest = Path(place.path).read_text()
    add(place, *range(before))
    buffer = Path(place.path).read_text()
    add(place, *range(before, before + 3))
    Path(place.path).write_text(f"{oldest}by hand\n")
    add(place, *range(before + 3, before + 12))
    Path(place.path).write_text(f"{buffer}later by hand\n")
    add(place, "last")
    assert set(asked(place)) == {*map(str, range(before + 12)), "last"}


@pytest.mark.parametrize("code", [errno.EPERM, errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("step", ["os.fdatasync", "os.fsync", "_write", "_exchange_names"])
def test_a_refused_change_does_not_come_later(
    place: JournalFile, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    add(place, "first")
    before = Path(place.path).read_bytes()

    def refuse(*_args: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(*((os, step[3:]) if step.startswith("os.") else (journal_file, step)), refuse)
        with pytest.raises(errors.StoreProblem):
            add(place, "refused")
    assert Path(place.path).read_bytes() == before
    add(place, "second")
    assert asked(place) == ["first", "second"]
    assert not list(Path(place.path).parent.glob(".NOTES*"))


@pytest.mark.parametrize("step", ["_sync", "os.fdatasync"])
def test_a_change_that_the_disk_does_not_confirm_is_said_to_be_in_the_file(
    place: JournalFile, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    add(place, "first")
    swapped: list[int] = []
    swap, sync = journal_file._exchange_names, os.fdatasync

    def watched(one: str, other: str) -> None:
        swap(one, other)
        swapped.append(1)

    def failing(handle: object) -> None:
        if swapped:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(handle)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(journal_file, "_exchange_names", watched)
        patch.setattr(*((os, "fdatasync") if step.startswith("os.") else (journal_file, step)), failing)
        with pytest.raises(errors.StoreProblem, match="has the change, but the disk did not confirm it"):
            add(place, "there")
    assert asked(place) == ["first", "there"]
    add(place, "next")
    assert asked(place) == ["first", "there", "next"]
    assert not list(Path(place.path).parent.glob(".NOTES*"))


@pytest.mark.parametrize("cut", [1, 5, 29, 40])
def test_a_torn_last_record_is_ignored_and_written_over(place: JournalFile, cut: int) -> None:
    add(place, "first")
    log = log_of(place)
    whole = log.read_bytes()
    add(place, "second")
    torn = log.read_bytes()[: len(whole) + cut]
    Path(place.path).write_text(last_seen(place).replace("- [ ] second?\n", ""))
    log.write_bytes(torn)
    assert "second" not in last_seen(place)
    add(place, "third")
    assert asked(place) == ["first", "third"]
    log.write_bytes(log.read_bytes() + b"garbage of a crash")
    add(place, "fourth")
    assert asked(place) == ["first", "third", "fourth"]


def test_a_log_of_a_later_version_is_left_alone(place: JournalFile) -> None:
    log_of(place).write_bytes(b"limpet journal log 2\n" + b"x" * 100)
    before = Path(place.path).read_text()
    with pytest.raises(errors.StoreTooNew, match="does not know"):
        add(place, "x")
    assert Path(place.path).read_text() == before


def test_the_log_stays_short(place: JournalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JOURNAL_STATES", 10)
    add(place, *range(100))
    with place.state_folder(create=False) as folder:
        log = journal_log.JournalLog(folder)
    assert len(list(log.states())) <= 21
    assert len(log.digests) > 90


def test_a_program_that_saves_all_the_time_ends_a_change_after_its_limit(
    place: JournalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOURNAL_CONTEST_SECONDS", 0.3)
    swap = journal_file._exchange_names
    saves: list[str] = []

    def contested(one: str, other: str) -> None:
        saves.append(f"- by hand {len(saves)}\n")
        with open(place.path, "a", encoding="utf-8") as file:
            file.write(saves[-1])
        swap(one, other)

    with monkeypatch.context() as patch:
        patch.setattr(journal_file, "_exchange_names", contested)
        saved = update(place, lambda text: edit.add_question(text, Item("ours?")))
    assert saved.contested
    assert asked(place) == ["ours"]
    add(place, "next")
    assert asked(place) == ["ours", "next"]
    assert all(line in (read(place) or "") for line in saves)


def test_a_file_that_cannot_be_exchanged_in_time_is_left_as_it_is(
    place: JournalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOURNAL_CONTEST_SECONDS", 0.2)
    monkeypatch.setattr(limits, "JOURNAL_SETTLE_SECONDS", 0.1)

    def gone(_one: str, _other: str) -> None:
        raise FileNotFoundError

    with monkeypatch.context() as patch:
        patch.setattr(journal_file, "_exchange_names", gone)
        with pytest.raises(errors.Conflict, match="saved again and again"):
            add(place, "never")
    add(place, "next")
    assert asked(place) == ["next"]


def test_two_journals_of_one_folder_have_logs_of_their_own(tmp_path: Path) -> None:
    state = of_project(str(tmp_path))
    one, other = find(str(tmp_path), "NOTES.md", state), find(str(tmp_path), "OTHER.md", state)
    for place in (one, other):
        update(place, lambda text: text, template)
    add(one, "one")
    add(other, "other")
    assert (asked(one), asked(other)) == (["one"], ["other"])
