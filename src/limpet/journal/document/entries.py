"""The sections of a journal as typed entries, each with the span of the text it was read from.

People write freely: text that is not an entry is ignored here and left alone by every edit.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from limpet.journal.document import markup
from limpet.journal.document.markup import Cell, Heading, JournalDocument, Line, clean, unescape
from limpet.journal.document.sections import (
    ARCHIVE,
    BLOCKERS,
    CONTEXT,
    DEBT,
    DECISIONS,
    GOALS,
    IDENTIFIERS,
    LOG,
    QUESTIONS,
    SectionPlace,
    normal,
    places,
)
from limpet.light import UTC, Generic, TypeVar, datetime, re
from limpet.record import NamedTuple

ROOT = "${PROJECT_ROOT}/"
T = TypeVar("T")


class Ref(NamedTuple):
    """A place in a file of the project. `rooted`: written with ${PROJECT_ROOT}, as it should be."""

    path: str
    first: int
    last: int
    rooted: bool = True

    def __str__(self) -> str:
        lines = f"{self.first}" if self.last == self.first else f"{self.first}-{self.last}"
        return f"{ROOT if self.rooted else ''}{self.path}" + (f":{lines}" if self.first else "")


class Evidence(NamedTuple):
    """A word-for-word quote and its place; without a place, what a person said."""

    quote: str
    ref: Ref | None


class Decision(NamedTuple):
    at: str
    title: str
    decision: str
    rationale: str
    evidence: tuple[Evidence, ...] = ()
    scenarios: tuple[str, ...] = ()


class Item(NamedTuple):
    """A question or a goal. `note` is what a goal waits for, `(blocking: …)` or `(depends on: …)`."""

    text: str
    done: bool = False
    note: str = ""


class Blocker(NamedTuple):
    state: str  # Waiting or Blocked
    text: str
    eta: str = ""
    resolved: bool = False


class Debt(NamedTuple):
    id: str
    description: str
    severity: str = ""
    found_by: str = ""
    sprint: str = ""


class Identifier(NamedTuple):
    place: str  # as written
    purpose: str
    verified: str = ""


class LogRow(NamedTuple):
    at: str
    agent: str
    summary: str


class Archived(NamedTuple):
    at: str
    decision: str
    rationale: str = ""
    by: str = ""


class Placed(NamedTuple, Generic[T]):
    entry: T
    start: int
    end: int


class Row(NamedTuple):
    cells: tuple[Cell, ...]
    start: int
    end: int


class MarkdownTable(NamedTuple):
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    start: int
    end: int


class Bullet(NamedTuple):
    """An item of a list: its text as written, and where the mark in its box is, if it has one."""

    raw: str
    start: int
    end: int
    box: int | None = None
    done: bool = False


_FIELD = re.compile(r" {0,3}\*\*([^*]{1,60}?)(?::\*\*|\*\*[ \t]*:)[ \t]*(.*)$")
_BULLET = re.compile(r"( {0,3})(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|$)")
_RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")  # a line across the page
_BOX = re.compile(r"\[([ xX])\](?:[ \t]+|$)")
_DELIMITER = re.compile(r" {0,3}\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+$")
_DATED = re.compile(r"(\d{4}-\d\d\S*(?: \d\d:\d\d\S*)?)(?:[ \t]+(?:[-–—:][ \t]+)?(.*))?$")  # noqa: RUF001
_REF = re.compile(r"\[(.+):(\d{1,9})(?:-(\d{1,9}))?\]\Z")
_PLACE = re.compile(r"(.+?):(\d{1,9})(?:-(\d{1,9}))?$|(.+)$")
_USER_QUOTE = re.compile(r'"(.*)" \[user\]$', re.DOTALL)
NOTE = re.compile(r"\((?i:blocking|depends on): ((?:\\.|[^\\()])*)\)[ \t]*$")
ETA = re.compile(r"\(ETA: ((?:\\.|[^\\()])*)\)[ \t]*$")
_STATE = re.compile(r"(?:\[RESOLVED\][ \t]*)?(Waiting|Blocked|Resolved)[ \t]*:[ \t]*", re.IGNORECASE)


# --- lists and tables -------------------------------------------------------------------------------------------------


def bullets(doc: JournalDocument, start: int, end: int) -> list[Bullet]:
    """The list items of a span; lines indented below an item belong to it."""
    items: list[Bullet] = []
    lines: list[str] = []
    open_at, open_end, indent = -1, -1, 0

    def close() -> None:
        if open_at >= 0:
            items.append(_bullet(doc, lines, open_at, open_end))

    for line in doc.lines(start, end):
        item = None if line.hidden or _RULE.match(line.text) else _BULLET.match(line.text)
        blank = not line.text.strip()
        if item and (open_at < 0 or len(item[1]) < indent + 2):
            close()
            open_at, open_end, indent = line.start, line.end, len(item[1])
            lines = [item[2] or ""]
        elif open_at >= 0 and not blank and continues(line, lines[-1]):
            lines.append(line.text)
            open_end = line.end
        elif open_at >= 0 and blank:
            lines.append("")
        elif open_at >= 0:
            close()
            open_at = -1
    close()
    return items


def continues(line: Line, before: str) -> bool:
    """Whether a line belongs to the item above: indented lines do, and plain words directly below its text."""
    if line.text.startswith(("  ", "\t")):
        return True
    ends = line.hidden or _FIELD.match(line.text) or _RULE.match(line.text) or line.text[:1] in "|#<>"
    return bool(before) and not ends


def _bullet(doc: JournalDocument, lines: list[str], start: int, end: int) -> Bullet:
    while lines and not lines[-1]:
        lines.pop()
    raw = "\n".join(lines)
    box = _BOX.match(raw)
    if box is None:
        return Bullet(raw, start, end)
    mark = doc.text.index("[", start) + 1
    return Bullet(raw[box.end() :], start, end, mark, box[1] in "xX")


def item_text(raw: str) -> str:
    """The text of an item, with continuation lines dedented."""
    return clean("\n".join(unescape(line.strip()) for line in raw.split("\n")))


def tables(doc: JournalDocument, start: int, end: int) -> Iterator[MarkdownTable]:
    lines = [line for line in doc.lines(start, end) if not line.hidden]
    at = 0
    while at + 1 < len(lines):
        head, under = lines[at], lines[at + 1]
        if "|" not in head.text or not _DELIMITER.match(under.text) or under.start != head.end:
            at += 1
            continue
        columns = tuple(cell.raw for cell in markup.cells(head.text))
        at += 2
        rows, last = [], under.end
        while at < len(lines) and lines[at].start == last and "|" in lines[at].text:
            line = lines[at]
            rows.append(Row(markup.cells(line.text, line.start, columns=len(columns)), line.start, line.end))
            last, at = line.end, at + 1
        yield MarkdownTable(columns, tuple(rows), head.start, last)


def first_table(doc: JournalDocument, place: SectionPlace | None) -> MarkdownTable | None:
    return None if place is None else next(tables(doc, place.heading.body, place.own_end), None)


def column(table: MarkdownTable, *names: str) -> int | None:
    """The index of the column that has one of these names."""
    titles = [normal(title) for title in table.columns]
    return next((titles.index(name) for name in names if name in titles), None)


def _records(
    doc: JournalDocument, place: SectionPlace | None, names: tuple[tuple[str, ...], ...]
) -> Iterator[Placed[list[str]]]:
    """The rows of a section's tables: the texts of the named columns, found by title, else by position."""
    if place is None:
        return
    for table in tables(doc, place.heading.body, place.own_end):
        at = [column(table, *titles) for titles in names]
        if at[0] is None:
            at = [position if position < len(table.columns) else None for position in range(len(names))]
        for row in table.rows:
            texts = [
                unescape(row.cells[where].raw) if where is not None and where < len(row.cells) else "" for where in at
            ]
            yield Placed(texts, row.start, row.end)


