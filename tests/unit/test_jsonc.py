"""JSON with comments, edited in place: what an edit does not name stays byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.text import json_spans

CONFIG = """{
  // the servers of this project
  "mcpServers": {
    "files": { "command": "files", "args": ["."] }, /* keep */
    "git": {
      "command": "git-mcp",
    },
  },
  "theme": "dark"   // by day too
}
"""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)
STYLES = st.sampled_from([{"indent": None}, {"indent": 2}, {"indent": 4}, {"indent": "\t"}])


def mean(text: str) -> Any:
    return json_spans.value(text, json_spans.scan(text))


@given(OBJECTS, STYLES, st.text(min_size=1), VALUES)
def test_a_member_put_and_dropped_leaves_every_other_one(
    thing: dict[str, Any], style: dict[str, Any], name: str, new: Any
) -> None:
    text = json.dumps(thing, ensure_ascii=False, **style)
    after = json_spans.put(text, [name], new)
    assert mean(after) == json.loads(after) == {**thing, name: new}
    without = json_spans.drop(after, [], lambda key, value: key == name)
    assert json.loads(without) == {key: value for key, value in thing.items() if key != name}
    if name not in thing and thing:
        assert without == text


@given(st.lists(VALUES, max_size=4), STYLES, VALUES)
def test_an_item_is_appended_once(items: list[Any], style: dict[str, Any], new: Any) -> None:
    text = json.dumps({"hooks": {"a": items}}, **style)
    after = json_spans.append(text, ["hooks", "a"], new)
    assert json.loads(after) == {"hooks": {"a": items if new in items else [*items, new]}}
    assert json_spans.append(after, ["hooks", "a"], new) == after


def test_comments_order_and_trailing_commas_stay() -> None:
    after = json_spans.put(CONFIG, ["mcpServers", "limpet"], {"command": "limpet", "args": ["mcp"]})
    assert mean(after)["mcpServers"]["limpet"] == {"command": "limpet", "args": ["mcp"]}
    assert json_spans.put(after, ["mcpServers", "limpet"], {"command": "limpet", "args": ["mcp"]}) == after
    assert after.startswith(CONFIG[: CONFIG.index('  },\n  "theme')])
    assert after.endswith(CONFIG[CONFIG.index('  },\n  "theme') :])
    assert json_spans.drop(after, ["mcpServers"], lambda name, value: name == "limpet") == CONFIG


def test_objects_on_the_way_are_made() -> None:
    assert json.loads(json_spans.put("", ["a", "b", "c"], 1)) == {"a": {"b": {"c": 1}}}
    assert json_spans.put("{}", ["a"], 1) == '{\n  "a": 1\n}'
    assert json_spans.put("{ // nothing yet\n}", ["a"], 1) == '{ // nothing yet\n  "a": 1\n}'
    assert json_spans.put('{\r\n  "a": 1\r\n}\r\n', ["b"], [2]) == '{\r\n  "a": 1,\r\n  "b": [\r\n    2\r\n  ]\r\n}\r\n'
    assert json_spans.put('{"a": 1}', ["a"], 2) == '{"a": 2}'


@pytest.mark.parametrize("text", ["{", '{"a" 1}', '{"a": 1 "b": 2}', "[1] 2", '{"a": }', "/* only */", "{a: 1}", "]"])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(json_spans.NotJson):
        json_spans.value(text, json_spans.scan(text))


def test_a_value_in_the_way_is_not_overwritten() -> None:
    with pytest.raises(json_spans.NotJson, match="line 1: mcpServers is not an object"):
        json_spans.put('{"mcpServers": []}', ["mcpServers", "limpet"], {})
    with pytest.raises(json_spans.NotJson, match="is not a list"):
        json_spans.append('{"hooks": {"a": {}}}', ["hooks", "a"], 1)


def test_no_depth_overflows() -> None:
    text = "[" * 100_000 + "]" * 100_000
    assert json_spans.scan(text).kind == "list"
