"""Old decisions and log rows moved to an archive with an index, so that the journal stays short enough to be read."""

from __future__ import annotations

import os
from typing import NamedTuple

from limpet.journal.document import edit, entries, markup
from limpet.journal.document.recover import moment
from limpet.journal.document.scan import scan
from limpet.journal.document.sections import ARCHIVE, LOG, insert, places, table_head

INDEX = "## Index"
DECISIONS = "## Decision Log"
LOG_HEAD = "## Session Continuity Log"


class Moved(NamedTuple):
    """What is to move, each exactly as it stands in the journal."""

    decisions: tuple[str, ...]
    rows: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.decisions or self.rows)


def archive_name(name: str) -> str:
    stem, ending = os.path.splitext(name)
    return f"{stem}.archive{ending}"


def choose(text: str, keep_decisions: int, keep_rows: int) -> Moved:
    """All but the newest decisions and the last log rows. Decisions without a time count as new and stay."""
    doc = scan(text)
    known = entries.decisions(doc)
    dated = [placed for placed in known if moment(placed.entry.at) is not None]
    dated.sort(key=lambda placed: (str(moment(placed.entry.at)), placed.start))
    old = dated[: max(0, len(known) - max(keep_decisions, 3))]
    old.sort(key=lambda placed: placed.start)
    rows = entries.log_rows(doc)
    moved_rows = rows[: max(0, len(rows) - keep_rows)]
    return Moved(
        tuple(doc.text[placed.start : placed.end] for placed in old),
        tuple(doc.text[row.start : row.end] for row in moved_rows),
    )


def new_archive(name: str) -> str:
    heads = table_head(("Date", "Decision")), table_head(("Timestamp", "Agent", "Summary"))
    return f"# Archive of {name}\n\n{INDEX}\n{heads[0]}\n{DECISIONS}\n\n{LOG_HEAD}\n{heads[1]}"


def archived(archive: str, moved: Moved) -> str:
    """The archive with what was moved; what it holds already is not put in again."""
    for block in moved.decisions:
        plain = block.replace("\r\n", "\n").strip("\n")
        if plain in archive.replace("\r\n", "\n"):
            continue
        (placed,) = entries.decisions(scan(f"{DECISIONS}\n{plain}\n"))[:1] or (None,)
        if placed is not None:
            archive = _with_index(archive, placed.entry.at[:10], placed.entry.title)
        doc = scan(archive)
        at = places(doc)["decisions"].end
        archive = insert(doc, at, plain + "\n", apart=True)
    for row in moved.rows:
        plain = row.replace("\r\n", "\n").rstrip("\n") + "\n"
        doc = scan(archive)
        table = entries.first_table(doc, places(doc).get(LOG))
        if table is not None and plain not in archive:
            archive = insert(doc, table.end, plain)
    return archive


def _with_index(archive: str, date: str, title: str) -> str:
    doc = scan(archive)
    heading = next(one for one in doc.headings if one.title == "Index")
    table = next(entries.tables(doc, heading.body, doc.own_end(heading)))
    return insert(doc, table.end, markup.row([date, title]) + "\n")


def without(text: str, moved: Moved, archive: str) -> str:
    """The journal without what was moved, where it still stands unchanged, and with a line that says where it is."""
    for block in (*moved.decisions, *moved.rows):
        at = text.find(block)
        if at >= 0 and (at == 0 or text[at - 1] == "\n"):
            text = text[:at] + text[at + len(block) :]
    if f"]({archive})" in text:
        return text
    return edit.add_line(text, ARCHIVE, f"- Older decisions and log rows: [{archive}]({archive})\n")
