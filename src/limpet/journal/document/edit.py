"""Changes of a journal: a text and an entry in, a new text out. Every byte outside the entry stays as it is.

A change can be applied again to another text, such as one that a person saved in the meantime.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence

from limpet.journal.document import entries, markup
from limpet.journal.document.entries import (
    Archived,
    Blocker,
    Debt,
    Decision,
    Evidence,
    Identifier,
    Item,
    LogRow,
    MarkdownTable,
    Placed,
    column,
)
from limpet.journal.document.markup import JournalDocument, escape, scan
from limpet.journal.document.sections import (
    ARCHIVE,
    BLOCKERS,
    BY_KEY,
    CONTEXT,
    DEBT,
    DECISIONS,
    GOALS,
    IDENTIFIERS,
    LOG,
    QUESTIONS,
    insert,
    normal,
    places,
    table_head,
    with_section,
)
from limpet.record import NamedTuple

Change = Callable[[str], str]
TASK = ("Current Task", "current bead", "active task")
CHECKPOINT = ("Last Checkpoint",)
STATE = ("Reasoning State", "status", "next action")
INDEX_HEAD = "## Index"
DECISIONS_HEAD = "## Decision Log"
LOG_HEAD = "## Session Continuity Log"
_LINE_END = re.compile(r"\r?\n\Z")
_DEBT_ID = re.compile(r"TD-(\d{1,6})")
Row = Sequence[tuple[tuple[str, ...], str]]  # the names of a column, and the value in it


# --- entries as Markdown ----------------------------------------------------------------------------------------------


def decision_block(entry: Decision, level: int) -> str:
    lines = [f"{'#' * min(level, 6)} {entry.at} - {escape(entry.title)}"]
    lines += [f"**Decision**: {escape(entry.decision)}", f"**Rationale**: {escape(entry.rationale)}"]
    text = "\n".join(lines) + "\n**Evidence**:\n" + "".join(map(evidence_block, entry.evidence))
    scenarios = "".join(f"{number}. {escape(text)}\n" for number, text in enumerate(entry.scenarios, 1))
    return f"{text}\n**Test Scenarios**:\n{scenarios}"


def evidence_block(entry: Evidence) -> str:
    if entry.ref is None:
        return "- " + escape(f'"{entry.quote}" [user]') + "\n"
    if "\n" in entry.quote:
        return f"- [{entry.ref}]\n{markup.fence(entry.quote, '  ')}"
    return f"- {markup.code_span(entry.quote)} [{entry.ref}]\n"


def item_block(entry: Item) -> str:
    text = _plain_end(escape(entry.text), entries.NOTE)
    note = f" ({_in_parens(entry.note)})" if entry.note else ""
    return f"- [{'x' if entry.done else ' '}] {text}{note}\n"


def blocker_block(entry: Blocker) -> str:
    text = _plain_end(escape(entry.text), entries.ETA)
    eta = f" (ETA: {_in_parens(entry.eta)})" if entry.eta else ""
    return f"- {'[RESOLVED] ' if entry.resolved else ''}{entry.state}: {text}{eta}\n"


def _in_parens(text: str) -> str:
    return escape(text).replace("(", "\\(").replace(")", "\\)")


def _plain_end(text: str, pattern: re.Pattern[str]) -> str:
    """Escape the end of a text that would otherwise be read as a note or an ETA."""
    match = pattern.search(text)
    return text if match is None else f"{text[: match.start()]}\\{text[match.start() :]}"


# --- adding -----------------------------------------------------------------------------------------------------------


def add_decision(text: str, entry: Decision) -> str:
    doc = with_section(scan(text), DECISIONS)
    place = places(doc)[DECISIONS]
    headings = entries.decision_headings(doc)
    level = headings[0][0].level if headings else place.heading.level + 1
    at = _end_of_text(doc, place.heading.body, place.end)
    return insert(doc, at, decision_block(entry, level), apart=True)


def add_question(text: str, entry: Item) -> str:
    return add_line(text, QUESTIONS, item_block(entry))


def add_goal(text: str, entry: Item) -> str:
    return add_line(text, GOALS, item_block(entry))


def add_blocker(text: str, entry: Blocker) -> str:
    return add_line(text, BLOCKERS, blocker_block(entry))


def add_debt(text: str, entry: Debt) -> str:
    named = [(names, value) for names, value in zip(entries.DEBT_COLUMNS, entry, strict=True)]
    return _add_row(text, DEBT, named, 1)


def add_identifier(text: str, entry: Identifier) -> str:
    """Add a place, or update its row when it is listed already."""
    doc = scan(text)
    existing = [row for row in entries.identifiers(doc) if row.entry.place == entry.place]
    if existing:
        return set_cells(text, IDENTIFIERS, {existing[0].start: {2: entry.verified, 1: entry.purpose}})
    named = [(names, value) for names, value in zip(entries.IDENTIFIER_COLUMNS, entry, strict=True)]
    return _add_row(text, IDENTIFIERS, named, 1)


def add_log(text: str, entry: LogRow) -> str:
    named = [(names, value) for names, value in zip(entries.LOG_COLUMNS, entry, strict=True)]
    return _add_row(text, LOG, named, 2)


def add_archived(text: str, *decisions: Archived) -> str:
    rows = [list(zip(entries.ARCHIVE_COLUMNS, entry, strict=True)) for entry in decisions]
    return _add_rows(text, ARCHIVE, rows, 1) if rows else text


def next_debt_id(*texts: str) -> str:
    """One more than the highest number in any of the texts, so that no id is used twice."""
    numbers = [int(number) for text in texts for number in _DEBT_ID.findall(text)]
    return f"TD-{max(numbers, default=0) + 1:03d}"


def add_line(text: str, key: str, block: str) -> str:
    doc = with_section(scan(text), key)
    place = places(doc)[key]
    items = entries.bullets(doc, place.heading.body, place.own_end)
    if items:
        following = next(doc.lines(items[-1].end, place.own_end), None)
        is_text = following is not None and following.text.strip() and entries.continues(following, block)
        return insert(doc, items[-1].end, f"{block}\n" if is_text else block)
    at = _end_of_text(doc, place.heading.body, place.own_end)
    return insert(doc, at, block, apart=not doc.is_hidden(max(0, at - 1)) and at > place.heading.body)


def _add_row(text: str, key: str, named: Row, words: int) -> str:
    return _add_rows(text, key, [named], words)


def _add_rows(text: str, key: str, rows: Sequence[Row], words: int) -> str:
    """Add rows at the end of the section's table. Values without a column are appended to the main text."""
    doc = with_section(scan(text), key)
    place = places(doc)[key]
    table = entries.first_table(doc, place)
    if table is None or column(table, *rows[0][0][0]) is None:
        at = _end_of_text(doc, place.heading.body, place.own_end)
        lines = [markup.row([value for _, value in named]) + "\n" for named in rows]
        return insert(doc, at, table_head(BY_KEY[key].columns) + "".join(lines), apart=True)
    lines = [markup.row(_fitted(table, named, words)) + "\n" for named in rows]
    return insert(doc, table.end, "".join(lines))


