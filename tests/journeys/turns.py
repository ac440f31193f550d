"""A long conversation in two languages, in processes that are killed: `python turns.py STORE TURNS KILLS FORKS FIRST`.

A plan says what happens in each turn, so the test knows to the word what was said, and what was cut off. A process goes
on from the turn FIRST until the plan kills it, inside a tool, inside a call of the model or between two turns.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import limpet
from limpet.agent import Agent, Limits
from limpet.api import Session, Tool
from limpet.window.messages import Call, Message, assistant, result, user
from limpet.window.plan.context import WARNING_BEGINS
from limpet.window.plan.counts import ESTIMATE, Meter, exact

IN_TOOL, IN_MODEL, BETWEEN = "tool", "model", "between"
WINDOW = 6_000
FORK_TURNS = 3
ASKED = (
    "Turn {n}: look at shelf {n} and tell me what stands there; it is the {n}th of the hall.",
    "Runde {n}: Sieh dir Regal {n} an und sag mir, was dort steht; es ist das {n}. der Halle.",
)
SHELF = (
    "Shelf {n} has box {n}-{part} with the label L{n}x{part}.",
    "Regal {n}: Kiste {n}-{part} mit Zettel L{n}x{part}.",
)
ANSWER = ("Shelf {n} holds {n} boxes, the last is L{n}x19.", "Im Regal {n} stehen {n} Kisten, die letzte ist L{n}x19.")


class Plan(NamedTuple):
    turns: int
    kills: Mapping[int, str]  # by turn: where the process dies
    forks: frozenset[int]  # turns after which the session is forked

    @classmethod
    def of(cls, turns: int, kills: int, forks: int) -> Plan:
        chance = random.Random(turns * 1_000 + kills)
        killed = chance.sample(range(1, turns - 1), kills)
        ways = (IN_TOOL, IN_MODEL, BETWEEN)
        places = {turn: ways[number % len(ways)] for number, turn in enumerate(killed)}
        whole = [turn for turn in range(turns) if places.get(turn) is None]
        return cls(turns, places, frozenset(chance.sample(whole, forks)))


def asked(n: int) -> Message:
    return user(ASKED[n % 2].format(n=n))


def called(n: int) -> Message:
    return assistant("", Call(f"look{n}", "look", json.dumps({"shelf": n})))


def shelf(n: int) -> str:
    return "\n".join(SHELF[n % 2].format(n=n, part=part) for part in range(20))


def answered(n: int) -> Message:
    return assistant(ANSWER[n % 2].format(n=n))


def turn(n: int, place: str = "", *, warned: bool = False) -> list[Message]:
    """What is said in a turn, up to the place where it is cut off."""
    looked = [asked(n), called(n), result(f"look{n}", shelf(n))]
    if cut := {IN_MODEL: 1, IN_TOOL: 2}.get(place):
        return looked[:cut]
    return [*looked, *([saved(n)] if warned else ()), answered(n)]


def conversation(plan: Plan, until: int, warned: Set[int]) -> list[Message]:
    """What is said before the turn `until`; in the turns of `warned` a warning came in the middle."""
    return [message for n in range(until) for message in turn(n, plan.kills.get(n, ""), warned=n in warned)]


def saved(n: int) -> Message:
    """What the model says to a warning in the middle of a turn."""
    return assistant(f"Turn {n}: saved.")


def forked_turn(n: int, number: int) -> int:
    """The shelf that turn `number` of the fork after turn n asks about; no other turn does."""
    return 100_000 + 10 * n + number


class Run:
    """One process: an agent whose model and tool do what the plan says."""

    def __init__(self, session: Session, plan: Plan, log: int) -> None:
        self.plan, self.log, self.session = plan, log, session.id
        self.n = 0
        self.meter = Meter(tokenizer=exact() or ESTIMATE)
        look = Tool("look", "Look at a shelf.", {"type": "object"}, self.look)
        self.agent = Agent(session, self.model, tools=[look], bounds=Limits(window=WINDOW))

    def model(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        size = sum(map(self.meter.message, messages)) + self.meter.definitions(tools)
        assert size <= WINDOW, f"turn {self.n}: a request of {size} tokens"
        assert sum(message == asked(self.n) for message in messages) == 1
        self.die(IN_MODEL)
        has_looked = any(part.call_id == f"look{self.n}" for message in messages for part in message.results())
        if has_looked and messages[-1].text().startswith(WARNING_BEGINS):
            os.write(self.log, f"{self.session} {self.n}\n".encode())
            return saved(self.n)
        return answered(self.n) if has_looked else called(self.n)

    def look(self, arguments: Mapping[str, Any]) -> str:
        self.die(IN_TOOL)
        return shelf(arguments["shelf"])

    def die(self, place: str) -> None:
        if self.plan.kills.get(self.n) == place:
            os.kill(os.getpid(), signal.SIGKILL)

    def turn(self, n: int) -> None:
        self.n = n
        ended = self.agent.run(asked(n).text())
        assert ended.outcome == "completed", ended
        assert ended.text.endswith(answered(n).text()), ended


def main(store: str, turns: str, kills: str, forks: str, first: str) -> None:
    plan = Plan.of(int(turns), int(kills), int(forks))
    with limpet.open(store, project="demo", session="hall") as hold:
        log = os.open(f"{store}.warnings", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        run = Run(hold.session(), plan, log)
        for n in range(int(first), plan.turns):
            run.turn(n)
            run.die(BETWEEN)
            if n in plan.forks:
                child = hold.session().fork(f"after turn {n}")
                own = Run(child, plan, log)
                for number in range(FORK_TURNS):
                    own.turn(forked_turn(n, number))
                hold.end(child.id, "completed")


if __name__ == "__main__":
    main(*sys.argv[1:])
