"""Runs agent-written code in monty, a Python interpreter without access to the machine.

Each run has a process of its own. The code has no files, network or environment, and can call nothing but the functions
passed in here. Time and memory are bounded by the interpreter, and the process is killed if that fails. Results are not
trusted either: a list that contains another list twice, nested forty times, is small there and huge as JSON.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from limpet import errors, limits
from limpet.record import NamedTuple

if TYPE_CHECKING:
    import pydantic_monty as monty

Function = Callable[..., Any]
EXTRA = "sandbox"
OWN = "<python-input-1>"  # monty's name for the code; the one before it is the prelude
GRACE_SECONDS = 1.0  # after its time limit, before the process is killed
MESSAGE_CHARS = 600  # of an error that the code raised
LIMITS = {  # how monty's messages about limits begin, and the name of the limit
    "TimeoutError: feed time limit": "time",
    "TimeoutError: sleep limit": "sleep",
    "MemoryError: memory limit": "memory",
    "MemoryError: the worker exceeded": "memory",
    "RuntimeError: suspension limit": "calls",
}
_AT_ONCE = threading.BoundedSemaphore(limits.SANDBOX_AT_ONCE)
_used_in: set[int] = set()  # processes that ran something; see `_not_forked`


class Rules(NamedTuple):
    seconds: float = 5
    memory_bytes: int = 128 << 20
    printed_bytes: int = limits.SANDBOX_PRINTED_BYTES
    calls: int = limits.SANDBOX_CALLS
    wait_seconds: float = limits.SANDBOX_WAIT_SECONDS  # for all calls of the functions together


class Ran(NamedTuple):
    printed: str
    result: Any  # JSON: the value of the last expression


class Broke(NamedTuple):
    """The code did not finish. `limit` names the limit it reached; "" means that the code itself failed."""

    printed: str
    message: str
    limit: str = ""
    line: int = 0  # 0 when it is not known
    source: str = ""


class TooLarge(ValueError):
    """A value that exceeds the bounds as JSON."""

    def __init__(self) -> None:
        super().__init__("the value is too large or nested too deeply to leave the sandbox")


def run(
    code: str, prelude: str, inputs: Mapping[str, Any], functions: Mapping[str, Function], rules: Rules
) -> Ran | Broke:
    """Run code after a prelude that may call the functions. Inputs are variables of the code."""
    with _AT_ONCE:
        return _run(_monty(), code, prelude, inputs, functions, rules)


def _run(
    engine: Any, code: str, prelude: str, inputs: Mapping[str, Any], functions: Mapping[str, Function], rules: Rules
) -> Ran | Broke:
    printed = _Printed(rules.printed_bytes)
    bounds: monty.ResourceLimits = {
        "max_feed_duration_secs": rules.seconds,
        "max_memory": rules.memory_bytes,
        "max_recursion_depth": limits.SANDBOX_DEPTH,
        "max_suspensions": rules.calls,
        "max_total_sleep_secs": 0.0,
    }
    backstop = rules.seconds + 2 * GRACE_SECONDS
    callables = _guarded(functions, time.monotonic() + rules.wait_seconds)
    try:
        with (
            engine.Monty(max_processes=1, request_timeout=backstop, feed_duration_limit_grace=GRACE_SECONDS) as pool,
            pool.checkout(limits=bounds) as session,
        ):
            session.feed_run(prelude)
            value = session.feed_run(code, inputs=dict(inputs), external_lookup=callables, print_callback=printed)
    except FileNotFoundError:  # the interpreter is not installed
        raise errors.not_installed("run_sandbox_code", EXTRA) from None
    except RuntimeError as problem:  # it cannot be started
        raise errors.no_sandbox(str(problem)) from None
    except engine.MontyCrashedError as problem:
        return Broke(printed.text(), str(problem), "time" if problem.timed_out else "crash")
    except engine.MontyError as problem:
        return _broken(problem, printed)
    if printed.over:
        return Broke(printed.text(), "", "printed")
    try:
        return Ran(printed.text(), plain(value))
    except TooLarge:
        return Broke(printed.text(), "", "result")


def _monty() -> Any:
    _not_forked()
    try:
        import pydantic_monty  # Late: a compiled library of ten megabytes.
    except ImportError:
        raise errors.not_installed("run_sandbox_code", EXTRA) from None
    return pydantic_monty


def _not_forked() -> None:
    """Monty's threads do not survive a fork, and a child process would wait for them for ever."""
    _used_in.add(os.getpid())
    if len(_used_in) > 1:
        raise errors.sandbox_forked()


