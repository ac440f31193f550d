"""What survives a long session in eight languages, or in a story of your own: `--story FILE`.

Each story is told in a window of 32,000 tokens until 200,000 tokens were said and eight compactions have happened. Each
file has a second set of sentences, `held_out`, for which the cues were not written. What surrounds the facts is made of
a few sentences that come again and again, which a summary can tell from what was said once. So the second set is told
once more with invented words in every one of them, where that does not help. The third, `plain`, has rules and
decisions as people say them in passing ("We go with X for Y because the others were too slow"): nothing but who says
them tells them from other sentences. Sets two and three are told in English once more among real sentences, of the
documentation, docstrings and comments that `corpus.py` finds: hardly any of these says what another one says.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import limpet
from bench import corpus
from bench.figures import alone
from bench.measure import OUT, Sizes, table, verdict

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from journeys.story import IN_WINDOW, KINDS, STORIES, Count, Telling, load

LIMIT = 32_000
TOKENS = 200_000
COMPACTIONS = 8
GOAL = 0.95
REPEATED, INVENTED, REAL = "repeated", "invented", "real"
# The set of sentences and what surrounds them, with the words for it.
SETS = {
    ("main", REPEATED): "",
    ("held_out", REPEATED): " (held out)",
    ("held_out", INVENTED): " (held out, an invented word in each sentence around it)",
    ("plain", INVENTED): " (rules and decisions without a cue, an invented word in each sentence around them)",
    ("held_out", REAL): " (held out, among real sentences)",
    ("plain", REAL): " (rules and decisions without a cue, among real sentences)",
}
SENTENCE_CHARS = (40, 220)
PARAGRAPHS = 20_000


def run(sizes: Sizes) -> None:
    paths = [sizes.story] if sizes.story else sorted(STORIES.glob("*.toml"))
    texts = _real_sentences(sizes.pick(PARAGRAPHS, 2_000))
    for (which, around), label in SETS.items():
        told_among = paths if around != REAL else [path for path in paths if path.stem == "en"]
        rows = [row for path in told_among if (row := _told(path, which, around, sizes, texts))]
        heads = ("language", "tokens", "compactions", *KINDS, "in the window", "or one recall away", "last score")
        if rows:
            table(f"Facts in the window + one recall away{label}", heads, rows)


def _real_sentences(paragraphs: int) -> list[str]:
    least, most = SENTENCE_CHARS
    pieces = (piece for text in corpus.real(paragraphs) for piece in re.split(r"(?<=[.!?])\s+(?=[A-Z])", text))
    lines = (" ".join(piece.split()) for piece in pieces)
    return [line for line in lines if least <= len(line) <= most and line[:1].isupper() and line.endswith(".")]


def _told(path: Path, which: str, around: str, sizes: Sizes, texts: Sequence[str]) -> list[str]:
    label = SETS[which, around]
    try:
        story = load(path, which, varied=around == INVENTED, texts=texts if around == REAL else ())
    except KeyError:
        return []  # a story of one's own needs no second set
    with limpet.open(str(OUT / f"{path.stem}-{which}-{around}.db"), project="bench", session=path.stem) as hold:
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
