"""Who stands beside us: every peer that can be installed here, each with how it is started and spoken to.

Nothing of theirs is asked for that needs a model or the network. Where a peer wants vectors, it gets hashed words: its
own cost is measured, and what it would find with a model is not, so it is not compared either.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import stdio
from bench.peers.drive_limpet import fill
from bench.peers.environment import installed, prepared, version_of
from bench.peers.sides import InProcess, OverPipes, Peer, Side, Speaks
from bench.stdio import Contestant
from bench.stores import open_ours

OURS, OURS_SERVED = "Limpet, library", "limpet mcp"
CONTEXT_MODE = "1.0.131"  # later ones need Node 22.5


def library() -> Peer:
    return Peer(OURS, _inside(OURS, Path(sys.executable), "drive_limpet"), server=False)


def server() -> Peer:
    speaks = Speaks(
        lambda text: ("add_note", {"content": text}),
        lambda query: ("search_notes", {"query": query, "limit": 10}),
    )
    contestant = stdio.ours()._replace(name=OURS_SERVED)
    return Peer(OURS_SERVED, lambda folder, below: Served(contestant, speaks, folder, below), server=True)


class Served(OverPipes):
    """Our server, whose store is filled by the library beside it."""

    def load(self, texts: Sequence[str]) -> None:
        with open_ours(self.folder / "store.db") as hold:
            fill(hold, texts)


def libraries() -> Iterator[Peer]:
    """Stores that a program has inside it."""
    if there := prepared("langgraph-checkpoint-sqlite", "langgraph", "numpy", extensions=True):
        memory = version_of(there.python, "langgraph-checkpoint")
        named_so = {
            "memory": f"LangGraph InMemoryStore {memory}, memory only",
            "sqlite": f"LangGraph SqliteStore {there.version}",
        }
        for kind, named in named_so.items():
            yield Peer(named, _inside(named, there.python, "drive_langgraph", kind), server=False, finds=False)
    if there := prepared("mem0ai"):
        named = f"mem0 {there.version}, no extraction"
        yield Peer(named, _inside(named, there.python, "drive_mem0"), server=False, finds=False)
    if there := prepared("deepagents"):
        named = f"deepagents {there.version}"
        yield Peer(named, _inside(named, there.python, "drive_deepagents"), server=False)


def servers() -> Iterator[Peer]:
    """Servers that a client starts."""
    yield from graphs()
    if there := prepared("mcp-memory-service", extensions=True):
        name = f"mcp-memory-service {there.version}"
        command = [str(there.python.with_name("memory")), "server"]
        yield Peer(
            name, _served(Contestant(name, lambda _: command, "", _memory), _service()), server=True, finds=False
        )
    if found := context_mode():
        yield found


def graphs() -> Iterator[Peer]:
    """npm's server-memory."""
    for contestant in stdio.peers():
        yield Peer(contestant.name, _served(contestant, _graph()), server=True)


def context_mode() -> Peer | None:
    script = installed("context-mode", CONTEXT_MODE)
    if script is None:
        return None
    name = f"context-mode {script.version}"
    program = ["node", str(script.folder / "server.bundle.mjs")]
    contestant = Contestant(name, lambda _: program, "", lambda path: {"HOME": str(path.parent)})
    return Peer(name, _served(contestant, _context()), server=True, once=6)


def _graph() -> Speaks:
    def entity(text: str) -> dict[str, Any]:
        return {"name": text.partition(" ")[0], "entityType": "note", "observations": [text]}

    return Speaks(
        lambda text: ("create_entities", {"entities": [entity(text)]}),
        lambda query: ("search_nodes", {"query": query}),
        lambda texts: ("create_entities", {"entities": [entity(text) for text in texts]}),
    )


def _service() -> Speaks:
    """A conversation's name keeps it from refusing texts that look alike to it."""
    return Speaks(
        lambda text: ("memory_store", {"content": text, "conversation_id": "bench"}),
        lambda query: ("memory_search", {"query": query, "limit": 10}),
    )


def _memory(path: Path) -> dict[str, str]:
    return {
        "HOME": str(path.parent),
        "MCP_MEMORY_BASE_DIR": str(path.parent),
        "MCP_MEMORY_SQLITE_PATH": str(path),
        "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
        "HF_HUB_OFFLINE": "1",
    }


def _context() -> Speaks:
    return Speaks(
        lambda text: ("ctx_index", {"content": text, "source": text.partition(" ")[0]}),
        lambda query: ("ctx_search", {"queries": [query], "limit": 10}),
    )


def _inside(name: str, python: Path, *driver: str) -> Callable[[Path, Sequence[str]], Side]:
    return lambda folder, below: InProcess(name, python, driver, folder, below)


def _served(contestant: Contestant, speaks: Speaks) -> Callable[[Path, Sequence[str]], Side]:
    return lambda folder, below: OverPipes(contestant, speaks, folder, below)
