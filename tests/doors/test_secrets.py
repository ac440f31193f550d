"""What looks like a secret is masked before it is stored, whichever door it comes through; a person may keep it.

Every secret here is made at run time, so that no line of this file looks like one.
"""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest

import limpet
from doors.cli_runner import Cli
from doors.hook_kit import Json, Place, started
from doors.mcp_client import Lines, stdio_command
from limpet import errors
from limpet.catalogue.table import COMMANDS
from limpet.clients import session_variables
from limpet.doors.cli.commands import STORE_TEXT
from limpet.window.messages import Call, assistant, result, user

_source = random.Random(20)
SECRET = "ghp_" + "".join(_source.choices(string.ascii_letters + string.digits, k=36))
OTHER = "glpat-" + "".join(_source.choices(string.ascii_letters + string.digits, k=20))
TEXT = f"push with {SECRET} to the mirror"


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in ("LIMPET_SESSION", *session_variables()):
        monkeypatch.delenv(name, raising=False)
    return Cli(folder, capsys, monkeypatch)


def holds(folder: Path, *secrets: str) -> list[str]:
    """The files of a project and of the home folder that contain one of these secrets, also in the pages of a store."""
    wanted = [secret.encode() for secret in secrets or (SECRET,)]
    paths = [path for place in (folder, Path.home()) for path in place.rglob("*") if path.is_file()]
    return [str(path) for path in paths if any(secret in path.read_bytes() for secret in wanted)]


# --- the command line -------------------------------------------------------------------------------------------------

WRITES = {
    "a note": ["note", "add", TEXT],
    "a coloured note": ["note", "add", f"push with \x1b[32m{SECRET}\x1b[0m to the mirror"],
    "memory": ["memory", "write", "mirror", TEXT],
    "a handoff": ["handoff", "write", TEXT],
    "the notepad": ["pad", "write", TEXT, "--session", "s"],
    "an appended line": ["pad", "append", TEXT, "--session", "s"],
    "the system prompt": ["prompt", "write", TEXT],
    "the scratchpad": ["scratch", TEXT, "--mode", "replace", "--session", "s"],
    "a value of state": ["state", "set", "mirror", json.dumps({"how": [TEXT]})],
    "a pinned text": ["window", "pin", TEXT, "--session", "s"],
    "a task": ["task", "begin", TEXT, "--session", "s"],
    "the task of a session": ["session", "begin", "s", "--task", TEXT],
    "a line of the journal": ["journal", "debt", "add", TEXT],
    "a checkpoint": ["journal", "checkpoint", TEXT],
    "a tag": ["note", "add", "see the tag", "--tag", SECRET],
    "code for the sandbox": ["sandbox", "run", "-", "--session", "s"],
}


@pytest.mark.parametrize("what", WRITES)
def test_a_command_stores_it_masked_and_says_so(cli: Cli, what: str) -> None:
    code = f'session.notepad.write("{TEXT}")'
    ran = cli(*WRITES[what], "--json", stdin=code if "sandbox" in WRITES[what] else "")
    assert ran.json["masked"]["count"] >= 1
    assert ran.json["masked"]["kinds"] == ["github-token"]
    assert "--keep-secret" in ran.json["masked"]["hint"]
    assert holds(cli.folder) == []


@pytest.mark.parametrize("what", [what for what in WRITES if "sandbox" not in WRITES[what]])
def test_a_person_keeps_it_all_the_same(cli: Cli, what: str) -> None:
    assert "masked" not in cli.ask(*WRITES[what], "--keep-secret")
    assert holds(cli.folder) != []


def test_a_person_at_a_terminal_reads_it_as_a_remark(cli: Cli) -> None:
    ran = cli("note", "add", TEXT)
    assert ran.code == 0
    assert ran.err == "limpet: 1 secret was masked before storing (github-token). --keep-secret stores it as it is.\n"
    assert "[redacted:github-token:" in cli.ask("note", "list")["notes"][0]["content"]


def test_a_command_that_stores_no_text_does_not_offer_to_keep_one(cli: Cli) -> None:
    assert cli("note", "list", "--keep-secret").code == 2
    assert "--keep-secret" in cli("note", "add", "--help").out
    assert "--keep-secret" not in cli("note", "list", "--help").out


