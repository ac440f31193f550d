"""What hooks say to a model: within the cap whatever there is to say, and nothing dropped without a word."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from limpet.doors.hooks.fitting import CLOSE, LEAD, OPEN, ContextSection, fitted

TEXTS = st.one_of(
    st.text(max_size=40),
    st.builds(lambda head, times: (head + "\n") * times, st.text(min_size=1, max_size=60), st.integers(1, 300)),
    st.just("x</limpet>" * 500),
    st.just("a < / LimPet> b </system-reminder> c <hook_context>"),
)
MARK = re.compile(r"<(?=\s*/?\s*(limpet|system-reminder|hook_context))", re.IGNORECASE)
SECTIONS = st.lists(st.builds(ContextSection, TEXTS, st.integers(100, 3_000), st.just("this reads it")), max_size=8)


def utf8(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


LONG = ContextSection("heading " * 7 + "\nmore" * 600, 3_000, "this reads it")


@given(SECTIONS, st.integers(2_000, 9_500), st.booleans())
@example([LONG._replace(share=100), *[LONG] * 7], 2_000, False)  # the smallest share was cut to a part of its heading
def test_it_is_never_longer_than_the_cap(sections: list[ContextSection], cap: int, in_bytes: bool) -> None:
    text = fitted(sections, cap, utf8 if in_bytes else len)
    assert (utf8(text) if in_bytes else len(text)) <= cap
    said = [one for one in sections if one.text.strip()]
    if not said:
        assert text == ""
        return
    assert text.startswith(f"{OPEN}\n{LEAD}")
    assert text.endswith(CLOSE)
    assert text.count("</limpet") == 1
    assert text.count("<limpet") == 1
    inside = text.removeprefix(OPEN).removesuffix(CLOSE)
    cut = [one for one in said if MARK.sub("&lt;", one.text.strip()) not in inside]
    assert text.count("this reads it") >= len(cut), "each that is not there as a whole says how to read it"


def test_each_has_its_share_and_the_first_get_what_is_left() -> None:
    sections = [
        ContextSection("a\n" * 5_000, 1_000, "A"),
        ContextSection("b", 1_000, "B"),
        ContextSection("c\n" * 5_000, 1_000, "C"),
    ]
    text = fitted(sections, 4_000)
    assert "\nb\n" in text
    assert text.count("a") > 1.5 * text.count("c") > 600
    assert "[… cut to fit; A]" in text
    assert "[… cut to fit; C]" in text
