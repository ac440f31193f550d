"""Every refusal of the server: a status, a code for machines and a sentence that says what to do next."""

from __future__ import annotations

import json
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


class Refused(Exception):
    """Ends a request with this answer."""

    def __init__(self, answer: Response) -> None:
        super().__init__()
        self.answer = answer

    @property
    def message(self) -> str:
        return str(json.loads(bytes(self.answer.body))["message"])


def refusal(status: int, code: str, message: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    body = {"error": code, "message": message, **more}
    return JSONResponse(body, status, headers={**NO_STORE, **(headers or {})})


def of(problem: LimpetError) -> Response:
    """A LimpetError as a response, with the sentence that every door shows."""
    status = next((status for kind, status in STATUS.items() if isinstance(problem, kind)), 503)
    later = {"Retry-After": "5"} if isinstance(problem, StoreBusy) else None
    return refusal(status, problem.code, problem.message, later)


def unauthorized(challenge: str, *, presented: bool) -> Response:
    """No valid credential. The answer does not say why one was refused, so that a guesser learns nothing."""
    text = (
        "This token opens nothing here: it is unknown, expired, revoked or meant for another server. Ask for a new one."
        if presented
        else "This server needs a token: send `Authorization: Bearer <token>`."
    )
    error = ', error="invalid_token"' if presented else ""
    return refusal(401, "unauthorized", text, {"WWW-Authenticate": f'Bearer realm="limpet"{error}{challenge}'})


def forbidden(what: str, needs: Level, has: Level, scope: str, challenge: str) -> Response:
    needed = needs.name.lower()
    owns = has.name.lower() if has else "none"
    text = f"{what} needs a token with the scope {needed}; this one has {owns}. Use another token."
    header = f'Bearer realm="limpet", error="insufficient_scope", scope="{scope}{needed}"{challenge}'
    return refusal(403, "forbidden", text, {"WWW-Authenticate": header}, needs=needed)


def wrong_project(project: str) -> Response:
    text = f"this token is not for the project {quoted(project)}. Name a project of the token, or use another token."
    return refusal(403, "wrong_project", text)


def project_needed(projects: Iterable[str]) -> Response:
    text = (
        "this token is for several projects. Name one: put /p/<project> before the path, or send the header "
        "Limpet-Project."
    )
    return refusal(400, "project_needed", text, projects=list(projects))


def two_projects(path: str, header: str) -> Response:
    text = f"the path names the project {quoted(path)} and the header Limpet-Project {quoted(header)}. Name one."
    return refusal(400, "two_projects", text)


def no_folder(operation: str) -> Response:
    text = (
        f"{operation} works on files in the project's folder, and this project has none on this server. "
        "Call it where the folder is, with `limpet` or `limpet mcp`."
    )
    return refusal(409, "no_folder", text)


def no_route(path: str) -> Response:
    return refusal(404, "no_route", f"there is nothing at {quoted(path)}. GET /api/v1/openapi.json lists the routes.")


def no_method(method: str, allowed: Iterable[str]) -> Response:
    ways = ", ".join(sorted(allowed))
    return refusal(405, "no_method", f"{quoted(method)} does nothing here. Use {ways}.", {"Allow": ways})


def too_often(seconds: int, limit: str) -> Response:
    text = f"this token calls too often ({limit}). Call again in {seconds} seconds."
    return refusal(429, "too_often", text, {"Retry-After": str(seconds)}, retry_after=seconds)


def too_many_at_once(limit: int, lane: str) -> Response:
    text = f"this token has {limit} {lane}s under way, which is the limit. Wait for one to end, then call again."
    return refusal(429, "too_many_at_once", text, {"Retry-After": "1"}, retry_after=1)


def not_json(why: str) -> Response:
    return refusal(400, "not_json", f"the body cannot be read: {why} Send a JSON object with the arguments.")


def not_json_type(kind: str) -> Response:
    text = f"the body's Content-Type is {quoted(kind)}; it must be application/json. Send it so."
    return refusal(415, "not_json_type", text)


def store_away() -> Response:
    text = "the server cannot reach its store, so it cannot tell who you are. Call again in a while."
    return refusal(503, "store_away", text, {"Retry-After": "5"}, retry_after=5)


def failed_inside() -> Response:
    return refusal(500, "failed_inside", "Limpet failed inside; its log says where. Nothing of the call is certain.")
