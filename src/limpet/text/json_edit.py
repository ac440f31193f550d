"""JSON files that people write, edited in place: comments, order, spaces and trailing commas stay as they are.

A text is scanned into nodes with positions, and an edit replaces one piece of the text. Nothing is parsed
into values and written back, so what an edit does not name cannot change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_SPACE = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)  # comments are space too
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PLAIN = re.compile(r"[^\s,\]}/]+")
INDENT = "  "


class NotJson(ValueError):
    """The text is not JSON, even with comments allowed. Says where."""


class Node(NamedTuple):
    """A value and its span. `members` of an object have names, those of a list are numbered."""

    start: int
    stop: int
    kind: str  # "object", "list" or "value"
    members: tuple[Member, ...] = ()


class Member(NamedTuple):
    name: str
    start: int  # of the name, or of the value in a list
    node: Node


def scan(text: str) -> Node:
    """The one value of the text."""
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    if at == len(text):
        raise NotJson("it is empty")
    node = _value(text, at)
    if (rest := _skip(text, node.stop)) != len(text):
        raise NotJson(f"line {_line(text, rest)}: more text after the value")
    return node


def value(text: str, node: Node) -> Any:
    """What a node means."""
    if node.kind == "object":
        return {member.name: value(text, member.node) for member in node.members}
    if node.kind == "list":
        return [value(text, member.node) for member in node.members]
    try:
        return json.loads(text[node.start : node.stop])
    except ValueError:
        raise NotJson(f"line {_line(text, node.start)}: {text[node.start : node.stop][:40]!r} is no value") from None


def find(text: str, path: Sequence[str]) -> Node | None:
    node: Node | None = scan(text)
    for name in path:
        # A name that stands twice means its last value to every reader.
        node = next((member.node for member in reversed(node.members) if member.name == name), None) if node else None
    return node


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
            raise NotJson(f"line {_line(text, holder.start)}: {'.'.join(path[:depth])} is not an object")
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
        raise NotJson(f"line {_line(text, node.start)}: {'.'.join(path)} is not a list")
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


# --- how --------------------------------------------------------------------------------------------------------------


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _value(text: str, at: int) -> Node:
    """The value that begins at `at`. Nesting is followed on a stack of our own, so that no depth can overflow."""
    open_: list[tuple[int, str, list[Member], str, int]] = []  # start, kind, members, name and start of this member
    name, begun = "", at
    while True:
        if at < len(text) and text[at] in "{[":
            open_.append((at, "object" if text[at] == "{" else "list", [], name, begun))
            at = _skip(text, at + 1)
            done: Node | None = None
        else:
            done = _scalar(text, at)
            at = done.stop
        while True:
            if done is not None:
                if not open_:
                    return done
                open_[-1][2].append(Member(name, begun, done))
                at = _skip(text, at)
                if text[at : at + 1] == ",":
                    at = _skip(text, at + 1)
                elif text[at : at + 1] not in ("}", "]"):
                    raise NotJson(f"line {_line(text, at)}: a comma or the end of the list or object is missing")
            start, kind, members, outer, outer_begun = open_[-1]
            if text[at : at + 1] != ("}" if kind == "object" else "]"):
                break
            open_.pop()
            at += 1
            name, begun, done = outer, outer_begun, Node(start, at, kind, tuple(members))
        name, begun, at = _name(text, at, open_[-1][1], len(open_[-1][2]))


def _name(text: str, at: int, kind: str, number: int) -> tuple[str, int, int]:
    """The name of the next member, where the member begins, and where its value does."""
    if kind == "list":
        return str(number), at, at
    name = _STRING.match(text, at)
    colon = _skip(text, name.end()) if name else at
    if name is None or text[colon : colon + 1] != ":":
        raise NotJson(f"line {_line(text, at)}: a name in quotes and a colon are missing")
    return json.loads(name[0], strict=False), at, _skip(text, colon + 1)


def _scalar(text: str, at: int) -> Node:
    match = _STRING.match(text, at) or _PLAIN.match(text, at)
    if match is None:
        raise NotJson(f"line {_line(text, at)}: a value is missing")
    return Node(at, match.end(), "value")


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
    comma = _skip(text, last.node.stop)
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
    comma = _skip(text, member.node.stop)
    stop = comma + 1 if text[comma : comma + 1] == "," else member.node.stop
    inner = text[holder.start + 1 : member.start].rstrip() + text[stop : holder.stop - 1].strip()
    return text[: holder.start + 1] + inner + text[holder.stop - 1 :]
