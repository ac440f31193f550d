"""The methods of `session.outputs`, and the decorator for a caller's own tools.

The decorator stores a big result and returns a reference in its place: a text as it is, other results as JSON. A result
that is small, is not JSON or cannot be stored comes back as the object the function returned. Exceptions pass through.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar, cast, overload
from uuid import UUID

from limpet import errors, limits
from limpet.catalogue.operation import Caller
from limpet.outputs import keep as output_keep
from limpet.outputs import read as output_read
from limpet.outputs import savings
from limpet.outputs.keep import Replacement
from limpet.store import Pruned

F = TypeVar("F", bound=Callable[..., Any])


class SessionOutputs:
    """`session.outputs`."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def keep(self, tool: str, content: str, *, call: str = "", free_tokens: int | None = None) -> Replacement:
        """What to show for a tool's result: the result itself when it is small, else a preview and a reference.

        `call` is the call that gave the result, with its arguments. It says how to get the result again, and
        identifies a repeated call. `free_tokens`, the free part of the window, makes the threshold adapt to it.
        """
        return output_keep.keep_output(self._session.ctx(), tool, content, call, free_tokens)

    def maybe_cache(self, tool: str, content: str) -> str:
        """The text to show, as `keep` gives it."""
        return self.keep(tool, content).text

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, /, *, name: str | None = None) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, *, name: str | None = None) -> Any:
        """A decorator for your own tools, sync or async. Big results are kept; small ones pass unchanged."""

        def keep_result(tool: str, content: str, call: str) -> Replacement:
            return self.keep(tool, content, call=call)

        def wrap(tool: Any) -> Any:
            return keeping_results(tool, keep_result, name or str(getattr(tool, "__name__", type(tool).__name__)))

        return wrap if function is None else wrap(function)

    def read(self, id: str, **how: Any) -> output_read.OutputPart:
        """A part of it: query=, lines=, match=, path=, rows=, chars= or bytes=; else all of it page by page."""
        return self._session.do(output_read.read_output, id=id, **how)

    def read_content(self, id: str) -> str:
        """All of it."""
        return output_read.full_text(self._session.ctx(), id)

    def expand(self, uri: str) -> str:
        """The text behind hold://<id>, hold://<id>#/json/pointer or hold://<id>#lines=a-b."""
        return output_read.expand(self._session.ctx(), uri)

    def expanded(self, arguments: Any) -> Any:
        """The arguments of a tool, with the text behind each of them that is a reference."""
        return output_read.expanded(self._session.ctx(), arguments)

    def list(self, *, limit: int = limits.NOTES_SHOWN) -> output_keep.OutputList:
        return self._session.do(output_keep.list_outputs, limit=limit)

    def delete(self, id: str) -> bool:
        """Whether it existed."""
        try:
            self._session.do(output_keep.delete_output, id=id)
        except errors.NotFound:
            return False
        return True

    def prune(self) -> Pruned:
        """Delete outputs that are old or exceed the limits, but none that is cited."""
        return self._session.do(output_keep.prune_outputs)

    def clear(self) -> int:
        """Delete every output of the project, and return how many there were."""
        return self._session.do(output_keep.clear_outputs)

    def stats(self) -> output_keep.Stats:
        """How many there are, how big they are, and what they saved."""
        return output_keep.stats(self._session.ctx())

    def savings(self) -> savings.SavingsReport:
        """What this session saved, by tool. `Limpet.savings` is for all sessions."""
        return self._session.do(savings.savings, session=self._session.id)


# --- the decorator ----------------------------------------------------------------------------------------------------

KeepResult = Callable[[str, str, str], Replacement]  # tool, content, call


def keeping_results(function: F, keep: KeepResult, name: str) -> F:
    """The function, sync or async, with its name, signature and docstring."""
    signature = _signature(function)

    def replaced(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        content = result_text(result)
        if content is None:
            return result
        try:
            replacement = keep(name, content, _call_text(name, signature, args, kwargs))
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


def result_text(result: Any) -> str | None:
    """A result as a model would see it; None when it has no JSON form."""
    if isinstance(result, str):
        return result
    if not isinstance(result, dict | list | tuple) and not is_typed(result):
        return None
    try:
        return json.dumps(result, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return None


def is_typed(value: Any) -> bool:
    """Whether it is a dataclass, or a model as pydantic makes them."""
    return not isinstance(value, type) and (is_dataclass(value) or callable(getattr(value, "model_dump", None)))


def _plain(value: Any) -> Any:
    """A value in a form that JSON has."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if is_typed(value):
        return value.model_dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date | UUID | Decimal | PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None  # some functions written in C have none


def _call_text(name: str, signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
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
