"""The gate: the ASGI application in front of everything else. Nothing is reached but through it.

In this order: the Host and Origin headers must be ours, so that a web page cannot reach the server through the browser;
the path is looked up in the policy; unless the door is open to all, the credential must be good; then how often, which
way, what it takes, and which project. Then the route's handler is called, with a `Visit` that says who and where. The
path of the scope decides, not a URL put together from headers that the caller wrote.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from limpet.doors.http import policy, refusals
from limpet.doors.http.principal import Level, Principal
from limpet.errors import LimpetError, StoreProblem
from limpet.model import AGENT, PERSON
from limpet.protocol import jsonrpc
from limpet.record import NamedTuple
from limpet.upkeep.access_tokens import project_name

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from limpet.doors.http.capacity import Rates
    from limpet.doors.http.credentials import Credentials
    from limpet.doors.http.projects import Projects, ServedProject

VISIT = "limpet"  # where a request's scope holds its Visit
PROJECT_HEADER = "limpet-project"
SESSION_HEADER = "limpet-session"

_log = logging.getLogger("limpet.http")


class Challenge(NamedTuple):
    """What the WWW-Authenticate header says about getting better credentials."""

    metadata: str = ""  # the address of the resource's metadata, where there is an identity provider
    scope_prefix: str = ""

    def words(self) -> str:
        return f', resource_metadata="{self.metadata}"' if self.metadata else ""


class Site(NamedTuple):
    """The names this server goes by: values of the Host header, `name:port` or `name:*`, and of Origin."""

    hosts: tuple[str, ...] = ("127.0.0.1:*", "localhost:*", "[::1]:*")
    origins: tuple[str, ...] = ("http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*")

    def refusal(self, request: Request) -> Response | None:
        """Why a request for another server, or from a page of another one, is not served. As the MCP SDK says it."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not _is_one_of(host, self.hosts):
            _log.warning("a request for another host was refused: %r", host)
            return Response("Invalid Host header", status_code=421)
        if origin and not _is_one_of(origin, self.origins):
            _log.warning("a request of a page from elsewhere was refused: %r", origin)
            return Response("Invalid Origin header", status_code=403)
        return None


class Visit(NamedTuple):
    """A request that was let in: who it is, where they are, and what the path named."""

    principal: Principal
    project: ServedProject | None  # for routes of a project
    parts: Mapping[str, str]
    challenge: Challenge
    person: bool = False  # came by a sign-in cookie; a token belongs to a program, also at the dashboard's routes

    def by(self, door: str) -> str:
        """Who changes something, in the history. All doors of the server take it from here."""
        return self.principal.by(f"{PERSON if self.person else AGENT}/{door}")

    def refusal(self, what: str, needs: Level) -> ASGIApp | None:
        """Why the visitor may not do something that takes this level; None if they may."""
        if self.principal.level >= needs:
            return None
        prefix = self.challenge.scope_prefix
        return refusals.forbidden(what, needs, self.principal.level, prefix, self.challenge.words())

    def may_call(self, operation: str) -> ASGIApp | None:
        """The same for an operation. One without a row in the catalogue is refused."""
        needs = policy.OPERATIONS.get(operation)
        if needs is None:
            return refusals.no_route(operation)
        if refusal := self.refusal(operation, needs):
            return refusal
        if operation in policy.IN_FOLDER and not (self.project and self.project.has_folder):
            return refusals.no_folder(operation)
        return None


Handler = Callable[[Request, Visit], Awaitable["ASGIApp"]]


class Pages(NamedTuple):
    """What the dashboard gives the gate: who a cookie belongs to, and refusals as pages."""

    principal: Callable[[Request], Awaitable[Principal | None]]
    refused: Callable[[Request, ASGIApp], ASGIApp]


