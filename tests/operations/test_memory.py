"""Keyed memory: writing, searching, reserved keys, the activity log, and the digest a session starts with."""

from __future__ import annotations

import pytest

from limpet import errors
from limpet.api import Limpet
from limpet.text import tokens
from operations.conftest import Clock, Opener

DAY_MS = 86_400_000


def keys(hold: Limpet, query: str, **more: object) -> list[str]:
    return [match["key"] for match in hold.call("search_memory", {"query": query, **more})["matches"]]


# --- writing ----------------------------------------------------------------------------------------------------------


def test_memory_is_replaced_or_appended_to(hold: Limpet) -> None:
    answer = hold.call("write_memory", {"key": " project-goal ", "content": "  Build a parser. \n"})
    assert answer == {"status": "ok", "key": "project-goal", "mode": "replace", "bytes_written": 15, "version": 1}
    answer = hold.call("write_memory", {"key": "project-goal", "content": "In Rüst.", "mode": "append"})
    whole = "Build a parser.\nIn Rüst."
    size = len(whole.encode())
    assert answer == {"status": "ok", "key": "project-goal", "mode": "append", "bytes_written": size, "version": 2}
    assert hold.memory.read("project-goal").content == whole
    hold.call("write_memory", {"key": "project-goal", "content": "Another goal."})
    assert hold.memory.read("project-goal").content == "Another goal."
    assert hold.memory.write("fresh", "only this", mode="append").content == "only this"


def test_memory_belongs_to_the_project_and_not_to_a_session(hold: Limpet, opened: Opener) -> None:
    hold.session("one").memory.write("k", "v")
    assert opened("two").memory.read("k").content == "v"
    other = opened(project="other")
    assert keys(other, "v") == []
    with pytest.raises(errors.NotFound, match="there is no memory 'k'"):
        other.memory.read("k")


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_blank_keys_and_contents_are_refused(hold: Limpet, blank: str) -> None:
    for arguments in ({"key": blank, "content": "x"}, {"key": "k", "content": blank}):
        with pytest.raises(errors.BadInput) as caught:
            hold.call("write_memory", arguments)
        assert caught.value.code == "empty"
    assert hold.history() == ()


def test_a_key_is_one_short_line(hold: Limpet) -> None:
    assert hold.memory.write("k" * 200, "x").key == "k" * 200
    for key, code in (("k" * 201, "too_long"), ("two\nlines", "bad_name"), ("tab\there", "bad_name")):
        with pytest.raises(errors.BadInput) as caught:
            hold.memory.write(key, "x")
        assert caught.value.code == code


def test_an_append_may_not_pass_the_limit(hold: Limpet) -> None:
    hold.memory.write("k", "x" * 99_990)
    with pytest.raises(errors.BadInput, match="100,001 characters; the limit is 100,000"):
        hold.memory.write("k", "y" * 10, mode="append")
    assert hold.memory.read("k").content == "x" * 99_990


def test_an_unknown_mode_is_refused(hold: Limpet) -> None:
    with pytest.raises(errors.BadInput, match="must be one of replace, append"):
        hold.call("write_memory", {"key": "k", "content": "x", "mode": "prepend"})


@pytest.mark.parametrize(
    "key",
    ["session-handoff", "Session-Handoff", " scratchpad ", "SCRATCHPAD", "activity-log-2026-03-03", "activity-log-x"],
)
def test_reserved_keys_are_protected(hold: Limpet, key: str) -> None:
    for name, arguments in (("write_memory", {"content": "mine now"}), ("pin_memory", {})):
        with pytest.raises(errors.BadInput) as caught:
            hold.call(name, {"key": key, **arguments})
        assert caught.value.code == "reserved_key"
        assert repr(key.strip()) in caught.value.message
    assert hold.history() == ()


# --- searching --------------------------------------------------------------------------------------------------------


def test_what_fits_best_comes_first(hold: Limpet) -> None:
    hold.memory.write("misc", "the desktop is on the left")
    hold.memory.write("project-goal", "Build a reliable desktop agent.")
    hold.memory.write("unrelated", "nothing of the kind")
    answer = hold.call("search_memory", {"query": "desktop agent"})
    assert (answer["status"], answer["query"], answer["match_count"]) == ("ok", "desktop agent", 2)
    assert [match["key"] for match in answer["matches"]] == ["project-goal", "misc"]
    assert answer["matches"][0]["content"] == "Build a reliable desktop agent."
    assert answer["matches"][0].keys() == {"key", "content", "updated_at", "version"}


