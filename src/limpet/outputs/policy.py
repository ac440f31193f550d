"""Which results of which tools are kept outside the window: pure decisions from the configured rules.

A threshold adapts where the free part of the window is known: a result may then take about 2 % of it. A nearly full
window gets references earlier, and an empty one sees more of what its tools return.
"""

from __future__ import annotations

from limpet import limits
from limpet.record import NamedTuple
from limpet.settings import OutputRules, ToolRule

ALWAYS_BYTES = 1  # the threshold of a tool whose results are always kept: anything but nothing


class Policy(NamedTuple):
    """The decision for one call."""

    threshold: int | None  # bytes; None: never kept
    redact: bool

    def is_big(self, content: str) -> bool:
        """Whether a result is kept. The size that counts is that of UTF-8."""
        # A character takes at most four bytes, so a short text is small without being encoded.
        most = self.threshold
        return most is not None and len(content) * 4 >= most and len(content.encode("utf-8", "surrogatepass")) >= most


def policy(rules: OutputRules, tool: str, free_tokens: int | None = None) -> Policy:
    """The policy for a tool. `free_tokens` is the free part of the window, where the caller knows it."""
    rule = rule_for(rules, tool)
    usual = adapted(rules.threshold_bytes, free_tokens or rules.free_tokens or None)
    if rule is None:
        return Policy(usual, True)
    thresholds = {"always": ALWAYS_BYTES, "never": None}
    return Policy(thresholds.get(rule.keep, rule.threshold_bytes or usual), rule.redact)


def rule_for(rules: OutputRules, tool: str) -> ToolRule | None:
    """The rule with exactly this name, else the first whose pattern matches."""
    exact = next((rule for rule in rules.tools if rule.pattern == tool), None)
    return exact or next((rule for rule in rules.tools if matches(tool, rule.pattern)), None)


def matches(name: str, pattern: str) -> bool:
    """As fnmatchcase, which compiles the pattern. Where stars at its ends are the only wildcards, that is not needed:
    compiling a few dozen of them would take longer than all the rest of a hook."""
    core = pattern.strip("*")
    if any(wildcard in core for wildcard in "*?["):
        from fnmatch import fnmatchcase

        return fnmatchcase(name, pattern)
    if pattern.startswith("*"):
        return core in name if pattern.endswith("*") else name.endswith(core)
    return name.startswith(core) if pattern.endswith("*") else name == core


def adapted(threshold: int, free_tokens: int | None) -> int:
    """A threshold in proportion to the free window, within bounds; unchanged where the free part is unknown."""
    if free_tokens is None:
        return threshold
    low, high = max(1, threshold // limits.ADAPT_DOWN), threshold * limits.ADAPT_UP
    return min(max(threshold * free_tokens // limits.ADAPT_FREE_TOKENS, low), high)


def least(rules: OutputRules) -> int:
    """No result of any tool below this size is kept, unless a call says how much of the window is free."""
    usual = adapted(rules.threshold_bytes, rules.free_tokens or None)
    special = (policy(rules, rule.pattern).threshold for rule in rules.tools)
    return min([usual, *(threshold for threshold in special if threshold is not None)])
