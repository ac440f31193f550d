"""The notepad: literal edits, versions, compare-and-swap, the budget, and the section in every window."""

from __future__ import annotations

import pytest

from limpet import errors
from limpet.api import Limpet
from limpet.model import Notepad
from operations.conftest import Clock, Opener

EMPTY_SECTION = (
    "## Session Notepad\n"
    "(empty — use write_notepad or update_notepad to save working notes, findings, and task progress; "
    "content here survives context compaction)"
)


def edit(hold: Limpet, operation: str, **arguments: object) -> dict[str, object]:
    return hold.call("update_notepad", {"operation": operation, **arguments})


def text(hold: Limpet) -> str:
    return str(hold.call("read_notepad", {})["content"])


# --- reading and writing ----------------------------------------------------------------------------------------------


def test_a_new_notepad_is_empty(hold: Limpet) -> None:
    assert hold.call("read_notepad", {}) == {"content": "", "tokens": 0, "version": 0}


def test_what_was_written_is_read_exactly(hold: Limpet) -> None:
    whole = "# Plan\r\n\t1. ünï \U0001f680\n\n  trailing  \n"
    answer = hold.call("write_notepad", {"content": whole})
    assert answer["ok"] is True
    assert answer.keys() == {"ok", "tokens", "version"}
    assert text(hold) == whole
    hold.call("write_notepad", {"content": ""})
    assert text(hold) == ""
    assert hold.call("read_notepad", {})["version"] == 2


def test_the_same_text_again_is_no_new_version(hold: Limpet) -> None:
    hold.call("write_notepad", {"content": "same"})
    assert hold.call("write_notepad", {"content": "same"})["version"] == 1
    assert len(hold.session().notepad.history()) == 1


def test_every_session_has_its_own(hold: Limpet, opened: Opener) -> None:
    hold.call("write_notepad", {"content": "mine"})
    hold.call("write_notepad", {"content": "theirs", "session_id": "two"})
    assert text(hold) == "mine"
    assert hold.call("read_notepad", {"session_id": "two"})["content"] == "theirs"
    assert opened(project="other").call("read_notepad", {})["content"] == ""
    assert opened().call("read_notepad", {})["content"] == "mine"


def test_it_has_a_hard_limit(hold: Limpet) -> None:
    hold.call("write_notepad", {"content": "x" * 100_000})
    for refused in (
        lambda: hold.call("write_notepad", {"content": "y" * 100_001}),
        lambda: edit(hold, "append", content="y"),
    ):
        with pytest.raises(errors.BadInput, match=r"notepad has 100,001 characters; the limit is 100,000"):
            refused()
    assert text(hold) == "x" * 100_000


# --- the four edits ---------------------------------------------------------------------------------------------------


def test_append_and_prepend_add_exactly_what_they_are_given(hold: Limpet) -> None:
    assert edit(hold, "append", content="b")["ok"] is True
    edit(hold, "append", content="\nc ")
    edit(hold, "prepend", content="a\n")
    assert text(hold) == "a\nb\nc "


def test_find_replace_changes_the_first_place_or_all(hold: Limpet) -> None:
    hold.call("write_notepad", {"content": "x x x"})
    edit(hold, "find_replace", find="x", replace="y")
    assert text(hold) == "y x x"
    edit(hold, "find_replace", find="x", replace="xx", replace_all=True)
    assert text(hold) == "y xx xx"
    edit(hold, "find_replace", find=" xx", replace="", replace_all=True)
    assert text(hold) == "y"


def test_delete_takes_the_first_place_or_all(hold: Limpet) -> None:
    hold.call("write_notepad", {"content": "a-b-c"})
    edit(hold, "delete", content="-")
    assert text(hold) == "ab-c"
    hold.call("write_notepad", {"content": "a-b-c"})
    edit(hold, "delete", content="-", replace_all=True)
    assert text(hold) == "abc"


@pytest.mark.parametrize(
    "literal", ["$&", "$1", "$$", r"\1", r"\g<0>", r"\n", r"\\", ".*", "[a-z]+", "(", "^", "{0}", "%s", "\\"]
)
def test_texts_are_literal(hold: Limpet, literal: str) -> None:
    hold.call("write_notepad", {"content": f"before {literal} after, plain"})
    edit(hold, "find_replace", find=literal, replace=f"<{literal}{literal}>")
    assert text(hold) == f"before <{literal}{literal}> after, plain"
    edit(hold, "find_replace", find="plain", replace=literal)
    assert text(hold).endswith(f"after, {literal}")
    edit(hold, "delete", content=f"<{literal}{literal}>")
    assert text(hold) == f"before  after, {literal}"


