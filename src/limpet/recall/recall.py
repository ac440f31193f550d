"""Recall: one question to everything in a project, answered with snippets, reasons and labels.

The store gathers candidates and the positions of the question's words in them, rank.py orders them, and the answer is
cut to a budget. Every match is quoted as data: a label says where it came from.

To add a kind of entry, add it to CHOICES (and to TALK in recall/rank.py if its entries follow each other like turns).
Anything that is not an entry needs a source like `_outputs`, called in `search`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from limpet import errors, limits
from limpet.catalogue.ids import LETTERS, short_id, short_ids
from limpet.catalogue.operation import Context, Json, a_name, bounded
from limpet.light import Any, re
from limpet.memory import anchors, corrections, handoff, layers
from limpet.model import (
    FOLD,
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
    TOOL,
    Entry,
    Validity,
    as_handoff,
    iso,
    milliseconds,
)
from limpet.recall import edits, embeddings, question, rank
from limpet.recall.duplicates import first_of_each
from limpet.recall.question import Question
from limpet.recall.rank import Linked, Scored
from limpet.record import NamedTuple
from limpet.store import CandidateQuery, Candidates, Document, Listing
from limpet.text import brief, tokens
from limpet.text import words as analyse
from limpet.text.pieces import snippet
from limpet.text.safe import as_name
from limpet.text.words import fold

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
OUTPUT_SHARE = 0.7  # of its score: an entry is more likely the answer than what a tool printed
HIT_TOKENS = 30  # of a match besides its snippet
SNIPPET_MIN_WORDS = 8
FACTS_ORDERED = 20  # of the best matches, in which a newer text may go before an older one about the same
BY_MEANING = ("about", "like words")  # the parts of a score that come from embeddings
FIT_AMONG = 10  # matches of which one must fit, or the answer is that nothing does
NEAREST_WORDS = 16
STANDING = (HANDOFF, NOTEPAD, SCRATCHPAD, TASK, PIN)  # kinds of which there are few, so that the newest may be meant
NEWEST_SHOWN, NEWEST_SCORE = 3, 30.0  # of these; a score that few matches by words have
SPLIT_MOST = 2  # words that no text holds, and that are looked for as two words
WEAK = 0.1  # matches that score less than this share of the best are left out
DAY_MS = 86_400_000
WAITING = "They wait to be indexed, so what is not found may stand in them; the next recall indexes more of them."
NOT_EMBEDDED = (
    "They are found by their words alone until `limpet index`, or a server in the background, has embedded them."
)
NOTHING_FITS = "No text holds enough of what was asked; more=true shows the weak matches."
_AGE = re.compile(r"(\d{1,4})([hdw])")
_AGE_MS = {"h": 3_600_000, "d": DAY_MS, "w": 7 * DAY_MS}
_REASONS = {  # a signal, and its words in an answer
    "phrase": "words side by side",
    "literal": "as written",
    "part": "in a longer word",
    "speaker": "said by who is asked about",
    "date": "at the time asked about",
    "tells when": "tells when",
    "user": "said by the user",
    "wish": "a wish of the user",
    "pinned": "pinned",
}


class Hit(NamedTuple):
    """One match. `origin` is its provenance, set by Limpet; `trust` is "data" unless a person or agent wrote it."""

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
    state: str  # "", "done", "used", "pinned", "replaced" or "expired"
    updated_at: int
    same: tuple[str, ...]  # keys of others with the same text
    replaces: tuple[str, ...]  # keys of older ones with nearly the same text
    plain: str = ""  # the snippet without marks around the words sought
    source: anchors.Look | None = None  # what it cites, as it is now
    replaced_by: str = ""
    layer: str = ""  # of memory, where it is not the project's
    corrected_in: tuple[str, ...] = ()  # notes and memory that correct a handoff since


class Recalled(NamedTuple):
    query: str
    hits: tuple[Hit, ...]
    left_out: int
    nearest: str = ""  # where nothing fits: what is nearest, in one line
    waiting: int = 0  # outputs that are not indexed yet, and so not searched
    hint: str = ""  # said once where there is no embedding model
    not_embedded: int = 0  # texts without a vector of the model that the settings want, found by their words alone


class Filter(NamedTuple):
    """Which texts may match, independent of their words."""

    kinds: tuple[str, ...]
    tags: frozenset[str]
    session: str | None
    since: int | None
    until: int | None
    prefix: str
    include_done: bool
    besides: frozenset[str] = frozenset()  # keys that are left out
    tags_any: frozenset[str] = frozenset()
    include_replaced: bool = False  # what another text has replaced, and what has expired
    now: int = 0  # what has expired by then is left out
    narrow: bool = False  # whether kinds were named

    @property
    def outputs(self) -> bool:
        """Whether outputs are searched; they have no tags."""
        return OUTPUT in self.kinds and not self.tags and not self.tags_any

    def wants(self, document: Document) -> bool:
        return (
            self._holds(document)
            and document.key not in self.besides
            and (self.session is None or document.session == self.session)
            and (self.since is None or document.updated_at >= self.since)
            and (self.until is None or document.created_at < self.until)
            and document.key.startswith(self.prefix)
            and (not self.tags or self.tags <= {fold(tag) for tag in document.tags})
            and (not self.tags_any or not self.tags_any.isdisjoint(map(fold, document.tags)))
        )

    def _holds(self, document: Document) -> bool:
        """Whether it is neither done nor replaced nor expired, or may be so."""
        if document.kind == FOLD:
            return edits.is_edit(document)
        if document.replaced or (document.expires_at is not None and 0 < document.expires_at <= self.now):
            return self.include_replaced
        return self.include_done or not document.done or document.kind == HANDOFF


class Match(NamedTuple):
    """A text with its score."""

    document: Document
    scored: Scored
    text: str
    words: tuple[str, ...]  # of the question that occur in it
    entry: Entry | None = None  # None for a piece of an output
    led_by: str = ""  # a name in one of the best texts that led to it
    replaced_by: str = ""  # the key of the message that somebody said in its place


def recall(
    ctx: Context,
    /,
    query: str,
    limit: int = limits.RECALL_LIMIT_DEFAULT,
    tokens: int = limits.RECALL_BUDGET_TOKENS,
    more: bool = False,
    **filters: Any,
) -> Recalled:
    """What fits the question best. `more` also gives what fits so badly that it is left out otherwise."""
    text = query.strip()[: limits.QUERY_MAX_CHARS]  # the first words of a very long question are enough
    bounded("query", text, limits.QUERY_MAX_CHARS, "", blank="Say what to look for.")
    which = _filter(ctx, **filters)
    with ctx.store.moment(ctx.scope.tenant):
        return _recalled(ctx, query, text, which, limit, tokens, more=more)


def _recalled(ctx: Context, query: str, text: str, which: Filter, limit: int, tokens: int, *, more: bool) -> Recalled:
    waiting = _catch_up(ctx, which)
    matches = search(ctx, question.read(text, ctx.now), which)
    if not more and matches and not any(match.scored.fits for match in matches[:FIT_AMONG]):
        nothing = _with_layers(ctx, Recalled(query, (), 0, waiting=waiting), which, limit)
        return nothing if nothing.hits else Recalled(query, (), len(matches), _nearest(matches[0]), waiting)
    by_meaning = ctx.embeddings if ctx.bounds.recall.meaning else None
    hint = by_meaning.hint() if by_meaning else ""
    left = embeddings.backlog(by_meaning, ctx.store, ctx.scope)
    strong = matches if more else _strong(matches)
    answer = labelled(ctx, _fitted(query, matches, strong, limit, tokens), matches)
    answer = _with_layers(ctx, answer, which, limit)
    return answer._replace(waiting=waiting, hint=hint, not_embedded=0 if left.by_questions else left.texts)


def _with_layers(ctx: Context, answer: Recalled, which: Filter, limit: int) -> Recalled:
    """The answer with what clearly fits of the layers below the project's; where both have a key, the project's."""
    if MEMORY not in which.kinds or which.tags or which.tags_any or which.session:
        return answer
    above = [ctx]
    for layer in layers.below(ctx):
        asked = question.read(answer.query.strip()[: limits.QUERY_MAX_CHARS], ctx.now)
        matches = [match for match in _entries(layer.ctx, asked, which._replace(kinds=(MEMORY,))) if match.scored.fits]
        hidden = layers.hidden_keys(above, (match.document.key for match in matches))
        above.append(layer.ctx)
        own = [match for match in matches if match.document.key not in hidden]
        fitted = _fitted(answer.query, own, _strong(own), min(limits.LAYER_HITS, limit), limits.RECALL_BUDGET_TOKENS)
        hits = tuple(hit._replace(layer=layer.name) for hit in labelled(layer.ctx, fitted, own).hits)
        first = answer.hits[: limit - len(hits)]
        left_out = answer.left_out + len(answer.hits) - len(first)
        answer = answer._replace(hits=(*first, *hits), left_out=left_out)
    return answer


def related(
    ctx: Context,
    query: str,
    kind: str,
    *,
    tags: tuple[str, ...] = (),
    tags_any: tuple[str, ...] = (),
    include_done: bool = False,
    include_replaced: bool = False,
    besides: frozenset[str] = frozenset(),
) -> list[Entry]:
    """Entries of one kind and any session that match well, the best first. Tags are folded."""
    which = Filter((kind,), frozenset(tags), None, None, None, "", include_done, besides, frozenset(tags_any))
    which = which._replace(include_replaced=include_replaced, now=ctx.now)
    with ctx.store.moment(ctx.scope.tenant):
        matches = _strong(_entries(ctx, question.read(query, ctx.now), which, limits.RELATED_POOL))
    return [match.entry for match in matches if match.entry is not None]


def _filter(  # noqa: PLR0913 - the filters of an operation
    ctx: Context,
    *,
    kinds: tuple[str, ...] = (),
    tags: tuple[str, ...] = (),
    session: str | None = None,
    since: str | None = None,
    until: str | None = None,
    key_prefix: str = "",
    include_done: bool = False,
    tags_any: tuple[str, ...] = (),
    include_replaced: bool = False,
) -> Filter:
    return Filter(
        _kinds(kinds),
        frozenset(fold(" ".join(tag.split())) for tag in tags),
        None if session is None else a_name("session", session, limits.SESSION_MAX_CHARS),
        None if since is None else moment_of("since", since, ctx.now),
        None if until is None else moment_of("until", until, ctx.now),
        key_prefix,
        include_done,
        tags_any=frozenset(fold(" ".join(tag.split())) for tag in tags_any),
        include_replaced=include_replaced,
        now=ctx.now,
        narrow=bool(kinds),
    )


def search(ctx: Context, query: Question, which: Filter) -> list[Match]:
    """All sources together, the best first."""
    matches = [*_entries(ctx, query, which), *_outputs(ctx, query, which)]
    if not matches or query.last_session:
        matches += _newest(ctx, query, which, {match.document.key for match in matches})
    ranked = sorted(matches, key=lambda match: (-match.scored.score, -match.document.updated_at, match.document.key))
    return newest_first(ranked, query)


def newest_first(matches: list[Match], query: Question) -> list[Match]:
    """Of two notes or memories about the same, the newer comes first: a correction outranks what it corrects. A
    question about a time is about what was true then."""
    if query.when != question.When():
        return matches
    says = rank.speakers({match.document.doc: match.document for match in matches})
    facts = {
        at: match.entry
        for at, match in enumerate(matches[:FACTS_ORDERED])
        # A turn corrects no other turn.
        if match.entry is not None and match.entry.kind in (NOTE, MEMORY) and not says.get(match.document.doc)
    }
    texts = [(matches[at].text, corrections.weighty_since(entry)) for at, entry in facts.items()]
    order = corrections.in_order(texts, " ".join(query.words))
    ordered, places = list(matches), list(facts)
    for at, number in zip(places, order, strict=True):  # the scores stay in order
        moved = matches[places[number]]
        ordered[at] = moved._replace(scored=moved.scored._replace(score=matches[at].scored.score))
    return ordered


def _newest(ctx: Context, query: Question, which: Filter, besides: set[str]) -> list[Match]:
    """The newest handoff for a question about the last session, and of kinds that were asked for by name what there
    is: a handoff seldom says that it is one."""
    kinds = tuple(kind for kind in which.kinds if kind in STANDING) if which.narrow else ()
    kinds = kinds or (tuple({HANDOFF}.intersection(which.kinds)) if query.last_session else ())
    if not kinds:
        return []
    page = ctx.store.entries.list(ctx.scope, Listing(kinds, include_done=True, limit=NEWEST_SHOWN))
    matches = []
    for place, entry in enumerate(page.entries):
        document = _document(entry)
        if entry.key not in besides and which.wants(document):
            scored = Scored(0, NEWEST_SCORE - place, {"newest": NEWEST_SCORE - place}, 0)
            matches.append(Match(document, scored, entry.content, (), entry))
    return matches


def _document(entry: Entry) -> Document:
    flags = entry.done, entry.pinned, entry.origin, entry.created_at, entry.updated_at
    size = len(entry.content.encode())
    return Document(0, entry.kind, entry.key, entry.session, entry.content[:48], size, entry.tags, *flags)


def _candidate_query(
    query: Question, which: Filter, pool: int = limits.RECALL_POOL, nominated: tuple[int, ...] = ()
) -> CandidateQuery:
    bounds = pool, limits.RECALL_COMMON, nominated, limits.RECALL_FOLLOWED
    return CandidateQuery(query.words, query.literals, rank.first, which.wants, rank.around, *bounds)


def _entries(ctx: Context, query: Question, which: Filter, pool: int = limits.RECALL_POOL) -> list[Match]:
    kinds = tuple(kind for kind in which.kinds if kind != OUTPUT)
    if not kinds:
        return []
    kinds += (FOLD,) if MESSAGE in kinds else ()
    # Related entries in a search for words are found by words too.
    by_meaning = ctx.bounds.recall.meaning and pool == limits.RECALL_POOL
    by_meaning = by_meaning and not all(map(analyse.is_atom, query.words))  # characters, of which no model knows much
    sense = (
        embeddings.compare(ctx.embeddings, ctx.store, ctx.scope, query.text) if by_meaning and ctx.embeddings else None
    )
    nominated = sense.nearest(query.words[: len(query.words) - len(query.joined)], rank.NOMINATED) if sense else ()
    candidates = ctx.store.entries.candidates(ctx.scope, kinds, _candidate_query(query, which, pool, tuple(nominated)))
    candidates = _written_apart(ctx, kinds, which, query, candidates)
    entries: dict[int, Entry] = {}
    links: list[Linked] = []

    def read(docs: list[int]) -> Mapping[int, str]:
        best = docs[: pool // 2]
        entries.update(ctx.store.entries.texts(ctx.scope, [doc for doc in best if doc not in entries]))
        return {doc: entries[doc].content for doc in best if doc in entries}

    def link(names: Mapping[int, Sequence[str]]) -> Linked | None:
        if linked := _linked(ctx, kinds, which, candidates, names):
            links.append(linked)
        return linked

    matches = []
    for scored in rank.order(query, candidates, read, sense, link if pool == limits.RECALL_POOL else None):
        entry = entries[scored.doc]
        ranked, led_by = (links[0].candidates, links[0].names.get(scored.doc, "")) if links else (candidates, "")
        words = _words(query, ranked, scored)
        matches.append(Match(ranked.documents[scored.doc], scored, entry.content, words, entry, led_by))
    return _as_edited(ctx, matches, which) if MESSAGE in kinds else matches


def _as_edited(ctx: Context, matches: list[Match], which: Filter) -> list[Match]:
    """Without messages in whose place somebody said another thing, or with these marked."""
    if not any(match.document.kind in (MESSAGE, FOLD) for match in matches):
        return matches
    edited = edits.read(ctx)
    settled = []
    for match in matches:
        document, entry = match.document, match.entry
        if entry and document.kind == FOLD:
            stands_for = document._replace(kind=MESSAGE, key=edits.message_key(entry))
            settled.append(match._replace(document=stands_for))
        elif entry and document.kind == MESSAGE and (by := edited.replacement(entry)):
            settled += [match._replace(replaced_by=by)] if which.include_replaced else []
        else:
            settled.append(match)
    return settled


def _written_apart(
    ctx: Context, kinds: tuple[str, ...], which: Filter, query: Question, candidates: Candidates
) -> Candidates:
    """The candidates and, for words that no text holds, the texts that write them as two: `dataframe`, `data frame`."""
    unknown = [at for at, count in enumerate(candidates.counts) if not count and at not in query.joined]
    splits = {at: halves for at in unknown[:SPLIT_MOST] if (halves := question.halves(query.words[at]))}
    every = tuple(dict.fromkeys(half for halves in splits.values() for pair in halves for half in pair))
    if not every:
        return candidates
    bounds = limits.RECALL_POOL, limits.RECALL_COMMON, (), 0, True
    look_up = CandidateQuery(every, (), rank.first, which.wants, lambda document: 0, *bounds)
    holding = ctx.store.entries.candidates(ctx.scope, kinds, look_up)
    places = dict(zip(every, holding.positions, strict=True))
    positions, counts = list(candidates.positions), list(candidates.counts)
    for at, halves in splits.items():
        side_by_side: dict[int, tuple[int, ...]] = {}
        for first, second in halves:
            for doc in holding.documents.keys() & places[first].keys() & places[second].keys():
                behind = places[second][doc]
                if together := tuple(place for place in places[first][doc] if place >= 0 and place + 1 in behind):
                    side_by_side[doc] = together
        positions[at], counts[at] = side_by_side, len(side_by_side)
    found = {doc for at in splits for doc in positions[at] if doc in holding.docs}
    documents = {**{doc: holding.documents[doc] for doc in found}, **candidates.documents}
    docs = tuple(dict.fromkeys((*candidates.docs, *sorted(found))))
    return candidates._replace(positions=tuple(positions), counts=tuple(counts), docs=docs, documents=documents)


def _linked(
    ctx: Context, kinds: tuple[str, ...], which: Filter, candidates: Candidates, names: Mapping[int, Sequence[str]]
) -> Linked | None:
    """The candidates and the texts that rare names in the best of them lead to."""
    every = tuple(dict.fromkeys(name for of_text in names.values() for name in of_text))
    if not every:
        return None
    bounds = rank.HOP_MOST, rank.HOP_TEXTS, (), 0, True
    query = CandidateQuery(every, (), rank.first, which.wants, lambda document: 0, *bounds)
    holding = ctx.store.entries.candidates(ctx.scope, kinds, query)
    accepted = frozenset(holding.docs)
    leads: dict[int, str] = {}
    for name, places in zip(every, holding.positions, strict=True):
        if 1 < len(places) <= rank.HOP_TEXTS:
            sources = {doc for doc, of_text in names.items() if name in of_text}
            for doc in accepted.intersection(places) - (sources if len(sources) == 1 else set()):
                leads.setdefault(doc, name)
    if not leads:
        return None
    fresh = tuple(doc for doc in leads if doc not in candidates.documents)
    documents = {**candidates.documents, **{doc: holding.documents[doc] for doc in fresh}}
    docs = dict.fromkeys((*candidates.docs, *leads))
    return Linked(candidates._replace(docs=tuple(docs), documents=documents), leads)


def _catch_up(ctx: Context, which: Filter) -> int:
    """Index the outputs stored since the last question, as far as there is time for it. Returns how many remain."""
    if not which.outputs:
        return 0
    try:
        return ctx.store.outputs.index(ctx.scope, limits.OUTPUT_CATCH_UP_BYTES)
    except errors.UNWRITABLE:  # indexed outputs can still be found
        return ctx.store.outputs.index(ctx.scope, 0)


def _outputs(ctx: Context, query: Question, which: Filter) -> list[Match]:
    """Outputs, each by its best piece."""
    if not which.outputs:
        return []
    candidates = ctx.store.outputs.candidates(ctx.scope, _candidate_query(query, which))
    texts: dict[int, str] = {}

    def read(docs: list[int]) -> Mapping[int, str]:
        for document in map(candidates.documents.__getitem__, docs[:PIECES_READ]):
            try:
                body = ctx.store.outputs.read_bytes(
                    ctx.scope, document.key, document.start, document.start + document.size
                )
            except errors.NotFound:
                continue  # pruned in the meantime
            texts[document.doc] = body.decode("utf-8", "replace")
        return texts

    best: dict[str, Match] = {}
    for scored in rank.order(query, candidates, read):
        document = candidates.documents[scored.doc]
        lower = scored._replace(score=OUTPUT_SHARE * scored.score)
        match = Match(document, lower, texts[scored.doc], _words(query, candidates, scored))
        top = best.setdefault(document.key, match)
        # The first piece is also found by the words of the preview, which shows what matters of the others. What is
        # shown is the piece that has them.
        if top is not match and top.document.start == 0 and _words_in_text(match) > _words_in_text(top):
            as_good = lower._replace(score=top.scored.score, fits=top.scored.fits)
            both = tuple(dict.fromkeys((*match.words, *top.words)))
            best[document.key] = match._replace(scored=as_good, words=both)
    return list(best.values())


def _words_in_text(match: Match) -> int:
    """How many of the words of a match its text itself holds."""
    return len(set(analyse.terms([*match.words])).intersection(analyse.terms(analyse.index_words(match.text))))


def _words(query: Question, candidates: Candidates, scored: Scored) -> tuple[str, ...]:
    """The words of the question that occur in a text."""
    pairs = zip(query.words, candidates.positions, strict=True)
    return tuple(word for word, places in pairs if scored.doc in places)


# --- the answer -------------------------------------------------------------------------------------------------------


def _nearest(match: Match) -> str:
    """One match in one line, for an answer without any."""
    cut = snippet(match.text, match.words, match.scored.at, NEAREST_WORDS)
    label = f"{brief.DATA} " if trust(match.document) == "data" else ""
    return f"{match.document.kind} {match.document.key}: {label}{' '.join(cut.text.split())}"


def _fitted(query: str, matches: list[Match], strong: list[Match], limit: int, budget: int) -> Recalled:
    """The best matches within the budget: with shorter snippets first, then with fewer of them."""
    best = matches[0].scored.score if matches else 0.0
    strong = strong[: 2 * limit]
    groups: dict[int, list[Match]] = {}
    for at, first in enumerate(first_of_each([match.text for match in strong])):
        groups.setdefault(first, []).append(strong[at])
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
    included = sum(len(group) for group in chosen[: len(hits)])
    return Recalled(query, tuple(hits), len(matches) - included)


def _strong(matches: list[Match]) -> list[Match]:
    """Without matches that are weak beside the best. Outputs have no embeddings: they are compared by words alone."""
    if not matches:
        return []
    best = matches[0].scored
    score = best.score - best.parts.get("literal", 0.0)  # what is as written comes first, the rest is compared as ever
    by_words = score - sum(best.parts.get(name, 0.0) for name in BY_MEANING)
    return [
        match  # what a name led to shares that name with the best, and often nothing else
        for match in matches
        if match.led_by or match.scored.score >= WEAK * (score if match.entry else by_words)
    ]


def _cost(hit: Hit) -> int:
    return HIT_TOKENS + tokens.count(hit.snippet)


def _hit(group: list[Match], best: float, words: int) -> Hit:
    """The newest of the matches with the same text represents them all, at the position of the best of them. What came
    from elsewhere represents nothing that people or agents wrote."""
    newest = max(
        group, key=lambda match: (trust(match.document) != "data", match.document.updated_at, match.document.key)
    )
    others = [match for match in group if match is not newest]
    document, parts = newest.document, group[0].scored.parts
    cut = snippet(newest.text, newest.words, newest.scored.at, words)
    about = parts.get("about", 0) > 0 and not parts.get("words")
    plain = "about the same" if about else "beside a hit" if "newest" not in parts else "the newest of its kind"
    why = [f"words: {', '.join(newest.words)}"] if newest.words else [plain]
    why += [f"named in a hit: {group[0].led_by}"] if group[0].led_by else []
    why += [reason for name, reason in _REASONS.items() if parts.get(name, 0) > 0 and name != "pinned"]
    state = (
        "replaced"
        if newest.replaced_by
        else "done"
        if document.done and document.kind == NOTE
        else "used"
        if document.done
        else "pinned"
        if document.pinned
        else ""
    )
    return Hit(
        document.kind,
        document.key,
        cut.text,
        document.line + cut.line - 1,
        cut.complete and document.kind != OUTPUT,
        round(group[0].scored.score / best, 2) if best else 0.0,
        tuple(why),
        document.session,
        document.tags,
        document.origin,
        trust(document),
        state,
        document.updated_at,
        tuple(match.document.key for match in others if match.text == newest.text),
        tuple(match.document.key for match in others if match.text != newest.text),
        cut.plain,
        replaced_by=newest.replaced_by,
    )


def labelled(ctx: Context, answer: Recalled, matches: Sequence[Match]) -> Recalled:
    """The answer, with what one look at the cited files shows, and with what no longer holds marked so."""
    entries = {(match.document.kind, match.document.key): match.entry for match in matches}
    read = anchors.reader(ctx.root) if os.path.isdir(ctx.root) else None

    def label(hit: Hit) -> Hit:
        entry = entries.get((hit.kind, hit.key))
        if entry is None or not entry.extra:
            return hit
        validity = Validity.of(entry.extra)
        source = anchors.decision_source(entry, read) if hit.kind == JOURNAL else None
        source = source or anchors.worst(anchors.looks(ctx, validity.anchors, read))
        by = validity.replaced_by.key if validity.replaced_by else hit.replaced_by
        state = "replaced" if by else "expired" if validity.expired(ctx.now) else hit.state
        corrected = handoff.corrected_since(ctx, as_handoff(entry)) if hit.kind == HANDOFF else ()
        corrected_in = tuple(f"{later.kind} {later.key}" for later in corrected)
        return hit._replace(source=source, replaced_by=by, state=state, corrected_in=corrected_in)

    return answer._replace(hits=tuple(map(label, answer.hits)))


def trust(document: Document) -> str:
    """The provenance that counts: texts that people and agents wrote here are theirs, everything else is data.

    A message of a conversation is data too: it may be a tool's, or quote one.
    """
    return document.origin if document.origin in ("agent", "person") and document.kind != MESSAGE else "data"


def _kinds(names: tuple[str, ...]) -> tuple[str, ...]:
    singular = {kind: kind for kind in CHOICES.values()}  # as a hit names its kind
    for name in names:
        if name not in CHOICES and name not in singular:
            raise errors.not_one_of("recall", "kinds", name, tuple(CHOICES))
    return tuple(dict.fromkeys((singular | CHOICES)[name] for name in names)) or tuple(CHOICES.values())


def moment_of(what: str, text: str, now: int) -> int:
    """A day, a time, or an age counted back from now."""
    value = text.strip()
    if age := _AGE.fullmatch(value):
        return now - int(age[1]) * _AGE_MS[age[2]]
    try:
        # A day or time without a zone is in UTC, as all times in answers are.
        if not re.search(r"(?:Z|[+-]\d\d:?\d\d)$", value[10:]):
            value += ("T00:00" if len(value) == 10 else "") + "Z"
        return milliseconds(value)
    except (ValueError, OverflowError):
        rule = "write a day (2026-03-02), a time (2026-03-02T10:15:00Z) or an age (12h, 7d, 2w)"
        raise errors.bad_name(what, text, rule) from None


def hit_json(hit: Hit) -> Json:
    record: Json = {"kind": hit.kind, "id": hit.key, "text": hit.snippet, "score": hit.score, "why": list(hit.why)}
    if not hit.whole:
        record |= {"line": hit.line, "cut": True}
    extra = {
        "session": hit.session,
        "tags": list(hit.tags),
        "state": hit.state,
        "same": list(hit.same),
        "layer": hit.layer,
        "corrected_in": list(hit.corrected_in),
    }
    extra |= {"replaces": list(hit.replaces)}
    extra |= {"replaced_by": hit.replaced_by} | anchors.look_json(hit.source)
    record |= {name: value for name, value in extra.items() if value}
    return record | {"updated_at": iso(hit.updated_at), "from": hit.origin, "trust": hit.trust}


def recalled_json(value: Recalled) -> Json:
    answer: Json = {"hits": [hit_json(hit) for hit in value.hits], "hit_count": len(value.hits), "query": value.query}
    answer |= {"left_out": value.left_out} if value.left_out else {}
    if value.nearest:
        answer["nothing_fits"] = f"{NOTHING_FITS} Nearest: {value.nearest}"
    answer |= {"hint": value.hint} if value.hint else {}
    if value.not_embedded:
        answer |= {"not_embedded": {"texts": value.not_embedded, "why": NOT_EMBEDDED}}
    return answer | ({"not_searched": {"outputs": value.waiting, "why": WAITING}} if value.waiting else {})


_STATES = ("done", "used", "replaced", "expired")  # of a hit; that it is pinned tells a model nothing


def hit_lines(ctx: Context, hits: Sequence[Hit]) -> tuple[list[str], str]:
    """A line per hit, and what is the same of all, for the closing line."""
    kinds = {hit.kind for hit in hits}
    ids = {
        kind: short_ids(ctx, kind, [key for hit in hits if hit.kind == kind for key in (hit.key, *hit.replaces)])
        for kind in kinds
    }
    ages, of_all = brief.ages((hit.updated_at for hit in hits), ctx.now)
    return [_hit_line(ctx, ids[hit.kind], age, hit) for hit, age in zip(hits, ages, strict=True)], of_all


def _hit_line(ctx: Context, ids: Mapping[str, str], age: str, hit: Hit) -> str:
    name = ids[hit.key] if hit.kind in LETTERS else _hit_name(ctx, hit)
    place = f"line {hit.line}" if not hit.whole and hit.line > 1 else ""
    older = f"replaces {', '.join(ids[key] for key in hit.replaces)}" if hit.replaces else ""
    state = hit.state if hit.state in _STATES else ""
    if state == "replaced" and hit.kind in (NOTE, MEMORY):
        state += f" by {as_name(short_id(ctx, NOTE, hit.replaced_by))}"
    origin = hit.origin if hit.trust != "data" else TOOL
    source = anchors.label(hit.source)
    corrected = f"corrected since in {', '.join(map(as_name, hit.corrected_in))}" if hit.corrected_in else ""
    about = (name, hit.layer, age, state, place, older, corrected, brief.tagged(hit.tags), source)
    return brief.item(about, hit.plain, origin)


def _hit_name(ctx: Context, hit: Hit) -> str:
    """What a model can name the text by. Notepads and messages of other sessions it cannot ask for."""
    if hit.kind in (NOTEPAD, SCRATCHPAD, MESSAGE):
        mine = hit.session == ctx.session
        position = f" {int(hit.key.rpartition('#')[2])}" if hit.kind == MESSAGE and mine else ""
        return f"{hit.kind}{position}{'' if mine else ' elsewhere'}"
    return f"{hit.kind} {as_name(hit.key)}"


def recalled_text(ctx: Context, value: Recalled) -> str:
    lines, of_all = hit_lines(ctx, value.hits)
    if value.nearest:
        return f"Nothing fits. Nearest: {as_name(value.nearest)}\nmore=true shows the weak matches."
    closing = f"{brief.counted(len(value.hits), 'hit')}{of_all}" if value.hits else "Nothing was found"
    if value.left_out:
        closing += f", {value.left_out:,} weaker left out"
    if value.waiting:
        closing += f"; {brief.counted(value.waiting, 'output')} not searched: {WAITING}"
    if value.not_embedded:
        closing += f"; {brief.counted(value.not_embedded, 'text')} searched by words alone, not embedded yet"
    return brief.lines(lines, f"{closing.rstrip('.')}. {value.hint}".rstrip())
