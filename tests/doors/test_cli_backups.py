"""`limpet backup` and `restore`, through the command line: either kind of store into a file, and into either kind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import limpet
from contract.kit import NOON, delete, key_of, put, raw, stamp
from contract.outputs_kit import keep, log
from doors.cli_runner import COMMAND, environment, run, run_child, sentence
from golden.make import zstd
from limpet import errors, wiring
from limpet.model import MEMORY, MESSAGE, NOTE, Draft, Scope
from limpet.store import CallRecord, EventQuery, Listing, ReadRecord
from limpet.stores.shared.backup import DERIVED, ENTRIES, TABLES
from limpet.upkeep import access_tokens
from limpet.wiring import choose_store

HOME, OTHER = Scope("local", "home"), Scope("acme", "home")
OURS = "FROM pg_stat_activity WHERE application_name = 'limpet' AND datname = current_database()"
Contents = dict[str, list[tuple[Any, ...]]]


def fill(url: str) -> None:
    """Something of everything, of two tenants."""
    store = choose_store(url)
    for scope in (HOME, OTHER):
        messages = [(f"s#{at:08d}", Draft(f"message {at}: größer 記憶 \x1f", "s")) for at in range(250)]
        store.entries.append(scope, MESSAGE, messages, stamp())  # more than one batch
        gone = key_of(put(store, scope, None, "soon gone", tags=("First Spelling",)))
        delete(store, scope, gone)
        put(store, scope, "release", "Tag it", kind=MEMORY, tags=("Casts",), pinned=True)
        put(store, scope, "release", "Tag it, then push", kind=MEMORY, tags=("casts",), pinned=True)
        put(store, scope, "ahead", "later than all", now=NOON + 10**9)
        kept = keep(store, scope, log(400_000, seed=len(scope.tenant)))
        store.outputs.delete(scope, keep(store, scope, b"a result that goes\n" * 300).id, stamp())
        note = CallRecord("s", "grep", "c" * 64, kept.id, kept.digest, NOON, True, False, "o200k", 900, 80)
        store.calls.record_call(scope, note, 0)
        store.calls.record_read(scope, ReadRecord("s", "grep", kept.id, ["lines", 1, 9], NOON, "o200k", 30))
    asked = access_tokens.token_request("alice", "acme", "write", ("home",), "30d", NOON)
    access_tokens.create(store, asked, by="person/test", now=NOON)
    store.close()


def contents(url: str) -> Contents:
    """Every row of every table that is not made from others."""

    def plain(value: Any) -> Any:
        return int(value) if isinstance(value, bool) else bytes(value) if isinstance(value, memoryview) else value

    found: Contents = {}
    for table in (*TABLES, ENTRIES):
        order = "tenant, project, kind, key" if table == ENTRIES else table.order
        rows = raw(url, f"SELECT {table.columns} FROM {table.name} ORDER BY {order}")
        found[table.name] = [tuple(map(plain, row)) for row in rows]
    return found


@pytest.fixture
def target_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A second store, which is empty."""
    if request.param == "sqlite":
        return str(tmp_path / "second" / "limpet.db")
    url = request.getfixturevalue("module_postgres_url")
    raw(url, "DROP SCHEMA public CASCADE")
    raw(url, "CREATE SCHEMA public")
    raw(url, "GRANT ALL ON SCHEMA public TO PUBLIC")
    return str(url)


@pytest.mark.parametrize("target_url", ["sqlite", "postgres"], indirect=True)
def test_a_backup_of_either_store_comes_back_into_either(store_url: str, target_url: str, tmp_path: Path) -> None:
    fill(store_url)
    file = tmp_path / "backup.db"
    done = run_child("backup", str(file), "--store", store_url, "--json")
    assert done.json == {"backup": str(file)}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob("backup*")] == ["backup.db"]
    was = contents(store_url)
    assert contents(str(file)) == was
    bytes_before = file.read_bytes()
    told = run_child("restore", str(file), "--store", target_url, "--json").json
    assert told["projects"] == 3
    assert (told["entries"], told["changes"]) == (len(was["entries"]), len(was["events"]))
    assert file.read_bytes() == bytes_before
    assert contents(target_url) == was
    assert was["output_tombstones"]
    assert was["output_savings"]
    usable(target_url, store_url)


