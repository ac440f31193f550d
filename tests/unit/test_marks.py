"""One pass for secrets and failures: it must find whatever the exact patterns would find by looking everywhere."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.previews import failures
from limpet.redaction import Redacted, redact, search, signs
from limpet.redaction.blocks import key_blocks
from limpet.redaction.values import settle
from limpet.text.marks import find_marks

SECRET = "Qx7RtY2pLm9ZkW4vNc8sHd3fGj6bTa5e"
# One for every way a finder tells a secret: its look, its surroundings, its name.
TELLING = [
    f"ghp_{SECRET}",
    f"AKIA{SECRET[:16].upper()}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJVadQssw5c",
    f"postgres://admin:{SECRET[:12]}@db/x",
    f"postgres:\\/\\/admin:{SECRET[:12]}@db",
    f"Authorization: Bearer {SECRET}",
    f'"authorization": "{SECRET}"',
    f"bearer {SECRET}",
    f"curl -X POST -u admin:{SECRET[:9]} http://x",
    f"mysql -h db -p{SECRET[:9]} x",
    f"sshpass -p {SECRET[:9]} ssh x",
    f"machine x\nlogin me\npassword {SECRET[:9]}\n",
    f"API_KEY={SECRET}",
    f"api-key: {SECRET}",
    f'"client_secret": "{SECRET}"',
    f"export DB_PASSWORD={SECRET[:9]}",
    f"--token {SECRET}",
    f"<password>{SECRET[:9]}</password>",
    f"set('password', '{SECRET}')",
    f"db_pass = '{SECRET[:9]}'",
    f"STRIPE_KEY={SECRET}",
    f"password: >\n    {SECRET}\n",
    f"token%3d{SECRET}",
    "-----BEGIN RSA PRIVATE KEY-----\n" + f"{SECRET}\n" * 4 + "-----END RSA PRIVATE KEY-----",
    f"{SECRET}\n{SECRET}\n-----END PRIVATE KEY-----",
    f"https://hooks.slack.com/services/T00000000/B00000000/{SECRET}",
    f"12345678:AA{SECRET[:31]}_-",
]
AROUND = st.text(st.sampled_from("ab=:,.\n\t \"'{}/é中🙂-"), max_size=30)


def looked_everywhere(text: str) -> Redacted:
    """What the finders find when they look at all of the text."""
    count, kinds = 0, set()
    for _ in range(32):
        spans = settle([*key_blocks(text), *search._look(text)])
        if "[redacted:" in text:
            spans = search._outside(spans, [match.span() for match in search._MASKED.finditer(text)])
        if not spans:
            break
        text = search._masked(text, spans)
        count += len(spans)
        kinds |= {span.kind for span in spans}
    return Redacted(text, count, tuple(sorted(kinds)))


@pytest.mark.parametrize("secret", TELLING)
def test_every_kind_of_secret_is_found_far_in_a_long_text(secret: str) -> None:
    before = "".join(f"an ordinary line {n} of größe {n}\n" for n in range(900))
    text = f"{before}\n{secret} y\n{before}"
    masked = redact(text)
    assert masked.count >= 1
    assert SECRET[:9] not in masked.text
    assert masked == looked_everywhere(text)


@given(st.lists(st.tuples(AROUND, st.sampled_from(TELLING)), max_size=4), AROUND, st.integers(0, 3))
def test_looking_at_hints_finds_what_looking_everywhere_finds(parts: list[tuple[str, str]], end: str, far: int) -> None:
    gap = "nothing to see in this line\n" * 100 * far
    text = gap.join(before + secret for before, secret in parts) + end
    if "%" in text or "\\u00" in text:
        return  # escapes are read once more in their plain form, which this comparison does not do
    assert redact(text) == looked_everywhere(text)


def test_a_secret_longer_than_the_part_looked_at_is_masked_whole() -> None:
    filler = "an ordinary line\n" * 2_000
    key = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=9_000))
    text = f'{filler}"api_token": "{key}"\n{filler}'
    assert redact(text).text == f'{filler}"api_token": "[redacted:secret]"\n{filler}'


def test_a_text_without_hints_is_handed_back_as_it_is() -> None:
    text = "an ordinary line\n" * 1_000
    found = find_marks(text.encode(), failure=failures.PATTERN, secret=signs.pattern())
    assert found.secrets == []
    assert found.failures == []
    assert redact(text, found).text is text


FAILING = [
    "ERROR could not connect",
    "2026-01-01 12:00:00 FATAL: no",
    "ValueError: nothing",
    "Traceback (most recent call last):",
    "3 failed, 2 passed",
    "exit code 2",
    "E   assert 1 == 2",
    "  ✗ it does not work",
    '1.2.3.4 - - "GET / HTTP/1.1" 503 12',
    "thread 'main' panicked at src/x.rs",
    "level=error msg=no",
    '{"status": "failed"}',
    "[crit] disk",
    "app.c:3:5 error x",
    "<failure message='x'>",
    "make: *** [all] Error 2",
    "npm ERR! code 1",
    "Killed",
]


@pytest.mark.parametrize("line", FAILING)
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_every_kind_of_failure_is_found_with_its_number(line: str, end: str) -> None:
    text = f"größe 1\nall went well: 0 errors\n{line}{end}"
    assert [tuple(found) for found in failures.failure_lines(text)] == [(2, line)]


@given(st.lists(st.sampled_from([*FAILING, "all is well", "no errors", "0 failed", "größe", ""]), max_size=30))
def test_a_line_fails_whatever_stands_around_it(lines: list[str]) -> None:
    found = [line.number for line in failures.failure_lines("\n".join(lines))]
    assert found == [at for at, line in enumerate(lines) if line in FAILING]


def test_in_a_line_of_a_megabyte_the_one_failure_is_found() -> None:
    line = '{"error": null, "name": "größe"}, ' * 30_000 + '{"status": "failed"}'
    assert [found.number for found in failures.failure_lines(f"first\n{line}\nlast")] == [1]
