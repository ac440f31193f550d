"""Access tokens of an identity provider: which are believed, how its keys are fetched, and what clients are told."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from doors.team_kit import AUDIENCE, PROJECT, TENANT, Issuer, Key, calling, team_server
from limpet.doors.http import oauth
from limpet.doors.http.oauth import Keys, OAuth
from limpet.doors.http.principal import Level
from limpet.errors import BadInput
from limpet.settings import ServerRules


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as made:
        yield made


@pytest.fixture(autouse=True)
def _as_new(issuer: Issuer) -> Iterator[None]:
    keys = list(issuer.keys)
    yield
    issuer.keys, issuer.status, issuer.body = keys, 200, None


def rules(issuer: Issuer, **more: Any) -> ServerRules:
    return ServerRules(issuer=issuer.url, jwks=f"{issuer.url}/keys", audience=AUDIENCE, **more)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def door(issuer: Issuer, clock: Clock) -> OAuth:
    known = rules(issuer, tenant_claim="org")
    return OAuth(known, audience="", tenant="own", keys=Keys(known.jwks, clock))


def test_a_good_token_is_somebody(issuer: Issuer, door: OAuth) -> None:
    who = door.principal(issuer.token("write", sub="alice"))
    assert who is not None
    assert (who.tenant, who.subject, who.level, who.projects) == (TENANT, "alice", Level.WRITE, (PROJECT,))
    assert who.limited
    again = door.principal(issuer.token("read", sub="alice"))
    assert again is not None
    assert again.id == who.id, "the same user is the same principal, whatever token they come with"
    other = door.principal(issuer.token("write", sub="alice", org="umbra"))
    assert other is not None
    assert other.id != who.id, "and another one in another tenant"


@pytest.mark.parametrize(
    ("claims", "level"),
    [
        ({"scope": "limpet:read limpet:admin"}, Level.ADMIN),
        ({"scope": None, "scp": ["limpet:write"]}, Level.WRITE),
        ({"scope": None, "scp": "limpet:read"}, Level.READ),
        ({"scope": "admin write read"}, Level.PUBLIC),
        ({"scope": "limpet:administrator"}, Level.PUBLIC),
        ({"scope": {"limpet:admin": True}}, Level.PUBLIC),
        ({"scope": None}, Level.PUBLIC),
    ],
)
def test_scopes_are_read_exactly(issuer: Issuer, door: OAuth, claims: dict[str, Any], level: Level) -> None:
    who = door.principal(issuer.token(**claims))
    assert who is not None
    assert who.level is level


def test_projects_come_from_the_claim_or_from_the_settings(issuer: Issuer) -> None:
    door = OAuth(rules(issuer, projects=("*",)), audience="", tenant="own")
    for claim, projects in ((None, ("*",)), ([], ()), (["a", "b"], ("a", "b")), ("a b", ("a", "b"))):
        who = door.principal(issuer.token(limpet_projects=claim))
        assert who is not None
        assert (who.projects, who.tenant) == (projects, "own")
    assert door.principal(issuer.token(limpet_projects=["\ud800"])) is None


def test_a_name_that_cannot_be_shown_is_still_one_person(issuer: Issuer, door: OAuth) -> None:
    who = door.principal(issuer.token(sub="https://idp/\x1b[2Jalice" + "x" * 300))
    assert who is not None
    assert who.subject.startswith("https:__idp__[2Jalice")
    assert len(who.subject) == 100


def other_kinds() -> list[tuple[str, Any]]:
    return [("ES256", ec.generate_private_key(ec.SECP256R1())), ("EdDSA", ed25519.Ed25519PrivateKey.generate())]


@pytest.mark.parametrize(("algorithm", "private"), other_kinds(), ids=["ES256", "EdDSA"])
def test_other_kinds_of_keys_work(issuer: Issuer, door: OAuth, algorithm: str, private: Any) -> None:
    made = jwt.get_algorithm_by_name(algorithm).to_jwk(private.public_key(), as_dict=True)
    issuer.body = json.dumps({"keys": [{**made, "kid": "k"}]}).encode()
    good = jwt.encode(issuer.claims("read"), private, algorithm=algorithm, headers={"kid": "k"})
    assert door.principal(good) is not None
    # A token that says the key is of another kind than it is.
    assert door.principal(issuer.token(key=Key("k"))) is None


@pytest.mark.parametrize(
    "headers",
    [{"typ": "dpop+jwt"}, {"typ": "logout+jwt"}, {"crit": ["x"], "x": 1}, {"kid": None}, {"kid": "../../keys"}],
)
def test_what_is_no_access_token_is_refused(issuer: Issuer, door: OAuth, headers: dict[str, Any]) -> None:
    assert door.principal(issuer.token(headers={"typ": "at+jwt"})) is not None
    given = {name: value for name, value in headers.items() if value is not None}
    key = issuer.keys[0]
    named = {} if "kid" in headers else {"kid": key.name}
    token = jwt.encode(issuer.claims("admin"), key.private, algorithm="RS256", headers={**named, **given})
    assert door.principal(token) is None


DEEP = base64.urlsafe_b64encode(b"[" * 9_000).decode()


@pytest.mark.parametrize(
    "text", ["", ".", "..", "a.b", "a" * 20_000, "e30.e30.e30", "\ud800.a.b", "é.é.é", f"{DEEP}.e30.e30"]
)
def test_nonsense_is_nobody(door: OAuth, text: str) -> None:
    assert door.principal(text) is None


@pytest.mark.parametrize(
    "more", [{"alg": "RS512"}, {"use": "enc"}, {"alg": "HS256"}, {"kty": "oct", "k": "c2VjcmV0"}, {"n": "AQAB"}]
)
def test_a_key_that_is_for_something_else_is_not_used(issuer: Issuer, door: OAuth, more: dict[str, Any]) -> None:
    issuer.body = json.dumps({"keys": [issuer.keys[0].public(**more)]}).encode()
    assert door.principal(issuer.token()) is None


def test_a_short_key_is_not_used(issuer: Issuer, door: OAuth) -> None:
    issuer.keys = [Key("short", 1024)]
    with pytest.warns(jwt.InsecureKeyLengthWarning) if hasattr(jwt, "InsecureKeyLengthWarning") else _nothing():
        token = issuer.token()
    assert door.principal(token) is None


class _nothing:  # noqa: N801
    def __enter__(self) -> None: ...

    def __exit__(self, *_problem: object) -> None: ...


# --- the keys ---------------------------------------------------------------------------------------------------------


def test_keys_are_kept_and_change_when_the_provider_changes_them(issuer: Issuer, door: OAuth, clock: Clock) -> None:
    start = issuer.asked
    for _ in range(5):
        assert door.principal(issuer.token()) is not None
    assert issuer.asked == start + 1
    old, new = issuer.keys[0], Key("new")
    issuer.keys = [new]
    clock.now += oauth.ASK_AGAIN_SECONDS + 1
    assert door.principal(issuer.token(key=new)) is not None, "an unknown key is asked for"
    assert issuer.asked == start + 2
    clock.now += oauth.ASK_AGAIN_SECONDS + 1
    assert door.principal(issuer.token(key=old)) is None, "and one that is gone is no longer believed"


def test_made_up_key_names_do_not_make_us_ask_again_and_again(issuer: Issuer, door: OAuth) -> None:
    start = issuer.asked
    stranger = Key("x")
    for number in range(20):
        stranger.name = f"made up {number}"
        assert door.principal(issuer.token(key=stranger)) is None
    assert issuer.asked == start + 1


def test_keys_serve_on_while_the_provider_is_away_but_not_for_ever(issuer: Issuer, door: OAuth, clock: Clock) -> None:
    assert door.principal(issuer.token()) is not None
    for status, body in ((500, b"down"), (200, b"not json"), (200, b"[]"), (200, b"x" * (oauth.KEYS_MAX_BYTES + 1)),
                         (302, b"")):  # fmt: skip
        issuer.status, issuer.body = status, body
        clock.now += oauth.KEYS_FRESH_SECONDS + 1
        assert door.principal(issuer.token()) is not None
    clock.now += oauth.KEYS_STALE_SECONDS
    assert door.principal(issuer.token()) is None
    issuer.status, issuer.body = 200, None
    clock.now += oauth.ASK_AGAIN_SECONDS + 1
    assert door.principal(issuer.token()) is not None


def test_keys_may_be_in_a_file(issuer: Issuer, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(issuer.published())
    assert OAuth(rules(issuer)._replace(jwks=str(path)), audience="", tenant="t").principal(issuer.token()) is not None
    missing = rules(issuer)._replace(jwks=str(tmp_path / "none.json"))
    assert OAuth(missing, audience="", tenant="t").principal(issuer.token()) is None


@pytest.mark.parametrize(
    "more", [{"jwks": ""}, {"jwks": "http://idp.example.org/keys"}, {"jwks": "ftp://x/y"}, {"audience": ""}]
)
def test_a_provider_that_cannot_be_trusted_stops_the_server(issuer: Issuer, more: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        OAuth(rules(issuer)._replace(**more), audience="", tenant="t")


# --- through the door -------------------------------------------------------------------------------------------------


def test_a_client_finds_its_way_to_the_provider(issuer: Issuer, tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    settings = issuer.settings()
    del settings["server.audience"]  # then the server's own address is what tokens are for
    with team_server(store, tmp_path, settings) as url, calling(url) as nobody:
        challenge = nobody.tool("list_notes").headers["www-authenticate"]
        address = f"{url}/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{address}"' in challenge
        known = httpx2.get(address, timeout=60).json()
        assert known["resource"] == f"{url}/mcp"
        assert known["authorization_servers"] == [issuer.url]
        assert known["scopes_supported"] == ["limpet:read", "limpet:write", "limpet:admin"]
        with calling(url, issuer.token("read", aud=f"{url}/mcp")) as reader:
            assert reader.tool("list_notes").status_code == 200
            refused = reader.tool("add_note", {"content": "x"})
            assert refused.status_code == 403
            assert 'error="insufficient_scope", scope="limpet:write"' in refused.headers["www-authenticate"]
        with calling(url, issuer.token("read", aud=AUDIENCE)) as wrong:
            answer = wrong.tool("list_notes")
            assert answer.status_code == 401
            assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        writes = issuer.token("write", aud=[f"{url}/mcp", "https://other.example.org"], sub="alice")
        with calling(url, writes) as alice:
            assert alice.call("add_note", {"content": "by a user of the provider"}).status_code == 200
            (event, *_) = alice.call("history", {}).json()["events"]
            assert event["by"] == "agent/http/alice"


def test_without_a_provider_there_is_nothing_to_find(tmp_path: Path) -> None:
    with team_server(str(tmp_path / "limpet.db"), tmp_path) as url, calling(url) as nobody:
        assert nobody.send("GET", "/.well-known/oauth-protected-resource").status_code == 404
        assert "resource_metadata" not in nobody.tool("list_notes").headers["www-authenticate"]


def test_a_token_that_ends_while_it_is_used_is_out(issuer: Issuer, tmp_path: Path) -> None:
    """Within the leeway it is still good; after it, not."""
    with team_server(str(tmp_path / "limpet.db"), tmp_path, issuer.settings()) as url:
        now = int(time.time())
        with calling(url, issuer.token(exp=now - 5)) as late:
            assert late.tool("list_notes").status_code == 200
        with calling(url, issuer.token(exp=now - 40)) as later:
            assert later.tool("list_notes").status_code == 401
