"""What the tests of several doors share: a dashboard, and clients that start quickly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

from dashboard_kit import Served, project, served


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("dashboard")
    with served(project(folder, means_harm=True), folder) as found:
        yield found


@pytest.fixture(scope="session")
def _one_authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first of the usual certificates."""
    end = "-----END CERTIFICATE-----\n"
    path = tmp_path_factory.mktemp("authority") / "one.pem"
    path.write_text(certifi.contents().partition(end)[0] + end, encoding="ascii")
    return path


@pytest.fixture(autouse=True)
def _no_public_servers(_one_authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here calls a public server, and reading all certificates takes 30 ms for every HTTP client."""
    monkeypatch.setenv("SSL_CERT_FILE", str(_one_authority))
