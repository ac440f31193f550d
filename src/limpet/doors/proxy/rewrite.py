"""What `limpet wrap` changes in a message, as pure functions from text to text.

A message is never decoded and written again: numbers, spaces and the order of keys would come out different. Instead
the places to change are found, and only these are cut out of the original text. `node` reads JSON together with where
each part stands; everything outside a plan is skipped by the decoder in C.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from limpet.protocol.jsonrpc import Json, dumps

Key = int | str  # the id of a request
Edit = tuple[int, int, str]  # from, to, and what stands there instead

READ_TOOLS = ("scratchpad_read", "scratchpad_list")
PREFIX = "limpet_"  # before a tool of ours whose name the upstream has taken
OUR_NAMES = frozenset((*READ_TOOLS, *(PREFIX + name for name in READ_TOOLS)))

# --- who asks and who is answered, without decoding -------------------------------------------------------------------

_ID = rb'"id"\s*:\s*(?:(-?\d{1,18})|"([^"\\]*)")\s*'
_METHOD = rb'"method"\s*:\s*"([a-z_]+/?[a-z_/]*)"'
_ID_FIRST = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*' + _ID + rb',\s*"(?:result|error)"\s*:')
_ID_THEN_METHOD = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*' + _ID + rb",\s*" + _METHOD)
_METHOD_FIRST = re.compile(rb"\s*\{\s*" + _METHOD)
_RESULT_FIRST = re.compile(rb'\s*\{\s*"(?:result|error)"\s*:')
# The brace at the very end closes the message, so what stands right before it belongs to the message itself.
_ID_LAST = re.compile(rb",\s*" + _ID + rb"\}\s*\Z")
_EDGE = 400  # bytes at the end of a line that are looked at: more than any id needs


def reply_id(line: bytes) -> Key | None:
    """The id of a reply as the usual libraries write it; None when only decoding can tell."""
    found = _ID_FIRST.match(line)
    if found is None and _RESULT_FIRST.match(line):
        found = _ID_LAST.search(line[-_EDGE:])
    if found is None:
        return None
    number, word = found.groups()
    return int(number) if number is not None else word.decode("utf-8", "replace")


# What may need more than the id of the request.
_MARKS = re.compile(rb'"hold:|scratchpad_|/cancelled"|/list"')


def plain_request(line: bytes) -> tuple[Key, bytes] | None:
    """The id and the method of a request that nothing is to be done about now; None when only decoding can tell."""
    found = _ID_THEN_METHOD.match(line)
    if found is not None:
        number, word, method = found.groups()
    elif (found := _METHOD_FIRST.match(line)) and (last := _ID_LAST.search(line[-_EDGE:])):
        number, word = last.groups()
        method = found[1]
    else:
        return None
    if _MARKS.search(line):
        return None
    return (int(number) if number is not None else word.decode("utf-8", "replace")), method


def may_be_reply(line: bytes) -> bool:
    return b'"result"' in line or b'"error"' in line


def key_of(id: object) -> Key | None:
    """An id that can be remembered. MCP allows strings and whole numbers."""
    return id if isinstance(id, str | int) and not isinstance(id, bool) else None


# --- reading with positions -------------------------------------------------------------------------------------------

Plan = Mapping[str, Any]  # the members to go into, each with a plan of its own; EACH stands for the items of a list
EACH = "[]"
ITEMS: Plan = {EACH: None}

_raw = json.JSONDecoder().raw_decode
_space = re.compile(r"[ \t\r\n]*")


class Node(NamedTuple):
    """A value and where it stands. Where a plan went in, the value is a dict or a list of nodes."""

    value: Any
    start: int
    end: int


def node(text: str, at: int = 0, plan: Plan | None = None) -> Node:
    """The value at a position. Raises ValueError or IndexError for what is not JSON."""
    at = _after_space(text, at)
    if plan is not None and text[at] == "{":
        return _object(text, at, plan)
    if plan is not None and text[at] == "[" and EACH in plan:
        return _list(text, at, plan[EACH])
    value, end = _raw(text, at)
    return Node(value, at, end)


def _object(text: str, start: int, plan: Plan) -> Node:
    found: dict[str, Node] = {}
    at = _after_space(text, start + 1)
    if text[at] == "}":
        return Node(found, start, at + 1)
    while True:
        name, at = _raw(text, at)
        at = _after_space(text, at)
        if not isinstance(name, str) or text[at] != ":":
            raise ValueError("not an object")
        found[name] = member = node(text, at + 1, plan.get(name))
        at = _after_space(text, member.end)
        if text[at] == "}":
            return Node(found, start, at + 1)
        at = _after_comma(text, at)


def _list(text: str, start: int, plan: Plan | None) -> Node:
    found: list[Node] = []
    at = _after_space(text, start + 1)
    if text[at] == "]":
        return Node(found, start, at + 1)
    while True:
        found.append(node(text, at, plan))
        at = _after_space(text, found[-1].end)
        if text[at] == "]":
            return Node(found, start, at + 1)
        at = _after_comma(text, at)


def _after_comma(text: str, at: int) -> int:
    if text[at] != ",":
        raise ValueError("no comma")
    return _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    found = _space.match(text, at)
    return at if found is None else found.end()


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with some places replaced; all else stays as it is."""
    parts: list[str] = []
    done = 0
    for start, end, new in sorted(edits):
        parts += text[done:start], new
        done = end
    return "".join((*parts, text[done:]))


