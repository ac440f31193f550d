"""How people come in: a person's token in a form, or the address with a code that `serve` prints; then a cookie.

A token that agents have, which is the token of a local server too, gets no cookie: what comes by one is the word of a
person.

The cookie is not the token. Cookies of one host go to every port of it, so another program on this machine whose page
is opened gets it too: therefore it opens nothing but these pages, for half a day, and ends with the token it came from.
On a server for teams it is a sign-in in the store (upkeep/access_tokens.py), so that any process behind a load balancer
knows it. On a local server it is signed with a key of the run, which stays in memory, and is worth nothing after the
run; codes are signed in the same way. What was used or signed out is known to all workers of the server at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
import tempfile
import time
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread

from limpet import limits
from limpet.doors.http.principal import LEVELS, Level, Principal
from limpet.model import PERSON
from limpet.upkeep import access_tokens

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from limpet.api import Clock
    from limpet.doors.http.capacity import Threads
    from limpet.doors.http.credentials import Credentials, Local
    from limpet.store import Store

REMEMBERED = 10_000  # sign-ins in use, in one process
DIGEST_BYTES = 32  # of SHA-256
CLAIM_BYTES = 16
RECORD_BYTES = DIGEST_BYTES + CLAIM_BYTES
K = TypeVar("K")
V = TypeVar("V")
_TRUST_SECONDS = limits.TOKEN_TRUST_MS / 1_000


class Marks:
    """The codes and cookies of one run of a local server: signed here, and good until they are used up.

    Which are used up is in a file without a name that forked workers inherit. Each use is a record of its own, appended
    in one write: a digest of the mark and a random claim. The first record of a mark decides who used it. So there is
    no lock, which a killed worker could hold.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        with tempfile.TemporaryFile() as file:
            self._file = os.dup(file.fileno())  # inherited by a fork, not by other programs
        weakref.finalize(self, os.close, self._file)
        fcntl.fcntl(self._file, fcntl.F_SETFL, fcntl.fcntl(self._file, fcntl.F_GETFL) | os.O_APPEND)
        self._claims: dict[bytes, bytes] = {}  # the first of each mark that was used
        self._read = 0

    def signed(self, purpose: str, now: int) -> str:
        """A new mark: when it ends, a random part, and the signature."""
        lasting = limits.SIGN_IN_CODE_MS if purpose == "code" else limits.SIGN_IN_MS
        payload = f"{now + lasting}.{secrets.token_hex(16)}"
        return f"{payload}.{self._signature(purpose, payload)}"

    def good(self, purpose: str, mark: str, now: int) -> bool:
        payload, _, signature = mark.rpartition(".")
        until = payload.partition(".")[0]
        right = hmac.compare_digest(signature.encode(), self._signature(purpose, payload).encode())
        return right and until.isdigit() and now < int(until) and _digest(mark) not in self._known()

    def use(self, purpose: str, mark: str, now: int) -> bool:
        """Use up a mark that is good. False for all but the first who try."""
        if not self.good(purpose, mark, now):
            return False
        claim = secrets.token_bytes(CLAIM_BYTES)
        os.write(self._file, _digest(mark) + claim)
        return self._known()[_digest(mark)] == claim

    def _known(self) -> Mapping[bytes, bytes]:
        """The marks that were used, after reading what other workers have added."""
        while data := os.pread(self._file, RECORD_BYTES << 10, self._read):
            for at in range(0, len(data) - RECORD_BYTES + 1, RECORD_BYTES):
                self._claims.setdefault(data[at : at + DIGEST_BYTES], data[at + DIGEST_BYTES : at + RECORD_BYTES])
            self._read += len(data)
        return self._claims

    def _signature(self, purpose: str, payload: str) -> str:
        return hmac.digest(self._key, f"limpet dashboard {purpose} {payload}".encode(), hashlib.sha256).hex()


def _digest(mark: str) -> bytes:
    return hashlib.sha256(mark.encode()).digest()


