"""The command line as people and scripts run it: a process of its own, pipes, signals and exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from doors.cli_runner import COMMAND, assert_quiet, child, environment
from doors.mcp_client import Lines, hello
from person import store_of, trusted

PAYLOAD = (
    "bell \x07 title \x1b]0;owned\x07 clear \x1b[2J red \x1b[31m C1 \x9b31m \x90q\x9c backspace \x08 return \r "
    "delete \x7f newline NEL \x85 override \u202e mark \ufeff tag \U000e0041 [bold]markup[/bold] :smile: end"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


def test_what_one_process_writes_another_reads(folder: Path) -> None:
    added = child(folder, "note", "add", "Casts break LL(1)", "--tag", "grammar", "--json")
    assert (added.returncode, added.stderr) == (0, b"")
    listed = child(folder, "note", "list", "--json")
    assert listed.stdout.count(b"\n") == 1
    assert json.loads(listed.stdout)["notes"][0]["id"] == json.loads(added.stdout)["note_id"]
    assert child(folder, "note", "add", stdin="ünï\n".encode()).returncode == 0
    found = child(folder, "note", "list", "--json").stdout.decode()
    assert '"content": "ünï"' in found  # as it is, not as escapes


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--version"], 0),
        (["--help"], 0),
        (["note"], 2),
        (["note", "add", " "], 2),
        (["note", "add", "--no-such-option"], 2),
        (["note", "delete", "note_1"], 3),
        (["pad", "write", "x", "--if-version", "3"], 4),
        (["note", "list", "--store", "/dev/null/x.db"], 3),
        (["init", "--store", "/dev/null/x.db"], 5),
        (["doctor", "--store", "nowhere.db"], 5),
    ],
)
def test_exit_codes_mean_something(folder: Path, args: list[str], code: int) -> None:
    ran = child(folder, *args)
    assert ran.returncode == code
    assert b"Traceback" not in ran.stderr
    assert (code == 0) == (ran.stderr == b"") or "doctor" in args


def test_the_installed_command_is_the_same() -> None:
    script = Path(sys.executable).with_name("limpet")
    if not script.exists():
        pytest.skip("limpet is not installed as a command here")
    ran = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"limpet \d+\.\d+\.\d+\n", ran.stdout)


def test_what_must_start_at_once_imports_neither_click_nor_rich(folder: Path) -> None:
    script = (
        "import sys\nbefore = set(sys.modules)\nfrom limpet.doors.cli import main\nmain(sys.argv[1:])\n"
        "heavy = {'click', 'rich', 'json', 'apsw', 'mcp', 'typing'} & (set(sys.modules) - before)\n"
        "print(*sorted(heavy), file=sys.stderr)\n"
    )
    command = (sys.executable, "-c", script)
    version = child(folder, "--version", command=command)
    assert not set(version.stderr.split()) & {b"click", b"rich", b"json", b"apsw", b"mcp", b"typing"}
    served = child(folder, "mcp", command=command)
    assert served.returncode == 0
    assert not set(served.stderr.split()) & {b"click", b"rich", b"mcp"}


def test_a_hook_compiles_no_annotation_and_reads_no_table_of_commands(folder: Path) -> None:
    # Compiling the first string takes a millisecond, and the annotations of a NamedTuple may be strings.
    script = (
        "import os, sys\ncompiled = []\n"
        "def heard(name, args):\n"
        "    if name == 'compile' and args[1] == '<string>' and not args[0].startswith(b'lambda'):\n"
        "        compiled.append(args)\n"
        "sys.addaudithook(heard)\n"
        "def leave(code):\n"
        "    print(compiled, *(name for name in sys.modules if 'commands' in name), file=sys.stderr)\n"
        "    sys.stderr.flush(); end(code)\n"
        "end, os._exit = os._exit, leave\n"
        "from limpet.doors.cli import main\nmain(sys.argv[1:])\n"
    )
    child(folder, "note", "add", "x")
    command = (sys.executable, "-c", script)
    for event in ("session-start", "prompt", "after-tool"):
        ran = child(folder, "hook", "--client", "claude-code", event, command=command, stdin=b'{"tool_name": "Bash"}')
        assert ran.stderr == b"[]\n"


def test_a_hook_with_nothing_to_do_imports_no_module_that_takes_milliseconds(folder: Path) -> None:
    script = (
        "import os, sys\nbefore = set(sys.modules)\n"
        "def leave(code):\n"
        "    print(*sorted(set(sys.modules) - before), file=sys.stderr); sys.stderr.flush(); end(code)\n"
        "end, os._exit = os._exit, leave\n"
        "from limpet.doors.cli import main\nmain(sys.argv[1:])\n"
    )
    child(folder, "note", "add", "x")
    event = b'{"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "x"}}'
    words = ("hook", "--client", "claude-code", "after-tool")
    ran = child(folder, *words, command=(sys.executable, "-c", script), stdin=event)
    assert (ran.stdout, ran.returncode) == (b"{}\n", 0)
    heavy = {
        "typing",
        "re",
        "enum",
        "json",
        "datetime",
        "hashlib",
        "fnmatch",
        "shlex",
        "apsw",
        "dataclasses",
        "inspect",
    }
    assert not heavy & set(ran.stderr.decode().split())


def test_well_formed_commands_and_plain_output_need_neither_click_nor_rich(folder: Path) -> None:
    script = (
        "import sys\nfrom limpet.doors.cli import main\ncode = main(sys.argv[1:])\n"
        "assert code == 0 and not {'click', 'rich'} & set(sys.modules), (code, sorted(sys.modules))\n"
    )
    command = (sys.executable, "-c", script)
    for words in (["note", "add", "x"], ["note", "list", "--json"], ["pad", "append", "- [ ] x", "--session", "s"]):
        assert child(folder, *words, command=command).returncode == 0


def test_mcp_speaks_on_standard_output(folder: Path) -> None:
    place = trusted(folder / "mcp.db", "p")
    for extra in ((), ("--profile", "full"), ("--json",)):  # the last one is unusual, so click reads the options
        with Lines([*COMMAND, "mcp", *place, "--session", "agent", *extra], env=environment()) as client:
            client.open(hello("2025-06-18")["protocolVersion"])
            client.call("add_note", content=f"from an agent with {extra}")
            assert client.leave()[0] == 0
    listed = json.loads(child(folder, "note", "list", *place, "--session", "agent", "--json").stdout)
    assert listed["note_count"] == 3


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_nothing_stored_acts_in_a_pipe(folder: Path, options: list[str]) -> None:
    id = json.loads(child(folder, "note", "add", "-", "--json", stdin=PAYLOAD.encode()).stdout)["note_id"]
    key = "memory"
    assert child(folder, "note", "update", id, "--tag", "a\x1b[31mb\x9b").returncode == 0
    assert child(folder, "pad", "write", "-", "--session", "s", stdin=PAYLOAD.encode()).returncode == 0
    assert child(folder, "pad", "append", PAYLOAD, "--session", "s").returncode == 0
    assert child(folder, "memory", "write", key, "-", stdin=PAYLOAD.encode()).returncode == 0
    assert child(folder, "handoff", "write", "-", stdin=PAYLOAD.encode()).returncode == 0
    assert child(folder, "session", "begin", "s", "--task", PAYLOAD).returncode == 0
    for args in (
        *(["note", "list"], ["note", "search", "bell"], ["note", "search", PAYLOAD], ["tags"], ["pad", "show"]),
        *(
            ["pad", "history", "--diff", "1"],
            ["memory", "show", key],
            ["memory", "search", "bell"],
            ["handoff", "show"],
        ),
        *(["session", "list"], ["session", "show", "s"], ["history"], ["context"], ["export"], ["undo"], ["doctor"]),
    ):
        ran = child(folder, *args, *options)
        assert ran.returncode == 0, ran.stderr
        assert_quiet(ran.stdout)
        assert_quiet(ran.stderr)
        if args[0] not in ("tags", "doctor", "undo"):
            assert b"owned" in ran.stdout
    for args in (
        ["pad", "edit", "--session", "s", "--find", PAYLOAD + "?", "--replace", "x"],
        ["memory", "show", "\x1b[2J"],
    ):
        failed = child(folder, *args, *options)
        assert failed.returncode in (2, 3)
        assert_quiet(failed.stderr)


def test_a_reader_that_goes_away_is_no_fault(folder: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(12_000))
    assert child(folder, "pad", "write", "-", "--session", "s", stdin=lines.encode()[:90_000]).returncode == 0
    for args in (["pad", "show", "--session", "s"], ["export"], ["--help"]):
        process = subprocess.Popen(
            [*COMMAND, *args], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()
        process.stderr.close()
        assert process.wait(60) in (141, 1, 0)
        assert said == b""


def test_an_interrupted_command_says_nothing_and_exits_130(folder: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "note", "add", "-"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED="1"),
        # Tests that run in the background of a shell are given a SIGINT that is ignored, and hand it on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    assert process.stdin is not None
    process.stdin.write(b"half a note")
    process.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")
    assert not store_of(folder).exists()


def test_a_terminal_without_unicode_gets_escapes(folder: Path) -> None:
    child(folder, "note", "add", "ünï 🙂")
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    plain = child(folder, "note", "list", env=ascii_only)
    assert plain.returncode == 0
    assert plain.stdout.endswith(b"\\u00fcn\\u00ef \\ud83d\\ude42\n")
    found = json.loads(child(folder, "note", "list", "--json", env=ascii_only).stdout)
    assert found["notes"][0]["content"] == "ünï 🙂"


def test_an_import_larger_than_a_pipe_streams(folder: Path) -> None:
    for number in range(3):
        child(folder, "memory", "write", f"key {number}", "-", stdin=b"x" * 50_000)
    exported = child(folder, "export").stdout
    assert child(folder, "import", "-", "--exact", "--project", "copy", stdin=exported).returncode == 0
    again = child(folder, "export", "--project", "copy").stdout
    assert again.split(b"\n", 1)[1] == exported.split(b"\n", 1)[1]


def test_the_demo_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    first = child(folder, "demo", env={"TMPDIR": str(temporary)})
    assert first.returncode == 0
    assert first.stderr == b""
    assert first.stdout == child(folder, "demo", env={"TMPDIR": str(temporary)}).stdout
    assert os.listdir(temporary) == []
    assert os.listdir(folder) == [".git"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(folder: Path, shell: str) -> None:
    ran = child(folder, "completion", shell)
    assert ran.returncode == 0
    assert b"_LIMPET_COMPLETE" in ran.stdout


def test_the_completion_script_works_in_bash(folder: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "limpet"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m limpet "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(limpet completion bash)"\n'
        "complete -p limpet\n"
        "COMP_WORDS=(limpet note a); COMP_CWORD=2; _limpet_completion limpet; "
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(PATH=path),
        check=True,
    )
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[-1] == "add"


@pytest.mark.parametrize("named", [None, "a-token-from-the-settings"])
def test_serve_says_how_to_connect(folder: Path, named: str | None) -> None:
    pytest.importorskip("uvicorn")
    env = environment(**({"LIMPET_TOKEN": named} if named else {}))
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    )
    try:
        assert process.stdout is not None
        said = b""
        while b"Ctrl-C stops it." not in said:
            line = process.stdout.readline()
            assert line, process.communicate()
            said += line
        text = said.decode()
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", text)
        assert found
        made = re.search(r"token: (\S{43})\n", text)
        assert (made is None) == (named is not None)
        assert named is None or named not in text
        with urllib.request.urlopen(found[0].replace("/mcp", "/health")) as reply:  # noqa: S310 - our own server
            assert json.load(reply) == {"status": "ok"}
        assert posted(found[0], "wrong") == 401
        assert posted(found[0], named or (made[1] if made else "")) == 200
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


def posted(url: str, token: str) -> int:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("2025-11-25")}).encode()
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as reply:  # noqa: S310
            return int(reply.status)
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code


@pytest.mark.parametrize(
    "args",
    [
        ["note", "add", "The port is 5432"],
        ["note", "list", "--json"],
        ["export"],
        ["--version"],
        ["--version", "--json"],
        ["--help"],
        ["note", "--help"],
        ["note", "add", "-h"],
        ["completion", "bash"],
    ],
)
def test_an_answer_that_does_not_fit_on_the_disk_is_a_sentence(folder: Path, args: list[str]) -> None:
    child(folder, "note", "add", "The host is db")
    ran = child(folder, *args, command=["sh", "-c", 'exec "$@" >/dev/full', "sh", *COMMAND])
    assert ran.returncode == 1
    assert b"could not be written to standard output: No space left on device" in ran.stderr
    assert b"went wrong inside" not in ran.stderr
    assert b"Exception" not in ran.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_stop_no_command(folder: Path, closed: str) -> None:
    """As daemons and some clients start programs. The store must not get the number of one of them."""
    ran = child(
        folder, "note", "add", f"The port is {closed}", command=["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND]
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    notes = json.loads(child(folder, "note", "list", "--json").stdout)["notes"]
    assert [note["content"] for note in notes] == [f"The port is {closed}"]
