"""Short ids: what a model is shown instead of note_1772539200000.

Every change of a project has a number, so the number of the change that made an entry names it for good: `n17` is the
note that change 17 made. Nothing else is stored for it. Deleting and undoing keep the changes, an export has them, and
an import into an empty project keeps their numbers; what a merge adds gets new ones. Every id is accepted everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from limpet.catalogue.operation import Context, Operation
from limpet.light import Any, re
from limpet.model import FOLD, JOURNAL, NOTE, PIN, TASK

LETTERS = {NOTE: "n", TASK: "t", PIN: "p", FOLD: "f", JOURNAL: "j"}  # kinds whose keys the store mints
_SHORT = r"([a-zA-Z])([1-9]\d{0,14})"  # compiled at the first use: most starts need none


def short_ids(ctx: Context, kind: str, keys: Iterable[str]) -> Mapping[str, str]:
    """The short id of each key; the key itself where there is none."""
    names = {key: key for key in keys}
    if names and kind in LETTERS:
        numbers = ctx.store.entries.numbers(ctx.scope, kind, tuple(names))
        names |= {key: f"{LETTERS[kind]}{number}" for key, number in numbers.items()}
    return names


def short_id(ctx: Context, kind: str, key: str) -> str:
    return short_ids(ctx, kind, (key,))[key]


def full_id(ctx: Context, kind: str, id: str) -> str:
    """The key that an id of either form means. One that names nothing stays as it is, for the error to name."""
    match = re.fullmatch(_SHORT, id.strip())
    if match is None or match[1].lower() != LETTERS.get(kind):
        return id
    event = ctx.store.entries.event(ctx.scope, int(match[2]))
    return event.key if event is not None and (event.kind, event.version) == (kind, 1) else id


def is_short(id: str) -> bool:
    return re.fullmatch(_SHORT, id) is not None


def with_full_ids(ctx: Context, operation: Operation, values: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the ids that the store knows."""
    for param in operation.params:
        value = values.get(param.name)
        if param.names and isinstance(value, str):
            values[param.name] = full_id(ctx, param.names, value)
        elif param.names and value:
            values[param.name] = tuple(full_id(ctx, param.names, id) for id in value)
    return values
