"""The MCP server over HTTP: the same answers as on stdio, at /mcp, behind a bearer token.

The official SDK carries the transport (sessions, both eras of the protocol, header rules) and
checks every reply against its own models; what is said comes from `mcp_surface`. In front of the
SDK stands a gate that lets nobody through who is not meant to be here: the Host and Origin headers
must be ours, so that a web page cannot reach the server through the browser; the token must be
right; the body must be small and strict JSON. /health answers without a token and says nothing.

Which session a call works in, when it names none: the one given to the server; else the one the
client names in `_meta` or in the header Holdfast-Session; else the transport's own session, so
that two clients of one server do not write into each other's notepad. Protocol 2026-07-28 has no
transport session; there the server's own session is the last resort.
"""

from __future__ import annotations

import hmac
import logging
import socket
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anyio.to_thread
import uvicorn
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from mcp.shared.exceptions import MCPError
from mcp_types.methods import serialize_server_result
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast import __version__
from holdfast.doors import wire
from holdfast.doors.mcp_surface import Client, Surface
from holdfast.errors import bad_setting

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from holdfast.library import Holdfast, Instructions

DEFAULT_PORT = 7438
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SESSION_HEADER = "holdfast-session"
TOKEN_MIN_CHARS = 16  # shorter ones can be guessed over a fast loopback
TRANSPORT_IDLE_SECONDS = 24 * 3600  # a working day with pauses; a transport session is also a default session
TRANSPORT_SESSIONS_MAX = 1_000  # open at once: far more than the agents of one person
UNUSED_MAX = 1_000  # clients whose instructions are remembered until their first call
SHUTDOWN_SECONDS = 5  # for requests under way; a waiting event stream would never end by itself

_log = logging.getLogger("holdfast.mcp_http")


