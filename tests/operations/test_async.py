"""`limpet.aopen`: the same calls for asyncio, in worker threads."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import contextvars
import inspect
import sqlite3
import threading
from pathlib import Path
from typing import Any, assert_type

import apsw
import pytest

import limpet
from limpet import api, async_api
from limpet.api import wall_clock
from limpet.catalogue.late import LatePart, resolve
from limpet.memory.notes import NoteMatches
from limpet.model import Note, SessionInfo
from limpet.session.notepad import Edited
from limpet.window.plan.controller import Step


def test_the_same_calls_with_the_same_results(tmp_path: Path) -> None:
    async def work() -> None:
        async with limpet.aopen(str(tmp_path / "a.db"), session="work") as hold:
            session = hold.session()
            note = await session.notes.add("Casts break LL(1)", tags=["grammar"])
            assert [found.id for found in await session.notes.list()] == [note.id]
            await session.notepad.append("- [ ] casts\n")
            assert "casts" in await session.context()
            assert (await hold.recall("casts")).hits
            assert (await hold.call("list_notes", {}))["note_count"] == 1
            assert await hold.memory.search("nothing") == ()
            assert (session.id, hold.default_session) == ("work", "work")
            child = await session.spawn("look at casts")
            assert isinstance(child, limpet.AsyncSession)
            assert (await child.report("done")).status == "completed"
            assert len(await hold.export_lines()) > 2

    asyncio.run(work())


def test_a_refusal_is_the_same_error(tmp_path: Path) -> None:
    async def work() -> None:
        async with limpet.aopen(str(tmp_path / "a.db")) as hold:
            with pytest.raises(limpet.BadInput, match="a list of strings"):
                await hold.session("s").notes.add("x", tags=5)  # type: ignore[arg-type]
            with pytest.raises(AttributeError):
                await hold.session("s").notes.no_such_method()  # type: ignore[attr-defined]

    asyncio.run(work())


def test_many_calls_at_once(tmp_path: Path) -> None:
    async def work() -> int:
        async with limpet.aopen(str(tmp_path / "a.db"), session="s") as hold:
            session = hold.session()
            await asyncio.gather(*(session.notes.add(f"note {number} about topic {number}") for number in range(40)))
            return len(await session.notes.list(limit=100))

    assert asyncio.run(work()) == 40


def test_it_can_be_awaited_and_closed(tmp_path: Path) -> None:
    async def work() -> None:
        hold = await limpet.aopen(str(tmp_path / "a.db"), session="s")
        await hold.session().notepad.write("kept")
        await hold.close()
        hold = limpet.aopen(str(tmp_path / "a.db"))
        with pytest.raises(RuntimeError, match="not open yet"):
            hold.session()
        await hold.close()

    asyncio.run(work())
    with limpet.open(str(tmp_path / "a.db"), session="s") as hold:
        assert hold.session().notepad.read() == "kept"


def test_a_cancelled_caller_leaves_a_whole_transaction(tmp_path: Path) -> None:
    """The caller is cancelled while its call waits for another writer. Closing waits until the call has written."""
    path = str(tmp_path / "a.db")
    began = threading.Event()

    def clock() -> int:  # every call asks for the time
        began.set()
        return wall_clock()

    async def work() -> None:
        async with limpet.aopen(path, session="s", clock=clock) as hold:
            session = hold.session()
            await session.notes.add("first")
            began.clear()
            # The same SQLite as the store's: the locks of another one in the same process would not count.
            with contextlib.closing(apsw.Connection(path)) as writer:
                writer.execute("BEGIN IMMEDIATE")
                task = asyncio.create_task(session.notes.add("written after its caller was cancelled"))
                assert await asyncio.to_thread(began.wait, 10)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                writer.execute("ROLLBACK")

    asyncio.run(work())
    with limpet.open(path, session="s") as hold:
        assert len(hold.session().notes.list()) == 2
        assert [event.operation for event in hold.history(kind="note")] == ["add_note", "add_note"]
        assert all(finding.ok for finding in hold.check())


def test_a_cancelled_opening_closes_the_store(tmp_path: Path) -> None:
    closed = threading.Event()
    may_open = threading.Event()

    def opener() -> limpet.Limpet:
        assert may_open.wait(10)
        hold = limpet.open(str(tmp_path / "a.db"))
        close = hold.close

        def note_close() -> None:
            close()
            closed.set()

        hold.__dict__["close"] = note_close
        return hold

    async def work() -> None:
        task = asyncio.ensure_future(limpet.AsyncLimpet(opener).__aenter__())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may_open.set()

    asyncio.run(work())
    assert closed.wait(10)
    sqlite3.connect(tmp_path / "a.db").close()


async def long_report() -> str:
    return "".join(f"line {number} of a long report\n" for number in range(2_000))


def test_big_results_of_async_tools_are_kept(tmp_path: Path) -> None:
    async def work() -> None:
        async with limpet.aopen(str(tmp_path / "a.db"), session="s") as hold:
            search = hold.session().outputs.tool(long_report)
            assert "read_output" in await search()

    asyncio.run(work())


def test_context_variables_reach_the_thread(tmp_path: Path) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="")

    async def work() -> str:
        async with limpet.aopen(str(tmp_path / "a.db")) as hold:
            variable.set("here")
            return await hold.in_thread(variable.get)

    assert asyncio.run(work()) == "here"


def test_every_part_of_a_session_is_there() -> None:
    parts = {name for name, value in vars(api.Session).items() if isinstance(value, LatePart)}
    assert parts | {"window"} == async_api.PARTS
    assert len(async_api.PARTS) == 11


def listed_for_type_checkers() -> dict[str, set[str]]:
    """The public names in the bodies of the classes of async_api.py, also those that exist for type checkers alone."""
    listed: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(async_api))):
        if isinstance(node, ast.ClassDef):
            body = ast.walk(node)
            names = {name.id for name in body if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
            listed[node.name] = names | {item.name for item in node.body if hasattr(item, "name")}
    return listed


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_type_checkers_know_every_method() -> None:
    listed = listed_for_type_checkers()
    # `do` is for the parts of a session, and generic in the function that it is given.
    # What answers models and makes vectors is for the doors of this program.
    assert public(api.Limpet) - {"do", "answer", "index_in_background"} <= listed["AsyncLimpet"]
    assert public(api.Session) - {"do"} <= listed["AsyncSession"]
    kinds = {name: value._place for name, value in vars(api.Session).items() if isinstance(value, LatePart)}
    for part, place in {**kinds, "window": "window.window:Window"}.items():
        kind: Any = resolve(place)
        assert public(kind) == listed[f"Async{part.capitalize()}"], part


def test_the_types_are_those_of_the_synchronous_calls(tmp_path: Path) -> None:
    """Checked by mypy: each call has the type of its synchronous twin."""

    async def work() -> None:
        async with limpet.aopen(str(tmp_path / "a.db"), session="s") as hold:
            session = assert_type(hold.session(), limpet.AsyncSession)
            assert_type(await session.notes.add("Casts break", tags=["grammar"]), Note)
            assert_type(await session.notes.search("casts", limit=3), NoteMatches)
            assert_type(await session.notepad.append("- [ ] casts"), Edited)
            assert_type(await session.window.next([limpet.user("hello")], limit=100_000), Step)
            assert_type(await session.begin("port the parser"), SessionInfo)
            assert_type(await session.spawn("look at casts"), limpet.AsyncSession)
            assert_type(await hold.sessions(), tuple[SessionInfo, ...])
            assert_type(await hold.export_lines(), tuple[str, ...])
            assert_type(hold.default_session, str)
            with pytest.raises(limpet.BadInput):
                await session.notes.add(3)  # type: ignore[arg-type]
            with pytest.raises(AttributeError):
                await session.no_such_method()  # type: ignore[attr-defined]

    asyncio.run(work())
