"""Memory that knows what is still true: corrections, expiry, deletion, versions, repeated calls and the gate."""

from __future__ import annotations

import pytest

from limpet import errors
from limpet.api import Limpet
from limpet.errors import BadInput, Conflict, LimpetError, NotFound
from operations.conftest import DAY_MS, Clock, Opener

OLD, NEW = "We use Postgres 14", "Correction: we use Postgres 16, not 14"


def note(hold: Limpet, content: str, **more: object) -> str:
    return str(hold.call("add_note", {"content": content, **more})["note_id"])


def contents(hold: Limpet, **more: object) -> list[str]:
    return [item["content"] for item in hold.call("list_notes", more)["notes"]]


def memories(hold: Limpet, **more: object) -> list[str]:
    return [item["key"] for item in hold.call("list_memory", more)["memories"]]


# --- corrections ------------------------------------------------------------------------------------------------------


def test_a_correction_is_proposed_and_the_same_call_confirms_it(hold: Limpet, clock: Clock) -> None:
    old = note(hold, OLD)
    clock.pass_by()
    answer = hold.call("add_note", {"content": NEW})
    assert answer["corrects"] == old
    assert f"replaces={old}" in answer["hint"]
    assert contents(hold) == [NEW, OLD], "nothing is hidden without a word of the writer"
    confirmed = hold.call("add_note", {"content": NEW, "replaces": old})
    assert confirmed["note_id"] == answer["note_id"], "it is not written twice"
    assert confirmed["replaced"] == old
    assert contents(hold) == [NEW]
    (new, replaced) = hold.call("list_notes", {"include_replaced": True})["notes"]
    assert (new["replaces"], replaced["replaced_by"]) == (old, new["id"])
    again = hold.call("add_note", {"content": NEW, "replaces": old})
    assert again["note_id"] == answer["note_id"], "a third call changes nothing"
    assert hold.call("history", {})["events"][0]["seq"] == hold.call("history", {"limit": 1})["events"][0]["seq"]


def test_the_library_says_what_a_text_seems_to_correct(hold: Limpet, clock: Clock) -> None:
    session = hold.session()
    old = session.notes.add(OLD)
    session.memory.write("db", OLD)
    clock.pass_by()
    assert session.notes.add(NEW).corrects in (old.id, "db")
    assert session.memory.write("database", NEW).corrects in (old.id, "db")
    assert session.memory.write("other", "Nothing of that kind is said here").corrects == ""


def test_an_imported_correction_goes_before_no_text_of_a_person(hold: Limpet, clock: Clock) -> None:
    hold.call("write_memory", {"key": "db", "content": OLD}, by="person/cli")
    clock.pass_by()
    hold.call("write_memory", {"key": "note", "content": NEW}, by="import/file")
    found = hold.call("search_memory", {"query": "we use Postgres"})["matches"]
    assert [item["key"] for item in found] == ["db", "note"]
    hits = [hit["id"] for hit in hold.call("recall", {"query": "which Postgres do we use?"})["hits"]]
    assert hits.index("db") < hits.index("note")


def test_without_confirmation_the_newer_text_ranks_above_the_older(hold: Limpet, clock: Clock) -> None:
    for text in (OLD, NEW):
        note(hold, text)
        clock.pass_by()
    hold.call("write_memory", {"key": "db", "content": OLD})
    clock.pass_by()
    hold.call("write_memory", {"key": "database", "content": NEW})
    hits = [
        hit["text"].replace("«", "").replace("»", "")
        for hit in hold.call("recall", {"query": "which Postgres do we use?"})["hits"]
    ]
    assert hits.index(NEW) == 0
    assert hold.call("search_notes", {"query": "Postgres"})["notes"][0]["content"] == NEW
    assert hold.call("search_memory", {"query": "Postgres"})["matches"][0]["content"] == NEW
    digest = hold.session().memory.digest().text
    assert digest.index(NEW) < digest.index(OLD)


