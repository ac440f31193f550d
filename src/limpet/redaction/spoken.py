"""Secrets in sentences: "the password for staging is …", in the languages that people write notes in."""

# ruff: noqa: RUF001 - the punctuation of other languages is meant

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from limpet.redaction.values import Span, by_chance, late, places, strong

# Words that `named` knows too, as names of variables: here a sentence has to say that a value follows.
NAMES = ("password", "passphrase", "passcode", "passwd", "passwort", "pwd", "pw")
WORDS = (
    *("passord", "kennwort", "zugangscode", "mot de passe", "contraseña", "contrasena", "senha", "palavra-passe"),
    *("parola d'ordine", "wachtwoord", "hasło", "haslo", "lösenord", "adgangskode", "salasana", "heslo", "jelszó"),
    *("şifre", "parolă", "пароль", "密码", "密碼", "口令", "暗号", "パスワード", "비밀번호", "암호"),
)
_NAME, _WORD = ("|".join(map(re.escape, words)) for words in (NAMES, WORDS))
IS = "is|was|ist|lautet|war|heißt|est|était|es|era|é|è|e'"
_ARE = rf"{IS}|to|jest|är|er|on|je|это|是|为|為|は|는|은|の|가"
FOR = (
    "for|of|to|on|at|in|from|für|fuer|von|zu|zum|zur|am|auf|bei|pour|de|du|sur|para|del|da|do|per|voor|van|dla|для|от|к"
)
_ACCOUNTS = ("log", "sign in", "credential", "creds", "account", "zugangsdaten", "identifiants")
ACCOUNT = "log ?in|logged|sign in|credentials?|creds|account|zugangsdaten|identifiants|credenciales"
WITH = "with|use|using|and|the|mit|und|avec|et|con|y|com|и"
AS = ("as", "als", "comme", "como")  # "use … as the password"
WIDE = "：＝﹕∶꞉"  # colons and the like that are not ASCII, so that `named` does not see them
_PLACE = rf"(?:[ \t]{{1,3}}(?:{FOR})(?:[ \t]{{1,3}}[^\s:：=]{{1,32}}){{1,5}}?)"  # "for the staging server"
_OPEN = r"[\"'`“„«「‘*_]{0,3}"
_VALUE = r"([^\s\"'`“”„«»「」’，。；、<>]{4,128})"
_SAID = late(
    rf"(?:\b(?:{_NAME})(?:{_PLACE}?[ \t]{{1,3}}(?:{IS})[ \t]{{0,3}}[:：]?|{_PLACE}[ \t]{{0,3}}[:：=])"
    rf"|(?:{_NAME})[ \t]{{0,3}}[{WIDE}]"
    rf"|(?:{_WORD}){_PLACE}?[ \t]{{0,3}}(?:(?:{_ARE})[ \t]{{0,3}}[:：=]?|[:：=]|[-–—](?=\s)))"
    rf"[ \t]{{0,3}}{_OPEN}{_VALUE}",
    re.IGNORECASE,
)
_WITH = late(rf"[ \t]{{1,3}}{_OPEN}{_VALUE}")
_BEFORE_WITH = late(rf"(?:^|[^a-z])(?:{WITH})[ \t]{{1,3}}\Z", re.IGNORECASE)
_PAIR = late(
    rf"(?:{ACCOUNT})\b[^\n/\"'<>{{}}]{{0,40}}?(?<![\w.@>}}+-])[a-z0-9][\w.@-]{{1,63}}"
    rf"[ \t]{{0,2}}/[ \t]{{0,2}}{_OPEN}{_VALUE}",
    re.IGNORECASE,
)
_KEY = late(
    rf"(?:token|key|secret)"
    rf"(?:(?:[ \t]{{1,3}}[^\s:：=]{{1,24}}){{0,5}}?[ \t]{{1,3}}(?:{IS})[ \t]{{0,3}}[:：=]?|[ \t]{{0,3}}[{WIDE}])"
    rf"[ \t]{{0,3}}{_OPEN}{_VALUE}",
    re.IGNORECASE,
)
_BEFORE_KEY = late(r"(?:api|access|secret|auth|licen[cs]e|deploy|signing|encryption)[ -]?\Z", re.IGNORECASE)
_AS = late(rf"[ \t](?:{'|'.join(AS)})[ \t](?:[a-z']{{1,16}}[ \t]){{0,4}}\Z", re.IGNORECASE)
_AS_CHARS = 80  # characters before the name in which the sentence says it
_AFTER_AS = late(
    rf"(?:{_NAME})(?:\s{{0,8}}\Z|[ \t]{{0,3}}[\n\r.,;:!?)]|[ \t]{{1,3}}(?:{FOR}|and|when|und|et|y)\b)", re.IGNORECASE
)
_LAST_WORD = late(r"[^\s\"'`“”„«»「」’，。；、<>]{6,128}(?=[\"'`”“»」’*_]{0,3}\Z)")
_PHRASE = late(
    r"\b(?:seed|recovery|mnemonic|backup|wallet)[ -]?(?:phrase|words?|seed|mnemonic)?[ \t]{0,3}(?:is|are|[:=])"
    r"[ \t\"'`]{0,4}((?:[a-z]{3,8}[ \t]{1,2}){11,23}[a-z]{3,8})\b",
    re.IGNORECASE,
)
_ENDS = ".,;:!?)*_。，；！？)）』」です"


def spoken(text: str, lower: str) -> Iterator[Span]:
    """Every secret that a sentence gives away; `lower` is the text in lower case, of equal length, and in ASCII."""
    for name in NAMES:
        for position in places(lower, name):
            yield from _value(_SAID, text, position, "password", strong)
            if _BEFORE_WITH.search(text, max(0, position - 12), position):
                yield from _value(_WITH, text, position + len(name), "password", strong)
            yield from _as_password(text, position)
    full = lower if text.isascii() else text.lower()
    if len(full) == len(text):  # a few letters of Turkish have two in lower case
        for position in (position for word in WORDS for position in places(full, word)):
            yield from _value(_SAID, text, position, "password", strong)
    if "/" in text:
        for position in (position for word in _ACCOUNTS for position in places(lower, word)):
            yield from _value(_PAIR, text, position, "password", _in_pair)
    for word in ("token", "secret", "key"):
        for position in places(lower, word):
            if word != "key" or _BEFORE_KEY.search(text, max(0, position - 12), position):
                yield from _value(_KEY, text, position, "secret", by_chance)
    for match in _PHRASE.finditer(text) if "seed" in lower or "phrase" in lower or "mnemonic" in lower else ():
        if len(set(match.group(1).lower().split())) >= 9:
            yield Span(*match.span(1), "seed-phrase")


def _value(
    pattern: re.Pattern[str], text: str, position: int, kind: str, accepts: Callable[[str], bool]
) -> Iterator[Span]:
    if match := pattern.match(text, position):
        value = match.group(1).rstrip(_ENDS)
        if accepts(value):
            yield Span(match.start(1), match.start(1) + len(value), kind)


def _as_password(text: str, position: int) -> Iterator[Span]:
    """The word before "as the password"."""
    match_before = _AS.search(text, max(0, position - _AS_CHARS), position)
    if match_before and _AFTER_AS.match(text, position):
        lowest = max(0, match_before.start() - 140)
        start = lowest + max(map(text[lowest : match_before.start()].rfind, " \n\t")) + 1
        word = _LAST_WORD.search(text[start : match_before.start()])
        if word and strong(word.group()):
            yield Span(start + word.start(), start + word.end(), "password")


def _in_pair(value: str) -> bool:
    return strong(value) and "/" not in value
