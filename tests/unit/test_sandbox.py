"""The room of the sandbox itself: values that leave it, and a process that dies or hangs under the code."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet import limits
from limpet.sandbox import monty

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
ANYTHING = st.recursive(
    st.none() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.decimals(),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.integers(), inner),
    max_leaves=20,
)


def run(code: str, rules: monty.Rules | None = None, **functions: Any) -> monty.Ran | monty.Broke:
    return monty.run(code, "None", {}, functions, rules or monty.Rules())


@given(JSON)
def test_json_stays_as_it_is(value: Any) -> None:
    assert monty.plain(value) == value


@given(ANYTHING)
def test_everything_else_becomes_json(value: Any) -> None:
    json.dumps(monty.plain(value), allow_nan=False)


def nested(value: Any, times: int, copies: int) -> Any:
    for _ in range(times):
        value = [value] * copies
    return value


@pytest.mark.parametrize(
    "value",
    [
        nested(1, 40, 2),
        nested("x", limits.SANDBOX_RESULT_DEPTH + 1, 1),
        ["x" * 1_000_000] * 1_000,
        {"x" * limits.SANDBOX_RESULT_CHARS: 1},
        [b"x" * 1_000_000] * 1_000,
    ],
)
def test_what_is_small_inside_and_huge_outside_is_refused(value: Any) -> None:
    with pytest.raises(monty.TooLarge, match="too large or nested too deeply"):
        monty.plain(value)


def test_numbers_python_cannot_write_are_described() -> None:
    assert monty.plain(1 << 20_000) == "<20001 bits>"
    assert monty.plain([float("nan"), float("-inf")]) == ["nan", "-inf"]
    assert monty.plain(object()) == "<object>"


def test_a_function_gets_plain_values_and_its_errors_can_be_caught() -> None:
    seen: list[Any] = []

    def take(*values: Any) -> None:
        seen.extend(values)
        raise KeyError("not there")

    done = run("try:\n    take({1, 1}, (2,))\nexcept KeyError as problem:\n    print('caught')", take=take)
    assert done == monty.Ran("caught\n", None)
    assert seen == [[1], [2]]


def test_calls_that_take_too_long_together_are_refused() -> None:
    done = run("take()", monty.Rules(wait_seconds=-1), take=lambda: 1)
    assert isinstance(done, monty.Broke)
    assert done.message == "TimeoutError: the calls of outputs and session.notepad took too long together"
    assert done.line == 1


def test_too_many_calls_end_the_run() -> None:
    done = run("while True:\n    try:\n        take()\n    except Exception:\n        pass", take=lambda: 1)
    assert isinstance(done, monty.Broke)
    assert done.limit == "calls"


def test_printing_without_end_takes_no_memory_here() -> None:
    done = run("for n in range(100):\n    print('x' * 1000)", monty.Rules(printed_bytes=5_000))
    assert isinstance(done, monty.Broke)
    assert done.limit == "printed"
    assert len(done.printed) <= 5_000


def workers() -> list[int]:
    """The processes below this one that are the sandbox's."""
    below = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    return [int(pid) for pid in below if (Path("/proc") / pid / "comm").read_text().strip() == "monty"]


def state(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "X"


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the process in /proc")
@pytest.mark.parametrize(("how", "limit"), [(signal.SIGKILL, "crash"), (signal.SIGSTOP, "time")])
def test_a_sandbox_that_dies_or_hangs_ends_its_run_and_nothing_else(how: int, limit: str) -> None:
    def strike() -> int:
        (pid,) = workers()
        os.kill(pid, how)
        while state(pid) not in "TZX":  # a signal takes a moment to arrive
            time.sleep(0.001)
        return 1

    done = run("print('before')\nstrike()\nprint('after')", monty.Rules(seconds=0.5), strike=strike)
    assert isinstance(done, monty.Broke)
    assert (done.printed, done.limit) == ("before\n", limit)
    assert workers() == []
    assert run("1 + 1") == monty.Ran("", 2)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the process in /proc")
def test_no_process_stays_behind() -> None:
    run("1 / 0")
    run("1 + 1")
    assert workers() == []


def test_many_runs_at_once_wait_for_each_other() -> None:
    results: list[Any] = []
    threads = [threading.Thread(target=lambda n=n: results.append(run(f"{n} * 2"))) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done.result for done in results) == [n * 2 for n in range(12)]
