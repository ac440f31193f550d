"""Is recall silent where nothing fits? 600 questions with an answer and 600 without, in seven parts.

Each half (`--half`) has 300 of both. What is asked about is there or not:

people      LoCoMo's own questions, and those about people of another conversation
attributes  the same, with one of this conversation's people named instead: what is asked was never told about them
histories   what their user said, and what another user said
documents   some words of a sentence, and of a sentence of documents of the same project that are not in the set
things      a name in the documents with words beside it, and a name that they do not hold
commits     subjects of commits whose diffs are in the set, and of those that were left out
functions   first sentences of docstrings of functions that are in the set, and of those that were left out

`--silence` needs `--histories`, `--multihop` and four repositories as `--commits`, as well as LoCoMo.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.measure import table
from bench.recall import multihop
from bench.recall.sets import Query, Set, Unit
from limpet.recall.question import STOP

EACH = 25  # questions of a kind in a set
SHARE = 0.6  # of the words of a sentence that are asked for
BESIDE = 3  # words beside a name that are asked for
HOLDING = 5  # texts that hold such a name, at most
PLAIN = ("single-hop", "temporal")  # types of LoCoMo whose questions say what they want
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w+")
NONE = "none"  # the type of a question without an answer
Ask = Callable[[Set, random.Random], list[Query]]


class Silence(NamedTuple):
    asked: int
    silent: float  # share of the questions without an answer that get none
    kept: float  # R@10 of the others
    uncut: float  # the same with `more`


class Texts(NamedTuple):
    """The sets that questions are made of."""

    locomo: list[Set]
    histories: list[Set]
    documents: list[Set]
    commits: list[Set]
    functions: Set


def sets(texts: Texts) -> list[tuple[str, list[Set]]]:
    """By part, its sets: even ones to tune with, odd ones to report."""
    foreign = [
        ("people", texts.locomo[:4], _own_questions, EACH),
        ("attributes", texts.locomo[4:8], _own_questions, EACH),
        ("histories", texts.histories[:4], _what_was_said, EACH),
        ("documents", texts.documents[:4], _words_of_sentences, (EACH + 1) // 2),
        ("things", texts.documents[:4], _named, EACH // 2),
    ]
    parts = [
        (part, [_mixed(part, one, chosen[(at + 2) % 4], ask, each) for at, one in enumerate(chosen)])
        for part, chosen, ask, each in foreign
    ]
    left_out = [("commits", texts.commits[:4], 0), ("functions", [texts.functions] * 2, 1)]
    return parts + [
        (part, [_left_out(one, at % 2, (1 + whole) * EACH) for at, one in enumerate(chosen)])
        for part, chosen, whole in left_out
    ]


def _mixed(part: str, one: Set, foreign: Set, ask: Ask, each: int) -> Set:
    """One set with its own questions and those of another one of the same kind."""
    dice = random.Random(f"silence {part} {one.name} {foreign.name}")
    shared = {unit.text for unit in one.units}
    elsewhere = foreign._replace(units=[unit for unit in foreign.units if unit.text not in shared])
    wrong = [query._replace(evidence=frozenset(), type=NONE) for query in ask(elsewhere, dice)]
    if part == "attributes":
        wrong = _about_others(wrong, one, foreign)
    if part == "things":
        here = {word for unit in one.units for word in _WORD.findall(unit.text)}
        wrong = [query for query in wrong if not here.issuperset(_WORD.findall(query.query.split()[2]))]
    return Set(f"{part}-{one.name}", one.units, [*ask(one, dice)[:each], *wrong[:each]])


def _left_out(one: Set, odd: int, each: int) -> Set:
    """Every second text with its questions, and the questions to the others."""
    dice = random.Random(f"silence {one.name} {odd}")
    units = one.units[odd::2]
    kept = {unit.id for unit in units}
    there = [query._replace(type="answer") for query in one.queries if query.evidence <= kept]
    absent = [query for query in one.queries if kept.isdisjoint(query.evidence)]
    wrong = [query._replace(evidence=frozenset(), type=NONE) for query in absent]
    return Set(f"left-out-{one.name}-{odd}", units, [*dice.sample(there, each), *dice.sample(wrong, each)])


def _about_others(wrong: list[Query], one: Set, foreign: Set) -> list[Query]:
    """The same questions about the people of a conversation instead of those that they are about."""
    people = dict(zip(_speakers(foreign), _speakers(one), strict=True))
    pattern = re.compile("|".join(map(re.escape, people)))
    return [query._replace(query=pattern.sub(lambda name: people[name[0]], query.query)) for query in wrong]


def _speakers(one: Set) -> list[str]:
    return sorted({unit.speaker for unit in one.units})


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


def _named(one: Set, dice: random.Random) -> list[Query]:
    """Every text that holds a name is evidence."""
    queries: list[Query] = []
    for unit in dice.sample(one.units, len(one.units)):
        names = sorted(set(multihop.NAME.findall(unit.text)))
        name = dice.choice(names) if names else ""
        sentence = next((part for part in _SENTENCE.split(unit.text) if name and name in part), "")
        beside = [word for word in dict.fromkeys(_telling(sentence)) if word not in name.lower()]
        if len(beside) < BESIDE + 2:
            continue
        words = " ".join(dice.sample(beside, BESIDE))
        holding = frozenset(other.id for other in one.units if name in other.text)
        if len(holding) <= HOLDING:
            queries.append(Query(f"what about {name} and {words}", holding, "answer"))
    return queries


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
