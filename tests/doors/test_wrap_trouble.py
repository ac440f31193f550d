"""`limpet wrap` in trouble: a store that fails, a disk without room, kills and signals, and how everything ends."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import limpet
from doors.mcp_client import Lines, Reply
from doors.upstream import words
from doors.wrap_kit import BIG, LIMPET, MASK, UPSTREAM, ask, id_in, opened, read_back, shown, wrapped
from person import configure


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "limpet.db"


@pytest.fixture
def client(store: Path) -> Iterator[Lines]:
    with opened(wrapped(store)) as lines:
        yield lines


# --- when something of ours fails -------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", ["not a database", "a directory", "no such directory", "no such server"])
def test_with_a_store_in_trouble_the_originals_pass(trouble: str, tmp_path: Path) -> None:
    place = str(tmp_path / "place")
    if trouble == "not a database":
        Path(place).write_bytes(b"this is not a database, it is a letter" * 100)
    elif trouble == "a directory":
        Path(place).mkdir()
    elif trouble == "no such server":
        place = "mysql://nowhere"
    else:
        Path(place).write_bytes(b"")
        place = f"{place}/below/a/file.db"
    with Lines(wrapped(place)) as client, Lines([sys.executable, UPSTREAM, "serve"]) as direct:
        for lines in (client, direct):
            lines.open("2025-11-25")
        for tool in ("text", "fail", "wrapped", "media"):
            assert client.raw("tools/call", {"name": tool, "arguments": {"size": BIG}}) == direct.raw(
                "tools/call", {"name": tool, "arguments": {"size": BIG}}
            )
        assert "read_output" in [tool["name"] for tool in client.ask("tools/list")["tools"]]
        # Where a store could be, reading finds nothing. It is the first write that fails.
        assert ask(client, "list_outputs").get("isError", False) is (trouble != "no such directory")
        code, _, said = client.leave()
    assert code == 0
    assert said.count(b"limpet wrap: ") == 5, said  # the fifth is about the seals of the tools
    assert b"Traceback" not in said


def test_a_bad_setting_does_not_keep_the_upstream_from_working(store: Path) -> None:
    with Lines(wrapped(store), env={"LIMPET_SET": "outputs.threshold_bytes=many"}) as client:
        assert shown(ask(client, "text", size=BIG)) == words(BIG)
        assert b"threshold_bytes" in client.leave()[2]


def test_outputs_that_are_switched_off_pass(store: Path, tmp_path: Path) -> None:
    configure(f'[projects."{tmp_path}".outputs]\nenabled = false\n')
    # The settings are those of the folder the client starts us in.
    command = ["sh", "-c", 'cd "$0" && exec "$@"', str(tmp_path), *wrapped(store)]
    with Lines(command) as client:
        assert shown(ask(client, "text", size=BIG)) == words(BIG)


WAIT = 9  # seconds; less than a write waits for a lock, so whoever took less did not wait for it


@pytest.mark.slow
def test_a_store_that_hangs_delays_only_what_was_to_be_kept(store: Path) -> None:
    with limpet.open(str(store)) as hold:
        hold.session("one").notes.add("makes the store and its lock")
    with open(f"{store}.lock", "rb+") as lock, Lines(wrapped(store)) as client:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begun = time.monotonic()
        params = {"name": "text", "arguments": {"size": BIG}}
        client.send({"jsonrpc": "2.0", "id": "big", "method": "tools/call", "params": params})
        assert shown(ask(client, "text", size=5)) == words(5)
        assert time.monotonic() - begun < WAIT
        assert shown(client.read()["result"]) == words(BIG)
        # From now on the store is known to hang, and nobody waits for it as long again.
        begun = time.monotonic()
        assert shown(ask(client, "text", size=BIG)) == words(BIG)
        assert time.monotonic() - begun < WAIT
        fcntl.flock(lock, fcntl.LOCK_UN)
        begun = time.monotonic()
        while not shown(ask(client, "text", size=BIG)).startswith(MASK):
            assert time.monotonic() - begun < 20
            time.sleep(0.1)


def test_without_room_on_the_disk_the_originals_pass(store: Path) -> None:
    limpet.open(str(store)).close()
    noise = random.Random(7).randbytes(1_000_000).hex()
    # A limit on the size of files stands in for the full disk: the write fails in the same place.
    with Lines(["sh", "-c", 'ulimit -f 700; exec "$@"', "sh", *wrapped(store)]) as client:
        assert json.loads(shown(ask(client, "echo", noise=noise))) == {"noise": noise}
        assert shown(ask(client, "text", size=5)) == words(5)
        code, _, said = client.leave()
    assert code == 0
    assert b"limpet wrap: " in said
    assert b"Traceback" not in said
    with limpet.open(str(store)) as hold:
        assert all(finding.ok for finding in hold.check())


@pytest.mark.slow
def test_sixty_four_megabytes_and_more(client: Lines) -> None:
    most = 64 << 20
    size = most - len(words(most).encode()) + most  # characters of two bytes make the text longer than it looks
    kept = id_in(shown(ask(client, "text", size=size - 1_000_000)))
    assert client.text("read_output", id=kept, lines="1-1").startswith("line of text")
    assert shown(ask(client, "text", size=most)) == words(most)


def test_a_wrapper_that_is_killed_takes_its_upstream_with_it(client: Lines) -> None:
    pid = json.loads(shown(ask(client, "pid")))
    params = {"name": "slow", "arguments": {"steps": 1, "pause": 60}}
    client.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
    assert client.read()["method"] == "notifications/progress"
    client.process.kill()
    begun = time.monotonic()
    while _runs(pid):
        assert time.monotonic() - begun < 10
        time.sleep(0.05)


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_a_wrapper_that_is_killed_while_it_keeps_something_loses_nothing(store: Path, moment: float) -> None:
    """Whatever the moment is, what the client was told is there, and the store is sound."""
    with opened(wrapped(store)) as client:
        first = id_in(shown(ask(client, "text", size=BIG)))
        params = {"name": "text", "arguments": {"size": 3_000_000, "seed": "other"}}
        client.send({"jsonrpc": "2.0", "id": "big", "method": "tools/call", "params": params})
        time.sleep(moment)
        client.process.kill()
        rest = client.leave()[1]
    with opened(wrapped(store)) as client:
        assert read_back(client, first) == words(BIG)
        again = id_in(shown(ask(client, "text", size=3_000_000, seed="other")))
        if rest:
            assert id_in(shown(json.loads(rest)["result"])) == again
        assert client.text("read_output", id=again, lines="1-1").startswith("line of other")
        assert client.leave()[0] == 0
    with limpet.open(str(store)) as hold:
        assert all(finding.ok for finding in hold.check())


# --- time, ends and signals -------------------------------------------------------------------------------------------


def test_progress_and_cancellation_reach_the_other_side(client: Lines) -> None:
    params = {"name": "slow", "arguments": {"steps": 1000, "pause": 0.05}, "_meta": {"progressToken": 70}}
    client.send({"jsonrpc": "2.0", "id": 70, "method": "tools/call", "params": params})
    for step in range(3):
        assert client.read()["params"] == {"progressToken": 70, "progress": step}
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 70}})
    client.send({"jsonrpc": "2.0", "id": 71, "method": "tools/call", "params": {"name": "cancelled"}})
    while (reply := client.read()).get("id") != 71:
        assert reply["method"] == "notifications/progress"
    assert json.loads(shown(reply["result"])) == [70]


def test_progress_passes_while_a_result_is_being_kept(client: Lines) -> None:
    ask(client, "text", size=BIG)
    slow = {"name": "slow", "arguments": {"steps": 60, "pause": 0.01}}
    big = {"name": "text", "arguments": {"size": 8_000_000}}
    client.send({"jsonrpc": "2.0", "id": 80, "method": "tools/call", "params": slow})
    client.send({"jsonrpc": "2.0", "id": 81, "method": "tools/call", "params": big})
    seen: list[int | None] = []
    while seen.count(80) + seen.count(81) < 2:
        seen.append(client.read().get("id"))
    assert sorted(id for id in seen if id) == [80, 81]
    assert seen.count(None) == 60


@pytest.mark.parametrize(("how", "code", "word"), [({}, 137, "signal 9"), ({"code": 3}, 3, "exit code 3")])
def test_an_upstream_that_dies_leaves_no_call_unanswered(client: Lines, how: Reply, code: int, word: str) -> None:
    slow = {"name": "slow", "arguments": {"steps": 1, "pause": 60}}
    client.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": slow})
    assert client.read()["method"] == "notifications/progress"
    client.send({"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": {"name": "die", "arguments": how}})
    replies = [client.read(), client.read()]
    assert {reply["id"] for reply in replies} == {"slow", 90}
    assert all(word in reply["error"]["message"] for reply in replies)
    assert client.process.wait(10) == code


def test_half_a_message_of_a_dying_upstream_stays_on_its_own_line(client: Lines) -> None:
    params = {"name": "die", "arguments": {"half": '{"jsonrpc":"2.0","id":91,"resu'}}
    client.send({"jsonrpc": "2.0", "id": 91, "method": "tools/call", "params": params})
    assert client.process.stdout is not None
    assert client.process.stdout.readline() == b'{"jsonrpc":"2.0","id":91,"resu\n'
    assert client.read()["error"]["code"] == -32000
    assert client.process.wait(10) == 137


def test_the_exit_code_is_that_of_the_upstream(store: Path) -> None:
    with Lines(wrapped(store, "serve", "--seven")) as client:
        assert client.leave()[0] == 7


def test_what_was_asked_before_the_client_closed_is_answered(store: Path) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "text", "arguments": {"size": BIG}}}
        for number in range(3)
    ]
    # This server ends as soon as its input does, so it is given a second to answer first.
    script = "; ".join(f"echo '{json.dumps(call)}'" for call in calls)
    command = ["sh", "-c", f'({script}; sleep 1) | "$@"', "sh", *wrapped(store)]
    done = subprocess.run(command, capture_output=True, timeout=30, check=True)
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == [0, 1, 2]


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def upstream_script(text: str) -> list[str]:
    return [sys.executable, "-c", text]


STUBBORN = "import signal, sys, time; signal.signal(15, signal.SIG_IGN); print('{}', flush=True); time.sleep(600)"
POLITE = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(5)); print('{}', flush=True); time.sleep(600)"


@pytest.mark.parametrize(("script", "code"), [(STUBBORN, 137), (POLITE, 5)])
def test_an_upstream_that_does_not_end_is_ended(script: str, code: int, store: Path) -> None:
    with Lines([*wrapped(store)[:-3], *upstream_script(script)]) as client:
        assert client.read() == {}
        begun = time.monotonic()
        assert client.leave()[0] == code
        assert time.monotonic() - begun < 12


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_handed_on(which: int, store: Path) -> None:
    script = f"import signal, sys, time; signal.signal({int(which)}, lambda *_: sys.exit(6)); print('{{}}', flush=True)"
    command = [*wrapped(store)[:-3], *upstream_script(f"{script}; time.sleep(600)")]
    with Lines(command) as client:
        assert client.read() == {}
        client.process.send_signal(which)
        assert client.process.wait(10) == 6


def test_a_launcher_that_ends_does_not_end_the_server(store: Path) -> None:
    inner = shlex.join([sys.executable, UPSTREAM, "serve"])
    pid = store.with_name("launcher")
    command = [*wrapped(store)[:-3], "sh", "-c", f"echo $$ > {pid}; exec 3<&0; {inner} <&3 & sleep 0.2"]
    with Lines(command) as client:
        begun = time.monotonic()
        while not pid.exists() or not pid.read_text() or _runs(pid.read_text().strip()):
            assert time.monotonic() - begun < 20
            time.sleep(0.02)
        assert shown(ask(client, "text", size=5)) == words(5)


def test_the_environment_is_the_clients_without_ours(store: Path) -> None:
    given = {"PATH": os.environ["PATH"], "LIMPET_TOKEN": "t", "LIMPET_STORE": str(store), "MINE": "é", "LANG": "C"}
    bare = ["env", "-i", *(f"{name}={value}" for name, value in given.items())]
    with Lines([*bare, *wrapped(store)]) as client:
        seen: dict[str, Any] = json.loads(shown(client.ask("tools/call", {"name": "environment"})))
    with Lines([*bare, sys.executable, UPSTREAM, "serve"]) as direct:
        there: dict[str, Any] = json.loads(shown(direct.ask("tools/call", {"name": "environment"})))
    assert seen == {name: value for name, value in there.items() if not name.startswith("LIMPET_")}
    assert seen["MINE"] == "é"


def test_secrets_are_masked_before_they_are_kept(client: Lines, store: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    result = ask(client, "echo", a=f"{words(BIG)} token {secret} end")
    assert secret not in read_back(client, id_in(shown(result)))
    assert client.leave()[0] == 0
    assert not [path for path in store.parent.iterdir() if secret.encode() in path.read_bytes()]


def test_a_command_that_cannot_be_started_is_named(store: Path) -> None:
    command = [*wrapped(store)[:-3], "no-such-command-anywhere"]
    done = subprocess.run(command, capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert b"no-such-command-anywhere" in done.stderr
    assert done.stdout == b""


@pytest.mark.parametrize("args", [["wrap"], ["wrap", "--"], ["wrap", "--threshold", "x", "--", "cat"]])
def test_a_command_line_that_is_not_complete_is_refused(args: list[str]) -> None:
    command = [*LIMPET, *args]
    done = subprocess.run(command, capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stderr


@pytest.mark.parametrize("args", [["--json", "wrap", "--", "cat"], ["wrap", "--threshold=5000", "cat"]])
def test_click_knows_the_command_too(args: list[str], tmp_path: Path) -> None:
    command = [*LIMPET, *args]
    done = subprocess.run(command, capture_output=True, timeout=20, check=True, input=b"hello\n", cwd=tmp_path)
    assert done.stdout == b"hello\n"
