"""Previews of big texts: a sample is looked at, every failure is counted, and what is counted roughly says so."""

from __future__ import annotations

import json
import random

import pytest

from limpet.previews.core import BIG, Lines, OutputText
from limpet.previews.json_shape import sample
from limpet.previews.preview import preview
from limpet.text import tokens


def rows(count: int, nested: bool = False) -> list[dict[str, object]]:
    dice = random.Random(1)
    inner = [{"k": 1}, {"k": 2}]
    return [
        {"id": n, "name": f"name {n}", "score": dice.random(), **({"inner": inner} if nested else {})}
        for n in range(count)
    ]


def log(lines: int, failing: int) -> str:
    step = lines // failing
    said = ["INFO wrote block"] * (step - 1) + ["ERROR cannot write block"]
    return "".join(f"2026-01-01 12:{n % 60:02}:00 {said[n % step]} {n}\n" for n in range(lines))


@pytest.mark.parametrize("indent", [None, 2])
def test_a_long_json_list_is_shown_by_rows_from_all_over(indent: int | None) -> None:
    text = json.dumps(rows(16_000), indent=indent)
    assert len(text) > BIG
    shown = preview(text, budget=360)
    assert shown.shape == "json"
    assert "about 16,000" in shown.text
    assert '"name": "name 15999"' in shown.text
    assert tokens.count(shown.text) <= 360


def test_rows_that_hold_rows_are_told_from_these() -> None:
    found = sample(json.dumps(rows(12_000, nested=True)))
    assert found is not None
    assert abs(found.total - 12_000) < 200
    assert all("name" in row for row in found.rows)


def test_rows_inside_an_object_are_found_where_they_stand() -> None:
    text = json.dumps({"version": 3, "data": {"items": rows(16_000)}, "end": True})
    found = sample(text)
    assert found is not None
    assert found.path == "/data/items"
    assert "at /data/items" in preview(text, budget=360).text


@pytest.mark.parametrize(
    "text", ["[1, 2, 3" + ", 4" * 300_000 + "]", '["' + "x" * BIG + '"]', '{"a": "' + "x" * BIG + '"}']
)
def test_json_of_another_making_is_parsed_whole(text: str) -> None:
    assert sample(text) is None
    assert preview(text).shape == "json"


def test_what_only_begins_like_a_list_is_no_json() -> None:
    broken = "[" + "{" * BIG + "]"
    assert sample(broken) is None
    assert preview(broken).shape != "json"


def test_every_failure_of_a_big_log_is_counted() -> None:
    text = log(20_000, 500)
    assert len(text) > BIG
    shown = preview(text, budget=360)
    assert shown.shape == "log"
    assert shown.failures == 500
    assert "500 failure lines" in shown.text.splitlines()[0]
    assert "cannot write block" in shown.text


def test_a_big_text_gives_the_same_preview_each_time() -> None:
    text = log(20_000, 20)
    assert preview(text, tool="x", budget=300) == preview(text, tool="x", budget=300)


def test_a_big_table_says_that_its_rows_are_counted_roughly() -> None:
    text = "number,name,price\n" + "".join(f'{n},"name, {n}",{n * 7 % 1000}\n' for n in range(40_000))
    shown = preview(text, budget=360)
    assert shown.shape == "table"
    assert "about 40,000 rows" in shown.text


def test_lines_cut_out_one_by_one_are_those_of_the_text() -> None:
    dice = random.Random(3)
    text = "\n".join("x" * dice.choice((0, 3, 80, 5_000)) + str(n) for n in range(3_000))
    lines = Lines(text)
    every = text.split("\n")
    assert len(lines) == len(every)
    assert list(lines) == every
    assert [lines[at] for at in range(len(lines))] == every
    assert lines[-3:] == every[-3:]
    assert lines[5:60:7] == every[5:60:7]
    assert lines[-1] == every[-1]
    with pytest.raises(IndexError):
        lines[len(every)]


def test_a_big_text_has_as_many_lines_as_when_it_was_small() -> None:
    assert OutputText(log(20_000, 20)).line_count == 20_000
    assert OutputText("x" * BIG + "y").line_count == 1
    assert OutputText(" \n" * BIG).line_count == 0
    assert preview(" \n" * BIG).text == "empty"
