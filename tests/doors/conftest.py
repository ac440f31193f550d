"""A dashboard that several files look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashboard_kit import Served, project, served


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("dashboard")
    with served(project(folder, means_harm=True), folder) as found:
        yield found
