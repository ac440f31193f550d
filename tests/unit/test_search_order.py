"""The order of hits: the words of a question, which of them are worth looking up, and which entries fit best."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import EMPTY, Entry
from holdfast.search.order import (
    RARE_COUNT_MAX,
    RARE_TOTAL,
    by_rarity,
    closest,
    memory_score,
    narrowing,
    query_words,
    rare_words,
)


def entry(content: str, at: int = 0, key: str = "k") -> Entry:
    return Entry("note", key, "s", content, (), False, False, "agent", EMPTY, 1, at, at)


def test_the_words_of_a_question_are_those_of_different_stems_in_order() -> None:
    assert query_words("Parsing the parsers, PARSE them") == ["parsing", "the", "parsers", "them"]
    assert query_words("  ?! ") == []
    assert len(query_words(" ".join(f"w{n}" for n in range(10_000)))) == 64


def test_rare_words_come_first_and_absent_ones_not_at_all() -> None:
    assert rare_words({"common": 400, "rare": 2, "absent": 0, "some": 50}) == ["rare", "some", "common"]
    assert rare_words({}) == []
    assert rare_words({"absent": 0}) == []


def test_at_least_one_word_that_occurs_is_kept_however_common() -> None:
    assert rare_words({"a": RARE_COUNT_MAX, "b": RARE_COUNT_MAX}) == ["a"]


@given(st.dictionaries(st.text(min_size=1, max_size=4), st.integers(0, RARE_COUNT_MAX), max_size=30))
def test_the_work_is_bounded(frequencies: dict[str, int]) -> None:
    chosen = rare_words(frequencies)
    assert bool(chosen) == any(frequencies.values())
    assert len(chosen) == 1 or sum(frequencies[word] for word in chosen) <= RARE_TOTAL
    assert all(frequencies[word] for word in chosen)
    assert [frequencies[word] for word in chosen] == sorted(frequencies[word] for word in chosen)


def test_entries_with_more_of_the_words_come_first() -> None:
    query = dict.fromkeys(query_words("quick brown fox"), 3)
    full, half, none = entry("a brown fox, quick", key="1"), entry("the fox", key="2"), entry("nothing", key="3")
    assert closest(query, [none, half, full], 2) == [full, half]


def test_rare_words_count_more_than_common_ones() -> None:
    rare, common = entry("the tokenizer", key="1"), entry("it is", key="2")
    assert closest({"tokenizer": 2, "is": 400}, [common, rare], 2) == [rare, common]


def test_the_rarest_words_are_asked_for_together_then_fewer_of_them() -> None:
    assert by_rarity({"is": 400, "absent": 0, "b": 2, "a": 2}) == ["a", "b", "is"]
    assert list(narrowing(["a", "b", "c"])) == [
        [("a", "b", "c")],
        [("a", "b"), ("a", "c"), ("b", "c")],
        [("a",), ("b",), ("c",)],
    ]
    assert list(narrowing([])) == []


def test_near_words_then_newer_entries_win_ties() -> None:
    query = dict.fromkeys(query_words("alpha beta"), 1)
    near, far = entry("alpha beta", 1, "1"), entry("alpha and then much later beta", 9, "2")
    newer = entry("alpha beta", 2, "3")
    assert closest(query, [far, near, newer], 3) == [newer, near, far]


@pytest.mark.parametrize(
    ("query", "score"),
    [
        ("goal", 6 + 3),
        ("GOAL", 6 + 3),
        ("desktop agent", 5 + 1 + 1),
        ("agent desktop", 1 + 1),
        ("project-goal", 6 + 3),
        ("agent agent", 1),
        ("nothing", 0),
    ],
)
def test_how_well_a_memory_fits(query: str, score: int) -> None:
    assert memory_score(query, "project-goal", "Build a reliable desktop agent.") == score


def test_memory_scores_know_other_scripts() -> None:
    assert memory_score("STRASSE", "k", "die Straße") == memory_score("Straße", "k", "die STRASSE") == 6
