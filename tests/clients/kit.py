"""A coding agent as a test sees it: a program in a project and a home of its own, talking to a scripted model.

Each agent has a file here that says how it is set up, asked and made to compact. What all of them must do is in
test_agents.py, once.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from clients.stub import Json, Stub, Turn, Use

UPSTREAM = Path(__file__).parents[1] / "doors" / "upstream.py"
# An MCP server of somebody else. Some agents pass on only those arguments that a tool declares.
PLAIN = (sys.executable, str(UPSTREAM), "serve", str(Path(__file__).with_name("upstream_tools.json")))
SERVERS = {"wrapped": ("limpet", "wrap", "--", *PLAIN), "plain": PLAIN}  # the same one, with and without us


class Talk(NamedTuple):
    """One run of an agent: what the model was sent, and the agent's own name for the session."""

    stub: Stub
    session: str


class Agent:
    """What an agent's file has to say. It is given the two SERVERS."""

    name = ""  # as in `limpet install NAME`
    shell = ""  # the agent's own tool that runs a command
    plain_size = 30_000  # characters of a server's result that its hooks still get to see
    shell_lines = 20_000  # of a command's
    shell_whole = False  # whether they get all of it
    shell_replaced = True  # whether a big result of a command is replaced; some clients do not tell its exit code
    more_outputs: Sequence[Use] = ()  # results that it treats in a way of its own
    checkpoints = False  # whether its transcript is read before a compaction
    compacting: Sequence[Turn] = ()  # what the model says until the agent compacts

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.home = folder / "home"
        for path in (self.project / ".git", self.home, folder / "tmp"):
            path.mkdir(parents=True, exist_ok=True)  # several agents may share a computer
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
        }

    def ask(self, prompt: str, *turns: Turn, resume: str = "") -> Talk:
        raise NotImplementedError

    def results(self, request: Json) -> list[str]:
        """The results of tools in a request, as text."""
        raise NotImplementedError

    def conversation(self, request: Json) -> str:
        """All that a request says to the model, without what its tools are."""
        return json.dumps({**request, "tools": None}, ensure_ascii=False)

    def run_shell(self, command: str) -> Use:
        return Use(self.shell, {"command": command, "description": "look"})

    def limpet(self, *words: str) -> str:
        return self.run(["limpet", *words])

    def run(self, command: Sequence[str], **environment: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=150,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
        return done.stdout

    def put(self, path: str, content: Any) -> Path:
        """A file in the home folder; what is no text is written as JSON."""
        there = self.home / path
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(content if isinstance(content, str) else json.dumps(content))
        return there


def at_a_terminal(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    ready: str,
    leave: str,
    seconds: float = 60,
    typed: Iterable[str] = (),
    answered: Callable[[], bool] = lambda: True,
) -> str:
    """Run a program at a terminal of its own until `ready` is on the screen. Then press what is `typed`, wait until it
    is `answered`, and press `leave` until it ends."""
    keys = iter(typed)
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        screen, until, pressed = "", time.monotonic() + seconds, 0.0  # hooks have some seconds before the first press
        try:
            while process.poll() is None and time.monotonic() < until:
                if select.select([ours], [], [], 0.2)[0]:
                    with suppress(OSError):  # the program has closed its end
                        screen += os.read(ours, 1 << 16).decode("utf-8", "replace")
                if ready in screen and not pressed:
                    pressed = time.monotonic() + 4
                if pressed and time.monotonic() > pressed:
                    key = next(keys, "") or (leave if answered() else "")
                    os.write(ours, key.encode())
                    pressed = time.monotonic() + 0.5
            assert process.poll() is not None, screen[-3_000:]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            os.close(ours)
    return screen


def objects(lines: str) -> list[Json]:
    """The JSON objects among the lines that an agent printed."""
    return [json.loads(line) for line in lines.splitlines() if line.startswith("{")]


def as_texts(contents: Iterable[Any]) -> list[str]:
    return [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in contents]
