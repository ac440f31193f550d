"""OAuth 2.1, as the server that is protected: access tokens of an identity provider, checked against its public keys.

A token is a signed JWT. It is believed when one of the provider's published keys signed it, with an algorithm of our
list that fits that key; when the provider issued it, for this audience; and within its time. Shared secrets are not
accepted as keys, so a public key cannot be passed off as one. The keys are fetched when needed, kept for some minutes,
and asked for again when a token names a key we have not seen, but not more often than every few seconds.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import jwt

from limpet import errors
from limpet.doors.http.principal import LEVELS, Level, Principal
from limpet.errors import BadInput
from limpet.model import PERSON
from limpet.record import NamedTuple
from limpet.settings import ServerRules
from limpet.upkeep import access_tokens

TOKEN_MAX_CHARS = 16_384  # far above any real one; what is longer is not even looked at
KEYS_MAX_BYTES = 1 << 20
KEYS_MAX = 100  # of one provider; real ones publish two to ten
KEYS_FRESH_SECONDS = 600  # after that they are fetched again with the next token
KEYS_STALE_SECONDS = 24 * 3600  # how long old keys serve while the provider cannot be reached
ASK_AGAIN_SECONDS = 10  # between two fetches, so that made-up key names do not turn us against the provider
FETCH_SECONDS = 5
LEEWAY_SECONDS = 30  # by which two clocks may differ
RSA_MIN_BITS = 2_048

# Algorithm: the kind of key it works with. There is no `none` and nothing with a shared secret (HS…) in here.
ALGORITHMS: Mapping[str, str] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
TYPES = (
    None,
    "jwt",
    "at+jwt",
    "application/at+jwt",
)  # an identity token or a proof of another kind says something else

_log = logging.getLogger("limpet.oauth")


class _InvalidToken(Exception):
    """The token is not good; the text is for the server's log."""


class _Key(NamedTuple):
    kind: str
    algorithm: str | None  # the algorithm that the key names, if it names one
    key: Any