@pytest.mark.parametrize(
    ("find", "said"),
    [
        ("- [ ] parse casts", "Line 3 is near (case): '- [ ] Parse casts'"),
        ("- [ ]  Parse   casts", "Line 3 is near (whitespace): '- [ ] Parse casts'"),
        ("- [x] Parse casts", "Line 3 is near (similar): '- [ ] Parse casts'"),
        ("zzzz qqqq", "Nothing in it is similar; read it first."),
    ],
)
def test_a_text_that_is_not_there_says_what_is_near(hold: Limpet, find: str, said: str) -> None:
    hold.call("write_notepad", {"content": "# Plan\n\n- [ ] Parse casts\n"})
    before = list(hold.export_lines())
    for arguments in (
        {"operation": "find_replace", "find": find, "replace": "x"},
        {"operation": "delete", "content": find},
    ):
        with pytest.raises(errors.NotFound) as caught:
            hold.call("update_notepad", arguments)
        message = caught.value.message
        assert message.startswith(f"the notepad does not contain {find!r}.")
        assert said in message
        assert message.endswith("Nothing was changed.")
    assert list(hold.export_lines()) == before


def test_nothing_is_found_in_an_empty_notepad(hold: Limpet) -> None:
    with pytest.raises(errors.NotFound, match="It is empty"):
        edit(hold, "find_replace", find="x", replace="y")
    assert hold.history() == ()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"operation": "truncate", "content": "x"}, "not_one_of"),
        ({"content": "x"}, "missing"),
        ({"operation": "append"}, "needs"),
        ({"operation": "prepend", "content": ""}, "needs"),
        ({"operation": "delete"}, "needs"),
        ({"operation": "find_replace", "find": "x"}, "needs"),
        ({"operation": "find_replace", "replace": "x"}, "needs"),
        ({"operation": "find_replace", "find": "", "replace": "x"}, "needs"),
        ({"operation": "find_replace", "find": "x", "replace": "y", "content": "z"}, "not_used"),
        ({"operation": "append", "content": "x", "find": "y"}, "not_used"),
        ({"operation": "append", "content": "x", "replace": "y"}, "not_used"),
    ],
)
def test_an_edit_needs_its_own_arguments(hold: Limpet, arguments: dict[str, object], code: str) -> None:
    hold.call("write_notepad", {"content": "x"})
    with pytest.raises(errors.BadInput) as caught:
        hold.call("update_notepad", arguments)
    assert caught.value.code == code
    assert text(hold) == "x"


# --- versions ---------------------------------------------------------------------------------------------------------


def test_each_write_is_a_version(hold: Limpet, clock: Clock) -> None:
    pad = hold.session(by="human/cli").notepad
    pad.write("one\n")
    clock.pass_by()
    pad.append("two\n")
    clock.pass_by()
    pad.replace("one", "1")
    versions = pad.history()
    assert [(v.version, v.content, v.operation, v.by) for v in versions] == [
        (3, "1\ntwo\n", "update_notepad", "human/cli"),
        (2, "one\ntwo\n", "update_notepad", "human/cli"),
        (1, "one\n", "write_notepad", "human/cli"),
    ]
    assert versions[0].at > versions[1].at > versions[2].at
    assert [v.version for v in pad.history(limit=2)] == [3, 2]
    answer = hold.call("notepad_history", {})
    assert answer["versions"][0].keys() == {"version", "at", "by", "operation", "characters"}
    assert answer["diff"] == ""


def test_a_diff_shows_what_changed_since(hold: Limpet) -> None:
    pad = hold.session().notepad
    pad.write("one\ntwo\n")
    pad.write("one\n2\n")
    assert pad.diff(1) == "--- version 1\n+++ version 2\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert pad.diff(2) == ""


