"""Bad input through the library, the command line and MCP: the same sentence everywhere, and nothing changed.

The table has one row a case. A row says how the case looks for an operation and how a person types it; where a door
cannot be given the case at all, the row says why instead.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

import holdfast
from holdfast import errors
from holdfast.doors.cli import main
from holdfast.library import Holdfast
from journeys.stdio import Server, command, environment

PAD = "# Plan\n- [ ] Parse casts\n"
MEGABYTES = "x" * 10_000_000
NOBODY = 65_534
NO_NUMBERS = "on a command line every argument is a text"
NO_OPTION = "an option is not an argument; see test_an_unknown_option_is_refused"


class Case(NamedTuple):
    id: str
    operation: str
    arguments: dict[str, Any]
    code: str
    cli: tuple[str, ...] | str  # what is typed, or why it cannot be
    stdin: bytes = b""
    mcp: str = ""  # why MCP cannot be given it


def tagged(*tags: str) -> tuple[str, ...]:
    return tuple(word for tag in tags for word in ("--tag", tag))


ELEVEN = [f"t{number}" for number in range(11)]
CASES = [
    Case("empty content", "add_note", {"content": ""}, "empty", ("note", "add", "")),
    Case("blank content", "add_note", {"content": " \t "}, "empty", ("note", "add", " \t ")),
    Case("empty memory", "write_memory", {"key": "k", "content": " "}, "empty", ("memory", "write", "k", " ")),
    Case("empty key", "write_memory", {"key": " ", "content": "x"}, "empty", ("memory", "write", " ", "x")),
    Case("empty handoff", "write_session_handoff", {"content": ""}, "empty", ("handoff", "write", "")),
    Case("empty query", "search_memory", {"query": " "}, "empty", ("memory", "search", " ")),
    Case("long note", "add_note", {"content": "é" * 4_001}, "too_long", ("note", "add", "é" * 4_001)),
    Case(
        "long handoff",
        "write_session_handoff",
        {"content": "x" * 20_001},
        "too_long",
        ("handoff", "write", "-"),
        b"x" * 20_001,
    ),
    Case("10 MB note", "add_note", {"content": MEGABYTES}, "too_long", ("note", "add", "-"), MEGABYTES.encode()),
    Case("10 MB pad", "write_notepad", {"content": MEGABYTES}, "too_long", ("pad", "write"), MEGABYTES.encode()),
    Case(
        "10 MB memory",
        "write_memory",
        {"key": "k", "content": MEGABYTES},
        "too_long",
        ("memory", "write", "k"),
        MEGABYTES.encode(),
    ),
    Case(
        "11 tags", "add_note", {"content": "x", "tags": ELEVEN}, "too_many_tags", ("note", "add", "x", *tagged(*ELEVEN))
    ),
    Case(
        "blank tag",
        "add_note",
        {"content": "x", "tags": ["good", " "]},
        "blank_tag",
        ("note", "add", "x", *tagged("good", " ")),
    ),
    Case(
        "long tag",
        "add_note",
        {"content": "x", "tags": ["t" * 101]},
        "too_long",
        ("note", "add", "x", *tagged("t" * 101)),
    ),
    Case("unknown id", "update_note", {"id": "note_1", "content": "x"}, "no_note", ("note", "update", "note_1", "x")),
    Case("unknown id deleted", "delete_note", {"id": "note_1"}, "no_note", ("note", "delete", "note_1")),
    Case("no change", "update_note", {"id": "note_1"}, "nothing_to_update", ("note", "update", "note_1")),
    Case("number as content", "add_note", {"content": 7}, "wrong_type", NO_NUMBERS),
    Case("text as tags", "add_note", {"content": "x", "tags": "a,b"}, "wrong_type", NO_NUMBERS),
    Case("numbers as tags", "add_note", {"content": "x", "tags": [1]}, "wrong_type", NO_NUMBERS),
    Case("text as truth", "update_note", {"id": "note_1", "done": "yes"}, "wrong_type", NO_NUMBERS),
    Case("object as content", "write_notepad", {"content": {"a": 1}}, "wrong_type", NO_NUMBERS),
    Case("text as limit", "list_notes", {"limit": "many"}, "wrong_type", ("note", "list", "--limit", "many")),
    Case("unknown argument", "add_note", {"content": "x", "text": "y"}, "unknown_argument", NO_OPTION),
    Case("missing argument", "add_note", {}, "missing", "without a text it is read from standard input"),
    Case("NUL", "add_note", {"content": "a\x00b"}, "unstorable", ("note", "add"), b"a\x00b"),
    Case("NUL in the pad", "write_notepad", {"content": "\x00"}, "unstorable", ("pad", "write"), b"\x00"),
    Case("half a character", "add_note", {"content": "a\udcffb"}, "unstorable", ("note", "add"), b"a\xffb"),
    Case(
        "half a character in a tag",
        "add_note",
        {"content": "x", "tags": ["\udcff"]},
        "unstorable",
        ("note", "add", "x", *tagged("\udcff")),
    ),
    Case(
        "find text not present",
        "update_notepad",
        {"operation": "find_replace", "find": "- [x] parse casts", "replace": "y"},
        "text_not_found",
        ("pad", "edit", "--find", "- [x] parse casts", "--replace", "y"),
    ),
    Case(
        "delete text not present",
        "update_notepad",
        {"operation": "delete", "content": "$&"},
        "text_not_found",
        ("pad", "edit", "--delete", "$&"),
    ),
    Case(
        "compare and swap",
        "write_notepad",
        {"content": "mine", "expected_version": 7},
        "version_moved",
        ("pad", "write", "mine", "--if-version", "7"),
    ),
    Case(
        "reserved key",
        "write_memory",
        {"key": "Scratchpad", "content": "x"},
        "reserved_key",
        ("memory", "write", "Scratchpad", "x"),
    ),
    Case(
        "reserved log",
        "write_memory",
        {"key": "activity-log-2026-03-03", "content": "x"},
        "reserved_key",
        ("memory", "write", "activity-log-2026-03-03", "x"),
    ),
    Case("limit 0", "list_notes", {"limit": 0}, "out_of_range", ("note", "list", "--limit", "0")),
    Case("limit 10,000", "search_notes", {"limit": 10_000}, "out_of_range", ("note", "search", "--limit", "10000")),
    Case("limit below 0", "list_notes", {"limit": -1}, "out_of_range", ("note", "list", "--limit", "-1")),
    Case(
        "unknown mode",
        "scratch_note",
        {"mode": "erase", "content": "x"},
        "not_one_of",
        ("scratch", "x", "--mode", "erase"),
    ),
    Case(
        "bad session",
        "list_notes",
        {"session_id": "two\nlines"},
        "bad_name",
        ("note", "list", "--session", "two\nlines"),
    ),
    Case("unknown version", "restore_notepad", {"version": 9}, "no_version", ("pad", "restore", "9"), mcp="no tool"),
    Case("unknown change", "undo", {"seq": 999}, "no_event", ("undo", "999"), mcp="no tool"),
    Case("endless number", "undo", {"seq": 10**30}, "out_of_range", ("undo", str(10**30)), mcp="no tool"),
    Case("unknown session", "show_session", {"id": "none"}, "no_entry", ("session", "show", "none"), mcp="no tool"),
    Case("unknown key", "read_memory", {"key": "none"}, "no_entry", ("memory", "show", "none"), mcp="no tool"),
]
SYNTAX = [
    '"',
    "AND",
    "a AND",
    "NOT",
    "NEAR(",
    "x*",
    "^x",
    "col:x",
    "(",
    ")",
    "{a b}",
    "-",
    "+",
    "'; DROP TABLE entries; --",
    "%_",
    "\\",
]


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def run(*args: str, stdin: bytes = b"") -> Ran:
    """The command line in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    old, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main(list(args))
    finally:
        sys.stdin = old
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return Ran(code, *texts)


