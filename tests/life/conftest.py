"""A computer of its own for each story."""

from __future__ import annotations

from pathlib import Path

import pytest

from life.kit import Computer


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    return Computer(tmp_path)
