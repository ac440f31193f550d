"""`limpet wrap` in front of real servers from the npm registry, driven by the official client, against no wrapper."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from doors.mcp_client import sdk_session
from doors.sdk_story import Story, dumped, tell
from doors.wrap_kit import MASK
from person import trusted

SERVERS = ("memory", "everything", "filesystem")
LONG = "\n".join(f'line {number}: the quick brown fox, é and "quotes"' for number in range(2_000))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder the servers were installed into."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("There is no npm on this machine, so there are no servers from its registry.")
    folder = tmp_path_factory.mktemp("npm")
    packages = [f"@modelcontextprotocol/server-{name}" for name in SERVERS]
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm could not install the servers: {done.stderr[-300:]}")
    return folder / "node_modules" / "@modelcontextprotocol"


def command(servers: Path, name: str, *args: str) -> list[str]:
    return ["node", str(servers / f"server-{name}" / "dist" / "index.js"), *args]


def compared(direct: list[str], story: Story, tmp_path: Path, before: Callable[[], object] = lambda: None) -> int:
    """Tell the story with and without the wrapper; the answers must be the same. How many were kept."""
    runs: list[tuple[list[Any], int]] = []

    async def main(line: list[str]) -> None:
        before()
        async with sdk_session(command=line, revision="2025-11-25") as session:
            runs.append(await tell(session, story))

    ours = [sys.executable, "-m", "limpet", "wrap", *trusted(tmp_path / "limpet.db"), "--", *direct]
    anyio.run(main, direct)
    anyio.run(main, ours)
    (plain, none), (answers, kept) = runs
    assert none == 0
    assert len(plain) == len(answers)
    for here, there in zip(plain, answers, strict=True):
        assert here == there
    return kept


def test_memory(servers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = tmp_path / "graph.jsonl"
    monkeypatch.setenv("MEMORY_FILE_PATH", str(graph))
    entities = [
        {"name": f"entity-{number}", "entityType": "thing", "observations": [f"saw {number}", "é 😀"]}
        for number in range(100)
    ]
    relations = [{"from": "entity-1", "to": "entity-2", "relationType": "knows"}]
    story: Story = [
        ("read_graph", {}),
        ("create_entities", {"entities": entities[:2]}),
        ("create_relations", {"relations": relations}),
        ("create_entities", {"entities": entities[2:]}),
        ("add_observations", {"observations": [{"entityName": "entity-3", "contents": ["more"]}]}),
        ("add_observations", {"observations": [{"entityName": "nobody", "contents": ["more"]}]}),
        ("search_nodes", {"query": "entity-7"}),
        ("open_nodes", {"names": ["entity-1"]}),
        ("read_graph", {}),
        ("delete_entities", {"entityNames": ["entity-9"]}),
        ("no_such_tool", {}),
    ]
    assert compared(command(servers, "memory"), story, tmp_path, lambda: graph.unlink(missing_ok=True)) >= 2


def test_filesystem(servers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "long.txt").write_text(LONG, encoding="utf-8")
    (folder / "rows.json").write_text(json.dumps([{"n": number} for number in range(2_000)]))
    (folder / "short.txt").write_text("short\n")
    for number in range(300):
        (folder / f"file-{number:03}").touch()
    story: Story = [
        ("list_allowed_directories", {}),
        ("read_text_file", {"path": str(folder / "short.txt")}),
        ("read_text_file", {"path": str(folder / "long.txt")}),
        ("read_text_file", {"path": str(folder / "long.txt"), "tail": 3}),
        ("read_multiple_files", {"paths": [str(folder / "rows.json"), str(folder / "nothing")]}),
        ("list_directory", {"path": str(folder)}),
        ("directory_tree", {"path": str(folder)}),
        ("get_file_info", {"path": str(folder / "short.txt")}),
        ("read_text_file", {"path": "/etc/passwd"}),
        ("search_files", {"path": str(folder), "pattern": "file-*"}),
    ]
    assert compared(command(servers, "filesystem", str(folder)), story, tmp_path) >= 4


def test_everything(servers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("LIMPET_")]:
        monkeypatch.delenv(name)  # get-env shows the environment, which is to be the same less these
    story: Story = [
        ("echo", {"message": "small"}),
        ("echo", {"message": LONG}),
        ("get-sum", {"a": 1.5, "b": 2}),
        ("get-sum", {"a": "x"}),
        ("get-annotated-message", {"messageType": "error", "includeImage": True}),
        ("get-env", {}),
        ("get-resource-links", {"count": 3}),
        ("get-structured-content", {"location": "Chicago"}),
        ("get-tiny-image", {}),
        ("trigger-long-running-operation", {"duration": 0.5, "steps": 5}),
    ]
    assert compared(command(servers, "everything"), story, tmp_path) >= 1


def test_progress_and_references_with_everything(servers: Path, tmp_path: Path) -> None:
    seen: list[float] = []

    async def progress(done: float, _total: float | None, _message: str | None) -> None:
        seen.append(done)

    async def main() -> None:
        line = [sys.executable, "-m", "limpet", "wrap", *trusted(tmp_path / "a.db"), "--"]
        async with sdk_session(command=[*line, *command(servers, "everything")], revision="2025-11-25") as session:
            call: Callable[..., Awaitable[Any]] = session.call_tool
            arguments = {"duration": 1, "steps": 4}
            await call("trigger-long-running-operation", arguments, progress_callback=progress)
            kept = dumped(await call("echo", {"message": LONG}))["content"][0]["text"]
            id = kept.removeprefix(MASK).split()[0]
            part = dumped(await call("echo", {"message": f"hold://{id}#lines=5-5"}))["content"][0]["text"]
            assert part.strip() == f"Echo: {LONG.splitlines()[4]}"

    anyio.run(main)
    assert seen == [1, 2, 3, 4]
