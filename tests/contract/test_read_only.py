"""Stores that exist but cannot be written, and stores that do not exist: reading works, and makes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import limpet
from doors.cli_runner import run
from limpet import errors

NOBODY = 65_534
WRITER = """
import os, sys, limpet
hold = limpet.open(sys.argv[1], project="p", session="s")
hold.session().notes.add("tea at four")
hold.session().outputs.keep("shell", "kept line\\n" * 3_000)
if sys.argv[2] == "killed":
    os._exit(0)
hold.close()
"""


def mount(*args: str) -> bool:
    with suppress(FileNotFoundError):
        return subprocess.run(["mount", *args], capture_output=True, check=False).returncode == 0
    return False


@pytest.fixture(params=["closed", "killed", "killed, without shared memory"])
def read_only(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A store on a file system that is read-only, as a writer left it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() or not mount("-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)):
        pytest.skip("Mounting is not allowed here.")
    try:
        path = folder / "limpet.db"
        subprocess.run([sys.executable, "-c", WRITER, str(path), request.param.split(",")[0]], check=True)
        if "without" in request.param:
            (folder / "limpet.db-shm").unlink()
        assert mount("-o", "remount,ro", str(folder))
        yield path
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def reads_work(path: Path, tmp_path: Path) -> None:
    with limpet.open(str(path), project="p", session="s") as hold:
        assert len(hold.call("list_notes", {})["notes"]) == 1
        assert hold.call("search_notes", {"query": "four"})["notes"]
        assert hold.call("recall", {"query": "tea"})
        (output,) = hold.call("list_outputs", {})["entries"]
        assert "kept line" in hold.call("read_output", {"id": output["id"], "lines": "1-2"})["content"]
        assert len(list(hold.export_lines())) > 3
        assert all(finding.ok for finding in hold.backup(str(tmp_path / "copy.db")))
        with pytest.raises(errors.StoreReadOnly, match="cannot be written"):
            hold.call("add_note", {"content": "x"})
        assert len(hold.call("list_notes", {})["notes"]) == 1
    with limpet.open(str(tmp_path / "copy.db"), project="p", session="s") as copy:
        assert len(copy.call("list_notes", {})["notes"]) == 1


def test_a_store_on_a_read_only_file_system_can_be_read_and_exported(read_only: Path, tmp_path: Path) -> None:
    reads_work(read_only, tmp_path)


def test_doctor_names_a_read_only_file_system_and_its_cure(read_only: Path) -> None:
    ran = run("--store", str(read_only), "--project", "p", "doctor")
    assert ran.code == 5
    assert "read-only" in ran.out
    assert "Remount it" in ran.out
    assert "are as they were written" in ran.out


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    for path in (folder, *folder.iterdir()):
        path.chmod(0o555 if path == folder else 0o444)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


def test_a_store_in_a_folder_one_may_not_write_can_be_read() -> None:
    base = Path("/tmp") / f"limpet-test-{os.getpid()}"  # noqa: S108 - those of pytest are closed to others
    base.mkdir(mode=0o755)
    try:
        path = base / "limpet.db"
        subprocess.run([sys.executable, "-c", WRITER, str(path), "closed"], check=True)
        with without_rights(base), limpet.open(str(path), project="p", session="s") as hold:
            assert len(hold.call("list_notes", {})["notes"]) == 1
            assert hold.call("recall", {"query": "tea"})
            with pytest.raises(errors.StoreReadOnly, match="you may not write"):
                hold.call("add_note", {"content": "x"})
    finally:
        for left in base.iterdir():
            left.unlink()
        base.rmdir()


def test_reading_makes_no_store(tmp_path: Path) -> None:
    path = tmp_path / "limpet.db"
    with limpet.open(str(path), project="p", session="s") as hold:
        assert hold.call("list_notes", {})["notes"] == []
        assert hold.call("recall", {"query": "tea"})["hits"] == []
        hold.store.probe_write()
        assert not list(tmp_path.iterdir())
        hold.call("add_note", {"content": "x"})
        assert len(hold.call("list_notes", {})["notes"]) == 1
    assert path.exists()
