"""Secrets recognised by context: key blocks, URLs, headers, cookies and files of passwords."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from limpet.redaction.values import Span, late, mixed, placeholder

# A block ends at the next row of five dashes: what comes after belongs to the next block, so no text is read twice.
_PEM_HEAD = late(r"-----BEGIN[ +](?:[A-Z0-9]{1,12}[ +]){0,3}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----")
_PEM_BODY = late(r"(?:[^-]|-(?!----))*")
_PEM_TAIL = late(r"-----END[ +](?:[A-Z0-9]{1,12}[ +]){0,3}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----")
_PEM_TORN = late(r"(?:[A-Za-z0-9+/=]|\s|\\{1,4}[nr])*")
_PEM_NOISE = late(r"\\{1,4}[nr]|[^A-Za-z0-9+/=]")
_PEM_LINE = late(r"[ \t>|]{0,16}[A-Za-z0-9+/]{1,76}={0,2}[ \t\r]{0,4}")
# "-----BEGIN" in base64, as in a kubeconfig or a variable of a build server.
_PEM_BASE64 = "LS0tLS1CRUdJTi"
_BASE64 = late(r"[A-Za-z0-9+/_-]*+={0,2}")
_PUTTY = late(r"Private-Lines: [0-9]{1,4}\s{1,4}((?:[A-Za-z0-9+/]{1,76}={0,2}\s{0,2})++)")

# The last @ before a slash ends the password: an unencoded one may be part of it.
_URL = late(r":(?://|\\/\\/)([^\s:/@\"'<>`\\]{0,256}):([^\s/\"'<>`?#\\]{1,256})@(?=[\w\[.{$-])", re.ASCII)
_SCHEME_END = frozenset("abcdefghijklmnopqrstuvwxyz0123456789+.-")

_VALUE = r"[a-z0-9._~+/=|:%-]"
_AUTHORIZATION = late(
    r"authorization\\{0,4}[\"']?\s{0,4}(?:[:=,]|%3a)\s{0,4}\\{0,4}[\"']?"
    r"(?:(basic|bearer|token|apikey|api-key|key|negotiate|ntlm|bot|oauth|geniekey|sso-key|splunk)"
    r"(?:[ \t+]|%20){1,4})?"
    rf"({_VALUE}++)"
)
_BEARER = late(rf"bearer(?:[ \t+]|%20){{1,4}}({_VALUE}{{16,}}+)")
_BASIC = late(r"basic(?:[ \t+]|%20){1,4}([a-z0-9+/]{8,}+={0,2})")
_AUTH_FIELD = late(r"auth\\{0,4}[\"']?\s{0,4}[:=]\s{0,4}\\{0,4}[\"']?([a-z0-9+/]{8,}+={0,2})")

_COOKIE = late(r"cookie\\{0,4}[\"']?\s{0,4}[:=,]\s{0,4}\\{0,4}[\"']?(?=[a-z0-9_.$%|-]{1,64}=)")
_COOKIE_CHARS = 2_000  # of a header that are looked at
_PAIR = late(r"([A-Za-z0-9_.$%|-]{1,64})=([^\s;,\"'\\]{1,1024}+)")
_SESSION_NAME = late(
    r"sess|sid|auth|token|csrf|xsrf|jwt|login|remember|ident|secure|host|account|logged|clearance|li_at"
)
_COUNTING = late(r"_g|_fb|__utm|amp_|ajs_|_hj|optimizely|intercom-id|_uetvid|_pk_|max-age|expires|path|domain")
SESSION_COOKIES = (
    r"(?:PHPSESSID|JSESSIONID|jsessionid|ASP\.NET_SessionId|connect\.sid|laravel_session|ci_session|_session_id"
    r"|ASPSESSIONID[A-Z]{8}|wordpress_logged_in_[0-9a-f]{32})"
)
_SESSION_WORDS = ("sessid", "sessionid", "connect.sid", "_session", "logged_in_")
_SESSION = late(rf"{SESSION_COOKIES}=([A-Za-z0-9%._~+/-]{{16,1024}}+)")
# host:port:database:user:password, alone on its line.
_PGPASS = late(
    r"(?:\n|\A)[A-Za-z*/][\w.*/-]{0,254}:(?:[0-9]{3,5}|\*):[A-Za-z_*][\w*-]{0,63}:[A-Za-z_*][\w@.*-]{0,63}"
    r":([^\s:]{3,256}+)[ \t\r]*+(?=\n|\Z)"
)
_NETRC = late(r"login\s{1,8}\S{1,128}\s{1,8}password\s{1,8}(\S{1,256})")


def key_blocks(text: str) -> Iterator[Span]:
    """Every private key in a block of its own, which may be as long as the text."""
    if "PRIVATE" in text:
        yield from _pem(text)
    if _PEM_BASE64 in text:
        yield from _pem_base64(text)
    for match in _PUTTY.finditer(text) if "Private-Lines: " in text else ():
        yield Span(match.start(1), match.end(1), "private-key", _PEM_NOISE.sub("", match.group(1)))


def surrounded(text: str, lower: str) -> Iterator[Span]:
    """Every secret in a URL or a header; `lower` is the text in lower case, of equal length."""
    for mark in ("://", ":\\/\\/"):
        if mark in text:
            yield from _urls(text, lower, mark)
    yield from _headers(text, lower)


def _pem(text: str) -> Iterator[Span]:
    position = text.find("-----BEGIN")
    ends = []
    while position >= 0:
        following = position + 10
        if head := _PEM_HEAD.match(text, position):
            body = _PEM_BODY.match(text, head.end())
            tail = _PEM_TAIL.match(text, body.end()) if body else None
            if not tail:  # cut off: what looks like the key's lines goes, the text after it stays
                body = _PEM_TORN.match(text, head.end())
            following = tail.end() if tail else body.end() if body else head.end()
            token = _PEM_NOISE.sub("", body.group()) if body else ""
            if len(token) >= 16 and not placeholder(token):
                ends.append(following)
                yield Span(position, following, "private-key", token)
        position = text.find("-----BEGIN", following)
    yield from _pem_ends(text, frozenset(ends))


def _pem_ends(text: str, masked_ends: frozenset[int]) -> Iterator[Span]:
    """The end of a block whose beginning is in another text."""
    for tail in _PEM_TAIL.finditer(text):
        start = tail.start()
        while tail.end() not in masked_ends and start > 0 and text[start - 1] == "\n":
            line = max(text.rfind("\n", max(0, start - 100), start - 1) + 1, start - 100, 0)
            if not _PEM_LINE.fullmatch(text, line, start - 1):
                break
            start = line
        if start < tail.start():
            yield Span(start, tail.end(), "private-key", _PEM_NOISE.sub("", text[start : tail.start()]))


def _pem_base64(text: str) -> Iterator[Span]:
    position = text.find(_PEM_BASE64)
    while position >= 0:
        match = _BASE64.match(text, position)
        end = match.end() if match else position + len(_PEM_BASE64)
        if "PRIVATE KEY" in _decoded(text[position : min(end, position + 80)]):
            yield Span(position, end, "private-key", text[position:end])
        position = text.find(_PEM_BASE64, end)


def _urls(text: str, lower: str, mark: str) -> Iterator[Span]:
    position = text.find(mark)
    while position >= 0:
        following = position + len(mark)
        match = _URL.match(text, position) if position > 0 and lower[position - 1] in _SCHEME_END else None
        if match and not placeholder(match.group(2)):
            following = match.end()
            yield Span(match.start(2), match.end(2), "password")
        position = text.find(mark, following)


def _headers(text: str, lower: str) -> Iterator[Span]:
    for match in _AUTHORIZATION.finditer(lower) if "authorization" in lower else ():
        value = text[match.start(2) : match.end(2)]
        if len(set(value)) < 5:
            continue  # a row of zeros
        basic = match.group(1) == "basic"
        enough = mixed(value) and len(value) >= (8 if match.group(1) else 20)
        if (enough or (match.group(1) and len(value) >= (8 if basic else 24))) and not placeholder(value):
            yield Span(match.start(2), match.end(2), "password" if basic else "secret")
    for match in _BEARER.finditer(lower) if "bearer" in lower else ():
        value = text[match.start(1) : match.end(1)]
        if mixed(value) and not placeholder(value):
            yield Span(match.start(1), match.end(1), "secret")
    for word, pattern in (("basic", _BASIC), ("auth", _AUTH_FIELD)):
        for match in pattern.finditer(lower) if word in lower else ():
            if ":" in _decoded(text[match.start(1) : match.end(1)]):
                yield Span(match.start(1), match.end(1), "password")


def cookies(text: str, lower: str) -> Iterator[Span]:
    """Every session in a header or a parameter."""
    reached = 0
    for header in _COOKIE.finditer(lower) if "cookie" in lower else ():
        if header.start() < reached:
            continue  # a part of the header before
        line = text.find("\n", header.end(), header.end() + _COOKIE_CHARS)
        reached = line if line >= 0 else header.end() + _COOKIE_CHARS
        for match in _PAIR.finditer(text, header.end(), reached):
            name, value = match.group(1).lower(), match.group(2)
            telling = _SESSION_NAME.search(name) and len(value) >= 12
            if (telling or len(value) >= 20) and mixed(value) and not _COUNTING.match(name) and not placeholder(value):
                yield Span(*match.span(2), "cookie")
    for match in _SESSION.finditer(text) if any(word in lower for word in _SESSION_WORDS) else ():
        if mixed(match.group(1)) and not placeholder(match.group(1)):
            yield Span(*match.span(1), "cookie")


def password_files(text: str, lower: str) -> Iterator[Span]:
    """Every password in .netrc and .pgpass."""
    for match in _NETRC.finditer(text) if "login" in lower else ():
        if not placeholder(match.group(1)):
            yield Span(match.start(1), match.end(1), "password")
    for match in _PGPASS.finditer(text) if text.count(":") >= 4 else ():
        if not match.group(1).isdigit() and not placeholder(match.group(1)):
            yield Span(*match.span(1), "password")


def _decoded(value: str) -> str:
    """What base64 text says, or nothing when it is no base64 of readable text."""
    quads = value[: len(value) - len(value) % 4] if "=" not in value else value
    try:
        plain = base64.b64decode(quads, altchars=b"-_" if "-" in quads or "_" in quads else None, validate=True)
        text = plain.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return text if text.replace("\n", "").replace("\r", "").isprintable() else ""