def usable(url: str, like: str) -> None:
    """It finds and writes like the store it came from."""
    one, two = choose_store(url), choose_store(like)
    try:
        assert all(finding.ok for finding in one.check())
        for scope in (HOME, OTHER):
            assert list(one.entries.dump(scope)) == list(two.entries.dump(scope))
            for needle in ("Message 17:", "größer", "PUSH"):
                query = Listing((NOTE, MEMORY, MESSAGE))
                assert one.entries.containing(scope, query, needle) == two.entries.containing(scope, query, needle)
            assert one.calls.savings(scope) == two.calls.savings(scope)
            (output,) = one.outputs.list(scope, 9).outputs
            assert one.outputs.read_bytes(scope, output.id, 0, output.size) == log(400_000, seed=len(scope.tenant))
            # A spelling that no entry carries any more is still the first one; ids and numbers go on.
            new = [put(store, scope, None, "new", tags=("first spelling",)) for store in (one, two)]
            assert [(done.seq, done.after) for done in new[:1]] == [(done.seq, done.after) for done in new[1:]]
            assert new[0].entry.tags == ("First Spelling",)
    finally:
        one.close()
        two.close()


def test_nothing_is_overwritten_and_nothing_is_put_into_what_is_in_use(store_url: str, tmp_path: Path) -> None:
    fill(store_url)
    file = tmp_path / "backup.db"
    assert run("backup", str(file), "--store", store_url).code == 0
    again = run("backup", str(file), "--store", store_url)
    assert again.code == 4
    assert "exists already" in again.err
    was = contents(store_url)
    refused = run("restore", str(file), "--store", store_url, "--json")
    assert refused.code == 4
    assert "already holds something" in sentence(refused)
    assert contents(store_url) == was
    nowhere = run("backup", str(tmp_path / "no" / "folder" / "x.db"), "--store", store_url)
    assert nowhere.code != 0
    assert not (tmp_path / "no").exists()


DAMAGE = {
    "a text": "UPDATE entries SET content = 'forged' WHERE key = 'release' AND tenant = 'acme'",
    "a change": "UPDATE events SET before = replace(before, 'Tag', 'Bag') WHERE before LIKE '%Tag it%'",
    "a chunk": "UPDATE output_chunks SET body = zeroblob(length(body)) WHERE number = 1",
    "a missing chunk": "DELETE FROM output_chunks WHERE number = 0",
    "a tombstone": "UPDATE output_tombstones SET gone_at = 7",
    "a missing index": "DELETE FROM terms WHERE rowid = 3",
}


