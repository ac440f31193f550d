"""Checking the journal: lint of its form, and verification of its evidence against the project's files."""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from limpet import limits
from limpet.journal import evidence as proof
from limpet.journal import file as files
from limpet.journal.document import edit, entries, lint, quotes
from limpet.journal.document.entries import Ref
from limpet.journal.document.lint import LintFinding
from limpet.journal.document.markup import JournalDocument, scan
from limpet.journal.document.quotes import FRESH, MOVED, Verdict
from limpet.journal.document.sections import IDENTIFIERS
from limpet.journal.recover import Journal, journal_of, stamp_of
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from limpet.catalogue.operation import Context, Json

_CACHED = 16  # files: evidence often names the same one
_PLACE = re.compile(r"\[([^\[\]\n]{1,1000})\]")


class Checked(NamedTuple):
    """The verdict on one piece of evidence or one identifier."""

    line: int
    what: str  # the decision's title or the identifier's purpose
    before: str
    verdict: Verdict


class Verified(NamedTuple):
    checked: tuple[Checked, ...]
    written: bool


class Linted(NamedTuple):
    findings: tuple[LintFinding, ...]
    fixed: bool


def lint_journal(ctx: Context, fix: bool = False) -> Linted:
    journal = journal_of(ctx)
    findings = lint.lint(journal.text(), journal.root)
    if fix and any(finding.fixable for finding in findings):
        saved = files.update(journal.place, lambda text: lint.fixed(text, journal.root))
        return Linted(tuple(lint.lint(saved.text, journal.root)), True)
    return Linted(tuple(findings), False)


def verify_journal(ctx: Context, check: bool = False, fix: bool = False) -> Verified:
    """Compare every piece of evidence and every identifier with the project's files.

    `check` writes nothing. Otherwise the journal records the time of verification, and with `fix` also the new places
    of what has moved.
    """
    journal = journal_of(ctx)
    doc = scan(journal.text())
    digests = proof.verified(journal.place)
    checks = sorted([*_evidence(journal, doc), *_identifiers(journal, doc, digests)], key=lambda item: item.line)
    if check:
        return Verified(tuple(checks), False)
    moved = {item.before: str(item.verdict.ref) for item in checks if fix and item.verdict.state == MOVED}
    good = {item.before for item in checks if item.verdict.state == FRESH} | set(moved)
    now = stamp_of(ctx)
    saved = files.update(journal.place, lambda text: _updated(text, good, moved, now))
    _remember(journal, saved.text, digests)
    return Verified(tuple(checks), saved.written)


def _evidence(journal: Journal, doc: JournalDocument) -> list[Checked]:
    checks = []
    asked = 0
    read = lru_cache(maxsize=_CACHED)(partial(proof.source, journal.root))
    for placed in entries.decisions(doc):
        for item in placed.entry.evidence:
            verdict = proof.still(journal.root, item, ask_git=asked < limits.JOURNAL_GIT_ASKED, read=read)
            if verdict is not None:
                asked += verdict.state != FRESH
                checks.append(Checked(doc.line_number(placed.start), placed.entry.title, str(item.ref), verdict))
    return checks


def _identifiers(journal: Journal, doc: JournalDocument, digests: dict[str, str]) -> list[Checked]:
    checks = []
    for row in entries.identifiers(doc):
        ref = entries.place_ref(row.entry.place)
        if ref is not None:
            verdict = quotes.judge_lines(digests.get(str(ref)), ref, proof.source(journal.root, ref.path))
            checks.append(Checked(doc.line_number(row.start), row.entry.purpose, str(ref), verdict))
    return checks


def _updated(text: str, good: set[str], moved: dict[str, str], now: str) -> str:
    """The journal with the new places of what moved, and `Last Verified` of identifiers that are good."""
    text = _PLACE.sub(lambda match: f"[{moved.get(match[1], match[1])}]", text) if moved else text
    rows: dict[int, dict[int, str]] = {}
    for row in entries.identifiers(scan(text)):
        if row.entry.place in good:
            rows[row.start] = {2: now} | ({0: moved[row.entry.place]} if row.entry.place in moved else {})
    return edit.set_cells(text, IDENTIFIERS, rows) if rows else text


def _remember(journal: Journal, text: str, previous: dict[str, str]) -> None:
    """Store a digest of the lines of every identifier; one that was stored before stays as it was."""
    digests: dict[str, str] = {}
    for row in entries.identifiers(scan(text)):
        ref = entries.place_ref(row.entry.place)
        if ref is not None:
            digest = _digest(journal, ref, previous.get(str(ref)))
            if digest is not None:
                digests[str(ref)] = digest
    proof.remember_verified(journal.place, digests)


def _digest(journal: Journal, ref: Ref, previous: str | None) -> str | None:
    text = proof.source(journal.root, ref.path)
    if text is None or previous is not None:
        return previous
    return quotes.digest_of(quotes.lines_of(text, ref))


# --- answers ----------------------------------------------------------------------------------------------------------


def lint_json(value: Linted) -> Json:
    findings = [
        {"line": finding.line, "rule": finding.rule, "message": finding.message, "fixable": finding.fixable}
        for finding in value.findings
    ]
    return {"ok": not findings, "findings": findings, "fixed": value.fixed}


def verified_json(value: Verified) -> Json:
    counts = dict.fromkeys(("fresh", "moved", "drifted", "gone"), 0)
    for item in value.checked:
        counts[item.verdict.state] += 1
    return {**counts, "checked": [_checked_json(item) for item in value.checked], "written": value.written}


def _checked_json(item: Checked) -> Json:
    answer: Json = {"line": item.line, "place": item.before, "state": item.verdict.state, "what": item.what}
    if str(item.verdict.ref) != item.before:
        answer["now"] = str(item.verdict.ref)
    return answer | ({"detail": item.verdict.detail} if item.verdict.detail else {})
