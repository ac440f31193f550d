"""A plain question put to a text: the answer is shown with what is around it, within the budget, in bounded time."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.recall.ask import ask
from limpet.recall.question import folded, terms
from limpet.recall.units import LONG_LINE, Units, pieces
from limpet.text.tokens import count

PEOPLE = [
    {"name": f"Person {n}", "mail": f"p{n}@example.org", "age": 20 + n % 50, "note": "x " * 5} for n in range(300)
]


def shown(text: str, question: str, budget: int = 300) -> str:
    part = ask(text, question, budget, count)
    assert count(part.content) <= budget
    assert part.cursor is None
    assert part.note
    return part.content


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("raise userRoleError(userId)", "where is the user role error raised"),
        ("updated_at = NULL for row_42", "what is updatedAt of row 42"),
        ("GET /api/v2/things?id=7 500 12ms", "status of /api/v2/things"),
        ("registered 3 handlers", "how many handlers did the registration make"),
        ("upgraded foo to 1.16.2-rc1", "which package went to 1.16.2-rc1"),
        ("Zażółć gęślą jaźń", "zazolc gesla"),
        ("the ferry to \u0130stanbul", "istanbul"),
        ("the cleanup took 4 s", "how long did it take to clean up"),
    ],
)
def test_words_are_found_inside_identifiers_and_by_their_stem(line: str, question: str) -> None:
    text = "\n".join(
        [*(f"nothing of interest {n}" for n in range(400)), line, *(f"more of it {n}" for n in range(400))]
    )
    assert line in shown(text, question, 80)


def test_a_number_is_not_found_inside_another() -> None:
    text = "\n".join(f"worker state {n}" for n in range(100, 700))
    assert "worker state 6\n" in shown(text + "\nworker state 6\nend", "worker state 6", 60) + "\n"


def test_the_lines_are_counted_as_the_preview_counts_them() -> None:
    text = "".join(f"nothing of interest {n}\n" for n in range(20)) + "a needle\n"
    assert ask(text, "needle", 100, count).note == "the only place with words of the question, in 21 lines"
    assert ask(text[:-1], "needle", 100, count).note == "the only place with words of the question, in 21 lines"
    assert "the best of 20 places" in ask(text, "interest", 1_000, count).note


def test_lines_are_numbered_and_in_the_order_of_the_text() -> None:
    text = "\n".join(f"{'needle' if n in (20, 70) else 'straw'} {n}" for n in range(1, 101))
    content = shown(text, "needle", 100)
    assert content.index("needle 20") < content.index("needle 70")
    assert "20: needle 20" in content or "19: straw 19\nneedle 20" in content


def test_the_header_of_a_table_is_always_shown() -> None:
    text = "id,full_name,amount\n" + "".join(f"{n},Person {n},{n * 7}\n" for n in range(2_000))
    content = shown(text, "amount of person 1234", 80)
    assert content.startswith("1: id,full_name,amount")
    assert "1234,Person 1234,8638" in content


def test_a_wide_header_is_cut_to_the_columns_asked_about() -> None:
    names = [f"column_with_long_name_{n}" for n in range(60)] + ["net_salary"]
    rows = [",".join(str(n * 100 + at) for at in range(61)) for n in range(50)]
    content = shown(",".join(names) + "\n" + "\n".join(rows), "net salary where the first column is 1700", 300)
    assert "61 net_salary" in content
    assert "1700," in content


@pytest.mark.parametrize("indent", [None, 2, 4])
def test_a_small_json_record_is_shown_whole(indent: int | None) -> None:
    content = shown(json.dumps(PEOPLE, indent=indent), "mail of Person 123")
    assert '"Person 123"' in content
    assert '"p123@example.org"' in content
    assert '"age": 43' in content


def test_a_field_of_a_large_record_is_shown_with_its_name() -> None:
    rows = [{"title": f"Film {n}", **{f"field {at}": at * n for at in range(40)}, "rating": n / 10} for n in range(200)]
    for indent in (None, 2):
        content = shown(json.dumps(rows, indent=indent), "rating of Film 57")
        assert '"Film 57"' in content
        assert '"rating": 5.7' in content


def test_headings_and_what_a_line_encloses_are_shown() -> None:
    sections = [f"## Part {n}\n\nSome words about nothing.\n\n- value: {n}\n" for n in range(200)]
    sections[77] = "## Retry policy\n\nUse it well.\n\n- attempts: 5\n- pause: 3s\n"
    content = shown("\n".join(sections), "retry attempts", 120)
    assert "## Retry policy" in content
    assert "attempts: 5" in content
    tests = "".join(f"  ✓ does thing {n} 3ms\n" for n in range(200))
    tests += "  ✗ sends mail 9ms\n    → Error: connection refused\n" + tests
    assert "connection refused" in shown(tests, "why does the sends mail test fail", 120)


def test_lines_that_differ_in_numbers_leave_room_for_others() -> None:
    text = "\n".join([*(f"12:00:{n % 60:02} error connecting to 10.0.0.{n}" for n in range(500)), "error: disk full"])
    assert "error: disk full" in shown(text, "error", 120)


def test_a_line_of_xml_is_cut_at_its_tags() -> None:
    text = (
        "<suite>"
        + "".join(f'<case name="t{n}" time="{n}.5"><out>fine {n}</out></case>' for n in range(3_000))
        + "</suite>"
    )
    assert 'name="t1234" time="1234.5"' in shown(text, "time of case t1234", 200)


def test_of_a_line_that_is_too_long_as_much_is_shown_as_fits_and_the_last_cause() -> None:
    path = " ".join(f"at step{n}" for n in range(40))
    line = f'level=error msg="row was not read" feed=nordwind row=4117 {path} ValueError: no weight in 12 kg'
    text = "\n".join([*(f"level=info row={n} was read" for n in range(200)), line, "level=info end"])
    assert "row=4117" in shown(text, "which row was not read", 300)
    assert "ValueError: no weight in 12 kg" in shown(text, "why was the row not read", 300)


def test_what_else_a_log_says_of_the_order_that_was_asked_for_is_shown() -> None:
    events = []
    for number in range(300):
        time, order = f"2026-03-11T06:{number // 60:02}:{number % 60:02}Z", f"order=A-{50000 + number}"
        events += [f"{time} gateway POST {order} from=c{number}", f"{time} payments charged {order} cents=700"]
    events[345] = "2026-03-11T06:02:52Z payments card declined order=A-50172 code=expired"
    answer = shown("\n".join(events), "whose card was declined", 120)
    assert "card declined order=A-50172" in answer
    assert "order=A-50172 from=c172" in answer


@given(st.text())
def test_folding_a_text_moves_nothing_in_it(text: str) -> None:
    assert len(folded(text)) == len(text)


def test_the_last_event_of_a_kind_is_shown_before_the_first_ones() -> None:
    kinds = ("opened", "closed", "painted")
    lines = [f"2026-11-19 10:{n // 60:02}:{n % 60:02} {kinds[n % 3]} gate {n}" for n in range(600)]
    assert lines[597] in shown("\n".join(lines), "when was a gate opened last?", 120)
    assert lines[598] in shown("\n".join(lines), "latest closed", 120)
    assert lines[0] in shown("\n".join(lines), "first opened", 120)


def test_the_path_of_a_value_at_the_bottom_of_very_deep_json_is_left_out() -> None:
    assert "at path /0/0/0" in ask("[" * 40 + '"needle"' + "]" * 40, "needle", 300, count).note
    assert len(ask("[" * 100_000 + '"needle"', "needle", 300, count).note) < 500


def test_nothing_found_says_what_to_do() -> None:
    part = ask("alpha\nbeta", "zebra", 100, count)
    assert part.content == ""
    assert "match=" in part.note
    assert ask("", "anything", 100, count).content == ""
    assert ask("text", "", 100, count).content == ""
    assert ask("the who of it", "who is it", 100, count).content


@given(st.text(max_size=400), st.text(max_size=60), st.integers(20, 200))
def test_any_text_and_question_stay_within_the_budget(text: str, question: str, budget: int) -> None:
    part = ask(text, question, budget, count)
    assert count(part.content) <= budget
    assert part == ask(text, question, budget, count)


@given(st.text('{}[]"\\,:ab <>/\n', max_size=300))
def test_the_units_of_a_line_are_the_whole_line(line: str) -> None:
    for lead in ('[{"a": 1, "b": ', "<a></a><b></b><c></c><d></d>", "plain words "):
        text = lead + line * (LONG_LINE // max(1, len(line)) + 1)
        starts = [at for at, _ in pieces(text)]
        assert starts[0] == 0
        assert starts == sorted(set(starts))
        assert starts[-1] < len(text)
    units = Units(line)
    assert "".join(line[a:b] for a, b in zip(units.starts, units.starts[1:], strict=False)) == line


def test_terms_of_a_question() -> None:
    found = {term.text: term for term in terms("Which client got HTTP 500 on /api/users at 10:10:25?")}
    assert {"client", "http", "500", "/api/users", "10:10:25"} <= set(found)
    assert "which" not in found
    assert found["/api/users"].weight > found["users"].weight


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Jun 14 15:16:01 combo sshd[19939]: authentication failure; user=root\n" * 140_000, "user root failure sshd"),
        (json.dumps(PEOPLE * 250), "mail of Person 123"),
        ("A" * 10_000_000, "what is AAA"),
        ("[" * 3_000_000, "a [ b"),
        ("\n" * 3_000_000 + "hello", "hello"),
        ('["' + 'a\\"' * 3_000_000, "a b"),
    ],
    ids=["log", "json", "one word", "brackets", "blank lines", "open string"],
)
def test_large_texts_take_seconds_at_most(text: str, question: str) -> None:
    begun = time.perf_counter()
    shown(text, question, 600)
    assert time.perf_counter() - begun < 15  # about a second on an idle machine
