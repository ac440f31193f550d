"""`python -m bench.recall.beam --beam FOLDER --sizes 100K 500K 1M 10M`: whether recall finds the evidence in BEAM.

FOLDER is a checkout of mohammadtavakoli78/BEAM, or its git directory; the data is not part of this repository. Every
message of a conversation is stored as in the other sets: a note of its session or, where it is longer, memory. A
session is a batch of the data, at its time. The mark of the generator behind a user's message (`->-> 1,3`) is cut off.
Every probing question with source ids is asked. R@10 and R@20 are the share of its source ids among the first ten and
twenty hits, any@10 and any@20 whether one of them is there. A question may have more than twenty source ids, so that
nobody reaches 1. `limpet recall` is asked with `more`, so that its whole order is measured.

A conversation of 10M tokens has ten parts, whose messages are numbered on from part to part. Where a part is absent,
the parts behind it have no numbers, and only questions whose whole evidence is in the parts before it are asked; parts
of other conversations are stored beside until there are ten million tokens.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import percentile, table
from bench.recall.git import git
from bench.recall.rankers import Ours, Ranker, fts5, linear
from bench.recall.scores import score
from bench.recall.sets import Query, Set, Unit
from bench.recall.speed import on_disk
from limpet.text import tokens

SIZES = ("100K", "500K", "1M", "10M")
PARTED, PARTS, FULL = "10M", 10, 10_000_000  # the size that has parts, how many, and its tokens
OURS, CUT, FTS5, SUM = "limpet recall", "  as answered without more", "FTS5 BM25", "BM25 .6 + wordllama .4"
HEADS = ("system", "R@10", "R@20", "any@10", "any@20", "p50 ms", "p95 ms")
_GENERATED = re.compile(r"\s*->->\s*[\d,. ]*$")


class Asked(NamedTuple):
    """What one system answered to one question."""

    ten: float
    twenty: float
    type: str
    seconds: float


class Store(NamedTuple):
    """What one conversation took."""

    messages: int
    tokens: int
    seconds: float  # of storing it
    text: int  # bytes
    words: int  # bytes of the index of words on disk
    vectors: int
    whole: int  # bytes of the file


class Result(NamedTuple):
    answers: dict[str, list[Asked]]  # by system
    stores: list[Store]


class Source:
    """A checkout of the data, or its git directory, in which large files may be absent."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._plain = folder, (folder / "chats").is_dir()

    def names(self, path: str) -> list[str]:
        if self._plain:
            return [child.name for child in (self._folder / path).iterdir()]
        return git(self._folder, "ls-tree", "--name-only", f"HEAD:{path}").splitlines()

    def json(self, path: str) -> Any:
        """What a file holds; None where it is absent."""
        try:
            if self._plain:
                return json.loads((self._folder / path).read_text(encoding="utf-8"))
            return json.loads(git(self._folder, "show", f"HEAD:{path}"))
        except (FileNotFoundError, subprocess.CalledProcessError):
            return None

    @cache  # noqa: B019 - there is one for a run
    def parts(self, path: str) -> dict[int, Any]:
        """Those parts of a conversation that are there, by their numbers."""
        found = ((number, self.json(f"{path}/plan-{number}/chat.json")) for number in range(PARTS))
        return {number: part for number, part in found if part is not None}

    def version(self) -> str:
        return git(self._folder, "rev-parse", "--short=12", "HEAD").strip()


def conversations(source: Source, size: str, most: int | None = None) -> Iterator[tuple[Set, str]]:
    """Those that are there, each with what is to be known of it."""
    folders = sorted((name for name in source.names(f"chats/{size}") if name.isdigit()), key=int)
    if size == PARTED:  # the most complete ones first
        folders.sort(key=lambda folder: -len(source.parts(f"chats/{size}/{folder}")))
    taken = 0
    for folder in folders:
        path = f"chats/{size}/{folder}"
        made = _parted(source, path, folders) if size == PARTED else _single(source, path)
        if made and made[0].queries and (most is None or taken < most):
            taken += 1
            yield made


