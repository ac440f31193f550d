"""Stories from outside in: what people and agents do, through real doors, beside a plain model of what must be true.

One function per story. A story that fails today is marked with the issue that makes it true; the mark goes with it.
`make life` runs all of them; `make test` leaves out those marked `slow`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from life.kit import Computer, alive

PROGRAM = Path(__file__).parent / "program.py"


def test_what_one_writes_all_who_work_there_find(computer: Computer) -> None:
    """An agent notes something; the person at the terminal, a program over HTTP and the next agent find it."""
    project = computer.repository("parser")
    fact = "Casts break LL(1) in parse_expr()"

    async def monday() -> None:
        async with computer.agent(project, "--profile", "full") as agent:
            await agent.call("add_note", content=fact, tags=["grammar"])
            await agent.call("write_session_handoff", content="Casts are next.")

    async def tuesday() -> tuple[str, list[str]]:
        async with computer.agent(project, "--profile", "full") as agent:
            return agent.instructions, await agent.recall("casts grammar")

    asyncio.run(monday())
    notes = json.loads(computer.limpet("note", "list", "--json", where=project))["notes"]
    assert [(note["content"], note["tags"]) for note in notes] == [(fact, ["grammar"])]
    with computer.served(project) as http:
        answer = http.post("/api/v1/operations/search_notes", json={"query": "casts", "session_id": "*"})
        assert [note["content"] for note in answer.json()["notes"]] == [fact]
    instructions, texts = asyncio.run(tuesday())
    assert "Casts are next." in instructions
    assert texts[0] == fact


HANGING_SERVER = """
import json, os, sys, time
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/call":
        print(os.getpid(), file=open(sys.argv[1], "w"), flush=True)
        while True:
            time.sleep(60)
    elif "id" in message:
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "hangs", "version": "1"}, "tools": []}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("door", ["wrap", "gateway"])
def test_a_proxy_ends_with_its_client_also_during_a_call_that_hangs(computer: Computer, door: str) -> None:
    """A client leaves while a server hangs in a call. Neither the proxy nor the server may stay behind."""
    project = computer.repository("parser")
    script, called = computer.folder / "server.py", computer.folder / "called"
    script.write_text(HANGING_SERVER, encoding="utf-8")
    server = [sys.executable, str(script), str(called)]
    config = computer.folder / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"one": {"command": server[0], "args": server[1:]}}}), encoding="utf-8")
    config.chmod(0o600)
    words, tool = (("wrap", "--", *server), "x") if door == "wrap" else (("gateway", "--config", str(config)), "one__x")

    with computer.started(*words, where=project) as proxy:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "story", "version": "1"}}
        proxy.send(1, "initialize", hello)
        assert json.loads(proxy.stdout.readline())["id"] == 1
        proxy.send(2, "tools/call", {"name": tool, "arguments": {}})
        hanging = int(computer.text_of(called))
        proxy.stdin.close()  # it goes on reading: so far it only says that no more will come
        left = time.monotonic()
        assert proxy.process.wait(timeout=60) is not None
        assert time.monotonic() - left < 20, "the proxy stayed behind"
        assert not alive(hanging), "its server stayed behind"
        assert json.loads(proxy.stdout.readline())["id"] == 2, "the call was answered, with an error"


def test_a_cloned_repository_does_not_decide_where_its_reader_keeps_things(computer: Computer) -> None:
    """Somebody clones a repository whose author has put a configuration into it, and works there as always."""
    collected = computer.folder / "of-the-author" / "collected.db"
    collected.parent.mkdir()
    config = f'store = "{collected}"\n\n[outputs]\nthreshold_bytes = 1\n'
    theirs = computer.repository("tool", {".limpet/config.toml": config})
    clone = computer.clone(theirs, "clone")
    secret = "The staging password is hunter2."

    computer.limpet("note", "add", secret, where=clone)

    notes = json.loads(computer.limpet("note", "list", "--json", where=clone))["notes"]
    assert [note["content"] for note in notes] == [secret], "the person finds the note again"
    assert not collected.exists(), "nothing was written where the author of the repository wants it"


def test_a_resumed_conversation_is_stored_once(computer: Computer) -> None:
    """A program talks until its window was compacted, ends, and goes on in a new process."""
    project = computer.repository("port")
    said: Counter[str] = Counter()
    for first, last in ((0, 12), (12, 24)):
        words = (str(PROGRAM), str(project), "long", str(first), str(last))
        said.update(json.loads(computer.run(sys.executable, *words, where=project)))

    exported = [json.loads(line) for line in computer.limpet("export", where=project).splitlines()]
    messages = [line["entry"]["content"] for line in exported if line.get("entry", {}).get("kind") == "message"]
    kept = Counter(text for text in said for content in messages if text in content)
    assert set(kept) == set(said), "everything that was said is there"
    assert kept == said, "and nothing more than once"


def test_a_report_asked_for_by_its_number_is_the_one_shown(computer: Computer) -> None:
    """An agent files a report every night, and the next one asks how a certain night went."""
    project = computer.repository("deployments")
    form = (
        "Deployment report PROJ-{}. The nightly job built the main branch, ran the unit tests, the integration tests "
        "and the smoke tests in that order, uploaded the artefacts to the registry, moved the traffic to the new "
        "machines in three steps and watched the error rate for an hour after each of them. Outcome: {}."
    )
    outcomes = dict.fromkeys((7013, 7022, 7044, 7065, 7078, 7083, 7088, 7091), "passed") | {7065: "failed: disk full"}

    async def nights() -> None:
        async with computer.agent(project, "--profile", "full") as agent:
            for number, outcome in outcomes.items():
                await agent.call("add_note", content=form.format(number, outcome))

    async def question(number: int) -> list[str]:
        async with computer.agent(project, "--profile", "full") as agent:
            return await agent.recall(f"deployment report PROJ-{number}")

    asyncio.run(nights())
    assert asyncio.run(question(7065))[0] == form.format(7065, outcomes[7065])
