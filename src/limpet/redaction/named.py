"""Secrets recognised by name: NAME=value, "name": "value", --name value, <name>value</name>."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from limpet.redaction.values import Span, late, secret_value, turns

# After the name: its closing quote or bracket, then what separates name and value. The word alone is the fast prefix.
SUFFIXES = r"(?:[_-]?[0-9]{1,3}|[_-](?:prod|production|dev|staging|live|test|base|value|data|hash|old|new|default))?"
# Where the name is itself a value: `<add key="DbPassword" value="…">`, `{"name": "DB_PASSWORD", "value": "…"}`.
MEMBER = r",?(?:\\{1,4}[nrt]|\s){1,24}\\{0,4}[\"']?value\\{0,4}[\"']?"
_AFTER = (
    SUFFIXES + r"(?P<close>\\{0,4}[\"'`])?\]?" + f"(?P<member>{MEMBER}(?=[ \\t]{{0,8}}[:=]))?"
    r"(?:[ \t]{0,8}(?P<sep>:=|=>|=(?!=)|:[ ]?(?:&?str|string|final|bytes|text)[^=\n\"']{0,24}=|:(?!:)|,|>|%3d)|[ \t])"
    r"(?:[ \t]{0,8}[>|]-?\n[ \t]{1,16}|[ \t]{0,8})"
)
_PATTERNS = tuple(
    (word[:4] if word.startswith("pass") else word, f"{word}{_AFTER}")
    for word in (
        "pass(?:word|wd|phrase|code|wort)?",
        "pwd",
        "secret",
        "token",
        "key",
        "credentials",
        "key-data",
        "credential",
    )
)
_NAME_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_.-$"
KEY_WORDS = (
    r"api|access|secret|private|auth|encrypt|encryption|signing|sign|account|shared|sharedaccess|service|"
    r"master|licen[cs]e|crypto?|cipher|hmac|jwt|webhook|admin|app|application|subscription|deploy|preshared|pre-shared|"
    r"psk|session|storage|integration|authorization|client|root|write|server|x-functions|ocp-apim-subscription"
)
_KEYS = late(
    rf"(?:^|[^a-z])(?:{KEY_WORDS}|"
    r"[a-z0-9_-]{0,24}(?:api|secret|access|private|auth|account|encryption|signing))[_-]?$"
)
# Names that end in such a word and are no secrets: cursors of lists, special tokens of a model, keys of a table.
_HARMLESS = late(
    r"(?:(?:^|[^a-z0-9])(?:page|next|cursor|sync|resume|eos|bos|pad|unk|mask|sep|cls|special|stop|max|min|num|count|total|"
    r"last|first|prev|sort|cache|lookup|change|cancel|per|no|dict|hot|map|object|row|column|group|index)|nextpage|nextsync|"
    r"continuation|cancellation|clientrequest|lifecycleaction|starting|public|primary|foreign|partition|idempotency)[_-]?$"
)
_compiled = cache(re.compile)  # at the first match of its word, which keeps the import cheap
_LITERAL = late(r"(?P<prefix>[bBrRuU]{0,2})(?P<quote>\\{0,4}[\"'`])")
_BODIES = {
    '"': late(r'[^"\\\n]*+(?:\\[^\n"][^"\\\n]*+)*+'),
    "'": late(r"[^'\\\n]*+(?:\\[^\n'][^'\\\n]*+)*+"),
    "`": late(r"[^`\\\n]*+(?:\\[^\n`][^`\\\n]*+)*+"),
}
_ESCAPED_BODY = late(r"[^\"'\\\n]*+")
# Longer values are read to their end after they are accepted, so that each attempt is bounded.
_LONGEST = 256
_BARE = late(rf"[^\s\"'`<>,;&(){{}}\[\]|\\]{{1,{_LONGEST}}}+")
_BARE_REST = late(r"[^\s\"'`<>,;&(){}\[\]|\\]*+")
_LINE_VALUE = late(rf"[^\s\"'`\\]{{1,{_LONGEST}}}+")
_LINE_REST = late(r"[^\s\"'`\\]*+")
_ELEMENT = late(r"([^<>\s]{1,512}+)</")
_LINE_END = late(r"[ \t]*+(?:#[^\n]{0,200}+)?(?:\r?\n|\\n|\\r|\Z)")
_AWS_SECRET = late(r"[A-Za-z0-9/+]{40}")
_AZURE_KEY = late(r"[A-Za-z0-9+/]{86}==")
_RESOURCE = late(r"\barn:[^\s\"']{1,79}:\Z")  # of a cloud: arn:aws:secretsmanager:…:secret:name
_LINE_START = late(r"(?:^|[\n;]|\\n|\\r)[ \t]*+(?:export |set |env |- )?[\"'`]?\Z")


def named(text: str, lower: str) -> Iterator[Span]:
    """Every value whose name says that it is secret; `lower` is the text in lower case, of equal length."""
    for word, after in _PATTERNS:
        if word not in lower:
            continue
        pattern = _compiled(after)
        match = pattern.search(lower)
        while match:
            span = _value(text, lower, match)
            if span:
                yield span
            match = pattern.search(lower, span.end if span else match.end())


def _value(text: str, lower: str, match: re.Match[str]) -> Span | None:
    start = _name_start(lower, match.start())
    name = lower[start : match.start()]
    separator = match.group("sep") or ""
    if (
        lower.endswith(("redacted:", "::"), 0, start)  # after colons it is the name of a type
        or _RESOURCE.search(lower, max(0, start - 80), start)
        or not _secret_name(name, match)
        or not (separator or name.startswith("--"))
    ):
        return None
    word_end = next(
        (end for end in (match.end("close"), match.start("member"), match.start("sep")) if end >= 0), match.end()
    )
    password = match.group().startswith(("pass", "pwd"))
    place = _read(text, match.end(), separator, text[start:word_end].strip("\"'`\\[] \t"), start, password)
    return Span(*place, *_kind(text[place[0] : place[1]], name, match.group(), password)) if place else None


def _kind(value: str, name: str, word: str, password: bool) -> tuple[str, str | None]:
    if _AWS_SECRET.fullmatch(value) and ("secret" in name or "aws" in name):
        return "aws-secret-key", value
    if _AZURE_KEY.fullmatch(value):
        return "azure-storage-key", value
    if word.startswith("key-data"):
        return "private-key", value
    return "password" if password else "secret", None


def _name_start(lower: str, position: int) -> int:
    lowest = max(0, position - 64)
    return lowest + len(lower[lowest:position].rstrip(_NAME_LETTERS))


def _secret_name(name: str, match: re.Match[str]) -> bool:
    word = match.group()
    if not word.startswith(("pass", "pwd")) and _HARMLESS.search(name):
        return False
    if word.startswith("key-data"):
        return name.endswith("client-")
    if word.startswith("key"):
        return bool(_KEYS.search(name)) or (match.group("sep") == "=" and name.endswith("_"))
    if word.startswith("pass") and not word.startswith(("passw", "passp", "passc")):
        return name.endswith(("_", "-", "db", "user", "smtp", "mysql", "root", "admin"))
    return True


def _read(text: str, at: int, separator: str, name: str, start: int, password: bool) -> tuple[int, int] | None:
    """Where the value is, when it is one."""
    if separator == ">":
        element = _ELEMENT.match(text, at)
        good = element and secret_value(element.group(1), password=password, quoted=True, plain_line=False)
        return element.span(1) if element and good else None
    literal = _LITERAL.match(text, at)
    if literal and (body := _BODIES.get(literal.group("quote"), _ESCAPED_BODY).match(text, literal.end())):
        value = body.group()
        if separator == ",":  # two arguments in a row: a stricter test
            good = (
                len(value) >= 12
                and any(sign.isdigit() for sign in value)
                and secret_value(value, password=False, quoted=True, plain_line=False)
            )
        else:
            good = secret_value(value, password=password, quoted=True, plain_line=False)
        return body.span() if good else None
    if separator == ",":
        return None
    return _unquoted(text, at, separator, name, start, password)


def _unquoted(text: str, at: int, separator: str, name: str, start: int, password: bool) -> tuple[int, int] | None:
    tight = separator == "=" and text[at - 1 : at] == "="
    loud = name.isupper() and tight
    flag = name.startswith("--")
    value = (_LINE_VALUE if loud or flag else _BARE).match(text, at)
    if not value:
        return None
    begin, end = value.span()
    bare = value.group().rstrip(",;)}]")
    if "(" in bare or not bare or not name:
        return None
    line = loud or flag
    if not line and (tight or separator == ":") and _LINE_END.match(text, end):
        # A line of its own, as in a settings file: `password=word` or `password: word`.
        line = bool(_LINE_START.search(text, max(0, start - 40), start)) and (password or separator == "=")
        line = line and "." not in bare and (not bare[0].isupper() or turns(bare) >= 6)
    if name.lower().endswith("key") and not _KEYS.search(name.lower()[:-3]):
        good = len(bare) >= 20 and secret_value(bare, password=False, quoted=False, plain_line=False)
    else:
        good = secret_value(bare, password=password, quoted=False, plain_line=line)
    if not good:
        return None
    rest = (_LINE_REST if loud or flag else _BARE_REST).match(text, end)
    return begin, rest.end() if end - begin == _LONGEST and rest else begin + len(bare)