def test_every_command_that_stores_a_text_and_no_other_can_keep_a_secret() -> None:
    texts = {"content", "text", "value", "summary", "reason", "description", "task", "result", "decision", "code"}
    no_text = ("done", "delete", "pin", "unpin", "restore", "get", "keys")
    storing = {
        words
        for words, operation in COMMANDS.items()
        if not operation.read_only and texts & {param.name for param in operation.params}
        if words.split()[-1] not in no_text or words == "window pin"
    }
    assert storing | {"output keep", "import", "note edit", "memory edit"} == STORE_TEXT


def test_results_of_tasks_and_sessions_are_masked(cli: Cli) -> None:
    cli.ok("task", "begin", "mirror it", "--session", "s")
    assert cli.ask("task", "end", TEXT, "--session", "s")["masked"]["count"] == 1
    child = cli.ask("session", "spawn", f"use {SECRET}", "--session", "s")
    assert child["masked"]["count"] == 1
    assert cli.ask("session", "report", TEXT, "--session", child["id"])["masked"]["count"] == 1
    assert holds(cli.folder) == []


def test_a_skill_from_the_notepad_holds_no_secret_that_the_person_kept_there(cli: Cli) -> None:
    cli.ok("pad", "write", f"## Mirror\n\n{TEXT}\n", "--session", "s", "--keep-secret")
    promote = ("skill", "promote", "mirror", "--section", "Mirror", "--description", "How to mirror", "--session", "s")
    assert cli.ask(*promote)["masked"]["kinds"] == ["github-token"]
    (skill,) = Path.home().rglob("SKILL.md")
    assert SECRET not in skill.read_text()
    assert "[redacted:github-token:" in skill.read_text()


def test_numbers_and_nested_values_of_state_stay_json(cli: Cli) -> None:
    value = {"db": {"password": 48_151_623, "port": 5432}, "list": [{"token": SECRET}], "done": True}
    cli.ok("state", "set", "config", json.dumps(value))
    read = cli.ask("state", "get", "config")["value"]
    assert read["db"] == {"password": "[redacted:password]", "port": 5432}
    assert read["list"][0]["token"].startswith("[redacted:github-token:")
    assert read["done"] is True


def test_a_key_that_is_a_secret_is_refused_and_a_key_that_names_one_masks_it(cli: Cli) -> None:
    ran = cli("memory", "write", SECRET, "the mirror", "--json")
    assert ran.error["code"] == "secret_in_name"
    assert SECRET not in ran.err
    assert cli.ask("memory", "write", "staging-password", "hunter2hunter2")["masked"]["kinds"] == ["password"]
    assert cli.ask("memory", "show", "staging-password")["content"] == "[redacted:password]"
    assert holds(cli.folder, SECRET, "hunter2hunter2") == []


# --- changes of what is stored ----------------------------------------------------------------------------------------


def test_an_edit_beside_a_kept_secret_keeps_it_and_masks_a_new_one(cli: Cli) -> None:
    cli.ok("pad", "write", TEXT, "--session", "s", "--keep-secret")
    reply = cli.ask("pad", "append", f"and read with {OTHER}", "--session", "s")
    assert reply["masked"]["kinds"] == ["gitlab-token"]
    content = cli.ask("pad", "show", "--session", "s")["content"]
    assert SECRET in content
    assert OTHER not in content


def test_a_placeholder_can_be_found_and_replaced_and_is_not_masked_again(cli: Cli) -> None:
    cli.ok("pad", "write", f"first {SECRET}\nDB_PASSWORD=hunter2hunter2", "--session", "s")
    masked = cli.ask("pad", "show", "--session", "s")["content"]
    placeholder = masked.split()[1]
    assert masked.endswith("DB_PASSWORD=[redacted:password]\n")
    reply = cli.ask("pad", "edit", "--find", placeholder, "--replace", "the mirror's token", "--session", "s")
    assert "masked" not in reply
    after = cli.ask("pad", "show", "--session", "s")["content"]
    assert after == "first the mirror's token\nDB_PASSWORD=[redacted:password]\n"


