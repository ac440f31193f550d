"""kill -9 in the middle of writing: whatever was acknowledged is there, whole, and the store opens as ever."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import limpet
from journeys.stdio import Server, environment
from limpet.agent import Agent
from limpet.api import Limpet, Tool
from limpet.window.messages import Message, Text, assistant
from limpet.window.plan.rules import LOST

WORKER = str(Path(__file__).parent / "worker.py")
SEED = 20_260_303


def verify(hold: Limpet, acknowledged: dict[str, str]) -> None:
    """Each note is there with the hash it was acknowledged with; the store checks its own checksum besides."""
    for id, digest in acknowledged.items():
        entry = hold.store.entries.read(hold.scope, "note", id)
        assert entry is not None, f"{id} was acknowledged and is gone"
        assert hashlib.sha256(entry.content.encode()).hexdigest() == digest


def rest_of(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """What a process that was killed had still written. `communicate` would skip what `readline` has in its buffer."""
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        rest, err = process.stdout.read(), process.stderr.read()
    process.wait(60)
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()
    return rest, err


def kill_library(store: str, name: str, delay: float) -> dict[str, str]:
    """Let a process write for a while after its first acknowledgement, kill it, and give what it acknowledged."""
    process = subprocess.Popen(
        [sys.executable, WORKER, "acknowledge", store, name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    rest, err = rest_of(process)
    assert (process.returncode, err) == (-signal.SIGKILL, b"")
    lines = [line for line in (first + rest).split(b"\n") if line]
    return dict(line.decode().split(" ") for line in lines)


def kill_server(store: str, name: str, delay: float) -> dict[str, str]:
    """The same through the MCP server, with calls piled up so that it is always in the middle of one."""
    server = Server(store, "--session", name)
    texts = {}
    for number in range(300):
        text = f"{name} {number}"
        texts[server.ask("tools/call", {"name": "add_note", "arguments": {"content": text}})] = text
    acknowledged = {}
    first = server.read()
    time.sleep(delay)
    server.process.send_signal(signal.SIGKILL)
    out, _ = rest_of(server.process)
    whole = out.split(b"\n")[:-1]  # what follows the last line break was not said to the end
    for reply in [first, *map(json.loads, whole)]:
        text = texts[reply["id"]]
        acknowledged[str(reply["result"]["structuredContent"]["note_id"])] = hashlib.sha256(text.encode()).hexdigest()
    return acknowledged


def kill_again_and_again(store: str, kills: int, door: str) -> None:
    chance = random.Random(SEED)
    everything: dict[str, str] = {}
    for number in range(kills):
        kill = kill_library if door == "library" else kill_server
        fresh = kill(store, f"run{number}", chance.uniform(0.003, 0.040))
        assert fresh
        assert not fresh.keys() & everything.keys()
        everything |= fresh
        with limpet.open(store, project="demo", session="check") as hold:
            verify(hold, fresh)
            hold.session().notepad.write(f"still writable after {number}")
    with limpet.open(store, project="demo") as hold:
        verify(hold, everything)
        assert all(finding.ok for finding in hold.check()), hold.check()


@pytest.mark.parametrize(("door", "kills"), [("library", 25), ("mcp", 10)])
def test_what_was_acknowledged_survives_a_kill(store_url: str, door: str, kills: int) -> None:
    # What a PostgreSQL server keeps is its own doing; a few kills show that we tell the truth about it.
    kill_again_and_again(store_url, 3 if store_url.startswith("postgresql") else kills, door)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("door", ["library", "mcp"])
def test_what_was_acknowledged_survives_five_hundred_kills(tmp_path: Path, door: str) -> None:
    kill_again_and_again(str(tmp_path / "limpet.db"), 500, door)


def test_a_kill_while_others_write_does_not_hold_them_up(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    chance = random.Random(SEED)
    with limpet.open(store, project="demo", session="mine") as hold:
        for number in range(10):
            fresh = kill_library(store, f"run{number}", chance.uniform(0.003, 0.040))
            began = time.monotonic()
            hold.session().notes.add(f"mine {number}")
            assert time.monotonic() - began < 5
            verify(hold, fresh)
        assert hold.call("list_notes", {"this_session": True})["note_count"] == 10


def test_a_call_whose_process_was_killed_in_it_is_known_and_not_run_again(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    process = subprocess.run(
        [sys.executable, WORKER, "dying_tool", store], capture_output=True, env=environment(), check=False
    )
    assert (process.returncode, process.stdout) == (-signal.SIGKILL, b"deployed\n")
    requests: list[Sequence[Message]] = []

    def model(messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        requests.append(messages)
        return assistant("I check first whether it is deployed.")

    def deploy(arguments: Mapping[str, Any]) -> str:
        raise AssertionError("it must not be run again")

    with limpet.open(store, project="demo", session="killed") as hold:
        for _ in range(3):
            tools = [Tool("deploy", "Deploy it.", {"type": "object"}, deploy)]
            Agent(hold.session("killed"), model, tools=tools).run("Go on.")
        said = hold.session("killed").window.messages()
    (call,) = [call for message in said for call in message.calls()]
    assert (call.name, call.arguments) == ("deploy", '{"to": "production"}')
    for request in requests:
        (outcome,) = [result for message in request for result in message.results()]
        assert (outcome.call_id, outcome.parts) == ("d1", (Text(LOST),))
    assert [message.text() for message in said] == [
        "Deploy it.",
        "Deploying now.",
        *["Go on.", "I check first whether it is deployed."] * 3,
    ]
