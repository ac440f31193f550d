"""A person's computer for the stories: an empty home, git repositories, and the doors that people and agents use.

Everything goes through a process of its own: the `limpet` command, MCP over stdio by the official client, HTTP, or a
program that uses the library. A story keeps a plain model of what must be true (a list, a dictionary) and compares at
the end.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

COMMAND = (sys.executable, "-m", "limpet")
TIMEOUT_SECONDS = 100
LISTENING = re.compile(r"Limpet listens at (\S+)/mcp")
TOKEN = "a-token-for-stories"


class Computer:
    """One person's machine. Nothing of the computer that runs the test is visible in it."""

    timeout: float = TIMEOUT_SECONDS  # of every program

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        name = {"GIT_AUTHOR_NAME": "Ana", "GIT_COMMITTER_NAME": "Ana"}
        mail = {"GIT_AUTHOR_EMAIL": "ana@example.org", "GIT_COMMITTER_EMAIL": "ana@example.org"}
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", **name, **mail}

    def run(self, *command: str, where: Path, stdin: str = "") -> str:
        """The standard output of a program that must succeed."""
        done = subprocess.run(
            command,
            cwd=where,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=self.timeout,
            check=False,
        )
        assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
        return done.stdout

    def limpet(self, *words: str, where: Path, stdin: str = "") -> str:
        return self.run(*COMMAND, *words, where=where, stdin=stdin)

    def refused(self, *words: str, where: Path, exit_code: int | None = None) -> str:
        """What a command says that must fail."""
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=where,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=self.timeout,
            check=False,
        )
        assert done.returncode not in (0, 1), f"{words} did not fail as it should:\n{done.stdout}{done.stderr}"
        assert exit_code in (None, done.returncode)
        return done.stdout + done.stderr

    def repository(self, name: str, files: dict[str, str] | None = None) -> Path:
        """A new git repository with these files in its first commit."""
        place = self.folder / name
        place.mkdir()
        self.run("git", "init", "--quiet", where=place)
        for path, text in {"README.md": f"# {name}\n", **(files or {})}.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text, encoding="utf-8")
        self.run("git", "add", "--all", "--force", where=place)
        self.run("git", "commit", "--quiet", "--message", "Begin", where=place)
        return place

    def clone(self, repository: Path, name: str) -> Path:
        self.run("git", "clone", "--quiet", str(repository), name, where=self.folder)
        return self.folder / name

    @asynccontextmanager
    async def agent(self, where: Path, *words: str) -> AsyncIterator[Agent]:
        """A client of `limpet mcp`, started in a folder as coding agents start it."""
        command, *more = (*COMMAND, "mcp", *words)
        server = StdioServerParameters(command=command, args=more, cwd=where, env=self.environment)
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            hello = await session.initialize()
            yield Agent(session, hello.instructions or "")

    @contextmanager
    def started(self, *words: str, where: Path) -> Iterator[Pipes]:
        """A command of Limpet that talks over its standard streams."""
        process = subprocess.Popen(
            [*COMMAND, *words],
            cwd=where,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield Pipes(process)
        finally:
            process.kill()
            with process:  # closes its streams
                pass

    def text_of(self, path: Path) -> str:
        """What some process writes into a file, once it is there."""
        until = time.monotonic() + self.timeout
        while not (path.exists() and path.read_text(encoding="utf-8").endswith("\n")):
            assert time.monotonic() < until, f"{path} was not written"
            time.sleep(0.02)
        return path.read_text(encoding="utf-8")

    @contextmanager
    def served(self, where: Path, *words: str, token: str = TOKEN) -> Iterator[httpx2.Client]:
        """`limpet serve` in a folder, and an HTTP client that has its token."""
        command = [*COMMAND, "serve", "--port", "0", *(words or ("--token", TOKEN))]
        server = subprocess.Popen(command, cwd=where, env=self.environment, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            found = next(filter(None, map(LISTENING.search, server.stdout)))
            headers = {"Authorization": f"Bearer {token}"}
            with httpx2.Client(base_url=found[1], headers=headers, timeout=self.timeout) as client:
                yield client
        finally:
            server.terminate()
            server.communicate(timeout=self.timeout)


class Pipes:
    """A process and its standard streams."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self.stdin, self.stdout = process, process.stdin, process.stdout

    def send(self, id: int, method: str, params: Mapping[str, object]) -> None:
        self.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n")
        self.stdin.flush()


def alive(process: int) -> bool:
    """Whether there is such a process and it has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


class Agent:
    """What a model does: it reads the instructions and calls tools."""

    def __init__(self, session: ClientSession, instructions: str) -> None:
        self._session = session
        self.instructions = instructions

    async def call(self, tool: str, **arguments: object) -> Any:
        # The stories compare values; what a model reads is the text beside them.
        meta: Any = {"limpet/structured": True}
        result = await self._session.call_tool(tool, arguments, meta=meta)
        content, *_ = result.content  # the first result may have more to say
        assert isinstance(content, types.TextContent)
        assert not result.is_error, content.text
        return result.structured_content

    async def refusal(self, tool: str, **arguments: object) -> str:
        """The error of a call that must fail."""
        result = await self._session.call_tool(tool, arguments)
        content, *_ = result.content  # the first result may have more to say
        assert isinstance(content, types.TextContent)
        assert result.is_error, content.text
        return content.text

    async def recall(self, query: str) -> list[str]:
        """The texts of the hits, without the marks around the words that were found."""
        reply = await self.call("recall", query=query)
        return [hit["text"].replace("«", "").replace("»", "") for hit in reply["hits"]]
