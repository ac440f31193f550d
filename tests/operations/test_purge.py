"""Purge: what came from one origin goes, everywhere; `undo` brings entries back until it is for ever."""

from __future__ import annotations

import json
from typing import Any

import pytest

from limpet import errors
from limpet.api import Limpet
from limpet.model import FOLD, MEMORY, NOTE, WRITTEN_AT, Draft
from limpet.window.messages import Call, assistant, result, user
from operations.conftest import DAY_MS, Clock, Opener


def write(hold: Limpet, by: str, word: str, session: str = "one") -> None:
    """One of everything that is written by hand, with a word in it."""
    for name, arguments in (
        ("add_note", {"content": f"a note with {word}", "tags": [word]}),
        ("write_notepad", {"content": f"a pad with {word}"}),
        ("write_memory", {"key": f"key of {by}", "content": f"memory with {word}"}),
        ("write_session_handoff", {"content": f"a handoff with {word}", "line": by.replace("/", "-")}),
        ("scratch_note", {"content": f"scratch with {word}", "mode": "replace"}),
        ("pin_text", {"content": f"a pin with {word}"}),
        ("agent_state", {"action": "set", "key": f"state of {by}", "value": word}),
    ):
        hold.call(name, arguments, session=session, by=by)


def purge(hold: Limpet, origin: str, **more: Any) -> dict[str, Any]:
    return hold.call("purge", {"origin": origin, **more}, by="person/cli")


def found(hold: Limpet, word: str) -> set[tuple[str, str]]:
    return {(hit.kind, hit.key) for hit in hold.recall(word, limit=50).hits}


def entries(hold: Limpet) -> dict[tuple[str, str], dict[str, Any]]:
    """What there is, without versions and the times of last changes, which only go forward."""
    kept = {}
    for line in hold.export_lines():
        record = json.loads(line)
        if record.get("type") == "entry" or "entry" in line[:20]:
            entry = record.get("entry", record)
            if "kind" in entry and entry["kind"] != "session":
                kept[entry["kind"], entry["key"]] = {
                    name: entry[name] for name in ("content", "session", "tags", "done", "pinned", "origin", "extra")
                }
                if entry["kind"] in (NOTE, MEMORY):  # a text that came back was written when it was
                    entry["extra"].setdefault(WRITTEN_AT, entry["updated_at"])
    return kept


def test_everything_of_an_origin_goes_and_undo_brings_it_all_back(hold: Limpet, clock: Clock) -> None:
    write(hold, "agent/mcp", "walnut", "a")
    clock.pass_by()
    write(hold, "import/file", "quince", "b")
    before = entries(hold)
    assert len(before) == 14
    assert len(found(hold, "quince")) == 7
    dry = purge(hold, "import", dry_run=True)
    kinds = {"note", "notepad", "memory", "handoff", "scratchpad", "pin", "state"}
    assert (dry["counts"], len(dry["entries"])) == (dict.fromkeys(kinds, 1), 7)
    assert entries(hold) == before
    done = purge(hold, "import")
    assert done["counts"] == dry["counts"]
    assert found(hold, "quince") == set()
    assert len(found(hold, "walnut")) == 7
    assert hold.session("b").notes.tags(this_session=True) == ()
    assert all(finding.ok for finding in hold.check())
    assert purge(hold, "import")["counts"] == {}
    assert hold.call("undo", {}, by="person/cli")["restored"] == 7
    assert entries(hold) == before, "also who wrote it: bringing a text back does not make it ours"
    assert len(found(hold, "quince")) == 7
    assert hold.undo().operation != "purge", "the purge is undone, the next undo goes on before it"


def test_undo_leaves_what_was_written_anew(hold: Limpet) -> None:
    hold.call("write_memory", {"key": "a", "content": "bad"}, by="import/file")
    hold.call("write_memory", {"key": "b", "content": "bad"}, by="import/file")
    purge(hold, "import")
    hold.memory.write("a", "good")
    (first, *_) = hold.history(kind="memory", key="b")
    assert hold.call("undo", {"seq": first.seq})["restored"] == 1
    assert [hold.memory.read(key).content for key in "ab"] == ["good", "bad"]
    with pytest.raises(errors.Conflict, match="cannot be undone"):
        hold.undo(first.seq)


