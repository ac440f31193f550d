"""`limpet serve` and `dashboard`: one server over HTTP, in one process or several, and what to tell its clients."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import stat
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from limpet import errors, telemetry, wiring
from limpet.api import wall_clock
from limpet.catalogue.table import profile as check_profile
from limpet.doors.cli import render
from limpet.doors.cli.commands import Misuse
from limpet.doors.cli.commands.connect import DEFAULT_PROFILE, PORT
from limpet.doors.cli.render import shown_place
from limpet.doors.cli.run import Invocation
from limpet.home.folders import Home
from limpet.platform import here
from limpet.record import NamedTuple
from limpet.settings import Settings, data_folder

try:
    from limpet.doors.dashboard.sign_in import Marks
    from limpet.doors.http import server
    from limpet.doors.http.workers import Workers
except ImportError as problem:
    raise errors.not_installed("limpet serve", "http") from problem

TOKEN_BYTES = 32  # 256 bits cannot be guessed
TOKEN_FILE = "server-token"  # noqa: S105 - a name
TOKEN_SHAPE = re.compile(r"[A-Za-z0-9_-]{43}")
TOKEN_CHARS_MOST = 200  # read of the file


class Options(NamedTuple):
    """The options of `limpet serve`."""

    host: str = "127.0.0.1"
    port: int = PORT
    profile: str = DEFAULT_PROFILE
    structured: bool = False
    token: str | None = None
    no_token: bool = False
    team: bool = False
    url: str = ""
    workers: int = 1
    metrics: bool = False
    log_json: bool = False
    traces: bool = False


def serve(cli: Invocation, /, **values: Any) -> int:
    options = Options(**values)
    if sum(map(bool, (options.token, options.no_token, options.team))) > 1:
        raise Misuse("Only one of --token, --no-token and --team can be given.")
    if options.metrics and options.workers > 1:
        raise Misuse(
            "--metrics counts in one process, so it goes with one worker. Start several servers on ports of their "
            "own behind a balancer instead, and let each be asked."
        )
    return _serve(cli, options)


def dashboard(cli: Invocation, port: int, no_open: bool) -> int:
    return _serve(cli, Options(port=port), page=True, browse=not no_open)


def _serve(cli: Invocation, options: Options, *, page: bool = False, browse: bool = False) -> int:
    """`page`: for a person who looks with a browser, and connects nothing else."""
    check_profile(options.profile)  # a wrong name must not create a store
    chosen = options.token or cli.settings.token
    token, kept = (None, "") if options.no_token or options.team else (chosen, "")
    if token is None and not (options.no_token or options.team):
        token, kept = (secrets.token_urlsafe(TOKEN_BYTES), "") if page else kept_token(cli.settings)
    marks = None if token is None else Marks()

    def ready(url: str) -> None:
        reply = {
            "url": url,
            "token": None if chosen or page else token,
            "token_file": kept or None,
            "profile": options.profile,
            "project": cli.settings.project,
            "store": shown_place(cli.settings.store),
            "dashboard": _dashboard_url(url, marks),
        }
        needed = token is not None or options.team
        explain = _explain_page if page else _explain
        cli.answer(reply, lambda screen: explain(screen, reply, needed=needed, team=options.team))
        sys.stdout.flush()
        if browse:
            webbrowser.open(str(reply["dashboard"]))

    offer = server.Offer(token, options.team, options.url.rstrip("/"), options.structured)
    if options.workers == 1:
        _in_one_process(cli, options, offer, ready, marks=marks)
        return 0
    return _in_several(cli, options, offer, ready, marks=marks)


def _in_one_process(cli: Invocation, options: Options, offer: Any, ready: Callable[[str], None], **shared: Any) -> None:
    """Serve in this process until it is stopped."""
    metrics = telemetry.Metrics() if options.metrics else None
    observers: list[telemetry.See] = [
        *([metrics.see] if metrics else []),
        *([telemetry.log_line] if options.log_json else []),
    ]
    if options.traces:
        telemetry.send_spans()
    running = server.Running(metrics, shared.get("listener"), "listener" in shared, shared.get("marks"))
    session = cli.session or shared.get("session")
    with wiring.open_with(cli.settings, session=session) as hold:
        telemetry.watch(hold, observers, traces=options.traces)
        hold.index_in_background()
        # The server finishes its requests and then gets the signal again, which now closes the store in order too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            server.serve(
                hold,
                options.profile,
                offer,
                host=options.host,
                port=options.port,
                session=cli.session,
                on_ready=ready,
                running=running,
            )
        except KeyboardInterrupt:
            return  # Ctrl-C is how a server is stopped; it has finished what it was doing


def _in_several(cli: Invocation, options: Options, offer: Any, ready: Callable[[str], None], **shared: Any) -> int:
    """The same in several processes. They are forked before anything is opened that they cannot share."""
    import mcp.server  # noqa: F401 - each would import it by itself otherwise, with the first request that needs it

    # Calls that name no session belong to the server's own, which must be the same in every process.
    session = cli.session or cli.settings.session or f"s-{os.urandom(6).hex()}"
    with server.listening(options.host, options.port) as listener:
        listener.listen(server.BACKLOG)
        port = listener.getsockname()[1]
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = (offer.url or f"http://{host}:{port}").rstrip("/")

        def work(reached: Callable[[], None]) -> None:
            _in_one_process(cli, options, offer, lambda url: reached(), listener=listener, session=session, **shared)

        return Workers(options.workers, work).run(lambda: ready(f"{address}/mcp"))


def kept_token(settings: Settings) -> tuple[str, str]:
    """The token of this project's local server, which lasts from one start to the next, and its file.

    The file is made at the first start, for this user alone. One that others could read, or that is no token, is
    replaced by a new one.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    try:
        folder = settings.data.make() if settings.data and settings.own_store else Home(data_folder()).make()
        path = os.path.join(folder, TOKEN_FILE)
        if earlier := _read_token(path):
            return earlier, path
        new = f"{path}.{secrets.token_hex(4)}.new"
        with open(here.create_file(new), "w", encoding="ascii") as file:
            file.write(f"{token}\n")
        return _placed(new, path) or token, path
    except (OSError, errors.LimpetError):
        return token, ""  # a folder that cannot be written, as in a container: then it is for this run


