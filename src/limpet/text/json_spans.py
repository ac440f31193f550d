"""JSON with positions: where each value begins and ends, so that one part of a text can be replaced and the rest stays.

`scan` reads all of a file that people write; comments and trailing commas are allowed. `scan_planned` reads a message,
which is strict JSON, and enters only the members named by a plan; the decoder in C skips everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
    members: tuple[Member, ...] = ()  # of an object or a list
    value: Any = None  # of a "value" in a planned scan

    def get(self, name: str) -> Node | None:
        """The member of that name; the last one if there are several, as in every JSON reader."""
        return next((member.node for member in reversed(self.members) if member.name == name), None)

    @property
    def items(self) -> list[Node]:
        return [member.node for member in self.members]


class Member(NamedTuple):
    name: str  # the index, in a list
    start: int  # of the name, or of the value in a list
    node: Node


class _Open(NamedTuple):
    """An object or list whose end has not been reached."""

    start: int
    kind: str
    plan: Plan
    members: list[Member]
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
                stack[-1].members.append(Member(name, start, node))
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
