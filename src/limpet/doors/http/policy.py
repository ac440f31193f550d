"""The table: what it takes to use each door of the server. Whatever is not in here is closed.

The gate matches every request against ROUTES and nothing else, so a route that is missing here cannot be reached. An
operation that is missing in OPERATIONS is refused to everybody. Tests compare the table with the operations there are,
and with a list of expectations that does not come from here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from limpet.doors.http.principal import Level

PUBLIC, READ, WRITE, ADMIN = Level


class Route(NamedTuple):
    """A door. A part of the path in braces matches anything but a slash."""

    name: str
    methods: tuple[str, ...]
    path: str
    needs: Level  # at least; what is called through it may need more
    per_project: bool = False  # also below /p/<project>, and only within the principal's projects
    by_operation: bool = False  # what is called through it decides, by OPERATIONS and METHODS
    people: bool = False  # a page: a cookie of somebody who signed in will do, and a refusal is a page too


# The pages of the dashboard, each at its name. What can be changed there is sent to dashboard_do, and an operation.
PAGES = (
    *("overview", "session", "messages", "notepad", "notes", "note", "memory", "remembered", "handoffs", "handoff"),
    *("outputs", "output", "journal", "recall", "savings", "history", "change"),
)

ROUTES = (
    Route("health", ("GET",), "/health", PUBLIC),
    Route("resource_metadata", ("GET",), "/.well-known/oauth-protected-resource", PUBLIC),
    Route("resource_metadata_mcp", ("GET",), "/.well-known/oauth-protected-resource/mcp", PUBLIC),
    Route("mcp", ("GET", "POST", "DELETE"), "/mcp", READ, per_project=True, by_operation=True),
    Route("metrics", ("GET",), "/metrics", ADMIN),
    Route("openapi", ("GET",), "/api/v1/openapi.json", READ),
    Route("whoami", ("GET",), "/api/v1/whoami", READ),
    Route("projects", ("GET",), "/api/v1/projects", READ),
    Route("list_tokens", ("GET",), "/api/v1/tokens", ADMIN),
    Route("create_token", ("POST",), "/api/v1/tokens", ADMIN),
    Route("revoke_token", ("DELETE",), "/api/v1/tokens/{id}", ADMIN),
    Route("operation", ("POST",), "/api/v1/operations/{operation}", READ, per_project=True, by_operation=True),
    Route("dashboard", ("GET",), "/", READ, people=True),
    Route("dashboard_static", ("GET",), "/static/{file}", PUBLIC, people=True),
    Route("sign_in", ("GET", "POST"), "/sign-in", PUBLIC, people=True),
    Route("sign_out", ("POST",), "/sign-out", READ, people=True),
    Route("dashboard_events", ("GET",), "/events", READ, per_project=True, people=True),
    Route("dashboard_do", ("POST",), "/do/{action}", WRITE, per_project=True, people=True),
    *(Route(f"dashboard_{name}", ("GET",), f"/{name}", READ, per_project=True, people=True) for name in PAGES),
)

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
}


def _each(level: Level, names: str) -> dict[str, Level]:
    return dict.fromkeys(names.split(), level)


OPERATIONS: Mapping[str, Level] = {
    # Looking, at whatever agents keep.
    **_each(READ, "search_notes list_notes list_tags read_notepad notepad_history search_memory read_memory"),
    **_each(READ, "read_handoff scratchpad_read scratchpad_list recover_notes recall list_tasks show_window"),
    **_each(READ, "list_folds list_pins read_system_prompt system_prompt_history list_skills read_skill savings"),
    **_each(READ, "show_session list_sessions wait_for_sessions history list_seals"),
    # Working: what an agent does all day.
    **_each(WRITE, "add_note update_note delete_note write_notepad update_notepad restore_notepad write_memory"),
    **_each(WRITE, "scratch_note pin_memory write_session_handoff delete_output prune_outputs log_decision"),
    **_each(WRITE, "update_notes checkpoint_session init_notes lint_notes heal_notes verify_notes rotate_notes"),
    **_each(WRITE, "begin_task end_task cancel_task uncompact pin_text unpin_text run_sandbox_code"),
    **_each(WRITE, "edit_system_prompt write_system_prompt restore_system_prompt promote_skill agent_state"),
    **_each(WRITE, "begin_session archive_session spawn_session fork_session report_result end_session undo"),
    # Deciding for everybody: what cannot be taken back, what others are told to trust, and what reads everything.
    **_each(ADMIN, "clear_outputs approve_seals audit purge"),
}

# Operations on files beside the store. Only the project that the server was started in has such files; every other
# project would otherwise be shown, or write, the files of that one.
IN_FOLDER = frozenset(
    (
        *("recover_notes", "log_decision", "update_notes", "checkpoint_session", "init_notes", "lint_notes"),
        *("heal_notes", "verify_notes", "rotate_notes", "list_skills", "read_skill", "promote_skill"),
    )
)


# Operations that make room, which a tenant must have who may keep nothing more.
FREEING = frozenset(
    (
        *("delete_note", "delete_output", "prune_outputs", "clear_outputs", "purge", "unpin_text", "archive_session"),
        *("end_session", "undo"),
    )
)


WAITING = frozenset({"wait_for_sessions"})  # operations that wait for somebody else
LONG = frozenset({"run_sandbox_code", "audit", "purge"})  # operations that may take seconds


@lru_cache(256)  # nearly all requests are for the same few paths
def match(path: str) -> tuple[tuple[Route, Mapping[str, str]], ...]:
    """The routes of a path, one for each way to call it, with the parts of the path that they name."""
    found = ((route, _pattern(route.path).fullmatch(path)) for route in ROUTES)
    return tuple((route, MappingProxyType(parts.groupdict())) for route, parts in found if parts)


@cache
def _pattern(path: str) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)\}", path)  # text, name, text, name …
    return re.compile("".join(f"(?P<{x}>[^/]+)" if at % 2 else re.escape(x) for at, x in enumerate(pieces)))
