"""MCP over HTTP at /mcp: the same answers as on stdio.

The official SDK carries the transport (sessions, both eras of the protocol, header rules) and checks replies against
its own models; the answers come from `protocol/mcp_server.py`. A transport session belongs to the credential and the
project that opened it: with another one it does not exist. A tool call of a session that the SDK has just served takes
the fast path past it (fast_path.py), with the same answer.

Which session a call works in, when it names none: the one given to the server; else the one the client names in `_meta`
or in the header Limpet-Session; else the transport's own session, so that two clients of one server do not write into
each other's notepad. Protocol 2026-07-28 has no transport session; there the last resort is the server's own session,
or that of the token where there are several.

The SDK takes longer to import than the rest of the server together, so it is imported when the first request needs it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anyio
import anyio.to_thread
from starlette.responses import JSONResponse, Response

from limpet import __version__
from limpet.doors.http import policy, refusals
from limpet.doors.http.fast_path import CALL, SESSION_ID, FastCall, FastPath, Owner
from limpet.doors.http.gate import SESSION_HEADER, VISIT, Site, Visit, replayed
from limpet.doors.http.principal import Level
from limpet.errors import LimpetError
from limpet.protocol import jsonrpc
from limpet.protocol.mcp_server import ClientState, Surface, finished
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from anyio.abc import TaskGroup, TaskStatus
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from limpet.api import Instructions, Limpet
    from limpet.doors.http.capacity import Threads

TRANSPORT_IDLE_SECONDS = 24 * 3600  # a working day with pauses; a transport session is also a default session
TRANSPORT_SESSIONS_MAX = 1_000  # open at once: far more than the agents of one person
UNUSED_MAX = 1_000  # clients of which it is remembered what they were shown
MARK_SECONDS = 0.1  # for a handoff to be recorded as used before a read is answered; usually milliseconds
DOOR = "mcp"  # in the history
GARBAGE_AFTER = 10_000  # objects; some megabytes at most wait to be found

_log = logging.getLogger("limpet.mcp_http")
Kind = Callable[..., Surface]


class McpRequest(NamedTuple):
    """A request of the protocol, with its principal and session."""

    method: str
    params: jsonrpc.Json
    revision: str
    visit: Visit
    session: str | None  # the one it works in when it names none itself
    client: str  # which client this is, as far as is known
    knows_session: bool  # False: other clients may work in that session too
    checked: bool = False  # whether the reply is checked against the SDK's models, which also put it into their order


class Answers:
    """The SDK's middleware through which every request goes: it is answered here, by the surface."""

    def __init__(
        self, home: Limpet, profile: str, session: str | None, threads: Threads, kind: Kind, fast_path: FastPath
    ) -> None:
        self._threads = threads
        self._fast_path = fast_path
        self._surfaces = {
            (level, has_folder): kind(
                home, profile, session=session, allowed=_allowed(level, has_folder), reader=level is Level.READ
            )
            for level in (Level.READ, Level.WRITE, Level.ADMIN)
            for has_folder in (True, False)
        }
        self._unused: OrderedDict[tuple[str, ...], Instructions] = OrderedDict()
        self._greeted: OrderedDict[tuple[str, ...], set[str | None]] = OrderedDict()
        self._shown: dict[tuple[str, ...], Callable[[], None]] = {}  # of calls under way
        self._marking: set[asyncio.Task[None]] = set()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        from mcp.shared.exceptions import MCPError

        if ctx.request_id is None:
            return await call_next(ctx)
        visit: Visit | None = ctx.request.scope[VISIT] if ctx.request else None
        if visit is None:  # nothing comes here but through the gate
            raise MCPError(jsonrpc.INTERNAL_ERROR, jsonrpc.FAILED_INSIDE)
        transport = _transport_session(ctx)
        if ctx.method == CALL and transport:
            self._fast_path.served(transport, owner(visit), ctx.protocol_version)
        params = dict(ctx.params or {})
        session, client = _session_in(ctx, visit), _client_in(ctx)
        knows = bool(_named_session(ctx))
        try:
            request = McpRequest(ctx.method, params, ctx.protocol_version, visit, session, client, knows, True)
            return await self.answer(request)
        except jsonrpc.RpcError as problem:
            raise MCPError(problem.code, problem.message, problem.data) from None
        except refusals.Refused as problem:
            raise MCPError(jsonrpc.INVALID_REQUEST, problem.message) from None

    async def answer(self, request: McpRequest) -> dict[str, Any]:
        """The reply, RpcError, or Refused when too much is under way. Nothing else comes out of here."""
        # One thread does one whole call. A client that goes away does not stop it half way: the
        # thread is waited for, and what it wrote was one transaction.
        tool = request.params.get("name") if request.method == CALL else None
        if not isinstance(tool, str):
            tool = None
        elif tool not in policy.WRITING:
            await self._mark_used(request)
        try:
            return await self._threads.run(request.visit.principal, tool, partial(self._answer, request))
        finally:
            await self._mark_shown(request)

    async def _mark_used(self, request: McpRequest) -> None:
        """Record that the instructions were read. A call that reads does not wait for the write lock because of it."""
        who, principal = _who(request), request.visit.principal
        unused = None if principal.level is Level.READ else self._unused.pop(who, None)
        if unused is None:
            return

        async def mark() -> None:
            try:
                await self._threads.write(principal, unused.used)
            except (LimpetError, refusals.Refused):
                self._remember(who, unused)  # the next call tries again

        await self._begin(mark())

    async def _mark_shown(self, request: McpRequest) -> None:
        """Record which handoffs the model now has, for sessions that begin beside it."""
        record = self._shown.pop(_who(request), None)
        if record is None:
            return

        async def mark() -> None:
            with suppress(LimpetError, refusals.Refused):  # the call itself was answered
                await self._threads.write(request.visit.principal, record)

        await self._begin(mark())

    async def _begin(self, marking: Coroutine[Any, Any, None]) -> None:
        """Wait a moment for a write that no reply depends on. It is done even if it takes longer."""
        task = asyncio.create_task(marking)
        self._marking.add(task)
        task.add_done_callback(self._marking.discard)
        await asyncio.wait({task}, timeout=MARK_SECONDS)

    def _answer(self, request: McpRequest) -> dict[str, Any]:
        visit, project = request.visit, request.visit.project
        knows = request.knows_session
        client = ClientState(revision=request.revision, session=request.session, knows_session=knows)
        who = _who(request)
        try:
            if project is None:
                raise LookupError("a request without a project came through the gate")
            if request.method == CALL:
                client.unused = self._unused.pop(who, None)
                client.greeted = self._greeted.setdefault(who, set())
            surface = self._surfaces[visit.principal.level, project.has_folder].over(project.hold, visit.by(DOOR))
            handler = surface.handler(request.method, request.params, request.revision)
            reply = finished(request.method, handler(request.params, client, request.revision), request.revision)
            return _checked(request.method, client.revision or request.revision, reply) if request.checked else reply
        except jsonrpc.RpcError:
            raise
        except Exception as problem:
            # The outermost frame of this door. Details stay in the log.
            _log.exception("%s failed", request.method)
            raise jsonrpc.RpcError(jsonrpc.INTERNAL_ERROR, jsonrpc.FAILED_INSIDE) from problem
        finally:
            self._remember(who, client.unused)
            if client.record_shown is not None:
                self._shown[who] = client.record_shown

    def _remember(self, who: tuple[str, ...], unused: Instructions | None) -> None:
        if unused is not None:
            self._unused[who] = unused
        for remembered in (self._unused, self._greeted):
            while len(remembered) > UNUSED_MAX:
                remembered.popitem(last=False)


