"""Stores that cannot be opened, folders that cannot be written, and disks that are full: what every door says."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
import pytest

import limpet
from doors.cli_runner import Ran, run, run_child, sentence
from journeys.stdio import Server
from limpet import errors
from limpet.api import Limpet
from limpet.stores.sqlite.connection import Connection
from limpet.stores.sqlite.database import Database

NOBODY = 65_534  # a user without rights

# --- stores that cannot be opened -------------------------------------------------------------------------------------


def cannot_be_opened(store: str) -> errors.StoreProblem:
    """The problem that every door reports in the same words."""
    with pytest.raises(errors.StoreProblem) as caught:
        limpet.open(store, project="demo").close()
    problem = caught.value
    for args in (("note", "list"), ("note", "add", "x"), ("export", "-")):
        ran = run("--store", store, "--project", "demo", "--json", *args)
        assert (ran.code, sentence(ran)) == (5, problem.message)
    assert run_child("--store", store, "note", "list") == Ran(5, "", f"limpet: {problem.message}\n")
    # Few clients show why a server did not start. All of them show what a tool answers.
    with Server(store) as server:
        assert server.refusal("list_notes", {}) == server.refusal("add_note", {"content": "x"}) == problem.message
    return problem


def cannot_be_made(store: str) -> errors.StoreProblem:
    """Nothing is there to read, and the problem that a write reports at every door."""
    with limpet.open(store, project="demo") as hold:
        assert not hold.session().notes.list()
        with pytest.raises(errors.StoreProblem) as caught:
            hold.session().notes.add("x")
    problem = caught.value
    for args in (("init",), ("note", "add", "x")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LIMPET_STORE", store)
            ran = run("--json", *args)
        assert (ran.code, sentence(ran)) == (5, problem.message)
    assert run("--store", store, "note", "add", "x").code == 3
    with Server(store) as server:
        assert server.refusal("add_note", {"content": "x"}) == problem.message
    return problem


@pytest.mark.parametrize(
    "content",
    [b"These are my notes.\n" * 200, b"\x00" * 4_096, b"SQLite format 3\x00" + b"\xff" * 9_000, b"TODO\n" * 40],
)
def test_a_file_that_is_not_a_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(content)
    problem = cannot_be_opened(str(path))
    assert problem.code == "not_a_store"
    assert str(path) in problem.message
    assert path.read_bytes() == content


def test_a_database_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    con = apsw.Connection(str(path))
    con.execute("CREATE TABLE contacts (name TEXT); INSERT INTO contacts VALUES ('Ada')")
    con.close()
    content = path.read_bytes()
    assert "another program" in cannot_be_opened(str(path)).message
    assert path.read_bytes() == content


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "limpet.db").mkdir()
    cannot_be_opened(str(tmp_path / "limpet.db"))
    assert list((tmp_path / "limpet.db").iterdir()) == []


def test_a_newer_schema_than_ours(tmp_path: Path) -> None:
    path = tmp_path / "limpet.db"
    with limpet.open(str(path)) as hold:
        hold.session().notes.add("from the future")
    con = apsw.Connection(str(path))
    con.execute("PRAGMA user_version = 99")
    con.close()
    content = path.read_bytes()
    problem = cannot_be_opened(str(path))
    assert problem.code == "store_too_new"
    assert "schema 99; this one knows up to" in problem.message
    assert path.read_bytes() == content


# --- folders that cannot be written -----------------------------------------------------------------------------------


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own; only root can have one."""
    path = tmp_path / "mounted"
    path.mkdir()
    if os.geteuid() != 0 or _mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", str(path)):
        pytest.skip("Only root in a machine of its own may mount a file system.")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def _mount(*args: str) -> int:
    with suppress(FileNotFoundError):
        return subprocess.run(["mount", *args], capture_output=True, check=False).returncode
    return 1


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """Nobody may write in the folder. Root may always, so it stops being root for a while."""
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


def test_a_folder_without_rights(mounted_or_shared: Path) -> None:
    path = mounted_or_shared / "limpet.db"
    with without_rights(mounted_or_shared):
        with limpet.open(str(path)) as hold, pytest.raises(errors.StoreReadOnly) as caught:
            hold.session().notes.add("x")
        assert caught.value.code == "store_read_only"
        assert "Permission denied" in caught.value.message
        ran = run("init", "--store", str(path), "--json")
        assert (ran.code, sentence(ran)) == (5, caught.value.message)
    assert not path.exists()


@pytest.fixture
def mounted_or_shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody can reach, and the home; those of pytest are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        monkeypatch.setenv("HOME", name)
        yield Path(name)


