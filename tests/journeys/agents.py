"""Agents that write through the MCP door of an HTTP server and do what a sane client does when it gets no answer.

A note is written again with other words, because nobody can know whether the first one was kept; so a text that is
there twice was doubled by the server. Memory is written again as it was, because by its key it is the same. What was
acknowledged is remembered, and `held` holds it against what is there.
"""

from __future__ import annotations

import threading
import time

import httpx2

from doors.team_kit import PROJECT, TENANT, Caller
from limpet.model import MEMORY, NOTE, Scope
from limpet.store import EventQuery, Listing
from limpet.wiring import choose_store

PATIENCE_SECONDS = 120
EVERYTHING = 1_000_000
SCOPE = Scope(TENANT, PROJECT)


class Agents:
    def __init__(self, url: str, token: str, count: int = 4) -> None:
        self.notes: list[str] = []
        self.memory: dict[str, str] = {}
        self.retries = 0
        self._over = threading.Event()
        self._failed = threading.local()  # how often in a row
        self._threads = [threading.Thread(target=self._work, args=(url, token, n)) for n in range(count)]
        for thread in self._threads:
            thread.start()

    def _work(self, url: str, token: str, number: int) -> None:
        # A request that a dead worker took with it is noticed when the line breaks; the limit is for the rest.
        with httpx2.Client(base_url=url, timeout=30) as http:
            agent, at = Caller(http, token), 0
            while not self._over.is_set():
                at += 1
                tried = 0
                while not self._over.is_set():
                    tried += 1
                    text = f"agent {number} wrote note {at}, try {tried}"
                    if self._told(agent, "add_note", {"content": text}):
                        self.notes.append(text)
                        break
                key, text = f"fact-{number}-{at}", f"agent {number} learned fact {at}"
                while not self._over.is_set():
                    if self._told(agent, "write_memory", {"key": key, "content": text}):
                        self.memory[key] = text
                        break

    def _told(self, agent: Caller, tool: str, arguments: dict[str, object]) -> bool:
        """Whether it was acknowledged."""
        try:
            answer = agent.tool(tool, arguments)
            done = answer.status_code == 200 and not answer.json()["result"].get("isError")
        except httpx2.TransportError:
            done = False
        if done:
            self._failed.pauses = 0
        else:
            self.retries += 1
            self._failed.pauses = min(5, getattr(self._failed, "pauses", 0) + 1)
            time.sleep(0.02 * 2**self._failed.pauses)  # a sane client gives a server time to come back
        return done

    @property
    def acknowledged(self) -> int:
        return len(self.notes) + len(self.memory)

    def until_more(self, count: int) -> None:
        wanted, deadline = self.acknowledged + count, time.monotonic() + PATIENCE_SECONDS
        while self.acknowledged < wanted:
            assert time.monotonic() < deadline, f"{wanted - self.acknowledged} of {count} were not acknowledged"
            time.sleep(0.005)

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def held(agents: Agents, store_url: str) -> None:
    """All that was acknowledged is there, once, and the store is whole."""
    store = choose_store(store_url)
    try:
        notes = [entry.content for entry in store.entries.list(SCOPE, Listing((NOTE,), limit=EVERYTHING)).entries]
        memory = {entry.key: entry for entry in store.entries.list(SCOPE, Listing((MEMORY,), limit=EVERYTHING)).entries}
        seqs = [event.seq for event in store.entries.events(SCOPE, EventQuery(limit=EVERYTHING))]
        findings = store.check()
    finally:
        store.close()
    assert sorted(set(agents.notes) - set(notes)) == [], "acknowledged and lost"
    assert len(notes) == len(set(notes)), "written once and there twice"
    assert {key: memory[key].content if key in memory else None for key in agents.memory} == agents.memory
    assert {entry.version for entry in memory.values()} == {1}, "a repeated write of the same was taken for another"
    assert seqs == list(range(len(seqs), 0, -1))
    assert all(finding.ok for finding in findings), findings
