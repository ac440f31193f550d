"""What a session recovers from the journal, in three levels, each within its budget of tokens.

Level 1 is the state of the work and the last three decisions: each gets a minimum first, so that none is pushed out,
and the rest of the budget goes to the most important ones. Level 2 answers a question, or adds more of the same. Level
3 is the full text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from limpet import limits
from limpet.journal.document import entries
from limpet.journal.document.edit import CHECKPOINT, STATE, TASK
from limpet.journal.document.markup import JournalDocument, scan
from limpet.journal.document.sections import normal
from limpet.record import NamedTuple
from limpet.text import tokens

LAST = 3  # decisions that level 1 always holds
_DECISION_LEAST = 5  # tokens that a decision gets in any case
_FIELD_LEAST = 6
_TOKEN_CHARS = 96  # more than any token has
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
        full = valid_text(text)
        return Recovered(3, full, tokens.count(full), "whole")
    doc = scan(text)
    parts = _parts(doc, marks or {}, now)
    if level == 1:
        result = fitted(parts, max(limits.JOURNAL_LEVEL_1_LEAST, budgets[0]))
        return Recovered(1, result, tokens.count(result), "continuity")
    budget = max(limits.JOURNAL_LEVEL_1_LEAST, budgets[1])
    if query.strip():
        from limpet.recall.ask import ask  # Late: a new session waits for level 1, which searches nothing.

        answer = ask(valid_text(f"{text}\n{more}"), query, budget, tokens.count).content
        if answer.strip():
            result = tokens.cut(answer, budget)[0]
            return Recovered(2, result, tokens.count(result), "search")
    result = fitted([*parts, *_further(doc)], budget)
    return Recovered(2, result, tokens.count(result), "continuity")


def past_decisions(doc: JournalDocument) -> list[Past]:
    """Every decision of the log and the archive table, oldest first."""
    past = []
    for placed in entries.decisions(doc):
        words = ": ".join(part for part in (placed.entry.title, placed.entry.decision) if part)
        past.append(Past(placed.entry.at, words, placed.entry.rationale, placed.start))
    past += [Past(row.entry.at, row.entry.decision, row.entry.rationale, row.start) for row in entries.archived(doc)]
    return sorted(past, key=lambda item: (entries.parse_time(item.at) or _LONG_AGO, item.place))


def is_due(blocker: entries.Blocker, now: datetime | None) -> bool:
    """Whether the ETA of an open blocker has passed."""
    at = entries.parse_time(blocker.eta)
    return not blocker.resolved and at is not None and now is not None and at <= now


def valid_text(text: str) -> str:
    """A text that can be sent anywhere: bytes that are not UTF-8 become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _parts(doc: JournalDocument, marks: Mapping[int, str], now: datetime | None) -> list[_Part]:
    fields = {normal(field.entry[0]): field.entry[1] for field in entries.context(doc)}

    def field(names: tuple[str, ...]) -> str:
        return next((fields[normal(name)] for name in names if fields.get(normal(name))), "")

    parts = [
        _Part("State: ", field(STATE), _FIELD_LEAST),
        _Part("Task: ", field(TASK), _FIELD_LEAST),
    ]
    for past in reversed(past_decisions(doc)[-LAST:]):
        flag = f" [evidence {marks[past.place]}]" if past.place in marks else ""
        parts.append(_Part(f"- {past.at[:10]} ", past.words, _DECISION_LEAST, flag))
    open_ones = [
        _blocked([placed.entry for placed in entries.blockers(doc)], now),
        _count(sum(not placed.entry.done for placed in entries.questions(doc)), "question"),
        _count(sum(not placed.entry.done for placed in entries.goals(doc)), "goal"),
    ]
    parts.append(_Part("Open: ", ", ".join(part for part in open_ones if part), _FIELD_LEAST))
    if newest := max(entries.identifiers(doc), key=lambda placed: (placed.entry.verified, placed.start), default=None):
        purpose = f" ({newest.entry.purpose})" if newest.entry.purpose else ""
        parts.append(_Part("See: ", f"{newest.entry.place}{purpose}", _FIELD_LEAST))
    parts.append(_Part("Checkpoint: ", field(CHECKPOINT), 0))
    return [part for part in parts if part.words]


def _further(doc: JournalDocument) -> list[_Part]:
    """What level 2 adds without a query, the most useful first."""
    past = list(reversed(past_decisions(doc)))
    parts = [
        _Part("- Blocker: ", placed.entry.text, 0) for placed in entries.blockers(doc) if not placed.entry.resolved
    ]
    parts += [_Part("- Question: ", placed.entry.text, 0) for placed in entries.questions(doc) if not placed.entry.done]
    parts += [_Part("- Goal: ", placed.entry.text, 0) for placed in entries.goals(doc) if not placed.entry.done]
    parts += [_Part(f"- {placed.at[:10]} because ", placed.why, 0) for placed in past[:LAST] if placed.why]
    parts += [_Part(f"- {placed.at[:10]} ", placed.words, 0) for placed in past[LAST:]]
    parts += [
        _Part("- See ", f"{placed.entry.place} ({placed.entry.purpose})", 0) for placed in entries.identifiers(doc)
    ]
    return parts


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""


def _blocked(blockers: list[entries.Blocker], now: datetime | None) -> str:
    waiting = [blocker for blocker in blockers if not blocker.resolved]
    due = sum(is_due(blocker, now) for blocker in waiting)
    return _count(len(waiting), "blocker") + (f" ({due} due: resolved?)" if due else "")


def fitted(parts: list[_Part], budget: int) -> str:
    """The parts in order, each cut to its share of the budget; those with a minimum are always included."""
    # No more parts than tokens, and no more characters than a token can have: a long journal must not take long.
    flat = [
        _Part(part.before, " ".join(valid_text(part.words[: budget * _TOKEN_CHARS]).split()), part.least, part.after)
        for part in parts[:budget]
    ]
    sizes = [part.least for part in flat]
    while tokens.count(_put(flat, sizes)) > budget and any(size > 1 for size in sizes):
        at = max(range(len(sizes)), key=lambda place: sizes[place])  # hostile text may cost more than its estimate
        sizes[at] -= 1
    for at in _by_importance(flat):
        sizes[at] = _largest(flat, sizes, at, budget)
        if tokens.count(_put(flat, sizes)) >= budget:
            break
    return _put(flat, sizes)


def _by_importance(parts: list[_Part]) -> Iterable[int]:
    """Parts with a minimum grow first, in order; the others get the rest."""
    return sorted(range(len(parts)), key=lambda at: (parts[at].least == 0, at))


def _largest(parts: list[_Part], sizes: list[int], at: int, budget: int) -> int:
    """The most tokens of a part that still fit, by bisection."""
    low, high = sizes[at], tokens.count(parts[at].words)
    # Parts with a minimum share the rest, so that one long text cannot take it all.
    if parts[at].least:
        later = sum(1 for index, part in enumerate(parts) if part.least and index > at)
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