# --- the sections -----------------------------------------------------------------------------------------------------

DEBT_COLUMNS = (("id",), ("description", "item"), ("severity", "priority"), ("found by",), ("sprint",))
IDENTIFIER_COLUMNS = (("identifier", "path"), ("purpose",), ("last verified", "verified"))
LOG_COLUMNS = (("timestamp", "date"), ("agent",), ("summary",))
ARCHIVE_COLUMNS = (("date", "timestamp"), ("decision",), ("rationale", "why"), ("decided by", "by"))


def debts(doc: JournalDocument) -> list[Placed[Debt]]:
    return [Placed(Debt(*row.entry), row.start, row.end) for row in _records(doc, places(doc).get(DEBT), DEBT_COLUMNS)]


def identifiers(doc: JournalDocument) -> list[Placed[Identifier]]:
    rows = _records(doc, places(doc).get(IDENTIFIERS), IDENTIFIER_COLUMNS)
    return [Placed(Identifier(uncoded(row.entry[0]), *row.entry[1:]), row.start, row.end) for row in rows]


def log_rows(doc: JournalDocument) -> list[Placed[LogRow]]:
    return [Placed(LogRow(*row.entry), row.start, row.end) for row in _records(doc, places(doc).get(LOG), LOG_COLUMNS)]


