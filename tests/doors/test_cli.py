"""The command line in this process: every command, every rule about sessions, every kind of error."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

import limpet
from doors.cli_runner import COMMAND, Cli
from limpet.catalogue.table import for_people
from limpet.clients import session_variables
from limpet.doors.cli.commands import recognise
from limpet.doors.cli.run import ended_by
from limpet.errors import LimpetError
from person import store_of


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in ("LIMPET_SESSION", *session_variables()):
        monkeypatch.delenv(name, raising=False)
    return Cli(folder, capsys, monkeypatch)


# --- notes ------------------------------------------------------------------------------------------------------------


def test_a_note_from_beginning_to_end(cli: Cli) -> None:
    added = cli.ask("note", "add", "Casts break LL(1)", "--tag", "Grammar", "--tag", "parser")
    assert added == {"note_id": added["note_id"], "total_notes": 1, "total_tags": 2}
    id = added["note_id"]
    line = cli.ok("note", "list")
    assert line.split("\t")[0] == id
    assert line.endswith("\tGrammar, parser\tCasts break LL(1)\n")
    assert cli.ok("note", "search", "ll(1)").split("\t")[:2] == [id, "exact"]
    assert cli.ok("tags") == "Grammar\t1\nparser\t1\n"
    assert cli.ask("note", "update", id, "Casts need lookahead", "--tag", "casts")["note"]["tags"] == ["casts"]
    assert cli.ask("note", "update", id, "--no-tags")["note"]["tags"] == []
    assert cli.ask("note", "update", id, "--done")["note"]["done"] is True
    assert cli.ok("note", "list") == ""
    assert cli.ok("note", "list", "--all").split("\t")[2] == "done"
    assert "done" not in cli.ask("note", "update", id, "--open")["note"]
    assert cli.ok("note", "delete", id).startswith(f"{id} deleted")
    assert cli.ok("note", "list") == ""
    assert "delete_note" in cli.ok("undo")
    assert cli.ok("note", "list").endswith("\tCasts need lookahead\n")


def test_what_a_search_finds_beyond_the_words_is_marked(cli: Cli) -> None:
    cli.ok("note", "add", "The parser needs two tokens of lookahead")
    assert cli.ok("note", "search", "lookahead of a parser or lexer").split("\t")[1] == "related"


def test_what_is_not_shown_is_counted(cli: Cli) -> None:
    for number in range(3):
        cli.ok("note", "add", f"number {number}")
    ran = cli("note", "list", "--limit", "2")
    assert len(ran.out.splitlines()) == 2
    assert ran.err.startswith("limpet: 1 more")
    assert cli.ask("note", "list", "--limit", "2")["left_out"] == 1


@pytest.mark.parametrize("argument", [["-"], []])
def test_a_note_from_standard_input(cli: Cli, argument: list[str]) -> None:
    cli.ok("note", "add", *argument, stdin="one\ntwo\n")
    assert cli.ask("note", "list")["notes"][0]["content"] == "one\ntwo"
    assert cli.ok("note", "list").endswith("\tone\\ntwo\n")  # one line an entry


def test_input_that_is_not_utf8_is_refused_with_its_place(cli: Cli) -> None:
    ran = cli("note", "add", "-", "--json", stdin=b"caf\xe9")
    assert ran.code == 2
    assert ran.error["code"] == "unstorable"
    assert "position 4" in ran.error["message"]
    assert cli.ask("note", "list")["notes"] == []


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_notes_are_written_to_one_session_and_looked_for_in_all(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.ok("note", "add", "mine")
    cli.ok("note", "add", "named", "--session", "parser")
    monkeypatch.setenv("LIMPET_SESSION", "from-outside")
    cli.ok("note", "add", "from the environment")
    monkeypatch.delenv("LIMPET_SESSION")
    assert len(cli.ask("note", "list")["notes"]) == 3
    for session in ("cli", "parser", "from-outside"):
        assert len(cli.ask("--session", session, "note", "list")["notes"]) == 1
        assert len(cli.ask("note", "search", "--session", session)["notes"]) == 1
    assert cli.ask("tags")["total_notes"] == 3
    assert cli.ask("tags", "--session", "parser")["total_notes"] == 1


def test_options_may_stand_on_either_side_and_the_later_one_counts(cli: Cli, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")
    cli.ok("init", "--store", other)
    cli.ok("--store", other, "--project", "a", "note", "add", "one")
    cli.ok("note", "add", "two", "--store", other, "--project", "b")
    assert not cli.store.exists()
    assert cli.ask("--project", "a", "note", "list", "--store", other)["note_count"] == 1
    cli.ok("output", "keep", "make", "--store", other, "--project", "c", stdin="done\n" * 2_000)
    made = cli.ask("token", "create", "--name", "ci", "--scope", "read", "--store", other, "--project", "later")
    assert made["projects"] == ["later"]
    ran = cli("--project", "a", "note", "list", "--store", other, "--project", "none")
    assert (ran.code, ran.err) == (
        3,
        f"limpet: there is no project 'none' in {other}. The first thing that is written to a project begins it.\n",
    )
    assert json.loads(cli.ok("--json", "--store", other, "--project", "b", "note", "list"))["note_count"] == 1


def test_the_notepad_is_that_of_the_session_active_last_and_says_so(cli: Cli) -> None:
    ran = cli("pad", "show")
    assert ran.out == ""
    assert "session cli, the command line's own" in ran.err
    cli.ok("pad", "write", "of parser", "--session", "parser")
    cli.ok("pad", "write", "of lexer", "--session", "lexer")
    cli.ok("note", "add", "the command line's own session is not an agent's")
    ran = cli("pad", "show")
    assert ran.out == "of lexer\n"
    assert "session lexer, the one that was active last" in ran.err
    assert json.loads(cli("pad", "show", "--json").err)["notice"].startswith("this is session lexer")
    cli.ok("session", "archive", "lexer")
    assert cli("pad", "show").out == "of parser\n"
    named = cli("pad", "show", "--session", "lexer")
    assert (named.out, named.err) == ("of lexer\n", "")


def test_a_person_rewrites_an_agents_notepad_only_by_its_name(cli: Cli) -> None:
    cli.ok("pad", "write", "the agent's plan", "--session", "parser")
    for words in (
        ["write", "mine"],
        ["append", "mine"],
        ["edit", "--find", "plan", "--replace", "x"],
        ["restore", "1"],
    ):
        ran = cli("pad", *words)
        assert ran.code == 2, words
        assert "--session parser" in ran.err
    assert cli("pad", "show").out == "the agent's plan\n"
    cli.ok("pad", "append", "mine", "--session", "parser")
    assert cli("pad", "show").out == "the agent's plan\nmine\n"
    cli.ok("task", "begin", "Find out why casts fail")
    assert [task["description"] for task in cli.ask("task", "list")["tasks"]] == ["Find out why casts fail"]


def test_one_entry_is_shown_and_handoffs_are_listed(cli: Cli) -> None:
    id = cli.ask("note", "add", "Casts break LL(1)", "--tag", "grammar")["note_id"]
    ran = cli("note", "show", id)
    assert ran.out == "Casts break LL(1)\n"
    assert "of session cli, by person, tags: grammar" in ran.err
    assert cli.ask("note", "show", id)["session"] == "cli"
    assert cli("note", "show", "note_1").code == 3
    cli.ok("note", "edit", id, "Casts need two tokens")
    assert cli.ask("note", "show", id)["content"] == "Casts need two tokens"
    assert "nothing opens your editor" in cli("note", "edit", id).err
    assert "no handoffs yet" in cli("handoff", "list").err
    cli.ok("handoff", "write", "Next: errors")
    (row,) = cli.ok("handoff", "list").splitlines()
    assert row.split("\t")[0::5] == ["main/cli", "Next: errors"]


def test_a_conversation_is_read_in_the_terminal(cli: Cli) -> None:
    with limpet.open(str(cli.store), session="talk") as hold:
        talk = [limpet.user(f"question {n}") if n % 2 else limpet.assistant(f"answer {n}") for n in range(1, 31)]
        hold.session().window.next(talk, limit=100_000)
    ran = cli("messages", "--session", "talk", "--last", "2")
    assert "29 · user" in ran.out
    assert "answer 30" in ran.out
    assert "answer 28" not in ran.out
    asked = cli.ask("messages", "--session", "talk", "--first", "3")
    assert [row["position"] for row in asked["messages"]] == list(range(3, 23))
    assert asked["messages"][0]["text"] == "question 3"
    assert "--first 5 reads on" in cli("messages", "--session", "talk", "--first", "3", "--last", "2").err
    assert cli("messages", "--first", "0").code == 2


def test_status_says_what_is_kept_and_whether_hooks_are_off(cli: Cli) -> None:
    cli.ok("note", "add", "Casts break LL(1)")
    seen = cli.ask("status")
    assert seen["counts"] == {"notes": 1, "memory": 0, "handoffs": 0, "sessions": 1, "outputs": 0}
    assert (seen["hooks"], seen["trouble"]) == ("on", [])
    cli.ok("off")
    assert "Kept: 1 note, 0 memories" in cli.ok("status")
    assert "hooks of coding agents are off" in cli.ok("status")


def test_a_mistyped_import_says_what_there_is(cli: Cli) -> None:
    for words in (["transcrip", "claude-code"], ["nosuch.json"]):
        ran = cli("import", *words)
        assert ran.code == 3
        assert words[0] in ran.err
        assert "transcript, store, chatgpt, claude-chat, server-memory" in ran.err


def test_sessions_are_listed_shown_begun_and_archived(cli: Cli) -> None:
    assert cli.ok("session", "begin", "parser", "--task", "Port the parser") == "parser is active\n"
    cli.ok("pad", "write", "# Plan", "--session", "parser")
    assert cli.ask("session", "show", "parser")["notepad"] == "# Plan\n"
    assert "task\tPort the parser\n" in cli.ok("session", "show", "parser")
    assert cli.ok("session", "archive", "parser") == "parser is archived\n"
    assert "parser" not in cli.ok("session", "list")
    assert "parser\tarchived" in cli.ok("session", "list", "--all")
    assert cli.ok("session", "begin", "parser") == "parser is active\n"


# --- notepad ----------------------------------------------------------------------------------------------------------


def test_the_notepad_is_written_edited_compared_and_restored(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_SESSION", "s")
    assert cli.ok("pad", "write", "- [ ] casts").startswith("notepad is at version 1")
    cli.ok("pad", "append", "- [ ] errors")
    cli.ok("pad", "prepend", "# Plan")
    cli.ok("pad", "edit", "--find", "[ ]", "--replace", "[x]")
    assert cli.ok("pad", "show") == "# Plan\n- [x] casts\n- [ ] errors\n"
    cli.ok("pad", "edit", "--find", "- [", "--replace", "* [", "--all")
    cli.ok("pad", "edit", "--delete", "# Plan\n")
    assert cli.ok("pad", "show") == "* [x] casts\n* [ ] errors\n"
    assert [line.split("\t")[0] for line in cli.ok("pad", "history").splitlines()] == list("654321")
    assert len(cli.ok("pad", "history", "--limit", "2").splitlines()) == 2
    assert "-- [ ] casts\n" in cli.ok("pad", "history", "--diff", "1")
    cli.ok("pad", "restore", "1")
    assert cli.ok("pad", "show") == "- [ ] casts\n"
    assert cli.ask("pad", "show")["version"] == 7


def test_a_text_may_begin_like_a_list(cli: Cli) -> None:
    cli.ok("note", "add", "- one", "--tag", "- two")
    assert cli.ask("note", "list", "--tag", "- two")["notes"][0]["content"] == "- one"
    cli.ok("pad", "append", "-\tthree", "--session", "- four")
    assert cli.ok("pad", "show", "--session", "- four") == "-\tthree\n"
    assert "(- six)" in cli("note", "add", "five", "- six").err
    assert "\0" not in cli("note", "add", "five", "- six").err


def test_standard_input_becomes_the_notepad_exactly(cli: Cli) -> None:
    cli.ok("pad", "write", "-", stdin="no line break at the end")
    assert cli.ask("pad", "show")["content"] == "no line break at the end"
    cli.ok("pad", "append", stdin="\r\nmore")
    assert cli.ask("pad", "show")["content"] == "no line break at the end\r\nmore"
    cli.ok("pad", "write", "")
    assert cli.ask("pad", "show")["content"] == ""


def test_a_notepad_that_moved_on_is_not_overwritten(cli: Cli) -> None:
    cli.ok("pad", "write", "one")
    cli.ok("pad", "write", "two", "--if-version", "1")
    ran = cli("pad", "write", "three", "--if-version", "1")
    assert ran.code == 4
    assert "version 2, not 1" in ran.err
    assert cli.ok("pad", "show") == "two\n"


def test_a_notepad_over_its_budget_is_saved_and_warned_about(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_SET", "notepad_budget_tokens=2")
    ran = cli("pad", "write", "many more words than two tokens hold")
    assert ran.code == 0
    assert "its budget is 2" in ran.err
    assert "warning" in cli.ask("pad", "append", "more")


def test_editing_needs_a_terminal_or_options(cli: Cli) -> None:
    ran = cli("pad", "edit")
    assert ran.code == 2
    assert "--find" in ran.err
    assert cli("pad", "edit", "--delete", "x", "--find", "y").code == 2


def test_the_scratchpad(cli: Cli) -> None:
    assert cli.ok("scratch") == ""
    cli.ok("scratch", "one", "--mode", "append")
    cli.ok("scratch", "two", "--mode", "append")
    assert cli.ok("scratch") == "one\ntwo\n"
    cli.ok("scratch", "--mode", "clear")
    assert cli.ok("scratch") == ""
    assert cli.ok("scratch", "a quick note").startswith("note_")
    assert cli("scratch", "x", "--mode", "sideways").code == 2


# --- memory, handoff, history -----------------------------------------------------------------------------------------


def test_memory_is_written_found_and_pinned(cli: Cli) -> None:
    cli.ok("memory", "write", "release", "Tag, then build")
    cli.ok("memory", "write", "release", "-", "--append", stdin="Then tell people\n")
    assert cli.ok("memory", "show", "release") == "Tag, then build\nThen tell people\n"
    assert cli.ok("memory", "pin", "release") == "release pinned\n"
    assert cli.ok("memory", "search", "build").split("\t")[2] == "pinned"
    assert cli.ok("memory", "unpin", "release") == "release unpinned\n"
    assert "pinned" not in cli.ask("memory", "show", "release")


def test_every_handoff_that_waits_is_named(cli: Cli) -> None:
    cli.ok("handoff", "write", "From p1. More.", "--session", "p1")
    cli.ok("handoff", "write", "From p2. More.", "--session", "p2")
    ran = cli("handoff", "show")
    assert ran.out == "From p2. More.\n"
    assert "also waits on main: From p1. (--id main/p1)" in ran.err
    assert cli.ok("handoff", "show", "--id", "main/p1") == "From p1. More.\n"


def test_a_handoff_is_shown_to_a_new_session_and_looking_does_not_use_it_up(cli: Cli) -> None:
    assert cli("handoff", "show").code == 3
    assert cli.ok("handoff", "write", "Next: casts") == "handoff left for the next session\n"
    assert "replaces an earlier one" in cli.ok("handoff", "write", "Next: errors")
    ran = cli("handoff", "show")
    assert ran.out == "Next: errors\n"
    assert "not used yet" in ran.err
    for _ in range(2):
        assert "Next: errors" in cli.ok("context")
    assert "Next: errors" not in cli.ok("context", "--session", "cli")  # who wrote it need not read it
    assert cli.ask("handoff", "show")["used_by"] is None
    assert {one["id"] for one in cli.ask("session", "list")["sessions"]} == {"cli"}
    with limpet.open(str(cli.store)) as hold:
        session = hold.session("next")
        assert "Next: errors" in session.context()
        session.used()
    assert "used by next" in cli("handoff", "show").err


def test_history_says_who_and_undo_takes_back(cli: Cli) -> None:
    id = cli.ask("note", "add", "one")["note_id"]
    cli.ok("note", "update", id, "two")
    events = cli.ask("history", "--kind", "note", "--key", id)["events"]
    assert [(one["by"], one["operation"], one["after"]) for one in events] == [
        ("person/cli", "update_note", "two"),
        ("person/cli", "add_note", "one"),
    ]
    first = cli.ok("history", "--kind", "note", "--before", str(events[0]["seq"]), "--limit", "1").split("\t")
    assert first[0] == str(events[1]["seq"])
    assert cli("undo", str(events[1]["seq"])).code == 4
    assert cli.ok("undo") == f"change {events[0]['seq']} undone (update_note: note {id})\n"
    assert cli.ask("note", "list")["notes"][0]["content"] == "one"
    assert cli("history", "--kind", "nonsense").code == 2


# --- errors -----------------------------------------------------------------------------------------------------------

BAD = [
    (["note", "add", " "], "add_note", {"content": " "}, 2),
    (["note", "add", "x" * 4_001], "add_note", {"content": "x" * 4_001}, 2),
    (["note", "add", "x", *["--tag", "a"], "--tag", " "], "add_note", {"content": "x", "tags": ["a", " "]}, 2),
    (
        ["note", "add", "x", *(part for n in range(11) for part in ("--tag", str(n)))],
        "add_note",
        {"content": "x", "tags": [str(n) for n in range(11)]},
        2,
    ),
    (["note", "update", "note_1", "x"], "update_note", {"id": "note_1", "content": "x"}, 3),
    (["note", "update", "note_1"], "update_note", {"id": "note_1"}, 2),
    (["note", "delete", "note_1"], "delete_note", {"id": "note_1"}, 3),
    (["note", "list", "--limit", "0"], "list_notes", {"limit": 0}, 2),
    (["note", "search", "x", "--limit", "10000"], "search_notes", {"query": "x", "limit": 10_000}, 2),
    (["pad", "write", "x\ud800\n"], "write_notepad", {"content": "x\ud800\n"}, 2),
    (
        ["pad", "edit", "--find", "a", "--replace", "b"],
        None,
        {"operation": "find_replace", "find": "a", "replace": "b"},
        3,
    ),
    (["pad", "edit", "--find", "a"], None, {"operation": "find_replace", "find": "a"}, 2),
    (["pad", "restore", "9"], "restore_notepad", {"version": 9}, 3),
    (["pad", "write", "x\n", "--if-version", "4"], "write_notepad", {"content": "x\n", "expected_version": 4}, 4),
    (["memory", "write", "scratchpad", "x"], "write_memory", {"key": "scratchpad", "content": "x"}, 2),
    (["memory", "search", " "], "search_memory", {"query": " "}, 2),
    (["memory", "show", "nothing"], "read_memory", {"key": "nothing"}, 3),
    (["session", "show", "nobody"], "show_session", {"id": "nobody"}, 3),
    (["undo"], "undo", {}, 3),
    (["undo", "77"], "undo", {"seq": 77}, 3),
    (["undo", "last"], "undo", {"seq": "last"}, 2),
    (["note", "list", "--limit", "1.5"], "list_notes", {"limit": "1.5"}, 2),
]


@pytest.mark.parametrize(("args", "operation", "arguments", "code"), BAD, ids=[" ".join(row[0])[:40] for row in BAD])
def test_an_error_says_the_same_as_the_library(
    cli: Cli, args: list[str], operation: str | None, arguments: dict[str, object], code: int
) -> None:
    with limpet.open(str(cli.store), session="cli") as hold, pytest.raises(LimpetError) as problem:
        hold.call(operation or "update_notepad", arguments)
    ran = cli(*args, "--json")
    assert ran.code == code == problem.value.exit_code
    assert json.loads(ran.err.splitlines()[-1]) == {
        "error": {"code": problem.value.code, "message": problem.value.message}
    }
    plain = cli(*args)
    assert plain.err.splitlines()[-1] == f"limpet: {for_people(problem.value.message, ' '.join(args[:2]))}"
    assert plain.out == ran.out == ""
    assert cli.ask("history")["events"] == []


def test_every_session_can_be_read_but_not_written(cli: Cli) -> None:
    ran = cli("note", "add", "x", "--session", "*")
    assert ran.code == 2
    assert "it stands for every session" in ran.err


@pytest.mark.parametrize("args", [["nonsense"], ["note", "add", "x", "--nonsense"], ["note", "update"]])
def test_a_mistake_in_the_command_is_explained_by_click(cli: Cli, args: list[str]) -> None:
    ran = cli(*args)
    assert ran.code == 2
    assert ran.out == ""
    assert "Usage: limpet" in ran.err
    assert cli(*args, "--json").error["code"] == "usage"
    assert not cli.store.exists()


def test_a_fault_of_ours_is_one_line(
    cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyError) as raised:
        raise KeyError("gone\x1b[2J")
    fault = raised.value
    assert ended_by(fault) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert line.startswith("limpet: something went wrong inside Limpet (KeyError: 'gone\\x1b[2J')")
    assert ended_by(fault, as_json=True) == 1
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "internal"
    monkeypatch.setenv("LIMPET_DEBUG", "1")
    assert ended_by(fault) == 1
    assert "Traceback" in capsys.readouterr().err


def test_bad_settings_are_explained(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_SET", "note_max_chars=many")
    assert cli("note", "list").code == 2
    ran = cli("doctor")
    assert ran.code == 5
    assert "problem\tsettings\tthe setting note_max_chars is 'many'" in ran.out


# --- setting up -------------------------------------------------------------------------------------------------------


def test_init_makes_a_private_store_outside_of_the_folder(cli: Cli) -> None:
    ran = cli("init")
    assert ran.code == 0
    assert f"{cli.store} is ready" in ran.out
    assert '"args": [' in ran.out
    assert stat.S_IMODE(cli.store.stat().st_mode) == 0o600
    assert stat.S_IMODE(cli.store.parent.stat().st_mode) == 0o700
    assert sorted(os.listdir(cli.folder)) == [".git"]
    assert "was there already" in cli.ok("init")
    assert cli.ask("init")["made"] is False


def test_init_in_a_folder_of_no_project_makes_it_one(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lonely, below = tmp_path / "lonely", tmp_path / "lonely" / "below"
    below.mkdir(parents=True)
    monkeypatch.chdir(lonely)
    for words, folder in (([], lonely), ([str(below)], below)):
        reply = cli.ask("init", *words)
        assert (reply["store"], reply["folder"], reply["project"]) == (str(store_of(folder)), str(folder), folder.name)
        assert store_of(folder).exists()
    assert cli("init", str(tmp_path / "not there")).code == 2
    assert not list(below.iterdir())


def test_tools_have_their_price(cli: Cli) -> None:
    reply = cli.ask("tools")
    assert set(reply["profiles"]) == {"core", "coding", "full", "agent"}
    core = reply["profiles"]["core"]
    assert len(core["tools"]) <= 13
    assert core["tokens"] <= 1_200
    assert core["tokens"] < reply["profiles"]["full"]["tokens"]
    assert reply["tokenizer"].startswith("estimate")
    assert set(cli.ask("tools", "--profile", "core")["profiles"]) == {"core"}
    assert f"core\t(total)\t{core['tokens']}\t{core['bytes']}\n" in cli.ok("tools")
    assert cli("tools", "--profile", "huge").code == 2
    assert not cli.store.exists()


def test_the_demo_tells_its_story(cli: Cli) -> None:
    told = cli.ok("demo")
    assert told == cli.ok("demo")
    assert "two tokens of lookahead" in told
    assert len(cli.ask("demo")["survived"]) == 6
    assert not cli.store.exists()


def read(*words: str) -> tuple[object, object] | None:
    """The shared options and the values of a command that is read without click."""
    recognised = recognise(list(words))
    return recognised and recognised[1:]


def test_mcp_is_recognised_without_click() -> None:
    values = {"profile": "core", "structured": False, "no_handoff": False, "log_json": False, "traces": False}
    assert read("mcp") == ({}, values)
    assert read("mcp", "--profile", "full", "--session=s", "--store", "/x", "--project", "p") == (
        {"store": "/x", "project": "p", "session": "s"},
        {**values, "profile": "full"},
    )
    assert read("--store", "/x", "mcp") == ({"store": "/x"}, values)
    assert read("--store", "/x", "mcp", "--store", "/y") == ({"store": "/y"}, values)
    for unusual in (
        ["mcp", "--help"],
        ["mcp", "--store"],
        ["mcp", "mcp"],
        ["--profile", "full", "mcp"],
        ["mcp", "--traces=yes"],
        ["wrap", "--threshold", "0", "--", "x"],
        ["wrap", "--threshold", "many", "--", "x"],
        ["gateway"],
        ["output", "clear"],
        ["note"],
        ["note", "--json", "list"],
        [],
    ):
        assert read(*unusual) is None
    assert read("--store", "mcp") is None


def test_words_that_begin_with_a_dash_and_a_space_are_text() -> None:
    assert read("pad", "append", "- [ ] casts", "--session", "- s") == (
        {"session": "- s"},
        {"content": "- [ ] casts", "expected_version": None},
    )
    rest = {"replaces": None, "expires": None, "anchors": ()}
    assert read("note", "add", "-", "--tag=-x", "--tag", "--y") == ({}, {"content": "-", "tags": ("-x", "--y"), **rest})
    assert read("note", "add", "--", "--json") == ({}, {"content": "--json", "tags": (), **rest})
    wrapped = read("wrap", "--name", "n", "--", "npx", "-y", "--", "z")
    assert wrapped is not None
    assert "('npx', '-y', '--', 'z')" in str(wrapped)


def test_a_session_named_before_the_command_is_not_the_one_recall_looks_in() -> None:
    recalled = read("--session", "s", "recall", "x")
    assert recalled is not None
    assert recalled[0] == {"session": "s"}


def test_a_wrong_profile_makes_no_store(cli: Cli) -> None:
    for command in ("mcp", "serve"):
        ran = cli(command, "--profile", "huge")
        assert ran.code == 2
        assert "there is no profile 'huge'" in ran.err
    assert not cli.store.exists()
    assert cli("serve", "--token", "x", "--no-token").code == 2


def test_files_are_not_left_behind(cli: Cli) -> None:
    cli.ok("note", "add", "x")
    assert sorted(os.listdir(cli.folder)) == [".git"]


def test_words_that_people_type_by_habit(cli: Cli) -> None:
    assert cli("-V").out == cli("version").out == cli("--version").out
    assert cli("help", "note", "add").out == cli("note", "add", "--help").out
    assert cli("window", "--json").out == cli("window", "show", "--json").out
    assert cli("window", "--session", "x").code == 0


# --- completion -------------------------------------------------------------------------------------------------------


def completed(cli: Cli, words: str) -> list[str]:
    """What bash is offered for the last of these words."""
    env = {**os.environ, "_LIMPET_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    ran = subprocess.run(COMMAND, cwd=cli.folder, env=env, capture_output=True, text=True, check=True)
    return [line.partition(",")[2] for line in ran.stdout.splitlines() if line]


def test_values_are_completed(cli: Cli) -> None:
    assert completed(cli, "limpet note show ") == []
    assert not cli.store.exists(), "completing makes no store"
    id = cli.ask("note", "add", "Casts break LL(1)", "--tag", "grammar")["note_id"]
    cli.ok("memory", "write", "release", "Tag it")
    cli.ok("pad", "write", "# Plan", "--session", "parser")
    for words, expected in (
        ("limpet note show ", [id]),
        ("limpet note list --tag gr", ["grammar"]),
        ("limpet memory show rel", ["release"]),
        ("limpet pad show --session pa", ["parser"]),
        ("limpet install cod", ["codex"]),
        ("limpet tools --profile co", ["core", "coding"]),
        ("limpet recall --kind memo", ["memory"]),
    ):
        assert completed(cli, words) == expected, words
    for key in ("rel $(touch made)", "rel`id`", "rel;id"):  # a shell would run it
        cli.ok("memory", "write", key, "Tag it, and more")
    assert completed(cli, "limpet memory show rel") == ["release"]