def _single(source: Source, path: str) -> tuple[Set, str] | None:
    chat = source.json(f"{path}/chat.json")
    if chat is None:
        return None
    units = list(_units(chat, "", 0))
    return Set(path, units, _queries(source, path, units)), ""


def _parted(source: Source, path: str, folders: Sequence[str]) -> tuple[Set, str] | None:
    parts = source.parts(path)
    numbered = next((number for number in range(PARTS) if number not in parts), PARTS)
    if not numbered:
        return None
    units: list[Unit] = []
    first = 0
    for number in range(numbered):
        units += _units(parts[number], f"p{number}", first)
        first += sum(len(turn) for batch in parts[number] for turn in batch["turns"])
    queries = _queries(source, path, units)
    for number in range(numbered, PARTS):
        units += _units(parts.get(number, []), f"p{number}", None)
    if len(parts) == PARTS:
        return Set(path, units, queries), ""
    size, beside = tokens_of(units), 0
    others = (other for other in folders if not path.endswith(f"/{other}"))
    for other in others if size < FULL else ():
        for number, chat in source.parts(f"{path.rpartition('/')[0]}/{other}").items():
            if size < FULL:
                more = list(_units(chat, f"c{other}p{number}", None))
                units, size, beside = units + more, size + tokens_of(more), beside + 1
    said = (
        f"{path}: {len(parts)} of {PARTS} parts are there, the first {numbered} with numbers; {beside} of others beside"
    )
    return Set(path, units, queries), said


def _units(chat: Any, part: str, first: int | None) -> Iterator[Unit]:
    """The messages of a conversation or a part. Without a first number they have ids that no question names."""
    order = 0
    for at, batch in enumerate(chat):
        messages = list(chain.from_iterable(batch["turns"]))
        anchor = next((one["time_anchor"] for one in messages if one.get("time_anchor")), None)
        day = f"{datetime.strptime(anchor, '%B-%d-%Y').date()}T10:00:00+00:00" if anchor else ""  # noqa: DTZ007
        for message in messages:
            name = f"{part}/{order}" if first is None else str(first + order)
            text = _GENERATED.sub("", message["content"])
            if text.strip():
                yield Unit(name, text, message["role"], day, f"{part}b{at:02}", order)
            order += 1


def _queries(source: Source, path: str, units: list[Unit]) -> list[Query]:
    """The questions whose whole evidence is stored."""
    known = {unit.id for unit in units}
    probing = source.json(f"{path}/probing_questions/probing_questions.json") or {}
    asked = ((kind, one["question"], _ids(one.get("source_chat_ids"))) for kind in probing for one in probing[kind])
    return [Query(question, ids, kind) for kind, question, ids in asked if ids and ids <= known]


def _ids(found: Any) -> frozenset[str]:
    """All numbers in what may be a list, a list of lists, or lists by name."""
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list):
        return frozenset(chain.from_iterable(map(_ids, found)))
    return frozenset((str(found),)) if isinstance(found, int) else frozenset()


def tokens_of(units: Sequence[Unit]) -> int:
    return sum(tokens.count(unit.text) for unit in units)


