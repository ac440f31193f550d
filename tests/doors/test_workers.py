"""`limpet serve --workers`: several processes on one port, stopped and killed while calls come in."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from doors.team_kit import PROJECT, TENANT, stored
from limpet import wiring
from limpet.model import NOTE, Scope
from limpet.store import Listing


@contextmanager
def serving(store: str, folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    env = {**os.environ, "LIMPET_TENANT": TENANT, "LIMPET_SET": "server.calls_per_minute=10000000"}
    words = ["serve", "--store", store, "--project", PROJECT, "--port", "0", "--json", "--team", *options]
    with (folder / "serve.log").open("w+", encoding="utf-8") as log:
        command = [sys.executable, "-m", "limpet", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=env, cwd=folder)
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said, (folder / "serve.log").read_text(encoding="utf-8")
            yield json.loads(said)["url"].removesuffix("/mcp"), process
        finally:
            process.terminate()
            process.communicate(timeout=40)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    return [int(one) for one in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


class Load:
    """Writers that never stop by themselves. `acknowledged` is what they were told is kept."""

    def __init__(self, url: str, token: str) -> None:
        self.acknowledged: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(url, token, n)) for n in range(6)]
        for thread in self._threads:
            thread.start()

    def _write(self, url: str, token: str, number: int) -> None:
        at = 0
        while not self._stop.is_set():
            at += 1
            content = f"writer {number} wrote note {at}"
            try:
                answer = httpx2.post(
                    f"{url}/api/v1/operations/add_note",
                    json={"content": content},
                    headers={"Authorization": f"Bearer {token}"},
                    timeout=20,
                )
            except httpx2.TransportError:
                continue
            if answer.status_code == 200:
                self.acknowledged.append(content)

    def until(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.acknowledged) < count:
            assert time.monotonic() < deadline, f"{len(self.acknowledged)} calls answered"
            time.sleep(0.01)

    def end(self) -> list[str]:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        return self.acknowledged


def kept(store: str) -> list[str]:
    with wiring.open(store) as hold:
        page = hold.store.entries.list(Scope(TENANT, PROJECT), Listing((NOTE,), limit=100_000))
        return [entry.content for entry in page.entries]


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="children are found in /proc")
def test_a_worker_is_killed_and_the_server_stopped_under_load(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    token = stored(store, "write").secret
    with serving(store, tmp_path, "--workers", "2") as (url, process):
        first = workers_of(process)
        assert len(first) == 2
        load = Load(url, token)
        try:
            load.until(30)
            os.kill(first[0], signal.SIGKILL)
            deadline = time.monotonic() + 30
            while len(set(workers_of(process)) - {first[0]}) < 2:
                assert time.monotonic() < deadline, "no worker came in place of the one that was killed"
                time.sleep(0.02)
            load.until(len(load.acknowledged) + 30)
            process.terminate()
            assert process.wait(timeout=40) == 0
        finally:
            told = load.end()
    there = kept(store)
    assert len(told) >= 60
    assert set(told) <= set(there), "a write was acknowledged and is gone"
    assert len(there) == len(set(there)), "a write is there twice"
    assert "Traceback" not in (tmp_path / "serve.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_mcp_works_whichever_worker_answers(store_url: str, tmp_path: Path, mode: str) -> None:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    store = store_url
    token = stored(store, "write").secret

    async def talk(url: str, number: int) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        # Every request over a connection of its own, so that each may reach another worker.
        one_each = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_keepalive_connections=0))
        async with (
            httpx2.AsyncClient(headers=headers, transport=one_each, timeout=60) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
        ):
            for at in range(8):
                await client.call_tool("add_note", {"content": f"client {number} note {at}"})
            found = await client.call_tool("list_notes", {})
            assert found.structured_content is not None
            assert found.structured_content["note_count"] >= 8

    with serving(store, tmp_path, "--workers", "3", "--profile", "full", "--structured") as (url, _process):
        for number in range(3):
            asyncio.run(talk(url, number))
    assert len(kept(store)) == 24


def test_metrics_of_several_processes_are_refused_in_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "limpet", "serve", "--workers", "2", "--metrics"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "goes with one worker" in " ".join(done.stderr.split())