def test_a_password_put_back_into_its_place_is_masked_again(cli: Cli) -> None:
    cli.ok("pad", "write", "DB_PASSWORD=hunter2hunter2", "--session", "s")
    edit = ("pad", "edit", "--find", "[redacted:password]", "--replace", "hunter2hunter2", "--session", "s")
    assert cli.ask(*edit)["masked"]["kinds"] == ["password"]
    assert cli.ask("pad", "show", "--session", "s")["content"] == "DB_PASSWORD=[redacted:password]\n"


def test_undo_and_restore_bring_back_what_was_stored(cli: Cli) -> None:
    id = cli.ask("note", "add", TEXT, "--keep-secret")["note_id"]
    cli.ok("note", "delete", id)
    cli.ok("undo")
    assert cli.ask("note", "list")["notes"][0]["content"] == TEXT
    cli.ok("pad", "write", TEXT, "--session", "s", "--keep-secret")
    cli.ok("pad", "write", "nothing", "--session", "s")
    cli.ok("pad", "restore", "1", "--session", "s")
    assert cli.ask("pad", "show", "--session", "s")["content"] == f"{TEXT}\n"


def test_the_same_text_twice_is_no_new_version(cli: Cli) -> None:
    first = cli.ask("pad", "write", TEXT, "--session", "s")
    assert cli.ask("pad", "write", TEXT, "--session", "s")["version"] == first["version"] == 1
    assert first["tokens"] == cli.ask("pad", "show", "--session", "s")["tokens"]


# --- agents -----------------------------------------------------------------------------------------------------------


def test_an_agent_reads_what_was_masked_and_who_can_keep_it(tmp_path: Path) -> None:
    with Lines(stdio_command(str(tmp_path / "limpet.db"))) as server:
        server.open("2025-11-25")
        for name, arguments in {
            "add_note": {"content": TEXT},
            "write_memory": {"key": "mirror", "content": TEXT},
            "agent_state": {"action": "set", "key": "mirror", "value": {"token": SECRET}},
        }.items():
            reply = server.ask("tools/call", {"name": name, "arguments": arguments})
            assert "github-token" in reply["content"][0]["text"], name
            assert "A person" in reply["content"][0]["text"]
        for extra in ({"keep_secret": True}, {"keep-secret": True}):
            reply = server.ask("tools/call", {"name": "add_note", "arguments": {"content": TEXT, **extra}})
            assert reply["isError"] is True
        server.ask(
            "tools/call", {"name": "add_note", "arguments": {"content": TEXT}, "_meta": {"limpet/keep_secret": True}}
        )
        listed = server.ask("tools/list")
    assert "keep" not in json.dumps([tool["inputSchema"] for tool in listed["tools"]])
    assert holds(tmp_path) == []


