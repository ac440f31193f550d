"""Removing entries from a journal and restoring them where they were. Pure.

An entry is recognised by the text that was stored when it was added. In the file it may have been ticked, resolved or
archived since. An entry that a person reworded is not recognised, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from limpet.journal.document import entries
from limpet.journal.document.edit import ARCHIVE_CHARS, spliced
from limpet.journal.document.markup import JournalDocument, one_line, scan, unescape
from limpet.platform import sha256
from limpet.record import NamedTuple
from limpet.text.diff import changed_spans

CONTEXT_CHARS = 200  # before a piece, by which its place is found again
EDITED = "edited"  # the member of an entry's extra that holds what its last change did to the file
_BULLET = re.compile(r"\s*[-*+]\s+(?:\[RESOLVED\]\s+|\[[ xX]\]\s+)?")
_FIELD = re.compile(r"\s*[-*+]\s+\*\*[^*\n]{1,60}\*\*:\s")
_ISSUE = re.compile(r" \([^()\s]{1,60}\)\Z")  # the id of an issue, written behind the description of a debt
_SEVERITY = re.compile(r" \([A-Z]+\)\Z")


class RemovedPiece(NamedTuple):
    """A removed part of a text: its position, the text before it, and the part itself."""

    at: int
    before: str
    text: str


class Hunk(NamedTuple):
    """Lines that a change replaced by others, and where the new ones were put. The text before them belongs to other
    entries, which a purge may take out, so two hashes of it are kept: of up to `context` characters and of one line."""

    at: int
    context: int
    before: str
    line: str
    old: str
    new: str


class Removal(NamedTuple):
    text: str
    pieces: tuple[tuple[int, RemovedPiece], ...]  # which of the entries it was, by its number; in the order of the text


def without(text: str, contents: Sequence[str]) -> Removal:
    """The text without those of the entries that it contains."""
    doc = scan(text)
    numbers = {form: number for number, content in enumerate(contents) for form in _stored_forms(content)}
    spans = sorted({(start, end, numbers[form]) for form, start, end in _present(doc) if form in numbers})
    pieces = []
    for start, end, number in spans:
        pieces.append((number, RemovedPiece(start, text[max(0, start - CONTEXT_CHARS) : start], text[start:end])))
    rest = spliced(text, [(start, end, "") for start, end, _ in spans])
    return Removal(rest, tuple(pieces))


def authors(doc: JournalDocument, additions: Sequence[tuple[str, str]]) -> dict[int, str]:
    """The origin of each entry of a journal, by its position. `additions` are stored contents with their origins."""
    origins = {form: origin for content, origin in additions for form in _stored_forms(content)}
    return {start: origins[form] for form, start, _ in _present(doc) if form in origins}


def put_back(text: str, pieces: Sequence[RemovedPiece]) -> str:
    """The text with the pieces back in their places; a piece whose place is not recognised goes to the end."""
    for piece in sorted(pieces):
        at = _place(text, piece)
        if not text.startswith(piece.text, at):  # unless it is there already
            text = text[:at] + piece.text + text[at:]
    return text


def _place(text: str, piece: RemovedPiece) -> int:
    """Where the text before the piece ends now: all of it, or else its last line, at the nearest position."""
    if text[: piece.at].endswith(piece.before):
        return piece.at
    line = piece.before[piece.before.rstrip("\n").rfind("\n") + 1 :]
    for anchor in (piece.before, line):
        ends = [match.end() for match in re.finditer(re.escape(anchor), text)] if anchor.strip() else []
        if ends:
            return min(ends, key=lambda end: abs(end - piece.at))
    return len(text)


def hunks_between(before: str, after: str) -> tuple[Hunk, ...]:
    """What changed, line by line."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, new))]
    hunks = []
    for i1, i2, j1, j2 in changed_spans(old, new):
        context = after[max(0, starts[j1] - CONTEXT_CHARS) : starts[j1]]
        line = new[j1 - 1] if j1 else ""
        texts = "".join(old[i1:i2]), "".join(new[j1:j2])
        hunks.append(Hunk(starts[j1], len(context), _hash(context), _hash(line), *texts))
    return tuple(hunks)


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def undone(text: str, hunks: Sequence[Hunk]) -> str | None:
    """The text with the old lines in place of the new ones. None when these are not in it as they were written."""
    for hunk in reversed(hunks):
        at = _standing(text, hunk)
        if at is None:
            return None
        text = text[:at] + hunk.old + text[at + len(hunk.new) :]
    return text


