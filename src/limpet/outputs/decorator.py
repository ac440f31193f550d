"""People's own tools: a function whose big results are kept, and that is otherwise the function it was.

A text is kept as it is, other results as the JSON they are to a model. Whatever is small, is no JSON, or cannot be kept
comes back as the very object the function returned; what it raises is raised.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable
from typing import Any, TypeVar, cast

from limpet import errors
from limpet.outputs.outputs import Kept

F = TypeVar("F", bound=Callable[..., Any])
Keep = Callable[[str, str, str], Kept]  # tool, content, call


def watched(function: F, keep: Keep, name: str) -> F:
    """The function, sync or async, with its name, signature and docstring."""
    signature = _signature(function)

    def shown(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        content = as_text(result)
        if content is None:
            return result
        try:
            kept = keep(name, content, call_text(name, signature, args, kwargs))
        except errors.LimpetError:
            return result  # the tool has done its work, and our trouble is not its caller's
        return result if kept.output is None else kept.text

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: Any, **kwargs: Any) -> Any:
            result = await function(*args, **kwargs)
            return await asyncio.to_thread(shown, result, args, kwargs)

        return cast(F, later)

    @functools.wraps(function)
    def now(*args: Any, **kwargs: Any) -> Any:
        return shown(function(*args, **kwargs), args, kwargs)

    return cast(F, now)


def as_text(result: Any) -> str | None:
    """What a model would be shown of a result; None for what nobody could show it."""
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
        return None  # some that are written in C do not say


def call_text(name: str, signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The call by the names of its arguments, so that the same call reads the same however it is written."""
    given: dict[str, Any] = {"args": args, **kwargs}
    if signature is not None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
    try:
        return f"{name} {json.dumps(given, ensure_ascii=False, default=repr)}"
    except (TypeError, ValueError, RecursionError):
        return f"{name} {given!r}"
