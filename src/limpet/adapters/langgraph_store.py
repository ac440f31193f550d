"""Limpet for LangGraph: a store whose items are the project's memory.

    graph = builder.compile(store=LimpetStore(limpet.open()))

Other agents find the items of a graph with `search_memory` and `recall`; the graph finds their memory under the
namespace `("memory",)`. A search with a query matches words, offline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from limpet import errors
from limpet.api import Limpet
from limpet.memory import items
from limpet.memory.items import Put
from limpet.model import moment

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
    )
except ImportError as problem:
    raise errors.not_installed("the adapter for LangGraph", "langchain") from problem


class LimpetStore(BaseStore):
    """A LangGraph store over a project's memory. The changes of a batch are one durable transaction."""

    __slots__ = ("_hold",)

    def __init__(self, hold: Limpet) -> None:
        self._hold = hold

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        operations = list(ops)
        answers = [self._answer(op) for op in operations]
        # The last change of an item counts; reads see the state before the batch.
        last = {(op.namespace, op.key): op for op in operations if isinstance(op, PutOp)}
        items.put_items(self._ctx(), [Put(op.namespace, op.key, op.value) for op in last.values()])
        return answers

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _answer(self, op: Op) -> Result:
        match op:
            case PutOp():
                return None
            case GetOp():
                item = items.read_item(self._ctx(), op.namespace, op.key)
                return None if item is None else Item(**_fields(item))
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _search(self, op: SearchOp) -> Result:
        scored = items.list_items(self._ctx(), tuple(op.namespace_prefix), op.query or "")
        matches = [(score, item) for score, item in scored if fits(item.value, op.filter or {})]
        page = matches[op.offset : op.offset + op.limit]
        return [SearchItem(**_fields(item), score=float(score) if score else None) for score, item in page]

    def _namespaces(self, op: ListNamespacesOp) -> Result:
        paths = {item.path for _, item in items.list_items(self._ctx())}
        conditions = op.match_conditions or ()
        matches = {path for path in paths if all(_matches(path, condition) for condition in conditions)}
        cut = sorted({path if op.max_depth is None else path[: op.max_depth] for path in matches})
        return cut[op.offset : op.offset + op.limit]

    def _ctx(self) -> Any:
        return self._hold.context(by="agent/langgraph")


def fits(value: Any, filter: Any) -> bool:
    """Whether a value passes a filter: equal, or by `$eq`, `$ne`, `$gt`, `$gte`, `$lt` and `$lte`, also nested."""
    if isinstance(filter, Mapping):
        if any(name.startswith("$") for name in filter):
            return all(_compares(value, name, operand) for name, operand in filter.items())
        return isinstance(value, Mapping) and all(fits(_inside(value, name), inner) for name, inner in filter.items())
    if isinstance(filter, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(filter)
        return same and all(map(fits, value, filter))
    return bool(value == filter)


def _inside(value: Mapping[str, Any], name: str) -> Any:
    """The value under a name, or under a dotted path of names."""
    first, _, rest = name.partition(".")
    if name in value or not rest:
        return value.get(name)
    inner = value.get(first)
    return _inside(inner, rest) if isinstance(inner, Mapping) else None


def _compares(value: Any, operator: str, operand: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return bool(value == operand) == (operator == "$eq")
    tests = {"$gt": float.__gt__, "$gte": float.__ge__, "$lt": float.__lt__, "$lte": float.__le__}
    if operator not in tests:
        raise ValueError(f"Unsupported operator: {operator}")
    try:
        return bool(tests[operator](float(value), float(operand)))
    except (TypeError, ValueError):
        return False  # values that are not numbers do not compare


def _matches(path: tuple[str, ...], condition: MatchCondition) -> bool:
    pattern = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(path) < len(pattern):
        return False
    part = path[: len(pattern)] if condition.match_type == "prefix" else path[len(path) - len(pattern) :]
    return all(expected in ("*", name) for name, expected in zip(part, pattern, strict=True))


def _fields(item: items.MemoryItem) -> dict[str, Any]:
    return {
        "value": dict(item.value),
        "key": item.name,
        "namespace": item.path,
        "created_at": moment(item.created_at),
        "updated_at": moment(item.updated_at),
    }
