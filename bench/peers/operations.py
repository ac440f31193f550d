"""Other tools that keep texts for agents, beside ours in the same rounds: adding, searching, starting, and big results.

Libraries are driven inside a process of their own and servers over pipes, ours in both ways. Durability is not the same
for all, so every name says how often it syncs an add, counted with strace where that is there.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Sequence
from shutil import which
from typing import Any, NamedTuple

from bench import big, corpus
from bench.figures import MORE, compare, remark
from bench.measure import OUT, Sizes, percentile, ratio, resident, span, table
from bench.peers import roll
from bench.peers.sides import InProcess, OverPipes, Peer, Side, folder_for
from limpet.text import tokens

LOADING = 240.0  # seconds that a peer gets to be filled
SEARCHING = 4.0  # seconds that the searches of a round may take
COUNTS = (1_000, 10_000)
WARM, TRIED = 20, 200  # texts from which it is told how long that would take
READING = (
    "LangGraph, mem0 and mcp-memory-service have hashed words for vectors, in place of a model; what these find is not "
    "compared. server-memory and deepagents take several words as one string and answer with everything that holds it; "
    "ours answers with the ten best, context-mode with fewer. So a word that is in many texts is found most often by "
    "those that answer with all of them."
)
KINDS = {"rare": "one rare word", "eight": "eight words"}


class Score(NamedTuple):
    """Seconds of the best round, the share of questions whose text came back, and the tokens of an answer."""

    add: float
    search: dict[str, float]
    hits: dict[str, float]
    tokens: dict[str, float]
    resident: float  # megabytes, with the texts in


def run(sizes: Sizes) -> None:
    if not sizes.peers:
        print("\nNot measured: other tools are fetched only when they are asked for (make bench PEERS=1).")
        return
    for ours, peers in ((roll.library(), list(roll.libraries())), (roll.server(), list(roll.servers()))):
        synced = {peer.name: _syncs(peer) for peer in (ours, *peers)}
        for count in (200,) if sizes.quick else COUNTS:
            _storing(ours, peers, synced, count, sizes)
        if ours.server:
            _starting(ours, peers, sizes)
        else:
            _keeping(ours, peers, sizes)
    remark(READING)


# --- adding and searching ---------------------------------------------------------------------------------------------


def _storing(ours: Peer, peers: Sequence[Peer], synced: dict[str, str], count: int, sizes: Sizes) -> None:
    texts = [f"[{at:06}] {note.content}" for at, note in enumerate(corpus.notes(count + 1_000))]
    sides: dict[str, tuple[Peer, Side]] = {}
    for peer in (ours, *peers):
        side = peer.start(folder_for(f"{peer.name} {count}"), ())
        if _loaded(side, texts[:count]):
            sides[peer.name] = (peer, side)
        else:
            remark(f"{peer.name}: not measured with {count:,} texts, it takes over {LOADING:.0f} s to be filled.")
            side.close()
    scores = _in_turns(sides, texts, count, sizes)
    for _, side in sides.values():
        side.close()
    _tell(ours, scores, {name: peer for name, (peer, _) in sides.items()}, synced, count)


def _loaded(side: Side, texts: Sequence[str]) -> bool:
    side.load(texts[:WARM])  # which also waits until it has started
    began = time.perf_counter()
    side.load(texts[WARM:TRIED])
    if (time.perf_counter() - began) * len(texts) / (TRIED - WARM) > LOADING:
        return False
    for first in range(TRIED, len(texts), 1_000):
        side.load(texts[first : first + 1_000])
        if time.perf_counter() - began > LOADING:
            return False
    return True


def _in_turns(sides: dict[str, tuple[Peer, Side]], texts: Sequence[str], count: int, sizes: Sizes) -> dict[str, Score]:
    """Every side does the same adds and the same searches in each round, one after the other."""
    rounds, ops = sizes.pick(3, 2), sizes.pick(20, 5)
    asked = {kind: corpus.questions(kind, count, rounds * ops) for kind in KINDS}
    adds: dict[str, list[float]] = {name: [] for name in sides}
    finds: dict[str, dict[str, list[float]]] = {name: {kind: [] for kind in KINDS} for name in sides}
    hits: dict[str, dict[str, list[bool]]] = {name: {kind: [] for kind in KINDS} for name in sides}
    spent: dict[str, dict[str, list[int]]] = {name: {kind: [] for kind in KINDS} for name in sides}
    for turn in range(rounds):
        mine = slice(turn * ops, (turn + 1) * ops)
        for name, (peer, side) in sides.items():
            adds[name].append(percentile(side.add(texts[count:][mine]), 0.5))
            for kind, questions in asked.items():
                chosen = questions[mine][: _most(peer, side, questions[0].text, ops)]
                found = side.search([question.text for question in chosen])
                finds[name][kind].append(percentile([seconds for seconds, _ in found], 0.5))
                shown = zip(chosen, found, strict=True)
                hits[name][kind] += [f"[{question.source:06}]" in said for question, (_, said) in shown]
                spent[name][kind] += [tokens.count(said) for _, said in found]
    return {
        name: Score(
            min(adds[name]),
            {kind: min(times) for kind, times in finds[name].items()},
            {kind: sum(one) / len(one) for kind, one in hits[name].items()},
            {kind: sum(one) / len(one) for kind, one in spent[name].items()},
            (resident(side.pid) or (0.0, 0.0))[0],
        )
        for name, (_, side) in sides.items()
    }


def _most(peer: Peer, side: Side, query: str, ops: int) -> int:
    """How many searches there is time for, after a first one; one that allows only a few a minute begins anew."""
    if peer.once and isinstance(side, OverPipes):
        side.again()
    ((seconds, _),) = side.search([query])
    return max(2, min(peer.once or ops, ops, int(SEARCHING / seconds)))


def _tell(ours: Peer, scores: dict[str, Score], peers: dict[str, Peer], synced: dict[str, str], count: int) -> None:
    mine = scores[ours.name]
    lines = []
    for name, one in scores.items():
        found = [f"{one.hits[kind]:.2f}" if peers[name].finds else "-" for kind in KINDS]
        found += [f"{one.tokens[kind]:,.0f}" for kind in KINDS]
        times = [
            text for kind in KINDS for text in (span(one.search[kind]), ratio(mine.search[kind], one.search[kind]))
        ]
        lines.append(
            [name, synced[name], span(one.add), ratio(mine.add, one.add), *times, *found, f"{one.resident:.0f} MB"]
        )
        if name == ours.name:
            continue
        named = f"{name} ({synced[name]})"
        where = f"{ours.name}: {{}}, {count:,} texts".format
        compare(where("add"), mine.add, named, one.add, peer=True)
        for kind, words in KINDS.items():
            compare(where(f"search for {words}"), mine.search[kind], name, one.search[kind], peer=True)
            if peers[name].finds:
                hit, there = mine.hits[kind], one.hits[kind]
                what = where(f"found by {words}")
                compare(what, hit, name, there, show="{:.0%}".format, better=MORE, peer=True)
                if hit and there:  # an answer without the text is cheap, and of no use
                    read, theirs = mine.tokens[kind] / hit, one.tokens[kind] / there
                    what = where(f"tokens read for each text found by {words}")
                    compare(what, read, name, theirs, show="{:,.0f}".format, peer=True)
        compare(where("resident memory"), mine.resident, name, one.resident, show="{:.0f} MB".format, peer=True)
    heads = ("who", "durability", "add", "ours to it", "rare word", "ours to it", "eight words", "ours to it")
    more = ("hit, rare", "hit, eight", "tokens, rare", "tokens, eight", "memory")
    table(f"{count:,} texts, ours as {ours.name}", (*heads, *more), lines)


def _syncs(peer: Peer) -> str:
    """How often it syncs an add, in words."""
    strace = which("strace")
    if strace is None:
        return "syncs not counted"
    trace = OUT / "peer-trace.txt"
    trace.unlink(missing_ok=True)
    below = (strace, "-f", "-qq", "-o", str(trace), "-e", "trace=fsync,fdatasync,?sync_file_range,?msync")
    side = peer.start(folder_for(f"{peer.name} syncs"), below)
    texts = [f"[{at:06}] {note.content}" for at, note in enumerate(corpus.notes(45))]
    side.add(texts[:5])
    before = _counted(trace.read_text())
    side.add(texts[5:])
    syncs = (_counted(trace.read_text()) - before) / 40
    side.close()
    return "no sync" if not syncs else "1 sync an add" if syncs == 1 else f"{syncs:.2g} syncs an add"


def _counted(trace: str) -> int:
    return len(re.findall(r"\b(?:f(?:data)?sync|sync_file_range|msync)\(", trace))


# --- starting, weight and what a client must read ---------------------------------------------------------------------


def _starting(ours: Peer, peers: Sequence[Peer], sizes: Sizes) -> None:
    times: dict[str, list[float]] = {}
    weights: dict[str, float] = {}
    listed: dict[str, int] = {}
    for _ in range(sizes.pick(6, 2)):
        for peer in (ours, *peers):
            began = time.perf_counter()
            side: Any = peer.start(folder_for(f"{peer.name} start"), ())
            times.setdefault(peer.name, []).append(time.perf_counter() - began)
            weights[peer.name] = (resident(side.pid) or (0.0, 0.0))[0]
            listed[peer.name] = _read(side.server.ask("tools/list", {})["tools"])
            side.close()
    lines = []
    mine = min(times[ours.name])
    for name, found in times.items():
        shown = [span(min(found)), ratio(mine, min(found)), f"{weights[name]:.0f} MB", f"{listed[name]:,}"]
        lines.append([name, *shown, ratio(listed[ours.name], listed[name])])
        if name != ours.name:
            compare("from launch to tools/list, a new store", mine, name, min(found), peer=True)
            compare(
                "resident memory, idle", weights[ours.name], name, weights[name], show="{:.0f} MB".format, peer=True
            )
            compare(
                f"tokens of tools/list, {tokens.NAME}",
                listed[ours.name],
                name,
                listed[name],
                show="{:,}".format,
                peer=True,
            )
    heads = ("server", "launch to tools/list", "ours to it", "idle", "tokens of tools/list", "ours to it")
    table("Servers", heads, lines)


def _read(tools: Iterable[dict[str, Any]]) -> int:
    """Tokens of what a model is shown of the tools."""
    shown = [{key: tool.get(key) for key in ("name", "description", "inputSchema")} for tool in tools]
    return tokens.count(json.dumps(shown))


# --- big results ------------------------------------------------------------------------------------------------------


def _keeping(ours: Peer, peers: Sequence[Peer], sizes: Sizes) -> None:
    sides: dict[str, Any] = {peer.name: peer.start(folder_for(f"{peer.name} big"), ()) for peer in (ours, *peers)}
    lines = []
    for size in (big.MB, 10 * big.MB):
        text = big.text("log", size)
        middle = text.count("\n") // 2
        found: dict[str, list[tuple[float, float]]] = {}
        for turn in range(sizes.pick(6, 2) + 1):
            for name, side in sides.items():
                taken = _kept(side, text, middle)
                if taken and turn:  # the first time also imports what is imported once
                    found.setdefault(name, []).append(taken)
        best = {name: [min(column) for column in zip(*rounds, strict=True)] for name, rounds in found.items()}
        mine = best[ours.name]
        what = f"{size // big.MB} MB of a log"
        for name, one in best.items():
            each = [cell for at in (0, 1) for cell in (span(one[at]), ratio(mine[at], one[at]))]
            lines.append([what, name, *each])
            if name != ours.name:
                compare(f"keep {what}", mine[0], name, one[0], peer=True)
                compare(f"fifty lines from the middle of {what}", mine[1], name, one[1], peer=True)
    for side in sides.values():
        side.close()
    table("Big results", ("what", "who", "keep", "ours to it", "fifty lines of it", "ours to it"), lines)


def _kept(side: InProcess, text: str, middle: int) -> tuple[float, float] | None:
    """Seconds to keep a text and to read fifty lines of it; nothing from one that keeps no big texts."""
    kept = side.ask(do="keep", text=text)
    if kept is None:
        return None
    seconds, said = side.ask(do="part", name=kept[1], line=middle)
    assert len(said.split("\n")) >= 50, said[:200]
    return kept[0], seconds