def test_a_damaged_backup_is_refused_and_nothing_is_restored(store_url: str, tmp_path: Path) -> None:
    source = str(tmp_path / "source.db")
    fill(source)
    assert run("init", "--store", store_url).code == 0
    for number, (name, sql) in enumerate(DAMAGE.items()):
        file = tmp_path / f"{number}.db"
        assert run("backup", str(file), "--store", source).code == 0
        raw(str(file), sql)
        refused = run("restore", str(file), "--store", store_url, "--json")
        assert refused.code == 5, name
        assert "is not as it was written" in sentence(refused)
        assert raw(store_url, "SELECT count(*) FROM projects") == [(0,)], name
    torn = tmp_path / "torn.db"
    assert run("backup", str(torn), "--store", source).code == 0
    whole = torn.read_bytes()
    for name, body in {"cut": whole[: len(whole) // 2], "text": b"no database " * 900, "nothing": b""}.items():
        torn.write_bytes(body)
        assert run("restore", str(torn), "--store", store_url).code in (2, 5), name
        assert torn.read_bytes() == body
    assert run("restore", str(tmp_path / "none.db"), "--store", store_url).code == 2
    assert raw(store_url, "SELECT count(*) FROM projects") == [(0,)]


def test_a_file_of_another_program_is_no_backup(tmp_path: Path) -> None:
    other = apsw.Connection(str(tmp_path / "other.db"))
    other.execute("CREATE TABLE t (x)")
    other.close()
    refused = run("restore", str(tmp_path / "other.db"), "--store", str(tmp_path / "store.db"))
    assert refused.code != 0
    assert "not a Limpet store" in refused.err


def test_what_is_damaged_in_a_store_is_told_and_the_rest_is_saved(store_url: str, tmp_path: Path) -> None:
    fill(store_url)
    raw(store_url, "UPDATE entries SET content = 'forged' WHERE key = 'release' AND tenant = 'acme'")
    file = tmp_path / "backup.db"
    told = run("backup", str(file), "--store", store_url, "--json")
    assert told.code == 5
    assert "'release' of project 'home'" in told.out
    assert contents(str(file)) == contents(store_url)
    refused = run("restore", str(file), "--store", str(tmp_path / "new.db"))
    assert refused.code == 5


def test_an_older_backup_is_brought_up_to_date_and_stays_as_it_is(store_url: str, tmp_path: Path) -> None:
    body = zstd.decompress((Path(__file__).parents[1] / "golden" / "schema1.db.zst").read_bytes())
    file = tmp_path / "old" / "backup.db"
    file.parent.mkdir()
    file.write_bytes(body)
    told = run("restore", str(file), "--store", store_url, "--json").json
    assert told["entries"] == raw(str(file), "SELECT count(*) FROM entries")[0][0] > 5
    assert file.read_bytes() == body
    assert contents(store_url)["events"] == raw(str(file), "SELECT * FROM events ORDER BY tenant, project, seq")


def test_nothing_is_left_beside_a_backup_that_was_read(tmp_path: Path) -> None:
    fill(str(tmp_path / "limpet.db"))
    (tmp_path / "stick").mkdir()
    file = tmp_path / "stick" / "backup.db"
    assert run("backup", str(file), "--store", str(tmp_path / "limpet.db")).code == 0
    assert run("restore", str(file), "--store", str(tmp_path / "new.db")).code == 0
    assert [path.name for path in file.parent.iterdir()] == ["backup.db"]


def test_a_store_in_use_can_be_put_into_another_one(tmp_path: Path) -> None:
    """What is still in its log is part of it."""
    store = choose_store(str(tmp_path / "limpet.db"))
    put(store, HOME, "k", "text")
    assert run("restore", str(tmp_path / "limpet.db"), "--store", str(tmp_path / "new.db")).code == 0
    store.close()
    assert contents(str(tmp_path / "new.db")) == contents(str(tmp_path / "limpet.db"))


class Stopped(Exception):
    """What a test lets happen in the middle."""


def stop(count: int) -> None:
    if count > 100:
        raise Stopped


def test_what_is_stopped_in_the_middle_leaves_nothing_and_can_be_done_again(store_url: str, tmp_path: Path) -> None:
    source, file = str(tmp_path / "source.db"), tmp_path / "backup.db"
    fill(source)
    assert run("backup", str(file), "--store", source).code == 0
    with wiring.open(store_url) as hold:
        with pytest.raises(Stopped):
            hold.restore(str(file), stop)
        assert raw(store_url, "SELECT count(*) FROM projects") == [(0,)]
        assert raw(store_url, "SELECT count(*) FROM events") == [(0,)]
        assert hold.restore(str(file)).projects == 3
        again = tmp_path / "again.db"
        if store_url.startswith("postgresql"):  # the other kind is copied in one step
            with pytest.raises(Stopped):
                hold.backup(str(again), stop)
            assert not list(tmp_path.glob("again*"))
        assert all(finding.ok for finding in hold.backup(str(again)))
    assert contents(str(again)) == contents(source)


def test_a_backup_whose_connection_breaks_begins_again(postgres_url: str, tmp_path: Path) -> None:
    fill(postgres_url)
    kills = [f"SELECT pg_terminate_backend(pid) {OURS}"]

    def kill(count: int) -> None:
        if kills:
            assert raw(postgres_url, kills.pop())

    with wiring.open(postgres_url) as hold:
        hold.backup(str(tmp_path / "x.db"), kill)
    assert not kills
    assert contents(str(tmp_path / "x.db")) == contents(postgres_url)


WRITER = """
import sys
from contract.kit import put
from limpet.model import Scope
from limpet.wiring import choose_store
store, number = choose_store(sys.argv[1]), 0
while True:
    number += 1
    for project in ("one", "two"):  # what is in the second was in the first before
        put(store, Scope(sys.argv[2], project), f"k{number}", f"text {number}")
    print(number, flush=True)
"""


def test_a_backup_under_load_is_one_moment_of_all_projects(store_url: str, tmp_path: Path) -> None:
    choose_store(store_url).close()
    env = environment(PYTHONPATH=os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]))
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, store_url, f"tenant {n}"], stdout=subprocess.PIPE, text=True, env=env
        )
        for n in range(2)
    ]
    files = [tmp_path / f"{number}.db" for number in range(2)]
    try:
        said = [_line(writer) for writer in writers]
        for file in files:
            said = [_line(writer) for writer in writers]
            done = subprocess.run(
                [*COMMAND, "backup", str(file), "--store", store_url], env=env, check=True, timeout=90
            )
            assert done.returncode == 0
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
    for file in files:
        copy = choose_store(str(file))
        try:
            for n in range(2):
                one, two = (newest(copy, Scope(f"tenant {n}", project)) for project in ("one", "two"))
                assert one in (two, two + 1), "the second project is from another moment than the first"
                assert file != files[-1] or two >= said[n], "a write was acknowledged before, and is not there"
        finally:
            copy.close()
    restored = tmp_path / "again" / "limpet.db"
    assert run("restore", str(files[-1]), "--store", str(restored)).code == 0
    assert contents(str(restored)) == contents(str(files[-1]))


