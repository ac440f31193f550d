"""Stories composed at random from the steps in `kinds/`, each against a plain model of what must be true.

`make life SECONDS=600 SEED=7` goes on for so long; `python -m life --story 123` tells one story again. A story is a
number: from it come its steps, and from each step's own number what the step does. When a story fails, it is told again
with fewer steps, and the shortest that still fails is printed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from life.kinds import KINDS
from life.world import World
from torture.kit import SEED, Outcome, Tally

STEPS = (5, 18)  # of a story, from and to
SHORTENED_SECONDS = 240  # of looking for fewer steps that fail too
Log = Callable[[str], None]


class Step(NamedTuple):
    kind: str
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.seed}"


class Failure(NamedTuple):
    steps: tuple[Step, ...]
    words: str


def composed(story: int) -> tuple[Step, ...]:
    chance = random.Random(story)
    kinds, weights = list(KINDS), [kind.weight for kind in KINDS.values()]
    names = chance.choices(kinds, weights, k=chance.randint(*STEPS))
    return tuple(Step(name, chance.randrange(1 << 32)) for name in names)


def quiet(words: str) -> None:
    """For stories that nobody watches."""


def tell(steps: Sequence[Step], log: Log = quiet) -> str:
    """Tell a story. What was not as it must be, or nothing."""
    at = "the beginning"
    with tempfile.TemporaryDirectory(prefix="life-", ignore_cleanup_errors=True) as folder:
        world = World(Path(folder), log, full_disks=any(step.kind == "disk_full" for step in steps))
        try:
            for step in steps:
                at = str(step)
                log(f"  {step}")
                KINDS[step.kind].run(world, random.Random(step.seed))
            at = "the last look"
            world.look_at_all()
        except Exception as problem:  # noqa: BLE001 - whatever a story could not do is a failure of it
            return f"at {at}: {type(problem).__name__}: {problem}"[:3_000]
        finally:
            world.close()
    return ""


def shortest(steps: tuple[Step, ...], words: str, seconds: float = SHORTENED_SECONDS, log: Log = quiet) -> Failure:
    """Leave out steps while the story still fails: first many at once, then each."""
    until = time.monotonic() + seconds
    size = max(1, len(steps) // 2)
    while size:
        first = 0
        while first < len(steps) and time.monotonic() < until:
            fewer = (*steps[:first], *steps[first + size :])
            again = tell(fewer)
            if again:
                log(f"    fails with {len(fewer)} steps too")
                steps, words = fewer, again
            else:
                first += size
        size //= 2
    return Failure(steps, words)


def told(story: int, log: Log = quiet) -> Failure | None:
    steps = composed(story)
    words = tell(steps, log)
    return shortest(steps, words, log=log) if words else None


def kept(_folder: Path, stories: int) -> Outcome:
    """So many stories as a goal of the torture."""
    tally, steps = Tally(), 0
    for story in range(SEED, SEED + stories):
        steps += len(composed(story))
        words = tell(composed(story))
        if words:
            tally.miss("failed", f"story {story}: {words}")
    return tally.outcome(f"{stories:,} stories of {steps:,} steps", "failed")


def main() -> int:
    parser = argparse.ArgumentParser("life", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long new stories are begun")
    parser.add_argument("--seed", type=int, help="of the first story; the next ones count on")
    parser.add_argument("--story", type=int, help="tell this one, step by step")
    parser.add_argument("--steps", nargs="*", metavar="KIND:SEED", help="tell these steps")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    asked = parser.parse_args()
    if asked.steps or asked.story is not None:
        steps = composed(asked.story) if asked.story is not None else tuple(map(step_of, asked.steps))
        words = tell(steps, print)
        print(words or "As it must be.")
        return 1 if words else 0
    return many(asked.seconds, random.randrange(10**6) if asked.seed is None else asked.seed, asked.keep_going)


def step_of(words: str) -> Step:
    name, _, seed = words.partition(":")
    return Step(name, int(seed))


def many(seconds: float, seed: int, keep_going: bool) -> int:
    began, told_of, failed, kinds = time.monotonic(), 0, 0, Counter[str]()
    print(f"Stories from seed {seed} on; tell one again with --story NUMBER.", flush=True)
    while time.monotonic() - began < seconds:
        story = seed + told_of
        told_of += 1
        kinds.update(step.kind for step in composed(story))
        failure = told(story, lambda words: None)
        if failure is not None:
            failed += 1
            print(f"Story {story} fails {failure.words}\n  with {' '.join(map(str, failure.steps))}", flush=True)
            if not keep_going:
                break
    took = time.monotonic() - began
    print(f"{told_of} stories, {sum(kinds.values())} steps of {len(kinds)} kinds, {took:.0f} s, {failed} failed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