def test_a_store_without_rights(mounted_or_shared: Path) -> None:
    path = mounted_or_shared / "limpet.db"
    with limpet.open(str(path), project="demo", session="one") as hold:
        hold.session().notes.add("kept")
        before = list(hold.export_lines())
    content = path.read_bytes()
    with without_rights(mounted_or_shared):
        with (
            pytest.raises(errors.StoreProblem) as caught,
            limpet.open(str(path), project="demo", session="one") as hold,
        ):
            hold.session().notes.add("lost")
        assert caught.value.code == "store_read_only"
        ran = run("--store", str(path), "--project", "demo", "--session", "one", "--json", "note", "add", "lost")
        assert (ran.code, sentence(ran)) == (5, caught.value.message)
    assert path.read_bytes() == content
    with limpet.open(str(path), project="demo", session="one") as hold:
        assert list(hold.export_lines()) == before


def test_a_read_only_file_system(mounted: Path) -> None:
    path = mounted / "limpet.db"
    with limpet.open(str(path), project="demo", session="one") as hold:
        hold.session().notes.add("kept")
    content = path.read_bytes()
    assert _mount("-o", "remount,ro", str(mounted)) == 0
    assert cannot_be_made(str(mounted / "new" / "limpet.db")).code == "store_read_only"
    with pytest.raises(errors.StoreProblem) as caught, limpet.open(str(path), project="demo", session="one") as hold:
        hold.session().notes.add("lost")
    assert caught.value.code == "store_read_only"
    ran = run("--store", str(path), "--project", "demo", "--session", "one", "--json", "note", "add", "lost")
    assert (ran.code, sentence(ran)) == (5, caught.value.message)
    assert path.read_bytes() == content


# --- full disks -------------------------------------------------------------------------------------------------------


def fill(hold: Limpet) -> tuple[dict[str, str], errors.LimpetError]:
    """Write notes until no more fit: those that were acknowledged, and the refusal."""
    kept: dict[str, str] = {}
    for number in range(10_000):
        text = f"note {number} " + "plain words again " * 200
        try:
            kept[hold.session().notes.add(text).id] = text
        except errors.LimpetError as problem:
            return kept, problem
    raise AssertionError("the disk never filled up")


def test_a_full_disk(mounted: Path) -> None:
    path = str(mounted / "limpet.db")
    here = ("--project", "demo", "--session", "one")
    ballast = mounted / "ballast"
    with limpet.open(path, project="demo", session="one") as hold, Server(path, "--session", "one") as server:
        assert server.call("list_notes")["note_count"] == 0
        ballast.write_bytes(b"x" * 900_000)
        kept, problem = fill(hold)
        with suppress(OSError), ballast.open("ab", buffering=0) as rest:
            while True:
                rest.write(b"x" * 1_024)
        assert problem.code == "store_full", problem.message
        assert path in problem.message
        text = "one more " + "plain words again " * 200
        before = list(hold.export_lines())
        assert server.refusal("add_note", {"content": text}) == problem.message
        ran = run("--store", path, *here, "--json", "note", "add", text)
        assert (ran.code, sentence(ran)) == (5, problem.message)
        assert list(hold.export_lines()) == before
        ballast.unlink()
        kept[hold.session().notes.add("room again").id] = "room again"
        assert {note.id: note.content for note in hold.session().notes.list(limit=1_000)} == kept
    with limpet.open(path, project="demo", session="one") as hold:
        assert {note.id: note.content for note in hold.session().notes.list(limit=1_000)} == kept
        assert all(finding.ok for finding in hold.check())


def test_a_new_store_on_a_full_disk_says_that_it_is_full(mounted: Path) -> None:
    ballast = mounted / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as rest:
        while True:
            rest.write(b"x" * 1_024)
    os.truncate(ballast, ballast.stat().st_size - 60 * 1_024)  # room to begin with, and not for all of it
    with limpet.open(str(mounted / "limpet.db")) as hold, pytest.raises(errors.StoreFull):
        hold.session().notes.add("x")


def test_a_store_that_may_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be shown of a full disk without one: every connection is limited to so many pages."""
    with limpet.open(str(tmp_path / "limpet.db"), session="one") as hold:
        hold.store.create()
    connect = Database._connect

    def limited(db: Database) -> Connection:
        con = connect(db)
        con.execute("PRAGMA max_page_count = 60").fetchall()
        return con

    monkeypatch.setattr(Database, "_connect", limited)
    with limpet.open(str(tmp_path / "limpet.db"), session="one") as hold:
        kept, problem = fill(hold)
        assert isinstance(problem, errors.StoreFull)
        assert {note.id: note.content for note in hold.session().notes.list(limit=1_000)} == kept
        assert all(finding.ok for finding in hold.check())
