"""Tokens for the HTTP server: made, listed, revoked, and recognised when one comes in.

A token is an entry like all others, so that it has a checksum, a version and an event for every change; making and
revoking one is in the history of who may come in. These entries belong to no project of anybody: they are kept under a
tenant whose name nobody else can have, because whoever comes in with a token is not known before it was looked up.

Of the token itself only a hash is kept. It is 256 random bits, so that a plain SHA-256 cannot be turned back. Nothing
here is an operation that agents are given.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from limpet import errors, limits
from limpet.catalogue.check import a_name, storable
from limpet.catalogue.operation import Json
from limpet.model import ACCESS, Draft, Entry, Event, Scope, Stamp, iso
from limpet.store import EventQuery, Listing, Store

HOME = Scope(limits.OWN_TENANT, "tokens")
PREFIX = "limpet_"  # names us to programs that look for leaked secrets
SCOPES = ("read", "write", "admin")
EVERY_PROJECT = "*"
EXPIRES = "30d"  # unless asked otherwise
_SHAPE = re.compile(rf"{PREFIX}([0-9a-f]{{12}})_([0-9a-f]{{64}})")
_NOBODY = hashlib.sha256(b"").hexdigest()
_TIME = re.compile("([1-9][0-9]{0,4})([hdw])")
_UNITS = {"h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}


class Token(NamedTuple):
    """What is known of a token. Times are milliseconds."""

    id: str
    name: str
    tenant: str
    scope: str
    projects: tuple[str, ...]
    created_at: int
    created_by: str
    expires_at: int | None
    used_at: int | None  # to the hour
    revoked_at: int | None

    def state(self, now: int) -> str:
        if self.revoked_at is not None:
            return "revoked"
        return "active" if self.expires_at is None or now < self.expires_at else "expired"

    def good(self, now: int) -> bool:
        return self.state(now) == "active"


class Created(NamedTuple):
    token: Token
    secret: str  # the whole token, which is shown once and never again


class Wanted(NamedTuple):
    """A token to be made."""

    name: str
    tenant: str
    scope: str
    projects: tuple[str, ...]
    expires_at: int | None


def wanted(name: str, tenant: str, scope: str, projects: Sequence[str], expires: str, now: int) -> Wanted:
    """What somebody asks for, checked. `expires` is a time from now, such as 12h, 30d or 8w, or `never`."""
    if scope not in SCOPES:
        raise errors.not_one_of("token create", "scope", scope, SCOPES)
    if not projects:
        raise errors.missing("token create", "project")
    if EVERY_PROJECT in projects and len(projects) > 1:
        raise errors.bad_name("project", EVERY_PROJECT, "it stands for every project and cannot be one of several")
    named = tuple(dict.fromkeys(project_name(project) for project in projects))
    return Wanted(subject_name(name), tenant_name(tenant), scope, named, expiry(expires, now))


def subject_name(name: str) -> str:
    """Who a token is for. History shows it after a slash, so it has none itself."""
    found = a_name("name", storable("name", name), limits.TOKEN_NAME_CHARS)
    if "/" in found:
        raise errors.bad_name("name", found, "it may not have a slash")
    return found


def tenant_name(name: str) -> str:
    found = a_name("tenant", storable("tenant", name), limits.PROJECT_NAME_CHARS)
    if found.startswith("."):
        raise errors.bad_name("tenant", found, "names with a dot in front are Limpet's own")
    return found


def project_name(name: str) -> str:
    return a_name("project", storable("project", name), limits.PROJECT_NAME_CHARS)


def expiry(text: str, now: int) -> int | None:
    if text == "never":
        return None
    found = _TIME.fullmatch(text)
    if found is None:
        raise errors.bad_name("expires", text, "it is a time from now such as 12h, 30d or 8w, or never")
    return now + int(found[1]) * _UNITS[found[2]]


def create(store: Store, asked: Wanted, *, by: str, now: int) -> Created:
    id, secret = secrets.token_hex(6), secrets.token_hex(32)
    extra = {
        "scope": asked.scope,
        "projects": list(asked.projects),
        "expires_at": asked.expires_at,
        "hash": _hash(secret),
        "created_by": by,
    }
    draft = Draft(asked.name, session=asked.tenant, extra=extra)

    def decide(before: Entry | None) -> Draft:
        if before is not None:  # 48 random bits: not in our lifetime, but never two tokens under one id
            raise errors.appended_before(ACCESS, id)
        return draft

    made = store.entries.edit(HOME, ACCESS, id, decide, Stamp(by, "create_token", "", now))
    return Created(_token(made.entry), f"{PREFIX}{id}_{secret}")


def recognised(store: Store, presented: str) -> Token | None:
    """The token that was presented, good or not; None when there never was such a one."""
    shape = _SHAPE.fullmatch(presented)
    if shape is None:
        return None
    entry = store.entries.read(HOME, ACCESS, shape[1])
    kept = str(entry.extra["hash"]) if entry else _NOBODY
    same = hmac.compare_digest(_hash(shape[2]), kept)
    return _token(entry) if entry and same else None


def known(store: Store, id: str) -> Token | None:
    """The token of this id, good or not, as it is now."""
    entry = store.entries.read(HOME, ACCESS, id)
    return _token(entry) if entry else None


def latest_changes(store: Store) -> tuple[tuple[int, str], ...]:
    """The numbers of the last changes of tokens, and which tokens they changed, the newest first."""
    return tuple(
        (event.seq, event.key) for event in store.entries.events(HOME, EventQuery(limit=limits.TOKEN_CHANGES_READ))
    )


def listed(store: Store, tenant: str | None) -> tuple[Token, ...]:
    """The tokens of a tenant, or of all, revoked ones too. Newest change first."""
    page = store.entries.list(HOME, Listing((ACCESS,), session=tenant, include_done=True, limit=limits.LIST_MAX))
    return tuple(_token(entry) for entry in page.entries)


def revoke(
    store: Store,
    id: str,
    *,
    tenant: str | None,
    by: str,
    now: int,
    allowed: Callable[[str], bool] = lambda project: True,
) -> Token:
    """Close a token for good. One of another tenant, or for a project that is not `allowed`, is not there."""

    def decide(before: Entry | None) -> Draft | None:
        if before is None or tenant not in (None, before.session) or not all(map(allowed, before.extra["projects"])):
            raise errors.no_entry("token", id, "`limpet token list` gives the ids that exist.")
        if before.done:
            return None
        return _draft(before)._replace(done=True, extra={**before.extra, "revoked_at": now})

    return _token(store.entries.edit(HOME, ACCESS, id, decide, Stamp(by, "revoke_token", "", now)).entry)


def note_use(store: Store, token: Token, *, now: int) -> None:
    """Remember that a token is in use: once an hour, because a write for each request costs more than the request."""

    def decide(before: Entry | None) -> Draft | None:
        if before is None or before.done or not use_is_old(before.extra.get("used_at"), now):
            return None
        return _draft(before)._replace(extra={**before.extra, "used_at": now})

    store.entries.edit(HOME, ACCESS, token.id, decide, Stamp(f"server/{token.name}", "use_token", "", now))


def use_is_old(used_at: int | None, now: int) -> bool:
    return used_at is None or now - used_at >= limits.TOKEN_USE_NOTED_MS


def history(store: Store, tenant: str | None, limit: int = limits.HISTORY_SHOWN) -> tuple[Event, ...]:
    """Who made and revoked tokens of a tenant, newest first. Uses are left out."""
    found: list[Event] = []
    for operation in ("create_token", "revoke_token"):
        found += store.entries.events(HOME, EventQuery(kind=ACCESS, operation=operation, limit=limits.LIST_MAX))
    ours = [event for event in found if tenant in (None, _owner(event))]
    return tuple(sorted(ours, key=lambda event: -event.seq)[:limit])


def shown(token: Token, now: int) -> Json:
    times = {name: getattr(token, name) for name in ("created_at", "expires_at", "used_at", "revoked_at")}
    return {
        **{name: getattr(token, name) for name in ("id", "name", "tenant", "scope", "created_by")},
        "projects": list(token.projects),
        "state": token.state(now),
        **{name: None if at is None else iso(at) for name, at in times.items()},
    }


def told(event: Event) -> Json:
    """A change of a token as a line of the history."""
    entry = event.after or event.before
    known = {"at": iso(event.at), "by": event.by, "operation": event.operation, "id": event.key}
    return {**known, "name": entry.content if entry else "", "tenant": _owner(event)}


def _owner(event: Event) -> str:
    entry = event.after or event.before
    return entry.session if entry else ""


def _draft(entry: Entry) -> Draft:
    return Draft(entry.content, entry.session, entry.tags, entry.done, entry.pinned, entry.extra)


def _token(entry: Entry) -> Token:
    known = entry.extra
    return Token(
        entry.key,
        entry.content,
        entry.session,
        str(known["scope"]),
        tuple(known["projects"]),
        entry.created_at,
        str(known["created_by"]),
        known["expires_at"],
        known.get("used_at"),
        known.get("revoked_at"),
    )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
