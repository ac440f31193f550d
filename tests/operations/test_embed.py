"""Recall by a transformer, on both stores: its vectors come after the writes, and an answer says which are missing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from limpet.api import Limpet
from limpet.recall import embeddings
from limpet.recall.embeddings import EmbeddingIndex, Embeddings, catch_up
from limpet.settings import RecallRules
from limpet.wiring import choose_embeddings
from operations.conftest import Opener
from operations.test_meaning import ASKED, NOTES, PUPPY, laden
from operations.test_recall import keys
from tiny_model import tiny_model

COUCH = "my dog destroyed the couch"
STATIC = "wordllama-256"


def use(hold: Limpet, model: str = "transformer", path: Path | str = "") -> EmbeddingIndex:
    """Let a process have these settings; the model that it should make vectors with."""
    rules = RecallRules(model=model, model_path=str(path))
    hold._embeddings = Embeddings(lambda: choose_embeddings(rules))
    best = hold._embeddings.models().best()
    assert best is not None, "the extras of recall belong to the environment of the tests"
    return best


def index(hold: Limpet, best: EmbeddingIndex) -> int:
    return catch_up(best, hold.store, hold.scope)


def model_of(hold: Limpet) -> str:
    return embeddings.label_of(hold.store.vectors.state(hold.scope).model)


def test_what_is_embedded_is_found_by_meaning_and_what_is_not_is_told(hold: Limpet) -> None:
    best = use(laden(hold))
    before = hold.call("recall", {"query": "lexer"})
    assert before["hits"][0]["text"].startswith("Casts")
    assert before["not_embedded"]["texts"] == len(NOTES)
    assert "limpet index" in before["not_embedded"]["why"]
    assert index(hold, best) == len(NOTES)
    assert index(hold, best) == 0, "doing it again does nothing"
    for query, text in ASKED.items():
        assert hold.recall(query).hits[0].snippet == text
    assert keys(hold, "how is bread baked") == []
    assert "not_embedded" not in hold.call("recall", {"query": "lexer"})
    hold.session("one").notes.add("One more")
    assert hold.recall("lexer").not_embedded == 1


def test_a_changed_text_is_not_found_by_its_old_vector(hold: Limpet) -> None:
    best = use(hold)
    note = hold.session("one").notes.add(PUPPY)
    index(hold, best)
    assert keys(hold, COUCH) == [note.id]
    hold.session("one").notes.update(note.id, content="Tomatoes need more water in July")
    assert keys(hold, COUCH) == []
    assert hold.recall(COUCH).not_embedded == 1
    index(hold, best)
    assert keys(hold, "watering vegetables in summer") == [note.id]


def test_a_project_goes_over_to_the_transformer_when_it_is_indexed(hold: Limpet, opened: Opener) -> None:
    best = use(laden(hold), "auto")
    assert hold.recall(COUCH).not_embedded == 0
    assert model_of(hold) == STATIC
    assert index(hold, best) == len(NOTES)
    assert model_of(hold) == best.model.label
    other = opened()
    assert other.recall(COUCH).hits[0].snippet == PUPPY
    assert model_of(other) == best.model.label, "questions leave it at that"


def test_static_vectors_serve_until_the_transformer_has_made_its_own(hold: Limpet) -> None:
    use(laden(hold), "static")
    hold.recall(COUCH)
    best = use(hold)
    answer = hold.recall(COUCH)
    assert answer.hits[0].snippet == PUPPY
    assert answer.not_embedded == len(NOTES)
    assert model_of(hold) == STATIC
    index(hold, best)
    assert hold.recall(COUCH).not_embedded == 0


def test_a_static_model_does_not_replace_what_took_long_to_make(hold: Limpet, opened: Opener) -> None:
    slow = use(laden(hold))
    index(hold, slow)
    other = opened()
    quick = use(other, "static")
    answer = other.recall(COUCH)
    assert (answer.hits, answer.not_embedded) == ((), len(NOTES)), "and it compares with no vector of another model"
    assert model_of(other) == slow.model.label
    assert index(other, quick) == len(NOTES), "unless it is asked to"
    assert other.recall(COUCH).hits[0].snippet == PUPPY
    assert hold.recall(COUCH).not_embedded == len(NOTES)


def test_vectors_of_two_models_are_not_compared(hold: Limpet, opened: Opener, tmp_path: Path) -> None:
    """Three vectors of 128 bytes are as long as two of 192."""
    one, other = laden(hold), opened()
    first, second = (use(way, path=tiny_model(tmp_path / str(seed), seed)) for seed, way in enumerate((one, other)))
    index(one, first)
    one.recall("lexer")
    index(other, second)
    assert one.store.vectors.after(one.scope, first.model.name, 0) == []
    assert one.recall("lexer").not_embedded == len(NOTES)


def test_a_damaged_model_is_told_once_and_words_are_searched(hold: Limpet, tmp_path: Path) -> None:
    path = tiny_model(tmp_path / "tiny")
    path.write_bytes(path.read_bytes()[:-9])
    hold._embeddings = Embeddings(lambda: choose_embeddings(RecallRules(model="transformer", model_path=str(path))))
    answer = laden(hold).recall("lexer")
    assert len(answer.hits) == 1
    assert "is not used: it has not the form of a model" in answer.hint
    assert hold.recall("lexer").hint == ""


def test_a_model_that_is_damaged_after_it_was_used_is_told(
    hold: Limpet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(laden(hold), use(hold))
    fresh = use(hold)
    monkeypatch.setattr(fresh.model, "_network", None)
    monkeypatch.setattr(fresh.model, "_path", tiny_model(tmp_path / "changed"))
    answer = hold.recall("a question that was not asked before about the lexer")
    assert len(answer.hits) == 1
    assert "its sha256 begins with" in answer.hint


# --- a thread of a server ---------------------------------------------------------------------------------------------


def until(what: Callable[[], bool]) -> None:
    """Waits for another thread; a minute means never."""
    tick = threading.Event()
    for _ in range(6_000):
        if what():
            return
        tick.wait(0.01)
    raise AssertionError("it did not happen")


def running(indexer: embeddings.Indexer) -> bool:
    return indexer._thread is not None and indexer._thread.is_alive()


def waiting(hold: Limpet) -> int:
    return hold.store.vectors.state(hold.scope).waiting


def test_a_server_embeds_what_is_written_and_stops_when_it_is_closed(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "QUIET_SECONDS", 0.0)
    hold, reader = opened(), opened()
    use(hold, path=tiny_model(tmp_path / "tiny"))
    hold.index_in_background()
    assert hold._embeddings is not None
    indexer = hold._embeddings.indexer
    assert indexer is not None
    assert not running(indexer), "nothing runs before there is something to do"
    laden(hold)
    until(lambda: model_of(reader) == "tiny-1" and waiting(reader) == 0)
    hold.session("one").notes.add("One more")
    until(lambda: waiting(reader) == 0)
    assert running(indexer)
    hold.close()
    assert not running(indexer)
    indexer.wake(hold.scope)
    assert not running(indexer)


def test_nothing_runs_in_the_background_where_it_is_switched_off_or_nobody_serves(hold: Limpet) -> None:
    assert hold._embeddings is not None
    assert hold._embeddings.indexer is None
    hold._bounds = hold._bounds._replace(recall=RecallRules(background=False))
    hold.index_in_background()
    assert hold._embeddings.indexer is None


def test_stopping_in_the_middle_loses_nothing(hold: Limpet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "SLOW_CHARS", 10)  # a text at a time
    best = use(laden(hold), path=tiny_model(tmp_path / "tiny"))
    answers = iter((False, False, True))
    assert catch_up(best, hold.store, hold.scope, stopping=lambda: next(answers)) == 2
    assert waiting(hold) == len(NOTES) - 2
    assert index(hold, best) == len(NOTES) - 2
    assert all(finding.ok for finding in hold.store.check())


def test_of_two_that_embed_the_same_one_leaves_off(hold: Limpet, tmp_path: Path) -> None:
    best = use(laden(hold), path=tiny_model(tmp_path / "tiny"))
    texts = hold.store.vectors.missing(hold.scope, best.model.name, 10)
    assert index(hold, best) == len(NOTES)
    assert embeddings.embed(best, hold.store, hold.scope, texts) == 0


def test_another_transformer_is_left_alone_in_the_background(hold: Limpet, tmp_path: Path) -> None:
    index(laden(hold), use(hold, path=tiny_model(tmp_path / "1", 1)))
    use(hold, path=tiny_model(tmp_path / "2", 2))
    assert hold._embeddings is not None
    indexer = embeddings.Indexer(hold.store, hold._embeddings.models)
    indexer._index(hold.scope)
    assert model_of(hold) == "tiny-1"
