"""Prints, when the agents have been run, which of them did what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

NAMES = ("claude-code", "codex", "copilot", "gemini", "opencode", "cline", "goose")
# The lines of the table, as docs/clients.md has them, and the tests that each of them rests on.
LINES: Mapping[str, tuple[str, ...]] = {
    "our tools are there and are called": ("calls_our_tools",),
    "the handoff goes to the first session that works": ("starts_with_handoff", "gets_a_big_result_as_preview"),
    "big results of servers are previews": ("big_outputs_are", "gets_a_big_result_as_preview"),
    "big results of its shell are previews": ("big_outputs_are",),
    "a failing command is seen to fail, as without Limpet": ("seen_to_fail",),
    "what was replaced is read back, by lines and by a question": ("is_read_back",),
    "notepad and pins are there after a compaction": ("after_a_compaction",),
    "resumed three times, it has one copy": ("resumes_do_not_pile_up",),
    "a sub-agent has a notepad of its own": ("sub_agent",),
    "a start in a subfolder has the project's memory": ("subfolder",),
    "what is written in a worktree outlives it": ("worktree",),
    "with a broken store it goes on, and the model is told": ("broken_store",),
    "`uninstall` gives every file back to the byte": ("gives_every_file_back",),
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
