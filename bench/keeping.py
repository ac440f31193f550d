"""Big outputs: keeping one beside hashing, compressing and writing the same bytes, a slice of one, and the wrapper."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench import big, stores
from bench.big import MB
from bench.figures import compare, remark
from bench.measure import ROOT, Sample, Sizes, best, in_turns, ratio, span, table, verdict
from bench.stdio import Contestant, Server
from limpet.stores.shared.chunks import LEVEL

KEEP, SLICE_MS = 1.5, 1.0  # times the floor; milliseconds
WRAP = {"a trivial call": 2.5, "1 MB": 2.0, "10 MB": 1.7}  # times the direct call
SIZES = {"a trivial call": 0, "1 MB": MB, "10 MB": 10 * MB}


def run(sizes: Sizes) -> None:
    place = stores.folder("keeping")
    _keeping(place, sizes)
    _slicing(place, sizes)
    _wrapping(place, sizes)


# --- keeping ----------------------------------------------------------------------------------------------------------


def _keeping(place: Path, sizes: Sizes) -> None:
    zstd: Any = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    lines = []
    numbers = itertools.count()

    def new(text: str) -> str:
        """The text with a number written in blanks behind it: no text is kept twice, and JSON stays JSON."""
        return text + f"{next(numbers):b}".translate({48: " ", 49: "\n"})

    def floor(text: str) -> None:
        body = new(text).encode()
        hashlib.sha256(body).hexdigest()
        with open(place / "floor.bin", "wb") as file:
            file.write(zstd.compress(body, LEVEL))
            file.flush()
            os.fsync(file.fileno())

    with stores.open_ours(place / "ours.db") as hold:
        outputs = hold.session("bench").outputs
        for size in (MB, 10 * MB):
            for shape in big.SHAPES:
                text = big.text(shape, size)
                ways = {
                    "ours": lambda _, text=text: outputs.keep("bench", new(text)),
                    "floor": lambda _, text=text: floor(text),
                }
                found = in_turns(ways, sizes.pick(8, 3), max(1, sizes.pick(8 * MB, 3 * MB) // size))
                ours, least = found["ours"], found["floor"]
                goal = verdict(ours.p50 / least.p50, KEEP, f"≤ {KEEP:g}x")
                compare(f"keep {size // MB} MB of {shape}", ours.p50, "SHA-256, zstd, write, fsync", least.p50, goal)
                shown = [span(ours.p50), span(least.p50), ratio(ours.p50, least.p50), goal]
                lines.append([f"{size // MB} MB {shape}", *shown, span(ours.cpu), span(least.cpu)])
                hold.call("clear_outputs", {})  # what is pruned for want of room is not what is measured
    heads = ("what", "keep", "floor", "x floor", "goal", "CPU", "CPU of the floor")
    table("Keeping an output, with redaction and preview (floor: SHA-256, zstd, write and fsync)", heads, lines)


# --- a slice ----------------------------------------------------------------------------------------------------------


def _slicing(place: Path, sizes: Sizes) -> None:
    with stores.open_ours(place / "slice.db") as hold:
        session = hold.session("bench")
        text = big.text("log", 10 * MB)
        kept = session.outputs.keep("bench", text).output
        assert kept is not None
        path = place / "slice.txt"
        path.write_text(text, encoding="utf-8")
        middle = kept.lines // 2

        def reread(_: int) -> object:
            with open(path, encoding="utf-8") as file:
                return "".join(itertools.islice(file, middle - 1, middle + 49))

        ways = {
            "lines 100-150": lambda _: session.outputs.read(kept.id, lines="100-150"),
            "50 lines in the middle": lambda _: session.outputs.read(kept.id, lines=f"{middle}-{middle + 49}"),
            "the last 50 lines": lambda _: session.outputs.read(kept.id, lines="-50"),
            "reading a file up to its middle": reread,
        }
        found = in_turns(ways, sizes.pick(8, 3), 20)
    lines = []
    for name, sample in found.items():
        goal = "" if name.startswith("reading") else verdict(sample.p50 * 1e3, SLICE_MS, f"≤ {SLICE_MS:.0f} ms")
        if goal:
            least = found["reading a file up to its middle"]
            compare(f"of 10 MB: {name}", sample.p50, "reading a file up to its middle", least.p50, goal)
        lines.append([name, span(sample.p50), goal, span(sample.p99), span(sample.cpu)])
    table("A slice of a 10 MB output", ("what", "p50", "goal", "p99", "CPU"), lines)


# --- the wrapper ------------------------------------------------------------------------------------------------------


def _wrapping(place: Path, sizes: Sizes) -> None:
    command = Path(sys.executable).with_name("limpet")
    upstream = [sys.executable, str(ROOT / "bench" / "upstream.py")]
    contestants = [Contestant("direct", lambda path: upstream, "text")]
    if not command.exists():
        remark("The `limpet` command is not there: the wrapper is not measured.")
        return
    contestants.append(
        Contestant(
            "limpet wrap",
            lambda path: [str(command), "wrap", "--", *upstream],
            "text",
            lambda path: {"LIMPET_STORE": str(path)},
        )
    )
    if sizes.peers:
        from bench.peers.proxies import proxies

        contestants += proxies(upstream)
    servers = {one.name: Server(one, place / "wrap.db") for one in contestants}
    for server in servers.values():
        server.begin()
    lines = []
    for what, size in SIZES.items():
        found: dict[str, list[Sample]] = {name: [] for name in servers}
        ops = sizes.pick(300, 50) if size == 0 else sizes.pick(10, 3) if size == MB else sizes.pick(4, 2)
        for turn in range(sizes.pick(6, 2)):
            for name, server in list(servers.items())[:: 1 if turn % 2 == 0 else -1]:
                found[name].append(server.timed({"size": size}, ops))
        samples = {name: best(rounds) for name, rounds in found.items()}
        direct, wrapped = samples["direct"], samples["limpet wrap"]
        for name, sample in samples.items():
            goal = _goal(sample, direct, what) if name == "limpet wrap" else ""
            if name == "direct":
                compare(f"wrapped: {what}", wrapped.p50, "the direct call", sample.p50, _goal(wrapped, sample, what))
            elif name != "limpet wrap":
                compare(f"wrapped: {what}", wrapped.p50, name, sample.p50, peer=True)
            lines.append([what, name, span(sample.p50), ratio(sample.p50, direct.p50), goal, span(sample.p99)])
    for server in servers.values():
        server.close()
    heads = ("what", "way", "p50", "x direct", "goal", "p99")
    table("A call through the wrapper, to the last byte of the answer (every big answer is a new one)", heads, lines)


def _goal(wrapped: Sample, direct: Sample, what: str) -> str:
    return verdict(wrapped.p50 / direct.p50, WRAP[what], f"≤ {WRAP[what]:g}x")


if __name__ == "__main__":
    began = time.perf_counter()
    run(Sizes(quick=True, peers="--peers" in sys.argv))
    print(f"\n{time.perf_counter() - began:.0f} s")
