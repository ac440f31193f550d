"""Sessions that coding agents kept, read in each one's form and taken in by `limpet import transcript`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doors.cli_runner import COMMAND
from doors.hook_kit import Json, Place
from doors.transcript_kit import ASKED, BIG, CALL, ENDED, FORMS, KEPT, THOUGHT, TOOL
from limpet.importers import transcripts
from limpet.model import MESSAGE
from limpet.store import Listing
from limpet.window.messages import ASSISTANT, USER, Text
from limpet.window.messages import TOOL as RESULT


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def taken_in(place: Place, *words: str, refused: bool = False) -> Json:
    command = [*COMMAND, "import", "transcript", *words, "--json"]
    done = subprocess.run(
        command, cwd=place.project, env=place.environment(), capture_output=True, text=True, timeout=100, check=False
    )
    assert bool(done.returncode) == refused, done.stderr
    found = json.loads(done.stderr)["error"] if refused else json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def kept(place: Place, session: str) -> list[tuple[str, str]]:
    with place.open() as hold:
        window = hold.session(session).window
        return [(one.role, json.dumps(one.parts, ensure_ascii=False)) for one in window.messages()]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_read(form: str) -> None:
    client, write = FORMS[form]
    found = transcripts.read(write("s1", "/somewhere").splitlines(keepends=True))
    assert (found.client, found.session, found.unread) == (client, "s1", ())
    said = [(one.role, one.text()) for one in found.messages if one.text()]
    assert said == [(USER, ASKED), (ASSISTANT, THOUGHT), (ASSISTANT, ENDED)]
    (call,) = [call for one in found.messages for call in one.calls()]
    (result,) = [result for one in found.messages for result in one.results()]
    assert (call.name, json.loads(call.arguments)) == (TOOL, CALL)
    assert result.call_id == call.id
    assert "".join(part.text for part in result.parts if isinstance(part, Text)) == BIG
    assert [one.role for one in found.messages if one.calls() or one.results()] == [ASSISTANT, RESULT]


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_taken_in_once(place: Place, form: str) -> None:
    client, write = FORMS[form]
    file = place.project / "session.json"
    file.write_text(write("s1", str(place.project)))
    (dry,) = taken_in(place, str(file), "--dry-run")["sessions"]
    assert (dry["client"], dry["session"], dry["messages"], dry["outputs"]) == (client, "s1", 5, 1)
    assert kept(place, "s1") == []

    (first,) = taken_in(place, str(file))["sessions"]
    assert (first["messages"], first["outputs"], first["known"]) == (5, 1, 0)
    there = kept(place, "s1")
    assert [role for role, _ in there] == [USER, ASSISTANT, ASSISTANT, RESULT, ASSISTANT]
    (result,) = [text for role, text in there if role == RESULT]
    assert "📁 Output cached: " in result
    assert "FAILED tests/test_x.py::test_y" in result
    with place.open() as hold:
        (output,) = hold.session("s1").outputs.list().outputs
        assert hold.session("s1").outputs.read_content(output.id) == BIG
        (hit, *_) = hold.recall("casts need two tokens").hits
        assert hit.trust == "data"
        entries = hold.store.entries.list(hold.scope, Listing((MESSAGE,), "s1")).entries
        assert {entry.origin for entry in entries} == {"import", "tool"}  # what a tool said is a tool's word here too

    (again,) = taken_in(place, str(file))["sessions"]
    assert (again["messages"], again["outputs"], again["known"]) == (0, 0, 5)
    assert kept(place, "s1") == there


def test_a_file_that_grew_adds_what_is_new_and_the_session_can_be_chosen(place: Place) -> None:
    file = place.project / "rollout.jsonl"
    whole = FORMS["codex"][1]("s1", str(place.project)).splitlines(keepends=True)
    file.write_text("".join(whole[:-1]))
    assert taken_in(place, str(file), "--session", "mine")["sessions"][0]["messages"] == 4
    # Said once more, word for word: it is another message.
    file.write_text("".join([*whole, whole[3]]))
    (grown,) = taken_in(place, str(file), "--session", "mine")["sessions"]
    assert (grown["messages"], grown["known"]) == (2, 4)
    assert [text for role, text in kept(place, "mine") if role == USER].count(json.dumps([[ASKED, {}]])) == 2
    assert kept(place, "s1") == []


@pytest.mark.parametrize("client", KEPT)
def test_an_agents_last_session_of_this_project_is_found(place: Place, client: str) -> None:
    write = FORMS[client][1]
    path = place.home / KEPT[client]
    other = Path(str(path).replace("s1", "s2"))
    third = Path(str(path).replace("s1", "s3"))
    for one in (path, other, third):
        one.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(write("s1", str(place.project)))
    other.write_text(write("s2", "/another/project"))
    third.write_text(write("s3", str(place.project)))
    for age, one in enumerate((other, path, third)):
        os.utime(one, (1_000_000 - age, 1_000_000 - age))
    assert [row["session"] for row in taken_in(place, client)["sessions"]] == ["s1"]
    assert [row["session"] for row in taken_in(place, client, "--all")["sessions"]] == ["s3", "s1"]


def test_what_cannot_be_read_is_named_and_the_rest_taken_in(place: Place) -> None:
    file = place.project / "rollout.jsonl"
    good = FORMS["copilot"][1]("s1", str(place.project)).splitlines()
    bad = [
        "{not json",
        "[1, 2]",
        json.dumps({"type": "assistant.message", "data": {"content": "x", "toolRequests": 5}}),
    ]
    file.write_text("\n".join([*good[:3], *bad, *good[3:], '{"type": "user.mess']))
    (row,) = taken_in(place, str(file))["sessions"]
    assert row["messages"] == 5
    assert [line["line"] for line in row["unread"]] == [4, 5, 6, 12]
    assert row["unread_count"] == 4
    assert row["unread"][2]["why"] == "it is not what copilot writes"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"hello\n", b'{"a": 1}\n', b"{\n", b"\xff"])
def test_what_is_no_session_is_refused_and_nothing_changes(place: Place, content: bytes) -> None:
    file = place.project / "x.jsonl"
    file.write_bytes(content)
    assert "holds no session of a coding agent" in taken_in(place, str(file), refused=True)["message"]
    assert "No such file" in taken_in(place, "missing.jsonl", refused=True)["message"]
    assert "has no session of" in taken_in(place, "codex", refused=True)["message"]
    assert "opencode export" in taken_in(place, "opencode", refused=True)["message"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
WORDS = (
    "type",
    "message",
    "payload",
    "data",
    "info",
    "parts",
    "content",
    "role",
    "toolCalls",
    "messages",
    "id",
    "state",
)
TYPES = ("user", "assistant", "response_item", "session_meta", "user.message", "assistant.message", "gemini", "tool")
odd_records = st.dictionaries(
    st.sampled_from(WORDS), st.sampled_from(TYPES) | json_values | st.dictionaries(st.sampled_from(WORDS), json_values)
)
odd_lines = st.text(max_size=30) | odd_records.map(json.dumps) | st.just('{"a":' * 5_000)


@given(st.sampled_from(sorted(FORMS)), st.data())
def test_garbage_between_the_lines_is_never_fatal(form: str, data: st.DataObject) -> None:
    client, write = FORMS[form]
    whole = write("s1", "/somewhere").splitlines()
    if whole[0] == "{":
        whole = [json.dumps(json.loads("\n".join(whole)))]
    at = data.draw(st.integers(0, len(whole)))
    garbage = data.draw(st.lists(odd_lines, max_size=4))
    found = transcripts.read([*whole[:at], *garbage, *whole[at:]])
    assert found.lines >= len(whole)
    if found.client == client:  # what is garbage to us may look like another client's file
        told = [one.text() for one in found.messages]
        assert [text for text in told if text in (ASKED, THOUGHT, ENDED)][:1] == [ASKED]
    assert all(1 <= one.line <= found.lines for one in found.unread)


def test_a_checkpoint_reads_every_form(place: Place) -> None:
    for number, (client, write) in enumerate(FORMS.values()):
        file = place.project / f"{number}.jsonl"
        file.write_text(write("s1", str(place.project)))
        name = {"codex": "codex", "copilot": "copilot"}.get(client, "claude-code")
        payload = {"session_id": f"s{number}", "hook_event_name": "PreCompact", "transcript_path": str(file)}
        assert place.hook(name, "before-compact", payload) == {}
        with place.open() as hold:
            from limpet.session import hook_state

            said = hook_state.read(hold.context(f"s{number}")).checkpoint
        assert f"Last request: {ASKED}" in said, client
