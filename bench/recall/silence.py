"""Is recall silent where nothing fits? Twelve sets, each with 25 questions that have an answer and 25 that have none.

Conversations of LoCoMo are asked their own questions and those about other people; histories about what their user said
and what another user said; documents for words of a sentence, 60 % of them, and for those of documents not in them.
`--silence` needs `--histories` and `--multihop` as well as LoCoMo. Even sets are to tune with, odd ones to report.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.measure import table
from bench.recall.sets import Query, Set, Unit
from limpet.recall.question import STOP

EACH, PARTS = 25, 4  # questions of a kind in a set, and sets of each part
SHARE = 0.6  # of the words of a sentence that are asked for
PLAIN = ("single-hop", "temporal")  # types of LoCoMo whose questions say what they want
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
NONE = "none"  # the type of a question without an answer


class Silence(NamedTuple):
    asked: int
    silent: float  # share of the questions without an answer that get none
    kept: float  # R@10 of the others
    uncut: float  # the same with `more`


def sets(locomo: list[Set], histories: list[Set], documents: list[Set]) -> list[Set]:
    parts = [(locomo, _own_questions), (histories, _what_was_said), (documents, _words_of_sentences)]
    return [
        _mixed(chosen[at], chosen[(at + 2) % len(chosen)], ask)
        for first in range(0, PARTS, 2)
        for chosen, ask in parts
        for at in (first, first + 1)  # even ones are to tune with
    ]


def _mixed(one: Set, foreign: Set, ask: Callable[[Set, random.Random], list[Query]]) -> Set:
    """One set with its own questions and those of another one of the same kind."""
    dice = random.Random(f"silence {one.name} {foreign.name}")
    shared = {unit.text for unit in one.units}
    elsewhere = foreign._replace(units=[unit for unit in foreign.units if unit.text not in shared])
    wrong = [query._replace(evidence=frozenset(), type=NONE) for query in ask(elsewhere, dice)]
    return Set(f"silence-{one.name}", one.units, [*ask(one, dice)[:EACH], *wrong[:EACH]])


def _own_questions(one: Set, dice: random.Random) -> list[Query]:
    plain = [query for query in one.queries if query.type in PLAIN]
    return dice.sample(plain, min(EACH, len(plain)))


def _what_was_said(one: Set, dice: random.Random) -> list[Query]:
    own = [unit for unit in one.units if unit.speaker == "user" and len(_telling(unit.text)) >= 12]
    return [_asked("What did I say about {}?", unit, dice) for unit in dice.sample(own, EACH)]


def _words_of_sentences(one: Set, dice: random.Random) -> list[Query]:
    return [_asked("{}", unit, dice) for unit in dice.sample(one.units, EACH)]


def _asked(form: str, unit: Unit, dice: random.Random) -> Query:
    sentences = [part for part in _SENTENCE.split(unit.text) if len(_telling(part)) >= 6] or [unit.text]
    words = dice.choice(sentences).split()[:24]
    chosen = [word for word in words if dice.random() < SHARE]
    return Query(form.format(" ".join(chosen)), frozenset((unit.id,)), "answer")


def _telling(text: str) -> list[str]:
    return [word for word in re.findall(r"[a-z]{3,}", text.lower()) if word not in STOP]


def measured(chosen: Sequence[Set], ask: Callable[[Set], Callable[[str, bool], list[str]]]) -> Silence:
    """`ask` opens a set; what it returns answers a question, with or without the cut."""
    silent, kept, uncut = [], [], []
    for one in chosen:
        answer = ask(one)
        for query in one.queries:
            shown = answer(query.query, False)[:10]
            if query.type == NONE:
                silent.append(not shown)
                continue
            every = answer(query.query, True)[:10]
            kept.append(len(query.evidence.intersection(shown)) / len(query.evidence))
            uncut.append(len(query.evidence.intersection(every)) / len(query.evidence))
    return Silence(len(silent) + len(kept), _mean(silent), _mean(kept), _mean(uncut))


def together(parts: Sequence[Silence]) -> Silence:
    """All parts as one; each has as many questions with an answer as without."""
    weights = [part.asked for part in parts]
    shares = [
        sum(part[at] * weight for part, weight in zip(parts, weights, strict=True)) / (sum(weights) or 1)
        for at in (1, 2, 3)
    ]
    return Silence(sum(weights), *shares)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / (len(values) or 1)


def show(title: str, rows: list[tuple[str, Silence]]) -> None:
    heads = (
        "part",
        "questions",
        "silent without an answer",
        "R@10 with one",
        "the same with more=true",
        "lost, points",
    )
    lines = [
        [name, str(s.asked), f"{s.silent:.1%}", f"{s.kept:.3f}", f"{s.uncut:.3f}", f"{100 * (s.uncut - s.kept):.1f}"]
        for name, s in rows
    ]
    table(title, heads, lines)
