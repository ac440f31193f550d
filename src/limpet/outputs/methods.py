"""The methods of `session.outputs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from limpet import errors, limits
from limpet.catalogue.operation import Caller
from limpet.outputs import decorator, savings
from limpet.outputs import keep as output_keep
from limpet.outputs import read as output_read
from limpet.store import Pruned

F = TypeVar("F", bound=Callable[..., Any])


class SessionOutputs:
    """`session.outputs`."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def keep(
        self, tool: str, content: str, *, call: str = "", free_tokens: int | None = None
    ) -> output_keep.Replacement:
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

        def keep_result(tool: str, content: str, call: str) -> output_keep.Replacement:
            return self.keep(tool, content, call=call)

        def wrap(tool: Any) -> Any:
            return decorator.watched(tool, keep_result, name or str(getattr(tool, "__name__", type(tool).__name__)))

        return wrap if function is None else wrap(function)

    def read(self, id: str, **how: Any) -> output_read.OutputPart:
        """A part of it: query=, lines=, match=, path=, rows=, chars= or bytes=; else all of it page by page."""
        return self._session.do(output_read.scratchpad_read, id=id, **how)

    def read_content(self, id: str) -> str:
        """All of it."""
        return output_read.full_text(self._session.ctx(), id)

    def expand(self, uri: str) -> str:
        """The text behind hold://<id>, hold://<id>#/json/pointer or hold://<id>#lines=a-b."""
        return output_read.expand(self._session.ctx(), uri)

    def list(self, *, limit: int = limits.NOTES_SHOWN) -> output_keep.OutputList:
        return self._session.do(output_keep.scratchpad_list, limit=limit)

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
