"""Names that are imported at first use, so that servers and hooks start without the behaviour they do not need."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType

from limpet import errors, platform
from limpet.light import Any, Generic, TypeVar, overload

T = TypeVar("T")


def load(name: str) -> ModuleType:
    """A module of Limpet. Where the disk or the process cannot give it, the problem is one of Limpet's."""
    try:
        return import_module(f"limpet.{name}")
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
