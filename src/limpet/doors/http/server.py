"""The HTTP server: its parts wired together, and served until SIGINT or SIGTERM.

One port carries MCP, the JSON routes, the dashboard and health. A local server has one person, who holds the token of
the run (or none); a server for teams knows its people by the tokens in the store and by those of an identity provider.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import uvicorn
from starlette.responses import JSONResponse

from limpet.doors.dashboard.app import Dashboard
from limpet.doors.dashboard.pages import PAGES
from limpet.doors.dashboard.sign_in import Marks, People
from limpet.doors.http import api, policy, refusals
from limpet.doors.http import metrics as observed
from limpet.doors.http.capacity import Quotas, Rates, Threads
from limpet.doors.http.connections import ACCEPTED_AT_ONCE, bounded
from limpet.doors.http.credentials import Credentials, Local
from limpet.doors.http.gate import Challenge, Gate, Handler, Pages, Site, Visit
from limpet.doors.http.health import Health
from limpet.doors.http.mcp import Kind, McpDoor, settled
from limpet.doors.http.principal import Level, Principal
from limpet.doors.http.projects import Projects
from limpet.errors import bad_setting
from limpet.protocol.mcp_server import Surface
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from limpet.api import Limpet
    from limpet.doors.http.oauth import OAuth
    from limpet.telemetry import Metrics

DEFAULT_PORT = 7438
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
TOKEN_MIN_CHARS = 16  # shorter ones can be guessed over a fast loopback
SHUTDOWN_SECONDS = 5  # for requests under way; an open event stream does not end by itself
ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")  # without a path or anything that a header could not hold
BACKLOG = 2_048  # connections that wait to be accepted, as uvicorn has it
METADATA = "/.well-known/oauth-protected-resource"

_log = logging.getLogger("limpet.http")


class Offer(NamedTuple):
    """Who may use the server. With `team` there is no token of the run, and `token` is not used."""

    token: str | None = None  # None: every caller is the one person
    team: bool = False
    url: str = ""  # where clients reach the server from outside, without a path; empty: where it listens
    structured: bool = False  # results of tools are values too, with schemas


class Running(NamedTuple):
    """How the server runs. One of several processes has no transport sessions: the next request may reach another."""

    metrics: Metrics | None = None
    listener: socket.socket | None = None  # already open, and shared
    stateless: bool = False
    marks: Marks | None = None  # of sign-ins at a local server, shared by its processes


def build_app(
    hold: Limpet,
    profile: str,
    offer: Offer,
    *,
    session: str | None = None,
    site: Site | None = None,
    kind: Kind = Surface,
    running: Running = Running(),  # noqa: B008  It is frozen.
    stopping: Callable[[], bool] = lambda: False,
) -> ASGIApp:
    """The whole server as an ASGI application.

    `kind` is what answers MCP; tests put fixtures beside ours. `stopping` says when streams that would go on must end.
    """
    site = site or Site()
    oauth = _oauth(hold, offer)
    threads = Threads(rates := Rates(hold.bounds.server))
    if offer.team:
        Quotas(hold.store, hold.bounds.server).watch(hold)
    mcp = McpDoor(
        hold,
        profile,
        session=session,
        site=site,
        threads=threads,
        kind=partial(kind, structured=offer.structured),
        stateless=running.stateless,
    )
    metadata = _Metadata(oauth, offer.url)
    local = _local(hold, offer)
    credentials = Credentials(hold.store, clock=hold.clock, local=local, oauth=oauth)
    secure = offer.url.startswith("https:")
    people = People(
        hold.store, credentials, clock=hold.clock, local=local, secure=secure, marks=running.marks, threads=threads
    )
    dashboard = Dashboard(hold.store, people, threads, clock=hold.clock, stopping=stopping)
    handlers: dict[str, Handler] = {
        "health": Health(hold.store).handle,
        "resource_metadata": metadata.metadata,
        "resource_metadata_mcp": metadata.metadata,
        "mcp": mcp.handle,
        "metrics": observed.Numbers(hold, running.metrics).handle,
        **api.handlers(api.Api(hold.store, hold.clock, threads)),
        **dashboard.handlers(),
    }
    prefix = hold.bounds.server.scope_prefix if oauth else ""
    gate = Gate(
        _with_handlers(routes(), handlers),
        credentials=credentials,
        projects=Projects(hold),
        rates=rates,
        site=site,
        challenge=Challenge(f"{offer.url}{METADATA}/mcp" if oauth else "", prefix),
        lifespan=mcp.lifespan,
        pages=Pages(people.principal, dashboard.refused),
    )
    return gate if running.metrics is None else observed.counted(gate, running.metrics)


def routes() -> tuple[policy.Route, ...]:
    """Every route of the server: those of the policy and one per page of the dashboard."""
    return (*policy.ROUTES, *map(policy.page_route, PAGES))


def _with_handlers(table: Sequence[policy.Route], handlers: Mapping[str, Handler]) -> dict[policy.Route, Handler]:
    if odd := {route.name for route in table} ^ handlers.keys():
        raise LookupError(f"routes and handlers do not match: {', '.join(sorted(odd))}")
    return {route: handlers[route.name] for route in table}


def _local(hold: Limpet, offer: Offer) -> Local | None:
    if offer.team:
        return None
    if offer.token is not None and len(offer.token) < TOKEN_MIN_CHARS:
        raise bad_setting("token", "…", f"it needs at least {TOKEN_MIN_CHARS} characters")
    projects = (hold.scope.project,)
    person = Principal("local", hold.scope.tenant, "", Level.ADMIN, projects, limited=False, own_machine=True)
    return Local(person, None if offer.token is None else offer.token.encode())


def _oauth(hold: Limpet, offer: Offer) -> OAuth | None:
    rules = hold.bounds.server
    if not (offer.team and rules.issuer):
        return None
    from limpet.doors.http.oauth import OAuth  # late: few have an identity provider, and it needs cryptography

    return OAuth(rules, audience=f"{offer.url}/mcp" if offer.url else "", tenant=hold.scope.tenant)


class _Metadata:
    """The public metadata: where to get an access token, if there is such a place (RFC 9728)."""

    def __init__(self, oauth: OAuth | None, url: str) -> None:
        self._oauth = oauth
        self._url = url

    async def metadata(self, request: Request, visit: Visit) -> ASGIApp:
        if self._oauth is None:
            return refusals.no_route(request.scope["path"])
        prefix = visit.challenge.scope_prefix
        return JSONResponse(
            {
                "resource": self._oauth.audience,
                "authorization_servers": [self._oauth.issuer],
                "scopes_supported": [f"{prefix}{scope}" for scope in ("read", "write", "admin")],
                "bearer_methods_supported": ["header"],
                "resource_name": "Limpet",
            }
        )


class _Uvicorn(uvicorn.Server):
    """Tells when the server can be reached, and when it begins to stop."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None], on_stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started
        self._on_stopping = on_stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(_log_problem)
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)  # asyncio has set the number that it accepts at once
        if self.started:
            settled()
            self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stopping()
        await super().shutdown(sockets)


