"""Passwords and tokens in less usual surroundings, and the ordinary text that is like them.

Every secret here is made at run time, so that no line of this file looks like one.
"""

# ruff: noqa: RUF001 - the punctuation of other languages is meant

from __future__ import annotations

import random
import string

import pytest

from limpet.redaction import hints, redact

_source = random.Random(77)
ALNUM = string.ascii_letters + string.digits


def some(alphabet: str, length: int) -> str:
    return "".join(_source.choices(alphabet, k=length))


PASSWORD = "Xk2" + some(ALNUM, 5) + "9fQ7z"
FILLER = "an ordinary line with nothing in it\n" * 200
TEXTS = [
    *[f"DB_PASSWORD={start}SECRET" for start in ("my-", "your.", "sample_", "some-")],
    *[f'password = "{start}SECRET"' for start in ("my-", "your.", "sample_")],
    *[f"the password for staging is {start}SECRET" for start in ("my-", "your.")],
    'password="my dog SECRET"',
    "DB_PASSWORD='SECRET & a b'",
    '{"password": "an old SECRET!"}',
    '<add key="DbPassword" value="SECRET" />',
    "<property name='password' value='SECRET'/>",
    '{"name": "DB_PASSWORD", "value": "SECRET"}',
    '{\\"name\\": \\"DB_PASSWORD\\", \\"value\\": \\"SECRET\\"}',
    '{\n  "name": "DB_PASSWORD",\n  "value": "SECRET"\n}',
    "- name: DB_PASSWORD\n  value: SECRET\n",
    "password：SECRET",
    "DB_PASSWORD：SECRET",
    "db password ： SECRET，用户 admin",
    "password＝SECRET",
    "pw：SECRET",
    "the pw is SECRET",
    "use SECRET as the password",
    'Set "SECRET" as your new admin password.',
    "log in with SECRET as password for staging",
    "nimm SECRET als Passwort",
    "ssh-keygen -t ed25519 -N SECRET -f key",
    "ssh-keygen -p -P 'SECRET' -N '' -f key",
    "openssl enc -aes-256-cbc -k SECRET -in a -out b",
    "openssl aes-256-cbc -d -in a -k 'SECRET'",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("filler", ["", FILLER])
def test_a_password_is_masked(text: str, filler: str) -> None:
    text = text.replace("SECRET", PASSWORD)
    assert hints.may_hold(text)
    masked = redact(f"{filler}{text}\n{filler}")
    assert PASSWORD not in masked.text
    assert masked.kinds == ("password",)
    assert redact(masked.text).count == 0


@pytest.mark.parametrize(
    "token",
    [
        *[f"{start}{some(ALNUM, 34)}7x" for start in ("ghp_", "gho_", "npm_")],
        f"github_pat_{some(ALNUM, 80)}7x",
        f"glpat-{some(ALNUM, 18)}7x",
        f"xoxb-{some(string.digits, 12)}-{some(ALNUM, 20)}7x",
        f"sk-ant-api03-{some(ALNUM, 90)}7x",
        f"AKIA{some(string.ascii_uppercase, 14)}A2",
    ],
)
@pytest.mark.parametrize("before", ["is", "tokén", "3x", "export_"])
@pytest.mark.parametrize("filler", ["", FILLER])
def test_an_unmistakable_token_is_masked_behind_letters_too(token: str, before: str, filler: str) -> None:
    assert redact(f"{filler}see {before}{token} there").text == f"{filler}see {before}{redact(token).text} there"


@pytest.mark.parametrize(
    "text",
    [
        "API_KEY=your-api-key-here, TOKEN=my-token-123, PASSWORD=your_password1",
        "SECRET=sample_secret_value_2, token: my-service-v2.example",
        'password = "my-base64encoded-thing"',
        'password = "Enter your password again"',
        'password: "must have at least 8 characters, utf-8 or sha256"',
        '<input type="password" name="password" value="">',
        '<add key="DbPassword" value="${DB_PASSWORD}" />',
        '{"name": "DB_PASSWORD", "value": "<password>"}',
        "name: password\nvalue: string",
        "密码：错误，password：必填",
        "password：required",
        "use sha256 as the password hash; treat it as a password field",
        "store user_id2 as the password_id, use the same string as password",
        "ssh-keygen -t ed25519 -N '' -f ~/.ssh/id_ed25519",
        'ssh-keygen -N "" -C me@example.com',
        "openssl version; curl -k https://example.com/x",
        "openssl req -newkey rsa:2048 -keyout key.pem -key my.pem",
        "SOMEAKIA" + "ABCDEFGH12345678",
        "see task-ant-hill-of-many-words-in-a-row",
    ],
)
def test_what_is_like_them_stays(text: str) -> None:
    assert redact(text).text == text
    assert redact(FILLER + text).text == FILLER + text


@pytest.mark.parametrize(
    "unit",
    [
        *[
            "password value",
            "password, value",
            " as the password",
            "x1 as as as password",
            "password：",
            "openssl enc ",
        ],
        *["openssl enc -k ", "ssh-keygen -N ", "my-", "password=my-", 'password="a b ', "password\n", "ghp_a"],
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    """Anything worse than linear would run into the test's time limit."""
    assert redact(unit * (200_000 // len(unit)) + "\n" + "a" * 1000).count >= 0
