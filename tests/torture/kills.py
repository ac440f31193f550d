"""kill -9 in the middle of writing, through every door: what was acknowledged is there, and the store is sound."""

from __future__ import annotations

import http.client
import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from doors.mcp_client import HTTP
from journeys.stdio import Server
from torture.child import mixed
from torture.kit import PROJECT, Outcome, Tally, acknowledged, digest, pipes, surroundings, verify
from torture.lanes import LANES, Forked, Made, Share, in_memory, judged, spread

Lines = list[tuple[str, ...]]  # what was acknowledged: note ID HASH, output ID HASH, line WORDS
Kill = Callable[[str, str, random.Random], tuple[int, Lines]]  # how many were killed, and what they had said
Look = Callable[..., None]  # at a store: what was acknowledged in it, and what is not as it should be
STORE_KILLS = 100  # so many on one store: opening it must not become what takes the time


def again_and_again(kill: Kill, each: int, share: Share, look: Look = verify) -> Made:
    """Kill about `share.cases` processes, `each` or fewer at a time, and look after every time."""
    chance, tally = random.Random(share.seed), Tally()
    numbers = {"kills": 0, "acknowledged": 0}
    told: Lines = []
    home, since, at = share.folder, STORE_KILLS, 0
    while numbers["kills"] < share.cases:
        if since >= STORE_KILLS:
            home, since, told = share.folder / f"store{at}", 0, []
            home.mkdir()
            judged(partial(look, home / "limpet.db", []), tally)  # which makes it
        done, fresh = kill(str(home / "limpet.db"), f"run{at}", chance)
        told += fresh
        at, since = at + 1, since + each
        numbers["kills"] += done
        numbers["acknowledged"] += len(fresh)
        last = since >= STORE_KILLS or numbers["kills"] >= share.cases
        judged(partial(look, home / "limpet.db", told if last else fresh, check=last), tally)
        if last:
            shutil.rmtree(home)
        if sum(tally.counts.values()) > 100:
            break  # it is broken; the rest of the day would say so again and again
    return Made(tally.counts, tally.words, numbers)


def killed(folder: Path, kills: int, kill: Kill, *, each: int, lanes: int = LANES, look: Look = verify) -> Outcome:
    one = partial(again_and_again, kill, each, look=look)
    tally, numbers = spread(one, folder, kills, most=kills, lanes=lanes)
    if not numbers["acknowledged"]:
        tally.miss("nothing acknowledged")
    cases = f"{numbers['kills']:,} kills, {numbers['acknowledged']:,} acknowledged"
    return tally.outcome(cases, "lost", "corrupt", "crashed")


def _library(store: str, name: str, chance: random.Random) -> tuple[int, Lines]:
    """One to three writers on one store. Each is killed at a moment of its own while the next ones go on.

    Half of them at any moment from their birth, half soon after something was acknowledged.
    """
    writers = [Forked(partial(mixed, store, f"{name}w{n}", "")) for n in range(chance.choice((1, 1, 2, 3)))]
    lines: Lines = []
    for writer in writers:
        if chance.random() < 0.5:
            writer.line()
        time.sleep(chance.uniform(0.0, 0.080))
        said, _ = writer.end(signal.SIGKILL)
        lines += acknowledged(said)
    return len(writers), lines


