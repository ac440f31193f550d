"""Any conversation through a small window: whatever it answers, the request is whole and nothing is lost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

import limpet
from limpet.model import FOLD
from limpet.store import Listing
from limpet.window.formats import FORMS
from limpet.window.messages import SYSTEM, Message, assistant, user
from limpet.window.plan.context import is_injected
from limpet.window.plan.controller import Clear, Compact, Proceed, TooBig, Warn
from limpet.window.plan.rules import ORPHAN, groups, problems, unpaired
from profiles import fewer_examples
from talks import histories

PIN = "Never push to main."
FILL = [[user(f"{n}. " + "filler " * 90), assistant(f"{n}. " + "filler " * 90)] for n in range(6)]


def mark(message: Message) -> tuple[object, ...]:
    """What a message is known by, cleared or not."""
    results = tuple(one.call_id for one in message.results())
    return message.role, message.text(), message.calls(), results


def in_order(some: list[tuple[object, ...]], all_of_them: Iterator[tuple[object, ...]]) -> bool:
    return all(one in all_of_them for one in some)


@st.composite
def talks(draw: st.DrawFn) -> list[list[Message]]:
    """A conversation in pieces of whole units, long enough to be compacted."""
    talk = draw(histories(most=10))
    pieces = [[talk[at] for at in unit] for unit in groups(talk)]
    return [piece for pair in zip(pieces, FILL * 3, strict=False) for piece in pair] + FILL


@given(talks(), st.integers(900, 3_000), st.booleans())
@settings(max_examples=fewer_examples(2))
def test_every_request_is_whole(pieces: list[list[Message]], limit: int, own_list: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, limpet.open(f"{folder}/a.db", project="demo") as hold:
        session = hold.session("one")
        session.pin(PIN)
        session.notepad.write("- [ ] casts")
        talk: list[Message] = [user("port it")]
        given_talk = list(talk)
        compacted = 0
        for piece in pieces:
            step = session.window.next(talk, limit=limit)
            sent = step.messages
            history = [message for message in sent if not is_injected(message) and message.role != SYSTEM]
            assert unpaired(sent) == frozenset()
            for provider in FORMS:
                assert problems(sent, provider) == ()
            late = sent[-2].text() if isinstance(step, Warn) else sent[-1].text()
            assert PIN in late
            assert "## Session Notepad\n- [ ] casts" in late
            asked = [message for message in given_talk if message.role == "user" and message.text().strip()][-1]
            assert asked.text() in [message.text() for message in sent if message.role == "user"]
            # A warning nobody answered is sent again; it is still the same one.
            found = hold.store.entries.list(hold.scope, Listing((FOLD,), "one")).entries
            warned = sum(entry.extra["how"] == "warn" for entry in found)
            compacted += isinstance(step, Compact) and step.warned
            assert 0 <= warned - compacted <= 1
            if isinstance(step, Compact):
                is_last_resort = step.gauge.used + step.freed > limit  # it could not be sent as it was
                assert step.gauge.used * 100 <= limit * (95 if is_last_resort else 45)
            assert isinstance(step, Proceed | Warn | Clear | Compact | TooBig)
            said = [m for m in history if not m.text().startswith(("[Folded", ORPHAN))]
            assert in_order([mark(m) for m in said], map(mark, given_talk))
            given_talk += piece
            talk = [*(talk if own_list else sent), *piece]
        session.window.next(talk, limit=10**9)
        total = hold.store.entries.tally(hold.scope, "message", "one").total
        assert total == len(given_talk)
        if hold.call("list_folds", {}, session="one")["folds"]:
            session.window.uncompact(1, total)
        assert session.window.messages() == given_talk
