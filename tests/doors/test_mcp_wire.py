"""JSON-RPC messages: what is read, what is refused, and with which words."""

from __future__ import annotations

import io
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.protocol import jsonrpc

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def refusal(line: bytes) -> jsonrpc.RpcError:
    with pytest.raises(jsonrpc.RpcError) as caught:
        jsonrpc.message(jsonrpc.decode(line))
    return caught.value


@given(JSON.filter(lambda value: not _surrogates(value)))
def test_what_is_written_can_be_read_back(value: object) -> None:
    data = jsonrpc.encode(value)
    assert b"\n" not in data
    assert jsonrpc.decode(data) == value


def _surrogates(value: object) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in json.dumps(value, ensure_ascii=False))


@given(st.binary())
def test_any_bytes_are_read_or_refused(line: bytes) -> None:
    with suppress(jsonrpc.RpcError):
        jsonrpc.message(jsonrpc.decode(line))


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"\xff\xfe",
        b'{"jsonrpc": "2.0",}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 5_000,
        b"\x00",
        b'"\xed\xa0\x80"',
    ],
    ids=["cut off", "not UTF-8", "comma", "deep list", "deep object", "long number", "NUL", "raw surrogate"],
)
def test_what_is_not_json_is_a_parse_error(line: bytes) -> None:
    problem = refusal(line)
    assert problem.code == jsonrpc.PARSE_ERROR
    assert problem.id is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_what_is_not_a_number_is_refused_by_id(number: str) -> None:
    problem = refusal(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":%s}}' % number.encode())
    assert problem.code == jsonrpc.PARSE_ERROR
    assert problem.id == 7
    assert number in problem.message


def test_what_is_not_a_number_in_a_broken_message_is_refused_without_an_id() -> None:
    assert refusal(b'{"id":7,"a":NaN').id is None


@pytest.mark.parametrize("text", [r"\ud800", r"\uDC00 and more", r"\ud83d\u0041", r"a\uDFFF"])
def test_half_a_character_is_refused_by_id(text: str) -> None:
    line = b'{"jsonrpc":"2.0","id":"x","method":"ping","params":{"a":"%s"}}' % text.encode()
    problem = refusal(line)
    assert problem.code == jsonrpc.INVALID_REQUEST
    assert problem.id == "x"


def test_a_whole_character_in_two_escapes_is_read() -> None:
    assert jsonrpc.decode(rb'"\ud83d\ude00"') == "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    ("message", "code", "id"),
    [
        (1, jsonrpc.INVALID_REQUEST, None),
        ("ping", jsonrpc.INVALID_REQUEST, None),
        ({}, jsonrpc.INVALID_REQUEST, None),
        ({"id": 1, "method": "ping"}, jsonrpc.INVALID_REQUEST, 1),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, jsonrpc.INVALID_REQUEST, 1),
        ({"jsonrpc": "2.0", "id": 1}, jsonrpc.INVALID_REQUEST, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": 2}, jsonrpc.INVALID_REQUEST, 1),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, jsonrpc.INVALID_REQUEST, None),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, jsonrpc.INVALID_REQUEST, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, jsonrpc.INVALID_REQUEST, None),
        ({"jsonrpc": "2.0", "id": [], "method": "ping"}, jsonrpc.INVALID_REQUEST, None),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, jsonrpc.INVALID_PARAMS, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}, jsonrpc.INVALID_PARAMS, 1),
    ],
)
def test_a_message_of_the_wrong_shape_is_refused(message: object, code: int, id: int | None) -> None:
    problem = refusal(json.dumps(message).encode())
    assert (problem.code, problem.id) == (code, id)


def test_a_reply_is_nothing_to_answer() -> None:
    assert jsonrpc.message({"jsonrpc": "2.0", "id": 1, "result": {}}) is None
    assert jsonrpc.message({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}}) is None


def test_absent_params_are_empty() -> None:
    message = jsonrpc.message({"jsonrpc": "2.0", "id": 0, "method": "ping"})
    assert message is not None
    assert (message.id, message.method, message.params) == (0, "ping", {})


def test_lines_are_read_one_by_one() -> None:
    stream = io.BytesIO(b"1\n\n  \r\n2\r\n3")
    assert [jsonrpc.read_line(stream) for _ in range(4)] == [b"1\n", b"2\r\n", b"3", None]


@pytest.mark.parametrize("length", [11, 20, 21, 1000])
def test_a_line_over_the_limit_is_skipped_and_the_next_one_read(length: int) -> None:
    stream = io.BytesIO(b"x" * length + b"\nnext\n")
    with pytest.raises(jsonrpc.RpcError, match="longer than 10 bytes"):
        jsonrpc.read_line(stream, limit=10)
    assert jsonrpc.read_line(stream, limit=10) == b"next\n"


def test_a_line_at_the_limit_is_read() -> None:
    assert jsonrpc.read_line(io.BytesIO(b"x" * 10 + b"\n"), limit=10) == b"x" * 10 + b"\n"
    assert jsonrpc.read_line(io.BytesIO(b"x" * 10), limit=10) == b"x" * 10


def test_a_line_over_the_limit_at_the_end_is_refused() -> None:
    stream = io.BytesIO(b"x" * 25)
    with pytest.raises(jsonrpc.RpcError):
        jsonrpc.read_line(stream, limit=10)
    assert jsonrpc.read_line(stream, limit=10) is None
