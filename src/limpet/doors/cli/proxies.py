"""`limpet wrap` and `gateway`: a proxy for one MCP server, or for several."""

from __future__ import annotations

from limpet import settings
from limpet.doors.cli.command import Misuse
from limpet.doors.cli.invocation import Invocation
from limpet.doors.proxy import wrapper
from limpet.doors.proxy.kept_outputs import Outputs
from limpet.doors.proxy.upstream_process import Upstream


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
    outputs = _outputs(cli, threshold, strict)
    if url is None:
        title = name or " ".join(server)
        return wrapper.serve(lambda events: Upstream(server, title, events), outputs)
    from limpet.doors.proxy import http_rules, upstream_http  # late: a server that is a process needs no HTTP client

    place = http_rules.place_of(url)
    pairs = [line.partition(":")[::2] for line in header]
    for line in header_env:
        header_name, _, variable = line.partition("=")
        pairs.append((header_name, settings.variable(variable)))
    headers = dict(http_rules.header(*pair) for pair in pairs)
    return wrapper.serve(lambda events: upstream_http.Http(place, headers, name or place.shown, events), outputs)


def gateway(cli: Invocation, config: str, wait: int | None, threshold: int | None, strict: bool) -> int:
    """The same for many servers, whose tools get the server's name as a prefix."""
    from limpet.doors.proxy import gateway, gateway_config  # late: `wrap` needs neither

    specs = gateway_config.load(config)
    seconds = gateway.WAIT_SECONDS if wait is None else float(wait)
    return wrapper.serve(lambda events: gateway.Gateway(specs, events, seconds), _outputs(cli, threshold, strict))


def _outputs(cli: Invocation, threshold: int | None, strict: bool) -> Outputs:
    def load() -> settings.Settings:
        chosen = settings.load(cli.store, cli.project)
        if threshold is None:
            return chosen
        outputs = chosen.bounds.outputs._replace(threshold_bytes=threshold)
        return chosen._replace(bounds=chosen.bounds._replace(outputs=outputs))

    return Outputs(load, cli.session, strict=strict)
