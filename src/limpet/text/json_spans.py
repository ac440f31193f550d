"""JSON with positions: where each value begins and ends, so that one part of a text can be replaced and the rest stays.

`scan` reads all of a file that people write; comments and trailing commas are allowed. `scan_planned` reads a message,
which is strict JSON, and enters only the members named by a plan; the decoder in C skips everything else.

`put`, `append` and `drop` edit a file that people write. An edit replaces one part of the text: nothing is parsed into
values and written back, so comments, order, spaces and trailing commas stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from limpet.record import NamedTuple

Plan = Mapping[str, Any]  # the members to enter, each with a plan of its own or None; EACH means the items of a list
EACH = "[]"
ITEMS: Plan = {EACH: None}
Edit = tuple[int, int, str]  # start, stop, and the new text between them

_EVERYTHING: Plan = {}  # the plan of `scan`; compared by identity
_SPACE = re.compile(r"[ \t\r\n]*")
_SPACE_OR_COMMENT = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PLAIN = re.compile(r"[^\s,\]}/]+")
_decode = json.JSONDecoder().raw_decode


class NotJson(ValueError):
    """The text is not JSON. Says where."""


class Node(NamedTuple):
    """A value and its position. An object or list that was not entered is a "value"."""

    start: int
    stop: int
    kind: str  # "object", "list" or "value"
    members: tuple[JsonMember, ...] = ()  # of an object or a list
    value: Any = None  # of a "value" in a planned scan

    def get(self, name: str) -> Node | None:
        """The member of that name; the last one if there are several, as in every JSON reader."""
        return next((member.node for member in reversed(self.members) if member.name == name), None)

    @property
    def items(self) -> list[Node]:
        return [member.node for member in self.members]


class JsonMember(NamedTuple):
    name: str  # the index, in a list
    start: int  # of the name, or of the value in a list
    node: Node


class _Open(NamedTuple):
    """An object or list whose end has not been reached."""

    start: int
    kind: str
    plan: Plan
    members: list[JsonMember]
    name: str  # as a member of the next outer one
    member_start: int


def scan(text: str) -> Node:
    """The value of a text that people write."""
    start = skip_space(text, 1 if text.startswith("\ufeff") else 0)
    if start == len(text):
        raise NotJson("it is empty")
    node = _scanned(text, start, _EVERYTHING)
    if (rest := skip_space(text, node.stop)) != len(text):
        raise NotJson(f"line {line_number(text, rest)}: more text after the value")
    return node


def scan_planned(text: str, plan: Plan | None) -> Node:
    """The value at the beginning of a message. Raises ValueError if a part that is entered is not JSON."""
    return _scanned(text, _skip(text, 0, _SPACE), plan)


def value(text: str, node: Node) -> Any:
    """The value of a node of `scan`."""
    if node.kind == "object":
        return {member.name: value(text, member.node) for member in node.members}
    if node.kind == "list":
        return [value(text, member.node) for member in node.members]
    source = text[node.start : node.stop]
    try:
        return json.loads(source)
    except ValueError:
        raise NotJson(f"line {line_number(text, node.start)}: {source[:40]!r} is no value") from None


def find(text: str, path: Sequence[str]) -> Node | None:
    """The value at a path of names, in a text that people write."""
    node: Node | None = scan(text)
    for name in path:
        node = node.get(name) if node else None
    return node


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with some parts replaced."""
    parts: list[str] = []
    end = 0
    for start, stop, new in sorted(edits):
        parts += text[end:start], new
        end = stop
    return "".join((*parts, text[end:]))


def skip_space(text: str, start: int) -> int:
    """The position after spaces and comments."""
    return _skip(text, start, _SPACE_OR_COMMENT)