def _fitted(table: MarkdownTable, named: Row, words: int) -> list[str]:
    cells = [""] * len(table.columns)
    homeless = []
    main = column(table, *named[words][0])
    for at, (names, value) in enumerate(named):
        where = column(table, *names)
        if where is not None:
            cells[where] = value
        elif value:
            homeless.append(value if at == words else f"{names[0]}: {value}")
    if homeless:
        where = main if main is not None else len(cells) - 1
        cells[where] = " ".join(part for part in (cells[where], f"({', '.join(homeless)})") if part)
    return cells


def _end_of_text(doc: JournalDocument, start: int, end: int) -> int:
    """After the last line of a span that is not blank; blank lines before the next heading stay behind it."""
    last = start
    for line in doc.lines(start, doc.before_unclosed(end)):
        if line.text.strip():
            last = line.end
    return last


# --- changing ---------------------------------------------------------------------------------------------------------


def set_context(text: str, names: tuple[str, ...], value: str) -> str:
    """Set a field of Active Context; `names` are its own and what others call it."""
    doc = with_section(scan(text), CONTEXT)
    titles = {normal(name) for name in names}
    for field in entries.context(doc):
        name = field.entry[0]
        if normal(name) in titles:
            line_end = _LINE_END.search(doc.text[: field.end])
            ending = line_end.group() if line_end else ""
            return f"{doc.text[: field.start]}- **{name}**: {escape(value)}{ending}{doc.text[field.end :]}"
    return add_line(doc.text, CONTEXT, f"- **{names[0]}**: {escape(value)}\n")


