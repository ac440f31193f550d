"""Search against the plainest possible search: whatever index a store keeps, it may never hide a note that matches."""

from __future__ import annotations

import re
import uuid

import hypothesis
from hypothesis import strategies as st

import limpet
from limpet.api import Limpet
from limpet.model import Scope
from limpet.text.words import fold
from profiles import fewer_examples

# Words that share beginnings, endings and stems, characters that fold to several, scripts without spaces, and signs.
WORDS = st.sampled_from(
    [
        *("parse", "parser", "Parsing", "sparse", "a", "ab", "STRASSE", "Straße", "İstanbul", "ﬁne", "fine", "x" * 70),
        *("café", "cafe\u0301", "日本語", "メモ", "ไทย", "한국어", "x²", "½", "naïve", "\u0301"),
        *("C++", "a_b", "a-b", "LL(1)", "100%", '"and"', "OR"),
    ]
)
TEXTS = st.lists(WORDS | st.text(alphabet="aAbß é日_-.\n", min_size=1, max_size=6), min_size=1, max_size=8).flatmap(
    lambda words: st.sampled_from([" ", "", "-", "\n"]).map(lambda between: between.join(words))
)
# Different ones: a note that is added again in a session is the one that exists.
NOTES = st.lists(TEXTS.filter(lambda text: bool(text.strip())), min_size=1, max_size=6, unique_by=str.strip)


@hypothesis.settings(max_examples=fewer_examples(2), suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(notes=NOTES, data=st.data())
def test_every_note_that_contains_the_query_is_found_and_whole_words_come_first(
    store_url: str, notes: list[str], data: st.DataObject
) -> None:
    with limpet.open(store_url, session="one") as first:
        hold = Limpet(first.store, Scope("local", uuid.uuid4().hex), session="one")
        kept = [hold.session().notes.add(text) for text in notes]
        source = data.draw(st.sampled_from(notes))
        start = data.draw(st.integers(0, len(source) - 1))
        query = data.draw(st.just(source[start : start + data.draw(st.integers(1, 12))]) | TEXTS)
        if not query.strip():
            return
        needle = fold(query.strip())
        found = hold.session().notes.search(query)
        hits = [note.id for note in found.notes]
        assert {note.id for note in kept if needle in fold(note.content)} <= set(hits)
        runs = set(re.findall(r"[^\W_]+", needle))
        with_words = [bool(runs) and runs <= set(re.findall(r"[^\W_]+", fold(note.content))) for note in found.notes]
        assert sorted(with_words, reverse=True) == with_words  # those with every word first
        assert (found.total, found.more) == (len(hits), False)
        assert not {note.id for note in found.related} & set(hits)
