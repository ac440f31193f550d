"""The policy: the routes of the server, and the level that each route and MCP method needs.

The gate matches every request against a `RouteTable`; a path that is not in it is refused. What an operation needs is
in its row of the catalogue. tests/doors/test_http_matrix.py compares all of it with its own list of expectations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType

from limpet.catalogue import table
from limpet.doors.http.principal import LEVELS, Level
from limpet.record import NamedTuple

PUBLIC, READ, WRITE, ADMIN = Level


class Route(NamedTuple):
    """A door. A part of the path in braces matches anything but a slash."""

    name: str
    methods: tuple[str, ...]
    path: str
    needs: Level  # at least; an operation or method called through it may need more
    per_project: bool = False  # also below /p/<project>, and only within the principal's projects
    people: bool = False  # a page: a sign-in cookie is accepted, and a refusal is a page too


ROUTES = (
    Route("health", ("GET",), "/health", PUBLIC),
    Route("resource_metadata", ("GET",), "/.well-known/oauth-protected-resource", PUBLIC),
    Route("resource_metadata_mcp", ("GET",), "/.well-known/oauth-protected-resource/mcp", PUBLIC),
    Route("mcp", ("GET", "POST", "DELETE"), "/mcp", READ, per_project=True),
    Route("metrics", ("GET",), "/metrics", ADMIN),
    Route("openapi", ("GET",), "/api/v1/openapi.json", READ),
    Route("whoami", ("GET",), "/api/v1/whoami", READ),
    Route("projects", ("GET",), "/api/v1/projects", READ),
    Route("list_tokens", ("GET",), "/api/v1/tokens", ADMIN),
    Route("create_token", ("POST",), "/api/v1/tokens", ADMIN),
    Route("revoke_token", ("DELETE",), "/api/v1/tokens/{id}", ADMIN),
    Route("operation", ("POST",), "/api/v1/operations/{operation}", READ, per_project=True),
    Route("dashboard", ("GET",), "/", READ, people=True),
    Route("dashboard_static", ("GET",), "/static/{file}", PUBLIC, people=True),
    Route("favicon", ("GET",), "/favicon.ico", PUBLIC, people=True),
    Route("sign_in", ("GET", "POST"), "/sign-in", PUBLIC, people=True),
    Route("sign_out", ("POST",), "/sign-out", READ, people=True),
    Route("dashboard_events", ("GET",), "/events", READ, per_project=True, people=True),
    Route("dashboard_do", ("POST",), "/do/{action}", WRITE, per_project=True, people=True),
    Route("dashboard_export", ("GET",), "/export.jsonl", READ, per_project=True, people=True),
    Route("dashboard_sample", ("POST",), "/sample", WRITE, people=True),
)


def page_route(name: str) -> Route:
    """The route of a page of the dashboard. The pages list themselves: doors/dashboard/pages."""
    return Route(f"dashboard_{name}", ("GET",), f"/{name}", READ, per_project=True, people=True)


# Methods of MCP. One that is not here is answered as unknown; a tool call needs what its operation needs.
METHODS: Mapping[str, Level] = {
    "initialize": READ,
    "ping": READ,
    "server/discover": READ,
    "tools/list": READ,
    "tools/call": READ,
    "resources/list": READ,
    "resources/templates/list": READ,
    "resources/read": READ,
    "prompts/list": READ,
    "prompts/get": READ,
    "completion/complete": READ,
}


_NAMES = {name: row for row in table.ROWS for name in (row.name, *row.aliases)}
OPERATIONS: Mapping[str, Level] = {name: LEVELS[row.level] for name, row in _NAMES.items()}
# Operations on files beside the store. Only the project that the server was started in has such files; every other
# project would otherwise be shown, or write, the files of that one.
IN_FOLDER = frozenset(name for name, row in _NAMES.items() if row.in_folder)
WAITING = frozenset(name for name, row in _NAMES.items() if row.waits)
LONG = frozenset(name for name, row in _NAMES.items() if row.slow)
WRITING = frozenset(name for name, row in _NAMES.items() if not row.read_only)


class RouteTable:
    """Routes by path."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self.routes = routes
        self.match = lru_cache(256)(self._match)  # nearly all requests are for the same few paths

    def _match(self, path: str) -> tuple[tuple[Route, Mapping[str, str]], ...]:
        """The routes of a path, one for each way to call it, with the parts of the path that they name."""
        candidates = ((route, _pattern(route.path).fullmatch(path)) for route in self.routes)
        return tuple((route, MappingProxyType(parts.groupdict())) for route, parts in candidates if parts)


@cache
def _pattern(path: str) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)\}", path)  # text, name, text, name …
    return re.compile("".join(f"(?P<{x}>[^/]+)" if at % 2 else re.escape(x) for at, x in enumerate(pieces)))
