"""One step of the growth curves, in a process of its own so that its memory can be told: fill a store, or measure it.

`python -m bench.growth_child load|measure <store> <entries> <seconds> <shape>`; what was found is printed as JSON. The
shape of a store is `many` sessions of a hundred notes, written years ago, or `one` of this week that holds them all.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import limpet
from bench import corpus
from bench.measure import cpu_of, resident
from limpet.api import Limpet
from limpet.model import NOTE, Entry, OutputDraft, Stamp
from limpet.window.messages import assistant, user

PROJECT, SEED = "grown", 7
MANY, ONE = "many", "one"
shape = sys.argv[5] if len(sys.argv) > 5 else MANY
BEGAN = 1_700_000_000_000 if shape == MANY else int(time.time()) // 86_400 * 86_400_000 - 2 * 86_400_000  # milliseconds
OUTPUTS_SHARE = 100  # entries for each kept output
PER_SESSION = 100  # notes of one session
TEXTS, AGAIN = 300_000, 20_000  # real ones, as many as there are, and those of which further ones are made
ROUNDS, OPS, FEWEST = 8, 50, 5  # of one kind in a round: so many, unless time is up; and at least so many
PAD_CHARS = 2_000
SMALL = 1_000  # entries of a project beside the one that grows


class Kept(NamedTuple):
    number: int
    text: str

    @property
    def key(self) -> str:
        return f"note_{BEGAN + self.number}"


def notes(count: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The first so many texts with their tags, one at a time: a million of them in a list would be a gigabyte."""
    known = corpus.real(min(count, TEXTS))
    words = [text.split() for text in known[:AGAIN]]
    heads, tails = [one[: len(one) // 2 + 1] for one in words], [one[len(one) // 2 :] for one in words]
    chance = random.Random(SEED)
    for number in range(count):
        if number < len(known):
            text = known[number]
        else:
            text = " ".join((*chance.choice(heads), *chance.choice(tails)))
            if number % 4 == 3:
                text += f" (ref {chance.getrandbits(32):08x})"
        yield text, tuple(corpus.TAGS[at % len(corpus.TAGS)] for at in (number, number // 7 + 3))


def session_of(number: int) -> str:
    return f"s{number // PER_SESSION}" if shape == MANY else "s0"


def entries(count: int) -> Iterator[Entry]:
    for number, (text, tags) in enumerate(notes(count)):
        at = BEGAN + number
        yield Entry(NOTE, f"note_{at}", session_of(number), text, tags, False, False, "agent", {}, 1, at, at)


def events(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        at = BEGAN + number
        made = {"seq": number + 1, "at": at, "by": "agent/library", "operation": "add_note"}
        made |= {"session": session_of(number), "kind": NOTE, "key": f"note_{at}", "version": 1}
        yield made | {"detail": {}, "before": None}


def opened(store: str) -> Limpet:
    return limpet.open(store, project=PROJECT, session="new")


def load(store: str, count: int) -> dict[str, Any]:
    """By the way that an import takes, in one transaction."""
    began = time.perf_counter()
    with opened(store) as hold:
        hold.store.load(hold.scope, entries(count), events(count))
        for first in range(0, count // OUTPUTS_SHARE, OUTPUTS_SHARE):
            numbers = range(first, min(first + OUTPUTS_SHARE, count // OUTPUTS_SHARE))
            drafts = [(OutputDraft("Bash"), f"output {number}\n".encode()) for number in numbers]
            hold.store.outputs.keep_all(hold.scope, drafts, Stamp("agent/bench", "keep", "new", BEGAN))
    return {"seconds": time.perf_counter() - began}


# --- measuring --------------------------------------------------------------------------------------------------------


def sample(count: int, wanted: int) -> list[Kept]:
    """Texts that are there, from all over the store. Those that name a number of their own come out most."""
    step = max(1, count // wanted)
    return [Kept(at, text) for at, (text, _) in enumerate(notes(count)) if at % step in (0, step - 1)]


def measure(store: str, count: int, seconds: float) -> dict[str, Any]:
    chance = random.Random(SEED)
    known = sample(count, 2 * ROUNDS * OPS)
    chance.shuffle(known)
    few, many = _questions(known, 2, chance), _questions(known, 8, chance)
    longest = [max(corpus.words_of(one.text), key=len, default="none") for one in known]
    with opened(store) as hold:
        # Vectors are made by questions, a few thousand each, and are measured elsewhere.
        hold._bounds = hold._bounds._replace(recall=hold._bounds.recall._replace(meaning=False))
        empty = _resident()
        ways = _ways(hold, known, few, many, longest, chance) | _beside(hold, chance)
        times, spent = _in_turns(ways, seconds, _spending(store))
        return {"times": times, "cpu": spent, "empty_mb": empty, "rss_mb": _resident()}


def _resident() -> float:
    held = resident(os.getpid())
    return held[0] if held else 0.0


def _questions(known: list[Kept], words: int, chance: random.Random) -> list[str]:
    made = []
    for one in known:
        found = [word for word in corpus.words_of(one.text) if len(word) >= corpus.COMMON_MIN_CHARS]
        if len(found) >= words:
            made.append(" ".join(found[at] for at in sorted(chance.sample(range(len(found)), words))))
    return made


def _ways(
    hold: Limpet, known: list[Kept], few: list[str], many: list[str], longest: list[str], chance: random.Random
) -> dict[str, Callable[[int], object]]:
    fresh = [f"{one.text} [{chance.getrandbits(48):012x}]" for one in known]
    session = hold.session("talk")
    session.notepad.write(" ".join(one.text for one in known[:20])[:PAD_CHARS])
    session.memory.write("style", "Short sentences, and every claim with its figure.")
    talk = [user("Port the parser, and say what you find.")]
    session.window.next(talk)

    def window(at: int) -> object:
        talk.extend((assistant(f"Step {at}: {known[at % len(known)].text}"), user("Go on.")))
        return session.window.next(talk)

    return {
        "add_note": lambda at: hold.call("add_note", {"content": fresh[at % len(fresh)], "tags": ["new"]}),
        "search_notes, a long word": lambda at: hold.call("search_notes", _asked(longest, at)),
        "search_notes, two words": lambda at: hold.call("search_notes", _asked(few, at)),
        "recall, eight words": lambda at: hold.call("recall", _asked(many, at)),
        "list_notes": lambda at: hold.call(
            "list_notes", {"limit": 10}, session=session_of(known[at % len(known)].number)
        ),
        "list_notes, every session": lambda at: hold.call("list_notes", {"limit": 10}),
        "list_notes, a tag": lambda at: hold.call("list_notes", {"limit": 10, "tag": _tag(at)}),
        "list_notes, one of two tags": lambda at: hold.call(
            "list_notes", {"limit": 10, "tags_any": [_tag(at), _tag(7)]}
        ),
        "list sessions": lambda at: hold.sessions(limit=10),
        "search_notes, a common word": lambda at: hold.call("search_notes", {"query": "the", "limit": 10}),
        "search_notes, two letters": lambda at: hold.call("search_notes", {"query": "zq", "limit": 10}),
        "search_memory, a common word": lambda at: hold.call("search_memory", {"query": "name"}),
        "list outputs": lambda at: hold.store.outputs.list(hold.scope, 10),
        "prune outputs": lambda at: hold.store.outputs.prune(hold.scope, now=BEGAN, max_age_ms=1, max_bytes=1 << 40),
        "read_notepad": lambda at: hold.call("read_notepad", {}, session="talk"),
        "window, next": window,
        "window, first of a session": lambda at: hold.session(session_of(known[at % len(known)].number)).context(),
    }


def _tag(at: int) -> str:
    return corpus.TAGS[at % len(corpus.TAGS)]


def _beside(hold: Limpet, chance: random.Random) -> dict[str, Callable[[int], object]]:
    """The same in a small project of the same store: what the others' entries cost those who never see them."""
    small = hold.elsewhere(hold.scope._replace(project="small"))
    small.store.load(small.scope, entries(SMALL), events(SMALL))
    known = sample(SMALL, SMALL)
    few, many = _questions(known, 2, chance), _questions(known, 8, chance)
    fresh = [f"{one.text} [{chance.getrandbits(48):012x}]" for one in known]
    return {
        "small: add_note": lambda at: small.call("add_note", {"content": fresh[at % SMALL], "tags": ["new"]}),
        "small: search_notes": lambda at: small.call("search_notes", _asked(few, at)),
        "small: recall": lambda at: small.call("recall", _asked(many, at)),
    }


def _asked(questions: list[str], at: int) -> dict[str, Any]:
    return {"query": questions[at % len(questions)], "limit": 10}


def _spending(store: str) -> Callable[[], float]:
    """What tells the processor time spent so far, here and by the server's processes that work for us."""
    if not store.startswith("postgresql://"):
        return time.process_time
    import psycopg  # late: what a store in a file takes is measured without it

    con = psycopg.connect(store, autocommit=True)

    def spent() -> float:
        ours = con.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'limpet'").fetchall()
        return time.process_time() + sum(cpu_of(row[0]) or 0.0 for row in ours)

    return spent


Rounds = dict[str, list[list[float]]]


def _in_turns(
    ways: dict[str, Callable[[int], object]], seconds: float, spending: Callable[[], float]
) -> tuple[Rounds, dict[str, list[float]]]:
    """Rounds in which each way has its turn, so that a busy moment of the machine does not fall on one alone.

    The times of each call, and the processor time of one, which a busy machine changes least.
    """
    found: Rounds = {name: [] for name in ways}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for work in ways.values():
        work(0)  # what a process does once
    for turn in range(ROUNDS):
        for name, work in ways.items():
            before = spending()
            found[name].append(_block(work, 1 + turn * OPS, seconds / ROUNDS))
            spent[name].append((spending() - before) / len(found[name][-1]))
    return found, spent


def _block(work: Callable[[int], object], first: int, seconds: float) -> list[float]:
    until = time.perf_counter() + seconds
    times: list[float] = []
    for at in range(first, first + OPS):
        began = time.perf_counter()
        work(at)
        done = time.perf_counter()
        times.append(done - began)
        if done > until and len(times) >= FEWEST:
            break
    return times


if __name__ == "__main__":
    what, store, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    print(json.dumps(load(store, count) if what == "load" else measure(store, count, float(sys.argv[4]))))
