"""Limpet for asyncio: the same calls, each run in a worker thread.

    async with limpet.aopen() as hold:
        session = hold.session("port the parser")
        await session.notes.add("Casts break LL(1)", tags=["grammar"])
        step = await session.window.next(talk, limit=200_000)

Every method of `Limpet`, `Session` and the parts of a session is here as a coroutine, with the same arguments and the
same result. The methods are looked up in the synchronous classes when they are called. For type checkers they are
listed here, each with the signature of the synchronous one; test_async.py holds the lists complete. Attributes without
I/O (`id`, `by`) and `hold.session(…)` need no await.

A call that has begun runs to its end, even if the task that waits for it is cancelled: its transaction is committed or
rolled back as a whole. Closing waits for such calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from limpet.api import LIBRARY, Clock, Limpet, Session
from limpet.catalogue.late import LatePart
from limpet.catalogue.operation import session_name
from limpet.wiring import open as open_limpet

if TYPE_CHECKING:
    from limpet.model import Scope
    from limpet.settings import Bounds
    from limpet.store import Store

P = ParamSpec("P")
T = TypeVar("T")
PARTS = frozenset(name for name, value in vars(Session).items() if isinstance(value, LatePart)) | {"window"}


if TYPE_CHECKING:  # what a type checker knows of the methods; the classes of parts are imported when a call needs them
    _limpet, _session = cast(Limpet, ...), cast(Session, ...)

    class Awaited(Generic[P, T]):
        """A synchronous method as a coroutine."""

        def __init__(self, method: Callable[P, T]) -> None: ...
        def __get__(self, owner: object, kind: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    class AsItIs(Generic[T]):
        def __init__(self, attribute: T) -> None: ...
        def __get__(self, owner: object, kind: type) -> T: ...

    def _spawned(method: Callable[P, Session]) -> Callable[P, AsyncSession]: ...
    def _read_out(method: Callable[P, Iterator[T]]) -> Callable[P, tuple[T, ...]]: ...

    class AsyncNotes:
        add = Awaited(_session.notes.add)
        search = Awaited(_session.notes.search)
        list = Awaited(_session.notes.list)
        update = Awaited(_session.notes.update)
        delete = Awaited(_session.notes.delete)
        tags = Awaited(_session.notes.tags)

    class AsyncNotepad:
        read = Awaited(_session.notepad.read)
        get = Awaited(_session.notepad.get)
        write = Awaited(_session.notepad.write)
        append = Awaited(_session.notepad.append)
        replace = Awaited(_session.notepad.replace)
        edit = Awaited(_session.notepad.edit)
        history = Awaited(_session.notepad.history)
        diff = Awaited(_session.notepad.diff)
        restore = Awaited(_session.notepad.restore)
        section = Awaited(_session.notepad.section)

    class AsyncMemory:
        write = Awaited(_session.memory.write)
        read = Awaited(_session.memory.read)
        search = Awaited(_session.memory.search)
        list = Awaited(_session.memory.list)
        delete = Awaited(_session.memory.delete)
        pin = Awaited(_session.memory.pin)
        digest = Awaited(_session.memory.digest)

    class AsyncHandoff:
        write = Awaited(_session.handoff.write)
        read = Awaited(_session.handoff.read)

    class AsyncOutputs:
        keep = Awaited(_session.outputs.keep)
        maybe_cache = Awaited(_session.outputs.maybe_cache)
        read = Awaited(_session.outputs.read)
        read_content = Awaited(_session.outputs.read_content)
        expand = Awaited(_session.outputs.expand)
        expanded = Awaited(_session.outputs.expanded)
        list = Awaited(_session.outputs.list)
        delete = Awaited(_session.outputs.delete)
        prune = Awaited(_session.outputs.prune)
        clear = Awaited(_session.outputs.clear)
        stats = Awaited(_session.outputs.stats)
        savings = Awaited(_session.outputs.savings)
        tool = AsItIs(_session.outputs.tool)

    class AsyncSandbox:
        run = Awaited(_session.sandbox.run)

    class AsyncPrompt:
        read = Awaited(_session.prompt.read)
        write = Awaited(_session.prompt.write)
        edit = Awaited(_session.prompt.edit)
        history = Awaited(_session.prompt.history)
        diff = Awaited(_session.prompt.diff)
        restore = Awaited(_session.prompt.restore)

    class AsyncSkills:
        list = Awaited(_session.skills.list)
        read = Awaited(_session.skills.read)
        promote = Awaited(_session.skills.promote)
        summary = Awaited(_session.skills.summary)

    class AsyncState:
        get = Awaited(_session.state.get)
        set = Awaited(_session.state.set)
        delete = Awaited(_session.state.delete)
        keys = Awaited(_session.state.keys)

    class AsyncJournal:
        recover = Awaited(_session.journal.recover)
        log_decision = Awaited(_session.journal.log_decision)
        add = Awaited(_session.journal.add)
        done = Awaited(_session.journal.done)
        checkpoint = Awaited(_session.journal.checkpoint)
        init = Awaited(_session.journal.init)
        lint = Awaited(_session.journal.lint)
        heal = Awaited(_session.journal.heal)
        verify = Awaited(_session.journal.verify)
        rotate = Awaited(_session.journal.rotate)
        clear = Awaited(_session.journal.clear)

    class AsyncWindow:
        next = Awaited(_session.window.next)
        sent = Awaited(_session.window.sent)
        keep = Awaited(_session.window.keep)
        add = Awaited(_session.window.add)
        leave = Awaited(_session.window.leave)
        uncompact = Awaited(_session.window.uncompact)
        compact = Awaited(_session.window.compact)
        messages = Awaited(_session.window.messages)
        gauge = Awaited(_session.window.gauge)
        shows_handoff: bool


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

    if TYPE_CHECKING:
        store: Store
        scope: Scope
        root: str
        default_session: str
        bounds: Bounds
        clock: Clock
        memory: AsyncMemory
        journal: AsyncJournal
        run = Awaited(_limpet.run)
        call = Awaited(_limpet.call)
        context = Awaited(_limpet.context)
        archive = Awaited(_limpet.archive)
        wait = Awaited(_limpet.wait)
        end = Awaited(_limpet.end)
        history = Awaited(_limpet.history)
        undo = Awaited(_limpet.undo)
        savings = Awaited(_limpet.savings)
        recall = Awaited(_limpet.recall)
        see_tools = Awaited(_limpet.see_tools)
        tools = Awaited(_limpet.tools)
        guidance = Awaited(_limpet.guidance)
        instructions = Awaited(_limpet.instructions)
        import_lines = Awaited(_limpet.import_lines)
        backup = Awaited(_limpet.backup)
        restore = Awaited(_limpet.restore)
        check = Awaited(_limpet.check)
        elsewhere = Awaited(_limpet.elsewhere)
        observe = Awaited(_limpet.observe)
        sessions = Awaited(_limpet.sessions)
        export_lines = Awaited(_read_out(_limpet.export_lines))
    else:

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

    if TYPE_CHECKING:
        notes: AsyncNotes
        notepad: AsyncNotepad
        memory: AsyncMemory
        handoff: AsyncHandoff
        outputs: AsyncOutputs
        sandbox: AsyncSandbox
        prompt: AsyncPrompt
        skills: AsyncSkills
        state: AsyncState
        journal: AsyncJournal
        window: AsyncWindow
        ctx = Awaited(_session.ctx)
        begin = Awaited(_session.begin)
        report = Awaited(_session.report)
        context = Awaited(_session.context)
        used = Awaited(_session.used)
        tools = Awaited(_session.tools)
        answer = Awaited(_session.answer)
        pin = Awaited(_session.pin)
        unpin = Awaited(_session.unpin)
        scratch = Awaited(_session.scratch)
        spawn = Awaited(_spawned(_session.spawn))
        fork = Awaited(_spawned(_session.fork))
    else:

        def __getattr__(self, name: str) -> Any:
            return _attribute(self.hold, lambda: self.sync, Session, name)


class AsyncPart:
    """A part of a session, such as `session.notes`."""

    def __init__(self, hold: AsyncLimpet, part: Callable[[], Any]) -> None:
        self._hold = hold
        self._part = part

    def __getattr__(self, name: str) -> Any:
        if name == "tool":  # the decorator of outputs returns a function, and keeps results of async ones in a thread
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
