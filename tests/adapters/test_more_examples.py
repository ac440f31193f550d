"""The examples for the SDKs of Anthropic and Google do what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.parametrize("name", ["anthropic_agent", "claude_agent", "google_adk_agent"])
def test_the_example_does_what_it_says(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Job 13 failed: the disk was full." in done.stdout
    assert "reads Monday's handoff in its prompt\nThe answer on tuesday: I go on with Tuesday." in done.stdout
    assert "['Job 13 failed on Monday: disk full']" in done.stdout
    assert "['read_log']" in done.stdout
