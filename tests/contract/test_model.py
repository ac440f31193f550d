"""Random work on a store and on the contract as a program (naive.py): every answer must be the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from contract.kit import EVERYTHING, NOON, everything, nasty, new_scope, per_example, query_words
from contract.naive import NaiveStore
from limpet import errors
from limpet.model import MEMORY, MESSAGE, NOTE, NOTEPAD, SESSION, Draft, Entry, Scope, Stamp
from limpet.store import DELETE, Delete, EventQuery, Listing, Store, Words
from limpet.text.words import fold
from profiles import fewer_examples

Either = Store | NaiveStore
Step = Callable[[Either, Scope], Any]

TAGS = ("Bug", "bug", "BUG", "Straße", "STRASSE", "später", "x", "İ")
SESSIONS = ("", "one", "two", "Zwei")
USED = (NOTE, NOTEPAD, MEMORY, SESSION, MESSAGE)  # kinds the steps below write; a store treats all kinds alike


class Refused(Exception):
    """What a `decide` raises to refuse."""


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    folded: dict[str, str] = {}
    for tag in draw(st.lists(st.sampled_from(TAGS), max_size=3)):
        folded.setdefault(fold(tag), tag)
    return Draft(
        draw(st.one_of(st.sampled_from(("same", "other", "")), nasty)),
        draw(st.sampled_from(SESSIONS)),
        tuple(folded.values()),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from(({}, {"a": 1}, {"a": [1, None, "ü\x1f"], "b": {"c": True}}))),
    )


@st.composite
def edits(draw: st.DrawFn) -> Step:
    kind = draw(st.sampled_from((NOTE, NOTEPAD, MEMORY, SESSION)))
    key = draw(st.sampled_from(("k", "K", "key with spaces", "ключ", f"note_{NOON + 3}", "one")))
    minted = kind == NOTE and draw(st.booleans())
    how = draw(st.sampled_from(("draft", "draft", "draft", "gone", "keep", "refuse", "append", "flip")))
    wanted = draw(drafts())
    stamp = Stamp(
        draw(st.sampled_from(("agent/test", "human", "import"))),
        draw(st.sampled_from(("write", "undo"))),
        draw(st.sampled_from(SESSIONS)),
        NOON + draw(st.integers(-5, 5)),  # a clock that stands, runs and steps back
        draw(st.sampled_from(({}, {"of": 3}))),
    )

    def decide(before: Entry | None) -> Draft | Delete | None:
        if how == "refuse":
            raise Refused
        if how == "gone":
            return DELETE
        if how == "keep":
            return None
        if how in ("append", "flip") and before is not None:
            now = Draft(before.content, before.session, before.tags, before.done, before.pinned, before.extra)
            return now._replace(done=not now.done) if how == "flip" else now._replace(content=now.content + "+")
        return wanted

    return lambda store, scope: store.entries.edit(scope, kind, None if minted else key, decide, stamp)


@st.composite
def appends(draw: st.DrawFn) -> Step:
    """Messages: several at once, now and then with a key that is taken."""
    keys = draw(st.lists(st.sampled_from(("one#1", "one#2", "two#1", "two#2", "two#3")), max_size=3, unique=True))
    added = [(key, draw(drafts())._replace(session=key.partition("#")[0], tags=())) for key in keys]
    stamp = Stamp("agent/test", "append", draw(st.sampled_from(("one", "two"))), NOON + draw(st.integers(-5, 5)))
    return lambda store, scope: store.entries.append(scope, MESSAGE, added, stamp)


@st.composite
def restores(draw: st.DrawFn) -> Step:
    """What undo does: make an entry again what it was before one of its changes."""
    back = draw(st.integers(0, 5))
    stamp = Stamp("human", "undo", draw(st.sampled_from(SESSIONS)), NOON)

    def step(store: Either, scope: Scope) -> Any:
        events = store.entries.events(scope, EventQuery(limit=back + 1))
        if not events:
            return None
        was = events[-1].before
        wanted = DELETE if was is None else Draft(was.content, was.session, was.tags, was.done, was.pinned, was.extra)
        return store.entries.edit(scope, events[-1].kind, events[-1].key, lambda before: wanted, stamp)

    return step


@st.composite
def listings(draw: st.DrawFn) -> Listing:
    return Listing(
        (draw(st.sampled_from(USED)),),  # of several kinds two may have the same key and time, and no order
        draw(st.sampled_from((None, *SESSIONS))),
        tuple(fold(tag) for tag in draw(st.lists(st.sampled_from(TAGS), max_size=2))),
        draw(st.booleans()),
        draw(st.sampled_from((1, 2, 1_000))),
    )


@st.composite
def reads(draw: st.DrawFn) -> Step:
    query = draw(listings())
    needle = draw(st.one_of(st.sampled_from(("a", "sam", "OTHER", "+")), nasty))
    events = EventQuery(
        draw(st.sampled_from((None, NOTE))),
        draw(st.sampled_from((None, "k"))),
        draw(st.sampled_from((None, "one"))),
        draw(st.sampled_from((None, "undo"))),
        draw(st.sampled_from((None, NOON))),
        draw(st.sampled_from((None, NOON + 3))),
        draw(st.sampled_from((None, 4))),
        draw(st.sampled_from((1, 50))),
    )

    def step(store: Either, scope: Scope) -> Any:
        return (
            store.entries.list(scope, query),
            store.entries.containing(scope, query, needle),
            store.entries.events(scope, events),
            store.entries.event(scope, 3),
            [store.entries.tags(scope, kind, session) for kind in USED for session in SESSIONS],
            [store.entries.tally(scope, kind, session) for kind in USED for session in SESSIONS],
        )

    return step


steps = st.lists(st.one_of(edits(), edits(), edits(), appends(), restores(), reads()), min_size=1, max_size=25)


def answer(step: Step, store: Either, scope: Scope) -> Any:
    try:
        return step(store, scope)
    except Refused:
        return "refused"
    except errors.Conflict as problem:
        return problem.message


@given(steps, nasty)
@settings(per_example, max_examples=fewer_examples(2))
def test_every_answer_is_that_of_the_naive_store(store: Store, work: list[Step], asked: str) -> None:
    scope, naive = new_scope(), NaiveStore()
    for step in work:
        assert answer(step, store, scope) == answer(step, naive, scope)
    whole = Listing(EVERYTHING, include_done=True)
    assert sorted(store.entries.list(scope, whole).entries) == sorted(naive.list(scope, whole).entries)
    assert store.entries.events(scope, EventQuery(limit=1_000)) == naive.events(scope, EventQuery(limit=1_000))
    assert everything(store, scope) == list(naive.dump(scope))
    assert [project for project in store.projects(scope.tenant) if project == scope.project] == list(
        naive.projects(scope.tenant)
    )
    for every in (True, False):
        words = Words(tuple((word,) for word in query_words(f"same {asked}")), every)
        assert {entry.key for entry in store.entries.matching(scope, whole, words)} == naive.matching(
            scope, whole, words
        )


@given(steps)
@settings(per_example, max_examples=fewer_examples(3))
def test_both_stores_keep_the_same(both: tuple[Store, Store], work: list[Step]) -> None:
    scope = new_scope()
    one, other = both
    for step in work:
        assert answer(step, one, scope) == answer(step, other, scope)
    assert everything(one, scope) == everything(other, scope)