def library(folder: Path, kills: int) -> Outcome:
    """Most in memory, where a writer is never at rest; some on the disk, where it mostly waits for a sync."""
    with in_memory(folder) as memory:
        tally, numbers = Tally(), {"kills": 0, "acknowledged": 0}
        for place, part, lanes in ((memory, kills - kills // 5, 3), (folder, kills // 5, 3)):
            if not part:
                continue
            found, more = spread(partial(again_and_again, _library, 3), place, part, most=part, lanes=lanes)
            tally.absorb(found.counts, found.words)
            numbers = {name: numbers[name] + more[name] for name in numbers}
    return tally.outcome(
        f"{numbers['kills']:,} kills, one in five on the disk, {numbers['acknowledged']:,} acknowledged",
        "lost",
        "corrupt",
        "crashed",
    )


def _stdio(store: str, name: str, chance: random.Random) -> tuple[int, Lines]:
    """Calls are piled up, so that the server is always in the middle of one."""
    server = Server(store, "--session", name)
    texts = {}
    for number in range(100):
        text = f"{name} {number}"
        texts[server.ask("tools/call", {"name": "add_note", "arguments": {"content": text}})] = text
    first = server.read()
    time.sleep(chance.uniform(0.003, 0.040))
    server.process.send_signal(signal.SIGKILL)
    out, _ = server.process.communicate(timeout=60)
    replies = [first, *map(json.loads, out.split(b"\n")[:-1])]
    ids = {str(reply["result"]["structuredContent"]["note_id"]): texts[reply["id"]] for reply in replies}
    return 1, [("note", id, digest(text)) for id, text in ids.items()]


def stdio(folder: Path, kills: int) -> Outcome:
    return killed(folder, kills, _stdio, each=1)


def _cli(store: str, name: str, chance: random.Random) -> tuple[int, Lines]:
    """Four commands at once. The first ends in peace and shows how long one takes here; the others are killed."""
    started: list[tuple[subprocess.Popen[bytes], str]] = []
    told: Lines = []
    cut = 0
    began, took = time.monotonic(), 0.0
    here = surroundings() | {"LIMPET_STORE": store, "LIMPET_PROJECT": PROJECT}
    for number in range(4):
        text = f"{name} {number}"
        command = [sys.executable, "-m", "limpet", "--session", name, "--json", "note", "add", text]
        process = subprocess.Popen(command, **(pipes() | {"env": here}))  # type: ignore[call-overload]
        started.append((process, text))
        if not number:
            process.wait(60)
            took, began = time.monotonic() - began, time.monotonic()
    for process, text in started:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0, took * chance.uniform(0.3, 2.5) - (time.monotonic() - began)))
        process.send_signal(signal.SIGKILL)
        out, _ = process.communicate(timeout=60)
        cut += process.returncode == -signal.SIGKILL  # the others were through before it came
        if out.endswith(b"\n"):  # it was said, whatever became of the process afterwards
            told.append(("note", str(json.loads(out)["note_id"]), digest(text)))
    return cut, told


def cli(folder: Path, kills: int) -> Outcome:
    return killed(folder, kills, _cli, each=3, lanes=1 if kills < 20 else 2)


def serve(store: str, name: str) -> tuple[subprocess.Popen[bytes], str]:
    """Our HTTP server in a process of its own, without a token; and where it is."""
    command = [sys.executable, "-c", HTTP, store, "full", name, ""]
    process: subprocess.Popen[bytes] = subprocess.Popen(
        command,
        **(pipes() | {"stderr": subprocess.DEVNULL, "env": surroundings() | {"LIMPET_PROJECT": PROJECT}}),  # type: ignore[call-overload]
    )
    assert process.stdout is not None
    url = process.stdout.readline().decode().strip()
    assert url, "the server did not start"
    return process, urlsplit(url).netloc


def post(place: str, operation: str, body: bytes, kept: http.client.HTTPConnection | None = None) -> tuple[int, bytes]:
    line = kept or http.client.HTTPConnection(place, timeout=60)
    try:
        line.request("POST", f"/api/v1/operations/{operation}", body, {"Content-Type": "application/json"})
        reply = line.getresponse()
        return reply.status, reply.read()
    finally:
        if kept is None:
            line.close()


def _http(store: str, name: str, chance: random.Random) -> tuple[int, Lines]:
    process, place = serve(store, name)
    told: dict[str, str] = {}
    begun = threading.Event()

    def write(writer: int) -> None:
        for number in range(1_000):
            text = f"{name} {writer} {number}"
            try:
                status, answer = post(place, "add_note", json.dumps({"content": text}).encode())
                assert status == 200, answer
                told[str(json.loads(answer)["note_id"])] = digest(text)
                begun.set()
            except (OSError, http.client.HTTPException, ValueError):
                return  # the server is gone

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    begun.wait(60)
    time.sleep(chance.uniform(0.003, 0.040))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    for writer in writers:
        writer.join()
    return 1, [("note", id, wanted) for id, wanted in told.items()]


def http_door(folder: Path, kills: int) -> Outcome:
    return killed(folder, kills, _http, each=1)
