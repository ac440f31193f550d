"""Exports of chat programs, and the times of what is imported: a thing is as old here as it was there."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from doors.cli_runner import run
from doors.hook_kit import Json
from doors.transcript_kit import claude_code, lines
from limpet.model import MEMORY, SESSION, iso
from limpet.wiring import open as open_limpet

OLD, LATER = 1_700_000_000, 1_700_086_400  # seconds: 14 and 15 November 2023


def node(name: str, parent: str | None, children: list[str], message: Json | None) -> Json:
    return {"id": name, "parent": parent, "children": children, "message": message}


def said(role: str, text: str, at: float | None, **metadata: object) -> Json:
    content = {"content_type": "text", "parts": [text]}
    return {"author": {"role": role}, "content": content, "create_time": at, "metadata": metadata}


def chatgpt() -> list[Json]:
    """One conversation with a question that was asked anew, one that is empty, and one that is none."""
    mapping = {
        "root": node("root", None, ["system"], None),
        "system": node("system", "root", ["first", "again"], said("system", "", None)),
        "first": node("first", "system", [], said("user", "How do I boil an egg?", OLD)),
        "again": node("again", "system", ["answer"], said("user", "How do I boil a goose egg?", OLD + 5)),
        "answer": node("answer", "again", ["tool"], said("assistant", "Thirteen minutes.", OLD + 9)),
        "tool": node("tool", "answer", ["end"], said("tool", "search results", OLD + 10)),
        "end": node("end", "tool", [], said("user", "And the ostrich's?", LATER)),
    }
    mapping["end"]["message"]["content"]["parts"].append({"content_type": "image_asset_pointer", "asset_pointer": "x"})
    talk = {"conversation_id": "abc-1", "title": "Eggs", "create_time": OLD, "mapping": mapping, "current_node": "end"}
    return [talk, {"conversation_id": "abc-2", "title": "Empty", "mapping": {}}, {"title": "no id"}]


def claude() -> list[Json]:
    messages = [
        {"sender": "human", "text": "Which bolt fits?", "created_at": iso(OLD * 1_000), "content": [],
         "attachments": [{"file_name": "drawing.pdf"}]},
        {"sender": "assistant", "text": "", "created_at": iso(LATER * 1_000),
         "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "An M8 of grade 10.9."}]},
    ]  # fmt: skip
    return [{"uuid": "u-1", "name": "Bolts", "chat_messages": messages}]


def imported(store: Path, *words: str) -> Json:
    ran = run("--store", str(store), "--project", "p", "import", *words, "--json")
    assert ran.code == 0, ran.err
    reply = json.loads(ran.out)
    assert isinstance(reply, dict)
    return reply


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("app", "session", "title", "words"),
    [
        (
            "chatgpt",
            "chatgpt-abc-1",
            "Eggs",
            ["a goose egg", "Thirteen", "ostrich's?\n[image_asset_pointer, not kept]"],
        ),
        ("claude-chat", "claude-chat-u-1", "Bolts", ["Which bolt fits?\n[drawing.pdf, not kept]", "An M8"]),
    ],
)
def test_every_conversation_becomes_a_session(
    tmp_path: Path, app: str, session: str, title: str, words: list[str], packed: bool
) -> None:
    store, file = tmp_path / "limpet.db", tmp_path / "export"
    body = json.dumps(chatgpt() if app == "chatgpt" else claude())
    if packed:
        with zipfile.ZipFile(file, "w") as export:
            export.writestr("user.json", "{}")
            export.writestr("conversations.json", body)
    else:
        file.write_text(body, encoding="utf-8")

    planned = imported(store, app, str(file), "--dry-run")
    assert (planned["messages"], planned["sessions"]) == (len(words), 1)
    assert not store.exists(), "a dry run makes nothing"
    assert imported(store, app, str(file))["messages"] == len(words)
    again = imported(store, app, str(file))
    assert (again["messages"], again["known"]) == (0, len(words))

    with open_limpet(str(store), project="p") as hold:
        (known,) = hold.call("list_sessions", {})["sessions"]
        assert (known["id"], known["task"]) == (session, title)
        talk = hold.session(session).window.messages()
        assert [expected in message.text() for expected, message in zip(words, talk, strict=True)] == [True] * len(
            words
        )
        assert not hold.recall("boil an egg").hits or "goose" in hold.recall("boil an egg").hits[0].snippet
        before = iso(LATER * 1_000 - 1)
        first = "goose" if app == "chatgpt" else "bolt fits"
        assert [hit.kind for hit in hold.recall(first, until=before).hits] == ["message"]
        last = "ostrich" if app == "chatgpt" else "grade"
        assert not hold.recall(last, until=before).hits


@pytest.mark.parametrize("app", ["chatgpt", "claude-chat"])
@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"[1, {}]", b"PK\x03\x04broken", b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_export_is_refused_and_nothing_changes(tmp_path: Path, app: str, body: bytes) -> None:
    file, store = tmp_path / "export.zip", tmp_path / "limpet.db"
    file.write_bytes(body)
    ran = run("--store", str(store), "import", app, str(file))
    assert ran.code == 2
    assert f"cannot be read as what {app} keeps" in ran.err
    assert "recursion" not in ran.err
    assert not store.exists()


def test_an_archive_that_unpacks_to_too_much_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limpet.limits.CHATS_MAX_BYTES", 10_000)
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as export:
        export.writestr("conversations.json", "[" + " " * 1_000_000 + "]")
    ran = run("--store", str(tmp_path / "limpet.db"), "import", "chatgpt", str(file))
    assert "has more than 10,000 bytes" in ran.err


def test_messages_of_a_transcript_are_as_old_as_they_are(tmp_path: Path) -> None:
    written = [json.loads(line) for line in claude_code("s1", str(tmp_path)).splitlines()]
    times = iter(range(OLD, OLD + 100))
    dated = [{**record, "timestamp": iso(next(times) * 1_000)} for record in written]
    del dated[4]["timestamp"]
    file, store = tmp_path / "session.jsonl", tmp_path / "limpet.db"
    file.write_text(lines(*dated), encoding="utf-8")
    imported(store, "transcript", str(file))
    with open_limpet(str(store), project="p") as hold:
        until = iso((OLD + 1_000) * 1_000)
        assert hold.recall("port the parser", until=until).hits
        entry = hold.store.entries.read(hold.scope, SESSION, "s1")
        assert entry is not None
        assert iso(entry.updated_at) < until, "a session that ended long ago does not look new"


def test_memory_of_other_tools_is_as_old_as_there(tmp_path: Path) -> None:
    file, store = tmp_path / "mem0.json", tmp_path / "limpet.db"
    rows = [
        {"id": "1", "memory": "Likes tea", "created_at": "2023-11-14T22:13:20+00:00", "user_id": "ann"},
        {"id": "2", "memory": "Likes cake", "created_at": "next summer"},
        {"id": "3", "memory": "Likes jam", "created_at": "9000-01-01T00:00:00Z"},
    ]
    file.write_text(json.dumps({"results": rows}), encoding="utf-8")
    imported(store, "mem0", str(file))
    imported(store, "mem0", str(file))
    with open_limpet(str(store), project="p") as hold:
        entries = {key: hold.store.entries.read(hold.scope, MEMORY, key) for key in ("mem0/1", "mem0/2", "mem0/3")}
        first = entries["mem0/1"]
        assert first is not None
        assert (first.created_at, first.updated_at, first.tags) == (OLD * 1_000, OLD * 1_000, ("user:ann",))
        assert hold.call("history", {})["events"][0]["at"] > iso(LATER * 1_000), "history says when it came in"
        for key in ("mem0/2", "mem0/3"):
            entry = entries[key]
            assert entry is not None
            assert entry.updated_at > LATER * 1_000, "no time, and none of the future: it is as old as the import"
        assert [finding for finding in hold.check() if not finding.ok] == []
