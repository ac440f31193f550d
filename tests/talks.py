"""Random conversations, for tests of the window: parallel calls, pictures, thinking, orphans, empty turns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from limpet.window.messages import (
    ASSISTANT,
    TOOL,
    USER,
    Call,
    Media,
    Message,
    Other,
    Part,
    Result,
    Text,
    Thinking,
    assistant,
    result,
    user,
)

WORDS = (
    "Port the parser to two tokens of lookahead.",
    "We decided to use port 8443 rather than 443.",
    "- [ ] write tests for casts",
    "- [x] write tests for casts",
    "Never push to main; ask Ada first.",
    "See src/parser/casts.py:40-52 and ticket PAR-118.",
    "The timeout is 2,500 ms at 97 % load.",
    "TODO: remove the old lexer",
    "",
    "日本語のメモ 42",
    "nul \x00 and half \udc80",
    "x" * 900,
)
texts = st.lists(st.sampled_from(WORDS), min_size=0, max_size=4).map("\n".join)
raws: st.SearchStrategy[Mapping[str, Any]] = st.sampled_from(
    ({}, {"cache_control": {"type": "ephemeral"}}, {"deep": [1, None, {"a": "ü"}]})
)
plain_parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, texts, raws),
    st.builds(Thinking, texts, raws),
    st.builds(Media, st.just("image/png"), raws),
    st.builds(Other, raws),
)


@st.composite
def units(draw: st.DrawFn, number: int) -> list[Message]:
    """One unit, with call ids that no other unit has."""
    kind = draw(st.sampled_from(("user", "user", "say", "calls", "calls", "calls", "parts", "orphan", "empty")))
    if kind != "calls":
        return [_alone(draw, kind, number)]
    ids = [f"c{number}-{at}" for at in range(draw(st.integers(1, 3)))]
    calls = tuple(Call(id, draw(st.sampled_from(("shell", "read_file", "write_file"))), _arguments(draw)) for id in ids)
    said = Message(ASSISTANT, ((Text(draw(texts)),) if draw(st.booleans()) else ()) + calls)
    results = [Result(id, (Text(draw(texts) * draw(st.sampled_from((1, 1, 20)))),), draw(st.booleans())) for id in ids]
    if draw(st.booleans()):
        return [said, Message(TOOL, tuple(results))]
    return [said, *(Message(TOOL, (one,)) for one in results)]


def _alone(draw: st.DrawFn, kind: str, number: int) -> Message:
    if kind == "parts":
        role = draw(st.sampled_from((USER, ASSISTANT)))
        return Message(role, tuple(draw(st.lists(plain_parts, max_size=3))), draw(raws))
    if kind == "orphan":
        return result(f"lost{number}", draw(texts))
    if kind == "empty":
        return Message(ASSISTANT, ())
    return user(draw(texts)) if kind == "user" else assistant(draw(texts))


def _arguments(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(('{"command": "make test"}', '{"path": "src/a.py"}', json.dumps({"n": 7}), "not json")))


@st.composite
def histories(draw: st.DrawFn, most: int = 14) -> list[Message]:
    count = draw(st.integers(0, most))
    return [message for number in range(count) for message in draw(units(number))]
