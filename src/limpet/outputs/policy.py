"""Which result of which tool is kept outside the window: pure decisions from the rules people set.

A threshold adapts where the free part of the window is known: a result may then take about two hundredths of it, so
that a nearly full window gets references earlier and an empty one sees more of what its tools say.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from limpet import limits
from limpet.settings import OutputRules, ToolRule

ALWAYS_BYTES = 1  # the threshold of a tool whose results are always kept: anything but nothing


class Policy(NamedTuple):
    """What holds for one call."""

    threshold: int | None  # bytes; None: never kept
    redact: bool


def policy(rules: OutputRules, tool: str, free_tokens: int | None = None) -> Policy:
    """The rule for a tool. `free_tokens` is what the caller knows about the window, if it knows more than the rules."""
    rule = rule_for(rules, tool)
    usual = adapted(rules.threshold_bytes, free_tokens or rules.free_tokens or None)
    if rule is None:
        return Policy(usual, True)
    thresholds = {"always": ALWAYS_BYTES, "never": None}
    return Policy(thresholds.get(rule.keep, rule.threshold_bytes or usual), rule.redact)


def rule_for(rules: OutputRules, tool: str) -> ToolRule | None:
    """The rule with exactly this name, else the first whose pattern fits."""
    exact = next((rule for rule in rules.tools if rule.pattern == tool), None)
    return exact or next((rule for rule in rules.tools if fnmatchcase(tool, rule.pattern)), None)


def adapted(threshold: int, free_tokens: int | None) -> int:
    """A threshold in proportion to the free window, within bounds. It stays as it is where nothing is known."""
    if free_tokens is None:
        return threshold
    low, high = max(1, threshold // limits.ADAPT_DOWN), threshold * limits.ADAPT_UP
    return min(max(threshold * free_tokens // limits.ADAPT_FREE_TOKENS, low), high)


def least(rules: OutputRules) -> int:
    """No result below this size is kept, whichever tool it comes from, unless a call says how much is free."""
    usual = adapted(rules.threshold_bytes, rules.free_tokens or None)
    special = (policy(rules, rule.pattern).threshold for rule in rules.tools)
    return min([usual, *(found for found in special if found is not None)])
