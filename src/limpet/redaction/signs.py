"""Candidates for secrets, as one RE2 pattern.

The finders (`formats`, `blocks`, `named`) are exact and slow. This pattern is fast and generous: it matches wherever a
finder would, so that the finders search around its matches. It works on bytes, has no look-around, and has a line for
every rule of the finders. A new rule needs its sign here; tests/unit/test_marks.py compares both.
"""

from __future__ import annotations

import re
from functools import cache

from limpet.redaction.formats import FORMATS
from limpet.redaction.named import KEY_WORDS, SUFFIXES

_BLANK = "[^!-~]"  # any byte of a space, also of one that is not ASCII
_CLOSE = r"\\{0,4}[\"'`]?\]?"
_TEXT = r"[bBrRuU]{0,2}\\{0,4}(?:\"[^ \"\n]{3}|'[^ '\n]{3}|`[^ `\n]{3})"
_VALUE = rf"(?:{_TEXT}|[^\s\"'`\\]{{3}}|[>|])"
_NAME = (
    rf"(?:pass(?:word|wd|phrase|code|wort)|(?:_|-|db|user|smtp|mysql|root|admin)pass|pwd|secret|token|credentials?"
    rf"|client-key-data|(?:{KEY_WORDS})[_-]?key){SUFFIXES}{_CLOSE}"
)
_SEPARATOR = r"(?::=|=>|=|:[ ]?(?:&?str|string|final|bytes|text)[^=\n\"']{0,96}=|:|%3d)"
_NAMED = (
    rf"(?i:{_NAME}[ \t]{{0,8}}{_SEPARATOR}[ \t]{{0,8}}){_VALUE}",
    rf"(?i:{_NAME}[ \t]{{0,8}},[ \t]{{0,8}})[bBrRuU]{{0,2}}\\{{0,4}}[\"'`][^ \n]{{6}}",
    rf"(?i:{_NAME}[ \t]{{0,8}}>[ \t]{{0,8}})[^<>\s]{{3}}",
    rf"(?i:--[a-z0-9_.$-]{{0,64}}{_NAME}[ \t]{{1,9}}){_VALUE}",
    rf"(?i:_key{SUFFIXES}{_CLOSE}[ \t]{{0,8}}=[ \t]{{0,8}}){_VALUE}",
)
_KEY_BLOCK = r"-----(?:BEGIN|END)[ +](?:[A-Z0-9]{1,12}[ +]){0,3}PRIVATE[ +]KEY|LS0tLS1CRUdJTi|Private-Lines: "
_AROUND = (
    r":(?://|\\/\\/)[^\s:/@\"'<>`\\]*:[^\s/\"'<>`?#\\]+@",
    rf"(?i:authorization)\\{{0,4}}[\"']?{_BLANK}{{0,12}}(?:[:=,]|%3[aA])",
    r"(?i:bearer)(?:[ \t+]|%20){1,4}[A-Za-z0-9._~+/=|:%-]{16}",
    r"(?i:basic)(?:[ \t+]|%20){1,4}[A-Za-z0-9+/]{8}",
    rf"(?i:auth)\\{{0,4}}[\"']?{_BLANK}{{0,12}}[:=]{_BLANK}{{0,12}}\\{{0,4}}[\"']?[A-Za-z0-9+/]{{8}}",
    r"(?i:curl |mysql|sshpass )",
    rf"login{_BLANK}{{1,24}}[^\s]{{1,512}}{_BLANK}{{1,24}}password{_BLANK}",
)
_DISCORD = r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}"
_OPTIONAL = re.compile(r"\(\?!\[A-Za-z0-9\]\)|\[[^\]]{1,40}\]\*\+$")  # what may or must not follow
_OPEN_END = re.compile(r"\{(\d{1,3}),")
_OPTION = {b"curl": (b"-u", b"--user", b"--proxy-user"), b"mysq": (b"-p",), b"sshp": (b"-p",)}
_COMMAND = 2000  # characters of a command line that its finder looks at


@cache
def pattern() -> str:
    """One alternative for every sign. Without captures, anchors or word boundaries: it says the same on a part."""
    looks = [_sign(form.pattern, form.literals, form.back) for form in FORMATS]
    return "|".join([_KEY_BLOCK, *looks, _DISCORD, *_NAMED, *_AROUND])


def key_block(hit: bytes) -> bool:
    """Whether what was found is of a key block, which may be as long as the text."""
    return hit.startswith((b"-----", b"LS0t", b"Private"))


def command(hit: bytes) -> bool:
    """Whether what was found is the name of a command that takes a password."""
    return hit[:4].lower() in _OPTION


def idle(data: bytes, start: int) -> bool:
    """Whether the command at this place is given no password: most lines that name one are no secret."""
    end = data.find(b"\n", start, start + 4 * _COMMAND)
    options = _OPTION[data[start : start + 4].lower()]
    return not any(data.find(option, start, end if end >= 0 else start + 4 * _COMMAND) >= 0 for option in options)


def _sign(look: str, literals: tuple[str, ...], back: int) -> str:
    """A finder's pattern in the engine's words, from its literal to the first run of any length.

    What is found has to be short: the engine goes on from its second byte, and would read a long one again and again.
    """
    plain = _OPTIONAL.sub("", look)
    plain = plain[plain.index(literals[0].replace(".", r"\.")) :] if back else plain
    run = _OPEN_END.search(plain)
    return f"{plain[: run.start()]}{{{run[1]}}}" if run else plain
