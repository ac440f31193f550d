"""Plots and tables of docs/scale.md: pure functions of measured figures, and the page holds what its figures give."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

from bench import growth_page, growth_tables, load_tables, plot

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
AXES = plot.Axes('A title with <, & and "', "entries", "seconds")


def labels(svg: str) -> dict[str, float]:
    """What is written beside the lines, and how far down."""
    return {text.text or "": float(text.get("y", "0")) for text in parsed(svg).iter(f"{SVG}text")}


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - it is our own


def drawn(svg: str) -> list[list[tuple[float, float]]]:
    lines = [line.get("points", "") for line in parsed(svg).iter(f"{SVG}polyline")]
    return [[tuple(map(float, place.split(",")))[:2] for place in line.split()] for line in lines]  # type: ignore[misc]


def test_equal_factors_are_equal_distances() -> None:
    svg = plot.lines({"linear": [(10**power, 1e-3 * 10**power) for power in (2, 3, 4)]}, AXES)
    (first, second, third) = drawn(svg)[0]
    assert second[0] - first[0] == pytest.approx(third[0] - second[0], abs=0.2)
    assert first[1] - second[1] == pytest.approx(second[1] - third[1], abs=0.2)
    assert first[1] > third[1], "more stands higher"


def test_the_same_figures_give_the_same_bytes_and_are_safe_in_a_page() -> None:
    series = {"<script>": [(10.0, 0.001), (1_000.0, 0.5)]}
    assert plot.lines(series, AXES) == plot.lines(series, AXES)
    assert "<script>" not in plot.lines(series, AXES)
    assert "<script>" in labels(plot.lines(series, AXES))


def test_labels_of_lines_that_end_together_do_not_stand_on_each_other() -> None:
    names = [f"line {number}" for number in range(8)]
    for at in (1e-5, 1e-3, 0.9):
        svg = plot.lines({name: [(10.0, 1e-5), (100.0, at)] for name in names} | {"top": [(10.0, 1.0)]}, AXES)
        places = sorted(place for name, place in labels(svg).items() if name in names)
        assert all(after - before >= plot.LABEL_STEP for before, after in pairwise(places))
        assert places[0] > 0, "inside the plot"
        assert places[-1] <= plot.HEIGHT, "inside the plot"


def test_powers_of_ten_have_a_unit_that_suits_them() -> None:
    shown = labels(plot.lines({"a": [(10.0, 2e-6), (1e6, 20.0)]}, AXES))
    assert {"1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s", "1,000,000"} <= shown.keys()


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0, 1.3])
def test_the_exponent_is_the_slope(slope: float) -> None:
    points = [(10.0**power, 3e-4 * (10.0**power) ** slope) for power in (4, 5, 6)]
    assert growth_tables.exponent(points) == pytest.approx(slope)


def test_what_grows_as_fast_as_the_store_is_not_called_sub_linear() -> None:
    points = [
        growth_tables.Point(
            "SQLite", count, {"scan": (1e-6 * count, 1.0, 1.0), "look": (1e-3, 1.0, 1.0)}, {}, 1.0, 1, 1.0, 1.0
        )
        for count in (10, 100)
    ]
    rows = {row[0]: row[-3:] for row in growth_tables.tables(points)[0][2]}
    assert rows == {"scan": ["1.00", "0.00", "NO"], "look": ["0.00", "0.00", "yes"]}


def test_the_floor_is_what_others_are_held_against() -> None:
    def server(name: str, rate: float) -> dict[str, object]:
        times = {"rate": rate, "p50": 0.1, "p99": 0.2, "server": 0.001, "postgres": 0.0005, "client": 0.0001}
        return {"name": name, **times, "memory": 80.0, "operations": {"add_note": (0.1, 0.2)}}

    found = [{"agents": 50, "projects": 10, "servers": [server("floor", 600.0), server("Limpet", 300.0)]}]
    row = load_tables.tables(found)[0][2][1]
    assert row[4:6] == ["2.00x", "≤ 1.5x: MISSED"]
    found[0]["servers"] = [server("floor", 600.0), server("Limpet", 500.0)]
    assert load_tables.tables(found)[0][2][1][4:6] == ["1.20x", "≤ 1.5x: met"]


def test_the_page_and_its_plots_are_what_the_kept_figures_give() -> None:
    page = ROOT / "docs" / "scale.md"
    text, plots = growth_page.made(page)
    assert text == page.read_text(encoding="utf-8"), "run `python -m bench.growth_page docs/scale.md`"
    assert plots
    for name, made in plots.items():
        assert made == (page.parent / growth_page.PLOTS / name).read_text(encoding="utf-8")
    shown = set(re.findall(r"\]\(plots/([^)]+)\)", text))
    assert shown == plots.keys()
