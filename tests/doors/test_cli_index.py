"""`limpet index` and what recall and doctor say before and after it; with a model of few weights, named by its path."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

import limpet
from doors.cli_runner import COMMAND, Cli, environment
from tiny_model import tiny_model


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    model = tiny_model(tmp_path / "tiny")
    monkeypatch.setenv("LIMPET_SET", f"recall.model=transformer;recall.model_path={model}")
    return Cli(folder, capsys, monkeypatch)


def meaning(cli: Cli) -> str:
    findings = json.loads(cli("doctor", "--json").out)["findings"]
    (detail,) = [row["detail"] for row in findings if row["name"] == "meaning"]
    return str(detail)


def test_a_person_indexes_a_project(cli: Cli) -> None:
    for text in ("casts break the grammar", "the release needs GNU tar", "billed in euros"):
        cli.ok("note", "add", text)
    asked = cli("recall", "grammar")
    assert "casts" in asked.out
    assert "3 texts are not embedded yet and found by words alone; `limpet index` does it." in asked.err
    meanwhile = "the vectors are of wordllama-256"
    assert meaning(cli) == f"tiny-1 (transformer); {meanwhile}; 3 not embedded yet: `limpet index` does it"
    assert cli.ok("index") == "3 texts embedded with tiny-1 (transformer)\n"
    assert cli.ask("index") == {"model": "tiny-1", "kind": "transformer", "embedded": 0, "left": 0}
    assert meaning(cli) == "tiny-1 (transformer)"
    assert "not embedded" not in cli("recall", "grammar").err
    cli.ok("note", "add", "one more")
    assert "1 text is not embedded yet" in cli("recall", "grammar").err


def test_another_model_begins_anew_and_says_so(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.ok("note", "add", "casts break the grammar")
    cli.ok("index")
    monkeypatch.setenv("LIMPET_SET", f"recall.model_path={tiny_model(tmp_path / 'other', 2)}")
    ran = cli("index")
    assert "the vectors were of tiny-1; every text is embedded anew." in ran.err
    assert "1 texts embedded with tiny-2" in ran.out


def test_what_cannot_be_used_is_refused(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.ok("note", "add", "casts break the grammar")
    monkeypatch.setenv("LIMPET_SET", f"recall.model_path={tmp_path / 'missing'}")
    ran = cli("index")
    assert (ran.code, ran.out) == (2, "")
    assert "missing is not used: No such file or directory." in ran.err
    assert "casts" in cli.ok("recall", "grammar"), "recall goes on"
    assert "is not used" in meaning(cli)
    monkeypatch.setenv("LIMPET_SET", "recall.model=best")
    ran = cli("recall", "grammar")
    assert (ran.code, ran.out) == (2, "")
    assert "the setting recall.model is 'best'; it must be auto, static or transformer." in ran.err


def test_a_kill_in_the_middle_loses_nothing(cli: Cli) -> None:
    count = 400
    with limpet.open(folder=str(cli.folder)) as hold:
        for number in range(count):
            hold.session("one").notes.add(f"note {number} about the lexer " * 9)
        process = subprocess.Popen([*COMMAND, "index"], stdout=subprocess.DEVNULL, env=environment())
        while process.poll() is None and not hold.store.vectors.count(hold.scope):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = hold.store.vectors.count(hold.scope)
        assert done + hold.store.vectors.state(hold.scope).waiting == count
        assert cli.ask("index") == {"model": "tiny-1", "kind": "transformer", "embedded": count - done, "left": 0}
        assert hold.store.vectors.count(hold.scope) == count
    assert cli.ask("doctor")["ok"]
