"""Names that are imported at first use, so that servers and hooks start without the behaviour they do not need.

A fork waits for such an import: Python's lock of a module that another thread is importing would stay locked in the
child for ever, and the child would stop at its first use of that module.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock, _local  # `threading` costs a start more than it gives here
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType

from limpet import errors, platform
from limpet.light import Any, Generic, TypeVar, overload

T = TypeVar("T")
# For an import in another thread. A disk that does not answer must not block a fork for ever, nor must an import that
# waits for a thread which imports something too.
FORK_WAIT_SECONDS = 5.0


class _Importing:
    """Held by the thread that imports, and during a fork. The stores register theirs later, so this one is taken after
    theirs: the write that a fork waits for may import something."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._fork = _local()  # `waited`: whether the fork of this thread has it
        os.register_at_fork(before=self._wait, after_in_parent=self._go_on, after_in_child=self._begin_anew)

    def import_module(self, name: str) -> ModuleType:
        lock = self.lock  # a child that is forked by the import has another one
        is_locked = lock.acquire(timeout=FORK_WAIT_SECONDS)
        try:
            return import_module(name)
        finally:
            if is_locked:
                lock.release()

    def _wait(self) -> None:
        self._fork.waited = False  # an exception of a signal ends this function, and not the fork
        self._fork.waited = self.lock.acquire(timeout=FORK_WAIT_SECONDS)

    def _go_on(self) -> None:
        if self._fork.waited:
            self.lock.release()

    def _begin_anew(self) -> None:
        self.lock = RLock()


_importing = _Importing()


def load(name: str) -> ModuleType:
    """A module of Limpet. Where the disk or the process cannot give it, the problem is one of Limpet's."""
    module = sys.modules.get(f"limpet.{name}")
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        return module
    try:
        return _importing.import_module(f"limpet.{name}")
    except OSError as problem:
        if problem.errno in platform.NO_DESCRIPTORS:
            raise errors.no_descriptors(f"a part of Limpet ({name})") from problem
        raise errors.not_loaded(name, problem.strerror or str(problem)) from problem


@cache
def resolve(place: str) -> Callable[..., Any]:
    """The function or class at "module:name", as rows of the table write it."""
    module, _, name = place.partition(":")
    value: Callable[..., Any] = getattr(load(module), name)
    return value


class LateModule:
    """A placeholder for a module. Under TYPE_CHECKING the module itself is imported by the same name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(load(self._name), name)


class LatePart(Generic[T]):
    """An attribute whose class is imported at first use, and called with the owner of the attribute."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: None, kind: type) -> LatePart[T]: ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: object | None, kind: type) -> LatePart[T] | T:
        if owner is None:
            return self
        part: T = resolve(self._place)(owner)
        owner.__dict__[self._name] = part  # found there from now on, without coming here
        return part