def batch(text: str) -> list[Node] | None:
    """The messages of a batch; None when the text is one message."""
    found = node(text, 0, ITEMS)
    return found.value if text[found.start] == "[" else None


# --- results of tools -------------------------------------------------------------------------------------------------

_RESULT: Plan = {"result": {"content": {EACH: {}}, "structuredContent": {}}}
_WORDS_ABOUT = {"type", "title", "description", "default", "examples"}  # none of these forbids another text


def big_texts(text: str, threshold: int, schema: Json | None) -> list[Node]:
    """The strings of a tool's reply that are to be kept, each with its place.

    These are the text items of the content, and strings that stand directly in structuredContent where the declared
    schema takes any string. Whatever else is structured stays whole, so that it still is what the tool declares.
    `schema` is the declared output schema: {} when the tool has none, None when the tool is not known.
    """
    result = node(text, 0, _RESULT).value.get("result")
    if result is None or not isinstance(result.value, dict):
        return []
    found: list[Node] = []
    content = result.value.get("content")
    for item in content.value if content is not None and isinstance(content.value, list) else ():
        parts = item.value
        if isinstance(parts, dict) and "text" in parts and "type" in parts and parts["type"].value == "text":
            found.append(parts["text"])
    structured = result.value.get("structuredContent")
    if structured is not None and isinstance(structured.value, dict):
        found += [part for name, part in structured.value.items() if takes_any_string(schema, name)]
    return [part for part in found if isinstance(part.value, str) and is_big(part.value, threshold)]


def is_big(text: str, threshold: int) -> bool:
    if len(text) >= threshold:
        return True
    return len(text) * 4 >= threshold and len(text.encode("utf-8", "surrogatepass")) >= threshold


def takes_any_string(schema: Json | None, name: str) -> bool:
    """Whether another text in this member still fits the schema."""
    if not schema:
        return schema is not None
    if schema.keys() & {"allOf", "anyOf", "oneOf", "not", "if", "$ref", "patternProperties", "dependentSchemas"}:
        return False
    members = schema.get("properties")
    about = members.get(name) if isinstance(members, dict) else None
    return isinstance(about, dict) and about.get("type") == "string" and about.keys() <= _WORDS_ABOUT


def note_at_end(text: str, note: str) -> Edit | None:
    """The edit that adds a text to the content of a tool's reply; None where there is no content."""
    result = node(text, 0, {"result": {"content": ITEMS}}).value.get("result")
    content = result.value.get("content") if result is not None and isinstance(result.value, dict) else None
    if content is None or not isinstance(content.value, list):
        return None
    item = dumps({"type": "text", "text": note})
    return content.end - 1, content.end - 1, f",{item}" if content.value else item


# --- the list of tools ------------------------------------------------------------------------------------------------


Check = Callable[[Mapping[str, Json], bool], Collection[str]]  # tools so far, whether these are all: which to leave out


