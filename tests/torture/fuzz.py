"""Calls made of anything at all, through the library, stdio and HTTP. A refusal is an answer; a failure is not."""

from __future__ import annotations

import gc
import http.client
import json
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract.kit import FRAGMENTS
from journeys.stdio import Server
from limpet import errors
from limpet.catalogue.operation import Param
from limpet.catalogue.table import OPERATIONS
from limpet.recall import static_model
from operations.test_tools import CALLS
from torture.kills import post, serve
from torture.kit import Outcome, Tally, opened, sound
from torture.lanes import Made, Share, in_memory, spread

# One waits on purpose and one runs programs of its own accord: they have tests of their own.
LEFT_OUT = {"wait_for_sessions", "run_sandbox_code"}
NAMES = sorted(OPERATIONS.keys() - LEFT_OUT)
TEXTS = (
    *FRAGMENTS,
    *("", " ", "\0", "\ud800", "'; DROP TABLE entries; --", "a'b", '"', "../../etc/passwd", "/", "~", "\x1b]0;x\x07"),
    *(
        "<!-- limpet -->",
        "## Decisions",
        "(a+)+$",
        "[",
        "\\",
        "x" * 5_000,
        "note_1",
        "*",
        "-1",
        "1e999",
        "NaN",
        "%s{}",
    ),
)
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1,
    7,
    1 << 53,
    1 << 70,
    0.5,
    [],
    {},
    [[]],
    {"a": {"b": []}},
    [None],
    ["x"],
    [1, "x"],
)
JUNK = (b"\xff\xfe\n", b"{}\n", b"[" * 20_000 + b"\n", b'{"jsonrpc":"2.0","id":1e999,"method":"x"}\n')
CALLS_EACH = 4_000  # on one store: enough to fill it with anything, few enough that reading it all stays quick
HANDLES = "/proc/self/fd"
WORK_SECONDS = 5.0  # of a processor for one call, however busy the machine is
SLOW_SECONDS = 120.0  # on the clock, where the work is done in another process


def value(chance: random.Random, param: Param | None) -> Any:
    kind = chance.random()
    if param is not None and kind < 0.6:
        text = chance.choice(TEXTS) + chance.choice(("", chance.choice(TEXTS)))
        return {
            "integer": chance.choice((0, 1, 3, 50, 10**6, -5)),
            "boolean": chance.random() < 0.5,
            "strings": [chance.choice(TEXTS) for _ in range(chance.randrange(4))],
            "object": {chance.choice(TEXTS): chance.choice(ODD)},
        }.get(param.type, chance.choice((*param.choices, text)))
    return chance.choice(TEXTS) if kind < 0.8 else chance.choice(ODD)


def arguments(chance: random.Random, name: str) -> dict[str, Any]:
    """Mostly what the operation knows; sometimes a good call with one thing changed; sometimes anything."""
    params = {param.name: param for param in OPERATIONS[name].all_params()}
    good = [dict(given) for operation, given in CALLS if operation == name]
    given = chance.choice(good) if good and chance.random() < 0.5 else {}
    for param in params.values():
        if chance.random() < (0.9 if param.required and not given else 0.3):
            given[param.name] = value(chance, param)
    if chance.random() < 0.05:
        given[chance.choice(TEXTS)] = value(chance, None)
    return given


Send = Callable[[str, dict[str, Any]], str]  # what is wrong with the answer, or nothing


