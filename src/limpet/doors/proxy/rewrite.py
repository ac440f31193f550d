"""What `limpet wrap` changes in a message, as pure functions from text to text.

A message is not decoded and encoded again: numbers, spaces and the order of keys would come out different. Instead the
parts to change are located (`text.json_spans`) and replaced in the original text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from limpet.outputs.policy import Policy
from limpet.protocol.jsonrpc import Json, dumps
from limpet.text.json_spans import EACH, ITEMS, Edit, Node, Plan, edited, removal, scan_planned

Key = int | str  # the id of a request

READ_TOOLS = ("read_output", "list_outputs")
EARLIER_NAMES = {"scratchpad_read": "read_output", "scratchpad_list": "list_outputs"}  # answered, not listed
PREFIX = "limpet_"  # of a read tool whose name the upstream uses too
READ_TOOL_NAMES = frozenset((*READ_TOOLS, *EARLIER_NAMES, *(PREFIX + name for name in READ_TOOLS)))

# --- ids and methods, without decoding --------------------------------------------------------------------------------

_ID = rb'"id"\s*:\s*(?:(-?\d{1,18})|"([^"\\]*)")\s*'
_METHOD = rb'"method"\s*:\s*"([a-z_]+/?[a-z_/]*)"'
_ID_FIRST = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*' + _ID + rb',\s*"(?:result|error)"\s*:')
_ID_THEN_METHOD = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*' + _ID + rb",\s*" + _METHOD)
_METHOD_FIRST = re.compile(rb"\s*\{\s*" + _METHOD)
_RESULT_FIRST = re.compile(rb'\s*\{\s*"(?:result|error)"\s*:')
# The last brace closes the message, so the member right before it belongs to the message itself.
_ID_LAST = re.compile(rb",\s*" + _ID + rb"\}\s*\Z")
_EDGE = 400  # bytes at the end of a line that are searched: more than any id needs


def reply_id(line: bytes) -> Key | None:
    """The id of a reply as the usual libraries write it; None if the line has to be decoded."""
    match = _ID_FIRST.match(line)
    if match is None and _RESULT_FIRST.match(line):
        match = _ID_LAST.search(line[-_EDGE:])
    if match is None:
        return None
    number, word = match.groups()
    return int(number) if number is not None else word.decode("utf-8", "replace")


# Requests that may need more than their id and method.
_MARKS = re.compile(rb'"hold:|read_output|list_outputs|scratchpad_|/cancelled"|/list"')


def plain_request(line: bytes) -> tuple[Key, bytes] | None:
    """The id and the method of a request that can pass at once; None if the line has to be decoded."""
    match = _ID_THEN_METHOD.match(line)
    if match is not None:
        number, word, method = match.groups()
    elif (match := _METHOD_FIRST.match(line)) and (last := _ID_LAST.search(line[-_EDGE:])):
        number, word = last.groups()
        method = match[1]
    else:
        return None
    if _MARKS.search(line):
        return None
    return (int(number) if number is not None else word.decode("utf-8", "replace")), method


def may_be_reply(line: bytes) -> bool:
    return b'"result"' in line or b'"error"' in line


def key_of(id: object) -> Key | None:
    """The id of a message, if it is one that MCP allows: a string or an integer."""
    return id if isinstance(id, str | int) and not isinstance(id, bool) else None


# --- messages ---------------------------------------------------------------------------------------------------------


def batch(text: str) -> list[Node] | None:
    """The messages of a batch; None if the text is a single message."""
    top = scan_planned(text, ITEMS)
    return top.items if top.kind == "list" else None


# --- results of tools -------------------------------------------------------------------------------------------------

_RESULT: Plan = {"result": {"content": {EACH: {}}, "structuredContent": None}}
Keep = Callable[[str], str]  # stores a big text; what takes its place


def kept(text: str, policy: Policy, keep: Keep) -> list[Edit]:
    """The edits of a tool's reply that put what `keep` returns in the place of big texts.

    Several clients show their model the structured content and not the text. So the two are replaced together: the
    structured content goes, and what it says besides the text becomes a text.
    """
    result = scan_planned(text, _RESULT).get("result")
    if result is None:
        return []
    content, structured = result.get("content"), result.get("structuredContent")
    parts = [part for part in _texts(content) if policy.is_big(part.value)]
    edits = [(part.start, part.stop, dumps(keep(part.value))) for part in parts]
    if structured is None or structured.value is None:
        return edits
    body = text[structured.start : structured.stop]
    if not parts and not policy.is_big(body):
        return []
    remains = "" if any(_says(part.value, structured.value) for part in parts) else body
    if policy.is_big(remains):
        remains = keep(remains)
    if not parts:  # the text is of many small items, or there is none
        others = [text[item.start : item.stop] for item in content.items if not _is_text(item)] if content else []
        new = f"[{','.join([*others, dumps({'type': 'text', 'text': remains})])}]"
        if content is None:
            return [(_member_start(result, "structuredContent"), structured.stop, f'"content":{new}')]
        edits.append((content.start, content.stop, new))
    elif remains and (note := note_at_end(text, remains)):
        edits.append(note)
    cut = removal(result, "structuredContent")
    return [*edits, cut] if cut else edits


def _texts(content: Node | None) -> list[Node]:
    parts = [item.get("text") for item in content.items if _is_text(item)] if content is not None else []
    return [part for part in parts if part is not None and isinstance(part.value, str)]


def _is_text(item: Node) -> bool:
    type_ = item.get("type")
    return type_ is not None and type_.value == "text"


def _member_start(holder: Node, name: str) -> int:
    starts: list[int] = [member.start for member in holder.members if member.name == name]
    return starts[-1]


def _says(text: str, value: Any) -> bool:
    """Whether a text says the same as a value: it is its JSON, or that of the one thing in it.

    Structured content is an object. Servers put anything else into an object with one member.
    """
    inner = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
    if text in (inner, value):
        return True
    try:
        return text.lstrip()[:1] in ("{", "[") and json.loads(text) in (inner, value)
    except (ValueError, RecursionError):
        return False


def note_at_end(text: str, note: str) -> Edit | None:
    """The edit that adds a text to the content of a tool's reply; None if there is no content."""
    result = scan_planned(text, {"result": {"content": ITEMS}}).get("result")
    content = result.get("content") if result is not None else None
    if content is None or content.kind != "list":
        return None
    item = dumps({"type": "text", "text": note})
    return content.stop - 1, content.stop - 1, f",{item}" if content.members else item


