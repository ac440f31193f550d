"""Answers to a model's calls: what a tool gives as text, and what goes wrong as a result that the model can act on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from limpet import errors
from limpet.catalogue import table
from limpet.catalogue.operation import Context
from limpet.outputs import outputs
from limpet.window.messages import Call, Result, Text

Handler = Callable[[Mapping[str, Any]], Any]


def answered(call: Call, do: Callable[[dict[str, Any]], str]) -> Result:
    """The result of a call, whatever becomes of it: the pair stays whole."""
    try:
        arguments = json.loads(call.arguments or "{}")
        if not isinstance(arguments, dict):
            raise errors.wrong_type(call.name, "arguments", arguments, "an object")
        return Result(call.id, (Text(do(arguments)),))
    except errors.LimpetError as problem:
        return Result(call.id, (Text(problem.message),), error=True)
    except Exception as problem:  # noqa: BLE001 - other people's tools: whatever they raise becomes a result
        return Result(call.id, (Text(f"{type(problem).__name__}: {problem}"),), error=True)


def given_to(ctx: Context, call: Call, handlers: Mapping[str, Handler]) -> Result:
    """The result of a call by the handler of its name. Big results of tools that are not ours become references."""

    def do(arguments: dict[str, Any]) -> str:
        if call.name not in handlers:
            raise errors.unknown_operation(call.name, f"Tools that exist: {', '.join(handlers)}.")
        text = as_text(handlers[call.name](arguments))
        return text if call.name in table.OPERATIONS else outputs.keep_output(ctx, call.name, text, call.arguments).text

    return answered(call, do)


def as_text(answer: Any) -> str:
    """What a handler gave, as a model is shown it."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str)
