"""`limpet export --markdown`: a folder that people read and git can diff."""

from __future__ import annotations

import os
from pathlib import Path

import limpet
from doors.cli_runner import Cli
from doors.test_cli import cli  # noqa: F401 - the fixture

SECRET = "AKIAIOSFODNN7EXAMPLE"


def exported(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".limpet-export")
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}


def filled(cli: Cli) -> None:  # noqa: F811
    cli.ok("note", "add", "Casts break LL(1)", "--tag", "grammar")
    cli.ok("note", "add", f"the key is {SECRET}")
    cli.ok("memory", "write", "../../etc/passwd", "a key is no path")
    cli.ok("memory", "write", "a.b", "one")
    cli.ok("memory", "write", "A.b", "another")
    cli.ok("memory", "write", "con", "a name that Windows keeps")
    cli.ok("pad", "write", "# Plan\n- [ ] casts", "--session", "parser")
    cli.ok("handoff", "write", "Next: casts")
    cli.ok("output", "keep", "pytest", stdin="a line\n" * 2_000)
    with limpet.open(str(cli.store), session="talk") as hold:
        call = limpet.Call("c1", "run", '{"x": "```"}')
        talk = [limpet.user("why?"), limpet.assistant("", call), limpet.result("c1", "because")]
        hold.session().window.next(talk, limit=100_000)


def test_everything_is_there_to_read(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    filled(cli)
    folder = tmp_path / "notes"
    assert "files written" in cli.ok("export", "--markdown", str(folder))
    files = exported(folder)
    text = "\n".join(files.values())
    for piece in (
        "Casts break LL(1)",
        "a key is no path",
        "# Plan\n- [ ] casts",
        "Next: casts",
        "because",
        "a line\na line",
    ):
        assert piece in text
    assert SECRET not in text
    (note,) = [text for text in files.values() if "Casts break" in text]
    assert 'tags: ["grammar"]' in note
    assert {os.path.dirname(path) for path in files} >= {"notes", "memory", "notepads", "handoffs", "outputs"}
    assert sum("a.b" in path.lower() for path in files) == 2
    assert all(path.split("/")[1] not in ("con.md", "passwd.md") for path in files)
    assert not (tmp_path / "etc").exists()


def test_it_is_written_again_in_place_and_nothing_else_is_touched(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    filled(cli)
    folder = tmp_path / "notes"
    cli.ok("export", "--markdown", str(folder))
    before = exported(folder)
    cli.ok("export", "--markdown", str(folder))
    assert exported(folder) == before, "the same project gives the same files"
    (folder / "mine.txt").write_text("a person's")
    cli.ok("memory", "delete", "con")
    assert cli.ask("export", "--markdown", str(folder))["deleted"] == 1
    assert (folder / "mine.txt").read_text() == "a person's"
    assert set(before) - set(exported(folder)) == {path for path in before if "/_con" in path or "/con" in path}


def test_a_file_that_a_person_put_there_is_not_overwritten(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "notes"
    cli.ok("memory", "write", "a", "one")
    cli.ok("export", "--markdown", str(folder))
    (folder / "memory" / "b.md").write_text("a person's")
    cli.ok("memory", "write", "b", "two")
    assert cli("export", "--markdown", str(folder)).code == 4
    assert (folder / "memory" / "b.md").read_text() == "a person's"
    (folder / "memory" / "b.md").unlink()
    cli.ok("export", "--markdown", str(folder))
    assert "two" in exported(folder)["memory/b.md"]


def test_a_folder_that_is_not_its_own_is_refused(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    filled(cli)
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.md").write_text("precious")
    ran = cli("export", "--markdown", str(full))
    assert (ran.code, (full / "thesis.md").read_text()) == (4, "precious")
    assert sorted(os.listdir(full)) == ["thesis.md"]
    trap = tmp_path / "trap"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.md").write_text("precious")
    trap.mkdir()
    (trap / ".limpet-export").write_text("notes/x.md\n../elsewhere/x.md\n/etc/passwd\n")
    (trap / "notes").symlink_to(tmp_path / "elsewhere")
    assert cli("export", "--markdown", str(trap)).code == 4
    assert os.listdir(tmp_path / "elsewhere") == ["x.md"]