# --- the list of tools ------------------------------------------------------------------------------------------------


Check = Callable[[Mapping[str, Json], bool], Collection[str]]  # tools so far, whether these are all: which to hide


def _hide_none(_tools: Mapping[str, Json], _complete: bool) -> Collection[str]:
    return ()


class ToolList:
    """The tools that the upstream has listed, over all pages."""

    def __init__(self, *, keep_schemas: bool = False) -> None:
        self._tools: dict[str, Json] = {}
        self._keeps_schemas = keep_schemas

    def restart(self) -> None:
        self._tools = {}

    def keeps_schema(self, tool: str) -> bool:
        """Whether results of the tool must stay as its output schema says."""
        return self._keeps_schemas and "outputSchema" in self._tools.get(tool, ())

    def name(self, read_tool: str) -> str | None:
        """The name of a read tool in front of this upstream; None if the upstream uses both names itself."""
        return next((name for name in (read_tool, PREFIX + read_tool) if name not in self._tools), None)

    def read_tool(self, name: str) -> str | None:
        """The read tool that a client calls by this name, if any."""
        if name in EARLIER_NAMES and name not in self._tools:
            return EARLIER_NAMES[name]
        return next((tool for tool in READ_TOOLS if self.name(tool) == name), None)

    def add_to(self, text: str, tools: Sequence[Json], check: Check = _hide_none) -> str:
        """A reply to tools/list with the read tools at the end of the last page, and without those `check` names.

        A tool whose results may be replaced has no output schema there, unless schemas are kept.
        """
        text = self._with_read_tools(text, tools, check)
        return text if self._keeps_schemas or '"outputSchema"' not in text else _without_schemas(text)

    def _with_read_tools(self, text: str, tools: Sequence[Json], check: Check) -> str:
        result = scan_planned(text, {"result": {"tools": ITEMS}}).get("result")
        listed = result.get("tools") if result is not None else None
        if result is None or listed is None or listed.kind != "list":
            return text
        for tool in listed.items:
            if isinstance(tool.value, dict) and isinstance(tool.value.get("name"), str):
                self._tools[tool.value["name"]] = tool.value
        cursor = result.get("nextCursor")
        last = cursor is None or (cursor.kind == "value" and cursor.value is None)
        hidden = check(dict(self._tools), last)
        named = [(self.name(str(tool["name"])), tool) for tool in tools] if last else []
        added = [dumps({**tool, "name": name}) for name, tool in named if name is not None]
        if hidden:
            items = [text[tool.start : tool.stop] for tool in listed.items if not _is_named(tool, hidden)]
            return edited(text, [(listed.start, listed.stop, f"[{','.join([*items, *added])}]")])
        if not added:
            return text
        end = listed.stop - 1
        return edited(text, [(end, end, ",".join(["", *added] if listed.members else added))])


def _without_schemas(text: str) -> str:
    result = scan_planned(text, {"result": {"tools": {EACH: {}}}}).get("result")
    tools = result.get("tools") if result is not None else None
    cuts = [removal(tool, "outputSchema") for tool in tools.items] if tools is not None else []
    return edited(text, [cut for cut in cuts if cut])


def _is_named(tool: Node, names: Collection[str]) -> bool:
    return isinstance(tool.value, dict) and tool.value.get("name") in names


# --- requests ---------------------------------------------------------------------------------------------------------

# A JSON string that begins with hold://. Its opening quote does not follow a backslash, so the match cannot begin in
# the middle of another string.
_REFERENCE = re.compile(r'(?<!\\)"hold:\\?/\\?/[^"\\]*(?:\\.[^"\\]*)*"(?!\s*:)')
_URI = re.compile(r"hold://[0-9A-Za-z_-]+(?:#.*)?")
REFERENCE_MARKS = (b'"hold://', b'"hold:\\/')


def references(text: str) -> Iterator[Node]:
    """The arguments of a request that are a reference and nothing else; the value of a node is the URI."""
    params = scan_planned(text, {"params": {}}).get("params")
    arguments = params.get("arguments") if params is not None else None
    if arguments is None:
        return
    for match in _REFERENCE.finditer(text, arguments.start, arguments.stop):
        uri = json.loads(match[0])
        if _URI.fullmatch(uri):
            yield Node(*match.span(), "value", value=uri)


FREE_KEY = "limpet/freeTokens"  # in `_meta` of a call: how many tokens of the window are free
FREE_MARK = FREE_KEY.encode()


def free_tokens(params: object) -> int | None:
    meta = params.get("_meta") if isinstance(params, dict) else None
    free = meta.get(FREE_KEY) if isinstance(meta, dict) else None
    return free if isinstance(free, int) and not isinstance(free, bool) and free > 0 else None


def tool_result(text: str, *, failed: bool, modern: bool) -> Json:
    result: Json = {"content": [{"type": "text", "text": text}]}
    if failed:
        result["isError"] = True
    if modern:
        result["resultType"] = "complete"
    return result
