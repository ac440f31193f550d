"""`limpet doctor`: what is wrong with the settings, the store, or with --url a server.

It reads and changes nothing: a store that does not exist is not created (test_cli_care.py).
"""

from __future__ import annotations

import json
import os
import platform
import ssl
import time
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from importlib import metadata
from typing import Any
from urllib.parse import quote, urlsplit

from limpet import __version__, errors, limits, settings
from limpet.api import Limpet
from limpet.doors.cli.commands import Misuse
from limpet.doors.cli.render import exists, file_of, shown_place
from limpet.doors.cli.run import BY, OWN_SESSION, Invocation
from limpet.errors import LimpetError
from limpet.home.folders import Home, ProjectFolder
from limpet.home.lasting import warnings
from limpet.home.load import load
from limpet.home.place import locate, read_small
from limpet.memory import review
from limpet.model import milliseconds
from limpet.recall import embeddings
from limpet.record import NamedTuple
from limpet.settings import Bounds, OutputRules, WindowRules
from limpet.stores.sqlite.database import SCHEMA

OK, PROBLEM, INFO = "ok", "problem", "info"
DAY_SECONDS = 86_400
PACKAGES = ("apsw", "PyStemmer", "psycopg", "mcp", "click", "rich")  # the version of apsw starts with SQLite's
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
LOG_BYTES = 2 * limits.HOOK_LOG_BYTES
LOG_SECONDS = 86_400  # older failures were seen, or do not matter any more
SECONDS = 10  # for one reply; a slower server is of no use to an agent
BODY_BYTES = 8 << 20  # read of a reply: many times the description of the routes
SKEW_SECONDS = 30  # expiry times of access tokens may be off by so much
SOON_DAYS = 7  # a token that expires within is worth a remark
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FOREIGN = "elsewhere.invalid"


class Diagnosis(NamedTuple):
    """One line of the report."""

    state: str
    name: str
    detail: str


def doctor(cli: Invocation, url: str | None, token: str | None) -> int:
    if token and not url:
        raise Misuse("--token goes with --url.")
    findings = examine_server(url, token or cli.settings.token) if url else examine(cli)
    well = all(finding.state != PROBLEM for finding in findings)
    reply = {"ok": well, "findings": [finding._asdict() for finding in findings]}
    cli.answer(reply, lambda screen: screen.table(("", "what", "found"), findings))
    return 0 if well else errors.StoreProblem.exit_code


# --- this machine -----------------------------------------------------------------------------------------------------


def examine(cli: Invocation) -> list[Diagnosis]:
    findings = [Diagnosis(INFO, "version", f"limpet {__version__}, Python {platform.python_version()}, {_packages()}")]
    try:
        findings += _settings(cli)
    except LimpetError as problem:
        return [*findings, Diagnosis(PROBLEM, "settings", problem.message)]
    findings += hook_trouble()
    store = cli.settings.store
    path = file_of(store)
    if not exists(store):
        if _origin(cli, "store") != "default":
            why = "there is none, though the settings name this place. Check the name, or make it with `limpet init`."
            return [*findings, Diagnosis(PROBLEM, "store", why)]
        return [*findings, Diagnosis(INFO, "store", "there is none yet; `limpet init` or the first write makes it.")]
    if path:
        findings += _permissions(path)
    return findings + _health(cli)


def hook_trouble() -> list[Diagnosis]:
    """What went wrong in hooks lately. A hook answers its agent even then, so this is where a person sees it."""
    lines = (read_small(os.path.join(settings.data_folder(), "hooks.log"), LOG_BYTES) or "").splitlines()
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - LOG_SECONDS))
    recent = [line for line in lines if line > since]
    if not recent:
        return []
    return [Diagnosis(PROBLEM, "hooks", f"{len(recent)} failed within a day, the last one: {recent[-1]}")]


