"""The memory tool over Limpet: each command, what it refuses, and that a path is a name and nothing more."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from hypothesis import given, settings
from hypothesis import strategies as st

import limpet
from limpet.adapters.anthropic_memory import LimpetAsyncMemoryTool, LimpetMemoryTool
from limpet.api import Limpet
from profiles import fewer_examples

ROOT = "/memories"


def do(hold: Limpet, command: str, path: str = "", **more: Any) -> str:
    paths = {"path": path} if path else {}
    return str(LimpetMemoryTool(hold.session("s")).call({"command": command, **paths, **more}))


def refused(hold: Limpet, command: str, path: str = "", **more: Any) -> str:
    changes = len(hold.history(limit=500))
    with pytest.raises(ToolError) as problem:
        do(hold, command, path, **more)
    assert len(hold.history(limit=500)) == changes, "what is refused changes nothing"
    return str(problem.value)


def test_the_tree_shows_everything(hold: Limpet) -> None:
    session = hold.session("s")
    empty = do(hold, "view", ROOT)
    assert empty.splitlines()[:2] == [
        "Here're the files and directories up to 2 levels deep in /memories:",
        "0B\t/memories",
    ]
    session.notepad.write("- [ ] casts")
    note = session.notes.add("Casts break LL(1)")
    hold.session("other").notes.add("Not of this session.")
    hold.session("other").handoff.write("Go on.")
    hold.memory.write("plan.md", "One.")
    hold.memory.write("team/people/ann.md", "Ann.")
    hold.memory.write("../odd", "No path.")
    kept = session.outputs.keep("fetch", "row\n" * 3_000).output
    assert kept is not None
    lines = do(hold, "view", ROOT).splitlines()
    assert lines[2:-2] == [
        "6B\t/memories/handoff.md",
        "11B\t/memories/notepad.md",
        "17B\t/memories/notes/",
        f"17B\t/memories/notes/{note.id}.md",
        "11.7KB\t/memories/outputs/",
        f"11.7KB\t/memories/outputs/{kept.id}.txt",
        "4B\t/memories/plan.md",
        "4B\t/memories/team/",
        "4B\t/memories/team/people/",
    ]
    assert lines[-2] == "[1 more are not shown.]"
    assert "outputs/ holds big tool results as they were and is read only" in lines[-1]
    assert do(hold, "view", f"{ROOT}/team/").splitlines()[1:] == [
        "4B\t/memories/team",
        "4B\t/memories/team/people/",
        "4B\t/memories/team/people/ann.md",
    ]
    assert do(hold, "view", f"{ROOT}/notes/{note.id}.md").endswith("\n     1\tCasts break LL(1)")


@pytest.mark.parametrize("path", ["plan.md", "a/b/c.txt", "notepad.md", "handoff.md"])
def test_a_file_is_created_viewed_and_edited(path: str, hold: Limpet) -> None:
    at = f"{ROOT}/{path}"
    assert refused(hold, "view", at) == f"The path {at} does not exist. Please provide a valid path."
    assert do(hold, "create", at, file_text="one\ntwo\nthree") == f"File created successfully at: {at}"
    assert do(hold, "view", at, view_range=[2, -1]).splitlines()[1:] == ["     2\ttwo", "     3\tthree"]
    edited = do(hold, "str_replace", at, old_str="two", new_str="2\n2 1/2")
    assert edited.splitlines()[1:] == ["     1\tone", "     2\t2", "     3\t2 1/2", "     4\tthree"]
    assert do(hold, "insert", at, insert_line=0, insert_text="zero\n") == f"The file {at} has been edited."
    assert [line[7:] for line in do(hold, "view", at).splitlines()[1:6]] == ["zero", "one", "2", "2 1/2", "three"]
    assert "did not appear verbatim in" in refused(hold, "str_replace", at, old_str="four", new_str="4")
    assert "in lines 3, 4, 4 of" in refused(hold, "str_replace", at, old_str="2", new_str="4")
    assert refused(hold, "insert", at, insert_line=99, insert_text="x").startswith(
        "Invalid `insert_line` parameter: 99"
    )
    assert refused(hold, "view", at, view_range=[9, 1]).startswith("Invalid `view_range` parameter")
    hold.undo()
    assert "zero" not in do(hold, "view", at)


def test_a_note_gets_an_id_and_is_deleted_as_a_note(hold: Limpet) -> None:
    made = do(hold, "create", f"{ROOT}/notes/first.md", file_text="A note.")
    at = made.rpartition(" ")[2]
    assert re.fullmatch(r"/memories/notes/note_\d+\.md", at)
    assert do(hold, "str_replace", at, old_str="A", new_str="My").endswith("My note.")
    assert [note.content for note in hold.session("s").notes.list(this_session=True)] == ["My note."]
    assert "already exists" in refused(hold, "create", at, file_text="x")
    other = hold.session("other").notes.add("Not of this session.")
    assert "does not exist" in refused(hold, "delete", f"{ROOT}/notes/{other.id}.md")
    assert do(hold, "delete", at) == f"Successfully deleted {at}"
    assert [event.operation for event in hold.history(kind="note")][:1] == ["delete_note"]
    hold.undo()
    assert [note.content for note in hold.session("s").notes.list(this_session=True)] == ["My note."]


def test_memory_is_renamed_and_deleted_whole_or_not_at_all(hold: Limpet) -> None:
    for name in ("one", "two"):
        do(hold, "create", f"{ROOT}/old/{name}.md", file_text=name)
    hold.memory.pin("old/one.md")
    assert do(hold, "rename", old_path=f"{ROOT}/old", new_path=f"{ROOT}/new/er").startswith("Successfully renamed")
    assert hold.memory.read("new/er/one.md").pinned
    assert "already exists" in refused(
        hold, "rename", old_path=f"{ROOT}/new/er/one.md", new_path=f"{ROOT}/new/er/two.md"
    )
    assert "in it" in refused(hold, "rename", old_path=f"{ROOT}/new", new_path=f"{ROOT}/new/er/deeper")
    assert "is a file" in refused(hold, "create", f"{ROOT}/new/er/one.md/x", file_text="x")
    assert "already exists" in refused(hold, "create", f"{ROOT}/new", file_text="x")
    assert "does not exist" in refused(hold, "rename", old_path=f"{ROOT}/old", new_path=f"{ROOT}/x")
    assert do(hold, "delete", f"{ROOT}/new") == f"Successfully deleted {ROOT}/new"
    assert "does not exist" in refused(hold, "delete", f"{ROOT}/new")
    hold.undo()
    hold.undo()
    assert {memory.key for memory in hold.memory.search("one two")} == {"new/er/one.md", "new/er/two.md"}


def test_what_cannot_be_changed_says_why(hold: Limpet) -> None:
    kept = hold.session("s").outputs.keep("fetch", "row\n" * 3_000).output
    assert kept is not None
    at = f"{ROOT}/outputs/{kept.id}.txt"
    for command, more in (
        ("create", {"file_text": "x"}),
        ("str_replace", {"old_str": "row", "new_str": "x"}),
        ("insert", {"insert_line": 0, "insert_text": "x"}),
        ("delete", {}),
    ):
        assert "outputs are kept as they were" in refused(hold, command, at, **more)
    hold.session("s").handoff.write("Go on.")
    assert "until it is used" in refused(hold, "delete", f"{ROOT}/handoff.md")
    assert "it is always there" in refused(hold, "delete", ROOT)
    assert "it is always there" in refused(hold, "delete", f"{ROOT}/notes")
    assert "only files of memory" in refused(hold, "rename", old_path=at, new_path=f"{ROOT}/x")
    assert "only files of memory" in refused(hold, "rename", old_path=f"{ROOT}/handoff.md", new_path=f"{ROOT}/x")
    assert "directory" in refused(hold, "create", f"{ROOT}/notes", file_text="x")
    assert do(hold, "create", f"{ROOT}/handoff.md", file_text="Better.").endswith("handoff.md"), "the last one counts"


def test_a_long_output_is_read_in_parts(hold: Limpet) -> None:
    kept = hold.session("s").outputs.keep("fetch", "".join(f"row {row} of many\n" for row in range(9_000))).output
    assert kept is not None
    first = do(hold, "view", f"{ROOT}/outputs/{kept.id}.txt")
    more = re.search(r"\[([\d,]+) of 9,000 lines\. view_range \[(\d+), -1\] shows more\.\]$", first)
    assert more is not None
    assert first.splitlines()[1] == "     1\trow 0 of many"
    go_on = int(more[2])
    rest = do(hold, "view", f"{ROOT}/outputs/{kept.id}.txt", view_range=[go_on, go_on + 1]).splitlines()
    assert rest[1:] == [f"{go_on:6}\trow {go_on - 1} of many", f"{go_on + 1:6}\trow {go_on} of many"]
    one_line = hold.session("s").outputs.keep("fetch", "x y " * 40_000).output
    assert one_line is not None
    assert do(hold, "view", f"{ROOT}/outputs/{one_line.id}.txt").endswith("[Line 1 is too long to be shown whole.]")
    assert "does not exist" in refused(hold, "view", f"{ROOT}/outputs/0123456789ab.txt")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"command": "format", "path": ROOT},
        {"command": "view"},
        {"command": "view", "path": 7},
        {"command": "view", "path": ROOT + "/x", "view_range": "1-2"},
        {"command": "create", "path": ROOT + "/x"},
        {"command": "create", "path": ROOT + "/x", "file_text": ""},
        {"command": "create", "path": ROOT + "/x", "file_text": "a\x00b"},
        {"command": "create", "path": ROOT + "/x", "file_text": "\ud800"},
        {"command": "create", "path": ROOT + "/scratchpad", "file_text": "x"},
        {"command": "str_replace", "path": ROOT + "/x", "old_str": ""},
        {"command": "insert", "path": ROOT + "/x", "insert_line": "1", "insert_text": "x"},
    ],
)
def test_a_command_that_is_not_one_is_told_so(given: dict[str, Any], hold: Limpet) -> None:
    with pytest.raises(ToolError) as problem:
        LimpetMemoryTool(hold).call(given)
    assert str(problem.value).endswith(".")
    with pytest.raises(ToolError) as again:
        asyncio.run(LimpetAsyncMemoryTool(hold).call(given))
    assert str(again.value) == str(problem.value)


OUTSIDE = [
    "../x", "..\\..\\x", "/etc/passwd", "//etc/passwd", "", ".", "~/.ssh/id_rsa", "$HOME/x", "/memoriesX/x",
    "/memories2",
    "memories/x", "/proc/self/cwd/etc/passwd", "/proc/self/fd/3", "C:\\x", "\\\\host\\share", "CON", "-rf",
    " /memories/x",
]  # fmt: skip
WRONG = [
    "../x", "sub/../../rootX", "sub/..", "NOTES.md/../..", "./x", "..\\..\\x", "\\\\host\\share", "C:\\x", "a//b", "/x",
    " x",
    "x ", "sub/ok\x00.md", "two\nlines", "notes/../plan.md", "notes/a/b", "outputs/a/b", "notepad.md/x", "x" * 300,
    "a/" * 5_000 + "x", "\u202e", "outputs/../../x", "scratchpad", "activity-log-2026-01-01",
]  # fmt: skip
NAMES = [
    "%2e%2e%2f",
    "..%252f",
    "..%c0%af",
    "....",
    "CON",
    "NUL",
    "a:b",
    "-rf",
    "x.",
    "~",
    "$HOME",
    "\u0435",
    "é",
    "e\u0301",
]
COMMANDS: list[dict[str, Any]] = [
    {"command": "view"},
    {"command": "create", "file_text": "text"},
    {"command": "str_replace", "old_str": "text", "new_str": "more"},
    {"command": "insert", "insert_line": 0, "insert_text": "more"},
    {"command": "delete"},
]


@pytest.mark.parametrize("path", [*OUTSIDE, *(f"{ROOT}/{path}" for path in WRONG)])
def test_a_path_that_leads_elsewhere_is_refused_by_every_command(path: str, hold: Limpet, tmp_path: Path) -> None:
    hold.memory.write("plan.md", "text")
    changes, before = len(hold.history()), sorted(tmp_path.iterdir())
    tool = LimpetMemoryTool(hold)
    calls = [{**command, "path": path} for command in COMMANDS]
    calls += [{"command": "rename", "old_path": path, "new_path": f"{ROOT}/new"}]
    calls += [{"command": "rename", "old_path": f"{ROOT}/plan.md", "new_path": path}]
    for call in calls:
        with pytest.raises(ToolError):
            tool.call(call)
    assert len(hold.history()) == changes
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", NAMES)
def test_an_odd_name_is_a_name(name: str, hold: Limpet, tmp_path: Path) -> None:
    hold.store.create()
    before = sorted(tmp_path.iterdir())
    do(hold, "create", f"{ROOT}/{name}", file_text="text")
    assert hold.memory.read(name).content == "text"
    assert f"\t{ROOT}/{name}\n" in do(hold, "view", ROOT)
    assert do(hold, "view", f"{ROOT}/{name}").endswith("\ttext")
    assert sorted(tmp_path.iterdir()) == before


def test_links_in_the_file_system_mean_nothing(hold: Limpet, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories" / "link").symlink_to(secret)
    assert "does not exist" in refused(hold, "view", f"{ROOT}/link")
    do(hold, "create", f"{ROOT}/link", file_text="ours")
    assert secret.read_text() == "secret"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "str_replace", "insert", "delete", "rename"]),
        st.sampled_from(["a", "b", "d/x", "d/y"]),
        st.sampled_from(["a", "b", "d/x", "e/z"]),
    ),
    max_size=8,
)


@settings(max_examples=fewer_examples(4))
@given(steps=STEPS)
def test_it_behaves_as_the_sdk_s_own_over_files(steps: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever the SDK's backend over real files does, ours does; what it refuses, ours refuses. Empty folders are the
    one difference: there are none in a store of texts."""
    folder = tmp_path_factory.mktemp("files")
    theirs = BetaLocalFilesystemMemoryTool(str(folder / "theirs"))
    with limpet.open(str(folder / "x.db"), folder=str(folder)) as hold:
        ours = LimpetMemoryTool(hold)
        for command, one, other in steps:
            call = {"command": command, "path": f"{ROOT}/{one}"}
            if command == "rename":
                call = {"command": command, "old_path": f"{ROOT}/{one}", "new_path": f"{ROOT}/{other}"}
            more = {
                "file_text": "one\ntwo",
                "old_str": "two",
                "new_str": "three",
                "insert_line": 1,
                "insert_text": "new",
            }
            outcomes = [outcome(tool, {**call, **more}) for tool in (theirs, ours)]
            assert outcomes[0] == outcomes[1]
            for name in ("a", "b", "d/x", "d/y", "e/z"):
                assert content(theirs, name) == content(ours, name)


def outcome(tool: Any, call: dict[str, Any]) -> bool:
    try:
        tool.call(call)
    except (ToolError, OSError):
        return False
    return True


def content(tool: Any, name: str) -> list[str] | None:
    try:
        said = str(tool.call({"command": "view", "path": f"{ROOT}/{name}"}))
    except (ToolError, OSError):
        return None
    if not said.startswith("Here's"):
        return []
    lines = [line.split("\t", 1)[1] for line in said.splitlines()[1:]]
    return lines[:-1] if lines[-1] == "" else lines


@pytest.mark.parametrize("path", ["/memories/plan.md", "/memories/notepad.md", "/memories/handoff.md"])
def test_the_first_line_keeps_its_indentation(path: str, hold: Limpet) -> None:
    tool = LimpetMemoryTool(hold)
    tool.call({"command": "create", "path": path, "file_text": "\n    indented:\n  less\n\n"})
    shown = tool.call({"command": "view", "path": path})
    assert "\t    indented:\n" in shown
    tool.call({"command": "str_replace", "path": path, "old_str": "less", "new_str": "more"})
    assert "\t    indented:\n" in tool.call({"command": "view", "path": path})
