"""The JSON routes: every operation at POST /api/v1/operations/<name>, and who may come in at /api/v1/tokens.

A call is `Limpet.call`, as behind every other door: the same arguments, answers and sentences. Everything else here
is for people and programs that look after the server.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from starlette.responses import Response

from limpet import errors
from limpet.catalogue.operation import storable
from limpet.catalogue.table import find
from limpet.doors.http import openapi, policy, refusals
from limpet.doors.http.gate import SESSION_HEADER, Visit
from limpet.doors.http.mcp import own_session
from limpet.doors.http.principal import ANY_PROJECT
from limpet.model import iso
from limpet.protocol import jsonrpc
from limpet.upkeep import access_tokens

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from limpet.api import Clock
    from limpet.doors.http.capacity import Threads
    from limpet.store import Store

DOOR = "http"  # in the history


class Api:
    def __init__(self, store: Store, clock: Clock, threads: Threads) -> None:
        self._store = store
        self._threads = threads
        self._clock = clock

    async def operation(self, request: Request, visit: Visit) -> ASGIApp:
        name, project = visit.parts["operation"], visit.project
        if refusal := visit.may_call(name):
            return refusal
        arguments = _with_headers(name, await _arguments(request), request)
        session = request.headers.get(SESSION_HEADER) or own_session(visit)

        def call() -> dict[str, Any]:
            if project is None:
                raise LookupError("an operation needs a project")
            return project.hold.call(name, arguments, session=session, by=visit.by(DOOR))

        return _json(await self._threads.run(visit.principal, name, call))

    async def whoami(self, _request: Request, visit: Visit) -> ASGIApp:
        who = visit.principal
        return _json(
            {
                "subject": who.subject,
                "tenant": who.tenant,
                "scope": who.level.name.lower(),
                "projects": list(who.projects),
                "expires_at": None if who.expires_at is None else iso(who.expires_at),
            }
        )

    async def projects(self, _request: Request, visit: Visit) -> ASGIApp:
        """Those that hold something, of those the principal may use; and those the token names."""
        who = visit.principal
        stored = await anyio.to_thread.run_sync(self._store.projects, who.tenant)
        named = {project for project in who.projects if project != ANY_PROJECT}
        return _json({"projects": sorted(named | {project for project in stored if who.may_use(project)})})

    async def openapi(self, _request: Request, _visit: Visit) -> ASGIApp:
        return _json(openapi.document())

    # --- tokens -------------------------------------------------------------------------------------------------------

    async def list_tokens(self, _request: Request, visit: Visit) -> ASGIApp:
        tokens = await anyio.to_thread.run_sync(access_tokens.listed, self._store, visit.principal.tenant)
        now = self._clock()
        visible = [token for token in tokens if within(visit, token.projects)]
        return _json({"tokens": [access_tokens.token_json(token, now) for token in visible]})

    async def create_token(self, request: Request, visit: Visit) -> ASGIApp:
        arguments = await _arguments(request)
        who, now = visit.principal, self._clock()
        token_request = _token_request(arguments, who.tenant, now)
        if not within(visit, token_request.projects):
            return refusals.wrong_project(next(name for name in token_request.projects if not who.may_use(name)))
        created = await self._threads.write(
            who, lambda: access_tokens.create(self._store, token_request, by=visit.by(DOOR), now=now)
        )
        return _json({**access_tokens.token_json(created.token, now), "token": created.secret}, 201)

    async def revoke_token(self, _request: Request, visit: Visit) -> ASGIApp:
        id, who, now = storable("id", visit.parts["id"]), visit.principal, self._clock()

        def work() -> access_tokens.Token:
            return access_tokens.revoke(
                self._store, id, tenant=who.tenant, allowed=who.may_use, by=visit.by(DOOR), now=now
            )

        return _json(access_tokens.token_json(await self._threads.write(who, work), now))


def within(visit: Visit, projects: tuple[str, ...]) -> bool:
    """Whether all of these projects are the principal's, so that they may decide about a token for them."""
    return all(visit.principal.may_use(project) for project in projects)


def _token_request(arguments: dict[str, Any], tenant: str, now: int) -> access_tokens.TokenRequest:
    names = ("name", "scope", "projects", "expires")
    for name, value in arguments.items():
        if name not in names:
            raise errors.unknown_argument("create_token", name, list(names))
        many = name == "projects"
        right = (
            isinstance(value, list) and all(isinstance(item, str) for item in value) if many else isinstance(value, str)
        )
        if not right:
            raise errors.wrong_type("create_token", name, value, "a list of strings" if many else "a string")
    for name in ("name", "scope", "projects"):
        if name not in arguments:
            raise errors.missing("create_token", name)
    expires = arguments.get("expires", access_tokens.EXPIRES)
    return access_tokens.token_request(
        arguments["name"], tenant, arguments["scope"], arguments["projects"], expires, now
    )


async def _arguments(request: Request) -> dict[str, Any]:
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise refusals.Refused(refusals.not_json_type(kind))
    try:
        value = jsonrpc.decode(await request.body())
    except jsonrpc.RpcError as problem:
        raise refusals.Refused(refusals.not_json(problem.message)) from None
    if not isinstance(value, dict):
        raise refusals.Refused(refusals.not_json(f"it is {errors.a_kind(value)}, not an object."))
    return value


def _with_headers(operation: str, arguments: dict[str, Any], request: Request) -> dict[str, Any]:
    """The arguments with those that HTTP has headers for: `Idempotency-Key`, and the version in `If-Match`."""
    taken = {param.name for param in find(operation).all_params()}
    headers = {"idempotency_key": request.headers.get("idempotency-key"), "expected_version": _version(request)}
    return {**{name: value for name, value in headers.items() if value is not None and name in taken}, **arguments}


def _version(request: Request) -> Any:
    """The version that `If-Match` names. Anything but a number goes to the operation, which refuses it."""
    tag = request.headers.get("if-match")
    version = None if tag is None else tag.strip().removeprefix("W/").strip('"')
    return int(version) if version is not None and re.fullmatch(r"[0-9]{1,16}", version) else version


def _json(value: dict[str, Any], status: int = 200) -> Response:
    body = jsonrpc.dumps(value).encode("utf-8", "replace")
    return Response(body, status, headers=refusals.NO_STORE, media_type="application/json")


def handlers(api: Api) -> dict[str, Any]:
    """The routes of the policy that are answered here."""
    names = ("operation", "whoami", "projects", "openapi", "list_tokens", "create_token", "revoke_token")
    return {route.name: getattr(api, route.name) for route in policy.ROUTES if route.name in names}
