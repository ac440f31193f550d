"""Vectors in stores: they come after the text, go with it, and belong to one model."""

from __future__ import annotations

import pytest

from contract.kit import NOON, always, delete, key_of, new_scope, note, put, raw, stamp
from limpet.model import MESSAGE, NOTE, Draft, Scope
from limpet.store import DELETE, Store, Unembedded
from limpet.wiring import choose_store

MODEL, OTHER = "a model/1", "a model/2"
BODY = bytes(range(256))


def waiting(store: Store, scope: Scope, model: str = MODEL, most: int = 100) -> list[str]:
    return [one.text for one in store.vectors.missing(scope, model, most)]


def embed(store: Store, scope: Scope, model: str = MODEL, most: int = 100) -> int:
    """Give a vector to what waits; its first byte tells the text."""
    texts = store.vectors.missing(scope, model, most)
    return store.vectors.keep(scope, model, [(one, made(one.text)) for one in texts])


def made(text: str) -> bytes:
    return text.encode()[:1] + BODY[1:]


def bodies(store: Store, scope: Scope) -> list[bytes]:
    return [bytes(one.body) for one in store.vectors.after(scope, MODEL, 0)]


def test_a_new_text_waits_the_newest_first_and_then_has_a_vector(store: Store, scope: Scope) -> None:
    for text in ("one", "two", "three"):
        put(store, scope, None, text, tags=("tagged",))
    assert waiting(store, scope, most=2) == ["three\ntagged", "two\ntagged"]
    assert embed(store, scope, most=2) == 2
    assert waiting(store, scope) == ["one\ntagged"]
    first = store.vectors.after(scope, MODEL, 0)
    assert embed(store, scope) == 1
    assert waiting(store, scope) == []
    (last,) = store.vectors.after(scope, MODEL, max(one.number for one in first))
    assert bytes(last.body) == made("one")
    docs = [one.doc for one in store.vectors.after(scope, MODEL, 0)]
    assert [entry.content for entry in store.entries.texts(scope, docs).values()] != []
    assert len(store.entries.texts(scope, docs)) == 3


def test_every_way_to_write_leaves_the_text_waiting(store: Store, scope: Scope) -> None:
    store.load(scope, [note("note_1", "loaded", NOON)], [])
    put(store, scope, None, "put")
    store.entries.append(scope, MESSAGE, [("m1", Draft("appended", "s"))], stamp())
    store.entries.edit_all(scope, [(NOTE, "all", always(Draft("edited", "s")))], stamp())
    assert sorted(waiting(store, scope)) == ["appended", "edited", "loaded", "put"]


def test_a_text_that_goes_takes_its_vector_along(store: Store, scope: Scope, store_url: str) -> None:
    gone, purged, kept = (key_of(put(store, scope, None, text)) for text in ("gone", "purged", "kept"))
    embed(store, scope)
    delete(store, scope, gone)
    store.entries.edit_all(scope, [(NOTE, purged, always(DELETE))], stamp())
    assert bodies(store, scope) == [made("kept")]
    never = key_of(put(store, scope, None, "never embedded"))
    delete(store, scope, never)
    assert waiting(store, scope) == []
    assert raw(store_url, "SELECT count(*) FROM vectors_waiting WHERE project = ?", (scope.project,)) == [(0,)]
    put(store, scope, kept, "")
    assert bodies(store, scope) == []


def test_a_changed_text_waits_again_and_an_old_vector_is_not_kept_for_it(store: Store, scope: Scope) -> None:
    key = key_of(put(store, scope, None, "before"))
    embed(store, scope)
    put(store, scope, key, "before", pinned=True)
    assert bodies(store, scope) == [made("before")], "what does not change the text keeps its vector"
    put(store, scope, key, "after")
    assert bodies(store, scope) == []
    (old,) = store.vectors.missing(scope, MODEL, 10)
    put(store, scope, key, "now")
    assert store.vectors.keep(scope, MODEL, [(old, made(old.text))]) == 0
    assert waiting(store, scope) == ["now"]
    assert embed(store, scope) == 1
    assert bodies(store, scope) == [made("now")]


