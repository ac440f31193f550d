"""What a recall costs in a large store, and what its index costs on disk, beside FTS5 with the same words."""

from __future__ import annotations

import apsw

from bench import corpus, stores
from bench.corpus import Question
from bench.measure import Sizes, Work, in_turns, ratio, span, table, verdict
from bench.stores import Raw, open_ours
from holdfast.library import Holdfast

P50, P99, INDEX = 10e-3, 40e-3, 1.5
ASKED = {"rare": "one rare word", "two": "two words", "eight": "eight words", "asked": "eight words, two foreign"}
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
    with open_ours(ours) as hold:
        for kind, what in ASKED.items():
            asked = corpus.questions(kind, count, rounds * ops)
            ways = {"ours": _ours(hold, asked), "floor": _floor(raw, asked)}
            found = in_turns(ways, rounds, ops)
            mine, least = found["ours"], found["floor"]
            hits = [f"{_hits(way, asked):.2f}" for way in ways.values()]
            p50, p99 = verdict(mine.p50, P50, f"≤ {span(P50)}"), verdict(mine.p99, P99, f"≤ {span(P99)}")
            times = [span(mine.p50), p50, span(mine.p99), p99, span(least.p50), ratio(mine.p50, least.p50)]
            lines.append([what, *times, span(mine.cpu), *hits])
    raw.close()
    table(f"Recall among {count:,} notes (floor: FTS5, any of the words, bm25, ten best)", HEADS, lines)
    _disk(str(ours))


def _ours(hold: Holdfast, asked: list[Question]) -> Work:
    def ask(at: int) -> list[int]:
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


def _disk(path: str) -> None:
    con = apsw.Connection(path)
    text = con.execute("SELECT sum(octet_length(content)) FROM entries").fetchall()[0][0]
    names = "('terms_data', 'terms_idx', 'terms_docsize', 'pieces')"
    sql = f"SELECT sum(pgsize) FROM dbstat WHERE name IN {names}"  # noqa: S608
    index = con.execute(sql).fetchall()[0][0]
    con.close()
    assert isinstance(text, int)
    assert isinstance(index, int)
    row = [
        f"{text / 1e6:.1f} MB",
        f"{index / 1e6:.1f} MB",
        ratio(index, text),
        verdict(index / text, INDEX, f"≤ {INDEX}x"),
    ]
    table("The index on disk (words and their places, pieces of words)", ("text", "index", "ratio", "goal"), [row])
