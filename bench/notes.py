"""Notes in one process: searching, and reading the notepad, each beside the same work by hand. `adding.py` writes."""

from __future__ import annotations

import re
from collections.abc import Callable

from bench import corpus, stores
from bench.corpus import Question
from bench.figures import MORE, compare, remark
from bench.measure import Sample, Sizes, Work, in_turns, ratio, span, table, verdict
from bench.stores import SESSION, Raw, open_ours
from limpet.api import Limpet
from limpet.memory import corrections
from limpet.model import NOTE
from limpet.store import Listing, Words

RECALL_CPU, PAD_WALL = 5e-3, 2.0
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


# kind of question, what it is, the floors that an engineer would write, the goal: processor time beside the first
SEARCHES: tuple[tuple[str, str, tuple[tuple[str, Match], ...], float], ...] = (
    ("rare", "one rare word", (("AND", _every),), 2.0),
    ("two", "two words of a note", (("AND", _every),), 1.5),
    ("tagged", "rare word + tag", (("AND", _tagged),), 2.0),
    ("eight", "eight words of a note", (("AND", _every), ("OR", _any)), 1.5),
)
# Notes that hold all of these words there need not be, so plain AND finds nothing: these are questions for recall.
ASKED = (("eight", "eight words of a note"), ("asked", "eight words, two foreign"))
SAME_HITS = 0.005  # of a share of hits: a note in two hundred


def _searching(sizes: Sizes) -> None:
    count = sizes.pick(100_000, 1_000)
    rounds, ops = sizes.pick(6, 2), sizes.pick(60, 25)
    ours, floor = stores.loaded(count)
    lines = []
    raw = Raw(floor)
    with open_ours(ours) as hold:
        for kind, what, floors, goal in SEARCHES:
            asked = corpus.questions(kind, count, rounds * ops)
            said = f"search: {what}, of {count:,}"
            lines += _search_lines(said, _searcher(hold, asked), raw, asked, floors, goal, rounds)
        hold._bounds = hold._bounds._replace(recall=hold._bounds.recall._replace(meaning=False))  # by words alone
        for kind, what in ASKED:
            asked = corpus.questions(kind, count, rounds * ops)
            said = f"recall: {what}, of {count:,}"
            lines += _search_lines(said, _recaller(hold, asked), raw, asked, (("OR", _any),), None, rounds)
        _where_it_goes(hold, count, rounds, ops)
    raw.close()
    heads = (*HEADS, "ours hit@10", "hit@5", "floor hit@10", "hit@5")
    table(f"Searching {count:,} notes of one session (floor: FTS5, bm25, ten best, joined)", heads, lines)


def _where_it_goes(hold: Limpet, count: int, rounds: int, ops: int) -> None:
    """What a search costs beside the index: so much of a miss is not its."""
    pages = [
        hold.store.entries.containing(hold.scope, Listing((NOTE,), limit=10), question.text, Words(()))
        for question in corpus.questions("rare", count, rounds * ops)
    ]
    ways: dict[str, Work] = {
        "read": lambda at: hold.call("list_notes", {"limit": 10}),
        "order": lambda at: corrections.newest_first(pages[at].entries),
    }
    found = in_turns(ways, rounds, ops)
    read, order = span(found["read"].cpu), span(found["order"].cpu)
    remark(
        f"Where the time of a search goes: listing ten notes (arguments, rows, checksums, JSON) takes {read} "
        f"of the processor, and looking for newer notes that correct older ones {order}; the rest is the index."
    )


def _search_lines(
    what: str,
    ours: Work,
    raw: Raw,
    asked: list[Question],
    floors: tuple[tuple[str, Match], ...],
    goal: float | None,
    rounds: int,
) -> list[list[str]]:
    """A line for each floor. The goal is one of processor time beside the first; without one, that of recall."""
    ways: dict[str, Work] = {"ours": ours}
    for name, match in floors:
        ways[name] = _raw_searcher(raw, asked, match)
    found = in_turns(ways, rounds, len(asked) // rounds)
    hits = {name: _hits(way, asked) for name, way in ways.items()}
    mine, lines = found["ours"], []
    for at, (name, _) in enumerate(floors):
        least, bar = found[name], ""
        if goal is None:
            bar = verdict(mine.cpu, RECALL_CPU, f"≤ {span(RECALL_CPU)}, CPU")
        elif at == 0:
            bar = verdict(mine.cpu / least.cpu, goal, f"≤ {goal}x, CPU")
        compare(f"{what}, CPU", mine.cpu, f"FTS5, {name}", least.cpu, bar)
        line = _line(f"{what} / {name}", mine, least, bar)
        lines.append([*line, *(f"{share:.2f}" for share in (*hits["ours"], *hits[name]))])
        if at == 0:
            enough = verdict(-hits["ours"][0], SAME_HITS - hits[name][0], "≥ theirs")
            show = "{:.3f}".format
            compare(f"{what}, hit@10", hits["ours"][0], f"FTS5, {name}", hits[name][0], enough, show=show, better=MORE)
    return lines


def _recaller(hold: Limpet, asked: list[Question]) -> Work:
    calls = [{"query": question.text, "kinds": ["notes"]} for question in asked]

    def recall(at: int) -> list[int]:
        answer = hold.call("recall", calls[at])
        return [int(hit["id"].removeprefix("note_")) - stores.BEGAN for hit in answer["hits"]]

    return recall


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
