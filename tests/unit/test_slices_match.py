"""Matches with numbers and context, and rows and columns of tables."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.text import slices, tokens
from limpet.text.slices import BadSlice

LOG = "start\nok 1\nERROR disk\nok 2\nok 3\nok 4\nok 5\nERROR net\nend"


def test_a_text_is_found_with_its_context() -> None:
    part = slices.match(LOG, "ERROR", False, 1, 500)
    assert part.content == "2- ok 1\n3: ERROR disk\n4- ok 2\n--\n7- ok 5\n8: ERROR net\n9- end\n"
    assert part == (part.content, None, "all 2 matching lines")


def test_context_that_overlaps_is_shown_once() -> None:
    shown = slices.match(LOG, "ok", False, 2, 500).content
    assert shown.count("\n") == 9
    assert "--" not in shown
    assert [line.split(" ")[0] for line in shown.splitlines()][:4] == ["1-", "2:", "3-", "4:"]


def test_neighbouring_matches_are_all_marked() -> None:
    assert slices.match("a\na\nb\na", "a", False, 3, 500).content == "1: a\n2: a\n3- b\n4: a\n"


def test_another_case_is_found_when_nothing_else_is() -> None:
    assert slices.match(LOG, "error DISK", False, 0, 500) == (
        "3: ERROR disk\n",
        None,
        "the one matching line, in any case",
    )
    assert slices.match(LOG, "nowhere", False, 0, 500) == ("", None, "no line of 9 matches")


@pytest.mark.parametrize(
    ("pattern", "numbers"),
    [
        ("^ok [24]$", [4, 6]),
        ("(?i)error", [3, 8]),
        (r"\d", [2, 4, 5, 6, 7]),
        ("^", list(range(1, 10))),
        (r"2\s+ok", []),
    ],
)
def test_a_regex_matches_within_lines(pattern: str, numbers: list[int]) -> None:
    shown = slices.match(LOG, pattern, True, 0, 500).content
    assert [int(line.split(":")[0]) for line in shown.splitlines() if line != "--"] == numbers


def test_a_regex_that_is_none_says_why() -> None:
    with pytest.raises(BadSlice, match=r"missing \)"):
        slices.match(LOG, "(a", True, 0, 500)
    with pytest.raises(BadSlice, match="regular expression"):
        slices.match(LOG, r"(a)\1", True, 0, 500)


def test_a_regex_that_matches_bytes_is_refused() -> None:
    with pytest.raises(BadSlice, match="parts of a character"):
        slices.match("Größe\n", r"\Cß", True, 0, 100)


def test_a_regex_that_is_slow_elsewhere_is_not_here() -> None:
    begun = time.perf_counter()
    slices.match("a" * 200_000 + "b", "(a+)+$", True, 0, 100)
    slices.match("a" * 2_000_000, "a", True, 0, 100)
    slices.match("a" * 2_000_000, "a", False, 0, 100)
    slices.match("\n" * 500_000, "^", True, 0, 100)
    assert time.perf_counter() - begun < 10


def test_unicode_places_are_right() -> None:
    text = "ünï\n中文 needle 🙂\nlast"
    assert slices.match(text, "n..dle", True, 0, 100).content == "2: 中文 needle 🙂\n"
    long = "é" * 1_000 + "needle" + "中" * 1_000
    shown = slices.match(long, "needle", True, 0, 600).content
    assert "[at 1,000]" in shown
    assert "éneedle中" in shown


def test_a_long_line_is_shown_around_its_matches() -> None:
    text = '{"a":"' + "x" * 5_000 + "NEEDLE" + "y" * 5_000 + "NEEDLE" + '"}'
    part = slices.match(text, "NEEDLE", False, 2, 600)
    assert part.content.count("NEEDLE") == 2
    assert len(part.content) < 1_000


def test_what_does_not_fit_is_counted_and_follows_with_the_cursor() -> None:
    text = "".join(f"hit number {n}\nother\n" for n in range(500))
    part = slices.match(text, "hit", False, 0, 100)
    assert part.note.startswith("1-")
    assert part.note.endswith("of 500 matching lines")
    found = part.content
    while part.cursor:
        part = slices.match(text, "hit", False, 0, 100, part.cursor)
        assert tokens.count(part.content) <= 110
        found += "--\n" + part.content
    assert [line for line in found.splitlines() if line != "--"] == [f"{2 * n + 1}: hit number {n}" for n in range(500)]


@given(st.text("ab\n\r", max_size=60), st.integers(0, 3))
def test_every_matching_line_is_shown_with_its_number(text: str, context: int) -> None:
    shown = slices.match(text, "a", False, context, 10**6).content
    numbers = [int(line.split(":")[0]) for line in shown.split("\n") if ":" in line[:4]]
    assert numbers == [n for n, line in enumerate(text.split("\n"), 1) if "a" in line]


@pytest.mark.parametrize(("pattern", "context"), [("", 0), ("x" * 1_001, 0), ("a", -1), ("a", 51)])
def test_bounds_of_a_match(pattern: str, context: int) -> None:
    with pytest.raises(BadSlice):
        slices.match(LOG, pattern, False, context, 100)


# --- tables -----------------------------------------------------------------------------------------------------------

PEOPLE = [{"name": "Ann", "age": 30, "city": "Oslo, N"}, {"name": "Bo\tb", "age": None}, {"name": "Cy", "tags": ["a"]}]
CSV = 'name,age,city\nAnn,30,"Oslo, N"\n"Bo\tb",,\nCy,,\n'


@pytest.mark.parametrize(
    "text",
    [
        CSV,
        "name\tage\tcity\nAnn\t30\tOslo, N\nBo b\t\t\nCy\t\t\n",
        "| name | age | city |\n|---|:--:|---|\n| Ann | 30 | Oslo, N |\n| Bo b | | |\n| Cy | | |\n",
    ],
)
def test_rows_and_columns_of_a_table(text: str) -> None:
    assert slices.rows(text, "1-2", "city, name", 500).content == "city\tname\nOslo, N\tAnn\n\tBo b"
    assert slices.rows(text, "-1", None, 500).content.splitlines()[1].startswith("Cy")
    assert slices.rows(text, None, ["1"], 500).content == "name\nAnn\nBo b\nCy"


@pytest.mark.parametrize(
    "text", [json.dumps(PEOPLE), "\n".join(map(json.dumps, PEOPLE)), json.dumps({"n": 3, "rows": PEOPLE})]
)
def test_rows_of_records(text: str) -> None:
    part = slices.rows(text, None, None, 500)
    rows = [line.split("\t") for line in part.content.splitlines()]
    assert rows[0] == ["name", "age", "city", "tags"]
    assert rows[1][:3] == ["Ann", "30", "Oslo, N"]
    assert rows[2][:2] == ["Bo b", "null"]
    assert rows[3][0] == "Cy"
    assert rows[3][3] == '["a"]'
    assert part.note == "rows 1-3 of 3; columns 4 of 4"


def test_rows_that_do_not_fit_go_on_at_the_cursor() -> None:
    text = "id,what\n" + "".join(f"{n},thing number {n}\n" for n in range(1, 301))
    part = slices.rows(text, "11-290", None, 100)
    found = part.content.splitlines()[1:]
    while part.cursor:
        part = slices.rows(text, "11-290", None, 100, part.cursor)
        found += part.content.splitlines()[1:]
    assert found == [f"{n}\tthing number {n}" for n in range(11, 291)]


def test_what_is_no_table_or_no_column_says_so() -> None:
    with pytest.raises(BadSlice, match="not a table"):
        slices.rows("just prose\nand more of it", "1", None, 100)
    with pytest.raises(BadSlice, match=r"no such column\. It has name, age, city"):
        slices.rows(CSV, "1", "colour", 100)
    with pytest.raises(BadSlice, match="3 rows"):
        slices.rows(CSV, "9", None, 100)
    with pytest.raises(BadSlice, match="cells"):
        slices.rows("a,b\n1," + "x" * 200_000 + "\n", "1", None, 100)


def test_a_markdown_table_is_found_after_prose() -> None:
    text = (
        "# Title\n\nSome prose, with | a bar.\n\n| a | b |\n| --- | ---: |\n| 1 | x \\| y |\n| 2 | |\n\nMore, prose.\n"
    )
    assert slices.rows(text, None, None, 500).content == "a\tb\n1\tx | y\n2\t"
    assert slices.rows(text, None, None, 500).note.startswith("rows 1-2 of 2")


def test_a_rule_without_bars_makes_no_table() -> None:
    with pytest.raises(BadSlice):
        slices.rows("Heading\n-------\nand prose\n", None, None, 500)


def test_an_absent_member_is_empty_and_null_is_null() -> None:
    text = json.dumps([{"a": 1, "b": None}, {"a": 2}])
    assert slices.rows(text, None, None, 500).content == "a\tb\n1\tnull\n2\t"


def test_of_several_lists_the_longest_list_of_objects_is_the_table() -> None:
    text = json.dumps({"warnings": ["x"] * 9, "errors": [{"e": 1}], "items": [{"n": 1}, {"n": 2}], "total": 2})
    assert slices.rows(text, None, None, 500).content == "n\n1\n2"
    assert slices.rows(json.dumps({"a": [1], "b": [2]}), None, None, 500).note.startswith("rows 1-1 of 1")
