"""The controller: given how full the window is, what to do next. A state machine without any I/O.

    below `clear`                            proceed
    from `clear` on, enough to clear         clear, and look again
    from `warn` on, not yet warned           warn: the agent gets one turn with its tools
    warned, and the agent has answered       compact
    too full to be sent                      clear what is too big, else compact at once

The answers are values; each carries what to send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from limpet.settings import WindowRules
from limpet.window.messages import Message

PROCEED, WARN, CLEAR, COMPACT = "proceed", "warn", "clear", "compact"


class State(NamedTuple):
    """All that a decision rests on. Sizes are tokens."""

    used: int
    limit: int
    clearable: int  # what clearing would free
    warned: bool  # since the last compaction
    answered: bool  # the agent has had its turn since
    compactable: bool = True  # False: it was tried for this very window, and did not pass


class Gauge(NamedTuple):
    """What fills the window, by section. Sizes are tokens."""

    limit: int
    used: int
    sections: Mapping[str, int]
    left_out: tuple[str, ...] = ()
    reused: int = 0  # at the beginning of the request, the same as in the one before: what a prompt cache can serve


class Proceed(NamedTuple):
    """Send these. `problems` says why the window was not compacted although it is full."""

    messages: tuple[Message, ...]
    gauge: Gauge
    problems: tuple[str, ...] = ()


class Warn(NamedTuple):
    """Send these: the last message tells the agent to write down what it needs. After its answer it is compacted."""

    messages: tuple[Message, ...]
    gauge: Gauge


class Clear(NamedTuple):
    """Send these: old results of tools became one line each."""

    messages: tuple[Message, ...]
    gauge: Gauge
    cleared: int
    freed: int


class Compact(NamedTuple):
    """Send these: the messages before the recent ones became a summary, which was checked."""

    messages: tuple[Message, ...]
    gauge: Gauge
    fold: str  # its key
    folded: int  # messages that stand behind the summary
    freed: int
    score: float  # the share of probes that are still in the window
    missing: tuple[str, ...]  # the probes that are not; a search finds them
    warned: bool  # False: it was too full to be sent even once more


Step = Proceed | Warn | Clear | Compact


def decide(state: State, rules: WindowRules) -> str:
    """What to do next."""

    def reached(percent: int) -> bool:
        return state.used * 100 >= state.limit * percent

    worth = state.clearable * 100 >= state.limit * rules.clear_least_percent
    if reached(rules.full_percent) and state.clearable:
        return CLEAR
    if reached(rules.clear_percent) and worth and not (state.warned and state.answered):
        return CLEAR
    if state.compactable and ((state.warned and state.answered) or reached(rules.full_percent)):
        return COMPACT
    if state.warned and not state.answered:
        return WARN  # the request that carried the warning was not answered, so it is sent again
    if reached(rules.warn_percent) and not state.warned:
        return WARN
    return PROCEED


def void(state: State, rules: WindowRules) -> bool:
    """Whether a warning has nothing to warn of any more, because the agent itself made enough room."""
    return state.warned and state.answered and state.used * 100 < state.limit * rules.target_percent
