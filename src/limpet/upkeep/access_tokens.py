"""Access tokens of the HTTP server, and the sign-ins of browsers: created, listed, revoked and recognised.

A token is an entry, so it has a checksum, a version and an event for every change; the events are the history of
access. The entries are stored under a tenant of Limpet's own, whose name is refused for other tenants, because the
tenant of a request is not known until its token has been looked up.

A token is of an agent unless a person makes it for a person, on the command line. A person's token alone can be
exchanged for a sign-in: what comes by a sign-in is the word of a person, and an agent must not get one with its token.

A browser holds a sign-in instead of a token. It is created from a token, opens pages for half a day, and ends with its
token, which is looked up again whenever the sign-in is.

Tokens and sign-ins are 256 random bits, and their SHA-256 is stored in their place. Agents get no operation for them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from limpet import errors, limits
from limpet.catalogue.operation import Json, a_name, storable
from limpet.model import ACCESS, AGENT, EMPTY, PERSON, Draft, Entry, Event, Scope, Stamp, iso
from limpet.record import NamedTuple
from limpet.store import DELETE, Decide, EventQuery, Listing, Store

HOME = Scope(limits.OWN_TENANT, "tokens")
SIGN_INS_HOME = Scope(limits.OWN_TENANT, "sign-ins")
PREFIX = "limpet_"  # identifies tokens of Limpet to programs that search for leaked secrets
SCOPES = ("read", "write", "admin")
EVERY_PROJECT = "*"
EXPIRES = "30d"  # the default
_TOKEN = re.compile(rf"{PREFIX}([0-9a-f]{{12}})_([0-9a-f]{{64}})")
_SIGN_IN = re.compile(r"([0-9a-f]{16})_([0-9a-f]{64})")
_NO_HASH = hashlib.sha256(b"").hexdigest()
_DURATION = re.compile("([1-9][0-9]{0,4})([hdw])")
_UNITS = {"h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}


class Token(NamedTuple):
    """The stored fields of a token. Times are milliseconds."""

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
    kind: str = AGENT

    def state(self, now: int) -> str:
        if self.revoked_at is not None:
            return "revoked"
        return "active" if self.expires_at is None or now < self.expires_at else "expired"

    def good(self, now: int) -> bool:
        return self.state(now) == "active"


class Created(NamedTuple):
    token: Token
    secret: str  # the full token; it is not stored


class TokenRequest(NamedTuple):
    """The checked arguments for a new token."""

    name: str
    tenant: str
    scope: str
    projects: tuple[str, ...]
    expires_at: int | None
    kind: str = AGENT


def token_request(
    name: str, tenant: str, scope: str, projects: Sequence[str], expires: str, now: int, kind: str = AGENT
) -> TokenRequest:
    """Check the arguments for a new token. `expires` is a time from now, such as 12h, 30d or 8w; `expiry` reads it."""
    if scope not in SCOPES:
        raise errors.not_one_of("token create", "scope", scope, SCOPES)
    if not projects:
        raise errors.missing("token create", "project")
    if EVERY_PROJECT in projects and len(projects) > 1:
        raise errors.bad_name("project", EVERY_PROJECT, "it stands for every project and cannot be one of several")
    named = tuple(dict.fromkeys(project_name(project) for project in projects))
    return TokenRequest(subject_name(name), tenant_name(tenant), scope, named, expiry(expires, now), kind)


def subject_name(name: str) -> str:
    """Who a token is for. History shows it after a slash, so it may not contain one."""
    checked = a_name("name", storable("name", name), limits.TOKEN_NAME_CHARS)
    if "/" in checked:
        raise errors.bad_name("name", checked, "it may not have a slash")
    return checked


def tenant_name(name: str) -> str:
    checked = a_name("tenant", storable("tenant", name), limits.PROJECT_NAME_CHARS)
    if checked.startswith("."):
        raise errors.bad_name("tenant", checked, "names with a dot in front are Limpet's own")
    return checked


def project_name(name: str) -> str:
    return a_name("project", storable("project", name), limits.PROJECT_NAME_CHARS)


def expiry(text: str, now: int) -> int | None:
    if text == "never":
        return None
    match = _DURATION.fullmatch(text)
    if match is None:
        raise errors.bad_name("expires", text, "it is a time from now such as 12h, 30d or 8w, or never")
    return now + int(match[1]) * _UNITS[match[2]]


def create(store: Store, request: TokenRequest, *, by: str, now: int) -> Created:
    id, secret = secrets.token_hex(6), secrets.token_hex(32)
    extra = {
        "scope": request.scope,
        "kind": request.kind,
        "projects": list(request.projects),
        "expires_at": request.expires_at,
        "hash": _hash(secret),
        "created_by": by,
    }
    draft = Draft(request.name, session=request.tenant, extra=extra)

    def decide(before: Entry | None) -> Draft:
        if before is not None:  # unlikely with 48 random bits, but it would replace another token
            raise errors.appended_before(ACCESS, id)
        return draft

    change = store.entries.edit(HOME, ACCESS, id, decide, Stamp(by, "create_token", "", now))
    return Created(_token(change.entry), f"{PREFIX}{id}_{secret}")


def recognised(store: Store, presented: str) -> Token | None:
    """The token that was presented, active or not; None if there is none."""
    shape = _TOKEN.fullmatch(presented)
    if shape is None:
        return None
    entry = store.entries.read(HOME, ACCESS, shape[1])
    stored_hash = str(entry.extra["hash"]) if entry else _NO_HASH
    same = hmac.compare_digest(_hash(shape[2]), stored_hash)
    return _token(entry) if entry and same else None


def find(store: Store, id: str) -> Token | None:
    """The token with this id, active or not."""
    entry = store.entries.read(HOME, ACCESS, id)
    return _token(entry) if entry else None


def latest_changes(store: Store) -> tuple[tuple[int, str], ...]:
    """The latest changes of tokens, newest first: the number of each change and the id of its token."""
    return tuple(
        (event.seq, event.key) for event in store.entries.events(HOME, EventQuery(limit=limits.TOKEN_CHANGES_READ))
    )


def listed(store: Store, tenant: str | None) -> tuple[Token, ...]:
    """The tokens of a tenant, or of all tenants, including revoked ones. Newest change first."""
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
    """Revoke a token permanently. NotFound for a token of another tenant, or for a project that is not `allowed`."""

    def decide(before: Entry | None) -> Draft | None:
        if before is None or tenant not in (None, before.session) or not all(map(allowed, before.extra["projects"])):
            raise errors.no_entry("token", id, "`limpet token list` gives the ids that exist.")
        if before.done:
            return None
        return _draft(before)._replace(done=True, extra={**before.extra, "revoked_at": now})

    return _token(store.entries.edit(HOME, ACCESS, id, decide, Stamp(by, "revoke_token", "", now)).entry)


def note_use(store: Store, token: Token, *, now: int) -> None:
    """Record the time of use, once per hour: a write for each request would cost more than the request."""

    def decide(before: Entry | None) -> Draft | None:
        if before is None or before.done or not use_is_old(before.extra.get("used_at"), now):
            return None
        return _draft(before)._replace(extra={**before.extra, "used_at": now})

    store.entries.edit(HOME, ACCESS, token.id, decide, Stamp(f"server/{token.name}", "use_token", "", now))


def use_is_old(used_at: int | None, now: int) -> bool:
    return used_at is None or now - used_at >= limits.TOKEN_USE_NOTED_MS


def history(store: Store, tenant: str | None, limit: int = limits.HISTORY_SHOWN) -> tuple[Event, ...]:
    """The events that created and revoked tokens of a tenant, newest first. Uses are left out."""
    events: list[Event] = []
    for operation in ("create_token", "revoke_token"):
        events += store.entries.events(HOME, EventQuery(kind=ACCESS, operation=operation, limit=limits.LIST_MAX))
    matching = [event for event in events if tenant in (None, _owner(event))]
    return tuple(sorted(matching, key=lambda event: -event.seq)[:limit])


def token_json(token: Token, now: int) -> Json:
    times = {name: getattr(token, name) for name in ("created_at", "expires_at", "used_at", "revoked_at")}
    return {
        **{name: getattr(token, name) for name in ("id", "name", "tenant", "kind", "scope", "created_by")},
        "projects": list(token.projects),
        "state": token.state(now),
        **{name: None if at is None else iso(at) for name, at in times.items()},
    }


def change_json(event: Event) -> Json:
    """A change of a token as a row of the history."""
    entry = event.after or event.before
    fields = {"at": iso(event.at), "by": event.by, "operation": event.operation, "id": event.key}
    return {**fields, "name": entry.content if entry else "", "tenant": _owner(event)}


def _owner(event: Event) -> str:
    entry = event.after or event.before
    return entry.session if entry else ""


def _draft(entry: Entry) -> Draft:
    return Draft(entry.content, entry.session, entry.tags, entry.done, entry.pinned, entry.extra)


def _token(entry: Entry) -> Token:
    extra = entry.extra
    return Token(
        entry.key,
        entry.content,
        entry.session,
        str(extra["scope"]),
        tuple(extra["projects"]),
        entry.created_at,
        str(extra["created_by"]),
        extra["expires_at"],
        extra.get("used_at"),
        extra.get("revoked_at"),
        PERSON if extra.get("kind") == PERSON else AGENT,  # those of earlier versions name none
    )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


# --- sign-ins ---------------------------------------------------------------------------------------------------------


class SignIn(NamedTuple):
    id: str
    token: str  # the id of its token; empty for one of an identity provider
    expires_at: int
    who: Mapping[str, Any]  # the claims of an identity provider, whose token is not stored


def sign_in(store: Store, token: str, expires_at: int, *, now: int, who: Mapping[str, Any] = EMPTY) -> str:
    """Create a sign-in and return its secret, which the browser keeps. Expired sign-ins are deleted."""
    id, secret = secrets.token_hex(8), secrets.token_hex(32)
    extra = {"token": token, "expires_at": expires_at, "hash": _hash(secret), "who": dict(who)}
    stamp = Stamp("server/sign-in", "sign_in", "", now)
    old = store.entries.list(SIGN_INS_HOME, Listing((ACCESS,), limit=limits.LIST_MAX)).entries
    edits: list[tuple[str, str, Decide]] = [(ACCESS, id, lambda before: Draft("", extra=extra))]
    edits += [(ACCESS, entry.key, lambda before: DELETE) for entry in old if entry.extra["expires_at"] <= now]
    store.entries.edit_all(SIGN_INS_HOME, edits, stamp)
    return f"{id}_{secret}"


def recognised_sign_in(store: Store, presented: str, now: int) -> SignIn | None:
    """The sign-in that was presented, if it exists and has not expired."""
    shape = _SIGN_IN.fullmatch(presented)
    entry = store.entries.read(SIGN_INS_HOME, ACCESS, shape[1]) if shape else None
    if shape is None or entry is None or not hmac.compare_digest(_hash(shape[2]), str(entry.extra["hash"])):
        return None
    sign_in = _sign_in(entry)
    return sign_in if now < sign_in.expires_at else None


def sign_out(store: Store, presented: str, *, now: int) -> None:
    """Delete the sign-in that was presented."""
    sign_in = recognised_sign_in(store, presented, now)
    if sign_in is not None:
        stamp = Stamp("server/sign-in", "sign_out", "", now)
        store.entries.edit(SIGN_INS_HOME, ACCESS, sign_in.id, lambda before: DELETE, stamp)


def _sign_in(entry: Entry) -> SignIn:
    extra = entry.extra
    return SignIn(entry.key, str(extra["token"]), extra["expires_at"], extra["who"])