def newest(store: Any, scope: Scope) -> int:
    """How far a writer got in a project, all before it being there too."""
    events = store.entries.events(scope, EventQuery(kind=NOTE, limit=1_000_000))
    assert [int(event.key[1:]) for event in events] == list(range(len(events), 0, -1))
    return len(events)


def _line(writer: subprocess.Popen[str]) -> int:
    assert writer.stdout is not None
    return int(writer.stdout.readline())


def test_every_table_of_the_schema_is_copied_or_made_from_others(tmp_path: Path) -> None:
    with closing(choose_store(str(tmp_path / "limpet.db"))) as store:
        store.create()
    found = raw(str(tmp_path / "limpet.db"), "SELECT name FROM pragma_table_list WHERE type IN ('table', 'virtual')")
    tables = {name for (name,) in found if not name.startswith("sqlite_")}
    assert tables == {table.name for table in (*TABLES, ENTRIES)} | set(DERIVED) - {"entry_tags"}
    for table in (*TABLES, ENTRIES):
        columns = raw(str(tmp_path / "limpet.db"), f"SELECT name FROM pragma_table_info('{table.name}')")
        assert [name for (name,) in columns] == table.columns.split(", "), table.name


def test_a_store_without_anything_in_it_can_be_saved_too(store_url: str, tmp_path: Path) -> None:
    assert run("init", "--store", store_url).code == 0
    assert run("backup", str(tmp_path / "x.db"), "--store", store_url).code == 0
    told = run("restore", str(tmp_path / "x.db"), "--store", str(tmp_path / "y.db"), "--json").json
    assert (told["projects"], told["entries"]) == (0, 0)


KILLED_RESTORE = """
import os, sys
from limpet.stores.sqlite.store import SqliteStore

SqliteStore(sys.argv[2]).restore(sys.argv[1], progress=lambda rows: os.kill(os.getpid(), 9))
"""


def test_a_killed_restore_leaves_no_copy_of_the_backup_behind(tmp_path: Path) -> None:
    with limpet.open(str(tmp_path / "limpet.db"), project="p", session="s") as hold:
        for number in range(40):
            hold.session().notes.add(f"{number} " + "private words " * 200)
        hold.session().outputs.keep("shell", os.urandom(3_000_000).hex())
        hold.backup(str(tmp_path / "copy.db"))
    temporary, target = tmp_path / "temporary", tmp_path / "target"
    temporary.mkdir()
    target.mkdir()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_RESTORE, str(tmp_path / "copy.db"), str(target / "limpet.db")],
        env=os.environ | {"TMPDIR": str(temporary), "SQLITE_TMPDIR": str(temporary)},
        check=False,
    )
    assert killed.returncode == -9
    assert list(temporary.iterdir()) == []
    with limpet.open(str(target / "limpet.db"), project="p", session="s") as hold:
        hold.restore(str(tmp_path / "copy.db"))
        assert len(hold.session().notes.list(limit=100)) == 40


def test_the_refusal_of_a_backup_that_is_too_new_names_the_file_of_the_person(tmp_path: Path) -> None:
    with limpet.open(str(tmp_path / "limpet.db"), project="p", session="s") as hold:
        hold.session().notes.add("from the future")
        hold.backup(str(tmp_path / "copy.db"))
    con = apsw.Connection(str(tmp_path / "copy.db"))
    con.execute("PRAGMA user_version = 99").fetchall()
    con.close()
    with limpet.open(str(tmp_path / "other.db"), project="p") as hold, pytest.raises(errors.StoreTooNew) as caught:
        hold.restore(str(tmp_path / "copy.db"))
    assert caught.value.message.startswith(f"{tmp_path / 'copy.db'} was written by a later Limpet")


def test_a_backup_of_nothing_says_so_and_leaves_no_file(tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    hold = limpet.open(str(tmp_path / "none.db"), project="demo")
    with hold, pytest.raises(errors.NotFound, match="there is no store at"):
        hold.backup(str(target))
    assert os.listdir(tmp_path) == []
