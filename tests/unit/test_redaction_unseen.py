"""What a terminal does not show hides no secret: colours, links and characters without width, also written as escapes.

Every secret here is made at run time, so that no line of this file looks like one.
"""

from __future__ import annotations

import json
import random
import string
import time

import pytest

from limpet.redaction import hints, redact

_source = random.Random(41)
TOKEN = "ghp_" + "".join(_source.choices(string.ascii_letters + string.digits, k=36))
PASSWORD = "".join(_source.choices(string.ascii_letters, k=9)) + "7x"
MASKED_TOKEN = redact(TOKEN).text
ESCAPES = ["\x1b", "\\x1b", "\\u001b", "\\u001B", "\\033", "\\e", "\\\\u001b", "\\u{1b}", "^["]
# What may stand before and after a token, with `E` for the escape character.
COLOURS = [
    ("E[32m", "E[0m"),
    ("E[1;38;5;208m", "E[m"),
    ("E[38:2::1:2:3m", "E[39m"),
    ("E[2K", "E[K"),
    ("nameE[0m", ""),
    ("E[0mnameE[0m", "E[0m"),
]
UNSEEN = "\u200b\u200c\u200d\u2060\u00ad\ufeff\u200e\u200f\u202a\u202e\u2066\u2069\u061c"
FILLER = "an ordinary line with nothing in it\n" * 200


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize(("before", "after"), COLOURS)
@pytest.mark.parametrize("filler", ["", FILLER])
def test_a_coloured_token_is_masked_and_its_colours_stay(escape: str, before: str, after: str, filler: str) -> None:
    before, after = before.replace("E", escape), after.replace("E", escape)
    assert redact(f"{filler}{before}{TOKEN}{after}").text == f"{filler}{before}{MASKED_TOKEN}{after}"


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=E[32mSECRETE[0m\n",
        "E[36mDB_PASSWORDE[0mE[2m=E[0mE[32mSECRETE[0m\n",
        "DB_E[1mPASSWORDE[0m=SECRET\n",
        'E[1;39m{E[0mE[34;1m"password"E[0mE[1;39m:E[0m E[0;32m"SECRET"E[0mE[1;39m}E[0m',
        "the password for staging E[1misE[0m E[33mSECRETE[0m",
        "postgres://app:E[31mSECRETE[0m@db/app",
    ],
)
@pytest.mark.parametrize("filler", ["", FILLER])
def test_a_coloured_password_is_masked(escape: str, text: str, filler: str) -> None:
    masked = redact(filler + text.replace("E", escape).replace(f"S{escape}CR{escape}T", PASSWORD))
    assert PASSWORD not in masked.text
    assert masked.kinds == ("password",)


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("end", ["\x07", "\x1b\\", "\\u0007", "\\x07", "\\a"])
def test_a_link_of_a_terminal_hides_neither_its_text_nor_its_target(escape: str, end: str) -> None:
    link = f"{escape}]8;;https://example.com/?t={TOKEN}{end}{TOKEN}{escape}]8;;{end}"
    assert TOKEN[8:] not in redact(f"see {link}.").text
    assert TOKEN[8:] not in redact(f"password: {escape}]8;;https://example.com{end}{TOKEN}{escape}]8;;{end}").text


@pytest.mark.parametrize("sign", [*UNSEEN, "\x1b[0m", "\x1b(B", "\x0f", "\\u200b", "\\u001b[0m"])
@pytest.mark.parametrize("at", [0, 2, 4, 20, 40])
def test_a_sign_without_width_hides_no_token(sign: str, at: int) -> None:
    text = f"push with {TOKEN[:at]}{sign}{TOKEN[at:]} now"
    masked = redact(text).text
    assert masked.replace(sign, "") == f"push with {MASKED_TOKEN} now"
    assert redact(masked).text == masked


@pytest.mark.parametrize("sign", UNSEEN)
def test_a_sign_without_width_hides_no_name_of_a_password(sign: str) -> None:
    assert PASSWORD not in redact(f"pass{sign}word: {PASSWORD}").text
    assert PASSWORD[6:] not in redact(f"password={PASSWORD[:6]}{sign}{PASSWORD[6:]}\n").text


def test_a_document_with_colours_stays_a_document() -> None:
    value = {"text": f"\x1b[32m{TOKEN}\x1b[0m", "n": 1}
    assert json.loads(redact(json.dumps(value)).text) == {"text": f"\x1b[32m{MASKED_TOKEN}\x1b[0m", "n": 1}


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[32mPASS\x1b[0m tests/unit/test_login.py \x1b[2m(12 ms)\x1b[0m",
        "\x1b[1mpassword\x1b[0m: \x1b[33mstring\x1b[0m",
        "grep '^[[a-z]' names; printf '\\e[1mtoken\\e[0m is valid\\n'",
        "soft\u00adhyphen, zero\u200bwidth, \u202apassword\u202c is required",
    ],
)
def test_ordinary_coloured_text_stays(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize(
    "unit",
    [
        *[
            "\x1b",
            "\x1b[",
            "\x1b]",
            "\x1b]8;;",
            "\x1b[32m",
            "\\u001b",
            "\\u001b]8;;a",
            "\\",
            "\u200b",
            "[0",
            "[0m",
            "^[[",
        ],
        *["\x1b]8;;a\x07token=", "\x1b[0mghp_", "\x1b[0mpassword=", "\\e[", "\x1bP", "ghp_\u200b"],
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    """Anything worse than linear would run into the test's time limit."""
    assert redact(unit * (200_000 // len(unit)) + "\n" + "a" * 1000).count >= 0


def test_the_quick_look_still_passes_over_ordinary_text() -> None:
    note = "Casts break LL(1): the parser in src/lexer.py needs two words of lookahead, naïve or not; see Monday"
    assert not hints.may_hold(note)
    assert not hints.has_unseen("a\nb\\n\\t C:\\Users\\ünal " * 1000)
    best = 1.0
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(100):
            hints.has_unseen(note)
        best = min(best, (time.perf_counter() - began) / 100)
    assert best < 20e-6


def test_a_long_text_is_masked_around_what_is_unseen_as_all_of_it_is() -> None:
    # Around what is not shown, and around what was masked, a part of the text is searched; the answer is that for all.
    chance = random.Random(7)
    lines = ["the parser reads a line", "key: value", "x = {'a': 1}", "see https://example.org/a?b=c"]
    pieces = [
        f"DB_PASSWORD={PASSWORD[:4]}\u200b{PASSWORD[4:]}",
        f"token {TOKEN[:20]}\\u200b{TOKEN[20:]}",
        f"\x1b[31mpassword\x1b[0m: {PASSWORD}",
        f"password={PASSWORD} {TOKEN}",
        "\ufeffplain",
        f"Authorization: Bearer \x1b[1m{TOKEN}\x1b[0m",
    ]
    for _ in range(12):
        parts = [chance.choice(lines) for _ in range(chance.choice((400, 3_000)))]
        placed = chance.sample(pieces, 3)
        for piece in placed:
            parts.insert(chance.randrange(len(parts)), piece)
        text = "\n".join(parts)
        masked = redact(text)
        assert PASSWORD not in masked.text
        assert TOKEN not in masked.text
        assert masked.text == "\n".join(redact(part).text if part in placed else part for part in parts)
        assert redact(masked.text).text == masked.text