def touched(hold: Limpet, how: str) -> None:
    """Change the older of the two texts without writing it again."""
    if how == "undone":
        hold.call("write_memory", {"key": "database", "content": NEW, "replaces": "db"})
        hold.undo()
    elif how == "deleted and brought back":
        hold.call("delete_memory", {"key": "db"})
        hold.undo()
    elif how == "unpinned":
        hold.call("pin_memory", {"key": "db"})
        hold.call("pin_memory", {"key": "db", "pinned": False})
    else:
        (id,) = [item["id"] for item in hold.call("list_notes", {})["notes"] if item["content"] == OLD]
        hold.call("update_note", {"id": id, "tags": ["db"]})


@pytest.mark.parametrize("how", ["undone", "deleted and brought back", "unpinned", "tagged"])
def test_what_is_touched_is_no_newer_text(hold: Limpet, clock: Clock, how: str) -> None:
    for key, text in (("db", OLD), ("database", NEW)):
        hold.call("write_memory", {"key": key, "content": text})
        note(hold, text)
        clock.pass_by()
    hold.session().handoff.write("We use Postgres 16.")
    clock.pass_by()
    touched(hold, how)
    marks = str.maketrans("", "", "«»")
    answer = hold.call("recall", {"query": "which Postgres do we use?"})
    hits = [hit["text"].translate(marks) for hit in answer["hits"]]
    assert hits.index(NEW) < hits.index(OLD)
    assert hold.call("search_memory", {"query": "Postgres"})["matches"][0]["content"] == NEW
    assert hold.call("search_notes", {"query": "Postgres"})["notes"][0]["content"] == NEW
    digest = hold.session("the next").memory.digest().text
    assert digest.index(NEW) < digest.index(OLD)
    clock.pass_by()
    hold.call("write_memory", {"key": "db", "content": "Correction: we use Postgres 17, not 16"})
    assert hold.call("search_memory", {"query": "Postgres"})["matches"][0]["key"] == "db", "a new text is new"


def test_a_tag_on_a_correction_corrects_no_handoff_that_was_written_since(hold: Limpet, clock: Clock) -> None:
    correction = note(hold, NEW)
    clock.pass_by()
    hold.session().handoff.write(OLD)
    clock.pass_by()
    hold.call("update_note", {"id": correction, "tags": ["db"]})
    assert "since" not in hold.call("read_handoff", {})


@pytest.mark.parametrize("how", [{"origin": "import"}, {"id": "database"}, {"id": "database", "forever": True}])
def test_what_a_purged_correction_had_replaced_holds_again(hold: Limpet, how: dict[str, object]) -> None:
    hold.call("write_memory", {"key": "db", "content": OLD}, by="person/cli")
    hold.call("write_memory", {"key": "database", "content": NEW, "replaces": "db"}, by="import/file")
    purged = hold.call("purge", how)
    assert purged["counts"] == {"memory": 1}
    assert memories(hold) == ["db"]
    assert "replaced_by" not in hold.call("read_memory", {"key": "db"})
    if "forever" in how:
        with pytest.raises(LimpetError):
            hold.undo()
        assert memories(hold) == ["db"]
        return
    hold.undo()
    assert memories(hold) == ["database"], "undone as one change"
    assert hold.call("read_memory", {"key": "db"})["replaced_by"] == "database"
    again = hold.call("purge", {**how, "dry_run": True})
    assert (again["counts"], again["entries"][0]["id"]) == ({"memory": 1}, "database")


def test_a_correction_and_what_it_replaced_are_purged_together(hold: Limpet) -> None:
    for text, more in ((OLD, {}), (NEW, {"replaces": "db"})):
        hold.call("write_memory", {"key": "database" if more else "db", "content": text, **more}, by="import/file")
    assert hold.call("purge", {"origin": "import"})["counts"] == {"memory": 2}
    assert memories(hold, include_replaced=True) == []


def test_what_a_deleted_text_had_replaced_may_be_replaced_again(hold: Limpet) -> None:
    hold.call("write_memory", {"key": "db", "content": OLD})
    hold.call("write_memory", {"key": "database", "content": NEW, "replaces": "db"})
    hold.call("delete_memory", {"key": "database"})
    assert hold.call("write_memory", {"key": "newest", "content": "Postgres 17", "replaces": "db"})["replaced"] == "db"
    assert hold.call("read_memory", {"key": "db"})["replaced_by"] == "newest"


