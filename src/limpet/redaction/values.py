"""What the finders share: the span of a secret, and whether a value is one and not a placeholder, a type or a word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from limpet.record import NamedTuple

if TYPE_CHECKING:
    late = re.compile
else:

    class _Late:
        """A pattern that is compiled at its first use: all of them take longer than most programs need to start."""

        def __init__(self, source: str, flags: int = 0) -> None:
            self._compiled = source, flags

        def __getattr__(self, name: str) -> Any:
            method = getattr(re.compile(*self._compiled), name)
            setattr(self, name, method)
            return method

    late = _Late


_STAND_IN = late(
    r"\[redacted:"
    r"|[<({]|\$[({]|\$[A-Za-z_]\w*$|%[({A-Za-z]{0,2}[A-Za-z_]{1,40}[%)}]?s?$|@[({]|#\{|\\"
    r"|[*xX.•…_?#-]+$"
    r"|(?:your|my|some|insert|enter|example|sample|dummy|placeholder|redacted|masked|hidden|todo|fixme)(?=[-_. ]|$)"
    r"|(?:process\.|os\.|sys\.|env\.|environ|env[\[(:.]|getenv|config[.\[]|settings[.\[]|self\.|this\.|secrets?\.|vars?\.)"
    r"|(?:op|vault|file|env|ssm|aws-sm|gcpsm)://|arn:aws|(?:/run/secrets|/etc|/var|/home|/usr|/tmp|\./|~/|\.\./)",
    re.IGNORECASE,
)
# A placeholder begins like this, and so do passwords: "my-" and then what chance has mixed.
_OWN = late(r"(?:your|my|some|sample)[-_. ]", re.IGNORECASE)
_PARTS = late(r"[-_. ]")
_SLOT = late(r"\{\{|\$\{|\{[A-Za-z_][A-Za-z0-9_.]{0,40}\}|%\([a-z_]{1,30}\)s|<[a-z][a-z _-]{1,30}>", re.IGNORECASE)
_NOTHING = frozenset(
    (
        *("none", "null", "nil", "true", "false", "undefined", "void", "empty", "blank", "required", "optional"),
        *("default", "unset", "disabled", "enabled", "yes", "no", "any", "str", "string", "bytes", "int", "integer"),
        *("bool", "boolean", "float", "number", "object", "text", "char", "varchar", "secretstr", "url", "uuid"),
        *("date", "hash", "func", "function", "static", "const", "readonly", "self", "this", "type", "value", "key"),
        *("name", "id", "omitted", "missing", "invalid", "expired", "wrong", "incorrect", "revoked", "unknown"),
        *("changed", "reset", "hidden", "not", "is", "was", "the", "and", "for", "with", "from", "has", "must"),
        "should",
    )
)
_NAMES = late(r"[A-Za-z_\- ]{1,60}[0-9]?[:?*]?")
_NAMING = late(r"pass|pwd|secret|token|key|credential|auth|bearer", re.IGNORECASE)
_IDENTIFIER = late(r"[A-Za-z_$][\w$]*+(?:(?:\.|->|::)[A-Za-z_$][\w$]*+)*+[!?]?", re.ASCII)
_WORDS = late(r"[A-Za-z]{1,40}(?:[._/: -][A-Za-z]{1,40}){0,12}[.:!?]?")
_DIGITS = late(r"[0-9]")
_LETTERS = late(r"[A-Za-z]")
_TAIL_NUMBER = late(r"[A-Za-z_]+[0-9]{1,2}")
_DOTTED = late(r"(?:[a-z]{1,20}[0-9]{0,2}[a-zA-Z]{0,20}\.){1,8}[a-z]{1,20}[0-9]{0,2}[a-zA-Z]{0,30}")  # fs.s3.enabled
_REGEX = late(r"\\[wWdDsSb]|\[\^|\]\+|\(\?")
_LONGEST_PHRASE = 80  # characters of a password with spaces
_CAPITALS = late("[A-Z]{2}")
_SPECIAL = late(r"[!@#$%^&*+=?~|]")


def mixed(secret: str) -> bool:
    """Whether letters, digits and cases are mixed as chance does it: neither a word nor a row of x."""
    if len(set(secret)) < 6 or not _LETTERS.search(secret):
        return False
    return bool(_DIGITS.search(secret)) or turns(secret) >= 8


def placeholder(value: str) -> bool:
    """Whether the value is a placeholder: <token>, ${VAR}, ***, None, or one of redaction itself."""
    if "[redacted:" in value or value.lower() in _NOTHING:
        return True
    return bool(_STAND_IN.match(value)) and not (
        (own := _OWN.match(value)) and any(map(_scattered, _PARTS.split(value[own.end() :])))
    )


def _scattered(part: str) -> bool:
    """Whether digits are between the letters as chance does it: no word with a number, nor base64 or sha256sum."""
    changes = sum(before.isdigit() != after.isdigit() for before, after in pairwise(part[:80]))
    return len(part) >= 8 and changes >= 3 and len(set(part)) >= 6


def secret_value(value: str, *, password: bool, quoted: bool, plain_line: bool) -> bool:
    """Whether this value of a secretly named thing is worth masking.

    `plain_line` is for a place where values are written without quotes, such as a .env file, so that a bare word is
    data and not a variable.
    """
    if len(value) < (3 if password else 6) or placeholder(value) or _SLOT.search(value) or _is_name(value):
        return False
    digits, letters = bool(_DIGITS.search(value)), bool(_LETTERS.search(value))
    if value[0] == "-" and value[1:].isdigit():
        return False  # the number of an error
    if not letters and (not digits or (not password and len(value) < 16)):
        return False  # a count, a position, punctuation
    if quoted:
        return _quoted(value, digits, password)
    if plain_line:
        return password or digits or len(value) >= 8
    return _bare(value, digits, password)


_ORDINARY = late(
    r"(?:sha|md|base|utf|bcrypt|argon|pbkdf|scrypt|hmac|aes|rsa|hex|ascii|http|rfc|latin|iso|x?\d)[\w.-]*"
    r"|v?\d[\d.,:/x-]*[a-z%]{0,3}"
    r"|[\w.-]+\.(?:py|js|ts|md|txt|json|ya?ml|toml|html?|com|org|net|io|dev|sh|rs|go|java|c|h|cfg|ini|env|log|conf|xml|pem)"
    r"|(?:user|admin|test|name|arg|param|foo|bar|example|pass|password|passwort|secret|pw|pwd|my|your|field|value|item)"
    r"[_-]?\d{0,3}"
    r"|[a-z]+(?:[-/][a-z]+)+|[A-Za-z]+\d?",
    re.IGNORECASE,
)
_UUID = late(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_INNER = late(r"[!@#$%^&*+=?~]")


def strong(value: str) -> bool:
    """Whether a word among words looks like a password: neither a word of a language nor of programming."""
    if not 6 <= len(value) <= 128 or placeholder(value) or _SLOT.search(value) or _is_name(value):
        return False
    if (
        "://" in value
        or value.startswith(("/", "./", "~", "@", "#", "-"))
        or any(sign in value for sign in '()[]{}<>`"\\|')
    ):
        return False
    if _ORDINARY.fullmatch(value) or _UUID.fullmatch(value) or len(set(value)) < 4 or not _LETTERS.search(value):
        return False
    if _DIGITS.search(value):
        return True
    return bool(_INNER.search(value[1:-1])) or (value.isalpha() and turns(value) >= 6)


def by_chance(value: str) -> bool:
    """Whether a word is long and mixed as keys are, and is no UUID and no hash."""
    return len(value) >= 16 and mixed(value) and not _UUID.fullmatch(value) and not _HASH.fullmatch(value)


_HASH = late(r"(?:[0-9a-f]{7,}|[0-9A-F]{7,}|sha\d+[-:].*)")


def _is_name(value: str) -> bool:
    """Whether the value is itself a name of a secret, as in `"token": "access_token"`."""
    return bool(_NAMES.fullmatch(value) and _NAMING.search(value)) and turns(value) < 6


def _quoted(value: str, digits: bool, password: bool) -> bool:
    if " " in value:  # a sentence: a message or a label, unless a word in it is no word of a language
        return password and len(value) <= _LONGEST_PHRASE and any(map(_phrase_word, value.split()))
    if password:
        return not value.endswith(":")
    if _DOTTED.fullmatch(value):
        return False
    if _WORDS.fullmatch(value):
        # Words and dotted names; a long mixture of small and capital letters is none.
        return _by_chance(value)
    if _REGEX.search(value):
        return False
    return len(value) >= 8 and (digits or bool(_SPECIAL.search(value))) and len(set(value)) >= 5


def _phrase_word(word: str) -> bool:
    """Whether a word among words is a part of a password: digits are scattered in it, or it has a special character."""
    word = word.rstrip(".,;:!?")
    return strong(word) and bool(_DIGITS.search(word)) and (_scattered(word) or bool(_INNER.search(word)))


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


def places(text: str, word: str) -> Iterator[int]:
    """Where a word occurs: many times as fast as a pattern with alternatives."""
    position = text.find(word)
    while position >= 0:
        yield position
        position = text.find(word, position + 1)


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
