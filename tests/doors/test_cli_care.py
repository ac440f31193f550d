"""Looking after a store from the command line: export, import, backup, and the doctor."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import apsw
import pytest

from doors.cli_runner import Cli
from limpet.clients import session_variables
from limpet.doors.cli.render import shown_place
from limpet.stores.sqlite.database import SCHEMA
from person import configure, project_folder

ODD = "bell \x07, clear \x1b[2J, C1 \x9b31m, right-to-left \u202e, delete \x7f, NEL \x85, 🙂 ü \u2028 end"


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in ("LIMPET_SESSION", *session_variables()):
        monkeypatch.delenv(name, raising=False)
    return Cli(folder, capsys, monkeypatch)


@pytest.fixture
def filled(cli: Cli) -> Cli:
    cli.ok("note", "add", "-", "--tag", "grammar", stdin=ODD)
    id = cli.ask("note", "add", "a note")["note_id"]
    cli.ok("note", "update", id, "--done")
    cli.ok("pad", "write", "-", "--session", "parser", stdin=f"{ODD}\r\nno line break at the end")
    cli.ok("pad", "append", "more", "--session", "parser")
    cli.ok("memory", "write", "release", "Tag it")
    cli.ok("memory", "pin", "release")
    cli.ok("handoff", "write", "Next: casts")
    cli.ok("note", "delete", id)
    cli.ok("undo")
    return cli


def test_an_export_comes_back_byte_for_byte(filled: Cli, tmp_path: Path) -> None:
    exported = filled.ok("export")
    other = str(tmp_path / "other.db")
    reply = filled.ask("import", "-", "--exact", "--store", other, "--project", "default", stdin=exported)
    assert reply["imported"] == sum('{"entry"' in line for line in exported.splitlines())
    assert filled.ok("export", "--store", other, "--project", "default") == exported
    for question in (
        ["note", "list", "--all"],
        ["history", "--limit", "1000"],
        ["pad", "history", "--session", "parser"],
    ):
        assert filled.ask(*question) == filled.ask(*question, "--store", other, "--project", "default")


def test_an_export_acts_on_no_terminal_and_means_what_was_stored(filled: Cli) -> None:
    exported = filled.ok("export")
    assert not set(exported) & {"\x1b", "\x07", "\x9b", "\x7f", "\x85", "\u202e", "\u2028"}
    contents = [json.loads(line)["entry"]["content"] for line in exported.split("\n") if '{"entry"' in line]
    assert ODD in contents


def test_an_export_to_a_file_is_private_whole_and_overwrites_nothing(filled: Cli) -> None:
    target = filled.folder / "out.jsonl"
    assert filled.ask("export", "out.jsonl")["export"] == str(target)
    assert target.read_text() == filled.ok("export")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    filled.ok("note", "add", "later")
    before = target.read_bytes()
    ran = filled("export", "out.jsonl")
    assert ran.code == 4
    assert "exists already" in ran.err
    assert target.read_bytes() == before
    filled.ok("export", "out.jsonl", "--force")
    assert target.read_bytes() != before
    assert filled("export", "no/such/folder.jsonl").code == 5
    assert sorted(os.listdir(filled.folder)) == [".git", "out.jsonl"]


def test_an_import_from_a_file_is_all_or_nothing(filled: Cli, tmp_path: Path) -> None:
    filled.ok("export", "out.jsonl")
    ran = filled("import", "out.jsonl")
    assert ran.code == 4
    assert "already holds something" in ran.err
    lines = (filled.folder / "out.jsonl").read_text().splitlines()
    (filled.folder / "broken.jsonl").write_text("\n".join([*lines[:3], "{", *lines[3:]]))
    broken = filled("import", "broken.jsonl", "--project", "fresh", "--json")
    assert broken.code == 2
    assert broken.error["code"] == "bad_import"
    assert "line 4" in broken.error["message"]
    assert filled("note", "list", "--project", "fresh").code == 3, "nothing was made"
    filled.ok("import", "out.jsonl", "--exact", "--project", "fresh")
    assert filled.ask("note", "list", "--project", "fresh") == filled.ask("note", "list")
    assert filled("import", "missing.jsonl", "--project", "fresh").code == 3
    ran = filled("import", "-", "--project", "another")
    assert ran.code == 2
    assert "Nothing was imported" in ran.err


def test_a_merge_adds_what_is_new_and_stops_at_what_differs(filled: Cli) -> None:
    exported = filled.ok("export")
    filled.ok("init", "--project", "two")
    filled.ok("memory", "write", "other", "kept", "--project", "two")
    assert filled.ask("import", "-", "--merge", "--project", "two", stdin=exported)["imported"] > 4
    assert filled.ok("memory", "show", "other", "--project", "two") == "kept\n"
    filled.ok("memory", "write", "release", "changed", "--project", "two")
    assert filled("import", "-", "--merge", "--project", "two", stdin=exported).code == 4


def test_a_backup_is_a_store(filled: Cli, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    assert filled.ask("backup", str(copy)) == {"backup": str(copy)}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    exported = filled.ok("export")
    assert filled.ok("export", "--store", str(copy), "--project", "default") == exported
    again = filled("backup", str(copy))
    assert again.code == 4
    assert "exists already" in again.err
    for end in ("", "-wal", "-shm", ".lock"):
        Path(f"{filled.store}{end}").unlink(missing_ok=True)
    copy.rename(filled.store)
    assert filled.ok("export") == exported


# --- doctor -----------------------------------------------------------------------------------------------------------


def findings(cli: Cli, *args: str) -> tuple[int, dict[str, tuple[str, str]]]:
    ran = cli("doctor", "--json", *args)
    reply = json.loads(ran.out)
    assert reply["ok"] == (ran.code == 0)
    return ran.code, {one["name"]: (one["state"], one["detail"]) for one in reply["findings"]}


def test_a_healthy_store(filled: Cli) -> None:
    code, found = findings(filled)
    assert code == 0
    assert {name for name, (state, _) in found.items() if state == "ok"} >= {
        *("opens", "file", "checksums", "index", "permissions")
    }
    assert found["store place"] == ("info", f"{filled.store} (from: default)")
    assert "apsw 3." in found["version"][1]
    assert f"schema {SCHEMA}" in found["opens"][1]
    assert "\nok\tchecksums\t" in filled.ok("doctor")


def test_a_store_that_is_not_there_is_not_made(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, found = findings(cli)
    assert (code, found["store"][0]) == (0, "info")
    assert sorted(os.listdir(cli.folder)) == [".git"]
    other = tmp_path / "named.db"
    code, found = findings(cli, "--store", str(other))
    assert (code, found["store"][0]) == (5, "problem")
    assert found["store place"][1].endswith("(from: --store)")
    monkeypatch.setenv("LIMPET_STORE", str(other))
    code, found = findings(cli)
    assert (code, found["store"][0]) == (5, "problem")
    assert found["store place"][1].endswith("(from: environment)")
    assert not other.exists()


def test_settings_name_their_origin(cli: Cli) -> None:
    path = configure('store = "elsewhere.db"\nproject = "shared"\n')
    _, found = findings(cli)
    assert found["store place"][1] == f"{path.parent / 'elsewhere.db'} (from: configuration)"
    assert found["project"][1] == f"shared (from: configuration), in {cli.folder}"
    _, found = findings(cli, "--project", "mine")
    assert found["project"][1] == f"mine (from: --project), in {cli.folder}"
    configure("")
    _, found = findings(cli)
    assert found["project"][1] == f"project (from: default), in {cli.folder}"


def test_a_file_that_is_no_store_is_left_alone(cli: Cli) -> None:
    project_folder(cli.folder).make()
    for data in (b"this is not a database, but it is long enough to look like one" * 20, b"short"):
        cli.store.write_bytes(data)
        code, found = findings(cli)
        assert code == 5
        assert "is not a Limpet store" in found["store"][1]
        assert cli("note", "add", "x").code == 5
        assert cli.store.read_bytes() == data


def test_the_database_of_another_program_is_left_alone(cli: Cli) -> None:
    project_folder(cli.folder).make()
    foreign = apsw.Connection(str(cli.store))
    foreign.execute("CREATE TABLE theirs(x)")
    foreign.close()
    code, found = findings(cli)
    assert code == 5
    assert "database of another program" in found["store"][1]


def test_a_newer_store_is_left_alone(filled: Cli) -> None:
    newer = apsw.Connection(str(filled.store))
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    code, found = findings(filled)
    assert code == 5
    assert "later Limpet (schema 99" in found["store"][1]
    assert filled("note", "list").code == 5


def test_damage_is_found_and_named(filled: Cli) -> None:
    damaged = apsw.Connection(str(filled.store))
    damaged.execute("UPDATE entries SET content = 'forged' WHERE kind = 'memory'")
    damaged.close()
    code, found = findings(filled)
    assert code == 5
    assert found["checksums"] == ("problem", "memory 'release' of project 'default'")
    shown = filled("memory", "show", "release")
    assert (shown.code, shown.out) == (5, "")


def test_a_store_that_others_can_read_is_a_problem(filled: Cli) -> None:
    filled.store.chmod(0o644)
    code, found = findings(filled)
    assert code == 5
    assert found["permissions"][0] == "problem"
    assert f"chmod 600 '{filled.store}'" in found["permissions"][1]


@pytest.mark.parametrize(
    ("store", "shown"),
    [
        ("postgresql://user:pass@host:1/db", "postgresql://user:…@host:1/db"),
        ("postgresql://user:p:a@s/s@host/db?sslmode=require", "postgresql://user:…@host/db?sslmode=require"),
        ("postgresql://host/db?user=u&password=pass&x=y", "postgresql://host/db?user=u&password=…&x=y"),
        ("postgresql://user@host/db", "postgresql://user@host/db"),
        ("sqlite:///some/where.db", "/some/where.db"),
    ],
)
def test_an_address_is_shown_without_its_password(store: str, shown: str) -> None:
    assert shown_place(store) == shown


def test_passwords_are_not_shown(cli: Cli) -> None:
    ran = cli("doctor", "--store", "postgresql://user:sekret@127.0.0.1:1/db?password=sekret")
    assert "sekret" not in ran.out + ran.err
    assert ran.code == 5


def test_a_postgresql_store_is_looked_after_in_the_same_way(cli: Cli, postgres_url: str, tmp_path: Path) -> None:
    place = ("--store", postgres_url, "--project", "p")
    cli.ok("note", "add", "-", *place, stdin=ODD)
    cli.ok("pad", "write", "# Plan", "--session", "s", *place)
    assert cli.ok("pad", "show", *place) == "# Plan\n"
    exported = cli.ok("export", *place)
    cli.ok("import", "-", "--exact", "--project", "p", stdin=exported)  # into SQLite
    header, *kept = cli.ok("export", "--project", "p").splitlines()
    assert json.loads(header)["project"] == "default", "a store of its own has one project"
    assert kept == exported.splitlines()[1:]
    code, found = findings(cli, *place)
    assert code == 0
    assert found["checksums"][0] == "ok"
    assert not (cli.folder / "postgresql:").exists()
