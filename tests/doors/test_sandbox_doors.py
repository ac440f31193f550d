"""The sandbox behind real doors: hostile code sent by the official client to a server in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import ClientSession

from doors.mcp_client import MODERN, http_server, sdk_session, stdio_command

SECRET = "canary-7f3a9"
DEEP = "a = []\nfor n in range(150_000):\n    a = [a]\n"
LAUGHS = "a = ['x' * 1000]\nfor n in range(40):\n    a = [a, a]\n"

# Code that must end in an error, and a word of it. {file} is a file with a secret in it, {new} one that is not there.
HOSTILE: dict[str, tuple[str, str]] = {
    # time
    "endless loop": ("while True:\n    pass", "ran longer than 1 seconds"),
    "a loop that catches everything": (
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        "ran longer than 1 seconds",
    ),
    "a loop in the engine": ("sum(range(10 ** 12))", "ran longer than 1 seconds"),
    "a huge power": ("pow(3, 10 ** 400_000, 10 ** 400_000)", "ran longer than 1 seconds"),
    "sleep": ("import time\ntime.sleep(60)", "wanted to sleep"),
    "calls without end": ("while True:\n    outputs.list()", "more than 2,000 times"),
    "a pattern that backtracks": ("import re\nre.match(r'(a|a)*\\1?$', 'a' * 40 + 'b')", "backtracking"),
    # memory
    "a list without end": ("a = []\nwhile True:\n    a.append('x' * 1000)", "more than 128 MB"),
    "a list that catches everything": (
        "a = []\nwhile True:\n    try:\n        a.append('x' * 9999)\n    except BaseException:\n        a.append(1)",
        "more than 128 MB",
    ),
    "a huge text": ("'x' * 10 ** 11", "more than 128 MB"),
    "a huge text, formatted": ("'{:>99999999999}'.format(1)", "more than 128 MB"),
    "a huge text, replaced": ("('a' * 10 ** 6).replace('a', 'b' * 10 ** 5)", "more than 128 MB"),
    "a huge number": ("10 ** 10 ** 9", "more than 128 MB"),
    "a huge shift": ("1 << 10 ** 13", "more than 128 MB"),
    "a huge list": ("list(range(10 ** 11))", "more than 128 MB"),
    "huge bytes": ("bytes(10 ** 11)", "more than 128 MB"),
    "a huge product": ("import itertools\nlist(itertools.product(range(1000), repeat=9))", "more than 128 MB"),
    "a number no one can write": ("str(7 ** 500_000)", "4300 digits"),
    "printing without end": ("for n in range(10_000):\n    print('x' * 10_000)", "printed more than 4.00MB"),
    "a result that unfolds": (LAUGHS + "a", "its result is larger"),
    "an argument that unfolds": (LAUGHS + "session.notepad.write(a)", "too large or nested too deeply"),
    "a name that unfolds": (LAUGHS + "outputs.read('x', **{'y' * 100_000: a})", "too large or nested too deeply"),
    # the stack
    "recursion": ("def f(n):\n    return f(n + 1)\nf(0)", "RecursionError"),
    "recursion in the engine": ("def f(x):\n    return sorted([x], key=f)\nf(1)", "RecursionError"),
    "deep source": ("(" * 20_000 + "1" + ")" * 20_000, "too deeply nested"),
    "deep signs": ("-" * 90_000 + "1", "too deeply nested"),
    "deep JSON": ("import json\njson.loads('[' * 1_000_000)", "recursion limit"),
    "a deep result": (DEEP + "a", "its result is larger"),
    "a deep argument": (DEEP + "outputs.read(a)", "too large or nested too deeply"),
    # files, processes, network, environment
    "open": ("open({file!r}).read()", "PermissionError"),
    "open to write": ("open({new!r}, 'w').write('x')", "PermissionError"),
    "pathlib": ("from pathlib import Path\nPath({file!r}).read_text()", "PermissionError"),
    "os.listdir": ("import os\nos.listdir('/')", "PermissionError"),
    "os.environ": ("import os\nprint(dict(os.environ))", "not supported"),
    "os.getenv": ("import os\nprint(os.getenv('SANDBOX_CANARY'))", "not supported"),
    "os.system": ("import os\nos.system('touch ' + {new!r})", "no attribute 'system'"),
    "os.remove": ("import os\nos.remove({file!r})", "Error"),
    "subprocess": ("import subprocess", "No module named 'subprocess'"),
    "socket": ("import socket", "No module named 'socket'"),
    "urllib": ("import urllib.request", "No module named 'urllib'"),
    "ctypes": ("import ctypes", "No module named 'ctypes'"),
    "importlib": ("import importlib", "No module named 'importlib'"),
    "pickle": ("import pickle", "No module named 'pickle'"),
    "__import__": ("__import__('os').system('id')", "NameError"),
    "builtins": ("import builtins", "No module named 'builtins'"),
    "sys.modules": ("import sys\nsys.modules", "no attribute 'modules'"),
    # walks
    "a walk from a tuple": ("().__class__.__bases__[0].__subclasses__()", "AttributeError"),
    "a walk from a type": ("type(outputs).__mro__[-1].__subclasses__()", "AttributeError"),
    "a walk from a method": ("outputs.read.__func__.__globals__", "AttributeError"),
    "a walk from a function": ("_outputs_read.__globals__", "AttributeError"),
    "a walk by exec": ("exec('().__class__.__base__')", "AttributeError"),
    "a walk by format": ("print('{0.__class__.__init__.__globals__}'.format(outputs))", "Error"),
    "frames": ("try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__.tb_frame", "AttributeError"),
    "exit": ("exit()", "NameError"),
    "SystemExit": ("raise SystemExit", "SystemExit"),
    "KeyboardInterrupt": ("raise KeyboardInterrupt()", "KeyboardInterrupt"),
    # another's things
    "a path for an id": ("outputs.read('../../../etc/passwd')", "is not valid"),
    "a private function with nothing": ("_outputs_read()", "TypeError"),
    "a private function with too much": ("_outputs_lines(1, 2, 3, 4, 5)", "TypeError"),
}


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIMPET_SET", "sandbox_seconds=1")
    monkeypatch.setenv("SANDBOX_CANARY", SECRET)
    folder = tmp_path / "canary"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


async def run(session: ClientSession, code: str, **inputs: Any) -> tuple[bool, str]:
    """Whether it failed, and what the agent reads."""
    result = await session.call_tool("run_sandbox_code", {"code": code, "inputs": inputs})
    assert isinstance(result, types.CallToolResult)
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return bool(result.is_error), block.text


def test_hostile_code_ends_in_an_error_and_touches_nothing(canary: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with sdk_session(command=stdio_command(str(tmp_path / "a.db")), revision=MODERN) as session:
            await session.call_tool("write_notepad", {"content": "as it was"})
            wrong = []
            for name, (code, says) in HOSTILE.items():
                places = {"file": str(canary / "secret.txt"), "new": str(canary / "new")}
                filled = code.format(**places) if "{file" in code or "{new" in code else code
                failed, text = await run(session, filled)
                if not failed or says not in text or SECRET in text or len(text) > 2_500:
                    wrong.append(f"{name}: {text[:300]}")
            assert wrong == []
            failed, text = await run(session, "session.notepad.read()")
            assert not failed
            assert text == 'result: "as it was"'

    anyio.run(main)
    assert [path.name for path in canary.iterdir()] == ["secret.txt"]
    assert (canary / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_agent_computes_over_an_output_and_notes_what_it_found(transport: str, tmp_path: Path) -> None:
    store = str(tmp_path / "a.db")
    listing = "".join(f"file {number} is {number * 7} bytes\n" for number in range(1, 601))
    keep = [sys.executable, "-m", "limpet", "output", "keep", "ls", "--json"]
    env = {**os.environ, "LIMPET_STORE": store}
    kept = subprocess.run(keep, input=listing, capture_output=True, text=True, check=True, env=env)
    id = json.loads(kept.stdout)["id"]
    code = (
        "total = sum(int(line.split()[3]) for line in outputs.lines(id))\n"
        "session.notepad.append(f'- {total} bytes in all, see {id}\\n')\n"
        "print(total)"
    )

    async def work(session: ClientSession) -> None:
        failed, text = await run(session, code, id=id)
        assert not failed, text
        assert text == f"{7 * 600 * 601 // 2}"
        notepad = await session.call_tool("read_notepad", {})
        assert isinstance(notepad, types.CallToolResult)
        assert notepad.structured_content is not None
        assert notepad.structured_content["content"] == f"- {7 * 600 * 601 // 2} bytes in all, see {id}\n"

    async def main() -> None:
        command = stdio_command(store) if url is None else None
        async with sdk_session(command=command, url=url, revision=MODERN) as session:
            await work(session)

    url: str | None = None
    if transport == "stdio":
        anyio.run(main)
    else:
        with http_server(store) as url:
            anyio.run(main)


# --- the command line -------------------------------------------------------------------------------------------------


def limpet(folder: Path, *words: str, text: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "limpet", *words]
    return subprocess.run(
        command, cwd=folder, input=text, capture_output=True, text=True, check=False, env=os.environ | env
    )


def test_people_run_files_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "count.py").write_text("print('counted')\n{'n': n}\n")
    done = limpet(tmp_path, "sandbox", "run", "count.py", "--inputs", '{"n": 3}', "--session", "s")
    assert (done.returncode, done.stdout) == (0, 'counted\n{\n "n": 3\n}\n'), done.stderr
    done = limpet(tmp_path, "sandbox", "run", "-", "--json", "--session", "s", text="1 + 1")
    assert json.loads(done.stdout) == {"output": "", "result": 2}
    done = limpet(tmp_path, "sandbox", "run", "-", "--session", "s", text="x = 1\nx / 0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the code failed at line 2, 'x / 0': ZeroDivisionError" in done.stderr
    assert limpet(tmp_path, "sandbox", "run", "no_such_file.py").returncode == 2
    assert "--inputs is no JSON" in limpet(tmp_path, "sandbox", "run", "count.py", "--inputs", "{").stderr
    assert "must be an object" in limpet(tmp_path, "sandbox", "run", "count.py", "--inputs", "[1]").stderr


def test_without_the_extra_the_error_names_it(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / "pydantic_monty.py").write_text("raise ImportError('not here')\n")
    done = limpet(tmp_path, "sandbox", "run", "-", "--session", "s", text="1", PYTHONPATH=str(shadow))
    assert done.returncode == 5
    assert "pip install 'limpet[sandbox]'" in done.stderr


def test_without_the_interpreter_the_error_is_clear(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    done = limpet(tmp_path, "sandbox", "run", "-", "--session", "s", text="1", MONTY_BIN=str(tmp_path / "none"))
    assert done.returncode == 5
    assert "the sandbox's own process could not be started" in done.stderr


FORKS = """
import os, sys
import limpet
from limpet import errors
with limpet.open(sys.argv[1], session="s") as hold:
    assert hold.session().sandbox.run("1 + 1").result == 2
    child = os.fork()
    if child == 0:
        try:
            hold.session().sandbox.run("1 + 1")
        except errors.BadInput as problem:
            os._exit(7 if problem.code == "sandbox_forked" else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert hold.session().sandbox.run("2 + 2").result == 4
"""


def test_a_fork_after_use_is_refused_rather_than_waited_for(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKS, str(tmp_path / "a.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
