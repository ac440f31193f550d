"""`limpet mcp`: serve one client on standard input and output until it goes away."""

from __future__ import annotations

from limpet import wiring
from limpet.catalogue.table import profile as check_profile
from limpet.doors import stdio
from limpet.doors.cli.invocation import Invocation


def mcp(cli: Invocation, profile: str, no_handoff: bool, log_json: bool, traces: bool) -> int:
    check_profile(profile)  # a wrong name must not create a store
    with wiring.open_with(cli.settings, session=cli.session, even_broken=True) as hold:
        if log_json or traces:
            from limpet import telemetry  # late: OpenTelemetry takes longer to import than the server

            if traces:
                telemetry.send_spans()
            telemetry.watch(hold, [telemetry.log_line] if log_json else [], traces=traces)
        stdio.serve(hold, profile, cli.session, handoff=not no_handoff)
    return 0
