"""Telemetry of a server's calls: metrics for Prometheus, spans for OpenTelemetry, and one log line per call.

All of it is off by default. A record has the operation, the caller, the outcome (`ok` or an error code) and the
duration. Arguments, answers and error messages are left out, because they can repeat stored texts.

This module writes Prometheus's text format itself: it takes a few lines, and the client library would be one more
dependency with a global registry.
"""

from __future__ import annotations

import json
import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from limpet import errors
from limpet.errors import LimpetError
from limpet.model import iso
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from limpet.api import Limpet, Run
    from limpet.catalogue.operation import Operation
    from limpet.redaction import Masking

TEXT = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
OK, FAILED = "ok", "failed_inside"


class Called(NamedTuple):
    operation: str
    by: str
    project: str
    outcome: str
    seconds: float


See = Callable[[Called], None]


def watch(hold: Limpet, sees: Sequence[See], *, traces: bool = False) -> None:
    """Report every call of `hold`, and of those opened from it, to all of `sees`, and with `traces` as a span."""
    if not (sees or traces):
        return

    def around(hold: Limpet, run: Run) -> Run:
        project, timed = hold.scope.project, _timed(run, hold.scope.project, sees)
        return _spans(timed, project) if traces else timed

    hold.observe(around)


def _timed(run: Run, project: str, sees: Sequence[See]) -> Run:
    def watched(
        operation: Operation, arguments: Mapping[str, Any], session: str | None, by: str, masking: Masking | None = None
    ) -> Any:
        began = time.perf_counter()

        def tell(outcome: str) -> None:
            called = Called(operation.name, by, project, outcome, time.perf_counter() - began)
            for see in sees:
                see(called)

        with _outcome(tell):
            return run(operation, arguments, session, by, masking)

    return watched


@contextmanager
def _outcome(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` with how the block ended: OK, the code of an error, or FAILED."""
    outcome = FAILED
    try:
        yield
        outcome = OK
    except LimpetError as problem:
        outcome = problem.code
        raise
    finally:
        tell(outcome)


# --- log --------------------------------------------------------------------------------------------------------------


def log_line(called: Called) -> None:
    """Write one JSON object to standard error, in one write, so that lines of several threads do not mix."""
    milliseconds = round(called.seconds * 1_000, 3)
    at = iso(time.time_ns() // 1_000_000)
    record = called._asdict() | {"at": at, "ms": milliseconds}
    del record["seconds"]
    sys.stderr.write(json.dumps(record) + "\n")
    sys.stderr.flush()


# --- metrics ----------------------------------------------------------------------------------------------------------


class Metrics:
    """Metrics since the start of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._slots: dict[str, list[int]] = {}  # per operation: calls per bucket of BOUNDS; the last bucket is +Inf
        self._seconds: dict[str, float] = {}
        self._answers: Counter[int] = Counter()

    def see(self, called: Called) -> None:
        with self._lock:
            self._calls[called.operation, called.outcome] += 1
            slots = self._slots.setdefault(called.operation, [0] * (len(BOUNDS) + 1))
            slots[bisect_left(BOUNDS, called.seconds)] += 1
            self._seconds[called.operation] = self._seconds.get(called.operation, 0.0) + called.seconds

    def answered(self, status: int) -> None:
        with self._lock:
            self._answers[status] += 1

    def text(self, gauges: Mapping[str, tuple[str, int]], searches: Mapping[str, int] | None = None) -> str:
        """All metrics as text, with the caller's gauges (name to help text and value) and searches by source."""
        lines: list[str] = []
        for name, (words, value) in gauges.items():
            lines += [*_head(name, "gauge", words), f"limpet_{name} {value}"]
        if searches:
            lines += _head("searches_total", "counter", "Searches by who answered, and why not the replica.")
            lines += [f"limpet_searches_total{_where(source)} {count}" for source, count in sorted(searches.items())]
        with self._lock:
            lines += _head("calls_total", "counter", "Calls of operations, by how they ended.")
            for (operation, outcome), count in sorted(self._calls.items()):
                lines.append(f'limpet_calls_total{{operation="{operation}",outcome="{outcome}"}} {count}')
            lines += _head("call_seconds", "histogram", "How long calls took.")
            for operation, slots in sorted(self._slots.items()):
                lines += _histogram(operation, slots, self._seconds[operation])
            lines += _head("http_answers_total", "counter", "Answers over HTTP; 400 and above are refusals.")
            lines += [
                f'limpet_http_answers_total{{status="{status}"}} {n}' for status, n in sorted(self._answers.items())
            ]
        return "\n".join([*lines, ""])


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP limpet_{name} {words}", f"# TYPE limpet_{name} {kind}"]


def _where(answered: str) -> str:
    return '{by="replica"}' if answered == "replica" else f'{{by="primary",why="{answered}"}}'


def _histogram(operation: str, slots: list[int], seconds: float) -> list[str]:
    lines, total = [], 0
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), slots, strict=True):
        total += count
        lines.append(f'limpet_call_seconds_bucket{{operation="{operation}",le="{bound}"}} {total}')
    label = f'{{operation="{operation}"}}'
    return [*lines, f"limpet_call_seconds_sum{label} {seconds:.6f}", f"limpet_call_seconds_count{label} {total}"]


# --- spans ------------------------------------------------------------------------------------------------------------


def _spans(run: Run, project: str) -> Run:
    """A span around each call, from the provider that is set."""
    # Optional, so it is imported when traces are on.
    from opentelemetry import trace

    tracer = trace.get_tracer("limpet")

    def watched(
        operation: Operation, arguments: Mapping[str, Any], session: str | None, by: str, masking: Masking | None = None
    ) -> Any:
        attributes = {"limpet.operation": operation.name, "limpet.by": by, "limpet.project": project}
        # An error message can repeat stored texts, so the code is recorded and not the exception.
        with tracer.start_as_current_span(
            f"limpet {operation.name}", attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:

            def tell(outcome: str) -> None:
                span.set_attribute("limpet.outcome", outcome)
                if outcome != OK:
                    span.set_status(trace.StatusCode.ERROR, outcome)

            with _outcome(tell):
                return run(operation, arguments, session, by, masking)

    return watched


def send_spans() -> None:
    """Send spans as the standard OTEL_… variables say, unless a provider is set already."""
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as problem:
        raise errors.not_installed("--traces", "otel") from problem
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider(resource=Resource.create({"service.name": "limpet"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