def line_number(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


# --- the scanner ------------------------------------------------------------------------------------------------------


def _skip(text: str, start: int, space: re.Pattern[str]) -> int:
    match = space.match(text, start)
    return match.end() if match else start


def _scanned(text: str, at: int, plan: Plan | None) -> Node:
    """The value that begins at `at`. Nesting is followed on a stack of its own, so no depth can overflow."""
    lenient = plan is _EVERYTHING
    space = _SPACE_OR_COMMENT if lenient else _SPACE
    stack: list[_Open] = []
    name, start = "", at
    while True:
        node: Node | None = None
        if plan is not None and _enters(text, at, plan):
            stack.append(_Open(at, "object" if text[at] == "{" else "list", plan, [], name, start))
            at = _skip(text, at + 1, space)
        else:
            node = _scalar(text, at) if lenient else _decoded(text, at)
            at = node.stop
        while True:  # close every object and list that ends here
            after_comma = False
            if node is not None:
                if not stack:
                    return node
                stack[-1].members.append(JsonMember(name, start, node))
                at, after_comma = _after_member(text, _skip(text, at, space), space)
            holder = stack[-1]
            if text[at : at + 1] != ("}" if holder.kind == "object" else "]") or (after_comma and not lenient):
                break
            stack.pop()
            at += 1
            name, start = holder.name, holder.member_start
            node = Node(holder.start, at, holder.kind, tuple(holder.members))
        name, start, at = _name(text, at, holder, space)
        plan = _EVERYTHING if lenient else holder.plan.get(name if holder.kind == "object" else EACH)


def _enters(text: str, at: int, plan: Plan) -> bool:
    opening = text[at : at + 1]
    return opening == "{" or (opening == "[" and (plan is _EVERYTHING or EACH in plan))


def _after_member(text: str, at: int, space: re.Pattern[str]) -> tuple[int, bool]:
    """The position of the next member or of the end, and whether there was a comma."""
    if text[at : at + 1] == ",":
        return _skip(text, at + 1, space), True
    if text[at : at + 1] not in ("}", "]"):
        raise NotJson(f"line {line_number(text, at)}: a comma or the end of the list or object is missing")
    return at, False


def _name(text: str, at: int, holder: _Open, space: re.Pattern[str]) -> tuple[str, int, int]:
    """The name of the next member, where the member begins, and where its value does."""
    if holder.kind == "list":
        return str(len(holder.members)), at, at
    match = _STRING.match(text, at)
    colon = _skip(text, match.end(), space) if match else at
    if match is None or text[colon : colon + 1] != ":":
        raise NotJson(f"line {line_number(text, at)}: a name in quotes and a colon are missing")
    return json.loads(match[0], strict=False), at, _skip(text, colon + 1, space)


def _scalar(text: str, at: int) -> Node:
    match = _STRING.match(text, at) or _PLAIN.match(text, at)
    if match is None:
        raise NotJson(f"line {line_number(text, at)}: a value is missing")
    return Node(at, match.end(), "value")


def _decoded(text: str, at: int) -> Node:
    decoded, stop = _decode(text, at)
    return Node(at, stop, "value", value=decoded)


# --- edits ------------------------------------------------------------------------------------------------------------

INDENT = "  "


def put(text: str, path: Sequence[str], new: Any) -> str:
    """The text with this value at the path. Objects on the way are made where they are missing; so is the first one,
    in an empty text."""
    if not text.strip():
        text = "{}\n"
    node = find(text, path)
    if node is not None:
        return text if value(text, node) == new else text[: node.start] + _write(new, path) + text[node.stop :]
    for depth in range(len(path) - 1, -1, -1):
        holder = find(text, path[:depth])
        if holder is None:
            continue
        if holder.kind != "object":
            raise NotJson(f"line {line_number(text, holder.start)}: {'.'.join(path[:depth])} is not an object")
        for name in reversed(path[depth + 1 :]):
            new = {name: new}
        return _add(text, holder, f"{json.dumps(path[depth])}: ", new, depth)
    raise NotJson("the text holds no object")


def append(text: str, path: Sequence[str], item: Any) -> str:
    """The text with one item more in the list at the path; the same item is not added twice."""
    node = find(text, path) if text.strip() else None
    if node is None:
        return put(text, path, [item])
    if node.kind != "list":
        raise NotJson(f"line {line_number(text, node.start)}: {'.'.join(path)} is not a list")
    return text if item in value(text, node) else _add(text, node, "", item, len(path))


def drop(text: str, path: Sequence[str], which: Callable[[str, Any], bool]) -> str:
    """The text without those members of the object or list at the path that `which` (name, value) says."""
    while (node := find(text, path)) is not None:
        for number, member in enumerate(node.members):
            if which(member.name, value(text, member.node)):
                text = _cut(text, node, number)
                break
        else:
            return text
    return text


def removal(holder: Node, name: str) -> Edit | None:
    """The edit that takes a member out of an object of a message; None if it has none of that name."""
    numbers = [number for number, member in enumerate(holder.members) if member.name == name]
    if not numbers:
        return None
    number, member = numbers[-1], holder.members[numbers[-1]]
    if number > 0:
        return holder.members[number - 1].node.stop, member.node.stop, ""
    following = holder.members[1].start if len(holder.members) > 1 else member.node.stop
    return member.start, following, ""


# --- how --------------------------------------------------------------------------------------------------------------


def _write(new: Any, path: Sequence[str]) -> str:
    return json.dumps(new, indent=len(INDENT), ensure_ascii=False).replace("\n", "\n" + INDENT * len(path))


def _add(text: str, holder: Node, name: str, new: Any, depth: int) -> str:
    """One member more at the end of an object or list, in the style of those that are there."""
    end = "\r\n" if "\r\n" in text else "\n"
    if not holder.members:
        lead, closing = INDENT * (depth + 1), end + INDENT * depth
        inner = text[holder.start + 1 : holder.stop - 1].rstrip()  # which may be a comment
        body = f"{inner}{end}{lead}{name}{_indented(new, lead, end)}{closing}"
        return text[: holder.start + 1] + body + text[holder.stop - 1 :]
    last = holder.members[-1]
    begun = text.rfind("\n", holder.start, last.start)
    lead = text[begun + 1 : last.start] if begun >= 0 else ""
    own_lines = begun >= 0 and not lead.strip()
    if not own_lines:
        lead = INDENT * (depth + 1)
    comma = skip_space(text, last.node.stop)
    trailing = text[comma : comma + 1] == ","  # the style with a comma after the last one
    at = comma + 1 if trailing else last.node.stop
    piece = f"{name}{_indented(new, lead if own_lines else INDENT * depth, end)}"
    gap = end + lead if own_lines else " "
    return text[:at] + ("" if trailing else ",") + gap + piece + ("," if trailing else "") + text[at:]


def _indented(new: Any, lead: str, end: str) -> str:
    return json.dumps(new, indent=len(INDENT), ensure_ascii=False).replace("\n", end + lead)


def _cut(text: str, holder: Node, number: int) -> str:
    """The text without one member, its comma, and the space around it."""
    member = holder.members[number]
    if number > 0:
        return text[: holder.members[number - 1].node.stop] + text[member.node.stop :]
    if len(holder.members) > 1:
        return text[: member.start] + text[holder.members[1].start :]
    comma = skip_space(text, member.node.stop)
    stop = comma + 1 if text[comma : comma + 1] == "," else member.node.stop
    inner = text[holder.start + 1 : member.start].rstrip() + text[stop : holder.stop - 1].strip()
    return text[: holder.start + 1] + inner + text[holder.stop - 1 :]
