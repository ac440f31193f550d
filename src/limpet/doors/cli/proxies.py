"""`limpet wrap` and `gateway`: a proxy for one MCP server, or for several."""

from __future__ import annotations

from limpet import settings
from limpet.doors.cli.command import Misuse
from limpet.doors.cli.invocation import Invocation
from limpet.doors.proxy import wrapper
from limpet.doors.proxy.backend import Backend
from limpet.doors.proxy.upstream import ProcessLink


def wrap(
    cli: Invocation,
    url: str | None,
    header: tuple[str, ...],
    header_env: tuple[str, ...],
    name: str | None,
    threshold: int | None,
    strict: bool,
    server: tuple[str, ...],
) -> int:
    """Pass everything between the client and one server; its exit code."""
    if bool(server) == (url is not None):
        raise Misuse("Name one server: its command after --, or its address with --url.")
    if url is None and (header or header_env):
        raise Misuse("--header and --header-env go with --url.")
    backend = _backend(cli, threshold, strict)
    if url is None:
        title = name or " ".join(server)
        return wrapper.serve(lambda events: ProcessLink(server, title, events), backend)
    from limpet.doors.proxy import http_rules, upstream_http  # late: a server that is a process needs no HTTP client

    address = http_rules.address_of(url)
    pairs = [line.partition(":")[::2] for line in header]
    for line in header_env:
        header_name, _, variable = line.partition("=")
        pairs.append((header_name, settings.variable(variable)))
    headers = dict(http_rules.header(*pair) for pair in pairs)
    title = name or address.shown
    return wrapper.serve(lambda events: upstream_http.HttpLink(address, headers, title, events), backend)


def gateway(cli: Invocation, config: str, wait: int | None, threshold: int | None, strict: bool) -> int:
    """The same for many servers, whose tools get the server's name as a prefix."""
    from limpet.doors.proxy import gateway, gateway_servers  # late: `wrap` needs neither

    specs = gateway_servers.load(config)
    seconds = gateway.WAIT_SECONDS if wait is None else float(wait)
    return wrapper.serve(lambda events: gateway.Gateway(specs, events, seconds), _backend(cli, threshold, strict))


def _backend(cli: Invocation, threshold: int | None, strict: bool) -> Backend:
    def load() -> settings.Settings:
        chosen = cli.settings
        if threshold is None:
            return chosen
        outputs = chosen.bounds.outputs._replace(threshold_bytes=threshold)
        return chosen._replace(bounds=chosen.bounds._replace(outputs=outputs))

    return Backend(load, cli.session, strict=strict)
