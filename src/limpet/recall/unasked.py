"""Unasked recall: what clearly fits a prompt and still holds, shown before the model answers. Silence is the rule.

A prompt is no question: it names many things, and most projects know nothing of them. So a text has to share several
words with the prompt, of which some are rare in the project, and they have to be much of what the text itself says.
Rare means that few of the project's texts have the word. An identifier that the prompt spells out counts for more. A
text whose name the prompt says fits too: names.py says what a text is called.

Nothing is shown that is done, replaced, expired, from outside, or whose source has changed; and nothing twice in a
session. What was shown is remembered without waiting for the disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import log

from limpet import errors, limits
from limpet.catalogue.late import LateModule
from limpet.catalogue.operation import Context
from limpet.light import TYPE_CHECKING, re
from limpet.model import JOURNAL, MEMORY, NOTE, Entry, Validity, trusted, written_at
from limpet.recall import names, question, rank
from limpet.recall.question import STOP, Question
from limpet.recall.recall import Filter
from limpet.record import NamedTuple
from limpet.store import CandidateQuery, Candidates
from limpet.text import tokens
from limpet.text import words as analyse
from limpet.text.safe import as_data, as_name

if TYPE_CHECKING:
    from limpet.memory import anchors, corrections
else:  # most prompts find nothing that fits
    anchors, corrections = LateModule("memory.anchors"), LateModule("memory.corrections")

KINDS = (MEMORY, NOTE, JOURNAL)
HEADING = "From earlier work in this project, recalled for this prompt (what is said in the conversation comes first):"
USE_PREFIX = "shown in "  # before the session's name: the use that is counted
POOL = 30  # texts that are looked at closely
PROMPT_CHARS = 1_200  # of a prompt; what is pasted behind it is no subject
TEXT_WORDS = 40  # of a text, in which its subject is named
LEAST_WORDS = 2  # that a text shares with the prompt
LEAST_RARITY = 1.15  # of the shared words together; a word that one text alone has counts 1
LEAST_SHARE = 0.2  # of a text's own words
LEAST_SHARE_TAGGED = 0.4  # of a note with tags: they say what it is about, and the prompt says none of them
LEAST_OF_PROMPT = 0.25  # of the rarity of the prompt's words that the project knows
AMONG = 0.75  # of the best that another one has to reach
_IDENTIFIER = re.compile(r"[A-Za-z][\w-]*[._/][\w./-]*\w|[A-Za-z]+[_\d]\w*|[a-z]+[A-Z]\w+")


class Fit(NamedTuple):
    """How well a text fits a prompt."""

    entry: Entry
    rarity: float  # of the words that both have
    share: float  # of the text's own words
    of_prompt: float  # of what the prompt names and the project knows
    words: int
    identifier: bool  # whether the text has an identifier that the prompt spells out
    named: bool  # whether the prompt says its name

    @property
    def clear(self) -> bool:
        if self.named:
            return True
        if self.identifier:
            return self.share >= LEAST_SHARE / 2
        least = LEAST_SHARE_TAGGED if self.entry.tags else LEAST_SHARE
        enough = self.words >= LEAST_WORDS and self.rarity >= LEAST_RARITY
        return enough and self.share >= least and self.of_prompt >= LEAST_OF_PROMPT


class Unasked(NamedTuple):
    text: str = ""  # empty: silence
    entries: tuple[Entry, ...] = ()


SILENCE = Unasked()


def unasked(
    ctx: Context, prompt: str, context: str = "", is_known: Callable[[Entry], bool] = lambda entry: False
) -> Unasked:
    """What to show before a prompt is answered. `context` is what the model has before it already; `is_known` says so
    of an entry."""
    text = prompt.strip()[:PROMPT_CHARS]
    if not ctx.bounds.recall.unasked or not text:
        return SILENCE
    chosen: list[Entry] = []
    for fit in fits(ctx, text):
        if len(chosen) == limits.UNASKED_ENTRIES:
            break
        is_new = fit.entry.content[:80] not in context and not is_known(fit.entry)
        if is_new and _holds(ctx, fit.entry) and not _was_shown(ctx, fit.entry):
            chosen.append(fit.entry)
    return _fitted(chosen)


def record_shown(ctx: Context, answer: Unasked) -> None:
    """Remember what this session was shown. A store that cannot be written does not keep a session from reading."""
    with suppress(*errors.UNWRITABLE):
        for entry in answer.entries:
            ctx.store.calls.record_use(ctx.scope, entry.kind, entry.key, f"{USE_PREFIX}{ctx.session}", ctx.now)


def _was_shown(ctx: Context, entry: Entry) -> bool:
    own = f"{USE_PREFIX}{ctx.session}"
    by_session = entry.session == ctx.session  # what it wrote itself, it knows
    return by_session or any(use.what == own for use in ctx.store.calls.uses(ctx.scope, entry.kind, entry.key))


def _holds(ctx: Context, entry: Entry) -> bool:
    """Whether its source, if it cites one, still says so."""
    read = anchors.reader(ctx.root) if os.path.isdir(ctx.root) else None
    look = anchors.worst(anchors.looks(ctx, Validity.of(entry.extra).anchors, read))
    if entry.kind == JOURNAL:
        look = anchors.decision_source(entry, read)
    return look is None or look.holds


def _fitted(entries: Sequence[Entry]) -> Unasked:
    """The entries as lines within the budget."""
    lines, chosen = [HEADING], []
    room = limits.UNASKED_TOKENS - tokens.count(HEADING)
    for entry in entries:
        text, cut = tokens.cut(" ".join(entry.content.split()), limits.UNASKED_ENTRY_TOKENS)
        line = f"- {entry.kind} {as_name(entry.key)}: {as_data(text, entry.origin)}{' […]' if cut else ''}"
        cost = tokens.count(line) + 1
        if cost <= room:
            room -= cost
            lines.append(line)
            chosen.append(entry)
    return Unasked("\n".join(lines), tuple(chosen)) if chosen else SILENCE


# --- what fits --------------------------------------------------------------------------------------------------------


def fits(ctx: Context, prompt: str) -> list[Fit]:
    """The texts that clearly fit, the best first; of two about the same the newer."""
    query = question.read(prompt, ctx.now)
    if not query.words:
        return []
    which = Filter(KINDS, frozenset(), None, None, None, "", include_done=False, now=ctx.now)
    search = CandidateQuery(
        query.words, query.literals, rank.first, which.wants, lambda document: 0, POOL, limits.RECALL_COMMON
    )
    candidates = ctx.store.entries.candidates(ctx.scope, KINDS, search)
    docs = [doc for doc in candidates.docs[:POOL] if trusted(candidates.documents[doc].origin)]
    rarities = _rarities(query, candidates)
    spelled = {word for name in _IDENTIFIER.findall(prompt) for word in [analyse.fold(name)]}
    every = [_fit(entry, doc, candidates, rarities, spelled) for doc, entry in _texts(ctx, docs).items()]
    unknown = [word for word, count in zip(query.words, candidates.counts, strict=True) if not count]
    every = _named(ctx, every, prompt, unknown)
    clear = sorted(
        (fit for fit in every if fit.clear), key=lambda fit: (not fit.named, -fit.rarity, -written_at(fit.entry))
    )
    best = max((fit.rarity for fit in clear), default=0.0)
    clear = [fit for fit in clear if fit.named or fit.rarity >= AMONG * best]
    order = corrections.in_order([(fit.entry.content, written_at(fit.entry)) for fit in clear], prompt)
    return [clear[at] for at in order]


def _named(ctx: Context, every: Sequence[Fit], prompt: str, unknown: Sequence[str]) -> list[Fit]:
    """The same texts, those marked that the prompt names; with them what it names with a slip of the pen."""
    by_name = names.called(prompt, [fit.entry for fit in every])
    meant = {entry.key: entry for entry in names.meant(ctx, prompt, unknown) if entry.key not in by_name}
    fits = [fit._replace(named=fit.entry.key in by_name) for fit in every if fit.entry.key not in meant]
    return fits + [Fit(entry, 0.0, 0.0, 0.0, 0, False, True) for entry in meant.values()]


def _texts(ctx: Context, docs: Sequence[int]) -> Mapping[int, Entry]:
    return ctx.store.entries.texts(ctx.scope, docs) if docs else {}


def _rarities(query: Question, candidates: Candidates) -> list[float]:
    """How rare each word of the prompt is in the project: 1 where a single text has it, 0 where all have it."""
    total = max(candidates.total, limits.UNASKED_SMALL)
    return [
        0.0 if not count or word in STOP else max(0.0, log((total + 1) / count) / log(total + 1))
        for word, count in zip(query.words, candidates.counts, strict=True)
    ]


def _fit(entry: Entry, doc: int, candidates: Candidates, rarities: Sequence[float], spelled: set[str]) -> Fit:
    shared = [at for at, places in enumerate(candidates.positions) if doc in places and rarities[at] > 0]
    rarity, of_all = sum(rarities[at] for at in shared), sum(rarities)
    text = f"{entry.key}\n{entry.content}" if entry.kind == MEMORY else entry.content
    folded = analyse.fold(text)
    own = {word for word in analyse.whole_words(folded)[:TEXT_WORDS] if word not in STOP}
    share = len(shared) / max(1, min(len(own), TEXT_WORDS))
    identifier = any(name in folded for name in spelled)
    return Fit(entry, rarity, share, rarity / of_all if of_all else 0.0, len(shared), identifier, False)
