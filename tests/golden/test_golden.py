"""Stores that earlier versions wrote open in this one, say what they said then, and go on working.

`make.py` beside this file tells the story and has kept it once with every schema there was, on both kinds of store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import limpet
from golden.make import LOG, PROJECT, START, lay, rows, zstd
from limpet.stores.postgres import schema

HERE = Path(__file__).parent
SCHEMAS = sorted(int(file.name[6:-5]) for file in HERE.glob("schema*.json"))
CORRECTED_SINCE = 7  # the schema from which on the story has corrections, with two more notes
LATER = START + 2_000_000  # when the story is read: after it was told
Laid = Callable[[int], str]


@pytest.fixture(params=["sqlite", "postgres"])
def laid(request: pytest.FixtureRequest, tmp_path: Path) -> Laid:
    """Puts a golden store of a schema where it can be opened, and tells its address."""

    def file(number: int) -> str:
        place = tmp_path / "golden.db"
        place.write_bytes(zstd.decompress((HERE / f"schema{number}.db.zst").read_bytes()))
        return str(place)

    def server(number: int) -> str:
        url: str = request.getfixturevalue("new_postgres_url")
        lay(url, number)
        return url

    return file if request.param == "sqlite" else server


def said_then(number: int) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((HERE / f"schema{number}.json").read_text(encoding="utf-8"))
    return said


def lacking(then: object, now: object, at: str = "") -> list[str]:
    """What was said then and is not said now. An answer may have grown: new keys in it are no loss."""
    if isinstance(then, dict) and isinstance(now, dict):
        return [lack for key, value in then.items() for lack in lacking(value, now.get(key), f"{at}.{key}")]
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return [lack for n, pair in enumerate(zip(then, now, strict=True)) for lack in lacking(*pair, f"{at}[{n}]")]
    return [] if then == now else [f"{at}: {then!r} is now {now!r}"]


def ids(answer: object) -> set[str]:
    return set(re.findall(r'"(?:id|key)": "([^"]*)"', json.dumps(answer)))


def test_there_is_a_golden_store_of_every_schema() -> None:
    assert list(range(1, schema.SCHEMA + 1)) == SCHEMAS, "tests/golden/make.py writes the missing one"


@pytest.mark.parametrize("number", SCHEMAS)
def test_its_handoff_waits_beside_new_ones_and_its_session_replaces_it(laid: Laid, number: int) -> None:
    then = next(reply for name, _, reply in said_then(number)["answers"] if name == "read_handoff")["content"]
    with limpet.open(laid(number), project=PROJECT, session="alpha", clock=lambda: LATER) as hold:
        hold.session("beta").handoff.write("A newer one.")
        text = hold.session("gamma").context()
        assert text.startswith("## Handoff from the last session\nA newer one.")
        assert then in text
        assert hold.call("write_session_handoff", {"content": "Its next."}, session="alpha")["replaced"]
        text = hold.session("gamma").context()
        assert "Its next." in text
        assert "A newer one." in text
        assert then not in text


@pytest.mark.parametrize("number", SCHEMAS)
def test_it_says_what_it_said(laid: Laid, number: int) -> None:
    then = said_then(number)
    with limpet.open(laid(number), project=PROJECT, session="alpha", clock=lambda: LATER) as hold:
        for name, arguments, answer in then["answers"]:
            now = hold.call(name, arguments)
            if name.startswith("search_"):  # how hits are ordered and shown may become better; which there are may not
                assert ids(answer) <= ids(now), name
            else:
                assert lacking(answer, now, name) == []
        exported = [json.loads(line) for line in hold.export_lines()]
        for line in then["export"][1:]:
            assert any(not lacking(line, other) for other in exported), line
        assert [finding for finding in hold.check() if not finding.ok] == []


@pytest.mark.parametrize("number", SCHEMAS)
def test_it_goes_on(laid: Laid, number: int) -> None:
    address = laid(number)
    with limpet.open(address, project=PROJECT, session="alpha", clock=lambda: LATER) as hold:
        assert "parse_expr" in re.sub("[«»]", "", hold.recall("why do casts break the grammar").hits[0].snippet)
        session = hold.session("alpha")
        session.notes.add("Written by a later version about the parse_expr() casts")
        hold.call("update_notepad", {"operation": "append", "content": "- [ ] later\n"})
        hold.undo()
        if number > 1:
            (kept,) = [entry["id"] for entry in hold.call("list_outputs", {})["entries"] if entry["tool"] == "make"]
            assert session.outputs.read_content(kept) == LOG
    with limpet.open(address, project=PROJECT, session="alpha", clock=lambda: LATER) as hold:
        assert len(hold.call("list_notes", {})["notes"]) == (5 if number < CORRECTED_SINCE else 7)
        assert hold.call("read_notepad", {})["content"].endswith("\U0001f9ed\n")
        assert [finding for finding in hold.check() if not finding.ok] == []


def test_the_story_on_disk_is_the_story_told(postgres_url: str) -> None:
    """The golden rows hold every table, so that a table that came later is not forgotten in them."""
    with limpet.open(postgres_url, project=PROJECT):
        tables = rows(postgres_url)
    newest = json.loads(zstd.decompress((HERE / f"schema{SCHEMAS[-1]}.rows.zst").read_bytes()))
    assert set(newest) == set(tables)
