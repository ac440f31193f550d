"""`limpet mcp`, `wrap`, `gateway` and `hook` without click: clients start them again and again and wait for them.

Their few options are read by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from limpet.doors.proxy.kept_outputs import Outputs

SHARED = ("store", "project", "session")  # these may also stand before the command
DEFAULT_PROFILE = "core"


class Wanted(NamedTuple):
    """The options of `limpet mcp`, as given."""

    store: str | None = None
    project: str | None = None
    session: str | None = None
    profile: str = DEFAULT_PROFILE
    no_handoff: bool = False
    log_json: bool = False
    traces: bool = False


class Wrapped(NamedTuple):
    """The options of `limpet wrap`, as given. What stands behind it is a command or an address."""

    command: tuple[str, ...] = ()
    store: str | None = None
    project: str | None = None
    session: str | None = None
    threshold: str | None = None
    url: str | None = None
    name: str | None = None
    header: tuple[str, ...] = ()
    header_env: tuple[str, ...] = ()
    strict: bool = False


class Gathered(NamedTuple):
    """The options of `limpet gateway`, as given."""

    config: str = ""
    store: str | None = None
    project: str | None = None
    session: str | None = None
    threshold: str | None = None
    wait: str | None = None
    strict: bool = False


Options = Wanted | Wrapped | Gathered
TAKES: dict[str, type[Options]] = {"mcp": Wanted, "wrap": Wrapped, "gateway": Gathered}


def recognise(args: list[str]) -> Options | None:
    """The options, or None when this is another command, or one with anything unusual, which is left to click."""
    end = args.index("--") if "--" in args else len(args)
    command = next((word for word in args[:end] if word in TAKES), None)
    if command is None:
        return None
    given = _options(args[:end], command, TAKES[command])
    if given is None:
        return None
    behind = tuple(args[end + 1 :])
    numbers = all(given.get(name, "1").isdecimal() for name in ("threshold", "wait"))
    if command == "mcp":
        return Wanted(**given) if end == len(args) else None
    if command == "gateway":
        return Gathered(**given) if end == len(args) and numbers and "config" in given else None
    # What is no number, and what names no server or two, is for click to refuse in its own words.
    usual = bool(behind) != ("url" in given) and not (behind and given.keys() & {"header", "header_env"})
    return Wrapped(behind, **given) if usual and numbers else None


def _options(args: list[str], command: str, known: type[Options]) -> dict[str, Any] | None:
    """The options by name; None when anything is not as usual."""
    given: dict[str, Any] = {}
    seen, rest = False, list(args)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if not word.startswith("--"):
            if seen or word != command:
                return None
            seen = True
        elif name not in known._fields or name == "command" or not (seen or name in SHARED):
            return None
        elif known._field_defaults[name] is False:
            if equals:
                return None
            given[name] = True
        elif not (equals or rest):
            return None
        else:
            one = value if equals else rest.pop(0)
            given[name] = (*given.get(name, ()), one) if known._field_defaults[name] == () else one
    return given if seen else None


def run(wanted: Options) -> int:
    """Serve one client until it goes away."""
    if isinstance(wanted, Gathered):
        return gateway(wanted)
    return wrap(wanted) if isinstance(wanted, Wrapped) else mcp(wanted)


def wrap(wanted: Wrapped) -> int:
    """Stand in front of one server; its exit code."""
    from limpet.doors.proxy import wrapper as door

    if wanted.url is not None:
        from limpet import settings
        from limpet.doors.proxy import http_rules, upstream_http

        place = http_rules.place_of(wanted.url)
        pairs = [line.partition(":")[::2] for line in wanted.header]
        for line in wanted.header_env:
            header, _, variable = line.partition("=")
            pairs.append((header, settings.variable(variable)))
        headers = dict(http_rules.header(*pair) for pair in pairs)
        shown = wanted.name or place.shown
        return door.serve(lambda events: upstream_http.Http(place, headers, shown, events), _memory(wanted))
    from limpet.doors.proxy.upstream_process import Upstream

    shown = wanted.name or " ".join(wanted.command)
    return door.serve(lambda events: Upstream(wanted.command, shown, events), _memory(wanted))


def gateway(wanted: Gathered) -> int:
    """Stand in front of many servers."""
    from limpet.doors.proxy import gateway as door
    from limpet.doors.proxy import gateway_config
    from limpet.doors.proxy import wrapper as wrap

    specs = gateway_config.load(wanted.config)
    wait = door.WAIT_SECONDS if wanted.wait is None else float(wanted.wait)
    return wrap.serve(lambda events: door.Gateway(specs, events, wait), _memory(wanted))


def _memory(wanted: Wrapped | Gathered) -> Outputs:
    from limpet import settings
    from limpet.doors.proxy.kept_outputs import Outputs

    def load() -> settings.Settings:
        chosen = settings.load(wanted.store, wanted.project)
        if wanted.threshold is None:
            return chosen
        outputs = chosen.bounds.outputs._replace(threshold_bytes=int(wanted.threshold))
        return chosen._replace(bounds=chosen.bounds._replace(outputs=outputs))

    return Outputs(load, wanted.session, strict=wanted.strict)


def mcp(wanted: Wanted) -> int:
    from limpet import settings, wiring
    from limpet.catalogue.table import profile
    from limpet.doors import stdio

    profile(wanted.profile)  # a wrong name must not make a store first
    chosen = settings.load(wanted.store, wanted.project)
    with wiring.open_with(chosen, session=wanted.session) as hold:
        if wanted.log_json or wanted.traces:
            from limpet import telemetry

            if wanted.traces:
                telemetry.send_spans()
            telemetry.watch(hold, [telemetry.log_line] if wanted.log_json else [], traces=wanted.traces)
        stdio.serve(hold, wanted.profile, wanted.session, handoff=not wanted.no_handoff)
    return 0
