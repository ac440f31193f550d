"""Which result of which tool is kept: rules by name, and thresholds that adapt to the free window."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet import limits
from limpet.outputs.policy import ALWAYS_BYTES, adapted, least, matches, policy
from limpet.settings import OutputRules, ToolRule

RULES = OutputRules(
    threshold_bytes=1_000,
    tools=(
        ToolRule("files__*", threshold_bytes=50),
        ToolRule("*__search", keep="always", redact=False),
        ToolRule("files__secret", keep="never"),
        ToolRule("[ab]?", redact=False),
    ),
)


@pytest.mark.parametrize(
    ("tool", "threshold", "redact"),
    [
        ("anything", 1_000, True),
        ("files__read", 50, True),
        ("files__search", 50, True),  # the first pattern that fits
        ("web__search", ALWAYS_BYTES, False),
        ("files__secret", None, True),  # the exact name wins, wherever it stands
        ("b1", 1_000, False),
        ("FILES__READ", 1_000, True),
    ],
)
def test_the_rule_of_a_tool(tool: str, threshold: int | None, redact: bool) -> None:
    assert policy(RULES, tool) == (threshold, redact)


@given(st.integers(1, 10**7), st.integers(1, 10**7), st.integers(1, 10**7))
def test_less_room_means_a_lower_threshold_within_bounds(base: int, some: int, more: int) -> None:
    low, high = sorted((some, more))
    assert adapted(base, low) <= adapted(base, high)
    assert max(1, base // limits.ADAPT_DOWN) <= adapted(base, low) <= base * limits.ADAPT_UP
    assert adapted(base, limits.ADAPT_FREE_TOKENS) == base
    assert adapted(base, None) == base


def test_figures_people_can_expect() -> None:
    found = [adapted(4_096, free) for free in (1_000, 25_000, 50_000, 200_000, 800_000, 2_000_000)]
    assert found == [1_024, 2_048, 4_096, 16_384, 65_536, 65_536]


def test_what_the_caller_knows_counts_more_than_the_setting() -> None:
    rules = RULES._replace(free_tokens=25_000)
    assert policy(rules, "x").threshold == 500
    assert policy(rules, "x", 100_000).threshold == 2_000
    assert policy(rules, "files__read", 100_000).threshold == 50  # a threshold set for a tool is what it is


@given(st.text("abfiles_*?[]", max_size=12), st.sampled_from([0, 1, 25_000, 10**6]))
def test_nothing_below_the_least_is_kept(tool: str, free: int) -> None:
    rules = RULES._replace(free_tokens=free)
    threshold = policy(rules, tool).threshold
    assert threshold is None or threshold >= least(rules)
    assert least(OutputRules()) == OutputRules().threshold_bytes


@given(st.text("ab\n]", max_size=5), st.text("ab*?[]!\n", max_size=6))
def test_patterns_match_as_they_do_for_files(name: str, pattern: str) -> None:
    assert matches(name, pattern) == fnmatchcase(name, pattern)
