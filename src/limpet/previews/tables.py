"""Tables: CSV, TSV, Markdown tables and columns lined up with blanks. Header, profile of the columns, telling rows."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Sequence

from limpet.previews.core import BAR, OutputText, Sheet, clip, number, plural, spread
from limpet.record import NamedTuple

MOST_ROWS = 2_000  # Rows that are profiled; of more, evenly chosen ones.
_NUMBER = re.compile(r"[-+]?\d{1,18}(?:\.\d{0,18})?(?:[eE][-+]?\d{1,3})?")
_OPAQUE = re.compile(r"[A-Za-z0-9+/_=-]{16,}")
_FEW = 6
# Asked of every value, and a tuple answers in half the time of a union.
NESTED = (dict, list)
_NUMBERS = (int, float)


def as_number(value: object) -> float | None:
    """The value as a number when it is one or is written like one."""
    if isinstance(value, str):
        bare = value.strip()  # which knows more blanks than `float`
        return float(bare) if _NUMBER.fullmatch(bare) else None
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return None
    return value if abs(value) < 1e300 else None


def opaque(value: object) -> bool:
    """Whether the value is an address or a code that tells a reader nothing."""
    if not isinstance(value, str):
        return False
    if value.startswith(("http://", "https://", "data:", "git@", "git://")):
        return True
    if not _OPAQUE.fullmatch(value) or " " in value:
        return False
    return any(letter.isdigit() for letter in value) or value.endswith("=")


def profile(name: str, values: Sequence[object], as_numbers: Sequence[float | None]) -> str:
    """One line about a column: `age: 3-90`, `state: open 12, closed 3`, `name: 311 distinct, e.g. …`."""
    present = [value for value in values if value is not None and value != ""]
    gaps = len(values) - len(present)
    tail = f", {gaps:,} empty" if gaps else ""
    if not present:
        return f"{name}: all empty"
    numbers = [each for each in as_numbers if each is not None]
    simple = [clip(str(value), 40) for value in present if not isinstance(value, NESTED)]
    counts = Counter(simple)
    if len(numbers) == len(present) and len(counts) > _FEW:
        return f"{name}: {number(min(numbers))} to {number(max(numbers))}{tail}"
    if len(counts) == 1 and len(simple) == len(present):
        return f"{name}: {simple[0]}{' (always)' if len(present) > 1 else ''}{tail}"
    if simple and len(counts) <= _FEW and len(counts) * 2 <= len(simple):
        return f"{name}: " + ", ".join(f"{value} {times}" for value, times in _ordered(counts)) + tail
    return f"{name}: {_many(simple, counts) if simple else _nested(present)}{tail}"


def _many(simple: Sequence[str], counts: Counter[str]) -> str:
    """Many different values: from when to when for dates, else how many and the most frequent one."""
    ordered = _dates(simple)
    if ordered:
        return f"{ordered[0]} to {ordered[1]}"
    top, times = _ordered(counts)[0]
    often = f", most often {top} {times}" if times > 1 and times * 20 > len(simple) else ""
    return f"{len(counts):,} distinct{often}"


def _ordered(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def _dates(values: Sequence[str]) -> tuple[str, str] | None:
    if all(len(value) >= 8 and value[:4].isdigit() and value[4] in "-/" for value in values):
        return min(values), max(values)
    return None


def _nested(values: Sequence[object]) -> str:
    lists = [value for value in values if isinstance(value, list)]
    if lists:
        sizes = [len(value) for value in lists]
        return f"list of {min(sizes)}-{max(sizes)}" if min(sizes) != max(sizes) else f"list of {sizes[0]}"
    keys = Counter(key for value in values if isinstance(value, dict) for key in list(value)[:20])
    return "{" + ", ".join(clip(str(key), 30) for key, _ in keys.most_common(6)) + "}"


_RULE = re.compile(r"[\s|:+=-]{3,}")
_BLANKS = re.compile(r"\s{2,}|\s?\|\s?|\t")
_TOTAL = re.compile(r"(?i)^\W{0,3}(?:grand )?(?:total|sum|all files|average|overall)\b|\btotal$")
_QUANTITY = re.compile(r"[-+]?\d[\d,]{0,18}(?:\.\d{1,9})?\s?(?:%|[kKMGTm]?i?[bB]?|ms|s|us)?")


class TableText(NamedTuple):
    """The names of the columns (none when there is no header), the line each row starts at, and how to read one."""

    header: list[str] | None
    rows: Sequence[int]
    cells: Callable[[int], list[str]]


def table_score(text: OutputText) -> float:
    """How sure it is that the lines are rows."""
    return max(_delimited_score(text), _markdown_score(text), 0.62 * _aligned_score(text))


def render_table(text: OutputText, sheet: Sheet) -> None:
    """Header and profile, then rows: what fails, extremes, totals, first and last."""
    sheet.gaps = False
    delimiter = _delimiter(text.sample)
    if delimiter and _delimited_score(text) >= 0.5:
        table = _delimited(text, delimiter)
    elif _markdown_score(text) >= 0.5:
        table = _markdown(text)
    else:
        _aligned(text, sheet)
        return
    chosen = [table.rows[at] for at in spread(len(table.rows), text.most(MOST_ROWS))]
    cells = [table.cells(number) for number in chosen]
    names = table.header or [f"column {at + 1}" for at in range(max(map(len, cells), default=0))]
    sampled = f", columns from {len(chosen):,} rows" if len(chosen) < len(table.rows) else ""
    about = "about " if text.big else ""  # of which no line was looked at that is not shown
    sheet.add(f"{about}{plural(len(table.rows), 'row')}, {plural(len(names), 'column')}{sampled}", at=0)
    if table.header is not None:
        first = next((at for at, line in enumerate(text.lines) if line.strip()), 0)
        sheet.add_line(first, text.lines[first], at=1)
    values = [[row[at] if at < len(row) else "" for row in cells] for at in range(min(len(names), 40))]
    numbers = [list(map(as_number, column)) for column in values]
    columns = zip(names, values, numbers, strict=False)
    profiles = (clip(profile(clip(name, 40), column, numeric), 150) for name, column, numeric in columns)
    sheet.add_all(profiles, at=0, share=0.45)
    order = _order(text, table, numbers, chosen)
    sheet.add_lines(((number, text.lines[number]) for number in order), at=1, length=150)


def _order(
    text: OutputText, table: TableText, columns: Sequence[Sequence[float | None]], chosen: Sequence[int]
) -> list[int]:
    """Line numbers: rows that fail, the first, extremes, totals, the last, others evenly."""
    failing: dict[str, int] = {}
    for line in text.failures[:5000]:
        failing.setdefault(re.sub(r"\d+", "0", line.text[:120]), line.number)
    rows = table.rows
    totals = [number for number in rows[-3:] if _TOTAL.search(text.lines[number][:200].strip("| "))]
    extremes: list[int] = []
    for column in columns:
        numbers = [(value, at) for at, value in enumerate(column) if value is not None]
        if len({value for value, _ in numbers}) > 8 and len(numbers) * 2 > len(column) and not _counts_up(numbers):
            extremes.append(chosen[max(numbers, key=lambda pair: (pair[0], -pair[1]))[1]])
            extremes.append(chosen[min(numbers, key=lambda pair: (pair[0], pair[1]))[1]])
    others = [rows[at] for at in spread(len(rows), 24)]
    order = [*list(failing.values())[:3], *totals, *rows[:2], *extremes[:1], *rows[-1:], *extremes, *others]
    return list(dict.fromkeys(order))


def _counts_up(pairs: Sequence[tuple[float, int]]) -> bool:
    """Whether the column just numbers the rows, so that its extremes are the first and the last."""
    values = [value for value, _ in pairs]
    return values == sorted(values)


def _delimiter(sample: Sequence[str]) -> str:
    best, most = "", 0.0
    for delimiter in (",", "\t", ";", "|"):
        counts = Counter(line.count(delimiter) for line in sample[:200])
        usual, times = max(counts.items(), key=lambda pair: (pair[1], pair[0]), default=(0, 0))
        if usual >= 1 and times > most and sample and sample[0].count(delimiter) >= 1:
            best, most = delimiter, times
    return best


def _delimited_score(text: OutputText) -> float:
    sample = text.sample
    delimiter = _delimiter(sample)
    if len(sample) < 3 or not delimiter:
        return 0.0
    lengths = [len(row) for row in _parse([line for line in sample[:200] if len(line) < 400], delimiter)]
    if not lengths:
        return 0.0
    usual, times = max(Counter(lengths).items(), key=lambda pair: (pair[1], pair[0]))
    agree = times / len(lengths)
    if usual < 2 or lengths[0] < 2:
        return 0.0
    prose = sum(line.count(delimiter + " ") for line in sample[:200]) > 0.6 * sum(
        line.count(delimiter) for line in sample[:200]
    )
    header = sample[0].split(delimiter)
    worded = all(cell.strip() and len(cell) < 60 and as_number(cell) is None for cell in header)
    if (delimiter != "\t" and prose) or (usual == 2 and not worded):
        return 0.0
    # Values with the delimiter in them and no quotes are common; a header of plain words makes up for them.
    if agree < 0.8 and not (worded and len(header) >= 4 and min(lengths) >= len(header) * 0.8):
        return 0.0
    return (0.8 if worded else 0.55) * (0.7 + 0.3 * agree) + (0.1 if usual > 2 else 0.0)


def _parse(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:  # a stray NUL or a field beyond the reader's limit
        return [line.split(delimiter) for line in lines]


def _delimited(text: OutputText, delimiter: str) -> TableText:
    lines = text.lines
    read: dict[int, list[str]] = {}
    if '"' in text.content and not text.big:
        # A quoted value may hold line breaks: the reader says at which line each row ends.
        reader = csv.reader(lines, delimiter=delimiter)
        start = 0
        try:
            for row in reader:
                if row:
                    read[start] = row
                start = reader.line_num
        except csv.Error:
            read = {}
    rows = list(read) or _filled(text)

    def cells(number: int) -> list[str]:
        parsed = read.get(number)
        return parsed if parsed is not None else next(iter(_parse([lines[number]], delimiter)), [])

    header = cells(rows[0]) if rows else []
    named = bool(header) and all(cell.strip() and as_number(cell) is None for cell in header)
    return TableText([cell.strip() for cell in header], rows[1:], cells) if named else TableText(None, rows, cells)


def _filled(text: OutputText) -> Sequence[int]:
    """The numbers of the lines with something in them."""
    if text.big:  # Looking at each line would take longer than all the rest, and an empty one is rare.
        return range(len(text.lines))
    return [at for at, line in enumerate(text.lines) if line.strip()]


def _markdown_score(text: OutputText) -> float:
    sample = text.sample
    barred = sum(line.lstrip()[:1] in {"|", "+"} and line.rstrip()[-1:] in {"|", "+"} for line in sample)
    return 0.86 * barred / len(sample) if len(sample) >= 3 and barred * 4 >= len(sample) * 3 else 0.0


def _markdown(text: OutputText) -> TableText:
    lines = text.lines
    rows = [at for at, line in enumerate(lines) if line.strip() and not _RULE.fullmatch(line.strip()[:400])]

    def cells(number: int) -> list[str]:
        return [cell.strip() for cell in lines[number].strip().strip("|").split("|")]

    return TableText(cells(rows[0]), rows[1:], cells) if rows else TableText(None, [], cells)


def _cells(line: str) -> list[str]:
    return [cell for cell in _BLANKS.split(line.strip()[:400]) if cell]


def _aligned_score(text: OutputText) -> float:
    """Lines of the same number of cells apart by two blanks or a bar, most of them with a quantity."""
    cells = [_cells(line) for line in text.sample]
    if len(cells) < 5 or sum(BAR.match(line) is not None for line in text.sample) * 2 > len(cells):
        return 0.0
    usual, _ = Counter(map(len, cells)).most_common(1)[0]
    if usual < 2:
        return 0.0
    alike = [row for row in cells if abs(len(row) - usual) <= 1 and len(row) >= 2]
    counted = sum(any(_QUANTITY.fullmatch(cell.replace(" ", "")) for cell in row) for row in alike)
    return len(alike) / len(cells) if counted * 10 >= len(cells) * 6 else 0.0


def _aligned(text: OutputText, sheet: Sheet) -> None:
    """Header and totals, then the rows with the greatest and the least quantities."""
    rows = [(at, _cells(line)) for at, line in text.numbered() if line.strip()]
    usual, _ = Counter(len(row) for _, row in rows).most_common(1)[0]
    body = [(at, row) for at, row in rows if abs(len(row) - usual) <= 1]
    sheet.add(f"{plural(len(body), 'row')} of about {usual} columns", at=0)
    first = rows[0][0]
    for at, row in rows[:12]:
        if any(_quantity(cell) is not None for cell in row) and len(row) >= 2:
            break
        sheet.add_line(at, text.lines[at], at=1, length=160)
    totals = [at for at, row in rows if row and _TOTAL.search(text.lines[at].strip()[:200])]
    ranked = [_ranked(body, column) for column in range(-usual, 0)]
    ranked = [each for each in ranked if len(each) * 2 >= len(body)]
    order = [*totals[-2:], *(at for at, _ in rows[-2:])]
    for depth in range(12):
        for each in ranked:
            order.extend(reversed(each[-1 - depth : len(each) - depth]))
        if depth % 2 == 0:
            order.extend(at for each in ranked[-1:] for at in each[depth // 2 : depth // 2 + 1])
    order.extend([first, *(at for at, _ in body[:8])])
    sheet.add_lines(((at, text.lines[at]) for at in dict.fromkeys(order)), at=1, length=130)


def _ranked(rows: Sequence[tuple[int, list[str]]], column: int) -> list[int]:
    """The numbers of the lines with a quantity in the column, the least first."""
    quantities = [(_at(row, column), at) for at, row in rows]
    return [at for _, at in sorted((value, at) for value, at in quantities if value is not None)]


def _at(row: Sequence[str], column: int) -> float | None:
    return _quantity(row[column]) if -column <= len(row) else None


def _quantity(cell: str) -> float | None:
    if not _QUANTITY.fullmatch(cell):
        return None
    digits = re.match(r"[-+]?[\d,]{1,20}(?:\.\d{1,9})?", cell)
    return float(digits.group().replace(",", "")) if digits and digits.group().strip("+-,") else None
