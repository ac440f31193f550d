"""The controller: decides what to do next by how full the window is. A state machine without I/O.

    below `clear`                            proceed
    from `clear` on, enough to clear         clear, and decide again
    from `warn` on, not yet warned           warn: the agent gets one turn with its tools
    warned, and the agent has answered       compact
    too full to be sent                      clear what is too big, else compact at once
    enough tasks have ended                  compact at once, if a setting says so
    still more than the window               shorten the messages that are too long, if the caller allows it

Each answer is a value with the messages to send.
"""

from __future__ import annotations

from limpet.record import NamedTuple
from limpet.settings import WindowRules
from limpet.window.messages import Message
from limpet.window.plan.gauge import Gauge

PROCEED, WARN, CLEAR, COMPACT = "proceed", "warn", "clear", "compact"
SHORTEN, TOO_BIG = "shorten", "too big"


class State(NamedTuple):
    """The input of a decision. Sizes are tokens, without the tool definitions, which nothing here makes smaller."""

    used: int
    limit: int
    clearable: int  # how much clearing would free
    warned: bool  # since the last compaction
    answered: bool  # the agent has had a turn since the warning
    compactable: bool = True  # False: compaction was tried on this window and failed verification
    shortenable: bool = False  # there are messages that alone fill much of the window, and the caller allows it
    tasks_due: bool = False  # so many tasks have ended since the last compaction that it is time for one


class Proceed(NamedTuple):
    """Send these messages. `problems` says why a full window was not compacted."""

    messages: tuple[Message, ...]
    gauge: Gauge
    problems: tuple[str, ...] = ()


class Warn(NamedTuple):
    """Send these messages: the last one asks the agent to save what it needs. A compaction follows its answer."""

    messages: tuple[Message, ...]
    gauge: Gauge


class Clear(NamedTuple):
    """Send these messages: old tool results became one line each."""

    messages: tuple[Message, ...]
    gauge: Gauge
    cleared: int
    freed: int


class Compact(NamedTuple):
    """Send these messages: those before the recent ones became a summary, which was checked."""

    messages: tuple[Message, ...]
    gauge: Gauge
    fold: str  # the key of the fold
    folded: int  # messages that the summary replaces
    freed: int
    score: float | None  # the share of what was recognised before that is in the request; None if nothing was
    missing: tuple[str, ...]  # the facts whose checks failed; a search still finds them
    warned: bool  # False: the window was too full for a warning


class TooBig(NamedTuple):
    """Do not send these messages: they are more than the window, and nothing could be folded."""

    messages: tuple[Message, ...]
    gauge: Gauge
    advice: str  # what is too big, and what to do


Step = Proceed | Warn | Clear | Compact | TooBig


def decide(state: State, rules: WindowRules) -> str:
    """The next action."""

    def reached(percent: int) -> bool:
        return state.used * 100 >= state.limit * percent

    worth = state.clearable * 100 >= state.limit * rules.clear_least_percent
    if reached(rules.full_percent) and state.clearable:
        return CLEAR
    if reached(rules.clear_percent) and worth and not (state.warned and state.answered):
        return CLEAR
    is_due = state.tasks_due or (state.warned and state.answered) or reached(rules.full_percent)
    if state.compactable and is_due:
        return COMPACT
    if state.used > state.limit:
        return SHORTEN if state.shortenable else TOO_BIG
    # A request with a warning that was not answered is sent again.
    warns = not state.answered if state.warned else reached(rules.warn_percent)
    return WARN if warns else PROCEED


def void(state: State, rules: WindowRules) -> bool:
    """Whether a warning is obsolete because the agent itself has made enough room."""
    return state.warned and state.answered and state.used * 100 < state.limit * rules.target_percent
