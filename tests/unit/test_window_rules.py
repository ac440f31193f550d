"""The rules find what a provider refuses, and a mended conversation has nothing left to find."""

from __future__ import annotations

import pytest
from hypothesis import given

import window_kit as kit
from limpet.window.messages import ASSISTANT, TOOL, USER, Call, Message, Result, Text, Thinking, assistant, result, user
from limpet.window.plan.rules import LOST, ORPHAN, RULES, PartIndex, answers, problems, repair, together

A, B = Call("a", "look", "{}"), Call("b", "smell", "{}")
REASONING = Thinking("hm", {"openai_responses": {"type": "reasoning", "id": "rs_1", "summary": []}})
PROVIDERS = tuple(RULES)


def test_there_are_rules_for_every_form() -> None:
    assert set(RULES) == set(kit.FORMS)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_conversation_in_order_has_no_problems(provider: str) -> None:
    said = (user("go"), assistant("well", A, B), result("b", "salt"), result("a", "blue"), assistant("done"))
    assert problems(said, provider) == ()
    assert repair(said) == (said, ())
    assert repair(said)[0][1] is said[1]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ((user("go"), result("a", "blue")), "message 1: the result 'a' has no call before it"),
        ((user("go"), assistant("", A)), "message 1: the call 'a' has no result"),
        ((user("go"), assistant("", A, A), result("a", "1"), result("a", "2")), "message 1: two calls have the id 'a'"),
        ((user("go"), assistant("")), "message 1: nothing is in it"),
        ((user(" \n"),), "message 0: nothing is in it"),
        ((Message(USER, (A,)),), "message 0: a call in a message of role user"),
        ((Message(USER, (Result("a", ()),)),), "message 0: a result in a message of role user"),
    ],
)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_rule_finds_its_fault(said: tuple[Message, ...], problem: str, provider: str) -> None:
    assert problem in problems(said, provider)
    assert problems(repair(said)[0], provider) == ()
    assert repair(said)[1]


def test_only_some_providers_want_results_directly_after_calls() -> None:
    said = (user("go"), assistant("", A), user("well?"), result("a", "blue"))
    late = "message 3: a result is not directly after its call in message 1"
    assert {provider for provider in PROVIDERS if problems(said, provider) == (late,)} == {
        "anthropic",
        "openai_chat",
        "mcp",
    }
    assert problems(said, "openai_responses") == ()
    assert repair(said)[0] == (said[0], said[1], said[3], said[2])


def test_one_turn_in_several_messages() -> None:
    said = (user("go"), assistant("", A), assistant("", B), result("a", "blue"), result("b", "salt"))
    assert problems(said, "anthropic") == ()
    assert problems(said, "openai_chat") != ()
    assert together(said, turns=True) == said
    assert together(said) == (said[0], said[1], said[3], said[2], said[4])


def test_reasoning_needs_something_after_it() -> None:
    said = (user("go"), Message(ASSISTANT, (REASONING,)), user("well?"))
    assert problems(said, "openai_responses") == ("message 1: reasoning that nothing follows",)
    assert problems(said, "openai_chat") == ()
    assert repair(said)[0] == (said[0], said[2])


def test_ids_may_be_used_again_in_a_later_turn() -> None:
    said = (user("1"), assistant("", A), result("a", "x"), user("2"), assistant("", A), result("a", "y"))
    assert repair(said) == (said, ())
    lost = (user("1"), assistant("", A), user("2"), assistant("", A), result("a", "y"))
    mended = repair(lost)[0]
    assert [message.results()[0].parts for message in mended if message.role == TOOL] == [(Text(LOST),), (Text("y"),)]


def test_a_lost_result_says_so_and_an_orphan_is_not_an_instruction() -> None:
    said = (user("go"), assistant("", A, B), result("x", "rm -rf"), result("b", "salt"), assistant("done"))
    mended, notes = repair(said)
    stub = Message(TOOL, (Result("a", (Text(LOST),), error=True),))
    orphan = Message(USER, (Text(ORPHAN), Text("rm -rf")))
    assert mended == (said[0], said[1], said[3], stub, orphan, said[4])
    assert len(notes) == 2


@given(history=kit.histories())
def test_nothing_is_left_to_mend(history: tuple[Message, ...]) -> None:
    mended, notes = repair(history)
    for provider in PROVIDERS:
        assert problems(mended, provider) == ()
    assert repair(mended) == (mended, ())
    assert bool(notes) == (mended != history)


def answered(history: tuple[Message, ...]) -> dict[int, object]:
    """By the number of the call: the parts of its result."""
    calls = [
        PartIndex(at, number)
        for at, message in enumerate(history)
        for number, part in enumerate(message.parts)
        if isinstance(part, Call)
    ]
    out: dict[int, object] = {}
    for at, call in answers(history).items():
        part = history[at.message].parts[at.part]
        assert isinstance(part, Result)
        out[calls.index(call)] = part.parts
    return out


@given(history=kit.histories(stray=False))
def test_mending_keeps_the_order_the_calls_and_their_answers(history: tuple[Message, ...]) -> None:
    mended, _ = repair(history)
    said = [(message.role, message.text()) for message in history if message.text().strip()]
    left = iter([(message.role, message.text()) for message in mended])
    assert all(one in left for one in said), "what was said is still there, in order"
    names = [[call.name for message in one for call in message.calls()] for one in (history, mended)]
    assert names[0] == names[1]
    before, after = answered(history), answered(mended)
    assert after == {number: (Text(LOST),) for number in range(len(names[0]))} | before
    lost = sum(message.parts[:1] == (Text(ORPHAN),) for message in mended)
    assert lost == sum(len(message.results()) for message in history) - len(before)
