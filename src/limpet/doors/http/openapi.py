"""The JSON routes described for machines: an OpenAPI document made from the policy and the operations."""

from __future__ import annotations

from functools import cache
from typing import Any

from limpet import __version__
from limpet.catalogue.table import OPERATIONS, PROFILES
from limpet.doors.http import policy
from limpet.doors.http.principal import Level

Json = dict[str, Any]
ERRORS = {  # status: what it means
    "400": "The input cannot be used; the message says what to change.",
    "401": "No credential, or one that is not good.",
    "403": "The credential is good, and this is more than it allows.",
    "404": "What was named is not there.",
    "405": "This is not called that way.",
    "409": "Something else was changed first, or cannot be done here.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "429": "Too often or too many at once; Retry-After says when to come again.",
    "503": "The store cannot be reached or is busy.",
    "507": "There is no room left.",
}
PROJECT: Json = {
    "name": "Limpet-Project",
    "in": "header",
    "description": "The project, where the token allows several.",
    "schema": {"type": "string"},
}
SESSION: Json = {
    "name": "Limpet-Session",
    "in": "header",
    "description": "The session of calls that name none in their arguments.",
    "schema": {"type": "string"},
}
TOKEN_SCHEMA: Json = {
    "type": "object",
    "properties": {
        **{
            name: {"type": "string"}
            for name in ("id", "name", "tenant", "kind", "scope", "created_at", "created_by", "state")
        },
        "projects": {"type": "array", "items": {"type": "string"}},
        **{name: {"type": ["string", "null"]} for name in ("expires_at", "used_at", "revoked_at")},
    },
    "required": ["id", "name", "scope", "projects", "state"],
}
NEW_TOKEN: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Who it is for."},
        "scope": {"type": "string", "enum": ["read", "write", "admin"]},
        "projects": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "expires": {"type": "string", "description": "12h, 30d, 8w or never.", "default": "30d"},
    },
    "required": ["name", "scope", "projects"],
    "additionalProperties": False,
}


@cache
def document() -> Json:
    paths: Json = {}
    for name, operation in OPERATIONS.items():  # earlier names are accepted, and not described
        level = policy.OPERATIONS[name]
        paths[f"/api/v1/operations/{name}"] = {
            "post": {
                **_described(name, operation.description(), level),
                "parameters": [PROJECT, SESSION],
                "requestBody": _body(operation.input_schema()),
                "responses": _responses("200", operation.output_schema()),
            }
        }
    paths["/api/v1/whoami"] = {"get": _get("whoami", "Who this token is, and what it may do.", policy.READ)}
    paths["/api/v1/projects"] = {"get": _get("projects", "The projects this token may use.", policy.READ)}
    paths["/api/v1/openapi.json"] = {"get": _get("openapi", "This document.", policy.READ)}
    listing = {"type": "object", "properties": {"tokens": {"type": "array", "items": TOKEN_SCHEMA}}}
    paths["/api/v1/tokens"] = {
        "get": {
            **_described("list_tokens", "The tokens of this tenant.", policy.ADMIN),
            "responses": _responses("200", listing),
        },
        "post": {
            **_described("create_token", "Make a token for an agent. It is shown once, in this reply.", policy.ADMIN),
            "requestBody": _body(NEW_TOKEN),
            "responses": _responses("201", TOKEN_SCHEMA),
        },
    }
    paths["/api/v1/tokens/{id}"] = {
        "delete": {
            **_described("revoke_token", "Revoke a token; it ends within a second.", policy.ADMIN),
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            ],
            "responses": _responses("200", TOKEN_SCHEMA),
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Limpet", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM},
        },
        "security": [{"token": []}],
    }


_ABOUT = (
    "Every operation of Limpet as a route. The arguments are a JSON object, the answer is what every other door "
    "answers. Where a token allows several projects, put /p/<project> before the path or send Limpet-Project. "
    f"Profiles: {', '.join(PROFILES)}."
)
_PROBLEM: Json = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "message": {"type": "string"}},
    "required": ["error", "message"],
}


def _described(name: str, words: str, level: Level) -> Json:
    scope = level.name.lower()
    return {"operationId": name, "description": f"{words} Needs the scope {scope}.", "x-limpet-scope": scope}


def _get(name: str, words: str, level: Level) -> Json:
    return {**_described(name, words, level), "responses": _responses("200", {"type": "object"})}


def _body(schema: Json) -> Json:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _responses(status: str, schema: Json) -> Json:
    problem = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    good = {"description": "The answer.", "content": {"application/json": {"schema": schema}}}
    return {status: good, **{code: {"description": words, "content": problem} for code, words in ERRORS.items()}}
