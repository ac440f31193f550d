"""What `limpet doctor --url` looks at: a server, from where its clients stand. It changes nothing there."""

from __future__ import annotations

import json
import ssl
import time
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from limpet import __version__, errors
from limpet.doors.cli.doctor import INFO, OK, PROBLEM, Found
from limpet.model import milliseconds

SECONDS = 10  # for one answer; a server that takes longer is of no use to an agent
BODY_BYTES = 8 << 20  # of an answer that are read: the description of the routes many times over
SKEW_SECONDS = 30  # by so much the ends of access tokens may be off
SOON_DAYS = 7  # a token that expires within is worth a word
LOOPBACK = ("127.0.0.1", "localhost", "::1")
STRANGE = "https://elsewhere.invalid"


class Answer(NamedTuple):
    status: int
    date: str
    body: Any  # JSON; None where it is none


class Server(NamedTuple):
    scheme: str
    netloc: str
    host: str
    token: str | None

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask("GET", path, None, headers)

    def post(self, path: str, body: object) -> Answer:
        return self._ask("POST", path, json.dumps(body), {"Content-Type": "application/json"})

    def _ask(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Answer:
        kind = HTTPSConnection if self.scheme == "https" else HTTPConnection
        connection = kind(self.netloc, timeout=SECONDS)
        given = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            connection.request(method, path, body, {**given, **headers})
            return _read(connection.getresponse())
        finally:
            connection.close()


def _read(response: HTTPResponse) -> Answer:
    body = response.read(BODY_BYTES)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    return Answer(response.status, response.headers.get("date", ""), found)


def examine(url: str, token: str | None) -> list[Found]:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.bad_setting("url", url, "it must be an address such as https://limpet.example.org")
    server = Server(parts.scheme, parts.netloc.rpartition("@")[2], parts.hostname, token)
    try:
        health = server.get("/health")
    except ssl.SSLError as problem:
        said = f"its certificate is not accepted ({problem.reason}). Renew it, or ask by the name that it is for."
        return [Found(PROBLEM, "TLS", said)]
    except (OSError, HTTPException) as problem:
        said = f"{server.netloc} does not answer ({problem}). Check the address, and that `limpet serve` runs there."
        return [Found(PROBLEM, "reachable", said)]
    if health.status == 421:
        said = "the server does not know this name as its own. Start it with --url and the address that clients use."
        return [Found(PROBLEM, "host", said)]
    if (health.status, health.body) != (200, {"status": "ok"}):
        said = f"/health answers {health.status}, and not as Limpet does. Check the address, or what the proxy does."
        return [Found(PROBLEM, "reachable", said)]
    found = [Found(OK, "reachable", f"{parts.scheme}://{server.netloc}"), _tls(server), _clock(health.date)]
    try:
        return [*found, *_doors(server), *_token(server)]
    except (OSError, HTTPException) as problem:
        return [*found, Found(PROBLEM, "reachable", f"it stopped answering ({problem}). Look at its log.")]


def _tls(server: Server) -> Found:
    if server.scheme == "https":
        return Found(OK, "TLS", "the certificate is good")
    if server.host in LOOPBACK:
        return Found(INFO, "TLS", "none, which is fine on this machine")
    return Found(PROBLEM, "TLS", "tokens and texts cross the network in the clear. Put a proxy with TLS before it.")


def _clock(date: str) -> Found:
    try:
        skew = parsedate_to_datetime(date).timestamp() - time.time()
    except ValueError:
        return Found(INFO, "clock", "the server does not say what time it is there")
    if abs(skew) > SKEW_SECONDS:
        way = "ahead of" if skew > 0 else "behind"
        said = f"it is {abs(skew):,.0f} seconds {way} ours. Tokens expire by that clock; set both by NTP."
        return Found(PROBLEM, "clock", said)
    return Found(OK, "clock", "it agrees with ours")


def _doors(server: Server) -> list[Found]:
    """Whether pages of other sites are kept out, and requests for other names."""
    found = []
    for name, header, rule in (("origin", {"Origin": STRANGE}, 403), ("host", {"Host": "elsewhere.invalid"}, 421)):
        status = server.get("/health", **header).status
        if status >= 400:
            found.append(Found(OK, name, "a strange one is refused"))
        else:
            said = f"a strange one is answered with {status} and not {rule}. Look at what the proxy does with it."
            found.append(Found(PROBLEM, name, said))
    return found


def _token(server: Server) -> list[Found]:
    who = server.get("/api/v1/whoami")
    if who.status == 401:
        wants = (
            "it is unknown, expired or revoked. Ask for another." if server.token else "none was given. Add --token."
        )
        return [Found(PROBLEM if server.token else INFO, "token", wants)]
    if who.status != 200 or not isinstance(who.body, dict):
        return [Found(PROBLEM, "token", f"{_said(who)}")]
    named = ", ".join(who.body.get("projects", ())) or "none"
    scope = Found(OK, "token", f"scope {who.body.get('scope')}, projects {named}")
    return [scope, *_expiry(who.body.get("expires_at")), _version(server), _store(server, who.body.get("projects", ()))]


def _expiry(expires_at: object) -> list[Found]:
    if not isinstance(expires_at, str):
        return []
    days = (milliseconds(expires_at) / 1_000 - time.time()) / 86_400
    if days < SOON_DAYS:
        return [Found(INFO, "expiry", f"{expires_at}, which is soon. Make another with `limpet token create`.")]
    return [Found(OK, "expiry", expires_at)]


def _version(server: Server) -> Found:
    about = server.get("/api/v1/openapi.json").body
    there = about.get("info", {}).get("version") if isinstance(about, dict) else None
    if there == __version__:
        return Found(OK, "version", f"limpet {there}, as here")
    return Found(INFO, "version", f"limpet {there} there, {__version__} here")


def _store(server: Server, projects: object) -> Found:
    first = next((name for name in projects if name != "*"), None) if isinstance(projects, list) else None
    if first is None:
        answer = server.get("/api/v1/projects")
    else:
        from urllib.parse import quote

        answer = server.post(f"/p/{quote(first, safe='')}/api/v1/operations/list_sessions", {"limit": 1})
    if answer.status == 200:
        return Found(OK, "store", "it answers")
    return Found(PROBLEM, "store", _said(answer))


def _said(answer: Answer) -> str:
    words = answer.body.get("message") if isinstance(answer.body, dict) else None
    return str(words) if words else f"the server answers {answer.status}. Look at its log."
