"""LangGraph's store over memory, judged by LangGraph's own store and by what Limpet's other doors see of it."""

from __future__ import annotations

import asyncio
import datetime
import tempfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.config import get_store
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import GetOp, InvalidNamespaceError, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

import limpet
from limpet.adapters.langgraph_store import LimpetStore
from limpet.api import Limpet
from limpet.errors import BadInput

NAMES = st.sampled_from(["a", "B", "b", "c d", "ä/ö", "%", "*", "x" * 150, "line\nend", "~"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
VALUES = st.fixed_dictionaries(
    {"n": st.integers(0, 5) | st.none()},
    optional={"content": st.text("ab \n", max_size=5), "inner": st.fixed_dictionaries({"k": st.booleans()})},
) | st.fixed_dictionaries({"content": st.text("xyz ", max_size=5)})
FILTERS = st.none() | st.sampled_from(
    [
        {"n": 3},
        {"n": None},
        {"n": {"$ne": 2}},
        {"inner": {"k": True}},
        {"content": "a"},
        {"inner": {"k": {"$eq": False}}},
    ]
)
# The store of LangGraph that judges has no index and ignores a query; ours finds what fits. They agree without one.
BLANK = st.none() | st.sampled_from(["", " ", "\n\t", "\u200b"])
CONDITIONS = st.lists(
    st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), st.lists(NAMES, max_size=2).map(tuple)), max_size=2
)
OPS = st.one_of(
    st.builds(PutOp, PATHS, NAMES, VALUES | st.none()),
    st.builds(GetOp, PATHS, NAMES),
    st.builds(SearchOp, st.lists(NAMES, max_size=2).map(tuple), filter=FILTERS, limit=st.just(1_000), query=BLANK),
)
LISTINGS = st.builds(
    ListNamespacesOp, CONDITIONS.map(tuple), st.none() | st.integers(1, 3), st.just(1_000), st.integers(0, 2)
)
BATCHES = st.lists(OPS, max_size=4) | st.lists(LISTINGS, min_size=1, max_size=1)


def plain(answer: Any) -> Any:
    """An answer without times, and a search without an order: LangGraph's stores have each their own."""
    if isinstance(answer, Item):
        return (answer.namespace, answer.key, answer.value)
    if isinstance(answer, list) and answer and isinstance(answer[0], Item):
        return sorted(map(plain, answer), key=repr)
    return answer


@given(st.lists(BATCHES, max_size=8))
def test_it_answers_as_the_store_of_langgraph_does(batches: list[list[Any]]) -> None:
    judge = InMemoryStore()
    with tempfile.TemporaryDirectory() as folder, limpet.open(f"{folder}/x.db", folder=folder) as hold:
        store = LimpetStore(hold)
        for ops in batches:
            for path in [path for path, found in judge._data.items() if not found]:
                del judge._data[path]  # it lists every namespace it was ever asked about
            expected = list(map(plain, judge.batch(ops)))
            assert list(map(plain, store.batch(ops))) == expected


def test_numbers_are_compared_and_what_is_none_is_left_out(hold: Limpet) -> None:
    store = LimpetStore(hold)
    for name, value in {"one": 1, "two": 2, "word": "two", "none": None}.items():
        store.put(("numbers",), name, {"n": value})
    assert [item.key for item in store.search(("numbers",), filter={"n": {"$gte": 2}})] == ["two"]
    assert {item.key for item in store.search(("numbers",), filter={"n": {"$lt": 3, "$ne": 1}})} == {"two"}
    with pytest.raises(ValueError, match="Unsupported operator"):
        store.search(("numbers",), filter={"n": {"$or": 1}})


def test_a_search_gives_what_fits_and_says_how_well(hold: Limpet) -> None:
    store = LimpetStore(hold)
    store.put(("facts",), "sky", {"text": "The sky is blue at noon."})
    store.put(("facts",), "sea", {"text": "The sea is green."})
    (found,) = store.search(("facts",), query="blue sky")
    assert (found.key, found.namespace) == ("sky", ("facts",))
    assert found.score is not None
    assert found.score > 0
    assert store.search(("facts",), query="volcano") == []
    assert [item.key for item in store.search(("facts",), limit=1, offset=1)] == ["sky"], "the newest first"


