"""Audit: what a project keeps that somebody should look at, told without showing any of it."""

from __future__ import annotations

from typing import Any

import pytest

from limpet import errors, limits
from limpet.api import Limpet
from operations.conftest import Clock

DAY_MS = 86_400_000
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
TEXT = "The release of the parser waits for a fix of the casts that break the grammar in version 7"


def findings(hold: Limpet, *only: str, **more: Any) -> list[tuple[str, str, str]]:
    answer = hold.call("audit", {"only": list(only), **more})
    assert TOKEN not in str(answer)
    assert sum(answer["counts"].values()) == len(answer["findings"]) + answer.get("left_out", 0)
    return [(one["kind"], one["id"], one["reason"]) for one in answer["findings"]]


def test_a_project_in_order_has_no_findings(hold: Limpet) -> None:
    assert findings(hold) == []
    hold.session().notes.add("One thing")
    hold.session().notes.add("Quite another")
    hold.session().outputs.keep("shell", "a line of it\n" * 500)
    assert findings(hold) == []
    answer = hold.call("audit", {})
    assert answer["looked_at"] == {"entries": 3, "changes": 3, "outputs": 1}
    assert "does not count as opened" in answer["not_known"]


def test_secrets_are_named_where_they_are_and_where_they_were(hold: Limpet) -> None:
    work = hold.session(keep_secret=True)
    id = work.notes.add(f"deploy with {TOKEN}").id
    work.notepad.write(f"token: {TOKEN}")
    work.memory.write("safe", "nothing here")
    assert {(kind, key) for kind, key, _ in findings(hold, "secret")} == {("note", id), ("notepad", "one")}
    work.notes.update(id, content="deploy with the token of the vault")
    work.notepad.write("no token")
    found = findings(hold, "secret")
    assert {(kind, key) for kind, key, _ in found} == {("note", id), ("notepad", "one")}
    assert all(reason.endswith(", in an earlier version") for _, _, reason in found)
    changes = {one["change"] for one in hold.call("audit", {"only": ["secret"]})["findings"]}
    assert all(TOKEN in str(hold.store.entries.event(hold.scope, seq)) for seq in changes)


def test_what_is_said_twice_is_found_with_the_first_that_said_it(hold: Limpet, clock: Clock) -> None:
    notes = hold.session().notes
    first = notes.add(TEXT).id
    clock.pass_by()
    again, near = notes.add(TEXT.upper()).id, notes.add(f"{TEXT} Indeed").id
    hold.session().memory.write("release", TEXT)
    elsewhere = hold.session("two").notes
    elsewhere.update(elsewhere.add(TEXT).id, done=True)
    found = hold.call("audit", {"only": ["duplicate"]})["findings"]
    assert {one["of"] for one in found} == {first}
    assert [(one["id"], "nearly" in one["reason"]) for one in sorted(found, key=lambda one: str(one["id"]))] == [
        (again, False),
        (near, True),
        ("release", False),
    ]


def test_what_nobody_touched_for_long_is_stale(hold: Limpet, clock: Clock) -> None:
    work = hold.session()
    note, finished = work.notes.add("open").id, work.notes.add("finished").id
    work.notes.update(finished, done=True)
    work.memory.write("fact", "may be old")
    work.memory.write("rule", "holds for ever")
    work.memory.pin("rule")
    work.handoff.write("go on there")
    assert findings(hold, "stale") == []
    clock.pass_by(91 * DAY_MS)
    assert {(kind, key) for kind, key, _ in findings(hold, "stale")} == {
        ("note", note),
        ("memory", "fact"),
        ("handoff", "main/one"),
    }
    assert findings(hold, "stale", stale_days=92) == []


def test_outputs_that_nobody_used(hold: Limpet, clock: Clock) -> None:
    kept = [hold.session().outputs.keep("shell", f"line {number} of it\n" * 500).output for number in range(2)]
    assert findings(hold, "unread") == [], "it may still be read today"
    clock.pass_by(2 * DAY_MS)
    used, idle = (one.id for one in kept if one is not None)
    hold.call("read_output", {"id": used})
    assert [(kind, key) for kind, key, _ in findings(hold, "unread")] == [("output", idle)]


def test_it_is_bounded_and_says_so(hold: Limpet, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        hold.session(f"session {number}").notes.add(TEXT)
    answer = hold.call("audit", {"limit": 3})
    assert (len(answer["findings"]), answer["left_out"], answer["counts"]["duplicate"]) == (3, 1, 4)
    monkeypatch.setattr(limits, "AUDIT_COMPARED", 2)
    monkeypatch.setattr(limits, "AUDIT_CHARS", 100)
    answer = hold.call("audit", {})
    assert answer["counts"]["duplicate"] == 1
    assert len(answer["skipped"]) == 2
    with pytest.raises(errors.BadInput, match="'all'"):
        hold.call("audit", {"only": ["all"]})
