"""Every door of the server with every kind of credential, over a real socket, on both stores.

What is expected does not come from the server's own table: for operations it follows from what they say about
themselves (and other tests hold them to), for routes it is written down here. So a table that is wrong fails, and so
does a check that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from doors.team_kit import DAY, PROJECT, TENANT, Caller, Issuer, Key, now_ms, revoke, stored, team_server
from limpet import wiring
from limpet.catalogue.table import ALIASES, OPERATIONS, listed_name, profile
from limpet.doors.dashboard.pages import PAGES
from limpet.doors.http import policy
from limpet.doors.http.server import routes
from limpet.model import Scope
from operations.test_tools import CALLS

# --- what is expected -------------------------------------------------------------------------------------------------

RANK = {"public": 0, "read": 1, "write": 2, "admin": 3}
DECIDING = {"clear_outputs", "approve_seals", "audit", "purge"}  # for everybody, or about everything
OF_FILES = {  # they work on files beside the store, which only the project has that the server was started in
    *(
        "recover_journal",
        "log_decision",
        "update_journal",
        "checkpoint_session",
        "init_journal",
        "lint_journal",
        "heal_journal",
    ),
    *("verify_journal", "rotate_journal", "list_skills", "read_skill", "promote_skill"),
}
NEW_TOKEN = {"name": "made", "scope": "read", "projects": [PROJECT]}


class Door(NamedTuple):
    """A way in: how it is called, and what it takes."""

    needs: str
    method: str
    path: str
    body: Any = None
    rpc: str = ""
    tool: str = ""


ROUTES: Mapping[str, Door] = {
    "health": Door("public", "GET", "/health"),
    "resource_metadata": Door("public", "GET", "/.well-known/oauth-protected-resource"),
    "resource_metadata_mcp": Door("public", "GET", "/.well-known/oauth-protected-resource/mcp"),
    "mcp": Door("read", "DELETE", "/mcp"),
    "metrics": Door("admin", "GET", "/metrics"),
    "openapi": Door("read", "GET", "/api/v1/openapi.json"),
    "whoami": Door("read", "GET", "/api/v1/whoami"),
    "projects": Door("read", "GET", "/api/v1/projects"),
    "list_tokens": Door("admin", "GET", "/api/v1/tokens"),
    "create_token": Door("admin", "POST", "/api/v1/tokens", NEW_TOKEN),
    "revoke_token": Door("admin", "DELETE", "/api/v1/tokens/000000000000"),
    "operation": Door("read", "POST", "/api/v1/operations/list_notes", {}),
    "dashboard": Door("read", "GET", "/"),
    "dashboard_static": Door("public", "GET", "/static/dashboard.css"),
    "favicon": Door("public", "GET", "/favicon.ico"),
    "dashboard_export": Door("read", "GET", "/export.jsonl"),
    "dashboard_sample": Door("write", "POST", "/sample"),
    "sign_in": Door("public", "GET", "/sign-in"),
    "sign_out": Door("read", "POST", "/sign-out"),
    "dashboard_events": Door("read", "GET", "/events?once=yes"),
    "dashboard_do": Door("write", "POST", "/do/archive_session"),
    **{f"dashboard_{name}": Door("read", "GET", f"/{name}") for name in PAGES},
}
OF_A_PROJECT = {"/mcp", "/export.jsonl", "/events?once=yes", "/do/archive_session", *(f"/{name}" for name in PAGES)}
METHODS: Mapping[str, dict[str, Any]] = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    "ping": {},
    "server/discover": {},
    "tools/list": {},
    "tools/call": {"name": "list_notes", "arguments": {}},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "limpet://notes"},
    "prompts/list": {},
    "prompts/get": {"name": "resume"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "resume"},
        "argument": {"name": "session_id", "value": ""},
    },
}


def needed_by(operation: str) -> str:
    if operation in DECIDING:
        return "admin"
    return "read" if OPERATIONS[operation].read_only else "write"


def doors() -> Iterator[tuple[str, Door]]:
    arguments = dict(CALLS)
    for name, door in ROUTES.items():
        yield name, door
    for method, params in METHODS.items():
        yield f"mcp {method}", Door("read", "POST", "/mcp", params, rpc=method)
    for name in OPERATIONS:
        yield f"api {name}", Door(needed_by(name), "POST", f"/api/v1/operations/{name}", arguments[name], tool=name)
    for found in profile("agent"):
        name = found.name
        yield f"tool {name}", Door(needed_by(name), "POST", "/mcp", arguments[name], rpc="tools/call", tool=name)


class Credential(NamedTuple):
    """`level` is None where nobody is let in."""

    token: str | None
    level: str | None
    home: bool = True  # of the project that the server was started in
    projects: bool = True  # may use the project that is asked for


def credentials(store: str, issuer: Issuer) -> dict[str, Credential]:
    """Every kind there is. Those of the identity provider are beside those of the store."""
    expired = stored(store, "admin", name="expired", expires="1d", made_at=now_ms() - 2 * DAY)
    revoked = stored(store, "admin", name="revoked")
    revoke(store, revoked.token.id)
    good = stored(store, "admin", name="good").secret
    flipped = good[:-1] + ("0" if good[-1] != "0" else "1")
    nothing = {
        "none": None,
        "bad: not a token": "nonsense",
        "bad: empty secret": f"limpet_{good[9:21]}_",
        "bad: flipped": flipped,
        "bad: unknown id": f"limpet_{'0' * 12}{good[21:]}",
        "bad: another case": good.upper(),
        "bad: not a JWT": "a.b.c",
        "expired": expired.secret,
        "revoked": revoked.secret,
        "jwt: expired": issuer.token("admin", exp=1_700_000_000),
        "jwt: not yet": issuer.token("admin", nbf=4_000_000_000),
        "jwt: wrong audience": issuer.token("admin", aud="https://other.example.org/mcp"),
        "jwt: no audience": issuer.token("admin", aud=None),
        "jwt: wrong issuer": issuer.token("admin", iss="https://other.example.org"),
        "jwt: no end": issuer.token("admin", exp=None),
        "jwt: strange key": issuer.token("admin", key=Key("one")),
        "jwt: unknown key": issuer.token("admin", key=Key("two")),
        "jwt: no algorithm": issuer.unsigned("admin"),
        "jwt: shared secret": issuer.confused("admin"),
        "jwt: our own tenant": issuer.token("admin", org=".limpet"),
        "jwt: no tenant": issuer.token("admin", org=None),
    }
    found = {name: Credential(token, None) for name, token in nothing.items()}
    for level in ("read", "write", "admin"):
        found[level] = Credential(stored(store, level).secret, level)
        found[f"jwt: {level}"] = Credential(issuer.token(level), level)
    found["jwt: no scope"] = Credential(issuer.token("admin", scope="openid"), "public")
    found["other tenant"] = Credential(stored(store, "admin", tenant="umbra").secret, "admin", home=False)
    found["other project"] = Credential(stored(store, "admin", projects=("other",)).secret, "admin", projects=False)
    found["jwt: other tenant"] = Credential(issuer.token("admin", org="umbra"), "admin", home=False)
    found["jwt: other project"] = Credential(issuer.token("admin", limpet_projects=["other"]), "admin", projects=False)
    return found


def expected(door: Door, who: Credential, per_project: bool) -> set[int]:
    """The statuses that are right for a cell."""
    if door.needs == "public":
        return {200}
    if who.level is None:
        return {401}
    if RANK[who.level] < RANK["read"] or (per_project and not who.projects) or RANK[who.level] < RANK[door.needs]:
        return {403}
    if door.tool in OF_FILES and not who.home:
        return {409}
    # It was let in. Whether there is something to do is the operation's own matter.
    return {200, 201, 202, 303, 400, 404, 409}


# --- the matrix -------------------------------------------------------------------------------------------------------


def of_project(door: Door) -> bool:
    return "/operations/" in door.path or door.path in OF_A_PROJECT


def asked(caller: Caller, door: Door) -> httpx2.Response:
    at = f"/p/{PROJECT}"
    if not door.rpc:
        return caller.send(door.method, (at if of_project(door) else "") + door.path, door.body)
    if door.rpc == "initialize":  # it belongs to the older revisions, as do their headers
        body = {"jsonrpc": "2.0", "id": 1, "method": door.rpc, "params": door.body}
        return caller.send("POST", f"{at}/mcp", body)
    return caller.tool(door.tool, door.body, at=at) if door.tool else caller.rpc(door.rpc, door.body, at=at)


def judged(name: str, door: Door, kind: str, who: Credential, answer: httpx2.Response) -> str:
    """What is wrong with a cell; nothing when all is well."""
    right = expected(door, who, per_project=of_project(door) or door.body is NEW_TOKEN)  # which names a project too
    if answer.status_code not in right:
        return f"{name} / {kind}: {answer.status_code} instead of {sorted(right)}: {answer.text[:100]}"
    if answer.status_code in (401, 403) and answer.json().keys() < {"error", "message"}:
        return f"{name} / {kind}: a refusal without words: {answer.text[:100]}"
    if answer.status_code == 401 and not answer.headers["www-authenticate"].startswith("Bearer "):
        return f"{name} / {kind}: a refusal without a challenge"
    return ""


@contextmanager
def served(store: str, folder: Path) -> Iterator[tuple[str, dict[str, Credential], Issuer]]:
    with Issuer() as issuer:
        people = credentials(store, issuer)
        with team_server(store, folder, issuer.settings(), "--team", profile="agent") as url:
            yield url, people, issuer


def kept(store: str, scope: Scope) -> list[str]:
    with wiring.open(store, project=scope.project) as hold:
        return list(hold.elsewhere(scope).export_lines())


@pytest.mark.timeout(600)  # some four thousand requests
@pytest.mark.parametrize("store_url", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True)
def test_every_door_with_every_credential(store_url: str, tmp_path: Path) -> None:
    assert ROUTES.keys() == {route.name for route in routes()}, "a route has no expectation here"
    assert METHODS.keys() == policy.METHODS.keys(), "a method of MCP has no expectation here"
    wrong: list[str] = []
    cells = 0
    with served(store_url, tmp_path) as (url, people, _issuer):
        every = list(doors())
        # Those who are refused come first, with calls that would change something: nothing may have come to be.
        order = sorted(people.items(), key=lambda item: (item[1].level is not None, RANK.get(item[1].level or "", 0)))
        for kind, who in order:
            if who.level == "write":
                break
            before = kept(store_url, Scope(TENANT, PROJECT))
            cells += len(every)
            wrong += walked(url, every, kind, who)
            if kept(store_url, Scope(TENANT, PROJECT)) != before:
                wrong.append(f"{kind} changed something")
        for kind, who in order:
            if who.level in ("write", "admin"):
                cells += len(every)
                wrong += walked(url, every, kind, who)
    print(f"{cells} cells")
    assert not wrong, "\n".join(wrong[:40])


def walked(url: str, every: list[tuple[str, Door]], kind: str, who: Credential) -> list[str]:
    with httpx2.Client(base_url=url, timeout=60) as http:
        caller = Caller(http, who.token)
        return [bad for name, door in every if (bad := judged(name, door, kind, who, asked(caller, door)))]


# --- the table --------------------------------------------------------------------------------------------------------


def test_every_operation_is_in_the_policy_and_as_strict_as_it_should_be() -> None:
    named = {name: level.name.lower() for name, level in policy.OPERATIONS.items()}
    assert named == {name: needed_by(listed_name(name)) for name in (*OPERATIONS, *ALIASES)}
    assert {listed_name(name) for name in policy.IN_FOLDER} == OF_FILES
    assert OPERATIONS.keys() >= policy.WAITING


UNKNOWN = [
    *("/docs/", "/mcp/", "/api/v1", "/api/v1/operations/", "/api/v1/operations/forget", "/p/home", "/p//mcp"),
    *("/p/home/health", "/p/home/api/v1/tokens", "/health/", "/openapi.json"),
]


def test_what_is_not_in_the_table_cannot_be_reached(store_url: str, tmp_path: Path) -> None:
    admin = stored(store_url, "admin").secret
    with team_server(store_url, tmp_path) as url, httpx2.Client(base_url=url, timeout=60) as http:
        caller = Caller(http, admin)
        for path in UNKNOWN:
            answer = caller.send("POST", path, {})
            assert answer.status_code == 404, (path, answer.status_code)
            assert answer.json()["error"] == "no_route"
        assert caller.send("PUT", "/api/v1/tokens").headers["allow"] == "GET, POST"
        assert caller.send("GET", "/api/v1/operations/list_notes").status_code == 405


def test_a_route_without_a_handler_stops_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from limpet.doors.http.server import Offer, build_app

    extra = policy.Route("backdoor", ("GET",), "/backdoor", policy.PUBLIC)
    monkeypatch.setattr(policy, "ROUTES", (*policy.ROUTES, extra))
    with wiring.open(str(tmp_path / "limpet.db")) as hold, pytest.raises(LookupError, match="backdoor"):
        build_app(hold, "core", Offer(None))
