"""The JSON routes: their description is true, and whatever is sent to them, the server answers and stays up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import profiles
from doors.team_kit import PROJECT, Caller, stored, team_server
from limpet.catalogue.table import OPERATIONS
from limpet.doors.http import openapi, policy
from operations.test_tools import CALLS

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    folder = tmp_path_factory.mktemp("api")
    store = str(folder / "limpet.db")
    token = stored(store, "admin").secret
    with team_server(store, folder) as url:
        yield url, token


@pytest.fixture(scope="module")
def served_by_postgres(module_postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    token = stored(module_postgres_url, "admin").secret
    with team_server(module_postgres_url, tmp_path_factory.mktemp("api")) as url:
        yield url, token


@pytest.fixture
def caller(served: tuple[str, str]) -> Iterator[Caller]:
    url, token = served
    with httpx2.Client(base_url=url, timeout=60) as http:
        yield Caller(http, token)


schema = schemathesis.openapi.from_dict(openapi.document())


def few(*, short: int, long: int) -> settings:
    """So many examples beside those that are computed from the description, in the profile of that name."""
    phases = (Phase.explicit, Phase.generate)
    quiet = list(HealthCheck)
    most = profiles.chosen(short=short, long=long)
    return settings(max_examples=most, phases=phases, suppress_health_check=quiet)


@schema.parametrize()
@few(short=2, long=150)
def test_nothing_that_is_sent_is_left_unhandled_on_either_store(
    case: schemathesis.Case[Any], served: tuple[str, str], served_by_postgres: tuple[str, str]
) -> None:
    handled(case, *served)
    handled(case, *served_by_postgres)


def handled(case: schemathesis.Case[Any], url: str, token: str) -> None:
    if case.path.endswith("wait_for_sessions") and isinstance(case.body, dict):
        case.body.pop("seconds", None)  # a generated minute would be waited for
    case.call_and_validate(base_url=url, headers={"Authorization": f"Bearer {token}"}, checks=CHECKS)


def test_every_operation_and_every_other_route_is_described() -> None:
    paths = openapi.document()["paths"]
    described = {(way.upper(), path) for path, ways in paths.items() for way in ways}
    expected = {("POST", f"/api/v1/operations/{name}") for name in OPERATIONS}
    for route in policy.ROUTES:
        if route.path.startswith("/api/") and route.name != "operation":
            expected |= {(method, route.path) for method in route.methods}
    assert described == expected


def test_the_description_is_served(caller: Caller) -> None:
    answer = caller.send("GET", "/api/v1/openapi.json")
    assert answer.json() == json.loads(json.dumps(openapi.document()))


def test_every_operation_answers_like_every_other_door(caller: Caller) -> None:
    document = openapi.document()["paths"]
    for name, arguments in CALLS:
        answer = caller.call(name, arguments)
        assert answer.status_code in (200, 400, 404, 409), (name, answer.text)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-store"
        responses = document[f"/api/v1/operations/{name}"]["post"]["responses"]
        shape = responses[str(answer.status_code)]["content"]["application/json"]["schema"]
        shape = openapi.document()["components"]["schemas"]["Problem"] if "$ref" in shape else shape
        jsonschema.validate(answer.json(), shape)


BODIES: list[tuple[bytes, int, str]] = [
    (b"", 400, "not_json"),
    (b"{", 400, "not_json"),
    (b"[]", 400, "not_json"),
    (b"7", 400, "not_json"),
    (b"\xff", 400, "not_json"),
    (b"[" * 100_000, 400, "not_json"),
    (b'{"content": NaN}', 400, "not_json"),
    (b'{"content": 1e999}', 400, "not_json"),
    (b'{"content": "\\ud800"}', 400, "not_json"),
    (b'{"content": "\\u0000"}', 400, "unstorable"),
    (b'{"content": 7}', 400, "wrong_type"),
    (b'{"user_id": "victim", "content": "x"}', 400, "unknown_argument"),
    (b"{}", 400, "missing"),
    (b'{"content": "x", "session_id": "*"}', 400, "bad_name"),
]


@pytest.mark.parametrize(("body", "status", "code"), BODIES)
def test_a_bad_body_is_refused_in_words(caller: Caller, body: bytes, status: int, code: str) -> None:
    answer = caller.send("POST", "/api/v1/operations/add_note", body)
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert answer.json()["message"]


def test_a_large_body_and_a_long_header_are_refused(caller: Caller) -> None:
    answer = caller.send("POST", "/api/v1/operations/add_note", b"x" * (16 * 1024 * 1024 + 1))
    assert answer.status_code == 413
    assert caller.call("list_notes", Limpet_Session="x" * 500).status_code == 400
    assert caller.call("list_notes", Limpet_Session="*").status_code == 200
    assert caller.call("read_notepad", Limpet_Session="*").status_code == 400


@pytest.mark.parametrize("tag", [9 * "9", 30 * "9", 5_000 * "9", "*", '"one"', "\u0663"])
def test_any_if_match_is_answered(caller: Caller, tag: str) -> None:
    plain = {"Content-Type": "application/json", "Authorization": f"Bearer {caller.token}"}
    sent = {**{name.encode(): value.encode() for name, value in plain.items()}, b"If-Match": tag.encode()}
    answer = caller.http.post("/api/v1/operations/write_memory", content=b'{"key": "k", "content": "t"}', headers=sent)
    assert answer.status_code in (400, 409), answer.text


def test_a_problem_of_the_operation_has_its_own_status(caller: Caller) -> None:
    cases: list[tuple[str, dict[str, Any], int, str]] = [
        ("delete_note", {"id": "note_1"}, 404, "no_note"),
        ("write_notepad", {"content": "x", "expected_version": 99}, 409, "version_moved"),
        ("write_memory", {"key": "session-handoff", "content": "x"}, 400, "reserved_key"),
    ]
    for name, arguments, status, code in cases:
        answer = caller.call(name, arguments)
        assert (answer.status_code, answer.json()["error"]) == (status, code)
        told = caller.tool(name, arguments).json()["result"]
        assert told["isError"]
        assert told["content"][0]["text"] == answer.json()["message"], "the same sentence behind every door"


def test_whoami_says_what_the_token_may(caller: Caller) -> None:
    who = caller.send("GET", "/api/v1/whoami").json()
    assert (who["scope"], who["projects"]) == ("admin", [PROJECT])


def test_a_store_that_is_gone_is_told_and_not_a_failure(postgres_url: str, tmp_path: Path) -> None:
    import psycopg

    token = stored(postgres_url, "read").secret
    with team_server(postgres_url, tmp_path) as url, httpx2.Client(base_url=url, timeout=120) as http:
        assert Caller(http, token).call("list_notes").status_code == 200
        name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
        with psycopg.connect(postgres_url.replace(str(name), "postgres"), autocommit=True) as admin:
            admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            answer = Caller(http, token).call("list_notes")
            admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        # Whoever is still believed is told which store it is; nobody else is.
        assert answer.status_code == 503
        assert answer.json()["error"] in ("store_gone", "store_away")
        assert ("postgresql" in answer.text) == (answer.json()["error"] == "store_gone")
        assert Caller(http, token).call("list_notes").status_code == 200


def test_a_token_cannot_keep_a_secret(caller: Caller) -> None:
    secret = "gl" + "pat-" + "aB3dE6gH9jK2mN5pQ8sT"
    reply = caller.call("add_note", {"content": f"push with {secret}"})
    assert reply.json()["masked"]["kinds"] == ["gitlab-token"]
    refused = caller.call("add_note", {"content": f"push with {secret}", "keep_secret": True})
    assert refused.status_code == 400
    assert secret not in caller.call("list_notes", {}).text
