"""Hooks when things go wrong: the agent gets a valid answer and exit code 0, people get a line in the log."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from doors.hook_kit import Place, context, ran, started
from limpet import limits
from limpet.doors.hooks.process import put_aside
from person import project_folder

BIG = "\n".join(f"line {number} of a long result" for number in range(400))
FAILED = "A hook of Limpet failed in this session: {}. `limpet doctor` says more."
STARTING = 2.5  # seconds that a process may take to start on a busy machine
EVENTS = (
    "session-start",
    "prompt",
    "before-tool",
    "after-tool",
    "before-compact",
    "before-model",
    "stop",
    "session-end",
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b"[" * 50_000, b'{"cwd": 7, "session_id": ["x"]'],
    ids=["empty", "half", "list", "null", "text", "bytes", "deep", "cut"],
)
def test_garbage(place: Place, content: bytes) -> None:
    with place.open() as hold:
        hold.memory.write("style", "Tabs")
    assert place.raw("claude-code", "session-start", content) == {}
    assert place.log.count("\n") == 1
    assert "claude-code session-start" in place.log


@pytest.mark.parametrize("event", EVENTS)
def test_odd_values_in_every_field(place: Place, event: str) -> None:
    with place.open() as hold:
        hold.session("one").notepad.write("- [ ] casts")
    names = (
        "cwd",
        "session_id",
        "source",
        "tool_name",
        "tool_input",
        "tool_response",
        "transcript_path",
        "llm_request",
    )
    for value in (None, 7, "", "\x00\n", ["x"], {"a": 1}, "y" * 300):
        payload = json.dumps(dict.fromkeys(names, value) | {"cwd": str(place.project)})
        place.raw("claude-code", event, payload.encode())


def test_unknown_names(place: Place) -> None:
    with place.open() as hold:
        hold.memory.write("style", "Tabs")
    assert place.hook("claude-code", "no-such-event", {}) == {}
    assert "no-such-event" in place.log
    assert place.hook("claude-code", "sesion-start", {}) == {}
    last = place.log.splitlines()[-1]
    assert "'sesion-start' is no event" in last
    assert "session-start" in last.partition("'sesion-start'")[2]
    assert "KeyError" not in place.log
    place.hook("claudecode", "stop", {})
    last = place.log.splitlines()[-1]
    assert "'claudecode'" in last
    assert "claude-code" in last
    assert "Tabs" in place.hook("another", "session-start", {"session_id": "x"})["context"]


@pytest.mark.parametrize("kind", ["hostile", "huge", "pipe", "link"])
def test_a_journal_of_any_kind_does_not_keep_the_rest_away(place: Place, tmp_path: Path, kind: str) -> None:
    with place.open() as hold:
        hold.memory.write("style", "Tabs")
    file = place.project / "NOTES.md"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "link":
        (tmp_path / "outside.md").write_text("## Active Context\n- **Status**: of somebody else\n")
        file.symlink_to(tmp_path / "outside.md")
    else:
        file.write_text("<<<<<<< a\n=======\n>>>>>>> b\n" * (9_000 if kind == "hostile" else 500_000))
    text = place.hook("another", "session-start", {"session_id": "x"})["context"]
    assert "Tabs" in text
    assert "of somebody else" not in text
    assert ("too many to read" in text) == (kind == "huge")


def test_a_store_that_is_locked_holds_nobody_up(place: Place) -> None:
    with place.open() as hold:
        hold.session("earlier").handoff.write("Casts come next.")
    with open(f"{place.store}.lock", "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begun = started("claude-code", "one")
        # Reading waits for nobody; only that the handoff was used could not be noted.
        assert "Casts come next." in context(
            place.hook("claude-code", "session-start", begun, LIMPET_SET="hooks.seconds=6")  # a busy machine needs some
        )
        done = ran("claude-code", "one", "Bash", BIG)
        told = place.hook("claude-code", "after-tool", done, LIMPET_SET="hooks.seconds=1")
        assert told["systemMessage"].startswith("A hook of Limpet failed in this session: ")
        assert place.hook("claude-code", "before-compact", {"session_id": "one"}, LIMPET_SET="hooks.seconds=1") == {}
        assert place.hook("claude-code", "session-end", {"session_id": "one"}, LIMPET_SET="hooks.seconds=1") == {}
    assert place.log.count("StoreBusy: ") + place.log.count("gave up after 1 seconds") >= 3
    assert "Casts come next." in context(place.hook("claude-code", "session-start", started("claude-code", "two")))


def test_a_hook_does_not_wait_again_for_a_lock_that_another_hook_waited_for(place: Place) -> None:
    with place.open() as hold:
        hold.session("earlier").handoff.write("Casts come next.")
    with open(f"{place.store}.lock", "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        took = []
        for name in ("one", "two", "three"):
            began = time.monotonic()
            done = ran("claude-code", name, "Bash", BIG)
            told = place.hook("claude-code", "after-tool", done, LIMPET_SET="hooks.seconds=5")
            assert told.keys() == {"systemMessage"}
            took.append(time.monotonic() - began)
    assert took[0] > 4
    assert max(took[1:]) < 3  # with the start of a process on a busy machine
    assert "StoreBusy: " in place.log


def test_a_data_folder_that_cannot_be_written(place: Place) -> None:
    data = place.home / ".local" / "share" / "limpet"
    data.mkdir(parents=True)
    if os.geteuid() == 0:
        # Nothing stops this user from writing, so a file stands where the folder would be.
        (data / "projects").write_text("in the way")
    else:
        data.chmod(0o500)
    assert place.hook("claude-code", "session-start", started("claude-code", "one")) == {}
    done = ran("claude-code", "one", "Bash", BIG)
    told = place.hook("claude-code", "after-tool", done)
    assert told == {} or str(data / "projects") in told["systemMessage"]
    assert place.hook("claude-code", "after-tool", done) == {}, "once per session"
    assert os.geteuid() != 0 or "after-tool: " in place.log


def test_what_stands_in_place_of_a_repository_s_folder_is_told_once(place: Place) -> None:
    (place.project / ".limpet").write_text("in the way")
    told = place.hook("claude-code", "session-start", started("claude-code", "one"))
    assert told == {
        "systemMessage": f"Limpet: {place.project}/.limpet is not read: .limpet is a link, or cannot be read."
    }
    assert place.hook("claude-code", "session-start", started("claude-code", "two")) == {}
    assert place.hook("gemini", "session-start", started("gemini", "three")) == {}
    assert "cached" in json.dumps(place.hook("claude-code", "after-tool", ran("claude-code", "one", "Bash", BIG)))
    assert place.log == ""


def test_a_store_that_is_none_and_settings_that_cannot_be_read(place: Place) -> None:
    project_folder(place.project, place.environment()).make()
    place.store.write_bytes(b"this is no database at all" * 100)
    for client in ("claude-code", "codex", "gemini"):
        told = place.hook(client, "session-start", started(client, "one"))
        if client == "gemini":  # nothing that it would show
            assert told == {}
        else:
            assert (
                f"A hook of Limpet failed in this session: {place.store} is not a Limpet store" in told["systemMessage"]
            )
            assert told["systemMessage"].endswith("`limpet doctor` says more.")
        assert place.hook(client, "session-start", started(client, "one")) == {}, "once per session"
    assert "NotAStore" in place.log
    place.store.unlink()
    place.configure("[hooks\n")
    told = place.hook("claude-code", "after-tool", ran("claude-code", "two", "Bash", BIG))
    assert "it must be TOML" in told["systemMessage"]
    assert "BadInput" in place.log


def test_a_home_that_cannot_be_written_either(place: Place) -> None:
    (place.home / ".local").write_text("in the way")
    assert place.raw("claude-code", "session-start", b"{") == {}


def test_a_client_that_does_not_read_the_answer_has_not_used_the_handoff(place: Place) -> None:
    with place.open() as hold:
        hold.session("earlier").handoff.write("Casts come next.")
    process = place.start("claude-code", "session-start")
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.write(json.dumps({**started("claude-code", "one"), "cwd": str(place.project)}).encode())
    process.stdin.close()
    assert process.wait(60) == 0
    process.stderr.close()
    with place.open() as hold:
        assert hold.session().handoff.read().used_by is None


def test_the_log_stays_small(place: Place) -> None:
    folder = place.home / ".local" / "share" / "limpet"
    folder.mkdir(parents=True)
    (folder / "hooks.log").write_text("x" * (limits.HOOK_LOG_BYTES + 1))
    place.raw("claude-code", "session-start", b"{")
    assert place.log.count("\n") == 1
    assert (folder / "hooks.log.old").exists()


@pytest.mark.parametrize("many", [16, pytest.param(200, marks=pytest.mark.slow)])
def test_many_hooks_at_once_all_succeed_exactly_once(place: Place, many: int) -> None:
    hooks = []
    for number in range(many):
        process = place.start("codex", "after-tool", LIMPET_SET="hooks.seconds=600")
        hooks.append(process)
        # Each gets its event at once, as from a client: a hook does not wait for one for ever.
        done = {**ran("codex", f"s{number}", "mcp__files__list", f"{number}\n{BIG}"), "cwd": str(place.project)}
        assert process.stdin is not None
        process.stdin.write(json.dumps(done).encode())
        process.stdin.close()
    shown = set()
    for process in hooks:
        assert process.stdout is not None
        assert process.stderr is not None
        shown.add(json.loads(process.stdout.read())["reason"].partition("cached: ")[2][:12])
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
        process.stdout.close()
        process.stderr.close()
    with place.open() as hold:
        kept = hold.session().outputs.list(limit=1_000).outputs
        assert {output.id for output in kept} == shown
        assert sorted(int(hold.session().outputs.read_content(one.id).split("\n")[0]) for one in kept) == list(
            range(many)
        )
        assert all(found.ok for found in hold.check())
    assert place.log == ""


@pytest.mark.parametrize(("event", "limit"), [("session-start", 5.0), ("after-tool", 5.0), ("session-end", 2.5)])
def test_a_client_that_does_not_finish_its_event_is_answered_within_the_limit(
    place: Place, event: str, limit: float
) -> None:
    """Nothing of the settings is read yet, so the default counts."""
    began = time.monotonic()
    process = place.start("claude-code", event)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b'{"session_id": "one"')
    process.stdin.flush()
    assert process.wait(60) == 0
    assert time.monotonic() - began < limit + STARTING
    assert (process.stdout.read(), process.stderr.read()) == (b"{}\n", b"")
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
    assert "gave up after" in place.log


@pytest.mark.parametrize("name", [".config/limpet/config.toml", ".local/share/limpet/hooks.log", "told"])
def test_a_pipe_in_place_of_any_file_holds_no_hook_up(place: Place, name: str) -> None:
    """A pipe that nobody writes or reads stands for a file system that does not answer."""
    path = place.home / (".local/share/limpet/told" if name == "told" else name)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    began = time.monotonic()
    answer = place.hook("claude-code", "session-start", started("claude-code", "one"), LIMPET_SET="nonsense=1")
    assert time.monotonic() - began < 5 + STARTING
    assert answer == {} or "systemMessage" in answer
    if name.endswith("toml"):
        assert place.run("note", "list").returncode == 2


def test_a_hook_whose_answer_nobody_reads_ends_within_the_limit(place: Place) -> None:
    with place.open() as hold:
        hold.session("earlier").handoff.write("Casts come next.\n" * 500)
    process = place.start("claude-code", "session-start")
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4_096)
    process.stdin.write(json.dumps({**started("claude-code", "one"), "cwd": str(place.project)}).encode())
    process.stdin.close()
    began = time.monotonic()
    assert process.wait(60) == 0
    assert time.monotonic() - began < 5 + STARTING
    process.stdout.close()
    process.stderr.close()
    with place.open() as hold:
        assert hold.session().handoff.read().used_by is None


def test_a_hook_that_comes_late_does_not_put_the_new_log_in_place_of_the_old(tmp_path: Path) -> None:
    log, old = tmp_path / "hooks.log", tmp_path / "hooks.log.old"
    log.write_text("full\n")
    with log.open("a") as late:  # it found the log full, and so did another hook, which was faster
        log.rename(old)
        log.write_text("new\n")
        put_aside(str(log), late.fileno())
    assert (old.read_text(), log.read_text()) == ("full\n", "new\n")
    with log.open("a") as first:
        put_aside(str(log), first.fileno())
    assert (old.read_text(), log.exists()) == ("new\n", False)


@pytest.mark.parametrize("event", ["stop", "before-compact", "session-end"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_transcript_that_is_no_ordinary_file_costs_no_time(place: Place, kind: str, event: str) -> None:
    path = place.home / "talk.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = Path("/dev/zero")
    began = time.monotonic()
    assert place.hook("claude-code", event, {"session_id": "one", "transcript_path": str(path)}) == {}
    assert time.monotonic() - began < 4  # the limit of a hook is 5 seconds
    assert place.log == ""