def _all_of_them(_tools: Mapping[str, Json], _complete: bool) -> Collection[str]:
    return ()


class Listing:
    """What the upstream said about its tools, over all pages."""

    def __init__(self) -> None:
        self._tools: dict[str, Json] = {}

    def restart(self) -> None:
        self._tools = {}

    def schema(self, tool: str) -> Json | None:
        """The declared output schema: {} when the tool has none, None when the tool is not known."""
        found = self._tools.get(tool)
        schema = {} if found is None else found.get("outputSchema")
        return None if found is None else schema if isinstance(schema, dict) else {}

    def name(self, ours: str) -> str | None:
        """What a read tool of ours is called in front of this upstream; None when there is no name left for it."""
        return next((name for name in (ours, PREFIX + ours) if name not in self._tools), None)

    def ours(self, name: str) -> str | None:
        """Which read tool of ours a client means by a name, if any."""
        return next((tool for tool in READ_TOOLS if self.name(tool) == name), None)

    def add_to(self, text: str, tools: Sequence[Json], check: Check = _all_of_them) -> str:
        """A reply to tools/list with our tools at its end, if it is the last page, and without those `check` names."""
        result = node(text, 0, {"result": {"tools": ITEMS}}).value.get("result")
        listed = result.value.get("tools") if result is not None and isinstance(result.value, dict) else None
        if listed is None or not isinstance(listed.value, list):
            return text
        for tool in listed.value:
            if isinstance(tool.value, dict) and isinstance(tool.value.get("name"), str):
                self._tools[tool.value["name"]] = tool.value
        more = result.value.get("nextCursor")
        last = more is None or more.value is None
        hidden = check(dict(self._tools), last)
        named = [(self.name(str(tool["name"])), tool) for tool in tools] if last else []
        added = [dumps({**tool, "name": name}) for name, tool in named if name is not None]
        if hidden:
            kept = [
                tool for tool in listed.value if not (isinstance(tool.value, dict) and tool.value.get("name") in hidden)
            ]
            items = [text[tool.start : tool.end] for tool in kept]
            return edited(text, [(listed.start, listed.end, f"[{','.join([*items, *added])}]")])
        if not added:
            return text
        at = listed.end - 1
        return edited(text, [(at, at, ",".join(["", *added] if listed.value else added))])


# --- requests ---------------------------------------------------------------------------------------------------------

# A string of JSON that begins so. Its quote stands after a bracket, comma, colon or space, never after a backslash,
# so this cannot begin in the middle of another string.
_REFERENCE = re.compile(r'(?<!\\)"hold:\\?/\\?/[^"\\]*(?:\\.[^"\\]*)*"(?!\s*:)')
_WHOLE = re.compile(r"hold://[0-9A-Za-z_-]+(?:#.*)?")
REFERENCE_MARKS = (b'"hold://', b'"hold:\\/')


def references(text: str) -> Iterator[Node]:
    """The references among the arguments of a request: strings that are a reference and nothing else."""
    params = node(text, 0, {"params": {}}).value.get("params")
    arguments = params.value.get("arguments") if params is not None and isinstance(params.value, dict) else None
    if arguments is None:
        return
    for found in _REFERENCE.finditer(text, arguments.start, arguments.end):
        uri = json.loads(found[0])
        if _WHOLE.fullmatch(uri):
            yield Node(uri, found.start(), found.end())


FREE_KEY = "limpet/freeTokens"  # in `_meta` of a call: how many tokens of the window are free
FREE_MARK = FREE_KEY.encode()


def free_tokens(params: object) -> int | None:
    meta = params.get("_meta") if isinstance(params, dict) else None
    found = meta.get(FREE_KEY) if isinstance(meta, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def is_modern(params: object) -> bool:
    """Whether a request is of 2026-07-28 or later, where each names its revision and a result names its type."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and "io.modelcontextprotocol/protocolVersion" in meta


def tool_result(text: str, *, failed: bool, modern: bool) -> Json:
    result: Json = {"content": [{"type": "text", "text": text}]}
    if failed:
        result["isError"] = True
    if modern:
        result["resultType"] = "complete"
    return result