def _who(request: McpRequest) -> tuple[str, ...]:
    """Whose instructions are remembered: the credential's, in one project, for one client."""
    project = request.visit.project
    return (request.visit.principal.id, *(project.hold.scope if project else ()), request.client)


def _allowed(level: Level, has_folder: bool) -> Callable[[str], bool]:
    def allowed(name: str) -> bool:
        needs = policy.OPERATIONS.get(name)
        return needs is not None and needs <= level and (has_folder or name not in policy.IN_FOLDER)

    return allowed


def _transport_session(ctx: ServerRequestContext[Any, Any]) -> str | None:
    # The id is in no header yet when a client initializes, so it is taken from where the SDK keeps it.
    return ctx.session._connection.session_id


def _named_session(ctx: ServerRequestContext[Any, Any]) -> str | None:
    """The session of this one client: what its header says, or its transport session."""
    named: str | None = ctx.request.headers.get(SESSION_HEADER) if ctx.request else None
    transport = _transport_session(ctx)
    return named or (f"mcp-{transport}" if transport else None)


def _session_in(ctx: ServerRequestContext[Any, Any], visit: Visit) -> str | None:
    if named := _named_session(ctx):
        return named
    # A client without any name that asks who we are is a new reader, to whom a handoff may be shown.
    if ctx.method == "server/discover":
        return f"mcp-{uuid4().hex}"
    return own_session(visit)


def own_session(visit: Visit) -> str | None:
    """The session of calls that name none: the server's own, or the credential's where there are several."""
    return f"http-{visit.principal.id}" if visit.principal.limited else None


def _client_in(ctx: ServerRequestContext[Any, Any]) -> str:
    """Which client this is: its transport session, else its name and version."""
    params = ctx.session.client_params
    return _transport_session(ctx) or (f"{params.client_info.name} {params.client_info.version}" if params else "")


