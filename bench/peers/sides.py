"""The two kinds of peers as a run sees them: a library in a process of its own, and an MCP server on pipes.

Both are child processes that keep texts in a folder of their own, so that both can be weighed and traced alike. Every
text begins with its number in brackets, by which a hit is known.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, cast

from bench.measure import OUT, ROOT, clean_environment
from bench.stdio import Contestant, Server

Call = tuple[str, dict[str, Any]]


class Side(Protocol):
    """Somebody who keeps texts and finds them again."""

    name: str
    pid: int

    def load(self, texts: Sequence[str]) -> None: ...
    def add(self, texts: Sequence[str]) -> list[float]: ...
    def search(self, queries: Sequence[str]) -> list[tuple[float, str]]: ...
    def close(self) -> None: ...


class Peer(NamedTuple):
    """How a side is started on a folder, perhaps below another command, and what is said of it."""

    name: str
    start: Callable[[Path, Sequence[str]], Side]
    server: bool  # spoken to over MCP; else inside a process
    finds: bool = True  # whether what it finds is its own doing, and not that of hashed words
    once: int = 0  # searches that it allows a minute; 0 where there is no limit


class InProcess:
    """A library, driven by a script in its own environment, which takes the times itself."""

    def __init__(self, name: str, python: Path, driver: Sequence[str], folder: Path, below: Sequence[str]) -> None:
        self.name = name
        module, *more = driver
        ours = python == Path(sys.executable)
        self.process = subprocess.Popen(
            [*below, str(python), "-m", f"bench.peers.{module}", str(folder), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
            env=clean_environment() if ours else os.environ | {"PYTHONPATH": str(ROOT)},
        )
        self.pid = self.process.pid
        self._in, self._out = cast(IO[str], self.process.stdin), cast(IO[str], self.process.stdout)

    def ask(self, **asked: Any) -> Any:
        self._in.write(json.dumps(asked) + "\n")
        self._in.flush()
        line = self._out.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with {self.process.wait()}")
        return json.loads(line)

    def load(self, texts: Sequence[str]) -> None:
        self.ask(do="load", texts=texts)

    def add(self, texts: Sequence[str]) -> list[float]:
        return [seconds for seconds, _ in self.ask(do="add", texts=texts)]

    def search(self, queries: Sequence[str]) -> list[tuple[float, str]]:
        return [(seconds, said) for seconds, said in self.ask(do="search", texts=queries)]

    def close(self) -> None:
        self._in.close()
        self.process.wait(30)
        self._out.close()


class Talk(Server):
    """A server that may say things between its answers."""

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.send({"id": 1, "method": method, "params": params})
        while line := self._out.readline():
            reply = json.loads(line)
            if reply.get("id") == 1:
                if "result" not in reply or reply["result"].get("isError"):
                    raise RuntimeError(f"{method}: {str(reply)[:300]}")
                return cast(dict[str, Any], reply["result"])
        raise RuntimeError(f"{method}: the server ended with {self.process.wait()}")

    def close(self) -> None:
        self._in.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:  # some wait for a signal
            self.process.kill()
            self.process.wait()
        self._out.close()


class Speaks(NamedTuple):
    """What a server calls adding and searching."""

    add: Callable[[str], Call]
    search: Callable[[str], Call]
    many: Callable[[Sequence[str]], Call] | None = None


class OverPipes:
    """An MCP server; times are those of a round trip as a client sees it."""

    def __init__(self, contestant: Contestant, speaks: Speaks, folder: Path, below: Sequence[str]) -> None:
        self.name, self.speaks, self.folder, self.below = contestant.name, speaks, folder, below
        self.contestant = contestant
        self.begin()

    def begin(self) -> None:
        def command(path: Path) -> list[str]:
            return [*self.below, *self.contestant.command(path)]

        self.server = Talk(self.contestant._replace(command=command), self.folder / "store.db")
        self.server.begin()
        self.pid = self.server.process.pid

    def again(self) -> None:
        """A new process on the same store."""
        self.server.close()
        self.begin()

    def load(self, texts: Sequence[str]) -> None:
        if self.speaks.many is None:
            self.add(texts)
            return
        for first in range(0, len(texts), 1_000):
            self.server.call(*self.speaks.many(texts[first : first + 1_000]))

    def add(self, texts: Sequence[str]) -> list[float]:
        return [self._timed(self.speaks.add(text))[0] for text in texts]

    def search(self, queries: Sequence[str]) -> list[tuple[float, str]]:
        return [self._timed(self.speaks.search(query)) for query in queries]

    def _timed(self, call: Call) -> tuple[float, str]:
        began = time.perf_counter()
        answer = self.server.call(*call)
        took = time.perf_counter() - began
        return took, "\n".join(part.get("text", "") for part in answer["content"])

    def close(self) -> None:
        self.server.close()


def folder_for(name: str) -> Path:
    """An empty folder that nobody else uses."""
    import shutil

    place = OUT / "sides" / "".join(one if one.isalnum() else "-" for one in name)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place
