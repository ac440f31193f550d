"""The journal's operations over a real store and a real folder: decisions, items, checkpoints, healing, rotation."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from limpet import errors, settings
from limpet.api import Limpet
from limpet.journal import evidence as proof
from limpet.journal import git as git_runner
from limpet.journal.document import entries, lint
from limpet.journal.document.markup import scan
from limpet.journal.document.sections import template
from limpet.text import tokens
from limpet.window.messages import user
from operations.conftest import Clock, Opener

SOURCE = "import os\n\n\ndef total(lines):\n    return sum(lines)\n"
DECISION: dict[str, Any] = {
    "title": "Sums in one place",
    "decision": "All totals go through total()",
    "rationale": "Two of them rounded differently",
    "evidence": ["src/a.py:4"],
    "scenarios": ["usual", "no lines", "not a number"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(SOURCE)
    return tmp_path


def notes(folder: Path) -> str:
    return (folder / "NOTES.md").read_text()


def decide(hold: Limpet, **other: Any) -> Any:
    return hold.call("log_decision", {**DECISION, **other})


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


# --- decisions --------------------------------------------------------------------------------------------------------


def test_a_decision_is_written_with_the_quote_from_the_file(hold: Limpet, folder: Path) -> None:
    reply = decide(hold)
    assert notes(folder).split("\n")[reply["line"] - 1] == "#### 2026-03-03T12:00:00Z - Sums in one place"
    assert "- `def total(lines):` [${PROJECT_ROOT}/src/a.py:4]\n" in notes(folder)
    assert lint.lint(notes(folder)) == []
    several = decide(hold, evidence=["src/a.py:4-5", "`return sum` [${PROJECT_ROOT}/src/a.py:1]", "user: one place!"])
    assert several["moved"] == ["${PROJECT_ROOT}/src/a.py:5"]
    (_, second) = entries.decisions(scan(notes(folder)))
    assert [one.quote for one in second.entry.evidence] == [
        "def total(lines):\n    return sum(lines)",
        "return sum",
        "one place!",
    ]


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (["src/a.py:4 def mean(lines):"], "does not hold these words"),
        (["src/a.py:90"], "has no words at these lines"),
        (["src/a.py:2-3"], "has no words at these lines"),
        (["src/none.py:1"], "no readable file"),
        (["../outside.py:1"], "names no lines of a file inside"),
        (["/etc/passwd:1"], "names no lines of a file inside"),
        (["link.py:1"], "no readable file"),
        (["away/outside.py:1"], "no readable file"),
        (["pipe:1"], "no readable file"),
        (["src:1"], "no readable file"),
        (["just words"], "names no lines"),
        (["secret.py:1"], "looks like a secret"),
        (["long.py:1-30"], "more than 20 lines"),
        ([], "none was given"),
    ],
)
def test_evidence_that_does_not_stand_is_refused_and_nothing_is_written(
    hold: Limpet, folder: Path, evidence: list[str], why: str
) -> None:
    (folder.parent / "outside.py").write_text("secret = 1\n")
    if not (folder / "link.py").is_symlink():
        (folder / "link.py").symlink_to(folder.parent / "outside.py")
        (folder / "away").symlink_to(folder.parent)
        os.mkfifo(folder / "pipe")
    (folder / "secret.py").write_text('key = "AKIA' + "Z7QKXW2M5T8RPL4N" + '"\n')
    (folder / "long.py").write_text("x = 1\n" * 40)
    with pytest.raises(errors.BadInput, match=why):
        decide(hold, evidence=evidence)
    assert not (folder / "NOTES.md").exists()
    assert not hold.history(kind="journal")


def test_a_decision_needs_its_fields(hold: Limpet, folder: Path) -> None:
    for wrong, why in (
        ({"scenarios": ["one", " "]}, "a decision needs 3 test scenarios and came with 1"),
        ({"title": " "}, "title is empty"),
        ({"decision": ""}, "decision is empty"),
        ({"rationale": "x" * 2_001}, "rationale has 2,001 characters"),
    ):
        with pytest.raises(errors.BadInput, match=why):
            decide(hold, **wrong)
    assert not (folder / "NOTES.md").exists()


def test_what_is_decided_is_kept_as_an_entry_so_that_what_it_cites_is_not_pruned(
    hold: Limpet, folder: Path, clock: Clock
) -> None:
    kept = hold.session().outputs.keep("pytest", "a line of it\n" * 500).output
    assert kept is not None
    decide(hold, rationale=f"see {kept.id}")
    (event,) = hold.history(kind="journal")
    assert event.operation == "log_decision"
    assert event.after is not None
    assert kept.id in event.after.content
    clock.pass_by(30 * 86_400_000)
    assert hold.call("prune_outputs", {})["deleted"] == 0
    assert "Sums in one place" in notes(folder)


def test_changes_of_the_journal_can_be_undone_while_they_are_as_written(hold: Limpet, folder: Path) -> None:
    journal = hold.session().journal
    journal.add("question", "May a rate be corrected?")
    texts = [notes(folder)]
    changes: list[Callable[[], object]] = [
        lambda: journal.add("goal", "Totals that add up"),
        lambda: journal.done("goal", "Totals"),
        lambda: journal.add("state", "Rounding is next"),
        lambda: journal.add("state", "Rounding is done"),
        lambda: journal.add("debt", "The list asks for each rate on its own"),
        lambda: journal.done("debt", "The list asks"),
        lambda: journal.add("blocker", "the bank's key"),
        lambda: journal.done("blocker", "key"),
        lambda: decide(hold),
    ]
    for change in changes:
        change()
        texts.append(notes(folder))
    assert len(set(texts)) == len(texts)
    for text in reversed(texts[:-1]):
        assert hold.undo().kind == "journal"
        assert notes(folder) == text
    undone = hold.history(kind="journal", limit=1)[0]
    hold.undo(undone.seq)
    assert notes(folder) == texts[1], "an undo can be undone"


def test_what_a_person_reworded_in_the_journal_is_not_undone(hold: Limpet, folder: Path) -> None:
    hold.session().notes.add("older, and it stays")
    hold.session().journal.add("goal", "Totals that add up")
    file = folder / "NOTES.md"
    file.write_text(notes(folder).replace("Totals that add up", "Totals to the cent"))
    with pytest.raises(errors.Conflict, match="not as they were written"):
        hold.undo()
    assert "Totals to the cent" in notes(folder)
    hold.session().journal.done("goal", "cent")
    hold.undo()
    assert "- [ ] Totals to the cent" in notes(folder), "the line is a person's, its tick was ours"
    hold.session().journal.checkpoint("Rates are stored", state="Next: rounding")
    assert hold.undo().kind == "handoff"
    with pytest.raises(errors.BadInput, match="cannot be undone"):
        hold.undo()
    assert len(hold.session().notes.list()) == 1


# --- items ------------------------------------------------------------------------------------------------------------


def test_items_are_added_and_finished(hold: Limpet, folder: Path) -> None:
    journal = hold.journal
    journal.add("question", "May totals be | negative?")
    journal.add("goal", "One place for sums", note="the audit")
    journal.add("goal", "Fast sums", note="depends on: a faster disk")
    journal.add("blocker", "the audit", eta="2026-03-01")
    journal.add("blocker", "the law")
    assert journal.add("debt", "asks for each rate", severity="HIGH", sprint="S1").id == "TD-001"
    assert journal.add("debt", "twice the work").id == "TD-002"
    journal.add("task", "sums")
    journal.add("state", "half way\n## really")
    doc = scan(notes(folder))
    assert [one.entry.note for one in entries.goals(doc)] == ["blocking: the audit", "depends on: a faster disk"]
    assert [(one.entry.state, one.entry.eta) for one in entries.blockers(doc)] == [
        ("Waiting", "2026-03-01"),
        ("Blocked", ""),
    ]
    assert entries.debts(doc)[0].entry == ("TD-001", "asks for each rate", "HIGH", "one", "S1")
    assert [one.entry for one in entries.context(doc)] == [
        ("Current Task", "sums"),
        ("Reasoning State", "half way\n## really"),
    ]
    journal.done("question", "negative")
    journal.done("goal", "FAST sums")
    journal.done("blocker", "the law")
    journal.done("debt", "TD-001")
    doc = scan(notes(folder))
    assert [one.entry.done for one in entries.questions(doc)] == [True]
    assert [one.entry.done for one in entries.goals(doc)] == [False, True]
    assert [one.entry.resolved for one in entries.blockers(doc)] == [False, True]
    assert [one.entry.severity for one in entries.debts(doc)] == ["RESOLVED", "MEDIUM"]
    assert lint.lint(notes(folder)) == []


def test_wrong_items_are_refused(hold: Limpet, folder: Path) -> None:
    hold.journal.add("goal", "sums here")
    hold.journal.add("goal", "sums there")
    before = notes(folder)
    for arguments, why in (
        ({"section": "goal", "text": "nothing like it", "done": True}, "no open goal in the journal holds"),
        ({"section": "goal", "text": "sums", "done": True}, "2 open entries of goal hold 'sums'"),
        ({"section": "task", "text": "sums", "done": True}, "section with done of update_journal is 'task'"),
        ({"section": "question", "text": "x", "eta": "y"}, "with section question does not use eta"),
        ({"section": "goal", "text": "x", "done": True, "note": "y"}, "with done does not use note"),
        ({"section": "identifier", "text": "../x:1"}, "names no readable file inside"),
        ({"section": "debt", "text": " "}, "text is empty"),
        ({"section": "else", "text": "x"}, "must be one of"),
    ):
        with pytest.raises(errors.LimpetError, match=why):
            hold.call("update_journal", arguments)
    assert notes(folder) == before


@pytest.mark.parametrize("present", [True, False])
def test_a_debt_becomes_an_issue_where_there_is_bd(
    hold: Limpet, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: bool
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    if present:
        script = tools / "bd"
        script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/asked\necho \'{{"id": "bd-7"}}\'\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin" if present else str(tools / "none"))
    words = "-x; rm -rf $HOME `id`\nnext"
    reply = hold.journal.add("debt", words, severity="HIGH", track=True)
    issue = " (bd-7)" if present else ""  # so that who reads the table finds it
    assert f"| {reply.id} | -x; rm -rf $HOME `id`<br>next{issue} | HIGH |" in notes(folder)
    if present:
        assert reply.hint == "TD-001 is issue bd-7."
        asked = (tmp_path / "asked").read_text().split("\n")
        assert asked[:3] == ["create", "TD-001: -x; rm -rf $HOME `id` next", "--type"]
        assert hold.journal.add("debt", "more").hint == "track: true makes TD-002 an issue with bd."
        (tools / "bd").write_text("#!/bin/sh\nexit 3\n")
        assert "bd made no issue" in hold.journal.add("debt", "again", track=True).hint
    else:
        assert "not on the PATH" in reply.hint
        assert hold.journal.add("debt", "more").hint == ""


# --- recovery ---------------------------------------------------------------------------------------------------------


def test_recovery_says_when_evidence_no_longer_stands(hold: Limpet, folder: Path) -> None:
    decide(hold)
    assert "evidence" not in hold.journal.recover().text
    (folder / "src" / "a.py").write_text("# moved down\n" + SOURCE)
    assert "evidence" not in hold.journal.recover().text
    (folder / "src" / "a.py").write_text("nothing\n")
    assert "[evidence drifted]" in hold.journal.recover().text
    (folder / "src" / "a.py").unlink()
    assert "[evidence gone]" in hold.journal.recover().text


def test_the_levels_and_their_budgets(hold: Limpet, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        decide(hold, title=f"Decision number {number}", rationale="because " * 200)
    for level, most in ((1, 100), (2, 500)):
        found = hold.call("recover_journal", {"level": level})
        assert found["tokens"] == tokens.count(found["text"]) <= most
        assert found["tokenizer"] == tokens.NAME
        assert [f"number {number}" in found["text"] for number in (5, 4, 3)] == [True] * 3
    assert hold.call("recover_journal", {"level": 3})["text"] == notes(folder)
    assert hold.call("recover_journal", {"level": 2, "query": "Decision number 0"})["how"] == "search"
    for level in (0, 4):
        with pytest.raises(errors.BadInput, match="it must be from 1 to 3"):
            hold.call("recover_journal", {"level": level})


def test_there_is_nothing_to_recover_without_a_journal(hold: Limpet, folder: Path) -> None:
    with pytest.raises(errors.NotFound, match=r"there is no NOTES\.md yet\. log_decision, .* begin one"):
        hold.journal.recover()
    decide(hold)
    (folder / "NOTES.md").unlink()
    with pytest.raises(errors.NotFound, match="an agent calls `recover_journal`"):
        decide(hold)


# --- verification -----------------------------------------------------------------------------------------------------


def states(hold: Limpet, **how: bool) -> list[tuple[str, str]]:
    return [(one.verdict.state, str(one.verdict.ref)) for one in hold.journal.verify(**how).checked]


def test_verification_finds_what_moved_what_drifted_and_what_is_gone(hold: Limpet, folder: Path, clock: Clock) -> None:
    decide(hold)
    hold.journal.add("identifier", "src/a.py:4-5", note="the sum")
    place = "${PROJECT_ROOT}/src/a.py"
    assert states(hold, check=True) == [("fresh", f"{place}:4-5"), ("fresh", f"{place}:4")]
    clock.pass_by(60_000)
    hold.journal.verify()
    assert "| the sum | 2026-03-03T12:01:00Z |" in notes(folder)
    (folder / "src" / "a.py").write_text("# one more\n" + SOURCE)
    clock.pass_by(60_000)
    before = notes(folder)
    moved = [("moved", f"{place}:5-6"), ("moved", f"{place}:5")]
    assert states(hold, check=True) == moved
    assert states(hold) == moved
    assert notes(folder) == before
    assert states(hold, fix=True) == moved
    assert f"| {place}:5-6 | the sum | 2026-03-03T12:02:00Z |" in notes(folder)
    assert f"[{place}:5]" in notes(folder)
    assert [state for state, _ in states(hold)] == ["fresh", "fresh"]
    (folder / "src" / "a.py").write_text("other = 1\n")
    assert [state for state, _ in states(hold)] == ["drifted", "drifted"]
    (folder / "src" / "a.py").unlink()
    assert [state for state, _ in states(hold)] == ["gone", "gone"]


def test_git_knows_where_a_quote_went(hold: Limpet, folder: Path) -> None:
    git(folder, "init", "-q")
    decide(hold)
    git(folder, "add", "src")
    git(folder, "commit", "-qm", "one")
    git(folder, "mv", "src/a.py", "src/b.py")
    ((state, ref),) = states(hold)
    assert (state, ref) == ("moved", "${PROJECT_ROOT}/src/b.py:4")
    git(folder, "commit", "-qm", "two")
    (folder / "src" / "b.py").write_text("nothing\n")
    (one,) = hold.journal.verify().checked
    assert one.verdict.state == "gone"
    assert "changed last in" in one.verdict.detail


def test_without_git_verification_works_too(hold: Limpet, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decide(hold)
    (folder / "src" / "a.py").unlink()
    monkeypatch.setenv("PATH", str(folder / "none"))
    assert git_runner.run(str(folder), "rev-parse") is None
    assert [state for state, _ in states(hold)] == ["gone"]


# --- duties -----------------------------------------------------------------------------------------------------------


def test_a_checkpoint_logs_sets_the_context_and_leaves_the_handoff(hold: Limpet, folder: Path) -> None:
    hold.journal.add("blocker", "the audit", eta="2026-03-01")
    hold.journal.add("goal", "One place for sums")
    hold.journal.add("question", "negative?")
    found = hold.journal.checkpoint("Sums go through total()", state="rounding is next", task="sums", agent="me")
    assert (found.blockers, found.goals, found.questions) == (("the audit",), ("One place for sums",), ("negative?",))
    doc = scan(notes(folder))
    assert entries.log_rows(doc)[0].entry == ("2026-03-03T12:00:00Z", "me", "Sums go through total()")
    assert dict(one.entry for one in entries.context(doc)) == {
        "Last Checkpoint": "2026-03-03T12:00:00Z",
        "Reasoning State": "rounding is next",
        "Current Task": "sums",
    }
    left = hold.session("next").context()
    for part in ("Sums go through total()", "rounding is next", "the audit", "One place for sums"):
        assert part in left
    assert "1 blocker (1 due: resolved?)" in hold.journal.recover().text


def test_healing_prefers_what_was_seen_then_git_then_the_template(hold: Limpet, folder: Path, opened: Opener) -> None:
    file = folder / "NOTES.md"
    assert hold.journal.heal(check=True) == ("NOTES.md", "missing", "template", False)
    assert not file.exists()
    assert not (folder / ".limpet").exists()
    git(folder, "init", "-q")
    file.write_text(template() + "committed\n")
    git(folder, "add", "NOTES.md")
    git(folder, "commit", "-qm", "one")
    for empty in ("", " \n\t\n"):
        file.write_text(empty)
        assert hold.journal.heal(check=True) == ("NOTES.md", "empty", "git", False)
        assert file.read_text() == empty
    assert hold.journal.heal() == ("NOTES.md", "empty", "git", True)
    assert file.read_text() == template() + "committed\n"
    assert hold.journal.heal() == ("NOTES.md", "healthy", "", False)
    hold.journal.add("question", "kept?")
    file.unlink()
    with pytest.raises(errors.NotFound, match="journal heal"):
        hold.journal.add("question", "more?")
    assert hold.journal.heal().source == "last seen"
    assert "kept?" in file.read_text()
    assert hold.journal.init() is False


def test_a_journal_is_made_once(hold: Limpet, folder: Path) -> None:
    assert hold.journal.init() is True
    assert notes(folder) == template()
    (folder / "NOTES.md").write_text("mine\n")
    assert hold.journal.init() is False
    assert notes(folder) == "mine\n"


def test_a_long_journal_is_rotated_by_the_checkpoint(hold: Limpet, folder: Path, clock: Clock) -> None:
    for number in range(14):
        clock.pass_by(1_000)
        decide(hold, title=f"number {number}", rationale="x" * 1_900, decision="y" * 1_900)
        if number == 2:
            assert hold.journal.rotate() == ("NOTES.md", "NOTES.archive.md", 0, 0)
    assert len(notes(folder)) > settings.JournalRules().rotate_bytes
    assert hold.journal.checkpoint("long", state="s").rotated == 4
    archive = (folder / "NOTES.archive.md").read_text()
    assert [one.entry.title for one in entries.decisions(scan(archive))] == [f"number {n}" for n in range(4)]
    assert "| 2026-03-03 | number 0 |" in archive
    assert len(entries.decisions(scan(notes(folder)))) == 10
    assert "[NOTES.archive.md](NOTES.archive.md)" in notes(folder)
    assert lint.lint(notes(folder)) == []
    assert hold.journal.recover(2, "number 2").how == "search"
    assert "number 2" in hold.journal.recover(2, "number 2").text
    assert hold.journal.rotate(force=True).decisions == 0
    # An id that went to the archive is not given again.
    (folder / "NOTES.archive.md").write_text(archive + "| TD-041 |\n")
    assert hold.journal.add("debt", "new").id == "TD-042"


def test_a_result_that_has_served_becomes_a_line_that_leads_back_to_it(hold: Limpet) -> None:
    hits = "".join(f"src/f{number}.py:{number}: x\n" for number in range(30))
    found = hold.journal.clear("rg", hits)
    assert found is not None
    assert found.line.startswith("rg: 30 matches in 30 files. Whole result: hold://")
    assert hold.session().outputs.expand(found.line.split()[-1]) == hits
    assert hold.journal.clear("rg", "one:1: hit\n") is None


def test_a_link_that_is_replaced_while_it_is_followed_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("target")

    def replaced(_path: object, **_more: object) -> str:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr("os.readlink", replaced)
    assert proof.source(str(tmp_path), "link") is None


# --- what a session finds ---------------------------------------------------------------------------------------------


def test_level_1_names_the_newest_identifier_and_counts_questions(hold: Limpet, folder: Path, clock: Clock) -> None:
    hold.journal.init()
    for name in ("lexer.py", "parser.py"):
        (folder / name).write_text("x = 1\n")
        clock.pass_by()
        hold.journal.add("identifier", name, note=f"the {name[:-3]}")
    for number in range(3):
        hold.journal.add("question", f"question {number}?")
    text = hold.call("recover_journal", {})["text"]
    assert "parser.py" in text
    assert "lexer.py" not in text
    assert "3 questions" in text


def test_an_empty_journal_leaves_nothing_in_a_window(hold: Limpet, folder: Path) -> None:
    hold.journal.init()
    step = hold.session().window.next([user("go")])
    assert "Journal" not in "".join(message.text() for message in step.messages)
    hold.journal.add("task", "Port the parser")
    step = hold.session("later").window.next([user("go")])
    assert "Port the parser" in "".join(message.text() for message in step.messages)


def test_recovering_a_lost_journal_heals_it_first(hold: Limpet, folder: Path) -> None:
    with pytest.raises(errors.NotFound):
        hold.call("recover_journal", {})  # there never was one
    hold.journal.init()
    hold.journal.add("task", "Port the parser")
    before = notes(folder)
    for spoil in ((folder / "NOTES.md").unlink, lambda: (folder / "NOTES.md").write_text("")):
        spoil()
        with suppress(errors.NotFound):
            assert hold.call("recover_journal", {}, by="person/dashboard")["text"] == ""  # looking writes nothing
        reply = hold.call("recover_journal", {"level": 1})
        assert "Port the parser" in reply["text"]
        assert notes(folder) == before


def test_rotation_fills_the_decision_archive(hold: Limpet, folder: Path, clock: Clock) -> None:
    hold.journal.init()
    for number in range(14):
        clock.pass_by()
        decide(hold, title=f"Decision no. {number:02}")
    moved = hold.journal.rotate(force=True).decisions
    assert moved == 4
    rows = [row.entry.decision for row in entries.archived(scan(notes(folder)))]
    assert [row[:15] for row in rows] == [f"Decision no. {number:02}" for number in range(4)]
    assert lint.lint(notes(folder)) == []
    assert hold.journal.rotate(force=True).decisions == 0
    assert len(entries.archived(scan(notes(folder)))) == 4
