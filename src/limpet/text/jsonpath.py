"""A place inside JSON: a JSON pointer (`/items/0/name`) or a JSONPath (`$.items[*].name`, `$..name`, `$['a'][-1]`).

The subset of JSONPath has names, indexes, lists of both, slices, `*`, `..` and filters that compare a member with a
value or test that it exists (`[?(@.price < 10 && @.name)]`). JSON Lines are read as one list. A result above the cap is
shortened from the inside, and every shortening says how much it left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from limpet.text import tokens
from limpet.text.slices import BadSlice, Slice

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_STEP = re.compile(
    rf"""\.\.(?P<deep>\w[\w-]*|\*|(?=\[))
    | \.(?P<name>\w[\w-]*|\*)
    | \[\s*(?P<all>\*)\s*\]
    | \[\s*(?P<index>-?\d{{1,9}}(?:\s*,\s*-?\d{{1,9}})*)\s*\]
    | \[\s*(?P<slice>-?\d{{0,9}}\s*:\s*-?\d{{0,9}}(?:\s*:\s*-?\d{{0,9}})?)\s*\]
    | \[\s*(?P<names>(?:{_QUOTED})(?:\s*,\s*(?:{_QUOTED}))*)\s*\]
    | \[\s*\?\s*(?P<filter>(?:[^\[\]'"]|{_QUOTED}|\[[^\[\]]*\])+)\]""",
    re.X,
)
_STRING = re.compile(_QUOTED)
_TEST = re.compile(
    rf"""\s*(?P<not>!)?\s*@(?P<path>(?:\.\w[\w-]*|\[\s*(?:{_QUOTED}|-?\d{{1,9}})\s*\])*)
    \s*(?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>{_QUOTED}|[^\s&|()]+))?\s*""",
    re.X,
)
_RESULTS_MOST = 10_000  # values a path may return; work stops there
_VISITED_MOST = 1_000_000  # values a step may visit
_PATH_MOST = 1_000  # characters of a path
_DEEPEST = 12  # levels of a value that are shown when it is shortened
# What is kept of a value that does not fit, from much to little: items of a list, members, characters of a string.
_SHORTER = ((100, 200, 2_000), (50, 100, 600), (20, 50, 300), (10, 40, 160), (5, 25, 80), (3, 15, 40), (1, 6, 20))
_ABSENT = object()


def read(text: str, path: str, cap: int) -> Slice:
    """What the path names, as compact JSON: the value itself, or a list when a JSONPath may name several."""
    if len(path) > _PATH_MOST:
        raise BadSlice("path", path, f"it has more than {_PATH_MOST:,} characters", "Shorten it.")
    value = _parsed(text, path)
    if path in ("", "$"):
        result = value
    elif path.startswith("/"):
        result = _pointer(value, path)
    elif path.startswith("$"):
        values = _path(value, path)
        result = values[0] if len(values) == 1 and not _several(path) else values
    else:
        raise BadSlice("path", path, "a path begins with / or $", "Write /items/0/name or $.items[0].name.")
    return _fitting(result, cap)


def _parsed(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        lines = [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError):
        lines = []
    if len(lines) > 1:
        return lines
    raise BadSlice("path", path, "the text is not JSON", "Use lines, match or query instead.")


def _fitting(value: Any, cap: int) -> Slice:
    content = _compact(value)
    if tokens.count(content) <= cap:
        return Slice(content, None, "")
    about = f"{_about(value)}, {len(content):,} characters in all; choose a narrower path"
    for sizes in _SHORTER:
        content = _compact(_shortened(value, sizes))
        if tokens.count(content) <= cap:
            return Slice(content, None, f"shortened: {about}")
    return Slice(tokens.cut(content, cap)[0], None, f"cut: {about}")


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _shortened(value: Any, sizes: tuple[int, int, int], depth: int = 0) -> Any:
    items, members, characters = sizes
    if isinstance(value, str) and len(value) > characters:
        return f"{value[:characters]}… {len(value) - characters:,} more characters"
    if isinstance(value, list | dict) and depth > _DEEPEST:
        return f"… {_about(value)}"
    if isinstance(value, list):
        short = [_shortened(item, sizes, depth + 1) for item in value[:items]]
        return [*short, f"… {len(value) - items:,} more"] if len(value) > items else short
    if isinstance(value, dict):
        names = list(value)[:members]
        more = {"…": f"{len(value) - members:,} more members"} if len(value) > members else {}
        return {**{name: _shortened(value[name], sizes, depth + 1) for name in names}, **more}
    return value


def _pointer(value: Any, path: str) -> Any:
    for raw in path[1:].split("/"):
        step = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and re.fullmatch(r"0|[1-9]\d{0,11}", step) and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            raise BadSlice("path", path, f"there is no {step[:60]!r} in {_about(value)}", "Choose from what is there.")
    return value


def _several(path: str) -> bool:
    """Whether a path may name more than one value in any JSON."""
    return re.fullmatch(rf"\$(?:\.\w[\w-]*|\[\s*(?:-?\d+|{_QUOTED})\s*\])*", path) is None


def _path(value: Any, path: str) -> list[Any]:
    values, at = [value], 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            rule = f"{path[at:][:20]!r} is no step of a path"
            raise BadSlice("path", path, rule, "Steps are .name, ['name'], [0], [1:3], [*], ..name and [?(@.x == 1)].")
        inside = _chooser(step, path)
        visited = _bounded(item for outer in values for item in inside(outer))
        values = [item for item in visited if item is not _ABSENT][:_RESULTS_MOST]
        at = step.end()
    if not values:
        raise BadSlice("path", path, f"nothing is there in {_about(value)}", "Choose from what is there.")
    return values


def _bounded(values: Iterator[Any]) -> Iterator[Any]:
    """The first values of a step. Values that a filter rejects arrive as `_ABSENT`, so that they count as visited."""
    count = 0
    for visited, item in enumerate(values):
        if visited >= _VISITED_MOST or count >= _RESULTS_MOST:
            return
        count += item is not _ABSENT
        yield item


def _chooser(step: re.Match[str], path: str) -> Callable[[Any], Iterator[Any]]:
    """The function that applies a step to a value."""
    if step["deep"] is not None:
        deep = step["deep"]
        return (lambda value: _named(value, deep)) if deep else _everything
    if step["slice"]:
        numbers = [int(part) if part.strip() else None for part in step["slice"].split(":")]
        if numbers[2:] == [0]:
            raise BadSlice("path", path, "a slice cannot have a stride of 0", "Leave the stride out.")
        return lambda value: iter(value[slice(*numbers)] if isinstance(value, list) else ())
    if step["filter"]:
        test = _condition(step["filter"].strip(), path)
        return lambda value: (item if test(item) else _ABSENT for item in _inside(value, "*"))
    if step["index"]:
        keys: list[str | int] = [int(index) for index in step["index"].split(",")]
    elif step["names"]:
        keys = [_unquoted(name) for name in _STRING.findall(step["names"])]
    else:
        keys = [step["all"] or step["name"]]
        if keys == ["*"]:
            return lambda value: _inside(value, "*")
    return lambda value: (item for key in keys if (item := _member(value, key)) is not _ABSENT)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _inside(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (inner for key, inner in value.items() if name in (key, "*"))
    elif isinstance(value, list) and name == "*":
        yield from value


def _member(value: Any, key: str | int) -> Any:
    if isinstance(key, int):
        return value[key] if isinstance(value, list) and -len(value) <= key < len(value) else _ABSENT
    return value.get(key, _ABSENT) if isinstance(value, dict) else _ABSENT


def _everything(value: Any) -> Iterator[Any]:
    yield value
    yield from _below(value)


def _named(value: Any, name: str) -> Iterator[Any]:
    """Every value of that name, however deep, in the order of the text."""
    for item in _everything(value):
        if isinstance(item, dict) or name == "*":
            yield from _inside(item, name)
        else:
            yield _ABSENT


def _below(value: Any) -> Iterator[Any]:
    """All descendants of a value. A stack instead of recursion: JSON may be deeper than Python's limit."""
    stack = [_inside(value, "*")]
    while stack:
        item = next(stack[-1], _ABSENT)
        if item is _ABSENT:
            stack.pop()
            continue
        yield item
        if isinstance(item, dict | list):
            stack.append(_inside(item, "*"))


def _condition(text: str, path: str) -> Callable[[Any], bool]:
    """A filter: tests joined by || and &&, the latter binding closer."""
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    # Operators inside strings do not count.
    bare = _STRING.sub(lambda match: "s" * len(match.group()), text)
    either = [[_test(text[a + c : a + d], path) for c, d in _cuts(bare[a:b], "&&")] for a, b in _cuts(bare, "||")]
    return lambda value: any(all(test(value) for test in tests) for tests in either)


def _cuts(bare: str, sign: str) -> Iterator[tuple[int, int]]:
    at = 0
    for part in bare.split(sign):
        yield at, at + len(part)
        at += len(part) + len(sign)


def _test(text: str, path: str) -> Callable[[Any], bool]:
    match = _TEST.fullmatch(text)
    if match is None:
        rule = f"{text.strip()!r} is no filter"
        raise BadSlice("path", path, rule, "Filters are [?(@.name)], [?(@.name == 'x')], [?(@.a > 1 && @.b != 2)].")
    keys = [
        word[1:]
        if word[0] == "."
        else _unquoted(word[1:-1].strip())
        if word[1:-1].strip()[0] in "'\""
        else int(word[1:-1])
        for word in re.findall(rf"\.\w[\w-]*|\[\s*(?:{_QUOTED}|-?\d+)\s*\]", match["path"])
    ]

    def member(value: Any) -> Any:
        for key in keys:
            value = _member(value, key)
        return value

    sign, negated = match["sign"], bool(match["not"])
    if sign is None:
        return lambda value: (member(value) is _ABSENT) == negated
    literal = _literal(match["value"], path)
    return lambda value: _compared(member(value), sign, literal) != negated


def _literal(text: str, path: str) -> Any:
    if text[0] in "'\"":
        return _unquoted(text)
    try:
        return json.loads(text)
    except ValueError:
        rule = f"{text!r} is no value to compare with"
        raise BadSlice("path", path, rule, "Put text in quotes; numbers, true, false and null need none.") from None


def _compared(value: Any, sign: str, literal: Any) -> bool:
    same = value == literal and isinstance(value, bool) == isinstance(literal, bool)
    if sign in ("==", "!="):
        return bool(same) == (sign == "==")
    numbers = all(isinstance(item, int | float) and not isinstance(item, bool) for item in (value, literal))
    if not numbers and not (isinstance(value, str) and isinstance(literal, str)):
        return False
    low, high = (value, literal) if sign[0] == "<" else (literal, value)
    return bool(low < high) or (sign.endswith("=") and bool(same))


def _about(value: Any) -> str:
    if isinstance(value, dict):
        names = ", ".join(list(map(str, value))[:8])
        return f"an object with {names}{' …' if len(value) > 8 else ''}"
    return f"a list of {len(value):,}" if isinstance(value, list) else "a plain value"