def test_the_key_weighs_more_than_the_content_and_the_newer_wins_a_tie(hold: Limpet, clock: Clock) -> None:
    for key, content in (("deploy", "how"), ("a", "deploy here"), ("b", "deploy there")):
        hold.memory.write(key, content)
        clock.pass_by()
    assert keys(hold, "Deploy") == ["deploy", "b", "a"]


def test_beyond_the_words_as_written_memory_comes_in_the_order_of_recall(hold: Limpet) -> None:
    hold.memory.write("weather", "it is what it is, and the rest is the same")
    hold.memory.write("lexer", "The old one was dropped because casts break LL(1).")
    hold.memory.write("ports", "the server listens on 8080")
    question = "why did we drop the old lexer?"
    found = [hit.key for hit in hold.recall(question, kinds=["memory"]).hits]
    assert keys(hold, question) == found
    assert found[0] == "lexer"
    assert "ports" not in found, "words that say nothing find nothing"


def test_what_holds_the_query_comes_before_what_recall_finds(hold: Limpet) -> None:
    hold.memory.write("a", "retries of the old client, retried by the client that retries")
    hold.memory.write("b", "long text that only says somewhere: retry client")
    assert keys(hold, "retry client") == ["b", "a"]


@pytest.mark.parametrize("query", ["goal", "GOAL", "project", "project-goal", "proj", "ct-go"])
def test_a_piece_of_a_key_finds_it(hold: Limpet, query: str) -> None:
    hold.memory.write("project-goal", "x")
    assert keys(hold, query) == ["project-goal"]


@pytest.mark.parametrize("query", ["", "  ", "\n"])
def test_an_empty_query_is_refused(hold: Limpet, query: str) -> None:
    with pytest.raises(errors.BadInput, match="query is empty"):
        hold.call("search_memory", {"query": query})
    with pytest.raises(errors.BadInput, match="search_memory needs query"):
        hold.call("search_memory", {})


def test_the_limit_is_clamped(hold: Limpet) -> None:
    for number in range(55):
        hold.memory.write(f"key-{number}", "the same word")
    assert len(keys(hold, "word")) == 8
    for limit, found in ((1, 1), (9, 9), (50, 50), (51, 50), (10_000, 50), (0, 1), (-5, 1), (10**30, 50)):
        assert len(keys(hold, "word", limit=limit)) == found


@pytest.mark.parametrize(
    "query", ['"', "AND", "a OR", "NEAR(", "-x", "*", "col:x", "(", "'; DROP TABLE entries; --", "%"]
)
def test_a_query_is_never_syntax(hold: Limpet, query: str) -> None:
    hold.memory.write("k", f"literal {query} here")
    assert keys(hold, query) == ["k"]


def test_handoffs_and_scratchpads_are_not_memory(hold: Limpet) -> None:
    work = hold.session()
    work.handoff.write("needle in the handoff")
    work.scratch("needle in the scratchpad", "replace")
    work.notepad.write("needle in the notepad")
    work.notes.add("needle in a note")
    assert keys(hold, "needle") == []
    assert keys(hold, "scratchpad") == []


# --- the activity log -------------------------------------------------------------------------------------------------


def test_each_write_adds_one_line_to_the_log_of_the_day(hold: Limpet, clock: Clock) -> None:
    hold.memory.write("goal", "x")
    clock.pass_by(61_000)
    hold.memory.write("goal", "y", mode="append")
    first = "- [12:00:00 UTC] write_memory key='goal' mode='replace'"
    log = f"{first}\n- [12:01:01 UTC] write_memory key='goal' mode='append'"
    assert hold.memory.read("activity-log-2026-03-03").content == log
    assert hold.call("search_memory", {"query": " activity-log-2026-03-03 "})["matches"][0]["content"] == log
    clock.pass_by(DAY_MS)
    hold.memory.write("goal", "z")
    assert hold.memory.read("activity-log-2026-03-03").content == log
    assert hold.memory.read("activity-log-2026-03-04").content.count("\n") == 0


