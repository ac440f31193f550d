"""Notes in one process: adding durably, searching, and reading the notepad, each beside the same work by hand."""

from __future__ import annotations

import re
from collections.abc import Callable

from bench import corpus, stores
from bench.corpus import Question
from bench.figures import compare
from bench.measure import Sample, Sizes, Work, in_turns, ratio, span, syncs, table, verdict
from bench.stores import SESSION, Raw, open_ours
from limpet.api import Limpet

ADD_WALL, ADD_CPU, ADD_CPU_MORE = 1.5, 1.2, 150e-6
SEARCH_WALL, EIGHT_WORDS, PAD_WALL = 1.5, 5e-3, 2.0
PAD_CHARS = 2_000
FIRST = 50  # adds of a process that has not seen a word yet
RAW = "a durable insert with FTS5, by hand"
HEADS = ("what", "ours p50", "floor p50", "wall", "goal", "ours p99", "floor p99", "ours CPU", "floor CPU", "CPU")


def run(sizes: Sizes) -> None:
    for count in _counts(sizes):
        stores.loaded(count)
    _searching(sizes)
    _reading(sizes)
    _adding(sizes)
    _syncing(sizes)


def _counts(sizes: Sizes) -> tuple[int, ...]:
    return (300, 1_000) if sizes.quick else (1_000, 10_000, 100_000)


def _line(what: str, ours: Sample, floor: Sample, goal: str) -> list[str]:
    shown = [span(part) for part in (ours.p99, floor.p99, ours.cpu, floor.cpu)]
    return [what, span(ours.p50), span(floor.p50), ratio(ours.p50, floor.p50), goal, *shown, ratio(ours.cpu, floor.cpu)]


# --- adding -----------------------------------------------------------------------------------------------------------


def _adding(sizes: Sizes) -> None:
    lines = []
    rounds, ops = sizes.pick(12, 3), sizes.pick(100, 40)
    for count in _counts(sizes):
        lines.append(_add_line(count, 1, FIRST, f"the first {FIRST} of a process, at {count:,}"))
        lines.append(_add_line(count, rounds, ops, f"add_note at {count:,}"))
    heads = (*HEADS, f"CPU goal ({ADD_CPU}x + {span(ADD_CPU_MORE)})")
    table("Adding a note (survives a power cut, both sides)", heads, lines)


def _add_line(count: int, rounds: int, ops: int, what: str) -> list[str]:
    fresh = corpus.notes(count + rounds * ops)[count:]
    ours, floor = stores.loaded(count)
    raw = Raw(floor)
    with open_ours(ours) as hold:
        found = in_turns({"ours": _adder(hold, fresh), "floor": lambda at: raw.add(fresh[at])}, rounds, ops)
    raw.close()
    mine, least = found["ours"], found["floor"]
    wall = verdict(mine.p50 / least.p50, ADD_WALL, f"≤ {ADD_WALL}x")
    allowed = ADD_CPU * least.cpu + ADD_CPU_MORE
    cpu = verdict(mine.cpu, allowed, f"≤ {span(allowed)}")
    compare(what, mine.p50, RAW, least.p50, wall)
    compare(f"{what}, CPU", mine.cpu, RAW, least.cpu, cpu)
    return [*_line(what, mine, least, wall), cpu]


def _adder(hold: Limpet, fresh: list[corpus.Note]) -> Work:
    return lambda at: hold.call("add_note", {"content": fresh[at].content, "tags": fresh[at].tags})


def _syncing(sizes: Sizes) -> None:
    lines = []
    for threads, each in ((1, sizes.pick(400, 40)), (8, sizes.pick(100, 20))):
        found = {}
        for who in ("floor", "ours"):
            path = stores.folder("syncs") / "store.db"
            counted = syncs(["-m", "bench.child", who, str(path), str(each), str(threads)])
            what = f"{who}, {threads} thread{'s' * (threads > 1)} x {each} adds"
            if counted is None:
                lines.append([what, "not measured (no strace)", "", "", ""])
                continue
            adds = threads * each
            log = sum(count for name, count in counted.items() if name.endswith("-wal")) / adds
            rest, found[who] = sum(counted.values()) - log * adds, log
            one = verdict(abs(log - 1), 0, "exactly 1") if threads == 1 else verdict(log, 0.999, "< 1")
            goal = "" if who == "floor" else one
            if who == "ours":
                title = f"syncs of the log an add, {threads} thread{'s' * (threads > 1)}"
                compare(title, log, RAW, found["floor"], goal, show="{:.3f}".format)
            lines.append([what, f"{log:.3f}", f"{rest:.0f}", f"{sum(counted.values()) / adds:.3f}", goal])
    heads = ("who", "of the log, an add", "of the database (checkpoints), in all", "all, an add", "goal")
    table("Syncs, counted with strace", heads, lines)


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
