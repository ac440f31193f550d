"""Every refusal of the server: a status, a code for machines and a sentence that says what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from limpet.doors.http.principal import Level
from limpet.errors import BadInput, Conflict, LimpetError, NotFound, StoreBusy, StoreFull, quoted

STATUS: Mapping[type[LimpetError], int] = {
    BadInput: 400,
    NotFound: 404,
    Conflict: 409,
    StoreBusy: 503,
    StoreFull: 507,
}
NO_STORE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


def refusal(status: int, code: str, message: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    body = {"error": code, "message": message, **more}
    return JSONResponse(body, status, headers={**NO_STORE, **(headers or {})})


def of(problem: LimpetError) -> Response:
    """A problem of ours, in the words every door shows."""
    status = next((status for kind, status in STATUS.items() if isinstance(problem, kind)), 503)
    return refusal(status, problem.code, problem.message)


def unauthorized(challenge: str, *, given: bool) -> Response:
    """Nobody was let in. Why a credential was refused is not told: only its owner should find out."""
    said = (
        "This token opens nothing here: it is unknown, expired, revoked or meant for another server. Ask for a new one."
        if given
        else "This server needs a token: send `Authorization: Bearer <token>`."
    )
    error = ', error="invalid_token"' if given else ""
    return refusal(401, "unauthorized", said, {"WWW-Authenticate": f'Bearer realm="limpet"{error}{challenge}'})


def forbidden(what: str, needs: Level, has: Level, scope: str, challenge: str) -> Response:
    needed = needs.name.lower()
    owns = has.name.lower() if has else "none"
    said = f"{what} needs a token with the scope {needed}; this one has {owns}. Use another token."
    header = f'Bearer realm="limpet", error="insufficient_scope", scope="{scope}{needed}"{challenge}'
    return refusal(403, "forbidden", said, {"WWW-Authenticate": header}, needs=needed)


def wrong_project(project: str) -> Response:
    said = f"this token is not for the project {quoted(project)}. Name a project of the token, or use another token."
    return refusal(403, "wrong_project", said)


def project_needed(projects: Iterable[str]) -> Response:
    said = (
        "this token is for several projects. Name one: put /p/<project> before the path, or send the header "
        "Limpet-Project."
    )
    return refusal(400, "project_needed", said, projects=list(projects))


def two_projects(path: str, header: str) -> Response:
    said = f"the path names the project {quoted(path)} and the header Limpet-Project {quoted(header)}. Name one."
    return refusal(400, "two_projects", said)


def no_folder(operation: str) -> Response:
    said = (
        f"{operation} works on files in the project's folder, and this project has none on this server. "
        "Call it where the folder is, with `limpet` or `limpet mcp`."
    )
    return refusal(409, "no_folder", said)


def no_route(path: str) -> Response:
    return refusal(404, "no_route", f"there is nothing at {quoted(path)}. GET /api/v1/openapi.json lists the routes.")


def no_method(method: str, allowed: Iterable[str]) -> Response:
    ways = ", ".join(sorted(allowed))
    return refusal(405, "no_method", f"{quoted(method)} does nothing here. Use {ways}.", {"Allow": ways})


def too_often(seconds: int, limit: str) -> Response:
    said = f"this token calls too often ({limit}). Call again in {seconds} seconds."
    return refusal(429, "too_often", said, {"Retry-After": str(seconds)}, retry_after=seconds)


def too_many_at_once(limit: int) -> Response:
    said = f"this token has {limit} calls under way, which is the limit. Wait for one to end, then call again."
    return refusal(429, "too_many_at_once", said, {"Retry-After": "1"}, retry_after=1)


def over_quota(what: str, used: int, limit: int) -> Response:
    said = (
        f"this tenant keeps {used:,} {what}; its limit on this server is {limit:,}. Nothing was changed; "
        "delete what is not needed, or ask whoever runs the server for more."
    )
    return refusal(507, "over_quota", said)


def not_json(why: str) -> Response:
    return refusal(400, "not_json", f"the body cannot be read: {why} Send a JSON object with the arguments.")


def not_json_type(kind: str) -> Response:
    said = f"the body's Content-Type is {quoted(kind)}; it must be application/json. Send it so."
    return refusal(415, "not_json_type", said)


def store_away() -> Response:
    said = "the server cannot reach its store, so it cannot tell who you are. Call again in a while."
    return refusal(503, "store_away", said, {"Retry-After": "5"}, retry_after=5)


def failed_inside() -> Response:
    return refusal(500, "failed_inside", "Limpet failed inside; its log says where. Nothing of the call is certain.")