def run_child(*args: str, stdin: bytes = b"") -> Ran:
    """The command line as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *args],
        input=stdin,
        capture_output=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def sentence(ran: Ran) -> str:
    """What a command run with --json says went wrong; notices may stand before it."""
    assert ran.out == ""
    return str(json.loads(ran.err.strip().split("\n")[-1])["error"]["message"])


def refused(hold: Holdfast, case: Case) -> errors.HoldfastError:
    with pytest.raises(errors.HoldfastError) as caught:
        hold.call(case.operation, case.arguments)
    return caught.value


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("bad_input") / "holdfast.db")


@pytest.fixture(scope="module")
def hold(store: str) -> Iterator[Holdfast]:
    with holdfast.open(store, project="demo", session="one") as opened:
        work = opened.session()
        work.notes.add("a note", ["tag"])
        work.notepad.write(PAD)
        work.memory.write("goal", "parse casts")
        yield opened


@pytest.fixture(scope="module")
def server(hold: Holdfast, store: str) -> Iterator[Server]:
    with Server(store, "--project", "demo", "--session", "one") as running:
        yield running


@pytest.fixture
def typed(store: str) -> tuple[str, ...]:
    """The options that lead the command line to the same place."""
    return ("--store", store, "--project", "demo", "--session", "one", "--json")


# --- one sentence at every door ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_every_door_says_the_same_and_changes_nothing(
    case: Case, hold: Holdfast, server: Server, typed: tuple[str, ...]
) -> None:
    before = list(hold.export_lines())
    problem = refused(hold, case)
    assert problem.code == case.code
    assert len(problem.message) < 1_000
    if not case.mcp:
        assert server.refusal(case.operation, case.arguments) == problem.message
    if isinstance(case.cli, tuple):
        ran = run(*typed, *case.cli, stdin=case.stdin)
        assert (ran.code, sentence(ran)) == (problem.exit_code, problem.message)
    assert list(hold.export_lines()) == before


@pytest.mark.parametrize(
    "id",
    ["empty content", "10 MB note", "11 tags", "NUL", "half a character", "compare and swap", "unknown id", "limit 0"],
)
def test_a_real_command_says_it_on_one_line(id: str, hold: Holdfast, typed: tuple[str, ...]) -> None:
    (case,) = [case for case in CASES if case.id == id]
    assert isinstance(case.cli, tuple)
    before = list(hold.export_lines())
    problem = refused(hold, case)
    ran = run_child(*typed[:-1], *case.cli, stdin=case.stdin)
    assert ran == Ran(problem.exit_code, "", f"holdfast: {problem.message}\n")
    assert list(hold.export_lines()) == before


def test_an_unknown_option_is_refused(hold: Holdfast, typed: tuple[str, ...]) -> None:
    before = list(hold.export_lines())
    for args in (
        ("note", "add", "x", "--text", "y"),
        ("note", "forget"),
        ("note", "add", "x", "y"),
        ("note", "delete"),
    ):
        ran = run(*typed, *args)
        assert ran.code == 2
        assert ran.out == ""
    assert list(hold.export_lines()) == before


@pytest.mark.parametrize("query", SYNTAX)
def test_a_query_is_text_and_never_syntax(query: str, hold: Holdfast, server: Server, typed: tuple[str, ...]) -> None:
    before = list(hold.export_lines())
    for operation, words in (("search_notes", ("note", "search")), ("search_memory", ("memory", "search"))):
        answer = hold.call(operation, {"query": query})
        assert answer["query"] == query
        assert server.call(operation, query=query) == answer
        ran = run(*typed, *words, "--", query)
        assert (ran.code, json.loads(ran.out)) == (0, answer)
    assert list(hold.export_lines()) == before


@pytest.mark.parametrize("limit", [0, 10_000, -1])
def test_search_memory_clamps_its_limit(limit: int, hold: Holdfast, server: Server, typed: tuple[str, ...]) -> None:
    answer = hold.call("search_memory", {"query": "casts", "limit": limit})
    assert answer["match_count"] == 1
    assert server.call("search_memory", query="casts", limit=limit) == answer
    ran = run(*typed, "memory", "search", "casts", "--limit", str(limit))
    assert (ran.code, json.loads(ran.out)) == (0, answer)


# --- stores that cannot be opened -------------------------------------------------------------------------------------


def cannot_be_opened(store: str) -> errors.StoreProblem:
    """The problem that every door reports in the same words."""
    with pytest.raises(errors.StoreProblem) as caught:
        holdfast.open(store, project="demo").close()
    problem = caught.value
    for args in (("note", "list"), ("note", "add", "x"), ("export", "-")):
        ran = run("--store", store, "--project", "demo", "--json", *args)
        assert (ran.code, sentence(ran)) == (5, problem.message)
    assert run_child("--store", store, "note", "list") == Ran(5, "", f"holdfast: {problem.message}\n")
    # There is no protocol to speak before there is a store; a client shows what a server says when it cannot start.
    told = subprocess.run(command(store), input=b"", capture_output=True, env=environment(), timeout=60, check=False)
    assert (told.returncode, told.stdout, told.stderr.decode()) == (5, b"", f"holdfast: {problem.message}\n")
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
    (tmp_path / "holdfast.db").mkdir()
    cannot_be_opened(str(tmp_path / "holdfast.db"))
    assert list((tmp_path / "holdfast.db").iterdir()) == []


def test_a_newer_schema_than_ours(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    with holdfast.open(str(path)) as hold:
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
    path = mounted_or_shared / "holdfast.db"
    with without_rights(mounted_or_shared):
        with pytest.raises(errors.StoreReadOnly) as caught:
            holdfast.open(str(path))
        assert caught.value.code == "store_read_only"
        assert "Permission denied" in caught.value.message
        ran = run("--store", str(path), "--json", "note", "add", "x")
        assert (ran.code, sentence(ran)) == (5, caught.value.message)
    assert not path.exists()


@pytest.fixture
def mounted_or_shared() -> Iterator[Path]:
    """A folder that everybody can reach; those of pytest are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_store_without_rights(mounted_or_shared: Path) -> None:
    path = mounted_or_shared / "holdfast.db"
    with holdfast.open(str(path), project="demo", session="one") as hold:
        hold.session().notes.add("kept")
        before = list(hold.export_lines())
    content = path.read_bytes()
    with without_rights(mounted_or_shared):
        with (
            pytest.raises(errors.StoreProblem) as caught,
            holdfast.open(str(path), project="demo", session="one") as hold,
        ):
            hold.session().notes.add("lost")
        assert caught.value.code == "store_read_only"
        ran = run("--store", str(path), "--project", "demo", "--session", "one", "--json", "note", "add", "lost")
        assert (ran.code, sentence(ran)) == (5, caught.value.message)
    assert path.read_bytes() == content
    with holdfast.open(str(path), project="demo", session="one") as hold:
        assert list(hold.export_lines()) == before


