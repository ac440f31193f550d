"""`limpet serve`: one server over HTTP, in one process or several, and what to tell its clients."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from limpet import errors
from limpet.doors.cli import fast_start, render
from limpet.doors.cli.build import Group, command, pass_state
from limpet.doors.cli.context import State
from limpet.doors.cli.store_address import shown_place

PORT = 7438
TOKEN_BYTES = 32  # 256 bits: nobody guesses it
WORKERS_MAX = 64  # processes; more than any one machine has use for
PROFILE = click.option(
    "--profile",
    default=fast_start.DEFAULT_PROFILE,
    metavar="NAME",
    help="core (eight tools), coding (ten) or full. [default: core]",
)
LOG_JSON = click.option("--log-json", is_flag=True, help="A line of JSON on standard error for every call.")
TRACES = click.option("--traces", is_flag=True, help="Send an OpenTelemetry span for every call (OTEL_… say where to).")
OPTIONS = (
    click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen. [default: 127.0.0.1]"),
    click.option("--port", default=PORT, type=click.IntRange(0, 65535), metavar="N", help=f"0: any. [default: {PORT}]"),
    PROFILE,
    click.option("--token", metavar="TOKEN", help="What clients must send. LIMPET_TOKEN keeps it out of `ps`."),
    click.option("--no-token", is_flag=True, help="Let every program on this machine in."),
    click.option("--team", is_flag=True, help="Let in who has a token of `limpet token create`, or your provider's."),
    click.option("--url", default="", metavar="ADDRESS", help="Where clients reach it, behind a proxy: https://…"),
    click.option(
        "--workers",
        default=1,
        type=click.IntRange(1, WORKERS_MAX),
        metavar="N",
        help="Processes that serve the port. With several, MCP has no transport sessions. [default: 1]",
    ),
    click.option("--metrics", is_flag=True, help="Numbers for Prometheus at /metrics, for admins."),
    LOG_JSON,
    TRACES,
)


class Wanted(NamedTuple):
    """The options, as given."""

    host: str = "127.0.0.1"
    port: int = PORT
    profile: str = fast_start.DEFAULT_PROFILE
    token: str | None = None
    no_token: bool = False
    team: bool = False
    url: str = ""
    workers: int = 1
    metrics: bool = False
    log_json: bool = False
    traces: bool = False


def add_to(root: Group) -> None:
    def serve(state: State, /, **given: Any) -> int:
        wanted = Wanted(**given)
        if sum(map(bool, (wanted.token, wanted.no_token, wanted.team))) > 1:
            raise click.UsageError("Only one of --token, --no-token and --team can be given.")
        if wanted.metrics and wanted.workers > 1:
            raise click.UsageError(
                "--metrics counts in one process, so it goes with one worker. Start several servers on ports of their "
                "own behind a balancer instead, and let each be asked."
            )
        return _serve(state, wanted)

    made = pass_state(serve)
    for option in reversed(OPTIONS):
        made = option(made)
    command(
        root,
        "serve",
        "limpet serve --port 7438 --profile full\nlimpet serve --team --workers 4 --log-json",
        "Speak MCP over HTTP, on this machine unless you say otherwise, behind a token, and print how to connect.",
        session=True,
    )(made)
    _add_dashboard(root)


def _add_dashboard(root: Group) -> None:
    @command(
        root,
        "dashboard",
        "limpet dashboard",
        "Look at what is kept, in a browser: serve on this machine alone, open the page and sign in.",
    )
    @click.option("--port", default=0, type=click.IntRange(0, 65535), metavar="N", help="0: any. [default: 0]")
    @click.option("--no-open", is_flag=True, help="Only print the address.")
    @pass_state
    def dashboard(state: State, port: int, no_open: bool) -> int:
        return _serve(state, Wanted(port=port), browse=not no_open)


def _serve(state: State, wanted: Wanted, *, browse: bool = False) -> int:
    try:
        from limpet.doors.http import server
    except ImportError as problem:
        raise errors.not_installed("limpet serve", "http") from problem
    from limpet.catalogue.table import profile as operations_of

    operations_of(wanted.profile)  # a wrong name must not make a store first
    known = wanted.token or state.settings.token
    token = None if wanted.no_token or wanted.team else known or _fresh_token()

    def ready(url: str) -> None:
        made = None if known else token
        reply = {"url": url, "token": made, "profile": wanted.profile, "project": state.settings.project}
        reply["store"] = shown_place(state.settings.store)
        reply["dashboard"] = _dashboard(url, token)
        needed = token is not None or wanted.team
        state.answer(reply, lambda screen: _explain(screen, reply, needed=needed, team=wanted.team))
        sys.stdout.flush()
        if browse:
            import webbrowser

            webbrowser.open(str(reply["dashboard"]))

    offer = server.Offer(token, wanted.team, wanted.url.rstrip("/"))
    if wanted.workers == 1:
        _one(state, wanted, offer, ready)
        return 0
    return _several(state, wanted, offer, ready)


def _one(state: State, wanted: Wanted, offer: Any, ready: Callable[[str], None], **shared: Any) -> None:
    """Serve in this process until it is told to stop."""
    from limpet import telemetry, wiring
    from limpet.doors.http import server

    metrics = telemetry.Metrics() if wanted.metrics else None
    sees: list[telemetry.See] = [
        *([metrics.see] if metrics else []),
        *([telemetry.log_line] if wanted.log_json else []),
    ]
    if wanted.traces:
        telemetry.send_spans()
    running = server.Running(metrics, shared.get("listener"), stateless="listener" in shared)
    session = state.session or shared.get("session")
    with wiring.open_with(state.settings, session=session) as hold:
        telemetry.watch(hold, sees, traces=wanted.traces)
        # The server ends what is under way and then gets the signal once more: now it ends the rest in order too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            server.serve(
                hold,
                wanted.profile,
                offer,
                host=wanted.host,
                port=wanted.port,
                session=state.session,
                on_ready=ready,
                running=running,
            )
        except KeyboardInterrupt:
            return  # Ctrl-C is how a server is stopped; it has finished what it was doing


def _several(state: State, wanted: Wanted, offer: Any, ready: Callable[[str], None]) -> int:
    """The same in several processes. Nothing that cannot be shared is open yet when they part."""
    from limpet.doors.http import server
    from limpet.doors.http.workers import Workers

    # Calls that name no session work in the server's own, which must be the same whoever answers.
    session = state.session or state.settings.session or f"s-{os.urandom(6).hex()}"
    with server.listening(wanted.host, wanted.port) as listener:
        listener.listen(server.BACKLOG)
        port = listener.getsockname()[1]
        host = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
        shown = (offer.url or f"http://{host}:{port}").rstrip("/")

        def work(reached: Callable[[], None]) -> None:
            _one(state, wanted, offer, lambda url: reached(), listener=listener, session=session)

        return Workers(wanted.workers, work).run(lambda: ready(f"{shown}/mcp"))


def _dashboard(url: str, token: str | None) -> str:
    """Where people look. On a local server the address signs them in, once."""
    home = url.removesuffix("/mcp") + "/"
    if token is None:
        return home
    from limpet.api import wall_clock
    from limpet.doors.dashboard.sign_in import signed

    return f"{home}sign-in?code={signed(token.encode(), 'code', wall_clock())}"


def _fresh_token() -> str:
    import secrets

    return secrets.token_urlsafe(TOKEN_BYTES)


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
    shown = token or "YOUR_TOKEN"
    entry: dict[str, object] = {"type": "http", "url": url}
    header = ""
    if needed:
        entry["headers"] = {"Authorization": f"Bearer {shown}"}
        header = f' --header "Authorization: Bearer {shown}"'
    screen.line("")
    screen.line("To connect a client, put this into its MCP configuration:")
    screen.line(f"  {json.dumps({'mcpServers': {'limpet': entry}})}")
    screen.line("or, for Claude Code:")
    screen.line(f"  claude mcp add --transport http limpet {url}{header}")
    screen.line("")
    screen.line("Ctrl-C stops it.")