def test_memory_replaces_memory_and_undo_brings_the_old_one_back(hold: Limpet) -> None:
    hold.call("write_memory", {"key": "db", "content": OLD})
    hold.call("write_memory", {"key": "database", "content": "Postgres 16", "replaces": "db"})
    assert memories(hold) == ["database"]
    assert memories(hold, include_replaced=True) == ["database", "db"] or set(
        memories(hold, include_replaced=True)
    ) == {"db", "database"}
    assert hold.call("read_memory", {"key": "db"})["replaced_by"] == "database"
    assert hold.call("recall", {"query": "Postgres 14"})["hits"][0]["id"] == "database"
    marked = hold.call("recall", {"query": "Postgres 14", "include_replaced": True})["hits"]
    assert [hit["state"] for hit in marked if hit["id"] == "db"] == ["replaced"]
    hold.undo()
    assert memories(hold) == ["db"]
    assert "replaced_by" not in hold.call("read_memory", {"key": "db"})


def test_the_half_that_was_replaced_is_undone_with_the_other(hold: Limpet) -> None:
    old = note(hold, OLD)
    note(hold, NEW, replaces=old)
    (last, *_) = hold.history(limit=1)
    assert last.key == old, "the last change is that of the old text"
    hold.undo(last.seq)
    assert contents(hold) == [OLD]


def test_a_note_may_replace_memory_and_a_done_note_is_not_a_replaced_one(hold: Limpet) -> None:
    hold.call("write_memory", {"key": "db", "content": OLD})
    done = note(hold, "The port is 8080")
    hold.call("update_note", {"id": done, "done": True})
    note(hold, NEW, replaces="db")
    assert memories(hold) == []
    assert contents(hold, include_replaced=True) == [NEW]
    assert contents(hold, include_done=True) == [NEW, "The port is 8080"]


def test_a_replaced_note_that_is_opened_again_holds_again(hold: Limpet) -> None:
    old = note(hold, OLD)
    note(hold, NEW, replaces=old)
    assert contents(hold, include_done=True) == [NEW]
    hold.call("update_note", {"id": old, "done": False})
    assert OLD in contents(hold)


