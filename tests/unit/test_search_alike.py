"""Which texts say the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from limpet.recall import duplicates
from limpet.text import words

WORDS = st.lists(st.sampled_from([f"w{number}" for number in range(24)]), min_size=1, max_size=22)


@given(st.lists(WORDS.map(" ".join), max_size=14))
def test_groups_are_those_of_comparing_each_with_each(texts: list[str]) -> None:
    first: list[int] = []
    for at, text in enumerate(texts):
        same = (
            other
            for other in range(at)
            if first[other] == other
            and duplicates.same_words(duplicates.bag(text), duplicates.bag(texts[other]))
            and duplicates.as_long(text, texts[other])
        )
        first.append(next(same, at))
    wanted = [[at for at in range(len(texts)) if first[at] == one] for one in range(len(texts))]
    assert duplicates.groups(texts) == [group for group in wanted if len(group) > 1]


def test_what_is_alike_and_what_is_not() -> None:
    long = "the release of the parser waits for a fix of the casts that break the grammar in version"
    assert duplicates.groups([f"{long} 7", f"{long} 8", "something else"]) == [[0, 1]]
    assert duplicates.groups(["port is 8080", "port is 8081"]) == []
    assert duplicates.groups(["", "", "!!!"]) == []
    assert duplicates.groups(["same beginning " * 400, "same beginning " * 400 + "and much more " * 400]) == []
    assert duplicates.exact("  Straße\n7 ") == duplicates.exact("STRASSE 7")


@given(st.text(max_size=300), st.integers(1, 8))
def test_telling_words_are_few_and_of_the_text(text: str, most: int) -> None:
    letters, others = duplicates.search_words(text, most)
    assert max(len(letters), len(others)) <= most
    assert {*letters, *others} <= set(words.words(words.fold(text)))
    assert all(word.isalpha() for word in letters)
    assert not any(word.isalpha() for word in others)