class Keys:
    """A provider's public keys, from an address or a file."""

    def __init__(self, place: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._place = place
        self._read = _fetch if "://" in place else _read_file
        if "://" in place:
            _check_address(place)
        self._clock = clock
        self._keys: dict[str, _Key] = {}
        self._fetched = self._asked = -float("inf")

    def find(self, name: str) -> _Key | None:
        """A key as it is known now."""
        return None if self._clock() - self._fetched > KEYS_STALE_SECONDS else self._keys.get(name)

    def take_turn(self, name: str) -> bool:
        """Whether the caller is to `refresh` before it looks up this key: it is unknown, or was fetched long ago."""
        now = self._clock()
        old = now - self._fetched > KEYS_FRESH_SECONDS
        due = (old or name not in self._keys) and now - self._asked > ASK_AGAIN_SECONDS
        if due:
            self._asked = now
        return due

    def refresh(self) -> None:
        """Ask the provider, which may take long. Others go by what is known meanwhile."""
        try:
            keys = _parse(self._read(self._place))
        except (OSError, ValueError) as problem:
            _log.warning("the keys at %s could not be read: %s", self._place, problem)
        else:
            self._keys, self._fetched = keys, self._clock()
        self._asked = self._clock()


class OAuth:
    """`audience` is this server's own address, unless the settings name another one."""

    def __init__(self, rules: ServerRules, *, audience: str, tenant: str, keys: Keys | None = None) -> None:
        self.issuer = rules.issuer
        self.audience = rules.audience or audience
        if not self.audience:
            raise errors.bad_setting("server.audience", "", "it must say what access tokens are for, or give --url")
        if not rules.jwks:
            raise errors.bad_setting("server.jwks", "", "it must be the address or file of the provider's keys")
        self._rules = rules
        self._tenant = tenant
        self._keys = keys or Keys(rules.jwks)

    def key_state(self, token: str) -> tuple[bool, bool]:
        """Whether the key that a token names is known, and whether the caller is to `refresh_keys` because of it."""
        try:
            name = _header(token).get("kid")
        except (_InvalidToken, jwt.PyJWTError, ValueError, RecursionError):
            return True, False  # it is refused without a key
        if not isinstance(name, str):
            return True, False
        return self._keys.find(name) is not None, self._keys.take_turn(name)

    def refresh_keys(self) -> None:
        self._keys.refresh()

    def principal(self, token: str) -> Principal | None:
        """Who the token speaks for; None when it is not good. Waits for the provider unless another request does."""
        try:
            return self._who(self._claims(token))
        except (_InvalidToken, jwt.PyJWTError, BadInput, ValueError, RecursionError) as problem:
            _log.info("an access token was refused: %s", problem)
            return None

    def _claims(self, token: str) -> dict[str, Any]:
        header = _header(token)
        algorithm, name = header.get("alg"), header.get("kid")
        kind = ALGORITHMS.get(algorithm) if isinstance(algorithm, str) else None
        if kind is None or not isinstance(name, str):
            raise _InvalidToken("its algorithm is not allowed, or it names no key")
        kind_of_token = header.get("typ")
        if isinstance(kind_of_token, str):
            kind_of_token = kind_of_token.lower()
        if "crit" in header or kind_of_token not in TYPES:
            raise _InvalidToken("it is not an access token")
        if self._keys.take_turn(name):
            self._keys.refresh()
        key = self._keys.find(name)
        if key is None or key.kind != kind or key.algorithm not in (None, algorithm):
            raise _InvalidToken("no key of the provider fits it")
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=[str(algorithm)],
            audience=self.audience,
            issuer=self.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        return claims

    def _who(self, claims: Mapping[str, Any]) -> Principal:
        subject = str(claims["sub"])
        scopes = set(_words(claims.get("scope"))) | set(_words(claims.get("scp")))
        levels = [level for name, level in LEVELS.items() if f"{self._rules.scope_prefix}{name}" in scopes]
        tenant = self._tenant
        if self._rules.tenant_claim:
            named = claims.get(self._rules.tenant_claim)
            if not isinstance(named, str):
                raise _InvalidToken("it names no tenant")
            tenant = access_tokens.tenant_name(named)
        named_projects = claims.get(self._rules.projects_claim)
        projects = self._rules.projects if named_projects is None else _words(named_projects)
        # The id tells two users apart even when the printable parts of their names are the same.
        id = hashlib.sha256(json.dumps([self.issuer, tenant, subject]).encode()).hexdigest()[:24]
        printable = "".join(letter if letter.isprintable() and letter != "/" else "_" for letter in subject)[:100]
        return Principal(
            f"user-{id}",
            tenant,
            printable or "_",
            max(levels, default=Level.PUBLIC),
            tuple(access_tokens.project_name(project) for project in projects),
            expires_at=int(claims["exp"]) * 1_000,
            person=f"{self._rules.scope_prefix}{PERSON}" in scopes,
        )


def _header(token: str) -> dict[str, Any]:
    if len(token) > TOKEN_MAX_CHARS or not token.isascii():
        raise _InvalidToken("it is too long, or not a token at all")
    return jwt.get_unverified_header(token)


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split())
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _parse(body: bytes) -> dict[str, _Key]:
    """The keys that verify signatures, by name. Those of other kinds are passed over."""
    document = json.loads(body)
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("it is not a set of keys")
    keys: dict[str, _Key] = {}
    for entry in listed[:KEYS_MAX]:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or not isinstance(entry.get("kid"), str):
            continue
        kind, algorithm = entry.get("kty"), entry.get("alg")
        if kind not in ALGORITHMS.values() or (algorithm is not None and ALGORITHMS.get(algorithm) != kind):
            continue
        try:
            key = jwt.PyJWK(entry, algorithm=algorithm or _usual(entry)).key
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            continue
        if kind == "RSA" and key.key_size < RSA_MIN_BITS:
            continue
        keys[entry["kid"]] = _Key(str(kind), algorithm, key)
    return keys


def _usual(key: Mapping[str, Any]) -> str:
    """An algorithm that reads a key which does not say what it is for."""
    curves = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
    return "RS256" if key.get("kty") == "RSA" else curves.get(str(key.get("crv")), "EdDSA")


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: the keys come from the address in the settings."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


_opener = build_opener(_NoRedirect)


def _fetch(address: str) -> bytes:
    with _opener.open(Request(address, headers={"Accept": "application/json"}), timeout=FETCH_SECONDS) as reply:  # noqa: S310 - checked in _check_address
        body: bytes = reply.read(KEYS_MAX_BYTES + 1)
    if len(body) > KEYS_MAX_BYTES:
        raise ValueError("it is too big for a set of keys")
    return body


def _read_file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(KEYS_MAX_BYTES)


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise errors.bad_setting("server.jwks", address, "it must be an https:// address or a file")
