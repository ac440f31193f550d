"""Tokens of `limpet token create`: shown once, kept as a hash, revoked within a second everywhere, in the history."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doors.team_kit import DAY, PROJECT, TENANT, calling, now_ms, revoke, stored, team_server
from limpet import errors, limits
from limpet.home.load import load
from limpet.model import ACCESS
from limpet.redaction import redact
from limpet.store import EventQuery, Store
from limpet.upkeep import access_tokens
from limpet.wiring import choose_store

SHAPE = re.compile(r"limpet_[0-9a-f]{12}_[0-9a-f]{64}")


def run(store: str, *words: str) -> Any:
    command = [sys.executable, "-m", "limpet", "token", *words, "--store", store, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_token_is_made_listed_and_revoked(store_url: str, tmp_path: Path) -> None:
    made = run(store_url, "create", "--name", "alice", "--scope", "write", "--project", "one", "--also", "two",
               "--expires", "8w", "--tenant", TENANT)  # fmt: skip
    assert SHAPE.fullmatch(made["token"])
    assert (made["scope"], made["projects"], made["tenant"], made["state"]) == (
        "write",
        ["one", "two"],
        TENANT,
        "active",
    )
    (listed,) = run(store_url, "list")["tokens"]
    assert listed == {name: value for name, value in made.items() if name != "token"}
    assert run(store_url, "list", "--tenant", "umbra")["tokens"] == []
    gone = run(store_url, "revoke", made["id"])
    assert gone["state"] == "revoked"
    assert run(store_url, "revoke", made["id"]) == gone, "revoking twice changes nothing"
    assert [one["state"] for one in run(store_url, "list")["tokens"]] == ["revoked"]
    told = run(store_url, "history", "--tenant", TENANT)["events"]
    assert [(one["operation"], one["id"], one["by"]) for one in told] == [
        ("revoke_token", made["id"], "person/cli"),
        ("create_token", made["id"], "person/cli"),
    ]
    assert not [found for found in tmp_path.rglob("*") if found.is_file() and made["token"][-64:].encode() in
                found.read_bytes()], "the token itself is in a file"  # fmt: skip


def test_a_project_and_a_scope_are_taken_from_the_command_line_like_everywhere(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    assert run(store, "create", "--name", "ci", "--scope", "read", "--project", "*", "--expires", "never")[
        "projects"
    ] == ["*"]
    assert run(store, "create", "--name", "ci", "--scope", "read", "--project", "p")["expires_at"] is not None


BAD: list[tuple[dict[str, Any], str]] = [
    ({"scope": "root"}, "it must be one of read, write, admin"),
    ({"scope": ""}, "it must be one of read, write, admin"),
    ({"name": " "}, "is empty"),
    ({"name": "a/b"}, "it may not have a slash"),
    ({"name": "x" * 101}, "the limit is 100"),
    ({"name": "two\nlines"}, "one line"),
    ({"projects": ()}, "needs project"),
    ({"projects": ("*", "one")}, "cannot be one of several"),
    ({"projects": ("",)}, "is empty"),
    ({"projects": ("\ud800",)}, "cannot be stored"),
    ({"tenant": ".limpet"}, "Limpet's own"),
    ({"expires": "0d"}, "12h, 30d or 8w"),
    ({"expires": "30"}, "12h, 30d or 8w"),
    ({"expires": "999999d"}, "12h, 30d or 8w"),
    ({"expires": "-1d"}, "12h, 30d or 8w"),
    ({"expires": "٣d"}, "12h, 30d or 8w"),
    ({"expires": ""}, "12h, 30d or 8w"),
]


@pytest.mark.parametrize(("changed", "said"), BAD)
def test_a_token_that_makes_no_sense_is_not_made(changed: dict[str, Any], said: str) -> None:
    asked: dict[str, Any] = {
        "name": "a",
        "tenant": "t",
        "scope": "read",
        "projects": ("p",),
        "expires": "1d",
        "now": 0,
    } | changed
    with pytest.raises(errors.BadInput, match=re.escape(said)):
        access_tokens.token_request(**asked)


@given(st.text(max_size=120))
def test_nothing_but_a_token_is_recognised(text: str) -> None:
    assert access_tokens.recognised(_Untouched(), text) is None  # type: ignore[arg-type]


class _Untouched:
    """A store that must not be asked: what is no token is refused by its look."""


@pytest.fixture
def store(store_url: str) -> Any:
    opened = choose_store(store_url)
    yield opened
    opened.close()


def made(store: Store, **more: Any) -> access_tokens.Created:
    asked: dict[str, Any] = {
        "name": "a",
        "tenant": "t",
        "scope": "read",
        "projects": ("p",),
        "expires": "1d",
        "now": 1_000,
    } | more
    return access_tokens.create(store, access_tokens.token_request(**asked), by="person/test", now=1_000)


def test_making_and_revoking_is_in_the_history_of_the_tenant(store: Store) -> None:
    ours, theirs = made(store), made(store, tenant="u")
    for at in (5_000, 6_000, 6_000 + limits.TOKEN_USE_NOTED_MS):
        access_tokens.note_use(store, ours.token, now=at)
    access_tokens.revoke(store, ours.token.id, tenant="t", by="person/boss", now=9_000_000)
    seen = [(event.operation, event.by, event.key) for event in access_tokens.history(store, "t")]
    assert seen == [("revoke_token", "person/boss", ours.token.id), ("create_token", "person/test", ours.token.id)]
    assert [event.key for event in access_tokens.history(store, "u")] == [theirs.token.id]
    assert len(access_tokens.history(store, None)) == 3
    uses = store.entries.events(access_tokens.HOME, EventQuery(kind=ACCESS, operation="use_token"))
    assert len(uses) == 2, "a use within the hour is not written"
    assert ours.secret[-64:] not in repr(store.entries.events(access_tokens.HOME, EventQuery()))


def test_a_token_of_another_tenant_is_not_there(store: Store) -> None:
    theirs = made(store, tenant="u", projects=("q",))
    with pytest.raises(errors.NotFound, match="there is no token"):
        access_tokens.revoke(store, theirs.token.id, tenant="t", by="x", now=2)
    with pytest.raises(errors.NotFound, match="there is no token"):
        access_tokens.revoke(store, theirs.token.id, tenant="u", by="x", now=2, allowed=lambda project: project == "p")
    found = access_tokens.recognised(store, theirs.secret)
    assert found is not None
    assert found.good(2)
    assert access_tokens.listed(store, "t") == ()


def test_a_token_ends_when_it_says(store: Store) -> None:
    token = made(store).token
    assert (token.state(DAY + 999), token.state(DAY + 1_000)) == ("active", "expired")
    assert made(store, expires="never").token.state(10**15) == "active"


def test_a_token_in_a_text_is_masked(store: Store) -> None:
    secret = made(store).secret
    assert secret not in redact(f"curl -H 'X: {secret}' and more\n").text


def test_nobody_else_can_be_the_tenant_that_tokens_are_kept_under(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.BadInput, match="reserved for Limpet"):
        load("x.db", environment={"LIMPET_TENANT": limits.OWN_TENANT})


def test_a_revoked_token_is_out_within_a_second_in_every_process(store_url: str, tmp_path: Path) -> None:
    token = stored(store_url, "read")
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
    with (
        team_server(store_url, folders[0]) as one,
        team_server(store_url, folders[1]) as two,
        calling(one, token.secret) as here,
        calling(two, token.secret) as there,
    ):
        for caller in (here, there):
            assert caller.send("GET", "/api/v1/whoami").status_code == 200
        revoke(store_url, token.token.id)
        over = time.monotonic() + 1
        while time.monotonic() < over:  # the more often they ask, the likelier that somebody still believes it
            here.send("GET", "/api/v1/whoami")
            there.send("GET", "/api/v1/whoami")
        for caller in (here, there):
            assert caller.send("GET", "/api/v1/whoami").status_code == 401
            assert caller.tool("list_notes").status_code == 401


def test_the_last_use_is_known_to_the_hour(store_url: str, tmp_path: Path) -> None:
    token = stored(store_url, "read")
    with team_server(store_url, tmp_path) as url, calling(url, token.secret) as caller:
        for _ in range(20):
            assert caller.send("GET", "/api/v1/whoami").status_code == 200
    opened = choose_store(store_url)
    (found,) = access_tokens.listed(opened, TENANT)
    uses = opened.entries.events(access_tokens.HOME, EventQuery(kind=ACCESS, operation="use_token"))
    opened.close()
    assert found.used_at is not None
    assert abs(found.used_at - now_ms()) < 120_000
    assert len(uses) == 1


def test_admins_look_after_the_tokens_of_their_own_projects(store_url: str, tmp_path: Path) -> None:
    boss = stored(store_url, "admin", name="boss", projects=("*",))
    lead = stored(store_url, "admin", name="lead")
    stranger = stored(store_url, "admin", name="stranger", tenant="umbra", projects=("*",))
    with team_server(store_url, tmp_path) as url:
        with calling(url, lead.secret) as caller:
            body = {"name": "new", "scope": "write", "projects": [PROJECT], "expires": "2h"}
            reply = caller.send("POST", "/api/v1/tokens", body)
            assert reply.status_code == 201, reply.text
            new = reply.json()
            assert new["created_by"] == "person/http/lead"
            for projects in (["other"], ["*"], [PROJECT, "other"]):
                assert caller.send("POST", "/api/v1/tokens", body | {"projects": projects}).status_code == 403
            for bad in (
                {},
                body | {"tenant": "umbra"},
                body | {"scope": "root"},
                body | {"projects": "x"},
                body | {"name": 7},
            ):
                assert caller.send("POST", "/api/v1/tokens", bad).status_code == 400
            shown = {one["name"] for one in caller.send("GET", "/api/v1/tokens").json()["tokens"]}
            assert shown == {"lead", "new"}
            assert caller.send("DELETE", f"/api/v1/tokens/{boss.token.id}").status_code == 404
        with calling(url, stranger.secret) as caller:
            assert {one["name"] for one in caller.send("GET", "/api/v1/tokens").json()["tokens"]} == {"stranger"}
            assert caller.send("DELETE", f"/api/v1/tokens/{new['id']}").status_code == 404
        with calling(url, new["token"]) as caller:
            assert caller.call("add_note", {"content": "mine"}).status_code == 200
        with calling(url, boss.secret) as caller:
            assert caller.send("DELETE", f"/api/v1/tokens/{new['id']}").json()["state"] == "revoked"
            assert "token" not in caller.send("GET", "/api/v1/tokens").text.replace("tokens", "")