def test_a_write_that_changes_nothing_is_still_in_the_log_once(hold: Limpet) -> None:
    # Asked twice for the same thing, the second time there is nothing to write and so nothing to tell.
    hold.memory.write("goal", "x")
    hold.memory.write("goal", "x")
    assert hold.memory.read("activity-log-2026-03-03").content.count("write_memory") == 1


def test_other_work_is_not_in_the_log(hold: Limpet) -> None:
    work = hold.session()
    work.notes.add("n")
    work.scratch("s", "replace")
    work.handoff.write("h")
    with pytest.raises(errors.NotFound, match="Nothing was written to memory on that day"):
        hold.memory.read("activity-log-2026-03-03")


def test_a_day_that_is_none_is_refused(hold: Limpet) -> None:
    with pytest.raises(errors.BadInput, match="a day is written YYYY-MM-DD"):
        hold.memory.read("activity-log-2026-13-45")


def test_the_log_is_no_part_of_the_digest(hold: Limpet, clock: Clock) -> None:
    hold.memory.write("old-and-dear", "must stay visible")
    clock.pass_by()
    for number in range(100):
        hold.memory.write("busy", f"step {number}")
        clock.pass_by()
    digest = hold.memory.digest()
    assert "must stay visible" in digest.text
    assert digest.left_out == ()
    assert "activity-log" not in digest.text


# --- the digest -------------------------------------------------------------------------------------------------------


def test_nothing_kept_is_no_digest(hold: Limpet) -> None:
    assert hold.memory.digest().text == ""
    assert "## Memory" not in hold.session().context()


def test_the_digest_is_pinned_first_then_newest(hold: Limpet, clock: Clock) -> None:
    for key in ("a", "b", "c"):
        hold.memory.write(key, f"content of {key}")
        clock.pass_by()
    hold.memory.pin("b")
    clock.pass_by()
    hold.memory.write("d", "content of d")
    text = hold.memory.digest().text
    assert text.startswith("## Memory of this project\n\n### b\ncontent of b\n\n### d\n")
    assert [text.index(f"### {key}") for key in "bdca"] == sorted(text.index(f"### {key}") for key in "bdca")
    hold.memory.pin("b", pinned=False)
    assert hold.memory.read("b").pinned is False


def test_a_pin_survives_a_write_and_an_unknown_key_is_named(hold: Limpet) -> None:
    hold.memory.write("k", "v")
    assert hold.call("pin_memory", {"key": "k"})["pinned"] is True
    assert hold.memory.write("k", "w").pinned is True
    with pytest.raises(errors.NotFound, match="there is no memory 'nope'"):
        hold.memory.pin("nope")


@pytest.mark.parametrize("budget", [60, 100, 400, 800])
def test_the_digest_keeps_to_its_budget_and_names_what_did_not_fit(hold: Limpet, clock: Clock, budget: int) -> None:
    for number in range(40):
        hold.memory.write(f"key-{number:02}", f"fact {number}: " + "some words about it " * 5)
        clock.pass_by()
    clock.pass_by(DAY_MS)  # without the log of the day, which has a budget of its own
    digest = hold.memory.digest(budget)
    assert digest.tokens == tokens.count(digest.text)
    assert digest.tokens <= budget
    shown = {f"key-{number:02}" for number in range(40) if f"### key-{number:02}\n" in digest.text}
    assert shown | set(digest.left_out) == {f"key-{number:02}" for number in range(40)}
    assert not shown & set(digest.left_out)
    assert f"({len(digest.left_out)})" in digest.text


def test_a_long_entry_is_shortened_visibly_and_does_not_push_out_the_rest(hold: Limpet, clock: Clock) -> None:
    hold.memory.write("short", "kept whole")
    clock.pass_by()
    hold.memory.write("long", "word " * 10_000)
    text = hold.memory.digest().text
    assert "kept whole" in text
    assert " […]" in text


def test_the_budget_can_be_set(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import limpet

    monkeypatch.setenv("LIMPET_SET", "digest_budget_tokens=60")
    with limpet.open(store_url, project="demo") as hold:
        for number in range(9):
            hold.memory.write(f"k{number}", "some words about it " * 5)
        assert hold.memory.digest().left_out
