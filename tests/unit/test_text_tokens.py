"""The estimate of tokens stays close to the exact tokenizer, and a cut text fits its budget and ends well."""

from __future__ import annotations

import base64
import functools
import random
import time
import unicodedata
from pathlib import Path

import pytest
import splintr
from hypothesis import example, given
from hypothesis import strategies as st

import token_filter
from journeys.story import STORIES, load
from limpet.text import tokens

ENGLISH = """Yesterday we moved the database to the new server. The user does not want the names of the interfaces to
change without notice, so we kept the old ones and added a short note to the manual. If an error appears, look at the
log first, then write down what you saw; don't guess. I'm glad we've tested it twice."""
CODE = '''
class Journal:
    """Keeps what happened, in order."""

    def __init__(self, path: Path, *, limit: int = 1000) -> None:
        self._path = path
        self._lines: list[str] = []

    def append(self, event_name: str, **fields: object) -> int:
        if len(self._lines) >= self.limit:
            raise JournalFull(f"{self._path}: {len(self._lines)} lines, at most {self.limit}")
        self._lines.append(json.dumps({"event": event_name, **fields}, sort_keys=True))
        return len(self._lines) - 1
'''
LOG = """2026-03-01T08:15:02.113Z INFO  worker-3 request GET /api/v2/items/8841 status=200 duration_ms=42
2026-03-01T08:15:02.871Z WARN  worker-1 retrying connection to 10.0.4.17:5432 (attempt 2 of 5)
2026-03-01T08:15:03.402Z ERROR worker-1 connection refused: 10.0.4.17:5432, giving up after 3 attempts
2026-03-01T08:15:03.977Z INFO  worker-7 request POST /api/v2/orders status=201 duration_ms=131
"""
JSON = """[
  {"id": 48213, "name": "Blue lamp", "price": 19.95, "tags": ["home", "light"], "in_stock": true},
  {"id": 48214, "name": "Desk chair", "price": 149.0, "tags": ["office"], "in_stock": false},
  {"id": 48215, "name": "Notebook A5", "price": 3.2, "tags": ["office", "paper"], "in_stock": true}
]
"""
MARKDOWN = """# Release notes

## Fixed

- The **export** command no longer stops at the first empty note.
- `search --limit 0` is refused with a clear message ([#214](https://example.com/issues/214)).

| setting | default | meaning |
|---------|---------|---------|
| `limit` | 20      | how many results are shown |
| `order` | `new`   | newest or oldest first |
"""
GERMAN = """Als ich am Morgen aufwachte, regnete es noch immer, und die Straßen waren leer. Meine Schwester rief an und
fragte, ob wir am Wochenende zusammen nach München fahren könnten. Wir müssen vorher nur noch die Fahrkarten kaufen und
dem Nachbarn sagen, dass er bitte die Blumen gießt."""
CHINESE = """昨天我们讨论了数据库的迁移方案,决定先在测试环境中运行一周,然后再发布到生产环境。请记住:
用户不希望我们修改接口的名称。如果出现错误,请先查看日志文件,再把结果写进笔记里。"""
JAPANESE = """朝起きると、まだ雨が降っていて、道には誰もいませんでした。
妹から電話があり、週末に一緒に京都へ行かないかと聞かれました。その前に切符を買って、隣の人に花の水やりを頼まなければなりません。"""
RUSSIAN = """Утром ещё шёл дождь, и на улицах никого не было. Позвонила сестра и спросила, сможем ли мы вместе поехать
на выходные в Москву. До этого нужно купить билеты и попросить соседа полить цветы."""
ARABIC = """عندما استيقظت في الصباح كان المطر لا يزال ينزل وكانت الشوارع فارغة. اتصلت بي أختي وسألتني هل يمكننا السفر
معا إلى القاهرة في نهاية الأسبوع. قبل ذلك يجب أن نشتري التذاكر وأن نطلب من الجار أن يسقي الزهور."""
EMOJI = "Great work 🎉🎉 the release is out 🚀! Tests ✅ docs ✅ lint ❌ look 👀. I ❤️ this 😂😂 👩‍💻 🛠️ ⚠️ 🙏🏽 🇩🇪🇫🇷 💯"

# Every script the estimate knows, the ends of its ranges, and what is put together from several code points.
anything = st.text(
    st.characters(exclude_categories=[]) | st.sampled_from("aA'- \n\t\r0éšế漢か한Жя😀\u0301\u200d\ufe0f🇩🏽")
)


