"""A disk without any space left: what is there can be read, and things can be deleted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import limpet
from doors.cli_runner import run
from limpet import errors
from limpet.api import Limpet

WORDS = "the quick brown fox looks for tea at four and writes down what the compiler said about the module"


@pytest.fixture(params=[2, 6, 16])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system of so many megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={request.param}m", "tmpfs", str(folder)]
    with suppress(FileNotFoundError):
        if os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
            try:
                yield folder
            finally:
                subprocess.run(["umount", "-l", str(folder)], check=True)
            return
    pytest.skip("Mounting is not allowed here.")


def fill(hold: Limpet, folder: Path) -> list[str]:
    """Write until the store is refused, then let another program take the rest. The ids of the notes."""
    session = hold.session()
    ids = [session.notes.add(f"note {number}: {WORDS}").id for number in range(30)]
    with suppress(errors.StoreFull):
        for _ in range(3_000):
            session.outputs.keep("shell", os.urandom(30_000).hex() + "\n")
        raise AssertionError("the disk never filled up")
    with open(folder / "filler", "wb", buffering=0) as filler, suppress(OSError):
        for _ in range(100_000):
            filler.write(bytes(512))
    return ids


def test_things_can_be_deleted_on_a_full_disk(disk: Path) -> None:
    with limpet.open(str(disk / "limpet.db"), project="p", session="s") as hold:
        ids = fill(hold, disk)
        for id in ids[:10]:
            hold.session().notes.delete(id)
        assert len(hold.call("list_notes", {"limit": 50})["notes"]) == len(ids) - 10
        assert hold.call("clear_outputs", {})["deleted"]
        hold.call("purge", {"origin": "agent"})
        assert not hold.call("list_notes", {"limit": 50})["notes"]
        assert all(finding.ok for finding in hold.check())
        hold.session().notes.add("what was deleted makes room for this")
    with limpet.open(str(disk / "limpet.db"), project="p", session="s") as hold:
        assert len(hold.call("list_notes", {})["notes"]) == 1


def test_the_reserve_is_not_used_up_by_ordinary_writes(disk: Path) -> None:
    with limpet.open(str(disk / "limpet.db"), project="p", session="s") as hold:
        ids = fill(hold, disk)
        for number in range(30):
            with suppress(errors.StoreFull):
                hold.session().outputs.keep("shell", os.urandom(30_000).hex() + f"{number}\n")
        hold.session().notes.delete(ids[0])


def test_the_reserve_is_not_used_up_by_small_writes(disk: Path) -> None:
    with limpet.open(str(disk / "limpet.db"), project="p", session="s") as hold:
        ids = fill(hold, disk)
        before = (disk / "limpet.db.reserve").stat().st_size
        for number in range(200):
            with suppress(errors.StoreFull):
                hold.session().notes.add(f"small {number}: {WORDS}")
        assert (disk / "limpet.db.reserve").stat().st_size >= before * 3 // 4
        for id in ids:
            hold.session().notes.delete(id)


def test_a_store_on_a_full_disk_can_be_opened_and_read(disk: Path) -> None:
    with limpet.open(str(disk / "limpet.db"), project="p", session="s") as hold:
        fill(hold, disk)
    with open(disk / "filler", "ab", buffering=0) as filler, suppress(OSError):
        for _ in range(100_000):
            filler.write(bytes(512))
    with limpet.open(str(disk / "limpet.db"), project="p", session="s") as hold:
        notes = hold.call("list_notes", {"limit": 50})["notes"]
        assert len(notes) == 30
        assert hold.call("recall", {"query": "tea"})
        hold.session().notes.delete(notes[0]["id"])
    ran = run("--store", str(disk / "limpet.db"), "--project", "p", "doctor")
    assert "are left on the disk" in ran.out


def test_the_reserve_is_private_and_small(tmp_path: Path) -> None:
    with limpet.open(str(tmp_path / "limpet.db"), project="p", session="s") as hold:
        hold.session().notes.add("x")
    kept = (tmp_path / "limpet.db.reserve").stat()
    assert kept.st_mode & 0o777 == 0o600
    assert kept.st_size <= 4 << 20
