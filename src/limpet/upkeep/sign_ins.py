"""Sign-ins of people at the server's pages: what a browser holds instead of a token.

A sign-in is made from a token that was shown once, is worth less than it (only pages, only for half a day), and ends
with it: whoever looks a sign-in up asks for its token again. Like a token it is 256 random bits of which only a hash is
kept. These entries stand beside those of tokens, in a project that nobody else can have.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from limpet import limits
from limpet.model import ACCESS, EMPTY, Draft, Entry, Scope, Stamp
from limpet.store import DELETE, Decide, Listing, Store

HOME = Scope(limits.OWN_TENANT, "sign-ins")
_SHAPE = re.compile(r"([0-9a-f]{16})_([0-9a-f]{64})")


class SignIn(NamedTuple):
    id: str
    token: str  # the id of the token it stands for; empty for one of an identity provider
    expires_at: int
    who: Mapping[str, Any]  # of an identity provider: what its token said, as there is no token to ask again


def create(store: Store, token: str, expires_at: int, *, now: int, who: Mapping[str, Any] = EMPTY) -> str:
    """What the browser keeps, which is not kept here. Sign-ins that are over go."""
    id, secret = secrets.token_hex(8), secrets.token_hex(32)
    extra = {"token": token, "expires_at": expires_at, "hash": _hash(secret), "who": dict(who)}
    stamp = Stamp("server/sign-in", "sign_in", "", now)
    old = store.entries.list(HOME, Listing((ACCESS,), limit=limits.LIST_MAX)).entries
    edits: list[tuple[str, str, Decide]] = [(ACCESS, id, lambda before: Draft("", extra=extra))]
    edits += [(ACCESS, one.key, lambda before: DELETE) for one in old if one.extra["expires_at"] <= now]
    store.entries.edit_all(HOME, edits, stamp)
    return f"{id}_{secret}"


def recognised(store: Store, presented: str, now: int) -> SignIn | None:
    """The sign-in that was presented, if it is there and not over."""
    shape = _SHAPE.fullmatch(presented)
    entry = store.entries.read(HOME, ACCESS, shape[1]) if shape else None
    if shape is None or entry is None or not hmac.compare_digest(_hash(shape[2]), str(entry.extra["hash"])):
        return None
    found = _sign_in(entry)
    return found if now < found.expires_at else None


def end(store: Store, presented: str, *, now: int) -> None:
    """Sign out. Only who holds the sign-in can end it."""
    found = recognised(store, presented, now)
    if found is not None:
        store.entries.edit(HOME, ACCESS, found.id, lambda before: DELETE, Stamp("server/sign-in", "sign_out", "", now))


def _sign_in(entry: Entry) -> SignIn:
    known = entry.extra
    return SignIn(entry.key, str(known["token"]), known["expires_at"], known["who"])


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
