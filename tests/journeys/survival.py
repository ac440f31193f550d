"""The scripted run behind the claim that compaction loses nothing: planted items, ten compactions, and a count.

A model that knows nothing works through steps. Rules, numbers, ids, decisions and open items are planted in what the
user and the model say; every second one is also written to the notepad. Tool results fill the window in between. The
same script feeds the journey that must pass and the benchmark that prints figures.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from limpet.api import Session
from limpet.window.messages import Call, Message, assistant, result, user
from limpet.window.plan.context import MARK
from limpet.window.plan.controller import Compact, Step, Warn
from limpet.window.plan.facts import words
from limpet.window.plan.rules import unpaired
from limpet.window.step import Summarise

KINDS = ("rule", "number", "id", "decision", "todo")
FILLER = (
    "The module reads its input line by line and keeps a table of what it has seen so far.",
    "Nothing unusual turns up in this part; the names follow the usual pattern of the project.",
    "Reading on with the next part, which looks much like the one before it.",
)


class Planted(NamedTuple):
    kind: str
    text: str  # the whole line, as it was said
    needle: str  # what must be found again
    noted: bool  # whether it was also written to the notepad

    @property
    def question(self) -> str:
        """What one would ask who has forgotten it: all of it but what must be found."""
        return self.text.replace(self.needle, "").strip(" -[].")


class Count(NamedTuple):
    """How planted items fare after a compaction."""

    planted: int
    in_window: int
    one_recall_away: int  # not in the window, but in the answer to one plain question

    @property
    def kept(self) -> float:
        return (self.in_window + self.one_recall_away) / self.planted


def found(planted: Iterable[Planted], window: str) -> list[Planted]:
    """Those that a model which reads this window can still know."""
    return [item for item in planted if item.needle in window]


class Turn(NamedTuple):
    talk: list[Message]  # what is new in this step
    planted: tuple[Planted, ...]


def plant(number: int, chance: random.Random) -> Planted:
    kind = KINDS[number % len(KINDS)]
    code = f"{chance.choice('KLMNPQRS')}{chance.randrange(16**6):06x}".upper()
    amount = f"{chance.randrange(10_000, 99_999):,}"
    text, needle = {
        "rule": (f"Never touch the table named {code.lower()} while import {number} runs.", code.lower()),
        "number": (f"The budget of stage {number} is {amount} rows.", amount),
        "id": (f"The ticket of customer {number} is TCK-{code}.", f"TCK-{code}"),
        "decision": (f"We decided to name service {number} svc-{code.lower()}.", f"svc-{code.lower()}"),
        "todo": (f"- [ ] rename the column of sheet {number} to col_{code.lower()}", f"col_{code.lower()}"),
    }[kind]
    return Planted(kind, text, needle, number % 2 == 1)


def script(items: int, *, seed: int = 7, lines: int = 30) -> Iterator[Turn]:
    """Steps without end; the first ones plant the items, two a step."""
    chance = random.Random(seed)
    number = step = 0
    while True:
        step += 1
        planted = tuple(plant(at, chance) for at in range(number, min(number + 2, items)))
        number += len(planted)
        said = "\n".join([chance.choice(FILLER), *(item.text for item in planted if item.kind != "rule")])
        call = Call(f"call{step}", "shell", json.dumps({"command": f"cat part{step}.txt"}))
        shown = "\n".join(f"{step}:{line} {chance.choice(FILLER)}" for line in range(lines))
        talk = [assistant(said, call), result(call.id, shown)]
        rules = [item.text for item in planted if item.kind == "rule"]
        if rules or step % 7 == 0:
            talk += [assistant("That part is read."), user("\n".join([*rules, f"Go on with part {step + 1}, please."]))]
        yield Turn(talk, planted)


class Run:
    """A session on the script, and everything that is checked after every step."""

    def __init__(self, session: Session, *, limit: int, items: int, summarise: Summarise | None = None) -> None:
        self.session = session
        self.summarise = summarise
        self.limit = limit
        self.pin = "Under no circumstances may the archive of 2019 be deleted."
        session.pin(self.pin)
        self.talk: list[Message] = [user("Read all parts and tell me what the service needs.")]
        self.planted: list[Planted] = []
        self.turns = script(items)
        self.steps: list[Step] = []
        self.cuts: list[int] = []  # how many messages there were at each compaction
        self.warnings = 0
        self.problems: list[str] = []

    def compactions(self, count: int, seen: Callable[[Compact], None] = lambda step: None) -> None:
        """Go on until so many more compactions have happened."""
        while count:
            step = self.session.window.next(self.talk, limit=self.limit, summarise=self.summarise)
            self.check(step)
            if isinstance(step, Warn):
                self.warnings += 1
                self.talk = [*self.talk, assistant("My notepad is up to date.")]
                continue
            if isinstance(step, Compact):
                count -= 1
                self.cuts.append(len(self.talk))
                seen(step)
                if not count:
                    return
            turn = next(self.turns)
            for item in turn.planted:
                if item.noted:
                    self.session.notepad.append(f"{item.text}\n")
            self.planted += turn.planted
            self.talk = [*self.talk, *turn.talk]

    def check(self, step: Step) -> None:
        """What must hold in every single request."""
        notepad = self.session.notepad.section()
        late = next(m.text() for m in reversed(step.messages) if m.text().startswith(MARK))
        asked = next(m for m in reversed(self.talk) if m.role == "user")
        for holds, what in (
            (self.pin in late, "the pin"),
            (notepad in late, "the notepad"),
            (asked in step.messages, "the last request"),
            (not unpaired(step.messages), "a pair"),
            (step.gauge.used <= self.limit, "the limit"),
        ):
            if not holds:
                self.problems.append(f"{what} is lost after {len(self.talk)} messages ({type(step).__name__})")
        self.steps.append(step)

    def count(self) -> Count:
        """Where the planted items are now."""
        window = words(message for message in self.steps[-1].messages if message.role != "tool")
        here = found(self.planted, window)
        away = [item for item in self.planted if item not in here and self._recalled(item)]
        return Count(len(self.planted), len(here), len(away))

    def _recalled(self, item: Planted) -> bool:
        return any(item.needle in hit.snippet for hit in self.session.hold.recall(item.question).hits)
