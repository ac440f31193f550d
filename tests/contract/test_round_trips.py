"""How often a call waits for a PostgreSQL server: statements travel together unless one needs the answer of another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from limpet.api import Limpet
from limpet.model import Scope
from limpet.wiring import choose_store

pytestmark = pytest.mark.one_server
MOST = {
    "read_notepad": 1,
    "list_notes": 1,
    "list_tags": 2,
    "search_notes": 2,
    "write_notepad": 2,
    "add_note": 5,  # 2 look for the same text, 2 write, 1 counts
    "write_memory": 5,
}
NAMES = ["oak", "elm", "fir", "ash", "yew", "box", "bay", "fig", "may", "rue", "tea", "hop"]
GIVEN: dict[str, dict[str, object]] = {
    "search_notes": {"query": "anchor"},
    "write_notepad": {"content": "plan {number}"},
    "add_note": {"content": "note {number} about the anchor chain, said in quite different words", "tags": ["sea"]},
    "write_memory": {"key": "depth", "content": "The anchor holds at {number} fathoms."},
}


@pytest.fixture
def limpet(postgres_url: str) -> Iterator[Limpet]:
    with Limpet(choose_store(postgres_url), Scope("team", "home"), session="s") as limpet:
        for name in NAMES:  # so many that a search looks for nothing else
            limpet.call("add_note", {"content": f"the {name} anchor holds", "tags": ["sea"]})
        limpet.call("write_notepad", {"content": "plan"})
        limpet.call("write_memory", {"key": "depth", "content": "unknown"})
        yield limpet


@pytest.mark.parametrize("name", MOST)
def test_a_call_waits_for_the_server_as_often_as_it_must(limpet: Limpet, tmp_path: Path, name: str) -> None:
    given = GIVEN.get(name, {})

    def call(number: int) -> None:
        limpet.call(name, {key: _numbered(value, number) for key, value in given.items()})

    call(1)  # the schema was looked at
    assert 0 < trips(limpet, tmp_path, lambda: call(2)) <= MOST[name]


def _numbered(value: object, number: int) -> object:
    return value.format(number=number) if isinstance(value, str) else value


def trips(limpet: Limpet, folder: Path, call: Callable[[], object]) -> int:
    """How often the client said that it waits now: by Sync, or by a query of the simple kind."""
    database = limpet.store._db  # type: ignore[attr-defined]
    connections: list[psycopg.Connection[object]] = list(database._pool._pool)
    trace = folder / "trace"
    with trace.open("w") as file:
        for con in connections:
            con.pgconn.trace(file.fileno())
        call()
        for con in connections:
            con.pgconn.untrace()
    return len(re.findall(r"\tF\t\d+\t(?:Sync|Query)\b", trace.read_text()))
