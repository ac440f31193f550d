"""Candidates for secrets, as one RE2 pattern.

The finders (`formats`, `blocks`, `named`) are exact and slow. This pattern is fast and generous: it matches wherever a
finder would, so that the finders search around its matches. It works on bytes, has no look-around, and has a line for
every rule of the finders. A new rule needs its sign here; tests/unit/test_marks.py compares both.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from limpet.redaction.blocks import SESSION_COOKIES
from limpet.redaction.commands import COMMANDS as COMMAND_LINES
from limpet.redaction.commands import LINE
from limpet.redaction.formats import FORMATS
from limpet.redaction.named import KEY_WORDS, MEMBER, SUFFIXES
from limpet.redaction.spoken import ACCOUNT, AS, FOR, IS, NAMES, WIDE, WITH, WORDS
from limpet.text.marks import engine

_BLANK = "[^!-~]"  # any byte of a space, also of one that is not ASCII
_CLOSE = r"\\{0,4}[\"'`]?\]?"
_TEXT = r"[bBrRuU]{0,2}\\{0,4}(?:\"[^\"\n]{3}|'[^'\n]{3}|`[^`\n]{3})"
_VALUE = rf"(?:{_TEXT}|[^\s\"'`\\]{{3}}|[>|])"
_NAME = (
    rf"(?:pass(?:word|wd|phrase|code|wort)|(?:_|-|db|user|smtp|mysql|root|admin)pass|pwd|secret|token|credentials?"
    rf"|client-key-data|(?:{KEY_WORDS})[_-]?key){SUFFIXES}{_CLOSE}"
)
_SEPARATOR = r"(?::=|=>|=|:[ ]?(?:&?str|string|final|bytes|text)[^=\n\"']{0,96}=|:|%3d)"
_NAMED = (
    rf"(?i:{_NAME}(?:{MEMBER})?[ \t]{{0,8}}{_SEPARATOR}[ \t]{{0,8}}){_VALUE}",
    rf"(?i:{_NAME}[ \t]{{0,8}},[ \t]{{0,8}})[bBrRuU]{{0,2}}\\{{0,4}}[\"'`][^ \n]{{6}}",
    rf"(?i:{_NAME}[ \t]{{0,8}}>[ \t]{{0,8}})[^<>\s]{{3}}",
    rf"(?i:--(?:[a-z0-9_.$][a-z0-9_.$-]{{0,63}})?{_NAME}[ \t]{{1,9}}){_VALUE}",
    rf"(?i:_key{SUFFIXES}{_CLOSE}[ \t]{{0,8}}=[ \t]{{0,8}}){_VALUE}",
)
_KEY_BLOCK = r"-----(?:BEGIN|END)[ +](?:[A-Z0-9]{1,12}[ +]){0,3}PRIVATE[ +]KEY|LS0tLS1CRUdJTi|Private-Lines: "
_AROUND = (
    r":(?://|\\/\\/)[^\s:/@\"'<>`\\]*:[^\s/\"'<>`?#\\]+@",
    rf"(?i:authorization)\\{{0,4}}[\"']?{_BLANK}{{0,12}}(?:[:=,]|%3[aA])",
    r"(?i:bearer)(?:[ \t+]|%20){1,4}[A-Za-z0-9._~+/=|:%-]{16}",
    r"(?i:basic)(?:[ \t+]|%20){1,4}[A-Za-z0-9+/]{8}",
    rf"(?i:auth)\\{{0,4}}[\"']?{_BLANK}{{0,12}}[:=]{_BLANK}{{0,12}}\\{{0,4}}[\"']?[A-Za-z0-9+/]{{8}}",
)
_COMMANDS = (
    "(?i:" + "|".join(re.escape(command) for command, *_ in COMMAND_LINES) + ")",
    r"\|[ \t]{0,4}(?:sudo|chp|passwd|docker|podman|helm|oras|nerdctl|kinit|cryp)",  # behind an echo
    rf"{_BLANK}(?i:-(?:pass(?:word|wd|phrase)?|token|secret|api-?key)[ =])[^\s-][^\s]{{5}}",
)
_FILES = (
    rf"(?i:cookie)\\{{0,4}}[\"']?{_BLANK}{{0,12}}[:=,]{_BLANK}{{0,12}}\\{{0,4}}[\"']?[A-Za-z0-9_.$%|-]{{1,64}}=",
    rf"{SESSION_COOKIES}=[A-Za-z0-9%._~+/-]{{16}}",
    rf"login{_BLANK}{{1,24}}[^\s]{{1,512}}{_BLANK}{{1,24}}password{_BLANK}",
    r"[\w.*/-]:(?:[0-9]{3,5}|\*):[A-Za-z_*][^:\s]{0,63}:[A-Za-z_*][^:\s]{0,63}:[^:\s]{3}",
)
_SPACES = r"[ \t]{1,3}"
_NAMES = "(?:" + "|".join(NAMES) + ")"
_SPOKEN = (
    rf"(?i:{_NAMES}{_SPACES}(?:{IS}))[ \t:]",
    rf"(?i:{_NAMES}{_SPACES}(?:{FOR})[ \t][^\n:=]{{1,140}}(?:[:=]|[ \t](?:{IS})[ \t:]))",
    rf"(?i:(?:{WITH}){_SPACES}{_NAMES}{_SPACES})[^\s]{{0,24}}[0-9!@#$%^&*+=?~]",
    rf"(?i:{_NAMES}|token|key|secret)[ \t]{{0,3}}(?:{'|'.join(WIDE)})",
    rf"[ \t](?i:(?:{'|'.join(AS)})[ \t](?:[a-z']+[ \t]){{0,4}}{_NAMES})",
    "(?i:" + "|".join(WORDS) + ")",
    rf"(?i:{ACCOUNT})",  # before a pair with a slash
    rf"[ \t](?i:{IS})[ \t]{{0,3}}[:=]?[^A-Za-z0-9]{{0,12}}[\w+/.-]{{16}}",  # some words behind "token"
    r"(?i:seed|recovery|mnemonic|backup|wallet)[^\n]{0,24}(?:is|are|[:=])[ \t\"'`]{0,4}(?i:[a-z]{3,8}[ \t]{1,2}){11}",
)
_DISCORD = r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}"
_OPTIONAL = re.compile(r"\(\?!\[A-Za-z0-9\]\)|\[[^\]]{1,40}\]\*\+$")  # what may or must not follow
_OPEN_END = re.compile(r"\{(\d{1,3}),")
_OPTIONS = {command.encode(): options for command, options, *_ in COMMAND_LINES}


# Groups of finders: by format, by name and context, on command lines, in files and headers, in sentences.
FORMAT, CONTEXT, COMMANDS, FILES, SPOKEN = "format", "context", "commands", "files", "spoken"


@cache
def pattern() -> str:
    """One alternative for every sign. Without captures, anchors or word boundaries: it says the same on a part."""
    return "|".join([_KEY_BLOCK, *(look for looks in _looks().values() for look in looks)])


@cache
def _looks() -> dict[str, tuple[str, ...]]:
    formats = (_sign(form.pattern, form.literals, form.back) for form in FORMATS)
    return {
        FORMAT: (*formats, _DISCORD),
        CONTEXT: (*_NAMED, *_AROUND),
        COMMANDS: _COMMANDS,
        FILES: _FILES,
        SPOKEN: _SPOKEN,
    }


def groups(data: bytes, start: int) -> list[str]:
    """The groups of finders that have a sign at this byte."""
    return [group for group, look in _engines().items() if look.match(data, start)]


@cache
def _engines() -> dict[str, Any]:
    return {group: engine("|".join(looks)) for group, looks in _looks().items()}


def key_block(hit: bytes) -> bool:
    """Whether what was found is of a key block, which may be as long as the text."""
    return hit.startswith((b"-----", b"LS0t", b"Private"))


def command(hit: bytes) -> bool:
    """Whether what was found is the name of a command that takes a password."""
    return hit.lower() in _OPTIONS


def long_line(hit: bytes) -> bool:
    """Whether the secret may be far behind what was found, on the same line."""
    return command(hit) or hit[:6].lower() == b"cookie"


def idle(data: bytes, start: int, hit: bytes) -> bool:
    """Whether the command at this place is given no password: most lines that name one are no secret."""
    end = data.find(b"\n", start, start + 4 * LINE)
    line = data[start : end if end >= 0 else start + 4 * LINE]
    return not any(option in line for option in _OPTIONS[hit.lower()])


def _sign(look: str, literals: tuple[str, ...], back: int) -> str:
    """A finder's pattern in the engine's words, from its literal to the first run of any length.

    What is found has to be short: the engine goes on from its second byte, and would read a long one again and again.
    """
    plain = _OPTIONAL.sub("", look)
    plain = plain[plain.index(literals[0].replace(".", r"\.")) :] if back else plain
    run = _OPEN_END.search(plain)
    return f"{plain[: run.start()]}{{{run[1]}}}" if run else plain
