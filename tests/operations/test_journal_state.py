"""The state folder of a journal and the journal itself, in a repository that somebody else wrote."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from limpet import errors, limits
from limpet.journal import file as journal_file
from limpet.journal import state as journal_state
from limpet.journal.document.sections import template
from limpet.journal.evidence import remember_verified, verified
from limpet.journal.file import find, update
from limpet.journal.state import key_of, of_project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".limpet").mkdir(parents=True)
    return root


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    for day in range(60):
        (folder / f"2026-01-{day:02d}.md").write_text("a day\n")
    return folder


def change(root: Path, name: str = "NOTES.md") -> None:
    update(find(str(root), name, of_project(str(root))), lambda text: f"{text}more\n", template)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("levels", [(), ("journal",), ("journal", "KEY"), ("journal", "KEY", "displaced")])
def test_a_link_in_the_state_folder_deletes_and_writes_nothing_elsewhere(
    root: Path, victim: Path, levels: tuple[str, ...]
) -> None:
    key = key_of(str(root / "NOTES.md"))
    place = root.joinpath(".limpet", *(key if level == "KEY" else level for level in levels))
    if not levels:
        place.rmdir()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(victim)
    before = names(victim)
    with pytest.raises(errors.StoreProblem, match=r"it is a link or not a folder\. Nothing was changed"):
        change(root)
    assert names(victim) == before
    assert not (root / "NOTES.md").exists()


@pytest.mark.parametrize("name", ["log", "lock", "log.new", "verified.json", "verified.json.new"])
@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "pipe"])
def test_a_file_of_the_state_that_is_a_link_is_not_followed(root: Path, victim: Path, name: str, kind: str) -> None:
    key = key_of(str(root / "NOTES.md"))
    place = root / ".limpet" / "journal" / key / name
    place.parent.mkdir(parents=True)
    target = victim / "2026-01-01.md"
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(target if kind == "link" else victim / "new")
    journal = find(str(root), "NOTES.md", of_project(str(root)))

    def work() -> None:
        change(root)
        with journal_file._locked(journal) as known:
            known.log.compact()
        remember_verified(journal, {"a": "b"})
        verified(journal)

    if name == "verified.json" and kind != "folder":
        work()  # it is replaced, which follows nothing either
    else:
        with pytest.raises(errors.LimpetError):
            work()
    assert target.read_text() == "a day\n"
    assert not (victim / "new").exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_the_state_belongs_to_its_user_alone_under_any_umask(root: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        change(root)
        change(root)
        remember_verified(find(str(root), "NOTES.md", of_project(str(root))), {})
    finally:
        os.umask(before)
    folder = root / ".limpet" / "journal"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.rglob("*"):
        if "displaced" not in path.parent.name:  # the journal itself as it was, with its own mode
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_state_folder_of_another_user_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(root)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(errors.StoreProblem, match=r"it belongs to another user\. Nothing was changed"):
        change(root)


def test_the_callers_folder_may_be_anywhere(root: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    state = journal_state.StateFolder(str(data), ("journal",))
    update(find(str(root), "NOTES.md", state), lambda text: text, template)
    assert names(root / ".limpet") == []
    assert names(data / "journal") == [".gitignore", key_of(str(root / "NOTES.md"))]


@pytest.mark.skipif(not os.path.ismount("/dev/shm") or sys.platform != "linux", reason="needs two file systems")  # noqa: S108
def test_a_state_folder_on_another_file_system_works(root: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as data:
        place = find(str(root), "NOTES.md", journal_state.StateFolder(data, ("journal",)))
        update(place, lambda text: text, template)
        for number in range(3):
            update(place, lambda text, number=number: f"{text}{number}\n")  # type: ignore[misc]
            Path(place.path).write_text(f"{Path(place.path).read_text()}by hand {number}\n")
        update(place, lambda text: f"{text}last\n")
    text = Path(place.path).read_text()
    assert all(f"{number}\n" in text and f"by hand {number}\n" in text for number in range(3))
    assert names(root) == [".limpet", "NOTES.md"]


@pytest.mark.parametrize("target", [".git/hooks/post-checkout", ".limpet/config.md", "src/a.py", "loop"])
def test_a_journal_that_is_a_link_to_something_else_is_refused(root: Path, target: str) -> None:
    file = root / target
    file.parent.mkdir(parents=True, exist_ok=True)
    if target == "loop":
        file.symlink_to("NOTES.md")
    else:
        file.write_text("#!/bin/sh\n")
    (root / "NOTES.md").symlink_to(target)
    with pytest.raises(errors.BadInput, match=r"is a link to|not a regular file"):
        change(root)
    assert target == "loop" or file.read_text() == "#!/bin/sh\n"


def test_a_huge_journal_is_refused_at_once(root: Path) -> None:
    with open(root / "NOTES.md", "wb") as file:
        file.truncate(limits.JOURNAL_MAX_BYTES + 1)
    with pytest.raises(errors.BadInput, match="the limit is"):
        change(root)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_refused_at_once(root: Path) -> None:
    try:
        os.mknod(root / "NOTES.md", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this system makes no devices")
    with pytest.raises(errors.BadInput, match="not a regular file"):
        change(root)