def _placed(new: str, path: str) -> str:
    """Give the file its name. The token that is then there: of two servers that start at once, the first one's."""
    try:
        with suppress(OSError):  # there is one already, or the file system has no links
            os.link(new, path)
        if earlier := _read_token(path):
            return earlier
        os.replace(new, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new)
    return _read_token(path)


def _read_token(path: str) -> str:
    """The token in the file; empty if there is none that can be relied on."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(file, encoding="ascii", errors="replace") as opened:
        status = os.fstat(file)
        private = stat.S_ISREG(status.st_mode) and not status.st_mode & 0o077 and status.st_uid == os.geteuid()
        token = opened.read(TOKEN_CHARS_MOST).strip() if private else ""
    return token if TOKEN_SHAPE.fullmatch(token) else ""


def _explain_page(screen: render.Screen, reply: dict[str, str | None], **_shared: bool) -> None:
    """What a person needs who wants to look."""
    screen.line(f"{reply['project']}: {reply['dashboard']}", "bold")
    screen.line("It signs you in once. Ctrl-C stops it.")


def _dashboard_url(url: str, marks: Marks | None) -> str:
    """The address of the dashboard. On a local server it signs a person in, once."""
    home = url.removesuffix("/mcp") + "/"
    return home if marks is None else f"{home}sign-in?code={marks.signed('code', wall_clock())}"


def _explain(screen: render.Screen, reply: dict[str, str | None], *, needed: bool, team: bool) -> None:
    url, token = reply["url"], reply["token"]
    screen.line(f"Limpet listens at {url}", "bold")
    screen.line(f"dashboard {reply['dashboard']}", "bold")
    screen.line(f"store {reply['store']}, project {reply['project']}, profile {reply['profile']}")
    if token:
        screen.line(f"token: {token}", "yellow")
        place = reply["token_file"]
        lasts = f"It stays the same after a restart: {place} keeps it; delete that file for another."
        screen.line(lasts if place else "It is for this run: there is no folder to keep it in.")
    elif team:
        screen.line("tokens: those of `limpet token create`, each for its own projects")
    elif needed:
        screen.line("token: the one you set")
    else:
        screen.line("no token: every program on this machine may read and write", "red")
    secret = token or "YOUR_TOKEN"
    entry: dict[str, object] = {"type": "http", "url": url}
    header = ""
    if needed:
        entry["headers"] = {"Authorization": f"Bearer {secret}"}
        header = f' --header "Authorization: Bearer {secret}"'
    screen.line("")
    screen.line("To connect a client, put this into its MCP configuration:")
    screen.line(f"  {json.dumps({'mcpServers': {'limpet': entry}})}")
    screen.line("or, for Claude Code:")
    screen.line(f"  claude mcp add --transport http limpet {url}{header}")
    screen.line("")
    screen.line("Ctrl-C stops it.")
