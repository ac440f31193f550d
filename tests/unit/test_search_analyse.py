"""Folding, words and terms: what makes a query find the same entries in every store."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.text import words as analyse
from limpet.text.words import (
    BRIDGED,
    BRIDGED_CHARS,
    BRIDGED_HEX,
    LONG,
    WORD_MAX_CHARS,
    fold,
    index_words,
    is_atom,
    pieces,
    places,
    short_words,
    subwords,
    terms,
    whole_words,
    words,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
        ("\u00c5ngstr\u00f6m", "\u212bNGSTRO\u0308M"),
        ("ﬁne", "FINE"),
        ("İ", "i\u0307"),
        ("CAFÉ", "cafe\u0301"),
        ("Ꮳ", "ꮳ"),
    ],
)
def test_folding_is_full_case_folding_of_whole_characters(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_takes_the_short_way_to_the_same_end(text: str) -> None:
    assert fold(text) == unicodedata.normalize("NFC", text.casefold())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the quick-brown fox_jumps, 42 times!", ["the", "quick", "brown", "fox", "jumps", "42", "times"]),
        ("", []),
        ("... --- !!!", []),
        ("naïve café", ["naive", "cafe"]),
        ("日本語のメモ", ["日", "本", "語", "の", "メ", "モ"]),
        ("mixed日本words", ["mixed", "日", "本", "words"]),
        ("привет мир", ["привет", "мир"]),
        ("x²", ["x2"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(fold(text)) == expected


@given(st.text())
def test_words_are_plain_enough_for_any_index(text: str) -> None:
    for word in words(fold(text)):
        assert word
        assert not any(character in word for character in " \"'()*:^_-\x00\n")


@given(st.text(alphabet="abc é日x1_ ", max_size=300))
def test_short_words_are_short_and_lose_nothing(text: str) -> None:
    found, short = words(fold(text)), short_words(fold(text))
    assert all(len(word) <= WORD_MAX_CHARS for word in short)
    assert "".join(found) == "".join(word for word in short if word != LONG)
    assert (LONG in short) == any(len(word) > WORD_MAX_CHARS for word in found)


@given(st.text(alphabet="abcdef0123xyz", min_size=WORD_MAX_CHARS + 1, max_size=200), st.data())
def test_a_short_part_of_a_long_word_lies_within_a_piece_of_it(run: str, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, BRIDGED_CHARS))
    start = data.draw(st.integers(0, len(run) - size))
    pieces_of_it = index_words(f"before {run} after")
    assert any(run[start : start + size] in piece for piece in pieces_of_it)
    assert any(piece.endswith(run[-size:]) for piece in pieces_of_it)
    assert {BRIDGED, BRIDGED_HEX}.intersection(pieces_of_it)
    assert all(len(piece) <= WORD_MAX_CHARS for piece in pieces_of_it)


def test_the_mark_of_long_words_is_no_word_itself() -> None:
    assert LONG not in words(fold(f"a text with {LONG} in it"))


def test_terms_are_stems() -> None:
    assert terms(["running", "runs", "run"]) == ["run", "run", "run"]
    assert terms(["日", "привет", "42"]) == ["日", "привет", "42"]
    assert terms([]) == []


def test_pieces_are_the_endings_a_search_can_start_at() -> None:
    assert pieces("parser") == ["parser", "arser", "rser", "ser", "er"]
    assert pieces("ab") == ["ab"]
    assert pieces("abc") == ["abc", "bc"]


@given(st.text(alphabet="abcdef", min_size=3, max_size=20), st.data())
def test_every_part_of_a_word_begins_one_of_its_pieces(word: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(word) - analyse.INFIX_MIN_CHARS))
    end = data.draw(st.integers(start + analyse.INFIX_MIN_CHARS, len(word)))
    assert any(piece.startswith(word[start:end]) for piece in pieces(word))


def test_atoms_are_characters_of_scripts_without_spaces() -> None:
    assert is_atom("語")
    assert is_atom("ก")
    assert not is_atom("a")
    assert not is_atom("한")
    assert not is_atom("語語")
    assert not is_atom("")


def test_words_inside_identifiers_are_words_and_pieces_of_keys_are_not() -> None:
    assert subwords("getUserName HTTPServer2 McDonald plain UPPER snake_case") == [
        *("get", "user", "name", "http", "server", "mc", "donald")
    ]
    assert subwords("+CB03WN8C2S5HRTYXwtn+qpgpJaGZ38riFH 3f9a1c2b77e0") == []
    assert subwords("src/fooBar/x") == ["foo", "bar"]
    assert index_words("The fooBar") == ["the", "foobar", "foo", "bar"]


def test_words_of_the_scripts_of_india_are_indexed_whole_and_in_parts() -> None:
    text = "खोज सूची"
    assert whole_words(fold(text)) == ["खोज", "सूची"]
    assert index_words(text)[:2] == ["खोज", "सूची"]
    assert set(words(fold(text))) <= set(index_words(text))
    assert [match.group() for match in places(text)] == ["खोज", "सूची"]
    assert whole_words(fold("Straße 漢字 42")) == words(fold("Straße 漢字 42"))
