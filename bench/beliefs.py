"""`python -m bench.beliefs`: do the beliefs come that a prompt is about, and those alone?

A set of our own in the manner of PrecisionMemBench: beliefs.txt, frozen before anything was built for it, two domains
to improve on and two to report. Precision and recall are counted as its harness does. Every belief is a note in the
project of its domain, its name and aliases are tags, or without aliases nothing but text. A prompt is answered by what
unasked recall would show, each in a session of its own, and for comparison by `recall`. Beside them, answers that the
same settings lose: questions of LoCoMo, each turn of a conversation a note, if its file is there (BENCH_DATA).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import limpet
from bench.corpus import LOCOMO
from bench.measure import table
from bench.recall import sets
from limpet.api import Limpet
from limpet.recall import unasked

HALVES = ("tune", "report")
EACH = 40  # questions of a conversation


class Belief(NamedTuple):
    id: str
    name: str
    aliases: tuple[str, ...]
    text: str
    replaced_by: str


class Prompt(NamedTuple):
    kind: str
    expected: frozenset[str]
    text: str


class Domain(NamedTuple):
    name: str
    half: str
    beliefs: list[Belief]
    prompts: list[Prompt]


class Score(NamedTuple):
    kind: str
    precision: float | None  # None: nothing was expected, and nothing came
    recall: float | None


Answer = Callable[[str], list[str]]  # to a prompt, the ids that come with it


def domains() -> list[Domain]:
    every: list[Domain] = []
    for line in Path(__file__).with_name("beliefs.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            name, half = line.removeprefix("[").split("] ")
            every.append(Domain(name, half, [], []))
        elif " | " in line:
            belief, name, aliases, content, why, flag = (part.strip() for part in line.split("|"))
            aliases_ = tuple(alias.strip() for alias in aliases.split(","))
            every[-1].beliefs.append(Belief(belief, name, aliases_, f"{content} {why}", flag.removeprefix("by ")))
        else:
            kind, _, rest = line.partition(": ")
            ids, _, prompt = rest.partition("? ")
            every[-1].prompts.append(Prompt(kind, frozenset(ids.strip("? ").split()), prompt))
    return every


def kept(hold: Limpet, domain: Domain, aliases: bool) -> tuple[Limpet, dict[str, str]]:
    """The domain's project, and the belief of each of its notes. Replaced ones come before what replaces them."""
    project = hold.elsewhere(hold.scope._replace(project=f"{domain.name} {aliases}"))
    notes: dict[str, str] = {}
    for belief in sorted(domain.beliefs, key=lambda belief: not belief.replaced_by):
        name = belief.name.replace("_", " ")
        arguments = {"content": f"{name}: {belief.text}", "tags": [name, *belief.aliases] if aliases else []}
        old = [other.id for other in domain.beliefs if other.replaced_by == belief.id]
        if old:
            arguments["replaces"] = notes[old[0]]
        notes[belief.id] = str(project.call("add_note", arguments, session="earlier")["note_id"])
    return project, {note: belief for belief, note in notes.items()}


def by_unasked(project: Limpet, beliefs: dict[str, str]) -> Answer:
    def answer(prompt: str) -> list[str]:
        return [beliefs[entry.key] for entry in unasked.unasked(project.context("new"), prompt).entries]

    return answer


def by_recall(project: Limpet, beliefs: dict[str, str]) -> Answer:
    def answer(prompt: str) -> list[str]:
        return [beliefs[hit["id"]] for hit in project.call("recall", {"query": prompt})["hits"]]

    return answer


WAYS = (
    ("unasked, with aliases", True, by_unasked),
    ("unasked, without aliases", False, by_unasked),
    ("recall, with aliases", True, by_recall),
    ("recall, without aliases", False, by_recall),
)


def scored(prompt: Prompt, came: Sequence[str]) -> Score:
    """As the harness counts: a prompt without an expected belief counts against precision if anything comes."""
    right = len(prompt.expected.intersection(came))
    precision = right / len(came) if came else None if not prompt.expected else 0.0
    return Score(prompt.kind, precision, right / len(prompt.expected) if prompt.expected else None)


def scores(half: str, verbose: bool = False) -> Iterator[tuple[str, list[Score]]]:
    with tempfile.TemporaryDirectory() as folder, limpet.open(os.path.join(folder, "beliefs.db")) as hold:
        for name, aliases, way in WAYS:
            every: list[Score] = []
            for domain in (one for one in domains() if one.half == half):
                answer = way(*kept(hold, domain._replace(name=f"{name} {domain.name}"), aliases))
                for prompt in domain.prompts:
                    came = answer(prompt.text)
                    every.append(scored(prompt, came))
                    if verbose and set(came) != prompt.expected:
                        print(name, "|", prompt.kind, "|", prompt.text, "|", sorted(prompt.expected), "|", came)
            yield name, every


def mean(values: Iterator[float | None]) -> float:
    counted = [value for value in values if value is not None]
    return sum(counted) / (len(counted) or 1)


def main() -> None:
    for half in HALVES:
        rows, kinds = [], []
        for name, every in scores(half):
            rows.append((name, *(f"{value:.2f}" for value in figures(every))))
            kinds.append((name, *(f"{figures([s for s in every if s.kind == kind])[2]:.2f}" for kind in _kinds(every))))
        table(f"Beliefs of our own, {half}", ("way", "precision", "recall", "all right"), rows)
        table("All right, by kind of prompt", ("way", *_kinds(every)), kinds)
    if LOCOMO.is_file():
        lost_on_locomo()


def lost_on_locomo() -> None:
    """Turns that answer a question: found by recall among its ten best, and shown unasked."""
    found = shown = right = asked = 0
    with tempfile.TemporaryDirectory() as folder, limpet.open(os.path.join(folder, "locomo.db")) as hold:
        for talk in sets.locomo(LOCOMO):
            project = hold.elsewhere(hold.scope._replace(project=f"talk {talk.name}"))
            notes = {
                str(project.call("add_note", {"content": unit.told()}, session="earlier")["note_id"]): unit.id
                for unit in talk.units
            }
            for number, query in enumerate(talk.queries[:: max(1, len(talk.queries) // EACH)][:EACH]):
                hits = project.call("recall", {"query": query.query, "limit": 10})["hits"]
                came = unasked.unasked(project.context(f"question {number}"), query.query).entries
                asked += 1
                found += any(notes.get(hit["id"]) in query.evidence for hit in hits)
                right += any(notes[entry.key] in query.evidence for entry in came)
                shown += bool(came)
    rows = [
        ("questions", f"{asked:,}"),
        ("answer found by recall", f"{found / asked:.0%}"),
        ("answer shown unasked", f"{right / asked:.0%}"),
        ("something else shown unasked", f"{(shown - right) / asked:.0%}"),
        ("silence", f"{(asked - shown) / asked:.0%}"),
        ("answers that recall finds and unasked recall does not show", f"{(found - right) / asked:.0%}"),
    ]
    table("LoCoMo by the same settings: nothing there has a name, and questions are no prompts", ("", "share"), rows)


def figures(every: Sequence[Score]) -> tuple[float, float, float]:
    """Mean precision and recall, and the share of prompts with what was expected and nothing else."""
    right = [score.precision in (None, 1.0) and score.recall in (None, 1.0) for score in every]
    return (
        mean(score.precision for score in every),
        mean(score.recall for score in every),
        mean(float(r) for r in right),
    )


def _kinds(every: Sequence[Score]) -> list[str]:
    return sorted({score.kind for score in every})


if __name__ == "__main__":
    main()
