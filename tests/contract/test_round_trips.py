"""How often a call waits for a PostgreSQL server: statements travel together unless one needs the answer of another."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from contract.kit import note, raw
from limpet.api import Limpet
from limpet.model import Scope
from limpet.store import Listing, Words
from limpet.stores.postgres import connections
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
    "recall": 10,  # of one transaction; 2 of them look for where names lead
}
BEGUN = r"\tF\t\d+\tParse\t[^\n]*\"BEGIN "
NAMES = ["oak", "elm", "fir", "ash", "yew", "box", "bay", "fig", "may", "rue", "tea", "hop"]
GIVEN: dict[str, dict[str, object]] = {
    "search_notes": {"query": "anchor"},
    "recall": {"query": "which anchor holds at the deepest place"},
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


@pytest.fixture(autouse=True)
def schema_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not again each second, which on a slow machine would be one wait more."""
    monkeypatch.setattr(connections, "SCHEMA_SECONDS", 1_000_000.0)


@pytest.mark.parametrize("name", MOST)
def test_a_call_waits_for_the_server_as_often_as_it_must(limpet: Limpet, tmp_path: Path, name: str) -> None:
    given = GIVEN.get(name, {})

    def call(number: int) -> None:
        limpet.call(name, {key: _numbered(value, number) for key, value in given.items()})

    call(1)  # the schema was looked at
    assert 0 < trips(limpet, tmp_path, lambda: call(2)) <= MOST[name]


def test_a_text_like_no_other_is_looked_for_once(limpet: Limpet, tmp_path: Path) -> None:
    limpet.call("add_note", {"content": "Gulls 1 circle the harbour"})
    new = {"content": "Lanterns 2 brighten quays"}
    assert 0 < trips(limpet, tmp_path, lambda: limpet.call("add_note", new)) <= MOST["add_note"]


def test_what_a_question_and_a_session_begin_with_read_is_of_one_moment(limpet: Limpet, tmp_path: Path) -> None:
    def recall() -> object:
        return limpet.call("recall", GIVEN["recall"])["hits"]

    for reads in (recall, limpet.session("s").context):
        assert reads()
        assert len(re.findall(BEGUN, traced(limpet, tmp_path, reads))) == 1


def _numbered(value: object, number: int) -> object:
    return value.format(number=number) if isinstance(value, str) else value


def trips(limpet: Limpet, folder: Path, call: Callable[[], object]) -> int:
    """How often the client said that it waits now: by Sync, or by a query of the simple kind."""
    return len(re.findall(r"\tF\t\d+\t(?:Sync|Query)\b", traced(limpet, folder, call)))


def traced(limpet: Limpet, folder: Path, call: Callable[[], object]) -> str:
    """What the client and the server said to each other."""
    database = limpet.store._db  # type: ignore[attr-defined]
    connections: list[psycopg.Connection[object]] = list(database._pool._pool)
    trace = folder / "trace"
    with trace.open("w") as file:
        for con in connections:
            con.pgconn.trace(file.fileno())
        call()
        for con in connections:
            con.pgconn.untrace()
    return trace.read_text()


TABLE_READ = "SELECT coalesce(seq_tup_read, 0) FROM pg_stat_user_tables WHERE relname = 'entries'"


def test_searches_after_an_import_use_the_index(postgres_url: str) -> None:
    """The server knows what an import brought, and has sorted its words in: it reads no table for want of that."""
    scope, at = Scope("team", "big"), 1_700_000_000_000
    with Limpet(choose_store(postgres_url), scope) as limpet:
        texts = (" ".join(re.findall("....", hashlib.sha256(b"%d" % number).hexdigest())) for number in range(3_000))
        limpet.store.load(scope, (note(f"note_{at + n}", text, at + n) for n, text in enumerate(texts)), ())
    before = raw(postgres_url, TABLE_READ)
    with Limpet(choose_store(postgres_url), scope) as limpet:
        for number in range(30):
            limpet.store.entries.matching(scope, Listing(("note",)), Words(((f"{number:04x}",),)))
            limpet.store.entries.tally(scope, "note", "", at)
    assert raw(postgres_url, TABLE_READ) == before