class Gate:
    """`lifespan` is the application that gets the lifespan events."""

    def __init__(
        self,
        doors: Mapping[policy.Route, Handler],
        *,
        credentials: Credentials,
        projects: Projects,
        rates: Rates,
        site: Site,
        challenge: Challenge,
        lifespan: ASGIApp,
        pages: Pages,
    ) -> None:
        self._routes = policy.RouteTable(tuple(doors))
        self._handlers = {route.name: handler for route, handler in doors.items()}
        self._credentials = credentials
        self._projects = projects
        self._rates = rates
        self._site = site
        self._challenge = challenge
        self._lifespan = lifespan
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        elif scope["type"] == "http":
            request = Request(scope)
            await (_two_lengths(request) or self._site.refusal(request) or self._enter)(scope, receive, send)

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            outcome = await self._admit(request)
        except StoreProblem as problem:
            # The caller is not authenticated, so the answer does not say where the store is.
            _log.warning("a request could not be admitted: %s", problem.message)
            outcome = refusals.store_away()
        except LimpetError as problem:
            outcome = refusals.of(problem)
        except Exception:
            # The outermost frame of this door: a caller that cannot be authenticated is refused.
            _log.exception("a request could not be admitted")
            outcome = refusals.failed_inside()
        if not isinstance(outcome, _Admitted):
            matched = self._routes.match(_split(scope["path"])[1])
            if not matched or any(route.people for route, _ in matched):
                outcome = self._pages.refused(request, outcome)
            await outcome(scope, receive, send)
            return
        await self._within({**scope, "path": outcome.path, VISIT: outcome}, receive, send)

    async def _admit(self, request: Request) -> _Admitted | ASGIApp:
        project, path = _split(request.scope["path"])
        routes = [matched for matched in self._routes.match(path) if project is None or matched[0].per_project]
        headers = request.headers.getlist("authorization")
        public = routes and all(route.needs is Level.PUBLIC for route, _ in routes)
        # An unknown address too: a person is shown a page, and not asked to sign in again.
        person = not headers and not public and (not routes or any(route.people for route, _ in routes))
        if person:
            principal = await self._pages.principal(request)
        else:
            principal = NOBODY if public else await self._credentials.principal(headers)
        if principal is None:
            return refusals.unauthorized(self._challenge.words(), presented=bool(headers))
        if refusal := self._rates.refusal(principal):
            return refusal
        chosen = [(route, parts) for route, parts in routes if request.method in route.methods]
        if not chosen:
            ways = {way for route, _ in routes for way in route.methods}
            return refusals.no_method(request.method, ways) if ways else refusals.no_route(request.scope["path"])
        route, parts = chosen[0]
        visit = Visit(principal, None, parts, self._challenge, person)
        return visit.refusal(f"{request.method} {path}", route.needs) or self._place(request, visit, route, project)

    def _place(self, request: Request, visit: Visit, route: policy.Route, project: str | None) -> _Admitted | ASGIApp:
        """The visit with its project, where the route belongs to one."""
        if route.per_project:
            served = self._project(visit.principal, project, request.headers.get(PROJECT_HEADER))
            if not isinstance(served, tuple):
                return served
            visit = visit._replace(project=served)
        return _Admitted(visit, route.name, _split(request.scope["path"])[1], route.people)

    def _project(self, principal: Principal, in_path: str | None, in_header: str | None) -> ServedProject | ASGIApp:
        """The project that is meant, if the principal may use it."""
        named = None if in_header is None else unquote(in_header)
        if in_path is not None and named is not None and in_path != named:
            return refusals.two_projects(in_path, named)
        meant = in_path if in_path is not None else named
        project = principal.only_project() if meant is None else project_name(meant)
        if project is None:
            return refusals.project_needed(principal.projects)
        if not principal.may_use(project):
            return refusals.wrong_project(project)
        return self._projects.get(principal.tenant, project, with_sample=principal.own_machine)

    async def _within(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request once its whole body is here, unless it is too large or its sender went away."""
        body = bytearray()
        declared = Request(scope).headers.get("content-length", "")
        too_large = declared.isdecimal() and int(declared) > jsonrpc.MESSAGE_MAX_BYTES
        while not too_large:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            too_large = len(body) > jsonrpc.MESSAGE_MAX_BYTES
            if not message.get("more_body", False):
                break
        if too_large:
            await Response("Request body too large", status_code=413)(scope, receive, send)
        else:
            await replayed(self._serve, bytes(body))(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose body is complete."""
        admitted: _Admitted = scope[VISIT]
        scope[VISIT] = admitted.visit
        try:
            answer = await self._handlers[admitted.name](Request(scope, receive), admitted.visit)
        except ClientDisconnect:
            return  # the client hung up while it sent the body: there is no one to answer
        except refusals.Refused as problem:
            answer = self._page(scope, problem.answer, admitted)
        except LimpetError as problem:
            answer = self._page(scope, refusals.of(problem), admitted)
        except Exception:
            # The outermost frame of this door. Details stay in the log.
            _log.exception("%s failed", admitted.name)
            answer = self._page(scope, refusals.failed_inside(), admitted)
        await answer(scope, receive, send)

    def _page(self, scope: Scope, refusal: ASGIApp, admitted: _Admitted) -> ASGIApp:
        """A refusal as a page, where people look."""
        return self._pages.refused(Request(scope), refusal) if admitted.people else refusal


class _Admitted(NamedTuple):
    visit: Visit
    name: str  # of the route
    path: str  # without the project
    people: bool = False  # its route is for people


NOBODY = Principal("", "", "", Level.PUBLIC, (), limited=False)


def _two_lengths(request: Request) -> Response | None:
    """A proxy in front may believe the other length, and take what follows for the request of another client."""
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        return Response("Two lengths of one body", status_code=400, headers={"connection": "close"})
    return None


def _is_one_of(name: str, names: tuple[str, ...]) -> bool:
    """Whether it is one of the names; `name:*` stands for every port."""
    return name in names or any(one.endswith(":*") and name.startswith(one[:-1]) for one in names)


def replayed(app: ASGIApp, body: bytes) -> ASGIApp:
    """The application, given a body that was read already."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await app(scope, replay, send)

    return run


def _split(path: str) -> tuple[str | None, str]:
    """The project in front of a path, and the rest: /p/<project>/rest."""
    if not path.startswith("/p/"):
        return None, path
    project, slash, rest = path[3:].partition("/")
    return (project, slash + rest) if project and slash else (None, path)
