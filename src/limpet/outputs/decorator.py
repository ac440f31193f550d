"""A decorator for a caller's own tools: big results are stored and replaced by a reference.

A text is stored as it is, other results as JSON. A result that is small, is not JSON or cannot be stored comes back as
the object the function returned. Exceptions pass through.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable
from typing import Any, TypeVar, cast

from limpet import errors
from limpet.outputs.keep import Replacement

F = TypeVar("F", bound=Callable[..., Any])
Keep = Callable[[str, str, str], Replacement]  # tool, content, call


def watched(function: F, keep: Keep, name: str) -> F:
    """The function, sync or async, with its name, signature and docstring."""
    signature = _signature(function)

    def replaced(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        content = as_text(result)
        if content is None:
            return result
        try:
            replacement = keep(name, content, call_text(name, signature, args, kwargs))
        except errors.LimpetError:
            return result  # the tool has done its work: a problem of the store is not its caller's
        return result if replacement.output is None else replacement.text

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: Any, **kwargs: Any) -> Any:
            result = await function(*args, **kwargs)
            return await asyncio.to_thread(replaced, result, args, kwargs)

        return cast(F, later)

    @functools.wraps(function)
    def now(*args: Any, **kwargs: Any) -> Any:
        return replaced(function(*args, **kwargs), args, kwargs)

    return cast(F, now)


def as_text(result: Any) -> str | None:
    """A result as a model would see it; None when it has no JSON form."""
    if isinstance(result, str):
        return result
    if not isinstance(result, dict | list | tuple):
        return None
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None  # some functions written in C have none


def call_text(name: str, signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The call with named arguments, so that equal calls have equal texts however they are written."""
    arguments: dict[str, Any] = {"args": args, **kwargs}
    if signature is not None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = bound.arguments
    try:
        return f"{name} {json.dumps(arguments, ensure_ascii=False, default=repr)}"
    except (TypeError, ValueError, RecursionError):
        return f"{name} {arguments!r}"
