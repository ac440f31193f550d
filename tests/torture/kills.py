"""kill -9 in the middle of writing, through every door: what was acknowledged is there, and the store is sound."""

from __future__ import annotations

import http.client
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from doors.mcp_client import HTTP
from journeys.stdio import Server
from journeys.test_kills import kill_library
from torture.kit import PROJECT, SEED, Outcome, Tally, digest, judge, opened, pipes, sound, surroundings

Kill = Callable[[str, str, random.Random], dict[str, str]]


def again_and_again(folder: Path, kills: int, kill: Kill) -> Outcome:
    chance, tally = random.Random(SEED), Tally()
    store = folder / "holdfast.db"
    with opened(store):
        pass  # so that a process that is killed at once leaves a store
    told: dict[str, str] = {}
    for number in range(kills):
        fresh = kill(str(store), f"run{number}", chance)
        with opened(store) as hold:
            judge(hold, fresh, tally)
            hold.session().notepad.write(f"still writable after {number}")
            if number % 50 == 49:
                sound(hold, tally)
        told |= fresh
    with opened(store) as hold:
        judge(hold, told, tally)
        sound(hold, tally)
    if kills and not told:
        tally.miss("nothing acknowledged")
    return tally.outcome(f"{kills:,} kills, {len(told):,} acknowledged", "lost", "corrupt")


def _library(store: str, name: str, chance: random.Random) -> dict[str, str]:
    return kill_library(store, name, chance.uniform(0.003, 0.040))


def library(folder: Path, kills: int) -> Outcome:
    return again_and_again(folder, kills, _library)


def _stdio(store: str, name: str, chance: random.Random) -> dict[str, str]:
    """Calls are piled up, so that the server is always in the middle of one."""
    server = Server(store, "--project", PROJECT, "--session", name)
    texts = {}
    for number in range(100):
        text = f"{name} {number}"
        texts[server.ask("tools/call", {"name": "add_note", "arguments": {"content": text}})] = text
    first = server.read()
    time.sleep(chance.uniform(0.003, 0.040))
    server.process.send_signal(signal.SIGKILL)
    out, _ = server.process.communicate(timeout=60)
    replies = [first, *map(json.loads, out.split(b"\n")[:-1])]
    return {str(reply["result"]["structuredContent"]["note_id"]): digest(texts[reply["id"]]) for reply in replies}


def stdio(folder: Path, kills: int) -> Outcome:
    return again_and_again(folder, kills, _stdio)


def _cli(store: str, name: str, chance: random.Random) -> dict[str, str]:
    """Four commands at once. The first ends in peace and shows how long one takes here; the others are killed."""
    started, told = [], {}
    began, took = time.monotonic(), 0.0
    for number in range(4):
        text = f"{name} {number}"
        command = [sys.executable, "-m", "holdfast", "--store", store, "--project", PROJECT, "--session", name]
        process = subprocess.Popen([*command, "--json", "note", "add", text], **pipes())  # type: ignore[call-overload]
        started.append((process, text))
        if not number:
            process.wait(60)
            took, began = time.monotonic() - began, time.monotonic()
    for process, text in started:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0, took * chance.uniform(0.5, 2.5) - (time.monotonic() - began)))
        process.send_signal(signal.SIGKILL)
        out, _ = process.communicate(timeout=60)
        if out.endswith(b"\n"):  # it was said, whatever became of the process afterwards
            told[str(json.loads(out)["note_id"])] = digest(text)
    return told


def cli(folder: Path, kills: int) -> Outcome:
    rounds = max(1, kills // 3)
    made = again_and_again(folder, rounds, _cli)
    return made._replace(cases=made.cases.replace(f"{rounds:,} kills", f"{rounds * 3:,} kills", 1))


def serve(store: str, name: str) -> tuple[subprocess.Popen[bytes], str]:
    """Our HTTP server in a process of its own, without a token; and where it is."""
    command = [sys.executable, "-c", HTTP, store, "full", name, ""]
    process: subprocess.Popen[bytes] = subprocess.Popen(
        command,
        **(pipes() | {"stderr": subprocess.DEVNULL, "env": surroundings() | {"HOLDFAST_PROJECT": PROJECT}}),  # type: ignore[call-overload]
    )
    assert process.stdout is not None
    url = process.stdout.readline().decode().strip()
    assert url, "the server did not start"
    return process, urlsplit(url).netloc


def post(place: str, operation: str, body: bytes) -> tuple[int, bytes]:
    line = http.client.HTTPConnection(place, timeout=60)
    try:
        line.request("POST", f"/api/v1/operations/{operation}", body, {"Content-Type": "application/json"})
        reply = line.getresponse()
        return reply.status, reply.read()
    finally:
        line.close()


def _http(store: str, name: str, chance: random.Random) -> dict[str, str]:
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
    return told


def http_door(folder: Path, kills: int) -> Outcome:
    return again_and_again(folder, kills, _http)