@functools.cache
def exact_tokenizer() -> splintr.AnyTokenizer:
    """Loading takes a moment, so it happens once and only if a test asks for it."""
    return splintr.Tokenizer.from_pretrained("o200k_base")


@pytest.mark.parametrize(
    "text",
    [ENGLISH, CODE, LOG, JSON, MARKDOWN, GERMAN, CHINESE, JAPANESE, RUSSIAN, ARABIC, EMOJI],
    ids=["english", "code", "log", "json", "markdown", "german", "chinese", "japanese", "russian", "arabic", "emoji"],
)
def test_the_estimate_is_near_the_exact_count(text: str) -> None:
    exact = len(exact_tokenizer().encode_ordinary(text))
    assert 0.88 * exact <= tokens.count(text) <= 1.15 * exact


def test_over_many_kinds_of_text_the_estimate_is_right() -> None:
    together = "\n\n".join([ENGLISH, CODE, LOG, JSON, MARKDOWN, GERMAN])
    exact = len(exact_tokenizer().encode_ordinary(together))
    assert 0.98 * exact <= tokens.count(together) <= 1.02 * exact


@pytest.mark.parametrize("path", sorted(STORIES.glob("*.toml")), ids=lambda path: path.stem)
def test_prose_of_many_languages_is_within_a_tenth(path: Path) -> None:
    story = load(path)
    text = "\n".join([story.filler(400), *(fact.text for fact in story.facts())])
    exact = len(exact_tokenizer().encode_ordinary(text))
    assert 0.9 * exact <= tokens.count(text) <= 1.1 * exact


def test_words_that_nobody_knows_and_data_are_within_a_tenth() -> None:
    chance = random.Random(5)
    syllables = ("ba", "ke", "di", "lo", "mu", "na", "ri", "so", "ta", "tra", "bre", "stu", "plon", "mek", "zul", "wen")
    texts = {
        "invented": " ".join("".join(chance.choices(syllables, k=3)) for _ in range(800)),
        "base64": base64.b64encode(chance.randbytes(6_000)).decode(),
        "hex": chance.randbytes(3_000).hex(),
        "finnish": "Käyttöjärjestelmän asennusohjelmisto tarkistaa kiintolevyn osiotaulun ennen uudelleenkäynnistystä. "
        * 9,
    }
    for name, text in texts.items():
        exact = len(exact_tokenizer().encode_ordinary(text))
        assert 0.9 * exact <= tokens.count(text) <= 1.1 * exact, name


@pytest.mark.parametrize(
    "text", ["-" * 80, " " * 60, "=" * 40 + "\n" + "#" * 30, "\n" * 12, "1234567890" * 6, "a3f9b2c1d4e5f607" * 4]
)
def test_rulers_spaces_and_digits_are_not_counted_by_the_character(text: str) -> None:
    exact = len(exact_tokenizer().encode_ordinary(text))
    assert abs(tokens.count(text) - exact) <= 2 + exact // 10


def test_the_name_says_what_it_is() -> None:
    assert tokens.NAME == "estimate(o200k)"


def test_nothing_costs_nothing() -> None:
    assert tokens.count("") == 0


@given(anything)
@example("\ud800")
@example("\x00")
def test_every_text_that_is_not_empty_costs_something(text: str) -> None:
    assert tokens.count(text) >= bool(text)
    assert tokens.count(text) <= 4 * len(text)


@given(anything, anything)
@example("-\u0301", "a" * 24 + "12" + "a" * 24)
@example("A" * 24 + "か", "か" + "é" * 12)
def test_putting_texts_together_costs_hardly_more_than_the_parts(before: str, after: str) -> None:
    # Only the pieces at the seam change. With ordinary words it is one token at most; three with endless ones.
    assert tokens.count(before + after) <= tokens.count(before) + tokens.count(after) + 3


@given(anything, anything)
def test_a_line_break_between_texts_costs_one_token_at_most(before: str, after: str) -> None:
    assert tokens.count(before + "\n" + after) <= tokens.count(before) + tokens.count(after) + 1


@given(st.lists(st.tuples(st.sampled_from("aA0 \t\n\r'-(\x00\x7f"), st.integers(1, 90)), max_size=12))
def test_what_is_all_ascii_is_cut_into_the_same_pieces(runs: list[tuple[str, int]]) -> None:
    text = "".join(letter * times for letter, times in runs)
    assert tokens._pieces(True).findall(text) == tokens._pieces(False).findall(text)
    assert "".join(tokens._pieces(True).findall(text)) == text


