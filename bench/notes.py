"""Notes in one process: searching, and reading the notepad, each beside the same work by hand. `adding.py` writes."""

from __future__ import annotations

import re
from collections.abc import Callable

from bench import corpus, stores
from bench.corpus import Question
from bench.figures import compare
from bench.measure import Sample, Sizes, Work, in_turns, ratio, span, table, verdict
from bench.stores import SESSION, Raw, open_ours
from limpet.api import Limpet

SEARCH_WALL, EIGHT_WORDS, PAD_WALL = 1.5, 5e-3, 2.0
PAD_CHARS = 2_000
HEADS = ("what", "ours p50", "floor p50", "wall", "goal", "ours p99", "floor p99", "ours CPU", "floor CPU", "CPU")


def run(sizes: Sizes) -> None:
    for count in _counts(sizes):
        stores.loaded(count)
    _searching(sizes)
    _reading(sizes)


def _counts(sizes: Sizes) -> tuple[int, ...]:
    return (300, 1_000) if sizes.quick else (1_000, 10_000, 100_000)


def _line(what: str, ours: Sample, floor: Sample, goal: str) -> list[str]:
    shown = [span(part) for part in (ours.p99, floor.p99, ours.cpu, floor.cpu)]
    return [what, span(ours.p50), span(floor.p50), ratio(ours.p50, floor.p50), goal, *shown, ratio(ours.cpu, floor.cpu)]


# --- searching --------------------------------------------------------------------------------------------------------

Match = Callable[[Question], str]


def _every(question: Question) -> str:
    return " AND ".join(f'content:"{word}"' for word in question.words)


def _any(question: Question) -> str:
    return " OR ".join(f'content:"{word}"' for word in question.words)


def _tagged(question: Question) -> str:
    return f'content:"{question.words[0]}" AND tags:"{question.tag}"'


# kind of question, what it is, the floors that an engineer would write, the goal as a ratio or a time
SEARCHES: tuple[tuple[str, str, tuple[tuple[str, Match], ...], str], ...] = (
    ("rare", "one rare word", (("AND", _every),), "ratio"),
    ("two", "two words of a note", (("AND", _every),), "ratio"),
    ("tagged", "rare word + tag", (("AND", _tagged),), "ratio"),
    ("eight", "eight words of a note", (("AND", _every), ("OR", _any)), "time"),
    ("asked", "eight words, two foreign", (("AND", _every), ("OR", _any)), "time"),
)


def _searching(sizes: Sizes) -> None:
    count = sizes.pick(100_000, 1_000)
    rounds, ops = sizes.pick(6, 2), sizes.pick(60, 25)
    ours, floor = stores.loaded(count)
    lines = []
    raw = Raw(floor)
    with open_ours(ours) as hold:
        for kind, what, floors, goal in SEARCHES:
            asked = corpus.questions(kind, count, rounds * ops)
            ways: dict[str, Work] = {"ours": _searcher(hold, asked)}
            for name, match in floors:
                ways[name] = _raw_searcher(raw, asked, match)
            found = in_turns(ways, rounds, ops)
            hits = {name: _hits(way, asked) for name, way in ways.items()}
            for name, _ in floors:
                mine, least = found["ours"], found[name]
                if goal == "ratio":
                    bar = verdict(mine.p50 / least.p50, SEARCH_WALL, f"≤ {SEARCH_WALL}x")
                else:
                    bar = verdict(mine.p50, EIGHT_WORDS, f"≤ {span(EIGHT_WORDS)}")
                line = _line(f"{what} / {name}", mine, least, bar)
                said = "" if goal == "time" and name != "OR" else bar  # the same figure of ours misses once, not twice
                compare(f"search: {what}, of {count:,}", mine.p50, f"FTS5, {name}", least.p50, said)
                lines.append([*line, *(f"{share:.2f}" for share in (*hits["ours"], *hits[name]))])
    raw.close()
    heads = (*HEADS, "ours hit@10", "hit@5", "floor hit@10", "hit@5")
    table(f"Searching {count:,} notes of one session (floor: FTS5, bm25, ten best, joined)", heads, lines)


def _searcher(hold: Limpet, asked: list[Question]) -> Work:
    calls = [
        {"query": question.text, "limit": 10} | ({"tags": [question.tag]} if question.tag else {}) for question in asked
    ]

    def search(at: int) -> list[int]:
        answer = hold.call("search_notes", calls[at])
        shown = [*answer["notes"], *answer.get("related", [])]
        return [int(note["id"].removeprefix("note_")) - stores.BEGAN for note in shown]

    return search


def _raw_searcher(raw: Raw, asked: list[Question], match: Match) -> Work:
    matches = [match(question) for question in asked]
    return lambda at: [row[0] - 1 for row in raw.search(matches[at])]


def _hits(way: Work, asked: list[Question]) -> tuple[float, float]:
    """The share of questions whose note is among the ten that came back, and among the first five of them."""
    ten = five = 0
    for at, question in enumerate(asked):
        shown = way(at)
        assert isinstance(shown, list)
        ten += question.source in shown[:10]
        five += question.source in shown[:5]
    return ten / len(asked), five / len(asked)


# --- reading ----------------------------------------------------------------------------------------------------------


def _reading(sizes: Sizes) -> None:
    count = sizes.pick(100_000, 1_000)
    ours, floor = stores.loaded(count)
    text = re.sub(r"\s+", " ", " ".join(note.content for note in corpus.notes(100)))[:PAD_CHARS]
    raw = Raw(floor)
    raw.con.execute("INSERT OR REPLACE INTO pads VALUES (?, ?, 1, ?)", (SESSION, text, stores.BEGAN))
    sql = "SELECT content, version, updated_at FROM pads WHERE key = ?"
    with open_ours(ours) as hold:
        hold.call("write_notepad", {"content": text})
        ways: dict[str, Work] = {
            "ours": lambda at: hold.call("read_notepad", {}),
            "floor": lambda at: raw.con.execute(sql, (SESSION,)).fetchall(),
        }
        found = in_turns(ways, sizes.pick(10, 3), sizes.pick(2_000, 200))
    raw.close()
    mine, least = found["ours"], found["floor"]
    goal = verdict(mine.p50 / least.p50, PAD_WALL, f"≤ {PAD_WALL:.0f}x")
    compare(f"read_notepad beside {count:,} notes", mine.p50, "a row by primary key", least.p50, goal)
    title = f"Reading a notepad of {PAD_CHARS:,} characters beside {count:,} notes (floor: one row by primary key)"
    table(title, HEADS, [_line("read_notepad", mine, least, goal)])
