"""`python -m bench.validity [--repository PATH …]`: does memory know what is still true?

Corrections: pairs stored plainly, of which the harness confirms exactly what the answers propose; and near pairs that
are no corrections. Shared files: random histories of two clones that git merges. Unasked recall: prompts with and
without a fitting entry, in a project of ten thousand entries. Freshness: lines of real repositories, cited at one
commit and looked at in later ones; the truth is git's. The repositories are clones that the caller names.
PrecisionMemBench has a harness of its own: see precision_adapter.py.

Nothing here passes or fails. A goal is printed beside its figure.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import limpet
from bench import validity_sets as sets
from bench.measure import table
from limpet.api import Limpet
from limpet.memory import anchors
from limpet.memory import corrections as memory_corrections
from limpet.model import NOTE, Validity
from limpet.recall import unasked

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from operations.test_shared_files import HISTORY_ROUNDS, histories

FILLER = 20  # notes around each pair
LARGE = 10_000  # entries of the project in which prompts are answered
PUBLISHED = (
    ("tenure (the benchmark's authors)", "1.00", "1.00", "10 ms"),
    ("open-knowledge-format", "0.47", "0.91", "3,534 ms"),
    ("supermemory", "0.22", "0.71", "69 ms"),
    ("agentmemory", "0.17", "0.97", "82 ms"),
    ("zep", "0.09", "0.95", "124 ms"),
    ("mem0", "0.06", "0.99", "65 ms"),
    ("a-mem", "0.06", "0.99", "14 ms"),
    ("hindsight", "0.06", "1.00", "590 ms"),
    ("cognee", "0.05", "0.92", "2,891 ms"),
)
CITATIONS = (("GitHub Copilot memory, without and with", "83 % and 90 %"),)
FACTS = 150  # places cited in each repository
STEPS = (20, 100, 300)  # commits later, at which they are looked at again


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", action="append", default=[], help="a clone; may be repeated")
    parser.add_argument("--only", choices=("corrections", "shared", "unasked", "freshness", "published"))
    parser.add_argument("--histories", type=int, default=100, help="random histories of two clones")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.only in (None, "corrections"):
            corrections(folder)
            natural_corrections()
        if options.only in (None, "shared"):
            shared_files(folder, options.histories)
        if options.only in (None, "unasked"):
            recalled_unasked(folder)
        if options.only in (None, "published"):
            published()
        if options.only in (None, "freshness") and options.repository:
            freshness(folder, options.repository)


# --- corrections ------------------------------------------------------------------------------------------------------


def corrections(folder: str) -> None:
    """Each pair in a project of its own, among other notes."""
    pairs, near = sets.corrections(), sets.near_pairs()
    proposed = first = absent = wrongly = 0
    clock = _clock()
    with limpet.open(os.path.join(folder, "corrections.db"), clock=lambda: next(clock)) as hold:
        for number, pair in enumerate(pairs):
            project = _project(hold, f"pair {number}")
            old = _add(project, pair.old)
            answer = project.call("add_note", {"content": pair.new})
            if answer.get("corrects") == old:
                proposed += 1
            if "corrects" in answer:
                project.call("add_note", {"content": pair.new, "replaces": answer["corrects"]})
            hits = [hit["id"] for hit in project.call("recall", {"query": pair.question})["hits"]]
            first += hits[:1] == [answer["note_id"]]
            absent += old not in hits
        for number, (old_text, new_text) in enumerate(near):
            project = _project(hold, f"near {number}")
            _add(project, old_text)
            wrongly += "corrects" in project.call("add_note", {"content": new_text})
    rows = [
        ("proposed as a correction", _percent(proposed, len(pairs)), ""),
        ("the current text comes first", _percent(first, len(pairs)), ">= 98 %"),
        ("the old text is absent", _percent(absent, len(pairs)), ">= 90 %"),
        ("near pairs proposed", _percent(wrongly, len(near)), "<= 2 %"),
    ]
    table(
        f"Corrections ({len(pairs)} pairs, {sets.by_language(pairs)}; {len(near)} near pairs)",
        ("measure", "figure", "goal"),
        rows,
    )


def natural_corrections() -> None:
    """Corrections as people write them, each beside what it corrects, and pairs that are none."""
    for title, name in (
        ("Corrections as people write them", "natural_corrections.txt"),
        ("The same, a second set", "natural_corrections_second.txt"),
    ):
        language, counts = "", dict[str, list[int]]()
        for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
            if line.startswith("["):
                language = line.strip("[]")
                counts[language] = [0, 0, 0, 0]
            elif " => " in line and not line.startswith("#"):
                older, newer = line.removeprefix("~ ").split(" => ")
                at = 2 if line.startswith("~") else 0
                counts[language][at] += memory_corrections.corrects(newer, older)
                counts[language][at + 1] += 1
        total = [sum(column) for column in zip(*counts.values(), strict=True)]
        rows = [(name, f"{a} of {b}", f"{c} of {d}") for name, (a, b, c, d) in {**counts, "all": total}.items()]
        table(title, ("language", "recognised", "near pairs proposed"), rows)


def published() -> None:
    """What others have published; none of it was measured here."""
    rows = [(name, precision, recall, median) for name, precision, recall, median in PUBLISHED]
    heads = ("system, as published", "precision", "recall", "median")
    table("PrecisionMemBench: figures of the reports in tenurehq/precisionMemBench", heads, rows)
    table("Checked citations in production, as published", ("system", "pull requests merged"), CITATIONS)


def _project(hold: Limpet, name: str) -> Limpet:
    project = hold.elsewhere(hold.scope._replace(project=name))
    for text in sets.filler(FILLER):
        _add(project, text)
    return project


def _add(hold: Limpet, text: str) -> str:
    return str(hold.call("add_note", {"content": text})["note_id"])


def _clock() -> Iterator[int]:
    yield from range(1_772_539_200_000, 1_900_000_000_000, 1_000)


# --- shared files -----------------------------------------------------------------------------------------------------


def shared_files(folder: str, count: int) -> None:
    """Each history changes, deletes and merges at random, and compares both clones with a plain model after each merge.
    Entries that differ from it are lost or doubled."""
    home = Path(folder) / "shared"
    home.mkdir()
    os.environ["LIMPET_HOME"] = str(home / "data")  # a person's own is left alone
    merges = wrong = 0
    for seed in range(count):
        tree = home / str(seed)
        try:
            merges += histories(tree, home, seed, HISTORY_ROUNDS)
        except AssertionError:
            wrong += 1
        shutil.rmtree(tree)
    rows = [(f"{count:,}", f"{merges:,}", f"{wrong:,}")]
    table(
        "Shared files of two clones (goal: 0)", ("histories", "merges", "histories with an entry lost or doubled"), rows
    )


# --- unasked recall ---------------------------------------------------------------------------------------------------


def recalled_unasked(folder: str) -> None:
    """Every prompt in a session of its own, so that nothing was shown before."""
    prompts = sets.prompts()
    right = silent = 0
    times: list[float] = []
    fitting = [prompt for prompt in prompts if prompt.fits]
    with limpet.open(os.path.join(folder, "unasked.db")) as hold:
        for text in (*sets.filler(LARGE - len(sets.THINGS)), *sets.known_facts()):
            hold.call("add_note", {"content": text}, session="earlier")
        for number, prompt in enumerate(prompts):
            ctx = hold.context(f"session {number}")
            begun = time.perf_counter()
            shown = unasked.unasked(ctx, prompt.text)
            times.append(1_000 * (time.perf_counter() - begun))
            texts = [entry.content for entry in shown.entries]
            if prompt.fits:
                right += prompt.fits in texts
            else:
                silent += not texts
    others = len(prompts) - len(fitting)
    title = f"Unasked recall ({len(fitting)} prompts with a fitting entry, {others} without; {LARGE:,} entries)"
    rows = [
        ("get the entry that fits", _percent(right, len(fitting)), ">= 80 %"),
        ("silence where none fits", _percent(silent, others), ">= 95 %"),
        ("recall's own time, median / p95", f"{_at(times, 0.5):.1f} / {_at(times, 0.95):.1f} ms", "<= 15 ms"),
    ]
    table(title, ("measure", "figure", "goal"), rows)


def _at(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


# --- freshness --------------------------------------------------------------------------------------------------------


class Cited(NamedTuple):
    path: str
    first: int
    last: int


def freshness(folder: str, repositories: Sequence[str]) -> None:
    """Places of a commit, looked at in later ones. The truth is `git blame --reverse`, confirmed by `git log -L`."""
    rows: list[tuple[str, str, str]] = []
    times: list[float] = []
    right_in_all = all_looks = 0
    for source in repositories:
        checkout = Path(folder) / f"{Path(source).parent.name or 'repository'}-{len(rows)}"
        _git(Path(folder), "clone", "-q", "--shared", source, str(checkout))
        commits = _git(checkout, "log", "--first-parent", "--format=%H").split()
        begin = min(len(commits) - 1, STEPS[-1] + 50)
        _git(checkout, "checkout", "-q", commits[begin])
        with limpet.open(str(checkout) + ".db", folder=str(checkout)) as hold:
            cited = _cite(hold, checkout)
            right = looked = 0
            for step in STEPS:
                later = commits[max(0, begin - step)]
                _git(checkout, "checkout", "-q", later)
                for key, place in cited.items():
                    state, took = _look(hold, key)
                    times.append(took)
                    looked += 1
                    right += state == _truth(checkout, commits[begin], later, place)
        rows.append((checkout.name, f"{looked:,}", _percent(right, looked)))
        right_in_all, all_looks = right_in_all + right, all_looks + looked
    rows.append(("all", f"{all_looks:,}", _percent(right_in_all, all_looks)))
    table("Freshness (goal: >= 99 % right, <= 2 ms per hit)", ("repository", "looks", "right"), rows)
    print(f"\nOne look: median {statistics.median(times):.2f} ms, p95 {_at(times, 0.95):.2f} ms.")


def _cite(hold: Limpet, checkout: Path) -> dict[str, Cited]:
    chosen = random.Random(sets.SEED)
    files = [name for name in _git(checkout, "ls-files", "*.py").splitlines() if (checkout / name).stat().st_size > 400]
    cited: dict[str, Cited] = {}
    while len(cited) < FACTS:
        path = chosen.choice(files)
        lines = (checkout / path).read_text(encoding="utf-8", errors="replace").split("\n")
        first = chosen.randrange(1, max(2, len(lines) - 8))
        place = Cited(path, first, first + chosen.randrange(2, 7))
        if sum(len(line.strip()) > 3 for line in lines[place.first - 1 : place.last]) < 2:
            continue  # nobody cites blank lines and brackets
        text = f"Fact {len(cited)} about {path}"
        anchor = f"{path}:{place.first}-{place.last}"
        cited[str(hold.call("add_note", {"content": text, "anchors": [anchor]})["note_id"])] = place
    return cited


def _look(hold: Limpet, key: str) -> tuple[str, float]:
    ctx = hold.context()
    entry = hold.store.entries.read(hold.scope, NOTE, key)
    if entry is None:
        raise LookupError(key)
    begun = time.perf_counter()
    (look,) = anchors.looks(ctx, Validity.of(entry.extra).anchors)
    return look.state, 1_000 * (time.perf_counter() - begun)


def _truth(checkout: Path, begin: str, later: str, place: Cited) -> str:
    """Whether git says that the lines are the same at the later commit, and in their place."""
    if not (checkout / place.path).is_file():
        return "gone"
    if begin == later:
        return "fresh"
    blame = _git(
        checkout, "blame", "--reverse", "-p", f"-L{place.first},{place.last}", f"{begin}..{later}", "--", place.path
    )
    heads = [line.split() for line in blame.splitlines() if len(line.split(" ", 1)[0]) == len(begin)]
    numbers = [int(head[1]) for head in heads if head[0] == later]
    whole = len(numbers) == place.last - place.first + 1 and numbers == list(
        range(numbers[0], numbers[0] + len(numbers))
    )
    if not whole:
        return "drifted"
    changed = _git(
        checkout, "log", f"-L{numbers[0]},{numbers[-1]}:{place.path}", "-s", "--format=%H", f"{begin}..{later}"
    )
    if changed.strip():
        return "drifted"
    return "fresh" if numbers[0] == place.first else "moved"


def _git(folder: Path, *words: str) -> str:
    git = shutil.which("git") or "git"
    ran = subprocess.run([git, "-C", str(folder), *words], capture_output=True, check=False)
    return ran.stdout.decode("utf-8", "replace")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    main()
