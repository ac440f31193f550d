"""A long session told in any language: facts planted once, tool results in between, and a count of what is left.

A story is a TOML file. It has sentences with `{subject}` and `{value}` for seven kinds of facts, each with a question
that somebody would ask who has forgotten the value, and sentences about other `{thing}`s that fill the messages. Eight
facts of each kind are planted, one a step: rules by the user, the others in turn by the user and the model, half of
them in the middle of a long message. `tests/journeys/stories` has eight languages; docs/window.md explains the form.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from limpet.api import Session
from limpet.text import tokens
from limpet.window.messages import Call, Message, assistant, result, user
from limpet.window.plan.controller import Compact, Step, Warn
from limpet.window.plan.facts import words
from limpet.window.step import Summarise

STORIES = Path(__file__).parent / "stories"
KINDS = ("rule", "decision", "open", "figure", "name", "id", "file")
EACH = 8  # facts of a kind
IN_WINDOW = ("rule", "decision")  # kinds that must stay in the window, word for word
AROUND = 16  # sentences around a fact in a long message
LONG_LINES = 30  # of the result that a step may clear
SHORT_LINES, SHORT_RESULTS = 4, 8  # of those that are too short for that
MARKS = str.maketrans("", "", "«»")  # around the words that matched
FULL_WIDTH = "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19"


class Fact(NamedTuple):
    kind: str
    text: str  # the sentence, as it is said
    value: str  # what must be found again
    question: str
    by_user: bool
    long: bool  # whether it stands in a long message

    def is_in(self, window: str) -> bool:
        return (self.text if self.kind in IN_WINDOW else self.value) in window


class Count(NamedTuple):
    """How the facts of one kind fare."""

    planted: int
    in_window: int
    one_recall_away: int

    @property
    def kept(self) -> float:
        return (self.in_window + self.one_recall_away) / self.planted


class Story(NamedTuple):
    """One language, with one set of its sentences."""

    told: dict[str, Any]
    sentences: dict[str, list[list[str]]]
    chance: random.Random
    varied: bool = False  # whether each sentence of the filler has invented words, so that none says what others say
    texts: Sequence[str] = ()  # sentences of other texts, which then are the filler

    @property
    def language(self) -> str:
        return str(self.told["language"])

    def facts(self) -> list[Fact]:
        """All facts in the order in which they are said: one of each kind, then the next of each kind."""
        return [self._fact(kind, number) for number in range(EACH) for kind in KINDS]

    def _fact(self, kind: str, number: int) -> Fact:
        templates = self.sentences[kind]
        says, asks = templates[number % len(templates)]
        names = {"subject": self.told["subjects"][number], "value": self._value(kind, number)}
        text, question = says.format(**names), asks.format(subject=names["subject"])
        by_user = kind == "rule" or number % 2 == 1
        return Fact(kind, text[:1].upper() + text[1:], names["value"], question, by_user, number % 4 > 1)

    def _value(self, kind: str, number: int) -> str:
        if kind in ("rule", "decision", "open"):
            return str(self.told["words"][EACH * KINDS.index(kind) + number])
        if kind == "name":
            return str(self.told["people"][number])
        if kind == "figure":
            figure = str(self.chance.randrange(1_200, 9_900))
            # The other scripts have digits of their own, and use ours beside them.
            native = self.told.get("digits") or ("" if self.told.get("spaces", True) else FULL_WIDTH)
            return figure.translate(str.maketrans("0123456789", native)) if native and number % 2 else figure
        code = "".join(self.chance.choices("0123456789ABCDEF", k=6))
        return f"QX-{code}" if kind == "id" else f"conf/{code[:3].lower()}/s{code[3:].lower()}.toml"

    def filler(self, count: int) -> str:
        joint = " " if self.told.get("spaces", True) else ""
        return joint.join(self._filler_line() for _ in range(count))

    def _filler_line(self) -> str:
        """A sentence that hardly ever comes again: two of the story's, each about one of its things."""
        if self.texts:
            return self.chance.choice(self.texts)
        templates, things = self.told["filler"], self.told["things"]
        clauses = [
            self.chance.choice(templates).format(thing=f"{self.chance.choice(things)}{self._invented()}")
            for _ in range(2)
        ]
        first, second = clauses[0].rstrip(".。।"), clauses[1][:1].lower() + clauses[1][1:]
        joint = ", " if self.told.get("spaces", True) else "、"
        return f"{first[:1].upper()}{first[1:]}{joint}{second}"

    def _invented(self) -> str:
        if not self.varied:
            return ""
        return " " + "".join(self.chance.choice("bdfgklmnprstvz") + self.chance.choice("aeiou") for _ in range(3))

    def turns(self) -> Iterator[tuple[list[Message], Fact | None]]:
        """Steps without end, each with the fact that it plants."""
        waiting = self.facts()
        step = 0
        while True:
            step += 1
            fact = waiting.pop(0) if waiting else None
            said = "" if fact is None else fact.text
            if fact is not None and fact.long:
                joint = " " if self.told.get("spaces", True) else ""
                said = joint.join([self.filler(AROUND // 2), said, self.filler(AROUND // 2)])
            own, asked = ("", said) if fact is None or fact.by_user else (said, "")
            talk = self._read(step, LONG_LINES, own or self.filler(1))
            for part in range(SHORT_RESULTS):
                talk += self._read(100 * step + part, SHORT_LINES)
            if asked or step % 5 == 0:
                request = "\n".join(filter(None, [asked, self.told["go_on"].format(n=step + 1)]))
                talk += [assistant(self.told["done"]), user(request)]
            yield talk, fact

    def _read(self, number: int, lines: int, said: str = "") -> list[Message]:
        """A call that reads a part of the handbook, and its result."""
        call = Call(f"call{number}", "shell", json.dumps({"command": f"sed -n {number},+{lines}p handbook.txt"}))
        return [assistant(said, call), result(call.id, "\n".join(self.filler(1) for _ in range(lines)))]


def load(path: Path, which: str = "main", *, varied: bool = False, texts: Sequence[str] = ()) -> Story:
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    return Story(told, {**told["sets"]["main"], **told["sets"][which]}, random.Random(11), varied, texts)


class Telling:
    """A session that hears a story."""

    def __init__(self, session: Session, story: Story, *, limit: int, summarise: Summarise | None = None) -> None:
        self.session = session
        self.story = story
        self.limit = limit
        self.summarise = summarise
        self.talk: list[Message] = [user(story.told["opening"])]
        self.planted: list[Fact] = []
        self.compactions: list[Compact] = []
        self.tokens = 0  # of everything that was said
        self.last: Step | None = None

    def tell(self, *, least_tokens: int, least_compactions: int) -> None:
        """Go on until all is planted, so much was said, and so many compactions have happened."""
        turns = self.story.turns()
        while True:
            step = self.session.window.next(self.talk, limit=self.limit, summarise=self.summarise)
            self.last = step
            if isinstance(step, Warn):
                self.talk = [*self.talk, assistant(self.story.told["done"])]
                continue
            if isinstance(step, Compact):
                self.compactions.append(step)
                done = self.tokens >= least_tokens and len(self.compactions) >= least_compactions
                if done and len(self.planted) == EACH * len(KINDS):
                    return
            talk, fact = next(turns)
            self.planted += [fact] if fact else []
            self.tokens += sum(tokens.count(words([message])) for message in talk)
            self.talk = [*self.talk, *talk]

    def counts(self) -> dict[str, Count]:
        """Where the facts are now, by kind."""
        assert self.last is not None
        window = words(message for message in self.last.messages if message.role != "tool")
        counts = {}
        for kind in KINDS:
            facts = [fact for fact in self.planted if fact.kind == kind]
            away = [fact for fact in facts if not fact.is_in(window)]
            counts[kind] = Count(len(facts), len(facts) - len(away), sum(map(self.recalled, away)))
        return counts

    def lost(self) -> list[Fact]:
        """Facts that are neither in the window nor one recall away."""
        assert self.last is not None
        window = words(message for message in self.last.messages if message.role != "tool")
        return [fact for fact in self.planted if not fact.is_in(window) and not self.recalled(fact)]

    def recalled(self, fact: Fact) -> bool:
        hits = self.session.hold.recall(fact.question).hits
        return any(fact.value in hit.snippet.translate(MARKS) for hit in hits)
