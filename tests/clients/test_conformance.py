"""The official conformance suite against our HTTP server, and the inspector's strict look at every tool's schema.

The suite has no way to speak stdio; there the inspector and the official client (tests/doors/test_mcp_sdk.py) are the
judges. Scenarios that call tools by fixed names find them in `conformance_server`, which is the product with fixtures
beside it. What fails must be listed here with its reason, and what is listed must fail.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clients.install import installed
from clients.node import node
from limpet.catalogue.table import PROFILES
from person import trusted

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
STABLE, NEXT = "0.1.16", "0.2.0-alpha.12"  # the second knows 2026-07-28
INSPECTOR = "2.12.0"
FIXTURES = Path(__file__).with_name("conformance_server.py")

LOGS = "sends no log messages to clients, and does not say that it does"
PROGRESS = "reports progress on standard input and output alone, where the suite cannot look"
ASKS = "never asks a client for anything: no sampling, no elicitation, no roots"
SUBSCRIBES = "has no subscriptions, and does not say that it has"
TASKS = "does not offer the tasks extension"
HEADERS = "has no tool whose parameters travel as headers"
NOT_OFFERED = {
    "logging-set-level": LOGS,
    "tools-call-with-logging": LOGS,
    "tools-call-with-progress": PROGRESS,
    "tools-call-sampling": ASKS,
    "tools-call-elicitation": ASKS,
    "elicitation-sep1034-defaults": ASKS,
    "elicitation-sep1330-enums": ASKS,
    "input-required-result-basic-elicitation": ASKS,
    "input-required-result-basic-sampling": ASKS,
    "input-required-result-basic-list-roots": ASKS,
    "input-required-result-request-state": ASKS,
    "input-required-result-multiple-input-requests": ASKS,
    "input-required-result-multi-round": ASKS,
    "input-required-result-non-tool-request": ASKS,
    "input-required-result-result-type": ASKS,
    "input-required-result-tampered-state": ASKS,
    "input-required-result-capability-check": ASKS,
    "resources-subscribe": SUBSCRIBES,
    "resources-unsubscribe": SUBSCRIBES,
    "tasks-lifecycle": TASKS,
    "tasks-capability-negotiation": TASKS,
    "tasks-wire-fields": TASKS,
    "tasks-request-state-removal": TASKS,
    "tasks-mrtr-input": TASKS,
    "tasks-request-headers": TASKS,
    "tasks-dispatch-and-envelope": TASKS,
    "tasks-required-task-error": TASKS,
    "tasks-mrtr-composition": TASKS,
    "http-custom-header-server-validation": HEADERS,
}
# Checks of a scenario that otherwise applies.
CHECKS_NOT_OFFERED = {
    "sep-2575-http-server-no-independent-requests-on-stream": ASKS,
    "sep-2575-server-no-log-without-loglevel": LOGS,
}
# What the suite demands of any server, so that the product passes it without a fixture.
OF_ANY_SERVER = {
    *("server-initialize", "server-session-lifecycle", "server-stateless", "ping", "tools-list", "resources-list"),
    *("prompts-list", "server-sse-multiple-streams", "dns-rebinding-protection", "caching", "http-header-validation"),
    *("sep-2164-resource-not-found",),
}
FIXTURE_CHECKS = {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"}
RUNS = [
    pytest.param(STABLE, ("--suite", "all"), 32, id="stable"),
    pytest.param(NEXT, ("--requirements", "2025-11-25"), 33, id="2025-11-25"),
    pytest.param(NEXT, ("--requirements", "2026-07-28"), 50, id="2026-07-28"),
]


@contextmanager
def serving(command: list[str], folder: Path) -> Iterator[str]:
    """The address of a server that runs meanwhile."""
    with (folder / "stderr.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            found = next((match[0] for line in process.stdout if (match := re.search(r"http://\S+/mcp", line))), "")
            assert found, (folder / "stderr.log").read_text()
            yield found
        finally:
            process.terminate()
            process.communicate(timeout=30)


def failures(version: str, words: tuple[str, ...], url: str, out: Path) -> dict[str, set[str]]:
    """Every scenario that was run, with those of its checks that failed."""
    suite = installed("@modelcontextprotocol/conformance", version, "@modelcontextprotocol/conformance/dist/index.js")
    command = [node(), str(suite), "server", "--url", url, *words, "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert "SUMMARY" in done.stdout, done.stdout[-2_000:] + done.stderr[-2_000:]
    found: dict[str, set[str]] = {}
    for checks in out.glob("*/checks.json"):
        name = re.sub(r"^server-(.*?)-\d{4}-\d\d-\d\dT.*$", r"\1", checks.parent.name)
        found[name] = {one["id"] for one in json.loads(checks.read_text()) if one["status"] == "FAILURE"}
    return found


@pytest.mark.parametrize(("version", "words", "least"), RUNS)
def test_all_that_we_offer_conforms(version: str, words: tuple[str, ...], least: int, tmp_path: Path) -> None:
    with serving([sys.executable, str(FIXTURES), str(tmp_path / "store.db")], tmp_path) as url:
        found = failures(version, words, url, tmp_path / "out")
    assert len(found) >= least, sorted(found)  # a suite that ran nothing proves nothing
    failing = {name: ids - set(CHECKS_NOT_OFFERED) for name, ids in found.items()}
    assert {name: ids for name, ids in failing.items() if ids and name not in NOT_OFFERED} == {}
    assert [name for name in NOT_OFFERED if name in found and not found[name]] == [], "these work: take them off"


@pytest.mark.parametrize(("version", "words", "least"), RUNS)
def test_the_product_itself_conforms(version: str, words: tuple[str, ...], least: int, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    command = [sys.executable, "-m", "limpet", "serve", "--no-token", "--port", "0", "--profile", "full"]
    with serving([*command, "--store", str(tmp_path / "store.db")], tmp_path) as url:
        found = failures(version, words, url, tmp_path / "out")
    assert len(found) >= least, sorted(found)
    known = FIXTURE_CHECKS | set(CHECKS_NOT_OFFERED)
    applying = {name: ids - known for name, ids in found.items() if name in OF_ANY_SERVER}
    assert len(applying) >= 7, sorted(applying)
    assert not any(applying.values()), applying


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("profile", PROFILES)
def test_the_inspector_finds_no_schema_that_some_client_refuses(profile: str, era: str, tmp_path: Path) -> None:
    pattern = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    inspector = installed("@modelcontextprotocol/inspector", INSPECTOR, pattern)
    server = [sys.executable, "-m", "limpet", "mcp", *trusted(tmp_path / "store.db"), "--profile", profile]
    how = ["--method", "tools/list", "--strict", "--protocol-era", era]
    command = [node(), str(inspector), "--cli", *server, *how]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    tools = json.loads(done.stdout)["tools"]
    assert len(tools) >= 8
    assert "Error: tool" not in done.stderr


def test_the_inspector_calls_a_tool_over_http(tmp_path: Path) -> None:
    pattern = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    inspector = installed("@modelcontextprotocol/inspector", INSPECTOR, pattern)
    with serving([sys.executable, str(FIXTURES), str(tmp_path / "store.db")], tmp_path) as url:
        call = ["--method", "tools/call", "--tool-name", "add_note", "--tool-arg", "content=casts break LL(1)"]
        command = [node(), str(inspector), "--cli", url, *call]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert " kept; 1 note" in told["content"][0]["text"]
    assert "structuredContent" not in told, "models are shown the text"
