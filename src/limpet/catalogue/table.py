"""All operations by name, and the profiles: which of them an agent is given.

A server starts with the small profile and must start at once, so a module of operations is imported when it is first
asked for. Those of the small profile come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from limpet import errors
from limpet.catalogue.operation import Operation

PROFILES = ("core", "coding", "full", "agent")
# Every operation of the small profile is in these.
CORE = ("memory.notes", "session.notepad", "memory.memory", "memory.handoff")
# What a coding agent needs beside them: hooks put references in front of it and tell it to recall.
CODING = ("outputs.outputs", "recall.recall")
READERS = ("scratchpad_read", "recall")
MODULES = (
    *CORE,
    *("outputs.outputs", "journal.operations", "recall.recall", "session.tasks", "window.folds", "session.pins"),
    *("sandbox.run", "session.prompt", "memory.skills", "memory.state", "outputs.savings", "session.sessions"),
    *("session.tree", "upkeep.history", "upkeep.tool_pins", "upkeep.audit", "upkeep.purge"),
)

if TYPE_CHECKING:
    OPERATIONS: dict[str, Operation]


@lru_cache
def _operations(module: str) -> tuple[Operation, ...]:
    found: tuple[Operation, ...] = import_module(f"limpet.{module}").OPERATIONS
    return found


def _all(modules: tuple[str, ...] = MODULES) -> Iterator[Operation]:
    for module in modules:
        yield from _operations(module)


def __getattr__(name: str) -> Any:
    """`OPERATIONS`, all of them by name, for those who want them all."""
    if name != "OPERATIONS":
        raise AttributeError(name)
    return {operation.name: operation for operation in _all()}


def has(name: str) -> bool:
    return any(operation.name == name for operation in _all())


def find(name: str) -> Operation:
    for operation in _all():
        if operation.name == name:
            return operation
    raise errors.unknown_operation(name, f"Those that exist: {', '.join(operation.name for operation in _all())}.")


def profile(name: str) -> tuple[Operation, ...]:
    """The operations an agent gets.

    "core" is small enough for every call, "coding" adds what the hooks of coding agents speak of, "full" has every tool
    that any host can serve, and "agent" those too that only mean something where the host runs the children of a
    session.
    """
    if name not in PROFILES:
        raise errors.unknown_profile(name, PROFILES)
    if name == "coding":
        more = (operation for operation in _all(CODING) if operation.name in READERS)
        return (*profile("core"), *more)
    given = {name, "full"} if name == "agent" else {name}
    modules = CORE if name == "core" else MODULES
    return tuple(operation for operation in _all(modules) if given & set(operation.profiles))
