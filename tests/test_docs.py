"""The examples in the README run as they stand, and every command they show exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    report = "report = ''.join(f'line {number} of a long report\\n' for number in range(500))\nsearch = str\n"
    for block in blocks:
        script = (
            report + block + "    assert found.notes and 'casts' in prompt and tools and guidance and shown != report\n"
        )
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_every_command_of_the_readme_exists(tmp_path: Path) -> None:
    commands = re.findall(r"^\$ holdfast ([^#\n]*)", README, re.MULTILINE)
    assert len(commands) > 3
    env = {**os.environ, "HOLDFAST_STORE": str(tmp_path / "holdfast.db")}
    for command in commands:
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', command)]
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"holdfast {command}: {done.stderr}"


def test_the_examples_of_the_window_run(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "window.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
