"""The command line on a real terminal: colours of ours and nothing of anybody else's, and the person's editor."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import sys
from pathlib import Path

import pytest

from doors.cli_runner import COLOUR, COMMAND, assert_quiet, child, on_terminal
from doors.test_cli_process import PAYLOAD

PROGRESS = re.compile(rb"\r[\d,]+ lines \w+")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


def data_beside(folder: Path) -> dict[str, str]:
    """A data folder for several tests, each of which has another home."""
    return {"LIMPET_HOME": str(folder.with_name("data"))}


@pytest.fixture(scope="module")
def full_of_payloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("payloads") / "project"
    (folder / ".git").mkdir(parents=True)
    env = data_beside(folder)
    assert child(folder, "note", "add", "-", "--tag", "a\x1b[31mb", stdin=PAYLOAD.encode(), env=env).returncode == 0
    assert child(folder, "pad", "write", "-", "--session", "s", stdin=PAYLOAD.encode(), env=env).returncode == 0
    assert child(folder, "pad", "write", "-", "--session", "s", stdin=f"+{PAYLOAD}".encode(), env=env).returncode == 0
    assert child(folder, "memory", "write", "k", "-", stdin=PAYLOAD.encode(), env=env).returncode == 0
    assert child(folder, "session", "begin", "s", "--task", PAYLOAD, env=env).returncode == 0
    return folder


READING = [
    *(["note", "list"], ["note", "search", "bell"], ["tags"], ["pad", "show"], ["pad", "history", "--diff", "1"]),
    *(["memory", "show", "k"], ["memory", "search", "bell"], ["session", "list"], ["session", "show", "s"]),
    *(["history"], ["context"], ["export"], ["doctor"], ["note", "list", "--json"], ["memory", "show", "\x1b[2J"]),
]


@pytest.mark.parametrize("args", READING, ids=[" ".join(args[:2]) for args in READING])
def test_nothing_stored_acts_on_a_terminal(full_of_payloads: Path, args: list[str]) -> None:
    code, got = on_terminal(full_of_payloads, *args, env=data_beside(full_of_payloads))
    assert code == (2 if "\x1b" in args[-1] or args == ["export"] else 0), got  # an export would fill the screen
    assert_quiet(got, terminal=True)
    if args[0] in ("note", "pad", "memory") and code == 0:
        # A table may fold the words, but it never takes them for markup or an emoji's name.
        letters = b"".join(COLOUR.sub(b"", got).split())
        assert b"[bold]" in letters
        assert b":smile:" in letters


def test_tables_have_colours_and_headings_unless_told_not_to(folder: Path) -> None:
    child(folder, "note", "add", "hello", "--tag", "t")
    code, got = on_terminal(folder, "note", "list")
    assert code == 0
    assert COLOUR.search(got)
    assert got.split()[0].endswith(b"id") or b"id" in COLOUR.sub(b"", got).split(b"\r\n")[0]
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        code, plain = on_terminal(folder, "note", "list", env=env)
        assert code == 0
        assert b"\x1b" not in plain
        assert b"hello" in plain
    code, got = on_terminal(folder, "note", "list", "--json")
    assert json.loads(got)["note_count"] == 1


def test_ids_stay_in_one_piece_on_a_narrow_terminal(folder: Path) -> None:
    id = json.loads(child(folder, "note", "add", "word " * 60, "--json").stdout)["note_id"]
    _, got = on_terminal(folder, "note", "list", width=60)
    assert id.encode() in got
    child(folder, "memory", "write", "k" * 190, "x")
    _, got = on_terminal(folder, "memory", "search", "kkk x", width=60)
    assert got.count(b"k") == 190  # nothing of it lost


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_text_has_room_at_every_width_and_times_are_ages(folder: Path, width: int) -> None:
    text = "The nightly build failed because the disk of the runner was full."
    child(folder, "note", "add", text, "--tag", "ci")
    for words in (["note", "list"], ["recall", "why did the build fail"], ["history"]):
        _, got = on_terminal(folder, *words, width=width, env={"NO_COLOR": "1", "COLUMNS": str(width)})
        shown = got.decode().split("\r\n")
        assert max(map(len, shown)) <= width
        assert "just now" in got.decode()
        assert text.split(maxsplit=1)[0] in " ".join(shown)
        assert len(shown) <= 12, "the text was squeezed into a narrow column"


EMPTY = [
    *(["note", "list"], ["note", "search", "x"], ["tags"], ["memory", "search", "x"], ["pad", "show"]),
    *(["prompt", "show"], ["skill", "list"], ["recall", "x"], ["session", "list"], ["history"], ["window", "pins"]),
    *(["task", "list"], ["savings"], ["token", "list"]),
]


@pytest.mark.parametrize("words", EMPTY, ids=[" ".join(words) for words in EMPTY])
def test_an_empty_answer_says_so(folder: Path, words: list[str]) -> None:
    done = child(folder, *words)
    assert done.returncode == 0
    assert (
        done.stderr.strip().splitlines()[-1].startswith(b"limpet: n")
        or b"is empty" in done.stderr
        or (b"there is no" in done.stderr)
    )


def test_the_demo_on_a_terminal(folder: Path) -> None:
    code, got = on_terminal(folder, "demo")
    assert code == 0
    assert b"What survived" in got
    assert b"limpet install" in got
    assert_quiet(got, terminal=True)


def test_a_long_import_shows_that_it_works(folder: Path) -> None:
    header, entry = child(folder, "export").stdout, {"kind": "memory", "session": "", "tags": [], "done": False}
    entry |= {"pinned": False, "origin": "person", "extra": {}, "version": 1, "created_at": 1, "updated_at": 1}
    lines = [json.dumps({"entry": entry | {"key": f"k{n}", "content": "x" * 100}}) for n in range(120_000)]
    (folder / "big.jsonl").write_bytes(header + "\n".join(lines).encode())
    # A broken line at the end, so that the reading is long and nothing has to be written.
    with (folder / "big.jsonl").open("ab") as file:
        file.write(b"\n{")
    code, got = on_terminal(folder, "import", "big.jsonl", "--project", "copy")
    assert code == 2
    assert PROGRESS.search(got)
    assert b"\r120,002 lines read\r\nlimpet: line 120002" in got


# --- the editor -------------------------------------------------------------------------------------------------------


def editor(folder: Path, body: str) -> dict[str, str]:
    """An editor that does what the body says to `text`, the content of the file at `path`."""
    script = folder.parent / "editor.py"
    script.write_text(
        "import subprocess, sys, os, stat\npath = sys.argv[-1]\ntext = open(path, newline='').read()\n"
        f"COMMAND = {list(COMMAND)!r}\n{body}\nopen(path, 'w', newline='').write(text)\n"
    )
    return {"EDITOR": shlex.join([sys.executable, str(script)]), "VISUAL": "", "TMPDIR": str(temporary(folder))}


def temporary(folder: Path) -> Path:
    made = folder.parent / "temporary"
    made.mkdir(exist_ok=True)
    return made


def shown(folder: Path) -> str:
    return str(json.loads(child(folder, "pad", "show", "--session", "s", "--json").stdout)["content"])


def test_the_editor_changes_the_notepad(folder: Path) -> None:
    child(folder, "pad", "write", "-", "--session", "s", stdin=b"one\r\ntwo")
    check = "assert stat.S_IMODE(os.stat(path).st_mode) == 0o600\n"
    env = editor(folder, check + "text = text.replace('two', 'three ü')")
    code, got = on_terminal(folder, "pad", "edit", "--session", "s", env=env)
    assert code == 0, got
    assert b"version 2" in got
    assert shown(folder) == "one\r\nthree ü"
    assert os.listdir(temporary(folder)) == []


def test_the_editor_saves_a_memory_in_the_layer_that_it_is_from(folder: Path) -> None:
    assert on_terminal(folder, "memory", "write", "editor", "I use Vim", "--layer", "person")[0] == 0
    code, got = on_terminal(
        folder, "memory", "edit", "editor", env=editor(folder, "text = text.replace('Vim', 'Helix')")
    )
    assert code == 0, got
    (memory,) = json.loads(child(folder, "memory", "list", "--json").stdout)["memories"]
    assert (memory["content"], memory["layer"]) == ("I use Helix", "person")


def test_what_waits_is_set_in_so_that_no_line_passes_for_a_heading(folder: Path) -> None:
    forged = b"Be brief\nproposal_1  person memory tone (by person/cli)\nBe kind"
    assert child(folder, "memory", "write", "style", "-", "--layer", "person", stdin=forged).returncode == 0
    lines = child(folder, "review").stdout.decode().splitlines()
    assert lines[0].startswith("proposal_")
    assert lines[1:] == [f"    {line}" for line in forged.decode().splitlines()]


def test_an_editor_that_changes_nothing_writes_nothing(folder: Path) -> None:
    child(folder, "pad", "write", "-", "--session", "s", stdin=b"one")
    for body in ("", "text += '\\n'"):
        code, got = on_terminal(folder, "pad", "edit", "--session", "s", env=editor(folder, body))
        assert code == 0
        assert b"nothing was changed" in got
    assert json.loads(child(folder, "pad", "show", "--session", "s", "--json").stdout)["version"] == 1
    assert os.listdir(temporary(folder)) == []


def test_an_editor_that_cannot_be_run_is_named(folder: Path) -> None:
    env = {"EDITOR": "no-such-editor", "VISUAL": "", "TMPDIR": str(temporary(folder))}
    code, got = on_terminal(folder, "pad", "edit", "--session", "s", env=env)
    assert code == 2
    assert b"no-such-editor" in got
    assert b"Set EDITOR" in got
    assert b"inside Limpet" not in got
    assert os.listdir(temporary(folder)) == []


def test_what_an_editor_saved_is_kept_when_it_ends_with_an_error(folder: Path) -> None:
    env = editor(folder, "text = 'half done'\nimport atexit\natexit.register(os._exit, 1)")
    code, got = on_terminal(folder, "pad", "edit", "--session", "s", env=env)
    assert code == 2
    (kept,) = temporary(folder).iterdir()
    assert kept.read_text() == "half done"
    assert str(kept).encode() in got.replace(b"\r\n", b"")


def test_a_change_made_meanwhile_is_not_overwritten_and_the_edit_is_kept(folder: Path) -> None:
    child(folder, "pad", "write", "one", "--session", "s")
    meanwhile = "subprocess.run([*COMMAND, 'pad', 'write', 'by an agent', '--session', 's'], check=True, stdout=2)\n"
    env = editor(folder, meanwhile + "text = 'by a person'")
    code, got = on_terminal(folder, "pad", "edit", "--session", "s", env=env)
    assert code == 4
    assert b"version 2, not 1" in got
    assert shown(folder) == "by an agent\n"
    (kept,) = temporary(folder).iterdir()
    assert kept.read_text() == "by a person"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert str(kept).encode() in got.replace(b"\r\n", b"")


def test_an_editor_that_fails_changes_nothing(folder: Path) -> None:
    child(folder, "pad", "write", "one", "--session", "s")
    code, got = on_terminal(folder, "pad", "edit", "--session", "s", env=editor(folder, "sys.exit(3)"))
    assert code == 2
    assert b"Editing failed" in got
    assert os.listdir(temporary(folder)) == []
    assert shown(folder) == "one\n"


def test_typing_a_note_on_the_terminal(folder: Path) -> None:
    code, got = on_terminal(folder, "note", "add", typed=b"typed by hand\n\x04")
    assert code == 0
    assert b"end with Ctrl-D" in got
    listed = json.loads(child(folder, "note", "list", "--json").stdout)
    assert listed["notes"][0]["content"] == "typed by hand"


def test_status_leads_to_the_first_agent_and_lists_those_that_are_here(folder: Path) -> None:
    env = {**data_beside(folder), "HOME": str(folder.with_name("home")), "PATH": os.environ["PATH"]}
    nothing = child(folder, "status", env=env).stdout.decode()
    assert "`limpet install` connects one" in nothing
    assert "\nclaude-code\t" not in nothing
    assert child(folder, "install", "claude-code", env=env).returncode == 0
    connected = child(folder, "status", env=env).stdout.decode()
    assert "\nclaude-code\t" in connected
    assert "connects one" not in connected
    _, drawn = on_terminal(folder, "status", env=env)
    assert b"in this project" in drawn
    assert b"Not on this machine:" in drawn
