"""Calls that are made again, and reads that go round in circles."""

from __future__ import annotations

import pytest

from limpet import errors, limits
from limpet.api import Limpet, Session
from limpet.outputs.read import overlap
from limpet.previews.failures import failure_lines
from limpet.store import ReadRecord
from operations.conftest import Clock, Opener

CALL = 'list_files {"path": "."}'


@pytest.fixture
def work(hold: Limpet) -> Session:
    return hold.session("work")


def listing(*changed: int, lines: int = 400) -> str:
    return "".join(f"file {n} has {n * 7 + (n in changed)} bytes\n" for n in range(1, lines + 1))


def keep(work: Session, content: str, call: str = CALL, tool: str = "list_files") -> tuple[str, str]:
    kept = work.outputs.keep(tool, content, call=call)
    assert kept.output is not None
    return kept.text, kept.output.id


# --- calls ------------------------------------------------------------------------------------------------------------


def test_the_same_call_with_the_same_result_is_one_line_with_the_earlier_reference(work: Session) -> None:
    first, id = keep(work, listing())
    again, same = keep(work, listing())
    assert same == id
    assert "\n" in first
    assert "\n" not in again
    assert again.startswith(f"📁 Output cached: {id} (")
    assert "unchanged: the same call gave the same at 2026-03-03T12:00:00.000Z in this session" in again
    assert f'read_output(id="{id}"' in again
    assert work.outputs.read_content(id) == listing()


def test_a_small_change_is_the_difference_with_both_references(work: Session) -> None:
    _, old = keep(work, listing())
    text, new = keep(work, listing(200) + "file 401 is new\n")
    assert new != old
    assert text.startswith(f"📁 Output cached: {new} (")
    assert f"changed since {old}" in text
    assert "2 lines added, 1 removed" in text
    for line in ("-file 200 has 1400 bytes", "+file 200 has 1401 bytes", "+file 401 is new", "@@ -199,3 +199,3 @@"):
        assert line in text.split("\n")
    assert text.endswith(f"{old} is how it was.")
    assert work.outputs.read_content(new) == listing(200) + "file 401 is new\n"
    third, _ = keep(work, listing(200, 300) + "file 401 is new\n")
    assert f"changed since {new}" in third  # compared with the last one, not with the first


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(listing(*range(1, 400)), id="much changed"),
        pytest.param("x" * 5_000, id="one long line"),
        pytest.param(listing()[:-1] + "y" * 5_000, id="one line became long"),
        pytest.param("".join(f"another {n}\n" for n in range(900)), id="something else"),
    ],
)
def test_a_big_change_is_a_plain_reference(work: Session, other: str) -> None:
    keep(work, listing())
    text, id = keep(work, other)
    assert text == work.hold.session("elsewhere").outputs.keep("list_files", other).text
    assert text.startswith(f"📁 Output cached: {id} (")


