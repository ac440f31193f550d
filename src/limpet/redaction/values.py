"""What the finders share: the span of a secret, and whether a value is one and not a placeholder, a type or a word."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

_STAND_IN = re.compile(
    r"\[redacted:"
    r"|[<({]|\$[({]|\$[A-Za-z_]\w*$|%[({A-Za-z]{0,2}[A-Za-z_]{1,40}[%)}]?s?$|@[({]|#\{|\\"
    r"|[*xX.•…_?#-]+$"
    r"|(?:your|my|some|insert|enter|example|sample|dummy|placeholder|redacted|masked|hidden|todo|fixme)(?=[-_. ]|$)"
    r"|(?:process\.|os\.|sys\.|env\.|environ|env[\[(:.]|getenv|config[.\[]|settings[.\[]|self\.|this\.|secrets?\.|vars?\.)"
    r"|(?:op|vault|file|env|ssm|aws-sm|gcpsm)://|arn:aws|(?:/run/secrets|/etc|/var|/home|/usr|/tmp|\./|~/|\.\./)",
    re.IGNORECASE,
)
_SLOT = re.compile(
    r"\{\{|\$\{|\{[A-Za-z_][A-Za-z0-9_.]{0,40}\}|%\([a-z_]{1,30}\)s|<[a-z][a-z _-]{1,30}>", re.IGNORECASE
)
_NOTHING = re.compile(
    r"(?:none|null|nil|true|false|undefined|void|empty|blank|required|optional|default|unset|disabled|enabled|yes"
    r"|no|any|str|string|bytes|int|integer|bool|boolean|float|number|object|text|char|varchar|secretstr|url|uuid"
    r"|date|hash|func|function|static|const|readonly|self|this|type|value|key|name|id|omitted|missing|invalid"
    r"|expired|wrong|incorrect|revoked|unknown|changed|reset|hidden|not|is|was|the|and|for|with|from|has|must"
    r"|should)",
    re.IGNORECASE,
)
_NAMES = re.compile(r"[A-Za-z_\- ]{1,60}[0-9]?[:?*]?")
_NAMING = re.compile(r"pass|pwd|secret|token|key|credential|auth|bearer", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*+(?:(?:\.|->|::)[A-Za-z_$][\w$]*+)*+[!?]?", re.ASCII)
_WORDS = re.compile(r"[A-Za-z]{1,40}(?:[._/: -][A-Za-z]{1,40}){0,12}[.:!?]?")
_DIGITS = re.compile(r"[0-9]")
_LETTERS = re.compile(r"[A-Za-z]")
_TAIL_NUMBER = re.compile(r"[A-Za-z_]+[0-9]{1,2}")
_REGEX = re.compile(r"\\[wWdDsSb]|\[\^|\]\+|\(\?")
_CAPITALS = re.compile("[A-Z]{2}")
_SPECIAL = re.compile(r"[!@#$%^&*+=?~|]")


def mixed(secret: str) -> bool:
    """Whether letters, digits and cases are mixed as chance does it: neither a word nor a row of x."""
    if len(set(secret)) < 6 or not _LETTERS.search(secret):
        return False
    return bool(_DIGITS.search(secret)) or turns(secret) >= 8


def placeholder(value: str) -> bool:
    """Whether the value is a placeholder: <token>, ${VAR}, ***, None, or one of redaction itself."""
    return "[redacted:" in value or bool(_STAND_IN.match(value)) or bool(_NOTHING.fullmatch(value))


def secret_value(value: str, *, password: bool, quoted: bool, plain_line: bool) -> bool:
    """Whether this value of a secretly named thing is worth masking.

    `plain_line` is for a place where values are written without quotes, such as a .env file, so that a bare word is
    data and not a variable.
    """
    if len(value) < (3 if password else 6) or placeholder(value) or _SLOT.search(value) or _is_name(value):
        return False
    digits, letters = bool(_DIGITS.search(value)), bool(_LETTERS.search(value))
    if not letters and (not digits or (not password and len(value) < 16)):
        return False  # a count, a position, punctuation
    if quoted:
        return _quoted(value, digits, password)
    if plain_line:
        return password or digits or len(value) >= 8
    return _bare(value, digits, password)


def _is_name(value: str) -> bool:
    """Whether the value is itself a name of a secret, as in `"token": "access_token"`."""
    return bool(_NAMES.fullmatch(value) and _NAMING.search(value)) and turns(value) < 6


def _quoted(value: str, digits: bool, password: bool) -> bool:
    if " " in value:
        return False  # a sentence: a message or a label
    if password:
        return not value.endswith(":")
    if _WORDS.fullmatch(value):
        # Words and dotted names; a long mixture of small and capital letters is none.
        return _by_chance(value)
    if _REGEX.search(value):
        return False
    return len(value) >= 8 and (digits or bool(_SPECIAL.search(value))) and len(set(value)) >= 5


def _bare(value: str, digits: bool, password: bool) -> bool:
    """Without quotes and among code: a name of something else is more likely than a secret."""
    if value[0] in "&*!@=~":
        return False
    if _IDENTIFIER.fullmatch(value):
        if not digits or "." in value or "->" in value or "::" in value:
            return _by_chance(value)
        if password:
            return "_" not in value and len(value) >= 6
        scattered = not _TAIL_NUMBER.fullmatch(value) and len(_DIGITS.findall(value)) >= 2
        return len(value) >= 16 and (scattered or turns(value) >= 8)
    if _WORDS.fullmatch(value):
        return False
    enough = 6 if password else 12
    return len(value) >= enough and (digits or (password and bool(_SPECIAL.search(value)))) and len(set(value)) >= 5


def _by_chance(value: str) -> bool:
    """Whether letters alone are mixed so much that they are no name in CamelCase."""
    return value.isalpha() and len(value) >= 20 and turns(value) >= 8 and bool(_CAPITALS.search(value))


def turns(value: str) -> int:
    """How often small and capital letters change places."""
    return sum(before.isupper() != after.isupper() for before, after in pairwise(value[:80]))


# --- spans ------------------------------------------------------------------------------------------------------------


class Span(NamedTuple):
    """A place to mask. `token` is what the placeholder's hash is made from; None for what could be guessed."""

    start: int
    end: int
    kind: str
    token: str | None = None


def settle(spans: Iterable[Span]) -> list[Span]:
    """In order and without overlaps; everything that any of them covers stays covered.

    The wider one counts, and of two equally wide ones the one recognised by its format.
    """
    settled: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.token is None, span.kind)):
        if settled and span.start < settled[-1].end:
            if span.end > settled[-1].end:
                settled[-1] = settled[-1]._replace(end=span.end)
            continue
        settled.append(span)
    return settled
