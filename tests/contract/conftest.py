"""Stores for the tests of the contract: one of each kind, or both side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.kit import new_scope
from limpet.model import Scope
from limpet.store import Store
from limpet.wiring import choose_store


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store; the test runs once for each kind."""
    opened = choose_store(store_url)
    opened.create()
    yield opened
    opened.close()


@pytest.fixture
def both(tmp_path: Path, postgres_url: str) -> Iterator[tuple[Store, Store]]:
    """An empty store of each kind."""
    stores = (choose_store(str(tmp_path / "limpet.db")), choose_store(postgres_url))
    yield stores
    for opened in stores:
        opened.close()


@pytest.fixture
def scope() -> Scope:
    return new_scope()
