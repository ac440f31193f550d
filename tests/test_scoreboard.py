"""The scoreboard: its rows name their command and data, earlier rows stay, and what is absent says so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench import precision, scoreboard
from bench.measure import ROOT
from bench.page import kept
from bench.scoreboard import HEADS, ROWS, WAYS, Found, Row, clone, write

PAGE = ROOT / "docs" / "scoreboard.md"
MEASURED = "2026-01-01"


def row(name: str, command: str, measured: str = MEASURED, shown: str = "1") -> Row:
    return Row(name, shown, "", "", f'`make scoreboard NAMES="{command}"`', "data 1", "all else", measured)


def lines(path: Path) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in kept(path.read_text(encoding="utf-8"))[ROWS].splitlines()[2:]]


def test_rows_stand_in_their_order_and_each_run_replaces_its_own(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    write(page, "outputs", Found([row("Outputs", "outputs")]))
    write(page, "precision", Found([row("With", "precision"), row("Without", "precision")], "Failed: none"))
    write(page, "outputs", Found([row("Outputs, again", "outputs", shown="2")]))
    assert [(one[0], one[1]) for one in lines(page)] == [("With", "1"), ("Without", "1"), ("Outputs, again", "2")]
    assert kept(page.read_text(encoding="utf-8"))["precision"] == "Failed: none"


def test_what_was_measured_stays_where_the_data_is_absent(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for measured in ("", MEASURED, ""):
        write(page, "locomo", Found([row(f"LoCoMo {measured}".strip(), "locomo", measured)]))
    assert [one[0] for one in lines(page)] == [f"LoCoMo {MEASURED}"]


@pytest.mark.parametrize("name", [name for name in WAYS if name != "functions"])  # which needs no data
def test_a_row_without_its_data_says_what_is_absent(name: str, tmp_path: Path) -> None:
    (found,) = WAYS[name](tmp_path, None).rows
    assert found.ours.startswith("not measured: ")
    assert found.ours.endswith(" is not in the folder of data")
    assert (found.command, found.measured) == (f'`make scoreboard NAMES="{name}"`', "")


@pytest.mark.parametrize("place", ["BEAM/.git", "somebody+BEAM/repo", "BEAM.git"])
def test_a_clone_is_found_with_or_without_a_work_tree(place: str, tmp_path: Path) -> None:
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "HEAD").touch()
    found = clone(tmp_path, "BEAM")
    expected = (tmp_path / place).parent if place.endswith("/.git") else tmp_path / place
    assert found == (None if place == "BEAM.git" else expected)


def test_a_report_of_the_harness_is_read_with_its_failures(tmp_path: Path) -> None:
    counts = {"meanPrecision": 0.9, "meanRecall": 0.8, "activeRetrievalPasses": 3, "totalPassed": 4, "p50LatencyMs": 2}
    cases = [{"caseId": "a", "passed": True, "failures": []}, {"caseId": "b", "passed": False, "failures": ["x", "y"]}]
    for suite, total in zip(precision.SUITES, (4, 9), strict=True):
        found = {"retrieval": counts | {"totalPassed": total}, "cases": cases}
        (tmp_path / f"{suite}-report-limpet.json").write_text(json.dumps(found), encoding="utf-8")
    assert precision.report(tmp_path, "limpet") == precision.Report(0.9, 0.8, 3, 4, 9, 2, ["b: x; y"])


def test_every_row_of_the_page_has_a_command_and_if_it_was_measured_data_and_what_it_does_not_show() -> None:
    found = lines(PAGE)
    commands = {f'`make scoreboard NAMES="{name}"`' for name in WAYS}
    assert {re.sub(r" MOST=\d+", "", one[4]) for one in found} == commands
    measured = [one for one in found if not one[1].startswith("not measured: ")]
    assert measured
    for one in measured:
        assert len(one) == len(HEADS)
        assert all(one[at] for at in (5, 6, 7))


def test_the_page_is_as_the_command_writes_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == scoreboard.page(kept(text))