def test_a_checkpoint_before_a_compaction_holds_no_secret(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with place.open() as hold:
        hold.session("one").notepad.write("- [ ] mirror")
    path = place.home / "talk.jsonl"
    said = {"role": "user", "content": f"use {SECRET} to push; the password for staging is hunter2hunter2"}
    records = [{"type": "user", "sessionId": "one", "cwd": str(place.project), "uuid": "u", "message": said}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    event: Json = {"session_id": "one", "hook_event_name": "PreCompact", "transcript_path": str(path)}
    assert place.hook("claude-code", "before-compact", {**event, "trigger": "auto"}) == {}
    answer = place.hook("claude-code", "session-start", started("claude-code", "one", "compact"))
    assert "Last request: use [redacted:github-token:" in json.dumps(answer)
    assert place.hook("claude-code", "session-end", {**event, "hook_event_name": "SessionEnd"}) == {}
    assert holds(place.project, SECRET, "hunter2hunter2") == []


# --- imports ----------------------------------------------------------------------------------------------------------


def test_a_transcript_and_a_tools_memory_are_imported_masked_and_once(cli: Cli, tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "run", "input": {"command": "x", "token": SECRET}}
    path = tmp_path / "talk.jsonl"
    messages: list[Json] = [
        {"role": "user", "content": TEXT},
        {"role": "assistant", "content": [{"type": "text", "text": f"I use {SECRET}."}, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": f"got {SECRET}"}]},
    ]
    path.write_text(
        "".join(
            json.dumps({"type": one["role"], "sessionId": "s1", "uuid": str(at), "message": one}) + "\n"
            for at, one in enumerate(messages)
        )
    )
    first = cli.ask("import", "transcript", str(path))
    assert first["masked"]["kinds"] == ["github-token"]
    assert "masked" not in cli.ask("import", "transcript", str(path))
    memory = tmp_path / "memory.jsonl"
    memory.write_text(json.dumps({"type": "entity", "name": "mirror", "entityType": "x", "observations": [TEXT]}))
    assert cli.ask("import", "server-memory", str(memory))["masked"]["count"] == 1
    again = cli.ask("import", "server-memory", str(memory))
    assert again["known"] == 1
    assert holds(cli.folder) == []
    with limpet.open(folder=str(cli.folder)) as hold:
        (call_,) = [call for message in hold.session("s1").window.messages() for call in message.calls()]
    assert json.loads(call_.arguments)["token"].startswith("[redacted:github-token:")


@pytest.mark.parametrize("merge", [[], ["--merge"]])
def test_an_export_with_a_kept_secret_is_imported_masked_unless_the_person_keeps_it(
    cli: Cli, tmp_path: Path, merge: list[str]
) -> None:
    id = cli.ask("note", "add", TEXT, "--session", "one", "--keep-secret")["note_id"]
    if not merge:
        cli.ok("note", "update", id, f"{TEXT} soon", "--keep-secret")
    cli.ok("note", "add", f"masked {SECRET}", "--session", "one")
    cli.ok("export", str(tmp_path / "out.jsonl"))
    for keep in (False, True):
        store = tmp_path / f"{keep}.db"
        words = ["import", str(tmp_path / "out.jsonl"), *merge, "--store", str(store)]
        reply = cli.ask(*words, *(["--keep-secret"] if keep else []))
        assert ("masked" in reply) is not keep
        assert (SECRET.encode() in store.read_bytes()) is keep
        assert (
            "all is well" in cli.ok("doctor", "--store", str(store)) or cli("doctor", "--store", str(store)).code == 0
        )
        contents = [note["content"] for note in cli.ask("note", "list", "--store", str(store))["notes"]]
        assert sum("[redacted:github-token:" in content for content in contents) == (1 if keep else 2)
        assert not any("[redacted:[redacted" in content for content in contents)


@pytest.mark.parametrize("way", ["import", "merge", "store"])
def test_outputs_of_an_import_are_masked_told_and_found_by_what_cites_them(cli: Cli, tmp_path: Path, way: str) -> None:
    text = "\n".join(f"line {number} of a log" for number in range(2_000))
    source = tmp_path / "source.db"
    with limpet.open(str(source), session="one") as hold:
        kept = hold.session("one", keep_secret=True)
        secret = kept.outputs.keep("curl", f"{text}\n{TEXT}\n", call="curl -H PLACE").output
        plain = kept.outputs.keep("ls", text).output
        assert secret is not None
        assert plain is not None
        for output in (secret, plain):
            hold.session("one").notes.add(f"see hold://{output.id} and the long {output.digest}", tags=[output.id])
        lines = [line.replace("PLACE", OTHER) for line in hold.export_lines()]  # as another program may write it
    (tmp_path / "out.jsonl").write_text("\n".join(lines), encoding="utf-8")
    words = {
        "import": [str(tmp_path / "out.jsonl")],
        "merge": [str(tmp_path / "out.jsonl"), "--merge"],
        "store": ["store", str(source)],
    }[way]
    reply = cli.ask("import", *words)
    assert reply["masked"]["kinds"] == ["github-token", *(["gitlab-token"] if way != "store" else [])]
    with limpet.open(folder=str(cli.folder)) as hold:
        notes = [note.content for note in hold.session("one").notes.list()]
        outputs = {output.tool: output for output in hold.session("one").outputs.list().outputs}
        body = hold.store.outputs.read_bytes(hold.scope, outputs["curl"].id, 0, outputs["curl"].size).decode()
        assert all(row.ok for row in hold.check())
    assert (SECRET in body, "[redacted:github-token:" in body, body.startswith(text)) == (False, True, True)
    assert OTHER not in outputs["curl"].call + outputs["curl"].preview
    assert outputs["curl"].redacted == 1
    assert outputs["ls"].id == plain.id
    assert sorted(notes) == sorted(
        f"see hold://{output.id} and the long {output.digest}" for output in (outputs["curl"], plain)
    )
    assert secret.id not in json.dumps(notes)
    assert holds(cli.folder, SECRET, OTHER) == []


def test_outputs_of_an_import_stay_byte_by_byte_where_the_person_keeps_secrets(cli: Cli, tmp_path: Path) -> None:
    with limpet.open(str(tmp_path / "source.db"), session="one") as hold:
        secret = hold.session("one", keep_secret=True).outputs.keep("curl", f"{TEXT}\n" * 500).output
        assert secret is not None
        (tmp_path / "out.jsonl").write_text("\n".join(hold.export_lines()), encoding="utf-8")
    assert "masked" not in cli.ask("import", str(tmp_path / "out.jsonl"), "--keep-secret")
    again = cli.ask("import", str(tmp_path / "out.jsonl"), "--merge")
    assert "masked" not in again, "it is there already, because the person kept it"
    with limpet.open(folder=str(cli.folder)) as hold:
        assert [output.id for output in hold.session("one").outputs.list().outputs] == [secret.id]


# --- the library ------------------------------------------------------------------------------------------------------


def test_a_program_may_keep_a_secret_and_its_tools_may_not(tmp_path: Path) -> None:
    with limpet.open(str(tmp_path / "limpet.db"), session="one") as hold:
        session = hold.session("one")
        assert SECRET not in session.notes.add(TEXT).content
        assert session.masked.kinds == ("github-token",)
        assert SECRET in hold.session("one", keep_secret=True).notes.add(TEXT).content
        assert hold.call("add_note", {"content": TEXT})["masked"]["count"] == 1
        assert "masked" not in hold.call("add_note", {"content": TEXT}, keep_secret=True)
        add = next(tool for tool in hold.tools() if tool.name == "add_note")
        assert add.handler({"content": TEXT}).values["masked"]["count"] == 1


def test_a_session_whose_name_is_a_secret_is_not_begun(cli: Cli) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for words in (["note", "add", "x"], ["pad", "append", "x"], ["output", "keep", "pytest"]):
        ran = cli(*words, "--session", secret, "--json", stdin="big " * 9_000)
        assert ran.code == 2, words
        assert ran.error["code"] == "secret_in_name"
    hold = limpet.open()
    with hold, pytest.raises(errors.BadInput, match="looks like a secret"):
        hold.session(secret).window.next([user("hello")])
    assert not cli.store.exists() or secret not in cli.ok("export")


def test_names_and_ids_of_calls_in_messages_are_masked_and_still_belong_together(cli: Cli) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    with limpet.open() as hold:
        call = Call(secret, f"tool_{secret}", "{}")
        hold.session("s").window.next([user("go"), assistant("", call), result(secret, "done"), user("on")])
    exported = cli.ok("export")
    assert secret not in exported
    bodies = "".join(line for line in exported.splitlines() if '"kind":"message"' in line)
    assert bodies.count("masked_") == 2


def test_a_call_with_a_key_is_known_by_what_was_stored_of_it(tmp_path: Path) -> None:
    """Its digest is kept for a week; one of the secret itself would let a reader of the store try secrets out."""
    with limpet.open(str(tmp_path / "limpet.db")) as hold:
        first = hold.call("add_note", {"content": TEXT, "idempotency_key": "k"})
        (stored,) = (note["content"] for note in hold.call("list_notes", {})["notes"])
        assert SECRET not in stored
        again = hold.call("add_note", {"content": stored, "idempotency_key": "k"})
        assert (again["note_id"], again["total_notes"]) == (first["note_id"], 1)
