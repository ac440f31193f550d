"""JSON: its outline, a profile of its rows, and the rows that are unusual. JSON Lines are rows too.

A list too long to be parsed is sampled. Its beginning is parsed, which gives the path of the list, a typical row and
the separator between rows. Each separator begins another row, so that rows can be read from anywhere in the text, and
the number of separators estimates the number of rows.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

from limpet.previews.core import OutputText, Sheet, clip, plural, spread
from limpet.previews.tables import MOST_ROWS, NESTED, as_number, opaque, profile
from limpet.record import NamedTuple
from limpet.text import tokens
from limpet.text.safe import printable

_MOST_NODES = 60_000  # Values that are looked at when the biggest collection is searched.
_BAD = {"error", "failed", "failure", "fail", "fatal", "critical", "timeout", "timed_out", "cancelled", "rejected"}
_BAD_KEYS = {"error", "errors", "exception", "failure", "stderr", "traceback", "isError"}
_DULL_KEYS = ("_url", "node_id", "_id", "gravatar_id", "sha", "hash", "etag", "color", "avatar")
_LONGEST_VALUE = 90
_ROW_TOKENS = 52
_SAYS_LITTLE = re.compile(r": [\d,]{1,12} distinct(?:, [\d,]{1,12} empty)?$|: (?:False|None|all empty)")
# What a reader calls a row by, best first.
_TELLING = ("title", "name", "number", "login", "error", "message", "status", "state", "id", "key", "path", "version")

HEAD = 12_000  # Characters of the beginning that are parsed.
ROWS = 40  # Rows from all over the list.
_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()
_big_cache: WeakKeyDictionary[OutputText, Big | None] = (
    WeakKeyDictionary()
)  # both score and render ask, and it takes its time


class Big(NamedTuple):
    """The rows of a text that was not parsed whole."""

    outline: str
    rows: Rows
    total: int


class Rows(NamedTuple):
    """A collection of similar objects, and its path."""

    path: str
    items: list[dict[str, object]]
    names: list[str] | None  # the keys, when the collection is an object


def json_score(text: OutputText) -> float:
    """1 when the whole text is JSON."""
    return 1.0 if text.bracketed and (_big(text) or isinstance(text.parsed, NESTED)) else 0.0


def render_json(text: OutputText, sheet: Sheet) -> None:
    """The outline of the value, then the rows of its biggest collection."""
    spaced = '": ' in text.content[:4000]
    big = _big(text)
    if big is not None:
        sheet.add(big.outline, at=0)
        show_rows(big.rows, sheet, spaced, f"about {big.total:,} rows")
        return
    value = text.parsed
    sheet.add(outline(value), at=0)
    rows = biggest(value)
    if rows is None:
        _leaves(value, sheet, spaced)
        return
    if isinstance(value, dict):
        scalars = {key: each for key, each in list(value.items())[:200] if not isinstance(each, NESTED)}
        if scalars:
            sheet.add_all([row_text(scalars, spaced, 300)], at=1, share=0.25)
    show_rows(rows, sheet, spaced)


def _big(text: OutputText) -> Big | None:
    """What is seen of a text that is too long to be parsed for a preview; None when it is not, or has no rows."""
    if text not in _big_cache:
        _big_cache[text] = _sampled(text)
    return _big_cache[text]


def _sampled(text: OutputText) -> Big | None:
    head = sample(text.content) if text.big and text.bracketed else None
    if head is None:
        return None
    rows = biggest(head.value)
    if rows is None or rows.path != head.path or rows.names is not None:
        return None
    summary = outline(head.value).replace(f"[{head.read}]", f"[about {head.total:,}]", 1)
    if isinstance(head.value, list):
        summary = f"array of about {head.total:,} (objects)"
    return Big(summary, Rows(rows.path, head.rows, None), head.total)


def outline(value: object) -> str:
    """`array of 406 objects`, `object: version "1.0", items [12]`."""
    if isinstance(value, list):
        kinds = sorted({_kind(each) for each in value[:1000]})
        return f"array of {len(value):,} ({', '.join(kinds)})" if kinds else "empty array"
    if isinstance(value, dict):
        parts = [f"{clip(str(key), 40)} {_brief(each)}" for key, each in list(value.items())[:14]]
        more = f", … {len(value) - 14:,} more keys" if len(value) > 14 else ""
        return "object: " + clip(", ".join(parts), 400) + more
    return _kind(value)


def biggest(value: object) -> Rows | None:
    """The collection of objects with the most rows; the one nearer to the top when two have as many."""
    best: Rows | None = None
    queue: list[tuple[str, object]] = [("", value)]
    visited = 0
    while queue and visited < _MOST_NODES:
        path, node = queue.pop(0) if len(queue) < 2000 else queue.pop()
        visited += 1
        rows = _as_rows(path, node)
        if rows is not None and (best is None or len(rows.items) > 2 * len(best.items)):
            best = rows
        children: Iterable[tuple[object, object]] = ()
        if isinstance(node, dict):
            children = list(node.items())[:500]
        elif isinstance(node, list):
            children = enumerate(node[:200])
        queue += [(f"{path}/{name}", each) for name, each in children if isinstance(each, NESTED)]
    return best


def show_rows(rows: Rows, sheet: Sheet, spaced: bool, count: str = "") -> None:
    """A profile of the columns, then rows, unusual ones first. `count` describes the rows if they are a sample."""
    chosen = spread(len(rows.items), MOST_ROWS)
    items = [rows.items[at] for at in chosen]
    names = [rows.names[at] for at in chosen] if rows.names is not None else None
    deep = _stable(items)
    flat = [flatten(item, deep) for item in items]
    columns: dict[str, None] = {}
    for item in flat:
        columns.update(dict.fromkeys(item))
    keys = list(columns)[:60]
    sampled = f" (of {len(items):,} rows)" if len(items) < len(rows.items) or count else ""
    where = f" at {clip(rows.path, 80)}" if rows.path else ""
    sheet.add(f"{count or plural(len(rows.items), 'row')}{where}, by column{sampled}:", at=2)
    plain = [key for key in keys if not _dull(key, flat)]
    values = {key: [item.get(key) for item in flat] for key in keys}
    numbers = {key: list(map(as_number, column)) for key, column in values.items()}
    if len(flat) > 6:
        profiles = [clip(profile(clip(key, 60), values[key], numbers[key]), 140) for key in plain]
        informative = [each for each in profiles if not _SAYS_LITTLE.search(each)]
        sheet.add_all(informative, at=2, share=0.4)
        rest = [each.split(":", 1)[0] for each in profiles if _SAYS_LITTLE.search(each)]
        if rest:
            sheet.add(clip("also " + ", ".join(rest), 160), at=2)
    telling = _telling(plain, values) or plain or keys
    order = _order(flat, [numbers[key] for key in telling[:12]])
    shown_rows = 0
    for at in order:
        row = {key: flat[at][key] for key in telling if key in flat[at] and flat[at][key] not in (None, "")}
        line = _fitting(row, spaced)
        if names is not None:
            line = f"{json.dumps(clip(names[at], 80), ensure_ascii=False)}{': ' if spaced else ':'}{line}"
        if sheet.add(line, at=3):
            shown_rows += 1
        elif sheet.left < 25:
            break


def _fitting(row: Mapping[str, object], spaced: bool) -> str:
    """The row in some fifty tokens: what it is recognised by stays longest."""
    keys = sorted(row, key=_rank)
    while len(keys) > 1:
        line = row_text({key: value for key, value in row.items() if key in keys}, spaced, 260)
        if tokens.count(line) <= _ROW_TOKENS:
            return line
        keys.pop()
    return row_text({key: row[key] for key in keys}, spaced, 160)


def _rank(key: str) -> tuple[int, str]:
    last = re.split(r"[._]", key)[-1].lower()
    return (_TELLING.index(last) if last in _TELLING else 50 if not last.endswith(("at", "date", "time")) else 90), key


def row_text(row: Mapping[str, object], spaced: bool, length: int) -> str:
    """A row as JSON in the manner of the source, long values shortened."""
    separators = (", ", ": ") if spaced else (",", ":")
    short = _nested({key: _short(value) for key, value in row.items()})
    text = json.dumps(short, ensure_ascii=False, separators=separators, default=str)
    return clip(printable(text), length)


def _nested(row: Mapping[str, object]) -> dict[str, object]:
    """Dotted names as the objects they came from, so that a row reads as in the source."""
    out: dict[str, object] = {}
    for name, value in row.items():
        *outer, last = name.split(".") if all(name.split(".")) else [name]
        place = out
        for part in outer:
            inner = place.setdefault(part, {})
            if not isinstance(inner, dict):
                break
            place = inner
        else:
            place[last] = value
            continue
        out[name] = value
    return out


def flatten(item: Mapping[str, object], deep: frozenset[str], prefix: str = "") -> dict[str, object]:
    """The fields of an object, and of the objects in it that all rows have alike, by dotted names."""
    out: dict[str, object] = {}
    for key, value in list(item.items())[:80]:
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name in deep:
            out.update(flatten(value, deep, f"{name}."))
        elif (
            isinstance(value, list) and value and all(isinstance(each, dict) and "name" in each for each in value[:20])
        ):
            out[name] = ", ".join(str(each["name"]) for each in value[:6] if isinstance(each, dict) and "name" in each)
        else:
            out[name] = value
    return out


def _stable(items: Sequence[Mapping[str, object]]) -> frozenset[str]:
    """The fields that hold objects with mostly the same keys in every row: these are columns, others are maps."""
    rows: Counter[str] = Counter()
    keys: dict[str, Counter[str]] = {}
    queue: list[tuple[str, Mapping[str, object]]] = [("", item) for item in items[:100]]
    while queue:
        prefix, item = queue.pop()
        for key, value in list(item.items())[:80]:
            name = f"{prefix}{key}"
            if isinstance(value, dict) and 0 < len(value) <= 40:
                rows[name] += 1
                keys.setdefault(name, Counter()).update(map(str, value))
                if name.count(".") < 2:
                    queue.append((f"{name}.", value))
    return frozenset(name for name, each in keys.items() if each.total() * 2 >= rows[name] * len(each))


def _as_rows(path: str, node: object) -> Rows | None:
    if isinstance(node, list):
        items = [each for each in node if isinstance(each, dict)]
        return Rows(path, items, None) if len(items) >= 2 and len(items) * 2 >= len(node) else None
    if not isinstance(node, dict) or len(node) < 3:
        return None
    pairs = [(str(key), each) for key, each in node.items() if isinstance(each, dict)]
    if len(pairs) < 3 or len(pairs) * 5 < len(node) * 4:
        return None
    shared = set(pairs[0][1])
    for _, each in pairs[:50]:
        shared &= set(each)
    return Rows(path, [each for _, each in pairs], [key for key, _ in pairs]) if shared else None


def _telling(keys: Sequence[str], values: Mapping[str, Sequence[object]]) -> list[str]:
    """The columns a row is recognised by: those whose values differ and are short."""
    out = []
    for key in keys:
        present = [value for value in values[key][:300] if value is not None and value != ""]
        texts = [value for value in present if isinstance(value, str)]
        nested = [value for value in present if isinstance(value, NESTED)]
        long = bool(texts) and sum(map(len, texts)) > 110 * len(texts)
        same = len(present) > 3 and len({str(value)[:80] for value in present}) == 1
        if present and not long and not same and len(nested) * 2 <= len(present):
            out.append(key)
    return out


def _order(flat: Sequence[Mapping[str, object]], columns: Sequence[Sequence[float | None]]) -> list[int]:
    """Rows that say error, then the first, the extremes, the last, and then others, evenly."""
    bad = [at for at, row in enumerate(flat) if _bad(row)]
    extremes = []
    for column in columns:
        numbers = [(value, at) for at, value in enumerate(column) if value is not None]
        if len({value for value, _ in numbers}) > 8:
            extremes.append(max(numbers, key=lambda pair: (pair[0], -pair[1]))[1])
    last = len(flat) - 1
    order = [*bad[:3], 0, *extremes[:2], last, 1, *extremes[2:4], *spread(len(flat), 24), *range(min(len(flat), 40))]
    return [at for at in dict.fromkeys(order) if 0 <= at <= last]


def _bad(row: Mapping[str, object]) -> bool:
    for key, value in row.items():
        if isinstance(value, str) and value.lower() in _BAD:
            return True
        if value and value is not True and key.rsplit(".", 1)[-1] in _BAD_KEYS:
            return True
    return False


def _dull(key: str, flat: Sequence[Mapping[str, object]]) -> bool:
    if key.endswith(_DULL_KEYS):
        return True
    if key.endswith(".id") and any(isinstance(row.get(key), str) for row in flat[:5]):
        return True
    values = [row[key] for row in flat[:40] if row.get(key) not in (None, "")]
    return bool(values) and sum(map(opaque, values)) * 2 > len(values)


def _leaves(value: object, sheet: Sheet, spaced: bool) -> None:
    """An object without rows: its values, those nearer to the top first."""
    queue: list[tuple[str, object]] = [("", value)]
    visited = 0
    while queue and visited < 3000 and sheet.left > 8:
        path, node = queue.pop(0)
        visited += 1
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, each in list(items)[:200]:
            where = f"{path}.{key}" if path else str(key)
            if isinstance(each, NESTED) and each:
                queue.append((where, each))
            elif not sheet.add(
                f"{clip(where, 120)}{': ' if spaced else ':'}{clip(json.dumps(_short(each), ensure_ascii=False), 160)}",
                at=3,
            ):
                return


def _short(value: object) -> object:
    if isinstance(value, str):
        return clip(" ".join(value[:600].split()), _LONGEST_VALUE)
    if isinstance(value, list):
        if all(isinstance(each, str | int | float) for each in value[:6]) and value:
            return [_short(each) for each in value[:6]] + (["…"] if len(value) > 6 else [])
        return f"[{len(value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(clip(str(key), 30) for key in list(value)[:5]) + "}"
    return value


def _kind(value: object) -> str:
    if value is None:
        return "null"
    names = {dict: "objects", list: "arrays", str: "strings", bool: "booleans"}
    return names.get(type(value), "numbers")


def _brief(value: object) -> str:
    if isinstance(value, list):
        return f"[{len(value)}]"
    if isinstance(value, dict):
        return f"{{{len(value)}}}"
    return clip(json.dumps(_short(value), ensure_ascii=False), 40)


# --- a list too long to be parsed for a preview -----------------------------------------------------------------------


class Sample(NamedTuple):
    """The value as far as its head tells, where its rows are, rows from all over them, and about how many there are."""

    value: object
    path: str
    rows: list[dict[str, object]]
    read: int  # rows in `value`
    total: int


class _Open(NamedTuple):
    """The list that continues beyond the head: its path, its items, and the separator between them."""

    path: str
    items: list[object]
    separator: str
    start: int
    end: int


def sample(content: str) -> Sample | None:
    """Rows of the list that makes most of the text; None when it is made otherwise."""
    opened: list[_Open] = []
    value = _partial(content[:HEAD], len(content) - len(content.lstrip()), "", opened)
    rows = [item for item in opened[0].items if isinstance(item, dict)] if opened else []
    if len(rows) < 3 or len(rows) < len(opened[0].items) or not opened[0].separator:
        return None
    cut, read, usual = opened[0], len(rows), set(rows[0])
    places = [len(content) * number // ROWS for number in range(1, ROWS)]
    for place in [*(place for place in places if place > cut.end), content.rfind(cut.separator)]:
        # What is in a row may be separated as rows are, and has other members.
        rows += [row for row in _row(content, cut.separator, place) if len(usual & set(row)) * 2 >= len(usual)]
    alike = content.count(cut.separator, cut.start, cut.end) + 1
    return Sample(value, cut.path, rows, read, round((content.count(cut.separator) + 1) * read / alike))


def _row(content: str, separator: str, place: int) -> list[dict[str, object]]:
    """The next row after this place, when one can be read there."""
    at = content.find(separator, max(0, place))
    try:
        value, _ = _DECODER.raw_decode(content, at + len(separator) - 1) if at >= 0 else (None, 0)
    except (ValueError, RecursionError):
        return []
    return [value] if isinstance(value, dict) else []


def _partial(head: str, at: int, path: str, opened: list[_Open]) -> object:
    """The value at this place. Of one that does not end in the head, what is there; the list that is cut is noted."""
    try:
        return _DECODER.raw_decode(head, at)[0]
    except (ValueError, RecursionError):
        pass
    if path.count("/") > 20:
        return None
    if head[at : at + 1] == "[":
        return _items(head, at + 1, path, opened)
    return _members(head, at + 1, path, opened) if head[at : at + 1] == "{" else None


def _items(head: str, at: int, path: str, opened: list[_Open]) -> list[object]:
    items: list[object] = []
    separator = ""
    begun = ended = at = _skip(head, at, "")
    while at < len(head):
        try:
            value, end = _DECODER.raw_decode(head, at)
        except (ValueError, RecursionError):
            break
        items.append(value)
        at = _skip(head, end, ",")
        separator = head[end - 1 : at + 1]
        ended = end
    opened.append(_Open(path, items, separator, begun, ended))
    return items


def _members(head: str, at: int, path: str, opened: list[_Open]) -> dict[str, object]:
    members: dict[str, object] = {}
    at = _skip(head, at, "")
    while at < len(head) and head[at] == '"' and not opened:
        try:
            name, end = _DECODER.raw_decode(head, at)
        except ValueError:
            break
        at = _skip(head, end, ":")
        try:
            members[name], end = _DECODER.raw_decode(head, at)
        except (ValueError, RecursionError):
            members[name] = _partial(head, at, f"{path}/{name}", opened)
            break
        at = _skip(head, end, ",")
    return members


def _skip(head: str, at: int, sign: str) -> int:
    """The place after blanks and at most one such sign."""
    while at < len(head) and head[at] in _SPACE:
        at += 1
    if sign and head[at : at + 1] == sign:
        at += 1
        while at < len(head) and head[at] in _SPACE:
            at += 1
    return at


# --- JSON Lines -------------------------------------------------------------------------------------------------------

_MOST_LINES = 20_000
_MOST_VALUES = 2_000
_MOST_FIRST = 200_000  # Characters in which a second value must begin.


def json_lines_score(text: OutputText) -> float:
    """How many of the lines are JSON objects; or that one JSON value follows on another."""
    if text.content[:200].lstrip()[:1] not in {"{", "["}:
        return 0.0
    sample = [line.strip() for line in text.sample[:60]]
    complete = [line for line in sample if line[:1] in "{[" and (line[-1:] in "}]" or len(line) >= 399)]
    if len(sample) >= 2 and len(complete) * 5 >= len(sample) * 4:
        return 0.95 if any(_value(line) is not None for line in text.lines[:5]) else 0.0
    return 0.85 if len(_values(text.content[:_MOST_FIRST], 2)) >= 2 else 0.0


def render_json_lines(text: OutputText, sheet: Sheet) -> None:
    """The rows of the records, and how many lines are no JSON."""
    lines = text.lines if text.big else [line for line in text.lines if line.strip()]
    chosen = spread(len(lines), text.most(_MOST_LINES))
    values = [_value(lines[at]) for at in chosen]
    records = [value for value in values if isinstance(value, dict)]
    if len(records) * 2 > len(values):
        broken = sum(value is None for value in values)
        note = f", {plural(broken, 'line')} no JSON" if broken else ""
        sheet.add(f"one JSON object a line{note}", at=0)
        if broken:
            bad = next(lines[at] for at, value in zip(chosen, values, strict=True) if value is None)
            sheet.add(f"no JSON: {clip(bad, 120)}", at=1)
        rows: Rows | None = Rows("", records, None)
    else:
        sequence = _values(text.content, _MOST_VALUES)
        sheet.add(f"{plural(len(sequence), 'JSON value')} one after another", at=0)
        joined = [each for value in sequence for each in (value if isinstance(value, list) else [value])]
        rows = biggest(joined)
    if rows is not None:
        show_rows(rows, sheet, '": ' in text.content[:4000])


def _value(line: str) -> object:
    line = line.strip()
    if line[:1] not in {"{", "["}:
        return None
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value


def _values(content: str, most: int) -> list[object]:
    decoder = json.JSONDecoder()
    values: list[object] = []
    at = len(content) - len(content.lstrip())
    while at < len(content) and len(values) < most and content[at] in "{[":
        try:
            value, end = decoder.raw_decode(content, at)
        except (ValueError, RecursionError):
            break
        values.append(value)
        at = end
        while at < len(content) and content[at] in " \n\t,":
            at += 1
    return values
