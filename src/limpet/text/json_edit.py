"""Edits of JSON files that people write: comments, order, spaces and trailing commas stay as they are.

An edit replaces one part of the text. Nothing is parsed into values and written back, so what an edit does not name
cannot change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from limpet.text.json_spans import Node, NotJson, find, line_number, skip_space, value

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
