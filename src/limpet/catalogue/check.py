"""The checks of arguments: types, ranges, and texts that can be stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from limpet import errors, limits
from limpet.text import safe

if TYPE_CHECKING:
    from limpet.catalogue.operation import Operation, Param

INTEGER_MAX = (1 << 53) - 1  # beyond it JSON readers disagree, and databases refuse


def checked(operation: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, each of the right type. An argument that is None counts as absent."""
    params = {param.name: param for param in operation.all_params()}
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in params:
            raise errors.unknown_argument(operation.name, name, list(params))
        if value is not None:
            values[name] = _value(operation.name, params[name], value)
    for param in operation.params:
        if param.required and param.name not in values:
            raise errors.missing(operation.name, param.name)
    return values


def _value(operation: str, param: Param, value: Any) -> Any:
    if param.type == "strings":
        if not isinstance(value, (list, tuple, set, frozenset)) or not all(isinstance(item, str) for item in value):
            raise errors.wrong_type(operation, param.name, value, "a list of strings")
        for item in value:
            storable(param.name, item)
        return tuple(value)
    if param.type == "boolean":
        if not isinstance(value, bool):
            raise errors.wrong_type(operation, param.name, value, "true or false")
        return value
    if param.type == "integer":
        if isinstance(value, bool) or not isinstance(value, int):
            raise errors.wrong_type(operation, param.name, value, "a whole number")
        low, high = (param.low, param.high) if param.high else (-INTEGER_MAX, INTEGER_MAX)
        if param.clamp:
            return max(low, min(value, high))
        if not low <= value <= high:
            raise errors.out_of_range(operation, param.name, value, low, high)
        return value
    if param.type in ("object", "json"):
        return _json(operation, param, value)
    if not isinstance(value, str):
        raise errors.wrong_type(operation, param.name, value, "a string")
    if param.choices and value not in param.choices:
        raise errors.not_one_of(operation, param.name, value, param.choices)
    return storable(param.name, value)


def _json(operation: str, param: Param, value: Any) -> Any:
    """The value as JSON gives it back. A value that JSON or the store cannot hold is refused."""
    if param.type == "object" and not isinstance(value, dict):
        raise errors.wrong_type(operation, param.name, value, "an object")
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise errors.not_json(operation, param.name) from None
    storable(param.name, written)
    return json.loads(written)


def storable(what: str, text: str) -> str:
    if why := safe.problem(text):
        raise errors.unstorable(what, why)
    return text


def bounded(what: str, text: str, limit: int, advice: str, *, blank: str | None = None) -> str:
    """A text within its limit. `blank` is the advice for an empty text; None allows it."""
    if len(text) > limit:
        raise errors.too_long(what, len(text), limit, advice)
    if blank is not None and not text.strip():
        raise errors.empty(what, blank)
    return text


def a_name(what: str, text: str, limit: int) -> str:
    """A key or a session id: one line that people can type."""
    name = text.strip()
    if not name:
        raise errors.empty(what, f"Give {what} a name.")
    if len(name) > limit:
        raise errors.too_long(what, len(name), limit, "Choose a shorter one.")
    if not name.isprintable():
        raise errors.bad_name(what, name, "it must be one line of visible characters")
    return name


def session_name(text: str) -> str:
    return a_name("session_id", text, limits.SESSION_MAX_CHARS)
