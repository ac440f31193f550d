"""Which texts say the same."""

from __future__ import annotations

import pytest
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
            and duplicates.say_the_same(text, texts[other])
        )
        first.append(next(same, at))
    wanted = [[at for at in range(len(texts)) if first[at] == one] for one in range(len(texts))]
    assert duplicates.groups(texts) == [group for group in wanted if len(group) > 1]


def test_what_is_alike_and_what_is_not() -> None:
    long = "the release of the parser waits for a fix of the casts that break the grammar in version"
    assert duplicates.groups([f"{long} seven", f"{long} seven please", "something else"]) == [[0, 1]]
    assert duplicates.groups(["port is 8080", "port is 8081"]) == []
    assert duplicates.groups(["", "", "!!!"]) == []
    assert duplicates.groups(["same beginning " * 400, "same beginning " * 400 + "and much more " * 400]) == []
    assert words.exact("  Straße\n7 ") == words.exact("STRASSE 7")


REPORT = "Nightly backup of the customer database to the second site was started by the scheduler and"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (f"{REPORT} job 4711 wrote all files", f"{REPORT} job 4712 wrote all files"),
        (f"{REPORT} has passed", f"{REPORT} has failed"),
        (f"{REPORT} wrote all files", f"{REPORT} wrote all files, failed"),
        (f"{REPORT} did run", f"{REPORT} did not run"),
        (f"{REPORT} ended on Monday", f"{REPORT} ended on Tuesday"),
        (f"{REPORT} runs at 2026-03-02", f"{REPORT} runs at 2026-03-03"),
        (f"{REPORT} read src/a.py", f"{REPORT} read src/b.py"),
        (f"{REPORT} called get_user", f"{REPORT} called get_users"),
        (f"{REPORT} went to Oslo", f"{REPORT} went to Bergen"),
        ("same " * 2_000 + "ticket 7", "same " * 2_000 + "ticket 8"),
        (f"{REPORT} chose option 2\n1. a\n2. b\n3. c", f"{REPORT} chose option 3\n1. a\n2. b\n3. c"),
    ],
)
def test_a_number_identifier_date_negation_or_outcome_makes_another_text(left: str, right: str) -> None:
    assert duplicates.first_of_each([left, right]) == [0, 1]
    assert duplicates.groups([left, right]) == []


def test_the_same_said_a_little_differently_is_the_same_text() -> None:
    said = f"{REPORT} wrote files"
    others = [said, f"{REPORT} wrote the files", f"{REPORT} wrote file", f"Wrote files: {REPORT}"]
    assert [duplicates.first_of_each([said, other]) for other in others] == [[0, 0]] * len(others)


@given(st.text(max_size=300), st.integers(1, 8))
def test_telling_words_are_few_and_of_the_text(text: str, most: int) -> None:
    letters, others = words.longest_words(text, most)
    assert max(len(letters), len(others)) <= most
    assert {*letters, *others} <= set(words.words(words.fold(text)))
    assert all(word.isalpha() for word in letters)
    assert not any(word.isalpha() for word in others)


@given(st.text(max_size=300))
def test_case_and_white_space_do_not_change_the_gist_of_a_text(text: str) -> None:
    assert words.gist(f" {text} \n") == words.gist(text)
    assert words.gist(words.exact(text)) == words.gist(text)
    assert set(words.gist(text)) <= set(words.words(words.exact(text)))


@pytest.mark.parametrize("number", ["7", "12", "1999"])
def test_another_number_does_not_change_the_gist(number: str) -> None:
    assert words.gist(f"{REPORT} chose option {number}") == words.gist(f"{REPORT} chose option 3")
    assert words.gist("これは七番の項目です 3") == words.gist(f"これは七番の項目です {number}")
