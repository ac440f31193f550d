"""Any schedule of processes, compactions, branches, edits and trimmed lists gives the transcript that really happened.

Beside the real store runs a plain model: everything that was spoken, in order, and the line that the caller is on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limpet
from limpet.api import Limpet, Session
from limpet.model import MESSAGE
from limpet.store import Listing
from limpet.window.messages import ASSISTANT, SYSTEM, USER, Call, Message, Text, assistant, result, user
from limpet.window.plan.context import is_injected
from limpet.window.plan.rules import is_stub, unpaired
from limpet.window.transcript import message_of
from profiles import chosen

LIMIT = 1_500
SHORT = ("ok", "yes", "continue", "done")


class Caller:
    """A program that talks, dies, comes back and changes its list, and the model of what that must leave."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.count = 0
        self.spoken: list[Message] = []  # the transcript
        self.line: list[Message] = []  # the conversation as the caller knows it, edits included
        self.talk: list[Message] = []  # what it passes on
        self.earlier_lines: list[list[Message]] = []  # lines it has been on
        self.hold: Limpet = self.open()

    def open(self) -> Limpet:
        return limpet.open(f"{self.folder}/a.db", project="demo", folder=self.folder)

    @property
    def session(self) -> Session:
        return self.hold.session("one")

    # --- what it does -------------------------------------------------------------------------------------------------

    def say(self, kind: str) -> None:
        self.count += 1
        call = Call(f"c{self.count}", "shell", '{"command": "ls"}')
        spoken = {
            "talk": [user(f"Request {self.count}: " + "why " * 40), assistant(f"Answer {self.count}: " + "so " * 40)],
            "short": [user(SHORT[self.count % 3]), assistant("done")],
            "tool": [assistant(f"Step {self.count}.", call), result(call.id, f"row {self.count}\n" * 60)],
            "lost": [assistant(f"Step {self.count}, which nobody answers.", call), user(f"And request {self.count}?")],
        }[kind]
        for message in spoken:
            self.talk = [*self.talk, message]
            self.spoken.append(message)
            self.line.append(message)
        self.check(self.session.window.next(self.talk, limit=LIMIT).messages)

    def resume(self, way: str) -> None:
        """A new process."""
        self.hold.close()
        self.hold = self.open()
        if way == "window":
            self.talk = self.session.window.messages()
        elif way == "nothing":
            self.talk = list(self.session.window.next([], limit=LIMIT).messages)
        elif way == "everything":
            self.talk = [message._replace() for message in self.line]

    def trim(self, share: int) -> None:
        """Pass on the end of the conversation alone, with something in it that cannot be mistaken."""
        start = len(self.line) * share // 10
        while start and not any(is_telling(message) for message in self.line[start:]):
            start -= 1
        self.talk = [message._replace() for message in self.line[start:]]

    def branch(self, share: int) -> None:
        """Go back and take another way."""
        length = len(self.line) * share // 10
        while 0 < length < len(self.line) and not is_telling(self.line[length - 1]):
            length -= 1
        self.earlier_lines.append(list(self.line))
        self.line = self.line[:length]
        self.talk = list(self.line)
        self.say("talk")

    def go_back(self, number: int) -> None:
        if self.earlier_lines:
            back = self.earlier_lines[number % len(self.earlier_lines)]
            self.earlier_lines.append(list(self.line))
            self.line = list(back)
            self.talk = [message._replace() for message in back]
            self.say("talk")

    def edit(self, share: int) -> None:
        """Change a message that has neighbours on both sides."""
        at = len(self.line) * share // 10
        if not 1 < at < len(self.line) - 1 or not all(map(is_telling, (self.line[at - 1], self.line[at + 1]))):
            return
        if self.line[at].role in (USER, ASSISTANT) and not self.line[at].calls():
            self.count += 1
            changed = Message(self.line[at].role, (Text(f"Changed {self.count}: " + "otherwise " * 10),))
            self.line = [*self.line[:at], changed, *self.line[at + 1 :]]
            self.talk = list(self.line)
            self.check(self.session.window.next(self.talk, limit=LIMIT).messages)

    def fork(self, _: int) -> None:
        """Another session goes on from here; this one knows nothing of it."""
        other = self.hold.session(f"fork {self.count}")
        other.window.next([*self.session.window.messages(), user("Go on alone.")], limit=LIMIT)

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check(self, sent: Sequence[Message]) -> None:
        assert self.transcript() == self.spoken
        assert unpaired(sent) == frozenset()
        visible = [m for m in sent if not is_injected(m) and m.role != SYSTEM and not m.text().startswith("[Folded")]
        visible = [message for message in visible if not is_stub(message)]
        assert in_order(map(mark, visible), iter([*map(mark, self.line)])), "nothing of another line is shown"
        assert [mark(message) for message in visible][-1] == mark(self.line[-1])

    def transcript(self) -> list[Message]:
        page = self.hold.store.entries.list(self.hold.scope, Listing((MESSAGE,), "one", include_done=True, limit=5_000))
        return [message_of(entry) for entry in sorted(page.entries, key=lambda entry: entry.key)]


def is_telling(message: Message) -> bool:
    return len(message.text()) > 40 or bool(message.calls() or message.results())


def mark(message: Message) -> tuple[Any, ...]:
    """What a message is known by, cleared or not."""
    return message.role, message.text(), message.calls(), tuple(one.call_id for one in message.results())


def in_order(some: Iterator[Any], all_of_them: Iterator[Any]) -> bool:
    return all(one in all_of_them for one in some)


shares = st.integers(1, 9)
actions = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(("talk", "talk", "talk", "short", "tool", "tool", "lost"))),
    st.tuples(st.just("say"), st.sampled_from(("talk", "talk", "talk", "short", "tool", "tool", "lost"))),
    st.tuples(st.just("resume"), st.sampled_from(("window", "nothing", "everything", "as it was"))),
    st.tuples(st.sampled_from(("trim", "branch", "go_back", "edit", "fork")), shares),
)


@pytest.mark.timeout(1_200)
@given(st.lists(actions, min_size=8, max_size=60))
@settings(max_examples=chosen(short=25, long=400))
def test_whatever_happens_the_transcript_is_what_was_said(schedule: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        caller = Caller(folder)
        caller.say("talk")
        for action, argument in schedule:
            getattr(caller, action)(argument)
            if action != "say":
                caller.say("talk")
        caller.hold.close()
