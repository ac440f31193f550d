"""How well recall finds, beside plain rankers of the same texts: conversations of LoCoMo, and Python's own library.

`python -m bench.recall` has more of it: single signals, other sets, and whether both stores agree.
"""

from __future__ import annotations

from bench.corpus import LOCOMO
from bench.figures import MORE, alone, compare, remark
from bench.measure import Sizes, verdict
from bench.recall import scores, sets, stdlib
from bench.recall.__main__ import EMBED, WHOLE, WORDS, Result, baselines, ours, show, transformer
from bench.recall.sets import Set

# Of the half of LoCoMo that weights are not chosen on.
TEN_WORDS, TEN, EVERY, GAIN, SECONDS = 0.80, 0.83, 0.76, 0.62, 10e-3


def run(sizes: Sizes) -> None:
    if LOCOMO.exists():
        half = sets.locomo(LOCOMO)[1::2]
        _goals(_beside("LoCoMo", half[:1] if sizes.quick else half))
        remark("This half of LoCoMo was looked at while weights were chosen on the other: docs/recall.md says how far.")
    else:
        remark("Not measured: LoCoMo is not there (BENCH_DATA names the folder of public data).")
    if sizes.quick:
        return
    _beside("functions", [stdlib.functions()])
    _beside("docstrings", [stdlib.docstrings()])


def _beside(name: str, chosen: list[Set]) -> dict[str, Result]:
    ways = [*baselines(), (WORDS, ours(meaning=False)), (WHOLE, ours()), *transformer()]
    asked = sum(len(one.queries) for one in chosen)
    found = show(f"{name}, {asked:,} questions", chosen, ways)
    mine = scores.ten(found[WHOLE].scores)
    for other, result in found.items():
        if other not in (WORDS, WHOLE, EMBED):
            theirs = scores.ten(result.scores)
            goal = verdict(theirs - mine, 0, "≥ theirs")
            compare(f"{name}: R@10, {asked:,} questions", mine, other, theirs, goal, show=_three, better=MORE)
    return found


def _goals(found: dict[str, Result]) -> None:
    whole, words = found[WHOLE].scores, found[WORDS].scores
    count = len(whole) or 1
    figures = (
        ("R@10 by words alone", scores.ten(words), TEN_WORDS),
        ("R@10 with meaning", scores.ten(whole), TEN),
        ("all evidence in the first ten", sum(one.every for one in whole) / count, EVERY),
        ("nDCG@10", sum(one.gain for one in whole) / count, GAIN),
    )
    for what, value, least in figures:
        alone(f"LoCoMo: {what}", _three(value), verdict(-value, -least, f"≥ {least:.2f}"))
    each = found[WHOLE].asking / count
    alone("LoCoMo: time of a question", f"{each * 1e3:.1f} ms", verdict(each, SECONDS, f"≤ {SECONDS * 1e3:.0f} ms"))


def _three(value: float) -> str:
    return f"{value:.3f}"