def redone(text: str, hunks: Sequence[Hunk]) -> str | None:
    """The text with the new lines again, after `undone`."""
    for hunk in hunks:
        at = _standing(text, hunk._replace(old=hunk.new, new=hunk.old))
        if at is None:
            return None
        text = text[:at] + hunk.new + text[at + len(hunk.old) :]
    return text


def _standing(text: str, hunk: Hunk) -> int | None:
    """Where the new lines are, behind the text that was before them, or else behind its last line."""
    lines = text.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    places = [(at, number) for number, at in enumerate(starts) if text.startswith(hunk.new, at)]
    behind_text = [at for at, _ in places if at >= hunk.context and _hash(text[at - hunk.context : at]) == hunk.before]
    behind_line = [at for at, number in places if _hash(lines[number - 1] if number else "") == hunk.line]
    for positions in (behind_text, behind_line):
        if hunk.at in positions:
            return hunk.at
        if len(positions) == 1 and (hunk.new or hunk.context):
            return positions[0]
    return None


def from_json(value: Any) -> RemovedPiece:
    return RemovedPiece(int(value["at"]), str(value["before"]), str(value["text"]))


# --- the same entry, as stored and as in the file ---------------------------------------------------------------------


def _stored_forms(content: str) -> Iterator[str]:
    """The keys that a stored entry may have in the file."""
    if content.startswith("#"):
        title = scan(content).headings[0].title
        yield f"decision {_plain(title)}"
        day, _, name = title.partition(" - ")
        yield f"index {day[:10]} {_plain(name)}"
        yield f"archived {day.strip()} {_plain(name)[:ARCHIVE_CHARS]}"
    elif field := _FIELD.match(content):
        yield f"field {_plain(content[field.end() :])}"
    elif bullet := _BULLET.match(content):
        yield f"item {_plain(content[bullet.end() :])}"
    else:
        yield f"row {_plain(content)}"
        yield f"row {_plain(_SEVERITY.sub('', content))}"


def _present(doc: JournalDocument) -> Iterator[tuple[str, int, int]]:
    """The entries of a journal or its archive, each with its key and span."""
    for heading, end in entries.decision_headings(doc):
        yield f"decision {_plain(heading.title)}", heading.start, end
    for heading in doc.headings:
        if heading.title == "Index":
            for table in entries.tables(doc, heading.body, doc.own_end(heading)):
                for row in table.rows:
                    yield f"index {' '.join(_plain(cell.raw) for cell in row.cells)}", row.start, row.end
    spans = [(item.start, item.end) for item in (*entries.questions(doc), *entries.goals(doc))]
    for start, end in (*spans, *((blocker.start, blocker.end) for blocker in entries.blockers(doc))):
        raw = doc.text[start:end]
        bullet = _BULLET.match(raw)
        yield f"item {_plain(raw[bullet.end() if bullet else 0 :])}", start, end
    for field in entries.context(doc):
        yield f"field {_plain(field.entry[1])}", field.start, field.end
    for row_of_decision in entries.archived(doc):
        title = _plain(row_of_decision.entry.decision)
        yield f"archived {row_of_decision.entry.at} {title}", row_of_decision.start, row_of_decision.end
    for debt in entries.debts(doc):
        for words in {debt.entry.description, _ISSUE.sub("", debt.entry.description)}:
            yield f"row {_plain(f'{debt.entry.id}: {words}')}", debt.start, debt.end
    for place in entries.identifiers(doc):
        yield f"row {_plain(f'{place.entry.place}: {place.entry.purpose}')}", place.start, place.end
    for log in entries.log_rows(doc):
        yield f"row {_plain(f'{log.entry.at} {log.entry.agent}: {log.entry.summary}')}", log.start, log.end


def _plain(text: str) -> str:
    """One line without escapes. Applied to both sides, so it need not be exact."""
    return one_line(unescape(text))
