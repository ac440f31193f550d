"""The journal as a document: every byte stays, every entry is read back as it was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from limpet.journal.document import edit, entries, markup, sections
from limpet.journal.document.entries import Archived, Blocker, Debt, Decision, Evidence, Identifier, Item, LogRow, Ref
from limpet.journal.document.markup import BOM, scan
from unit.journal_texts import documents, line, words

path = line.map(lambda text: text.replace("\0", "") or "x")
refs = st.builds(lambda name, first, more: Ref(name, first, first + more), path, st.integers(1, 999), st.integers(0, 9))
quotes = words.filter(lambda text: bool(text.strip()))
evidence = st.one_of(
    st.builds(Evidence, quotes, refs), st.builds(Evidence, words.filter(lambda t: '" [user]' not in t), st.none())
)
decisions = st.builds(
    Decision,
    st.just("2026-03-03T12:00:00Z"),
    line,
    words,
    words,
    st.lists(evidence, max_size=3).map(tuple),
    st.lists(words, max_size=4).map(tuple),
)
notes = st.one_of(st.just(""), line.map(lambda text: f"blocking: {text}"), line.map(lambda text: f"depends on: {text}"))
Case = tuple[Callable[[str, Any], str], Callable[[Any], Any], Any]
changes: st.SearchStrategy[Case] = st.one_of(
    decisions.map(lambda entry: (edit.add_decision, entries.decisions, entry)),
    words.map(lambda text: (edit.add_question, entries.questions, Item(text))),
    st.builds(Item, words, st.booleans(), notes).map(lambda entry: (edit.add_goal, entries.goals, entry)),
    st.builds(Blocker, st.sampled_from(["Waiting", "Blocked"]), words, st.one_of(st.just(""), line), st.booleans()).map(
        lambda entry: (edit.add_blocker, entries.blockers, entry)
    ),
    st.builds(Debt, line, words, line, line, line).map(lambda entry: (edit.add_debt, entries.debts, entry)),
    st.builds(LogRow, line, line, words).map(lambda entry: (edit.add_log, entries.log_rows, entry)),
    st.builds(Archived, line, words, words, line).map(lambda entry: (edit.add_archived, entries.archived, entry)),
    st.builds(Identifier, refs.map(str), words, line).map(
        lambda entry: (edit.add_identifier, entries.identifiers, entry)
    ),
)


def kept(before: str, after: str) -> bool:
    """Whether every line of the one stands in the other, in order and with its own line end."""
    lines = before.removeprefix(BOM).split("\n")
    rest = iter(after.removeprefix(BOM).split("\n"))
    last = lines.pop()
    return (
        before.startswith(BOM) == after.startswith(BOM)
        and all(one in rest for one in lines)
        and any(one.startswith(last) for one in rest)
    )


def readings(doc: Any) -> list[Any]:
    read = (entries.decisions, entries.questions, entries.goals, entries.blockers, entries.debts, entries.identifiers)
    more = (entries.log_rows, entries.archived, entries.context)
    return [[one.entry for one in reader(doc)] for reader in (*read, *more)]


@given(documents())
def test_any_text_is_scanned_without_a_change(text: str) -> None:
    doc = scan(text)
    assert "".join(text[one.start : one.end] for one in doc.lines(0, len(text))) == text
    assert all(first.start < second.start for first, second in zip(doc.headings, doc.headings[1:], strict=False))
    readings(doc)


@pytest.mark.parametrize("rule", ["---", "***", "___", "- - -", " * * * "])
def test_a_rule_ends_an_item(rule: str) -> None:
    assert [goal.entry.text for goal in entries.goals(scan(f"## Active Sub-Goals\n- [ ] a\n{rule}\nplain\n"))] == ["a"]


@given(documents(), changes)
@example("- [ ] a", (edit.add_question, entries.questions, Item("b")))
@example("## Active Sub-Goals\n* [ ] a\n- \n---\n", (edit.add_goal, entries.goals, Item("|")))
@example("## Active Sub-Goals\n* [ ] a\n- \nplain\n", (edit.add_goal, entries.goals, Item("b")))
def test_an_added_entry_is_read_back_and_nothing_else_changes(text: str, case: Case) -> None:
    add, read, entry = case
    before = [one.entry for one in read(scan(text))]
    if isinstance(entry, Identifier) and any(one.place == entry.place for one in before):
        return  # that row is brought up to date instead
    after = add(text, entry)
    assert kept(text, after)
    found = [one.entry for one in read(scan(after))]
    assert found[-1] == entry or entry in found
    assert len(found) == len(before) + 1
    assert [one for one in found if one != entry] == [one for one in before if one != entry]
    # An entry that is there already takes nothing but its own place: what is around it stays, byte for byte.
    again = add(after, entry if not isinstance(entry, Identifier) else entry._replace(place=entry.place + "0"))
    start = next(at for at in range(len(again)) if at == len(after) or again[at] != after[at])
    assert after[start:] == again[len(again) - (len(after) - start) :]
    others = [one for one in zip(readings(scan(text)), readings(scan(after)), strict=True) if one[0] != one[1]]
    assert len(others) == 1


@given(documents(), words, words)
def test_a_field_of_the_context_is_set_and_nothing_else(text: str, first: str, second: str) -> None:
    once = edit.set_context(text, edit.STATE, first)
    twice = edit.set_context(once, edit.STATE, second)
    names = {sections.normal(name) for name in edit.STATE}
    for value, result in ((first, once), (second, twice)):
        found = [field.entry[1] for field in entries.context(scan(result)) if sections.normal(field.entry[0]) in names]
        assert found[0] == value
    assert len(once.split("\n")) - len(twice.split("\n")) in (0, 1)  # a value of two lines becomes one


@given(documents(), words)
def test_ticking_changes_one_box(text: str, words: str) -> None:
    with_one = edit.add_question(text, Item(words))
    placed = [one for one in entries.questions(scan(with_one)) if not one.entry.done][-1]
    ticked = edit.tick(with_one, placed)
    assert sum(a != b for a, b in zip(with_one, ticked, strict=True)) == 1
    with_two = edit.add_blocker(text, Blocker("Waiting", words))
    blocker = [one for one in entries.blockers(scan(with_two)) if not one.entry.resolved][-1]
    resolved = edit.resolve(with_two, blocker)
    assert [one.entry.resolved for one in entries.blockers(scan(resolved)) if one.start == blocker.start] == [True]
    assert resolved.replace("[RESOLVED] ", "", 1) == with_two or "[RESOLVED] " in with_two


@given(words)
def test_escaped_text_is_one_line_and_comes_back(text: str) -> None:
    for cell in (False, True):
        safe = markup.escape(text, cell=cell)
        assert "\n" not in safe
        assert markup.unescape(safe) == text
    (row,) = [markup.cells(markup.row([text, "b", text]))]
    assert [markup.unescape(cell.raw) for cell in row] == [text, "b", text]


@given(line.filter(bool))
def test_code_comes_back(text: str) -> None:
    assert markup.leading_span(markup.code_span(text)) == (text, len(markup.code_span(text)))


def test_what_is_hidden_is_no_heading() -> None:
    text = (
        "---\n# front: matter\n---\n# One\n```\n# code\n```\n<!--\n# comment\n-->\n    # indented\n> # quoted\n"
        "Two\n===\n~~~~\n~~~\n# still code\n~~~~\n## Three ##\n#not one\n- # in a list\n"
        "<PRE>\n# raw\n</PRE>\nFour\n---\n"
    )
    doc = scan(text)
    assert [(one.level, one.title) for one in doc.headings] == [(1, "One"), (1, "Two"), (2, "Three"), (2, "Four")]
    assert not doc.unclosed


def test_a_pipe_in_code_does_not_break_a_row_where_the_columns_tell() -> None:
    text = "## Technical Debt\n| ID | Description | Severity |\n|--|--|--|\n| TD-1 | `a|b` fails | LOW |\n"
    (row,) = entries.debts(scan(text))
    assert row.entry == Debt("TD-1", "`a|b` fails", "LOW")


def test_a_row_goes_into_the_columns_that_are_there_and_loses_nothing() -> None:
    text = "## Technical Debt\n| ID | Description | File |\n|--|--|--|\n| TD-1 | x | a.py |\nprose\n"
    after = edit.add_debt(text, Debt("TD-2", "slow", "HIGH", "me", "S3"))
    assert "| TD-1 | x | a.py |\n| TD-2 | slow (severity: HIGH, found by: me, sprint: S3) |  |\nprose\n" in after


def test_the_number_of_a_debt_is_never_given_twice() -> None:
    assert edit.next_debt_id("nothing") == "TD-001"
    assert edit.next_debt_id("TD-009 x TD-012", "TD-041 in the archive") == "TD-042"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_template_has_every_section_and_takes_every_entry(newline: str) -> None:
    text = sections.template().replace("\n", newline)
    assert list(sections.places(scan(text))) == [section.key for section in sections.SECTIONS]
    after = edit.add_goal(edit.add_decision(text, Decision("2026-01-01", "t", "d", "r")), Item("g", note="blocking: b"))
    assert after.count("\n") == after.count(newline)
    assert entries.goals(scan(after))[0].entry == Item("g", note="blocking: b")


def test_ten_megabytes_are_taken_apart() -> None:
    body = "".join(f"plain line {number} with `code` and | a pipe\n" for number in range(240_000))
    text = sections.template() + "## Attic\n```\n" + body + "```\n"
    assert len(text) > 10_000_000
    after = edit.add_question(text, Item("still there?"))
    assert len(after) == len(text) + len("- [ ] still there?\n")
