"""What survives a long session in eight languages, or in a story of your own: `--story FILE`.

Each story is told in a window of 32,000 tokens until 200,000 tokens were said and eight compactions have happened. Each
file has a second set of sentences, `held_out`, for which the cues were not written. What surrounds the facts is made of
a few sentences that come again and again, which a summary can tell from what was said once. So the second set is told
once more with invented words in every one of them, where that does not help. The third, `plain`, has rules and
decisions as people say them in passing ("We go with X for Y because the others were too slow"): nothing but who says
them tells them from other sentences.
"""

from __future__ import annotations

import sys
from pathlib import Path

import limpet
from bench.figures import alone
from bench.measure import OUT, Sizes, table, verdict

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from journeys.story import IN_WINDOW, KINDS, STORIES, Count, Telling, load

LIMIT = 32_000
TOKENS = 200_000
COMPACTIONS = 8
GOAL = 0.95
# The set of sentences and whether what surrounds them varies, with the words for it.
SETS = {
    ("main", False): "",
    ("held_out", False): " (held out)",
    ("held_out", True): " (held out, nothing around it repeats)",
    ("plain", True): " (rules and decisions without a cue, nothing around them repeats)",
}


def run(sizes: Sizes) -> None:
    paths = [sizes.story] if sizes.story else sorted(STORIES.glob("*.toml"))
    for (which, varied), label in SETS.items():
        rows = [row for path in paths if (row := _told(path, which, varied, sizes))]
        heads = ("language", "tokens", "compactions", *KINDS, "in the window", "or one recall away", "last score")
        if rows:
            table(f"Facts in the window + one recall away{label}", heads, rows)


def _told(path: Path, which: str, varied: bool, sizes: Sizes) -> list[str]:
    label = SETS[which, varied]
    try:
        story = load(path, which, varied=varied)
    except KeyError:
        return []  # a story of one's own needs no second set
    with limpet.open(str(OUT / f"{path.stem}-{which}-{varied:d}.db"), project="bench", session=path.stem) as hold:
        telling = Telling(hold.session(), story, limit=LIMIT)
        telling.tell(least_tokens=sizes.pick(TOKENS, 60_000), least_compactions=sizes.pick(COMPACTIONS, 3))
        counts = telling.counts()
    total = Count(*map(sum, zip(*counts.values(), strict=True)))
    kept = verdict(1 - total.kept, 1 - GOAL, f"≥ {GOAL:.0%}")
    alone(f"{story.language}{label}: facts in the window or one recall away", f"{total.kept:.0%}", kept)
    strict = [counts[kind] for kind in IN_WINDOW]
    share = sum(count.in_window for count in strict) / sum(count.planted for count in strict)
    alone(f"{story.language}{label}: rules and decisions in the window", f"{share:.0%}", verdict(1 - share, 0, "100 %"))
    score = telling.compactions[-1].score
    return [
        story.language,
        f"{telling.tokens:,}",
        str(len(telling.compactions)),
        *(f"{count.in_window}+{count.one_recall_away}" for count in counts.values()),
        f"{total.in_window / total.planted:.0%}",
        f"{total.kept:.0%}",
        "nothing recognised" if score is None else f"{score:.0%}",
    ]
