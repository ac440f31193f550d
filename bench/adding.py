"""Writing in one process: notes, memory and imports on real texts, each beside the same work by hand; and which repeats
a write names."""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from bench import corpus, stores
from bench.corpus import Note
from bench.figures import MORE, alone, compare
from bench.measure import Sample, Sizes, Work, in_turns, ratio, span, syncs, table, verdict
from bench.stores import Raw, export_of, open_ours
from limpet.api import Limpet
from limpet.memory import corrections
from limpet.recall.duplicates import as_long, bag, same_words

ADD_CPU, ADD_PAGES, IMPORT_RATE, REPLACED = 2.0, 14.0, 20_000, 0.7
FIRST = 50  # adds of a process that has not seen a word yet
KEYS = 1_000  # of memory
FRAME = 4_096 + 24  # bytes of one page in the log
RAW, BY_HAND = "a durable insert with FTS5, by hand", "rows and FTS5 by hand, in one transaction"


def run(sizes: Sizes) -> None:
    for count in _counts(sizes):
        stores.loaded(count)
    _adding(sizes)
    _other_writes(sizes)
    _repeats(sizes)
    _importing(sizes)
    _syncing(sizes)


def _counts(sizes: Sizes) -> tuple[int, ...]:
    return (300, 1_000) if sizes.quick else (1_000, 10_000, 100_000)


# --- adding -----------------------------------------------------------------------------------------------------------