class People:
    """Who a browser is. `secure` says that it comes over https, where the cookie can be bound to this very host."""

    def __init__(
        self,
        store: Store,
        credentials: Credentials,
        *,
        clock: Clock,
        local: Local | None,
        secure: bool,
        threads: Threads,
        marks: Marks | None = None,
    ) -> None:
        self._store = store
        self._credentials = credentials
        self._clock = clock
        self._local = local
        self._threads = threads
        self.secure = secure
        self._cache: OrderedDict[bytes, tuple[Principal, float]] = OrderedDict()
        self._marks = marks or Marks()
        self.cookie = "__Host-limpet" if secure else "limpet"

    async def principal(self, request: Request) -> Principal | None:
        """Who the cookie of the request belongs to; on a server without a token, its one person."""
        presented = request.cookies.get(self.cookie, "")
        local = self._local
        if local is not None and (local.token is None or self._signed_in(presented)):
            return local.principal
        if not presented:
            return None
        key = hashlib.sha256(presented.encode()).digest()
        principal, until = self._cache.get(key, (None, 0.0))
        if principal is None or time.monotonic() >= until:
            began = time.monotonic()  # it may be revoked from here on, however long the answer takes
            principal = await anyio.to_thread.run_sync(self._look_up, presented)
            self._cache.pop(key, None)
            if principal is not None:
                _put(self._cache, key, (principal, began + _TRUST_SECONDS))
        now = self._clock()
        over = principal is not None and principal.expires_at is not None and now >= principal.expires_at
        return None if over else principal

    async def now(self, request: Request) -> Principal | None:
        """Who a request that is still open comes from, by its token or its cookie, as things are now."""
        headers = request.headers.getlist("authorization")
        return await (self._credentials.principal(headers) if headers else self.principal(request))

    def _signed_in(self, presented: str) -> bool:
        return self._marks.good("cookie", presented, self._clock())

    def _look_up(self, presented: str) -> Principal | None:
        now = self._clock()
        sign_in = access_tokens.recognised_sign_in(self._store, presented, now)
        if sign_in is None:
            return None
        who = sign_in.who
        if not sign_in.token and not who.get("person"):
            return None  # of an earlier version, which gave it to every token
        if not sign_in.token:
            level = Level[who["level"]]
            return Principal(
                who["id"], who["tenant"], who["subject"], level, tuple(who["projects"]), sign_in.expires_at
            )
        token = access_tokens.find(self._store, sign_in.token)
        if token is None or not token.good(now) or token.kind != PERSON:
            return None
        ends = min(sign_in.expires_at, token.expires_at or sign_in.expires_at)
        return Principal(token.id, token.tenant, token.name, LEVELS[token.scope], token.projects, ends)

    async def sign_in(self, token: str) -> str | None:
        """The cookie for the person who holds this token; None when it opens nothing, or is no person's."""
        principal = await self._credentials.principal([f"Bearer {token}"])
        if principal is None or principal.level is Level.PUBLIC or not principal.person:
            return None
        return await self._threads.write(principal, lambda: self._keep(principal, token))

    def _keep(self, principal: Principal, token: str) -> str:
        now = self._clock()
        ends = min(now + limits.SIGN_IN_MS, principal.expires_at or now + limits.SIGN_IN_MS)
        if token.startswith(access_tokens.PREFIX):
            return access_tokens.sign_in(self._store, principal.id, ends, now=now)
        who = {name: getattr(principal, name) for name in ("id", "tenant", "subject")}
        who |= {"level": principal.level.name, "projects": list(principal.projects), "person": True}
        return access_tokens.sign_in(self._store, "", ends, now=now, who=who)

    def sign_in_by_code(self, code: str) -> str | None:
        """The cookie for a code of a local server. A code is good once."""
        now = self._clock()
        return self._marks.signed("cookie", now) if self._marks.use("code", code, now) else None

    async def sign_out(self, request: Request, visitor: Principal) -> None:
        presented = request.cookies.get(self.cookie, "")
        self._cache.pop(hashlib.sha256(presented.encode()).digest(), None)
        now = self._clock()
        if self._signed_in(presented):
            self._marks.use("cookie", presented, now)
        elif presented:
            await self._threads.write(visitor, lambda: access_tokens.sign_out(self._store, presented, now=now))

    def give(self, answer: Response, value: str) -> None:
        seconds = limits.SIGN_IN_MS // 1_000
        answer.set_cookie(
            self.cookie, value, max_age=seconds, path="/", secure=self.secure, httponly=True, samesite="strict"
        )

    def take(self, answer: Response) -> None:
        answer.delete_cookie(self.cookie, path="/", secure=self.secure, httponly=True, samesite="strict")


def _put(cache: OrderedDict[K, V], key: K, value: V) -> None:
    cache[key] = value
    while len(cache) > REMEMBERED:
        cache.popitem(last=False)