@given(anything)
def test_every_character_is_in_a_piece(text: str) -> None:
    assert "".join(tokens._pieces(False).findall(text)) == text


def test_the_filter_is_made_of_the_vocabulary() -> None:
    assert token_filter.PATH.read_bytes() == token_filter.filter_bits()


def test_counting_is_fast() -> None:
    text = (ENGLISH + CODE + LOG + JSON + MARKDOWN) * 600
    start = time.perf_counter()
    tokens.count(text)
    # Ten times slower than it is, so that a busy machine does not fail and a quadratic pattern does.
    assert time.perf_counter() - start < len(text) / 1_000_000 + 0.5


@pytest.mark.parametrize(
    "character", ["a", "A", " ", "\n", "\t", "-", "(", "'", "0", "é", "漢", "😀", "a'", " \n", " -"]
)
def test_no_repetition_makes_counting_slow(character: str) -> None:
    start = time.perf_counter()
    tokens.count(character * 200_000)
    assert time.perf_counter() - start < 2


def test_a_text_that_fits_is_left_alone() -> None:
    assert tokens.cut(ENGLISH, 1000) == (ENGLISH, False)
    assert tokens.cut("", 0) == ("", False)


def test_nothing_fits_no_budget() -> None:
    assert tokens.cut("text", 0) == ("", True)
    assert tokens.cut("text", -5) == ("", True)


def test_a_text_is_cut_after_a_line_or_before_a_space() -> None:
    assert tokens.cut("one two three four", 2) == ("one two", True)
    assert tokens.cut("one two\nthree four", 3) == ("one two\n", True)


@pytest.mark.parametrize("text", [ENGLISH, CODE, LOG, CHINESE, RUSSIAN, ARABIC, EMOJI])
def test_a_cut_text_uses_its_budget(text: str) -> None:
    # What is lost at most is the longest word of these texts, a time stamp.
    whole = tokens.count(text)
    for budget in range(8, whole, 3):
        kept, left_out = tokens.cut(text, budget)
        assert left_out
        assert budget - 25 <= tokens.count(kept) <= budget


def test_one_endless_word_is_cut_inside() -> None:
    kept, left_out = tokens.cut("x" * 5000, 20)
    assert left_out
    assert 60 <= len(kept) <= 200
    kept, _ = tokens.cut("short words, then " + "x" * 5000, 100)
    assert len(kept) > 300


@pytest.mark.parametrize(
    "cluster", ["e\u0301", "👩\u200d💻", "👍🏽", "🇩🇪", "❤\ufe0f", "\r\n", "\ud83d\ude00", "नि", "\u1112\u1161\u11ab"]
)
def test_a_visible_character_is_never_cut_apart(cluster: str) -> None:
    text = cluster * 100
    for budget in range(1, 60):
        kept, _ = tokens.cut(text, budget)
        assert len(kept) % len(cluster) == 0


@given(anything, st.integers(-2, 40))
def test_what_is_kept_is_a_beginning_that_fits(text: str, budget: int) -> None:
    kept, left_out = tokens.cut(text, budget)
    assert text.startswith(kept)
    assert tokens.count(kept) <= max(0, budget)
    assert left_out == (kept != text)
    assert left_out or tokens.count(text) <= max(0, budget)


@given(st.lists(st.sampled_from(["word", " ", "\n", "verylongwordindeed", ", ", "漢字", "12345", "--"]), max_size=60))
def test_no_longer_beginning_at_a_word_would_fit(parts: list[str]) -> None:
    text = "".join(parts)
    kept, _ = tokens.cut(text, 12)
    if not kept:
        return
    for at in range(len(kept) + 1, min(len(text), len(kept) + 60)):
        ends_word = text[at].isspace() or text[at - 1] == "\n"
        assert not ends_word or tokens.count(text[:at]) > 12


def test_cutting_a_long_text_reads_only_its_beginning() -> None:
    text = ENGLISH * 20_000
    start = time.perf_counter()
    kept, left_out = tokens.cut(text, 500)
    assert time.perf_counter() - start < 0.5
    assert left_out
    assert 490 <= tokens.count(kept) <= 500
    assert unicodedata.category(kept[-1]) != "Zs"


@given(st.text())
def test_a_token_has_at_least_one_byte(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    assert tokens.count(text) <= size
    for budget in (0, tokens.count(text) - 1, tokens.count(text), size):
        assert tokens.fits(text, budget) == (tokens.count(text) <= budget)
