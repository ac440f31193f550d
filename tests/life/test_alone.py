"""Nothing calls a model, uses the network or stays in the background, through any door that agents use."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from life.kit import Computer

# Python loads it in every process before anything else, and notes what reaches for the network.
WATCH = """
import os, sys
def hook(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        with open({log!r}, "a") as file:
            file.write(f"{{event}} {{arguments[1:]}} in {{sys.argv}}\\n")
sys.addaudithook(hook)
"""


class Watched(Computer):
    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "PYTHONPATH": str(self.folder / "watch")}


def processes_of(home: Path) -> list[str]:
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"HOME={home}\0".encode() in Path(entry.path, "environ").read_bytes():
                    found.append(Path(entry.path, "cmdline").read_text(encoding="utf-8").replace("\0", " "))
            except OSError:
                continue
    return found


def test_a_days_work_reaches_for_no_network_and_leaves_no_process(tmp_path: Path) -> None:
    computer = Watched(tmp_path)
    log = tmp_path / "network.txt"
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH.format(log=str(log)), encoding="utf-8")
    project = computer.repository("parser")
    shouts = "import socket; s = socket.socket(); s.settimeout(0.1); s.connect_ex(('127.0.0.1', 9))"
    computer.run(sys.executable, "-c", shouts, where=project)
    assert "socket.connect" in log.read_text(encoding="utf-8"), "the watch sees who does"
    log.unlink()

    def hook(event: str, **payload: object) -> None:
        given = {"session_id": "s1", "cwd": str(project), **payload}
        computer.limpet("hook", "--client", "claude-code", event, where=project, stdin=json.dumps(given))

    async def agent() -> None:
        async with computer.agent(project, "--profile", "full") as agent:
            await agent.call("add_note", content="Casts break LL(1) in parse_expr()", tags=["grammar"])
            await agent.call("write_notepad", content="- [ ] casts\n")
            assert await agent.recall("why did casts break")
            await agent.call("write_session_handoff", content="Casts are next.")

    hook("session-start", hook_event_name="SessionStart", source="startup")
    asyncio.run(agent())
    big = {"stdout": "line of a build\n" * 2_000, "stderr": "", "interrupted": False, "isImage": False}
    hook("after-tool", tool_name="Bash", tool_input={"command": "make"}, tool_response=big)
    hook("before-compact", hook_event_name="PreCompact", trigger="auto")
    hook("session-end", hook_event_name="SessionEnd", reason="exit")
    for words in (("note", "list"), ("recall", "casts"), ("status",), ("doctor",), ("export",), ("journal", "init")):
        computer.limpet(*words, where=project)
    assert not log.exists(), log.read_text(encoding="utf-8")
    assert processes_of(computer.home) == []