def tick(text: str, entry: Placed[Item]) -> str:
    """Mark a question or goal as done: one character changes, or a checkbox is added."""
    doc = scan(text)
    bullet = entries.bullets(doc, entry.start, entry.end)[0]
    if bullet.box is not None:
        return f"{text[: bullet.box]}x{text[bullet.box + 1 :]}"
    after = entry.start + len(text[entry.start : entry.end]) - len(text[entry.start : entry.end].lstrip(" -*+\t"))
    return f"{text[:after]}[x] {text[after:]}"


def resolve(text: str, entry: Placed[Blocker]) -> str:
    """Mark a blocker as resolved; its text stays."""
    line = text[entry.start : entry.end]
    after = entry.start + len(line) - len(line.lstrip(" -*+\t"))
    if text[after : after + 4] == "[ ] ":
        return f"{text[: after + 1]}x{text[after + 2 :]}"
    return f"{text[:after]}[RESOLVED] {text[after:]}"


def set_cells(text: str, key: str, rows: dict[int, dict[int, str]]) -> str:
    """Set cells of a section's tables, by the start of the row and the index of the field."""
    doc = scan(text)
    place = places(doc).get(key)
    names = {IDENTIFIERS: entries.IDENTIFIER_COLUMNS, DEBT: entries.DEBT_COLUMNS}[key]
    changes: list[tuple[int, int, str]] = []
    for table in [] if place is None else entries.tables(doc, place.heading.body, place.own_end):
        for row in table.rows:
            for field, value in rows.get(row.start, {}).items():
                where = column(table, *names[field])
                if where is not None and where < len(row.cells):
                    cell = row.cells[where]
                    changes.append((cell.start, cell.end, escape(value, cell=True)))
    return spliced(text, changes)


def spliced(text: str, changes: list[tuple[int, int, str]]) -> str:
    """The text with other words in the places of some; they do not overlap."""
    parts, at = [], 0
    for start, end, value in sorted(changes):
        parts += [text[at:start], value]
        at = end
    return "".join([*parts, text[at:]])


# --- rotation: old decisions and log rows move to an archive, so that the journal stays short -------------------------


ARCHIVE_ROWS = 50  # of decisions that moved, in the journal itself; the archive's file has all of them
ARCHIVE_CHARS = 160


class Moved(NamedTuple):
    """What moves to the archive, each part exactly as it is in the journal."""

    decisions: tuple[str, ...]
    rows: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.decisions or self.rows)


def archive_name(name: str) -> str:
    stem, ending = posixpath.splitext(name)
    return f"{stem}.archive{ending}"


