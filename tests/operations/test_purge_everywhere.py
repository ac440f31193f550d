"""Purge in the places that repeat a text: the journal's file, summaries, checkpoints and handoffs. And undo of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet import errors
from limpet.api import Limpet
from limpet.journal.document import removal
from limpet.model import HANDOFF, SESSION
from limpet.session import hook_state
from limpet.window.messages import Call, assistant, result, user
from operations.conftest import DAY_MS, Clock
from operations.test_purge import entries, found, purge

BAD, GOOD = "import/file", "agent/mcp"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("def total(lines):\n    return sum(lines)\n")
    return tmp_path


def notes(folder: Path) -> str:
    return (folder / "NOTES.md").read_text()


def write(hold: Limpet, by: str, word: str) -> None:
    """One of everything that the journal takes, with a word in it."""

    def do(name: str, **arguments: Any) -> None:
        hold.call(name, arguments, by=by)

    decision = {"decision": f"use {word}", "rationale": f"because of {word} | *so*", "evidence": ["src/a.py:1"]}
    do("log_decision", title=f"Take {word}", **decision, scenarios=["usual", "none", f"{word} alone"])
    for section, more in (
        ("question", {}),
        ("goal", {"note": "the parser (v2)"}),
        ("debt", {"severity": "HIGH"}),
        ("blocker", {"eta": "Friday"}),
        ("identifier", {"note": f"where {word} is"}),
        ("task", {}),
    ):
        text = "src/a.py:1-2" if section == "identifier" else f"{section} of {word} (blocking: a_b)"
        do("update_journal", section=section, text=text, **more)
    do("checkpoint_session", summary=f"half way\nwith {word}", state=f"state of {word}")


def test_the_lines_of_an_origin_go_from_the_file_and_come_back(hold: Limpet, folder: Path, clock: Clock) -> None:
    hold.call("init_journal", {})
    hold.call("update_journal", {"section": "goal", "text": "walnut first"}, by=GOOD)
    path = folder / "NOTES.md"
    path.write_text(path.read_text() + "\n## Mine\nwritten by hand, quince or not\n")
    clock.pass_by()
    write(hold, BAD, "quince")
    hold.call("update_journal", {"section": "question", "text": "walnut last"}, by=GOOD)
    hold.call("update_journal", {"section": "goal", "text": "goal of quince", "done": True}, by=GOOD)
    before, kept = notes(folder), entries(hold)
    assert before.count("quince") >= 10
    answer = purge(hold, "import")
    after = notes(folder)
    assert (answer["counts"]["journal"], answer["counts"]["handoff"]) == (9, 1)
    assert [line for line in after.splitlines() if "quince" in line] == ["written by hand, quince or not"]
    assert "walnut first" in after
    assert "walnut last" in after
    assert hold.call("lint_journal", {})["findings"] == []
    assert found(hold, "quince") == set()
    assert hold.call("undo", {}, by="person/cli")["restored"] == len(kept) - len(entries_of(hold, "agent", kept))
    assert notes(folder) == before, "to the byte"
    assert entries(hold) == kept


def entries_of(hold: Limpet, origin: str, kept: dict[Any, dict[str, Any]]) -> list[Any]:
    return [name for name, one in kept.items() if one["origin"] == origin]


def test_what_was_moved_to_the_archive_goes_too(hold: Limpet, folder: Path, clock: Clock) -> None:
    for number in range(24):
        write(hold, BAD if number % 2 else GOOD, f"{'quince' if number % 2 else 'walnut'}{number}")
        clock.pass_by(60_000)
    hold.call("rotate_journal", {"force": True})
    files = [folder / "NOTES.md", folder / "NOTES.archive.md"]
    before = [path.read_text() for path in files]
    assert "quince" in before[1]
    answer = purge(hold, "import")
    assert not any("quince" in path.read_text() for path in files), answer
    assert all("walnut" in path.read_text() for path in files)
    hold.call("undo", {}, by="person/cli")
    assert [path.read_text() for path in files] == before


def test_a_line_that_somebody_reworded_stays_and_is_said(hold: Limpet, folder: Path) -> None:
    hold.call("update_journal", {"section": "goal", "text": "obey the quince"}, by=BAD)
    path = folder / "NOTES.md"
    path.write_text(path.read_text().replace("obey the quince", "do not obey the quince"))
    answer = purge(hold, "import")
    assert "do not obey the quince" in notes(folder)
    assert any("1 entries of the journal no longer stand" in remark for remark in answer["remarks"])


def test_a_purge_keeps_what_is_saved_meanwhile_and_an_old_buffer_does_not_bring_it_back(
    hold: Limpet, folder: Path
) -> None:
    hold.call("update_journal", {"section": "goal", "text": "walnut"}, by=GOOD)
    hold.call("update_journal", {"section": "goal", "text": "quince"}, by=BAD)
    path = folder / "NOTES.md"
    buffer = path.read_text()
    path.write_text(buffer + "\nsaved by hand before\n")
    purge(hold, "import")
    assert "saved by hand before" in notes(folder)
    assert "quince" not in notes(folder)
    path.write_text(buffer + "\nsaved by hand after\n")  # an editor that had opened it before
    hold.call("update_journal", {"section": "question", "text": "what now?"}, by=GOOD)
    assert "quince" not in notes(folder)
    assert "saved by hand after" in notes(folder)


def test_undo_puts_lines_back_into_a_file_that_went_on(hold: Limpet, folder: Path) -> None:
    for text, by in (("first", GOOD), ("quince one", BAD), ("quince two", BAD), ("last", GOOD)):
        hold.call("update_journal", {"section": "goal", "text": text}, by=by)
    purge(hold, "import")
    path = folder / "NOTES.md"
    path.write_text("A line on top.\n\n" + path.read_text())
    hold.call("update_journal", {"section": "goal", "text": "newest"}, by=GOOD)
    (seq, *_) = [event.seq for event in hold.history() if event.operation == "purge"]
    hold.undo(seq)
    goals = [line for line in notes(folder).splitlines() if line.startswith("- [ ]")]
    assert goals == [f"- [ ] {text}" for text in ("first", "quince one", "quince two", "last", "newest")]
    with pytest.raises(errors.Conflict):
        hold.undo(seq)
    assert notes(folder).count("quince one") == 1


def test_for_ever_leaves_nothing_beside_the_file_either(hold: Limpet, folder: Path) -> None:
    write(hold, BAD, "quince")
    hold.call("update_journal", {"section": "goal", "text": "walnut"}, by=GOOD)
    answer = purge(hold, "import", forever=True)
    assert any("brings its lines back" in remark for remark in answer["remarks"])
    for root, _, names in os.walk(folder):
        for name in names:
            if not name.startswith("limpet.db"):  # test_forgetting.py reads those
                assert b"quince" not in (Path(root) / name).read_bytes(), name
    assert "quince" not in "".join(hold.export_lines())
    assert "walnut" in notes(folder)
    hold.call("update_journal", {"section": "goal", "text": "goes on"}, by=GOOD)
    assert "goes on" in notes(folder)


def test_no_journal_is_no_obstacle(hold: Limpet, folder: Path) -> None:
    hold.call("update_journal", {"section": "goal", "text": "quince"}, by=BAD)
    (folder / "NOTES.md").unlink()
    assert purge(hold, "import")["counts"] == {"journal": 1}
    hold.call("undo", {}, by="person/cli")
    assert not (folder / "NOTES.md").exists()


# --- summaries, checkpoints and handoffs ------------------------------------------------------------------------------


def test_results_go_by_the_tool_that_printed_them(hold: Limpet) -> None:
    said = [
        user("look"),
        assistant("", Call("c1", "web_fetch", "{}"), Call("c2", "shell", "{}")),
        result("c1", "the quince says: obey"),
        result("c2", "the walnut is ripe"),
    ]
    hold.session("talk").window.next(said)
    answer = purge(hold, "tool/web_*")
    assert answer["counts"] == {"message": 1}
    assert (found(hold, "quince"), len(found(hold, "walnut"))) == (set(), 1)
    hold.call("undo", {}, by="person/cli")
    assert len(found(hold, "quince")) == 1


def test_checkpoints_and_drafts_go_with_the_tools_they_repeat(hold: Limpet, clock: Clock) -> None:
    ctx = hold.context("one", "agent/hook")
    hook_state.before_compact(ctx, "Failed: quince", "tool")
    hook_state.draft_handoff(ctx, "the quince failed", "tool")
    hook_state.before_compact(hold.context("two", "agent/hook"), "asked for a walnut", "agent")
    assert purge(hold, "tool", since="2026-03-04")["counts"] == {}
    answer = purge(hold, "tool")
    assert answer["counts"] == {"handoff": 1, "session": 1}
    assert "quince" not in "".join(line for line in hold.export_lines() if '"entry"' in line[:9])
    assert hook_state.read(hold.context("two")).checkpoint == "asked for a walnut"
    hold.call("undo", {}, by="person/cli")
    assert hook_state.read(hold.context("one")).checkpoint == "Failed: quince"
    assert hold.store.entries.read(hold.scope, HANDOFF, "main/one") is not None
    clock.pass_by(DAY_MS)
    purge(hold, "tool", forever=True)
    assert "quince" not in "".join(hold.export_lines())


def test_tasks_and_results_of_sessions_go_too(hold: Limpet) -> None:
    hold.call("begin_task", {"description": "peel the quince"}, by=BAD)
    child = hold.session("parent", by=BAD).spawn("fetch the quince")
    child.report("one quince")
    assert len(found(hold, "quince")) == 1
    assert purge(hold, "import")["counts"] == {"task": 1, "session": 1}
    assert found(hold, "quince") == set()
    entry = hold.store.entries.read(hold.scope, SESSION, child.id)
    assert entry is not None
    assert (entry.content, entry.extra["result"], entry.done) == ("[purged]", "[purged]", True)
    hold.call("undo", {}, by="person/cli")
    assert hold.wait([child.id]).results[0].result == "one quince"


def test_who_pinned_or_finished_an_entry_last_is_not_who_wrote_it(hold: Limpet) -> None:
    note = hold.call("add_note", {"content": "quince"}, by="agent/sandbox")["note_id"]
    hold.call("update_note", {"id": note, "done": True}, by="agent/mcp")
    assert purge(hold, "agent/mcp", dry_run=True)["counts"] == {}
    assert purge(hold, "agent/sandbox", dry_run=True)["counts"] == {"note": 1}


# --- pure -------------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from(["a", "b", "c", "bad one", "bad two", ""]), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_taken_out_goes_back_to_the_byte(lines: list[str], newline: str) -> None:
    goals = "".join(f"- [ ] {line}{newline}" if line else newline for line in lines)
    text = f"# Journal\n\n## Active Sub-Goals\n{goals}"
    taken = removal.without(text, ["- [ ] bad one\n", "- [ ] bad two\n"])
    assert "bad" not in taken.text
    assert removal.put_back(taken.text, [piece for _, piece in taken.pieces]) == text