class Counted:
    """A way to write, and how many pages it wrote: into the log, and from there into the database."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.bytes = 0
        self.calls = 0

    def __call__(self, at: int) -> None:
        before = written()
        self._work(at)
        self.bytes += written() - before
        self.calls += 1

    @property
    def pages(self) -> float:
        return self.bytes / FRAME / max(1, self.calls)


def written() -> int:
    """Bytes this process has given to the system to write; 0 where it does not tell."""
    try:
        return int(re.findall(r"wchar: (\d+)", Path("/proc/self/io").read_text())[0])
    except (OSError, IndexError):
        return 0


def _adding(sizes: Sizes) -> None:
    lines = []
    rounds, ops = sizes.pick(10, 3), sizes.pick(128, 64)
    for count in _counts(sizes):
        lines.append(_add_line(count, 1, FIRST, f"the first {FIRST} of a process, at {count:,}"))
        lines.append(_add_line(count, rounds, ops, f"add_note at {count:,}"))
    heads = ("what", "ours CPU", "floor CPU", "CPU", "goal", "pages", "floor", "goal", "ours p50", "floor p50", "p99")
    table("Adding a note (survives a power cut, both sides)", heads, lines)


_used: dict[int, int] = {}  # notes that were added to a loaded store


def _fresh(count: int, needed: int) -> list[Note]:
    """Notes that a loaded store does not have: one that says the same again is not added."""
    first = count + _used.get(count, 0)
    _used[count] = _used.get(count, 0) + needed
    return corpus.notes(first + needed)[first:]


def _add_line(count: int, rounds: int, ops: int, what: str) -> list[str]:
    fresh = _fresh(count, (rounds + 1) * ops)
    ours, floor = stores.loaded(count)
    raw = Raw(floor)
    with open_ours(ours) as hold:
        ways: dict[str, Work] = {"ours": _adder(hold, fresh), "floor": lambda at: raw.add(fresh[at])}
        measured = in_turns(ways, rounds, ops)
        pages = {name: _pages(way, range(rounds * ops, (rounds + 1) * ops)) for name, way in ways.items()}
    raw.close()
    mine, least = measured["ours"], measured["floor"]
    cpu = verdict(mine.cpu / least.cpu, ADD_CPU, f"≤ {ADD_CPU:.0f}x")
    compare(f"{what}, CPU", mine.cpu, RAW, least.cpu, cpu)
    compare(what, mine.p50, RAW, least.p50)
    few = verdict(pages["ours"], ADD_PAGES, f"≤ {ADD_PAGES:.0f}") if pages["ours"] else "not measured"
    compare(f"{what}, pages written", pages["ours"], RAW, pages["floor"], few, show="{:.1f}".format)
    shown = [f"{pages[name]:.1f}" for name in ("ours", "floor")]
    return [what, *_cpu(mine, least), cpu, *shown, few, span(mine.p50), span(least.p50), span(mine.p99)]


def _cpu(mine: Sample, least: Sample) -> list[str]:
    return [span(mine.cpu), span(least.cpu), ratio(mine.cpu, least.cpu)]


def _pages(way: Work, numbers: range) -> float:
    counted = Counted(way)
    for number in numbers:
        counted(number)
    return counted.pages


def _adder(hold: Limpet, fresh: list[Note]) -> Work:
    return lambda at: hold.call("add_note", {"content": fresh[at].content, "tags": fresh[at].tags})


def _other_writes(sizes: Sizes) -> None:
    """A note with words of correction, which is compared with others, one without, and memory."""
    count = sizes.pick(10_000, 1_000)
    rounds, ops = sizes.pick(6, 2), sizes.pick(60, 20)
    fresh = _fresh(count, 4 * rounds * ops)
    cued = [note for note in fresh if corrections._correction(note.content) is not None]
    plain = [note for note in fresh if corrections._correction(note.content) is None]
    share = len(cued) / len(fresh)
    ours, floor = stores.loaded(count)
    raw = Raw(floor)
    most = min(rounds * ops, len(cued), len(plain))
    rounds = max(1, most // ops)
    with open_ours(ours) as hold:
        for at, note in enumerate(corpus.notes(KEYS)):
            hold.call("write_memory", {"key": f"key{at}", "content": note.content})
        ways: dict[str, Work] = {
            "a note with a word of correction": _adder(hold, cued),
            "a note without": _adder(hold, plain),
            f"write_memory, a new text for one of {KEYS:,} keys": _rewriter(hold, plain),
            "floor": lambda at: raw.add(plain[at]),
        }
        measured = in_turns(ways, rounds, min(ops, most))
    raw.close()
    least = measured.pop("floor")
    lines = [[name, *_cpu(mine, least), span(mine.p50), span(mine.p99)] for name, mine in measured.items()]
    for name, mine in measured.items():
        compare(f"{name}, CPU", mine.cpu, RAW, least.cpu)
    heads = ("what", "ours CPU", "floor CPU", "CPU", "ours p50", "p99")
    table(f"Other writes beside {count:,} notes ({share:.0%} of the texts have a word of correction)", heads, lines)


def _rewriter(hold: Limpet, fresh: list[Note]) -> Work:
    return lambda at: hold.call("write_memory", {"key": f"key{at * 7 % KEYS}", "content": fresh[at].content})


# --- repeats ----------------------------------------------------------------------------------------------------------


def _repeats(sizes: Sizes) -> None:
    """Which repeats of stored notes a write names."""
    count, tried = sizes.pick(10_000, 1_000), sizes.pick(300, 60)
    ours, _ = stores.loaded(count)
    path = stores.folder("repeats") / "store.db"
    shutil.copy(ours, path)
    chance = random.Random(11)
    notes = [note for note in corpus.notes(count) if len(note.content.split()) >= 6]
    changes: tuple[tuple[str, Callable[[str], str], float], ...] = (
        ("the same in other case and spaces", lambda text: f" {text.upper()} ", 1.0),
        ("with other numbers", _renumbered, 1.0),
        ("one word left out", lambda text: _changed(text, chance, 1, 0), REPLACED),
        ("one word put in", lambda text: _changed(text, chance, 0, 1), REPLACED),
        ("one word replaced", lambda text: _changed(text, chance, 1, 1), REPLACED),
    )
    lines = []
    with open_ours(path) as hold:
        for what, change, least in changes:
            named = asked = 0
            while asked < tried:
                text = chance.choice(notes).content
                repeat = change(text)
                if repeat != text and as_long(text, repeat) and (least == 1.0 or same_words(bag(text), bag(repeat))):
                    asked += 1
                    answer = hold.call("add_note", {"content": repeat}, session="another")
                    named += bool(answer.keys() & {"duplicate_of", "similar_to"})
                    hold.call("delete_note", {"id": answer["note_id"]})
            goal = verdict(-named / asked, -least, f"≥ {least:.0%}")
            alone(f"repeats that a write names: {what}", f"{named / asked:.0%}", goal)
            lines.append([what, f"{named} of {asked}", goal])
    table(f"Repeats of {count:,} notes that a write names", ("how they differ", "named", "goal"), lines)


def _renumbered(text: str) -> str:
    """With other numbers, as the same note of another day has; the same where it has none."""
    other = re.sub(r"\b\d+\b", lambda number: str(int(number[0]) + 1), text)
    return other if same_words(bag(text), bag(other)) else text


def _changed(text: str, chance: random.Random, less: int, more: int) -> str:
    told = text.split()
    at = chance.randrange(len(told))
    return " ".join(told[:at] + [chance.choice(corpus.notes(500)[at % 500].content.split())] * more + told[at + less :])


# --- importing --------------------------------------------------------------------------------------------------------


def _importing(sizes: Sizes) -> None:
    count = sizes.pick(20_000, 1_000)
    notes = corpus.notes(count)
    lines = [*export_of(notes)]
    rates: dict[str, list[tuple[float, float]]] = {"ours": [], "floor": []}
    for _ in range(sizes.pick(3, 1)):
        place = stores.folder("imports")
        raw = Raw(place / "floor.db")
        rates["floor"].append(_rate(count, lambda raw=raw: raw.load(notes)))  # type: ignore[misc]
        raw.close()
        with open_ours(place / "ours.db") as hold:
            rates["ours"].append(_rate(count, lambda hold=hold: hold.import_lines(lines)))  # type: ignore[misc]
    wall, cpu = zip(*(tuple(map(max, zip(*rates[who], strict=True))) for who in ("ours", "floor")), strict=True)
    goal = verdict(-wall[0], -IMPORT_RATE, f"≥ {IMPORT_RATE:,}/s")
    compare(
        f"import of {count:,} notes",
        wall[0],
        "rows and FTS5 by hand",
        wall[1],
        goal,
        show="{:,.0f}/s".format,
        better=MORE,
    )
    shown = [
        [who, f"{wall[at]:,.0f}/s", f"{cpu[at]:,.0f} a CPU second", goal if who == "ours" else ""]
        for at, who in enumerate(rates)
    ]
    table(f"Importing {count:,} notes (ours: from JSON, checked, with history)", ("who", "notes", "CPU", "goal"), shown)


def _rate(count: int, work: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return count / (time.perf_counter() - wall), count / (time.process_time() - cpu)


# --- syncs ------------------------------------------------------------------------------------------------------------


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