def test_an_earlier_version_is_restored_as_a_new_one(hold: Limpet) -> None:
    pad = hold.session().notepad
    for content in ("first", "second", ""):
        pad.write(content)
    answer = hold.call("restore_notepad", {"version": 1})
    assert (answer["ok"], answer["version"]) == (True, 4)
    assert pad.read() == "first"
    assert [v.content for v in pad.history()] == ["first", "", "second", "first"]
    pad.restore(3)
    assert pad.read() == ""


@pytest.mark.parametrize("version", [0, -1, 3, 10**6])
def test_a_version_that_never_was(hold: Limpet, version: int) -> None:
    pad = hold.session().notepad
    pad.write("a")
    pad.write("b")
    for name in ("restore_notepad", "notepad_history"):
        with pytest.raises(errors.NotFound, match=f"no version {version}; it has versions up to 2"):
            hold.call(name, {"version": version})
    assert pad.read() == "b"


def test_versions_go_on_after_an_undone_beginning(hold: Limpet) -> None:
    pad = hold.session().notepad
    pad.write("a")
    hold.undo()
    assert pad.get() == Notepad("", 0, 0)
    pad.write("b")
    assert [(v.version, v.content) for v in pad.history()] == [(3, "b"), (2, ""), (1, "a")]
    pad.restore(1)
    assert pad.read() == "a"


def test_compare_and_swap(hold: Limpet, opened: Opener) -> None:
    hold.call("write_notepad", {"content": "first", "expected_version": 0})
    other = opened()
    other.call("write_notepad", {"content": "second", "expected_version": 1})
    for name, arguments in (
        ("write_notepad", {"content": "third"}),
        ("update_notepad", {"operation": "append", "content": "!"}),
    ):
        for expected in (0, 1, 3):
            with pytest.raises(errors.Conflict) as caught:
                hold.call(name, {**arguments, "expected_version": expected})
            assert caught.value.code == "version_moved"
            assert f"is at version 2, not {expected}" in caught.value.message
    assert text(hold) == "second"
    assert edit(hold, "append", content="!", expected_version=2)["version"] == 3


# --- the budget -------------------------------------------------------------------------------------------------------


def test_a_write_over_the_budget_is_saved_whole_and_says_what_to_trim(hold: Limpet) -> None:
    small, large = "## Small\nword\n", "## Large part\n" + "many words of work\n" * 1_200
    answer = hold.call("write_notepad", {"content": small + large + "## Middle\n" + "some words\n" * 200})
    warning = str(answer["warning"])
    assert answer["ok"] is True
    assert "its budget is 4,000" in warning
    assert "It was saved whole." in warning
    assert warning.index("'## Large part'") < warning.index("'## Middle'") < warning.index("'## Small'")
    assert text(hold) == small + large + "## Middle\n" + "some words\n" * 200
    assert "warning" in edit(hold, "append", content="more")
    assert "warning" not in hold.call("write_notepad", {"content": small})


def test_the_budget_can_be_set(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import limpet

    monkeypatch.setenv("LIMPET_SET", "notepad_budget_tokens=5")
    with limpet.open(store_url, project="demo") as hold:
        assert "its budget is 5," in str(
            hold.call("write_notepad", {"content": "one two three four five six"})["warning"]
        )


# --- the section ------------------------------------------------------------------------------------------------------


def test_the_section_has_the_hint_while_the_notepad_is_empty(hold: Limpet) -> None:
    pad = hold.session().notepad
    assert pad.section() == EMPTY_SECTION
    pad.write("x")
    pad.write("")
    assert pad.section() == EMPTY_SECTION


def test_the_bytes_of_the_section_change_only_with_the_notepad(hold: Limpet, clock: Clock, opened: Opener) -> None:
    work = hold.session()
    work.notepad.write("- [ ] casts\n")
    before = work.notepad.section().encode()
    assert before == b"## Session Notepad\n- [ ] casts\n"
    clock.pass_by(86_400_000)
    work.notes.add("something")
    work.memory.write("k", "v")
    work.scratch("s", "replace")
    assert work.notepad.section().encode() == before
    assert opened().session().notepad.section().encode() == before
    work.notepad.append("x")
    assert work.notepad.section().encode() != before


def test_a_note_written_earlier_in_the_same_run_is_in_the_next_window(hold: Limpet) -> None:
    work = hold.session()
    assert EMPTY_SECTION in work.context()
    hold.call("update_notepad", {"operation": "append", "content": "found: the cast rule"})
    assert "## Session Notepad\nfound: the cast rule" in work.context()
