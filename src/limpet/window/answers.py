"""Results of a model's tool calls: answers as text, and errors as results that the model can act on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from limpet import errors
from limpet.catalogue import table
from limpet.catalogue.operation import Context
from limpet.outputs import keep as output_keep
from limpet.window.messages import Call, Result, Text

Handler = Callable[[Mapping[str, Any]], Any]


def answer_call(call: Call, run: Callable[[dict[str, Any]], str]) -> Result:
    """The result of a call, also if it fails, so that every call has a result."""
    try:
        arguments = json.loads(call.arguments or "{}")
        if not isinstance(arguments, dict):
            raise errors.wrong_type(call.name, "arguments", arguments, "an object")
        return Result(call.id, (Text(run(arguments)),))
    except errors.LimpetError as problem:
        return Result(call.id, (Text(problem.message),), error=True)
    except Exception as problem:  # noqa: BLE001 - the caller's own tools: any exception becomes a result
        return Result(call.id, (Text(f"{type(problem).__name__}: {problem}"),), error=True)


def run_handler(ctx: Context, call: Call, handlers: Mapping[str, Handler]) -> Result:
    """The result of a call by the handler of its name. Big results of the caller's tools become references."""

    def run(arguments: dict[str, Any]) -> str:
        if call.name not in handlers:
            raise errors.unknown_operation(call.name, f"Tools that exist: {', '.join(handlers)}.")
        text = as_text(handlers[call.name](arguments))
        return (
            text
            if call.name in table.OPERATIONS
            else output_keep.keep_output(ctx, call.name, text, call.arguments).text
        )

    return answer_call(call, run)


def as_text(answer: Any) -> str:
    """What a handler returned, as the model reads it."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str)
