"""Ranges, pages and cursors: what is read in parts joins to the original, and what cannot be read says why."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.text import slices, tokens
from limpet.text.slices import BadSlice

TEN = "".join(f"line {n}\n" for n in range(1, 11))
TRICKY = st.text(st.sampled_from("ab \n\r\t,é中🙂👩‍👧e\u0301\u2028\x0b\x85"), max_size=200)


def all_pages(text: str, cap: int) -> list[str]:
    part = slices.page(text, None, cap)
    found = [part.content]
    while part.cursor:
        part = slices.page(text, part.cursor, cap)
        assert part.content
        found.append(part.content)
    return found


@given(TRICKY, st.integers(1, 40))
def test_pages_join_to_the_original(text: str, cap: int) -> None:
    assert "".join(all_pages(text, cap)) == text


@pytest.mark.parametrize("text", ["a,b\r\nc\r\n", "no end", "lone\rreturn\r", "", "\n", "ünï\ncödé"])
def test_pages_join_whatever_the_line_ends(text: str) -> None:
    assert "".join(all_pages(text, 2)) == text


def test_one_line_of_5_mb_is_read_page_by_page() -> None:
    text = '{"k":"' + "value 123 " * 500_000 + '"}'
    begun = time.perf_counter()
    pages = all_pages(text, 50_000)
    assert "".join(pages) == text
    assert all(tokens.count(page) <= 50_000 for page in pages)
    assert time.perf_counter() - begun < 20


@given(TRICKY, st.integers(1, 12), st.integers(0, 12))
def test_line_ranges_join_to_the_original(text: str, first: int, more: int) -> None:
    total = slices.line_count(text)
    if total == 0 or first > total:
        return
    last = min(first + more, total)
    parts = [slices.lines(text, "1-" + str(first - 1), 10**6).content] if first > 1 else []
    parts.append(slices.lines(text, f"{first}-{last}", 10**6).content)
    parts += [slices.lines(text, f"{last + 1}-", 10**6).content] if last < total else []
    assert "".join(parts) == text


@pytest.mark.parametrize(
    ("wanted", "content", "note"),
    [
        ("3-4", "line 3\nline 4\n", "lines 3-4 of 10"),
        ("10", "line 10\n", "lines 10-10 of 10"),
        ("-2", "line 9\nline 10\n", "lines 9-10 of 10"),
        ("9-", "line 9\nline 10\n", "lines 9-10 of 10"),
        ("9-99", "line 9\nline 10\n", "lines 9-10 of 10"),
        ("-99", TEN, "lines 1-10 of 10"),
        (" 1 - 1 ", "line 1\n", "lines 1-1 of 10"),
    ],
)
def test_lines(wanted: str, content: str, note: str) -> None:
    assert slices.lines(TEN, wanted, 1_000) == (content, None, note)


def test_lines_that_do_not_fit_go_on_at_the_cursor() -> None:
    part = slices.lines(TEN, "2-9", 8)
    assert part.cursor
    assert part.note.endswith("of 2-9, of 10")
    found = part.content
    while part.cursor:
        part = slices.page(TEN, part.cursor, 8)
        found += part.content
    assert found == slices.lines(TEN, "2-9", 1_000).content


@pytest.mark.parametrize("wanted", ["0-3", "11", "5-3", "a", "", "1-2-3", "--5", "1.5", "9" * 20])
def test_a_range_that_cannot_be_read_says_how_to_write_one(wanted: str) -> None:
    with pytest.raises(BadSlice, match=r"^lines .* cannot be read: .+\. .+\.$"):
        slices.lines(TEN, wanted, 100)


def test_an_empty_text_has_no_lines() -> None:
    assert slices.lines("", "1-5", 100).content == ""
    assert slices.lines("", "-5", 100).content == ""
    assert slices.page("", None, 100).content == ""


def test_characters_join() -> None:
    assert slices.chars("héllo", "0-2", 100) == ("hé", None, "characters 0-2 of 5")
    assert slices.chars("héllo", "2-", 100).content == "llo"
    assert slices.chars("héllo", "-2", 100).content == "lo"
    assert slices.chars("héllo", "4", 100).content == "o"
    with pytest.raises(BadSlice, match="ends at 5"):
        slices.chars("héllo", "5-9", 100)


def test_bytes_never_cut_a_character_and_say_so() -> None:
    data = "aé🙂b".encode()
    assert slices.bytes_(data, "0-2", 100) == ("aé", None, "bytes 0-3 of 8, widened from 0-2 to whole characters")
    assert slices.bytes_(data, "4-5", 100).content == "🙂"
    assert slices.bytes_(data, "7-8", 100) == ("b", None, "bytes 7-8 of 8")
    assert slices.bytes_(data, "-1", 100).content == "b"


@given(TRICKY.filter(bool), st.integers(0, 300), st.integers(0, 300))
def test_any_byte_range_is_text_of_the_original(text: str, start: int, length: int) -> None:
    data = text.encode()
    start = min(start, len(data) - 1)
    part = slices.bytes_(data, f"{start}-{start + length}", 10**6)
    assert part.content in text
    assert data[start : start + length] in part.content.encode()


def test_bytes_that_do_not_fit_go_on_at_the_cursor() -> None:
    text = "ä word " * 300
    part = slices.bytes_(text.encode(), "3-", 50)
    found = part.content
    while part.cursor:
        part = slices.page(text, part.cursor, 50)
        found += part.content
    assert found == text[2:]


@pytest.mark.parametrize("cursor", ["", "x", "p1-2-3", "p1-2-00000000", "zz1-5-0123abcd", "p" + "f" * 40])
def test_a_cursor_that_is_not_ours_is_refused(cursor: str) -> None:
    with pytest.raises(BadSlice, match="cursor"):
        slices.page(TEN, cursor, 100)


def test_a_cursor_of_another_text_or_way_of_reading_is_refused() -> None:
    cursor = slices.page(TEN, None, 5).cursor
    assert cursor
    with pytest.raises(BadSlice, match="another output"):
        slices.page(TEN + "more", cursor, 5)
    with pytest.raises(BadSlice, match="another way"):
        slices.match(TEN, "line", False, 0, 100, cursor)


def test_a_slice_of_10_mb_is_quick() -> None:
    text = "a line of a large log that says something\n" * 240_000
    begun = time.perf_counter()
    assert slices.lines(text, "120000-120050", 2_000).content.count("\n") == 51
    assert time.perf_counter() - begun < 0.5


@given(TRICKY.filter(bool), st.integers(1, 6), st.integers(1, 12))
def test_lines_that_are_cut_join_to_the_range(text: str, cap: int, first: int) -> None:
    total = slices.line_count(text)
    first = min(first, total)
    part = slices.lines(text, f"{first}-", cap)
    found = part.content
    while part.cursor:
        part = slices.page(text, part.cursor, cap)
        found += part.content
    assert found == slices.lines(text, f"{first}-", 10**6).content


def test_no_more_is_read_of_a_source_than_is_shown() -> None:
    body = b"a line of a large log that says something\n" * 240_000
    asked: list[int] = []

    def read_lines(first: int, last: int) -> bytes:
        asked.append(last - first + 1)
        return body[(first - 1) * 42 : last * 42]

    source = slices.TextSource(len(body), 240_000, lambda start, stop: body[start:stop], read_lines)
    assert slices.lines(source, "1000-1049", 2_000).content.count("\n") == 50
    assert sum(asked) == 50
    assert slices.lines(source, "1-", 100).cursor
    assert sum(asked) < 1_000
