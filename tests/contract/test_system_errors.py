"""Errors of the operating system: each becomes a sentence that says what to do, and none comes out as it is."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import limpet
from limpet import errors, platform
from limpet.platform import Linux

STRACE = shutil.which("strace")
ADD = ("-m", "limpet", "--store", "{store}", "--project", "p", "note", "add", "one more")
WITHOUT_DESCRIPTORS = """
import os, resource, sys, limpet
from limpet import errors

hold = limpet.open(sys.argv[1], project="p", session="s", folder=os.path.dirname(sys.argv[1]))
hold.session().notes.add("tea at four")
limit = resource.getrlimit(resource.RLIMIT_NOFILE)
used = max(map(int, os.listdir("/proc/self/fd")))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, limit[1]))
calls = {
    "search_notes": {"query": "tea"},
    "recall": {"query": "tea"},
    "init_journal": {},
    "update_journal": {"section": "Blockers & Dependencies", "content": "x"},
    "run_sandbox_code": {"code": "1 + 1"},
    "list_outputs": {},
    "audit": {},
    "history": {},
    "list_skills": {},
    "purge": {"origin": "tool"},
    "add_note": {"content": "x"},
}
for name, arguments in calls.items():
    try:
        hold.call(name, arguments)
        print(name, "answered")
    except errors.LimpetError as problem:
        print(name, "refused", problem.code)
    except BaseException as problem:
        print(name, "RAISED", repr(problem))
resource.setrlimit(resource.RLIMIT_NOFILE, limit)
for name, arguments in calls.items():
    try:
        hold.call(name, arguments)
    except errors.BadInput:
        pass
print("works again")
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with limpet.open(str(tmp_path / "limpet.db"), project="p", session="s") as hold:
        hold.session().notes.add("tea at four")
    return tmp_path / "limpet.db"


def traced(store: Path, inject: str) -> tuple[int, str]:
    """Add a note in a process whose system calls fail."""
    if STRACE is None:
        pytest.skip("strace is not installed.")
    command = [part.format(store=store) for part in ADD]
    ran = subprocess.run(
        [STRACE, "-f", "-qq", "-o", "/dev/null", "-e", f"inject={inject}", sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    if "strace:" in ran.stderr:
        pytest.skip("Tracing is not allowed here.")
    return ran.returncode, ran.stderr


@pytest.mark.parametrize("code", ["ENOLCK", "EOPNOTSUPP"])
def test_a_file_system_without_locks_is_refused_and_the_cure_named(store: Path, code: str) -> None:
    returned, message = traced(store, f"flock:error={code}")
    assert returned == 5
    assert "does not lock files" in message
    assert "LIMPET_HOME" in message


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_reads_work_and_writes_are_refused(
    store: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(file: int, how: int) -> None:
        raise OSError(code, os.strerror(code))

    module = SimpleNamespace(flock=flock, LOCK_EX=fcntl.LOCK_EX, LOCK_NB=fcntl.LOCK_NB, LOCK_UN=fcntl.LOCK_UN)
    monkeypatch.setattr(platform, "here", Linux(module))
    with limpet.open(str(store), project="p", session="s") as hold:
        assert hold.call("search_notes", {"query": "tea"})["notes"]
        with pytest.raises(errors.StoreReadOnly) as caught:
            hold.call("add_note", {"content": "x"})
        assert caught.value.code == "store_without_locks"
        assert any(finding.name == "lock" and "LIMPET_HOME" in finding.detail for finding in hold.store.obstacles())


@pytest.mark.parametrize("when", ["2+", "9+"], ids=["in the shared memory", "in the log"])
def test_a_quota_that_is_used_up_is_a_full_disk(store: Path, when: str) -> None:
    """SQLite first makes eight pages of memory that processes share, then writes the change to its log."""
    returned, message = traced(store, f"pwrite64:error=EDQUOT:when={when}")
    assert returned == 5
    assert "there is no space left" in message


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="It looks at the descriptors of a process.")
def test_without_descriptors_every_refusal_is_one_of_ours(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_DESCRIPTORS, str(tmp_path / "limpet.db")],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "RAISED" not in ran.stdout
    assert "refused no_descriptors" in ran.stdout
    assert ran.stdout.endswith("works again\n")
