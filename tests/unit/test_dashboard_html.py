"""The dashboard's markup: whatever text goes in comes out as that text, and no address leads away."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.doors.dashboard import html
from limpet.doors.dashboard.html import address, area, el, field, many
from limpet.doors.dashboard.markdown import markdown
from limpet.doors.dashboard.pages.outputs import by_day, chart
from limpet.doors.dashboard.pages.recall import lit
from limpet.store import Savings
from limpet.text import safe

# Without what no browser's parser gives back as it was: line ends of other systems, and what cannot be stored.
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=80) | st.sampled_from(
    ("<script>alert(1)</script>", '" onload="x', "</textarea><b>", "&lt;", "'`=>/", "<!--", "]]>", "\u202e<b>")
)


class Tree(HTMLParser):
    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.data += data


@given(TEXTS, TEXTS)
def test_a_text_stays_a_text(inside: str, attribute: str) -> None:
    tree = Tree(el("p", inside, el("b", inside), title=attribute).markup)
    assert [tag for tag, _ in tree.tags] == ["p", "b"]
    assert tree.data == safe.visible(inside) * 2
    assert tree.tags[0][1] == {"title": safe.visible(attribute, keep_newlines=False)}


@given(TEXTS)
def test_what_is_edited_is_exactly_what_is_stored(text: str) -> None:
    tree = Tree(many(area(text, name="a"), field(text, name="b")).markup)
    assert [tag for tag, _ in tree.tags] == ["textarea", "input"]
    assert tree.data == "\n" + text  # a browser drops the first line end
    assert tree.tags[1][1]["value"] == text


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "https://evil.example", "//evil.example", "/\\evil", "data:x", "x", "", " /a"]
)
@pytest.mark.parametrize("name", ["href", "src", "action", "formaction"])
def test_no_address_leads_away(name: str, link: str) -> None:
    with pytest.raises(ValueError, match="must stay"):
        el("a", **{name: link})


@given(st.dictionaries(st.sampled_from(("id", "key", "q")), TEXTS))
def test_an_address_holds_any_value(parts: dict[str, str]) -> None:
    from urllib.parse import parse_qsl, urlsplit

    link = address("/x", **parts)
    assert dict(parse_qsl(urlsplit(link).query)) == {name: value for name, value in parts.items() if value}
    el("a", href=link)


@given(TEXTS)
def test_lit_words_never_change_the_text(text: str) -> None:
    shown = Tree(el("pre", lit(text)).markup).data
    assert safe.visible(text).replace("«", "").replace("»", "") == shown.replace("«", "").replace("»", "")


def test_a_page_is_one_document() -> None:
    text = html.page("a < b", None, el("body"))
    assert text.startswith("<!doctype html>\n<html lang=")
    assert "<title>a &lt; b</title>" in text


def saved(session: str, amount: int) -> Savings:
    return Savings(session, "tool", "o200k", 1, 1, 0, 0, amount, 0, 0)


def test_savings_are_drawn_true_to_time() -> None:
    day = 86_400_000
    days = by_day(
        [saved("a", 100), saved("b", -30), saved("c", 5), saved("gone", 9)], {"a": 0, "b": 3 * day, "c": 20 * day}
    )
    assert len(days) == 21  # days without sessions too
    assert [one.saved for one in days if one.saved] == [100, -30, 5]
    assert days[-1].total == 75
    drawing = Tree(chart(days).markup)
    bars = [given for tag, given in drawing.tags if given.get("class") == "bar"]
    assert len(bars) == 21
    assert all(float(str(bar["height"])) > 0 for bar in bars)


@pytest.mark.parametrize(
    "text",
    [
        "*" * 5_000 + "seen" + "*" * 5_000,
        "*a _b " * 300 + "seen" + "_*" * 300,
        "[" * 9_000 + "seen",
        ">" * 9_000 + "seen",
    ],
)
def test_a_text_that_is_hard_to_draw_is_shown_all_the_same(text: str) -> None:
    assert "seen" in Tree(markdown(text).markup).data


@pytest.mark.parametrize(
    "text", ["```py seen\nx\n```", "| a |\n|---|\n| x | seen |", "> | a |\n> |---|\n> | x | seen |", "[a](/b 'seen')"]
)
def test_markdown_hides_nothing_that_a_model_reads(text: str) -> None:
    assert "seen" in Tree(markdown(text).markup).data


def test_a_table_is_drawn_with_all_its_cells() -> None:
    tree = Tree(markdown("| a | b |\n|:--|--:|\n| x\\|y | `z` |\n| - | |").markup)
    assert [tag for tag, _ in tree.tags].count("td") == 4
    assert "x|y" in tree.data