def test_a_read_only_file_system(mounted: Path) -> None:
    path = mounted / "holdfast.db"
    with holdfast.open(str(path), project="demo", session="one") as hold:
        hold.session().notes.add("kept")
    content = path.read_bytes()
    assert _mount("-o", "remount,ro", str(mounted)) == 0
    assert cannot_be_opened(str(mounted / "new" / "holdfast.db")).code == "store_read_only"
    with pytest.raises(errors.StoreProblem) as caught, holdfast.open(str(path), project="demo", session="one") as hold:
        hold.session().notes.add("lost")
    assert caught.value.code == "store_read_only"
    ran = run("--store", str(path), "--project", "demo", "--session", "one", "--json", "note", "add", "lost")
    assert (ran.code, sentence(ran)) == (5, caught.value.message)
    assert path.read_bytes() == content


# --- full disks -------------------------------------------------------------------------------------------------------


def fill(hold: Holdfast) -> tuple[dict[str, str], errors.HoldfastError]:
    """Write notes until no more fit: those that were acknowledged, and the refusal."""
    kept: dict[str, str] = {}
    for number in range(10_000):
        text = f"note {number} " + "plain words again " * 200
        try:
            kept[hold.session().notes.add(text).id] = text
        except errors.HoldfastError as problem:
            return kept, problem
    raise AssertionError("the disk never filled up")


def test_a_full_disk(mounted: Path) -> None:
    path = str(mounted / "holdfast.db")
    here = ("--project", "demo", "--session", "one")
    ballast = mounted / "ballast"
    with holdfast.open(path, project="demo", session="one") as hold, Server(path, *here) as server:
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
    with holdfast.open(path, project="demo", session="one") as hold:
        assert {note.id: note.content for note in hold.session().notes.list(limit=1_000)} == kept
        assert all(finding.ok for finding in hold.check())


def test_a_store_that_may_not_grow(tmp_path: Path) -> None:
    """What can be shown of a full disk without one: SQLite is told how many pages it may have."""
    with holdfast.open(str(tmp_path / "holdfast.db"), session="one") as hold:
        con = hold.store._db.take()  # type: ignore[attr-defined]
        con.execute("PRAGMA max_page_count = 60").fetchall()
        hold.store._db.give(con)  # type: ignore[attr-defined]
        kept, problem = fill(hold)
        assert isinstance(problem, errors.StoreFull)
        assert {note.id: note.content for note in hold.session().notes.list(limit=1_000)} == kept
        assert all(finding.ok for finding in hold.check())