def _log_problem(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log a problem of the event loop: in one line if a connection could not be accepted."""
    problem = context.get("exception")
    if isinstance(problem, OSError) and problem.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
        _log.warning("no connection can be accepted for a second: %s", problem.strerror)
    else:
        loop.default_exception_handler(context)


def serve(
    hold: Limpet,
    profile: str,
    offer: Offer,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    session: str | None = None,
    on_ready: Callable[[str], None] = lambda url: None,
    running: Running = Running(),  # noqa: B008  It is frozen.
) -> None:
    """Serve until SIGINT or SIGTERM. `on_ready` gets the address of the MCP endpoint once it can be reached.

    `port=0` takes any free port.
    """
    local = host in ("127.0.0.1", "localhost", "::1")
    if not local and offer.token is None and not offer.team:
        raise bad_setting("host", host, "a server that other machines can reach needs a token")
    shown_host = f"[{host}]" if ":" in host else host
    with running.listener or listening(host, port) as listener:
        port = listener.getsockname()[1]
        names = (*LOOPBACK, shown_host) if local else (shown_host,)
        site = site_of([*dict.fromkeys(f"{name}:{port}" for name in names)], offer.url)
        reachable = offer._replace(url=(offer.url or f"http://{shown_host}:{port}").rstrip("/"))
        stop = Event()
        app = build_app(hold, profile, reachable, session=session, site=site, running=running, stopping=stop.is_set)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nothing here depends on where a request seems to come from
            ws="none",
            http=bounded(),
            backlog=ACCEPTED_AT_ONCE,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        _Uvicorn(config, lambda: on_ready(f"{reachable.url}/mcp"), stop.set).run(sockets=[listener])


def site_of(listening: Sequence[str], url: str) -> Site:
    """The names a server is reached by: where it listens, and its public address if it has one."""
    origins = [f"http://{host}" for host in listening]
    if not url:
        return Site(tuple(listening), tuple(origins))
    parts = urlsplit(url)
    if not ADDRESS.fullmatch(url):
        raise bad_setting("url", url, "it must be an address without a path, such as https://limpet.example.org")
    return Site((*listening, parts.netloc), (*origins, f"{parts.scheme}://{parts.netloc}"))


def listening(host: str, port: int) -> socket.socket:
    # asyncio sets TCP_NODELAY on a socket whose protocol is TCP. Without it each reply waits 40 ms for the client to
    # acknowledge its head.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        rule = f"{host} cannot be listened on there ({problem.strerror}); `--port 0` takes a free one"
        raise bad_setting("port", port, rule) from None
    return listener