def test_what_is_too_big_to_compare_is_a_plain_reference(work: Session) -> None:
    long = "a line of some length\n" * (limits.OUTPUT_DIFF_BYTES // 20)
    keep(work, long)
    assert "changed since" not in keep(work, long + "more\n")[0]
    assert "unchanged" in keep(work, long + "more\n")[0]


@pytest.mark.parametrize(
    ("session", "tool", "call"),
    [
        pytest.param("other", "list_files", CALL, id="another session"),
        pytest.param("work", "list_all", CALL, id="another tool"),
        pytest.param("work", "list_files", CALL + " ", id="other arguments"),
        pytest.param("work", "list_files", "", id="nobody knows the arguments"),
    ],
)
def test_only_the_same_call_in_the_same_session_counts(
    hold: Limpet, work: Session, session: str, tool: str, call: str
) -> None:
    first, id = keep(work, listing(), call and CALL)
    assert keep(hold.session(session), listing(), call, tool) == (first, id)


def test_calls_that_differ_far_behind_are_not_the_same(work: Session) -> None:
    first, _ = keep(work, listing(), "write " + "x" * 5_000 + "a")
    assert keep(work, listing(), "write " + "x" * 5_000 + "b")[0] == first


def test_a_run_that_fails_never_looks_fine(work: Session) -> None:
    run = "".join(f"tests/test_{n}.py::test_it PASSED\n" for n in range(200))
    bad = run + "tests/test_x.py::test_it FAILED\nE   assert 1 == 2\n1 failed, 200 passed\n"
    count = len(failure_lines(bad))
    assert count >= 2
    keep(work, bad, "pytest -q", "pytest")
    again, _ = keep(work, bad, "pytest -q", "pytest")
    assert f"still {count} failure lines" in again
    longer, _ = keep(work, "one more line\n" + bad, "pytest -q", "pytest")
    assert f"1 lines added, 0 removed, {count} failure lines in all" in longer
    mended, _ = keep(work, run + "200 passed\n", "pytest -q", "pytest")
    assert "failure" not in mended.partition("\n")[0]


def test_an_output_that_is_gone_is_kept_again_and_one_that_cannot_be_compared_is_plain(work: Session) -> None:
    _, id = keep(work, listing())
    assert work.outputs.delete(id)
    assert "unchanged" in keep(work, listing())[0]
    assert work.outputs.read_content(id) == listing()
    assert work.outputs.delete(id)
    assert "changed since" not in keep(work, listing(200))[0]


def test_it_can_be_switched_off_for_tools_by_name_and_pattern(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_SET", "outputs.no_repeats=date, git_*")
    work = opened().session("work")
    for tool, off in (("date", True), ("git_log", True), ("dates", False), ("list_files", False)):
        first, _ = keep(work, listing(), tool=tool)
        assert (keep(work, listing(), tool=tool)[0] == first) == off, tool
        assert ("changed since" not in keep(work, listing(7), tool=tool)[0]) == off, tool


def test_without_previews_no_difference_is_shown_either(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_SET", "outputs.include_preview=off")
    work = opened().session("work")
    keep(work, listing())
    assert "1401" not in keep(work, listing(200))[0]


def test_a_repeat_is_seen_by_another_process(opened: Opener) -> None:
    keep(opened().session("work"), listing())
    assert "unchanged" in keep(opened().session("work"), listing())[0]


def test_old_calls_are_forgotten(work: Session, clock: Clock) -> None:
    keep(work, listing())
    clock.pass_by(8 * 86_400_000)
    keep(work, listing(3), "another call")
    first, _ = keep(work, listing())
    assert "unchanged" not in first


def test_trouble_with_the_notes_costs_no_answer(work: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def trouble(*_: object) -> None:
        raise errors.store_full("limpet.db")

    store = work.hold.store
    for name in ("last_result", "record_call", "record_read"):
        monkeypatch.setattr(store.calls, name, trouble)
    text, id = keep(work, listing())
    assert keep(work, listing()) == (text, id)
    assert work.outputs.read(id, lines="1-1").content == "file 1 has 7 bytes\n"


# --- reads ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reads",
    [
        [{"lines": "1-50"}, {"lines": "25-75"}, {"lines": "40-60"}],
        [{"lines": "-10"}, {"lines": "391-400"}, {"lines": "380-"}],
        [{"query": "how big is file 77"}, {"query": "How big is FILE 77?"}, {"query": "is file 77 big"}],
        [{"match": "file 7"}] * 3,
        [{}, {}, {}],
        [{"chars": "0-100"}, {"chars": "50-90"}, {"chars": "0-60"}],
        [{"bytes": "0-100"}] * 3,
    ],
    ids=lambda reads: "+".join(str(sorted(how)) for how in reads[:1]),
)
def test_the_third_read_of_the_same_part_is_answered_with_a_hint(work: Session, reads: list[dict[str, str]]) -> None:
    _, id = keep(work, listing())
    answers = [work.outputs.read(id, **how) for how in reads]
    assert ["was read" in answer.note for answer in answers] == [False, False, True]
    assert "3 times in this session" in answers[2].note
    assert answers[2].content
    assert answers[2].content == work.hold.session("fresh").outputs.read(id, **reads[2]).content


@pytest.mark.parametrize(
    "reads",
    [
        [{"lines": "1-50"}, {"lines": "50-100"}, {"lines": "100-150"}, {"lines": "150-200"}],
        [{"query": "how big is file 77"}, {"query": "which one is largest"}, {"query": "totals per folder"}],
        [{"match": "file 7"}, {"match": "file 8"}, {"match": "file 9"}],
        [{"lines": "1-50"}, {"chars": "1-50"}, {"bytes": "1-50"}],
    ],
)
def test_reading_on_is_no_circle(work: Session, reads: list[dict[str, str]]) -> None:
    _, id = keep(work, listing())
    assert not any("was read" in work.outputs.read(id, **how).note for how in reads)


def test_pages_to_the_end_are_no_circle(work: Session) -> None:
    _, id = keep(work, listing(lines=2_000))
    cursor, pages = None, 0
    while True:
        read = work.outputs.read(id, **({"cursor": cursor} if cursor else {}))
        assert "was read" not in read.note
        pages, cursor = pages + 1, read.cursor
        if cursor is None:
            break
    assert pages > 3


def test_circles_are_seen_across_processes_and_per_session(opened: Opener) -> None:
    _, id = keep(opened().session("work"), listing())
    for _ in range(2):
        assert "was read" not in opened().session("work").outputs.read(id, lines="1-9").note
    assert "was read" not in opened().session("other").outputs.read(id, lines="1-9").note
    assert "was read 3 times" in opened().session("work").outputs.read(id, lines="1-9").note


def test_only_the_latest_reads_are_remembered(work: Session) -> None:
    _, id = keep(work, listing())
    for n in range(2 * limits.OUTPUT_READS_NOTED):
        work.outputs.read(id, lines=f"{n * 10 + 1}-{n * 10 + 5}")
    any_read = ReadRecord("work", "list_files", id, ["page", 0, []], 0, "t", 0)
    assert len(work.hold.store.calls.record_read(work.hold.scope, any_read)) == limits.OUTPUT_READS_NOTED


def test_overlaps() -> None:
    assert overlap(["lines", 0, 1, 5], ["lines", 0, 5, 9])
    assert not overlap(["lines", 0, 1, 4], ["lines", 0, 5, 9])
    assert not overlap(["lines", 0, 1, 4], ["chars", 0, 1, 4])
    assert not overlap(["query", 0, [1, 2]], ["query", 1, [1, 2]])
    assert overlap(["query", 0, [1, 2]], ["query", 0, [1, 2, 3]])
