"""Parts of a long text: ranges of lines, characters and bytes, page by page, the lines that match a pattern, and rows.

A line ends with a newline and keeps it, so that adjacent ranges join to the text itself. What exceeds the cap (in
tokens) is left for the cursor: a short string with the position to continue at, validated when it comes back.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any
from zlib import crc32

from limpet.record import NamedTuple
from limpet.text import tokens

_SPEC = re.compile(r"\s*(?:(\d{1,12})\s*(-)?\s*(\d{1,12})?|-\s*(\d{1,12}))\s*")
_CURSOR = re.compile(r"([plmr])([0-9a-f]{1,14})-([0-9a-f]{1,12})-([0-9a-f]{8})")
_TOKEN_CHARS = 100  # no token is estimated to cover more characters than this
_OFFSET_BITS = 27  # of a place by line and byte in it: no output is longer
_LINES_AT_ONCE = 128  # lines that are asked for first; when they leave room, four times as many
_LONG_LINE = 400  # characters; of a longer line, the surroundings of each match are shown
_AROUND = 150  # characters shown on each side of a match in a long line
_IN_LINE = 5  # matches shown of one long line
_CONTEXT_MOST = 50  # lines of context on each side
_COUNTED = 100_000  # matching lines that are counted; work stops there
_PATTERN_MOST = 1_000  # characters of a pattern
_ROWS_MOST = 1_000_000  # rows of a table that are counted
_ENGINE_BYTES = 16 << 20  # memory a regular expression may take


class Slice(NamedTuple):
    content: str
    cursor: str | None  # where to go on, if something is left
    note: str  # what this is a part of, and what was left out


class TextSource(NamedTuple):
    """A text that is read in parts: its size in bytes and lines, and functions that read ranges."""

    size: int
    lines: int
    read: Callable[[int, int], bytes]  # from the one place to the other
    read_lines: Callable[[int, int], bytes]  # from the one line to the other, from 1, both included


def _source(text: TextSource | str | bytes) -> TextSource:
    if isinstance(text, TextSource):
        return text
    body = _encoded(text) if isinstance(text, str) else text
    total = body.count(b"\n") + (not body.endswith(b"\n") and body != b"")

    def some_lines(first: int, last: int) -> bytes:
        return body[_line_start(body, first, total) : _line_start(body, last + 1, total)]

    return TextSource(len(body), total, lambda start, stop: body[start:stop], some_lines)


class BadSlice(ValueError):
    """An invalid argument of a read. The message names the value, the rule and the next step."""

    def __init__(self, what: str, value: object, rule: str, advice: str) -> None:
        text = repr(value)
        quoted = text if len(text) <= 60 else f"{text[:59]}…"
        super().__init__(f"{what} {quoted} cannot be read: {rule}. {advice}")


def spec(what: str, value: str, low: int) -> tuple[int | None, int | None]:
    """A range as written: (first, last), (first, None) for an open end, (None, n) for the last n.

    A single number is a range of one. `low` is the number that counting starts with.
    """
    match = _SPEC.fullmatch(value)
    if match is None:
        raise BadSlice(what, value, "a range is written 100-150, 100, 100- or -50 for the last 50", "Write it so.")
    if match[4] is not None:
        return None, int(match[4])
    first = int(match[1])
    last = int(match[3]) if match[3] else None if match[2] else first
    if first < low:
        raise BadSlice(what, value, f"counting starts with {low}", f"Begin with {low}.")
    if last is not None and last < first:
        raise BadSlice(what, value, "it ends before it begins", "Put the smaller number first.")
    return first, last


def line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")


def lines(text: TextSource | str, interval: str, cap: int) -> Slice:
    """Lines by number, from 1, both ends included."""
    source = _source(text)
    first, last = line_range(interval, source.lines)
    if last < first:
        return Slice("", None, f"no lines of {source.lines:,}")
    return _from_line(source, first, 0, last, cap)


def line_range(interval: str, total: int) -> tuple[int, int]:
    """The first and the last line of a range, of so many lines."""
    first, last = spec("lines", interval, 1)
    if first is None:
        return max(1, total - (last or 0) + 1), total
    if first > max(total, 1):
        raise BadSlice("lines", interval, f"the text has {total:,} lines", f"Choose from 1 to {total:,}.")
    return first, total if last is None else min(last, total)


def _from_line(source: TextSource, first: int, skip: int, last: int, cap: int) -> Slice:
    """Lines, the first of them without so many bytes, as far as they fit. No more is read than could fit."""
    body, reach, step = b"", first - 1, _LINES_AT_ONCE
    while reach < last and len(body) - skip < cap * _TOKEN_CHARS:
        stop = min(last, reach + step)
        body += source.read_lines(reach + 1, stop)
        reach, step = stop, step * 4
    text = decoded(body[skip:])
    content = _cut(text[: cap * _TOKEN_CHARS], cap)
    if reach == last and len(content) == len(text):
        return Slice(content, None, f"lines {first:,}-{last:,} of {source.lines:,}")
    line = first + content.count("\n")
    ended = content.rfind("\n") + 1
    offset = len(_encoded(content[ended:])) + (0 if ended else skip)
    cursor = to_cursor("l", line << _OFFSET_BITS | offset, last, source.size)
    last_shown, broken = (line, " (the last one cut)") if offset else (line - 1, "")
    return Slice(content, cursor, f"lines {first:,}-{last_shown:,}{broken} of {first:,}-{last:,}, of {source.lines:,}")


def _line_start(body: bytes, number: int, total: int) -> int:
    """The start of a line, found from the nearer end of the text in long strides."""
    if number > total:
        return len(body)
    if number > total // 2:
        at = len(body) - body.endswith(b"\n")
        for _ in range(total - number + 1):
            at = body.rfind(b"\n", 0, at)
        return at + 1
    at, left, stride = 0, number - 1, 1 << 16
    while left > 0 and (count := body.count(b"\n", at, at + stride)) < left:
        at, left = at + stride, left - count
    for _ in range(left):
        at = body.find(b"\n", at) + 1
    return at


def chars(text: TextSource | str, interval: str, cap: int) -> Slice:
    """Characters by position, from 0, the end not included, so that 0-500 and 500-900 join."""
    source = _source(text)
    full = decoded(source.read(0, source.size))
    start, end = _bounds("chars", interval, len(full))
    content = _cut(full[start : min(end, start + cap * _TOKEN_CHARS)], cap)
    stop = start + len(content)
    cursor = None
    if stop < end:
        at = len(_encoded(full[:stop]))
        cursor = to_cursor("p", at, at + len(_encoded(full[stop:end])), source.size)
    requested = "" if cursor is None else f" of {start:,}-{end:,}"
    return Slice(content, cursor, f"characters {start:,}-{stop:,}{requested} of {len(full):,}")


def bytes_(text: TextSource | str | bytes, interval: str, cap: int) -> Slice:
    """Bytes of UTF-8 by position, from 0, the end not included. A character cut by the range is included."""
    source = _source(text)
    requested = _bounds("bytes", interval, source.size)
    low = max(0, requested[0] - 3)
    before, after = source.read(low, requested[0] + 1), source.read(requested[1], requested[1] + 4)
    start, end = requested
    while start > low and before[start - low : start - low + 1] and before[start - low] & 0xC0 == 0x80:
        start -= 1
    while end - requested[1] < len(after) and after[end - requested[1]] & 0xC0 == 0x80 and end - requested[1] < 3:
        end += 1
    content, stop = _capped(source, start, end, cap)
    widened = (
        "" if (start, end) == requested else f", widened from {requested[0]:,}-{requested[1]:,} to whole characters"
    )
    left = f"; {end - stop:,} more asked for" if stop < end else ""
    cursor = to_cursor("p", stop, end, source.size) if stop < end else None
    return Slice(content, cursor, f"bytes {start:,}-{stop:,} of {source.size:,}{widened}{left}")


def decoded(data: bytes) -> str:
    # Lone surrogates can be stored; bytes that are not UTF-8 at all become U+FFFD.
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _bounds(what: str, interval: str, size: int) -> tuple[int, int]:
    first, last = spec(what, interval, 0)
    if first is None:
        return max(0, size - (last or 0)), size
    if first > size or (first == size and size > 0):
        raise BadSlice(what, interval, f"the text ends at {size:,}", f"Choose from 0 to {size:,}.")
    if last == first and "-" not in interval:
        last = first + 1
    return first, size if last is None else min(last, size)


def page(text: TextSource | str, cursor: str | None, cap: int) -> Slice:
    """All of a text, page by page, or the rest of a range that was cut. The pages join to the original."""
    source = _source(text)
    if cursor is not None and cursor.startswith("l"):
        at, last = from_cursor(cursor, "l", source.size)
        return _from_line(source, at >> _OFFSET_BITS, at & (1 << _OFFSET_BITS) - 1, last, cap)
    start, end = (0, source.size) if cursor is None else from_cursor(cursor, "p", source.size)
    content, stop = _capped(source, start, end, cap)
    if cursor is None and stop == end:
        return Slice(content, None, f"all of it: {source.size:,} bytes")
    left = f"; {end - stop:,} left" if stop < end else "; this is the end"
    following = to_cursor("p", stop, end, source.size) if stop < end else None
    return Slice(content, following, f"bytes {start:,}-{stop:,} of {source.size:,}{left}")


def _capped(source: TextSource, start: int, end: int, cap: int) -> tuple[str, int]:
    """As much of these bytes as fits, and where the rest begins."""
    data = source.read(start, min(end, start + cap * _TOKEN_CHARS))
    content = _cut(decoded(data if start + len(data) >= end else _whole_characters(data)), cap)
    return content, min(end, start + len(_encoded(content)))


def _cut(window: str, cap: int) -> str:
    # A single character may cost more than the cap; without it the reader would make no progress.
    return tokens.cut(window, cap)[0] or window[:1]


def _whole_characters(data: bytes) -> bytes:
    """The bytes without the beginning of a character at their end."""
    for back in range(1, min(4, len(data)) + 1):
        if data[-back] < 0x80:
            break
        if data[-back] >= 0xC0:
            full = 2 if data[-back] < 0xE0 else 3 if data[-back] < 0xF0 else 4
            return data[:-back] if full > back else data
    return data


def to_cursor(kind: str, at: int, end: int, size: int) -> str:
    """The position to continue at. Its checksum covers the kind of read and the size of the text."""
    place = f"{kind}{at:x}-{end:x}"
    return f"{place}-{crc32(f'{place}-{size}'.encode()):08x}"


def from_cursor(cursor: str, kind: str, size: int) -> tuple[int, int]:
    match = _CURSOR.fullmatch(cursor)
    advice = "Give the cursor of the last answer, with the same id and way of reading, or none to begin."
    if match is None:
        raise BadSlice("cursor", cursor, "it is not one of ours", advice)
    at, end = int(match[2], 16), int(match[3], 16)
    if match[1] != kind or to_cursor(kind, at, end, size) != cursor:
        raise BadSlice("cursor", cursor, "it belongs to another output or another way of reading", advice)
    return at, end


# --- matches ----------------------------------------------------------------------------------------------------------


def match(text: str, pattern: str, regex: bool, context: int, cap: int, cursor: str | None = None) -> Slice:
    """The lines with a text or a regular expression, numbered, with lines around them.

    A text that occurs in another case is a match if there is no exact one, and the note says so. Regular expressions
    run in RE2, which takes linear time, so untrusted ones are safe; it has no look-around and no back references.
    """
    if not pattern or len(pattern) > _PATTERN_MOST:
        raise BadSlice("match", pattern, f"it needs 1 to {_PATTERN_MOST:,} characters", "Shorten it or write one.")
    if not 0 <= context <= _CONTEXT_MOST:
        raise BadSlice("context", context, f"it must be from 0 to {_CONTEXT_MOST}", "Choose a number in between.")
    begin = from_cursor(cursor, "m", len(text))[0] if cursor else 0
    matches, how = _matches(text, pattern, regex)
    if not matches:
        return Slice("", None, f"no line of {line_count(text):,} matches")
    rest = [spans for spans in matches if spans[0][0] >= begin]
    content, count = _groups(text, rest, context, cap)
    counted = f"{len(matches):,}" + (" or more" if len(matches) >= _COUNTED else "")
    before = len(matches) - len(rest)
    if count == len(matches):
        named = "the one matching line" if count == 1 else f"all {counted} matching lines"
        return Slice(content, None, f"{named}{how}")
    following = to_cursor("m", rest[count][0][0], len(text), len(text)) if count < len(rest) else None
    return Slice(content, following, f"{before + 1:,}-{before + count:,} of {counted} matching lines{how}")


Spans = list[tuple[int, int]]  # the matches in one line; of a long line a few, of a short one the first


def _matches(text: str, pattern: str, regex: bool) -> tuple[list[Spans], str]:
    """The matches by line, and a note if they were found by ignoring case."""
    if regex:
        return _regex_spans(text, pattern), ""
    matches = _plain_spans(text, pattern)
    if matches or pattern.lower() == pattern.upper():
        return matches, ""
    low = text.lower()
    # A few letters change their length in lower case; positions would not be those of the original.
    return (_plain_spans(low, pattern.lower()), ", in any case") if len(low) == len(text) else ([], "")


def _plain_spans(text: str, pattern: str) -> list[Spans]:
    matches: list[Spans] = []
    end = -1
    at = text.find(pattern)
    while at >= 0:
        after = at + len(pattern)
        if at > end:
            if len(matches) >= _COUNTED:
                break
            matches.append([])
            end = _line_end(text, at)
        matches[-1].append((at, after))
        # One match says enough about a short line; of a long one a few are shown.
        done = len(matches[-1]) > _IN_LINE or end - at < _AROUND
        at = text.find(pattern, max(after, end) if done else after)
    return matches


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _regex_spans(text: str, pattern: str) -> list[Spans]:
    # Late: a compiled library of several megabytes for one kind of read.
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _ENGINE_BYTES
    options.never_nl = True  # A match stays within its line.
    try:
        engine = re2.compile(f"(?m:{pattern})".encode("utf-8", "surrogatepass"), options)
    except re2.error as problem:
        why = problem.args[0] if problem.args else b"not a regular expression"
        why = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        advice = "Mend it, or leave regex out to look for the text itself."
        raise BadSlice("match", pattern, f"as a regular expression it is not valid ({why})", advice) from None
    try:
        return _spans(text.encode("utf-8", "surrogatepass"), engine)
    except UnicodeDecodeError:
        why, advice = "it matches parts of a character", r"Write . instead of \C."
        raise BadSlice("match", pattern, why, advice) from None


def _spans(data: bytes, engine: Any) -> list[Spans]:
    matches: list[Spans] = []
    at, end, read, place = 0, -1, 0, 0  # `place` is the character at the byte `read`
    while at <= len(data) and (hit := engine.search(data, at)):
        first, last = hit.span()
        if first > end:
            if len(matches) >= _COUNTED or (first == len(data) and data.endswith(b"\n")):
                break
            matches.append([])
            end = data.find(b"\n", first)
            end = len(data) if end < 0 else end
        place, read = place + len(data[read:first].decode("utf-8", "surrogatepass")), first
        matches[-1].append((place, place + len(data[first:last].decode("utf-8", "surrogatepass"))))
        done = len(matches[-1]) > _IN_LINE or end - first < _AROUND
        at = end + 1 if done else max(last, first + 1)
        while at < len(data) and data[at] & 0xC0 == 0x80:
            at += 1
    return matches


def _groups(text: str, matches: list[Spans], context: int, cap: int) -> tuple[str, int]:
    """Matching lines with what is around them, as much as fits, and how many of them that is."""
    parts: list[str] = []
    left = cap
    number, counted = 1, 0  # the number of the line that begins at `counted`
    done = 0  # everything before this position is shown already
    for index, spans in enumerate(matches):
        start = text.rfind("\n", 0, spans[0][0]) + 1
        number, counted = number + text.count("\n", counted, start), start
        # The context ends where the next match begins, which then goes on without a gap.
        limit = text.rfind("\n", 0, matches[index + 1][0][0]) + 1 if index + 1 < len(matches) else len(text)
        before, first = _before(text, start, number, context, done)
        after, end = _after(text, _line_end(text, spans[0][0]) + 1, number, context, limit)
        block = f"{before}{number}: {_windows(text, start, _line_end(text, start), spans)}\n{after}"
        if parts and first > done:
            block = f"--\n{block}"
        cost = tokens.count(block)
        if cost > left and not parts:
            return tokens.cut(block, cap)[0], 1
        if cost > left:
            return "".join(parts), index
        left -= cost
        parts.append(block)
        done = end
    return "".join(parts), len(matches)


def _before(text: str, start: int, number: int, context: int, done: int) -> tuple[str, int]:
    """The lines before a match that were not shown yet, and where they begin."""
    lines_before: list[str] = []
    while start > done and len(lines_before) < context:
        end = start - 1
        start = text.rfind("\n", 0, end) + 1
        lines_before.append(f"{number - len(lines_before) - 1}- {_clip(text[start:end])}\n")
    return "".join(reversed(lines_before)), start


def _after(text: str, start: int, number: int, context: int, limit: int) -> tuple[str, int]:
    """The lines after a match up to the next one, and where they end."""
    lines_after: list[str] = []
    while start < limit and len(lines_after) < context:
        end = _line_end(text, start)
        lines_after.append(f"{number + len(lines_after) + 1}- {_clip(text[start:end])}\n")
        start = end + 1
    return "".join(lines_after), start


def _clip(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= _LONG_LINE else f"{line[:_AROUND]} … ({len(line):,} characters)"


def _windows(text: str, start: int, end: int, spans: Spans) -> str:
    """A matching line; of a long one what is around its matches, with the place of each in the whole text."""
    if end - start <= _LONG_LINE:
        return text[start:end].removesuffix("\r")
    excerpts: list[str] = []
    reach = -1
    for first, last in spans[:_IN_LINE]:
        low, high = max(start, first - _AROUND), min(end, min(last, first + _AROUND) + _AROUND)
        if first > reach:
            excerpts.append(f"[at {first:,}] …{text[max(low, reach) : high]}…")
            reach = high
    more = " and more in this line" if len(spans) > _IN_LINE else ""
    return f"{' '.join(excerpts)} ({end - start:,} characters{more})"


# --- tables -----------------------------------------------------------------------------------------------------------


def rows(
    text: str, interval: str | None, columns: str | Sequence[str] | None, cap: int, cursor: str | None = None
) -> Slice:
    """Rows of a table by number, from 1 after the header, and columns by name or number, separated by tabs.

    A table is CSV, TSV, a Markdown table, a JSON array of objects (or an object with one inside) or JSON Lines.
    """
    header, table = _table(text)
    keep = _columns(header, columns)
    first, last = spec("rows", interval, 1) if interval else (1, None)
    if first is None:
        first, last = max(1, len(table) - (last or 0) + 1), len(table)
    if first > max(1, len(table)):
        raise BadSlice("rows", interval, f"the table has {len(table):,} rows", f"Choose from 1 to {len(table):,}.")
    last = len(table) if last is None else min(last, len(table))
    begin = from_cursor(cursor, "r", len(text))[0] if cursor else first
    lines_out = ["\t".join(_cell(header[i]) for i in keep)]
    left = cap - tokens.count(lines_out[0]) - 1
    at = begin
    for row in table[begin - 1 : last]:
        line = "\t".join(_cell(row[i]) if i < len(row) else "" for i in keep)
        cost = tokens.count(line) + 1
        if cost > left and at > begin:
            break
        lines_out.append(line if cost <= left else f"{tokens.cut(line, max(left, 8))[0]}…")
        left -= cost
        at += 1
    following = to_cursor("r", at, last, len(text)) if at <= last else None
    which = (
        f"rows {begin:,}-{at - 1:,}" + (f" of {begin:,}-{last:,}," if following else "") if at > begin else "no rows"
    )
    return Slice("\n".join(lines_out), following, f"{which} of {len(table):,}; columns {len(keep)} of {len(header)}")


def _cell(value: str) -> str:
    return " ".join(value.split()) if "\t" in value or "\n" in value or "\r" in value else value


def _columns(header: list[str], columns: str | Sequence[str] | None) -> list[int]:
    if not columns:
        return list(range(len(header)))
    names = columns.split(",") if isinstance(columns, str) else list(columns)
    by_name = {name.strip().lower(): index for index, name in reversed(list(enumerate(header)))}
    keep: list[int] = []
    for name in (str(name).strip() for name in names):
        at = by_name.get(name.lower())
        if at is None and name.isdigit() and 1 <= int(name) <= len(header):
            at = int(name) - 1
        if at is None:
            available = ", ".join(header[:30]) + (" …" if len(header) > 30 else "")
            raise BadSlice("column", name, "the table has no such column", f"It has {available}.")
        keep.append(at)
    return keep


def _table(text: str) -> tuple[list[str], list[list[str]]]:
    try:
        parsed = table(text)
        if parsed is not None:
            return parsed[0], list(islice(parsed[1], _ROWS_MOST))
        why = "it is not a table (CSV, TSV, Markdown, JSON list of objects, JSON Lines)"
    except csv.Error as problem:
        why = f"it cannot be cut into cells ({problem})"
    raise BadSlice("the text", text[:40], why, "Read it with lines, match, path or query.") from None


# --- a text as a table ------------------------------------------------------------------------------------------------

_SEPARATORS = ("\t", ",", ";", "|")
# The line of dashes below the header of a Markdown table; at least one bar tells it from a mere rule.
_RULE = re.compile(
    r"^[ \t]{0,8}(?=[^\n]{0,400}\|)\|?[ \t]{0,40}:?-{1,200}:?"
    r"(?:[ \t]{0,40}\|[ \t]{0,40}:?-{1,200}:?){0,200}[ \t]{0,40}\|?[ \t\r]{0,8}$",
    re.MULTILINE,
)
_BAR = re.compile(r"(?<!\\)\|")


def table(text: str) -> tuple[list[str], list[list[str]]] | None:
    """Header and rows, or None when the text is no table."""
    records = _records(text)
    if records is not None:
        names = list(dict.fromkeys(name for record in records for name in record))
        return names, [[_json_cell(record.get(name, "")) for name in names] for record in records]
    plain = text.lstrip("\ufeff")
    drawn = _drawn(plain)
    if drawn is not None:
        return drawn
    head = plain.split("\n", 1)[0]
    separator = max(_SEPARATORS, key=head.count)
    if not head.count(separator):
        return None
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(plain, newline=""), delimiter=separator)]
    rows = [row for row in rows if row]
    return (rows[0], rows[1:]) if rows else None


def _drawn(text: str) -> tuple[list[str], list[list[str]]] | None:
    """The first Markdown table: a line with bars, a line of dashes below it, and the lines with bars that follow."""
    rule = _RULE.search(text)
    if rule is None:
        return None
    start = text.rfind("\n", 0, rule.start() - 1) + 1 if rule.start() else 0
    header = _cells(text[start : max(start, rule.start() - 1)])
    rows: list[list[str]] = []
    at = rule.end() + 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        if "|" not in line:
            break
        rows.append(_cells(line))
        at = end + 1
    return (header, rows) if len(header) > 1 or text[start : rule.start()].lstrip().startswith("|") else None


def _cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table; a bar after a backslash is part of one."""
    bare = line.strip().removeprefix("|")
    bare = bare if bare.endswith("\\|") else bare.removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(bare)]


def _records(text: str) -> list[dict[str, Any]] | None:
    """Objects of a JSON list, of the longest such list in a JSON object, or one a line."""
    if not text.lstrip("\ufeff \t\r\n").startswith(("[", "{")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        try:
            value = [json.loads(line) for line in text.split("\n") if line.strip()]
        except (ValueError, RecursionError):
            return None
    if isinstance(value, dict):
        document = value
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        value = max(lists, key=lambda inner: sum(isinstance(item, dict) for item in inner), default=[])
        value = value if any(isinstance(item, dict) for item in value) else [document]
    return [item for item in value if isinstance(item, dict)] or None


def _json_cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