class _Printed:
    """What the code prints, up to a bound. The rest is dropped at once: a run can print gigabytes."""

    def __init__(self, most: int) -> None:
        self._parts: list[str] = []
        self._room = most
        self.over = False

    def __call__(self, _stream: str, text: str) -> None:
        size = len(text.encode())
        if size > self._room:
            self.over = True
        elif not self.over:
            self._parts.append(text)
            self._room -= size

    def text(self) -> str:
        return "".join(self._parts)


def _guarded(functions: Mapping[str, Function], until: float) -> dict[str, Function]:
    """The functions as the code may call them: with plain values, and within the time that is left."""

    def guard(function: Function) -> Function:
        def call(*values: Any) -> Any:
            if time.monotonic() > until:
                raise TimeoutError("the calls of outputs and session.notepad took too long together")
            try:
                return function(*map(plain, values))
            except errors.LimpetError as problem:
                # Monty knows Python's built-in errors; the code may catch this one.
                raise ValueError(problem.message) from None

        return call

    return {name: guard(function) for name, function in functions.items()}


def _broken(problem: Any, printed: _Printed) -> Broke:
    display = problem.display("type-msg") if hasattr(problem, "display") else str(problem)
    message = " ".join(display[:MESSAGE_CHARS].split())
    limit = next((name for beginning, name in LIMITS.items() if message.startswith(beginning)), "")
    frames = problem.traceback() if hasattr(problem, "traceback") else []
    own = [frame for frame in frames if frame.filename == OWN]
    if not own:
        return Broke(printed.text(), message, limit)
    return Broke(printed.text(), message, limit, own[-1].line, (own[-1].source_line or "").strip())


# --- results ----------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value of the sandbox as JSON. Sets and tuples become lists; types that JSON lacks become texts."""
    return _Plain(limits.SANDBOX_RESULT_CHARS).value(value, limits.SANDBOX_RESULT_DEPTH)


class _Plain:
    def __init__(self, room: int) -> None:
        self._room = room

    def value(self, value: Any, depth: int) -> Any:
        self._take(limits.SANDBOX_ITEM_CHARS)
        if value is None or isinstance(value, (bool, int, float, str)):
            return self._scalar(value)
        if depth == 0:
            raise TooLarge
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.value(item, depth - 1) for item in value]
        if isinstance(value, dict):
            return {self._key(key, depth): self.value(item, depth - 1) for key, item in value.items()}
        return self._object(value, depth)

    def _scalar(self, value: bool | int | float | str | None) -> Any:
        if isinstance(value, str):
            self._take(len(value))
        elif isinstance(value, int) and value.bit_length() > limits.SANDBOX_INTEGER_BITS:
            return f"<{value.bit_length()} bits>"
        elif isinstance(value, float) and not abs(value) < float("inf"):
            return str(value)
        return value

    def _key(self, key: Any, depth: int) -> str:
        plain_key = self.value(key, depth - 1)
        return plain_key if isinstance(plain_key, str) else str(plain_key)

    def _object(self, value: Any, depth: int) -> Any:
        if isinstance(value, bytes):
            self._take(len(value))
            return value.decode("utf-8", "replace")
        attributes = getattr(value, "attributes", None)  # an object of a class that the code defined
        if isinstance(attributes, dict):
            return self.value(attributes, depth - 1)
        if type(value).__module__ in ("datetime", "decimal", "_decimal", "pathlib"):
            return self.value(str(value), depth - 1)
        return f"<{type(value).__name__}>"

    def _take(self, cost: int) -> None:
        self._room -= cost
        if self._room < 0:
            raise TooLarge
