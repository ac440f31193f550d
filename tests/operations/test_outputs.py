"""Outputs: what passes untouched, what is kept, how it is read again, and what happens when it is gone."""

from __future__ import annotations

import json

import pytest

from limpet import errors, settings
from limpet.api import Limpet, Session
from limpet.outputs.keep import size
from operations.conftest import Clock, Opener

THRESHOLD = settings.OutputRules().threshold_bytes
DAY_MS = 86_400_000


@pytest.fixture
def work(hold: Limpet) -> Session:
    return hold.session("work")


def long(lines: int = 400) -> str:
    return "".join(f"line {number} of the listing\n" for number in range(1, lines + 1))


def kept_id(work: Session, tool: str, content: str) -> str:
    kept = work.outputs.keep(tool, content)
    assert kept.output is not None
    return kept.output.id


@pytest.mark.parametrize(("count", "cached"), [(THRESHOLD - 1, False), (THRESHOLD, True), (THRESHOLD + 1, True)])
def test_below_the_threshold_a_text_passes_untouched(work: Session, count: int, cached: bool) -> None:
    kept = work.outputs.keep("shell", "x" * count)
    assert (kept.output is not None) == cached
    assert (kept.text == "x" * count) == (not cached)


def test_the_threshold_counts_bytes_not_characters(work: Session) -> None:
    assert work.outputs.keep("shell", "ü" * (THRESHOLD // 2)).output is not None
    assert work.outputs.keep("shell", "ü" * (THRESHOLD // 2 - 1)).output is None


def test_a_reference_says_what_it_is_and_names_the_tool_that_reads_it(work: Session, hold: Limpet) -> None:
    kept = work.outputs.keep("shell", long())
    assert kept.output is not None
    first = kept.text.split("\n")[0]
    assert first == f"📁 Output cached: {kept.output.id} ({size(len(long().encode()))})"
    assert f'read_output(id="{kept.output.id}"' in kept.text
    assert hold.store.place not in kept.text
    assert len(kept.output.id) == 12


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("pytest -q tests", "$ pytest -q tests"),
        ('Bash {"command": "make\\nall", "timeout": 5}', "$ make\\nall"),
        ('{"cmd": ["go", "test"]}', "$ go test"),
        ('read_graph {"depth": 2}', ""),
        ('Bash {"command": "curl -H \\"Authorization: Bearer sk-ant-api03-%s\\""}' % ("Zx9" * 30), "$ curl -H"),
    ],
)
def test_a_reference_begins_with_the_command_that_gave_it(work: Session, call: str, line: str) -> None:
    head, second, *_ = work.outputs.keep("shell", long() + call, call=call).text.split("\n")
    assert head.startswith("📁 Output cached: ")
    assert second.startswith(line) if line else second == ""
    assert "Zx9Zx9" not in second


def test_the_command_is_that_of_this_call_though_the_output_was_stored_for_another(work: Session) -> None:
    work.outputs.keep("shell", long(), call="cat a")
    assert "\n$ cat b\n" in work.outputs.keep("shell", long(), call="cat b").text


def test_identical_content_is_one_output_whatever_the_tool(hold: Limpet) -> None:
    one = kept_id(hold.session("a"), "grep", long())
    two = kept_id(hold.session("b"), "cat", long())
    assert one == two
    listed = hold.session("a").outputs.list()
    assert [(output.id, output.tool) for output in listed.outputs] == [(one, "grep")]
    assert listed.stats.entries == 1


def test_all_of_it_comes_back_in_pages_and_at_once(work: Session, hold: Limpet) -> None:
    text = long(3_000) + "no final newline"
    id = kept_id(work, "shell", text)
    assert work.outputs.read_content(id) == text
    pages, cursor = [], None
    while True:
        reply = hold.call("read_output", {"id": id, **({"cursor": cursor} if cursor else {})})
        pages.append(reply["content"])
        cursor = reply.get("cursor")
        if cursor is None:
            break
    assert len(pages) > 1
    assert "".join(pages) == text


def test_parts_by_lines_match_path_rows_and_question(work: Session, hold: Limpet) -> None:
    id = kept_id(work, "shell", long())
    assert "line 100 of the listing" in hold.call("read_output", {"id": id, "lines": "100-101"})["content"]
    assert "line 400 of" in hold.call("read_output", {"id": id, "lines": "-1"})["content"]
    assert "line 217 of" in hold.call("read_output", {"id": id, "match": "line 217 "})["content"]
    assert "line 21" in hold.call("read_output", {"id": id, "match": r"line 21\d of", "regex": True})["content"]
    rows = [{"name": f"n{number}", "size": number} for number in range(500)]
    data = kept_id(work, "api", json.dumps({"items": rows}))
    assert json.loads(hold.call("read_output", {"id": data, "path": "/items/7/name"})["content"]) == "n7"
    assert "n499" in hold.call("read_output", {"id": data, "query": "what is the size of n499"})["content"]
    assert work.outputs.expand(f"hold://{data}#/items/3/size") == "3"
    assert work.outputs.expand(f"hold://{id}#lines=2-2").rstrip("\n") == "line 2 of the listing"
    assert work.outputs.expand(f"hold://{id}") == long()


@pytest.mark.parametrize("id", ["", "../../etc/passwd", "xyz", "3f9a1c2b77e", "3F9A1C2B77E0", "3f9a1c2b77e0/../x"])
def test_an_id_that_is_none_is_refused(hold: Limpet, id: str) -> None:
    with pytest.raises(errors.BadInput, match="12 or more hexadecimal digits"):
        hold.call("read_output", {"id": id})


def test_what_never_was_and_what_is_gone_say_so(work: Session, hold: Limpet) -> None:
    with pytest.raises(errors.NotFound, match="list_outputs gives the ids"):
        hold.call("read_output", {"id": "0" * 12})
    kept = work.outputs.keep("shell", long(), call="ls -R /")
    assert kept.output is not None
    hold.call("delete_output", {"id": kept.output.id})
    with pytest.raises(errors.NotFound, match=r"is gone: shell, .*the call was ls -R /\. This is final"):
        hold.call("read_output", {"id": kept.output.id})


def test_two_ways_of_reading_at_once_are_refused(work: Session, hold: Limpet) -> None:
    id = kept_id(work, "shell", long())
    with pytest.raises(errors.BadInput, match="lines and match; it reads in one way"):
        hold.call("read_output", {"id": id, "lines": "1-2", "match": "x"})
    for how in ({"lines": "five"}, {"path": "$$$["}, {"cursor": "nonsense"}, {"match": "(", "regex": True}):
        with pytest.raises(errors.BadInput):
            hold.call("read_output", {"id": id, **how})


def test_old_outputs_are_pruned_by_the_next_keep_and_cited_ones_stay(hold: Limpet, work: Session, clock: Clock) -> None:
    old, cited = kept_id(work, "shell", long(300)), kept_id(work, "shell", long(301))
    work.notes.add(f"the failing run is {cited}")
    clock.pass_by(8 * DAY_MS)
    kept_id(work, "shell", long(302))
    left = {output.id for output in work.outputs.list().outputs}
    assert cited in left
    assert old not in left


def test_secrets_are_masked_before_anything_is_kept(work: Session) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    kept = work.outputs.keep("shell", f"token {secret}\n" + long())
    assert kept.output is not None
    assert kept.output.redacted == 1
    assert "1 secrets masked" in kept.text.split("\n")[0] or "secret" in kept.text.split("\n")[0]
    assert secret not in work.outputs.read_content(kept.output.id)


@pytest.mark.parametrize("content", ["\x00" * 5_000, "\ud800" + "x" * 5_000, "ü\r\n" * 3_000])
def test_any_text_a_tool_returns_comes_back_as_it_was(work: Session, content: str) -> None:
    assert work.outputs.read_content(kept_id(work, "shell", content)) == content


def test_rules_really_act(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_SET", "outputs.enabled=off")
    assert opened(project="off").session().outputs.keep("shell", long()).text == long()
    monkeypatch.setenv("LIMPET_SET", "outputs.enabled=on;outputs.threshold_bytes=10;outputs.include_preview=false")
    kept = opened(project="small").session().outputs.keep("shell", "more than ten bytes")
    assert kept.output is not None
    assert "more than ten" not in kept.text


@pytest.mark.parametrize(("count", "shown"), [(0, "0B"), (1023, "1023B"), (1024, "1.0KB"), (5 << 20, "5.00MB")])
def test_sizes_as_people_read_them(count: int, shown: str) -> None:
    assert size(count) == shown


def test_parts_of_a_big_output_are_those_of_the_text(work: Session) -> None:
    text = "".join(f"line {n} größe 記憶 {'x' * (n % 90)}\n" for n in range(1, 9_001))
    kept = work.outputs.keep("x", text).output
    assert kept is not None
    lines = text.splitlines(keepends=True)
    assert work.outputs.read(kept.id, lines="4500-4520").content == "".join(lines[4499:4520])
    assert work.outputs.read(kept.id, lines="-3").content == "".join(lines[-3:])
    assert work.outputs.expand(f"hold://{kept.id}#lines=10-12") == "".join(lines[9:12])
    part = work.outputs.read(kept.id, bytes="300000-")
    found = part.content
    while part.cursor:
        part = work.outputs.read(kept.id, cursor=part.cursor, tokens=10_000)
        found += part.content
    assert text.endswith(found)
    assert len(found.encode()) in range(kept.size - 300_000, kept.size - 300_000 + 4)
