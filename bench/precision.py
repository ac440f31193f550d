"""Runs the official harness of PrecisionMemBench against precision_adapter.py, and reads what it reports.

The harness is taken as it is at HEAD of a clone of tenurehq/precisionMemBench; one entry is added to its list of
providers, as its own guide for submissions asks. npm installs what it needs, a Node it runs on among it.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from shutil import rmtree, which
from socket import create_connection, socket
from typing import Any, NamedTuple

from bench.figures import remark
from bench.measure import OUT, ROOT

NODE = "node@22"  # its test runner needs this; what is installed on a machine is often older
SUITES = ("retrieval", "session-retrieval")
WAIT = 30  # seconds for the adapter to answer
PUBLISHED = ("tenure", "supermemory", "mem0")  # reports that lie in the repository, of runs that were not ours


class Report(NamedTuple):
    precision: float
    recall: float
    active: int
    passed: int
    turns: int  # of the sessions
    p50: float  # milliseconds
    failed: list[str]  # cases


def prepared(repository: Path) -> Path | None:
    """The harness, with what it needs; None, with a word, where npm is not there."""
    npm = which("npm")
    if npm is None:
        remark("PrecisionMemBench: not measured, npm is not there.")
        return None
    folder = OUT / "precision"
    rmtree(folder, ignore_errors=True)
    command = ["git", "-C", str(repository), "archive", "HEAD"]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    tarfile.open(fileobj=io.BytesIO(archive)).extractall(folder, filter="data")  # noqa: SIM115 - of bytes
    wanted = [npm, "install", "--no-audit", "--no-fund", "--no-save", NODE]
    done = subprocess.run(wanted, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        remark(f"PrecisionMemBench: not measured, npm cannot install it ({done.stderr.strip().splitlines()[:1]}).")
        return None
    path = folder / "providers.config.json"
    providers = json.loads(path.read_text(encoding="utf-8"))
    form = {"beliefToText": "canonical_name_aliases", "supportsUpdate": True, "seedDelayMs": 0}
    providers["limpet"] = {"envVar": "LIMPET_URL", "defaultUrl": "", **form}
    path.write_text(json.dumps(providers), encoding="utf-8")
    return folder


def run(harness: Path, *arguments: str) -> Report:
    """Both suites against a fresh adapter."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    adapter = subprocess.Popen(
        [sys.executable, "-m", "bench.precision_adapter", str(port), *arguments], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    try:
        _wait(port)
        found = {"PATH": f"{harness / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}", "RESEED": "true"}
        environment = os.environ | found | {"MEMORY_PROVIDER": "limpet", "LIMPET_URL": f"http://127.0.0.1:{port}"}
        for suite in SUITES:
            wanted = ["npx", "ava", f"src/{suite}.external.eval.test.ts", "--timeout", "10m"]
            # It fails where one case fails; what counts is its report.
            subprocess.run(wanted, cwd=harness, env=environment, capture_output=True, check=False)
    finally:
        adapter.terminate()
        adapter.wait()
    return report(harness / "test-results", "limpet")


def _wait(port: int) -> None:
    until = time.monotonic() + WAIT
    while True:
        try:
            create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def report(folder: Path, provider: str) -> Report:
    single, session = (_read(folder / f"{suite}-report-{provider}.json") for suite in SUITES)
    cases = [f"{one['caseId']}: {'; '.join(one['failures'])}" for one in single["cases"] if not one["passed"]]
    found = single["retrieval"]
    return Report(
        found["meanPrecision"],
        found["meanRecall"],
        found["activeRetrievalPasses"],
        found["totalPassed"],
        session["retrieval"]["totalPassed"],
        found["p50LatencyMs"],
        cases,
    )


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