class Answers:
    """The SDK's middleware through which every request goes: it is answered here, by the surface."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._unused: OrderedDict[str, Instructions] = OrderedDict()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            return await call_next(ctx)
        # One thread does one whole call. A client that goes away does not stop it half way: the
        # thread is waited for, and what it wrote was one transaction.
        return await anyio.to_thread.run_sync(self._answer, ctx)

    def _answer(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        method, params, revision = ctx.method, dict(ctx.params or {}), ctx.protocol_version
        client = Client(revision=revision, session=_session_in(ctx))
        who = _who(ctx)
        if method == "tools/call":
            client.unused = self._unused.pop(who, None)
        try:
            reply = self._surface.answer(method, params, client, revision)
            return serialize_server_result(method, client.revision or revision, reply)
        except wire.RpcError as problem:
            raise MCPError(problem.code, problem.message, problem.data) from None
        except Exception as problem:
            # The outermost frame of this door. Details stay in the log.
            _log.exception("%s failed", method)
            raise MCPError(wire.INTERNAL_ERROR, wire.FAILED_INSIDE) from problem
        finally:
            self._remember(who, client.unused)

    def _remember(self, who: str, unused: Instructions | None) -> None:
        if unused is not None:
            self._unused[who] = unused
            while len(self._unused) > UNUSED_MAX:
                self._unused.popitem(last=False)


def _transport_session(ctx: ServerRequestContext[Any, Any]) -> str | None:
    # The id is in no header yet when a client initializes, so it is taken from where the SDK keeps it.
    return ctx.session._connection.session_id


def _session_in(ctx: ServerRequestContext[Any, Any]) -> str | None:
    named: str | None = ctx.request.headers.get(SESSION_HEADER) if ctx.request else None
    transport = _transport_session(ctx)
    if named or transport:
        return named or f"mcp-{transport}"
    # A client without any name that asks who we are is a new reader, to whom a handoff may be shown.
    return f"mcp-{uuid4().hex}" if ctx.method == "server/discover" else None


def _who(ctx: ServerRequestContext[Any, Any]) -> str:
    """Which client this is, as well as can be told: its transport session, else what it calls itself."""
    known = ctx.session.client_params
    return _transport_session(ctx) or (f"{known.client_info.name} {known.client_info.version}" if known else "")


class Gate:
    """The ASGI application in front of everything else."""

    def __init__(self, app: ASGIApp, *, token: str | None, security: TransportSecuritySettings) -> None:
        self._app = RequestBodyLimitMiddleware(Strict(app), wire.MESSAGE_MAX_BYTES)
        self._token = None if token is None else token.encode()
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request = Request(scope)
        # The path of the scope decides, never a URL put together from headers the caller wrote.
        refusal = await self._security.validate_request(request)
        if refusal is None and scope["path"] != "/health":
            refusal = self._refusal(request)
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        if self._token is None:
            return None
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token):
            return None
        return JSONResponse(
            {"error": "unauthorized", "message": "This server needs its token: send `Authorization: Bearer <token>`."},
            status_code=401,
            headers={"WWW-Authenticate": 'Bearer realm="holdfast"'},
        )


class Strict:
    """Refuses bodies that the SDK would let through: NaN, lone surrogates, deep nesting."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()  # the middleware in front has bounded it
        try:
            wire.decode(body)
        except wire.RpcError as problem:
            await JSONResponse(wire.error(problem), status_code=400)(scope, receive, send)
            return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def build_app(
    hold: Holdfast,
    profile: str,
    *,
    token: str | None,
    session: str | None = None,
    allowed_hosts: Sequence[str] = ("127.0.0.1:*", "localhost:*", "[::1]:*"),
    allowed_origins: Sequence[str] | None = None,
    surface: type[Surface] = Surface,
) -> ASGIApp:
    """The whole server as an ASGI application. `token=None` turns the token off.

    `surface` is what answers; tests put fixtures beside it. `allowed_hosts` are values of the Host header, `name:port`
    or `name:*`; unless given, the allowed origins are the same over http.
    """
    if token is not None and len(token) < TOKEN_MIN_CHARS:
        raise bad_setting("token", "…", f"it needs at least {TOKEN_MIN_CHARS} characters")
    origins = [f"http://{host}" for host in allowed_hosts] if allowed_origins is None else list(allowed_origins)
    security = TransportSecuritySettings(allowed_hosts=list(allowed_hosts), allowed_origins=origins)
    server: Server[Any] = Server("holdfast", version=__version__)
    server.middleware.append(Answers(surface(hold, profile, session=session)))
    app = server.streamable_http_app(
        json_response=True,
        transport_security=security,
        max_request_body_size=wire.MESSAGE_MAX_BYTES,
        session_idle_timeout=TRANSPORT_IDLE_SECONDS,
        max_sessions=TRANSPORT_SESSIONS_MAX,
        custom_starlette_routes=[Route("/health", _health, methods=["GET"])],
    )
    return Gate(app, token=token, security=security)


class _Uvicorn(uvicorn.Server):
    """Tells when the server can be reached."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()


def serve(
    hold: Holdfast,
    profile: str,
    *,
    token: str | None,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    session: str | None = None,
    allowed_hosts: Sequence[str] = (),
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until SIGINT or SIGTERM. `on_ready` gets the address of the MCP endpoint once it can be reached.

    `port=0` takes any free port. `allowed_hosts` adds names this server is reached by, as `name:port`.
    """
    local = host in ("127.0.0.1", "localhost", "::1")
    if not local and token is None:
        raise bad_setting("host", host, "a server that other machines can reach needs a token")
    shown_host = f"[{host}]" if ":" in host else host
    with _listening(host, port) as listener:
        port = listener.getsockname()[1]
        names = (*LOOPBACK, shown_host) if local else (shown_host,)
        hosts = [*dict.fromkeys(f"{name}:{port}" for name in names), *allowed_hosts]
        app = build_app(hold, profile, token=token, session=session, allowed_hosts=hosts)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nothing here depends on where a request seems to come from
            ws="none",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        _Uvicorn(config, lambda: on_ready(f"http://{shown_host}:{port}/mcp")).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        raise bad_setting("port", port, f"{host} cannot be listened on there ({problem.strerror})") from None
    return listener
