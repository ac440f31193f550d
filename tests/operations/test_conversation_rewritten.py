"""A framework that keeps messages as values writes their JSON anew: the keys in another order, with other spaces."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

import limpet
from limpet.model import FOLD, MESSAGE
from limpet.window.messages import Call, Message, Text, assistant, result, user
from limpet.window.plan.context import is_injected
from profiles import chosen

Given = Mapping[str, Any]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=6), values, min_size=1, max_size=4)


def backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: backwards(value[name]) for name in reversed(value)}
    return [*map(backwards, value)] if isinstance(value, list) else value


def compact(value: Any) -> str:
    return json.dumps(backwards(value), separators=(",", ":"), ensure_ascii=False)


def said(arguments: str, answer: str) -> list[Message]:
    call = Call("c1", "search", arguments)
    return [
        user("Where is the parser?"),
        assistant("Looking.", call),
        result("c1", answer),
        assistant("It is in lexer.c."),
    ]


def stored(folder: str, *lists: list[Message]) -> tuple[int, int, list[Message]]:
    """How many messages and folds are stored after a process with each of these lists, and what the last is shown."""
    shown: list[Message] = []
    for messages in lists:
        with limpet.open(f"{folder}/a.db", project="demo", session="one", folder=folder) as hold:
            shown = [
                one for one in hold.session().window.next(messages, limit=100_000).messages if not is_injected(one)
            ]
    with limpet.open(f"{folder}/a.db", project="demo", session="one", folder=folder) as hold:
        kept, folds = (hold.store.entries.tally(hold.scope, kind, "one").total for kind in (MESSAGE, FOLD))
    return kept, folds, shown


@given(objects, objects)
@settings(max_examples=chosen(short=8, long=400))
def test_json_that_was_written_anew_is_no_edit(arguments: Given, answer: Given) -> None:
    first = said(json.dumps(arguments), json.dumps(answer))
    again = said(compact(arguments), compact(answer))
    with tempfile.TemporaryDirectory() as folder:
        messages, folds, shown = stored(folder, first, again, [*again, user("Thanks.")])
    assert (messages, folds) == (5, 0)
    assert shown == [*first, user("Thanks.")], "shown as it was said"


@given(objects, objects)
@settings(max_examples=chosen(short=8, long=400))
def test_json_of_another_value_is_an_edit(arguments: Given, other: Given) -> None:
    assume(json.dumps(arguments, sort_keys=True) != json.dumps(other, sort_keys=True) and arguments != other)
    first, again = said(json.dumps(arguments), "found"), said(compact(other), "found")
    with tempfile.TemporaryDirectory() as folder:
        messages, folds, shown = stored(folder, first, again)
    assert (messages, folds) == (4, 1)
    assert shown == again


def test_values_that_only_look_alike_are_edits(tmp_path: Any) -> None:
    pairs = [("1", "true"), ("1", '"1"'), ("0", "false"), ("[1, 2]", "[2, 1]"), ("null", '""'), ("1", "1.5")]
    for number, (value, other) in enumerate(pairs):
        first, again = said(f'{{"a": {value}}}', "x"), said(f'{{"a":{other}}}', "x")
        folder = tmp_path / str(number)
        folder.mkdir()
        assert stored(str(folder), first, again)[:2] == (4, 1), (value, other)


def test_texts_outside_of_results_are_compared_as_they_are(tmp_path: Any) -> None:
    first = [user('{"a": 1, "b": 2}'), assistant("Yes."), user("Go on, please, with the parser.")]
    again = [first[0]._replace(parts=(Text('{"b": 2, "a": 1}'),)), *first[1:]]
    assert stored(str(tmp_path), first, again)[:2] == (3, 1)