def test_since_session_and_the_second_part_of_an_origin(hold: Limpet, clock: Clock) -> None:
    hold.call("write_memory", {"key": "old", "content": "x"}, session="a", by="agent/mcp")
    clock.pass_by(10 * DAY_MS)
    hold.call("write_memory", {"key": "new", "content": "x"}, session="a", by="agent/mcp")
    hold.call("write_memory", {"key": "other", "content": "x"}, session="b", by="agent/sandbox")

    def would(origin: str, **more: Any) -> set[str]:
        return {one["id"] for one in purge(hold, origin, dry_run=True, **more)["entries"]}

    assert would("agent") == {"old", "new", "other"}
    assert would("agent", since="7d") == {"new", "other"}
    assert would("agent", session="a") == {"old", "new"}
    assert would("agent/sandbox") == {"other"}
    assert would("agent/sandbox", session="a") == set()
    assert would("person") == set()
    with pytest.raises(errors.BadInput, match="an age"):
        would("agent", since="lately")


def test_outputs_go_by_their_tool_and_leave_a_tombstone_without_the_call(hold: Limpet) -> None:
    web = (
        hold.session("a").outputs.keep("web_fetch", "the quince is ripe\n" * 500, call="web_fetch evil.example").output
    )
    shell = hold.session("b").outputs.keep("shell", "the walnut is ripe\n" * 500).output
    assert web is not None
    assert shell is not None
    assert len(found(hold, "ripe")) == 2
    assert purge(hold, "agent")["counts"] == {}
    assert purge(hold, "tool/web_*", session="b")["counts"] == {}
    answer = purge(hold, "tool/web_*")
    assert (answer["counts"], "purge" in answer) == ({"output": 1}, False)
    assert any("cannot be brought back" in remark for remark in answer["remarks"])
    assert found(hold, "ripe") == {("output", shell.id)}
    stone = hold.store.outputs.tombstone(hold.scope, web.id)
    assert stone is not None
    assert (stone.why, stone.tool, stone.call) == ("purged", "web_fetch", "")
    assert purge(hold, "tool")["counts"] == {"output": 1}


def test_messages_keep_their_place_and_summaries_of_them_go(hold: Limpet) -> None:
    window = hold.session("talk").window
    fetch = Call("c1", "fetch", '{"url": "x"}')
    window.next([user("look at the page"), assistant("", fetch), result("c1", "the quince says: obey")])
    hold.call("begin_task", {"description": "x"}, session="talk")
    assert found(hold, "quince")
    answer = purge(hold, "tool")
    assert answer["counts"]["message"] == 1
    assert not found(hold, "quince")
    again = hold.session("talk").window.next([])
    assert "quince" not in str(again)
    assert "look at the page" in str(again)
    hold.call("undo", {}, by="person/cli")
    assert found(hold, "quince")


def test_forever_takes_the_texts_out_of_history_too(opened: Opener) -> None:
    hold = opened()
    write(hold, "import/file", "quince", "b")
    hold.memory.write("key of import/file", "mine now")
    gone = hold.session("b").notes.list()[0].id
    hold.session("b").notes.delete(gone)
    kept = hold.memory.write("mine", "walnut")
    hold.memory.write("mine", "walnut twice")
    answer = purge(hold, "import", forever=True)
    assert (answer["counts"]["notepad"], answer["erased"]) == (1, 7)
    assert "quince" not in "".join(hold.export_lines()).replace('"key":"quince', "")
    with pytest.raises(errors.Conflict, match="purged permanently"):
        hold.undo(next(event.seq for event in hold.history() if event.operation == "purge"))
    with pytest.raises(errors.Conflict, match="purged permanently"):
        hold.undo(next(event.seq for event in hold.history() if event.operation == "delete_note"))
    assert hold.undo().key == "mine", "what cannot be undone is passed over"
    assert hold.memory.read("mine").content == kept.content
    assert hold.memory.read("key of import/file").content == "mine now"
    assert all(finding.ok for finding in opened().check())
    lines = list(hold.export_lines())
    assert opened(project="copy").import_lines(lines)


def test_many_go_in_batches(hold: Limpet) -> None:
    for number in range(450):
        hold.call("write_memory", {"key": f"k{number}", "content": f"quince {number}"}, by="import/file")
    assert purge(hold, "import")["counts"] == {"memory": 450}
    assert hold.call("undo", {}, by="person/cli")["restored"] == 450


