"""All operations by name, and the profiles: which of them an agent is given."""

from __future__ import annotations

from holdfast import errors
from holdfast.operations import handoff, history, journal, memory, notepad, notes, outputs, sessions
from holdfast.operations.registry import Operation

PROFILES = ("core", "full")
OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for module in (notes, notepad, memory, handoff, outputs, journal, sessions, history)
    for operation in module.OPERATIONS
}


def find(name: str) -> Operation:
    if name not in OPERATIONS:
        raise errors.unknown_operation(name, f"Those that exist: {', '.join(OPERATIONS)}.")
    return OPERATIONS[name]


def profile(name: str) -> tuple[Operation, ...]:
    """The operations an agent gets: "core" is small enough for every call, "full" has every tool."""
    if name not in PROFILES:
        raise errors.unknown_profile(name, PROFILES)
    return tuple(operation for operation in OPERATIONS.values() if name in operation.profiles)
