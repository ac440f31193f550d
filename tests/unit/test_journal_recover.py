"""Recovery within its budgets, findings with their lines, verdicts on evidence, rotation, and clearing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet import limits
from limpet.journal import clearing
from limpet.journal.document import edit, entries, lint, quotes, recover
from limpet.journal.document.entries import Archived, Blocker, Debt, Decision, Evidence, Item, LogRow, Ref
from limpet.journal.document.markup import scan
from limpet.journal.document.quotes import judge, judge_lines
from limpet.journal.document.sections import template
from limpet.text import tokens
from unit.journal_texts import documents, words

EXAMPLE = (Path(__file__).parent / "example_notes.md").read_text(encoding="utf-8")


def decision(number: int, text: str = "d") -> Decision:
    found = Evidence("q", Ref("a.py", 1, 1))
    return Decision(f"2026-01-{number:02d}T00:00:00Z", f"title{number}", text, "r", (found,), ("a", "b", "c"))


# --- the example ------------------------------------------------------------------------------------------------------


def test_the_example_is_read_lints_clean_and_stays_byte_for_byte() -> None:
    doc = scan(EXAMPLE)
    (one,) = entries.decisions(doc)
    assert one.entry.title == "Rates belong to the invoice"
    assert one.entry.evidence == (
        Evidence("rate: Decimal = field(default_factory=today)", Ref("src/rates/store.py", 7, 7)),
    )
    assert len(one.entry.scenarios) == 3
    assert [row.entry.id for row in entries.debts(doc)] == ["TD-001", "TD-002"]
    assert entries.debts(doc)[1].entry.description == '`parse("1,5" | "1.5")` takes both as the same number'
    assert [row.entry.note for row in entries.goals(doc)] == [
        "blocking: the rule for half cents",
        "depends on: the migration of old invoices",
    ]
    assert [one.entry for one in entries.blockers(doc)] == [
        Blocker("Waiting", "the bank's key for the test system", "2026-02-13"),
        Blocker("Blocked", "no change of the archive before the audit is over"),
    ]
    assert lint.lint(EXAMPLE) == []
    assert lint.fixed(EXAMPLE) == EXAMPLE
    assert "".join(line for line in (EXAMPLE[a.start : a.end] for a in doc.lines(0, len(EXAMPLE)))) == EXAMPLE


def test_level_1_of_the_example_holds_all_three_decisions_within_its_budget() -> None:
    found = recover.recover(EXAMPLE, 1)
    assert found.tokens == tokens.count(found.text) <= 100
    for part in ("Rates belong to the", "One bank as the", "Decimal numbers", "Rates are stored", "bd-k3m9"):
        assert part in found.text, found.text


def test_level_1_also_fits_by_the_exact_tokenizer() -> None:
    splintr = pytest.importorskip("splintr")
    exact = splintr.Tokenizer.from_pretrained("o200k_base")
    assert len(exact.encode(recover.recover(EXAMPLE, 1).text)) <= 110


# --- recovery ---------------------------------------------------------------------------------------------------------


@given(
    documents(),
    words,
    words,
    st.lists(st.text(max_size=300).map(lambda t: t.strip() or "x"), min_size=3, max_size=5),
    st.integers(1, 300),
)
def test_level_1_always_fits_and_always_holds_the_last_three(
    text: str, task: str, state: str, decided: list[str], budget: int
) -> None:
    text = edit.set_context(edit.set_context(text, edit.TASK, task), edit.STATE, state)
    for number, one in enumerate(decided):
        entry = decision(number + 1, one)._replace(at=f"2099-01-{number + 1:02d}T00:00:00Z")
        text = edit.add_decision(text, entry)
    found = recover.recover(text, 1, budgets=(budget, 500))
    assert found.tokens == tokens.count(found.text) <= max(budget, limits.JOURNAL_LEVEL_1_LEAST)
    shown = [line for line in found.text.split("\n") if line.startswith("- 2099-01-")]
    # The newest is first, and each of the three is told by its date and the beginning of its title.
    numbers = [len(decided), len(decided) - 1, len(decided) - 2]
    assert [line[2:12] for line in shown] == [f"2099-01-{number:02d}" for number in numbers]
    assert all(line[13:].startswith("t") for line in shown)
    assert "State: " in found.text
    assert "Task: " in found.text


@given(documents(), words, st.integers(1, 900))
def test_level_2_fits_with_and_without_a_question(text: str, query: str, budget: int) -> None:
    for asked in ("", query):
        found = recover.recover(text, 2, query=asked, budgets=(100, budget))
        assert found.tokens <= max(budget, limits.JOURNAL_LEVEL_1_LEAST)


def test_level_2_answers_from_the_journal_and_its_archive() -> None:
    found = recover.recover(
        EXAMPLE, 2, query="why do we use only one bank", more="#### 2025-01-01 - Old\nbank of old\n"
    )
    assert found.how == "search"
    assert "Two disagree in the fourth digit" in found.text
    assert recover.recover(EXAMPLE, 2, query="zebra xylophone").how == "continuity"
    plain = recover.recover(EXAMPLE, 2)
    assert plain.tokens <= 500
    for part in ("May a rate be corrected", "the bank's key", "total.py:12-40", "Cents must add up"):
        assert part in plain.text


def test_level_3_is_the_whole_text() -> None:
    assert recover.recover(EXAMPLE, 3).text == EXAMPLE
    assert recover.recover("a\udcff", 3).text == "a\ufffd"


def test_what_is_wrong_with_evidence_and_what_is_due_is_said() -> None:
    start = entries.decisions(scan(EXAMPLE))[0].start
    found = recover.recover(EXAMPLE, 1, marks={start: "drifted"}, now=datetime(2026, 3, 1, tzinfo=UTC))
    assert "[evidence drifted]" in found.text
    assert "2 blockers (1 due: resolved?)" in found.text
    assert found.tokens <= 100


def test_an_empty_journal_recovers_to_nothing() -> None:
    assert recover.recover(template(), 1).text == ""
    assert recover.recover("", 2).text == ""


# --- lint -------------------------------------------------------------------------------------------------------------


def rules(text: str, root: str = "") -> list[tuple[int, str]]:
    return [(one.line, one.rule) for one in lint.lint(text, root)]


def test_every_finding_has_its_line() -> None:
    text = template().replace(
        "three test scenarios. -->\n",
        "three test scenarios. -->\n#### yesterday - Nothing said\n**Decision**: x\n**Evidence**:\n"
        "- `q` [src/a.py:3]\n**Test Scenarios**:\n1. one\n",
    )
    at = text.split("\n").index("#### yesterday - Nothing said") + 1
    assert rules(text) == [
        (at, "decision-rationale"),
        (at, "decision-scenarios"),
        (at, "decision-time"),
        (at + 3, "path"),
    ]


@pytest.mark.parametrize(
    ("place", "mended"),
    [
        ("src/a.py:3", "${PROJECT_ROOT}/src/a.py:3"),
        ("./src/a.py:3-9", "${PROJECT_ROOT}/src/a.py:3-9"),
        ("/home/me/p/src/a.py:3", "${PROJECT_ROOT}/src/a.py:3"),
        ("/etc/passwd:1", None),
        ("../other/a.py:3", None),
        ("~/a.py:3", None),
    ],
)
def test_paths_are_written_from_the_root(place: str, mended: str | None) -> None:
    rows = edit.add_identifier(template(), entries.Identifier(place, "x", "2026-01-01T00:00Z"))
    text = edit.add_decision(rows, decision(1)).replace("${PROJECT_ROOT}/a.py:1", place)
    assert [rule for _, rule in rules(text, "/home/me/p")] == ["path", "path"]
    fixed = lint.fixed(text, "/home/me/p")
    assert fixed == (text if mended is None else text.replace(place, mended))
    assert (lint.lint(fixed, "/home/me/p") == []) == (mended is not None)


def test_structure_is_looked_at_too() -> None:
    assert {rule for _, rule in rules("")} == {"section"}
    assert lint.lint(lint.fixed("# Mine\n\nwords\n")) == []
    text = template() + "\n## Decision Archive\n<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n```\n"
    assert [rule for _, rule in rules(text)] == ["section-twice", "conflict", "unclosed"]
    debts = edit.add_debt(edit.add_debt(template(), Debt("TD-001", "x")), Debt("TD-001", "y"))
    assert [rule for _, rule in rules(edit.add_debt(debts, Debt("7", "z")))] == ["debt-id", "debt-id"]
    broken = edit.add_debt(template(), Debt("TD-001", "x")).replace("| TD-001 | x |", "| TD-001 | x | y |")
    assert [rule for _, rule in rules(broken)] == ["cells"]
    times = edit.add_archived(edit.add_log(template(), LogRow("noon", "a", "s")), Archived("soon", "d"))
    assert [rule for _, rule in rules(times)] == ["time", "time"]


@given(documents())
def test_lint_takes_any_text_and_mending_leaves_nothing_mendable(text: str) -> None:
    lint.lint(text, "/p")
    fixed = lint.fixed(text, "/p")
    assert not [one for one in lint.lint(fixed, "/p") if one.fixable]
    assert lint.fixed(fixed, "/p") == fixed


# --- evidence ---------------------------------------------------------------------------------------------------------

SOURCE = (
    "import os\n\n\ndef total(lines):\n    return sum(lines)\n\n\n"
    "def mean(lines):\n    return sum(lines) / len(lines)\n"
)


@pytest.mark.parametrize(
    ("quote", "first", "last", "state", "now"),
    [
        ("def total(lines):", 4, 4, "fresh", (4, 4)),
        ("def total(lines):", 3, 6, "fresh", (3, 6)),
        ("total", 4, 4, "fresh", (4, 4)),
        ("def total(lines):\n    return sum(lines)", 4, 5, "fresh", (4, 5)),
        ("def total(lines):\nreturn sum(lines)", 9, 10, "moved", (4, 5)),
        ("def mean(lines):", 2, 2, "moved", (8, 8)),
        ("return sum(lines)", 8, 8, "moved", (9, 9)),
        ("def median(lines):", 4, 4, "drifted", (4, 4)),
        ("import os", 0, 0, "fresh", (0, 0)),
    ],
)
def test_a_quote_is_judged(quote: str, first: int, last: int, state: str, now: tuple[int, int]) -> None:
    found = judge(quote, Ref("a.py", first, last), SOURCE)
    assert (found.state, (found.ref.first, found.ref.last)) == (state, now)
    assert judge(quote, Ref("a.py", first, last), None).state == "gone"
    crlf = judge(quote, Ref("a.py", first, last), SOURCE.replace("\n", "\r\n"))
    assert (crlf.state, crlf.ref) == (found.state, found.ref)


def test_lines_without_a_quote_are_judged_by_what_they_were() -> None:
    ref = Ref("a.py", 4, 5)
    seen = quotes.digest_of(quotes.lines_of(SOURCE, ref))
    assert judge_lines(seen, ref, SOURCE).state == "fresh"
    moved = judge_lines(seen, ref, "# new\n" + SOURCE)
    assert (moved.state, moved.ref.first, moved.ref.last) == ("moved", 5, 6)
    assert judge_lines(seen, ref, SOURCE.replace("sum", "max")).state == "drifted"
    assert judge_lines(seen, ref, None).state == "gone"
    assert judge_lines(None, ref, SOURCE).state == "fresh"
    assert judge_lines(None, Ref("a.py", 90, 95), SOURCE).state == "drifted"


# --- rotation ---------------------------------------------------------------------------------------------------------


@given(documents(), st.integers(0, 8), st.integers(0, 8), st.integers(1, 6), st.integers(1, 6))
def test_what_rotates_is_in_the_archive_and_nothing_else_changes(
    text: str, decisions: int, rows: int, keep: int, keep_rows: int
) -> None:
    for number in range(decisions):
        text = edit.add_decision(text, decision(number + 1, f"words {number}"))
    for number in range(rows):
        text = edit.add_log(text, LogRow(f"2026-01-{number + 1:02d}", "a", f"row {number}"))
    before = scan(text)
    moved = edit.choose_old(text, keep, keep_rows)
    after = edit.without_moved(text, moved, "NOTES.archive.md") if moved else text
    archive = edit.add_to_archive(edit.new_archive("NOTES.md"), moved)
    kept = [one.entry for one in entries.decisions(scan(after))]
    gone = [one.entry for one in entries.decisions(scan(archive))]
    assert len(kept) >= min(3, len(entries.decisions(before)))
    assert sorted([*kept, *gone]) == sorted(one.entry for one in entries.decisions(before))
    logged = [one.entry for one in entries.log_rows(scan(after))]
    assert len(logged) + len(moved.rows) == len(entries.log_rows(before))
    assert edit.add_to_archive(archive, moved) == archive  # again, as after a crash in between
    assert all(block.replace("\r\n", "\n").strip("\n") in archive for block in moved.decisions)
    assert archive.split("## Decision Log")[0].count("\n| ") == len(moved.decisions) + 1


# --- clearing ---------------------------------------------------------------------------------------------------------

HITS = "".join(f"src/f{number % 12}.py:{number}: AuthService(x)\n" for number in range(1, 48))


@pytest.mark.parametrize(
    ("tool", "content", "why", "line"),
    [
        ("rg", HITS, "search", "rg: 47 matches in 12 files."),
        ("rg", "".join(HITS.splitlines(True)[:20]), None, ""),
        ("cat", "".join(f"value{n} = {n}\n" for n in range(101)), "file", "cat: 101 lines."),
        ("cat", "".join(f"value{n} = {n}\n" for n in range(100)), None, ""),
        ("tree", ".\n├── a\n│   ├── b.py\n│   └── c.py\n└── d.py\n", "tree", "tree: 5 entries listed."),
        ("api", '[{"a": 1}, {"a": 2}]', "json", "api: a JSON list of 2 items."),
        ("api", '{"a": 1, "b": 2}', "json", "api: a JSON object with 2 keys (a, b)."),
        (
            "pytest",
            (
                "============ test session starts ============\na.py ..F\n\nFAILED a.py::b - boom\n"
                "========= 1 failed, 2 passed in 0.1s =========\n"
            ),
            "run",
            "pytest: 1 failed, 2 passed.",
        ),
    ],
)
def test_a_result_becomes_one_line(tool: str, content: str, why: str | None, line: str) -> None:
    assert clearing.trigger(tool, content) == why
    found = clearing.clear(tool, content, "3f9a1c2b77e0")
    if why is None:
        assert found is None
    else:
        assert found == (why, f"{line} Whole result: hold://3f9a1c2b77e0")


def test_items_are_ticked_and_blockers_resolved() -> None:
    text = edit.resolve(EXAMPLE, entries.blockers(scan(EXAMPLE))[0])
    assert "- [RESOLVED] Waiting: the bank's key" in text
    assert entries.blockers(scan(text))[0].entry.resolved
    text = edit.add_goal(EXAMPLE, Item("more"))
    assert text.count("\n") == EXAMPLE.count("\n") + 1
