"""Recall by meaning: what is said in other words is found, on both stores, where the extra is installed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.api import Limpet
from limpet.model import Scope
from limpet.recall import embeddings, static_model
from limpet.recall.embeddings import HINT, EmbeddingIndex, Embeddings, Models, catch_up
from limpet.recall.vector_table import VectorTable, packed, unit, unpacked
from operations.conftest import Clock, Opener
from operations.test_recall import keys

BYTES = static_model.SIZE // 2
PUPPY = "The puppy chewed the sofa again"
NOTES = (
    *("Casts break LL(1), so the lexer got a look-ahead of two", "The release script needs GNU tar", PUPPY),
    *("Customers are billed in euros, never in dollars", "Physicians recommend sleeping eight hours"),
)
ASKED = {
    "my dog destroyed the couch": PUPPY,
    "which currency do clients pay in": NOTES[3],
    "a doctor's advice about rest": NOTES[4],
}


@pytest.fixture(scope="module")
def model() -> static_model.StaticModel:
    found = static_model.load()
    assert found is not None, "the extra limpet[semantic] belongs to the environment of the tests"
    return found


def laden(hold: Limpet) -> Limpet:
    for text in NOTES:
        hold.session("one").notes.add(text)
    return hold


def test_other_words_for_the_same_find_it_and_other_things_do_not(hold: Limpet) -> None:
    laden(hold)
    for query, text in ASKED.items():
        hits = hold.recall(query).hits
        assert [hit.snippet for hit in hits] == [text], query
        assert hits[0].why == ("about the same",)
    assert keys(hold, "how is bread baked") == []
    assert "words: lexer" in hold.recall("lexer").hits[0].why
    assert hold.recall("my dog destroyed the couch").hint == ""


def test_filters_hold_for_what_is_found_by_meaning(hold: Limpet, clock: Clock) -> None:
    laden(hold)
    assert keys(hold, "my dog destroyed the couch", session="two") == []
    assert keys(hold, "my dog destroyed the couch", kinds=["memory"]) == []
    assert len(keys(hold, "my dog destroyed the couch", session="one")) == 1


def test_what_is_changed_or_deleted_is_found_as_it_is_now(hold: Limpet) -> None:
    note = hold.session("one").notes.add(PUPPY)
    assert keys(hold, "my dog destroyed the couch") == [note.id]
    hold.session("one").notes.update(note.id, content="Tomatoes need more water in July")
    assert keys(hold, "my dog destroyed the couch") == []
    assert keys(hold, "watering vegetables in summer") == [note.id]
    hold.session("one").notes.delete(note.id)
    assert keys(hold, "watering vegetables in summer") == []
    hold.undo()
    assert keys(hold, "watering vegetables in summer") == [note.id]


def test_what_another_process_wrote_is_learned(opened: Opener) -> None:
    first, second = opened(), opened()
    assert keys(first, "my dog destroyed the couch") == []
    key = second.session("one").notes.add(PUPPY).id
    assert keys(first, "my dog destroyed the couch") == [key]
    assert keys(second, "my dog destroyed the couch") == [key]


def test_it_can_be_switched_off(hold: Limpet) -> None:
    laden(hold)
    hold._bounds = hold._bounds._replace(recall=hold._bounds.recall._replace(meaning=False))
    assert keys(hold, "my dog destroyed the couch") == []
    assert hold.recall("lexer").hint == ""


def test_without_the_extra_words_alone_are_searched_which_is_said_once(hold: Limpet) -> None:
    laden(hold)
    hold._embeddings = Embeddings(Models)
    first = hold.recall("my dog destroyed the couch")
    assert (first.hits, first.hint) == ((), HINT)
    assert hold.recall("lexer").hint == ""
    hold._embeddings = Embeddings(Models)
    assert hold.call("recall", {"query": "lexer"})["hint"] == HINT
    assert "hint" not in hold.call("recall", {"query": "lexer"})


def test_one_question_makes_only_so_many_vectors_the_newest_first(
    hold: Limpet, model: static_model.StaticModel
) -> None:
    laden(hold)
    index = EmbeddingIndex(model, VectorTable)
    assert catch_up(index, hold.store, hold.scope, most=2) == 2
    left = [one.text for one in hold.store.vectors.missing(hold.scope, model.name, 10)]
    assert left == [*reversed(NOTES[:3])]
    assert catch_up(index, hold.store, hold.scope) == 3
    assert catch_up(index, hold.store, hold.scope) == 0


def test_a_text_with_words_has_a_vector_that_is_kept_nearly_whole(model: static_model.StaticModel) -> None:
    for text in ("the of and", "日本語のメモ", "x" * 30_000, "Ünïcode straße", "ﷺ"):
        (found,) = unpacked(model.stored([text])[0], static_model.SIZE).astype(np.float32)
        assert found @ model.vector(static_model.content_words(text)) > 0.99 * np.linalg.norm(found)
    assert set(model.stored(["", " ", "\x00", "🙂" * 50])) == {b""}
    assert not model.vector([]).any()


def test_a_word_without_end_is_taken_in_stretches(model: static_model.StaticModel) -> None:
    stretch = "lighthouse" * 6
    assert len(stretch) < static_model.LONG_WORD
    joined = model.parts_of("x" * static_model.LONG_WORD + stretch)
    assert joined == model.parts_of("x" * static_model.LONG_WORD) + model.parts_of(stretch)


def test_words_alike_are_near(model: static_model.StaticModel) -> None:
    dog, puppy, tax = model.vectors(["dog", "puppy", "tax"])
    assert dog @ puppy > 0.4 > 2 * (dog @ tax)
    assert np.allclose(model.vectors(["dog"])[0], model.vector(["dog"]))


@given(
    st.lists(
        st.tuples(
            st.integers(1, 40), st.integers(1, 3).flatmap(lambda n: st.binary(min_size=n * BYTES, max_size=n * BYTES))
        ),
        max_size=60,
    )
)
def test_a_table_holds_the_newest_vectors_of_each_text(arrived: list[tuple[int, bytes]]) -> None:
    table, half = VectorTable(static_model.SIZE), len(arrived) // 2
    numbered = [(number, doc, body) for number, (doc, body) in enumerate(arrived, 1)]
    table.load(numbered[:half])
    table.load(numbered[half:])
    table.load([])
    assert table.last == len(arrived)
    vector = unit(np.arange(static_model.SIZE, dtype=np.float32) - 100)
    now = {doc: (unit(unpacked(body, static_model.SIZE).astype(np.float32)) @ vector).max() for doc, body in arrived}
    near = table.nearest(vector, 100)
    assert near.keys() == now.keys()
    assert all(abs(near[doc] - cosine) < 1e-4 for doc, cosine in now.items())
    assert table.cosines(vector, (*now, 99)).keys() == now.keys()
    table.forget([*now][:1])
    assert table.cosines(vector, now).keys() == set([*now][1:])
    assert table.nearest(vector, 100).keys() == set([*now][1:])


def test_the_nearest_of_many_are_found_by_their_signs(model: static_model.StaticModel) -> None:
    dice = np.random.default_rng(1)
    table = VectorTable(static_model.SIZE)
    table.load((at + 1, at, dice.bytes(BYTES)) for at in range(5_000))
    table.load([(9_999, 4_321, model.stored([PUPPY])[0])])
    assert next(iter(table.nearest(model.vector(["puppy", "sofa"]), 10))) == 4_321
    assert len(table.nearest(model.vector(["puppy"]), 10)) == 10


def test_vectors_that_share_a_direction_are_told_apart_by_their_signs() -> None:
    """Five hundred subjects with ten texts each, and all of them much the same."""
    dice, size = np.random.default_rng(1), static_model.SIZE
    subjects = np.repeat(dice.normal(0, 1, (500, size)), 10, axis=0)
    vectors = unit(subjects + dice.normal(0, 0.7, (5_000, size)) + 12 * dice.normal(0, 1, size))
    table = VectorTable(size)
    for first in range(0, 5_000, 500):  # the mean is taken anew as the table grows
        table.load((first + at + 1, first + at, packed(vectors[first + at])) for at in range(500))
    for first in (0, 700, 4_990):
        near = table.nearest(vectors[first].astype(np.float32), 10)
        assert near.keys() == set(range(first, first + 10))


@pytest.mark.parametrize(("limit", "most"), [("VECTORS_KEPT", 5), ("TABLES_KEPT", 2)])
def test_vectors_stay_in_memory_of_the_projects_that_were_asked_last(
    model: static_model.StaticModel, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(embeddings, limit, most)
    index = EmbeddingIndex(model, VectorTable)
    first, second, third = (Scope("t", name) for name in "abc")

    def asked(scope: Scope) -> VectorTable:
        table = index.table(scope)
        if not table.vectors:
            table.load((number, number, b"\x11" * BYTES) for number in range(1, 4))
        return table

    early, late = asked(first), asked(second)
    assert asked(first) is early
    asked(third)
    assert asked(first) is early
    assert asked(second) is not late
