"""`limpet mcp`, `wrap` and `gateway`: serve one client on standard input and output until it goes away.

The client waits for every start, so each of them imports what it serves with and nothing of the others.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from limpet import settings, wiring
from limpet.catalogue.late import LateModule
from limpet.catalogue.table import profile as check_profile
from limpet.doors.cli.commands import Misuse
from limpet.doors.cli.run import Invocation
from limpet.home.folders import ProjectFolder
from limpet.home.load import load
from limpet.home.place import PERSONAL
from limpet.light import TYPE_CHECKING

if TYPE_CHECKING:
    from limpet import telemetry
    from limpet.api import Limpet
    from limpet.doors import client_roots, stdio
    from limpet.doors.proxy import backend as backends
    from limpet.doors.proxy import gateway as gateways
    from limpet.doors.proxy import gateway_servers, http_rules, upstream, upstream_http, wrapper
else:
    # OpenTelemetry takes longer to import than a server; a server that is a process needs no HTTP client.
    telemetry, stdio, wrapper = map(LateModule, ("telemetry", "doors.stdio", "doors.proxy.wrapper"))
    client_roots = LateModule("doors.client_roots")
    backends, upstream = map(LateModule, ("doors.proxy.backend", "doors.proxy.upstream"))
    http_rules, upstream_http = map(LateModule, ("doors.proxy.http_rules", "doors.proxy.upstream_http"))
    gateways, gateway_servers = map(LateModule, ("doors.proxy.gateway", "doors.proxy.gateway_servers"))


def mcp(cli: Invocation, profile: str, structured: bool, no_handoff: bool, log_json: bool, traces: bool) -> int:
    check_profile(profile)  # a wrong name must not create a store
    with ExitStack() as opened:

        def opened_in(chosen: settings.Settings) -> Limpet:
            hold = opened.enter_context(wiring.open_with(chosen, session=cli.session, even_broken=True))
            if log_json or traces:
                telemetry.watch(hold, [telemetry.log_line] if log_json else [], traces=traces)
            hold.index_in_background()
            return hold

        def opened_in_root(folder: str) -> Limpet:
            chosen = load(cli.store, cli.project, folder=folder, server=True, by_client=True)
            cli.notice(f"the client works in {folder}, so this is the project {chosen.name}.")
            return opened_in(chosen)

        if traces:
            telemetry.send_spans()
        remark, ask = "", None
        if isinstance(cli.settings.data, ProjectFolder) and cli.settings.data.place.kind == PERSONAL:
            remark = " ".join(f"Limpet: {text}" for text in cli.settings.remarks)
            home = settings.paths(settings.process_environment()).home
            ask = partial(client_roots.ClientRoots, open_in=opened_in_root, home=home)
        how = stdio.Serving(handoff=not no_handoff, remark=remark, structured=structured)
        stdio.serve(opened_in(cli.settings), profile, cli.session, how, ask=ask)
    return 0


def wrap(  # noqa: PLR0913 - the options of the command
    cli: Invocation,
    *,
    url: str | None,
    header: tuple[str, ...],
    header_env: tuple[str, ...],
    name: str | None,
    threshold: int | None,
    strict: bool,
    keep_schemas: bool,
    server: tuple[str, ...],
) -> int:
    """Pass everything between the client and one server; its exit code."""
    if bool(server) == (url is not None):
        raise Misuse("Name one server: its command after --, or its address with --url.")
    if url is None and (header or header_env):
        raise Misuse("--header and --header-env go with --url.")
    backend = _backend(cli, threshold, strict, keep_schemas)
    if url is None:
        title = name or " ".join(server)
        return wrapper.serve(lambda events: upstream.ProcessLink(server, title, events), backend)
    address = http_rules.address_of(url)
    pairs = [line.partition(":")[::2] for line in header]
    for line in header_env:
        header_name, _, variable = line.partition("=")
        pairs.append((header_name, settings.variable(variable)))
    headers = dict(http_rules.header(*pair) for pair in pairs)
    title = name or address.shown
    return wrapper.serve(lambda events: upstream_http.HttpLink(address, headers, title, events), backend)


def gateway(
    cli: Invocation, config: str, wait: int | None, threshold: int | None, strict: bool, keep_schemas: bool
) -> int:
    """The same for many servers, whose tools get the server's name as a prefix."""
    specs = gateway_servers.load(config)
    seconds = gateways.WAIT_SECONDS if wait is None else float(wait)
    backend = _backend(cli, threshold, strict, keep_schemas)
    return wrapper.serve(lambda events: gateways.Gateway(specs, events, seconds), backend)


def _backend(cli: Invocation, threshold: int | None, strict: bool, keep_schemas: bool) -> backends.Backend:
    def load() -> settings.Settings:
        chosen = cli.settings
        if threshold is None:
            return chosen
        outputs = chosen.bounds.outputs._replace(threshold_bytes=threshold)
        return chosen._replace(bounds=chosen.bounds._replace(outputs=outputs))

    return backends.Backend(load, cli.session, strict=strict, keep_schemas=keep_schemas)
