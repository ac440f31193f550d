"""The gauge adds up, and its bar shows the same figures."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from limpet.window.plan.gauge import Gauge, bar

SECTIONS = {"system prompt": 1_000, "notepad": 250, "history": 5_000, "scratchpad": 0}


def measure(sections: dict[str, int], limit: int) -> Gauge:
    return Gauge(limit, sum(sections.values()), sections)


def test_rows() -> None:
    gauge = measure(SECTIONS, 10_000)
    assert [tuple(row) for row in gauge.rows] == [
        ("system prompt", 1_000, 0.1),
        ("notepad", 250, 0.025),
        ("history", 5_000, 0.5),
        ("scratchpad", 0, 0.0),
    ]
    assert (gauge.used, gauge.limit, gauge.free) == (6_250, 10_000, 3_750)


def test_the_bar_for_people() -> None:
    assert bar(measure(SECTIONS, 10_000), width=20).splitlines() == [
        "window: 6,250 of 10,000 tokens (62%)",
        "system prompt  1,000     10%  ██",
        "notepad          250      2%  ▌",
        "history        5,000     50%  ██████████",
        "scratchpad         0      0%",
        "free           3,750     37%  ███████▌",
    ]
    assert bar(measure(SECTIONS, 10_000), width=20, plain=True).isascii()


def test_too_full() -> None:
    gauge = measure({"history": 15_000}, 10_000)
    assert bar(gauge, width=10).splitlines() == [
        "window: 15,000 of 10,000 tokens (150%)",
        "history         15,000    150%  ██████████",
        "over the limit   5,000     50%  █████",
    ]


def test_little_is_not_nothing_and_almost_is_not_all() -> None:
    assert "<1%" in bar(measure({"a": 1}, 1_000))
    assert bar(measure({"a": 9_999}, 10_000)).startswith("window: 9,999 of 10,000 tokens (99%)")
    assert bar(measure({"a": 1}, 1_000_000)).splitlines()[1].endswith("▏")
    assert bar(measure({"a": 1}, 1_000_000), plain=True).splitlines()[1].endswith("#")


def test_a_window_without_a_limit_is_shown_without_shares() -> None:
    assert bar(measure({"a": 5}, 0)).startswith("window: 5 of 0 tokens (-)")


def test_a_long_name_is_cut() -> None:
    assert "…" in bar(measure({"n" * 80: 5}, 10))
    assert max(map(len, bar(measure({"n" * 80: 5}, 10), width=30).splitlines())) <= 80


@given(st.dictionaries(st.text(max_size=12), st.integers(0, 10**7), max_size=8), st.integers(1, 10**7))
def test_the_figures_agree(sections: dict[str, int], limit: int) -> None:
    gauge = measure(sections, limit)
    assert gauge.used == sum(row.tokens for row in gauge.rows)
    assert f"window: {gauge.used:,} of {limit:,} tokens" in bar(gauge)
    drawn = re.findall(r"[█▏▎▍▌▋▊▉]+$", bar(gauge, width=12), re.MULTILINE)
    assert all(len(one) <= 12 for one in drawn)
