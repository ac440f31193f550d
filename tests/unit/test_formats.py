"""Conversations survive the way into our model and back, and are valid in another provider's form."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import window_judges as judges
import window_kit as kit
from limpet.window.formats import FORMS, anthropic, mcp, openai_chat, openai_responses
from limpet.window.messages import (
    ASSISTANT,
    TOOL,
    Call,
    Media,
    Message,
    Result,
    Text,
    Thinking,
    assistant,
    result,
    system,
    user,
)
from limpet.window.plan.rules import problems, repair
from profiles import chosen

forms = pytest.mark.parametrize("form", kit.FORMS)
few = settings(max_examples=chosen(short=12, long=1_000))  # of each pair of forms, so that each form has many
ways = pytest.mark.parametrize(("source", "target"), [(a, b) for a in kit.FORMS for b in kit.FORMS if a != b])


def test_the_kit_knows_every_form() -> None:
    assert set(kit.FORMS) == set(FORMS)


@forms
@given(st.data())
def test_there_and_back_changes_nothing(form: str, data: st.DataObject) -> None:
    said = data.draw(kit.legal(form))
    before = copy.deepcopy(said)
    messages = FORMS[form].read(said)
    written = FORMS[form].write(messages)
    assert written == said
    assert json.dumps(written) == json.dumps(said), "the order of keys is kept too"
    assert said == before
    assert problems(messages, form) == ()


@forms
@given(st.data())
def test_what_the_kit_calls_legal_is_legal(form: str, data: st.DataObject) -> None:
    said = data.draw(kit.legal(form))
    # Anthropic joins messages of one role that follow each other; what we write does not rely on that.
    refused = [one for one in judges.refusals(form, said) if "in a row" not in one]
    assert not refused


@ways
@few
@given(st.data())
def test_another_form_accepts_it(source: str, target: str, data: st.DataObject) -> None:
    messages = FORMS[source].read(data.draw(kit.legal(source)))
    written = FORMS[target].write(messages)
    assert judges.refusals(target, written) == []
    judges.typed(target, written)
    again = FORMS[target].read(written)
    assert problems(again, target) == ()
    assert FORMS[target].write(again) == written


@ways
@few
@given(st.data())
def test_pairs_order_and_words_arrive(source: str, target: str, data: st.DataObject) -> None:
    messages = FORMS[source].read(data.draw(kit.legal(source)))
    again = FORMS[target].read(FORMS[target].write(messages))
    calls = [call for message in messages for call in message.calls()]
    assert [call.name for message in again for call in message.calls()] == [call.name for call in calls]
    results = [result.call_id for message in again for result in message.results()]
    assert len(results) == len(calls)
    told = json.dumps(FORMS[target].write(messages), ensure_ascii=False)
    at = 0
    for message in messages:
        if message.role == ASSISTANT and message.text() and "\n" not in message.text():
            found = told.find(json.dumps(message.text(), ensure_ascii=False)[1:-1], at)
            assert found >= 0, "what the assistant said is there, in order"
            at = found


@pytest.mark.parametrize("target", kit.FORMS)
@given(history=kit.histories())
def test_a_mended_history_is_valid_everywhere(target: str, history: tuple[Message, ...]) -> None:
    mended, _ = repair(history)
    written = FORMS[target].write(mended)
    assert judges.refusals(target, written) == []
    judges.typed(target, written)


@given(kit.tool_answers)
def test_a_tool_answer_there_and_back(answer: dict[str, Any]) -> None:
    from mcp_types import CallToolResult

    read = mcp.read_result(answer, "call_1")
    assert mcp.write_result(read) == answer
    assert read.call_id == "call_1"
    assert read.error is bool(answer.get("isError"))
    CallToolResult.model_validate(mcp.write_result(read))
    for form, module in FORMS.items():
        written = module.write((user("go"), assistant("", Call("call_1", "look", "{}")), Message(TOOL, (read,))))
        assert judges.refusals(form, written) == []
        judges.typed(form, written)


CALLED = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": {}}]}
USED = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]}
ANSWER = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}
ASKED = {"role": "user", "content": "go"}
ITEM = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}


@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ("anthropic", {"messages": [ASKED, USED]}),
        ("anthropic", {"messages": [ASKED, ANSWER]}),
        ("anthropic", {"messages": [ASKED, USED, ASKED, ANSWER]}),
        ("anthropic", {"messages": [USED, ANSWER]}),
        ("anthropic", {"messages": [ASKED, ASKED]}),
        ("anthropic", {"messages": [{"role": "user", "content": " "}]}),
        ("anthropic", {"messages": [{"role": "user", "content": []}]}),
        ("openai_chat", [{"role": "tool", "tool_call_id": "a", "content": "blue"}]),
        ("openai_chat", [{"role": "function", "name": "look", "content": "blue"}]),
        ("openai_chat", [{"role": "assistant", "content": None}]),
        ("openai_responses", [ITEM]),
        ("openai_responses", [{"type": "function_call_output", "call_id": "a", "output": "blue"}]),
        ("openai_responses", [ITEM, {"type": "custom_tool_call_output", "call_id": "a", "output": "blue"}]),
        ("openai_responses", [{"type": "reasoning", "id": "rs_1", "summary": []}, ASKED]),
        ("mcp", {"messages": [USED]}),
        ("mcp", {"messages": [USED, {"role": "user", "content": {"type": "text", "text": "well?"}}]}),
    ],
)
def test_the_judge_of_rules_can_say_no(form: str, wrong: Any) -> None:
    assert judges.refusals(form, wrong)


@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ("anthropic", [{"role": "user", "content": [{"type": "text"}]}]),
        ("anthropic", [{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}]),
        ("openai_chat", [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]),
        ("openai_chat", [CALLED]),
        ("openai_responses", [{"type": "function_call", "call_id": "a"}]),
        ("openai_responses", [{"role": "user", "content": [{"type": "output", "text": "x"}]}]),
        ("mcp", [{"role": "tool", "content": {"type": "text", "text": "x"}}]),
    ],
)
def test_the_judge_of_types_can_say_no(form: str, wrong: Any) -> None:
    with pytest.raises(ValidationError):
        judges.typed(form, wrong)


# --- one by one: what a reader should be able to check by eye --------------------------------------------------------

LOOK = Call("call_1", "look", '{"at":"sea"}')


def test_results_have_a_message_of_their_own() -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "blue", "is_error": True},
        {"type": "text", "text": "and now?"},
    ]
    read = anthropic.read([{"role": "user", "content": blocks}])
    assert read == (Message(TOOL, (Result("t1", (Text("blue"),), error=True),)), user("and now?"))


def test_ours_win_over_what_was_read() -> None:
    """A window that clears a result or shortens a text keeps what else the provider said of it."""
    said = {"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}
    read = anthropic.read([{"role": "user", "content": [said]}])
    part = read[0].parts[0]
    assert isinstance(part, Text)
    changed = read[0]._replace(parts=(part._replace(text="short"),))
    assert anthropic.write([changed]) == {"messages": [{"role": "user", "content": [{**said, "text": "short"}]}]}
    answer = {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "long"}], "x": 1}
    kept = openai_chat.read([answer])[0].results()[0]
    cleared = Message(TOOL, (kept._replace(parts=(Text("cleared"),)),))
    expected = {**answer, "content": [{"type": "text", "text": "cleared"}]}
    assert openai_chat.write([assistant("", LOOK), cleared])[1] == expected


def test_a_result_moves_up_to_its_call() -> None:
    late = (user("go"), assistant("", LOOK), user("still there?"), result("call_1", "blue"))
    roles = [message["role"] for message in openai_chat.write(late)]
    assert roles == ["user", "assistant", "tool", "user"]
    assert [item.get("type", item.get("role")) for item in openai_responses.write(late)] == [
        "user",
        "function_call",
        "user",
        "function_call_output",
    ]


def test_words_among_results_follow_them() -> None:
    mixed = Message(TOOL, (Text("by the way"), Result("call_1", (Text("blue"),))))
    for form, module in FORMS.items():
        written = module.write((user("go"), assistant("", LOOK), mixed))
        assert judges.refusals(form, written) == []
        assert "by the way" in json.dumps(written)


def test_an_image_in_a_result_goes_to_a_user_message_in_chat() -> None:
    picture = Media("image/png", {"data": kit.PIXEL})
    two = (Call("a", "shoot", "{}"), Call("b", "look", "{}"))
    said = (user("go"), assistant("", *two), Message(TOOL, (Result("a", (picture,)),)), result("b", "ok"))
    written = openai_chat.write(said)
    assert [message["role"] for message in written] == ["user", "assistant", "tool", "tool", "user"]
    assert written[4]["content"][0]["image_url"]["url"].endswith(kit.PIXEL)


def test_a_failed_call_looks_failed_everywhere() -> None:
    said = (user("go"), assistant("", LOOK), result("call_1", "no such file", error=True))
    assert anthropic.write(said)["messages"][2]["content"][0]["is_error"] is True
    assert mcp.write(said)["messages"][2]["content"]["isError"] is True
    assert openai_chat.write(said)[2]["content"] == "Error: no such file"
    assert openai_responses.write(said)[2]["output"] == "Error: no such file"


def test_only_the_provider_that_signed_it_gets_thinking() -> None:
    signed = Thinking("hm", {"anthropic": {"type": "thinking", "thinking": "", "signature": "c2ln"}})
    said = (user("go"), Message(ASSISTANT, (signed, Text("done"))), Message(ASSISTANT, (Thinking("mine"),)))
    told = anthropic.write(said)["messages"]
    assert told[1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    assert len(told) == 2
    for form in ("openai_chat", "openai_responses", "mcp"):
        assert "hm" not in json.dumps(FORMS[form].write(said))
        assert "mine" not in json.dumps(FORMS[form].write(said))


def test_ids_that_a_provider_refuses_are_changed_in_pairs() -> None:
    said = (user("go"), assistant("", Call("a b" * 30, "look at", "{}")), result("a b" * 30, "blue"))
    use = anthropic.write(said)["messages"][1]["content"][0]
    assert use["id"] == anthropic.write(said)["messages"][2]["content"][0]["tool_use_id"] != "a b" * 30
    assert use["name"] == "look_at"
    again = (*said, *said)
    calls = [one["content"][0]["id"] for one in anthropic.write(again)["messages"] if one["role"] == "assistant"]
    assert len(set(calls)) == 2


def test_the_beginning_of_a_conversation() -> None:
    said = (system("Be kind."), system("Be short."), assistant("Hello."), user("Hi."), system("Hurry."), user("?"))
    written = anthropic.write(said)
    assert [block["text"] for block in written["system"]] == ["Be kind.", "Be short."]
    assert [message["role"] for message in written["messages"]] == ["user", "assistant", "user"]
    assert [block["text"] for block in written["messages"][2]["content"]] == ["Hi.", "[System] Hurry.", "?"]
    assert mcp.write(said)["systemPrompt"] == "Be kind.\n\nBe short."
    assert [message["role"] for message in openai_chat.write(said)] == [
        "system",
        "system",
        "assistant",
        "user",
        "system",
        "user",
    ]


def test_functions_from_before_tools() -> None:
    said = [
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "blue"},
    ]
    read = openai_chat.read(said)
    assert read[0].calls()[0].id == read[1].results()[0].call_id
    assert openai_chat.write(read) == said
    mended, _ = repair(read[:1])
    assert openai_chat.write(mended)[1]["role"] == "function"
    assert judges.refusals("openai_responses", openai_responses.write(read)) == []


def test_what_comes_out_can_be_changed_without_harm() -> None:
    said = {"messages": [{"role": "user", "content": [{"type": "hologram", "beam": {"angle": 1}}]}]}
    read = anthropic.read(said)
    said["messages"][0]["content"][0]["beam"]["angle"] = 2  # type: ignore[index]
    written = anthropic.write(read)
    written["messages"][0]["content"][0]["beam"]["angle"] = 3
    assert anthropic.write(read)["messages"][0]["content"][0]["beam"]["angle"] == 1


def test_the_models_of_the_sdks_are_read_as_dictionaries() -> None:
    from anthropic.types import TextBlock

    block = TextBlock.model_validate({"type": "text", "text": "hello"})
    assert anthropic.read([{"role": "assistant", "content": [block]}])[0].text() == "hello"


ODD = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "system", "tool", "function", "wizard"]) | kit.json_values,
        "content": kit.words | kit.blanks | kit.json_values | st.lists(kit.json_values | kit.objects, max_size=2),
        "type": st.sampled_from(["message", "reasoning", "function_call", "function_call_output"]) | kit.json_values,
        "tool_calls": kit.json_values,
        "function_call": kit.json_values,
        "refusal": kit.json_values,
        "audio": kit.json_values,
        "call_id": kit.json_values,
        "output": kit.json_values,
        "summary": kit.json_values,
    },
)


@forms
@given(odd=ODD)
def test_even_nonsense_comes_back_as_it_was(form: str, odd: Any) -> None:
    whole = {"messages": [odd]} if form in ("anthropic", "mcp") else [odd]
    written = FORMS[form].write(FORMS[form].read(whole))
    assert json.dumps(written) == json.dumps(whole)


def test_a_call_whose_arguments_are_no_text_is_refused_in_a_sentence() -> None:
    with pytest.raises(TypeError, match="the call of recall must be JSON text"):
        assistant("", Call("call_1", "recall", {"query": "casts"}))  # type: ignore[arg-type]
