"""Notes: the seven tools, their limits, their order, and what each answer says besides."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest

from limpet import errors, limits
from limpet.api import Limpet
from limpet.model import NOTE, Draft
from operations.conftest import NOON, Clock, Opener

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # one picture, five code points


def contents(answer: dict[str, Any]) -> list[str]:
    return [note["content"] for note in answer["notes"]]


def add(hold: Limpet, content: str, *tags: str, **more: object) -> str:
    answer = hold.call("add_note", {"content": content, "tags": list(tags), **more})
    return str(answer["note_id"])


# --- adding -----------------------------------------------------------------------------------------------------------


def test_a_note_is_kept_as_it_was_given(hold: Limpet, clock: Clock) -> None:
    hold.session().begin()
    clock.pass_by(1_250)
    text = '  <root attr="it\'s">&amp; \\1 $& \t\r\n  second line  '
    id = add(hold, text, "xml")
    (note,) = hold.call("list_notes", {})["notes"]
    moment = "2026-03-03T12:00:01.250Z"
    times = {"created_at": moment, "updated_at": moment}
    assert note == {"id": id, "content": text, "tags": ["xml"], **times, "version": 1}


def test_an_id_is_note_and_the_milliseconds(hold: Limpet, clock: Clock) -> None:
    hold.session().begin()
    clock.pass_by(7)
    assert add(hold, "first") == f"note_{NOON + 7}"


def test_ids_are_unique_and_increasing_in_one_millisecond_and_when_the_clock_steps_back(
    hold: Limpet, clock: Clock, opened: Opener
) -> None:
    other = opened("two")
    numbers = []
    for step in (0, 0, 0, 5, -60_000, 0, 1, 120_000):
        clock.pass_by(step)
        numbers += [int(add(each, "x").removeprefix("note_")) for each in (hold, other)]
    assert numbers == sorted(set(numbers))


def test_time_stamps_never_go_back(hold: Limpet, clock: Clock) -> None:
    first = hold.session().notes.add("first")
    clock.pass_by(-3_600_000)
    second = hold.session().notes.add("second")
    changed = hold.session().notes.update(first.id, "first, changed")
    assert first.created_at <= second.created_at <= changed.updated_at
    assert changed.created_at == first.created_at


def test_the_metadata_of_an_addition(hold: Limpet) -> None:
    first = hold.call("add_note", {"content": "about a 1", "tags": ["x", "y"]})
    second = hold.call("add_note", {"content": "about b 2", "tags": ["y", "z"]})
    assert first.keys() == {"note_id", "total_notes", "total_tags"}
    assert (first["total_notes"], first["total_tags"]) == (1, 2)
    assert (second["total_notes"], second["total_tags"]) == (2, 3)
    assert first["note_id"] != second["note_id"]


@pytest.mark.parametrize("unit", ["a", "é", "e\u0301", "\U0001f680", FAMILY, "漢"])
def test_the_limit_counts_characters_and_not_bytes(hold: Limpet, unit: str) -> None:
    fits = (unit * 4_000)[:4_000]
    id = add(hold, fits)
    assert hold.session().notes.list()[0].content == fits
    with pytest.raises(errors.BadInput) as caught:
        add(hold, fits + "x")
    assert caught.value.code == "too_long"
    assert "4,001 characters; the limit is 4,000" in caught.value.message
    with pytest.raises(errors.BadInput, match=r"4,001"):
        hold.call("update_note", {"id": id, "content": fits + "x"})
    assert [note.content for note in hold.session().notes.list()] == [fits]


@pytest.mark.parametrize("blank", ["", " ", "\n\t \u00a0\u3000"])
def test_blank_content_is_refused(hold: Limpet, blank: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        add(hold, blank)
    assert caught.value.code == "empty"
    assert hold.call("list_notes", {})["note_count"] == 0


def test_the_limits_can_be_set(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import limpet

    monkeypatch.setenv("LIMPET_SET", "note_max_chars=10;note_max_tags=2")
    with limpet.open(store_url, project="demo") as hold:
        add(hold, "0123456789", "a", "b")
        with pytest.raises(errors.BadInput, match="the limit is 10"):
            add(hold, "0123456789x")
        with pytest.raises(errors.BadInput, match="the limit is 2"):
            add(hold, "x", "a", "b", "c")


# --- tags -------------------------------------------------------------------------------------------------------------


def test_from_none_to_ten_tags(hold: Limpet) -> None:
    for count in (0, 1, 10):
        add(hold, f"{count} tags", *(f"t{n}" for n in range(count)))
    assert [len(note.tags) for note in hold.session().notes.list()] == [10, 1, 0]
    with pytest.raises(errors.BadInput) as caught:
        add(hold, "eleven", *(f"t{n}" for n in range(11)))
    assert caught.value.message.startswith("11 tags were given; the limit is 10.")


def test_duplicates_collapse_before_they_are_counted(hold: Limpet) -> None:
    ten = [f"T{n}" for n in range(10)]
    id = add(hold, "twice", *ten, *(name.lower() for name in ten))
    assert list(hold.session().notes.list()[0].tags) == ten
    hold.call("update_note", {"id": id, "tags": ["Bug", "bug", " BUG "]})
    assert hold.session().notes.list()[0].tags == ("Bug",)


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_a_blank_tag_is_refused_and_its_position_named(hold: Limpet, blank: str) -> None:
    with pytest.raises(errors.BadInput, match="tag 2 is blank"):
        add(hold, "x", "good", blank)
    with pytest.raises(errors.BadInput, match="tag 1 is blank"):
        hold.call("list_notes", {"tag": blank})
    with pytest.raises(errors.BadInput, match="tag 1 is blank"):
        hold.call("search_notes", {"tags": [blank]})


def test_a_tag_has_a_length(hold: Limpet) -> None:
    add(hold, "fits", "t" * 100)
    with pytest.raises(errors.BadInput, match="tag 1 has 101 characters; the limit is 100"):
        add(hold, "too long", "t" * 101)


def test_tags_match_in_any_case_and_show_their_first_spelling(hold: Limpet) -> None:
    add(hold, "first", "Straße")
    add(hold, "second", "STRASSE", "Ünï")
    add(hold, "third", unicodedata.normalize("NFD", "üNÏ"))
    notes = hold.session().notes
    assert [note.tags for note in notes.list()] == [("Ünï",), ("Straße", "Ünï"), ("Straße",)]
    assert len(notes.list("strasse")) == 2
    assert len(notes.list("ÜNÏ")) == 2
    assert [(item.tag, item.notes) for item in notes.tags()] == [("Straße", 2), ("Ünï", 2)]


def test_several_tags_mean_all_of_them(hold: Limpet) -> None:
    add(hold, "both", "a", "b")
    add(hold, "only a", "a")
    add(hold, "only b", "b")
    search = hold.session().notes.search
    assert [note.content for note in search(tags=["A", "B"]).notes] == ["both"]
    assert len(search(tags=["a"]).notes) == 2
    assert search(tags=["a", "c"]).notes == ()
    assert len(search(tags=[]).notes) == 3


def test_list_tags_counts_open_notes_in_alphabetical_order(hold: Limpet) -> None:
    empty = hold.call("list_tags", {})
    assert empty == {"tags": [], "tag_count": 0, "total_notes": 0}
    add(hold, "1", "zebra", "Apple")
    id = add(hold, "2", "apple")
    add(hold, "3", "mango", "apple")
    answer = hold.call("list_tags", {})
    assert answer["tags"] == [
        {"tag": "Apple", "count": 3},
        {"tag": "mango", "count": 1},
        {"tag": "zebra", "count": 1},
    ]
    assert (answer["tag_count"], answer["total_notes"]) == (3, 3)
    hold.call("update_note", {"id": id, "done": True})
    after = hold.call("list_tags", {})
    assert after["tags"][0] == {"tag": "Apple", "count": 2}
    assert after["total_notes"] == 3


# --- listing ----------------------------------------------------------------------------------------------------------


def test_a_list_is_newest_first_with_its_metadata(hold: Limpet, clock: Clock) -> None:
    ids = []
    for name in ("one", "two", "three"):
        ids.append(add(hold, name, name))
        clock.pass_by()
    answer = hold.call("list_notes", {})
    assert contents(answer) == ["three", "two", "one"]
    assert (answer["note_count"], answer["tag_filter"]) == (3, None)
    assert "left_out" not in answer
    filtered = hold.call("list_notes", {"tag": "TWO"})
    assert (contents(filtered), filtered["note_count"], filtered["tag_filter"]) == (["two"], 1, "TWO")
    hold.call("update_note", {"id": ids[0], "content": "one again"})
    assert contents(hold.call("list_notes", {})) == ["one again", "three", "two"]


def test_equal_times_keep_the_order_of_writing(hold: Limpet) -> None:
    for number in range(12):
        add(hold, str(number))
    assert contents(hold.call("list_notes", {})) == [str(number) for number in reversed(range(12))]


def test_nothing_is_left_out_in_silence(hold: Limpet) -> None:
    for number in range(25):
        add(hold, f"thing {number}", "all")
    for name, arguments in (("list_notes", {}), ("search_notes", {}), ("search_notes", {"query": "thing"})):
        answer = hold.call(name, arguments)
        assert (len(answer["notes"]), answer["left_out"]) == (20, 5)
        answer = hold.call(name, {**arguments, "limit": 7})
        assert (len(answer["notes"]), answer["left_out"]) == (7, 18)
        answer = hold.call(name, {**arguments, "limit": 1000})
        assert len(answer["notes"]) == 25
        assert "left_out" not in answer


@pytest.mark.parametrize("limit", [0, -1, 1_001, 10_000])
def test_a_limit_has_a_range(hold: Limpet, limit: int) -> None:
    for name in ("list_notes", "search_notes"):
        with pytest.raises(errors.BadInput, match=r"must be from 1 to 1,000"):
            hold.call(name, {"limit": limit})


def test_notes_are_looked_for_in_every_session_of_the_project(hold: Limpet, clock: Clock) -> None:
    add(hold, "Casts break LL(1) because of lookahead", "Grammar", session_id="yesterday")
    clock.pass_by()
    reply = hold.call("add_note", {"content": "mine", "tags": ["t"]})
    assert (reply["total_notes"], reply["total_tags"]) == (2, 2)
    for arguments in ({"query": "casts"}, {"query": "LL(1) because"}, {"tags": ["grammar"]}):
        answer = hold.call("search_notes", arguments)
        assert (contents(answer), answer["result_count"]) == (["Casts break LL(1) because of lookahead"], 1)
        assert answer["notes"][0]["session"] == "yesterday"
    assert contents(hold.call("search_notes", {})) == ["mine", "Casts break LL(1) because of lookahead"]
    assert hold.call("list_notes", {})["note_count"] == 2
    assert hold.call("list_notes", {"tag": "GRAMMAR"})["note_count"] == 1
    tags = hold.call("list_tags", {})
    assert (tags["tags"], tags["total_notes"]) == ([{"tag": "Grammar", "count": 1}, {"tag": "t", "count": 1}], 2)


def test_a_search_counts_until_the_page_is_full_and_then_says_that_there_may_be_more(hold: Limpet) -> None:
    for number in range(12):
        add(hold, f"thing {number}", session_id=f"s{number}")
        add(hold, f"nothings {number}", session_id=f"s{number}")
    answer = hold.call("search_notes", {"query": "thing", "limit": 20})
    assert (len(answer["notes"]), answer["result_count"], answer["left_out"]) == (20, 24, 4)
    assert "more" in answer, "by stem others might match"
    answer = hold.call("search_notes", {"query": "thing", "limit": 24})
    assert (len(answer["notes"]), answer["result_count"]) == (24, 24)
    assert not {"more", "left_out"} & answer.keys()
    answer = hold.call("search_notes", {"query": "thing", "limit": 5})
    assert (len(answer["notes"]), answer["result_count"], answer["left_out"], answer["more"]) == (5, 12, 7, True)
    stamp = hold.context().stamp("add_note")
    drafts = [(f"note_9{number:014}", Draft(f"bulk thing {number}", "one")) for number in range(1_000)]
    hold.store.entries.append(hold.scope, NOTE, drafts, stamp)
    answer = hold.call("search_notes", {"query": "thing", "limit": 5})
    assert (answer["result_count"], answer["more"]) == (limits.NOTES_COUNTED, True)


def test_the_library_can_ask_for_the_notes_of_a_session_alone(hold: Limpet) -> None:
    add(hold, "mine", "t")
    add(hold, "theirs", "t", session_id="two")
    notes = hold.session().notes
    assert [note.content for note in notes.list(this_session=True)] == ["mine"]
    assert [note.content for note in notes.search("i", this_session=True).notes] == ["mine"]
    assert [note.content for note in hold.session("two").notes.list(this_session=True)] == ["theirs"]
    assert [(tag.tag, tag.notes) for tag in notes.tags(this_session=True)] == [("t", 1)]
    assert [(tag.tag, tag.notes) for tag in notes.tags()] == [("t", 2)]
    assert sorted(contents(hold.call("list_notes", {"session_id": "*"}))) == ["mine", "theirs"]
    with pytest.raises(errors.BadInput, match="every session"):
        add(hold, "for all", session_id="*")


def test_projects_do_not_see_each_other(hold: Limpet, opened: Opener) -> None:
    id = add(hold, "mine", "t")
    other = opened(project="other")
    assert other.call("list_notes", {"session_id": "*"})["note_count"] == 0
    assert other.call("search_notes", {"query": "mine"})["result_count"] == 0
    assert other.call("list_tags", {"session_id": "*"})["tags"] == []
    for name, arguments in (("update_note", {"id": id, "content": "stolen"}), ("delete_note", {"id": id})):
        with pytest.raises(errors.NotFound):
            other.call(name, arguments)
    assert contents(hold.call("list_notes", {})) == ["mine"]


# --- searching --------------------------------------------------------------------------------------------------------


def test_short_texts_come_first_then_recent_ones(hold: Limpet, clock: Clock) -> None:
    for text in ("a needle.", "needle old", "far away is the needle", "needle new", "x needle"):
        add(hold, text)
        clock.pass_by()
    answer = hold.call("search_notes", {"query": "NEEDLE"})
    assert contents(answer) == ["x needle", "a needle.", "needle new", "needle old", "far away is the needle"]
    assert (answer["result_count"], answer["query"], answer["tags"]) == (5, "NEEDLE", [])


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The Quick brown fox", "quick BROWN"),
        ("The Quick brown fox", "ick bro"),
        ("an underscored_name here", "red_na"),
        ("price: 12.50 €", "2.50 €"),
        ("die Straße ist lang", "STRASSE"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
        ("caf\u00e9 au lait", "cafe\u0301 AU"),
        ("日本語のメモ", "語のメ"),
        ("f(x) = [a-z]+ | $1", "[a-z]+ | $"),
        ("x" * 200 + "needle" + "y" * 200, "xneedley"),
        ('say "AND" OR NOT', '"and" or'),
        ("100% done", "100%"),
        ("a_b and c", "a_b"),
    ],
)
def test_any_substring_is_found_whatever_its_case(hold: Limpet, text: str, query: str) -> None:
    add(hold, text)
    add(hold, "something else altogether")
    assert contents(hold.call("search_notes", {"query": query})) == [text]


def test_notes_with_every_word_follow_those_with_the_query_as_it_stands(hold: Limpet, clock: Clock) -> None:
    exact = add(hold, "a long way to the fox quick as it is")
    clock.pass_by()
    words = add(hold, "the quick brown fox")
    clock.pass_by()
    longer = add(hold, "what the fox did when nobody looked was quick, and nothing else")
    add(hold, "a fox, and nothing else")
    answer = hold.call("search_notes", {"query": "fox quick"})
    assert [note["id"] for note in answer["notes"]] == [exact, words, longer], "the shortest first"
    assert (answer["result_count"], "related" in answer) == (3, False), "beside these, looser ones distract"
    assert "related" not in hold.call("search_notes", {"query": "zzz"})


def test_more_matches_than_are_counted_are_said_to_be_more(hold: Limpet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NOTES_COUNTED", 4)
    ids = [add(hold, f"fox and dog {number}") for number in range(6)]
    answer = hold.call("search_notes", {"query": "fox", "limit": 2})
    assert ([note["id"] for note in answer["notes"]], answer["result_count"]) == ([ids[5], ids[4]], 4)
    assert (answer["more"], answer["left_out"]) == (True, 2)


def test_words_know_inflections_and_earlier_sessions(hold: Limpet) -> None:
    add(hold, "Casting breaks the parser", session_id="yesterday")
    answer = hold.call("search_notes", {"query": "parsers cast"})
    (hit,) = answer["notes"]
    assert (hit["content"], hit["session"]) == ("Casting breaks the parser", "yesterday")


def test_what_is_related_is_what_recall_finds_in_its_order(hold: Limpet, clock: Clock) -> None:
    for content in ("we will ship on Friday", "the old lexer was dropped: casts break LL(1)", "a lexer for the shell"):
        hold.session("before").notes.add(content)
        clock.pass_by()
    question = "why did we drop the old lexer?"
    answer = hold.call("search_notes", {"query": question})
    assert answer["notes"] == []
    found = [hit.key for hit in hold.recall(question, kinds=["notes"]).hits]
    assert [note["id"] for note in answer["related"]] == found
    assert answer["related"][0]["content"].startswith("the old lexer")
    assert {note["session"] for note in answer["related"]} == {"before"}


def test_what_is_related_obeys_limit_tags_and_done(hold: Limpet) -> None:
    notes = hold.session("before").notes
    kept = [notes.add(f"the parser number {n} fails", tags=["bug"] if n % 2 else []) for n in range(14)]
    notes.update(kept[1].id, done=True)

    def related(**more: Any) -> list[str]:
        answer = hold.call("search_notes", {"query": "failing parsers of today", **more})
        return [note["id"] for note in answer.get("related", [])]

    assert len(related()) == 10, "enough to choose from"
    assert len(related(limit=3)) == 3
    assert set(related(tags=["BUG"])) == {note.id for note in kept[3::2]}
    assert kept[1].id in related(tags=["bug"], include_done=True)


def test_beside_a_note_with_every_word_nothing_is_related(hold: Limpet) -> None:
    add(hold, "alpha beta")
    add(hold, "alpha alone")
    answer = hold.call("search_notes", {"query": "alpha beta"})
    assert contents(answer) == ["alpha beta"]
    assert "related" not in answer


def test_whole_words_come_before_parts_of_words_and_short_texts_before_long_ones(hold: Limpet) -> None:
    parts = add(hold, "cats")
    long = add(hold, "a cat that sleeps all day in the sun")
    short = add(hold, "the cat")
    answer = hold.call("search_notes", {"query": "cat"})
    assert [note["id"] for note in answer["notes"]] == [short, long, parts]
    assert [note["id"] for note in hold.call("search_notes", {"query": "cat", "limit": 1})["notes"]] == [short]


def test_an_over_long_run_is_found_beside_other_words(hold: Limpet) -> None:
    run = "QWxhZGRpbjpvcGVuIHNlc2FtZQabcdefghijklmnop"
    add(hold, f"the key {run} of the vault")
    add(hold, "the key of the vault")
    for query in (run, run[5:25], run[3:20], f"vault {run}", f"key {run[:30]}", f"{run[-17:]} of"):
        assert len(hold.call("search_notes", {"query": query})["notes"]) == 1, query


def test_text_and_tags_together(hold: Limpet) -> None:
    add(hold, "parser bug", "bug")
    add(hold, "parser idea", "idea")
    answer = hold.call("search_notes", {"query": "parser", "tags": ["BUG"]})
    assert contents(answer) == ["parser bug"]
    assert answer["tags"] == ["BUG"]
    assert "related" not in answer


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_query_lists_by_recency(hold: Limpet, clock: Clock, query: str) -> None:
    for text in ("a", "b", "c"):
        add(hold, text)
        clock.pass_by()
    assert contents(hold.call("search_notes", {"query": query})) == ["c", "b", "a"]
    assert contents(hold.call("search_notes", {})) == ["c", "b", "a"]


def test_a_changed_note_is_found_by_its_new_text_only(hold: Limpet) -> None:
    id = add(hold, "elephant in the room")
    hold.call("update_note", {"id": id, "content": "giraffe in the garden"})
    assert contents(hold.call("search_notes", {"query": "giraffe"})) == ["giraffe in the garden"]
    gone = hold.call("search_notes", {"query": "elephant"})
    assert gone["notes"] == []
    assert "related" not in gone


# --- changing, finishing, deleting ------------------------------------------------------------------------------------


def test_an_update_changes_what_it_names_and_nothing_else(hold: Limpet, clock: Clock) -> None:
    notes = hold.session().notes
    made = notes.add("text", ["a", "b"])
    clock.pass_by(5_000)
    changed = notes.update(made.id, content="new text")
    assert (changed.content, changed.tags, changed.created_at) == ("new text", ("a", "b"), made.created_at)
    assert changed.updated_at > made.updated_at
    assert notes.update(made.id, tags=["c"]).content == "new text"
    assert notes.update(made.id, tags=[]).tags == ()
    both = notes.update(made.id, content="last", tags=["d"])
    assert (both.content, both.tags) == ("last", ("d",))
    answer = hold.call("update_note", {"id": made.id, "content": "shown"})
    assert answer.keys() == {"note_id", "total_notes", "total_tags", "note"}
    assert answer["note"]["content"] == "shown"


def test_an_update_is_checked_like_an_addition(hold: Limpet) -> None:
    id = add(hold, "text", "tag")
    before = list(hold.export_lines())
    for arguments, code in (
        ({}, "nothing_to_update"),
        ({"content": ""}, "empty"),
        ({"content": "x" * 4_001}, "too_long"),
        ({"tags": [" "]}, "blank_tag"),
        ({"tags": [str(n) for n in range(11)]}, "too_many_tags"),
    ):
        with pytest.raises(errors.BadInput) as caught:
            hold.call("update_note", {"id": id, **arguments})
        assert caught.value.code == code
    assert list(hold.export_lines()) == before


@pytest.mark.parametrize("id", ["note_1", "", "note_", "../etc/passwd", "' OR 1=1 --", "x" * 5_000])
def test_an_unknown_id_is_named(hold: Limpet, id: str) -> None:
    for name, arguments in (("update_note", {"content": "x"}), ("delete_note", {})):
        with pytest.raises(errors.NotFound) as caught:
            hold.call(name, {"id": id, **arguments})
        assert caught.value.code == "no_note"
        assert errors.quoted(id) in caught.value.message


def test_a_finished_note_is_hidden_and_not_lost(hold: Limpet) -> None:
    id = add(hold, "buy milk", "todo")
    add(hold, "still open", "todo")
    answer = hold.call("update_note", {"id": id, "done": True})
    assert answer["note"]["done"] is True
    assert answer["total_notes"] == 2
    for name, arguments in (
        ("list_notes", {}),
        ("list_notes", {"tag": "todo"}),
        ("search_notes", {}),
        ("search_notes", {"tags": ["todo"]}),
    ):
        assert contents(hold.call(name, arguments)) == ["still open"]
        assert sorted(contents(hold.call(name, {**arguments, "include_done": True}))) == ["buy milk", "still open"]
    assert hold.call("search_notes", {"query": "milk"})["notes"] == []
    assert "related" not in hold.call("search_notes", {"query": "milk"})
    assert contents(hold.call("search_notes", {"query": "milk", "include_done": True})) == ["buy milk"]
    hold.call("update_note", {"id": id, "done": False})
    assert hold.call("list_notes", {})["note_count"] == 2


def test_a_deleted_note_comes_back_by_undo(hold: Limpet) -> None:
    id = add(hold, "precious", "keep")
    answer = hold.call("delete_note", {"id": id})
    assert (answer["note_id"], answer["total_notes"], answer["total_tags"]) == (id, 0, 0)
    assert hold.call("search_notes", {"query": "precious"})["notes"] == []
    with pytest.raises(errors.NotFound):
        hold.call("delete_note", {"id": id})
    hold.undo()
    (note,) = hold.session().notes.list()
    assert (note.id, note.content, note.tags) == (id, "precious", ("keep",))
    assert contents(hold.call("search_notes", {"query": "reciou", "tags": ["KEEP"]})) == ["precious"]
    assert hold.call("list_tags", {})["tags"] == [{"tag": "keep", "count": 1}]


def test_the_order_of_ids_survives_deletion(hold: Limpet) -> None:
    first = add(hold, "a")
    hold.call("delete_note", {"id": first})
    assert add(hold, "b") > first


# --- scratch_note -----------------------------------------------------------------------------------------------------


def test_scratch_note_without_a_mode_is_a_note_without_tags(hold: Limpet) -> None:
    answer = hold.call("scratch_note", {"content": "a quick one"})
    assert re.fullmatch(r"note_\d+", answer["note_id"])
    assert answer == {"note_id": answer["note_id"], "total_notes": 1, "total_tags": 0}
    assert [(note.content, note.tags) for note in hold.session().notes.list()] == [("a quick one", ())]
    with pytest.raises(errors.BadInput, match="scratch_note needs content"):
        hold.call("scratch_note", {})
    with pytest.raises(errors.BadInput, match="is empty"):
        hold.call("scratch_note", {"content": " "})


def test_scratch_note_with_a_mode_works_on_the_scratchpad(hold: Limpet) -> None:
    def scratch(**arguments: str) -> dict[str, Any]:
        return hold.call("scratch_note", arguments)

    assert scratch(mode="read") == {"status": "ok", "content": "", "empty": True}
    assert scratch(mode="clear") == {"status": "ok", "content": "", "empty": True}
    assert scratch(mode="append", content="one")["content"] == "one"
    assert scratch(mode="append", content="two")["content"] == "one\ntwo"
    assert scratch(mode="replace", content="three") == {"status": "ok", "content": "three", "empty": False}
    assert scratch(mode="read")["content"] == "three"
    assert hold.call("scratch_note", {"mode": "read", "session_id": "other"})["empty"] is True
    assert scratch(mode="clear")["empty"] is True
    assert scratch(mode="read")["content"] == ""
    assert hold.call("list_notes", {})["note_count"] == 0


@pytest.mark.parametrize("mode", ["replace", "append"])
@pytest.mark.parametrize("content", [None, "", "  \n"])
def test_the_scratchpad_is_not_written_with_nothing(hold: Limpet, mode: str, content: str | None) -> None:
    hold.call("scratch_note", {"mode": "replace", "content": "kept"})
    with pytest.raises(errors.BadInput, match=f"with mode {mode} needs content"):
        hold.call("scratch_note", {"mode": mode, "content": content})
    assert hold.session().scratch() == "kept"


def test_an_unknown_mode_is_refused(hold: Limpet) -> None:
    with pytest.raises(errors.BadInput, match="must be one of replace, append, clear, read"):
        hold.call("scratch_note", {"mode": "erase", "content": "x"})


def test_an_update_that_changes_nothing_says_so(hold: Limpet) -> None:
    """A model that was told "Changed" each time made the same call again and again."""
    (update,) = [tool for tool in hold.tools("core") if tool.name == "update_note"]
    note = hold.session("s").notes.add("SKIP_BLANK=1 helps")
    first, again = (str(update.handler({"id": note.id, "done": True})) for _ in range(2))
    assert "\nChanged; " in first
    assert "\nNothing to change, it was so already; " in again
