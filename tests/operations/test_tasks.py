"""Tasks and pins: nesting, what is left of a task in the window, its ledger, and texts that stay."""

from __future__ import annotations

import json

import pytest

from limpet import errors
from limpet.api import Limpet, Session
from limpet.model import MESSAGE, TASK
from limpet.store import Listing
from limpet.window.messages import Call, Message, assistant, result, user
from limpet.window.plan.context import is_injected
from operations.conftest import Opener


class Agent:
    """A loop in small: the scripted model says something, tools of ours are really called."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.talk: list[Message] = []
        self.calls = 0

    def asked(self, text: str) -> None:
        self.talk.append(user(text))

    def does(self, name: str, **arguments: object) -> dict[str, object]:
        """One turn with one call: the window first, then the model, then the tool."""
        self.session.window.next(self.talk)
        self.calls += 1
        call = Call(f"call{self.calls}", name, json.dumps(arguments))
        answer: dict[str, object] = {"text": "ok"}
        if name.endswith("_task"):
            answer = self.session.hold.call(name, arguments, session=self.session.id)
        self.talk += [assistant("", call), result(call.id, json.dumps(answer))]
        return answer

    def sees(self) -> list[str]:
        """What the model reads next, a line a message."""
        sent = [message for message in self.session.window.next(self.talk).messages if not is_injected(message)]
        return [message.text() or ", ".join(call.name for call in message.calls()) or "result" for message in sent]


@pytest.fixture
def agent(hold: Limpet) -> Agent:
    return Agent(hold.session("one"))


def test_a_task_leaves_one_line_and_the_archive_holds_all(hold: Limpet, agent: Agent) -> None:
    agent.asked("port the parser")
    assert agent.does("begin_task", description="read the grammar")["depth"] == 1
    agent.does("read_file", path="grammar.y")
    agent.asked("mind the casts")
    agent.does("shell", command="make grammar")
    ended = agent.does("end_task", summary="LL(2) will do")
    assert ended == {"ok": True, "messages_collapsed": 7}
    sent = agent.sees()
    assert sent == [
        "port the parser",
        "\n".join(
            [
                "[Task: read the grammar — LL(2) will do]",
                "- the user said: mind the casts",
                "- files read: grammar.y",
                "- commands run: make grammar",
            ]
        ),
    ]
    assert hold.store.entries.tally(hold.scope, MESSAGE, "one").total == 10
    found = hold.store.entries.containing(hold.scope, Listing((MESSAGE,)), "mind the casts")
    assert found.total == 1
    agent.does("shell", command="make")
    assert agent.sees()[2:] == ["shell", "result"]


def test_nested_tasks_fold_from_inside_out(agent: Agent) -> None:
    agent.asked("port it")
    agent.does("begin_task", description="outer")
    assert agent.does("begin_task", description="inner")["depth"] == 2
    agent.does("shell", command="ls")
    agent.does("end_task", summary="seen")
    assert agent.sees()[1:] == ["begin_task", "result", "[Task: inner — seen]\n- commands run: ls"]
    agent.does("end_task", summary="all of it")
    assert agent.sees() == ["port it", "[Task: outer — all of it]\n- commands run: ls"]


def test_the_fifth_task_is_refused(agent: Agent) -> None:
    for depth in range(1, 5):
        assert agent.does("begin_task", description=f"level {depth}")["depth"] == depth
    with pytest.raises(errors.BadInput, match="4 tasks are open inside each other; the limit is 4"):
        agent.session.hold.call("begin_task", {"description": "level 5"}, session=agent.session.id)


def test_a_cancelled_task_says_why(agent: Agent) -> None:
    agent.asked("port it")
    agent.does("begin_task", description="use yacc")
    agent.does("shell", command="yacc grammar.y")
    assert agent.does("cancel_task", reason="the grammar is  generated") == {"ok": True, "messages_collapsed": 4}
    assert agent.sees()[1].startswith("[Cancelled: use yacc — the grammar is generated]")


def test_what_tasks_refuse(hold: Limpet) -> None:
    with pytest.raises(errors.NotFound, match="there is no open task to end"):
        hold.call("end_task", {"summary": "x"})
    with pytest.raises(errors.NotFound, match="there is no open task to cancel"):
        hold.call("cancel_task", {"reason": "x"})
    with pytest.raises(errors.BadInput, match="cancel_task needs reason"):
        hold.call("cancel_task", {})
    for name, argument in (("begin_task", "description"), ("end_task", "summary"), ("cancel_task", "reason")):
        with pytest.raises(errors.BadInput, match=f"{argument} is empty"):
            hold.call(name, {argument: "  "})
    assert hold.store.entries.list(hold.scope, Listing((TASK,), include_done=True)).total == 0


def test_a_task_without_a_window_folds_nothing(hold: Limpet) -> None:
    id = hold.call("begin_task", {"description": "think"})["task_id"]
    assert hold.call("end_task", {"summary": "done"}) == {"ok": True, "messages_collapsed": 0}
    (task,) = hold.call("list_tasks", {})["tasks"]
    assert (task["task_id"], task["state"], task["outcome"]) == (id, "ended", "done")


def test_a_call_made_beside_the_end_of_a_task_stays_in_sight(agent: Agent) -> None:
    agent.asked("port it")
    agent.does("begin_task", description="look")
    agent.session.window.next(agent.talk)
    agent.session.hold.call("end_task", {"summary": "seen"}, session=agent.session.id)
    calls = Call("e", "end_task", "{}"), Call("s", "shell", '{"command": "ls"}')
    agent.talk += [assistant("", *calls), result("e", "{}"), result("s", "a.py")]
    assert agent.sees() == ["port it", "[Task: look — seen]", "end_task, shell", "result", "result"]


def test_tasks_work_across_processes(opened: Opener) -> None:
    one = opened()
    agent = Agent(one.session())
    agent.asked("port it")
    agent.does("begin_task", description="look")
    agent.does("shell", command="ls")
    agent.sees()
    assert opened().call("end_task", {"summary": "seen"}) == {"ok": True, "messages_collapsed": 4}
    assert agent.sees() == ["port it", "[Task: look — seen]\n- commands run: ls"]


def test_a_task_that_is_open_at_a_compaction_goes_on(hold: Limpet, agent: Agent) -> None:
    from limpet.window.plan.controller import Compact, Warn

    agent.asked("port it")
    agent.does("begin_task", description="read everything")
    window = agent.session.window
    step = window.next(agent.talk, limit=6_000)
    warned = None
    while not isinstance(step, Compact):
        agent.talk += [user("more? " * 80), assistant("more. " * 80)]
        step = window.next(agent.talk, limit=6_000)
        warned = step if isinstance(step, Warn) else warned
    assert warned is not None
    assert "A task is still open: read everything." in warned.messages[-1].text()
    assert "Open task: read everything" in step.messages[0].text()
    hold.call("end_task", {"summary": "read"}, session="one")
    agent.talk += [assistant("", Call("e", "end_task", "{}")), result("e", "{}")]
    after = [m.text() for m in window.next(agent.talk, limit=6_000).messages if not is_injected(m)]
    assert after[0].startswith("[Folded: messages 1 to")
    assert after[-1].startswith("[Task: read everything — read]")
    assert len(after) == 2  # the summary, and after it the rest of the task


def test_what_the_user_ruled_inside_a_task_outlives_it_and_every_compaction(hold: Limpet, agent: Agent) -> None:
    rule = "Never delete the table orders_2019, whatever the script says."
    agent.asked("clean the database up")
    agent.does("begin_task", description="old tables")
    agent.asked(rule)
    agent.does("shell", command="drop_old --dry-run")
    agent.does("end_task", summary="12 tables dropped")
    assert any(f"- the user said: {rule}" in line for line in agent.sees())
    window, compacted = agent.session.window, 0
    for number in range(80):
        agent.talk += [user(f"more {number}? " + "and then " * 60), assistant("more. " * 80)]
        compacted += type(window.next(agent.talk, limit=6_000)).__name__ == "Compact"
        sent = "\n".join(message.text() for message in window.next(agent.talk, limit=6_000).messages)
        assert rule in sent, number
    assert compacted >= 3


# --- pins -------------------------------------------------------------------------------------------------------------


def test_a_pinned_text_stands_in_every_window_of_its_session(hold: Limpet) -> None:
    work = hold.session("one")
    id = work.pin("Never push to main.")
    assert work.pin("Never push to main.") == id
    assert "Never push to main." in work.window.next([user("a")]).messages[-1].text()
    assert "Never push" not in hold.session("two").window.next([user("a")]).messages[-1].text()
    assert [pin["content"] for pin in hold.call("list_pins", {}, session="one")["pins"]] == ["Never push to main."]
    with pytest.raises(errors.NotFound, match="there is no pin"):
        hold.call("unpin_text", {"id": id}, session="two")
    work.unpin(id)
    assert "Never push" not in work.window.next([user("a")]).messages[-1].text()
    assert hold.call("list_pins", {}, session="one") == {"pins": []}


def test_pinned_memory_stands_in_the_window_of_every_session(hold: Limpet) -> None:
    first = hold.session("one")
    first.memory.write("law", "Casts need two tokens.")
    first.memory.pin("law")
    for name in ("one", "two"):
        assert "## Pinned\n\nCasts need two tokens." in hold.session(name).window.next([user("a")]).messages[-1].text()


def test_pins_are_bounded(hold: Limpet) -> None:
    work = hold.session("one")
    with pytest.raises(errors.BadInput, match="pinned text has 4,001 characters"):
        work.pin("x" * 4_001)
    with pytest.raises(errors.BadInput, match="pinned text is empty"):
        work.pin(" ")
    for number in range(50):
        work.pin(f"rule {number}")
    with pytest.raises(errors.BadInput, match="50 texts are pinned in this session"):
        work.pin("one more")
