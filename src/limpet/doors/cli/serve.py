"""`limpet serve` and `dashboard`: one server over HTTP, in one process or several, and what to tell its clients."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import webbrowser
from collections.abc import Callable
from typing import Any

from limpet import errors, telemetry, wiring
from limpet.api import wall_clock
from limpet.catalogue.table import profile as check_profile
from limpet.doors.cli import render
from limpet.doors.cli.commands import Misuse
from limpet.doors.cli.commands.connect import DEFAULT_PROFILE, PORT
from limpet.doors.cli.render import shown_place
from limpet.doors.cli.run import Invocation
from limpet.record import NamedTuple

try:
    from limpet.doors.dashboard.sign_in import Marks
    from limpet.doors.http import server
    from limpet.doors.http.workers import Workers
except ImportError as problem:
    raise errors.not_installed("limpet serve", "http") from problem

TOKEN_BYTES = 32  # 256 bits cannot be guessed


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
    return _serve(cli, Options(port=port), browse=not no_open)


def _serve(cli: Invocation, options: Options, *, browse: bool = False) -> int:
    check_profile(options.profile)  # a wrong name must not create a store
    chosen = options.token or cli.settings.token
    token = None if options.no_token or options.team else chosen or secrets.token_urlsafe(TOKEN_BYTES)
    marks = None if token is None else Marks()

    def ready(url: str) -> None:
        reply = {
            "url": url,
            "token": None if chosen else token,
            "profile": options.profile,
            "project": cli.settings.project,
            "store": shown_place(cli.settings.store),
            "dashboard": _dashboard_url(url, marks),
        }
        needed = token is not None or options.team
        cli.answer(reply, lambda screen: _explain(screen, reply, needed=needed, team=options.team))
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
        screen.line(f"token for this run: {token}", "yellow")
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