def test_a_summary_of_what_is_purged_goes_with_it(hold: Limpet) -> None:
    window = hold.session("talk").window
    window.next([user("quince first"), assistant("yes"), user("quince second"), assistant("yes")])
    extra = {"how": "compact", "first": 0, "last": 1, "facts": {"decisions": ["quince"]}, "lines": {"0": "quince"}}
    draft = Draft("a summary of the quince", "talk", extra=extra)
    ctx = hold.context("talk")
    fold = hold.store.entries.edit(hold.scope, FOLD, None, lambda _: draft, ctx.stamp("compact")).entry
    far = draft._replace(extra={**extra, "first": 7, "last": 9})
    other = hold.store.entries.edit(hold.scope, FOLD, None, lambda _: far, ctx.stamp("compact")).entry
    purge(hold, "agent")
    now = hold.store.entries.read(hold.scope, FOLD, fold.key)
    assert now is not None
    assert (now.content, "quince" in str(now.extra), now.extra["first"]) == ("[purged]", False, 0)
    assert hold.store.entries.read(hold.scope, FOLD, other.key) == other
    hold.call("undo", {}, by="person/cli")
    again = hold.store.entries.read(hold.scope, FOLD, fold.key)
    assert again is not None
    assert (again.content, again.extra) == (fold.content, fold.extra)


def test_purge_undo_and_purge_again_find_the_same(hold: Limpet) -> None:
    write(hold, "agent/mcp", "walnut", "a")
    write(hold, "agent/sandbox", "quince", "b")
    before = entries(hold)
    for narrowed in ({"origin": "agent/sandbox"}, {"origin": "agent", "session": "b"}):
        first = purge(hold, **narrowed)
        hold.call("undo", {}, by="person/cli")
        assert entries(hold) == before, "with their origins"
        again = purge(hold, **narrowed)
        assert again["counts"] == first["counts"]
        hold.call("undo", {}, by="person/cli")
        assert entries(hold) == before


def purge_one(hold: Limpet, id: str, **more: Any) -> dict[str, Any]:
    return hold.call("purge", {"id": id, **more}, by="person/cli")


def test_one_entry_goes_and_comes_back_or_goes_for_ever(hold: Limpet) -> None:
    id = hold.call("add_note", {"content": "a note with walnut"})["note_id"]
    hold.call("update_note", {"id": id, "content": "a note with hazelnut"})
    hold.call("write_memory", {"key": "nuts", "content": "memory with walnut"})
    assert purge_one(hold, id, dry_run=True)["counts"] == {"note": 1}
    assert purge_one(hold, id)["counts"] == {"note": 1}
    assert found(hold, "hazelnut") == set()
    hold.call("undo", {}, by="person/cli")
    assert found(hold, "hazelnut") == {("note", id)}
    gone = purge_one(hold, id, forever=True)
    assert gone["erased"] >= 2
    texts = "\n".join(hold.export_lines())
    assert "hazelnut" not in texts
    assert "a note with walnut" not in texts
    assert "memory with walnut" in texts
    assert purge_one(hold, "nuts")["counts"] == {"memory": 1}
    with pytest.raises(errors.NotFound, match="there is no entry 'nuts'"):
        purge_one(hold, "nuts")


def test_one_version_goes_out_of_history(hold: Limpet) -> None:
    for text in ("a password is walnut", "nothing of the kind", "nothing at all"):
        hold.call("write_memory", {"key": "k", "content": text})
    for problem, arguments in (
        ("is the current one", {"version": 3, "forever": True}),
        ("cannot be undone", {"version": 1}),
        ("has no version 9", {"version": 9, "forever": True}),
    ):
        with pytest.raises(errors.LimpetError, match=problem):
            purge_one(hold, "k", **arguments)
    assert purge_one(hold, "k", version=1, dry_run=True)["counts"] == {"memory": 1}
    assert purge_one(hold, "k", version=1, forever=True)["erased"] == 1
    texts = "\n".join(hold.export_lines())
    assert "walnut" not in texts
    assert "nothing of the kind" in texts
    for given in ({}, {"version": 1}):
        with pytest.raises(errors.BadInput, match="purge needs origin or id"):
            hold.call("purge", given, by="person/cli")
    with pytest.raises(errors.BadInput, match="with an origin does not use id and version"):
        hold.call("purge", {"origin": "tool", "id": "k"}, by="person/cli")
