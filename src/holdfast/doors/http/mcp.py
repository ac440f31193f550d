"""MCP over HTTP at /mcp: the same answers as on stdio.

The official SDK carries the transport (sessions, both eras of the protocol, header rules) and checks every reply
against its own models; what is said comes from `mcp_surface`. A transport session belongs to the credential and the
project that opened it: with another one it is not there.

Which session a call works in, when it names none: the one given to the server; else the one the client names in `_meta`
or in the header Holdfast-Session; else the transport's own session, so that two clients of one server do not write into
each other's notepad. Protocol 2026-07-28 has no transport session; there the last resort is the server's own session,
or that of the token where there are several.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.methods import serialize_server_result
from starlette.responses import JSONResponse

from holdfast import __version__
from holdfast.doors import wire
from holdfast.doors.http import policy
from holdfast.doors.http.gate import SESSION_HEADER, VISIT, Visit
from holdfast.doors.http.principal import Level
from holdfast.doors.mcp_surface import Client, Surface

if TYPE_CHECKING:
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from holdfast.doors.http.quotas import Quotas
    from holdfast.doors.http.threads import Threads
    from holdfast.library import Holdfast, Instructions

TRANSPORT_IDLE_SECONDS = 24 * 3600  # a working day with pauses; a transport session is also a default session
TRANSPORT_SESSIONS_MAX = 1_000  # open at once: far more than the agents of one person
UNUSED_MAX = 1_000  # clients whose instructions are remembered until their first call
BY = "agent/mcp"

_log = logging.getLogger("holdfast.mcp_http")
Kind = type[Surface]


class Answers:
    """The SDK's middleware through which every request goes: it is answered here, by the surface."""

    def __init__(self, home: Holdfast, profile: str, session: str | None, threads: Threads, kind: Kind) -> None:
        self._threads = threads
        self._surfaces = {
            (level, at_home): kind(
                home, profile, session=session, allowed=_allowed(level, at_home), reader=level is Level.READ
            )
            for level in (Level.READ, Level.WRITE, Level.ADMIN)
            for at_home in (True, False)
        }
        self._unused: OrderedDict[tuple[str, ...], Instructions] = OrderedDict()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            return await call_next(ctx)
        # One thread does one whole call. A client that goes away does not stop it half way: the
        # thread is waited for, and what it wrote was one transaction.
        tool = ctx.params.get("name") if ctx.method == "tools/call" and ctx.params else None
        return await self._threads.run(tool, lambda: self._answer(ctx))

    def _answer(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        method, params, revision = ctx.method, dict(ctx.params or {}), ctx.protocol_version
        visit: Visit | None = ctx.request.scope[VISIT] if ctx.request else None
        if visit is None or visit.room is None:  # nothing comes here but through the gate
            raise MCPError(wire.INTERNAL_ERROR, wire.FAILED_INSIDE)
        client = Client(revision=revision, session=_session_in(ctx, visit))
        who = (visit.principal.id, *visit.room.hold.scope, _client_in(ctx))
        if method == "tools/call":
            client.unused = self._unused.pop(who, None)
        surface = self._surfaces[visit.principal.level, visit.room.at_home]
        try:
            reply = surface.over(visit.room.hold, visit.principal.by(BY)).answer(method, params, client, revision)
            return serialize_server_result(method, client.revision or revision, reply)
        except wire.RpcError as problem:
            raise MCPError(problem.code, problem.message, problem.data) from None
        except Exception as problem:
            # The outermost frame of this door. Details stay in the log.
            _log.exception("%s failed", method)
            raise MCPError(wire.INTERNAL_ERROR, wire.FAILED_INSIDE) from problem
        finally:
            self._remember(who, client.unused)

    def _remember(self, who: tuple[str, ...], unused: Instructions | None) -> None:
        if unused is not None:
            self._unused[who] = unused
            while len(self._unused) > UNUSED_MAX:
                self._unused.popitem(last=False)


def _allowed(level: Level, at_home: bool) -> Callable[[str], bool]:
    def allowed(name: str) -> bool:
        needs = policy.OPERATIONS.get(name)
        return needs is not None and needs <= level and (at_home or name not in policy.IN_FOLDER)

    return allowed


def _transport_session(ctx: ServerRequestContext[Any, Any]) -> str | None:
    # The id is in no header yet when a client initializes, so it is taken from where the SDK keeps it.
    return ctx.session._connection.session_id


def _session_in(ctx: ServerRequestContext[Any, Any], visit: Visit) -> str | None:
    named: str | None = ctx.request.headers.get(SESSION_HEADER) if ctx.request else None
    transport = _transport_session(ctx)
    if named or transport:
        return named or f"mcp-{transport}"
    # A client without any name that asks who we are is a new reader, to whom a handoff may be shown.
    if ctx.method == "server/discover":
        return f"mcp-{uuid4().hex}"
    return own_session(visit)


def own_session(visit: Visit) -> str | None:
    """The session of calls that name none: the server's own, or the credential's where there are several."""
    return f"http-{visit.principal.id}" if visit.principal.limited else None


def _client_in(ctx: ServerRequestContext[Any, Any]) -> str:
    """Which client this is, as well as can be told: its transport session, else what it calls itself."""
    known = ctx.session.client_params
    return _transport_session(ctx) or (f"{known.client_info.name} {known.client_info.version}" if known else "")


class McpDoor:
    """`transport` is the SDK's own application; it must be told when the server starts and stops.

    `kind` is what answers; tests put fixtures beside ours.
    """

    def __init__(
        self,
        home: Holdfast,
        profile: str,
        *,
        session: str | None,
        security: TransportSecuritySettings,
        quotas: Quotas,
        threads: Threads,
        kind: Kind = Surface,
        stateless: bool = False,
    ) -> None:
        self._quotas = quotas
        server: Server[Any] = Server("holdfast", version=__version__)
        # In place of the SDK's own: it makes a span of each request, also where nobody asked for any, and names in it
        # what the client sent and what it was told. Ours (watching.py) is one an operation, and holds neither.
        server.middleware[:] = [Answers(home, profile, session, threads, kind)]
        self.transport: ASGIApp = server.streamable_http_app(
            json_response=True,
            stateless_http=stateless,
            transport_security=security,
            max_request_body_size=wire.MESSAGE_MAX_BYTES,
            session_idle_timeout=None if stateless else TRANSPORT_IDLE_SECONDS,
            max_sessions=None if stateless else TRANSPORT_SESSIONS_MAX,
        )
        # The gate has found the way already, so requests need not go through the routes of that application again.
        self._requests: ASGIApp = server.session_manager.handle_request

    async def handle(self, request: Request, visit: Visit) -> ASGIApp:
        body = b""
        if request.method == "POST":
            body = await request.body()  # the gate has bounded it
            # What the SDK would let through is refused: NaN, lone surrogates, deep nesting.
            try:
                message = wire.decode(body)
            except wire.RpcError as problem:
                return JSONResponse(wire.error(problem), status_code=400)
            if refusal := await self._refusal(message, visit):
                return refusal
        request.scope["user"] = _user(visit)
        return _replayed(self._requests, body)

    async def _refusal(self, message: object, visit: Visit) -> ASGIApp | None:
        """Why the visitor may not send this message. What is no message the SDK refuses itself."""
        if not isinstance(message, dict) or not isinstance(method := message.get("method"), str):
            return None
        if refusal := visit.refusal(method, policy.METHODS.get(method, Level.READ)):
            return refusal
        params = message.get("params")
        tool = params.get("name") if method == "tools/call" and isinstance(params, dict) else None
        if not isinstance(tool, str) or tool not in policy.OPERATIONS:
            return None
        return visit.may_call(tool) or await self._quotas.refusal(visit, tool)


def _user(visit: Visit) -> AuthenticatedUser:
    """The owner of transport sessions, in the SDK's words: the credential, in one project."""
    room = visit.room
    place = "" if room is None else f"{room.hold.scope!r}"
    return AuthenticatedUser(AccessToken(token="", client_id=visit.principal.id, scopes=[], subject=place))


def _replayed(app: ASGIApp, body: bytes) -> ASGIApp:
    """The application, given a body that was read already."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        sent = not body

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await app(scope, replay, send)

    return run
