"""A server for teams in a process of its own, an identity provider on the loopback, and credentials of every kind."""

from __future__ import annotations

import base64
import hmac
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from doors.mcp_client import MODERN, meta
from limpet.upkeep import access_tokens
from limpet.wiring import choose_store

TENANT, PROJECT = "acme", "home"
AUDIENCE = "https://memory.example.org/mcp"
DAY = 86_400_000
Json = dict[str, Any]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Key:
    def __init__(self, name: str, bits: int = 2048) -> None:
        self.name = name
        self.private = rsa.generate_private_key(65537, bits)

    def public(self, **more: object) -> Json:
        made: Json = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.private.public_key()))
        return {**made, "kid": self.name, "use": "sig", **more}


class Issuer:
    """Publishes its keys over HTTP and signs tokens. `asked` counts how often the keys were fetched."""

    def __init__(self) -> None:
        self.keys = [Key("one")]
        self.asked = 0
        self.status = 200
        self.delay = 0.0
        self.body: bytes | None = None
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                time.sleep(issuer.delay)
                body = issuer.body if issuer.body is not None else issuer.published()
                self.send_response(issuer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_given: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Issuer:
        self._thread.start()
        return self

    def __exit__(self, *_problem: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    def published(self) -> bytes:
        return json.dumps({"keys": [key.public() for key in self.keys]}).encode()

    def claims(self, level: str = "read", /, **more: object) -> Json:
        now = int(time.time())
        return {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": f"user of {level}",
            "exp": now + 600,
            "scope": f"openid limpet:{level}",
            "org": TENANT,
            "limpet_projects": [PROJECT],
            **more,
        }

    def token(self, level: str = "read", /, *, key: Key | None = None, headers: Json | None = None, **more: Any) -> str:
        """A good token, but for what is said otherwise; a claim that is None is left out."""
        claims = {name: value for name, value in self.claims(level, **more).items() if value is not None}
        used = key or self.keys[0]
        return jwt.encode(claims, used.private, algorithm="RS256", headers={"kid": used.name, **(headers or {})})

    def confused(self, level: str) -> str:
        """Signed with the public key as if it were a shared secret, which every reader of the keys could do."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        public = self.keys[0].private.public_key().public_bytes(serialization.Encoding.PEM, form)
        parts = ({"alg": "HS256", "typ": "JWT", "kid": self.keys[0].name}, self.claims(level))
        text = b".".join(_b64(json.dumps(part).encode()) for part in parts)
        return (text + b"." + _b64(hmac.digest(public, text, "sha256"))).decode()

    def unsigned(self, level: str) -> str:
        parts = ({"alg": "none", "typ": "JWT", "kid": self.keys[0].name}, self.claims(level))
        return (b".".join(_b64(json.dumps(part).encode()) for part in parts) + b".").decode()

    def settings(self) -> dict[str, str]:
        return {
            "server.issuer": self.url,
            "server.jwks": f"{self.url}/keys",
            "server.audience": AUDIENCE,
            "server.tenant_claim": "org",
        }


def _b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


@contextmanager
def team_server(
    store: str, folder: Path, settings: Mapping[str, str] | None = None, *options: str, profile: str = "full"
) -> Iterator[str]:
    """`limpet serve --team` on a free port; gives its address, without a path.

    Settings in capitals are environment variables, all others are keys of the configuration.
    """
    keys = {"server.calls_per_minute": "10000000", **(settings or {})}
    overrides = ";".join(f"{key}={value}" for key, value in keys.items() if not key.isupper())
    variables = {key: value for key, value in keys.items() if key.isupper()}
    env = {**os.environ, **variables, "LIMPET_TENANT": TENANT, "LIMPET_SET": overrides}
    command = [
        sys.executable,
        "-m",
        "limpet",
        "serve",
        "--structured",
        "--store",
        store,
        "--project",
        PROJECT,
        "--port",
        "0",
        "--json",
    ]
    command += ["--profile", profile, *(options or ("--team",))]
    with (folder / "serve.log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=env, cwd=folder)
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said, (folder / "serve.log").read_text(encoding="utf-8")
            yield json.loads(said)["url"].removesuffix("/mcp")
            assert process.poll() is None, "the server ended by itself"
        finally:
            process.terminate()
            process.communicate(timeout=20)
    assert "Traceback" not in (folder / "serve.log").read_text(encoding="utf-8")


def stored(
    store: str,
    scope: str = "read",
    *,
    name: str = "",
    tenant: str = TENANT,
    projects: tuple[str, ...] = (PROJECT,),
    expires: str = "1d",
    made_at: int | None = None,
) -> access_tokens.Created:
    """A token, made as `limpet token create` makes it."""
    opened = choose_store(store)
    try:
        now = now_ms() if made_at is None else made_at
        wanted = access_tokens.token_request(name or f"{scope} of {tenant}", tenant, scope, projects, expires, now)
        return access_tokens.create(opened, wanted, by="person/test", now=now)
    finally:
        opened.close()


def revoke(store: str, id: str) -> None:
    opened = choose_store(store)
    try:
        access_tokens.revoke(opened, id, tenant=None, by="person/test", now=now_ms())
    finally:
        opened.close()


class Caller(NamedTuple):
    """A client that keeps its connection open, with a credential or without."""

    http: httpx2.Client
    token: str | None = None

    def send(self, method: str, path: str, body: object = None, **headers: str) -> httpx2.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            given["Authorization"] = f"Bearer {self.token}"
        data = None
        if body is not None:
            given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **given}
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.http.request(method, path, content=data, headers=given)

    def call(self, operation: str, arguments: Json | None = None, *, at: str = "", **headers: str) -> httpx2.Response:
        """An operation through its JSON route."""
        return self.send("POST", f"{at}/api/v1/operations/{operation}", arguments or {}, **headers)

    def rpc(self, method: str, params: Json | None = None, *, at: str = "", **headers: str) -> httpx2.Response:
        """A request of MCP, in its newest revision."""
        given = {**(params or {}), "_meta": meta()}
        routing = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if name := given.get("name") or given.get("uri"):
            routing["Mcp-Name"] = name
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
        return self.send("POST", f"{at}/mcp", body, **routing, **headers)

    def tool(self, name: str, arguments: Json | None = None, *, at: str = "", **headers: str) -> httpx2.Response:
        return self.rpc("tools/call", {"name": name, "arguments": arguments or {}}, at=at, **headers)


@contextmanager
def calling(url: str, token: str | None = None) -> Iterator[Caller]:
    with httpx2.Client(base_url=url, timeout=60) as http:
        yield Caller(http, token)