@pytest.mark.parametrize("query", [None, "", " ", "\n", "\u200b", "\x00"])
@pytest.mark.parametrize("value", [{"content": ""}, {"content": " "}, {}, {"n": None}])
def test_a_search_without_a_query_finds_every_value(hold: Limpet, value: dict[str, Any], query: str | None) -> None:
    store = LimpetStore(hold)
    store.put(("empty",), "value", value)
    (item,) = store.search(("empty",), query=query)
    assert (item.value, item.score) == (value, None)
    assert store.search(("empty",), query="0") == [], "a query still gives what fits"


def test_memory_and_items_are_the_same(hold: Limpet) -> None:
    store = LimpetStore(hold)
    hold.memory.write("deploy-target", "The blue cluster.")
    hold.memory.write("api/limits", "Ten a second.")
    assert plain(store.get(("memory",), "deploy-target")) == (
        ("memory",),
        "deploy-target",
        {"content": "The blue cluster."},
    )
    assert plain(store.get(("api",), "limits")) == (("api",), "limits", {"content": "Ten a second."})
    store.put(("users", "42"), "prefs", {"theme": "dark", "font": "Fira"})
    store.put(("memory",), "oncall", {"content": "Ask Ada."})
    assert hold.memory.read("oncall").content == "Ask Ada."
    assert [found.key for found in hold.memory.search("Fira")] == ["users/42/prefs"]
    hold.memory.write("users/42/prefs", "Now likes light themes.")
    assert plain(store.get(("users", "42"), "prefs")) == (
        ("users", "42"),
        "prefs",
        {"content": "Now likes light themes."},
    )
    store.delete(("users", "42"), "prefs")
    assert store.get(("users", "42"), "prefs") is None
    assert "users/42/prefs" in {event.key for event in hold.history(kind="memory")}


def test_a_batch_is_made_all_or_none(hold: Limpet) -> None:
    store = LimpetStore(hold)
    ops = [PutOp(("a",), "one", {"n": 1}), PutOp(("memory",), "session-handoff", {"n": 2})]
    with pytest.raises(BadInput):
        store.batch(ops)
    assert store.search(()) == []
    with pytest.raises(InvalidNamespaceError):
        store.put((), "x", {"n": 1})


def test_a_graph_uses_it_sync_and_async(hold: Limpet) -> None:
    class State(TypedDict):
        said: str

    def note(state: State) -> State:
        store = get_store()
        store.put(("runs",), state["said"], {"said": state["said"]})
        return {"said": f"{len(store.search(('runs',)))} runs"}

    async def anote(state: State) -> State:
        store = get_store()
        await store.aput(("runs",), state["said"], {"said": state["said"]})
        return {"said": f"{len(await store.asearch(('runs',)))} runs"}

    for node, run in ((note, "one"), (anote, "two")):
        builder = StateGraph(State)
        builder.add_node("note", node)
        builder.add_edge(START, "note")
        builder.add_edge("note", END)
        graph = builder.compile(store=LimpetStore(hold))
        ended = graph.invoke({"said": run}) if node is note else asyncio.run(graph.ainvoke({"said": run}))
        assert ended["said"] == ("1 runs" if run == "one" else "2 runs")


@pytest.mark.parametrize(
    "value", [{"at": datetime.date(2026, 11, 18)}, {"set": {1}}, {"text": "half \ud800"}, {"content": "\ud800"}]
)
def test_a_value_that_is_no_json_is_refused_in_words(value: Any, hold: Limpet) -> None:
    store = LimpetStore(hold)
    with pytest.raises(BadInput, match="users/42/prefs"):
        store.batch([PutOp(("users",), "other", {"fine": 1}), PutOp(("users", "42"), "prefs", value)])
    assert store.search(("users",)) == [], "nothing was changed"
    with pytest.raises(BadInput):
        store.put(("users", "\ud800"), "prefs", {"fine": 1})
