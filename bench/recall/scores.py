"""What a ranking is worth: shares of the evidence found, and how far up."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import NamedTuple

from bench.recall.sets import Query

CUTS = (1, 5, 10, 20)


class Score(NamedTuple):
    recall: tuple[float, ...]  # at each of CUTS
    every: float  # whether all evidence is in the first ten
    reciprocal: float  # of the rank of the first evidence
    gain: float  # nDCG@10
    type: str


def score(asked: Query, ranked: Sequence[str]) -> Score:
    hits = [id in asked.evidence for id in ranked]
    recall = tuple(sum(hits[:cut]) / len(asked.evidence) for cut in CUTS)
    first = next((1 / rank for rank, hit in enumerate(hits, 1) if hit), 0.0)
    best = sum(1 / log2(rank + 1) for rank in range(1, min(10, len(asked.evidence)) + 1))
    gain = sum(hit / log2(rank + 1) for rank, hit in enumerate(hits[:10], 1)) / best
    return Score(recall, float(sum(hits[:10]) == len(asked.evidence)), first, gain, asked.type)


def line(scores: Sequence[Score]) -> list[str]:
    count = len(scores) or 1
    recall = [sum(one.recall[at] for one in scores) / count for at in range(len(CUTS))]
    rest = [sum(getattr(one, name) for one in scores) / count for name in ("every", "reciprocal", "gain")]
    return [f"{value:.3f}" for value in (*recall, *rest)]


def ten(scores: Sequence[Score]) -> float:
    return sum(one.recall[2] for one in scores) / (len(scores) or 1)