def archived(doc: JournalDocument) -> list[Placed[Archived]]:
    rows = _records(doc, places(doc).get(ARCHIVE), ARCHIVE_COLUMNS)
    return [Placed(Archived(*row.entry), row.start, row.end) for row in rows]


def items(doc: JournalDocument, key: str) -> list[Placed[Item]]:
    """Questions or goals."""
    place = places(doc).get(key)
    listed = [] if place is None else bullets(doc, place.heading.body, place.own_end)
    return [Placed(_item(bullet, key), bullet.start, bullet.end) for bullet in listed if bullet.raw]


def questions(doc: JournalDocument) -> list[Placed[Item]]:
    return items(doc, QUESTIONS)


def goals(doc: JournalDocument) -> list[Placed[Item]]:
    return items(doc, GOALS)


def _item(bullet: Bullet, key: str) -> Item:
    raw, note = bullet.raw, ""
    if key == GOALS and (match := NOTE.search(raw)) and not _escaped(raw, match.start()):
        raw, note = raw[: match.start()], unescape(match.group()[1 : match.group().rindex(")")])
    return Item(item_text(raw), bullet.done, note)


def blockers(doc: JournalDocument) -> list[Placed[Blocker]]:
    place = places(doc).get(BLOCKERS)
    listed = [] if place is None else bullets(doc, place.heading.body, place.own_end)
    return [Placed(_blocker(bullet), bullet.start, bullet.end) for bullet in listed if bullet.raw]


def _blocker(bullet: Bullet) -> Blocker:
    raw, eta, state = bullet.raw, "", "Blocked"
    resolved = bullet.done or raw.startswith(("[RESOLVED]", "~~"))
    if (match := ETA.search(raw)) and not _escaped(raw, match.start()):
        raw, eta = raw[: match.start()], unescape(match[1])
    if named := _STATE.match(raw):
        raw = raw[named.end() :]
        state, resolved = ("Blocked", True) if named[1].lower() == "resolved" else (named[1].capitalize(), resolved)
    else:
        raw = raw.removeprefix("[RESOLVED]")
    return Blocker(state, item_text(raw), eta, resolved)


def context(doc: JournalDocument) -> list[Placed[tuple[str, str]]]:
    """The fields of Active Context, as name and text."""
    place = places(doc).get(CONTEXT)
    fields = []
    for bullet in [] if place is None else bullets(doc, place.heading.body, place.own_end):
        first, _, rest = bullet.raw.partition("\n")
        if field := _FIELD.match(first):
            text = item_text("\n".join(part for part in (field[2], rest) if part))
            fields.append(Placed((field[1].strip(), text), bullet.start, bullet.end))
    return fields


def decision_headings(doc: JournalDocument) -> list[tuple[Heading, int]]:
    """The headings below the decision log, with the end of each one's text."""
    place = places(doc).get(DECISIONS)
    if place is None:
        return []
    inside = [heading for heading in doc.headings if place.heading.start < heading.start < place.end]
    level = min((heading.level for heading in inside), default=0)
    return [(heading, doc.end_of(heading)) for heading in inside if heading.level == level]


def decisions(doc: JournalDocument) -> list[Placed[Decision]]:
    return [Placed(decision(doc, heading, end), heading.start, end) for heading, end in decision_headings(doc)]


