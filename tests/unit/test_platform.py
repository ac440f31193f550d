"""What differs between operating systems. Linux runs for real, macOS and Windows with stand-ins for their own parts."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from limpet import platform
from limpet.platform import Linux, MacOS, Posix, Windows

linux = pytest.mark.skipif(sys.platform != "linux", reason="It asks the kernel of Linux.")


def swapping(source: Any, target: Any) -> int:
    """What the system calls of macOS and Windows do, in steps."""
    spare = Path(os.fsdecode(source) + "-aside")
    os.rename(source, spare)
    os.rename(target, source)
    os.rename(spare, target)
    return 0


def a_windows(folder: Path, calls: list[tuple[Any, ...]] | None = None) -> Windows:
    locked: set[int] = set()

    def locking(file: int, mode: int, count: int) -> None:
        inode = os.fstat(file).st_ino
        assert os.lseek(file, 0, os.SEEK_CUR) > 1 << 20  # behind the content, which others read
        if mode == 0:
            locked.discard(inode)
        elif inode in locked:
            raise PermissionError(errno.EACCES, "locked")
        else:
            locked.add(inode)

    def replace(target: str, source: str, spare: str, *flags: object) -> int:
        os.rename(target, spare)
        os.rename(source, target)
        return 1

    return Windows(SimpleNamespace(locking=locking, LK_NBLCK=2, LK_UNLCK=0), SimpleNamespace(ReplaceFileW=replace))


SYSTEMS: dict[str, Callable[[Path], Any]] = {
    "linux": lambda folder: Linux(),
    "linux without renameat2": lambda folder: Linux(libc=SimpleNamespace()),
    "macos": lambda folder: MacOS(
        libc=SimpleNamespace(renamex_np=lambda source, target, flag: swapping(source, target))
    ),
    "another posix": lambda folder: Posix(),
    "windows": a_windows,
}


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return SYSTEMS[request.param](tmp_path)


def test_a_lock_excludes_and_is_given_back(system: Any, tmp_path: Path) -> None:
    one = system.create_file(str(tmp_path / "lock"), new=False)
    two = system.create_file(str(tmp_path / "lock"), new=False)
    assert system.try_lock(one)
    assert not system.try_lock(two)
    system.unlock(one)
    assert system.try_lock(two)
    system.unlock(two)
    os.close(one)
    os.close(two)


def test_two_files_exchange_their_names(system: Any, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "new").write_text("new")
    system.exchange(str(tmp_path / "new"), str(tmp_path / "old"))
    assert ((tmp_path / "old").read_text(), (tmp_path / "new").read_text()) == ("new", "old")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277])
def test_files_and_folders_are_private_under_any_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        platform.here.make_folder(str(tmp_path / "a" / "b"))
        os.close(platform.here.create_file(str(tmp_path / "a" / "b" / "file")))
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/file")] == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("umask", [0o000, 0o277])
def test_every_file_of_a_store_is_private_under_any_umask(tmp_path: Path, umask: int) -> None:
    from limpet.stores.sqlite.store import SqliteStore

    before = os.umask(umask)
    try:
        store = SqliteStore(str(tmp_path / "home" / "limpet.db"))
        store._db.write(lambda con: con.rows("CREATE TABLE something (x)"))
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "home").iterdir()}
        store.close()
    finally:
        os.umask(before)
    assert {"limpet.db", "limpet.db-wal", "limpet.db-shm", "limpet.db.lock", "limpet.db.queue"} <= set(modes)
    assert set(modes.values()) == {0o600}
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_a_new_file_takes_no_other_place(system: Any, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    with pytest.raises(FileExistsError):
        system.create_file(str(tmp_path / "taken"))


def test_space_can_be_taken_and_asked_for(system: Any, tmp_path: Path) -> None:
    file = system.create_file(str(tmp_path / "reserve"))
    system.allocate(file, 1_500_000)
    os.close(file)
    assert (tmp_path / "reserve").stat().st_size == 1_500_000
    assert system.free_bytes(str(tmp_path)) > 0
    system.make_folder(str(tmp_path / "folder"))
    system.sync_folder(str(tmp_path / "folder"))


@linux
def test_the_process_that_holds_a_lock_is_named(tmp_path: Path) -> None:
    file = platform.here.create_file(str(tmp_path / "lock"))
    assert platform.here.lock_holder(file) is None
    assert platform.here.try_lock(file)
    assert platform.here.lock_holder(file) == os.getpid()
    os.close(file)


def test_an_exchange_that_fails_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("new")
    with pytest.raises(FileNotFoundError):
        platform.here.exchange(str(tmp_path / "new"), str(tmp_path / "missing"))
    assert (tmp_path / "new").read_text() == "new"
