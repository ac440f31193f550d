"""A PostgreSQL server dies under load and its standby takes over: what was acknowledged is there, and there once."""

from __future__ import annotations

from pathlib import Path

import pytest

from doors.team_kit import stored
from doors.test_workers import Load, kept, serving
from own_postgres import Pair, pair


class Verdict:
    """What was told to be kept, held against what is there."""

    def __init__(self, told: list[str], there: list[str]) -> None:
        self.told = len(told)
        self.lost = sorted(set(told) - set(there))
        self.doubled = sorted({one for one in there if there.count(one) > 1})


def taken_over(servers: Pair, folder: Path, count: int, *, cut_off: bool = False) -> Verdict:
    """Six clients write through an HTTP server of two processes; the primary is killed, the standby promoted."""
    token = stored(servers.url, "write").secret
    with serving(servers.url, folder, "--workers", "2") as (url, _process):
        load = Load(url, token)
        try:
            load.until(count)
            if cut_off:
                with servers.cut_off():
                    load.until(len(load.acknowledged) + count)
                    servers.take_over()
            else:
                servers.take_over()
            load.until(len(load.acknowledged) + count)
        finally:
            told = load.end()
    assert "Traceback" not in (folder / "serve.log").read_text(encoding="utf-8")
    return Verdict(told, kept(servers.url))


@pytest.mark.timeout(300)
def test_a_standby_that_takes_over_has_every_acknowledged_write_once(tmp_path: Path) -> None:
    with pair(synchronous=True) as servers:
        verdict = taken_over(servers, tmp_path, 25)
    assert verdict.told >= 50
    assert verdict.lost == []
    assert verdict.doubled == []


@pytest.mark.timeout(300)
def test_the_loss_of_a_standby_that_nobody_waits_for_is_noticed(tmp_path: Path) -> None:
    """The same without synchronous replication: what the standby never got is lost, and the test above would say so."""
    with pair(synchronous=False) as servers:
        verdict = taken_over(servers, tmp_path, 25, cut_off=True)
    assert verdict.lost
    assert verdict.doubled == []


@pytest.mark.slow
@pytest.mark.timeout(3_000)
def test_standbys_take_over_again_and_again_under_load(tmp_path: Path) -> None:
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pair(synchronous=True) as servers:
            verdict = taken_over(servers, folder, 150)
        assert verdict.told >= 300
        assert (verdict.lost, verdict.doubled) == ([], []), number