def choose_old(text: str, keep_decisions: int, keep_rows: int) -> Moved:
    """All but the newest decisions and the last log rows. Decisions without a time count as new."""
    doc = scan(text)
    decisions = entries.decisions(doc)
    dated = [placed for placed in decisions if entries.parse_time(placed.entry.at) is not None]
    dated.sort(key=lambda placed: (str(entries.parse_time(placed.entry.at)), placed.start))
    old = dated[: max(0, len(decisions) - max(keep_decisions, 3))]
    old.sort(key=lambda placed: placed.start)
    rows = entries.log_rows(doc)
    moved_rows = rows[: max(0, len(rows) - keep_rows)]
    return Moved(
        tuple(doc.text[placed.start : placed.end] for placed in old),
        tuple(doc.text[row.start : row.end] for row in moved_rows),
    )


def new_archive(name: str) -> str:
    heads = table_head(("Date", "Decision")), table_head(("Timestamp", "Agent", "Summary"))
    return f"# Archive of {name}\n\n{INDEX_HEAD}\n{heads[0]}\n{DECISIONS_HEAD}\n\n{LOG_HEAD}\n{heads[1]}"


def add_to_archive(archive: str, moved: Moved) -> str:
    """The archive with the moved parts; what it contains already is not added again."""
    there = {_plain(block) for block in _decision_blocks(archive)}
    decisions = [plain for plain in map(_plain, moved.decisions) if plain not in there]
    if decisions:
        listed = entries.decisions(scan(_as_log(decisions)))
        index = [markup.row([placed.entry.at[:10], placed.entry.title]) for placed in listed]
        doc = scan(archive)
        heading = next(heading for heading in doc.headings if heading.title == "Index")
        table = next(entries.tables(doc, heading.body, doc.own_end(heading)))
        doc = scan(insert(doc, table.end, "".join(f"{row}\n" for row in index)))
        archive = insert(doc, places(doc)[DECISIONS].end, "\n".join(f"{plain}\n" for plain in decisions), apart=True)
    doc = scan(archive)
    table_of_rows = entries.first_table(doc, places(doc).get(LOG))
    present = set(archive.replace("\r\n", "\n").split("\n"))
    rows = [row for row in map(_plain, moved.rows) if row not in present]
    if table_of_rows is None or not rows:
        return archive
    return insert(doc, table_of_rows.end, "".join(f"{row}\n" for row in rows))


def _plain(block: str) -> str:
    return block.replace("\r\n", "\n").strip("\n")


def _as_log(decisions: Sequence[str]) -> str:
    return f"{DECISIONS_HEAD}\n" + "".join(f"{plain}\n" for plain in decisions)


def _decision_blocks(text: str) -> list[str]:
    doc = scan(text)
    return [text[heading.start : end] for heading, end in entries.decision_headings(doc)]


def _archive_row(decision: Decision) -> Archived:
    """A decision in one row: its title, by which it is recognised, and what was decided, shortened."""
    title, words = markup.one_line(decision.title), markup.one_line(decision.decision)
    return Archived(decision.at, title[:ARCHIVE_CHARS], words[:ARCHIVE_CHARS])


def without_moved(text: str, moved: Moved, archive: str) -> str:
    """The journal without the parts that moved, if they are unchanged. Its Decision Archive has a row for each of the
    newest decisions that moved, and a link to the file with all of them."""
    doc = scan(text)
    gone = {*moved.decisions, *moved.rows}
    rows = [_archive_row(placed.entry) for placed in entries.decisions(doc) if text[placed.start : placed.end] in gone]
    spans = [(heading.start, end) for heading, end in entries.decision_headings(doc)]
    spans += [(row.start, row.end) for row in entries.log_rows(doc)]
    text = spliced(text, [(start, end, "") for start, end in spans if text[start:end] in gone])
    text = add_archived(text, *sorted(rows, key=lambda row: row.at)[-ARCHIVE_ROWS:])
    archived = entries.archived(scan(text))
    text = spliced(text, [(row.start, row.end, "") for row in archived[: max(0, len(archived) - ARCHIVE_ROWS)]])
    if f"]({archive})" in text:
        return text
    return add_line(text, ARCHIVE, f"- Older decisions and log rows: [{archive}]({archive})\n")
