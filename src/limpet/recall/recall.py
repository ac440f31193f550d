"""Recall: one question to everything that is kept, answered with snippets, reasons and labels.

The store gathers where the words of the question stand, search/ puts the texts in order, and what is shown is cut to a
budget. Everything found is quoted as data: a label says where it came from. What ranks texts is imported when the first
question comes: every server starts with this module, and not every one is asked.

To add a kind of entry, add it to CHOICES (and to TALK in recall/rank.py if its entries follow each other like turns).
What is not an entry needs a source like `_outputs`, called in `search`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from limpet import errors, limits
from limpet.catalogue.check import a_name, bounded
from limpet.catalogue.operation import Context, Json
from limpet.model import (
    HANDOFF,
    JOURNAL,
    MEMORY,
    MESSAGE,
    NOTE,
    NOTEPAD,
    OUTPUT,
    PIN,
    SCRATCHPAD,
    STATE,
    TASK,
    Entry,
    iso,
    milliseconds,
)
from limpet.recall import semantics
from limpet.store import CandidateQuery, Candidates, Document
from limpet.text import tokens

if TYPE_CHECKING:
    from limpet.recall.question import Question
    from limpet.recall.rank import Scored

CHOICES = {
    "notes": NOTE,
    "notepads": NOTEPAD,
    "memory": MEMORY,
    "handoffs": HANDOFF,
    "scratchpads": SCRATCHPAD,
    "journal": JOURNAL,
    "tasks": TASK,
    "pins": PIN,
    "state": STATE,
    "messages": MESSAGE,
    "outputs": OUTPUT,
}
PIECES_READ = 20  # pieces of outputs that are read for one question
OUTPUT_SHARE = 0.7  # what somebody wrote down is more likely meant than what a tool printed
HIT_TOKENS = 30  # what is said about a hit besides its snippet
SNIPPET_MIN_WORDS = 8
BY_MEANING = ("about", "like words")  # what vectors add to a score
WEAK = 0.2  # hits that score less than this share of the best are not worth showing
DAY_MS = 86_400_000
WAITING = "They wait to be indexed, so what is not found may stand in them; the next recall indexes more of them."
_AGE = re.compile(r"(\d{1,4})([hdw])")
_AGE_MS = {"h": 3_600_000, "d": DAY_MS, "w": 7 * DAY_MS}
_REASONS = {  # a signal, and how it is told
    "phrase": "words side by side",
    "literal": "as written",
    "speaker": "said by who is asked about",
    "date": "at the time asked about",
    "tells when": "tells when",
    "pinned": "pinned",
}


class Hit(NamedTuple):
    """One text that was found. `origin` is who wrote it, set by us; `trust` is "data" for what nobody here wrote."""

    kind: str
    key: str
    snippet: str
    line: int
    whole: bool
    score: float  # 1 is the best of this answer
    why: tuple[str, ...]
    session: str
    tags: tuple[str, ...]
    origin: str
    trust: str
    state: str  # "", "done", "used" or "pinned"
    updated_at: int
    same: tuple[str, ...]  # others that say the same
    replaces: tuple[str, ...]  # older ones that say nearly the same


class Recalled(NamedTuple):
    query: str
    hits: tuple[Hit, ...]
    left_out: int
    waiting: int = 0  # outputs that are not indexed yet: what is not found may stand in them
    hint: str = ""  # that only words were compared, said once


class Filter(NamedTuple):
    """Which texts may be found, whatever they say."""

    kinds: tuple[str, ...]
    tags: frozenset[str]
    session: str | None
    since: int | None
    until: int | None
    prefix: str
    include_done: bool
    besides: frozenset[str] = frozenset()  # keys of what is shown already

    @property
    def outputs(self) -> bool:
        """Whether outputs are looked for; they have no tags."""
        return OUTPUT in self.kinds and not self.tags

    def wants(self, fact: Document) -> bool:
        from limpet.text.words import fold

        return (
            (self.include_done or not fact.done or fact.kind == HANDOFF)
            and fact.key not in self.besides
            and (self.session is None or fact.session == self.session)
            and (self.since is None or fact.updated_at >= self.since)
            and (self.until is None or fact.created_at < self.until)
            and fact.key.startswith(self.prefix)
            and (not self.tags or self.tags <= {fold(tag) for tag in fact.tags})
        )


class Found(NamedTuple):
    """A text in its place in the order, with what is known of it."""

    fact: Document
    scored: Scored
    text: str
    words: tuple[str, ...]  # of the question that stand in it
    entry: Entry | None = None  # of which it is the text; None for a piece of an output


def recall(
    ctx: Context,
    /,
    query: str,
    limit: int = limits.RECALL_LIMIT_DEFAULT,
    tokens: int = limits.RECALL_BUDGET_TOKENS,
    **given: Any,
) -> Recalled:
    from limpet.recall import question

    asked = query.strip()[: limits.QUERY_MAX_CHARS]  # the first words of a very long question say what it is about
    bounded("query", asked, limits.QUERY_MAX_CHARS, "", blank="Say what to look for.")
    wanted = _filter(ctx, **given)
    waiting = _catch_up(ctx, wanted)
    found = search(ctx, question.read(asked, ctx.now), wanted)
    hint = ctx.semantics.hint() if ctx.semantics and ctx.bounds.recall.meaning else ""
    return _shown(query, found, limit, tokens)._replace(waiting=waiting, hint=hint)


def related(
    ctx: Context,
    query: str,
    kind: str,
    *,
    tags: tuple[str, ...] = (),
    include_done: bool = False,
    besides: frozenset[str] = frozenset(),
) -> list[Entry]:
    """Entries of one kind and any session that recall finds worth showing, the best first. Tags are folded."""
    from limpet.recall import question

    wanted = Filter((kind,), frozenset(tags), None, None, None, "", include_done, besides)
    found = _worth(_entries(ctx, question.read(query, ctx.now), wanted, limits.RELATED_POOL))
    return [one.entry for one in found if one.entry is not None]


def _filter(
    ctx: Context,
    *,
    kinds: tuple[str, ...] = (),
    tags: tuple[str, ...] = (),
    session: str | None = None,
    since: str | None = None,
    until: str | None = None,
    key_prefix: str = "",
    include_done: bool = False,
) -> Filter:
    from limpet.text.words import fold

    return Filter(
        _kinds(kinds),
        frozenset(fold(" ".join(tag.split())) for tag in tags),
        None if session is None else a_name("session", session, limits.SESSION_MAX_CHARS),
        None if since is None else moment_of("since", since, ctx.now),
        None if until is None else moment_of("until", until, ctx.now),
        key_prefix,
        include_done,
    )


def search(ctx: Context, asked: Question, wanted: Filter) -> list[Found]:
    """All sources together, the best first."""
    found = [*_entries(ctx, asked, wanted), *_outputs(ctx, asked, wanted)]
    return sorted(found, key=lambda one: (-one.scored.score, -one.fact.updated_at, one.fact.key))


def _seek(
    asked: Question, wanted: Filter, pool: int = limits.RECALL_POOL, nominated: tuple[int, ...] = ()
) -> CandidateQuery:
    from limpet.recall import rank

    common = limits.RECALL_COMMON
    return CandidateQuery(asked.words, asked.literals, rank.first, wanted.wants, rank.around, pool, common, nominated)


def _entries(ctx: Context, asked: Question, wanted: Filter, pool: int = limits.RECALL_POOL) -> list[Found]:
    from limpet.recall import rank

    kinds = tuple(kind for kind in wanted.kinds if kind != OUTPUT)
    if not kinds:
        return []
    # What only adds to a search for words is found by words too.
    by_meaning = ctx.bounds.recall.meaning and pool == limits.RECALL_POOL
    sense = semantics.asked(ctx.semantics, ctx.store, ctx.scope) if by_meaning else None
    nominated = sense.nearest(asked.words, rank.NOMINATED) if sense else ()
    gathered = ctx.store.entries.candidates(ctx.scope, kinds, _seek(asked, wanted, pool, tuple(nominated)))
    entries: dict[int, Entry] = {}

    def read(docs: list[int]) -> Mapping[int, str]:
        entries.update(ctx.store.entries.texts(ctx.scope, docs[: pool // 2]))
        return {doc: entry.content for doc, entry in entries.items()}

    ordered = rank.order(asked, gathered, read, sense)
    return [
        Found(
            gathered.documents[one.doc],
            one,
            entries[one.doc].content,
            _standing(asked, gathered, one),
            entries[one.doc],
        )
        for one in ordered
    ]


def _catch_up(ctx: Context, wanted: Filter) -> int:
    """Index the outputs kept since the last question, as far as there is time for it. How many still wait."""
    if not wanted.outputs:
        return 0
    try:
        return ctx.store.outputs.index(ctx.scope, limits.OUTPUT_CATCH_UP_BYTES)
    except errors.StoreReadOnly:  # what is indexed already can still be found
        return ctx.store.outputs.index(ctx.scope, 0)


def _outputs(ctx: Context, asked: Question, wanted: Filter) -> list[Found]:
    """Kept outputs, each by its best piece."""
    from limpet.recall import rank

    if not wanted.outputs:
        return []
    gathered = ctx.store.outputs.candidates(ctx.scope, _seek(asked, wanted))
    texts: dict[int, str] = {}

    def read(docs: list[int]) -> Mapping[int, str]:
        for fact in map(gathered.documents.__getitem__, docs[:PIECES_READ]):
            try:
                body = ctx.store.outputs.read_bytes(ctx.scope, fact.key, fact.start, fact.start + fact.size)
            except errors.NotFound:
                continue  # pruned in the meantime
            texts[fact.doc] = body.decode("utf-8", "replace")
        return texts

    best: dict[str, Found] = {}
    for one in rank.order(asked, gathered, read):
        fact = gathered.documents[one.doc]
        scored = one._replace(score=OUTPUT_SHARE * one.score)
        best.setdefault(fact.key, Found(fact, scored, texts[one.doc], _standing(asked, gathered, one)))
    return list(best.values())


def _standing(asked: Question, gathered: Candidates, one: Scored) -> tuple[str, ...]:
    pairs = zip(asked.words, gathered.positions, strict=True)
    return tuple(word for word, places in pairs if one.doc in places)


# --- what is shown ----------------------------------------------------------------------------------------------------


def _shown(query: str, found: list[Found], limit: int, budget: int) -> Recalled:
    from limpet.recall.snippet import same

    best = found[0].scored.score if found else 0.0
    worth = _worth(found)[: 2 * limit]
    groups: dict[int, list[Found]] = {}
    for at, first in enumerate(same([one.text for one in worth])):
        groups.setdefault(first, []).append(worth[at])
    chosen = list(groups.values())[:limit]
    words = limits.RECALL_SNIPPET_WORDS
    hits = [_hit(group, best, words) for group in chosen]
    costs = list(map(_cost, hits))
    while words > SNIPPET_MIN_WORDS and sum(costs) > budget:
        words = max(SNIPPET_MIN_WORDS, words * 2 // 3)
        hits = [_hit(group, best, words) for group in chosen]
        costs = list(map(_cost, hits))
    while len(hits) > 1 and sum(costs[: len(hits)]) > budget:
        hits.pop()
    shown = sum(len(group) for group in chosen[: len(hits)])
    return Recalled(query, tuple(hits), len(found) - shown)


def _worth(found: list[Found]) -> list[Found]:
    """Without hits that are weak beside the best. Outputs have no vectors: they are held against its words alone."""
    if not found:
        return []
    best = found[0].scored
    by_words = best.score - sum(best.parts.get(name, 0.0) for name in BY_MEANING)
    return [one for one in found if one.scored.score >= WEAK * (best.score if one.entry is not None else by_words)]


def _cost(hit: Hit) -> int:
    return HIT_TOKENS + tokens.count(hit.snippet)


def _hit(group: list[Found], best: float, words: int) -> Hit:
    """The newest of those that say the same stands for them all, in the place of the best of them."""
    from limpet.recall.snippet import snippet

    one = max(group, key=lambda one: (one.fact.updated_at, one.fact.key))
    others = [other for other in group if other is not one]
    fact, parts = one.fact, group[0].scored.parts
    cut = snippet(one.text, one.words, one.scored.at, words)
    about = parts.get("about", 0) > 0 and not parts.get("words")
    why = [f"words: {', '.join(one.words)}"] if one.words else ["about the same" if about else "beside a hit"]
    why += [told for name, told in _REASONS.items() if parts.get(name, 0) > 0 and name != "pinned"]
    state = "done" if fact.done and fact.kind == NOTE else "used" if fact.done else "pinned" if fact.pinned else ""
    return Hit(
        fact.kind,
        fact.key,
        cut.text,
        fact.line + cut.line - 1,
        cut.whole and fact.kind != OUTPUT,
        round(group[0].scored.score / best, 2) if best else 0.0,
        tuple(why),
        fact.session,
        fact.tags,
        fact.origin,
        trust(fact),
        state,
        fact.updated_at,
        tuple(other.fact.key for other in others if other.text == one.text),
        tuple(other.fact.key for other in others if other.text != one.text),
    )


def trust(fact: Document) -> str:
    """Whose word it is. Only what people and agents wrote down here is theirs; all else is data to be judged.

    A message of a conversation is data too: it may be a tool's, or quote one.
    """
    return fact.origin if fact.origin in ("agent", "person") and fact.kind != MESSAGE else "data"


def _kinds(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in CHOICES:
            raise errors.not_one_of("recall", "kinds", name, tuple(CHOICES))
    return tuple(CHOICES[name] for name in dict.fromkeys(names)) or tuple(CHOICES.values())


def moment_of(what: str, text: str, now: int) -> int:
    """A day, a time, or an age counted back from now."""
    given = text.strip()
    if age := _AGE.fullmatch(given):
        return now - int(age[1]) * _AGE_MS[age[2]]
    try:
        # A day or time without a zone is meant in UTC, as all our times are shown.
        dated = (
            given if re.search(r"(?:Z|[+-]\d\d:?\d\d)$", given[10:]) else given + ("T00:00" * (len(given) == 10)) + "Z"
        )
        return milliseconds(dated)
    except (ValueError, OverflowError):
        rule = "write a day (2026-03-02), a time (2026-03-02T10:15:00Z) or an age (12h, 7d, 2w)"
        raise errors.bad_name(what, text, rule) from None


def hit_json(hit: Hit) -> Json:
    shown: Json = {"kind": hit.kind, "id": hit.key, "text": hit.snippet, "score": hit.score, "why": list(hit.why)}
    if not hit.whole:
        shown |= {"line": hit.line, "cut": True}
    extra = {"session": hit.session, "tags": list(hit.tags), "state": hit.state, "same": list(hit.same)}
    extra |= {"replaces": list(hit.replaces)}
    shown |= {name: value for name, value in extra.items() if value}
    return shown | {"updated_at": iso(hit.updated_at), "from": hit.origin, "trust": hit.trust}


def recalled_json(value: Recalled) -> Json:
    answer: Json = {"hits": [hit_json(hit) for hit in value.hits], "hit_count": len(value.hits), "query": value.query}
    answer |= {"left_out": value.left_out} if value.left_out else {}
    answer |= {"hint": value.hint} if value.hint else {}
    return answer | ({"not_searched": {"outputs": value.waiting, "why": WAITING}} if value.waiting else {})
