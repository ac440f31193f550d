"""The tree of sessions: what a child gets, what comes back, and the limits that hold whoever makes children."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from limpet import errors, limits
from limpet.api import Limpet
from limpet.model import FOLD, MESSAGE
from limpet.session import tree
from limpet.store import Listing
from limpet.window.messages import ASSISTANT, TOOL, Call, Message, Result, Text, assistant, result, user


def test_a_spawned_child_starts_empty_and_knows_its_task(hold: Limpet) -> None:
    parent = hold.session()
    parent.notepad.write("the parent's plan")
    child = parent.spawn("read the grammar")
    assert child.notepad.read() == ""
    shown = hold.call("show_session", {"id": child.id})
    assert (shown["task"], shown["parent"], shown["state"]) == ("read the grammar", "one", "active")


@pytest.mark.parametrize("how", ["spawn", "fork"])
def test_a_copied_notepad_is_independent_both_ways(hold: Limpet, how: str) -> None:
    parent = hold.session()
    parent.notepad.write("plan")
    child = parent.spawn("t", copy_notepad=True) if how == "spawn" else parent.fork("t")
    assert child.notepad.read() == "plan"
    parent.notepad.append(" of the parent")
    child.notepad.append(" of the child")
    assert (parent.notepad.read(), child.notepad.read()) == ("plan of the parent", "plan of the child")


def test_the_result_comes_back_and_the_notepad_does_not(hold: Limpet) -> None:
    child = hold.session().spawn("count the casts")
    child.notepad.write("private working text")
    assert hold.wait([child.id]).waiting == (child.id,)
    child.report("there are 12")
    answer = hold.call("wait_for_sessions", {"ids": [child.id]})
    assert answer == {"results": [{"id": child.id, "status": "completed", "result": "there are 12"}]}
    assert child.notepad.read() == "private working text"  # ended, archived, readable
    with pytest.raises(errors.Conflict, match=r"already ended \(completed\)"):
        child.report("13")
    with pytest.raises(errors.Conflict, match="already ended"):
        child.begin("more")
    assert hold.wait([child.id]).results[0].result == "there are 12"


def test_the_result_is_a_capsule_with_references_files_and_failures(hold: Limpet) -> None:
    child = hold.session().spawn("count the casts")
    output = child.outputs.keep("grep", "cast\n" * 2_000).output
    assert output is not None
    calls = (Call("c1", "read_file", '{"path": "src/parser.py"}'), Call("c2", "run", '{"command": "make test"}'))
    results = (
        Result("c1", (Text("def cast(): ..."),)),
        Result("c2", (Text("FAILED: no rule to make target"),), error=True),
    )
    child.window.keep([user("count"), Message(ASSISTANT, calls), *(Message(TOOL, (result,)) for result in results)])
    reply = child.do(
        tree.report_result, result="there are 12", failed=("LL(1) was too weak",), files=("docs/casts.md",)
    )
    assert reply.result == "there are 12"
    (answer,) = hold.call("wait_for_sessions", {"ids": [child.id]})["results"]
    assert answer["references"] == [f"hold://{output.id}"]
    assert answer["files"] == ["docs/casts.md", "src/parser.py"]
    assert answer["failed"][0] == "LL(1) was too weak"
    assert "no rule to make target" in answer["failed"][1]


def test_only_a_child_can_report(hold: Limpet) -> None:
    with pytest.raises(errors.BadInput, match="'one' has no parent to report to"):
        hold.session().report("x")
    assert hold.sessions() == ()


@pytest.mark.parametrize(
    ("outcome", "key"), [("error", "error"), ("cancelled", "error"), ("token_limit_reached", "result")]
)
def test_a_host_says_how_a_child_ended_that_did_not_report(hold: Limpet, outcome: str, key: str) -> None:
    child = hold.session().spawn("t")
    hold.end(child.id, outcome, "the last words")
    (answer,) = hold.call("wait_for_sessions", {"ids": [child.id], "seconds": 5})["results"]
    assert answer == {"id": child.id, "status": outcome, key: "the last words"}


def test_a_child_gets_the_notes_and_references_that_were_chosen(hold: Limpet) -> None:
    parent = hold.session()
    note = parent.notes.add("casts break LL(1)")
    kept = parent.outputs.keep("grep", "cast\n" * 2_000).output
    assert kept is not None
    child = parent.spawn("mend them", notes=[note.id], references=[kept.id])
    text = child.context()
    assert "Task: mend them" in text
    assert "casts break LL(1)" in text
    assert f"hold://{kept.id} (grep, " in text
    assert "Given by the parent session" not in parent.context()
    with pytest.raises(errors.NotFound, match="note_9"):
        parent.spawn("t", notes=["note_9"])
    with pytest.raises(errors.NotFound):
        parent.spawn("t", references=["0" * 12])
    assert len(hold.sessions()) == 2


def test_the_parent_reads_what_the_child_kept(hold: Limpet) -> None:
    child = hold.session().spawn("t")
    kept = child.outputs.keep("grep", "cast\n" * 2_000).output
    assert kept is not None
    assert hold.session().outputs.read(kept.id, lines="1-2").content == "cast\ncast\n"


def test_a_tree_is_three_deep(hold: Limpet) -> None:
    at = hold.session()
    for _ in range(limits.SESSION_DEPTH_MAX):
        at = at.spawn("deeper")
    with pytest.raises(errors.BadInput, match="at most 3 below"):
        at.spawn("too deep")
    with pytest.raises(errors.BadInput, match="at most 3 below"):
        at.fork("too deep")


def test_ten_children_at_once_and_a_place_is_free_when_one_has_ended(hold: Limpet) -> None:
    parent = hold.session()
    children = [parent.spawn(f"part {number}") for number in range(limits.SESSION_CHILDREN_MAX)]
    with pytest.raises(errors.Conflict, match="10 children at work"):
        parent.spawn("one more")
    children[3].report("done")
    parent.spawn("one more")
    with pytest.raises(errors.Conflict, match="10 children at work"):
        parent.fork("and another")


def test_children_made_at_once_never_pass_the_limit(hold: Limpet) -> None:
    def spawn(number: int) -> str:
        try:
            return hold.session("parent").spawn(f"part {number}").id
        except errors.Conflict:
            return ""

    with ThreadPoolExecutor(8) as threads:
        made = [id for id in threads.map(spawn, range(24)) if id]
    assert len(made) == limits.SESSION_CHILDREN_MAX
    assert sum(found.parent == "parent" for found in hold.sessions()) == limits.SESSION_CHILDREN_MAX


def test_what_cannot_be_is_refused_and_changes_nothing(hold: Limpet) -> None:
    with pytest.raises(errors.BadInput, match="task is empty"):
        hold.session().spawn(" ")
    with pytest.raises(errors.NotFound, match="sub_nobody"):
        hold.wait(["sub_nobody"])
    with pytest.raises(errors.BadInput, match="ids is empty"):
        hold.wait([])
    with pytest.raises(errors.NotFound, match="sub_nobody"):
        hold.end("sub_nobody", "error")
    assert hold.sessions(include_archived=True) == ()


def test_a_fork_has_the_history_with_its_folds_and_who_said_what(hold: Limpet) -> None:
    parent = hold.session("parent")
    talk = [user("Read all parts, and never touch main.py.")]
    for number in range(12):
        call = Call(f"c{number}", "shell", '{"command": "ls"}')
        talk += [assistant(f"Step {number}.", call), result(call.id, f"line {number}\n" * 30)]
    parent.window.keep(talk)
    assert parent.window.compact().fold
    before = parent.window.messages()
    child = parent.fork("try it with a table")
    assert child.window.messages() == before
    child.window.add([user("Only in the child.")])
    assert parent.window.messages() == before
    restored = child.window.uncompact(2, 3)
    assert "line 0" in restored.content
    assert len(child.window.messages()) > len(before)
    origins = [
        [entry.origin for entry in hold.store.entries.list(hold.scope, Listing((MESSAGE, FOLD), id, limit=100)).entries]
        for id in ("parent", child.id)
    ]
    assert sorted(origins[1]) == sorted([*origins[0], "person"])


def test_a_fork_leaves_the_reply_that_made_it_to_the_parent(hold: Limpet) -> None:
    parent = hold.session("parent")
    fork = assistant("", Call("f1", "fork_session", "{}"), Call("f2", "look", "{}"))
    parent.window.keep([user("Go."), assistant("Going."), user("Fork."), fork, result("f2", "seen")])
    child = parent.fork("other way")
    assert [message.text() for message in child.window.messages()] == ["Go.", "Going.", "Fork."]
