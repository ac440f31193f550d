"""Writes a golden store: one fixed story, kept by the Limpet that is on the path, with what it read back.

Run with the sources of a release: `PYTHONPATH=<its src>:tests python tests/golden/make.py`. It leaves, in this folder,
`schema<N>.db.zst` (the SQLite file), `schema<N>.rows.zst` (the rows of the PostgreSQL tables) and `schema<N>.json` (its
own answers, and its export). They are never written again: a later Limpet must open them and say the same.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pathlib
import sys
import tempfile
from typing import Any

import psycopg
from psycopg import sql

import limpet
from limpet.catalogue.table import OPERATIONS
from limpet.stores.postgres import schema
from postgres import ORDINARY, Run, as_admin, database_url, server_url

HERE = pathlib.Path(__file__).parent
zstd: Any = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
START = 1_772_539_200_000  # the clock of the story, in milliseconds; it ticks once a call
PROJECT = "golden"
LOG = "".join(
    f"2026-03-03 12:{n // 60:02d}:{n % 60:02d} line {n} of a build, step {n * 7919 % 97}\n" for n in range(900)
)

STORY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("begin_session", {"task": "port the parser"}),
    ("add_note", {"content": "Casts break LL(1) in parse_expr()", "tags": ["grammar", "Über"]}),
    ("add_note", {"content": "日本語の構文も試す。\u2003Ligature: \ufb01nal, e\u0301\n\tindented", "tags": ["i18n"]}),
    ("add_note", {"content": "To be changed", "tags": ["draft"]}),
    ("add_note", {"content": "To be deleted, then brought back"}),
    ("write_notepad", {"content": "- [ ] casts\n- [x] lexer\n"}),
    ("update_notepad", {"operation": "append", "content": "- [ ] unicode \U0001f9ed\n"}),
    ("write_memory", {"key": "release/branch", "content": "release/4.2"}),
    ("write_memory", {"key": "release/branch", "content": "release/4.3"}),
    ("pin_memory", {"key": "release/branch", "pinned": True}),
    ("write_memory", {"key": "owner", "content": "Ana"}),
    ("scratch_note", {"content": "half a thought", "mode": "replace"}),
    ("write_session_handoff", {"content": "Casts are next; see parse_expr()."}),
)
LATER: tuple[tuple[str, dict[str, Any]], ...] = (
    ("pin_text", {"content": "Never touch the vendored lexer."}),
    ("begin_task", {"description": "parse casts"}),
    ("write_system_prompt", {"content": "You port parsers."}),
)
CORRECTED: tuple[tuple[str, dict[str, Any]], ...] = (  # since schema 7
    ("write_memory", {"key": "lead", "content": "Bo leads the port now, no longer Ana.", "replaces": "owner"}),
    ("write_memory", {"key": "freeze", "content": "No releases this week.", "expires": "2w"}),
    ("add_note", {"content": "The lexer is in C", "tags": ["lexer"], "expires": "1h", "anchors": ["commit 0a1b2c3d"]}),
    ("add_note", {"content": "Written once", "idempotency_key": "golden-1"}),
)
READS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_notes", {}),
    ("list_tags", {}),
    ("search_notes", {"query": "parse_expr"}),
    ("search_notes", {"query": "構文"}),
    ("read_notepad", {}),
    ("notepad_history", {}),
    ("read_memory", {"key": "release/branch"}),
    ("search_memory", {"query": "release"}),
    ("list_memory", {"include_replaced": True}),
    ("read_handoff", {}),
    ("show_session", {"id": "alpha"}),
    ("list_sessions", {}),
    ("list_outputs", {}),
    ("list_pins", {}),
    ("list_tasks", {}),
    ("read_system_prompt", {}),
    ("history", {"limit": 200}),
)


def tell(store: str) -> dict[str, Any]:
    """Keep the story in a new store; the answers of this version to every question it knows."""
    ticks = iter(range(START, START + 1_000_000))
    with limpet.open(store, project=PROJECT, session="alpha", clock=lambda: next(ticks)) as hold:
        for name, arguments in STORY:
            hold.call(name, arguments)
        notes = hold.call("list_notes", {})["notes"]
        ids = {note["content"]: note["id"] for note in notes}
        hold.call("update_note", {"id": ids["To be changed"], "content": "Was changed", "tags": ["draft", "2nd"]})
        hold.call("delete_note", {"id": ids["To be deleted, then brought back"]})
        hold.call("undo", {})
        for name, arguments in LATER:
            if name in OPERATIONS:
                hold.call(name, arguments)
        for name, arguments in CORRECTED if "list_memory" in OPERATIONS else ():
            hold.call(name, arguments)
        session = hold.session("alpha")
        if hasattr(session, "outputs"):
            session.outputs.keep("make", LOG)
            session.outputs.keep("query", json.dumps([{"id": n, "name": f"row {n}"} for n in range(200)]))
        return answers(hold)


def answers(hold: Any) -> dict[str, Any]:
    said = [[name, arguments, hold.call(name, arguments)] for name, arguments in READS if name in OPERATIONS]
    return {"answers": said, "export": [json.loads(line) for line in hold.export_lines()]}


def rows(address: str) -> dict[str, list[str]]:
    """What every table of ours holds, as PostgreSQL copies it."""
    with psycopg.connect(address) as con:
        found = {}
        for table in schema.TABLES:
            if table != "limpet_schema":
                with con.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(table))) as copy:
                    found[table] = b"".join(bytes(block) for block in copy).decode().splitlines()
        return found


def lay(url: str, number: int) -> None:
    """Make the tables of a schema in an empty database, with the golden rows of it. For the tests that open them."""
    tables: dict[str, list[str]] = json.loads(zstd.decompress((HERE / f"schema{number}.rows.zst").read_bytes()))
    with psycopg.connect(as_admin(url)) as con:
        con.execute(f"SET ROLE {ORDINARY}")
        for made in range(1, number + 1):
            for statement in schema.statements(schema.migration(made)):
                con.execute(statement)
        con.execute("RESET ROLE")  # a restore is not kept from the rows of a tenant
        for table, lines in tables.items():
            with con.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))) as copy:
                copy.write("".join(f"{line}\n" for line in lines))
            _count_on(con, table)
        con.execute("INSERT INTO limpet_schema (version) VALUES (%s)", (number,))


def _count_on(con: psycopg.Connection, table: str) -> None:
    """Numbers that the server gives out go on where the copied ones end, as after any restore."""
    numbered = "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND is_identity = 'YES'"
    for (column,) in con.execute(numbered, (table,)).fetchall():
        highest = sql.SQL("SELECT max({}) FROM {}").format(sql.Identifier(column), sql.Identifier(table))
        (last,) = con.execute(highest).fetchall()[0]
        con.execute("SELECT setval(pg_get_serial_sequence(%s, %s), greatest(%s, 1))", (table, column, last))


def main() -> None:
    number = schema.SCHEMA
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "golden.db"
        said = tell(str(file))
        (HERE / f"schema{number}.db.zst").write_bytes(zstd.compress(file.read_bytes(), 19))
    run = Run.begin()
    try:
        with psycopg.connect(server_url(), autocommit=True) as con:
            con.execute("CREATE DATABASE golden")
        address = database_url(server_url(), "golden")
        assert len(tell(address)["export"]) == len(said["export"])
        (HERE / f"schema{number}.rows.zst").write_bytes(zstd.compress(json.dumps(rows(address)).encode(), 19))
    finally:
        run.end()
    (HERE / f"schema{number}.json").write_text(json.dumps(said, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"schema {number}: {len(said['export'])} lines, {hashlib.sha256(repr(said).encode()).hexdigest()[:12]}")


if __name__ == "__main__":
    main()
