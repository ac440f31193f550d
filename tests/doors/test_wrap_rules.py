"""What `limpet wrap` changes in a message, and that it changes nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.doors.proxy import rewrite as rules
from limpet.outputs.policy import Policy
from limpet.text.json_spans import EACH, edited, scan_planned

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
IDS = st.integers(-(10**17), 10**17) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TOOLS: list[dict[str, Any]] = [{"name": name, "inputSchema": {}} for name in rules.READ_TOOLS]


@given(PLAIN, IDS, st.sampled_from(["result", "error"]), st.booleans(), st.booleans())
def test_the_id_of_a_reply_is_found_or_left_to_the_decoder(
    value: Any, id: Any, kind: str, first: bool, ascii_only: bool
) -> None:
    message = {"jsonrpc": "2.0", "id": id, kind: value} if first else {kind: value, "jsonrpc": "2.0", "id": id}
    line = json.dumps(message, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") + b"\n"
    found = rules.reply_id(line)
    assert found in (None, id)
    assert rules.may_be_reply(line)
    if isinstance(id, int):
        assert found == id


@given(PLAIN, IDS)
def test_no_request_is_taken_for_a_reply(params: Any, id: Any) -> None:
    for message in (
        {"jsonrpc": "2.0", "id": id, "method": "a", "params": params},
        {"method": "a", "params": params, "jsonrpc": "2.0", "id": id},
        {"method": "a", "params": {"result": params, "id": id}},
    ):
        assert rules.reply_id(json.dumps(message).encode()) is None


@given(PLAIN, st.sampled_from([None, 1]))
def test_positions_are_those_of_the_values(value: Any, indent: int | None) -> None:
    text = json.dumps({"a": {"b": [value, {"c": value}]}, "x": value}, indent=indent)
    top = scan_planned(text, {"a": {"b": {EACH: {}}}})
    outer = top.get("a")
    assert outer is not None
    inner, x = outer.get("b"), top.get("x")
    assert inner is not None
    assert x is not None
    first, second = inner.items
    assert json.loads(text[x.start : x.stop]) == value
    assert json.loads(text[first.start : first.stop]) == value
    assert json.loads(text[second.start : second.stop]) == {"c": value}
    assert (top.start, top.stop) == (0, len(text))


@pytest.mark.parametrize(
    "text", ["", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,', "{1:2}", '{"a":1 "b":2}', "[1 2]", "["]
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        scan_planned(text, {"a": {}, EACH: None})


def reply(text: str, **more: Any) -> str:
    return json.dumps({"result": {"content": [{"type": "text", "text": text}], **more}, "id": 1})


@pytest.mark.parametrize(
    ("text", "big"), [("x" * 99, False), ("x" * 100, True), ("é" * 49, False), ("é" * 50, True), ("😀" * 25, True)]
)
def test_the_threshold_counts_bytes_and_equal_is_big(text: str, big: bool) -> None:
    assert bool(kept(reply(text))) == big


def test_only_text_items_are_taken() -> None:
    big = "x" * 200
    odd: list[Any] = [
        *(
            {"type": "image", "data": big},
            {"type": "resource", "resource": {"text": big}},
            {"type": "audio", "text": big},
        ),
        *({"text": big}, {"type": "text"}, {"type": "text", "text": 7}, {"type": "text", "text": [big]}, big, 5, None),
    ]
    for result in ({"content": odd}, {"content": big}, {"content": {"text": big}}, {"contents": odd}, big, None, {}):
        assert kept(json.dumps({"result": result})) is None
    assert kept(json.dumps({"error": {"code": 1, "message": big}})) is None


def kept(text: str) -> Any:
    """A reply with [KEPT n] in the place of what is kept."""
    texts: list[str] = []

    def keep(content: str) -> str:
        texts.append(content)
        return f"[KEPT {len(content)}]"

    edits = rules.kept(text, Policy(100, True), keep)
    return json.loads(edited(text, edits))["result"] if edits else None


BIG_ROWS = {"rows": ["x" * 50] * 5}


def test_structured_content_goes_with_the_text_that_says_the_same() -> None:
    rows, more = ["y" * 60, "z" * 60], {**BIG_ROWS, "count": 5}
    # Each server has its own name for the one thing in it: the official ones say "content" and "entities".
    for said, value in ((more, more), (rows, {"result": rows}), (rows, {"entities": rows}), (rows, {"a": {"b": rows}})):
        result = kept(reply(json.dumps(said, indent=2), structuredContent=value))
        assert list(result) == ["content"]
        assert len(result["content"]) == (2 if "a" in value else 1)
    for name in ("result", "content"):
        assert kept(reply("x" * 200, structuredContent={name: "x" * 200})) == kept(reply("x" * 200))


def test_what_structured_content_says_besides_becomes_text() -> None:
    small = kept(reply("x" * 200, structuredContent={"count": 3}))
    assert [part["text"] for part in small["content"]] == ["[KEPT 200]", '{"count": 3}']
    big = kept(reply("x" * 200, structuredContent=BIG_ROWS))
    assert [part["text"][:5] for part in big["content"]] == ["[KEPT", "[KEPT"]
    assert "structuredContent" not in small.keys() | big.keys()


def test_small_texts_beside_big_structured_content_are_replaced_too() -> None:
    image = {"type": "image", "data": "AAAA"}
    items = [{"type": "text", "text": "x" * 50}, image, {"type": "text", "text": "y" * 50}]
    text = json.dumps({"result": {"structuredContent": BIG_ROWS, "content": items, "_meta": {}}, "id": 1})
    result = kept(text)
    assert result["content"][0] == image
    assert [part["type"] for part in result["content"]] == ["image", "text"]
    assert result.keys() == {"content", "_meta"}
    only = kept(json.dumps({"result": {"structuredContent": BIG_ROWS}}))
    assert [part["type"] for part in only["content"]] == ["text"]
    assert kept(reply("small", structuredContent={"n": 1})) is None


def test_output_schemas_are_not_listed_unless_they_are_kept() -> None:
    tools = [{"name": "a", "outputSchema": {"type": "object"}, "x": 1}, {"outputSchema": {}, "name": "b"}]
    text = json.dumps({"result": {"tools": tools}})
    listed = json.loads(rules.ToolList().add_to(text, []))["result"]["tools"]
    assert listed == [{"name": "a", "x": 1}, {"name": "b"}]
    keeping = rules.ToolList(keep_schemas=True)
    assert json.loads(keeping.add_to(text, []))["result"]["tools"] == tools
    assert keeping.keeps_schema("a")
    assert not keeping.keeps_schema("c")


def test_our_tools_come_after_those_of_the_upstream() -> None:
    listing = rules.ToolList()
    text = '{"id": 1, "result" : {"tools":[ {"name":"a","x":1.50} ], "_meta":{}}}\n'
    new = listing.add_to(text, TOOLS)
    assert new.startswith('{"id": 1, "result" : {"tools":[ {"name":"a","x":1.50} ,{"name":"read_output"')
    assert new.endswith("]" + ', "_meta":{}}}\n')
    assert [tool["name"] for tool in json.loads(new)["result"]["tools"]] == ["a", *rules.READ_TOOLS]
    assert json.loads(rules.ToolList().add_to('{"result":{"tools":[]}}', TOOLS))["result"]["tools"] == TOOLS


@pytest.mark.parametrize("text", ['{"error":{"code":1}}', '{"result":{}}', '{"result":{"tools":5}}', '{"result":null}'])
def test_other_answers_to_a_listing_stay(text: str) -> None:
    assert rules.ToolList().add_to(text, TOOLS) is text


def test_a_name_that_is_taken_stays_with_the_upstream() -> None:
    listing = rules.ToolList()
    text = json.dumps({"result": {"tools": [{"name": "read_output"}]}})
    names = [tool["name"] for tool in json.loads(listing.add_to(text, TOOLS))["result"]["tools"]]
    assert names == ["read_output", "limpet_read_output", "list_outputs"]
    assert listing.read_tool("read_output") is None
    assert listing.read_tool("limpet_read_output") == "read_output"
    both = json.dumps({"result": {"tools": [{"name": name} for name in ("read_output", "limpet_read_output")]}})
    assert "list_outputs" in listing.add_to(both, TOOLS)
    assert listing.name("read_output") is None
    listing.restart()
    assert listing.read_tool("read_output") == "read_output"


def test_references_are_whole_strings_among_the_arguments() -> None:
    arguments = {
        "a": "hold://0123456789ab",
        "hold://0123456789ab": 1,
        "b": [{"c": "hold://0123456789ab#/x y/0"}, "see hold://0123456789ab", "hold://0123456789ab is it", "hold://"],
        "d": 'a string with "hold://0123456789ab" in it',
        "e": '\\"hold://0123456789ab',
    }
    message = {"method": "tools/call", "params": {"name": "hold://0123456789ab", "arguments": arguments}}
    for text in (json.dumps(message), json.dumps(message).replace("/", "\\/"), json.dumps(message, indent=1)):
        found = list(rules.references(text))
        assert [place.value for place in found] == ["hold://0123456789ab", "hold://0123456789ab#/x y/0"]
        new = json.loads(edited(text, [(place.start, place.stop, '"T"') for place in found]))
        assert new["params"]["arguments"]["a"] == new["params"]["arguments"]["b"][0]["c"] == "T"
        assert new["params"]["arguments"]["d"] == arguments["d"]
        assert new["params"]["name"] == message["params"]["name"]  # type: ignore[index]


@pytest.mark.parametrize("text", ['{"params":5}', '{"params":{}}', "{}", '{"params":{"arguments":null}}'])
def test_no_arguments_have_no_references(text: str) -> None:
    assert list(rules.references(text)) == []


@given(PLAIN)
def test_arguments_without_references_are_left_alone(value: Any) -> None:
    text = json.dumps({"params": {"arguments": {"a": value}}})
    assert edited(text, []) == text
    assert list(rules.references(text)) == []
