"""Lint: the faults of a journal with their lines, and the text with the fixable ones fixed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from limpet import limits
from limpet.journal.document import edit, entries
from limpet.journal.document.entries import ROOT, Decision, Placed, Ref, rooted
from limpet.journal.document.markup import JournalDocument, scan
from limpet.journal.document.sections import BY_KEY, DEBT, IDENTIFIERS, SECTIONS, key_of, places, with_section
from limpet.record import NamedTuple

_TIME = re.compile(r"\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)")
_DEBT_ID = re.compile(r"TD-\d{3,}")


class LintFinding(NamedTuple):
    line: int
    rule: str
    message: str
    fixable: bool = False


def lint(text: str, root: str = "") -> list[LintFinding]:
    """All faults in the order of the text. `root` is the project's folder, for absolute paths inside it."""
    doc = scan(text)
    findings = [*_structure(doc), *_decisions(doc, root), *_identifiers(doc, root), *_debts(doc), *_times(doc)]
    return sorted(findings)


def fixed(text: str, root: str = "") -> str:
    """The text with missing sections added and paths relative to the project's root."""
    doc = scan(text)
    for section in SECTIONS:
        doc = with_section(doc, section.key)
    changes = []
    for start, end, ref in _written_refs(doc):
        target = rooted(ref, root)
        if not ref.rooted and target is not None:
            written = doc.text[start:end]
            changes.append((start, end, written.replace(str(ref), str(target), 1)))
    return edit.spliced(doc.text, changes)


def _structure(doc: JournalDocument) -> Iterator[LintFinding]:
    present = places(doc)
    for section in SECTIONS:
        if section.key not in present:
            yield LintFinding(1, "section", f"the section {section.title!r} is missing", True)
    counts: Counter[str] = Counter()
    for heading in doc.headings:
        key = key_of(heading)
        if key is not None:
            counts[key] += 1
            if counts[key] > 1:
                name = BY_KEY[key].title
                yield LintFinding(doc.line_number(heading.start), "section-twice", f"{name!r} is here a second time")
    for at in doc.unclosed:
        yield LintFinding(
            doc.line_number(at), "unclosed", "code or a comment begins here and never ends; the rest is hidden"
        )
    for start, _ in doc.clashes:
        yield LintFinding(doc.line_number(start), "conflict", "two versions stand here; keep one and remove the marks")


def _decisions(doc: JournalDocument, root: str) -> Iterator[LintFinding]:
    for placed in entries.decisions(doc):
        line = doc.line_number(placed.start)
        for rule, message in _decision(placed.entry):
            yield LintFinding(line, rule, message)
    for start, _, ref in _written_refs(doc):
        if not ref.rooted:
            fixable = rooted(ref, root) is not None
            yield LintFinding(doc.line_number(start), "path", f"{str(ref)!r} does not begin with {ROOT}", fixable)


def _decision(entry: Decision) -> Iterator[tuple[str, str]]:
    if entries.parse_time(entry.at) is None:
        yield "decision-time", "a decision's heading begins with an ISO 8601 time, as 2026-03-02T10:15:00Z"
    if not entry.title:
        yield "decision-title", "the decision has no title"
    for name in ("decision", "rationale", "evidence", "scenarios"):
        if not getattr(entry, name):
            yield f"decision-{name}", f"the decision {entry.title!r} has no {name}"
    if entry.evidence and not any(item.quote.strip() for item in entry.evidence):
        yield "decision-quote", f"the evidence of {entry.title!r} quotes nothing"
    if 0 < len(entry.scenarios) < limits.JOURNAL_SCENARIOS:
        yield "decision-scenarios", f"the decision {entry.title!r} has {len(entry.scenarios)} of 3 test scenarios"


def _identifiers(doc: JournalDocument, root: str) -> Iterator[LintFinding]:
    for row in entries.identifiers(doc):
        line = doc.line_number(row.start)
        if row.entry.verified and not (_TIME.fullmatch(row.entry.verified) or entries.parse_time(row.entry.verified)):
            yield LintFinding(line, "time", f"{row.entry.verified!r} is no ISO 8601 time")


def _debts(doc: JournalDocument) -> Iterator[LintFinding]:
    ids: set[str] = set()
    for row in entries.debts(doc):
        line = doc.line_number(row.start)
        if not _DEBT_ID.fullmatch(row.entry.id):
            yield LintFinding(line, "debt-id", f"{row.entry.id!r} is no id of the form TD-001")
        elif row.entry.id in ids:
            yield LintFinding(line, "debt-id", f"{row.entry.id} is there twice")
        ids.add(row.entry.id)
    for key in (DEBT, IDENTIFIERS):
        table = entries.first_table(doc, places(doc).get(key))
        for cells in table.rows if table else ():
            if table and len(cells.cells) != len(table.columns):
                message = f"the row has {len(cells.cells)} cells, the table {len(table.columns)} columns"
                yield LintFinding(doc.line_number(cells.start), "cells", message)


def _times(doc: JournalDocument) -> Iterator[LintFinding]:
    rows: list[Placed[str]] = [Placed(placed.entry.at, placed.start, placed.end) for placed in entries.log_rows(doc)]
    rows += [Placed(placed.entry.at, placed.start, placed.end) for placed in entries.archived(doc)]
    for row in rows:
        if entries.parse_time(row.entry) is None:
            yield LintFinding(doc.line_number(row.start), "time", f"{row.entry!r} is no ISO 8601 time")


def _written_refs(doc: JournalDocument) -> Iterator[tuple[int, int, Ref]]:
    """Every place that evidence and identifiers name, with the span of the line or cell that names it."""
    for placed in entries.decisions(doc):
        for line in doc.lines(placed.start, placed.end):
            item = entries.evidence(line.text.strip()[2:]) if line.text.lstrip().startswith("- ") else None
            if item is not None and item.ref is not None and not line.hidden:
                yield line.start, line.end, item.ref
    table = entries.first_table(doc, places(doc).get(IDENTIFIERS))
    where = entries.column(table, *entries.IDENTIFIER_COLUMNS[0]) if table else None
    for row in table.rows if table and where is not None else ():
        if where is not None and where < len(row.cells):
            cell = row.cells[where]
            ref = entries.place_ref(entries.uncoded(cell.raw))
            if ref is not None:
                yield cell.start, cell.end, ref
