"""Where in a JSON text a place is, as a JSON pointer: what a reader can hand to `path` to see all that stands there."""

from __future__ import annotations

import json
import re

_MOST = 400_000  # characters before the place: walking over them takes some 50 ms, and more would be felt
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|:')
_SEVERAL = re.compile(r"\s*[{\[][^\n]*[}\]]\s*\n[{\[]")  # JSON Lines, which `path` reads as one list
_BLANK = re.compile(r"[\s,{\[]*")


def pointer(text: str, place: int) -> str:
    """`/items/3/name` for what begins at this place, or nothing when the text is no JSON or the place is far in it."""
    head = text[:200].lstrip("\ufeff \t\r\n")[:1]
    if place > _MOST or head not in ("{", "["):
        return ""
    skipped = _BLANK.match(text, place)
    stop = skipped.end() if skipped else place
    steps: list[str | int] = []  # the member or the number of the item in each enclosing value
    last, values = "", 0
    for token in _TOKEN.finditer(text, 0, stop):
        sign = token.group()
        if sign in "{[":
            steps.append("" if sign == "{" else 0)
        elif sign in "}]":
            if not steps:
                return ""
            steps.pop()
            values += not steps
        elif sign == "," and steps:
            inner = steps[-1]
            steps[-1] = inner + 1 if isinstance(inner, int) else ""
        elif sign == ":" and steps and isinstance(steps[-1], str):
            steps[-1] = last
        last = sign
    if steps and steps[-1] == "" and (key := _TOKEN.match(text, stop)) and key.group()[0] == '"':
        steps[-1] = key.group()
    several = _SEVERAL.match(text) is not None
    if values and not several:
        return ""  # values one after another have no common root, unless each has a line
    return (f"/{values}" if several else "") + "".join(f"/{_step(step)}" for step in steps if step != "")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return str(step)
    try:
        name = str(json.loads(step))
    except ValueError:
        name = step.strip('"')
    return name.replace("~", "~0").replace("/", "~1")