def decision(doc: JournalDocument, heading: Heading, end: int) -> Decision:
    dated = _DATED.match(heading.title)
    at, title = (dated[1], dated[2] or "") if dated else ("", heading.title)
    texts: dict[str, str] = {}
    spans: dict[str, tuple[int, int]] = {}
    name = ""
    for line in doc.lines(heading.body, end):
        field = None if line.hidden else _FIELD.match(line.text)
        if field:
            name = normal(field[1])
            texts.setdefault(name, field[2])
            spans.setdefault(name, (line.end, line.end))
        elif name:
            spans[name] = (spans[name][0], line.end)
    return Decision(
        at,
        unescape(title),
        _prose(doc, texts, spans, "decision"),
        _prose(doc, texts, spans, "rationale"),
        tuple(map(evidence, _listed(doc, texts, spans, "evidence"))),
        tuple(item_text(raw) for raw in _listed(doc, texts, spans, "test scenarios", "scenarios")),
    )


def _prose(doc: JournalDocument, texts: dict[str, str], spans: dict[str, tuple[int, int]], name: str) -> str:
    if name not in texts:
        return ""
    return item_text(texts[name] + "\n" + doc.text[slice(*spans[name])].replace("\r", ""))


def _listed(doc: JournalDocument, texts: dict[str, str], spans: dict[str, tuple[int, int]], *names: str) -> list[str]:
    texts_listed: list[str] = []
    for name in names:
        if name in texts:
            texts_listed += [texts[name]] if texts[name].strip() else []
            texts_listed += [bullet.raw for bullet in bullets(doc, *spans[name]) if bullet.raw]
    return texts_listed


def evidence(raw: str) -> Evidence:
    """An item of evidence: `quote` [place], a place with the quote fenced below it, or plain words."""
    first, _, rest = raw.partition("\n")
    span = markup.leading_span(first)
    # The place follows the quote; without a quote in code, it follows the last words.
    split = span[1] if span else max(0, 0 if first[:1] == "[" else first.rfind(" ["))
    ref = _REF.match(first[split:].strip(" \t"))
    if ref is None:
        quoted = _USER_QUOTE.match(item_text(raw))
        return Evidence(quoted[1] if quoted else item_text(raw), None)
    at = as_ref(ref[1], int(ref[2]), int(ref[3] or ref[2]))
    if split == 0 and rest:
        return Evidence(_fenced(rest), at)
    return Evidence(span[0] if span else unescape(first[:split].strip()), at)


def _fenced(rest: str) -> str:
    """The lines between the fences, without the indent that puts them below their item."""
    lines = [line.removeprefix("  ") for line in rest.split("\n")]
    ticks = lines[0].strip()
    closed = len(lines) > 1 and lines[-1].strip() == ticks
    return "\n".join(lines[1:-1] if closed else lines[1:]) if ticks[:3] == "```" else "\n".join(lines)


def as_ref(path: str, first: int, last: int) -> Ref:
    """A place as it is written."""
    rooted = path.startswith(ROOT)
    return Ref(path.removeprefix(ROOT), first, last, rooted)


def place_ref(text: str) -> Ref | None:
    """A place such as ${PROJECT_ROOT}/src/a.py:3-9 or src/a.py:3; without lines it is the whole file."""
    match = _PLACE.match(text.strip())
    if match is None:
        return None
    if match[4] is not None:
        return as_ref(match[4], 0, 0)
    return as_ref(match[1], int(match[2]), int(match[3] or match[2]))


def rooted(ref: Ref, root: str) -> Ref | None:
    """The place relative to the project's root; None when it is outside the project."""
    path = ref.path
    if path.startswith("/"):
        home = root.rstrip("/") + "/"
        if not root or not path.startswith(home):
            return None
        path = path.removeprefix(home)
    path = posixpath.normpath(path)
    return None if path.startswith(("..", "/", "~", "$")) else ref._replace(path=path, rooted=True)


def uncoded(text: str) -> str:
    span = markup.leading_span(text)
    return span[0] if span and span[1] == len(text) else text


def _escaped(text: str, at: int) -> bool:
    """Whether an odd number of backslashes precedes this position."""
    before = text[:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def parse_time(text: str) -> datetime | None:
    """A time in ISO 8601; UTC if it has no zone."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
