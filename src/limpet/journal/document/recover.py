"""What a session takes up of the journal: three levels, each within its budget of tokens by the way it is put together.

Level 1 is where the work stands and the last three decisions: each is given its least first, so that none can be pushed
out, and what is left goes to the most important ones. Level 2 answers a question, or gives more of the same. Level 3 is
the whole text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from limpet import limits
from limpet.journal.document import entries
from limpet.journal.document.edit import CHECKPOINT, STATE, TASK
from limpet.journal.document.scan import Document, scan
from limpet.journal.document.sections import normal
from limpet.text import tokens

LAST = 3  # decisions that level 1 always holds
_DECISION_LEAST = 5  # tokens of a decision's words, whatever else is there
_FIELD_LEAST = 6
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


class Recovered(NamedTuple):
    level: int
    text: str
    tokens: int
    how: str  # continuity, search or whole


class Past(NamedTuple):
    """A decision as recovery shows it, from the log or from the archive."""

    at: str
    words: str
    why: str
    place: int


class _Part(NamedTuple):
    before: str
    words: str
    least: int  # 0: may be left out
    after: str = ""


def recover(
    text: str,
    level: int,
    *,
    query: str = "",
    more: str = "",
    budgets: tuple[int, int] = (100, 500),
    marks: Mapping[int, str] | None = None,
    now: datetime | None = None,
) -> Recovered:
    """`more` is the text of the archive. `marks` says by a decision's position what is wrong with its evidence."""
    if level == 3:
        whole = shown(text)
        return Recovered(3, whole, tokens.count(whole), "whole")
    doc = scan(text)
    parts = _parts(doc, marks or {}, now)
    if level == 1:
        found = fitted(parts, max(limits.JOURNAL_LEVEL_1_LEAST, budgets[0]))
        return Recovered(1, found, tokens.count(found), "continuity")
    budget = max(limits.JOURNAL_LEVEL_1_LEAST, budgets[1])
    if query.strip():
        from limpet.recall.ask import ask

        answer = ask(shown(f"{text}\n{more}"), query, budget, tokens.count).content
        if answer.strip():
            found = tokens.cut(answer, budget)[0]
            return Recovered(2, found, tokens.count(found), "search")
    found = fitted([*parts, *_further(doc)], budget)
    return Recovered(2, found, tokens.count(found), "continuity")


def past_decisions(doc: Document) -> list[Past]:
    """Every decision of the log and the archive table, oldest first."""
    found = []
    for one in entries.decisions(doc):
        words = ": ".join(part for part in (one.entry.title, one.entry.decision) if part)
        found.append(Past(one.entry.at, words, one.entry.rationale, one.start))
    found += [Past(row.entry.at, row.entry.decision, row.entry.rationale, row.start) for row in entries.archived(doc)]
    return sorted(found, key=lambda past: (moment(past.at) or _LONG_AGO, past.place))


def moment(text: str) -> datetime | None:
    """A point in time as people write it in ISO 8601; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def is_due(blocker: entries.Blocker, now: datetime | None) -> bool:
    """Whether an open blocker should have resolved by now."""
    at = moment(blocker.eta)
    return not blocker.resolved and at is not None and now is not None and at <= now


def shown(text: str) -> str:
    """A text that can be sent anywhere: bytes that are no UTF-8 become the sign for that."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _parts(doc: Document, marks: Mapping[int, str], now: datetime | None) -> list[_Part]:
    fields = {normal(field.entry[0]): field.entry[1] for field in entries.context(doc)}

    def field(names: tuple[str, ...]) -> str:
        return next((fields[normal(name)] for name in names if fields.get(normal(name))), "")

    found = [
        _Part("State: ", field(STATE), _FIELD_LEAST),
        _Part("Task: ", field(TASK), _FIELD_LEAST),
    ]
    for past in reversed(past_decisions(doc)[-LAST:]):
        flag = f" [evidence {marks[past.place]}]" if past.place in marks else ""
        found.append(_Part(f"- {past.at[:10]} ", past.words, _DECISION_LEAST, flag))
    open_ones = [
        _blocked([one.entry for one in entries.blockers(doc)], now),
        _count(sum(not one.entry.done for one in entries.questions(doc)), "question"),
        _count(sum(not one.entry.done for one in entries.goals(doc)), "goal"),
    ]
    found.append(_Part("Open: ", ", ".join(part for part in open_ones if part), _FIELD_LEAST))
    found.append(_Part("Checkpoint: ", field(CHECKPOINT), 0))
    return [part for part in found if part.words]


def _further(doc: Document) -> list[_Part]:
    """What level 2 adds where there is no question, the most useful first."""
    past = list(reversed(past_decisions(doc)))
    found = [_Part("- Blocker: ", one.entry.text, 0) for one in entries.blockers(doc) if not one.entry.resolved]
    found += [_Part("- Question: ", one.entry.text, 0) for one in entries.questions(doc) if not one.entry.done]
    found += [_Part("- Goal: ", one.entry.text, 0) for one in entries.goals(doc) if not one.entry.done]
    found += [_Part(f"- {one.at[:10]} because ", one.why, 0) for one in past[:LAST] if one.why]
    found += [_Part(f"- {one.at[:10]} ", one.words, 0) for one in past[LAST:]]
    found += [_Part("- See ", f"{one.entry.place} ({one.entry.purpose})", 0) for one in entries.identifiers(doc)]
    return found


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""


def _blocked(found: list[entries.Blocker], now: datetime | None) -> str:
    waiting = [one for one in found if not one.resolved]
    due = sum(is_due(one, now) for one in waiting)
    return _count(len(waiting), "blocker") + (f" ({due} due: resolved?)" if due else "")


def fitted(parts: list[_Part], budget: int) -> str:
    """The parts in order, each cut to what the budget leaves it; those with a least are always there."""
    whole = [_Part(part.before, " ".join(shown(part.words).split()), part.least, part.after) for part in parts]
    sizes = [part.least for part in whole]
    while tokens.count(_put(whole, sizes)) > budget and any(size > 1 for size in sizes):
        at = max(range(len(sizes)), key=lambda place: sizes[place])  # hostile words may cost more than they should
        sizes[at] -= 1
    for at in _by_importance(whole):
        sizes[at] = _largest(whole, sizes, at, budget)
    return _put(whole, sizes)


def _by_importance(parts: list[_Part]) -> Iterable[int]:
    """What must be there grows first, in order; the rest gets what is left."""
    return sorted(range(len(parts)), key=lambda at: (parts[at].least == 0, at))


def _largest(parts: list[_Part], sizes: list[int], at: int, budget: int) -> int:
    """As many tokens of a part as still fit, by halving."""
    low, high = sizes[at], tokens.count(parts[at].words)
    # Those that must be there share what is left, so that one long text cannot take it all.
    if parts[at].least:
        later = sum(1 for other, part in enumerate(parts) if part.least and other > at)
        left = budget - tokens.count(_put(parts, sizes))
        high = min(high, low + max(0, left) // (later + 1))
    while low < high:
        middle = (low + high + 1) // 2
        if tokens.count(_put(parts, [*sizes[:at], middle, *sizes[at + 1 :]])) <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def _put(parts: list[_Part], sizes: list[int]) -> str:
    lines = []
    for part, size in zip(parts, sizes, strict=True):
        if size or part.least:
            words, cut = tokens.cut(part.words, size)
            lines.append(f"{part.before}{words.rstrip()}{'…' if cut else ''}{part.after}")
    return "\n".join(lines)