def test_one_line_of_the_activity_log_per_write(hold: Limpet) -> None:
    hold.call("write_memory", {"key": "db", "content": OLD})
    hold.call("write_memory", {"key": "database", "content": NEW, "replaces": "db"})
    log = hold.call("read_memory", {"key": "activity-log-2026-03-03"})["content"]
    assert log.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "problem", "words"),
    [
        ({"content": "x y z", "replaces": "note_1"}, NotFound, "there is no note or memory"),
        ({"content": "x y z", "replaces": "old"}, Conflict, "replace that one instead"),
        ({"content": "x y z", "expires": "2026-03-02"}, BadInput, "has passed already"),
        ({"content": "x y z", "expires": "soon"}, BadInput, "write a day"),
        ({"content": "x y z", "anchors": ["../etc/passwd:1"]}, BadInput, "outside the project"),
        ({"content": "x y z", "anchors": ["missing.py:1"]}, BadInput, "No such file"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(
    hold: Limpet, arguments: dict[str, object], problem: type[LimpetError], words: str
) -> None:
    hold.call("write_memory", {"key": "old", "content": OLD})
    hold.call("write_memory", {"key": "new", "content": NEW, "replaces": "old"})
    seq = hold.history(limit=1)[0].seq
    with pytest.raises(problem, match=words):
        hold.call("add_note", arguments)
    with pytest.raises(problem, match=words):
        hold.call("write_memory", {"key": "third", **arguments})
    assert hold.history(limit=1)[0].seq == seq


def test_circles_are_refused(hold: Limpet) -> None:
    hold.call("write_memory", {"key": "a", "content": OLD})
    hold.call("write_memory", {"key": "b", "content": NEW, "replaces": "a"})
    hold.call("write_memory", {"key": "c", "content": "Postgres 17", "replaces": "b"})
    for last in ("b", "c"):
        with pytest.raises(Conflict, match="which has replaced it"):
            hold.call("write_memory", {"key": "a", "content": "Postgres 18", "replaces": last})
    with pytest.raises(BadInput, match="cannot replace itself"):
        hold.call("write_memory", {"key": "c", "content": "Postgres 18", "replaces": "c"})
    assert memories(hold) == ["c"]


# --- expiry -----------------------------------------------------------------------------------------------------------


def test_what_has_expired_is_out_of_lists_counts_recall_and_digest(hold: Limpet, clock: Clock) -> None:
    note(hold, "The freeze lasts until Friday", tags=["freeze", "team"], expires="2d")
    note(hold, "Parsers live in src", tags=["team"])
    hold.call("write_memory", {"key": "freeze", "content": "No deploys in the freeze", "expires": "2026-03-05"})
    assert hold.call("list_tags", {})["tag_count"] == 2
    assert "freeze" in hold.session().context()
    clock.pass_by(2 * DAY_MS)
    assert contents(hold) == ["Parsers live in src"]
    assert memories(hold) == []
    assert hold.call("recall", {"query": "freeze", "kinds": ["notes", "memory"]})["hits"] == []
    assert hold.call("search_notes", {"query": "freeze"})["result_count"] == 0
    assert hold.call("search_memory", {"query": "freeze"})["matches"] == []
    assert hold.call("list_tags", {})["tags"] == [{"tag": "team", "count": 1}]
    assert hold.call("add_note", {"content": "Lexers live in src"})["total_tags"] == 1
    assert "No deploys" not in hold.session().memory.digest().text
    (expired,) = [item for item in hold.call("list_notes", {"include_replaced": True})["notes"] if item.get("expired")]
    assert expired["content"] == "The freeze lasts until Friday"
    hits = hold.call("recall", {"query": "freeze deploys", "include_replaced": True})["hits"]
    assert {hit["state"] for hit in hits if hit["id"] == "freeze"} == {"expired"}


def test_an_expiry_can_be_changed_and_taken_away(hold: Limpet, clock: Clock) -> None:
    id = note(hold, "The freeze lasts until Friday", expires="1h")
    hold.call("update_note", {"id": id, "expires": "never"})
    clock.pass_by(DAY_MS)
    assert contents(hold) == ["The freeze lasts until Friday"]
    hold.call("write_memory", {"key": "k", "content": "one fact", "expires": "1h"})
    hold.call("write_memory", {"key": "k", "content": "another fact"})
    clock.pass_by(DAY_MS)
    assert memories(hold) == ["k"], "a new text has no expiry of the one before"


# --- listing and deleting ---------------------------------------------------------------------------------------------


def test_memory_is_listed_deleted_and_brought_back(hold: Limpet, clock: Clock) -> None:
    for key in ("release/branch", "release/owner", "owner"):
        hold.call("write_memory", {"key": key, "content": f"about {key} " + "x" * 500})
        clock.pass_by()
    listed = hold.call("list_memory", {"limit": 2})
    assert [item["key"] for item in listed["memories"]] == ["owner", "release/owner"]
    assert (listed["memory_count"], listed["left_out"]) == (2, 1)
    assert listed["memories"][0]["cut"]
    assert memories(hold, key_prefix="release/") == ["release/owner", "release/branch"]
    assert hold.call("delete_memory", {"key": "owner"}) == {"status": "ok", "key": "owner"}
    assert "owner" not in memories(hold)
    with pytest.raises(NotFound, match="there is no memory 'owner'"):
        hold.call("delete_memory", {"key": "owner"})
    hold.undo()
    assert memories(hold)[0] == "owner"


def test_tags_may_be_alternatives(hold: Limpet) -> None:
    for text, tags in (("about a", ["A", "x"]), ("about b", ["b", "x"]), ("about c", ["c", "x"])):
        note(hold, text, tags=tags)
    assert sorted(contents(hold, tags_any=["a", "B"])) == ["about a", "about b"]
    search = hold.call("search_notes", {"query": "about", "tags": ["x"], "tags_any": ["c", "a"]})
    assert sorted(item["content"] for item in search["notes"]) == ["about a", "about c"]
    hits = hold.call("recall", {"query": "about", "tags_any": ["b"]})["hits"]
    assert [hit["text"] for hit in hits] == ["«about» b"]


def test_a_write_says_what_it_pushed_out_of_the_digest(hold: Limpet, clock: Clock) -> None:
    long = " ".join(f"word{n}" for n in range(120))
    displaced: list[str] = []
    for number in range(12):
        clock.pass_by()
        answer = hold.call("write_memory", {"key": f"key-{number:02}", "content": f"{number} {long}"})
        shown_before = set(memories(hold, limit=100)) - {f"key-{number:02}"}
        displaced += answer.get("displaced", [])
        assert set(answer.get("displaced", [])) <= shown_before
    left_out = hold.session().memory.digest().left_out
    assert displaced, "some were pushed out"
    assert set(displaced) <= set(left_out), "and are not in the digest"


# --- versions and repeated calls --------------------------------------------------------------------------------------


def test_a_write_may_depend_on_a_version(hold: Limpet) -> None:
    id = note(hold, "The port is 8080")
    assert (
        hold.call("update_note", {"id": id, "content": "The port is 8081", "expected_version": 1})["note"]["version"]
        == 2
    )
    with pytest.raises(Conflict, match="is at version 2, not 1"):
        hold.call("update_note", {"id": id, "content": "The port is 8082", "expected_version": 1})
    assert hold.call("write_memory", {"key": "k", "content": "one", "expected_version": 0})["version"] == 1
    with pytest.raises(Conflict, match="is at version 1, not 0"):
        hold.call("write_memory", {"key": "k", "content": "two", "expected_version": 0})
    assert hold.call("read_memory", {"key": "k"})["content"] == "one"


def test_a_repeated_call_writes_once_and_gets_the_first_answer(hold: Limpet, opened: Opener, clock: Clock) -> None:
    call = {"content": "Casts break LL(1)", "tags": ["grammar"], "idempotency_key": "k-1"}
    first = hold.call("add_note", call)
    clock.pass_by()
    note(hold, "another note entirely")
    assert opened().call("add_note", call) == first, "also in another process"
    append = {"key": "log", "content": "line", "mode": "append", "idempotency_key": "k-2"}
    hold.call("write_memory", append)
    hold.call("write_memory", append)
    assert hold.call("read_memory", {"key": "log"})["content"] == "line"
    with pytest.raises(Conflict, match="came with another call"):
        hold.call("add_note", {**call, "content": "something else"})
    with pytest.raises(Conflict, match="came with another call"):
        hold.call("write_memory", {"key": "k", "content": "x", "idempotency_key": "k-1"})
    deletion = {"id": first["note_id"], "idempotency_key": "k-3"}
    assert hold.call("delete_note", deletion) == hold.call("delete_note", deletion)
    update = {
        "id": note(hold, "The port is 80"),
        "content": "The port is 81",
        "idempotency_key": "k-4",
        "expected_version": 1,
    }
    assert hold.call("update_note", update) == hold.call("update_note", update), "its version is not asked for again"


def test_a_key_is_forgotten_after_a_week(hold: Limpet, clock: Clock) -> None:
    call = {"key": "log", "content": "line", "mode": "append", "idempotency_key": "k"}
    hold.call("write_memory", call)
    clock.pass_by(8 * DAY_MS)
    hold.call("write_memory", call)
    assert hold.call("read_memory", {"key": "log"})["content"] == "line\nline"


def test_a_correction_that_is_repeated_is_made_once(hold: Limpet) -> None:
    old = note(hold, OLD)
    call = {"content": NEW, "replaces": old, "idempotency_key": "k"}
    first = hold.call("add_note", call)
    assert hold.call("add_note", call)["note_id"] == first["note_id"]
    assert contents(hold) == [NEW]


# --- the gate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["ok", "done", "TODO", "hello", "running tests now...", "🎉", "好的"])
def test_what_says_nothing_is_stored_with_a_remark(hold: Limpet, text: str) -> None:
    assert "says little by itself" in hold.call("add_note", {"content": text})["remark"]
    assert contents(hold) == [text]


@pytest.mark.parametrize(
    "text",
    ["Port 8080", "See src/db.py", "Casts break LL(1)", "The lexer must stay vendored", "部署端口是8080", "owner: Ana"],
)
def test_what_says_something_gets_no_remark(hold: Limpet, text: str) -> None:
    assert "remark" not in hold.call("add_note", {"content": text})


@pytest.mark.parametrize(
    "text",
    [
        "Previously we used TSLint for linting",
        "Linting: was using TSLint until March",
        "We switched from TSLint to ESLint, later replaced by Biome",
        "Früher lief die CI auf Jenkins",
        "Раньше мы использовали Jenkins",
        "以前使用 Jenkins 构建",
    ],
)
def test_what_tells_of_the_past_gets_a_remark_and_is_kept_as_it_is(hold: Limpet, text: str) -> None:
    answer = hold.call("add_note", {"content": text})
    assert "mark it as done" in answer["remark"]
    (note,) = hold.call("list_notes", {})["notes"]
    assert note["content"] == text
    assert "done" not in note


@pytest.mark.parametrize(
    "text",
    [
        "Cookies were replaced by tokens in the login",
        "Antes de desplegar hay que avisar a Ana",
        "We replaced TSLint with ESLint",
        "The wasp trap uses 40 ml of sugar water",
    ],
)
def test_what_holds_now_gets_none(hold: Limpet, text: str) -> None:
    assert "remark" not in hold.call("add_note", {"content": text})


def test_an_exact_repeat_in_the_same_session_answers_with_the_note_that_exists(hold: Limpet, opened: Opener) -> None:
    first = hold.call("add_note", {"content": "Casts break LL(1)", "tags": ["grammar"]})
    again = hold.call("add_note", {"content": "Casts break LL(1)", "tags": ["Grammar"]})
    assert again["note_id"] == again["duplicate_of"] == first["note_id"]
    other = opened("two").call("add_note", {"content": "Casts break LL(1)", "tags": ["grammar"]})
    assert other["note_id"] != first["note_id"] == other["duplicate_of"], "another session says it for itself"


def test_use_is_counted_and_does_not_become_a_change(hold: Limpet) -> None:
    hold.call("write_memory", {"key": "db", "content": OLD})
    seq = hold.history(limit=1)[0].seq
    hold.call("read_memory", {"key": "db"})
    hold.call("read_memory", {"key": "db"})
    assert hold.call("mark_useful", {"id": "db"})["useful"] == 1
    assert {use.what: use.times for use in hold.store.calls.uses(hold.scope)} == {"opened": 2, "useful": 1}
    assert hold.history(limit=1)[0].seq == seq
    with pytest.raises(errors.NotFound):
        hold.call("mark_useful", {"id": "nothing"})


def test_what_changed_since_it_was_read_is_not_deleted(hold: Limpet) -> None:
    notes, memory = hold.session().notes, hold.session().memory
    id = notes.add("The port is 8080 in tests").id
    notes.update(id, content="The port is 9090 in tests")
    memory.write("port", "The port is 8080")
    memory.write("port", "The port is 9090")
    with pytest.raises(Conflict, match="is at version 2, not 1"):
        notes.delete(id, expected_version=1)
    with pytest.raises(Conflict, match="is at version 2, not 1"):
        memory.delete("port", expected_version=1)
    assert (contents(hold), memories(hold)) == (["The port is 9090 in tests"], ["port"])
    notes.delete(id, expected_version=2)
    memory.delete("port", expected_version=2)
    assert (contents(hold), memories(hold)) == ([], [])


def test_what_replaced_a_note_has_the_id_that_lists_show(hold: Limpet) -> None:
    tools = {tool.name: tool.handler for tool in hold.tools("full")}
    old = tools["add_note"]({"content": "The release is on Friday at three"}).split(" ", 1)[0]
    new = tools["add_note"]({"content": "The release is on Thursday at three", "replaces": old}).split(" ", 1)[0]
    assert new.startswith("n")
    for tool in ("search_notes", "recall"):
        lines = tools[tool]({"query": "release", "include_replaced": True}).splitlines()
        (line,) = [line for line in lines if line.startswith(f"{old} ")]
        assert f"replaced by {new} " in f"{line} ", tool
