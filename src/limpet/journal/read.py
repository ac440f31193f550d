"""Reading the journal: recovery, lint and verification. Needs no store, so that level 1 is there at once."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from limpet import errors
from limpet.journal import evidence as proof
from limpet.journal import file as files
from limpet.journal.document import edit, entries, quotes, recover
from limpet.journal.document.entries import Ref
from limpet.journal.document.quotes import FRESH, MOVED, Verdict
from limpet.journal.document.rotate import archive_name
from limpet.journal.document.scan import Document, scan
from limpet.journal.document.sections import IDENTIFIERS
from limpet.journal.file import Place
from limpet.limits import JournalRules

if TYPE_CHECKING:
    from limpet.journal.document.lint import Finding

SIDE = ".limpet"
# A folder named as above would make a project of one that is none, and its notes and memory would be looked for there.
SIDE_ELSEWHERE = ".limpet-journal"


class Journal(NamedTuple):
    """Where a project's journal is, and the rules for it."""

    root: str
    rules: JournalRules

    @property
    def place(self) -> Place:
        return files.find(self.root, self.rules.file, self.side)

    @property
    def archive(self) -> Place:
        return files.find(self.root, archive_name(self.rules.file), f"{self.side}-archive")

    @property
    def side(self) -> str:
        """Where we keep what we saw of the file, so that no save is lost."""
        project = any(os.path.exists(os.path.join(self.root, mark)) for mark in (SIDE, ".git"))
        return os.path.join(SIDE, "journal") if project else SIDE_ELSEWHERE

    def text(self) -> str:
        found = files.read(self.place)
        if found is None:
            raise errors.journal_missing(self.rules.file)
        return found


class Checked(NamedTuple):
    """What became of one piece of evidence or one identifier."""

    line: int
    what: str  # the decision's title or the identifier's purpose
    before: str
    verdict: Verdict


class Verified(NamedTuple):
    checked: tuple[Checked, ...]
    written: bool


class Linted(NamedTuple):
    findings: tuple[Finding, ...]
    fixed: bool


def recovered(journal: Journal, level: int, query: str, now: datetime) -> recover.Recovered:
    text = journal.text()
    more = (files.read(journal.archive) or "") if level == 2 and query else ""
    budgets = journal.rules.level_1_tokens, journal.rules.level_2_tokens
    marks = {} if level == 3 else stale(journal, scan(text))
    return recover.recover(text, level, query=query, more=more, budgets=budgets, marks=marks, now=now)


def stale(journal: Journal, doc: Document) -> dict[int, str]:
    """By position, what is wrong with the evidence of the last decisions. git is not asked: this must be quick."""
    last = {past.place for past in recover.past_decisions(doc)[-recover.LAST :]}
    found: dict[int, str] = {}
    for placed in entries.decisions(doc):
        if placed.start in last:
            verdicts = [proof.still(journal.root, one, ask_git=False) for one in placed.entry.evidence]
            states = {verdict.state for verdict in verdicts if verdict is not None} - {FRESH, MOVED}
            if states:
                found[placed.start] = sorted(states)[-1]
    return found


def linted(journal: Journal, fix: bool) -> Linted:
    from limpet.journal.document import lint

    found = lint.lint(journal.text(), journal.root)
    if fix and any(one.fixable for one in found):
        saved = files.update(journal.place, lambda text: lint.fixed(text, journal.root))
        return Linted(tuple(lint.lint(saved.text, journal.root)), True)
    return Linted(tuple(found), False)


def verify(journal: Journal, *, write: bool, fix: bool, now: str) -> Verified:
    """Every piece of evidence and every identifier against the project's files.

    `write` notes in the journal what was verified just now; `fix` also writes where what has moved is now.
    """
    text = journal.text()
    doc = scan(text)
    known = proof.verified(journal.place)
    found = [*_evidence(journal, doc), *_identifiers(journal, doc, known)]
    found.sort(key=lambda one: one.line)
    if not write and not fix:
        return Verified(tuple(found), False)
    moved = {one.before: str(one.verdict.ref) for one in found if fix and one.verdict.state == MOVED}
    good = {one.before for one in found if one.verdict.state == FRESH} | set(moved)
    saved = files.update(journal.place, lambda text: _noted(text, good, moved, now))
    _remember(journal, saved.text, known)
    return Verified(tuple(found), saved.written)


def _evidence(journal: Journal, doc: Document) -> list[Checked]:
    found = []
    for placed in entries.decisions(doc):
        for one in placed.entry.evidence:
            verdict = proof.still(journal.root, one)
            if verdict is not None:
                found.append(Checked(doc.line_number(placed.start), placed.entry.title, str(one.ref), verdict))
    return found


def _identifiers(journal: Journal, doc: Document, known: dict[str, str]) -> list[Checked]:
    found = []
    for row in entries.identifiers(doc):
        ref = entries.place_ref(row.entry.place)
        if ref is not None:
            verdict = quotes.judge_lines(known.get(str(ref)), ref, proof.source(journal.root, ref.path))
            found.append(Checked(doc.line_number(row.start), row.entry.purpose, str(ref), verdict))
    return found


def _noted(text: str, good: set[str], moved: dict[str, str], now: str) -> str:
    """The journal with places that moved written anew, and `Last Verified` of those that stand."""
    for before, after in moved.items():
        text = text.replace(f"[{before}]", f"[{after}]")
    rows: dict[int, dict[int, str]] = {}
    for row in entries.identifiers(scan(text)):
        if row.entry.place in good:
            rows[row.start] = {2: now} | ({0: moved[row.entry.place]} if row.entry.place in moved else {})
    return edit.set_cells(text, IDENTIFIERS, rows) if rows else text


def _remember(journal: Journal, text: str, known: dict[str, str]) -> None:
    """Keep what the lines of every identifier say now, if they stood; others keep what they said when they did."""
    digests: dict[str, str] = {}
    for row in entries.identifiers(scan(text)):
        ref = entries.place_ref(row.entry.place)
        if ref is not None:
            digest = _digest(journal, ref, known.get(str(ref)))
            if digest is not None:
                digests[str(ref)] = digest
    proof.remember_verified(journal.place, digests)


def _digest(journal: Journal, ref: Ref, known: str | None) -> str | None:
    text = proof.source(journal.root, ref.path)
    if text is None or known is not None:
        return known
    return quotes.digest_of(quotes.lines_of(text, ref))
