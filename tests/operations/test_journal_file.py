"""The journal's file beside people's editors: nothing is lost, whoever saves when and how."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from limpet import errors
from limpet.journal import file as journal_file
from limpet.journal.document import edit, entries
from limpet.journal.document.entries import Item
from limpet.journal.document.markup import scan
from limpet.journal.document.sections import template
from limpet.journal.file import JournalFile, find, forget, read, revive, size, update
from limpet.journal.state import key_of, of_project
from operations.editor import STYLES

EDITOR = Path(__file__).parent / "editor.py"
BY_HAND = "\n## By hand\n"


@pytest.fixture
def place(tmp_path: Path) -> JournalFile:
    return find(str(tmp_path), "NOTES.md", of_project(str(tmp_path)))


def question(words: str) -> Callable[[str], str]:
    return lambda text: edit.add_question(text, Item(words))


def asked(place: JournalFile) -> list[str]:
    return [one.entry.text for one in entries.questions(scan(read(place) or ""))]


def log_of(place: JournalFile) -> Path:
    return Path(place.state.path(key_of(place.path), "log"))


def put(place: JournalFile, text: str) -> None:
    Path(place.path).write_bytes(text.encode())


def test_a_change_is_written_and_a_new_file_is_made_once(place: JournalFile) -> None:
    saved = update(place, question("first?"), template)
    assert saved.text == Path(place.path).read_text()
    assert saved.before == template()
    update(place, question("second?"))
    assert asked(place) == ["first?", "second?"]
    assert not [name for name in os.listdir(os.path.dirname(place.path)) if name.startswith(".NOTES")]


def test_a_change_that_changes_nothing_writes_nothing(place: JournalFile) -> None:
    update(place, question("first?"), template)
    before = os.stat(place.path)
    saved = update(place, lambda text: text)
    assert not saved.written
    assert os.stat(place.path).st_mtime_ns == before.st_mtime_ns
    assert os.stat(place.path).st_ino == before.st_ino


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_permissions_stay(place: JournalFile, mode: int) -> None:
    put(place, template())
    os.chmod(place.path, mode)
    update(place, question("?"))
    assert stat.S_IMODE(os.stat(place.path).st_mode) == mode


def test_a_link_inside_the_project_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "notes.md").write_text(template())
    (tmp_path / "NOTES.md").symlink_to("docs/notes.md")
    place = find(str(tmp_path), "NOTES.md", of_project(str(tmp_path)))
    update(place, question("followed?"))
    assert (tmp_path / "NOTES.md").is_symlink()
    assert "followed?" in (tmp_path / "docs" / "notes.md").read_text()


class Swapped:
    """A project with its journal in a folder, and a folder outside with a file of the same name."""

    def __init__(self, folder: Path) -> None:
        self.root, self.outside = folder / "project", folder / "outside"
        self.sub, self.moved = self.root / "sub", self.root / "moved"
        self.sub.mkdir(parents=True)
        self.outside.mkdir()
        for path in (self.sub, self.outside):
            (path / "N.md").write_text(template())
        self.place = find(str(self.root), "sub/N.md", of_project(str(self.root)))

    def swap(self) -> None:
        """Another process puts a link in the place of the folder."""
        self.sub.rename(self.moved)
        self.sub.symlink_to(self.outside, target_is_directory=True)

    def is_untouched(self) -> bool:
        return os.listdir(self.outside) == ["N.md"] and (self.outside / "N.md").read_text() == template()


def test_a_folder_that_becomes_a_link_during_a_change_is_no_way_out(tmp_path: Path) -> None:
    swapped = Swapped(tmp_path)
    update(swapped.place, question("first?"))

    def change(text: str) -> str:
        swapped.swap()
        return question("second?")(text)

    update(swapped.place, change)
    assert swapped.is_untouched()
    assert "second?" in (swapped.moved / "N.md").read_text()
    assert os.listdir(swapped.moved) == ["N.md"]


def test_a_folder_that_became_a_link_before_a_change_is_not_entered(tmp_path: Path) -> None:
    swapped = Swapped(tmp_path)
    swapped.swap()
    (swapped.outside / "N.md").write_text("")
    for operation in (
        lambda: update(swapped.place, question("?"), template),
        lambda: read(swapped.place),
        lambda: revive(swapped.place, template()),
    ):
        with pytest.raises(errors.LimpetError):
            operation()
    assert size(swapped.place) == 0
    assert (swapped.outside / "N.md").read_text() == ""


def test_a_missing_folder_is_a_missing_file(tmp_path: Path) -> None:
    place = find(str(tmp_path), "sub/N.md", of_project(str(tmp_path)))
    assert read(place) is None
    assert size(place) == 0
    forget(place, ["nothing"])
    with pytest.raises(errors.LimpetError, match="No such file"):
        update(place, question("?"), template)


def test_without_a_path_through_an_open_folder_changes_are_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_file, "path_of_folder", lambda handle: None)
    swapped = Swapped(tmp_path)
    update(swapped.place, question("first?"))
    assert asked(swapped.place) == ["first?"]


@pytest.mark.parametrize("name", ["../NOTES.md", "/etc/passwd", "link.md", "sub/../../x.md", "away/NOTES.md", ".", ""])
def test_a_file_outside_the_project_is_refused(tmp_path: Path, name: str) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "other.md").write_text("not yours\n")
    (root / "link.md").symlink_to(tmp_path / "other.md")
    (root / "away").symlink_to(tmp_path)
    with pytest.raises(errors.BadInput, match="outside the project"):
        find(str(root), name, of_project(str(root)))
    assert (tmp_path / "other.md").read_text() == "not yours\n"


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    for name in ("folder.md", "pipe.md"):
        place = find(str(tmp_path), name, of_project(str(tmp_path)))
        with pytest.raises(errors.BadInput, match="not a regular file"):
            update(place, question("?"), template)
        with pytest.raises(errors.BadInput, match="not a regular file"):
            read(place)


def test_bytes_that_are_no_text_stay(place: JournalFile) -> None:
    data = template().encode() + b"\xff\xfe\x00 raw \x80\r\nend"
    Path(place.path).write_bytes(data)
    update(place, question("?"))
    after = Path(place.path).read_bytes()
    assert after.replace(b"- [ ] ?\n", b"") == data


def test_an_emptied_or_deleted_file_is_not_built_upon(place: JournalFile) -> None:
    update(place, question("precious?"), template)
    put(place, " \n")
    with pytest.raises(errors.Conflict, match="is empty, though it was not before"):
        update(place, question("more?"), template)
    assert Path(place.path).read_text() == " \n"
    os.unlink(place.path)
    with pytest.raises(errors.NotFound, match="is not there"):
        update(place, question("more?"), template)
    assert "precious?" in journal_file.last_seen(place)


def test_a_save_from_an_old_buffer_drops_nothing(place: JournalFile) -> None:
    put(place, template() + BY_HAND)
    update(place, question("first?"))
    buffer = Path(place.path).read_text()
    update(place, question("second?"))
    update(place, question("third?"))
    put(place, buffer + "by hand\n")  # knows nothing of the second and third
    saved = update(place, question("fourth?"))
    assert saved.merged
    assert not saved.conflicts
    assert asked(place) == ["first?", "second?", "third?", "fourth?"]
    assert "by hand\n" in saved.text


def test_what_a_person_took_out_stays_out(place: JournalFile) -> None:
    for words in ("first?", "second?", "third?"):
        update(place, question(words), template)
    put(place, Path(place.path).read_text().replace("- [ ] second?\n", ""))
    update(place, question("fourth?"))
    assert asked(place) == ["first?", "third?", "fourth?"]


def test_an_entry_deleted_alone_comes_back_once_and_then_stays_away(place: JournalFile) -> None:
    """The text is then one that was there before, which an old buffer has too: nothing acknowledged is lost to it."""
    for words in ("first?", "second?"):
        update(place, question(words), template)
    put(place, Path(place.path).read_text().replace("- [ ] second?\n", ""))
    later = os.stat(place.path).st_mtime + 3_600
    os.utime(place.path, (later, later))
    assert update(place, question("third?")).merged
    assert asked(place) == ["first?", "second?", "third?"]
    put(place, Path(place.path).read_text().replace("- [ ] second?\n", ""))
    update(place, question("fourth?"))
    assert asked(place) == ["first?", "third?", "fourth?"]


def test_both_versions_of_an_entry_stay_when_both_changed_it(place: JournalFile) -> None:
    put(place, template())
    update(place, question("which lexer?"))
    buffer = Path(place.path).read_text()
    update(place, lambda text: edit.tick(text, entries.questions(scan(text))[0]))
    put(place, buffer.replace("which lexer?", "which lexer, and why?"))
    saved = update(place, question("next?"))
    (conflict,) = saved.conflicts
    assert (conflict.ours, conflict.theirs) == ("- [x] which lexer?\n", "- [ ] which lexer, and why?\n")
    assert conflict.ours in saved.text
    assert conflict.theirs in saved.text


def test_a_save_between_reading_and_writing_is_merged(place: JournalFile) -> None:
    put(place, template() + BY_HAND)

    def meanwhile(text: str) -> str:
        """Somebody saves while we are at work."""
        if "in between" not in Path(place.path).read_text():
            put(place, Path(place.path).read_text() + "in between\n")
        return edit.add_question(text, Item("ours?"))

    saved = update(place, meanwhile)
    assert saved.merged
    assert "in between\n" in Path(place.path).read_text()
    assert asked(place) == ["ours?"]


def test_a_write_into_the_displaced_file_is_found_later(place: JournalFile) -> None:
    put(place, template() + BY_HAND)
    with open(place.path, "a", encoding="utf-8") as editor:
        update(place, question("ours?"))
        editor.write("late, by hand\n")
    assert "late, by" not in Path(place.path).read_text()
    update(place, lambda text: text)
    assert "late, by hand\n" in Path(place.path).read_text()
    assert Path(place.path).read_text().count("late, by hand") == 1
    update(place, question("again?"))
    assert Path(place.path).read_text().count("late, by hand") == 1
    assert asked(place) == ["ours?", "again?"]


def test_what_a_stopped_process_left_behind_is_taken_in(place: JournalFile) -> None:
    put(place, template() + BY_HAND)
    update(place, question("ours?"))
    text = Path(place.path).read_text()
    beside = Path(os.path.dirname(place.path))
    (beside / ".NOTES.md.limpet-1-1").write_text(text + "displaced, by hand\n")
    (beside / ".NOTES.md.limpet-1-2").write_text(journal_file.last_seen(place))  # ours, never put in place
    update(place, question("next?"))
    assert "displaced, by hand\n" in Path(place.path).read_text()
    assert asked(place) == ["ours?", "next?"]
    assert not list(beside.glob(".NOTES*"))


@pytest.mark.parametrize("left", [1, 0])
def test_a_log_that_lost_its_end_drops_nothing(place: JournalFile, left: int) -> None:
    """The end of the log, or all of it, is gone; and what the last change displaced lies beside the journal."""
    update(place, question("first?"), template)
    before = Path(place.path).read_text()
    update(place, question("second?"))
    log = log_of(place)
    log.write_bytes(log.read_bytes()[: -60 if left else 30])
    (Path(place.path).parent / f".NOTES.md.limpet-1-{left}").write_text(before)
    update(place, question("third?"))
    assert asked(place) == ["first?", "second?", "third?"]


def test_the_log_is_on_the_disk_before_the_journal_changes(place: JournalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    update(place, question("first?"), template)
    steps: list[str] = []
    swap = journal_file._exchange_names

    def watched(sync: Callable[[int], None]) -> Callable[[int], None]:
        def synced(file: int) -> None:
            steps.append(os.readlink(f"/proc/self/fd/{file}"))
            sync(file)

        return synced

    def watched_swap(one: str, other: str) -> None:
        steps.append("exchange")
        swap(one, other)

    monkeypatch.setattr(os, "fsync", watched(os.fsync))
    monkeypatch.setattr(os, "fdatasync", watched(os.fdatasync))
    monkeypatch.setattr(journal_file, "_exchange_names", watched_swap)
    update(place, question("second?"))
    steps = [os.path.basename(step) if "limpet-" not in step else "temporary" for step in steps]
    assert steps == ["temporary", "temporary", "exchange", os.path.basename(os.path.dirname(place.path)), "temporary"]


def test_where_names_cannot_be_exchanged_files_are_replaced(
    place: JournalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_file, "_exchange_names", journal_file._replace_names)
    put(place, template() + BY_HAND)
    with open(place.path, "a", encoding="utf-8") as editor:
        update(place, question("ours?"))
        editor.write("late, by hand\n")
    update(place, question("more?"))
    assert "late, by hand\n" in Path(place.path).read_text()
    assert asked(place) == ["ours?", "more?"]


def test_a_full_disk_changes_nothing_and_leaves_nothing(place: JournalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    update(place, question("kept?"), template)
    before = Path(place.path).read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(errors.StoreFull, match="no space left"):
        update(place, question("lost?"))
    monkeypatch.undo()
    assert Path(place.path).read_bytes() == before
    assert not list(Path(place.path).parent.glob(".NOTES*"))


def test_a_change_that_is_refused_loses_nothing_that_was_found_on_the_way(place: JournalFile) -> None:
    put(place, template() + BY_HAND)
    with open(place.path, "a", encoding="utf-8") as editor:
        update(place, question("ours?"))
        editor.write("late, by hand\n")

    def refuse(text: str) -> str:
        raise errors.no_item("goal", "x")

    with pytest.raises(errors.NotFound):
        update(place, refuse)
    update(place, lambda text: text)
    assert "late, by hand\n" in Path(place.path).read_text()
    assert asked(place) == ["ours?"]


def test_healing_takes_in_what_somebody_saves_at_that_moment(
    place: JournalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place, " ")
    swap = journal_file._swap

    def slow(where: JournalFile, temporary: str, known: str | None, until: float) -> bool:
        monkeypatch.undo()
        put(place, "by hand\n")
        return swap(where, temporary, known, until)

    monkeypatch.setattr(journal_file, "_swap", slow)
    assert journal_file.revive(place, template())
    text = Path(place.path).read_text()
    assert "by hand\n" in text
    assert "## Active Sub-Goals\n" in text


def test_many_threads_change_it_and_every_change_is_there(place: JournalFile) -> None:
    put(place, template())
    threads = [
        threading.Thread(target=lambda n=n: [update(place, question(f"{n} {m}?")) for m in range(10)]) for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(asked(place)) == sorted(f"{n} {m}?" for n in range(6) for m in range(10))


def race(place: JournalFile, style: str, count: int, seed: int) -> tuple[set[str], set[str]]:
    """An editor's saves against as many changes of ours; what is missing of each at the end."""
    put(place, template() + BY_HAND)
    command = [sys.executable, str(EDITOR), style, place.path, str(count), str(seed)]
    editor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for number in range(count):
        update(place, question(f"agent {number}?"))
    out, _ = editor.communicate(timeout=300)
    assert editor.returncode == 0
    assert out.count("saved") == count
    update(place, lambda text: text)
    text = read(place) or ""
    by_hand = {f"- by hand {style} {number}" for number in range(count)} - set(text.split("\n"))
    agent = {f"agent {number}?" for number in range(count)} - set(asked(place))
    return by_hand, agent


def test_an_entry_added_while_an_editor_has_emptied_the_file_to_save_it_stays(place: JournalFile) -> None:
    """The first look at a journal falls between an editor's truncation and its writing, which then takes its time."""
    whole = template() + BY_HAND
    put(place, "")
    update(place, question("agent 0?"), lambda: "")
    put(place, whole + "- by hand\n")
    update(place, question("agent 1?"))
    assert asked(place) == ["agent 0?", "agent 1?"]
    assert "- by hand" in (read(place) or "")


@pytest.mark.parametrize("style", STYLES)
def test_an_editor_and_an_agent_save_at_the_same_time(place: JournalFile, style: str) -> None:
    assert race(place, style, 25, 1) == (set(), set())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("style", STYLES)
def test_four_hundred_saves_race_four_hundred_changes(place: JournalFile, style: str, seed: int) -> None:
    assert race(place, style, 400, seed) == (set(), set())
