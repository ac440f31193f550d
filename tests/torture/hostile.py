"""Servers behind the wrapper and the gateway that lie, flood, hang and send what is no message.

The wrapper hands on what a server says, so a server can fool its own callers. What it must not do: stop the wrapper,
keep the next honest call from its answer, keep our own tools from theirs, answer for another server, or change its
tools unseen.
"""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from doors.wrap_kit import LIMPET
from torture.hostile_server import HARM
from torture.kit import Outcome, Tally, surroundings
from torture.lanes import Made, Share, spread

SERVER = str(Path(__file__).with_name("hostile_server.py"))
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
PATIENCE_SECONDS = 60.0  # for one answer, on a busy machine


class Door:
    """One of ours as a process, and a reader that passes over whatever is not asked for."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.said = open(folder / "said", "wb+")  # noqa: SIM115 - closed with the door
        env = surroundings() | {"LIMPET_STORE": str(folder / "limpet.db")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, env=env, cwd=folder
        )
        self._rest = b""
        self.ask("initialize", HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any], id: object = "hello") -> Any:
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return self.answer(id)

    def answer(self, id: object) -> Any:
        """The first answer with this id; None when there is none in time."""
        assert self.process.stdout is not None
        until, file = time.monotonic() + PATIENCE_SECONDS, self.process.stdout.fileno()
        while True:
            while b"\n" in self._rest:
                line, _, self._rest = self._rest.partition(b"\n")
                if json.dumps(id).encode() in line and (found := _message(line)) and found.get("id") == id:
                    return found
            if not select.select([file], [], [], max(0.0, until - time.monotonic()))[0]:
                return None
            if not (more := os.read(file, 1 << 20)):
                return None
            self._rest += more

    def end(self, tally: Tally) -> None:
        assert self.process.stdin is not None
        alive = self.process.poll() is None
        self.process.kill()
        self.process.communicate()
        self.said.seek(0)
        said = self.said.read()
        self.said.close()
        if not alive or b"Traceback" in said:
            tally.miss("crashed", said[-300:])


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and "method" not in found else None


def upstreams(folder: Path, cases: int) -> Outcome:
    tally, numbers = spread(_harmed, folder, cases, most=200)
    return tally.outcome(
        f"{numbers['cases']:,} times harm in {len(HARM)} ways, half through the wrapper, half through the gateway",
        "unanswered",
        "wrong answers",
        "changes unseen",
        "crashed",
    )


def _harmed(share: Share) -> Made:
    tally, chance = Tally(), random.Random(share.seed)
    ways = [list(HARM)[at % len(HARM)] for at in range(share.cases)]
    chance.shuffle(ways)
    half = (len(ways) + share.seed % 2) // 2
    config = share.folder / "servers.json"
    servers = {name: {"command": sys.executable, "args": [SERVER]} for name in ("bad", "good")}
    config.write_text(json.dumps({"mcpServers": servers}))
    config.chmod(0o600)
    _through([*LIMPET, "wrap", "--", sys.executable, SERVER], ("", ""), ways[:half], share.folder, tally)
    _through([*LIMPET, "gateway", "--config", str(config)], ("bad__", "good__"), ways[half:], share.folder, tally)
    return Made(tally.counts, tally.words, {"cases": len(ways)})


def _through(command: list[str], owners: tuple[str, str], ways: list[str], folder: Path, tally: Tally) -> None:
    """After each harm an honest call and one of our own tools must be answered, and rightly."""
    if not ways:
        return
    bad, good = owners
    door = Door(command, folder)
    talk = Talk(door, f"{good}echo")
    talk.round(tally, "nothing")
    for number, way in enumerate(ways):
        harm = {"name": f"{bad}harm", "arguments": {"words": way}}
        door.send({"jsonrpc": "2.0", "id": f"harm{number}", "method": "tools/call", "params": harm})
        if not talk.round(tally, f"{command[3]}, after {way}"):
            break  # whatever comes now is of the same making
    # Tools are compared aside, so a change may be told a little later.
    until = time.monotonic() + PATIENCE_SECONDS
    while len(talk.shown) > 1 and not talk.told and time.monotonic() < until and talk.round(tally, "all"):
        time.sleep(0.05)
    if len(talk.shown) > 1 and not talk.told:
        tally.miss("changes unseen", command[3])
    door.end(tally)


class Talk:
    """What an honest client says, again and again, and what it was shown."""

    def __init__(self, door: Door, echo: str) -> None:
        self._door = door
        self._echo = echo
        self._rounds = 0
        self.shown: set[str] = set()  # how the honest tool was described; the gateway asks again only when told to
        self.told = 0  # how often we said that it changed

    def round(self, tally: Tally, when: str) -> bool:
        """An honest call, one of our tools, and a listing. Whether all were answered."""
        self._rounds += 1
        words, at = f"honest {self._rounds}", self._rounds
        echo = self._door.ask("tools/call", {"name": self._echo, "arguments": {"words": words}}, f"echo{at}")
        ours = self._door.ask("tools/call", {"name": "list_outputs", "arguments": {}}, f"ours{at}")
        listed = self._door.ask("tools/list", {}, f"list{at}")
        if echo is None or ours is None or listed is None:
            tally.miss("unanswered", when)
            return False
        self.shown |= {one["description"] for one in listed["result"]["tools"] if one["name"] == self._echo}
        first, *more = echo.get("result", {}).get("content") or [None]
        self.told += len(more)
        if first != {"type": "text", "text": words} or not all(one["text"].startswith("[Limpet: ") for one in more):
            tally.miss("wrong answers", f"{when}: {echo!r:.150}")
        if ours.get("result", {}).get("isError"):
            tally.miss("wrong answers", f"{when}, ours: {ours!r:.150}")
        return True
