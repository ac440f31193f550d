"""Prints, when the agents have been run, which of them did what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

NAMES = ("claude-code", "codex", "copilot", "gemini", "opencode", "cline", "goose")
# The lines of the table, and the tests that each of them rests on.
LINES: Mapping[str, tuple[str, ...]] = {
    "tools": ("calls_our_tools",),
    "handoff by work": ("starts_with_handoff", "gets_a_big_result_as_preview"),
    "big results": ("big_outputs_are", "gets_a_big_result_as_preview"),
    "failures stay failures": ("seen_to_fail",),
    "read back": ("is_read_back",),
    "compaction": ("after_a_compaction",),
    "resumed three times": ("resumes_do_not_pile_up",),
    "sub-agent": ("sub_agent",),
    "subfolder": ("subfolder",),
    "worktree": ("worktree",),
    "broken store": ("broken_store",),
    "given back": ("gives_every_file_back",),
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stats = terminalreporter.stats
    ended = {ending: [one.nodeid for one in stats.get(ending, ())] for ending in ("passed", "failed", "error")}
    if any("test_lines.py" in id for ids in ended.values() for id in ids):
        terminalreporter.write_sep("-", "agents")
        for row in table(ended):
            terminalreporter.write_line(row)


def table(ended: Mapping[str, Iterable[str]]) -> list[str]:
    """A row a line of the table: `yes`, `NO`, or `-` where nothing was run for the agent."""
    heads = ("", *NAMES)
    rows = [heads, *((line, *(_cell(name, tests, ended) for name in NAMES)) for line, tests in LINES.items())]
    widths = [max(len(row[at]) for row in rows) for at in range(len(heads))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cell(name: str, tests: Iterable[str], ended: Mapping[str, Iterable[str]]) -> str:
    def concerns(id: str) -> bool:
        return any(test in id for test in tests) and f"[{name}]" in id

    endings = {ending for ending, ids in ended.items() if any(concerns(id) for id in ids)}
    if not endings:
        return "-"
    return "yes" if endings == {"passed"} else "NO"
