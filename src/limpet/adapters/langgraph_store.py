"""Limpet for LangGraph: a store whose items are the project's memory.

    graph = builder.compile(store=LimpetStore(limpet.open()))

What a graph puts there, other agents find with `search_memory` and `recall`; what they wrote by key, the graph finds
under the namespace `("memory",)`. A search with a query looks for its words, offline, and gives what fits.
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
    """A store of LangGraph over a project's memory. Changes of one batch are made all or none, and durable at once."""

    __slots__ = ("_hold",)

    def __init__(self, hold: Limpet) -> None:
        self._hold = hold

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        answers = [self._answer(op) for op in given]
        # The last change of an item counts, and questions are answered as it was before the batch.
        last = {(op.namespace, op.key): op for op in given if isinstance(op, PutOp)}
        items.put_items(self._ctx(), [Put(op.namespace, op.key, op.value) for op in last.values()])
        return answers

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _answer(self, op: Op) -> Result:
        match op:
            case PutOp():
                return None
            case GetOp():
                found = items.read_item(self._ctx(), op.namespace, op.key)
                return None if found is None else _item(found)
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _search(self, op: SearchOp) -> Result:
        found = items.list_items(self._ctx(), tuple(op.namespace_prefix), op.query or "")
        wanted = [(score, one) for score, one in found if fits(one.value, op.filter or {})]
        page = wanted[op.offset : op.offset + op.limit]
        return [SearchItem(**_fields(one), score=float(score) if op.query else None) for score, one in page]

    def _namespaces(self, op: ListNamespacesOp) -> Result:
        known = {one.path for _, one in items.list_items(self._ctx())}
        wanted = {path for path in known if all(_matches(path, one) for one in op.match_conditions or ())}
        cut = sorted({path if op.max_depth is None else path[: op.max_depth] for path in wanted})
        return cut[op.offset : op.offset + op.limit]

    def _ctx(self) -> Any:
        return self._hold.context(by="agent/langgraph")


def fits(value: Any, wanted: Any) -> bool:
    """Whether a value fits a filter: equal, or by `$eq`, `$ne`, `$gt`, `$gte`, `$lt` and `$lte`, also inside it."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, name, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(fits(_inside(value, name), other) for name, other in wanted.items())
    if isinstance(wanted, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same and all(map(fits, value, wanted))
    return bool(value == wanted)


def _inside(value: Mapping[str, Any], name: str) -> Any:
    """What stands under a name, or under a path of names with dots between them."""
    first, _, rest = name.partition(".")
    if name in value or not rest:
        return value.get(name)
    inner = value.get(first)
    return _inside(inner, rest) if isinstance(inner, Mapping) else None


def _compares(value: Any, operator: str, other: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return bool(value == other) == (operator == "$eq")
    tests = {"$gt": float.__gt__, "$gte": float.__ge__, "$lt": float.__lt__, "$lte": float.__le__}
    if operator not in tests:
        raise ValueError(f"Unsupported operator: {operator}")
    try:
        return bool(tests[operator](float(value), float(other)))
    except (TypeError, ValueError):
        return False  # what is no number is neither more nor less


def _matches(path: tuple[str, ...], condition: MatchCondition) -> bool:
    pattern = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(path) < len(pattern):
        return False
    part = path[: len(pattern)] if condition.match_type == "prefix" else path[len(path) - len(pattern) :]
    return all(wanted in ("*", name) for name, wanted in zip(part, pattern, strict=True))


def _item(found: items.Item) -> Item:
    return Item(**_fields(found))


def _fields(found: items.Item) -> dict[str, Any]:
    return {
        "value": dict(found.value),
        "key": found.name,
        "namespace": found.path,
        "created_at": moment(found.created_at),
        "updated_at": moment(found.updated_at),
    }
