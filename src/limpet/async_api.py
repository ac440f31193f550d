"""Limpet for asyncio: the same calls, each run in a worker thread.

    async with limpet.aopen() as hold:
        session = hold.session("port the parser")
        await session.notes.add("Casts break LL(1)", tags=["grammar"])
        step = await session.window.next(talk, limit=200_000)

Every method of `Limpet`, `Session` and the parts of a session is here as a coroutine, with the same arguments and the
same result. The methods are looked up in the synchronous classes, so the two cannot drift apart. Attributes without
I/O (`id`, `by`) and `hold.session(…)` need no await.

A call that has begun runs to its end, even if the task that waits for it is cancelled: its transaction is committed or
rolled back as a whole. Closing waits for such calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Awaitable, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

from limpet.api import LIBRARY, Clock, Limpet, Session
from limpet.catalogue.check import session_name
from limpet.catalogue.late import LatePart
from limpet.wiring import open as open_limpet

T = TypeVar("T")
PARTS = frozenset(name for name, value in vars(Session).items() if isinstance(value, LatePart)) | {"window"}


def aopen(
    store: str | None = None,
    *,
    project: str | None = None,
    session: str | None = None,
    folder: str | None = None,
    clock: Clock | None = None,
) -> AsyncLimpet:
    """A project's memory for asyncio, with the arguments of `limpet.open`. Use it in `async with`, or await it."""
    return AsyncLimpet(lambda: open_limpet(store, project=project, session=session, folder=folder, clock=clock))


class AsyncLimpet:
    """A project's memory. Close it, or use it in an `async with` statement."""

    def __init__(self, opener: Callable[[], Limpet]) -> None:
        self._opener = opener
        self._limpet: Limpet | None = None
        self._opening = Lock()
        self._pool = ThreadPoolExecutor(thread_name_prefix="limpet")

    def __await__(self) -> Generator[Any, None, AsyncLimpet]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncLimpet:
        return await self._open()

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for the calls that have begun, then close the store."""
        await asyncio.to_thread(self._close)

    @property
    def sync(self) -> Limpet:
        """The synchronous Limpet behind this one."""
        if self._limpet is None:
            raise RuntimeError("limpet.aopen() is not open yet: use `async with`, or await it.")
        return self._limpet

    def session(self, id: str | None = None, *, by: str = LIBRARY, keep_secret: bool = False) -> AsyncSession:
        """The session with that name. It is resumed if it exists; otherwise its first write begins it."""
        name = None if id is None else session_name(id)
        return AsyncSession(self, self.sync.session(name, by=by, keep_secret=keep_secret))

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, lambda: self.sync, Limpet, name)

    async def in_thread(self, function: Callable[[], T]) -> T:
        """The result of a function that a worker thread runs."""
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: context.run(function))

    async def _open(self) -> AsyncLimpet:
        with contextlib.ExitStack() as undo:  # cancelled, perhaps while the thread opens the store: closed behind that
            undo.callback(self._pool.shutdown, wait=False)
            undo.callback(self._pool.submit, self._drop)
            await self.in_thread(self._begin)
            undo.pop_all()
        return self

    def _begin(self) -> None:
        with self._opening:
            if self._limpet is None:
                self._limpet = self._opener()

    def _drop(self) -> None:
        with self._opening:
            if self._limpet is not None:
                self._limpet.close()

    def _close(self) -> None:
        self._pool.shutdown(wait=True)
        self._drop()


class AsyncSession:
    """One piece of work, as `Session`."""

    def __init__(self, hold: AsyncLimpet, session: Session) -> None:
        self.hold = hold
        self.sync = session
        self.id = session.id
        self.by = session.by

    def __getattr__(self, name: str) -> Any:
        return _attribute(self.hold, lambda: self.sync, Session, name)


class AsyncPart:
    """A part of a session, such as `session.notes`."""

    def __init__(self, hold: AsyncLimpet, part: Callable[[], Any]) -> None:
        self._hold = hold
        self._part = part

    def __getattr__(self, name: str) -> Any:
        if (
            name == "tool"
        ):  # the decorator of outputs: it returns a function, and keeps results of async ones in a thread
            return self._part().tool
        return _method(self._hold, self._part, name)


def _attribute(hold: AsyncLimpet, owner: Callable[[], Any], kind: type, name: str) -> Any:
    if name in PARTS:
        return AsyncPart(hold, lambda: getattr(owner(), name))
    if callable(getattr(kind, name, None)):
        return _method(hold, owner, name)
    return getattr(owner(), name)


def _method(hold: AsyncLimpet, owner: Callable[[], Any], name: str) -> Callable[..., Awaitable[Any]]:
    if name.startswith("_"):
        raise AttributeError(name)

    async def call(*args: Any, **kwargs: Any) -> Any:
        value = await hold.in_thread(lambda: _value(getattr(owner(), name)(*args, **kwargs)))
        return AsyncSession(hold, value) if isinstance(value, Session) else value

    return call


def _value(value: Any) -> Any:
    """An iterator reads the store while it runs, so it is read to its end in the thread."""
    return tuple(value) if isinstance(value, Iterator) else value