def throw(calls: int, send: Send, tally: Tally, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(calls):
        name = chance.choice(NAMES)
        given = arguments(chance, name)
        began = time.process_time(), time.monotonic()
        wrong = send(name, given)
        if wrong:
            tally.miss("unhandled", f"{name} {given!r:.120}: {wrong}")
        if time.process_time() - began[0] > WORK_SECONDS or time.monotonic() - began[1] > SLOW_SECONDS:
            tally.miss("hangs", f"{name} {given!r:.150}")


def _thrown(folder: Path, calls: int, one: Callable[[Share], Made], what: str) -> Outcome:
    """In shares of a few thousand, each with a store and a seed of its own."""
    with in_memory(folder) as memory:
        tally, numbers = spread(one, memory, calls, most=CALLS_EACH)
    good = f", {numbers['good']:,} of them good" if "good" in numbers else ""
    return tally.outcome(f"{numbers['calls']:,} {what}{good}", "unhandled", "hangs", "leaks")


def library(folder: Path, calls: int) -> Outcome:
    return _thrown(folder, calls, _library, "calls")


def _library(share: Share) -> Made:
    static_model.load()  # the model of meanings is mapped once and stays
    tally, handles = Tally(), len(os.listdir(HANDLES))
    answered = _called(share, tally)
    gc.collect()
    if len(os.listdir(HANDLES)) > handles:
        tally.miss("leaks", f"{len(os.listdir(HANDLES)) - handles} files stayed open")
    shutil.rmtree(share.folder)
    return Made(tally.counts, tally.words, {"calls": share.cases, "good": answered})


def _called(share: Share, tally: Tally) -> int:
    answered = 0
    with opened(share.folder / "limpet.db", "fuzz") as hold:

        def send(name: str, given: dict[str, Any]) -> str:
            nonlocal answered
            try:
                hold.call(name, given)
                answered += 1
            except errors.StoreProblem as problem:
                return f"the store is blamed: {problem.message}"  # which is sound, and no input may say otherwise
            except errors.LimpetError:
                pass
            except Exception as problem:  # noqa: BLE001 - the point is that there is none
                return repr(problem)
            return ""

        throw(share.cases, send, tally, share.seed)
        sound(hold, tally)
    return answered


def stdio(folder: Path, calls: int) -> Outcome:
    return _thrown(folder, calls, _stdio, "calls and frames")


def _stdio(share: Share) -> Made:
    tally = Tally()
    with Server(str(share.folder / "limpet.db"), "--session", "fuzz") as server:

        def send(name: str, given: dict[str, Any]) -> str:
            reply = server.request("tools/call", {"name": name, "arguments": given})
            return _wrong(json.dumps(reply), reply.get("error", {}).get("code"))

        throw(share.cases - len(JUNK), send, tally, share.seed)
        for junk in JUNK:
            assert server.process.stdin is not None
            server.process.stdin.write(junk)
            server.process.stdin.flush()
            if "error" not in server.read():
                tally.miss("unhandled", junk[:40])
        if "result" not in server.request("ping", {}):
            tally.miss("unhandled", "ping")
        _, said = server.process.communicate(timeout=60)
        if b"Traceback" in said:
            tally.miss("unhandled", said[-300:])
    shutil.rmtree(share.folder)
    return Made(tally.counts, tally.words, {"calls": share.cases})


def http_door(folder: Path, calls: int) -> Outcome:
    return _thrown(folder, calls, _http, "calls")


def _http(share: Share) -> Made:
    """All calls on one connection, as long as the server keeps it."""
    tally = Tally()
    process, place = serve(str(share.folder / "limpet.db"), "fuzz")
    line = http.client.HTTPConnection(place, timeout=60)
    try:

        def send(name: str, given: dict[str, Any]) -> str:
            status, answer = post(place, name, json.dumps(given).encode(), line)
            return f"status {status}" if status >= 500 else _wrong(answer.decode(errors="replace"), None)

        throw(share.cases, send, tally, share.seed)
    finally:
        line.close()
        process.terminate()
        process.communicate(timeout=30)
    shutil.rmtree(share.folder)
    return Made(tally.counts, tally.words, {"calls": share.cases})


def _wrong(answer: str, code: object) -> str:
    failed = code == -32603 or "failed inside" in answer or "store_broken" in answer or "SQL logic error" in answer
    return answer[:200] if failed else ""
