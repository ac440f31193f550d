"""Which of a caller's messages are stored, and where: by content, order and neighbours."""

from __future__ import annotations

import time
from typing import Any

import pytest

from limpet.model import Entry
from limpet.window.messages import user
from limpet.window.plan.alignment import Aligner, CallerMessage, PositionIndex, StoredPlace
from limpet.window.plan.line import before, contains, line_to, within
from limpet.window.transcript import FoldRecord, StoredMessage, line

WEAK = ("ok", "done", "yes", "x")


def places(stored: str, caller: str, *, folds: dict[str, StoredPlace] | None = None) -> list[int | None]:
    """Aligns words; each word is a message, and those of WEAK are too short to tell where they belong."""
    words = stored.split()
    index = PositionIndex()
    for position, word in enumerate(words):
        index.add(position, position - 1, word)
    talk = [CallerMessage(word, word in WEAK) for word in caller.split()]
    aligned = Aligner(index, folds or {}, {}, range(len(words))).align(talk)
    return [None if place is None else place.last for place in aligned]


@pytest.mark.parametrize(
    ("stored", "caller", "expected"),
    [
        ("a b c", "a b c d", [0, 1, 2, None]),
        ("a b c", "b c d", [1, 2, None]),
        ("a b c", "c d", [2, None]),
        ("a b c", "a c d", [0, 2, None]),
        ("a b c", "a B c d", [0, None, 2, None]),
        ("a b c", "a d", [0, None]),
        ("a b c", "d e", [None, None]),
        ("a b c", "a", [0]),
        # short messages that repeat
        ("a ok b ok", "b ok ok", [2, 3, None]),
        ("a ok b ok", "ok c", [3, None]),
        ("ok done ok done", "ok done ok done ok", [0, 1, 2, 3, None]),
        ("ok done ok done", "done yes", [3, None]),
        ("a ok b c d", "a e ok", [0, None, None]),
        ("a b c ok d", "a b c e ok f", [0, 1, 2, None, None, None]),
        ("a ok b yes", "c d e f yes", [None, None, None, None, None]),
        # what was said before is said again
        ("a b c d", "c d a", [2, 3, None]),
        ("a b c d", "d a", [3, None]),
    ],
)
def test_messages_are_found_by_content_and_order(stored: str, caller: str, expected: list[int | None]) -> None:
    assert places(stored, caller) == expected


def test_the_text_of_a_fold_reaches_to_the_last_message_it_replaces() -> None:
    folds = {"fold": StoredPlace(0, 4, is_fold=True)}
    assert places("a b c d e f g", "fold f g h", folds=folds) == [4, 5, 6, None]
    assert places("a b c d e f g", "fold c f g h", folds=folds) == [4, 2, 5, 6, None], "it may show some of them"
    assert places("a b c d e f g", "fold h", folds=folds) == [4, None]


def test_a_line_that_was_left_is_found_again() -> None:
    index, parents = PositionIndex(), {3: 0}
    for position, word in enumerate(("a", "ok", "done", "b", "c")):
        index.add(position, parents.get(position, position - 1), word)
    aligner = Aligner(index, {}, parents, line_to(4, parents))
    talk = [CallerMessage(word, word in WEAK) for word in ("a", "ok", "done", "new")]
    assert [place and place.last for place in aligner.align(talk)] == [0, 1, 2, None]


def test_a_line_has_the_positions_that_lead_to_its_head() -> None:
    parents = {3: 0, 5: 2}
    assert line_to(2, parents) == range(3)
    assert line_to(4, parents) == [0, 3, 4]
    assert line_to(5, parents) == [0, 1, 2, 5]
    assert line_to(-1, parents) == range(0)
    assert within([0, 3, 4], 1, 4) == [3, 4]
    assert before([0, 3, 4], 3) == 0
    assert before([0, 3, 4], 0) == -1
    assert contains([0, 3, 4], 3)
    assert not contains([0, 3, 4], 2)


def test_the_time_grows_with_the_number_of_messages_and_not_with_its_square() -> None:
    def cpu(count: int) -> float:
        words = [f"m{number}" if number % 3 else "ok" for number in range(count)]
        index = PositionIndex()
        for position, word in enumerate(words):
            index.add(position, position - 1, word)
        talk = [CallerMessage(word, word == "ok") for word in [*words[count // 2 :], "new"]]
        started = time.process_time()
        placed = Aligner(index, {}, {}, range(count)).align(talk)
        assert placed[-2] is not None
        assert placed[-1] is None
        return time.process_time() - started

    small, large = min(cpu(2_000) for _ in range(3)), min(cpu(20_000) for _ in range(3))
    assert large < 40 * max(small, 0.001)


def rewind(first: int, last: int, **more: Any) -> Entry:
    extra = FoldRecord("rewind", first, last, **more).to_json()
    return Entry("fold", f"fold_{last}", "one", "", (), False, False, "agent", extra, 1, 0, 0)


def test_a_session_of_an_earlier_version_shows_the_line_it_showed() -> None:
    """It marked what was left, and its messages do not say what they follow."""
    stored = [StoredMessage.of(user(f"message {number}"), 3) for number in range(8)]
    assert list(line(stored, []).positions()) == [*range(8)]
    assert list(line(stored, [rewind(1, 2)]).positions()) == [0, 3, 4, 5, 6, 7]
    assert list(line(stored, [rewind(1, 2), rewind(3, 4)]).positions()) == [0, 5, 6, 7]
    assert list(line(stored, [rewind(1, 2), rewind(0, 5)]).positions()) == [6, 7]
    assert list(line(stored, [rewind(4, 7)]).positions()) == [0, 1, 2, 3]
    assert list(line(stored, [rewind(4, 7, shown=((5, 5),))]).positions()) == [0, 1, 2, 3, 5]
    assert list(line(stored, [rewind(7, 7, head=6)]).positions()) == [*range(7)]
    branched = [*stored[:6], stored[6]._replace(after=2), stored[7]]
    assert list(line(branched, [rewind(1, 2)]).positions()) == [0, 1, 2, 6, 7]