def test_a_vector_of_a_text_that_is_gone_is_not_kept(store: Store, scope: Scope) -> None:
    key = key_of(put(store, scope, None, "short-lived"))
    texts = store.vectors.missing(scope, MODEL, 10)
    delete(store, scope, key)
    assert store.vectors.keep(scope, MODEL, [(one, made(one.text)) for one in texts]) == 0
    assert store.vectors.keep(scope, MODEL, [(Unembedded(10**9, b"", "nobody"), BODY)]) == 0
    assert bodies(store, scope) == []


def test_a_text_without_words_leaves_no_vector_behind_for_who_gets_its_number(store: Store, scope: Scope) -> None:
    key = key_of(put(store, scope, None, "\n"))
    assert embed(store, scope) == 1, "a store that begins with a model takes all that is not empty"
    delete(store, scope, key)
    put(store, scope, None, "another")
    assert embed(store, scope) == 1
    assert bodies(store, scope) == [made("another")]


def test_another_model_begins_anew(store: Store, scope: Scope) -> None:
    for text in ("one", "two"):
        put(store, scope, None, text)
    embed(store, scope)
    mine = store.vectors.missing(scope, MODEL, 10)
    assert mine == ()
    assert waiting(store, scope, OTHER) == ["two", "one"]
    assert bodies(store, scope) == []
    put(store, scope, None, "three")
    texts = store.vectors.missing(scope, OTHER, 10)
    assert store.vectors.keep(scope, MODEL, [(one, made(one.text)) for one in texts]) == 0, "not of this model any more"
    assert embed(store, scope, OTHER) == 3
    assert waiting(store, scope, OTHER) == []


def test_projects_do_not_share_vectors(store: Store, scope: Scope) -> None:
    other = new_scope()
    put(store, scope, None, "mine")
    put(store, other, None, "yours")
    assert embed(store, scope) == 1
    assert bodies(store, scope) == [made("mine")]
    assert waiting(store, other) == ["yours"]
    embed(store, other)
    embed(store, other, OTHER)
    assert bodies(store, scope) == [made("mine")]


def test_a_writer_that_ends_before_the_vector_is_made_loses_nothing(store_url: str, scope: Scope) -> None:
    first = choose_store(store_url)
    put(first, scope, None, "written, then the process ended")
    texts = first.vectors.missing(scope, MODEL, 10)
    assert len(texts) == 1  # and now it is gone, with the vector in its hands
    first.close()
    second = choose_store(store_url)
    assert waiting(second, scope) == ["written, then the process ended"]
    assert embed(second, scope) == 1
    assert bodies(second, scope) == [made("w")]
    assert all(finding.ok for finding in second.check())
    second.close()


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_scrubbed_file_holds_no_vector_of_what_was_purged(store: Store, scope: Scope, store_url: str) -> None:
    key = key_of(put(store, scope, None, "secret"))
    put(store, scope, None, "open")
    embed(store, scope)
    delete(store, scope, key)
    assert store.scrub()
    with open(store_url, "rb") as file:
        body = file.read()
    assert made("open") in body
    assert made("secret") not in body


def test_the_state_says_whose_vectors_there_are_and_what_waits(store: Store, scope: Scope) -> None:
    assert store.vectors.state(scope) == ("", 0, ())
    keys = [key_of(put(store, scope, None, text)) for text in ("one", "two", "three")]
    state = store.vectors.state(scope)
    assert (state.model, state.waiting, len(state.docs)) == ("", 3, 3), "and to ask changes nothing"
    assert embed(store, scope, most=2) == 2
    (oldest,) = store.vectors.missing(scope, MODEL, 10)
    assert store.vectors.state(scope) == (MODEL, 1, (oldest.doc,))
    assert store.vectors.count(scope) == 2
    put(store, scope, keys[-1], "three, changed")
    (changed, _) = store.vectors.missing(scope, MODEL, 10)
    assert store.vectors.state(scope) == (MODEL, 2, (changed.doc, oldest.doc)), "the newest first"
    assert store.vectors.count(scope) == 1
    assert store.vectors.state(new_scope()) == ("", 0, ())


def test_vectors_are_shown_to_their_own_model_alone(store: Store, scope: Scope) -> None:
    put(store, scope, None, "one")
    embed(store, scope)
    assert store.vectors.after(scope, OTHER, 0) == []
    embed(store, scope, OTHER)
    assert store.vectors.after(scope, MODEL, 0) == []
    assert [bytes(vector.body) for vector in store.vectors.after(scope, OTHER, 0)] == [made("one")]
