"""Two versions of a journal put together: nothing either side wrote is lost, and what both changed is marked."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from limpet.journal.document import edit, entries
from limpet.journal.document.entries import Decision, Item
from limpet.journal.document.markup import scan
from limpet.journal.document.merge import MergeConflict, merge, origin, pieces
from limpet.journal.document.sections import template
from unit.journal_texts import documents, words

lines = st.lists(st.sampled_from(["a\n", "b\n", "- c\n", "  d\n", "\n", "## e\n", "| f |\n"]), max_size=8)


def decision(name: str) -> Decision:
    return Decision("2026-01-01T00:00:00Z", name, "d", "r", (), ("a", "b", "c"))


@given(documents())
def test_pieces_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text


@given(documents(), documents())
def test_what_only_one_side_changed_is_taken(one: str, other: str) -> None:
    assert merge(one, one, other) == (other, ())
    assert merge(one, other, one) == (other, ())
    assert merge(one, other, other) == (other, ())


@given(lines, lines, lines)
def test_no_new_line_of_either_side_is_lost(base: list[str], ours: list[str], theirs: list[str]) -> None:
    """New lines are told apart by a mark, so that none can hide behind another."""
    ours = [*ours[:3], "ours 1\n", *ours[3:], "ours 2\n"]
    theirs = ["theirs 1\n", *theirs[:4], "theirs 2\n", *theirs[4:]]
    found = merge("".join(base), "".join(ours), "".join(theirs)).text.split("\n")
    assert {"ours 1", "ours 2", "theirs 1", "theirs 2"} <= set(found)


@given(documents(), words, words)
@example("### Decision Log\r\n\r\n#### 2026-01-02T03:04:05Z - One\r\n**Decision**: a\r\n\r\nend\r", "a", "b")
@example("### Decision Log\n\n#### 2026-01-02T03:04:05Z - One\n**Decision**: a\n\n<pre>\nnever closed\n", "a", "b")
@example("### Decision Log\n\n#### 2026-01-02T03:04:05Z - One\n**Decision**: a\n\nUnderlined\n---\nend\n", "a", "b")
def test_entries_added_on_both_sides_are_both_there_and_whole(text: str, one: str, two: str) -> None:
    mine, other = decision(f"m{one.split(maxsplit=1)[0]}"), decision(f"o{two.split(maxsplit=1)[0]}")
    found = merge(text, edit.add_decision(text, mine), edit.add_decision(text, other))
    titles = [placed.entry for placed in entries.decisions(scan(found.text))]
    # Where the whole section is new on both sides, each brings its own; then all that counts is that no line is lost.
    if entries.decision_headings(scan(text)):
        assert {mine, other} <= set(titles)
    for line in edit.decision_block(mine, 4).split("\n") + edit.decision_block(other, 4).split("\n"):
        assert line in found.text.replace("\r\n", "\n").replace("#####", "####").split("\n") or line.startswith("#")


def test_an_entry_changed_on_both_sides_stays_twice_between_marks() -> None:
    base = edit.add_question(template(), Item("which lexer?"))
    ours = base.replace("- [ ] which lexer?", "- [x] which lexer?")
    theirs = base.replace("which lexer?", "which lexer, and why?")
    found = merge(base, ours, theirs)
    assert found.conflicts == (MergeConflict("- [x] which lexer?\n", "- [ ] which lexer, and why?\n"),)
    assert (
        "<<<<<<< changed by hand\n- [ ] which lexer, and why?\n=======\n"
        "- [x] which lexer?\n>>>>>>> changed by an agent\n" in found.text
    )
    doc = scan(found.text)
    assert len(doc.clashes) == 1
    assert [heading.title for heading in doc.headings] == [heading.title for heading in scan(base).headings]


def test_deleted_by_one_and_changed_by_the_other_is_a_conflict() -> None:
    base = "- a\n- b\n- c\n"
    found = merge(base, "- a\n- c\n", "- a\n- B\n- c\n")
    assert found.conflicts == (MergeConflict("", "- B\n"),)
    assert "- B\n" in found.text


def test_other_line_ends_are_no_change() -> None:
    base = "# a\n\n- x\n- y\n"
    found = merge(base, "# a\n\n- x\n- new\n- y\n", base.replace("\n", "\r\n").replace("y", "z"))
    assert found == ("# a\r\n\r\n- x\r\n- new\r\n- z\r\n", ())


def test_a_last_line_without_an_end_gets_one_when_something_follows() -> None:
    assert merge("a\nb", "a\nb\nours\n", "theirs\na\nb").text == "theirs\na\nb\nours\n"
    assert merge("a\nb", "ours\na\nb", "a\nb\ntheirs").text == "ours\na\nb\ntheirs"


def test_the_state_a_buffer_came_from_is_found() -> None:
    first = "".join(f"line {number}\n" for number in range(20))
    second = first + "- agent one\n"
    third = second + "- agent two\n"

    def found(text: str, *, forgot: bool = False) -> str:
        return origin(lambda: [first, second, third], text, forgot=forgot)

    assert found(second.replace("line 3", "line three")) == second
    assert found(first + "- by hand\n") == first
    assert found(third.replace("- agent one\n", "")) == third
    # The newest entry alone: an old buffer would look the same.
    assert found(third.replace("- agent two\n", "- by hand\n")) == second
    # Older than the oldest state: nothing counts as deleted.
    assert found("line 3\n- by hand\n", forgot=True) == "line 3\n"
    assert found("line 3\n- by hand\n") == first
    assert origin(list, "x") == ""
