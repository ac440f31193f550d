"""`limpet mcp`, `wrap` and `gateway`: letting agents in on standard input and output. `serve` is in serving.py."""

from __future__ import annotations

from typing import Any

import click

from limpet.doors.cli import fast_start, serving
from limpet.doors.cli.build import Group, command, pass_state
from limpet.doors.cli.context import State
from limpet.doors.cli.serving import LOG_JSON, PROFILE, TRACES

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
    click.option("--strict", is_flag=True, help="Block tools that changed since `limpet seals` first saw them."),
)


def add_to(root: Group) -> None:
    @command(
        root,
        "mcp",
        "limpet mcp --profile full",
        "Speak MCP on standard input and output, for a client that starts it. One process is one session.",
        session=True,
    )
    @PROFILE
    @click.option("--no-handoff", is_flag=True, help="Leave the handoff to the client's hooks, which give it too.")
    @LOG_JSON
    @TRACES
    @pass_state
    def mcp(state: State, profile: str, no_handoff: bool, log_json: bool, traces: bool) -> int:
        given = (state.store, state.project, state.session, profile, no_handoff, log_json, traces)
        return fast_start.run(fast_start.Wanted(*given))

    _add_wrap(root)
    _add_gateway(root)
    serving.add_to(root)


def _add_wrap(root: Group) -> None:
    def wrap(state: State, /, server: tuple[str, ...], threshold: int | None, **given: Any) -> int:
        if bool(server) == (given["url"] is not None):
            raise click.UsageError("Name one server: its command after --, or its address with --url.")
        if given["url"] is None and (given["header"] or given["header_env"]):
            raise click.UsageError("--header and --header-env go with --url.")
        most = None if threshold is None else str(threshold)
        return fast_start.run(fast_start.Wrapped(server, state.store, state.project, state.session, most, **given))

    made = pass_state(wrap)
    made = click.argument("server", nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED)(made)
    for option in reversed((*WRAP_OPTIONS, *KEEPING)):
        made = option(made)
    command(
        root,
        "wrap",
        "limpet wrap -- npx -y @modelcontextprotocol/server-filesystem .\n"
        "limpet wrap --url https://example.com/mcp --header-env Authorization=EXAMPLE_AUTH",
        "Stand in front of an MCP server, for a client on standard input and output: all passes as it is, except that "
        "big results are kept and a short preview with a reference comes in their place.",
        session=True,
    )(made)


def _add_gateway(root: Group) -> None:
    def gateway(state: State, /, config: str, threshold: int | None, wait: int | None, strict: bool) -> int:
        most, seconds = (None if number is None else str(number) for number in (threshold, wait))
        given = (config, state.store, state.project, state.session, most, seconds, strict)
        return fast_start.run(fast_start.Gathered(*given))

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
        "limpet gateway --config servers.json",
        "Stand in front of many MCP servers at once, for a client on standard input and output. Their tools are named "
        "server__tool; one server that is dead or hangs touches only its own. Big results are kept, as with `wrap`. "
        "Each command gets its `env`, what its `pass_env` names and a few common variables, and nothing else; "
        "${NAME} in a value stands for an environment variable.",
        session=True,
    )(made)
