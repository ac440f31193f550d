"""Ways to run the command line in tests: in this process, as a process of its own, and on a terminal."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from limpet.clients import session_variables
from limpet.doors.cli import main
from person import store_of

COMMAND = (sys.executable, "-m", "limpet")
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error of a command that was run with --json."""
        assert self.out == ""
        return json.loads(self.err)["error"]


class Cli:
    """The command line in this process, in a project of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    @property
    def store(self) -> Path:
        return store_of(self.folder)

    def __call__(self, *args: str, stdin: str | bytes = "") -> Ran:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        self._capsys.readouterr()
        try:
            code = main(list(args))
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        found = self._capsys.readouterr()
        return Ran(code, found.out, found.err)

    def ok(self, *args: str, stdin: str | bytes = "") -> str:
        """What a command that must succeed prints."""
        ran = self(*args, stdin=stdin)
        assert ran.code == 0, ran.err
        return ran.out

    def ask(self, *args: str, stdin: str | bytes = "") -> Any:
        """What a command that must succeed answers with --json."""
        return self(*args, "--json", stdin=stdin).json


def environment(**more: str) -> dict[str, str]:
    """The test's environment for a child process, without the names of sessions we may be running in."""
    return {
        name: value for name, value in os.environ.items() if name not in ("LIMPET_SESSION", *session_variables())
    } | more


def run(*args: str, stdin: bytes = b"") -> Ran:
    """The command line in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    old, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main(list(args))
    finally:
        sys.stdin = old
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return Ran(code, *texts)


def run_child(*args: str, stdin: bytes = b"") -> Ran:
    """The command line as a process of its own."""
    done = subprocess.run(
        [*COMMAND, *args],
        input=stdin,
        capture_output=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def sentence(ran: Ran) -> str:
    """What a command run with --json says went wrong; notices may stand before it."""
    assert ran.out == ""
    return str(json.loads(ran.err.strip().split("\n")[-1])["error"]["message"])


def child(
    folder: Path,
    *args: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    command: Sequence[str] = COMMAND,
) -> subprocess.CompletedProcess[bytes]:
    """The command line as a process of its own."""
    return subprocess.run(
        [*command, *args],
        cwd=folder,
        input=stdin,
        capture_output=True,
        env=environment(**(env or {})),
        timeout=60,
        check=False,
    )


def on_terminal(
    folder: Path, *args: str, env: Mapping[str, str] | None = None, width: int = 100, typed: bytes = b""
) -> tuple[int, bytes]:
    """The command line on a terminal: its exit code and every byte the terminal got."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *args],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(**({"TERM": "xterm-256color"} | dict(env or {}))),
        close_fds=True,
        start_new_session=True,
    )
    os.close(theirs)
    if typed:
        os.write(ours, typed)
    got = _read_all(ours, process)
    os.close(ours)
    return process.wait(timeout=60), got


def _read_all(terminal: int, process: subprocess.Popen[bytes]) -> bytes:
    got = b""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                piece = os.read(terminal, 65_536)
            except OSError as problem:
                if problem.errno == errno.EIO:  # the other side has closed
                    return got
                raise
            if not piece:
                return got
            got += piece
    process.kill()
    raise AssertionError(f"the command did not end: {got!r}")


def assert_quiet(output: bytes, *, terminal: bool = False) -> None:
    """Nothing in it acts on a terminal, save our own colours when it is one."""
    text = COLOUR.sub(b"", output) if terminal else output
    text = text.replace(b"\r\n", b"\n") if terminal else text
    found = CONTROL.search(text.decode("utf-8"))
    assert found is None, (found, output)
