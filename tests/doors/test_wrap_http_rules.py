"""What MCP's streamable HTTP asks of a client: addresses, headers and streams of events."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doors.mcp_client import MODERN, meta
from limpet import errors
from limpet.doors.proxy import http_rules as http


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")), st.none() | st.text("ab1")
        )
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 200)),
)
def test_a_stream_is_read_the_same_however_it_arrives(
    wanted: list[tuple[str, str | None]], end: str, cuts: list[int]
) -> None:
    parts = []
    for data, id in wanted:
        parts += [f"data: {data}", *([] if id is None else [f"id: {id}"]), ": a comment", ""]
    stream = (end.join(parts) + end).encode() if parts else b""
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert [(event.data.decode(), event.id) for event in http.events(chunks)] == wanted


def test_fields_of_events() -> None:
    stream = b"event: other\ndata: no\n\nretry: 50\nid: 7\ndata:\n\ndata: {\ndata: }\n\ndata: cut off\n"
    assert list(http.events([stream])) == [http.StreamEvent(b"", "7", 50), http.StreamEvent(b"{\n}", None, None)]
    assert list(http.events([b"id: a\0b\nretry: x\nnonsense\n\n"])) == []


@given(st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_one_line_says_the_same(value: Any) -> None:
    line = http.one_line(json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line.decode("utf-8", "surrogatepass")) == value


@pytest.mark.parametrize(
    ("url", "place", "shown"),
    [
        ("http://a", (False, "a", 80, "/"), "http://a/"),
        ("https://a.test:8443/mcp?key=1", (True, "a.test", 8443, "/mcp?key=1"), "https://a.test:8443/mcp"),
        ("http://[::1]:9/x", (False, "::1", 9, "/x"), "http://[::1]:9/x"),
    ],
)
def test_places(url: str, place: tuple[object, ...], shown: str) -> None:
    assert http.address_of(url) == place
    assert http.address_of(url).shown == shown


@pytest.mark.parametrize(
    ("location", "path"),
    [("/b", "/b"), ("c", "/c"), ("https://a/d", "/d"), ("http://a/d", None), ("https://b/d", None), ("", "/mcp")],
)
def test_redirects_stay_on_the_server(location: str, path: str | None) -> None:
    found = http.redirected(http.address_of("https://a/mcp"), location)
    assert (None if found is None else found.path) == path


@pytest.mark.parametrize("name", ["Host", "content-length", "MCP-Protocol-Version", "two words", "", "é"])
def test_headers_that_are_not_theirs_to_set(name: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        http.header(name, "a secret")
    assert "secret" not in caught.value.message


def test_headers_of_a_message() -> None:
    mirrored = http.mirrored_arguments(
        {
            "result": {
                "tools": [
                    {
                        "name": "t",
                        "inputSchema": {
                            "properties": {
                                "a": {"type": "string", "x-mcp-header": "A"},
                                "b": {"properties": {"c": {"type": "boolean", "x-mcp-header": "C"}}},
                                "d": {"type": "string", "x-mcp-header": "not a token"},
                            }
                        },
                    },
                    {"name": "u"},
                    5,
                ]
            }
        }
    )
    assert mirrored == {"t": {("a",): "A", ("b", "c"): "C"}}
    call: dict[str, Any] = {
        "method": "tools/call",
        "params": {"name": "t", "arguments": {"a": " é", "b": {"c": True}}, "_meta": meta()},
    }
    assert http.message_headers(call, mirrored) == {
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "t",
        "Mcp-Param-A": "=?base64?IMOp?=",
        "Mcp-Param-C": "true",
    }
    del call["params"]["_meta"]
    assert http.message_headers(call, mirrored) == {}
    for listed in (None, {}, {"result": 5}, {"result": {"tools": 5}}):
        assert http.mirrored_arguments(listed) == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'{"id": 1, "result": {}}', {1}),
        (b'[{"id": 1, "result": {}}, {"id": "b", "error": {}}, {"id": 3, "method": "x"}]', {1, "b"}),
        (b'{"id": 1, "method": "x"}', set()),
        (b'{"method": "x"}', set()),
        (b"{", None),
        (b"5", None),
        (b"[5]", None),
    ],
)
def test_what_a_line_answers(line: bytes, found: object) -> None:
    assert http.answered(line) == found
