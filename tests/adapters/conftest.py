"""A memory for each story."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[holdfast.Holdfast]:
    with holdfast.open(str(tmp_path / "holdfast.db"), folder=str(tmp_path)) as opened:
        yield opened
