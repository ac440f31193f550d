"""Units, records, folds and the view: no pair is split, no order changes, and every fold can be taken back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from limpet.window.messages import ASSISTANT, TOOL, Call, Message, Result, Text, assistant, result, user
from limpet.window.plan.folding import CLEAR, COMPACT, REWIND, TASK, Fold, blocks, result_key, task_line, view
from limpet.window.plan.rules import expand, groups, unpaired
from limpet.window.plan.serialise import digest, pack, unpack
from talks import histories

TALK = [
    user("port the parser"),
    assistant("reading", Call("1", "read_file", '{"path": "a.py"}'), Call("2", "shell", '{"command": "ls"}')),
    result("1", "text of a"),
    result("2", "a.py b.py"),
    assistant("done"),
    user("and the lexer?"),
]


def test_a_unit_is_a_call_with_its_results() -> None:
    assert groups(TALK) == [range(1), range(1, 4), range(4, 5), range(5, 6)]
    assert groups([]) == []
    assert expand(TALK, 2, 2) == (1, 3)
    assert expand(TALK, 3, 4) == (1, 4)


def test_what_lost_its_other_half_is_named() -> None:
    assert unpaired(TALK) == frozenset()
    assert unpaired(TALK[:2]) == {"1", "2"}
    assert unpaired(TALK[2:]) == {"1", "2"}
    assert unpaired([*TALK[2:3], *TALK[:2]]) == {"1", "2"}  # a result before its call is no answer to it


@given(histories())
def test_units_are_the_history_cut_between_pairs(talk: list[Message]) -> None:
    found = groups(talk)
    assert [at for unit in found for at in unit] == list(range(len(talk)))
    for unit in found:
        # A cut before any unit leaves no call on one side whose result is on the other.
        before, after = unpaired(talk[: unit.start]), unpaired(talk[unit.start :])
        assert not {call.id for m in talk[: unit.start] for call in m.calls()} & {
            one.call_id for m in talk[unit.start :] for one in m.results()
        }
        assert before | after == unpaired(talk)


@given(histories())
def test_a_message_comes_back_from_its_record_as_it_was(talk: list[Message]) -> None:
    for message in talk:
        kept = pack(message)
        assert "\0" not in kept.text
        kept.text.encode()
        assert kept.body.isascii()
        assert unpack(kept) == message
        assert digest(unpack(kept)) == digest(message)


def test_a_record_is_searchable_and_keeps_no_text_twice() -> None:
    message = Message(ASSISTANT, (Text("we use port 8443"), Call("1", "shell", '{"command": "make"}')))
    kept = pack(message)
    assert kept.text == 'we use port 8443\nshell\n{"command": "make"}'
    assert "8443" not in kept.body
    long = Message(TOOL, (Result("1", (Text("y" * 50_000),)),))
    assert pack(long).text == ""
    assert unpack(pack(long)) == long


def test_messages_differ_by_what_they_say() -> None:
    assert digest(user("a")) != digest(user("b"))
    assert digest(user("a")) != digest(assistant("a"))
    assert digest(result("1", "a")) != digest(result("1", "a", error=True))
    assert digest(Message("user", (Text("a", {"k": (1, 2)}),))) == digest(Message("user", (Text("a", {"k": [1, 2]}),)))


def test_a_view_without_folds_is_the_history() -> None:
    assert [item.message for item in view(TALK, [])] == TALK


def test_folds_stand_in_the_place_of_what_they_cover() -> None:
    task = Fold("t", TASK, 1, 4, task_line("read a", "it is short", "- files read: a.py"))
    items = view(TALK, [task])
    assert [item.message.text() for item in items] == [
        "port the parser",
        "[Task: read a — it is short]\n- files read: a.py",
        "and the lexer?",
    ]
    assert [(item.first, item.last, item.fold) for item in items] == [(0, 0, ""), (1, 4, "t"), (5, 5, "")]
    assert task_line("a", "b", "", cancelled=True) == "[Cancelled: a — b]"


def test_a_later_fold_swallows_and_begins_after_one_it_only_touches() -> None:
    inner, outer = Fold("i", TASK, 2, 3, "inner"), Fold("o", COMPACT, 0, 4, "outer")
    assert [item.message.text() for item in view(TALK, [inner, outer])] == ["outer", "and the lexer?"]
    early, late = Fold("c", COMPACT, 0, 3, "early"), Fold("t", TASK, 1, 5, "late")
    assert [(item.message.text(), item.first) for item in view(TALK, [late, early])] == [("early", 0), ("late", 4)]
    assert view(TALK, [Fold("r", REWIND, 1, 5)]) == view(TALK[:1], [])


def test_what_a_fold_shows_comes_after_it() -> None:
    fold = Fold("c", COMPACT, 0, 4, "summary", shown=((0, 0), (4, 9)))
    assert [item.message.text() for item in view(TALK, [fold])] == [
        "summary",
        "port the parser",
        "done",
        "and the lexer?",
    ]


def test_clearing_changes_only_the_results_it_names() -> None:
    lines = {result_key(2, "1"): "[Cleared]"}
    items = view(TALK, [Fold("x", CLEAR, 0, 5, lines=lines)])
    assert items[2].message == result("1", "[Cleared]")
    assert [item.message for at, item in enumerate(items) if at != 2] == TALK[:2] + TALK[3:]


ranges = st.tuples(st.integers(0, 40), st.integers(0, 12), st.sampled_from((TASK, COMPACT, REWIND)), st.booleans())


@given(histories(), st.lists(ranges, max_size=6))
def test_every_view_keeps_the_order_and_hides_exactly_what_is_covered(
    talk: list[Message], drawn: list[tuple[int, int, str, bool]]
) -> None:
    last = len(talk) - 1
    folds = [
        Fold(f"f{at}", how, first, min(first + length, last), "" if how == REWIND else f"fold {at}")
        for at, (first, length, how, _) in enumerate(drawn)
        if first <= last
    ]
    items = view(talk, folds)
    starts = [item.first for item in items]
    assert starts == sorted(set(starts))
    covered = {at for block in blocks(folds) for at in range(block.first, block.last + 1)}
    assert covered == {at for fold in folds for at in range(fold.first, fold.last + 1)}
    assert {item.first for item in items if not item.fold} == set(range(len(talk))) - covered
    assert all(item.message is talk[item.first] for item in items if not item.fold)
    assert view(talk, folds[:0]) == view(talk, [])
