"""All operations by name, and the profiles: which of them an agent is given."""

from __future__ import annotations

from holdfast import errors
from holdfast.operations import (
    audit,
    folds,
    handoff,
    history,
    journal,
    memory,
    notepad,
    notes,
    outputs,
    pins,
    prompt,
    purge,
    recall,
    sandbox,
    savings,
    seals,
    sessions,
    skills,
    state,
    tasks,
    tree,
)
from holdfast.operations.registry import Operation

PROFILES = ("core", "full", "agent")
OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for module in (
        notes,
        notepad,
        memory,
        handoff,
        outputs,
        journal,
        recall,
        tasks,
        folds,
        pins,
        sandbox,
        prompt,
        skills,
        state,
        savings,
        sessions,
        tree,
        history,
        audit,
        purge,
        seals,
    )
    for operation in module.OPERATIONS
}


def find(name: str) -> Operation:
    if name not in OPERATIONS:
        raise errors.unknown_operation(name, f"Those that exist: {', '.join(OPERATIONS)}.")
    return OPERATIONS[name]


def profile(name: str) -> tuple[Operation, ...]:
    """The operations an agent gets.

    "core" is small enough for every call, "full" has every tool that any host can serve, and "agent" those too that
    only mean something where the host runs the children of a session.
    """
    if name not in PROFILES:
        raise errors.unknown_profile(name, PROFILES)
    given = {name, "full"} if name == "agent" else {name}
    return tuple(operation for operation in OPERATIONS.values() if given & set(operation.profiles))
