"""Random conversations for tests: legal ones in each provider's own form, and broken ones in ours. And two judges.

`legal(form)` draws conversations that the provider would accept; `histories()` draws messages of ours with everything
that goes wrong in life: orphans, lost results, blank turns, ids used twice, parts in the wrong place.

`refusals(form, native)` reads a provider's documented rules off the native form, without any code of ours;
`typed(form, native)` asks the types of the official SDK.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import strategies as st

from limpet.window.messages import ASSISTANT, SYSTEM, TOOL, USER, Call, Media, Message, Other, Result, Text, Thinking

FORMS = ("anthropic", "openai_chat", "openai_responses", "mcp")
PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
    )
).decode()

words = st.one_of(
    st.sampled_from(["Fix the parser.", "Ünïcödé 日本語 🎉", "a\nb\n\n```py\nx = 1\n```", "<|endoftext|>", "-1e9 ok"]),
    st.text(min_size=1, max_size=30),
).filter(lambda text: bool(text.strip()))
blanks = st.sampled_from(["", " ", "\n\t"])
names = st.from_regex(r"[a-zA-Z0-9_-]{1,20}", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(words, json_values, max_size=3)
_no_extras: list[dict[str, Any]] = [{}, {}, {}]
extras = st.sampled_from([*_no_extras, {"x_future": {"deep": [1, None]}}, {"x_note": "keep me"}])


def mixed(one: dict[str, Any], extra: dict[str, Any], front: bool) -> dict[str, Any]:
    return {**extra, **one} if front else {**one, **extra}


@st.composite
def with_extras(draw: st.DrawFn, one: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    """The dictionary, perhaps with fields nobody has told us about, before or after its own."""
    return mixed(draw(one), draw(extras), draw(st.booleans()))


class _Ids:
    """Ids that are used once, in the style of the provider."""

    def __init__(self, style: str) -> None:
        self.style, self.given = style, 0

    def next(self) -> str:
        self.given += 1
        return self.style.format(self.given)


# --- Anthropic -------------------------------------------------------------------------------------------------------

_a_text = with_extras(words.map(lambda text: {"type": "text", "text": text}))
_a_cached = words.map(lambda text: {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}})
_a_image = st.sampled_from(
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/cat.png"}},
        {"source": {"file_id": "file_1", "type": "file"}, "type": "image"},
    ]
)
_a_document = st.sampled_from(
    [
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a page"}, "title": "T"},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a page"}]}},
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "found"}]},
    ]
)
_a_said = st.one_of(_a_text, _a_cached, _a_image, _a_document)
_a_content = words | st.lists(_a_said, min_size=1, max_size=3)
_a_future = st.just({"type": "hologram", "beam": {"angle": 0.5}, "frames": [1, 2]})
_a_thought = st.sampled_from(
    [
        {"type": "thinking", "thinking": "let me see", "signature": "c2ln"},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
    ]
)
_a_searched = st.sampled_from(
    [
        [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        ]
    ]
)


@st.composite
def _a_result(draw: st.DrawFn, call: str) -> dict[str, Any]:
    one: dict[str, Any] = {"type": "tool_result", "tool_use_id": call}
    shape = draw(st.sampled_from(["none", "empty", "string", "list"]))
    if shape == "string":
        one["content"] = draw(words)
    elif shape != "none":
        one["content"] = draw(st.lists(_a_said, min_size=1, max_size=2)) if shape == "list" else ""
    if draw(st.booleans()):
        one["is_error"] = draw(st.booleans())
    return mixed(one, draw(extras), front=False)


@st.composite
def _anthropic(draw: st.DrawFn) -> dict[str, Any]:
    ids = _Ids("toolu_01{:04}")
    messages: list[Any] = []
    for _ in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(_a_content)})
        if draw(st.integers(0, 9)) == 0:
            messages.append({"role": "system", "content": draw(words)})
        blocks = draw(st.lists(_a_thought, max_size=1)) + draw(st.just([]) | _a_searched)
        blocks += draw(st.lists(_a_text | _a_future, max_size=2))
        calls = [ids.next() for _ in range(draw(st.integers(0, 3)))]
        for call in calls:
            use = {"type": "tool_use", "id": call, "name": draw(names), "input": draw(objects)}
            blocks.append(mixed(use, draw(extras), draw(st.booleans())))
        if not calls:
            text = draw(words)
            messages.append({"role": "assistant", "content": [*blocks, {"type": "text", "text": text}]})
            if draw(st.booleans()):
                messages[-1]["content"] = text
        else:
            messages.append({"role": "assistant", "content": blocks})
            results = [draw(_a_result(call)) for call in draw(st.permutations(calls))]
            messages.append({"role": "user", "content": results + draw(st.lists(_a_said, max_size=2))})
    body: dict[str, Any] = {"messages": [mixed(one, draw(extras), front=False) for one in messages]}
    if draw(st.booleans()):
        body = {"system": draw(words | st.lists(_a_text | _a_cached, min_size=1, max_size=2)), **body}
    return body


# --- OpenAI Chat -----------------------------------------------------------------------------------------------------

_c_text = with_extras(words.map(lambda text: {"type": "text", "text": text}))
_c_media = st.sampled_from(
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ]
)
_c_said = words | st.lists(_c_text | _c_media, min_size=1, max_size=3)
_c_reply = words | st.lists(_c_text | st.just({"type": "refusal", "refusal": "No."}), min_size=1, max_size=2)


@st.composite
def _c_call(draw: st.DrawFn, call: str) -> dict[str, Any]:
    if draw(st.integers(0, 5)) == 0:
        return {"id": call, "type": "custom", "custom": {"name": draw(names), "input": draw(words)}}
    arguments = draw(objects.map(json.dumps) | st.sampled_from(["{}", "", '{"broken', "[1]", '{ "spaced" : 1 }']))
    one = {"id": call, "type": "function", "function": {"name": draw(names), "arguments": arguments}}
    return mixed(one, draw(extras), draw(st.booleans()))


@st.composite
def _openai_chat(draw: st.DrawFn) -> list[Any]:
    ids = _Ids("call_{:024}")
    out: list[Any] = []
    if draw(st.booleans()):
        out.append({"role": draw(st.sampled_from(["system", "developer"])), "content": draw(words)})
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["user", "user", "reply", "calls", "calls", "function", "system"]))
        if kind == "user":
            out.append(mixed({"role": "user", "content": draw(_c_said)}, draw(extras), draw(st.booleans())))
        elif kind == "system":
            out.append({"role": "system", "content": draw(words | st.lists(_c_text, min_size=1, max_size=2))})
        elif kind == "reply":
            reply: dict[str, Any] = {"role": "assistant", "content": draw(_c_reply)}
            out.append(mixed(reply, draw(st.sampled_from([{}, {"refusal": None}, {"name": "bob"}])), front=False))
            if draw(st.integers(0, 5)) == 0:
                out.append({"role": "assistant", "content": None, "refusal": draw(words)})
                out.append({"role": "assistant", "audio": {"id": "audio_1"}})
        elif kind == "function":
            function = {"name": draw(names), "arguments": draw(objects.map(json.dumps))}
            out.append({"role": "assistant", "content": None, "function_call": function})
            out.append({"role": "function", "name": function["name"], "content": draw(words)})
        else:
            calls = [ids.next() for _ in range(draw(st.integers(1, 3)))]
            silent: list[dict[str, Any]] = [{"content": None}, {"content": ""}, {}]
            said = draw(st.sampled_from(silent) | _c_reply.map(_content))
            out.append({"role": "assistant", **said, "tool_calls": [draw(_c_call(call)) for call in calls]})
            for call in draw(st.permutations(calls)):
                answer = draw(words | st.just("") | st.lists(_c_text, min_size=1, max_size=2))
                out.append({"role": "tool", "tool_call_id": call, "content": answer, **draw(extras)})
    return out


def _content(said: Any) -> dict[str, Any]:
    return {"content": said}


# --- OpenAI Responses ------------------------------------------------------------------------------------------------

_r_in = st.one_of(
    with_extras(words.map(lambda text: {"type": "input_text", "text": text})),
    st.sampled_from(
        [
            {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PIXEL}"},
            {"type": "input_image", "detail": "low", "file_id": "file-1"},
            {"type": "input_file", "file_url": "https://example.com/a.pdf"},
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        ]
    ),
)
_r_out = words.map(lambda text: {"type": "output_text", "text": text, "annotations": []}) | st.just(
    {"type": "refusal", "refusal": "No."}
)
_r_hosted = st.sampled_from(
    [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "item_reference", "id": "msg_9"},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "b3BhcXVl"},
        {"type": "hologram", "beam": [1, {"a": None}]},
    ]
)


@st.composite
def _r_reply(draw: st.DrawFn, ids: _Ids) -> list[Any]:
    out: list[Any] = []
    if draw(st.booleans()):
        thought = {"type": "reasoning", "id": f"rs_{ids.next()}", "summary": [{"type": "summary_text", "text": "hm"}]}
        out.append(mixed(thought, draw(st.sampled_from([{}, {"encrypted_content": "ZW5j"}])), front=False))
    if draw(st.booleans()):
        return [*out, {"role": "assistant", "content": draw(words)}]
    content = draw(st.lists(_r_out, min_size=1, max_size=2))
    message = {"type": "message", "id": f"msg_{ids.next()}", "role": "assistant", "status": "completed"}
    return [*out, {**message, "content": content, **draw(extras)}]


@st.composite
def _openai_responses(draw: st.DrawFn) -> list[Any]:
    ids = _Ids("call_{:026}")
    out: list[Any] = []
    for _ in range(draw(st.integers(1, 4))):
        role = draw(st.sampled_from(["user", "user", "developer", "system"]))
        typed = draw(st.sampled_from([{}, {"type": "message"}]))
        out.append({**typed, "role": role, "content": draw(words | st.lists(_r_in, min_size=1, max_size=2))})
        out += draw(st.lists(_r_hosted, max_size=1)) + draw(st.just([]) | _r_reply(ids))
        waiting = []
        for _ in range(draw(st.integers(0, 3))):
            call, name = ids.next(), draw(names)
            if draw(st.integers(0, 3)) == 0:
                out.append({"type": "custom_tool_call", "call_id": call, "name": name, "input": draw(words)})
                waiting.append(("custom_tool_call_output", call))
            else:
                arguments = draw(objects.map(json.dumps))
                one = {"type": "function_call", "call_id": call, "name": name, "arguments": arguments}
                out.append(mixed(one, {"id": f"fc_{call}", "status": "completed"}, draw(st.booleans())))
                waiting.append(("function_call_output", call))
        late = draw(st.booleans())
        for kind, call in draw(st.permutations(waiting)):
            if late and draw(st.booleans()):
                out.append({"role": "assistant", "content": draw(words)})
            output = draw(words | st.just("") | st.lists(_r_in, min_size=1, max_size=2))
            out.append({"type": kind, "call_id": call, "output": output})
    return out


# --- MCP -------------------------------------------------------------------------------------------------------------

_m_text = words.map(lambda text: {"type": "text", "text": text}) | words.map(
    lambda text: {"type": "text", "text": text, "annotations": {"priority": 0.5}}
)
_m_said = _m_text | st.sampled_from(
    [
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    ]
)
_m_answer = _m_said | st.sampled_from(
    [
        {"type": "resource_link", "uri": "file:///a.txt", "name": "a", "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": "file:///b.txt", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///c.bin", "blob": "AAAA"}},
    ]
)
tool_answers = st.builds(
    lambda content, rest: {"content": content, **rest},
    st.lists(_m_answer, max_size=3),
    st.sampled_from([{}, {"isError": True}, {"isError": False}, {"structuredContent": {"n": 1}}, {"_meta": {"k": 1}}]),
)


@st.composite
def _mcp(draw: st.DrawFn) -> dict[str, Any]:
    ids = _Ids("call_{}")
    messages: list[Any] = []
    for _ in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(_m_said | st.lists(_m_said, min_size=1, max_size=2))})
        blocks = draw(st.lists(_m_said, max_size=2))
        calls = [ids.next() for _ in range(draw(st.integers(0, 3)))]
        blocks += [{"type": "tool_use", "id": call, "name": draw(names), "input": draw(objects)} for call in calls]
        if blocks:
            alone = len(blocks) == 1 and draw(st.booleans())
            messages.append({"role": "assistant", "content": blocks[0] if alone else blocks})
        if calls:
            answers = [{"type": "tool_result", "toolUseId": call, **draw(tool_answers)} for call in calls]
            messages.append({"role": "user", "content": answers, **draw(st.sampled_from([{}, {"_meta": {"a": 1}}]))})
    return {"systemPrompt": draw(words), "messages": messages} if draw(st.booleans()) else {"messages": messages}


def legal(form: str) -> st.SearchStrategy[Any]:
    """Conversations that the provider accepts, in its own form."""
    return {
        "anthropic": _anthropic(),
        "openai_chat": _openai_chat(),
        "openai_responses": _openai_responses(),
        "mcp": _mcp(),
    }[form]


# --- our own messages ------------------------------------------------------------------------------------------------

_texts = (words | blanks).map(Text)
_media = st.sampled_from(
    [
        Media("image/png", {"data": PIXEL}),
        Media("image/*", {"url": "https://example.com/cat.png"}),
        Media("image/tiff", {"data": "AAAA"}),
        Media("audio/wav", {"data": "UklGRg=="}),
        Media("application/pdf", {"data": "JVBERi0="}),
        Media("application/pdf", {"url": "https://example.com/a.pdf"}),
        Media("text/csv", {"text": "a,b\n1,2"}),
        Media("video/mp4", {"elsewhere": {"type": "video", "source": {}}}),
    ]
)
_ids = st.sampled_from(["a", "b", "call_1", "an id with spaces", "x" * 90, "日本", ""])
_arguments = objects.map(json.dumps) | st.sampled_from(["", "{", "[]", "free text"])
_calls = st.tuples(_ids, names | words, _arguments).map(lambda one: Call(*one))
_result_parts = st.lists(_texts | _media, max_size=2).map(tuple)
_results = st.tuples(_ids, _result_parts, st.booleans()).map(lambda one: Result(*one))
_thinking = st.sampled_from(
    [
        Thinking("hm"),
        Thinking("let me see", {"anthropic": {"type": "thinking", "thinking": "", "signature": "c2ln"}}),
        Thinking("", {"openai_responses": {"type": "reasoning", "id": "rs_1", "summary": []}}),
    ]
)
_others = st.sampled_from([Other({"elsewhere": {"type": "hologram"}}), Other()])


@st.composite
def histories(draw: st.DrawFn, *, stray: bool = True) -> tuple[Message, ...]:
    """Conversations of ours with everything that goes wrong; with `stray`, parts in messages where none belongs too."""
    parts = {
        SYSTEM: [_texts],
        USER: [_texts, _texts, _media, _others],
        ASSISTANT: [_texts, _thinking, _calls, _calls, _others],
        TOOL: [_results],
    }
    if stray:
        parts[USER] += [_calls, _results, _thinking]
        parts[TOOL] += [_texts, _others]
    out = []
    for _ in range(draw(st.integers(0, 9))):
        role = draw(st.sampled_from([SYSTEM, USER, USER, ASSISTANT, ASSISTANT, ASSISTANT, TOOL, TOOL, TOOL, TOOL]))
        out.append(Message(role, tuple(draw(st.lists(st.one_of(parts[role]), max_size=4)))))
    return tuple(out)
