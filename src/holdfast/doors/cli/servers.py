"""`holdfast serve`, `mcp`, `wrap` and `gateway`: letting agents in, and what to tell their clients."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from holdfast import errors
from holdfast.doors import render
from holdfast.doors.cli import stdio
from holdfast.doors.cli.build import Group, command, pass_state
from holdfast.doors.cli.place import shown_place
from holdfast.doors.cli.state import State

PORT = 7438
TOKEN_BYTES = 32  # 256 bits: nobody guesses it
PROFILE = click.option(
    "--profile",
    default=stdio.DEFAULT_PROFILE,
    metavar="NAME",
    help="core (eight tools), coding (ten) or full. [default: core]",
)

WRAP_OPTIONS = (
    click.option("--url", metavar="ADDRESS", help="The server's streamable HTTP address, instead of a command."),
    click.option("--header", multiple=True, metavar="'NAME: VALUE'", help="Send this with every request to --url."),
    click.option(
        "--header-env",
        multiple=True,
        metavar="NAME=VARIABLE",
        help="The same with the value from an environment variable, so that no secret is seen in `ps`.",
    ),
    click.option("--name", metavar="NAME", help="What the server is called. [default: its command or address]"),
)
KEEPING = (
    click.option(
        "--threshold",
        type=click.IntRange(1),
        metavar="BYTES",
        help="Results of so many bytes or more are kept. [default: 4096]",
    ),
    click.option("--strict", is_flag=True, help="Block tools that changed since `holdfast seals` first saw them."),
)


def add_to(root: Group) -> None:
    @command(
        root,
        "mcp",
        "holdfast mcp --profile full",
        "Speak MCP on standard input and output, for a client that starts it. One process is one session.",
        session=True,
    )
    @PROFILE
    @click.option("--no-handoff", is_flag=True, help="Leave the handoff to the client's hooks, which give it too.")
    @pass_state
    def mcp(state: State, profile: str, no_handoff: bool) -> int:
        return stdio.run(stdio.Wanted(state.store, state.project, state.session, profile, no_handoff))

    _add_wrap(root)
    _add_gateway(root)

    @command(
        root,
        "serve",
        "holdfast serve --port 7438 --profile full",
        "Speak MCP over HTTP, on this machine unless you say otherwise, behind a token, and print how to connect.",
        session=True,
    )
    @click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen. [default: 127.0.0.1]")
    @click.option("--port", default=PORT, type=click.IntRange(0, 65535), metavar="N", help=f"0: any. [default: {PORT}]")
    @PROFILE
    @click.option("--token", metavar="TOKEN", help="What clients must send. HOLDFAST_TOKEN keeps it out of `ps`.")
    @click.option("--no-token", is_flag=True, help="Let every program on this machine in.")
    @click.option(
        "--team", is_flag=True, help="Let in who has a token of `holdfast token create`, or of your provider."
    )
    @click.option("--url", default="", metavar="ADDRESS", help="Where clients reach it, behind a proxy: https://…")
    @pass_state
    def serve(
        state: State, host: str, port: int, profile: str, token: str | None, no_token: bool, team: bool, url: str
    ) -> None:
        if sum(map(bool, (token, no_token, team))) > 1:
            raise click.UsageError("Only one of --token, --no-token and --team can be given.")
        _serve(state, (host, port), profile, (token, no_token, team), url)

    _add_dashboard(root)


def _add_dashboard(root: Group) -> None:
    @command(
        root,
        "dashboard",
        "holdfast dashboard",
        "Look at what is kept, in a browser: serve on this machine alone, open the page and sign in.",
    )
    @click.option("--port", default=0, type=click.IntRange(0, 65535), metavar="N", help="0: any. [default: 0]")
    @click.option("--no-open", is_flag=True, help="Only print the address.")
    @pass_state
    def dashboard(state: State, port: int, no_open: bool) -> None:
        _serve(state, ("127.0.0.1", port), stdio.DEFAULT_PROFILE, (None, False, False), "", browse=not no_open)


def _add_wrap(root: Group) -> None:
    def wrap(state: State, /, server: tuple[str, ...], threshold: int | None, **given: Any) -> int:
        if bool(server) == (given["url"] is not None):
            raise click.UsageError("Name one server: its command after --, or its address with --url.")
        if given["url"] is None and (given["header"] or given["header_env"]):
            raise click.UsageError("--header and --header-env go with --url.")
        most = None if threshold is None else str(threshold)
        return stdio.run(stdio.Wrapped(server, state.store, state.project, state.session, most, **given))

    made = pass_state(wrap)
    made = click.argument("server", nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED)(made)
    for option in reversed((*WRAP_OPTIONS, *KEEPING)):
        made = option(made)
    command(
        root,
        "wrap",
        "holdfast wrap -- npx -y @modelcontextprotocol/server-filesystem .\n"
        "holdfast wrap --url https://example.com/mcp --header-env Authorization=EXAMPLE_AUTH",
        "Stand in front of an MCP server, for a client on standard input and output: all passes as it is, except that "
        "big results are kept and a short preview with a reference comes in their place.",
        session=True,
    )(made)


def _add_gateway(root: Group) -> None:
    def gateway(state: State, /, config: str, threshold: int | None, wait: int | None, strict: bool) -> int:
        most, seconds = (None if number is None else str(number) for number in (threshold, wait))
        given = (config, state.store, state.project, state.session, most, seconds, strict)
        return stdio.run(stdio.Gathered(*given))

    made = pass_state(gateway)
    wait = click.option(
        "--wait",
        type=click.IntRange(1),
        metavar="SECONDS",
        help="How long a server may take to start or to list before the others are shown without it. [default: 8]",
    )
    config = click.option(
        "--config",
        required=True,
        metavar="FILE",
        help="JSON or TOML with the servers, as clients have it (mcpServers).",
    )
    for option in reversed((config, wait, *KEEPING)):
        made = option(made)
    command(
        root,
        "gateway",
        "holdfast gateway --config servers.json",
        "Stand in front of many MCP servers at once, for a client on standard input and output. Their tools are named "
        "server__tool; one server that is dead or hangs touches only its own. Big results are kept, as with `wrap`. "
        "Each command gets its `env`, what its `pass_env` names and a few common variables, and nothing else; "
        "${NAME} in a value stands for an environment variable.",
        session=True,
    )(made)


def _serve(
    state: State,
    place: tuple[str, int],
    profile: str,
    who: tuple[str | None, bool, bool],
    url: str,
    *,
    browse: bool = False,
) -> None:
    try:
        from holdfast.doors.http import server
    except ImportError as problem:
        raise errors.not_installed("holdfast serve", "http") from problem
    from holdfast import wiring
    from holdfast.operations.catalogue import profile as operations_of

    operations_of(profile)  # a wrong name must not make a store first
    given, no_token, team = who
    known = given or state.settings.token
    token = None if no_token or team else known or _fresh_token()

    def ready(url: str) -> None:
        made = None if known else token
        reply = {"url": url, "token": made, "profile": profile, "project": state.settings.project}
        reply["store"] = shown_place(state.settings.store)
        reply["dashboard"] = _dashboard(url, token)
        state.answer(reply, lambda screen: _explain(screen, reply, needed=token is not None or team, team=team))
        sys.stdout.flush()
        if browse:
            import webbrowser

            webbrowser.open(str(reply["dashboard"]))

    host, port = place
    offer = server.Offer(token, team, url.rstrip("/"))
    with wiring.open_with(state.settings, session=state.session) as hold:
        try:
            server.serve(hold, profile, offer, host=host, port=port, session=state.session, on_ready=ready)
        except KeyboardInterrupt:
            return  # Ctrl-C is how a server is stopped; it has finished what it was doing


def _dashboard(url: str, token: str | None) -> str:
    """Where people look. On a local server the address signs them in, once."""
    home = url.removesuffix("/mcp") + "/"
    if token is None:
        return home
    from holdfast.doors.dashboard.sign_in import signed
    from holdfast.library import wall_clock

    return f"{home}sign-in?code={signed(token.encode(), 'code', wall_clock())}"


def _fresh_token() -> str:
    import secrets

    return secrets.token_urlsafe(TOKEN_BYTES)


def _explain(screen: render.Screen, reply: dict[str, str | None], *, needed: bool, team: bool) -> None:
    url, token = reply["url"], reply["token"]
    screen.line(f"Holdfast listens at {url}", "bold")
    screen.line(f"dashboard {reply['dashboard']}", "bold")
    screen.line(f"store {reply['store']}, project {reply['project']}, profile {reply['profile']}")
    if token:
        screen.line(f"token for this run: {token}", "yellow")
    elif team:
        screen.line("tokens: those of `holdfast token create`, each for its own projects")
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
    screen.line(f"  {json.dumps({'mcpServers': {'holdfast': entry}})}")
    screen.line("or, for Claude Code:")
    screen.line(f"  claude mcp add --transport http holdfast {url}{header}")
    screen.line("")
    screen.line("Ctrl-C stops it.")