def _settings(cli: Invocation) -> list[Diagnosis]:
    chosen = cli.settings
    session = cli.session or chosen.session
    described = f"{session} (named)" if session else f"none named: notes go to {OWN_SESSION}, every session is searched"
    project = chosen.name if chosen.own_store else chosen.project
    replica = [Diagnosis(INFO, "replica place", shown_place(chosen.store_replica))] if chosen.store_replica else []
    return [
        Diagnosis(INFO, "store place", f"{shown_place(chosen.store)} (from: {_origin(cli, 'store')})"),
        *replica,
        Diagnosis(INFO, "project", f"{project} (from: {_origin(cli, 'project')}), in {chosen.root}"),
        *(Diagnosis(INFO, "repository", remark) for remark in chosen.remarks),
        *(Diagnosis(INFO, "data folder", remark) for remark in warnings(chosen)),
        Diagnosis(INFO, "session", described),
        Diagnosis(INFO, "bounds", _values(chosen.bounds)),
        Diagnosis(INFO, "outputs", _values(chosen.bounds.outputs)),
        Diagnosis(INFO, "window", _values(chosen.bounds.window)),
    ]


def _origin(cli: Invocation, name: str) -> str:
    """Where a setting comes from, worked out by leaving one source after the other out."""
    if getattr(cli, name):
        return f"--{name}"
    store = cli.store if name == "project" else None
    chosen = cli.settings
    paths = ("HOME", "USERPROFILE", "LIMPET_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "APPDATA")
    plain = settings.environment(paths, own=True)
    if load(store, cli.project, environment=plain)[:2] != chosen[:2]:
        return "environment"
    here = ProjectFolder(Home(settings.data_folder()), locate(os.getcwd(), settings.paths(plain).shared))
    is_default = chosen.own_store if name == "store" else here.store == chosen.store or here.label == chosen.project
    return "default" if is_default else "configuration"


def _permissions(path: str) -> list[Diagnosis]:
    """Memory can hold anything an agent has seen, so other users of the machine must not be able to read it."""
    rules = [(path + end, PRIVATE_FILE) for end in ("", "-wal", "-shm", ".lock", ".queue", ".reserve")]
    folder = os.path.dirname(path)
    data = settings.data_folder()
    if path.startswith(data + os.sep):
        rules += [(folder, PRIVATE_FOLDER), (data, PRIVATE_FOLDER)]
    findings = []
    for place, most in rules if os.name == "posix" else ():
        try:
            mode = os.stat(place).st_mode & 0o777
        except FileNotFoundError:
            continue
        except OSError as problem:
            findings.append(Diagnosis(PROBLEM, "permissions", f"{place} cannot be looked at: {problem.strerror}."))
            continue
        if mode & ~most:
            advice = f"{place} is open to others (mode {mode:o}). Close it: chmod {most:o} '{place}'"
            findings.append(Diagnosis(PROBLEM, "permissions", advice))
    return findings or [Diagnosis(OK, "permissions", "only you can read it")]


def _health(cli: Invocation) -> list[Diagnosis]:
    try:
        hold = cli.hold
        findings = [Diagnosis(OK, "opens", _schema(cli))]
        checks = (*hold.store.obstacles(), *hold.check())
        findings += [Diagnosis(OK if check.ok else PROBLEM, check.name, check.detail) for check in checks]
        reply = hold.call("list_sessions", {"limit": 1}, by=BY)
        newest = ", ".join(row["id"] for row in reply["sessions"]) or "none"
        waits = [Diagnosis(INFO, "review", words)] if (words := review.waits_long(hold.context(by=BY))) else []
        return [*findings, _meaning(hold), *waits, Diagnosis(INFO, "newest session", newest)]
    except LimpetError as problem:
        return [Diagnosis(PROBLEM, "store", problem.message)]


def _meaning(hold: Limpet) -> Diagnosis:
    """Which model recall compares texts by, and what it has still to do."""
    ctx = hold.context()
    if ctx.embeddings is None or not ctx.bounds.recall.meaning:
        return Diagnosis(INFO, "meaning", "off: recall compares words")
    if problem := ctx.embeddings.models().problem:
        return Diagnosis(PROBLEM, "meaning", problem.message)
    left = embeddings.backlog(ctx.embeddings, ctx.store, ctx.scope)
    if not left.model:
        return Diagnosis(
            INFO, "meaning", "no model: recall compares words; limpet[semantic] or limpet[embed] brings one"
        )
    detail = f"{left.model} ({left.kind})"
    if (stored := embeddings.label_of(left.stored)) not in ("", left.model):
        detail += f"; the vectors are of {stored}"
    if left.texts:
        does = "the next recall does it" if left.by_questions else "`limpet index` does it"
        detail += f"; {left.texts:,} not embedded yet: {does}"
    return Diagnosis(INFO, "meaning", detail)


def _schema(cli: Invocation) -> str:
    if file_of(cli.settings.store) is None:
        return "the server answers"
    return f"schema {SCHEMA}, which is the newest"  # opening brings an older one up to it and refuses a newer one


def _packages() -> str:
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{name} not installed")
    return ", ".join(versions)


def _values(bounds: Bounds | OutputRules | WindowRules) -> str:
    plain = {name: value for name, value in bounds._asdict().items() if isinstance(value, int)}
    return ", ".join(f"{name} {_value(name, value)}" for name, value in plain.items())


def _value(name: str, value: int) -> str:
    """A setting as people say it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "max_age":
        return f"{value / DAY_SECONDS:,.3g} days"
    if name == "max_cache_size":
        return f"{value / (1 << 20):,.4g} MB"
    return f"{value:,}"


# --- a server ---------------------------------------------------------------------------------------------------------


class ServerReply(NamedTuple):
    status: int
    date: str
    body: Any  # the JSON value; None if it is not JSON


class RemoteServer(NamedTuple):
    scheme: str
    netloc: str
    host: str
    token: str | None

    def get(self, path: str, **headers: str) -> ServerReply:
        return self._ask("GET", path, None, headers)

    def post(self, path: str, body: object) -> ServerReply:
        return self._ask("POST", path, json.dumps(body), {"Content-Type": "application/json"})

    def _ask(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> ServerReply:
        kind = HTTPSConnection if self.scheme == "https" else HTTPConnection
        connection = kind(self.netloc, timeout=SECONDS)
        authorization = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            connection.request(method, path, body, {**authorization, **headers})
            return _read(connection.getresponse())
        finally:
            connection.close()


def _read(response: HTTPResponse) -> ServerReply:
    body = response.read(BODY_BYTES)
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    return ServerReply(response.status, response.headers.get("date", ""), content)


def examine_server(url: str, token: str | None) -> list[Diagnosis]:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.bad_setting("url", url, "it must be an address such as https://limpet.example.org")
    server = RemoteServer(parts.scheme, parts.netloc.rpartition("@")[2], parts.hostname, token)
    try:
        health = server.get("/health")
    except ssl.SSLError as problem:
        detail = f"its certificate is not accepted ({problem.reason}). Renew it, or ask by the name that it is for."
        return [Diagnosis(PROBLEM, "TLS", detail)]
    except (OSError, HTTPException) as problem:
        detail = f"{server.netloc} does not answer ({problem}). Check the address, and that `limpet serve` runs there."
        return [Diagnosis(PROBLEM, "reachable", detail)]
    if problem_of_health := _unhealthy(health):
        return [problem_of_health]
    findings = [Diagnosis(OK, "reachable", f"{parts.scheme}://{server.netloc}"), _tls(server), _clock(health.date)]
    try:
        return [*findings, *_doors(server), *_token(server)]
    except (OSError, HTTPException) as problem:
        return [*findings, Diagnosis(PROBLEM, "reachable", f"it stopped answering ({problem}). Look at its log.")]


def _unhealthy(health: ServerReply) -> Diagnosis | None:
    if (health.status, health.body) == (200, {"status": "ok"}):
        return None
    if health.status == 421:
        detail = "the server does not know this name as its own. Start it with --url and the address that clients use."
        return Diagnosis(PROBLEM, "host", detail)
    if health.status == 503 and isinstance(health.body, dict) and isinstance(health.body.get("message"), str):
        return Diagnosis(PROBLEM, "store", health.body["message"])
    detail = f"/health answers {health.status}, and not as Limpet does. Check the address, or what the proxy does."
    return Diagnosis(PROBLEM, "reachable", detail)


def _tls(server: RemoteServer) -> Diagnosis:
    if server.scheme == "https":
        return Diagnosis(OK, "TLS", "the certificate is good")
    if server.host in LOOPBACK:
        return Diagnosis(INFO, "TLS", "none, which is fine on this machine")
    return Diagnosis(PROBLEM, "TLS", "tokens and texts cross the network in the clear. Put a proxy with TLS before it.")


def _clock(date: str) -> Diagnosis:
    try:
        skew = parsedate_to_datetime(date).timestamp() - time.time()
    except ValueError:
        return Diagnosis(INFO, "clock", "the server does not say what time it is there")
    if abs(skew) > SKEW_SECONDS:
        way = "ahead of" if skew > 0 else "behind"
        detail = f"it is {abs(skew):,.0f} seconds {way} ours. Tokens expire by that clock; set both by NTP."
        return Diagnosis(PROBLEM, "clock", detail)
    return Diagnosis(OK, "clock", "it agrees with ours")


def _doors(server: RemoteServer) -> list[Diagnosis]:
    """Whether requests from pages of other sites and for other host names are refused."""
    findings = []
    requests = (("origin", {"Origin": f"https://{FOREIGN}"}, 403), ("host", {"Host": FOREIGN}, 421))
    for name, header, rule in requests:
        status = server.get("/health", **header).status
        if status >= 400:
            findings.append(Diagnosis(OK, name, "a strange one is refused"))
        else:
            detail = f"a strange one is answered with {status} and not {rule}. Look at what the proxy does with it."
            findings.append(Diagnosis(PROBLEM, name, detail))
    return findings


def _token(server: RemoteServer) -> list[Diagnosis]:
    who = server.get("/api/v1/whoami")
    if who.status == 401:
        wants = (
            "it is unknown, expired or revoked. Ask for another." if server.token else "none was given. Add --token."
        )
        return [Diagnosis(PROBLEM if server.token else INFO, "token", wants)]
    if who.status != 200 or not isinstance(who.body, dict):
        return [Diagnosis(PROBLEM, "token", f"{_message(who)}")]
    projects = ", ".join(who.body.get("projects", ())) or "none"
    scope = Diagnosis(OK, "token", f"scope {who.body.get('scope')}, projects {projects}")
    return [scope, *_expiry(who.body.get("expires_at")), _version(server), _store(server, who.body.get("projects", ()))]


def _expiry(expires_at: object) -> list[Diagnosis]:
    if not isinstance(expires_at, str):
        return []
    days = (milliseconds(expires_at) / 1_000 - time.time()) / 86_400
    if days < SOON_DAYS:
        return [Diagnosis(INFO, "expiry", f"{expires_at}, which is soon. Make another with `limpet token create`.")]
    return [Diagnosis(OK, "expiry", expires_at)]


def _version(server: RemoteServer) -> Diagnosis:
    about = server.get("/api/v1/openapi.json").body
    version = about.get("info", {}).get("version") if isinstance(about, dict) else None
    if version == __version__:
        return Diagnosis(OK, "version", f"limpet {version}, as here")
    return Diagnosis(INFO, "version", f"limpet {version} there, {__version__} here")


def _store(server: RemoteServer, projects: object) -> Diagnosis:
    first = next((name for name in projects if name != "*"), None) if isinstance(projects, list) else None
    if first is None:
        response = server.get("/api/v1/projects")
    else:
        response = server.post(f"/p/{quote(first, safe='')}/api/v1/operations/list_sessions", {"limit": 1})
    if response.status == 200:
        return Diagnosis(OK, "store", "it answers")
    return Diagnosis(PROBLEM, "store", _message(response))


def _message(response: ServerReply) -> str:
    words = response.body.get("message") if isinstance(response.body, dict) else None
    return str(words) if words else f"the server answers {response.status}. Look at its log."
