"""The floor of the load: the same MCP transport on the same ASGI server, and behind each tool one plain SQL statement.

`python -m bench.load_floor <postgresql address>` serves on a free port and prints it. The tables are what an engineer
would write by hand: a primary key, the indexes the statements need, words as a tsvector that PostgreSQL makes itself.
There are no tokens, no checks, no history, no checksums, no duplicates looked for: it is a floor, not a peer. Every
write is a durable commit of its own.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread
import mcp_types as types
import psycopg
import psycopg_pool
import uvicorn
from mcp.server import Server
from mcp.server.context import ServerRequestContext

from bench.corpus import Note

SCHEMA = """
CREATE TABLE notes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, project text NOT NULL, session text NOT NULL,
  content text NOT NULL, tags text[] NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
  terms tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED);
CREATE INDEX ON notes (project, session, created_at DESC);
CREATE INDEX ON notes USING gin (terms);
CREATE TABLE pads (project text, session text, content text NOT NULL, updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (project, session));
CREATE TABLE memory (project text, key text, content text NOT NULL, updated_at timestamptz NOT NULL DEFAULT now(),
  terms tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED, PRIMARY KEY (project, key));
CREATE INDEX ON memory USING gin (terms);
"""
_WORDS = "FROM {} , plainto_tsquery('english', %s) q WHERE project = %s AND terms @@ q ORDER BY ts_rank(terms, q) DESC"
ADD = "INSERT INTO notes (project, session, content, tags) VALUES (%s, %s, %s, %s)"
SEARCH = f"SELECT id, content, tags, created_at {_WORDS.format('notes')} LIMIT %s"
ANY = SEARCH.replace("plainto_tsquery('english', %s)", "to_tsquery('english', %s)")
LIST = (
    "SELECT id, content, tags, created_at FROM notes WHERE project = %s AND session = %s "
    "ORDER BY created_at DESC LIMIT %s"
)
READ_PAD = "SELECT content FROM pads WHERE project = %s AND session = %s"
WRITE_PAD = (
    "INSERT INTO pads VALUES (%s, %s, %s) ON CONFLICT (project, session) "
    "DO UPDATE SET content = excluded.content, updated_at = now()"
)
WRITE_MEMORY = (
    "INSERT INTO memory VALUES (%s, %s, %s) ON CONFLICT (project, key) "
    "DO UPDATE SET content = excluded.content, updated_at = now()"
)
SEARCH_MEMORY = f"SELECT key, content, updated_at {_WORDS.format('memory')} LIMIT %s"
CONNECTIONS = 8  # as many as Limpet has

Con = psycopg.Connection[tuple[Any, ...]]
Given = dict[str, Any]
PROJECT_HEADER, SESSION_HEADER = "limpet-project", "limpet-session"


def make(url: str, projects: Sequence[str], notes: Sequence[Note]) -> None:
    """The tables, with the notes dealt out to the projects."""
    with psycopg.connect(url) as con:
        con.execute(SCHEMA)
        with con.cursor() as cursor:
            dealt = [(projects[at % len(projects)], "loaded", note.content, note.tags) for at, note in enumerate(notes)]
            cursor.executemany(ADD, dealt)
        con.commit()
        con.autocommit = True
        con.execute("VACUUM ANALYZE")


def _notes(rows: list[tuple[Any, ...]]) -> Given:
    return {"notes": [{"id": row[0], "content": row[1], "tags": row[2], "at": row[3].isoformat()} for row in rows]}


def _add(con: Con, where: tuple[str, str], given: Given) -> Given:
    row = con.execute(ADD + " RETURNING id", (*where, given["content"], given["tags"])).fetchone()
    return {"note_id": row and row[0]}


def _search(con: Con, where: tuple[str, str], given: Given) -> Given:
    return _notes(con.execute(SEARCH, (given["query"], where[0], given["limit"])).fetchall())


def _recall(con: Con, where: tuple[str, str], given: Given) -> Given:
    any_of = " | ".join(given["query"].split())
    return _notes(con.execute(ANY, (any_of, where[0], given["limit"])).fetchall())


def _list(con: Con, where: tuple[str, str], given: Given) -> Given:
    return _notes(con.execute(LIST, (*where, given["limit"])).fetchall())


def _read(con: Con, where: tuple[str, str], given: Given) -> Given:
    row = con.execute(READ_PAD, where).fetchone()
    return {"content": row[0] if row else ""}


def _write(con: Con, where: tuple[str, str], given: Given) -> Given:
    con.execute(WRITE_PAD, (*where, given["content"]))
    return {"ok": True}


def _remember(con: Con, where: tuple[str, str], given: Given) -> Given:
    con.execute(WRITE_MEMORY, (where[0], given["key"], given["content"]))
    return {"status": "stored"}


def _look(con: Con, where: tuple[str, str], given: Given) -> Given:
    rows = con.execute(SEARCH_MEMORY, (given["query"], where[0], given["limit"])).fetchall()
    return {"matches": [{"key": row[0], "content": row[1], "at": row[2].isoformat()} for row in rows]}


TOOLS: dict[str, Callable[[Con, tuple[str, str], Given], Given]] = {
    "add_note": _add,
    "search_notes": _search,
    "recall": _recall,
    "list_notes": _list,
    "read_notepad": _read,
    "write_notepad": _write,
    "write_memory": _remember,
    "search_memory": _look,
}


def main(url: str) -> None:
    # One statement is one transaction, so nothing needs to be begun or committed.
    pool: psycopg_pool.ConnectionPool[Con] = psycopg_pool.ConnectionPool(
        url, kwargs={"autocommit": True}, min_size=CONNECTIONS, max_size=CONNECTIONS, open=True
    )

    async def call(ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        headers = ctx.request.headers if ctx.request else {}
        where = headers[PROJECT_HEADER], headers[SESSION_HEADER]

        def work() -> Given:
            with pool.connection() as con:
                return TOOLS[params.name](con, where, params.arguments or {})

        answer = await anyio.to_thread.run_sync(work)
        text = types.TextContent(type="text", text=json.dumps(answer))
        return types.CallToolResult(content=[text], structured_content=answer)

    server: Server[Any] = Server("floor", version="1", on_call_tool=call)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(
        server.streamable_http_app(json_response=True), log_config=None, access_log=False, ws="none"
    )
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main(sys.argv[1])