def measured(chosen: Iterator[tuple[Set, str]], beside: bool = True) -> Result:
    """Every conversation in a store of its own."""
    result = Result({}, [])
    for one, said in chosen:
        if said:
            print(said, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "limpet.db"
            kept = Ours(str(path), "bench")
            began = time.perf_counter()
            kept.add(one.units)
            seconds = time.perf_counter() - began
            _ask(result, one, OURS, kept.ask)
            _ask(result, one, CUT, partial(kept.ask, more=False))
            kept.hold.close()
            result.stores.append(
                Store(len(one.units), tokens_of(one.units), seconds, *on_disk(str(path)), path.stat().st_size)
            )
            for name, ranker in _peers(one, Path(folder)) if beside else ():
                _ask(result, one, name, ranker.ask)
        means = (f"{name.strip()} {_mean(found, 'ten'):.3f}" for name, found in result.answers.items())
        print(one.name, *means, flush=True)
    return result


def _peers(one: Set, folder: Path) -> Iterator[tuple[str, Ranker]]:
    yield FTS5, fts5(one, folder / "fts5.db")
    try:
        import wordllama  # noqa: F401
    except ImportError:
        return
    yield SUM, linear(one, folder / "sum.db", 0.4)


def _ask(result: Result, one: Set, name: str, ask: Callable[[str], list[str]]) -> None:
    for asked in one.queries:
        began = time.perf_counter()
        ranked = ask(asked.query)
        seconds = time.perf_counter() - began
        _, _, ten, twenty = score(asked, ranked).recall
        result.answers.setdefault(name, []).append(Asked(ten, twenty, asked.type, seconds))


def _mean(found: Sequence[Asked], cut: str, some: bool = False) -> float:
    values: list[float] = [getattr(one, cut) for one in found]
    return sum(value > 0 if some else value for value in values) / (len(values) or 1)


def line(found: Sequence[Asked]) -> list[str]:
    shares = (_mean(found, cut, some) for some in (False, True) for cut in ("ten", "twenty"))
    seconds = [one.seconds for one in found]
    times = (f"{1e3 * percentile(seconds, share):.1f}" for share in (0.5, 0.95))
    return [*(f"{share:.3f}" for share in shares), *times]


def by_type(result: Result, cut: str) -> tuple[tuple[str, ...], list[list[str]]]:
    kinds = sorted({one.type for one in result.answers[OURS]})
    counts = {kind: sum(one.type == kind for one in result.answers[OURS]) for kind in kinds}
    heads = ("type", "questions", *(name.strip() for name in result.answers))
    means = {
        (kind, name): _mean([one for one in found if one.type == kind], cut)
        for kind in kinds
        for name, found in result.answers.items()
    }
    return heads, [
        [kind.replace("_", " "), str(counts[kind]), *(f"{means[kind, name]:.3f}" for name in result.answers)]
        for kind in kinds
    ]


def stored(result: Result) -> str:
    """What was stored, and what it took, in a sentence."""
    messages, every, seconds, text, words, vectors, whole = map(sum, zip(*result.stores, strict=True))
    each = f"{every / len(result.stores) / 1e6:.2f}M tokens each by our count"
    took = f"{seconds:.0f} s to store and embed ({text / 1e6 / seconds:.2f} MB of text a second)"
    disk = f"words {words / text:.2f}x, vectors {vectors / text:.2f}x of it, whole files {whole / text:.2f}x"
    return (
        f"{len(result.stores)} conversations, {messages:,} messages, {each}; {took}; text {text / 1e6:.1f} MB, {disk}"
    )


def show(size: str, result: Result) -> None:
    asked = len(result.answers[OURS])
    table(f"BEAM {size}, {asked:,} questions", HEADS, [[name, *line(found)] for name, found in result.answers.items()])
    for cut, name in (("ten", "R@10"), ("twenty", "R@20")):
        heads, lines = by_type(result, cut)
        table(f"BEAM {size}: {name} by type of question", heads, lines)
    print(f"\n{stored(result)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.recall.beam", description=__doc__)
    parser.add_argument("--beam", type=Path, required=True, help="a checkout of the data, or its git directory")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--most", type=int, help="conversations of each size; all of them otherwise")
    parser.add_argument("--ours-only", action="store_true")
    given = parser.parse_args()
    source = Source(given.beam)
    print(f"BEAM {source.version()}")
    for size in given.sizes:
        result = measured(conversations(source, size, given.most), not given.ours_only)
        if result.stores:
            show(size, result)
        else:
            print(f"{size}: no conversation is there")


if __name__ == "__main__":
    main()
