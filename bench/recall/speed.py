"""What a recall costs in a large store, and what its index costs on disk, beside FTS5 with the same words."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import apsw

import limpet
from bench import corpus, stores
from bench.corpus import Question
from bench.figures import compare
from bench.measure import Sizes, Work, in_turns, ratio, span, table, verdict
from bench.stores import Raw, open_ours
from limpet.api import Limpet
from limpet.recall.embeddings import Embeddings, catch_up
from limpet.settings import RecallRules
from limpet.wiring import choose_embeddings

P50, P99, INDEX, WRITE = 10e-3, 40e-3, 1.5, 1.3
ASKED = {"rare": "one rare word", "two": "two words", "eight": "eight words", "asked": "eight words, two foreign"}
TIMED = 200  # notes
HEADS = (
    "what",
    "ours p50",
    "goal",
    "ours p99",
    "goal",
    "floor p50",
    "ratio",
    "ours CPU",
    "ours hit@10",
    "floor hit@10",
)


def run(sizes: Sizes) -> None:
    count = sizes.pick(100_000, 1_000)
    rounds, ops = sizes.pick(5, 2), sizes.pick(60, 20)
    ours, floor = stores.loaded(count)
    raw = Raw(floor)
    lines = []
    with ExitStack() as opened:
        other = opened.enter_context(_transformed(ours))
        hold = opened.enter_context(open_ours(ours))
        began = time.perf_counter()
        while made := _catch_up(hold):
            print(f"{made:,} vectors made in {time.perf_counter() - began:.1f} s")
            began = time.perf_counter()
        for kind, what in ASKED.items():
            asked = corpus.questions(kind, count, rounds * ops)
            ways = {
                "words": _ours(hold, asked, False),
                "meaning": _ours(hold, asked, True),
                **({"transformer": _ours(other, asked, True)} if other else {}),
                "floor": _floor(raw, asked),
            }
            found = in_turns(ways, rounds, ops)
            least = found["floor"]
            for name in [name for name in ways if name != "floor"]:
                mine = found[name]
                hits = [f"{_hits(ways[name], asked):.2f}", f"{_hits(ways['floor'], asked):.2f}"]
                p50, p99 = verdict(mine.p50, P50, f"≤ {span(P50)}"), verdict(mine.p99, P99, f"≤ {span(P99)}")
                compare(f"{what}, by {name}", mine.p50, "FTS5, any word", least.p50, p50)
                compare(f"{what}, by {name}, p99", mine.p99, "FTS5, any word", least.p99, p99)
                times = [span(mine.p50), p50, span(mine.p99), p99, span(least.p50), ratio(mine.p50, least.p50)]
                lines.append([f"{what}, by {name}", *times, span(mine.cpu), *hits])
    raw.close()
    table(f"Recall among {count:,} notes (floor: FTS5, any of the words, bm25, ten best)", HEADS, lines)
    _disk(str(ours))
    _writing(sizes)


def _catch_up(hold: Limpet) -> int:
    embeddings = hold.context().embeddings
    index = embeddings.models().static if embeddings else None
    return catch_up(index, hold.store, hold.scope) if index else 0


@contextmanager
def _transformed(path: Path) -> Iterator[Limpet | None]:
    """A copy of the store with vectors of the transformer. All but some are drawn by lot, because it would take hours
    to make them: the time of a question is real, what it finds by them is not."""
    models = choose_embeddings(RecallRules(model="transformer"))
    index = models.transformer
    if index is None:
        yield None
        return
    copied = shutil.copy(path, stores.folder("transformed") / "ours.db")
    with open_ours(Path(copied)) as hold:
        hold._embeddings = Embeddings(lambda: models)
        index.model.stored(["loads the model"])
        began, cpu = time.perf_counter(), time.process_time()
        catch_up(index, hold.store, hold.scope, TIMED)
        wall, busy = time.perf_counter() - began, time.process_time() - cpu
        print(
            f"{TIMED} notes embedded by the transformer: {TIMED / wall:.0f} a second, {TIMED / busy:.0f} a CPU second"
        )
        while texts := hold.store.vectors.missing(hold.scope, index.model.name, 2_000):
            bodies = [(text, os.urandom(index.model.size // 2)) for text in texts]
            hold.store.vectors.keep(hold.scope, index.model.name, bodies)
        yield hold


def _writing(sizes: Sizes) -> None:
    """What a write pays for the vector that is made later: the same adds with and without putting the text in line."""
    rounds, ops = sizes.pick(10, 2), sizes.pick(200, 20)
    notes = corpus.notes(rounds * ops)
    with tempfile.TemporaryDirectory() as folder:
        opened = {name: limpet.open(f"{folder}/{name}/limpet.db", project="bench") for name in ("with", "without")}
        entries: Any = opened["without"].store.entries

        def index_words(con: Any, _scope: Any, doc: int, before: Any, after: Any, new: Any) -> None:
            entries._index.update(con, doc, before, after, new)

        entries.index = index_words

        def add(hold: Limpet) -> Work:
            def one(at: int) -> None:
                hold.session("bench").notes.add(notes[at].content)

            return one

        try:
            found = in_turns({name: add(hold) for name, hold in opened.items()}, rounds, ops)
        finally:
            for hold in opened.values():
                hold.close()
    mine, least = found["with"], found["without"]
    cost = verdict(mine.cpu / least.cpu, WRITE, f"≤ {WRITE}x")
    compare("a write in line for a vector, CPU", mine.cpu, "the same without", least.cpu, cost)
    row = [span(mine.p50), span(least.p50), ratio(mine.p50, least.p50), span(mine.cpu), span(least.cpu)]
    heads = ("with p50", "without p50", "ratio", "with CPU", "without CPU", "ratio", "goal")
    table("A write with its text put in line for a vector", heads, [[*row, ratio(mine.cpu, least.cpu), cost]])


def _ours(hold: Limpet, asked: list[Question], meaning: bool) -> Work:
    bounds = hold._bounds._replace(recall=hold._bounds.recall._replace(meaning=meaning))

    def ask(at: int) -> list[int]:
        hold._bounds = bounds
        hits = hold.recall(asked[at].text).hits
        return [int(hit.key.removeprefix("note_")) - stores.BEGAN for hit in hits if hit.kind == "note"]

    return ask


def _floor(raw: Raw, asked: list[Question]) -> Work:
    matches = [" OR ".join(f'content:"{word}"' for word in question.words) for question in asked]
    return lambda at: [row[0] - 1 for row in raw.search(matches[at])]


def _hits(way: Work, asked: list[Question]) -> float:
    shown = [way(at) for at in range(len(asked))]
    return sum(
        question.source in found for question, found in zip(asked, shown, strict=True) if isinstance(found, list)
    ) / len(asked)


def on_disk(path: str) -> tuple[int, int, int]:
    """Bytes of the text of a store, of the index of its words, and of its vectors."""
    con = apsw.Connection(path)
    text = _number(con, "SELECT sum(octet_length(content)) FROM entries")
    words = "('terms_data', 'terms_idx', 'terms_docsize', 'pieces')"
    vectors = "('vectors', 'vectors_doc', 'vectors_waiting', 'vector_models')"
    sql = "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name IN "
    sizes = [_number(con, sql + names) for names in (words, vectors)]
    con.close()
    return text, sizes[0], sizes[1]


def _disk(path: str) -> None:
    text, *sizes = on_disk(path)
    index = sum(sizes)
    shown = [f"{size / 1e6:.1f} MB" for size in (text, *sizes)]
    goal = verdict(index / text, INDEX, f"≤ {INDEX}x")
    compare(
        "the index on disk, words and vectors", index, "the text", text, goal, show=lambda size: f"{size / 1e6:.1f} MB"
    )
    row = [*shown, ratio(index, text), goal]
    heads = ("text", "words and places", "vectors", "ratio of both", "goal")
    table("The index on disk", heads, [row])


def _number(con: apsw.Connection, sql: str) -> int:
    found = con.execute(sql).fetchall()[0][0]
    assert isinstance(found, int)
    return found