class Transport:
    """The SDK's sessions, which begin with the first request for them and end with the server."""

    def __init__(self, answers: Answers, site: Site, *, stateless: bool) -> None:
        self._answers = answers
        self._site = site
        self._stateless = stateless
        self._beginning = anyio.Lock()
        self._stopping = anyio.Event()
        self._tasks: TaskGroup | None = None
        self._requests: ASGIApp | None = None

    async def lifespan(self, _scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        async with anyio.create_task_group() as self._tasks:
            await send({"type": "lifespan.startup.complete"})
            await receive()
            self._stopping.set()
        await send({"type": "lifespan.shutdown.complete"})

    async def requests(self) -> ASGIApp:
        """What serves requests. The gate has found the way already, so they need not go through the SDK's routes."""
        async with self._beginning:
            if self._requests is None:
                if self._tasks is None:
                    raise LookupError("a request came before the server had started")
                manager = await anyio.to_thread.run_sync(self._manager)
                await self._tasks.start(self._run, manager)
                self._requests = manager.handle_request
            return self._requests

    async def _run(self, manager: StreamableHTTPSessionManager, *, task_status: TaskStatus[None]) -> None:
        async with manager.run():
            task_status.started()
            await self._stopping.wait()

    def _manager(self) -> StreamableHTTPSessionManager:
        from mcp.server import Server
        from mcp.server.transport_security import TransportSecuritySettings

        server: Server[Any] = Server("limpet", version=__version__)
        # Replaces the SDK's own middleware, which records a span with arguments and results for each request. Ours
        # (telemetry.py) records one per operation, on request, and without either.
        server.middleware[:] = [self._answers]
        server.streamable_http_app(
            json_response=True,
            stateless_http=self._stateless,
            transport_security=TransportSecuritySettings(
                allowed_hosts=list(self._site.hosts), allowed_origins=list(self._site.origins)
            ),
            max_request_body_size=jsonrpc.MESSAGE_MAX_BYTES,
            session_idle_timeout=None if self._stateless else TRANSPORT_IDLE_SECONDS,
            max_sessions=None if self._stateless else TRANSPORT_SESSIONS_MAX,
        )
        settled()
        return server.session_manager


def settled() -> None:
    """Spare a process that serves for long from going through what it began with, again and again.

    Python looks for cycles of garbage whenever 700 objects more were made than went, which a single request can be.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER, *gc.get_threshold()[1:])


class McpDoor:
    """`kind` is what answers; tests put fixtures beside ours."""

    def __init__(
        self,
        home: Limpet,
        profile: str,
        *,
        session: str | None,
        site: Site,
        threads: Threads,
        kind: Kind = Surface,
        stateless: bool = False,
    ) -> None:
        self._fast_path = FastPath(stateless=stateless)
        self._answers = Answers(home, profile, session, threads, kind, self._fast_path)
        self._transport = Transport(self._answers, site, stateless=stateless)
        self.lifespan: ASGIApp = self._transport.lifespan

    async def handle(self, request: Request, visit: Visit) -> ASGIApp:
        body = b""
        if request.method == "POST":
            body = await request.body()  # the gate has bounded it
            # What the SDK would let through is refused: NaN, lone surrogates, deep nesting.
            try:
                message = jsonrpc.decode(body)
            except jsonrpc.RpcError as problem:
                return JSONResponse(jsonrpc.error(problem), status_code=400)
            if refusal := self._refusal(message, visit):
                return refusal
            # Half of a character is refused by the SDK in words of its own.
            if not jsonrpc.may_hold_halves(body) and (call := self._fast_path.call(request, message, owner(visit))):
                return await self._called(request, call, visit)
        requests = await self._transport.requests()
        request.scope["user"] = _user(visit)
        ending = self._fast_path.ending(request, requests)
        return replayed(ending, body) if request.method == "POST" else ending

    async def _called(self, request: Request, call: FastCall, visit: Visit) -> ASGIApp:
        """The answer to a tool call that went the short way."""
        named = request.headers.get(SESSION_HEADER)
        session = named or (f"mcp-{call.transport}" if call.transport else own_session(visit))
        knows = bool(named or call.transport)
        try:
            tool_call = McpRequest(CALL, call.params, call.revision, visit, session, call.transport, knows)
            reply = jsonrpc.result(call.id, await self._answers.answer(tool_call))
        except jsonrpc.RpcError as problem:
            reply = jsonrpc.error(problem, call.id)
        headers = {SESSION_ID: call.transport} if call.transport else None
        return Response(jsonrpc.encode(reply), headers=headers, media_type="application/json")

    def _refusal(self, message: object, visit: Visit) -> ASGIApp | None:
        """Why the visitor may not send this message. What is no message the SDK refuses itself."""
        if not isinstance(message, dict) or not isinstance(method := message.get("method"), str):
            return None
        if refusal := visit.refusal(method, policy.METHODS.get(method, Level.READ)):
            return refusal
        params = message.get("params")
        tool = params.get("name") if method == "tools/call" and isinstance(params, dict) else None
        if not isinstance(tool, str) or tool not in policy.OPERATIONS:
            return None
        return visit.may_call(tool)


def owner(visit: Visit) -> Owner:
    """Whose a transport session is: the credential's, in one project."""
    return visit.principal.id, "" if visit.project is None else f"{visit.project.hold.scope!r}"


def _user(visit: Visit) -> AuthenticatedUser:
    """The same in the SDK's words."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    principal, place = owner(visit)
    return AuthenticatedUser(AccessToken(token="", client_id=principal, scopes=[], subject=place))


def _checked(method: str, revision: str, reply: dict[str, Any]) -> dict[str, Any]:
    from mcp_types.methods import serialize_server_result

    return serialize_server_result(method, revision, reply)
